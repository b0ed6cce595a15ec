"""What a monitor found, for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from overexplain.auditing.monitoring.monitor_report import (
    NO_CLIENT,
    Alarm,
    Exposure,
    Gate,
    Kind,
    MonitorReport,
)
from overexplain.report.audit_text import percent_range
from overexplain.report.terminal import print_pairs, print_text
from overexplain.report.words import counted, in_ascii, percent, share_range, small

if TYPE_CHECKING:
    from rich.console import Console

NAME = 18
"""Columns that a client's name gets."""

MOST_ALARMS = 20
WORDS: dict[Kind, str] = {
    "holds-model": "holds the model",
    "boundary": "near boundary",
    "far-out": "far out",
    "own-explanations": "own advice",
    "foreign-explanations": "others' advice",
    "volume": "volume",
}


def print_monitored(report: MonitorReport, console: Console) -> None:
    """Print the verdict, who knows how much, the alarms, the gates, and what the columns mean."""
    print_text(_verdict(report), console, style="bold")
    console.print()
    print_text(_log(report), console)
    print_text(_alone(report), console)
    console.print()
    _print_table(report, console)
    console.print()
    _print_alarms(report, console)
    if report.gates:
        console.print()
        for gate in report.gates:
            line = f"{'passed' if gate.passed else 'FAILED'}  {shown(gate.expression, 60)}{_not_told(report, gate)}"
            console.print(textwrap.fill(line, console.width, subsequent_indent=" " * 8), soft_wrap=True)
    console.print()
    print_pairs(_meaning(report), console)


def shown(name: str, width: int = NAME) -> str:
    """A name from outside as one short piece of plain text: control and direction marks become '?'.

    >>> shown("ann"), shown("a\\x1b[31m\\u202eb"), shown("x" * 10_000, 8)
    ('ann', 'a?[31m?b', 'xxxxx...')
    """
    from rich.cells import cell_len, set_cell_size

    plain = "".join(c if c.isprintable() else "?" for c in name[: 4 * width])
    if cell_len(plain) <= width and len(name) <= 4 * width:
        return plain
    return set_cell_size(plain, width - 3).rstrip() + "..."


def padded(name: str, width: int = NAME) -> str:
    """A name and as many spaces as fill its columns; a letter may take two."""
    from rich.cells import set_cell_size

    return set_cell_size(name, width)


def _verdict(report: MonitorReport) -> str:
    pooled, when = report.pooled, report.pooled.recoverable_at
    if when is None:
        sentence = "This log leaves more than one model."
        if pooled.determined:
            sentence += f" It determines {_share(pooled)} of decisions."
        return sentence
    asked = counted(when.explanations, "explanation") if when.explanations else counted(when.requests, "decision")
    one = "one model alone fits" if pooled.known == "exactly" else "only models close to one another fit"
    return f"This log gives the model away: after {asked}, {one}."


def _log(report: MonitorReport) -> str:
    log, when = report.log, report.pooled.recoverable_at
    span = f" ({log.first} to {log.last})" if log.first else ""
    said = (
        f"{counted(log.rows, 'request')} of {counted(log.clients, 'client')}{span}: {counted(log.labels, 'decision')}, "
        f"{counted(log.explanations, 'explanation')}."
    )
    if log.unstated:
        said += f" {counted(log.unstated, 'explanation')} without stated terms {'is' if log.unstated == 1 else 'are'} not used."
    if when is not None:
        by = f" ({when.time})" if when.time else ""
        said += (
            f" All clients together could rebuild the model from row {when.row:,} on{by}: after "
            f"{counted(when.requests, 'request')}, with answers to {counted(when.clients, 'client')}."
        )
    return said


def _alone(report: MonitorReport) -> str:
    if not report.log.explanations:
        return "No client got an explanation."
    if not report.alone and any(c.client == NO_CLIENT and c.exposure.known == "exactly" for c in report.clients):
        return "Requests without a client leave one model: whether one client sent them all, the log does not say."
    if not report.alone:
        return "No client's own explanations leave one model."
    verb = "was given" if report.alone == 1 else "were given"
    return f"{counted(report.alone, 'client')} {verb} enough explanations to rebuild the model alone."


HEADS = ("requests", "expl.", "rank", "determined", "angle", "known", "from row")


def _print_table(report: MonitorReport, console: Console) -> None:
    told = [report.pooled, *(c.exposure for c in report.clients)]
    rows = [_cells(one) for one in told]
    widths = [max(len(row[i]) for row in (HEADS, *rows)) for i in range(len(HEADS))]
    width = min(NAME, console.width - sum(widths) - len(widths))
    names = ["all together", *(c.client for c in report.clients)]
    for name, row in zip(("who", *names), (HEADS, *rows), strict=True):
        cells = " ".join(f"{cell:>{column}}" for cell, column in zip(row, widths, strict=True))
        line = f"{padded(shown(name, width), width)} {cells}".rstrip()
        console.print(line, style="bold" if row is HEADS else None, soft_wrap=True)
    rest = report.log.clients - len(report.clients)
    if rest > 0 and report.clients:
        console.print(f"and {counted(rest, 'client')} less exposed", soft_wrap=True)


