"""A slice as a grid of letters, and the words that every picture of a slice shares."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from overexplain.auditing.slices import Axis, Slice
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.verdicts import Verdict
from overexplain.report.terminal import print_text
from overexplain.report.words import counted, in_ascii, in_words, robust_in_words, share_range, undecided_in_words

if TYPE_CHECKING:
    from rich.console import Console

LETTERS = {
    Verdict.YES: ("Y", "certain Yes", "bright_blue"),
    Verdict.NO: ("N", "certain No", "yellow"),
    Verdict.UNKNOWN: (".", "unknown", "dim"),
    Verdict.BOUNDARY: ("=", "on the boundary", "bold"),
    Verdict.UNDECIDED: ("?", "undecided", "magenta"),
}
MARKS = {1: ("o", "asked, answered Yes"), -1: ("x", "asked, answered No"), 0: ("*", "asked, label not known")}
BOTH = ("&", "both asked, answered Yes and No")
EXPLANATION = ("+", "an explanation")
BALL = "its ball: all of it gets that answer"
MOST_HELD = 6
LABEL = 11
"""Columns for a number beside the grid: it then fits 80 columns up to a width of 66."""


def print_slice(found: Slice, console: Console) -> None:
    """Print the finding, the grid with its axes, and what the letters mean."""
    grid = letters(found)
    low, middle, high = ticks(found.up)
    margin = max(map(len, (low, middle, high))) + 1
    most = console.width - margin - 2
    if len(grid[0]) > most:
        raise InvalidInput(
            f"{len(grid[0])} columns of a map do not fit a terminal of {console.width}; at most {most} do. "
            "Give a smaller --size, or a file: -o map.svg"
        )
    console.print(finding(found), style="bold", soft_wrap=True)
    for sentence in premises(found):
        print_text(sentence, console)
    console.print()
    console.print(_shortened(found.up.name, console.width), soft_wrap=True)
    last = len(grid) - 1
    beside = {0: high, last - len(grid) // 2: middle, last: low}
    frame = " " * margin + "+" + "-" * len(grid[0]) + "+"
    console.print(frame, soft_wrap=True)
    for i, row in enumerate(grid):
        console.print(f"{beside.get(i, ''):>{margin - 1}} |", _coloured(row), "|", sep="", soft_wrap=True)
    console.print(frame, soft_wrap=True)
    width = len(grid[0]) + 2
    for line in (_axis_line(ticks(found.across), width), _shortened(found.across.name, width).rjust(width)):
        console.print(" " * margin + line, soft_wrap=True)
    console.print()
    for line in _legend(found, grid, console.width):
        console.print(line, soft_wrap=True)


def letters(found: Slice) -> list[str]:
    """The grid, its highest row first: Y, N, '.' unknown, and so on; asked points and explanations on top."""
    signs = {int(verdict): letter for verdict, (letter, _, _) in LETTERS.items()}
    grid = [[signs[code] for code in row] for row in found.codes.tolist()]
    for i, j in cells(found, found.explanations):
        grid[i][j] = EXPLANATION[0]
    taken: dict[tuple[int, int], set[int]] = {}
    for label in MARKS:
        for cell in cells(found, found.asked[found.labels == label]):
            taken.setdefault(cell, set()).add(label)
    for (i, j), labels in taken.items():
        grid[i][j] = BOTH[0] if labels >= {1, -1} else MARKS[max(labels, key=abs)][0]
    return ["".join(row) for row in reversed(grid)]


def cells(found: Slice, points: FloatArray) -> list[tuple[int, int]]:
    """The (row, column) of the grid's points nearest to these; those outside of the grid are left out."""
    rows, columns = found.codes.shape
    with np.errstate(all="ignore"):  # a step may be too small to be told from 0
        j = (points[:, 0] - found.across.values[0]) / found.across.step
        i = (points[:, 1] - found.up.values[0]) / found.up.step
    inside = (i >= -0.5) & (i < rows - 0.5) & (j >= -0.5) & (j < columns - 0.5)  # NaN is not
    return [(round(a), round(b)) for a, b in zip(i[inside].tolist(), j[inside].tolist(), strict=True)]


def finding(found: Slice) -> str:
    """The heading: how much of the slice is determined."""
    return f"The log determines {in_words(share_of(found, Verdict.YES, Verdict.NO))} of this slice."


def share_of(found: Slice, *verdicts: Verdict) -> str:
    """The share of the slice that has one of these verdicts; what is undecided may have any of them."""
    open_ = 0.0 if Verdict.UNDECIDED in verdicts else found.share(Verdict.UNDECIDED)
    share = found.share(*verdicts)
    return share_range(share, share + open_)


def premises(found: Slice) -> list[str]:
    """What is held where, and what to keep in mind."""
    sentences = []
    if found.held:
        held = ", ".join(f"{name} = {value:.4g}" for name, value in found.held[:MOST_HELD])
        more = len(found.held) - MOST_HELD
        where = "at the median of the log's points" if found.centred else "at the point given"
        sentences.append(f"Held {where}: {held}{f' and {more} more' if more > 0 else ''}.")
        sentences.append(f"{len(found.asked):,} of the log's {counted(found.rows, 'point')} lie in this plane.")
    if not found.oriented:
        sentences.append("The log has no label: Yes and No may be exchanged, everywhere at once.")
    if undecided := found.share(Verdict.UNDECIDED):
        sentences.append(undecided_in_words(undecided, found.robust))
    return sentences + robust_in_words(found.robust)


def ticks(axis: Axis) -> tuple[str, str, str]:
    """The lowest, the middle and the highest value of an axis, with as many digits as it takes to tell them apart."""
    values = axis.values[[0, len(axis.values) // 2, -1]].tolist()
    for digits in range(3, 18):
        texts = [f"{value:.{digits}g}" for value in values]
        if max(map(len, texts)) > LABEL:
            break
        if all(abs(float(t) - v) <= axis.step / 2 for t, v in zip(texts, values, strict=True)):
            return texts[0], texts[1], texts[2]
    low, middle, high = (f"{value:.4g}" for value in values)
    return low, middle, high


def _axis_line(labels: tuple[str, str, str], width: int) -> str:
    low, middle, high = labels
    line = list(low.ljust(width - len(high)) + high)
    start = 1 + (width - 2) // 2 - len(middle) // 2  # under its column: the frame takes one on each side
    if start > len(low) and start + len(middle) < width - len(high):
        line[start : start + len(middle)] = middle
    return "".join(line)


def _coloured(row: str) -> object:
    from rich.text import Text

    text = Text(row)
    for letter, _, style in LETTERS.values():
        if style:
            text.highlight_words([letter], style)
    text.highlight_words([mark for mark, _ in (*MARKS.values(), BOTH, EXPLANATION)], "bold")
    return text


def _legend(found: Slice, grid: Sequence[str], width: int) -> list[str]:
    shown = set("".join(grid))
    entries = [
        f"{letter} {words} {in_ascii(share_of(found, verdict))}"
        for verdict, (letter, words, _) in LETTERS.items()
        if found.share(verdict) > 0
    ]
    entries += [f"{mark} {words}" for mark, words in (*MARKS.values(), BOTH, EXPLANATION) if mark in shown]
    # Spaces that do not break keep an entry on one line.
    joined = "   ".join(entry.replace(" ", "\0") for entry in entries)
    return [line.replace("\0", " ") for line in textwrap.wrap(joined, width, break_on_hyphens=False)]


def _shortened(name: str, width: int) -> str:
    printable = "".join(c if c.isprintable() else " " for c in name)
    return printable if len(printable) <= width else printable[: width - 3] + "..."
