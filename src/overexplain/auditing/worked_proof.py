"""A proof to redo by hand: a point of a map that a weighted sum of three answered questions settles, in exact fractions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from overexplain.auditing.audit_report import Map, ProofRow, Question, WorkedProof

WEIGHTS: Final = tuple(Fraction(n, 16) for n in (1, 2, 3, 4, 6, 8))
"""What is taken away of the two questions with the other answer; halves and sixteenths keep the sums short."""

EDGE: Final = 0.1
"""The point keeps this share of the map away from its edges."""


def worked_proof(drawn: Map) -> WorkedProof | None:
    """A point inside the map with its proof from decisions alone, away from the questions it rests on; None if none is found.

    If label(q) = Yes and label(r) = label(s) = No, then normal·q ≥ offset and normal·r, normal·s < offset, so that
    x = (1 + u + v) q − u r − v s has normal·x ≥ offset: Yes. With Yes and No exchanged, No. Whatever the model is.
    """
    # A point that the sum moves far from its own question shows more than one beside it; so the largest shift wins.
    best, farthest = None, -1.0
    for proof, shift in _candidates(drawn):
        if shift > farthest:
            best, farthest = proof, shift
    return best


def _candidates(drawn: Map) -> Iterator[tuple[WorkedProof, float]]:
    (left, right), (bottom, top) = drawn.x_range, drawn.y_range
    xs, ys = _exact(drawn.questions)
    for i, own in enumerate(drawn.questions):
        others = [j for j, q in enumerate(drawn.questions) if q.label != own.label]
        for j, k in itertools.combinations(others, 2):
            for u, v in itertools.product(WEIGHTS, WEIGHTS):
                terms = ((i, 1 + u + v), (j, -u), (k, -v))
                x, y = (sum((w * at[n] for n, w in terms), Fraction(0)) for at in (xs, ys))
                across, up = (float(x) - left) / (right - left), (float(y) - bottom) / (top - bottom)
                if EDGE < across < 1 - EDGE and EDGE < up < 1 - EDGE:
                    shift = abs(float(x) - own.x) / (right - left) + abs(float(y) - own.y) / (top - bottom)
                    yield _written(drawn.questions, terms, x, y, own.label), shift


def _exact(questions: tuple[Question, ...]) -> tuple[list[Fraction], list[Fraction]]:
    """The questions' coordinates as the decimals they are printed as: those are what was asked."""
    return [Fraction(repr(q.x)) for q in questions], [Fraction(repr(q.y)) for q in questions]


def _written(
    questions: tuple[Question, ...], terms: tuple[tuple[int, Fraction], ...], x: Fraction, y: Fraction, label: int
) -> WorkedProof:
    xs, ys = _exact(questions)
    rows = tuple(
        ProofRow(n + 1, questions[n].label, str(weight), _decimal(xs[n]), _decimal(ys[n])) for n, weight in terms
    )
    return WorkedProof(_decimal(x), _decimal(y), 1 if label == 1 else -1, rows)


def _decimal(number: Fraction) -> str:
    """All digits of a fraction whose denominator has no factor but 2 and 5.

    >>> _decimal(Fraction(26)), _decimal(Fraction(-3, 80))
    ('26', '-0.0375')
    """
    digits = 0
    while (number * 10**digits).denominator != 1:
        digits += 1
    whole = abs(int(number * 10**digits))
    text = f"{whole // 10**digits}" + (f".{whole % 10**digits:0{digits}d}" if digits else "")
    return f"-{text}" if number < 0 else text
