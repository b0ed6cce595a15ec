"""Statements of docs/theory/ties.md, checked by themselves: in rationals, or against linear programs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

import overexplain as ox
from overexplain.knowledge.exact import combine
from overexplain.knowledge.prover import batch, projection
from overexplain.knowledge.prover.ball import Ball
from overexplain.knowledge.prover.coding import Coding
from overexplain.knowledge.prover.cone import RoundCone
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.one_point import decide, settle
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.rationals import project_exactly
from overexplain.knowledge.prover.reduction import Contradiction, LinearFacts
from overexplain.knowledge.prover.screens import find_box

Array = NDArray[np.float64]
NO, UNKNOWN, YES, BOUNDARY = -1, 0, 1, 2


def exactly(row: Array) -> list[Fraction]:
    return [Fraction(v) for v in row.tolist()]


def dot(u: list[Fraction], v: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, v, strict=True)), Fraction(0))


def rows_of(facts: LinearFacts) -> list[list[Fraction]]:
    return [
        [int(side) * v for v in [*exactly(x), Fraction(-1)]] for x, side in zip(facts.points, facts.sides, strict=True)
    ]


def assert_shown(facts: LinearFacts, x: Array) -> int:
    """What settles a point is what the theorems say: weights that add up to it exactly, or two models that keep every fact."""
    found, rows, q = settle(LinearProver(facts), x), rows_of(facts), [*exactly(x), Fraction(-1)]
    if found.models is not None:
        for (normal, offset), says_yes in zip(found.models, (True, False), strict=True):
            z = [*normal, offset]
            assert any(normal)
            assert (dot(q, z) >= 0) == says_yes
            for row, strict in zip(rows, facts.strict, strict=True):
                assert dot(row, z) > 0 or (dot(row, z) == 0 and not strict)
        return UNKNOWN
    assert found.weights is not None
    sign = found.code if found.code != BOUNDARY else YES
    total = [sum((w * rows[i][j] for i, w in found.weights.items()), Fraction(0)) for j in range(len(q))]
    assert total == [sign * v for v in q]
    assert min(found.weights.values()) > 0
    if found.code == NO:
        support = sorted(found.weights)
        full = np.linalg.matrix_rank(np.array([rows[i] for i in support], dtype=float)) == len(q)
        assert facts.strict[support].any() or full
    return found.code


def label_facts(points: Array, labels: Array) -> LinearFacts:
    return LinearFacts(points, labels.astype(np.int64), labels < 0)


def test_ties_one_question() -> None:
    """Theorem 1: facts, some strict, have a solution if and only if no −L_s is in the cone."""
    rng = np.random.default_rng(1)
    seen = []
    for _ in range(120):
        rows = rng.integers(-2, 3, size=(5, 3))
        strict = rng.uniform(size=5) < 0.5
        whole = [[int(v) for v in row] for row in rows]
        in_cone = [
            project_exactly(whole, [-v for v in whole[s]], [], np.eye(3))[0] is not None for s in np.flatnonzero(strict)
        ]
        found = linprog(
            np.zeros(3), A_ub=-rows, b_ub=-strict.astype(float), bounds=(None, None)
        )  # strict: ≥ 1, by scaling
        assert (found.status == 0) == (not any(in_cone))
        seen.append(any(in_cone))
    assert 10 < sum(seen) < 110


def test_ties_labels_leave_nothing_undecided() -> None:
    """Theorem 2 on grids, where nearly everything ties: each point has weights that add up to it, or two models."""
    rng = np.random.default_rng(2)
    grid = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    codes = []
    for _ in range(12):
        plane = rng.integers(-2, 3, size=3)
        labels = np.where(grid @ plane[:2] >= plane[2], 1, -1)
        chosen = rng.choice(9, size=6, replace=False)
        facts = label_facts(grid[chosen], labels[chosen])
        asked = np.vstack([grid, grid / 2, 2 * grid])
        one_by_one = [assert_shown(facts, x) for x in asked]
        assert decide(LinearProver(facts), asked).tolist() == one_by_one
        codes += one_by_one
    assert {YES, NO, UNKNOWN} == set(codes)


def test_ties_facial_reduction() -> None:
    """Theorem 3 and Proposition 5: weak facts on either side of the same points, so that many are equalities."""
    rng = np.random.default_rng(3)
    grid = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=2)))
    codes = []
    for _ in range(25):
        plane = rng.integers(-1, 2, size=3)
        values = grid @ plane[:2] - plane[2]
        if not plane[:2].any():
            continue
        weak = rng.choice(9, size=3, replace=False)
        strict = [i for i in rng.choice(9, size=2, replace=False) if values[i] < 0]
        points, sides = [grid[i] for i in strict], [-1] * len(strict)
        for i in weak:
            for side in (1, -1):
                if side * values[i] >= 0:
                    points.append(grid[i])
                    sides.append(side)
        is_strict = np.arange(len(points)) < len(strict)
        facts = LinearFacts(np.array(points), np.array(sides, dtype=np.int64), is_strict)
        asked = np.vstack([grid, grid / 2])
        for x in asked:
            codes.append(assert_shown(facts, x))
            said = (x @ plane[:2] >= plane[2]) * 2 - 1
            assert codes[-1] in (UNKNOWN, BOUNDARY, said)
    assert {YES, NO, UNKNOWN, BOUNDARY} == set(codes)


def test_ties_conflicts_are_irreducible() -> None:
    """Proposition 4: the rows of a contradiction add up to 0, and without any one of them a model is left."""
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(20):
        points = rng.integers(-4, 5, size=(25, 3)).astype(float)
        labels = np.where(points @ [1, -2, 1] >= 1, 1, -1)
        labels[rng.integers(25)] *= -1
        facts = label_facts(points, labels)
        try:
            LinearProver(facts)
        except Contradiction as none:
            rows, support = rows_of(facts), sorted(none.weights)
            for j in range(4):
                assert sum((none.weights[i] * rows[i][j] for i in support), Fraction(0)) == 0
            for left_out in support:
                rest = [i for i in support if i != left_out]
                LinearProver(label_facts(points[rest], labels[rest]))  # does not raise
            found += 1
    assert found > 8


def test_ties_whole_number_coordinates() -> None:
    """Theorem 6: standardised columns become small whole numbers, and combinations keep their weights."""
    rng = np.random.default_rng(5)
    whole = np.column_stack([rng.integers(0, 2, size=12), rng.integers(0, 50, size=12)])
    points = whole * [0.37, 2.0**-7] + [-1.25, 3.0]
    coding = Coding(points)
    assert coding.is_whole
    assert np.abs(coding.rows).max() <= 50
    for x in points[:4]:
        chosen = [3, 5, 7, 9]
        target, same = [*exactly(x), Fraction(-1)], [*coding.exact(x), Fraction(-1)]
        before = combine([[*exactly(points[i]), Fraction(-1)] for i in chosen[:3]], target)
        after = combine([[*exactly(coding.rows[i]), Fraction(-1)] for i in chosen[:3]], same)
        assert before == after


def test_ties_the_projection_ends_with_weights_or_a_model() -> None:
    """Theorem 8 and Corollary 9 in rationals, for metrics of full and of lower rank, and from any start."""
    rng = np.random.default_rng(6)
    ends = []
    for k in range(150):
        G = [[int(v) for v in row] for row in rng.integers(-3, 4, size=(7, 4))]
        q = [int(v) for v in (rng.integers(0, 3, size=7) @ np.array(G) if k % 2 else rng.integers(-3, 4, size=4))]
        metric = rng.normal(size=(4, 4 if k % 3 else 2))
        weights, z = project_exactly(G, q, rng.choice(7, size=3, replace=False).tolist(), metric)
        if weights is not None:
            assert min(weights.values(), default=Fraction(1)) > 0
            assert [sum((w * G[i][j] for i, w in weights.items()), Fraction(0)) for j in range(4)] == q
        else:
            assert z is not None
            assert all(dot([Fraction(v) for v in row], z) >= 0 for row in G)
            assert dot([Fraction(v) for v in q], z) < 0
        ends.append(weights is not None)
    assert 60 < sum(ends) < 150


def test_ties_early_exit() -> None:
    """Proposition 10: models on the way to the projection, and the inner point that follows."""
    rng = np.random.default_rng(7)
    exits = 0
    for _ in range(200):
        A = rng.normal(size=(12, 3)) + [2, 0, 0]
        A /= np.linalg.norm(A, axis=1)[:, None]
        inner = np.array([1.0, 0.0, 0.0])
        if (A @ inner).min() <= 0:
            continue
        c = rng.normal(size=3)
        held = A[rng.choice(12, size=2, replace=False)]
        rest = c - np.linalg.lstsq(held.T, c, rcond=None)[0] @ held
        theta = max(0.0, float((A @ rest / (A @ inner)).max()))
        if rest @ rest > theta * (c @ inner):
            z = theta * inner - rest
            assert (A @ z).min() > -1e-12
            assert c @ z < 0
            exits += 1
        if theta > 0:
            assert (A @ (inner - 0.5 / theta * rest)).min() > 0
    assert exits > 20


def test_ties_the_integer_gap() -> None:
    """Theorem 7: what is proved has exact weights above 0; members of the cone are proved, near misses are not."""
    rng = np.random.default_rng(8)
    proved = 0
    for k in range(200):
        G = rng.integers(-9, 10, size=(3, 5)).astype(float)
        if np.linalg.matrix_rank(G) < 3:
            continue
        q = rng.integers(1, 6, size=3) @ G
        if k % 2:
            q[rng.integers(5)] += 1  # outside of the span, or with other weights
        said = projection.prove_whole(G, q, np.eye(5), np.ones(3), np.linalg.pinv(G).T)  # type: ignore[no-untyped-call]
        weights = combine([exactly(g) for g in G], exactly(q))
        assert not said or (weights is not None and min(weights) > 0)
        assert said == (weights is not None and min(weights) > 0)
        proved += said
    assert proved > 80


def test_ties_the_ball() -> None:
    """Theorem 11: points at the edge of the ball are combinations of the rows with weights ≥ 0."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        A = rng.normal(size=(15, 4)) + [1, 0, 0, 0]
        A /= np.linalg.norm(A, axis=1)[:, None]
        least = np.linalg.eigvalsh(A.T @ A / 15)[0]
        for v in rng.normal(size=(10, 4)):
            assert nnls(A.T, A.mean(axis=0) + least * v / np.linalg.norm(v))[1] < 1e-10


