"""Batches of points under robust counterfactuals: a few are solved, and what they teach settles most of the others.

A cone program about one point shows where the ball is touched, which is one more linear row for the fast side, and, if the point is
open, a model that many other points disagree about, too. Nothing is believed on the way: rows hold for every consistent model, and
models are checked.
"""

from __future__ import annotations

import time
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.pool import Pool
from overexplain.knowledge.region import Region
from overexplain.knowledge.robust import RobustSettler
from overexplain.knowledge.smooth import OPEN
from overexplain.knowledge.verdicts import Verdict

FEW = 12
"""So few points are better settled one by one."""

ROUND = 24
"""Points that are solved in one round."""

WORTH = 0.5
"""A round that settles fewer points than this for each one solved is the last."""


@final
class Screens:
    """What a log's cone programs have taught so far; `region` is the fast side with all rows learnt."""

    def __init__(self, region: Region, settler: RobustSettler, pool: Pool) -> None:
        self.region, self._settler, self._pool = region, settler, pool
        self._touching: dict[int, FloatArray] = {}

    def settle(self, points: FloatArray, found: NDArray[np.int8], deadline: float | None) -> None:
        """Fill in the codes of OPEN points as far as rounds of learning settle them."""
        rng = np.random.default_rng(0)
        todo = np.flatnonzero(found == OPEN)
        if self._touching:  # otherwise the region has seen them
            todo = self._look(points, found, todo, True)
        fresh = todo  # those that nothing has been learnt from
        while len(fresh) > FEW and (deadline is None or time.monotonic() < deadline):
            sample = rng.choice(fresh, min(ROUND, len(fresh)), replace=False)
            rows = sum(map(len, self._touching.values()))
            for i in sample:
                if not self._pool.disagree(points[i : i + 1])[0]:
                    self._learn(points[i])
            has_rows = sum(map(len, self._touching.values())) > rows
            if has_rows:
                self.region = Region(self.region.facts, self._touching)
            left = self._look(points, found, todo, has_rows)
            if len(left) > len(todo) - WORTH * len(sample):
                return
            todo, fresh = left, np.setdiff1d(np.intersect1d(fresh, left, assume_unique=True), sample)

    def _look(
        self, points: FloatArray, found: NDArray[np.int8], todo: NDArray[np.intp], has_rows: bool
    ) -> NDArray[np.intp]:
        """The points that are still open after another look by the pool, and by the region if that has new rows."""
        codes = self.region.codes(points[todo]) if has_rows else found[todo]
        codes[np.abs(codes) != 1] = OPEN
        codes[(codes == OPEN) & self._pool.disagree(points[todo])] = Verdict.UNKNOWN
        found[todo] = codes
        return np.asarray(todo[codes == OPEN])

    def _learn(self, x: FloatArray) -> None:
        """What the cone program about a point shows."""
        directions, models = self._settler.learn(x)
        self._pool.learn(*models)
        for number, d in directions.items():
            norm: Norm = self.region.facts.norms[number]
            length = float(norm(d))
            if length > 0:
                known = self._touching.get(number, np.zeros((0, len(d))))
                self._touching[number] = np.vstack([known, -d / length])
