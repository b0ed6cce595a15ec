"""Robust rows that are wrong, odd or extreme: refused with a reason, or used as far as they can be; never a wrong label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import overexplain as ox

LEVELS = ("paper", "perspective", "shared", "exact")
levels = pytest.mark.parametrize("level", LEVELS)
PAIRS = [("l1", "l2"), ("l1", "linf"), ("linf", "l1"), ("linf", "l2"), ("l1", "l1"), ("l2", "linf")]
pairs = pytest.mark.parametrize(("distance", "robustness"), PAIRS)
PLANE = ox.Hyperplane([1.0, -2.0, 0.75], 0.5)


def robust(distance: Any, robustness: Any, radius: float | None = 0.5, **terms: Any) -> ox.Mechanism:
    return ox.Mechanism(distance, robustness=robustness, radius=radius, **terms)


def served(
    terms: ox.Mechanism,
    told: ox.Mechanism | None = None,
    plane: ox.Hyperplane = PLANE,
    units: Any = 1.0,
    labels: int = 4,
    answers: int = 2,
    labelled: bool = True,
    seed: int = 0,
) -> ox.QueryLog:
    """A log of a service: some labels, then some robust answers (with or without labels) under the terms that are told."""
    rng = np.random.default_rng(seed)
    service = ox.ModelOracle(plane, terms, published=told)
    asked = rng.normal(size=(labels + answers, plane.dimension)).round(2) * units
    log = ox.QueryLog(mechanism=service.mechanism)
    if labels:
        log.add_label(asked[:labels], service.classify(asked[:labels]))
    rest = asked[labels:]
    log.add_explanation(rest, service.explain(rest), label=service.classify(rest) if labelled else None)
    return log


def around(plane: ox.Hyperplane = PLANE, units: Any = 1.0, count: int = 30) -> np.ndarray:
    """Points, the most of them drawn towards the plane, but not onto it."""
    rng = np.random.default_rng(9)
    points = 2 * rng.normal(size=(count, plane.dimension))
    normal = plane.normal * units  # in units of 1
    gaps = (points @ normal - plane.offset) / (normal @ normal)
    share = np.where(np.arange(count) < count // 3, 0.0, 0.8)
    return (points - (share * gaps)[:, None] * normal) * units


def wrong(verdicts: ox.Verdicts, plane: ox.Hyperplane = PLANE) -> list[int]:
    """The points whose certain label is not the true one; if Yes and No may be exchanged, in the better of the two ways."""
    true = plane.labels(verdicts.points)
    certain = np.isin(verdicts.codes, (1, -1))
    ways = [
        np.flatnonzero(certain & (verdicts.codes != sign * true)) for sign in ((1,) if verdicts.oriented else (1, -1))
    ]
    return min(ways, key=len).tolist()


def certain(codes: np.ndarray) -> np.ndarray:
    return np.isin(codes, (1, -1))


def keeps(more: np.ndarray, less: np.ndarray) -> bool:
    """True if what is certain in `less` is the same in `more`."""
    return bool((more[certain(less)] == less[certain(less)]).all())


# --- refused when it is written down ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "error", "says"),
    [
        ({"robustness": "l2", "radius": -0.5}, ox.InvalidInput, "radius must not be negative, got -0.5"),
        ({"robustness": "l2", "radius": float("nan")}, ox.NotFinite, "radius must be a finite number"),
        ({"robustness": "l2", "radius": float("inf")}, ox.NotFinite, "radius must be a finite number"),
        ({"robustness": "l2", "radius": "wide"}, ox.InvalidInput, "radius must be a number or None, got 'wide'"),
        ({"radius": 0.5}, ox.InvalidInput, "radius 0.5 needs a robustness norm"),
        ({"robustness": "ball", "radius": 0.5}, ox.UnsupportedNorm, "unknown norm 'ball'"),
    ],
)
def test_terms_that_mean_nothing_are_refused(terms: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ox.Mechanism("l1", **terms)


@pytest.mark.parametrize("level", ["foo", "", None, 3, ["shared"], "Shared"])
def test_a_level_that_there_is_not_is_refused(level: Any) -> None:
    with pytest.raises(ox.InvalidInput, match="robust is one of paper, perspective, shared, exact, got"):
        ox.Knowledge(ox.QueryLog(), robust=level)


def test_a_ball_for_another_number_of_features_is_refused() -> None:
    three = robust("l1", ox.Weighted(ox.l2, [1.0, 2.0, 3.0]))
    with pytest.raises(ox.DimensionMismatch, match="robustness norm is made for 3 features"):
        ox.QueryLog(mechanism=three).add_explanation([0.0, 0.0], [0.0, 3.0], label=-1)
    with pytest.raises(ox.DimensionMismatch, match="robustness norm is made for 3 features"):
        ox.QueryLog().add_explanation([0.0, 0.0], [0.0, 3.0], label=-1, mechanism=three)
    log = ox.QueryLog()
    log.add_label([0.0, 0.0], -1)
    with pytest.raises(ox.DimensionMismatch, match="robustness norm is made for 3 features"):
        ox.Knowledge(log).add([0.0, 0.0], -1, [0.0, 3.0], three)


@levels
def test_a_ball_of_radius_0_is_a_plain_counterfactual(level: Any) -> None:
    plain = served(ox.Mechanism("l1"))
    ball = served(robust("l1", "l2", 0.0))
    np.testing.assert_array_equal(plain.explanations, ball.explanations)
    points = around()
    found = ox.Knowledge(ball, robust=level).certify(points).codes
    np.testing.assert_array_equal(found, ox.Knowledge(plain).certify(points).codes)
    assert certain(found).sum() > 5


# --- contradictions: rows are named, no label is given ----------------------------------------------------------------


def contradiction(log: ox.QueryLog, level: Any, rows: Sequence[int], **options: Any) -> None:
    with pytest.raises(ox.InconsistentLog) as caught:
        ox.Knowledge(log, robust=level, **options)
    assert caught.value.rows == tuple(rows)
    assert caught.value.proof is not None
    caught.value.proof.verify(log)


def answered_with_itself(label: int, robustness: str, tolerance: float | None) -> ox.QueryLog:
    log = ox.QueryLog(mechanism=robust("l1", robustness, tolerance=tolerance))
    log.add_label([3.0, 3.0], -label)
    log.add_explanation([1.0, 1.0], [1.0, 1.0], label=label)
    return log


@levels
@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize(("robustness", "tolerance"), [("l1", None), ("l1", 0.0), ("l2", 0.0), ("linf", 0.0)])
def test_an_answer_that_is_the_question_itself(
    level: Any, label: int, robustness: str, tolerance: float | None
) -> None:
    contradiction(answered_with_itself(label, robustness, tolerance), level, [1])


@levels
@pytest.mark.parametrize("robustness", ["l2", "linf"])
def test_a_rounded_answer_that_is_the_question_itself_adds_no_label(level: Any, robustness: str) -> None:
    """The rounding is measured in l1, the ball in another norm: where no proof compares the two, only labels count."""
    log = answered_with_itself(-1, robustness, None)
    try:
        knowledge = ox.Knowledge(log, robust=level)
    except ox.InconsistentLog as error:
        assert error.rows == (1,)
    else:
        assert not knowledge.is_consistent
        points = np.array([[0.0, 0.0], [2.0, 2.0], [9.0, -9.0], [4.0, 4.0], [1.0, 1.0]])
        labels = ox.QueryLog()
        labels.add_label(log.points, log.labels)
        assert keeps(ox.Knowledge(labels).certify(points).codes, knowledge.certify(points).codes)


@levels
@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize(("distance", "robustness"), [("l1", "l1"), ("l1", "l2"), ("linf", "l2"), ("l2", "linf")])
def test_a_step_too_short_to_carry_its_ball_across(level: Any, label: int, distance: str, robustness: str) -> None:
    log = ox.QueryLog(mechanism=robust(distance, robustness, 0.5))
    log.add_explanation([1.0, 1.0], [1.0, 1.25], label=label)  # the question lies in the ball
    contradiction(log, level, [0])


@levels
@pytest.mark.parametrize("robustness", ["l1", "l2", "linf"])
def test_an_answer_on_the_wrong_side(level: Any, robustness: str) -> None:
    log = ox.QueryLog(mechanism=robust("l1", robustness, 0.5))
    log.add_label([[7.0, -7.0], [0.0, 2.75]], [-1, -1])  # the second lies in the ball, which must be Yes
    log.add_explanation([0.0, 0.0], [0.0, 3.0], label=-1)
    contradiction(log, level, [1, 2])


@levels
@pytest.mark.parametrize(
    "terms", [robust("l1", "l2"), robust("linf", "l1"), robust("l2", "linf"), robust("l1", "l2", None)]
)
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ([0.0, 10.0], [0.0, 7.0]),  # towards each other: no slope goes both ways
        (
            [0.0, -1.0],
            [0.0, 4.0],
        ),  # the same way, from farther back to farther on: both end equally far behind the plane
    ],
)
def test_two_answers_that_contradict_each_other(level: Any, terms: ox.Mechanism, question: Any, answer: Any) -> None:
    log = ox.QueryLog(mechanism=terms)
    log.add_label([9.0, 0.0], -1)
    log.add_explanation([0.0, 0.0], [0.0, 3.0], label=-1)
    log.add_explanation(question, answer, label=-1)
    contradiction(log, level, [1, 2])


def no_room_for_the_length(robustness: str, length: float, slope: float, distance: str = "l1") -> ox.QueryLog:
    """Two answers say that s = length (at a₁ = 1), two labels that |a₀| < slope: together they may leave no a with ‖a‖* = s."""
    log = ox.QueryLog(mechanism=robust(distance, robustness, 0.5))
    offset = 4.0 - 0.5 * length
    log.add_explanation([0.0, 0.0], [0.0, 4.0], label=-1)
    log.add_explanation([0.0, 10.0], [0.0, offset - 0.5 * length], label=1)
    log.add_label([[10.0, offset - 10 * slope], [-10.0, offset - 10 * slope]], [-1, -1])
    return log


SHAPES = [("l2", 1.25, 0.5), ("linf", 1.75, 0.5), ("lp:3", 1.375, 0.25)]


@levels
@pytest.mark.parametrize(("robustness", "length", "slope"), SHAPES)
def test_answers_that_contradict_each_other_only_because_s_is_a_length(
    level: Any, robustness: str, length: float, slope: float
) -> None:
    """The convex set (s ≥ ‖a‖*) has models; of those that could have given these answers (s = ‖a‖*) there is none."""
    contradiction(no_room_for_the_length(robustness, length, slope), level, [0, 1, 2, 3])


@levels
@pytest.mark.parametrize(("robustness", "length"), [("l2", 1.25), ("linf", 1.75)])
def test_the_same_answers_are_consistent_with_a_little_more_room(level: Any, robustness: str, length: float) -> None:
    knowledge = ox.Knowledge(no_room_for_the_length(robustness, length, 0.9), robust=level)
    assert knowledge.is_consistent


# --- sizes and numbers of features ------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("level", ["shared", "exact"])
def test_units_of_any_size_give_the_same_verdicts(distance: str, robustness: str, level: Any) -> None:
    points = around()
    found = ox.Knowledge(served(robust(distance, robustness, 0.25)), robust=level).certify(points)
    assert wrong(found) == []
    for size in (2.0**20, 2.0**-20):
        plane = ox.Hyperplane(PLANE.normal / size, PLANE.offset)
        log = served(robust(distance, robustness, 0.25 * size), plane=plane, units=size)
        scaled = ox.Knowledge(log, robust=level).certify(points * size)
        np.testing.assert_array_equal(scaled.codes, found.codes)
    assert certain(found.codes).sum() > 5


@pairs
@pytest.mark.parametrize("level", ["shared", "exact"])
@pytest.mark.parametrize("weighted", [True, False])
def test_features_in_millions_beside_millionths(distance: str, robustness: str, level: Any, weighted: bool) -> None:
    units = np.array([1e6, 1e-6, 1.0])
    plane = ox.Hyperplane(PLANE.normal / units, PLANE.offset)
    norms = [ox.Weighted(ox.norm(name), 1 / units) if weighted else ox.norm(name) for name in (distance, robustness)]
    log = served(robust(*norms, 0.25), plane=plane, units=units)
    found = ox.Knowledge(log, robust=level).certify(around(plane, units, 15))
    assert wrong(found, plane) == []
    assert certain(found.codes).sum() > 2


@levels
@pairs
@pytest.mark.parametrize("secret", [False, True])
def test_one_feature(level: Any, distance: str, robustness: str, secret: bool) -> None:
    plane = ox.Hyperplane([2.0], 1.0)  # Yes from 1/2 on
    service = ox.ModelOracle(plane, robust(distance, robustness, 0.25))
    log = ox.QueryLog(mechanism=robust(distance, robustness, None if secret else 0.25))
    for x in ([-1.0], [2.0]):
        log.add_explanation(x, service.explain(np.array(x)), label=service.classify(np.array(x)))
    points = np.array([[-9.0], [-1.0], [0.0], [0.4], [0.6], [1.0], [2.0], [9.0]])
    found = ox.Knowledge(log, robust=level).certify(points)
    assert wrong(found, plane) == []
    if level != "paper":
        np.testing.assert_array_equal(found.codes, plane.labels(points))


# --- norms that only their owner knows --------------------------------------------------------------------------------


class Own(ox.Norm):
    """A norm of the user's own: no written form."""

    def __init__(self, name: str) -> None:
        self._norm = ox.norm(name)

    def __call__(self, x: Any) -> Any:
        return self._norm(x)

    @property
    def dual(self) -> ox.Norm:
        return self._norm.dual

    def face(self, a: Any) -> Any:
        return self._norm.face(a)

    def normal_cone(self, w: Any, *rest: Any) -> Any:
        return self._norm.normal_cone(w, *rest)


