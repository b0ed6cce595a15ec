"""All vertices of P in few dimensions: one product with them names the proof of almost every point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.gauge.bounds import Polytope
from overexplain.knowledge.gauge.plain import into_polytope

FEW_DIMENSIONS = 6
MOST_RAYS = 20_000


@dataclass(frozen=True)
class Rays:
    """Vertices of P with their bases. Nothing rests on the list being complete: it only proposes proofs."""

    points: FloatArray
    """(V, k): proved to lie in P"""
    basis: NDArray[np.intp]
    """(V, k): rows tight at the vertex"""
    inverse: FloatArray
    """(V, k, k): of those rows; multipliers of c are c @ inverse"""

    columns32: NDArray[np.float32]
    """(k, V padded): the points, for searching"""
    front: FloatArray
    """(m,): what a unit of each row costs"""

    def decide(
        self, polytope: Polytope, c: FloatArray, cost: FloatArray, goal: FloatArray
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(proved certain, proved unknown) per direction."""
        certain, unknown = np.zeros(len(c), dtype=bool), np.zeros(len(c), dtype=bool)
        step = max(64, 2_000_000 // max(len(self.points), 1))
        for start in range(0, len(c), step):
            piece = slice(start, start + step)
            gains = c[piece] @ self.points.T
            best = gains.argmax(axis=1)
            unknown[piece] = gains[np.arange(len(best)), best] > 1.0 + cost[piece]
            rest = np.flatnonzero(~unknown[piece])
            weights = np.matmul(c[piece][rest][:, None, :], self.inverse[best[rest]])[:, 0, :]
            certain[start + rest] = polytope.upper(c[piece][rest], self.basis[best[rest]], weights) < goal[piece][rest]
        return certain, unknown


def find_rays(polytope: Polytope) -> Rays | None:
    """The vertices of P by Qhull, or None if that is not the way for this polytope."""
    count, k = polytope.rows.shape
    if k > FEW_DIMENSIONS or k == 0 or count <= k:
        return None
    if k == 1:
        column = polytope.rows[:, 0]
        basis = np.array([[column.argmax()], [column.argmin()]], dtype=np.intp)
        inverse = 1.0 / polytope.rows[basis]
    else:
        from scipy.spatial import ConvexHull, QhullError

        try:
            basis = ConvexHull(polytope.rows).simplices.astype(np.intp)
        except QhullError:
            return None
        if len(basis) > MOST_RAYS:
            return None
        sound = np.abs(np.linalg.det(polytope.rows[basis])) > 0
        basis = basis[sound]
        try:
            inverse = np.linalg.inv(polytope.rows[basis])
        except np.linalg.LinAlgError:
            return None
    vertices = inverse.sum(axis=2)
    usable = np.isfinite(inverse).all(axis=(1, 2)) & ((vertices @ polytope.rows.T).max(axis=1) < 1.0 + 1e-6)
    if not usable.any():
        return None
    points, _ = into_polytope(polytope, vertices[usable])
    # Copies of the first point fill up the last vector: they change no maximum.
    columns = np.tile(points[:1].T.astype(np.float32), (1, -(-len(points) // 32) * 32))
    columns[:, : len(points)] = points.T
    return Rays(points, basis[usable], inverse[usable], columns, 1.0 + polytope.slop)
