"""All rows of a log, a piece at a time: does a model keep them, and which does it break?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.checker import Answer, check_witness
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.blocks import Block, blocks_of
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.prover.keeper import Ends, Keeper, Model, middles
from overexplain.log.querylog import QueryLog, Status

PIECE = 8192
"""Rows of one matrix product."""
DOUBTFUL = 64
"""Rows that floats do not see to be kept are asked about in rationals, one by one, if there are so few."""
MOST = 64
"""Rows that are named for one model."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A model (a, b), and the same in floats, rounded once; `ties` are those it keeps, if facts have lengths in them."""

    floats: FloatArray
    exact: Model
    ties: Ties | None

    @staticmethod
    def of(model: Model, ties: Ties | None) -> Shown:
        """A model; where lengths are in the facts the one that its floats are: which entries are longest has to be told by them."""
        largest = max(abs(v) for v in (*model[0], model[1]))
        size = Fraction(2) ** (largest.numerator.bit_length() - largest.denominator.bit_length())
        floats = np.array([float(v / size) for v in (*model[0], model[1])])
        if ties is not None:
            exact = ties.exactly(floats)
            model = exact[:-1], exact[-1]
        return Shown(floats, model, ties)


@dataclass(frozen=True, eq=False)
class Held:
    """The rows that a model breaks, or may break, the deepest first; none: it keeps all. `share`: how much of it may be in a model
    that is else the first of those that are held with it."""

    broken: IntArray
    share: float


@final
class AllRows:
    """`answers` are the log's rows in exact numbers, `numbers` the lengths that have one."""

    def __init__(
        self,
        log: QueryLog,
        answers: Mapping[int, Answer],
        tolerance: float | None,
        evidence: Evidence,
        numbers: Mapping[Norm | Secret, int],
    ) -> None:
        self._log, self._answers, self._tolerance, self._evidence = log, answers, tolerance, evidence
        self._numbers = dict(numbers)
        self._has_secrets = any(terms.radius is None for terms in log.mechanisms)

    def held(self, models: Sequence[Shown], start: int, stop: int) -> list[Held]:
        """Each model held against the rows from `start` to `stop`."""
        groups: dict[int, list[int]] = {}
        start = 0 if self._has_secrets else start  # one reach for all rows
        for k, model in enumerate(models):  # rows without a label are on the side that a model gives them
            groups.setdefault(k if self._is_unlabelled else id(model.ties), []).append(k)
        found: dict[int, Held] = {}
        for which in groups.values():
            found |= zip(which, self._held([models[k] for k in which], start, stop), strict=True)
        return [found[k] for k in range(len(models))]

    @cached_property
    def _is_unlabelled(self) -> bool:
        """True if explanations have no label."""
        return bool(((self._log.labels == 0) & (self._log.status == Status.ASKED)).any())

    @np.errstate(all="ignore")
    def _held(self, models: Sequence[Shown], start: int, stop: int) -> list[Held]:
        floats = np.array([model.floats for model in models])
        broken: list[list[IntArray]] = [[] for _ in models]
        depths: list[list[FloatArray]] = [[] for _ in models]
        shares, untold = np.ones(len(models)), []
        for block, rooms in self._rooms(floats, models[0].ties, start, stop):
            if np.isnan(rooms).all():
                untold.append(block.rows)
                continue
            for k in np.flatnonzero(~(rooms >= 0).all(axis=1)):
                which = np.flatnonzero(~(rooms[k] >= 0))
                worst = which[np.argsort(rooms[k, which])[: MOST + 1]]
                broken[k].append(block.rows[worst])
                depths[k].append(rooms[k, worst])
                inside = np.maximum(rooms[0, which], 0.0)
                shares[k] = min(shares[k], np.nanmin(inside / (inside - rooms[k, which]), initial=1.0))
        return [
            Held(self._refused(model, rows, depth, untold), float(share))
            for model, rows, depth, share in zip(models, broken, depths, shares, strict=True)
        ]

    def _rooms(
        self, models: FloatArray, ties: Ties | None, start: int, stop: int
    ) -> Iterator[tuple[Block, FloatArray]]:
        labels, secret, ties = self._labels(models), Secrets(), ties or Ties(models.shape[1] - 1, (), 0)
        if self._has_secrets:
            for keeper in self._keepers(labels, ties, start=0, stop=len(self._log)):
                secret.narrow(keeper.secret_ends(models))
        for keeper in self._keepers(labels, ties, start, stop):
            reaches = keeper.reaches(models) | middles(secret.ends)
            for k, block in enumerate(keeper.blocks):
                yield block, keeper.rooms(k, models, reaches)

    def _keepers(self, labels: NDArray[np.int8], ties: Ties, start: int, stop: int) -> Iterator[Keeper]:
        for first in range(start, stop, PIECE):
            rows = np.arange(first, min(first + PIECE, stop))
            blocks = blocks_of(self._log, labels, self._tolerance, self._answers, rows, self._numbers)
            if blocks:
                yield Keeper(blocks, ties, self._answers, self._evidence)

    def _labels(self, models: FloatArray) -> NDArray[np.int8]:
        labels = self._log.labels
        if not self._is_unlabelled:
            return labels
        free = np.flatnonzero((labels == 0) & (self._log.status == Status.ASKED))
        said = self._log.points[free] @ models[0, :-1] - models[0, -1]
        labels = labels.copy()
        labels[free] = np.where(said >= 0, 1, -1)
        return labels

    def _refused(
        self, model: Shown, rows: Sequence[IntArray], depths: Sequence[FloatArray], untold: Sequence[IntArray]
    ) -> IntArray:
        """The rows that a model breaks, as far as rationals are asked about those that floats do not know."""
        found = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        found = found[np.argsort(np.concatenate([np.zeros(0), *depths]), kind="stable")]
        if self._has_secrets and (len(found) or untold):  # one reach for all rows: none of them can be asked alone
            return found[:MOST] if len(found) else np.concatenate(untold)[:MOST]
        if len(found) <= DOUBTFUL:
            found = np.array([row for row in found.tolist() if not self._keeps(model, [row])], dtype=np.int64)
        for some in () if len(found) else untold:
            if not self._keeps(model, some.tolist()):
                broken = (row for row in some.tolist() if not self._keeps(model, [row]))
                return np.array([next(broken, int(some[0]))])
        return found[:MOST]

    def _keeps(self, model: Shown, rows: Sequence[int]) -> bool:
        """True if the checker accepts a model of some rows."""
        try:
            check_witness({row: self._answers[row] for row in rows}, *model.exact, lengths=self._evidence)
        except CertificateInvalid:
            return False
        return True


@final
class Secrets:
    """Between which ends secret reaches lie, after some of the rows that have them."""

    def __init__(self) -> None:
        self.ends: Ends = {}

    def narrow(self, ends: Ends) -> None:
        for number, (low, high) in ends.items():
            before = self.ends.get(number, (low, high))
            self.ends[number] = np.maximum(low, before[0]), np.minimum(high, before[1])
