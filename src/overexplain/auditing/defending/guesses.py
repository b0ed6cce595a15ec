"""The normal from many explanations of chosen questions and nothing else: estimators for an attacker without labels.

X are questions, Z their explanations. Under any fixed distance an explanation moves along one direction v, by t = (b − a·x)/(a·v):
an affine function of the question whose gradient is the normal. Whatever is wrong with t (rounding, noise, a random margin, one
level a side) averages out, and the question itself is known exactly. On which side a question lies shows in the sign of t.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.extraction.inexact.estimators import displacement_mean, separator, sided_tls
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import Norm

Guess = Callable[[FloatArray, FloatArray, IntArray], FloatArray]

ROWS_AT_A_TIME = 4
"""The linear program of `narrowest_band` starts with, and grows by, this many times p answers."""


def main_axis(steps: FloatArray) -> FloatArray:
    """The direction that most of the steps lie along, of length 1."""
    largest = float(np.abs(steps).max()) or 1.0
    return np.asarray(np.linalg.eigh((steps / largest).T @ (steps / largest))[1][:, -1])


def read_sides(X: FloatArray, Z: FloatArray) -> IntArray:
    """−1 or +1 for every question: explanations lead across the plane, so opposite steps mean opposite sides.

    Which of the two is Yes they do not show; the first question counts as −1.
    """
    along = (Z - X) @ main_axis(Z - X)
    along = along if along[0] >= 0 else -along
    return np.where(along >= 0, NO, YES).astype(np.int64)


def slopes(X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The normal by least squares: how the length of the step changes with the question, one level a side."""
    design, lengths = _regression(X, Z, sides)
    return _unit(_least_squares(design, lengths)[: X.shape[1]])


def narrowest_band(X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The normal by the least largest residual: right to about 1/n where errors are spread evenly between two ends.

    Minimises h over |t_i − g·x_i − level| ≤ h, a linear program of which few answers bind.
    """
    from scipy.optimize import linprog

    design, lengths = _regression(X, Z, sides)
    count = design.shape[1]
    if len(lengths) < 2 * count:
        raise InvalidInput(f"{len(lengths)} answers do not determine a band in {X.shape[1]} features")
    size = float(np.abs(lengths).max()) or 1.0
    guess = _least_squares(design, lengths / size)
    used = np.zeros(len(lengths), dtype=bool)
    more = ROWS_AT_A_TIME * count
    used[np.argsort(-np.abs(lengths / size - design @ guess))[:more]] = True
    ones = np.ones(len(lengths))
    rows = np.vstack([np.column_stack([design, -ones]), np.column_stack([-design, -ones])])
    limits = np.concatenate([lengths, -lengths]) / size
    cost = np.zeros(count + 1)
    cost[-1] = 1.0
    free = [(None, None)] * count + [(0.0, None)]
    while True:
        both = np.concatenate([used, used])
        found = linprog(cost, A_ub=rows[both], b_ub=limits[both], bounds=free, method="highs")
        if found.x is None:
            return _unit(guess[: X.shape[1]])
        excess = np.abs(lengths / size - design @ found.x[:count]) - found.x[-1]
        excess[used] = 0.0
        worst = np.argsort(-excess)[:more]
        worst = worst[excess[worst] > 1e-10]
        if not len(worst):
            return _unit(found.x[: X.shape[1]])
        used[worst] = True
        more *= 2


def through_answers(_: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The normal of the plane next to the explanations, one level a side: total least squares."""
    return sided_tls(Z, sides)


def between(X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The normal of the plane that keeps the two sides apart best, questions and explanations alike."""
    points, across = np.vstack([Z, X]), np.concatenate([sides, -sides])
    return separator(points, across, _towards_yes(slopes(X, Z, sides), X, Z, sides))


def by_mean_step(norm: Norm, X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    """The normal that belongs to the mean step under a smooth distance."""
    return _unit(norm.gradient(displacement_mean(X, Z, sides)))


def rough_normal(X: FloatArray, Z: FloatArray) -> FloatArray:
    """What a few explanations of any kind suggest: the plane between the sides, or else the direction of the steps."""
    sides = read_sides(X, Z)
    for guess in (between, through_answers):
        try:
            return _towards_yes(guess(X, Z, sides), X, Z, sides)
        except (InvalidInput, np.linalg.LinAlgError):
            continue
    return main_axis(Z - X)


def guesses_for(norm: Norm | None) -> dict[str, Guess]:
    """The estimators by name, the cheap ones first; the mean step only where the distance is smooth."""
    found: dict[str, Guess] = {
        "regression of the steps": slopes,
        "plane through the answers": through_answers,
        "narrowest band": narrowest_band,
        "separator": between,
    }
    return found if norm is None or not norm.is_smooth else {"mean step": partial(by_mean_step, norm), **found}


def _regression(X: FloatArray, Z: FloatArray, sides: IntArray) -> tuple[FloatArray, FloatArray]:
    """Columns (question, levels) and the length of every step along the main one."""
    steps = Z - X
    levels = [sides == side for side in (NO, YES) if (sides == side).any()]
    return np.column_stack([X - X.mean(axis=0), *levels]), np.asarray(steps @ main_axis(steps))


def _least_squares(design: FloatArray, values: FloatArray) -> FloatArray:
    """The coefficients of `values` on the columns, which must be at least as many."""
    if len(values) < design.shape[1]:
        raise InvalidInput(f"{len(values)} answers do not determine {design.shape[1]} unknowns")
    size = np.sqrt((design * design).sum(axis=0))
    size = np.where(size > 0, size, 1.0)
    columns = design / size  # of one length: the product below then loses no more digits than it must
    return np.asarray(np.linalg.solve(columns.T @ columns, columns.T @ values) / size)


def _towards_yes(normal: FloatArray, X: FloatArray, Z: FloatArray, sides: IntArray) -> FloatArray:
    return -normal if float(normal @ (sides @ (Z - X))) > 0 else normal


def _unit(vector: FloatArray) -> FloatArray:
    largest = float(np.abs(vector).max())
    if not (largest > 0 and np.isfinite(largest)):
        raise InvalidInput("the steps show no direction")
    return np.asarray(vector / largest / np.linalg.norm(vector / largest))
