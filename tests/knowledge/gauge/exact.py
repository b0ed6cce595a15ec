"""Queries at a known distance from a tie, with the truth in exact rationals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from overexplain.geometry.arrays import FloatArray


def labelled(
    p: int, n: int, seed: int, scales: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, float, np.random.Generator]:
    """(rows of the cone of a random classifier's labels, its normal, its offset, the generator)."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(p)
    offset = 0.3 * float(np.linalg.norm(normal))
    points = rng.standard_normal((n, p))
    sign = np.where(points @ normal >= offset, -1.0, 1.0)
    if scales is not None:
        points = points * scales
    return np.hstack([points, -np.ones((n, 1))]) * sign[:, None], normal, offset, rng


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """x with matrix·x = right, by elimination."""
    size = len(right)
    work = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        pivot = next(r for r in range(i, size) if work[r][i] != 0)
        work[i], work[pivot] = work[pivot], work[i]
        scale = work[i][i]
        work[i] = [v / scale for v in work[i]]
        for r in range(size):
            if r != i and work[r][i] != 0:
                factor = work[r][i]
                work[r] = [a - factor * b for a, b in zip(work[r], work[i], strict=True)]
    return [row[-1] for row in work]


def fractions(values: FloatArray) -> list[Fraction]:
    return [Fraction(float(v)) for v in values]


def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


@dataclass(frozen=True)
class Corner:
    """An extreme ray of the cone, proved, with the rows that are tight there."""

    basis: list[list[Fraction]]
    middle: list[Fraction]
    """inside the cone of the rows"""

    @classmethod
    def of(cls, rows: FloatArray, tight: list[int]) -> Corner | None:
        """None unless exactly these rows meet in an extreme ray of the cone."""
        exact = [fractions(row) for row in rows]
        size = rows.shape[1]
        # In the units of the data the sum of the rows may be dominated by one column; weights of one suit any units.
        middle = [sum((row[j] for row in exact), Fraction(0)) for j in range(size)]
        basis = [exact[i] for i in tight]
        try:
            ray = solve([*basis, middle], [Fraction(0)] * (size - 1) + [Fraction(-1)])
        except StopIteration:
            return None
        return cls(basis, middle) if all(dot(row, ray) <= 0 for row in exact) else None

    def excess(self, query: list[Fraction]) -> Fraction | None:
        """τ of query = Σ λ_i g_i + τ·middle, or None if some λ_i < 0.

        τ > 0: negative all over the cone; τ < 0: positive at the ray; τ = 0: a tie.
        """
        columns = [*self.basis, self.middle]
        weights = solve([[column[j] for column in columns] for j in range(len(query))], query)
        return weights[-1] if all(weight >= 0 for weight in weights[:-1]) else None
