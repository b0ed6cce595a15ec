"""What inexact answers under one distance leave room for: a linear program that is solved for one case after the other.

At t = ‖a‖* = 1 every promise is linear in v = (a, b), and ‖a‖* ≤ 1 is a·u ≤ 1 for every u of length 1. The program looks for
weights that prove a case,

    query = Σ weight·promise − Σ weight·cut + rest,    so that    query·v ≥ Σ weight·right − Σ weight − Σ|rest|,

and they are taken at their word, not the solver's. Its prices are the model that decides the case otherwise, if there is one; it
decides many other cases otherwise, too. Few promises and cuts matter: the program begins with some, and gets those that its prices
break, which help with all later cases.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.determining.promised import Promised
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF
from overexplain.knowledge.facts import Facts, Flips, OnPlane, OnSide, length_error
from overexplain.knowledge.smooth import OPEN
from overexplain.knowledge.solvers import highs_of, run_highs
from overexplain.knowledge.verdicts import Verdict

THIN = 1e-9
"""Answers whose tolerance is less than this share of their numbers leave nothing for a linear program in float64 to move in."""

STEPS = 40
"""How often the program for one case is solved, each time with what its last solution breaks."""

FIRST, AT_ONCE = 2, 4
"""How many promises, for each feature, the program begins with, and how many it gets at a time."""

BROKEN = 1e-9
"""A promise is broken by more than this, its largest entry being 1."""

MOST_CUTS = 200
"""No more of them are added."""

PATIENCE = 24
"""Cases in a row about which nothing is found; then the others are left open."""

LONG = 1 + 1e-7
"""A solution longer than this is too long."""

FAR = 1e6
"""How far away, in units of the data, a plane is looked for if nothing bounds it; then nothing is proved."""

ROUND_UP = 1 + 1e-9
"""Covers the rounding of lengths, which are computed to about thirteen digits."""

SURE = 1e-9
"""A model decides a case otherwise if it does so by more than this share of the numbers involved."""

SHARES = np.array([0.1, 0.3, *(1 - 2.0 ** -np.arange(1, 14)), 1.0])[:, None]
"""How far one goes from the audited model towards a solution, which may break a curved promise by a little."""


def has_room(facts: Facts) -> bool:
    """True if answers are inexact under one known distance, so that a `Room` can be made."""
    if len(facts.norms) != 1 or facts.secrets or facts.off_plane or facts.unsided:
        return False
    norm = facts.norms[0]
    if length_error(norm, facts.dimension) > THIN or norm.answer_rounding > FLOAT64_ANSWER:
        return False  # lengths that are themselves found by a program, or by an ill-conditioned matrix
    planes = [fact for fact in facts.explained if isinstance(fact, OnPlane)]
    return all(fact.tolerance > THIN * float(norm(fact.point)) for fact in planes)


@final
class Room:
    """The models that keep some facts. `truth` is the audited one (a, b), which does."""

    def __init__(self, facts: Facts, truth: FloatArray) -> None:
        self._norm, self._promised = facts.norms[0], Promised(facts)
        self._truth = truth / float(self._norm.dual(truth[:-1]))
        rows, right = self._promised.at_length_one()
        units = self._norm.units(facts.dimension)  # |a_i| ≤ ‖e_i‖
        farthest = _farthest(facts)
        self._cuts = 0
        self._is_bounded = bool(np.isfinite(farthest))
        self._columns = np.append(units, farthest if self._is_bounded else FAR * max(1e-300, float(np.abs(rows).max())))
        rows = rows * self._columns
        size = np.abs(rows).max(axis=1)
        size[size == 0] = 1.0
        self._rows, self._right = rows / size[:, None], right / size
        # The promises used so far and the cuts, all as row·v ≥ right.
        self._used = np.zeros((0, len(truth)))
        self._least = np.zeros(0)
        # Σ|rest| is two weights for each entry, whose price is 1.
        one = np.ones(2 * len(truth))
        columns, zero = np.hstack([np.eye(len(truth)), -np.eye(len(truth))]), np.zeros(len(truth))
        self._highs: Any = highs_of(columns, one, (0 * one, np.inf * one), (zero, zero))
        self._add_cut(self._truth)
        tight = np.argsort(self._rows @ (self._truth / self._columns) - self._right, kind="stable")
        self._add(self._rows[tight[: FIRST * len(truth)]], self._right[tight[: FIRST * len(truth)]])

    def _add(self, rows: FloatArray, right: FloatArray) -> None:
        """Let the program use row·v ≥ right."""
        self._used, self._least = np.vstack([self._used, rows]), np.append(self._least, right)
        for row, least in zip(rows, right.tolist(), strict=True):
            entries = np.flatnonzero(row).astype(np.int32)
            self._highs.addCol(-least, 0.0, np.inf, len(entries), entries, row[entries])

    def _add_cut(self, model: FloatArray) -> None:
        """‖a‖* ≤ 1 where the model is longest."""
        longest = np.asarray(self._norm.maximizer(model[:-1] / np.abs(model[:-1]).max()))
        longest = longest / (max(1.0, float(self._norm(longest))) * ROUND_UP)
        self._cuts += 1
        self._add(-(np.append(longest, 0.0) * self._columns)[None, :], np.array([-1.0]))

    def codes(self, points: FloatArray) -> NDArray[np.int8]:
        """A `Verdict` for every point, UNKNOWN or certain; UNDECIDED if neither was shown."""
        queries = np.hstack([points, -np.ones((len(points), 1))])
        signs = np.where(queries @ self._truth >= 0, YES, NO)
        codes = np.full(len(points), OPEN, dtype=np.int8)
        tried = np.zeros(len(points), dtype=bool)
        in_vain = 0
        while True:
            left = np.flatnonzero((codes == OPEN) & ~tried)
            if not len(left) or in_vain > PATIENCE:
                return codes
            i = left[0]
            tried[i] = True
            solution, is_certain = self._solve(signs[i] * queries[i])
            in_vain += 1
            if is_certain:
                codes[i], in_vain = signs[i], 0
            elif solution is not None:
                open_ = np.flatnonzero(codes == OPEN)
                model = self._kept_towards(solution)
                said = queries[open_] @ model
                sure = np.abs(said) > SURE * (np.abs(queries[open_]) @ np.abs(model))
                found = open_[sure & (np.sign(said) != signs[open_])]
                codes[found] = Verdict.UNKNOWN
                in_vain = 0 if len(found) else in_vain

    def _solve(self, query: FloatArray) -> tuple[FloatArray | None, bool]:
        """(the model for which the query is least, True if it is proved to be positive for all)."""
        wanted = query * self._columns
        wanted = wanted / np.abs(wanted).max()
        for i, entry in enumerate(wanted.tolist()):
            self._highs.changeRowBounds(i, entry, entry)
        model: FloatArray | None = None
        for _ in range(STEPS):
            if run_highs(self._highs) != "optimal":
                return None, False
            solution = self._highs.getSolution()
            if self._proves(wanted, np.array(solution.col_value)[2 * len(wanted) :]):
                return None, True
            prices = -np.array(solution.row_dual)
            model = prices * self._columns
            if not model[:-1].any() or float(wanted @ prices) > 0:
                return None, False
            off = self._right - self._rows @ prices
            broken = np.argsort(-off, kind="stable")[:AT_ONCE]
            broken = broken[off[broken] > BROKEN]
            self._add(self._rows[broken], self._right[broken])
            is_long = float(self._norm.dual(model[:-1])) > LONG and self._cuts < MOST_CUTS
            if is_long:
                self._add_cut(model)
            if not len(broken) and not is_long:
                break
        return model, False

    def _proves(self, wanted: FloatArray, weights: FloatArray) -> bool:
        """True if wanted·v > 0 follows from what is used, row·v ≥ right, and |v| ≤ 1 with these weights."""
        kept = np.maximum(weights, 0.0)
        rest = wanted - kept @ self._used
        least = float(kept @ self._least - np.abs(rest).sum())
        size = float(kept @ (np.abs(self._used).sum(axis=1) + np.abs(self._least)) + np.abs(wanted).sum())
        return self._is_bounded and least > 8 * (len(weights) + len(wanted) + 8) * UNIT_ROUNDOFF * size

    def _kept_towards(self, solution: FloatArray) -> FloatArray:
        """The model that keeps the facts farthest on the way from the audited one to a solution."""
        tried = (1 - SHARES) * self._truth + SHARES * solution
        kept = np.flatnonzero(self._promised.kept_by(tried))
        return np.asarray(tried[kept[-1]] if len(kept) else self._truth)


def _farthest(facts: Facts) -> float:
    """A bound on |b| for models with ‖a‖* = 1: |b| ≤ ‖x'‖ + τ by a plane that is shown; else b lies between a Yes and a No.

    Infinite without either.
    """
    norm = facts.norms[0]
    planes = [float(norm(fact.point)) + fact.tolerance for fact in facts.explained if isinstance(fact, OnPlane)]
    if planes:
        return min(planes) * ROUND_UP
    return max(_nearest(facts, YES), _nearest(facts, NO)) * ROUND_UP


def _nearest(facts: Facts, side: int) -> float:
    """The least ‖x‖ of a point on that side; infinite if there is none."""
    norm = facts.norms[0]
    points = [fact.point for fact in facts.explained if isinstance(fact, OnSide) and fact.side == side]
    points += [
        fact.explanation
        for fact in facts.explained
        if isinstance(fact, Flips) and fact.side == -side and not fact.share
    ]
    points += list(facts.points[facts.sides == side])
    return min((float(norm(point)) for point in points), default=np.inf)
