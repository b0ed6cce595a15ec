"""The last resort in floats: one linear program about all rows, where the search sees no inside, or leaves a claim open.

Rows of sources join as long as the program's model breaks them. What comes out is advice: weights that `lengths.Payer` has to
accept, and a model that the Keeper has to admit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.optimize import linprog

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.stage import Asked, Proof

ROUNDS = 40
"""How often rows of sources may join."""
BOX = 1e7
"""Unknowns are no larger than this, in units of the rows."""


@final
@dataclass(frozen=True, eq=False)
class Found:
    """Weights of rows that a program puts on a claim, or on none, and the model that is worst for it."""

    rows: IntArray
    weights: FloatArray
    model: FloatArray


def least(prover: Prover, claim: FloatArray | None) -> Found | None:
    """Where a claim over the unknowns is least, for lengths that add up to 1; without a claim, where lengths are largest.

    None if the program cannot be solved: for a claim, if no model has any length.
    """
    scale = prover.scale
    own = np.zeros(len(scale))
    own[len(prover.ties.free) + 1 :] = scale[len(prover.ties.free) + 1 :]
    own /= np.abs(own).max()
    for _ in range(ROUNDS):
        inner = prover.rows * scale
        size = np.maximum(np.linalg.norm(inner, axis=1), 1e-300)
        rows = -inner / size[:, None]
        limit = np.zeros(len(rows))
        if claim is None:
            unit = 1.0
            solved = linprog(
                -own,
                A_ub=np.vstack([rows, own[None, :]]),
                b_ub=np.append(limit, 1.0),
                bounds=(-BOX, BOX),
                method="highs",
            )
        else:
            unit = float(np.abs(claim * scale).max())
            if not 0 < unit < np.inf:
                return None
            solved = linprog(
                claim * scale / unit, A_ub=rows, b_ub=limit, A_eq=own[None, :], b_eq=[1.0], bounds=(-BOX, BOX), method="highs"
            )  # fmt: skip
        if solved.status != 0:
            return None
        model = np.asarray(solved.x) * scale
        if prover.join(model[None, :]):
            continue
        weights = np.maximum(-np.asarray(solved.ineqlin.marginals)[: len(inner)], 0.0) / size * unit
        held = np.flatnonzero(weights > 0)
        return Found(held, weights[held], model)
    return None


def by_program(prover: Prover, x: FloatArray, sign: int) -> tuple[Proof | None, FloatArray | None]:
    """(a proof that the point lies on side `sign`, a model of the rows that is worst for that)."""
    asked = Asked(x[None, :], prover.ties, np.zeros(prover.ties.size))
    found = least(prover, sign * asked.inner[0])
    if found is None:
        return None, None
    return _proof(prover, sign, sign * asked.inner, asked.sizes, found), found.model


def contradiction(prover: Prover) -> Proof | None:
    """Weights that add up to less than nothing: no model keeps the rows."""
    found = least(prover, None)
    if found is None:
        return None
    nothing = np.zeros((1, prover.ties.size))
    return _proof(prover, 1, nothing, nothing, found)


def _proof(prover: Prover, sign: int, target: FloatArray, sizes: FloatArray, found: Found) -> Proof | None:
    if not len(found.rows):
        return None
    omega = np.zeros(len(prover.used))
    beta = prover.payer.beta(target, sizes, found.rows[None, :], found.weights[None, :], omega[None, :])
    return Proof(sign, found.rows, found.weights, omega, float(beta[0])) if beta[0] > 0 else None
