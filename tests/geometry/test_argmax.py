"""Models of several classes: who wins, ties, the planes between two classes, and what nobody can tell apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite, ZeroNormal
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.hyperplane import YES


def drawn(seed: int, classes: int = 4, features: int = 3) -> ArgmaxModel:
    rng = np.random.default_rng(seed)
    return ArgmaxModel(rng.normal(size=(classes, features)), rng.normal(size=classes))


@given(st.integers(0, 2**16), st.integers(2, 7), st.integers(1, 6))
def test_the_class_is_the_one_whose_planes_all_say_so(seed: int, classes: int, features: int) -> None:
    model = drawn(seed, classes, features)
    points = np.random.default_rng(seed + 1).normal(size=(20, features)) * 3
    labels = model.labels(points)
    assert labels.tolist() == [model.label(x) for x in points]
    assert np.array_equal(labels, model.scores(points).argmax(axis=1))
    for x, k in zip(points, labels.tolist(), strict=True):
        assert all(model.plane(other, k).label(x) == YES for other in range(classes) if other != k)


def test_ties_go_to_the_first_class() -> None:
    model = ArgmaxModel([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], [0.0, 0.0, 0.0])
    assert model.labels([[1.0, 1.0], [2.0, 1.0], [1.0, 2.0]]).tolist() == [0, 1, 0]


@given(st.integers(0, 2**16), st.floats(1e-3, 1e3))
def test_a_common_linear_function_and_a_positive_factor_are_invisible(seed: int, factor: float) -> None:
    model, rng = drawn(seed), np.random.default_rng(seed)
    twin = ArgmaxModel(factor * model.weights + rng.normal(size=3), factor * model.intercepts + rng.normal())
    assert model.distance_to(twin) < 1e-10
    assert model.is_equivalent(twin)
    points = rng.normal(size=(50, 3))
    assert np.array_equal(model.labels(points), twin.labels(points))
    assert model.is_equivalent(model.centred())
    assert np.allclose(model.centred().weights.sum(axis=0), 0, atol=1e-12)


def test_the_distance_is_an_angle() -> None:
    model = drawn(1)
    upside_down = ArgmaxModel(-model.weights, -model.intercepts)
    assert model.distance_to(upside_down) == pytest.approx(np.pi)
    both = np.column_stack([model.weights, model.intercepts])
    both -= both.mean(axis=0)
    other = both.copy()
    other[0, 0], other[1, 0] = other[0, 0] + 1e-9, other[1, 0] - 1e-9
    apart = np.linalg.norm(other - both) / np.linalg.norm(both)
    assert model.distance_to(ArgmaxModel(other[:, :-1], other[:, -1])) == pytest.approx(apart, rel=0.5)
    assert not model.is_equivalent(drawn(2))


@pytest.mark.parametrize("exponent", [-900, -300, 300, 900])
def test_scale_changes_no_label(exponent: int) -> None:
    model = drawn(3)
    points = np.random.default_rng(0).normal(size=(50, 3))
    scaled = ArgmaxModel(np.ldexp(model.weights, exponent), np.ldexp(model.intercepts, exponent))
    assert np.array_equal(scaled.labels(points), model.labels(points))
    assert scaled.is_equivalent(model)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least two classes"):
        ArgmaxModel([[1.0, 2.0]], [0.0])
    with pytest.raises(ZeroNormal, match="same weights"):
        ArgmaxModel([[1.0, 2.0], [1.0, 2.0]], [0.0, 1.0])
    with pytest.raises(DimensionMismatch, match="intercepts"):
        ArgmaxModel([[1.0], [2.0]], [0.0])
    with pytest.raises(NotFinite, match="weights"):
        ArgmaxModel([[1.0], [np.nan]], [0.0, 0.0])
    model = ArgmaxModel([[1.0], [1.0], [0.0]], [0.0, 1.0, 0.0])
    with pytest.raises(ZeroNormal, match="0 and 1"):
        model.plane(0, 1)
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        model.plane(0, 3)
    with pytest.raises(DimensionMismatch, match="cannot be compared"):
        model.distance_to(drawn(0))


def test_equal_models_hash_alike_and_arrays_are_read_only() -> None:
    model, twin = drawn(5), drawn(5)
    assert model == twin
    assert hash(model) == hash(twin)
    assert model != drawn(6)
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0, 0] = 1.0
