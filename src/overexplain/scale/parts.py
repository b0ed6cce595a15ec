"""A data set as one long table: Parquet files with their row groups, cut into blocks and parts at fixed rows.

Rows are numbered from 0 through all files, which are taken in the order of their names. A *block* is what is certified in one go;
it begins at a multiple of `block_rows` from the start of the data set, wherever files and row groups begin, so that a verdict
never depends on how the rows are stored or shared out. A *part* is a few whole blocks: one file of verdicts, one task of a worker.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.models.columns import Column
from overexplain.scale.columns import Raw, listed, matched, raw_columns
from overexplain.scale.parquet import first_line, footer_digest, modules, opened, points_of

MOST_BLOCK = 65_536
MOST_PROVED_BLOCK = 2_048
"""The same where every verdict is proved, which takes a thousand times as long."""

NUMBERS = 2**23
"""So many numbers, 64 MB, a block may have; with many features it has fewer rows."""

BATCH = 16_384
"""Rows that are decoded at a time."""

PART_ROWS = 2**20
"""Rows of a part at most, unless a row group has more, or somebody wants more."""

PARTS = 16
"""So many parts a data set has at least, if it has the blocks: enough for several workers, and little is lost with one."""


@dataclass(frozen=True)
class File:
    """A Parquet file: its path, its name within the data set, the rows of its row groups, the digest of its footer.

    `numbers` are the columns of the features; `place` is the path from the root, for workers that are in another folder.
    """

    path: Path
    name: str
    groups: tuple[int, ...]
    digest: str
    numbers: tuple[str, ...]
    place: Path | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.groups)


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one row group: the row group's place in the file, rows to skip in it, rows to take."""

    file: int
    group: int
    skip: int
    rows: int


