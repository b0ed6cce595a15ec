"""Every plane that separates labelled points: how far its normal can be from a guess, proved by linear programs.

With an orthonormal frame (u, q_2, …, q_p) around the guess u, a separating normal scaled to a·u = 1 is a = u + Σ r_k q_k. For
any weights λ_i ≥ 0 of the facts y_i(a·x_i − b) ≥ 0,

    Σ λ_i y_i = 0   and   Σ λ_i y_i x_i = μ u − q_k      prove      r_k ≤ μ,

and a linear program finds the best weights. They are then taken at their word, not the solver's: whatever their sums miss by is
added to the bound, times ρ = ‖a‖, which the bounds themselves bound: ρ ≤ A + ρ‖n‖. So is what a service's own rounding may have
done to a label.

Normals with a·u = −c ≤ 0 are excluded by the same weights, which prove b ≤ −c·(largest level) and b ≥ −c·(smallest level).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.extraction.inexact.estimators import frame
from overexplain.geometry.arrays import BoolArray, FloatArray, as_point, as_rows
from overexplain.geometry.norm import UNIT_ROUNDOFF

MOST_ROWS = 12
"""The programs see at most this many times p points of each label, nearest to the guessed plane; fewer facts only widen bounds."""


@dataclass(frozen=True, eq=False)
class VersionSpace:
    """What all separating planes have in common.

    angle         bound on the angle (radians) between the guess and the normal of any of them
    offset_low, offset_high   between these lies the offset of each, its normal at length 1
    low, high     bounds on r_k = a·q_k / a·u, k = 2, …, p
    """

    angle: float
    offset_low: float
    offset_high: float
    low: FloatArray
    high: FloatArray


def angle_bound(points: ArrayLike, labels: ArrayLike, guess: ArrayLike) -> float | None:
    """Bound on the angle between `guess` and the normal of every plane that separates the labelled points; None if there is none.

    >>> square = [[1.0, 0.0], [-1.0, 0.0], [1.0, 9.0], [-1.0, 9.0]]
    >>> round(angle_bound(square, [1, -1, 1, -1], [1.0, 0.0]), 6) == round(math.atan(2 / 9), 6)
    True
    """
    space = version_space(points, labels, guess)
    return None if space is None else space.angle


def version_space(points: ArrayLike, labels: ArrayLike, guess: ArrayLike) -> VersionSpace | None:
    """Bounds on all planes that separate the labelled points (+1: normal·x ≥ offset, −1: below); None if there are none.

    None too if no plane separates them, or only planes more than a right angle away from the guess.
    """
    rows = as_rows(points, name="points")
    n, p = rows.shape
    given = as_point(labels, n, "labels")
    if not np.isin(given, (-1, 1)).all():
        raise InvalidInput("labels must be −1 or +1 for every point")
    u = as_point(guess, p, "guess")
    if not u.any():
        raise InvalidInput("the guess of the normal is zero")
    u = u / np.abs(u).max()
    u = u / np.linalg.norm(u)
    if len(np.unique(given)) < 2:
        return None
    rows, given = _nearest(rows, given, u)
    origin = rows.mean(axis=0)
    size = float(np.linalg.norm(rows - origin, axis=1).max())
    if size == 0:
        return None
    # Labels come from normal·x − offset in float64, off by at most (p + 4) 2⁻⁵³ (|normal|·|x| + |offset|); ours are rounded too.
    noise = 2 * (p + 16) * UNIT_ROUNDOFF * (np.linalg.norm(rows, axis=1) + float(np.linalg.norm(rows, axis=1).max()))
    facts = _Facts((rows - origin) / size, given, noise / size, np.vstack([u, frame(u)]))
    bounds = facts.bounds()
    if bounds is None:
        return None
    low, high, level_low, level_high, longest = bounds
    tangent = float(np.linalg.norm(np.maximum(np.abs(low), np.abs(high)))) if p > 1 else 0.0
    angle = math.atan(tangent) * (1 + 1e-12) + 8 * p * UNIT_ROUNDOFF
    # b/ρ = (a/ρ)·origin + size·level/ρ with 1 ≤ ρ ≤ longest, and ‖a/ρ − u‖ = 2 sin(angle/2).
    turned = 2 * math.sin(angle / 2) * float(np.linalg.norm(origin))
    turned += 8 * p * UNIT_ROUNDOFF * (float(np.linalg.norm(origin)) + size)
    middle = float(u @ origin)
    least = min(level_low, level_low / longest) * size + middle - turned
    most = max(level_high, level_high / longest) * size + middle + turned
    return VersionSpace(angle, least, most, low, high)


def _nearest(rows: FloatArray, labels: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The points of both labels that bind most for normals near u."""
    most = MOST_ROWS * rows.shape[1]
    kept: BoolArray = np.zeros(len(rows), dtype=bool)
    levels = labels * (rows @ u)
    for label in (-1, 1):
        own = np.flatnonzero(labels == label)
        kept[own[np.argsort(levels[own])[:most]]] = True
    return rows[kept], labels[kept]


