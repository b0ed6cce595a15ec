"""The nearest point of a plane inside a box, under weighted ℓq, by following one path until the plane is reached.

Only moves towards the plane help, so with u_i = weights_i·|z_i − x_i| and gain_i = |normal_i| / weights_i the problem is

    minimise ‖u‖_q   subject to   Σ gain_i·u_i = gap,   0 ≤ u_i ≤ cap_i.

Its optimality conditions say u_i = min(cap_i, t·rate_i) for one t, with rate_i = gain_i^(1/(q−1)) (all 1 for ℓ∞): the progress
towards the plane is piecewise linear in t, and one sort of cap_i / rate_i finds the piece. For ℓ1 (a fractional knapsack)
the rates are those of the limit q → 1: the feature with the largest gain moves alone until it stops, then the next.
"""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import UnsupportedNorm
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.norms import Lp, Norm, Weighted

ROUNDING = 2.0**-48
"""How far from the plane, relative to the terms of normal·z, a point at all its limits still counts as on it."""


PATIENCE, SLOWEST = 2.0**200, 2.0**-600
"""Rates below `SLOWEST` are overlooked, and may be for `PATIENCE` times as long as it takes the first feature to stop."""


def weighted_exponent(distance: Norm, dimension: int) -> tuple[float, FloatArray]:
    """(q, weights) of a plain or weighted ℓq; UnsupportedNorm for any other distance."""
    weights, inner = np.ones(dimension), distance
    while isinstance(inner, Weighted):
        weights, inner = weights * inner.weights, inner.norm
    if not isinstance(inner, Lp):
        raise UnsupportedNorm(f"this needs l1, l2, linf or lq, plain or weighted, got {distance!r}")
    return inner.q, weights


def nearest_on_plane(
    normal: FloatArray,
    offset: float,
    x: FloatArray,
    low: FloatArray,
    high: FloatArray,
    q: float,
    weights: FloatArray,
) -> FloatArray | None:
    """The z with low ≤ z ≤ high and normal·z = offset nearest to x (which lies in the box); None if the plane misses the box.

    >>> one, everywhere = np.ones(2), np.full(2, 9.0)
    >>> nearest_on_plane(np.array([2.0, 1.0]), 5.0, np.zeros(2), -everywhere, np.array([2.0, 9.0]), 1.0, one)
    array([2., 1.])
    """
    gap = offset - float(normal @ x)
    toward = np.sign(normal) * np.sign(gap)
    limit = np.where(toward > 0, high, low)
    with np.errstate(over="ignore", invalid="ignore"):
        cap = np.where(toward == 0, 0.0, np.abs(limit - x) * weights)
    gain = np.abs(normal) / weights
    z, left, free = x.copy(), abs(gap), (gain > 0) & (cap > 0)
    while left > 0:
        if not free.any():
            return z if left <= ROUNDING * float(np.abs(normal) @ np.abs(z) + abs(offset)) else None
        rate = _rates(gain, free, q)
        movers = np.flatnonzero(rate > 0)
        stop, time = _times(left, gain[movers], cap[movers], rate[movers])
        soon = PATIENCE * float(stop.min())
        if time is None or time > soon:
            # Those that stop early make room for slower ones, whose rates are then relative to a smaller gain.
            early = movers[stop <= soon]
            z[early] = limit[early]
            left -= float(gain[early] @ cap[early])
            free[early] = False
            continue
        stopped = movers[time * rate[movers] >= cap[movers]]
        moving = movers[time * rate[movers] < cap[movers]]
        z[stopped] = limit[stopped]
        z[moving] += toward[moving] * time * rate[moving] / weights[moving]
        if len(moving):
            # What rounding left over is made up by those still moving, in proportion.
            share = rate[moving] / weights[moving]
            z[moving] += np.sign(normal[moving]) * share * (offset - normal @ z) / (np.abs(normal[moving]) @ share)
        break
    return np.clip(z, low, high)


def _rates(gain: FloatArray, free: BoolArray, q: float) -> FloatArray:
    """How fast each free feature moves, relative to the fastest: gain^(1/(q−1)), 0 where it waits its turn."""
    rate = np.zeros(len(gain))
    if q == 1:
        rate[int(np.where(free, gain, -1.0).argmax())] = 1.0
    elif q == math.inf:
        rate[free] = 1.0
    else:
        with np.errstate(under="ignore"):
            rate[free] = (gain[free] / gain[free].max()) ** (1 / (q - 1))
        rate[rate < SLOWEST] = 0.0
    return rate


def _times(gap: float, gain: FloatArray, cap: FloatArray, rate: FloatArray) -> tuple[FloatArray, float | None]:
    """When each feature stops, and the t with Σ gain·min(cap, t·rate) = gap; None if all caps together do not reach it."""
    with np.errstate(over="ignore", under="ignore"):
        stop = cap / rate
        order = np.argsort(stop, kind="stable")
        sooner, done, speed = stop[order], (gain * cap)[order], (gain * rate)[order]
        covered = np.concatenate([[0.0], np.cumsum(done)[:-1]])  # by those that stopped before
        still = np.cumsum(speed[::-1])[::-1]  # the speed of those that have not
        reached = np.flatnonzero(covered + still * sooner >= gap)
        if not len(reached):
            return stop, None
        k = int(reached[0])
        return stop, float(min((gap - covered[k]) / still[k], sooner[k]))
