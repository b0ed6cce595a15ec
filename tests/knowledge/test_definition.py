"""One definition of "consistent" (docs/theory/consistent.md): all that follow it side by side, and cases that once were told wrong.

The second reader, `tests/definition.py`, shares no code with the library. Its campaigns are in tests/campaigns.
"""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from definition import Definition, directions, models
from exact_balls import dot
from overexplain.errors import CertificateInvalid
from overexplain.geometry.on_plane import on_plane
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.certificates import Certificate, Disagreement, Model
from overexplain.knowledge.checker import (
    Answer,
    Bound,
    Branch,
    Branched,
    Lemma,
    Length,
    Term,
    check_certificate,
    check_witness,
    fact_of,
)
from overexplain.knowledge.enclosures import NotEnclosed, enclose
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.verdicts import Verdict
from provers import exact

YES, NO, UNKNOWN, BOUNDARY, UNDECIDED = (
    Verdict.YES,
    Verdict.NO,
    Verdict.UNKNOWN,
    Verdict.BOUNDARY,
    Verdict.UNDECIDED,
)
SQUARE = {"norm": "polyhedral", "vertices": [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]}


def logged(terms: ox.Mechanism | None, *rows: tuple[list[float], list[float] | None, int | None]) -> ox.QueryLog:
    log = ox.QueryLog(mechanism=terms)
    for x, answer, label in rows:
        if answer is None:
            log.add_label(x, label)
        else:
            log.add_explanation(x, answer, label=label)
    return log


# --- up to swapping ---------------------------------------------------------------------------------------------------


def test_no_label_is_assumed_beside_a_merely_valid_answer() -> None:
    """5 → 0 exact and 0 → 1 valid: a = −1, b = 0 fits, and its swap does not."""
    log = ox.QueryLog()
    log.add_explanation([5.0], [0.0], mechanism=ox.Mechanism("l1", tolerance=0.0))
    log.add_explanation([0.0], [1.0], mechanism=ox.Mechanism("l1", tolerance=0.0, slack=None))
    terms = [Term("side", F(1), 0), Term("flips", F(5), 1), Term("plane", F(4), 0, 1)]
    lemma = (1, 1, [Term("side", F(1), 1), Term("plane", F(1), 0, 1)])
    proof = Certificate.about(log, None, None, terms, lemmas=[lemma], assumed=[(0, 1)])
    for one in (proof, Certificate.from_json(proof.to_json())):
        with pytest.raises(CertificateInvalid, match="cannot be swapped in row 1"):
            one.verify(log)
    check_witness(answers_of(log), (F(-1),), F(0))
    assert ox.Knowledge(log).certify([[5.0]]).codes.tolist() != []


def test_no_label_is_assumed_beside_a_robust_answer_to_a_point_that_may_lie_on_the_plane() -> None:
    log = {
        0: Answer(exact([5])),
        1: Answer(exact([0]), None, exact([1]), "l1", F(0), F(0), robustness="l1", radius=F(1)),
    }
    check_witness(log, exact([-1]), F(0))
    lemma = Lemma(1, 1, (Term("side", F(1), 1), Term("plane", F(1), 1), Term("hoelder", F(1), 1, vector=exact([-1]))))
    terms = [Term("side", F(1), 0), Term("plane", F(5), 1), Term("side", F(4), 1)]
    with pytest.raises(CertificateInvalid, match="cannot be swapped in row 1"):
        check_certificate(log, terms, None, 1, assumed=[(0, 1)], lemmas=[lemma])


