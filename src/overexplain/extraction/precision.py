"""How well float64 answers are known: what was declared, what rounding adds, and grids that show in the digits."""

from __future__ import annotations

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.norm import SMALLEST, UNIT_ROUNDOFF, Norm

NEAR = 1e-5
"""A point closer to the plane than this, relative to its own size, shows a direction, or a label, made of rounding."""

_DISTINCT = 3
"""So many different numbers must lie on a decimal grid before it is believed: one or two do by chance (0.3, 1.5, …). No number of
float64 has float32's digits by chance unless it is a short binary fraction."""


_WRITTEN = 16
"""So many binary digits a number has that somebody wrote down (0.5, 12.25, 4000.125); one in 250 of float32's has no more."""


def answer_error(norm: Norm, tolerance: float | None, x: FloatArray, answer: FloatArray) -> float:
    """How far, in the norm, an answer may lie from the optimum it stands for, our own arithmetic included."""
    return error_at_size(norm, tolerance, len(x), float(norm(x)) + float(norm(answer)))


def error_at_size(norm: Norm, tolerance: float | None, p: int, size: float) -> float:
    """The same where only ‖x‖ + ‖x'‖, or a bound on it, is known."""
    declared = norm.answer_rounding * size if tolerance is None else tolerance
    return declared + (p + 16) * UNIT_ROUNDOFF * size + SMALLEST


def entry_errors(norm: Norm, tolerance: float | None, x: FloatArray, answer: FloatArray) -> FloatArray:
    """How far each entry of answer − x may be off: rounding of the entries, plus a declared tolerance in the entry's unit."""
    units = norm.units(len(x))
    # A direction's entry may have underflowed before it was multiplied by the distance.
    lost = SMALLEST * (1 + float(norm(answer - x)) * np.maximum(1.0, 1 / units))
    rounding = (len(x) + 4) * UNIT_ROUNDOFF * (np.abs(x) + np.abs(answer)) + lost
    return np.asarray(rounding if not tolerance else rounding + tolerance / units)


def grid_tolerance(norm: Norm, p: int, moved: FloatArray) -> tuple[float, str] | None:
    """The tolerance that a grid in the digits of moved entries stands for, and a sentence that says so; None if none shows.

    Entries copied from a question say nothing about the service: only those that moved count.
    """
    step, name = visible_grid(moved)
    if name is None:
        return None
    tolerance = float(norm(np.full(p, step.max() / 2)))
    return tolerance, f"the answers lie on a grid ({name}); its half step is taken as their tolerance"


def visible_grid(answer: FloatArray) -> tuple[FloatArray, str | None]:
    """The step of the grid every entry lies on and its name, e.g. "3 decimals" or "float32"; (zeros, None) if none shows."""
    nothing = np.zeros(len(answer)), None
    if len(answer) == 0:
        return nothing
    with np.errstate(over="ignore"):
        scaled = answer * 2.0**20
    telling = np.unique(np.abs(answer[scaled != np.round(scaled)]))  # short binary fractions tell nothing
    for decimals in range(1, 9) if len(telling) >= _DISTINCT else ():
        # A grid as fine as float64 itself at this size would hold every number.
        coarse = 10.0**-decimals > 2.0**10 * np.spacing(np.abs(answer).max())
        if coarse and np.array_equal(np.round(answer, decimals), answer):
            return np.full(len(answer), 10.0**-decimals), f"{decimals} decimal{'s' * (decimals > 1)}"
    with np.errstate(over="ignore", under="ignore"):
        single = answer.astype(np.float32)
    if _is_telling(answer).any() and np.array_equal(single.astype(np.float64), answer):
        return np.spacing(np.abs(single)).astype(np.float64), "float32"
    return nothing


def _is_telling(numbers: FloatArray) -> BoolArray:
    """Which numbers have more binary digits than people write, and are not whole: whether float32 holds them says something."""
    with np.errstate(over="ignore"):
        digits = np.ldexp(np.frexp(numbers)[0], _WRITTEN)
    return np.asarray((digits != np.round(digits)) & (numbers != np.round(numbers)))
