"""`projection.sweep` for many targets, compiled by Numba. Imported only where it is used: loading Numba takes a second.

Numba's cache looks at this file alone: after a change in `loops`, touch it.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from overexplain.knowledge.prover.loops import (
    dot,
    drift,
    f4,
    largest,
    price,
    products,
    project,
    proof_loop,
    renew,
    subtract,
    tidy,
    walk,
)
from overexplain.knowledge.prover.projection import CLEAR, CLOSE, FEW, HELD, LIKE, STUCK, UNKNOWN


@proof_loop
def log2_of_minors(G, size, by_columns):
    """At least log2 of every minor of whole-number rows: Hadamard's bound, by rows or by columns, whichever is smaller."""
    width = G.shape[1]
    by_rows = 0.0
    for j in range(width):
        by_columns[j] = 1.0
    for k in range(size):
        t = 0.0
        for j in range(width):
            t += G[k, j] * G[k, j]
            by_columns[j] += G[k, j] * G[k, j]
        by_rows += np.log2(max(t, 1.0))
    total = 0.0
    t = 1.0
    for j in range(width):
        t *= by_columns[j]
        if t > 1e200:
            total += np.log2(t)
            t = 1.0
    total += np.log2(t)
    return 0.5 * min(by_rows, total) * (1 + 1e-9) + 1e-6


@proof_loop
def prove_whole(G, q, T, scale, dual, size, r, left, image, x):
    """`projection.prove_whole` for the first `size` rows of G."""
    width = len(q)
    wide = 1.0
    for k in range(size):
        for j in range(width):
            wide = max(wide, abs(G[k, j]))
    need = log2_of_minors(G, size, left)
    done = 0.0
    least = 0.0
    spent = 0.0
    total = 0.0
    for j in range(width):
        left[j] = q[j]
        total += abs(q[j])
    for step in range(200):
        for i in range(r):
            image[i] = 0.0
        for j in range(width):
            t = left[j]
            if t != 0.0:
                for i in range(r):
                    image[i] += t * T[j, i]
        most = 0.0
        for k in range(size):
            t = 0.0
            for i in range(r):
                t += dual[k, i] * image[i]
            x[k] = t * scale[k]
            most = max(most, abs(x[k]))
        bits = int(min(51.0 - np.log2(total), 51.0 - np.log2(most * wide * size + 1e-30), 40.0))
        if bits < 4:
            return False
        unit = float(1 << bits)
        for j in range(width):
            left[j] *= unit
        low = np.inf
        for k in range(size):
            whole = np.rint(x[k] * unit)
            low = min(low, whole)
            for j in range(width):
                left[j] -= whole * G[k, j]
        if step == 0:
            least = 0.5 * low / unit
            if not least > 0.0:
                return False
        else:
            spent += (most + 1.0 / unit) * 2.0**-done * (1 + 1e-9)
            if not spent < least:
                return False
        done += bits
        now = 0.0
        for j in range(width):
            now += abs(left[j])
        if now == 0.0 or np.log2(now) - done + need < min(0.0, np.log2(least)) - 1e-3:
            return True
        if step > 0 and now > total * unit * 0.25:  # no contraction: q is outside, or the advice is poor
            return False
        total = now
    return False


