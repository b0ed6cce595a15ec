"""`Knowledge` with robust counterfactuals, as its users meet it."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge.certificates import Certificate

TWO_MODELS = [([0, 0], [0, 2.75], -1), ([-1, 3.5], [-1, 1], 1)]
"""ℓ1/ℓ2 with radius 1: only (3/4, 1), 3/2 and (5/12, 1), 5/3 give both answers."""


def two_models(*labels: tuple[list[float], int]) -> ox.QueryLog:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", robustness="l2", radius=1.0))
    for x, answer, label in TWO_MODELS:
        log.add_explanation(x, answer, label=label)
    for x, label in labels:
        log.add_label(x, label)
    return log


def test_a_point_between_the_only_two_models_is_open_and_one_beyond_them_certain() -> None:
    verdicts = ox.Knowledge(two_models(), robust="exact").certify([[0.0, 1.58], [4.0, 4.0], [0.0, 1.4], [-4.0, 4.0]])
    assert [v.name for v in map(ox.Verdict, verdicts.codes.tolist())] == ["UNKNOWN", "YES", "NO", "UNKNOWN"]
    for i in range(4):
        verdicts.proof(i).verify(two_models())


def test_models_that_only_a_relaxation_has_are_refuted_by_cases() -> None:
    """Between the two models lie those of the convex set; these labels leave only them, so that no model is left."""
    log = two_models(([0.2, 1.56], 1), ([-4.0, 4.0], 1))
    for level in ("shared", "exact"):
        with pytest.raises(ox.InconsistentLog, match="rows 0, 1, 2, 3 contradict each other") as caught:
            ox.Knowledge(log, robust=level)
        proof = caught.value.proof
        assert isinstance(proof, Certificate)
        assert proof.branches is not None
        Certificate.from_json(proof.to_json()).verify(log)


def test_an_undecided_point_has_its_interval() -> None:
    """Two labels about one answer: the convex set loses points that all models agree on."""
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", robustness="l2", radius=1.0))
    log.add_explanation([-2, -0.25], [-2, 2.75], label=-1)
    log.add_label([[-1.75, 1.5], [1, -1]], [1, -1])
    grid = np.array([[x, y] for x in np.linspace(-4.01, 4, 22) for y in np.linspace(-3.02, 4, 19)])
    shared = ox.Knowledge(log, robust="shared").certify(grid)
    exact = ox.Knowledge(log).certify(grid)
    lost = np.flatnonzero(shared.codes == ox.Verdict.UNDECIDED)
    assert len(lost)
    assert set(exact.codes[lost].tolist()) <= {1, -1}
    for i in lost:
        low, high = shared.interval(i)
        assert low < 0 < high
    for i in np.flatnonzero(np.abs(shared.codes) == 1)[::20]:
        low, high = shared.interval(i)
        assert low * high > 0
        assert np.sign(low) == shared.codes[i]
    with pytest.raises(ox.SolverFailed, match="undecided"):
        shared.proof(int(lost[0]))


def test_an_interval_is_for_robust_logs() -> None:
    log = ox.QueryLog()
    log.add_label([[0.0], [4.0]], [-1, 1])
    with pytest.raises(ox.InvalidInput, match="robust"):
        ox.Knowledge(log).certify([[2.0]]).interval(0)


def test_without_time_points_stay_undecided_and_nothing_is_wrong() -> None:
    rng = np.random.default_rng(0)
    plane = ox.Hyperplane(rng.normal(size=6), 0.3)
    terms = ox.Mechanism("l1", robustness="l2", radius=0.4)
    oracle = ox.ModelOracle(plane, terms)
    log = ox.QueryLog(mechanism=terms)
    for x in rng.normal(size=(3, 6)):
        log.add_explanation(x, oracle.explain(x), label=int(oracle.classify(x)))
    points = rng.normal(size=(200, 6))
    hurried = ox.Knowledge(log, robust="exact", time_limit=0.0).certify(points)
    patient = ox.Knowledge(log, robust="exact").certify(points)
    assert (hurried.codes == ox.Verdict.UNDECIDED).any()
    known = hurried.codes != ox.Verdict.UNDECIDED
    assert np.array_equal(hurried.codes[known], patient.codes[known])
    certain = np.abs(patient.codes) == 1
    assert np.array_equal(patient.codes[certain], np.where(points @ plane.normal >= plane.offset, 1, -1)[certain])


def test_verdicts_do_not_depend_on_what_else_is_asked() -> None:
    log = two_models(([2.0, 2.0], 1))
    points = np.random.default_rng(1).uniform(-4, 4, (60, 2))
    together = ox.Knowledge(log, robust="exact").certify(points).codes
    alone = [int(ox.Knowledge(log, robust="exact").certify(x[None]).codes[0]) for x in points[::6]]
    assert together[::6].tolist() == alone


def test_learning_one_by_one_is_learning_at_once() -> None:
    log = two_models(([2.0, 2.0], 1))
    empty = ox.QueryLog(mechanism=log.mechanism_of(0))
    knowledge = ox.Knowledge(empty, robust="exact")
    for x, answer, label in TWO_MODELS:
        knowledge.add(x, label, answer, log.mechanism_of(0))
    knowledge.add([2.0, 2.0], 1)
    points = np.random.default_rng(2).uniform(-4, 4, (40, 2))
    assert np.array_equal(knowledge.certify(points).codes, ox.Knowledge(log, robust="exact").certify(points).codes)


def with_a_ball(ball: ox.Norm | str, distance: str = "l2") -> ox.QueryLog:
    plane, terms = ox.Hyperplane([3.0, 4.0], 0.0), ox.Mechanism(distance, robustness=ball, radius=1.0)
    log = ox.QueryLog()
    log.add_explanation([-5.0, -5.0], ox.ModelOracle(plane, terms).explain([-5.0, -5.0]), -1, terms)
    return log


@pytest.mark.parametrize("level", ["paper", "perspective", "shared", "exact"])
@pytest.mark.parametrize(
    "ball",
    [
        ox.Mahalanobis([[1.0, 0.0], [0.0, 4.0]]),
        ox.GroupNorm([[0, 1]]),
        ox.Polyhedral([[1.0, 0.0], [-1.0, 0.0], [0.5, 1.0], [-0.5, -1.0]]),
        "l1",
    ],
    ids=["mahalanobis", "group", "polyhedral", "l1"],
)
def test_any_norm_may_be_the_balls(ball: ox.Norm | str, level: str) -> None:
    """The distance shows the direction of a, so that points far from the answer are certain."""
    codes = ox.Knowledge(with_a_ball(ball), robust=level).certify([[0.0, 9.0], [0.0, -9.0], [3.0, 3.0]]).codes
    assert codes.tolist() == [1, -1, 1]


@pytest.mark.parametrize("level", ["paper", "perspective", "shared", "exact"])
def test_answers_of_two_distances_in_one_log(level: str) -> None:
    log, other = with_a_ball("linf"), with_a_ball("linf", "l1")[0]
    log.add_explanation(other.point, other.explanation, other.label, other.mechanism)
    assert ox.Knowledge(log, robust=level).certify([[0.0, 1.0], [1.0, 1.0], [-5.0, -6.0]]).codes.tolist() == [1, 1, -1]
