"""Every verdict against the exact truth: all extreme models of small dyadic logs, and linear programs for larger ones."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dyadic
import overexplain as ox
from brute import BOUNDARY, NO, UNKNOWN, YES, cone, givens, lattice, truth
from dyadic import GRIDS, KINDS, places
from strategies import examples
from sweep import plane_normals, swept

UNDECIDED = 3
randoms = st.randoms(use_true_random=False)


def certify(log: ox.QueryLog, points: np.ndarray) -> np.ndarray:
    return ox.Knowledge(log, tolerance=0.0).certify(points).codes


def check(log: ox.QueryLog, points: np.ndarray) -> np.ndarray:
    """Every verdict is the exact one; the verdicts."""
    expected, found = truth(givens(log), points), certify(log, points)
    wrong = np.flatnonzero(expected != found)
    assert [(points[i].tolist(), int(expected[i]), int(found[i])) for i in wrong] == [], list(log)
    return found


def sweep_sees(codes: np.ndarray, seen: np.ndarray) -> bool:
    """Nothing that a sweep shows to be possible is excluded by the codes."""
    return not (
        ((codes == YES) & np.isin(seen, [NO, UNKNOWN])).any()
        or ((codes == NO) & (seen != NO)).any()
        or ((codes == BOUNDARY) & (seen != BOUNDARY)).any()
    )


# --- the truth itself -------------------------------------------------------------------------------------------------


@given(randoms)
@examples(60)
def test_the_cone_and_the_sweep_agree_in_the_plane(rng: random.Random) -> None:
    log = dyadic.exact_log(
        rng, dyadic.model(rng, 2), rng.choices(KINDS, k=rng.randint(0, 2)), rng.randint(1, 6), missing=0.3
    )
    grid = lattice(-3, 3)
    every = np.vstack([grid, log.points, log.explanations[log.explained]])
    reach = int(4 * np.ptp(every, axis=0).max())  # coordinates are quarters
    assert np.array_equal(truth(givens(log), grid), swept(givens(log), grid, plane_normals(reach)))


@given(randoms)
@examples(20)
def test_the_sweep_finds_nothing_that_the_cone_excludes_in_space(rng: random.Random) -> None:
    plane = dyadic.model(rng, 3)
    log = dyadic.exact_log(rng, plane, rng.choices(KINDS, k=rng.randint(0, 3)), rng.randint(1, 9))
    normals = np.array([v for v in product(range(-4, 5), repeat=3) if math.gcd(*v) == 1], dtype=float)
    codes = truth(givens(log), GRIDS[3])
    assert sweep_sees(codes, swept(givens(log), GRIDS[3], np.vstack([normals, plane.normal])))
    assert ((codes == plane.labels(GRIDS[3])) | np.isin(codes, [UNKNOWN, BOUNDARY])).all()


# --- mixed logs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3])
@given(rng=randoms)
@examples(25)
def test_labels_and_counterfactuals(p: int, rng: random.Random) -> None:
    log = dyadic.exact_log(rng, dyadic.model(rng, p), rng.choices(KINDS, k=rng.randint(0, 3)), rng.randint(0, 3 * p))
    assume(len(log))
    points = places(log, p)
    check(log, points)


@pytest.mark.parametrize("p", [2, 3])
@given(rng=randoms)
@examples(15)
def test_labels_alone(p: int, rng: random.Random) -> None:
    """Points in general position are rare on a grid: collinear ones, duplicates and ties are the rule."""
    check(log := dyadic.exact_log(rng, dyadic.model(rng, p), labels=rng.randint(1, 12)), places(log, p))


@given(rng=randoms)
@examples(15)
def test_answers_that_promise_less(rng: random.Random) -> None:
    """Suboptimal answers (slack), merely valid ones, and exact ones under an unknown distance."""
    plane = dyadic.model(rng, 2)
    log = dyadic.exact_log(rng, plane, labels=rng.randint(0, 4))
    for _ in range(rng.randint(1, 3)):
        norm = dyadic.distance(rng.choice(("l1", "linf", "weighted l1")), 2, rng)
        x, image = dyadic.explained(plane, norm, rng)
        kind = rng.choice(("slack", "valid", "plane"))
        terms = {
            "slack": ox.Mechanism(norm, tolerance=0.0, slack=1.0),
            "valid": ox.Mechanism(norm, tolerance=0.0, slack=None),
            "plane": ox.Mechanism(None, tolerance=0.0),
        }[kind]
        stretch = 1.0 if kind == "plane" else rng.choice((1.0, 1.5, 2.0))
        log.add_explanation(x, x + stretch * (image - x), int(plane.label(x)), terms)
    # Not at the answers themselves: whether "the label flips" there is a label of its own is a matter of words.
    points = np.array([x for x in places(log, 2).tolist() if x not in log.explanations.tolist()])
    codes = check(log, points)
    assert sweep_sees(codes, swept(givens(log), points, plane_normals(12)))


@given(rng=randoms)
@examples(10)
def test_proofs_hold(rng: random.Random) -> None:
    """Each verdict's proof is accepted by the checker, and is of the kind its verdict needs."""
    log = dyadic.exact_log(rng, dyadic.model(rng, 2), rng.choices(KINDS, k=rng.randint(0, 2)), rng.randint(1, 5))
    found = ox.Knowledge(log, tolerance=0.0).certify(places(log, 2))
    for i in rng.sample(range(len(found)), 12):
        proof = found.proof(i)
        proof.verify(log)
        assert isinstance(proof, ox.Disagreement if found.codes[i] == UNKNOWN else ox.Certificate)
        assert proof.point == tuple(found.points[i].tolist())


