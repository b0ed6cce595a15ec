"""Facial reduction: facts that must be equalities, and coordinates of what they leave, without rounding.

Rows that add up to 0 with weights > 0, a *relation*, are 0 for every model: they are equalities although no answer says
so. A strict fact among them is a contradiction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, final

import numpy as np
from flint import fmpz_mat

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.exact import combine
from overexplain.knowledge.prover.coding import NARROW, Coding
from overexplain.knowledge.prover.rationals import in_whole_numbers, null_basis

EXACT = 2.0**45
"""Sums of products of whole numbers below this stay below 2^53, as the proofs in float64 need them."""

BOUNDARY = 2
SHARES = (1e-9, 1e-6, 1e-4, 1e-2, 0.1)
"""How much of the centre is mixed into models that keep the facts but for a hair."""

Weights = dict[int, Fraction]
Model = tuple[list[Fraction], Fraction]


class Contradiction(Exception):
    """No model keeps the facts: Σ weight·fact = 0 with a strict one among them, or with facts that, together with the
    equalities `both`, only a = 0 keeps. Weights of equalities may have any sign.

    Without equalities, given or found, no proper part of the rows contradicts itself.
    """

    def __init__(self, weights: Weights, both: Sequence[int] = ()) -> None:
        super().__init__(f"{len(weights)} facts contradict each other")
        self.weights, self.both = weights, tuple(both)


@final
class LinearFacts:
    """Facts about (a, b): side·(a·x − b) for points (n, p) and sides (n,) ±1, then `forms`, each v·a + c·b; ≥ 0, all of
    them > 0 or = 0 where `strict` and `equal` (of both kinds) say so.

    swapped    True if models may be turned round: a Yes has to be strict, too
    constants  True if a = 0 is a model
    """

    def __init__(
        self,
        points: FloatArray,
        sides: IntArray,
        strict: BoolArray,
        equal: BoolArray | None = None,
        forms: Sequence[Sequence[Fraction]] = (),
        *,
        swapped: bool = False,
        constants: bool = False,
        coding: Coding | None = None,
    ) -> None:
        self.points, self.sides, self.strict, self.forms = points, sides, strict, forms
        self.equal: BoolArray = np.zeros(len(strict), dtype=bool) if equal is None else equal
        self.swapped, self.constants = swapped, constants
        assert len(strict) == len(self.equal) == len(points) + len(forms)
        self.coding = Coding(points) if coding is None else coding
        """Columns as whole numbers."""

    def with_equal(self, rows: Iterable[int]) -> LinearFacts:
        """The same with some more facts as equalities."""
        equal = self.equal.copy()
        equal[list(rows)] = True
        return self._with(slice(None), equal)

    def only(self, rows: IntArray) -> LinearFacts:
        """Some of the facts, in order."""
        return self._with(rows, self.equal[rows])

    def _with(self, rows: IntArray | slice, equal: BoolArray) -> LinearFacts:
        every = np.arange(len(self.strict))[rows]
        at, formed = every[every < len(self.points)], every[every >= len(self.points)] - len(self.points)
        forms = [self.forms[i] for i in formed]
        coding = self.coding if isinstance(rows, slice) else None
        return LinearFacts(
            self.points[at], self.sides[at], self.strict[every], equal, forms,
            swapped=self.swapped, constants=self.constants, coding=coding,
        )  # fmt: skip

    @cached_property
    def coded_forms(self) -> list[list[Fraction]]:
        """The forms in the units of the coding."""
        return [self.coding.form(form) for form in self.forms]

    @cached_property
    def rows(self) -> FloatArray:
        """All facts in the units of the coding; forms are rounded if their entries are long."""
        coded = self.sides.astype(np.float64)[:, None] * np.hstack([self.coding.rows, -np.ones((len(self.points), 1))])
        if not self.forms:
            return np.asarray(coded)
        return np.vstack([coded, [[_as_float(v) for v in form] for form in self.coded_forms]])

    @cached_property
    def is_whole(self) -> bool:
        """True if all facts are in short whole numbers."""
        return self.coding.is_whole and all(
            v.denominator == 1 and abs(v) < NARROW for form in self.coded_forms for v in form
        )


@final
class Reduction:
    """rows         (n, D) of linear facts, exact
    exact_basis  vectors whose combinations are the models that keep all equalities; None: all models do
    is_whole     True if rows and basis are whole numbers that float64 multiplies without rounding
    """

    def __init__(self, facts: LinearFacts) -> None:
        self.rows, self.facts, self.is_whole = facts.rows, facts, facts.is_whole
        self.relations: list[Weights] = []
        self.exact_basis: list[list[int]] | None = None
        self._basis: FloatArray | None = None

    @property
    def is_flat(self) -> bool:
        """True if the equalities leave no model, or none but constants."""
        return not self.size or (
            self.exact_basis is not None
            and not self.facts.constants
            and not any(any(vector[:-1]) for vector in self.exact_basis)
        )

    @property
    def given(self) -> list[int]:
        """Given equalities that span them all."""
        return [i for i in self._independent_equalities if self.facts.equal[i]]

    @property
    def size(self) -> int:
        """How many coordinates the equalities leave."""
        return self.rows.shape[1] if self.exact_basis is None else len(self.exact_basis)

    def inner(self, rows: FloatArray) -> FloatArray:
        """Rows or queries in the coordinates of what the equalities leave."""
        return rows if self._basis is None else np.asarray(rows @ self._basis)

    def outer(self, models: FloatArray) -> FloatArray:
        """Models of what the equalities leave, rows, in the coordinates of the rows; rounded."""
        return models if self._basis is None else np.asarray(models @ self._basis.T)

    def sizes(self, rows: FloatArray) -> FloatArray:
        """The same in absolute values: what rounding is relative to."""
        return np.abs(rows) if self._basis is None else np.asarray(np.abs(rows) @ np.abs(self._basis))

    def lifted(self, z: Sequence[Fraction]) -> list[Fraction]:
        """Coordinates of what the equalities leave as a model of the rows."""
        if self.exact_basis is None:
            return list(z)
        return [dot(z, [vector[j] for vector in self.exact_basis]) for j in range(self.rows.shape[1])]

    def equal_rows(self) -> IntArray:
        found = {i for relation in self.relations for i in relation}
        return np.array(sorted({*np.flatnonzero(self.facts.equal).tolist(), *found}), dtype=np.int64)

    def reduce(self, equal: IntArray) -> None:
        """Coordinates of what the equalities leave."""
        whole, units = in_whole_numbers(self.exact_rows(equal))
        short = null_basis(whole)
        self.exact_basis = [[v * unit for v, unit in zip(vector, units, strict=True)] for vector in short]
        self.__dict__.pop("_whole_basis", None)
        self._basis = (
            np.array([[_as_float(v) for v in vector] for vector in self.exact_basis], dtype=np.float64)
            .reshape(-1, self.rows.shape[1])
            .T
        )
        size = np.abs(self._basis).sum(axis=0).max(initial=0.0)
        self.is_whole = self.facts.is_whole and bool(np.abs(self.rows).max() * size < EXACT)

    @cached_property
    def _whole_basis(self) -> Any:
        basis = self.exact_basis or []
        size = self.rows.shape[1]
        return fmpz_mat(size, len(basis), [vector[j] for j in range(size) for vector in basis])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_whole_basis"}  # it cannot be pickled

    def without_zeros(self, live: IntArray) -> IntArray:
        """The rows that are not 0 where the equalities hold; a strict one that is contradicts them."""
        if self.is_whole:
            zero = ~self.inner(self.rows[live]).any(axis=1)
        else:
            zero = np.array([not any(self.reduced(row)) for row in self.exact_rows(live)], dtype=bool)
        for i in live[zero]:
            if self.facts.strict[i]:
                row = self.exact_rows([i])[0]
                raise Contradiction({int(i): Fraction(1), **self.over_equalities({}, [-v for v in row])})
        return live[~zero]

    def exact_relation(self, rows: IntArray) -> Weights | None:
        """The weights > 0 of the only relation among some rows, if there is just one and it is positive."""
        if not len(rows):
            return None
        whole, _ = in_whole_numbers([self.reduced(row) for row in self.exact_rows(rows)])
        null, count = fmpz_mat([list(column) for column in zip(*whole, strict=True)]).nullspace()
        values = [int(null[i, 0]) for i in range(len(rows))] if count == 1 else [0]
        if not (min(values) > 0 or max(values) < 0):
            return None
        return {int(i): Fraction(abs(v)) for i, v in zip(rows, values, strict=True)}

    def exact_rows(self, which: Sequence[int] | IntArray) -> list[list[Fraction]]:
        count, forms = len(self.facts.points), self.facts.coded_forms if self.facts.forms else []
        return [
            [Fraction(v) for v in row] if i < count else forms[i - count]
            for i, row in zip(np.asarray(which).tolist(), self.rows[which].tolist(), strict=True)
        ]

    def all_relations(self) -> Weights:
        """The weights of all relations together: the facts in them, and the given equalities, are 0 for every model."""
        total: Weights = {}
        for relation in self.relations:
            for i, w in self.over_equalities(relation, [Fraction(0)] * self.rows.shape[1]).items():
                total[i] = total.get(i, Fraction(0)) + w
        return {i: w for i, w in total.items() if w}

    def reduced(self, row: Sequence[Fraction]) -> list[Fraction]:
        """A row or query in the coordinates of what the equalities leave."""
        if self.exact_basis is None:
            return list(row)
        below = lcm(*(v.denominator for v in row))
        product = fmpz_mat([[v.numerator * (below // v.denominator) for v in row]]) * self._whole_basis
        return [Fraction(int(product[0, k]), below) for k in range(len(self.exact_basis))]

    def over_equalities(self, weights: Weights, target: Sequence[Fraction]) -> Weights:
        """The weights completed by those of equalities, so that all of them add up to the target.

        What is found to be an equality gets no negative weight: the other rows of its relation take it over.
        """
        if self.exact_basis is None:
            return weights
        rest = list(target)
        for i, w in weights.items():
            rest = [a - w * b for a, b in zip(rest, self.exact_rows([i])[0], strict=True)]
        chosen = self._independent_equalities
        shares = combine([self.exact_rows([i])[0] for i in chosen], rest)
        assert shares is not None  # the rest is 0 wherever the equalities hold
        total = dict(weights)
        for i, share in zip(chosen, shares, strict=True):
            for k, w in self._as_facts(i, share).items():
                total[k] = total.get(k, Fraction(0)) + w
        return {i: w for i, w in total.items() if w}

    def _as_facts(self, i: int, share: Fraction) -> Weights:
        if share >= 0 or self.facts.equal[i]:
            return {i: share}
        relation = next(relation for relation in self.relations if i in relation)
        others = {k: -share * w / relation[i] for k, w in relation.items() if k != i}
        # The relation holds where earlier equalities do: what it lacks is theirs.
        lack = [Fraction(0)] * self.rows.shape[1]
        for k, w in {**others, i: -share}.items():
            lack = [a - w * b for a, b in zip(lack, self.exact_rows([k])[0], strict=True)]
        if any(lack):
            earlier = self._independent_equalities[: self._independent_equalities.index(i)]
            shares = combine([self.exact_rows([k])[0] for k in earlier], lack)
            assert shares is not None
            for k, w in zip(earlier, shares, strict=True):
                for fact, more in self._as_facts(k, w).items():
                    others[fact] = others.get(fact, Fraction(0)) + more
        return others

    @cached_property
    def _independent_equalities(self) -> list[int]:
        """Equalities that span all of them: given ones first, then found ones in the order in which they were found."""
        order = [*np.flatnonzero(self.facts.equal).tolist(), *(i for relation in self.relations for i in relation)]
        chosen: list[int] = []
        rank = 0
        whole, _ = in_whole_numbers(self.exact_rows(order))
        for k in range(len(order)):
            if fmpz_mat([whole[order.index(i)] for i in [*chosen, order[k]]]).rank() > rank:
                chosen.append(order[k])
                rank += 1
            if rank == self.rows.shape[1] - self.size:
                break
        return chosen


def target_of(entries: Sequence[Fraction], sign: int) -> list[Fraction]:
    """sign·(x, −1)."""
    return [*(sign * v for v in entries), Fraction(-sign)]


def dot(u: Sequence[Fraction], v: Sequence[Fraction | int]) -> Fraction:
    """Σ u_i·v_i."""
    return sum((a * b for a, b in zip(u, v, strict=True) if a and b), Fraction(0))


def _as_float(value: int | Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")
