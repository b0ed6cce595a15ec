"""Terms for a log that does not say what its explanations follow."""

from __future__ import annotations

import numpy as np

from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status


def without_terms(log: QueryLog) -> int:
    """How many explained rows have no mechanism: what they promise is not known."""
    return int(np.count_nonzero((log.status == Status.ASKED) & (log.mechanism_ids < 0)))


def with_terms(log: QueryLog, mechanism: Mechanism) -> QueryLog:
    """The same log, row for row, in which explained rows without a mechanism follow `mechanism`.

    >>> log = QueryLog()
    >>> log.add_explanation([0.0, 0.0], [1.0, 0.0], label=-1)
    0
    >>> with_terms(log, Mechanism("l1")).mechanism_of(0) == Mechanism("l1")
    True
    """
    stated = QueryLog(log.features, mechanism if log.mechanism is None else log.mechanism)
    if log.dimension is None:
        return stated
    mechanism.fits(log.dimension)
    if stated.dimension is None:
        stated._set_dimension(log.dimension)
    ids = log.mechanism_ids.copy()
    for known in log.mechanisms:
        stated._table.id_of(known)  # the same numbers as before
    bare = (log.status == Status.ASKED) & (ids < 0)
    if bare.any():
        ids[bare] = stated._table.id_of(mechanism)
    stated._hold({name: log._view(name) for name in log._buffers} | {"mechanism_ids": ids})
    return stated
