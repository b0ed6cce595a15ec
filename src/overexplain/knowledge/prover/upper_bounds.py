"""Upper bounds on s = ‖a‖* of a robustness ball in a box: what branch and bound narrows, and what it may then use.

A box bounds *directions*, g·a for some vectors g. For ℓ2 and its kin these are a frame (docs/theory/robust-regions.md, arcs): what
is left of a varies along few orthogonal directions, and s² is bounded along each of them. For other balls they are the entries of
a, and chords bound s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol, final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.norm import Norm
from overexplain.geometry.polyhedral import Polyhedral
from overexplain.knowledge.branches import MOST_CORNERS
from overexplain.knowledge.checker import Term
from overexplain.knowledge.chords import Box, chord_term, corner_chords, dual_exponent, make_chord
from overexplain.knowledge.enclosures import Vector, corners_of
from overexplain.knowledge.facts import is_euclidean

BITS = 45
"""Binary digits of a frame's entries."""
LONGER = 2.0**-30
"""How much longer than orthonormal a frame is made, so that rounding it loses nothing."""
RANK = 1e-9
"""Directions along which a varies less than this share of the most are taken as fixed."""


@dataclass(frozen=True, eq=False)
class UpperBound:
    """left·a − delta·s + gamma·t ≥ 0, and the term that says so, with the weight 1."""

    left: FloatArray
    delta: float
    gamma: float
    term: Term


class Shape(Protocol):
    """What a ball's length is bounded by."""

    matrix: FloatArray
    """The directions, rows."""
    frame: tuple[tuple[Fraction, ...], ...]
    """Those that are no entries of a, in rationals; they are numbered from p on."""
    varying: int
    """How many of the first directions are worth narrowing."""

    def bounds(self, low: FloatArray, high: FloatArray, places: Sequence[float]) -> Iterator[UpperBound]:
        """What a box says of s; `places` are values of s near which it should be sharp."""

    def split(self, low: FloatArray, high: FloatArray, a: FloatArray) -> tuple[int, float] | None:
        """The direction whose interval loses most at a, and where to cut it; None if none loses anything."""


@final
class Squares:
    """Arcs: s² ≤ Σ (f·a)² over a frame, whose first vectors span what is left of a on the slice t = 1."""

    def __init__(self, norm: Norm, row: int, outer: FloatArray, slice_: FloatArray) -> None:
        """`outer`: (p, r) from coordinates to a; `slice_`: (r, r − 1), the directions in which t stays."""
        p = len(outer)
        factor, exact = _root_of_dual(norm, p)
        turned, values, _ = np.linalg.svd(factor @ outer @ slice_, full_matrices=True)
        self.varying = int((values > RANK * values.max(initial=0.0)).sum()) if len(values) else 0
        size = np.abs(factor @ outer @ slice_).max(axis=1, initial=0.0)
        moving = size > RANK * size.max(initial=0.0)
        if moving.sum() == self.varying and not (factor - np.diag(np.diag(factor))).any():
            turned = np.eye(p)[
                :, np.argsort(~moving, kind="stable")
            ]  # single entries of a are as few, and bounded tighter
        whole = np.round(turned.T * (1 + LONGER) * 2.0**BITS)
        units = [Fraction(1, 2**BITS)] * p if exact is None else [v / 2**BITS for v in exact]
        if exact is None and not np.array_equal(factor, np.eye(p)):
            size = np.abs(turned.T @ factor).max()
            power = BITS - int(np.frexp(size)[1])
            whole = np.round(turned.T @ factor * (1 + LONGER) * 2.0**power)
            units = [Fraction(1, 2) ** power if power >= 0 else Fraction(2) ** -power] * p
        self.frame = tuple(
            tuple(int(v) * unit for v, unit in zip(vector, units, strict=True)) for vector in whole.tolist()
        )
        self.matrix = np.array([[float(v) for v in vector] for vector in self.frame])
        self._row = row

    def bounds(self, low: FloatArray, high: FloatArray, places: Sequence[float]) -> Iterator[UpperBound]:
        left, level = (low + high) @ self.matrix, -float(low @ high)
        for at in places:
            exact = Fraction(float(at))
            yield UpperBound(left, 2 * at, level + at * at, Term("arc", Fraction(1), self._row, at=exact))

    def split(self, low: FloatArray, high: FloatArray, a: FloatArray) -> tuple[int, float] | None:
        y, few = self.matrix @ a, slice(self.varying)
        lost = np.maximum(high[few] - y[few], 0.0) * np.maximum(y[few] - low[few], 0.0)
        return _widest(lost, low, high, y)


