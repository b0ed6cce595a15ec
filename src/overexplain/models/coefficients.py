"""The coefficient file: a linear model as JSON that people can write by hand and no program has to run.

::

    {
      "format": "overexplain-model", "version": 1,      both may be left out
      "features": ["age", "income"],                    optional
      "coefficients": [0.3, -1.5],                      or {"age": 0.3, "income": -1.5}
      "intercept": -1.2,
      "link": "logistic",                               or "none"; left out: "logistic" if a threshold is there
      "threshold": 0.5,                                 Yes where coefficients·x + intercept ≥ logit(threshold), or
      "cutoff": 620.0,                                  Yes where coefficients·x + intercept ≥ cutoff (left out: 0)
      "folded_threshold": 0.5,                          a note: the intercept has this threshold in it; Yes where ≥ 0
      "classes": ["denied", "granted"],                 optional: the names of No and of Yes
      "columns": [{"name": "age"}, …]                   optional: the raw columns that the features are made from
    }

At most one of threshold, cutoff and folded_threshold. `LinearModel.save` writes intercept = −offset and the threshold
as folded_threshold: to take logit(threshold) out and put it in again would cost the last bits of the offset.
`schema.py` says the same in JSON Schema, published as docs/schemas/model.schema.json.
"""

from __future__ import annotations

import difflib
import json
import math
import numbers
import os
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from overexplain._files import replacing
from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel, ZeroNormal
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.columns import Column
from overexplain.models.linear import LinearModel
from overexplain.models.schema import COLUMN_ENTRIES, ENTRIES, FORMAT, VERSION
from overexplain.models.sniff import read_bounded

SOURCE: Final = "coefficient file"
LARGEST: Final = 64 * 2**20
"""Bytes; a larger file is not a linear model, or not one that should be JSON."""

_CUTS = ("threshold", "cutoff", "folded_threshold")
_ELSEWHERE = {"coef": "coefficients", "coef_": "coefficients", "weights": "coefficients", "bias": "intercept"}
_KEYS = tuple(ENTRIES)


class SeveralClasses(UnsupportedModel):
    """The file has a score for each class: `load_multiclass` reads it."""


def read_coefficients(path: str | os.PathLike[str], threshold: float | None = None) -> LinearModel:
    """The model in a coefficient file; `threshold` replaces the file's own cut."""
    path = Path(path)
    content = read_bounded(path, LARGEST)
    with naming(path):
        return replace(from_entries(parse(content), threshold), source=SOURCE)


def from_dict(entries: Mapping[str, Any], threshold: float | None = None) -> LinearModel:
    """The model that a dict with the entries of a coefficient file stands for.

    >>> from_dict({"coefficients": {"age": 0.5}, "intercept": -20, "classes": ["no", "yes"]}).hyperplane.offset
    20.0
    """
    with naming("the model dict"):
        return from_entries(entries, threshold)


def from_entries(entries: Any, threshold: float | None) -> LinearModel:
    """The model of the entries, as `from_dict`, with messages that do not say where the entries came from."""
    if not isinstance(entries, Mapping):
        raise InvalidInput(f"a model is a JSON object with coefficients and intercept, got {reprlib.repr(entries)}")
    if "scores" in entries:
        raise SeveralClasses(
            "this is a model of several classes (it has scores, not coefficients): use load_multiclass"
        )
    check_keys(entries, _KEYS)
    for key in ("coefficients", "intercept"):
        if entries.get(key) is None:
            raise InvalidInput(f"the key {key!r} is missing; a model is coefficients·x + intercept (write 0 if none)")
    check_version(entries)
    features, coefficients = coefficients_of(entries)
    if not any(coefficients):
        raise ZeroNormal("every coefficient is zero: all points would get the same answer, there is no plane")
    intercept = as_number(entries["intercept"], "intercept")
    cuts = {key: as_number(entries[key], key) for key in _CUTS if entries.get(key) is not None}
    if len(cuts) > 1:
        raise InvalidInput(f"{' and '.join(cuts)} are both given; the cut can be said in one way only, keep one")
    folded, own = cuts.get("folded_threshold"), cuts.get("threshold")
    has_threshold = own is not None or folded is not None
    link: Any = entries.get("link")
    if link is None:
        link = "logistic" if has_threshold else "none"
    if link == "none" and has_threshold:
        raise InvalidInput('a probability threshold needs "link": "logistic"; a cut on the raw score is called cutoff')
    plane = Hyperplane.from_intercept(coefficients, intercept)
    raw = LinearModel(plane, features, folded, entries.get("classes"), link, columns_of(entries.get("columns")))
    if threshold is not None:
        return raw.with_threshold(threshold)
    return raw.with_cutoff(cuts.get("cutoff", 0.0)) if own is None else raw.with_threshold(own)


def to_entries(model: LinearModel) -> dict[str, Any]:
    """The entries of the coefficient file of a model, ready for JSON."""
    entries = {
        "format": FORMAT,
        "version": VERSION,
        "features": None if model.features is None else list(model.features),
        "coefficients": model.hyperplane.normal.tolist(),
        "intercept": -model.hyperplane.offset,
        "link": model.link,
        "folded_threshold": model.threshold,
        "classes": None if model.classes is None else list(model.classes),
        "columns": None if model.columns is None else [column_entries(column) for column in model.columns],
    }
    return {key: value for key, value in entries.items() if value is not None}


