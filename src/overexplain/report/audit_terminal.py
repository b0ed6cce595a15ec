"""The report's twin for a terminal: the verdict, the gates, three numbers and two tables in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from overexplain.auditing.audit_report import AuditedService, AuditReport, Cost, Defence
from overexplain.auditing.findings import BY_QUOTA, paper_needed, range_after
from overexplain.report.audit_text import tidy
from overexplain.report.audit_words import all_cases, gate_line, three_numbers, title
from overexplain.report.terminal import WIDTH, print_text
from overexplain.report.words import in_ascii, percent, share_range

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST_NAME = 22
"""Columns are left out before names get narrower than this."""
WIDEST_NAME = 30

Row = tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """What stands over the columns from `first` to `last`: the first of the texts that fits."""

    texts: tuple[str, ...]
    first: int
    last: int


def print_audit(report: AuditReport, console: Console) -> None:
    """Print the whole report as text; names are shortened so that no line is wider than 80 columns."""
    console.print(plain(title(report)) + ".", style="bold", soft_wrap=True)
    for gate in report.gates:
        verdict = "GATE PASSED" if gate.passed else "GATE FAILED"
        lines = hanging(f"{verdict}  {plain(gate_line(report, gate))}", 13)
        console.print(lines, style=None if gate.passed else "bold", soft_wrap=True)
    _print_numbers(report, console)
    print_table(*_services(report), console=console)
    if report.defences is not None and report.defences.rows:
        print_table(*_defences(report), console=console)
    if counted := all_cases(report):
        console.print()
        print_text(plain(counted), console)
    if notes := _notes(report):
        console.print()
        for note in notes:
            print_text(note, console)


def _print_numbers(report: AuditReport, console: Console) -> None:
    numbers = three_numbers(report)
    if not numbers:
        return
    console.print()
    shown = [in_ascii(f"{number.text} {number.unit}".strip()) for number in numbers]
    width = max(6, *(len(text) for text in shown))
    for number, text in zip(numbers, shown, strict=True):
        brief = f" ({number.brief})" if number.brief else ""
        console.print(hanging(f"{text:>{width}}    {plain(number.label + brief)}", width + 4), soft_wrap=True)


def _services(report: AuditReport) -> tuple[list[Group], Row, list[Row]]:
    """The line over the head, the head and the rows of the table of services."""
    counts = _columns(report)
    after = [f"after {counts[0]:,}", *(f"{n:,}" for n in counts[1:])] if counts else []
    head = ("service", "needed", "minimum", "paper", *after)
    rows = [
        (_marked(service), *_known(report, service.id), *_shares(report, service.id, counts))
        for service in report.services
    ]
    # Names keep some room; the shares in the middle go first.
    while len(after) > 1 and _rest(head, rows) > WIDTH - NARROWEST_NAME:
        drop = 5 if len(after) > 2 else len(head) - 1
        head, rows = _without(head, drop), [_without(row, drop) for row in rows]
        after = list(head[4:])
    over = [Group(("answers until known", "until known"), 1, 3)]
    if after:
        over.append(Group(("decisions determined", "determined"), 4, len(head) - 1))
    return over, head, rows


def _columns(report: AuditReport) -> list[int]:
    """Up to three numbers of answers to show shares for: the verdict's, the one that rebuilds the model, the last measured."""
    curve = report.curve_of(report.audited.id)
    if curve is None or (at := curve.at(report.headline)) is None:
        return []
    known = report.known_of(report.audited.id)
    needed = None if known is None else known.answers
    wanted = {curve.answers[at], curve.answers[-1]}
    if needed in curve.answers:
        wanted.add(needed)
    return sorted(wanted)


def _known(report: AuditReport, id: str) -> Row:
    row = report.known_of(id)
    if row is None:
        return "-", "-", "-"
    needed = row.answers
    return "failed" if needed is None else f"{needed:,}", _count(row.minimum), _count(paper_needed(row))


def _shares(report: AuditReport, id: str, counts: Sequence[int]) -> Row:
    found = (range_after(report.curve_of(id), n) for n in counts)
    return tuple("-" if ends is None else in_ascii(share_range(*ends)) for ends in found)


def _marked(service: AuditedService) -> str:
    """The short name; what was asked for is marked, and the mark survives shortening (`_fitted`)."""
    return plain(service.short) + _MARK * (service.role != "comparison")


