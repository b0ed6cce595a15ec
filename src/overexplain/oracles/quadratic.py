"""The exact service of a quadratic model: the globally nearest point of the other side, although that is no convex problem."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

from overexplain.errors import InvalidInput, NotFinite, UnsupportedNorm
from overexplain.geometry.arrays import FloatArray, as_point_or_rows
from overexplain.geometry.hyperplane import YES
from overexplain.geometry.lp import Lp, Weighted
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.quadratic import QuadraticModel

FAR = 1e30
"""A multiplier beyond this, all numbers scaled to 1, belongs to a slope that is rounding and nothing else."""

POLISHED = 3
"""Newton steps on the optimality conditions, in the features themselves: the eigenvectors' rounding errors go."""


@final
class QuadraticOracle:
    """Labels by `model`, and the nearest point of the other side in ℓ2, weighted ℓ2 or a Mahalanobis distance.

    In coordinates in which the distance is ℓ2 and M diagonal, y = x' − x is y_i = (t/2)·∇q(x)_i / (1 − t·λ_i) for the one t
    with 1 − t·λ_i ≥ 0 for every i at which q(x + y) = 0: the *global* minimum (S-lemma), found by a monotone equation. In the
    hard case (no slope along the largest λ) the missing part of y is an eigenvector, either sign being optimal. No answer where
    the other side is empty.

    >>> disc = QuadraticModel([[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0], 4.0)
    >>> QuadraticOracle(disc).explain([6.0, 8.0]).round(9).tolist()
    [1.2, 1.6]
    """

    def __init__(self, model: QuadraticModel, mechanism: Mechanism | str = "l2") -> None:
        if not isinstance(model, QuadraticModel):
            raise InvalidInput(f"a QuadraticOracle answers for a QuadraticModel, got {type(model).__name__}")
        if not isinstance(mechanism, Mechanism):
            mechanism = Mechanism(mechanism)
        if mechanism.distance is None or not mechanism.is_plain or mechanism.domain is not None:
            raise InvalidInput("a QuadraticOracle answers by a known distance, without a robustness ball or a domain")
        mechanism.fits(model.dimension)
        self._model = model
        self._mechanism = mechanism
        self._lower = _factor(mechanism.distance, model.dimension)
        scaled = np.ldexp(model._homogeneous, -model._exponent)
        self._linear, self._constant = 2 * scaled[:-1, -1], scaled[-1, -1]
        half = solve_triangular(self._lower, scaled[:-1, :-1], lower=True, check_finite=False)
        white = solve_triangular(self._lower, half.T, lower=True, check_finite=False)
        self._matrix, self._white = scaled[:-1, :-1], white / 2 + white.T / 2
        values, self._vectors = np.linalg.eigh(self._white)
        noise = 4 * (model.dimension + 2) * UNIT_ROUNDOFF
        self._values = np.where(np.abs(values) <= noise * np.abs(values).max(), 0.0, values)
        slope = self._vectors.T @ solve_triangular(self._lower, self._linear, lower=True, check_finite=False)
        self._flat = self._values == 0  # along these directions q is linear: its slope is the same everywhere
        self._slope = np.where(self._flat & (np.abs(slope) <= noise * np.abs(slope).max()), 0.0, slope)
        self._sides = {
            sign: _Side.of(sign * self._values, sign * self._slope, sign * self._constant, noise, sign < 0)
            for sign in (1, -1)
        }

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self._model.dimension

    @property
    def model(self) -> QuadraticModel:
        """The model itself: for tests and wrappers, not for those who ask."""
        return self._model

    @property
    def mechanism(self) -> Mechanism:
        """The published terms."""
        return self._mechanism

    def classify(self, x: ArrayLike) -> Any:
        """+1 (Yes) or −1 (No): an int for a point, an int8 array for rows."""
        points = as_point_or_rows(x, self.dimension)
        return self._model.label(points) if points.ndim == 1 else self._model.labels(points)

    def explain(self, x: ArrayLike) -> FloatArray | None:
        """The nearest point of the other side or, where that is open, of its closure; None (in a batch NaN) if it is empty."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self._nearest(points)
        answers = [self._nearest(row) for row in points]
        return np.array([np.full(self.dimension, np.nan) if z is None else z for z in answers]).reshape(points.shape)

    def _nearest(self, x: FloatArray) -> FloatArray | None:
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            product = self._matrix @ x
            level = float(x @ product + self._linear @ x + self._constant)
            slope = solve_triangular(self._lower, 2 * product + self._linear, lower=True, check_finite=False)
            if not (np.isfinite(level) and np.isfinite(slope).all()):
                raise NotFinite("the model's values at this point leave float64's range; scale the features")
            sign = -1 if self._model.label(x) == YES else 1
            side = self._sides[sign]
            if side is _Side.EMPTY:
                return None
            depth = max(0.0, -sign * level)  # how far below 0 the function is that must rise to 0
            turned = np.where(self._flat, self._slope, self._vectors.T @ slope)
            if side is _Side.SUMMIT:
                y = self._vectors @ _summit(sign * self._values, sign * turned)
            else:
                y = self._vectors @ _rise(sign * self._values, sign * turned, depth)
                y = _polished(sign * self._white, sign * slope, depth, y)
            answer = x + solve_triangular(self._lower, y, lower=True, trans=1, check_finite=False)
        if not np.isfinite(answer).all():
            raise NotFinite("an explanation would be too far away for float64; scale the features")
        return np.asarray(answer)


def _factor(norm: Norm, dimension: int) -> FloatArray:
    """The lower triangular L with ‖w‖ = ‖L'w‖₂."""
    if isinstance(norm, Lp) and norm.q == 2:
        return np.eye(dimension)
    if isinstance(norm, Weighted):
        return np.asarray(norm.weights[:, None] * _factor(norm.norm, dimension))
    if isinstance(norm, Mahalanobis):
        return norm._lower * norm._scale
    raise UnsupportedNorm(
        f"nearest points of a quadric are known in closed form for l2, weighted l2 and Mahalanobis distances, not for {norm!r}"
    )


