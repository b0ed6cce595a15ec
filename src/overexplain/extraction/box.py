"""Where questions may be asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray


@dataclass(frozen=True)
class Box:
    """low ≤ x ≤ high, entry by entry; infinite where there is no limit."""

    low: FloatArray
    high: FloatArray

    @staticmethod
    def of(bounds: Any, dimension: int) -> Box:
        """The box of `bounds`: None, or (low, high), each a number or one number per feature."""
        if bounds is None:
            return Box(np.full(dimension, -np.inf), np.full(dimension, np.inf))
        try:
            low, high = (np.broadcast_to(np.asarray(side, dtype=np.float64), (dimension,)).copy() for side in bounds)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"bounds must be (low, high), each a number or {dimension} numbers, got {bounds!r}"
            ) from None
        if not (low < high).all():
            raise InvalidInput(
                f"bounds must have low < high for every feature; feature {int((~(low < high)).argmax())} has not"
            )
        return Box(low, high)

    @cached_property
    def is_everything(self) -> bool:
        """True if there is no limit at all."""
        return bool(np.isinf(self.low).all() and np.isinf(self.high).all())

    def clip(self, x: FloatArray) -> FloatArray:
        """The point of the box next to x."""
        return np.clip(x, self.low, self.high)

    def contains(self, x: FloatArray) -> bool:
        """True if x may be asked."""
        return bool(((x >= self.low) & (x <= self.high)).all())

    def centre(self) -> FloatArray:
        """0 if it lies inside, else the middle of the box (one unit inside where a side is open)."""
        if ((self.low < 0) & (self.high > 0)).all():
            return np.zeros(len(self.low))
        low = np.where(np.isfinite(self.low), self.low, np.where(np.isfinite(self.high), self.high - 2.0, -1.0))
        high = np.where(np.isfinite(self.high), self.high, np.where(np.isfinite(self.low), self.low + 2.0, 1.0))
        return np.asarray(low + (high - low) / 2)

    def room(self, x: FloatArray, direction: FloatArray) -> float:
        """How far one can go from x along `direction` inside the box."""
        if self.is_everything:
            return np.inf
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            limits = np.where(direction > 0, (self.high - x) / direction, (self.low - x) / direction)
        return float(np.min(np.where(direction == 0, np.inf, limits)))
