"""`overexplain log show`: rows of a log, a line each; one alone in full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overexplain.cli.log_files import load_log
from overexplain.cli.output import print_json
from overexplain.errors import InvalidInput
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Row
from overexplain.report.logged_rows import Shown, print_row, print_rows

USUAL = 20


@dataclass(frozen=True)
class Request:
    """What the command line asked for; `rows` is where to start and stop (as for a slice), or one row."""

    log: Path
    mapping: Sequence[str]
    count: int | None
    rows: tuple[int | None, int | None] | int | None
    as_json: bool


def run_show(request: Request) -> None:
    """Read, choose, print."""
    log = load_log(request.log, request.mapping)
    numbers = _chosen(request, len(log))
    rows = [log[i] for i in numbers]
    if request.as_json:
        print_json({"log": _entries(request.log, log, numbers, rows)})
        return
    from overexplain.report.terminal import terminal

    names = log.features or tuple(f"x{i}" for i in range(log.dimension or 0))
    shown = Shown(str(request.log), len(log), names, numbers, rows)
    (print_row if isinstance(request.rows, int) else print_rows)(shown, terminal())


def _chosen(request: Request, total: int) -> range:
    if isinstance(request.rows, int):
        if not -total <= request.rows < total:
            raise InvalidInput(f"{request.log} has {total:,} rows, counted from 0; there is no row {request.rows}")
        number = request.rows % total
        return range(number, number + 1)
    start, stop = request.rows or (None, None)
    numbers = range(total)[start:stop]
    count = request.count if request.count is not None or request.rows is not None else USUAL
    return numbers if count is None else numbers[:count]


def _entries(path: Path, log: QueryLog, numbers: range, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "file": str(path),
        "rows": len(log),
        "dimension": log.dimension,
        "features": None if log.features is None else list(log.features),
        "mechanism": None if log.mechanism is None else log.mechanism.to_dict(),
        "shown": [_entry(i, row) for i, row in zip(numbers, rows, strict=True)],
    }


def _entry(number: int, row: Row) -> dict[str, Any]:
    return {
        "row": number,
        "point": row.point.tolist(),
        "label": row.label,
        "explanation": None if row.explanation is None else row.explanation.tolist(),
        "status": row.status.text,
        "mechanism": None if row.mechanism is None else row.mechanism.to_dict(),
        "client": row.client,
        "time": row.time,
        "source": row.source,
    }