class _Side(Enum):
    """Where a quadratic function is at least 0 (`strict`: above 0): nowhere, on its summit only, or on a set with inside."""

    EMPTY = 0
    SUMMIT = 1
    OPEN = 2

    @staticmethod
    def of(curvature: FloatArray, slope: FloatArray, constant: float, noise: float, strict: bool) -> _Side:
        """Decided once, from the coefficients: far from the surface rounding would hide it."""
        if curvature.max() > 0 or slope[curvature == 0].any():
            return _Side.OPEN
        rise = float(slope @ _summit(curvature, slope)) / 2
        height, blur = constant + rise, noise * (abs(constant) + rise)
        if height > blur:
            return _Side.OPEN
        return _Side.EMPTY if strict or height < -blur else _Side.SUMMIT


def _summit(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """The nearest y to 0 at which Σ λ_i·y_i² + slope·y is largest, for λ ≤ 0 and no slope where λ = 0."""
    bent = curvature < 0
    return np.where(bent, slope / np.where(bent, -2 * curvature, 1.0), 0.0)


def _rise(curvature: FloatArray, slope: FloatArray, depth: float) -> FloatArray:
    """The shortest y with Σ λ_i·y_i² + slope·y = depth ≥ 0, which has a solution."""
    if depth == 0:
        return np.zeros(len(slope))
    # The unit of length in which the larger of the two terms reaches the depth: then all numbers are at most 1.
    bend, fall = float(np.abs(curvature).max()), float(np.linalg.norm(slope))
    unit = min(math.sqrt(depth / bend) if bend else math.inf, depth / fall if fall else math.inf)
    curvature, slope = curvature / depth * unit * unit, slope / depth * unit
    highest = max(0.0, float(curvature.max()))
    below = np.where(curvature >= highest * (1 - 1e-14), 0.0, highest - curvature) if highest else -curvature

    def missing(u: float) -> float:
        # t = u/(1 + u·highest): every term is positive and none cancels, up to the pole and beyond.
        grown = 1 + u * below
        return float(slope**2 @ (u * (2 + u * (below + highest)) / (4 * grown * grown))) - 1.0

    low, high = 0.0, 1.0
    while missing(high) < 0 and high < FAR:
        low, high = high, 4 * high
    if missing(high) >= 0:
        u = float(brentq(missing, low, high, xtol=1e-15 * max(low, 1e-3), rtol=4 * np.finfo(np.float64).eps))
        return np.asarray(unit * (u / 2) * slope / (1 + u * below))
    if highest == 0:  # all but the summit is lost to rounding
        return unit * _summit(curvature, slope)
    top = below == 0
    y = np.zeros(len(slope))
    y[~top] = slope[~top] / (2 * below[~top])
    reached = float(slope[~top] @ y[~top] + curvature[~top] @ y[~top] ** 2)
    y[int(np.flatnonzero(top)[-1])] = math.sqrt(max(0.0, 1 - reached) / highest)
    return unit * y


def _polished(matrix: FloatArray, slope: FloatArray, depth: float, y: FloatArray) -> FloatArray:
    """y after Newton steps on y = (t/2)·(2My + slope), y'My + slope·y = depth, as long as they bring the two closer."""
    best, least = y, math.inf
    for _ in range(POLISHED + 1):
        product = matrix @ y
        normal = 2 * product + slope
        square = float(normal @ normal)
        if square == 0:  # an apex or a summit: nothing to polish by
            return best
        t = 2 * float(normal @ y) / square
        off = y - t / 2 * normal
        height = float(y @ product + slope @ y) - depth
        error = float(np.linalg.norm(off)) + abs(height) / math.sqrt(square)
        if not error < least:
            return best
        best, least = y, error
        p = len(y)
        system = np.block([[np.eye(p) - t * matrix, -normal[:, None] / 2], [normal[None, :], np.zeros((1, 1))]])
        try:
            y = y - np.linalg.solve(system, np.append(off, height))[:p]
        except np.linalg.LinAlgError:
            return best
    return best
