"""What bounds the length s = ‖a‖* of a robustness ball from above, and models for which it is neither more nor less.

Facts say s ≥ ‖a‖*, by Hölder's inequality, and leave models with s > ‖a‖*, which nothing linear excludes. But between a
model of the facts with s ≥ ‖a‖* and one with s ≤ ‖a‖* lies one with s = ‖a‖* (docs/theory/ties.md), and what both break
it breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm
from overexplain.geometry.polyhedral import Facets
from overexplain.knowledge.checker import Answer, Bound, Context, Term, fact_of
from overexplain.knowledge.chords import (
    Box,
    Chord,
    chord_term,
    corner_chords,
    dual_exponent,
    make_chord,
    root_box,
    whole_box,
)
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.facts import LEVELS, Secret, length_error
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.facts import CHORD, NEAREST, UP, Facts, Ties, rows_of

ONE = Fraction(1)
STEPS = 32
"""Steps that are asked for single entries of a, the sharpest first."""
ROUGH = 1e-11
"""How far, relatively, the float64 numbers of a chord may be off."""
LINEAR = 1e-8
"""How much room, as a share of itself, s may have and be taken for a linear form."""
STEPS_BETWEEN, LEVEL, NARROW, SHY = 60, 2.0**-50, 2.0**-52, 1 - 2.0**-44
"""Steps, at most, to where s exceeds ‖a‖* by no more than a share of itself, or to within a share of the way; how far each goes."""
KEPT = 2048
"""Models with more, and with less, that are kept."""
SOLVED, NEW, AGAIN = 16, 1e-9, 4
"""So many models are asked for corners at once, which have to be farther out by such a share, and so often."""
OTHERS = 2
PARTNERS = 3
"""So many models on the other side each new one is paired with."""


@final
class Balls:
    """What a log says about the balls of its robust answers.

    chords  facts γ·t + α·a − δ·s ≥ 0; `shapes` has the chord that each is, by its index
    linear  for chords that s reaches, as it is a linear form in a, (the number of s, the g with s ≥ g·a)
    boxes   for the number of each distance of robust rows what steps say of single entries of a
    least   for the number of each length of a ball a row over the unknowns that are left, r·z ≥ 0, that bounds it from above: the
            least answer (`rows`) lies across, and its question does not
    """

    def __init__(
        self, blocks: Sequence[Block], norms: Sequence[Norm | Secret], ties: Ties, p: int, *, is_branched: bool
    ) -> None:
        self._ties = ties
        self.linear: dict[int, tuple[int, FloatArray]] = {}
        self.shapes: list[Chord] = []
        self.boxes: dict[int, tuple[Norm, Box]] = {}
        self._context: tuple[tuple[Bound, ...], Context] | None = None
        self.least: dict[int, FloatArray] = {}
        self.rows: dict[int, int] = {}
        size, parts = p + 1 + len(norms), []
        distances = {
            b.number: b.norm for b in blocks if b.ball not in (-1, b.number) and not isinstance(b.reach, Secret)
        }
        for number, distance in distances.items():
            # A proof measures entries of a in one distance: with several, nothing is used that steps say of them.
            known = (
                [b for b in blocks if b.number == number and b.is_optimal]
                if is_branched and len(distances) == 1
                else []
            )
            self.boxes[number] = distance, _box(known, distance, p)
        for k, norm in enumerate(norms):
            own = [block for block in blocks if block.ball == k != block.number]
            if not own:
                continue
            self._find_least(own, k, ties, p, size)
            if isinstance(norm, Secret):
                continue
            for number in dict.fromkeys(block.number for block in own):
                parts += self._of_distance([block for block in own if block.number == number], norm, k, p, size)
        self.chords = Facts.joined(parts, size)

    def context(self, answers: Mapping[int, Answer], evidence: Evidence) -> tuple[tuple[Bound, ...], Context | None]:
        """(proofs of what steps say of single entries of a, the box that they make), if robust rows have one distance."""
        if len(self.boxes) != 1:
            return (), None
        if self._context is None:
            distance, box = next(iter(self.boxes.values()))
            bounds = tuple(_bound(box, i, sign, answers, evidence) for i, sign in sorted(box.why))
            context = Context(distance.spec, {(bound.index, bound.sign): bound.value for bound in bounds})
            self._context = bounds, context
        return self._context

    def needs_box(self, terms: Sequence[Term]) -> bool:
        """True if some chord among the terms was meant in the box that steps make."""
        chords = [replace(term, weight=ONE) for term in terms if term.fact == "chord"]
        return bool(chords) and any(chord_term(chord) in chords for chord in self.shapes if chord.box.why)

    def _of_distance(self, blocks: Sequence[Block], ball: Norm, k: int, p: int, size: int) -> list[Facts]:
        """What bounds the length of one ball by that of one distance, whose robust rows are in `blocks`."""
        block = blocks[0]
        at, units = p + 1 + block.number, block.norm.units(p)
        chords = _chords(block.norm, ball, self.boxes[block.number][1], int(block.rows[0]))
        parts = self._nearest(blocks, chords, size)
        for chord in chords if block.level in LEVELS[2:] else ():
            left = np.zeros((1, size))
            left[0, :p], left[0, p + 1 + k] = chord.slopes, -chord.delta
            left[0, at] = chord.gamma + ROUGH * (abs(chord.gamma) + float(np.abs(chord.slopes) @ units) + chord.delta)
            parts.append(rows_of(left, block.rows[:1], CHORD, index=len(self.shapes)))
            self.shapes.append(chord)
            parts += self._equality(chord, left, ball, k, at, block)
        return parts

    def _equality(
        self, chord: Chord, left: FloatArray, ball: Norm, k: int, at: int, block: Block
    ) -> list[Facts]:  # fmt: skip
        """s as a linear form, if a chord and Hölder's inequality leave it no room: all signs of a are known, or ties fix a."""
        p = len(chord.slopes)
        middle = np.where(self._ties.number == block.number, self._ties.value, (chord.box.low + chord.box.high) / 2)
        if not middle.any() or chord.box.why == {}:
            return []
        touched = np.asarray(ball.maximizer(middle))
        g = touched * (1 - 4 * length_error(ball, p))
        apart = left / chord.delta
        apart[0, :p] -= g
        apart[0, p + 1 + k] += 1.0
        rest = self._ties.inner(apart)[0]
        size = float(np.abs(self._ties.sizes(left / chord.delta)[0]).max())
        width = float(rest[len(self._ties.free) + 1 + block.number])
        others = np.delete(rest, len(self._ties.free) + 1 + block.number)
        if np.abs(others).max(initial=0.0) > 1e-9 * size or not 0 < width < LINEAR * size:
            return []
        width += float(np.abs(others[: len(self._ties.free)]) @ block.norm.units(p)[self._ties.free])
        index, equal = len(self.shapes) - 1, np.zeros_like(left)
        equal[0, :p], equal[0, p + 1 + k] = -touched, 1.0  # not the chord itself: it is a little more than s
        self.linear[index] = k, g
        return [rows_of(equal, block.rows[:1], CHORD, width=width * UP, number=block.number, index=index)]

    def _nearest(self, blocks: Sequence[Block], chords: Sequence[Chord], size: int) -> list[Facts]:
        """Robust answers are no farther behind the plane than each by itself may be, by the best chord: Hölder's inequality turns
        its slopes into t."""
        if not chords or not any(block.level == "perspective" and block.is_tight for block in blocks):
            return []
        own, p, found = blocks[0].norm, blocks[0].points.shape[1], []
        shares = [
            (chord.gamma + float(own(chord.slopes)) * (1 + length_error(own, p))) / chord.delta for chord in chords
        ]
        best = int(np.argmin(shares))
        for block in blocks:
            if block.level == "perspective" and block.is_tight:
                assert block.answers is not None
                left, y = np.zeros((len(block.rows), size)), block.sides.astype(np.float64)
                left[:, :p], left[:, p] = y[:, None] * block.answers, -y
                left[:, p + 1 + block.number] = block.radius * shares[best] * (1 + ROUGH) + block.tolerance * UP
                found.append(rows_of(left, block.rows, NEAREST, index=len(self.shapes), number=block.number))
        self.shapes.append(chords[best])
        return found

    def _find_least(self, blocks: Sequence[Block], k: int, ties: Ties, p: int, size: int) -> None:
        reach = [(float(v), block, j) for block in blocks for j, v in enumerate(block.lengths[1] / block.radius)]
        _, block, j = min(reach, key=lambda found: found[0])
        row = np.zeros((1, size))
        row[0, :p] = -block.sides[j] * block.step[j]
        row[0, p + 1 + block.number] = block.tolerance[j] * UP + 2.0**-50 * float(
            np.abs(block.step[j]) @ block.norm.units(p)
        )
        row[0, p + 1 + k] = -block.radius
        self.least[k], self.rows[k] = ties.inner(row)[0], int(block.rows[j])


