"""Services that are not what they say, or say nothing: look first, then go the cheapest way that can still work.

Every way checks itself, and the finished model is held against all answers of the conversation. A way that fails hands over to the
next one; labels alone, where there are any, are the way that rests on least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from overexplain.errors import BrokenPromise, BudgetExhausted, ExtractionFailed, NoExplanation, OverexplainError
from overexplain.extraction.confirmation import by_cone
from overexplain.extraction.constrained.approach import extract_by_approach, predict_approach
from overexplain.extraction.constrained.revealed import extract_by_revealed, predict_revealed
from overexplain.extraction.contradictions import (
    refuse_clipped,
    refuse_contradictions,
    refuse_misplaced,
    refuse_wrong_level,
    unflipped,
)
from overexplain.extraction.diagnosis.diagnose import diagnose_session
from overexplain.extraction.diagnosis.oracle_report import OracleReport
from overexplain.extraction.inexact.chain import extract_by_chain, predict_chain
from overexplain.extraction.inexact.fitted import euclidean_stretch
from overexplain.extraction.inexact.warm import FEW, extract_by_average, extract_from, extract_warm, predict_warm
from overexplain.extraction.job import Job
from overexplain.extraction.labels.floors import predicted_labels
from overexplain.extraction.labels.labels import extract_by_labels
from overexplain.extraction.level import level_by_labels, with_level
from overexplain.extraction.points import extract_by_points
from overexplain.extraction.precision import answer_error, visible_grid
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.geometry.norms import l2
from overexplain.log.querylog import QueryLog

DIAGNOSTIC = 20
"""Explanations spent on finding out what kind of service this is."""

MOST_SLACK = 0.9
"""Answers with more slack than this come closer to the plane too slowly for a chain."""

UNSEEN = 0.3
"""About how far off, in radians, a guess of which nothing is known is taken to be."""

SCATTERED = 15.0
"""Answers whose scatter behind the plane is one step give a normal about one part in so many off."""

UNSEEN_SCATTER = 8.0
"""Answers that were not seen may be so many times farther off than those that were."""

ROOM = 1.5
"""An estimated slack is taken so many times larger than the answers prove."""

AVERAGED = 100
"""Where nothing but averaging is left, so many answers are taken for each feature."""

SINGLE = 2e-6
"""What float32 answers show of a normal, for each root of a feature."""

FAR = 1000
"""How many times the error of an answer, divided by the accuracy wanted, a start must lie away for that error not to matter."""

FLIPS = Mechanism(None, slack=None)
"""The terms under which heuristic answers are logged: they flip the label, nothing more."""


@dataclass(frozen=True)
class Way:
    """One way to the model: its name, what it is predicted to cost, how to go it, and which terms answers then follow."""

    name: str
    cost: float
    go: Callable[[], Extraction]
    terms: Mechanism = FLIPS


def degrade(job: Job, reason: OverexplainError | None = None) -> Extraction:
    """The model behind a service whose terms are unknown, or were refuted for the `reason` given."""
    session = job.session
    session.forgiving = True
    report = diagnose_session(job, DIAGNOSTIC)
    notes = [] if reason is None else [f"the declared mechanism was refuted and set aside: {reason}"]
    notes.append(
        f"diagnosed with {report.asked.explanations} explanations and {report.asked.labels} labels: {report.theorem}"
    )
    return cheapest(job, ways_after(job, report), notes, reason)


def as_accurate(job: Job, found: Extraction, terms: Mechanism) -> Extraction:
    """The model, if it is as accurate as wanted; else what answers from far away, or labels, make of it.

    The theorem takes a few answers, and rounding or a solver's tolerance decides how well it knows the model then. A budget that
    ends on the way is an error only if the caller insists on the accuracy.
    """
    if _bound(found) <= job.enough or found.tolerance is None or terms.distance is None:
        return found
    seen = replace(terms, tolerance=found.tolerance)
    way = Way("the declared terms", 0.0, lambda: found, seen)
    notes = [*found.assumptions, _too_rough(way.name, found)]
    ways = _onwards(job, way, found)
    if terms.tolerance is None and _is_decimal(job.session.log):  # an error that does not grow with the distance
        ways += tolerance_ways(job, seen, terms.distance)
    try:
        return cheapest(job, ways, notes, known=[(way, found)])
    except BudgetExhausted as end:
        if job.insists or end.found is None:
            raise
        best: Extraction = end.found
        return replace(best, assumptions=(*best.assumptions, "the budget ended before the model was known better"))


def _is_decimal(log: QueryLog | None) -> bool:
    """True if the answers' digits show that they were rounded to decimals."""
    if log is None:
        return False
    points, answers = log.points[log.explained], log.explanations[log.explained]
    name = visible_grid(answers[answers != points])[1]
    return name is not None and "decimal" in name


