"""A linear score written over the columns of a table: a constant, a weight per number, a table of weights per category.

The score of a classifier is such a sum over its own inputs. What stands before the classifier is folded in from the
back: a scaler or a rotation turns weights on what it gives into weights on what it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from overexplain.errors import UnsupportedModel
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.models.columns import Column, as_value, feature_name

INFREQUENT = "(infrequent)"


def total(u: FloatArray, v: FloatArray) -> float:
    """Σ u_i·v_i, the same wherever in memory the vectors lie: a matrix product may add in another order."""
    return float(sum((u * v).tolist()))


@dataclass(frozen=True, eq=False)
class Table:
    """What a column's categories add to the score: value i belongs to group `groups[i]`, which adds `weights[group]`.

    `names` are the groups' own; `unknown` is the group of any other value: None if it is refused, −1 if it adds nothing.
    """

    values: Any  # a NumPy array of the type the encoder was fitted with
    groups: IntArray
    weights: FloatArray
    names: tuple[str, ...]
    unknown: int | None = None

    def column(self, name: str) -> Column:
        """The column of this table, its features called name=group."""
        features = [f"{name}={group}" for group in self.names]
        unknown = None if self.unknown is None or self.unknown < 0 else features[self.unknown]
        return Column(
            name,
            tuple(as_value(value) for value in self.values),
            tuple(features[group] for group in self.groups),
            "refuse" if self.unknown is None else "ignore",
            unknown,
        )

    def also(self, value: Any, like: Any) -> Table:
        """The table in which one more value (or one that is there already) counts as another one does."""
        same = [k for k, known in enumerate(self.values) if as_value(known) == as_value(like)]
        keep = [k for k, known in enumerate(self.values) if as_value(known) != as_value(value)]
        if not same and self.unknown is None:
            raise UnsupportedModel(f"missing values become {like!r}, which the OneHotEncoder after it does not know")
        group = self.groups[same[0]] if same else self.unknown
        if group is None or group < 0:  # an unknown value that is ignored: nothing has to be known about this one
            return replace(self, values=self.values[keep], groups=self.groups[keep])
        values = np.empty(len(keep) + 1, dtype=object)
        values[:-1], values[-1] = self.values[keep], value
        return replace(self, values=values, groups=np.append(self.groups[keep], group))


@dataclass(frozen=True, eq=False)
class Additive:
    """score = constant + Σ weights·numbers + Σ tables, over the columns of a table, and what is known about those.

    used      which columns are read as numbers; those neither used nor in tables play no part
    size      a bound on the products that make up each weight, and in the last entry the constant: for rounding errors
    centre    where the numbers of a column lie, as far as the steps know, and how far around it (`spread`)
    fill      what stands for a missing number; NaN: nothing does
    accuracy  how exactly the original computes, relative to `size`
    """

    weights: FloatArray
    constant: float
    used: BoolArray
    size: FloatArray
    centre: FloatArray
    spread: FloatArray
    fill: FloatArray
    accuracy: float
    tables: dict[int, Table] = field(default_factory=dict)

    @staticmethod
    def of(weights: FloatArray, constant: float, accuracy: float) -> Additive:
        """The sum with these weights, of numbers of which nothing is known."""
        n = len(weights)
        size = np.append(np.abs(weights), abs(constant))
        used = np.ones(n, dtype=bool)
        return Additive(weights, constant, used, size, np.zeros(n), np.ones(n), np.full(n, np.nan), accuracy)

    @staticmethod
    def nothing(n: int, constant: float, size: float, accuracy: float) -> Additive:
        """The constant alone, over n columns."""
        empty = Additive.of(np.zeros(n), constant, accuracy)
        return replace(empty, used=np.zeros(n, dtype=bool), size=np.append(np.zeros(n), size))

    @property
    def count(self) -> int:
        """The number of columns."""
        return len(self.weights)

    def before_scaling(self, multiplier: FloatArray, shift: FloatArray) -> Additive:
        """The sum over x, where this is the one over z = multiplier∘x + shift."""
        divisor = np.where(multiplier == 0, 1.0, multiplier)
        return replace(
            self,
            weights=self.weights * multiplier,
            constant=self.constant + total(self.weights, shift),
            size=np.append(self.size[:-1] * np.abs(multiplier), self.size[-1] + self.size[:-1] @ np.abs(shift)),
            centre=(self.centre - shift) / divisor,
            spread=self.spread / np.abs(divisor),
            fill=(self.fill - shift) / divisor,
        )

    def before_rotation(self, rows: FloatArray, centre: FloatArray, spread: FloatArray) -> Additive:
        """The sum over x, where this is the one over z = rows·(x − centre)."""
        weights, size = (self.weights[:, None] * rows).sum(axis=0), self.size[:-1] @ np.abs(rows)
        before = Additive.of(weights, self.constant - total(weights, centre), self.accuracy)
        size = np.append(size, self.size[-1] + size @ np.abs(centre))
        return replace(before, size=size, centre=centre, spread=np.where(spread > 0, spread, 1.0))

    def part(self, outputs: slice) -> Additive:
        """The sum over some neighbouring columns, without the constant."""
        chosen = range(self.count)[outputs]
        return Additive(
            self.weights[outputs],
            0.0,
            self.used[outputs],
            np.append(self.size[:-1][outputs], 0.0),
            self.centre[outputs],
            self.spread[outputs],
            self.fill[outputs],
            self.accuracy,
            {k - chosen.start: table for k, table in self.tables.items() if k in chosen},
        )

    def plus(self, part: Additive, positions: IntArray, place: str) -> Additive:
        """The sum with another one added, whose columns are these of our own."""
        both = self.used[positions] & part.used
        keep, take = self.used[positions], part.used
        fill = np.where(take, part.fill, self.fill[positions])
        fill[both & (self.fill[positions] != part.fill)] = np.nan  # filled in two ways: a missing one has no one value
        tables = dict(self.tables)
        for k, table in part.tables.items():
            if positions[k] in tables:
                raise UnsupportedModel(f"step {place!r} encodes a column that another step encodes too; keep one")
            tables[int(positions[k])] = table
        return replace(
            self,
            weights=_with(self.weights, positions, self.weights[positions] + part.weights),
            constant=self.constant + part.constant,
            used=_with(self.used, positions, keep | take),
            size=_with(self.size, np.append(positions, -1), self.size[[*positions, -1]] + part.size),
            centre=_with(self.centre, positions, np.where(keep, self.centre[positions], part.centre)),
            spread=_with(self.spread, positions, np.where(keep, self.spread[positions], part.spread)),
            fill=_with(self.fill, positions, fill),
            accuracy=max(self.accuracy, part.accuracy),
            tables=tables,
        )

    def laid_out(self, names: tuple[str, ...]) -> tuple[tuple[Column, ...], tuple[str, ...], FloatArray]:
        """(columns, features, normal) for columns of these names; those that play no part are left out."""
        columns, weights = [], []
        taken: set[str] = set()
        for k, name in enumerate(names):
            if self.used[k]:
                fill = None if np.isnan(self.fill[k]) else float(self.fill[k])
                columns.append(_apart(Column(name, missing=fill), taken))
                weights.append(self.weights[k : k + 1])
            if k in self.tables:
                table = self.tables[k]
                columns.append(_apart(table.column(name), taken))
                first = dict.fromkeys(table.groups.tolist())
                weights.append(table.weights[list(first)])
        features = tuple(name for column in columns for name in column.own)
        return tuple(columns), features, np.concatenate(weights) if weights else np.zeros(0)


def _with(values: Any, positions: Any, new: Any) -> Any:
    changed = values.copy()
    changed[positions] = new
    return changed


def _apart(column: Column, taken: set[str]) -> Column:
    """The column with features whose names nobody has yet: a number 'a=b' may stand beside the category b of a."""
    renamed = {}
    for name in column.own:
        free, k = name, 2
        while free in taken:
            free, k = f"{name} ({k})", k + 1
        taken.add(free)
        renamed[name] = free
    features = tuple(renamed[name] for name in column.features or ())
    unknown = None if column.unknown_feature is None else renamed[column.unknown_feature]
    return replace(column, features=features, unknown_feature=unknown)


def group_names(values: Any, groups: IntArray, infrequent: int | None) -> tuple[str, ...]:
    """The names of the groups: a group's only value, or, for that of the infrequent ones, INFREQUENT."""
    names = {}
    for value, group in zip(values, groups.tolist(), strict=True):
        names[group] = INFREQUENT if group == infrequent else feature_name("", as_value(value))[1:]
    return tuple(names[group] for group in range(len(names)))
