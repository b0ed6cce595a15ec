"""A log of any length, read once: a few numbers a row in memory, points and explanations in a temporary file."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.monitoring.monitor_report import NO_CLIENT
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.blocks import some_rows
from overexplain.log.extremes import refuse_extreme
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import MechanismTable, Status
from overexplain.log.terms import with_terms

CHUNK = 16_384
"""Rows looked at together."""

LONGEST_NAME = 120
"""A longer name is cut, and a fingerprint put behind it, so that different clients stay different."""


class Numbers(Protocol):
    """Where the coordinates are: those of some rows, in rising order, on demand."""

    def points(self, rows: IntArray) -> FloatArray:
        """The points asked about."""
        ...

    def explanations(self, rows: IntArray) -> FloatArray:
        """The explanations of rows that have one."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """A log's rows: who, when, which label and terms as arrays; coordinates on demand. `clients[codes[i]]` asked row i."""

    features: tuple[str, ...] | None
    dimension: int
    mechanisms: tuple[Mechanism, ...]
    clients: tuple[str, ...]
    codes: IntArray
    labels: NDArray[np.int8]
    explained: BoolArray
    mechanism_ids: IntArray
    times: FloatArray
    numbers: Numbers

    def __len__(self) -> int:
        return len(self.codes)

    def points(self, rows: IntArray) -> FloatArray:
        """The points of some rows."""
        order = np.argsort(rows, kind="stable")
        found = np.empty((len(rows), self.dimension))
        found[order] = self.numbers.points(rows[order])
        return found

    def explanations(self, rows: IntArray) -> FloatArray:
        """The explanations of some rows; NaN where there is none."""
        found = np.full((len(rows), self.dimension), np.nan)
        there = np.flatnonzero(self.explained[rows])
        there = there[np.argsort(rows[there], kind="stable")]
        found[there] = self.numbers.explanations(rows[there])
        return found

    def chunks(self, rows: IntArray | None = None) -> Iterator[IntArray]:
        """The rows (all, if none are given), some at a time."""
        count = len(self) if rows is None else len(rows)
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            yield np.arange(start, stop) if rows is None else rows[start:stop]

    def log_of(self, rows: IntArray, explained: BoolArray | None = None) -> QueryLog:
        """Some rows as a log of their own; its row i is row `rows[i]` here. `explained`: explanations to keep (all)."""
        there = self.explained[rows] if explained is None else explained
        status = np.where(there, Status.ASKED, Status.NOT_ASKED)
        ids = np.where(there, self.mechanism_ids[rows], -1)
        answers = np.where(there[:, None], self.explanations(rows), np.nan)
        points, labels = self.points(rows), self.labels[rows]
        return some_rows(self.features, self.mechanisms, points, labels, answers, status, ids)

    def by_client(self) -> tuple[IntArray, IntArray]:
        """(all rows, client by client and in order; where each client's begin, with the end as the last entry)."""
        order = np.argsort(self.codes, kind="stable")
        return order, np.searchsorted(self.codes[order], np.arange(len(self.clients) + 1))


def gathered(
    blocks: Iterator[QueryLog],
    by: str | None,
    terms: Mechanism | None,
    files: ExitStack,
) -> Rows:
    """The rows of all blocks; `terms` for explanations that state none.

    The coordinates can be had until `files` is closed.
    """
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("codes", "labels", "explained", "ids", "times")}
    table, names, count = MechanismTable(), _Names(), 0
    features: tuple[str, ...] | None = None
    spool: _Spool | None = None
    for block in blocks:
        if not isinstance(block, QueryLog):
            raise InvalidInput(
                f"monitor reads a QueryLog, a path, or an iterator of QueryLogs; got {type(block).__name__}"
            )
        if block.dimension is None or not len(block):
            continue
        if spool is None:
            spool, features = _Spool(block.dimension, files), block.features
        if block.dimension != spool.dimension or block.features != features:
            raise DimensionMismatch(
                f"the block that begins with row {count} has other features than the first "
                f"({block.dimension}, not {spool.dimension}, or other names)"
            )
        if terms is not None:
            block = with_terms(block, terms)
        refuse_extreme(block, count)
        explained = block.status == Status.ASKED
        ids = np.array([table.id_of(mechanism) for mechanism in block.mechanisms] + [-1], dtype=np.int64)
        columns["codes"].append(names.codes(block.clients if by == "client" else [None] * len(block)))
        columns["labels"].append(np.array(block.labels))
        columns["explained"].append(explained)
        columns["ids"].append(ids[block.mechanism_ids])
        columns["times"].append(np.array(block.times))
        spool.add(block.points, block.explanations[explained])
        count += len(block)
    if spool is None:
        raise InvalidInput("the log has no rows: there is nothing to monitor")
    found = {name: np.concatenate(parts) for name, parts in columns.items()}
    spool.finish(found["explained"])
    return Rows(
        features, spool.dimension, tuple(table.known), tuple(names.texts), found["codes"], found["labels"],
        found["explained"], found["ids"], found["times"], spool,
    )  # fmt: skip


