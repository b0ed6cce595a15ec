"""The outline of an area of a map: straight borders where the cells allow it, else bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from overexplain.geometry.arrays import BoolArray
from overexplain.report.areas import runs

Corner = tuple[int, int]
"""Row and column of a cell."""


def outline(mask: BoolArray) -> list[list[Corner]]:
    """Shapes with corners in the middles of cells that cover the mask and the middle of no other cell.

    What is determined is convex, so this is one shape as a rule. Cells that a limit left open can make holes: then it is bars.

    >>> outline(np.array([[True, True, True], [False, True, True], [False, False, True]]))
    [[(0, 0), (2, 2), (0, 2)]]
    >>> outline(np.array([[True, False, True]]))
    [[(0, 0), (0, 0)], [(0, 2), (0, 2)]]
    """
    bars = [(row, start, stop - 1) for row, start, stop in runs(mask)]
    if not bars:
        return []
    hull = _hull(sorted({(row, end) for row, start, stop in bars for end in (start, stop)}))
    if np.array_equal(_covered(hull, mask.shape), mask):
        return [hull]
    return [[(row, start), (row, stop)] for row, start, stop in bars]


def _hull(corners: Sequence[Corner]) -> list[Corner]:
    """The corners of the smallest convex shape around points in rising order (Andrew's monotone chain)."""
    if len(corners) < 3:
        return list(corners)

    def half(points: Sequence[Corner]) -> list[Corner]:
        chain: list[Corner] = []
        for point in points:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        return chain[:-1]

    return half(corners) + half(corners[::-1])


def _turn(a: Corner, b: Corner, c: Corner) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _covered(hull: Sequence[Corner], shape: tuple[int, ...]) -> BoolArray:
    """Which cells have their middle in the hull; whole numbers, so exact."""
    row, column = np.indices(shape)
    lowest, highest = np.min(hull, axis=0), np.max(hull, axis=0)
    covered: BoolArray = (row >= lowest[0]) & (row <= highest[0]) & (column >= lowest[1]) & (column <= highest[1])
    for i, a in enumerate(hull):
        b = hull[(i + 1) % len(hull)]
        covered &= (b[0] - a[0]) * (column - a[1]) - (b[1] - a[1]) * (row - a[0]) >= 0
    return covered
