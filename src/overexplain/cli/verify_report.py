"""`overexplain verify FOLDER --report AUDIT.json`: a report's determined shares, derived again from the proofs beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

from overexplain._files import read_regular
from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.determining.evidence import figures_to_prove
from overexplain.cli.output import print_json
from overexplain.cli.proofs import REPORT, Files
from overexplain.cli.terms import Terms
from overexplain.cli.verify import Request, check, complain
from overexplain.errors import CertificateInvalid, InvalidInput
from overexplain.log.querylog import QueryLog
from overexplain.report.words import counted

_NAME = re.compile(r"(s[0-9]+)-after-([0-9]+)\.proofs\.jsonl")


@dataclass(frozen=True)
class Rederived:
    """One figure of the report, and the same from proofs: how many cases are proved to be determined, of how many.

    `unsettled` is the share that the report leaves open: it may turn out determined.
    """

    service: str
    answers: int
    reported: float
    unsettled: float
    proved: int
    cases: int

    @property
    def holds(self) -> bool:
        """True if the proofs give the share that the report states: to the last bit, or within what it leaves open."""
        share = self.proved / self.cases if self.cases else -1.0
        return share == self.reported or self.reported < share <= self.reported + self.unsettled


def run_verify_report(folder: Path, path: Path | None, as_json: bool) -> None:
    """Check every proof in the folder, count, compare with the report; raises CertificateInvalid if a figure does not follow."""
    report = read_report(path or folder / REPORT)
    figures = list(_figures(folder))
    missing = set(figures_to_prove(report)) - {(files.service, files.answers) for files in figures}
    if figures and missing:
        id, answers = min(missing)
        raise CertificateInvalid(
            f"{folder}: no proofs of {id} after {counted(answers, 'answer')}, which the report quotes"
        )
    found = [_rederived(files, report) for files in figures]
    if not found:
        raise InvalidInput(f"{folder}: no proofs of a report; overexplain audit --proofs FOLDER writes them")
    if as_json:
        told = [
            {"service": f.service, "answers": f.answers, "reported": f.reported, "proved": f.proved, "cases": f.cases}
            for f in found
        ]
        print_json({"figures": told, "hold": all(f.holds for f in found)})
    else:
        for line in _lines(found, report):
            typer.echo(line)
    wrong = next((f for f in found if not f.holds), None)
    if wrong is not None:
        raise CertificateInvalid(
            f"{wrong.service} after {counted(wrong.answers, 'answer')}: the report says {wrong.reported!r} of the decisions, "
            f"proved are {wrong.proved:,} of {wrong.cases:,}"
        )


def read_report(path: Path) -> AuditReport:
    """The report in a JSON file."""
    try:
        return AuditReport.from_json(read_regular(path))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _figures(folder: Path) -> Iterator[Files]:
    if not folder.is_dir():
        raise InvalidInput(f"{folder}: with --report, the proofs are a folder that overexplain audit --proofs wrote")
    found = [match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name))]
    for match in sorted(found, key=lambda m: (int(m[1][1:]), int(m[2]))):
        yield Files(folder, match[1], int(match[2]))


def _rederived(files: Files, report: AuditReport) -> Rederived:
    curve = report.curve_of(files.service)
    if curve is None or files.answers not in curve.answers:
        raise InvalidInput(
            f"{files.proofs}: the report says nothing about {files.service} after {files.answers} answers"
        )
    request = Request(files.proofs, files.log, files.verdicts, files.points, Terms(), (), None, False)
    bench, rows = check(request)
    complain(bench.outcome, bench.claims, request)
    claims, points = bench.claims, bench.points
    assert claims is not None
    assert points is not None
    at = curve.answers.index(files.answers)
    _refuse_other_evidence(files, report, rows, len(points))
    if claims.undecided > curve.undecided * len(points) or claims.claimed + claims.undecided != len(points):
        raise CertificateInvalid(
            f"{files.verdicts}: {claims.claimed:,} of {len(points):,} cases have a verdict; the report leaves fewer unsettled"
        )
    shares = (curve.low[at], curve.median[at], curve.high[at], curve.highest[at])
    if list(shares) != sorted(shares) or curve.first[at] > curve.highest[at]:
        raise CertificateInvalid(
            f"the report's shares of {files.service} after {files.answers:,} answers contradict each other"
        )
    open_ = min(curve.undecided, curve.first_ceiling[at] - curve.first[at])
    return Rederived(files.service, files.answers, curve.first[at], open_, claims.determined, len(points))


def _refuse_other_evidence(files: Files, report: AuditReport, rows: int, cases: int) -> None:
    """Raise if the files are about other answers than the report: fewer or more of them, other terms, other cases."""
    log, service, curve = QueryLog.load(files.log), report.service(files.service), report.curve_of(files.service)
    assert curve is not None
    if rows != files.answers or cases != curve.judged:
        has = f"{counted(rows, 'answer')} and {counted(cases, 'case')}"
        raise CertificateInvalid(f"{files.log}: {has}; the report is about {files.answers:,} and {curve.judged:,}")
    if service.published is not None and any(terms.to_dict() != service.published for terms in log.mechanisms):
        raise CertificateInvalid(
            f"{files.log}: its answers were given on other terms than the report's {service.short}"
        )
    if len(log.explained) and not service.explains:
        raise CertificateInvalid(f"{files.log}: has explanations; the report's {service.short} gives none")


def _lines(found: list[Rederived], report: AuditReport) -> Iterator[str]:
    if all(figure.holds for figure in found):
        subject = "The figure follows" if len(found) == 1 else f"All {len(found)} figures follow"
        yield f"{subject} from proofs that hold in exact arithmetic."
    else:
        yield f"{sum(not figure.holds for figure in found)} of {len(found)} figures do not follow from their proofs."
    yield ""
    yield f"{'service':26} {'answers':>8} {'reported':>10} {'proved':>17}"
    for f in found:
        name = report.service(f.service).short
        reported = f"{'>= ' * (f.unsettled > 0)}{100 * f.reported:.2f} %"
        yield f"{name:26} {f.answers:>8,} {reported:>10} {f'{f.proved:,} of {f.cases:,}':>17}"
