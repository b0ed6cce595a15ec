"""The first two points with different labels: without them a labels-only service says nothing."""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import ExtractionFailed
from overexplain.extraction.box import Ball, Where
from overexplain.extraction.labels.line import Line
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES

FARTHEST = 1e9
"""Where nothing limits the questions, the search ends this many scales away from the start."""

TRIES = 400
"""Inside limits, the search ends after so many labels."""

Pair = tuple[FloatArray, FloatArray]
"""A point labelled No, a point labelled Yes."""


def scales(where: Where, start: FloatArray) -> FloatArray:
    """One unit for each feature: half of its side of the box; where there is no side, 1 or the size of the start."""
    if isinstance(where, Ball) or where.is_everything:
        return np.ones(len(start))
    half = where.high / 2 - where.low / 2
    return np.where(np.isfinite(half), half, np.maximum(1.0, np.abs(start)))


def find_pair(
    session: Session, where: Where, start: FloatArray, rng: np.random.Generator
) -> tuple[Pair, tuple[int, int]]:
    """A No and a Yes, and their log rows: the start, then random points on opposite sides of it, farther and farther away."""
    unit = scales(where, start)
    size, most, tries = 1.0, FARTHEST, TRIES
    if isinstance(where, Ball):
        size = where.radius / (2 * math.sqrt(len(start)))
        most = 2 * size
    elif not where.is_everything:
        size = 0.5
        most = 4 * size if np.isfinite([where.low, where.high]).all() else FARTHEST
    first, asked = session.label(start), 1
    own_row = session.row
    while asked < tries:
        step = unit * rng.standard_normal(len(start)) * size
        for x in (where.clip(start + step), where.clip(start - step)):
            label, row = session.label(x), session.row
            asked += 1
            if label != first:
                return ((start, x), (own_row, row)) if label == YES else ((x, start), (row, own_row))
        if size >= FARTHEST:
            break
        size = min(2 * size, most)
    side = "Yes" if first == YES else "No"
    limit = f"a distance of about {FARTHEST:.0e}" if where.is_everything else "the bounds"
    raise ExtractionFailed(
        f"all {asked} labels were {side}, from the start out to {limit}: the service may be constant. Give start=, a point "
        "near the boundary, or wider bounds"
    )


def bracket_along(
    session: Session, where: Where, scale: FloatArray, base: FloatArray, unit: FloatArray, step: float
) -> Line | None:
    """A line through `base` along S·unit with No on one side and Yes on the other; None if a few labels find none."""
    moving = scale * unit
    label, row = session.label(base), session.row
    sign = -1.0 if label == YES else 1.0  # if the guess is right, the plane lies this way
    room = where.room(base, sign * moving)
    nearer, distance = base, step
    for _ in range(12):
        distance = min(distance, room * (1 - 2.0**-20))
        x = where.clip(base + sign * distance * moving)
        if np.array_equal(x, nearer):
            return None
        found, other = session.label(x), session.row
        if found != label:
            no, yes = (nearer, x) if found == YES else (x, nearer)
            return Line.through(session, where, scale, no, yes, (row, other) if found == YES else (other, row))
        if distance >= room * (1 - 2.0**-19):
            return None
        nearer, row, distance = x, other, 4 * distance
    return None