@proof_loop
def sweep(A, columns, depth, z0, C, heights, G, Q, T, scale, pool, pool_columns, known, sets, limit):
    """`projection.sweep`, compiled."""
    count, r = C.shape
    n = len(A)
    width = G.shape[1]
    exact = len(G) > 0
    codes = np.full(count, STUCK, np.int8)
    models = np.full(count, -1, np.int64)
    held = np.full((count, r + 1), -1, np.int64)
    shares = np.zeros((count, r + 1))
    proved = np.zeros(count, np.bool_)
    rows, dual = np.zeros((r + 2, r)), np.zeros((r + 2, r))
    which = np.zeros(r + 2, np.int64)
    weights, aim, share, more = np.zeros(r + 2), np.zeros(r + 2), np.zeros(r + 2), np.zeros(r + 2)
    model, inner, beside, rest, image = np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r), np.zeros(r)
    free, now_depth, priced, ratios = np.ones(n, f4), np.ones(n, f4), np.zeros(n, f4), np.zeros(n, f4)
    few = np.zeros(FEW, np.int64)
    chosen, lengths, left = np.zeros((r + 2, width)), np.zeros(r + 2), np.zeros(width)
    targets, sizes, members, stored_weights, stored_dual, stored = sets
    room = targets.shape[1]
    said, alike = np.zeros(pool_columns.shape[1], f4), np.zeros(room, f4)
    last = 0
    was_held = False
    for q in range(count):
        if known == len(pool):
            return codes, models, held, shares, proved, known, q
        c = C[q]
        if known:
            against = f4(-dot(pool[last], c, r))
            if against <= CLEAR and not was_held:
                price(pool_columns, c, said, known)
                last, against = largest(said, known)
            if against > CLEAR:
                codes[q] = UNKNOWN
                models[q] = last
                was_held = False
                continue
        for i in range(n):
            free[i] = f4(1)
        size = 0
        gone = 0
        for i in range(r):
            rest[i] = c[i]
        have = min(stored[0], room)
        if have > 0:
            price(targets, c, alike, have)
            m, best = largest(alike, have)
            if best > LIKE:
                size = sizes[m]
                for k in range(size):
                    p = members[m, k]
                    which[k] = p
                    free[p] = f4(0)
                    weights[k] = stored_weights[m, k] * best
                    for i in range(r):
                        rows[k, i] = A[p, i]
                        dual[k, i] = stored_dual[m, k, i]
                products(dual, c, aim, size, r)
                subtract(rows, aim, rest, size, r)
                size, gone = walk(rows, dual, which, weights, aim, rest, free, size, r, share)
        if was_held and known and dot(rest, rest, r) > CLOSE:  # not like the one before: the pool after all
            price(pool_columns, c, said, known)
            last, against = largest(said, known)
            if against > CLEAR:
                codes[q] = UNKNOWN
                models[q] = last
                was_held = False
                continue
        warm = size > 0
        code = STUCK
        for _ in range(2):
            code, size, steps = project(
                A, columns, depth, z0, c, heights[q], rows, dual, which, weights, aim, rest, free, size,
                2 * r if warm else limit, model, now_depth, inner, priced, few, ratios,
                share, more, beside,
            )  # fmt: skip
            gone += steps
            if code == HELD:
                code, size = tidy(c, rows, dual, which, weights, aim, rest, size, r, share)
                if code == HELD and exact and size > 0:
                    for k in range(size):
                        lengths[k] = scale[which[k]]
                        for j in range(width):
                            chosen[k, j] = G[which[k], j]
                    proved[q] = prove_whole(chosen, Q[q], T, lengths, dual, size, r, left, image, share)
            if not warm or code == UNKNOWN or (code == HELD and (proved[q] or not exact)):
                break
            warm = False  # rounding inherited from those before: afresh
            size = 0
            for i in range(n):
                free[i] = f4(1)
            for i in range(r):
                rest[i] = c[i]
        was_held = code == HELD
        codes[q] = code
        if code == UNKNOWN:
            t = 1.0 / np.sqrt(dot(model, model, r))
            for i in range(r):
                pool[known, i] = model[i] * t
                pool_columns[i, known] = f4(-model[i] * t)
            models[q] = known
            known += 1
            continue
        for k in range(size):
            held[q, k] = which[k]
            shares[q, k] = weights[k]
        if code == HELD and room > 0 and (stored[0] < room or gone > 2):
            m = stored[0] % room
            if drift(rows, dual, size, r, beside) > 1e-12:
                renew(rows, dual, size, r)
            for i in range(r):
                targets[i, m] = f4(c[i])
            sizes[m] = size
            for k in range(size):
                members[m, k] = which[k]
                stored_weights[m, k] = weights[k]
                for i in range(r):
                    stored_dual[m, k, i] = dual[k, i]
            stored[0] += 1
    return codes, models, held, shares, proved, known, count


@proof_loop
def by_box(X, frame, last, sizes, size_last, faces, costs, pays, rounding, codes):
    """Settle what a box can, see `screens.Box.settle`: codes ±1 where (x, −1) lies in the cone of the rows, or its negative."""
    count, p = X.shape
    r = len(last)
    values = np.zeros(r)
    for i in range(count):
        size = size_last
        for k in range(r):
            values[k] = last[k]
        for j in range(p):
            x = X[i, j]
            size += abs(x) * sizes[j]
            for k in range(r):
                values[k] += x * frame[j, k]
        sign = 1.0 if values[0] >= 0.0 else -1.0
        length = abs(values[0])
        left = length
        owed = 0.0
        reached = 0.0
        for k in range(1, r):
            v = sign * values[k]
            way = 0 if v > 0.0 else 1
            v = abs(v)
            length += v
            reached += v * faces[way, k - 1]
            owed += v * costs[way, k - 1]
        off = rounding * (size + length + reached)
        if (left - reached - off) * pays > 1.01 * (owed + off):
            codes[i] = np.int8(sign)
