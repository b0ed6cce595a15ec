"""Confirmation: one more answer, and labels beside the plane, from a service that may not keep to its terms.

A theorem for optimal answers fits any answers it is given: as many as there are unknowns. Services that pass on what a solver
returns are optimal to 1e-9 or 1e-5, not to rounding, and may keep a margin that they do not declare. So the finished model has to
predict an answer that played no part in it, to a question on the other side of the plane, well away from the others: a wrong norm
and a solver's tolerance show in its length and direction, a margin in where it ends. What was seen, times a factor, is the
tolerance that the theorem is then applied with: to the same answers, which are not asked for again. Labels on both sides of the
plane show what answers from one side cannot: that they all stop at the same distance from it.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace

import numpy as np

from overexplain.errors import BrokenPromise, BudgetExhausted, ExtractionFailed
from overexplain.extraction.contradictions import next_to_the_start
from overexplain.extraction.explained import ONE_SIDED, UNCHECKED, extract_by_cone
from overexplain.extraction.first import First, first_answer
from overexplain.extraction.inexact.fitted import euclidean_stretch
from overexplain.extraction.job import Job
from overexplain.extraction.level import with_level
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER, SMALLEST, UNIT_ROUNDOFF, Norm
from overexplain.geometry.norms import l2

UNSEEN = 32.0
"""Answers that the model rests on may be so many times farther off than what was seen."""

RUNGS = (1e-9, 1e-7, 1e-5, 1e-3)
"""Tolerances to try, in steps of the first answer, where the answers fit no plane at all without one."""

COARSEST = 1e-2
"""A tolerance of more steps than this explains everything: what was seen is not the error of a solver."""

ROUNDS = 9
"""So often the theorem is applied to the same answers, with a larger tolerance each time."""

TRIES = 3
"""So many questions are asked for one more answer, if the service has none."""

FARTHER = 3.0
"""The distance of the answer that is held out, in distances of the first one."""

PLAIN = 4.0
"""Answers from the other side show a margin if they end so many times farther behind the plane than all else is off."""

ASIDE = 2.0
"""How far beside the plane labels are asked, in units of how far off it may be."""

LABEL_ROUNDING = 1e-11
"""How far beside the plane, relative to the size of the point, a label is more than rounding."""

MOST_LABELS = 120
"""More labels than this an offset in float64 never takes: half to bracket it, half to bisect."""


@dataclass(frozen=True)
class Seen:
    """How far answers lie from what the model found would have answered, in its distance.

    margin     how much farther behind the plane answers from the other side end, if that is what is wrong with them; else 0
    residual   the farthest that any answer is off otherwise
    across     an answer from the other side is among them
    size       the largest ‖x‖ + ‖x'‖
    """

    residual: float
    margin: float
    across: bool
    size: float


def residuals(
    plane: Hyperplane, norm: Norm, reach: float | None, points: FloatArray, answers: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """For a plane of dual length 1: how far each answer goes past the plane (minus `reach`), and how far it strays on the way.

    An optimal answer x' = x ± (|a·x − b| + reach)·v ends `reach` behind the plane, and its step is no longer than that:
    ‖w‖ = |a·w|. Under a smooth norm v is known, too. `reach` None: as far as most answers go.
    """
    steps = answers - points
    sides = np.sign(np.asarray(plane.margin(points)))
    past = -sides * np.asarray(plane.margin(answers))
    along = steps @ plane.normal
    astray = np.abs(np.asarray(norm(steps)) - np.abs(along))
    if norm.is_smooth:
        astray = np.maximum(astray, np.asarray(norm(steps - along[:, None] * norm.maximizer(plane.normal))))
    return past - (float(np.median(past)) if reach is None else reach), astray


@dataclass(eq=False)
class HeldOut:
    """Answers that play no part in the model they are held against. The job's start is a question that was answered."""

    job: Job
    norm: Norm
    points: list[FloatArray] = field(default_factory=list)
    answers: list[FloatArray] = field(default_factory=list)
    refused: list[FloatArray] = field(default_factory=list)

    def look(self, found: Extraction, terms: Mechanism) -> Seen | None:
        """What all answers so far, and one from the other side of this plane, show; None if the service had no more answer."""
        seen = self._seen(found.hyperplane, terms, enough=1)
        # One answer from the other side fits every plane of this normal, with some margin: a second one has to have the same.
        return seen if seen is None or seen.margin == 0 else self._seen(found.hyperplane, terms, enough=2)

    def _seen(self, plane: Hyperplane, terms: Mechanism, enough: int) -> Seen | None:
        for _ in range(enough - self._across(plane)):
            if self.job.session.can_pay(1):
                self._ask(plane)
        if not self.points:
            return None
        points, answers = self._rows()
        past, astray = residuals(plane, self.norm, _reach(terms, plane), points, answers)
        across = np.sign(plane.margin(points)) == -np.sign(plane.margin(self.job.start))
        margin = float(np.median(past[across])) if across.any() else 0.0
        apart = np.where(across, past - margin, past)
        rest = float(np.maximum(np.abs(apart), astray).max())
        size = float((np.asarray(self.norm(points)) + np.asarray(self.norm(answers))).max())
        if abs(margin) <= max(PLAIN * rest, _rounding(self.job, size)):
            margin, rest = 0.0, float(np.maximum(np.abs(past), astray).max())
        return Seen(rest, margin, bool(across.any()), size)

    def _across(self, plane: Hyperplane) -> int:
        """How many questions from the other side of this plane were asked."""
        side = np.sign(plane.margin(self.job.start))
        return sum(np.sign(plane.margin(x)) == -side for x in (*self.points, *self.refused))

    def _rows(self) -> tuple[FloatArray, FloatArray]:
        log = self.job.session.log
        if log is None:
            return np.array(self.points), np.array(self.answers)
        return log.points[log.explained], log.explanations[log.explained]

    def _ask(self, plane: Hyperplane) -> None:
        """One more answer: from the other side if the service explains it and the bounds allow, else from this one."""
        for _ in range(TRIES):
            x = self._question(plane, across=not self.refused)
            answer = self.job.session.explain(x)
            if answer is not None and not np.array_equal(answer, x):
                self.points.append(x)
                self.answers.append(answer)
                return
            self.refused.append(x)

    def _question(self, plane: Hyperplane, across: bool) -> FloatArray:
        """A point `FARTHER` times as far beyond the plane as the start is before it (or as far before it), and aside of it.

        A solver that is asked twice from the same distance makes the same error twice, which shows in neither.
        """
        job, norm, p = self.job, self.norm, self.job.session.dimension
        away = float(plane.margin(job.start))
        reach = max(abs(away), 1e-3 * float(norm(job.start))) or 1.0
        side = -1.0 if away > 0 else 1.0
        straight = norm.maximizer(plane.normal)
        aside = job.rng.uniform(0.5, 1.0, p) * job.rng.choice([-1.0, 1.0], p) * reach / norm.units(p)
        aside -= float(plane.normal @ aside) * straight  # along the plane
        ahead = (side * (abs(away) + FARTHER * reach) if across else (FARTHER - 1) * away) * straight
        for share in (1.0, 0.5, 0.25, 0.0) if across else ():
            x = job.where.clip(job.start + ahead + share * aside)
            if side * plane.margin(x) > 0:
                return x
        return job.where.clip(job.start + ahead + aside)


