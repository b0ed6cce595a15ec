"""What is proved about the polytope P = {z : Âz ≤ 1} although only rounded numbers are at hand.

The cone's points are α(w0 + Mz), α > 0, z ∈ P, with exact rows Â_i = g_i·M / (−g_i·w0) for the floats w0 and M as they
stand. Floats A satisfy |Â_i − A_i|·|z| ≤ e_i for every z in a proved box −low ≤ z ≤ high that contains P. Then

* for any λ ≥ 0 and r = c − Σ λ_i A_i:   max over P of c·z  ≤  Σ λ_i(1 + e_i) + h_box(r);
* z with A_i·z + e_i ≤ 1 for every i lies in P.

`Polytope.slop[i]` is e_i plus every rounding error made in evaluating either line, and 1 + slop is what is used throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overexplain.knowledge.gauge.centre import NoInterior

FloatArray = NDArray[np.float64]

UNIT = 2.0**-53
TINY = 1e-290
"""More than all underflows of one evaluation together: numbers are scaled to about one before they meet."""
MOST_SLOP = 0.25
BASE_SLOP = 32 * UNIT
"""Covers the handful of scalar operations at the end of every comparison."""


def gamma(count: int) -> float:
    """Relative error of a sum of `count` products in any order, with some to spare for the evaluation of the bound itself."""
    return 1.01 * count * UNIT / (1.0 - count * UNIT)


@dataclass(frozen=True)
class Rows:
    """The scaled rows of the cone beside everything their rounding errors depend on."""

    values: FloatArray
    """(n, k): A"""
    numerator_error: FloatArray
    """(n, D): per row, |g|·γ + errors; times |M| it bounds the error of g·M"""
    denominator: FloatArray
    """(n,): −g·w0 less its error: a lower bound"""
    relative: FloatArray
    """(n,): error of −g·w0 relative to that lower bound, and of the division"""
    spread: FloatArray
    """(D, k): |M|"""

    def take(self, order: NDArray[np.intp]) -> Rows:
        """The same rows in another order."""
        return Rows(
            np.ascontiguousarray(self.values[order]),
            np.ascontiguousarray(self.numerator_error[order]),
            self.denominator[order],
            self.relative[order],
            self.spread,
        )

    def error(self, reach: FloatArray, where: NDArray[np.intp] | slice = slice(None)) -> FloatArray:
        """Per row a bound on |Â_i − A_i|·|z| over |z| ≤ reach."""
        numerator = (self.numerator_error[where] @ (self.spread @ reach) + TINY) / self.denominator[where]
        return np.asarray((numerator + self.relative[where] * (np.abs(self.values[where]) @ reach)) * (1 + 1e-9) + TINY)


def exact_rows(rows: FloatArray, errors: FloatArray | None, centre: FloatArray, spread: FloatArray) -> Rows:
    """A with its error bounds; raises NoInterior unless g·w0 < 0 is proved for every true row."""
    dimension = rows.shape[1]
    magnitude = np.abs(rows) * gamma(dimension + 2)
    if errors is not None:
        magnitude = magnitude + errors
    denominator = -(rows @ centre)
    uncertain = (magnitude @ np.abs(centre)) * (1 + 1e-9) + TINY
    safe = denominator - uncertain
    # Half: a row whose slack is mostly rounding would make every bound that touches it worthless.
    if not np.all(safe > 0.5 * denominator) or not np.isfinite(denominator).all():
        raise NoInterior("the centre cannot be proved to lie inside")
    values = (rows @ spread) / denominator[:, None]
    if not np.isfinite(values).all():
        raise NoInterior("the rows overflow")
    return Rows(values, magnitude, safe * (1 - 1e-9), uncertain / safe * (1 + 1e-9) + 4 * UNIT, np.abs(spread))


@dataclass(frozen=True)
class Polytope:
    """P as the solvers see it: rows A z ≤ 1 inside a proved box."""

    rows: FloatArray
    """(m, k)"""
    slop: FloatArray
    """(m,)"""
    high: FloatArray
    low: FloatArray
    """(k,): −low ≤ z ≤ high for every z of P, proved"""
    identity: NDArray[np.intp]
    """(m,): the number of each row in the cone"""

    @property
    def reach(self) -> FloatArray:
        return np.maximum(self.high, self.low)

    @property
    def rounding(self) -> float:
        """γ of one residual or one product with a point."""
        return gamma(self.rows.shape[1] + 12)

    def only(self, which: NDArray[np.intp]) -> Polytope:
        """Fewer rows, same box."""
        return Polytope(
            np.ascontiguousarray(self.rows[which]), self.slop[which], self.high, self.low, self.identity[which]
        )

    def box_support(self, directions: FloatArray) -> FloatArray:
        """max of c·z over the box, per row c of `directions`."""
        return np.asarray(np.maximum(directions, 0.0) @ self.high + np.maximum(-directions, 0.0) @ self.low)

    def upper(self, directions: FloatArray, basis: NDArray[np.intp], weights: FloatArray) -> FloatArray:
        """Proved upper bounds on max c·z over P, less only γ|c|·reach, which the caller pays with the point's own cost.

        `basis` (N, k) names rows, −1 for none; `weights` (N, k) are cut off at 0. What they leave of c is paid through the box.
        """
        weights = np.where(basis >= 0, np.maximum(weights, 0.0), 0.0)
        residual = directions - np.matmul(weights[:, None, :], self.rows[basis])[:, 0, :]
        total = np.einsum("ij,ij->i", weights, 1.0 + self.slop[basis])
        return np.asarray((total + self.box_support(residual)) * (1.0 + self.rounding))


def with_box(rows: Rows, keep: NDArray[np.intp], high: FloatArray, low: FloatArray) -> Polytope:
    """The polytope of the rows `keep` in a box that has been proved."""
    reach = np.maximum(high, low)
    values = np.ascontiguousarray(rows.values[keep])
    slop = rows.error(reach, keep) + gamma(values.shape[1] + 12) * (np.abs(values) @ reach) + BASE_SLOP
    if not np.all(slop < MOST_SLOP):
        raise NoInterior("the rows are not known well enough")
    return Polytope(values, slop, high, low, keep)


def prove_box(rows: Rows, weights: FloatArray, where: NDArray[np.intp] | slice) -> tuple[FloatArray, FloatArray]:
    """(high, low) of a box that provably holds P, from dual solutions ±e_j ≈ Σ λ_i A_i; raises NoInterior if they are too poor.

    `weights` (2k, m) ≥ 0 belong to the rows `where`, first for the e_j, then for the −e_j. In a given box, P reaches at most
    Σ λ_i(1 + e_i) + h_box(r) along ±e_j, with the errors e_i of that box. If this is less than the box for all j, P lies in
    the box: P is convex and holds 0, and its part in the slightly enlarged box stays strictly inside that.
    """
    values = rows.values[where]
    count, k = values.shape
    targets = np.vstack([np.eye(k), -np.eye(k)])
    residual = targets - weights @ values
    sums = weights.sum(axis=1)
    rounding = gamma(count + k + 12)
    box = np.maximum(sums, 1e-12) * (1 + 1e-6)
    for _ in range(40):
        high, low = box[:k], box[k:]
        reach = np.maximum(high, low)
        errors = rows.error(reach, where) + rounding * (np.abs(values) @ reach)
        paid = np.maximum(residual, 0.0) @ high + np.maximum(-residual, 0.0) @ low + rounding * np.abs(targets) @ reach
        need = (sums + weights @ errors + paid) * (1 + 2 * rounding)
        if np.all(need < box):
            return high, low
        # The residuals are paid through the box itself: a fixed point, reached from below.
        box = np.maximum(box, need * (1 + 1e-4))
    raise NoInterior("the cone cannot be proved to be pointed")


def barrier_weights(values: FloatArray) -> FloatArray:
    """(2k, n) dual solutions for ±e_j that cost no linear program.

    At the analytic centre Σ A_i = 0 and Σ A_i A_iᵀ = I, so e_j = Σ (A_ij + t) A_i for any t.
    """
    columns = np.hstack([values, -values]).T
    return np.asarray(columns - columns.min(axis=1, keepdims=True))
