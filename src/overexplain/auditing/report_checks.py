"""Whether the parts of a report that was read fit together, as its schema alone does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from overexplain.errors import InvalidInput

if TYPE_CHECKING:
    from overexplain.auditing.audit_report import AuditReport, Curve, WorkedProof

LETTERS = frozenset("YN.=?")
LARGEST = 1e18
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+|/[1-9][0-9]*)?", re.ASCII)


def refuse_misfits(report: AuditReport) -> None:
    """Raise if a part refers to what is not there, or is no part that an audit makes; the message says which."""
    wrong = next(_misfits(report), None)
    if wrong is not None:
        raise InvalidInput(f"not an audit report: {wrong}")


def _misfits(report: AuditReport) -> Iterator[str]:
    ids = [service.id for service in report.services]
    if not ids or len(set(ids)) < len(ids):
        yield "services need one entry or more, each with an id of its own"
    for where, service in _references(report):
        if service not in ids:
            yield f"{where} is about the service {service!r}, which is none of its services"
    for i, curve in enumerate(report.curves):
        yield from (f"curves[{i}].{wrong}" for wrong in _of_curve(curve))
    for i, quota in enumerate(report.quotas):
        if not all(0 <= share <= 1 for share in (quota.target, quota.highest, quota.beyond or 0.0)):
            yield f"quotas[{i}] has a share that is not from 0 to 1"
    for i, gate in enumerate(report.gates):
        if not all(abs(value) <= LARGEST for value in (gate.allowed, gate.found or 0.0)):
            yield f"gates[{i}] has a number that is neither a share nor a count"
    for i, count in enumerate(report.all_cases):
        if not 0 <= count.determined <= count.determined + count.undecided <= count.cases or not count.cases:
            yield f"all_cases[{i}] determines more cases than there are"
    for i, drawn in enumerate(report.maps):
        for j, panel in enumerate(drawn.panels):
            widths = {len(row) for row in panel.grid}
            if (
                len(panel.grid) < 2
                or len(widths) != 1
                or min(widths) < 2
                or not LETTERS.issuperset("".join(panel.grid))
            ):
                yield f"maps[{i}].panels[{j}].grid must be rows of one length of the letters Y, N, ., = and ?"
    if report.proof is not None:
        yield from _of_proof(report.proof, len(report.maps[0].questions) if report.maps else 0)


def _references(report: AuditReport) -> Iterator[tuple[str, str]]:
    """Where a service is named, and its id."""
    for name in ("known", "curves", "quotas", "all_cases"):
        yield from ((f"{name}[{i}]", part.service) for i, part in enumerate(getattr(report, name)))
    yield from ((f"gates[{i}]", gate.service) for i, gate in enumerate(report.gates) if gate.service is not None)
    if report.defences is not None:
        yield "defences", report.defences.service


def _of_curve(curve: Curve) -> Iterator[str]:
    size = len(curve.answers)
    if not size or any(n >= m for n, m in pairwise(curve.answers)) or curve.answers[0] < 0:
        yield "answers must be rising whole numbers, one or more"
    may_be_empty = ("at_most", "median_at_most", "high_at_most", "first_at_most")
    for name in ("median", "low", "high", "highest", "first", *may_be_empty):
        shares = getattr(curve, name)
        if len(shares) != size and (shares or name not in may_be_empty):
            yield f"{name} has {len(shares)} entries, answers {size}"
        if not all(0 <= share <= 1 for share in shares):
            yield f"{name} has a share that is not from 0 to 1"


def _of_proof(proof: WorkedProof, questions: int) -> Iterator[str]:
    texts = [proof.x, proof.y, *(text for row in proof.rows for text in (row.weight, row.x, row.y))]
    if odd := next((text for text in texts if not _NUMBER.fullmatch(text)), None):
        yield f"proof must have decimals and fractions as texts, got {odd[:60]!r}"
    if not proof.rows or not all(1 <= row.question <= questions for row in proof.rows):
        yield "proof is about questions that the first map does not have"