def _cells(told: Exposure) -> tuple[str, ...]:
    when = told.recoverable_at
    return (
        f"{told.requests:,}",
        f"{told.explanations:,}",
        f"{told.rank}/{told.complete}",
        _share(told),
        _angle(told.angle),
        told.known,
        "" if when is None else f"{when.row:,}",
    )


def _angle(angle: float | None) -> str:
    return small(angle) if angle is None or angle < 0.01 else f"{angle:.2f}"


def _share(told: Exposure) -> str:
    if told.determined is None:
        return "-"
    return in_ascii(share_range(told.determined, told.ceiling))


def _print_alarms(report: MonitorReport, console: Console) -> None:
    if not report.alarms:
        none = "No alarms among those evaluated." if report.yardstick.not_evaluated else "No alarms."
        console.print(none)
    else:
        total = sum(report.alarm_counts.values())
        console.print(f"{counted(total, 'alarm')} by {counted(report.alarmed, 'client')}:", soft_wrap=True)
        for alarm in report.alarms[:MOST_ALARMS]:
            text = textwrap.fill(_alarm(alarm), max(20, console.width - NAME - 1), break_on_hyphens=False)
            gap = "\n" + " " * (NAME + 1)
            console.print(f"{padded(shown(alarm.client))} {text.replace(chr(10), gap)}", soft_wrap=True)
        if total > MOST_ALARMS:
            console.print(f"and {counted(total - MOST_ALARMS, 'more alarm')} (--json has them)", soft_wrap=True)
    if skipped := report.yardstick.not_evaluated:
        names = ", ".join(WORDS[kind] for kind in skipped)
        print_text(f"Not evaluated: {names} ({_why(report)}).", console)


def _not_told(report: MonitorReport, gate: Gate) -> str:
    """Why a gate failed without a value."""
    if gate.passed or gate.found is not None:
        return ""
    if report.log.unstated:
        return ": cannot be told, some explanations state no terms"
    if "determined" not in gate.expression:
        return ": cannot be told, some requests name no client"
    of_clients = gate.expression.strip().startswith("client-")
    told = [c.exposure for c in report.clients] if of_clients else [report.pooled]
    open_ = [(one.determined, one.ceiling) for one in told if one.determined is not None and one.ceiling is not None]
    if not open_:
        return ": cannot be told, there are no reference points"
    share, most = max(open_, key=lambda pair: pair[1])
    return f": cannot be told: {percent_range(share, most)} are determined"


def _why(report: MonitorReport) -> str:
    reasons = []
    if report.yardstick.population is None:
        reasons.append("too few requests of other clients to say what is usual")
    elif "boundary" in report.yardstick.not_evaluated:
        reasons.append("no boundary is known")
    if "volume" in report.yardstick.not_evaluated:
        reasons.append("no quota was given")
    if "holds-model" in report.yardstick.not_evaluated:
        unstated = report.log.unstated
        reasons.append("some explanations state no terms" if unstated else "some requests name no client")
    return "; ".join(reasons)


def _alarm(alarm: Alarm) -> str:
    at = f"row {alarm.row:,}"
    if alarm.kind == "volume":
        return f"{at}: {percent(alarm.usual)} of its quota of {alarm.limit:,.0f} requests used ({alarm.total:,} in all)"
    if alarm.kind == "holds-model":
        left = "leave one" if alarm.limit is None else f"leave only models within {alarm.limit:g} radians"
        told = counted(alarm.count, "explanation") if alarm.count else "the decisions"
        return f"{at}: holds the model: {told} in its first {counted(alarm.requests, 'request')} {left}"
    what = {
        "boundary": f"nearer to the boundary than {percent(1 - alarm.usual)} of others' questions",
        "far-out": f"more than {alarm.limit or 0.0:,.3g} spreads away from what is usual",
        "own-explanations": "repeat an explanation it had got",
        "foreign-explanations": "repeat an explanation that another client had got",
    }[alarm.kind]
    return (
        f"{at}: {alarm.count} of its first {counted(alarm.requests, 'question')} {what} (by chance: {small(alarm.chance)}; "
        f"{alarm.total:,} in all)"
    )


def _meaning(report: MonitorReport) -> list[tuple[str, str]]:
    points = {
        "given": f"the {report.reference_points:,} reference points",
        "held out": f"{report.reference_points:,} questions of the log, not counting a client's own",
        None: "the reference points (there are none)",
    }[report.reference]
    boundary = {
        "model": "the given model",
        "recovered": "the model that the log leaves",
        "fitted": "a model fitted to the log's decisions",
        None: "a model (none is known)",
    }[report.compared_with]
    return [
        ("rank", f"directions of the boundary shown by exact explanations; {report.pooled.complete} leave one model"),
        ("determined", f"share of {points}, whose decision is certain from these answers alone"),
        (
            "angle",
            f"at most so far (radians, features in units of their spread) are models that fit from {boundary}; -: no bound",
        ),
        (
            "known",
            f"exactly: one model fits; closely: all within {report.closely:g} radians; from the row given on",
        ),
    ]
