"""The compiled dual simplex: `plain` for one direction at a time, in float32, with a proof in float64 at the end."""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np

from overexplain.knowledge.gauge.kernel import f4, proof_loop
from overexplain.knowledge.gauge.loops import MARGIN, in_basis, nearest, product, scaled_row, total_of, two_sided, walk


@proof_loop
def _proved_bound(rows, front, behind, high, low, rounding, c, idx, scale, inverse, weights, residual):
    """Upper bound on max c·z over P: multipliers refined in float64, whatever they leave of c paid by the box.

    A multiple μ ≥ 0 of row i costs μ·front[i], a negative one |μ|·behind[i].
    """
    count, k = rows.shape
    padded = inverse.shape[1]
    for j in range(padded):
        weights[j] = 0.0
    for j in range(k):
        residual[j] = c[j]
    for step in range(2):
        for i in range(k):
            ri = residual[i]
            row = inverse[i]
            for j in range(padded):
                weights[j] += ri * row[j]
        for j in range(k):
            residual[j] = c[j]
        for b in range(k):
            g = idx[b]
            if g < count:
                t = weights[b] * scale[b]
                row64 = rows[g]
                for j in range(k):
                    residual[j] -= t * row64[j]
            elif step == 0:
                residual[g - count] -= weights[b] * scale[b]
    total = 0.0
    for b in range(k):
        g = idx[b]
        if g < count:
            t = weights[b] * scale[b]
            total += t * front[g] if t >= 0 else -t * behind[g]
    for j in range(k):
        total += max(residual[j] * high[j], -residual[j] * low[j])
    return total * (1.0 + rounding)


