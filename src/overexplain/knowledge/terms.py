"""From a program's float64 weights to terms that add up exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.knowledge.checker import Answer, Term, fact_of
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.exact import ONE, ZERO, combine
from overexplain.knowledge.facts import Steepest
from overexplain.knowledge.program import Key, Program, Solution
from overexplain.knowledge.rational_norms import gradient_of, is_rational, orthogonal

ROUNDED = 1 + Fraction(1, 2**64)


@final
@dataclass(frozen=True, eq=False)
class TermMaker:
    """Makes terms out of the columns of a program; `answers` are its rows in exact numbers, sides filled in."""

    program: Program
    answers: Mapping[int, Answer]
    evidence: Evidence

    def terms(
        self, weights: Mapping[int, Fraction], rest: Mapping[int, Sequence[Fraction]] | None = None
    ) -> list[Term]:
        """Columns with their weights as the checker's terms; the Hölder columns of a distance, and `rest`, become one vector."""
        terms: list[Term] = []
        vectors = {number: list(vector) for number, vector in (rest or {}).items()}
        for column, weight in weights.items():
            key = self.program.key(column)
            if weight == 0:
                continue
            if key.fact == "hoelder":
                assert key.number is not None
                vector = vectors.setdefault(key.number, [ZERO] * self.program.facts.dimension)
                for i, v in enumerate(self.program.vector(column)[:-1].tolist()):
                    vector[i] += weight * Fraction(v)
            else:
                terms.append(self._term(key, weight))
        terms.sort(key=lambda term: -term.weight)  # what matters most is read first
        return [*terms, *(self._rest(number, vector) for number, vector in vectors.items() if any(vector))]

    def column(self, k: int) -> tuple[list[Fraction], bool]:
        """(left side, then right side per distance; strict?) of a column, exactly."""
        key = self.program.key(k)
        right = [ZERO] * len(self.program.norms)
        if key.fact == "hoelder":
            assert key.number is not None
            vector = [Fraction(v) for v in self.program.vector(k)[:-1].tolist()]
            fact = fact_of(self.answers, self._rest(key.number, vector), self.evidence)
            # Columns are added up to one vector: if its length is irrational it is rounded again.
            right[key.number] = fact.right * (ONE if is_rational(self.program.norms[key.number]) else ROUNDED)
            return [*fact.left, *right], False
        fact = fact_of(self.answers, self._term(key, ONE), self.evidence)
        if key.number is not None:
            right[key.number] = fact.right
        return [*fact.left, *right], fact.is_strict

    def repaired(self, solution: Solution, point: Sequence[Fraction], sign: int) -> list[Term] | None:
        """Terms for sign·(point, −1): what rounding left is absorbed by a plane (the offset) and a Hölder term (the rest).

        A program without lengths has nothing to pay with: its basis is solved exactly instead.
        """
        target = [sign * v for v in (*point, Fraction(-1))]
        if not self.program.norms:
            return self._basic(solution, target)
        weights = {int(k): Fraction(float(solution.weights[k])) for k in np.flatnonzero(solution.weights)}
        payer = self._payer(solution)
        if payer is None:
            return None
        column, number = payer
        missing = self._missing(self.terms(weights), target)
        # The last entry of the payer's column is ±1: its weight changes by what the offset lacks.
        entry = self.column(column)[0][self.program.facts.dimension]
        changed = weights.get(column, ZERO) + missing[-1] / entry
        if changed < 0:
            twin = self._twin(column)
            if twin is None:
                return None
            weights[column], weights[twin] = ZERO, weights.get(twin, ZERO) - changed
        else:
            weights[column] = changed
        missing = self._missing(self.terms(weights), target)
        return self.terms(weights, {number: missing[:-1]})

    def _basic(self, solution: Solution, target: Sequence[Fraction]) -> list[Term] | None:
        support = [int(k) for k in np.flatnonzero(solution.weights > 1e-10 * solution.weights.max(initial=0.0))]
        weights = combine([self.column(k)[0] for k in support], target)
        if weights is None or min(weights, default=ONE) < 0:
            return None
        return self.terms(dict(zip(support, weights, strict=True)))

    def _term(self, key: Key, weight: Fraction) -> Term:
        if key.fact != "ray":
            return Term(key.fact, weight, key.row, sign=key.sign)
        step = next(f for f in self.program.facts.explained if isinstance(f, Steepest) and f.row == key.row)
        level = next(v for i, v in orthogonal(gradient_of(step.norm, step.exact_step)) if i == key.index)
        return Term("ray", weight, key.row, vector=tuple(key.sign * v for v in level))

    def _rest(self, number: int, vector: Sequence[Fraction]) -> Term:
        """A Hölder term under a distance, which it takes from a row that has it."""
        norm = self.program.norms[number]
        row = next(fact.row for fact in self.program.facts.explained if fact.norm == norm)
        return Term("hoelder", ONE, row, vector=tuple(vector))

    def _missing(self, terms: Sequence[Term], target: Sequence[Fraction]) -> list[Fraction]:
        missing = list(target)
        for term in terms:
            for i, v in enumerate(fact_of(self.answers, term, self.evidence).left):
                missing[i] -= term.weight * v
        return missing

    def _payer(self, solution: Solution) -> tuple[int, int] | None:
        """(the column that absorbs the offset, the distance that pays): the distance with the most to spare, planes first."""
        spare = solution.weights @ self.program.rights
        number = int(np.argmax(spare))
        columns = [k for k in range(len(self.program)) if self.program.key(k).fact in ("plane", "side")]
        planes = [k for k in columns if self.program.key(k).fact == "plane" and self.program.key(k).number == number]
        chosen = planes or [k for k in columns if solution.weights[k] > 0] or columns
        return (max(chosen, key=lambda k: float(solution.weights[k])), number) if chosen else None

    def _twin(self, column: int) -> int | None:
        """The same plane with the other sign."""
        key = self.program.key(column)
        if key.fact != "plane":
            return None
        return next((k for k in range(len(self.program)) if self.program.key(k) == replace(key, sign=-key.sign)), None)
