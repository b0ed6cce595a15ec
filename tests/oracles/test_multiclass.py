"""The exact service of several classes: nearest points by a second opinion, empty classes, ties, scale."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedNorm
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Facets, Lp, Mahalanobis, Norm, Polyhedral, Weighted, l1, l2, linf
from overexplain.oracles.multiclass import ArgmaxOracle, MulticlassOracle

P = 4
WEIGHTS = np.array([1.0, 3.0, 0.2, 2.0])
ROOT = np.array([[2.0, 0, 0, 0], [1, 1, 0, 0], [0, -1, 3, 0], [0.5, 0, 0, 1]])
CORNERS = np.random.default_rng(3).normal(size=(7, P))
CORNERS = np.vstack([CORNERS, -CORNERS])
NORMS: dict[str, tuple[Norm, Any]] = {
    "l2": (l2, lambda v: cp.norm(v, 2)),
    "weighted l2": (Weighted(l2, WEIGHTS), lambda v: cp.norm(cp.multiply(WEIGHTS, v), 2)),
    "Mahalanobis": (Mahalanobis(ROOT @ ROOT.T), lambda v: cp.norm(ROOT.T @ v, 2)),
    "l1": (l1, lambda v: cp.norm(v, 1)),
    "linf": (linf, lambda v: cp.norm(v, "inf")),
    "weighted l1": (Weighted(l1, WEIGHTS), lambda v: cp.norm(cp.multiply(WEIGHTS, v), 1)),
    "weighted linf": (Weighted(linf, WEIGHTS), lambda v: cp.norm(cp.multiply(WEIGHTS, v), "inf")),
    "faces": (Facets(CORNERS), lambda v: cp.max(CORNERS @ v)),
}


def drawn(seed: int, classes: int = 5) -> ArgmaxModel:
    rng = np.random.default_rng(seed)
    return ArgmaxModel(rng.normal(size=(classes, P)), rng.normal(size=classes))


def nearest(model: ArgmaxModel, x: Any, target: int, length: Any) -> float:
    """The distance to the class by cvxpy."""
    step = cp.Variable(model.dimension)
    others = [k for k in range(model.classes) if k != target]
    rows = model.weights[target] - model.weights[others]
    shifts = model.intercepts[target] - model.intercepts[others]
    problem = cp.Problem(cp.Minimize(length(step)), [rows @ (x + step) + shifts >= 0])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("name", NORMS)
def test_answers_are_nearest_points_and_lie_on_the_boundary_to_the_last_digits(name: str) -> None:
    norm, length = NORMS[name]
    for seed in range(2):
        model = drawn(seed)
        oracle = ArgmaxOracle(model, Mechanism(norm))
        x = 3 * np.random.default_rng(seed + 10).normal(size=P)
        for target in range(model.classes):
            answer = oracle.explain(x, target)
            if target == model.label(x):
                assert np.array_equal(answer, x)
                continue
            scores = model.scores(answer)
            size = np.abs(model.weights).max() * (1 + np.abs(answer).sum())
            assert abs(np.delete(scores, target).max() - scores[target]) <= 1e-14 * size
            assert norm(answer - x) == pytest.approx(nearest(model, x, target, length), rel=1e-6)


def test_a_norm_given_by_corners() -> None:
    norm, model, x = Polyhedral(CORNERS), drawn(4), np.array([2.0, -1.0, 1.0, 3.0])
    oracle = ArgmaxOracle(model, Mechanism(norm))
    for target in range(model.classes):
        shares = cp.Variable(len(CORNERS), nonneg=True)
        others = [k for k in range(model.classes) if k != target]
        rows = model.weights[target] - model.weights[others]
        shifts = model.intercepts[target] - model.intercepts[others]
        problem = cp.Problem(cp.Minimize(cp.sum(shares)), [rows @ (x + CORNERS.T @ shares) + shifts >= 0])
        problem.solve(solver=cp.CLARABEL)
        assert norm(oracle.explain(x, target) - x) == pytest.approx(problem.value, rel=1e-6, abs=1e-7)


def test_a_dense_grid_finds_no_nearer_point() -> None:
    model = ArgmaxModel([[1.0, 0.2], [-0.5, 1.0], [-0.4, -1.0]], [0.1, -0.2, 0.0])
    oracle = ArgmaxOracle(model, "l2")
    grid = np.stack(np.meshgrid(*[np.linspace(-4, 4, 401)] * 2), axis=-1).reshape(-1, 2)
    labels = model.labels(grid)
    for x in np.random.default_rng(0).uniform(-2, 2, (5, 2)):
        for target in range(3):
            brute = np.linalg.norm(grid[labels == target] - x, axis=1).min()
            assert np.linalg.norm(oracle.explain(x, target) - x) == pytest.approx(brute, abs=0.03)
            assert np.linalg.norm(oracle.explain(x, target) - x) <= brute + 1e-12


@pytest.mark.parametrize("scale", [1e-6, 2.0**-40, 1e6, 2.0**40])
@pytest.mark.parametrize("name", ["l2", "l1", "linf"])
def test_scale_of_the_features(scale: float, name: str) -> None:
    model, x = drawn(7), np.array([1.0, -2.0, 0.5, 3.0])
    small = ArgmaxModel(model.weights / scale, model.intercepts)
    for target in range(model.classes):
        answer = ArgmaxOracle(model, name).explain(x, target)
        assert ArgmaxOracle(small, name).explain(scale * x, target) == pytest.approx(scale * answer, rel=1e-9)


def test_a_class_that_never_wins_has_no_explanation() -> None:
    # The third class lies below the mean of the others everywhere; the fourth has the weights of the first, and less.
    model = ArgmaxModel([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0.0, 0.0, -1.0, -0.5])
    for name in ("l2", "l1"):
        oracle = ArgmaxOracle(model, name)
        assert oracle.explain([1.0, 1.0], 2) is None
        assert oracle.explain([1.0, 1.0], 3) is None
        assert oracle.explain([1.0, 1.0], 1) == pytest.approx([0.0, 1.0], abs=1e-15)


def test_a_class_that_ties_only_is_explained_by_a_tie() -> None:
    model = ArgmaxModel([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0.0, 0.0, 0.0, 0.0])
    oracle = ArgmaxOracle(model, "l2")
    assert oracle.explain([2.0, 5.0], 2) == pytest.approx([0.0, 5.0], abs=1e-15)
    assert oracle.explain([-2.0, 5.0], 3) == pytest.approx([0.0, 5.0], abs=1e-15)
    assert np.array_equal(oracle.explain([2.0, 5.0], 3), [2.0, 5.0])


def test_the_protocol_and_what_is_refused() -> None:
    model = drawn(0)
    oracle = ArgmaxOracle(model, "linf", published=Mechanism(None))
    assert isinstance(oracle, MulticlassOracle)
    assert (oracle.dimension, oracle.classes) == (P, 5)
    assert oracle.mechanism == Mechanism(None)
    points = np.random.default_rng(0).normal(size=(10, P))
    assert oracle.classify(points).tolist() == [oracle.classify(x) for x in points]
    with pytest.raises(UnsupportedNorm, match="nearest points"):
        ArgmaxOracle(model, Mechanism(Lp(1.5)))
    with pytest.raises(UnsupportedNorm, match="radius"):
        ArgmaxOracle(model, Mechanism("l2", "l2", 0.1))
    with pytest.raises(InvalidInput, match="distance must be known"):
        ArgmaxOracle(model, Mechanism(None))
    with pytest.raises(InvalidInput, match="from 0 to 4"):
        oracle.explain(points[0], 5)
    with pytest.raises(InvalidInput, match="from 0 to 4"):
        oracle.explain(points[0], True)
    with pytest.raises(DimensionMismatch):
        oracle.explain([1.0], 0)
    with pytest.raises(InvalidInput, match="load_multiclass"):
        ArgmaxOracle("model", "l2")
