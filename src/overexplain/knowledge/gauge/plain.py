"""Decides max c·z ≤ 1 over P for a handful of directions at once: a dual simplex in NumPy that carries a proof from both sides.

All directions pivot in step, so that every line is one array operation. For each one there are a basic point z (outside P,
c·z = Σ λ is an upper bound) and an inner point; the segment between them leaves P at the lower bound and names the row that
enters. Only a working set of rows is priced: 'certain' needs no other rows, and 'unknown' is checked against all of them, which
teaches the set what it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import Polytope

CERTAIN, UNKNOWN, OPEN = 1, 0, 3
FOLLOW = 0.5
"""How far the inner point follows towards the facet in sight."""


@dataclass
class Settled:
    """Per direction: what was proved, and the proof."""

    codes: NDArray[np.int8]
    points: FloatArray
    """(N, k): the best point of P found; for UNKNOWN it has c·z > 1 + cost"""
    basis: NDArray[np.intp]
    weights: FloatArray
    """(N, k): rows (−1: none) and multipliers of the last upper bound"""
    upper: FloatArray
    """(N,): Σ λ of that bound, not proved unless CERTAIN"""
    working: NDArray[np.intp]
    """the rows that were priced in the end"""


def into_polytope(
    polytope: Polytope, points: FloatArray, values: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(points scaled so that they provably lie inside P, the factors). `values` = points @ rows.T if known."""
    if values is None:
        values = points @ polytope.rows.T
    most = (values * (1.0 / (1.0 - polytope.slop))).max(axis=1, initial=1e-6)
    outside = (np.abs(points) * (1.0 / np.maximum(polytope.reach, 1e-300))).max(axis=1, initial=0.0)
    factor = (1.0 - 1e-14) / np.maximum(most, outside)
    return points * factor[:, None], factor


