"""The active-set search of `projection` in loops that Numba compiles. Imported only where they are used.

Sums may be reordered: the search decides nothing, and sums of whole numbers below 2^53 are exact in any order. Comparisons
keep their meaning for NaN in everything that is proved.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from overexplain.knowledge.prover.projection import (
    CLOSE,
    DEPENDENT,
    FOLLOW,
    GAIN,
    HELD,
    NOISE,
    SLACK,
    SMALL,
    STUCK,
    TINY,
    UNKNOWN,
)

Loop = Callable[..., Any]
f4 = np.float32


def _compiled(flags: set[str] | bool) -> Callable[[Loop], Loop]:
    def decorate(function: Loop) -> Loop:
        try:
            return numba.njit(nogil=True, cache=True, fastmath=flags, error_model="numpy")(function)
        except RuntimeError:  # nowhere to write a cache: compiled anew in each process
            return numba.njit(nogil=True, fastmath=flags, error_model="numpy")(function)

    return decorate


proof_loop = _compiled({"reassoc", "contract", "nsz"})
search_loop = _compiled(True)


@search_loop
def price(columns, x, out, n):
    """out = x·columns in float32; there are a multiple of 8 rows in `columns`, the last of them 0."""
    r = len(x)
    out[:n] = f4(0)
    for first in range(0, len(columns), 8):
        x0 = f4(x[first])
        x1 = f4(x[first + 1]) if first + 1 < r else f4(0)
        x2 = f4(x[first + 2]) if first + 2 < r else f4(0)
        x3 = f4(x[first + 3]) if first + 3 < r else f4(0)
        x4 = f4(x[first + 4]) if first + 4 < r else f4(0)
        x5 = f4(x[first + 5]) if first + 5 < r else f4(0)
        x6 = f4(x[first + 6]) if first + 6 < r else f4(0)
        x7 = f4(x[first + 7]) if first + 7 < r else f4(0)
        c0, c1, c2, c3 = columns[first], columns[first + 1], columns[first + 2], columns[first + 3]
        c4, c5, c6, c7 = columns[first + 4], columns[first + 5], columns[first + 6], columns[first + 7]
        for i in range(n):
            out[i] += (x0 * c0[i] + x1 * c1[i] + x2 * c2[i] + x3 * c3[i]) + (
                x4 * c4[i] + x5 * c5[i] + x6 * c6[i] + x7 * c7[i]
            )


@search_loop
def top_bits(values, n):
    """The bits of the largest of some float32, 0 if none is above 0: as whole numbers they are compared many at a time."""
    bits = values.view(np.int32)
    top = np.int32(0)
    for i in range(n):
        top = max(top, bits[i])
    return top


@search_loop
def largest(values, n):
    """(where, the largest), if it is above 0"""
    top = top_bits(values, n)
    bits = values.view(np.int32)
    for i in range(n):
        if bits[i] == top:
            return i, values[i]
    return 0, f4(0)


@search_loop
def largest_ratio(values, off, depth, ratios, n):
    for i in range(n):
        ratios[i] = (values[i] + off) / depth[i]
    return largest(ratios, n)[1]


@search_loop
def follow(depth, values, step, n):
    for i in range(n):
        depth[i] -= step * values[i]


@search_loop
def dot(u, v, r):
    t = 0.0
    for i in range(r):
        t += u[i] * v[i]
    return t


@search_loop
def products(rows, x, out, size, r):
    """out = rows·x, four rows at a time."""
    four = size - size % 4
    for k in range(0, four, 4):
        u0, u1, u2, u3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        t0 = t1 = t2 = t3 = 0.0
        for i in range(r):
            v = x[i]
            t0 += u0[i] * v
            t1 += u1[i] * v
            t2 += u2[i] * v
            t3 += u3[i] * v
        out[k], out[k + 1], out[k + 2], out[k + 3] = t0, t1, t2, t3
    for k in range(four, size):
        out[k] = dot(rows[k], x, r)


@search_loop
def subtract(rows, weights, x, size, r):
    """x −= Σ weight·row, four rows at a time."""
    four = size - size % 4
    for k in range(0, four, 4):
        u0, u1, u2, u3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        t0, t1, t2, t3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for i in range(r):
            x[i] -= (t0 * u0[i] + t1 * u1[i]) + (t2 * u2[i] + t3 * u3[i])
    for k in range(four, size):
        u0, t0 = rows[k], weights[k]
        for i in range(r):
            x[i] -= t0 * u0[i]


@search_loop
def shift(rows, weights, factor, x, size, r):
    """Every row −= its weight times factor·x, four at a time."""
    four = size - size % 4
    for k in range(0, four, 4):
        u0, u1, u2, u3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        t0, t1, t2, t3 = weights[k] * factor, weights[k + 1] * factor, weights[k + 2] * factor, weights[k + 3] * factor
        for i in range(r):
            v = x[i]
            u0[i] -= t0 * v
            u1[i] -= t1 * v
            u2[i] -= t2 * v
            u3[i] -= t3 * v
    for k in range(four, size):
        u0, t0 = rows[k], weights[k] * factor
        for i in range(r):
            u0[i] -= t0 * x[i]


@search_loop
def join(row, rows, dual, size, r, share, more, beside):
    """|e|², and the row's coordinates in those held and its part e beside them; it joins unless that is tiny."""
    products(dual, row, share, size, r)
    for i in range(r):
        beside[i] = row[i]
    subtract(rows, share, beside, size, r)
    square = dot(beside, beside, r)
    if square < 1e-3:  # once more: the difference of close numbers
        products(dual, beside, more, size, r)
        subtract(rows, more, beside, size, r)
        for k in range(size):
            share[k] += more[k]
        square = dot(beside, beside, r)
    if square < DEPENDENT:
        return square
    f = 1.0 / square
    shift(dual, share, f, beside, size, r)
    for i in range(r):
        dual[size, i] = beside[i] * f
        rows[size, i] = row[i]
    return square


