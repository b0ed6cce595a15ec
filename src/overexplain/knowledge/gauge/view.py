"""How points become queries of a cone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import TINY, gamma

if TYPE_CHECKING:
    from overexplain.knowledge.gauge.fit import Gauge


@dataclass(frozen=True)
class View:
    """Queries in the coordinates of a gauge: q·w = q·anchor + (q·matrix)·z for w = N(w0 + Mz), up to |q|·error."""

    anchor: FloatArray
    """(d,) ≈ N w0"""
    matrix: FloatArray
    """(d, k) ≈ N M"""
    error: FloatArray
    """(d,) ≥ 0: |q|·error bounds what anchor and matrix leave out over the whole reach box. The rounding made in evaluating
    q·anchor and q·matrix is not part of it: `Gauge.decide` adds that."""
    relax: float = 0.0
    """Every consistent w has A z ≤ 1 + relax."""
    has_offset: bool = True
    """True: a point x asks q = (x, −1). False: points are the queries themselves."""

    @classmethod
    def of(cls, gauge: Gauge, N: FloatArray | None = None, relax: float = 0.0, has_offset: bool = True) -> View:
        """The view of w = N u, u in the cone of `gauge`; N = None: the cone itself."""
        if N is None:
            return cls(gauge.centre, gauge.spread, np.zeros(len(gauge.centre)), relax, has_offset)
        size = np.abs(N)
        extent = np.abs(gauge.centre) + np.abs(gauge.spread) @ gauge.reach
        error = gamma(N.shape[1] + 2) * (1 + relax) * (size @ extent) * (1 + 1e-9) + TINY
        return cls(N @ gauge.centre, N @ gauge.spread, error, relax, has_offset)

    def charge(self, reach: FloatArray) -> FloatArray:
        """(d,): |q|·charge bounds the error of s0 + c·z as computed, s0 = q·anchor, c = q·matrix, for every |z| ≤ reach.

        That is the view's own error, the rounding of s0 and c, and that of products of c with a point or of a residual of c.
        """
        evaluation = gamma(sum(self.matrix.shape) + 24) * (np.abs(self.anchor) + np.abs(self.matrix) @ reach)
        return np.asarray((self.error + evaluation) * (1 + 1e-9) + TINY)
