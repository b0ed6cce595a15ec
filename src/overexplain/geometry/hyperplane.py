"""A linear classifier: Yes where normal·x ≥ offset."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain.errors import DimensionMismatch, ZeroNormal
from overexplain.geometry.arrays import FloatArray, as_point, as_point_or_rows, as_rows, frozen
from overexplain.geometry.exact_sums import doubt, exact_sums, in_doubt

YES: Final = 1
NO: Final = -1


@dataclass(frozen=True, eq=False, init=False)
class Hyperplane:
    """Yes (+1) where ``normal·x ≥ offset``, No (−1) elsewhere: h(x) in the paper, with (a, b) = (normal, offset).

    Labels are those of the numbers as they stand, without rounding, on the plane, too.

    >>> plane = Hyperplane([2.0, -1.0], 3.0)
    >>> plane.label([3.0, 0.0]), plane.label([0.0, 0.0])
    (1, -1)
    """

    normal: FloatArray
    offset: float

    def __init__(self, normal: ArrayLike, offset: float) -> None:
        entries = as_point(normal, name="normal")
        if not entries.any():
            raise ZeroNormal("the normal is zero: every point would get the same label, there is no plane")
        level = float(as_point([offset], 1, "offset")[0])
        object.__setattr__(self, "normal", frozen(entries))
        object.__setattr__(self, "offset", level)

    @classmethod
    def from_intercept(cls, coefficients: ArrayLike, intercept: float) -> Hyperplane:
        """The plane of ``coefficients·x + intercept ≥ 0``, scikit-learn's convention: the offset is −intercept."""
        return cls(coefficients, -intercept)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hyperplane):
            return NotImplemented
        return np.array_equal(self.normal, other.normal) and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((self.normal.tobytes(), self.offset))

    @property
    def dimension(self) -> int:
        """The number of features."""
        return len(self.normal)

    @cached_property
    def _exponent(self) -> int:
        return int(np.frexp(np.abs(self.normal).max())[1])

    @cached_property
    def _scaled(self) -> tuple[FloatArray, float, float]:
        # Divided by a power of two, which costs no digit: normal·x then overflows only where x itself nearly does.
        with np.errstate(over="ignore", under="ignore"):
            normal = np.ldexp(self.normal, -self._exponent)
            return normal, float(np.ldexp(self.offset, -self._exponent)), float(np.abs(normal).sum())

    def _scaled_margin(self, x: FloatArray) -> Any:
        normal, offset, _ = self._scaled
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            return x @ normal - offset

    def margin(self, x: ArrayLike) -> Any:
        """normal·x − offset for a point (a float) or for rows (an array)."""
        points = as_point_or_rows(x, self.dimension)
        with np.errstate(over="ignore", under="ignore"):
            margin = np.ldexp(self._scaled_margin(points), self._exponent)
        return float(margin) if points.ndim == 1 else margin

    def label(self, x: ArrayLike) -> int:
        """+1 (Yes) or −1 (No) for one point."""
        point = as_point(x, self.dimension)
        margin = float(self._scaled_margin(point))
        _, offset, size = self._scaled
        if not abs(margin) > doubt(size, point, offset):  # what is not a number is in doubt
            margin = exact_sums(self.normal[None], point, np.array([-self.offset]))[0]
        return YES if margin >= 0 else NO

    def labels(self, X: ArrayLike) -> NDArray[np.int8]:
        """The labels of all rows."""
        rows = as_rows(X, self.dimension)
        margins = self._scaled_margin(rows)
        _, offset, size = self._scaled
        labels = np.where(margins >= 0, YES, NO).astype(np.int8)
        for i in in_doubt(margins, size, rows, offset):
            labels[i] = self.label(rows[i])
        return labels

    def flipped(self) -> Hyperplane:
        """The same plane with Yes and No exchanged (but for the plane itself, which stays Yes)."""
        return Hyperplane(-self.normal, -self.offset)

    def _unit(self, with_offset: bool) -> FloatArray:
        both = np.append(self.normal, self.offset) if with_offset else np.asarray(self.normal)
        both = both / np.abs(both).max()
        return np.asarray(both / np.linalg.norm(both))

    def _check_partner(self, other: Hyperplane) -> None:
        if other.dimension != self.dimension:
            raise DimensionMismatch(
                f"hyperplanes of {self.dimension} and {other.dimension} features cannot be compared"
            )

    def is_equivalent(self, other: Hyperplane, tol: float = 1e-9) -> bool:
        """Same classifier: the unit vectors of (normal, offset) are within `tol` of each other."""
        self._check_partner(other)
        return float(np.linalg.norm(self._unit(True) - other._unit(True))) <= tol

    def same_plane(self, other: Hyperplane, tol: float = 1e-9) -> bool:
        """Same plane, whichever side is Yes (the paper's equivalent hyperplane)."""
        return self.is_equivalent(other, tol) or self.is_equivalent(other.flipped(), tol)

    def angle_to(self, other: Hyperplane) -> float:
        """The angle between the normals in radians, from 0 to π, accurate also when tiny."""
        self._check_partner(other)
        mine, theirs = self._unit(False), other._unit(False)
        return 2 * math.atan2(float(np.linalg.norm(mine - theirs)), float(np.linalg.norm(mine + theirs)))
