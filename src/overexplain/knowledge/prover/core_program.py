"""Linear programs over the rows of a core or of all rows, t = 1: set up once, solved for one form after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.solvers import highs_of, run_highs

WIDEST = 1e7
"""Coordinates are looked for within this."""


@dataclass(frozen=True, eq=False)
class Least:
    """Where a form is least: its value, the place, and the weights of the rows, and of those beside them, that hold it there."""

    value: float
    place: FloatArray
    weights: FloatArray
    beside: FloatArray


@final
class CoreProgram:
    """The least cost·u over level·u = 1, rows·u ≥ 0, and a few rows beside them; it starts from where it ended the last time."""

    def __init__(self, rows: FloatArray, level: FloatArray) -> None:
        self._count, d = rows.shape
        matrix, free = np.vstack([level[None, :], rows]), np.full(d, WIDEST)
        low, high = np.append(1.0, np.zeros(self._count)), np.append(1.0, np.full(self._count, np.inf))
        self._highs = highs_of(matrix, np.zeros(d), (-free, free), (low, high))
        self._level, self._beside = level, np.zeros(0)

    def put(self, rows: FloatArray, least: FloatArray | None = None) -> None:
        """Rows ≥ `least` (0) beside the others, in the place of those of the last time."""
        self._leave()
        size = np.abs(rows).max(axis=1, initial=0.0)
        self._beside = np.where((size > 0) & (size < np.inf), size, 1.0)
        if not len(rows):
            return
        used = np.where(np.isfinite(rows), rows, 0.0) / self._beside[:, None]
        self._add(used, np.where(size > 0, (0.0 if least is None else least) / self._beside, -np.inf))

    def join(self, rows: FloatArray) -> None:
        """Rows ≥ 0 that stay, after all that stand there."""
        self._leave()
        self._beside = np.zeros(0)
        self._add(rows, np.zeros(len(rows)))
        self._count += len(rows)

    def _leave(self) -> None:
        first = self._count + 1
        if len(self._beside):
            gone = np.arange(first, first + len(self._beside), dtype=np.int32)
            self._highs.deleteRows(len(gone), gone)

    def _add(self, used: FloatArray, low: FloatArray) -> None:
        count, d = used.shape
        index = np.tile(np.arange(d, dtype=np.int32), count)
        starts = np.arange(0, count * d, d, dtype=np.int32)
        self._highs.addRows(count, low, np.full(count, np.inf), count * d, starts, index, used.ravel())

    def least(self, cost: FloatArray) -> Least | None:
        """The least, or None if there is no place, or none was found: `is_empty` tells."""
        size = float(np.abs(cost).max(initial=0.0))
        if not 0 < size < np.inf:
            return None
        self._highs.changeRowBounds(0, 1.0, 1.0)
        return self._solved(cost, size)

    def emptiness(self) -> Least | None:
        """Weights that show that there is no place at all, rows that add up to −level, and the value 0; or a place with the value
        −1, if there is one after all."""
        self._highs.changeRowBounds(0, 0.0, 1.0)
        found = self._solved(-self._level, 1.0)
        self._highs.changeRowBounds(0, 1.0, 1.0)
        return found

    def _solved(self, cost: FloatArray, size: float) -> Least | None:
        d = len(cost)
        self._highs.changeColsCost(d, np.arange(d, dtype=np.int32), cost / size)
        if run_highs(self._highs) != "optimal":
            return None
        found = self._highs.getSolution()
        prices = np.maximum(np.array(found.row_dual)[1:], 0.0) * size
        place = np.array(found.col_value)
        return Least(float(cost @ place), place, prices[: self._count], prices[self._count :] / self._beside)
