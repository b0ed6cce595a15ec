"""Two points of opposite label, and the plane between them: labels alone bring them as close together as one likes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import UNIT_ROUNDOFF

MOST_HALVINGS = 1100
"""No float64 interval can be halved more often; the loops below end long before."""


@dataclass(frozen=True, eq=False)
class Bracket:
    """A point labelled No and one labelled Yes: the plane passes between them."""

    no: FloatArray
    yes: FloatArray

    @staticmethod
    def of(x: FloatArray, label: int, other: FloatArray) -> Bracket:
        """The bracket of x, which has this label, and a point with the other label."""
        return Bracket(other, x) if label == YES else Bracket(x, other)

    def end(self, label: int) -> FloatArray:
        """The point with this label."""
        return self.yes if label == YES else self.no

    @property
    def middle(self) -> FloatArray:
        """The point half way."""
        return np.asarray(self.no + (self.yes - self.no) / 2)

    @property
    def is_spent(self) -> bool:
        """True if float64 has no more room between the two ends than rounding blurs."""
        return bool((np.abs(self.yes - self.no) <= 4 * UNIT_ROUNDOFF * (np.abs(self.yes) + np.abs(self.no))).all())

    def errors(self) -> FloatArray:
        """How far, entry by entry, the plane's point on the segment can lie from the middle.

        A service computes normal·x in float64 too: its label of a point is right for a point within (p + 4) roundings.
        """
        blur = 2 * (len(self.no) + 4) * UNIT_ROUNDOFF * np.maximum(np.abs(self.no), np.abs(self.yes))
        return np.asarray(np.abs(self.yes - self.no) / 2 + blur)


def narrowed(session: Session, bracket: Bracket, is_enough: Callable[[Bracket], bool]) -> Bracket:
    """The bracket halved, one label each time, until it is enough, or float64 is exhausted."""
    for _ in range(MOST_HALVINGS):
        if is_enough(bracket) or bracket.is_spent:
            break
        middle = bracket.middle
        bracket = Bracket(bracket.no, middle) if session.label(middle) == YES else Bracket(middle, bracket.yes)
    return bracket


def first_bracket(session: Session, points: list[FloatArray]) -> Bracket | None:
    """The first two of the points whose labels differ, asked one by one; None if all are on one side."""
    seen: dict[int, FloatArray] = {}
    for x in points:
        seen.setdefault(session.label(x), x)
        if len(seen) == 2:
            return Bracket(seen[NO], seen[YES])
    return None
