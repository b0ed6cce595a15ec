"""Explanations of any quality as a start for labels, and averages of them where there are no labels."""

import math
from dataclasses import replace

import numpy as np
import pytest

from overexplain.errors import BudgetExhausted, InvalidInput, NoExplanation
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.extract import extract
from overexplain.extraction.inexact.gathered import read_log
from overexplain.extraction.inexact.warm import extract_by_average, extract_from, extract_warm, predict_warm
from overexplain.extraction.job import Job
from overexplain.extraction.labels.floors import predicted_labels
from overexplain.extraction.labels.labels import extract_by_labels
from overexplain.extraction.session import Session
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.degraded import NearestRow, Noisy, Overshoot, RandomRadius, Rounded, Suboptimal
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import Flaky, OneSided


def a_plane(rng, p):
    normal = rng.normal(size=p)
    return Hyperplane(normal, 0.3 * np.linalg.norm(normal) * rng.normal())


def a_job(oracle, accuracy=1e-6, rng=0, where=None, start=None, budget=None):
    p = oracle.dimension
    where = Box.of(None, p) if where is None else where
    start = where.centre() if start is None else start
    return Job(Session(oracle, budget), accuracy, start, where, True, np.random.default_rng(rng))


class _NoLabels:
    def __init__(self, oracle):
        self._oracle, self.dimension, self.mechanism = oracle, oracle.dimension, oracle.mechanism

    def explain(self, x):
        return self._oracle.explain(x)


class _Along:
    """Answers lie in one direction from every question, at a random distance behind the plane."""

    def __init__(self, plane, direction, rng):
        self.plane, self.direction, self.rng = plane, direction, rng
        self.dimension, self.mechanism = plane.dimension, Mechanism(None, slack=None)

    def classify(self, x):
        return int(self.plane.label(x))

    def explain(self, x):
        behind = -self.classify(x) * self.rng.uniform(0.1, 1.0)
        return x + (behind - self.plane.margin(x)) / (self.plane.normal @ self.direction) * self.direction


SERVICES = {
    "exact l2": ("l2", lambda oracle, s: oracle),
    "exact l1": ("l1", lambda oracle, s: oracle),
    "rounded l2": ("l2", lambda oracle, s: Rounded(oracle, 2)),
    "rounded to integers": ("l2", lambda oracle, s: Rounded(oracle, 0)),
    "noisy linf": ("linf", lambda oracle, s: Noisy(oracle, 0.1, rng=s)),
    "very noisy": ("l1", lambda oracle, s: Noisy(oracle, 5.0, rng=s)),
    "suboptimal": ("l1", lambda oracle, s: Suboptimal(oracle, 0.3, rng=s)),
    "overshoot": ("l1", lambda oracle, s: Overshoot(oracle, 0.2)),
    "random margin l2": ("l2", lambda oracle, s: RandomRadius(oracle, 0.5, rng=s)),
    "random margin l1": ("l1", lambda oracle, s: RandomRadius(oracle, 0.5, rng=s)),
    "one-sided": ("l2", lambda oracle, s: OneSided(oracle, NO if s % 2 else YES)),
    "flaky": ("l2", lambda oracle, s: Flaky(oracle, 0.3, "no flip", rng=s)),
    "nearest row": (
        "l2",
        lambda oracle, s: NearestRow(oracle, np.random.default_rng(s).normal(size=(60, oracle.dimension))),
    ),
}


@pytest.mark.parametrize("name", SERVICES)
def test_whatever_the_explanations_are_the_bound_holds(name):
    distance, wrap = SERVICES[name]
    for seed in range(8):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 9))
        plane, accuracy = a_plane(rng, p), 10.0 ** rng.uniform(-7, -2)
        oracle = wrap(ModelOracle(plane, Mechanism(distance)), seed)
        found = extract_warm(a_job(oracle, accuracy, seed, start=rng.normal(size=p)))
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= accuracy * (1 + 1e-9)
        assert found.oriented
        assert not found.exact
        assert any("explanations" in note for note in found.assumptions)


