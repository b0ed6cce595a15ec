"""Raw columns: how a number, a text or a truth value in a table becomes the features of a model.

A numeric column is one feature. A categorical column is one feature for each of its categories (or one for several
rare ones): 1 where the column has that category, else 0. Equal is what Python calls equal: 1, 1.0 and True are the
same category. None, NaN and a data frame's NA are one and the same: missing.
"""

from __future__ import annotations

import decimal
import math
import numbers
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, final

import numpy as np

from overexplain._texts import is_unicode
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray, IntArray, as_generator
from overexplain.geometry.domain import SPREAD, Domain

Value = str | int | float | bool | None
Place = Callable[[int], str]
"""How an error message calls the i-th value: "row 3", or "cases.csv, line 5"."""

_NO_FEATURE: Final = -1
_OPEN: Final = -2
_SHOWN = 6


@final
@dataclass(frozen=True)
class Column:
    """One column of the data and the features it becomes.

    name             what the data call it
    categories       its possible values (None among them: missing); None: the column holds numbers
    features         the name of its feature; for a categorical column that of each category's feature (several
                     categories may share one). Left out: `name`, or "name=category"
    unknown          what another value is: "refuse", an error, or "ignore": it switches on `unknown_feature`, or, if that
                     is None, none of the features
    missing          the number that stands for a missing one (numeric columns); None: a gap is an error

    >>> Column("colour", ("red", "green")).features
    ('colour=red', 'colour=green')
    """

    name: str
    categories: tuple[Value, ...] | None = None
    features: tuple[str, ...] | None = None
    unknown: Literal["refuse", "ignore"] = "refuse"
    unknown_feature: str | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidInput(f"the name of a column must be a text, got {self.name!r}")
        if not is_unicode(self.name):
            raise InvalidInput(f"column {self.name!r} is no Unicode text: it has half of a surrogate pair; rename it")
        if self.categories is not None:
            categories = tuple(as_value(value) for value in _listed(self.categories, f"{self.name!r}: categories"))
            object.__setattr__(self, "categories", categories)
            if not categories or len(set(categories)) < len(categories):
                raise InvalidInput(f"column {self.name!r}: categories must differ, at least one, got {categories}")
        if self.features is None:
            own = [self.name] if self.categories is None else [feature_name(self.name, c) for c in self.categories]
        else:
            own = list(_listed(self.features, f"{self.name!r}: features"))
        object.__setattr__(self, "features", tuple(own))
        wanted = 1 if self.categories is None else len(self.categories)
        if len(own) != wanted or not all(isinstance(name, str) for name in own):
            raise InvalidInput(f"column {self.name!r} needs {wanted} names of features, got {own}")
        if self.unknown not in ("refuse", "ignore"):
            raise InvalidInput(f'column {self.name!r}: unknown must be "refuse" or "ignore", got {self.unknown!r}')
        self._check_what_others_are()

    def _check_what_others_are(self) -> None:
        if self.categories is None and (self.unknown, self.unknown_feature) != ("refuse", None):
            raise InvalidInput(f"column {self.name!r} holds numbers: it has no unknown categories")
        if self.unknown_feature is not None and (self.unknown, self.unknown_feature in self.own) != ("ignore", True):
            raise InvalidInput(
                f'column {self.name!r}: unknown_feature must be one of its features, with unknown "ignore", '
                f"got {self.unknown_feature!r}"
            )
        if self.missing is not None:
            if self.categories is not None:
                raise InvalidInput(f"column {self.name!r}: a missing category is None among the categories")
            if isinstance(self.missing, bool) or not isinstance(self.missing, numbers.Real):
                raise InvalidInput(f"column {self.name!r}: missing must be a number, got {self.missing!r}")
            if not math.isfinite(self.missing):
                raise NotFinite(f"column {self.name!r}: missing must be finite, got {self.missing!r}")
            object.__setattr__(self, "missing", float(self.missing))

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The features, each once, in order."""
        return tuple(dict.fromkeys(self.features or ()))

    @cached_property
    def _codes(self) -> dict[Value, int]:
        """Category → which of the features it switches on."""
        position = {name: k for k, name in enumerate(self.own)}
        return {c: position[f] for c, f in zip(self.categories or (), self.features or (), strict=True)}

    def encode(self, values: Any, place: Place = "row {}".format) -> FloatArray:
        """A row for each value, a column for each feature of `own`; raises, naming the place, what cannot be used.

        >>> Column("colour", ("red", "green", None)).encode(["green", None]).tolist()
        [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
        """
        if self.categories is None:
            return self._numbers(values, place)[:, None]
        codes = self._switched_on(values, place)
        rows = np.zeros((len(codes), len(self.own)))
        known = codes != _NO_FEATURE
        rows[np.flatnonzero(known), codes[known]] = 1.0
        return rows

    def _numbers(self, values: Any, place: Place) -> FloatArray:
        array = _one_dimensional(values, self.name)
        if array.dtype.kind in "biuf":
            found = array.astype(np.float64)
        else:
            found = np.array([self._number(value, place, i) for i, value in enumerate(array)], dtype=np.float64)
        gaps = np.isnan(found)
        if gaps.any() and self.missing is None:
            i = int(np.flatnonzero(gaps)[0])
            raise NotFinite(f"{place(i)}: {self.name!r} is missing; only finite numbers can be used")
        if np.isinf(found).any():
            i = int(np.flatnonzero(np.isinf(found))[0])
            raise NotFinite(f"{place(i)}: {self.name!r} is {found[i]}; only finite numbers can be used")
        return np.where(gaps, 0.0 if self.missing is None else self.missing, found)

    def _number(self, value: Any, place: Place, i: int) -> float:
        plain = _plain(value)
        if plain is None:
            return math.nan
        if isinstance(plain, (int, float)):
            try:
                return float(plain)
            except OverflowError:
                raise NotFinite(f"{place(i)}: {self.name!r} is too large for a float64") from None
        raise InvalidInput(f"{place(i)}: {self.name!r} is {reprlib.repr(value)}, which is not a number")

    def _switched_on(self, values: Any, place: Place) -> IntArray:
        given = _one_dimensional(values, self.name).tolist()
        try:
            codes = [self._codes.get(value, _OPEN) for value in given]
        except TypeError:  # a list or a dict among them: not hashable, no category
            codes = [_OPEN] * len(given)
        found = np.array(codes, dtype=np.int64)
        for i in np.flatnonzero(found == _OPEN).tolist():
            found[i] = self._unusual(given[i], place, i)
        return found

    def _unusual(self, value: Any, place: Place, i: int) -> int:
        plain = _plain(value)
        if isinstance(plain, str | int | float | None) and plain in self._codes:
            return self._codes[plain]
        if self.unknown == "ignore":
            return _NO_FEATURE if self.unknown_feature is None else self.own.index(self.unknown_feature)
        what = "missing" if plain is None else reprlib.repr(value)
        shown = ", ".join(repr(c) for c in (self.categories or ())[:_SHOWN])
        more = f" and {len(self._codes) - _SHOWN} more" if len(self._codes) > _SHOWN else ""
        raise InvalidInput(f"{place(i)}: {self.name!r} is {what}; the model knows {shown}{more}")

    def read(self, cell: str) -> Value:
        """What a cell of a text file stands for, in a categorical column: a category, if one is written like that.

        >>> Column("floor", (1, 2, None)).read("2.0"), Column("floor", (1, 2, None)).read(" ")
        (2.0, None)
        """
        text = cell.strip()
        for candidate in (cell, text):
            if candidate in self._codes:
                return candidate
        if not text:
            return None
        if text.lower() in ("true", "false") and (truth := text.lower() == "true") in self._codes:
            return truth
        try:
            number = None if "_" in text else float(text)
        except ValueError:
            return text
        return number if number in self._codes and number is not None else text


def encode(columns: Sequence[Column], features: Sequence[str], data: Any) -> FloatArray:
    """The rows of features of a table: a data frame, or a mapping of names to columns of the same length.

    If the table has the features instead of the raw columns, it is taken as encoded already.
    """
    given = names_of(data)
    missing = [column.name for column in columns if column.name not in given]
    if missing and set(features) <= given:
        columns, missing = [Column(name) for name in features], []
    if missing:
        has = ", ".join(repr(name) for name in sorted(map(str, given))[:_SHOWN])
        raise InvalidInput(f"the data have no column {missing[0]!r}; they have {has or 'none'}")
    return joined(columns, features, [column.encode(data[column.name]) for column in columns])


def joined(columns: Sequence[Column], features: Sequence[str], blocks: Sequence[FloatArray]) -> FloatArray:
    """The rows of features of which each column has given its own."""
    lengths = {column.name: len(block) for column, block in zip(columns, blocks, strict=True)}
    if len(set(lengths.values())) > 1:
        raise DimensionMismatch(f"the columns have different lengths: {lengths}")
    position = {name: k for k, name in enumerate(features)}
    rows = np.empty((len(blocks[0]), len(features)))
    for column, block in zip(columns, blocks, strict=True):
        rows[:, [position[name] for name in column.own]] = block
    return rows


def domain_of(columns: Iterable[Column], features: Sequence[str]) -> Domain | None:
    """The rows that known categories can give: one-hot groups, between 0 and 1; None if all columns are numeric."""
    position = {name: k for k, name in enumerate(features)}
    low, high = np.full(len(features), -np.inf), np.full(len(features), np.inf)
    groups = []
    for column in columns:
        if column.categories is not None:
            own = [position[name] for name in column.own]
            low[own], high[own] = float(len(own) == 1), 1.0  # one category only: its feature is always 1
            if len(own) > 1:
                groups.append(own)
    return Domain(len(features), low, high, groups) if np.isfinite(high).any() else None


def check_columns(columns: Any, features: tuple[str, ...] | None) -> tuple[Column, ...]:
    """The columns as a tuple, if every feature comes from exactly one of them."""
    checked: tuple[Column, ...] = tuple(_listed(columns, "columns"))
    if not all(isinstance(column, Column) for column in checked):
        raise InvalidInput(f"columns must be Column objects, got {reprlib.repr(columns)}")
    if features is None:
        raise InvalidInput("columns need the names of the features: give features")
    fed = Counter(name for column in checked for name in column.own)
    known = set(features)
    wrong = [f"{name!r} comes from no column" for name in features if name not in fed]
    wrong += [f"{name!r} is no feature" for name in fed if name not in known]
    wrong += [f"{name!r} comes from two columns" for name, count in fed.items() if count > 1]
    if wrong:
        raise InvalidInput(f"columns and features do not fit together: {'; '.join(wrong[:4])}")
    return checked


def sample(columns: Iterable[Column], rng: int | np.random.Generator, n: int) -> dict[str, Any]:
    """Random raw columns: known categories, Gaussian numbers; a name in two columns has the categories' values."""
    generator = as_generator(rng)
    drawn: dict[str, Any] = {}
    for column in sorted(columns, key=lambda column: column.categories is None):
        if column.categories is not None:
            drawn[column.name] = [column.categories[k] for k in generator.integers(len(column.categories), size=n)]
        elif column.name not in drawn:
            drawn[column.name] = generator.normal(0.0, SPREAD, n)
    return drawn


def as_value(value: Any) -> Value:
    """The value as a category: a text, a number, a truth value, or None for a missing one."""
    plain = _plain(value)
    if not isinstance(plain, str | int | float | None) or (isinstance(plain, float) and not math.isfinite(plain)):
        raise InvalidInput(f"a category must be a text, a number, true, false or missing, got {reprlib.repr(value)}")
    if isinstance(plain, str) and not is_unicode(plain):
        raise InvalidInput(f"the category {plain!r} is no Unicode text: it has half of a surrogate pair; rename it")
    return plain


def feature_name(column: str, category: Value) -> str:
    """How the feature of a category is called.

    >>> feature_name("colour", "red"), feature_name("colour", None)
    ('colour=red', 'colour=(missing)')
    """
    return f"{column}={'(missing)' if category is None else category}"


def names_of(data: Any) -> set[str]:
    """The names of the columns of a mapping or a data frame (pandas, polars, pyarrow)."""
    names = data if isinstance(data, Mapping) else getattr(data, "column_names", getattr(data, "columns", None))
    if names is None:
        raise InvalidInput(f"a data frame or a mapping of names to columns is needed, got {type(data).__name__}")
    return set(names)


def _plain(value: Any) -> Any:
    """The value as Python's own type; None for whatever means missing."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, decimal.Decimal):
        value = float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _one_dimensional(values: Any, name: str) -> Any:
    if hasattr(values, "to_pylist"):  # Arrow's columns, whose own arrays do not tell a gap from a category
        values = values.to_pylist()
    array = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=_dtype(values))
    if array.ndim != 1:
        raise DimensionMismatch(f"column {name!r} must have one value for each row, got shape {array.shape}")
    return array if array.dtype.kind in "biufUO" else array.astype(object)


def _dtype(values: Any) -> Any:
    """Lists are kept as they are: NumPy would turn [1, "a", None] into texts."""
    return object if isinstance(values, list | tuple) else None


def _listed(values: Any, what: str) -> Sequence[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(f"{what} must be a list, got {reprlib.repr(values)}")
    return values
