"""Services that pass on what a solver returns: optimal to its tolerance, past a margin that nobody declares."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import overexplain as ox

SOLVERS = ("CLARABEL", "OSQP", "SCS", "HIGHS")
DISTANCES = ("l1", "l2", "linf")
MARGINS = (0.0, 1e-4, 1e-2, 0.5)


class SolverService:
    """The nearest point across a plane, as cvxpy's solver gives it with its own settings; declared as exact."""

    def __init__(
        self, plane: ox.Hyperplane, distance: str, solver: str, margin: float, labels: bool, one_sided: bool = False
    ) -> None:
        self.dimension, self.mechanism, self.distance = plane.dimension, ox.Mechanism(distance), distance
        self._plane, self._solver, self._margin, self._one_sided = plane, solver, margin, one_sided
        size = {"l1": cp.norm1, "l2": cp.sum_squares, "linf": cp.norm_inf}[distance]
        self._x, self._side = cp.Parameter(plane.dimension), cp.Parameter(plane.dimension)
        self._level, self._answer = cp.Parameter(), cp.Variable(plane.dimension)
        self._problem = cp.Problem(
            cp.Minimize(size(self._answer - self._x)), [self._side @ self._answer <= self._level]
        )
        if labels:
            self.classify = plane.label

    def explain(self, x: Any) -> Any:
        """The solver's answer; None where it has none."""
        side = float(self._plane.label(x))
        if self._one_sided and side > 0:
            return None
        self._x.value, self._side.value = np.asarray(x), side * self._plane.normal
        self._level.value = side * self._plane.offset - self._margin
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a solver's word about its accuracy reaches no client
                self._problem.solve(solver=self._solver)
        except cp.SolverError:
            return None
        return None if self._answer.value is None else self._answer.value.copy()


def errors_of(found: ox.Extraction, plane: ox.Hyperplane, distance: str) -> tuple[float, float]:
    """The true angle and the true error of the offset, both models scaled to dual length 1, whichever way up."""
    dual = ox.norm(distance).dual
    scaled = [(h.normal / float(dual(h.normal)), h.offset / float(dual(h.normal))) for h in (found.hyperplane, plane)]
    (ours, offset), (true, level) = scaled
    turned = 1.0 if found.oriented or ours @ true > 0 else -1.0
    unit, other = ours / np.linalg.norm(ours), turned * true / np.linalg.norm(true)
    return 2 * float(np.arcsin(min(1.0, np.linalg.norm(unit - other) / 2))), abs(offset - turned * level)


def standardized(features: int) -> ox.Hyperplane:
    """A logistic regression on the first features of scikit-learn's breast_cancer data, in standard deviations."""
    rows, labels = load_breast_cancer(return_X_y=True)
    scaled = StandardScaler().fit_transform(rows)[:, :features]
    return _fitted(scaled, labels)


def one_hot(seed: int) -> ox.Hyperplane:
    """A logistic regression on whole numbers, flags and two one-hot groups."""
    rng = np.random.default_rng(seed)
    n = 400
    months, flag = rng.integers(1, 60, n), rng.integers(0, 2, n)
    groups = [np.eye(k)[rng.integers(0, k, n)] for k in (3, 4)]
    rows = np.column_stack([months, flag, *groups])
    score = rows @ rng.normal(size=rows.shape[1]) * [1.0] - 10 * rng.normal(size=n)
    return _fitted(rows, score > np.median(score))


def _fitted(rows: np.ndarray, labels: np.ndarray) -> ox.Hyperplane:
    model = LogisticRegression(max_iter=5000).fit(rows, labels)
    return ox.Hyperplane(model.coef_[0], -float(model.intercept_[0]))
