"""Is a vector in the cone of some rows? A second opinion in rational numbers: a small simplex method with Bland's rule, and
nothing of `knowledge`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

ZERO, ONE = Fraction(0), Fraction(1)
Row = Sequence[Fraction | int]


def weights_of(rows: Sequence[Row], target: Row) -> list[Fraction] | None:
    """w ≥ 0 with Σ w_i·rows_i = target; None if there are none. The first phase of the simplex method."""
    size, n = len(target), len(rows)
    table = []
    for j in range(size):
        sign = -1 if target[j] < 0 else 1
        slack = [ONE if k == j else ZERO for k in range(size)]
        table.append([*(sign * Fraction(row[j]) for row in rows), *slack, sign * Fraction(target[j])])
    basis = [n + j for j in range(size)]
    price = [-sum((line[k] for line in table), ZERO) if k < n else ZERO for k in range(n + size)]
    price.append(-sum((line[-1] for line in table), ZERO))
    while True:
        enter = next((k for k in range(n) if price[k] < 0), None)
        if enter is None:
            break
        ratios = [(line[-1] / line[enter], basis[j], j) for j, line in enumerate(table) if line[enter] > 0]
        if not ratios:
            break
        _pivot(table, price, min(ratios)[2], enter)
        basis[min(ratios)[2]] = enter
    if price[-1] != 0:
        return None
    found = [ZERO] * n
    for j, k in enumerate(basis):
        if k < n:
            found[k] = table[j][-1]
    return found


def _pivot(table: list[list[Fraction]], price: list[Fraction], row: int, column: int) -> None:
    pivot = table[row][column]
    table[row] = [v / pivot for v in table[row]]
    for line in [*(other for k, other in enumerate(table) if k != row), price]:
        factor = line[column]
        if factor:
            line[:] = [a - factor * b for a, b in zip(line, table[row], strict=True)]


def is_held(rows: Sequence[Row], target: Row) -> bool:
    """Is the target in the cone of the rows?"""
    return weights_of(rows, target) is not None


def contradict(rows: Sequence[Row], strict: Sequence[bool]) -> bool:
    """No z has row·z ≥ 0 for all, > 0 for strict ones: minus a strict row is in the cone."""
    return any(is_held(rows, [-v for v in row]) for row, is_strict in zip(rows, strict, strict=True) if is_strict)


def rank(rows: Sequence[Row]) -> int:
    """By elimination."""
    left, found = [[Fraction(v) for v in row] for row in rows], 0
    for k in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in left if row[k]), None)
        if pivot is None:
            continue
        left = [
            [a - row[k] / pivot[k] * b for a, b in zip(row, pivot, strict=True)] for row in left if row is not pivot
        ]
        found += 1
    return found


def verdict(rows: Sequence[Row], strict: Sequence[bool], query: Row) -> int:
    """1: every model z ≠ 0 of the facts has query·z ≥ 0; −1: < 0; 2: = 0; 0: either happens. The facts have a model.

    Facts are row·z ≥ 0, > 0 where strict.
    """
    against = [-v for v in query]
    yes = contradict([*rows, against], [*strict, True])  # some z with query·z < 0?
    # A z ≠ 0 with query·z ≥ 0? Without strict facts 0 keeps all, and is no model.
    no = contradict([*rows, query], [*strict, False]) or (not any(strict) and _leaves_nothing([*rows, query]))
    if yes and no:
        raise ValueError("the facts have no model")
    if yes:
        return 2 if is_held(rows, query) and is_held(rows, against) else 1
    return -1 if no else 0


def _leaves_nothing(rows: Sequence[Row]) -> bool:
    """Only z = 0 keeps all: the cone of the rows is everything."""
    size = len(rows[0])
    axes = [[Fraction(sign * int(k == j)) for k in range(size)] for j in range(size) for sign in (1, -1)]
    return all(is_held(rows, axis) for axis in axes)
