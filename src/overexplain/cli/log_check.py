"""`overexplain log check`: what is in these logs, and does any linear model fit each of them?"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overexplain.auditing.fitted import Fit, look_for_fit
from overexplain.cli.log_files import KINDS, load_log, under_terms, warn_of_whole_moves
from overexplain.cli.main import say
from overexplain.cli.output import bar, print_json
from overexplain.cli.terms import Terms
from overexplain.errors import InvalidInput
from overexplain.log.summary import summarize, summarize_run
from overexplain.report.logged import Checked, print_checked

REFUSED, INCONSISTENT = 3, 4


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    logs: Sequence[Path]
    mapping: Sequence[str]
    terms: Terms
    fit: bool
    time_limit: float
    as_json: bool


def run_check(request: Request) -> int:
    """Read and look at every log, print; 3 if one cannot be read, 4 if no model fits one, else 0."""
    entries, codes = [], {0}
    for k, path in enumerate(request.logs):
        try:
            checked = _check(path, request)
        except (InvalidInput, OSError) as error:
            reason = f"{path}: {error.strerror}" if isinstance(error, OSError) and error.strerror else str(error)
            say(f"error: {reason}")
            entries.append({"file": str(path), "error": reason})
            codes.add(REFUSED)
            continue
        if checked.fit is not None and checked.fit.verdict == "contradiction":
            codes.add(INCONSISTENT)
        entries.append(_entry(checked))
        if not request.as_json:
            _print(checked, k > 0)
    if request.as_json:
        print_json({"logs": entries})
    return REFUSED if REFUSED in codes else max(codes)


def _check(path: Path, request: Request) -> Checked:
    terms = request.terms.mechanism
    kind, run = path.suffix.lower(), None
    log = load_log(path, request.mapping, terms)
    if kind == ".sqlite":
        from overexplain.log.store.run import Run

        with closing(Run.read(path)) as opened:
            run = summarize_run(opened)
    if terms is not None:
        log = under_terms(log, terms, path)
    warn_of_whole_moves(log, path)
    fit: Fit | None = None
    if request.fit and len(log):
        with bar("looking for a model that fits") as show:
            fit = look_for_fit(log, request.time_limit, seen=lambda *rows: show("looking for a model that fits", *rows))
    return Checked(str(path), KINDS.get(kind, kind), summarize(log), fit, run)


def _entry(checked: Checked) -> dict[str, Any]:
    return {
        "file": checked.file,
        "format": checked.kind,
        **checked.found.to_dict(),
        "fit": None if checked.fit is None else checked.fit.to_dict(),
        "run": None if checked.run is None else checked.run.to_dict(),
    }


def _print(checked: Checked, again: bool) -> None:
    from overexplain.report.terminal import terminal

    console = terminal()
    if again:
        console.print()
    print_checked(checked, console)
