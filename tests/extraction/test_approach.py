"""Approach, then ask: services whose answers a box cuts off."""

from __future__ import annotations

import math

import numpy as np
import pytest

import overexplain as ox
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.constrained.approach import approach, extract_by_approach, predict_approach
from overexplain.extraction.constrained.bracket import Bracket, first_bracket, narrowed
from overexplain.extraction.job import Job
from overexplain.extraction.session import Session
from overexplain.oracles.constrained import Boxed
from overexplain.oracles.silent import OneSided


def make_job(oracle, low=0.0, high=1.0, start=None, seed=0, budget=None, where=None) -> Job:
    session = Session(oracle, budget)
    where = Box.of((low, high), session.dimension) if where is None else where
    start = where.centre() if start is None else np.asarray(start, dtype=float)
    return Job(session, 1e-9, start, where, True, np.random.default_rng(seed))


def random_model(p: int, seed: int) -> ox.Hyperplane:
    """A plane through the middle part of [0, 1]^p."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=p)
    return ox.Hyperplane(normal, normal @ rng.uniform(0.35, 0.65, p))


@pytest.mark.parametrize("p", [1, 2, 10, 30])
@pytest.mark.parametrize("distance", ["l2", "lp:3"])
def test_two_answers_and_a_few_labels(p: int, distance: str) -> None:
    for seed in range(20):
        model = random_model(p, seed)
        job = make_job(Boxed(ox.ModelOracle(model, distance), 0.0, 1.0), seed=seed)
        found = extract_by_approach(job, ox.Mechanism(distance))
        assert found.spent.explanations == 2
        assert found.spent.labels <= 12
        assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-9
        assert found.hyperplane.is_equivalent(model, 1e-9)
        assert found.oriented
        assert found.exact
        assert "approach" in found.method
        assert all(job.where.contains(x) for x in job.session.log.points)


def test_without_approach_a_box_misleads() -> None:
    """What the method is for: from far away one answer of such a service has the wrong direction."""
    angles = []
    for seed in range(20):
        model = random_model(30, seed)
        service = Boxed(ox.ModelOracle(model, "l2"), 0.0, 1.0)
        x = np.random.default_rng(seed).choice([0.02, 0.98], 30)
        step = service.explain(x) - x
        angles.append(min(ox.Hyperplane(step, 0.0).angle_to(model), ox.Hyperplane(-step, 0.0).angle_to(model)))
    assert np.median(angles) > 0.1


@pytest.mark.parametrize("distance", ["l1", "linf"])
def test_polyhedral_distances(distance: str) -> None:
    for p in (2, 10, 30):
        for seed in range(10):
            model = random_model(p, seed)
            job = make_job(Boxed(ox.ModelOracle(model, distance), 0.0, 1.0), seed=seed)
            found = extract_by_approach(job, ox.Mechanism(distance))
            assert found.spent.explanations == p == predict_approach(p, ox.Mechanism(distance)).explanations
            assert found.spent.labels <= 14
            assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-5
            assert found.hyperplane.angle_to(model) < 1e-10


def test_unknown_distance() -> None:
    for seed in range(10):
        model = random_model(8, seed)
        service = Boxed(ox.ModelOracle(model, "l1"), 0.0, 1.0, published=ox.Mechanism(None))
        found = extract_by_approach(make_job(service, seed=seed), ox.Mechanism(None))
        assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-6
        assert 9 <= found.spent.explanations <= 14
        assert found.oriented
        assert found.hyperplane.is_equivalent(model, 1e-8)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "lp:1.5", "weighted"])
def test_from_there_the_box_is_not_in_the_way(name: str) -> None:
    """Second opinion: from every corner of the little box, the service without a box gives the same answers."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 7))
        model = random_model(p, seed)
        norm = ox.Weighted(ox.norm("l2"), 10 ** rng.uniform(-1, 1, p)) if name == "weighted" else ox.norm(name)
        free = ox.ModelOracle(model, ox.Mechanism(norm))
        job = make_job(Boxed(free, 0.0, 1.0), seed=seed)
        near = approach(job, norm)
        assert near.label == model.label(near.start)
        distance = abs(model.margin(near.start)) / norm.dual(model.normal)
        assert 0 < distance <= near.gap
        boxed = Boxed(free, 0.0, 1.0)
        for _ in range(20):
            aside = rng.normal(size=p)
            x = near.where.clip(near.start + 2 * near.gap * rng.uniform() / norm(aside) * aside)
            answer = free.explain(x)
            assert job.where.contains(answer)
            assert norm(boxed.explain(x) - x) == pytest.approx(norm(answer - x), rel=1e-9, abs=1e-12)


