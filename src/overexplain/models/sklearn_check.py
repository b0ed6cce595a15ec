"""A model read from a scikit-learn object is compared with the object itself, on random inputs such as it takes."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from overexplain.errors import OverexplainError, UnsupportedModel
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.models.additive import Additive, Table
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.sklearn_parts import class_of

_GAPS = 0.05
"""The share of missing numbers where the original fills them in."""


@dataclass(frozen=True, eq=False)
class Trial:
    """Random inputs as the original takes them, the same as rows of features, and how exact a score can be there."""

    inputs: Any
    rows: FloatArray
    tolerance: FloatArray

    @staticmethod
    def over(
        score: Additive, model: LinearModel | MulticlassModel, names: tuple[str, ...] | None, framed: bool
    ) -> Trial:
        """A trial over the range that the steps know; `framed`: the original has to be given a data frame."""
        rng = np.random.default_rng(0)
        count = min(256, max(8, 2_000_000 // score.count))  # a wide model must not fill the memory
        scaled = 10 ** rng.uniform(-2, 1, (count, 1)) * rng.uniform(-3, 3, (count, score.count))
        with np.errstate(all="ignore"):
            numbers = score.centre + score.spread * scaled
            numbers[:, ~score.used] = 0.0
        values: list[Any] = [numbers[:, k] for k in range(score.count)]
        for k, table in score.tables.items():
            values[k] = _drawn(table, rng, count)
            if score.used[k]:
                numbers[:, k] = values[k]
        for k in np.flatnonzero(score.used & ~np.isnan(score.fill)).tolist():
            if k not in score.tables:
                gaps = rng.random(count) < _GAPS
                values[k] = np.where(gaps, np.nan, numbers[:, k])
                numbers[gaps, k] = score.fill[k]
        if model.columns is None:
            rows = numbers[:, score.used]
        else:
            called = names or default_names(score.count)
            rows = model.encode(dict(zip(called, values, strict=True)))
        with np.errstate(all="ignore"):
            reach = (np.abs(numbers) + np.abs(score.centre)) @ score.size[:-1] + score.size[-1]
        return Trial(_inputs(values, names if framed else None), rows, score.accuracy * reach)


def default_names(count: int) -> tuple[str, ...]:
    """What scikit-learn calls columns without names."""
    return tuple(f"x{k}" for k in range(count))


def _drawn(table: Table, rng: np.random.Generator, count: int) -> Any:
    """Random values of a column of categories, some of them unknown if the original takes such."""
    values = table.values
    if table.unknown is not None and values.dtype.kind in "iuf":
        values = np.append(values, values[np.isfinite(values)].max(initial=0) + 1)
    elif table.unknown is not None and values.dtype.kind in "UO" and isinstance(values[0], str):
        values = np.append(values, np.array(["no " + max(map(str, values), key=len)], dtype=values.dtype.kind))
    return values[rng.integers(len(values), size=count)]


def _inputs(values: list[Any], names: tuple[str, ...] | None) -> Any:
    """A data frame if there are names, else an array: of float64 if all values are numbers."""
    if names is not None:
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise UnsupportedModel(
                "a model that picks its columns by name is compared with the original on data frames: "
                'pip install "overexplain[frames]"'
            ) from None
        return pandas.DataFrame(dict(zip(names, values, strict=True)))
    if all(column.dtype.kind == "f" for column in values):
        return np.column_stack(values)
    mixed = np.empty((len(values[0]), len(values)), dtype=object)
    for k, column in enumerate(values):
        mixed[:, k] = column
    kinds = {column.dtype.kind for column in values}
    return mixed.astype(np.result_type(*values)) if len(kinds) == 1 and kinds <= set("biuU") else mixed


def ask(estimator: Any, method: str, inputs: Any) -> Any:
    """What the estimator's method answers; its own errors become an UnsupportedModel."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model fitted on a frame warns about rows without names
            return np.asarray(getattr(estimator, method)(inputs))
    except OverexplainError:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"{method} of the {class_of(estimator)} fails on {len(inputs)} points: {error}"
        ) from error


def check_score(estimator: Any, model: LinearModel, trial: Trial) -> None:
    """Raise UnsupportedModel unless the model's margin is the original's decision_function."""
    score = ask(estimator, "decision_function", trial.inputs)
    if score.shape != (len(trial.rows),):
        raise UnsupportedModel(f"the {class_of(estimator)} gives scores of shape {score.shape}, not one for each row")
    margin = model.hyperplane.margin(trial.rows)
    require(np.abs(margin - score) <= trial.tolerance, estimator, "decision_function")


def check_labels(estimator: Any, model: LinearModel, positive: Any, trial: Trial) -> None:
    """Raise UnsupportedModel unless the model's labels are the original's predictions."""
    says_yes = ask(estimator, "predict", trial.inputs) == positive
    margin = model.hyperplane.margin(trial.rows)
    unclear = np.abs(margin) <= 2 * trial.tolerance
    require(unclear | (says_yes == (model.hyperplane.labels(trial.rows) == YES)), estimator, "predict")


def gives_sigmoid(estimator: Any, model: LinearModel, trial: Trial) -> bool:
    """True if the original's probability is the logistic function of the model's margin."""
    if not hasattr(estimator, "predict_proba"):
        return False
    probability = ask(estimator, "predict_proba", trial.inputs)
    if probability.shape != (len(trial.rows), 2):
        return False
    sigmoid = 0.5 * (1 + np.tanh(model.hyperplane.margin(trial.rows) / 2))
    return bool(np.all(np.abs(probability[:, 1] - sigmoid) <= 1e-9 + trial.tolerance))


def check_support_vectors(classifier: Any, coefficients: FloatArray, intercept: float, accuracy: float) -> None:
    """Raise UnsupportedModel if an SVC's scores are not those of its coefficients at training points it remembers.

    It sums over these points, and where they lie far from 0 that sum is mostly rounding.
    """
    vectors = getattr(classifier, "support_vectors_", None)
    if vectors is None:
        return
    vectors = vectors[:256]
    score = ask(classifier, "decision_function", vectors)
    dense = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)
    margin = dense @ coefficients + intercept
    tolerance = accuracy * (np.abs(dense) @ np.abs(coefficients) + abs(intercept))
    require(np.abs(margin - score) <= tolerance, classifier, "decision_function")


def require(agrees: BoolArray, estimator: Any, method: str) -> None:
    """Raise UnsupportedModel unless what was read agrees with the original everywhere."""
    if not agrees.all():
        raise UnsupportedModel(
            f"the plane read from the {class_of(estimator)} contradicts its own {method} on {int((~agrees).sum())} of "
            f"{len(agrees)} points. Either (a) a subclass or a version of scikit-learn computes something else: "
            "write the coefficients to a JSON file; or (b) it was fitted on numbers so far from 0 that its own sums "
            "are mostly rounding: scale the data"
        )
