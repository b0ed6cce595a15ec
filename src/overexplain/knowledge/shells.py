"""Robust counterfactuals without s: linear rows and equalities in (a, b) alone.

All answers with the same ball lie at −y·(a·x' − b) = ρ·s behind the plane, with one s. The one that says it most precisely, the
*reference*, stands for s; the others, Hölder's inequality and chords then become rows in (a, b).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.knowledge.chords import dual_exponent, root_box, root_chords, unit_of
from overexplain.knowledge.facts import Facts, OffPlane, Secret, Steepest, length_error
from overexplain.knowledge.rational_norms import exponent_and_weights, is_flat

Directions = Mapping[int, FloatArray]
"""For the number of a norm: vectors of length at most 1 (rows) at which Hölder's inequality is written down."""

ROUGH = 1e-11
"""How far, relatively, the float64 numbers of a chord may be off."""


def references(facts: Facts) -> dict[Norm | Secret, OffPlane]:
    """For each ball the answer that says most precisely how far behind the plane it lies, among those that share it."""
    best: dict[Norm | Secret, OffPlane] = {}
    for fact in facts.off_plane:
        if fact.tight and fact.shared:
            known = best.get(fact.ball)
            if known is None or fact.tolerance / fact.radius < known.tolerance / known.radius:
                best[fact.ball] = fact
    return best


def own_lengths(facts: Facts) -> list[tuple[Norm, OffPlane]]:
    """The balls whose s is a length of its own, neither secret nor t itself, with their references."""
    return [(b, fact) for b, fact in references(facts).items() if not isinstance(b, Secret) and b != fact.norm]


def longest(facts: Facts) -> dict[int, FloatArray]:
    """For the number of each distance with a step a row L with t ≤ L·(a, b): that of the step known best."""
    best: dict[int, tuple[float, FloatArray]] = {}
    for fact in facts.explained:
        if isinstance(fact, Steepest):
            number = facts.norms.index(fact.norm)
            share = fact.tolerance / fact.length
            if number not in best or share < best[number][0]:
                best[number] = (share, -fact.side / fact.steepness * np.append(fact.step, 0.0))
    return {number: row for number, (_, row) in best.items()}


# Equalities, for the core.


def exact_shells(facts: Facts) -> list[list[Fraction]]:
    """Equalities in rationals, of answers without tolerance: pairs with the same s, and touching points under N1 = N2."""
    rows: list[list[Fraction]] = []
    steps = {fact.row: fact for fact in facts.explained if isinstance(fact, Steepest)}
    known = references(facts)
    for fact in facts.off_plane:
        if not (fact.tight and fact.shared) or fact.tolerance:
            continue
        reference = known[fact.ball]
        here = _exact(fact)
        if fact is not reference and reference.tolerance == 0:
            rows.append([a - b for a, b in zip(here, _exact(reference), strict=True)])
        step = steps.get(fact.row)
        q, weights = exponent_and_weights(step.norm, facts.dimension) if step is not None else (None, [])
        if step is not None and fact.ball == step.norm and q in (1, np.inf):  # s = t = −y·a·w/‖w‖
            moved = [d * abs(v) for d, v in zip(weights, step.exact_step, strict=True)]
            length = sum(moved, Fraction(0)) if q == 1 else max(moved)
            along = [-fact.side * v / length for v in step.exact_step]
            rows.append([a - b for a, b in zip(here, [*along, Fraction(0)], strict=True)])
    return rows


def _exact(fact: OffPlane) -> list[Fraction]:
    """s as a row in rationals."""
    share = -fact.side / Fraction(fact.radius)
    return [share * Fraction(v) for v in fact.explanation.tolist()] + [-share]


def thin_shells(facts: Facts, thin: float) -> Iterator[tuple[FloatArray, float, int]]:
    """(row, width, number): |row·(a, b)| ≤ width·t for what is an equality but for a thin tolerance."""
    steps = {fact.row: fact for fact in facts.explained if isinstance(fact, Steepest)}
    known = references(facts)
    ratios = dict(_ratios(facts))
    for fact in facts.off_plane:
        step = steps.get(fact.row)
        if not (fact.tight and fact.shared) or step is None or fact.norm is None:
            continue
        size = _entrywise(fact.norm, fact.explanation) + _entrywise(fact.norm, step.step)
        reference, number = known[fact.ball], facts.norms.index(fact.norm)
        if fact.tolerance > thin * size:
            continue
        own, rounding = fact.behind / fact.radius, 16 * UNIT_ROUNDOFF * size / fact.radius
        if (fact.tolerance or reference.tolerance) and fact is not reference and reference.norm == fact.norm:
            width = fact.tolerance / fact.radius + reference.tolerance / reference.radius
            yield own - reference.behind / reference.radius, width + rounding, number
        if isinstance(fact.ball, Secret):
            continue
        least, most = (1.0, 1.0) if fact.ball == fact.norm else ratios.get((fact.ball, number), (0.0, np.inf))
        has_exact = fact.tolerance == 0 and fact.ball == fact.norm and is_flat(fact.norm)  # `exact_shells` has it
        if np.isfinite(most) and most - least <= 1e-5 * most and not has_exact:
            middle = (least + most) / 2
            width = fact.tolerance / fact.radius + (most - least) / 2 + _step_error(step, facts.dimension) * most
            along = -fact.side * middle / step.length * np.append(step.step, 0.0)
            yield own - along, width + rounding + 64 * UNIT_ROUNDOFF * most, number


