"""The learner of Lowd and Meek (2005) for continuous features: a published way to rebuild a linear model from labels.

Two points that differ in one feature f and in their label (a *sign witness*) are found between a Yes and a No. From a point one
step of f before the plane, how far one has to go along another feature i to cross it is step·w_f / w_i: one line search for
each feature.
"""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import ExtractionFailed
from overexplain.extraction.box import Ball, Where
from overexplain.extraction.labels.line import Line
from overexplain.extraction.labels.pairs import Pair, find_pair, scales
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane

FIRST_REACH = 0.01
"""The first question of a line search, in steps."""

NEARER = 64.0
"""Where limits leave no room to cross the plane along a feature, the search starts this many times nearer to it."""


def extract_by_lowd_meek(
    session: Session,
    accuracy: float,
    start: FloatArray,
    where: Where,
    rng: np.random.Generator,
    pair: Pair | None = None,
) -> Extraction:
    """The hyperplane by one line search for each feature, each to within a relative error of `accuracy`; no bound is proved."""
    p, scale = session.dimension, scales(where, start)
    if isinstance(where, Ball):  # points between the middle and another lie inside, feature by feature
        pair, start = None, where.centre()
    elif pair is not None and not (where.contains(pair[0]) and where.contains(pair[1])):
        pair = None
    no, yes = find_pair(session, where, start, rng)[0] if pair is None else pair
    no, yes, feature = _sign_witness(session, no, yes)
    line = Line.through(session, where, scale, no, yes)
    sign = float(np.sign(line.unit[feature]))
    axis = np.zeros(p)
    axis[feature] = sign * scale[feature]
    step = min(1.0, where.room(no, -axis) / 2, line.width if p > 1 and not where.is_everything else math.inf)
    step = step if step > 0 else line.width
    line.narrow(step * accuracy / 4)
    weights = np.zeros(p)
    weights[feature] = sign
    for i in range(p):
        if i != feature:
            weights[i] = _weight(line, axis, i, step, accuracy)
    normal = weights / scale
    normal /= np.linalg.norm(normal)
    return Extraction(
        hyperplane=Hyperplane(normal, float(normal @ line.point(line.middle))),
        spent=session.spent,
        log=session.log,
        method="labels only: Lowd and Meek's line searches",
        assumptions=(
            "all labels are those of one hyperplane",
            "no bound is proved: each weight is searched for to within a relative error of the accuracy, and features that "
            "do not cross the plane within reach are taken to have weight 0",
        ),
        exact=False,
        error_bound=None,
        offset_bound=None,
        oriented=True,
        radius=None,
        radius_bound=None,
        unidentified=np.zeros((0, p)),
    )


def _sign_witness(session: Session, no: FloatArray, yes: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """A No and a Yes that differ in one feature only, and the feature: the Yes is turned into the No one by one."""
    before = yes.copy()
    for feature in np.flatnonzero(no != yes).tolist():
        after = before.copy()
        after[feature] = no[feature]
        if session.label(after) == NO:
            return after, before, feature
        before = after
    raise ExtractionFailed(
        "the label of a point changed when it was asked again: no feature decides between Yes and No"
    )


def _weight(line: Line, axis: FloatArray, i: int, step: float, accuracy: float) -> float:
    """w_i / |w_f|, in y; 0 if the plane is not crossed along feature i within reach."""
    session, where = line.session, line.where
    across = np.zeros(len(axis))
    across[i] = line.scale[i]
    while step > 8 * line.finest:
        line.narrow(step * accuracy / 4)
        base = where.clip(line.point(line.low.place) - step * axis)
        far = step * 4 * math.sqrt(len(axis)) / accuracy
        ends = [where.clip(base + s * min(far, where.room(base, s * across)) * across) for s in (1.0, -1.0)]
        labels = [session.label(end) for end in ends]
        if labels[0] != labels[1]:
            sign = 1.0 if labels[0] == YES else -1.0
            most = min(far, where.room(base, sign * across))
            return sign * step / _crossing(session, where, base, sign * across, FIRST_REACH * step, most, accuracy)
        if labels[0] == YES or math.isinf(where.room(base, across)):
            return 0.0
        step /= NEARER
    return 0.0


def _crossing(
    session: Session,
    where: Where,
    base: FloatArray,
    across: FloatArray,
    first: float,
    most: float,
    accuracy: float,
) -> float:
    """How far from `base` (a No) along `across` the labels turn to Yes: doubled, then halved to a relative error."""
    low, high = 0.0, min(first, most)
    while high < most and session.label(where.clip(base + high * across)) == NO:
        low, high = high, min(2 * high, most)
    while high - low > 2 * accuracy * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if session.label(where.clip(base + middle * across)) == YES:
            high = middle
        else:
            low = middle
    return (low + high) / 2
