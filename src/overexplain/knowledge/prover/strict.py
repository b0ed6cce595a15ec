"""Models with s = ‖a‖*, where nothing linear tells them apart from those with more and with less (docs/theory/ties.md).

They are looked for between models of both kinds: where rays from the middle cross s = ‖a‖*, by searches with and without the cuts,
and at the optima of the few claims that all this leaves open. Whoever asked has them held to the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.balls import Crossings
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.optimum import Optimum
from overexplain.knowledge.prover.rows import Rows
from overexplain.knowledge.prover.stage import Stage

STARTS = 4
"""Models from which others with less of s are looked for."""
ROOM = 1e-5
"""How far, as a share of what the optimum breaks a claim by, models with less of s break it, too."""
NEARER = 1e-3
"""How far models from the edge are moved to the middle, as a share of what would keep the claim."""
LOOSE = 64
"""Models with less of s than ‖a‖* that one search may add."""
PULLS, RAYS = 40, 256
"""Cuts that bring the middle to where there is more of s than ‖a‖*, and rays that are sent from there."""
NEWTON_STEPS, NEWTON_REACH, FAR = 8, 0.7, 1e100
"""Steps of Newton's method, how far from the middle it starts, where 1 is inside of all rows, and where it has lost its way."""
INSIDE = 1 - 1e-6
"""How far rays go, as a share of the way to the first row."""


def strict_of(rows: Rows, blocks: Sequence[Block]) -> Strict | None:
    """What makes models with s = ‖a‖*, if that is one length that answers say nothing linear about; else None."""
    found = crossings_of(rows, blocks)
    return None if len(found) != 1 or rows.core is None else Strict(rows, found[0])


def together_of(rows: Rows, blocks: Sequence[Block]) -> Together | None:
    """The same where there are several such lengths."""
    found = crossings_of(rows, blocks)
    return None if len(found) < 2 or rows.core is None else Together(rows, found)


def crossings_of(rows: Rows, blocks: Sequence[Block]) -> list[Crossings]:
    """For every length of a known ball that is no length of a distance, what lies between models with more and with less of it."""
    curved = {block.ball: block for block in blocks if block.is_tight and block.ball != block.number}
    at = len(rows.ties.free) + 1
    return [
        Crossings(block.reach, k, at + k, at + block.number, rows.ties)
        for k, block in curved.items()
        if not isinstance(block.reach, Secret)
    ]


