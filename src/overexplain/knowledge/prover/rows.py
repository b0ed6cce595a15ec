"""Facts as rows over the unknowns that ties leave: inequalities, slabs on either side, and cuts of sources."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import qr

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.facts import Secret, Steepest, length_error
from overexplain.knowledge.prover.balls import Balls
from overexplain.knowledge.prover.blocks import Block, touching
from overexplain.knowledge.prover.cone import NoInterior, distinct
from overexplain.knowledge.prover.facts import CHORD, ENTRY, WAY, Facts, read
from overexplain.knowledge.prover.lengths import Equalities, Length, Payer, Reach, Source
from overexplain.knowledge.prover.stage import Stage
from overexplain.knowledge.solvers import TOLERANCE

THIN = 1e-7
"""A slab thinner than this share of what its row can be is taken as an equality by the search."""
SMOOTH = 16
"""Steps of smooth distances that are tried in closed form, the sharpest first."""
WIDER = 1e-3
"""The same where floats see no inside otherwise."""
RANK = 1e-7
"""Equalities that differ by less than this are one."""


class Rows:
    """The rows of a log; raises NoInterior if answers tie an entry to different values. `is_branched`: proofs may have bounds."""

    def __init__(self, blocks: Sequence[Block], *, is_branched: bool = True) -> None:
        self.blocks, self.p = list(blocks), blocks[0].points.shape[1]
        self.facts, self.ties, self.norms = read(blocks, self.p)
        if self.ties.clash is not None:
            raise NoInterior
        self.sources: list[Source] = [
            Reach(k, self.ties, self.p) if isinstance(norm, Secret) else Length(norm, k, self.ties, self.p)
            for k, norm in enumerate(self.norms)
        ]
        self.balls = Balls(blocks, self.norms, self.ties, self.p, is_branched=is_branched)
        self.facts = Facts.joined([self.facts, self.balls.chords], self.facts.left.shape[1])
        self.cuts = distinct(np.vstack([source.first() for source in self.sources]))

    @cached_property
    def written(self) -> list[tuple[Any, int]]:
        """How the checker knows each length, and its number: one length may have several names, as weights of 1 do."""
        found: list[tuple[Any, int]] = []
        for block in self.blocks:
            found += [(block.norm.spec, block.number)] if block.is_measured else []
            if block.is_robust:
                reach = block.reach
                found.append((reach.written if isinstance(reach, Secret) else reach.spec, block.ball))
        return found

    def number_of(self, length: Any) -> int | None:
        """The number of a length that the checker names; None if no row is measured in it."""
        return next((number for name, number in self.written if name == length), None)

    def read_rows(self) -> None:
        """All facts as rows over the unknowns that are left, equalities as two; then the cuts."""
        facts, ties = self.facts, self.ties
        inequalities, equalities = np.flatnonzero(~facts.equal), np.flatnonzero(facts.equal)
        slabs = np.zeros((len(equalities), facts.left.shape[1]))
        slabs[np.arange(len(equalities)), self.p + 1 + facts.number[equalities]] = facts.width[equalities]
        every = np.vstack([
            facts.left[inequalities], facts.left[equalities] + slabs, slabs - facts.left[equalities], self.cuts
        ])  # fmt: skip
        n = len(equalities)
        self.of_row = np.concatenate([inequalities, equalities, equalities, np.full(len(self.cuts), -1)])
        """The fact of each row; −1: a cut, the last of which are `cuts`."""
        self.way = np.concatenate([np.ones(len(inequalities) + n), -np.ones(n), np.arange(len(self.cuts))])
        self.base = len(inequalities)
        self.rows, sizes = ties.inner(every), ties.sizes(every)
        measured = ~np.isin(facts.name[self.of_row[: self.base + n]], (CHORD, ENTRY, WAY))  # the others have no unit
        largest = np.abs(self.rows[: self.base + n][measured]).max(axis=0, initial=0.0)
        self.scale = np.ldexp(1.0, -np.frexp(np.where(largest > 0, largest, 1.0))[1])
        self._equal = ties.inner(facts.left[equalities])
        self._equal_sizes = ties.sizes(facts.left[equalities])
        self._equalities = equalities
        self._sharp = self.thin(THIN) & facts.sharp[equalities]
        self.used, self.null, self.back = self.split(np.flatnonzero(self._sharp))
        self.equal = self._chosen(self.used, self.back)
        self.payer = Payer(ties, self.norms, self.p, self.rows, sizes, self.equal, self.base, self.balls.least)

    def thin(self, share: float) -> BoolArray:
        """Slabs thinner than a share of the most that their row can be, in units of its own length."""
        facts, size = self.facts[self._equalities], np.zeros(len(self._equalities))
        for k, norm in enumerate(self.norms):
            own = facts.number == k
            if own.any() and not isinstance(norm, Secret):
                left = facts.left[own]
                typical = float(np.median(np.asarray(norm(self.facts.left[:, : self.p]))))  # b is about as large
                size[own] = np.asarray(norm(left[:, : self.p])) + np.abs(left[:, self.p + 1 :]).sum(axis=1)
                size[own] += np.abs(left[:, self.p]) * typical
        return np.asarray(facts.width < share * size)

    def split(self, thin: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """(equalities that span the thin ones, the sharpest first; what they leave; the way back from their values)."""
        size = self.rows.shape[1]
        if not len(thin):
            return np.zeros(0, dtype=np.int64), np.eye(size), np.zeros((size, 0))
        scaled = self._equal[thin] * self.scale
        length = np.linalg.norm(scaled, axis=1)
        live = length > 1e-13 * np.linalg.norm(self._equal_sizes[thin] * self.scale, axis=1)
        thin, scaled, length = thin[live], scaled[live], length[live]
        if not len(thin):
            return thin, np.eye(size), np.zeros((size, 0))
        unit = scaled / length[:, None]
        _, values, turned = np.linalg.svd(
            unit if len(unit) <= size else np.linalg.qr(unit, mode="r"), full_matrices=True
        )
        rank = int((values > RANK * values[0]).sum())
        sharpness = np.maximum(self.facts.width[self._equalities[thin]] / length, 1e-300)
        order = qr((unit / np.maximum(sharpness, 1e-6 * sharpness.max())[:, None]).T, mode="r", pivoting=True)[1]
        chosen = np.sort(order[:rank])
        if (
            np.linalg.matrix_rank(unit[chosen], tol=RANK / 10) < rank
        ):  # sharp ones that hardly differ: by their directions alone
            chosen = np.sort(qr(unit.T, mode="r", pivoting=True)[1][:rank])
        back = self.scale[:, None] * np.linalg.pinv(unit[chosen]) / length[chosen]
        return thin[chosen], turned[rank:].T, back

    def _chosen(self, used: IntArray, back: FloatArray) -> Equalities:
        facts = self.facts[self._equalities[used]]
        return Equalities(self._equal[used], self._equal_sizes[used], facts.width, facts.number, back)

    def missed(self, thin: IntArray, null: FloatArray) -> IntArray:
        """Thin slabs that the core leaves by more than a share of their width: the rank was cut off above them."""
        rows = self._equal[thin] * self.scale
        off = np.linalg.norm(rows @ null, axis=1)
        noise = 1e-14 * np.linalg.norm(np.abs(rows) @ np.abs(null), axis=1)
        return np.asarray(thin[(off > 1e-2 * self.facts.width[self._equalities[thin]]) & (off > noise)])

    def cut(self, models: FloatArray, by: float = 1e-9) -> int:
        """Cuts where a length is too short for a model by more than a share of itself; how many are new."""
        whole = self._whole(models)
        return self._join_cuts(np.vstack([source.broken(whole, by) for source in self.sources]))

    def touch(self, number: int, V: FloatArray) -> int:
        """Cuts of one length at vectors that may be no longer than 1; how many are new."""
        source = self.sources[number]
        assert isinstance(source, Length)
        sizes = np.asarray(source.norm(V))[:, None] * (1 + length_error(source.norm, self.p))
        return self._join_cuts(source.rows(V / np.maximum(sizes, 1.0)))

    def _join_cuts(self, rows: FloatArray) -> int:
        new = distinct(rows)[:256]
        new = new[~(new[:, None, :] == self.cuts[None]).all(axis=2).any(axis=1)] if len(new) else new
        self.cuts = np.vstack([self.cuts, new])
        return len(new)

    def join(self, models: FloatArray) -> bool:
        """True if models break facts of a source that are no rows yet: they are now, the last ones."""
        if not self.cut(models, TOLERANCE):
            return False
        self.read_rows()
        return True

    def _whole(self, models: FloatArray) -> FloatArray:
        """Models of the unknowns as (a, b, t …)."""
        return np.hstack([self.ties.outer(models), models[:, len(self.ties.free) + 1 :]])

    @cached_property
    def smooth_steps(self) -> list[Steepest]:
        """Steps of smooth distances, the sharpest first: each decides all but a thin band by itself."""
        found = [
            touching(block, int(k)) if block.is_robust else block.steepest(int(k))
            for block in self.blocks
            if block.is_optimal
            and block.ball in (-1, block.number)
            and (block.is_shared or not block.is_robust)
            and block.norm.is_smooth
            for k in np.argsort(block.tolerance / np.maximum(block.lengths[0], 1e-300))[:SMOOTH]
        ]
        found = [step for step in found if step.steepness > 0]
        return sorted(found, key=lambda step: 1 - step.steepness / step.length)[:SMOOTH]

    # Where they are searched.

    def fit(self) -> None:
        """Read the rows, and make what is left of the unknowns round."""
        self.read_rows()
        thin, null, n = self._sharp, self.null, len(self._equalities)
        wide = np.flatnonzero(~thin)
        cut = self.base + 2 * n + np.arange(len(self.cuts))
        plain = np.concatenate([np.arange(self.base), self.base + wide, self.base + n + wide, cut]).astype(np.int64)
        missed = self.missed(np.flatnonzero(thin), null)
        force = np.concatenate([self.base + missed, self.base + n + missed]).astype(np.int64)
        self.slab: Stage | None = None
        self.widened: tuple[IntArray, FloatArray, FloatArray] | None
        """What `split` made of the equalities that the core is in slab coordinates of, if it is."""
        self.core = self._core(plain, force, null)

    @property
    def centre(self) -> FloatArray:
        """A model of the unknowns in the middle of the rows; 0 if floats see none."""
        return np.zeros(self.rows.shape[1]) if self.core is None else self.core.centre

    def _core(self, plain: IntArray, force: IntArray, null: FloatArray) -> Stage | None:
        """What is left of the unknowns by the thin equalities; in slab coordinates if floats see no inside otherwise."""
        B, self.widened = self.scale[:, None] * null, None
        for forced in (force, force[:0]) if len(force) else (force,):
            try:
                if null.shape[1]:
                    which = np.append(plain, forced).astype(np.int64)
                    return Stage(self.rows, which, B, self.scale, drop=1e-6, force=forced, core=null.shape[1])
            except NoInterior:
                continue
        try:
            self.widened = self.split(np.flatnonzero(self.thin(WIDER)))
            return self.in_slabs(*self.widened)
        except NoInterior:
            return None

    def in_slabs(self, used: IntArray, null: FloatArray, back: FloatArray) -> Stage:
        """All rows in slab coordinates."""
        width = self.facts.width[self._equalities[used]]
        B = np.hstack([self.scale[:, None] * null, back * width])
        which = np.arange(len(self.rows))
        return Stage(self.rows, which, B, self.scale, drop=0.0, force=which[:0], core=null.shape[1])

    def refit(self) -> None:
        """With the new cuts, unless floats cannot see the inside any more."""
        before = self.__dict__.copy()
        try:
            self.__dict__.pop("pinned", None)
            self.fit()
            if self.core is None:
                raise NoInterior
        except NoInterior:
            cuts = before["cuts"][: len(before["rows"]) - before["base"] - 2 * len(before["_equalities"])]
            self.__dict__.clear()
            self.__dict__.update(before, cuts=cuts)

    def through(self, x: FloatArray) -> FloatArray:
        """Models with a point next to their planes, on either side, and well inside of all else."""
        stage = self.core
        if stage is None:
            return np.zeros((0, self.ties.size))
        query = np.concatenate([x, [-1.0], np.zeros(len(self.norms))])[None, :]
        inner = self.ties.inner(query)[0] @ stage.B
        size = float(np.linalg.norm(inner))
        if not size > 0 or stage.B.shape[1] < 2:
            return np.zeros((0, self.ties.size))
        basis = np.linalg.qr((inner / size)[:, None], mode="complete")[0][:, 1:]
        try:
            on = Stage(
                self.rows, stage.rows, stage.B @ basis, self.scale, drop=1e-9, force=stage.rows[:0], core=0
            )  # fmt: skip
        except NoInterior:
            return np.zeros((0, self.ties.size))
        found = self.ties.outer(on.centre[None, :])[0]
        offset = found[: self.p] @ x
        size = float(np.abs(found[: self.p]) @ np.abs(x) + abs(offset))
        shifts = np.logspace(-14, -3, 12)
        models = np.repeat(on.centre[None, :], 2 * len(shifts), axis=0)
        models[:, len(self.ties.free)] = offset + np.concatenate([-shifts, shifts]) * size
        return models