@pytest.mark.parametrize("level", ["paper", "perspective", "shared", "exact"])
@pytest.mark.parametrize(
    ("norm", "normal", "asked"), [("l1", [-1.0], [[5.0], [0.0]]), ("linf", [-1.0, -1.0], [[2.0, 2.0], [1.0, -1.0]])]
)
def test_an_honest_robust_log_without_labels_is_no_contradiction(
    level: Any, norm: str, normal: list[float], asked: list[list[float]]
) -> None:
    """One of the questions lies on the plane, and is Yes either way."""
    service = ox.ModelOracle(ox.Hyperplane(normal, 0.0), ox.Mechanism(norm, norm, 1.0, tolerance=0.0))
    log = ox.QueryLog(mechanism=service.mechanism)
    for x in asked:
        log.add_explanation(x, service.explain(x))
    verdicts = ox.Knowledge(log, robust=level).certify(asked)
    for code, label in zip(verdicts.codes, service.classify(np.array(asked)), strict=True):
        assert code in (label, UNDECIDED)


def test_a_yes_up_to_swapping_is_strict() -> None:
    """l1, 0 → (1, 0): (0, 1) has the label of 0 in every model, but the swap of one that has it on its plane says otherwise."""
    terms = ox.Mechanism("l1", tolerance=0.0)
    points = [[0.0, 1.0], [0.0, -1.0], [2.0, 1.0], [0.0, 0.5], [0.0, 0.0], [2.0, 0.5], [1.0, 0.0]]
    verdicts = ox.Knowledge(log := logged(terms, ([0.0, 0.0], [1.0, 0.0], None))).certify(points)
    assert verdicts.codes.tolist() == [UNKNOWN, UNKNOWN, UNKNOWN, YES, YES, NO, BOUNDARY]
    for i in range(len(points)):
        verdicts.proof(i).verify(log)
    proof = verdicts.proof(0)
    assert isinstance(proof, Disagreement)
    assert Disagreement.from_json(proof.to_json()) == proof
    said = [(m.margin([0.0, 0.0]) >= 0) == (m.margin([0.0, 1.0]) >= 0) for m in (proof.yes, proof.no)]
    assert said == [True, False]
    for label, known in ((1, [YES, YES, UNKNOWN]), (-1, [UNKNOWN, UNKNOWN, YES])):
        assert ox.Knowledge(logged(terms, ([0.0, 0.0], [1.0, 0.0], label))).certify(points[:3]).codes.tolist() == known


# --- certain ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1.0, 1e3, 1e6])
def test_nothing_false_is_said_beside_the_plane_of_a_polyhedral_ball(radius: float) -> None:
    terms = ox.Mechanism(SQUARE, SQUARE, radius)
    plane = ox.Hyperplane([1.0, 0.5], 3.0)
    log = logged(terms, ([0.0, 0.0], ox.ModelOracle(plane, terms).explain([0.0, 0.0]).tolist(), -1))
    steps = 10.0 ** np.arange(-10, 2, 0.25)
    points = 2 + np.outer(np.concatenate([steps, -steps]), [1.0, 1.0])
    codes = ox.Knowledge(log).certify(points).codes
    certain = np.abs(codes) == 1
    assert (codes == plane.labels(points))[certain].all()
    assert certain.sum() > 20


def test_what_the_checker_leaves_open_beside_that_plane_is_not_certain() -> None:
    """a = (1/2, 1/2), b = 2 − ε is consistent: a point between it and 2 is none that every model calls No."""
    terms = ox.Mechanism(SQUARE, SQUARE, 1.0)
    log = logged(terms, ([0.0, 0.0], [3.0, 3.0], -1))
    half, off = F(1, 2), F(3, 2**41)
    check_witness(answers_of(log), (half, half), 2 - off, lengths=Finder())
    for level in ("paper", "perspective", "shared", "exact"):
        for beyond in (2.0**-52, 2.0**-42, 2.0**-41):
            q = [2 - beyond, 2 - beyond]
            assert half * F(q[0]) * 2 - (2 - off) >= 0
            assert ox.Knowledge(log, robust=level).certify([q]).codes[0] != NO


def test_one_exact_weighted_row_has_its_plane_proved() -> None:
    weighted = {"norm": "weighted", "base": "linf", "weights": [2.0, 1.5]}
    log = logged(ox.Mechanism(weighted, tolerance=0.0), ([1.0, -2.0], [2.5, 2.0], -1))
    verdicts = ox.Knowledge(log).certify([[-1.0, 2.0]])
    assert verdicts.codes[0] == BOUNDARY
    verdicts.proof(0).verify(log)