@final
class Strict:
    """Finds models for the claims about `rows`, which must have a core; cuts join these."""

    def __init__(self, rows: Rows, crossings: Crossings) -> None:
        self._rows, self.crossings = rows, crossings
        self._loose: tuple[Stage, Stage] | None = None

    def fork(self, rows: Rows) -> Strict:
        """A copy that learns for itself, about a copy of the rows."""
        return Strict(rows, self.crossings.fork())

    def pull(self) -> None:
        """Cuts until there is more of s than ‖a‖* in the middle."""
        for _ in range(PULLS):
            middle = self._rows.centre[None, :]
            if self._rows.core is None or self.crossings.excess(middle)[0] > 0 or not self._rows.cut(middle):
                return
            self._rows.refit()

    def at_first(self) -> FloatArray:
        """Models in all directions from the middle."""
        if self._rows.core is None:
            return self.crossings.more[:0]
        return self.sent(np.random.default_rng(0).standard_normal((RAYS, self._rows.core.cone.rank)))

    def sent(self, rays: FloatArray) -> FloatArray:
        """Models where rays from the middle, in the round coordinates of the core, cross s = ‖a‖*."""
        core = self._rows.core
        assert core is not None
        rays = rays / np.maximum(np.linalg.norm(rays, axis=1, keepdims=True), 1e-300)
        A = core.cone.A[~self._is_cut(core.rows)]
        towards = -(rays @ A.T) / (A @ core.cone.z0)
        ends = (core.cone.z0 + INSIDE / np.maximum(towards.max(axis=1), INSIDE)[:, None] * rays) @ core.lift.T
        _, less = self.crossings.learn(ends)
        middle, _ = self.crossings.learn(self._rows.centre[None, :])
        if not (len(middle) and len(less)):
            return self.crossings.more[:0]
        return self.crossings.between(np.repeat(middle, len(less), axis=0), less)

    def pushed(self) -> FloatArray:
        """Models on the way to one with as little of s as there can be."""
        if self._rows.core is None:
            return self.crossings.more[:0]
        optimum = self._optimum(self._rows.core)
        ends = (optimum.outward(start) for start in self.crossings.more[-STARTS:])
        beyond = next((model for model in ends if model is not None), None)
        if beyond is None:
            return self.crossings.more[:0]
        return self.crossings.near(self._inwards(beyond[None, :], np.zeros(len(beyond))))

    def loosely(self, targets: FloatArray) -> FloatArray:
        """Models on the way to some that may have less of s than ‖a‖*, against claims."""
        core = self._rows.core
        if core is None or not len(targets):
            return self.crossings.more[:0]
        if self._loose is None or self._loose[0] is not core:
            which, whole = core.rows[~self._is_cut(core.rows)], core.B.shape[1]
            try:
                made = Stage(self._rows.rows, which, core.B, self._rows.scale, drop=1e-6, force=which[:0], core=whole)
            except NoInterior:
                return self.crossings.more[:0]
            self._loose = core, made
        return self.crossings.near(self._loose[1].search(targets)[3][:LOOSE])

    def by_optima(self, targets: FloatArray) -> tuple[FloatArray, bool]:
        """(models at and around the optima of claims, whether rows were cut where the optima touch s = ‖a‖*)."""
        core, crossings = self._rows.core, self.crossings
        assert core is not None
        optimum, ends, touched = self._optimum(core), [], []
        for target in targets:
            found = optimum.least(target)
            if found is None:
                continue
            ends.append(found[0])
            touched += [] if found[1] is None else [found[1]]
            if target @ found[0] < 0:
                starts = [found[0], *crossings.nearest(target)]
                least = -ROOM * float(target @ found[0])
                outer = (optimum.outward(start, target, least) for start in starts)
                beyond = next((model for model in outer if model is not None), None)
                against = np.array([found[0]] if beyond is None else [found[0], beyond])
                crossings.learn(self._inwards(against, target))
        if not ends:
            return crossings.more[:0], False
        inner = np.linalg.lstsq(core.lift, np.array(ends).T, rcond=None)[0].T
        models = self.sent(inner - core.cone.z0 / (core.lift[crossings.unit] @ core.cone.z0))
        models = np.vstack([models, crossings.against(targets)])
        if touched:
            return models, bool(self._rows.touch(crossings.number, np.array(touched)))
        return models, bool(self._rows.cut(np.array(ends)))

    def _optimum(self, core: Stage) -> Optimum:
        at = self.crossings
        return Optimum(core, self._is_cut(core.rows), at.norm, self._rows.ties, at.column, at.unit)

    def _inwards(self, models: FloatArray, target: FloatArray) -> FloatArray:
        """Models that break a claim, a little nearer to the middle: solvers leave them on the edge, or just behind it."""
        middle = self._rows.centre / self._rows.centre[self.crossings.unit]
        broken = np.maximum(-(models @ target), 0.0)
        share = NEARER * (broken + 1e-300) / (broken + abs(float(middle @ target)) + 1e-300)
        return np.asarray(models + share[:, None] * (middle - models))

    def _is_cut(self, rows: IntArray) -> BoolArray:
        """True for the rows that only say that s ≥ ‖a‖*."""
        return np.asarray((self._rows.of_row[rows] < 0) & (self._rows.rows[rows, self.crossings.column] != 0))


@final
class Together:
    """Models with s = ‖a‖* for several balls at once, by Newton's method: between two models there need not be one."""

    def __init__(self, rows: Rows, crossings: Sequence[Crossings]) -> None:
        self._rows, self._crossings = rows, crossings

    def fork(self, rows: Rows) -> Together:
        """The same about a copy of the rows."""
        return Together(rows, self._crossings)

    def at_first(self) -> FloatArray:
        """Models in all directions from the middle."""
        core = self._rows.core
        assert core is not None
        rays = np.random.default_rng(0).standard_normal((RAYS, core.cone.rank))
        ends = core.cone.z0 + NEWTON_REACH * rays / np.linalg.norm(rays, axis=1, keepdims=True)
        return self.near(np.vstack([core.cone.z0, ends]) @ core.lift.T)

    @np.errstate(all="ignore")
    def near(self, models: FloatArray) -> FloatArray:
        """What Newton's method makes of models of the unknowns: the shortest steps in the round coordinates of the core."""
        core, unit = self._rows.core, self._crossings[0].unit
        if core is None or not len(models):
            return models[:0]
        models = models[models[:, unit] > 0]
        models = models / models[:, unit, None]
        z = np.linalg.lstsq(core.lift, models[np.abs(models).max(axis=1) < np.inf].T, rcond=None)[0].T
        for _ in range(NEWTON_STEPS):
            models = z @ core.lift.T
            kept = np.abs(models).max(axis=1) < FAR
            z, models = z[kept], models[kept]
            if not len(z):
                break
            off = np.column_stack([models[:, unit] - 1, *(c.excess(models) for c in self._crossings)])
            slopes = np.stack(
                [np.tile(core.lift[unit], (len(z), 1)), *(c.slopes(models, core.lift) for c in self._crossings)], axis=1
            )
            # An a of 0 has no longest direction.
            kept = np.isfinite(off).all(axis=1) & np.isfinite(slopes).all(axis=(1, 2))
            z = z[kept] - np.einsum("nij,nj->ni", np.linalg.pinv(slopes[kept]), off[kept])
        return np.asarray(z @ core.lift.T)
