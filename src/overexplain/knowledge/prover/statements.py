"""Linear facts about (a, b) alone, and how each of them is stated in the checker's words.

Labels, merely valid answers and planes are facts about points. An exact answer without any tolerance says more, and says it
without a length, although its facts have one (w = x' − x ≠ 0 its step, y the label of x, σ_i = −y·sgn(w_i), weights d):

    ℓ1   σ_i·a_i/d_i is the same t for all i that moved, and |a_j|/d_j ≤ t for all others
    ℓ∞   a_i = 0 where d_i·|w_i| < ‖w‖, and σ_i·a_i ≥ 0 elsewhere; t = Σ σ_i·a_i/d_i
    ℓ2   a is orthogonal to whatever is orthogonal to w; so for weights and matrices

Together with a·x' = b and −y·(a·x − b) < 0 that is all it says: models that keep these facts give the answer. So it is for
answers with slack where the unit ball has few corners v: y·(a·x − b) ≥ m·a·v for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain
from itertools import product as signs_of
from math import gcd, lcm
from typing import Any, final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.hyperplane import NO
from overexplain.knowledge.checker import Answer, Term
from overexplain.knowledge.enclosures import enclose, exponent_and_weights, product
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.coding import Coding
from overexplain.knowledge.prover.facts import FLIPS, NAMES, PLANE, SIDE
from overexplain.knowledge.prover.reduction import LinearFacts, Weights
from overexplain.knowledge.prover.written import roughly

ZERO, ONE = Fraction(0), Fraction(1)


@final
@dataclass(frozen=True)
class Stated:
    """A form over (a, b) that is ≥ 0 by the terms `plus`; an equality has terms for its reverse, too."""

    left: tuple[Fraction, ...]
    plus: tuple[Term, ...]
    minus: tuple[Term, ...] = ()
    is_strict: bool = False

    def times(self, factor: Fraction) -> Stated:
        """The same fact, multiplied."""
        plus, minus = (
            tuple(replace(term, weight=term.weight * factor) for term in terms) for terms in (self.plus, self.minus)
        )
        return replace(self, left=tuple(v * factor for v in self.left), plus=plus, minus=minus)


@final
@dataclass(frozen=True, eq=False)
class Statements:
    """The linear facts of a log; `origin` and `name` say which row and fact those about points are."""

    facts: LinearFacts
    origin: IntArray
    name: IntArray
    stated: Sequence[Stated] = field(default=())

    def rows_of(self, facts: Iterable[int]) -> set[int]:
        """The log's rows that some facts rest on."""
        found: set[int] = set()
        for i in facts:
            found |= {int(self.origin[i])} if i < len(self.origin) else _rows(self.stated[i - len(self.origin)])
        return found

    def without(self, row: int) -> Statements:
        """All facts that do not rest on a row."""
        every = np.arange(len(self.facts.strict))
        kept = np.array([row not in self.rows_of([i]) for i in every.tolist()], dtype=bool)
        return self.only(every[kept])

    def only(self, rows: IntArray) -> Statements:
        """Some of the facts."""
        count = len(self.origin)
        at, formed = rows[rows < count], rows[rows >= count] - count
        return Statements(
            self.facts.only(rows), self.origin[at], self.name[at], [self.stated[i] for i in formed.tolist()]
        )

    def terms(self, weights: Weights, both: Sequence[int] = ()) -> list[Term]:
        """The checker's terms for some weights, what matters most first; equalities in `both` are named either way."""
        found: list[Term] = []
        for i, weight in weights.items():
            found += self._terms(i, weight)
        for i in both:
            found += [*self._terms(i, ONE), *self._terms(i, -ONE)]
        return sorted(_joined(found), key=lambda term: (term.fact == "hoelder", -roughly(term.weight)))

    def _terms(self, i: int, weight: Fraction) -> Iterator[Term]:
        if i < len(self.origin):
            name, sign = int(self.name[i]), 1 if weight > 0 else -1
            assert sign > 0 or name == PLANE
            yield Term(NAMES[name], abs(weight), int(self.origin[i]), sign=sign)
            return
        stated = self.stated[i - len(self.origin)]
        for term in stated.plus if weight > 0 else stated.minus:
            yield replace(term, weight=term.weight * abs(weight))