@final
class Entries:
    """Chords: s is bounded in boxes of single entries of a."""

    frame: tuple[tuple[Fraction, ...], ...] = ()

    def __init__(self, norm: Norm, row: int, p: int) -> None:
        self.matrix, self.varying, self._norm, self._row = np.eye(p), p, norm, row
        self._shape = dual_exponent(norm, p)
        self._units = np.asarray(norm.dual.units(p))

    def bounds(self, low: FloatArray, high: FloatArray, places: Sequence[float]) -> Iterator[UpperBound]:
        box = Box(low, high)
        if self._shape is None:
            found = [*corner_chords(self._norm, self._row, box), make_chord(self._norm, self._row, box, 1.0)]
        else:
            power = self._shape[0]
            tried: list[tuple[float, float | None]] = [(power, None)]
            if np.isfinite(power) and power > 1:
                tried += [(power, at) for at in places]
            tried += [(1.0, None)] if power > 1 else []
            found = [make_chord(self._norm, self._row, box, *each) for each in tried]
        for chord in found:
            if chord is not None:
                yield UpperBound(chord.slopes, chord.delta, chord.gamma, chord_term(chord))

    def split(self, low: FloatArray, high: FloatArray, a: FloatArray) -> tuple[int, float] | None:
        power = 2.0 if self._shape is None else self._shape[0]
        power = power if np.isfinite(power) else 1.0
        wide, y = np.maximum(high - low, 1e-300), np.clip(a, low, high)
        ends = [(np.abs(v) * self._units) ** power for v in (low, high, y)]
        lost = ends[0] + (ends[1] - ends[0]) * (y - low) / wide - ends[2]
        found = _widest(np.where(high > low, lost, 0.0), low, high, y)
        if found is not None and low[found[0]] < 0 < high[found[0]]:
            return found[0], 0.0  # on either side ‖a‖* is less curved
        return found


def _widest(lost: FloatArray, low: FloatArray, high: FloatArray, y: FloatArray) -> tuple[int, float] | None:
    if not len(lost) or not lost.max() > 0:
        return None
    k = int(lost.argmax())
    wide = high[k] - low[k]
    return k, float(np.clip(y[k], low[k] + 0.2 * wide, high[k] - 0.2 * wide))


def shape_of(norm: Norm, row: int, outer: FloatArray, slice_: FloatArray) -> Shape:
    """The shape of a robust row's ball."""
    return Squares(norm, row, outer, slice_) if is_euclidean(norm) else Entries(norm, row, len(outer))


@final
@dataclass(frozen=True, eq=False)
class Corners:
    """The corners d of a ball for which s = max a·d, in the checker's order."""

    exact: Sequence[Vector]

    @cached_property
    def rows(self) -> FloatArray:
        return np.array([[float(v) for v in corner] for corner in self.exact])


def few_corners(norm: Norm, p: int) -> Corners | None:
    """The corners of a ball, if they are so few that each can be a case; None if not."""
    shape = dual_exponent(norm, p)
    is_few = isinstance(norm, Polyhedral) and len(norm.vertices) <= MOST_CORNERS
    is_few |= shape is not None and bool(np.isinf(shape[0]))
    return Corners(list(corners_of(norm.spec, p))) if is_few else None


def _root_of_dual(norm: Norm, p: int) -> tuple[FloatArray, list[Fraction] | None]:
    """(W with ‖a‖*² = |W·a|², its diagonal in short binary fractions that are at least that, if it is one of ℓ2 with weights)."""
    if isinstance(norm, Mahalanobis):
        return np.asarray(np.linalg.inv(np.linalg.cholesky(np.asarray(norm.matrix)))), None
    shape = dual_exponent(norm, p)
    assert shape is not None
    weights = [Fraction(float(v)) for v in shape[1]]
    if all(v == 1 for v in weights):
        return np.eye(p), None
    return np.diag(1 / shape[1]), [_rounded_up(1 / v) for v in weights]


def _rounded_up(value: Fraction) -> Fraction:
    """At least the value: quotients of their own for hundreds of features would have no denominator in common."""
    scale = Fraction(2) ** (BITS + value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction((value * scale).__ceil__()) / scale
