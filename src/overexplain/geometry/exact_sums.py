"""On which side of a plane a float64 point lies, without rounding: the same answer on every machine, alone or among many rows.

A sum of products in float64 depends in its last digits on the processor and on how many rows are multiplied at once. For points
that lie on a plane but for rounding, and explanations do, those digits are all that is left. Floats are whole numbers times powers
of two, so the sum itself can be had.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray

DIGITS = 53


def exact_sums(rows: FloatArray, x: FloatArray, constants: FloatArray) -> list[int]:
    """rows·x + constants without rounding, all times one positive number: whole numbers to be compared with each other and 0.

    >>> exact_sums(np.array([[0.1, 0.1, 0.1]]), np.ones(3), np.array([-0.3]))[0] > 0  # 0.1 is a little more than a tenth
    True
    """
    by_row, powers = _whole(np.column_stack([rows, constants]))
    by_column, more_powers = _whole(np.append(x, 1.0))
    powers = powers + more_powers
    counts = (by_row != 0) & (by_column != 0)
    if not counts.any():
        return [0] * len(rows)
    shifts = np.where(counts, powers - powers[counts].min(), 0).tolist()
    factors = by_column.tolist()
    return [
        sum(m * k << shift for m, k, shift in zip(row, factors, shift_row, strict=True))
        for row, shift_row in zip(by_row.tolist(), shifts, strict=True)
    ]


def doubt(size: float, x: FloatArray, constant: float) -> float:
    """How far a·x + constant in float64 may be off, for every row x and any a whose entries add up to `size`, signs aside."""
    largest = max(float(x.max()), -float(x.min())) if x.size else 0.0
    return float(_lost(size, largest, constant, x.shape[-1]))


def in_doubt(values: FloatArray, size: float, x: FloatArray, constant: float, times: float = 1.0) -> IntArray:
    """Where values may have another sign than they should, since they may be off by `times` the doubt about their row of x.

    What is not a number may. A bound for all rows is looked at first: a maximum per row takes longer than the product did.
    """
    suspects = np.flatnonzero(~(np.abs(values) > times * doubt(size, x, constant)))
    if x.ndim == 1 or len(suspects) == 0:
        return suspects
    lost = times * _lost(size, np.abs(x[suspects]).max(axis=1), constant, x.shape[1])
    return np.asarray(suspects[~(np.abs(values[suspects]) > lost)])


def _lost(size: float, largest: Any, constant: float, p: int) -> Any:
    with np.errstate(over="ignore"):
        return (p + 4) * 2.0**-DIGITS * (largest * size + abs(constant)) + p * 2.0**-1073


def _whole(values: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """(m, e) with values = m·2^e, m whole."""
    shares, powers = np.frexp(values)
    return np.ldexp(shares, DIGITS).astype(np.int64), powers.astype(np.int64) - DIGITS