# --- witnesses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tolerance", "answer", "model"),
    [
        (1.0, [10.0, 1.0], ([F(4, 5), F(1)], F(10))),  # its optimum is (0, 10), 19 away
        (1.0, [10.0, 1.5], ([F(1), F(0)], F(21, 2))),  # (10.5, 0): 2 away
        (2.0**-40, [1.0, 0.0], ([1 - F(1, 2**45), F(1)], 1 - F(1, 2**45))),  # (0, 1): 2 away
    ],
)
def test_a_witness_has_an_optimum_within_the_tolerance(tolerance: float, answer: list[float], model: Any) -> None:
    log = logged(ox.Mechanism("l1", tolerance=tolerance), ([0.0, 0.0], answer, -1))
    assert Definition(log).judge(*model) is False
    with pytest.raises(CertificateInvalid, match="would not have given the explanation in row 0"):
        check_witness(answers_of(log), *model)
    good = Model((F(1), F(0)), F(answer[0]))
    wrong = Disagreement((18.0, -5.0), yes=good, no=Model(tuple(model[0]), model[1]))
    with pytest.raises(CertificateInvalid, match="would not have given"):
        wrong.verify(log)


def test_an_exact_answer_of_an_unknown_distance_is_off_its_question() -> None:
    log = logged(ox.Mechanism(None, tolerance=0.0), ([0.0, 0.0], [1.0, 0.0], 1))
    verdicts = ox.Knowledge(log).certify([[2.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert verdicts.codes.tolist() == [NO, BOUNDARY, YES, UNKNOWN]
    for i in range(4):
        verdicts.proof(i).verify(log)
    with pytest.raises(CertificateInvalid, match="would not have given"):
        check_witness(answers_of(log), exact([0, 1]), F(0))


def test_a_valid_answer_with_a_tolerance_counts() -> None:
    """Within 0.1 of 10 there is a Yes: models with b above 10.1 are gone, a claim about 20 needs a > 0."""
    log = logged(ox.Mechanism("l2", tolerance=0.1, slack=None), ([0.0], [10.0], -1), ([100.0], None, 1))
    assert ox.Knowledge(log).certify([[20.0]]).codes[0] in (YES, UNDECIDED)
    check_witness(answers_of(log), exact([1]), F(101, 10) - F(1, 10**9))
    with pytest.raises(CertificateInvalid, match="would not have given"):
        check_witness(answers_of(log), exact([1]), F(102, 10))
    fact = fact_of(answers_of(log), Term("flips", F(1), 0))
    assert (list(fact.left), fact.rights) == ([10, -1], (("l2", -F(0.1)),))
    served = logged(ox.Mechanism("l2", slack=None), ([0.0], [10.0], -1), ([100.0], None, 1))
    assert ox.Knowledge(served).certify([[20.0]]).codes[0] == YES


@pytest.mark.parametrize("tolerance", [0.0, None])
def test_an_answer_that_is_its_question_lies_on_the_plane_also_with_a_slack(tolerance: float | None) -> None:
    rng = np.random.default_rng(0)
    normal, x = np.array([1.0, 2.0]), [1.0, 0.0]
    points = rng.integers(-6, 7, (60, 2)).astype(float)
    points = points[np.abs(points @ normal - 1) > 1.5]
    log = ox.QueryLog()
    log.add_label(points, np.where(points @ normal >= 1, 1, -1))
    log.add_explanation(x, x, label=1, mechanism=ox.Mechanism("l1", tolerance=tolerance, slack=0.5))
    asked = rng.uniform(-6, 6, (200, 2))
    verdicts = ox.Knowledge(log).certify(asked)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    offsets = normals @ x
    fits = ((normals @ points.T - offsets[:, None] >= -1e-9) == (log.labels[:-1] > 0)).all(axis=1)
    margins = asked @ normals[fits].T - offsets[fits]
    certain = (margins.min(axis=1) > 1e-2) | (margins.max(axis=1) < -1e-2)
    assert fits.sum() > 100
    assert not (certain & (verdicts.codes == UNKNOWN)).any()
    assert (np.abs(verdicts.codes[certain]) == 1).mean() > 0.9


# --- what cannot be read ----------------------------------------------------------------------------------------------


def test_a_proof_does_not_bring_its_own_tolerance() -> None:
    log = logged(ox.Mechanism("l1", tolerance=1.0), ([0.0, 0.0], [10.0, 0.0], -1))
    terms = [Term("plane", F(1), 0, 1), Term("steepest", F(1, 20), 0)]
    proof = Certificate.about(log, [10.5, 0.0], 1, terms, tolerance=0.0)
    with pytest.raises(CertificateInvalid, match="whatever the log says"):
        proof.verify(log)
    proof.verify(log, tolerance=0.0)
    with pytest.raises(CertificateInvalid, match="whatever the log says"):
        proof.verify(log, tolerance=0.5)
    assert ox.Knowledge(log).certify([[10.5, 0.0]]).codes[0] == UNKNOWN


def test_a_matrix_is_symmetric_and_positive_definite_exactly() -> None:
    below, above = 1 - 1e-14, 1 + 5e-13
    with pytest.raises(ox.InvalidInput, match="positive definite"):
        ox.Mahalanobis([[1.0, above], [below, 1.0]])
    rough = ox.Mahalanobis([[1.0, 0.5], [0.5 + 1e-13, 1.0]])
    assert np.array_equal(rough.matrix, rough.matrix.T)
    for matrix in ([[1.0, above], [below, 1.0]], [[1.0, above], [above, 1.0]]):
        with pytest.raises(NotEnclosed, match="not symmetric|not positive definite"):
            enclose({"norm": "mahalanobis", "matrix": matrix}, exact([1, 1]))
    answer = Answer(
        exact([0, 0]), -1, exact([1, 1]), {"norm": "mahalanobis", "matrix": [[1.0, above], [below, 1.0]]}, F(0)
    )
    with pytest.raises(CertificateInvalid, match="not symmetric"):
        check_certificate({0: answer}, [Term("steepest", F(1), 0)], None, 1)


def test_matrices_that_float64_takes_for_positive_definite_are_refused() -> None:
    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(60):
        p = int(rng.integers(8, 16))
        basis = np.linalg.qr(rng.normal(size=(p, p)))[0]
        values = rng.uniform(0.5, 1, size=p)
        values[0] = -rng.uniform(1e-15, 3e-15)
        matrix = (basis * values) @ basis.T
        matrix = (matrix + matrix.T) / 2
        try:
            norm = ox.Mahalanobis(matrix)
        except ox.InvalidInput:
            tried += 1
            continue
        rows = [list(map(F, row)) for row in norm.matrix.tolist()]
        assert _minors_are_positive(rows)
    assert tried > 10


def _minors_are_positive(rows: list[list[F]]) -> bool:
    """By elimination in fractions."""
    for k in range(len(rows)):
        if rows[k][k] <= 0:
            return False
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return True


class Doubled(ox.Norm):
    """2·l2: a norm of the user's own."""

    is_smooth = True

    def __call__(self, x: Any) -> Any:
        return 2 * np.linalg.norm(x, axis=-1)

    @property
    def dual(self) -> ox.Norm:
        return Halved()

    def face(self, a: Any) -> Any:
        return ox.norm("l2").face(a / 1.0).__class__.of_point(a / np.linalg.norm(a) / 2)

    def gradient(self, w: Any) -> Any:
        return 2 * w / np.linalg.norm(w)


class Halved(ox.Norm):
    def __call__(self, x: Any) -> Any:
        return np.linalg.norm(x, axis=-1) / 2

    @property
    def dual(self) -> ox.Norm:
        return Doubled()

    def face(self, a: Any) -> Any:
        return ox.norm("l2").face(a)


def test_a_norm_of_ones_own_is_refused_by_name_where_verdicts_are_made() -> None:
    """extract rebuilds the model from one answer; Knowledge would have called every point open."""
    plane = ox.Hyperplane([1.0, -2.0, 0.5], 0.25)
    service = ox.ModelOracle(plane, ox.Mechanism(Doubled()))
    found = ox.extract(service, rng=0).hyperplane
    ratio = np.append(found.normal, found.offset) / np.append(plane.normal, plane.offset)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    log = ox.QueryLog(mechanism=service.mechanism)
    log.add_explanation([3.0, 0.0, 0.0], service.explain([3.0, 0.0, 0.0]), label=1)
    with pytest.raises(ox.UnsupportedNorm, match="Doubled is a norm of your own"):
        ox.Knowledge(log)
    cases = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ox.UnsupportedNorm, match="Doubled"):
        ox.audit(plane, cases, [ox.Mechanism(Doubled())])


@pytest.mark.parametrize(
    "distance", ["l1", "l2", "linf", {"norm": "weighted", "base": "linf", "weights": [1.0, 2.0, 0.5]}, None]
)
@pytest.mark.parametrize("tolerance", [0.0, 0.25, 1.0])
def test_which_answers_lie_on_the_plane_is_told_alike_of_a_row_and_of_many(distance: Any, tolerance: float) -> None:
    """The checker in fractions, for proofs; `on_plane` in arrays, for logs of millions."""
    rng = np.random.default_rng(3)
    terms = ox.Mechanism(distance, tolerance=tolerance, domain=ox.Domain(3, integers=[1]))
    points, images = rng.integers(-2, 3, (2, 200, 3)).astype(float)
    images[:, [0, 2]] = np.where(rng.random((200, 2)) < 0.5, points[:, [0, 2]], images[:, [0, 2]] / 4)
    log = ox.QueryLog(mechanism=terms)
    log.add_explanation(points, images, label=np.ones(200))
    answers = answers_of(log)
    said = [answers[i].is_on_plane for i in range(200)]
    assert said == on_plane(terms, points, images).tolist()
    assert 10 < sum(said) < 190


# --- constants --------------------------------------------------------------------------------------------------------


def test_a_constant_is_a_model_if_every_row_has_a_domain() -> None:
    flags = ox.Domain(1, 0.0, 1.0, integers=[0])
    confined = ox.QueryLog(mechanism=ox.Mechanism("l1", domain=flags))
    confined.add_label([[0.0], [1.0]], [1, 1])
    check_witness(answers_of(confined), exact([0]), F(0))
    anywhere = ox.QueryLog(mechanism=ox.Mechanism("l1"))
    anywhere.add_label([[0.0], [1.0]], [1, 1])
    with pytest.raises(CertificateInvalid, match="zero normal"):
        check_witness(answers_of(anywhere), exact([0]), F(0))


def test_full_rank_is_no_contradiction_where_a_constant_is_a_model() -> None:
    """4 and 0 are Yes, 2 and 1 across from them: only (a, b) = 0 keeps all of it."""
    rows = {
        0: Answer(exact([4]), 1, exact([2]), None, F(0), None),
        1: Answer(exact([0]), 1, exact([1]), None, F(0), None),
    }
    terms = [Term("side", F(1), 0), Term("flips", F(2), 0), Term("side", F(1), 1)]
    for free, holds in ((None, True), ((), False)):
        log = {k: Answer(r.point, r.label, r.explanation, None, F(0), None, free=free) for k, r in rows.items()}
        if holds:
            check_certificate(log, terms, None, 1)
        else:
            with pytest.raises(CertificateInvalid, match="nothing in it is strict"):
                check_certificate(log, terms, None, 1)


def test_no_length_is_a_gain_where_a_constant_is_a_model() -> None:
    """0 → 1 and 1 → 0, both Yes, with a ball, from a box: (0, 0) is consistent, and s = 0 there."""
    box = ox.Domain(1, low=-9, high=9)
    log = logged(
        ox.Mechanism("l2", "l1", 1.0, tolerance=0.0, slack=None, domain=box), ([0.0], [1.0], 1), ([1.0], [0.0], 1)
    )
    bounds = [
        Bound(0, sign, F(0), (Term("side", F(1), row), Term("flips", F(1), row))) for row, sign in ((1, 1), (0, -1))
    ]
    leaf = Branch((Term("chord", F(1), 0, vector=(F(0),)),), tuple(bounds))
    with pytest.raises(CertificateInvalid, match="nothing in it is strict"):
        Certificate.about(log, None, None, (), branches=Branched(0, leaf)).verify(log)


# --- answers from a domain --------------------------------------------------------------------------------------------

WHOLE = ox.Domain(2, integers=[0])


@pytest.mark.parametrize(
    ("terms", "rows", "model"),
    [
        # Only a point outside the box would be across.
        (ox.Mechanism("l2", tolerance=0.5, domain=ox.Domain(1, 0.0, 1.0)), [([0.0], [1.0], -1)], ((1,), F(6, 5))),
        # x lies on the plane, and what lies on the plane within the tolerance is no nearer across than x.
        (ox.Mechanism("l2", tolerance=0.5, domain=WHOLE), [([0.0, 0.0], [1.0, 1.0], None)], ((F(6, 5), -1), 0)),
        (ox.Mechanism("l2", tolerance=0.5, domain=WHOLE), [([0.0, 0.0], [1.0, 1.0], None)], ((F(4, 5), -1), 0)),
        (
            ox.Mechanism("l2", tolerance=0.5, slack=1.0, domain=WHOLE),
            [([0.0, 0.0], [1.0, 0.0], None)],
            ((F(1, 2), -1), 0),
        ),
        # One secret radius, and two answers to the same question at different distances from the plane.
        (
            ox.Mechanism("linf", "l2", None, tolerance=0.0, domain=ox.Domain(1, -100.0, 100.0)),
            [([-1.0], [2.0], -1), ([-1.0], [3.0], -1)],
            ((1,), 0),
        ),
        # A continuous feature moved farther than the whole number, and the other one the wrong way.
        (
            ox.Mechanism("linf", tolerance=0.6, domain=ox.Domain(3, integers=[0])),
            [([0.0, 0.0, 0.0], [1.0, 1.5, 1.5], -1)],
            ((1, 3, -1), F(39, 10)),
        ),
        # No point of the domain near it.
        (ox.Mechanism("l1", domain=WHOLE), [([0.0, 0.0], [0.5, 0.0], -1)], ((1, 0), F(1, 2))),
    ],
)
def test_models_that_would_not_have_chosen_so_from_a_domain(terms: ox.Mechanism, rows: Any, model: Any) -> None:
    log = logged(terms, *rows)
    assert Definition(log).judge(tuple(map(F, model[0])), F(model[1])) is not True
    with pytest.raises(CertificateInvalid, match="would not have given"):
        check_witness(answers_of(log), tuple(map(F, model[0])), F(model[1]))


def test_the_end_of_a_box_that_was_proposed_is_no_open_point() -> None:
    """0 is No and 1, the end of the box, was proposed: rounding cannot have moved it there from beyond."""
    log = logged(ox.Mechanism("l2", domain=ox.Domain(1, 0.0, 1.0)), ([0.0], [1.0], -1))
    assert ox.Knowledge(log).certify([[1.0]]).codes[0] in (YES, BOUNDARY, UNDECIDED)


# --- the rest of an attack --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        (("l1", None, 0.0, [5.0], [0.0]), ("l1", None, None, [1.0], [2.0]), (UNDECIDED,)),
        (("l1", 0.0, 0.0, [-0.5], [0.5]), ("l1", 0.0, None, [0.0], [1.0]), (UNDECIDED, BOUNDARY, YES)),
        (("l1", 0.25, 0.0, [5.0], [0.0]), ("l1", 0.0, None, [0.25], [1.0]), (UNDECIDED, NO)),
    ],
)
def test_rows_without_a_side_leave_nothing_open_by_themselves(first: Any, second: Any, allowed: Any) -> None:
    log = ox.QueryLog()
    for distance, tolerance, slack, x, image in (first, second):
        log.add_explanation(x, image, mechanism=ox.Mechanism(distance, tolerance=tolerance, slack=slack))
    try:
        assert ox.Knowledge(log).certify([first[4] if allowed[-1] == YES else first[3]]).codes[0] in allowed
    except ox.InconsistentLog as error:
        error.proof.verify(log)


