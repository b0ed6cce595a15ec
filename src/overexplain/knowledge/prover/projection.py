"""Search: project targets onto a polyhedral cone, and stop at the first thing that a proof can be made of.

The cone is that of the rows of A, which have length 1; z0 has A·z0 > 0 (it is the centre of the dual cone, in coordinates in which
that cone is round). A target c of length 1 with c·z0 > 0 is

    HELD      c = Σ λ_i A_i with λ > 0 on a few independent rows, to within rounding
    UNKNOWN   some z has A·z ≥ 0 and c·z < 0: z = θ·z' − ρ with the residual ρ = c − Σ λ_i A_i, an inner point z' that
              follows z, and θ = max ρ·A_i / z'·A_i. Pricing computes all ρ·A_i, so this is free, and it succeeds as soon
              as |ρ|² > θ·(c·z')
    STUCK     neither was found

This is Lawson and Hanson's active-set method for non-negative least squares. A row joins only if that shortens ρ, so the rows held
are independent, and ties, at which the simplex method stalls, are nothing special. All of it is advice: `gap` and `lengths` prove.

This file is plain NumPy, for a few targets; `compiled` is the same in loops, for many. A test compares the two.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

import numpy as np

UNKNOWN, HELD, STUCK = 0, 1, 3

GAIN, FEW = 0.4, 32
"""One of so many rows that were good last time is taken without pricing all, if it gains this share of what the best did then."""
DEPENDENT = 1e-13
"""A row whose part beside those held is shorter than the root of this depends on them."""
SLACK = np.float32(4e-6)
"""More than the error of a product in float32, relative to the lengths of its factors."""
NOISE = 2e-6
"""Float32 sees no gain below this: the rows are priced in float64."""
FOLLOW = 0.5
"""How far the inner point goes on the way to where it would leave the cone."""
CLOSE = 1e-14
"""A residual with a square below this may be none."""
TINY = 1e-23
"""One with a square below this is none."""
SMALL = 1e-10
"""A weight below this share of the largest is tried without."""
LIKE = np.float32(0.6)
"""A stored set of rows is tried for a target whose cosine with its own is above this."""
CLEAR = np.float32(1e-6)
"""A known model counts against a target if it says so by more than this."""


def join(row, rows, dual, size):
    """(|e|², coordinates of the row in those held, e): e is its part beside them. It joins unless that is tiny."""
    share = dual[:size] @ row
    beside = row - share @ rows[:size]
    square = beside @ beside
    if square < 1e-3:  # once more: the difference of close numbers
        more = dual[:size] @ beside
        share += more
        beside = beside - more @ rows[:size]
        square = beside @ beside
    if square >= DEPENDENT:
        way = beside / square
        dual[:size] -= share[:, None] * way
        dual[size] = way
        rows[size] = row
    return square, share, beside


def leave(k, rows, dual, which, weights, aim, rest, size):
    """Row k leaves, and the last one takes its place; `aim` and `rest` stay those of least squares."""
    own = dual[k].copy()
    f = 1.0 / (own @ own)
    rest += aim[k] * f * own
    share = (dual[:size] @ own) * f
    share[k] = 0.0
    dual[:size] -= share[:, None] * own
    aim[:size] -= share * aim[k]
    last = size - 1
    which[k] = which[last]
    weights[k] = weights[last]
    aim[k] = aim[last]
    rows[k] = rows[last]
    dual[k] = dual[last]


def walk(rows, dual, which, weights, aim, rest, taken, size):
    """From weights ≥ 0 to those of least squares; rows whose weight becomes 0 on the way leave. (rows left, how many went)"""
    gone = 0
    while True:
        share = 1.0
        first = -1
        for k in (aim[:size] <= 0.0).nonzero()[0].tolist():
            t = weights[k] / (weights[k] - aim[k]) if weights[k] > aim[k] else 0.0
            if t < share:
                share = t
                first = k
        if first < 0:
            weights[:size] = aim[:size]
            return size, gone
        weights[:size] += share * (aim[:size] - weights[:size])
        taken[which[first]] = np.float32(0)
        leave(first, rows, dual, which, weights, aim, rest, size)
        size -= 1
        gone += 1


def refine(c, rows, dual, weights, aim, rest, size):
    """Least-squares weights to the last digit; the square of the residual."""
    rest[:] = c - weights[:size] @ rows[:size]
    square = rest @ rest
    for _ in range(3):
        if square < TINY:
            break
        weights[:size] = np.maximum(weights[:size] + dual[:size] @ rest, 0.0)
        before = square
        rest[:] = c - weights[:size] @ rows[:size]
        square = rest @ rest
        if square > 0.25 * before:
            break
    aim[:size] = weights[:size]
    return square


def renew(rows, dual, size):
    """One step of Newton's method for the dual rows: rounding has piled up in them."""
    off = -(dual[:size] @ np.ascontiguousarray(rows[:size].T))
    for k in range(size):
        off[k, k] += 1.0
    dual[:size] += off @ dual[:size].copy()


