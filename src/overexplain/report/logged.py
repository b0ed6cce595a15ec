"""What is in a log, for a terminal of 80 columns: in numbers, or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from overexplain.auditing.fitted import Fit
from overexplain.auditing.monitoring.times import iso
from overexplain.log.summary import LogSummary, RunSummary
from overexplain.report.words import counted

if TYPE_CHECKING:
    from rich.console import Console

MOST_NAMES = 12
MOST_TERMS = 5
MOST_ROWS = 20


@dataclass(frozen=True)
class Checked:
    """A file and what was found in it; `fit` is None if it was not looked for, `run` if the file is no run."""

    file: str
    kind: str
    found: LogSummary
    fit: Fit | None = None
    run: RunSummary | None = None


def print_checked(checked: Checked, console: Console) -> None:
    """Print whether a model fits the log, then what is in it."""
    print_headline(f"{checked.file}: {_verdict(checked)}", console)
    found = checked.found
    lines = [("format", checked.kind), *_run(checked.run), ("rows", _rows(found))]
    lines += [("decisions", _decisions(found)), ("explanations", _explanations(found)), ("features", _features(found))]
    lines += _terms(found)
    lines.append(("clients", _clients(found)))
    if found.sources:
        lines.append(("sources", f"{found.sources:,}"))
    lines.append(("times", _times(found)))
    lines += _conflict(checked.fit)
    print_named(lines, console)


def escaped(text: str) -> str:
    """The text with what a terminal would act on spelled out: control characters, and marks that turn the line around.

    >>> print(escaped("a\\x1b[31m\\u202eb\\n"))
    a\\x1b[31m\\u202eb\\n
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def short(text: str, width: int) -> str:
    """The text escaped and cut so that it fills at most `width` columns; a letter may take two.

    >>> short("ann", 8), short("x" * 10_000, 8)
    ('ann', 'xxxxx...')
    """
    from rich.cells import cell_len, set_cell_size

    plain = escaped(text[: 4 * width])
    if cell_len(plain) <= width and len(text) <= 4 * width:
        return plain
    return set_cell_size(plain, width - 3).rstrip() + "..."


def print_headline(text: str, console: Console) -> None:
    """Print what matters most, and an empty line."""
    from rich.text import Text

    lines = [line.plain.rstrip() for line in Text(escaped(text)).wrap(console, console.width)]
    console.print("\n".join(lines), style="bold", soft_wrap=True)
    console.print()


def print_named(lines: Sequence[tuple[str, str]], console: Console) -> None:
    """Print names on the left and what is to say about them on the right, wrapped by columns: a letter may take two."""
    from rich.text import Text

    indent = 2 + max(len(name) for name, _ in lines)
    for name, value in lines:
        wrapped = [line.plain.rstrip() for line in Text(value).wrap(console, max(20, console.width - indent))]
        text = ("\n" + " " * indent).join(wrapped)
        console.print(f"{name:{indent}}{text}".rstrip(), soft_wrap=True)


def _verdict(checked: Checked) -> str:
    fit, found = checked.fit, checked.found
    if not found.rows:
        return "no rows."
    if fit is None:
        return f"{counted(found.rows, 'row')}; whether a model fits was not looked at."
    if fit.verdict == "contradiction":
        return "no linear model fits."
    part = f"the first {fit.looked_at:,} of {counted(fit.rows, 'row')}; the time was up"
    rows = "its one row" if fit.rows == 1 else f"all {fit.rows:,} rows"
    if fit.verdict == "fits":
        return f"a linear model fits {rows if fit.complete else part}."
    return f"no model and no contradiction was found in {rows if fit.complete else part}."


def _run(run: RunSummary | None) -> list[tuple[str, str]]:
    if run is None:
        return []
    retries = "1 retry" if run.retries == 1 else f"{run.retries:,} retries"
    said = (
        f"{run.id[:8]}: {run.spent:,} of {counted(run.budget, 'request')} spent, {run.left:,} left; "
        f"{counted(run.answered, 'question')} answered, {retries}"
    )
    lines = [("run", said)]
    again = "sent again under its key on --resume" if run.idempotent else "spent; asked anew on --resume"
    for k, sent in enumerate(run.unanswered[:MOST_ROWS]):
        said = f"request {sent.number:,}: {sent.verb}, {iso(sent.time)} ({again})"
        lines.append(("" if k else "unanswered", said))
    if (more := len(run.unanswered) - MOST_ROWS) > 0:
        lines.append(("", f"and {more:,} more"))
    return lines


def _rows(found: LogSummary) -> str:
    if not found.repeated:
        return f"{found.rows:,}"
    return f"{found.rows:,}, {found.repeated:,} of them equal to an earlier one"


def _decisions(found: LogSummary) -> str:
    missing = found.rows - found.yes - found.no
    return f"{found.yes:,} Yes, {found.no:,} No" + (f", {missing:,} not known" if missing else "")


def _explanations(found: LogSummary) -> str:
    asked = found.explanations + found.none + found.failed
    if not asked:
        return "none was asked for"
    parts = [f"{found.explanations:,} given"]
    if found.none:
        parts.append(f'{found.none:,} times "none"')
    if found.failed:
        parts.append(f"{found.failed:,} failed")
    return ", ".join(parts)


def _features(found: LogSummary) -> str:
    if found.dimension is None:
        return "not known"
    if found.features is None:
        return f"{found.dimension:,}, without names"
    shown = ", ".join(short(name, 30) for name in found.features[:MOST_NAMES])
    more = len(found.features) - MOST_NAMES
    return f"{found.dimension:,}: {shown}" + (f" and {more:,} more" if more > 0 else "")


def _terms(found: LogSummary) -> list[tuple[str, str]]:
    said = [f"{terms.words} ({counted(terms.rows, 'question')})" for terms in found.terms[:MOST_TERMS]]
    if (more := len(found.terms) - MOST_TERMS) > 0:
        said.append(f"and {more:,} more")
    if found.unstated:
        said.append(f"not stated ({counted(found.unstated, 'explanation')}; --distance states them)")
    return [("" if k else "terms", text) for k, text in enumerate(said)]


def _clients(found: LogSummary) -> str:
    if not found.clients:
        return "not known"
    return f"{found.clients:,}" + (
        f"; not known for {counted(found.without_client, 'row')}" if found.without_client else ""
    )


def _times(found: LogSummary) -> str:
    if found.first is None or found.last is None:
        return "not known"
    first, last = (iso(time) or f"{time:g} s" for time in (found.first, found.last))
    span = first if first == last else f"{first} to {last}"
    return span + (f"; not known for {counted(found.without_time, 'row')}" if found.without_time else "")


def _conflict(fit: Fit | None) -> list[tuple[str, str]]:
    if fit is None or fit.verdict != "contradiction":
        return []
    shown = ", ".join(f"{row}" for row in fit.conflict[:MOST_ROWS])
    more = len(fit.conflict) - MOST_ROWS
    rows = shown + (f" and {more:,} more" if more > 0 else "")
    lines = [("conflict", f"rows {rows} (counted from 0) cannot all be true of one model")]
    if fit.proof:
        lines.append(("proof", escaped(fit.proof)))
    lines.append(
        (
            "may be",
            "a wrong label; rounded or not nearest explanations (state tolerance, slack); another distance; a model that "
            "changed or is not linear",
        )
    )
    return lines
