"""The few claims that rounds of cuts do not settle: their optimum over the models with s ≥ ‖a‖*, by one cone program each.

What comes out is advice: a cut where the optimum touches s = ‖a‖*, and models to either side of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.chords import dual_exponent
from overexplain.knowledge.prover.core_program import CoreProgram
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.prover.stage import Stage
from overexplain.knowledge.solvers import clarabel_of

FEASIBLE = 1e-6
"""A solver's optimum that is off by more is none."""
PUSHES = 3
"""Linear programs that look for a model with less of s than ‖a‖*."""


@final
class Optimum:
    """Programs in the round coordinates of a stage; `is_cut` are its rows that only say s ≥ ‖a‖*, `column` and `unit` the columns
    of s and t."""

    def __init__(self, stage: Stage, is_cut: BoolArray, norm: Norm, ties: Ties, column: int, unit: int) -> None:
        self._lift, self._norm, self._ties, self._p = stage.lift, norm, ties, ties.size
        self._rows = stage.cone.A[~is_cut]
        self._level, self._s = stage.lift[unit], stage.lift[column]
        outer = ties.outer(stage.lift.T)[:, :-1].T
        self._outer, self._shape = outer, dual_exponent(norm, len(outer))
        self._solver: tuple[Any, int] | None = None
        if self._shape is not None:
            exponent, units = self._shape
            self._solver = _program(self._rows, self._level, self._s, outer / units[:, None], exponent)

    def least(self, target: FloatArray) -> tuple[FloatArray, FloatArray | None] | None:
        """(the model of the unknowns with t = 1 and s ≥ ‖a‖* that breaks a claim most, or keeps it least; a v of length at most
        1, for which s ≥ v·a is all of s ≥ ‖a‖* that matters there)."""
        if self._solver is None:
            return None
        cost = target @ self._lift
        size, total = float(np.abs(cost).max()) or 1.0, self._solver[1]
        if not np.isfinite(size):
            return None
        self._solver[0].update(q=np.pad(cost / size, (0, total - len(cost))))
        found = self._solver[0].solve()
        if "Infeasible" in str(found.status) or not max(found.r_prim, found.r_dual) < FEASIBLE:
            return None
        return np.asarray(self._lift @ np.array(found.x)[: len(cost)]), self._touched(
            np.array(found.z)[1 + len(self._rows) :]
        )

    def _touched(self, prices: FloatArray) -> FloatArray | None:
        """v by the prices of the program's rows that say s ≥ ‖a‖*."""
        assert self._shape is not None
        (exponent, units), p = self._shape, len(self._outer)
        if exponent == 2.0:
            paid, v = float(prices[0]), -prices[1:]
        elif exponent in (1.0, np.inf):
            ways = prices[-2 * p :]
            paid, v = float(prices[0] if exponent == 1.0 else ways.sum()), ways[:p] - ways[p:]
        else:
            return None
        return None if not paid > 0 else v / paid / units

    def outward(self, start: FloatArray, target: FloatArray | None = None, least: float = 0.0) -> FloatArray | None:
        """A model with t = 1 and s < ‖a‖*, for which target·z ≤ −least: ‖a‖* is convex, each step maximises its slope less s.

        It has more than one peak, and which is found depends on the start.
        """
        limit = np.zeros((0, self._lift.shape[1])) if target is None else -(target @ self._lift)[None, :]
        self._pushes.put(limit, np.full(len(limit), least))
        most, model = -np.inf, start
        for _ in range(PUSHES):
            a = self._ties.outer(model[None, :])[0, :-1]
            if not a.any():
                return None
            slope = np.asarray(self._norm.maximizer(a)) @ self._outer - self._s
            found = self._pushes.least(-slope) if np.isfinite(slope).all() else None
            if found is None:
                return None
            model = np.asarray(self._lift @ found.place)
            gap = float(self._norm.dual(self._ties.outer(model[None, :])[0, :-1])) - float(self._s @ found.place)
            if gap > 0:
                return model
            if gap <= most + 1e-9:
                return None
            most = gap
        return None

    @cached_property
    def _pushes(self) -> CoreProgram:
        return CoreProgram(self._rows, self._level)


def _program(rows: FloatArray, level: FloatArray, s: FloatArray, a: FloatArray, exponent: float) -> tuple[Any, int]:
    """(a solver of level·y = 1, rows·y ≥ 0, s·y ≥ ‖a·y‖ with this exponent; how many variables it has)."""
    import clarabel

    d, p = len(level), len(a)
    total = d if exponent in (2.0, np.inf) else d + p
    wide = ((0, 0), (0, total - d))
    parts = [np.pad(level[None, :], wide), np.pad(rows, wide)]
    cones: list[Any] = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(rows))]
    if exponent == 2.0:
        parts.append(np.vstack([s[None, :], a]))
        cones.append(clarabel.SecondOrderConeT(p + 1))
    elif exponent == np.inf:
        parts.append(np.vstack([s - a, s + a]))
        cones.append(clarabel.NonnegativeConeT(2 * p))
    else:
        top, shares, across = np.zeros((1, total)), np.zeros((p, total)), np.zeros((p, total))
        top[0, :d], top[0, d:] = s, -1.0
        shares[:, d:], across[:, :d] = np.eye(p), a
        parts.append(top)
        cones.append(clarabel.NonnegativeConeT(1))
        if exponent == 1.0:
            parts.append(np.vstack([shares - across, shares + across]))
            cones.append(clarabel.NonnegativeConeT(2 * p))
        else:
            whole = np.zeros((p, total))
            whole[:, :d] = s
            parts.append(np.stack([shares, whole, across], axis=1).reshape(3 * p, total))
            cones += [clarabel.PowerConeT(1.0 / exponent) for _ in range(p)]
    left = np.vstack(parts)
    right = np.zeros(len(left))
    right[0] = -1.0
    return clarabel_of(-left, right, cones), total