def labels_spent(wrap, distance, p=20, accuracy=1e-6, seeds=4):
    spent = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        plane = a_plane(rng, p)
        oracle = wrap(ModelOracle(plane, Mechanism(distance)), seed)
        found = extract_warm(a_job(oracle, accuracy, seed, start=rng.normal(size=p)))
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= accuracy
        spent.append((found.spent.explanations, found.spent.labels))
    return np.mean(spent, axis=0)


def test_a_good_start_saves_most_labels():
    rng = np.random.default_rng(0)
    plane = a_plane(rng, 20)
    job = a_job(ModelOracle(plane, Mechanism("l2")), start=rng.normal(size=20))
    cold = extract_by_labels(job.session, 1e-6, job.start, job.where, job.rng).spent.labels
    few, labels = labels_spent(lambda oracle, s: oracle, "l2")
    assert few == 4
    assert labels < 0.25 * cold
    # A random margin hides the offset, not the direction: a few labels find that out.
    few, labels = labels_spent(lambda oracle, s: RandomRadius(oracle, 0.5, rng=s), "l2")
    assert few == 4
    assert labels < 0.3 * cold
    # ℓ1 steps show one feature only: 3p answers, whose plane is exact.
    few, labels = labels_spent(lambda oracle, s: oracle, "l1")
    assert few == 60
    assert labels < 0.3 * cold
    few, labels = labels_spent(lambda oracle, s: Rounded(oracle, 2), "l2")
    assert few == 4
    assert labels < 0.75 * cold


def test_the_law_of_warm_starts():
    for decimals in (1, 2, 3, 4):
        _, labels = labels_spent(lambda oracle, s: Rounded(oracle, decimals), "l2", seeds=3)  # noqa: B023
        angle = 10.0**-decimals / math.sqrt(12) * math.sqrt(20 / 4)
        assert predict_warm(20, 1e-6, angle) == pytest.approx(labels, rel=0.3)
    assert predict_warm(20, 1e-6, 1.0) <= math.ceil(predicted_labels(20, 1e-6))


def test_a_useless_start_goes_cold():
    rng = np.random.default_rng(1)
    plane = a_plane(rng, 6)
    oracle = Noisy(ModelOracle(plane, Mechanism("l2")), 50.0, rng=0)
    found = extract_warm(a_job(oracle, 1e-4, start=rng.normal(size=6)))
    assert found.hyperplane.angle_to(plane) <= found.error_bound
    assert found.spent.explanations <= 18
    assert found.spent.labels < predicted_labels(6, 1e-4) + 80


def test_n_is_kept_to_and_questions_stay_inside():
    plane = Hyperplane([1.0, -1.0, 0.5], 0.1)
    oracle = Suboptimal(ModelOracle(plane, Mechanism("l1")), 0.3, rng=0)
    for where in (Box.of((-1, 1), 3), Ball.of(1.0, np.zeros(3))):
        found = extract_warm(a_job(oracle, 1e-5, where=where), n=7)
        assert found.spent.explanations == 7
        assert all(where.contains(x) for x in found.log.points)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-5


def test_a_warm_start_needs_labels_answers_and_budget():
    oracle = ModelOracle(Hyperplane([1.0, 2.0, 3.0], 1.0), Mechanism("l2"))
    with pytest.raises(InvalidInput, match="labels"):
        extract_warm(a_job(_NoLabels(oracle)))
    with pytest.raises(NoExplanation):
        extract_warm(a_job(Flaky(oracle, 1.0, "raise")))
    job = a_job(oracle, budget=12)
    with pytest.raises(BudgetExhausted):
        extract_warm(job)
    assert job.session.spent.requests == 12


