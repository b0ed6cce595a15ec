"""Where the plane lies, once its normal is known: the offset from one answer near it, or bisected by labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from overexplain.extraction.inexact.fitted import euclidean_stretch
from overexplain.extraction.job import Job
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.geometry.norm import Norm

MOST_DOUBLINGS = 8
"""So often an interval for the offset is widened until labels at its ends differ."""

SMALL_SIZE = 1e-9
"""No offset is bisected more finely than this times the accuracy wanted."""


def with_level(norm: Norm, found: Extraction, point: FloatArray, off: float) -> Extraction:
    """The model with its offset from a point that is `off` from the plane, in the distance, if that is known better so."""
    assert found.error_bound is not None
    assert found.offset_bound is not None
    normal = found.hyperplane.normal  # of dual length 1: a point off by so much has a score off by as much
    length = float(np.linalg.norm(normal))
    # Turned by θ and scaled back to dual length 1, the normal moves by at most θ‖a‖₂(1 + κ‖a‖₂) in the 2-norm.
    turned = 1.1 * found.error_bound * length * (1 + euclidean_stretch(norm, len(normal)) * length)
    bound = off + turned * float(np.linalg.norm(point))
    if bound >= found.offset_bound:
        return found
    return replace(found, hyperplane=Hyperplane(normal, float(normal @ point)), offset_bound=bound)


def level_by_labels(job: Job, norm: Norm, found: Extraction) -> Extraction:
    """The model with its offset bisected by labels next to the start, as finely as the angle: rounded answers blur it."""
    plane = found.hyperplane
    assert found.offset_bound is not None
    length = float(np.linalg.norm(plane.normal))
    unit, foot = plane.normal / length, -plane.margin(job.start) / length
    size = float(np.linalg.norm(job.start)) + abs(foot)
    wanted, half = job.accuracy * max(size, SMALL_SIZE), found.offset_bound / length
    if half <= wanted:
        return found

    def is_yes(t: float) -> bool:
        return job.session.label(job.start + t * unit) == YES

    low, high = foot - 1.1 * half, foot + 1.1 * half
    for _ in range(MOST_DOUBLINGS):
        below, above = is_yes(low), is_yes(high)
        if above and not below:
            break
        low, high = (low, high + (high - low)) if not above else (low - (high - low), high)
    else:
        return found
    while high - low > wanted:
        middle = low + (high - low) / 2
        low, high = (low, middle) if is_yes(middle) else (middle, high)
    point = job.start + (low + (high - low) / 2) * unit
    return with_level(norm, found, point, (high - low) / 2 * length + 1e-12 * size * length)
