"""The nearest point of a class's cell: the polyhedron {z : rows·z + shifts ≥ 0} on which no other class beats it.

Solvers find which of its faces the answer lies on; the answer itself is then computed from those faces alone, so that it
lies on them to the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from scipy.linalg import solve_triangular

from overexplain.errors import SolverFailed, UnsupportedNorm
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.lp import Lp, Weighted
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.polyhedral import Facets, Polyhedral

ACTIVE: Final = 1e-8
"""A row that a linear program leaves with less slack than this, relative to the largest gap, holds with equality."""

_SOLVER: Final = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

EMPTY: Final = None
"""The cell of a class that never wins, not even a tie."""


@dataclass(frozen=True, eq=False)
class Cell:
    """{z : rows·z + shifts ≥ 0}, the rows of length 1."""

    rows: FloatArray
    shifts: FloatArray

    @staticmethod
    def of(model: ArgmaxModel, target: int) -> Cell | None:
        """The points at which `target` is best, ties included; EMPTY if there are none."""
        weights, intercepts = model._scaled
        rows = np.delete(weights[target] - weights, target, axis=0)
        shifts = np.delete(intercepts[target] - intercepts, target)
        lengths = np.linalg.norm(rows, axis=1)
        apart = lengths > 0
        if (shifts[~apart] < 0).any():  # the same weights and a smaller intercept: beaten everywhere
            return EMPTY
        cell = Cell(rows[apart] / lengths[apart, None], shifts[apart] / lengths[apart])
        return EMPTY if cell._is_empty() else cell

    def _is_empty(self) -> bool:
        """max {s ≤ 1 : rows·z + shifts ≥ s} < 0, as far as a linear program can tell."""
        from scipy.optimize import linprog

        size = float(np.abs(self.shifts).max())
        if size == 0:
            return False
        m, p = self.rows.shape
        found = linprog(
            np.append(np.zeros(p), -1.0),
            A_ub=np.column_stack([-self.rows, np.ones(m)]),
            b_ub=self.shifts / size,
            bounds=[(None, None)] * p + [(None, 1.0)],
            method="highs",
            options=_SOLVER,
        )
        if found.status != 0:
            raise SolverFailed(f"the linear program that looks for a point of a class failed: {found.message}")
        return bool(found.x[-1] < -1e-9)

    def gaps(self, x: FloatArray) -> FloatArray:
        """By how much each row fails at x: positive where another class is better than the target."""
        return np.asarray(-(self.rows @ x + self.shifts))


CellSolver: TypeAlias = Callable[[Cell, FloatArray], FloatArray]


def cell_solver(norm: Norm, dimension: int) -> CellSolver:
    """How the nearest point of a cell is computed in this norm; UnsupportedNorm if it is not known how."""
    whitening = _whitening(norm, dimension)
    if whitening is not None:
        return lambda cell, x: _nearest_euclidean(cell, x, whitening)
    form = _linear_form(norm, dimension)
    if form is None:
        raise UnsupportedNorm(
            f"{norm!r}: nearest points of a class are computed for l2, l1, linf, their weighted forms, Mahalanobis and "
            "polyhedral norms"
        )
    return lambda cell, x: _nearest_polyhedral(cell, x, form)


def _whitening(norm: Norm, p: int) -> FloatArray | None:
    """The lower triangular F with ‖v‖ = ‖vF‖₂; None if the norm is no such one."""
    if isinstance(norm, Lp) and norm.q == 2:
        return np.eye(p)
    if isinstance(norm, Mahalanobis):
        return norm.whiten(np.eye(p))
    if isinstance(norm, Weighted):
        inner = _whitening(norm.norm, p)
        return None if inner is None else norm.weights[:, None] * inner
    return None


def _nearest_euclidean(cell: Cell, x: FloatArray, whitening: FloatArray) -> FloatArray:
    """x + v with the shortest v: the projection onto the cell in coordinates where the norm is ℓ2."""
    rows = solve_triangular(whitening, cell.rows.T, lower=True).T
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows / lengths[:, None]
    gaps = cell.gaps(x) / lengths
    if gaps.max() <= 0:
        return x.copy()
    step, active = _shortest_step(rows, gaps)
    answer = x + solve_triangular(whitening, step, lower=True, trans=1)
    # Adding x rounded the active rows away from 0: put them back, as close as float64 allows.
    rest = np.linalg.lstsq(rows[active], cell.gaps(answer)[active] / lengths[active], rcond=None)[0]
    return np.asarray(answer + solve_triangular(whitening, rest, lower=True, trans=1))


def _shortest_step(rows: FloatArray, gaps: FloatArray) -> tuple[FloatArray, list[int]]:
    """(shortest u with rows·u ≥ gaps, the rows that hold with equality): least distance programming, then an active set."""
    from scipy.optimize import nnls

    size = float(gaps.max())
    gaps = gaps / size
    equations = np.vstack([rows.T, gaps])
    wanted = np.append(np.zeros(rows.shape[1]), 1.0)
    try:
        multipliers = nnls(equations, wanted, maxiter=50 * len(rows) + 100)[0]
    except RuntimeError as error:
        raise SolverFailed(f"the nearest point of a class was not found: {error}") from None
    active = np.flatnonzero(multipliers > 0).tolist() or [int(gaps.argmax())]
    for _ in range(4 * len(rows) + 8):
        step = np.linalg.lstsq(rows[active], gaps[active], rcond=None)[0]
        multipliers = np.linalg.lstsq(rows[active].T, step, rcond=None)[0]
        if len(active) > 1 and multipliers.min() < -1e-11 * np.abs(multipliers).max():
            active.pop(int(multipliers.argmin()))
            continue
        missing = gaps - rows @ step
        missing[active] = 0.0
        worst = int(missing.argmax())
        if missing[worst] <= 64 * len(wanted) * UNIT_ROUNDOFF * (1 + float(np.linalg.norm(step))):
            return np.asarray(size * step, dtype=np.float64), active
        active.append(worst)
    raise SolverFailed("the nearest point of a class was not found: its faces are too close to parallel for float64")


@dataclass(frozen=True, eq=False)
class _LinearForm:
    """‖v‖ = min cost·y over v = to_step·y, limits·y ≥ 0, and y ≥ 0 where `signed` is False."""

    to_step: FloatArray
    cost: FloatArray
    limits: FloatArray
    signed: bool


def _linear_form(norm: Norm, p: int) -> _LinearForm | None:
    """The norm as a linear program; None if it is none."""
    if isinstance(norm, Lp) and norm.q == 1:
        return _of_corners(np.vstack([np.eye(p), -np.eye(p)]))
    if isinstance(norm, Polyhedral):
        return _of_corners(norm.vertices)
    if isinstance(norm, Lp) and norm.q == math.inf:
        return _of_faces(np.vstack([np.eye(p), -np.eye(p)]))
    if isinstance(norm, Facets):
        return _of_faces(norm.facets)
    if isinstance(norm, Weighted):
        inner = _linear_form(norm.norm, p)
        if inner is not None:
            return _LinearForm(inner.to_step / norm.weights[:, None], inner.cost, inner.limits, inner.signed)
    return None


def _of_corners(corners: FloatArray) -> _LinearForm:
    n = len(corners)
    return _LinearForm(corners.T, np.ones(n), np.zeros((0, n)), signed=False)


def _of_faces(faces: FloatArray) -> _LinearForm:
    p = faces.shape[1]
    limits = np.column_stack([-faces, np.ones(len(faces))])
    return _LinearForm(np.column_stack([np.eye(p), np.zeros(p)]), np.append(np.zeros(p), 1.0), limits, signed=True)


def _nearest_polyhedral(cell: Cell, x: FloatArray, form: _LinearForm) -> FloatArray:
    """x + v with the least cost, from the rows that a linear program finds to hold with equality."""
    from scipy.optimize import linprog

    gaps = cell.gaps(x)
    size = float(gaps.max())
    if size <= 0:
        return x.copy()
    through = cell.rows @ form.to_step
    reach = np.linalg.norm(through, axis=1)  # rows of length 1 again: weights may have changed their size
    matrix = np.vstack([through / reach[:, None], form.limits])
    right = np.concatenate([gaps / size / reach, np.zeros(len(form.limits))])
    unit = max(float(right.max()), np.finfo(np.float64).tiny)
    found: Any = linprog(
        form.cost,
        A_ub=-matrix,
        b_ub=-right / unit,
        bounds=(None, None) if form.signed else (0, None),
        method="highs-ds",
        options=_SOLVER,
    )
    if found.status != 0:
        raise SolverFailed(f"the linear program for the nearest point of a class failed: {found.message}")
    y = np.asarray(found.x, dtype=np.float64)
    small = ACTIVE * max(1.0, float(np.abs(y).max()))
    free = np.ones(len(y), dtype=bool) if form.signed else y > small
    y[~free] = 0.0
    active = matrix @ y - right / unit <= small
    for _ in range(2):  # the second time mends what the first one rounded
        y[free] += np.linalg.lstsq(matrix[np.ix_(active, free)], (right / unit - matrix @ y)[active], rcond=None)[0]
    answer = x + size * unit * (form.to_step @ y)
    rest = np.linalg.lstsq(
        matrix[np.ix_(active, free)], _rest(cell, answer, reach, active, len(form.limits)), rcond=None
    )
    y[:] = 0.0
    y[free] = rest[0]
    return np.asarray(answer + form.to_step @ y)


def _rest(cell: Cell, answer: FloatArray, reach: FloatArray, active: Any, limits: int) -> FloatArray:
    """What adding x rounded away, for the active rows."""
    return np.asarray(np.concatenate([cell.gaps(answer) / reach, np.zeros(limits)])[active])
