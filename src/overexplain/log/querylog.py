"""The log of a service's answers: one row a request, one array a column, nothing ever changed or removed."""

from __future__ import annotations

import copy
import math
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray, as_point_or_rows
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.rows import (
    ASKED,
    LABEL_HINT,
    STATUSES,
    MechanismTable,
    Row,
    Status,
    as_labels,
    as_mechanism,
    as_numbers,
    as_present,
    as_statuses,
    as_texts,
    as_times,
    feature_names,
    in_order,
    number_of,
)

__all__ = ["Points", "QueryLog", "Row", "Status"]

Points = ArrayLike | Mapping[str, float]
"""A point, a batch of rows, or either with names: a dict, a pandas Series, a pandas DataFrame."""


@final
class QueryLog:
    """What a service was asked and what it said.

    One row a request. `points` (n, p), `labels` (+1, -1, 0 if missing), `explanations` (n, p; a NaN row if missing),
    `status`, `mechanism_ids` (into `mechanisms`; -1 if none), `clients`, `times`, `sources` are read-only arrays.
    `mechanism` is what explanations are taken to follow when a row does not say otherwise. Every `add_…` appends all of
    its rows or, on an error, none.

    >>> log = QueryLog(features=["age", "income"], mechanism=Mechanism("l1"))
    >>> log.add_label({"income": 2.0, "age": 30.0}, 1)
    0
    >>> log.add_explanation([[20.0, 1.0], [25.0, 1.0]], [[20.0, 1.5], [25.0, 1.4]], label=[-1, -1])
    1
    >>> log
    QueryLog(3 rows: 3 labels, 2 explanations, 2 features)
    >>> log.explained
    array([1, 2])
    """

    def __init__(self, features: Sequence[str] | None = None, mechanism: Mechanism | None = None) -> None:
        self._features = None if features is None else feature_names(features)
        self._mechanism = as_mechanism(mechanism)
        self._table = MechanismTable()
        self._dimension: int | None = None
        self._size = 0
        self._capacity = 0
        self._taken = [0]
        """How many rows of the buffers are in use: by this log, or by a copy that has them, too, and was the first to add one."""
        self._buffers = _empty_buffers(0)
        if self._features is not None:
            self._set_dimension(len(self._features))

    def __copy__(self) -> QueryLog:
        """The same rows in the same arrays; what is added to either of them is not in the other."""
        twin = object.__new__(QueryLog)
        twin.__dict__.update(self.__dict__)
        twin._table, twin._buffers = copy.deepcopy(self._table), dict(self._buffers)
        return twin

    def add_label(self, x: Points, y: ArrayLike, *, client: Any = None, time: Any = None, source: Any = None) -> int:
        """The index of the (first) row added: `x`, a point or a batch of rows, was labelled `y`.

        `client`, `time` (seconds since the epoch) and `source` are one value for all rows or one for each.
        """
        points = self._points(x)
        count = None if points.ndim == 1 else len(points)
        labels = as_labels(y, count, gaps=False)
        clients, sources = as_texts(client, count, "client"), as_texts(source, count, "source")
        return self._append(points, labels, clients=clients, times=as_times(time, count), sources=sources)

    def add_explanation(
        self,
        x: Points,
        explanation: Points | None,
        label: ArrayLike | Sequence[float | None] | None = None,
        mechanism: Mechanism | None = None,
        *,
        status: ArrayLike | None = None,
        client: Any = None,
        time: Any = None,
        source: Any = None,
    ) -> int:
        """The index of the (first) row added: an explanation of `x`, a point or a batch of rows, was asked for.

        An `explanation` of None, or an all-NaN row, is none: its status is NONE, unless `status` says FAILED.
        `mechanism` defaults to the log's own. A label missing from a batch is None or NaN.
        """
        points = self._points(x)
        count = None if points.ndim == 1 else len(points)
        answers, came = self._answers(explanation, points)
        labels = 0 if label is None else as_labels(label, count, gaps=True)
        codes = as_statuses(status, came)
        clients, sources = as_texts(client, count, "client"), as_texts(source, count, "source")
        times = as_times(time, count)
        terms = self._mechanism if mechanism is None else as_mechanism(mechanism)
        if terms is not None:
            terms.fits(points.shape[-1])
        number = self._table.id_of(terms) if count != 0 else -1
        return self._append(points, labels, answers, codes, number, clients, times, sources)

    def reread(self, mechanism: Mechanism | None, unanswered: ArrayLike = ()) -> QueryLog:
        """A new log with the same rows, read otherwise: all explanations follow `mechanism`, the rows `unanswered` have none.

        For services that turn out not to keep the terms under which their answers were logged.
        """
        log = QueryLog(self._features, mechanism)
        if not len(self):
            return log
        explanations, status = self.explanations.copy(), self.status.copy()
        rows = np.asarray(unanswered, dtype=np.int64)
        explanations[rows], status[rows] = np.nan, Status.NONE
        numbers = np.where(status == Status.NOT_ASKED, -1, log._table.id_of(log.mechanism))
        log._append(self.points, self.labels, explanations, status, numbers, self.clients, self.times, self.sources)
        return log

    @property
    def features(self) -> tuple[str, ...] | None:
        """The names of the features, if the log has any."""
        return self._features

    @property
    def dimension(self) -> int | None:
        """The number of features; None while it is not known."""
        return self._dimension

    @property
    def mechanism(self) -> Mechanism | None:
        """What explanations are taken to follow unless their row says otherwise."""
        return self._mechanism

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms that rows refer to, in order of first use."""
        return tuple(self._table.known)

    @property
    def points(self) -> FloatArray:
        """The points asked about, (n, p)."""
        return self._view("points")

    @property
    def labels(self) -> NDArray[np.int8]:
        """The labels: +1 Yes, -1 No, 0 missing."""
        return self._view("labels")

    @property
    def explanations(self) -> FloatArray:
        """The explanations, (n, p); a NaN row where there is none."""
        return self._view("explanations")

    @property
    def status(self) -> NDArray[np.int8]:
        """A `Status` for every row."""
        return self._view("status")

    @property
    def mechanism_ids(self) -> IntArray:
        """Positions in `mechanisms`; -1: none or unknown."""
        return self._view("mechanism_ids")

    @property
    def clients(self) -> NDArray[np.object_]:
        """Who asked: a string or None."""
        return self._view("clients")

    @property
    def times(self) -> FloatArray:
        """When, in seconds since the epoch; NaN if not known."""
        return self._view("times")

    @property
    def sources(self) -> NDArray[np.object_]:
        """Where the row comes from: a string or None."""
        return self._view("sources")

    @property
    def explained(self) -> IntArray:
        """The rows that have an explanation; J in the paper."""
        return np.flatnonzero(self.status == Status.ASKED)

    def labelled(self, label: int) -> IntArray:
        """The rows with this label, +1 or -1; I1 and I0 in the paper."""
        if label not in (1, -1):
            raise InvalidInput(f"labelled({label!r}): {LABEL_HINT}")
        return np.flatnonzero(self.labels == label)

    def mechanism_of(self, i: int) -> Mechanism | None:
        """The mechanism of row i; None if it has none."""
        number = int(self.mechanism_ids[i])
        return None if number < 0 else self._table.known[number]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, i: int) -> Row:
        row = self._row(list(self._buffers.values()), range(self._size)[operator.index(i)])
        for x in (row.point, row.explanation):
            if x is not None:
                x.flags.writeable = False
        return row

    def __iter__(self) -> Iterator[Row]:
        columns = [self._view(name) for name in self._buffers]
        return (self._row(columns, i) for i in range(self._size))

    def _row(self, columns: list[NDArray[Any]], i: int) -> Row:
        point, label, explanation, code, number, client, time, source = [column[i] for column in columns]
        status = STATUSES[code]
        return Row(
            point,
            int(label) or None,
            explanation if status is ASKED else None,
            status,
            None if number < 0 else self._table.known[number],
            client,
            None if math.isnan(time) else float(time),
            source,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QueryLog):
            return NotImplemented
        columns = ((self._view(name), other._view(name)) for name in self._buffers)
        return (
            self._features == other._features
            and self._mechanism == other._mechanism
            and self.mechanisms == other.mechanisms
            and all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in columns)
        )

    def __repr__(self) -> str:
        counts = [number_of(int(np.count_nonzero(self.labels)), "label"), number_of(len(self.explained), "explanation")]
        if self._dimension is not None:
            counts.append(number_of(self._dimension, "feature"))
        return f"QueryLog({number_of(self._size, 'row')}: {', '.join(counts)})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log; whatever happens, `path` holds either the old file or the whole new one.

        The name's end says as what: .jsonl (JSON Lines, keeps everything), .csv, .parquet, .json (DiCE).
        """
        from overexplain.log.files import write_log

        write_log(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        mapping: Mapping[str, Any] | None = None,
        mechanism: Mechanism | None = None,
    ) -> QueryLog:
        """The log in a file: .jsonl (as `save` or a `JsonlWriter`, even one that was killed, wrote it), .csv, .parquet, .json
        (DiCE) or .sqlite (a run).

        `mapping` says which column is what, e.g. {"client": "client_id", "y": "decision"}; `mechanism` is what
        explanations follow that say nothing of their own.
        """
        from overexplain.log.files import read_log

        return read_log(path, mapping=mapping, mechanism=mechanism)

    def to_frame(self) -> Any:
        """A pandas DataFrame: features, `label`, `cf_<feature>`, `status`, `mechanism`, `client`, `time`, `source`."""
        from overexplain.log.frames import to_frame

        return to_frame(self)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        features: Sequence[str] | None = None,
        *,
        label: str = "label",
        explanation: str = "cf_",
        client: str = "client",
        time: str = "time",
        source: str = "source",
        mechanism: Mechanism | None = None,
    ) -> QueryLog:
        """The log in a pandas DataFrame: one of `to_frame`, or one with columns of other names.

        `features` names the columns that make the point (default: all that are nothing else; x0, x1, … are no names),
        `explanation` is what their explanations' names begin with, the others name one column each. All but the
        features may be absent; columns `status` and `mechanism` are read if there. The argument `mechanism` is the
        log's own, and that of the answers if there is no such column. Any other column, or a missing one, raises.
        """
        from overexplain.log.frames import from_frame

        return from_frame(frame, features, label, explanation, client, time, source, as_mechanism(mechanism))

    def _points(self, x: Points) -> FloatArray:
        points = as_point_or_rows(self._numbers(x, "x"), self._dimension, "x")
        if self._dimension is None and self._mechanism is not None:
            self._mechanism.fits(points.shape[-1])
        return points

    def _numbers(self, x: Any, name: str) -> FloatArray:
        """The numbers of x, in the order of the log's features where x has names."""
        if not isinstance(x, np.ndarray | list | tuple):
            x = in_order(x, self._features, name)
        return as_numbers(x, name)

    def _answers(self, explanation: Points | None, points: FloatArray) -> tuple[FloatArray | float, BoolArray]:
        """The explanations, NaN where missing, and which are there."""
        if explanation is None:
            return math.nan, np.zeros(points.shape[:-1], dtype=bool)
        values = self._numbers(explanation, "explanation")
        if values.shape != points.shape:
            raise DimensionMismatch(f"an explanation is a point like x: x has shape {points.shape}, it {values.shape}")
        return values, as_present(values)

    def _set_dimension(self, dimension: int) -> None:
        if self._mechanism is not None:
            self._mechanism.fits(dimension)
        self._dimension = dimension
        self._buffers = _empty_buffers(dimension)

    def _append(
        self, points: FloatArray, labels: Any = 0, explanations: Any = math.nan, status: Any = Status.NOT_ASKED,
        mechanism_ids: Any = -1, clients: Any = None, times: Any = math.nan, sources: Any = None,
    ) -> int:  # fmt: skip
        """The index of the first row appended; the values have been checked, each is for one or for all rows."""
        start = self._size
        stop = start + (1 if points.ndim == 1 else len(points))
        if stop == start:
            return start
        if stop > self._capacity or self._taken[0] != start:
            self._grow(stop, points.shape[-1])
        self._taken[0] = stop
        buffers, rows = self._buffers, slice(start, stop)
        buffers["points"][rows] = points
        buffers["labels"][rows] = labels
        buffers["explanations"][rows] = explanations
        buffers["status"][rows] = status
        buffers["mechanism_ids"][rows] = mechanism_ids
        buffers["clients"][rows] = clients
        buffers["times"][rows] = times
        buffers["sources"][rows] = sources
        self._size = stop
        return start

    def _hold(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Have these columns, checked and of the same length, as they are; a row that is appended moves them first."""
        self._buffers = {name: columns[name] for name in self._buffers}
        self._size = self._capacity = len(columns["labels"])
        self._taken = [self._size]

    def _grow(self, needed: int, dimension: int) -> None:
        if self._dimension is None:
            self._set_dimension(dimension)
        capacity = max(needed, 2 * self._capacity, 16)
        grown = {}
        for name, buffer in self._buffers.items():
            grown[name] = np.empty((capacity, *buffer.shape[1:]), dtype=buffer.dtype)
            grown[name][: self._size] = buffer[: self._size]
        self._buffers, self._capacity, self._taken = grown, capacity, [self._size]

    def _view(self, name: str) -> NDArray[Any]:
        view = self._buffers[name][: self._size]
        view.flags.writeable = False
        return view


def _empty_buffers(dimension: int) -> dict[str, NDArray[Any]]:
    return {
        "points": np.empty((0, dimension)),
        "labels": np.empty(0, dtype=np.int8),
        "explanations": np.empty((0, dimension)),
        "status": np.empty(0, dtype=np.int8),
        "mechanism_ids": np.empty(0, dtype=np.int64),
        "clients": np.empty(0, dtype=object),
        "times": np.empty(0),
        "sources": np.empty(0, dtype=object),
    }
