"""From the pattern of the steps to the family of the distance; a family is named only if chance and other families are excluded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overexplain.extraction.diagnosis.effective_norm import (
    EVIDENCE,
    WITHIN,
    Arrow,
    Exponent,
    PlanePoints,
    Shape,
    around_exponent,
    fit_any_plane,
    fit_exponent,
    fit_plane_along,
    power_shape,
    simplest_between,
)
from overexplain.extraction.diagnosis.oracle_report import Direction, Family, Margin
from overexplain.extraction.diagnosis.symptoms import Steps
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.geometry.norms import Lp, Weighted, l1, l2, linf

ENOUGH = 3
"""So many steps must show a pattern before it is one."""

_SHORT = 4
"""In two dimensions every plane fits some ℓq: there only multiples of a quarter are believed."""

_STEEPEST = 1e-6
"""A step longer than the optimum by no more than this share, beyond rounding, is optimal."""

_WIDEST = 0.5
"""An exponent known no better than this is not known."""


@dataclass(frozen=True, eq=False)
class Effective:
    """The family, the distance if it is determined, the normal if the points gave one, and what must be said about it."""

    family: Family
    distance: Norm | None = None
    normal: FloatArray | None = None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Pattern:
    """What is known when the distance is asked for."""

    steps: Steps
    lines: Sequence[IntArray]
    direction: Direction | None
    margin: Margin | None
    points: PlanePoints | None
    declared: Norm | None

    @property
    def straight(self) -> bool:
        """True if the direction depends on the side only."""
        return self.direction in ("constant", "by side")


def effective_distance(pattern: Pattern) -> Effective:
    """The distance that answers minimise, as far as they show it."""
    steps, rows = pattern.steps, pattern.steps.telling
    if steps.moves.shape[1] == 1:
        return Effective("l2", l2, None, "one feature: all distances agree")
    if len(rows) < ENOUGH:
        return Effective("unknown", note="too few steps were long enough to show a pattern")
    plane = None if pattern.points is None else fit_any_plane(pattern.points)
    normal = plane.normal if plane is not None and plane.holds else None
    kept = _declared(pattern, normal)
    if kept is not None:
        return kept
    if (steps.moved[rows].sum(axis=1) == 1).all() and pattern.straight:
        return _one_feature(pattern, normal)
    level = _largest_change(pattern, normal)
    if level is not None:
        return level
    if pattern.straight and pattern.points is not None:
        return _dense(pattern, pattern.points, normal)
    if pattern.straight:
        return Effective("unknown", None, normal, "no points of the plane are known to test distances against")
    if pattern.margin == "zero" or normal is not None:
        if pattern.direction == "several":
            return Effective("mixture", None, normal, "several distances in turn, or ties broken at random")
        return Effective("unknown", None, normal, "answers lie on the plane, but no pattern shows how they are chosen")
    if pattern.margin is None:
        return Effective("unknown", None, normal)
    return Effective("heuristic", None, normal)


def _declared(pattern: Pattern, normal: FloatArray | None) -> Effective | None:
    """The declared distance, if it explains all answers: others that do so as well do not refute it. None if it does not."""
    declared, points = pattern.declared, pattern.points
    plain = declared.norm if isinstance(declared, Weighted) else declared
    if declared is None or points is None or pattern.margin is None:
        return None
    arrows = [arrow_of(pattern.steps, pattern.lines[0])] if pattern.direction == "constant" else []
    if declared.is_smooth:
        # The step determines the whole normal: a feature that does not move has no effect.
        fit = fit_plane_along(points, arrows, _gradient_shape(declared), whole=True) if arrows else None
        return Effective(_family_of(declared), declared, fit.normal) if fit is not None and fit.holds else None
    if not isinstance(plain, Lp):
        return None
    normals = [] if normal is None else [normal]
    if arrows:
        # Alone, a feature moves under ℓ∞ if no other has an effect; together, features move under ℓ1 if their effects are equal.
        fits = [fit_plane_along(points, arrows, power_shape(q), whole=q == 2.0) for q in (1.0, 2.0)]
        normals += [fit.normal for fit in fits if fit.holds]
    for candidate in normals:
        if _all_steepest(declared, candidate, pattern.steps):
            return Effective(_family_of(declared), declared, candidate)
    return None


def _family_of(declared: Norm) -> Family:
    named: dict[float, Family] = {1.0: "l1", 2.0: "l2", math.inf: "linf"}
    return named.get(declared.q, "lq") if isinstance(declared, Lp) else "weighted"


def _all_steepest(distance: Norm, normal: FloatArray, steps: Steps) -> bool:
    """True if no telling step is longer, in this distance, than the way to the plane it reaches."""
    rows = steps.telling
    lengths = np.asarray(distance(steps.moves[rows])) * float(distance.dual(normal))
    return bool((lengths * (1 - _STEEPEST - 8 * steps.blur[rows]) <= np.abs(steps.moves[rows] @ normal)).all())


def _one_feature(pattern: Pattern, normal: FloatArray | None) -> Effective:
    steps, rows = pattern.steps, pattern.steps.telling
    features = sorted({int(np.abs(steps.moves[row]).argmax()) for row in rows})
    alike = "weights that favour the same feature cannot be told apart from none"
    if pattern.direction == "by side":
        return Effective("l1", None, normal, "one feature moves, which one depends on the side")
    if normal is not None:
        largest = float(np.abs(normal).max())
        if abs(normal[features[0]]) < largest * (1 - 1e-6):
            return Effective(
                "l1", None, normal, "another feature has more effect: weighted l1, or features that are held"
            )
    plain = pattern.declared.norm if isinstance(pattern.declared, Weighted) else pattern.declared
    if plain is not None and plain != l1:
        return Effective("l1", None, normal, f"{alike}, nor from features that are held")
    return Effective("l1", None if pattern.margin is None else l1, normal, alike)


def _largest_change(pattern: Pattern, normal: FloatArray | None) -> Effective | None:
    """ℓ∞, if the features that move do so by the same size, on each side by itself; None if they do not."""
    steps = pattern.steps
    by_side = pattern.direction == "by side"
    groups = list(pattern.lines) if by_side else [steps.telling]
    moved = [int(steps.moved[rows].any(axis=0).sum()) for rows in groups]
    levels = [_level_features(steps, rows) for rows, count in zip(groups, moved, strict=True) if count > 1]
    if not levels or any(level is None for level in levels):
        return None
    if sum(len(level) for level in levels if level is not None) == sum(count for count in moved if count > 1):
        return Effective("linf", None if by_side or pattern.margin is None else linf, normal)
    if pattern.straight:  # some features move less than the others, always by the same share
        return None
    return Effective("linf", linf, normal, "features without effect move at random")


def _level_features(steps: Steps, rows: IntArray) -> IntArray | None:
    """The features that move by the same size in every row, none by more; None unless that is no coincidence."""
    size, noise = np.abs(steps.moves[rows]), steps.noise[rows]
    largest = size.max(axis=1)
    level = (size >= (largest - WITHIN * noise.max(axis=1) * math.sqrt(2) - 1e-9 * largest)[:, None]).all(axis=0)
    features = np.flatnonzero(level)
    if len(features) < 2 or (~level & steps.moved[rows].any(axis=0)).sum() > len(features):
        return None
    blurred = float(np.min(2 * WITHIN * noise.max(axis=1) * math.sqrt(2) / largest)) + 1e-9
    evidence = (len(features) - 1) * math.log10(1 / blurred) if blurred < 1 else 0.0
    return features if evidence >= EVIDENCE else None


def _dense(pattern: Pattern, points: PlanePoints, normal: FloatArray | None) -> Effective:
    """Several features move in fixed proportions: test ℓ2, the declared distance, every ℓq."""
    arrows = [arrow_of(pattern.steps, line) for line in pattern.lines]
    if len(arrows) > 1 and ((arrows[0].direction != 0) & (arrows[1].direction != 0)).any():
        return Effective("unknown", None, normal, "the two sides move the same features in different proportions")
    straight = around_exponent(points, arrows, 2.0, spare=0)
    if straight is not None:
        if not straight.proven or straight.high - straight.low > _WIDEST:
            return Effective("unknown", None, normal, "l2 fits, but too little was seen to exclude other distances")
        return Effective("l2", l2, fit_plane_along(points, arrows, power_shape(2.0)).normal)
    if pattern.declared is not None and pattern.declared.is_smooth and pattern.direction == "constant":
        fit = fit_plane_along(points, arrows, _gradient_shape(pattern.declared))
        if fit.holds:
            family: Family = "lq" if isinstance(pattern.declared, Lp) else "weighted"
            return Effective(family, pattern.declared, fit.normal)
    power = fit_exponent(points, arrows)
    if power is not None:
        named = _named_exponent(power)
        return replace(
            named, normal=fit_plane_along(points, arrows, power_shape(power.best)).normal if named.distance else normal
        )
    # Rejected: was the test able to?
    plain = fit_plane_along(points, arrows, power_shape(2.0))
    if plain.evidence >= EVIDENCE:
        return Effective("weighted", None, normal, "feature weights or a matrix; which ones, one model does not show")
    return Effective("unknown", None, normal, "too few points of the plane to test distances against")


def _named_exponent(power: Exponent) -> Effective:
    q = simplest_between(power.low, power.high, power.best)
    if power.high - power.low > _WIDEST:
        return Effective("unknown", note="answers are too coarse to tell one lq from its neighbours")
    if power.proven or (power.high - power.low < 1e-5 and (q * _SHORT).is_integer()):
        return Effective("l2", l2) if q == 2 else Effective("lq", Lp(q))
    return Effective("unknown", note=f"lp:{q:.4g} fits, but so might feature weights")


def arrow_of(steps: Steps, line: IntArray) -> Arrow:
    """The common direction of the rows of one line, long steps counting more."""
    signs = np.sign(steps.units[line] @ steps.units[line[0]])
    moves = np.where(steps.moved[line].any(axis=0), signs @ steps.moves[line], 0.0)
    noise = np.sqrt((steps.noise[line] ** 2).sum(axis=0))
    length = float(np.linalg.norm(moves))
    return Arrow(moves / length, np.where(moves != 0, noise / length, 0.0))


def _gradient_shape(norm: Norm) -> Shape:
    """How a smooth distance turns a direction into the normal it belongs to; errors by a difference quotient."""

    def shape(arrow: Arrow) -> Arrow:
        at = norm.gradient(arrow.direction)
        bound = norm.gradient_error(arrow.direction, arrow.noise)
        if bound is None:
            bound = np.abs(norm.gradient(arrow.direction + arrow.noise) - at) + arrow.noise
        return Arrow(at, bound)

    return shape
