"""What a diagnosis found, as a table for a terminal of 80 columns: what was looked at, what was seen, what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from overexplain.auditing.names import distance_in_words
from overexplain.extraction.diagnosis.oracle_report import OracleReport
from overexplain.geometry.hyperplane import YES
from overexplain.geometry.norms import norm
from overexplain.report.terminal import print_pairs
from overexplain.report.words import counted

if TYPE_CHECKING:
    from rich.console import Console

MOST_NAMES = 4

_Row = tuple[str, str, str]


def print_diagnosed(report: OracleReport, console: Console, features: Sequence[str] | None = None) -> None:
    """Print the finding, a line for every property that shows, and how the model would be rebuilt."""
    console.print(_headline(report), style="bold")
    console.print()
    rows = list(_rows(report, features))
    if rows:
        console.print(_table(rows))
        console.print()
    spent = f"{counted(report.asked.explanations, 'explanation')}, {counted(report.asked.labels, 'label')}"
    lines = [("asked", spent), ("method", report.theorem), ("predicted", _cost(report))]
    lines += [("contradicted", sentence) for sentence in report.refuted]
    print_pairs(lines, console)


def _headline(report: OracleReport) -> str:
    if report.answers == 0:
        return (
            "This service explains nothing." if not report.failures else "This service gave no answer that can be used."
        )
    match report.exact:
        case True:
            rounding = f" up to rounding ({report.grid})" if report.grid else ""
            return f"This service answers exactly{rounding}."
        case False:
            return "This service's answers are not exact."
    return "Whether this service answers exactly does not show."


def _cost(report: OracleReport) -> str:
    if report.cost is None:
        return "no number can be given"
    explanations, labels = report.cost.explanations, report.cost.labels
    parts = [counted(explanations, "explanation")] if explanations or not labels else []
    parts += [counted(labels, "label")] if labels else []
    return " and ".join(parts) + " to 1e-6 rad"


def _rows(report: OracleReport, features: Sequence[str] | None) -> Iterator[_Row]:
    """The lines of the table: only what shows."""
    if report.deterministic is not None and report.answers:
        yield (
            "same answer again",
            "yes" if report.deterministic else "no",
            "asking again tells nothing" if report.deterministic else "chance is involved: asking again tells more",
        )
    if report.answers:
        yield from _geometry(report)
    if report.grid is not None:
        yield "rounding", report.grid, f"answers are off by up to {report.tolerance:.2g} in each feature"
    yield from _limits(report, features)
    for spelling, count in report.failures:
        yield "no answer", f"{spelling}, {count} of {report.asked.explanations}", "counts as a question all the same"


def _geometry(report: OracleReport) -> Iterator[_Row]:
    told = {
        "constant": "the step does not depend on the question",
        "by side": "each label has a step of its own",
        "several": "a few ways to step take turns",
        "varying": "no fixed rule shows",
        None: "too few answers to tell",
    }
    yield "direction", report.direction or "-", told[report.direction]
    meaning = {
        "l1": "one feature moves; weights may favour it",
        "linf": "all features move by the same size",
        "l2": "the step is the normal itself",
        "lq": "the step shows the normal",
        "weighted": "features weigh differently, or together",
        "mixture": "several distances, or ties by chance",
        "heuristic": "answers are not the nearest points",
        "unknown": "too little, or no rule, was seen",
    }
    plain = report.family in ("l1", "l2", "linf")
    seen = distance_in_words(report.distance or norm(report.family)) if report.distance or plain else report.family
    yield "distance", seen, meaning[report.family]
    behind = {
        "zero": ("on the plane", "every answer is a measurement of the plane"),
        "constant": (f"{report.margin_size:.3g} behind it", "an overshoot or a robust service: one unknown more"),
        "variable": (f"up to {report.margin_size:.3g} behind it", "answers only bound the plane"),
        "relative": (
            "grows with the step",
            f"at least {report.slack or 0.0:.0%} too long; answers of answers come closer",
        ),
    }
    if report.margin is not None:
        yield ("margin", *behind[report.margin])


def _limits(report: OracleReport, features: Sequence[str] | None) -> Iterator[_Row]:
    if report.is_boxed:
        cut = np.flatnonzero(np.isfinite(report.low) | np.isfinite(report.high))
        yield "bounds", f"cut off in {_named(cut.tolist(), features)}", "far questions show less than near ones"
    if report.immutable:
        yield "held", _named(report.immutable, features), "never moved, although they matter"
    if report.repeated_rows:
        yield "from a list", "yes", "answers are rows, probably of real people's data"
    if report.one_hot_snapped is not None:
        yield (
            "one-hot groups",
            "kept" if report.one_hot_snapped else "broken",
            "one entry of a group is 1, the others 0",
        )
    if report.one_sided is not None:
        yield "only explained", "Yes" if report.one_sided == YES else "No", "points with the other label get no answer"


def _named(numbers: Sequence[int], features: Sequence[str] | None) -> str:
    names = [str(i) if features is None else features[i] for i in numbers[:MOST_NAMES]]
    rest = len(numbers) - len(names)
    kind = "feature " if features is None and len(numbers) == 1 else "features " if features is None else ""
    return kind + ", ".join(names) + (f" and {rest} more" if rest else "")


def _table(rows: Sequence[_Row]) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("property", no_wrap=True)
    table.add_column("seen", overflow="fold")
    table.add_column("what it means", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
