"""One cone for a whole log: every fact as linear rows g·(a, b) ≤ 0 that hold for each consistent model.

A fact L·(a, b) ≥ r·t with r ≥ 0 holds with t replaced by a·u for any u of length at most 1. For ℓ1 and polyhedral norms finitely
many u say all of it, for ℓ∞ too once K(w) is known; for others they are an outer approximation.
A slab |a·x' − b| ≤ τ·t becomes two rows through t ≤ −y·a·w/s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.polyhedral import Polyhedral
from overexplain.knowledge.core import THIN, Core, find_core
from overexplain.knowledge.facts import Facts, Flips, OffPlane, OnPlane, OnSide, Steepest, length_error, up
from overexplain.knowledge.rational_norms import exponent_and_weights
from overexplain.knowledge.shells import Directions, longest, shell_rows

NOISE = 1e-9
"""A row that the core leaves less than this share of is rounding: its equality already says it."""


@final
@dataclass(frozen=True)
class Cone:
    """Rows (n, p + 1) with g·(a, b) ≤ 0, how far they may be off, the core, and whether the rows say all that the facts do."""

    facts: Facts
    rows: FloatArray
    errors: FloatArray
    core: Core
    is_complete: bool

    def reduced(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """(rows in the core's coordinates, their entrywise errors, which they are); those only rounding there are left out."""
        size = np.abs(self.rows) @ np.abs(self.core.basis)
        rows = self.rows @ self.core.basis
        errors = 8 * (self.rows.shape[1] + 4) * UNIT_ROUNDOFF * size + self.errors @ np.abs(self.core.basis)
        kept = (np.abs(rows) > NOISE * size + 16 * errors).any(axis=1)
        return rows[kept], errors[kept], kept

    def lengths(self) -> list[FloatArray]:
        """For each distance a row L with t ≤ L·(a, b): the steepest step of a row under it; NaN if there is none."""
        found = longest(self.facts)
        return [found.get(n, np.full(self.facts.dimension + 1, np.nan)) for n in range(len(self.facts.norms))]


def build_cone(
    facts: Facts, exponents: IntArray, touching: Directions | None = None, *, is_round: bool = False
) -> Cone:
    """The cone of some facts; `exponents` are powers of two that bring the features to like sizes.

    `touching` are where the balls of robust counterfactuals are touched: the more, the closer the rows come to them; if the caller
    knows that they are round, nothing is said about them.
    """
    core = find_core(facts, exponents)
    rows = [-facts.queries()]
    errors = [np.zeros_like(rows[0])]

    def add(found: FloatArray, off: FloatArray | float = 0.0) -> None:
        rows.append(found)
        errors.append(np.broadcast_to(off, found.shape))

    complete = True
    steps = {fact.row: fact for fact in facts.explained if isinstance(fact, Steepest)}
    for fact in facts.explained:
        if isinstance(fact, OnPlane):
            complete &= fact.is_all
        if isinstance(fact, OnSide):
            own = -fact.side * np.append(fact.point, -1.0)
            sharp = fact.row in steps and steps[fact.row].tolerance <= THIN * steps[fact.row].length
            if fact.margin == 0 or sharp:
                add(own[None, :])  # with a sharp step, plane and steepness say as much
            else:
                directions, whole = _directions(fact.norm, None, facts.dimension)
                edge = np.hstack([fact.margin * directions, np.zeros((len(directions), 1))])
                add(own + edge, _off(fact.norm, facts.dimension) * np.abs(edge))
                complete &= whole
        elif isinstance(fact, Flips):
            own = fact.side * np.append(fact.point, -1.0)
            across = fact.side * np.append(fact.explanation, -1.0)
            lent = up(fact.share) * own
            # The answer's own tolerance says more, but not in a linear row.
            complete &= fact.share == 0 and fact.tolerance == 0 and fact.is_all
            if fact.tolerance:
                continue  # nothing bounds t by this row alone
            add((across - lent)[None, :], _off(fact.norm, facts.dimension) * np.abs(lent) if fact.share else 0.0)
        elif isinstance(fact, Steepest):
            directions, whole = _directions(fact.norm, fact, facts.dimension)
            steep = np.hstack([fact.steepness * directions, np.zeros((len(directions), 1))])
            step = fact.side * np.append(fact.step, 0.0)
            off = _off(fact.norm, facts.dimension)
            if fact.tolerance <= THIN * fact.length:
                # The row's own side asks for a little more than steepness alone: what is open must be so for both.
                off += 4 * fact.tolerance / fact.length
            add(step + steep, off * (np.abs(step) + np.abs(steep)))
            complete &= whole
        elif isinstance(fact, OffPlane):
            complete = False  # s = ‖a‖* is no linear row
        elif fact.tolerance > 0:
            slab = steps.get(fact.row)
            if fact.row in core.pinned:
                continue  # an equality of the core
            if slab is None:
                complete = False  # nothing bounds t by this row alone
                continue
            complete &= fact.tolerance <= THIN * slab.length  # t is not quite −y·a·w/s
            wide = up(fact.tolerance / slab.steepness) * -slab.side * np.append(slab.step, 0.0)
            plane = np.append(fact.point, -1.0)
            add(np.vstack([plane - wide, -plane - wide]), _off(fact.norm, facts.dimension) * np.abs(wide))
    if facts.unsided:
        complete = False
    if facts.off_plane:
        add(*shell_rows(facts, None if is_round else touching or {}))
    return Cone(facts, np.vstack(rows), np.vstack(errors), core, complete)


def _off(norm: Norm | None, p: int) -> float:
    """How far, relatively, the numbers of a fact may be off: they were rounded to the side that is safe for certificates."""
    return 0.0 if norm is None else 4 * length_error(norm, p)


def _directions(norm: Norm | None, fact: Steepest | None, p: int) -> tuple[FloatArray, bool]:
    """(u of length ≤ 1 as rows, True if t = max a·u over them for every model of the core)."""
    assert norm is not None
    if isinstance(norm, Polyhedral):
        return np.asarray(norm.vertices), True
    q, weights = exponent_and_weights(norm, p)
    d = np.array([float(v) for v in weights])
    units = np.diag(1.0 / norm.units(p))
    both = np.vstack([units, -units]) * (1 - 4 * UNIT_ROUNDOFF)
    if q == 1:
        return both, True
    if q == np.inf and fact is not None:
        # t = Σ|a_i|/d_i. In the core a_i = 0 off the farthest coordinates, and one flipped sign at a time gives the others'.
        signs = np.where(-fact.side * fact.step >= 0, 1.0, -1.0)
        flipped = signs * (1 - 2 * np.eye(p))
        found = np.vstack([signs, flipped]) / d * (1 - 4 * UNIT_ROUNDOFF)
        return found, fact.tolerance <= THIN * fact.length
    if fact is not None:
        towards = fact.norm.gradient(fact.step) if norm.is_smooth else None
        if towards is not None:
            return np.vstack([both, _tangents(fact, towards)]), False
    return both, False


def _tangents(fact: Steepest, towards: FloatArray) -> FloatArray:
    """Maximizers of models around the one the step shows, as far away as its tolerance lets them be."""
    open_angle = np.sqrt(max(2 * (1 - fact.steepness / fact.length), 1e-16))
    sizes = fact.norm.dual.units(len(towards))
    found = []
    for i in range(len(towards)):
        for sign in (1.0, -1.0):
            for share in (1.0, 4.0):
                a = towards.copy()
                a[i] += sign * share * open_angle / sizes[i]
                found.append(np.asarray(fact.norm.maximizer(-fact.side * a)))
    return np.array(found) * (1 - 1e-12)
