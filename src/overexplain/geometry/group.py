"""Norms over groups of features: a sum of Euclidean lengths, and its dual, the largest of them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import EXACT_TIE, TIE, Face, Norm, NormalCone

Groups = tuple[tuple[int, ...], ...]


def _partition(groups: Sequence[Sequence[int]]) -> Groups:
    """The groups as tuples, if every feature 0 … p−1 stands in exactly one of them."""
    try:
        parts = tuple(tuple(operator.index(i) for i in group) for group in groups)
    except TypeError:
        raise InvalidInput(f"groups must be lists of feature numbers, got {groups!r}") from None
    members = sorted(i for group in parts for i in group)
    if not members or members != list(range(len(members))) or not all(parts):
        raise InvalidInput(
            f"groups must split the features 0 … p-1, each in exactly one non-empty group, got {list(map(list, parts))}"
        )
    return parts


@dataclass(frozen=True)
class _Split:
    """Which group each feature belongs to; lengths of the groups' parts of a vector, at any scale."""

    groups: Groups

    @cached_property
    def of_feature(self) -> IntArray:
        index = np.empty(sum(map(len, self.groups)), dtype=np.int64)
        for g, members in enumerate(self.groups):
            index[list(members)] = g
        return index

    @cached_property
    def order(self) -> IntArray:
        """The features, group by group."""
        return np.concatenate([np.array(group, dtype=np.int64) for group in self.groups])

    @cached_property
    def starts(self) -> IntArray:
        """Where each group begins in `order`."""
        return np.cumsum([0, *(len(group) for group in self.groups[:-1])])

    def lengths(self, x: ArrayLike) -> FloatArray:
        """‖x_g‖₂ for every group, for a point or for rows."""
        size = np.abs(np.asarray(x, dtype=np.float64))
        largest = size.max(axis=-1, keepdims=True)
        scale = np.where(largest > 0, largest, 1.0)
        squares = (size / scale) ** 2
        sums = np.add.reduceat(squares[..., self.order], self.starts, axis=-1)
        return np.asarray(np.sqrt(sums) * scale)

    def part(self, x: FloatArray, g: int) -> FloatArray:
        """x on group g, zero elsewhere."""
        return np.where(self.of_feature == g, x, 0.0)


@final
@dataclass(frozen=True, init=False)
class GroupNorm(Norm):
    """‖x‖ = Σ_g ‖x_g‖₂: changing one group of features at a time is cheapest. Neither smooth nor polyhedral.

    >>> GroupNorm([[0, 1], [2]])([3.0, 4.0, 1.0])
    6.0
    """

    groups: Groups

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        object.__setattr__(self, "groups", _partition(groups))

    @cached_property
    def _split(self) -> _Split:
        return _Split(self.groups)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return len(self._split.of_feature)

    def __call__(self, x: ArrayLike) -> Any:
        total = self._split.lengths(x).sum(axis=-1)
        return float(total) if np.ndim(total) == 0 else total

    @cached_property
    def dual(self) -> GroupMax:
        return GroupMax(self.groups)

    def _corner(self, a: FloatArray, g: int) -> FloatArray:
        part = self._split.part(a, g)
        return np.asarray(part / self._split.lengths(part)[g])

    def face(self, a: FloatArray) -> Face:
        lengths = self._split.lengths(a)
        tied = np.flatnonzero(lengths >= lengths.max() * (1 - EXACT_TIE))
        return Face.of_simplex(np.array([self._corner(a, int(g)) for g in tied]))

    def maximizer(self, a: FloatArray) -> FloatArray:
        return self._corner(a, int(self._split.lengths(a).argmax()))

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        lengths = self._split.lengths(w)
        moved = lengths > TIE * lengths.sum() + (0.0 if error is None else self._split.lengths(error))
        own = np.where(moved, lengths, 1.0)[self._split.of_feature]
        errors = np.zeros(len(w))
        if error is not None:
            spread = self._split.lengths(error)[self._split.of_feature]
            errors = np.where(moved[self._split.of_feature], (error + np.abs(w) / own * spread) / own, 0.0)
            moved = moved & (np.maximum.reduceat(errors[self._split.order], self._split.starts) <= accuracy)
        return NormalCone.axis_parallel(moved[self._split.of_feature], w / own, errors)

    def units(self, p: int) -> FloatArray:
        return np.ones(p)

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "group", "groups": [list(g) for g in self.groups]}


@final
@dataclass(frozen=True, init=False)
class GroupMax(Norm):
    """‖x‖ = max_g ‖x_g‖₂, the dual of GroupNorm."""

    groups: Groups

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        object.__setattr__(self, "groups", _partition(groups))

    @cached_property
    def _split(self) -> _Split:
        return _Split(self.groups)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return len(self._split.of_feature)

    def __call__(self, x: ArrayLike) -> Any:
        largest = self._split.lengths(x).max(axis=-1)
        return float(largest) if np.ndim(largest) == 0 else largest

    @cached_property
    def dual(self) -> GroupNorm:
        return GroupNorm(self.groups)

    def face(self, a: FloatArray) -> Face:
        own = self._split.lengths(a)[self._split.of_feature]
        fixed = own > 0
        values = a / np.where(fixed, own, 1.0)

        def sample(rng: np.random.Generator) -> FloatArray:
            free = np.where(fixed, 0.0, rng.normal(size=len(a)))
            lengths = self._split.lengths(free)[self._split.of_feature]
            reach = rng.uniform(0, 1, len(self.groups))[self._split.of_feature]
            return np.where(fixed, values, free / np.where(lengths > 0, lengths, 1.0) * reach)

        return Face(fixed, values, sample)

    def maximizer(self, a: FloatArray) -> FloatArray:
        return self.face(a).values

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        lengths = self._split.lengths(w)
        unsure = 0.0 if error is None else 2 * float(self(error))
        longest = np.flatnonzero(lengths >= (1 - TIE) * lengths.max() - unsure)
        rows: list[FloatArray] = []
        for g in longest:  # a part that may be nothing but error has no direction: its whole group is open
            lost = lengths[g] <= unsure
            rows.extend(np.eye(len(w))[list(self.groups[g])] if lost else [self._split.part(w, int(g))])
        errors = np.zeros(len(w))
        if error is not None:
            own = np.where(lengths > 0, lengths, 1.0)[self._split.of_feature]
            spread = self._split.lengths(error)[self._split.of_feature]
            errors = np.where(np.isin(self._split.of_feature, longest), (error + np.abs(w) / own * spread) / own, 0.0)
        return NormalCone.spanned(np.array(rows), w, errors)

    def units(self, p: int) -> FloatArray:
        return np.ones(p)

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "group-max", "groups": [list(g) for g in self.groups]}