def _joined(terms: Sequence[Term]) -> Iterator[Term]:
    """Equal terms as one, and one Hölder term for each norm, which its row tells."""
    weights: dict[Any, Fraction] = {}
    named: dict[Any, Term] = {}
    vectors: dict[int | None, list[Fraction]] = {}
    for term in terms:
        if term.fact == "hoelder":
            assert term.vector is not None
            total = vectors.get(term.row, [ZERO] * len(term.vector))
            vectors[term.row] = [a + term.weight * b for a, b in zip(total, term.vector, strict=True)]
        else:
            key = (term.fact, term.row, term.sign, term.index, term.vector)
            weights[key] = weights.get(key, ZERO) + term.weight
            named.setdefault(key, term)
    for key, weight in weights.items():
        yield replace(named[key], weight=weight)
    for row, vector in vectors.items():
        if any(vector):
            yield Term("hoelder", ONE, row, vector=tuple(vector))


def _rows(stated: Stated) -> set[int]:
    return {term.row for term in (*stated.plus, *stated.minus) if term.row is not None}


def read_statements(
    blocks: Sequence[Block], answers: Mapping[int, Answer], *, swapped: bool = False, constants: bool = False
) -> Statements:
    """The facts of labels, of merely valid answers, and of exact ones without tolerance."""
    parts: list[tuple[FloatArray, IntArray, BoolArray, IntArray, int]] = []
    exact: list[int] = []
    for block in blocks:
        moved = np.zeros(len(block.rows), dtype=bool)
        if block.is_exact or block.is_off_plane:
            assert block.answers is not None
            moved = (block.answers != block.points).any(axis=1) & (not block.is_confined)
        elif block.is_optimal and not block.is_robust and not block.tolerance.any():
            # Where it lies is linear, how it got there is not.
            assert block.answers is not None
            parts.append((block.answers, np.ones_like(block.sides), np.zeros_like(moved), block.rows, PLANE))
        if block.is_exact:
            assert block.answers is not None
            assert block.terms is not None
            parts.append((block.answers, np.ones_like(block.sides), np.zeros_like(moved), block.rows, PLANE))
            if block.terms.distance is not None:
                exact += block.rows[moved & (block.sides != 0)].tolist()
        elif (
            block.answers is not None
            and not block.is_robust
            and (not block.is_measured or (block.slack and not block.tolerance.any()))
        ):
            parts.append((block.answers, -block.sides, np.zeros_like(moved), block.rows, FLIPS))
        own = np.flatnonzero(block.sides)
        is_strict = (block.sides == NO) | moved
        parts.append((block.points[own], block.sides[own], is_strict[own], block.rows[own], SIDE))
    points, sides, strict, origin = (np.concatenate([part[k] for part in parts]) for k in range(4))
    name = np.concatenate([np.full(len(part[0]), part[4]) for part in parts])
    coding = Coding(points)
    listed = [row for block in blocks if block.is_listed for row in block.rows.tolist() if any(answers[row].step)]
    forms = chain(_of_exact(answers, exact), *(_of_slack(answers[row], row) for row in listed))
    stated = [_short(one, coding) for one in forms]
    facts = LinearFacts(
        points,
        sides,
        np.append(strict, [one.is_strict for one in stated]).astype(bool),
        np.append(name == PLANE, [bool(one.minus) for one in stated]).astype(bool),
        [one.left for one in stated],
        swapped=swapped,
        constants=constants,
        coding=coding,
    )
    return Statements(facts, origin, name, stated)


def _of_slack(answer: Answer, row: int) -> Iterator[Stated]:
    """y·(a·x − b) ≥ m·t for an answer with slack: m times every corner of the unit ball, where there are few."""
    assert answer.label is not None
    assert answer.slack is not None
    size = len(answer.point)
    q, weights = exponent_and_weights(answer.distance, size)
    least = enclose(answer.distance, answer.step)[0] / (1 + answer.slack)
    own = [*(answer.label * v for v in answer.point), Fraction(-answer.label)]
    corners = (
        (_unit(size, i, sign / weights[i]) for i in range(size) for sign in (1, -1))
        if q == 1
        else ([sign / d for sign, d in zip(signs, weights, strict=True)] for signs in signs_of((1, -1), repeat=size))
    )
    for corner in corners:
        down = [-least * v for v in corner]
        left = [a + b for a, b in zip(own, [*down, ZERO], strict=True)]
        yield Stated(tuple(left), (Term("side", ONE, row), Term("hoelder", ONE, row, vector=tuple(down))))


def _short(stated: Stated, coding: Coding) -> Stated:
    """The fact in short whole numbers, in the units of the coding."""
    form = coding.form(stated.left)
    below = lcm(*(v.denominator for v in form))
    return stated.times(Fraction(below, gcd(*(int(v * below) for v in form))))


