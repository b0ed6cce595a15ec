"""`diagnose`: ask a service a few questions and say how it behaves, which theorem applies, and what that will cost."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.extraction.diagnosis.examined import Examined, examine
from overexplain.extraction.diagnosis.families import Effective
from overexplain.extraction.diagnosis.interview import interview
from overexplain.extraction.diagnosis.margins import proven_slack
from overexplain.extraction.diagnosis.oracle_report import OracleReport
from overexplain.extraction.diagnosis.refuted import refuted_terms
from overexplain.extraction.diagnosis.remedy import findings_of, remedy
from overexplain.extraction.job import Job, begin
from overexplain.extraction.result import Spent
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import as_generator, frozen
from overexplain.oracles.protocol import Oracle

LEAST = 4
"""Fewer explanations than this show nothing."""


def diagnose(
    oracle: Oracle,
    n: int = 20,
    start: ArrayLike | None = None,
    bounds: Any = None,
    budget: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> OracleReport:
    """How a service behaves, from at most n explanations and 2n + 10 labels.

    start   the first question (0, or the middle of the bounds, or a valid input if the oracle has a `domain`)
    bounds  (low, high), or a number r: the ball of that radius around `start`. Questions stay inside
    budget  the most requests to send; BudgetExhausted is raised before the first one too many

    A service that fails, raises or answers with something that is no point is reported, not raised.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.geometry.mechanism import Mechanism
    >>> from overexplain.oracles.exact import ModelOracle
    >>> service = ModelOracle(Hyperplane([3.0, -4.0, 1.0], 10.0), "l2", published=Mechanism("l1"))
    >>> seen = diagnose(service, rng=0)
    >>> seen.family, seen.direction, seen.margin, seen.refuted
    ('l2', 'constant', 'zero', ('documented l1, effective l2',))
    """
    generator, session = as_generator(rng), Session(oracle, budget)
    if not session.can_explain and not session.can_label:
        raise InvalidInput(
            f"{type(oracle).__name__} defines neither classify nor explain: there is nothing to ask. A model becomes a service by "
            'ox.ModelOracle(model, "l1")'
        )
    if start is None and bounds is None and session.domain is not None:
        start = session.domain.sample(generator, 1)[0]  # from the middle of a box its sides would hardly show
    origin, where = begin(session, start, bounds, generator)
    return diagnose_session(Job(session, 1e-6, origin, where, True, generator), n)


def diagnose_session(job: Job, n: int = 20) -> OracleReport:
    """The same inside a conversation that is already going on: what is asked is counted there, too."""
    most = _checked(n)
    session, before = job.session, job.session.spent
    domain = session.domain
    talk = interview(job, most if session.can_explain else 0, 2 * most + 10, domain)
    seen = examine(talk)
    asked = Spent(session.spent.explanations - before.explanations, session.spent.labels - before.labels)
    report = _report(job, seen, asked)
    step = float(np.median(seen.reading.steps.lengths)) if seen.reading.rows else 0.0
    advice = remedy(report, session.can_label, domain, step, domain is None and job.where.is_everything)
    report = replace(report, theorem=advice.theorem, cost=advice.cost)
    return replace(
        report, findings=findings_of(report, seen.effective.note, seen.unmoved, seen.measured.sides_assumed_alike)
    )


def _checked(n: Any) -> int:
    try:
        most = operator.index(n)
    except TypeError:
        most = 0
    if most < LEAST:
        raise InvalidInput(f"n must be a whole number of explanations, at least {LEAST}, got {n!r}")
    return most


def _report(job: Job, seen: Examined, asked: Spent) -> OracleReport:
    effective, steps, grid, margin = seen.effective, seen.reading.steps, seen.reading.grid, seen.measured.margin
    slack = proven_slack(seen.measured.gaps) if margin == "relative" else None
    declared = job.session.mechanism
    return OracleReport(
        dimension=job.session.dimension,
        asked=asked,
        answers=len(seen.reading.rows),
        deterministic=seen.deterministic,
        exact=_is_exact(seen, effective),
        direction=seen.direction,
        family=effective.family,
        distance=effective.distance,
        margin=margin,
        margin_size=seen.measured.size,
        slack=slack,
        grid=grid.name,
        tolerance=grid.half,
        low=frozen(steps.low),
        high=frozen(steps.high),
        immutable=seen.immutable,
        moved=tuple(int(i) for i in np.flatnonzero(steps.moved.any(axis=0))),
        repeated_rows=seen.reading.repeated,
        one_hot_snapped=seen.one_hot_snapped,
        one_sided=seen.one_sided,
        failures=tuple(Counter(seen.failures).most_common()),
        declared=declared,
        refuted=refuted_terms(declared, effective, steps, seen.direction, margin, grid, slack),
        theorem="",
        cost=None,
        findings=(),
    )


def _is_exact(seen: Examined, effective: Effective) -> bool | None:
    """True if the answers are optimal as far as they show; None if they show too little."""
    if seen.reading.repeated or seen.measured.margin in ("variable", "relative"):
        return False
    if seen.measured.margin is None:
        return None
    if seen.measured.margin == "zero" and effective.family not in ("unknown", "heuristic"):
        return True
    return True if seen.direction in ("constant", "by side", "several") else None
