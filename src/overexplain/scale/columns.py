"""Which columns of a table are a log's features: matched by name, nothing guessed, filled in or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.log.rows import number_of, repeated
from overexplain.models.columns import Column, joined

SHOWN = 6


@dataclass(frozen=True)
class Columns:
    """Where the features are among a file's `count` columns: feature i, called `names[i]`, is column `picks[i]`."""

    names: tuple[str, ...]
    picks: tuple[int, ...]
    count: int
    extras: tuple[str, ...] = ()
    key: int | None = None


@dataclass(frozen=True)
class Raw:
    """The raw columns that make up the features of a model; a file may have these instead of the features."""

    columns: tuple[Column, ...]
    features: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, each once."""
        return tuple(dict.fromkeys(column.name for column in self.columns))

    def are_in(self, given: Iterable[str]) -> bool:
        """True if a file with the columns `given` has all of them; then it is not taken for one of features."""
        return set(self.names) <= set(given)

    def points(
        self, table: Mapping[str, Sequence[Any]], place: Callable[[int], str], read: Callable[[Column, Any, int], Any]
    ) -> FloatArray:
        """The points in some rows: `read` says what an entry of a column stands for, `place` where a row is."""
        blocks = [
            column.encode([read(column, entry, i) for i, entry in enumerate(table[column.name])], place)
            for column in self.columns
        ]
        return joined(self.columns, self.features, blocks)


def raw_columns(columns: Sequence[Column] | None, features: Sequence[str] | None) -> Raw | None:
    """The raw columns of a model, if it has them and its features have names."""
    return None if columns is None or features is None else Raw(tuple(columns), tuple(features))


def matched(
    given: Sequence[str], features: tuple[str, ...] | None, dimension: int, path: str, hint: str = ""
) -> Columns:
    """Where the features are among the columns `given`; raises if one is missing or there twice.

    Other columns are allowed where names tell them apart; without names there must be exactly `dimension` columns.

    >>> matched(["id", "income", "age"], ("age", "income"), 2, "people.csv")
    Columns(names=('age', 'income'), picks=(2, 1), count=3, extras=('id',), key=0)
    """
    if features is None:
        if len(given) != dimension:
            has = number_of(len(given), "column")
            raise DimensionMismatch(
                f"{path} has {has}; the log has {dimension} features, without names to pick them by"
            )
        return positions(dimension)
    place = {name: k for k, name in enumerate(given)}
    if missing := [name for name in features if name not in place]:
        raise InvalidInput(f"{path}: no column for {listed(missing)}; it has {listed(given)}{hint}")
    if twice := repeated([name for name in given if name in features]):
        raise InvalidInput(f"{path}: more than one column is called {twice}")
    known = set(features)
    extras = tuple(name for name in given if name not in known)
    picks = tuple(place[name] for name in features)
    return Columns(features, picks, len(given), extras, place[extras[0]] if len(extras) == 1 else None)


def positions(dimension: int, names: tuple[str, ...] | None = None) -> Columns:
    """The columns of points that are nothing but their numbers, in the log's order."""
    return Columns(names or tuple(f"x{i}" for i in range(dimension)), tuple(range(dimension)), dimension)


def listed(names: Sequence[str]) -> str:
    """The first few names: "'age', 'income' and 12 more"."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
