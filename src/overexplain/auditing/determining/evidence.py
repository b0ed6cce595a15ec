"""What proofs of an audit's figures are made from: the answers of one order, and the cases judged by them."""

from __future__ import annotations

from dataclasses import dataclass

from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.gates import parse_gate
from overexplain.auditing.units import Units
from overexplain.geometry.arrays import FloatArray
from overexplain.log.querylog import QueryLog


@dataclass(frozen=True, eq=False)
class Evidence:
    """The first order of a curve at one of its numbers of answers.

    service  id of the service
    answers  how many answers were given
    log      these answers
    judged   the unseen cases, in the audited units
    share    what the report says of them: `Curve.first` at `answers`
    units    the audited units, those of the log and of the cases
    """

    service: str
    answers: int
    log: QueryLog
    judged: FloatArray
    share: float
    units: Units


def figures_to_prove(report: AuditReport) -> list[tuple[str, int]]:
    """The (service, answers) whose determined share is proved: audited services and decisions alone, where the report quotes them.

    Quoted are the headline, the quotas, and what gates ask about.
    """
    asked = [parse_gate(gate.expression).answers for gate in report.gates]
    figures = []
    for service in report.services:
        curve, allowed = report.curve_of(service.id), report.quota_of(service.id)
        if curve is None or (service.role == "comparison" and service.explains):
            continue
        wanted = {report.headline, *asked, *([] if allowed is None else [allowed.answers])}
        figures += [(service.id, answers) for answers in curve.answers if answers in wanted]
    return figures
