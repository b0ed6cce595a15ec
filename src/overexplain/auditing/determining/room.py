"""What inexact answers under one distance leave room for: their promises as a cone in (a, b, t), t ≥ ‖a‖* standing for the length.

With t as a coordinate of its own every promise is linear, and t ≥ ‖a‖* is t ≥ a·u for every u of length 1. What holds all over
this cone holds for every model, and the gauge says what does, by bounds that pay for their rounding. Where it knows of a point of
the cone that decides a case otherwise than the audited model, the way from there to the audited one is searched for a model that
keeps every promise at its own length; a point with ‖a‖* > t shows where one more u is needed.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.determining.promised import Promised
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF
from overexplain.knowledge.facts import Facts, OnPlane, length_error
from overexplain.knowledge.gauge.fit import Gauge, NoInterior, fit_gauge
from overexplain.knowledge.gauge.view import View
from overexplain.knowledge.smooth import OPEN
from overexplain.knowledge.verdicts import Verdict

THIN = 1e-9
"""Answers whose tolerance is less than this share of their numbers leave a cone too thin for float64."""

ROUND_UP = 1 + 1e-9
"""Covers the rounding of lengths, which are computed to about thirteen digits."""

LONG = 1 + 1e-7
"""A point of the cone with ‖a‖* > LONG·t shows where one more u is needed."""

ROUND = 16
"""Cases whose opponents are looked for in one round: what is found for one may decide others."""

FITS = 5
"""How often the cone is taken apart again with what was learnt."""

SURE = 1e-9
"""A model decides a case otherwise if it does so by more than this share of the numbers involved."""

LARGEST = 1e100
"""Points beyond this are left open: products would overflow."""

SHARES = np.array([0.01, 0.03, 0.1, 0.3, *(1 - 2.0 ** -np.arange(1, 14)), 1.0])[:, None]
"""How far one goes from the audited model towards a point of the cone, which may break a curved promise by a little."""


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
    """The models that keep some facts. `truth` is the audited one (a, b), which does; `touched`: more u to begin with."""

    def __init__(self, facts: Facts, truth: FloatArray, touched: FloatArray) -> None:
        self._norm, self._promised = facts.norms[0], Promised(facts)
        self._truth = truth / float(self._norm.dual(truth[:-1]))
        promises, right = self._promised.at_length_one()
        self._rows = np.hstack([-promises, right[:, None]])
        axes = np.diag(1.0 / self._norm.units(facts.dimension))
        self.learnt: list[FloatArray] = []
        for u in (*axes, *-axes, np.asarray(self._norm.maximizer(self._truth[:-1])), *touched):
            self._add_cut(u)

    def _add_cut(self, u: FloatArray) -> None:
        """a·u ≤ t."""
        short = u / (max(1.0, float(self._norm(u))) * ROUND_UP)
        self._rows = np.vstack([self._rows, np.concatenate([short, [0.0, -1.0]])])

    def codes(self, points: FloatArray) -> NDArray[np.int8]:
        """A `Verdict` for every point: certain, UNKNOWN, or UNDECIDED if neither was shown."""
        codes = np.full(len(points), OPEN, dtype=np.int8)
        if not np.abs(points).max(initial=0.0) < LARGEST:
            return codes
        queries = np.hstack([points, -np.ones((len(points), 1)), np.zeros((len(points), 1))])
        signs = np.where(queries[:, :-1] @ self._truth >= 0, YES, NO)
        left = np.arange(len(points))
        for _ in range(FITS):
            try:
                gauge = fit_gauge(self._rows, 16 * UNIT_ROUNDOFF * np.abs(self._rows))
            except NoInterior:
                break
            view = View.of(gauge, has_offset=False)
            found = gauge.decide(view, queries[left])
            codes[left] = np.where(np.abs(found) == 1, found, OPEN)
            left = left[codes[left] == OPEN]
            known = len(self._rows)
            is_open = self._decided_otherwise(gauge, view, queries[left], signs[left])
            codes[left[is_open]] = Verdict.UNKNOWN
            left = left[~is_open]
            if not len(left) or len(self._rows) == known:
                break
        return codes

    def _decided_otherwise(
        self, gauge: Gauge, view: View, queries: FloatArray, signs: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """True for every query that a model was found for which keeps all facts and decides it otherwise than the audited one."""
        done = np.zeros(len(queries), dtype=bool)
        fresh = np.arange(len(queries))
        while len(fresh):
            looked, fresh = fresh[:ROUND], fresh[ROUND:]
            ends = [view.anchor]
            for query in queries[looked]:
                z = gauge.opponent(view, query)
                ends += [] if z is None else [view.anchor + view.matrix @ z]
            models = np.array([self._kept_towards(end) for end in ends])
            left = np.flatnonzero(~done)
            said = queries[left, :-1] @ models.T
            sure = np.abs(said) > SURE * (np.abs(queries[left, :-1]) @ np.abs(models).T)
            found = (sure & (np.sign(said) != signs[left, None])).any(axis=1)
            done[left[found]] = True
            fresh = fresh[~done[fresh]]
            if not found.any():
                break
        return done

    def _kept_towards(self, end: FloatArray) -> FloatArray:
        """The model that keeps the facts farthest on the way from the audited one to a point of the cone."""
        if float(self._norm.dual(end[:-2])) > LONG * end[-1]:
            self.learnt.append(np.asarray(self._norm.maximizer(end[:-2] / np.abs(end[:-2]).max())))
            self._add_cut(self.learnt[-1])
        tried = (1 - SHARES) * self._truth + SHARES * end[:-1] / end[-1]
        kept = np.flatnonzero(self._promised.kept_by(tried))
        return np.asarray(tried[kept[-1]] if len(kept) else self._truth)