def _reach(terms: Mechanism, plane: Hyperplane) -> float | None:
    """How far behind the plane answers end by the terms: ρ‖a‖*; None if the radius is secret."""
    if terms.radius is None:
        return None
    return terms.radius * float(terms.robustness.dual(plane.normal)) if terms.robustness is not None else 0.0


def _rounding(job: Job, size: float) -> float:
    """How far off answers of this size may be by the rounding of their entries."""
    return (job.session.dimension + 16) * UNIT_ROUNDOFF * size


def by_cone(job: Job, terms: Mechanism, norm: Norm, accuracy: float) -> Extraction:
    """The model by Theorems A to C; confirmed, if the service is not one whose answers are known to keep to their terms."""
    if job.session.confirms:
        return _confirmed_by_cone(job, terms, norm, accuracy)
    first = first_answer(job.session, terms, norm, job.start, accuracy, job.where, job.rng)
    return extract_by_cone(job.session, terms, norm, first, job.where, job.orient)


def _confirmed_by_cone(job: Job, terms: Mechanism, norm: Norm, accuracy: float) -> Extraction:
    """The model with bounds that rest on what answers were seen to be.

    Raises BrokenPromise if they are not answers under the declared distance, whatever their tolerance or margin.
    """
    session, draws = job.session, copy.deepcopy(job.rng)
    cut_off = len(session.at_limit)
    held, here = HeldOut(job, norm), job
    tolerance, step = terms.tolerance, 0.0
    failure: BrokenPromise | None = None  # the first one says most
    usable: tuple[Extraction, Seen] | None = None  # found without a tolerance, from answers that are rounded
    with session.remembering():
        for _ in range(ROUNDS):
            current, needed = replace(terms, tolerance=tolerance), math.inf
            try:
                first = first_answer(session, current, norm, job.start, accuracy, job.where, copy.deepcopy(draws))
                step, first = max(first.distance, step), _doubted(norm, first)
                held.job = here = replace(job, start=first.point)  # the service may not explain the side of job.start
                found = extract_by_cone(session, current, norm, first, job.where, job.orient)
            except BrokenPromise as broken:
                failure = failure or broken
            except ExtractionFailed:
                if tolerance == terms.tolerance:
                    raise
                if usable is None:
                    break
                return _scaled(here, norm, terms, *usable)  # what the tolerance leaves open cannot be asked for here
            else:
                if len(session.at_limit) > cut_off:
                    return found  # not by this theorem: the caller knows what to do about limits
                try:
                    with session.confirming():
                        seen = held.look(found, current)
                except BudgetExhausted:
                    seen = None
                if seen is None:
                    return _unconfirmed(session, found)
                if _fits(found, terms, tolerance, seen):
                    return _paid(here, norm, found, terms, seen)
                needed = max(UNSEEN * max(seen.residual, -seen.margin), _rounding(job, seen.size))
                failure = failure or _misfit(norm, seen)
                if usable is None and needed <= UNSEEN * norm.answer_rounding * seen.size:
                    usable = found, seen
            session.repeat()
            if needed <= COARSEST * step:
                tolerance = 1.001 * needed
                continue
            rungs = [rung * step for rung in RUNGS if tolerance is None or rung * step > tolerance]
            if not rungs:
                break
            tolerance = rungs[0]
    assert failure is not None
    raise failure


