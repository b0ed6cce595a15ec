"""The one place where numbers from outside become float64 points, or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def _as_floats(values: ArrayLike, name: str) -> FloatArray:
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} must be numbers, got {_short(values)}: {error}") from None


def _short(values: Any) -> str:
    text = repr(values).replace("\n", " ")
    return text if len(text) <= 60 else text[:57] + "..."


def as_point(x: ArrayLike, dimension: int | None = None, name: str = "x") -> FloatArray:
    """One finite point as a float64 vector of `dimension` entries; raises DimensionMismatch or NotFinite."""
    point = _as_floats(x, name)
    if point.ndim != 1 or (dimension is not None and len(point) != dimension) or len(point) == 0:
        wanted = "a point with at least one entry" if dimension is None else f"a point with {dimension} entries"
        raise DimensionMismatch(f"{name} must be {wanted}, got shape {point.shape}")
    _refuse_non_finite(point, name)
    return point


def as_rows(x: ArrayLike, dimension: int | None = None, name: str = "X") -> FloatArray:
    """Finite points as the rows of a float64 matrix; raises DimensionMismatch or NotFinite."""
    rows = _as_floats(x, name)
    if rows.ndim != 2 or (dimension is not None and rows.shape[1] != dimension) or rows.shape[1] == 0:
        columns = "columns" if dimension is None else f"{dimension} columns"
        raise DimensionMismatch(f"{name} must be a matrix with {columns} (points are rows), got shape {rows.shape}")
    _refuse_non_finite(rows, name)
    return rows


def as_point_or_rows(x: ArrayLike, dimension: int | None = None, name: str = "x") -> FloatArray:
    """A point or a matrix of rows, whichever `x` is."""
    values = _as_floats(x, name)
    return as_rows(values, dimension, name) if values.ndim == 2 else as_point(values, dimension, name)


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """The random generator that `rng` is, or seeds."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"rng must be a whole number ≥ 0 or a numpy Generator, got {rng!r}: {error}") from None


def as_whole(value: Any, name: str) -> int:
    """A whole number, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} must be a whole number, at least 1, got {value!r}")
    return int(value)


def as_budget(budget: Any) -> int:
    """A whole number of requests ≥ 0."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 0:
        raise InvalidInput(f"budget must be a whole number of requests, not negative, got {budget!r}")
    return int(budget)


def _refuse_non_finite(values: FloatArray, name: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        place = f"entry {where[0]}" if len(where) == 1 else f"row {where[0]}, column {where[1]}"
        raise NotFinite(f"{name} has {values[tuple(where)]} at {place}; only finite numbers can be used")


def frozen(values: FloatArray) -> FloatArray:
    """A read-only copy: values inside frozen dataclasses must not change behind their back."""
    copy = np.array(values, dtype=np.float64) + 0.0  # −0.0 becomes 0.0: equal values must hash alike
    copy.setflags(write=False)
    return copy
