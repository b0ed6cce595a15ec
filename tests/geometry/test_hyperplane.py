"""Hyperplanes: signs, comparison, scale, and what bad input gets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overexplain as ox
from strategies import normals


def test_signs_are_converted_here_and_only_here() -> None:
    plane = ox.Hyperplane.from_intercept([2.0, -1.0], -3.0)
    assert plane == ox.Hyperplane([2.0, -1.0], 3.0)
    assert plane.margin([3.0, 0.0]) == 3.0
    assert plane.label([3.0, 0.0]) == ox.YES
    assert plane.label([2.0, 1.0]) == ox.YES  # the plane itself is Yes
    assert plane.labels([[0.0, 0.0], [2.0, 1.0]]).tolist() == [ox.NO, ox.YES]


@given(st.integers(1, 6).flatmap(normals), st.floats(-5, 5), st.floats(-290, 290))
def test_scaling_changes_nothing(normal: np.ndarray, offset: float, exponent: float) -> None:
    plane, scale = ox.Hyperplane(normal, offset), 10.0**exponent
    scaled = ox.Hyperplane(normal * scale, offset * scale)
    x = np.random.default_rng(0).normal(size=(20, len(normal)))
    clear = np.abs(plane.margin(x)) > 1e-9
    assert np.array_equal(plane.labels(x)[clear], scaled.labels(x)[clear])
    assert plane.is_equivalent(scaled)
    assert plane.same_plane(scaled.flipped())
    assert plane.angle_to(scaled) < 1e-12


def test_power_of_two_scaling_is_exact() -> None:
    plane = ox.Hyperplane([0.1, 0.7, -0.3], 0.2)
    x = np.random.default_rng(0).normal(size=(50, 3))
    for exponent in (-1000, -500, 500, 990):
        scaled = ox.Hyperplane(np.ldexp(plane.normal, exponent), math.ldexp(plane.offset, exponent))
        assert np.array_equal(scaled.labels(x), plane.labels(x))


def test_comparison() -> None:
    plane = ox.Hyperplane([1.0, 0.0], 1.0)
    assert not plane.is_equivalent(plane.flipped())
    assert plane.same_plane(plane.flipped())
    assert not plane.same_plane(ox.Hyperplane([1.0, 0.0], 1.1))
    assert plane.angle_to(ox.Hyperplane([0.0, 1.0], 0.0)) == pytest.approx(math.pi / 2)
    assert plane.angle_to(plane.flipped()) == pytest.approx(math.pi)
    assert plane.angle_to(ox.Hyperplane([1.0, 1e-12], 0.0)) == pytest.approx(1e-12)
    assert len({plane, ox.Hyperplane([1.0, 0.0], 1.0), plane.flipped()}) == 2
    assert plane != "plane"


def test_it_does_not_change_behind_ones_back() -> None:
    normal = np.array([1.0, 2.0])
    plane = ox.Hyperplane(normal, 0.0)
    normal[0] = 5.0
    assert plane.normal[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        plane.normal[0] = 2.0


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ox.Hyperplane([0.0, 0.0], 1.0), ox.ZeroNormal, "zero"),
        (lambda: ox.Hyperplane([], 1.0), ox.DimensionMismatch, "at least one"),
        (lambda: ox.Hyperplane([[1.0]], 1.0), ox.DimensionMismatch, "shape"),
        (lambda: ox.Hyperplane([1.0, math.nan], 1.0), ox.NotFinite, "nan at entry 1"),
        (lambda: ox.Hyperplane([1.0], math.inf), ox.NotFinite, "offset"),
        (lambda: ox.Hyperplane(["a"], 1.0), ox.InvalidInput, "must be numbers"),
        (lambda: ox.Hyperplane([10**400], 1.0), ox.InvalidInput, "must be numbers"),
        (lambda: ox.Hyperplane([1.0], 0.0).label([1.0, 2.0]), ox.DimensionMismatch, "1 entries"),
        (lambda: ox.Hyperplane([1.0], 0.0).labels([[1.0], [math.inf]]), ox.NotFinite, "row 1, column 0"),
        (lambda: ox.Hyperplane([1.0], 0.0).labels([1.0]), ox.DimensionMismatch, "points are rows"),
        (lambda: ox.Hyperplane([1.0], 0.0).angle_to(ox.Hyperplane([1.0, 2.0], 0.0)), ox.DimensionMismatch, "1 and 2"),
    ],
)
def test_bad_input_is_refused(make: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()  # type: ignore[operator]
