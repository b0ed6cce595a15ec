"""A log as a pandas DataFrame, and back: every row without loss; the log's own default mechanism is given again."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.jsonl.values import to_json
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status, feature_names, repeated
from overexplain.log.tables.cells import Misfit, Texts, as_objects, shown
from overexplain.log.tables.mapped import PREFIX, Columns
from overexplain.log.tables.tables import Table, log_of, unnamed

__all__ = ["PREFIX", "from_frame", "table_columns", "to_frame"]


def table_columns(log: QueryLog) -> list[tuple[str, Any]]:
    """The log's columns by name, as every table of one request a row has them; labels are 0 where they are missing."""
    names = log.features or unnamed(log.dimension or 0)
    terms = np.array([*(to_json(m.to_dict()) for m in log.mechanisms), None], dtype=object)  # id -1 finds the None
    statuses = np.array([status.text for status in Status], dtype=object)
    columns = [
        *zip(names, log.points.T, strict=True),
        ("label", log.labels),
        *((PREFIX + name, column) for name, column in zip(names, log.explanations.T, strict=True)),
        ("status", statuses[log.status]),
        ("mechanism", terms[log.mechanism_ids]),
        ("client", log.clients),
        ("time", log.times),
        ("source", log.sources),
    ]
    if twice := repeated([name for name, _ in columns]):
        raise InvalidInput(
            f"a frame would have two columns of the same name: {twice}; rename the feature, or use save (as .jsonl)"
        )
    return columns


def to_frame(log: QueryLog) -> Any:
    """The log as a DataFrame, one row a request; features without names are called x0, x1, …"""
    pandas = _pandas()
    columns = dict(table_columns(log))
    columns["label"] = pandas.arrays.IntegerArray(log.labels.copy(), mask=log.labels == 0)
    # Said outright, or pandas would turn text into a type of its own that has no None.
    return pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in columns.items()})


def from_frame(
    frame: Any,
    features: Sequence[str] | None,
    label: str,
    explanation: str,
    client: str,
    time: str,
    source: str,
    mechanism: Mechanism | None,
) -> QueryLog:
    """The log in a DataFrame; `QueryLog.from_frame` says which columns it may have."""
    if not isinstance(frame, _pandas().DataFrame):
        raise InvalidInput(f"a log is made from a pandas DataFrame, got {type(frame).__name__}")
    given = {"label": label, "client": client, "time": time, "source": source}
    names = {key: name for key, name in given.items() if name != key}
    chosen = None if features is None else feature_names(features)
    columns = Columns(names, chosen, explanation, explains=explanation != PREFIX)
    table = Table(list(frame.columns), len(frame), lambda name: _Series(name, frame[name]))
    if not columns.finds_explanations(list(map(str, table.names))):
        raise columns.without_explanations(list(map(str, table.names)))
    try:
        log, gaps = log_of(table, columns, mechanism)
    except Misfit as misfit:
        raise misfit.error() from None
    for row, cell, of_explanation in gaps:  # in memory, it can be said which rows are meant
        if of_explanation:
            raise NotFinite(
                f"the explanation in row {row} has nan in column {cell!r}; it must be finite, or missing throughout"
            )
        raise NotFinite(f"column {cell!r} has nan in row {row}; a point needs all its features")
    return log


@dataclass(frozen=True)
class _Series:
    """A column of a DataFrame."""

    name: str
    column: Any

    def numbers(self, truth: bool) -> FloatArray:
        """The numbers, NaN for a gap; truth values are numbers only if `truth`."""
        try:
            if self.column.dtype.kind in ("iufbO" if truth else "iufO"):
                return np.asarray(self.column.to_numpy(dtype=np.float64, na_value=np.nan))
            reason = f"it is {self.column.dtype}"
        except (TypeError, ValueError, OverflowError) as error:
            reason = str(error)
        raise InvalidInput(f"column {self.name!r} must hold numbers: {reason}")

    def texts(self, names: bool) -> Texts:
        """The texts, None for a gap; numbers are none, not even as `names`."""
        values = self.column.to_numpy(dtype=object).copy()
        values[self.column.isna().to_numpy(dtype=bool)] = None
        if not set(map(type, values.tolist())) <= {str, type(None)}:
            for i, value in enumerate(values):
                if not isinstance(value, str | None):
                    raise Misfit(
                        InvalidInput, f"column {self.name!r} must be a string or None, got {shown(value)} (", i, ")"
                    )
        return as_objects(values)

    def answers(self) -> Texts:
        """Whatever the cells hold, as texts, None for a gap."""
        return as_objects([None if value is None else str(value) for value in self.texts(names=True)])

    def seconds(self) -> FloatArray:
        """The numbers: in a frame, time is seconds since the epoch."""
        return self.numbers(truth=False)

    def vectors(self, dimension: int | None) -> None:
        """None: a frame has a column a feature."""


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InvalidInput('frames need pandas: pip install "overexplain[frames]"') from None
