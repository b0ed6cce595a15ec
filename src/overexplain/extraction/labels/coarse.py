"""The first look at every coordinate: each label halves the *probability*, so that it is worth one bit.

Given the coordinates found so far, the next one is Student-t distributed: k values and a prior worth two make k + 2 degrees of
freedom and scale² = (2 prior² + Σ r²) / (k + 2). The thresholds are its conditional medians, on a grid whose step is the width
needed in the end times a power of two: all intervals then reach that width together.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr, stdtrit

from overexplain.extraction.labels.thresholds import Thresholds

PRIOR_WEIGHT = 2.0
"""The prior counts as so many coordinates."""

GRID = 0.15
"""The grid's step, as a share of the scale."""

TAIL = 3.0
"""So many scales out, a coordinate is no longer believed to follow the law: distances double."""

STEEPEST = 2.0**14
"""Coordinates beyond this mean that the guess points along the plane: another one is needed."""


class Misaligned(Exception):
    """A coordinate is too large for the frame; the guess should rather point along it."""

    def __init__(self, coordinate: int) -> None:
        super().__init__(coordinate)
        self.coordinate = coordinate


def coarse_pass(thresholds: Thresholds, sine: float, prior: float) -> None:
    """Bring every coordinate into an interval of about a seventh of its scale, or of the width needed in the end.

    sine    the sine of the angle wanted, of which the rounding of widths has been taken
    prior   how large coordinates are expected to be
    """
    frame = thresholds.frame
    n, weights = frame.size, frame.weights
    squares = weights**2
    rest = np.append(np.cumsum(squares[::-1])[::-1], 0.0)
    length = float(np.sum((frame.guess / frame.scale) ** 2))  # of the normal in x, squared, as far as it is known
    found = used = 0.0
    for i in range(n):
        freedom = i + PRIOR_WEIGHT
        scale = math.sqrt((PRIOR_WEIGHT * prior * prior + found) / freedom)
        total = (sine / frame.stretch) ** 2 * (length + rest[i] * scale * scale)
        share = min(max((total - used) / (n - i), total / (4 * n)), 4 * total / n)
        width = 2 * math.sqrt(share) / float(weights[i])
        noise = thresholds.aim(i, 0.0).by_noise * math.sqrt(1 + found + (n - i) * scale * scale)
        width = max(width, 8 * noise)
        step = width * 2.0 ** max(0, round(math.log2(GRID * scale / width)))
        value = _bracket(thresholds, i, step, scale, freedom)
        found += value * value
        length += value * value * float(squares[i])
        used += share


def _bracket(thresholds: Thresholds, i: int, step: float, scale: float, freedom: float) -> float:
    """The middle of one step of the grid that holds coordinate i."""
    low, high = -math.inf, math.inf
    while high - low > 1.5:
        at = split(low, high, step / scale, freedom)
        if not low < at < high:
            break  # so far out that float64 has no finer grid
        if abs(at * step) > STEEPEST:
            raise Misaligned(i)
        told = thresholds.ask(thresholds.aim(i, at * step))
        thresholds.tell(i, told)
        low, high = (at, high) if told.above else (low, at)
    return (low + high) / 2 * step


def split(low: float, high: float, step: float, freedom: float) -> float:
    """The whole number next to the conditional median of t(freedom)/step between two whole numbers (or infinities).

    >>> split(-math.inf, math.inf, 0.15, 2.0), split(0, math.inf, 0.15, 2.0)
    (0.0, 5.0)
    """
    if low >= 0:  # probabilities near 1 have no digits left: the mirror image has
        return -split(-high, -low, step, freedom)
    if high * step <= -TAIL:
        at = 2 * high if low == -math.inf else (low + high) / 2
    else:
        at = float(stdtrit(freedom, (stdtr(freedom, low * step) + stdtr(freedom, high * step)) / 2)) / step
    return min(max(float(np.round(at)), low + 1), high - 1) + 0.0
