"""The points of a file, block by block: CSV, JSON Lines or Parquet, its columns matched by name to a log's features.

Reading takes the memory of one block, however long the file. Whatever cannot be used is refused with file, line and
column; nothing is guessed, filled in or left out.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from overexplain._files import open_regular
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.models.columns import Column
from overexplain.scale.columns import raw_columns

BLOCK = 65_536
"""Rows read at a time; bounds the memory that reading takes."""

KINDS = (".csv", ".jsonl", ".ndjson", ".parquet")


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


@contextmanager
def open_points(
    path: Path, features: Sequence[str] | None, dimension: int, columns: Sequence[Column] | None = None
) -> Iterator[PointsFile]:
    """The points in a file, for a log with these features (None: the columns are taken in their order).

    `columns`: the raw columns that the features are made from; the file may have either.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        path.stat()  # a name without an ending that is no folder either: that there is no such file says more
        raise InvalidInput(f"{path}: points are read from files whose names end in {', '.join(KINDS)}")
    names = None if features is None else tuple(features)
    raw = raw_columns(columns, names)
    with open_regular(path) as file:
        if kind == ".csv":
            from overexplain.cli.points_csv import read_csv

            yield read_csv(file, str(path), names, dimension, raw)
        elif kind == ".parquet":
            from overexplain.cli.points_parquet import read_parquet

            yield read_parquet(file, str(path), names, dimension, raw)
        else:
            from overexplain.cli.points_json import read_json_lines

            yield read_json_lines(file, str(path), names, dimension, raw)


def bytes_read(file: IO[bytes] | io.TextIOWrapper) -> Callable[[], tuple[int, int]]:
    """How far a file has been read, and its size."""
    size = os.fstat(file.fileno()).st_size

    def progress() -> tuple[int, int]:
        # It must be the text file that is kept: nobody else does, and when it goes it closes the file below.
        below: Any = file.buffer if isinstance(file, io.TextIOWrapper) else file
        return min(below.tell(), size), size

    return progress