@pytest.mark.parametrize(
    "terms", [ox.Mechanism("l1", slack=None), ox.Mechanism(None, tolerance=0.0)], ids=["valid", "plane"]
)
def test_proofs_hold_where_no_is_strict_only_because_the_normal_is_not_zero(terms: ox.Mechanism) -> None:
    """4 is a Yes and 2 is across or on the plane, so a > 0, and 1 is a No: but no row of the log is a No."""
    log = ox.QueryLog()
    log.add_explanation([4.0], [2.0], YES, terms)
    found = ox.Knowledge(log, tolerance=0.0).certify([[1.0], [5.0]])
    assert found.codes.tolist() == truth(givens(log), [[1.0], [5.0]]).tolist() == [NO, YES]
    for i in range(2):
        found.proof(i).verify(log, tolerance=0.0)


# --- labels that are missing ------------------------------------------------------------------------------------------


@given(rng=randoms)
@examples(30)
def test_missing_labels(rng: random.Random) -> None:
    """A side is used if the rest of the log implies it. What is claimed is true of every model on whichever side."""
    log = dyadic.exact_log(
        rng, dyadic.model(rng, 2), rng.choices(KINDS, k=rng.randint(1, 3)), rng.randint(1, 5), missing=0.6
    )
    points, rows = places(log, 2), givens(log)
    assume(any(row.label for row in rows))
    every_side, implied = truth(rows, points), truth(rows, points, "implied")
    for x, code, all_models, by_implication in zip(points, certify(log, points), every_side, implied, strict=True):
        if all_models == by_implication:
            allowed = {all_models}
        elif by_implication == UNKNOWN:  # no two consistent models disagree, but only a distinction of cases shows it
            allowed = {all_models, UNDECIDED}
        else:
            allowed = {all_models, by_implication}
        assert code in allowed, (x, code, all_models, by_implication, list(log))


