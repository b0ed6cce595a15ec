"""A quadratic classifier: Yes where x'Mx + linear·x + constant ≥ 0. Ellipsoids, cones, pairs of planes, and planes too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain.errors import DimensionMismatch, InvalidInput, ZeroNormal
from overexplain.geometry.arrays import FloatArray, as_point, as_point_or_rows, as_rows, frozen
from overexplain.geometry.hyperplane import NO, YES, Hyperplane


@final
@dataclass(frozen=True, eq=False, init=False)
class QuadraticModel:
    """Yes (+1) where ``q(x) = x'Mx + linear·x + constant ≥ 0``, No (−1) elsewhere; only the symmetric part of M counts.

    >>> disc = QuadraticModel([[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0], 4.0)
    >>> disc.label([1.0, 1.0]), disc.label([2.0, 1.0])
    (1, -1)
    """

    matrix: FloatArray
    linear: FloatArray
    constant: float

    def __init__(self, matrix: ArrayLike, linear: ArrayLike, constant: float) -> None:
        slope = as_point(linear, name="linear")
        square = as_rows(matrix, len(slope), "matrix")
        if len(square) != len(slope):
            raise DimensionMismatch(f"matrix must be {len(slope)} × {len(slope)}, as linear is, got {square.shape}")
        square = square / 2 + square.T / 2
        if not square.any() and not slope.any():
            raise ZeroNormal("matrix and linear are zero: every point would get the same label, there is no boundary")
        object.__setattr__(self, "matrix", frozen(square))
        object.__setattr__(self, "linear", frozen(slope))
        object.__setattr__(self, "constant", float(as_point([constant], 1, "constant")[0]) + 0.0)

    @classmethod
    def of_hyperplane(cls, plane: Hyperplane) -> QuadraticModel:
        """The same classifier with M = 0."""
        return cls(np.zeros((plane.dimension, plane.dimension)), plane.normal, -plane.offset)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuadraticModel):
            return NotImplemented
        return np.array_equal(self._homogeneous, other._homogeneous)

    def __hash__(self) -> int:
        return hash((self.matrix.tobytes(), self.linear.tobytes(), self.constant))

    @property
    def dimension(self) -> int:
        """The number of features."""
        return len(self.linear)

    @cached_property
    def _homogeneous(self) -> FloatArray:
        """Q with q(x) = (x, 1)'Q(x, 1)."""
        half = self.linear[:, None] / 2
        return np.block([[self.matrix, half], [half.T, np.array([[self.constant]])]])

    @cached_property
    def _exponent(self) -> int:
        return int(np.frexp(np.abs(self._homogeneous).max())[1])

    def _scaled(self, points: FloatArray) -> tuple[Any, Any]:
        """q(x) divided by size²·2^exponent, and the sizes: nothing overflows however large the coefficients or x are."""
        rows = np.atleast_2d(points)
        # Powers of two cost no digit, so that multiplying all data by one changes no label.
        size = np.ldexp(1.0, np.maximum(0, np.frexp(np.abs(rows).max(axis=1))[1]))
        with np.errstate(under="ignore"):
            lifted = np.column_stack([rows / size[:, None], 1 / size])
            values = ((lifted @ np.ldexp(self._homogeneous, -self._exponent)) * lifted).sum(axis=1)
        return values, size

    def value(self, x: ArrayLike) -> Any:
        """q(x) for a point (a float) or for rows (an array)."""
        points = as_point_or_rows(x, self.dimension)
        values, size = self._scaled(points)
        with np.errstate(over="ignore", under="ignore"):
            values = np.ldexp(values * size * size, self._exponent)
        return float(values[0]) if points.ndim == 1 else values

    def gradient(self, x: ArrayLike) -> FloatArray:
        """∇q(x) = 2Mx + linear for a point, or for rows."""
        points = as_point_or_rows(x, self.dimension)
        return np.asarray(2 * points @ self.matrix + self.linear)

    def label(self, x: ArrayLike) -> int:
        """+1 (Yes) or −1 (No) for one point."""
        return YES if self._scaled(as_point(x, self.dimension))[0][0] >= 0 else NO

    def labels(self, X: ArrayLike) -> NDArray[np.int8]:
        """The labels of all rows."""
        return np.where(self._scaled(as_rows(X, self.dimension))[0] >= 0, YES, NO).astype(np.int8)

    def flipped(self) -> QuadraticModel:
        """The same surface with Yes and No exchanged (but for the surface itself, which stays Yes)."""
        return QuadraticModel(-self.matrix, -self.linear, -self.constant)

    @cached_property
    def coefficients(self) -> FloatArray:
        """The (p+1)(p+2)/2 coefficients of 1, x_i, x_i² and x_i·x_j, i < j: q as a vector."""
        upper = np.triu(np.ones((self.dimension, self.dimension), dtype=bool), 1)
        return frozen(np.concatenate([[self.constant], self.linear, np.diag(self.matrix), 2 * self.matrix[upper]]))

    def distance_to(self, other: QuadraticModel) -> float:
        """The angle between the coefficient vectors, from 0 to π: 0 for q and any positive multiple of it."""
        if other.dimension != self.dimension:
            raise DimensionMismatch(
                f"quadratic models of {self.dimension} and {other.dimension} features cannot be compared"
            )
        mine, theirs = _unit(self.coefficients), _unit(other.coefficients)
        return 2 * math.atan2(float(np.linalg.norm(mine - theirs)), float(np.linalg.norm(mine + theirs)))

    def is_equivalent(self, other: QuadraticModel, tol: float = 1e-8) -> bool:
        """Same classifier: the coefficient vectors point the same way within `tol` radians."""
        return self.distance_to(other) <= tol

    def is_linear(self) -> bool:
        """True if M = 0: Yes on one side of a hyperplane."""
        return not self.matrix.any()

    def hyperplane(self) -> Hyperplane:
        """The hyperplane that a model with M = 0 is."""
        if not self.is_linear():
            raise InvalidInput("this model has quadratic terms: it is no hyperplane")
        return Hyperplane(self.linear, -self.constant)


def _unit(values: FloatArray) -> FloatArray:
    values = values / np.abs(values).max()
    return np.asarray(values / np.linalg.norm(values))