@levels
@pytest.mark.parametrize(
    "terms", [robust(Own("l1"), "l2", 0.25), robust("l1", Own("l2"), 0.25), robust("l1", Own("l2"), None)]
)
def test_a_norm_of_the_users_own_is_refused_by_name(level: Any, terms: ox.Mechanism) -> None:
    log = ox.QueryLog(mechanism=terms)
    log.add_explanation([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], label=-1)
    with pytest.raises(ox.UnsupportedNorm, match="Own is a norm of your own"):
        ox.Knowledge(log, robust=level)


# --- rows that say less, or are said later ----------------------------------------------------------------------------


@levels
@pytest.mark.parametrize(("distance", "robustness"), [("l1", "l2"), ("linf", "l1"), ("l1", "l1")])
def test_secret_and_known_radii_in_one_log(level: Any, distance: str, robustness: str) -> None:
    known, secret = robust(distance, robustness), robust(distance, robustness, None)
    service = ox.ModelOracle(PLANE, known)
    rng = np.random.default_rng(4)
    asked = rng.normal(size=(4, 3)).round(2)
    logs = {name: ox.QueryLog() for name in ("mixed", "secret", "known")}
    for i, x in enumerate(asked):
        answer, label = service.explain(x), service.classify(x)
        logs["mixed"].add_explanation(x, answer, label=label, mechanism=(known, secret)[i % 2])
        logs["secret"].add_explanation(x, answer, label=label, mechanism=secret)
        logs["known"].add_explanation(x, answer, label=label, mechanism=known)
    points = around()
    found = {name: ox.Knowledge(log, robust=level).certify(points) for name, log in logs.items()}
    assert [wrong(verdicts) for verdicts in found.values()] == [[], [], []]
    codes = {name: verdicts.codes for name, verdicts in found.items()}
    if level in ("shared", "exact"):  # which use as much of a secret radius as of a known one
        assert keeps(codes["known"], codes["mixed"])
    assert certain(codes["mixed"]).sum() > 5


