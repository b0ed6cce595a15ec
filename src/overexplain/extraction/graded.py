"""A start off a plane through 0 from which ℓq with q < 2 shows every entry of the normal.

The step's entries are w_i = D·|a_i|^(1/holder), so small ones drown in the rounding of x_i: x must be tiny wherever it can be,
and yet off the plane although any a_i may be zero. So the entries of x fall, in random order, by so many powers of two each that
the first non-zero a_i rules the distance and all that follow are free of cancellation.
"""

from __future__ import annotations

import math

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm

DEEPEST = 880
"""The smallest entry is 2**-880 times the largest: the step's own small entries still have room below."""

NEGLIGIBLE = 2.0**-100
"""A coefficient below this share of the largest is taken for zero."""


def levels_apart(norm: Norm) -> int:
    """By how many powers of two an entry is smaller than the one before it."""
    return max(110, math.ceil(33.3 / norm.holder) - 52)


def graded_start(norm: Norm, reach: float, moved: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Entries of size reach, reach·2⁻ᵏ, reach·2⁻²ᵏ, … in random order, every one in its own unit.

    `moved` is the last step: entries it is known to have moved come first, because their a_i cannot be zero.
    """
    p = len(moved)
    drop = levels_apart(norm)
    level = np.empty(p, dtype=np.int64)
    level[np.lexsort((rng.permutation(p), -np.abs(moved)))] = np.minimum(np.arange(p), DEEPEST // drop)
    entries = reach * rng.uniform(1, 2, p) * rng.choice([-1.0, 1.0], p) / norm.units(p)
    return np.asarray(np.ldexp(entries, -drop * level))


def quiet_errors(norm: Norm, x: FloatArray, step: FloatArray, errors: FloatArray) -> FloatArray:
    """Smaller errors for entries that moved less than rounding, if x is a graded start and the plane passes through 0.

    With b = 0 the distance D = |a·x| is ruled by its largest term, so |a_i| ≤ 4D/|x_i|, in the entry's unit, and an entry of the
    step is at most D·(4D/|x_i|)^(1/holder); it is 0 if a_i is.
    """
    units, distance = norm.units(len(x)), float(norm(step))
    largest_coefficient = np.minimum(1.0, 4 * distance / (np.abs(x) * units))
    quiet = np.where(largest_coefficient < NEGLIGIBLE, 0.0, distance * largest_coefficient ** (1 / norm.holder) / units)
    return np.where(np.abs(step) <= quiet, np.minimum(errors, 2 * quiet), errors)
