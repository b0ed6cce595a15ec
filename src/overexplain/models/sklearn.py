"""Fitted scikit-learn classifiers become a hyperplane: read from fitted attributes, then compared with the original.

What is read is on a list, by class name inside the package ``sklearn`` (a subclass counts as its nearest parent there).
The result must agree with the object's own `decision_function` and `predict` on many points, so that a subclass or a
version that computes something else is refused rather than misread. scikit-learn itself is never imported here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from overexplain.errors import NotFinite, OverexplainError, UnsupportedModel, ZeroNormal
from overexplain.geometry.arrays import BoolArray, FloatArray, as_point
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.models.linear import LinearModel, as_probability

CLASSIFIERS: Final = (
    "LogisticRegression", "LogisticRegressionCV", "LinearSVC", "SVC", "SGDClassifier", "RidgeClassifier",
    "RidgeClassifierCV", "Perceptron", "LinearDiscriminantAnalysis",
)  # fmt: skip
SCALERS: Final = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_LOGISTIC = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")
_THRESHOLDS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
_LISTED = frozenset((*CLASSIFIERS, *SCALERS, *_THRESHOLDS, "Pipeline", "FrozenEstimator"))

AGREEMENT: Final = 1e-9
"""How far the plane and the original's score may differ, relative to the terms of the sum: many roundings."""


def from_sklearn(estimator: Any, threshold: float | None = None) -> LinearModel:
    """The linear model that a fitted scikit-learn classifier is; `threshold` replaces its own cut.

    Scalers before it fold into the plane: with z = m∘x + c, coef·z + intercept = (coef∘m)·x + (intercept + coef·c).

    >>> from sklearn.linear_model import Perceptron
    >>> from_sklearn(Perceptron().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])).classes
    ('a', 'b')
    """
    parts = _take_apart(estimator)
    coefficients, intercept, classes = _read_classifier(parts.classifier)
    with np.errstate(all="ignore"):  # what overflows is refused below, in words
        multiplier, shift = _fold(parts.scalers, len(coefficients))
        normal, constant = coefficients * multiplier, intercept + float(coefficients @ shift)
    if not normal.any():
        raise ZeroNormal(f"every coefficient of the {_class(estimator)} is zero: all points get the same answer")
    if not np.isfinite(normal).all() or not math.isfinite(constant):
        raise NotFinite(f"coefficients and scalers of the {_class(estimator)} multiply to more than float64 can hold")
    plane = Hyperplane.from_intercept(normal, constant)
    model = LinearModel(plane, _feature_names(estimator), classes=(str(classes[0]), str(classes[1])))

    points = _Points.over(model.hyperplane, multiplier, shift, parts.classifier)
    _check_score(estimator, model, points)
    if _is_logistic(parts.classifier) and _gives_sigmoid(estimator, model, points):
        model = replace(model, link="logistic")
    if threshold is not None:
        return _at(model if _positive(parts, classes) else _flip(model), threshold, estimator)
    model = _own_cut(model, parts, classes)
    _check_labels(estimator, model, classes[_positive(parts, classes)], points)
    return model


@dataclass(frozen=True)
class _Parts:
    """What is inside a fitted object: the classifier, the scalers on the way to it, and who sets the cut, if any."""

    classifier: Any
    scalers: tuple[tuple[str, Any], ...]
    cutter: Any = None
    cut_on: Any = None  # the estimator whose response the cutter compares with its threshold


def _take_apart(estimator: Any) -> _Parts:
    scalers: list[tuple[str, Any]] = []
    cutter = cut_on = None
    inner = estimator
    while (kind := _kind(inner)) not in CLASSIFIERS:
        if kind == "FrozenEstimator":
            inner = inner.estimator
        elif kind in _THRESHOLDS:
            outer, inner = inner, getattr(inner, "estimator_", inner.estimator)
            if cutter is None:  # a wrapper inside a wrapper hands the scores through, its own cut plays no part
                cutter, cut_on = outer, inner
        elif kind == "Pipeline" and inner.steps:
            *before, (_, last) = inner.steps
            scalers += _flatten(before)
            inner = last
        else:
            raise _refused(inner, estimator)
    return _Parts(inner, tuple(scalers), cutter, cut_on)


def _refused(inner: Any, estimator: Any) -> UnsupportedModel:
    what = _class(inner) if inner is estimator else f"{_class(estimator)} that ends in {_class(inner)}"
    advice = f"read are {', '.join(CLASSIFIERS)}, alone or at the end of a Pipeline of {', '.join(SCALERS)}"
    if hasattr(inner, "best_estimator_"):
        advice = "give its best_estimator_"
    return UnsupportedModel(f"{what} is not on the list of linear classifiers: {advice}")


