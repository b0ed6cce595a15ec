"""Directions by the thousand: screens by float32 products, then the compiled simplex started from stored bases.

A float32 product decides only by a margin larger than its forward error; the simplex is confirmed in float64.
"""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import Polytope
from overexplain.knowledge.gauge.plain import CERTAIN, OPEN, UNKNOWN, into_polytope

Float32Array = NDArray[np.float32]

MOST_POINTS = 1024
BASES = 512
NEAR = 8
CHUNK = 256
PIVOT_LIMIT = 3000
MANY_DIMENSIONS = 50
"""Beyond this stored bases are too far from any direction to be worth a start."""


class Swift:
    """One polytope, laid out for the compiled loops, with what was learnt about it. Safe to share between threads."""

    def __init__(self, polytope: Polytope, points: FloatArray) -> None:
        self.polytope = polytope
        m, k = polytope.rows.shape
        self.lock = threading.Lock()
        self.rows32 = polytope.rows.astype(np.float32)
        self.columns32 = np.zeros((k, -(-m // 32) * 32), np.float32)
        self.columns32[:, :m] = self.rows32.T
        self.front = 1.0 + polytope.slop
        reach_rounding = polytope.rounding * (np.abs(polytope.rows) @ polytope.reach)
        box = polytope.box_support(-polytope.rows) * (1.0 + polytope.rounding)
        self.behind = np.maximum(box + 2.0 * polytope.slop + reach_rounding, 1e-3)
        self.local = m if m <= 10 * k else max(64, 3 * k // 2)
        self.warm = k <= MANY_DIMENSIONS
        step = 32 if 16 < k <= 64 else 16
        self.padded = -(-k // step) * step
        # Forward error of a float32 product of k terms, both factors rounded to float32 first, relative to |a||c|.
        self.error32 = (k + 4) * 2.0**-23
        self.longest_row = float(np.linalg.norm(polytope.rows, axis=1).max()) * (1 + 1e-9)
        self.inside = 1.0 - float(polytope.slop.max())
        # In few dimensions a pivot costs less than looking through many points.
        self.room = min(MOST_POINTS, 32 * k)
        self.pool = np.zeros((self.room, k), np.float32)
        self.pool_values = np.zeros((self.room, m), np.float32)
        self.pool_count, self.longest_point = 0, 0.0
        size = BASES if self.warm else 1
        self.store = (
            np.zeros((size, k, self.padded), np.float32),
            np.zeros((size, k), np.int64),
            np.zeros((size, k)),
            np.zeros((size, self.padded), np.float32),
        )
        self.store_directions = np.zeros((size, k), np.float32)
        self.store_count = 0
        self.share_unknown = 0.5
        self.admit(points)

    def fork(self) -> Swift:
        """A copy that learns for itself."""
        twin = copy.copy(self)
        for name in ("pool", "pool_values", "store_directions"):
            setattr(twin, name, getattr(self, name).copy())
        twin.store = (self.store[0].copy(), self.store[1].copy(), self.store[2].copy(), self.store[3].copy())
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.Lock())

    def measure(self) -> None:
        """How far P reaches behind each row: what lets any stored basis serve any direction."""
        p = self.polytope
        if self.warm:
            bounds, _ = self.bound(-p.rows, gap=1e-3, limit=4 * len(p.high) + 20)
            paid = 2.0 * p.slop + p.rounding * (np.abs(p.rows) @ p.reach)
            self.behind = np.maximum(np.fmin(self.behind, (bounds + paid) * (1 + 1e-6)), 1e-3)

    def admit(self, points: FloatArray) -> NDArray[np.intp]:
        """Let points that provably lie in P, once rounded to float32, join the pool; their places in it."""
        if not len(points):
            return np.zeros(0, dtype=np.intp)
        scaled, _ = into_polytope(self.polytope, points)
        rounded = (scaled * (1.0 - 2.0**-20)).astype(np.float32)
        exact = rounded.astype(np.float64)
        values = exact @ self.polytope.rows.T
        sound = np.all(values + self.polytope.slop < 1.0, axis=1) & np.all(np.abs(exact) <= self.polytope.reach, axis=1)
        with self.lock:
            new = np.flatnonzero(sound)[: self.room - self.pool_count]
            start, end = self.pool_count, self.pool_count + len(new)
            self.pool[start:end] = rounded[new]
            self.pool_values[start:end] = values[new]
            if len(new):
                self.longest_point = max(
                    self.longest_point, float(np.linalg.norm(exact[new], axis=1).max()) * (1 + 1e-9)
                )
            self.pool_count = end
        return np.arange(start, end)

    def bound(self, directions: FloatArray, gap: float, limit: int) -> tuple[FloatArray, FloatArray]:
        """(proved upper bounds on max c·z over P less what `Polytope.upper` leaves to the caller, points near the maxima)."""
        count = len(directions)
        c32 = directions.astype(np.float32)
        along = c32 @ self.columns32[:, : len(self.rows32)]
        result = self._chunk(
            directions, c32, along, along.max(axis=1), np.full(count, -1), np.zeros(count), limit, gap=gap
        )
        return result.bounds, result.exits.astype(np.float64)

    def decide(self, c: FloatArray, cost: FloatArray, relax: float) -> tuple[NDArray[np.int8], dict[str, int]]:
        """(CERTAIN, UNKNOWN or OPEN per direction, as `plain.settle`; how many each step settled)."""
        count = len(c)
        codes = np.full(count, OPEN, dtype=np.int8)
        counts = {"shot": 0, "pool": 0, "simplex": 0}
        with np.errstate(over="ignore", invalid="ignore"):
            c32 = c.astype(np.float32)
            squares = np.einsum("ij,ij->i", c, c)
            norms = np.sqrt(squares) * (1 + 1e-9)
        needed = 1.0 + cost
        m = len(self.rows32)
        step = max(256, (1 << 21) // max(m, self.room))
        for start in range(0, count, step):
            piece = np.arange(start, min(start + step, count))
            along = c32[piece] @ self.columns32[:, :m]
            most = along.max(axis=1)
            reach = (most + self.error32 * self.longest_row * norms[piece]) * (1 + 1e-6)
            shot = squares[piece] * (self.inside * (1 - 1e-6)) > needed[piece] * reach
            shot &= reach > 0
            codes[piece[shot]] = UNKNOWN
            counts["shot"] += int(np.count_nonzero(shot))
            rest = np.flatnonzero(~shot)
            if len(rest):
                self._after_shot(
                    piece[rest], c, c32, norms, cost, needed, relax, along[rest], most[rest], codes, counts
                )
        return codes, counts

    def _pool_gains(
        self, c32: Float32Array, norms: FloatArray, first: int, last: int
    ) -> tuple[FloatArray, NDArray[np.intp], FloatArray]:
        """(best gain over these pool points, where, the same less its error)."""
        gains = c32 @ self.pool[first:last].T
        at = gains.argmax(axis=1)
        best = gains[np.arange(len(at)), at].astype(np.float64)
        return best, at + first, best - self.error32 * self.longest_point * norms - 1e-6

    def _after_shot(
        self,
        at: NDArray[np.intp],
        c: FloatArray,
        c32: Float32Array,
        norms: FloatArray,
        cost: FloatArray,
        needed: FloatArray,
        relax: float,
        along: Float32Array,
        most: Float32Array,
        codes: NDArray[np.int8],
        counts: dict[str, int],
    ) -> None:
        pool_at = np.full(len(at), -1, dtype=np.int64)
        best = np.zeros(len(at))
        alive = np.ones(len(at), dtype=bool)
        seen = self.pool_count
        if seen:
            best, pool_at, safe = self._pool_gains(c32[at], norms[at], 0, seen)
            alive = ~(safe > needed[at])
        counts["pool"] += int(np.count_nonzero(~alive))
        codes[at[~alive]] = UNKNOWN
        position = 0
        while position < len(at):
            window = np.flatnonzero(alive[position : position + 2 * CHUNK])[:CHUNK] + position
            if not len(window):
                position += 2 * CHUNK
                continue
            position = int(window[-1]) + 1
            who = at[window]
            follow = 0.25 + 0.5 * self.share_unknown
            start = np.where(best[window] > 0, pool_at[window], -1) if self.warm else np.full(len(who), -1)
            goal = 1.0 / (1.0 + relax) - cost[who]
            solved = self._chunk(
                c[who], c32[who], along[window], most[window], start, goal, PIVOT_LIMIT, follow=follow, learn=self.warm
            )
            verdict = solved.verdict
            codes[who[verdict == 1]] = CERTAIN
            proposed = np.flatnonzero(verdict == 0)
            fresh = np.zeros((0, c.shape[1]))
            if len(proposed):
                points, _ = into_polytope(self.polytope, solved.exits[proposed].astype(np.float64))
                proved = np.einsum("ij,ij->i", points, c[who[proposed]]) > needed[who[proposed]]
                codes[who[proposed[proved]]] = UNKNOWN
                fresh = points[proved]
            counts["simplex"] += int(np.count_nonzero(codes[who] != OPEN))
            self.share_unknown += 0.2 * (float(np.mean(verdict == 0)) - self.share_unknown)
            if self.pool_count < self.room:
                if solved.vertices is not None:
                    fresh = np.vstack([fresh, solved.vertices])
                new = self.admit(fresh)
                left = np.flatnonzero(alive[position:]) + position
                if len(new) and len(left):
                    gain, place, safe = self._pool_gains(c32[at[left]], norms[at[left]], int(new[0]), int(new[-1]) + 1)
                    hit = safe > needed[at[left]]
                    codes[at[left[hit]]] = UNKNOWN
                    counts["pool"] += int(np.count_nonzero(hit))
                    alive[left[hit]] = False
                    better = gain > best[left]
                    best[left[better]], pool_at[left[better]] = gain[better], place[better]

    def _chunk(
        self,
        c: FloatArray,
        c32: Float32Array,
        along: Float32Array,
        most: Float32Array,
        start: NDArray[np.int64],
        goal: FloatArray,
        limit: int,
        follow: float = 0.5,
        gap: float = 0.0,
        learn: bool = False,
    ) -> Solved:
        from overexplain.knowledge.gauge.pivots import solve_chunk

        n, k = c.shape
        stored = self.store_count
        learn = learn and stored < BASES
        size = n if learn else 0
        out = (
            np.empty((size, k, self.padded), np.float32),
            np.empty((size, k), np.int64),
            np.empty((size, k)),
            np.zeros((size, self.padded), np.float32),
        )
        vertices = np.empty((size, k), np.float32)
        use = stored if gap <= 0 else 0
        closeness = c32 @ self.store_directions[:use].T if use else np.zeros((n, 0), np.float32)
        verdict, pivots = np.empty(n, np.int64), np.empty(n, np.int64)
        exits, bounds = np.empty((n, k), np.float32), np.full(n, np.inf)
        p = self.polytope
        local = len(p.rows) if gap > 0 and len(p.rows) <= 300 else (max(self.local, 300) if gap > 0 else self.local)
        solve_chunk(
            *(
                np.ascontiguousarray(c),
                np.ascontiguousarray(c32),
                np.ascontiguousarray(along),
                np.ascontiguousarray(most),
            ),
            *(np.asarray(start, dtype=np.int64), self.pool, self.pool_values, use, closeness, *self.store),
            *(p.rows, self.rows32, self.columns32, self.front, self.behind, self.behind, p.high, p.low, p.rounding),
            *(goal, min(local, len(p.rows)), np.float32(follow), limit, NEAR, 4 * k, np.float32(gap)),
            *(verdict, pivots, exits, bounds, *out, vertices),
        )
        if learn:
            norms = np.linalg.norm(c32, axis=1, keepdims=True)
            self._store(np.flatnonzero(verdict <= 1), out, c32 / np.maximum(norms, 1e-30))
        good = np.isfinite(vertices).all(axis=1)
        return Solved(verdict, exits, bounds, vertices[good].astype(np.float64) if learn else None)

    def _store(self, which: NDArray[np.intp], out: tuple[NDArray[np.generic], ...], directions: Float32Array) -> None:
        with self.lock:
            which = which[: BASES - self.store_count]
            end = self.store_count + len(which)
            for kept, new in zip(self.store, out, strict=True):
                kept[self.store_count : end] = new[which]
            self.store_directions[self.store_count : end] = directions[which]
            self.store_count = end


class Solved:
    """What the compiled simplex found for a chunk."""

    def __init__(
        self, verdict: NDArray[np.int64], exits: Float32Array, bounds: FloatArray, vertices: FloatArray | None
    ) -> None:
        self.verdict, self.exits, self.bounds, self.vertices = verdict, exits, bounds, vertices