def drift(rows, dual, size):
    """How far the dual rows are from being dual, seen along one combination."""
    signs = np.ones(size)
    for k in range(size):
        if (k * 7919) % 5 >= 3:
            signs[k] = -1.0
    return np.abs(dual[:size] @ (signs @ rows[:size]) - signs).max() if size else 0.0


def project(A, columns, depth0, z0, c, height, rows, dual, which, weights, aim, rest, taken, size, limit, model):
    """(code, rows held, steps). On entry which[:size] with rows, dual, weights = aim ≥ 0 and rest belong together."""
    r = A.shape[1]
    steps = 0
    bar = 0.0
    renewed = False
    depth = depth0.copy()
    inner = z0.copy()
    columns = columns[:r]
    few = np.zeros(0, np.int64)
    while True:
        square = rest @ rest
        if square < CLOSE or size >= r:
            square = refine(c, rows, dual, weights, aim, rest, size)
            if square >= TINY and not renewed:
                renewed = True
                renew(rows, dual, size)
                renew(rows, dual, size)
                square = refine(c, rows, dual, weights, aim, rest, size)
            if square < TINY:
                return HELD, size, steps
            if size >= r:
                return STUCK, size, steps
            few = few[:0]
        j = -1
        if len(few):  # those that were good last time
            gains = np.where(taken[few] == np.float32(0), A[few] @ rest, -np.inf)
            m = gains.argmax()
            if gains[m] > bar:
                j = int(few[m])
        if j < 0:  # all of them
            long = np.sqrt(square)
            priced = rest.astype(np.float32) @ columns
            theta = float(((priced + SLACK * np.float32(long)) / depth).max())
            if square > theta * height:
                model[:] = theta * inner - rest
                return UNKNOWN, size, steps
            if steps >= limit or not theta > 0:
                return STUCK, size, steps
            t = FOLLOW / theta
            inner -= t * rest
            height -= t * square
            depth -= np.float32(t) * priced
            priced[taken > 0] = np.float32(-1e30)
            j = int(priced.argmax())
            top = float(priced[j])
            few = few[:0]
            if top > NOISE * long:
                few = (priced > np.float32(0.5 * top)).nonzero()[0][:FEW]
                bar = GAIN * top
            else:  # nothing that float32 can see
                fine = A @ rest
                theta = float(np.max((fine + 1e-13 * long) / (A @ inner)))
                if square > theta * height:
                    model[:] = theta * inner - rest
                    return UNKNOWN, size, steps
                fine -= taken * 1e30
                j = int(np.argmax(fine))
                if not fine[j] > 1e-13 * long:
                    return STUCK, size, steps
        wide, share, beside = join(A[j], rows, dual, size)
        steps += 1
        taken[j] = np.float32(1)
        if wide < DEPENDENT:
            continue
        t = (rest @ A[j]) / wide
        if t <= 0.0:
            continue
        aim[:size] -= share * t
        rest -= t * beside
        which[size] = j
        aim[size] = t
        weights[size] = 0.0
        size, gone = walk(rows, dual, which, weights, aim, rest, taken, size + 1)
        steps += gone


def tidy(c, rows, dual, which, weights, aim, rest, size):
    """(HELD, rows held) without the rows whose weight is as good as 0; STUCK if they cannot be spared."""
    most = weights[:size].max() if size else 0.0
    k = 0
    changed = False
    while k < size:
        if weights[k] < SMALL * most:
            leave(k, rows, dual, which, weights, aim, rest, size)
            size -= 1
            changed = True
        else:
            k += 1
    if changed:
        weights[:size] = np.maximum(aim[:size], 0.0)
        if refine(c, rows, dual, weights, aim, rest, size) >= 1e-18:
            return STUCK, size
    return HELD, size


