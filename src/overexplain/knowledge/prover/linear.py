"""Facts without lengths, such as labels: every claim about a point is decided, ties included (docs/theory/ties.md).

A fact is side·(a·x − b) ≥ 0, > 0 if it is strict, = 0 if it is an equality; q = (x, −1). With K the cone of the facts, after facial
reduction (rows that must be equalities are, and what they leave is searched):

    YES       q ∈ K
    NO        −q = Σ λ_i L_i, λ ≥ 0, with weight on a strict fact, or with weights on facts that no model can have all at 0
    BOUNDARY  q = 0 where the equalities hold
    UNKNOWN   else: two models disagree

Floats search, in whole-number and round coordinates. What they find is believed if whole numbers prove it
(`projection.prove_whole`), if a ball inside the cone pays for all rounding, or if a model keeps every fact with room
for it; what is left rationals decide.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.exact import combine
from overexplain.knowledge.prover.ball import Ball
from overexplain.knowledge.prover.batch import HELD, PIECE, UNKNOWN, Batch, Found
from overexplain.knowledge.prover.coding import Coding
from overexplain.knowledge.prover.cone import NoInterior, RoundCone, gamma
from overexplain.knowledge.prover.rationals import OutOfTime, in_whole_numbers, interior, project_exactly
from overexplain.knowledge.prover.reduction import Contradiction, LinearFacts, Reduction, Weights, dot

BOUNDARY, OPEN = 2, 3
NOT_TOLD = np.iinfo(np.int64).max

Model = tuple[list[Fraction], Fraction]


@dataclass(frozen=True)
class Evidence:
    """What settles a point: weights of facts that add up to ±(x, −1), or two models (one says Yes, the other No)."""

    code: int
    weights: Weights | None = None
    models: tuple[Model, Model] | None = None


@final
class LinearProver:
    """Decides claims about all models of linear facts; raises Contradiction if there are none."""

    def __init__(self, facts: LinearFacts, deadline: float | None = None, start: FloatArray | None = None) -> None:
        self.facts = facts
        n = len(facts.points)
        self.coding = Coding(facts.points)
        self.rows: FloatArray = facts.sides.astype(np.float64)[:, None] * np.hstack(
            [self.coding.rows, -np.ones((n, 1))]
        )
        self.reduction = Reduction(self.rows, facts, self.coding.is_whole)
        self.cone: RoundCone | None = None
        self._weak: dict[tuple[int, ...], Weights | Model] = {}
        self._fit(deadline, start)
        self.origin: IntArray = np.arange(n)
        """What `last_used` counts facts by; whoever made them of the rows of a log may say which."""
        self.last_used: IntArray = np.zeros(0, dtype=np.int64)
        """For each point of the last `look` the largest origin among the facts that prove it, or NOT_TOLD."""
        self.batch = self._new_batch()

    def _new_batch(self) -> Batch | None:
        return None if self.cone is None else Batch(self.cone, self._inner if self.is_whole else None)

    @property
    def basis(self) -> FloatArray:
        """(D, m): what the equalities leave."""
        return self.reduction.basis

    @property
    def is_whole(self) -> bool:
        """True if floats compute with rows and coded queries without rounding."""
        return self.reduction.is_whole

    def fork(self) -> LinearProver:
        """A copy that learns for itself."""
        twin = object.__new__(LinearProver)
        twin.__dict__.update(self.__dict__)
        twin.batch = self._new_batch()
        twin._weak = {}
        return twin

    # Reading the facts.

    def _fit(self, deadline: float | None, start: FloatArray | None) -> None:
        """Facial reduction: relations among rows make equalities of them, until what is left has an interior."""
        facts = self.facts
        keys = np.hstack([self.rows, facts.equal[:, None], facts.strict[:, None]])
        unique = np.sort(np.unique(keys, axis=0, return_index=True)[1])
        while True:
            equal = self.reduction.equal_rows()
            live = unique[~np.isin(unique, equal)]
            if len(equal):
                self.reduction.reduce(equal)
                live = self.reduction.without_zeros(live)
            if not self.basis.shape[1]:
                raise Contradiction({})  # any model would be 0
            self.live = live
            if not len(live):
                return  # equalities alone, or nothing at all
            self._inner = np.ascontiguousarray(self.rows[live] @ self.basis)
            try:
                begin = None if start is None or self.reduction.exact_basis is not None else start
                self.cone = RoundCone(self._inner, begin)
                return
            except NoInterior as none:
                relation = self._relation(none.weights, deadline)
            if relation is None:
                return
            if facts.strict[list(relation)].any():
                raise Contradiction(self.reduction.over_equalities(relation, [Fraction(0)] * self.rows.shape[1]))
            self.reduction.relations.append(relation)

    def _relation(self, weights: FloatArray | None, deadline: float | None) -> Weights | None:
        """{row: weight > 0} that add up to 0 where the equalities hold, exactly; None if there is an interior after
        all: `cone` is set."""
        if weights is not None:
            found = self.reduction.exact_relation(self.live[weights > 1e-9 * weights.max(initial=0.0)])
            if found is not None:
                return found
        whole, units = in_whole_numbers([self.reduction.reduced(row) for row in self.reduction.exact_rows(self.live)])
        relation, inside = interior(whole, deadline)
        if relation is not None:
            return {int(self.live[i]): weight for i, weight in relation.items()}
        assert inside is not None
        largest = max(abs(v) for v in inside)
        start = np.array([float(v / largest * unit) for v, unit in zip(inside, units, strict=True)])
        try:
            self.cone = RoundCone(self._inner, start, rank_tolerance=1e-14)
        except NoInterior:
            self.cone = None  # floats cannot see it: rationals decide everything
        return None

    # Models.

    @cached_property
    def is_centre_kept(self) -> bool:
        """True if floats can prove that the centre keeps every fact."""
        return self.cone is not None and bool(self._keeps(self.cone.centre[None, :])[0])

    @cached_property
    def _exact_centre(self) -> list[Fraction]:
        """A model strictly inside, in the coordinates of what the equalities leave."""
        rows = [self.reduction.reduced(row) for row in self.reduction.exact_rows(self.live)]
        if self.cone is not None:
            z = [Fraction(v) for v in self.cone.centre.tolist()]
            if not (self.is_centre_kept or all(dot(row, z) > 0 for row in rows)):
                z = self._interior(rows)
        elif len(self.live):
            z = self._interior(rows)
        else:
            z = [Fraction(int(k == 0)) for k in range(self.basis.shape[1])]
        for k in range(len(z)):
            if any(self.model(z)[0]):
                break
            # Every row is about the offset alone: any normal that is small enough will do.
            room = min((dot(row, z) / (2 * abs(row[k])) for row in rows if row[k]), default=Fraction(1))
            z[k] += room
        return z

    @staticmethod
    def _interior(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
        whole, units = in_whole_numbers(rows)
        _, inside = interior(whole)
        assert inside is not None  # the facts have been reduced until there is one
        return [v * unit for v, unit in zip(inside, units, strict=True)]

    @cached_property
    def unseen(self) -> tuple[FloatArray, FloatArray]:
        """Directions that no row has a part in, as far as floats can tell, and how far a model can go either way, for certain."""
        assert self.cone is not None
        way, centre = self.cone.unseen, self.cone.centre
        size = np.abs(self.rows[self.live]) @ np.abs(self.basis)
        off = gamma(self.rows.shape[1] + self.basis.shape[1] + 8)
        room = self._inner @ centre - off * (size @ np.abs(centre))
        moved = np.abs(self._inner @ way) + off * (size @ np.abs(way))
        reach = 0.5 * (np.maximum(room, 0.0)[:, None] / np.maximum(moved, 1e-300)).min(axis=0, initial=np.inf)
        return way, np.minimum(reach, 1e100)

    def model(self, z: Sequence[Fraction]) -> Model:
        """Coordinates of what the equalities leave as a model (a, b)."""
        return self.coding.model(self.reduction.lifted(z))

    @property
    def centre(self) -> Model:
        """A model that keeps every fact."""
        return self.model(self._exact_centre)

    @property
    def known(self) -> FloatArray:
        """Models (a, b), rows, that points were found open by: rounded, and not held to the facts again."""
        if self.cone is None or self.batch is None:
            return np.zeros((0, self.rows.shape[1]))
        models = np.vstack([self.cone.centre[None, :], self.cone.models(self.batch.models)])
        return self.coding.models(models @ self.basis.T)

    # Many points.

    def codes(self, X: FloatArray, deadline: float | None = None) -> NDArray[np.int8]:
        """The verdict on every point; OPEN only if the deadline (time.monotonic) passed."""
        codes = self.look(X)
        for i in np.flatnonzero(codes == OPEN):
            if deadline is not None and time.monotonic() > deadline:
                break
            try:
                codes[i] = self.settle(X[i], deadline).code
            except OutOfTime:
                break
        return codes

    @np.errstate(all="ignore")
    def look(self, X: FloatArray) -> NDArray[np.int8]:
        """The same without rationals: what floats cannot prove is OPEN."""
        codes = np.full(len(X), OPEN, dtype=np.int8)
        self.last_used = np.full(len(X), NOT_TOLD)
        if self.cone is None or not len(X):
            return codes
        asked = _Asked(X, self)
        codes[asked.beside_the_span()] = UNKNOWN
        codes[asked.exact & ~asked.inner.any(axis=1)] = BOUNDARY
        if not self.is_whole and self.ball is not None:
            self._search(asked, codes, self.ball)
        self._search(asked, codes, None)
        self.last_used = asked.last_used
        return codes

    def _search(self, asked: _Asked, codes: NDArray[np.int8], ball: Ball | None) -> None:
        todo = np.flatnonzero(codes == OPEN)
        todo = todo[np.argsort(asked.inner[todo] @ self._key, kind="stable")]  # alike next to alike
        while len(todo):
            piece = todo[:PIECE]
            done = self._search_piece(asked, codes, piece, ball)
            todo = todo[done:]

    @cached_property
    def _key(self) -> FloatArray:
        """Points are sorted by the columns that have few values, then by how far they are from the centre's plane."""
        assert self.cone is not None
        kinds = np.array([len(np.unique(np.abs(column))) for column in self._inner.T])
        rough = np.random.default_rng(0).standard_normal(len(kinds)) * 1e3 * (kinds <= 8)
        key: FloatArray = rough + self.cone.centre / np.abs(self._inner @ self.cone.centre).mean()
        return key

    def _search_piece(self, asked: _Asked, codes: NDArray[np.int8], todo: IntArray, ball: Ball | None) -> int:
        """Codes for some of the points, as many as the pool has room for; how many were done."""
        cone, batch = self.cone, self.batch
        assert cone is not None
        assert batch is not None
        targets = asked.inner[todo] * asked.sign[todo, None]
        C = targets @ cone.map
        length = np.maximum(np.linalg.norm(C, axis=1), 1e-300)
        C /= length[:, None]
        aims = C if ball is None else ball.behind(C)
        lean = np.linalg.norm(aims, axis=1)
        found = batch.search(aims / lean[:, None], targets if self.is_whole else None)
        todo = todo[: len(found.codes)]
        self._by_models(asked, codes, todo, found)
        held = np.flatnonzero(found.codes == HELD)
        if ball is not None:
            off = asked.rounding(todo[held], length[held])
            paid = ball.pays(aims[held] / lean[held, None], lean[held], off, found.held[held], found.weights[held])
        elif self.is_whole:
            paid = found.proved[held] & asked.exact[todo[held]]
        else:
            paid = np.array([self._by_long_numbers(asked, int(todo[k]), found, int(k)) for k in held], dtype=np.bool_)
        held = held[paid]
        strict = (self.facts.strict[self.live][found.held[held]] & (found.held[held] >= 0)).any(axis=1)
        sure = strict | (asked.sign[todo[held]] > 0)
        codes[todo[held[sure]]] = asked.sign[todo[held[sure]]]
        if ball is None and self.reduction.exact_basis is None:  # else other facts have a part in the proof
            rows = found.held[held[sure]]
            asked.last_used[todo[held[sure]]] = np.where(rows >= 0, self.origin[self.live[rows]], -1).max(axis=1)
        for k in held[~sure]:  # a No by weak facts alone: unless some model has all of them at 0
            support = self.live[found.held[k][found.held[k] >= 0]]
            codes[todo[k]] = NO if isinstance(self._by_weak(support), dict) else UNKNOWN
        return len(todo)

    def _by_models(self, asked: _Asked, codes: NDArray[np.int8], todo: IntArray, found: Found) -> None:
        """UNKNOWN where a model that provably keeps every fact provably disagrees with the centre, which does."""
        assert self.cone is not None
        assert self.batch is not None
        kept = self.batch.admitted(self._keeps)
        doubt = np.flatnonzero((found.codes == UNKNOWN) & (found.models >= 0))
        at, which = todo[doubt], found.models[doubt]
        models = self.cone.models(self.batch.models[which])
        codes[at[kept[which] & asked.doubts(at, models)]] = UNKNOWN

    def _keeps(self, models: FloatArray) -> BoolArray:
        """For models in reduced coordinates: True if every fact that is no equality is kept strictly, for certain."""
        size = np.abs(self.rows[self.live]) @ np.abs(self.basis)
        off = gamma(self.rows.shape[1] + self.basis.shape[1] + 8) * (np.abs(models) @ size.T)
        return np.asarray((models @ self._inner.T > off).all(axis=1))

    @cached_property
    def ball(self) -> Ball | None:
        """A ball inside the cone of the rows; None if none can be shown."""
        if self.cone is None or self.reduction.exact_basis is not None:
            return None
        return Ball.inside(self.cone)

    def _by_long_numbers(self, asked: _Asked, i: int, found: Found, k: int) -> bool:
        """The same proof as with whole numbers, for numbers of any length: an exact solve on the rows that hold the target."""
        support = self.live[found.held[k][found.held[k] >= 0]]
        return self._solve(support, self._target(self.coding.exact(asked.X[i]), int(asked.sign[i]))) is not None

    # One point.

    def _target(self, entries: Sequence[Fraction], sign: int) -> list[Fraction]:
        return [*(sign * v for v in entries), Fraction(-sign)]

    def _solve(self, support: IntArray, target: Sequence[Fraction]) -> Weights | None:
        """Weights of the support, and of equalities, that add up to the target; None if there are none, or one of the
        support is < 0."""
        columns = [self.reduction.reduced(row) for row in self.reduction.exact_rows(support)]
        weights = combine(columns, self.reduction.reduced(target)) if len(columns) else []
        if weights is None or min(weights, default=Fraction(0)) < 0:
            return None
        found = {int(i): w for i, w in zip(support, weights, strict=True) if w}
        return self.reduction.over_equalities(found, target)

    def settle(self, x: FloatArray, deadline: float | None = None) -> Evidence:
        """The verdict on a point with what proves it; rationals where floats cannot tell."""
        entries = self.coding.exact(x)
        target = self._target(entries, 1)
        inner = self.reduction.reduced(target)
        if not any(inner):
            return Evidence(BOUNDARY, self.reduction.over_equalities({}, target))
        quick = self._quick(x, target)
        if quick is not None:
            return quick
        centre = self._exact_centre
        said = dot(centre, inner)
        if not len(self.live):  # equalities alone: either side is open
            lean = [Fraction(v) for v in inner]
            return Evidence(UNKNOWN, models=(self.model(lean), self.model([-v for v in lean])))
        sign = YES if said >= 0 else NO
        whole, units = in_whole_numbers([self.reduction.reduced(row) for row in self.reduction.exact_rows(self.live)])
        aim = [sign * v * unit for v, unit in zip(inner, units, strict=True)]
        factor = lcm(*(v.denominator for v in aim))
        metric = np.eye(len(units))
        if self.cone is not None and max(units).bit_length() < 900:
            metric = self.cone.map / np.array([float(u) for u in units])[:, None]
        held, against = project_exactly(whole, [int(v * factor) for v in aim], self._guess(x, sign), metric, deadline)
        if held is not None:
            weights = {int(self.live[i]): w / factor for i, w in held.items()}
            return self._certain(sign, self.reduction.over_equalities(weights, [sign * v for v in target]), target)
        assert against is not None
        other = [v * unit for v, unit in zip(against, units, strict=True)]
        return Evidence(UNKNOWN, models=self._disagreement(other, centre, inner, sign, said))

    def _guess(self, x: FloatArray, sign: int) -> list[int]:
        """Rows that floats would hold the point with, by their place among the live ones."""
        if self.cone is None or self.batch is None:
            return []
        query = self.coding.queries(x[None, :])[0] @ self.basis * sign @ self.cone.map
        length = float(np.linalg.norm(query))
        if not 0 < length < np.inf:
            return []
        held = self.batch.search(query / length).held
        return held[0][held[0] >= 0].tolist() if len(held) else []

    def _quick(self, x: FloatArray, target: Sequence[Fraction]) -> Evidence | None:
        """By one search in floats and an exact solve on what it held, or two models; None if that does not tell."""
        if self.cone is None or self.batch is None:
            return None
        query = self.coding.queries(x[None, :])[0] @ self.basis
        said = float((query @ self.cone.centre)[0])
        sign = YES if said >= 0 else NO
        C = sign * query @ self.cone.map
        length = float(np.linalg.norm(C))
        if not 0 < length < np.inf:
            return None
        found = self.batch.search(C / length)
        if found.codes[0] == HELD:
            support = self.live[found.held[0][found.held[0] >= 0]]
            weights = self._solve(support, [sign * v for v in target])
            return None if weights is None else self._certain(sign, weights, target)
        if found.codes[0] == UNKNOWN and found.models[0] >= 0:
            model = self.cone.models(self.batch.models[found.models[0]])
            inner = self.reduction.reduced(target)
            other = [Fraction(v) for v in model.tolist()]
            along = [dot(z, inner) for z in (self._exact_centre, other)]
            if self._keeps(model[None, :])[0] and along[0] and along[0] * along[1] < 0:
                yes, no = (self._exact_centre, other) if along[0] > 0 else (other, self._exact_centre)
                return Evidence(UNKNOWN, models=(self.model(yes), self.model(no)))
        return None

    def _disagreement(
        self, other: list[Fraction], centre: list[Fraction], inner: list[Fraction], sign: int, said: Fraction
    ) -> tuple[Model, Model]:
        """(one that says Yes, one that says No): the centre, and a model of the closed cone that disagrees, moved a
        little inside."""
        against = dot(other, inner)
        share = abs(against) / (4 * abs(said)) if said else Fraction(1)
        moved = [a + share * b for a, b in zip(other, centre, strict=True)]
        return (self.model(centre), self.model(moved)) if sign == YES else (self.model(moved), self.model(centre))

    def _certain(self, sign: int, weights: Weights, target: Sequence[Fraction]) -> Evidence:
        """A point that is held by some weights."""
        support = np.array([i for i in weights if not self.facts.equal[i]], dtype=np.int64)
        if sign == YES or self.facts.strict[support].any():
            return Evidence(sign, weights)
        found = self._by_weak(support)
        if not isinstance(found, dict):
            return Evidence(UNKNOWN, models=(found, self.centre))
        if not found:
            return Evidence(NO, weights)  # facts of full rank
        share = min((weights[i] / (-2 * w) for i, w in found.items() if w < 0 and i in weights), default=Fraction(1))
        mixed = {i: weights.get(i, Fraction(0)) + share * found.get(i, Fraction(0)) for i in {*weights, *found}}
        return Evidence(NO, {i: w for i, w in mixed.items() if w})

    def _by_weak(self, support: IntArray) -> Weights | Model:
        """A model that has all of these weak facts at 0, or the weights of the contradiction if there is none."""
        key = tuple(sorted(support.tolist()))
        if key not in self._weak:
            try:
                self._weak[key] = LinearProver(self.facts.with_equal(key)).centre
            except Contradiction as none:
                self._weak[key] = none.weights
        return self._weak[key]


