"""Where questions may be asked: a box, or a ball around a point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain


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


@dataclass(frozen=True)
class Ball:
    """‖x − middle‖₂ ≤ radius, as float64 computes the distance: what `clip` returns is contained, whatever was rounded.

    >>> ball = Ball.of(5.0, np.array([1.0, 0.0]))
    >>> ball.clip(np.array([9.0, 0.0])).round(9).tolist(), ball.room(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    ([6.0, 0.0], 2.5)
    """

    middle: FloatArray
    radius: float

    @staticmethod
    def of(radius: Any, middle: FloatArray) -> Ball:
        """The ball of `radius`, a positive number, around `middle`."""
        try:
            size = float(radius)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput(f"the radius of a ball must be a number, got {radius!r}") from None
        if not 0 < size < math.inf:
            raise InvalidInput(f"the radius of a ball must be positive and finite, got {radius!r}")
        return Ball(np.array(middle, dtype=np.float64), size)

    @property
    def is_everything(self) -> bool:
        """False: a ball has an end."""
        return False

    def _distance(self, x: FloatArray) -> float:
        offset = x - self.middle
        size = float(np.abs(offset).max())
        # Divided by the largest entry first: squares of tiny or huge entries would leave the range of float64.
        return size * float(np.linalg.norm(offset / size)) if 0 < size < math.inf else size

    def clip(self, x: FloatArray) -> FloatArray:
        """x, or a point of the ball next to it."""
        point, shrink = x, 2.0**-52
        distance = self._distance(x)
        while self._distance(point) > self.radius and shrink < 1:
            point = self.middle + (x - self.middle) * (self.radius / distance * (1 - shrink))
            shrink *= 2  # a middle far from 0 rounds coarsely: step back until inside
        return point if shrink < 1 else self.middle.copy()

    def contains(self, x: FloatArray) -> bool:
        """True if x may be asked."""
        return self._distance(x) <= self.radius

    def centre(self) -> FloatArray:
        """The middle."""
        return self.middle.copy()

    def room(self, x: FloatArray, direction: FloatArray) -> float:
        """How far one can go from x along `direction` inside the ball."""
        length = math.sqrt(float(direction @ direction))
        if length == 0:
            return np.inf
        offset, along = (x - self.middle) / self.radius, direction / length
        ahead = float(offset @ along)
        free = max(0.0, 1 - float(offset @ offset))
        root = math.sqrt(ahead * ahead + free)
        share = free / (root + ahead) if ahead > 0 else root - ahead  # the difference of near equals is avoided
        return share * (self.radius / length)


Where: TypeAlias = Box | Ball


def where_of(bounds: Any, dimension: int, start: FloatArray | None, domain: Domain | None) -> Where:
    """Where questions may be asked: inside `bounds`, a number meaning a ball around the start, and inside the service's domain."""
    is_radius = isinstance(bounds, int | float | np.number) and not isinstance(bounds, bool)
    if is_radius:
        middle = np.zeros(dimension) if start is None else start
        ball = Ball.of(bounds, middle)
        if domain is None or not (np.isfinite(domain.low).any() or np.isfinite(domain.high).any()):
            return ball
        half = ball.radius / math.sqrt(dimension)  # the cube inside the ball
        bounds = (middle - half, middle + half)
    box = Box.of(bounds, dimension)
    if domain is None:
        return box
    low, high = np.maximum(box.low, domain.low), np.minimum(box.high, domain.high)
    if not (low <= high).all():
        raise InvalidInput(
            f"the bounds leave no input that the service takes: feature {int((low > high).argmax())} has no value left"
        )
    members = [i for group in domain.groups for i in group]
    if any(low[i] > 0 or high[i] < 1 for i in members):
        raise InvalidInput("the bounds exclude 0 or 1 for a feature of a one-hot group: leave them open there")
    return Box(low, high)
