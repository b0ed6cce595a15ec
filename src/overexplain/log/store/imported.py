"""A log as a run that is over: whoever goes on with it (`Run.open`, `Kept`) need not ask again what the log holds."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Row, Status
from overexplain.log.store.file import create_file
from overexplain.log.store.rows import (
    Outcome,
    Verb,
    answer_digest,
    point_bytes,
    question_hash,
    stored_outcome,
)
from overexplain.log.store.run import first_rows


def write_run(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the log as a new run whose budget is spent; a row with a label and an explanation becomes two questions.

    >>> import tempfile
    >>> from overexplain.log.store.run import Run
    >>> log = QueryLog(mechanism=Mechanism("l1"))
    >>> _ = log.add_explanation([20.0, 1.0], [20.0, 1.5], label=-1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_run(log, folder + "/march.sqlite")
    ...     Run.read(folder + "/march.sqlite")  # doctest: +ELLIPSIS
    Run('...march.sqlite': 2 answered, 2 of 2 spent)
    """
    if log.dimension is None:
        raise InvalidInput(
            "a log without rows and features cannot be a run: it does not say how many features there are"
        )
    answers = [answer for row in log for answer in _answers(row)]
    header = first_rows({"imported": True}, log.dimension, log.features, _terms(log), len(answers), idempotent=False)
    now, asked = time.time(), Counter[bytes]()
    questions, intents, outcomes = [], [], []
    for number, (row, verb, outcome) in enumerate(answers, 1):
        point = point_bytes(row.point, log.dimension)
        same = verb.encode() + point
        occurrence, asked[same] = asked[same], asked[same] + 1
        question, stored = question_hash(verb, point, occurrence), stored_outcome(outcome, verb, log.dimension)
        when = now if row.time is None else row.time
        questions.append((number, question, verb, occurrence, point))
        intents.append((number, number, when))
        outcomes.append((number, number, *stored, when, answer_digest(question, number, number, stored)))

    rows: dict[str, list[tuple[Any, ...]]] = {"question": questions, "intent": intents, "answer": outcomes}
    create_file(path, {**header, **rows})[1].close()


def left_out(log: QueryLog) -> tuple[str, ...]:
    """What of the log a run has no place for, in words."""
    both = int(np.count_nonzero((log.labels != 0) & (log.status != Status.NOT_ASKED)))
    bare = int(np.count_nonzero((log.labels == 0) & (log.status == Status.NOT_ASKED)))
    return tuple(
        what
        for what, there in (
            ("clients", any(name is not None for name in log.clients)),
            ("sources", any(name is not None for name in log.sources)),
            ("that times are not known (now stands for them)", bool(np.isnan(log.times).any())),
            (f"label and explanation in one row ({both:,} become two)", both > 0),
            (f"{bare:,} without any answer", bare > 0),
        )
        if there
    )


def _answers(row: Row) -> Iterator[tuple[Row, Verb, Outcome]]:
    """The questions of a row, with what came of them."""
    if row.label is not None:
        yield row, "classify", Outcome("label", label=row.label)
    if row.explanation is not None:
        yield row, "explain", Outcome("explanation", explanation=row.explanation)
    elif row.status is Status.NONE:
        yield row, "explain", Outcome("none")
    elif row.status is Status.FAILED:
        yield row, "explain", Outcome("refused", detail="failed, as the log says")


def _terms(log: QueryLog) -> Mechanism | None:
    """The terms of all explanations; a run has no place for several."""
    used = {int(number) for number in log.mechanism_ids[log.status != Status.NOT_ASKED]}
    if len(used) > 1:
        raise InvalidInput(
            f"a run has one mechanism, the explanations of this log follow {len(used)}; save it as .jsonl"
        )
    return log.mechanism if not used or used == {-1} else log.mechanisms[used.pop()]
