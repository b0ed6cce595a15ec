"""Boundaries between two classes: found with labels, then shown by one explanation each.

Between a point of class t and one of another class, bisection keeps the last change into t: the two ends then lie close to
each other on both sides of the boundary (k, t). From so near, the nearest point of t lies on that boundary alone, and the step
to it shows the boundary's normal. Two labels beside the answer see whether it does: at a corner of several boundaries, every
direction along the supposed plane leaves the class t on one side of the answer or the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overexplain.extraction.multiclass.classes import Found
from overexplain.extraction.multiclass.graph import Edge, edge
from overexplain.extraction.precision import answer_error
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.lp import l2
from overexplain.geometry.norm import Norm

COARSE = 2.0**-4
"""How close, as a share of their first distance, two points are brought to see which boundary is between them."""

FINE = (2.0**-9, 2.0**-15, 2.0**-21, 2.0**-26)
"""How close they are brought before an explanation is asked, and how close if the last one was at a corner."""

FLAT = 1e-7
"""How far off the plane, relative to the distance from the answer along it, the labels on both sides are asked."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two points on both sides of a boundary: `near` has the class `first`, `far` the class `second`."""

    first: int
    second: int
    near: FloatArray
    far: FloatArray
    length: float

    @property
    def edge(self) -> Edge:
        """The two classes in order."""
        return edge(self.first, self.second)

    @property
    def gap(self) -> float:
        """How far apart the points are, as a share of their first distance."""
        return float(np.linalg.norm(self.near - self.far)) / self.length


@dataclass(frozen=True, eq=False)
class Facet:
    """A piece of the boundary between two classes: the plane through `point` whose `normal` (length 1) leads into `second`.

    `turned` bounds the error of the normal, `moved` that of the point; None if the norm does not know it.
    """

    first: int
    second: int
    point: FloatArray
    normal: FloatArray
    turned: float | None
    moved: float

    @property
    def edge(self) -> Edge:
        """The two classes in order."""
        return edge(self.first, self.second)


def approach(found: Found, first: FloatArray, label: int, second: FloatArray, target: int) -> Pair | None:
    """The last change into the class `target` on the way from `first` (of class `label`) to `second`, roughly."""
    length = float(np.linalg.norm(first - second))
    return tighten(found, Pair(label, target, first, second, length), COARSE) if length > 0 else None


def tighten(found: Found, pair: Pair, share: float) -> Pair:
    """The pair brought closer, to this share of its first distance; its first class may become another one."""
    while pair.gap > share:
        middle = pair.near + (pair.far - pair.near) / 2
        if np.array_equal(middle, pair.near) or np.array_equal(middle, pair.far):
            break
        label = found.label(middle)
        if label == pair.second:
            pair = Pair(pair.first, pair.second, pair.near, middle, pair.length)
        else:
            pair = Pair(label, pair.second, middle, pair.far, pair.length)
    return pair


def question_of(found: Found, pair: Pair) -> FloatArray:
    """From where the pair's boundary is asked for: one gap back, so that the step to it is not made of rounding."""
    back = pair.near + (pair.near - pair.far)
    return back if found.where.contains(back) else pair.near


def shown(
    found: Found,
    norm: Norm,
    tolerance: float | None,
    question: FloatArray,
    answer: FloatArray,
    target: int,
    rng: np.random.Generator,
) -> Facet | None:
    """The boundary that an answer under a smooth norm shows, if it lies on one alone; None if it does not.

    With x' the point of a convex cell nearest to x, the gradient of the norm at x' − x is a normal of the cell at x'.
    """
    step = answer - question
    distance = float(np.linalg.norm(step))
    error = answer_error(norm, tolerance, question, answer)
    entries = error * norm.dual.units(len(step))  # |δ_i| ≤ ‖δ‖·‖e_i‖*
    moved = error if norm == l2 else float(np.linalg.norm(entries))
    if distance <= 1e3 * moved:
        return None
    gradient = norm.gradient(step)
    size = float(np.linalg.norm(gradient))
    turned = _turned(norm, step, error, entries, size)
    normal = gradient / size
    for reach in (distance, distance / 16):
        first = _beside(found, answer, normal, target, reach, max(FLAT * reach, 8 * moved), rng)
        if first is not None:
            return Facet(first, target, answer, normal, turned, moved)
    return None


def _turned(norm: Norm, step: FloatArray, error: float, entries: FloatArray, size: float) -> float | None:
    """How far the gradient of length `size`, scaled to 1, may be off: ℓ2's turns by at most twice the relative error."""
    if norm == l2:
        return 2 * error / float(np.linalg.norm(step))
    errors = norm.gradient_error(step, entries)
    return None if errors is None else 2 * float(np.linalg.norm(errors)) / size


def _beside(
    found: Found,
    answer: FloatArray,
    normal: FloatArray,
    target: int,
    reach: float,
    height: float,
    rng: np.random.Generator,
) -> int | None:
    """The class on the near side, if the plane is the boundary of `target` also at a random point `reach` away; else None."""
    for _ in range(4):
        along = rng.standard_normal(len(answer))
        along -= (along @ normal) * normal
        size = float(np.linalg.norm(along))
        along = along * (reach / size) if len(answer) > 1 and size > 0 else np.zeros(len(answer))
        inside, outside = answer + along + height * normal, answer + along - height * normal
        if found.where.contains(inside) and found.where.contains(outside):
            if found.label(inside) != target:
                return None
            before = found.label(outside)
            return None if before == target else before
    return None