def test_honesty() -> None:
    """Boxes of any shape, planes through the middle or past a corner, one-sided services: the bounds hold or it is refused."""
    finished = 0
    for seed in range(250):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 9))
        normal, low, widths = rng.normal(size=p), 3 * rng.normal(size=p), 10 ** rng.uniform(-1, 1, p)
        if p > 1 and rng.random() < 0.3:
            normal[rng.integers(p)] = 0.0
        low_share, high_share = [(0.3, 0.7), (0.05, 0.95), (0.9, 0.99)][rng.integers(3)]
        model = ox.Hyperplane(normal, normal @ (low + rng.uniform(low_share, high_share, p) * widths))
        norm = ox.norm(str(rng.choice(["l1", "l2", "linf", "lp:3", "lp:1.5"])))
        norm = norm if rng.random() < 0.5 else ox.Weighted(norm, 1 / widths)
        shown = ox.Mechanism(norm if rng.random() < 0.8 else None)
        service = Boxed(ox.ModelOracle(model, ox.Mechanism(norm)), low, low + widths, published=shown)
        if rng.random() < 0.25:
            service = OneSided(service, side=int(rng.choice([-1, 1])))
        job = make_job(service, low, low + widths, seed=seed)
        try:
            found = extract_by_approach(job, shown)
        except ox.ExtractionFailed:
            assert low_share != 0.3  # never where the plane passes through the middle
            continue
        finished += 1
        assert found.hyperplane.angle_to(model) <= found.error_bound
        assert found.oriented
        assert all(job.where.contains(x) for x in job.session.log.points)
    assert finished > 190


class NarrowerThanSaid:
    """Cuts its answers off at a box of its own, and takes questions anywhere."""

    def __init__(self, model: ox.Hyperplane, low: np.ndarray, high: np.ndarray) -> None:
        self.inner = Boxed(ox.ModelOracle(model, "l2"), low, high)
        self.low, self.high, self.dimension, self.mechanism = low, high, model.dimension, ox.Mechanism("l2")

    def classify(self, x: np.ndarray) -> int:
        return self.inner.wrapped.classify(x)

    def explain(self, x: np.ndarray) -> np.ndarray | None:
        return self.inner.explain(np.clip(x, self.low, self.high))


def test_a_box_narrower_than_known_is_noticed() -> None:
    """A side where none was known turns one answer; the second does not fit then, and the search goes nearer, or gives up."""
    right = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        model = random_model(6, seed)
        service = NarrowerThanSaid(model, rng.uniform(0.1, 0.4, 6), rng.uniform(0.6, 0.9, 6))
        try:
            found = extract_by_approach(
                make_job(service, -4.0, 5.0, start=np.full(6, 0.5), seed=seed), service.mechanism
            )
        except (ox.BrokenPromise, ox.NoExplanation, ox.ExtractionFailed):
            continue
        assert found.hyperplane.angle_to(model) <= found.error_bound
        right += 1
    assert right >= 3


def test_a_plane_in_a_corner_only() -> None:
    """10⁻⁷ away from a corner nothing but rounding could be seen; it says so instead of guessing."""
    model = ox.Hyperplane(np.ones(4), 4.0 - 1e-7)
    job = make_job(Boxed(ox.ModelOracle(model, "l2"), 0.0, 1.0))
    with pytest.raises(ox.ExtractionFailed, match="near a (side or a )?corner"):
        extract_by_approach(job, ox.Mechanism("l2"))
    assert job.session.spent.requests < 60


def test_a_corner_that_the_service_itself_shows() -> None:
    """No inner point has the other label, but an answer lies on the plane, and beyond it there is enough room."""
    model = ox.Hyperplane(np.ones(8), 7.6)
    found = extract_by_approach(make_job(Boxed(ox.ModelOracle(model, "l2"), 0.0, 1.0)), ox.Mechanism("l2"))
    assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-6
    assert found.spent.explanations == 3


