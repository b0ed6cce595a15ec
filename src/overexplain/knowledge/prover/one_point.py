"""One point, settled with its proof: weights of facts that add up to it, or two models that disagree about it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.prover.batch import HELD, UNKNOWN, Found
from overexplain.knowledge.prover.linear import OPEN, LinearProver
from overexplain.knowledge.prover.rationals import OutOfTime, in_whole_numbers, project_exactly
from overexplain.knowledge.prover.reduction import BOUNDARY, SHARES, Model, Weights, dot, target_of


@dataclass(frozen=True)
class Evidence:
    """What settles a point: weights of facts that add up to ±(x, −1) (on the plane, `reverse` to its negative), or two
    models, of which one says Yes and the other No. `both`: equalities without which the weights are not strict."""

    code: int
    weights: Weights | None = None
    reverse: Weights | None = None
    models: tuple[Model, Model] | None = None
    both: tuple[int, ...] = ()


def decide(prover: LinearProver, X: FloatArray, deadline: float | None = None) -> NDArray[np.int8]:
    """The verdict on every point; OPEN only if the deadline (time.monotonic) passed."""
    codes = prover.look(X)
    for i in np.flatnonzero(codes == OPEN):
        if deadline is not None and time.monotonic() > deadline:
            break
        try:
            codes[i] = settle(prover, X[i], deadline).code
        except OutOfTime:
            break
    return codes


def settle(prover: LinearProver, x: FloatArray, deadline: float | None = None) -> Evidence:
    """The verdict on a point with what proves it, whatever other points were asked about before."""
    return _Point(prover, x, deadline).settle()


@final
class _Point:
    """A point that is settled by one search in floats and an exact solve, or in rationals altogether."""

    def __init__(self, prover: LinearProver, x: FloatArray, deadline: float | None) -> None:
        self.prover, self._x, self._deadline = prover, x, deadline
        self.target = target_of(prover.coding.exact(x), 1)
        self.inner = prover.reduction.reduced(self.target)
        self._batch = None if prover.batch is None else prover.batch.for_one()

    def settle(self) -> Evidence:
        """The verdict, and what proves it."""
        prover = self.prover
        if not any(self.inner):
            weights = prover.reduction.over_equalities({}, self.target)
            return Evidence(BOUNDARY, weights, prover.reduction.over_equalities({}, [-v for v in self.target]))
        if not len(prover.live):  # equalities alone: either side is open
            lean = list(self.inner)
            for k, v in enumerate(self.inner):
                if any(prover.model(lean)[0]):
                    break
                lean[k] += 1 if v >= 0 else -1  # the form is about the offset alone, and a = 0 is no model
            return Evidence(UNKNOWN, models=(prover.model(lean), prover.model([-v for v in lean])))
        quick = self._quick()
        if quick is not None:
            return quick
        said = dot(prover.exact_centre, self.inner)
        sign = YES if said >= 0 else NO
        held, other = self._project(sign)
        if held is not None:
            weights = {int(prover.live[i]): w for i, w in held.items()}
            aim = [sign * v for v in self.target]
            return self._certain(sign, prover.reduction.over_equalities(weights, aim))
        assert other is not None
        return Evidence(UNKNOWN, models=self._disagreement(other, sign, said))

    def _search(self, sign: int | None) -> tuple[int, Found] | None:
        """(the side that the centre takes, unless it is told; what floats find for it); None if they cannot search."""
        cone = self.prover.cone
        if cone is None or self._batch is None:
            return None
        query = self.prover.reduction.inner(self.prover.coding.queries(self._x[None, :])[0])[0]
        side = sign or (YES if float(query @ cone.centre) >= 0 else NO)
        C = side * query @ cone.map
        length = float(np.linalg.norm(C))
        return (side, self._batch.search((C / length)[None, :])) if 0 < length < np.inf else None

    def _quick(self) -> Evidence | None:
        """By one search in floats: an exact solve on the rows that it held, or two models; None if that does not tell."""
        prover, searched = self.prover, self._search(None)
        if searched is None:
            return None
        sign, found = searched
        if found.codes[0] == HELD:
            support = prover.live[found.held[0][found.held[0] >= 0]]
            weights = prover.weights(support, [sign * v for v in self.target])
            return None if weights is None else self._certain(sign, weights)
        if found.codes[0] == UNKNOWN:
            assert prover.cone is not None
            assert self._batch is not None
            model = prover.cone.models(self._batch.models[found.models[0]])
            for share in (0.0, *SHARES):
                mixed = model + share * prover.cone.centre
                other = [Fraction(v) for v in mixed.tolist()]
                along = [dot(z, self.inner) for z in (prover.exact_centre, other)]
                if along[0] and along[0] * along[1] < 0 and prover.keeps(mixed[None, :])[0]:
                    yes, no = (prover.exact_centre, other) if along[0] > 0 else (other, prover.exact_centre)
                    return Evidence(UNKNOWN, models=(prover.model(yes), prover.model(no)))
        return None

    def _project(self, sign: int) -> tuple[Weights | None, list[Fraction] | None]:
        """sign·inner as a combination of rows, by their place among the live ones, or a model of all rows that denies it.

        Few rows take part at first; those that the model breaks join.
        """
        prover, searched = self.prover, self._search(sign)
        guess = np.zeros(0, dtype=np.int64) if searched is None else searched[1].held[0]
        guess = guess[guess >= 0]
        chosen = prover.needed if prover.needed is not None else np.arange(len(prover.live))
        chosen = np.union1d(chosen, guess).astype(np.int64)
        while True:
            rows = prover.reduction.exact_rows(prover.live[chosen])
            whole, units = in_whole_numbers([prover.reduction.reduced(row) for row in rows])
            aim = [sign * v * unit for v, unit in zip(self.inner, units, strict=True)]
            factor = lcm(*(v.denominator for v in aim))
            metric = np.eye(len(units))
            if prover.cone is not None and max(units).bit_length() < 900:
                metric = prover.cone.map / np.array([float(u) for u in units])[:, None]
            start = np.searchsorted(chosen, guess).tolist()
            held, against = project_exactly(whole, [int(v * factor) for v in aim], start, metric, self._deadline)
            if held is not None:
                return {int(chosen[i]): w / factor for i, w in held.items()}, None
            assert against is not None
            model = [v * unit for v, unit in zip(against, units, strict=True)]
            broken = prover.broken(model)
            if not len(broken):
                return None, model
            chosen = np.union1d(chosen, broken)

    def _disagreement(self, other: list[Fraction], sign: int, said: Fraction) -> tuple[Model, Model]:
        """(one that says Yes, one that says No): the centre, and a model of the closed cone that disagrees, moved a little
        inside."""
        centre, model = self.prover.exact_centre, self.prover.model
        share = abs(dot(other, self.inner)) / (4 * abs(said)) if said else Fraction(1)
        moved = [a + share * b for a, b in zip(other, centre, strict=True)]
        return (model(centre), model(moved)) if sign == YES else (model(moved), model(centre))

    def _certain(self, sign: int, weights: Weights) -> Evidence:
        """A point that is held by some weights: certain, unless it is a No by weak facts that some model has all at 0."""
        prover, facts = self.prover, self.prover.facts
        support = np.array(sorted(weights), dtype=np.int64)
        if prover.is_weak(sign) or facts.strict[support[~facts.equal[support]]].any():
            return Evidence(sign, weights)
        found = prover.by_weak(support)
        if isinstance(found, LinearProver):
            touching = found.centre
            if sign == NO:
                return Evidence(UNKNOWN, models=(touching, prover.centre))
            # Turned round it has the point on its plane, too, but says No of the one that is taken as Yes.
            return Evidence(UNKNOWN, models=(prover.centre, ([-v for v in touching[0]], -touching[1])))
        lent = [
            weights[i] / (-2 * w) for i, w in found.weights.items() if w < 0 and i in weights and not facts.equal[i]
        ]
        share = min(lent, default=Fraction(1))
        mixed = {
            i: weights.get(i, Fraction(0)) + share * found.weights.get(i, Fraction(0))
            for i in {*weights, *found.weights}
        }
        both = tuple(i for i in found.both if facts.equal[i])
        return Evidence(sign, {i: w for i, w in mixed.items() if w}, both=both)
