"""Oracles made of other people's objects: any callable, dice-ml, alibi-style and NICE-style explainers.

Each knows how its library is asked and where the answer is; what counts as an answer is the same for all (`Foreign`).
Nothing here imports a library: the caller brings the object.
"""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_generator
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.foreign import Foreign, label_by_class, label_by_name


@final
class CallableOracle(Foreign):
    """An oracle of two functions of a point: explain(x) gives a point or nothing, classify(x) a label; either may be None.

    `labels` says which label is which, e.g. {"denied": -1, "approved": +1} or {0: -1, 1: +1}; without it only ±1 and bools
    are understood. Without a `mechanism` nothing is promised but another label.

    >>> oracle = CallableOracle(lambda x: [], lambda x: int(x[0] > 1), dimension=2, labels={0: -1, 1: +1})
    >>> oracle.classify([0.0, 0.0]), oracle.explain([0.0, 0.0]), oracle.failures
    (-1, None, Counter({'empty': 1}))
    """

    def __init__(
        self,
        explain: Callable[[FloatArray], Any] | None = None,
        classify: Callable[[FloatArray], Any] | None = None,
        *,
        dimension: int,
        mechanism: Mechanism | str | None = None,
        labels: Mapping[Any, int] | None = None,
    ) -> None:
        for name, function in (("explain", explain), ("classify", classify)):
            if function is not None and not callable(function):
                raise InvalidInput(f"{name} must be a function of a point, got {function!r}")
        if labels is not None:
            labels = dict(labels)
            if set(labels.values()) != {YES, NO}:
                raise InvalidInput(f"labels maps a service's labels to -1 (No) and +1 (Yes), both; got {labels!r}")
        label = None if classify is None else lambda x: label_by_name(classify(x), labels)
        super().__init__(dimension, mechanism, explain, label)