@search_loop
def leave(k, rows, dual, which, weights, aim, rest, size, r, share):
    """Row k leaves, and the last one takes its place; `aim` and `rest` stay those of least squares."""
    last = size - 1
    own = aim[k]
    if k != last:
        which[k] = which[last]
        weights[k] = weights[last]
        aim[k] = aim[last]
        for i in range(r):
            dual[k, i], dual[last, i] = dual[last, i], dual[k, i]
            rows[k, i] = rows[last, i]
    mine = dual[last]
    f = 1.0 / dot(mine, mine, r)
    for i in range(r):
        rest[i] += own * f * mine[i]
    products(dual, mine, share, last, r)
    shift(dual, share, f, mine, last, r)
    for other in range(last):
        aim[other] -= share[other] * f * own


@search_loop
def walk(rows, dual, which, weights, aim, rest, free, size, r, share):
    """From weights ≥ 0 to those of least squares; rows whose weight becomes 0 on the way leave. (rows left, how many went)"""
    gone = 0
    while True:
        way = 1.0
        first = -1
        for k in range(size):
            if aim[k] <= 0.0:
                t = weights[k] / (weights[k] - aim[k]) if weights[k] > aim[k] else 0.0
                if t < way:
                    way = t
                    first = k
        if first < 0:
            for k in range(size):
                weights[k] = aim[k]
            return size, gone
        for k in range(size):
            weights[k] += way * (aim[k] - weights[k])
        free[which[first]] = f4(1)
        leave(first, rows, dual, which, weights, aim, rest, size, r, share)
        size -= 1
        gone += 1


@search_loop
def residual(c, rows, weights, rest, size, r):
    """rest = c − Σ weight·row; its square."""
    for i in range(r):
        rest[i] = c[i]
    subtract(rows, weights, rest, size, r)
    return dot(rest, rest, r)


@search_loop
def refine(c, rows, dual, weights, aim, rest, size, r):
    """Least-squares weights to the last digit; the square of the residual."""
    square = residual(c, rows, weights, rest, size, r)
    for _ in range(3):
        if square < TINY:
            break
        for k in range(size):
            weights[k] = max(weights[k] + dot(dual[k], rest, r), 0.0)
        before = square
        square = residual(c, rows, weights, rest, size, r)
        if square > 0.25 * before:
            break
    for k in range(size):
        aim[k] = weights[k]
    return square


@search_loop
def renew(rows, dual, size, r):
    """One step of Newton's method for the dual rows: rounding has piled up in them."""
    change = np.zeros((size, r))
    for k in range(size):
        for other in range(size):
            t = (1.0 if k == other else 0.0) - dot(dual[k], rows[other], r)
            for i in range(r):
                change[k, i] += t * dual[other, i]
    for k in range(size):
        for i in range(r):
            dual[k, i] += change[k, i]


