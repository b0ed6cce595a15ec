"""Points that a single explanation under a smooth distance settles, which is all but a thin band around its plane.

For −y·a·w ≥ s·t and |a·x' − b| ≤ τ·t, and r = x − x', every κ ≥ 0 gives

    ±(a·x − b) ≥ (κ·s − ‖±r + κ·y·w‖ − τ)·t

For Euclidean norms the best κ has a closed form: the model's direction lies within asin(τ/‖w‖) of the step's. For the others κ is
chosen where curvature and steepness cost about the same. One or two products a point; every rounding is paid for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF
from overexplain.knowledge.facts import Steepest, is_euclidean

OPEN = 3


def smooth_codes(fact: Steepest, X: FloatArray) -> NDArray[np.int8]:
    """+1 or −1 where this one explanation proves it strictly, else OPEN."""
    norm, p = fact.norm, len(fact.step)
    off = 64 * (p + 8) * UNIT_ROUNDOFF
    if norm.answer_rounding > FLOAT64_ANSWER:  # an ill-conditioned matrix: its products are less exact
        off = max(off, norm.answer_rounding)
    gradient = -fact.side * np.asarray(norm.gradient(fact.step))
    apart = X - fact.explanation
    along = apart @ gradient
    far = np.asarray(norm(apart))
    if is_euclidean(norm):
        sine = fact.tolerance / fact.steepness
        cosine = fact.steepness / fact.length
        aside = np.sqrt(np.maximum(far - np.abs(along), 0.0)) * np.sqrt(far + np.abs(along)) + off * far
        least = np.abs(along) * cosine - aside * sine - off * far - fact.tolerance
    else:
        bend = max(1 - fact.steepness / fact.length, 2.0**-52)
        kappa = far / fact.length / np.sqrt(bend)
        towards = np.sign(along)
        rest = norm(towards[:, None] * apart + kappa[:, None] * (fact.side * fact.step))
        least = (
            kappa * fact.steepness - rest * (1 + off) - fact.tolerance * (1 + off) - off * (far + kappa * fact.length)
        )
    with np.errstate(invalid="ignore"):
        proved = least > 0
    return np.where(proved, np.sign(along), OPEN).astype(np.int8)


def steepest_weight(fact: Steepest, x: FloatArray) -> tuple[int, float]:
    """(the side this explanation puts x on, the κ that proves it best); (0, 0.0) on its plane."""
    apart = x - fact.explanation
    along = -fact.side * float(apart @ np.asarray(fact.norm.gradient(fact.step)))
    far = float(fact.norm(apart))
    if along == 0 or not np.isfinite(far):
        return 0, 0.0
    sign = 1 if along > 0 else -1
    if is_euclidean(fact.norm):
        # In the plane of step and point: the κ at which the rest is at right angles to the edge of the cone.
        aside = np.sqrt(max(far - abs(along), 0.0)) * np.sqrt(far + abs(along))
        sine = max(fact.tolerance / fact.length, 2.0**-500)
        return sign, (abs(along) + aside / sine) / fact.length if aside else abs(along) / fact.length
    bend = max(1 - fact.steepness / fact.length, 2.0**-52)
    return sign, far / fact.length / float(np.sqrt(bend))