def cheapest(
    job: Job,
    ways: list[Way],
    notes: list[str],
    reason: OverexplainError | None = None,
    known: list[tuple[Way, Extraction]] | None = None,
) -> Extraction:
    """What the cheapest way gives that works and is as accurate as wanted; failing that, the most accurate one found.

    A model that is not accurate enough is where labels can go on from. `known`: models that were found before.
    """
    failures: list[OverexplainError] = [] if reason is None else [reason]
    found = list(known or [])
    ways = list(ways)
    while ways:
        way = min(ways, key=lambda way: way.cost)
        ways.remove(way)
        try:
            result = _confirmed(job, way, way.go())
        except (BrokenPromise, ExtractionFailed, NoExplanation) as failure:
            failures.append(failure)
            notes.append(f"tried and given up: {way.name} ({failure})")
            continue
        except BudgetExhausted as end:
            found += [] if end.found is None else [(way, end.found)]
            end.found = _chosen(job, found, notes) if found else None
            raise
        found.append((way, result))
        if _bound(result) <= job.enough:
            break
        notes.append(_too_rough(way.name, result))
        ways += _onwards(job, way, result)
    if not found:
        raise _telling(failures)
    return _chosen(job, found, notes)


def _too_rough(name: str, found: Extraction) -> str:
    known = "no bound on its error" if found.error_bound is None else f"{found.error_bound:.1g} rad"
    return f"not accurate enough: {name} ({known})"


def _onwards(job: Job, way: Way, rough: Extraction) -> list[Way]:
    """Labels from a model that is not accurate enough."""
    if way.name.startswith("labels") or not job.session.can_label or not rough.oriented:
        return []
    angle = min(UNSEEN, _bound(rough)) if rough.error_bound is not None else UNSEEN / 3
    cost = predict_warm(job.session.dimension, job.accuracy, angle)
    return [Way("labels from there", cost, lambda: extract_from(job, rough))]


def _chosen(job: Job, found: list[tuple[Way, Extraction]], notes: list[str]) -> Extraction:
    """The most accurate model found, its log read as its way reads it."""
    way, best = min(found, key=lambda pair: _bound(pair[1]))
    log = job.session.log
    if log is not None:
        log = log.reread(way.terms, unflipped(best, log))
        domain = _domain_of(way.terms, best, log, job.session)
        log = log if domain is None else log.reread(replace(way.terms, domain=domain))
    return replace(
        best, spent=job.session.spent, log=log, assumptions=tuple(dict.fromkeys((*notes, *best.assumptions)))
    )


def _domain_of(terms: Mechanism, found: Extraction, log: QueryLog, session: Session) -> Domain | None:
    """What the service says answers are chosen from, or inputs taken from.

    If it says neither: none, or, if some answers are not the nearest points of the plane found, a part of R^p.
    """
    declared = None if session.mechanism is None else session.mechanism.domain
    known = [domain for domain in (declared, session.domain) if domain is not None]
    if known:  # whole numbers and categories say more than limits
        return next((domain for domain in known if domain.groups or domain.integers), known[0])
    if terms.slack != 0 or terms.distance is None or terms.domain is not None:
        return terms.domain
    return None if _are_nearest(found, terms, terms.distance, log) else Domain(session.dimension)


