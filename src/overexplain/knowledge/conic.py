"""The best model against a claim, in one solve: facts as linear rows, lengths as cones.

    min T·(a, b)   over   L·(a, b) ≥ Σ_n r_n·t_n for every fact,   t_n ≥ ‖a‖* for every norm,   t = 1 for one of them

A linear program if every norm has a polyhedral ball (HiGHS), else one with second-order and power cones (Clarabel). The
multipliers of the rows are a certificate's weights, those of a norm's cone its Hölder term.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, final

import numpy as np
from scipy import sparse

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.rational_norms import exponent_and_weights
from overexplain.knowledge.solvers import clarabel_of, highs_of, run_highs

PENALTY = 2.0**20
"""The price of breaking rows, where that is allowed."""

ALMOST = 1e-7
"""Residuals with which a cone program that did not get any further still counts as solved: what follows from it is checked."""

WIDEST = 2.0**24
"""Scaled models are looked for within this box: one that touches it belongs to a claim far from certain."""


@final
@dataclass(frozen=True)
class Found:
    """What the solver says: T·(a, b) ≥ value at t = 1, reached by `model`; weights of the rows, Hölder vectors by number.

    `sides` are the weights of a box around a, if there is one: above 0 of its lower sides, below 0 of its upper ones.
    """

    value: float
    weights: FloatArray
    model: FloatArray
    lengths: FloatArray
    directions: dict[int, FloatArray]
    sides: FloatArray


@final
class Conic:
    """Cone programs over fixed norms, for any facts and targets.

    `exponents` bring (a, b) to numbers near 1, `units` the lengths; `unit` is the number of the norm whose length is 1, `closed`
    are the norms for which t ≥ ‖a‖* is asked for. The variables are (a, b), the lengths, and what the norms need besides.
    """

    def __init__(
        self, norms: tuple[Norm, ...], secrets: int, exponents: IntArray, units: IntArray, unit: int, closed: list[int]
    ) -> None:
        self._given = (norms, secrets, exponents, units, unit)
        self.exponents, self.units, self.unit, self.closed = exponents, units, unit, frozenset(closed)
        self.dimension = len(exponents) - 1
        self.lengths = len(norms) + secrets
        self.secrets = secrets
        self.blocks = [_Block.of(n, norms[n], self.dimension, exponents, units) for n in closed]
        self.size = self.dimension + 1 + self.lengths
        for block in self.blocks:
            block.start = self.size
            self.size += block.extra

    @property
    def is_linear(self) -> bool:
        """True if they are linear programs."""
        return all(block.exponent in (1.0, np.inf) for block in self.blocks)

    @property
    def level(self) -> int:
        """The variable that is 1."""
        return self.dimension + 1 + self.unit

    def without(self, numbers: list[int]) -> Conic:
        """The same, but for some norms t ≥ ‖a‖* is not asked for."""
        return Conic(*self._given, closed=[n for n in sorted(self.closed) if n not in numbers])

    def prepare(
        self, vectors: FloatArray, rights: FloatArray, pairs: IntArray | None = None, elastic: bool = False
    ) -> Prepared:
        """The program with vectors·(a, b) ≥ rights·lengths, one row a fact, for any number of targets.

        `pairs` (n, 2) are rows that are each other's negative but for a tolerance: an interior-point method takes them as one
        equation, for between them there is no room for it. `elastic` (linear programs only): rows may be broken at a high price, so
        that weights come out even if no model keeps them.
        """
        return Prepared(self, vectors, rights, pairs, elastic)


@final
class Prepared:
    """A cone program that waits for targets; what solves it starts from where it ended the last time."""

    def __init__(
        self, conic: Conic, vectors: FloatArray, rights: FloatArray, pairs: IntArray | None, elastic: bool
    ) -> None:
        self._conic = conic
        scaled, self._shrink = self._scaled(vectors, rights)
        rows = sparse.csr_matrix(scaled)
        rows.resize((len(vectors), conic.size))
        self._more = np.zeros(0, dtype=np.int64)
        self._solver = _Linear(conic, rows, elastic) if conic.is_linear else _Curved(conic, rows, pairs)

    def _scaled(self, vectors: FloatArray, rights: FloatArray) -> tuple[FloatArray, IntArray]:
        """(rows in the solver's units, the power of two each was multiplied by)."""
        conic = self._conic
        scaled = np.hstack([np.ldexp(vectors, conic.exponents), -np.ldexp(rights, conic.units)])
        size = np.abs(scaled[:, : conic.dimension + 1]).max(axis=1, initial=0.0)
        bare = size == 0  # a chord without slopes is about lengths alone
        size[bare] = np.abs(scaled[bare]).max(axis=1, initial=0.0)
        shrink = -np.frexp(np.maximum(size, 2.0**-1000))[1]
        return np.ldexp(scaled, shrink[:, None]), shrink

    @property
    def is_linear(self) -> bool:
        """True if it is a linear program: only those can be confined."""
        return isinstance(self._solver, _Linear)

    def confine(self, low: FloatArray, high: FloatArray, vectors: FloatArray, rights: FloatArray) -> None:
        """Only models with low·t ≤ a ≤ high·t from now on, and with some rows more in the place of those of the last time."""
        self.replace_rows(vectors, rights)
        conic = self._conic
        shift = int(conic.units[conic.unit]) - conic.exponents[:-1]
        assert isinstance(self._solver, _Linear)
        self._solver.confine(np.ldexp(low, shift), np.ldexp(high, shift))

    def replace_rows(self, vectors: FloatArray, rights: FloatArray) -> None:
        """Some rows more from now on, in the place of those of the last time."""
        assert isinstance(self._solver, _Linear)
        rows, self._more = self._scaled(vectors, rights)
        self._solver.replace_rows(rows)

    def solve(self, target: FloatArray) -> Found:
        """The least target·(a, b)."""
        conic = self._conic
        p, k = conic.dimension, conic.lengths
        goal = np.ldexp(target, conic.exponents)
        tall = -int(np.frexp(np.abs(goal).max() or 1.0)[1])
        cost = np.zeros(conic.size)
        cost[: p + 1] = np.ldexp(goal, tall)
        value, multipliers, pieces, v, sides = self._solver.solve(cost)
        weights = np.ldexp(np.maximum(multipliers, 0.0), np.append(self._shrink, self._more) - tall)
        directions = {
            block.number: np.ldexp(block.direction(piece), -conic.exponents[:-1] - tall)
            for block, piece in zip(conic.blocks, pieces, strict=True)
        }
        unit = int(conic.units[conic.unit])
        # At t̂ = 1 the true t is 2^unit.
        model = np.ldexp(v[: p + 1], conic.exponents - unit)
        lengths = np.ldexp(v[p + 1 : p + 1 + k], conic.units - unit)
        sides = np.ldexp(sides, -conic.exponents[:-1] - tall)
        return Found(float(np.ldexp(value, -tall - unit)), weights, model, lengths, directions, sides)


Raw = tuple[float, FloatArray, list[FloatArray], FloatArray, FloatArray]
"""(value, multipliers of the rows, those of every block, the variables, those of the box), all scaled."""


class _Linear:
    """By HiGHS."""

    def __init__(self, conic: Conic, rows: Any, elastic: bool) -> None:
        self._conic, self._facts = conic, rows.shape[0]
        blocks = [block.linear(conic.size) for block in conic.blocks]
        matrix = sparse.vstack([rows, *blocks], format="csr")
        self._ends = np.cumsum([rows.shape[0], *(block.shape[0] for block in blocks)])
        lower, upper = np.full(conic.size, -WIDEST), np.full(conic.size, WIDEST)
        lower[conic.dimension + 1 + conic.lengths - conic.secrets : conic.dimension + 1 + conic.lengths] = 0.0
        lower[conic.level] = upper[conic.level] = 1.0
        cost = np.zeros(conic.size)
        self._elastic = elastic
        if elastic:
            matrix = sparse.hstack([matrix, sparse.csr_matrix(np.ones((matrix.shape[0], 1)))], format="csr")
            cost, lower, upper = np.append(cost, PENALTY), np.append(lower, 0.0), np.append(upper, WIDEST)
        above = np.full(matrix.shape[0], np.inf)
        self._highs = highs_of(matrix, cost, (lower, upper), (np.zeros(matrix.shape[0]), above))
        self._columns = np.arange(conic.dimension + 1, dtype=np.int32)
        self._more = 0

    def confine(self, low: FloatArray, high: FloatArray) -> None:
        """A box for a."""
        p = self._conic.dimension
        self._highs.changeColsBounds(p, self._columns[:p], low, high)

    def replace_rows(self, rows: FloatArray) -> None:
        """Rows in the place of those added the last time."""
        highs, first = self._highs, int(self._ends[-1])
        if self._more:
            highs.deleteRows(self._more, np.arange(first, first + self._more, dtype=np.int32))
        self._more = len(rows)
        if not self._more:
            return
        if self._elastic:
            rows = np.hstack([rows, np.zeros((self._more, self._conic.size - rows.shape[1])), np.ones((self._more, 1))])
        used = rows != 0
        starts = np.append(0, used.sum(axis=1).cumsum()[:-1]).astype(np.int32)
        highs.addRows(
            self._more, np.zeros(self._more), np.full(self._more, np.inf), int(used.sum()), starts,
            np.nonzero(used)[1].astype(np.int32), rows[used],
        )  # fmt: skip

    def solve(self, cost: FloatArray) -> Raw:
        highs = self._highs
        highs.changeColsCost(len(self._columns), self._columns, cost[: len(self._columns)])
        status = run_highs(highs)
        if status == "infeasible":
            raise NoModel("no model keeps all facts")
        if status != "optimal":
            raise SolverFailed(f"the linear program of {self._facts} facts was not solved: {status}")
        solution = highs.getSolution()
        dual = np.array(solution.row_dual)
        value = float(highs.getInfo().objective_function_value)
        pieces = [dual[a:b] for a, b in pairwise(self._ends)]
        weights = np.append(dual[: self._facts], dual[self._ends[-1] :])
        sides = np.array(solution.col_dual)[: self._conic.dimension]
        return value, weights, pieces, np.array(solution.col_value)[: self._conic.size], sides


class _Curved:
    """By Clarabel."""

    def __init__(self, conic: Conic, rows: Any, pairs: IntArray | None) -> None:
        import clarabel

        p, size, secrets = conic.dimension, conic.size, conic.secrets
        self._facts, self._dimension = rows.shape[0], p
        self._pairs = np.zeros((0, 2), dtype=np.int64) if pairs is None else pairs
        self._alone = np.setdiff1d(np.arange(rows.shape[0]), self._pairs.ravel())
        level = sparse.csr_matrix(([1.0], ([0], [conic.level])), shape=(1, size))
        fixed = sparse.vstack([level, rows[self._pairs[:, 0]] - rows[self._pairs[:, 1]]], format="csr")
        first = p + 1 + conic.lengths - secrets
        own = np.arange(secrets)
        above = sparse.vstack(
            [
                rows[self._alone],
                sparse.csr_matrix((np.ones(secrets), (own, first + own)), shape=(secrets, size)),
                sparse.eye(p + 1, size),
                -sparse.eye(p + 1, size),
            ],
            format="csr",
        )
        self._equal = fixed.shape[0]
        parts, right = [-fixed, -above], [np.zeros(self._equal), np.zeros(above.shape[0])]
        right[0][0] = -1.0
        right[1][-2 * (p + 1) :] = WIDEST
        cones = [clarabel.ZeroConeT(self._equal), clarabel.NonnegativeConeT(above.shape[0])]
        self._ends = [self._equal + above.shape[0]]
        for block in conic.blocks:
            matrix, made = block.conic(size, clarabel)
            parts.append(-matrix)
            right.append(np.zeros(matrix.shape[0]))
            cones += made
            self._ends.append(self._ends[-1] + matrix.shape[0])
        self._solver = clarabel_of(sparse.vstack(parts, format="csc"), np.concatenate(right), cones)

    def solve(self, cost: FloatArray) -> Raw:
        self._solver.update(q=cost)
        found = self._solver.solve()
        status = str(found.status)
        if "PrimalInfeasible" in status:
            raise NoModel("no model keeps all facts")
        apart = abs(found.obj_val - found.obj_val_dual) / (1 + abs(found.obj_val))
        if status != "Solved" and not max(found.r_prim, found.r_dual, apart) < ALMOST:
            raise SolverFailed(f"the cone program of {self._facts} facts was not solved: {status}")
        z, v = np.array(found.z), np.array(found.x)
        weights = np.zeros(self._facts)
        weights[self._alone] = z[self._equal : self._equal + len(self._alone)]
        # The difference of two rows that are each other's negative is twice the one: a multiplier counts for both, or neither.
        both = 2 * z[1 : self._equal]
        weights[self._pairs[:, 0]], weights[self._pairs[:, 1]] = np.maximum(both, 0.0), np.maximum(-both, 0.0)
        pieces = [z[a:b] for a, b in pairwise(self._ends)]
        return float(cost @ v), weights, pieces, v, np.zeros(self._dimension)


class NoModel(SolverFailed):
    """The facts contradict each other, as far as a float64 solver can tell."""


@dataclass
class _Block:
    """t ≥ ‖a/e‖_r for a weighted ℓq norm, r the dual exponent: rows of a linear program, or cones."""

    number: int
    exponent: float
    sizes: FloatArray
    at: int
    start: int = 0

    @staticmethod
    def of(number: int, norm: Norm, p: int, exponents: IntArray, units: IntArray) -> _Block:
        q, weights = exponent_and_weights(norm, p)
        assert q is not None
        e = np.array([float(v) for v in weights])
        r = np.inf if q == 1 else 1.0 if q == np.inf else q / (q - 1)
        # a_i/e_i in units of the length: the entries are the scaled a's.
        sizes = np.ldexp(1.0 / e, exponents[:-1] - int(units[number]))
        return _Block(number, r, sizes, p + 1 + number)

    @property
    def extra(self) -> int:
        """How many variables it needs besides a and t."""
        return 0 if self.exponent in (2.0, np.inf) else len(self.sizes)

    def linear(self, size: int) -> Any:
        """Rows ≥ 0 of a polyhedral norm: t ∓ a_i/e_i, or z_i ∓ a_i/e_i and t − Σz."""
        p = len(self.sizes)
        above = np.full(p, self.at) if self.exponent == np.inf else self.start + np.arange(p)
        i = np.arange(p)
        rows = np.concatenate([i, i, p + i, p + i])
        columns = np.concatenate([above, i, above, i])
        values = np.concatenate([np.ones(p), -self.sizes, np.ones(p), self.sizes])
        if self.exponent == np.inf:
            return sparse.csr_matrix((values, (rows, columns)), shape=(2 * p, size))
        rows = np.concatenate([rows, np.full(p + 1, 2 * p)])
        columns = np.concatenate([columns, [self.at], self.start + i])
        values = np.concatenate([values, [1.0], -np.ones(p)])
        return sparse.csr_matrix((values, (rows, columns)), shape=(2 * p + 1, size))

    def conic(self, size: int, clarabel: Any) -> tuple[Any, list[Any]]:
        """(rows, the cones they lie in)."""
        p = len(self.sizes)
        i = np.arange(p)
        if self.exponent in (1.0, np.inf):
            matrix = self.linear(size)
            return matrix, [clarabel.NonnegativeConeT(matrix.shape[0])]
        if self.exponent == 2.0:
            rows, columns = np.concatenate([[0], 1 + i]), np.concatenate([[self.at], i])
            matrix = sparse.csr_matrix((np.concatenate([[1.0], self.sizes]), (rows, columns)), shape=(p + 1, size))
            return matrix, [clarabel.SecondOrderConeT(p + 1)]
        rows = np.concatenate([np.zeros(p + 1, dtype=np.int64), 1 + 3 * i, 2 + 3 * i, 3 + 3 * i])
        columns = np.concatenate([[self.at], self.start + i, self.start + i, np.full(p, self.at), i])
        values = np.concatenate([[1.0], -np.ones(p), np.ones(p), np.ones(p), self.sizes])
        matrix = sparse.csr_matrix((values, (rows, columns)), shape=(3 * p + 1, size))
        return matrix, [clarabel.NonnegativeConeT(1), *[clarabel.PowerConeT(1.0 / self.exponent) for _ in range(p)]]

    def direction(self, piece: FloatArray) -> FloatArray:
        """The Hölder vector, for the scaled a, that the multipliers of its rows add up to."""
        p = len(self.sizes)
        if self.exponent in (1.0, np.inf):
            return np.asarray((piece[p : 2 * p] - piece[:p]) * self.sizes)
        if self.exponent == 2.0:
            return np.asarray(piece[1:] * self.sizes)
        return np.asarray(piece[3::3] * self.sizes)
