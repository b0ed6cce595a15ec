"""Many targets at once: models and sets of rows that were found for earlier ones, and the choice between NumPy and
compiled loops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.prover import projection
from overexplain.knowledge.prover.cone import RoundCone
from overexplain.knowledge.prover.projection import HELD, STUCK, UNKNOWN

__all__ = ["HELD", "STUCK", "UNKNOWN", "Batch", "Found"]

POOL, STORED = 1024, 256
"""Models and sets of rows that are kept."""
LIMIT = 20
"""Rows that join or leave before a search is given up, for each dimension of the cone and for 20 more."""
WORTH_COMPILING, WORTH_CALLING = 3000, 8
"""Targets, in all or at once, from which on compiled loops are worth a compilation, or being called if they are there already."""
PIECE = 4096
"""Targets that are searched for in one go: what they teach is looked at in between."""
COMPILED = "overexplain.knowledge.prover.compiled"


def expect(targets: int) -> None:
    """Have compiled loops at hand if so many targets, in however many batches, are worth it."""
    if targets >= WORTH_COMPILING:
        with suppress(ImportError):
            import_module(COMPILED)


@dataclass(frozen=True, eq=False)
class Found:
    """For each target: its code, the number of its model in the pool (or −1), the rows that hold it (−1: none) with
    their weights, and
    whether whole numbers proved it."""

    codes: NDArray[np.int8]
    models: IntArray
    held: IntArray
    weights: FloatArray
    proved: BoolArray


@final
class Batch:
    """Searches in one cone; `models` are those found so far, in the cone's coordinates.

    whole  the rows in whole numbers, if they are
    kept   the rows that take part, for models and sets of rows alike; None: all
    """

    def __init__(
        self, cone: RoundCone, whole: FloatArray | None = None, kept: IntArray | None = None, like: Batch | None = None
    ) -> None:
        self.cone, self.kept = cone, kept
        self.whole = np.zeros((0, cone.rows.shape[1])) if whole is None else whole
        self._rows = cone.A, cone.columns, cone.depth, cone.scale
        if like is not None:
            self.whole, self._rows = like.whole, like._rows
        elif kept is not None:
            self.whole = self.whole[kept] if len(self.whole) else self.whole
            A, columns = np.ascontiguousarray(cone.A[kept]), np.ascontiguousarray(cone.columns[:, kept])
            self._rows = A, columns, cone.depth[kept], cone.scale[kept]
        self._reserve(POOL, STORED)

    def for_one(self) -> Batch:
        """The same for a single target, with nothing learnt."""
        twin = Batch(self.cone, None, self.kept, like=self)
        twin._reserve(4, 0)
        return twin

    def _reserve(self, pool: int, stored: int) -> None:
        """Room for so many models and sets of rows."""
        cone = self.cone
        r, padded = cone.rank, len(cone.columns)
        self._pool, self._pool_columns, self.known = np.zeros((pool, r)), np.zeros((padded, pool), np.float32), 0
        self._sets = (
            np.zeros((padded, stored), np.float32),
            np.zeros(stored, np.int64),
            np.zeros((stored, r + 1), np.int64),
            np.zeros((stored, r + 1)),
            np.zeros((stored, r + 1, r)),
            np.zeros(1, np.int64),
        )
        self._asked, self._before = 0, 0
        self._seen, self._kept = 0, np.zeros(pool, dtype=bool)

    @property
    def models(self) -> FloatArray:
        """The models found so far, in the coordinates of the cone."""
        return self._pool[: self.known]

    @property
    def new_models(self) -> FloatArray:
        """Those of them that the last search found."""
        return self._pool[self._before : self.known]

    def admitted(self, keeps: Callable[[FloatArray], BoolArray]) -> BoolArray:
        """For each model: True if `keeps` admits it; every model is asked about once."""
        new = slice(self._seen, self.known)
        self._kept[new] = keeps(self.cone.models(self._pool[new]))
        self._seen = self.known
        return self._kept[: self.known]

    def drop(self, refused: BoolArray) -> None:
        """Forget some models: they would be shown to every further target."""
        self._keep(np.flatnonzero(~refused))

    def search(self, C: FloatArray, queries: FloatArray | None = None) -> Found:
        """What is found for targets C of length 1, as many as the pool has room for. `queries`: the same in whole numbers."""
        cone, whole = self.cone, self.whole if queries is not None else self.whole[:0]
        asked = self.whole[:0] if queries is None else queries
        if self.known >= len(self._pool):
            self._forget()
        A, columns, depth, scale = self._rows
        self._before = self.known
        codes, models, held, weights, proved, self.known, done = self._sweep(len(C))(
            A, columns, depth, cone.z0, C, C @ cone.z0, whole, asked, cone.map, scale,
            self._pool, self._pool_columns, self.known, self._sets, LIMIT * (cone.rank + 20),
        )  # fmt: skip
        if self.kept is not None:
            held = np.where(held >= 0, self.kept[np.maximum(held, 0)], -1)
        return Found(codes[:done], models[:done], held[:done], weights[:done], proved[:done])

    def _sweep(self, count: int) -> Any:
        self._asked += count
        if count < WORTH_CALLING or (self._asked < WORTH_COMPILING and COMPILED not in sys.modules):
            return projection.sweep
        try:
            from overexplain.knowledge.prover.compiled import sweep
        except ImportError:
            return projection.sweep
        return sweep

    def _forget(self) -> None:
        """Every second model makes room for others."""
        self._keep(np.arange(1, self.known, 2))

    def _keep(self, which: IntArray) -> None:
        models, flags = self._pool[which], self._kept[which]
        self.known, self._seen = len(which), int((which < self._seen).sum())
        self._pool[: self.known], self._kept[: self.known] = models, flags
        self._pool_columns[: models.shape[1], : self.known] = -models.T
