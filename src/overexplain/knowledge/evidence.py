"""Finds the evidence that a norm given by the corners of its ball needs: by a linear program, repaired to be exact.

The program is only a guess at which corners matter; what is kept is solved in rationals and adds up exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar, final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.knowledge.certificates import Certificate, Disagreement
from overexplain.knowledge.checker import Answer, check_certificate, check_witness
from overexplain.knowledge.enclosures import Length, Vector, dot, solve

Corners = Sequence[Sequence[Any]]


@final
class Finder:
    """An `Evidence` that finds what it is asked for; `lengths` is all it was asked for so far.

    Pass it where the checker takes lengths, then put `lengths` into the proof.

    >>> from overexplain.knowledge.enclosures import enclose
    >>> find = Finder()
    >>> diamond = {"norm": "polyhedral", "vertices": [[1, 0], [-1, 0], [0, 1], [0, -1]]}
    >>> enclose(diamond, [Fraction(1), Fraction(-2)], find)
    (Fraction(3, 1), Fraction(3, 1))
    """

    def __init__(self) -> None:
        self._found: dict[
            tuple[Any, ...], tuple[Corners, Length]
        ] = {}  # the corners stay alive: their id is in the key

    @property
    def lengths(self) -> tuple[Length, ...]:
        """The evidence found so far."""
        return tuple(length for _, length in self._found.values())

    def __call__(self, corners: Corners, x: Vector) -> tuple[Length, ...]:
        key = (id(corners), tuple(x))
        if key not in self._found:
            self._found[key] = corners, find_length(corners, x)
        return (self._found[key][1],)


def find_length(corners: Corners, x: Vector) -> Length:
    """Evidence for the norm of x ≠ 0; its two bounds meet unless float64 misjudges which corners matter."""
    exact = [[Fraction(v) for v in corner] for corner in corners]
    rows = np.array(corners, dtype=np.float64)
    amounts, functional = _program(rows, x)
    basis = _independent(rows, np.lexsort((-(rows @ functional), -amounts)))
    shares = solve([[exact[k][i] for k in basis] for i in range(len(x))], x)
    # A share that rounding made negative belongs to the opposite corner: the ball is symmetric.
    turned = [exact[k] if share >= 0 else [-v for v in exact[k]] for k, share in zip(basis, shares, strict=True)]
    parts = [(exact.index(corner), abs(share)) for corner, share in zip(turned, shares, strict=True) if share]
    candidates = [solve(turned, [Fraction(1)] * len(x)), [Fraction(float(v)) for v in functional]]
    valid = [_at_most_one(candidate, exact) for candidate in candidates]
    return Length(tuple(x), tuple(parts), max(valid, key=lambda f: dot(f, x)))


def _program(rows: FloatArray, x: Vector) -> tuple[FloatArray, FloatArray]:
    """The cheapest amounts of the corners that make x, and the functional that shows it, in floats."""
    from scipy.optimize import linprog

    largest = max(abs(v) for v in x)
    goal = np.array([float(v / largest) for v in x])
    found = linprog(np.ones(len(rows)), A_eq=rows.T, b_eq=goal, bounds=(0, None), method="highs-ds")
    if found.status != 0:
        raise SolverFailed(f"the linear program behind a polyhedral norm failed: {found.message}")
    return np.asarray(found.x), np.asarray(found.eqlin.marginals)


def _independent(rows: FloatArray, order: IntArray) -> list[int]:
    """The first corners, in this order, that span the space."""
    scale = np.abs(rows).max(axis=0)
    chosen: list[int] = []
    frame: list[FloatArray] = []
    for k in order:
        rest = rows[k] / scale
        size = float(np.linalg.norm(rest))
        for _ in range(2):  # twice: once leaves rounding behind
            rest = rest - sum((unit * (unit @ rest) for unit in frame), np.zeros(rows.shape[1]))
        if float(np.linalg.norm(rest)) > 1e-9 * size:
            frame.append(rest / np.linalg.norm(rest))
            chosen.append(int(k))
        if len(chosen) == rows.shape[1]:
            return chosen
    raise SolverFailed("the corners of a polyhedral norm hardly span the space; no evidence for a length is found")


def _at_most_one(functional: Vector, corners: Sequence[Vector]) -> tuple[Fraction, ...]:
    """The functional, scaled so that it is at most 1 on the ball."""
    highest = max(dot(functional, corner) for corner in corners)
    return tuple(v / highest for v in functional) if highest > 1 else tuple(functional)


P = TypeVar("P", bound=Certificate | Disagreement)


def with_lengths(answers: Mapping[int, Answer], proof: P) -> P:
    """The proof, checked, with the evidence for lengths that the checker cannot find by itself."""
    find = Finder()
    if isinstance(proof, Certificate):
        point = None if proof.point is None else tuple(map(Fraction, proof.point))
        check_certificate(
            answers, proof.terms, point, int(proof.verdict or 1), reverse=proof.reverse, lemmas=proof.lemmas,
            assumed=proof.assumed, lengths=find, branches=proof.branches,
        )  # fmt: skip
    else:
        for model in (proof.yes, proof.no):
            check_witness(answers, model.normal, model.offset, assumed=proof.assumed, lengths=find)
    return replace(proof, lengths=find.lengths)
