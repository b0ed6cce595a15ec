"""The compiled screens. Imported only where they are used: loading Numba takes a second.

Loops in float32 search and never decide; every claim is made by a bound in float64 that `bounds` explains.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

Loop = Callable[..., Any]
f4 = np.float32

# Sums may be reordered, which the error bounds allow. Comparisons keep their meaning for NaN: those assumptions stay off.
_PROOF_FLAGS = {"reassoc", "contract", "nsz"}


def _compiled(flags: set[str] | bool) -> Callable[[Loop], Loop]:
    def decorate(function: Loop) -> Loop:
        try:
            return numba.njit(nogil=True, cache=True, fastmath=flags, error_model="numpy")(function)
        except RuntimeError:  # nowhere to write a cache: compile anew in each process
            return numba.njit(nogil=True, fastmath=flags, error_model="numpy")(function)

    return decorate


proof_loop = _compiled(_PROOF_FLAGS)
search_loop = _compiled(True)


@proof_loop
def screen(X, values, shift, charge, charge_shift, high, low, rounding, ceiling, codes, c, cost, label, place, weak):
    """Settle what the box can; returns (points left, points whose sign at the centre is unclear). See `queries.Directions`."""
    count, width = values.shape
    k = width - 1
    left = 0
    unclear = 0
    for i in range(count):
        row = values[i]
        s0 = row[0] - shift[0]
        size = abs(s0)
        price = charge_shift
        for j in range(len(charge)):
            price += abs(X[i, j]) * charge[j]
        price *= 1.0 + rounding
        if not (size > 2.0 * price and size < 1e300):
            weak[unclear] = i
            unclear += 1
            continue
        turn = -1.0 if s0 > 0 else 1.0
        reached = 0.0
        for j in range(k):
            v = turn * (row[j + 1] - shift[j + 1])
            reached += max(v * high[j], -v * low[j])
        sign = 1 if s0 > 0 else -1
        if (reached + price) * (1.0 + rounding) < size * ceiling:
            codes[i] = sign
            continue
        scale = turn / size
        for j in range(k):
            c[left, j] = (row[j + 1] - shift[j + 1]) * scale
        cost[left] = price / size + 32 * 1.1102230246251565e-16
        label[left] = sign
        place[left] = i
        left += 1
    return left, unclear


@search_loop
def _best_ray(columns, c, gains):
    k, count = columns.shape
    a = f4(c[0])
    first = columns[0]
    for v in range(count):
        gains[v] = a * first[v]
    for j in range(1, k):
        a = f4(c[j])
        row = columns[j]
        for v in range(count):
            gains[v] += a * row[v]
    most = gains[0]
    for v in range(count):
        most = max(most, gains[v])
    for v in range(count):
        if gains[v] == most:
            return v
    return 0


@proof_loop
def by_rays(c, cost, ceiling, columns, points, basis, inverse, rows, front, high, low, rounding, verdict):
    """Into `verdict`: 1 certain, 0 unknown, 3 neither is proved by the best vertex. Returns the number of the latter."""
    count, k = c.shape
    gains = np.empty(columns.shape[1], f4)
    residual = np.empty(k)
    left = 0
    for i in range(count):
        ci = c[i]
        v = _best_ray(columns, ci, gains)
        gain = 0.0
        for j in range(k):
            gain += ci[j] * points[v, j]
        if gain > 1.0 + cost[i]:
            verdict[i] = 0
            continue
        for j in range(k):
            residual[j] = ci[j]
        total = 0.0
        for b in range(k):
            weight = 0.0
            for j in range(k):
                weight += ci[j] * inverse[v, j, b]
            if weight > 0.0:
                r = basis[v, b]
                total += weight * front[r]
                for j in range(k):
                    residual[j] -= weight * rows[r, j]
        for j in range(k):
            total += max(residual[j] * high[j], -residual[j] * low[j])
        if total * (1.0 + rounding) < ceiling - cost[i]:
            verdict[i] = 1
        else:
            verdict[i] = 3
            left += 1
    return left