@pytest.mark.parametrize("accuracy", [0.1, 1e-3, 1e-6])
def test_a_finished_run_hands_over_the_guess_that_labels_confirmed(accuracy):
    """Random radii under l2 hide the offset only: at any accuracy the direction is the exact one, and proved as far as asked."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(2, 25))
        plane = a_plane(rng, p)
        oracle = RandomRadius(ModelOracle(plane, Mechanism("l2")), 0.5, rng=seed)
        found = extract_warm(a_job(oracle, accuracy, rng=seed, start=rng.normal(size=p)))
        assert found.hyperplane.angle_to(plane) < 1e-12
        assert found.error_bound <= accuracy
        length = float(np.linalg.norm(plane.normal))
        assert abs(found.hyperplane.offset - plane.offset / length) <= found.offset_bound
        assert "held against labels" in found.method
        labelled = np.flatnonzero(found.log.labels)
        assert (found.hyperplane.labels(found.log.points[labelled]) == found.log.labels[labelled]).all()


def test_a_guess_that_labels_refute_is_not_handed_over():
    """Answers along one direction that is not the normal's, by less than the accuracy: labels may refute it, and bounds hold."""
    refuted = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(2, 8))
        plane = a_plane(rng, p)
        tilt = rng.uniform(0, 0.02)
        bent = Hyperplane(plane.normal / np.linalg.norm(plane.normal) + tilt * rng.normal(size=p) / p**0.5, 0.0).normal
        found = extract_warm(a_job(_Along(plane, bent, rng), 0.01, rng=seed, start=rng.normal(size=p)))
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 0.01
        length = float(np.linalg.norm(plane.normal))
        assert abs(found.hyperplane.offset - plane.offset / length) <= found.offset_bound
        refuted += "held against labels" not in found.method
    assert 0 < refuted < 30


def test_long_displacements_tell_which_way_is_yes():
    """Labels of short, noisy steps are many; they do not turn round the long ones, whose labels were not asked."""
    rng = np.random.default_rng(0)
    towards = np.array([0.6, 0.8, 0.0])
    log = QueryLog(mechanism=Mechanism(None, slack=None))
    truth = []
    for length in (2.0, -3.0, 2.5, -1.5):
        x = rng.normal(size=3)
        log.add_explanation(x, x + length * towards + 0.05 * rng.normal(size=3))
        truth.append(NO if length > 0 else YES)
    for _ in range(9):  # most of them point the wrong way
        x = rng.normal(size=3)
        log.add_explanation(x, x - 0.05 * towards + 0.02 * rng.normal(size=3), label=NO)
        truth.append(NO)
    x = rng.normal(size=3)
    log.add_explanation(x, x + towards, label=NO)
    truth.append(NO)
    gathered = read_log(log)
    assert gathered.oriented
    assert gathered.sides.tolist() == truth


# ---- labels from a model that is not accurate enough ---------------------------------------------------------------


def a_rough_model(job, plane, turned, bound=None):
    """The model, its normal turned by about so many radians."""
    u = plane.normal / np.linalg.norm(plane.normal)
    across = job.rng.normal(size=len(u))
    across -= (across @ u) * u
    across = across / np.linalg.norm(across) if len(u) > 1 else 0 * across
    wrong = Hyperplane(math.cos(turned) * u + math.sin(turned) * across, plane.offset / np.linalg.norm(plane.normal))
    found = extract_by_average(job, n=4)
    return replace(found, hyperplane=wrong, error_bound=bound, method="made up")


@pytest.mark.parametrize("turned", [0.0, 1e-4, 0.01, 0.1, 1.0, 2.5])
def test_labels_go_on_from_any_model(turned):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 9))
        plane, accuracy = a_plane(rng, p), 10.0 ** rng.uniform(-6, -1)
        oracle = Rounded(ModelOracle(plane, Mechanism("l1")), 1)
        job = a_job(oracle, accuracy, seed, start=rng.normal(size=p))
        found = extract_from(job, a_rough_model(job, plane, turned))
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= accuracy * (1 + 1e-9)
        length = float(np.linalg.norm(plane.normal))
        assert abs(found.hyperplane.offset - plane.offset / length) <= found.offset_bound


