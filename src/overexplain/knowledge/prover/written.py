"""Weights that a search found, written as the checker's terms: exact rationals, whose sums are right whatever rounding
the search had.

What the weights leave over goes to one plane or side (the offset), to ties (entries of a that answers fix) and to a Hölder term.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import lcm
from operator import mul
from typing import TypeVar, final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.checker import Answer, Branch, Branched, Context, Fact, Term, fact_of
from overexplain.knowledge.chords import chord_term
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.facts import Secret, Steepest
from overexplain.knowledge.promises import form, whole
from overexplain.knowledge.prover.blocks import exponent_and_weights
from overexplain.knowledge.prover.facts import CHORD, ENTRY, NAMES, NEAREST, PLANE, STEP, WAY
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.rows import Rows
from overexplain.knowledge.prover.stage import Asked, Proof
from overexplain.knowledge.smooth import steepest_weight

ZERO, ONE = Fraction(0), Fraction(1)
ALL = slice(None)
Key = tuple[str, int, int, int | None]
"""The name of a fact, its row, its sign, and the entry it is about."""
OF_ROWS = ("side", "plane", "steepest", "entry", "flips", "reach")
"""Facts that say the same at every place of a proof."""
T = TypeVar("T")
FAR = 300
"""The power of 2 above which squares are not computed."""
REPAIRS = 3
"""How often a length that is left with less than nothing is paid by a row that bounds it."""


def terms_of(
    prover: Prover, answers: Mapping[int, Answer], evidence: Evidence, x: FloatArray | None, proof: Proof
) -> Iterator[list[Term]]:
    """Lists of terms, one for each length that may pay for what is left over: the checker says which of them is a proof.

    Without a point they are those of a contradiction.
    """
    short = proof if x is None else shortened(prover, x, proof)
    claim = [ZERO] * (prover.p + 1)
    if x is not None:
        claim = [*(Fraction(proof.sign * v) for v in x.tolist()), Fraction(-proof.sign)]
    context = prover.balls.context(answers, evidence)[1] if prover.balls.boxes else None
    writer = Writer(prover, answers, evidence, claim, short, context)
    for payer in prover.payer.payers:
        yield writer.terms(payer)


def branched(
    prover: Rows, answers: Mapping[int, Answer], evidence: Evidence, terms: Sequence[Term], *, is_claim: bool = True
) -> Branched | None:
    """The same terms, of a claim or a contradiction, as a proof by the only case there is, in which what steps say of single
    entries of a is known to chords; None if they need no such thing."""
    if not prover.balls.needs_box(terms):
        return None
    bounds, context = prover.balls.context(answers, evidence)
    if context is None or not bounds:
        return None
    row = next(term.row for bound in bounds for term in bound.terms if term.row is not None)
    return Branched(row, Branch((*((Term("denied", ONE),) if is_claim else ()), *terms), bounds))


def shortened(prover: Prover, x: FloatArray, proof: Proof) -> Proof:
    """The proof without what is hardly worth its line: dropped as long as what is left of β pays for it."""
    if len(prover.norms) > 1:
        return proof
    costs = np.append(
        proof.weights * prover.payer.worth(prover.rows[proof.rows]),
        np.abs(proof.omega) * prover.payer.worth(prover.equal.rows),
    )
    order = np.argsort(costs, kind="stable")
    kept = np.ones(len(costs), dtype=bool)
    kept[order[np.cumsum(costs[order]) < 0.8 * proof.beta]] = False
    rows, weights = proof.rows[kept[: len(proof.rows)]], proof.weights[kept[: len(proof.rows)]]
    omega = np.where(kept[len(proof.rows) :], proof.omega, 0.0)
    if not len(rows):
        return proof
    asked = Asked(x[None, :], prover.ties, proof.sign * prover.centre)
    beta = prover.payer.beta(proof.sign * asked.inner, asked.sizes, rows[None, :], weights[None, :], omega[None, :])
    return Proof(proof.sign, rows, weights, omega, float(beta[0])) if beta[0] > 0 else proof


def _grow(weights: dict[T, Fraction], key: T, more: Fraction) -> None:
    weights[key] = weights[key] + more if key in weights else more


def roughly(weight: Fraction) -> float:
    """To sort by: comparing long fractions takes longer than all else."""
    try:
        return float(weight)
    except OverflowError:
        return float("inf")


def by_one_step(
    answers: Mapping[int, Answer], step: Steepest, x: FloatArray, sign: int, radius: float | None = None
) -> list[Term] | None:
    """A plane, its step and a Hölder term: all it takes under a smooth distance.

    A robust step (that has a `radius`) was moved to where its ball touches the plane: it goes back to the answer, along the step
    itself.
    """
    # Squares of what is far off would overflow, and κ grows as its distance does.
    power = max(int(np.frexp(np.abs(x).max())[1]) - FAR, 0)
    near = step.explanation + np.ldexp(x - step.explanation, -power) if power else x
    found, kappa = steepest_weight(step, near)
    if found != sign:
        return None
    weight, way = Fraction(kappa) * 2**power, sign
    if radius is not None:
        weight, way = max(ZERO, weight + step.side * sign * Fraction(radius / step.length)), -step.side * sign
    answer = answers[step.row].explanation
    assert answer is not None
    apart = [sign * (Fraction(a) - b) for a, b in zip(x.tolist(), answer, strict=True)]
    rest = tuple(a + step.side * weight * w for a, w in zip(apart, answers[step.row].step, strict=True))
    return [
        Term("plane", ONE, step.row, sign=way),
        Term("steepest", weight, step.row),
        Term("hoelder", ONE, step.row, vector=rest),
    ]


@final
class Writer:
    """The terms that add up to a claim, a form over (a, b); `beside` are some of them, with their weights, that no row stands for.

    `context` has the box that chords are measured in, and what else holds at this place of a proof; `facts` are what rows say
    anywhere in it, as far as another writer has asked.
    """

    def __init__(
        self,
        prover: Prover,
        answers: Mapping[int, Answer],
        evidence: Evidence,
        claim: Sequence[Fraction],
        proof: Proof,
        context: Context | None,
        beside: Sequence[Term] = (),
        facts: dict[Key, Fact] | None = None,
    ) -> None:
        self.prover, self.answers, self.evidence = prover, answers, evidence
        self._facts = {} if facts is None else facts
        self.claim, self._context = list(claim), context
        self.beside = [(term, fact_of(answers, term, evidence, context=context)) for term in beside]
        self.weights: dict[Key, Fraction] = {}
        self.vectors = [[ZERO] * prover.p for _ in prover.norms]
        self._lefts: dict[Key, Sequence[Fraction]] = {}
        self._gather(proof)

    def _gather(self, proof: Proof) -> None:
        """The weights of the proof as weights of the checker's facts."""
        prover, facts = self.prover, self.prover.facts
        shares: dict[int, Fraction] = {}
        for row, weight in zip(proof.rows.tolist(), proof.weights.tolist(), strict=True):
            fact = int(prover.of_row[row])
            if fact < 0:
                cut = prover.cuts[int(prover.way[row])]
                number = int(np.argmax(cut[prover.p + 1 :] != 0))
                self._add(number, [Fraction(weight) * Fraction(v) if v else ZERO for v in cut[: prover.p].tolist()])
            else:
                _grow(shares, fact, Fraction(int(prover.way[row]) * weight))
        for used, weight in zip(prover.used.tolist(), proof.omega.tolist(), strict=True):
            if weight:
                fact = int(prover._equalities[used])
                _grow(shares, fact, Fraction(weight))
        levels = np.zeros((len(prover.norms), prover.p))
        for fact, share in shares.items():
            name, row, index = int(facts.name[fact]), int(facts.origin[fact]), int(facts.index[fact])
            if name == PLANE:
                self._give(self._plane(row, 1 if share > 0 else -1), abs(share))
            elif name == STEP:
                if share > 0:
                    self._give(("steepest", row, 1, None), share)
                else:
                    self._add(int(facts.number[fact]), [share * v for v in self._towards(row)])
            elif name == WAY:
                levels[int(facts.number[fact]), index] += float(share)
            elif name == CHORD and facts.equal[fact]:  # s ≤ by the chord, s ≥ by Hölder's inequality
                if share < 0:
                    self._give(("chord", row, 1, index), -share / Fraction(prover.balls.shapes[index].delta))
                else:
                    number, g = prover.balls.linear[index]
                    self._add(number, [-share * Fraction(v) for v in g.tolist()])
            elif name == NEAREST:  # the plane from its other side, and the chord that pays for s
                self._give(("plane", row, -1, None), share)
                chord: Key = ("chord", int(prover.balls.shapes[index].row), 1, index)
                delta = max(factor for _, factor in self._fact(chord).rights)
                weight = share * self._behind(row) / delta
                self._give(chord, weight)
                slopes = prover.balls.shapes[index].slopes.tolist()
                self._add(int(facts.number[fact]), [-weight * Fraction(v) for v in slopes])
            else:
                self._give((NAMES[name], row, 1, index if name in (ENTRY, CHORD) else None), share)
        for number in np.flatnonzero(levels.any(axis=1)).tolist():
            self._give_way(number, levels[number])

    def _give_way(self, number: int, level: FloatArray) -> None:
        """Weights of single entries of a direction: one step with a large weight, and Hölder takes what is across it."""
        prover, facts = self.prover, self.prover.facts
        row = int(facts.origin[np.flatnonzero((facts.name == WAY) & (facts.number == number))[0]])
        norm = prover.norms[number]
        shape = None if isinstance(norm, Secret) else exponent_and_weights(norm, prover.p)
        assert shape is not None
        towards = self._towards(row)
        step = np.array([float(v) for v in towards]) * shape[1]
        length = float(np.linalg.norm(step))
        asked = level * shape[1]
        along = float(asked @ step) / length
        across = float(np.linalg.norm(asked - along * step / length))
        block = next(block for block in prover.blocks if row in block.rows)
        tolerance = float(block.tolerance[int(np.flatnonzero(block.rows == row)[0])])
        kappa = Fraction(max(along, 0.0) / length + (across / tolerance if tolerance else 0.0))
        self._give(("steepest", row, 1, None), kappa)
        self._add(number, [Fraction(v) - kappa * w for v, w in zip(level.tolist(), towards, strict=True)])

    def _give(self, key: Key, weight: Fraction) -> None:
        _grow(self.weights, key, weight)

    def _plane(self, row: int, sign: int) -> Key:
        """The plane of a row whose left side is sign·(x', −1): for robust answers the checker counts signs from behind it."""
        if row not in self._robust:
            return "plane", row, sign, None
        label = self.answers[row].label
        assert label is not None
        return "plane", row, -label * sign, None

    @cached_property
    def _robust(self) -> frozenset[int]:
        return frozenset(int(row) for block in self.prover.blocks if block.is_robust for row in block.rows)

    def _add(self, number: int, vector: Sequence[Fraction]) -> None:
        self.vectors[number] = [a + b if a and b else a or b for a, b in zip(self.vectors[number], vector, strict=True)]

    def _towards(self, row: int) -> list[Fraction]:
        answer = self.answers[row]
        assert answer.label is not None
        return [-answer.label * v for v in answer.step]

    def _fact(self, key: Key) -> Fact:
        if key not in self._facts:
            found = fact_of(self.answers, self._term(key, ONE), self.evidence, context=self._context)
            if key[0] not in OF_ROWS:
                return found
            self._facts[key] = found
        return self._facts[key]

    def fact(self, term: Term) -> Fact:
        """What a term of the list says."""
        if term.row is not None and term.fact in OF_ROWS:
            return self._fact((term.fact, term.row, term.sign, term.index))
        return fact_of(self.answers, term, self.evidence, context=self._context)

    def _left(self, key: Key) -> Sequence[Fraction]:
        if key not in self._lefts:
            answer = self.answers[key[1]]
            if key[0] == "plane" and answer.explanation is not None and key[1] not in self._robust:
                self._lefts[key] = form(answer.whole_explanation, key[2])
            else:
                self._lefts[key] = self._fact(key).left
        return self._lefts[key]

    def _term(self, key: Key, weight: Fraction) -> Term:
        if key[0] == "chord":
            assert key[3] is not None
            return replace(chord_term(self.prover.balls.shapes[key[3]]), weight=weight)
        return Term(key[0], weight, key[1], sign=key[2], index=key[3])

    def terms(self, payer: int) -> list[Term]:
        """The list in which length `payer` pays for what is left over."""
        weights, found = dict(self.weights), []
        swapped: dict[int, Fraction] = {}  # entries whose ties pay for one length and Hölder's inequality for another
        for _ in range(REPAIRS):
            found = self._completed(payer, weights, swapped)
            owed = self._owed(found, payer)
            if not owed:
                break
            for number, amount in owed.items():  # a tie, or a row that bounds the other length, takes over
                swap, bound = self.prover.payer.swaps[number], self.prover.payer.bounds[number]
                if swap is not None:
                    value = Fraction(float(self.prover.ties.value[swap[0]]))
                    swapped[swap[0]] = swapped.get(swap[0], ZERO) + 2 * amount / value
                    continue
                if number in self.prover.balls.rows:  # its least answer lies across, and the question does not
                    row = self.prover.balls.rows[number]
                    for across in (("plane", row, 1, None), ("side", row, 1, None)):
                        _grow(weights, across, 2 * amount / self._behind(row))
                    continue
                if bound is None:
                    continue
                fact = int(self.prover.of_row[bound])
                key: Key = (NAMES[int(self.prover.facts.name[fact])], int(self.prover.facts.origin[fact]), 1, None)
                worth = -float(self.prover.facts.left[fact, self.prover.p + 1 + number])
                if worth > 0:
                    weights[key] = weights.get(key, ZERO) + 2 * amount / Fraction(worth)
        return found

    def _completed(self, payer: int, given: Mapping[Key, Fraction], swapped: Mapping[int, Fraction]) -> list[Term]:
        """All terms: the given weights, then what takes over the offset, the ties and the rest."""
        prover, weights = self.prover, dict(given)
        vectors = [list(vector) for vector in self.vectors]
        lack = self._missing(weights, slice(prover.p, None))[0]
        taken = self._for_offset(weights, lack) if lack else None
        if taken is not None:
            _grow(weights, *taken)
        missing = self._missing(weights)
        for vector in vectors:
            missing[:-1] = [a - b if b else a for a, b in zip(missing, vector, strict=False)]
        ties = prover.ties
        for i, amount in swapped.items():
            vectors[payer][i] -= amount
            missing[i] += amount
        for i in np.flatnonzero(ties.number >= 0).tolist():
            if not missing[i]:
                continue
            sign = 1 if missing[i] > 0 else -1
            if not ties.value[i]:
                weights["entry", int(ties.row[i]), sign, i] = abs(missing[i])
            elif sign * ties.value[i] > 0:
                _grow(weights, ("entry", int(ties.row[i]), 1, i), abs(missing[i]))
            else:
                vectors[int(ties.number[i])][i] += missing[i]
            missing[i] = ZERO
        vectors[payer] = [a + b if a else b for a, b in zip(vectors[payer], missing, strict=False)]
        terms = [self._term(key, weight) for key, weight in weights.items() if weight > 0]
        terms += [term for term, _ in self.beside]
        terms.sort(key=lambda term: -roughly(term.weight))  # what matters most is read first
        return [*terms, *(self._hoelder(k, vector) for k, vector in enumerate(vectors) if any(vector))]

    def _missing(self, weights: Mapping[Key, Fraction], entries: slice = ALL) -> list[Fraction]:
        """The claim less the left sides with their weights: sums of whole numbers over one denominator."""
        parts = [(weight, *whole(self._left(key))) for key, weight in weights.items()]
        parts += [(term.weight, *whole(fact.left)) for term, fact in self.beside]
        claim, below = whole(self.claim[entries])
        common = lcm(below, *(weight.denominator * denominator for weight, _, denominator in parts))
        factors = [weight.numerator * (common // (weight.denominator * under)) for weight, _, under in parts]
        columns = list(zip(*(numbers[entries] for _, numbers, _ in parts), strict=True)) or [()] * len(claim)
        return [
            Fraction(v * (common // below) - sum(map(mul, factors, column)), common)
            for v, column in zip(claim, columns, strict=True)
        ]

    def _behind(self, row: int) -> Fraction:
        """How many lengths of its ball a robust answer lies behind the plane."""
        reach = self.answers[row].reach
        assert reach is not None
        return reach[1]

    def _hoelder(self, number: int, vector: Sequence[Fraction]) -> Term:
        for block in self.prover.blocks:
            if number in (block.number, block.ball):
                of = "distance" if number == block.number else "robustness"
                return Term("hoelder", ONE, int(block.rows[0]), vector=tuple(vector), of=of)
        raise KeyError(number)

    def _for_offset(self, weights: Mapping[Key, Fraction], lack: Fraction) -> tuple[Key, Fraction] | None:
        """What takes over the offset: a plane, or else the weight of the row that has most of it; None if there is neither."""
        anchor = self.prover.payer.anchor
        able = [key for key in weights if self._left(key)[-1]]
        key = max(able, key=lambda key: weights[key] * abs(self._left(key)[-1]), default=None)
        change = ZERO if key is None else lack / self._left(key)[-1]
        is_able = key is not None and weights[key] + change >= 0
        if anchor is not None and (any(self.claim) or not is_able):  # a contradiction names no row for rounding alone
            facts = self.prover.facts
            fact = int(self.prover._equalities[self.prover.used[anchor]])
            if int(facts.name[fact]) == PLANE:  # its left side ends in −sign
                return self._plane(int(facts.origin[fact]), 1 if lack < 0 else -1), abs(lack)
        return None if key is None else (key, change)

    def _owed(self, terms: Sequence[Term], payer: int) -> dict[int, Fraction]:
        """What lengths other than the payer are left with below 0."""
        if len(self.prover.norms) < 2:
            return {}
        totals: dict[int, Fraction] = {}
        for term in terms:
            for length, factor in self.fact(term).rights:
                number = self.prover.number_of(length)
                if number is not None:
                    totals[number] = totals.get(number, ZERO) + term.weight * factor
        return {number: -total for number, total in totals.items() if total < 0 and number != payer}
