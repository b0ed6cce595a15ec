"""The log in a table, column by column: of a CSV or Parquet file, of records, of a data frame.

Every row is a request. Columns go by name: the features, `label`, `cf_<feature>`, `status`, `mechanism`, `client`, `time`,
`source`; `mapped.Columns` says where the names are others. All but the features may be absent. Nothing here looks at single
rows unless one of them is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.jsonl.values import STATUS, parse_json, read_mechanism, read_status
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import LABEL_HINT, Status, differences, feature_names
from overexplain.log.tables.cells import Cells, Misfit, Texts
from overexplain.log.tables.mapped import OPTIONAL, Columns, nearly

SAY_FEATURES = "say which columns are the features (x=… in a mapping)"
YES_HINT = ", or say in a mapping which label means Yes (yes=1)"


CELLS = 2**19
"""Cells of a block; bounds the memory that reading a wide table takes."""


def rows_of_a_block(most: int, names: Sequence[str]) -> int:
    """How many rows of a table with these columns are read together, at most `most`.

    >>> rows_of_a_block(16_384, ["a", "b"]), rows_of_a_block(16_384, [f"x{i}" for i in range(1000)])
    (16384, 524)
    """
    return min(most, max(1, CELLS // max(1, len(names))))


@dataclass(frozen=True)
class Table:
    """Columns of the same length; `cells` makes one when it is needed."""

    names: Sequence[str]
    count: int
    cells: Callable[[str], Cells]


class Gap(NamedTuple):
    """The first empty cell of a row; it may be the explanation's, of which others are there."""

    row: int
    cell: str
    of_explanation: bool


def log_of(
    table: Table, columns: Columns, mechanism: Mechanism | None, dimension: int | None = None
) -> tuple[QueryLog, list[Gap]]:
    """The log in a table that has no columns but those of a log, and the rows that are not in it because a cell is empty.

    `dimension` is how long vectors must be, if it is known.

    `mechanism` is the log's own, and that of the answers if there is no such column. Raises Misfit for a wrong row.
    """
    optional = {key: columns.of(key) for key in OPTIONAL}
    points = _vectors(table, columns, dimension)
    if points is None:
        names = (
            _inferred(table.names, columns, set(optional.values())) if columns.features is None else columns.features
        )
        answers = columns.answers_to(names)
        there = _there(table.names, names, answers, columns.prefix, optional)
        features = None if columns.features is None and names == unnamed(len(names)) else names
    else:
        names = columns.known or unnamed(points.shape[1])
        if len(names) != points.shape[1]:
            raise InvalidInput(f"column {columns.features} holds {points.shape[1]} numbers a row, not {len(names)}")
        answers = columns.answers_to(names)
        there = _there(table.names, columns.features or (), answers, columns.prefix, optional)
        features = columns.known
    if not names and table.count:
        raise InvalidInput("there is no column that could be a feature")
    log = QueryLog(features or None, mechanism)
    if not names:
        return log, []
    log._set_dimension(len(names))
    cells: Sequence[str] = names
    if points is None:
        points = np.column_stack([_finite(table, name) for name in names])
    else:
        assert columns.features is not None
        cells = _entries(columns.features[0], len(names))
    explanations, answer_cells = _explanations(table, columns.prefix, names, answers)
    gaps = _gaps(points, explanations, [*cells, *answer_cells])
    whole = np.ones(table.count, dtype=bool)
    whole[[gap.row for gap in gaps]] = False
    came = np.isfinite(explanations).all(axis=1)
    codes = np.where(came, Status.ASKED, Status.NOT_ASKED)
    if "status" in there:
        codes = _statuses(_of_whole(table, there["status"], whole), there["status"], came, codes)
    found: tuple[Any, ...] = (
        points,
        _labels(table, there["label"], columns.yes) if "label" in there else _no_labels(columns),
        explanations,
        codes,
        _mechanism_ids(log, table, there.get("mechanism"), codes, whole),
        table.cells(there["client"]).texts(names=True) if "client" in there else None,
        _times(table, there["time"]) if "time" in there else np.nan,
        table.cells(there["source"]).texts(names=True) if "source" in there else None,
    )
    log._append(*(column[whole] if gaps and isinstance(column, np.ndarray) else column for column in found))
    return log, gaps