@search_loop
def drift(rows, dual, size, r, sums):
    """How far the dual rows are from being dual, seen along one combination."""
    for i in range(r):
        sums[i] = 0.0
    for k in range(size):
        sign = 1.0 if (k * 7919) % 5 < 3 else -1.0
        for i in range(r):
            sums[i] += sign * rows[k, i]
    off = 0.0
    for k in range(size):
        sign = 1.0 if (k * 7919) % 5 < 3 else -1.0
        off = max(off, abs(dot(dual[k], sums, r) - sign))
    return off


@search_loop
def project(
    A, columns, depth0, z0, c, height, rows, dual, which, weights, aim, rest, free, size, limit, model, depth, inner, priced, few,
    ratios, share, more, beside,
):  # fmt: skip
    """(code, rows held, steps). On entry which[:size] with rows, dual, weights = aim ≥ 0 and rest belong together."""
    n, r = A.shape
    steps = 0
    count = 0
    bar = 0.0
    renewed = False
    for i in range(n):
        depth[i] = depth0[i]
    for i in range(r):
        inner[i] = z0[i]
    while True:
        square = dot(rest, rest, r)
        if square < CLOSE or size >= r:
            square = refine(c, rows, dual, weights, aim, rest, size, r)
            if square >= TINY and not renewed:
                renewed = True
                renew(rows, dual, size, r)
                renew(rows, dual, size, r)
                square = refine(c, rows, dual, weights, aim, rest, size, r)
            if square < TINY:
                return HELD, size, steps
            if size >= r:
                return STUCK, size, steps
            count = 0
        j = -1
        best = bar
        for m in range(count):  # those that were good last time
            i = few[m]
            if free[i] > f4(0):
                t = dot(A[i], rest, r)
                if t > best:
                    best = t
                    j = i
        if j < 0:  # all of them
            long = np.sqrt(square)
            price(columns, rest, priced, n)
            theta = float(largest_ratio(priced, SLACK * f4(long), depth, ratios, n))
            if square > theta * height:
                for i in range(r):
                    model[i] = theta * inner[i] - rest[i]
                return UNKNOWN, size, steps
            if steps >= limit or not theta > 0:
                return STUCK, size, steps
            t = FOLLOW / theta
            for i in range(r):
                inner[i] -= t * rest[i]
            height -= t * square
            follow(depth, priced, f4(t), n)
            for i in range(n):
                priced[i] *= free[i]
            most = top_bits(priced, n)
            bits = priced.view(np.int32)
            top = 0.0
            count = 0
            if most > 0:
                for i in range(n):
                    if bits[i] == most:
                        j = i
                        break
                top = float(priced[j])
            if top > NOISE * long:
                half = f4(0.5 * top)
                for i in range(n):
                    if priced[i] > half:
                        few[count] = i
                        count += 1
                        if count == len(few):
                            break
                bar = GAIN * top
            else:  # nothing that float32 can see
                j = -1
                theta = 0.0
                best = 1e-13 * long
                for i in range(n):
                    t = dot(A[i], rest, r)
                    theta = max(theta, (t + 1e-13 * long) / dot(A[i], inner, r))
                    if t > best and free[i] > f4(0):
                        best = t
                        j = i
                if square > theta * height:
                    for i in range(r):
                        model[i] = theta * inner[i] - rest[i]
                    return UNKNOWN, size, steps
                if j < 0:
                    return STUCK, size, steps
        wide = join(A[j], rows, dual, size, r, share, more, beside)
        steps += 1
        free[j] = f4(0)
        if wide < DEPENDENT:
            continue
        t = dot(rest, A[j], r) / wide
        if t <= 0.0:
            continue
        for k in range(size):
            aim[k] -= share[k] * t
        for i in range(r):
            rest[i] -= t * beside[i]
        which[size] = j
        aim[size] = t
        weights[size] = 0.0
        size, gone = walk(rows, dual, which, weights, aim, rest, free, size + 1, r, share)
        steps += gone


@search_loop
def tidy(c, rows, dual, which, weights, aim, rest, size, r, share):
    """(HELD, rows held) without the rows whose weight is as good as 0; STUCK if they cannot be spared."""
    most = 0.0
    for k in range(size):
        most = max(most, weights[k])
    k = 0
    changed = False
    while k < size:
        if weights[k] < SMALL * most:
            leave(k, rows, dual, which, weights, aim, rest, size, r, share)
            size -= 1
            changed = True
        else:
            k += 1
    if changed:
        for k in range(size):
            weights[k] = max(aim[k], 0.0)
        if refine(c, rows, dual, weights, aim, rest, size, r) >= 1e-18:
            return STUCK, size
    return HELD, size
