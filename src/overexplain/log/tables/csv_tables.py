"""Logs in CSV files: UTF-8, a line of names, then a request a line.

Numbers are decimal, as in `-1.5e3`; an empty cell is a gap. A name that a spreadsheet would take for a formula (it begins
with = + - @, a tab or a carriage return) is written with an apostrophe in front; reading takes it off again.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from overexplain._files import open_regular, read_so_far, replacing
from overexplain._texts import is_unicode
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.log.frames import table_columns
from overexplain.log.jsonl.fast import number_texts
from overexplain.log.jsonl.values import to_json
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import number_of, repeated
from overexplain.log.tables.csv_fast import LONGEST, plain_table
from overexplain.log.tables.tables import Table, rows_of_a_block
from overexplain.log.tables.text_cells import TextCells, with_apostrophe, without_apostrophe

WRITTEN = 16_384
"""Rows written at once."""


def csv_blocks(path: Path, size: int, seen: Callable[[int, int], None]) -> Iterator[tuple[Table, Sequence[int]]]:
    """The rows of a file, about `size` at a time, and the line on which each begins; only the first block may be empty."""
    with open_regular(path) as file:
        lines: Iterator[bytes] = iter(file)
        header, _, done = _records(lines, 1, 0, path)
        if not header:
            raise InvalidInput(
                f"{path}: not a CSV file that can be read: it is empty; its first line must name the columns"
            )
        names, empty = _names(header[0], path), True
        size = rows_of_a_block(size, names)
        while group := list(islice(lines, size)):
            starts: Sequence[int] = range(done + 1, done + len(group) + 1)
            table, taken = plain_table(group, names), len(group)
            if table is None:
                rows, starts, taken = _records(chain(group, lines), len(group), done, path)
                table = _table(names, rows, starts, path)
            done += taken
            seen(*read_so_far(file))
            if table.count:
                yield table, starts
                empty = False
        if empty:
            yield _table(names, [], [], path), []


def _records(lines: Iterable[bytes], wanted: int, done: int, path: Path) -> tuple[list[list[str]], Sequence[int], int]:
    """(the records in the next `wanted` lines, where each begins, how many lines that took: the last may go on).

    Blank lines are left out; if there is no record at all, more lines are taken.
    """
    reader, start = csv.reader(_decoded(lines, done, path), strict=True), 1
    rows: list[list[str]] = []
    starts: list[int] = []
    try:
        while reader.line_num < wanted or not rows:
            start = reader.line_num + 1
            record = next(reader)
            if record:
                rows.append(record)
                starts.append(done + start)
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {done + start}: not a CSV file that can be read: {error}") from None
    except StopIteration:
        pass
    return rows, starts, reader.line_num


def _decoded(lines: Iterable[bytes], done: int, path: Path) -> Iterator[str]:
    for number, raw in enumerate(lines, done + 1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = f"byte 0x{error.object[error.start]:02x} ({error.reason}); save the file as UTF-8"
            raise InvalidInput(f"{path}, line {number}: not UTF-8 text: {what}") from None


def _names(header: list[str], path: Path) -> list[str]:
    if any("\0" in name for name in header):
        raise InvalidInput(f"{path}, line 1: a name with a NUL byte; if the file is UTF-16, save it as UTF-8")
    names = [without_apostrophe(name) for name in header]
    if twice := repeated(names):
        raise InvalidInput(f"{path}, line 1: two columns of the same name: {twice}")
    return names


def _table(names: list[str], rows: list[list[str]], lines: Sequence[int], path: Path) -> Table:
    if not set(map(len, rows)) <= {len(names)}:
        i = next(i for i, row in enumerate(rows) if len(row) != len(names))
        has = number_of(len(rows[i]), "cell")
        raise DimensionMismatch(
            f"{path}, line {lines[i]}: {has} where the first line names {number_of(len(names), 'column')}"
        )
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    return Table(names, len(rows), lambda name: TextCells(name, columns.get(name, ())))


def write_csv(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the log as a CSV file in one step; what could not be read back is refused."""
    columns = table_columns(log)
    header = _line([with_apostrophe(name) for name, _ in columns])
    if _read_back(header) != [name for name, _ in columns]:
        raise InvalidInput("a CSV file cannot hold these names of features; save the log as .jsonl or .parquet")
    for name, values in columns:
        if values.dtype == object:
            _check_texts(name, values)
    with replacing(path, private=True) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        file.write(header)
        writer = csv.writer(file)
        for start in range(0, len(log), WRITTEN):
            cells = [_written(values[start : start + WRITTEN]) for _, values in columns]
            writer.writerows(zip(*cells, strict=True))
        file.flush()
        os.fsync(file.fileno())


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue()


def _read_back(header: str) -> list[str] | None:
    """The names that are read from a header; None if it cannot be read."""
    try:
        lines = io.BytesIO(header.encode("utf-8"))
        records, _, _ = _records(lines, 1, 0, Path())
        return _names(records[0], Path()) if records else None
    except (UnicodeEncodeError, InvalidInput):
        return None


def _check_texts(name: str, values: Any) -> None:
    """Raise if a text would not be read back as it is."""
    for text in dict.fromkeys(values.tolist()):
        if text is not None and (not text or len(text) >= LONGEST or not is_unicode(text)):
            why = "is empty" if not text else "is too long" if len(text) >= LONGEST else "is no Unicode text"
            row = values.tolist().index(text)
            raise InvalidInput(
                f"the {name} of row {row} {why}: a CSV file cannot hold it; save the log as .jsonl (or .parquet)"
            )


def _written(values: Any) -> list[Any]:
    """The cells of a column: every digit of a number, nothing for a gap."""
    if values.dtype == object:
        return [None if text is None else with_apostrophe(text) for text in values]
    if values.dtype == np.int8:  # labels
        return [value or None for value in values.tolist()]
    gaps = np.isnan(values)
    texts = number_texts(np.where(gaps, 0.0, values), to_json)
    for i in np.flatnonzero(gaps).tolist():
        texts[i] = ""
    return texts