def _gaps(points: FloatArray, explanations: FloatArray, cells: Sequence[str]) -> list[Gap]:
    """The rows whose point is not there or whose explanation is there in part."""
    missing = np.isnan(explanations)
    empty: BoolArray = np.hstack([np.isnan(points), missing & ~missing.all(axis=1, keepdims=True)])
    rows = np.flatnonzero(empty.any(axis=1))
    first, p = empty[rows].argmax(axis=1).tolist(), points.shape[1]
    return [Gap(row, cells[k], k >= p) for row, k in zip(rows.tolist(), first, strict=True)]


def _of_whole(table: Table, name: str, whole: BoolArray) -> Texts:
    """The texts in a column, None in a row that is left out."""
    texts = table.cells(name).texts(names=False).copy()
    texts[~whole] = None
    return texts


def _entries(name: str, count: int) -> list[str]:
    return [f"{name} (entry {i})" for i in range(count)]


def unnamed(dimension: int) -> tuple[str, ...]:
    """What features without names are called: x0, x1, …"""
    return tuple(f"x{i}" for i in range(dimension))


def _vectors(table: Table, columns: Columns, dimension: int | None) -> FloatArray | None:
    """The points, if one column holds them all."""
    if columns.features is None or len(columns.features) != 1 or columns.features[0] not in table.names:
        return None
    name = columns.features[0]
    points = table.cells(name).vectors(dimension)
    if points is not None:
        wrong = np.argwhere(np.isinf(points))
        if len(wrong):
            row, entry = wrong[0].tolist()
            rest = f" (entry {entry}); a point needs all its features"
            raise Misfit(NotFinite, f"column {name!r} has {points[row, entry]} in ", row, rest)
    return points


def _explanations(table: Table, prefix: str, names: Sequence[str], answers: list[str]) -> tuple[FloatArray, list[str]]:
    """The explanations, NaN where there is none, and the names of their cells."""
    dimension = len(names)
    explanations, named = np.full((table.count, dimension), np.nan), answers
    if prefix in table.names and prefix not in names:
        found = table.cells(prefix).vectors(dimension)
        if found is None:
            raise InvalidInput(f"column {prefix!r} must hold a list of {dimension} numbers, or nothing, in every row")
        explanations, named = found, _entries(prefix, dimension)
    elif not set(answers).isdisjoint(table.names):
        explanations = np.column_stack([table.cells(name).numbers(truth=False) for name in answers])
    wrong = np.argwhere(np.isinf(explanations))
    if len(wrong):
        row, entry = wrong[0].tolist()
        what = f" has {explanations[row, entry]} in column {named[entry]!r}"
        raise Misfit(NotFinite, "the explanation in ", row, f"{what}; it must be finite, or missing throughout")
    return explanations, named


def _finite(table: Table, name: str) -> FloatArray:
    values = table.cells(name).numbers(truth=True)
    wrong = np.flatnonzero(np.isinf(values))
    if len(wrong):
        row = int(wrong[0])
        raise Misfit(NotFinite, f"column {name!r} has {values[row]} in ", row, "; a point needs all its features")
    return values


def _labels(table: Table, name: str, yes: str | None) -> Any:
    if yes is not None:
        answers = table.cells(name).answers()
        said = {None: 0, yes: 1}
        return np.fromiter((said.get(answer, -1) for answer in answers), np.int8, table.count)
    values = table.cells(name).numbers(truth=False)
    missing = np.isnan(values)
    wrong = np.flatnonzero(~missing & (np.abs(values) != 1))
    if len(wrong):
        row = int(wrong[0])
        raise Misfit(
            InvalidInput, f"column {name!r} has the label {values[row]:g} in ", row, f": {LABEL_HINT}{YES_HINT}"
        )
    return np.where(missing, 0, values).astype(np.int8)


