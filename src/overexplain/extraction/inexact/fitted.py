"""The plane through answers that lie near it, and a proof of how far off it can be.

Answers with a·z_i − b + s_i c = e_i and |e_i| ≤ errors_i (‖a‖₂ = 1, s_i the side, c a common margin) leave, once every side's
mean is taken out, C a = e' with a known bound on e'. With the singular vectors C S⁻¹ = U diag(σ) Vᵀ (S: one scale per feature),

    a = α S⁻¹v_p + Σ_k<p (u_k·e'/σ_k) S⁻¹v_k,

so the sine of the angle between a and S⁻¹v_p is at most the length of the sum: ‖e‖₂/σ_{p−1} if S = 1. The proof is tried with and
without scaled features, and with and without rows weighted by what is known of them; the best counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point, as_rows
from overexplain.geometry.lp import Lp, Weighted, l2
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm

LEAST_WEIGHT = 2.0**-20
"""A row counts at least this share of the best-known one: else a single row could drown all others in rounding."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A plane normal·z = level fitted to answers; those of side ±1 lie at normal·z = level ∓ gap.

    normal        ‖normal‖₂ = 1; the sign is arbitrary
    level, gap    b and c above; the gap is 0, and the level that of the answers, unless both sides were given
    angle_bound   bound on the angle (radians) between this and the true normal, up to sign; None if nothing is proved
    offset_bound  bound on the error of the level, both normals of length 1; None if nothing is proved
    """

    normal: FloatArray
    level: float
    gap: float
    angle_bound: float | None
    offset_bound: float | None


def fit_plane(points: ArrayLike, errors: ArrayLike, sides: ArrayLike | None = None) -> Fitted:
    """The plane next to `points` (rows), each of which is off it by at most errors_i in the 2-norm, and bounds on its own error.

    >>> plane = fit_plane([[0.0, 1.0], [1.0, 0.0], [3.0, -2.0]], [1e-6, 1e-6, 1e-6])
    >>> bool(abs(abs(plane.normal @ [1, 1]) - 2**0.5) < 1e-9), plane.angle_bound < 1e-6
    (True, True)
    """
    rows = as_rows(points, name="points")
    n, p = rows.shape
    known = as_point(errors, n, "errors")
    groups = _groups(sides, n)
    if not (known >= 0).all():
        raise InvalidInput(f"errors must not be negative, got {known.min()}")
    spread = np.ptp(rows, axis=0)
    by_feature = np.where(spread > 0, np.exp2(np.round(np.log2(np.where(spread > 0, spread, 1.0)))), 1.0)
    by_row = np.exp2(-np.round(np.log2(np.maximum(known, LEAST_WEIGHT * known.max()))) if known.any() else np.zeros(n))
    scales = [np.ones(p)] + [by_feature] * bool(np.ptp(by_feature))
    weights = [np.ones(n)] + [by_row] * bool(np.ptp(by_row))
    fits = [_fit(rows, known, groups, *pair) for pair in product(scales, weights)]
    return min(fits, key=lambda fit: math.inf if fit.angle_bound is None else fit.angle_bound)


def euclidean_stretch(norm: Norm, p: int) -> float:
    """κ with ‖v‖₂ ≤ κ‖v‖ for every v, equivalently ‖a‖* ≤ κ‖a‖₂; the smallest one for ℓq, weighted or not.

    For every other norm |v_i| ≤ ‖e_i‖*‖v‖ gives κ = √Σ‖e_i‖*².

    >>> euclidean_stretch(Lp(1.0), 9), euclidean_stretch(Lp(math.inf), 9)
    (1.0, 3.0)
    """
    weights, base = (norm.weights, norm.norm) if isinstance(norm, Weighted) else (np.ones(p), norm)
    if isinstance(base, Lp):
        if base.q <= 2:
            return float((1 / weights).max())
        return float(Lp(2.0 if base.q == math.inf else 2 * base.q / (base.q - 2))(1 / weights))
    return float(l2(norm.dual.units(p)))


def _groups(sides: ArrayLike | None, n: int) -> list[tuple[int, FloatArray]]:
    """Every side that occurs, with a 0/1 vector of its rows; side 0 if there are no sides."""
    if sides is None:
        return [(0, np.ones(n))]
    given = as_point(sides, n, "sides")
    if not np.isin(given, (-1, 1)).all():
        raise InvalidInput("sides must be −1 or +1 for every point; leave out points whose side is not known")
    return [(side, (given == side).astype(np.float64)) for side in (-1, 1) if (given == side).any()]


def _fit(
    rows: FloatArray, errors: FloatArray, groups: list[tuple[int, FloatArray]], scale: FloatArray, weights: FloatArray
) -> Fitted:
    """The fit with features divided by `scale` and rows multiplied by `weights` (powers of two: neither rounds)."""
    n, p = rows.shape
    # Shares of each row in its side's mean; differences of floats are rounded relative to themselves, so shift first.
    shares = [(weights**2 * of) / float(weights**2 @ of) for _, of in groups]
    origin = rows[0]
    shifted = rows - origin
    means = [share @ shifted for share in shares]
    centred = shifted - sum(np.outer(of, mean) for (_, of), mean in zip(groups, means, strict=True))
    matrix = weights[:, None] * centred / scale
    left, sizes, right = np.linalg.svd(np.vstack([matrix, np.zeros((max(0, p - n), p))]), full_matrices=False)
    normal = right[-1] / scale
    length = float(np.linalg.norm(normal))
    normal = normal / length

    levels = [float(normal @ mean) + float(normal @ origin) for mean in means]
    level, gap = sum(levels) / len(levels), (levels[0] - levels[1]) / 2 if len(levels) == 2 else 0.0
    unproved = Fitted(normal, level, gap, None, None)
    if p > 1 and not sizes[-2] > 0:
        return unproved

    # Row i of e' turns the normal by column i of `lever`; the component along the normal itself turns nothing.
    unscaled = (right[:-1] / scale).T / sizes[:-1]
    inverse = unscaled - np.outer(normal, normal @ unscaled)
    lever = inverse @ (left[:n, :-1].T * weights)
    lever -= sum(np.outer(lever @ of, share) for (_, of), share in zip(groups, shares, strict=True))

    # Rounding: of the rows (a shift, a mean, a difference) and of the singular vectors, as one error of the matrix.
    rounded = (n + 4) * UNIT_ROUNDOFF * (np.abs(shifted) + np.abs(centred) + np.abs(np.array(means)).max(axis=0))
    noise = float(np.linalg.norm(weights[:, None] * rounded / scale)) + 16 * (n + p) * UNIT_ROUNDOFF * float(sizes[0])
    # It is multiplied by ‖S a‖, which obeys ‖S a‖ ≤ (1 + stretch·E) / length + E / σ_{p−1} with E = ‖e'‖ + noise·‖S a‖.
    least = float(sizes[-2]) if p > 1 else math.inf
    stretch = _largest(unscaled) / length
    if noise * (stretch + 1 / least) > 0.5:
        return unproved
    scaled_length = 2 * (1 / length + (stretch + 1 / least) * float(np.linalg.norm(weights * errors)))
    turned_by_noise = _largest(inverse) * noise * scaled_length
    sine = _longest(lever, errors) * (1 + 1e-9) + turned_by_noise + 8 * p * UNIT_ROUNDOFF
    if not sine < 1:
        return unproved

    # b = a·mean + …, with a = cos·normal + lever·e: linear in e but for the cosine.
    centre = np.mean(means, axis=0) + origin
    linear = lever.T @ centre - np.mean(shares, axis=0)
    size = float(np.linalg.norm(centre)) + float(np.linalg.norm(origin))
    offset = float(np.abs(linear) @ errors) + sine**2 * abs(float(normal @ centre)) + turned_by_noise * size
    offset += 8 * (n + p) * UNIT_ROUNDOFF * (size + float(np.abs(shifted).max()) * math.sqrt(p))
    return Fitted(normal, level, gap, math.asin(sine), offset * (1 + 1e-9))


def _largest(matrix: FloatArray) -> float:
    """The largest singular value."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


def _longest(lever: FloatArray, errors: FloatArray) -> float:
    """Bound on ‖lever·e‖₂ over all |e_i| ≤ errors_i.

    In the lever's singular vectors, ‖lever·e‖² = Σ s_k² (q_k·e)² with |q_k·e| ≤ |q_k|·errors and Σ (q_k·e)² ≤ ‖errors‖²: give the
    longest directions as much as they can take.
    """
    if lever.shape[0] == 1:
        return float(np.abs(lever[0]) @ errors)
    _, sizes, right = np.linalg.svd(lever, full_matrices=False)
    most = (np.abs(right) @ errors) ** 2
    before = np.concatenate([[0.0], np.cumsum(most)[:-1]])
    taken = np.clip(float(errors @ errors) - before, 0.0, most)
    return math.sqrt(float(sizes**2 @ taken))
