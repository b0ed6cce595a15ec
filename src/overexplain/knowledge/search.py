"""Robust points that the convex set leaves open, decided by cases: is there a model with s ≤ ‖a‖* against the claim?

‖a‖* ≥ s is the one constraint that is not convex. In a box around a its chords take its place; where they leave a model against the
claim the box is cut in two, at the entry where chord and power differ most. Where ‖a‖* is a maximum over a few corners (robustness
ℓ1, or polyhedral) each corner is a case. Every case is one linear program, whose weights are its proof; first the box is made as
small as the denial of the claim allows, which often leaves nothing to cut. What comes out is a proof in rationals, a model beyond,
or neither in time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.geometry.polyhedral import Polyhedral
from overexplain.knowledge.branches import MOST_CORNERS
from overexplain.knowledge.checker import Bound, Branch, Branched, Context, Fact, Term
from overexplain.knowledge.chords import Box, Chord, corner_chords, dual_exponent, dual_units, make_chord, unit_of
from overexplain.knowledge.conic import Conic
from overexplain.knowledge.enclosures import corners_of
from overexplain.knowledge.exact import ONE
from overexplain.knowledge.facts import Facts, Secret
from overexplain.knowledge.inside import ROOM
from overexplain.knowledge.program import Program, Solution
from overexplain.knowledge.shells import own_lengths
from overexplain.knowledge.terms import TermMaker, chord_term
from overexplain.knowledge.ties import Exact

MOST_LEAVES = 2000
"""Cases that are looked at before a point is left undecided."""

TANGENTS = 8
"""Tangents to s^κ that one case may add."""

CLOSE = 1e-9
"""A model whose s exceeds ‖a‖* by no more than this, relatively, is taken for one where they are equal."""

ROUNDS = 3
"""How often the box is made smaller before it is cut."""


@dataclass(frozen=True)
class Draft:
    """Weights of the program's columns, Hölder vectors, and what is beside them with its weight, all in float64."""

    solution: Solution
    beside: tuple[tuple[Chord | Term, float], ...]

    @property
    def extra(self) -> tuple[Term, ...]:
        """The terms that are not the program's."""
        return tuple(
            replace(chord_term(what) if isinstance(what, Chord) else what, weight=Fraction(weight))
            for what, weight in self.beside
        )


@dataclass
class Node:
    """A case: bounds found for its box, and then a contradiction, or its parts."""

    box: Box
    corner: int | None = None
    bounds: list[tuple[int, int, Draft]] = field(default_factory=list)
    closed: Draft | None = None
    empty: int | None = None
    index: int | None = None
    value: float = 0.0
    parts: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """A proof; or a model with s ≤ ‖a‖* against the claim; or neither."""

    branches: Branched | None = None
    beyond: FloatArray | None = None


class _Beyond(Exception):
    """A model with s ≤ ‖a‖* was found."""

    def __init__(self, model: FloatArray) -> None:
        super().__init__()
        self.model = model


