"""Which rows of logs are equal: in every column, numbers bit by bit.

Two equal rows in two logs are one request that both have recorded; equal rows within one log are requests that were
really repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import IntArray
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import MechanismTable, Status

Bits = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def row_numbers(logs: Sequence[QueryLog]) -> IntArray:
    """A number for every row of the logs, one log after the other: rows have the same number if and only if they are equal.

    The logs must have the same number of features, in the same order.

    >>> log = QueryLog()
    >>> log.add_label([[0.0], [1.0], [0.0], [-0.0]], [1, 1, 1, 1])
    0
    >>> numbers = row_numbers([log])
    >>> len(numbers), bool(numbers[0] == numbers[2]), bool(numbers[0] == numbers[3])
    (4, True, False)
    """
    logs = [log for log in logs if len(log)]
    if not logs:
        return np.zeros(0, dtype=np.int64)
    others = _others(logs)
    mixed = _mixed(_columns(logs, others))
    order = np.argsort(mixed, kind="stable")
    near = np.flatnonzero(mixed[order[1:]] == mixed[order[:-1]])
    one, other = order[near], order[near + 1]
    if len(near) and not all((column[one] == column[other]).all() for column in _columns(logs, others)):
        # Different rows that are mixed to the same number: rare, or made up by somebody.
        return _sorted_numbers(np.column_stack(list(_columns(logs, others))))
    starts = np.ones(len(order), dtype=np.int64)
    starts[near + 1] = 0
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(starts) - 1
    return numbers


def repeats(log: QueryLog) -> int:
    """How many rows are equal to an earlier one."""
    numbers = row_numbers([log])
    return len(numbers) - (int(numbers.max()) + 1 if len(numbers) else 0)


def _columns(logs: Sequence[QueryLog], others: Bits) -> Iterator[Bits]:
    """The columns of all logs together, one by one: a log may be longer than memory should hold."""
    for k in range(logs[0].dimension or 0):
        yield _bits([log.points[:, k] for log in logs])
    for k in range(logs[0].dimension or 0):
        # Where there is no explanation, always the same NaN.
        yield _bits([np.where(log.status == Status.ASKED, log.explanations[:, k], np.nan) for log in logs])
    yield from others.T


def _others(logs: Sequence[QueryLog]) -> Bits:
    """The columns besides the points, as numbers: texts and mechanisms are counted through all logs."""
    texts: dict[str | None, int] = {}
    table = MechanismTable()
    blocks = []
    for log in logs:
        for column in (log.clients, log.sources):
            for text in dict.fromkeys(column):
                texts.setdefault(text, len(texts))
        ids = np.array([*(table.id_of(known) for known in log.mechanisms), -1], dtype=np.int64)  # id -1 finds the last
        times = np.where(np.isnan(log.times), np.nan, log.times)
        block = np.empty((len(log), 6), dtype=np.int64)
        block[:, 0], block[:, 1], block[:, 2] = log.labels, log.status, ids[log.mechanism_ids]
        block[:, 3] = times.view(np.int64)
        block[:, 4] = np.fromiter(map(texts.__getitem__, log.clients), dtype=np.int64, count=len(log))
        block[:, 5] = np.fromiter(map(texts.__getitem__, log.sources), dtype=np.int64, count=len(log))
        blocks.append(block)
    return _bits(blocks)


def _bits(blocks: Sequence[NDArray[np.float64] | NDArray[np.int64]]) -> Bits:
    whole = np.ascontiguousarray(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))
    return whole.view(np.uint64)


def _mixed(columns: Iterable[Bits]) -> Bits:
    """A number for every row that depends on all its bits; different rows may share it."""
    mixed = np.zeros(1, dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column) * _GOLDEN
        mixed ^= mixed >> _SHIFT
    return mixed


def _sorted_numbers(rows: Bits) -> IntArray:
    """The same numbers by sorting whole rows: slower, whatever the rows are."""
    whole = rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()
    return np.asarray(np.ravel(np.unique(whole, return_inverse=True)[1]), dtype=np.int64)
