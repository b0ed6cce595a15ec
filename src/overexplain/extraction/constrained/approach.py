"""Approach, then ask: a service that keeps its answers inside a box is exact as soon as the plane is nearer than the box's sides.

If x and y have different labels, the nearest answer to x is no farther away than y, so no feature of it moves by more than
N(x − y)·N*(e_i). Labels bring x and y together until that is less than the room that x has: then no side of the box is in the way,
and the theorems for services without a box hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from overexplain.errors import BrokenPromise, ExtractionFailed, NoExplanation
from overexplain.extraction.box import Box
from overexplain.extraction.confirmation import by_cone, by_scatter
from overexplain.extraction.constrained.bracket import Bracket, first_bracket, narrowed
from overexplain.extraction.explained import extract_by_cone
from overexplain.extraction.first import first_answer
from overexplain.extraction.job import Job
from overexplain.extraction.points import extract_by_points
from overexplain.extraction.precision import NEAR
from overexplain.extraction.result import Extraction, Spent
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.lp import l2
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER, Norm

SHARES = (1 / 8, 1 / 64, 1 / 512)
"""How near the plane is, as a share of the room to the sides: the later ones if the service's own box is narrower than known."""

DEPTHS = (0.5, 0.5, 0.8, 0.8, 0.9, 0.95, 0.98, 0.98, 0.99, 0.99)
"""How much of the box, around its middle, points of both labels are looked for in: the deeper inside the better."""

CORNERS = (0.8, 0.95)
"""How far into the corner that an answer points to the other side is looked for."""

BEYOND = (0.01, 0.1, 1.0)
"""How far beyond an answer, in steps, the other side is looked for where the plane cuts off a corner only."""

NEAREST = 10 * NEAR
"""An approach this near, relative to the size of the points, would show rounding instead of the model."""

USUAL_LABELS = 10
"""About so many labels find two points of different labels and bring them near enough."""


@dataclass(frozen=True, eq=False)
class Near:
    """A point next to the plane, its label, how near the plane is for sure, and the box in which every question is as good."""

    start: FloatArray
    label: int
    gap: float
    where: Box


def approach(job: Job, norm: Norm = l2, pair: Bracket | None = None) -> Near:
    """A start so near the plane that the nearest answer is not stopped by a side of the box."""
    return _near(job, norm, _approached(job, norm, pair or _both_labels(job), SHARES[0]))


def extract_by_approach(job: Job, mechanism: Mechanism, pair: Bracket | None = None) -> Extraction:
    """The hyperplane of a service that keeps exact answers inside a box: labels lead to the plane, a few answers do the rest."""
    session = job.session
    if not session.can_label:
        raise ExtractionFailed("this service gives no labels: nothing shows where the plane passes through the box")
    if not mechanism.is_plain:
        raise ExtractionFailed(
            f"answers stay away from the plane (radius {mechanism.radius}), so no start is near them: the box cannot be avoided"
        )
    norm = l2 if mechanism.distance is None else mechanism.distance
    session.require(
        predict_approach(session.dimension, mechanism).explanations + 2, "approaching the plane", whole=False
    )
    bracket = pair or _both_labels(job)
    blocked: BrokenPromise | NoExplanation | None = None
    for share in SHARES:
        try:
            bracket = _approached(job, norm, bracket, share)
            return _from_nearby(job, mechanism, _near(job, norm, bracket))
        except (BrokenPromise, NoExplanation) as failure:  # a side of the service's own may still be in the way
            blocked = failure
        except ExtractionFailed as failure:
            if blocked is None:
                raise
            raise blocked from failure  # what was refuted says more than that there is no way to come nearer
    assert blocked is not None
    raise blocked


def predict_approach(p: int, mechanism: Mechanism) -> Spent:
    """About what `extract_by_approach` will spend; dim K, which ties make smaller, is taken at its largest.

    >>> predict_approach(30, Mechanism("l2")), predict_approach(30, Mechanism("linf"))
    (Spent(explanations=2, labels=10), Spent(explanations=30, labels=10))
    """
    if mechanism.distance is None:
        return Spent(p + 1, USUAL_LABELS)
    return Spent(2 if mechanism.distance.is_smooth else max(2, p), USUAL_LABELS)