@final
class Search:
    """Decides claims sign·(a·x − b) ≥ 0 by cases; one object for any number of points of a log."""

    def __init__(self, facts: Facts, program: Program, maker: TermMaker) -> None:
        self._facts, self._program, self._maker = facts, program, maker
        self._balls = {ball: fact.row for ball, fact in own_lengths(facts)}
        unit = unit_of(facts)
        self._conic: Conic | None = None
        if unit is None or program.conic is None or not self._balls:
            return
        conic = program.conic.without([facts.norms.index(ball) for ball in self._balls])
        if conic.is_linear and conic.unit == unit:
            assert program.box is not None
            self._conic, self._box = conic, program.box
            self._columns = np.array(
                [c for c in program.columns_for_cones() if program.key(int(c)).fact != "chord"], dtype=np.int64
            )
            rights = program.sharp(self._columns, ROOM)
            self._lengths = rights.shape[1]
            self._ready = conic.prepare(program.vectors[self._columns], rights, elastic=True)

    @property
    def applies(self) -> bool:
        """True if the log is one for it: steps under a distance with a polyhedral ball."""
        return self._conic is not None

    def decide(self, x: FloatArray, point: Exact, sign: int, deadline: float | None) -> Outcome:
        """The proof of the claim, a model beyond, or neither."""
        denied = Fact([-sign * v for v in (*point, Fraction(-1))], (), sign == YES)
        claim = [sign * v for v in (*point, Fraction(-1))]
        return self._decide(sign * np.append(x, -1.0), claim, denied, deadline)

    def explore(self, deadline: float | None) -> Outcome:
        """A model with s ≤ ‖a‖* that keeps everything linear, or the proof that there is none: no model gave the answers."""
        nothing = np.zeros(self._facts.dimension + 1)
        return self._decide(nothing, [Fraction(0)] * len(nothing), None, deadline)

    def _decide(
        self, target: FloatArray, claim: Sequence[Fraction], denied: Fact | None, deadline: float | None
    ) -> Outcome:
        run = _Run(self, target, deadline)
        try:
            root = run.whole()
        except _Beyond as found:
            return Outcome(beyond=found.model)
        except SolverFailed:
            return Outcome()
        assert self._maker.context is not None
        branch = self._written(root, replace(self._maker.context, denied=denied), claim)
        if branch is None:
            return Outcome()
        branch = replace(branch, bounds=(*self._maker.bounds, *branch.bounds))
        return Outcome(Branched(self._maker.unit_row, branch))

    # Proofs in rationals.

    def _written(self, node: Node, context: Context, target: Sequence[Fraction]) -> Branch | None:
        """The case in exact numbers; None if rounding took the proof with it."""
        bounds: list[Bound] = []
        p = self._facts.dimension
        for i, sign, draft in node.bounds:
            wanted = [Fraction(sign * int(k == i)) for k in range(p + 1)]
            terms = self._exact(draft, wanted, context)
            if terms is None:
                return None
            totals = self._maker.totals(terms, context)
            value = totals[self._conic.unit] if self._conic else Fraction(0)
            value = _rounded_down(value)
            if value > context.box.get((i, sign), Fraction(-(10**9))):
                bounds.append(Bound(i, sign, value, tuple(terms)))
                context = context.tightened(i, sign, value)
        if node.empty is not None:
            ends = tuple(Term("bound", ONE, sign=sign, index=node.empty) for sign in (1, -1))
            return Branch(ends, tuple(bounds))
        if node.closed is not None:
            terms = self._exact(node.closed, target, context)
            against = () if context.denied is None else (Term("denied", ONE),)
            return None if terms is None else Branch((*against, *terms), tuple(bounds))
        parts: list[Branch] = []
        corners = [] if node.corner is None else self._corners(node.corner)
        for n, part in enumerate(node.parts):
            there = context
            if node.corner is not None:
                there = replace(context, corner=corners[n][1])
            elif node.index is not None:
                value = Fraction(node.value)
                there = context.tightened(node.index, (-1, 1)[n], (-value, value)[n])
            written = self._written(part, there, target)
            if written is None:
                return None
            parts.append(written)
        if node.corner is not None:
            return Branch((), tuple(bounds), corners=node.corner, parts=tuple(parts))
        return Branch((), tuple(bounds), node.index, Fraction(node.value), parts=tuple(parts))

    def _exact(self, draft: Draft, target: Sequence[Fraction], context: Context) -> list[Term] | None:
        extra = draft.extra
        terms = self._maker.balanced(draft.solution, target, context, extra)
        return None if terms is None else [*terms, *extra]

    def _corners(self, row: int) -> list[tuple[FloatArray, Fact]]:
        """The corners d of a ball, and a·d ≥ s as the checker states it, in the checker's order."""
        ball = next(fact.ball for fact in self._facts.off_plane if fact.row == row)
        assert not isinstance(ball, Secret)
        corners = [[*d, Fraction(0)] for d in corners_of(ball.spec, self._facts.dimension)]
        return [(np.array([float(v) for v in d]), Fact(d, ((ball.spec, ONE),))) for d in corners]


