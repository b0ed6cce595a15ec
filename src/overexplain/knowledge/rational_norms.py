"""Norms in rationals, as far as they have any: what an exact step fixes about a model, and which directions maximise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from overexplain.geometry.lp import Lp
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.norm import Norm
from overexplain.geometry.norms import Weighted
from overexplain.geometry.polyhedral import Polyhedral
from overexplain.knowledge.exact import ONE, ZERO
from overexplain.knowledge.facts import is_euclidean


def exact_span(norm: Norm, step: list[Fraction], tolerance: Fraction = ZERO) -> list[list[Fraction]]:
    """Rational rows orthogonal to K(w°) for every optimum within the tolerance: what w fixes about the direction of a, exactly.

    Empty where that is irrational, or where a tolerance leaves nothing fixed.
    """
    p = len(step)
    if is_euclidean(norm):
        if tolerance:
            return []
        return [row for _, row in orthogonal(gradient_of(norm, step))]
    q, weights = exponent_and_weights(norm, p)
    if q == 1:
        moved = [i for i in range(p) if weights[i] * abs(step[i]) > tolerance]
        rows = []
        for i in moved[1:]:
            row = [Fraction(0)] * p
            j = moved[0]
            row[i], row[j] = weights[j] * _sign(step[i]), -weights[i] * _sign(step[j])
            rows.append(row)
        return rows
    if q == np.inf:
        farthest = max(d * abs(v) for d, v in zip(weights, step, strict=True))
        still = [i for i in range(p) if weights[i] * abs(step[i]) < farthest - 2 * tolerance]
        return [[Fraction(int(i == j)) for j in range(p)] for i in still]
    return []


def gradient_of(norm: Norm, step: list[Fraction]) -> list[Fraction]:
    """The direction of the gradient at w of a Euclidean norm, exactly: M·w."""
    if isinstance(norm, Mahalanobis):
        matrix = [[Fraction(v) for v in row] for row in np.asarray(norm.matrix).tolist()]
        return [sum((m * v for m, v in zip(row, step, strict=True)), Fraction(0)) for row in matrix]
    weights = exponent_and_weights(norm, len(step))[1]
    return [d * d * v for d, v in zip(weights, step, strict=True)]


def exponent_and_weights(norm: Norm, p: int) -> tuple[float | None, list[Fraction]]:
    """(q, weights) of a weighted ℓq norm; (None, ones) of any other."""
    ones = [Fraction(1)] * p
    if isinstance(norm, Lp):
        return norm.q, ones
    if isinstance(norm, Weighted) and isinstance(norm.norm, Lp):
        return norm.norm.q, [Fraction(v) for v in np.asarray(norm.weights).tolist()]
    return None, ones


def orthogonal(g: Any, among: Iterable[int] | None = None) -> list[tuple[int, Any]]:
    """A basis of the vectors orthogonal to g, exact if g is: g_k·e_i − g_i·e_k with k the largest entry, by its index i.

    among: only those of these indices.
    """
    k = max(range(len(g)), key=lambda i: abs(g[i]))
    basis = []
    for i in range(len(g)) if among is None else among:
        if i != k:
            vector = g * 0 if isinstance(g, np.ndarray) else [0 * v for v in g]
            vector[i], vector[k] = g[k], -g[i]
            basis.append((i, vector))
    return basis


def is_flat(norm: Norm) -> bool:
    """True for ℓ1 and ℓ∞, plain or weighted."""
    return exponent_and_weights(norm, 1 if norm.dimension is None else norm.dimension)[0] in (1, np.inf)


def is_rational(norm: Norm) -> bool:
    """True if rational vectors have rational lengths."""
    return isinstance(norm, Polyhedral) or is_flat(norm)


def exact_maximizer(norm: Norm, a: Sequence[Fraction]) -> tuple[list[Fraction], Fraction] | None:
    """(u, ‖u‖) with a·u = ‖u‖·‖a‖*, in rationals; None where the norm has no rational one."""
    p = len(a)
    if isinstance(norm, Polyhedral):
        rows = [[Fraction(v) for v in row] for row in np.asarray(norm.vertices).tolist()]
        best = max(rows, key=lambda row: sum((x * y for x, y in zip(a, row, strict=True)), ZERO))
        return best, ONE
    if is_euclidean(norm):
        return None
    q, weights = exponent_and_weights(norm, p)
    if q == 1:
        k = max(range(p), key=lambda i: abs(a[i]) / weights[i])
        u = [ZERO] * p
        u[k] = ONE if a[k] > 0 else -ONE
        return u, weights[k]
    if q == np.inf:
        return [(ONE if v >= 0 else -ONE) / d for v, d in zip(a, weights, strict=True)], ONE
    return None


def _sign(value: Fraction) -> int:
    return 1 if value > 0 else -1
