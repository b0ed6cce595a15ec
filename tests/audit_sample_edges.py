"""Extreme audit reports: whatever a rendering could stumble over."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from audit_sample_parts import all_defences, curve_of, known_after, never_known, quota_of, whole_report
from overexplain.auditing.audit_report import AllCases, AuditReport, Cost, Gate, Quota
from overexplain.auditing.findings import with_findings

HOSTILE = {
    "script": "</script><script>window.pwned=1</script>",
    "image": '"><img src=x onerror=window.pwned=1>',
    "comment": "<!--<script>",
    "template": "{{7*7}} {% raw %} ${7*7}",
    "long": "very long name " * 683,
    "one word": "w" * 10_000,
    "right to left": "\u202eincome\u202c \u2067שלום\u2069 \u200f!",
    "emoji": "👩‍👩‍👧‍👦 income 🏦",
    "lines": "one\ntwo\r\nthree\u2028four\u2029five\tsix",
    "controls": "a\x00b\x07c\x1b[31md\x7fe\x85f\ufffeg",
    "address": "javascript:alert(1) https://example.org/?a=b&c=d",
    "entities": "&lt;b&gt; &amp;amp; ' \" ` = / \\",
    "empty": "",
}

ALL_CASES = (
    AllCases("s1", 13, cases=10**9, determined=760_000_001, undecided=0),
    AllCases("s1", 30, cases=10**9, determined=10**9, undecided=0),
    AllCases("s3", 13, cases=10**9, determined=999_999_999, undecided=1),
)


@cache
def edge_reports() -> dict[str, AuditReport]:
    """Extreme reports by name: every rendering has to cope with each of them."""
    return {name: with_findings(report) for name, report in _edges().items()} | {"no findings": whole_report()}


def _edges() -> dict[str, AuditReport]:
    whole = whole_report()
    bare = replace(whole, maps=(), proof=None, defences=None, gates=(), findings=(), advice=())
    first = whole.services[:1]
    decisions_first = (replace(whole.services[5], role="audited"), replace(whole.services[0], role="comparison"))
    return {
        "one feature": replace(
            bare,
            subject=replace(whole.subject, features=("income",)),
            services=first,
            known=(known_after("s1", 1, minimum=1, paper=2),),
            curves=(curve_of("s1", half=0.8, steep=3.0, answers=(1, 2, 3)),),
            quotas=(),
        ),
        "nothing but a service": replace(bare, services=first, known=(), curves=(), quotas=()),
        "one point a curve": replace(
            bare, curves=tuple(curve_of(s.id, half=1.0, steep=2.0, answers=(1,)) for s in whole.services), quotas=()
        ),
        "only decisions": replace(
            bare,
            services=decisions_first,
            known=(whole.known[5], whole.known[0]),
            curves=(whole.curves[5], whole.curves[0]),
            quotas=whole.quotas[-1:],
        ),
        "twelve services": _twelve(whole),
        "nothing succeeded": _failed(whole),
        "huge counts": replace(_huge(whole), all_cases=ALL_CASES),
        "single counts": _single(whole),
        "all gates passed": replace(whole, gates=(Gate("determined@200>100%", True, "s1", 1.0, 1.0),)),
        **{f"hostile: {kind}": _named(replace(whole, all_cases=ALL_CASES), name) for kind, name in HOSTILE.items()},
    }


def _twelve(report: AuditReport) -> AuditReport:
    """Twelve services whose curves end at the same height."""
    services = tuple(
        replace(
            report.services[0],
            id=f"s{i}",
            name=f"Robust (ℓ1), radius 0.{i}",
            short=f"robust 0.{i}",
            role="also audited",
        )
        for i in range(2, 13)
    )
    ids = [service.id for service in (report.services[0], *services)]
    curves = tuple(curve_of(id, half=6 + i, steep=3.0) for i, id in enumerate(ids))
    known = tuple(known_after(id, 30, minimum=30, paper=62) for id in ids)
    return replace(
        report, services=(report.services[0], *services), curves=curves, known=known, quotas=(quota_of(curves[0], 0.6),)
    )


def _failed(report: AuditReport) -> AuditReport:
    """No attack succeeded, nothing was determined, the gate could not be measured."""
    nothing = Cost(None, None, None, False, None)
    rows = tuple(
        replace(row, explained=nothing, with_labels=nothing, length=None, invalid=None) for row in all_defences().rows
    )
    shares = ("median", "low", "high", "highest", "first")
    curves = tuple(
        replace(c, **dict.fromkeys(shares, (0.0,) * len(c.answers)), known_at=None, undecided=0.25)
        for c in report.curves
    )
    return replace(
        report,
        known=tuple(never_known(service.id, "the service refused " + "again and " * 20) for service in report.services),
        curves=curves,
        quotas=tuple(replace(quota_of(curve, 0.6), adaptive=None) for curve in curves if curve.population == "all"),
        maps=(replace(report.maps[0], line=None),),
        proof=None,
        defences=replace(all_defences(), rows=tuple(replace(row, unanswered=1.0) for row in rows)),
        gates=(
            Gate("determined@1000000>0%", False, None, None, 0.0),
            Gate("answers-to-extract<20", True, "s1", None, 20.0),
        ),
    )


def _huge(report: AuditReport) -> AuditReport:
    """A million of everything that is counted."""
    million = 1_000_000
    cost = Cost(million, million, "labels", False, 1e-300)
    answers = (1, 10, 1000, million)
    curves = tuple(curve_of(service.id, 5e5, 2.0, answers) for service in report.services)
    known = tuple(
        replace(
            known_after(s.id, million, million, million),
            labels=million,
            low=million,
            high=3 * million,
            paper_labels=million,
        )
        for s in report.services
    )
    rows = tuple(
        replace(row, explained=cost, with_labels=cost, length=1e6, invalid=1.0, unanswered=0.999)
        for row in all_defences().rows
    )
    return replace(
        report,
        subject=replace(report.subject, cases=million, cases_left_out=million, yes_share=1e-9),
        known=known,
        curves=curves,
        headline=million,
        quotas=tuple(quota_of(curve, 0.6) for curve in curves),
        maps=tuple(_stretched(m) for m in report.maps),
        defences=replace(all_defences(), limit=million, rows=rows, cases=million),
    )


def _stretched(one: Any) -> Any:
    """The same map in values of a million million and of a millionth."""
    x, y = 1e12, 1e-6

    def point(p: tuple[float, float]) -> tuple[float, float]:
        return p[0] * x, p[1] * y

    questions = tuple(
        replace(q, x=q.x * x, y=q.y * y, explanation=None if q.explanation is None else point(q.explanation))
        for q in one.questions
    )
    return replace(
        one,
        x_range=tuple(x * end for end in one.x_range),
        y_range=tuple(y * end for end in one.y_range),
        line=tuple(point(p) for p in one.line),
        questions=questions,
    )


def _single(report: AuditReport) -> AuditReport:
    """One of everything that is counted."""
    curve = replace(
        curve_of("s1", 0.5, 4.0, (1,)), orders=1, judged=1, askable=1, median=(1.0,), low=(1.0,), high=(1.0,)
    )
    one = Cost(1, 0, "theorem", True, 0.0)
    row = replace(all_defences().rows[0], explained=one, with_labels=one)
    return replace(
        report,
        subject=replace(report.subject, cases=1, yes_share=1.0),
        services=report.services[:1],
        known=(known_after("s1", 1, 1, 1),),
        curves=(replace(curve, highest=(1.0,), first=(1.0,), known_at=1),),
        headline=1,
        quotas=(Quota("s1", 0.6, 0, False, 0.0, 1.0, 1, 1),),
        maps=report.maps[:1],
        defences=replace(all_defences(), limit=1, runs=1, cases=1, rows=(row,)),
    )


def _named(report: AuditReport, name: str) -> AuditReport:
    """A text from outside in every place that takes one."""
    cut = name[:26].encode("ascii", "replace").decode()
    subject = replace(
        report.subject,
        model=name,
        features=(*(f"{name} {i}" for i in range(3)), *report.subject.features[3:]),
        classes=(name, f"not {name}"),
        data=name,
    )
    return replace(
        report,
        subject=subject,
        services=tuple(replace(s, name=f"{name} {s.id}", spec=name, short=cut) for s in report.services),
        known=(*report.known[:4], never_known("s5", name), report.known[5]),
        maps=tuple(replace(m, across=f"{name} {i % 2}", up=f"{name} {1 + i % 2}") for i, m in enumerate(report.maps)),
        defences=replace(all_defences(), rows=tuple(replace(row, name=name, short=cut) for row in all_defences().rows)),
        gates=(replace(report.gates[0], expression=name),),
        provenance=replace(report.provenance, command=name, packages={name: name}),
    )
