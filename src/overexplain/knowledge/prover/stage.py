"""Searches in some coordinates of the unknowns, and how much room they are asked to leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.prover.batch import HELD, PIECE, Batch, Found
from overexplain.knowledge.prover.cone import NoInterior, RoundCone, gamma
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.prover.linear import OPEN

MISSED, LENT = 1e-12, 1e3
"""A target that is missed by more than this share of itself is looked at again, with so many times what it is missed by."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Weights of a claim `sign`: of `rows` (numbers among the prover's rows), and ω of its equalities; `beta` is what
    they prove."""

    sign: int
    rows: IntArray
    weights: FloatArray
    omega: FloatArray
    beta: float


@final
class Stage:
    """Some rows in coordinates z = B·u, made round; the models and sets of rows that were found there."""

    def __init__(
        self,
        rows: FloatArray,
        which: IntArray,
        B: FloatArray,
        scale: FloatArray,
        *,
        drop: float,
        force: IntArray,
        core: int,
    ) -> None:
        inner, size = rows[which] @ B, np.abs(rows[which]) @ np.abs(B)
        full = np.linalg.norm(rows[which] * scale, axis=1)
        inner[np.abs(inner) <= 64 * 2.0**-53 * size] = 0.0
        # The first `core` columns are orthonormal but for the scale: off by roundings of their own.
        inner[:, :core][np.abs(inner[:, :core]) <= 16 * 2.0**-53 * full[:, None]] = 0.0
        length, whole = np.linalg.norm(inner, axis=1), np.maximum(np.linalg.norm(size, axis=1), full)
        live = (length > drop * whole) | (np.isin(which, force) & (length > 1e-13 * whole))
        self.rows, self.B, self._unit = which[live], B, length[live]
        if not live.any():
            raise NoInterior
        self.cone = RoundCone(np.ascontiguousarray(inner[live] / self._unit[:, None]), rank_tolerance=1e-12)
        self.batch = Batch(self.cone)
        self.lift = B @ self.cone.map
        self.centre = self.lift @ self.cone.z0
        self._key = self.cone.centre

    def search(self, targets: FloatArray) -> tuple[NDArray[np.int8], IntArray, FloatArray, FloatArray]:
        """(codes, rows that hold each target or −1, their weights, models that were found), for targets over the unknowns."""
        U = targets @ self.B
        C = U @ self.cone.map
        length = np.maximum(np.linalg.norm(C, axis=1), 1e-300)
        C /= length[:, None]
        order = np.argsort(U @ self._key, kind="stable")
        width = self.cone.rank + 1
        codes = np.full(len(C), OPEN, dtype=np.int8)
        held, weights = np.full((len(C), 2 * width), -1), np.zeros((len(C), 2 * width))
        found_models = []
        while len(order):
            found = self.batch.search(C[order[:PIECE]])
            at, order = order[: len(found.codes)], order[len(found.codes) :]
            found_models.append(self.batch.new_models @ self.lift.T)
            by, shares = self._sharper(U[at], length[at], found)
            used = np.maximum(by, 0)
            codes[at] = found.codes
            held[at] = np.where(by >= 0, self.rows[used], -1)
            weights[at] = np.where(by >= 0, shares / self._unit[used], 0.0)
        return codes, held, weights, np.vstack(found_models) if found_models else np.zeros((0, len(self.lift)))

    def _sharper(self, U: FloatArray, length: FloatArray, found: Found) -> tuple[IntArray, FloatArray]:
        """(rows, weights) that hold targets U, which are `length` long in round coordinates; two sets of rows for each.

        Searches stop at a share of the target's length. If one entry outweighs all others, as a value that no answer has, that
        share is more than the others are worth: what is left is then held by itself, with a little of the weights found.
        """
        cone, width = self.cone, found.held.shape[1]
        by = np.hstack([found.held, np.full_like(found.held, -1)])
        shares = np.zeros(by.shape)
        shares[:, :width] = found.weights * cone.scale[np.maximum(found.held, 0)] * length[:, None]
        on = np.flatnonzero(found.codes == HELD)
        rows = cone.rows[np.maximum(found.held[on], 0)]
        rest = U[on] - np.einsum("ij,ijk->ik", shares[on, :width], rows)
        off = np.linalg.norm(rest @ cone.map, axis=1)
        missed = np.flatnonzero(np.linalg.norm(rest, axis=1) > MISSED * np.linalg.norm(U[on], axis=1))
        if not len(missed):
            return by, shares
        on, rows, rest, off = on[missed], rows[missed], rest[missed], off[missed]
        lent = np.minimum(shares[on, :width], LENT * off[:, None] * cone.scale[np.maximum(found.held[on], 0)])
        again = (rest + np.einsum("ij,ijk->ik", lent, rows)) @ cone.map
        size = np.maximum(np.linalg.norm(again, axis=1), 1e-300)
        second = self.batch.search(again / size[:, None])
        done = np.flatnonzero(second.codes == HELD)
        held = second.held[done]
        shares[on[done], :width] -= lent[done]
        by[on[done], width:] = held
        shares[on[done], width:] = second.weights[done] * cone.scale[np.maximum(held, 0)] * size[done, None]
        return by, shares

    def fork(self) -> Stage:
        twin = object.__new__(Stage)
        twin.__dict__.update(self.__dict__)
        twin.batch = Batch(self.cone)
        return twin


@final
class Asked:
    """Points that are asked about, as forms over the unknowns that are left."""

    def __init__(self, X: FloatArray, ties: Ties, centre: FloatArray) -> None:
        self.queries = np.hstack([X, -np.ones((len(X), 1))])
        full = np.hstack([self.queries, np.zeros((len(X), ties.size - len(ties.free) - 1))])
        self.inner, self.sizes = ties.inner(full), ties.sizes(full)
        self.side_with(centre)
        self.shown, self.is_yes, self.is_no = 0, np.zeros(len(X), dtype=np.bool_), np.zeros(len(X), dtype=np.bool_)
        """How many models of a log were shown, and for which points one of them says Yes for certain, or No."""

    def show(self, models: FloatArray, which: IntArray) -> None:
        """What models (a, b) say of some of the points."""
        queries = self.queries[which]
        said = queries @ models.T
        off = gamma(queries.shape[1] + 8) * (np.abs(queries) @ np.abs(models).max(axis=0))
        self.is_yes[which] |= said.max(axis=1) > off
        self.is_no[which] |= said.min(axis=1) < -off

    def side_with(self, centre: FloatArray) -> None:
        """Ask for the side that a model takes."""
        self.sign = np.where(self.inner @ centre >= 0, 1.0, -1.0)


@final
class Rooms:
    """How much room is asked for, for each point: bisection between what proofs cost and what there is not."""

    def __init__(self, room: FloatArray, least: FloatArray) -> None:
        self.room, self._least = room, least
        self._low, self._high = np.zeros(len(room)), np.full(len(room), np.inf)

    @staticmethod
    def in_core(said: FloatArray, least: FloatArray) -> Rooms:
        """A thousandth of what the centre has, but no less than widths and rounding may cost."""
        return Rooms(np.maximum(1e-3 * said, least), least / 64)

    def narrow(self, todo: IntArray, held: BoolArray, beta: FloatArray) -> IntArray:
        """The points for which it is worth to ask again, with other room."""
        low, high, room = self._low, self._high, self.room
        yes, no = todo[held], todo[~held]
        low[yes] = np.maximum(low[yes], room[yes] + np.maximum(-beta[held], 1e-300))
        high[no] = np.minimum(high[no], room[no])
        ask = np.where(held, 2 * low[todo], high[todo] / 32)
        between = np.sqrt(low[todo] * np.where(high[todo] < np.inf, high[todo], 1.0))
        room[todo] = np.maximum(np.where(ask >= high[todo], between, ask), self._least[todo] / 2)
        go = (low[todo] < 0.7 * high[todo]) & (high[todo] > self._least[todo])
        return np.asarray(todo[go])