def _doubted(norm: Norm, first: First) -> First:
    """The first answer, fixing entries of the normal only as well as an answer that is almost as near as the nearest can.

    ‖a‖* = 1, and a·w falls short of ‖w‖ by twice the tolerance at most. Under l1, where every entry that moved has |a_i| = 1, each
    may be smaller by that over |w_i|; under linf, where every entry with room left has a_i = 0, larger by that over its room.
    """
    cone, units = first.cone, norm.units(len(first.point))
    fixed = np.ones(len(units), dtype=bool)
    fixed[cone.open] = False
    if first.tolerance is None or cone.basis is not None or not np.isin(np.abs(cone.values / units), (0.0, 1.0)).all():
        return first
    moved = np.abs(first.answer - first.point) * units
    room = np.where(cone.values == 0, first.distance - moved, moved)
    with np.errstate(divide="ignore"):
        loose = units * np.minimum(1.0, 2 * first.tolerance / np.maximum(room, 0.0))
    return replace(first, cone=replace(cone, errors=np.where(fixed, np.maximum(cone.errors, loose), 0.0)))


def by_scatter(job: Job, found: Extraction) -> Extraction:
    """A model from points of its plane, with bounds that rest on how far those, and one more, were seen from it.

    Bounds from points grow in proportion to the points' errors. Answers that changed a category or a whole number are none. Labels
    beside the plane show a margin that all points share.
    """
    found, seen = _scattered(job, found)
    terms = job.session.mechanism
    if seen is None or found.radius != 0 or job.session.is_discrete or terms is None:
        return found
    norm = l2 if terms.distance is None else terms.distance
    return _paid(job, norm, found, terms, seen)