def write_coefficients(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write the coefficient file of a model: a reader sees the old file or the whole new one."""
    write_entries(to_entries(model), path)


def write_entries(entries: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write entries of a coefficient file: a reader sees the old file or the whole new one."""
    path = Path(path)
    if path.suffix.lower() != ".json":
        raise InvalidInput(f"{path}: a model is saved as coefficient JSON; give the file a name that ends in .json")
    text = json.dumps(entries, indent=2, allow_nan=False) + "\n"
    try:
        with replacing(path) as beside, beside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written ({error.strerror}); check the path") from error


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Put the source in front of every message, once, instead of handing it through every function."""
    try:
        yield
    except InvalidInput as error:
        raise type(error)(f"{source}: {error}") from error.__cause__


def parse(content: bytes) -> Any:
    """What the JSON text of a coefficient file says; InvalidInput if it is none."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not UTF-8 text (byte {error.start}); save the file as UTF-8") from None
    if not text.strip():
        raise InvalidInput("the file is empty; a coefficient file has at least coefficients and intercept")
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise InvalidInput("nested too deeply; a coefficient file is one object of numbers and names") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except InvalidInput:
        raise
    except ValueError as error:  # an integer with thousands of digits
        raise InvalidInput(f"a number cannot be read: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidInput(f"the key {twice!r} stands there twice; keep one")
    return entries


def check_keys(entries: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise InvalidInput for a key that is not known, with the one that was meant, perhaps."""
    unknown = [key for key in entries if key not in known]
    if unknown:
        name = str(unknown[0])
        close = [_ELSEWHERE[name]] if name in _ELSEWHERE else difflib.get_close_matches(name, known, n=1)
        advice = f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(known)}"
        raise InvalidInput(f"unknown key {reprlib.repr(unknown[0])}; {advice}")


def check_version(entries: Mapping[str, Any]) -> None:
    """Raise unless the format, where it is named, is this one and not newer."""
    name, version = entries.get("format", FORMAT), entries.get("version", VERSION)
    if name != FORMAT:
        raise UnsupportedModel(f"format is {reprlib.repr(name)}, not {FORMAT!r}: this is another kind of file")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InvalidInput(f"version must be a whole number from 1 on, got {reprlib.repr(version)}")
    if version > VERSION:
        raise UnsupportedModel(f"version {version} is newer than {VERSION}, the newest known; update overexplain")


def coefficients_of(entries: Mapping[str, Any]) -> tuple[Any, list[float]]:
    """(features or None, coefficients in their order)."""
    features, values = entries.get("features"), entries["coefficients"]
    if isinstance(features, np.ndarray):
        features = features.tolist()
    if isinstance(values, np.ndarray):
        values = values.tolist()
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(values, Mapping):
        if isinstance(features, (list, tuple)):
            pairs = _in_order(features, values)
        else:
            pairs = values.items()
            features = list(values) if features is None else features
    elif isinstance(values, (list, tuple)):
        pairs = enumerate(values)
    else:
        raise InvalidInput(f"coefficients must be a list of numbers or an object of them, got {reprlib.repr(values)}")
    coefficients = [as_number(value, "coefficients", key) for key, value in pairs]
    if not coefficients:
        raise InvalidInput("coefficients is empty; a model has at least one feature")
    return features, coefficients


def columns_of(entries: Any) -> tuple[Column, ...] | None:
    """The columns that the entry "columns" lists."""
    if entries is None:
        return None
    if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InvalidInput(f"columns must be a list of objects, got {reprlib.repr(entries)}")
    columns = []
    for i, entry in enumerate(entries):
        with naming(f"columns[{i}]"):
            check_keys(entry, tuple(COLUMN_ENTRIES))
            given: dict[str, Any] = {"name": None, **entry}
            columns.append(Column(**given))
    return tuple(columns)


def column_entries(column: Column) -> dict[str, Any]:
    """The entries of a column, without those that `Column` fills in by itself."""
    entries: dict[str, Any] = {"name": column.name}
    if column.categories is not None:
        entries["categories"] = list(column.categories)
    if column.features != Column(column.name, column.categories).features:
        entries["features"] = list(column.features or ())
    if column.unknown != "refuse":
        entries["unknown"] = column.unknown
    if column.unknown_feature is not None:
        entries["unknown_feature"] = column.unknown_feature
    if column.missing is not None:
        entries["missing"] = column.missing
    return entries


def _in_order(features: Iterable[Any], values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(name, coefficient) in the order of `features`, if the two have the same names."""
    names = [str(name) for name in features]
    known = set(names)
    wrong = [f"{name!r} has no coefficient" for name in names if name not in values]
    wrong += [f"{name!r} is not among the features" for name in values if name not in known]
    if wrong:
        raise InvalidInput(f"features and coefficients must have the same names: {'; '.join(wrong[:4])}")
    return [(name, values[name]) for name in names]


def as_number(value: Any, key: str, index: object = None) -> float:
    """The value as a finite float; raises, calling it key[index]."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    place = key if index is None else f"{key}[{index!r}]"
    if isinstance(value, str):
        raise InvalidInput(f"{place} is the text {reprlib.repr(value)}; write a number, without quotes")
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{place} must be a number, got {reprlib.repr(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise NotFinite(f"{place} is {'too large' if math.isinf(number) else 'NaN'}; only finite numbers can be used")
    return number