def log2_of_minors(G):
    """At least log2 of every minor of an integer matrix: Hadamard's bound, by rows or by columns, whichever is smaller."""
    squares = G * G
    by_rows = np.log2(np.maximum(squares.sum(axis=1), 1.0)).sum()
    by_columns = np.log2(1.0 + squares.sum(axis=0)).sum()
    return 0.5 * min(by_rows, by_columns) * (1 + 1e-9) + 1e-6


def prove_whole(G, q, T, scale, dual):
    """True if q is a combination of the rows of G with weights > 0, for certain. All entries of G and q are whole numbers.

    Theorem (gap). Let ρ = q − Σ λ_i G_i with λ > 0, and H at least 1 and every minor of G. If |ρ|₁·H < min(1, λ), then
    q = Σ μ_i G_i with all μ > 0 (docs/theory/ties.md).

    ρ is computed without rounding and made as small as need be: with λ ≈ scale·dual·(ρ T), x = round(2^k·λ) and ρ ←
    2^k·ρ − Σ x_i G_i, in float64, in which sums of whole numbers below 2^53 are exact in any order. Later digits may
    take away at most half of the first weights.
    """
    wide = max(np.abs(G).max(), 1.0)
    need = log2_of_minors(G)
    left = q.copy()
    done = 0.0
    least = 0.0
    spent = 0.0
    size = np.abs(left).sum()
    for step in range(200):
        x = (dual @ (left @ T)) * scale
        most = np.abs(x).max()
        if not most < np.inf:
            return False
        bits = int(min(51.0 - np.log2(size), 51.0 - np.log2(most * wide * len(G) + 1e-30), 40.0))
        if bits < 4:
            return False
        unit = float(1 << bits)
        whole = np.rint(x * unit)
        left = left * unit - whole @ G
        if step == 0:
            least = 0.5 * whole.min() / unit
            if not least > 0.0:
                return False
        else:
            spent += (most + 1.0 / unit) * 2.0**-done * (1 + 1e-9)
            if not spent < least:
                return False
        done += bits
        now = np.abs(left).sum()
        if now == 0.0 or np.log2(now) - done + need < min(0.0, np.log2(least)) - 1e-3:
            return True
        if step > 0 and now > size * unit * 0.25:  # no contraction: q is outside, or the advice is poor
            return False
        size = now
    return False