def _scattered(job: Job, found: Extraction) -> tuple[Extraction, Seen | None]:
    """The model with its bounds widened, and what was seen; None if that is nothing."""
    log, plane = job.session.log, found.hyperplane
    if log is None or found.error_bound is None or found.offset_bound is None or not len(log.explained):
        return found, None
    domain = job.session.domain
    kept = [] if domain is None else [*domain.integers, *(i for group in domain.groups for i in group)]
    rows = log.explained
    rows = rows[(log.points[rows][:, kept] == log.explanations[rows][:, kept]).all(axis=1)]
    if not len(rows):
        return found, None
    length = float(np.linalg.norm(plane.normal))
    past = np.abs(np.asarray(plane.margin(log.explanations[rows])))
    if found.radius != 0:
        past = np.abs(past - float(np.median(past)))
    sizes = np.linalg.norm(log.explanations[rows], axis=1) * length + abs(plane.offset)
    times = max(1.0, UNSEEN * float((past / (FLOAT64_ANSWER * np.maximum(sizes, SMALLEST))).max()))
    widened = replace(
        found,
        error_bound=min(math.pi, times * found.error_bound),
        offset_bound=times * found.offset_bound,
        residual=float(past.max()),
        premise=Extraction.within(times * FLOAT64_ANSWER * float(sizes.max())).replace("optimal", "the plane"),
    )
    sides = np.sign(plane.margin(log.points[rows]))
    across = bool((sides > 0).any() and (sides < 0).any())
    return widened, Seen(float(past.max()), 0.0, across, float(sizes.max()))


def _fits(found: Extraction, terms: Mechanism, tolerance: float | None, seen: Seen) -> bool:
    """Whether the tolerance that the model was found with covers what was seen, and what was not.

    A tolerance that is declared, or shows in the digits, is a bound itself: answers may use all of it, and the model's own error.
    """
    off = max(seen.residual, -seen.margin)
    if found.tolerance is not None and tolerance == terms.tolerance:
        doubt = (found.error_bound or 0.0) * float(np.linalg.norm(found.hyperplane.normal)) * seen.size
        return off <= 2 * (found.tolerance + doubt + (found.offset_bound or 0.0))
    return tolerance is not None and UNSEEN * off <= tolerance


def _scaled(job: Job, norm: Norm, terms: Mechanism, found: Extraction, seen: Seen) -> Extraction:
    """A model found from rounded answers, its bounds as many times larger as they are farther off than rounding alone."""
    off = UNSEEN * max(seen.residual, abs(seen.margin))
    times = max(1.0, off / _rounding(job, seen.size))
    angle = None if found.error_bound is None else min(math.pi, times * found.error_bound)
    offset = None if found.offset_bound is None else times * found.offset_bound
    scaled = replace(found, error_bound=angle, offset_bound=offset, tolerance=off, premise=Extraction.within(off))
    return _paid(job, norm, scaled, terms, replace(seen, margin=0.0))


def _misfit(norm: Norm, seen: Seen) -> BrokenPromise:
    off = max(seen.residual, abs(seen.margin))
    return BrokenPromise(
        f"the answers do not fit the declared distance {norm!r}: one that played no part in the model lies {off:.3g} from what the "
        "model would have answered",
        fact="Steepest",
        excess=off,
    )


def _unconfirmed(session: Session, found: Extraction) -> Extraction:
    """The model without bounds: what they would rest on was not seen."""
    why = "the service explained no further question" if session.can_pay(1) else "the budget left nothing to ask for"
    bound = "" if found.error_bound is None else f", within {found.error_bound:.1g} rad if {found.premise} (confirm=0)"
    note = f"not confirmed: {why}{bound}"
    return replace(
        found, spent=session.spent, assumptions=(*found.assumptions, note), error_bound=None, offset_bound=None
    )


def _paid(job: Job, norm: Norm, found: Extraction, terms: Mechanism, seen: Seen) -> Extraction:
    """The confirmed model; without bounds if the budget ends before the labels that it takes."""
    try:
        with job.session.confirming():
            return _placed(job, norm, found, terms, seen)
    except BudgetExhausted:
        return _unconfirmed(job.session, found)


