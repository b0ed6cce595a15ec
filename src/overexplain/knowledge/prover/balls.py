"""What bounds the length s = ‖a‖* of a robustness ball from above, and models for which it is neither more nor less.

Facts say s ≥ ‖a‖*, by Hölder's inequality, and leave models with s > ‖a‖*, which nothing linear excludes. But between a
model of the facts with s ≥ ‖a‖* and one with s ≤ ‖a‖* lies one with s = ‖a‖* (docs/theory/ties.md), and what both break
it breaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.chords import Chord, corner_chords, dual_exponent, make_chord, whole_box
from overexplain.knowledge.facts import Secret, no_facts
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.facts import CHORD, UP, Facts, Ties, rows_of

ROUGH = 1 + 1e-11
"""How far, relatively, the float64 numbers of a chord may be off."""
HALVINGS = 60
KEPT = 2048
"""Models with more, and with less, that are kept."""
NEAREST = 4
PARTNERS = 3
"""So many models on the other side each new one is paired with."""


@final
class Balls:
    """What a log says about the balls of its robust answers.

    chords  facts γ·t − δ·s ≥ 0; `shapes` has the chord that each is, by its index
    least   for the number of each length of a ball a row over the unknowns that are left, r·z ≥ 0, that bounds it from above: the
            least answer (`rows`) lies across, and its question does not
    """

    def __init__(self, blocks: Sequence[Block], norms: Sequence[Norm | Secret], ties: Ties, p: int) -> None:
        self.shapes: list[Chord] = []
        self.least: dict[int, FloatArray] = {}
        self.rows: dict[int, int] = {}
        size, parts = p + 1 + len(norms), []
        for k, norm in enumerate(norms):
            own = [block for block in blocks if block.ball == k != block.number]
            if not own:
                continue
            self._find_least(own, k, ties, p, size)
            if isinstance(norm, Secret):
                continue
            block = own[0]
            for chord in _chords(block.norm, norm, int(block.rows[0]), p):
                left = np.zeros((1, size))
                left[0, p + 1 + block.number], left[0, p + 1 + k] = chord.gamma * ROUGH, -chord.delta
                parts.append(rows_of(left, block.rows[:1], CHORD, index=len(self.shapes)))
                self.shapes.append(chord)
        self.chords = Facts.joined(parts, size)

    def _find_least(self, blocks: Sequence[Block], k: int, ties: Ties, p: int, size: int) -> None:
        reach = [(float(v), block, j) for block in blocks for j, v in enumerate(block.lengths[1] / block.radius)]
        _, block, j = min(reach, key=lambda found: found[0])
        row = np.zeros((1, size))
        row[0, :p] = -block.sides[j] * block.step[j]
        row[0, p + 1 + block.number] = block.tolerance[j] * UP + 2.0**-50 * float(np.abs(block.step[j]) @ block.norm.units(p))
        row[0, p + 1 + k] = -block.radius
        self.least[k], self.rows[k] = ties.inner(row)[0], int(block.rows[j])


def _chords(distance: Norm, ball: Norm, row: int, p: int) -> list[Chord]:
    """s ≤ C·t by the triangle inequality, or better by the shape of the ball."""
    facts = replace(no_facts(p), norms=(distance, ball))
    box, shape = whole_box(distance, 0, p), dual_exponent(ball, p)
    if shape is None:
        return [chord for chord in corner_chords(facts, row, 1, box) if not chord.slopes.any()]
    chord = make_chord(facts, row, 1, box, shape[0])
    return [] if chord is None or chord.slopes.any() else [chord]


@final
class Crossings:
    """Models of the unknowns with more of s than ‖a‖* and with less, and what lies between them; s is the length `number`, `column`
    and `unit` are the columns of s and t."""

    def __init__(self, norm: Norm, number: int, column: int, unit: int, ties: Ties) -> None:
        self.norm, self.number, self.column, self.unit, self._ties = norm, number, column, unit, ties
        self.more, self.less = np.zeros((0, ties.size)), np.zeros((0, ties.size))

    def fork(self) -> Crossings:
        """A copy that learns for itself."""
        twin = Crossings(self.norm, self.number, self.column, self.unit, self._ties)
        twin.more, twin.less = self.more, self.less
        return twin

    def excess(self, models: FloatArray) -> FloatArray:
        """s − ‖a‖*."""
        return np.asarray(models[:, self.column] - self.norm.dual(self._ties.outer(models)[:, :-1]))

    def learn(self, models: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(those with more, those with less) among the models, with t = 1; they are kept."""
        t = models[:, self.unit]
        models = models[t > 0] / t[t > 0, None]
        models = models[np.isfinite(models).all(axis=1)]
        is_more = self.excess(models) >= 0
        self.more = np.vstack([self.more, models[is_more]])[-KEPT:]
        self.less = np.vstack([self.less, models[~is_more]])[-KEPT:]
        return models[is_more], models[~is_more]

    def between(self, more: FloatArray, less: FloatArray) -> FloatArray:
        """For pairs of models the one between them with s = ‖a‖*, as far as floats tell: ‖a‖* − s is convex, so there is one."""
        if not len(more):
            return more
        low, high = np.zeros((len(more), 1)), np.ones((len(more), 1))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            is_more = (self.excess(more + middle * (less - more)) >= 0)[:, None]
            low, high = np.where(is_more, middle, low), np.where(is_more, high, middle)
        return np.asarray(more + low * (less - more))

    def near(self, models: FloatArray) -> FloatArray:
        """Models between new ones and the last of the other kind."""
        more, less = self.learn(models)
        pairs = [(u, v) for u in more for v in self.less[-PARTNERS:]] + [(u, v) for v in less for u in self.more[-PARTNERS:]]
        return self._of(pairs)

    def nearest(self, target: FloatArray) -> FloatArray:
        """Models with less that are nearest to breaking a claim."""
        return np.asarray(self.less[np.argsort(self.less @ target, kind="stable")[:NEAREST]])

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
