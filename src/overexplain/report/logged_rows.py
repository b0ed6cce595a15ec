"""Rows of a log for a terminal of 80 columns: a line each, or one row in full."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from overexplain.auditing.monitoring.times import iso
from overexplain.geometry.arrays import FloatArray
from overexplain.log.rows import Row, Status
from overexplain.log.summary import in_words
from overexplain.report.logged import escaped, print_headline, print_named, short
from overexplain.report.terminal import print_text
from overexplain.report.words import counted

if TYPE_CHECKING:
    from rich.console import Console

CLIENT, LABEL, GAP = 10, 5, "  "
WORDS = {1: "Yes", -1: "No", None: "-"}


@dataclass(frozen=True)
class Shown:
    """Some rows of a log, in order; `names` are the features', `total` how many rows there are in the file."""

    file: str
    total: int
    names: Sequence[str]
    numbers: range
    rows: Sequence[Row]


def print_rows(shown: Shown, console: Console) -> None:
    """Print a line for every row: its number, label, point, what the explanation changes, when and who."""
    if not shown.rows:
        print_text(escaped(f"{shown.file}: {_which(shown)}"), console)
        return
    print_headline(f"{shown.file}: {_which(shown)}", console)
    days = {when[:10] for row in shown.rows if row.time is not None and (when := iso(row.time))}
    clients = any(row.client is not None for row in shown.rows)
    explains = any(row.status != Status.NOT_ASKED for row in shown.rows)
    number = max(3, len(str(shown.numbers[-1])))
    clock = 0 if not days else 8 if len(days) == 1 else 10
    rest = console.width - number - LABEL - (CLIENT + 2 if clients else 0) - (clock + 2 if clock else 0) - 2 * len(GAP)
    point = (rest - len(GAP)) // 2 if explains else rest
    answer = rest - len(GAP) - point
    heads = [f"{'row':>{number}}", _fill("label", LABEL), _fill(f"point ({len(shown.names)})", point)]
    heads += [_fill("explanation", answer)] if explains else []
    heads += [_fill(f"{'UTC' if clock == 8 else 'day':{clock}}", clock)] if clock else []
    heads += ["client"] if clients else []
    console.print(GAP.join(heads).rstrip(), style="bold", soft_wrap=True)
    for i, row in zip(shown.numbers, shown.rows, strict=True):
        cells = [f"{i:>{number}}", _fill(WORDS[row.label], LABEL), _fill(vector(row.point, point), point)]
        cells += [_fill(answer_of(row, shown.names, answer), answer)] if explains else []
        cells += [_fill(_clock(row.time, clock), clock)] if clock else []
        cells += ["" if row.client is None else short(row.client, CLIENT)] if clients else []
        console.print(GAP.join(cells).rstrip(), soft_wrap=True)
    console.print()
    if clock == 8:
        console.print(f"All times are on {min(days)}.", soft_wrap=True)
    if explains:
        console.print("explanation: what it changes, and the new values.", soft_wrap=True)
    console.print(f"--rows {shown.numbers[0]} shows one row in full, --json all that is known.", soft_wrap=True)


def print_row(shown: Shown, console: Console) -> None:
    """Print one row in full: a line for every feature."""
    (row,) = shown.rows
    print_headline(f"{shown.file}: {_which(shown)}", console)
    known = {1: "Yes", -1: "No", None: "not known"}[row.label]
    lines = [("decision", known), ("explanation", _status(row))]
    if row.mechanism is not None:
        lines.append(("terms", in_words(row.mechanism)))
    if row.client is not None:
        lines.append(("client", escaped(row.client)))
    if row.time is not None:
        lines.append(("time", iso(row.time) or f"{row.time!r} s"))
    if row.source is not None:
        lines.append(("source", escaped(row.source)))
    print_named(lines, console)
    console.print()
    print_features(row, shown.names, console)