def _are_nearest(found: Extraction, terms: Mechanism, distance: Norm, log: QueryLog) -> bool:
    """Whether every answer went straight to the plane found, as far as its error and the tolerance can tell."""
    normal = found.hyperplane.normal
    points, answers = log.points[log.explained], log.explanations[log.explained]
    steps, dual = answers - points, float(distance.dual(normal))
    astray = distance(steps) * dual - np.abs(steps @ normal)
    angle = min(found.error_bound or 0.0, math.pi)
    turned = 2 * angle * float(np.linalg.norm(normal)) * np.linalg.norm(steps, axis=1)
    rounded = 2 * (terms.tolerance or 0.0) * dual + 1e-7 * (np.abs(points) + np.abs(answers)) @ np.abs(normal)
    return bool((astray <= turned + rounded).all())


def _bound(found: Extraction) -> float:
    """How far off the normal may be; a model of which nothing is known may be anything."""
    return found.error_bound if found.error_bound is not None and found.error_bound < math.pi / 2 else math.inf


def _confirmed(job: Job, way: Way, found: Extraction) -> Extraction:
    """The result, if nothing the service said contradicts it; its bounds widened by what answers scatter."""
    refuse_contradictions(found, job.session.log)
    if way.terms.slack != 0:
        return found
    confirmed = found.residual is not None  # what was seen of its answers is in the bounds already
    scatter, farthest = (1.0, found.residual) if confirmed else refuse_misplaced(found, job.session.log, way.terms)
    found = replace(found, residual=farthest)
    if scatter > 1 and found.error_bound is not None and found.offset_bound is not None:
        scatter *= UNSEEN_SCATTER
        assert farthest is not None
        found = replace(
            found,
            error_bound=min(math.pi, scatter * found.error_bound),
            offset_bound=scatter * found.offset_bound,
            assumptions=(*found.assumptions, "answers are no farther off than those seen, times a margin"),
            premise=f"every answer is within {UNSEEN_SCATTER * farthest:.2g} of where it should end",
        )
    if way.terms.radius is not None or found.error_bound is None or found.offset_bound is None:
        return found
    if job.session.can_label:
        if not confirmed:
            refuse_wrong_level(job, found)
        return found
    return replace(
        found,
        offset_bound=None,
        assumptions=(*found.assumptions, "answers go equally far past the plane on both sides"),
    )


def in_unit_of(distance: Norm | None, found: Extraction) -> Extraction:
    """The same with the normal of dual length 1 in the declared distance, of length 1 in the 2-norm if there is none."""
    normal = found.hyperplane.normal
    euclidean = float(np.linalg.norm(normal))
    length = euclidean if distance is None else float(distance.dual(normal))
    if abs(length - 1) < 1e-9:
        return found
    stretch = 1.0 if distance is None else euclidean_stretch(distance, len(normal))
    # A unit normal that is off by θ has a dual length that is off by at most κ·2 sin(θ/2); one that was scaled in another norm
    # may be off by √p times as much.
    turned = 2 * math.sin(min(found.error_bound or 0.0, math.pi) / 2) * euclidean * (1 + math.sqrt(len(normal)))
    off = stretch * turned
    return found.rescaled(length, off / (length - off) if off < length else math.inf)


def _telling(failures: list[OverexplainError]) -> OverexplainError:
    """The failure that says most: a refuted promise first, then what remained open."""
    for kind in (BrokenPromise, ExtractionFailed, OverexplainError):
        for failure in failures:
            if isinstance(failure, kind):
                return failure
    return ExtractionFailed("the service neither explains nor labels in a way that any method here can use")


