"""What the numbers of an audit say, and what to do about it: codes with values; `report/` has the words.

Only what the numbers support: a finding that compares needs both sides measured, one that praises a defence needs it to have held
at a small price, and what was not found is never called impossible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from overexplain.auditing.audit_report import (
    AuditedService,
    AuditReport,
    Curve,
    Defence,
    Finding,
    Quota,
    UntilKnown,
    Value,
)

FEW_TIMES = 2.0
"""A defence that costs the attacker at most this many times the undefended answers is called broken."""
MANY_TIMES = 10.0
"""A defence has held if the attack was not found, or costs at least this many times the undefended answers."""
LITTLE = 0.05
"""Shares that differ by at most this much differ little; advice that fails more often than this is harmful."""
NOT_DEFENDED, BY_QUOTA = "none", "quota"


def with_findings(report: AuditReport) -> AuditReport:
    """The report with the findings and the advice that its numbers support."""
    return replace(report, findings=findings(report), advice=advice(report))


def findings(report: AuditReport) -> tuple[Finding, ...]:
    """What the numbers say, most important first."""
    return (
        *_trust(report),
        *_until_known(report),
        *_against_decisions(report),
        *_at_once(report),
        *_variants(report),
        *_pooled(report),
        *_defences(report),
        *_unsettled(report),
    )


def advice(report: AuditReport) -> tuple[Finding, ...]:
    """What to do, most effective first."""
    return (*_limit(report), *_defend(report), *_other_distance(report), *_made_up_cases(report))


def fewest_needed(row: UntilKnown) -> int | None:
    """The fewest answers that any run rebuilt the model with; None if none did."""
    return min((count for count in (row.answers, row.low) if count is not None), default=None)


def paper_needed(row: UntilKnown) -> int | None:
    """The same count for the paper's procedure; None: it does not treat such a service."""
    if row.paper_explanations is None:
        return None
    return replace(row, explanations=row.paper_explanations, labels=row.paper_labels or 0).answers


def share_after(curve: Curve | None, answers: int) -> float | None:
    """The median share determined after so many answers; None if that was not measured.

    Between two numbers tried with the same share it is that share, since it can only grow; once it is 1 it stays so.
    """
    if curve is None:
        return None
    tried = list(zip(curve.answers, curve.median, strict=True))
    before = max(((n, share) for n, share in tried if n <= answers), default=(0, 0.0))
    after = min(((n, share) for n, share in tried if n >= answers), default=(answers, 1.0))
    return before[1] if before[0] == answers or before[1] == after[1] else None


def range_after(curve: Curve | None, answers: int) -> tuple[float, float] | None:
    """The same with what it may be: a limit may have left cases unsettled."""
    share = share_after(curve, answers)
    if curve is None or share is None:
        return None
    most = zip(curve.answers, curve.median_ceiling, strict=True)
    return share, max(share, min(((n, top) for n, top in most if n >= answers), default=(answers, 1.0))[1])


def decisions_only(report: AuditReport) -> AuditedService | None:
    """The service to compare with that explains nothing; None if there is none, or it is the audited one."""
    return next((service for service in report.services[1:] if not service.explains and report.audited.explains), None)


def judged_services(report: AuditReport) -> tuple[AuditedService, ...]:
    """The services that were asked for, without those added to compare."""
    return tuple(service for service in report.services if service.role != "comparison")


def undefended(report: AuditReport) -> int | None:
    """The requests of an attacker who sees explanations only, without any defence; None if not compared or not found."""
    rows = report.defences.rows if report.defences is not None else ()
    return next((row.explained.requests for row in rows if row.id == NOT_DEFENDED), None)


def defences_tried(report: AuditReport) -> tuple[Defence, ...]:
    """The defences that change the answers."""
    rows = report.defences.rows if report.defences is not None else ()
    return tuple(row for row in rows if row.id not in (NOT_DEFENDED, BY_QUOTA))


def broken_defences(report: AuditReport) -> tuple[Defence, ...]:
    """The defences that cost an attacker who sees explanations only little more than no defence."""
    plain = undefended(report)
    if report.defences is None or plain is None:
        return ()
    costs = ((row, row.explained.requests) for row in defences_tried(report))
    return tuple(row for row, cost in costs if cost is not None and cost <= FEW_TIMES * plain)