def test_ties_box_screens() -> None:
    """Proposition 12: what a box holds is in the cone, by another program; it holds much of what is."""
    rng = np.random.default_rng(10)
    rows = rng.normal(size=(60, 4)) + [1.5, 0, 0, 0]
    rows = rows[rows[:, 0] > 0.2]
    cone = RoundCone(rows)
    ball = Ball.inside(cone)
    assert ball is not None
    box = find_box(cone, ball)
    assert box is not None
    C = rng.normal(size=(400, 4)) * 0.4 + cone.z0
    C /= np.linalg.norm(C, axis=1)[:, None]
    held = box.holds(C, np.full(400, 1e-14))
    inside = np.array([nnls(cone.A.T, c)[1] < 1e-9 for c in C])
    assert inside[held].all()
    assert held.sum() > 0.1 * inside.sum() > 0


def norm_and_dual(q: float) -> tuple[float, float]:
    return q, {1.0: np.inf, 2.0: 2.0, np.inf: 1.0}[q]


@pytest.mark.parametrize("q", [1.0, 2.0, np.inf])
def test_ties_proofs_by_a_length(q: float) -> None:
    """Theorem 14: with any weights, for models that keep rows and equalities; two lengths, that of ℓ2 beside another."""
    rng = np.random.default_rng(11)
    own, dual = norm_and_dual(q)
    for _ in range(300):
        a, b = rng.normal(size=3), rng.normal()
        z = np.array([*a, b, np.linalg.norm(a, dual), np.linalg.norm(a)])
        L, E = rng.normal(size=(4, 6)), rng.normal(size=(2, 6))
        L *= np.sign(L @ z)[:, None]
        width = np.abs(E @ z) / z[[4, 5]] * rng.uniform(1, 2, size=2)  # the first is paid by t_1, the second by t_2
        weights, omega = rng.exponential(size=4), rng.normal(size=2)
        x, sign = rng.normal(size=3), rng.choice([-1, 1])
        rest = np.array([*(sign * x), -sign, 0, 0]) - weights @ L - omega @ E
        share = rest[3] / L[0, 3]  # the first row takes what is left of b, if it has the weight for it
        if weights[0] + share < 0:
            continue
        rest -= share * L[0]
        beta = rest[4] - abs(omega[0]) * width[0] - np.linalg.norm(rest[:3], own)
        other = rest[5] - abs(omega[1]) * width[1]
        assert sign * (a @ x - b) >= beta * z[4] + other * z[5] - 1e-9


