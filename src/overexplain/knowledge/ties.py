"""The program of a certificate in rational numbers, for points whose verdict hangs on an exact zero.

Only the columns that a float64 solution uses or nearly touches take part at first; those that the outcome breaks join. The
prices of the program are a model: of the closed cone if no weights reach the target, with the point on its plane if none of
them is strict.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO
from overexplain.knowledge.checker import Term
from overexplain.knowledge.enclosures import dot
from overexplain.knowledge.exact import ONE, ZERO, OutOfTime, solve
from overexplain.knowledge.program import Program
from overexplain.knowledge.rational_norms import exact_maximizer
from overexplain.knowledge.terms import TermMaker

Exact = tuple[Fraction, ...]
Model = tuple[list[Fraction], Fraction]


def says(model: Model, point: Sequence[Fraction]) -> Fraction:
    """a·x − b."""
    return dot(model[0], point) - model[1]


def as_floats(model: Model) -> FloatArray:
    """A rational model, its largest entry 1, rounded."""
    size = max(abs(v) for v in (*model[0], model[1]))
    return np.array([float(v / size) for v in (*model[0], model[1])])


CLOSE = 1e-7
"""Facts that a model keeps with less room than this (relatively) take part from the beginning."""

SMALL = 48
"""So few columns all take part."""

ROUNDS = 200


@final
class Ties:
    """Solves the program of some facts exactly; `deadline` stops it with OutOfTime.

    `strict` are the claims that must be strict.
    """

    def __init__(
        self, program: Program, maker: TermMaker, deadline: float | None, strict: tuple[int, ...] = (NO,)
    ) -> None:
        self.program, self.maker, self.deadline, self.strict = program, maker, deadline, strict

    def find(self, point: Exact | None, sign: int) -> list[Term] | Model:
        """Terms that add up to the target, as strict as can be; or a model of the closed cone that forbids it.

        Without a point: terms that prove a contradiction, or a consistent model.
        """
        d, k = self.program.facts.dimension + 1, self.program.lengths_known
        goal = [ZERO] * d if point is None else [sign * v for v in (*point, Fraction(-1))]
        chosen = self._candidates(point, sign)
        for _ in range(ROUNDS):
            if self.deadline is not None and time.monotonic() > self.deadline:
                raise OutOfTime("out of time")
            columns, gains = [], []
            for c in chosen:
                column, strict = self.maker.column(c)
                columns.append(column)
                gains.append(ONE if strict else ZERO)
            for n in range(k):  # what is left of β
                columns.append([*[ZERO] * (d + n), -ONE, *[ZERO] * (k - n - 1)])
                gains.append(ONE if n < len(self.program.norms) else ZERO)  # a secret reach may be 0
            target = [*goal, *[ZERO] * k]
            if point is None:  # weights whose strict part is 1, adding up to nothing
                columns = [[*column, gain] for column, gain in zip(columns, gains, strict=True)]
                outcome = solve(columns, [*target, ONE], [ZERO] * len(columns), self.deadline)
            else:
                outcome = solve(columns, target, gains if sign in self.strict else [ZERO] * len(columns), self.deadline)
            if outcome.weights is not None and not outcome.unbounded and (point is None or sign not in self.strict):
                return self.maker.terms(dict(zip(chosen, outcome.weights, strict=False)))
            if outcome.unbounded:
                raise SolverFailed("the log contradicts itself")
            model = (outcome.prices[: d - 1], outcome.prices[d - 1])
            broken = self._broken(model, [-price for price in outcome.prices[d : d + k]], chosen)
            if broken:
                chosen += broken
                continue
            if outcome.weights is None:
                return model
            return self.maker.terms(dict(zip(chosen, outcome.weights, strict=False)))
        raise SolverFailed("the exact step did not end")

    def _candidates(self, point: Exact | None, sign: int) -> list[int]:
        """Columns to begin with: those that a float64 solution uses or nearly touches."""
        total = len(self.program)
        if total <= SMALL:
            return list(range(total))
        if point is None:
            return [int(c) for c in self.program.middle()[1]]
        solution = self.program.solve(sign * np.append([float(v) for v in point], -1.0))
        used = solution.weights > 0
        vectors = self.program.vectors
        lengths = self.program.rights @ self.program.lengths if self.program.lengths_known else 0.0
        room = vectors @ solution.model - lengths
        touched = np.abs(room) <= CLOSE * (np.abs(vectors) @ np.abs(solution.model) + np.abs(lengths))
        return [int(c) for c in np.flatnonzero(used | touched)]

    def _broken(self, model: Model, lengths: Sequence[Fraction], chosen: Sequence[int]) -> list[int]:
        """Columns outside the chosen ones that the model breaks; new Hölder columns are added to the program."""
        d = self.program.facts.dimension + 1
        w = [*model[0], model[1]]
        have = set(chosen)
        float_w = np.array([float(v) for v in w])
        vectors = self.program.vectors
        guess = vectors @ float_w - (self.program.rights @ np.array([float(v) for v in lengths]) if lengths else 0.0)
        doubtful = np.flatnonzero(guess <= 1e-9 * (np.abs(vectors) @ np.abs(float_w)))
        broken = []
        for c in doubtful:
            if int(c) not in have:
                column, strict = self.maker.column(int(c))
                room = sum((a * b for a, b in zip(column[:d], w, strict=True)), ZERO)
                room -= sum((r * t for r, t in zip(column[d:], lengths, strict=True)), ZERO)
                if room < 0 or (strict and room == 0):
                    broken.append(int(c))
        for number, norm in enumerate(self.program.norms):
            u = exact_maximizer(norm, model[0])
            if u is None or sum((a * v for a, v in zip(model[0], u[0], strict=True)), ZERO) <= u[1] * lengths[number]:
                continue
            way = tuple(-v for v in u[0])  # (1/d of a weight d has no float64 of its own, as a rule)
            if self.program.add_direction(number, np.array([float(v) for v in way]), way):
                broken.append(len(self.program) - 1)
        return broken[:SMALL]
