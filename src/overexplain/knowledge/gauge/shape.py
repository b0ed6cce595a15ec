"""What is known of P beyond its rows: a tight box, which rows matter, its vertices or some of its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import Polytope, Rows, prove_box, with_box
from overexplain.knowledge.gauge.centre import NoInterior
from overexplain.knowledge.gauge.plain import CERTAIN, into_polytope, settle
from overexplain.knowledge.gauge.rays import Rays, find_rays
from overexplain.knowledge.gauge.swift import Swift

MANY_DIMENSIONS = 50
"""Beyond this, finding out which rows matter costs more than it saves."""


@dataclass(frozen=True)
class Shape:
    """P, and what the screens use."""

    polytope: Polytope
    rays: Rays | None
    points: FloatArray
    """Points proved to lie in P, far out in several directions."""


def first_shape(rows: Rows, high: FloatArray, low: FloatArray) -> Shape:
    """All rows in the box that came with the centre: free, and enough for a few points."""
    return Shape(with_box(rows, np.arange(len(rows.values)), high, low), None, np.zeros((0, len(high))))


def searched_box(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """(high, low) of a tight box that is proved; raises NoInterior. Costs 2k linear programs."""
    n, k = rows.values.shape
    # The box to start from is where P lies if the rows are taken as exact; the search may use it, the proof does not.
    far = np.full(k, 2.0 * n)
    weights, where, _ = _box_by_simplex(Polytope(rows.values, np.full(n, 1e-12), far, far, np.arange(n)))
    return prove_box(rows, weights, where)


def full_shape(rows: Rows, first: Shape, compiled: bool = False) -> Shape:
    """The same polytope in a tight box, without the rows that are proved never to be tight."""
    outer = first.polytope
    k = len(outer.high)
    if not k or (k > MANY_DIMENSIONS and not compiled):
        return first
    rays = find_rays(outer)
    high, low, points = _box_compiled(outer) if rays is None and compiled else _box_proved(rows, outer, rays)
    high, low = np.minimum(high, outer.high), np.minimum(low, outer.low)
    boxed = with_box(rows, outer.identity, high, low)
    pruned = with_box(rows, boxed.identity[_matter(boxed, rays, points, compiled)], high, low)
    if rays is not None:
        rays = find_rays(pruned)
        points = np.zeros((0, k))
    return Shape(pruned, rays, points)


def _box_proved(rows: Rows, outer: Polytope, rays: Rays | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(high, low, points far out) from the vertices, or by the simplex.

    Where many rows meet in a vertex, the basis that Qhull lists need not be the one that proves the bound.
    """
    if rays is not None:
        weights, where, points = _box_by_rays(outer, rays)
        try:
            return *prove_box(rows, weights, where), points
        except NoInterior:
            pass
    weights, where, points = _box_by_simplex(outer)
    try:
        return *prove_box(rows, weights, where), points
    except NoInterior:
        return outer.high, outer.low, points


def _box_compiled(outer: Polytope) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(high, low, points far out): bounds proved close to ±e_j, the difference paid by the box known so far."""
    targets, noise = _near_axes(outer)
    k = len(outer.high)
    gap = 0.1 if k > MANY_DIMENSIONS else 1e-3
    bounds, points = Swift(outer, np.zeros((0, k))).bound(targets, gap, 1500)
    bounds = bounds + outer.rounding * (np.abs(targets) @ outer.reach)
    high, low = outer.high, outer.low
    for _ in range(20):
        paid = np.maximum(-noise, 0.0) @ high + np.maximum(noise, 0.0) @ low
        box = np.where(np.isfinite(bounds), (bounds + paid) * (1 + 1e-9), np.inf)
        high, low = np.minimum(high, box[:k]), np.minimum(low, box[k:])
    return high, low, points[np.isfinite(points).all(axis=1)]


def _near_axes(polytope: Polytope) -> tuple[FloatArray, FloatArray]:
    """(directions close to ±e_j, how far they are off).

    They are not the axes themselves: started at a corner of a box with the same axes, those would be totally degenerate.
    """
    k = len(polytope.high)
    axes = np.vstack([np.eye(k), -np.eye(k)])
    targets = axes + np.random.default_rng(1).standard_normal((2 * k, k)) * (0.04 / k)
    return targets, targets - axes


def _dense(polytope: Polytope, basis: NDArray[np.intp], weights: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """(weights as a matrix over the rows that occur, the numbers of those rows)."""
    used = np.unique(basis[basis >= 0])
    matrix = np.zeros((len(basis), len(used)))
    at, place = np.nonzero(basis >= 0)
    np.add.at(matrix, (at, np.searchsorted(used, basis[at, place])), np.maximum(weights[at, place], 0.0))
    return matrix, polytope.identity[used]


def _box_by_rays(polytope: Polytope, rays: Rays) -> tuple[FloatArray, NDArray[np.intp], FloatArray]:
    k = len(polytope.high)
    targets = np.vstack([np.eye(k), -np.eye(k)])
    best = (targets @ rays.points.T).argmax(axis=1)
    weights = np.matmul(targets[:, None, :], rays.inverse[best])[:, 0, :]
    matrix, where = _dense(polytope, rays.basis[best], weights)
    return matrix, where, rays.points


def _box_by_simplex(polytope: Polytope) -> tuple[FloatArray, NDArray[np.intp], FloatArray]:
    """Dual solutions for directions close to ±e_j."""
    targets, _ = _near_axes(polytope)
    found = settle(polytope, targets, np.full(len(targets), np.inf), gap=1e-3)
    matrix, where = _dense(polytope, found.basis, found.weights)
    return matrix, where, found.points[np.any(found.points != 0, axis=1)]


def _matter(polytope: Polytope, rays: Rays | None, points: FloatArray, compiled: bool) -> NDArray[np.intp]:
    """The rows that are not proved redundant. A row with max a·z < 1 over P is never tight, so all such rows can go at once."""
    todo = polytope.box_support(polytope.rows) * (1.0 + polytope.rounding) + polytope.slop >= 1.0
    numbers = np.flatnonzero(todo)
    k = len(polytope.high)
    if k > MANY_DIMENSIONS:
        return numbers
    if len(points):
        tight = (polytope.rows[numbers] @ into_polytope(polytope, points)[0].T).max(axis=1) > 1.0 - 1e-6
        keep, numbers = numbers[tight], numbers[~tight]
    else:
        keep = numbers[:0]
    if not len(numbers):
        return np.sort(keep)
    cost = polytope.slop[numbers] + polytope.rounding * (np.abs(polytope.rows[numbers]) @ polytope.reach)
    if rays is not None:
        certain, _ = rays.decide(polytope, polytope.rows[numbers], cost, 1.0 - cost)
    elif compiled:
        certain = (
            Swift(polytope.only(np.sort(np.concatenate([keep, numbers]))), points).decide(
                polytope.rows[numbers], cost, 0.0
            )[0]
            == CERTAIN
        )
    else:
        certain = settle(polytope, polytope.rows[numbers], cost, enough=1.0 - 1e-6).codes == CERTAIN
    return np.sort(np.concatenate([keep, numbers[~certain]]))
