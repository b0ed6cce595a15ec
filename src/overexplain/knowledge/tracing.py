"""The polygon that a cone of linear facts cuts out of the plane of two features, in rational numbers.

A point (s, t) of the plane belongs to the region if x(s, t) = Σ λ_k σ_k x_k with Σ λ_k σ_k = 1 and λ ≥ 0, σ_k = ±1 as fact k
speaks for the verdict or against it (docs/theory/regions.md, Theorem 8). So the farthest point in a direction is a linear
program in λ. Floats (HiGHS) propose a basis of it; it is believed if rationals find its weights ≥ 0 and its prices right, else
the program is solved in rationals over the few facts that matter. An edge is proved by the program whose direction is normal
to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, final

import numpy as np
from flint import fmpz_mat

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.knowledge.exact import solve
from overexplain.knowledge.prover.rationals import in_whole_numbers
from overexplain.knowledge.solvers import highs_of, run_highs

Point = tuple[Fraction, Fraction]
Box = tuple[tuple[float, float], tuple[float, float]]
AXES: tuple[tuple[int, int], ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))
NEAR = 1e-7
"""Facts whose price floats find within this of 0 take part in the exact program at first."""


@dataclass(frozen=True)
class Corner:
    """A corner of the polygon, and the facts with weight in it."""

    at: Point
    facts: frozenset[int]


def trace(
    points: FloatArray, sides: IntArray, features: tuple[int, int], base: FloatArray, box: Box,
    deadline: float | None = None,
) -> list[Corner]:  # fmt: skip
    """The corners, counterclockwise from the rightmost, of these the lowest; two for a segment, one for a point, none if nothing
    is certain in the box.

    `sides`: +1 for a fact that speaks for the verdict, −1 for one against it.
    """
    plane = _Plane(points, sides, features, base, box, deadline)
    if not plane.is_met:
        return []
    ring = _without_repeats([plane.farthest((Fraction(u), Fraction(v)))[0] for u, v in AXES])
    if len(ring) > 1:
        ring = [
            corner for k, first in enumerate(ring)
            for corner in (first, *_between(plane, first, ring[(k + 1) % len(ring)]))
        ]  # fmt: skip
    ring = _turning(_without_repeats(ring))
    first = max(range(len(ring)), key=lambda k: (ring[k].at[0], -ring[k].at[1]))
    return ring[first:] + ring[:first]


def _between(plane: _Plane, first: Corner, last: Corner) -> list[Corner]:
    """The corners beyond the line of two: none if the line is an edge."""
    found: list[Corner] = []
    todo = [(first, last)]
    while todo:
        start, end = todo.pop()
        outward = (end.at[1] - start.at[1], start.at[0] - end.at[0])
        best, value = plane.farthest(outward)
        if value > outward[0] * start.at[0] + outward[1] * start.at[1]:
            todo += [(best, end), (start, best)]
        elif end is not last:
            found.append(end)
    return found


def _without_repeats(ring: Sequence[Corner]) -> list[Corner]:
    kept = [corner for k, corner in enumerate(ring) if corner.at != ring[k - 1].at]
    return kept or list(ring[:1])


def _turning(ring: list[Corner]) -> list[Corner]:
    """The ring without corners at which it goes straight on; a ring that only goes there and back is a segment."""
    if len(ring) > 2 and not any(_turn(ring[k - 2].at, ring[k - 1].at, ring[k].at) for k in range(len(ring))):
        ends = sorted(ring, key=lambda corner: corner.at)
        return [ends[-1], ends[0]]
    if len(ring) <= 2:
        return ring
    return [ring[k - 1] for k in [*range(1, len(ring)), 0] if _turn(ring[k - 2].at, ring[k - 1].at, ring[k].at)]


def _turn(a: Point, b: Point, c: Point) -> Fraction:
    return (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0])


@final
class _Plane:
    """The region in the plane of two features and in a box, as a program in the weights of the facts."""

    def __init__(
        self, points: FloatArray, sides: IntArray, features: tuple[int, int], base: FloatArray, box: Box,
        deadline: float | None,
    ) -> None:  # fmt: skip
        held = [k for k in range(points.shape[1]) if k not in features]
        # A line for each held feature, one for the sum of the weights, two for the features that vary; then the bounds of each.
        signed = sides[:, None] * points
        table = [
            [*map(Fraction, signed[:, k].tolist()), Fraction(float(base[k])), Fraction(float(base[k]))] for k in held
        ]
        table.append([Fraction(int(side)) for side in sides] + [Fraction(1)] * 2)
        table += [
            [*map(Fraction, signed[:, k].tolist()), *map(Fraction, ends)] for k, ends in zip(features, box, strict=True)
        ]
        columns, units = in_whole_numbers(list(zip(*table, strict=True)))  # lines in whole numbers, each in its unit
        lines = [list(line) for line in zip(*columns, strict=True)]
        self._units = units[-2:]
        self._program = _Program([line[:-2] for line in lines], [line[-2:] for line in lines], deadline)

    @cached_property
    def is_met(self) -> bool:
        """True if the region has a point in the plane and the box: nothing has to be added to the lines."""
        return self._program.is_feasible()

    def farthest(self, direction: Point) -> tuple[Corner, Fraction]:
        """(the farthest point in a direction, how far it is)."""
        whole = [direction[k] / self._units[k] for k in (0, 1)]
        factor = lcm(*(v.denominator for v in whole))
        u, v = (int(w * factor) for w in whole)
        weights = self._program.best([u * a + v * b for a, b in zip(*self._program.lines[-2:], strict=True)])
        assert weights is not None  # `is_met` was asked
        s, t = (self._program.value(r, weights) / unit for r, unit in zip((-2, -1), self._units, strict=True))
        return Corner((s, t), frozenset(weights)), direction[0] * s + direction[1] * t


@final
class _Program:
    """Maximise cost·λ for λ ≥ 0 with every line·λ between its bounds, all in whole numbers."""

    def __init__(self, lines: list[list[int]], bounds: list[list[int]], deadline: float | None) -> None:
        self.lines, self.bounds, self.deadline = lines, bounds, deadline
        self._exact = fmpz_mat(lines)
        sizes = [
            max(max(map(abs, line), default=0), max(map(abs, ends)), 1)
            for line, ends in zip(lines, bounds, strict=True)
        ]
        self._floats = np.array([[_share(v, size) for v in line] for line, size in zip(lines, sizes, strict=True)])
        ends = np.array([[_share(v, size) for v in pair] for pair, size in zip(bounds, sizes, strict=True)])
        n = self._floats.shape[1]
        self._highs = highs_of(self._floats, np.zeros(n), (np.zeros(n), np.full(n, np.inf)), (ends[:, 0], ends[:, 1]))

    def is_feasible(self) -> bool:
        """True if some λ keeps to all bounds: with parts that are missing or too many as further columns, none has to be used."""
        m = len(self.lines)
        sizes = [max(map(abs, line), default=0) or 1 for line in self.lines]
        more = [[sign * size * (k == i) for sign in (1, -1) for k in range(m)] for i, size in enumerate(sizes)]
        loose = _Program(
            [[*line, *extra] for line, extra in zip(self.lines, more, strict=True)], self.bounds, self.deadline
        )
        n = len(self.lines[0])
        weights = loose.best([0] * n + [-1] * (2 * m))
        assert weights is not None
        return max(weights, default=0) < n

    def best(self, cost: Sequence[int]) -> dict[int, Fraction] | None:
        """The weights above 0 of an optimum; None if no λ keeps to the bounds."""
        size = max(map(abs, cost)) or 1
        rough = np.array([_share(v, size) for v in cost])
        self._highs.changeColsCost(len(rough), np.arange(len(rough), dtype=np.int32), -rough)
        status = run_highs(self._highs)
        found = self._by_basis(cost) if status == "optimal" else None
        return found if found is not None else self._in_rationals(cost, rough)

    def _by_basis(self, cost: Sequence[int]) -> dict[int, Fraction] | None:
        """The weights of the basis that floats ended with, if it is an optimum in rationals, too."""
        from highspy import HighsBasisStatus

        basis = self._highs.getBasis()
        used = [k for k, status in enumerate(basis.col_status) if status == HighsBasisStatus.kBasic]
        tight = [r for r, status in enumerate(basis.row_status) if status != HighsBasisStatus.kBasic]
        if len(used) != len(tight):
            return None
        is_upper = [basis.row_status[r] == HighsBasisStatus.kUpper for r in tight]
        right = [self.bounds[r][upper] for r, upper in zip(tight, is_upper, strict=True)]
        square = fmpz_mat([[self.lines[r][k] for k in used] for r in tight])
        try:
            weights = square.solve(fmpz_mat([[v] for v in right]))
            prices = square.transpose().solve(fmpz_mat([[cost[k]] for k in used]))
        except ZeroDivisionError:
            return None
        if any(weights[k, 0] < 0 for k in range(len(used))):
            return None
        for k, r in enumerate(tight):  # a bound that is met from one side only has a price of that side
            low, high = self.bounds[r]
            if low != high and prices[k, 0] != 0 and (prices[k, 0] < 0) == is_upper[k]:
                return None
        found = {used[k]: _fraction(weights[k, 0]) for k in range(len(used)) if weights[k, 0] != 0}
        prices_of = dict(zip(tight, (_fraction(prices[k, 0]) for k in range(len(tight))), strict=True))
        others = set(range(len(self.lines))) - set(tight)
        is_kept = all(self.bounds[r][0] <= self.value(r, found) <= self.bounds[r][1] for r in others)
        return found if is_kept and not self._broken(cost, prices_of) else None

    def value(self, r: int, weights: dict[int, Fraction]) -> Fraction:
        """line_r·λ."""
        factor = lcm(*(w.denominator for w in weights.values()))
        whole = sum(w.numerator * (factor // w.denominator) * self.lines[r][k] for k, w in weights.items())
        return Fraction(whole, factor)

    def _broken(self, cost: Sequence[int], prices: dict[int, Fraction]) -> list[int]:
        """The columns that are worth more than these prices of lines."""
        factor = lcm(*(v.denominator for v in prices.values()))
        whole = [int(prices.get(r, 0) * factor) for r in range(len(self.lines))]
        paid: Any = fmpz_mat([whole]) * self._exact
        return [k for k, gain in enumerate(cost) if paid[0, k] < gain * factor]

    def _in_rationals(self, cost: Sequence[int], rough: FloatArray) -> dict[int, Fraction] | None:
        """The same in rationals, over few columns at first; those that are worth more than the prices found join."""
        solution = self._highs.getSolution()
        gains = rough + np.array(solution.row_dual) @ self._floats if solution.dual_valid else np.zeros(len(rough))
        most = len(self.lines) + 8
        chosen = sorted(
            set(np.argsort(-gains)[:most].tolist()) | set(np.flatnonzero(gains > -NEAR).tolist()[: 4 * most])
        )
        while True:
            columns, target = self._standard(chosen)
            gain = [*(Fraction(cost[k]) for k in chosen), *[Fraction(0)] * (len(columns) - len(chosen))]
            found = solve(columns, target, gain, self.deadline)
            is_held = found.weights is not None and not found.unbounded
            worth = cost if found.weights is not None else [0] * len(cost)
            missing = self._broken(worth, dict(enumerate(self._line_prices(found.prices))))
            missing = sorted(set(missing) - set(chosen))
            if not missing:
                if not is_held:
                    return None
                assert found.weights is not None
                return {k: w for k, w in zip(chosen, found.weights, strict=False) if w}
            chosen = sorted({*chosen, *missing[: 4 * most]})

    @cached_property
    def _ranges(self) -> list[int]:
        return [r for r, (low, high) in enumerate(self.bounds) if low != high]

    def _standard(self, chosen: Sequence[int]) -> tuple[list[list[Fraction]], list[Fraction]]:
        """Columns and right side with equalities alone: a line with two bounds is there twice, with what is left to each."""
        m = len(self.lines)
        order = [*range(m), *self._ranges]
        columns = [[Fraction(self.lines[r][k]) for r in order] for k in chosen]
        for i, r in enumerate(self._ranges):
            columns.append([Fraction(int(q == r)) for q in range(m)] + [Fraction(0)] * len(self._ranges))
            columns.append([Fraction(0)] * m + [-Fraction(int(k == i)) for k in range(len(self._ranges))])
        return columns, [Fraction(self.bounds[r][1]) for r in range(m)] + [
            Fraction(self.bounds[r][0]) for r in self._ranges
        ]

    def _line_prices(self, prices: Sequence[Fraction]) -> list[Fraction]:
        total = list(prices[: len(self.lines)])
        for r, price in zip(self._ranges, prices[len(self.lines) :], strict=True):
            total[r] += price
        return total


def _share(value: int, size: int) -> float:
    return float(Fraction(value, size)) if size.bit_length() > 1000 else value / size


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))