def _placed(job: Job, norm: Norm, found: Extraction, terms: Mechanism, seen: Seen) -> Extraction:
    """The confirmed model, half way between the planes that answers from both sides end on, and where labels say it is."""
    session = job.session
    notes = [note for note in found.assumptions if note != UNCHECKED and not (seen.across and ONE_SIDED in note)]
    premise, has_margin = found.premise, seen.margin > 0
    if has_margin:
        notes.insert(0, f"answers end {seen.margin / 2:.2g} farther behind the plane, on both sides, than declared")
        found = _shifted(job, found, seen)
    offset_bound = found.offset_bound
    if found.error_bound is not None and offset_bound is not None:
        if (labelled := _by_labels(job, norm, found)) is not None:
            found, said = labelled
            notes += said
            has_margin = has_margin or bool(said)
        elif has_margin:  # if every answer changes the label, the plane passes between those of the two sides
            premise = f"{premise}, past a margin, and changes the label"
            found = replace(found, offset_bound=offset_bound + seen.margin / 2)
        elif not seen.across:
            why = "and labels on both sides of the plane cannot be had" if session.can_label else "and gives no labels"
            notes.append(
                f"the service explains one side only {why}: a margin that all answers share cannot be seen. If there is none, the "
                f"offset is within {offset_bound:.1g}"
            )
            found = replace(found, offset_bound=None)
    log = session.log
    if log is not None and (has_margin or found.tolerance != terms.tolerance):
        log = log.reread(replace(terms, tolerance=found.tolerance, radius=None if has_margin else terms.radius))
    return replace(
        found, spent=session.spent, log=log, premise=premise, residual=seen.residual, assumptions=tuple(notes)
    )


def _shifted(job: Job, found: Extraction, seen: Seen) -> Extraction:
    """The plane half a margin nearer to the start, where answers from both sides end equally far behind it."""
    plane = found.hyperplane
    nearer = math.copysign(seen.margin / 2, plane.margin(job.start))
    lever = (found.error_bound or 0.0) * float(np.linalg.norm(plane.normal)) * seen.size
    bound = None if found.offset_bound is None else found.offset_bound + lever + UNSEEN * seen.residual
    moved = Hyperplane(plane.normal, plane.offset + nearer)
    return replace(found, hyperplane=moved, offset_bound=bound, radius=None, radius_bound=None)


def _by_labels(job: Job, norm: Norm, found: Extraction) -> tuple[Extraction, list[str]] | None:
    """The model with an offset that labels have shown: where it is, if one label on each side of it is right.

    If they are Yes and No as they should be, the true plane passes between the two points. Else it is bracketed and bisected, and
    so are margins that all answers share. None if there are no labels, or the bounds of the inputs leave no room for both.
    """
    session, plane = job.session, found.hyperplane
    assert found.error_bound is not None
    assert found.offset_bound is not None
    if not (session.can_label and session.can_pay(2)):
        return None
    unit, length, foot, size = next_to_the_start(job, plane)
    aside = ASIDE * (found.error_bound * size + found.offset_bound / length) + LABEL_ROUNDING * size
    above, below = (job.where.clip(foot + side * aside * unit) for side in (YES, NO))
    if not plane.margin(above) > 0 > plane.margin(below):
        return None
    said = session.label(above), session.label(below)
    if said[0] != said[1] and not (found.oriented and said[0] == NO):
        turned = 1.1 * found.error_bound * length * (1 + euclidean_stretch(norm, len(unit)) * length)
        shown = aside * length + turned * (float(np.linalg.norm(foot)) + aside)
        return replace(found, offset_bound=max(found.offset_bound, shown)), []
    if not found.oriented or not session.can_pay(MOST_LABELS):
        raise BrokenPromise(
            f"labels {aside:.1g} above and below the plane found are {said[0]:+d} and {said[1]:+d}", fact="OnSide"
        )
    return _bisected(job, norm, found, unit, foot, aside)


def _bisected(
    job: Job, norm: Norm, found: Extraction, unit: FloatArray, foot: FloatArray, aside: float
) -> tuple[Extraction, list[str]]:
    """The model with its offset bracketed and bisected by labels along the normal through its foot point."""
    session = job.session

    def is_yes(t: float) -> bool:
        return session.label(job.where.clip(foot + t * unit)) == YES

    width = aside
    for _ in range(MOST_LABELS // 4):
        width *= 4
        if is_yes(width) and not is_yes(-width):
            break
    else:
        raise BrokenPromise("labels on both sides of the plane found are the same, however far from it", fact="OnSide")
    low, high = -width, width
    while high - low > aside:
        middle = (low + high) / 2
        low, high = (low, middle) if is_yes(middle) else (middle, high)
    middle = (low + high) / 2
    off = (high - low) / 2 * float(np.linalg.norm(found.hyperplane.normal))
    found = with_level(norm, replace(found, offset_bound=math.inf), job.where.clip(foot + middle * unit), off)
    return found, [f"labels show that answers end {abs(middle):.2g} from the plane: its offset is theirs"]
