"""`extract`: choose the theorem that fits what the service publishes, apply it, say what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import (
    BrokenPromise,
    BudgetExhausted,
    ExtractionFailed,
    InvalidInput,
    NoExplanation,
    OverexplainError,
)
from overexplain.extraction.confirmation import by_cone, by_scatter
from overexplain.extraction.constrained.approach import extract_by_approach
from overexplain.extraction.constrained.revealed import extract_by_revealed
from overexplain.extraction.constrained.slices import extract_by_slices
from overexplain.extraction.contradictions import clipped, refuse_clipped
from overexplain.extraction.imperfect import (
    AVERAGED,
    approach_ways,
    as_accurate,
    chain_ways,
    cheapest,
    degrade,
    in_unit_of,
    label_ways,
    tolerance_ways,
)
from overexplain.extraction.inexact.chain import extract_by_chain
from overexplain.extraction.inexact.warm import extract_by_average, extract_warm, guessed
from overexplain.extraction.job import Job, begin
from overexplain.extraction.labels.labels import extract_by_labels
from overexplain.extraction.labels.lowd_meek import extract_by_lowd_meek
from overexplain.extraction.paid import as_accuracy, nothing_lost
from overexplain.extraction.paper import extract_as_printed
from overexplain.extraction.points import extract_by_points
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Progress, Session
from overexplain.geometry.arrays import as_generator
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import l2
from overexplain.oracles.protocol import Oracle, is_closed_form

DEFAULT_ACCURACY = 1e-9
"""For exact answers, in the distance's own unit."""

DEFAULT_ANGLE = 1e-6
"""For labels and imperfect answers, in radians."""


def extract(
    oracle: Oracle,
    strategy: str = "auto",
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: int | np.random.Generator | None = None,
    record: bool = True,
    watch: Callable[[Progress], None] | None = None,
    confirm: int | None = None,
) -> Extraction:
    """The model behind `oracle`, rebuilt from as few answers as possible, with bounds on its error.

    strategy   "auto": trust the declared mechanism and spend only what the theorem says. A service that gives labels only is
               asked for labels. If the free check fails, or the mechanism is unknown, diagnose the service (`diagnose`), go the
               cheapest way that is left, and say so.
               Exact answers: "cone" (Theorems A, B, C), "points" (Theorem D), "paper" (the paper's own procedures and counts),
               "revealed" (only some features move), "approach" (answers are cut off by a box), "slices" (one-hot groups and whole
               numbers). Inexact ones: "chain" (at most 1 + slack times too far), "warm" (a guess, then labels), "average".
               Labels: "labels" ("labels-anchor", "labels-lift"), "labels-far" (inputs without limits), "lowd-meek".
               A strategy that is asked for by name raises BrokenPromise instead of handing over to another.
    accuracy   exact answers: of the normal in the distance's own unit (1e-9); otherwise the angle in radians (1e-6). Where it is
               not reached, the last of the `assumptions` says why
    start      the first question (0, where nothing cancels)
    bounds     (low, high): questions stay inside this box; a number: inside the ball of this radius around the start. Answers
               need not
    orient     ask one label to tell Yes from No; without it, or without `classify`, the model may be upside down
    budget     the most requests (explanations and labels) to send; BudgetExhausted is raised before the first one too many
    rng        an int or a Generator, for the few random choices
    record     keep every answer in `.log`; without it memory stays O(p)
    watch      is told before each request how far the work is (`Progress`)
    confirm    1: one more answer, from the other side of the plane, and labels beside it have to fit the model; how far they are
               off is what `error_bound` then rests on (`premise`, `residual`). 0: the declared terms are believed. None: 0 for
               this package's own closed formulas, 1 for every other service

    Whatever goes wrong, the error's `.log` has every answer that came.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 10.0)
    >>> found = extract(ModelOracle(secret, Mechanism("l2")))
    >>> found.hyperplane.is_equivalent(secret), found.spent
    (True, Spent(explanations=1, labels=1))
    """
    if strategy not in STRATEGIES:
        raise InvalidInput(f"unknown strategy {strategy!r}; known are {', '.join(STRATEGIES)}")
    wanted = as_accuracy(accuracy)
    generator = as_generator(rng)
    session = Session(oracle, budget, record, watch)
    session.confirms = _confirms(oracle, confirm)
    if session.mechanism is not None:
        session.mechanism.fits(session.dimension)
    origin, where = begin(session, start, bounds, generator)
    if strategy not in ("auto", "slices") and session.is_discrete:
        raise InvalidInput(
            f'strategy "{strategy}" asks any point, but this service takes one-hot groups or whole numbers only: '
            'use "slices" or "auto"'
        )
    if strategy == "paper" and bounds is not None:
        raise InvalidInput('strategy "paper" asks e^1, e^2, … and a basis wherever they lie: it takes no bounds')
    angle = DEFAULT_ANGLE if wanted is None else wanted
    job = Job(
        session, angle, origin, where, orient, generator, keeps_start=start is not None, insists=wanted is not None
    )
    with nothing_lost(lambda: session.log):
        try:
            found = _auto(job, wanted) if strategy == "auto" else _NAMED[strategy](job, wanted)
            if strategy in NEAREST:
                refuse_clipped(session)
        except BudgetExhausted as end:
            end.found = _at_the_end(session, end.found)
            raise
        found = in_unit_of(None if session.mechanism is None else session.mechanism.distance, found)
        return _with_premise(found, wanted, session.can_label)


