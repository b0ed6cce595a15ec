"""A log as a pandas DataFrame, and back: every row without loss; the log's own default mechanism is given again."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.formats import parse_json, read_mechanism, read_status, to_json
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status, as_labels, as_present, as_texts, as_times, differences, feature_names, repeated

PREFIX = "cf_"


def to_frame(log: QueryLog) -> Any:
    """The log as a DataFrame, one row a request; features without names are called x0, x1, …"""
    pandas = _pandas()
    names = log.features or _unnamed(log.dimension or 0)
    terms = np.array([*(to_json(m.to_dict()) for m in log.mechanisms), None], dtype=object)  # id -1 finds the None
    statuses = np.array([status.text for status in Status], dtype=object)
    columns = [
        *zip(names, log.points.T, strict=True),
        ("label", pandas.arrays.IntegerArray(log.labels.copy(), mask=log.labels == 0)),
        *((PREFIX + name, column) for name, column in zip(names, log.explanations.T, strict=True)),
        ("status", statuses[log.status]),
        ("mechanism", terms[log.mechanism_ids]),
        ("client", log.clients),
        ("time", log.times),
        ("source", log.sources),
    ]
    if twice := repeated([name for name, _ in columns]):
        raise InvalidInput(f"a frame would have two columns of the same name: {twice}; rename the feature, or use save")
    # Said outright, or pandas would turn text into a type of its own that has no None.
    return pandas.DataFrame({name: pandas.Series(values, dtype=values.dtype) for name, values in columns})


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
    given = list(frame.columns)
    optional = {"label": label, "status": "status", "mechanism": "mechanism"}
    optional |= {"client": client, "time": time, "source": source}
    names = _inferred(given, explanation, set(optional.values())) if features is None else feature_names(features)
    answers = [explanation + name for name in names]
    columns = _columns(given, names, answers, optional)
    count = len(frame)
    if not names and count:
        raise InvalidInput("the frame has no column that could be a feature")

    log = QueryLog(None if features is None and names == _unnamed(len(names)) else names, mechanism)
    if not names:
        return log
    log._set_dimension(len(names))
    points = np.column_stack([_finite(frame, name) for name in names])
    explanations = np.full(points.shape, np.nan)
    if answers[0] in given:
        explanations = np.column_stack([_numbers(frame, name, "iufO") for name in answers])
    came = as_present(explanations)
    texts = {
        key: as_texts(_gaps_as_none(frame[name]), count, f"column {name!r}")
        for key, name in columns.items()
        if key not in ("label", "time")
    }
    codes = np.where(came, Status.ASKED, Status.NOT_ASKED)
    for i, text in enumerate(texts.get("status", ())):
        if text is not None:
            codes[i] = _in_row(i, "status", read_status, text, bool(came[i]))
    log._append(
        points,
        as_labels(_numbers(frame, label, "iufO"), count, gaps=True) if "label" in columns else 0,
        explanations,
        codes,
        _mechanism_ids(log, texts.get("mechanism"), codes),
        texts.get("client"),
        as_times(_numbers(frame, time, "iufO"), count) if "time" in columns else np.nan,
        texts.get("source"),
    )
    return log


def _inferred(given: list[Any], prefix: str, taken: set[str]) -> tuple[str, ...]:
    """The columns that are features: all that are nothing else."""
    rest = [name for name in given if name not in taken]
    known = set(rest)
    explains = {name for name in rest if str(name).startswith(prefix) and str(name)[len(prefix) :] in known}
    names = [name for name in rest if name not in explains]
    # A feature may be called cf_something too; a frame of ours then also has its explanation, cf_cf_something.
    lonely = [name for name in names if str(name).startswith(prefix) and prefix + str(name) not in known]
    if lonely:
        raise InvalidInput(f"{lonely} explain features that are no columns; if they are features, say features=[…]")
    return feature_names(names) if names else ()


def _columns(given: list[Any], names: Sequence[str], answers: list[str], optional: dict[str, str]) -> dict[str, str]:
    """Which of the optional columns are there; raises if one of any kind is missing, unknown or there twice."""
    renamed = [name for key, name in optional.items() if name != key]
    if clash := [name for name in renamed if name in names] + [name for name in answers if name in names]:
        raise InvalidInput(f"{clash} cannot be features and something else as well")
    there = set(given)
    needed = [*names, *renamed, *(answers if there.intersection(answers) else [])]
    if wrong := differences(given, [*needed, *(name for name in optional.values() if name in there)]):
        raise InvalidInput(f"these are not the columns of a log; {wrong}. Say features=[…] for those of the point")
    return {key: name for key, name in optional.items() if name in there and name not in names}


def _numbers(frame: Any, name: str, kinds: str) -> FloatArray:
    """A column as float64, NaN where it has gaps."""
    column = frame[name]
    try:
        if column.dtype.kind in kinds:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        reason = f"it is {column.dtype}"
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error)
    raise InvalidInput(f"column {name!r} must hold numbers: {reason}")


def _finite(frame: Any, name: str) -> FloatArray:
    values = _numbers(frame, name, "iufbO")
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise NotFinite(f"column {name!r} has {values[wrong[0]]} in row {wrong[0]}; a point needs all its features")
    return values


def _gaps_as_none(column: Any) -> list[Any]:
    values = zip(column.astype(object), column.isna(), strict=True)
    return [None if missing else value for value, missing in values]


def _mechanism_ids(log: QueryLog, texts: Any, codes: Any) -> Any:
    if texts is None:
        asked = codes != Status.NOT_ASKED
        return np.where(asked, log._table.id_of(log.mechanism) if asked.any() else -1, -1)
    read: dict[str | None, Mechanism | None] = {None: None}
    ids = np.empty(len(texts), dtype=np.int64)
    for i, text in enumerate(texts):
        if text not in read:
            read[text] = _in_row(i, "mechanism", _mechanism, text, log.dimension)
        ids[i] = log._table.id_of(read[text])
    return ids


def _mechanism(text: str, dimension: int | None) -> Mechanism:
    try:
        return read_mechanism(parse_json(text), dimension)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error}") from None


def _in_row(i: int, column: str, read: Any, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except InvalidInput as error:
        raise type(error)(f"column {column!r}, row {i}: {error}") from None


def _unnamed(dimension: int) -> tuple[str, ...]:
    return tuple(f"x{i}" for i in range(dimension))


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InvalidInput('frames need pandas: pip install "overexplain[frames]"') from None