def test_the_better_the_model_the_fewer_labels():
    spent = []
    for turned, bound in ((1e-3, None), (1e-3, 2e-3), (0.1, None), (2.0, None)):
        rng = np.random.default_rng(7)
        plane = a_plane(rng, 20)
        job = a_job(Rounded(ModelOracle(plane, Mechanism("l1")), 1), 1e-6, start=rng.normal(size=20))
        rough = a_rough_model(job, plane, turned, bound)
        before = job.session.spent.labels
        found = extract_from(job, rough)
        assert found.hyperplane.angle_to(plane) <= found.error_bound <= 1e-6
        spent.append(job.session.spent.labels - before)
    known, told, poor, wrong = spent
    assert told <= known < 0.75 * poor
    assert poor < wrong < predicted_labels(20, 1e-6) + 40


def test_rounded_answers_in_a_box_are_where_labels_start():
    """Their model has no bound, and is a few hundredths off: labels from scratch would cost a third more."""
    model = Hyperplane(np.random.default_rng(0).normal(size=15), 0.3)
    for distance in ("l1", "l2"):
        service = Rounded(ModelOracle(model, Mechanism(distance)), 2)
        found = extract(service, accuracy=1e-3, bounds=(-3.0, 3.0), rng=0)
        assert found.hyperplane.angle_to(model) <= found.error_bound <= 1e-3
        assert found.spent.labels < 0.75 * predicted_labels(15, 1e-3)


# ---- averages -----------------------------------------------------------------------------------------------------


def test_an_average_without_labels():
    plane = a_plane(np.random.default_rng(2), 10)
    job = a_job(_NoLabels(Noisy(ModelOracle(plane, Mechanism("l2")), 0.05, rng=0)), 5e-3)
    found = extract_by_average(job)
    assert found.spent.labels == 0
    assert not found.oriented
    assert found.error_bound is None
    assert min(found.hyperplane.angle_to(plane), found.hyperplane.flipped().angle_to(plane)) < 2e-2
    assert any("no label told" in note for note in found.assumptions)


def test_an_average_asks_as_much_as_it_takes():
    plane = a_plane(np.random.default_rng(3), 6)
    spent = []
    for accuracy in (0.03, 0.003):
        job = a_job(Noisy(ModelOracle(plane, Mechanism("l2")), 0.05, rng=1), accuracy, start=np.ones(6))
        found = extract_by_average(job, most=3000)
        assert found.hyperplane.angle_to(plane) < 3 * accuracy
        spent.append(found.spent.explanations)
    assert spent[1] > 3 * spent[0]
    assert spent[1] <= 3000
    job = a_job(Noisy(ModelOracle(plane, Mechanism("l2")), 0.05, rng=1), 1e-9, start=np.ones(6))
    assert extract_by_average(job, most=100).spent.explanations <= 100


def test_checked_averages_have_an_honest_bound():
    ratios = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 5))
        plane = a_plane(rng, p)
        exact = ModelOracle(plane, Mechanism(("l1", "l2", "linf")[seed % 3]))
        oracle = RandomRadius(exact, 0.3, rng=seed) if seed % 2 else Suboptimal(exact, 0.3, rng=seed)
        found = extract_by_average(a_job(oracle, rng=seed, start=rng.normal(size=p)), n=60, check=True)
        if found.error_bound is not None:
            assert found.hyperplane.angle_to(plane) <= found.error_bound
            length = float(np.linalg.norm(plane.normal))
            assert abs(found.hyperplane.offset - plane.offset / length) <= found.offset_bound
            ratios.append(found.error_bound)
    assert len(ratios) > 18
    assert np.median(ratios) < 0.3


def test_a_check_that_fails_gives_no_bound():
    plane = a_plane(np.random.default_rng(4), 4)
    oracle = Noisy(ModelOracle(plane, Mechanism("l2")), 0.1, rng=0)
    found = extract_by_average(a_job(oracle), n=50, check=True)
    assert found.error_bound is None
    assert any("do not flip" in note for note in found.assumptions)
    with pytest.raises(InvalidInput, match="labels"):
        extract_by_average(a_job(_NoLabels(oracle)), check=True)
    with pytest.raises(NoExplanation):
        extract_by_average(a_job(Flaky(oracle, 1.0)), n=5)
