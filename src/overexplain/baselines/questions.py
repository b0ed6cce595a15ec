"""Which points the attacks ask: random ones where questions are allowed, farther out where no limit holds and one side is all."""

from __future__ import annotations

from collections import Counter

import numpy as np

from overexplain.baselines.attempt import Attempt
from overexplain.errors import ExtractionFailed
from overexplain.extraction.box import Ball, Where
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import NO, YES

PATIENCE = 8
"""So many equal labels in a row, and none of the other kind ever: look farther away, where there is no limit."""

WIDER = 4.0
"""By this factor each time …"""

WIDEST = 2.0**200
"""… up to here: squares of it are still far from float64's end."""


class Questions:
    """Random questions: uniform in the box or the ball, Gaussian around the start along features without limits."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.seen: Counter[int] = Counter()
        self._reach = max(1.0, float(np.abs(attempt.start).max()))
        self._low, self._high = _limits(attempt.where, attempt.dimension)
        self._inputs = self._discrete_inputs()

    def _discrete_inputs(self) -> Domain | None:
        """One-hot groups and whole numbers inside the limits; None if every feature is continuous."""
        session = self._attempt.session
        if session.domain is None or not session.is_discrete:
            return None
        return Domain(session.dimension, self._low, self._high, session.domain.groups, session.domain.integers)

    @property
    def is_discrete(self) -> bool:
        """True if points between two questions need not be questions."""
        return self._inputs is not None

    def draw(self, n: int) -> FloatArray:
        """n questions, as rows."""
        rng, where, p = self._attempt.rng, self._attempt.where, self._attempt.dimension
        if self._inputs is not None:
            return self._inputs.sample(rng, n)
        if isinstance(where, Ball):
            steps = rng.normal(size=(n, p))
            steps *= where.radius * rng.uniform(size=(n, 1)) ** (1 / p) / np.linalg.norm(steps, axis=1, keepdims=True)
            return np.array([where.clip(x) for x in where.middle + steps])
        rows = self._attempt.start + self._reach * rng.normal(size=(n, p))
        rows = np.where(rows < self._low, 2 * self._low - rows, rows)  # a limit on one side: reflected there
        rows = np.where(rows > self._high, 2 * self._high - rows, rows)
        bounded = np.isfinite(self._low) & np.isfinite(self._high)
        low, high = self._low[bounded], self._high[bounded]
        rows[:, bounded] = low + (high - low) * rng.uniform(size=(n, len(low)))
        return np.clip(rows, self._low, self._high)

    def label(self) -> tuple[FloatArray, int]:
        """A new question and the label the service gave it."""
        x = self.draw(1)[0]
        label = self._attempt.session.label(x)
        self.note(label)
        return x, label

    def note(self, label: int) -> None:
        """Remember a label; look farther away if only one kind ever comes."""
        self.seen[label] += 1
        if len(self.seen) == 1 and self.seen[label] % PATIENCE == 0 and self._reach < WIDEST:
            self._reach *= WIDER

    def refuse_one_side(self) -> None:
        """Raise ExtractionFailed if all labels were the same."""
        if len(self.seen) == 1:
            label, count = next(iter(self.seen.items()))
            name = {YES: "Yes", NO: "No"}[label]
            raise ExtractionFailed(
                f"all {count} labels were {name}: there is no boundary to learn where the questions lay. Give bounds= that "
                "hold both decisions, or a larger budget="
            )

    @property
    def units(self) -> FloatArray:
        """A length for every feature: half the side of the box; the papers' features, too, are scaled to one range."""
        with np.errstate(invalid="ignore"):
            half = (self._high - self._low) / 2
        return np.where(np.isfinite(half) & (half > 0), half, np.where(half == 0, 1.0, self._reach))

    @property
    def middle(self) -> FloatArray:
        """A point in the midst of the questions."""
        bounded = np.isfinite(self._low) & np.isfinite(self._high)
        return np.where(bounded, self._low / 2 + self._high / 2, self._attempt.start)


def _limits(where: Where, p: int) -> tuple[FloatArray, FloatArray]:
    """Where each feature may lie; for a ball the cube inside it, whose points are all allowed."""
    if isinstance(where, Ball):
        half = where.radius / np.sqrt(p)
        return where.middle - half, where.middle + half
    return where.low, where.high