def print_features(row: Row, names: Sequence[str], console: Console) -> None:
    """Print a line for every feature: its name, its value and, where the explanation changes it, the new one."""
    values = [_exact(value) for value in row.point]
    answers = None if row.explanation is None else [_exact(value) for value in row.explanation]
    wide = max(len("point"), *map(len, values))
    rest = (
        console.width
        - wide
        - len(GAP)
        - (0 if answers is None else len(GAP) + max(len("explanation"), *map(len, answers)))
    )
    name = min(max(len("feature"), *(_cells(escaped(text)) for text in names)), rest)
    head = f"{'feature':{name}}{GAP}{'point':>{wide}}" + ("" if answers is None else f"{GAP}explanation")
    console.print(head, style="bold", soft_wrap=True)
    for k, (text, value) in enumerate(zip(names, values, strict=True)):
        line = f"{_fill(short(text, name), name)}{GAP}{value:>{wide}}"
        if answers is not None and answers[k] != value:
            line += f"{GAP}{answers[k]}"
        console.print(line, soft_wrap=True)


def vector(values: FloatArray, width: int) -> str:
    """The numbers, as many as fit into `width` columns.

    >>> vector(np.array([0.5, -1.25, 3.0]), 20), vector(np.arange(30.0), 20)
    ('0.5, -1.25, 3', '0, 1, 2, 3, 4, ...')
    """
    return _fitted([f"{value:.4g}" for value in values[:width].tolist()], len(values), width, "...")


def answer_of(row: Row, names: Sequence[str], width: int) -> str:
    """What the explanation changes: 'income=1.5', 'income=1.5, ... (3)', 'none', 'failed'; empty if none was asked for.

    >>> row = Row(np.zeros(2), 1, np.array([0.0, 2.5]), Status.ASKED)
    >>> answer_of(row, ["age", "years at this address"], 30), answer_of(row, ["age", "years at this address"], 14)
    ('years at this address=2.5', 'years ...=2.5')
    """
    if row.explanation is None:
        return "" if row.status == Status.NOT_ASKED else row.status.text
    moved = np.flatnonzero(row.explanation != row.point)
    if not len(moved):
        return "no change"
    end = f"... ({len(moved):,})"
    parts = []
    for k in moved[:width].tolist():
        value = f"={row.explanation[k]:.4g}"
        room = width - len(value) - (0 if len(moved) == 1 else len(end) + 2)
        parts.append(short(names[k], max(room, 4)) + value)
    return _fitted(parts, len(moved), width, end)


def _fitted(parts: Sequence[str], total: int, width: int, end: str) -> str:
    """The parts divided by commas, or as many as leave room for the `end`."""
    whole = ", ".join(parts)
    if len(parts) == total and _cells(whole) <= width:
        return whole
    kept = ""
    for part in parts:
        longer = f"{kept}{part}, "
        if _cells(longer) + len(end) > width:
            break
        kept = longer
    return kept + end


def _which(shown: Shown) -> str:
    if not shown.rows:
        return f"it has {counted(shown.total, 'row')}, but none of these." if shown.total else "no rows."
    first, last = shown.numbers[0], shown.numbers[-1]
    if first == last:
        return f"row {first:,} of {shown.total:,} (counted from 0)"
    return f"rows {first:,} to {last:,} of {shown.total:,} (counted from 0)"


def _status(row: Row) -> str:
    if row.explanation is not None:
        moved = int(np.count_nonzero(row.explanation != row.point))
        return f"given; it changes {moved:,} of {len(row.point):,} features"
    return {Status.NOT_ASKED: "not asked for", Status.NONE: "asked for; there is none"}.get(row.status, "failed")


def _clock(time: float | None, width: int) -> str:
    when = None if time is None else iso(time)
    return "" if when is None else when[11:19] if width == 8 else when[:10]


def _exact(value: float) -> str:
    """The shortest text that is this number."""
    return json.dumps(float(value))


def _fill(text: str, width: int) -> str:
    return text + " " * max(0, width - _cells(text))


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
