"""`overexplain monitor`: what has a log given away, to whom, and who asks as an attacker would?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.auditing.monitoring.gates import check_gates, gated
from overexplain.auditing.monitoring.monitor import monitor
from overexplain.auditing.monitoring.monitor_report import MonitorReport
from overexplain.cli.loading import load_yes_or_no
from overexplain.cli.log_files import read_mapping
from overexplain.cli.main import GATE_FAILED, say
from overexplain.cli.output import bar
from overexplain.cli.points import open_points
from overexplain.cli.terms import Terms
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.log.blocks import as_columns, read_blocks
from overexplain.models.linear import LinearModel
from overexplain.report.words import counted
from overexplain.scale.columns import listed


@dataclass(frozen=True)
class Request:
    """What the command line asked for. `mapping` is as typed: 'client=client_id,y=decision'."""

    log: Path
    by: str | None
    mapping: Sequence[str]
    model: Path | None
    reference: Path | None
    terms: Terms
    detail: int
    quota: int | None
    fail_on: Sequence[str]
    seed: int
    as_json: bool


def run_monitor(request: Request) -> int:
    """Read, monitor, print; the exit code: 0, or 1 if a gate failed."""
    check_gates(request.fail_on)
    mapping = read_mapping(request.mapping)
    model = None if request.model is None else load_yes_or_no(request.model)
    reference = None if request.reference is None else _reference(request, mapping, model)
    with warnings.catch_warnings(record=True) as caught, bar("reading") as show:
        warnings.simplefilter("always", UserWarning)
        report = monitor(
            request.log, request.by, model=model, reference=reference, detail=request.detail,
            terms=request.terms.mechanism, mapping=mapping, quota=request.quota, rng=request.seed, progress=show,
        )  # fmt: skip
    for warning in caught:
        say(f"note: {warning.message}")
    report = gated(report, request.fail_on)
    if report.log.unstated:
        say(
            f"note: {counted(report.log.unstated, 'explanation')} in {request.log} without stated terms: not used "
            "(--distance states them)"
        )
    _show(report, request.as_json)
    return 0 if report.passed else GATE_FAILED


def _reference(request: Request, mapping: dict[str, Any] | None, model: LinearModel | None) -> FloatArray:
    """The reference points, in the order of the log's features."""
    assert request.reference is not None
    features = None if model is None else model.features
    is_table = request.log.suffix.lower() != ".jsonl"
    columns = as_columns(mapping, features if is_table else None)
    first = next(iter(read_blocks(request.log, columns, request.terms.mechanism)))
    if first.dimension is None:
        raise InvalidInput(f"{request.log} has no rows: there is nothing to monitor")
    with open_points(request.reference, first.features, first.dimension) as points:
        if points.extras:
            say(f"note: {request.reference}: {listed(points.extras)} not used")
        blocks = [block.points for block in points.blocks]
    if not blocks:
        raise InvalidInput(f"{request.reference} has no points")
    return np.vstack(blocks)


def _show(report: MonitorReport, as_json: bool) -> None:
    if as_json:
        import typer

        typer.echo(report.to_json())
        return
    from overexplain.report.monitored import print_monitored
    from overexplain.report.terminal import terminal

    print_monitored(report, terminal())
