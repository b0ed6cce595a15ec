"""`monitor`: what a log has given away so far, to every client and to all together, and who asks as an attacker would."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.monitoring.monitor_report import MonitorReport
from overexplain.auditing.monitoring.rows import Rows, gathered, in_memory
from overexplain.auditing.monitoring.work import Progress, Work
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import as_generator
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.blocks import as_columns, read_blocks
from overexplain.log.extremes import numbers_of_a_log
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel


def monitor(
    log: QueryLog | str | os.PathLike[str] | Iterable[QueryLog],
    by: str | None = "client",
    *,
    model: LinearModel | Hyperplane | None = None,
    reference: ArrayLike | None = None,
    detail: int = 20,
    terms: Mechanism | None = None,
    mapping: Mapping[str, Any] | None = None,
    quota: int | None = None,
    rng: int | np.random.Generator | None = 0,
    progress: Progress | None = None,
) -> MonitorReport:
    """What the log gives away: per client and pooled, when the model became known, and behavioural alarms.

    log        a QueryLog, the path of one (.jsonl, .csv, .parquet), or an iterator of QueryLogs that follow each other; the
               last two take the memory of a few blocks and some numbers a row, and a temporary file
    by         "client", or None: all requests are one client's
    model      the model that answered: margins and angles are then from the true boundary, else from a recovered or fitted one
    reference  points whose decisions are to be kept (rows); default: questions of the log, drawn and held out
    detail     for how many clients, the most exposed ones, everything is worked out
    terms      of explanations whose rows state none
    mapping    which column of a .csv or .parquet file is what: {"client": "client_id", "y": "decision", "time": "ts"}
    quota      requests that one client may make: warns when most of them are used
    progress   called with (what is being done, how far, of how much)

    A log that no model fits, or that the given model contradicts, raises InconsistentLog, with rows and clients.

    >>> from overexplain.oracles.exact import ModelOracle
    >>> rng = np.random.default_rng(0)
    >>> service = ModelOracle(Hyperplane([1.0, 2.0, -1.0], 0.5), "l1")
    >>> log, asked = QueryLog(mechanism=service.mechanism), rng.normal(size=(40, 3))
    >>> _ = log.add_explanation(asked, service.explain(asked), service.classify(asked), client=[f"c{i % 20}" for i in range(40)])
    >>> report = monitor(log)
    >>> report.pooled.known, report.pooled.recoverable_at.explanations, report.pooled.recoverable_at.clients
    ('exactly', 3, 3)
    """
    if by not in ("client", None):
        raise InvalidInput(f'by is "client" or None, got {by!r}')
    _refuse_unless_whole(detail, 0, "detail is a number of clients")
    _refuse_unless_whole(1 if quota is None else quota, 1, "quota is a number of requests (or None)")
    show = progress or (lambda *_: None)
    generator = as_generator(rng)
    features = model.features if isinstance(model, LinearModel) else None
    with numbers_of_a_log(), ExitStack() as files:
        rows = _read(log, by, terms, mapping, features, files, show)
        work = Work(rows, _truth(model, rows), reference, generator)
        show("working out what all clients together know", 1, 4)
        work.find_boundary()
        show("looking at every request", 2, 4)
        seen, found = work.seen(), work.alarms(quota)
        show("working out what clients know", 3, 4)
        return work.report(seen, found, detail, rng, show)


def _refuse_unless_whole(value: Any, least: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(f"{what}, {least} or more, got {value!r}")


def _read(
    log: Any,
    by: str | None,
    terms: Mechanism | None,
    mapping: Mapping[str, Any] | None,
    features: tuple[str, ...] | None,
    files: ExitStack,
    show: Progress,
) -> Rows:
    if isinstance(log, QueryLog):
        return in_memory(log, by, terms)
    blocks: Iterator[QueryLog]
    if isinstance(log, str | os.PathLike):
        path = Path(os.fsdecode(log))
        columns = as_columns(mapping, features)
        if path.suffix.lower() == ".jsonl" and mapping is None:
            columns = as_columns(None)
        blocks = read_blocks(path, columns, terms, lambda *read: show("reading", *read))
    elif isinstance(log, Iterable):
        blocks = iter(log)
    else:
        raise InvalidInput(f"monitor reads a QueryLog, a path, or an iterator of QueryLogs; got {type(log).__name__}")
    return gathered(blocks, by, terms, files)


def _truth(model: LinearModel | Hyperplane | None, rows: Rows) -> Hyperplane | None:
    """The model's plane, its features in the log's order."""
    if model is None or isinstance(model, Hyperplane):
        plane, names = model, None
    elif isinstance(model, LinearModel):
        plane, names = model.hyperplane, model.features
    else:
        raise InvalidInput(
            f"model is a LinearModel or a Hyperplane, got {type(model).__name__}; load_model reads others"
        )
    if plane is None:
        return None
    if plane.dimension != rows.dimension:
        raise DimensionMismatch(f"the model has {plane.dimension} features, the log {rows.dimension}")
    if names is None or rows.features is None or names == rows.features:
        return plane
    if set(names) != set(rows.features):
        raise InvalidInput("the model and the log name different features; they must be the same, in any order")
    return Hyperplane(plane.normal[[names.index(name) for name in rows.features]], plane.offset)
