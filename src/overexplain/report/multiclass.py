"""The audit of a model of several classes for a terminal, as Markdown, and in the form that a file's name asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from overexplain.auditing.multiclass_report import ClassesService, MulticlassReport
from overexplain.report import multiclass_words as words
from overexplain.report.audit_markdown import as_table, as_text
from overexplain.report.audit_terminal import Group, hanging, plain, print_table
from overexplain.report.audit_text import tidy
from overexplain.report.render import KINDS as render_kinds
from overexplain.report.render import refuse_unknown_kind
from overexplain.report.terminal import print_text
from overexplain.report.words import counted, percent, small

if TYPE_CHECKING:
    from rich.console import Console

KINDS = {ending: what for ending, what in render_kinds.items() if ending != ".xml"}
"""JUnit is for gates, and there are none."""


def render(report: MulticlassReport, path: Path) -> str:
    """The text of the report in the form that the name of `path` asks for."""
    refuse_unknown_kind(path, KINDS)
    match path.suffix.lower():
        case ".html":
            from overexplain.report.html.multiclass_page import render_html

            return render_html(report)
        case ".md":
            return render_markdown(report)
        case _:
            return report.to_json() + "\n"


def render_markdown(report: MulticlassReport) -> str:
    """The whole report; the same report gives the same text."""
    numbers = [
        f"- **{as_text(f'{one.text} {one.unit}'.strip())}** {as_text(one.label)}. {as_text(one.detail)}"
        for one in words.three_numbers(report)
    ]
    blocks = [
        f"_{as_text(words.eyebrow(report))}_",
        f"# {as_text(words.title(report))}",
        as_text(words.lead(report)),
        "\n".join(numbers),
        "## Until it is known",
        "Shares decided alike: by the rebuilt model / by a copy trained on as many decisions / by the commonest class alone.",
        as_table(*words.table(report)),
        "\n".join(f"- {as_text(tidy(s.short))}: {as_text(said(s))}" for s in report.services),
        "## What training learns, answer by answer",
        as_text(words.curve_paragraph()),
        as_table(*words.curve_table(report)),
        "## Premises",
        as_table(("", ""), words.premises(report)),
        "## Make it again",
        as_table(("", ""), facts(report)),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def said(service: ClassesService) -> str:
    """How the attack on a service went, in a sentence or two."""
    if service.failed is not None:
        return f"not found. {words.sentence(service.failed)}"
    return f"{words.sentence(service.method or '')} {words.minimum_sentence(service)}"


def facts(report: MulticlassReport) -> list[tuple[str, str]]:
    """What the numbers come from."""
    made, subject = report.provenance, report.subject
    packages = ", ".join(f"{tidy(name)} {tidy(version)}" for name, version in made.packages.items())
    return [
        ("Command", "–" if made.command is None else tidy(made.command, 400)),
        ("Seed", str(made.seed)),
        ("Versions", f"overexplain {tidy(made.overexplain)}, Python {tidy(made.python)}, {packages}"),
        ("Coefficients as read, SHA-256", tidy(subject.model_sha256, 80)),
        ("Cases as read, SHA-256", tidy(subject.data_sha256, 80)),
    ]


def print_multiclass(report: MulticlassReport, console: Console) -> None:
    """Print the verdict, three numbers and a table, in 80 columns."""
    console.print(plain(words.title(report)) + ".", style="bold", soft_wrap=True)
    print_text(plain(words.eyebrow(report)), console)
    console.print()
    numbers = words.three_numbers(report)
    shown = [f"{number.text} {number.unit}".strip() for number in numbers]
    width = max([6, *map(len, shown)])
    for number, text in zip(numbers, shown, strict=True):
        brief = f" ({number.brief})" if number.brief else ""
        console.print(hanging(f"{text:>{width}}    {plain(number.label + brief)}", width + 4), soft_wrap=True)
    print_table(*_terminal_table(report), console=console)
    for found in report.services:
        if found.failed is not None:
            console.print()
            print_text(f"{plain(found.short)}: not found. {plain(words.sentence(found.failed))}", console)
        elif found.unreached:
            console.print()
            never = counted(len(found.unreached), "class").replace("classs", "classes")
            print_text(f"{plain(found.short)}: {never} never given by any answer.", console)


def _terminal_table(report: MulticlassReport) -> tuple[list[Group], tuple[str, ...], list[tuple[str, ...]]]:
    head = ("service", "expl.", "decis.", "least", "error", "rebuilt", "trained", "rebuilt", "trained")
    rows = []
    for found in report.services:
        spent = ("failed", "-") if found.requests is None else (f"{found.explanations:,}", f"{found.labels:,}")
        alike = [share for part in (found.cases, found.box) for share in (part.rebuilt, part.trained)]
        shown = ("-" if share is None else percent(share) for share in alike)
        rows.append((plain(found.short), *spent, f"{found.minimum:,}", small(found.error), *shown))
    over = [Group(("until known",), 1, 3), Group(("cases alike",), 5, 6), Group(("random alike",), 7, 8)]
    return over, head, rows
