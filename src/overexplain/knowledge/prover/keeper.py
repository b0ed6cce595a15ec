"""Could this model have given the log? By the definition (docs/theory/consistent.md), for many models at once in
float64, rounding paid.

A model (a, b) is admitted only if every row is kept for certain:

    label         y·(a·x − b) > 0
    merely valid  −y·(a·x' − b) > 0
    exact         an optimum of the model lies within τ of x'
    slack ε       a point across, no farther than 1 + ε times the optimum, does
    robust        the same, with a whole ball across: its reach is ρ·‖a‖*, or, if that is secret, one for all rows of the same terms

What is admitted here the checker accepts in rationals. Distances without a closed form are left to it altogether.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF
from overexplain.geometry.polyhedral import Facets, Polyhedral
from overexplain.knowledge.checker import Answer, check_witness
from overexplain.knowledge.enclosures import Evidence, NotEnclosed
from overexplain.knowledge.facts import Secret, length_error
from overexplain.knowledge.prover.blocks import Block, exponent_and_weights
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.witnesses import find_offset
from overexplain.log.extremes import BEYOND_FLOAT64

Model = tuple[list[Fraction], Fraction]
Ends = dict[int, tuple[FloatArray, FloatArray]]
INSIDE = 1 - 1e-9
"""An optimum has to lie within this share of the tolerance."""
NOTHING = 1e-13
"""Entries that are this much smaller than the largest, and have the wrong sign, are 0 but for rounding."""
MOST = 24
"""Models that are held against rows in rationals in one call, where floats have no formula."""


@final
class Keeper:
    """Holds models to the definition; `answers` are the log's rows in exact numbers."""

    def __init__(self, blocks: Sequence[Block], ties: Ties, answers: Mapping[int, Answer], evidence: Evidence) -> None:
        self.blocks, self.ties, self.answers, self.evidence = blocks, ties, answers, evidence
        p = blocks[0].points.shape[1]
        self._p, self._off = p, 1.02 * (p + 16) * UNIT_ROUNDOFF
        self._shapes = [exponent_and_weights(b.norm, p) if b.is_measured else None for b in blocks]
        self._has_formula = list(map(_has_formula, blocks, self._shapes))
        self.is_quick = all(self._has_formula)

    def snap(self, models: FloatArray) -> FloatArray:
        """Models of the unknowns that are left as (a, b): ties exact, and no free entry of a beyond the length that ties fix."""
        found = self.ties.outer(models)
        lengths = models[:, len(self.ties.free) + 1 :]
        for block, shape in zip(self.blocks, self._shapes, strict=True):
            if shape is not None and shape[0] == 1.0 and block.is_optimal and (self.ties.number == block.number).any():
                most = lengths[:, block.number, None] * shape[1][self.ties.free] * (1 - 4 * UNIT_ROUNDOFF)
                found[:, self.ties.free] = np.clip(found[:, self.ties.free], -np.abs(most), np.abs(most))
        a = found[:, :-1]
        a[(self._signs * a < 0) & (np.abs(a) <= NOTHING * np.abs(a).max(axis=1, keepdims=True))] = 0.0
        return found

    @cached_property
    def _signs(self) -> FloatArray:
        """The signs of entries of a that ℓ∞ answers moved, 0 elsewhere: on its way to an edge a model may miss 0 by a rounding."""
        found = np.zeros(self._p)
        for block, shape in zip(self.blocks, self._shapes, strict=True):
            if shape is not None and np.isinf(shape[0]) and block.is_optimal:
                moved = np.abs(block.step) * shape[1] > block.tolerance[:, None]
                signs = np.where(moved, -block.sides[:, None] * np.sign(block.step), 0.0)
                found = np.where(found == 0, signs[np.abs(signs).argmax(axis=0), np.arange(self._p)], found)
        return found

    @np.errstate(all="ignore")
    def fitted(self, models: FloatArray, place: float | None = None) -> FloatArray:
        """The models with offsets at which they give all rows, as far as floats tell; as they are if there are none.

        `place` between 0 and 1: how far between the least and the largest such offset; None: as near as can be.
        """
        if not len(models):
            return models
        if not self.is_quick:
            return self._fitted_exactly(models, place)
        low, high = np.full(len(models), -np.inf), np.full(len(models), np.inf)
        reaches = self.reaches(models)
        for block, shape in zip(self.blocks, self._shapes, strict=True):
            for ends in self._offsets(block, shape, models[:, :-1], reaches):
                low, high = np.maximum(low, ends[0].max(axis=1)), np.minimum(high, ends[1].min(axis=1))
        is_bounded = np.isfinite(high - low)
        if place is None:
            room = np.where(is_bounded, 0.02 * (high - low), 1e-9 * np.abs(models).max(axis=1))
            offset = np.clip(models[:, -1], low + room, high - room)
        else:
            offset = np.where(is_bounded, low + place * (high - low), models[:, -1])
        moved = models.copy()
        moved[:, -1] = np.where(low < high, offset, models[:, -1])
        return moved

    def _fitted_exactly(self, models: FloatArray, place: float | None) -> FloatArray:
        """The same by the definition itself, for a few."""
        fitted = models.copy()
        for i, model in enumerate(models[:MOST]):
            if not np.isfinite(model).all() or not model[:-1].any():
                continue
            try:
                found = find_offset(self.answers, *self.exactly(model), self.evidence)
            except (NotEnclosed, *BEYOND_FLOAT64):
                continue
            if found:
                ends = float(found[2]), float(found[3])
                fitted[i, -1] = float(found[0]) if place is None else ends[0] + place * (ends[1] - ends[0])
        return fitted

    def reaches(self, models: FloatArray) -> dict[int, FloatArray]:
        """How far behind each model's plane robust answers lie, by the number of their ball's length: (models, 1).

        A secret reach is one that fits the rows that have it, if there is any.
        """
        found = middles(self.secret_ends(models))
        for block in self.blocks:
            if block.is_robust and not isinstance(block.reach, Secret):
                found[block.ball] = np.asarray(block.reach.dual(models[:, :-1]))[:, None]
        return found

    def secret_ends(self, models: FloatArray) -> Ends:
        """Between which ends secret reaches lie that fit the rows that have them, by the number of their length: (models, 1)."""
        found: Ends = {}
        for number in {block.ball for block in self.blocks if block.is_robust and isinstance(block.reach, Secret)}:
            every = zip(self.blocks, self._shapes, self._has_formula, strict=True)
            own = [(block, shape) for block, shape, has_formula in every if has_formula and block.ball == number]
            low, high, a = np.zeros((len(models), 1)), np.full((len(models), 1), np.inf), models[:, :-1]
            for block, shape in own:
                assert shape is not None
                assert block.answers is not None
                beyond = -block.sides * (a @ block.answers.T - models[:, -1:])
                t = np.asarray(block.norm.dual(a))[:, None]
                if block.is_tight:
                    margin = block.sides * (a @ block.points.T - models[:, -1:])
                    ends = self._distances(block, *shape, a, t)
                    low = np.maximum(low, (ends[0] * t - margin).max(axis=1, keepdims=True))
                    high = np.minimum(high, (ends[1] * t - margin).min(axis=1, keepdims=True))
                else:
                    high = np.minimum(high, (beyond + block.tolerance * t).min(axis=1, keepdims=True))
            found[number] = low, high
        return found

    def _offsets(
        self, block: Block, shape: tuple[float, FloatArray] | None, a: FloatArray, reaches: Mapping[int, FloatArray]
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Offsets between which each model gives each row, as far as floats tell: (models, rows)."""
        yes, at = block.sides > 0, a @ block.points.T
        yield np.where(yes, -np.inf, at), np.where(yes, at, np.inf)
        if block.answers is None:
            return
        if block.is_robust:
            assert shape is not None
            t, far = np.asarray(block.norm.dual(a))[:, None], block.radius * reaches[block.ball]
            if block.is_tight:
                low, high = self._distances(block, *shape, a, t)
                yield (
                    np.where(yes, at + far - high * t, at - far + low * t),
                    np.where(yes, at + far - low * t, at - far + high * t),
                )
            else:
                beyond, room = a @ block.answers.T, far - block.tolerance * t
                yield np.where(yes, beyond + room, -np.inf), np.where(yes, np.inf, beyond - room)
        elif not block.is_measured:
            beyond = a @ block.answers.T
            yield np.where(yes, beyond, -np.inf), np.where(yes, np.inf, beyond)
        elif block.slack:
            beyond, t = a @ block.answers.T, np.asarray(block.norm.dual(a))[:, None]
            least = block.lengths[1] / (1 + block.slack) * t
            yield np.where(yes, beyond, at + least), np.where(yes, at - least, beyond)
        else:
            assert shape is not None
            t = np.asarray(block.norm.dual(a))[:, None]
            low, high = self._distances(block, *shape, a, t)
            yield np.where(yes, at - high * t, at + low * t), np.where(yes, at - low * t, at + high * t)

    def _distances(
        self, block: Block, q: float, d: FloatArray, a: FloatArray, t: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Distances from the plane between which an optimum lies within the tolerance of each answer: (models, rows)."""
        steps, tau = -block.sides[:, None] * block.step * d, block.tolerance * INSIDE
        if q == 2.0:
            unit = a / d / t
            along = unit @ steps.T
            beside = np.array(
                [np.sqrt(((steps - along[k][:, None] * unit[k]) ** 2).sum(axis=1)) for k in range(len(a))]
            )
            room = np.sqrt(np.maximum(tau * tau - beside * beside, 0.0))
            return along - room, along + room
        if q == 1.0:
            gain = self._gain(block, d, a, steps)
            room = tau - (block.lengths[1] - gain)
            return gain - room, gain + room
        sign = np.sign(a)
        low, high = np.empty((len(a), len(steps))), np.empty((len(a), len(steps)))
        for k in range(len(a)):
            moved = steps * sign[k]
            low[k] = np.where(sign[k] != 0, moved, np.abs(steps)).max(axis=1) - tau
            high[k] = np.where(sign[k] != 0, moved, np.inf).min(axis=1) + tau
        return np.maximum(low, 0.0), high

    def _gain(self, block: Block, d: FloatArray, a: FloatArray, steps: FloatArray) -> FloatArray:
        """ℓ1: how much of each step is made along axes whose entries are known to be the longest: (models, rows)."""
        tied = np.zeros((len(a), self._p))
        own = (self.ties.number == block.number) & (self.ties.value != 0)
        tied[:, own] = np.sign(self.ties.value[own])
        if not own.any():
            every = np.arange(len(a))
            top = (np.abs(a) / d).argmax(axis=1)
            tied[every, top] = np.sign(a[every, top])
        return np.asarray(np.maximum(tied, 0) @ np.maximum(steps, 0).T + np.maximum(-tied, 0) @ np.maximum(-steps, 0).T)

    def kept(self, models: FloatArray) -> BoolArray:
        """For snapped models (a, b), a row each: True if it keeps every row of the log, for certain."""
        if not len(models):
            return np.zeros(0, dtype=bool)
        if not self.is_quick:
            some = [i < MOST and self.kept_exactly(self.exactly(model)) for i, model in enumerate(models)]
            return np.array(some, dtype=bool)
        with np.errstate(all="ignore"):
            ok: BoolArray = np.asarray(np.isfinite(models).all(axis=1) & models[:, :-1].any(axis=1))
            reaches = self.reaches(models)
            for k in range(len(self.blocks)):
                if ok.any():
                    own = {number: reach[ok] for number, reach in reaches.items()}
                    ok[ok] = (self.rooms(k, models[ok], own) >= 0).all(axis=1)
        return ok

    def rooms(self, k: int, models: FloatArray, reaches: Mapping[int, FloatArray]) -> FloatArray:
        """How much room the rows of the k-th block leave each model, at most, in its own units: (models, rows). A model that has
        0 or more of all of them keeps them for certain. NaN: floats have no formula."""
        block, shape = self.blocks[k], self._shapes[k]
        if not self._has_formula[k]:
            return np.full((len(models), len(block.rows)), np.nan)
        a, b, y = models[:, :-1], models[:, -1:], block.sides.astype(np.float64)
        own = y * (a @ block.points.T - b)
        e = self._off * (np.abs(a) @ np.abs(block.points).T + np.abs(b))
        label = _strictly(own - e)
        if block.answers is None or (own < -e).any(axis=1).all():
            return label
        across = -y * (a @ block.answers.T - b)
        e2 = self._off * (np.abs(a) @ np.abs(block.answers).T + np.abs(b))
        if not block.is_measured:
            return np.minimum(label, _strictly(across - e2))
        assert shape is not None
        q, d = shape
        size = (np.abs(a) / d).max(axis=1) if q == 1.0 else block.norm.dual(a)
        t = np.asarray(size)[:, None]
        reach = block.radius * reaches[block.ball] if block.is_robust else 0.0
        # A length of the ball is rounded; a secret reach is the one that is tried.
        e = e + _reach_error(block, self._p) * reach
        if block.is_robust and not block.is_tight:
            room = across - reach + block.tolerance * INSIDE * t
            return np.minimum(label, _strictly(room - (e + e2 + self._off * (reach + block.tolerance * t))))
        own = own + reach
        delta, far_off = own / t, (e / t + self._off * np.abs(own) / t) * 1.01
        tau = block.tolerance * (INSIDE if block.is_rounding else 1.0)
        if block.slack:
            return np.minimum(label, t * self._slack_room(block, own, across, e, e2, delta, far_off))
        far = self._far(block, q, d, a, t, y, delta)
        off = far_off + 4 * self._off * (block.lengths[1] + np.abs(delta))
        return np.asarray(np.minimum(label, t * (tau * INSIDE * INSIDE - (far + off))))

    def _slack_room(
        self, block: Block, own: FloatArray, across: FloatArray, e: FloatArray, e2: FloatArray, delta: FloatArray,
        far_off: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """A point x + (1 + s)·w, |s|·‖w‖ ≤ τ, is across and not too far; or x itself is near enough to its own optimum."""
        assert block.slack is not None
        low, high, tau = *block.lengths, block.tolerance * INSIDE
        long = np.maximum(high, 1e-300)
        most = np.minimum((delta - far_off) * (1 + block.slack) / long - 1, tau / long)
        lacking, along = e2 - across, own + across
        needed = np.where(
            lacking > 0, lacking / np.maximum(along - e - e2, 1e-300), lacking / (np.abs(along) + e + e2 + 1e-300)
        )
        needed = np.where((lacking > 0) & (along <= e + e2), np.inf, np.maximum(needed, -tau / np.maximum(low, 1e-300)))
        inside = (most - 1e-12 * np.abs(most)) - (needed + 1e-12 * np.abs(needed))
        return np.asarray(np.fmax(inside * long, tau - (high + delta + far_off)))

    def _far(
        self, block: Block, q: float, d: FloatArray, a: FloatArray, t: FloatArray, y: FloatArray, delta: FloatArray
    ) -> FloatArray:
        """How far the nearest optimum is from each answer, at most: (models, rows)."""
        steps = -y[:, None] * block.step
        if q == 2.0:
            unit = a / d / t  # d∘(the unit step towards the plane)
            scaled = steps * d
            inner = unit @ scaled.T
            square = (
                (scaled * scaled).sum(axis=1) - 2 * delta * inner + delta * delta * (unit * unit).sum(axis=1)[:, None]
            )
            rounding = 8 * self._off * ((scaled * scaled).sum(axis=1) + delta * delta)
            coarse = np.sqrt(np.maximum(square, 0.0) + rounding)
            unclear = np.flatnonzero((coarse > 0.5 * block.tolerance).any(axis=1))
            if len(unclear):  # differences of close numbers: entry by entry
                for m in unclear:
                    rest = scaled - delta[m][:, None] * unit[m]
                    coarse[m] = np.sqrt((rest * rest).sum(axis=1)) * (1 + self._off)
            return np.asarray(coarse)
        if q == 1.0:
            own = (self.ties.number == block.number) & (self.ties.value != 0)
            gain = self._gain(block, d, a, steps * d)
            far = block.lengths[1] - gain + np.abs(gain - delta)
            if own.any():  # nothing may be longer than what is tied
                length = (np.abs(a[:, own]) / np.abs(self.ties.value[own])).min(axis=1)
                longest = (np.abs(a[:, ~own]) / d[~own]).max(axis=1, initial=0.0)
                far[longest > length * (1 - 2 * UNIT_ROUNDOFF)] = np.inf
            else:  # the one that seems longest has to be
                sizes = np.abs(a) / d
                top = sizes.argmax(axis=1)
                every = np.arange(len(a))
                alike = (np.abs(a) == np.abs(a[every, top])[:, None]) & (d == d[top][:, None])
                near = (sizes > sizes[every, top][:, None] * (1 - 4 * UNIT_ROUNDOFF)) & ~alike
                far[near.any(axis=1)] = np.inf
            return np.asarray(far)
        sign = np.sign(a)
        scaled = steps * d
        size = np.abs(scaled)
        far = np.zeros((len(a), len(steps)))
        for k in range(len(a)):
            moved = np.abs(scaled * sign[k] - delta[k][:, None])
            idle = np.maximum(size - delta[k][:, None], 0.0)
            far[k] = np.where(sign[k] != 0, moved, idle).max(axis=1)
        return far

    def exactly(self, model: FloatArray) -> Model:
        """A snapped model in rationals."""
        exact = self.ties.exactly(model)
        return exact[:-1], exact[-1]

    def kept_exactly(self, model: Model) -> bool:
        """True if the checker accepts the model."""
        try:
            check_witness(self.answers, model[0], model[1], lengths=self.evidence)
        except CertificateInvalid:
            return False
        return True


def middles(ends: Ends) -> dict[int, FloatArray]:
    """A reach between its ends; as long as it has to be if nothing bounds it."""
    return {k: np.maximum(np.where(np.isfinite(high), (low + high) / 2, low), 0.0) for k, (low, high) in ends.items()}


def _strictly(room: FloatArray) -> FloatArray:
    """The room of what has to be above 0."""
    return np.asarray(np.where(room > 0, room, np.minimum(room, -np.finfo(float).tiny)))


def _has_formula(block: Block, shape: tuple[float, FloatArray] | None) -> bool:
    """True if floats can tell whether a model gave some rows."""
    if not block.is_measured:
        return block.is_linear and not block.is_confined
    if shape is None or (block.is_loose and not block.is_robust):
        return False
    if block.is_robust and isinstance(block.reach, Facets):
        return False
    if block.is_robust:
        return block.is_loose or (block.is_tight and shape[0] in (1.0, 2.0, np.inf))
    return block.slack != 0.0 or shape[0] in (1.0, 2.0, np.inf)


def _reach_error(block: Block, p: int) -> float:
    """How far, relatively, the computed reach of robust answers may be off."""
    if not block.is_robust or isinstance(block.reach, Secret):
        return 4 * UNIT_ROUNDOFF
    rounding = block.reach.answer_rounding
    if isinstance(block.reach, Polyhedral):  # the largest d·a, whose parts may be larger: ‖D·a‖ ≥ σ·‖a‖
        corners = block.reach.vertices / np.abs(block.reach.vertices).max(axis=0)
        wide = (
            np.linalg.norm(corners, axis=1).max() * np.sqrt(len(corners)) / np.linalg.svd(corners, compute_uv=False)[-1]
        )
        return float(16 * (p + 8) * UNIT_ROUNDOFF * wide)
    return max(length_error(block.reach, p), rounding if rounding > FLOAT64_ANSWER else 0.0)
