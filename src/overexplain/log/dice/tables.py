"""The tables in a file of DiCE, checked cell by cell: the queries, their counterfactuals, and everybody's outcome.

Every error says which query, which counterfactual (both counted from 0) and which feature.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.log.jsonl.values import distinct
from overexplain.log.rows import differences, feature_names
from overexplain.log.tables.mapped import as_columns

Place = tuple[int, int | None]
"""A query, and one of its counterfactuals or None for the query itself."""

_NEEDED = ("test_data", "cfs_list", "feature_names_including_target", "data_interface")


@dataclass(frozen=True)
class DiceTables:
    """What a file holds: `answers[k]` answers query `asked[k]`; outcomes are as written, None where there is none."""

    features: tuple[str, ...]
    queries: FloatArray
    outcomes: Sequence[Any]
    answers: FloatArray
    asked: IntArray
    answer_outcomes: Sequence[Any]
    outcome: str
    yes: str | None

    def place_of_answer(self, k: int) -> Place:
        """The query and the number among its counterfactuals of `answers[k]`."""
        return int(self.asked[k]), k - int(np.searchsorted(self.asked, self.asked[k]))


class _Columns(NamedTuple):
    """Where things are in a row of `width` cells; `outcome` is None if rows have none."""

    features: tuple[str, ...]
    positions: list[int]
    outcome: int | None
    width: int


def parse_dice(content: bytes, mapping: Mapping[str, Any] | None) -> DiceTables:
    """The tables in the text of a file."""
    entries = _entries(content)
    wanted, outcome, yes = _wanted(mapping)
    if outcome is None:
        outcome = _outcome_name(entries["data_interface"])
    columns = _columns(entries, outcome, wanted)
    lists, found = _list(entries["test_data"], "test_data"), _list(entries["cfs_list"], "cfs_list")
    if len(lists) != len(found):
        raise DimensionMismatch(f"test_data has {len(lists)} queries, cfs_list {len(found)}; they belong together")
    if lists and not columns.features:
        raise InvalidInput("there are queries, but no features: feature_names_including_target is empty or null")
    queries, places = [], []
    for i, (query, answers) in enumerate(zip(lists, found, strict=True)):
        rows = _list(query, f"query {i}")
        if len(rows) != 1:
            raise DimensionMismatch(f"query {i} must be a list of one row, got {len(rows)}")
        queries.append(_row(rows[0], columns, (i, None)))
        places += [(i, j) for j in range(len(_list(answers, f"the counterfactuals of query {i}", gaps=True)))]
    cells = [_row(found[i][j], columns, (i, j)) for i, j in places]
    return DiceTables(
        columns.features,
        _points(queries, columns, [(i, None) for i in range(len(queries))]),
        _outcomes(queries, columns),
        _points(cells, columns, places),
        np.array([i for i, _ in places], dtype=np.int64),
        _outcomes(cells, columns),
        outcome,
        yes,
    )


def where(place: Place) -> str:
    """'query 3', 'query 3, counterfactual 0'."""
    i, j = place
    return f"query {i}" if j is None else f"query {i}, counterfactual {j}"


def brief(value: Any) -> str:
    """A short text of any JSON value."""
    try:
        text = json.dumps(value)
    except RecursionError:
        text = "something nested deep"
    return text if len(text) <= 60 else text[:57] + "..."


def _entries(content: bytes) -> dict[str, Any]:
    try:
        # NaN is read here and refused where it stands: importances, which are not used, may be NaN.
        entries = json.loads(content.decode("utf-8-sig"), object_pairs_hook=distinct)
    except RecursionError:
        raise InvalidInput("nested too deep") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not JSON: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except InvalidInput:
        raise
    except ValueError:  # all that is left
        raise InvalidInput("not JSON that can be read: a whole number of thousands of digits") from None
    known = isinstance(entries, dict) and isinstance(entries.get("metadata"), dict)
    version = entries["metadata"].get("version") if known else None
    if version is None:
        raise InvalidInput('not a file of DiCE: it has no "metadata" with a "version"')
    if version != "2.0":
        raise InvalidInput(
            f"a file of DiCE in version {brief(version)}; version 2.0 is read: dice-ml 0.6 and newer write it with "
            "CounterfactualExplanations.to_json()"
        )
    if missing := [key for key in _NEEDED if key not in entries]:
        raise InvalidInput(f"not a file of DiCE in version 2.0: {', '.join(missing)} missing")
    if entries.get("model_type") not in (None, "classifier"):
        raise InvalidInput(f"model_type is {brief(entries['model_type'])}: only a classifier's outcomes are decisions")
    return dict(entries)


def _wanted(mapping: Mapping[str, Any] | None) -> tuple[tuple[str, ...] | None, str | None, str | None]:
    """The features in their order, the outcome's column, and the outcome that means Yes, as far as a mapping says."""
    columns = as_columns(mapping)
    if other := [key for key in columns.names if key != "label"]:
        raise InvalidInput(f"a file of DiCE has no column for {', '.join(other)}; a mapping may say x, y and yes")
    if columns.explains:
        raise InvalidInput("a file of DiCE has its own place for counterfactuals; a mapping may say x, y and yes")
    return columns.features, columns.names.get("label"), columns.yes


