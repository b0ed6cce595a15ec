"""How often two models say the same, never without what a constant answer would reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES, Hyperplane

ON_PLANE = 1e-9
"""Points whose margin is this small beside its terms lie on the plane to rounding: there neither answer is wrong."""


@dataclass(frozen=True)
class Agreement:
    """The share of `points` points on which two models agree, beside `floor`, the share that the commoner answer alone gets.

    A copy that always says No agrees with a model that says No to 90 % in 90 % of all cases: only what lies above the floor
    tells anything.
    """

    share: float
    floor: float
    points: int


def agreement(copy: Hyperplane, truth: Hyperplane, points: FloatArray) -> Agreement:
    """How often `copy` says at these points what `truth` says.

    >>> truth, copy = Hyperplane([1.0, 0.0], 0.0), Hyperplane([1.0, 0.5], 0.0)
    >>> agreement(copy, truth, np.array([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [1.0, -4.0]]))
    Agreement(share=0.75, floor=0.75, points=4)
    """
    said, true = copy.labels(points), truth.labels(points)
    yes = int((true == YES).sum())
    terms = np.abs(points) @ np.abs(truth.normal) + abs(truth.offset)
    same = (said == true) | (np.abs(truth.margin(points)) <= ON_PLANE * terms)
    return Agreement(float(np.mean(same)), max(yes, len(points) - yes) / len(points), len(points))
