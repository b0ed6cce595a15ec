"""Labels only: threshold bisection coded by quantiles, with a proof of how close the normal is.

A pair of different labels gives a line that the plane crosses and a guess u of the normal. Every further label bisects one
coordinate r_i of normal/normal·u in a frame around u (`thresholds`), first by quantiles (`coarse`), then the widest interval
first. The cell of all models that fit is a box, and the angle from its centre to any of them at most

    arcsin( λ ‖(ω_i h_i)‖ / ‖normal‖ ),      h_i half of the widths, λ = ω_i = 1 where all features have one scale.

Three modes treat the offset differently: *anchor* narrows the bracket on the line, and carries what is left of it as slack;
*lift* makes the offset one of the coordinates; *far* asks so far away that the offset does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.extraction.box import Ball, Where
from overexplain.extraction.labels.coarse import Misaligned, coarse_pass
from overexplain.extraction.labels.doubts import confirm, doubt_coordinates, doubt_line
from overexplain.extraction.labels.frame import Frame
from overexplain.extraction.labels.line import Line, length
from overexplain.extraction.labels.pairs import Pair, bracket_along, find_pair, scales
from overexplain.extraction.labels.thresholds import INSIDE, Known, Thresholds
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.norm import UNIT_ROUNDOFF

MODES = ("anchor", "lift", "far")

MANY_FEATURES = 100
"""From so many features on, lifting saves labels."""

TURNS = 4
"""A guess along the plane is replaced by a better one this often."""

ALIGNED = 0.995
"""What the rounding of widths to one grid leaves of the square of the angle."""

ONE_LABEL_WORTH = 0.3
"""A label that leaves more than this share of an interval open by slack is worth less than narrowing the slack first."""

USELESS = 0.7
"""A label that leaves this share of an interval open is not asked."""

STEEP = 16.0
"""A lifted frame has room for coordinates this many times as large as expected; for larger ones the offset is slack again."""


@dataclass(frozen=True)
class Rough:
    """A guess of the normal, pointing to Yes, and about how many radians it may be off."""

    normal: FloatArray
    angle: float


@dataclass(frozen=True)
class _Plan:
    """How the box of coordinates is to be reached: `sine` of the angle wanted, `prior` size of the coordinates."""

    mode: str
    accuracy: float
    sine: float
    prior: float
    reach: float


def extract_by_labels(
    session: Session,
    accuracy: float,
    start: FloatArray,
    where: Where,
    rng: np.random.Generator,
    mode: str | None = None,
    pair: Pair | None = None,
    rough: Rough | None = None,
) -> Extraction:
    """The hyperplane behind a service that only labels, its normal within `accuracy` (radians) if float64 allows.

    mode    "anchor", "lift", "far" (needs unlimited inputs); None: "lift" from 100 features on, else "anchor"
    pair    a point labelled No and one labelled Yes, if known
    rough   a guess of the normal: p log2(angle/accuracy) + 2p labels and a few; a wrong one costs labels, nothing else
    """
    mode = _checked_mode(mode, session.dimension, where)
    if pair is not None and not (where.contains(pair[0]) and where.contains(pair[1]) and (pair[0] != pair[1]).any()):
        pair = None
    line, prior = _first_line(session, accuracy, start, where, rng, pair, rough)
    if session.dimension == 1:
        return _one_feature(line, accuracy)
    for turn in range(TURNS):
        reach = math.inf if _is_limited(where) else max(line.width, 2 * math.sqrt(session.dimension))
        plan = _Plan(mode, accuracy, math.sin(min(accuracy, math.pi / 2)), prior, reach)
        try:
            return _extract_along(line, plan, rng, last=turn == TURNS - 1)
        except _Turned as turned:
            better = _line_across(line, turned.axis)
            line = better or _first_line(session, accuracy, start, where, rng, None, None)[0]
            prior = 1.0
    raise AssertionError("the last turn takes whatever comes")


class _Turned(Exception):
    """The guess points along the plane; `axis` (in y) does not."""

    def __init__(self, axis: FloatArray) -> None:
        super().__init__()
        self.axis = axis


def _checked_mode(mode: str | None, p: int, where: Where) -> str:
    if mode is None:
        return "lift" if p >= MANY_FEATURES else "anchor"
    if mode not in MODES:
        raise InvalidInput(f"unknown mode {mode!r} of labels only; known are {', '.join(MODES)}")
    if mode == "far" and not where.is_everything:
        raise InvalidInput('mode "far" asks far away from all data: it takes no bounds; use "anchor" or "lift"')
    return mode


def _is_limited(where: Where) -> bool:
    return isinstance(where, Ball) or bool(np.isfinite([where.low, where.high]).all())


def _first_line(
    session: Session,
    accuracy: float,
    start: FloatArray,
    where: Where,
    rng: np.random.Generator,
    pair: Pair | None,
    rough: Rough | None,
) -> tuple[Line, float]:
    """A line that the plane crosses, along the guess if there is one, and how large coordinates are expected to be."""
    scale = scales(where, start)
    if rough is not None and np.linalg.norm(scale * rough.normal) > 0:
        unit = scale * rough.normal / np.abs(scale * rough.normal).max()
        unit = unit / np.linalg.norm(unit)
        base = start if pair is None else where.clip(pair[0] / 2 + pair[1] / 2)
        gap = 2 * math.sqrt(len(start)) if pair is None else float(np.linalg.norm((pair[1] - pair[0]) / scale))
        if pair is None and isinstance(where, Ball):
            gap = where.radius / 2
        line = bracket_along(session, where, scale, base, unit, gap)
        if line is not None:
            root = math.sqrt(len(start))
            return line, max(math.tan(min(abs(rough.angle), 1.4)), accuracy / 2) / root
    rows: tuple[int | None, int | None] = (None, None)
    if pair is None:
        pair, rows = find_pair(session, where, start, rng)
    return Line.through(session, where, scale, *pair, rows), 1.0


def _line_across(line: Line, axis: FloatArray) -> Line | None:
    """A line along `axis` through the bracket, if its ends have different labels."""
    ends = []
    for sign in (-1.0, 1.0):
        step = sign * line.scale * axis
        distance = min(INSIDE * line.where.room(line.origin, step), line.first_length)
        x = line.where.clip(line.origin + distance * step)
        ends.append((line.session.label(x), x, line.session.row))
    (label, *_), (other, *_) = ends
    if label == other:
        return None
    (_, no, no_row), (_, yes, yes_row) = sorted(ends, key=lambda end: end[0])
    return Line.through(line.session, line.where, line.scale, no, yes, (no_row, yes_row))


def _extract_along(line: Line, plan: _Plan, rng: np.random.Generator, last: bool) -> Extraction:
    """The model, by coordinates around the line's direction."""
    thresholds, sine = _prepared(line, plan)
    try:
        known = _narrowed(thresholds, sine, plan, rng, last)
    except BudgetExhausted as end:
        end.found = _result(thresholds, thresholds.known(), replace(plan, accuracy=math.pi))  # as good as it got
        raise
    return _result(thresholds, known, plan)


