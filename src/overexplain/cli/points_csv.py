"""Points from a CSV file: NumPy's parser where a block is plain, Python's where it is not, and for saying what is wrong."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO

import numpy as np

from overexplain.cli.points import BLOCK, Block, Columns, PointsFile, bytes_read, matched
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.log.rows import number_of


def read_csv(raw: IO[bytes], path: str, features: tuple[str, ...] | None, dimension: int) -> PointsFile:
    """The points in a CSV file; its first line names the columns, or, if the log has no names, may be a point already."""
    file = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    read: list[str] = []

    def recorded() -> Iterator[str]:
        for line in file:
            read.append(line)
            yield line

    try:
        first = next((record for record in csv.reader(recorded(), strict=True) if not _is_blank(record)), None)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}, line {max(1, len(read))}: {_reason(error)}") from None
    if first is None:
        raise InvalidInput(f"{path} is empty; its first line must name the columns")
    names = first if features is None else [name if name in features else name.strip() for name in first]
    columns = matched(names, features, dimension, path, _hint(first))
    lines: Iterator[str] = file
    if features is None and any(_number(cell) is not None for cell in first):
        lines, read = chain(read, file), []
    unmatched = tuple(first) if features is None and read else ()
    return PointsFile(columns.extras, _blocks(lines, columns, path, len(read)), bytes_read(file), unmatched)


def _blocks(lines: Iterator[str], columns: Columns, path: str, before: int) -> Iterator[Block]:
    """The blocks of a file of which `before` lines have been read."""
    while True:
        try:
            block = list(islice(lines, BLOCK))
        except UnicodeDecodeError as error:
            raise InvalidInput(f"{path}, after line {before}: {_reason(error)}") from None
        if not block:
            return
        found, read = _plain(block, columns), len(block)
        if found is None:
            found, read = _careful(block, lines, columns, path, before)
        before += read
        if len(found.points):
            yield found


def _plain(lines: list[str], columns: Columns) -> Block | None:
    """The points in these lines by the fast parser; None if anything about them needs a closer look."""
    lines = [line for line in lines if not line.isspace()]
    # The parser would not mind a comma too many in a column that is not picked, and then pick the wrong ones.
    if not lines or any('"' in line or line.count(",") != columns.count - 1 for line in lines):
        return None
    try:
        points = np.loadtxt(lines, delimiter=",", usecols=columns.picks, comments=None, ndmin=2)
    except ValueError:
        return None
    if len(points) != len(lines) or not np.isfinite(points).all():
        return None
    key = columns.key
    return Block(points, None if key is None else [line.rstrip("\r\n").split(",")[key] for line in lines])


def _careful(lines: list[str], more: Iterator[str], columns: Columns, path: str, before: int) -> tuple[Block, int]:
    """The points in these lines, and how many lines that took: the last record may go on. Raises what is wrong."""
    reader = csv.reader(chain(lines, more), strict=True)
    points, keys, line = [], [], before
    try:
        while reader.line_num < len(lines):
            line = before + reader.line_num + 1
            record = next(reader, [])
            if _is_blank(record):
                continue
            if len(record) != columns.count:
                has = number_of(len(record), "column")
                raise DimensionMismatch(f"{path}, line {line}: {has} where the first line has {columns.count}")
            cells = zip(columns.names, [record[k] for k in columns.picks], strict=True)
            points.append([_as_number(cell, f"{path}, line {line}: {name!r}") for name, cell in cells])
            if columns.key is not None:
                keys.append(record[columns.key])
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}, line {line}: {_reason(error)}") from None
    rows = np.array(points, dtype=np.float64).reshape(-1, len(columns.picks))
    return Block(rows, None if columns.key is None else keys), reader.line_num


def _as_number(cell: str, what: str) -> float:
    number = _number(cell)
    if number is None:
        text = cell.strip()[:40]
        raise InvalidInput(f"{what} is {repr(text) + ', which is not a number' if text else 'missing'}")
    if not math.isfinite(number):
        raise NotFinite(f"{what} is {cell.strip()[:40]}; only finite numbers can be used")
    return number


_TRUTH = {"true": 1.0, "false": 0.0}
"""What data frames write for one-hot columns."""


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python alone would read 1_000 as a number
    except ValueError:
        return _TRUTH.get(cell.strip().lower())


def _hint(first: list[str]) -> str:
    """What may be wrong with a first line that does not name the features."""
    if len(first) == 1 and any(mark in first[0] for mark in ";\t|"):
        return "; columns must be separated by commas"
    if all(_number(cell) is not None for cell in first):
        return "; is the line with the names missing?"
    return ""


def _is_blank(record: list[str]) -> bool:
    return not record or (len(record) == 1 and not record[0].strip())


def _reason(error: Exception) -> str:
    return "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"not CSV: {error}"