def _flatten(steps: Iterable[tuple[str, Any]], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(place, scaler) of all steps that do something, nested pipelines opened."""
    for name, step in steps:
        place = prefix + name
        while _kind(step) == "FrozenEstimator":
            step = step.estimator
        if _does_nothing(step):
            continue
        if _kind(step) == "Pipeline":
            yield from _flatten(step.steps, f"{place}/")
        elif _kind(step) in SCALERS:
            yield place, step
        else:
            raise UnsupportedModel(
                f"step {place!r} is a {_class(step)}: only scalers that treat every feature by itself can be folded in "
                f"({', '.join(SCALERS)}). Transform the data beforehand and give the steps after it as the model"
            )


def _fold(scalers: Iterable[tuple[str, Any]], dimension: int) -> tuple[FloatArray, FloatArray]:
    """(multiplier, shift): what all scalers one after the other do, z = multiplier∘x + shift."""
    multiplier, shift = np.ones(dimension), np.zeros(dimension)
    for place, scaler in scalers:
        if not hasattr(scaler, "scale_"):
            raise UnsupportedModel(f"step {place!r} ({_class(scaler)}) is not fitted; call fit first")
        if getattr(scaler, "clip", False):
            raise UnsupportedModel(f"step {place!r} ({_class(scaler)}) clips, which is not linear; it needs clip=False")
        by, plus = _affine(scaler, place, dimension)
        multiplier, shift = by * multiplier, by * shift + plus
    return multiplier, shift


def _affine(scaler: Any, place: str, dimension: int) -> tuple[FloatArray, FloatArray]:
    """(multiplier, shift) of one scaler."""

    def vector(attribute: str) -> FloatArray:
        return as_point(getattr(scaler, attribute), dimension, f"{attribute} of step {place!r}")

    kind = _kind(scaler)
    if kind == "MinMaxScaler":
        return vector("scale_"), vector("min_")
    centred, centre, scaled = {
        "StandardScaler": (getattr(scaler, "with_mean", False), "mean_", getattr(scaler, "with_std", False)),
        "RobustScaler": (getattr(scaler, "with_centering", False), "center_", getattr(scaler, "with_scaling", False)),
    }.get(str(kind), (False, "", True))
    multiplier = 1 / vector("scale_") if scaled else np.ones(dimension)
    return multiplier, -vector(centre) * multiplier if centred else np.zeros(dimension)


def _read_classifier(classifier: Any) -> tuple[FloatArray, float, tuple[Any, Any]]:
    """(coefficients, intercept, classes) of a fitted binary linear classifier."""
    name = _class(classifier)
    if _kind(classifier) == "SVC" and classifier.kernel != "linear":
        raise UnsupportedModel(f'{name} with kernel={classifier.kernel!r} is not linear; only kernel="linear" is')
    if not all(hasattr(classifier, attribute) for attribute in ("coef_", "intercept_", "classes_")):
        raise UnsupportedModel(f"the {name} is not fitted; call fit first")
    coefficients = classifier.coef_.toarray() if hasattr(classifier.coef_, "toarray") else classifier.coef_
    coefficients = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    intercept = np.ravel(np.asarray(classifier.intercept_, dtype=np.float64))
    if np.size(classifier.classes_) != 2 or len(coefficients) != 1 or len(intercept) != 1:
        raise UnsupportedModel(
            f"the {name} has {np.size(classifier.classes_)} classes and {len(coefficients)} rows of coefficients; "
            "only two classes with one plane between them can be read"
        )
    no, yes = np.asarray(classifier.classes_).tolist()
    return as_point(coefficients[0], name=f"coef_ of the {name}"), float(intercept[0]), (no, yes)


def _own_cut(model: LinearModel, parts: _Parts, classes: tuple[Any, Any]) -> LinearModel:
    """The model cut where the estimator's `predict` cuts: at score 0 unless a threshold wrapper says otherwise."""
    cutter = parts.cutter
    if cutter is None:
        return model
    if not _positive(parts, classes):
        model = _flip(model)
    if not hasattr(cutter, "best_threshold_") and not hasattr(cutter, "threshold"):
        raise UnsupportedModel(f"the {_class(cutter)} is not fitted; call fit first")
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
            f'{", ".join(_LOGISTIC)} or SGDClassifier(loss="log_loss"); {_class(estimator)} is cut on its score'
        )
    return model.with_threshold(threshold)


def _flip(model: LinearModel) -> LinearModel:
    """The model for the other class as Yes."""
    classes = None if model.classes is None else (model.classes[1], model.classes[0])
    return replace(model, hyperplane=model.hyperplane.flipped(), classes=classes)


