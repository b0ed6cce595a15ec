"""What the attacks train: scikit-learn's logistic regression, in the unit of the questions."""

from __future__ import annotations

import warnings

import numpy as np

from overexplain.baselines.questions import Questions
from overexplain.errors import ExtractionFailed
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import Hyperplane

STRENGTH = 1e6
"""The usual C: labels are taken to be right, so examples count far more than a small normal."""

STEPS = 1000
"""The most steps of the solver; where a plane separates the examples perfectly, later ones hardly turn it."""

MANY_FEATURES = 500
"""Up to here Newton's method, with its p × p matrix, is the fastest way; beyond, L-BFGS."""


def trained(points: FloatArray, labels: IntArray, questions: Questions, strength: float) -> Hyperplane:
    """The plane of a logistic regression on labelled points; `strength` is scikit-learn's C: how much examples count."""
    from sklearn.linear_model import LogisticRegression

    solver = "newton-cholesky" if points.shape[1] <= MANY_FEATURES else "lbfgs"
    learner = LogisticRegression(C=strength, solver=solver, max_iter=STEPS, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "did not converge": the plane is used as it is, and judged by others
        model = learner.fit((points - questions.middle) / questions.units, labels)
    return unscaled(np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]), questions)


def unscaled(weights: FloatArray, intercept: float, questions: Questions) -> Hyperplane:
    """The plane of weights·u + intercept ≥ 0, u = (x − middle)/units, in the unit of the features."""
    if not np.isfinite(weights).all() or not weights.any():
        raise ExtractionFailed(
            "the trained model gives the same label everywhere: labels and explanations contradict each other"
        )
    normal = weights / questions.units
    return Hyperplane(normal, float(normal @ questions.middle) - intercept)
