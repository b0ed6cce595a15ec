"""Features that answers moved by whole numbers only, although their terms say that any number is possible."""

from __future__ import annotations

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.log.querylog import QueryLog

FEWEST = 3
"""Fewer moves of a feature may be whole by chance."""

NAMED = 6
LONGEST_NAME = 40
CHUNK = 65_536
"""Rows looked at together."""


def whole_moves(log: QueryLog) -> dict[int, int]:
    """The features, by number, that answers moved three times or more and only from whole number to whole number; how often.

    Looked at are the answers whose terms promise more than another label and have no domain: such a promise is about all of R^p and
    false if the service can only propose whole numbers.

    >>> from overexplain.geometry.mechanism import Mechanism
    >>> log = QueryLog(mechanism=Mechanism("l1"))
    >>> asked = np.array([[1.0, 0.5], [2.0, 0.5], [3.0, 0.5]])
    >>> _ = log.add_explanation(asked, asked + [1.0, 0.5])
    >>> whole_moves(log)
    {0: 3}
    """
    if log.dimension is None:
        return {}
    is_open = np.array(
        [m.domain is None and m.slack is not None for m in log.mechanisms] + [False]
    )  # id −1 finds the last
    rows = log.explained[is_open[log.mechanism_ids[log.explained]]]
    moves, whole = (np.zeros(log.dimension, dtype=np.int64) for _ in range(2))
    for start in range(0, len(rows), CHUNK):
        own = rows[start : start + CHUNK]
        points, answers = log.points[own], log.explanations[own]
        moved = points != answers
        moves += moved.sum(axis=0)
        whole += (moved & _is_whole(points) & _is_whole(answers)).sum(axis=0)
    found = np.flatnonzero((moves >= FEWEST) & (moves == whole))
    return dict(zip(found.tolist(), moves[found].tolist(), strict=True))


def whole_moves_in_words(log: QueryLog) -> str | None:
    """A warning that names the features that `whole_moves` finds; None if there are none."""
    found = whole_moves(log)
    if not found:
        return None
    names = [f"feature {i}" if log.features is None else repr(log.features[i][:LONGEST_NAME]) for i in found]
    named = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return (
        f"answers changed {named} by whole numbers only ({sum(found.values()):,} moves), but the terms say that any number is "
        "possible: if the service can only propose whole numbers, say so (Mechanism(domain=...)); what is concluded from its "
        "answers is false otherwise"
    )


def _is_whole(values: FloatArray) -> BoolArray:
    return np.asarray(values == np.round(values))
