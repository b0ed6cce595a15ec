"""Lines of a CSV file, read by the parser of Arrow wherever that is certain to be the same as reading them carefully.

It is, if no quotation mark is left after quoted cells were replaced, and every line is a row with as many cells as there are
columns. Quoted cells are nearly always the same few (a mechanism is one), so they are replaced by a number each: wherever a
comma, a mark, no marks but doubled ones, a mark, and a comma or the end of the line follow each other. The first mark of all
is then the beginning of a quoted cell, the replaced piece is all of that cell, the next mark is the beginning of another, and
so on: what is replaced is what is quoted, or a mark is left.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.log.tables.cells import Texts, as_objects
from overexplain.log.tables.tables import Table
from overexplain.log.tables.text_cells import GAPS, TextCells, without_apostrophe

LONGEST = 131_072
"""Characters of a cell: the careful reader takes no longer ones."""
FEW = 32
"""So few lines are not worth arrays of Arrow."""
WORTH_LOADING = 2**20
"""Bytes that take the careful reader longer than loading Arrow."""
MOST_QUOTED = 32
"""Quoted cells that are looked for in a block; with more of them, little would be won."""

_QUOTED = re.compile(rb',"[^"\n\0]*(?:""[^"\n\0]*)*"(?=[,\n])')
_MARK = "\0"


def plain_table(lines: Sequence[bytes], names: Sequence[str]) -> Table | None:
    """The table in these lines; None if they need a closer look, or if there is no Arrow to read them."""
    if len(lines) < FEW or ("pyarrow.csv" not in sys.modules and sum(map(len, lines)) < WORTH_LOADING):
        return None
    try:
        arrow, reader = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.csv")
    except ImportError:
        return None
    text, quoted = _unquoted(b"".join(lines))
    if text is None or max(map(len, lines)) > LONGEST:
        return None
    columns = [str(i) for i in range(len(names))]
    try:
        table = reader.read_csv(
            arrow.BufferReader(text),
            reader.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=columns),
            reader.ParseOptions(quote_char=False, ignore_empty_lines=False),
            reader.ConvertOptions(column_types=dict.fromkeys(columns, arrow.string())),
        )
        quotes = [cell[2:-1].replace(b'""', b'"').decode("utf-8") for cell in quoted]
    except (arrow.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != len(lines):
        return None
    found = dict(zip(names, table.columns, strict=True))
    return Table(names, len(lines), lambda name: _Cells(name, found[name].combine_chunks(), quotes))


def _unquoted(text: bytes) -> tuple[bytes | None, list[bytes]]:
    """(the text with a number for each quoted cell, those cells); None for the text if it cannot be had like this."""
    text = text.replace(b"\r\n", b"\n")
    if b"\r" in text or b"\0" in text or b"\n\n" in text or text.startswith(b"\n"):
        return None, []
    text = text if text.endswith(b"\n") else text + b"\n"
    quoted: list[bytes] = []
    while (mark := text.find(b'"')) >= 0:
        cell = _QUOTED.match(text, mark - 1) if mark else None
        if cell is None or len(quoted) == MOST_QUOTED:
            return None, []
        number = b",\0%d" % len(quoted)
        quoted.append(cell.group())
        for end in (b",", b"\n"):
            text = text.replace(quoted[-1] + end, number + end)
    return text, quoted


@dataclass(frozen=True)
class _Cells:
    """A column of texts in Arrow; `quoted` are those that were replaced by a number."""

    name: str
    column: Any
    quoted: Sequence[str]

    def numbers(self, truth: bool) -> FloatArray:
        """The numbers, NaN for a gap; truth values are numbers only if `truth`."""
        found = self._floats()
        return self._carefully.numbers(truth) if found is None else found

    def _floats(self) -> FloatArray | None:
        """The numbers, if all of them are plain."""
        arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
        column = self.column
        gap = compute.is_in(column, value_set=arrow.array(sorted(GAPS)))
        if compute.any(gap).as_py():
            column = compute.if_else(gap, arrow.scalar(None, arrow.string()), column)
        try:
            return np.array(column.cast(arrow.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        except arrow.ArrowException:
            return None

    def texts(self, names: bool) -> Texts:
        """The texts, None for a gap."""
        coded = self.column.dictionary_encode()
        known = [self._text(text) for text in coded.dictionary.to_pylist()]
        if names:
            known = [without_apostrophe(text) for text in known]
        return np.asarray(as_objects([text or None for text in known])[coded.indices.to_numpy()], dtype=object)

    def answers(self) -> Texts:
        """The texts, None for a gap."""
        return self.texts(names=False)

    def seconds(self) -> FloatArray:
        """Seconds since the epoch: of numbers as they are, of ISO dates (UTC where they name no zone)."""
        found = self._floats()
        return self._carefully.seconds() if found is None else found

    def vectors(self, dimension: int | None) -> None:
        """None: a cell of a CSV file is one value."""

    @cached_property
    def _carefully(self) -> TextCells:
        return TextCells(self.name, [self._text(text) for text in self.column.to_pylist()])

    def _text(self, text: str) -> str:
        return self.quoted[int(text[1:])] if text.startswith(_MARK) else text
