"""Lengths t ≥ ‖a‖*: as a source of cuts for the search, and as what pays in a proof.

A proof that ±(a·x − b) ≥ 0 is a choice of weights: λ ≥ 0 on rows, ω of any sign on equalities. What they leave of the target,

    rest = ±(x, −1, 0) − Σ λ_i·left_i − Σ ω_j·left_j,

is taken over the entries of a by Hölder's inequality under one length k, and over b by an equality or a row that has
weight to spare. Then

    ±(a·x − b) ≥ β·t_k,   β = rest_k − Σ |ω_j|·width_j − ‖rest_a‖_k,

if every other length is left with at least 0. `Payer.beta` is a lower bound on β, all rounding paid: it never looks at
how the weights were found. Where β > 0 the claim is proved, and strictly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.facts import Secret, length_error
from overexplain.knowledge.prover.blocks import exponent_and_weights
from overexplain.knowledge.prover.cone import distinct, gamma
from overexplain.knowledge.prover.facts import DOWN, UP, Ties


class Source(Protocol):
    """Facts that are too many to list; rows over the unknowns that are left."""

    def first(self) -> FloatArray:
        """Those to begin with."""

    def broken(self, models: FloatArray, by: float) -> FloatArray:
        """Some that these models break, by more than this share of a length."""


@final
class Length:
    """t_k ≥ ‖a‖*, that is t_k − v·a ≥ 0 for every v of length at most 1."""

    def __init__(self, norm: Norm, number: int, ties: Ties, p: int) -> None:
        self.norm, self.number, self.ties, self._p = norm, number, ties, p
        self._at = p + 1 + number
        self._size = p + 1 + int(ties.size - len(ties.free) - 1)
        self._shape = exponent_and_weights(norm, p)
        self._safe = (
            1.0 if self._shape is not None and self._shape[0] in (1.0, np.inf) else 1 - 4 * length_error(norm, p)
        )
        if self._shape is not None and not (self._shape[1] == 1.0).all():
            self._safe *= DOWN

    def rows(self, V: FloatArray) -> FloatArray:
        """The cuts of some v, over all unknowns."""
        out = np.zeros((len(V), self._size))
        out[:, : self._p], out[:, self._at] = -V * self._safe, 1.0
        return out

    def first(self) -> FloatArray:
        """One for each sign of an entry that is free, or tied to another length; under ℓ1 they are all there are."""
        entries = np.flatnonzero((self.ties.number != self.number) & ((self.ties.number < 0) | (self.ties.value != 0)))
        units = self.norm.units(self._p)[entries]
        V = np.zeros((len(entries), self._p))
        V[np.arange(len(entries)), entries] = 1 / units
        own = np.zeros((1, self._p))
        return self.rows(np.vstack([V, -V, own]))

    def broken(self, models: FloatArray, by: float) -> FloatArray:
        """The cuts at the maximizers of models (a, b, t …), given over all unknowns, that are longer than their t."""
        a, t = models[:, : self._p], models[:, self._at]
        if self._shape is not None and self._shape[0] == 1.0:
            return np.zeros((0, self._size))
        sizes = np.asarray(self.norm.dual(a))
        long = np.flatnonzero((sizes > t * (1 + by)) & np.isfinite(sizes) & (sizes > 0))
        if not len(long):
            return np.zeros((0, self._size))
        V = np.array([self.norm.maximizer(row / np.abs(row).max()) for row in a[long]])
        return self.rows(distinct(V))


@final
class Reach:
    """r ≥ 0 for a secret reach; nothing else bounds it from below."""

    def __init__(self, number: int, ties: Ties, p: int) -> None:
        self._row = np.zeros((1, p + ties.size - len(ties.free)))
        self._row[0, p + 1 + number] = 1.0

    def first(self) -> FloatArray:
        return self._row

    def broken(self, models: FloatArray, by: float) -> FloatArray:
        return self._row[:0]


@dataclass(frozen=True, eq=False)
class Equalities:
    """Rows over the unknowns that are left, to within width·t_number; `back` (unknowns, rows) finds weights for what they span."""

    rows: FloatArray
    sizes: FloatArray
    width: FloatArray
    number: IntArray
    back: FloatArray


def usable(held: IntArray, weights: FloatArray) -> FloatArray:
    """The weights that count: of a row (−1: none), and above 0."""
    return np.where((held >= 0) & (weights > 0), weights, 0.0)


@final
class Payer:
    """Bounds what weights prove. `rows` (n, D) over the unknowns that are left, `sizes` the same in absolute values
    before any sum."""

    def __init__(
        self,
        ties: Ties,
        norms: Sequence[Norm | Secret],
        p: int,
        rows: FloatArray,
        sizes: FloatArray,
        equal: Equalities,
        base: int,
        reaches: Mapping[int, FloatArray],
    ) -> None:
        self.ties, self.norms, self._p = ties, norms, p
        self.rows, self.sizes, self.equal = rows, sizes, equal
        self.offset = len(ties.free)  # the column of b; lengths follow
        self._whole_units = [np.full(p, np.inf) if isinstance(norm, Secret) else norm.units(p) for norm in norms]
        self._units = [units[ties.free] for units in self._whole_units]
        self._error = [0.0 if isinstance(norm, Secret) else length_error(norm, p) for norm in norms]
        self.anchor = self._find_anchor()
        self.swaps = [self._swap(j) for j in range(len(norms))]
        self.bounds = [None if k in reaches else self._bound(k, base) for k in range(len(norms))]
        self._bounding = [
            reaches[k] if k in reaches else None if bound is None else rows[bound]
            for k, bound in enumerate(self.bounds)
        ]
        able = [k for k, row in enumerate(self._bounding) if row is not None and not isinstance(norms[k], Secret)]
        self.payers = [int(equal.number[self.anchor])] if self.anchor is not None else able or [0]

    def _find_anchor(self) -> int | None:
        """The equality that takes what is left of b: the one that costs least elsewhere."""
        rows = self.equal.rows
        planes = (
            np.flatnonzero((rows[:, self.offset] != 0) & (self.equal.number >= 0)) if len(rows) else np.zeros(0, int)
        )
        if not len(planes):
            return None
        cost = np.abs(rows[planes]).sum(axis=1) / np.abs(rows[planes, self.offset])
        return int(planes[np.argmin(cost)])

    def _swap(self, j: int) -> tuple[int, FloatArray] | None:
        """(an entry that is tied to length j, what t_j is at most under each length by Hölder's inequality for that entry)."""
        own = np.flatnonzero((self.ties.number == j) & (self.ties.value != 0))
        if not len(own):
            return None
        costs = np.array([units[own] / np.abs(self.ties.value[own]) for units in self._whole_units]) * UP
        best = int(costs.max(axis=0).argmin())
        return int(own[best]), costs[:, best]

    def _bound(self, k: int, base: int) -> int | None:
        """A row that bounds length k from above, one without b if there is any: it takes what the length owes."""
        if isinstance(self.norms[k], Secret):
            return None
        rows = self.rows[:base]
        t = rows[:, self.offset + 1 + k]
        size = 1e-300 + self.length(k, rows[:, : self.offset])
        worth = np.where(t < 0, -t / size * np.where(rows[:, self.offset] == 0, 1e6, 1.0), 0.0)
        return int(worth.argmax()) if worth.max(initial=0.0) > 0 else None

    def length(self, k: int, free: FloatArray) -> FloatArray:
        """‖v‖ of vectors that are given on the free entries, 0 elsewhere; at least."""
        if not len(self.ties.free) or not len(free):
            return np.zeros(len(free))
        norm, whole = self.norms[k], np.zeros((len(free), self._p))
        assert not isinstance(norm, Secret)
        whole[:, self.ties.free] = free
        return np.asarray(norm(whole)) * (1 + self._error[k])

    def weights_of(self, targets: FloatArray, held: IntArray, weights: FloatArray) -> FloatArray:
        """ω: what equalities take of targets when rows have taken their part."""
        part = np.einsum("ij,ijk->ik", usable(held, weights), self.rows[np.maximum(held, 0)])
        return np.asarray((targets - part) @ self.equal.back)

    def beta(
        self, targets: FloatArray, sizes: FloatArray, held: IntArray, weights: FloatArray, omega: FloatArray
    ) -> FloatArray:
        """A lower bound on β for each target ±(x, −1, 0), for the length that pays best; ≤ 0: nothing is proved."""
        equal, at = self.equal, self.offset
        used, weights = np.maximum(held, 0), usable(held, weights)
        rest = targets - np.einsum("ij,ijk->ik", weights, self.rows[used]) - omega @ equal.rows
        size = sizes + np.einsum("ij,ijk->ik", weights, self.sizes[used]) + np.abs(omega) @ equal.sizes
        error = gamma(held.shape[1] + omega.shape[1] + self._p + 16) * size
        price = np.zeros((len(targets), len(self.norms)))
        for k in range(len(self.norms)):
            own = equal.number == k
            price[:, k] = UP * (np.abs(omega[:, own]) @ equal.width[own])
        owed_b = np.abs(rest[:, at]) + error[:, at]
        row, spare = self._offset_row(held, weights)
        best = np.full(len(targets), -np.inf)
        for k in self.payers:
            best = np.maximum(best, self._pays(k, rest, error, price, owed_b, row, spare))
        return best

    def _offset_row(self, held: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each target what one unit of b costs in the other unknowns, and how much of it can be taken."""
        if self.anchor is not None:
            one = np.abs(self.equal.rows[self.anchor]) / abs(self.equal.rows[self.anchor, self.offset])
            one[self.offset + 1 + self.equal.number[self.anchor]] += self.equal.width[self.anchor] / abs(
                self.equal.rows[self.anchor, self.offset]
            )
            return np.repeat(one[None, :], len(held), axis=0) * UP, np.full(len(held), np.inf)
        used, every = np.maximum(held, 0), np.arange(len(held))
        heavy = np.where(held >= 0, weights * np.abs(self.rows[used][:, :, self.offset]), -1.0).argmax(axis=1)
        chosen = used[every, heavy]
        spare = weights[every, heavy] * np.abs(self.rows[chosen, self.offset])
        one_each = np.abs(self.rows[chosen]) / np.maximum(np.abs(self.rows[chosen, self.offset]), 1e-300)[:, None]
        return one_each * UP, spare

    def _pays(
        self, k: int, rest: FloatArray, error: FloatArray, price: FloatArray, owed_b: FloatArray, row: FloatArray,
        spare: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """β if length k pays; what other lengths owe is taken from a row that bounds them."""
        at, debt, owed = self.offset, error.copy(), owed_b.copy()
        for j in range(len(self.norms)):
            if j == k:
                continue
            lack = price[:, j] + error[:, at + 1 + j] + owed_b * row[:, at + 1 + j] - rest[:, at + 1 + j]
            lack = np.maximum(lack, 0.0) * 2
            swap, bound = self.swaps[j], self._bounding[j]
            if swap is not None:
                debt[:, at + 1 + k] += lack * swap[1][k]
                debt[:, at + 1 + j] -= lack * DOWN
                continue
            if bound is None:
                owed[lack > 0] = np.inf
                continue
            share = lack / -bound[at + 1 + j]
            debt += share[:, None] * np.abs(bound) * UP
            debt[:, at + 1 + j] -= share * np.abs(bound[at + 1 + j]) * UP + lack * DOWN
            owed += share * abs(bound[at])
        with np.errstate(invalid="ignore"):
            debt = (debt + owed[:, None] * row) * UP
            left = rest[:, at + 1 :] - debt[:, at + 1 :] - price
            free = np.abs(rest[:, :at])
            taken = self.length(k, rest[:, :at]) + debt[:, :at] @ self._units[k]
            beta = left[:, k] - UP * taken - gamma(8) * (free @ self._units[k])
            others = (np.delete(left, k, axis=1) >= 0).all(axis=1) & (spare > 2 * owed)
            return np.where(
                others & np.isfinite(beta), beta, np.minimum(np.where(np.isfinite(beta), beta, -1.0), -1e-300)
            )

    def worth(self, rows: FloatArray) -> FloatArray:
        """At most how much β loses for a row that is left out, for a weight of 1, if there is one length."""
        at = self.offset
        offset = np.zeros(rows.shape[1])
        if self.anchor is not None:
            offset = np.abs(self.equal.rows[self.anchor] / self.equal.rows[self.anchor, at])
        offset_cost = float(self.length(0, offset[None, :at])[0]) + offset[at + 1]
        return np.asarray(self.length(0, rows[:, :at]) + np.abs(rows[:, at + 1]) + np.abs(rows[:, at]) * offset_cost)
