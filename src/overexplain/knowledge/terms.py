"""From a program's float64 weights to terms that add up exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.checker import Answer, Bound, Context, Fact, Term, fact_of
from overexplain.knowledge.chords import Box, Chord
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.exact import ONE, ZERO, combine
from overexplain.knowledge.facts import OffPlane, Secret, Steepest
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
                _add_to(vectors, key.number, self.program.direction(column), weight)
            elif key.fact == "perspective":  # a plane, and a chord whose slopes a Hölder term takes away again
                assert key.number is not None
                plane, chord = self._perspective(key, weight)
                terms += [plane, chord]
                _add_to(vectors, key.number, chord.vector or (), -chord.weight)
            else:
                terms.append(self._term(key, weight))
        terms.sort(key=lambda term: -term.weight)  # what matters most is read first
        return [*terms, *(self._rest(number, vector) for number, vector in vectors.items() if any(vector))]

    def column(self, k: int) -> tuple[list[Fraction], bool]:
        """(left side, then right side per distance; strict?) of a column, exactly."""
        key = self.program.key(k)
        if key.fact in ("hoelder", "perspective"):
            # Hölder columns are added up to one vector: if its length is irrational it is rounded again.
            terms = self.terms({k: ONE})
            facts = [(term.weight, self.fact(term)) for term in terms]
            left = [sum((w * f.left[i] for w, f in facts), ZERO) for i in range(self.program.facts.dimension + 1)]
            right = [ZERO] * len(self.lengths)
            for term, (w, fact) in zip(terms, facts, strict=True):
                rounded = ROUNDED if term.fact == "hoelder" and not self._is_rational(term) else ONE
                right = [a + w * rounded * b for a, b in zip(right, self.rights(fact), strict=True)]
            return [*left, *right], False
        fact = self.fact(self._term(key, ONE))
        return [*fact.left, *self.rights(fact)], fact.is_strict

    def fact(self, term: Term, context: Context | None = None) -> Fact:
        """What a term says here."""
        context = context or self.context
        if term.fact != "chord":
            return fact_of(self.answers, term, self.evidence, context=context)
        # A chord takes lengths in rationals, and a repair asks for it several times at the same place.
        if self._chords.get(None) is not context:
            self._chords.clear()
            self._chords[None] = context
        key = (term.row, term.vector, term.power, term.at)
        if key not in self._chords:
            self._chords[key] = fact_of(self.answers, term, self.evidence, context=context)
        fact: Fact = self._chords[key]
        return fact

    @cached_property
    def _chords(self) -> dict[Any, Any]:
        """The facts of chords in the context that is under None."""
        return {}

    def rights(self, fact: Fact) -> list[Fraction]:
        """The right side of a fact, one entry a length of the program."""
        right = [ZERO] * len(self.lengths)
        for length, factor in fact.rights:
            right[self.lengths.index(length)] += factor
        return right

    @cached_property
    def lengths(self) -> list[Any]:
        """The program's lengths as the checker writes them."""
        return [length.written if isinstance(length, Secret) else length.spec for length in self.program.facts.lengths]

    # The box that steps leave, with its proof.

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """What proves the box that steps leave; nothing if it is Hölder's."""
        box = self.program.box
        return () if box is None else tuple(self._bound(box, i, sign) for i, sign in sorted(box.why))

    @property
    def unit_row(self) -> int:
        """A row under the distance that the box is measured in."""
        assert self.program.box is not None
        unit = self.program.norms[self.program.box.unit]
        return next(fact.row for fact in self.program.facts.explained if fact.norm == unit)

    def _bound(self, box: Box, i: int, sign: int) -> Bound:
        """sign·a_i ≥ value·t by a row's step and a Hölder term."""
        row, kappa = box.why[i, sign]
        step = Term("steepest", kappa, row)
        fact = fact_of(self.answers, step, self.evidence)
        rest = [-kappa * v for v in fact.left[:-1]]
        rest[i] += sign
        holder = Term("hoelder", ONE, row, vector=tuple(rest))
        value = kappa * fact.right + fact_of(self.answers, holder, self.evidence).right
        return Bound(i, sign, value, (step, holder))

    @cached_property
    def context(self) -> Context | None:
        """The box of all chords; None if there is none."""
        if self.program.box is None:
            return None
        unit = self.program.norms[self.program.box.unit].spec
        return Context(unit, {(bound.index, bound.sign): bound.value for bound in self.bounds})

    def repaired(self, solution: Solution, point: Sequence[Fraction], sign: int) -> list[Term] | None:
        """Terms for sign·(point, −1): what rounding left is absorbed by a plane (the offset) and a Hölder term (the rest).

        A program without lengths has nothing to pay with: its basis is solved exactly instead.
        """
        target = [sign * v for v in (*point, Fraction(-1))]
        if self.program.facts.off_plane:
            return self.balanced(solution, target)
        if not self.program.norms:
            return self._basic(solution, target)
        weights = {int(k): Fraction(float(solution.weights[k])) for k in np.flatnonzero(solution.weights)}
        payer = self._payer(solution)
        if payer is None:
            return None
        column, number = payer
        missing = self.missing(self.terms(weights), target)
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
        missing = self.missing(self.terms(weights), target)
        return self.terms(weights, {number: missing[:-1]})

    def balanced(
        self, solution: Solution, target: Sequence[Fraction], context: Context | None = None, extra: Sequence[Term] = ()
    ) -> list[Term] | None:
        """The same with robust answers, by additions alone: planes make up for what a length or the offset lacks.

        A plane behind which an answer lies pays ρ·s for a little of its left side, the row's label has the other sign of the
        offset; what all this leaves of a's entries a Hölder term of the unit takes. `extra` are terms beside the program's.
        """
        rest = {n: [Fraction(float(v)) for v in d] for n, d in solution.directions.items() if np.any(d)}
        dust = 1e-12 * float(solution.weights.max(initial=0.0))  # an interior-point method gives every row some weight
        weights = {int(k): Fraction(float(solution.weights[k])) for k in np.flatnonzero(solution.weights > dust)}
        unit = self._unit_row
        if unit is None:
            return None
        number = self.program.norms.index(unit.norm) if unit.norm is not None else 0
        lacking = [min(v, ZERO) for v in self.totals([*self.terms(weights, rest), *extra], context)]
        for k, amount in enumerate(lacking):
            if amount < 0 and k != number:
                payer = next((f for f in self.program.facts.off_plane if f.ball == self.program.facts.lengths[k]), None)
                if payer is None:
                    return None
                column = self._column_of("plane", payer.row)
                weights[column] = weights.get(column, ZERO) - amount / Fraction(payer.radius)
        missing = self.missing([*self.terms(weights, rest), *extra], target, context)[-1]
        if missing:
            # (offset entries: the plane's is the row's label y, the label's own −y)
            fact = "plane" if missing * unit.side > 0 else "side"
            column = self._column_of(fact, unit.row)
            weights[column] = weights.get(column, ZERO) + abs(missing)
        left_over = self.missing([*self.terms(weights, rest), *extra], target, context)[:-1]
        have = rest.get(number, [ZERO] * len(left_over))
        rest[number] = [a + b for a, b in zip(have, left_over, strict=True)]
        return self.terms(weights, rest)

    @property
    def _unit_row(self) -> OffPlane | None:
        """A robust row under the distance that boxes are measured in."""
        found = self.program.facts.off_plane
        return next((fact for fact in found if fact.norm is not None), None)

    def _column_of(self, fact: str, row: int) -> int:
        for k in range(len(self.program)):
            key = self.program.key(k)
            if key.fact == fact and key.row == row and key.sign == 1:
                return k
        raise KeyError((fact, row))

    def totals(self, terms: Sequence[Term], context: Context | None) -> list[Fraction]:
        """The right sides added up, one entry a length."""
        total = [ZERO] * len(self.lengths)
        for term in terms:
            for k, v in enumerate(self.rights(self.fact(term, context))):
                total[k] += term.weight * v
        return total

    def _basic(self, solution: Solution, target: Sequence[Fraction]) -> list[Term] | None:
        support = [int(k) for k in np.flatnonzero(solution.weights > 1e-10 * solution.weights.max(initial=0.0))]
        weights = combine([self.column(k)[0] for k in support], target)
        if weights is None or min(weights, default=ONE) < 0:
            return None
        return self.terms(dict(zip(support, weights, strict=True)))

    def _term(self, key: Key, weight: Fraction) -> Term:
        if key.fact == "chord":
            return replace(chord_term(self.program.chords[key.chord]), weight=weight)
        if key.fact != "ray":
            return Term(key.fact, weight, key.row, sign=key.sign, index=key.index if key.fact == "entry" else None)
        step = next(f for f in self.program.facts.explained if isinstance(f, Steepest) and f.row == key.row)
        level = next(v for i, v in orthogonal(gradient_of(step.norm, step.exact_step)) if i == key.index)
        return Term("ray", weight, key.row, vector=tuple(key.sign * v for v in level))

    def _perspective(self, key: Key, weight: Fraction) -> tuple[Term, Term]:
        """The plane behind which an answer lies, from its other side, and the chord that pays for s."""
        fact = next(f for f in self.program.facts.off_plane if f.row == key.row)
        chord = self._term(Key("chord", chord=key.chord), ONE)
        s = self.lengths[self.program.facts.lengths.index(fact.ball)]
        delta = {str(length): factor for length, factor in self.fact(chord).rights}[str(s)]
        share = weight * Fraction(fact.radius) / delta
        return Term("plane", weight, key.row, sign=-1), replace(chord, weight=share)

    def holder(self, norm: Norm, vector: Sequence[Fraction]) -> Term:
        """A Hölder term under one of the program's norms."""
        return self._rest(self.program.norms.index(norm), vector)

    def reach_at_most(self, fact: OffPlane, normal: FloatArray) -> list[Term]:
        """The chord that bounds ρ·s best at a model; nothing if there is none, or s is t itself."""
        ball = self.program.facts.lengths.index(fact.ball)
        chords = [chord for chord in self.program.chords if chord.ball == ball]
        if not chords:
            return []
        term = chord_term(min(chords, key=lambda chord: (chord.gamma + float(chord.slopes @ normal)) / chord.delta))
        delta = self.rights(self.fact(term))[ball]
        return [replace(term, weight=Fraction(fact.radius) / delta)]

    def _rest(self, number: int, vector: Sequence[Fraction]) -> Term:
        """A Hölder term under a norm, which it takes from a row that has it."""
        norm = self.program.norms[number]
        row = next((fact.row for fact in self.program.facts.explained if fact.norm == norm), None)
        if row is None:
            row = next(fact.row for fact in self.program.facts.off_plane if fact.ball == norm)
            return Term("hoelder", ONE, row, vector=tuple(vector), of="robustness")
        return Term("hoelder", ONE, row, vector=tuple(vector))

    def _is_rational(self, term: Term) -> bool:
        norms = {str(norm.spec): norm for norm in self.program.norms}
        assert term.row is not None
        return is_rational(norms[str(getattr(self.answers[term.row], term.of))])

    def missing(
        self, terms: Sequence[Term], target: Sequence[Fraction], context: Context | None = None
    ) -> list[Fraction]:
        """What the left sides of the terms lack."""
        missing = list(target)
        for term in terms:
            for i, v in enumerate(self.fact(term, context).left):
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


def chord_term(chord: Chord) -> Term:
    """A chord as the checker knows it, with the weight 1."""
    slopes = tuple(Fraction(float(v)) for v in chord.slopes)
    at = None if chord.power in (None, 1) else chord.at
    return Term("chord", ONE, chord.row, vector=slopes, power=chord.power, at=at)


def _add_to(vectors: dict[int, list[Fraction]], number: int, values: Sequence[Any], weight: Fraction) -> None:
    vector = vectors.setdefault(number, [ZERO] * len(values))
    for i, v in enumerate(values):
        vector[i] += weight * Fraction(v)