def _narrowed(thresholds: Thresholds, sine: float, plan: _Plan, rng: np.random.Generator, last: bool) -> Known:
    """What is known of the coordinates once the angle is proved, and what looked odd was asked again."""
    frame, line = thresholds.frame, thresholds.line
    try:
        coarse_pass(thresholds, sine, plan.prior)
    except Misaligned as steep:
        if not last:
            axis = frame.column(steep.coordinate)
            raise _Turned(axis / np.linalg.norm(axis)) from None
        # Nothing is known then, and the result says so.
    if not frame.lifted and thresholds.radius is None:
        _narrow_for_slack(thresholds, plan)
    known = _fine_pass(thresholds, plan)
    doubt_line(line)
    if math.isfinite(known.length):
        doubt_coordinates(thresholds, known)
        confirm(thresholds, known, rng)
    return known


def _prepared(line: Line, plan: _Plan) -> tuple[Thresholds, float]:
    """The thresholds to ask about, with the line's bracket as narrow as the coarse pass needs it, and the sine to plan for."""
    p = len(line.unit)
    root, n = math.sqrt(ALIGNED), p - 1
    if plan.mode == "far":
        radius = 5 * line.first_length * p**1.5 / math.sin(min(plan.accuracy, 0.5))
        return Thresholds(line, Frame(line.unit, line.scale), math.inf, radius), plan.sine * root
    plain = Frame(line.unit, line.scale)
    room = _typical_room(Thresholds(line, plain, plan.reach))
    if (
        plan.mode == "lift" and np.ptp(line.scale) == 0
    ):  # with scales of their own, coordinates weigh too differently to mix
        steep = math.hypot(1.0, STEEP * plan.prior)
        for _ in range(3):
            free = min(_free(line), plan.reach)
            if free < room / 20:
                break
            radius = free / steep
            line.narrow(4 * plan.prior * radius / math.sqrt(p))
            line.recentre()
            if min(_free(line), plan.reach) >= free / 1.5:
                return Thresholds(line, Frame(line.unit, line.scale, lifted=True), plan.reach, radius), plan.sine * root
    line.narrow(0.008 * room * min(1.0, plan.prior))
    line.recentre()
    reserve = 1 - 1.2 / n if n > 2 else math.sqrt(0.5)
    return Thresholds(line, plain, plan.reach), plan.sine * root * reserve


