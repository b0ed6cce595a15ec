"""The compiled inner loops of `pivots`, in float32. They search; nothing is claimed here.

Arrays are padded to multiples of the vector width: short remainders would otherwise run scalar.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from overexplain.knowledge.gauge.kernel import f4, search_loop

MARGIN = f4(1e-4)
"""Bounds in float32 closer to 1 than this are left to float64."""


@search_loop
def product(columns, z, y, count):
    """y = rows·z for the first `count` rows, which are the columns of `columns`."""
    k = columns.shape[0]
    for i in range(count):
        y[i] = f4(0)
    j = 0
    while j + 4 <= k:
        a = z[j]
        b = z[j + 1]
        c = z[j + 2]
        d = z[j + 3]
        r0 = columns[j]
        r1 = columns[j + 1]
        r2 = columns[j + 2]
        r3 = columns[j + 3]
        for i in range(count):
            y[i] += a * r0[i] + b * r1[i] + c * r2[i] + d * r3[i]
        j += 4
    while j < k:
        a = z[j]
        r0 = columns[j]
        for i in range(count):
            y[i] += a * r0[i]
        j += 1


@search_loop
def _first_hit(y, inner, ahead, count):
    """(steepness, number) of the row first met on the way from the inner point to z; `count` is a multiple of 32."""
    for i in range(count):
        ahead[i] = (y[i] - inner[i]) / max(f4(1) - inner[i], f4(1e-6))
    most = f4(-1)
    block = 0
    for b in range(count // 32):
        v = f4(-1)
        for i in range(32 * b, 32 * b + 32):
            v = max(v, ahead[i])
        if v > most:
            most = v
            block = b
    for i in range(32 * block, 32 * block + 32):
        if ahead[i] == most:
            return most, i
    return most, 0


@search_loop
def in_basis(inverse, a, alpha):
    """alpha = a @ inverse."""
    k, padded = inverse.shape
    for j in range(padded):
        alpha[j] = f4(0)
    i = 0
    while i + 4 <= k:
        u = a[i]
        v = a[i + 1]
        x = a[i + 2]
        t = a[i + 3]
        r0 = inverse[i]
        r1 = inverse[i + 1]
        r2 = inverse[i + 2]
        r3 = inverse[i + 3]
        for j in range(padded):
            alpha[j] += u * r0[j] + v * r1[j] + x * r2[j] + t * r3[j]
        i += 4
    while i < k:
        u = a[i]
        r0 = inverse[i]
        for j in range(padded):
            alpha[j] += u * r0[j]
        i += 1


@search_loop
def _in_basis_dense(inverse, a, alpha, dense, dense_count):
    """As `_in_basis` when only the coordinates in `dense` have left the box: the others hold one entry, on the diagonal."""
    k, padded = inverse.shape
    for j in range(k):
        alpha[j] = a[j] * inverse[j, j]
    for j in range(k, padded):
        alpha[j] = f4(0)
    for q in range(dense_count):
        i = dense[q]
        alpha[i] -= a[i] * inverse[i, i]
    q = 0
    while q + 4 <= dense_count:
        i0 = dense[q]
        i1 = dense[q + 1]
        i2 = dense[q + 2]
        i3 = dense[q + 3]
        u = a[i0]
        v = a[i1]
        x = a[i2]
        t = a[i3]
        r0 = inverse[i0]
        r1 = inverse[i1]
        r2 = inverse[i2]
        r3 = inverse[i3]
        for j in range(padded):
            alpha[j] += u * r0[j] + v * r1[j] + x * r2[j] + t * r3[j]
        q += 4
    while q < dense_count:
        i0 = dense[q]
        u = a[i0]
        r0 = inverse[i0]
        for j in range(padded):
            alpha[j] += u * r0[j]
        q += 1


@search_loop
def _leaving(weights, alpha, ratio):
    padded = len(alpha)
    most = f4(0)
    for j in range(padded):
        most = max(most, abs(alpha[j]))
    cut = f4(1e-5) * most
    best = f4(1e30)
    for j in range(padded):
        v = weights[j] / alpha[j] if alpha[j] > cut else f4(1e30)
        ratio[j] = v
        best = min(best, v)
    if best >= f4(1e30):
        return best, -1
    for j in range(padded):
        if ratio[j] == best:
            return best, j
    return best, -1


@search_loop
def _exchange(inverse, alpha, place, shift, z, dense, dense_count):
    """Update the inverse and z, skipping the coordinates that the box still holds. Returns the new dense_count."""
    k, padded = inverse.shape
    if dense_count < k:
        known = False
        for q in range(dense_count):
            known = known or dense[q] == place
        if not known:
            dense[dense_count] = place
            dense_count += 1
    over = f4(1) / alpha[place]
    for q in range(dense_count):
        i = dense[q]
        row = inverse[i]
        column = row[place] * over
        for j in range(padded):
            row[j] -= column * alpha[j]
        row[place] = column
        z[i] += shift * column
    return dense_count


@search_loop
def _follow(inner, y, t, count):
    for i in range(count):
        inner[i] += t * (y[i] - inner[i])


@search_loop
def total_of(weights):
    total = f4(0)
    for j in range(len(weights)):
        total += weights[j]
    return total


@search_loop
def walk(
    columns,
    ids,
    count,
    rows,
    c,
    inverse,
    z,
    weights,
    zin,
    yin,
    y,
    ahead,
    alpha,
    ratio,
    idx,
    scale,
    back,
    widths,
    follow,
    limit,
    decide,
    gap,
    dense,
    dense_count,
):
    """The dual simplex of `plain` for one direction.

    Returns (1: Σ λ < 1; 0: the exit point, left in zin, has c·z > 1; 2: gave up, number of pivots).
    """
    k = columns.shape[0]
    gained = f4(0)
    nd = dense_count[0]
    for j in range(k):
        gained += c[j] * zin[j]
    for pivots in range(limit):
        upper = total_of(weights)
        if decide and upper <= f4(1) - MARGIN:
            return 1, pivots
        product(columns, z, y, count)
        hit, r = _first_hit(y, yin, ahead, count)
        t = f4(1) / max(hit, f4(1))
        lower = gained + t * (upper - gained)
        if (decide and lower > f4(1) + MARGIN) or (gap > 0 and upper <= (f4(1) + gap) * lower):
            for j in range(k):
                zin[j] += t * (z[j] - zin[j])
            return 0, pivots
        if hit <= f4(1) + (f4(1e-5) if decide else f4(1e-3)):
            return 2, pivots
        t *= follow
        for j in range(k):
            zin[j] += t * (z[j] - zin[j])
        _follow(yin, y, t, count)
        gained += t * (upper - gained)
        g = ids[r]
        if nd < k:
            _in_basis_dense(inverse, rows[g], alpha, dense, nd)
        else:
            in_basis(inverse, rows[g], alpha)
        best, place = _leaving(weights, alpha, ratio)
        if place < 0:
            return 2, pivots
        nd = _exchange(inverse, alpha, place, f4(1) - y[r], z, dense, nd)
        dense_count[0] = nd
        for j in range(len(weights)):
            weights[j] = max(weights[j] - best * alpha[j], f4(0))
        weights[place] = best
        idx[place] = g
        scale[place] = 1.0
        back[place] = widths[g]
    return 2, limit


@search_loop
def nearest(closeness, count, wanted, out):
    """The best entry of each of the best blocks of 32: about the `wanted` largest. Returns how many."""
    blocks = count // 32
    if blocks < wanted:
        wanted = min(wanted, count)
        size = count // wanted
        for a in range(wanted):
            k = a * size
            for i in range(a * size, a * size + size):
                if closeness[i] > closeness[k]:
                    k = i
            out[a] = k
        return wanted
    best = np.empty(blocks, f4)
    for b in range(blocks):
        v = f4(-1e30)
        for i in range(32 * b, 32 * b + 32):
            v = max(v, closeness[i])
        best[b] = v
    for a in range(wanted):
        block = 0
        for b in range(blocks):
            if best[b] > best[block]:
                block = b
        k = 32 * block
        for i in range(32 * block, 32 * block + 32):
            if closeness[i] == best[block]:
                k = i
                break
        best[block] = f4(-1e30)
        out[a] = k
    return wanted


@search_loop
def two_sided(weights, back, padded):
    total = f4(0)
    for j in range(padded):
        total += max(weights[j], -weights[j] * back[j])
    return total


@search_loop
def scaled_row(source, factors, target, padded):
    total = f4(0)
    for j in range(padded):
        v = source[j] * factors[j]
        target[j] = v
        total += v
    return total
