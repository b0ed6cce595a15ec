"""Upper bounds on s = ‖a‖* of a robustness norm: from a box around a.

In a box lo_i·t ≤ a_i ≤ hi_i·t every |a_i/e_i|^κ lies below its chord, and s^κ above its tangent at s0, so that for 1 ≤ κ ≤ r (r the
dual exponent of the norm, e its weights)

    κ·s0^(κ−1)·s  ≤  (κ−1)·s0^κ·t + Σ chord_i        linear in (a, s, t).

A norm that is no weighted ℓq has chords with κ = 1, the triangle inequality, where 1/e_i is ‖ε_i‖* of the unit vector; and, s being
convex, chords that hold at all corners of the box.

Steps narrow the box: what is steepest in direction w cannot point elsewhere. This is how the perspective point, sharp for ℓ∞, and
the one direction of smooth distances come out of one construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod
from typing import final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.lp import Lp
from overexplain.geometry.norm import FLOAT64_ANSWER, Norm
from overexplain.geometry.norms import Weighted
from overexplain.geometry.polyhedral import Facets, Polyhedral
from overexplain.knowledge.branches import FEW_CORNERS, MOST_CORNERS
from overexplain.knowledge.checker import Term
from overexplain.knowledge.facts import Steepest, is_euclidean, length_error

Side = tuple[int, int]
"""(i, ±1): the bound ±a_i ≥ value·t."""


@final
@dataclass(frozen=True)
class Box:
    """lo·t ≤ a ≤ hi·t; `why` says for each side which row's step, with which weight, proves it.

    Sides that are not in `why` are Hölder's |a_i| ≤ ‖e_i‖·t.
    """

    low: FloatArray
    high: FloatArray
    why: dict[Side, tuple[int, Fraction]] = field(default_factory=dict)

    def cut(self, i: int, low: float | None = None, high: float | None = None) -> Box:
        """The part of it with a_i above `low`·t or below `high`·t."""
        lows, highs = self.low.copy(), self.high.copy()
        if low is not None:
            lows[i] = low
        if high is not None:
            highs[i] = high
        return replace(self, low=np.minimum(lows, highs) if high is None else lows, high=np.maximum(lows, highs))


def whole_box(norm: Norm, p: int) -> Box:
    """Hölder's box."""
    units = norm.units(p) * (1 + _rounding(norm, p))
    return Box(-units, units)


def root_box(norm: Norm, steps: Sequence[Steepest], p: int) -> Box:
    """The box that steps under a distance leave."""
    box = whole_box(norm, p)
    low, high, why = box.low.copy(), box.high.copy(), {}
    for fact in steps:
        for sign in (1, -1):
            values, kappas = _shown(fact, sign)
            have = low if sign > 0 else -high
            better = np.flatnonzero(values > have + 1e-12 * np.abs(box.high))
            for i in better:
                why[int(i), sign] = (fact.row, Fraction(float(kappas[i])))
            if sign > 0:
                low[better] = values[better]
            else:
                high[better] = -values[better]
    return Box(low, np.maximum(high, low), why)


def _shown(fact: Steepest, sign: int) -> tuple[FloatArray, FloatArray]:
    """(v, κ): sign·a_i ≥ v_i·t by κ_i times the step, for every coordinate.

    With α = −y·a and α·w ≥ S·t: e·α_i = κ·α·w + α·(e·e_i − κ·w) ≥ (κ·S − ‖e·e_i − κ·w‖)·t.
    """
    p, w = len(fact.step), fact.step
    q, weights = _exponent_and_weights(fact.norm, p)
    d = np.array([float(v) for v in weights])
    towards = -fact.side * sign * np.ones(p)  # e: sign·a_i = e·α_i
    gap = max(fact.length - fact.steepness, 0.0)
    units, off = fact.norm.units(p), length_error(fact.norm, p)
    if fact.norm.answer_rounding > FLOAT64_ANSWER:  # an ill-conditioned matrix: its products are less exact
        off = max(off, fact.norm.answer_rounding)
    moved = d * np.abs(w)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if q == 1:
            kappas = np.where(towards * w > 0, 1.0 / np.abs(w), 0.0)
            values = np.where(kappas > 0, d - gap * kappas, -d)
        elif q == np.inf:
            room = np.where(towards * w > 0, fact.length + moved, fact.length - moved)
            kappas = np.where(room > 1e-9 * fact.length, d / room, 0.0)
            values = np.where(kappas > 0, -gap * kappas, -d)
        elif is_euclidean(fact.norm):
            g = towards * np.asarray(fact.norm.gradient(w))
            aside = np.sqrt(np.maximum(units**2 - g**2, 0.0))
            sine, cosine = fact.tolerance / fact.length, fact.steepness / fact.length
            kappas = np.minimum((np.abs(g) + aside / max(sine, 2.0**-80)) / fact.length, 2.0**80)
            values = g * cosine - aside * sine
        else:
            found = _by_trial(fact.norm, tuple(w.tolist()), fact.length, fact.steepness, -fact.side * sign)
            kappas, values = (np.array(entries) for entries in found)
    usable = np.isfinite(kappas) & np.isfinite(values)
    return np.where(usable, values - off * units, -np.inf), np.where(usable, kappas, 0.0)


