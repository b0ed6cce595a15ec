"""Request bodies become points, strictly: whatever is not exactly what the protocol says is refused with its place.

KServe V1: ``{"instances": [row or record, …]}``, a row being a list of numbers, a record an object by feature name.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray

MOST_INSTANCES: Final = 1_000
"""In one request: one is answered at a time, and the others wait."""


@final
class Refused(Exception):
    """The request is not answered; `status` is that of the HTTP reply, the message its error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@final
@dataclass(frozen=True)
class Layout:
    """What one instance consists of: so many features, and their names if they have any."""

    dimension: int
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.features is not None and len(self.features) != self.dimension:
            raise InvalidInput(f"{len(self.features)} features are named, the service has {self.dimension}")

    def called(self, k: int) -> str:
        """How a message calls feature k."""
        return f"entry {k}" if self.features is None else f"entry {k} ({self.features[k]})"


def read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object that a body is."""
    try:
        value = _decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not JSON: not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deep") from None
    except ValueError:  # all that is left
        raise Refused(400, "the body cannot be read: it has a whole number of thousands of digits") from None
    if not isinstance(value, dict):
        raise Refused(400, f"the body must be a JSON object, got {show(value)}")
    return value


def read_instances(body: dict[str, Any], layout: Layout) -> FloatArray:
    """The rows of a KServe V1 request.

    >>> read_instances({"instances": [[30, 2.5], {"income": 1, "age": 20}]}, Layout(2, ("age", "income"))).tolist()
    [[30.0, 2.5], [20.0, 1.0]]
    """
    refuse_unknown(body, ("instances",), "the body")
    instances = body.get("instances")
    if not isinstance(instances, list) or not instances:
        raise Refused(400, f'"instances" must be a list of one row or more, got {show(instances)}')
    refuse_many(len(instances))
    return np.array([_row(instance, i, layout) for i, instance in enumerate(instances)])


def refuse_many(instances: int) -> None:
    """Raise Refused if others would have to wait too long for so many instances."""
    if instances > MOST_INSTANCES:
        raise Refused(413, f"{instances:,} instances, but a request may have {MOST_INSTANCES:,}; send fewer at a time")


def _row(instance: Any, i: int, layout: Layout) -> list[float]:
    where = f"instance {i}"
    if isinstance(instance, dict):
        instance = _in_order(instance, where, layout.features)
    if not isinstance(instance, list):
        forms = "a list of numbers" if layout.features is None else "a list of numbers or an object by feature name"
        raise Refused(400, f"{where} must be {forms}, got {show(instance)}")
    if len(instance) != layout.dimension:
        raise Refused(400, f"{where} must have {layout.dimension} numbers, got {len(instance)}")
    return [finite(value, f"{where}, {layout.called(k)}") for k, value in enumerate(instance)]


def _in_order(record: dict[str, Any], where: str, features: Sequence[str] | None) -> list[Any]:
    """The values of a record in the order of the features, each there once."""
    if features is None:
        raise Refused(400, f"{where} has names, but this model's features have none; send a list of numbers")
    refuse_unknown(record, features, where)
    missing = [name for name in features if name not in record]
    if missing:
        raise Refused(400, f"{where} lacks {listed(missing)}; every feature must be given")
    return [record[name] for name in features]


def finite(value: Any, where: str) -> float:
    """The value as a float, if it is a finite number."""
    if type(value) not in (int, float):  # True is an int to Python, not to us
        raise Refused(400, f"{where} must be a number, got {show(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Refused(400, f"{where} must be a finite number within float64, got {show(value)}")
    return number


def refuse_unknown(entries: dict[str, Any], known: Sequence[str], where: str) -> None:
    """Raise Refused if there is a key that nobody knows."""
    allowed = set(known)
    unknown = [key for key in entries if key not in allowed]
    if unknown:
        raise Refused(400, f"{where} has unknown {listed(unknown)}; known are {listed(known)}")


def listed(names: Sequence[str]) -> str:
    """A few of the names, for a message."""
    shown = ", ".join(show(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def show(value: Any) -> str:
    """A short text of a value, for a message."""
    return _SHORT.repr(value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise Refused(400, f"the body has the same key twice in one object ({listed([key for key, _ in pairs])})")
    return entries


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_decode = json.JSONDecoder(object_pairs_hook=_distinct).decode  # NaN is read, so that its place can be named
