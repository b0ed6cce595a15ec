"""From boundaries to scores: each boundary (k, t) shows w_t − w_k and c_t − c_k up to one positive factor.

With f_e = (normal, −normal·point) of boundary e and its factor α_e, the differences α_e f_e add up to 0 around every cycle. So
α spans the null space of M = (C_ie f_e)_i, where the rows of C are a basis of the cycles: K boundaries in one cycle suffice
if K ≤ p + 2. M is as small as the graph. If each f_e is known to within δ_e then

    ‖M̂ − M‖ ≤ √Σδ_e² =: ε,   σ_min(M̂) ≤ ε (else the answers contradict each other),   sin∠(α̂, α) ≤ ε/σ_next(M̂).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.multiclass.facets import Facet
from overexplain.extraction.multiclass.graph import Edge, blocks
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import UNIT_ROUNDOFF

CLEAR = 100.0
"""The second smallest singular value must be so many times larger than what errors can make of 0."""


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which scores are solved for: x = origin + reach·y, so that nothing depends on the data's scale."""

    origin: FloatArray
    reach: float

    @staticmethod
    def of(points: FloatArray) -> Frame:
        """The frame in which these points lie around 0 at distances up to 1."""
        origin = points.mean(axis=0)
        reach = float(np.linalg.norm(points - origin, axis=1).max())
        return Frame(origin, reach or float(np.linalg.norm(origin)) or 1.0)

    def outside(self, scores: FloatArray) -> FloatArray:
        """(weights, intercepts) for x, from those for y with the weights divided by the reach: w·y + c in units of the reach."""
        weights = scores[:, :-1]
        return np.column_stack([weights, self.reach * scores[:, -1] - weights @ self.origin])

    def stretch(self) -> float:
        """By how much `outside` can magnify an error."""
        p = len(self.origin)
        matrix = np.eye(p + 1)
        matrix[p, p], matrix[p, :p] = self.reach, -self.origin
        return float(np.linalg.norm(matrix, 2))


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """Scores of the classes found (one row each: weights, intercept), and how they were found; `open`: what is not determined."""

    scores: FloatArray
    bound: float | None
    pairs: tuple[Edge, ...]
    method: str
    notes: tuple[str, ...] = ()
    open: str | None = None


def is_enough(bound: float | None, accuracy: float | None) -> bool:
    """True if the bound proves the accuracy that was asked for."""
    return accuracy is None or (bound is not None and bound <= accuracy)


def unproved(bound: float | None, accuracy: float) -> str:
    """What to say where the scores are determined, but not as sharply as was asked for."""
    proved = "proved nothing about the angle" if bound is None else f"proved {bound:.2g} rad"
    return (
        f"{proved}, asked for {accuracy:g}: the scores are determined, but rounding in the answers, carried over to them, leaves "
        "that much open, and more answers did not help. Ask for less, or for nothing: `.error_bound` then says what is proved"
    )


@dataclass(frozen=True, eq=False)
class Solved:
    """Scores (weights, intercept; one row per class) up to one factor, and how well they are known.

    `open` counts the factors that are not tied yet beyond the one that nobody can see; `bound` is on the angle.
    """

    scores: FloatArray | None
    open: int
    bound: float | None


