"""Proofs for numbers that are not whole: a ball inside the cone pays for residual and rounding.

With M = mean of a_i a_iᵀ over the unit rows and m its least eigenvalue: v = mean of (a_i·M⁻¹v) a_i and |a_i·M⁻¹v| ≤
|v|/m, so for |v| ≤ m mean a_i + v = mean of (1 + a_i·M⁻¹v) a_i has weights ≥ 0: the ball of radius m around mean a_i
lies in the cone of the rows. A target that lies a little behind itself, c − θ·mean a_i, and is held there to within
θ·m, is held for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.prover.cone import RoundCone, gamma

ROOM = 1e-8
"""How far inside the cone a target has to lie to be settled."""


@final
@dataclass(frozen=True, eq=False)
class Ball:
    """The ball of some radius around the mean of the unit rows A; row i may be off by error_i."""

    A: FloatArray
    mean: FloatArray
    radius: float
    error: FloatArray

    @staticmethod
    def inside(cone: RoundCone) -> Ball | None:
        """The largest that can be shown; None if there is none, or if coordinates and queries do not say the same."""
        if cone.rank < cone.rows.shape[1]:
            return None
        values = np.linalg.svd(cone.map, compute_uv=False)
        if not values[-1] > 1e-11 * values[0]:
            return None
        size = np.linalg.norm(np.abs(cone.rows) @ np.abs(cone.map), axis=1)
        error = gamma(cone.rows.shape[1] + 8) * size / cone.lengths + 4 * gamma(1)
        least = float(np.linalg.eigvalsh(cone.A.T @ cone.A / len(cone.A))[0])
        off = 4 * float(error.max()) + gamma(len(cone.A) + 4 * cone.rank)
        radius = 0.99 * (least - off) / (1 + off)
        return Ball(cone.A, cone.A.mean(axis=0), radius, error) if least > 1e-6 and radius > 0 else None

    def behind(self, C: FloatArray) -> FloatArray:
        """The targets a little behind themselves."""
        return C - ROOM / self.radius * self.mean

    def pays(
        self, aims: FloatArray, lean: FloatArray, rounding: FloatArray, held: IntArray, weights: FloatArray
    ) -> BoolArray:
        """True where residual and all rounding stay within the ball; `aims` have length 1, `lean` before, and are off
        by `rounding`."""
        used, theta = np.maximum(held, 0), ROOM / self.radius
        weights = np.where((held >= 0) & (weights > 0), weights, 0.0)
        rest = aims - np.einsum("ij,ijk->ik", weights, self.A[used])
        off = np.linalg.norm(rest, axis=1) + np.einsum("ij,ij->i", weights, self.error[used])
        off += gamma(held.shape[1] + 6) * (weights.sum(axis=1) + 1.0)
        return np.asarray((off * lean + theta * self.error.max() + rounding) * 1.01 < theta * self.radius)
