"""The units an audit counts in: the data's own, or standard deviations of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.linear import LinearModel

SPREAD: Final = 3.0
"""Made-up cases stay within so many standard deviations of the average."""


@dataclass(frozen=True, eq=False)
class Units:
    """audited = (own − centre) / scale, feature by feature."""

    centre: FloatArray
    scale: FloatArray

    @staticmethod
    def own(dimension: int) -> Units:
        """The data's own units."""
        return Units(np.zeros(dimension), np.ones(dimension))

    @staticmethod
    def standard(rows: FloatArray) -> Units:
        """Standard deviations from the mean; a column that never varies keeps its own unit.

        >>> units = Units.standard(np.array([[1.0, 7.0], [3.0, 7.0]]))
        >>> units.into(np.array([[5.0, 8.0]])).tolist()
        [[3.0, 1.0]]
        """
        deviation = rows.std(axis=0)
        return Units(rows.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def into(self, rows: FloatArray) -> FloatArray:
        """Rows of the data in the audited units."""
        return np.asarray((rows - self.centre) / self.scale)

    def back(self, rows: FloatArray) -> FloatArray:
        """Rows in the audited units as the data has them."""
        return np.asarray(rows * self.scale + self.centre)

    def model(self, model: LinearModel) -> LinearModel:
        """The same classifier of cases in the audited units, its coefficients at most about 1.

        >>> units = Units(np.array([1.0]), np.array([2.0]))
        >>> moved = units.model(LinearModel(Hyperplane([3.0], 9.0))).hyperplane
        >>> moved.normal.tolist(), moved.offset
        ([0.75], 0.75)
        """
        plane = of_unit_size(model.hyperplane, self.scale)
        moved = Hyperplane(plane.normal * self.scale, plane.offset - float(plane.normal @ self.centre))
        return replace(model, hyperplane=moved)

    def of(self, features: tuple[int, ...]) -> Units:
        """The units of some of the features."""
        chosen = list(features)
        return Units(self.centre[chosen], self.scale[chosen])


def of_unit_size(plane: Hyperplane, scale: FloatArray) -> Hyperplane:
    """The same classifier, divided by a power of two: coefficient × scale is then at most 1, and no square overflows."""
    largest = np.max(np.abs(plane.normal) * np.where(scale > 0, scale, 1.0))
    exponent = -int(np.frexp(largest)[1]) if np.isfinite(largest) and largest > 0 else 0
    with np.errstate(over="ignore"):
        offset = float(np.ldexp(plane.offset, exponent))
    return Hyperplane(np.ldexp(plane.normal, exponent), offset) if np.isfinite(offset) else plane


def around(rows: FloatArray, spread: float = SPREAD) -> tuple[FloatArray, FloatArray]:
    """The box of made-up cases that look like these: within `spread` standard deviations of the average.

    >>> low, high = around(np.array([[0.0, 5.0], [2.0, 5.0]]))
    >>> low.tolist(), high.tolist()
    ([-2.0, 2.0], [4.0, 8.0])
    """
    centre, deviation = rows.mean(axis=0), rows.std(axis=0)
    deviation = np.where(deviation > 0, deviation, np.maximum(np.abs(centre) / 5, _tiny(deviation)))
    return centre - spread * deviation, centre + spread * deviation


def _tiny(deviation: FloatArray) -> float:
    """A width for a column that is 0 throughout: that of the narrowest other one."""
    return float(deviation[deviation > 0].min(initial=1.0))
