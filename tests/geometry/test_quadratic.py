"""Quadratic models: signs, scales, and what counts as the same classifier."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite, ZeroNormal
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.quadratic import QuadraticModel


def random_model(rng: np.random.Generator, p: int) -> QuadraticModel:
    return QuadraticModel(rng.normal(size=(p, p)), rng.normal(size=p), rng.normal())


@pytest.mark.parametrize("p", [1, 2, 5])
def test_values_and_labels_against_exact_rationals(p: int) -> None:
    rng = np.random.default_rng(p)
    model = random_model(rng, p)
    X = rng.normal(size=(40, p))
    M = [[Fraction(v) for v in row] for row in model.matrix.tolist()]
    for x, value, label, gradient in zip(X, model.value(X), model.labels(X), model.gradient(X), strict=True):
        f = [Fraction(v) for v in x.tolist()]
        exact = sum(f[i] * M[i][j] * f[j] for i in range(p) for j in range(p))
        exact += sum(Fraction(v) * w for v, w in zip(model.linear.tolist(), f, strict=True)) + Fraction(model.constant)
        assert value == pytest.approx(float(exact), abs=1e-13)
        assert label == model.label(x) == (YES if exact >= 0 else NO)
        step = 1e-6
        slopes = [(model.value(x + step * e) - model.value(x - step * e)) / (2 * step) for e in np.eye(p)]
        assert gradient == pytest.approx(slopes, abs=1e-7)


@pytest.mark.parametrize("exponent", [-500, -300, 0, 300, 500])
def test_powers_of_two_change_no_label(exponent: int) -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, 4)
    X = rng.normal(size=(200, 4))
    # Data times s: q_s(x) = q(x/s); its coefficients M/s², linear/s may leave the range, times s² they do not (for s ≤ 2^500).
    s = 2.0**exponent
    scaled = QuadraticModel(model.matrix, model.linear * s, model.constant * s * s)
    assert np.array_equal(scaled.labels(X * s), model.labels(X))
    assert np.array_equal(
        QuadraticModel(model.matrix * s, model.linear * s, model.constant * s).labels(X), model.labels(X)
    )


def test_points_of_any_size_have_a_label() -> None:
    model = QuadraticModel([[1.0, 0.0], [0.0, -2.0]], [0.0, 0.0], 1.0)
    assert model.label([1e300, 1e300]) == NO
    assert model.label([1e300, 0.0]) == YES
    assert model.value([1e300, 0.0]) == np.inf


def test_only_the_symmetric_part_counts_and_equality_is_by_value() -> None:
    one, other = QuadraticModel([[1.0, 3.0], [1.0, 0.0]], [1, 2], 3), QuadraticModel([[1, 2], [2, 0]], [1, 2], 3)
    assert one == other
    assert hash(one) == hash(other)
    assert one != QuadraticModel([[1, 2], [2, 0]], [1, 2], 4)
    assert one != "a model"
    with pytest.raises(ValueError):
        one.matrix[0, 0] = 2.0


def test_distance_is_the_angle_between_monomial_coefficients() -> None:
    model = QuadraticModel([[1.0, 2.0], [2.0, 3.0]], [4.0, 5.0], 6.0)
    assert model.coefficients.tolist() == [6.0, 4.0, 5.0, 1.0, 3.0, 4.0]
    x, y = 0.3, -1.7
    assert model.coefficients @ [1, x, y, x * x, y * y, x * y] == pytest.approx(model.value([x, y]))
    assert model.distance_to(QuadraticModel(7 * model.matrix, 7 * model.linear, 42.0)) < 1e-15
    assert model.distance_to(model.flipped()) == pytest.approx(np.pi)
    other = QuadraticModel([[1.0, 2.0], [2.0, 3.0]], [4.0, 5.0], 6.001)
    cosine = model.coefficients @ other.coefficients
    cosine /= np.linalg.norm(model.coefficients) * np.linalg.norm(other.coefficients)
    assert model.distance_to(other) == pytest.approx(np.arccos(cosine), rel=1e-4)
    assert not model.is_equivalent(other, 1e-8)
    assert model.is_equivalent(other, 1e-3)


def test_a_hyperplane_is_a_quadratic_model_without_squares() -> None:
    plane = Hyperplane([1.0, -2.0], 0.5)
    model = QuadraticModel.of_hyperplane(plane)
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert np.array_equal(model.labels(X), plane.labels(X))
    assert model.is_linear()
    assert model.hyperplane() == plane
    with pytest.raises(InvalidInput, match="no hyperplane"):
        QuadraticModel([[1.0]], [0.0], 1.0).hyperplane()


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ZeroNormal, match="same label"):
        QuadraticModel(np.zeros((2, 2)), [0.0, 0.0], 1.0)
    with pytest.raises(DimensionMismatch, match="2 × 2"):
        QuadraticModel(np.zeros((3, 2)), [0.0, 1.0], 1.0)
    with pytest.raises(NotFinite):
        QuadraticModel(np.eye(2), [0.0, np.nan], 1.0)
    with pytest.raises(DimensionMismatch, match="cannot be compared"):
        QuadraticModel(np.eye(2), [0.0, 0.0], 1.0).distance_to(QuadraticModel([[1.0]], [0.0], 1.0))