def _outcome_name(interface: Any) -> str:
    if interface is None:
        return ""
    name = interface.get("outcome_name") if isinstance(interface, dict) else None
    if not isinstance(name, str):
        raise InvalidInput(f"data_interface must name the outcome, got {brief(interface)}")
    return name


def _columns(entries: dict[str, Any], outcome: str, wanted: tuple[str, ...] | None) -> _Columns:
    given = entries["feature_names_including_target"]
    names = feature_names(given) if isinstance(given, list) and given else ()
    if given is not None and not isinstance(given, list):
        raise InvalidInput(f"feature_names_including_target must be a list of names, got {brief(given)}")
    features = tuple(name for name in names if name != outcome)
    said = entries.get("feature_names")
    if said is not None and (not isinstance(said, list) or said != list(features)):
        raise InvalidInput(
            f"feature_names must be those of feature_names_including_target without the outcome {outcome!r}, "
            f"got {brief(said)}"
        )
    if wanted is not None and (wrong := differences(wanted, features)):
        raise InvalidInput(f"the mapping must name every feature once; {wrong}")
    order = features if wanted is None else wanted
    at = {name: i for i, name in enumerate(names)}
    return _Columns(order, [at[name] for name in order], at.get(outcome), len(names))


def _list(entry: Any, name: str, gaps: bool = False) -> list[Any]:
    if entry is None and gaps:
        return []
    if not isinstance(entry, list):
        raise InvalidInput(f"{name} must be a list, got {brief(entry)}")
    return entry


def _row(entry: Any, columns: _Columns, place: Place) -> list[Any]:
    if not isinstance(entry, list) or len(entry) != columns.width:
        got = f"{len(entry)} values" if isinstance(entry, list) else brief(entry)
        raise DimensionMismatch(f"{where(place)} must be a list of {columns.width} values, got {got}")
    return entry


def _points(rows: list[list[Any]], columns: _Columns, places: Sequence[Place]) -> FloatArray:
    points = np.empty((len(rows), len(columns.features)))
    for row, place, point in zip(rows, places, points, strict=True):
        values = [row[k] for k in columns.positions]
        if set(map(type, values)) <= {float, int}:  # bool is an int to Python, not to us
            try:
                point[:] = values
            except OverflowError:
                point[:] = math.inf
        else:
            point[:] = math.nan
        if not np.isfinite(point).all():
            raise _wrong(values, columns.features, place)
    return points


def _wrong(values: list[Any], features: Sequence[str], place: Place) -> InvalidInput:
    """What to raise for the first value that is no finite number."""
    for value, feature in zip(values, features, strict=True):
        at = f"{where(place)}, feature {feature!r} is {brief(value)}"
        if isinstance(value, str):
            return InvalidInput(f"{at}: a category; a log holds numbers, so encode it (e.g. one 0/1 feature a value)")
        if type(value) not in (int, float):
            return InvalidInput(f"{at}: not a number")
        try:
            finite = math.isfinite(value)
        except OverflowError:
            finite = False
        if not finite:
            return NotFinite(f"{at}: a point needs finite numbers")
    raise AssertionError("every value is a finite number")


def _outcomes(rows: list[list[Any]], columns: _Columns) -> list[Any]:
    return [None if columns.outcome is None else row[columns.outcome] for row in rows]