@lru_cache(maxsize=256)  # a length may take a linear program, and the same few steps are asked for again and again
def _by_trial(
    norm: Norm, step: tuple[float, ...], length: float, steepness: float, towards: int
) -> tuple[list[float], list[float]]:
    """(κ, v) of any norm: the best κ among powers of two."""
    p, w = len(step), np.array(step)
    kappas, values, off = np.zeros(p), -norm.units(p), 1 + 2 * _rounding(norm, p)
    for kappa in np.ldexp(norm.units(p).max() / length, np.arange(-2, 40)):
        found = kappa * steepness - norm(towards * np.eye(p) - kappa * w) * off
        kappas, values = np.where(found > values, kappa, kappas), np.maximum(values, found)
    return kappas.tolist(), values.tolist()


@final
@dataclass(frozen=True)
class Chord:
    """delta·s ≤ gamma·t + slopes·a in its box; s is the length of the ball of `row`.

    `power` None: the limit κ → ∞, s ≤ max|a_i/e_i|, or, for norms that are no weighted ℓq, a chord by the corners of the box.
    """

    row: int
    box: Box
    slopes: FloatArray
    gamma: float
    delta: float
    power: Fraction | None
    at: Fraction


def dual_exponent(norm: Norm, p: int) -> tuple[float, FloatArray] | None:
    """(r, e) of a weighted ℓq norm: ‖a‖* = ‖a/e‖_r; None for other norms."""
    q, weights = _exponent_and_weights(norm, p)
    if q is None:
        return None
    r = np.inf if q == 1 else 1.0 if q == np.inf else q / (q - 1)
    return r, np.array([float(v) for v in weights])


def make_chord(norm: Norm, row: int, box: Box, power: float, at: float | None = None) -> Chord | None:
    """The chord of a box with this power; tangent where all coordinates are at their farthest unless told where.

    None for other powers than 1 of a norm that is no weighted ℓq.
    """
    p = len(box.low)
    shape = dual_exponent(norm, p)
    if shape is None:
        if power != 1:
            return None
        shape = np.nan, 1 / ((1 + _rounding(norm, p)) * dual_units(norm, p))
    r, e = shape
    low, high = box.low / e, box.high / e
    far = np.maximum(np.abs(low), np.abs(high))
    if power == np.inf:
        return Chord(row, box, np.zeros(len(e)), float(far.max()), 1.0, None, Fraction(1))
    kappa = Fraction(power) if power != r else exact_power(norm)
    k = float(kappa)
    ends = np.abs(low) ** k, np.abs(high) ** k
    wide = high - low
    slopes = np.where(wide > 1e-9, (ends[1] - ends[0]) / np.where(wide > 1e-9, wide, 1.0), 0.0)
    if at is None:
        at = float((far**k).sum() ** (1 / k))
    at = max(at, 1e-9 * float(far.max()), 1e-300)
    gamma = float(np.maximum(ends[0] - slopes * low, ends[1] - slopes * high).sum() + (k - 1) * at**k)
    return Chord(row, box, slopes / e, gamma, k * at ** (k - 1), kappa, Fraction(at))