def _positive(parts: _Parts, classes: tuple[Any, Any]) -> int:
    """Which of the two classes is Yes: the second, unless a threshold wrapper was given the first as pos_label."""
    label = getattr(parts.cutter, "pos_label", None)
    scorer = getattr(parts.cutter, "_curve_scorer", None)
    if scorer is not None and hasattr(scorer, "_get_pos_label"):
        label = scorer._get_pos_label()
    return 0 if label is not None and label == classes[0] else 1


def _is_logistic(classifier: Any) -> bool:
    kind = _kind(classifier)
    return kind in _LOGISTIC or (kind == "SGDClassifier" and classifier.loss == "log_loss")


@dataclass(frozen=True)
class _Points:
    """Points over the range the scalers know, and how exactly a score can be computed at each."""

    rows: FloatArray
    tolerance: FloatArray

    @staticmethod
    def over(plane: Hyperplane, multiplier: FloatArray, shift: FloatArray, classifier: Any) -> _Points:
        rng = np.random.default_rng(0)
        count = min(256, max(8, 2_000_000 // len(multiplier)))  # a wide model must not fill the memory
        scaled = 10 ** rng.uniform(-2, 1, (count, 1)) * rng.uniform(-3, 3, (count, len(multiplier)))
        scaled = np.vstack([scaled, _support_vectors(classifier, scaled)])
        with np.errstate(all="ignore"):
            rows = (scaled - shift) / multiplier
            reach = np.abs(rows) + np.abs(shift / multiplier)
            return _Points(rows, AGREEMENT * (reach @ np.abs(plane.normal) + abs(plane.offset)))


def _support_vectors(classifier: Any, like: FloatArray) -> FloatArray:
    """Some training points that an SVC remembers: it sums over them, and far from 0 that sum is mostly rounding."""
    vectors = getattr(classifier, "support_vectors_", like[:0])[: len(like)]
    return np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)


def _ask(estimator: Any, method: str, rows: FloatArray) -> Any:
    """What the estimator's method answers; its own errors become an UnsupportedModel."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model fitted on a frame warns about rows without names
            return np.asarray(getattr(estimator, method)(rows))
    except OverexplainError:
        raise
    except Exception as error:
        raise UnsupportedModel(f"{method} of the {_class(estimator)} fails on {len(rows)} points: {error}") from error


def _check_score(estimator: Any, model: LinearModel, points: _Points) -> None:
    score = _ask(estimator, "decision_function", points.rows)
    if score.shape != (len(points.rows),):
        raise UnsupportedModel(f"the {_class(estimator)} gives scores of shape {score.shape}, not one for each row")
    margin = model.hyperplane.margin(points.rows)
    _require(np.abs(margin - score) <= points.tolerance, estimator, "decision_function")


def _check_labels(estimator: Any, model: LinearModel, positive: Any, points: _Points) -> None:
    says_yes = _ask(estimator, "predict", points.rows) == positive
    margin = model.hyperplane.margin(points.rows)
    unclear = np.abs(margin) <= 2 * points.tolerance
    _require(unclear | (says_yes == (model.hyperplane.labels(points.rows) == YES)), estimator, "predict")


def _gives_sigmoid(estimator: Any, model: LinearModel, points: _Points) -> bool:
    if not hasattr(estimator, "predict_proba"):
        return False
    probability = _ask(estimator, "predict_proba", points.rows)
    if probability.shape != (len(points.rows), 2):
        return False
    sigmoid = 0.5 * (1 + np.tanh(model.hyperplane.margin(points.rows) / 2))
    return bool(np.all(np.abs(probability[:, 1] - sigmoid) <= AGREEMENT + points.tolerance))


def _require(agrees: BoolArray, estimator: Any, method: str) -> None:
    if not agrees.all():
        raise UnsupportedModel(
            f"the plane read from the {_class(estimator)} contradicts its own {method} on {int((~agrees).sum())} of "
            f"{len(agrees)} points. Either (a) a subclass or a version of scikit-learn computes something else: "
            "write the coefficients to a JSON file; or (b) it was fitted on numbers so far from 0 that its own sums "
            "are mostly rounding: scale the data"
        )


def _feature_names(estimator: Any) -> tuple[str, ...] | None:
    """The column names the outermost estimator was fitted with; a pipeline asks its first step that does something."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and _kind(estimator) == "Pipeline":
        first = next((step for _, step in estimator.steps if not _does_nothing(step)), None)
        return _feature_names(first)
    return None if names is None else tuple(str(name) for name in names)


def _does_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _kind(thing: Any) -> str | None:
    """The name of the nearest class on the list that the object is an instance of, or None."""
    classes = (cls for cls in type(thing).__mro__ if cls.__module__.startswith("sklearn."))
    return next((cls.__name__ for cls in classes if cls.__name__ in _LISTED), None)


def _class(thing: Any) -> str:
    return repr(thing) if thing is None or isinstance(thing, str) else type(thing).__name__
