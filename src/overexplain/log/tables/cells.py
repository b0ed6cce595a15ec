"""One column of a table, whatever the table is: what its cells must be able to say, and where one of them is wrong."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray

Texts = NDArray[np.object_]
"""A text or None for every row."""


@dataclass(eq=False)
class Misfit(Exception):
    """A row that is wrong; who reads the file knows what to call it."""

    kind: type[InvalidInput]
    start: str
    row: int
    rest: str = ""

    def error(self, named: Callable[[int], str] = str) -> InvalidInput:
        """The error to raise: `start`, the row, `rest`."""
        return self.kind(f"{self.start}row {named(self.row)}{self.rest}")


class Cells(Protocol):
    """A column of `count` rows. Raises Misfit for one wrong cell, InvalidInput if the whole column is of another kind."""

    def numbers(self, truth: bool) -> FloatArray:
        """The numbers, NaN for a gap; truth values are numbers only if `truth`."""
        ...

    def texts(self, names: bool) -> Texts:
        """The texts, None for a gap; whole numbers are texts, too, if they are `names`: 7, never 7.0."""
        ...

    def answers(self) -> Texts:
        """Whatever the cells hold, as texts, None for a gap: to be compared with the label that means Yes."""
        ...

    def seconds(self) -> FloatArray:
        """Seconds since the epoch: of numbers as they are, of dates and ISO texts (UTC where they name no zone)."""
        ...

    def vectors(self, dimension: int | None) -> FloatArray | None:
        """Rows of numbers, NaN for a gap, all-NaN where there is no list or an empty one; None if the column holds no vectors.

        Services say by an empty list that they found no counterfactual.
        """
        ...


@dataclass(frozen=True)
class Values:
    """A column of Python values, as they come from JSON; None is a gap."""

    name: str
    values: Sequence[Any]

    def numbers(self, truth: bool) -> FloatArray:
        """The numbers, NaN for a gap; truth values are numbers only if `truth`."""
        kinds = set(map(type, self.values))
        if kinds <= {float} or kinds <= {float, type(None)}:
            return np.array(self.values, dtype=np.float64)
        return np.array([self._number(i, value, truth) for i, value in enumerate(self.values)], dtype=np.float64)

    def _number(self, i: int, value: Any, truth: bool) -> float:
        if value is None:
            return math.nan
        if not isinstance(value, int | float) or (isinstance(value, bool) and not truth):
            raise not_a_number(self.name, value, i)
        try:
            return float(value)
        except OverflowError:
            raise Misfit(NotFinite, f"column {self.name!r} has an integer too large for a float64 in ", i) from None

    def texts(self, names: bool) -> Texts:
        """The texts, None for a gap; whole numbers are texts, too, if they are `names`."""
        values = self.values
        if not set(map(type, values)) <= {str, type(None)}:
            if names:
                values = [str(value) if type(value) is int else value for value in values]
            for i, value in enumerate(values):
                if not isinstance(value, str | None):
                    raise not_a_text(self.name, value, i)
        return as_objects(values)

    def answers(self) -> Texts:
        """Whatever the cells hold, as texts: `true` as in JSON."""
        return as_objects(
            [None if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in self.values]
        )

    def seconds(self) -> FloatArray:
        """Seconds since the epoch: of numbers as they are, of dates and ISO texts (UTC where they name no zone)."""
        if set(map(type, self.values)) <= {int, float, type(None)}:
            return self.numbers(False)
        return seconds_of(self.name, self.values)

    def vectors(self, dimension: int | None) -> FloatArray | None:
        """Rows of numbers, NaN for a gap; None if the column holds no vectors."""
        given = [(i, row) for i, row in enumerate(self.values) if row not in (None, [])]
        if given and not isinstance(given[0][1], list):
            return None
        p = dimension or (len(given[0][1]) if given else 1)
        rows = np.full((len(self.values), p), np.nan)
        for i, row in given:
            if not isinstance(row, list) or len(row) != p:
                got = number_of_entries(len(row)) if isinstance(row, list) else shown(row)
                raise Misfit(DimensionMismatch, f"column {self.name!r} must hold {p} numbers, got {got} in ", i)
            kinds = set(map(type, row))
            if not kinds <= {float, int, type(None)}:
                wrong = next(entry for entry in row if type(entry) not in (float, int, type(None)))
                raise not_a_number(self.name, wrong, i)
            try:
                rows[i] = [math.nan if entry is None else entry for entry in row] if type(None) in kinds else row
            except OverflowError:
                raise Misfit(NotFinite, f"column {self.name!r} has an integer too large for a float64 in ", i) from None
        return rows


def number_of_entries(count: int) -> str:
    """'1 entry', '2 entries'."""
    return "1 entry" if count == 1 else f"{count} entries"


def not_a_number(name: str, value: Any, row: int) -> Misfit:
    """A cell that holds no number."""
    return Misfit(InvalidInput, f"column {name!r} must hold numbers, got {shown(value)} in ", row)


def not_a_text(name: str, value: Any, row: int) -> Misfit:
    """A cell that holds no text."""
    return Misfit(InvalidInput, f"column {name!r} must hold texts, got {shown(value)} in ", row)


def seconds_of(name: str, values: Sequence[Any]) -> FloatArray:
    """The seconds that texts, dates and numbers mean, each distinct one worked out once; NaN for None."""
    read: dict[Any, float] = {None: math.nan}
    found = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            seconds = read.get(value)
        except TypeError:  # a list, say: nothing that could be looked up, nor a time
            raise _no_time(name, value, i) from None
        if seconds is None:
            seconds = _second(value)
            if seconds is None:
                raise _no_time(name, value, i)
            read[value] = seconds
        found[i] = seconds
    return found


def _no_time(name: str, value: Any, row: int) -> Misfit:
    rest = ": neither seconds since the epoch nor an ISO date"
    return Misfit(InvalidInput, f"column {name!r} has {shown(value)} in ", row, rest)


def _second(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        when = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value).strip())
        return (when if when.tzinfo else when.replace(tzinfo=datetime.UTC)).timestamp()
    except (ValueError, OverflowError):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return None


def as_objects(values: Sequence[Any]) -> Texts:
    """The values as an array of objects, whatever they are."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def shown(value: Any) -> str:
    """A short text of a value."""
    text = repr(value[:80] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."
