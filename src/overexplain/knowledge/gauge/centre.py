"""A point deep inside a cone, and coordinates in which the cone looks round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

NEWTON_STEPS = 80
CONVERGED = 1e-9
"""Newton decrement at which the analytic centre counts as reached: the first outer box is proved from how well Σ a_i vanishes."""
LOGISTIC_STEPS = 40


class NoInterior(Exception):
    """The cone has no interior that floating point can prove."""


def column_exponents(rows: FloatArray) -> NDArray[np.int64]:
    """Per column the power of two just above its largest entry. Scaling by it is exact and hides the units of the data."""
    largest = np.abs(rows).max(axis=0)
    if not np.all(largest > 0):
        raise NoInterior("a column of zeros")
    return np.asarray(np.frexp(largest)[1], dtype=np.int64)


def preconditioner(rows: FloatArray) -> FloatArray:
    """S with (rows S)ᵀ(rows S) ≈ n·I, rows being of length one: correlated features would make Newton's method stall."""
    n = len(rows)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    gram = unit.T @ unit
    try:
        factor = np.linalg.cholesky(gram).T
        if factor.diagonal().min() < 1e-6 * factor.diagonal().max():
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        factor = np.asarray(np.linalg.qr(unit, mode="r"))
        diagonal = np.abs(factor.diagonal())
        if len(diagonal) < rows.shape[1] or not diagonal.min() > 1e-13 * diagonal.max():
            raise NoInterior("the rows do not have full column rank") from None
    return np.asarray(np.linalg.inv(factor) * np.sqrt(n))


def interior_point(rows: FloatArray) -> FloatArray:
    """A w with rows·w < 0; rows of about unit length.

    A few Newton steps on the logistic loss separate most data at a fraction of the price of a linear program; HiGHS
    (largest margin) is asked only when they do not.
    """
    found = _logistic(rows)
    return found if found is not None else _largest_margin(rows)


def _logistic(rows: FloatArray) -> FloatArray | None:
    n, dimension = rows.shape
    w = -rows.mean(axis=0)
    # Far enough that mistakes count, near enough that the curvature does not vanish.
    w *= 4.0 / max(np.abs(rows @ w).mean(), 1e-300)
    best = -np.inf
    for _ in range(LOGISTIC_STEPS):
        values = rows @ w
        margin = -float(values.max()) / max(float(np.linalg.norm(w)), 1e-300)
        if margin > 0 and (best > 0 or margin > 1e-3):
            return np.asarray(w)
        best = max(best, margin)
        share = 0.5 * (1.0 + np.tanh(0.5 * values))
        curvature = share * (1.0 - share)
        hessian = (rows * curvature[:, None]).T @ rows
        hessian[np.diag_indices(dimension)] += 1e-9 * n + 1e-12 * hessian.diagonal().max()
        try:
            step = np.linalg.solve(hessian, rows.T @ share)
        except np.linalg.LinAlgError:
            return None
        change = np.abs(rows @ step).max()
        w = w - step * min(1.0, max(4.0, 0.5 * float(np.abs(values).max())) / max(change, 1e-300))
        if not np.isfinite(w).all():
            return None
    return w if best > 0 and (rows @ w).max() < 0 else None


def _largest_margin(rows: FloatArray) -> FloatArray:
    from scipy.optimize import linprog

    n, dimension = rows.shape
    cost = np.zeros(dimension + 1)
    cost[-1] = -1.0
    result = linprog(
        cost,
        A_ub=np.hstack([rows, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        bounds=[(-1.0, 1.0)] * dimension + [(0.0, 1.0)],
        method="highs",
    )
    if result.status != 0 or result.x is None or not (rows @ result.x[:-1]).max() < 0:
        raise NoInterior("no strictly interior point was found")
    return np.asarray(result.x[:-1])


def analytic_centre(rows: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(w0, M): the analytic centre of {rows·w ≤ 0, n·w = 1}, n = −mean(rows), and M spanning n's complement.

    M is such that Σ a_i a_iᵀ = I for a_i = Mᵀg_i / (−g_i·w0).
    """
    normal = -rows.mean(axis=0)
    level = normal @ start
    if not level > 0:
        raise NoInterior("the rows do not span a pointed cone")
    w = start / level
    basis = np.linalg.qr(normal[:, None], mode="complete")[0][:, 1:]
    tangent = rows @ basis
    slack = -(rows @ w)
    reached = False
    for _ in range(NEWTON_STEPS):
        scaled = tangent / slack[:, None]
        gradient, hessian = scaled.sum(axis=0), scaled.T @ scaled
        try:
            step = np.linalg.solve(hessian, -gradient)
        except np.linalg.LinAlgError:
            raise NoInterior("the barrier is flat") from None
        decrement = float(np.sqrt(max(-gradient @ step, 0.0)))
        if reached or not np.isfinite(decrement):
            break
        size = 1.0
        if decrement >= 0.25:
            furthest = (scaled @ step).max()
            size = max(1.0 / (1.0 + decrement), min(1.0, 0.5 / furthest) if furthest > 0 else 1.0)
        moved = w + size * (basis @ step)
        moved_slack = -(rows @ moved)
        if not moved_slack.min() > 0:
            break
        w, slack = moved, moved_slack
        reached = decrement < CONVERGED**0.5  # the next step squares it
    if not np.isfinite(decrement) or decrement > 1e-3:
        raise NoInterior("the analytic centre was not reached")
    spread = basis
    for _ in range(2):  # the second pass removes what rounding left of the first
        scaled = (rows @ spread) / slack[:, None]
        try:
            factor = np.linalg.cholesky(scaled.T @ scaled)
            spread = np.linalg.solve(factor, spread.T).T
        except np.linalg.LinAlgError:
            raise NoInterior("the cone is too thin to be made round") from None
    return w, spread
