"""The areas of a slice as shapes, for whatever draws them."""

from __future__ import annotations

import numpy as np

from overexplain.geometry.arrays import BoolArray


def runs(mask: BoolArray) -> list[tuple[int, int, int]]:
    """The area as bars (row, from column, up to but not column); equal bars in neighbouring rows are not joined.

    >>> runs(np.array([[True, True, False, True]]))
    [(0, 0, 2), (0, 3, 4)]
    """
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, stops = np.argwhere(edges == 1), np.argwhere(edges == -1)
    return [(int(i), int(start), int(stop)) for (i, start), (_, stop) in zip(starts, stops, strict=True)]


def middle(mask: BoolArray, least: int) -> tuple[int, int] | None:
    """The (row, column) deepest inside an area, for its name; None if nowhere `least` cells lie on all sides of it.

    >>> middle(np.ones((5, 9), dtype=bool), 2)
    (2, 4)
    """
    deepest, depth = None, -1
    while mask.any():
        deepest, depth = mask, depth + 1
        around = np.pad(mask, 1)
        mask = mask & around[:-2, 1:-1] & around[2:, 1:-1] & around[1:-1, :-2] & around[1:-1, 2:]
    if deepest is None or depth < least:
        return None
    inside = np.argwhere(deepest)
    nearest = np.abs(inside - inside.mean(axis=0)).sum(axis=1).argmin()
    return int(inside[nearest, 0]), int(inside[nearest, 1])