def _from_nearby(job: Job, mechanism: Mechanism, near: Near) -> Extraction:
    """The exact method from here."""
    session, before = job.session, job.session.spent.explanations
    if mechanism.distance is None:
        found = extract_by_points(session, mechanism, near.start, near.where, False, job.rng, verify=True)
        found = by_scatter(job, found) if session.confirms else found
    elif session.confirms:
        here = replace(job, start=near.start, where=near.where, orient=False)
        found = by_cone(here, mechanism, mechanism.distance, job.accuracy)
    else:
        norm = mechanism.distance
        first = first_answer(session, mechanism, norm, near.start, job.accuracy, near.where, job.rng)
        found = extract_by_cone(session, mechanism, norm, first, near.where, False)
        if session.spent.explanations - before == 1:  # a single answer contradicts nothing, also if a side cut it off
            _confirm(job, norm, near, first.point, found)
    plane = found.hyperplane
    if near.label != (YES if plane.margin(near.start) > 0 else NO):
        plane = plane.flipped()
    unchecked = "declared mechanism not checked"
    return replace(
        found,
        hyperplane=plane,
        spent=session.spent,
        method=f"approach, then ask; {found.method}",
        assumptions=(
            *(note for note in found.assumptions if not note.startswith(unchecked)),
            f"no side of the service's box lies within {near.gap:.2g} of the start, in the distance",
        ),
        oriented=True,
    )


def _confirm(job: Job, norm: Norm, near: Near, answered: FloatArray, found: Extraction) -> None:
    """One more answer, from as near and if possible from the other side, must lie on the plane and be the nearest point of it."""
    question, answer = _one_more(job, norm, near, answered, found)
    normal, offset = found.hyperplane.normal, found.hyperplane.offset
    size = float(np.abs(normal) @ np.abs(answer)) + abs(offset)
    if found.error_bound is None or found.offset_bound is None:
        allowed = 1e-8 * size
    else:
        turned = math.tan(min(found.error_bound, 1.5)) * float(l2(normal)) * float(l2(answer))
        allowed = 2 * (turned + found.offset_bound + FLOAT64_ANSWER * size)
    miss = abs(float(normal @ answer) - offset)
    longer = float(norm(answer - question)) - abs(float(normal @ question) - offset) / float(norm.dual(normal))
    if max(miss, longer) > allowed:
        raise BrokenPromise(
            f"the answer in row {job.session.row} does not fit the model of the one before it: {miss:.3g} off its "
            f"plane, {longer:.3g} longer than the nearest (allowed: {allowed:.1g}). A side of the service's own box may be in the "
            "way, or the distance is another one",
            fact="OnPlane" if miss > allowed else "Steepest",
            excess=max(miss, longer),
            row=job.session.row,
        )


def _one_more(
    job: Job, norm: Norm, near: Near, answered: FloatArray, found: Extraction
) -> tuple[FloatArray, FloatArray]:
    """A question beyond the plane and its answer; for a service that explains one side only, on the side that was answered."""
    p = len(near.start)
    plane = found.hyperplane
    aside = job.rng.normal(size=p) * norm.dual.units(p)
    aside *= near.gap / float(norm(aside)) * (1.0 if plane.margin(answered + aside) > plane.margin(answered) else -1.0)
    away = aside * (1.0 if plane.margin(answered) > 0 else -1.0)  # from the plane
    beyond = answered - 2 * plane.margin(answered) / float(plane.normal @ plane.normal) * plane.normal - away / 2
    for question in map(near.where.clip, (beyond, answered + away)):
        answer = job.session.explain(question)
        if answer is not None:
            return question, answer
    raise NoExplanation(
        "the service explained a start next to the plane, but no point beside it: nothing confirms its model"
    )


def _both_labels(job: Job) -> Bracket:
    """Two points of different labels, as deep inside the box as possible."""
    bracket = first_bracket(job.session, _inner_points(job))
    if bracket is None and job.session.can_explain:
        bracket = _beyond_an_answer(job)
    if bracket is None:
        raise ExtractionFailed(
            f"all {job.session.spent.labels} labels asked inside the box are the same: the plane passes near a corner only, or not "
            "at all; widen the bounds, or give a start on the other side"
        )
    return bracket