def _of_exact(answers: Mapping[int, Answer], exact: Sequence[int]) -> Iterator[Stated]:
    """What steps say of the direction of a."""
    groups: dict[str, list[int]] = {}
    for row in exact:
        groups.setdefault(repr(answers[row].distance), []).append(row)
    for rows in groups.values():
        first = answers[rows[0]]
        if product(first.distance, first.step, first.step) is not None:
            yield from _of_smooth(answers, rows)
            continue
        q, weights = exponent_and_weights(first.distance, len(first.step))
        flat = _Flat(answers, rows, weights)
        yield from flat.of_l1() if q == 1 else flat.of_linf()


def _of_smooth(answers: Mapping[int, Answer], rows: Sequence[int]) -> Iterator[Stated]:
    """ℓ2 and its kin: a has no part across the step. One step is enough, but for steps that disagree with it."""
    shown: list[Fraction] | None = None
    for row in rows:
        answer = answers[row]
        assert answer.label is not None
        size = len(answer.step)
        gradient = [product(answer.distance, answer.step, _unit(size, i)) or ZERO for i in range(size)]
        way = [-answer.label * v for v in gradient]
        if shown is not None and _is_parallel(way, shown):
            continue
        shown = way
        k = max(range(size), key=lambda i: abs(way[i]))
        for i in range(size):
            if i != k:
                across = _unit(size, i, way[k])
                across[k] = -way[i]
                plus, minus = (
                    Term("ray", ONE, row, vector=tuple(sign * v for v in across)) for sign in (1, -1)
                )  # fmt: skip
                yield Stated((*across, ZERO), (plus,), (minus,))


def _is_parallel(u: Sequence[Fraction], v: Sequence[Fraction]) -> bool:
    """True if u is v times a number above 0."""
    k = max(range(len(v)), key=lambda i: abs(v[i]))
    return u[k] * v[k] > 0 and all(a * v[k] == b * u[k] for a, b in zip(u, v, strict=True))


def _unit(size: int, i: int, value: Fraction = ONE) -> list[Fraction]:
    return [value if j == i else ZERO for j in range(size)]


@final
class _Flat:
    """Exact answers under one ℓ1 or ℓ∞ with weights d."""

    def __init__(self, answers: Mapping[int, Answer], rows: Sequence[int], weights: Sequence[Fraction]) -> None:
        self.answers, self.rows, self.d = answers, rows, weights
        self.size = len(weights)

    def _sign(self, row: int, i: int) -> int:
        answer = self.answers[row]
        assert answer.label is not None
        return -answer.label if answer.step[i] > 0 else answer.label

    def _hoelder(self, vector: Sequence[Fraction]) -> Term:
        return Term("hoelder", ONE, self.rows[0], vector=tuple(vector))

    def of_l1(self) -> Iterator[Stated]:
        """t is what moved, and no entry is longer."""
        tied = {
            (i, self._sign(row, i)): row
            for row in self.rows[::-1]
            for i in range(self.size)
            if self.answers[row].step[i]
        }
        (best, sign), row = next(iter(tied.items()))
        reach = _unit(self.size, best, sign / self.d[best])
        base = Term("entry", 1 / self.d[best], row, index=best)
        yield Stated((*reach, ZERO), (base,), is_strict=True)
        for (i, side), row in tied.items():
            own = _unit(self.size, i, side / self.d[i])
            if own != reach:
                left = [a - b for a, b in zip(own, reach, strict=True)]
                entry = Term("entry", 1 / self.d[i], row, index=i)
                yield Stated(
                    (*left, ZERO),
                    (entry, self._hoelder([-v for v in reach])),
                    (base, self._hoelder([-v for v in own])),
                )
        for j in {*range(self.size)} - {i for i, _ in tied}:
            for side in (1, -1):
                other = _unit(self.size, j, side / self.d[j])
                left = [a + b for a, b in zip(reach, other, strict=True)]
                yield Stated((*left, ZERO), (base, self._hoelder(other)))

    def of_linf(self) -> Iterator[Stated]:
        """What did not move farthest does not count, and the rest has the sign of its step."""
        zero: dict[int, int] = {}
        signed: dict[tuple[int, int], int] = {}
        for row in self.rows:
            moved = [d * abs(v) for d, v in zip(self.d, self.answers[row].step, strict=True)]
            farthest = max(moved)
            for i, far in enumerate(moved):
                if far < farthest:
                    zero.setdefault(i, row)
                else:
                    signed.setdefault((i, self._sign(row, i)), row)
        for i, row in zero.items():
            plus, minus = (Term("entry", ONE, row, sign=sign, index=i) for sign in (1, -1))
            yield Stated((*_unit(self.size, i), ZERO), (plus,), (minus,))
        for (i, sign), row in signed.items():
            if i not in zero:
                yield Stated((*_unit(self.size, i, Fraction(sign)), ZERO), (Term("entry", ONE, row, index=i),))
