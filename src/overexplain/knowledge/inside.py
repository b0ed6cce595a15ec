"""Models of the convex set, looked for inside the core: where answers leave no room there is nothing to be looked for.

`conic` finds proofs, with equalities as pairs of facts between which a solver has no room to move. Models need no proof: in the
core's own coordinates all that is an equality, or as good as one, holds by itself, and what is left has an interior.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.chords import dual_exponent
from overexplain.knowledge.cone import build_cone
from overexplain.knowledge.core import Core
from overexplain.knowledge.facts import Facts
from overexplain.knowledge.shells import longest, own_lengths
from overexplain.knowledge.solvers import clarabel_of, highs_of, run_highs

ROOM = 4e-9
"""How far, relatively, models stay away from what bounds them: more than the tolerances of solvers."""

DIGITS = 9
"""Rows that are equal to so many decimal digits are taken for one: ROOM is more."""

WIDEST = 1e7
"""Coordinates of models are looked for within this."""


@final
class Inside:
    """Models that keep everything linear, and s ≥ ‖a‖* for every ball that is a weighted ℓq unless told otherwise."""

    def __init__(self, facts: Facts, core: Core) -> None:
        cone = build_cone(facts, np.frexp(core.scale)[1] - 1, None, is_round=True)
        rows = cone.reduced()[0]
        self._basis = core.basis
        size = np.abs(rows).max(axis=1, initial=0.0)[:, None]
        rows = -rows / np.where(size > 0, size, 1.0)  # ≥ 0 from now on
        # Answers repeat what others said, up to their tolerances, which are far within the room that models keep.
        self._rows = rows[np.sort(np.unique(np.round(rows, DIGITS), axis=0, return_index=True)[1])]
        found = longest(facts)
        self._level = None if not found else next(iter(found.values())) @ core.basis
        p = facts.dimension
        self._balls = []
        self.is_round = all(dual_exponent(ball, p) is not None for ball, _ in own_lengths(facts))
        """False if s ≥ ‖a‖* is not asked for some ball: no cone of the solver's has its shape."""
        for ball, fact in own_lengths(facts):
            shape = dual_exponent(ball, p)
            if shape is not None:
                self._balls.append(
                    (shape[0], core.basis[:-1] / shape[1][:, None], fact.behind / fact.radius @ core.basis)
                )

    @property
    def applies(self) -> bool:
        """True if some step tells the size of models."""
        return self._level is not None and self._basis.shape[1] > 0

    def least(self, target: FloatArray) -> FloatArray:
        """The model with t = 1 and the least target·(a, b)."""
        return self._solved(self._round, target)

    def beyond(self, target: FloatArray, claim: FloatArray | None, room: float) -> FloatArray:
        """The same, but s ≥ ‖a‖* is not asked for; claim·(a, b) ≤ −room is, if there is a claim."""
        self._open.limit(None if claim is None else -(claim @ self._basis), room)
        return self._solved(self._open, target)

    def _solved(self, solver: _Linear | _Curved, target: FloatArray) -> FloatArray:
        cost = target @ self._basis
        return np.asarray(self._basis @ solver.solve(cost / (np.abs(cost).max() or 1.0)))

    @cached_property
    def _open(self) -> _Linear:
        assert self._level is not None
        return _Linear(self._rows, self._level, [])

    @cached_property
    def _round(self) -> _Linear | _Curved:
        assert self._level is not None
        flat = all(r in (1.0, np.inf) for r, _, _ in self._balls)
        return (_Linear if flat else _Curved)(self._rows, self._level, self._balls)


