"""`overexplain log convert` and `merge`: a log in another format, several logs as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.cli.log_files import load_log
from overexplain.cli.logs import refuse_to_overwrite
from overexplain.cli.main import say
from overexplain.cli.output import print_json
from overexplain.cli.terms import Terms
from overexplain.errors import InvalidInput
from overexplain.log.dice import files as dice
from overexplain.log.files import check_written
from overexplain.log.merge import merge_logs
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status
from overexplain.log.store import imported
from overexplain.log.terms import with_terms
from overexplain.report.logged import escaped
from overexplain.report.words import counted


@dataclass(frozen=True)
class Request:
    """What the command line asked for: one log to convert, or several to merge."""

    logs: Sequence[Path]
    output: Path
    mapping: Sequence[str]
    terms: Terms
    as_json: bool


def run_convert(request: Request) -> None:
    """Read, write, print."""
    (log,) = _read(request)
    _write(log, request, f"from {request.logs[0]}", {})


def run_merge(request: Request) -> None:
    """Read all, merge, write, print."""
    logs = _read(request)
    merged = merge_logs(logs, [str(path) for path in request.logs])
    if len({log.mechanism for log in logs if log.mechanism is not None}) > 1:
        say("note: the logs state different terms for answers to come, the merged one states none (rows keep theirs)")
    again = sum(map(len, logs)) - len(merged)
    once = f"; {counted(again, 'row')} found in an earlier one, too, counted once" if again else ""
    _write(merged, request, f"from {counted(len(logs), 'log')}{once}", {"found_again": again})


def _read(request: Request) -> list[QueryLog]:
    check_written(request.output)
    refuse_to_overwrite(request.logs, [request.output], "the logs and the output")
    terms = request.terms.mechanism
    logs = [load_log(path, request.mapping, terms) for path in request.logs]
    return logs if terms is None else [with_terms(log, terms) for log in logs]


def _write(log: QueryLog, request: Request, source: str, more: dict[str, Any]) -> None:
    """Write the log and say what was written, and what was not because the format has no place for it."""
    is_dice = request.output.suffix.lower() == ".json"
    rows = int(np.isin(log.status, (Status.ASKED, Status.NONE)).sum()) if is_dice else len(log)
    is_run = request.output.suffix.lower() == ".sqlite"
    lost = dice.left_out(log) if is_dice else imported.left_out(log) if is_run else ()
    if len(log) and not rows:
        raise InvalidInput(
            f"{request.output}: a file of DiCE holds explanations, but none was asked for; write .jsonl or .csv"
        )
    log.save(request.output)
    if lost:
        say(
            f"note: {request.output}: {'a run' if is_run else 'a file of DiCE'} cannot hold {', '.join(lost)}; left out"
        )
    if request.as_json:
        files = {"files": [str(path) for path in request.logs], "output": str(request.output)}
        print_json({"log": {**files, "rows": len(log), "written": rows, **more, "left_out": list(lost)}})
        return
    from overexplain.report.terminal import print_text, terminal

    some = counted(rows, "row") if rows == len(log) else f"{rows:,} of {counted(len(log), 'row')}"
    print_text(escaped(f"{request.output}: {some} {source}."), terminal())
