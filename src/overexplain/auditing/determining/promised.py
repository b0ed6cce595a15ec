"""What a log promises, held against models: which of them keep every fact.

The audited model gave the answers, so it must keep what they promise under the published terms; if it does not, the service breaks
its own terms, and nobody who believes them can know anything for certain. Models are rows (a, b) of float64 numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.knowledge.facts import Facts, Flips, OffPlane, OnPlane, OnSide, Secret, Steepest, lengths_in
from overexplain.knowledge.settle import LOOSE


def first_facts(facts: Facts, count: int) -> Facts:
    """The facts of a log's first `count` rows."""
    kept = facts.rows < count
    explained = tuple(fact for fact in facts.explained if fact.row < count)
    norms, secrets = lengths_in(explained)
    return replace(
        facts,
        rows=facts.rows[kept],
        points=facts.points[kept],
        sides=facts.sides[kept],
        explained=explained,
        unsided=tuple(row for row in facts.unsided if row < count),
        norms=norms,
        secrets=secrets,
    )


@final
class Promised:
    """Facts as rows L·(a, b) ≥ r·t + ρ·s, with t and s the lengths of a, or the secret reach, that each is measured in.

    >>> from overexplain.knowledge.facts import read_facts
    >>> from overexplain.log.querylog import QueryLog
    >>> log = QueryLog()
    >>> log.add_label([[0.0, 0.0], [4.0, 0.0]], [-1, 1])
    0
    >>> Promised(read_facts(log, 2, log.labels)).kept_by(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]]))
    array([ True, False])
    """

    def __init__(self, facts: Facts) -> None:
        self._lengths = facts.lengths
        self._rows: list[FloatArray] = [facts.queries()]
        self._shares: list[FloatArray] = [np.zeros((len(facts.rows), len(self._lengths)))]
        for fact in facts.explained:
            self._add(fact)
        off_plane = {fact.row for fact in facts.off_plane}
        self._loose = [
            fact
            for fact in facts.explained
            if isinstance(fact, Steepest) and fact.tolerance > LOOSE * fact.length and fact.row not in off_plane
        ]
        self._matrix, self._weights = np.vstack(self._rows), np.vstack(self._shares)
        secrets = [i for i, length in enumerate(self._lengths) if isinstance(length, Secret)]
        self._secret = {i: self._weights[:, i] != 0 for i in secrets}

    def _add(self, fact: OnSide | OnPlane | Steepest | Flips | OffPlane) -> None:
        if isinstance(fact, OnSide):
            self._row(fact.side * np.append(fact.point, -1.0), fact.margin, fact.norm)
        elif isinstance(fact, OnPlane):
            plane = np.append(fact.point, -1.0)
            self._row(plane, -fact.tolerance, fact.norm)
            self._row(-plane, -fact.tolerance, fact.norm)
        elif isinstance(fact, Steepest):
            self._row(-fact.side * np.append(fact.step, 0.0), fact.steepness, fact.norm)
        elif isinstance(fact, Flips):
            own, across = (np.append(point, -1.0) for point in (fact.point, fact.explanation))
            self._row(fact.side * (fact.share * own - across), -fact.tolerance, fact.norm)
        else:
            self._row(fact.behind, -fact.tolerance, fact.norm, fact.radius, fact.ball)
            if fact.tight:
                self._row(-fact.behind, -fact.tolerance, fact.norm, -fact.radius, fact.ball)
            own = fact.side * np.append(fact.point, -1.0)
            if fact.margin is not None:
                self._row(own, fact.margin, fact.norm, -fact.radius, fact.ball)
            self._row(own, 0.0, None)

    def _row(
        self, row: FloatArray, share: float, norm: Norm | None, reach: float = 0.0, ball: Norm | Secret | None = None
    ) -> None:
        shares = np.zeros(len(self._lengths))
        if norm is not None:
            shares[self._lengths.index(norm)] += share
        if ball is not None:
            shares[self._lengths.index(ball)] += reach
        self._rows.append(row[None, :])
        self._shares.append(shares[None, :])

    def spares(self, models: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(by how much every model (row) keeps each fact, how large the numbers in that are); negative: it breaks it."""
        values = models @ self._matrix.T
        sizes = np.abs(models) @ np.abs(self._matrix.T)
        measured = np.zeros((len(models), len(self._lengths)))
        for i, length in enumerate(self._lengths):
            if not isinstance(length, Secret):
                measured[:, i] = length.dual(models[:, :-1])
        spare = values - measured @ self._weights.T
        sizes += np.abs(measured) @ np.abs(self._weights.T)
        for i, rows in self._secret.items():
            # A secret reach r ≥ 0 is the least that the rows which ask for one leave; then the others must allow it.
            asks = self._weights[:, i] < 0
            least = np.maximum(0.0, (spare[:, asks] / self._weights[asks, i]).max(axis=1, initial=0.0))
            spare[:, rows] -= least[:, None] * self._weights[rows, i]
            sizes[:, rows] += least[:, None] * np.abs(self._weights[rows, i])
        return spare, sizes

    def kept_by(self, models: FloatArray) -> BoolArray:
        """True for every model (row) that would have answered so, but for the rounding of this very computation.

        It keeps all facts and, where a tolerance is more than rounding, its own answers are as near as was promised.
        """
        spare, sizes = self.spares(models)
        rounding = 16 * (self._matrix.shape[1] + 8) * UNIT_ROUNDOFF
        kept = np.asarray((spare >= -rounding * sizes).all(axis=1))
        for k in np.flatnonzero(kept) if self._loose else ():
            kept[k] = all(_answers(models[k], fact, 1e-9) for fact in self._loose)
        return kept


def _answers(model: FloatArray, fact: Steepest, rounding: float) -> bool:
    """True if the model's own answer to the question of a step lies within its tolerance of what was answered."""
    far = fact.side * float(model[:-1] @ fact.point - model[-1]) / float(fact.norm.dual(model[:-1]))
    answer = fact.point - fact.side * far * np.asarray(fact.norm.maximizer(model[:-1]))
    return float(fact.norm(fact.explanation - answer)) <= fact.tolerance * (1 + rounding)