def _entrywise(norm: Norm, x: FloatArray) -> float:
    """A length that rounding errors of the entries are a share of, also where a norm is shorter along x than along its entries."""
    return float(norm.units(len(x)) @ np.abs(x)) * (1 + 1e-6)


def _step_error(step: Steepest, p: int) -> float:
    """How far −y·a·w/length may be from t, relatively: by the tolerance, and because the length was rounded up."""
    return (2 * step.tolerance / step.length + 4 * length_error(step.norm, p)) * (1 + 1e-9)


def _ratios(facts: Facts) -> Iterator[tuple[tuple[Norm | Secret, int], tuple[float, float]]]:
    """(ball, number) → (least, most) of s/t, from the box that steps leave."""
    unit = unit_of(facts)
    if unit is None:
        return
    box = root_box(facts, unit)
    near = np.where(box.low > 0, box.low, np.where(box.high < 0, -box.high, 0.0))
    far = np.maximum(np.abs(box.low), np.abs(box.high))
    for ball in {fact.ball for fact in facts.off_plane}:
        if not isinstance(ball, Secret) and dual_exponent(ball, facts.dimension) is not None:
            off = 64 * facts.dimension * UNIT_ROUNDOFF
            yield (ball, unit), (float(ball.dual(near)) * (1 - off), float(ball.dual(far)) * (1 + off))


# Rows, for the cone.


def shell_rows(facts: Facts, directions: Directions | None) -> tuple[FloatArray, FloatArray]:
    """(rows, their entrywise errors) with row·(a, b) ≤ 0 for every consistent model; without directions, none for s ≥ ‖a‖*."""
    rows: list[FloatArray] = []
    errors: list[FloatArray] = []
    lengths = longest(facts)
    p = facts.dimension

    def add(parts: Sequence[FloatArray], rough: float = 0.0) -> None:
        size = sum((np.abs(part) for part in parts), np.zeros(p + 1))
        rows.append(sum(parts, np.zeros(p + 1)))
        errors.append((64 * (p + 8) * UNIT_ROUNDOFF + rough) * size)

    def paid(fact: OffPlane, cost: float) -> FloatArray | None:
        """−cost·t as a row; None if nothing bounds t."""
        if cost == 0:
            return np.zeros(p + 1)
        number = -1 if fact.norm is None else facts.norms.index(fact.norm)
        return -cost * lengths[number] if number in lengths else None

    known = references(facts)
    for fact in facts.off_plane:
        own, cost = fact.behind / fact.radius, fact.tolerance / fact.radius
        reference = known.get(fact.ball)
        owed = paid(fact, cost)
        if owed is None:
            continue
        if reference is not None and fact is not reference:
            other = paid(reference, reference.tolerance / reference.radius)
            if other is not None:
                apart = own - reference.behind / reference.radius
                add([-apart, owed, other])
                if fact.tight:
                    add([apart, owed, other])
        if isinstance(fact.ball, Secret):
            add([-own, owed])
        elif directions is not None and (fact is reference or not (fact.shared and fact.tight)):
            for u in _touched(facts, fact.ball, directions):
                add([np.append(u, 0.0), -own, owed])
    _add_chords(facts, known, lengths, add)
    return np.array(rows).reshape(-1, p + 1), np.array(errors).reshape(-1, p + 1)


def _add_chords(
    facts: Facts, known: Mapping[Norm | Secret, OffPlane], lengths: Mapping[int, FloatArray], add: object
) -> None:
    """Rows that bound s from above: δ·s ≤ γ·t + α·a, for the reference, or for every row by itself."""
    assert callable(add)
    unit = unit_of(facts)
    for chord in [] if unit is None else root_chords(facts, root_box(facts, unit)):
        unit, ball = chord.box.unit, facts.norms[chord.ball]
        if unit not in lengths:
            return
        slopes, high = np.append(chord.slopes, 0.0), lengths[unit]
        for fact in facts.off_plane:
            if fact.ball != ball or not fact.tight or fact.norm != facts.norms[unit]:
                continue
            own, cost = fact.behind / fact.radius, fact.tolerance / fact.radius
            if fact.shared and fact is known.get(ball):
                add([own * chord.delta, -(chord.gamma + cost * chord.delta) * high, -slopes], ROUGH)
            elif not fact.shared:
                ratio = (chord.gamma + float(facts.norms[unit](chord.slopes))) / chord.delta
                add([own, -(ratio + cost) * high], ROUGH)


def _touched(facts: Facts, ball: Norm, directions: Directions) -> FloatArray:
    """Vectors of length at most 1 under the ball's norm: along the axes, and those given."""
    axes = np.diag(1.0 / ball.units(facts.dimension))
    given = directions.get(facts.norms.index(ball), np.zeros((0, facts.dimension)))
    return np.vstack([axes, -axes, given]) * (1 - 16 * facts.dimension * UNIT_ROUNDOFF)