def _box(blocks: Sequence[Block], distance: Norm, p: int) -> Box:
    """What the sharpest steps say of single entries of a, as shares of t."""
    known = [
        (float(v), block, j)
        for block in blocks
        for j, v in enumerate(block.tolerance / np.maximum(block.lengths[0], 1e-300))
    ]
    steps = [block.steepest(j) for _, block, j in sorted(known, key=lambda found: found[0])[:STEPS]]
    return root_box(distance, [step for step in steps if step.steepness > 0], p)


def _chords(distance: Norm, ball: Norm, box: Box, row: int) -> list[Chord]:
    """Upper bounds on s: over all models of t = 1, and over those in the box."""
    p = len(box.low)
    wide, shape = whole_box(distance, p), dual_exponent(ball, p)
    if shape is None:
        found: list[Chord | None] = [*corner_chords(ball, row, wide), make_chord(ball, row, wide, 1.0)]
        if box.why:
            found += [*corner_chords(ball, row, box), make_chord(ball, row, box, 1.0)]
    else:
        found = [make_chord(ball, row, wide, shape[0])]
        if box.why:
            found += [make_chord(ball, row, box, power) for power in dict.fromkeys((shape[0], 1.0))]
    return [chord for chord in found if chord is not None]


def _bound(box: Box, i: int, sign: int, answers: Mapping[int, Answer], evidence: Evidence) -> Bound:
    """sign·a_i ≥ value·t by a row's step and Hölder's inequality."""
    row, kappa = box.why[i, sign]
    step = Term("steepest", kappa, row)
    fact = fact_of(answers, step, evidence)
    rest = [-kappa * v for v in fact.left[:-1]]
    rest[i] += sign
    holder = Term("hoelder", ONE, row, vector=tuple(rest))
    value = kappa * fact.right + fact_of(answers, holder, evidence).right
    return Bound(i, sign, value, (step, holder))


