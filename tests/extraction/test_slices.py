"""One-hot groups, whole numbers and continuous features: as many answers as degrees of freedom, valid questions, honest bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import overexplain as ox
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.constrained.slices import extract_by_slices, predict_slices
from overexplain.extraction.job import Job
from overexplain.extraction.session import Session
from overexplain.geometry.domain import Domain
from overexplain.oracles.constrained import OneHot
from overexplain.oracles.silent import Flaky, OneSided


class LabelsOnly:
    mechanism = None

    def __init__(self, oracle: OneHot) -> None:
        self.oracle, self.dimension = oracle, oracle.dimension

    def classify(self, x: np.ndarray) -> int:
        return self.oracle.classify(x)


def make_job(oracle, start=None, where=None, seed=0, budget=None, accuracy=1e-9) -> Job:
    session = Session(oracle, budget)
    where = Box.of(None, session.dimension) if where is None else where
    start = np.zeros(session.dimension) if start is None else np.asarray(start, dtype=float)
    return Job(session, accuracy, start, where, True, np.random.default_rng(seed))


def make_service(
    continuous: int, levels: list[int], integers: int = 0, limits=None, distance="l1", seed: int = 0, published=None
) -> tuple[ox.Hyperplane, OneHot]:
    rng = np.random.default_rng(seed)
    ends = np.cumsum([continuous, *levels])
    groups = [list(range(a, b)) for a, b in itertools.pairwise(ends)]
    whole = list(range(ends[-1], ends[-1] + integers))
    p = int(ends[-1]) + integers
    normal = rng.normal(size=p)
    normal[:continuous] += 0.3 * np.sign(normal[:continuous])
    model = ox.Hyperplane(normal, 0.3 * rng.normal())
    low, high = np.full(p, -np.inf), np.full(p, np.inf)
    if limits is not None:
        low[:continuous], high[:continuous] = limits
        low[whole], high[whole] = -3, 3
    exact = ox.ModelOracle(model, ox.Mechanism(distance))
    return model, OneHot(exact, groups, whole, low, high, published=published)


def centred(model: ox.Hyperplane, domain: Domain) -> ox.Hyperplane:
    """The same classifier with mean 0 in each group, as the result has it."""
    normal, offset = model.normal.copy(), model.offset
    for group in domain.groups:
        mean = normal[list(group)].mean()
        normal[list(group)] -= mean
        offset -= mean
    return ox.Hyperplane(normal, offset)


def angle(found: ox.Extraction, model: ox.Hyperplane) -> float:
    """Between the normals, after taking the unidentified directions out of both."""
    basis = np.linalg.qr(found.unidentified.T)[0]
    left, right = (v - basis @ (basis.T @ v) for v in (found.hyperplane.normal, model.normal))
    return ox.Hyperplane(left, 0.0).angle_to(ox.Hyperplane(right, 0.0))


def agrees(found: ox.Extraction, model: ox.Hyperplane, domain: Domain) -> bool:
    points = domain.sample(9, 300)
    margins = model.margin(points)
    clear = np.abs(margins) > 1e-6 * (np.abs(points) @ np.abs(model.normal) + abs(model.offset))
    return bool((found.hyperplane.labels(points) == model.labels(points))[clear].all())


@pytest.mark.parametrize(
    ("continuous", "levels", "integers", "limits", "labels"),
    [
        (3, [3, 3], 0, None, 80),
        (5, [4, 4, 4], 0, None, 150),
        (8, [5] * 4, 0, None, 260),
        (3, [3], 2, (-6.0, 6.0), 60),
        (2, [3, 2], 1, (-2.0, 2.0), 80),
        (4, [], 0, (-2.0, 2.0), 40),
        (1, [2], 3, None, 80),
        (2, [], 2, (-9.0, 9.0), 50),
    ],
)
def test_as_many_answers_as_degrees_of_freedom(continuous, levels, integers, limits, labels) -> None:
    freedom = continuous + sum(n - 1 for n in levels) + integers
    spent = []
    for seed in range(6):
        model, service = make_service(continuous, levels, integers, limits, seed=seed)
        domain = service.domain
        job = make_job(service, seed=seed)
        found = extract_by_slices(job, domain)
        spent.append(found.spent.labels)
        assert found.spent.explanations == freedom + 1 == predict_slices(domain, 1e-9).explanations
        assert angle(found, model) <= found.error_bound < 1e-9
        truth = centred(model, domain)
        assert found.hyperplane.is_equivalent(truth, 1e-9)
        assert abs(truth.offset / np.linalg.norm(truth.normal) - found.hyperplane.offset) <= found.offset_bound
        assert found.unidentified.shape == (len(levels), len(model.normal))
        np.testing.assert_allclose(np.linalg.norm(found.unidentified, axis=1), 1.0)
        assert found.exact
        assert found.oriented
        assert agrees(found, model, domain)
        assert all(domain.contains(x) for x in job.session.log.points)
    assert np.mean(spent) <= labels


def test_a_shift_of_a_group_is_invisible() -> None:
    """What is called unidentified really is: the shifted model gives every answer alike, and the result does not change."""
    model, service = make_service(2, [3, 2], 1, seed=4)
    shift = np.array([0, 0, 5.0, 5.0, 5.0, -2.0, -2.0, 0.0])
    twin = OneHot(
        ox.ModelOracle(ox.Hyperplane(model.normal + shift, model.offset + 3.0), "l1"),
        service.domain.groups,
        service.domain.integers,
    )
    first = extract_by_slices(make_job(service), service.domain)
    second = extract_by_slices(make_job(twin), service.domain)
    assert first.hyperplane.is_equivalent(second.hyperplane, 1e-9)
    assert np.linalg.matrix_rank(np.vstack([first.unidentified, shift])) == 2
    assert any("mean 0" in note for note in first.assumptions)


def test_labels_alone() -> None:
    """Line searches: about log2(1/accuracy) labels a degree of freedom, and an honest bound that reaches the accuracy."""
    for accuracy in (1e-3, 1e-6, 1e-9):
        for seed in range(4):
            model, service = make_service(3, [3, 3], 1, (-6.0, 6.0), seed=seed)
            job = make_job(LabelsOnly(service), seed=seed, accuracy=accuracy)
            found = extract_by_slices(job, service.domain)
            assert found.spent.explanations == 0
            assert found.spent.labels <= 1.35 * predict_slices(service.domain, accuracy, explains=False).labels
            assert angle(found, model) <= found.error_bound <= accuracy
            assert not found.exact
            assert all(service.domain.contains(x) for x in job.session.log.points)


def test_honesty() -> None:
    """Small ranges, zeros, one side only, failures of every spelling, an unknown distance: bounds hold, nothing is made up."""
    finished = 0
    for seed in range(110):
        rng = np.random.default_rng(seed)
        levels = [int(n) for n in rng.integers(2, 5, rng.integers(0, 3))]
        limits = [None, (-1.0, 1.0), (-4.0, 4.0), (0.0, 10.0)][rng.integers(4)]
        kind = rng.integers(5)
        shown = ox.Mechanism(None) if kind == 4 else None
        distance = str(rng.choice(["l1", "linf"]))
        sizes = int(rng.integers(1, 4)), levels, int(rng.integers(0, 3))
        model, service = make_service(*sizes, limits, distance, seed, shown)
        domain = service.domain
        asked = service
        if kind == 1:
            asked = OneSided(service)
        elif kind == 2:
            asked = Flaky(service, 0.3, str(rng.choice(["none", "nan", "echo", "raise"])), rng=seed)
        elif kind == 3:
            asked = LabelsOnly(service)
        job = make_job(asked, seed=seed)
        try:
            found = extract_by_slices(job, domain)
        except ox.ExtractionFailed as failed:
            assert limits == (-1.0, 1.0) or limits == (0.0, 10.0)
            assert "no slice had both" in str(failed) or "only touches" in str(failed)
            continue
        finished += 1
        assert angle(found, model) <= found.error_bound
        assert all(domain.contains(x) for x in job.session.log.points)
        if len(found.unidentified) == len(levels):
            assert agrees(found, model, domain)
            truth = centred(model, domain)
            assert abs(truth.offset / np.linalg.norm(truth.normal) - found.hyperplane.offset) <= found.offset_bound
    assert finished >= 100


def is_reachable(model: ox.Hyperplane, domain: Domain, level: int, unreached: list[int]) -> bool:
    """Brute force: does the plane pass through any slice with this level and known levels elsewhere?"""
    free = domain.continuous
    half = np.abs(model.normal[free]) @ (domain.high[free] - domain.low[free]) / 2
    middle = model.normal[free] @ (domain.high[free] + domain.low[free]) / 2
    options = [
        [model.normal[level]] if level in group else [model.normal[i] for i in group if i not in unreached]
        for group in domain.groups
    ]
    options += [[model.normal[i] * value for value in range(-3, 4)] for i in domain.integers]
    return any(abs(middle + sum(scores) - model.offset) < half for scores in itertools.product(*options))


def test_levels_out_of_reach_are_said_to_be() -> None:
    """Ranges so small that many levels never meet the plane: exactly those are left open, and no number is made up for them."""
    left_open = brought_back = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        levels = [int(n) for n in rng.integers(2, 5, rng.integers(1, 3))]
        model, service = make_service(int(rng.integers(1, 3)), levels, int(rng.integers(0, 2)), (-0.7, 0.7), seed=seed)
        domain = service.domain
        try:
            found = extract_by_slices(make_job(service, seed=seed), domain)
        except ox.ExtractionFailed:
            continue
        axes = found.unidentified[len(levels) :]
        unreached = [int(np.flatnonzero(row)[0]) for row in axes]
        np.testing.assert_array_equal(axes, np.eye(model.dimension)[unreached])
        assert not found.hyperplane.normal[unreached].any()
        assert angle(found, model) <= found.error_bound
        if unreached:
            assert any(str(unreached) in note for note in found.assumptions)
        if not set(unreached) & set(domain.integers):
            assert not any(is_reachable(model, domain, level, unreached) for level in unreached)
        left_open += len(unreached)
        brought_back += int(not unreached)
    assert left_open > 20
    assert brought_back > 20


def test_a_feature_that_cannot_vary() -> None:
    model, service = make_service(3, [3], 0, (-4.0, 4.0), seed=1)
    low, high = service.domain.low.copy(), service.domain.high.copy()
    low[1] = high[1] = 0.5
    pinned = OneHot(service.wrapped, service.domain.groups, (), low, high)
    found = extract_by_slices(make_job(pinned), pinned.domain)
    assert found.unidentified[-1].tolist() == np.eye(6)[1].tolist()
    assert found.spent.explanations == 2 + 2 + 1
    assert angle(found, model) <= found.error_bound < 1e-9
    assert agrees(found, model, pinned.domain)


def test_bounds_of_the_questions_and_a_start_of_ones_own() -> None:
    model, service = make_service(3, [3], 1, seed=2)
    start = np.array([0.1, 0.2, 0.3, 0.0, 1.0, 0.0, 2.0])
    low, high = np.full(7, -5.0), np.full(7, 5.0)
    job = make_job(service, start, Box(low, high))
    found = extract_by_slices(job, service.domain)
    assert found.hyperplane.is_equivalent(centred(model, service.domain), 1e-9)
    points = job.session.log.points
    assert (points[0] == start).all()
    assert ((points >= low) & (points <= high)).all()
    with pytest.raises(ox.InvalidInput, match="ball"):
        extract_by_slices(make_job(service, start, Ball.of(3.0, start)), service.domain)


def test_one_sided_services_cost_no_more() -> None:
    for side in (-1, 1):
        for seed in range(4):
            model, service = make_service(3, [3, 3], 0, seed=seed)
            found = extract_by_slices(make_job(OneSided(service, side=side), seed=seed), service.domain)
            assert found.spent.explanations <= 7 + 1 + 1
            assert found.hyperplane.is_equivalent(centred(model, service.domain), 1e-9)


class Beyond:
    """Answers a little beyond the plane instead of on it."""

    def __init__(self, oracle: OneHot, by: float) -> None:
        self.oracle, self.by = oracle, by
        self.dimension, self.mechanism = oracle.dimension, oracle.mechanism

    def classify(self, x: np.ndarray) -> int:
        return self.oracle.classify(x)

    def explain(self, x: np.ndarray) -> np.ndarray:
        answer = self.oracle.explain(x)
        return answer + self.by * np.sign(answer - x) * np.isin(np.arange(len(x)), self.oracle.domain.continuous)


def test_answers_off_the_plane_are_refuted() -> None:
    for seed in range(5):
        _, service = make_service(3, [3, 2], 0, seed=seed)
        job = make_job(Beyond(service, 0.01), seed=seed)
        with pytest.raises(ox.BrokenPromise, match=r"row \d+") as caught:
            extract_by_slices(job, service.domain)
        assert caught.value.fact in ("Nearest", "OnPlane")
        assert caught.value.row in job.session.log.explained
    with pytest.raises(ox.BrokenPromise, match="not the nearest") as caught:
        extract_by_slices(make_job(Beyond(service, 40.0)), service.domain)
    assert caught.value.fact == "Nearest"


def test_labels_of_a_curved_model_are_refuted() -> None:
    """The two groups interact: no linear model fits, and the labels that confirm notice it."""

    class Curved:
        dimension, mechanism = 5, None

        def classify(self, x: np.ndarray) -> int:
            return 1 if x[0] + x[1] + 2.0 * x[2] * x[4] >= 0.5 else -1

    domain = Domain(5, -9.0, 9.0, groups=[[1, 2], [3, 4]])
    caught = 0
    for seed in range(10):
        try:
            extract_by_slices(make_job(Curved(), seed=seed), domain)
        except ox.BrokenPromise as broken:
            caught += 1
            assert broken.fact == "OnSide"
    assert caught >= 8


def test_nothing_continuous() -> None:
    model = ox.Hyperplane([1.0, -1.0, 2.0], 0.5)
    for groups, integers in (([[0, 1]], [2]), ([], [0, 1, 2])):
        service = OneHot(ox.ModelOracle(model, "l1"), groups, integers)
        with pytest.raises(ox.ExtractionFailed, match="only their labels") as caught:
            extract_by_slices(make_job(service), service.domain)
        assert caught.value.unidentified.shape == (3, 3)
    # A continuous feature without an effect is no better.
    service = OneHot(ox.ModelOracle(ox.Hyperplane([0.0, 1.0, -1.0], 0.5), "l1"), [[1, 2]], low=-9.0, high=9.0)
    job = make_job(service)
    with pytest.raises(ox.ExtractionFailed, match="no slice had both"):
        extract_by_slices(job, service.domain)
    assert job.session.spent.requests < 200


def test_no_labels_and_budget() -> None:
    _, service = make_service(3, [3, 3])

    class Mute:
        dimension, mechanism = service.dimension, service.mechanism
        explain = service.explain

    with pytest.raises(ox.ExtractionFailed, match="no labels"):
        extract_by_slices(make_job(Mute()), service.domain)
    spent = extract_by_slices(make_job(service), service.domain).spent
    assert extract_by_slices(make_job(service, budget=spent.requests), service.domain).spent == spent
    for budget in (0, 7, 30, spent.requests - 1):
        job = make_job(service, budget=budget)
        with pytest.raises(ox.BudgetExhausted):
            extract_by_slices(job, service.domain)
        assert job.session.spent.requests <= budget


def test_weights_and_scales() -> None:
    """Income in thousands beside a share: the declared weights say what is near."""
    rng = np.random.default_rng(0)
    for seed in range(4):
        weights = np.array([1e-4, 2.0, 1.0, 1.0, 1.0, 0.5])
        normal = np.array([1e-4, 3.0, 0.5, -1.0, 0.8, 0.7]) * rng.choice([-1, 1], 6)
        model = ox.Hyperplane(normal, normal @ [5e4, 0.4, 0.0, 1.0, 0.0, 4.0])
        exact = ox.ModelOracle(model, ox.Mechanism(ox.Weighted(ox.norm("l1"), weights)))
        service = OneHot(exact, [[2, 3, 4]], [5], low=[0, 0, 0, 0, 0, 0], high=[1e5, 1, 1, 1, 1, 9])
        found = extract_by_slices(make_job(service, seed=seed), service.domain)
        assert angle(found, model) <= found.error_bound < 1e-7
        assert found.spent.explanations <= 6 + 2
        assert agrees(found, model, service.domain)