@levels
@pytest.mark.parametrize("robustness", ["l1", "linf"])
def test_exact_answers_put_the_plane_itself_on_the_boundary(level: Any, robustness: str) -> None:
    plane = ox.Hyperplane([1.0, 2.0], 4.0)
    log = ox.QueryLog(mechanism=robust("l1", robustness, tolerance=0.0))
    service = ox.ModelOracle(plane, log.mechanism)
    asked = np.array([[0.0, 0.0], [-2.0, 1.0], [4.0, 4.0]])
    log.add_explanation(asked, service.explain(asked), label=service.classify(asked))
    points = np.array([[0.0, 2.0], [2.0, 1.0], [4.0, 0.0], [0.0, 2.125], [2.0, 0.875], [9.0, 9.0], [-9.0, 0.0]])
    found = ox.Knowledge(log, robust=level).certify(points)
    assert wrong(found, plane) == []
    if level in ("shared", "exact"):
        assert found.codes.tolist() == [2, 2, 2, 1, -1, 1, -1]
        for i in range(len(points)):
            found.proof(i).verify(log)


@pytest.mark.parametrize(("distance", "robustness"), [("linf", "l1"), ("linf", "linf")])
def test_rounded_answers_that_are_said_to_be_exact_are_found_out(distance: str, robustness: str) -> None:
    log = ox.QueryLog(mechanism=robust(distance, robustness, tolerance=0.0))
    service = ox.ModelOracle(ox.Hyperplane([1.0, 2.0], 4.0), log.mechanism)
    asked = np.array([[0.0, 0.0], [-2.0, 1.0], [4.0, 4.0]])
    log.add_explanation(asked, service.explain(asked), label=service.classify(asked))  # thirds
    with pytest.raises(ox.InconsistentLog, match="If the answers are rounded, declare it"):
        ox.Knowledge(log)
    assert ox.Knowledge(log, tolerance=1e-9).is_consistent