def best_defence(report: AuditReport) -> Defence | None:
    """The defence that held at the least price: valid advice to everybody, no one else's case shown; None if there is none."""
    plain = undefended(report)
    if plain is None:
        return None  # nothing to be better than

    def held(row: Defence) -> bool:
        cost = row.explained.requests
        kind = row.invalid is not None and row.invalid <= LITTLE and row.unanswered == 0 and not row.shows_rows
        return kind and row.length is not None and (cost is None or cost >= MANY_TIMES * plain)

    rows = [row for row in defences_tried(report) if held(row)]
    return min(rows, key=_price, default=None)


def _price(row: Defence) -> tuple[bool, float, int]:
    cost = row.explained.requests
    return (cost is not None, row.length or 0.0, -(cost or 0))


def _finding(code: str, **values: Value) -> Finding:
    return Finding(code, values)


def _trust(report: AuditReport) -> Iterator[Finding]:
    wrong = sum(curve.wrong for curve in report.curves)
    if wrong:
        yield _finding("determined-wrongly", decisions=wrong)
    for curve in report.curves:
        if curve.terms_broken:
            yield _finding("terms-broken", service=curve.service, orders=curve.terms_broken, of=curve.orders)


def _unsettled(report: AuditReport) -> Iterator[Finding]:
    worst = max(report.curves, key=lambda curve: curve.undecided, default=None)
    if worst is not None and worst.undecided:
        yield _finding("undecided", service=worst.service, share=worst.undecided)


def _until_known(report: AuditReport) -> Iterator[Finding]:
    """What rebuilding takes; further services are told of only if it is another number."""
    main = report.known_of(report.audited.id)
    for service in judged_services(report):
        row = report.known_of(service.id)
        if row is None or (row is not main and main is not None and row.answers == main.answers):
            continue
        if row.answers is None:
            code = "never-known" if fewest_needed(row) is None else "seldom-known"
            yield _finding(code, service=service.id, runs=row.runs, fewest=fewest_needed(row))
        else:
            least = row.minimum if row.minimum_is == "theorem" else None
            yield _finding("known-after", service=service.id, answers=row.answers, minimum=least, valid=row.valid)


def _against_decisions(report: AuditReport) -> Iterator[Finding]:
    """Few explained answers against as many decisions as were tried."""
    plain = decisions_only(report)
    if plain is None:
        return
    curve = report.curve_of(plain.id)
    reached = range_after(report.curve_of(report.audited.id), report.headline)
    if curve is None or reached is None or curve.answers[-1:] < (report.headline,):
        return
    if reached[0] <= curve.median_ceiling[-1]:
        return
    yield _finding(
        "explanations-vs-decisions",
        answers=report.headline,
        share=reached[0],
        share_at_most=reached[1],
        decisions=curve.answers[-1],
        decisions_share=curve.median[-1],
        decisions_at_most=curve.median_ceiling[-1],
    )


def _at_once(report: AuditReport) -> Iterator[Finding]:
    for service in report.services[1:]:
        curve = report.curve_of(service.id)
        if curve is not None and curve.answers[:1] == (1,) and curve.low[0] == 1.0 and curve.known_at == 1:
            yield _finding("all-at-once", service=service.id, orders=curve.orders)


def _variants(report: AuditReport) -> Iterator[Finding]:
    """Services that answer as the audited one does, but less exactly."""
    own = range_after(report.curve_of(report.audited.id), report.headline)
    for service in report.services[1:]:
        other = range_after(report.curve_of(service.id), report.headline)
        if own is None or other is None or not service.spec.startswith(f"{report.audited.spec};"):
            continue
        if own[0] > LITTLE and max(own[1] - other[0], other[1] - own[0]) <= LITTLE:
            yield _finding(
                "variant-changes-little", service=service.id, answers=report.headline, share=other[0], audited=own[0],
                share_at_most=other[1], audited_at_most=own[1],
            )  # fmt: skip


