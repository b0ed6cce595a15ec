"""Models that fit a log as well as the audited one does, and decide some cases otherwise.

For a case that is not determined by the linear part of a log's promises, that part has a model which decides it otherwise: an
end. It need not keep the curved part. On the way to it from the audited model, which keeps everything, one goes as far as all is
kept. Robust counterfactuals ask for an equality, the reach that answers show is ‖a‖*: between two ends that miss it to either side
lies a model that does not. Whoever is found here fits in float64; whoever is not found may exist all the same.
"""

from __future__ import annotations

from typing import final

import numpy as np

from overexplain.auditing.determining.promised import Promised
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.facts import Facts, OffPlane, Secret
from overexplain.knowledge.region import Region
from overexplain.knowledge.shells import references

SHARES = np.array([0.01, 0.05, 0.2, *(1 - 2.0 ** -np.arange(1, 11)), 1.0])[:, None]
"""How far one goes from the audited model towards an end: little, half of the way, three quarters, …, all of it."""

ROUND = 16
"""Cases that are looked at in one round: what is found for one may decide others."""

WORTH = 0.5
"""A round that shows fewer cases to be open than this for each one looked at is the last."""

KEPT = 8
"""Earlier ends that new ones are paired with."""

MIRRORS = (0.03, 0.3, 2.0)
"""How far behind the audited model ends are mirrored."""

SURE = 1e-9
"""A model decides a case otherwise if it does so by more than this share of the numbers involved."""

HALVINGS = 50
"""Steps to the model between two ends: float64 has no more to give."""


@final
class Opponents:
    """The models that keep some facts, around `truth`, the audited one (a, b). `ends` are those of the linear part, seen so far."""

    def __init__(self, facts: Facts, region: Region, truth: FloatArray) -> None:
        self._promised, self._region = Promised(facts), region
        self._truth = truth / np.abs(truth).max()
        self._shells = [fact for ball, fact in references(facts).items() if not isinstance(ball, Secret)]
        self.ends = np.zeros((0, len(truth)))
        if self._shells:
            self.ends = self._look_for_ends(np.array([self._touching(shell) for shell in self._shells]))

    def _touching(self, shell: OffPlane) -> FloatArray:
        """Where the audited plane touches an answer's ball: models with this point on one side or the other miss the equality."""
        return shell.explanation + shell.side * shell.radius * np.asarray(_ball(shell).maximizer(self._truth[:-1]))

    def decide_otherwise(self, points: FloatArray) -> BoolArray:
        """True for every point for which a model was found that keeps the facts and does not decide it as the audited one."""
        queries = np.hstack([points, -np.ones((len(points), 1))])
        signs = np.where(queries @ self._truth >= 0, 1.0, -1.0)
        open_ = np.zeros(len(points), dtype=bool)
        left = fresh = np.arange(len(points))
        while len(fresh):
            looked, fresh = fresh[:ROUND], fresh[ROUND:]
            ends = self._look_for_ends(points[looked])
            models = np.vstack([self._towards(ends), self._between(ends)])
            self.ends = np.vstack([self.ends, ends])
            said = queries[left] @ models.T
            sure = np.abs(said) > SURE * (np.abs(queries[left]) @ np.abs(models).T)
            found = (sure & (np.sign(said) != signs[left, None])).any(axis=1)
            open_[left[found]] = True
            left, fresh = left[~found], fresh[~open_[fresh]]
            if np.count_nonzero(found) < WORTH * len(looked):
                break
        return open_

    def _look_for_ends(self, points: FloatArray) -> FloatArray:
        """Models that keep the linear part: its middle, and for each point one that decides it otherwise than the middle."""
        gauge, view = self._region.gauge, self._region.view
        found = []
        if gauge is not None and view is not None:
            opposed = [gauge.opponent(view, point) for point in points]
            found = [view.anchor, *(view.anchor + view.matrix @ z for z in opposed if z is not None)]
        return np.array([end / np.abs(end).max() for end in found]).reshape(-1, len(self._truth))

    def _towards(self, ends: FloatArray) -> FloatArray:
        """The models that keep the facts farthest on the way from the audited one to each end."""
        found = []
        for end in ends:
            tried = (1 - SHARES) * self._truth + SHARES * end
            kept = np.flatnonzero(self._promised.kept_by(tried))
            found += [tried[kept[-1]]] if len(kept) else []
        return np.array(found).reshape(-1, len(self._truth))

    def _between(self, ends: FloatArray) -> FloatArray:
        """The models that keep the facts between two ends, of which one has too long a reach and the other too short a one."""
        found = [np.zeros((0, len(self._truth)))]
        for shell in self._shells:
            pool = np.vstack([self.ends[-KEPT:], ends])
            long, short = (pool[side] for side in (_excess(shell, pool) > 0, _excess(shell, pool) < 0))
            short = np.vstack([short, self._beyond(long)])
            short = short[_excess(shell, short) < 0]
            if not (len(long) and len(short)):
                continue
            ahead, behind = np.indices((len(long), len(short))).reshape(2, -1)
            low, way = short[behind], long[ahead] - short[behind]
            share, step = np.zeros((len(way), 1)), 1.0
            for _ in range(HALVINGS):
                step /= 2
                share += step * (_excess(shell, low + (share + step) * way) < 0)[:, None]
            models = low + share * way
            found.append(models[self._promised.kept_by(models)])
        return np.vstack(found)

    def _beyond(self, ends: FloatArray) -> FloatArray:
        """The ends seen from the audited model in mirrors near and far: too long a reach becomes too short."""
        return np.vstack([self._truth - share * (ends - self._truth) for share in MIRRORS])

    def missed(self) -> list[tuple[Norm, FloatArray]]:
        """For every ball the ends whose reach is too short: where they touch it one more row would leave them out."""
        return [(_ball(shell), self.ends[_excess(shell, self.ends) < 0]) for shell in self._shells]


def _ball(shell: OffPlane) -> Norm:
    assert not isinstance(shell.ball, Secret)
    return shell.ball


def _excess(shell: OffPlane, models: FloatArray) -> FloatArray:
    """By how much the reach that an answer shows is longer than the length it stands for, for every model (row)."""
    return np.asarray(models @ shell.behind / shell.radius - _ball(shell).dual(models[:, :-1]))