def _with_premise(found: Extraction, wanted: float | None, has_labels: bool) -> Extraction:
    """The model with what its bounds rest on; if it is not as accurate as was asked for, with the reason."""
    bound = found.error_bound
    if bound is None:
        found = replace(found, premise=None)
    elif found.premise is None:
        found = replace(found, premise="the assumptions hold")
    if wanted is None or (bound is not None and bound <= wanted):
        return found
    known = "its error has no bound" if bound is None else f"its error may be {bound:.2g} rad"
    why = "" if found.tolerance is None else f": answers may be {found.tolerance:.2g} from optimal"
    cure = "" if has_labels else "; labels, which this service does not give, would tell more"
    note = f"not as accurate as asked for ({wanted:g}): {known}{why}{cure}"
    return replace(found, assumptions=(*found.assumptions, note))


def _at_the_end(session: Session, found: Extraction | None) -> Extraction | None:
    """The best model known when the budget ends; at least the guess that explanations give, if there are any."""
    with suppress(OverexplainError, ArithmeticError, ValueError, np.linalg.LinAlgError):
        if found is None or (found.error_bound or 0.0) >= math.pi / 2:  # labels that know nothing yet
            found = guessed(session) or found
        if found is not None and found.exact and clipped(session) is not None:  # a theorem for answers without limits
            found = replace(found, exact=False, error_bound=None, offset_bound=None)
        distance = None if session.mechanism is None else session.mechanism.distance
        return None if found is None else in_unit_of(distance, found)
    return None


def _auto(job: Job, wanted: float | None) -> Extraction:
    """The theorem for what is declared; what is not declared, or refuted, is looked at first."""
    session, mechanism = job.session, job.session.mechanism
    if not session.can_explain and not session.can_label:
        raise InvalidInput("this oracle defines neither classify nor explain: there is nothing to ask")
    if session.is_discrete:
        return _slices(job, wanted)
    if not session.can_explain:
        return cheapest(job, label_ways(job, explains=False), [])
    if mechanism is None or mechanism.slack is None:
        return degrade(job)
    if mechanism.slack > 0:
        ways = chain_ways(job, mechanism.slack, mechanism.distance, declared=True) if mechanism.is_plain else []
        return (
            cheapest(job, [*ways, *label_ways(job, explains=True)], []) if ways or session.can_label else degrade(job)
        )
    try:
        if mechanism.tolerance and mechanism.distance is not None:
            ways = tolerance_ways(job, mechanism, mechanism.distance)
            return cheapest(job, [*ways, *label_ways(job, explains=True)], [])
        found = _points(job, wanted) if mechanism.distance is None else _cone(job, wanted)
        cut = clipped(session)
        if cut is None:
            return as_accurate(job, found, mechanism)
    except (BrokenPromise, ExtractionFailed, NoExplanation) as broken:
        if isinstance(broken, ExtractionFailed) and not session.can_label:
            raise  # without labels a diagnosis finds no other way
        cut = clipped(session)
        if cut is None:
            return degrade(job, broken)
    return cheapest(job, [*approach_ways(job, mechanism), *label_ways(job, explains=True)], [cut])


def _confirms(oracle: Oracle, confirm: int | None) -> bool:
    if confirm is None:
        return not is_closed_form(oracle)
    if isinstance(confirm, bool) or confirm not in (0, 1):
        raise InvalidInput(f"confirm is 0 or 1 more answer, or None for what the service needs; got {confirm!r}")
    return bool(confirm)


def _exact_terms(job: Job) -> Mechanism:
    mechanism = job.session.mechanism
    if mechanism is None or not job.session.can_explain:
        raise NoExplanation(
            "this service gives labels only; this strategy needs explanations (an oracle with explain and a mechanism). "
            'Use "labels" or "auto"'
        )
    if mechanism.slack != 0:
        raise ExtractionFailed(
            f"the service declares slack={mechanism.slack}: its answers need not be optimal, and this strategy rests on "
            'optimal ones. Use "auto", "chain" or "warm"'
        )
    return mechanism