@final
class _Run:
    """One claim: the tree of its cases in float64."""

    def __init__(self, search: Search, target: FloatArray, deadline: float | None) -> None:
        self.search, self.target, self.deadline = search, target, deadline
        self.leaves = 0
        facts = search._facts
        self.norms = {facts.norms.index(ball): row for ball, row in search._balls.items()}
        self.shapes = {n: dual_exponent(facts.norms[n], facts.dimension) for n in self.norms}

    def whole(self) -> Node:
        """The tree of all cases, every one closed; SolverFailed if that takes too long."""
        node = Node(self.search._box)
        flat = [n for n in self.norms if self._is_flat(n)]
        if not self._try(node, ()):
            if not flat:
                self._narrow(node, ())
                if node.empty is not None or self._try(node, ()):
                    return node
            self._split(node, (), flat[:1])
        return node

    def _is_flat(self, number: int) -> bool:
        """True if ‖a‖* is a maximum over corners few enough for a case each."""
        norm, shape = self.search._facts.norms[number], self.shapes[number]
        if shape is None:
            return isinstance(norm, Polyhedral) and len(norm.vertices) <= MOST_CORNERS
        return bool(np.isinf(shape[0]))

    def _split(self, node: Node, above: tuple[tuple[FloatArray, FloatArray, Term], ...], flat: list[int]) -> None:
        """Cut an open case in two, or into the corners of a ball, until all are closed."""
        if flat:
            number = flat[0]
            node.corner = self.norms[number]
            for d, _ in self.search._corners(node.corner):
                right = np.zeros(self.search._lengths)
                right[number] = 1.0
                part = Node(node.box)
                node.parts.append(part)
                corner = (*above, (d, right, Term("corner", ONE)))
                if not self._try(part, corner):
                    self._split(part, corner, [])
            return
        index, value = self._where(node.box)
        node.index, node.value = index, value
        node.parts = [Node(node.box.cut(index, high=value)), Node(node.box.cut(index, low=value))]
        for part in node.parts:
            if not self._try(part, above):
                self._split(part, above, [])

    def _confine(
        self, box: Box, above: Sequence[tuple[FloatArray, FloatArray, Term]], chords: Sequence[Chord]
    ) -> list[Chord | Term]:
        """Put a case to the solver: its box, its chords and what is assumed above; what its rows are."""
        vectors, rights = [np.append(chord.slopes, 0.0) for chord in chords], []
        for chord in chords:
            right = np.zeros(self.search._lengths)
            right[box.unit], right[chord.ball] = -chord.gamma, chord.delta
            rights.append(right)
        vectors += [vector for vector, _, _ in above]
        rights += [right for _, right, _ in above]
        far = np.where(np.abs(box.low) > np.abs(box.high), box.low, box.high)
        # A side that steps leave no room: a model at the end of what they tolerate would not be kept by others.
        fixed, value = box.high - box.low <= 1e-9 * np.abs(far), np.where(box.low * box.high > 0, far, 0.0)
        low, high = np.where(fixed, value, box.low), np.where(fixed, value, box.high)
        self.search._ready.confine(low, high, np.array(vectors), np.array(rights))
        return [*chords, *(term for _, _, term in above)]

    def _solve(self, target: FloatArray, rows: Sequence[Chord | Term]) -> tuple[float, Draft, FloatArray, FloatArray]:
        """(the least target·(a, b) at t = 1 in the case put to the solver, its proof, the model, the lengths)."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise SolverFailed("out of time")
        found = self.search._ready.solve(target)
        columns = self.search._columns
        weights = np.zeros(len(self.search._program))
        weights[columns] = found.weights[: len(columns)]
        rest = found.weights[len(columns) :]
        beside: list[tuple[Chord | Term, float]] = [(row, float(w)) for row, w in zip(rows, rest, strict=True) if w > 0]
        for i in np.flatnonzero(found.sides):
            side = Term("bound", ONE, sign=1 if found.sides[i] > 0 else -1, index=int(i))
            beside.append((side, abs(float(found.sides[i]))))
        solution = Solution(found.value, weights, found.model, 1.0, found.directions)
        return found.value, Draft(solution, tuple(beside)), found.model, found.lengths

    def _chords(self, box: Box, lengths: Mapping[int, Sequence[float]]) -> list[Chord]:
        """The chords of a box, tangent at the given values of s and at the largest it can have there."""
        found: list[Chord | None] = []
        for number, row in self.norms.items():
            shape, facts = self.shapes[number], self.search._facts
            if shape is None:
                found += [*corner_chords(facts, row, number, box), make_chord(facts, row, number, box, 1.0)]
                continue
            powers: list[tuple[float, float | None]] = [(shape[0], None)]
            if np.isfinite(shape[0]) and shape[0] > 1:
                powers += [(shape[0], at) for at in lengths.get(number, ())]
            if shape[0] > 1:
                powers.append((1.0, None))
            found += [make_chord(facts, row, number, box, power, at) for power, at in powers]
        return [chord for chord in found if chord is not None]

    def _try(self, node: Node, above: tuple[tuple[FloatArray, FloatArray, Term], ...]) -> bool:
        """True if the case is closed: no model of its box is against the claim."""
        self.leaves += 1
        if self.leaves > MOST_LEAVES:
            raise SolverFailed("too many cases")
        touched: dict[int, list[float]] = {number: [] for number in self.norms}
        scale = float(np.abs(np.ldexp(self.target, self.search._program.exponents)).max()) or 1.0
        for _ in range(TANGENTS):
            terms = self._confine(node.box, above, self._chords(node.box, touched))
            value, draft, model, lengths = self._solve(self.target, terms)
            if value > 1e-9 * scale:
                node.closed = draft
                return True
            self._check(model, lengths)
            if not self._add_tangents(node.box, model, lengths, touched):
                break
        self._last = (model, lengths)
        return False

    def _check(self, model: FloatArray, lengths: FloatArray) -> None:
        """Stop if the model has s ≤ ‖a‖*, or as good as that."""
        facts = self.search._facts
        if (self.target @ model < 0 or not self.target.any()) and all(
            float(facts.norms[number].dual(model[:-1])) >= lengths[number] * (1 - CLOSE) for number in self.norms
        ):
            raise _Beyond(model)

    def _add_tangents(self, box: Box, model: FloatArray, lengths: FloatArray, touched: dict[int, list[float]]) -> bool:
        """True if a tangent at the model's s would cut it off; it is added."""
        added = False
        for number, at in touched.items():
            shape, s = self.shapes[number], float(lengths[number])
            if shape is None or np.isinf(shape[0]) or shape[0] == 1 or s <= 0 or any(abs(s - v) < 1e-6 * v for v in at):
                continue
            chord = make_chord(self.search._facts, self.norms[number], number, box, shape[0], s)
            if chord is not None and chord.delta * s > chord.gamma + chord.slopes @ model[:-1] + 1e-9:
                at.append(s)
                added = True
        return added

    def _narrow(self, node: Node, above: tuple[tuple[FloatArray, FloatArray, Term], ...]) -> None:
        """Make the box as small as the facts and the claim's denial allow, entry by entry."""
        p = self.search._facts.dimension
        none = np.zeros(self.search._lengths)
        denied = (*above, (-self.target, none, Term("denied", ONE))) if self.target.any() else above
        for _ in range(ROUNDS):
            before = float((node.box.high - node.box.low).sum())
            terms = self._confine(node.box, denied, self._chords(node.box, {}))
            for i in range(p):
                for sign in (1, -1):
                    if node.box.high[i] - node.box.low[i] < 1e-7 * max(abs(node.box.high[i]), abs(node.box.low[i])):
                        continue
                    target = np.zeros(p + 1)
                    target[i] = sign
                    value, draft, _, _ = self._solve(target, terms)
                    value -= 1e-9 * abs(value) + 1e-12
                    have = node.box.low[i] if sign > 0 else -node.box.high[i]
                    if value <= have + 1e-3 * (node.box.high[i] - node.box.low[i]):
                        continue
                    node.bounds.append((i, sign, draft))
                    if value > (node.box.high[i] if sign > 0 else -node.box.low[i]) + 1e-9:
                        node.empty = i
                        return
                    node.box = node.box.cut(i, low=value) if sign > 0 else node.box.cut(i, high=-value)
                    terms = self._confine(node.box, denied, self._chords(node.box, {}))
            if float((node.box.high - node.box.low).sum()) > 0.9 * before:
                return

    def _where(self, box: Box) -> tuple[int, float]:
        """(entry, value) at which to cut: where chords are farthest from powers at the last model."""
        model, _ = self._last
        a = model[:-1]
        gaps = np.zeros(len(a))
        wide = np.maximum(box.high - box.low, 1e-300)
        share = np.clip((a - box.low) / wide, 0.0, 1.0)
        for number, shape in self.shapes.items():
            if self._is_flat(number):
                continue
            if shape is None:  # a convex function of one entry is off by at most this, wherever the others are
                units = dual_units(self.search._facts.norms[number], len(a))
                gaps = np.maximum(gaps, (0.05 + share * (1 - share)) * wide * units)
                continue
            r, e = shape
            low, high = np.abs(box.low / e) ** r, np.abs(box.high / e) ** r
            gaps = np.maximum(gaps, (1 - share) * low + share * high - np.abs(a / e) ** r)
        gaps[box.high - box.low < 1e-9] = 0.0
        i = int(np.argmax(gaps))
        if gaps[i] <= 1e-12:
            raise SolverFailed("the case is as small as can be, and open")
        least, most = float(box.low[i]), float(box.high[i])
        if least < 0 < most and min(-least, most) > 1e-6 * (most - least):
            return i, 0.0
        return i, float(np.clip(a[i], least + 0.2 * (most - least), most - 0.2 * (most - least)))


def _rounded_down(value: Fraction) -> Fraction:
    """A shorter number just below: the bounds of a proof are used many times."""
    return Fraction(int(value * 2**60) - 1, 2**60)
