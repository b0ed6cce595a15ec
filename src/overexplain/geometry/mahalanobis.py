"""√(xᵀMx) and its dual √(aᵀM⁻¹a), both from one Cholesky factor so that neither loses digits to an inverse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_rows, frozen
from overexplain.geometry.lp import l2
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF, Face, Norm


@final
@dataclass(frozen=True, eq=False, init=False)
class Mahalanobis(Norm):
    """‖x‖ = √(xᵀMx) for a symmetric positive definite matrix M.

    >>> Mahalanobis([[4.0, 0.0], [0.0, 1.0]])([1.0, 0.0])
    2.0
    """

    matrix: FloatArray
    is_smooth = True
    is_absolute = False

    def __init__(self, matrix: ArrayLike) -> None:
        rows = as_rows(matrix, name="matrix")
        if rows.shape[0] != rows.shape[1]:
            raise InvalidInput(f"a Mahalanobis matrix must be square, got shape {rows.shape}")
        if not np.allclose(rows, rows.T, rtol=1e-12, atol=0.0):
            raise InvalidInput("a Mahalanobis matrix must be symmetric; use (M + M.T) / 2")
        object.__setattr__(self, "matrix", frozen(rows / 2 + rows.T / 2))  # an inverse is symmetric but for rounding
        if self._factor is None or not _is_positive_definite(self.matrix):
            raise InvalidInput(
                "a Mahalanobis matrix must be positive definite; this one is singular, indefinite, or too close to it "
                f"for float64 (condition number above 1e15, {self.dimension} features). Add a small multiple of the "
                "identity, or drop features that others determine"
            )

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return len(self.matrix)

    @cached_property
    def _scale(self) -> float:
        return math.sqrt(float(np.abs(self.matrix).max()))

    @cached_property
    def _condition(self) -> float:
        return float(np.linalg.cond(self.matrix / self._scale / self._scale))

    @cached_property
    def _factor(self) -> FloatArray | None:
        if self._scale == 0 or not self._condition < 1e15:
            return None
        try:
            return np.asarray(np.linalg.cholesky(self.matrix / self._scale / self._scale))
        except np.linalg.LinAlgError:
            return None

    @property
    def answer_rounding(self) -> float:  # type: ignore[override]
        return max(FLOAT64_ANSWER, 8 * self.dimension * self._condition * UNIT_ROUNDOFF)

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.matrix, other.matrix) if isinstance(other, Mahalanobis) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())

    def whiten(self, x: ArrayLike) -> FloatArray:
        """Coordinates in which this norm is ℓ2: ‖x‖ = ‖whiten(x)‖₂."""
        return np.asarray(x, dtype=np.float64) @ self._lower * self._scale

    @property
    def _lower(self) -> FloatArray:
        assert self._factor is not None  # refused in __post_init__
        return self._factor

    def __call__(self, x: ArrayLike) -> Any:
        return l2(self.whiten(x))

    @cached_property
    def dual(self) -> DualMahalanobis:
        return DualMahalanobis(self)

    def face(self, a: FloatArray) -> Face:
        return Face.of_point(self.dual.gradient(a))

    def gradient(self, w: FloatArray) -> FloatArray:
        unit = l2.gradient(self.whiten(w))
        return np.asarray(self._lower @ unit * self._scale)

    def gradient_error(self, w: FloatArray, error: FloatArray) -> FloatArray:
        return _gradient_error(self, w, error)

    def units(self, p: int) -> FloatArray:
        return np.sqrt(np.diag(self.matrix))

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "mahalanobis", "matrix": self.matrix.tolist()}


def _is_positive_definite(matrix: FloatArray) -> bool:
    """True if a symmetric matrix is positive definite as it stands, without rounding.

    Shown by the Cholesky factor of a matrix with a smaller diagonal, by more than its rounding (Rump 2006), or else in rationals.
    """
    p = len(matrix)
    diagonal = np.diag(matrix)
    if not (diagonal > 0).all():
        return False
    exponents = np.frexp(diagonal)[1] // 2  # powers of two: scaling by them is exact
    scaled = np.ldexp(matrix, -(exponents[:, None] + exponents[None, :]))
    try:
        np.linalg.cholesky(scaled - 4 * (p + 4) * UNIT_ROUNDOFF * float(np.trace(scaled)) * np.eye(p))
        return True
    except np.linalg.LinAlgError:
        pass
    rows = [[Fraction(v) for v in row] for row in matrix.tolist()]
    for k, top in enumerate(rows):
        if top[k] <= 0:
            return False
        for row in rows[k + 1 :]:
            factor = row[k] / top[k]
            row[k:] = [v - factor * u for v, u in zip(row[k:], top[k:], strict=True)]
    return True


@final
@dataclass(frozen=True)
class DualMahalanobis(Norm):
    """‖a‖ = √(aᵀM⁻¹a), the dual of Mahalanobis(M), by triangular solves."""

    primal: Mahalanobis
    is_smooth = True
    is_absolute = False

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.primal.dimension

    @property
    def answer_rounding(self) -> float:  # type: ignore[override]
        return self.primal.answer_rounding

    def _whiten(self, a: ArrayLike) -> FloatArray:
        rows = np.asarray(a, dtype=np.float64)
        solved = solve_triangular(self.primal._lower, rows.T, lower=True, check_finite=False)
        return np.asarray(solved.T / self.primal._scale)

    def __call__(self, x: ArrayLike) -> Any:
        return l2(self._whiten(x))

    @property
    def dual(self) -> Mahalanobis:
        return self.primal

    def face(self, a: FloatArray) -> Face:
        return Face.of_point(self.primal.gradient(a))

    def gradient(self, w: FloatArray) -> FloatArray:
        unit = l2.gradient(self._whiten(w))
        solved = solve_triangular(self.primal._lower, unit, lower=True, trans=1, check_finite=False)
        return np.asarray(solved / self.primal._scale)

    def gradient_error(self, w: FloatArray, error: FloatArray) -> FloatArray:
        return _gradient_error(self, w, error)

    def units(self, p: int) -> FloatArray:
        return np.asarray(self(np.eye(p)))

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "dual-mahalanobis", "matrix": self.primal.matrix.tolist()}


def _gradient_error(norm: Norm, w: FloatArray, error: FloatArray) -> FloatArray:
    """∇ is 2/‖w‖-Lipschitz from the norm to its dual, and |δ_i| ≤ ‖δ‖*·‖e_i‖.

    Solving with M costs the service condition·u besides, which no entry-wise error of w shows.
    """
    units, length = norm.units(len(w)), float(norm(w))
    moved = norm.answer_rounding * length + float(error @ units)
    return units * min(1.0, 2 * moved / length)
