"""What questions are usual: the spread of the features, a boundary to measure margins from, and every row held against both."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.auditing.monitoring.rank import Scale
from overexplain.auditing.monitoring.rows import Rows
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import Hyperplane

PER_CLIENT, FEW = 20, 2_000
"""Rows of one client that may stand for all (whoever asks most must not decide what is usual), unless they make too few."""

MOST = 20_000
"""Rows that stand for all."""

GRID = 1e-4
"""Points that agree in all features to within about this share of the features' spread count as the same question."""


def population(rows: Rows, rng: np.random.Generator) -> IntArray:
    """Rows that stand for all: the first few of every client, at most `MOST` of them drawn at random; in order."""
    order, starts = rows.by_client()
    place = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
    first = np.sort(order[place < max(PER_CLIENT, FEW // len(rows.clients))])
    return first if len(first) <= MOST else np.sort(rng.choice(first, MOST, replace=False))


def scale_of(points: FloatArray) -> Scale:
    """Middle and spread of every feature: median and quartiles, so that a few far-out points change neither."""
    low, middle, high = np.quantile(points, (0.25, 0.5, 0.75), axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        spread, rest = (high - low) / 1.349, points.std(axis=0)
    spread = np.where(spread > 0, spread, rest)  # a column that is nearly always the same, as one-hot columns are
    usable = np.isfinite(spread) & (spread > 0)
    return Scale(middle, np.where(usable, spread, np.where(middle != 0, np.abs(middle), 1.0)))


def fitted(points: FloatArray, labels: IntArray, scale: Scale) -> Hyperplane | None:
    """A boundary between the labelled points by logistic regression; None if only one label occurs, or points are too far off."""
    points = scale(points)
    if len(np.unique(labels)) < 2 or not np.isfinite(points).all():
        return None
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged is good enough: it only says what is near and what is far
        found = LogisticRegression(C=1e4, max_iter=300).fit(points, labels)
    normal = found.coef_[0] / scale.spread
    if not (np.isfinite(normal).all() and normal.any()):
        return None
    return Hyperplane(normal, float(normal @ scale.middle - found.intercept_[0]))


@final
@dataclass(frozen=True, eq=False)
class Measured:
    """A few numbers of every row.

    margins    distance from the boundary in units of the features' spread; NaN if no boundary is known
    spreads    how far its farthest feature lies from the middle, in spreads
    questions  a number for every point: equal if all floats are equal
    near       a number for every point and for every explanation: equal if they agree on a grid
    answers    (0 where there is no explanation)
    """

    margins: FloatArray
    spreads: FloatArray
    questions: IntArray
    near: IntArray
    answers: IntArray


def measured(rows: Rows, scale: Scale, boundary: Hyperplane | None) -> Measured:
    """Every row, measured."""
    count = len(rows)
    margins, spreads = np.full(count, np.nan), np.empty(count)
    questions, near, answers = (np.zeros(count, dtype=np.int64) for _ in range(3))
    mixing = np.random.default_rng(2026).integers(1, 2**63 - 1, size=(2, rows.dimension), dtype=np.int64) | 1
    for chunk in rows.chunks():
        points = rows.points(chunk)
        scaled = scale(points)
        spreads[chunk] = np.abs(scaled).max(axis=1)
        if boundary is not None:
            margins[chunk] = signed_margins(boundary, scale, points)
        questions[chunk] = _hash((points + 0.0).view(np.int64), mixing)
        near[chunk] = _hash(_cells(scaled), mixing)
        there = rows.explained[chunk]
        if there.any():
            answers[chunk[there]] = _hash(_cells(scale(rows.explanations(chunk[there]))), mixing)
    return Measured(np.abs(margins), spreads, questions, near, answers)


def signed_margins(boundary: Hyperplane, scale: Scale, points: FloatArray) -> FloatArray:
    """How far points lie on the Yes side, in units of the features' spread."""
    normal = boundary.normal * scale.spread
    size = np.abs(normal).max()
    return np.asarray(boundary.margin(points) / size / np.linalg.norm(normal / size))


def _cells(scaled: FloatArray) -> IntArray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.clip(np.floor(scaled / GRID + 0.5), -(2.0**62), 2.0**62).astype(np.int64)


def _hash(numbers: IntArray, mixing: IntArray) -> IntArray:
    """64 bits a row; never 0, which means nothing."""
    with np.errstate(over="ignore"):
        mixed = (numbers ^ (numbers >> 29)) * mixing[0]
        mixed = ((mixed ^ (mixed >> 32)) * mixing[1]).sum(axis=1)
        mixed ^= mixed >> 31
    return np.where(mixed == 0, 1, mixed)


def first_time(numbers: IntArray) -> IntArray:
    """Positions at which a number occurs for the first time, in order."""
    return np.sort(np.unique(numbers, return_index=True)[1])
