"""The truth about certified regions a second time, without a cone: one normal a after the other.

For a given normal the consistent offsets b are an interval, with exact ends if the numbers are dyadic and small. In two
dimensions `plane_normals` has one normal for every order that points of a lattice can have along it, so that nothing is missed
where promises depend on that order alone (all but `slack`). In more dimensions a sweep shows what is possible, never what is
impossible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np

from brute import Given, verdict_of


@cache
def plane_normals(reach: int) -> np.ndarray:
    """A normal for every way in which whole points, at most `reach` apart in either coordinate, can be ordered along it.

    Two points swap places where the normal is at right angles to their difference, so: all those normals, and between every
    two neighbours their sum. All are whole numbers, exact in float64.
    """
    critical = [(i, j) for i in range(-reach, reach + 1) for j in range(-reach, reach + 1) if math.gcd(i, j) == 1]
    critical.sort(key=lambda v: math.atan2(v[1], v[0]))
    turned = critical[1:] + critical[:1]
    return np.array(critical + [(a + c, b + d) for (a, b), (c, d) in zip(critical, turned, strict=True)], dtype=float)


def swept(rows: Sequence[Given], points: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The verdicts at the points if the consistent normals were among `normals`: exact offsets, every side of unlabelled rows.

    All numbers must be dyadic and small, so that float64 is exact.
    """
    heights = normals @ np.asarray(points, dtype=float).T  # (normals, points)
    signs = np.zeros((3, heights.shape[1]), dtype=bool)  # is there a model with a·x − b below, at, above 0?
    free = [i for i, row in enumerate(rows) if row.kind is not None and not row.label]
    for guess in product((1, -1), repeat=len(free)):
        sides = [row.label for row in rows]
        for i, y in zip(free, guess, strict=True):
            sides[i] = y
        low, above, high = _offsets(rows, sides, normals)
        fits = (high >= low) & (high > above)
        z, low, above, high = heights[fits], low[fits, None], above[fits, None], high[fits, None]
        signs[0] |= (high > z).any(axis=0)
        signs[1] |= ((z >= low) & (z > above) & (z <= high)).any(axis=0)
        signs[2] |= ((low < z) & (above < z)).any(axis=0)
    labels = {row.point: row.label for row in rows if row.label}
    found = [{s - 1 for s in range(3) if signs[s, i]} for i in range(heights.shape[1])]
    return np.array(
        [
            labels.get(tuple(map(Fraction, x))) or verdict_of(s)
            for x, s in zip(np.asarray(points).tolist(), found, strict=True)
        ]
    )


def _offsets(
    rows: Sequence[Given], sides: Sequence[int], normals: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every normal: the offset b is ≥ low, > above and ≤ high."""
    low, above, high = (np.full(len(normals), v) for v in (-np.inf, -np.inf, np.inf))
    for row, y in zip(rows, sides, strict=True):
        own = normals @ np.array(row.point, dtype=float)
        if y > 0:
            high = np.minimum(high, own)
        elif y < 0:
            above = np.maximum(above, own)
        if row.kind is None:
            continue
        across = normals @ np.array(row.image, dtype=float)
        if row.kind == "valid" or row.slack:
            low, high = (np.maximum(low, across), high) if y > 0 else (low, np.minimum(high, across))
        else:
            low, high = np.maximum(low, across), np.minimum(high, across)
        if row.kind == "plane" and any(row.step) and y:  # what moved was asked off the plane
            high = np.where(y * (own - across) > 0, high, -np.inf)
        if row.kind in ("plane", "valid"):
            continue
        step, weights = np.array(row.step, dtype=float), np.array(row.weights, dtype=float)
        if row.kind == "l2":  # −y·a is a positive multiple of D²w, or w = 0
            slope = weights**2 * step
            parallel = (normals[:, :, None] * slope[None, None, :] == normals[:, None, :] * slope[None, :, None]).all(
                axis=(1, 2)
            )
            steepest = parallel & (-y * (normals @ slope) > 0) if slope.any() else np.ones(len(normals), dtype=bool)
        else:
            dual = np.abs(normals / weights)
            length = (weights * np.abs(step)).sum() if row.kind == "l1" else (weights * np.abs(step)).max()
            dual_length = dual.max(axis=1) if row.kind == "l1" else dual.sum(axis=1)
            if row.slack:
                margin = length / float(1 + row.slack) * dual_length
                low, high = (low, np.minimum(high, own - margin)) if y > 0 else (np.maximum(low, own + margin), high)
                continue
            steepest = -y * (normals @ step) == length * dual_length
        high = np.where(steepest, high, -np.inf)
    return low, above, high
