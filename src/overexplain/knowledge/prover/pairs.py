"""Two rows that contradict each other: what one step of a smooth distance shows alone, and the label or the plane of another row.

Programs do not see it: an angle of 1e-9 has a cosine of 1 − 5e-19.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from overexplain.knowledge.checker import Answer, Term
from overexplain.knowledge.facts import Steepest
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.written import by_one_step
from overexplain.knowledge.smooth import smooth_codes

SHARPEST, FARTHEST = 2, 2
"""Steps that are tried, and rows beside each: those that are farthest off."""


def contradicting_pairs(blocks: Sequence[Block], answers: Mapping[int, Answer]) -> Iterator[list[Term]]:
    """Terms that may prove a contradiction of two rows; the checker is still to be asked."""
    for step in _steps(blocks):
        for block in blocks:
            wrong = np.flatnonzero(smooth_codes(step, block.points) == -block.sides)
            for k in wrong[:FARTHEST].tolist():
                shown = by_one_step(answers, step, block.points[k], -int(block.sides[k]))
                yield [*(shown or ()), Term("side", Fraction(1), int(block.rows[k]))]
            if not block.is_optimal or block.is_robust or block.answers is None:
                continue
            codes = smooth_codes(step, block.answers)
            off = np.abs((block.answers - step.explanation) @ step.norm.gradient(step.step)) / block.tolerance
            for k in np.argsort(np.where(np.abs(codes) == 1, -off, np.inf))[:FARTHEST].tolist():
                shown = by_one_step(answers, step, block.answers[k], int(codes[k]))
                yield [*(shown or ()), Term("plane", Fraction(1), int(block.rows[k]), sign=-int(np.sign(codes[k])))]


def _steps(blocks: Sequence[Block]) -> list[Steepest]:
    """The sharpest plain steps under smooth distances."""
    found = [
        block.steepest(int(k))
        for block in blocks
        if block.is_optimal and not block.is_robust and block.norm.is_smooth
        for k in np.argsort(block.tolerance / np.maximum(block.lengths[0], 1e-300))[:SHARPEST]
    ]
    return [step for step in found if step.steepness > 0]
