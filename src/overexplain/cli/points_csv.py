"""Points from a CSV file: NumPy's parser where a block is plain, Python's where it is not, and for saying what is wrong."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from overexplain.cli.points import BLOCK, Block, PointsFile, bytes_read
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.log.rows import number_of
from overexplain.log.tables.text_cells import without_apostrophe
from overexplain.models.columns import Column
from overexplain.scale.columns import Columns, Raw, matched


def read_csv(
    binary: IO[bytes], path: str, features: tuple[str, ...] | None, dimension: int, raw: Raw | None = None
) -> PointsFile:
    """The points in a CSV file; its first line names the columns, or, if the log has no names, may be a point already."""
    file = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
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
    if raw is not None and raw.are_in(called := _called(first, raw.names)):
        columns = matched(called, raw.names, dimension, path)
        return PointsFile(columns.extras, _raw_blocks(file, columns, raw, path, len(read)), bytes_read(file))
    names = first if features is None else _called(first, features)
    columns = matched(names, features, dimension, path, _hint(first))
    lines: Iterator[str] = file
    if features is None and any(_number(cell) is not None for cell in first):
        lines, read = chain(read, file), []
    unmatched = tuple(first) if features is None and read else ()
    return PointsFile(columns.extras, _blocks(lines, columns, path, len(read)), bytes_read(file), unmatched)


def _called(given: list[str], known: tuple[str, ...]) -> list[str]:
    """What columns are called: as it stands there if that is known, else without blanks, and the apostrophe before a formula."""
    names = frozenset(known)

    def called(name: str) -> str:
        plain = name.strip()
        bare = without_apostrophe(plain)
        return name if name in names else bare if bare in names else plain

    return [called(name) for name in given]


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


def _raw_blocks(lines: Iterator[str], columns: Columns, raw: Raw, path: str, before: int) -> Iterator[Block]:
    """The blocks of a file of raw columns of which `before` lines have been read."""
    records = _records(lines, columns, path, before)
    while block := list(islice(records, BLOCK)):
        places = [f"{path}, line {line}" for line, _ in block]
        table = {name: [record[k] for _, record in block] for name, k in zip(columns.names, columns.picks, strict=True)}

        def read(column: Column, cell: str, i: int, places: list[str] = places) -> Any:
            if column.categories is not None:
                return column.read(cell)
            if column.missing is not None and not cell.strip():
                return None
            return _as_number(cell, f"{places[i]}: {column.name!r}", gaps=column.missing is not None)

        points = raw.points(table, places.__getitem__, read)
        yield Block(points, None if columns.key is None else [record[columns.key] for _, record in block])


def _records(lines: Iterator[str], columns: Columns, path: str, before: int) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every record that is not blank; raises what is wrong."""
    reader, line = csv.reader(lines, strict=True), before + 1
    try:
        for record in reader:
            if not _is_blank(record):
                if len(record) != columns.count:
                    has = number_of(len(record), "column")
                    raise DimensionMismatch(f"{path}, line {line}: {has} where the first line has {columns.count}")
                yield line, record
            line = before + reader.line_num + 1
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}, line {line}: {_reason(error)}") from None


def _as_number(cell: str, what: str, gaps: bool = False) -> float:
    number = _number(cell)
    if number is None:
        text = cell.strip()[:40]
        raise InvalidInput(f"{what} is {repr(text) + ', which is not a number' if text else 'missing'}")
    if not math.isfinite(number) and not (gaps and math.isnan(number)):
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