def corner_chords(norm: Norm, row: int, box: Box) -> list[Chord]:
    """Chords of a norm that is no weighted ℓq by the corners of a box: a level one, and one that is fitted to them."""
    p = len(box.low)
    units, far = dual_units(norm, p), np.maximum(np.abs(box.low), np.abs(box.high))
    chords: list[Chord] = []
    for slopes in (np.zeros(p), _fitted(norm, box, units)):
        if not chords or slopes.any():
            rough = _rounding(norm, p) * float(far @ (np.abs(slopes) + units))
            gamma = _at_corners(norm, box, slopes, units) + rough
            chords.append(Chord(row, box, slopes, gamma, 1.0, None, Fraction(1)))
    return chords


@lru_cache(maxsize=64)
def dual_units(norm: Norm, p: int) -> FloatArray:
    """‖ε_i‖* of the unit vectors."""
    return np.asarray(norm.dual.units(p))


def _rounding(norm: Norm, p: int) -> float:
    """How far, relatively, a computed ‖a‖* may be off."""
    return max(length_error(_unweighted(norm), p), norm.answer_rounding)


def _most_corners(norm: Norm) -> int:
    return FEW_CORNERS if isinstance(_unweighted(norm), Facets) else MOST_CORNERS


def _unweighted(norm: Norm) -> Norm:
    while isinstance(norm, Weighted):
        norm = norm.norm
    return norm


def _at_corners(norm: Norm, box: Box, slopes: FloatArray, units: FloatArray) -> float:
    """At least the largest ‖a‖* − slopes·a in a box, as the checker bounds it."""
    if isinstance(norm, Polyhedral):
        rest = norm.vertices - slopes
        return float(np.maximum(rest * box.low, rest * box.high).sum(axis=1).max())
    ends = [
        [low if -low > high else high] if norm.is_absolute and not slope else sorted({low, high})
        for low, high, slope in zip(box.low, box.high, slopes, strict=True)
    ]
    if prod(map(len, ends)) <= _most_corners(norm):
        corners = np.array(list(product(*ends)))
        return float((np.asarray(norm.dual(corners)) - corners @ slopes).max())
    middle = (box.low + box.high) / 2
    return float(norm.dual(middle) - slopes @ middle + (box.high - middle) @ (units + np.abs(slopes)))


def _fitted(norm: Norm, box: Box, units: FloatArray) -> FloatArray:
    """The slopes of the linear function nearest to ‖a‖* at the corners of a box; 0 if there are too many."""
    slopes = np.zeros(len(units))
    is_wide = box.high - box.low > 1e-9 * np.maximum(np.abs(box.low), np.abs(box.high))
    if 2 ** int(is_wide.sum()) > _most_corners(norm):
        return slopes
    ends = [[low, high] if wide else [high] for low, high, wide in zip(box.low, box.high, is_wide, strict=True)]
    corners = np.array(list(product(*ends)))
    lengths = np.asarray(norm.dual(corners))
    for i in np.flatnonzero(is_wide):
        above = corners[:, i] == box.high[i]
        slopes[i] = (lengths[above].mean() - lengths[~above].mean()) / (box.high[i] - box.low[i])
    return np.where(np.abs(slopes) > 1e-9 * units, slopes, 0.0)


def exact_power(norm: Norm) -> Fraction:
    """The dual exponent as the checker knows it: q/(q − 1) for the q that is written down."""
    q = _exponent_and_weights(norm, 1)[0] if norm.dimension is None else _exponent_and_weights(norm, norm.dimension)[0]
    assert q is not None
    if np.isinf(q):
        return Fraction(1)
    exact = Fraction(repr(float(q)))
    return exact / (exact - 1)


def chord_term(chord: Chord) -> Term:
    """A chord as the checker knows it, with the weight 1."""
    slopes = tuple(Fraction(float(v)) for v in chord.slopes)
    at = None if chord.power in (None, 1) else chord.at
    return Term("chord", Fraction(1), chord.row, vector=slopes, power=chord.power, at=at)


def _exponent_and_weights(norm: Norm, p: int) -> tuple[float | None, list[Fraction]]:
    """(q, weights) of a weighted ℓq norm; (None, ones) of any other."""
    ones = [Fraction(1)] * p
    if isinstance(norm, Lp):
        return norm.q, ones
    if isinstance(norm, Weighted) and isinstance(norm.norm, Lp):
        return norm.norm.q, [Fraction(v) for v in np.asarray(norm.weights).tolist()]
    return None, ones