@levels
@pytest.mark.parametrize(("distance", "robustness"), [("l1", "l1"), ("linf", "l1"), ("l2", "linf")])
def test_rows_without_a_label(level: Any, distance: str, robustness: str) -> None:
    """Some labels, and robust answers whose side nobody states."""
    log = served(robust(distance, robustness), labelled=False)
    points = around(count=9)
    found = ox.Knowledge(log, robust=level).certify(points)
    labels = ox.QueryLog()
    labels.add_label(log.points[:4], log.labels[:4])
    assert wrong(found) == []
    assert found.oriented
    assert keeps(found.codes, ox.Knowledge(labels).certify(points).codes)


def test_a_side_that_is_implied_is_used() -> None:
    service = ox.ModelOracle(PLANE, robust("l2", "linf"))
    asked = np.array([[1.0, 1.0, 1.0], [-2.0, 3.0, 0.0]])
    logs = []
    for second in (service.classify(asked[1]), None):
        log = ox.QueryLog(mechanism=service.mechanism)
        log.add_explanation(asked[0], service.explain(asked[0]), label=service.classify(asked[0]))
        log.add_explanation(asked[1], service.explain(asked[1]), label=second)
        logs.append(log)
    codes = [ox.Knowledge(log).certify(around()).codes for log in logs]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert certain(codes[1]).all()