def measured(name: str, rng: np.random.Generator, count: int, **terms: Any) -> tuple[Prover, ox.Hyperplane]:
    """The prover of a log of labels and explanations of one model, whole-number columns and a one-hot group among them."""
    X = np.column_stack([
        rng.integers(0, 9, size=count + 12),
        rng.normal(size=count + 12).round(2),
        np.eye(3)[rng.integers(0, 3, size=count + 12)],
    ])  # fmt: skip
    model = ox.Hyperplane([1.0, -2.0, 0.5, 1.5, -1.0], 4.3)
    service = ox.ModelOracle(model, ox.Mechanism(name))
    log = ox.QueryLog(mechanism=ox.Mechanism(name, **terms))
    log.add_label(X[count:], model.labels(X[count:]))
    log.add_explanation(X[:count], service.explain(X[:count]), label=model.labels(X[:count]))
    prover = ox.Knowledge(log)._known.prover
    assert prover is not None
    assert prover._measured is not None
    return prover._measured, model


@pytest.mark.parametrize("name", ["l1", "linf"])
def test_ties_pinned(name: str) -> None:
    """Proposition 15: the closed form holds for the model that answered, and for all others that are known to be consistent."""
    rng = np.random.default_rng(12)
    prover, model = measured(name, rng, 12)
    pinned = prover.pinned
    assert pinned is not None
    X = np.column_stack([rng.integers(0, 9, size=500), rng.normal(size=500), np.eye(3)[rng.integers(0, 3, size=500)]])
    codes = pinned.codes(X)
    sure = np.abs(codes) == 1
    assert sure.mean() > 0.5
    assert (codes[sure] == model.labels(X)[sure]).all()
    for other in np.vstack([prover.known, [*model.normal, model.offset]]):
        t = float(prover.norms[0].dual(other[:-1]))
        value = (X @ other[:-1] - other[-1]) / t
        room = (
            np.abs(X) @ pinned.charge + pinned.offset_charge + np.abs(X @ pinned.beside - pinned.level) @ pinned.reach
        )
        assert (np.abs(value - (X @ pinned.normal - pinned.offset)) <= room + 1e-12).all()


