"""A linear classifier of several classes: the class whose score weights·x + intercept is the largest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import DimensionMismatch, InvalidInput, ZeroNormal
from overexplain.geometry.arrays import FloatArray, IntArray, as_point, as_point_or_rows, as_rows, frozen
from overexplain.geometry.exact_sums import exact_sums, in_doubt
from overexplain.geometry.hyperplane import Hyperplane


@final
@dataclass(frozen=True, eq=False, init=False)
class ArgmaxModel:
    """The class of x is argmax_k ``weights[k]·x + intercepts[k]``; where scores tie, without rounding, the first of them.

    Softmax regression and one-vs-rest classifiers decide like this. Nobody who sees only decisions can tell two models
    apart whose scores differ by a common linear function, or by one positive factor: `distance_to` knows no difference.

    >>> model = ArgmaxModel([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [0.0, 0.0, 0.5])
    >>> model.labels([[2.0, 0.0], [0.0, 2.0], [-2.0, -2.0], [1.0, 1.0]]).tolist()
    [0, 1, 2, 0]
    >>> model.distance_to(ArgmaxModel(3 * model.weights + [5.0, 7.0], 3 * model.intercepts)) < 1e-12
    True
    """

    weights: FloatArray
    intercepts: FloatArray

    def __init__(self, weights: ArrayLike, intercepts: ArrayLike) -> None:
        rows = as_rows(weights, name="weights")
        if len(rows) < 2:
            raise InvalidInput(f"a classifier needs a row of weights for each of at least two classes, got {len(rows)}")
        if (rows == rows[0]).all():
            raise ZeroNormal("all classes have the same weights: every point would get the same label")
        object.__setattr__(self, "weights", frozen(rows))
        object.__setattr__(self, "intercepts", frozen(as_point(intercepts, len(rows), "intercepts")))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArgmaxModel):
            return NotImplemented
        return np.array_equal(self.weights, other.weights) and np.array_equal(self.intercepts, other.intercepts)

    def __hash__(self) -> int:
        return hash((self.weights.tobytes(), self.intercepts.tobytes()))

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.weights)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return int(self.weights.shape[1])

    @cached_property
    def _exponent(self) -> int:
        return int(np.frexp(np.abs(self.weights).max())[1])

    @cached_property
    def _scaled(self) -> tuple[FloatArray, FloatArray]:
        # Divided by a power of two, which costs no digit: weights·x then overflows only where x itself nearly does.
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.weights, -self._exponent), np.ldexp(self.intercepts, -self._exponent)

    def _scaled_scores(self, points: FloatArray) -> FloatArray:
        weights, intercepts = self._scaled
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return np.asarray(points @ weights.T + intercepts)

    def scores(self, x: ArrayLike) -> FloatArray:
        """The score of every class, for a point (one entry per class) or for rows (one row each)."""
        points = as_point_or_rows(x, self.dimension)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(self._scaled_scores(points), self._exponent))

    def label(self, x: ArrayLike) -> int:
        """The class of one point."""
        point = as_point(x, self.dimension)
        scores = self._scaled_scores(point)
        first = self._in_doubt(scores, scores.max(), point)
        if len(first) > 1:
            exact = exact_sums(self.weights[first], point, self.intercepts[first])
            return int(first[exact.index(max(exact))])
        return int(first[0])

    def labels(self, X: ArrayLike) -> IntArray:
        """The classes of all rows."""
        rows = as_rows(X, self.dimension)
        scores = self._scaled_scores(rows)
        labels = np.asarray(scores.argmax(axis=1), dtype=np.int64)
        second, best = np.partition(scores, -2, axis=1)[:, -2:].T
        for i in self._in_doubt(second, best, rows):
            labels[i] = self.label(rows[i])
        return labels

    def _in_doubt(self, scores: FloatArray, best: FloatArray, points: FloatArray) -> IntArray:
        """Where scaled scores may be as large as the best one but for rounding; what is not a number may be."""
        weights, intercepts = self._scaled
        size, constant = float(np.abs(weights).sum(axis=1).max()), float(np.abs(intercepts).max())
        with np.errstate(over="ignore", invalid="ignore"):
            return in_doubt(best - scores, size, points, constant, 2.0)

    def plane(self, first: int, second: int) -> Hyperplane:
        """The plane between two classes: Yes where `second` beats or ties `first`; ZeroNormal if their weights are equal."""
        first, second = as_class(first, self.classes), as_class(second, self.classes)
        normal = self.weights[second] - self.weights[first]
        if not normal.any():
            raise ZeroNormal(f"the classes {first} and {second} have the same weights: there is no plane between them")
        return Hyperplane.from_intercept(normal, float(self.intercepts[second] - self.intercepts[first]))

    def centred(self) -> ArgmaxModel:
        """The same classifier with weights and intercepts that sum to 0 over the classes, and weights of length 1 in all."""
        both = self._stacked()
        both = both / np.linalg.norm(both[:, :-1])
        return ArgmaxModel(both[:, :-1], both[:, -1])

    def _stacked(self) -> FloatArray:
        """(weights, intercepts) beside each other without their common part, the largest entry 1."""
        both = np.column_stack([self.weights, self.intercepts])
        both = both / np.abs(both).max()  # first: the mean of huge entries must not overflow
        both = both - both.mean(axis=0)
        return np.asarray(both / np.abs(both).max())

    def _check_partner(self, other: Any) -> None:
        if not isinstance(other, ArgmaxModel):
            raise InvalidInput(f"an ArgmaxModel can be compared with another one, got {type(other).__name__}")
        mine, theirs = self.weights.shape, other.weights.shape
        if mine != theirs:
            raise DimensionMismatch(
                f"models of {mine[0]} classes and {mine[1]} features, and of {theirs[0]} and {theirs[1]}, cannot be compared"
            )

    def distance_to(self, other: ArgmaxModel) -> float:
        """The angle (radians, 0 to π) between all weights and intercepts, common part removed.

        0 only for models that decide alike. The converse needs boundaries that tie all scores together: a class that never
        wins, or one feature and three classes, leave models that decide alike at another angle.
        """
        self._check_partner(other)
        mine, theirs = self._stacked(), other._stacked()
        mine, theirs = mine / np.linalg.norm(mine), theirs / np.linalg.norm(theirs)
        return 2 * math.atan2(float(np.linalg.norm(mine - theirs)), float(np.linalg.norm(mine + theirs)))

    def is_equivalent(self, other: ArgmaxModel, tol: float = 1e-8) -> bool:
        """Same scores, so same decisions: they differ, up to `tol` radians, by a common linear function and a positive factor."""
        return self.distance_to(other) <= tol


def as_class(value: Any, classes: int, name: str = "a class") -> int:
    """The number of a class, 0 to classes − 1; raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < classes:
        raise InvalidInput(f"{name} is a whole number from 0 to {classes - 1}, got {value!r}")
    return int(value)
