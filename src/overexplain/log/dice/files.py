"""Logs from and to files of DiCE, version 2: what `CounterfactualExplanations.to_json` writes and `from_json` reads.

Such a file has a list of queries, and to each either several counterfactuals or none. Here every counterfactual is a row
of its own, with its query's point and label; a query without any is one row whose status is "none". DiCE promises that
the outcome changes and nothing about distances, which is `Mechanism(None, slack=None)`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from overexplain._files import open_regular, replacing
from overexplain.errors import InvalidInput
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.dice.outcomes import Outcomes
from overexplain.log.dice.tables import DiceTables, parse_dice
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status, number_of

VERSION = "2.0"
LARGEST = 2**28
"""Bytes of a file that is read: all of it is in memory at once, several times."""

FLIPS = Mechanism(None, slack=None)
"""What DiCE promises: the outcome changes."""


def read_dice(
    path: str | os.PathLike[str], mapping: Mapping[str, Any] | None = None, mechanism: Mechanism | None = None
) -> QueryLog:
    """The log in a file of DiCE; its explanations follow `mechanism` (default: only the label flips).

    `mapping` may say which outcome means Yes (`yes`), which column is the outcome (`y`), and in which order the features
    are wanted (`x`). Counterfactuals whose own outcome is the query's are no answers: they are left out, with a warning.
    """
    name = os.fspath(path)
    try:
        return _as_log(parse_dice(_content(name), mapping), mechanism or FLIPS, name)
    except InvalidInput as error:
        raise type(error)(f"{name}: {error}") from None


def write_dice(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the explanations of a log as a file that DiCE reads; `left_out` says what it cannot hold.

    Consecutive rows about one point and label become one query with several counterfactuals.
    """
    text = dice_text(log)
    try:
        with replacing(path, private=True) as beside:
            beside.write_text(text, encoding="ascii")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot save the log as {os.fspath(path)}: {reason}") from error


def left_out(log: QueryLog) -> tuple[str, ...]:
    """What a file of DiCE cannot hold of this log, in words.

    >>> log = QueryLog()
    >>> log.add_label([1.0, 2.0], 1, client="ann")
    0
    >>> left_out(log)
    ('1 row that asks for no explanation', 'clients')
    """
    gone = []
    if bare := int(np.count_nonzero(log.status == Status.NOT_ASKED)):
        gone.append(number_of(bare, "row") + (" that asks" if bare == 1 else " that ask") + " for no explanation")
    if failed := int(np.count_nonzero(log.status == Status.FAILED)):
        gone.append(number_of(failed, "failed request"))
    if any(client is not None for client in log.clients):
        gone.append("clients")
    if not np.isnan(log.times).all():
        gone.append("times")
    if any(source is not None for source in log.sources):
        gone.append("sources")
    if any(mechanism != FLIPS for mechanism in log.mechanisms):
        gone.append("terms of explanations")
    return tuple(gone)


def dice_text(log: QueryLog) -> str:
    """The text of a file that DiCE reads."""
    names = list(log.features or (f"x{i}" for i in range(log.dimension or 0)))
    outcome = "outcome"
    while outcome in names:
        outcome += "_"
    queries, answers = [], []
    for point, label, found in _queries(log):
        queries.append([[*point, _outcome(label)]])
        answers.append([[*row, _outcome(-label)] for row in found] or None)
    complete = all(query[0][-1] is not None for query in queries)
    entries = {
        "test_data": queries,
        "cfs_list": answers,
        "local_importance": None,
        "summary_importance": None,
        "data_interface": {"outcome_name": outcome, "data_df": None},
        "feature_names": names,
        "feature_names_including_target": [*names, outcome],
        "model_type": "classifier",
        # DiCE computes the opposite itself, and cannot where an outcome is missing.
        "desired_class": "opposite" if complete else None,
        "desired_range": None,
        "metadata": {"version": VERSION},
    }
    return json.dumps(entries, allow_nan=False)


def _queries(log: QueryLog) -> Iterator[tuple[list[float], int, list[list[float]]]]:
    """Every query: its point, its label (0: missing) and its counterfactuals."""
    rows = np.flatnonzero((log.status == Status.ASKED) | (log.status == Status.NONE))
    if not len(rows):
        return
    bits = np.ascontiguousarray(log.points[rows]).view(np.int64)
    came, labels = log.status[rows] == Status.ASKED, log.labels[rows]
    same = (bits[1:] == bits[:-1]).all(axis=1) & (labels[1:] == labels[:-1]) & came[1:] & came[:-1]
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        found = log.explanations[rows[start:stop]].tolist() if came[start] else []
        yield log.points[rows[start]].tolist(), int(labels[start]), found


def _outcome(label: int) -> int | None:
    return {YES: 1, NO: 0}.get(label)


def _content(name: str) -> bytes:
    try:
        with open_regular(name) as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot be read ({getattr(error, 'strerror', None) or error}); check the path") from None
    if len(content) > LARGEST:
        raise InvalidInput(f"more than {LARGEST // 2**20} MiB; a file of DiCE is read as a whole: split its queries")
    return content


def _as_log(tables: DiceTables, mechanism: Mechanism, name: str) -> QueryLog:
    features = tables.features
    unnamed = features == tuple(f"x{i}" for i in range(len(features)))
    log = QueryLog(None if unnamed else features, mechanism)
    if features and unnamed:
        log._set_dimension(len(features))
    if not len(tables.queries):
        return log
    outcomes = Outcomes(tables)
    flips = outcomes.flips()
    if stay := np.flatnonzero(~flips).tolist():
        i, j = tables.place_of_answer(stay[0])
        many = number_of(len(stay), "counterfactual")
        verb = "has the outcome of its query and is" if len(stay) == 1 else "have the outcome of their query and are"
        said = f"{name}: {many} {verb} left out, the first in query {i}, counterfactual {j} (counted from 0)"
        warnings.warn(said, UserWarning, stacklevel=3)
    kept = np.flatnonzero(flips)
    per_query = np.bincount(tables.asked[kept], minlength=len(tables.queries))
    without = np.flatnonzero(per_query == 0)
    query = np.concatenate([tables.asked[kept], without])
    answers = np.concatenate([tables.answers[kept], np.full((len(without), len(features)), np.nan)])
    order = np.argsort(query, kind="stable")
    query, answers = query[order], answers[order]
    status = np.where(np.isnan(answers[:, 0]), Status.NONE, Status.ASKED)
    log._append(tables.queries[query], outcomes.labels[query], answers, status, log._table.id_of(mechanism))
    return log
