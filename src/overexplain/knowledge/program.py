"""How facts add up: the linear program behind every certificate, and the model behind every doubt.

Each fact is L·(a, b) ≥ r·t_n, n one of the log's distances. A certificate for the target T (T·(a, b) ≥ 0 is the claim) is weights
x ≥ 0 with Σ x·L = T and β_n = Σ x·r ≥ 0 for every n. Its dual is a model:

    max Σ β_n over certificates   =   min T·(a, b) over models that keep every fact, t_n ≥ 1

so one solve gives either the weights or a model that says otherwise. Hölder's inequality, a·d ≥ −‖d‖·t, holds for every d: its
columns are found as they are needed, the next one from the model's own maximizer. This treats every norm alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.facts import Facts, Flips, OnPlane, OnSide, Steepest, is_euclidean
from overexplain.knowledge.rational_norms import gradient_of, orthogonal

PENALTY = 2.0**20
"""What a shortfall of β costs: the largest t_n a model may have beside the smallest, 1."""

ROUNDS = 60
"""How many Hölder columns are added before the program settles for what it has."""


@dataclass(frozen=True)
class Key:
    """Which fact a column is; `number` is that of its distance, `index` the coordinate of a `ray` column."""

    fact: str
    row: int | None = None
    sign: int = 1
    number: int | None = None
    index: int = -1


@dataclass(frozen=True)
class Solution:
    """The best certificate found and the model that limits it.

    `value` < 0: no certificate, and `model` (a, b) has T·(a, b) < 0. `weights` belong to `columns` of the program.
    """

    value: float
    weights: FloatArray
    model: FloatArray
    scale: float


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
        self._labels = facts.queries()
        self._columns = Columns()
        self._directions: set[tuple[int, bytes]] = set()
        for fact in facts.explained:
            self._add_fact(fact)
        # The units of the features are those of the data: the unit vectors below, and rays, have none of their own.
        own = [v for v, key in zip(self._columns.vectors, self._columns.keys, strict=True) if key.fact != "ray"]
        self.exponents = column_exponents(np.vstack([self._labels, *[vector[None, :] for vector in own]]))
        for number in range(len(self.norms)):
            for unit in np.eye(facts.dimension):
                self.add_direction(number, unit)
                self.add_direction(number, -unit)
        self.lengths: FloatArray = np.zeros(len(self.norms))

    @property
    def vectors(self) -> FloatArray:
        """L of every column: labels first."""
        own = np.array(self._columns.vectors).reshape(-1, self.facts.dimension + 1)
        return np.vstack([self._labels, own])

    @property
    def rights(self) -> FloatArray:
        """r of every column, one entry a distance."""
        own = np.array(self._columns.rights).reshape(len(self._columns.keys), len(self.norms))
        return np.vstack([np.zeros((len(self._labels), len(self.norms))), own])

    def key(self, column: int) -> Key:
        """Which fact a column is."""
        if column < len(self._labels):
            return Key("side", int(self.facts.rows[column]))
        return self._columns.keys[column - len(self._labels)]

    def vector(self, column: int) -> FloatArray:
        """L of one column."""
        labels = len(self._labels)
        return self._labels[column] if column < labels else self._columns.vectors[column - labels]

    def __len__(self) -> int:
        return len(self._labels) + len(self._columns.keys)

    def add_direction(self, number: int, u: FloatArray) -> bool:
        """A Hölder column for the given distance; False if it is there already."""
        known = (number, u.tobytes())
        if known in self._directions:
            return False
        self._directions.add(known)
        right = np.zeros(len(self.norms))
        right[number] = -float(self.norms[number](u))
        self._add(np.append(u, 0.0), right, Key("hoelder", number=number))
        return True

    def solve(self, target: FloatArray, good_enough: float = np.inf) -> Solution:
        """The best certificate for the target; stops early once β exceeds `good_enough` times the target's size."""
        solution = self._solve(target)
        for _ in range(ROUNDS):
            if solution.value > good_enough * solution.scale or not self._refine(solution):
                break
            solution = self._solve(target)
        return solution

    def _refine(self, solution: Solution) -> bool:
        """True if the model breaks Hölder's inequality for some distance: a column that forbids it was added."""
        found = False
        for number, norm in enumerate(self.norms):
            a = solution.model[:-1]
            u = np.asarray(norm.maximizer(a)) if a.any() else a
            if float(a @ u) > (1 + 1e-9) * self.lengths[number]:
                found |= self.add_direction(number, -u)
        return found

    def _solve(self, target: FloatArray) -> Solution:
        from scipy.optimize import linprog

        vectors, rights = self.vectors, self.rights
        m, d = vectors.shape
        k = len(self.norms)
        # Powers of two: nothing is rounded, and HiGHS sees numbers near 1 whatever the units of the features.
        scaled = np.ldexp(vectors, self.exponents)
        size = np.maximum(np.abs(scaled).max(axis=1), 2.0**-1000)
        shrink = -np.frexp(size)[1]
        scaled = np.ldexp(scaled, shrink[:, None])
        goal = np.ldexp(target, self.exponents)
        tall = -int(np.frexp(np.abs(goal).max() or 1.0)[1])
        goal = np.ldexp(goal, tall)
        units = np.array([_unit(norm, self.exponents) for norm in self.norms], dtype=np.int64)
        right = np.ldexp(np.ldexp(rights, shrink[:, None]), units[None, :]) if k else rights
        rows = np.vstack([
            np.hstack([scaled.T, np.zeros((d, 2 * k)), np.eye(d), -np.eye(d)]),
            np.hstack([right.T, -np.eye(k), np.eye(k), np.zeros((k, 2 * d))]),
        ])  # fmt: skip
        cost = np.concatenate(
            [np.zeros(m), -np.ones(k), np.full(k, PENALTY), np.full(2 * d, 2 * PENALTY if k else 1.0)]
        )
        # β is bounded: only facts that contradict each other have no limit, and they prove the target, too.
        bounds = [(0, None)] * m + [(0, PENALTY)] * k + [(0, None)] * (k + 2 * d)
        result: Any = linprog(cost, A_eq=rows, b_eq=np.append(goal, np.zeros(k)), bounds=bounds, method="highs")
        if result.status != 0:
            raise SolverFailed(f"the linear program of {m} facts was not solved: {result.message}")
        prices = -np.asarray(result.eqlin.marginals)
        self.lengths = -np.ldexp(prices[d:], units) if k else prices[d:]
        weights = np.ldexp(np.maximum(result.x[:m], 0.0), shrink - tall)
        value = -float(result.fun)
        if k and np.any(result.x[m + k :] > 1e-9):  # a shortfall: not a certificate, whatever β is elsewhere
            value = min(value, -1e-9)
        return Solution(value, weights, np.ldexp(prices[:d], self.exponents), float(np.abs(goal).max()))

    def middle(self, careful: bool = True) -> tuple[FloatArray, IntArray]:
        """(a model that keeps all facts with as much room as can be, the columns that leave it none).

        If the facts contradict each other the columns are among those that do. A model's t may exceed ‖a‖* by the factor ‖w‖/s, so
        planes are kept to within that much less if `careful`: what comes out keeps them by its own ‖a‖*.
        """
        from scipy.optimize import linprog

        for _ in range(ROUNDS):
            vectors, rights = self.vectors, self.rights
            scaled = np.ldexp(vectors, self.exponents)
            shrink = -np.frexp(np.maximum(np.abs(scaled).max(axis=1), 2.0**-1000))[1]
            scaled = np.ldexp(scaled, shrink[:, None])
            units = np.array([_unit(norm, self.exponents) for norm in self.norms], dtype=np.int64)
            right = np.ldexp(np.ldexp(rights, shrink[:, None]), units[None, :]) if len(units) else rights
            room = np.array([self._room(self.key(c)) for c in range(len(vectors))])
            shares = self._plane_share if careful else {}
            for c in range(len(vectors)):
                if self.key(c).fact == "plane":
                    right[c] *= shares.get(self.key(c).row, 1.0)
            m, d = scaled.shape
            k = len(self.norms)
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

    def _room(self, key: Key) -> float:
        """1 if a consistent model may keep the fact with room to spare, 0 if it is an equality, or as good as one."""
        if key.number is None:
            return 0.0 if key.fact == "plane" else 1.0
        if key.fact in ("hoelder", "ray"):
            return 0.0
        fact = next((f for f in self.facts.explained if isinstance(f, Steepest) and f.row == key.row), None)
        return 1.0 if fact is None or fact.tolerance > 1e-7 * fact.length else 0.0

    @property
    def _plane_share(self) -> dict[int | None, float]:
        return {f.row: f.steepness / f.length for f in self.facts.explained if isinstance(f, Steepest)}

    def _add_fact(self, fact: Any) -> None:
        number = None if fact.norm is None else self.norms.index(fact.norm)
        right = np.zeros(len(self.norms))

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
            if fact.tolerance == 0 and is_euclidean(fact.norm):
                for index, level in orthogonal(gradient_of(fact.norm, fact.exact_step)):
                    direction = np.array([float(v) for v in level])
                    for sign in (1, -1):
                        vector = np.append(sign * direction, 0.0)
                        self._add(vector, right.copy(), Key("ray", fact.row, sign, number, index))
        elif isinstance(fact, Flips):
            across = -fact.side * np.append(fact.explanation, -1.0)
            own = fact.side * fact.share * np.append(fact.point, -1.0)
            self._add(across + own, right.copy(), Key("flips", fact.row, 1, number))

    def _add(self, vector: FloatArray, right: FloatArray, key: Key) -> None:
        self._columns.vectors.append(vector)
        self._columns.rights.append(right)
        self._columns.keys.append(key)


def column_exponents(vectors: FloatArray) -> IntArray:
    """For each entry the power of two that brings its largest value near 1."""
    largest = np.abs(vectors).max(axis=0, initial=0.0)
    return np.asarray(-np.frexp(np.where(largest > 0, largest, 1.0))[1], dtype=np.int64)


def _unit(norm: Norm, exponents: IntArray) -> int:
    """The power of two that brings the lengths of unit steps, after scaling, near 1."""
    p = len(exponents) - 1
    typical = np.ldexp(norm.units(p), -exponents[:-1])
    return -int(np.frexp(float(np.median(typical)))[1])
