"""The points of a file, block by block: CSV, JSON Lines or Parquet, its columns matched by name to a log's features.

Reading takes the memory of one block, however long the file. Whatever cannot be used is refused with file, line and
column; nothing is guessed, filled in or left out.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.log.rows import number_of, repeated
from overexplain.models.columns import Column, joined

BLOCK = 65_536
"""Rows read at a time; bounds the memory that reading takes."""

KINDS = (".csv", ".jsonl", ".ndjson", ".parquet")
SHOWN = 6


@dataclass(frozen=True)
class Block:
    """Some consecutive points; `keys` is the text of the one column that is no feature, if there is exactly one."""

    points: FloatArray
    keys: Sequence[str] | None


@dataclass(frozen=True)
class PointsFile:
    """An open file: the columns that are no features, the blocks, and (how far, of how much) it has been read."""

    extras: tuple[str, ...]
    blocks: Iterator[Block]
    progress: Callable[[], tuple[int, int]]
    unmatched: tuple[str, ...] = ()
    """Names that the file has and the log has not: its columns are taken in their order."""

    @property
    def key(self) -> str | None:
        """The name of the column that tells points apart: the only one that is no feature."""
        return self.extras[0] if len(self.extras) == 1 else None


@dataclass(frozen=True)
class Columns:
    """Where the features are among a file's `count` columns: feature i, called `names[i]`, is column `picks[i]`."""

    names: tuple[str, ...]
    picks: tuple[int, ...]
    count: int
    extras: tuple[str, ...] = ()
    key: int | None = None


@dataclass(frozen=True)
class Raw:
    """The raw columns that make up the features of a model; a file may have these instead of the features."""

    columns: tuple[Column, ...]
    features: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, each once."""
        return tuple(dict.fromkeys(column.name for column in self.columns))

    def are_in(self, given: Iterable[str]) -> bool:
        """True if a file with the columns `given` has all of them; then it is not taken for one of features."""
        return set(self.names) <= set(given)

    def points(
        self, table: Mapping[str, Sequence[Any]], place: Callable[[int], str], read: Callable[[Column, Any, int], Any]
    ) -> FloatArray:
        """The points in some rows: `read` says what an entry of a column stands for, `place` where a row is."""
        blocks = [
            column.encode([read(column, entry, i) for i, entry in enumerate(table[column.name])], place)
            for column in self.columns
        ]
        return joined(self.columns, self.features, blocks)


@contextmanager
def open_points(
    path: Path, features: Sequence[str] | None, dimension: int, columns: Sequence[Column] | None = None
) -> Iterator[PointsFile]:
    """The points in a file, for a log with these features (None: the columns are taken in their order).

    `columns`: the raw columns that the features are made from; the file may have either.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InvalidInput(f"{path}: points are read from files whose names end in {', '.join(KINDS)}")
    names = None if features is None else tuple(features)
    raw = None if columns is None or names is None else Raw(tuple(columns), names)
    with path.open("rb") as file:
        if kind == ".csv":
            from overexplain.cli.points_csv import read_csv

            yield read_csv(file, str(path), names, dimension, raw)
        elif kind == ".parquet":
            from overexplain.cli.points_parquet import read_parquet

            yield read_parquet(file, str(path), names, dimension, raw)
        else:
            from overexplain.cli.points_json import read_json_lines

            yield read_json_lines(file, str(path), names, dimension, raw)


def matched(
    given: Sequence[str], features: tuple[str, ...] | None, dimension: int, path: str, hint: str = ""
) -> Columns:
    """Where the features are among the columns `given`; raises if one is missing or there twice.

    Other columns are allowed where names tell them apart; without names there must be exactly `dimension` columns.
    """
    if features is None:
        if len(given) != dimension:
            has = number_of(len(given), "column")
            raise DimensionMismatch(
                f"{path} has {has}; the log has {dimension} features, without names to pick them by"
            )
        return positions(dimension)
    place = {name: k for k, name in enumerate(given)}
    if missing := [name for name in features if name not in place]:
        raise InvalidInput(f"{path}: no column for {listed(missing)}; it has {listed(given)}{hint}")
    if twice := repeated([name for name in given if name in features]):
        raise InvalidInput(f"{path}: more than one column is called {twice}")
    known = set(features)
    extras = tuple(name for name in given if name not in known)
    picks = tuple(place[name] for name in features)
    return Columns(features, picks, len(given), extras, place[extras[0]] if len(extras) == 1 else None)


def positions(dimension: int, names: tuple[str, ...] | None = None) -> Columns:
    """The columns of points that are nothing but their numbers, in the log's order."""
    return Columns(names or tuple(f"x{i}" for i in range(dimension)), tuple(range(dimension)), dimension)


def bytes_read(file: IO[bytes] | io.TextIOWrapper) -> Callable[[], tuple[int, int]]:
    """How far a file has been read, and its size; (0, 0) for a pipe, which does not know."""
    if not file.seekable():
        return lambda: (0, 0)
    size = os.fstat(file.fileno()).st_size

    def progress() -> tuple[int, int]:
        # It must be the text file that is kept: nobody else does, and when it goes it closes the file below.
        below: Any = file.buffer if isinstance(file, io.TextIOWrapper) else file
        return min(below.tell(), size), size

    return progress


def listed(names: Sequence[str]) -> str:
    """The first few names: "'age', 'income' and 12 more"."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
