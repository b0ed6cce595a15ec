"""Chains of explanations: what they cost, that their bound holds, and that services unfit for them are named."""

import numpy as np
import pytest

from overexplain.errors import BrokenPromise, BudgetExhausted, ExtractionFailed, InvalidInput, NoExplanation
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.inexact.chain import extract_by_chain, predict_chain
from overexplain.extraction.inexact.fitted import euclidean_stretch
from overexplain.extraction.job import Job
from overexplain.extraction.session import Session
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Lp, Mahalanobis, Polyhedral, Weighted, l1, l2, linf, norm
from overexplain.oracles.degraded import Float32, NearestRow, Noisy, Overshoot, Rounded, Suboptimal
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import Flaky, OneSided


def a_plane(rng, p):
    normal = rng.normal(size=p)
    return Hyperplane(normal, 0.3 * np.linalg.norm(normal) * rng.normal())


def a_job(oracle, accuracy=1e-6, rng=0, where=None, start=None, budget=None, orient=True):
    p = oracle.dimension
    where = Box.of(None, p) if where is None else where
    return Job(
        Session(oracle, budget),
        accuracy,
        where.centre() if start is None else start,
        where,
        orient,
        np.random.default_rng(rng),
    )


def suboptimal(plane, distance="l1", slack=0.3, rng=0):
    return Suboptimal(ModelOracle(plane, Mechanism(distance)), slack, rng=rng)


def test_the_bound_holds_and_is_reached():
    rng = np.random.default_rng(0)
    for case in range(100):
        p, slack = int(rng.integers(1, 8)), rng.choice([0.01, 0.1, 0.3, 0.6, 0.9])
        distance = ("l1", "l2", "linf", "lp:1.5", "lp:4")[case % 5]
        plane, accuracy = a_plane(rng, p), 10.0 ** rng.uniform(-9, -2)
        job = a_job(
            suboptimal(plane, distance, slack, case),
            accuracy,
            case,
            start=rng.normal(size=p) * 10.0 ** rng.uniform(-1, 2),
        )
        found = extract_by_chain(job, slack, norm(distance) if case % 2 else None, declared=True)
        assert found.hyperplane.angle_to(plane) <= found.error_bound
        assert found.error_bound <= accuracy
        length = norm(distance).dual(plane.normal) if case % 2 else np.linalg.norm(plane.normal)
        assert abs(found.hyperplane.offset - plane.offset / length) <= found.offset_bound
        assert found.oriented
        assert found.spent.labels == 1
        assert any("as the service declares" in note for note in found.assumptions)


class _Worst:
    """Always uses its slack up, straight ahead: the slowest chain there is."""

    mechanism = Mechanism("l2", slack=0.5)

    def __init__(self, plane):
        self.plane, self.dimension = plane, plane.dimension
        self.unit = plane.normal / np.linalg.norm(plane.normal)

    def classify(self, x):
        return self.plane.label(x)

    def explain(self, x):
        return x - 1.5 * self.plane.margin(x) / np.linalg.norm(self.plane.normal) * self.unit


def test_the_bound_is_tight_for_the_slowest_service():
    rng = np.random.default_rng(1)
    plane = a_plane(rng, 4)
    job = a_job(_Worst(plane), start=rng.normal(size=4))
    found = extract_by_chain(job, 0.5, l2, declared=True)
    assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6
    # s/(1+s)·‖step‖ is what such an answer is off by, to the last digit: a smaller slack is refuted at once.
    with pytest.raises(BrokenPromise) as broken:
        extract_by_chain(a_job(_Worst(plane), start=rng.normal(size=4)), 0.49, l2, declared=True)
    assert broken.value.fact == "NearOptimal"
    with pytest.raises(BrokenPromise, match="log row"):
        extract_by_chain(a_job(_Worst(plane), start=rng.normal(size=4)), 0.4, None, declared=True)


@pytest.mark.parametrize(("slack", "most"), [(0.05, 150), (0.3, 250)])
def test_cost_at_thirty_features(slack, most):
    costs = []
    for seed in range(3):
        plane = a_plane(np.random.default_rng(seed), 30)
        found = extract_by_chain(a_job(suboptimal(plane, "l1", slack, seed)), slack, None, declared=True)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6
        costs.append(found.spent.requests)
    assert np.mean(costs) <= most
    assert 0.5 * np.mean(costs) <= predict_chain(30, 1e-6, slack) <= 2 * np.mean(costs)


def test_an_exact_service_needs_one_link_a_chain():
    plane = a_plane(np.random.default_rng(0), 6)
    found = extract_by_chain(a_job(ModelOracle(plane, Mechanism("l1"))), 0.0, l1, declared=True)
    assert found.spent.explanations == 7
    assert found.hyperplane.angle_to(plane) <= found.error_bound


