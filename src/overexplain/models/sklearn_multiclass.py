"""Fitted scikit-learn classifiers of several classes become scores: one row for each class, compared with the original."""

from __future__ import annotations

from typing import Any

import numpy as np

from overexplain.errors import NotFinite, UnsupportedModel
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray
from overexplain.models.additive import Additive
from overexplain.models.multiclass import MulticlassModel, from_linear
from overexplain.models.sklearn import AGREEMENT, from_sklearn
from overexplain.models.sklearn_check import Trial, ask, default_names, require
from overexplain.models.sklearn_parts import (
    CLASSIFIERS,
    ONE_FOR_EACH,
    Parts,
    class_of,
    feature_names,
    kind_of,
    take_apart,
)
from overexplain.models.sklearn_steps import fold

LISTED = (*CLASSIFIERS, ONE_FOR_EACH)


def multiclass_from_sklearn(estimator: Any) -> MulticlassModel:
    """The model of a fitted scikit-learn classifier of two or more classes whose `predict` takes the largest of K scores.

    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["a", "a", "b", "b", "c", "c"])
    >>> multiclass_from_sklearn(fitted).classes
    ('a', 'b', 'c')
    """
    parts = take_apart(estimator, LISTED)
    classifier = parts.classifier
    if not hasattr(classifier, "classes_"):
        raise UnsupportedModel(f"the {class_of(classifier)} is not fitted; call fit first")
    classes = np.asarray(classifier.classes_).tolist()
    if len(classes) == 2 and kind_of(classifier) != ONE_FOR_EACH:
        return from_linear(from_sklearn(estimator))
    scores = _scores(parts, len(classes))
    with np.errstate(all="ignore"):  # what overflows is refused below, in words
        scores = [fold(parts.steps, score) for score in scores]
    names = feature_names(estimator)
    if names is not None and len(names) != scores[0].count:
        names = None
    model = _model(scores, names, tuple(str(name) for name in classes), parts.described, estimator)
    framed = bool(scores[0].tables) or any(kind_of(step) == "ColumnTransformer" for _, step in parts.steps)
    _check(estimator, model, [Trial.over(score, model, names, framed) for score in scores], classes)
    return model


def is_one_for_each(estimator: Any) -> bool:
    """True for a OneVsRestClassifier, also at the end of a Pipeline."""
    try:
        return kind_of(take_apart(estimator, LISTED).classifier) == ONE_FOR_EACH
    except UnsupportedModel:
        return False


def _scores(parts: Parts, count: int) -> list[Additive]:
    """The score of every class over what the last step gives."""
    classifier = parts.classifier
    name = class_of(classifier)
    if parts.cutter is not None:
        raise UnsupportedModel(f"a {class_of(parts.cutter)} cuts one score; a model of {count} classes has {count}")
    if kind_of(classifier) == ONE_FOR_EACH:
        return _one_for_each(classifier, count)
    if kind_of(classifier) == "SVC":
        raise UnsupportedModel(
            f"the {name} lets every two of its {count} classes vote; read are classifiers with one score for each class, "
            "such as LinearSVC or OneVsRestClassifier(SVC(kernel='linear'))"
        )
    coefficients = classifier.coef_.toarray() if hasattr(classifier.coef_, "toarray") else classifier.coef_
    rows = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    intercepts = np.broadcast_to(np.asarray(classifier.intercept_, dtype=np.float64), (len(rows),))
    if len(rows) != count:
        raise UnsupportedModel(f"the {name} has {count} classes and {len(rows)} rows of coefficients, not one for each")
    return [Additive.of(row, float(c), AGREEMENT) for row, c in zip(rows, intercepts, strict=True)]


def _one_for_each(classifier: Any, count: int) -> list[Additive]:
    """The scores of the inner classifiers; for two classes there is one, and the first class has the score 0."""
    if getattr(classifier, "multilabel_", False):
        raise UnsupportedModel("this OneVsRestClassifier gives several labels at once; it has no largest score")
    found = []
    for inner in classifier.estimators_:
        parts = take_apart(inner)
        if parts.cutter is not None or np.size(getattr(parts.classifier, "classes_", ())) != 2:
            raise UnsupportedModel(
                f"a {class_of(inner)} inside the {class_of(classifier)} is no plain classifier of two classes"
            )
        if kind_of(parts.classifier) == "SVC" and parts.classifier.kernel != "linear":
            raise UnsupportedModel(f"an SVC with kernel={parts.classifier.kernel!r} is not linear")
        row = parts.classifier.coef_
        row = np.ravel(np.asarray(row.toarray() if hasattr(row, "toarray") else row, dtype=np.float64))
        intercept = float(np.ravel(parts.classifier.intercept_)[0])
        found.append(fold(parts.steps, Additive.of(row, intercept, AGREEMENT)))
    if len(found) == 1 and count == 2:
        found.insert(0, Additive.of(np.zeros(found[0].count), 0.0, AGREEMENT))
    return found


def _model(
    scores: list[Additive], names: tuple[str, ...] | None, classes: tuple[str, ...], source: str, estimator: Any
) -> MulticlassModel:
    """The scores as a model over one list of features; columns that play no part are left out."""
    whole = all(score.used.all() and not score.tables for score in scores)
    laid = [score.laid_out(names or default_names(score.count)) for score in scores]
    columns, features, _ = laid[0]
    if any(other[:2] != laid[0][:2] for other in laid):
        raise UnsupportedModel(f"the classifiers inside the {class_of(estimator)} do not take the same columns")
    weights = np.array([row for _, _, row in laid])
    intercepts = np.array([score.constant for score in scores])
    if not np.isfinite(weights).all() or not np.isfinite(intercepts).all():
        raise NotFinite(f"coefficients and scalers of the {class_of(estimator)} multiply to more than float64 can hold")
    argmax = ArgmaxModel(weights, intercepts)
    if whole and names is None:
        return MulticlassModel(argmax, classes=classes, source=source)
    plain = all(not score.tables and np.isnan(score.fill[score.used]).all() for score in scores)
    return MulticlassModel(argmax, features, classes, None if plain else columns, source)


def _check(estimator: Any, model: MulticlassModel, trials: list[Trial], classes: list[Any]) -> None:
    """Raise UnsupportedModel unless scores and predictions are those of the original, on random inputs."""
    inputs, rows = trials[0].inputs, trials[0].rows
    tolerance = np.column_stack([trial.tolerance for trial in trials])
    own = model.argmax.scores(rows)
    if hasattr(estimator, "decision_function"):
        theirs: FloatArray = ask(estimator, "decision_function", inputs)
        if theirs.ndim == 1:
            theirs = np.column_stack([np.zeros(len(theirs)), theirs])
        if theirs.shape != own.shape:
            raise UnsupportedModel(
                f"the {class_of(estimator)} gives scores of shape {theirs.shape}, needed {own.shape}"
            )
        require(np.asarray((np.abs(own - theirs) <= tolerance).all(axis=1)), estimator, "decision_function")
    said = ask(estimator, "predict", inputs)
    best = own.max(axis=1)
    first = own.argmax(axis=1)
    second = np.where(own == best[:, None], -np.inf, own).max(axis=1)
    unclear = best - second <= 4 * tolerance.max(axis=1)
    require(unclear | (said == np.array(classes)[first]), estimator, "predict")
