"""The normal from many imperfect answers: four estimators, and a choice between them that does not know the truth.

X are questions, Z their answers, `sides` the labels of the questions (+1 Yes, −1 No; rows with 0 are left out). Answers of No
questions should lie on the Yes side and the other way round. Every estimate is a unit normal that points to Yes.

| estimator         | right if                                                | error with n answers                |
|-------------------|---------------------------------------------------------|-------------------------------------|
| displacement_mean | displacements point along the normal on average (ℓ2)    | σ√p / (d√n), d their RMS length     |
| sided_tls         | answers scatter about a plane per side, alike in all directions | the same, d the answers' spread     |
| ols_along         | they scatter along one fixed direction (random margins) | 1/√n, without the bias of sided_tls |
| separator         | answers are valid: they lie on the side they should     | about 1/n if margins reach down to 0 |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES

Estimator = Callable[[FloatArray, FloatArray, IntArray], FloatArray]

WIDEST = 20.0
"""The separator is looked for among normals u + Σ r_k q_k with |r_k| up to this, u the starting guess."""

FIRST_ROWS = 4
"""The separator's linear program starts with, and grows by, this many times p answers."""

AGREED = 3.0
"""Where answers do not separate, an estimate farther than this many standard errors from the plane of the answers is out."""

MEAN = "mean displacement"

UNKNOWN_ANGLE = 0.5
"""The angle that a single answer, which nothing confirms, is taken to be off by."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """A plane normal·x = offset (‖normal‖₂ = 1, towards Yes), and about how far off the normal is (radians): no bound."""

    normal: FloatArray
    offset: float
    angle: float
    name: str


def displacement_mean(X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The mean displacement towards Yes: the normal, if the service's distance is ℓ2.

    >>> displacement_mean(np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([-1])).tolist()
    [0.6, 0.8]
    """
    return _unit(-(sides @ (Z - X)))


def sided_tls(Z: FloatArray, sides: IntArray) -> FloatArray:
    """The direction in which the answers of each side scatter least: total least squares, one level per side.

    Exact under a constant margin. It points from the answers of Yes questions to those of No questions.
    """
    groups = _present(sides)
    if len(Z) < Z.shape[1] - 1 + len(groups):
        raise InvalidInput(f"{len(Z)} answers on {len(groups)} side(s) do not determine {Z.shape[1]} features")
    centred = Z - sum(np.outer(sides == side, Z[sides == side].mean(axis=0)) for side in groups)
    normal = np.linalg.svd(centred, full_matrices=False)[2][-1]
    if len(groups) == 2:
        normal = normal * _sign(float(normal @ (Z[sides == NO].mean(axis=0) - Z[sides == YES].mean(axis=0))))
    return np.asarray(normal)


