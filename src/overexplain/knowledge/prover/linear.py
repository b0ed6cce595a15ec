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

import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.prover.ball import Ball
from overexplain.knowledge.prover.batch import COMPILED, HELD, PIECE, UNKNOWN, Batch, Found
from overexplain.knowledge.prover.cone import NoInterior, RoundCone, gamma
from overexplain.knowledge.prover.models import clearest
from overexplain.knowledge.prover.points import Points
from overexplain.knowledge.prover.rationals import combine_floats, combine_whole, in_whole_numbers, interior
from overexplain.knowledge.prover.reduction import (
    BOUNDARY,
    SHARES,
    Contradiction,
    LinearFacts,
    Model,
    Reduction,
    Weights,
    dot,
    target_of,
)
from overexplain.knowledge.prover.screens import Box, behind, find_box

OPEN = 3
REPEATS = 4
"""Searches until no row joins that had been left out."""
LARGEST_PRODUCT = 8_000_000
"""Entries of one matrix product."""
MANY = 2000
"""Points that are worth a box and a look at which rows matter."""
WORTH_PRUNING = 4
"""So many rows a dimension, and as many points as rows, are worth finding out which rows matter."""


@final
class LinearProver:
    """Decides claims about all models of linear facts; raises Contradiction if there are none."""

    def __init__(self, facts: LinearFacts) -> None:
        self.facts, self.coding, self.rows = facts, facts.coding, facts.rows
        self.reduction = Reduction(facts)
        self.cone: RoundCone | None = None
        self._weak: dict[tuple[int, ...], Contradiction | LinearProver] = {}
        self._fit()
        self.needed: IntArray | None = None
        self._box: Box | None = None
        self._asked, self._has_looked_for_box, self._is_pruned = 0, False, False
        self.batch = self.new_batch()

    def new_batch(self) -> Batch | None:
        return None if self.cone is None else Batch(self.cone, self._inner if self.is_whole else None, self.needed)

    def _prepare(self, count: int) -> None:
        """For many points: a box around the models, and only the rows that others do not imply."""
        self._asked += count
        if self.cone is None or self.batch is None or count < MANY:
            return
        if not self._has_looked_for_box:
            self._has_looked_for_box = True
            self._box = None if self.ball is None else find_box(self.cone, self.ball)
            if self._box is not None:
                self.needed = np.flatnonzero(~self._box.holds(behind(self.cone), np.zeros(len(self.live))))
                self.batch = self.new_batch()
        left = np.arange(len(self.live)) if self.needed is None else self.needed
        if self._is_pruned or self._asked < len(left) or len(left) < WORTH_PRUNING * self.cone.rank:
            return
        self._is_pruned = True
        implied, targets, batch = np.ones(len(self.live), dtype=bool), behind(self.cone), self.batch
        while len(left) and batch is not None:
            found = batch.search(targets[left])
            implied[left[: len(found.codes)]] = found.codes == HELD
            left = left[len(found.codes) :]
        self.needed = np.flatnonzero(~implied)
        self.batch = self.new_batch()

    @property
    def is_whole(self) -> bool:
        """True if floats compute with rows and coded queries without rounding."""
        return self.reduction.is_whole

    def fork(self) -> LinearProver:
        """A copy that learns for itself."""
        twin = object.__new__(LinearProver)
        twin.__dict__.update(self.__dict__)
        twin.batch = self.new_batch()
        twin._weak = {}
        return twin

    # Reading the facts.

    def _fit(self) -> None:
        """Facial reduction: relations among rows make equalities of them, until what is left has an interior."""
        facts = self.facts
        # Forms that look alike may differ where floats end.
        number = np.maximum(np.arange(len(self.rows)) - len(facts.points) + 1, 0)
        keys = np.hstack([self.rows, facts.equal[:, None], facts.strict[:, None], number[:, None]])
        unique = np.sort(np.unique(keys, axis=0, return_index=True)[1])
        while True:
            equal = self.reduction.equal_rows()
            live = unique[~np.isin(unique, equal)]
            if len(equal):
                self.reduction.reduce(equal)
                live = self.reduction.without_zeros(live)
            if self.reduction.is_flat:
                if not facts.constants:
                    raise Contradiction(self.reduction.all_relations(), self.reduction.given)
                live = live[:0]  # a = b = 0 alone, which has every point on its plane
            self.live = live
            if not len(live):
                return  # equalities alone, or nothing at all
            self._inner = np.ascontiguousarray(self.reduction.inner(self.rows[live]))
            try:
                self.cone = RoundCone(self._inner)
                return
            except NoInterior as none:
                relation = self._relation(none.weights)
            if relation is None:
                return
            if facts.strict[list(relation)].any():
                raise Contradiction(self.reduction.over_equalities(relation, [Fraction(0)] * self.rows.shape[1]))
            self.reduction.relations.append(relation)

    def _relation(self, weights: FloatArray | None) -> Weights | None:
        """{row: weight > 0} that add up to 0 where the equalities hold, exactly; None if there is an interior after
        all: `cone` is set."""
        if weights is not None:
            found = self.reduction.exact_relation(self.live[weights > 1e-9 * weights.max(initial=0.0)])
            if found is not None:
                return found
        whole, units = in_whole_numbers([self.reduction.reduced(row) for row in self.reduction.exact_rows(self.live)])
        relation, inside = interior(whole)
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
        return self.cone is not None and bool(self.keeps(self.cone.centre[None, :])[0])

    @cached_property
    def exact_centre(self) -> list[Fraction]:
        """A model strictly inside, in the coordinates of what the equalities leave."""
        if self.cone is not None:
            z = [Fraction(v) for v in self.cone.centre.tolist()]
            if not (self.is_centre_kept or all(dot(row, z) > 0 for row in self._exact_live)):
                z = self._interior(self._exact_live)
        elif len(self.live):
            z = self._interior(self._exact_live)
        else:
            z = [Fraction(int(k == 0)) for k in range(self.reduction.size)]
        for k in range(len(z)):
            if any(self.reduction.lifted(z)[:-1]):
                break
            # Every row is about the offset alone: any normal that is small enough will do.
            z[k] += min((dot(row, z) / (2 * abs(row[k])) for row in self._exact_live if row[k]), default=Fraction(1))
        return z

    @cached_property
    def _exact_live(self) -> list[list[Fraction]]:
        """The rows that are no equalities, in the coordinates of what the equalities leave."""
        return [self.reduction.reduced(row) for row in self.reduction.exact_rows(self.live)]

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
        off = gamma(self.rows.shape[1] + self.reduction.size + 8)
        room = self._inner @ centre - off * (self._size @ np.abs(centre))
        moved = np.abs(self._inner @ way) + off * (self._size @ np.abs(way))
        reach = 0.5 * (np.maximum(room, 0.0)[:, None] / np.maximum(moved, 1e-300)).min(axis=0, initial=np.inf)
        return way, np.minimum(reach, 1e100)

    def model(self, z: Sequence[Fraction]) -> Model:
        """Coordinates of what the equalities leave as a model (a, b)."""
        return self.coding.model(self.reduction.lifted(z))

    @property
    def centre(self) -> Model:
        """A model that keeps every fact."""
        return self.model(self.exact_centre)

    def opponents(self, X: FloatArray, most: int) -> list[Model]:
        """Models that keep the facts but for rounding, no more than so many: those that say most clearly where points are."""
        if self.cone is None or self.batch is None:
            return []
        way, reach = self.unseen
        beside = self.cone.centre + np.vstack([way.T * reach[:, None], -way.T * reach[:, None]])
        models = np.vstack([beside, self.cone.models(self.batch.models)])
        models = models[np.isfinite(models).all(axis=1)]
        queries = self.reduction.inner(self.coding.queries(X)[0])
        return [self.model([Fraction(v) for v in models[k].tolist()]) for k in clearest(queries, models, most)]

    # Many points.

    @np.errstate(all="ignore")
    def look(self, X: FloatArray) -> NDArray[np.int8]:
        """The verdict on every point, as far as floats can prove it; OPEN is left to `one_point`."""
        codes = np.full(len(X), OPEN, dtype=np.int8)
        if self.cone is None or not len(X):
            return codes
        self._prepare(len(X))
        if self._is_screened():
            assert self._box is not None
            self._box.settle(X, self.cone, codes)
            left = np.flatnonzero(codes == OPEN)
            codes[left] = self._look(X[left]) if len(left) else codes[left]
            return codes
        return self._look(X)

    def _is_screened(self) -> bool:
        """True if points can go through the box as they are: columns as they are, a strict fact for every No, loops compiled."""
        is_plain = not self.coding.narrow.any() and self.reduction.exact_basis is None
        is_useful = self._box is not None and self._box.is_worth_asking
        return is_useful and is_plain and self._is_strict and COMPILED in sys.modules

    def _look(self, X: FloatArray) -> NDArray[np.int8]:
        codes = np.full(len(X), OPEN, dtype=np.int8)
        assert self.cone is not None
        asked = Points(X, self.coding, self.reduction, self.cone, self.is_centre_kept)
        codes[asked.beside_the_span(*self.unseen)] = UNKNOWN
        codes[asked.exact & ~asked.inner.any(axis=1)] = BOUNDARY
        self._by_box(asked, codes)
        for ball in self._payers(asked):
            for _ in range(REPEATS):
                if not self._search(asked, codes, ball):
                    break
        return codes

    def _payers(self, asked: Points) -> tuple[Ball | None, ...]:
        """What pays for rounding, first to last; None: whole numbers, which have none, or an exact solve on few rows."""
        if self.is_whole and asked.exact.all():
            return (None,)
        return (None,) if self.ball is None else (None, self.ball) if self.is_whole else (self.ball, None)

    def _by_box(self, asked: Points, codes: NDArray[np.int8]) -> None:
        """Certain where the box says so. A rank below D, or No by weak facts alone, takes a closer look."""
        if self._box is None or self.cone is None or self._is_screened() or not self._box.is_worth_asking:
            return  # a screen is the same box
        todo = np.flatnonzero((codes == OPEN) & (self.is_weak(asked.sign) | self._is_strict))
        C = (asked.inner[todo] * asked.sign[todo, None]) @ self.cone.map
        length = np.maximum(np.linalg.norm(C, axis=1), 1e-300)
        held = self._box.holds(C / length[:, None], asked.rounding(todo, length))
        self._box.tally(held)
        codes[todo[held]] = asked.sign[todo[held]]

    @cached_property
    def _is_strict(self) -> bool:
        """True if every member of the ball has weight on a strict fact: then so has whatever is paid by it."""
        return bool(self.facts.strict[self.live].any())

    def _search(self, asked: Points, codes: NDArray[np.int8], ball: Ball | None) -> bool:
        """Decide what can be; True if rows have joined meanwhile that were thought to be implied."""
        before = self.needed
        todo = np.flatnonzero((codes == OPEN) & np.isfinite(asked.inner).all(axis=1))
        todo = todo[np.argsort(asked.inner[todo] @ self._key, kind="stable")]  # alike next to alike
        while len(todo):
            piece = todo[:PIECE]
            done = self._search_piece(asked, codes, piece, ball)
            todo = todo[done:]
        return self.needed is not before

    @cached_property
    def _key(self) -> FloatArray:
        """Points are sorted by the columns that have few values, then by how far they are from the centre's plane."""
        assert self.cone is not None
        kinds = 1 + (np.diff(np.sort(np.abs(self._inner), axis=0), axis=0) != 0).sum(axis=0)
        rough = np.random.default_rng(0).standard_normal(len(kinds)) * 1e3 * (kinds <= 8)
        key: FloatArray = rough + self.cone.centre / np.abs(self._inner @ self.cone.centre).mean()
        return key

    def _search_piece(self, asked: Points, codes: NDArray[np.int8], todo: IntArray, ball: Ball | None) -> int:
        """Codes for some of the points, as many as the pool has room for; how many were done."""
        if self.batch is not None and self.needed is not None and self.batch.kept is not self.needed:
            self.batch = self.new_batch()
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
        signs = asked.sign[todo]
        if ball is not None:
            off = asked.rounding(todo[held], length[held])
            held = held[
                ball.pays(aims[held] / lean[held, None], lean[held], off, found.held[held], found.weights[held])
            ]
            # Every row has weight in what the ball pays.
            sure = self.is_weak(signs[held]) | self._is_strict
            codes[todo[held[sure]]] = signs[held[sure]]
            held = held[~sure]
            supports = [self.live for _ in held]
        elif self.is_whole:
            held = held[found.proved[held] & asked.exact[todo[held]]]
            strict = (self.facts.strict[self.live][found.held[held]] & (found.held[held] >= 0)).any(axis=1)
            sure = strict | self.is_weak(signs[held])
            codes[todo[held[sure]]] = signs[held[sure]]
            held = held[~sure]
            supports = [self.live[found.held[k][found.held[k] >= 0]] for k in held]
        else:
            weights = [
                self._by_long_numbers(asked, int(todo[k]), self.live[found.held[k][found.held[k] >= 0]]) for k in held
            ]
            # No weight at all but on equalities: what was searched for was rounding.
            flat = [weight is not None and not np.isin(list(weight), self.live).any() for weight in weights]
            codes[todo[held[flat]]] = BOUNDARY
            weights = [None if on_plane else weight for on_plane, weight in zip(flat, weights, strict=True)]
            held = held[[weight is not None for weight in weights]]
            supports = [np.array(sorted(weight), dtype=np.int64) for weight in weights if weight is not None]
        for k, support in zip(held, supports, strict=True):
            codes[todo[k]] = self._by_support(int(signs[k]), support)
        return len(todo)

    def _by_support(self, sign: int, support: IntArray) -> int:
        """The verdict on a point that these facts hold, each with weight: a No by weak facts alone takes a closer look."""
        if self.is_weak(sign) or self.facts.strict[support].any():
            return sign
        return sign if isinstance(self.by_weak(support), Contradiction) else UNKNOWN

    def is_weak(self, sign: Any) -> Any:
        """True for claims that may touch the plane: Yes, unless models may be turned round."""
        return (sign > 0) & (not self.facts.swapped)

    def _by_models(self, asked: Points, codes: NDArray[np.int8], todo: IntArray, found: Found) -> None:
        """UNKNOWN where a model that provably keeps every fact provably disagrees with the centre, which does."""
        assert self.cone is not None
        assert self.batch is not None
        kept = self.batch.admitted(self.keeps).copy()
        doubt = np.flatnonzero((found.codes == UNKNOWN) & (found.models >= 0))
        at, which = todo[doubt], found.models[doubt]
        models = self.cone.models(self.batch.models[which])
        shown = kept[which] & asked.doubts(at, models)
        codes[at[shown]] = UNKNOWN
        if not kept.all():
            self._towards_centre(asked, codes, at[~shown], models[~shown])
            self._join(self.cone.models(self.batch.models[~kept]))
            self.batch.drop(~kept)

    def _towards_centre(self, asked: Points, codes: NDArray[np.int8], at: IntArray, models: FloatArray) -> None:
        """Models that break a fact by a hair, or disagree by one: the same mixed with the centre."""
        assert self.cone is not None
        for share in SHARES:
            if not len(at):
                return
            mixed = models + share * self.cone.centre
            shown = asked.doubts(at, mixed) & self.keeps(mixed)
            codes[at[shown]] = UNKNOWN
            at, models = at[~shown], models[~shown]

    def _join(self, models: FloatArray) -> None:
        """Rows that these models break join those that are searched, if they were left out."""
        if self.needed is None:
            return
        broken = np.unique((models @ self._inner.T).argmin(axis=1))
        missing = broken[~np.isin(broken, self.needed)]
        if len(missing):
            self.needed = np.sort(np.append(self.needed, missing))

    def keeps(self, models: FloatArray) -> BoolArray:
        """For models in reduced coordinates: True if every fact that is no equality is kept strictly, for certain."""
        off, kept = gamma(self.rows.shape[1] + self.reduction.size + 8), np.zeros(len(models), dtype=np.bool_)
        some = max(1, LARGEST_PRODUCT // max(len(self._inner), 1))
        for i in range(0, len(models), some):
            z = models[i : i + some]
            kept[i : i + some] = (z @ self._inner.T > off * (np.abs(z) @ self._size.T)).all(axis=1) & np.isfinite(
                z
            ).all(axis=1)
        return kept

    def broken(self, model: Sequence[Fraction]) -> IntArray:
        """Places of live rows that a model of some of them breaks: floats say which may be, rationals which are."""
        largest = max(abs(v) for v in model)
        rough = np.array([float(v / largest) for v in model])
        said = self._inner @ rough
        close = np.flatnonzero(~(said > 4 * gamma(self.rows.shape[1] + 8) * (self._size @ np.abs(rough))))
        rows = self.reduction.exact_rows(self.live[close])
        return np.asarray(close[[dot(self.reduction.reduced(row), model) < 0 for row in rows]], dtype=np.int64)

    @cached_property
    def _size(self) -> FloatArray:
        """What rounding of the rows in reduced coordinates is relative to."""
        return self.reduction.sizes(self.rows[self.live])

    @cached_property
    def ball(self) -> Ball | None:
        """A ball inside the cone of the rows; None if none can be shown."""
        if self.cone is None or self.reduction.exact_basis is not None:
            return None
        return Ball.inside(self.cone)

    def _by_long_numbers(self, asked: Points, i: int, support: IntArray) -> Weights | None:
        """The same proof as with whole numbers, for numbers of any length: an exact solve on the rows that hold the target."""
        return self.weights(support, target_of(self.coding.exact(asked.X[i]), int(asked.sign[i])))

    # One point.

    def weights(self, support: IntArray, target: Sequence[Fraction]) -> Weights | None:
        """Weights of the support, and of equalities, that add up to the target; None if one of the support were below 0, or
        there are none."""
        weights = self._solve(support, target)
        if weights is None or any(w.numerator < 0 for w in weights):
            return None
        found = {int(i): w for i, w in zip(support, weights, strict=True) if w}
        return self.reduction.over_equalities(found, target)

    def _solve(self, support: IntArray, target: Sequence[Fraction]) -> list[Fraction] | None:
        if not len(support):
            return None if any(self.reduction.reduced(target)) else []
        if self.is_whole and self.reduction.exact_basis is None:
            rows = self.rows[support].astype(np.int64).tolist()
            return combine_whole(rows, target)
        if self.reduction.exact_basis is None and support.max() < len(self.facts.points):
            return combine_floats(self.rows[support], target)
        rows, units = in_whole_numbers([self.reduction.reduced(row) for row in self.reduction.exact_rows(support)])
        return combine_whole(rows, [v * unit for v, unit in zip(self.reduction.reduced(target), units, strict=True)])

    def by_weak(self, support: IntArray) -> Contradiction | LinearProver:
        """The prover of models that have all of these weak facts at 0, or the contradiction if there are none."""
        key = tuple(sorted(support[~self.facts.equal[support]].tolist()))
        if key not in self._weak:
            try:
                self._weak[key] = LinearProver(self.facts.with_equal(key))
            except Contradiction as none:
                self._weak[key] = none
        return self._weak[key]
