"""Takes a polyhedral cone apart once, so that signs over it can be decided by the million."""

from __future__ import annotations

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import barrier_weights, exact_rows, prove_box
from overexplain.knowledge.gauge.centre import (
    NoInterior,
    analytic_centre,
    column_exponents,
    interior_point,
    preconditioner,
)
from overexplain.knowledge.gauge.gauge import Gauge
from overexplain.knowledge.gauge.shape import searched_box

__all__ = ["Gauge", "NoInterior", "fit_gauge"]


def fit_gauge(rows: FloatArray, errors: FloatArray | None = None, start: FloatArray | None = None) -> Gauge:
    """The gauge of the cone {u : g·u ≤ 0 for every row g}; raises NoInterior unless an interior is found and proved.

    rows (n, D) need full column rank. True row i lies within errors[i] (a number, or one per entry) of rows[i].
    `start`: a point inside, if the caller knows one.
    """
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise NoInterior("no rows, or rows that are not finite")
    if errors is not None:
        errors = np.broadcast_to(errors[:, None] if np.ndim(errors) == 1 else errors, rows.shape)
    numbers = _distinct(rows, errors)
    columns = column_exponents(rows)
    scaled = np.ldexp(rows[numbers], -columns)
    heights = np.frexp(np.abs(scaled).max(axis=1))[1][:, None]
    scaled = np.ldexp(scaled, -heights)
    scaled_errors = None if errors is None else np.ldexp(errors[numbers], -columns - heights)

    inner = preconditioner(scaled)
    round_rows = scaled @ inner
    round_rows /= np.linalg.norm(round_rows, axis=1, keepdims=True)
    begin: FloatArray | None = None
    if start is not None:
        begin = np.asarray(np.linalg.solve(inner, np.ldexp(np.asarray(start, dtype=np.float64), columns)))
        if not np.isfinite(begin).all() or not (round_rows @ begin).max() < 0:
            begin = None
    centre, spread = analytic_centre(round_rows, interior_point(round_rows) if begin is None else begin)
    centre, spread = inner @ centre, inner @ spread

    # What the caller sees, in the units of the data; scaled back so that the proofs are about exactly these floats.
    centre, spread = np.ldexp(centre, -columns), np.ldexp(spread, -columns[:, None])
    exact = exact_rows(scaled, scaled_errors, np.ldexp(centre, columns), np.ldexp(spread, columns[:, None]))
    order = np.argsort(-np.einsum("ij,ij->i", exact.values, exact.values), kind="stable")
    exact = exact.take(order)
    try:
        high, low = prove_box(exact, barrier_weights(exact.values), slice(None))
        return Gauge(centre, spread, exact, numbers[order], high, low)
    except NoInterior:
        # Errors of the rows weigh n times as much in that box as in a tight one.
        high, low = searched_box(exact)
        return Gauge(centre, spread, exact, numbers[order], high, low)


def _distinct(rows: FloatArray, errors: FloatArray | None) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The first of every set of equal rows; rows of zeros say nothing and are left out."""
    said = rows if errors is None else np.hstack([rows, errors])
    said = np.ascontiguousarray(said + 0.0)  # −0.0 becomes 0.0
    keys = said.view(np.dtype((np.void, said.dtype.itemsize * said.shape[1]))).ravel()
    _, first = np.unique(keys, return_index=True)
    first.sort()
    keep = first[np.any(said[first] != 0, axis=1)]
    if not len(keep):
        raise NoInterior("no rows")
    return np.asarray(keep, dtype=np.intp)
