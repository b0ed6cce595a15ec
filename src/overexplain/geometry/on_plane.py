"""Which answers lie on the plane itself: all plain optima of R^p, and of a domain those that continuous features brought there."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.lp import Lp, Weighted
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm

_CLEAR, _SMALL = 1e-9, 1e-290
"""By how much, relatively, floats must differ to be told apart without fractions, and from which size on they can be."""


def on_plane(mechanism: Mechanism, x: ArrayLike, answer: ArrayLike) -> Any:
    """Whether the optimum that `answer` stands for must lie on the plane: a bool, or one for each row.

    A plain optimum does if it was chosen from R^p. If it was chosen from a domain, it does if continuous features moved, and could
    have moved a little less at a lower cost: no discrete feature moved, or the distance is a weighted ℓq, q < ∞, or it is a
    weighted ℓ∞ and all features that moved farthest are continuous. Decided exactly, and for every optimum within the
    tolerance of the answer: a move that rounding can have made counts for nothing beside one of a discrete feature.

    >>> from overexplain.geometry.domain import Domain
    >>> terms = Mechanism("linf", tolerance=0.0, domain=Domain(2, integers=[1]))
    >>> on_plane(terms, [0.0, 0.0], [[0.5, 0.0], [0.5, 1.0], [1.0, 1.0], [1.5, 1.0]]).tolist()
    [True, False, False, True]
    """
    answers = np.asarray(answer, dtype=np.float64)
    points = np.broadcast_to(np.asarray(x, dtype=np.float64), answers.shape)
    found = _rows(mechanism, np.atleast_2d(points), np.atleast_2d(answers))
    return bool(found[0]) if answers.ndim == 1 else found


def _rows(terms: Mechanism, points: FloatArray, answers: FloatArray) -> BoolArray:
    if terms.slack != 0 or not terms.is_plain:
        return np.zeros(len(points), dtype=bool)
    if terms.domain is None:
        return np.ones(len(points), dtype=bool)
    free = np.zeros(terms.domain.dimension, dtype=bool)
    free[terms.domain.continuous] = True
    moved = points != answers
    smoothly, in_jumps = moved[:, free].any(axis=1), moved[:, ~free].any(axis=1)
    found: BoolArray = smoothly & ~in_jumps
    both = np.flatnonzero(smoothly & in_jumps)
    if len(both):
        found[both] = _farther(terms, points[both], answers[both], free)
    return found


def _farther(terms: Mechanism, points: FloatArray, answers: FloatArray, free: BoolArray) -> BoolArray:
    """Whether a continuous feature moved by more than the tolerance and, under ℓ∞, than every discrete feature besides."""
    q, weights = _exponent(terms.distance, len(free))
    if q is None or terms.distance is None:
        return np.zeros(len(points), dtype=bool)
    scale = np.array([float(weight) for weight in weights])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        sizes = np.abs(answers - points) * scale
        own = sizes[:, free].max(axis=1)
        if terms.tolerance is None:
            other = terms.distance.answer_rounding * ((np.abs(points) + np.abs(answers)) * scale).sum(axis=1)
        else:
            other = np.full(len(points), terms.tolerance)
        if q == math.inf:
            other = other + sizes[:, ~free].max(axis=1)
        usable = (own > _SMALL) & np.isfinite(own) & np.isfinite(other)
        above, below = own * (1 - _CLEAR) > other, own * (1 + _CLEAR) < other
    found: BoolArray = usable & above
    for row in np.flatnonzero(~usable | ~(above | below)):
        found[row] = _farther_exactly(terms, points[row], answers[row], free, q, weights)
    return found


def _farther_exactly(
    terms: Mechanism, point: FloatArray, answer: FloatArray, free: BoolArray, q: float, weights: list[Fraction]
) -> bool:
    assert terms.distance is not None
    pairs = list(zip(map(Fraction, point.tolist()), map(Fraction, answer.tolist()), weights, strict=True))
    sizes = [abs(z - x) * weight for x, z, weight in pairs]
    if terms.tolerance is None:  # a weighted ℓ1 length bounds that of every weighted ℓq from above, an entry from below
        other = Fraction(terms.distance.answer_rounding) * sum((abs(x) + abs(z)) * weight for x, z, weight in pairs)
    else:
        other = Fraction(terms.tolerance)
    if q == math.inf:
        other += max(size for size, smooth in zip(sizes, free.tolist(), strict=True) if not smooth)
    return max(size for size, smooth in zip(sizes, free.tolist(), strict=True) if smooth) > other


def _exponent(distance: Norm | None, dimension: int) -> tuple[float | None, list[Fraction]]:
    """(q, weights) of a plain or weighted ℓq; q is None for any other distance."""
    weights = [Fraction(1)] * dimension
    while isinstance(distance, Weighted):
        weights = [own * Fraction(new) for own, new in zip(weights, distance.weights.tolist(), strict=True)]
        distance = distance.norm
    return (distance.q if isinstance(distance, Lp) else None), weights