def ols_along(X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The normal by regression of the answers' coordinate along the displacements on all others, one level per side.

    If displacements share one direction v, all that is wrong with an answer is wrong along v, and least squares along v has no
    bias, whatever the law of the margins.
    """
    groups = _present(sides)
    if len(Z) < Z.shape[1] - 1 + len(groups):
        raise InvalidInput(f"{len(Z)} answers on {len(groups)} side(s) do not determine {Z.shape[1]} features")
    along = displacement_mean(X, Z, sides)
    centred = Z - sum(np.outer(sides == side, Z[sides == side].mean(axis=0)) for side in groups)
    across = frame(along)
    slopes = np.linalg.lstsq(centred @ across.T, centred @ along, rcond=None)[0]
    return _unit(along - slopes @ across)


def separator(Z: FloatArray, sides: IntArray, guess: FloatArray | None = None) -> FloatArray:
    """The normal that keeps the answers of both sides apart as well as possible: a linear program.

    Maximises t over t ≤ −side_i (a·z_i − b) and a·u = 1; u is the guess, `sided_tls` unless given.
    """
    if len(_present(sides)) < 2:
        raise InvalidInput("a separator needs answers from both sides")
    u = sided_tls(Z, sides) if guess is None else _unit(guess)
    middle, across = Z.mean(axis=0), frame(u)
    away = -sides.astype(np.float64)
    rows = (Z - middle) / (float(np.abs(Z - middle).max()) or 1.0)
    # Unknowns r (a = u + r·across), b, t: t + away·b − away·(rows·acrossᵀ)·r ≤ away·rows·u.
    coefficients = np.column_stack([-away[:, None] * (rows @ across.T), away, np.ones(len(Z))])
    limits = away * (rows @ u)
    # Few answers bind: start with those nearest to the other side, add what the plane found so far leaves on the wrong side.
    used = np.zeros(len(Z), dtype=bool)
    used[np.argsort(limits)[: FIRST_ROWS * len(u)]] = True
    more = FIRST_ROWS * len(u)
    while True:
        x = _best_margin(coefficients[used], limits[used])
        if x is None:
            return u
        excess = np.where(used, 0.0, coefficients @ x - limits)
        worst = np.argsort(-excess)[:more]
        worst = worst[excess[worst] > 1e-9]
        if len(worst) == 0:
            return _unit(u + x[: len(u) - 1] @ across)
        used[worst] = True
        more *= 2


def _best_margin(coefficients: FloatArray, limits: FloatArray) -> FloatArray | None:
    """The x with the largest last entry (a margin) that keeps to coefficients·x ≤ limits; None if the solver gives up."""
    from scipy.optimize import linprog

    p = coefficients.shape[1] - 1
    cost = np.zeros(p + 1)
    cost[-1] = -1.0
    # The level stays among the answers, which keeps the program bounded.
    box = [(-WIDEST, WIDEST)] * (p - 1) + [(-WIDEST * p, WIDEST * p), (None, WIDEST * p)]
    found = linprog(cost, A_ub=coefficients, b_ub=limits, bounds=box, method="highs")
    return None if found.x is None else np.asarray(found.x)


def split_angle(estimator: Estimator, X: FloatArray, Z: FloatArray, sides: IntArray) -> float:
    """About how far an estimate is off by chance: half the angle between the estimates from two halves of the answers.

    Errors fall at least like 1/√n, so each half is off by √2 as much as the whole, and their difference by 2. It sees no bias.
    """
    # Every other answer of each side, so that both halves have both sides.
    half = np.zeros(len(Z), dtype=bool)
    for side in _present(sides):
        half[np.flatnonzero(sides == side)[::2]] = True
    one, other = (estimator(X[part], Z[part], sides[part]) for part in (half, ~half))
    return _angle(one, other) / 2


def n_needed(p: int, accuracy: float, noise: float, distance: float) -> int:
    """About how many answers averaging takes: n ≈ p σ²/(d² ε²), σ the noise of an entry, d the RMS displacement.

    Answers rounded to k decimals have σ = 10⁻ᵏ/√12.

    >>> n_needed(20, 1e-3, noise=0.01 / 12**0.5, distance=1.0)
    167
    """
    return max(1, math.ceil(p * (noise / (distance * accuracy)) ** 2))


def best_estimate(X: FloatArray, Z: FloatArray, sides: IntArray) -> Estimate:
    """The estimate with the smallest error as far as the answers themselves can tell.

    Chance errors show in split halves. A bias shows in answers that end up on the wrong side: if â·(z − z') > 0 although z should
    lie below the plane and z' above it, then â is off by at least asin(â·(z − z')/‖z − z'‖). Where answers are not valid, and no
    plane separates them, estimates that disagree with the plane through the answers are out.
    """
    known = sides != 0
    X, Z, sides = X[known], Z[known], sides[known]
    if len(Z) == 0:
        raise InvalidInput("an estimate needs at least one answer whose side is known")
    # Features in very different units: work in units in which questions spread alike.
    spread = np.ptp(np.vstack([X, Z]), axis=0)
    scale = np.exp2(np.round(np.log2(np.where(spread > 0, spread, 1.0))))
    scale = scale if scale.max() > 8 * scale.min() else np.ones(Z.shape[1])
    found = _candidates(X / scale, Z / scale, sides, scale)
    best = min(found, key=lambda estimate: estimate.angle)
    normal = best.normal / scale
    length = float(np.linalg.norm(normal))
    return Estimate(normal / length, best.offset / length, best.angle, best.name)


def _candidates(X: FloatArray, Z: FloatArray, sides: IntArray, scale: FloatArray) -> list[Estimate]:
    def mean(X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
        """In the features' own units, in which displacements under ℓ2 lie along the normal."""
        return _unit(scale * displacement_mean(scale * X, scale * Z, sides))

    estimators: dict[str, Estimator] = {
        MEAN: mean,
        "total least squares": lambda X, Z, sides: _towards_yes(sided_tls(Z, sides), X, Z, sides),
        "least squares along the displacement": ols_along,
        "separator": lambda X, Z, sides: separator(Z, sides, _towards_yes(sided_tls(Z, sides), X, Z, sides)),
    }
    two_sides = len(_present(sides)) == 2
    enough = {MEAN: 2}  # both halves must allow the estimate
    many = 2 * (Z.shape[1] + 2) + 2
    normals: dict[str, FloatArray] = {}
    errors: dict[str, float] = {}
    for name, estimator in estimators.items():
        if len(Z) < enough.get(name, many) or (name == "separator" and not two_sides):
            continue
        normals[name] = estimator(X, Z, sides)
        errors[name] = split_angle(estimator, X, Z, sides)
    if not normals:
        only = mean(X, Z, sides)
        return [_estimate(MEAN, only, UNKNOWN_ANGLE, Z, sides)]
    separable = "separator" in normals and _overlap(normals["separator"], Z, sides) <= 0
    plane = normals.get("total least squares")
    found = []
    for name, normal in normals.items():
        error = errors[name]
        if plane is None:
            error = max(error, _scatter(normal, Z, sides))
        elif separable:
            error = max(error, 2 * _overlap(normal, Z, sides))
        else:
            apart = _angle(normal, plane)
            agreed = apart <= AGREED * (error + errors["total least squares"])
            error = max(error, apart / AGREED if agreed else apart)
        found.append(_estimate(name, normal, error, Z, sides))
    return found


def _estimate(name: str, normal: FloatArray, angle: float, Z: FloatArray, sides: IntArray) -> Estimate:
    """With an offset: halfway between the levels of the two sides' answers; with one side only, that side's nearest answer."""
    levels = {side: Z[sides == side] @ normal for side in _present(sides)}
    if len(levels) == 2:
        offset = float(levels[NO].mean() + levels[YES].mean()) / 2
    else:
        side, level = next(iter(levels.items()))
        offset = float(level.min() if side == NO else level.max())
    return Estimate(normal, offset, max(float(angle), 4 * np.finfo(np.float64).eps), name)


def _overlap(normal: FloatArray, Z: FloatArray, sides: IntArray) -> float:
    """A lower bound on the normal's error if all answers are valid, from the two answers that are farthest on the wrong side."""
    levels = Z @ normal
    above, below = np.flatnonzero(sides == YES), np.flatnonzero(sides == NO)
    if len(above) == 0 or len(below) == 0:
        return 0.0
    high, low = above[levels[above].argmax()], below[levels[below].argmin()]
    gap, distance = float(levels[high] - levels[low]), float(np.linalg.norm(Z[high] - Z[low]))
    rounding = 64 * np.finfo(np.float64).eps * float(np.abs(Z).max()) * math.sqrt(len(normal))
    return math.asin(min(1.0, gap / distance)) if gap > rounding else 0.0


def _scatter(normal: FloatArray, Z: FloatArray, sides: IntArray) -> float:
    """The angle by which a wrong normal would make the answers of one side scatter as they do; 0 if they lie in one plane."""
    along, across, count = 0.0, 0.0, 0
    for side in _present(sides):
        points = Z[sides == side] - Z[sides == side].mean(axis=0)
        levels = points @ normal
        along += float(levels @ levels)
        across += float((points * points).sum() - levels @ levels)
        count += len(points) - 1
    if count == 0 or across <= 0:
        return UNKNOWN_ANGLE
    # The normal's error has p − 1 directions, of which a scatter of points feels one at a time.
    return math.atan(math.sqrt(along / across * (len(normal) - 1)))


def frame(u: FloatArray) -> FloatArray:
    """p − 1 orthonormal rows orthogonal to the unit vector u."""
    mirror = u.copy()
    mirror[0] += math.copysign(1.0, u[0])
    mirror /= np.linalg.norm(mirror)
    return np.asarray(np.eye(len(u))[1:] - 2 * np.outer(mirror[1:], mirror))


def _towards_yes(normal: FloatArray, X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    return normal * _sign(float(normal @ -(sides @ (Z - X))))


def _present(sides: IntArray) -> list[int]:
    return [side for side in (NO, YES) if (sides == side).any()]


def _sign(value: float) -> float:
    return -1.0 if value < 0 else 1.0


def _unit(vector: FloatArray) -> FloatArray:
    largest = float(np.abs(vector).max())
    if not largest > 0:
        raise InvalidInput("the displacements cancel: they show no direction")
    return np.asarray(vector / largest / np.linalg.norm(vector / largest))


def _angle(one: FloatArray, other: FloatArray) -> float:
    return 2 * math.atan2(float(np.linalg.norm(one - other)), float(np.linalg.norm(one + other)))
