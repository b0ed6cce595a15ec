"""Tables and sentences for a terminal of 80 columns; plain text where the output is not a terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Literal

from overexplain.auditing.names import service_in_words
from overexplain.auditing.rebuilt import Rebuilt
from overexplain.extraction.result import Extraction
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.report.audit_text import tidy
from overexplain.report.words import counted, percent, small

if TYPE_CHECKING:
    from rich.console import Console

MOST_TERMS = 6
WIDTH = 80
"""Text is never wider than this: tables and sentences are read, logged and pasted at 80 columns."""


def terminal(file: IO[str] | None = None) -> Console:
    """A console on `file` (standard output), at most 80 columns wide; what is printed on it is taken literally.

    With NO_COLOR it is plain text: Rich alone would leave out colours and print bold.
    """
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # the BrokenPipeError being handled; Rich would leave with exit code 1

    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Plain(file=file, highlight=False, markup=False, emoji=False, color_system=colours)
    console.width = min(console.width, WIDTH)
    return console


def print_rebuilt(rebuilt: Rebuilt, console: Console, features: Sequence[str] | None = None) -> None:
    """Print what was spent, how far the rebuilt model is from the true one, and what that rests on."""
    found, spent = rebuilt.found, rebuilt.found.spent
    paid = [counted(spent.explanations, "answer")] if spent.explanations or not spent.labels else []
    paid += [counted(spent.labels, "label")] if spent.labels else []
    verb = "rebuilds" if spent.requests == 1 else "rebuild"
    console.print(f"{' and '.join(paid)} {verb} this model.", style="bold")
    console.print()
    service = "labels only" if rebuilt.mechanism is None else service_in_words(rebuilt.mechanism)
    print_pairs([("service", service), *found_in_pairs(found, rebuilt.mechanism, features, rebuilt)], console)


def found_in_pairs(
    found: Extraction, mechanism: Mechanism | None, features: Sequence[str] | None, rebuilt: Rebuilt | None
) -> list[tuple[str, str]]:
    """What was found and what it rests on, as names and values; errors only beside the true model (`rebuilt`), else bounds."""
    spent = found.spent
    confirmed = f", {spent.confirmation:,} more to confirm" if spent.confirmation else ""
    lines = [
        ("method", found.method),
        ("spent", f"{counted(spent.explanations, 'explanation')}, {counted(spent.labels, 'label')}{confirmed}"),
    ]
    if rebuilt is None:
        lines += [("angle", _bound(found.error_bound)), ("offset", _bound(found.offset_bound))]
    else:
        least = "not known" if rebuilt.minimum is None else counted(rebuilt.minimum, "explanation")
        lines += [
            ("proven minimum", least),
            ("angle error", f"{small(rebuilt.angle_error, 1)} rad ({_bound(found.error_bound)})"),
            ("offset error", f"{small(rebuilt.offset_error, 1)} ({_bound(found.offset_bound)})"),
        ]
        if (same := rebuilt.agreement) is not None:
            floor = f"a constant answer: {percent(same.floor)}"
            lines.append(("agreement", f"{percent(same.share)} of {counted(same.points, 'point')} ({floor})"))
    if found.premise is not None and (found.tolerance or found.residual is not None):
        seen = "" if found.residual is None else f" (the farthest seen: {small(found.residual, 1)})"
        lines.append(("bounds hold if", f"{found.premise}{seen}"))
    lines.append(("rebuilt", _formula(found.hyperplane, features)))
    if mechanism is not None and mechanism.radius is None and found.radius is not None:
        lines.append(("radius", f"{found.radius:.10g} (found; {_bound(found.radius_bound)})"))
    elif found.radius:
        lines.append(("radius", f"{found.radius:.10g} (declared)"))
    if len(found.unidentified):
        lines.append(
            ("never revealed", f"{counted(len(found.unidentified), 'direction')} of {found.hyperplane.dimension}")
        )
    if not found.oriented:
        lines.append(("Yes and No", "may be exchanged: no label was asked"))
    return lines + [("" if k else "assumes", sentence) for k, sentence in enumerate(found.assumptions)]


def print_text(text: str, console: Console, style: str | None = None) -> None:
    """Print a paragraph, wrapped at words."""
    console.print(textwrap.fill(text, console.width, break_on_hyphens=False), style=style, soft_wrap=True)


def print_pairs(lines: Sequence[tuple[str, str]], console: Console) -> None:
    """Print names on the left and what is to say about them, wrapped, on the right."""
    indent = 2 + max(len(name) for name, _ in lines)
    for name, value in lines:
        # Not a Rich table: that would fill every line up with spaces.
        text = textwrap.fill(value, max(20, console.width - indent), break_on_hyphens=False)
        console.print(f"{name:{indent}}" + text.replace("\n", "\n" + " " * indent), soft_wrap=True)


def _formula(plane: Hyperplane, features: Sequence[str] | None) -> str:
    """The rebuilt model, its largest coefficients first: 'Yes where 1·age - 0.2·income + … (3 smaller) >= 0.4'."""
    names = features or [f"x{i}" for i in range(plane.dimension)]
    order = sorted(range(plane.dimension), key=lambda i: -abs(float(plane.normal[i])))
    terms = [f"{float(plane.normal[i]):+.4g}*{tidy(names[i])}" for i in order[:MOST_TERMS]]
    rest = plane.dimension - len(terms)
    if rest:
        terms.append(f"... ({rest} smaller)")
    return f"Yes where {' '.join(terms)} >= {plane.offset:.6g}"


def _bound(bound: float | None) -> str:
    return "no error bound known" if bound is None else f"error bound {small(bound, 1)}"
