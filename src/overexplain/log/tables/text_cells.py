"""Columns of texts, as CSV files have them: what is a number, a gap, a name.

Numbers are decimal, as in `-1.5e3`; an empty cell is a gap, and where numbers are wanted so are nan, NaN and null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.log.tables.cells import Texts, as_objects, not_a_number, seconds_of

GAPS = {"", "nan", "NaN", "null"}
TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}

# What Python takes for a number, without its 1_000 and digits of other scripts.
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE)
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


@dataclass(frozen=True)
class TextCells:
    """A column of texts."""

    name: str
    cells: Sequence[str]

    def numbers(self, truth: bool) -> FloatArray:
        """The numbers, NaN for a gap; truth values are numbers only if `truth`."""
        text = "".join(self.cells)
        count = len(self.cells)
        if text.isascii() and "_" not in text:
            try:
                return np.fromiter(map(float, self.cells), np.float64, count)
            except ValueError:
                pass
            try:
                return np.fromiter((math.nan if c in GAPS else float(c) for c in self.cells), np.float64, count)
            except ValueError:
                pass
        return np.array([self._number(i, cell, truth) for i, cell in enumerate(self.cells)], dtype=np.float64)

    def _number(self, i: int, cell: str, truth: bool) -> float:
        if cell.strip() in GAPS:
            return math.nan
        if truth and cell in TRUTH:
            return TRUTH[cell]
        if _NUMBER.fullmatch(cell) is None:
            raise not_a_number(self.name, cell, i)
        return float(cell)

    def texts(self, names: bool) -> Texts:
        """The texts, None for a gap."""
        if names and any(cell.startswith("'") for cell in self.cells):
            return as_objects([without_apostrophe(cell) or None for cell in self.cells])
        return as_objects([cell or None for cell in self.cells])

    def answers(self) -> Texts:
        """The texts, None for a gap."""
        return self.texts(names=False)

    def seconds(self) -> FloatArray:
        """Seconds since the epoch: of numbers as they are, of ISO dates (UTC where they name no zone)."""
        try:
            return np.fromiter((math.nan if c in GAPS else float(c) for c in self.cells), np.float64, len(self.cells))
        except ValueError:
            return seconds_of(self.name, [None if cell in GAPS else cell for cell in self.cells])

    def vectors(self, dimension: int | None) -> None:
        """None: a cell of a CSV file is one value."""


def with_apostrophe(text: str) -> str:
    """The text, such that no spreadsheet takes it for a formula."""
    return "'" + text if _FORMULA.match(text) else text


def safe_cells(row: Iterable[object]) -> list[object]:
    """The cells of a row, such that no spreadsheet takes one for a formula.

    >>> safe_cells(["=1+1", "n1", -2.5])
    ["'=1+1", 'n1', -2.5]
    """
    return [with_apostrophe(cell) if isinstance(cell, str) else cell for cell in row]


def without_apostrophe(text: str) -> str:
    """The text as it was before `with_apostrophe`.

    >>> [without_apostrophe(text) for text in ("'=1+1", "''=1+1", "'tis", "=1+1")]
    ['=1+1', "'=1+1", "'tis", '=1+1']
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
