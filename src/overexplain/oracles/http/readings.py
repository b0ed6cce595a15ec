"""What a reply says, as a label or as numbers; `Unreadable` where it says neither.

A number that is NaN, infinite or null is passed on as it is, a wrong count of numbers too: whoever asked decides about those.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.oracles.http.endpoint import Endpoint


class Unreadable(ValueError):
    """The reply is not what was expected; the text may quote it, so it must be redacted before anyone sees it."""


def read_json(data: bytes | str) -> Any:
    """The JSON value that the data is; NaN and infinite numbers are read, nesting beyond reason is not."""
    try:
        return json.loads(data)
    except RecursionError:
        fault = "nested too deep"
    except UnicodeDecodeError:
        fault = "no UTF-8 text"
    except json.JSONDecodeError as error:
        fault = f"no JSON ({error})"
    except ValueError:  # all that is left
        fault = "it has a whole number of thousands of digits"
    raise Unreadable(fault)


def entry(value: Any, *path: str | int) -> Any:
    """What stands at a path of names and numbers inside a reply.

    >>> entry({"outputs": [{"data": [7]}]}, "outputs", 0, "data")
    [7]
    """
    for step in path:
        holds = isinstance(value, dict) if isinstance(step, str) else isinstance(value, list)
        try:
            value = value[step] if holds else _missing(path)
        except (KeyError, IndexError):
            _missing(path)
    return value


def _missing(path: Sequence[str | int]) -> Any:
    written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    raise Unreadable(f"it has no {written}")


def single(values: Any, name: str) -> Any:
    """The one entry of a list: the reply to one question holds one answer."""
    if not isinstance(values, list) or len(values) != 1:
        count = f"{len(values)} entries" if isinstance(values, list) else shown(values)
        raise Unreadable(f"{name} must be a list with one answer, it is {count}")
    return values[0]


def shown(value: Any) -> str:
    """A value for a message: whole, because only what was redacted may be shortened."""
    return repr(value)


def label_of(value: Any, endpoint: Endpoint) -> int:
    """+1 or −1: by `threshold`, `labels` or `positive`, whichever the endpoint file has (positive = 1 if none)."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, list | dict):
        raise Unreadable(
            f"one label was expected, it is {shown(value)}; say where the label stands: [classify] answer = …"
        )
    if endpoint.threshold is not None:
        return YES if number(value, "the score") >= endpoint.threshold else NO
    if endpoint.labels is not None:
        label = endpoint.labels.get(_written(value))
        if label is None:
            raise Unreadable(f"the label {shown(value)} is not among labels = {list(endpoint.labels)}")
        return label
    positive = 1 if endpoint.positive is None else endpoint.positive
    if isinstance(value, str) != isinstance(positive, str):
        raise Unreadable(f"the label {shown(value)} cannot be compared with positive = {positive!r}")
    if isinstance(value, float) and not value.is_integer():
        raise Unreadable(
            f"{shown(value)} is no label; if it is a score, say from where on it means Yes: threshold = 0.5"
        )
    return YES if value == positive else NO


def _written(value: Any) -> str:
    """A label as it stands in the file: 1 and 1.0 are "1", true is "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def number(value: Any, name: str) -> float:
    """A number as float; null is NaN, as many JSON writers spell it in rows of numbers."""
    if value is None:
        found = math.nan
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf if value > 0 else -math.inf
    else:
        raise Unreadable(f"{name} must be a number, it is {shown(value)}")
    if math.isnan(found) and name == "the score":
        raise Unreadable("the score is not a number")
    return found


def vector(value: Any) -> FloatArray | None:
    """The numbers of a list, also of a list that holds only such a list; None for null."""
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if value is None:
        return None
    if not isinstance(value, list):
        raise Unreadable(f"a list of numbers was expected, it is {shown(value)}")
    return np.array([number(one, f"entry {i}") for i, one in enumerate(value)], dtype=np.float64)


def record(value: Any, features: Sequence[str]) -> FloatArray | None:
    """The numbers of a table by feature name; None for null or an empty table. Other names are not read."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or value in ({}, []):
        return None
    if not isinstance(value, Mapping):
        raise Unreadable(f"a table by feature name was expected, it is {shown(value)}")
    missing = [name for name in features if name not in value]
    if missing:
        raise Unreadable(
            f"the table has no {missing[0]!r}" + f" ({len(missing)} names are missing)" * (len(missing) > 1)
        )
    return np.array([number(value[name], repr(name)) for name in features], dtype=np.float64)


def changed(
    changes: Sequence[tuple[Any, Any]], point: FloatArray, features: Sequence[str] | None, relative: bool
) -> FloatArray:
    """The point after changes (feature by name or number, value); with `relative` the value is added.

    >>> changed([("age", 41), (1, 5.0)], np.array([40.0, 3.0]), ["age", "income"], relative=False).tolist()
    [41.0, 5.0]
    """
    answer, seen = point.copy(), set()
    for feature, value in changes:
        i = _place(feature, features, len(point))
        if i in seen:
            raise Unreadable(f"the feature {shown(feature)} is changed twice")
        seen.add(i)
        given = number(value, f"the value for {shown(feature)}")
        with np.errstate(over="ignore", invalid="ignore"):
            answer[i] = answer[i] + given if relative else given
    return answer


def _place(feature: Any, features: Sequence[str] | None, dimension: int) -> int:
    if isinstance(feature, str) and features is not None and feature in features:
        return features.index(feature)
    if isinstance(feature, int) and not isinstance(feature, bool) and 0 <= feature < dimension:
        return feature
    raise Unreadable(f"it changes the feature {shown(feature)}, which the endpoint file does not have")