@final
class DiceOracle(Foreign):
    """A ``dice_ml.Dice`` explainer as an oracle: the first counterfactual that flips the label.

    features    the names of a point's entries, in order; None: the explainer's own
    predict     labels (or class scores) for a frame of one row; None: the explainer's model
    positive    the class that means Yes; every other one means No
    desired     dice-ml's desired_class
    rng         seeds dice-ml, which draws from Python's and NumPy's global generators, for each question; both are put
                back as they were. One question asked twice may get two answers, as it would without; an option
                random_seed=…, where the method takes it, makes them one
    options     go to ``generate_counterfactuals`` with every question, e.g. total_CFs, permitted_range, features_to_vary

    Its progress bars, prints and warnings are not shown. Not for several threads at once: output and global generators
    belong to the process.
    """

    def __init__(
        self,
        explainer: Any,
        *,
        features: Sequence[str] | None = None,
        predict: Callable[[Any], Any] | None = None,
        positive: Any = 1,
        desired: Any = "opposite",
        mechanism: Mechanism | str | None = None,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> None:
        _refuse_without(explainer, "generate_counterfactuals")
        names, order = _dice_features(explainer, features)
        if predict is None:
            predict = _dice_model(explainer, positive)
        generator = as_generator(rng)
        terms = {"total_CFs": 1, "desired_class": desired, **options}

        def frame(x: FloatArray) -> Any:
            import pandas as pd

            return pd.DataFrame([x], columns=names)[order]

        def ask(x: FloatArray) -> Any:
            with _quiet(), _seeded(int(generator.integers(2**32))):
                return explainer.generate_counterfactuals(frame(x), **terms)

        label = None if predict is None else lambda x: label_by_class(predict(frame(x)), positive)
        super().__init__(len(names), mechanism, ask, label, lambda said: _dice_answers(said, names))


@final
class AlibiOracle(Foreign):
    """An alibi-style explainer as an oracle: ``explain(X)`` of one row gives an object with ``.cf`` or ``.data["cf"]``.

    So do alibi's Counterfactual, CounterfactualProto and CounterfactualRL: cf is None, or has the point under "X". `predict`
    gives labels or class scores for rows (alibi's own predictor will do), `positive` is the class that means Yes, `options`
    go to ``explain`` with every question, e.g. target_class=[1].
    """

    def __init__(
        self,
        explainer: Any,
        *,
        dimension: int,
        predict: Callable[[FloatArray], Any] | None = None,
        positive: Any = 1,
        mechanism: Mechanism | str | None = None,
        **options: Any,
    ) -> None:
        ask, label = _of_one_row(explainer, predict, positive, options)
        super().__init__(dimension, mechanism, ask, label, _alibi_answer)


@final
class NiceOracle(Foreign):
    """A NICE-style explainer as an oracle: ``explain(X)`` of one row gives counterfactuals as rows.

    `predict` gives labels or class scores for rows (NICE's own predict_fn will do), `positive` is the class that means Yes,
    `options` go to ``explain`` with every question, e.g. target_class="other".

    >>> class Mirror:
    ...     def explain(self, X):
    ...         return -X
    >>> oracle = NiceOracle(Mirror(), dimension=2, predict=lambda X: X[:, 0] > 0)
    >>> oracle.explain([3.0, 1.0])
    array([-3., -1.])
    """

    def __init__(
        self,
        explainer: Any,
        *,
        dimension: int,
        predict: Callable[[FloatArray], Any] | None = None,
        positive: Any = 1,
        mechanism: Mechanism | str | None = None,
        **options: Any,
    ) -> None:
        ask, label = _of_one_row(explainer, predict, positive, options)
        super().__init__(dimension, mechanism, ask, label)


def _of_one_row(
    explainer: Any, predict: Callable[[FloatArray], Any] | None, positive: Any, options: dict[str, Any]
) -> tuple[Callable[[FloatArray], Any], Callable[[FloatArray], int] | None]:
    """What asks an explainer, and its model, about a point, where both take matrices."""
    _refuse_without(explainer, "explain")
    label = None if predict is None else lambda x: label_by_class(predict(x[np.newaxis]), positive)
    return (lambda x: explainer.explain(x[np.newaxis], **options)), label


def _refuse_without(explainer: Any, verb: str) -> None:
    if not callable(getattr(explainer, verb, None)):
        raise InvalidInput(f"the explainer must have a method {verb}, got {type(explainer).__name__}")


def _alibi_answer(explanation: Any) -> Any:
    """The counterfactual inside an Explanation (or the dictionary that older versions gave)."""
    if explanation is None:
        return None
    held = explanation if isinstance(explanation, Mapping) else getattr(explanation, "data", None)
    if hasattr(explanation, "cf"):
        found = explanation.cf
    elif isinstance(held, Mapping) and "cf" in held:
        found = held["cf"]
    else:
        raise InvalidInput(
            f'the explainer returned {type(explanation).__name__} with neither .cf nor .data["cf"]; '
            "AlibiOracle is for counterfactual explainers"
        )
    return found.get("X") if isinstance(found, Mapping) else found


def _dice_features(explainer: Any, features: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The features in the order of a point's entries, and in the order the explainer knows them."""
    known = getattr(getattr(explainer, "data_interface", None), "feature_names", None)
    if features is None and known is None:
        raise InvalidInput("the explainer does not say what its features are called; give features=[...]")
    order = list(known) if known is not None else list(features or ())
    names = order if features is None else list(features)
    if sorted(names) != sorted(order) or len(set(names)) != len(names):
        raise InvalidInput(f"features must be the explainer's, each once, in any order: {order}; got {names}")
    return names, order


def _dice_model(explainer: Any, positive: Any) -> Callable[[Any], Any] | None:
    """The labels the explainer's own model predicts; None if it has no model."""
    model = getattr(explainer, "model", None)
    if model is None:
        return None
    classes = getattr(getattr(model, "model", None), "classes_", None)
    if classes is not None and positive not in list(classes):
        raise InvalidInput(f"positive={positive!r} is none of the model's classes {list(classes)}")
    return lambda frame: model.get_output(frame, model_score=False)


def _dice_answers(said: Any, names: list[str]) -> Any:
    """The counterfactuals as rows: as shown to people (made sparse), then as found, should that have undone the flip."""
    examples = said.cf_examples_list[0]
    frames = (examples.final_cfs_df_sparse, examples.final_cfs_df)
    found = [frame for frame in frames if frame is not None and len(frame)]
    if not found:
        return None if all(frame is None for frame in frames) else []
    missing = sorted(set(names) - set(found[0].columns))
    if missing:
        raise InvalidInput(f"dice-ml's answer has no columns {missing}; it has {list(found[0].columns)}")
    return np.vstack([frame[names].to_numpy() for frame in found])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No output, and no warnings: those of a library about itself say nothing to its user."""
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """The global generators start from `seed` inside and go on outside as if nothing had happened."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 (the library draws from it)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