def _typical_room(thresholds: Thresholds) -> float:
    """The median room along a few axes of the frame."""
    some = range(0, thresholds.frame.size, max(1, thresholds.frame.size // 8))
    return float(np.median([abs(thresholds.span(thresholds.frame.column(i))) for i in some]))


def _free(line: Line) -> float:
    """The radius, in y, of the largest ball around the origin in which questions may be asked."""
    where = line.where
    if isinstance(where, Ball):
        return INSIDE * (where.radius - float(np.linalg.norm(line.origin - where.middle)))
    return INSIDE * float(np.min(np.minimum(where.high - line.origin, line.origin - where.low) / line.scale))


def _narrow_for_slack(thresholds: Thresholds, plan: _Plan) -> None:
    """Narrow the bracket until what it leaves open is 1/n of the angle: the cheapest share, n log2(1 + κ) + log2(1/κ)."""
    known, frame = thresholds.known(), thresholds.frame
    if math.isfinite(known.length):
        k = np.maximum(np.abs(thresholds.low.k), np.abs(thresholds.high.k))
        size = float(np.linalg.norm(frame.normal(known.centre) / frame.scale))
        per_width = frame.stretch * float(np.linalg.norm(frame.weights * k)) / 2
        thresholds.line.narrow(plan.sine * size / (frame.size * per_width))


def _fine_pass(thresholds: Thresholds, plan: _Plan) -> Known:
    """Bisect the interval that counts most until the angle is proved, or float64 has no more to say."""
    frame, line = thresholds.frame, thresholds.line
    is_open = np.ones(frame.size, dtype=bool)
    asked, before = 0, math.inf
    while True:
        known = thresholds.known()
        is_open[asked] &= bool(known.half[asked] < 0.95 * before)  # else float64 is at its end here: no endless loop
        before = math.inf
        proved = angle_bound(frame, known) if math.isfinite(known.length) else math.pi
        line.session.bound = proved
        if not math.isfinite(known.length) or proved <= plan.accuracy or not is_open.any():
            return known
        i = int(np.argmax(_urgency(thresholds, known) * is_open))
        s = known.s_low, known.s_high
        tau, half = float(known.centre[i]), float(known.half[i])
        aim = thresholds.aim(i, tau, s)
        slack = aim.by_s + aim.by_noise * known.length
        if slack > ONE_LABEL_WORTH * half and aim.by_s > 0:
            width = min((s[1] - s[0]) * half / (50 * aim.by_s), line.width / 2)
            if line.width > line.finest and width >= line.finest / 2:
                line.narrow(width)
                continue
        if slack > USELESS * half or not known.low[i] < tau < known.high[i]:
            is_open[i] = False
            continue
        thresholds.tell(i, thresholds.ask(aim))
        asked, before = i, half


def _urgency(thresholds: Thresholds, known: Known) -> FloatArray:
    """What each interval counts in the angle; coordinates that the offset blurs wait until the others have pinned it down."""
    urgency = thresholds.frame.weights * known.half
    if thresholds.frame.lifted and thresholds.radius is not None:
        k = np.maximum(np.abs(thresholds.low.k), np.abs(thresholds.high.k))
        urgency = urgency / np.maximum(1.0, 4 * k * thresholds.radius)
    return np.asarray(urgency)


def angle_bound(frame: Frame, known: Known) -> float:
    """Bound on the angle between the centre of the box and any model in it, in x; π if the box is too large to tell."""
    centre = known.centre
    size = length(frame.normal(centre) / frame.scale)
    moved = frame.stretch * length(frame.weights * known.half) + frame.rounding(centre)
    return math.asin(moved / size) * (1 + 8 * UNIT_ROUNDOFF) + 8 * UNIT_ROUNDOFF if moved < size else math.pi


def _result(thresholds: Thresholds, known: Known, plan: _Plan) -> Extraction:
    frame, line = thresholds.frame, thresholds.line
    p = len(line.unit)
    certain = math.isfinite(known.length)
    centre = known.centre if certain else np.zeros(frame.size)
    normal = frame.normal(centre) / frame.scale
    normal = normal / np.abs(normal).max()
    normal /= np.linalg.norm(normal)
    angle = angle_bound(frame, known) if certain else math.pi
    half = (known.s_high - known.s_low) / 2
    on_plane = line.origin + (known.s_low + known.s_high) / 2 * (line.scale * line.unit)
    step = float(np.linalg.norm(line.scale * line.unit))
    size = float(np.linalg.norm(on_plane)) + half * step
    slope = abs(float(normal @ (line.scale * line.unit)))
    offset_bound = angle * size + slope * half + 4 * (p + 16) * UNIT_ROUNDOFF * (size + step * (line.reach + half))
    used = "far" if plan.mode == "far" else "lift" if frame.lifted else "anchor"
    return _extraction(
        line,
        Hyperplane(normal, float(normal @ on_plane)),
        used,
        angle,
        offset_bound if certain else None,
        plan.accuracy,
    )


def _one_feature(line: Line, accuracy: float) -> Extraction:
    """One feature: the normal is ±1, and only the offset has to be found."""
    line.narrow(accuracy * line.first_length)
    doubt_line(line)
    sign, scale = float(np.sign(line.unit[0])), float(line.scale[0])
    place = float(line.point(line.middle)[0])
    certain = line.first_length > 2 * line.first_noise
    bound = scale * (line.width / 2 + 2 * line.noise) + 8 * UNIT_ROUNDOFF * abs(place)
    angle = 8 * UNIT_ROUNDOFF if certain else math.pi
    plane = Hyperplane(np.array([sign]), sign * place)
    return _extraction(line, plane, "anchor", angle, bound if certain else None, accuracy)


def _extraction(
    line: Line, plane: Hyperplane, used: str, angle: float, offset_bound: float | None, accuracy: float
) -> Extraction:
    notes = [
        "all labels are those of one hyperplane",
        "labels are computed in float64: within (p + 4)·2⁻⁵³ (|normal|·|x| + |offset|) of the plane they may be wrong",
    ]
    if used == "far":
        notes.append("asked far away: the offset is only known to about half of the distance of the first two labels")
    if angle > accuracy:
        notes.append(
            f"float64 has too few digits for an accuracy of {accuracy:.3g} here; the bound is what could be proved"
        )
    return Extraction(
        hyperplane=plane,
        spent=line.session.spent,
        log=line.session.log,
        method=f"labels only: quantile-coded threshold bisection ({used})",
        assumptions=tuple(notes),
        exact=False,
        error_bound=angle,
        offset_bound=offset_bound,
        oriented=True,
        radius=None,
        radius_bound=None,
        unidentified=np.zeros((0, plane.dimension)),
        premise="every label is right but for rounding",
    )