def settle(
    polytope: Polytope,
    directions: FloatArray,
    cost: FloatArray,
    relax: float = 0.0,
    working: NDArray[np.intp] | None = None,
    enough: float = np.inf,
    gap: float = 0.0,
    limit: int = 0,
) -> Settled:
    """Per direction c: CERTAIN if (1 + relax)(max c·z + cost) < 1 is proved, UNKNOWN if some z in P has c·z > 1 + cost, else OPEN.

    A direction also stops, as OPEN, once max c·z ≥ enough is shown (redundancy tests need no more), or once both bounds are within
    the relative `gap`; with an infinite cost this maximises.
    """
    count, k = directions.shape
    chunk = max(16, min(256, 400_000 // max(k * k, 1)))
    working = default_working(polytope) if working is None else working
    limit = limit or 60 + 25 * k
    parts: list[_Batch] = []
    for start in range(0, max(count, 1), chunk):
        piece = slice(start, start + chunk)
        batch = _Batch(polytope, directions[piece], cost[piece], relax, working, enough, gap)
        batch.run(limit)
        working = batch.working
        parts.append(batch)
    return Settled(
        np.concatenate([b.codes for b in parts]),
        np.concatenate([b.found for b in parts]),
        np.concatenate([b.final_basis for b in parts]),
        np.concatenate([b.final_weights for b in parts]),
        np.concatenate([b.final_upper for b in parts]),
        working,
    )


def default_working(polytope: Polytope) -> NDArray[np.intp]:
    """The first rows: they are sorted by length, and long rows cut deepest."""
    count, k = polytope.rows.shape
    return np.arange(min(count, max(4 * k, 48)))


class _Batch:
    """The state of one lock-step run. Arrays with a leading axis follow `live`, those named final_* and found follow the batch."""

    def __init__(
        self,
        polytope: Polytope,
        directions: FloatArray,
        cost: FloatArray,
        relax: float,
        working: NDArray[np.intp],
        enough: float,
        gap: float,
    ) -> None:
        count, k = directions.shape
        self.polytope, self.working, self.enough, self.gap = polytope, working, enough, gap
        self.rows = np.ascontiguousarray(polytope.rows[working])
        self.all_directions, self.all_cost = directions, cost
        # Below this Σ λ the proof can succeed.
        self.goal = 1.0 / (1.0 + relax) - cost
        self.codes = np.full(count, OPEN, dtype=np.int8)
        self.found = np.zeros((count, k))
        self.final_basis = np.full((count, k), -1, dtype=np.intp)
        self.final_weights = np.zeros((count, k))
        self.final_upper = np.full(count, np.inf)
        self.live = np.arange(count)
        self.c = directions
        corner = np.where(directions >= 0, polytope.high, -polytope.low)
        self.inverse = np.zeros((count, k, k))
        self.inverse[:, np.arange(k), np.arange(k)] = corner
        self.z = corner.copy()
        self.weights = directions * corner
        self.basis = np.full((count, k), -1, dtype=np.intp)
        self.repaired = np.zeros(count, dtype=np.int64)
        self.inner = np.zeros((count, k))
        self.inner_values = np.zeros((count, len(working)))

    def run(self, limit: int) -> None:
        if not len(self.c):
            return
        self._shoot_rays()
        for _ in range(limit):
            if not len(self.live):
                return
            upper = self.weights.sum(axis=1)
            self._claim(upper)
            if not len(self.live):
                return
            self._pivot()
        self._record(np.arange(len(self.live)))

    def _drop(self, gone: NDArray[np.bool_]) -> None:
        if not gone.any():
            return
        stay = ~gone
        for name in ("live", "c", "inverse", "z", "weights", "basis", "repaired", "inner", "inner_values"):
            setattr(self, name, getattr(self, name)[stay])

    def _record(self, which: NDArray[np.intp]) -> None:
        target = self.live[which]
        self.final_basis[target], self.final_weights[target] = self.basis[which], self.weights[which]
        self.final_upper[target] = self.weights[which].sum(axis=1)

    def _claim(self, upper: FloatArray) -> None:
        """Prove 'certain' where the bound allows it."""
        reached = np.flatnonzero(upper < self.goal[self.live])
        if not len(reached):
            return
        proved = self._proof(reached)
        self._record(reached)
        self.codes[self.live[reached[proved]]] = CERTAIN
        gone = np.zeros(len(self.live), dtype=bool)
        gone[reached[proved]] = True
        failed = reached[~proved]
        if len(failed):
            # Rounding has piled up in the inverse: rebuild it; if that does not help the direction is a tie.
            again = failed[self.repaired[failed] < 2]
            self.repaired[failed] += 1
            self._rebuild(again)
            gone[failed[self.repaired[failed] > 2]] = True
        self._drop(gone)

    def _proof(self, which: NDArray[np.intp]) -> NDArray[np.bool_]:
        target = self.live[which]
        directions, basis = self.c[which], self.basis[which]
        bound = self.polytope.upper(directions, basis, self.weights[which])
        weak = np.flatnonzero(~(bound < self.goal[target]))
        if len(weak):
            residual = (
                directions[weak]
                - np.matmul(self.weights[which[weak]][:, None, :], self._basis_rows(which[weak]))[:, 0, :]
            )
            self.weights[which[weak]] += np.matmul(residual[:, None, :], self.inverse[which[weak]])[:, 0, :]
            bound[weak] = self.polytope.upper(directions[weak], basis[weak], self.weights[which[weak]])
        return np.asarray(bound < self.goal[target])

    def _basis_rows(self, which: NDArray[np.intp]) -> FloatArray:
        """(n, k, k): the rows of each basis; a face of the box in the place of its coordinate."""
        basis = self.basis[which]
        rows = self.polytope.rows[basis]
        at, place = np.nonzero(basis < 0)
        rows[at, place] = 0.0
        # A place still held by the box belongs to the coordinate of the same number: pivots never move faces.
        corner = np.where(self.c[which] >= 0, self.polytope.high, -self.polytope.low)
        rows[at, place, place] = 1.0 / corner[at, place]
        return rows

    def _rebuild(self, which: NDArray[np.intp]) -> None:
        for i in which:
            one = np.array([i])
            try:
                inverse = np.linalg.inv(self._basis_rows(one)[0])
            except np.linalg.LinAlgError:
                self.repaired[i] = 9
                continue
            self.inverse[i] = inverse
            self.z[i] = inverse.sum(axis=1)
            self.weights[i] = np.maximum(self.c[i] @ inverse, 0.0)

    def _check_unknown(self, which: NDArray[np.intp], points: FloatArray) -> NDArray[np.bool_]:
        """Prove 'unknown' by points that satisfy the working set; the rows they break join it. True where it is settled."""
        target = self.live[which]
        values = points @ self.polytope.rows.T
        inside, _ = into_polytope(self.polytope, points, values)
        gain = np.einsum("ij,ij->i", inside, self.c[which])
        proved = gain > 1.0 + self.all_cost[target]
        stopped = (gain >= self.enough) | (self.weights[which].sum(axis=1) <= (1.0 + 1.5 * self.gap) * gain)
        self.codes[target[proved]] = UNKNOWN
        self.found[target[proved | stopped]] = inside[proved | stopped]
        self._record(which[proved | stopped])
        rest = ~(proved | stopped)
        if rest.any():
            self._learn(values[rest])
        return np.asarray(proved | stopped)

    def _learn(self, values: FloatArray) -> None:
        """Let the rows join that are broken worst at the points with these values, and pull the inner points back inside."""
        worst = values.max(axis=1, keepdims=True)
        broken = (values > 1.0 + 1e-12) & (values >= 1.0 + 0.7 * (worst - 1.0))
        new = np.setdiff1d(np.flatnonzero(broken.any(axis=0)), self.working)
        if not len(new):
            return
        rows = self.polytope.rows[new]
        fresh = self.inner @ rows.T
        most = fresh.max(axis=1)
        pull = np.where(most > 0.95, 0.9 / np.maximum(most, 0.95), 1.0)[:, None]
        self.inner = self.inner * pull
        self.inner_values = np.hstack([self.inner_values * pull, fresh * pull])
        self.working = np.concatenate([self.working, new])
        self.rows = np.vstack([self.rows, rows])

    def _shoot_rays(self) -> None:
        """From the centre straight along c: settles most of the clearly unknown, and gives the others an inner point."""
        values = self.c @ self.rows.T
        most = np.maximum(values.max(axis=1), 1e-300)
        length = np.einsum("ij,ij->i", self.c, self.c) / most
        self.inner = self.c * (0.5 / most)[:, None]
        self.inner_values = values * (0.5 / most)[:, None]
        likely = np.flatnonzero(length > 1.0 + self.all_cost)
        if len(likely):
            gone = np.zeros(len(self.live), dtype=bool)
            settled = self._check_unknown(likely, self.c[likely] / most[likely, None])
            gone[likely[settled]] = True
            self._drop(gone)

    def _pivot(self) -> None:
        upper = self.weights.sum(axis=1)
        values = self.z @ self.rows.T
        ahead = (values - self.inner_values) / np.maximum(1.0 - self.inner_values, 1e-9)
        row = ahead.argmax(axis=1)
        span = np.arange(len(row))
        hit = ahead[span, row]
        step = 1.0 / np.maximum(hit, 1.0)
        inner_gain = np.einsum("ij,ij->i", self.c, self.inner)
        lower = inner_gain + step * (upper - inner_gain)
        optimal = hit <= 1.0 + 1e-11
        candidate = np.flatnonzero(
            (lower > 1.0 + self.all_cost[self.live])
            | (lower >= self.enough)
            | optimal
            | (upper <= (1.0 + self.gap) * lower)
        )
        gone = np.zeros(len(row), dtype=bool)
        learnt = len(self.working)
        if len(candidate):
            exits = self.inner[candidate] + step[candidate, None] * (self.z[candidate] - self.inner[candidate])
            gone[candidate] = self._check_unknown(candidate, exits)
            if len(self.working) == learnt:
                # Optimal over all rows, neither bound decides: a tie within rounding.
                ties = candidate[optimal[candidate] & ~gone[candidate]]
                self._record(ties)
                self.found[self.live[ties]] = into_polytope(self.polytope, self.z[ties])[0]
                gone[ties] = True
        if len(self.working) > learnt:
            # New rows: price again before pivoting, except for what is settled.
            self._drop(gone)
            return
        follow = (FOLLOW * step)[:, None]
        self.inner = self.inner + follow * (self.z - self.inner)
        self.inner_values = self.inner_values + follow * (values - self.inner_values)
        alpha = np.matmul(self.rows[row][:, None, :], self.inverse)[:, 0, :]
        usable = alpha > 1e-9 * np.abs(alpha).max(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(usable, self.weights / alpha, np.inf)
        leave = ratio.argmin(axis=1)
        best = ratio[span, leave]
        gone |= ~np.isfinite(best)
        best = np.where(np.isfinite(best), np.maximum(best, 0.0), 0.0)
        pivot = np.where(gone, 1.0, alpha[span, leave])
        column = self.inverse[span, :, leave] / pivot[:, None]
        self.inverse -= column[:, :, None] * alpha[:, None, :]
        self.inverse[span, :, leave] = column
        self.z += (1.0 - values[span, row])[:, None] * column
        self.weights = np.maximum(self.weights - best[:, None] * alpha, 0.0)
        self.weights[span, leave] = best
        self.basis[span, leave] = self.working[row]
        self._drop(gone)
