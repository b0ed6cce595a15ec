"""What proofs are held against: the verdicts that a file claims, and the points that they are about. A few bytes a row."""

from __future__ import annotations

import csv
import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Protocol, final

import numpy as np

from overexplain._files import open_regular
from overexplain.cli.points import open_points
from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.knowledge.verdicts import Verdict
from overexplain.scale.parquet import modules, opened

NAMES = {verdict.name: verdict for verdict in Verdict}
MOST_DIGITS = 15
DIGEST = 16


class Claimed(Protocol):
    """How much is claimed, and what of it has no proof."""

    @property
    def claimed(self) -> int:
        """How many verdicts need a proof."""

    @property
    def undecided(self) -> int:
        """How many verdicts claim nothing."""

    @property
    def unproved(self) -> IntArray:
        """The rows whose verdict needs a proof and has none."""


@final
class Claims:
    """The verdicts of a file by row, and which of them have been proved."""

    def __init__(self, rows: IntArray, codes: IntArray) -> None:
        order = np.argsort(rows, kind="stable")
        self._rows, self._codes = rows[order], codes[order]
        self._proved = np.zeros(len(rows), dtype=bool)

    def verdict(self, row: int) -> Verdict | None:
        """What the file claims about a row; None if nothing."""
        at = self._at(row)
        return None if at is None else Verdict(int(self._codes[at]))

    def mark(self, row: int) -> None:
        """Note that the verdict on a row is proved."""
        at = self._at(row)
        if at is not None:
            self._proved[at] = True

    @property
    def highest(self) -> int:
        """The largest row number, −1 if there is none."""
        return int(self._rows[-1]) if len(self._rows) else -1

    @property
    def lowest(self) -> int:
        """The smallest row number, 0 if there is none."""
        return int(self._rows[0]) if len(self._rows) else 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def claimed(self) -> int:
        """How many verdicts need a proof: all but UNDECIDED, which claims nothing."""
        return len(self._rows) - self.undecided

    @property
    def determined(self) -> int:
        """How many verdicts say Yes or No."""
        return int(np.isin(self._codes, (Verdict.YES, Verdict.NO)).sum())

    @property
    def undecided(self) -> int:
        """How many verdicts claim nothing."""
        return int(np.count_nonzero(self._codes == Verdict.UNDECIDED))

    @property
    def unproved(self) -> IntArray:
        """The rows whose verdict needs a proof and has none."""
        return np.asarray(self._rows[(self._codes != Verdict.UNDECIDED) & ~self._proved])

    def _at(self, row: int) -> int | None:
        at = int(np.searchsorted(self._rows, row))
        return at if at < len(self._rows) and self._rows[at] == row else None


def read_claims(path: Path) -> Claims:
    """The verdicts in a CSV or Parquet file with the columns `row` and `verdict`; others are not looked at."""
    if path.suffix.lower() == ".parquet":
        return _once(path, *_from_parquet(path))
    rows, codes = array("q"), array("q")
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as file:
            for number, row, name in _entries(path, csv.reader(file, strict=True)):
                if not (row.isascii() and row.isdigit() and len(row) <= MOST_DIGITS):
                    raise InvalidInput(f"{path}, line {number}: row must be a whole number, got {row[:40]!r}")
                if name not in NAMES:
                    known = ", ".join(NAMES)
                    raise InvalidInput(f"{path}, line {number}: verdict must be one of {known}, got {name[:40]!r}")
                rows.append(int(row))
                codes.append(NAMES[name])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} is not a CSV file in UTF-8: {error}") from None
    return _once(path, np.array(rows, dtype=np.int64), np.array(codes, dtype=np.int64))


def _from_parquet(path: Path) -> tuple[IntArray, IntArray]:
    arrow, _ = modules(path)
    with opened(path, path) as file:
        try:
            table = file.read(columns=["row", "verdict"])
            rows = np.asarray(table.column("row").cast(arrow.int64()).to_numpy())
            names = table.column("verdict").cast(arrow.string()).dictionary_encode().combine_chunks()
            found = names.dictionary.to_pylist()
            places = np.asarray(names.indices.to_numpy(zero_copy_only=False))
        except (arrow.ArrowException, KeyError, OSError) as error:
            raise InvalidInput(f"{path} must have the columns row and verdict, which can be read: {error}") from None
    if wrong := [name for name in found if name not in NAMES]:
        raise InvalidInput(f"{path}: verdict must be one of {', '.join(NAMES)}, got {str(wrong[0])[:40]!r}")
    if len(rows) and (rows.dtype != np.int64 or places.dtype.kind != "i" or int(rows.min()) < 0):
        raise InvalidInput(f"{path}: a row or a verdict is missing, or a row is not a whole number from 0")
    codes = np.array([int(NAMES[name]) for name in found], dtype=np.int64)
    return rows, codes[places] if len(places) else np.zeros(0, dtype=np.int64)


def _once(path: Path, numbers: IntArray, codes: IntArray) -> Claims:
    distinct, first = np.unique(numbers, return_index=True)
    if len(distinct) < len(numbers):
        twice = np.delete(numbers, first)[0]
        raise InvalidInput(f"{path} has more than one verdict on row {twice}")
    return Claims(numbers, codes)


def _entries(path: Path, lines: Iterator[list[str]]) -> Iterator[tuple[int, str, str]]:
    """(line, row, verdict) of every line but the header."""
    header = next(lines, [])
    if header.count("row") != 1 or header.count("verdict") != 1:
        raise InvalidInput(f"{path} must begin with a line of column names, among them row and verdict (once each)")
    row, verdict = header.index("row"), header.index("verdict")
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(header):
            raise InvalidInput(f"{path}, line {number}: {len(cells)} cells, but {len(header)} columns")
        yield number, cells[row], cells[verdict]


@final
class Fingerprints:
    """Points from row `first` of a file on, by a digest each: enough to tell whether a proof is about one of them."""

    def __init__(self, blocks: Iterable[FloatArray], first: int = 0) -> None:
        self._first, self._digests = first, bytearray()
        for points in blocks:
            for point in points:
                self._digests += _digest(point)

    @classmethod
    def of_file(cls, path: Path, features: Sequence[str] | None, dimension: int) -> Fingerprints:
        """Those of all points of a file."""
        with open_points(path, features, dimension) as points:
            return cls(block.points for block in points.blocks)

    def __len__(self) -> int:
        return len(self._digests) // DIGEST

    def has(self, row: int) -> bool:
        """True if there is a point in that row."""
        return self._first <= row < self._first + len(self)

    def match(self, row: int, point: Sequence[float]) -> bool:
        """True if this is the point in that row."""
        at = DIGEST * (row - self._first)
        return self.has(row) and bytes(self._digests[at : at + DIGEST]) == _digest(np.array(point))


def _digest(point: object) -> bytes:
    numbers = (np.asarray(point, dtype=np.float64) + 0.0).astype("<f8")  # −0.0 is 0.0
    return hashlib.blake2b(numbers.tobytes(), digest_size=DIGEST).digest()