@final
class _Asked:
    """Points that are asked about, in the coordinates of a prover: `queries` in those of its rows, `inner` in reduced ones."""

    def __init__(self, X: FloatArray, prover: LinearProver) -> None:
        cone = prover.cone
        assert cone is not None
        self.X, self.prover = X, prover
        self.last_used = np.full(len(X), NOT_TOLD)
        self.queries, fits = prover.coding.queries(X)
        self.inner, self.exact = self.queries @ prover.basis, fits & prover.is_whole
        self.size = np.abs(self.queries) @ np.abs(prover.basis)
        self.gamma = gamma(self.queries.shape[1] + self.inner.shape[1] + 8)
        said = self.inner @ cone.centre
        off = self.gamma * (self.size @ np.abs(cone.centre))
        self.sign = np.where(said >= 0, 1.0, -1.0)
        self.clear = (np.abs(said) > off) & prover.is_centre_kept
        self._size_of_said = np.abs(said) + off

    def doubts(self, at: IntArray, models: FloatArray) -> BoolArray:
        """For some points and a model for each: True if it says otherwise than the centre, for certain."""
        said = np.einsum("ij,ij->i", self.inner[at], models) * self.sign[at]
        off = self.gamma * np.einsum("ij,ij->i", self.size[at], np.abs(models))
        return np.asarray((said < -off) & self.clear[at])

    def rounding(self, at: IntArray, length: FloatArray) -> FloatArray:
        """How far the targets of some points, of length 1 after a division by `length`, may be off."""
        cone = self.prover.cone
        assert cone is not None
        size = np.linalg.norm(np.abs(self.queries[at]) @ np.abs(cone.map), axis=1)
        return np.asarray(gamma(cone.rows.shape[1] + 8) * size / length + 4 * gamma(1))

    def beside_the_span(self) -> BoolArray:
        """True for points with a part that no row has: the centre, moved that way or back, says either."""
        unseen, reach = self.prover.unseen
        if not unseen.shape[1]:
            return np.zeros(len(self.X), dtype=bool)
        along = np.abs(self.inner @ unseen) - self.gamma * (self.size @ np.abs(unseen))
        return np.asarray((along * reach > self._size_of_said[:, None]).any(axis=1))
