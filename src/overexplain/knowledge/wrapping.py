"""The polygon of a region in a plane, wrapped by verdicts: certain points inside, models that deny it outside.

A region is convex, whatever the log (docs/theory/regions.md, Proposition 1). So the hull of certain points is certain, and a
model that denies a point keeps the region on one side of a line. Between the two lies what is not known yet: a ray from within
to a corner of the outer polygon ends at the border, where a certain point joins the inner one and a model cuts the corner off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray

GRID = 33
"""Values of either feature that are asked about at first."""
PARTS = 16
"""Points on a ray that are asked about at a time."""
MOST_CUTS = 150
FARTHER = (0.0, 1e-3, 0.03, 0.5)
SAFE = 1e-12
"""What rounding can move a line or a distance by, in a square of side 1, and a good deal more."""

Cut = tuple[float, float, float]
"""(n, m, c): no point with n·u + m·v < c belongs to the region, in a square of side 1."""


@dataclass(frozen=True)
class Wrapped:
    """Corners of certain points, counterclockwise, and how far at most a point of the region is from their hull; in a square of
    side 1. Without corners `gap` is the largest distance between two points that may belong to it."""

    corners: FloatArray
    gap: float


def wrap(
    are_certain: Callable[[FloatArray], BoolArray], cut_at: Callable[[FloatArray], Cut | None], accuracy: float
) -> Wrapped:
    """Ask until the gap is at most `accuracy`, or nothing more comes.

    `cut_at` gives a line that a point which is not certain lies beyond, if a model is found that draws it.
    """
    axis = np.linspace(0.0, 1.0, GRID)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    inner = hull(grid[are_certain(grid)])
    outer = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    cuts = 0
    while not len(inner) and len(outer) and cuts < MOST_CUTS and _width(outer) > accuracy:
        middle = outer.mean(axis=0, keepdims=True)
        if are_certain(middle)[0]:
            inner = middle
            break
        cut, cuts = cut_at(middle[0]), cuts + 1
        if cut is None:
            break
        outer = _clipped(outer, cut)
    if not len(inner):
        return Wrapped(inner, _width(outer))
    stuck: set[tuple[float, ...]] = set()
    while cuts < MOST_CUTS:
        away = _distances(outer, inner)
        targets = np.array([v for v, d in zip(outer, away, strict=True) if d > accuracy / 2 and tuple(v) not in stuck])
        if not len(targets):
            break
        last, beyond = _border(are_certain, inner.mean(axis=0), targets, accuracy / 16)
        inner = hull(np.vstack([inner, last[np.isfinite(last).all(axis=1)]]))
        for target, point in zip(targets, beyond, strict=True):
            if np.isnan(point).any():  # the corner itself is certain
                continue
            for share in FARTHER:  # a model is found the sooner the farther a point is beyond the border
                cut, cuts = cut_at(point + share * (target - point)), cuts + 1
                if cut is not None and cut[0] * target[0] + cut[1] * target[1] < cut[2]:
                    outer = _clipped(outer, cut)
                    break
            else:
                stuck.add(tuple(target))
    return Wrapped(inner, float(_distances(outer, inner).max(initial=0.0)) + SAFE)


def _border(
    are_certain: Callable[[FloatArray], BoolArray], start: FloatArray, targets: FloatArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """On the ray to each target: the last certain point found (NaN: none), and one at most `width` on that is not (NaN: none)."""
    low, high = np.zeros(len(targets)), np.full(len(targets), 1 + 1 / (PARTS - 1))
    length = np.maximum(np.linalg.norm(targets - start, axis=1), SAFE)
    seen, denied = np.zeros(len(targets), dtype=bool), np.zeros(len(targets), dtype=bool)
    while ((high - low) * length > width).any():
        share = low[:, None] + (high - low)[:, None] * np.arange(1, PARTS) / PARTS
        points = start + share[..., None] * (targets - start)[:, None]
        certain = are_certain(points.reshape(-1, 2)).reshape(share.shape)
        some = certain.any(axis=1)
        at = np.where(some, PARTS - 2 - certain[:, ::-1].argmax(axis=1), -1)
        rows = np.arange(len(targets))
        ends = at == PARTS - 2
        denied |= ~ends
        high = np.where(ends, high, share[rows, np.minimum(at + 1, PARTS - 2)])
        low = np.where(some, share[rows, np.maximum(at, 0)], low)
        seen |= some
        if (ends & ~denied).any():  # the target itself is certain: nothing to look for
            high = np.where(ends & ~denied, low, high)
    way = targets - start
    last, beyond = start + low[:, None] * way, start + high[:, None] * way
    last[~seen], beyond[~denied] = np.nan, np.nan
    return last, beyond


def hull(points: FloatArray) -> FloatArray:
    """The corners of the smallest convex polygon around points, counterclockwise (Andrew's monotone chain)."""
    ordered = np.unique(points.reshape(-1, 2), axis=0).tolist()
    if len(ordered) < 3:
        return np.array(ordered).reshape(-1, 2)
    chains = []
    for way in (ordered, ordered[::-1]):
        chain: list[list[float]] = []
        for c in way:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], c) <= 0:
                chain.pop()
            chain.append(c)
        chains += chain[:-1]
    return np.array(chains)


def _turn(a: list[float], b: list[float], c: list[float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _clipped(polygon: FloatArray, cut: Cut) -> FloatArray:
    """What a line leaves of a convex polygon, a hair more."""
    over = polygon @ np.array(cut[:2]) - (cut[2] - SAFE)
    kept = []
    for k, (point, value) in enumerate(zip(polygon, over, strict=True)):
        before, last = polygon[k - 1], over[k - 1]
        if (value >= 0) != (last >= 0):
            kept.append(before + (point - before) * (last / (last - value)))
        if value >= 0:
            kept.append(point)
    return np.array(kept).reshape(-1, 2)


def _distances(points: FloatArray, polygon: FloatArray) -> FloatArray:
    """How far each point is from a convex polygon; 0 inside."""
    if not len(points):
        return np.zeros(0)
    start, step = polygon, np.roll(polygon, -1, axis=0) - polygon
    length = np.maximum((step * step).sum(axis=1), 1e-300)
    way = points[:, None] - start
    share = np.clip((way * step).sum(axis=2) / length, 0, 1)[..., None]
    away = np.linalg.norm(way - share * step, axis=2).min(axis=1)
    if len(polygon) > 2:
        inside = (step[:, 0] * way[..., 1] - step[:, 1] * way[..., 0] >= 0).all(axis=1)
        away[inside] = 0.0
    return np.asarray(away)


def _width(polygon: FloatArray) -> float:
    if not len(polygon):
        return 0.0
    return float(np.linalg.norm(polygon[:, None] - polygon, axis=2).max())
