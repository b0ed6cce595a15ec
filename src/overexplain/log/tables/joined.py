"""Logs that follow each other, as the blocks of a file do, and the one log they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import DimensionMismatch
from overexplain.log.querylog import QueryLog
from overexplain.log.spool import Spool


def like(log: QueryLog) -> QueryLog:
    """An empty log for what comes next in the same file."""
    fresh = QueryLog(log.features, log.mechanism)
    if log.dimension is not None and fresh.dimension is None:
        fresh._set_dimension(log.dimension)
    return fresh


def joined(blocks: Iterable[QueryLog]) -> QueryLog:
    """One log of all rows, in order; features and default mechanism are those of the first.

    >>> first, second = QueryLog(), QueryLog()
    >>> first.add_label([1.0, 2.0], 1), second.add_label([[3.0, 4.0], [5.0, 6.0]], [1, -1])
    (0, 0)
    >>> joined([first, second])
    QueryLog(3 rows: 3 labels, 0 explanations, 2 features)
    """
    parts = iter(blocks)
    first, second = next(parts, None), next(parts, None)
    if first is None or second is None:
        return QueryLog() if first is None else first
    log = like(first)
    texts: dict[str | None, str | None] = {}
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in _SHORT}
    coordinates: dict[str, Spool] = {}
    with ExitStack() as files:
        for part in _alike(log, chain((first, second), parts)):
            coordinates = coordinates or {name: Spool(log.dimension or 0, files) for name in _LONG}
            for name, spool in coordinates.items():
                spool.add(getattr(part, name))
            ids = np.array([*(log._table.id_of(mechanism) for mechanism in part.mechanisms), -1])[part.mechanism_ids]
            clients, sources = (_once(column, texts) for column in (part.clients, part.sources))
            found: tuple[NDArray[Any], ...] = (part.labels, part.status, ids, clients, part.times, sources)
            for kept, column in zip(columns.values(), found, strict=True):
                kept.append(column)
        if coordinates:
            whole = {name: np.concatenate(kept) for name, kept in columns.items()}
            log._hold(whole | {name: spool.rows() for name, spool in coordinates.items()})
    return log


_LONG = ("points", "explanations")
_SHORT = ("labels", "status", "mechanism_ids", "clients", "times", "sources")
"""The columns with one entry a row: always in memory."""


def _alike(log: QueryLog, parts: Iterable[QueryLog]) -> Iterator[QueryLog]:
    """The parts that have rows, if their features are those of the log."""
    count = 0
    for part in parts:
        if log.dimension is None and part.dimension is not None:
            log._set_dimension(part.dimension)
        if part.dimension not in (None, log.dimension) or part.features != log.features:
            raise DimensionMismatch(
                f"the rows from {count} on have other features than those before "
                f"({part.dimension}, not {log.dimension}, or other names)"
            )
        if len(part):
            count += len(part)
            yield part


def _once(column: NDArray[np.object_], known: dict[str | None, str | None]) -> NDArray[np.object_]:
    """The column, equal texts the same object: every block has made its own."""
    found = np.empty(len(column), dtype=object)
    found[:] = list(map(known.setdefault, column, column))
    return found
