"""What labels alone cannot reach: directions of (a, b) that no logged point has a part in.

If the logged rows (x, −1) span less than the whole space (few rows, a constant column, one-hot groups), a model may be changed
along every ℓ with row·ℓ = 0 and no answer shows it. A point is then unknown unless its own row is orthogonal to all ℓ too, and
that is a question about exact zeros: floats answer it where they can, rationals where they cannot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.norm import UNIT_ROUNDOFF
from overexplain.knowledge.exact import OutOfTime, null_space

DEPENDENT = 1e-11
"""Relative size below which a pivot of the scaled rows counts as zero."""


@dataclass
class _Memo:
    """The exact basis, once it is known; or that the time did not suffice."""

    basis: list[list[Fraction]] | None = None
    gave_up: bool = False


@final
@dataclass(frozen=True, eq=False)
class Span:
    """The span of some rows (n, d): `pivots` are columns that determine the others on it."""

    rows: FloatArray
    pivots: IntArray
    others: IntArray
    relations: FloatArray
    errors: FloatArray
    _memo: _Memo = field(default_factory=_Memo)

    @classmethod
    def of(cls, rows: FloatArray, exponents: IntArray) -> Span:
        """The span of the rows, after scaling columns by the given powers of two."""
        from scipy.linalg import qr, solve_triangular

        scaled = np.ldexp(rows, exponents)
        size = np.linalg.norm(scaled, axis=1, keepdims=True)
        scaled = scaled / np.where(size > 0, size, 1.0)
        triangle, order = qr(scaled, mode="r", pivoting=True)
        diagonal = np.abs(np.diag(triangle))
        rank = int(np.sum(diagonal > DEPENDENT * max(diagonal[0], 1e-300))) if len(diagonal) else 0
        pivots, others = np.sort(order[:rank]), np.sort(order[rank:])
        # Column f of the rows is Σ_k relation_fk · column k on the span: least squares on the triangular factor.
        where = np.argsort(order)
        free = triangle[:rank, where[others]]
        relations = solve_triangular(triangle[:rank, :rank], free).T
        relations = relations[:, np.argsort(order[:rank])]
        # A computed ℓ misses the rows by a little; the exact one is within that, divided by the least singular value.
        least = np.linalg.svd(triangle[:rank, :rank], compute_uv=False)[-1] if rank else 1.0
        missed = 64 * len(order) * UNIT_ROUNDOFF * (1 + np.abs(relations).sum(axis=1)) * np.sqrt(len(rows)) / least
        back = np.ldexp(1.0, exponents)
        relations = relations * back[pivots][None, :] / back[others][:, None]
        return cls(rows, pivots, others, relations, missed)

    @property
    def is_whole(self) -> bool:
        """True if nothing is out of reach."""
        return len(self.others) == 0

    def is_certain(self, deadline: float | None = None) -> bool:
        """True if the rank found in floats is the exact one: it is never larger, and rows may depend on each other only nearly.

        False, too, if the time (time.monotonic) does not suffice to tell.
        """
        if len(self.pivots) == len(np.unique(self.rows, axis=0)):
            return True
        try:
            return len(self.exact(deadline)) == len(self.others)
        except OutOfTime:
            return False

    def exact(self, deadline: float | None = None) -> list[list[Fraction]]:
        """A basis of all ℓ with row·ℓ = 0, in rationals: computed only if a point asks for it; OutOfTime at the deadline.

        What did not suffice once is not spent again, point after point.
        """
        if self._memo.basis is None:
            if deadline is not None and self._memo.gave_up:
                raise OutOfTime("the exact step ran out of time")
            try:
                self._memo.basis = self._eliminated(deadline)
            except OutOfTime:
                self._memo.gave_up = True
                raise
        return self._memo.basis

    def _eliminated(self, deadline: float | None) -> list[list[Fraction]]:
        from scipy.linalg import qr

        distinct = np.unique(self.rows, axis=0)
        size = np.abs(distinct).max(axis=1, keepdims=True)
        order = qr((distinct / np.where(size > 0, size, 1.0)).T, mode="r", pivoting=True)[1]
        rank = len(self.pivots)
        # As many rows as the rank usually say it all; the others are held against the result.
        found = null_space(_exact(distinct[order[:rank]]), self.rows.shape[1], deadline)
        rest = _exact(distinct[order[rank:]])
        if all(_dot(row, vector) == 0 for row in rest for vector in found):
            return found
        return null_space(_exact(distinct), self.rows.shape[1], deadline)

    def reached(
        self, queries: FloatArray, exponents: IntArray, deadline: float | None = None
    ) -> tuple[BoolArray, BoolArray]:
        """For each query row: True if it lies in the span, exactly; and True if the time did not suffice to tell."""
        scaled = np.ldexp(queries, exponents)
        length = np.linalg.norm(scaled, axis=1)
        gap = queries[:, self.others] - queries[:, self.pivots] @ self.relations.T
        gap = np.abs(np.ldexp(gap, exponents[self.others]))
        rounding = 64 * queries.shape[1] * UNIT_ROUNDOFF * length[:, None]
        outside = (gap > 2 * self.errors * length[:, None] + rounding).any(axis=1)
        reached, doubtful = np.zeros(len(queries), dtype=bool), ~outside
        if not doubtful.any():
            return reached, doubtful
        try:
            basis = self.exact(deadline)
        except OutOfTime:
            return reached, doubtful
        used = np.flatnonzero([any(vector[k] for vector in basis) for k in range(queries.shape[1])])
        unique, inverse = np.unique(queries[np.ix_(doubtful, used)], axis=0, return_inverse=True)
        zero = np.array([_is_orthogonal(row, used, basis) for row in unique.tolist()], dtype=bool)
        reached[doubtful] = zero[np.ravel(inverse)] if len(used) else True
        return reached, np.zeros_like(reached)


def _is_orthogonal(values: list[float], used: IntArray, basis: list[list[Fraction]]) -> bool:
    exact = [Fraction(v) for v in values]
    return all(sum((v * vector[k] for v, k in zip(exact, used, strict=True)), Fraction(0)) == 0 for vector in basis)


def _exact(rows: FloatArray) -> list[list[Fraction]]:
    return [[Fraction(v) for v in row] for row in rows.tolist()]


def _dot(u: list[Fraction], v: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(u, v, strict=True) if a and b), Fraction(0))