def ways_after(job: Job, report: OracleReport) -> list[Way]:
    """Every way that a diagnosis leaves open."""
    ways = [*_exact_ways(job, report), *label_ways(job, report.answers > 0, report)]
    if report.margin == "relative" and report.slack is not None and report.one_sided is None:
        # What the answers prove is a lower estimate of the slack; a larger one costs a link more, a smaller one the result.
        ways += chain_ways(job, min(MOST_SLACK, ROOM * report.slack), report.distance, declared=False)
    if report.answers and not job.session.can_label:
        ways.append(Way("averages", math.inf, lambda: extract_by_average(job, AVERAGED * report.dimension)))
    return ways


def chain_ways(job: Job, slack: float, norm: Norm | None, declared: bool) -> list[Way]:
    """The chain of counterfactuals, if the slack leaves any hope."""
    if slack > MOST_SLACK:
        return []
    cost = predict_chain(job.session.dimension, job.accuracy, slack)
    terms = Mechanism(norm, slack=slack) if declared else FLIPS
    return [Way("chain of counterfactuals", cost, lambda: extract_by_chain(job, slack, norm, declared), terms)]


def label_ways(job: Job, explains: bool, report: OracleReport | None = None) -> list[Way]:
    """Labels, from scratch, or, if there are explanations, from the guess they give."""
    session, p = job.session, job.session.dimension
    if not session.can_label:
        return []
    pair = _opposite_pair(session.log)
    cold = Way(
        "labels",
        predicted_labels(p, job.accuracy),
        lambda: extract_by_labels(session, job.accuracy, job.start, job.where, job.rng, pair=pair),
    )
    if not explains:
        return [cold]
    # Every explanation that a guess is made of is paid for, and so is the label of its question unless its step shows it.
    constant = report is not None and report.direction == "constant"
    parallel = constant and report is not None and report.family not in ("l1", "linf")
    along = report is None and session.mechanism is not None and _lies_along_the_normal(session.mechanism)
    gathered = 2 * FEW if parallel or along else (1 if constant else 2) * 3 * p
    angle = job.accuracy if parallel else UNSEEN / 10 if along else _scatter(report, session.log)
    return [
        cold,
        Way("labels after a guess", gathered + predict_warm(p, job.accuracy, angle), lambda: extract_warm(job)),
    ]


def _lies_along_the_normal(terms: Mechanism) -> bool:
    """True if answers as declared are a step along the normal, but for rounding."""
    return terms.slack == 0 and terms.distance == l2 and terms.robustness in (None, l2)


def _scatter(report: OracleReport | None, log: QueryLog | None) -> float:
    """About how far from the normal a guess from many answers will be: their scatter behind the plane over their steps."""
    if report is None or report.margin_size == 0 or log is None or not len(log.explained):
        return UNSEEN
    steps = np.linalg.norm(log.explanations[log.explained] - log.points[log.explained], axis=1)
    return min(UNSEEN, report.margin_size / (SCATTERED * float(np.median(steps))))


def _opposite_pair(log: QueryLog | None) -> tuple[FloatArray, FloatArray] | None:
    """A point labelled No and the nearest one labelled Yes, among the labels asked so far."""
    if log is None or not (len(log.labelled(NO)) and len(log.labelled(YES))):
        return None
    no, yes = log.points[log.labelled(NO)], log.points[log.labelled(YES)]
    distances = np.linalg.norm(no[:, None] - yes[None], axis=2)
    i, j = np.unravel_index(int(distances.argmin()), distances.shape)
    return no[i].copy(), yes[j].copy()


