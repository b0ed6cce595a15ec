"""Does any linear model fit a log?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from overexplain.errors import InconsistentLog, SolverFailed
from overexplain.knowledge.engine import Knowledge
from overexplain.log.blocks import some_rows
from overexplain.log.querylog import QueryLog

FIRST, GROWTH = 250, 4
"""Rows looked at first, and how many times as many each next time: two rows that contradict each other are found soon."""


@dataclass(frozen=True)
class Fit:
    """Whether a linear model fits the first `looked_at` of `rows` rows.

    "fits": one does. "contradiction": none does, nor any that fits the rows `conflict`; `proof` says why. "open": neither was
    found, as may happen for exact answers under norms with irrational lengths.
    """

    verdict: Literal["fits", "contradiction", "open"]
    rows: int
    looked_at: int
    conflict: tuple[int, ...] = ()
    proof: str = ""

    @property
    def complete(self) -> bool:
        """True if nothing is left to look at: all rows were, or some contradict each other."""
        return self.verdict == "contradiction" or self.looked_at == self.rows

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        found: dict[str, Any] = {"verdict": self.verdict, "rows": self.rows, "looked_at": self.looked_at}
        return found | {"conflict": list(self.conflict), "proof": self.proof or None}


def look_for_fit(
    log: QueryLog,
    time_limit: float | None = None,
    clock: Callable[[], float] = time.monotonic,
    seen: Callable[[int, int], None] = lambda _, __: None,
) -> Fit:
    """Whether a linear model fits the log, or as many of its first rows as the time (in seconds) allows.

    `seen` hears how many rows have been looked at, of how many.

    >>> log = QueryLog()
    >>> log.add_label([[0.0], [1.0], [2.0]], [-1, 1, -1])
    0
    >>> look_for_fit(log).conflict
    (0, 1, 2)
    """
    started, rows = clock(), len(log)
    count, fit = min(FIRST, rows), Fit("fits", rows, 0)
    while True:
        began = clock()
        left = None if time_limit is None else max(time_limit - (began - started), 0.001)
        fit = _fit(log, count, left)
        now = clock()
        if fit.complete:
            return fit
        seen(count, rows)
        more = min(GROWTH * count, rows)
        if time_limit is not None and now - started + (now - began) * (more / count) > time_limit:
            return fit
        count = more


def _fit(log: QueryLog, count: int, time_limit: float | None) -> Fit:
    try:
        knowledge = Knowledge(log if count == len(log) else _first(log, count), time_limit=time_limit)
    except InconsistentLog as error:
        proof = "" if error.proof is None else str(error.proof)
        return Fit("contradiction", len(log), count, tuple(error.rows), proof)
    except SolverFailed:
        return Fit("open", len(log), count)
    return Fit("fits" if knowledge.is_consistent else "open", len(log), count)


def _first(log: QueryLog, count: int) -> QueryLog:
    labels, status, ids = (column[:count] for column in (log.labels, log.status, log.mechanism_ids))
    return some_rows(log.features, log.mechanisms, log.points[:count], labels, log.explanations[:count], status, ids)