@pytest.mark.parametrize(
    "distance",
    [
        Weighted(l1, [1e-2, 1.0, 1e2, 3.0]),
        Weighted(linf, [0.5, 1.0, 2.0, 4.0]),
        Mahalanobis(np.eye(4) + 0.5),
        GroupNorm([[0, 1], [2, 3]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_norm(distance):
    rng = np.random.default_rng(2)
    plane = a_plane(rng, 4)
    for known in (distance, None):
        found = extract_by_chain(a_job(suboptimal(plane, distance)), 0.3, known, declared=True)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-5
        if known is not None:
            assert known.dual(found.hyperplane.normal) == pytest.approx(1)


def test_stretch_is_a_bound_and_the_best_for_lq():
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.2, 5, 4)
    for distance in (
        l1,
        l2,
        linf,
        Lp(1.5),
        Lp(3.0),
        Weighted(l1, weights),
        Weighted(linf, weights),
        Weighted(Lp(3.0), weights),
    ):
        v = rng.normal(size=(20_000, 4)) / getattr(distance, "weights", np.ones(4))
        corners = np.eye(4)
        q = getattr(distance, "norm", distance).q
        if q > 2:  # the maximiser of ‖v‖₂ at ‖v‖ = 1 has |w_i v_i|^(q−2) in proportion to 1/w_i²
            w = getattr(distance, "weights", np.ones(4))
            corners = (1 / w * (w**-2.0) ** (0.0 if q == np.inf else 1 / (q - 2)))[None, :]
        ratios = [np.linalg.norm(rows, axis=1) / distance(rows) for rows in (v, corners)]
        assert max(ratios[0].max(), ratios[1].max()) <= euclidean_stretch(distance, 4) * (1 + 1e-12)
        assert ratios[1].max() == pytest.approx(euclidean_stretch(distance, 4))
    corners = np.vstack([np.eye(4), -np.eye(4), [[0.4] * 4, [-0.4] * 4]])
    for distance in (Mahalanobis(np.eye(4) + 0.5), GroupNorm([[0, 1], [2, 3]]), Polyhedral(corners)):
        v = rng.normal(size=(50, 4))
        assert (np.linalg.norm(v, axis=1) <= euclidean_stretch(distance, 4) * distance(v)).all()


def test_questions_stay_inside():
    plane = Hyperplane([1.0, -2.0, 0.5], 0.2)
    for where in (Box.of((-1, 1), 3), Box.of(([-1, -2, -1e3], [1, 2, 1e3]), 3), Ball.of(1.0, np.zeros(3))):
        job = a_job(suboptimal(plane), where=where)
        found = extract_by_chain(job, 0.3, None, declared=True)
        assert all(where.contains(x) for x in found.log.points)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6


def test_a_start_in_a_corner_of_the_bounds_leaves_room():
    plane = Hyperplane([1.01, -2.03, 0.57, 1.09], 0.213)
    for slack, corner in ((0.0, -np.ones(4)), (0.3, np.array([1.0, -1.0, 1.0, 1.0]))):
        job = a_job(suboptimal(plane, "l2", slack), where=Box.of((-1, 1), 4), start=corner)
        found = extract_by_chain(job, slack, l2, declared=True)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6


def test_coarse_answers_give_an_estimate_without_a_bound():
    plane = a_plane(np.random.default_rng(11), 8)
    oracle = Rounded(suboptimal(plane, "linf", 0.5), 0)
    found = extract_by_chain(a_job(oracle, start=np.full(8, 2.0)), 0.5, linf, declared=True)
    assert found.error_bound is None or found.hyperplane.angle_to(plane) <= found.error_bound
    assert any("was not reached" in note for note in found.assumptions)


def test_a_plane_outside_the_bounds_is_named():
    plane = Hyperplane([1.0, 1.0, 1.0], 9.0)
    with pytest.raises(ExtractionFailed, match="outside the bounds"):
        extract_by_chain(a_job(suboptimal(plane), where=Box.of((-1, 1), 3)), 0.3, l1, declared=True)


@pytest.mark.parametrize("known", [l1, None])
def test_an_estimated_slack_is_corrected_and_gives_no_bound(known):
    plane = a_plane(np.random.default_rng(4), 8)
    found = extract_by_chain(a_job(suboptimal(plane, "l1", 0.8)), 0.3, known)
    assert found.error_bound is None
    assert found.offset_bound is None
    assert found.hyperplane.angle_to(plane) < 1e-5
    assert any("estimated, not declared" in note for note in found.assumptions)


@pytest.mark.parametrize("known", [l1, None])
@pytest.mark.parametrize("kind", ["overshoot", "noisy", "nearest row", "no flip"])
def test_services_that_break_the_promise(kind, known):
    rng = np.random.default_rng(5)
    plane = a_plane(rng, 6)
    exact = ModelOracle(plane, Mechanism("l1"))
    oracle = {
        "overshoot": lambda: Overshoot(exact, 0.1),
        "noisy": lambda: Noisy(exact, 0.01, rng=0),
        "nearest row": lambda: NearestRow(exact, rng.normal(size=(100, 6))),
        "no flip": lambda: Flaky(suboptimal(plane), 0.2, "no flip", rng=3),
    }[kind]()
    job = a_job(oracle, start=rng.normal(size=6))
    with pytest.raises(BrokenPromise) as broken:
        extract_by_chain(job, 0.3, known, declared=True)
    row = broken.value.row
    assert np.isfinite(job.session.log.explanations[row]).all()  # the row named is an explanation


@pytest.mark.parametrize("known", [l1, None])
def test_rounded_answers_end_at_their_own_grid(known):
    plane = a_plane(np.random.default_rng(6), 6)
    silent = Mechanism("l1", slack=0.3)
    for oracle, floor in (
        (Rounded(suboptimal(plane), 4), 2e-2),
        (Rounded(suboptimal(plane), 4, published=silent), 2e-2),
        (Float32(suboptimal(plane)), 1e-5),
    ):
        found = extract_by_chain(a_job(oracle, 1e-9), 0.3, known, declared=True)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= floor
        assert any("was not reached" in note and "rounding" in note for note in found.assumptions)
        assert found.spent.requests < 150


@pytest.mark.parametrize("side", [YES, NO])
def test_one_sided_services_are_refused(side):
    plane = a_plane(np.random.default_rng(7), 5)
    with pytest.raises(NoExplanation, match="one side only"):
        extract_by_chain(a_job(OneSided(suboptimal(plane), side), start=np.ones(5)), 0.3, l1, declared=True)


@pytest.mark.parametrize("failure", ["none", "empty", "nan", "raise", "echo"])
def test_random_failures_cost_requests_only(failure):
    plane = a_plane(np.random.default_rng(8), 6)
    found = extract_by_chain(a_job(Flaky(suboptimal(plane), 0.1, failure, rng=1)), 0.3, l1, declared=True)
    assert found.hyperplane.angle_to(plane) <= found.error_bound
    assert found.error_bound <= 1e-6


class _Shy(_Worst):
    """Refuses, or echoes, points closer to the plane than a hundredth."""

    def __init__(self, plane, spelling):
        super().__init__(plane)
        self.spelling = spelling

    def explain(self, x):
        if abs(self.plane.margin(x)) < 0.01:
            return None if self.spelling == "none" else x
        return super().explain(x)


@pytest.mark.parametrize("spelling", ["none", "echo"])
def test_refusals_near_the_plane_give_an_honest_larger_bound(spelling):
    plane = Hyperplane([0.6, 0.0, 0.8], 1.0)
    found = extract_by_chain(a_job(_Shy(plane, spelling)), 0.5, l2, declared=True)
    assert found.hyperplane.angle_to(plane) <= found.error_bound
    assert 1e-6 < found.error_bound < 0.1
    assert any("near the plane" in note for note in found.assumptions)


def test_a_silent_service_and_a_spent_budget():
    plane = a_plane(np.random.default_rng(9), 5)
    with pytest.raises(NoExplanation, match="none of 12 starts"):
        extract_by_chain(a_job(Flaky(suboptimal(plane), 1.0)), 0.3, l1)
    job = a_job(suboptimal(plane), budget=6)
    with pytest.raises(BudgetExhausted):
        extract_by_chain(job, 0.3, l1)
    assert job.session.spent.requests == 0  # refused before anything was spent
    job = a_job(suboptimal(plane), budget=20)
    with pytest.raises(BudgetExhausted) as spent:
        extract_by_chain(job, 0.3, l1)
    assert len(spent.value.log.points) == job.session.spent.requests == 20
    with pytest.raises(InvalidInput, match="slack"):
        extract_by_chain(a_job(suboptimal(plane)), 1.0)


def test_without_labels_the_model_may_be_upside_down():
    plane = a_plane(np.random.default_rng(10), 5)
    found = extract_by_chain(a_job(suboptimal(plane), orient=False), 0.3, None, declared=True)
    assert not found.oriented
    assert found.spent.labels == 0
    assert min(plane.angle_to(found.hyperplane), plane.angle_to(found.hyperplane.flipped())) <= found.error_bound