def solve_scales(facets: Sequence[Facet], classes: list[int]) -> Solved:
    """The scores of `classes` that the boundaries show; BrokenPromise if no scores fit them."""
    frame = Frame.of(np.array([facet.point for facet in facets]))
    shapes = np.array([_shape(facet, frame) for facet in facets])
    errors = np.array([_error(facet, frame) for facet in facets])
    incidence = np.zeros((len(facets), len(classes)))
    for row, facet in zip(incidence, facets, strict=True):
        row[classes.index(facet.second)], row[classes.index(facet.first)] = 1.0, -1.0
    left, sizes, _ = np.linalg.svd(incidence, full_matrices=True)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    cycles = left[:, rank:].T
    matrix = (cycles[:, None, :] * shapes.T[None, :, :]).reshape(-1, len(facets))
    _, found, right = np.linalg.svd(matrix, full_matrices=True)
    found = np.append(found, np.zeros(max(0, len(facets) - len(found))))
    noise = math.sqrt(float(errors @ errors)) + 8 * len(facets) * UNIT_ROUNDOFF
    if found[-1] > noise:
        raise BrokenPromise(
            f"the boundaries do not close: around their cycles the differences of scores miss 0 by {found[-1]:.3g}, "
            f"rounding explains {noise:.3g}. The answers are rounded or heuristic, or the model is not linear",
            fact="Facet",
            excess=float(found[-1]),
        )
    free = int((found <= CLEAR * noise).sum()) - 1 + (len(classes) - 1 - rank)
    if free:
        return Solved(None, free, None)
    factors = right[-1] if right[-1].sum() > 0 else -right[-1]
    if (factors <= 0).any():
        worst = facets[int(factors.argmin())]
        raise BrokenPromise(
            f"the boundary between the classes {worst.first} and {worst.second} has its sides exchanged: the answers are not "
            "those of a linear classifier",
            fact="Facet",
            excess=float(-factors.min()),
        )
    # Mean 0 over the classes; all boundaries share what is left of their errors.
    inner = np.linalg.lstsq(incidence, factors[:, None] * shapes, rcond=None)[0]
    scores = frame.outside(inner)
    next_size = float(found[-2]) if len(found) > 1 else math.inf
    turned = noise / next_size
    lengths = np.linalg.norm(shapes, axis=1)
    off = (math.sqrt(2) * turned * float((lengths + errors).max()) + float(errors.max())) / float(sizes[rank - 1])
    ratio = off * frame.stretch() / float(np.linalg.norm(scores))
    known = all(facet.turned is not None for facet in facets)
    return Solved(scores, 0, angle_of(ratio) if known else None)


def solve_parts(facets: Sequence[Facet], classes: list[int]) -> FloatArray | None:
    """Scores in which every block of boundaries has the same size, where nothing ties their sizes together.

    Each plane between two classes that share a boundary is right, whatever the sizes. None if the boundaries do not reach all
    classes, or leave more open than the sizes of blocks.
    """
    waiting = blocks([facet.edge for facet in facets], classes)
    scores: dict[int, FloatArray] = {}
    while waiting:
        block = next((b for b in waiting if not scores or any(k in scores for pair in b for k in pair)), None)
        if block is None:
            return None
        waiting.remove(block)
        inside = sorted({k for pair in block for k in pair})
        part = solve_scales([facet for facet in facets if facet.edge in block], inside).scores
        if part is None:
            return None
        part = part / float(np.linalg.norm(part[:, :-1]))
        common = next((k for k in inside if k in scores), None)
        shift = 0.0 if common is None else scores[common] - part[inside.index(common)]
        scores |= dict(zip(inside, part + shift, strict=True))
    return np.array([scores[k] for k in classes]) if len(scores) == len(classes) else None


def angle_of(ratio: float) -> float | None:
    """The angle whose sine is at most `ratio`; None if that says nothing."""
    return math.asin(ratio) if ratio < 1 else None


def _shape(facet: Facet, frame: Frame) -> FloatArray:
    """(normal, offset) of a boundary in the frame: the difference of scores per unit of its factor."""
    return np.append(facet.normal, -facet.normal @ (facet.point - frame.origin) / frame.reach)


def _error(facet: Facet, frame: Frame) -> float:
    """How far the shape may be off."""
    away = float(np.linalg.norm(facet.point - frame.origin)) / frame.reach
    turned = 1e-9 if facet.turned is None else facet.turned
    size = (float(np.linalg.norm(facet.point)) + float(np.linalg.norm(frame.origin))) / frame.reach
    rounding = 4 * (len(facet.normal) + 4) * UNIT_ROUNDOFF * (1 + size)
    return turned + turned * away + facet.moved / frame.reach + rounding
