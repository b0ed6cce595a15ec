"""Points that linear facts are asked about."""

from __future__ import annotations

from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.prover.coding import Coding
from overexplain.knowledge.prover.cone import RoundCone, gamma
from overexplain.knowledge.prover.reduction import Reduction


@final
class Points:
    """Points that are asked about, in the coordinates of a prover: `queries` in those of its rows, `inner` in reduced ones."""

    def __init__(
        self, X: FloatArray, coding: Coding, reduction: Reduction, cone: RoundCone, is_centre_kept: bool
    ) -> None:
        self.X, self.cone = X, cone
        self.queries, fits = coding.queries(X)
        self.inner, self.size = reduction.inner(self.queries), reduction.sizes(self.queries)
        # Whole numbers below 2^53 are multiplied without rounding.
        self.exact = fits & reduction.is_whole & (self.size.max(axis=1) < 2.0**53)
        self.gamma = gamma(self.queries.shape[1] + self.inner.shape[1] + 8)
        said = self.inner @ cone.centre
        off = self.gamma * (self.size @ np.abs(cone.centre))
        self.sign = np.where(said >= 0, 1.0, -1.0)
        self.clear = (np.abs(said) > off) & is_centre_kept
        self._size_of_said = np.abs(said) + off

    def doubts(self, at: IntArray, models: FloatArray) -> BoolArray:
        """For some points and a model for each: True if it says otherwise than the centre, for certain."""
        said = np.einsum("ij,ij->i", self.inner[at], models) * self.sign[at]
        off = self.gamma * np.einsum("ij,ij->i", self.size[at], np.abs(models))
        return np.asarray((said < -off) & self.clear[at])

    def rounding(self, at: IntArray, length: FloatArray) -> FloatArray:
        """How far the targets of some points, of length 1 after a division by `length`, may be off."""
        cone = self.cone
        size = np.linalg.norm(np.abs(self.queries[at]) @ np.abs(cone.map), axis=1)
        return np.asarray(gamma(cone.rows.shape[1] + 8) * size / length + 4 * gamma(1))

    def beside_the_span(self, unseen: FloatArray, reach: FloatArray) -> BoolArray:
        """True for points with a part that no row has: the centre, moved that way or back, says either."""
        if not unseen.shape[1]:
            return np.zeros(len(self.X), dtype=bool)
        along = np.abs(self.inner @ unseen) - self.gamma * (self.size @ np.abs(unseen))
        return np.asarray((along * reach > self._size_of_said[:, None]).any(axis=1))