def _blocks(balls: list[tuple[float, FloatArray, FloatArray]], d: int) -> tuple[list[tuple[float, Any]], int]:
    """(for each ball its exponent and rows over (u, z), how many variables there are)."""
    total = d + sum(len(a) for r, a, _ in balls if r not in (2.0, np.inf))
    found: list[tuple[float, Any]] = []
    start = d
    for r, a, s in balls:
        p = len(a)
        if r == 2.0:
            rows = np.zeros((p + 1, total))
            rows[0, :d], rows[1:, :d] = s, a
        elif r == np.inf:
            rows = np.zeros((2 * p, total))
            rows[:p, :d], rows[p:, :d] = s - a, s + a
        else:
            z = np.zeros((p, total))
            z[np.arange(p), start + np.arange(p)] = 1.0
            wide = np.zeros((p, total))
            wide[:, :d] = a
            top = np.zeros((1, total))
            top[0, :d], top[0, start : start + p] = s, -1.0
            if r == 1.0:
                rows = np.vstack([top, z - wide, z + wide])
            else:
                length = np.zeros((p, total))
                length[:, :d] = s
                rows = np.vstack([top, np.stack([z, length, wide], axis=1).reshape(3 * p, total)])
            start += p
        found.append((r, rows))
    return found, total


class _Linear:
    """By HiGHS."""

    def __init__(self, rows: FloatArray, level: FloatArray, balls: list[Any]) -> None:
        self._d = d = rows.shape[1]
        blocks, total = _blocks(balls, d)
        wide = ((0, 0), (0, total - d))
        matrix = np.vstack([np.pad(level[None, :], wide), np.pad(rows, wide), *(block for _, block in blocks)])
        wide_box = (np.full(total, -WIDEST), np.full(total, WIDEST))
        low = np.concatenate([[1.0], np.full(len(rows), ROOM), np.zeros(len(matrix) - len(rows) - 1)])
        high = np.append(1.0, np.full(len(matrix) - 1, np.inf))
        self._highs = highs_of(matrix, np.zeros(total), wide_box, (low, high))
        self._count, self._limit = len(matrix), np.zeros(d)
        self._highs.addRow(-np.inf, np.inf, 0, np.zeros(0, dtype=np.int32), np.zeros(0))

    def limit(self, row: FloatArray | None, room: float) -> None:
        """One more row ≥ room, in the place of that of the last time; its entries are changed, so that the basis stays."""
        self._highs.changeRowBounds(self._count, -np.inf if row is None else room, np.inf)
        if row is not None and not np.array_equal(row, self._limit):
            self._limit = row
            for j, entry in enumerate(row.tolist()):
                self._highs.changeCoeff(self._count, j, entry)

    def solve(self, cost: FloatArray) -> FloatArray:
        """The least cost·u."""
        highs = self._highs
        highs.changeColsCost(self._d, np.arange(self._d, dtype=np.int32), cost)
        status = run_highs(highs)
        if status != "optimal":
            raise SolverFailed(f"no model was found inside: {status}")
        return np.array(highs.getSolution().col_value)[: self._d]


class _Curved:
    """By Clarabel."""

    def __init__(self, rows: FloatArray, level: FloatArray, balls: list[Any]) -> None:
        import clarabel

        self._d = d = rows.shape[1]
        blocks, total = _blocks(balls, d)
        wide = ((0, 0), (0, total - d))
        parts = [np.pad(level[None, :], wide), np.pad(rows, wide)]
        ends = [np.ones(1), np.full(len(rows), ROOM)]
        cones: list[Any] = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(rows))]
        for r, block in blocks:
            parts.append(block)
            ends.append(np.zeros(len(block)))
            if r == 2.0:
                cones.append(clarabel.SecondOrderConeT(len(block)))
            elif r in (1.0, np.inf):
                cones.append(clarabel.NonnegativeConeT(len(block)))
            else:
                powers = [clarabel.PowerConeT(1.0 / r) for _ in range((len(block) - 1) // 3)]
                cones += [clarabel.NonnegativeConeT(1), *powers]
        self._total = total
        self._solver = clarabel_of(-np.vstack(parts), -np.concatenate(ends), cones)

    def solve(self, cost: FloatArray) -> FloatArray:
        """The least cost·u."""
        self._solver.update(q=np.pad(cost, (0, self._total - self._d)))
        found = self._solver.solve()
        if "Infeasible" in str(found.status) or not max(found.r_prim, found.r_dual) < 1e-6:
            raise SolverFailed(f"no model was found inside: {found.status}")
        return np.array(found.x)[: self._d]
