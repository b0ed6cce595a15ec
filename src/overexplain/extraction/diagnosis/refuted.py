"""Which published terms the answers contradict."""

from __future__ import annotations

import numpy as np

from overexplain.extraction.diagnosis.families import Effective
from overexplain.extraction.diagnosis.oracle_report import Direction, Margin
from overexplain.extraction.diagnosis.symptoms import Grid, Steps
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.geometry.norms import Lp, Weighted

_LONGER = 1e-3
"""A step longer than the optimum by this share, beyond rounding, is not optimal."""


def refuted_terms(
    declared: Mechanism | None,
    effective: Effective,
    steps: Steps,
    direction: Direction | None,
    margin: Margin | None,
    grid: Grid,
    slack: float | None,
) -> tuple[str, ...]:
    """One sentence for every declared term that cannot be true; none about answers chosen from a domain.

    There the best answer may be long, lie behind the plane, and move features one at a time, in whole steps.
    """
    if declared is None or declared.domain is not None:
        return ()
    sentences = []
    if declared.distance is not None and steps.moves.shape[1] > 1 and len(steps.telling) >= 3:
        sentences += _distance(declared, declared.distance, effective, steps, direction)
    if declared.slack is None:
        return tuple(sentences)  # nothing else is promised
    if declared.slack == 0 and margin in ("variable", "relative"):
        sentences.append(
            "documented optimal answers, but how far behind the plane they lie changes from answer to answer"
        )
    if declared.slack and slack is not None and slack > declared.slack * (1 + 1e-9):
        sentences.append(f"documented slack {declared.slack:g}, at least {slack:.3g} was seen")
    if declared.radius == 0 and margin == "constant":
        sentences.append("documented plain answers, but they lie a constant way behind the plane")
    if declared.radius and declared.slack == 0 and margin == "zero":
        sentences.append(f"documented robust answers (radius {declared.radius:g}), but they lie on the plane itself")
    if grid.name is not None and _finer(declared, steps, grid):
        sentences.append(f"documented answers finer than what was seen ({grid.name})")
    return tuple(sentences)


def _distance(
    terms: Mechanism, declared: Norm, effective: Effective, steps: Steps, direction: Direction | None
) -> list[str]:
    """What speaks against the declared distance: at most one sentence."""
    said = f"documented {Mechanism(declared).describe()}"
    if effective.distance == declared:
        return []
    plain = declared.norm if isinstance(declared, Weighted) else declared
    if effective.family == "l1" and isinstance(plain, Lp) and plain.q != 1:
        return [f"{said}, but only one feature moves at a time: effective l1, or the others are held"]
    if isinstance(declared, Lp) and isinstance(effective.distance, Lp) and effective.family != "l1":
        return [f"{said}, effective {Mechanism(effective.distance).describe()}"]
    if effective.family == "mixture" and declared.is_smooth:
        return [f"{said}, but answers follow several distances"]
    # Constraints that a service does not publish make steps longer, too: then the distance may still be the declared one.
    free = terms.slack == 0 and direction == "constant" and bool(steps.moved.any(axis=0).all())
    if free and effective.normal is not None and _too_long(declared, effective.normal, steps):
        return [f"{said}, but nearer points would do"]
    return []


def _too_long(declared: Norm, normal: FloatArray, steps: Steps) -> bool:
    """True if steps are longer, in the declared distance, than the way to the plane they reach."""
    rows = steps.telling
    lengths = np.asarray(declared(steps.moves[rows])) * float(declared.dual(normal))
    reached = np.abs(steps.moves[rows] @ normal)
    return bool((lengths * (1 - _LONGER - 8 * steps.blur[rows]) > reached).all())


def _finer(declared: Mechanism, steps: Steps, grid: Grid) -> bool:
    if declared.tolerance is None:
        return True
    half = np.full(steps.moves.shape[1], grid.half)
    needed = grid.half if declared.distance is None else float(declared.distance(half)) / len(half)
    return declared.tolerance < needed
