"""How facts add up: the linear program behind every certificate, and the model behind every doubt.

Each fact is L·(a, b) ≥ r·t_n, n one of the log's distances. A certificate for the target T (T·(a, b) ≥ 0 is the claim) is weights
x ≥ 0 with Σ x·L = T and β_n = Σ x·r ≥ 0 for every n. Its dual is a model:

    max Σ β_n over certificates   =   min T·(a, b) over models that keep every fact, t_n ≥ 1

so one solve gives either the weights or a model that says otherwise. Hölder's inequality, a·d ≥ −‖d‖·t, holds for every d: its
columns are found as they are needed, the next one from the model's own maximizer. This treats every norm alike. The balls of
robust counterfactuals leave the model more room than a step does: with those in the log one cone program finds weights and
Hölder terms together (`conic`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.chords import Box, Chord, root_box, root_chords, unit_of
from overexplain.knowledge.conic import Conic, Prepared
from overexplain.knowledge.facts import Facts, Flips, OffPlane, OnPlane, OnSide, Secret, Steepest, is_euclidean
from overexplain.knowledge.rational_norms import exponent_and_weights, gradient_of, is_flat, orthogonal

PENALTY = 2.0**20
"""What a shortfall of β costs: the largest t_n a model may have beside the smallest, 1."""

THIN = 1e-9
"""A tolerance below this share of a step is one of float64 rounding."""

ROUNDS = 60
"""How many Hölder columns are added before the program settles for what it has."""


@dataclass(frozen=True)
class Key:
    """Which fact a column is; `number` is that of its distance, `index` the coordinate of a `ray` column.

    `chord` is the number of the chord in a chord's column, and in that of a perspective point, which is a plane and a chord.
    """

    fact: str
    row: int | None = None
    sign: int = 1
    number: int | None = None
    index: int = -1
    chord: int = -1


@dataclass(frozen=True)
class Solution:
    """The best certificate found and the model that limits it.

    `value` < 0: no certificate, and `model` (a, b) has T·(a, b) < 0. `weights` belong to `columns` of the program, `directions`
    are Hölder vectors besides, by the number of their norm.
    """

    value: float
    weights: FloatArray
    model: FloatArray
    scale: float
    directions: dict[int, FloatArray] = field(default_factory=dict)


@final
@dataclass
class Columns:
    """Facts as columns of a program: `vectors` (m, p + 1), `rights` (m, number of distances), `keys`."""

    vectors: list[FloatArray] = field(default_factory=list)
    rights: list[FloatArray] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)


class Program:
    """The program of a set of facts; it learns Hölder columns from every solve."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.norms: tuple[Norm, ...] = facts.norms
        self.lengths_known = len(facts.lengths)
        measure = unit_of(facts)
        self.box: Box | None = None if measure is None else root_box(facts, measure)
        self.chords: list[Chord] = [] if self.box is None else root_chords(facts, self.box)
        self._labels = facts.queries()
        self._columns = Columns()
        self._directions: set[tuple[int, bytes | tuple[Fraction, ...]]] = set()
        self._exact: dict[int, tuple[Fraction, ...]] = {}
        for fact in facts.explained:
            self._add_fact(fact)
        for number in range(len(self.chords)):
            self._add_chord(number)
        # The units of the features are those of the data: the unit vectors below, and rays, have none of their own.
        own = [
            v
            for v, key in zip(self._columns.vectors, self._columns.keys, strict=True)
            if key.fact not in ("ray", "chord", "entry")
        ]
        self.exponents = column_exponents(np.vstack([self._labels, *[vector[None, :] for vector in own]]))
        for number in range(len(self.norms)):
            for unit in np.eye(facts.dimension):
                self.add_direction(number, unit)
                self.add_direction(number, -unit)
        self.lengths: FloatArray = np.zeros(len(facts.lengths))
        self.conic = self._conic() if facts.off_plane and facts.norms else None
        self._prepared: tuple[IntArray, Prepared] | None = None

    def _conic(self) -> Conic:
        """The cone program of the facts: norms that are weighted ℓq as cones, others by Hölder columns."""
        p, facts = self.facts.dimension, self.facts
        units = self._units()
        steps = [facts.norms.index(fact.norm) for fact in facts.explained if isinstance(fact, Steepest)]
        closed = [n for n, norm in enumerate(self.norms) if exponent_and_weights(norm, p)[0] is not None]
        return Conic(self.norms, len(facts.secrets), self.exponents, units, steps[0] if steps else 0, closed)

    @property
    def vectors(self) -> FloatArray:
        """L of every column: labels first."""
        own = np.array(self._columns.vectors).reshape(-1, self.facts.dimension + 1)
        return np.vstack([self._labels, own])

    @property
    def rights(self) -> FloatArray:
        """r of every column, one entry a distance."""
        own = np.array(self._columns.rights).reshape(len(self._columns.keys), self.lengths_known)
        return np.vstack([np.zeros((len(self._labels), self.lengths_known)), own])

    def key(self, column: int) -> Key:
        """Which fact a column is."""
        if column < len(self._labels):
            return Key("side", int(self.facts.rows[column]))
        return self._columns.keys[column - len(self._labels)]

    def vector(self, column: int) -> FloatArray:
        """L of one column."""
        labels = len(self._labels)
        return self._labels[column] if column < labels else self._columns.vectors[column - labels]

    def direction(self, column: int) -> Sequence[float | Fraction]:
        """The vector of a Hölder column, without rounding."""
        return self._exact.get(column) or self.vector(column)[:-1].tolist()

    def __len__(self) -> int:
        return len(self._labels) + len(self._columns.keys)

    def add_direction(self, number: int, u: FloatArray, exact: tuple[Fraction, ...] | None = None) -> bool:
        """A Hölder column for the given distance; False if it is there already. `exact`: u before it was rounded."""
        known = (number, u.tobytes() if exact is None else exact)
        if known in self._directions:
            return False
        self._directions.add(known)
        if exact is not None:
            self._exact[len(self)] = exact
        right = np.zeros(self.lengths_known)
        right[number] = -float(self.norms[number](u))
        self._add(np.append(u, 0.0), right, Key("hoelder", number=number))
        return True

    def solve(self, target: FloatArray, good_enough: float = np.inf) -> Solution:
        """The best certificate for the target; stops early once β exceeds `good_enough` times the target's size."""
        if self.conic is not None:
            return self._by_cones(target)
        return self.solve_by_columns(target, good_enough)

    def solve_by_columns(self, target: FloatArray, good_enough: float = np.inf) -> Solution:
        """The same by linear programs with more and more Hölder columns: slower, but at home where models have no room at all."""
        solution = self._solve(target)
        for _ in range(ROUNDS):
            if solution.value > good_enough * solution.scale or not self._refine(solution):
                break
            solution = self._solve(target)
        return solution

    def _by_cones(self, target: FloatArray) -> Solution:
        """The same by one cone program; norms that it does not know by a few."""
        assert self.conic is not None
        for _ in range(ROUNDS):
            columns, prepared = self._ready()
            found = prepared.solve(target)
            self.lengths = found.lengths
            if not self._refine(Solution(0.0, np.zeros(0), found.model, 1.0), self.conic.closed):
                break
        weights = np.zeros(len(self))
        weights[columns] = found.weights
        scale = float(np.abs(np.ldexp(target, self.exponents)).max())
        return Solution(found.value, weights, found.model, scale, found.directions)

    def _ready(self) -> tuple[IntArray, Prepared]:
        """The cone program of the columns there are, made once."""
        assert self.conic is not None
        columns = self.columns_for_cones()
        if self._prepared is None or len(self._prepared[0]) != len(columns):
            pairs = self._pairs(columns)
            self._prepared = columns, self.conic.prepare(self.vectors[columns], self.sharp(columns), pairs)
        return self._prepared

    def sharp(self, columns: IntArray, room: float = 1e-12) -> FloatArray:
        """The right sides of some columns, a little less than they are: a solver's models then keep them for sure.

        Of thin tolerances a quarter is left; labels are kept with some room, relative to the size of their points.
        """
        assert self.conic is not None
        rights, unit = self.rights[columns], self.conic.unit
        labels = columns < len(self._labels)
        rights[labels, unit] += room * np.asarray(self.norms[unit](self.facts.points))[columns[labels]]
        steps = {f.row: f for f in self.facts.explained if isinstance(f, Steepest) and f.tolerance <= THIN * f.length}
        for place, column in enumerate(columns):
            key = self.key(int(column))
            step = steps.get(-1 if key.row is None else key.row)
            if step is not None and key.number is not None and key.fact == "steepest":
                rights[place, key.number] = (3 * step.length + step.steepness) / 4
            elif step is not None and key.number is not None and key.fact == "plane":
                rights[place, key.number] += 0.75 * step.tolerance
        return rights

    def columns_for_cones(self) -> IntArray:
        """The columns that a cone program takes as rows: all but Hölder's for norms that it knows."""
        assert self.conic is not None
        own = [
            n
            for n, key in enumerate(self._columns.keys)
            if key.fact != "hoelder" or key.number not in self.conic.closed
        ]
        labels = len(self._labels)
        return np.append(np.arange(labels), labels + np.array(own, dtype=np.int64))

    def _pairs(self, columns: IntArray) -> IntArray:
        """Columns (by their place among `columns`) that say the same in both directions, but for a thin tolerance."""
        planes: dict[int | None, list[int]] = {}
        for place, column in enumerate(columns):
            if self.key(int(column)).fact == "plane":
                planes.setdefault(self.key(int(column)).row, []).append(place)
        thin = self._thin_rows()
        pairs = [places for row, places in planes.items() if len(places) == 2 and row in thin]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def _thin_rows(self) -> set[int]:
        found = set()
        for fact in self.facts.explained:
            if isinstance(fact, OnPlane | OffPlane):
                size = 1.0 if fact.norm is None else float(fact.norm(np.ldexp(1.0, -self.exponents[:-1])))
                if fact.tolerance <= THIN * size:
                    found.add(fact.row)
        return found

    def _refine(self, solution: Solution, known: Collection[int] = ()) -> bool:
        """True if the model breaks Hölder's inequality for some distance: a column that forbids it was added."""
        found = False
        for number, norm in enumerate(self.norms):
            if number in known:
                continue
            a = solution.model[:-1]
            u = np.asarray(norm.maximizer(a)) if a.any() else a
            if float(a @ u) > (1 + 1e-9) * self.lengths[number]:
                found |= self.add_direction(number, -u)
        return found

    def _solve(self, target: FloatArray) -> Solution:
        from scipy.optimize import linprog

        scaled, right, shrink, units = self._scaled()
        m, d = scaled.shape
        k = self.lengths_known
        goal = np.ldexp(target, self.exponents)
        tall = -int(np.frexp(np.abs(goal).max() or 1.0)[1])
        goal = np.ldexp(goal, tall)
        rows = np.vstack([
            np.hstack([scaled.T, np.zeros((d, 2 * k)), np.eye(d), -np.eye(d)]),
            np.hstack([right.T, -np.eye(k), np.eye(k), np.zeros((k, 2 * d))]),
        ])  # fmt: skip
        cost = np.concatenate(
            [
                np.zeros(m),
                -self._gains,
                np.full(k, PENALTY),
                np.full(2 * d, 2 * PENALTY if k else 1.0),
            ]
        )
        # β is bounded: only facts that contradict each other have no limit, and they prove the target, too.
        bounds = [(0, None)] * m + [(0, PENALTY)] * k + [(0, None)] * (k + 2 * d)
        for presolve in (True, False):  # (presolve has called bounded programs with tiny tolerances unbounded)
            result: Any = linprog(
                cost,
                A_eq=rows,
                b_eq=np.append(goal, np.zeros(k)),
                bounds=bounds,
                method="highs",
                options={"presolve": presolve},
            )
            if result.status == 0:
                break
        else:
            raise SolverFailed(f"the linear program of {m} facts was not solved: {result.message}")
        prices = -np.asarray(result.eqlin.marginals)
        self.lengths = -np.ldexp(prices[d:], units) if k else prices[d:]
        weights = np.ldexp(np.maximum(result.x[:m], 0.0), shrink - tall)
        value = -float(result.fun)
        if k and np.any(result.x[m + k :] > 1e-9):  # a shortfall: not a certificate, whatever β is elsewhere
            value = min(value, -1e-9)
        return Solution(value, weights, np.ldexp(prices[:d], self.exponents), float(np.abs(goal).max()))

    def middle(self) -> tuple[FloatArray, IntArray]:
        """(a model that keeps all facts with as much room as can be, the columns that leave it none).

        If the facts contradict each other the columns are among those that do. A model's t may exceed ‖a‖* by the factor ‖w‖/s, so
        planes are kept to within that much less: what comes out keeps them by its own ‖a‖*.
        """
        from scipy.optimize import linprog

        for _ in range(ROUNDS):
            scaled, right, _, units = self._scaled()
            room = np.array([self._room(self.key(c)) for c in range(len(scaled))])
            shares = self._plane_share
            for c in range(len(scaled)):
                if self.key(c).fact == "plane":
                    right[c] *= shares.get(self.key(c).row, 1.0)
            m, d = scaled.shape
            k = self.lengths_known
            rows = np.hstack([-scaled, right, room[:, None]])
            bounds = [(-1.0, 1.0)] * d + [(0.0, None)] * k + [(None, 1.0)]
            cost = np.zeros(d + k + 1)
            cost[-1] = -1.0
            steps = [c for c in range(m) if self.key(c).fact == "steepest"][:1]
            if steps:  # explanations alone leave the scale open: not the zero model
                cost[:d] = -scaled[steps[0]] / 64
            result: Any = linprog(cost, A_ub=rows, b_ub=np.zeros(m), bounds=bounds, method="highs")
            if result.status != 0:
                raise SolverFailed(f"the linear program of {m} facts was not solved: {result.message}")
            tight = np.flatnonzero(np.abs(result.ineqlin.marginals) > 1e-12)
            self.lengths = np.ldexp(np.asarray(result.x[d : d + k]), units) if k else np.zeros(0)
            model = np.ldexp(np.asarray(result.x[:d]), self.exponents)
            if not self._refine(Solution(0.0, np.zeros(m), model, 1.0)):
                break
        return model, tight

    @property
    def _gains(self) -> FloatArray:
        """What a right side is worth, by length: with robust answers only in the unit, which pays for rounding elsewhere."""
        if self.conic is None:  # (a secret reach may be 0: it is worth nothing)
            return np.append(np.ones(len(self.norms)), np.zeros(len(self.facts.secrets)))
        return np.asarray(np.arange(self.lengths_known) == self.conic.unit, dtype=np.float64)

    def _scaled(self) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
        """(left sides, right sides, the power of two each was multiplied by, those of the lengths).

        Powers of two: nothing is rounded, and HiGHS sees numbers near 1 whatever the units of the features.
        """
        units = self._units()
        scaled, right = np.ldexp(self.vectors, self.exponents), self.rights
        right = np.ldexp(right, units[None, :]) if self.lengths_known else right
        size = np.abs(scaled).max(axis=1)
        bare = size == 0  # a chord without slopes is about lengths alone
        size[bare] = np.abs(right[bare]).max(axis=1, initial=0.0)
        shrink = -np.frexp(np.maximum(size, 2.0**-1000))[1]
        return np.ldexp(scaled, shrink[:, None]), np.ldexp(right, shrink[:, None]), shrink, units

    def _units(self) -> IntArray:
        """Powers of two that bring the lengths near 1."""
        return np.array(
            [_unit(n, self.exponents) if not isinstance(n, Secret) else 0 for n in self.facts.lengths], dtype=np.int64
        )

    def _room(self, key: Key) -> float:
        """1 if a consistent model may keep the fact with room to spare, 0 if it is an equality, or as good as one."""
        if key.number is None:
            return 0.0 if key.fact == "plane" else 1.0
        if key.fact in ("hoelder", "ray", "entry"):
            return 0.0
        fact = next((f for f in self.facts.explained if isinstance(f, Steepest) and f.row == key.row), None)
        return 1.0 if fact is None or fact.tolerance > 1e-7 * fact.length else 0.0

    @property
    def _plane_share(self) -> dict[int | None, float]:
        return {f.row: f.steepness / f.length for f in self.facts.explained if isinstance(f, Steepest)}

    def _add_fact(self, fact: Any) -> None:
        number = None if fact.norm is None else self.norms.index(fact.norm)
        right = np.zeros(self.lengths_known)

        def owing(value: float) -> FloatArray:
            owed = right.copy()
            if number is not None:
                owed[number] = value
            return owed

        if isinstance(fact, OnSide):
            self._add(fact.side * np.append(fact.point, -1.0), owing(fact.margin), Key("side", fact.row, 1, number))
        elif isinstance(fact, OnPlane):
            for sign in (1, -1):
                vector = sign * np.append(fact.point, -1.0)
                self._add(vector, owing(-fact.tolerance), Key("plane", fact.row, sign, number))
        elif isinstance(fact, Steepest):
            self._add(
                -fact.side * np.append(fact.step, 0.0), owing(fact.steepness), Key("steepest", fact.row, 1, number)
            )
            for index, sign, right_side in entries_of(fact):
                vector = np.zeros(self.facts.dimension + 1)
                vector[index] = sign * (1.0 if right_side is None else -fact.side * np.sign(fact.step[index]))
                self._add(vector, owing(right_side or 0.0), Key("entry", fact.row, sign, number, index))
            if fact.tolerance == 0 and is_euclidean(fact.norm):
                for index, level in orthogonal(gradient_of(fact.norm, fact.exact_step)):
                    direction = np.array([float(v) for v in level])
                    for sign in (1, -1):
                        vector = np.append(sign * direction, 0.0)
                        self._add(vector, right.copy(), Key("ray", fact.row, sign, number, index))
        elif isinstance(fact, Flips):
            across = -fact.side * np.append(fact.explanation, -1.0)
            own = fact.side * fact.share * np.append(fact.point, -1.0)
            self._add(across + own, owing(-fact.tolerance), Key("flips", fact.row, 1, number))
        elif isinstance(fact, OffPlane):
            self._add_robust(fact, number)

    def _add_robust(self, fact: OffPlane, number: int | None) -> None:
        """Columns of a robust counterfactual: where it lies, from both sides, and how far its question is from there."""
        ball = self.facts.lengths.index(fact.ball)

        def owing(reach: float, distance: float) -> FloatArray:
            owed = np.zeros(self.lengths_known)
            owed[ball] += reach
            if number is not None:
                owed[number] += distance
            return owed

        self._add(fact.behind, owing(fact.radius, -fact.tolerance), Key("plane", fact.row, 1, number))
        if fact.margin is not None:
            own = fact.side * np.append(fact.point, -1.0)
            self._add(own, owing(-fact.radius, fact.margin), Key("reach", fact.row, 1, number))
        if not fact.tight:
            return
        if fact.shared or ball == number:
            self._add(-fact.behind, owing(-fact.radius, -fact.tolerance), Key("plane", fact.row, -1, number))
            return
        for place, chord in enumerate(self.chords):  # the perspective point: s ≤ C·t in the place of s
            if chord.ball == ball and chord.box.unit == number:
                ratio = (chord.gamma + float(self.norms[number](chord.slopes))) / chord.delta
                owed = np.zeros(self.lengths_known)
                owed[number] = -fact.radius * ratio - fact.tolerance
                self._add(-fact.behind, owed, Key("perspective", fact.row, -1, number, chord=place))

    def _add_chord(self, number: int) -> None:
        """The column of a chord, if lengths may be shared between facts."""
        chord = self.chords[number]
        if not all(fact.shared for fact in self.facts.off_plane):
            return
        right = np.zeros(self.lengths_known)
        right[chord.box.unit], right[chord.ball] = -chord.gamma, chord.delta
        self._add(np.append(chord.slopes, 0.0), right, Key("chord", chord.row, chord=number))

    def _add(self, vector: FloatArray, right: FloatArray, key: Key) -> None:
        self._columns.vectors.append(vector)
        self._columns.rights.append(right)
        self._columns.keys.append(key)


