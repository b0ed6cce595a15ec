"""Labels that a diagnosis asks: which side a question is on, whether an answer flips it, where a step crosses the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overexplain.extraction.diagnosis.interview import Exchange, Interview
from overexplain.extraction.diagnosis.margins import Gap
from overexplain.geometry.arrays import FloatArray, IntArray

HALVINGS = 7
"""Labels spent on finding where one step crosses the plane."""

NARROW = 1e-6
"""How far before and behind an answer, relative to its step, labels are asked to see whether it lies on the plane."""


@dataclass(frozen=True, eq=False)
class Marks:
    """Questions about single exchanges that labels answer."""

    talk: Interview

    @property
    def left(self) -> int:
        """How many labels may still be asked."""
        return self.talk.labels_left

    def of(self, x: FloatArray) -> int | None:
        """The label of x; None if it may not be asked, or what came was no label."""
        return self.talk.label(x)

    def flips(self, exchange: Exchange, reach: float) -> bool | None:
        """True if the answer is across, or within `reach` of it; None if that cannot be asked.

        An exact answer lies on the plane: its own label is a coin toss, so a point just behind it counts as well.
        """
        if exchange.answer is None:
            return None
        before, there = self.of(exchange.question), self.of(exchange.answer)
        if before is None or there is None:
            return None
        if there != before:
            return True
        behind = self.of(_along(exchange, 1 + self._share(exchange, reach)))
        return None if behind is None else behind != before

    def gap(self, exchange: Exchange, reach: float) -> Gap | None:
        """How far behind the plane the answer lies, along its own step; None if it does not flip or cannot be asked."""
        before = self.of(exchange.question)
        if before is None or exchange.answer is None or not self.flips(exchange, reach):
            return None
        length = float(np.linalg.norm(exchange.step))
        share = self._share(exchange, reach)
        ahead = self.of(_along(exchange, 1 - share))
        if ahead is None:
            return None
        if ahead == before:
            return Gap(length, 0.0, share * length, before)
        crossing = self.crossing(exchange, 1 - share)
        if crossing is None:
            return None
        low, high = crossing
        return Gap(length, (1 - (low + high) / 2) * length, (high - low) / 2 * length, before)

    def is_midway(self, link: Exchange, reach: float) -> bool | None:
        """True if the plane lies in the middle of a step from one side's answers to the other's; None if that cannot be seen."""
        share = 10 * self._share(link, reach)
        if share > 0.1:
            return None
        labels = [self.of(_along(link, 0.5 + offset)) for offset in (-share, share)]
        return None if None in labels else labels[0] != labels[1]

    def crossing(self, exchange: Exchange, across: float = 1.0) -> tuple[float, float] | None:
        """Between which shares of the step the label changes, found by halving; None if labels run out at once."""
        before = self.of(exchange.question)
        low, high = 0.0, across
        if before is None or self.left < HALVINGS:
            return None
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            label = self.of(_along(exchange, middle))
            if label is None:
                return None
            low, high = (middle, high) if label == before else (low, middle)
        return low, high

    def matters(self, base: FloatArray, features: IntArray, size: float) -> bool | None:
        """True if moving these features, all at once, changes the label of a point next to the plane."""
        here = self.of(base)
        if here is None:
            return None
        shift = np.zeros(len(base))
        shift[features] = size * np.where(np.arange(len(features)) % 2 == 0, 1.0, -1.0)
        if len(features) > 1:
            shift[features] *= self.talk.job.rng.uniform(0.5, 1.0, len(features))
        labels = [self.of(base + sign * shift) for sign in (1.0, -1.0)]
        if any(label is not None and label != here for label in labels):
            return True
        return None if None in labels else False

    def _share(self, exchange: Exchange, reach: float) -> float:
        length = float(np.linalg.norm(exchange.step))
        return max(NARROW, reach / length) if length > 0 else NARROW


def _along(exchange: Exchange, share: float) -> FloatArray:
    return np.asarray(exchange.question + share * exchange.step)
