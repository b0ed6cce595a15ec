"""Columns as whole numbers: x = base + unit·k, without rounding, for every logged value.

Such a change of every column is a linear and invertible change of (x, −1), so a query is a combination of rows with the
same weights before and after (docs/theory/ties.md). Standardised flags become 0 and 1, cents become counts, bins become
0, 1, 2; small whole numbers have small determinants, and those are what exact proofs cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray

NARROW = 2**30
"""Codes of logged values below this make a column narrow."""
WIDE = 2**40
"""Queries may be this far out, or have a common denominator up to this."""
LARGEST = 2.0**60
BLOCK = 1024
"""Points that are coded at a time."""
NEVER = 2**20
"""More than any exponent."""


@final
class Coding:
    """rows    (n, p): codes where a column is narrow, the values themselves where not
    narrow  (p,): is the column in whole numbers?
    """

    def __init__(self, X: FloatArray) -> None:
        self.power = powers_of(X)
        scaled = np.ldexp(X, -self.power)
        fits = np.abs(scaled).max(axis=0, initial=0.0) < LARGEST
        whole = np.where(fits, scaled, 0.0).astype(np.int64)
        base = np.partition(whole, len(X) // 2, axis=0)[len(X) // 2] if len(X) else np.zeros(X.shape[1], dtype=np.int64)
        unit = np.maximum(np.gcd.reduce(whole - base, axis=0), 1)
        codes = (whole - base) // unit
        self.narrow: BoolArray = fits & (np.abs(codes).max(axis=0, initial=0) < NARROW)
        self.base, self.unit = np.where(self.narrow, base, 0), np.where(self.narrow, unit, 1)
        self.rows: FloatArray = np.where(self.narrow, codes, X)

    @property
    def is_whole(self) -> bool:
        """True if every column is in whole numbers."""
        return bool(self.narrow.all())

    def queries(self, X: FloatArray) -> tuple[FloatArray, BoolArray]:
        """(rows (k, −1) of points, which of them are without rounding). Some are multiplied by a common denominator first."""
        if len(X) > BLOCK and self.narrow.any():  # a few at a time: they stay in the cache
            parts = [self.queries(X[i : i + BLOCK]) for i in range(0, len(X), BLOCK)]
            return np.vstack([rows for rows, _ in parts]), np.concatenate([exact for _, exact in parts])
        out = np.empty((len(X), X.shape[1] + 1))
        out[:, -1] = -1.0
        out[:, :-1] = X
        narrow = np.flatnonzero(self.narrow)
        if not len(narrow):
            return out, np.zeros(len(X), dtype=bool)
        scaled = np.ldexp(X[:, narrow], -self.power[narrow])
        fits = (np.abs(scaled) < LARGEST) & (scaled == np.rint(scaled))
        fits &= np.ldexp(scaled, self.power[narrow]) == X[:, narrow]  # not so if it underflowed
        apart = np.where(fits, scaled, 0.0).astype(np.int64) - self.base[narrow]
        codes = apart // self.unit[narrow]
        fits &= (codes * self.unit[narrow] == apart) & (np.abs(codes) < WIDE)
        out[:, narrow] = codes
        exact = fits.all(axis=1) & self.is_whole
        for i in np.flatnonzero(~fits.all(axis=1)):
            entries = self.exact(X[i])
            factor = lcm(*(v.denominator for v in entries))
            if self.is_whole and factor < WIDE and all(abs(v * factor) < WIDE for v in entries):
                out[i] = [*(int(v * factor) for v in entries), -factor]
                exact[i] = True
            else:
                out[i, :-1] = [_as_float(v) for v in entries]
        return out, exact

    def exact(self, x: FloatArray) -> list[Fraction]:
        """The entries of a point in the units of `rows`, without rounding."""
        entries = [Fraction(v) for v in x.tolist()]
        for j in np.flatnonzero(self.narrow).tolist():
            power, base, unit = int(self.power[j]), int(self.base[j]), int(self.unit[j])
            above, below = entries[j].as_integer_ratio()
            above, below = (above, below << power) if power > 0 else (above << -power, below)
            entries[j] = Fraction(above - base * below, below * unit)
        return entries

    def form(self, form: Sequence[Fraction]) -> list[Fraction]:
        """v·a + c·b, given as (v, c), over the models of coded rows; without rounding."""
        coded = [
            (v / Fraction(2) ** k + form[-1] * b) / u if narrow else v
            for v, k, b, u, narrow in zip(
                form[:-1],
                self.power.tolist(),
                self.base.tolist(),
                self.unit.tolist(),
                self.narrow.tolist(),
                strict=True,
            )
        ]
        return [*coded, form[-1]]

    def model(self, z: Sequence[Fraction]) -> tuple[list[Fraction], Fraction]:
        """A model of coded rows as (a, b) of the points themselves: a·x − b is the same."""
        normal, offset = list(z[:-1]), z[-1]
        for j in np.flatnonzero(self.narrow).tolist():
            normal[j] = z[j] / (Fraction(2) ** int(self.power[j]) * int(self.unit[j]))
            offset += z[j] * Fraction(int(self.base[j]), int(self.unit[j]))
        return normal, offset

    def models(self, z: FloatArray) -> FloatArray:
        """The same for many at once, rows, in floats."""
        out = np.array(z)
        out[:, :-1] = np.ldexp(z[:, :-1] / self.unit, -self.power)
        out[:, -1] += z[:, :-1] @ (self.base / self.unit)
        return out


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")  # nothing is found for it: rationals decide


def powers_of(X: FloatArray) -> IntArray:
    """For each column the largest k such that all values are whole multiples of 2^k; 0 if all are 0."""
    mantissa, exponent = np.frexp(np.abs(X))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    trailing: IntArray = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    least = np.where(X != 0, exponent - 53 + trailing, NEVER).min(axis=0, initial=NEVER)
    return np.asarray(np.where(least == NEVER, 0, least), dtype=np.int64)
