"""How large the ball around a robust answer can look under the distance, and the point that still has the question's class.

With x' = x + w the robust answer to x, v = w/‖w‖_N1 and ‖a‖*_N2 ≤ C·‖a‖*_N1 for every model a that w allows, the *perspective
point* x' − ρ·C·v is on x's side of the plane, or on the plane itself: moving back by ρ·C·v undoes at least the ball's reach.
The smaller C, the more that says, so C is taken over K(w) and not over all a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedNorm
from overexplain.geometry.arrays import FloatArray, as_point
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.norms import Weighted
from overexplain.knowledge.enclosures import (
    ZERO,
    NotEnclosed,
    axis_length,
    dot,
    dual_spec,
    enclose,
    exponent_and_weights,
    power,
    root,
)
from overexplain.knowledge.evidence import Finder

NEARLY = Fraction(1, 10**9)
"""Under ℓ∞ a coordinate that moved this close to the farthest, relatively, counts as one of the farthest."""

EXACT_MATRICES = 8
"""The dual of a norm with a matrix takes an elimination in rationals: for more features than this it is done in float64."""

Rationals = Sequence[Fraction]


def perspective_ratio(distance: Norm, robustness: Norm, dimension: int, step: FloatArray | None = None) -> float:
    """The least C with ‖a‖*_N2 ≤ C·‖a‖*_N1 for every a, or, given a step, for every a in K(step); rounded up.

    Exact to a few units in the last place if N1 is a weighted ℓ1 and N2 depends on absolute values only, if N1 is a weighted
    ℓ∞, if N1 is ℓq or Mahalanobis and a step is given, if both are weighted ℓq, or if N1 = N2. Elsewhere it is a bound, in
    general not the least: ‖a‖*_N2 ≤ Σ|a_i|·‖e_i‖*_N2 and |a_i| ≤ ‖e_i‖_N1·‖a‖*_N1. Lengths that are not enclosed in rationals
    (an N2 with a large matrix, a norm of the user's own) are computed in float64 and enlarged by what that may lose.

    >>> from overexplain.geometry.norms import l1, l2, linf
    >>> perspective_ratio(l1, l2, 4), perspective_ratio(l1, linf, 4), perspective_ratio(linf, l2, 4)
    (2.0, 4.0, 1.0)

    The step tells which models are possible, and those may be fewer: under ℓ2 all are multiples of the step itself.

    >>> perspective_ratio(l2, linf, 2), perspective_ratio(l2, linf, 2, np.array([4.0, 0.0]))
    (1.4142135623730951, 1.0)
    """
    for made_for in (distance.dimension, robustness.dimension, None if step is None else len(step)):
        if made_for not in (None, dimension):
            raise DimensionMismatch(f"a norm or the step is made for {made_for} features, not for {dimension}")
    if step is not None and not step.any():
        raise InvalidInput("a step of length 0 shows no direction")
    if distance == robustness:
        return 1.0
    w = None if step is None else [Fraction(v) for v in step.tolist()]
    return _up(_ratio(distance, robustness, dimension, w))


def perspective_point(point: FloatArray, explanation: FloatArray, mechanism: Mechanism) -> FloatArray:
    """x' − ρ·C·v, rounded: a point of the question's class, or of the plane. With N1 = N2 it is where the ball touches the plane.

    >>> terms = Mechanism("linf", robustness="l2", radius=0.5)
    >>> perspective_point(np.array([0.0, 0.0]), np.array([2.0, 2.0]), terms)
    array([1.5, 1.5])
    """
    x = as_point(point, None, "point")
    answer = as_point(explanation, len(x), "explanation")
    mechanism.fits(len(x))
    if mechanism.radius is None:
        raise InvalidInput("a perspective point needs the radius; this one is secret")
    if mechanism.radius == 0.0:
        return answer
    if mechanism.distance is None or mechanism.robustness is None:
        raise InvalidInput("a perspective point needs the distance; this one is unknown")
    step = answer - x
    back = mechanism.radius * perspective_ratio(mechanism.distance, mechanism.robustness, len(x), step)
    return np.asarray(answer - back * (step / float(mechanism.distance(step))))


def _ratio(distance: Norm, robustness: Norm, p: int, w: Rationals | None) -> Fraction:
    form = _power_form(distance, p)
    if form is not None and form[0] == 1 and robustness.is_absolute:
        return _dual_above(robustness, form[1])  # a cube, |a_i| ≤ d_i, and all its corners are in K(w) up to signs
    if form is not None and form[0] == math.inf:
        d = form[1]
        farthest = range(p) if w is None else _farthest(d, w)
        return max(_dual_above(robustness, _along(i, d[i], p)) for i in farthest)  # a simplex: the best is a corner
    if w is not None and distance.is_smooth:
        at_step = _at_step(distance, robustness, w)
        if at_step is not None:
            return at_step
    ball = _power_form(robustness, p)
    if form is not None and ball is not None:
        return _between_powers(form[0], ball[0], [d / e for d, e in zip(form[1], ball[1], strict=True)])
    axes = [_axis_above(distance, i, p) for i in range(p)]
    return _reach(robustness, axes)


def _power_form(norm: Norm, p: int) -> tuple[Fraction | float, list[Fraction]] | None:
    """(q, weights) of a weighted ℓq, q = ∞ included; None of any other norm."""
    try:
        q, weights = exponent_and_weights(norm.spec, p)
    except (NotEnclosed, UnsupportedNorm):
        return None
    return math.inf if q is None else q, weights


# Exact cases.


def _farthest(d: Rationals, w: Rationals) -> list[int]:
    """The coordinates that moved farthest, or nearly so: the only ones in which a model can be other than 0."""
    moved = [weight * abs(v) for weight, v in zip(d, w, strict=True)]
    return [i for i, size in enumerate(moved) if size >= (1 - NEARLY) * max(moved)]


def _at_step(distance: Norm, robustness: Norm, w: Rationals) -> Fraction | None:
    """‖g‖*_N2 for the gradient g of a smooth N1, all of K(w) up to scale; None if the rounding of g is not known."""
    if isinstance(distance, Mahalanobis):  # g = M·w, of dual length ‖w‖
        g = [dot([Fraction(v) for v in row], w) for row in distance.matrix.tolist()]
        return _dual_above(robustness, g) / root(dot(g, w))[0]
    form = _power_form(distance, len(w))
    if form is not None and not isinstance(form[0], float):
        return _at_step_of_power(form[0], form[1], robustness, w)
    step = np.array([float(v) for v in w])
    errors = distance.gradient_error(step, np.zeros(len(step)))
    if errors is None:
        return None
    return _dual_above_of_floats(robustness, distance.gradient(step), errors)


def _at_step_of_power(q: Fraction, d: Rationals, robustness: Norm, w: Rationals) -> Fraction:
    """The same for ‖d·x‖_q: g_i is d_i·(d_i·|w_i|)^(q−1) with the sign of w_i, up to one factor."""
    moved = [weight * abs(v) for weight, v in zip(d, w, strict=True)]
    largest = max(moved)
    powers = [power(size / largest, q - 1) for size in moved]
    own = enclose(dual_spec(f"lp:{q}"), [Fraction(_down(low)) for low, _ in powers])[0]
    highest = [_up(weight * high) * (1 if v > 0 else -1) for weight, (_, high), v in zip(d, powers, w, strict=True)]
    if robustness.is_absolute:
        return _dual_above(robustness, [Fraction(v) for v in highest]) / own
    g = np.array(highest)
    return _dual_above_of_floats(robustness, g, 4 * UNIT_ROUNDOFF * np.abs(g)) / own


def _between_powers(q: Fraction | float, ball: Fraction | float, ratios: Rationals) -> Fraction:
    """max ‖u·ratios‖ in the dual of ℓ_ball over ‖u‖ ≤ 1 in the dual of ℓq: Hölder's inequality, where it is met."""
    if q >= ball:
        return max(ratios)
    exponent = 1 / (1 / Fraction(q) - (0 if ball == math.inf else 1 / Fraction(ball)))
    return enclose(f"lp:{exponent}", [Fraction(_up(ratio)) for ratio in ratios])[1]


# Lengths and bounds on them.


def _dual_above(norm: Norm, a: Rationals) -> Fraction:
    """‖a‖*, or a little more."""
    form = _power_form(norm, len(a))
    if form is not None:  # every quotient rounded up first: sums of rationals with many denominators are slow
        parts = [Fraction(_up(abs(v) / e)) for v, e in zip(a, form[1], strict=True) if v]
        # Along one axis every exponent gives the same length: no root, hence nothing lost.
        base = "linf" if form[0] == math.inf else f"lp:{form[0]}"
        return sum(parts, ZERO) if len(parts) < 2 else enclose(dual_spec(base), parts)[1]
    if len(a) <= EXACT_MATRICES or not _has_matrix(norm):
        try:
            return enclose(dual_spec(norm.spec), a, Finder())[1]
        except (NotEnclosed, UnsupportedNorm):
            pass
    return Fraction(float(norm.dual(np.array([float(v) for v in a])))) * (1 + _rounding(norm, len(a)))


def _dual_above_of_floats(norm: Norm, a: FloatArray, errors: FloatArray) -> Fraction:
    """‖a‖* or more, each a_i being known to within its error."""
    return _dual_above(norm, [Fraction(v) for v in a.tolist()]) + _reach(norm, [Fraction(v) for v in errors.tolist()])


def _reach(norm: Norm, sizes: Rationals) -> Fraction:
    """The most that ‖a‖* can be if each |a_i| is at most its size, by the triangle inequality."""
    one, p = Fraction(1), len(sizes)
    if _has_matrix(norm) and p > EXACT_MATRICES:
        axes = [Fraction(v) * (1 + _rounding(norm, p)) for v in norm.dual.units(p).tolist()]
    else:
        axes = [_dual_above(norm, _along(i, one, p)) for i in range(p)]
    return dot(sizes, [Fraction(_up(axis)) for axis in axes])


def _axis_above(norm: Norm, i: int, p: int) -> Fraction:
    """‖e_i‖, or a little more."""
    try:
        return axis_length(norm.spec, i, p, Finder())
    except UnsupportedNorm:
        return Fraction(float(norm(np.eye(p)[i]))) * (1 + _rounding(norm, p))


def _rounding(norm: Norm, p: int) -> Fraction:
    """How far, relatively, a length computed in float64 may be off."""
    return Fraction(max(norm.answer_rounding, 16 * (p + 8) * UNIT_ROUNDOFF))


def _has_matrix(norm: Norm) -> bool:
    inner = norm.norm if isinstance(norm, Weighted) else norm
    return isinstance(inner, Mahalanobis) or isinstance(inner.dual, Mahalanobis)


def _along(i: int, length: Fraction, p: int) -> Rationals:
    return [length if k == i else ZERO for k in range(p)]


def _up(value: Fraction) -> float:
    """The least float at or above."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def _down(value: Fraction) -> float:
    """The largest float at or below."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