def test_a_side_is_used_once_it_is_implied() -> None:
    """x' alone puts the plane through (1, 0). A No at (-1, 0) implies the side of x, and with it |a_2| ≤ a_1."""
    log = ox.QueryLog()
    log.add_explanation([0.0, 0.0], [1.0, 0.0], None, ox.Mechanism("l1", tolerance=0.0))
    log.add_label([1.0, 5.0], YES)  # a_2 ≥ 0: says nothing about the side of x
    points = np.array([[0.0, 0.0], [0.0, 0.5], [1.0, 1.0], [2.0, 0.5]])
    assert certify(log, points).tolist() == [UNKNOWN, UNKNOWN, YES, UNKNOWN]
    log.add_label([-1.0, 0.0], NO)
    assert certify(log, points).tolist() == [NO, NO, YES, YES]
    check(log, GRIDS[2])


@given(rng=randoms)
@examples(15)
def test_without_any_label_verdicts_hold_up_to_swapping(rng: random.Random) -> None:
    log = dyadic.exact_log(rng, dyadic.model(rng, 2), rng.choices(KINDS, k=rng.randint(1, 3)), 0, missing=1.0)
    points = places(log, 2)
    knowledge = ox.Knowledge(log, tolerance=0.0)
    found = knowledge.certify(points)
    assert not knowledge.oriented
    assert not found.oriented
    allowed = []
    for row in range(len(log)):
        either = []
        for side in (YES, NO):
            assumed = dyadic.taken(log, range(len(log)))
            assumed.add_label(log.points[row], side)
            either.append(truth(givens(assumed), points, "implied"))
        # A point has the label of the row, or the other one, if it does on both sides.
        codes = np.where(either[0] == BOUNDARY, BOUNDARY, UNKNOWN)
        codes = np.where(np.isin(either[0], (YES, NO)) & (either[0] == -either[1]), either[0], codes)
        codes[(np.asarray(points) == log.points[row]).all(axis=1)] = YES
        allowed.append(codes)
    assert any(np.array_equal(found.codes, codes) for codes in allowed), (found.codes, allowed, list(log))


# --- shapes of logs ---------------------------------------------------------------------------------------------------


def labelled(points: list[list[float]], labels: list[int]) -> ox.QueryLog:
    log = ox.QueryLog()
    log.add_label(np.array(points, dtype=float), labels)
    return log


