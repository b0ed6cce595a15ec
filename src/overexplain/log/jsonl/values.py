"""JSON that is taken at its word: no key twice, no NaN, and values of exactly the kind that is wanted."""

from __future__ import annotations

import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.rows import Status

STATUS = {status.text: status for status in Status}

_encode = json.JSONEncoder(allow_nan=False).encode


def to_json(entry: Any) -> str:
    """The entry on one line, its floats such that they are read back exactly."""
    try:
        return _encode(entry)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this cannot be written as JSON: {error}") from None


def _refuse_constant(text: str) -> NoReturn:
    raise NotFinite(f"{text} is no number a log can hold")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object that the pairs make, if no key comes twice."""
    entry = dict(pairs)
    if len(entry) != len(pairs):
        raise InvalidInput("the same key twice in one object")
    return entry


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=distinct).decode


def parse_json(raw: bytes | str) -> Any:
    """The JSON value; raises InvalidInput, or, if it is no JSON at all, JSONDecodeError or UnicodeDecodeError."""
    try:
        return _decode(raw if isinstance(raw, str) else raw.decode("utf-8"))
    except (InvalidInput, json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise InvalidInput("nested too deep") from None
    except ValueError:  # all that is left
        raise InvalidInput("a whole number of thousands of digits: more than a log can hold") from None


def read_mechanism(terms: Any, dimension: int | None) -> Mechanism:
    """The mechanism that `Mechanism.to_dict` wrote, if it is one and is made for `dimension` features."""
    if isinstance(terms, dict) and any(isinstance(value, bool) for value in terms.values()):
        raise InvalidInput(f"a mechanism's terms are numbers, norms or null, got {show(terms)}")
    try:
        mechanism = Mechanism.from_dict(terms)
        if dimension is not None:
            mechanism.fits(dimension)
    except InvalidInput:
        raise
    except Exception as error:  # any shape of JSON may come, and norms of all kinds are made from it
        raise InvalidInput(f"this mechanism cannot be read: {type(error).__name__}: {error}") from None
    return mechanism


def read_numbers(entry: Any, key: str, length: int | None) -> list[float]:
    """The list, if it holds `length` finite numbers."""
    values: list[Any] = entry if isinstance(entry, list) else []
    if not values or (length is not None and len(values) != length):
        wanted = "one number or more" if length is None else f"{length} numbers"
        got = f"{len(values)} entries" if isinstance(entry, list) else show(entry)
        raise DimensionMismatch(f"{key} must be a list of {wanted}, got {got}")
    kinds = set(map(type, values))
    if kinds != {float}:
        if not kinds <= {float, int}:  # bool is an int to Python, not to us
            raise InvalidInput(f"{key} must hold numbers only, got {show(values)}")
        try:
            values = [float(value) for value in values]
        except OverflowError:
            raise NotFinite(f"{key} holds an integer too large for a float64") from None
    if not all(map(math.isfinite, values)):
        raise NotFinite(f"{key} holds a number too large for a float64")
    return values


def read_status(text: Any, answered: bool) -> Status:
    """The status of this name, if it fits a row that has an explanation (or has none)."""
    status = STATUS.get(text) if isinstance(text, str) else None
    if status is None:
        raise InvalidInput(f"status must be one of {', '.join(STATUS)}, got {show(text)}")
    if (status == Status.ASKED) != answered:
        raise InvalidInput(f"status is {text}, but the row has {'an' if answered else 'no'} explanation")
    return status


def refuse_unknown(entry: dict[str, Any], known: set[str]) -> None:
    """Raise if the entry has a key that is not known."""
    if not entry.keys() <= known:
        extra = ", ".join(show(key) for key in entry if key not in known)
        raise InvalidInput(f"unknown key {extra}; known are {', '.join(sorted(known))}")


def show(value: Any) -> str:
    """A short text of any JSON value."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def warn(message: str) -> None:
    """Warn, naming the line outside this package that asked for the file."""
    inside, level, frame = str(Path(__file__).parents[2]), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
