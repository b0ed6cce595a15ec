"""Linear programs in rational numbers, for the few points where float64 cannot tell: ties.

    maximise  gain·x   subject to   Σ_j x_j·column_j = target,  x ≥ 0

The simplex method on a dense tableau of Fractions with Bland's rule: slow, finite, exact. What it returns is either a solution with
its prices (the dual solution) or, if there is none, prices that prove so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from overexplain.errors import SolverFailed

Column = Sequence[Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


class OutOfTime(SolverFailed):
    """The exact step was stopped by a time limit."""


def _refuse_late(deadline: float | None) -> None:
    if deadline is not None and time.monotonic() > deadline:
        raise OutOfTime("the exact step ran out of time")


@dataclass(frozen=True)
class Outcome:
    """`weights` (None: there is no solution) and `prices` y, one for each row.

    With a solution: y·column_j ≥ gain_j for all j and y·target = gain·weights. Without one: y·column_j ≥ 0 and y·target < 0.
    `unbounded`: the gain has no limit, `weights` is then a direction with target 0 along which it grows.
    """

    weights: list[Fraction] | None
    prices: list[Fraction]
    unbounded: bool = False


def solve(
    columns: Sequence[Column], target: Column, gain: Sequence[Fraction], deadline: float | None = None
) -> Outcome:
    """The exact optimum; `deadline` (time.monotonic) stops it with OutOfTime."""
    tableau = _Tableau(columns, target, deadline)
    infeasible = tableau.find_feasible()
    if infeasible is not None:
        return Outcome(None, infeasible)
    return tableau.optimise(gain)


class _Tableau:
    """Rows [columns | artificial | right side], kept as B⁻¹ times the original."""

    def __init__(self, columns: Sequence[Column], target: Column, deadline: float | None) -> None:
        self.m, self.n, self.deadline = len(target), len(columns), deadline
        self.flip = [-ONE if value < 0 else ONE for value in target]
        self.rows = [
            [self.flip[i] * column[i] for column in columns]
            + [ONE if k == i else ZERO for k in range(self.m)]
            + [self.flip[i] * target[i]]
            for i in range(self.m)
        ]
        self.basis = [self.n + i for i in range(self.m)]

    def find_feasible(self) -> list[Fraction] | None:
        """None, or prices that prove that no weights reach the target."""
        gain = [ZERO] * self.n + [-ONE] * self.m
        self._climb(gain, self.n + self.m)
        if sum((row[-1] for row, b in zip(self.rows, self.basis, strict=True) if b >= self.n), ZERO) > 0:
            # The prices of −artificials: y·column ≥ 0 and y·target = −(what is missing) < 0.
            return self._prices(gain)
        self._drive_out()
        return None

    def optimise(self, gain: Sequence[Fraction]) -> Outcome:
        """From a feasible basis to the best one."""
        full = [*gain, *[ZERO] * self.m]
        entering = self._climb(full, self.n)
        if entering is not None:
            ray = [ZERO] * self.n
            ray[entering] = ONE
            for row, b in zip(self.rows, self.basis, strict=True):
                if b < self.n:
                    ray[b] = -row[entering]
            return Outcome(ray, self._prices(full), unbounded=True)
        weights = [ZERO] * self.n
        for row, b in zip(self.rows, self.basis, strict=True):
            if b < self.n:
                weights[b] = row[-1]
        return Outcome(weights, self._prices(full))

    def _climb(self, gain: Sequence[Fraction], allowed: int) -> int | None:
        """Pivot until no column improves; the column along which the gain is unbounded, if there is one."""
        while True:
            _refuse_late(self.deadline)
            entering = self._improving(gain, allowed)
            if entering is None:
                return None
            leaving = self._blocking(entering)
            if leaving is None:
                return entering
            self._pivot(leaving, entering)

    def _improving(self, gain: Sequence[Fraction], allowed: int) -> int | None:
        """The first column whose reduced gain is positive (Bland: no cycling)."""
        held = [(gain[b], row) for row, b in zip(self.rows, self.basis, strict=True) if gain[b]]
        inside = set(self.basis)
        for j in range(allowed):
            if j not in inside and gain[j] - sum((g * row[j] for g, row in held if row[j]), ZERO) > 0:
                return j
        return None

    def _blocking(self, entering: int) -> int | None:
        best: tuple[Fraction, int] | None = None
        at = None
        for i, row in enumerate(self.rows):
            if row[entering] > 0:
                key = (row[-1] / row[entering], self.basis[i])
                if best is None or key < best:
                    best, at = key, i
        return at

    def _pivot(self, at: int, entering: int) -> None:
        lead = self.rows[at][entering]
        pivot = [value / lead if value else ZERO for value in self.rows[at]]
        self.rows[at] = pivot
        used = [k for k, value in enumerate(pivot) if value]
        for i, row in enumerate(self.rows):
            factor = row[entering]
            if i != at and factor:
                for k in used:
                    row[k] -= factor * pivot[k]
        self.basis[at] = entering

    def _drive_out(self) -> None:
        """Artificial columns still basic (at zero) leave, or stay in rows that are redundant."""
        for i, b in enumerate(self.basis):
            if b >= self.n:
                entering = next((j for j in range(self.n) if self.rows[i][j] != 0 and j not in self.basis), None)
                if entering is not None:
                    self._pivot(i, entering)

    def _prices(self, gain: Sequence[Fraction]) -> list[Fraction]:
        """y = gain_B·B⁻¹, read off the artificial columns, in the sign of the original rows."""
        return [
            self.flip[k]
            * sum((gain[b] * row[self.n + k] for row, b in zip(self.rows, self.basis, strict=True) if gain[b]), ZERO)
            for k in range(self.m)
        ]


def null_space(rows: Sequence[Column], size: int, deadline: float | None = None) -> list[list[Fraction]]:
    """A basis of all v with row·v = 0 for every row, by elimination: v is 1 at one free entry and 0 at the others.

    `deadline` (time.monotonic) stops it with OutOfTime.
    """
    reduced: list[tuple[int, list[Fraction]]] = []
    for row in rows:
        rest = list(row)
        for pivot, done in reduced:
            _refuse_late(deadline)
            if rest[pivot]:
                factor = rest[pivot]
                rest = [a - factor * b if b else a for a, b in zip(rest, done, strict=True)]
        lead = max(range(size), key=lambda i: abs(rest[i]))
        if not rest[lead]:
            continue
        rest = [value / rest[lead] if value else ZERO for value in rest]
        for k, (pivot, done) in enumerate(reduced):
            _refuse_late(deadline)
            if done[lead]:
                factor = done[lead]
                reduced[k] = (pivot, [a - factor * b if b else a for a, b in zip(done, rest, strict=True)])
        reduced.append((lead, rest))
    pivots = {pivot for pivot, _ in reduced}
    basis = []
    for free in range(size):
        if free not in pivots:
            vector = [ZERO] * size
            vector[free] = ONE
            for pivot, row in reduced:
                vector[pivot] = -row[free]
            basis.append(vector)
    return basis


def combine(columns: Sequence[Column], target: Column) -> list[Fraction] | None:
    """The weights with Σ weight·column = target, of independent columns; None if there are none (or the columns depend).

    In whole numbers: no fraction has to be reduced on the way.
    """
    scales = [lcm(*(v.denominator for v in column)) for column in columns]
    wanted = lcm(*(v.denominator for v in target))
    n = len(columns)
    rows = [
        [
            *(int(column[i] * scale) for column, scale in zip(columns, scales, strict=True)),
            int(target[i] * wanted),
        ]
        for i in range(len(target))
    ]
    solved = _by_flint(rows, n) or _by_bareiss(rows, n)
    if solved is None:
        return None
    found, last = solved
    return [Fraction(x * scale, last * wanted) for x, scale in zip(found, scales, strict=True)]


def _by_bareiss(rows: list[list[int]], n: int) -> tuple[list[int], int] | None:
    """(numerators, one denominator) of the solution of n unknowns; None if there is none. Every division is exact."""
    last = 1
    for k in range(n):
        at = min((i for i in range(k, len(rows)) if rows[i][k]), key=lambda i: abs(rows[i][k]), default=None)
        if at is None:
            return None
        rows[k], rows[at] = rows[at], rows[k]
        pivot, lead = rows[k], rows[k][k]
        for row in rows[k + 1 :]:
            factor = row[k]
            if factor:
                row[k + 1 :] = [
                    (lead * a - factor * b) // last for a, b in zip(row[k + 1 :], pivot[k + 1 :], strict=True)
                ]
            else:
                row[k + 1 :] = [lead * a // last for a in row[k + 1 :]]
        last = lead
    if any(row[n] for row in rows[n:]):
        return None
    # Back substitution over the common denominator det, again in whole numbers.
    found = [0] * n
    for k in range(n - 1, -1, -1):
        rest = rows[k][n] * last - sum(a * x for a, x in zip(rows[k][k + 1 : n], found[k + 1 :], strict=True))
        found[k] = rest // rows[k][k]
    return found, last


def _by_flint(rows: list[list[int]], n: int) -> tuple[list[int], int] | None:
    """The same by python-flint, where it is installed; None if it is not, or if there is no solution."""
    try:
        from flint import fmpz_mat
    except ImportError:
        return None
    reduced, below, rank = fmpz_mat(rows).rref()
    if rank != n or any(reduced[k, k] != below for k in range(n)):
        return None
    return [int(reduced[k, n]) for k in range(n)], int(below)
