"""Logs that follow each other, as the blocks of a file do, and the one log they make."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from overexplain.errors import DimensionMismatch
from overexplain.log.querylog import QueryLog


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
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    log = like(parts[0]) if parts else QueryLog()
    rows = sum(map(len, parts))
    if rows:
        log._grow(rows, next(part.dimension for part in parts if part.dimension is not None))
    parts.reverse()
    while parts:
        part = parts.pop()  # so that its memory can be used again
        if part.dimension not in (None, log.dimension) or part.features != log.features:
            raise DimensionMismatch(
                f"the rows from {len(log)} on have other features than those before "
                f"({part.dimension}, not {log.dimension}, or other names)"
            )
        ids = np.array([*(log._table.id_of(mechanism) for mechanism in part.mechanisms), -1])[part.mechanism_ids]
        columns = (part.labels, part.explanations, part.status, ids, part.clients, part.times, part.sources)
        log._append(part.points, *columns)
    return log