def _no_labels(columns: Columns) -> int:
    if columns.yes is not None:
        raise InvalidInput(f"the mapping says which label means Yes, but there is no column {columns.of('label')!r}")
    return 0


def _times(table: Table, name: str) -> FloatArray:
    seconds = table.cells(name).seconds()
    wrong = np.flatnonzero(np.isinf(seconds))
    if len(wrong):
        raise Misfit(NotFinite, f"column {name!r} has inf in ", int(wrong[0]), "; time must be finite, or missing")
    return seconds


def _statuses(texts: Texts, name: str, came: Any, codes: IntArray) -> IntArray:
    given = np.array([STATUS.get(text, -1) if text is not None else -2 for text in texts.tolist()])
    wrong = np.flatnonzero((given == -1) | ((given >= 0) & ((given == Status.ASKED) != came)))
    if len(wrong):
        row = int(wrong[0])
        _in_row(row, name, read_status, texts[row], bool(came[row]))
    return np.where(given >= 0, given, codes)


def _mechanism_ids(log: QueryLog, table: Table, name: str | None, codes: IntArray, whole: BoolArray) -> Any:
    if name is None:
        asked = (codes != Status.NOT_ASKED) & whole
        return np.where(asked, log._table.id_of(log.mechanism) if asked.any() else -1, -1)
    ids: dict[str | None, int] = {None: -1}
    texts = _of_whole(table, name, whole).tolist()
    for row, text in enumerate(texts):
        if text not in ids:
            ids[text] = log._table.id_of(_in_row(row, name, _mechanism, text, log.dimension))
    return np.fromiter((ids[text] for text in texts), np.int64, len(texts))


def _mechanism(text: str, dimension: int | None) -> Mechanism:
    try:
        return read_mechanism(parse_json(text), dimension)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error}") from None


def _in_row(row: int, column: str, read: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except InvalidInput as error:
        raise Misfit(type(error), f"column {column!r}, ", row, f": {error}") from None


def _inferred(given: Sequence[str], columns: Columns, taken: set[str]) -> tuple[str, ...]:
    """The columns that are features: all that are nothing else."""
    prefix = columns.prefix
    rest = [name for name in given if name not in {*taken, *(columns.answers or ())}]
    if columns.answers is not None:
        return feature_names(rest) if rest else ()
    known = set(rest)
    explains = {name for name in rest if str(name).startswith(prefix) and str(name)[len(prefix) :] in known}
    if prefix in known and prefix + prefix not in known:
        explains.add(prefix)  # vectors; a feature of that name would have its own explanation
    names = [name for name in rest if name not in explains]
    # A feature may be called cf_something too; a frame of ours then also has its explanation, cf_cf_something.
    lonely = [name for name in names if str(name).startswith(prefix) and prefix + str(name) not in known]
    if lonely:
        raise InvalidInput(f"{lonely} explain features that are no columns; if they are features, {SAY_FEATURES}")
    return feature_names(names) if names else ()


def _there(
    given: Sequence[str], names: Sequence[str], answers: list[str], prefix: str, optional: Mapping[str, str]
) -> dict[str, str]:
    """Which of the optional columns are there; raises if one of any kind is missing, unknown or there twice."""
    renamed = [name for key, name in optional.items() if name != key]
    point = set(names)
    if clash := [name for name in (*renamed, *answers) if name in point]:
        raise InvalidInput(f"{clash} cannot be features and something else as well")
    there = set(given)
    vector = prefix in there and prefix not in point
    explained = [prefix] if vector else answers if there.intersection(answers) else []
    needed = [*names, *renamed, *explained]
    if wrong := differences(given, [*needed, *(name for name in optional.values() if name in there)]):
        near = nearly([name for name in needed if name not in there], list(map(str, given)))
        raise InvalidInput(f"these are not the columns of a log; {wrong}{near}; {SAY_FEATURES}")
    return {key: name for key, name in optional.items() if name in there and name not in point}
