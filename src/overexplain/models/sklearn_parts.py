"""What is inside a fitted scikit-learn object: the classifier, the steps before it, who sets the cut, and their names.

What is read is on a list, by class name inside the package ``sklearn`` (a subclass counts as its nearest parent there).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from overexplain.errors import UnsupportedModel

CLASSIFIERS: Final = (
    "LogisticRegression", "LogisticRegressionCV", "LinearSVC", "SVC", "SGDClassifier", "RidgeClassifier",
    "RidgeClassifierCV", "Perceptron", "LinearDiscriminantAnalysis",
)  # fmt: skip
SCALERS: Final = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
STEPS: Final = (*SCALERS, "PCA", "SimpleImputer", "OneHotEncoder", "ColumnTransformer")
ONE_FOR_EACH: Final = "OneVsRestClassifier"
"""One classifier of Yes and No for each class; the surest decides."""
_THRESHOLDS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
_LISTED = frozenset(
    (*CLASSIFIERS, *STEPS, *_THRESHOLDS, ONE_FOR_EACH, "FunctionTransformer", "Pipeline", "FrozenEstimator")
)


@dataclass(frozen=True)
class Parts:
    """What is inside a fitted object: the classifier, the steps on the way to it, and who sets the cut, if any."""

    classifier: Any
    steps: tuple[tuple[str, Any], ...]
    cutter: Any = None
    cut_on: Any = None  # the estimator whose response the cutter compares with its threshold

    @property
    def described(self) -> str:
        """Its classes: "Pipeline(StandardScaler, LogisticRegression)"."""
        inner = class_of(self.classifier)
        if self.steps:
            inner = f"Pipeline({', '.join([*(class_of(step) for _, step in self.steps), inner])})"
        return inner if self.cutter is None else f"{class_of(self.cutter)}({inner})"


def take_apart(estimator: Any, listed: tuple[str, ...] = CLASSIFIERS) -> Parts:
    """The parts of a fitted object that ends in a listed classifier; raises UnsupportedModel for others."""
    steps: list[tuple[str, Any]] = []
    cutter = cut_on = None
    inner = estimator
    while (kind := kind_of(inner)) not in listed:
        if kind == "FrozenEstimator":
            inner = inner.estimator
        elif kind in _THRESHOLDS:
            outer, inner = inner, getattr(inner, "estimator_", inner.estimator)
            if cutter is None:  # a wrapper inside a wrapper hands the scores through, its own cut plays no part
                cutter, cut_on = outer, inner
        elif kind == "Pipeline" and inner.steps:
            *before, (_, last) = inner.steps
            steps += flatten(before)
            inner = last
        else:
            raise _refused(inner, estimator, listed)
    return Parts(inner, tuple(steps), cutter, cut_on)


def _refused(inner: Any, estimator: Any, listed: tuple[str, ...]) -> UnsupportedModel:
    what = class_of(inner) if inner is estimator else f"{class_of(estimator)} that ends in {class_of(inner)}"
    advice = f"read are {', '.join(listed)}, alone or at the end of a Pipeline of {', '.join(STEPS)}"
    if hasattr(inner, "best_estimator_"):
        advice = "give its best_estimator_"
    return UnsupportedModel(f"{what} is not on the list of linear classifiers: {advice}")


def flatten(steps: Iterable[tuple[str, Any]], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(place, step) of all steps that do something, nested pipelines opened; "inner/scale" is a place."""
    for name, step in steps:
        place = prefix + name
        while kind_of(step) == "FrozenEstimator":
            step = step.estimator
        if does_nothing(step):
            continue
        if kind_of(step) == "Pipeline":
            yield from flatten(step.steps, f"{place}/")
        else:
            yield place, step


def feature_names(estimator: Any) -> tuple[str, ...] | None:
    """The column names the outermost estimator was fitted with; a pipeline asks its first step that does something."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and kind_of(estimator) == "Pipeline":
        first = next((step for _, step in estimator.steps if not does_nothing(step)), None)
        return feature_names(first)
    return None if names is None else tuple(str(name) for name in names)


def does_nothing(step: Any) -> bool:
    """True for the steps that hand their input through."""
    if isinstance(step, str) or step is None:
        return step in (None, "passthrough")
    return kind_of(step) == "FunctionTransformer" and step.func is None


def kind_of(thing: Any) -> str | None:
    """The name of the nearest class on the list that the object is an instance of, or None."""
    classes = (cls for cls in type(thing).__mro__ if cls.__module__.startswith("sklearn."))
    return next((cls.__name__ for cls in classes if cls.__name__ in _LISTED), None)


def class_of(thing: Any) -> str:
    """The name of the object's own class, for messages."""
    return repr(thing) if thing is None or isinstance(thing, str) else type(thing).__name__
