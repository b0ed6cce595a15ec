"""What an audit counted among all rows of the data, as a paragraph."""

from __future__ import annotations

from itertools import groupby

from overexplain.auditing.audit_report import AllCases, AuditReport
from overexplain.report.audit_sections import service_name
from overexplain.report.audit_text import capital
from overexplain.report.words import counted, share_range


def all_cases(report: AuditReport) -> str:
    """How many rows of all are determined, for every figure counted; empty if none was."""
    found = report.all_cases
    if not found:
        return ""
    of_all = f"Of all {counted(found[0].cases, 'row')} of the data, asked ones included,"
    by_service = {
        id: ", ".join(_figure(figure) for figure in figures)
        for id, figures in groupby(found, key=lambda figure: figure.service)
    }
    if len(by_service) == 1:
        return f"{of_all} the first order of asking determined {by_service[found[0].service]}."
    listed = [f"{capital(service_name(report.service(id)))}: {figures}." for id, figures in by_service.items()]
    return " ".join([f"{of_all} so many are determined by the first order of asking.", *listed])


def _figure(figure: AllCases) -> str:
    unsettled = f", with {figure.undecided:,} unsettled" if figure.undecided else ""
    share = share_range(figure.share, figure.at_most)
    least = "at least " * bool(figure.undecided)
    return f"{least}{figure.determined:,} ({share}) after {counted(figure.answers, 'answer')}{unsettled}"