def _inner_points(job: Job) -> list[FloatArray]:
    """The start, then opposite pairs around the middle of the box, each pair farther out."""
    middle, half = _frame(job)
    points = [job.start]
    for number, depth in enumerate(DEPTHS):
        # Where a side is open the search goes ever farther.
        spread = np.where(np.isfinite(half), depth * half, (np.abs(middle) + 1.0) * 4.0**number)
        aside = spread * job.rng.uniform(-1.0, 1.0, len(middle))
        points += [job.where.clip(middle + aside), job.where.clip(middle - aside)]
    return points


def _frame(job: Job) -> tuple[FloatArray, FloatArray]:
    """The middle of where questions may lie and half its sides (infinite where it is open)."""
    where, p = job.where, len(job.start)
    if not isinstance(where, Box):
        return where.centre(), np.full(p, where.radius / math.sqrt(p))
    closed = np.isfinite(where.low) & np.isfinite(where.high)
    with np.errstate(invalid="ignore"):
        middle = np.where(closed, where.low + (where.high - where.low) / 2, job.start)
        half = np.where(closed, (where.high - where.low) / 2, np.inf)
    return middle, half


def _beyond_an_answer(job: Job) -> Bracket | None:
    """The start and a point beyond its answer: where the plane cuts off a corner only, the service itself shows which one."""
    answer = job.session.attempt(job.start).answer
    if answer is None:
        return None
    own = job.session.label(job.start)
    middle, half = _frame(job)
    toward = np.sign(answer - job.start)
    step = answer - job.start
    # Into the corner that the answer points to, but well inside the box; else past the answer, which may lie on a side.
    corners = [
        np.where(np.isfinite(half), middle + depth * np.where(np.isfinite(half), half, 0.0) * toward, answer + step)
        for depth in CORNERS
    ]
    for x in map(job.where.clip, [*corners, *(answer + beyond * step for beyond in BEYOND)]):
        if job.session.label(x) != own:
            return Bracket.of(job.start, own, x)
    return None


def _approached(job: Job, norm: Norm, bracket: Bracket, share: float) -> Bracket:
    """The bracket narrowed until the plane is nearer, by that share, than every side of the box."""
    p = len(job.start)
    reach, widest = norm.dual.units(p), float(norm(bracket.yes - bracket.no))

    def is_enough(current: Bracket) -> bool:
        gap = float(norm(current.yes - current.no))
        size = float(norm(current.yes)) + float(norm(current.no))
        if gap < NEAREST * size:
            raise ExtractionFailed(
                f"the plane passes only near a side or a corner of the box: even {gap:.2g} away from it a side is in the way. "
                "Widen the bounds, or give a start= from which the plane is reached well inside the box"
            )
        room = max(float((_rooms(job, end) / reach).min()) for end in (current.no, current.yes))
        return gap <= share * min(room, widest)

    return narrowed(job.session, bracket, is_enough)


def _rooms(job: Job, x: FloatArray) -> FloatArray:
    """How far each feature can go either way, all of them at once."""
    where = job.where
    if isinstance(where, Box):
        return np.minimum(x - where.low, where.high - x)
    return np.full(len(x), (where.radius - float(np.linalg.norm(x - where.middle))) / math.sqrt(len(x)))


def _near(job: Job, norm: Norm, bracket: Bracket) -> Near:
    """The end of the bracket that is surely not much nearer to the plane than the bracket is wide."""
    gap = float(norm(bracket.yes - bracket.no))
    label = job.session.label(bracket.middle)
    if _rooms(job, bracket.end(label)).min() <= 0:  # on a side of the box; the other end is not
        label = -label
    start = bracket.end(label)
    # Two gaps either way: extract_by_cone steps back by one, and to the side by one.
    half = np.minimum(2 * gap * norm.dual.units(len(start)), np.maximum(_rooms(job, start), 0.0))
    return Near(start, label, gap, Box(start - half, start + half))