def _exact_ways(job: Job, report: OracleReport) -> list[Way]:
    """The theorems, with the terms that were seen instead of those that were declared."""
    if not report.exact or report.repeated_rows:
        return []
    p, norm, secret = report.dimension, report.distance, report.margin == "constant"
    tolerance = None
    if report.grid is not None and norm is not None:
        tolerance = float(norm(np.full(p, report.tolerance)))
    terms = Mechanism(norm, radius=None if secret else 0.0, tolerance=tolerance)
    unknown = Mechanism(None, radius=terms.radius)
    directions = 1 if norm is not None and norm.is_smooth else p
    if report.is_boxed:
        # Its limits are not known, only that answers do not come from all of R^p.
        return approach_ways(job, replace(terms, domain=Domain(p))) if report.grid is None else []
    ways = []
    away: Job | None = job
    if report.grid is not None:
        away = _single(job) if report.grid == "float32" else far_out(job, report.tolerance)
    if norm is not None and away is not None:
        near, go = away is job, partial(_by_cone_from, away, job, terms, norm)
        # A single moving feature may also be favoured by weights, which answers cannot show beforehand.
        risk = 0.5 * directions if report.family == "l1" else 0.0
        ways.append(Way(f"the distance seen, {norm!r}", directions + 1 + secret + (not near) + risk, go, terms))
    if report.grid is None:
        ways.append(Way("points alone", p + 2 + secret, lambda: _by_points(job, unknown), unknown))
        if report.direction in ("constant", "by side") and not secret and 1 < len(report.moved) < p:
            cost = predict_revealed(p, [report.moved]).requests
            ways.append(Way("revealed coordinates", cost, lambda: extract_by_revealed(job), unknown))
    return ways


def approach_ways(job: Job, terms: Mechanism) -> list[Way]:
    """To the plane by labels, and from there, where no limit cuts answers off, as the theorems say."""
    if not job.session.can_label or not terms.is_plain:
        return []
    cost = predict_approach(len(job.start), terms).requests
    return [Way("approach, then ask", cost, lambda: extract_by_approach(job, terms), terms)]


def far_out(job: Job, tolerance: float) -> Job | None:
    """The job from a start so far away that errors of this size no longer matter; None if it may not start there."""
    if not job.where.is_everything or job.keeps_start:
        return None
    reach = FAR * tolerance / job.accuracy
    return replace(job, start=job.start + reach * job.rng.uniform(0.5, 1.0, len(job.start)))


def _single(job: Job) -> Job | None:
    """The job, if float32 answers show enough for it: they err relative to their size, so no start is better than another."""
    return job if job.accuracy >= SINGLE * math.sqrt(len(job.start)) else None


def tolerance_ways(job: Job, terms: Mechanism, norm: Norm) -> list[Way]:
    """The theorem for declared terms with a tolerance: from far away, where that is allowed, else from the start as it is."""
    assert terms.tolerance
    away = far_out(job, terms.tolerance / float(norm.units(len(job.start)).min()))
    cost = 3 if norm.is_smooth else len(job.start) + 2

    def go() -> Extraction:
        found = _by_cone_from(away, job, terms, norm)
        refuse_clipped(job.session)
        return found

    return [Way("the declared terms", cost, go, terms)]


def _by_cone_from(away: Job | None, job: Job, terms: Mechanism, norm: Norm) -> Extraction:
    """The theorem from far away, and then the offset from one answer near the start: far answers blur it."""
    if away is None or away is job:
        return _by_cone(job, terms, norm)
    found = _by_cone(away, terms, norm)
    if not terms.is_plain or found.error_bound is None or found.offset_bound is None:
        return found
    answer = job.session.explain(job.start)
    if answer is not None:
        off = answer_error(norm, terms.tolerance, job.start, answer)
        found = with_level(norm, found, answer, off)
    return level_by_labels(job, norm, found) if job.session.can_label and job.orient else found


def _by_cone(job: Job, terms: Mechanism, norm: Norm) -> Extraction:
    return by_cone(job, terms, norm, job.accuracy)


def _by_points(job: Job, terms: Mechanism) -> Extraction:
    return extract_by_points(job.session, terms, job.start, job.where, job.orient, job.rng, verify=True)
