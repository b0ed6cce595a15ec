"""A closed form for logs that leave one model alone, or nearly: |(a·x − b)/t − m·q| ≤ v·|q| + ρ·|qM| for every consistent model.

q = (x, −1) over the unknowns that are left. With E the equalities and N what they leave, z = E⁺(Ez) + N(Nᵀz) + Rz,
|E_j·z| ≤ width_j·t and |z| ≤ reach·t; N is turned so that only its first column has a part in t, and that one is fixed
by t itself. The other columns, M, cost nothing where the point has no part in them, as that of one-hot groups and
constants. Two products decide a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import Norm
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.cone import gamma
from overexplain.knowledge.prover.facts import UP, Ties
from overexplain.knowledge.prover.lengths import Equalities
from overexplain.knowledge.prover.linear import OPEN

MOST = 12
"""Dimensions that may be left."""


@final
@dataclass(frozen=True, eq=False)
class Pinned:
    """(p,) normal, its charge, and offset, its charge: a·x − b is within charge·|x| + … of normal·x − offset, in units of t.

    `beside` (p, m) with `level` (m,): directions that are open, and `reach` how far each may go.
    """

    normal: FloatArray
    charge: FloatArray
    offset: float
    offset_charge: float
    beside: FloatArray
    level: FloatArray
    reach: FloatArray

    def codes(self, X: FloatArray) -> NDArray[np.int8]:
        """1 or −1 where every consistent model agrees, for certain; else OPEN."""
        off, size = gamma(X.shape[1] + 10), np.abs(X)
        value = X @ self.normal - self.offset
        room = (size @ (self.charge + off * np.abs(self.normal)) + self.offset_charge + off * abs(self.offset)) * UP
        if len(self.reach):
            along = np.abs(X @ self.beside - self.level) + off * (size @ np.abs(self.beside) + np.abs(self.level))
            room += along @ self.reach * UP
        codes = np.full(len(X), OPEN, dtype=np.int8)
        codes[value > room], codes[value < -room] = YES, NO
        return codes


def pin(
    ties: Ties, norms: list[Norm | Secret], p: int, scale: FloatArray, null: FloatArray, back: FloatArray, equal: Equalities,
    anchor: int | None,
) -> Pinned | None:  # fmt: skip
    """The closed form of a core; None if it has too many dimensions or nothing bounds them."""
    if len(norms) != 1 or isinstance(norms[0], Secret) or not 0 < null.shape[1] <= MOST or anchor is None:
        return None
    free, units = len(ties.free), norms[0].units(p)[ties.free]
    row = np.abs(equal.rows[anchor])
    bound_b = (row[:free] @ units + row[free + 1] + equal.width[anchor]) / row[free]
    reach = UP * UP * np.concatenate([units, [bound_b, 1.0]]) / scale
    turn = np.linalg.qr(np.column_stack([null[-1], np.eye(null.shape[1])]))[0]
    whole = null @ turn
    first, rest = whole[:, 0], whole[:, 1:]
    rows, away = equal.rows * scale, back / scale[:, None]
    R = np.abs(np.eye(len(scale)) - away @ rows - whole @ whole.T)
    off = gamma(2 * len(scale) + p + 16)
    R += off * (np.abs(away) @ (equal.sizes * scale) + np.abs(whole) @ np.abs(whole).T + 1e-16)
    rho = UP * (np.abs(rest).T @ reach)
    error = (np.abs(away) @ equal.width + R @ reach) * UP
    error[-1] += np.abs(rest[-1]) @ rho
    one = 1 / scale[-1]  # t = 1 in these units: first·u + rest·u' is that to within error, which fixes u
    if not one > 2 * error[-1] or not first[-1]:
        return None
    m = first / first[-1] * one
    v = error + np.abs(first / first[-1]) * error[-1] * UP + gamma(8) * np.abs(m)
    v += gamma(len(scale) + 8) * (np.abs(rest) @ rho)
    m, v, M = m * scale, v * scale * (1 + 1e-9), rest * scale[:, None]
    tied = np.flatnonzero(ties.number >= 0)
    normal, charge, beside = np.zeros(p), np.zeros(p), np.zeros((p, M.shape[1]))
    normal[ties.free], charge[ties.free], beside[ties.free] = m[:free], v[:free], M[:free]
    # Ties put the entries that they fix into t.
    normal[tied], charge[tied] = ties.value[tied] * m[-1], np.abs(ties.value[tied]) * (v[-1] + gamma(4) * abs(m[-1]))
    beside[tied] = ties.value[tied][:, None] * M[-1]
    return Pinned(normal, charge, float(m[free]), float(v[free]), beside, M[free], rho)