_MARK = "  audited"


def _defences(report: AuditReport) -> tuple[list[Group], Row, list[Row]]:
    found = report.defences
    assert found is not None
    unanswered = any(row.unanswered for row in found.rows)
    name = f"defence of {plain(report.service(found.service).spec)}"
    head: Row = (name, "explained", "+ decisions", "length", "invalid", *["none"] * unanswered)
    rows = [
        (
            plain(row.short),
            _cost(row.explained, row, found.limit),
            _cost(row.with_labels, row, found.limit),
            "-" if row.length is None else _times(row.length),
            "-" if row.invalid is None else percent(row.invalid),
            *([percent(row.unanswered)] if unanswered else []),
        )
        for row in found.rows
    ]
    over = [Group(("attacker needs",), 1, 2), Group(("applicant gets",), 3, len(head) - 1)]
    return over, head, rows


def _cost(cost: Cost, row: Defence, limit: int) -> str:
    if cost.requests is not None:
        return f"{cost.requests:,}"
    return "stopped" if row.id == BY_QUOTA else f"> {limit:,}"


def _times(length: float) -> str:
    return f"{length:.2f}x" if length < 1000 else f"{length:.0e}x"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _notes(report: AuditReport) -> list[str]:
    notes = []
    if any(row.failed is not None for row in report.known):
        notes.append("failed: fewer than half of the attacks rebuilt the model; not found is not impossible.")
    if report.defences is not None:
        costs = [
            cost for row in report.defences.rows if row.id != BY_QUOTA for cost in (row.explained, row.with_labels)
        ]
        if any(cost.requests is None for cost in costs):
            notes.append(f"> {report.defences.limit:,}: not found, which is not impossible.")
    if any(curve.undecided for curve in report.curves):
        notes.append("A limit left some decisions unsettled: a share with >=, or a range, is what is certain.")
    return notes


def print_table(over: Sequence[Group], head: Row, rows: list[Row], console: Console) -> None:
    """Print names on the left, numbers on the right; `over` stands above the head."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(1, len(head))]
    name = min(WIDEST_NAME, max(len(row[0]) for row in (head, *rows)))
    spare = WIDTH - name - sum(widths) - len(widths)
    if spare < 0:
        name, spare = name + spare, 0
    gaps = [1 + min(6, spare // len(widths))] * len(widths)
    columns = [gap + width for gap, width in zip(gaps, widths, strict=True)]
    console.print()
    console.print(_over(over, name, columns), style="bold", soft_wrap=True)
    for row in (head, *rows):
        line = f"{_fitted(row[0], name):{name}}"
        line += "".join(f"{text:>{column}}" for text, column in zip(row[1:], columns, strict=True))
        console.print(line, style="bold" if row is head else None, soft_wrap=True)


def _over(groups: Sequence[Group], name: int, columns: Sequence[int]) -> str:
    line = ""
    for group in groups:
        start, end = (name + sum(columns[:k]) for k in (group.first - 1, group.last))
        text = next((text for text in group.texts if len(text) < end - start), "")
        line += f"{text:>{end - len(line)}}"
    return line


def _rest(head: Row, rows: Sequence[Row]) -> int:
    """The least width of everything but the names."""
    return sum(1 + max(len(row[i]) for row in (head, *rows)) for i in range(1, len(head)))


def _without(row: Row, column: int) -> Row:
    return row[:column] + row[column + 1 :]


def _fitted(name: str, width: int) -> str:
    if len(name) <= width:
        return name
    mark = _MARK if name.endswith(_MARK) else ""
    return name[: max(1, width - 3 - len(mark))].rstrip(" ,;") + "..." + mark


def hanging(text: str, indent: int) -> str:
    """The text in 80 columns, further lines indented; its first line keeps its own spaces."""
    first, rest = text[:indent], text[indent:]
    wrapped = textwrap.wrap(rest, WIDTH - indent, break_on_hyphens=False) or [""]
    return first + f"\n{' ' * indent}".join(wrapped)


def plain(text: str) -> str:
    """A text in characters that every terminal has, each one column wide."""
    return in_ascii(tidy(text, WIDTH * 4)).replace("…", "...").encode("ascii", "replace").decode()
