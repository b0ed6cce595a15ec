"""Averages: the laws they follow, how well the best is chosen without the truth, and the answers they are made from."""

import math

import numpy as np
import pytest

from overexplain.errors import InvalidInput, NoExplanation
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.inexact.estimators import (
    best_estimate,
    displacement_mean,
    n_needed,
    ols_along,
    separator,
    sided_tls,
    split_angle,
)
from overexplain.extraction.inexact.gathered import gather
from overexplain.extraction.job import Job
from overexplain.extraction.session import Session
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.degraded import NearestRow, Noisy, Overshoot, RandomRadius, Rounded, Suboptimal
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import Flaky, OneSided

P = 20


def a_case(seed, wrap, distance, n, p=P):
    """Questions from N(0, I), their answers and labels, and the unit normal."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=p)
    plane = Hyperplane(normal, 0.3 * np.linalg.norm(normal) * rng.normal())
    X = rng.normal(size=(n, p))
    return X, wrap(ModelOracle(plane, Mechanism(distance)), seed).explain(X), plane.labels(X).astype(np.int64), plane


def off(normal, plane):
    return Hyperplane(normal, 0.0).angle_to(plane)


@pytest.mark.parametrize(
    ("wrap", "noise"),
    [
        (lambda oracle, seed: Noisy(oracle, 0.1, rng=seed), 0.1),
        (lambda oracle, _: Rounded(oracle, 2), 0.01 / math.sqrt(12)),
        (lambda oracle, _: Rounded(oracle, 1), 0.1 / math.sqrt(12)),
    ],
    ids=["noise 0.1", "2 decimals", "1 decimal"],
)
def test_the_square_root_law(wrap, noise):
    errors, laws = [], []
    for seed in range(5):
        X, Z, sides, plane = a_case(seed, wrap, "l2", 2000)
        errors.append(off(displacement_mean(X, Z, sides), plane))
        distance = math.sqrt(float(np.mean(plane.margin(X) ** 2))) / np.linalg.norm(plane.normal)
        laws.append(noise * math.sqrt(P / 2000) / distance)
        # and turned round: as many answers as the law says for this accuracy
        assert n_needed(P, laws[-1], noise, distance) == pytest.approx(2000, abs=1)
    assert 0.6 * np.mean(laws) < np.mean(errors) < 1.6 * np.mean(laws)


def test_random_margins_three_ways():
    """Margins U(0, 0.5) under ℓ1: total least squares is biased, the regression is not, the separator is fastest in the end."""
    few, many = {}, {}
    for store, n in ((few, 200), (many, 8000)):
        found = {"tls": [], "ols": [], "separator": []}
        for seed in range(3):
            X, Z, sides, plane = a_case(seed, lambda oracle, s: RandomRadius(oracle, 0.5, rng=s), "l1", n)
            found["tls"].append(off(sided_tls(Z, sides), plane))
            found["ols"].append(off(ols_along(X, Z, sides), plane))
            found["separator"].append(off(separator(Z, sides), plane))
        store.update({name: float(np.median(values)) for name, values in found.items()})
    assert few["separator"] / many["separator"] > 12  # about 1/n: 40
    assert 2.5 < few["ols"] / many["ols"] < 16  # about 1/√n: 6.3
    assert many["separator"] < many["tls"]
    assert many["separator"] < 5e-3
    assert many["ols"] < 1e-2


def test_a_constant_margin_is_exact():
    X, Z, sides, plane = a_case(1, lambda oracle, _: Overshoot(oracle, 0.3), "l1", 3 * P)
    assert off(sided_tls(Z, sides), plane) < 1e-13
    assert off(ols_along(X, Z, sides), plane) < 1e-12
    assert best_estimate(X, Z, sides).angle < 1e-12


def test_relative_suboptimality_biases_least_squares_visibly():
    X, Z, sides, plane = a_case(2, lambda oracle, s: Suboptimal(oracle, 0.3, rng=s), "l1", 1500, p=8)
    best = best_estimate(X, Z, sides)
    tls = off(sided_tls(Z, sides), plane)
    assert best.name != "total least squares"
    assert off(best.normal, plane) < tls


CASES = {
    "l2 noise": ("l2", lambda oracle, s: Noisy(oracle, 0.1, rng=s)),
    "l2 1 decimal": ("l2", lambda oracle, _: Rounded(oracle, 1)),
    "l1 1 decimal": ("l1", lambda oracle, _: Rounded(oracle, 1)),
    "linf noise": ("linf", lambda oracle, s: Noisy(oracle, 0.1, rng=s)),
    "l1 random margin": ("l1", lambda oracle, s: RandomRadius(oracle, 0.5, rng=s)),
    "l1 beta margin": ("l1", lambda oracle, s: RandomRadius(oracle, 0.5, law="beta", rng=s)),
    "l2 random margin": ("l2", lambda oracle, s: RandomRadius(oracle, 0.5, rng=s)),
    "l2 suboptimal": ("l2", lambda oracle, s: Suboptimal(oracle, 0.1, rng=s)),
    "l1 suboptimal": ("l1", lambda oracle, s: Suboptimal(oracle, 0.1, rng=s)),
    "l1 exact": ("l1", lambda oracle, _: oracle),
    "nearest row": ("l2", lambda oracle, s: NearestRow(oracle, np.random.default_rng(s).normal(size=(400, 8)))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_choice_is_nearly_the_best_one_and_knows_its_error(name):
    distance, wrap = CASES[name]
    ratios, estimates = [], []
    for seed in range(4):
        X, Z, sides, plane = a_case(seed, wrap, distance, 300, p=8)
        best = best_estimate(X, Z, sides)
        normals = displacement_mean(X, Z, sides), sided_tls(Z, sides), ols_along(X, Z, sides), separator(Z, sides)
        least = max(1e-15, min(off(normal, plane) for normal in normals))
        ratios.append(off(best.normal, plane) / least)
        estimates.append(max(off(best.normal, plane), 1e-15) / best.angle)
        assert best.normal @ plane.normal > 0  # towards Yes
        assert np.linalg.norm(best.normal) == pytest.approx(1)
    assert np.median(ratios) < 4
    assert 0.05 < np.median(estimates) < 4


def test_offsets_and_units():
    units = np.array([1e4, 1.0, 1e-4])
    rng = np.random.default_rng(0)
    plane = Hyperplane(np.array([1.0, -2.0, 1.5]) / units, 0.7)
    X = rng.normal(size=(60, 3)) * units
    sides = plane.labels(X).astype(np.int64)
    steps = -plane.margin(X)[:, None] * np.array([0.5, -1.0, 0.2]) * units  # some fixed direction that crosses
    Z = X + steps / (plane.normal @ (np.array([0.5, -1.0, 0.2]) * units))
    best = best_estimate(X, Z, sides)
    assert off(best.normal, plane) < 1e-9
    assert best.offset == pytest.approx(plane.offset / np.linalg.norm(plane.normal), rel=1e-9)


def test_few_answers_doubt_themselves():
    X, Z, sides, plane = a_case(3, lambda oracle, _: oracle, "l1", 6)
    best = best_estimate(X, Z, sides)  # the displacement is parallel, but not along the normal
    assert off(best.normal, plane) > 0.5
    assert best.angle > 0.3
    X, Z, sides, plane = a_case(3, lambda oracle, _: oracle, "l2", 6)
    assert best_estimate(X, Z, sides).angle < 1e-7
    assert best_estimate(X[:1], Z[:1], sides[:1]).angle == 0.5


def test_unknown_sides_are_left_out_and_nothing_is_an_error():
    X, Z, sides, plane = a_case(4, lambda oracle, s: Noisy(oracle, 0.01, rng=s), "l2", 50, p=4)
    sides[::5] = 0
    Z[::5] = 1e3
    assert off(best_estimate(X, Z, sides).normal, plane) < 0.05
    with pytest.raises(InvalidInput, match="at least one"):
        best_estimate(X, Z, np.zeros(50, dtype=np.int64))
    with pytest.raises(InvalidInput, match="both sides"):
        separator(Z, np.ones(50, dtype=np.int64))
    with pytest.raises(InvalidInput, match="do not determine"):
        sided_tls(Z[:3], np.array([1, 1, -1]))
    with pytest.raises(InvalidInput, match="cancel"):
        displacement_mean(X, X, sides)


def test_one_side_only():
    X, Z, sides, plane = a_case(5, lambda oracle, s: Noisy(oracle, 0.02, rng=s), "l1", 200, p=5)
    no = sides == NO
    best = best_estimate(X[no], Z[no], sides[no])
    assert off(best.normal, plane) < 0.05


def test_separator_agrees_with_a_second_solver():
    import cvxpy as cp

    _, Z, sides, _ = a_case(6, lambda oracle, s: RandomRadius(oracle, 0.5, rng=s), "l1", 120, p=4)
    u = sided_tls(Z, sides)
    found = separator(Z, sides)
    a, b, t = cp.Variable(4), cp.Variable(), cp.Variable()
    cp.Problem(cp.Maximize(t), [cp.multiply(-sides, Z @ a - b) >= t, a @ u == 1]).solve(solver=cp.CLARABEL)
    assert Hyperplane(found, 0.0).angle_to(Hyperplane(a.value, 0.0)) < 1e-5


def test_split_halves_see_chance():
    angles, errors = [], []
    for seed in range(8):
        X, Z, sides, plane = a_case(seed, lambda oracle, s: Noisy(oracle, 0.1, rng=s), "l2", 400)
        angles.append(split_angle(displacement_mean, X, Z, sides))
        errors.append(off(displacement_mean(X, Z, sides), plane))
    assert 0.6 < np.mean(angles) / np.mean(errors) < 1.6


# ---- gathering ----------------------------------------------------------------------------------------------------


class _NoLabels:
    def __init__(self, oracle):
        self._oracle, self.dimension, self.mechanism = oracle, oracle.dimension, oracle.mechanism

    def explain(self, x):
        return self._oracle.explain(x)


def a_job(oracle, where=None, start=None, rng=0):
    where = Box.of(None, oracle.dimension) if where is None else where
    start = where.centre() if start is None else start
    return Job(Session(oracle), 1e-3, start, where, True, np.random.default_rng(rng))


PLANE = Hyperplane([1.0, 2.0, -2.0, 0.5], 3.0)
EXACT = ModelOracle(PLANE, Mechanism("l2"))


def test_gathering_meets_both_sides_with_one_label():
    job = a_job(EXACT, start=np.full(4, -20.0))
    found = gather(job, 30)
    assert found.questions.shape == found.answers.shape == (30, 4)
    assert (found.sides == PLANE.labels(found.questions)).all()
    assert min((found.sides == YES).sum(), (found.sides == NO).sum()) >= 5
    assert job.session.spent.labels == 1
    assert found.is_parallel
    assert found.oriented
    assert np.linalg.matrix_rank(found.answers - found.answers.mean(axis=0), tol=1e-6) == 3  # nothing is asked twice


def test_labels_are_asked_while_displacements_do_not_show_the_side():
    job = a_job(Suboptimal(EXACT, 0.3, rng=0))
    found = gather(job, 60)
    assert (found.sides == PLANE.labels(found.questions)).mean() > 0.97
    assert 1 < job.session.spent.labels < 40
    assert not found.is_parallel


def test_without_labels_sides_are_relative():
    for oracle in (EXACT, Suboptimal(EXACT, 0.3, rng=0)):
        job = a_job(_NoLabels(oracle))
        found = gather(job, 40)
        assert not found.oriented
        assert job.session.spent.labels == 0
        known = found.sides != 0
        assert known.mean() > 0.8
        truth = PLANE.labels(found.questions)
        agreed = (found.sides == truth)[known].mean()
        assert agreed in (0.0, 1.0)


@pytest.mark.parametrize(
    "where", [Box.of((-1, 2), 4), Box.of(([-5, -1e4, 0, 0], [5, 1e4, 1, np.inf]), 4), Ball.of(3.0, np.zeros(4))]
)
def test_questions_stay_inside(where):
    found = gather(a_job(EXACT, where), 40)
    assert all(where.contains(x) for x in found.questions)
    assert len(found.answers) == 40


def test_one_sided_and_failing_services():
    found = gather(a_job(OneSided(EXACT, NO)), 25)
    assert (found.sides == NO).all()
    assert len(found.answers) == 25
    assert found.failures["None"] > 0
    found = gather(a_job(Flaky(EXACT, 0.5, "nan", rng=0)), 25)
    assert len(found.answers) == 25
    assert found.failures["NaN row"] > 5
    job = a_job(Flaky(EXACT, 1.0, "echo"))
    with pytest.raises(NoExplanation, match="echo"):
        gather(job, 25)
    assert job.session.spent.explanations <= 25
    with pytest.raises(InvalidInput):
        gather(job, 0)


def test_a_spread_of_ones_own():
    found = gather(a_job(EXACT), 400, spread=[1.0, 10.0, 0.1, 1.0])
    near = found.questions[1:]
    sizes = np.median(np.abs(near), axis=0)
    assert sizes[1] > 5 * sizes[0] > 25 * sizes[2]


def test_displacements_show_the_normal_whatever_the_units() -> None:
    """Euclidean answers far past the plane, features of very different size: rescaling must not turn the mean displacement."""
    rng = np.random.default_rng(3)
    normal = np.array([1.0, -2.0, 0.5, 3.0])
    X = rng.normal(size=(9, 4)) * [1.0, 100.0, 0.01, 1.0]
    sides = np.where(X @ normal >= 0, 1, -1)
    step = -sides * (np.abs(X @ normal) + rng.uniform(0.1, 2.0, 9)) / (normal @ normal)
    found = best_estimate(X, X + step[:, None] * normal, sides)
    assert found.name == "mean displacement"
    assert found.normal @ normal == pytest.approx(np.linalg.norm(normal), rel=1e-12)
