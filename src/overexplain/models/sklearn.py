"""Fitted scikit-learn classifiers become a hyperplane: read from fitted attributes, then compared with the original.

The result must agree with the object's own `decision_function` and `predict` on many points, so that a subclass or a
version that computes something else is refused rather than misread. scikit-learn itself is never imported here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from overexplain.errors import NotFinite, UnsupportedModel, ZeroNormal
from overexplain.geometry.arrays import FloatArray, as_point
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.additive import Additive
from overexplain.models.linear import LinearModel, as_probability
from overexplain.models.sklearn_check import (
    Trial,
    check_labels,
    check_score,
    check_support_vectors,
    default_names,
    gives_sigmoid,
)
from overexplain.models.sklearn_parts import Parts, class_of, feature_names, kind_of, take_apart
from overexplain.models.sklearn_steps import fold

AGREEMENT: Final = 1e-9
"""How far the plane and the original's score may differ, relative to the terms of the sum: many roundings."""

_LOGISTIC = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")


def from_sklearn(estimator: Any, threshold: float | None = None) -> LinearModel:
    """The linear model that a fitted scikit-learn classifier is; `threshold` replaces its own cut.

    Steps before it fold into the plane: with z = Mx + c, coef·z + intercept = (Mᵀcoef)·x + (intercept + coef·c). A one-hot
    encoded column becomes one feature for each category (0 for one that is dropped), and `columns` says which.

    >>> from sklearn.linear_model import Perceptron
    >>> from_sklearn(Perceptron().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])).classes
    ('a', 'b')
    """
    parts = take_apart(estimator)
    coefficients, intercept, classes = _read_classifier(parts.classifier)
    with np.errstate(all="ignore"):  # what overflows is refused below, in words
        score = fold(parts.steps, Additive.of(coefficients, intercept, AGREEMENT))
    names = feature_names(estimator)
    if names is not None and len(names) != score.count:
        names = None
    model = replace(_plane(score, names, estimator), classes=(str(classes[0]), str(classes[1])), source=parts.described)

    check_support_vectors(parts.classifier, coefficients, intercept, AGREEMENT)
    framed = bool(score.tables) or any(kind_of(step) == "ColumnTransformer" for _, step in parts.steps)
    trial = Trial.over(score, model, names, framed)
    check_score(estimator, model, trial)
    if _is_logistic(parts.classifier) and gives_sigmoid(estimator, model, trial):
        model = replace(model, link="logistic")
    if threshold is not None:
        return _at(model if _positive(parts, classes) else _flip(model), threshold, estimator)
    model = _own_cut(model, parts, classes)
    check_labels(estimator, model, classes[_positive(parts, classes)], trial)
    return model


def _plane(score: Additive, names: tuple[str, ...] | None, estimator: Any) -> LinearModel:
    """The score as a model, cut at 0; columns that play no part are left out."""
    whole = score.used.all() and not score.tables
    columns, features, normal = score.laid_out(names or default_names(score.count))
    if not normal.any():
        raise ZeroNormal(f"every coefficient of the {class_of(estimator)} is zero: all points get the same answer")
    if not np.isfinite(normal).all() or not math.isfinite(score.constant):
        raise NotFinite(f"coefficients and scalers of the {class_of(estimator)} multiply to more than float64 can hold")
    plane = Hyperplane.from_intercept(normal, score.constant)
    if whole and names is None:
        return LinearModel(plane)
    plain = not score.tables and np.isnan(score.fill[score.used]).all()
    return LinearModel(plane, features, columns=None if plain else columns)


def _read_classifier(classifier: Any) -> tuple[FloatArray, float, tuple[Any, Any]]:
    """(coefficients, intercept, classes) of a fitted binary linear classifier."""
    name = class_of(classifier)
    if kind_of(classifier) == "SVC" and classifier.kernel != "linear":
        raise UnsupportedModel(f'{name} with kernel={classifier.kernel!r} is not linear; only kernel="linear" is')
    if not all(hasattr(classifier, attribute) for attribute in ("coef_", "intercept_", "classes_")):
        raise UnsupportedModel(f"the {name} is not fitted; call fit first")
    coefficients = classifier.coef_.toarray() if hasattr(classifier.coef_, "toarray") else classifier.coef_
    coefficients = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    intercept = np.ravel(np.asarray(classifier.intercept_, dtype=np.float64))
    if np.size(classifier.classes_) != 2 or len(coefficients) != 1 or len(intercept) != 1:
        raise UnsupportedModel(
            f"the {name} has {np.size(classifier.classes_)} classes and {len(coefficients)} rows of coefficients; "
            "only two classes with one plane between them can be read as Yes and No. load_multiclass reads several classes"
        )
    no, yes = np.asarray(classifier.classes_).tolist()
    return as_point(coefficients[0], name=f"coef_ of the {name}"), float(intercept[0]), (no, yes)


def _own_cut(model: LinearModel, parts: Parts, classes: tuple[Any, Any]) -> LinearModel:
    """The model cut where the estimator's `predict` cuts: at score 0 unless a threshold wrapper says otherwise."""
    cutter = parts.cutter
    if cutter is None:
        return model
    if not _positive(parts, classes):
        model = _flip(model)
    if not hasattr(cutter, "best_threshold_") and not hasattr(cutter, "threshold"):
        raise UnsupportedModel(f"the {class_of(cutter)} is not fitted; call fit first")
    cut = getattr(cutter, "best_threshold_", None)
    cut = cutter.threshold if cut is None else cut
    method = cutter.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(parts.cut_on, "predict_proba") else "decision_function"
    if method == "predict_proba":
        return _at(model, 0.5 if cut == "auto" else cut, parts.classifier)
    return model.with_cutoff(0.0 if cut == "auto" else float(cut))


def _at(model: LinearModel, threshold: float, estimator: Any) -> LinearModel:
    threshold = as_probability(threshold)
    if model.link != "logistic":
        raise UnsupportedModel(
            f"a probability threshold ({threshold}) needs a classifier with P = 1/(1 + exp(-decision_function)): "
            f'{", ".join(_LOGISTIC)} or SGDClassifier(loss="log_loss"); {class_of(estimator)} is cut on its score'
        )
    return model.with_threshold(threshold)


def _flip(model: LinearModel) -> LinearModel:
    """The model for the other class as Yes."""
    classes = None if model.classes is None else (model.classes[1], model.classes[0])
    return replace(model, hyperplane=model.hyperplane.flipped(), classes=classes)


def _positive(parts: Parts, classes: tuple[Any, Any]) -> int:
    """Which of the two classes is Yes: the second, unless a threshold wrapper was given the first as pos_label."""
    label = getattr(parts.cutter, "pos_label", None)
    scorer = getattr(parts.cutter, "_curve_scorer", None)
    if scorer is not None and hasattr(scorer, "_get_pos_label"):
        label = scorer._get_pos_label()
    return 0 if label is not None and label == classes[0] else 1


def _is_logistic(classifier: Any) -> bool:
    kind = kind_of(classifier)
    return kind in _LOGISTIC or (kind == "SGDClassifier" and classifier.loss == "log_loss")
