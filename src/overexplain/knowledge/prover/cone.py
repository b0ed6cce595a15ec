"""A cone of models {z : g_i·z > 0 for all rows g_i} in coordinates in which it is round.

The coordinates are those of the barrier −Σ log g_i·z at its analytic centre z0: its Hessian there is the identity. Badly scaled and
nearly dependent columns are nothing special in them. Everything here is advice for the search.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.prover.projection import separate

UNIT = 2.0**-53
RELATION = 1e-9
"""Rows of length 1 that add up to less than this, for weights that add up to 1, may add up to 0."""
NEWTON = 40
"""Steps to the analytic centre, at most; any point inside would do."""


def gamma(count: int) -> float:
    """Relative error of a sum of `count` products in any order, with some to spare for the evaluation of the bound itself."""
    return 1.02 * count * UNIT


def distinct(rows: FloatArray) -> FloatArray:
    """Each row once, sorted: np.unique compares whole rows, which takes a hundred times as long for few."""
    if not len(rows):
        return rows
    ordered = rows[np.lexsort(rows.T[::-1])]
    return np.asarray(ordered[np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))])


class NoInterior(Exception):
    """Floats see no point strictly inside. `weights` ≥ 0, one a row, add the rows up to 0 as far as floats can tell."""

    def __init__(self, weights: FloatArray | None = None) -> None:
        super().__init__("no point strictly inside was found")
        self.weights = weights


@final
class RoundCone:
    """rows     (n, D), taken as exact
    start    a model that may lie inside, to begin with
    map      (D, r): queries q become q @ map; models are map @ z
    unseen   (D, D − r): directions that no row has a part in, as far as floats can tell
    A        (n, r): rows @ map, divided by their `lengths`
    z0       the centre in these coordinates, of length 1, and `centre` in those of the rows
    """

    def __init__(self, rows: FloatArray, start: FloatArray | None = None, rank_tolerance: float = 1e-10) -> None:
        self.rows = rows
        try:
            first, self.unseen = _whitening(rows, rank_tolerance)
        except np.linalg.LinAlgError:
            raise NoInterior from None
        A = rows @ first
        lengths = np.linalg.norm(A, axis=1)
        if not lengths.min(initial=1.0) > 0:
            raise NoInterior
        A /= lengths[:, None]
        inside: FloatArray | None = None if start is None else np.asarray(np.linalg.lstsq(first, start, rcond=None)[0])
        if inside is None or not (A @ inside).min() > 0:
            found, inside = _separated(A)
            if not found:
                raise NoInterior(inside / lengths)
        inside = _analytic_centre(A, inside)
        W = A / (A @ inside)[:, None]
        try:
            turn = np.linalg.inv(np.linalg.cholesky(W.T @ W)).T
        except np.linalg.LinAlgError:
            raise NoInterior from None
        self.map = np.ascontiguousarray(first @ turn)
        z0 = np.linalg.solve(turn, inside)
        self.z0 = z0 / np.linalg.norm(z0)
        A = rows @ self.map
        self.lengths = np.linalg.norm(A, axis=1)
        self.A = np.ascontiguousarray(A / self.lengths[:, None])
        depth = self.A @ self.z0
        if not depth.min() > 0:
            raise NoInterior
        self.rank = len(self.z0)
        self.depth = depth.astype(np.float32)
        self.columns = columns_of(self.A)
        self.scale = 1 / self.lengths
        self.centre = self.map @ self.z0

    def models(self, z: FloatArray) -> FloatArray:
        """Rows of coordinates as models."""
        return z @ self.map.T


def columns_of(A: FloatArray) -> NDArray[np.float32]:
    """A in float32, transposed, with rows of 0 up to a multiple of 8: what the search prices with."""
    n, r = A.shape
    columns = np.zeros((-(-r // 8) * 8, n), dtype=np.float32)
    columns[:r] = A.T
    return columns


def _whitening(rows: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """(D, r) coordinates of the span of the rows in which their second moments are the identity, and what is beside it."""
    n, d = rows.shape
    largest = np.abs(rows).max(axis=0)
    scale = np.where(largest > 0, np.ldexp(1.0, -np.frexp(np.where(largest > 0, largest, 1.0))[1]), 1.0)
    unit = rows * scale
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    if not np.isfinite(unit).all():
        raise NoInterior
    if n > d:
        _, values, turned = np.linalg.svd(unit.T @ unit)  # squared: good enough for a metric, not for a rank
        if values[-1] > 1e-9 * values[0]:
            return scale[:, None] * (turned.T / np.sqrt(values)) * np.sqrt(n), np.zeros((d, 0))
        unit = np.asarray(np.linalg.qr(unit, mode="r"))
    _, singular, turned = np.linalg.svd(unit, full_matrices=False)
    rank = int((singular > tolerance * singular[0]).sum())
    seen = turned[:rank].T
    beside = np.linalg.qr(seen, mode="complete")[0][:, rank:] if rank < d else np.zeros((d, 0))
    return scale[:, None] * (seen / singular[:rank]) * np.sqrt(n), scale[:, None] * beside


def _separated(A: FloatArray) -> tuple[bool, FloatArray]:
    """(True, z inside) or (False, weights of rows that add up to about 0): by the projection, else by a linear program."""
    found: tuple[bool, FloatArray] = separate(A)  # type: ignore[no-untyped-call]
    if found[0] or np.linalg.norm(found[1] @ A) <= RELATION * found[1].sum() or not found[1].any():
        return found
    # The cone is so thin that the projection lost its way: max t subject to A·z ≥ t, |z_i| ≤ 1.
    from scipy.optimize import linprog

    n, r = A.shape
    program = linprog(
        np.append(np.zeros(r), -1.0),
        A_ub=np.hstack([-A, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * r + [(None, 1)],
    )
    if program.status == 0 and (A @ program.x[:-1]).min() > 0:
        return True, np.asarray(program.x[:-1])
    return found


def _analytic_centre(A: FloatArray, z: FloatArray) -> FloatArray:
    """From z, inside, towards the maximum of Σ log A_i·z on a slice of the cone, by damped Newton steps."""
    normal = A.mean(axis=0)
    z = z / (normal @ z)
    basis = np.linalg.qr(normal[:, None], mode="complete")[0][:, 1:]
    B = A @ basis
    for _ in range(NEWTON):
        W = B / (A @ z)[:, None]
        gradient, hessian = W.sum(axis=0), W.T @ W
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            break
        decrement = float(np.sqrt(max(gradient @ step, 0.0)))
        back = -float((W @ step).min(initial=0.0))
        share = 1.0 if decrement < 0.25 else min(1.0, max(1 / (1 + decrement), 0.5 / back if back > 0 else 1.0))
        z = z + share * (basis @ step)
        if decrement < 1e-5:
            break
    return z