class _Facts:
    """y_i(a·x_i − b) ≥ −noise_i·‖a‖, about an origin between the points, all of them at most 1 away from it."""

    def __init__(self, rows: FloatArray, labels: FloatArray, noise: FloatArray, axes: FloatArray) -> None:
        self._signed = labels[:, None] * np.column_stack([rows @ axes.T, -np.ones(len(rows))])
        self._rows, self._labels, self._noise, self._axes = rows, labels, noise, axes

    def bounds(self) -> tuple[FloatArray, FloatArray, float, float, float] | None:
        """Low and high of every r_k, of the level, and the longest ‖a‖; None where something is unbounded."""
        p = self._rows.shape[1]
        proved = []
        # The unknowns are (r_2, …, r_p, b): the largest and the smallest of each.
        for k in range(p):
            for sign in (1.0, -1.0):
                target = np.zeros(p + 1)
                target[k + 1] = sign
                proof = self._proof(target)
                if proof is None:
                    return None
                proved.append(proof)
        plain, loose = np.array(proved)[:, 0].reshape(p, 2), np.array(proved)[:, 1].reshape(p, 2)
        widest = np.abs(plain[:-1]).max(axis=1, initial=0.0)
        slope = loose[:-1].max(axis=1, initial=0.0)
        # ρ = ‖(1, r)‖ ≤ ‖(1, widest)‖ + ρ‖slope‖.
        if not np.linalg.norm(slope) < 0.5:
            return None
        longest = float(np.linalg.norm(np.append(widest, 1.0))) / (1 - float(np.linalg.norm(slope)))
        # A normal with a·u = −c ≤ 0 would obey the same facts: 0 ≤ −c·width + 2·loose·‖a‖ for the level, which makes c, and with it
        # all entries of a, too small for ‖a‖.
        width = float(plain[-1].sum())
        if not 2 * longest * float(loose[-1].max()) + width * float(np.linalg.norm(slope)) < 0.5 * width:
            return None
        high, low = plain[:, 0] + longest * loose[:, 0], -(plain[:, 1] + longest * loose[:, 1])
        return low[:-1], high[:-1], float(low[-1]), float(high[-1]), longest

    def _proof(self, target: FloatArray) -> tuple[float, float] | None:
        """(μ, m) with target·(a in the frame, b) ≤ μ + m‖a‖ for every separating (a, b) with a·u = 1; None if there is no bound."""
        from scipy.optimize import linprog

        found = linprog(
            -target[1:], A_ub=-self._signed[:, 1:], b_ub=self._signed[:, 0], bounds=(None, None), method="highs"
        )
        if found.status != 0:
            return None
        weights = np.maximum(0.0, -np.asarray(found.ineqlin.marginals))
        # The facts, so weighted, sum to (μ, −target): what they miss by is multiplied by (r, b), at most ‖a‖ each.
        total = weights @ self._signed
        rounding = (len(weights) + 8) * UNIT_ROUNDOFF * (weights @ np.abs(self._signed))
        # Axes are orthonormal up to rounding, which moves every a·x by that share.
        skew = 16 * len(target) * UNIT_ROUNDOFF * float(weights.sum())
        missed = np.abs(total + target)[1:] + rounding[1:]
        # The plane passes between points that are at most 1 from the origin: |b| ≤ ‖a‖, and so far noise allows a little more.
        loose = float(np.linalg.norm(missed[:-1])) + 2 * float(missed[-1]) + float(weights @ self._noise) + skew
        return float(total[0]) + float(rounding[0]), loose
