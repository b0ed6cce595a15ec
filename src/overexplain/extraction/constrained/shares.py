"""What ℓ2 steps that move only some features show: the normal's entries there, up to a factor per set that moved together."""

from __future__ import annotations

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.precision import entry_errors
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.lp import Weighted, l2
from overexplain.geometry.norm import FLOAT64_ANSWER

JOINED = 1e-6
"""Two sets are tied together by the features they share only if their common factor is then known this well."""


class Shares:
    """Entries of the normal, known up to one factor per set of features; sets that share features are joined.

    All values are in the units of the weights, w_i·step_i ∝ a_i/w_i, in which the distance is plain ℓ2.
    """

    def __init__(self, weights: FloatArray) -> None:
        self._weights = weights
        self._norm = Weighted(l2, weights)
        self._values = np.zeros(len(weights))
        self._errors = np.zeros(len(weights))
        self._sets = np.full(len(weights), -1)

    @property
    def revealed(self) -> BoolArray:
        """The features that have moved."""
        return np.asarray(self._sets >= 0)

    @property
    def count(self) -> int:
        """How many factors are unknown."""
        return len(np.unique(self._sets[self._sets >= 0]))

    def columns(self) -> tuple[FloatArray, FloatArray]:
        """One row per set: the normal's entries there, up to a factor, and the bounds on their errors."""
        members = np.array([self._sets == k for k in np.unique(self._sets[self._sets >= 0])]).reshape(
            -1, len(self._sets)
        )
        return members * (self._weights * self._values), members * (self._weights * self._errors)

    def add(self, x: FloatArray, answer: FloatArray, tolerance: float | None, row: int) -> bool:
        """Take note of a step; True if it comes from the other side: it moves a set backwards, or features of its own."""
        values, errors = self._read(x, answer, tolerance)
        moved = values != 0
        touched = [int(k) for k in np.unique(self._sets[moved]) if k >= 0]
        factors: dict[int, tuple[float, float]] = {}
        for k in touched:
            common = moved & (self._sets == k)
            factor, doubt = _factor(self._values[common], self._errors[common], values[common], errors[common])
            self._refuse_disagreement(common, factor, doubt, values, errors, row)
            if doubt <= JOINED * abs(factor):
                factors[k] = factor, doubt
        fresh = moved & (self._sets < 0)
        if not factors:
            # Its own scale: the length of the step, so that values stay moderate.
            length = float(np.linalg.norm(values))
            if fresh.any():
                self._set(fresh, values / length, errors / length, int(self._sets.max()) + 1)
            return bool(fresh.any()) and not bool((self._sets[~fresh] < 0).all())
        home, (scale, doubt) = next(iter(factors.items()))
        self._set(fresh, scale * values, abs(scale) * errors + doubt * np.abs(values), home)
        for k, (other, other_doubt) in list(factors.items())[1:]:
            ratio = scale / other
            relative = doubt / abs(scale) + 2 * other_doubt / abs(other)
            joining = self._sets == k
            joined_errors = abs(ratio) * (self._errors + 2 * relative * np.abs(self._values))
            self._set(joining, ratio * self._values, joined_errors, home)
        better = abs(scale) * errors + doubt * np.abs(values)
        sharper = moved & (self._sets == home)
        if float(np.linalg.norm(better[sharper])) < 0.5 * float(np.linalg.norm(self._errors[sharper])):
            self._set(sharper, scale * values, better, home)
        return scale < 0

    def refuse_other_steps(
        self,
        normal: FloatArray,
        normal_errors: FloatArray | None,
        x: FloatArray,
        answer: FloatArray,
        tolerance: float | None,
        row: int,
    ) -> None:
        """Raise BrokenPromise if a step is not proportional to the normal's share of the features that it moves."""
        values, errors = self._read(x, answer, tolerance)
        moved = values != 0
        if not moved.any():
            return
        share = normal[moved] / self._weights[moved]
        unsure = 1e-9 * np.abs(normal).max() if normal_errors is None else normal_errors[moved]
        unsure = unsure / self._weights[moved]
        factor, doubt = _factor(share, unsure, values[moved], errors[moved])
        off = np.abs(share - factor * values[moved])
        allowed = 4 * (unsure + abs(factor) * errors[moved] + doubt * np.abs(values[moved]))
        allowed = allowed + FLOAT64_ANSWER * float(np.linalg.norm(share))
        _refuse(off, allowed, np.flatnonzero(moved), row)

    def _read(self, x: FloatArray, answer: FloatArray, tolerance: float | None) -> tuple[FloatArray, FloatArray]:
        """The step in the units of the weights, 0 where it is no more than rounding, and the errors of its entries."""
        step = answer - x
        errors = entry_errors(self._norm, tolerance, x, answer)
        # What lies between rounding and a real step is left open: it costs an answer, where a wrong guess would cost the model.
        doubtful = 8 * errors + FLOAT64_ANSWER * np.maximum(np.abs(x), np.abs(answer))
        doubtful = doubtful + FLOAT64_ANSWER * float(self._norm(step)) / self._weights
        moved = np.abs(step) > doubtful
        return np.where(moved, step * self._weights, 0.0), np.where(moved, errors * self._weights, 0.0)

    def _set(self, where: BoolArray, values: FloatArray, errors: FloatArray, k: int) -> None:
        self._values = np.where(where, values, self._values)
        self._errors = np.where(where, errors, self._errors)
        self._sets = np.where(where, k, self._sets)

    def _refuse_disagreement(
        self, common: BoolArray, factor: float, doubt: float, values: FloatArray, errors: FloatArray, row: int
    ) -> None:
        """Raise BrokenPromise unless the step is proportional to what is known on the features they share."""
        off = np.abs(self._values - factor * values)[common]
        allowed = 4 * (self._errors + abs(factor) * errors + doubt * np.abs(values))[common]
        allowed = allowed + FLOAT64_ANSWER * float(np.linalg.norm(self._values[common]))
        _refuse(off, allowed, np.flatnonzero(common), row)


def _factor(
    known: FloatArray, known_errors: FloatArray, seen: FloatArray, seen_errors: FloatArray
) -> tuple[float, float]:
    """The f with known ≈ f·seen, by least squares, and how far off it can be."""
    square = float(seen @ seen)
    factor = float(known @ seen) / square
    unsure = known_errors + abs(factor) * seen_errors
    return factor, 2 * float(np.abs(seen) @ unsure) / square


def _refuse(off: FloatArray, allowed: FloatArray, features: np.ndarray, row: int) -> None:
    excess = off - allowed
    if (excess <= 0).all():
        return
    worst = int(excess.argmax())
    raise BrokenPromise(
        f"the steps do not fit an ℓ2 distance: on the features that both move, the answer in row {row} does not go in the "
        f"direction of the others (feature {int(features[worst])} is {off[worst]:.3g} off). Declare another distance, or none",
        fact="Steepest",
        excess=float(off[worst]),
        row=row,
    )
