"""Fitted quadratic classifiers become a QuadraticModel: quadratic discriminant analysis, and linear models of second powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from overexplain.errors import UnsupportedModel
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.quadratic import QuadraticModel
from overexplain.models.sklearn_check import ask
from overexplain.models.sklearn_parts import class_of

_TRIALS = 256
_AGREEMENT = 1e-7
"""How far the score read and the classifier's own may differ, relative to the terms of its sums."""


def load_quadratic(classifier: Any) -> QuadraticModel:
    """The model of a fitted scikit-learn classifier of two classes; Yes is its second class.

    Takes QuadraticDiscriminantAnalysis and a Pipeline of StandardScaler, PolynomialFeatures(degree=2) and a linear classifier
    (scalers before or after the powers), and compares what it read with the original's own scores.

    >>> from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X, y = np.vstack([rng.normal(size=(30, 2)), 1 + 2 * rng.normal(size=(30, 2))]), np.repeat([0, 1], 30)
    >>> classifier = QuadraticDiscriminantAnalysis().fit(X, y)
    >>> bool(np.array_equal(load_quadratic(classifier).labels(X) == 1, classifier.predict(X) == 1))
    True
    """
    names = {cls.__name__ for cls in type(classifier).__mro__}
    if "QuadraticDiscriminantAnalysis" in names:
        _two_classes(classifier)
        model, centre, spread = _discriminant(classifier)
    elif hasattr(classifier, "steps"):
        model, centre, spread = _powers(classifier)
    else:
        raise UnsupportedModel(
            f"a {class_of(classifier)} cannot be read as a quadratic model; known are QuadraticDiscriminantAnalysis and a "
            "Pipeline of PolynomialFeatures(degree=2) and a linear classifier. Linear ones: load_model"
        )
    _check(classifier, model, centre, spread)
    return model


def _two_classes(classifier: Any) -> None:
    if not hasattr(classifier, "classes_"):
        raise UnsupportedModel(f"the {class_of(classifier)} is not fitted; call fit first")
    if len(classifier.classes_) != 2:
        raise UnsupportedModel(
            f"the {class_of(classifier)} has {len(classifier.classes_)} classes, a Yes/No model has 2"
        )


def _discriminant(classifier: Any) -> tuple[QuadraticModel, FloatArray, FloatArray]:
    """log P(class 1 | x) − log P(class 0 | x): for each class −½‖(x − mean)·rotation/√scaling‖² − ½Σ log scaling + log prior."""
    p = len(classifier.means_[0])
    square, linear, constant = np.zeros((p, p)), np.zeros(p), 0.0
    for sign, rotation, scaling, mean, prior in zip(
        (-1.0, 1.0), classifier.rotations_, classifier.scalings_, classifier.means_, classifier.priors_, strict=True
    ):
        inverse = (rotation / scaling) @ rotation.T
        square -= sign * inverse / 2
        linear += sign * inverse @ mean
        constant += sign * (np.log(prior) - float(mean @ inverse @ mean + np.log(scaling).sum()) / 2)
    spread = np.sqrt(
        np.max(
            [((r * r) * s).sum(axis=1) for r, s in zip(classifier.rotations_, classifier.scalings_, strict=True)],
            axis=0,
        )
    )
    return QuadraticModel(square, linear, constant), np.mean(classifier.means_, axis=0), spread


def _powers(pipeline: Any) -> tuple[QuadraticModel, FloatArray, FloatArray]:
    steps = [(place, step) for place, step in pipeline.steps if step is not None and step != "passthrough"]
    classifier = steps[-1][1]
    _two_classes(classifier)
    kinds = [type(step).__name__ for _, step in steps[:-1]]
    if kinds.count("PolynomialFeatures") != 1:
        raise UnsupportedModel(f"a quadratic pipeline has one PolynomialFeatures step, this one has {kinds}")
    if not hasattr(classifier, "coef_"):
        raise UnsupportedModel(
            f"the last step is a {class_of(classifier)}, which has no coef_: only linear ones are read"
        )
    at = kinds.index("PolynomialFeatures")
    weights, constant = (
        np.asarray(classifier.coef_, dtype=np.float64).ravel(),
        float(np.ravel(classifier.intercept_)[0]),
    )
    for place, step in reversed(steps[at + 1 : -1]):  # scaled powers: score = Σ w·(v − shift)/scale
        shift, scale = _scaler(place, step, len(weights))
        weights = weights / scale
        constant -= float(weights @ shift)
    powers = np.asarray(steps[at][1].powers_)
    if powers.sum(axis=1).max(initial=0) > 2:
        raise UnsupportedModel(f"the powers go up to degree {powers.sum(axis=1).max()}; a quadratic model has degree 2")
    p = powers.shape[1]
    square, linear = np.zeros((p, p)), np.zeros(p)
    for weight, row in zip(weights, powers, strict=True):
        used = np.repeat(np.arange(p), row)
        if len(used) == 0:
            constant += float(weight)
        elif len(used) == 1:
            linear[used[0]] += weight
        else:
            square[used[0], used[1]] += weight
    square = square / 2 + square.T / 2
    centre, spread = np.zeros(p), np.ones(p)
    for place, step in reversed(steps[:at]):  # u = (x − shift)/scale before the powers
        shift, scale = _scaler(place, step, p)
        square, linear = square / np.outer(scale, scale), linear / scale
        constant += float(shift @ square @ shift - linear @ shift)
        linear = linear - 2 * square @ shift
        centre, spread = centre * scale + shift, spread * scale
    return QuadraticModel(square, linear, constant), centre, spread


def _scaler(place: str, step: Any, count: int) -> tuple[FloatArray, FloatArray]:
    """(shift, scale) of a StandardScaler: it gives (x − shift)/scale."""
    if type(step).__name__ != "StandardScaler":
        raise UnsupportedModel(f"step {place!r} is a {class_of(step)}; beside the powers only a StandardScaler is read")
    shift = np.zeros(count) if step.mean_ is None or not step.with_mean else np.asarray(step.mean_, dtype=np.float64)
    scale = np.ones(count) if step.scale_ is None else np.asarray(step.scale_, dtype=np.float64)
    return shift, scale


def _check(classifier: Any, model: QuadraticModel, centre: FloatArray, spread: FloatArray) -> None:
    rows = centre + spread * np.random.default_rng(0).normal(size=(_TRIALS, model.dimension)) * 2
    theirs = ask(classifier, "decision_function", rows)
    size = (np.abs(rows) @ np.abs(model.matrix) * np.abs(rows)).sum(axis=1) + np.abs(rows) @ np.abs(model.linear)
    off = np.abs(np.asarray(theirs, dtype=np.float64) - model.value(rows)) / (size + abs(model.constant))
    if not off.max() <= _AGREEMENT:
        raise UnsupportedModel(
            f"the quadratic model read from the {class_of(classifier)} contradicts its own decision_function by a share of "
            f"{off.max():.1g}: a subclass or a version of scikit-learn computes something else"
        )
