"""The gauge of a cone: which queries have one sign all over it."""

from __future__ import annotations

import copy
import importlib
import sys
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import Polytope, Rows
from overexplain.knowledge.gauge.plain import CERTAIN, OPEN, UNKNOWN, default_working, into_polytope, settle
from overexplain.knowledge.gauge.queries import Directions, Lens, directions
from overexplain.knowledge.gauge.shape import MANY_DIMENSIONS, Shape, first_shape, full_shape
from overexplain.knowledge.gauge.swift import Swift
from overexplain.knowledge.gauge.view import View

WORTH_A_SHAPE = 1500
"""Points after which the tight box, the rays and the pruned rows have paid for themselves."""
WORTH_COMPILING = 4000
"""Points in a block from which the compiled loops are worth loading; where they are loaded, a tenth of it."""
POOL = 1024
BLOCK = 16384
GATHER = 8192
"""Points left by the box that are worth a round of the next step."""


ROUGH, PLAIN, COMPILED = 0, 1, 2
"""How far the shape has been worked out."""


@dataclass
class Stats:
    """How many points each step settled."""

    box: int = 0
    rays: int = 0
    shot: int = 0
    pool: int = 0
    simplex: int = 0
    open: int = 0


class Gauge:
    """Decides the sign of q·w over all w of a cone {w : g·w ≤ 0}; made by `fit_gauge`. Safe to share between threads.

    Points of the cone are α(centre + spread·z), α > 0, with |z| ≤ reach. Answers do not depend on what was asked before,
    except that points within rounding of a tie may or may not be left open.
    """

    def __init__(
        self,
        centre: FloatArray,
        spread: FloatArray,
        rows: Rows,
        numbers: NDArray[np.intp],
        high: FloatArray,
        low: FloatArray,
    ) -> None:
        self.centre, self.spread, self.reach = centre, spread, np.maximum(high, low)
        for array in (self.centre, self.spread, self.reach):
            array.setflags(write=False)
        self.stats = Stats()
        self._rows, self._numbers, self._box = rows, numbers, (high, low)
        self._lock = threading.RLock()
        self._shape = first_shape(rows, high, low)
        self._refinement = ROUGH
        self._swift: Swift | None = None
        self._may_compile = True
        self._seen = 0
        self._working = default_working(self._shape.polytope)
        self._pool = np.zeros((0, len(self.reach)))

    def prepared(self) -> Gauge:
        """The same gauge with all that is worked out before points are seen, and nothing that points taught it."""
        fresh = Gauge(self.centre, self.spread, self._rows, self._numbers, *self._box)
        compiled = bool(len(self.reach)) and _loads()
        shape = fresh._refined(compiled)
        if compiled and shape.rays is None:
            fresh._swiftly(shape)
        return fresh

    def fork(self) -> Gauge:
        """A copy that learns for itself; what was worked out is shared."""
        with self._lock:
            twin = copy.copy(self)
            twin.stats = replace(self.stats)
            twin._swift = None if self._swift is None else self._swift.fork()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def kept(self) -> NDArray[np.intp]:
        """The numbers of the rows that matter: every other row is proved to follow from these."""
        return np.sort(self._numbers[self._refined(False).polytope.identity])

    def decide(self, view: View, X: FloatArray, kernel: bool | None = None) -> NDArray[np.int8]:
        """Per point: +1 or −1: q·w has that sign for every w ≠ 0 of the cone; 0: two inner points disagree; 3: open.

        kernel: True the compiled loops, False NumPy alone, None whatever suits the number of points. If Numba cannot be
        imported it is always NumPy.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        with self._lock:
            self._seen += len(X)
            worth = self._seen >= WORTH_A_SHAPE
        if kernel is None:
            kernel = len(X) >= (WORTH_COMPILING // 10 if _loaded() else WORTH_COMPILING)
        if kernel and len(self.reach) and self._may_compile and _loads():
            try:
                return self._decided(view, X, self._refined(True), True)
            except OSError:
                # The compiler could not write its cache: nothing is lost but speed.
                self._may_compile = False
        return self._decided(view, X, self._refined(False) if worth else self._shape, False)

    def _decided(self, view: View, X: FloatArray, shape: Shape, compiled: bool) -> NDArray[np.int8]:
        codes = np.full(len(X), OPEN, dtype=np.int8)
        lens = Lens.of(view, shape.polytope.reach)
        if compiled:
            self._decide_compiled(shape, lens, X, codes)
        else:
            for start in range(0, len(X), BLOCK):
                self._decide_plain(shape, lens, X[start : start + BLOCK], codes[start : start + BLOCK])
        self._count(Stats(open=int(np.count_nonzero(codes == OPEN))))
        return codes

    def opponent(self, view: View, x: FloatArray) -> FloatArray | None:
        """z with centre + spread·z proved inside and q·(centre + spread·z) of the sign opposite to q·centre, or None."""
        with self._lock:
            shape, pool = self._shape, self._pool
        asked, _, _, _ = directions(Lens.of(view, shape.polytope.reach), np.asarray(x, dtype=np.float64)[None, :])
        if not len(asked.place):
            return None
        gains = asked.c[0] @ pool.T
        if len(pool) and gains.max() > 1.0 + asked.cost[0]:
            return np.array(pool[gains.argmax()])
        found = settle(shape.polytope, asked.c, asked.cost, working=self._rows_at_work(shape))
        return found.points[0] if found.codes[0] == UNKNOWN else None

    def support(self, view: View, x: FloatArray) -> tuple[NDArray[np.intp], FloatArray] | None:
        """(numbers of rows, multipliers ≥ 0) that come closest to proving x certain: where an exact step may start with a tie.

        In the coordinates of the slice: −sign(q·centre)·q·spread / |q·centre| ≈ Σ λ_i·g_i·spread / (−g_i·centre).
        """
        with self._lock:
            shape = self._shape
        asked, _, _, _ = directions(Lens.of(view, shape.polytope.reach), np.asarray(x, dtype=np.float64)[None, :])
        if not len(asked.place):
            return None
        found = settle(shape.polytope, asked.c, asked.cost, view.relax, self._rows_at_work(shape))
        used = (found.basis[0] >= 0) & (found.weights[0] > 0)
        return self._numbers[shape.polytope.identity[found.basis[0, used]]], found.weights[0, used]

    def _refined(self, compiled: bool) -> Shape:
        with self._lock:
            if self._refinement < (COMPILED if compiled else PLAIN):
                few = len(self.reach) <= MANY_DIMENSIONS
                if self._refinement == ROUGH or not few:
                    self._shape = full_shape(self._rows, self._shape, compiled)
                    self._working = default_working(self._shape.polytope)
                    self._learn(into_polytope(self._shape.polytope, self._shape.points)[0])
                self._refinement = COMPILED if compiled else PLAIN
            return self._shape

    def _swiftly(self, shape: Shape) -> Swift:
        with self._lock:
            if self._swift is None or self._swift.polytope is not shape.polytope:
                self._swift = Swift(shape.polytope, self._pool[: 2 * len(self.reach)])
                self._swift.measure()
            return self._swift

    def _rows_at_work(self, shape: Shape) -> NDArray[np.intp]:
        with self._lock:
            return self._working if shape is self._shape else default_working(shape.polytope)

    def _learn(self, points: FloatArray, working: NDArray[np.intp] | None = None, shape: Shape | None = None) -> None:
        """Points proved to lie in P join the pool; the rows that mattered stay at work."""
        with self._lock:
            room = POOL - len(self._pool)
            if room > 0 and len(points):
                self._pool = np.concatenate([self._pool, points[:room]])
            if working is not None and shape is self._shape and len(working) > len(self._working):
                self._working = working

    def _decide_plain(self, shape: Shape, lens: Lens, X: FloatArray, codes: NDArray[np.int8]) -> None:
        asked, weak, values, charge = directions(lens, X)
        both = weak[_both_signs(shape.polytope, values, charge)]
        codes[both] = 0
        count = Stats(shot=len(both))
        goal = 1.0 / (1.0 + lens.relax) - asked.cost
        alive = np.arange(len(asked.place))

        boxed = shape.polytope.box_support(asked.c) * (1.0 + lens.rounding) < goal
        count.box = int(np.count_nonzero(boxed))
        codes[asked.place[boxed]] = asked.label[boxed]
        alive = alive[~boxed]

        pool = self._pool
        if len(pool) and len(alive):
            known = (asked.c[alive] @ pool.T).max(axis=1) > 1.0 + asked.cost[alive]
            count.pool = int(np.count_nonzero(known))
            codes[asked.place[alive[known]]] = 0
            alive = alive[~known]

        if shape.rays is not None and len(alive):
            certain, unknown = shape.rays.decide(shape.polytope, asked.c[alive], asked.cost[alive], goal[alive])
            count.rays = int(np.count_nonzero(certain | unknown))
            codes[asked.place[alive[certain]]] = asked.label[alive[certain]]
            codes[asked.place[alive[unknown]]] = 0
            alive = alive[~(certain | unknown)]

        if len(alive):
            count.simplex = self._by_simplex(shape, asked, alive, lens.relax, codes)
        self._count(count)

    def _decide_compiled(self, shape: Shape, lens: Lens, X: FloatArray, codes: NDArray[np.int8]) -> None:
        """Screen block by block, small enough for the cache; gather what is left until it is worth the next step."""
        from overexplain.knowledge.gauge.kernel import screen

        p = shape.polytope
        ceiling = 1.0 / (1.0 + lens.relax)
        work = Workspace(min(len(X), BLOCK), min(len(X), GATHER + BLOCK), len(self.reach))
        held = 0
        for start in range(0, len(X), BLOCK):
            block = X[start : start + BLOCK]
            with np.errstate(all="ignore"):
                values = np.dot(block, lens.columns, out=work.values[: len(block)])
            left, unclear = screen(
                *(block, values, lens.shift, lens.charge, lens.charge_shift, p.high, p.low, lens.rounding, ceiling),
                *(codes[start:], work.c[held:], work.cost[held:], work.label[held:], work.place[held:], work.weak),
            )
            shot = 0
            if unclear:
                at = work.weak[:unclear]
                _, weak, weak_values, charge = directions(lens, block[at])
                both = weak[_both_signs(p, weak_values, charge)]
                codes[start + at[both]] = 0
                shot = len(both)
            self._count(Stats(box=len(block) - left - unclear, shot=shot))
            work.place[held : held + left] += start
            held += left
            if held >= GATHER or start + BLOCK >= len(X):
                self._after_box(shape, lens.relax, work, held, codes)
                held = 0

    def _after_box(self, shape: Shape, relax: float, work: Workspace, left: int, codes: NDArray[np.int8]) -> None:
        from overexplain.knowledge.gauge.kernel import by_rays

        p = shape.polytope
        count = Stats()
        asked = Directions(work.label[:left], work.c[:left], work.cost[:left], work.place[:left])
        alive = np.arange(left)
        if left and shape.rays is not None:
            verdict = work.verdict[:left]
            rays = shape.rays
            by_rays(
                *(asked.c, asked.cost, 1.0 / (1.0 + relax), rays.columns32, rays.points, rays.basis, rays.inverse),
                *(p.rows, rays.front, p.high, p.low, p.rounding, verdict),
            )
            codes[asked.place] = np.where(verdict == CERTAIN, asked.label, verdict)
            alive = np.flatnonzero(verdict == OPEN)
            count.rays = left - len(alive)
        elif left:
            verdict, counts = self._swiftly(shape).decide(asked.c, asked.cost, relax)
            codes[asked.place] = np.where(verdict == CERTAIN, asked.label, verdict)
            alive = np.flatnonzero(verdict == OPEN)
            count.shot, count.pool, count.simplex = counts["shot"], counts["pool"], counts["simplex"]
        if len(alive):
            count.simplex += self._by_simplex(shape, asked, alive, relax, codes)
        self._count(count)

    def _count(self, count: Stats) -> None:
        with self._lock:
            for name, number in vars(count).items():
                setattr(self.stats, name, getattr(self.stats, name) + number)

    def _by_simplex(
        self, shape: Shape, asked: Directions, alive: NDArray[np.intp], relax: float, codes: NDArray[np.int8]
    ) -> int:
        """Settles what is left; returns how many it settled."""
        settled = 0
        step = 256
        for start in range(0, len(alive), step):
            some = alive[start : start + step]
            found = settle(shape.polytope, asked.c[some], asked.cost[some], relax, self._rows_at_work(shape))
            certain, unknown = found.codes == CERTAIN, found.codes == UNKNOWN
            codes[asked.place[some[certain]]] = asked.label[some[certain]]
            codes[asked.place[some[unknown]]] = 0
            settled += int(np.count_nonzero(certain | unknown))
            self._learn(found.points[unknown], found.working, shape)
        return settled


class Workspace:
    """Arrays for one block and for the points gathered, made once per call."""

    def __init__(self, block: int, size: int, k: int) -> None:
        self.values = np.empty((block, k + 1))
        self.weak = np.empty(block, dtype=np.intp)
        self.c = np.empty((size, k))
        self.cost = np.empty(size)
        self.label = np.empty(size, dtype=np.int8)
        self.place = np.empty(size, dtype=np.intp)
        self.verdict = np.empty(size, dtype=np.int8)


def _loaded() -> bool:
    return "overexplain.knowledge.gauge.pivots" in sys.modules


def _loads() -> bool:
    """Whether the compiled loops can be used here."""
    try:
        importlib.import_module("overexplain.knowledge.gauge.pivots")
    except ImportError:
        return False
    return True


def _both_signs(polytope: Polytope, values: FloatArray, charge: FloatArray) -> NDArray[np.bool_]:
    """Where two points of P, straight up and down from the centre, prove that q·w takes both signs though q·w0 is about 0."""
    c = values[:, 1:]
    both = np.isfinite(values).all(axis=1)
    for sign in (1.0, -1.0):
        with np.errstate(all="ignore"):
            most = (
                np.maximum((sign * c @ polytope.rows.T).max(axis=1), 1e-300)[:, None]
                if c.shape[1]
                else np.ones((len(c), 1))
            )
            points, _ = into_polytope(polytope, sign * c / most)
            gain = sign * np.einsum("ij,ij->i", points, c) * (1.0 - 1e-12)
            both &= gain > 2.0 * (np.abs(values[:, 0]) + charge)
    return np.asarray(both)