@levels
@pytest.mark.parametrize(("distance", "robustness"), [("l1", "l1"), ("linf", "linf"), ("l2", "linf")])
def test_a_log_without_any_label_is_right_up_to_swapping(level: Any, distance: str, robustness: str) -> None:
    service = ox.ModelOracle(PLANE, robust(distance, robustness))
    log = ox.QueryLog(mechanism=service.mechanism)
    for x in np.random.default_rng(5).normal(size=(3, 3)) * 20:  # so far that no question can lie on the plane
        log.add_explanation(x, service.explain(x))
    knowledge = ox.Knowledge(log, robust=level)
    assert not knowledge.oriented
    found = knowledge.certify(around(count=9))
    assert not found.oriented
    assert wrong(found) == []
    if distance == "l2":
        assert certain(found.codes).sum() > 3
        i = int(np.flatnonzero(certain(found.codes))[0])
        proof = found.proof(i)
        assert proof.assumed
        proof.verify(log)
        near = PLANE.normal * (PLANE.offset / (PLANE.normal @ PLANE.normal))
        log.add_explanation(near, service.explain(near))
        with pytest.raises(ox.CertificateInvalid, match="cannot be swapped in row 3"):
            proof.verify(log)
        assert not certain(ox.Knowledge(log, robust=level).certify(around(count=9)).codes).any()