SHAPES = {
    "one Yes": labelled([[0, 0]], [YES]),
    "one No": labelled([[0, 0]], [NO]),
    "Yes only": labelled([[0, 0], [2, 0], [0, 2]], [YES] * 3),
    "No only": labelled([[0, 0], [2, 0], [0, 2]], [NO] * 3),
    "duplicates": labelled([[0, 0], [0, 0], [2, 0], [2, 0], [0, 0]], [NO, NO, YES, YES, NO]),
    "collinear": labelled([[-2, -2], [-1, -1], [1, 1], [2, 2]], [NO, NO, YES, YES]),
    "collinear, no gap": labelled([[0, -1], [0, 0], [0, 1]], [NO, YES, YES]),
    "touching hulls": labelled([[0, 0], [2, 0], [1, 1], [1, 0.5]], [NO, NO, YES, YES]),
    "constant column": labelled([[1, -1], [1, 1], [1, 2]], [NO, YES, YES]),
    "square": labelled([[0, 0], [0, 1], [1, 0], [1, 1]], [NO, NO, YES, YES]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    check(SHAPES[name], lattice(-3, 3))


def test_an_empty_log_says_nothing() -> None:
    for log in (ox.QueryLog(), ox.QueryLog(features=["a", "b"])):
        knowledge = ox.Knowledge(log)
        assert knowledge.is_consistent
        assert not knowledge.pinned_down
        assert not knowledge.oriented
        assert knowledge.certify(GRIDS[2]).codes.tolist() == [UNKNOWN] * len(GRIDS[2])
        assert knowledge.share(GRIDS[2]) == 0


@given(rng=randoms)
@examples(10)
def test_one_hot_groups(rng: random.Random) -> None:
    """Columns that add up to one: the log tells nothing off that plane, and everything on it that it can."""
    plane = ox.Hyperplane([float(rng.randint(-2, 2)) for _ in range(3)] + [1.0], 0.5)
    rows = [[*np.eye(3)[rng.randrange(3)], rng.choice(dyadic.HALVES)] for _ in range(8)]
    log = ox.QueryLog()
    log.add_label(rows, plane.labels(np.array(rows)))
    points = np.array([[*hot, z] for hot in np.eye(3) for z in (-2.0, -0.5, 0.5, 2.0)] + [[1, 1, 0, 0], [0, 0, 0, 3]])
    check(log, points)


# --- what else Knowledge says -----------------------------------------------------------------------------------------


@given(rng=randoms)
@examples(15)
def test_pinned_down_witness_and_share(rng: random.Random) -> None:
    log = dyadic.exact_log(rng, dyadic.model(rng, 2), rng.choices(KINDS, k=rng.randint(0, 2)), rng.randint(1, 5))
    knowledge = ox.Knowledge(log, tolerance=0.0)
    models = cone(givens(log), [row.label for row in givens(log)], 2)
    assert knowledge.is_consistent
    assert knowledge.oriented
    assert knowledge.pinned_down == (len(models.generators) == 1)
    codes = truth(givens(log), GRIDS[2])
    assert knowledge.share(GRIDS[2]) == np.isin(codes, [YES, NO]).mean()
    names = {"YES": YES, "NO": NO, "UNKNOWN": UNKNOWN, "BOUNDARY": BOUNDARY, "UNDECIDED": UNDECIDED}
    counts = knowledge.certify(GRIDS[2]).counts()
    assert {name: int((codes == code).sum()) for name, code in names.items()} == {name: counts[name] for name in names}
    if not len(log.explained):
        assert np.array_equal(knowledge.witness().labels(log.points), log.labels)


def thirds_log(rng: random.Random, p: int) -> ox.QueryLog:
    """Exact answers under ℓ∞ and ℓ1 with weights, 3/4, 3/2, 3, whose inverses are no floats; the steps are, all the same."""
    log, normal = ox.QueryLog(), np.zeros(p)
    base = rng.choice(("linf", "l1"))
    weights = np.array([rng.choice((0.75, 1.5, 2.0, 3.0)) for _ in range(p)])
    moved = rng.sample(range(p), rng.randint(1, p))
    for i in moved:
        normal[i] = rng.choice((-2.0, -1.0, 1.0, 2.0)) if base == "linf" else rng.choice((-1.0, 1.0)) * weights[i]
    image = dyadic.point(rng, p)
    plane = ox.Hyperplane(normal, float(normal @ image))
    along = np.zeros(p)
    along[:2] = normal[1], -normal[0]
    for n in range(rng.randint(1, 2)):
        side, step = rng.choice((1, -1)), 6.0 / weights
        for i in range(p):
            if i in moved:
                step[i] *= np.sign(normal[i])
            else:  # not the farthest; under ℓ1 nothing at all
                step[i] *= rng.choice((0.0, 0.5, -0.5)) if base == "linf" else 0.0
        terms = ox.Mechanism(ox.Weighted(ox.norm(base), weights), tolerance=0.0)
        log.add_explanation(image + n * along + side * step, image + n * along, side, terms)
    for _ in range(rng.choice((0, 0, 2))):
        x = dyadic.point(rng, p)
        log.add_label(x, int(plane.label(x)))
    return log


@pytest.mark.parametrize("p", [2, 3])
def test_weights_whose_inverses_are_no_floats(p: int) -> None:
    """Verdicts that hang on exact zeros are found, all of them: Hölder's terms have thirds in them."""
    rng = random.Random(p)
    seen: set[int] = set()
    for _ in range(40):
        log = thirds_log(rng, p)
        seen |= set(check(log, places(log, p)).tolist())
    assert seen == {YES, NO, UNKNOWN, BOUNDARY}
