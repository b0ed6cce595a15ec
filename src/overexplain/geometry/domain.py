"""Which inputs a service takes: a box, one-hot groups, whole numbers."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, IntArray, as_generator, as_point, frozen

SPREAD = 3.0
"""How far from its limit, or from 0, `Domain.sample` draws a feature that has no limit on that side (standard deviation)."""

MOST_FEATURES = 1_000_000
"""More than any service has; a file that says more would only take memory."""


@dataclass(frozen=True, eq=False, init=False)
class Domain:
    """The points with low ≤ x ≤ high, one entry 1 and the others 0 in every group, whole numbers at `integers`.

    `low` and `high` are numbers, or one per feature; None: no limit.

    >>> domain = Domain(4, low=0.0, high=[9.5, 9.5, 1.0, 1.0], groups=[[2, 3]], integers=[1])
    >>> domain.contains([2.5, 3.0, 0.0, 1.0]), domain.contains([2.5, 3.0, 1.0, 1.0])
    (True, False)
    >>> domain.continuous.tolist()
    [0]
    """

    dimension: int
    low: FloatArray
    high: FloatArray
    groups: tuple[tuple[int, ...], ...]
    integers: tuple[int, ...]

    def __init__(
        self,
        dimension: int,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        groups: Sequence[Sequence[int]] = (),
        integers: Sequence[int] = (),
    ) -> None:
        p = as_count(dimension, "dimension")
        object.__setattr__(self, "dimension", p)
        object.__setattr__(self, "low", _limits(low, -np.inf, p, "low"))
        object.__setattr__(self, "high", _limits(high, np.inf, p, "high"))
        try:
            parts = tuple(feature_numbers(group, p, "a group") for group in groups)
        except TypeError:
            raise InvalidInput(f"groups must be lists of feature numbers, got {groups!r}") from None
        object.__setattr__(self, "groups", parts)
        object.__setattr__(self, "integers", feature_numbers(integers, p, "integers"))
        self._refuse_contradictions()

    def _refuse_contradictions(self) -> None:
        members = [i for group in self.groups for i in group]
        if any(len(group) < 2 for group in self.groups):
            raise InvalidInput("a one-hot group has at least two features: with one alone it would always be 1")
        twice = {i for i, times in Counter(members).items() if times > 1} | (set(members) & set(self.integers))
        if twice:
            raise InvalidInput(f"feature {min(twice)} stands in two groups, or in a group and in integers")
        crossed = np.flatnonzero(~(self.low <= self.high))
        if len(crossed):
            raise InvalidInput(
                f"feature {crossed[0]} has low {self.low[crossed[0]]} above high {self.high[crossed[0]]}"
            )
        for i in members:
            if self.low[i] > 0 or self.high[i] < 1:
                raise InvalidInput(f"feature {i} is in a one-hot group, but its limits exclude 0 or 1")
        for i in self.integers:
            if np.ceil(self.low[i]) > np.floor(self.high[i]):
                raise InvalidInput(f"feature {i} takes no whole number between {self.low[i]} and {self.high[i]}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return self.dimension, self.low.tobytes(), self.high.tobytes(), self.groups, self.integers

    @cached_property
    def continuous(self) -> IntArray:
        """The features that are neither in a group nor whole numbers."""
        discrete = {i for group in self.groups for i in group} | set(self.integers)
        return np.array([i for i in range(self.dimension) if i not in discrete], dtype=np.int64)

    def describe(self) -> str:
        """A short text for people: '3 whole numbers, 2 categories, in a box'; 'constrained' if there is nothing to name."""
        limited = np.isfinite(self.low) | np.isfinite(self.high)
        limited[[i for group in self.groups for i in group]] = False
        said = [_several(len(self.integers), "whole number", "whole numbers")] if self.integers else []
        said += [_several(len(self.groups), "category", "categories")] if self.groups else []
        said += ["in a box"] if limited.any() else []
        return ", ".join(said) or "constrained"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form, null for no limit; `from_dict` reads it back.

        >>> Domain(2, low=[0.0, -np.inf], integers=[1]).to_dict()
        {'dimension': 2, 'low': [0.0, None], 'high': None, 'groups': [], 'integers': [1]}
        """
        return {
            "dimension": self.dimension,
            "low": _written(self.low),
            "high": _written(self.high),
            "groups": [list(group) for group in self.groups],
            "integers": list(self.integers),
        }

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> Domain:
        """The domain that `to_dict` wrote; all but the dimension may be left out, a limit may be one number for all."""
        if not isinstance(entries, dict):
            raise InvalidInput(f"a domain is an object with the entry 'dimension', got {_brief(entries)}")
        unknown = sorted(map(str, set(entries) - {"dimension", "low", "high", "groups", "integers"}))
        if unknown or "dimension" not in entries:
            wrong = f"unknown {', '.join(unknown)}" if unknown else "'dimension' is missing"
            raise InvalidInput(f"a domain has dimension, low, high, groups, integers: {wrong}")
        p = entries["dimension"]
        if type(p) is not int or not 1 <= p <= MOST_FEATURES:
            raise InvalidInput(f"domain: dimension must be a whole number from 1 to {MOST_FEATURES:,}, got {_brief(p)}")
        groups = entries.get("groups", [])
        if not isinstance(groups, list):
            raise InvalidInput(f"domain: groups must be a list of lists of feature numbers, got {_brief(groups)}")
        return cls(
            p,
            _read_limits(entries.get("low"), -math.inf, p, "low"),
            _read_limits(entries.get("high"), math.inf, p, "high"),
            [_read_features(group, f"groups[{k}]") for k, group in enumerate(groups)],
            _read_features(entries.get("integers", []), "integers"),
        )

    def contains(self, x: ArrayLike) -> bool:
        """True if the service takes the point x."""
        return self._fault(as_point(x, self.dimension)) is None

    def refuse(self, x: ArrayLike) -> None:
        """Raise InvalidInput, saying which feature is wrong, if the service does not take x (a point, or rows)."""
        for k, row in enumerate(np.atleast_2d(np.asarray(x, dtype=np.float64))):
            fault = self._fault(as_point(row, self.dimension))
            if fault is not None:
                where = f"row {k}: " if np.ndim(x) == 2 else ""
                raise InvalidInput(f"{where}the service does not take this input: {fault}")

    def _fault(self, x: FloatArray) -> str | None:
        """What is wrong with x; None if nothing is."""
        outside = np.flatnonzero((x < self.low) | (x > self.high))
        if len(outside):
            i = outside[0]
            return f"feature {i} must lie between {self.low[i]} and {self.high[i]}, got {x[i]}"
        for group in self.groups:
            entries = x[list(group)]
            if not np.isin(entries, (0.0, 1.0)).all() or entries.sum() != 1:
                return f"exactly one of the features {list(group)} must be 1 and the others 0, got {entries.tolist()}"
        for i in self.integers:
            if x[i] != np.round(x[i]):
                return f"feature {i} must be a whole number, got {x[i]}"
        return None

    def sample(self, rng: int | np.random.Generator, n: int) -> FloatArray:
        """n random points of the domain: uniform between two limits, Gaussian (spread 3) where a limit is missing."""
        generator = as_generator(rng)
        rows = np.column_stack([self._draw(generator, i, n) for i in range(self.dimension)])
        for group in self.groups:
            rows[:, list(group)] = np.eye(len(group))[generator.integers(len(group), size=n)]
        return rows

    def _draw(self, rng: np.random.Generator, i: int, n: int) -> FloatArray:
        low, high, whole = self.low[i], self.high[i], i in self.integers
        if whole:
            low, high = np.ceil(low), np.floor(high)
        if np.isfinite(low) and np.isfinite(high):
            drawn = np.floor(rng.uniform(low, high + 1, n)) if whole else rng.uniform(low, high, n)
        else:
            drawn = rng.normal(0.0, SPREAD, n)
            if np.isfinite(low):
                drawn = low + np.abs(drawn)
            elif np.isfinite(high):
                drawn = high - np.abs(drawn)
            if whole:
                drawn = np.round(drawn)
        return np.asarray(np.clip(drawn, low, high))


