"""What a stored model of several classes is, for a terminal of 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from overexplain.models.multiclass import MulticlassModel
from overexplain.report.inspected import how_read, kind_in_words, plain, short_name
from overexplain.report.terminal import print_pairs
from overexplain.report.words import counted

if TYPE_CHECKING:
    from rich.console import Console

MOST_CLASSES = 12
MOST_WEIGHTS = 3
_LONGEST = 24


@dataclass(frozen=True)
class InspectedClasses:
    """A stored model of several classes and how it was read."""

    file: str
    kind: str
    sha256: str
    model: MulticlassModel
    notes: tuple[str, ...] = ()
    checked: str | None = None


def print_classes(found: InspectedClasses, console: Console, saved: str | None = None) -> None:
    """Print what the file holds, and for every class its largest weights, all scores centred."""
    model, argmax = found.model, found.model.argmax
    console.print(
        f"A linear model of {argmax.classes} classes and {counted(model.dimension, 'feature')}.", style="bold"
    )
    console.print()
    lines = [
        ("file", plain(found.file)),
        ("sha256", found.sha256),
        ("kind", kind_in_words(found.kind, model.source)),
        ("decides", "the class whose score weights·x + intercept is the largest"),
        ("weights", "the largest of each class, without what all classes share (no decision depends on it):"),
    ]
    names = model.features or tuple(f"x{i}" for i in range(model.dimension))
    called = model.classes or tuple(str(k) for k in range(argmax.classes))
    weights = argmax.weights - argmax.weights.mean(axis=0)
    for name, row in list(zip(called, weights, strict=True))[:MOST_CLASSES]:
        largest = np.argsort(-np.abs(row), kind="stable")[:MOST_WEIGHTS]
        shown = ", ".join(f"{row[i]:+.3g} {short_name(names[i], _LONGEST)}" for i in largest)
        lines.append((f"  {short_name(str(name), _LONGEST)}", shown))
    if argmax.classes > MOST_CLASSES:
        lines.append(("", f"and {counted(argmax.classes - MOST_CLASSES, 'more class').replace('classs', 'classes')}"))
    lines += how_read(found.checked, found.notes)
    if saved is not None:
        lines.append(("saved", plain(saved)))
    print_pairs(lines, console)
