"""How far behind the plane answers lie, read off explanations of explanations or off labels along the steps.

An exact answer's own explanation is itself. A constant margin (a constant overshoot, a robust service) makes every second
step equally long. A margin in proportion to the step makes the steps of a chain shrink; one that varies for reasons of its
own does neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overexplain.extraction.diagnosis.oracle_report import Margin

ALIKE = 1e-6
"""Second steps whose lengths differ by less than this share are equal."""

_SPREAD = 6.0
"""Steps must differ by this factor before one can say whether margins grow with them."""


_CLOSER = 0.75
"""How much less the proportions of margins to steps must vary than the margins."""


@dataclass(frozen=True)
class Gap:
    """A margin seen after a step of length `before`: `size`, known to within `error`; `side` tells apart where it was seen."""

    before: float
    size: float
    error: float
    side: int = 0

    @property
    def is_zero(self) -> bool:
        """True if it may well be nothing."""
        return self.size <= self.error


def classify_gaps(gaps: Sequence[Gap], may_be_constant: bool = True) -> Margin | None:
    """What the gaps have in common; None if there are none.

    >>> classify_gaps([Gap(1.0, 0.0, 1e-9), Gap(7.0, 1e-12, 1e-9)])
    'zero'
    >>> classify_gaps([Gap(1.0, 0.2, 1e-9), Gap(7.0, 0.2, 1e-9)])
    'constant'
    >>> classify_gaps([Gap(1.0, 0.21, 1e-9), Gap(0.21, 0.03, 1e-9), Gap(0.03, 0.01, 1e-9), Gap(9.0, 1.2, 1e-9)])
    'relative'
    """
    if not gaps:
        return None
    if all(gap.is_zero for gap in gaps):
        return "zero"
    if may_be_constant and _is_constant(gaps):
        return "constant"
    return "relative" if _is_relative(gaps) else "variable"


def _is_constant(gaps: Sequence[Gap]) -> bool:
    compared = False
    for side in {gap.side for gap in gaps}:
        sizes = [gap for gap in gaps if gap.side == side]
        for gap in sizes[1:]:
            compared = True
            if abs(gap.size - sizes[0].size) > ALIKE * sizes[0].size + gap.error + sizes[0].error:
                return False
    return compared and not any(gap.is_zero for gap in gaps)


def _is_relative(gaps: Sequence[Gap]) -> bool:
    """True if margins are clearly more alike in proportion to the steps before them than they are in themselves."""
    seen = [gap for gap in gaps if not gap.is_zero]
    if len(seen) < 4 or any(gap.size >= gap.before for gap in seen):
        return False
    before, size = np.log([gap.before for gap in seen]), np.log([gap.size for gap in seen])
    return bool(np.ptp(before) >= math.log(_SPREAD) and np.std(size - before) < _CLOSER * np.std(size))


def proven_slack(gaps: Sequence[Gap]) -> float | None:
    """The least slack s that explains the gaps of a chain.

    Answers at most 1 + s times too far: the second step is at most (1 + s)·s times the first, so s(1 + s) ≥ second/first.
    """
    shares = [gap.size / gap.before for gap in gaps if gap.before > 0 and not gap.is_zero]
    return (math.sqrt(1 + 4 * max(shares)) - 1) / 2 if shares else None
