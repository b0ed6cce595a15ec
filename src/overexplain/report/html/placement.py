"""Where names stand beside their lines: many places are tried, the clearest is taken, and no two texts ever touch.

A place costs more if lines run through it, if another line is as near as its own, or if it needs a leader. Names choose one after
the other, in several orders, and the cheapest order wins. A name that finds no free place is shortened, and left out at last:
every chart has its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.report.html.shapes import Point
from overexplain.report.html.texts import shortened, width_of

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

HEIGHT = 17.0
CLEAR = 4.0
"""Pixels between two texts, and between a text and a line."""
STEP = 7.0
"""Pixels between the samples of a line."""
NEAR = 15.0
"""A name further than this from its line gets a leader."""
SHORTENED, LEFT_OUT = 90.0, 500.0
"""What it costs to lose all of a name by shortening, and to leave it out."""


@dataclass(frozen=True)
class Name:
    """A name to be placed at a line, given by its corners; the suffix stays when the words are shortened."""

    words: str
    corners: tuple[Point, ...]
    style: str = ""
    size: float = 13.0
    bold: bool = False
    suffix: str = ""

    def within(self, width: float) -> str:
        """The name in so many pixels."""
        room = width - width_of(self.suffix, self.size, self.bold)
        return shortened(self.words, max(room, 24.0), self.size, self.bold) + self.suffix


@dataclass(frozen=True)
class Placed:
    """A name with its place: left end (or right end, if `at_end`) and baseline; `leader` joins it to its line."""

    words: str
    style: str
    x: float
    y: float
    at_end: bool
    box: Box
    leader: tuple[Point, Point] | None
    cost: float


@dataclass(frozen=True)
class _Choice:
    """The places that a name could take and what each costs, before other names are looked at."""

    words: str
    anchors: FloatArray
    boxes: FloatArray
    nearest: FloatArray
    """Where a leader would leave the text."""
    at_end: BoolArray
    is_led: BoolArray
    cost: FloatArray


def place_names(
    names: Sequence[Name], area: Box, longest: float, obstacles: Sequence[Sequence[Point]] = ()
) -> list[Placed]:
    """The names that find a place inside the area, none wider than `longest`; the first chooses first, obstacles are avoided."""
    lines = [_sampled(name.corners) for name in names]
    avoided = np.concatenate([np.empty((0, 2)), *(_sampled(corners) for corners in obstacles)])

    @cache
    def choice(i: int, share: float) -> _Choice:
        full = min(longest, width_of(names[i].words + names[i].suffix, names[i].size, names[i].bold))
        others = np.concatenate([np.empty((0, 2)), *lines[:i], *lines[i + 1 :]])
        return _choice(names[i], names[i].within(share * full), lines[i], others, avoided, area)

    first, rest = list(range(len(names)))[:1], list(range(len(names)))[1:]
    by_height = sorted(rest, key=lambda i: names[i].corners[-1][1])
    tries = []
    for order in (rest, rest[::-1], by_height, by_height[::-1]):
        found: list[Placed] = []
        for i in [*first, *order]:
            for share in (1.0, 0.7, 0.5, 0.3):
                placed = _best(names[i], choice(i, share), found, 1 - share)
                if placed is not None:
                    found.append(placed)
                    break
        tries.append(found)
    return min(tries, key=lambda found: sum(placed.cost for placed in found) + LEFT_OUT * (len(names) - len(found)))


def _sampled(corners: Sequence[Point]) -> FloatArray:
    """Points along a line, about STEP apart."""
    pieces = [np.array(corners[:1], dtype=float).reshape(-1, 2)]
    for start, end in pairwise(corners):
        count = max(int(np.hypot(end[0] - start[0], end[1] - start[1]) / STEP), 1)
        steps = np.arange(1, count + 1)[:, None] / count
        pieces.append(np.array(start) + steps * (np.array(end) - np.array(start)))
    return np.concatenate(pieces)


def _choice(name: Name, words: str, line: FloatArray, others: FloatArray, avoided: FloatArray, area: Box) -> _Choice:
    width = width_of(words, name.size, name.bold)
    anchors, corners, at_end, early = _candidates(line, width, area)
    boxes = np.column_stack([corners, corners + np.array([width, HEIGHT])])
    within = (boxes[:, :2] >= area[:2]).all(axis=1) & (boxes[:, 2:] <= area[2:]).all(axis=1)
    anchors, boxes, at_end, early = anchors[within], boxes[within], at_end[within], early[within]
    nearest = np.clip(anchors, boxes[:, :2], boxes[:, 2:])
    away = np.hypot(*(anchors - nearest).T)
    here = np.column_stack([anchors, anchors])
    is_led = away > NEAR
    near = np.where(is_led, 9.0, away + 3.0)  # so near another line that the name could be its name
    cost = 3.0 * _inside(others, boxes, CLEAR) + 2.0 * _inside(line, boxes, 2.0) + 1.5 * _inside(avoided, boxes, CLEAR)
    cost += 0.25 * away + 6.0 * is_led + 9.0 * (_inside(others, boxes, near[:, None]) > 0)
    cost += 9.0 * (_inside(others, here, 5.0) > 0) + 4.0 * (_inside(others, here, 12.0) > 0) + 2.0 * early
    return _Choice(words, anchors, boxes, nearest, at_end, is_led, cost)


def _best(name: Name, choice: _Choice, taken: Sequence[Placed], cut: float) -> Placed | None:
    """The cheapest place that is still free; None if there is none. `cut` is the share of the name that is lost."""
    free = np.ones(len(choice.boxes), dtype=bool)
    for other in taken:
        free &= _apart(choice.boxes, other.box) & ~_crosses(choice.anchors, choice.nearest, other.box)
        if other.leader is not None:
            free &= _inside(_sampled(other.leader), choice.boxes, CLEAR) == 0
    if not free.any():
        return None
    best = int(np.flatnonzero(free)[np.argmin(choice.cost[free])])
    left, top, right, bottom = (float(edge) for edge in choice.boxes[best])
    (x1, y1), (x2, y2) = choice.nearest[best].tolist(), choice.anchors[best].tolist()
    ends = bool(choice.at_end[best])
    return Placed(
        words=choice.words,
        style=name.style,
        x=right if ends else left,
        y=bottom - HEIGHT / 2 + 4.5,
        at_end=ends,
        box=(left, top, right, bottom),
        leader=((x1, y1), (x2, y2)) if choice.is_led[best] else None,
        cost=float(choice.cost[best]) + SHORTENED * cut,
    )


def _candidates(line: FloatArray, width: float, area: Box) -> tuple[FloatArray, FloatArray, BoolArray, FloatArray]:
    """Anchors on the line, corners of the text, whether it ends at the line, how early on it: close by, then anywhere."""
    some = line[np.unique(np.linspace(0, len(line) - 1, 28).astype(int))]
    anchors, corners, ends, early = [], [], [], []
    before = np.linspace(1, 0, len(some))
    asides = [(10.0, rise) for rise in (-46.0, -30.0, -16.0, 0.0, 16.0, 30.0, 46.0)]
    asides += [(30.0, rise) for rise in (-16.0, 0.0, 16.0)]
    for aside, rise in asides:
        for at_end in (False, True):
            anchors.append(some)
            corners.append(some + np.array([-aside - width if at_end else aside, rise - HEIGHT / 2]))
            ends.append(np.full(len(some), at_end))
            early.append(before)
    rows = np.arange(area[1], area[3] - HEIGHT, HEIGHT + CLEAR)
    columns = np.linspace(area[0], max(area[2] - width, area[0]), 12)
    anywhere = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2)
    middles = anywhere + np.array([width / 2, HEIGHT / 2])
    closest = np.argmin(np.hypot(*(middles[:, None] - some).transpose(2, 0, 1)), axis=1)
    anchors.append(some[closest])
    corners.append(anywhere)
    ends.append(some[closest][:, 0] > middles[:, 0])
    early.append(before[closest])
    return np.concatenate(anchors), np.concatenate(corners), np.concatenate(ends), np.concatenate(early)


def _apart(boxes: FloatArray, other: Box) -> BoolArray:
    """Which of the boxes keep clear of another one."""
    left, top, right, bottom = other
    beside = (boxes[:, 0] >= right + CLEAR) | (boxes[:, 2] <= left - CLEAR)
    apart: BoolArray = beside | (boxes[:, 1] >= bottom + CLEAR) | (boxes[:, 3] <= top - CLEAR)
    return apart


def _inside(points: FloatArray, boxes: FloatArray, around: float | FloatArray) -> FloatArray:
    """How many of the points lie in each box, or so near to it."""
    x, y = points.T
    left, top, right, bottom = (edge[:, None] for edge in boxes.T)
    across, down = (x > left - around) & (x < right + around), (y > top - around) & (y < bottom + around)
    counts: FloatArray = (across & down).sum(axis=1).astype(float)
    return counts


def _crosses(starts: FloatArray, ends: FloatArray, box: Box) -> BoolArray:
    """Whether the way from each start to its end runs through the box, by samples."""
    steps = np.linspace(0, 1, 12)[:, None, None]
    x, y = (starts + steps * (ends - starts)).transpose(2, 0, 1)
    left, top, right, bottom = box
    hits: BoolArray = ((x > left) & (x < right) & (y > top) & (y < bottom)).any(axis=0)
    return hits