@final
class _Names:
    """Clients numbered in the order in which they come."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def codes(self, clients: Any) -> IntArray:
        """The number of each."""
        known = self._codes
        found = np.empty(len(clients), dtype=np.int64)
        for i, client in enumerate(clients):
            text = NO_CLIENT if client is None else client.encode("utf-8", "backslashreplace").decode()
            if len(text) > LONGEST_NAME:
                mark = hashlib.sha256(text.encode()).hexdigest()[:16]
                text = f"{text[: LONGEST_NAME - 20]}... {mark}"
            code = known.setdefault(text, len(known))
            if code == len(self.texts):
                self.texts.append(text)
            found[i] = code
        return found


@final
class _Spool:
    """Coordinates in temporary files, one of points and one of explanations; they vanish when `files` is closed."""

    def __init__(self, dimension: int, files: ExitStack) -> None:
        self.dimension = dimension
        self._points = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._explanations = files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._place: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def add(self, points: FloatArray, explanations: FloatArray) -> None:
        """Append rows."""
        for file, rows in ((self._points, points), (self._explanations, explanations)):
            file.write(np.ascontiguousarray(rows, dtype=np.float64).data)

    def finish(self, explained: BoolArray) -> None:
        """Say which rows have an explanation; nothing more is added."""
        self._points.flush()
        self._explanations.flush()
        self._place = (np.cumsum(explained) - 1).astype(np.int32)

    def points(self, rows: IntArray) -> FloatArray:
        """The points asked about."""
        return self._read(self._points.fileno(), rows)

    def explanations(self, rows: IntArray) -> FloatArray:
        """The explanations of rows that have one."""
        return self._read(self._explanations.fileno(), self._place[rows].astype(np.int64))

    def _read(self, file: int, places: IntArray) -> FloatArray:
        """Rows of a file, neighbours together: a mapped file would count as memory."""
        if not len(places):
            return np.zeros((0, self.dimension))
        size = 8 * self.dimension
        ends = np.append(np.flatnonzero(np.diff(places) != 1) + 1, len(places))
        parts, start = [], 0
        for end in ends.tolist():
            wanted, offset = (end - start) * size, int(places[start]) * size
            part = os.pread(file, wanted, offset)
            while len(part) < wanted:  # a read may stop early
                more = os.pread(file, wanted - len(part), offset + len(part))
                if not more:
                    raise OSError("the temporary copy of the log was cut short")
                part += more
            parts.append(part)
            start = end
        return np.frombuffer(b"".join(parts), dtype=np.float64).reshape(len(places), self.dimension)


@final
@dataclass(frozen=True, eq=False)
class _Whole:
    """Coordinates of a log that is in memory anyway."""

    log: QueryLog

    def points(self, rows: IntArray) -> FloatArray:
        """The points asked about."""
        return np.asarray(self.log.points[rows])

    def explanations(self, rows: IntArray) -> FloatArray:
        """The explanations of rows that have one."""
        return np.asarray(self.log.explanations[rows])


def in_memory(log: QueryLog, by: str | None, terms: Mechanism | None) -> Rows:
    """The rows of a log that is in memory; nothing is copied to a file."""
    if terms is not None:
        log = with_terms(log, terms)
    if log.dimension is None or not len(log):
        raise InvalidInput("the log has no rows: there is nothing to monitor")
    refuse_extreme(log)
    names = _Names()
    codes = names.codes(log.clients if by == "client" else [None] * len(log))
    return Rows(
        log.features, log.dimension, log.mechanisms, tuple(names.texts), codes, np.array(log.labels),
        log.status == Status.ASKED, np.array(log.mechanism_ids), np.array(log.times), _Whole(log),
    )  # fmt: skip
