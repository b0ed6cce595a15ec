"""`overexplain audit`: a model and its cases in, one report out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from overexplain.auditing.audit import audit
from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.determining.evidence import Evidence
from overexplain.cli.all_cases import Count, count_all, open_counted
from overexplain.cli.dataset import read_sample
from overexplain.cli.loading import load_any
from overexplain.cli.main import GATE_FAILED, say
from overexplain.cli.output import bar, processors, write_texts
from overexplain.cli.policy import Policy
from overexplain.cli.proofs import refuse_used_folder, write_evidence
from overexplain.errors import InvalidInput
from overexplain.models.linear import LinearModel
from overexplain.report.render import refuse_unknown_kind, render


@dataclass(frozen=True)
class Request:
    """What the command line asked for; `policy` has what may also stand in a policy file, both together."""

    model: Path
    data: Path
    policy: Policy
    reports: tuple[Path, ...]
    proofs: Path | None
    count: Count | None
    threshold: float | None
    allow_pickle: bool
    as_json: bool


def run_audit(request: Request) -> int:
    """Read, audit, write, print; 1 if a gate failed."""
    _refuse_odd_files(request)
    model = load_any(request.model, request.threshold, request.allow_pickle)
    if not isinstance(model, LinearModel):
        from overexplain.cli.audit_multiclass import run_multiclass

        return run_multiclass(request, model, _command(request))
    dataset = None if request.count is None else open_counted(request.count, request.data, model)
    sample = read_sample(request.data, model, request.policy.options.get("seed", 0))
    cases = sample.rows
    kept: list[Evidence] = []
    with bar("auditing") as show:
        report = audit(
            model,
            cases,
            **request.policy.options,
            name=request.data.name,
            left_out=sample.left_out,
            drawn_from=sample.units if sample.left_out else None,
            command=_command(request),
            keep=kept.append if request.proofs is not None or request.count is not None else None,
            workers=processors(cases.size),
            progress=show,
        )
    _say_what_was_not_looked_at(report, request.policy.answers)
    if request.count is not None and dataset is not None:
        report = count_all(request.count, report, kept, dataset)
    if request.proofs is not None:
        write_evidence(request.proofs, kept, report)
    write_reports(report, request.reports)
    if request.as_json:
        typer.echo(report.to_json())
    else:
        _print(report, request)
    return 0 if report.passed else GATE_FAILED


def write_reports(report: AuditReport, paths: Sequence[Path]) -> None:
    """Write the report in the form that every name asks for; a reader sees the old file or the whole new one."""
    write_texts(paths, lambda path: render(report, path))


def _say_what_was_not_looked_at(report: AuditReport, answers: Sequence[int] | None) -> None:
    """A note if numbers of answers were asked for that no curve has, because there are not so many cases."""
    most = max(curve.askable for curve in report.curves)
    beyond = [n for n in answers or () if n > most]
    if beyond:
        say(f"note: {beyond[0]:,} answers were not looked at: of this data at most {most:,} cases can be asked")


def _refuse_odd_files(request: Request) -> None:
    """Before any work: reports have endings that are known, and nothing that is read is written over."""
    for path in request.reports:
        refuse_unknown_kind(path)
    written = [path.resolve() for path in request.reports]
    if len(set(written)) < len(written) or {request.model.resolve(), request.data.resolve()} & set(written):
        raise InvalidInput("MODEL, --data and every --report must be different files")
    if request.proofs is not None:
        refuse_used_folder(request.proofs)


def _command(request: Request) -> str:
    """The command line to repeat the audit, without the folders of its files: those are nobody else's business."""
    words = ["overexplain", "audit", request.model.name, "--data", request.data.name, *request.policy.as_options()]
    words += ["--all-cases"] * (request.count is not None)
    if request.threshold is not None:
        words += ["--threshold", repr(request.threshold)]
    return shlex.join(words)


def _print(report: AuditReport, request: Request) -> None:
    from overexplain.report.audit_terminal import print_audit
    from overexplain.report.terminal import terminal

    console = terminal()
    print_audit(report, console)
    console.print()
    for path in request.reports:
        opens = " (opens offline)" if path.suffix.lower() == ".html" else ""
        console.print(f"report: {path}{opens}", soft_wrap=True)
    if request.proofs is not None:
        console.print(f"proofs: {request.proofs}", soft_wrap=True)
        given = next((path for path in request.reports if path.suffix.lower() == ".json"), None)
        compared = [] if given is None else ["--report", str(given)]
        console.print(
            f"check:  {shlex.join(['overexplain', 'verify', str(request.proofs), *compared])}", soft_wrap=True
        )
    if not report.passed:
        console.print("exit code 1: a gate failed")
