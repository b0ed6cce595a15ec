"""The last resort for facts with lengths: all rows of a prover as the checker states them, decided in rationals.

Lengths are unknowns like the entries of a, above 0. What follows from the rows then is certain, and so is a contradiction among
them; that no more follows says nothing, for models of the rows need not have the lengths of their a.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import final

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.checker import Answer, Context, Fact, Term, fact_of
from overexplain.knowledge.chords import chord_term
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.blocks import FEW_FORMS
from overexplain.knowledge.prover.facts import CHORD, ENTRY, NAMES, NEAREST, PLANE, STEEPEST, STEP, WAY
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.one_point import Evidence as Settling
from overexplain.knowledge.prover.one_point import settle
from overexplain.knowledge.prover.reduction import LinearFacts, Weights
from overexplain.knowledge.prover.rows import Rows
from overexplain.knowledge.prover.written import roughly

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class _Stated:
    """left·(a, b) ≥ Σ factor·length, by the terms; without terms: a length that is above 0."""

    left: Sequence[Fraction]
    lengths: Sequence[Fraction]
    terms: tuple[Term, ...] = ()
    is_strict: bool = False


@final
class ExactRows:
    """The rows of a prover in rationals; `linear` raises Contradiction when it is made from contradicting ones."""

    def __init__(self, rows: Rows, answers: Mapping[int, Answer], evidence: Evidence) -> None:
        self._rows, self._answers, self._evidence = rows, answers, evidence
        self._context: Context | None = rows.balls.context(answers, evidence)[1] if rows.balls.boxes else None
        self.stated = [*self._positive(), *filter(None, self._said())]

    def prover(self, *, swapped: bool) -> LinearProver:
        """Decides points (x, 0 …), one 0 for each length; raises Contradiction."""
        forms = [[*one.left[:-1], *(-v for v in one.lengths), one.left[-1]] for one in self.stated]
        strict = np.array([one.is_strict for one in self.stated], dtype=bool)
        none = np.zeros((0, len(forms[0]) - 1))
        return LinearProver(LinearFacts(none, np.zeros(0, dtype=np.int64), strict, forms=forms, swapped=swapped))

    def settled(self, linear: LinearProver, x: FloatArray, deadline: float | None = None) -> Settling:
        """What settles a point; its models need not be any."""
        found = settle(linear, np.append(x, np.zeros(len(self._rows.norms))), deadline)
        if found.models is None:
            return found
        p = self._rows.p
        yes, no = found.models
        return replace(found, models=((yes[0][:p], yes[1]), (no[0][:p], no[1])))

    def terms(self, weights: Weights) -> Iterator[list[Term]]:
        """The checker's terms for some weights, what matters most first: with one Hölder term for each norm, which is shorter, and
        with all of them, whose lengths may be known better."""
        plain: dict[Term, Fraction] = {}
        for i, weight in weights.items():
            for term in self.stated[i].terms:
                one = replace(term, weight=ONE)
                plain[one] = plain.get(one, ZERO) + weight * term.weight
        every = [replace(term, weight=weight) for term, weight in plain.items() if weight]
        every.sort(key=lambda term: (term.fact == "hoelder", -roughly(term.weight)))
        few = [term for term in every if term.fact != "hoelder"]
        vectors: dict[tuple[int | None, str], list[Fraction]] = {}
        for term in every[len(few) :]:
            assert term.vector is not None
            total = vectors.get((term.row, term.of), [ZERO] * len(term.vector))
            vectors[term.row, term.of] = [a + term.weight * b for a, b in zip(total, term.vector, strict=True)]
        joined = (Term("hoelder", ONE, row, vector=tuple(v), of=of) for (row, of), v in vectors.items() if any(v))
        yield [*few, *joined]
        yield every

    # Every row once more.

    def _positive(self) -> Iterator[_Stated]:
        for k, norm in enumerate(self._rows.norms):
            length = [-ONE if j == k else ZERO for j in range(len(self._rows.norms))]
            yield _Stated([ZERO] * (self._rows.p + 1), length, is_strict=not isinstance(norm, Secret))  # that may be 0

    def _said(self) -> Iterator[_Stated | None]:
        facts, ties, p = self._rows.facts, self._rows.ties, self._rows.p
        for name, row, index, number in zip(
            facts.name.tolist(), facts.origin.tolist(), facts.index.tolist(), facts.number.tolist(), strict=True
        ):
            if name == PLANE:
                for sign in (1, -1):
                    yield self._by(Term("plane", ONE, row, sign=sign))
            elif name in (STEP, STEEPEST):
                yield self._by(Term("steepest", ONE, row))
                number = self._number(row) if name == STEEPEST else number
                yield self._by(
                    self._hoelder(number, [(self._answers[row].label or 0) * v for v in self._answers[row].step])
                )
            elif name == NEAREST:
                yield self._by(*self._nearest(row, index))
            elif name == CHORD and index in self._rows.balls.linear:
                yield self._by(chord_term(self._rows.balls.shapes[index]))
                ball, g = self._rows.balls.linear[index]
                yield self._by(self._hoelder(ball, [-Fraction(v) for v in g.tolist()]))
            elif name != WAY:  # entries of a smooth direction follow from its step, by all of Hölder's inequality
                yield self._by(self._term(name, row, index))
        for i in np.flatnonzero(ties.number >= 0).tolist():
            signs = (1,) if ties.value[i] else (1, -1)
            for sign in signs:
                yield self._by(Term("entry", ONE, int(ties.row[i]), sign=sign, index=i))
            if ties.value[i]:
                away = [Fraction(-int(np.sign(ties.value[i])) * (j == i)) for j in range(p)]
                yield self._by(self._hoelder(int(ties.number[i]), away))
        for block in self._rows.blocks:
            if block.is_optimal and not block.tolerance.any() and block.step.size <= FEW_FORMS:
                for row, i, sign in product(block.rows.tolist(), range(p), (1, -1)):  # floats see few of them
                    yield self._by(Term("entry", ONE, row, sign=sign, index=i))
        for cut in self._rows.cuts:
            number = int(np.argmax(cut[p + 1 :] != 0))
            if isinstance(self._rows.norms[number], Secret):
                continue
            yield self._by(self._hoelder(number, [Fraction(v) for v in cut[:p].tolist()]))

    def _by(self, *terms: Term) -> _Stated | None:
        """What some terms add up to; None if the checker does not say so much: a search may do with less."""
        left, lengths = [ZERO] * (self._rows.p + 1), [ZERO] * len(self._rows.norms)
        is_strict = False
        for term in terms:
            try:
                fact = self._fact(term)
            except CertificateInvalid:
                return None
            left = [a + term.weight * b for a, b in zip(left, fact.left, strict=True)]
            is_strict |= fact.is_strict
            for length, factor in fact.rights:
                number = self._rows.number_of(length)
                if number is None:
                    return None
                lengths[number] += term.weight * factor
        return _Stated(left, lengths, terms, is_strict)

    def _fact(self, term: Term) -> Fact:
        """What a term says; only chords that were made for the box that steps leave are measured in it."""
        is_narrow = self._rows.balls.needs_box([term])
        return fact_of(self._answers, term, self._evidence, context=self._context if is_narrow else None)

    def _term(self, name: int, row: int, index: int) -> Term:
        if name == CHORD:
            return chord_term(self._rows.balls.shapes[index])
        return Term(NAMES[name], ONE, row, index=index if name == ENTRY else None)

    def _nearest(self, row: int, index: int) -> Iterator[Term]:
        """The plane from its other side, and the chord that pays for s."""
        yield Term("plane", ONE, row, sign=-1)
        chord = chord_term(self._rows.balls.shapes[index])
        said = self._fact(chord)
        reach = self._answers[row].reach
        assert reach is not None
        weight = reach[1] / max(factor for _, factor in said.rights)
        yield replace(chord, weight=weight)
        yield self._hoelder(self._number(row), [-weight * v for v in said.left[:-1]])

    def _number(self, row: int) -> int:
        return next(block.number for block in self._rows.blocks if row in block.rows)

    def _hoelder(self, number: int, vector: Sequence[Fraction]) -> Term:
        block = next(block for block in self._rows.blocks if number in (block.number, block.ball))
        of = "distance" if number == block.number else "robustness"
        return Term("hoelder", ONE, int(block.rows[0]), vector=tuple(vector), of=of)