@levels
@pytest.mark.parametrize("terms", [robust("l1", "l2"), robust("linf", "l1"), robust("l1", "l2", None)])
def test_adding_rows_is_knowing_the_longer_log(level: Any, terms: ox.Mechanism) -> None:
    whole = served(robust(terms.distance, terms.robustness), terms, labels=3, answers=3)
    points = around(count=12)
    log = ox.QueryLog()
    log.add_label(whole.points[:3], whole.labels[:3])
    knowledge = ox.Knowledge(log, robust=level)
    codes = [knowledge.certify(points).codes]
    for row in range(3, 6):
        knowledge.add(whole.points[row], int(whole.labels[row]), whole.explanations[row], terms)
        codes.append(knowledge.certify(points).codes)
        assert keeps(codes[-1], codes[-2])  # what was certain stays so
    assert len(log) == 3
    np.testing.assert_array_equal(codes[-1], ox.Knowledge(whole, robust=level).certify(points).codes)
    assert certain(codes[-1]).sum() > certain(codes[0]).sum()


@levels
def test_adding_a_row_that_contradicts_changes_nothing(level: Any) -> None:
    log = served(robust("l1", "l2"))
    knowledge = ox.Knowledge(log, robust=level)
    points = around(count=12)
    before = knowledge.certify(points).codes
    row = len(log) - 1
    with pytest.raises(ox.InconsistentLog):  # the same answer, as if it went the other way
        knowledge.add(log.points[row], -int(log.labels[row]), log.explanations[row], log.mechanism)
    assert len(knowledge.log) == len(log)
    np.testing.assert_array_equal(knowledge.certify(points).codes, before)


@levels
def test_a_side_that_only_the_ball_proves(level: Any) -> None:
    """The answer's ball is Yes, so its question is a No; in one dimension the length of any ball is that of the slope."""
    log = ox.QueryLog(mechanism=robust("l1", "l2", 0.337))
    log.add_explanation([-1.12], [0.474])
    log.add_label([[-0.14]], [-1])
    knowledge = ox.Knowledge(log, robust=level)
    assert knowledge.certify([[-1.0], [1.0], [-0.5]]).codes.tolist() == [-1, 1, -1]
    knowledge.prove([1.0]).verify(log)


@levels
@pytest.mark.parametrize("distances", [("l1", "l1"), ("l1", "linf")])
def test_merely_valid_answers_with_a_ball_of_another_norm(level: Any, distances: tuple[str, str]) -> None:
    """Nothing bounds the length of the distance then: that of the ball alone can pay for a proof."""
    log = ox.QueryLog()
    first, second = (robust(distance, "l2", 0.25, slack=None) for distance in distances)
    log.add_explanation([2.5, 2.0], [-1.2795085, 2.0], -1, first)
    log.add_explanation([-2.0, 5.0], [-4.2115125, 5.0], -1, second)
    log.add_label([[-0.5, 2.5], [-2.5, 2.0], [0.5, 2.5]], [-1, 1, -1])
    knowledge = ox.Knowledge(log, robust=level)
    assert knowledge.certify([[-3.3557562371122147, 3.5], [-2.8, 2.0], [0.0, 2.2]]).codes.tolist() == [1, 1, -1]
    knowledge.prove([-3.3557562371122147, 3.5]).verify(log)
