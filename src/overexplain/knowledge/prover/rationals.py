"""The same search in rational numbers, for what floats leave open: slow, finite, without rounding.

`project_exactly` is Lawson and Hanson's method with exact least squares in a metric M = TTᵀ, T rounded to whole
numbers. A row joins only if that shortens the residual, so it ends: at residual 0 with weights, or at ρ ≠ 0 with g_i·Mρ
≤ 0 for all rows, and then z = −Mρ is a model of the closed cone with q·z = −ρᵀMρ < 0.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from flint import fmpq, fmpz_mat

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.prover.coding import powers_of

Whole = Sequence[Sequence[int]]


class OutOfTime(SolverFailed):
    """An exact step was stopped by a time limit."""


def in_whole_numbers(rows: Sequence[Sequence[Fraction]]) -> tuple[list[list[int]], list[int]]:
    """(the rows with every column multiplied by its common denominator, these denominators)."""
    units = [lcm(*(v.denominator for v in column)) for column in zip(*rows, strict=True)]
    return [[int(v * unit) for v, unit in zip(row, units, strict=True)] for row in rows], units


def project_exactly(
    G: Whole, q: Sequence[int], start: Sequence[int], metric: FloatArray, deadline: float | None = None
) -> tuple[dict[int, Fraction] | None, list[Fraction] | None]:
    """({row: weight > 0}, None) with Σ weight·G = q, or (None, z) with G·z ≥ 0 and q·z < 0. `start`: rows to begin with."""
    T = _whole_metric(metric)
    A = fmpz_mat([list(g) for g in G]) * T
    c = fmpz_mat([list(q)]) * T
    search = _Search(A, c, deadline)
    search.begin(start)
    while True:
        search.solve()
        rest = search.rest()
        if not any(rest):
            weights = {i: _fraction(w) for i, w in zip(search.held, search.weights, strict=True)}
            if all(
                sum((weight * G[i][j] for i, weight in weights.items()), Fraction(0)) == q[j] for j in range(len(q))
            ):
                return weights, None
            # The metric sees too little: q may have a part that no row has.
            z = unseen(G, q)
            return (None, z) if z is not None else project_exactly(G, q, search.held, np.eye(len(q)), deadline)
        if not search.add(rest):
            model = T * fmpq_column([-v for v in rest])
            return None, [_fraction(model[i, 0]) for i in range(len(q))]


def combine_whole(rows: Whole, target: Sequence[Fraction]) -> list[Fraction] | None:
    """The weights with Σ weight·row = target, of independent rows of whole numbers; None if there are none, or rows depend."""
    below = lcm(*(v.denominator for v in target))
    columns = list(map(list, zip(*rows, strict=True)))
    right = [v.numerator * (below // v.denominator) for v in target]
    if len(rows) == len(target):
        try:
            found = fmpz_mat(columns).solve(fmpz_mat([[v] for v in right]))
        except ZeroDivisionError:
            return None
        return [Fraction(int(w.p), int(w.q) * below) for w in found.entries()]
    reduced, denominator, rank = fmpz_mat([[*column, v] for column, v in zip(columns, right, strict=True)]).rref()
    if rank != len(rows) or any(reduced[k, k] != denominator for k in range(rank)):
        return None
    return [Fraction(int(reduced[k, rank]), int(denominator) * below) for k in range(rank)]


def combine_floats(rows: FloatArray, target: Sequence[Fraction]) -> list[Fraction] | None:
    """The same for rows of floats: a power of two for each column makes them whole, and changes no weight."""
    powers = powers_of(rows).tolist()
    scaled = np.ldexp(rows, [-k for k in powers])
    aim = [Fraction(v.numerator << max(-k, 0), v.denominator << max(k, 0)) for v, k in zip(target, powers, strict=True)]
    if np.isfinite(scaled).all():
        return combine_whole([[int(v) for v in row] for row in scaled.tolist()], aim)
    exact = [[Fraction(v) / Fraction(2) ** k for v, k in zip(row, powers, strict=True)] for row in rows.tolist()]
    return combine_whole([[int(v) for v in row] for row in exact], aim)


def unseen(G: Whole, q: Sequence[int]) -> list[Fraction] | None:
    """z with G·z = 0 and q·z < 0, if q lies outside of the rows' span."""
    null, count = fmpz_mat([list(g) for g in G]).nullspace()
    for k in range(count):
        z = [int(null[j, k]) for j in range(len(q))]
        along = sum(a * b for a, b in zip(q, z, strict=True))
        if along:
            return [Fraction(-v if along > 0 else v) for v in z]
    return None


