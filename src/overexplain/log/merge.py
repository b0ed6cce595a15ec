"""Several logs as one, by content: a request that more than one of them recorded is there once.

A row is the same request if it is equal in every column (`equal_rows`). A row that occurs k times in one log and m
times in another occurs max(k, m) times in the result: repeats within one log are real. The result therefore does not
depend on how logs overlap, on merging again, nor, but for the order of its rows, on the order of the logs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import IntArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.equal_rows import row_numbers
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import differences


def merge_logs(logs: Sequence[QueryLog], names: Sequence[str] | None = None) -> QueryLog:
    """The union of the logs: the first one's rows, then what the others have more, in their order.

    Features are matched by name and stand in the first log's order. The log's own mechanism is kept if all logs have the
    same; rows keep theirs. `names` are what errors call the logs.

    >>> one, other = QueryLog(), QueryLog()
    >>> one.add_label([[0.0], [0.0], [1.0]], [-1, -1, 1]), other.add_label([[0.0], [2.0]], [-1, 1])
    (0, 0)
    >>> merge_logs([one, other]).points.ravel()
    array([0., 0., 1., 2.])
    """
    if not logs:
        raise InvalidInput("there is no log to merge")
    called = [f"log {i}" for i in range(len(logs))] if names is None else names
    features, dimension = _common(logs, called)
    orders = [_order(log, features, name) for log, name in zip(logs, called, strict=True)]
    first = logs[0].mechanism
    merged = QueryLog(features, first if all(log.mechanism == first for log in logs) else None)
    if dimension is None:
        return merged
    if merged.dimension is None:
        merged._set_dimension(dimension)
    parts = [
        log if order is None else _reordered(log, order) for log, order in zip(logs, orders, strict=True) if len(log)
    ]
    if parts:
        for part, rows in zip(parts, _new_rows(parts), strict=True):
            _take(merged, part, rows)
    return merged


def _common(logs: Sequence[QueryLog], names: Sequence[str]) -> tuple[tuple[str, ...] | None, int | None]:
    """The features' names and number; a log that says neither goes with all."""
    speaking = [(log, name) for log, name in zip(logs, names, strict=True) if log.dimension is not None]
    if not speaking:
        return None, None
    lead, first = speaking[0]
    for log, name in speaking[1:]:
        if log.features is not None and lead.features is not None:
            if wrong := differences(log.features, lead.features):
                raise InvalidInput(f"{name} must have the features of {first} to be merged with it; {wrong}")
        elif log.dimension != lead.dimension:
            raise DimensionMismatch(f"{first} has {lead.dimension} features, {name} has {log.dimension}")
        elif (log.features is None) != (lead.features is None):
            named, bare = (first, name) if log.features is None else (name, first)
            raise InvalidInput(f"{named} names its features, {bare} does not: which is which? Name them there, too")
    return lead.features, lead.dimension


def _order(log: QueryLog, features: tuple[str, ...] | None, name: str) -> list[int] | None:
    """Where the features are in this log; None if they are in order."""
    if log.features is None or features is None or log.features == features:
        return None
    for mechanism in (log.mechanism, *log.mechanisms):
        if mechanism is not None and _is_ordered(mechanism):
            raise InvalidInput(
                f"{name} has its features in another order, and terms made for that order ({mechanism.describe()}); "
                "write it with its features in the order of the first log"
            )
    return [log.features.index(feature) for feature in features]


def _is_ordered(mechanism: Mechanism) -> bool:
    """Whether it has weights, a matrix, groups, corners, limits, which belong to features by their order."""
    norms, domain = (mechanism.distance, mechanism.robustness), mechanism.domain
    limited = domain is not None and domain != Domain(domain.dimension)
    return limited or any(getattr(norm, "dimension", None) is not None for norm in norms)


def _reordered(log: QueryLog, order: list[int]) -> QueryLog:
    assert log.features is not None
    moved = QueryLog([log.features[i] for i in order])
    for known in log.mechanisms:
        moved._table.id_of(known)
    rest = (log.status, log.mechanism_ids, log.clients, log.times, log.sources)
    moved._append(log.points[:, order], log.labels, log.explanations[:, order], *rest)
    return moved


def _new_rows(parts: Sequence[QueryLog]) -> Iterator[IntArray]:
    """The rows of each log to keep: the k-th of equal rows in it, if no log before has k of them."""
    numbers = row_numbers(parts)
    known = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
    for own in np.split(numbers, np.cumsum([len(part) for part in parts])[:-1]):
        yield np.flatnonzero(_occurrences(own) >= known[own])
        np.maximum(known, np.bincount(own, minlength=len(known)), out=known)


def _occurrences(numbers: IntArray) -> IntArray:
    """How often each number stands further ahead.

    >>> _occurrences(np.array([7, 3, 7, 7, 3]))
    array([0, 0, 1, 2, 1])
    """
    order = np.argsort(numbers, kind="stable")
    at = np.arange(len(order))
    starts = np.diff(numbers[order], prepend=-1) != 0
    counts = np.empty(len(order), dtype=np.int64)
    counts[order] = at - np.maximum.accumulate(np.where(starts, at, 0))
    return counts


def _take(merged: QueryLog, part: QueryLog, rows: IntArray) -> None:
    """Append these rows of a log."""
    if not len(rows):
        return
    old = part.mechanism_ids[rows]
    ids = np.full(len(part.mechanisms) + 1, -1, dtype=np.int64)  # id -1 finds the last
    used, first_use = np.unique(old, return_index=True)
    for number in used[np.argsort(first_use)].tolist():
        if number >= 0:
            ids[number] = merged._table.id_of(part.mechanisms[number])
    columns = (part.labels, part.explanations, part.status)
    labels, explanations, status = (column[rows] for column in columns)
    texts = (part.clients[rows], part.times[rows], part.sources[rows])
    merged._append(part.points[rows], labels, explanations, status, ids[old], *texts)
