"""How far behind the plane the answers of a reading lie, and which points of the plane are known then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from overexplain.extraction.diagnosis.effective_norm import (
    PlanePoints,
    fit_any_plane,
    fit_plane_along,
    power_shape,
    spanned_by,
)
from overexplain.extraction.diagnosis.families import ENOUGH, arrow_of
from overexplain.extraction.diagnosis.margins import Gap, classify_gaps
from overexplain.extraction.diagnosis.marks import HALVINGS
from overexplain.extraction.diagnosis.oracle_report import Margin
from overexplain.extraction.diagnosis.reading import Reading
from overexplain.extraction.diagnosis.symptoms import same_answers
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import FLOAT64_ANSWER

_MEASURED = 4
"""So many margins are measured with labels where second steps show none."""


@dataclass(frozen=True)
class Measured:
    """What kind of margin it is, the largest size seen, the single margins behind that, and whether the sides were compared."""

    margin: Margin | None
    size: float
    gaps: list[Gap]
    sides_assumed_alike: bool = False


def measure_margin(reading: Reading, straight: bool) -> Measured:
    """The margin; one that is constant on each side is called constant only if labels do not show that the sides differ.

    `straight`: the direction of the steps is constant, or depends on the side only.
    """
    found = _measured(reading, straight)
    if found.margin != "constant" or len(reading.lines) != 1:
        return found
    symmetric = reading.is_symmetric()
    if symmetric is False:
        return replace(found, margin="variable", size=max((gap.size for gap in found.gaps), default=0.0))
    if symmetric is None and reading.place.dimension == 1:
        return Measured(None, 0.0, found.gaps)  # a list, too, would answer every question of a side with one number
    return replace(found, sides_assumed_alike=symmetric is None and len(set(reading.sides.tolist())) > 1)


def _measured(reading: Reading, straight: bool) -> Measured:
    """The margin, from explanations of explanations; else from labels; else from planes through the answers."""
    links = reading.link_gaps(reading.idle)
    margin = classify_gaps(links, straight)
    if margin == "zero":
        checks = _gaps_by_label(reading, 2)
        if all(gap.is_zero for gap in checks):
            return Measured(margin, 0.0, links)
        return Measured(classify_gaps([*links, *checks], straight), max(gap.size for gap in checks), checks)
    if margin is not None:
        # A link goes back to the plane and behind it: twice a constant margin.
        return Measured(margin, max(gap.size for gap in links) / (2 if margin == "constant" else 1), links)
    gaps = _gaps_by_label(reading, _MEASURED)
    if len(reading.lines) == 1:  # then the margins of both sides can be compared
        gaps = [replace(gap, side=0) for gap in gaps]
    if len(gaps) < 3:
        return _measured_by_chance_or_planes(reading, straight, gaps)
    margin = classify_gaps(gaps, straight)
    if margin == "constant" and not _surely_constant(reading, gaps):
        margin = None  # the labels fit other margins, too
    sharpest = min(gaps, key=lambda gap: gap.error)
    return Measured(margin, sharpest.size if margin == "constant" else max(gap.size for gap in gaps), gaps)


def _gaps_by_label(reading: Reading, count: int) -> list[Gap]:
    """Margins along the steps themselves, near and far ones."""
    usable = [k for k, e in enumerate(reading.rows) if not reading.jumped(e) and e.kind != "link"]
    if not usable:
        return []
    usable.sort(key=lambda k: float(reading.steps.lengths[k]))
    chosen = np.unique(np.linspace(0, len(usable) - 1, count).round().astype(int))
    gaps = [reading.marks.gap(reading.rows[usable[i]], reading.reach) for i in chosen]
    return [gap for gap in gaps if gap is not None]


def _surely_constant(reading: Reading, gaps: list[Gap]) -> bool:
    """True if labels measured a constant margin well enough, or a plane through the answers of one side shows it."""
    points = reading.points(_levels(reading))
    fits = [fit_any_plane(points)]
    if len(reading.lines) == 1:
        fits.append(fit_plane_along(points, [arrow_of(reading.steps, reading.lines[0])], power_shape(2.0)))
    if any(fit.holds for fit in fits):
        return True
    sharp = [gap.before for gap in gaps if gap.error <= 0.25 * gap.size]
    # Equal steps would not show whether margins grow with them.
    return len(sharp) >= 3 and max(sharp) >= 2 * min(sharp)


def _measured_by_chance_or_planes(reading: Reading, straight: bool, gaps: list[Gap]) -> Measured:
    """Where hardly a margin could be measured: chance that moves even the same answer is one, planes show others."""
    links = reading.link_gaps(set())
    if same_answers(reading.talk.exchanges) is False and sum(not gap.is_zero for gap in links) >= 2:
        return Measured("variable", max(gap.size for gap in links), links)
    both = (reading.sides > 0).any() and (reading.sides < 0).any()
    if reading.place.is_mixed or not both:  # one side alone lies on one plane whatever the margin, if it is constant
        return Measured(None, 0.0, gaps)
    if fit_any_plane(reading.points(np.zeros(len(reading.rows)))).holds:
        return Measured("zero", 0.0, gaps)
    two = straight and fit_any_plane(reading.points(reading.sides)).holds
    return Measured("constant" if two else None, 0.0, gaps)


def _levels(reading: Reading) -> FloatArray:
    """The sides, or zeros if there is but one: it has one plane."""
    return np.zeros(len(reading.rows)) if len(set(reading.sides.tolist())) == 1 else reading.sides


def plane_points(reading: Reading, margin: Margin | None, straight: bool) -> PlanePoints | None:
    """Points of the plane: the answers themselves, or where steps cross it."""
    if reading.place.is_mixed or len(reading.rows) < ENOUGH:
        return None
    if margin == "zero":
        return reading.points(np.zeros(len(reading.rows)))
    if margin == "constant" and (reading.sides != 0).all():
        return reading.points(_levels(reading))
    return _crossings(reading) if margin is not None and margin != "constant" and straight else None


def _crossings(reading: Reading) -> PlanePoints | None:
    """Where some steps cross the plane, found with labels."""
    found, smear, origins = [], [], []
    for k in sorted(reading.steps.telling, key=lambda k: reading.rows[k].kind not in ("around", "beyond")):
        exchange = reading.rows[k]
        if reading.marks.left < HALVINGS + 1:
            break
        if exchange.kind == "link" or not reading.marks.flips(exchange, reading.reach):
            continue
        crossing = reading.marks.crossing(exchange)
        if crossing is not None:
            found.append(exchange.question + np.mean(crossing) * exchange.step)
            smear.append((crossing[1] - crossing[0]) / np.sqrt(12) * exchange.step)
            origins.append(exchange.question)
    if len(found) < ENOUGH:
        return None
    points = np.array(found)
    spanned = spanned_by(np.array(origins))
    return PlanePoints(points, FLOAT64_ANSWER * np.abs(points), np.array(smear), np.zeros(len(points)), spanned)
