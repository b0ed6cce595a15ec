"""Cheap looks before the search, for many points: c = τ·z0 + Σ λ·g with g known to lie in the cone, one product a point.

In round coordinates z0 = κ·Σ a_i/(a_i·z0) lies deep inside the cone K of the rows, too. So if a target c is τ·z0 plus
members of K, then τ·z0 pays for all rounding: the ball of radius m around the mean u of the unit rows lies in K
(`ball`), and so does z0 − share·u. The members are the 2(r − 1) faces β·z0 ± e_j of a box around a slice of the models,
each shown once by the search itself. Nothing rests on the box being tight.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.knowledge.prover.ball import Ball
from overexplain.knowledge.prover.batch import HELD, Batch
from overexplain.knowledge.prover.cone import RoundCone, gamma

NEARLY = 1e-3
"""How much of the mean of all rows is taken from a row that is asked about."""
MOST = 40
"""Dimensions up to which a box is worth its price."""
ROUNDS = 9
"""Bisections of the faces of the box."""
OFF = 1e-6
"""A face whose combination is off by more than this is not believed."""
SAMPLE, WORTH = 1000, 0.04
"""A box that settled less than this share of so many points is not asked any more."""
DEEPEST = 10
"""So many rows a dimension, those that cut deepest, are enough for a box: any rows of the cone prove it."""


@final
class Box:
    """−low_j ≤ (coordinate j) ≤ high_j for every model with z0·z = 1, in a basis `turn` of what is orthogonal to z0.

    `pays`: τ·z0 covers errors up to τ·pays; `cost`: what each face owes.
    """

    def __init__(self, z0: FloatArray, turn: FloatArray, faces: FloatArray, cost: FloatArray, pays: float) -> None:
        self.z0, self.turn, self.pays = z0, turn, pays
        k = turn.shape[1]
        self.high, self.low, self._cost_high, self._cost_low = faces[:k], faces[k:], cost[:k], cost[k:]
        self._asked, self._settled = 0, 0

    def tally(self, settled: BoolArray) -> None:
        """Remember which points of a batch it settled."""
        self._asked, self._settled = self._asked + len(settled), self._settled + int(settled.sum())

    @property
    def is_worth_asking(self) -> bool:
        """False if it settles next to nothing: which verdicts are given does not depend on it, only by whom."""
        return self._asked < SAMPLE or self._settled >= WORTH * self._asked

    def settle(self, X: FloatArray, cone: RoundCone, codes: NDArray[np.int8]) -> None:
        """Codes ±1 for points whose row (x, −1), or its negative, lies in the cone: `holds` in one compiled pass over the points.

        [z0, turn] is orthonormal, so one product with map·[z0, turn] gives all that is needed; rounding is relative to the
        lengths of the rows of the map.
        """
        from overexplain.knowledge.prover.compiled import by_box

        axes = np.hstack([self.z0[:, None], self.turn])
        frame, sizes = cone.map @ axes, np.linalg.norm(cone.map, axis=1)
        rounding = self._rounding(len(cone.map))
        by_box(
            np.ascontiguousarray(X), frame[:-1], -frame[-1], sizes[:-1], float(sizes[-1]),
            np.array([self.high, self.low]), np.array([self._cost_high, self._cost_low]), self.pays, rounding, codes,
        )  # fmt: skip
        self.tally(np.abs(codes) == 1)

    def _rounding(self, terms: int) -> float:
        """The length of the error of a vector of r sums of `terms` products, and of what the axes lack to be orthonormal."""
        r = len(self.z0)
        return gamma(2 * int(np.ceil(np.sqrt(r) * (terms + r))) + 4 * r + 16)

    def holds(self, C: FloatArray, off: FloatArray) -> BoolArray:
        """True where targets C, of length 1 and off by at most `off`, lie in the cone for certain."""
        rounding = self._rounding(len(self.z0))
        R = C @ self.turn
        up, down = np.maximum(R, 0.0), np.maximum(-R, 0.0)
        reached = up @ self.high + down @ self.low
        owed = up @ self._cost_high + down @ self._cost_low
        size = rounding * (1.0 + reached)
        return np.asarray((C @ self.z0 - reached - size) * self.pays > 1.01 * (owed + off + size))


def behind(cone: RoundCone) -> FloatArray:
    """The rows, of length 1, a little behind themselves: one that is held there is implied by others with room to spare."""
    C = cone.A - NEARLY * cone.A.mean(axis=0)
    return np.asarray(C / np.linalg.norm(C, axis=1, keepdims=True))


def find_box(cone: RoundCone, ball: Ball) -> Box | None:
    """A box around the models of a cone; None if none is found, or if rounding leaves nothing to pay with."""
    r, A, z0 = cone.rank, cone.A, cone.z0
    if not 2 <= r <= MOST:
        return None
    weights = 1 / (A @ z0)
    total = weights @ A
    kappa = 1 / float(np.linalg.norm(total))
    off = float(np.linalg.norm(z0 - kappa * total)) + kappa * float(weights @ ball.error)
    off += gamma(len(A)) * kappa * float(weights.sum())
    # z0 − share·u is a combination of the rows whose weights stay above 0; what z0 is off is paid by half of it.
    share = 0.5 * kappa * len(A) * float(weights.min())
    pays = 0.9 * (share - off / ball.radius) * ball.radius
    if not pays > 1e-9:
        return None
    turn = np.linalg.svd(z0[None, :])[2][1:].T
    faces, cost = _faces(cone, turn, float(ball.error.max()))
    return Box(z0, turn, faces, cost, pays) if np.isfinite(faces).all() else None


def _faces(cone: RoundCone, turn: FloatArray, error: float) -> tuple[FloatArray, FloatArray]:
    """(β for each of the 2(r − 1) directions ± e_j, what its proof is off), by bisection; ∞ where none was found."""
    W = cone.A / (cone.A @ cone.z0)[:, None]
    deepest = np.sort(np.argsort(-np.linalg.norm(W, axis=1))[: DEEPEST * cone.rank])
    batch = Batch(cone, kept=deepest)
    ways = np.vstack([turn.T, -turn.T])
    low, high, cost = np.zeros(len(ways)), np.full(len(ways), np.inf), np.full(len(ways), np.inf)
    beta = np.full(len(ways), 8.0 * np.sqrt(cone.rank))
    for _ in range(ROUNDS):
        C = beta[:, None] * cone.z0 + ways
        length = np.linalg.norm(C, axis=1)
        found = batch.search(C / length[:, None])
        used = np.maximum(found.held, 0)
        rest = np.linalg.norm(C / length[:, None] - np.einsum("ij,ijk->ik", found.weights, cone.A[used]), axis=1)
        off = (rest + found.weights.sum(axis=1) * (error + gamma(cone.rank + 8)) + gamma(8)) * length
        held = (found.codes == HELD) & (off < OFF)
        better = held & (beta < high)
        high[better], cost[better] = beta[better], off[better]
        low[~held] = np.maximum(low[~held], beta[~held])
        between = np.sqrt(
            np.maximum(low, np.where(np.isfinite(high), high, 1.0) / 8) * np.where(np.isfinite(high), high, 1.0)
        )
        beta = np.where(np.isfinite(high), np.where(low > 0, between, high / 3), 4 * beta)
        if (high < 1.1 * np.maximum(low, 1e-9)).all():
            break
    return high, cost
