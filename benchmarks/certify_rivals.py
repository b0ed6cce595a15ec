"""What `certify` is measured beside: a linear program per point and side, by scipy's HiGHS and by cvxpy.

Labels: is the point, or its negative, a combination of the log's rows? Explanations: the least and the largest a·x − b over all
models with ‖a‖* ≤ 1 that give the answers to within their tolerance.
"""

from __future__ import annotations

import contextlib
import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from certify_data import FloatArray, Work
from scipy.optimize import linprog

import overexplain as ox

TOLERANCE = 2.0**-40
"""Of an exact answer in float64, for each unit of ‖x‖ + ‖x'‖: what the library takes it for, too."""
ORDERS: dict[str, Any] = {"l1": 1, "linf": np.inf, "l2": 2}
DUALS: dict[str, Any] = {"l1": "inf", "linf": 1, "l2": 2}


class Rival(NamedTuple):
    """Seconds a point, and the codes of the first points."""

    seconds: float
    codes: list[int]


def by_linprog(work: Work, seconds: float) -> Rival | None:
    """Two programs a point as `linprog` solves them; None under l2, which is not linear."""
    if work.answers == "l2":
        return None
    return _one_by_one(work, seconds, None, _linear_labels(work) if work.explained is None else _linear(work))


def by_cvxpy(work: Work, seconds: float, most: int = 5) -> Rival:
    """Two problems a point with cvxpy's default solver, for a few points."""
    return _one_by_one(work, seconds, most, _modelled_labels(work) if work.explained is None else _modelled(work))


def _one_by_one(work: Work, seconds: float, most: int | None, code: Callable[[FloatArray], int]) -> Rival:
    """One point after the other until the time is up; what is loaded on first use is not counted."""
    code(np.append(work.others[0], -1.0))
    codes: list[int] = []
    begin = time.process_time()
    for x in work.points[:most]:
        codes.append(code(np.append(x, -1.0)))
        if time.process_time() - begin > seconds:
            break
    return Rival((time.process_time() - begin) / len(codes), codes)


def _columns(work: Work) -> FloatArray:
    """A column y(x, −1) for every label."""
    return np.ascontiguousarray((np.hstack([work.asked, -np.ones((len(work.asked), 1))]) * work.labels[:, None]).T)


def _linear_labels(work: Work) -> Callable[[FloatArray], int]:
    columns, nothing = _columns(work), np.zeros(len(work.asked))

    def code(query: FloatArray) -> int:
        for side in (ox.YES, ox.NO):
            if linprog(nothing, A_eq=columns, b_eq=side * query, method="highs").status == 0:
                return side
        return 0

    return code


def _modelled_labels(work: Work) -> Callable[[FloatArray], int]:
    import cvxpy as cp

    columns = _columns(work)

    def code(query: FloatArray) -> int:
        for side in (ox.YES, ox.NO):
            weights: Any = cp.Variable(len(work.asked), nonneg=True)
            if _solved(cp.Problem(cp.Minimize(0), [columns @ weights == side * query])) is not None:
                return side
        return 0

    return code


def _rows(work: Work) -> tuple[FloatArray, FloatArray]:
    """(rows, right): rows·(a, b) ≤ right for every model with ‖a‖* = 1 that gives the answers."""
    explained = work.explained
    assert explained is not None
    order, y, one = ORDERS[work.answers], work.labels[:, None], np.ones((len(work.asked), 1))
    step = explained - work.asked
    length, *ends = (np.linalg.norm(rows, order, axis=1) for rows in (step, work.asked, explained))
    tolerance = TOLERANCE * (ends[0] + ends[1])
    answer = np.hstack([explained, -one])
    rows = [answer, -answer, np.hstack([y * step, 0 * one]), -y * np.hstack([work.asked, -one])]
    right = [tolerance, tolerance, 2 * tolerance - length, tolerance - length]
    return np.vstack(rows), np.concatenate(right)


def _linear(work: Work) -> Callable[[FloatArray], int]:
    rows, right = _rows(work)
    p = rows.shape[1] - 1
    bounds: list[tuple[float | None, float | None]] = [(-1.0, 1.0)] * p + [(None, None)]
    if work.answers == "linf":  # ‖a‖1 ≤ 1 takes a in two parts
        rows = np.vstack([_parted(rows), np.append(np.ones(2 * p), 0.0)])
        right, bounds = np.append(right, 1.0), [(0.0, None)] * (2 * p) + [(None, None)]

    def least(query: FloatArray) -> float | None:
        found = linprog(query, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
        return float(found.fun) if found.status == 0 else None

    return lambda query: _code(least, _parted(query) if work.answers == "linf" else query)


def _modelled(work: Work) -> Callable[[FloatArray], int]:
    cp: Any = importlib.import_module("cvxpy")
    rows, right = _rows(work)
    model = cp.Variable(rows.shape[1])
    kept = [rows @ model <= right, cp.norm(model[:-1], DUALS[work.answers]) <= 1]
    return lambda query: _code(lambda goal: _solved(cp.Problem(cp.Minimize(goal @ model), kept)), query)


def _code(least: Callable[[FloatArray], float | None], query: FloatArray) -> int:
    """The verdict by the least and the largest value; no solution says nothing."""
    low, high = least(query), least(-query)
    if low is not None and low >= 0:
        return ox.YES
    return ox.NO if high is not None and high > 0 else 0


def _parted(rows: FloatArray) -> FloatArray:
    """Columns for the positive and the negative part of a, and for b."""
    return np.concatenate([rows[..., :-1], -rows[..., :-1], rows[..., -1:]], axis=-1)


def _solved(problem: Any) -> float | None:
    """The value of a problem; None if it has no solution, or the solver gives up, as on some raw units."""
    import cvxpy as cp

    with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
        warnings.simplefilter("ignore")
        problem.solve()
    return float(problem.value) if problem.status == cp.OPTIMAL else None