@proof_loop
def solve_chunk(
    C,
    C32,
    along,
    most,
    pool_at,
    pool,
    pool_values,
    stored,
    closeness,
    SB,
    SI,
    SS,
    SW,
    rows,
    rows32,
    columns32,
    front,
    behind,
    widths,
    high,
    low,
    rounding,
    goal,
    local,
    follow,
    limit,
    near,
    keep_going,
    gap,
    verdict,
    pivots,
    exits,
    bounds,
    OB,
    OI,
    OS,
    OW,
    OZ,
):
    """Decide a chunk of directions. verdict: 1 certain (proved), 0 the point in `exits` should prove 'unknown', 2 undecided.

    C, C32 (N, k) directions; along (N, m) = rows·c, most its maxima; pool_at: the pool point to start inside from, −1 for none;
    S*: stored bases (inverse, rows, scales, widths), `closeness` to their directions; O*: final bases, empty if not wanted;
    local: how many rows to price at first; goal: what a bound must stay below; gap > 0: stop at that gap, bounds are the result.
    """
    count, k = C.shape
    m = rows.shape[0]
    padded_m = columns32.shape[1]
    P = SB.shape[2]
    inverse = np.zeros((k, P), f4)
    z = np.empty(k, f4)
    weights = np.zeros(P, f4)
    zin = np.empty(k, f4)
    alpha = np.empty(P, f4)
    ratio = np.empty(P, f4)
    sift = local < m
    room = min(padded_m, (4 * local + 31) // 32 * 32) if sift else 1
    yin = np.zeros(padded_m, f4)
    y = np.empty(padded_m, f4)
    ahead = np.empty(padded_m, f4)
    everywhere = np.empty(padded_m, f4)
    ids = np.arange(padded_m)
    block = np.empty((k, room), f4)
    inside = np.zeros(m, np.bool_)
    idx = np.empty(k, np.int64)
    scale = np.empty(k)
    back = np.empty(k)
    weights64 = np.empty(P)
    residual = np.empty(k)
    trial = np.empty(P, f4)
    chosen = np.empty(P, f4)
    candidates = np.empty(max(near, 1), np.int64)
    histogram = np.zeros(256, np.int64)
    dense = np.empty(k, np.int64)
    dense_count = np.zeros(1, np.int64)
    decide = gap <= 0
    want_bases = OB.shape[0] == count
    for q in range(count):
        c = C32[q]
        # The starting basis: a stored one, its rows flipped where c asks for it, or the corner of the box.
        best = f4(0)
        for j in range(k):
            best += max(c[j] * f4(high[j]), -c[j] * f4(low[j]))
        selected = -1
        if stored > 0:
            best *= f4(2.5)  # rows of P are worth more than faces of the box at the same bound
            found = nearest(closeness[q], stored, near, candidates)
            for a in range(found):
                s = candidates[a]
                in_basis(SB[s], c, trial)
                u = two_sided(trial, SW[s], P)
                if u < best:
                    best = u
                    selected = s
                    chosen[:] = trial
                    if u < f4(1) - MARGIN:
                        break
        if selected >= 0 and decide and not want_bases and best < f4(1) - MARGIN:
            # The stored basis as it stands is a proof: negative multipliers are paid behind their rows.
            bounds[q] = _proved_bound(
                rows,
                front,
                behind,
                high,
                low,
                rounding,
                C[q],
                SI[selected],
                SS[selected],
                SB[selected],
                weights64,
                residual,
            )
            if bounds[q] < goal[q]:
                verdict[q] = 1
                pivots[q] = 0
                continue
        if selected >= 0:
            dense_count[0] = k
            for j in range(k):
                dense[j] = j
                idx[j] = SI[selected, j]
                scale[j] = SS[selected, j]
                back[j] = SW[selected, j]
                trial[j] = f4(1)
                weights[j] = chosen[j]
                if chosen[j] < 0:
                    trial[j] = f4(-back[j])
                    weights[j] = chosen[j] * trial[j]
                    scale[j] = -scale[j] / back[j]
                    back[j] = 1.0 / back[j]
            for j in range(k, P):
                trial[j] = f4(0)
                weights[j] = f4(0)
            for i in range(k):
                z[i] = scaled_row(SB[selected, i], trial, inverse[i], P)
        else:
            dense_count[0] = 0
            for i in range(k):
                for j in range(P):
                    inverse[i, j] = f4(0)
                face = high[i] if c[i] >= 0 else -low[i]
                other = low[i] if c[i] >= 0 else -high[i]
                inverse[i, i] = f4(face)
                z[i] = f4(face)
                weights[i] = c[i] * f4(face)
                idx[i] = m + i
                scale[i] = 1.0 / face
                back[i] = other / face
            for j in range(k, P):
                weights[j] = f4(0)
        # The inner point: short of the best pool point, or half way along c.
        steepest = max(most[q], f4(1e-20))
        at = pool_at[q]
        if at >= 0:
            factor = f4(0.8)
            for j in range(k):
                zin[j] = factor * pool[at, j]
        else:
            factor = f4(0.5) / steepest
            for j in range(k):
                zin[j] = factor * c[j]
        if sift:
            histogram[:] = 0
            for i in range(m):
                h = int(along[q, i] / steepest * f4(255))
                if h > 0:
                    histogram[h] += 1
            total = 0
            cut = 255
            while cut > 1 and total + histogram[cut] <= local:
                total += histogram[cut]
                cut -= 1
            n = 0
            for i in range(m):
                inside[i] = int(along[q, i] / steepest * f4(255)) > cut
                if inside[i]:
                    ids[n] = i
                    for j in range(k):
                        block[j, n] = rows32[i, j]
                    yin[n] = factor * (pool_values[at, i] if at >= 0 else along[q, i])
                    n += 1
        else:
            n = padded_m
            if at >= 0:
                for i in range(m):
                    yin[i] = factor * pool_values[at, i]
            else:
                for i in range(m):
                    yin[i] = factor * along[q, i]
            for i in range(m, padded_m):
                yin[i] = f4(0)
        steps = 0
        result = 2
        while True:
            if sift:
                padded = (n + 31) // 32 * 32
                for j in range(k):
                    for i in range(n, padded):
                        block[j, i] = f4(0)
                for i in range(n, padded):
                    yin[i] = f4(0)
                result, done = walk(
                    block,
                    ids,
                    padded,
                    rows32,
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
                    limit - steps,
                    decide,
                    gap,
                    dense,
                    dense_count,
                )
            else:
                result, done = walk(
                    columns32,
                    ids,
                    n,
                    rows32,
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
                    limit - steps,
                    decide,
                    gap,
                    dense,
                    dense_count,
                )
            steps += done
            if not sift or (result == 1 and decide):
                break
            # Only some rows were looked at: price the others at the exit, and let those join that it breaks worst.
            if result == 2:
                zin[:] = z
            product(columns32, zin, everywhere, padded_m)
            worst = f4(0)
            gained = f4(0)
            for i in range(m):
                worst = max(worst, everywhere[i])
            for j in range(k):
                gained += c[j] * zin[j]
            if decide:
                if gained > (f4(1) + MARGIN) * max(worst, f4(1)):
                    result = 0
                    break
            elif total_of(weights) * max(worst, f4(1)) <= (f4(1) + f4(1.5) * gap) * gained:
                break
            if worst <= f4(1) + f4(1e-4) or steps >= limit:
                result = 2
                break
            threshold = f4(1) + f4(0.25) * (worst - f4(1))
            added = 0
            for i in range(m):
                if everywhere[i] > threshold and not inside[i] and n < room - 32:
                    inside[i] = True
                    ids[n] = i
                    added += 1
                    for j in range(k):
                        block[j, n] = rows32[i, j]
                    n += 1
            if added == 0:
                result = 2
                break
            factor = f4(0.9) / worst
            for j in range(k):
                zin[j] *= factor
            for i in range(n):
                yin[i] = factor * everywhere[ids[i]]
        exits[q] = zin
        if not decide or result == 1:
            bounds[q] = _proved_bound(
                rows, front, behind, high, low, rounding, C[q], idx, scale, inverse, weights64, residual
            )
            if decide and not (bounds[q] < goal[q]):
                result = 2
        verdict[q] = result
        pivots[q] = steps
        if want_bases:
            if keep_going > 0 and not sift:
                # This basis will be stored: carry it on to about the optimum, where it serves its neighbours best.
                if result == 0:
                    product(columns32, zin, yin, padded_m)
                    for i in range(padded_m):
                        yin[i] *= f4(0.9)
                    for j in range(k):
                        zin[j] *= f4(0.9)
                _, done = walk(
                    columns32,
                    ids,
                    padded_m,
                    rows32,
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
                    keep_going,
                    False,
                    f4(0),
                    dense,
                    dense_count,
                )
                pivots[q] += done
            OZ[q] = z
            OB[q] = inverse
            OI[q] = idx
            OS[q] = scale
            OW[q, :k] = back
