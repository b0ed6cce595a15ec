"""The one vector that a system of homogeneous equations leaves open, and how far errors in the system can move its entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overexplain.extraction.points import INDEPENDENT
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import UNIT_ROUNDOFF


@dataclass(frozen=True, eq=False)
class NullVector:
    """The solution of rows·t = 0 up to a factor; some multiple of the true one lies within `errors` of it, entry by entry.

    `errors` is None if the system is known too badly for a bound; `gap` is the smallest over the largest singular value.
    """

    values: FloatArray
    errors: FloatArray | None
    gap: float


def null_vector(rows: FloatArray, errors: FloatArray, sizes: FloatArray) -> NullVector | None:
    """The null vector of `rows`, each entry known to within `errors`; None if they leave more than one vector open.

    `sizes` are the sizes that the columns' entries have before anything cancels: rank is judged in these units.

    The true system is rows + δ with |δ| ≤ errors. Scale the true solution t so that it shares the largest entry of the one
    found, t'. Then rows·(t' − t) = r + δt, where r is what is left of rows·t', so that with P = |pseudo-inverse| and
    E = errors: |t' − t| ≤ P(|r| + E|t'|) + PE·|t' − t|, which is a bound as soon as ‖PE‖ < 1.

    >>> found = null_vector(np.array([[1.0, 2.0]]), np.array([[0.0, 1e-9]]), np.ones(2))
    >>> (found.values / found.values[0]).round(9).tolist(), bool(found.errors.max() < 1e-9)
    ([1.0, -0.5], True)
    """
    count = rows.shape[1]
    if count == 1:
        return NullVector(np.ones(1), np.zeros(1), 1.0)
    if len(rows) < count - 1 or not (sizes > 0).all():
        return None
    scaled = rows / sizes
    _, strengths, right = np.linalg.svd(scaled, full_matrices=True)
    gap = float(strengths[count - 2] / strengths[0]) if strengths[0] > 0 else 0.0
    if gap <= INDEPENDENT:
        return None
    found = np.asarray(right[-1])
    others = np.delete(np.arange(count), int(np.abs(found).argmax()))
    inverse = np.abs(np.linalg.pinv(scaled[:, others]))
    unsure = errors / sizes + 8 * count * UNIT_ROUNDOFF * np.abs(scaled)
    moved = inverse @ (np.abs(scaled @ found) + unsure @ np.abs(found))
    growth = float((inverse @ unsure[:, others]).sum(axis=1).max())
    if growth >= 0.5:
        return NullVector(found / sizes, None, gap)
    spread = np.zeros(count)
    spread[others] = moved + growth / (1 - growth) * moved.max()
    return NullVector(found / sizes, spread / sizes, gap)


def open_vectors(rows: FloatArray, sizes: FloatArray) -> FloatArray:
    """A basis (rows) of the vectors that the system does not exclude."""
    if len(rows) == 0:
        return np.eye(rows.shape[1])
    used = np.where(sizes > 0, sizes, 1.0)
    _, strengths, right = np.linalg.svd(rows / used, full_matrices=True)
    rank = int((strengths > INDEPENDENT * strengths[0]).sum()) if strengths[0] > 0 else 0
    return np.asarray(right[rank:] / used)