@pytest.mark.parametrize(
    ("name", "terms"),
    [
        ("l1", {}), ("l2", {}), ("linf", {}), ("l1", {"tolerance": 0.1}), ("linf", {"tolerance": 0.1}),
        ("l2", {"slack": 0.3}), ("l1", {"slack": 0.2}),
    ],
)  # fmt: skip
def test_ties_admitted_models_are_consistent(name: str, terms: dict[str, Any]) -> None:
    """Theorem 16: every model that floats admit, in rationals, by the checker's definition."""
    rng = np.random.default_rng(13)
    prover, _ = measured(name, rng, 3, **terms)
    prover.look(np.column_stack([rng.integers(0, 9, size=100), rng.normal(size=100), rng.normal(size=(100, 3))]))
    assert len(prover.known) >= (1 if name == "l2" and not terms else 6)  # ℓ2: everything is decided by the first step
    for model in prover.known[:: max(1, len(prover.known) // 40)]:
        assert prover.keeper.kept_exactly(prover.keeper.exactly(model))


def test_ties_constants_of_the_search_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nonsense for the constants of the search the verdicts are the same."""
    rng = np.random.default_rng(14)
    points = rng.integers(0, 4, size=(40, 4)).astype(float)
    facts = label_facts(points, np.where(points @ [1, -2, 1, 1] >= 2, 1, -1))
    asked = rng.integers(-1, 6, size=(60, 4)) / 2
    right = decide(LinearProver(facts), asked)
    assert len(set(right.tolist())) == 3
    for name, value in (
        ("GAIN", 2.0),
        ("FOLLOW", 1e-3),
        ("LIKE", np.float32(-1)),
        ("SMALL", 0.5),
        ("CLEAR", np.float32(0.3)),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(projection, name, value)
            assert np.array_equal(decide(LinearProver(facts), asked), right)
    monkeypatch.setattr(batch, "LIMIT", 2)
    assert np.array_equal(decide(LinearProver(facts), asked), right)


@pytest.mark.parametrize("pair", ["l1/l2", "linf/l2", "l1/linf", "linf/l1", "l2/l1", "l1/l1"])
def test_ties_facts_of_robust_rows_hold(pair: str) -> None:
    """Theorem 17: every row of the prover holds for models that gave the answers, rounding included."""
    from overexplain.knowledge.answers import answers_of
    from overexplain.knowledge.evidence import Finder
    from overexplain.knowledge.prover.blocks import blocks_of

    rng = np.random.default_rng(3)
    for case in range(12):
        plane = ox.Hyperplane(rng.standard_normal(4), float(rng.normal()))
        distance, ball = pair.split("/")
        terms = ox.Mechanism(distance, robustness=ball, radius=[0.5, 0.1, 3.0][case % 3])
        log, asked = ox.QueryLog(), rng.integers(-5, 6, (5, 4)).astype(float)
        log.add_explanation(
            asked, ox.ModelOracle(plane, terms).explain(asked), label=plane.labels(asked), mechanism=terms
        )
        prover = Prover(blocks_of(log, log.labels, None) or [], answers_of(log, None), Finder())
        lengths = [float(norm.dual(np.asarray(plane.normal))) for norm in prover.norms]
        model = np.concatenate([plane.normal, [plane.offset], lengths])
        assert prover.keeper.kept(model[None, :5]).all()
        left, size = prover.facts.left @ model, np.abs(prover.facts.left) @ np.abs(model)
        owed = prover.facts.width * np.array([lengths[k] if k >= 0 else 0.0 for k in prover.facts.number])
        assert (left[~prover.facts.equal] >= -1e-14 * size[~prover.facts.equal]).all()
        assert (np.abs(left[prover.facts.equal]) <= (owed + 1e-14 * size)[prover.facts.equal]).all()
        assert (prover.cuts @ model >= -1e-14 * (np.abs(prover.cuts) @ np.abs(model))).all()
        for k, least in prover.balls.least.items():
            inner = prover.ties.inner(np.eye(len(model)))
            free = np.linalg.lstsq(inner, model, rcond=None)[0] if len(prover.ties.free) == 4 else None
            if free is not None and prover.norms[k] != prover.norms[0]:
                assert least @ free >= -1e-12 * np.abs(least) @ np.abs(free)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "lp:3"])
def test_ties_between_two_models_lies_one(name: str) -> None:
    """Theorem 18: between more and less of s lies ‖a‖* itself, and what both ends break it breaks."""
    from overexplain.knowledge.prover.balls import Crossings
    from overexplain.knowledge.prover.facts import Ties

    rng, norm = np.random.default_rng(5), ox.norm(name)
    ties = Ties(4, [], 2)
    crossings = Crossings(norm, 1, 6, 5, ties)
    ends = [np.hstack([rng.standard_normal((40, 5)), np.ones((40, 1)), np.zeros((40, 1))]) for _ in range(2)]
    for models, share in zip(ends, (rng.uniform(1, 3, 40), rng.uniform(0, 1, 40)), strict=True):
        models[:, 6] = share * np.asarray(norm.dual(models[:, :4]))
    found = crossings.between(*ends)
    assert np.abs(crossings.excess(found)).max() < 1e-12 * np.abs(found).max()
    claim = rng.standard_normal((20, 7))
    both = (ends[0] @ claim.T < 0) & (ends[1] @ claim.T < 0)
    assert both.any()
    assert (found @ claim.T)[both].max() < 0