def test_a_plane_outside_the_box() -> None:
    job = make_job(Boxed(ox.ModelOracle(ox.Hyperplane(np.ones(3), 9.0), "l2"), 0.0, 1.0))
    with pytest.raises(ox.ExtractionFailed, match="labels asked inside the box are the same"):
        extract_by_approach(job, ox.Mechanism("l2"))
    assert job.session.spent.explanations == 1


def test_another_distance_is_refuted() -> None:
    for seed in range(5):
        service = Boxed(ox.ModelOracle(random_model(6, seed), "linf"), 0.0, 1.0)
        with pytest.raises(ox.BrokenPromise) as caught:
            extract_by_approach(make_job(service, seed=seed), ox.Mechanism("l2"))
        assert caught.value.row is not None


def test_what_it_is_not_for() -> None:
    model = random_model(3, 0)

    class Silent:
        dimension, mechanism = 3, ox.Mechanism("l2")

        def explain(self, x: np.ndarray) -> None:
            return None

    with pytest.raises(ox.ExtractionFailed, match="no labels"):
        extract_by_approach(make_job(Silent()), ox.Mechanism("l2"))
    terms = ox.Mechanism("l2", robustness="l2", radius=0.1)
    with pytest.raises(ox.ExtractionFailed, match="radius"):
        extract_by_approach(make_job(ox.ModelOracle(model, terms)), terms)


def test_budget() -> None:
    service = Boxed(ox.ModelOracle(random_model(10, 0), "l1"), 0.0, 1.0)
    spent = extract_by_approach(make_job(service), ox.Mechanism("l1")).spent
    assert extract_by_approach(make_job(service, budget=spent.requests), ox.Mechanism("l1")).spent == spent
    for budget in (0, 5, spent.labels + 1, spent.requests - 1):
        job = make_job(service, budget=budget)
        with pytest.raises(ox.BudgetExhausted):
            extract_by_approach(job, ox.Mechanism("l1"))
        assert job.session.spent.requests <= budget


def test_open_sides_balls_and_known_pairs() -> None:
    """Without limits the search goes as far as it takes; a ball does as well; a pair that is known is not searched for."""
    model = ox.Hyperplane([3.0, -4.0, 0.5], 2000.0)
    free = ox.ModelOracle(model, "l2")
    found = extract_by_approach(make_job(free, -math.inf, math.inf), ox.Mechanism("l2"))
    assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-6
    near = random_model(3, 0)
    ball = Ball.of(0.8, np.full(3, 0.5))
    job = make_job(ox.ModelOracle(near, "l2"), where=ball)
    found = extract_by_approach(job, ox.Mechanism("l2"))
    assert found.hyperplane.angle_to(near) <= found.error_bound < 1e-8
    assert all(ball.contains(x) for x in job.session.log.points)
    middle = np.full(3, 0.5)
    aside = 0.2 * near.normal / np.linalg.norm(near.normal) * -np.sign(near.margin(middle))
    pair = Bracket.of(
        middle, near.label(middle), middle + aside - near.margin(middle) / (near.normal @ near.normal) * near.normal
    )
    given = extract_by_approach(make_job(ox.ModelOracle(near, "l2")), ox.Mechanism("l2"), pair)
    assert given.hyperplane.angle_to(near) <= given.error_bound
    assert given.spent.labels <= 6


def test_brackets() -> None:
    """Halving keeps the plane inside, ends at float64's own limit, and its errors are what exact arithmetic says."""
    model = ox.Hyperplane([1.0, 1.0], 1.0 / 3.0)
    session = Session(ox.ModelOracle(model, "l2"))
    start = first_bracket(session, [np.zeros(2), np.array([-1.0, 0.0]), np.ones(2), np.full(2, 9.0)])
    assert start is not None
    assert start.no.tolist() == [0.0, 0.0]
    assert start.yes.tolist() == [1.0, 1.0]
    assert session.spent.labels == 3
    fine = narrowed(session, start, lambda b: False)
    assert fine.is_spent
    assert session.spent.labels < 70
    assert abs(fine.middle.sum() - 1 / 3) <= fine.errors().sum() < 1e-14
    rough = narrowed(session, start, lambda b: float(np.ptp([b.no, b.yes])) < 0.2)
    assert abs(rough.middle.sum() - 1 / 3) <= rough.errors().sum()
    assert first_bracket(session, [np.ones(2), np.full(2, 2.0)]) is None
