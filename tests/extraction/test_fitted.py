"""The plane through answers near it: its proof must hold whatever the errors are, and must be worth having."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from overexplain.errors import InvalidInput
from overexplain.extraction.inexact.fitted import _longest, fit_plane
from overexplain.geometry.hyperplane import Hyperplane


def angle(one, other):
    """Up to sign."""
    return min(Hyperplane(one, 0.0).angle_to(Hyperplane(side * np.asarray(other), 0.0)) for side in (1, -1))


def placed(rng, p, n, error, units=1.0, centre=0.0, gap=0.0):
    """Points off a random plane by exactly the errors drawn, as far as float64 allows, with bounds that cover what it does not."""
    normal = rng.normal(size=p) / units
    normal /= np.linalg.norm(normal)
    middle = centre * rng.normal(size=p)
    offset = float(normal @ middle)
    points = middle + units * rng.normal(size=(n, p))
    sides = np.resize([-1, 1], n)
    drawn = error * (rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else rng.uniform(-1, 1, n))
    for _ in range(3):
        points -= np.outer(points @ normal - offset + gap * sides - drawn, normal)
    rounding = 4 * p * 2.0**-53 * (np.abs(points) @ np.abs(normal) + abs(offset) + np.linalg.norm(points, axis=1))
    return normal, offset, sides, points, np.broadcast_to(error, n) + rounding


def test_bounds_hold_in_every_case():
    rng = np.random.default_rng(1)
    worst, proved = 0.0, 0
    for _ in range(800):
        p = int(rng.integers(1, 9))
        n = p + int(rng.integers(1, 12)) + 1
        units = 10.0 ** rng.uniform(-3, 3, p) if rng.random() < 0.4 else np.ones(p)
        error = (
            10.0 ** rng.uniform(-12, -1) * (10.0 ** rng.uniform(-4, 0, n) if rng.random() < 0.5 else 1.0) * units.min()
        )
        gap = rng.uniform(0, 2) * (rng.random() < 0.5)
        normal, offset, sides, points, errors = placed(rng, p, n, error, units, 10.0 ** rng.uniform(-2, 4), gap)
        fit = fit_plane(points, errors, sides if gap else None)
        if fit.angle_bound is None:
            continue
        proved += 1
        sign = 1 if fit.normal @ normal >= 0 else -1
        assert angle(fit.normal, normal) <= fit.angle_bound
        assert abs(sign * fit.level - offset) <= fit.offset_bound
        assert fit.angle_bound > 0
        worst = max(worst, angle(fit.normal, normal) / fit.angle_bound)
    assert proved > 700
    assert worst > 0.5  # the worst errors come close: the bound is not just large


def test_bound_is_the_textbook_one_or_better():
    rng = np.random.default_rng(2)
    for p in (2, 5, 20):
        _, _, _, points, errors = placed(rng, p, 3 * p, 1e-4)
        least = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)[p - 2]
        assert fit_plane(points, errors).angle_bound <= math.asin(np.linalg.norm(errors) / least) * (1 + 1e-6)


def test_the_longest_lever_bounds_every_corner():
    rng = np.random.default_rng(3)
    for _ in range(60):
        p, n = int(rng.integers(1, 5)), int(rng.integers(2, 9))
        lever, errors = rng.normal(size=(p, n)) * 10.0 ** rng.uniform(-2, 2, n), rng.uniform(0, 1, n)
        corners = np.array(list(product((-1.0, 1.0), repeat=n))) * errors
        most = np.linalg.norm(corners @ lever.T, axis=1).max()  # a convex function is largest in a corner
        assert most <= _longest(lever, errors) * (1 + 1e-12)
        assert _longest(lever, errors) <= np.linalg.norm(lever, 2) * np.linalg.norm(errors) * (1 + 1e-12)


def test_exact_rationals_agree_in_two_dimensions():
    rng = np.random.default_rng(4)
    for _ in range(50):
        x, slope, level = rng.integers(-99, 99, 3), int(rng.integers(-9, 10)), int(rng.integers(-50, 50))
        x = np.unique(x)
        if len(x) < 2:
            continue
        points = [
            [float(v), float(slope * v + level)] for v in x
        ]  # y = slope·x + level, whole numbers: no rounding at all
        fit = fit_plane(points, np.zeros(len(x)))
        assert fit.angle_bound < 1e-12
        cross = Fraction(float(fit.normal[0])) + slope * Fraction(float(fit.normal[1]))  # normal · (1, slope)
        assert abs(cross) <= Fraction(fit.angle_bound) * Fraction(math.hypot(1, slope) * (1 + 1e-9))


def test_a_constant_margin_is_found_and_costs_nothing():
    rng = np.random.default_rng(5)
    normal, offset, sides, points, errors = placed(rng, 6, 14, 0.0, gap=0.7)
    fit = fit_plane(points, errors, sides)
    sign = 1 if fit.normal @ normal > 0 else -1
    assert angle(fit.normal, normal) <= fit.angle_bound < 1e-12
    assert sign * fit.gap == pytest.approx(0.7, abs=1e-12)
    assert sign * fit.level == pytest.approx(offset, abs=1e-12)
    assert (
        fit_plane(points, np.full(len(points), 0.8)).angle_bound != fit.angle_bound
    )  # one plane through both does not fit


def test_features_in_very_different_units_keep_their_proof():
    rng = np.random.default_rng(6)
    units = np.array([1e6, 1.0, 1e-6])
    normal, _, _, points, errors = placed(rng, 3, 12, 1e-12, units)
    fit = fit_plane(points, errors)
    assert angle(fit.normal, normal) <= fit.angle_bound < 1e-5


def test_one_bad_point_does_not_spoil_many_good_ones():
    rng = np.random.default_rng(7)
    error = np.full(40, 1e-9)
    error[3] = 1e-2
    normal, _, _, points, errors = placed(rng, 4, 40, error)
    fit = fit_plane(points, errors)
    assert angle(fit.normal, normal) <= fit.angle_bound < 1e-7


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 3)), [[0.0, 0.0, 1.0]], np.outer(np.arange(6.0), [1.0, 2.0, 3.0])],
    ids=["one place", "one point", "one line"],
)
def test_too_little_proves_nothing(points):
    fit = fit_plane(points, np.full(len(points), 1e-9))
    assert fit.angle_bound is None
    assert fit.offset_bound is None
    assert np.linalg.norm(fit.normal) == pytest.approx(1)


def test_errors_as_large_as_the_points_prove_nothing():
    assert fit_plane(np.random.default_rng(0).normal(size=(9, 3)), np.full(9, 10.0)).angle_bound is None


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInput, match="negative"):
        fit_plane([[0.0, 1.0], [1.0, 0.0]], [0.1, -0.1])
    with pytest.raises(InvalidInput, match="sides must be"):
        fit_plane([[0.0, 1.0], [1.0, 0.0]], [0.1, 0.1], [1, 0])