def test_a_step_away_from_the_plane_under_the_largest_group() -> None:
    """m = 0 needs ‖w‖ ≤ 1, and ‖w‖² = 1 + 2⁻¹⁰⁰."""
    tiny = 2.0**-50
    log = logged(ox.Mechanism({"norm": "group-max", "groups": [[0, 1]]}, tolerance=1.0), ([0.0, 0.0], [-1.0, -tiny], 1))
    model = ((F(-1), -F(tiny)), F(0))
    assert Definition(log).judge(*model) is False
    with pytest.raises(CertificateInvalid, match="would not have given"):
        check_witness(answers_of(log), *model)


def test_a_robust_answer_within_its_tolerance_of_nothing_does_not_crash() -> None:
    log = logged(ox.Mechanism("l1", "linf", 0.5, tolerance=1.0), ([-1.0], [1.0], -1))
    assert ox.Knowledge(log).certify([[0.5]]).codes[0] in (UNKNOWN, UNDECIDED)


# --- all readers side by side -----------------------------------------------------------------------------------------

CASES = 12

KINDS = {
    "exact l1": ox.Mechanism("l1", tolerance=0.0),
    "exact linf": ox.Mechanism("linf", tolerance=0.0),
    "exact l2": ox.Mechanism("l2", tolerance=0.0),
    "tolerant l1": ox.Mechanism("l1", tolerance=0.5),
    "tolerant linf": ox.Mechanism("linf", tolerance=0.5),
    "tolerant l2": ox.Mechanism("l2", tolerance=0.5),
    "suboptimal": ox.Mechanism("l1", tolerance=0.0, slack=0.5),
    "suboptimal and tolerant": ox.Mechanism("linf", tolerance=0.25, slack=0.5),
    "valid": ox.Mechanism("l1", slack=None),
    "valid and tolerant": ox.Mechanism("l1", tolerance=0.5, slack=None),
    "unknown": ox.Mechanism(None, tolerance=0.0),
    "unknown and suboptimal": ox.Mechanism(None, tolerance=0.0, slack=0.5),
    "robust": ox.Mechanism("l1", "linf", 0.5, tolerance=0.0),
    "robust N1 = N2": ox.Mechanism("linf", "linf", 0.5, tolerance=0.0),
    "secret": ox.Mechanism("l1", "l1", None, tolerance=0.0),
    "polyhedral": ox.Mechanism(SQUARE, tolerance=0.25),
    "domain": ox.Mechanism("l1", tolerance=0.0, domain=ox.Domain(2, -4.0, 4.0, integers=[0])),
    "flags": ox.Mechanism("linf", domain=ox.Domain(2, 0.0, 1.0, integers=[0, 1])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_definition_checker_witnesses_and_engine_agree_pairwise(kind: str) -> None:
    """Small whole numbers, ties and zeros: every row near enough to have consistent models, or to have none."""
    rng = np.random.default_rng(len(kind) + 7)
    terms, agreed, opposed = KINDS[kind], 0, 0
    for _ in range(CASES):
        low, high = (0, 2) if kind == "flags" else (-2, 3)
        log = ox.QueryLog(mechanism=terms)
        for _ in range(int(rng.integers(1, 3))):
            x, image = rng.integers(low, high, (2, 2)).astype(float)
            log.add_explanation(x, image, label=[None, 1, -1][int(rng.integers(3))])
        if rng.random() < 0.5:
            log.add_label(rng.integers(low, high, 2).astype(float), int(rng.choice([1, -1])))
        known, answers = Definition(log), answers_of(log)
        grid = rng.integers(low, high, (3, 2)).astype(float).tolist()
        queries = [tuple(map(F, q)) for q in grid]
        found = list(models(known, queries, directions(known.rows, queries)))
        facts = _facts(answers)
        for a, b in found:  # the checker's facts hold for what the definition allows
            assert all(_holds(answers, row, name, sign, a, b) for row, name, sign in facts)
        for _ in range(
            12
        ):  # the witness check says no more than the definition, and as much but for irrational numbers
            a, b = tuple(F(int(v)) for v in rng.integers(-2, 3, 2)), F(int(rng.integers(-6, 7)), 2)
            if not any(a):
                continue
            try:
                check_witness(answers, a, b, lengths=Finder())
                told = True
            except CertificateInvalid:
                told = False
            by_definition = known.judge(a, b)
            assert not told or by_definition is not False, (list(log), a, b)
            agreed += told == bool(by_definition)
            opposed += told != bool(by_definition)
        try:
            knowledge = ox.Knowledge(log)
        except ox.InconsistentLog as error:
            assert found == [], (list(log), found[:1])
            error.proof.verify(log)
            continue
        if not knowledge.oriented:
            continue
        verdicts = knowledge.certify(grid)
        for i, q in enumerate(queries):
            said = {dot(a, q) >= b for a, b in found}
            code = verdicts.codes[i]
            assert not (code == YES and False in said), (list(log), q)
            assert not (code == NO and True in said), (list(log), q)
            if code in (YES, NO, BOUNDARY, UNKNOWN):
                try:
                    verdicts.proof(i).verify(log)
                except ox.SolverFailed:
                    raise AssertionError((list(log), q, code)) from None
            if code == UNKNOWN:
                for model in (verdicts.proof(i).yes, verdicts.proof(i).no):
                    assert known.judge(model.normal, model.offset) is not False
    assert agreed > CASES
    assert opposed <= 0.05 * agreed


def _facts(answers: Any) -> list[tuple[int, str, int]]:
    names = ("side", "plane", "steepest", "flips", "reach")
    return [(row, name, sign) for row in answers for name in names for sign in ((1, -1) if name == "plane" else (1,))]


def _holds(answers: Any, row: int, name: str, sign: int, a: Any, b: F) -> bool:
    """Is the fact, if there is one, true of the model? Lengths are floats here; a secret reach is the row's own."""
    y = 1 if dot(a, answers[row].point) >= b else -1
    try:
        fact = fact_of(answers, Term(name, F(1), row, sign=sign), Finder(), labels={row: y})
    except CertificateInvalid:
        return True
    left = float(sum((u * v for u, v in zip(fact.left, (*a, b), strict=True)), F(0)))
    right = 0.0
    for length, factor in fact.rights:
        if isinstance(length, dict) and length["norm"] == "secret":
            return True
        right += float(factor) * float(ox.norm(length).dual(np.array([float(v) for v in a])))
    return left >= right - 1e-9 * (1 + abs(left)) and not (fact.is_strict and left == 0 and not fact.rights)


def test_evidence_that_does_not_hold_is_no_evidence() -> None:
    """A polyhedral witness is checked with the decomposition that holds, whatever else stands beside it."""
    log = logged(ox.Mechanism(SQUARE, tolerance=0.25), ([0.0, 0.0], [3.0, 3.0], -1))
    half = F(1, 2)
    good = Length((F(3), F(3)), ((0, F(3)),), (half, half))
    bad = Length((F(3), F(3)), ((1, F(3)),), (half, half))
    check_witness(answers_of(log), (half, half), F(3), lengths=[good])
    check_witness(answers_of(log), (half, half), F(3), lengths=[bad, good])
    with pytest.raises(CertificateInvalid, match="cannot be bounded"):
        check_witness(answers_of(log), (half, half), F(3), lengths=[bad])