def interior(G: Whole, deadline: float | None = None) -> tuple[dict[int, Fraction] | None, list[Fraction] | None]:
    """(None, z with G·z > 0), or ({row: weight > 0}, None) with Σ weight·G = 0 and no smaller relation among these rows.

    It is the projection of (0, 1) onto the cone of the rows (g, 1). The rows held are independent, so those of a
    relation have no other.
    """
    size = len(G[0])
    held, z = project_exactly([[*g, 1] for g in G], [*[0] * size, 1], [], np.eye(size + 1), deadline)
    return (held, None) if z is None else (None, z[:-1])


def null_basis(rows: Whole) -> list[list[int]]:
    """A reduced (LLL) basis, a vector a row, of all whole z with rows·z = 0."""
    null, count = fmpz_mat([list(g) for g in rows]).nullspace()
    if not count:
        return []
    size = len(rows[0])
    short = fmpz_mat([[int(null[j, k]) for j in range(size)] for k in range(count)]).lll()
    return [[int(short[k, j]) for j in range(size)] for k in range(count)]


def fmpq_column(values: Sequence[Any]) -> Any:
    """A column vector."""
    from flint import fmpq_mat

    return fmpq_mat(len(values), 1, [fmpq(v) for v in values])


class _Search:
    """The rows held, their weights, and the residual of c."""

    def __init__(self, A: Any, c: Any, deadline: float | None) -> None:
        self.A, self.c, self.deadline = A, c, deadline
        n, r = A.nrows(), A.ncols()
        self.floats = np.array([_rounded([int(A[i, j]) for j in range(r)]) for i in range(n)]).reshape(n, r)
        self.lengths = np.maximum(np.linalg.norm(self.floats, axis=1), 1e-300)
        self.held: list[int] = []
        self.weights: list[Any] = []

    def begin(self, start: Sequence[int]) -> None:
        """Hold those of some rows that are independent, with weights ≥ 0."""
        self.held = list(dict.fromkeys(int(i) for i in start))
        found = self._least_squares() if self.held else []
        while found is None:
            self.held.pop()
            found = self._least_squares() if self.held else []
        self.weights = [v if v > 0 else fmpq(1, 10**12) for v in found]

    def _least_squares(self) -> list[Any] | None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime("the exact step ran out of time")
        r = self.A.ncols()
        B = fmpz_mat([[self.A[i, j] for j in range(r)] for i in self.held])
        gram = B * B.transpose()
        try:
            found = gram.solve(B * self.c.transpose())
        except ZeroDivisionError:
            return None
        return [fmpq(found[k, 0]) for k in range(len(self.held))]

    def solve(self) -> None:
        """Walk to the least-squares weights of the rows held; those whose weight becomes 0 leave."""
        while self.held:
            aim = self._least_squares()
            assert aim is not None  # a row joins only if it is independent of the others
            low = [k for k, v in enumerate(aim) if v <= 0]
            if not low:
                self.weights = aim
                return
            share = min(self.weights[k] / (self.weights[k] - aim[k]) for k in low)
            mixed = [u + share * (v - u) for u, v in zip(self.weights, aim, strict=True)]
            keep = [k for k, v in enumerate(mixed) if v > 0]
            self.held, self.weights = [self.held[k] for k in keep], [mixed[k] for k in keep]

    def rest(self) -> list[Any]:
        r = self.A.ncols()
        return [
            fmpq(self.c[0, j]) - sum((w * self.A[i, j] for w, i in zip(self.weights, self.held, strict=True)), fmpq(0))
            for j in range(r)
        ]

    def add(self, rest: Sequence[Any]) -> bool:
        """Hold one more row, one that shortens the residual; False if none does."""
        most = max(abs(v) for v in rest)
        gains = self.floats @ np.array([float(_fraction(v / most)) for v in rest]) / self.lengths
        gains[self.held] = -np.inf
        for i in np.argsort(-gains).tolist():
            if gains[i] < -1e-9:
                return False
            if sum((v * self.A[i, k] for k, v in enumerate(rest) if self.A[i, k] != 0), fmpq(0)) > 0:
                self.held.append(i)
                self.weights.append(fmpq(0))
                return True
        return False


def _rounded(row: Sequence[int]) -> list[float]:
    """A row of whole numbers of any length in float64, divided by a power of two where it would overflow."""
    shift = max(0, max((abs(v).bit_length() for v in row), default=0) - 900)
    return [float(v >> shift) for v in row]


def _whole_metric(metric: FloatArray) -> Any:
    size = np.abs(metric).max(axis=0)
    scaled = np.rint(metric[:, size > 0] / size[size > 0] * 2.0**24)
    return fmpz_mat([[int(v) for v in row] for row in scaled.tolist()])


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))
