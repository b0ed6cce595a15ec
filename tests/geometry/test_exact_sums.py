"""Labels are those of the numbers as they stand: exact rationals agree, on planes, at corners, and at any size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.exact_sums import exact_sums
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.exact import ModelOracle

floats = st.floats(allow_nan=False, allow_infinity=False)


def in_rationals(row: np.ndarray, x: np.ndarray, constant: float) -> Fraction:
    return sum((Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), x.tolist(), strict=True)), Fraction(constant))


@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=6), floats)
def test_signs_of_sums_of_any_floats(terms: list[tuple[float, float]], constant: float) -> None:
    row, x = np.array(terms).T
    (found,) = exact_sums(row[None], x, np.array([constant]))
    true = in_rationals(row, x, constant)
    assert (found > 0, found < 0) == (true > 0, true < 0)


@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=6).filter(lambda t: any(a for a, _ in t)), floats)
def test_labels_of_any_point_and_plane(terms: list[tuple[float, float]], offset: float) -> None:
    normal, x = np.array(terms).T
    plane = Hyperplane(normal, offset)
    said = YES if in_rationals(normal, x, -offset) >= 0 else NO
    assert plane.label(x) == said
    assert plane.labels(np.array([x, x * 0.5, x]))[[0, 2]].tolist() == [said, said]


@pytest.mark.parametrize("p", [1, 3, 30, 200])
def test_labels_of_explanations_which_lie_on_the_plane_to_rounding(p: int) -> None:
    rng = np.random.default_rng(p)
    plane = Hyperplane(rng.normal(size=p), float(rng.normal()))
    points = ModelOracle(plane, Mechanism("l2")).explain(rng.normal(size=(200, p)))
    true = [YES if in_rationals(plane.normal, x, -plane.offset) >= 0 else NO for x in points]
    assert {YES, NO} == set(true)
    assert plane.labels(points).tolist() == true  # all at once
    assert [plane.label(x) for x in points] == true  # one by one
    assert plane.labels(np.asfortranarray(points)[::-1]).tolist() == true[::-1]


def test_overflow_on_the_way_decides_nothing() -> None:
    plane = Hyperplane([1.0, 1.0, -1.0], 0.0)
    assert plane.label([1.7e308, 1.7e308, 1.7e308]) == YES
    assert plane.labels([[-1.7e308, -1.7e308, -1.7e308], [1e308, 1e308, 1.7e308]]).tolist() == [NO, YES]


def test_classes_where_scores_tie_but_for_rounding() -> None:
    rng = np.random.default_rng(5)
    model = ArgmaxModel(rng.normal(size=(6, 3)), rng.normal(size=6))
    points = []
    for _ in range(200):  # where three of the classes meet
        rows = rng.choice(6, size=3, replace=False)
        difference = model.weights[rows[1:]] - model.weights[rows[0]]
        level = model.intercepts[rows[0]] - model.intercepts[rows[1:]]
        points.append(np.linalg.lstsq(difference, level, rcond=None)[0])
    true = []
    for x in points:
        scores = [in_rationals(w, x, c) for w, c in zip(model.weights, model.intercepts.tolist(), strict=True)]
        true.append(scores.index(max(scores)))
    assert model.labels(points).tolist() == true
    assert [model.label(x) for x in points] == true


def test_the_first_of_classes_that_tie_exactly() -> None:
    model = ArgmaxModel([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0.0, 0.0, 0.0])
    assert model.labels([[2.0, 2.0], [1.0, 3.0], [3.0, 1.0]]).tolist() == [0, 1, 0]


def test_huge_scores_tie_without_a_warning() -> None:
    assert ArgmaxModel([[1e-300], [2e-300]], [1e308, 1e308]).labels([[1.0], [-1.0]]).tolist() == [1, 0]
    assert Hyperplane([1.0], 1.0).labels(np.zeros((0, 1))).shape == (0,)
    assert ArgmaxModel([[1.0], [2.0]], [0.0, 0.0]).labels(np.zeros((0, 1))).shape == (0,)


def test_one_large_row_does_not_slow_the_others_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only rows that are in doubt by themselves are summed exactly."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(1000, 4)), np.full(4, 1e20)])
    plane, model = Hyperplane(rng.normal(size=4), 0.1), ArgmaxModel(rng.normal(size=(3, 4)), np.zeros(3))
    before = plane.labels(rows[:-1]), model.labels(rows[:-1])
    for name in ("hyperplane", "argmax"):
        monkeypatch.setattr(f"overexplain.geometry.{name}.exact_sums", None)
    assert np.array_equal(plane.labels(rows)[:-1], before[0])
    assert np.array_equal(model.labels(rows)[:-1], before[1])