def _cone(job: Job, wanted: float | None) -> Extraction:
    mechanism = _exact_terms(job)
    if mechanism.distance is None:
        raise InvalidInput(
            'strategy "cone" needs the distance; this service does not publish it: use "points" or "auto"'
        )
    accuracy = DEFAULT_ACCURACY if wanted is None else wanted
    return by_cone(job, mechanism, mechanism.distance, accuracy)


def _points(job: Job, _: float | None) -> Extraction:
    terms, session = _exact_terms(job), job.session
    needed = session.dimension + int(not terms.is_plain) + int(job.orient and session.can_label)
    confirms = session.confirms and session.can_pay(needed + 1)
    found = extract_by_points(session, terms, job.start, job.where, job.orient, job.rng, verify=confirms)
    return by_scatter(job, found) if confirms else found


def _paper(job: Job, _: float | None) -> Extraction:
    return extract_as_printed(job.session, _exact_terms(job), job.start, job.orient, job.rng)


def _revealed(job: Job, _: float | None) -> Extraction:
    mechanism = _exact_terms(job)
    if not mechanism.is_plain:
        raise ExtractionFailed('strategy "revealed" needs answers on the plane; robust ones lie behind it: use "auto"')
    found = extract_by_revealed(job, mechanism.distance or l2)
    return by_scatter(job, found) if job.session.confirms else found


def _approach(job: Job, _: float | None) -> Extraction:
    return extract_by_approach(job, _exact_terms(job))


def _slices(job: Job, _: float | None) -> Extraction:
    if job.session.domain is None:
        raise InvalidInput('strategy "slices" needs the kinds of features: give the oracle a `domain`')
    mechanism = job.session.mechanism
    if mechanism is None or mechanism.slack != 0 or mechanism.tolerance or not mechanism.is_plain:
        job.session.can_explain = (
            False  # answers that are not exactly on the plane are no points of it: labels find those
        )
    found = extract_by_slices(job, job.session.domain, None if mechanism is None else mechanism.distance)
    return by_scatter(job, found) if job.session.confirms else found


def _chain(job: Job, _: float | None) -> Extraction:
    mechanism = job.session.mechanism
    if mechanism is None or not mechanism.slack or mechanism.slack >= 1 or not mechanism.is_plain:
        raise InvalidInput(
            'strategy "chain" needs a declared slack between 0 and 1 and no radius; "auto" estimates one'
        )
    job.session.forgiving = True
    return extract_by_chain(job, mechanism.slack, mechanism.distance, declared=True)


def _warm(job: Job, _: float | None) -> Extraction:
    _refuse_without_explanations(job)
    job.session.forgiving = True
    return extract_warm(job)


def _average(job: Job, _: float | None) -> Extraction:
    _refuse_without_explanations(job)
    job.session.forgiving = True
    return extract_by_average(job, AVERAGED * job.session.dimension)


def _labels(mode: str | None) -> Callable[[Job, float | None], Extraction]:
    def run(job: Job, _: float | None) -> Extraction:
        _refuse_without_labels(job)
        return extract_by_labels(job.session, job.accuracy, job.start, job.where, job.rng, mode)

    return run


def _lowd_meek(job: Job, _: float | None) -> Extraction:
    _refuse_without_labels(job)
    return extract_by_lowd_meek(job.session, job.accuracy, job.start, job.where, job.rng)


def _refuse_without_explanations(job: Job) -> None:
    if not job.session.can_explain:
        raise NoExplanation('this strategy needs explanations, and this service gives none: use "labels" or "auto"')


def _refuse_without_labels(job: Job) -> None:
    if not job.session.can_label:
        raise InvalidInput("this strategy needs labels, and this service gives none (no `classify`)")


_NAMED: dict[str, Callable[[Job, float | None], Extraction]] = {
    "cone": _cone,
    "points": _points,
    "paper": _paper,
    "revealed": _revealed,
    "approach": _approach,
    "slices": _slices,
    "chain": _chain,
    "warm": _warm,
    "average": _average,
    "labels": _labels(None),
    "labels-anchor": _labels("anchor"),
    "labels-lift": _labels("lift"),
    "labels-far": _labels("far"),
    "lowd-meek": _lowd_meek,
}
STRATEGIES = ("auto", *_NAMED)
NEAREST = ("cone", "points", "paper")
"""Strategies for which answers must be the nearest points of all, not only of those inside some limits."""