def sweep(A, columns, depth, z0, C, heights, G, Q, T, scale, pool, pool_columns, known, sets, limit):
    """The targets C one after the other; what is found for one is tried on the next.

    columns  A in float32, transposed, with rows of 0 up to a multiple of 8
    G, Q     whole numbers that prove what is held: rows and queries; empty if there are none
    pool     models, a row each, `known` of them; new ones join until it is full: then it stops. Their negatives in float32 are
             `pool_columns`, arranged like `columns`
    sets     what is stored of rows that held earlier targets: (targets, how many rows, which, weights, dual rows, [how many sets])

    (codes, number of its model in the pool or −1, rows held or −1, weights, proved by whole numbers?, models known, targets done)
    """
    count, r = C.shape
    n = len(A)
    exact = len(G) > 0
    codes = np.full(count, STUCK, np.int8)
    models = np.full(count, -1, np.int64)
    held = np.full((count, r + 1), -1, np.int64)
    shares = np.zeros((count, r + 1))
    proved = np.zeros(count, np.bool_)
    rows = np.zeros((r + 2, r))
    dual = np.zeros((r + 2, r))
    which = np.zeros(r + 2, np.int64)
    weights = np.zeros(r + 2)
    aim = np.zeros(r + 2)
    model = np.zeros(r)
    taken = np.zeros(n, np.float32)
    targets, sizes, members, stored_weights, stored_dual, stored = sets
    room = targets.shape[1]
    last = 0
    was_held = False
    for q in range(count):
        if known == len(pool):
            return codes, models, held, shares, proved, known, q
        c = C[q]
        c32 = c.astype(np.float32)
        if known:
            against = -(pool[last] @ c)
            if against <= CLEAR and not was_held:
                said = c32 @ pool_columns[:r, :known]
                last = int(np.argmax(said))
                against = said[last]
            if against > CLEAR:
                codes[q] = UNKNOWN
                models[q] = last
                was_held = False
                continue
        taken[:] = np.float32(0)
        size = 0
        gone = 0
        rest = c.copy()
        have = min(stored[0], room)
        if have > 0:
            alike = c32 @ targets[:r, :have]
            m = int(np.argmax(alike))
            if alike[m] > LIKE:
                size = sizes[m]
                which[:size] = members[m, :size]
                for k in range(size):
                    rows[k] = A[which[k]]
                    taken[which[k]] = np.float32(1)
                dual[:size] = stored_dual[m, :size]
                weights[:size] = stored_weights[m, :size] * float(alike[m])
                aim[:size] = dual[:size] @ c
                rest = c - aim[:size] @ rows[:size]
                size, gone = walk(rows, dual, which, weights, aim, rest, taken, size)
        if was_held and known and rest @ rest > CLOSE:  # not like the one before: the pool after all
            said = c32 @ pool_columns[:r, :known]
            last = int(np.argmax(said))
            if said[last] > CLEAR:
                codes[q] = UNKNOWN
                models[q] = last
                was_held = False
                continue
        warm = size > 0
        code = STUCK
        for _ in range(2):
            code, size, more = project(
                A, columns, depth, z0, c, heights[q], rows, dual, which, weights, aim, rest, taken, size,
                2 * r if warm else limit, model,
            )  # fmt: skip
            gone += more
            if code == HELD:
                code, size = tidy(c, rows, dual, which, weights, aim, rest, size)
                if code == HELD and exact and size > 0:
                    chosen = np.zeros((size, G.shape[1]))
                    lengths = np.zeros(size)
                    for k in range(size):
                        chosen[k] = G[which[k]]
                        lengths[k] = scale[which[k]]
                    proved[q] = prove_whole(chosen, Q[q], T, lengths, dual[:size])
            if not warm or code == UNKNOWN or (code == HELD and (proved[q] or not exact)):
                break
            warm = False  # rounding inherited from those before: afresh
            size = 0
            taken[:] = np.float32(0)
            rest = c.copy()
        was_held = code == HELD
        codes[q] = code
        if code == UNKNOWN:
            model /= np.sqrt(model @ model)
            pool[known] = model
            pool_columns[:r, known] = -model
            models[q] = known
            known += 1
            continue
        held[q, :size] = which[:size]
        shares[q, :size] = weights[:size]
        if code == HELD and room > 0 and (stored[0] < room or gone > 2):
            m = stored[0] % room
            if drift(rows, dual, size) > 1e-12:
                renew(rows, dual, size)
            targets[:r, m] = c32
            sizes[m] = size
            members[m, :size] = which[:size]
            stored_weights[m, :size] = weights[:size]
            stored_dual[m, :size] = dual[:size]
            stored[0] += 1
    return codes, models, held, shares, proved, known, count


def separate(A):
    """(True, z with A·z > 0), or (False, weights ≥ 0 under which the rows add up to about 0): the projection of (0, 1)
    onto cone{(A_i, 1)}."""
    n, r = A.shape
    B = np.hstack((A, np.ones((n, 1))))
    B /= np.sqrt((B * B).sum(axis=1))[:, None]
    c = np.zeros(r + 1)
    c[r] = 1.0
    rows, dual = np.zeros((r + 3, r + 1)), np.zeros((r + 3, r + 1))
    which, weights, aim = np.zeros(r + 3, np.int64), np.zeros(r + 3), np.zeros(r + 3)
    rest, ones = c.copy(), np.ones(n, np.float32)
    code, size, _ = project(
        B, B.T.astype(np.float32), ones, np.zeros(r + 1), c, 1e300, rows, dual, which, weights, aim, rest,
        np.zeros(n, np.float32), 0, 20 * r + 200, np.zeros(r + 1),
    )  # fmt: skip
    if code != HELD and rest[r] > 0.0 and (A @ -rest[:r]).min() > 0.0:
        return True, -rest[:r]
    relation = np.zeros(n)
    relation[which[:size]] = weights[:size]
    return False, relation
