"""The last resort in floats: one linear program about all rows, where the search sees no inside, or leaves a claim open.

Rows of sources join as long as the program's model breaks them. What comes out is advice: weights that `lengths.Payer` has to
accept, and a model that the Keeper has to admit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.errors import SolverFailed
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.core_program import CoreProgram
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.stage import Asked, Proof

ROUNDS = 100
"""How often rows of sources may join."""
TIE = 1e-9
"""A claim that is broken by less, as a share of what its terms are, may hold in rationals."""
SHARES = 1 - np.logspace(-6, 0, 25)
"""How far models between the middle and the end of a program go."""


@final
@dataclass(frozen=True, eq=False)
class Found:
    """Weights of rows that a program puts on a claim, or on none, the model that is worst for it, and what the claim is there."""

    rows: IntArray
    weights: FloatArray
    model: FloatArray
    value: float = 0.0


def least(
    prover: Prover,
    claim: FloatArray | None,
    number: int | None = None,
    is_enough: Callable[[Found], bool] | None = None,
) -> Found | None:
    """Where a claim over the unknowns is least, for lengths that add up to 1, or one of them that is 1; without a claim, where
    lengths are largest. Rows of sources stop joining when what is found `is_enough`.

    None if the program cannot be solved: for a claim, if no model has any length.
    """
    scale = prover.scale
    own = np.zeros(len(scale))
    lengths = slice(len(prover.ties.free) + 1, None) if number is None else len(prover.ties.free) + 1 + number
    own[lengths] = scale[lengths]
    size_of_own = float(np.abs(own).max())
    inner = prover.rows * scale
    size = np.maximum(np.linalg.norm(inner, axis=1), 1e-300)
    program = CoreProgram(inner / size[:, None], own / size_of_own)
    for _ in range(ROUNDS):
        solved = program.emptiness() if claim is None else program.least(claim * scale)
        if solved is None:
            return None
        weights = solved.weights / size
        held, model = np.flatnonzero(weights > 0), solved.place * scale
        found = Found(held, weights[held], model, solved.value * size_of_own)
        if is_enough is not None and is_enough(found):
            return found
        before = len(prover.rows)
        if not prover.join(model[None, :]):
            return found
        inner = prover.rows[before:] * scale
        more = np.maximum(np.linalg.norm(inner, axis=1), 1e-300)
        size = np.append(size, more)
        program.join(inner / more[:, None])
    return None


def interval(prover: Prover, x: FloatArray) -> tuple[float, float]:
    """How far, at least and at most, a point lies on the Yes side of the models of the rows, in units of their robust answers'
    distance; SolverFailed if that cannot be computed."""
    number = next(block.number for block in prover.blocks if block.is_robust)
    inner = Asked(x[None, :], prover.ties, np.zeros(prover.ties.size)).inner[0]
    ends = [least(prover, sign * inner, number) for sign in (1.0, -1.0)]
    if ends[0] is None or ends[1] is None:
        raise SolverFailed("no model of the convex set was found, or nothing tells its size")
    return ends[0].value, -ends[1].value


def by_program(prover: Prover, x: FloatArray, sign: int) -> tuple[Proof | None, Found | None]:
    """(a proof that the point lies on side `sign`, where the program ended)."""
    asked = Asked(x[None, :], prover.ties, np.zeros(prover.ties.size))
    claim = sign * asked.inner[0]

    def shown(found: Found) -> Proof | None:
        return _proof(prover, sign, sign * asked.inner, asked.sizes, found) if found.value > 0 else None

    def is_enough(found: Found) -> bool:
        return shown(found) is not None or against(prover, claim, found.model) is not None

    found = least(prover, claim, is_enough=is_enough)
    return (None, None) if found is None else (shown(found), found)


def against(prover: Prover, claim: FloatArray, model: FloatArray) -> FloatArray | None:
    """A model that breaks a claim, between this one and the middle, if lengths are long enough there: cuts would not mend it."""
    if prover.core is None:
        return None
    lengths = slice(len(prover.ties.free) + 1, None)
    middle, end = (each / max(float(np.abs(each[lengths]).sum()), 1e-300) for each in (prover.centre, model))
    between = middle + SHARES[:, None] * (end - middle)
    normals = prover.ties.outer(between)[:, :-1]
    room = [
        row - np.asarray(norm.dual(normals))
        for row, norm in zip(between[:, lengths].T, prover.norms, strict=True)
        if not isinstance(norm, Secret)
    ]
    broken = np.flatnonzero((np.min(room, axis=0) >= 0) & are_broken(claim, between))
    return between[broken[0]] if len(broken) else None


def are_broken(claim: FloatArray, models: FloatArray) -> BoolArray:
    """True for models that break a claim by more than rounding."""
    return np.asarray(models @ claim < -TIE * (np.abs(models) @ np.abs(claim)))


def is_tied(prover: Prover, x: FloatArray, found: Found | None) -> bool:
    """True if a claim about a point is broken by a hair, or nobody knows by how much."""
    if found is None:
        return True
    inner = Asked(x[None, :], prover.ties, np.zeros(prover.ties.size)).inner[0]
    return found.value >= -TIE * float(np.abs(inner) @ np.abs(found.model))


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
