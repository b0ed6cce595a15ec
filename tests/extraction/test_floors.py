"""Lower bounds on labels: against exact areas, direct sums and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc

import overexplain as ox
from overexplain.extraction.labels.floors import box_floor, information_bound, joint_bound, predicted_labels


@pytest.mark.parametrize("accuracy", [1e-12, 1e-6, 0.1, 1.0, 1.5, math.pi / 2, 2.0, 3.0])
def test_two_and_three_features_have_closed_forms(accuracy: float) -> None:
    assert information_bound(2, accuracy) == pytest.approx(-math.log2(accuracy / math.pi), rel=1e-12)
    assert information_bound(3, accuracy) == pytest.approx(-math.log2(math.sin(accuracy / 2) ** 2), rel=1e-12)


@pytest.mark.parametrize("p", [4, 10, 101])
@pytest.mark.parametrize("accuracy", [0.05, 0.7, 1.3, 2.2])
def test_cap_by_integration(p: int, accuracy: float) -> None:
    cap, whole = (quad(lambda t: math.sin(t) ** (p - 2), 0, end)[0] for end in (accuracy, math.pi))
    assert information_bound(p, accuracy) == pytest.approx(-math.log2(cap / whole), rel=1e-6)


def test_far_below_the_range_of_float64() -> None:
    assert information_bound(10, 1e-3) == pytest.approx(
        -math.log2(betainc(4.5, 0.5, math.sin(1e-3) ** 2) / 2), rel=1e-12
    )
    for p in (100, 5000):
        value = information_bound(p, 1e-12)
        # ε halved: one bit more for each of p − 1 directions, at any size.
        assert information_bound(p, 5e-13) - value == pytest.approx(p - 1, rel=1e-9)
        assert (p - 1) * math.log2(1e12) < value < (p - 1) * math.log2(1e12) + math.log2(p) + 2


def test_a_simulated_cap() -> None:
    rows = np.random.default_rng(0).standard_normal((200_000, 4))
    share = np.mean(rows[:, 0] / np.linalg.norm(rows, axis=1) > math.cos(0.5))
    assert information_bound(4, 0.5) == pytest.approx(-math.log2(share), abs=0.02)


def test_box_floor_adds_what_a_cube_leaves_of_its_ball() -> None:
    assert box_floor(2, 1e-3) == pytest.approx(information_bound(2, 1e-3))  # an interval is its own box
    assert box_floor(3, 1e-3) - information_bound(3, 1e-3) == pytest.approx(math.log2(math.pi / 2))
    assert box_floor(4, 1e-3) - information_bound(4, 1e-3) == pytest.approx(
        math.log2(4 / 3 * math.pi / (2 / math.sqrt(3)) ** 3)
    )
    assert box_floor(100, 1e-6) - information_bound(100, 1e-6) == pytest.approx(99.5, abs=0.5)


def test_joint_bound_adds_the_offset() -> None:
    assert joint_bound(10, 1e-6, 1.0, 1.0) - information_bound(10, 1e-6) == pytest.approx(math.log2(1e6), abs=1e-9)
    assert joint_bound(10, 0.1, 1e-9, 1.0) == information_bound(10, 0.1)  # nothing left to learn
    with pytest.raises(ox.InvalidInput):
        joint_bound(10, 0.1, 0.0, 1.0)


def test_edges() -> None:
    assert information_bound(1, 0.1) == box_floor(1, 0.1) == 1.0
    assert information_bound(5, 4.0) == 0.0
    for p, accuracy in ((0, 0.1), (3, 0.0), (3, -1.0), (3, math.nan)):
        with pytest.raises(ox.InvalidInput):
            information_bound(p, accuracy)


def test_predictions_fall_with_better_guesses() -> None:
    cold = predicted_labels(30, 1e-6)
    warm = [predicted_labels(30, 1e-6, angle) for angle in (3.0, 0.3, 1e-2, 1e-4, 1e-7)]
    assert warm[0] == cold
    assert warm == sorted(warm, reverse=True)
    assert warm[-1] > 60
    assert predicted_labels(1, 1e-6) < 30
