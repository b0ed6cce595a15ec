"""Counterfactual clamping (Dissanayake, Dutta 2024): a counterfactual is no ordinary Yes; it must only not score below ½.

With ŷ(u) = σ(w·u + b) the loss of an ordinary point of label y is the cross-entropy L(ŷ, y); that of a counterfactual is

    L(ŷ, k) − H(k)  where ŷ < k,  0 elsewhere,   k = ½, H the entropy.

Both are convex in (w, b), and the second's slope is 0 where it begins, so that one minimum is found from anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.baselines.answered import answered_questions
from overexplain.baselines.attempt import AnyOracle, Attempt, Rng, attempted
from overexplain.baselines.knobs import as_positive
from overexplain.baselines.learners import MANY_FEATURES, STRENGTH, unscaled
from overexplain.baselines.questions import Questions
from overexplain.errors import InvalidInput
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.oracles.scores import logistic

REQUESTS = 400
"""Without a budget; the paper has up to 400 questions."""

LEVEL = 0.5
"""k: the score at which counterfactuals are clamped."""

STEPS = 200
"""The most steps of Newton's method; L-BFGS takes ten times as many."""

HALVED = 2.0**-40
"""A step that must be shorter than this share of Newton's leads nowhere."""

DONE = 1e-13
"""The minimum is reached when a step would lower the loss by this share of it."""

FLAT = 1e-14
"""Added to the curvature along the intercept, as a share of all curvature: nothing else keeps it from 0."""


def train_clamped(
    oracle: AnyOracle,
    *,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: Rng = None,
    record: bool = True,
    side: int = NO,
    level: float = LEVEL,
    strength: float = STRENGTH,
) -> Extraction:
    """The model trained by the clamping loss; all of the budget (or 400 requests) is used.

    accuracy, orient   of no effect: the attack cannot tell its error, and labels tell the sides anyway
    side               explanations are asked for questions with this label only: the denied, as in the paper
    level              k, the score at which counterfactuals are clamped (1 − k if `side` is Yes)
    strength           C of ½‖w‖² + C·(sum of losses): how much examples count

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 1.0)
    >>> found = train_clamped(ModelOracle(secret, "l2"), bounds=(-1.0, 1.0), budget=200, rng=0)
    >>> found.spent.requests, found.hyperplane.angle_to(secret) < 0.05
    (200, True)
    """
    if side not in (YES, NO):
        raise InvalidInput(f"side must be +1 (Yes) or -1 (No), got {side!r}")
    weight, clamp = as_positive(strength, "strength"), as_positive(level, "level")
    if clamp >= 1:
        raise InvalidInput(f"level is a score between 0 and 1, got {level!r}")

    def run(attempt: Attempt) -> Extraction:
        attempt.need_labels("counterfactual clamping")
        attempt.need_explanations("counterfactual clamping")
        questions = Questions(attempt)
        asked = answered_questions(attempt, questions, attempt.limit(REQUESTS), (side,))
        scaled = [
            (part - questions.middle) / questions.units for part in (asked.questions, asked.answers[asked.explained])
        ]
        weights, intercept = fit_clamped(scaled[0], -side * asked.labels, scaled[1], clamp, weight)
        return attempt.result(
            unscaled(-side * weights, -side * intercept, questions),
            np.vstack([asked.questions, asked.answers[asked.explained]]),
            f"counterfactual clamping with {len(asked.labels)} labels and {len(scaled[1])} explanations "
            "(Dissanayake, Dutta 2024)",
            ("the model is linear", "explanations lie close behind the boundary", "no error is known"),
        )

    return attempted(run, oracle, accuracy, start, bounds, orient, budget, rng, record)


