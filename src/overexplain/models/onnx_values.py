"""What flows through a linear ONNX graph: affine functions of the input columns, their probabilities, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import UnsupportedModel
from overexplain.geometry.arrays import FloatArray

MOST_ENTRIES: Final = 2**22
"""Coefficients of an intermediate result; a few nodes could otherwise double it again and again."""


@dataclass(frozen=True)
class Affine:
    """A table z = x·matrixᵀ + constant with a row for each case; matrix is a sparse array, a row for each column of z.

    flat        z has one column and is a plain list, not a table
    regression  z is what a regression predicts, which nobody said is a decision
    """

    matrix: Any
    constant: FloatArray
    flat: bool = False
    regression: bool = False

    @property
    def width(self) -> int:
        """The number of columns of z."""
        return len(self.constant)


@dataclass(frozen=True)
class Curve:
    """The sigmoid 1/(1 + exp(-score)) of every entry of an affine table: probabilities."""

    score: Affine

    @property
    def width(self) -> int:
        """The number of probabilities in a row."""
        return self.score.width

    @property
    def adds_to_one(self) -> bool:
        """Whether these are the two probabilities of one decision: σ(−z) and σ(z)."""
        return self.width == 2 and opposite(self.score)


@dataclass(frozen=True)
class Shares:
    """Probabilities of three or more classes that add up to one; in every row they are ordered as the scores z are.

    softmax  True: exp(z) / Σ exp(z). False: σ(z) / Σ σ(z)
    """

    score: Affine
    softmax: bool


@dataclass(frozen=True)
class Exponential:
    """plus + exp(score) of every entry of an affine table: on the way to a sigmoid."""

    score: Affine
    plus: float = 0.0


@dataclass(frozen=True)
class Total:
    """The sum of every row of a table."""

    table: Affine | Curve


@dataclass(frozen=True)
class Decision:
    """One of two values: the second where margin > 0 (what is on the plane itself depends on who computes).

    threshold  the margin is a logit minus that of this probability; None: a score
    """

    margin: Affine
    classes: tuple[Any, Any] = (0, 1)
    threshold: float | None = None


@dataclass(frozen=True)
class Choice:
    """One of three or more values, a column of the table each: that of the largest entry, of the first where they tie."""

    table: Affine | Curve | Shares
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class Named:
    """Scores or probabilities of named classes."""

    scores: Affine | Curve | Shares
    classes: tuple[Any, ...]


@dataclass(frozen=True)
class Opaque:
    """A result that cannot be followed; it may be there as long as no decision depends on it."""


Value = Affine | Curve | Shares | Exponential | Total | Decision | Choice | Named | Opaque | NDArray[Any]


def column(total: int, first: int, count: int) -> Affine:
    """The input columns first … first + count − 1 of `total`."""
    from scipy.sparse import csr_array

    rows = np.arange(count)
    matrix = csr_array((np.ones(count), (rows, first + rows)), shape=(count, total))
    return Affine(matrix, np.zeros(count))


def shifted(affine: Affine, value: NDArray[Any]) -> Affine:
    """The table plus a constant."""
    affine, vector = _aligned(affine, value)
    return replace(affine, constant=affine.constant + vector)


def scaled(affine: Affine, value: NDArray[Any]) -> Affine:
    """The table times a constant, entry by entry."""
    from scipy.sparse import diags_array

    affine, vector = _aligned(affine, value)
    return replace(affine, matrix=(diags_array(vector) @ affine.matrix).tocsr(), constant=affine.constant * vector)


def multiplied(affine: Affine, weights: NDArray[Any]) -> Affine:
    """The table times a matrix with a row for each of its columns."""
    if affine.flat or weights.ndim != 2 or weights.shape[0] != affine.width:
        raise UnsupportedModel(f"a matrix of shape {weights.shape} does not fit a table of {affine.width} columns")
    weights = np.asarray(weights, dtype=np.float64).T
    _bounded(weights.shape[0] * affine.matrix.shape[1])
    from scipy.sparse import csr_array

    return Affine(csr_array(csr_array(weights) @ affine.matrix), weights @ affine.constant)


def added(one: Affine, other: Affine) -> Affine:
    """The sum of two tables of the same form."""
    if (one.width, one.flat) != (other.width, other.flat):
        raise UnsupportedModel(f"tables of {one.width} and {other.width} columns cannot be added")
    return replace(one, matrix=(one.matrix + other.matrix).tocsr(), constant=one.constant + other.constant)


def stacked(tables: Sequence[Affine]) -> Affine:
    """The columns of all tables beside one another."""
    from scipy.sparse import csr_array, vstack

    if any(table.flat for table in tables):
        raise UnsupportedModel("lists are put one after the other, which mixes the cases")
    _bounded(sum(table.matrix.nnz + table.width for table in tables))
    matrix = csr_array(vstack([table.matrix for table in tables], format="csr"))
    constant = np.concatenate([table.constant for table in tables])
    return Affine(matrix, constant, regression=any(table.regression for table in tables))


def picked(affine: Affine, indices: NDArray[Any]) -> Affine:
    """Some columns of the table, in the given order."""
    width = affine.width
    indices = np.atleast_1d(indices).ravel()
    if (
        affine.flat
        or indices.dtype.kind not in "iu"
        or not len(indices)
        or indices.max() >= width
        or indices.min() < -width
    ):
        raise UnsupportedModel(f"column numbers {indices[:8].tolist()} do not fit a table of {width} columns")
    _bounded(len(indices) * max(1, affine.matrix.nnz // max(1, width)))
    indices = np.asarray(indices, dtype=np.int64) % width
    return replace(affine, matrix=affine.matrix[indices], constant=affine.constant[indices])


def negated(affine: Affine) -> Affine:
    """The table with the opposite sign."""
    return replace(affine, matrix=-affine.matrix, constant=-affine.constant)


def opposite(pair: Affine) -> bool:
    """Whether the two columns are the same with opposite signs."""
    total = pair.matrix[[0]] + pair.matrix[[1]]
    return pair.width == 2 and not np.any(total.toarray()) and pair.constant[0] == -pair.constant[1]


def contrast(pair: Affine) -> Affine:
    """The score of the second of two classes against the first: z₁ where z₀ = −z₁, otherwise z₁ − z₀."""
    second, first = picked(pair, np.array([1])), picked(pair, np.array([0]))
    return second if opposite(pair) else added(second, negated(first))


def equal(one: Affine, other: Affine) -> bool:
    """Whether two tables are the same."""
    same = one.width == other.width and bool(np.array_equal(one.constant, other.constant))
    return same and not np.any((one.matrix - other.matrix).data)


def scores_of(table: Affine | Curve | Shares) -> Affine:
    """The scores behind a table, which are ordered as its own entries are."""
    return table if isinstance(table, Affine) else table.score


def _aligned(affine: Affine, value: NDArray[Any]) -> tuple[Affine, FloatArray]:
    """(table, vector) after both were repeated as ONNX repeats them, if that keeps one row for each case."""
    value = np.asarray(value, dtype=np.float64)
    if value.size == 1 and value.ndim <= (1 if affine.flat else 2):
        return affine, np.full(affine.width, float(value.ravel()[0]))
    if not affine.flat and (value.ndim == 1 or (value.ndim == 2 and value.shape[0] == 1)) and value.size:
        vector = value.ravel()
        if affine.width == 1:
            affine = picked(affine, np.zeros(len(vector), dtype=np.int64))
        if len(vector) == affine.width:
            return affine, vector
    raise UnsupportedModel(f"a constant of shape {value.shape} does not fit a table of {affine.width} columns")


def _bounded(entries: int) -> None:
    if entries > MOST_ENTRIES:
        raise UnsupportedModel(f"an intermediate result has {entries} entries; at most {MOST_ENTRIES} are kept")


def as_affine(value: Value) -> Affine:
    """The value, if it is a table of numbers."""
    if isinstance(value, Affine):
        return value
    if isinstance(value, Opaque):
        raise UnsupportedModel("it goes on with a result that cannot be followed, such as scores divided by their sum")
    raise UnsupportedModel(f"a table of numbers is needed, what comes in is a {type(value).__name__}")


def as_constant(value: Value) -> NDArray[Any]:
    """The value, if it does not depend on the inputs."""
    if isinstance(value, np.ndarray):
        return value
    raise UnsupportedModel("a constant is needed where something comes that depends on the inputs")