@dataclass(frozen=True)
class Part:
    """Consecutive blocks: rows `first` to `first + rows − 1` of the data set."""

    number: int
    first: int
    rows: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"part-{self.number:06d}"


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive points from row `first` on; `keys`: arrow arrays with the column that tells them apart, if wanted."""

    first: int
    points: FloatArray
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """Files whose columns are matched to the features; `key`: the only other column, if every file has just that one."""

    path: Path
    files: tuple[File, ...]
    dimension: int
    extras: tuple[str, ...] = ()
    key: str | None = None
    key_as_text: bool = False
    raw: Raw | None = None
    unmatched: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def starts(self) -> list[int]:
        """The number of the first row of every file."""
        return list(accumulate((file.rows for file in self.files), initial=0))[:-1]

    def pieces(self, first: int, rows: int) -> Iterator[Piece]:
        """Where these rows are, in order; row groups without rows are left out."""
        starts = self.starts
        at = max(0, bisect_right(starts, first) - 1)
        end = first + rows
        for number in range(at, len(self.files)):
            begin = starts[number]
            for group, count in enumerate(self.files[number].groups):
                skip = max(0, first - begin)
                take = min(begin + count, end) - (begin + skip)
                if take > 0:
                    yield Piece(number, group, skip, take)
                begin += count
                if begin >= end:
                    return

    def blocks(self, first: int, rows: int, block_rows: int, with_keys: bool = False) -> Iterator[Block]:
        """The points in these rows, block by block; memory for one block, however large the row groups are."""
        filled, start = 0, first
        keys: list[Any]
        size = min(block_rows, rows)
        points, keys = np.empty((size, self.dimension)), []
        for batch_points, batch_keys in self._batches(first, rows, self.key if with_keys else None):
            taken = 0
            while taken < len(batch_points):
                count = min(size - filled, len(batch_points) - taken)
                points[filled : filled + count] = batch_points[taken : taken + count]
                if batch_keys is not None:
                    keys.append(batch_keys.slice(taken, count))
                taken, filled = taken + count, filled + count
                if filled == size:
                    yield Block(start, points, tuple(keys))
                    start, filled = start + size, 0
                    size = min(block_rows, first + rows - start)
                    points, keys = np.empty((size, self.dimension)), []

    def _batches(self, first: int, rows: int, key: str | None) -> Iterator[tuple[FloatArray, Any]]:
        arrow, _ = modules(self.path)
        done, at, table = first, -1, None
        try:
            for piece in self.pieces(first, rows):
                file = self.files[piece.file]
                where = f"{file.path}, row group {piece.group}"
                if piece.file != at:
                    if table is not None:
                        table.close()
                    table, at = _reopened(file), piece.file
                assert table is not None
                begin = sum(file.groups[: piece.group])
                skip, left = piece.skip, piece.rows
                wanted = list(file.numbers) if key is None else [*file.numbers, key]
                try:
                    for batch in table.iter_batches(BATCH, row_groups=[piece.group], columns=wanted):
                        some = batch.slice(skip, min(left, max(0, batch.num_rows - skip)))
                        offset = begin + skip
                        skip, begin = max(0, skip - batch.num_rows), begin + batch.num_rows
                        if some.num_rows:
                            points = self._points(some, file, offset, done)
                            yield points, None if key is None else self._keys(arrow, some.column(key))
                            done, left = done + some.num_rows, left - some.num_rows
                        if not left:
                            break
                except (arrow.ArrowException, OSError) as error:
                    if getattr(error, "errno", None):  # the system, not the file: worth another try
                        raise
                    raise InvalidInput(f"{where}: cannot be read: {first_line(error)}") from None
                if left:
                    raise InvalidInput(f"{where}: damaged: it has {left:,} rows fewer than the file says")
        finally:
            if table is not None:
                table.close()

    def _keys(self, arrow: Any, column: Any) -> Any:
        if arrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        return column.cast(arrow.string()) if self.key_as_text else column

    def _points(self, batch: Any, file: File, offset: int, done: int) -> FloatArray:
        several = len(self.files) > 1

        def place(i: int) -> str:
            return f"{file.path}, row {offset + i}" + (f" (row {done + i} of the data set)" if several else "")

        return points_of(batch, list(file.numbers), self.raw, str(file.path), place)


def open_dataset(
    path: Path, features: Sequence[str] | None, dimension: int, columns: Sequence[Column] | None = None
) -> Dataset:
    """The data set in a Parquet file or a folder of them, for these features (None: the columns are taken in their order).

    Folders are searched to the bottom; files and folders whose names begin with "_" or "." are not looked at. Only the ends of the
    files are read, so that a column missing in the last one is found before any work. `columns`: raw columns that the features are
    made from; files may have either, all the same.
    """
    names = None if features is None else tuple(features)
    raw = raw_columns(columns, names)
    files: list[File] = []
    extras: list[tuple[str, ...]] = []
    kinds: set[str] = set()
    first: list[str] | None = None
    for place in _parquet_files(path):
        table = opened(place, place)
        with table:
            schema = table.schema_arrow
            given = list(schema.names)
            groups = tuple(table.metadata.row_group(g).num_rows for g in range(table.metadata.num_row_groups))
        if first is None:
            first = given
            raw = None if raw is None or not raw.are_in(given) else raw
        if names is None and given != first:
            raise InvalidInput(
                f"{place}: its columns are {listed(given)}; those of the files before it are {listed(first)}, and the log has no "
                "names of features to match them by"
            )
        found = matched(given, names if raw is None else raw.names, dimension, str(place))
        name = place.name if place == path else place.relative_to(path).as_posix()
        numbers = tuple(given[k] for k in found.picks)
        files.append(File(place, name, groups, footer_digest(place), numbers, place.absolute()))
        extras.append(found.extras)
        kinds |= {str(schema.field(name).type) for name in found.extras[:1]}
    others = tuple(dict.fromkeys(name for found in extras for name in found))
    key = others[0] if len(others) == 1 and all(found == others for found in extras) else None
    unmatched = tuple(first or ()) if names is None else ()
    return Dataset(path, tuple(files), dimension, others, key, len(kinds) > 1, raw, unmatched)


def block_rows(dimension: int, proved: bool = False) -> int:
    """The rows of a block: a power of two that depends on the number of features, and on whether verdicts are proved.

    >>> block_rows(10), block_rows(1000), block_rows(10**6), block_rows(10, proved=True)
    (65536, 8192, 256, 2048)
    """
    rows = MOST_PROVED_BLOCK if proved else MOST_BLOCK
    while rows > 256 and rows * dimension > NUMBERS:
        rows //= 2
    return rows


def plan(dataset: Dataset, size: int, part_rows: int | None = None, inside: bool = False) -> tuple[Part, ...]:
    """The parts: blocks of `size` rows, together at least `part_rows`; of that many as suit the data set if it is None.

    A part begins with the first block that begins in or with a row group, because to skip rows of a row group they have to be
    decoded; where one row group has more rows, so has its part. `inside`: with any block, for work that takes much longer than
    decoding; such parts are of one block, unless `part_rows` says otherwise.
    """
    total = dataset.rows
    if part_rows is None:
        part_rows = size if inside else max(size, min(PART_ROWS, total // PARTS))
    groups = accumulate(count for file in dataset.files for count in file.groups)
    ends: Iterable[int] = range(size, total, size) if inside else groups
    cuts = [0]
    for end in ends:
        cut = -(-end // size) * size
        if cut - cuts[-1] >= part_rows and cut < total:
            cuts.append(cut)
    bounds = [*cuts, total] if total else []
    return tuple(Part(i, a, b - a) for i, (a, b) in enumerate(pairwise(bounds)))


def _parquet_files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise InvalidInput(f"{path}: No such file or folder; a data set is a Parquet file or a folder of them")
        return [path]
    found = [
        place
        for place in path.rglob("*.parquet")
        if place.is_file() and not any(name.startswith(("_", ".")) for name in place.relative_to(path).parts)
    ]
    if not found:
        raise InvalidInput(
            f"{path}: no .parquet files in this folder; a data set is a Parquet file or a folder of them"
        )
    return sorted(found, key=lambda place: place.relative_to(path).as_posix())


def _reopened(file: File) -> Any:
    """The file, if it is still the one that the work was planned with."""
    place = file.place or file.path
    if footer_digest(place) != file.digest:
        raise InvalidInput(f"{file.path}: has changed since this run began; begin a new one")
    return opened(place, file.path)
