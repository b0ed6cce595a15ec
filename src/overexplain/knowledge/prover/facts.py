"""The rows of a log as linear facts about z = (a, b, t_1 … t_K), t_k = ‖a‖* of the k-th distance; rounded to the side
that keeps them true.

A fact is left·z ≥ 0, > 0 if it is strict, or |left·z| ≤ width·t_k if it is an equality. With w = x' − x the step of an
answer to a point of label y, and τ its tolerance (docs/theory/consistent.md, and the docstring of `checker` for the
names):

    side      y·(x, −1) − m·t                    strict for the label of a No alone
    plane     (x', −1), equal to within τ
    steepest  −y·w − c·t
    flips     −y·(x', −1) + c·y·(x, −1), or with + τ·t
    entry     ℓ∞: s_i·a_i ≥ 0 where the answer moved feature i by more than τ, s_i = sgn(−y·w_i)
    step      ℓ∞: −y·w − ‖w‖·t, equal to within 2τ: steepest and Hölder
    way       ℓ2: a_i − u_i·t, equal to within about τ/‖w‖: steepest and Hölder, u the unit vector of the step

Robust answers lie ρ·s behind the plane, s = ‖a‖* of the norm of their ball, one more of the lengths (or a secret reach r ≥ 0,
ρ = 1):

    plane     (x', −1) + y·ρ·s, equal to within τ
    side      y·(x, −1)                          the label alone
    reach     y·(x, −1) − m·t + ρ·s
    behind    −y·(x', −1) − ρ·s + τ·t            of answers that may lie farther behind than they need to
    chord     γ·t + α·a − δ·s                    s is no longer than so many t
    nearest   (ρ·γ/δ + τ)·t + y·(x', −1)         behind, and a chord: the level "perspective"

Ties are no rows but substitutions: under ℓ1 with weights d, a_i = ±d_i·t where the answer moved feature i by more than
τ; under ℓ∞ a_i = 0 where it stayed behind by more than 2τ. They hold without any tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.blocks import Block, exponent_and_weights, steepness

SIDE, PLANE, STEEPEST, FLIPS, ENTRY, STEP, WAY, REACH, BEHIND, CHORD, NEAREST = range(11)
NAMES = ("side", "plane", "steepest", "flips", "entry", "step", "way", "reach", "plane", "chord", "plane")
UP, DOWN = 1 + 1e-13, 1 - 1e-13
SHARP = 1e-4
"""An answer whose tolerance is below this share of its step fixes entries of a: a direction is off by τ/‖w‖ but for its square."""


@dataclass(frozen=True, eq=False)
class Facts:
    """Rows of facts over z, and where each comes from: `origin` is the log's row, `name`, `sign` and `index` are the checker's."""

    left: FloatArray
    strict: BoolArray
    equal: BoolArray
    width: FloatArray
    number: IntArray
    """Which length pays for the width; −1: none does."""
    sharp: BoolArray
    """Equalities whose values are expected far inside their widths, as those of float64 answers: the search may take
    them as exact."""
    origin: IntArray
    name: IntArray
    index: IntArray

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, rows: Any) -> Facts:
        return Facts(*(getattr(self, field.name)[rows] for field in fields(Facts)))

    @staticmethod
    def joined(parts: Sequence[Facts], size: int) -> Facts:
        """All rows of some facts over `size` unknowns."""
        parts = [rows_of(np.zeros((0, size)), np.zeros(0, dtype=np.int64), SIDE), *parts]
        return Facts(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Facts)))


def rows_of(
    left: FloatArray,
    origin: IntArray,
    name: int,
    *,
    strict: Any = False,
    width: Any = None,
    number: int = -1,
    sharp: Any = True,
    index: Any = -1,
) -> Facts:
    def full(value: Any, kind: type) -> NDArray[Any]:
        return np.full(len(left), value, dtype=kind)

    return Facts(
        left,
        full(strict, bool),
        full(width is not None, bool),
        full(0.0 if width is None else width, float),
        full(number, int),
        full(sharp, bool),
        full(origin, int),
        full(name, int),
        full(index, int),
    )


@final
class Ties:
    """a_i = value_i·t_k for the tied entries i; `number` (p,) is k, −1 where a_i is free. `clash`: two rows that disagree
    about an entry, and which."""

    def __init__(self, p: int, blocks: Sequence[Block], count: int) -> None:
        self.value, self.number, self.row = np.zeros(p), np.full(p, -1), np.full(p, -1)
        self.clash: tuple[int, int, int] | None = None
        for block in blocks:
            shape = exponent_and_weights(block.norm, p) if block.is_optimal else None
            if shape is None or shape[0] not in (1.0, np.inf):
                continue
            q, d = shape
            moved = np.abs(block.step) * d
            tau = block.tolerance[:, None]
            if q == 1.0:
                tied = moved * (1 - 4 * UNIT_ROUNDOFF) > tau
                values = np.where(tied, -block.sides[:, None] * np.sign(block.step) * d, 0.0)
                for i in np.flatnonzero(values.max(axis=0) * values.min(axis=0) < 0):
                    self.clash = (
                        int(block.rows[values[:, i].argmax()]),
                        int(block.rows[values[:, i].argmin()]),
                        int(i),
                    )
                sharpest = np.where(tied, moved / tau, 0.0).argmax(axis=0)
            else:
                tied = moved * (1 + 4 * UNIT_ROUNDOFF) < (block.lengths[0][:, None] - 2 * tau) * (1 - 4 * UNIT_ROUNDOFF)
                values = np.zeros_like(moved)
                sharpest = np.where(tied, (block.lengths[0][:, None] - moved) / tau, 0.0).argmax(axis=0)
            for i in np.flatnonzero(tied.any(axis=0)):
                j = int(sharpest[i])
                if self.number[i] < 0:
                    self.value[i], self.number[i], self.row[i] = values[j, i], block.number, block.rows[j]
                elif self.number[i] == block.number and self.value[i] * values[j, i] < 0:
                    self.clash = (int(self.row[i]), int(block.rows[j]), int(i))
                # else: another length has it already; the second tie is an equality among lengths, which the Keeper knows
        self.free = np.flatnonzero(self.number < 0)
        self._p, self._count = p, count

    @property
    def size(self) -> int:
        """How many unknowns are left: free entries of a, b, and the lengths."""
        return len(self.free) + 1 + self._count

    def inner(self, rows: FloatArray) -> FloatArray:
        """Linear forms over z in the unknowns that are left."""
        out = np.hstack([rows[:, self.free], rows[:, self._p :]])
        for k in range(self._count):
            own = np.flatnonzero(self.number == k)
            out[:, len(self.free) + 1 + k] += rows[:, own] @ self.value[own]
        return out

    def sizes(self, rows: FloatArray) -> FloatArray:
        """The same with absolute values: what rounding is relative to."""
        out = np.hstack([np.abs(rows[:, self.free]), np.abs(rows[:, self._p :])])
        for k in range(self._count):
            own = np.flatnonzero(self.number == k)
            out[:, len(self.free) + 1 + k] += np.abs(rows[:, own]) @ np.abs(self.value[own])
        return out

    def outer(self, models: FloatArray) -> FloatArray:
        """Models (a, b) of the unknowns that are left; their lengths are those of a, whatever the search found."""
        out = np.zeros((len(models), self._p + 1))
        out[:, self.free] = models[:, : len(self.free)]
        out[:, self._p] = models[:, len(self.free)]
        lengths = models[:, len(self.free) + 1 :]
        tied = np.flatnonzero(self.number >= 0)
        out[:, tied] = lengths[:, self.number[tied]] * self.value[tied]
        return out

    def exactly(self, model: FloatArray) -> list[Fraction]:
        """A model of `outer` in rationals: entries that are tied to the same length are so without rounding."""
        out = [Fraction(v) for v in model.tolist()]
        for k in range(self._count):
            own = np.flatnonzero((self.number == k) & (self.value != 0))
            if len(own):
                length = abs(out[own[0]]) / Fraction(abs(float(self.value[own[0]])))
                for i in own.tolist():
                    out[i] = length * Fraction(float(self.value[i]))
        return out


def read(blocks: Sequence[Block], p: int) -> tuple[Facts, Ties, list[Norm | Secret]]:
    """(facts, ties, the norms whose dual lengths of a they are about, and secret reaches)."""
    lengths = lengths_of(blocks)
    size = p + 1 + len(lengths)
    ties = Ties(p, blocks, len(lengths))
    parts = [part for block in blocks for part in _facts_of(block, p, size)]
    for k, norm in enumerate(lengths):
        own = [block for block in blocks if block.number == k and block.is_optimal]
        parts += [] if isinstance(norm, Secret) else _shapes(own, norm, k, p, size)
    return Facts.joined(parts, size), ties, lengths


def lengths_of(blocks: Sequence[Block]) -> list[Norm | Secret]:
    """The lengths by their numbers."""
    found: dict[int, Norm | Secret] = {block.number: block.norm for block in blocks if block.is_measured}
    for block in blocks:
        if block.is_robust and block.ball not in found:
            found[block.ball] = block.reach
    return [found[k] for k in sorted(found)]


def _facts_of(block: Block, p: int, size: int) -> list[Facts]:
    """What each row says."""
    y = block.sides.astype(np.float64)[:, None]
    own = np.zeros((len(block.rows), size))
    own[:, :p], own[:, p] = y * block.points, -y[:, 0]
    is_no = block.sides < 0
    if block.is_robust:
        return _of_balls(block, own, p)
    if block.answers is None or not block.is_measured or block.is_loose:
        return _of_places(block, own, p)
    at, tau, low = p + 1 + block.number, block.tolerance, block.lengths[0]
    assert block.slack is not None
    margin = np.maximum(low - tau * UP, 0.0) / (1 + block.slack) * DOWN
    own[:, at] = -margin
    side = rows_of(own, block.rows, SIDE, strict=is_no & (margin == 0))
    if block.slack:
        share = np.where(low > tau * UP, tau * (1 + block.slack) / np.maximum(low - tau * UP, 1e-300) * UP, np.inf)
        few = np.flatnonzero(share < 1e6)
        across = -y * np.hstack([block.answers, -np.ones((len(y), 1))])
        own_side = y * np.hstack([block.points, -np.ones((len(y), 1))])
        flips = np.zeros_like(own)
        flips[few, : p + 1] = across[few] + share[few, None] * own_side[few]
        far = np.abs(block.answers) @ block.norm.units(p) + np.where(share < 1e6, share, 0.0) * (
            np.abs(block.points) @ block.norm.units(p)
        )
        flips[:, at] = (
            (share > 0) * (p + 8) * UNIT_ROUNDOFF * far * 2
        )  # the sum itself is rounded; b is as large as a·x' may be
        wide = np.flatnonzero(~(share < 1e6) & (low <= tau))
        return [side, rows_of(flips, block.rows, FLIPS)[few], *_tolerant(block, wide, across, tau, at, size, p)]
    plane = np.zeros_like(own)
    plane[:, :p], plane[:, p] = block.answers, -1.0
    steep = steepness(block)
    toward = np.zeros_like(own)
    toward[:, :p], toward[:, at] = -y * block.step, -steep + _step_error(block, p)
    kept = np.flatnonzero(steep > 2 * _step_error(block, p))
    return [
        side,
        rows_of(plane, block.rows, PLANE, width=tau * UP, number=block.number, sharp=block.is_rounding),
        rows_of(toward, block.rows, STEEPEST)[kept],
    ]


def _of_balls(block: Block, own: FloatArray, p: int) -> list[Facts]:
    """What robust answers say; the length of the ball may be that of the distance."""
    assert block.answers is not None
    y, tau, at, ball = (
        block.sides.astype(np.float64)[:, None],
        block.tolerance,
        p + 1 + block.number,
        p + 1 + block.ball,
    )
    found = [rows_of(own, block.rows, SIDE, strict=block.sides < 0)]
    low, off = block.lengths[0], 4 * UNIT_ROUNDOFF
    if block.slack is not None and block.is_shared:
        reach, margin = own.copy(), np.maximum(low - tau * UP, 0.0) / (1 + block.slack) * DOWN
        reach[:, at] -= margin
        reach[:, ball] += block.radius * (1 + off)
        found.append(rows_of(reach, block.rows, REACH))
    plane = np.zeros_like(own)
    plane[:, :p], plane[:, p] = block.answers, -1.0
    if block.is_tight and block.is_shared:
        plane[:, ball] = y[:, 0] * block.radius
        found.append(rows_of(plane, block.rows, PLANE, width=tau * UP, number=block.number, sharp=block.is_rounding))
    else:
        behind = -y * plane
        behind[:, at] += tau * UP
        behind[:, ball] -= block.radius * (1 - off)
        found.append(rows_of(behind, block.rows, BEHIND))
    if not block.is_tight:
        return found
    toward, steep = np.zeros_like(own), steepness(block)
    toward[:, :p], toward[:, at] = -y * block.step, -steep + _step_error(block, p)
    kept = np.flatnonzero(steep > 2 * _step_error(block, p))
    return [*found, rows_of(toward, block.rows, STEEPEST)[kept]]


def _of_places(block: Block, own: FloatArray, p: int) -> list[Facts]:
    """Labels, and where answers lie: on the plane or across it, to within a tolerance where they have one."""
    sided = np.flatnonzero(block.sides)
    side = rows_of(own, block.rows, SIDE, strict=block.sides < 0)[sided]
    if block.answers is None:
        return [side]
    image = np.zeros_like(own)
    image[:, :p], image[:, p] = block.answers, -1.0
    width, number = (block.tolerance * UP, block.number) if block.is_measured else (0.0, 0)
    if block.is_exact or (block.slack == 0.0 and block.is_on_plane):
        return [side, rows_of(image, block.rows, PLANE, width=width, number=number, sharp=not block.is_measured)]
    image *= -block.sides.astype(np.float64)[:, None]
    if block.is_measured:
        image[:, p + 1 + number] = width
    return [side, rows_of(image, block.rows, FLIPS)]


def _tolerant(
    block: Block, rows: IntArray, across: FloatArray, tau: FloatArray, at: int, size: int, p: int
) -> list[Facts]:
    """Flips of answers that are no farther away than the tolerance: −y·(a·x' − b) ≥ −τ·t."""
    left = np.zeros((len(rows), size))
    left[:, : p + 1], left[:, at] = across[rows], tau[rows] * UP
    return [rows_of(left, block.rows[rows], FLIPS)] if len(rows) else []


def _step_error(block: Block, p: int) -> FloatArray:
    """What the rounding of w is worth, in units of t."""
    return np.asarray(2 * UNIT_ROUNDOFF * (np.abs(block.step) @ block.norm.units(p)))


def _shapes(blocks: Sequence[Block], norm: Norm, k: int, p: int, size: int) -> list[Facts]:
    """What exact answers say together about the direction of a: for every entry by the answer that says it best."""
    shape = exponent_and_weights(norm, p)
    if shape is None or not blocks or shape[0] == 1.0 or (shape[0] != np.inf and shape[0] != 2.0):
        return []
    q, d = shape
    steps = np.vstack([block.step for block in blocks])
    sides = np.concatenate([block.sides for block in blocks])
    low, high = (np.concatenate([block.lengths[e] for block in blocks]) for e in (0, 1))
    tau, origin = np.concatenate([b.tolerance for b in blocks]), np.concatenate([b.rows for b in blocks])
    off = np.concatenate([_step_error(block, p) for block in blocks])
    rounding = np.concatenate([np.full(len(b.rows), b.is_rounding) for b in blocks])
    toward = -sides[:, None] * steps
    parts: list[Facts] = []
    if q == np.inf:
        moved = np.abs(steps) * d
        surely = moved * (1 - 4 * UNIT_ROUNDOFF) > tau[:, None]
        best = np.where(surely, moved / tau[:, None], 0.0).argmax(axis=0)
        entries = np.flatnonzero(surely.any(axis=0))
        if len(entries):
            left = np.zeros((len(entries), size))
            left[np.arange(len(entries)), entries] = np.sign(toward[best[entries], entries])
            parts.append(rows_of(left, origin[best[entries]], ENTRY, index=entries))
        sharp = np.flatnonzero((tau < SHARP * low) & rounding)
        if len(sharp):
            j = sharp[np.argmin(tau[sharp] / low[sharp])]
            left = np.zeros((1, size))
            left[0, :p], left[0, p + 1 + k] = toward[j], -high[j]
            width = (2 * tau[j] + 2 * off[j] + high[j] - low[j]) * UP
            parts.append(rows_of(left, origin[j][None], STEP, width=width, number=k))
        return parts
    sharp = np.flatnonzero((tau < SHARP * low) & rounding)
    if len(sharp):
        j = sharp[np.argmin(tau[sharp] / low[sharp])]
        left = np.zeros((p, size))
        left[np.arange(p), np.arange(p)] = 1.0
        left[:, p + 1 + k] = -d * (toward[j] * d) / high[j]
        width = d * (tau[j] / low[j] * (1 + 1e-6) + (high[j] - low[j]) / low[j] + 16 * (p + 8) * UNIT_ROUNDOFF)
        parts.append(rows_of(left, np.repeat(origin[j], p), WAY, width=width, number=k, index=np.arange(p)))
    return parts