def as_count(value: Any, name: str) -> int:
    """A whole number of features, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} must be a whole number of features, at least 1, got {value!r}")
    return int(value)


def feature_numbers(features: Iterable[int], dimension: int, name: str) -> tuple[int, ...]:
    """The features as sorted numbers from 0 to dimension − 1, each once; InvalidInput if they are not that."""
    try:
        numbers = sorted(operator.index(i) for i in features)
    except TypeError:
        raise InvalidInput(f"{name} must be a list of feature numbers, got {features!r}") from None
    if numbers and (numbers[0] < 0 or numbers[-1] >= dimension):
        raise InvalidInput(f"{name} must name features from 0 to {dimension - 1}, got {numbers}")
    if len(set(numbers)) < len(numbers):
        raise InvalidInput(f"{name} names a feature twice: {numbers}")
    return tuple(numbers)


def _limits(given: ArrayLike | None, default: float, p: int, name: str) -> FloatArray:
    """One limit per feature, infinite where there is none."""
    if given is None:
        return frozen(np.full(p, default))
    try:
        limits = np.broadcast_to(np.asarray(given, dtype=np.float64), (p,))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number or {p} numbers, got {given!r}") from None
    if np.isnan(limits).any() or (limits == -default).any():
        raise InvalidInput(f"{name} must be numbers (or {default} for no limit), got {given!r}")
    return frozen(limits + 0.0)  # −0.0 is 0.0: equal limits, equal domains


def _several(n: int, one: str, more: str) -> str:
    return f"{n} {one if n == 1 else more}"


def _written(limits: FloatArray) -> list[float | None] | None:
    """The limits, None where there is none; None alone if there are none at all."""
    finite = np.isfinite(limits)
    return [x if known else None for x, known in zip(limits.tolist(), finite, strict=True)] if finite.any() else None


def _read_limits(given: Any, none: float, p: int, name: str) -> Any:
    """A limit from JSON: a number or null for all features, or a list of p of them."""
    if not isinstance(given, list):
        return None if given is None else _read_limit(given, f"domain: {name}")
    if len(given) != p:
        raise InvalidInput(f"domain: {name} must be one number or null for each of the {p} features, got {len(given)}")
    return [none if limit is None else _read_limit(limit, f"domain: {name}[{i}]") for i, limit in enumerate(given)]


def _read_limit(given: Any, name: str) -> float:
    try:
        limit = float(given) if type(given) in (int, float) else math.nan
    except OverflowError:
        limit = math.nan
    if not math.isfinite(limit):
        raise InvalidInput(f"{name} must be a finite number, or null for no limit, got {_brief(given)}")
    return limit


def _read_features(given: Any, name: str) -> list[int]:
    if not isinstance(given, list) or not all(type(i) is int for i in given):
        raise InvalidInput(f"domain: {name} must be a list of feature numbers, got {_brief(given)}")
    return given


def _brief(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a number of many digits"
    return text if len(text) <= 60 else text[:57] + "..."
