"""Models that steps show, and those whose own answers are near the logged ones: wide tolerances leave others, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.optimize import least_squares

from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.facts import Steepest
from overexplain.knowledge.prover.blocks import Block, exponent_and_weights
from overexplain.log.extremes import BEYOND_FLOAT64

STEPS = 16
"""Steps that are looked at."""
BATCHES, BATCH = 6, 24
"""Models that differ where no step moved."""
POWERS = (0, 1, 3, 7)
"""First the mean of all distances counts, then more and more the largest."""
MOST_STEPS = 60
MOST_ROWS = 200
LEAST = 1e-15
"""Steps go on for as long as they change anything: tolerances may be those of float64."""


def shown_models(blocks: Sequence[Block], smooth: Sequence[Steepest]) -> Iterator[FloatArray]:
    """Models (a, b), rows, that single steps show, but for those of ℓ1 and ℓ∞, and whose planes go through their answers.

    Where no step moved, the distance may leave a open: there they differ.
    """
    p = blocks[0].points.shape[1]
    own = [b for b in blocks if b.is_optimal and (b.norm.is_smooth or exponent_and_weights(b.norm, p) is None)]
    steps = smooth or [block.steepest(k) for block in own for k in range(len(block.rows))][:STEPS]
    if not steps:
        return
    shown = [_through(step, -step.side * np.asarray(step.norm.dual.maximizer(step.step))) for step in steps]
    every = np.array([model / np.linalg.norm(model[:-1]) for model in shown])
    yield np.vstack([every.mean(axis=0), every])
    moved = np.any([(np.abs(b.step) > b.tolerance[:, None]).any(axis=0) for b in blocks if b.is_optimal], axis=0)
    first, rng = steps[0], np.random.default_rng(0)
    if first.norm.is_smooth or moved.all():
        return
    for _ in range(BATCHES):
        ways = rng.standard_normal((BATCH, p)) * ~moved * first.length
        ends = np.array([np.asarray(first.norm.dual.maximizer(first.step + way)) for way in ways])
        mixed = shown[0][:-1] + rng.uniform(size=(BATCH, 1)) * (-first.side * ends - shown[0][:-1])
        yield np.array([_through(first, way) for way in mixed])


def _through(step: Steepest, way: FloatArray) -> FloatArray:
    return np.append(way, way @ step.explanation)


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
