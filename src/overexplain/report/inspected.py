"""What a stored model is, for a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from overexplain.models.linear import LinearModel
from overexplain.report.terminal import print_pairs
from overexplain.report.words import counted

if TYPE_CHECKING:
    from rich.console import Console

MOST_COEFFICIENTS = 10
_LONGEST_NAME = 40
_KINDS = {
    "json": "coefficient file (JSON)",
    "csv": "coefficient file (CSV)",
    "skops": "skops file",
    "onnx": "ONNX file",
    "pickle": "pickle",
}


@dataclass(frozen=True)
class Inspected:
    """A stored model and how it was read."""

    file: str
    kind: str
    sha256: str
    model: LinearModel
    notes: tuple[str, ...] = ()
    checked: str | None = None


def print_inspected(found: Inspected, console: Console, saved: str | None = None) -> None:
    """Print what the file holds, where it says Yes, its largest coefficients, and what to keep in mind."""
    model = found.model
    console.print(f"A linear model of {counted(model.dimension, 'feature')}.", style="bold")
    console.print()
    lines = [
        ("file", plain(found.file)),
        ("sha256", found.sha256),
        ("kind", kind_in_words(found.kind, model.source)),
    ]
    if model.classes is not None:
        lines.append(("classes", f"No is {short_name(model.classes[0])}, Yes is {short_name(model.classes[1])}"))
    lines.append(("Yes where", _cut(model)))
    lines += _groups(model)
    lines += _coefficients(model)
    lines.append(("offset", f"{model.hyperplane.offset:.6g}"))
    lines += how_read(found.checked, found.notes)
    if saved is not None:
        lines.append(("saved", plain(saved)))
    print_pairs(lines, console)


def how_read(checked: str | None, notes: tuple[str, ...]) -> list[tuple[str, str]]:
    """The lines on how the model was checked, and on what to keep in mind."""
    lines = [("checked", plain(checked or "nothing to compare it with: the file is the model"))]
    return lines + [("" if k else "note", plain(note)) for k, note in enumerate(notes)]


def plain(text: str) -> str:
    """The text without what a terminal would act on: control characters, and marks that turn the line around."""
    return "".join(c if c.isprintable() else "�" for c in text)


def kind_in_words(kind: str, source: str | None) -> str:
    """What kind of file, and of which model if it says so."""
    kind = _KINDS.get(kind, kind)
    return kind if source is None or source.lower() in kind.lower() else f"{kind}, {plain(source)}"


def _cut(model: LinearModel) -> str:
    if model.link != "logistic":
        return "coefficients·x >= offset (a score; probabilities are not known)"
    threshold = 0.5 if model.threshold is None else model.threshold
    own = " (its own cut)" if model.threshold is None else ""
    return f"P(Yes) >= {threshold:g}{own}, which is coefficients·x >= offset"


def _groups(model: LinearModel) -> list[tuple[str, str]]:
    groups = [column for column in model.columns or () if column.categories is not None]
    shown = [f"{short_name(column.name)} ({counted(len(column.categories or ()), 'value')})" for column in groups[:5]]
    rest = [f"{len(groups) - 5} more"] if len(groups) > 5 else []
    return [("categories", ", ".join(shown + rest))] if groups else []


def _coefficients(model: LinearModel) -> list[tuple[str, str]]:
    """A line for each of the largest coefficients, and one for the others."""
    normal = model.hyperplane.normal
    names = model.features or [f"x{i}" for i in range(model.dimension)]
    order = sorted(range(model.dimension), key=lambda i: -abs(float(normal[i])))[:MOST_COEFFICIENTS]
    lines = [f"{float(normal[i]):+12.6g}  {short_name(names[i])}" for i in order]
    rest = model.dimension - len(order)
    if rest:
        zero = int((normal == 0).sum())
        lines.append(f"and {counted(rest, 'smaller one')}{f', {zero} of all are 0' if zero else ''}")
    return [("" if k else "coefficients", line) for k, line in enumerate(lines)]


def short_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """A name as it can stand in a line; a long one is cut."""
    name = plain(name)
    return name if len(name) <= longest else name[: longest - 3] + "..."