def _pooled(report: AuditReport) -> Iterator[Finding]:
    """What customers could know who show each other the letters they got with a No."""
    for service in judged_services(report):
        curve = report.curve_of(service.id, "denied")
        if curve is None or not curve.answers:
            continue
        letters = report.headline
        share, most = range_after(curve, letters) or (curve.median[-1], curve.median_ceiling[-1])
        if share_after(curve, letters) is None:
            letters = curve.answers[-1]
        if share == 0 < most:
            continue
        yield _finding(
            "pooled-letters", service=service.id, letters=letters, share=share, at_most=most, known_at=curve.known_at
        )


def _defences(report: AuditReport) -> Iterator[Finding]:
    compared, broken = defences_tried(report), broken_defences(report)
    if broken:
        yield _finding(
            "defences-broken",
            broken=len(broken),
            compared=len(compared),
            requests=max(row.explained.requests or 0 for row in broken),
            undefended=undefended(report),
            names="; ".join(row.name for row in broken),
        )
    floor = labels_price(report)
    if floor is not None:
        yield _finding("labels-floor", requests=floor, compared=len(compared))


def labels_price(report: AuditReport) -> int | None:
    """The most that any defence of the explanations made an attacker pay who may ask decisions, too; None if one held."""
    rows = [row.with_labels.requests for row in defences_tried(report)]
    found = [cost for cost in rows if cost is not None]
    return max(found) if found and len(found) == len(rows) else None


def _limit(report: AuditReport) -> Iterator[Finding]:
    for service in judged_services(report):
        quota = report.quota_of(service.id)
        if quota is not None:
            code = _quota_code(quota)
            yield _finding(code, service=service.id, answers=quota.answers, target=quota.target)
            if quota.adaptive is not None and quota.answers >= quota.adaptive and not quota.is_unsettled:
                yield _finding("quota-does-not-bind", service=service.id, adaptive=quota.adaptive)
    if any(report.quota_of(service.id) is not None for service in judged_services(report)):
        yield _finding("quota-over-all-clients")


def _quota_code(quota: Quota) -> str:
    if quota.is_limit:
        return "quota-not-reached"
    if quota.is_unsettled:
        return "quota-unsettled"
    return "quota" if quota.answers else "quota-zero"


def _defend(report: AuditReport) -> Iterator[Finding]:
    best, plain = best_defence(report), undefended(report)
    if best is not None:
        yield _finding(
            "best-defence",
            name=best.name,
            length=best.length,
            invalid=best.invalid,
            requests=best.explained.requests,
            undefended=plain,
        )
    elif defences_tried(report) and plain is not None:
        yield _finding("no-defence-held", compared=len(defences_tried(report)))
    harmful = [row for row in broken_defences(report) if (row.invalid or 0.0) > LITTLE]
    if harmful:
        worst = max(harmful, key=lambda row: row.invalid or 0.0)
        cost = worst.explained.requests
        yield _finding("harmful-defence", name=worst.name, invalid=worst.invalid, requests=cost, undefended=plain)


def _other_distance(report: AuditReport) -> Iterator[Finding]:
    """Another exact way to explain that gives the model away much later."""
    needed = {row.service: row.answers for row in report.known}
    own = needed.get(report.audited.id)
    if own is None or not report.audited.explains:
        return
    others = [s for s in report.services[1:] if _is_exact(s) and needed.get(s.id) is not None]
    best = max(others, key=lambda service: needed[service.id] or 0, default=None)
    if best is not None and (needed[best.id] or 0) >= FEW_TIMES * own:
        yield _finding("other-distance", answers=own, other=best.id, other_answers=needed[best.id])


def _is_exact(service: AuditedService) -> bool:
    """True if it explains by a distance and nothing else: no margin, no imitation, nothing done to its answers."""
    return service.explains and service.published is not None and not set(";=") & set(service.spec)


def _made_up_cases(report: AuditReport) -> Iterator[Finding]:
    """Decisions on cases that the asker makes up are a way around every defence of the explanations."""
    floor, row = labels_price(report), report.known_of(report.audited.id)
    if floor is not None and report.defences is not None:
        yield _finding("decisions-on-real-cases", requests=floor, accuracy=report.defences.accuracy)
    elif not report.audited.explains and row is not None and row.answers is not None:
        yield _finding("decisions-on-real-cases", requests=row.answers, accuracy=row.accuracy)