def fit_clamped(
    points: FloatArray, labels: IntArray, clamped: FloatArray, level: float = LEVEL, strength: float = STRENGTH
) -> tuple[FloatArray, float]:
    """The weights and the intercept that minimise `clamped_loss`: Newton's method, or L-BFGS where its matrix is large."""
    loss = ClampedLoss(points, labels, clamped, level, strength)
    start = np.zeros(points.shape[1] + 1)
    found = newton(loss, start) if len(start) <= MANY_FEATURES else _by_gradients(loss, start)
    return found[:-1], float(found[-1])


@dataclass(frozen=True, eq=False)
class ClampedLoss:
    """The mean clamping loss with ½‖w‖²/(C·n) added, as a function of parameters (w, b)."""

    points: FloatArray
    labels: IntArray
    clamped: FloatArray
    level: float = LEVEL
    strength: float = STRENGTH

    @property
    def _count(self) -> int:
        return len(self.points) + len(self.clamped)

    @property
    def _edge(self) -> float:
        """The logit of k."""
        return math.log(self.level) - math.log1p(-self.level)

    def _logits(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        weights, intercept = parameters[:-1], parameters[-1]
        return self.points @ weights + intercept, self.clamped @ weights + intercept

    def value(self, parameters: FloatArray) -> float:
        """The loss."""
        logits, low = self._logits(parameters)
        low = np.minimum(low, self._edge)  # above the edge: H(k), which is subtracted
        entropy = np.logaddexp(0.0, self._edge) - self.level * self._edge
        ordinary = np.logaddexp(0.0, -self.labels * logits).sum()
        clamps = (np.logaddexp(0.0, low) - self.level * low - entropy).sum()
        size = parameters[:-1] @ parameters[:-1] / (2 * self.strength)
        return float(ordinary + clamps + size) / self._count

    def gradient(self, parameters: FloatArray) -> FloatArray:
        """The slope of the loss."""
        logits, low = self._logits(parameters)
        pulls = -self.labels * logistic(-self.labels * logits)
        clamps = np.where(low < self._edge, logistic(low) - self.level, 0.0)
        slope = np.append(pulls @ self.points + clamps @ self.clamped, pulls.sum() + clamps.sum())
        slope[:-1] += parameters[:-1] / self.strength
        return slope / self._count

    def curvature(self, parameters: FloatArray) -> FloatArray:
        """The second derivatives; at the edge, where they jump, those above it."""
        logits, low = self._logits(parameters)
        bends = logistic(logits) * logistic(-logits)
        clamps = np.where(low < self._edge, logistic(low) * logistic(-low), 0.0)
        rows = np.column_stack([np.vstack([self.points, self.clamped]), np.ones(self._count)])
        matrix = rows.T @ (np.concatenate([bends, clamps])[:, None] * rows)
        matrix[np.diag_indices(len(parameters) - 1)] += 1 / self.strength
        return np.asarray(matrix / self._count)


def newton(loss: ClampedLoss, start: FloatArray) -> FloatArray:
    """The minimum of the loss by Newton's method, steps halved until they descend."""
    found, value = start, loss.value(start)
    for _ in range(STEPS):
        slope, matrix = loss.gradient(found), loss.curvature(found)
        matrix[-1, -1] += FLAT * matrix.trace()  # the intercept alone has no penalty
        step = np.linalg.solve(matrix, -slope)
        descent = -float(slope @ step)
        if descent <= DONE * value:
            break
        length = 1.0
        while length > HALVED and loss.value(found + length * step) > value - 1e-4 * length * descent:
            length /= 2
        if length <= HALVED:
            break  # rounding is all that is left
        found = found + length * step
        value = loss.value(found)
    return found


def _by_gradients(loss: ClampedLoss, start: FloatArray) -> FloatArray:
    """The minimum of the loss by L-BFGS."""
    from scipy.optimize import minimize

    steps = {"maxiter": 10 * STEPS, "maxfun": 20 * STEPS, "ftol": 1e-15, "gtol": 1e-10}
    return np.asarray(minimize(loss.value, start, jac=loss.gradient, method="L-BFGS-B", options=steps).x)