def entries_of(fact: Steepest) -> Iterator[tuple[int, int, float | None]]:
    """(index, sign, right side) of what a step under ℓ1 or ℓ∞ says of entries of a, beyond rounding, that its length does not.

    A right side of None: ±a_i ≥ 0. Otherwise the sign is the step's own.
    """
    if fact.tolerance == 0 or not is_flat(fact.norm):
        return
    q, weights = exponent_and_weights(fact.norm, len(fact.step))
    moved = [w * abs(v) for w, v in zip(weights, fact.exact_step, strict=True)]
    tolerance, is_loose = Fraction(fact.tolerance), fact.tolerance > THIN * fact.length
    far = [i for i, size in enumerate(moved) if size > tolerance]
    if q == 1:
        yield from ((i, 1, float(weights[i])) for i in far if is_loose or len(far) > 1)
        return
    still = [i for i, size in enumerate(moved) if size < max(moved) - 2 * tolerance]
    yield from ((i, sign, None) for i in still for sign in (1, -1))
    yield from ((i, 1, 0.0) for i in far if is_loose and i not in still)


def column_exponents(vectors: FloatArray) -> IntArray:
    """For each entry the power of two that brings its largest value near 1."""
    largest = np.abs(vectors).max(axis=0, initial=0.0)
    return np.asarray(-np.frexp(np.where(largest > 0, largest, 1.0))[1], dtype=np.int64)


def _unit(norm: Norm, exponents: IntArray) -> int:
    """The power of two that brings the lengths of unit steps, after scaling, near 1."""
    p = len(exponents) - 1
    typical = np.ldexp(norm.units(p), -exponents[:-1])
    return -int(np.frexp(float(np.median(typical)))[1])