@final
class Crossings:
    """Models of the unknowns with more of s than ‖a‖* and with less, and what lies between them; s is the length `number`, `column`
    and `unit` are the columns of s and t."""

    def __init__(self, norm: Norm, number: int, column: int, unit: int, ties: Ties) -> None:
        self.norm, self.number, self.column, self.unit, self._ties = norm, number, column, unit, ties
        self.more, self.less = np.zeros((0, ties.size)), np.zeros((0, ties.size))
        # Under faces every ‖a‖* takes a linear program: it is the most of a·v over the corners v that these have found.
        self._corners = np.zeros((0, len(ties.value))) if isinstance(norm, Facets) else None

    def fork(self) -> Crossings:
        """A copy that learns for itself."""
        twin = Crossings(self.norm, self.number, self.column, self.unit, self._ties)
        twin.more, twin.less, twin._corners = self.more, self.less, self._corners
        return twin

    def excess(self, models: FloatArray) -> FloatArray:
        """s − ‖a‖*."""
        return np.asarray(models[:, self.column] - self._length(self._ties.outer(models)[:, :-1]))

    def slopes(self, models: FloatArray, lift: FloatArray) -> FloatArray:
        """How s − ‖a‖* grows with each coordinate y of models lift·y."""
        outer = self._ties.outer(lift.T)[:, :-1].T
        longest = np.array([np.asarray(self.norm.maximizer(a)) for a in self._ties.outer(models)[:, :-1]])
        return np.asarray(lift[self.column] - longest @ outer)

    def _length(self, a: FloatArray) -> FloatArray:
        length = self.norm.dual(a) if self._corners is None else (a @ self._corners.T).max(axis=1, initial=0.0)
        return np.asarray(length)

    def _has_new_corners(self, models: FloatArray) -> bool:
        """True if some of the models show corners that were not known; now they are."""
        if self._corners is None:
            return False
        before = len(self._corners)
        for a in self._ties.outer(models[:: 1 + len(models) // SOLVED])[:, :-1]:
            v = self.norm.maximizer(a)
            if v @ a > (self._corners @ a).max(initial=0.0) * (1 + NEW):
                self._corners = np.vstack([self._corners, v, -v])
        return len(self._corners) > before

    def learn(self, models: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(those with more, those with less) among the models, with t = 1; they are kept."""
        t = models[:, self.unit]
        models = models[t > 0] / t[t > 0, None]
        models = models[np.isfinite(models).all(axis=1)]
        self._has_new_corners(models)
        is_more = self.excess(models) >= 0
        self.more = np.vstack([self.more, models[is_more]])[-KEPT:]
        self.less = np.vstack([self.less, models[~is_more]])[-KEPT:]
        return models[is_more], models[~is_more]

    def between(self, more: FloatArray, less: FloatArray) -> FloatArray:
        """For pairs of models the one between them with s = ‖a‖*, as far as floats tell: ‖a‖* − s is convex, so there is one."""
        if not len(more):
            return more
        found = more
        for _ in range(AGAIN):
            found = np.asarray(more + self._shares(more, less)[:, None] * (less - more))
            if not self._has_new_corners(found):
                break
        return found

    @np.errstate(all="ignore")
    def _shares(self, more: FloatArray, less: FloatArray) -> FloatArray:
        """How far on the way from each model with more there still is more. The excess is concave: its chords end before the place
        that is looked for, and through two points behind it they end behind it."""
        start, end = self._ties.outer(more)[:, :-1], self._ties.outer(less)[:, :-1]
        s, gain = more[:, self.column], less[:, self.column] - more[:, self.column]

        def excess(at: FloatArray) -> FloatArray:
            return np.asarray(s + at * gain - self._length(start + at[:, None] * (end - start)))

        low, high, far = np.zeros(len(more)), np.ones(len(more)), np.full(len(more), np.inf)
        above, below, farther = excess(low), excess(high), np.full(len(more), -np.inf)
        is_open = above > LEVEL * s
        for step in range(STEPS_BETWEEN):
            if not is_open.any():
                break
            at = low + SHY * (high - low) * above / (above - below)
            value = excess(at)
            low, above = np.where(is_open & (value >= 0), at, low), np.where(is_open & (value >= 0), value, above)
            slope = (below - farther) / (high - far)
            at = np.clip(np.where((slope < 0) & (step % 2 > 0), high - below / slope, (low + high) / 2), low, high)
            value = excess(at)
            is_less = value < 0
            low, above = np.where(is_open & ~is_less, at, low), np.where(is_open & ~is_less, value, above)
            far, farther = np.where(is_open & is_less, high, far), np.where(is_open & is_less, below, farther)
            high, below = np.where(is_open & is_less, at, high), np.where(is_open & is_less, value, below)
            is_open &= (above > LEVEL * (s + low * gain)) & (high - low > NARROW)
        return low

    def near(self, models: FloatArray) -> FloatArray:
        """Models between new ones and the last of the other kind."""
        more, less = self.learn(models)
        pairs = [(u, v) for u in more for v in self.less[-PARTNERS:]] + [
            (u, v) for v in less for u in self.more[-PARTNERS:]
        ]
        return self._of(pairs)

    def nearest(self, target: FloatArray) -> FloatArray:
        """Models with less that are nearest to breaking a claim."""
        return np.asarray(self.less[np.argsort(self.less @ target, kind="stable")[:OTHERS]])

    def against(self, targets: FloatArray) -> FloatArray:
        """Models that break claims, rows over the unknowns, where one with more and one with less do."""
        if not (len(self.more) and len(self.less) and len(targets)):
            return self.more[:0]
        up, down = targets @ self.more.T, targets @ self.less.T
        best, worst = up.argmin(axis=1), down.argmin(axis=1)
        every = np.arange(len(targets))
        broken = (up[every, best] < 0) & (down[every, worst] < 0)
        pairs = np.unique(np.column_stack([best[broken], worst[broken]]), axis=0)
        return self.between(self.more[pairs[:, 0]], self.less[pairs[:, 1]])

    def _of(self, pairs: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
        if not pairs:
            return self.more[:0]
        return self.between(np.array([u for u, _ in pairs]), np.array([v for _, v in pairs]))
