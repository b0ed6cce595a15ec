"""Models whose own answers are near the logged ones: where tolerances are wide, facts leave others, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import least_squares

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.prover.blocks import Block
from overexplain.log.extremes import BEYOND_FLOAT64

POWERS = (0, 1, 3, 7)
"""First the mean of all distances counts, then more and more the largest."""
MOST_STEPS = 60
MOST_ROWS = 200
LEAST = 1e-15
"""Steps go on for as long as they change anything: tolerances may be those of float64."""


def likely_models(blocks: Sequence[Block], start: FloatArray) -> Iterator[FloatArray]:
    """Models (a, b), each nearer to being one that gave all optimal answers to within their tolerance."""
    own = [block for block in blocks if block.is_optimal and not block.is_robust and (block.tolerance > 0).all()]
    own = [block.of(np.arange(len(block.rows))[: MOST_ROWS // len(own) + 1]) for block in own]
    if not own or not start[:-1].any():
        return

    def apart(z: FloatArray, power: int) -> FloatArray:
        rows = []
        for block in own:
            a, norm, y = z[:-1], block.norm, block.sides.astype(np.float64)
            far = y * (block.points @ a - z[-1]) / float(norm.dual(a))
            answers = block.points - (y * far)[:, None] * np.asarray(norm.maximizer(a))
            assert block.answers is not None
            rest = (block.answers - answers) / block.tolerance[:, None]
            rows.append((rest * np.asarray(norm(rest))[:, None] ** power).ravel())
        return np.concatenate(rows)

    z = start / np.linalg.norm(start[:-1])
    try:
        with np.errstate(all="ignore"):  # what overflows is no model, and is not believed
            for power in POWERS:
                z = least_squares(apart, z, args=(power,), max_nfev=MOST_STEPS, xtol=LEAST, ftol=LEAST, gtol=LEAST).x
                if not z[:-1].any() or not np.isfinite(z).all():
                    return
                z = z / np.linalg.norm(z[:-1])
                yield z
    except (np.linalg.LinAlgError, ValueError, *BEYOND_FLOAT64):
        return
