"""`check_loader`: does a loader of models keep the contract that everything after it rests on?"""

from __future__ import annotations

import importlib
import inspect
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput, OverexplainError
from overexplain.geometry.arrays import BoolArray, FloatArray, as_generator, as_rows
from overexplain.geometry.hyperplane import YES
from overexplain.models.coefficients import read_coefficients, to_entries
from overexplain.models.columns import sample
from overexplain.models.linear import LinearModel

THRESHOLD = 0.3
"""The probability that the loader is asked to cut at."""

_POINTS = 200
_BESIDE = 1e-3
"""How far from the plane a point beside it lies, relative to the pair of points it is found between."""


def check_loader(
    load: Callable[..., LinearModel], original: Any, points: Any = None, rng: int | np.random.Generator = 0
) -> None:
    """None if ``load(original, threshold=None)`` keeps its contract; an AssertionError that says which part it breaks if not.

    original  what is loaded; it decides by `predict` (classes, or probabilities of Yes), or is itself a function of rows
    points    inputs as the original takes them: rows of numbers, or a data frame; random ones if none are given

    Checked: a LinearModel comes back, with a feature for each of the original's; its labels are the original's decisions,
    also close to the plane; the threshold is honoured (or refused, if the score gives no probabilities); it can be saved
    and read back bit for bit; the original is left as it was.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from overexplain.models.load import load_model
    >>> check_loader(load_model, LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]))
    """
    try:
        _check(load, original, points, as_generator(rng))
    except OverexplainError as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def _check(load: Callable[..., LinearModel], original: Any, points: Any, rng: np.random.Generator) -> None:
    before = _state(original)
    model = load(original)
    assert isinstance(model, LinearModel), f"a loader returns a LinearModel, got {type(model).__name__}"
    count = getattr(original, "n_features_in_", None)
    assert model.columns is not None or count is None or model.dimension <= count, (
        f"the model has {model.dimension} features, the original takes {count}"
    )
    inputs, rows = _inputs(model, original, points, rng)
    _decisions(model, original, inputs, rows)
    _threshold(load, model, original, inputs, rows)
    _saved(model)
    assert _state(original) == before, "loading changed the original"


def _inputs(model: LinearModel, original: Any, points: Any, rng: np.random.Generator) -> tuple[Any, FloatArray]:
    """(inputs as the original takes them, the same as rows of features)."""
    if points is not None and hasattr(points, "columns"):
        return points, model.encode(points)
    if points is None and model.columns is not None:
        frame = importlib.import_module("pandas").DataFrame(sample(model.columns, rng, _POINTS))
        return frame, model.encode(frame)
    plane = model.hyperplane
    if points is None:
        foot = plane.normal / np.abs(plane.normal).max()
        foot = foot * (plane.offset / (plane.normal @ foot))  # on the plane, whatever the size of the coefficients
        rows = foot + rng.normal(size=(_POINTS, model.dimension)) * max(1.0, float(np.abs(foot).max()))
    else:
        rows = as_rows(points, model.dimension, "points")
    rows = np.vstack([rows, _beside(model, rows)])
    named = getattr(original, "feature_names_in_", None) is not None and model.features is not None
    inputs = importlib.import_module("pandas").DataFrame(rows, columns=model.features) if named else rows
    return inputs, rows


def _beside(model: LinearModel, rows: FloatArray) -> FloatArray:
    """Points on both sides of the plane and close to it, between rows that are answered Yes and No."""
    margin = model.hyperplane.margin(rows)
    yes, no = np.flatnonzero(margin > 0), np.flatnonzero(margin < 0)
    pairs = min(len(yes), len(no))
    a, b = rows[yes[:pairs]], rows[no[:pairs]]
    share = (margin[yes[:pairs]] / (margin[yes[:pairs]] - margin[no[:pairs]]))[:, None]
    return np.vstack([a + (share + step) * (b - a) for step in (-_BESIDE, _BESIDE)])


def _decisions(model: LinearModel, original: Any, inputs: Any, rows: FloatArray) -> None:
    labels = model.hyperplane.labels(rows)
    assert len(set(labels.tolist())) == 2, "all points get the same answer: give points= of both kinds"
    answers = _ask(original if not hasattr(original, "predict") else original.predict, inputs)
    assert answers.shape == (len(rows),), f"the original gives answers of shape {answers.shape} for {len(rows)} rows"
    _agree(model, rows, _says_yes(answers, model), "decisions")


def _says_yes(answers: Any, model: LinearModel) -> BoolArray:
    """Which answers are Yes: those called like the second class, probabilities from ½ on, or positive numbers."""
    texts = np.array([str(answer) for answer in answers.tolist()])
    if model.classes is not None and set(texts) <= set(model.classes):
        return np.asarray(texts == model.classes[1])
    assert answers.dtype.kind in "biuf", f"answers must be called {model.classes}, got {sorted(set(texts))[:4]}"
    if answers.dtype.kind == "f" and not np.isin(answers, (-1.0, 0.0, 1.0)).all():
        return np.asarray(answers >= 0.5)
    return np.asarray(answers > 0)


def _threshold(
    load: Callable[..., LinearModel], model: LinearModel, original: Any, inputs: Any, rows: FloatArray
) -> None:
    takes = inspect.signature(load).parameters
    assert "threshold" in takes or any(p.kind is p.VAR_KEYWORD for p in takes.values()), "load must take threshold="
    if model.link != "logistic":
        try:
            load(original, threshold=THRESHOLD)
        except InvalidInput:
            return
        raise AssertionError(f"the model gives no probabilities, yet threshold={THRESHOLD} was not refused")
    cut = load(original, threshold=THRESHOLD)
    assert cut.threshold == THRESHOLD, f"threshold={THRESHOLD} was asked for, the model says {cut.threshold}"
    expected = model.with_threshold(THRESHOLD)
    close = np.isclose(cut.hyperplane.offset, expected.hyperplane.offset, rtol=1e-9, atol=1e-9)
    assert close, f"with threshold={THRESHOLD} the offset is {cut.hyperplane.offset}, not {expected.hyperplane.offset}"
    if hasattr(original, "predict_proba"):
        probability = _ask(original.predict_proba, inputs)
        classes = [str(name) for name in getattr(original, "classes_", (0, 1))]
        positive = classes.index(cut.classes[1]) if cut.classes is not None and cut.classes[1] in classes else 1
        _agree(cut, rows, probability[:, positive] >= THRESHOLD, f"probabilities, cut at {THRESHOLD}")


def _agree(model: LinearModel, rows: FloatArray, yes: BoolArray, what: str) -> None:
    margin = model.hyperplane.margin(rows)
    reach = np.abs(rows) @ np.abs(model.hyperplane.normal) + abs(model.hyperplane.offset)
    wrong = np.flatnonzero(((model.hyperplane.labels(rows) == YES) != yes) & (np.abs(margin) > 1e-9 * reach))
    assert not len(wrong), (
        f"{len(wrong)} of {len(rows)} labels are not the original's {what}, the first in row {wrong[0]}"
    )


def _ask(method: Callable[[Any], Any], inputs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(method(inputs))


def _saved(model: LinearModel) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        again = read_coefficients(path)
    assert again == model, "the saved model is not the one that is read back"
    assert to_entries(again) == to_entries(model), "the saved model is not the one that is read back"


def _state(original: Any) -> Any:
    """What must not change: the bytes of a file, or an object's own attributes; those with _ may be caches."""
    if isinstance(original, str | Path):
        return Path(original).read_bytes()
    own = getattr(original, "__dict__", {})
    return {name: _stored(value) for name, value in own.items() if not name.startswith("_")}


def _stored(value: Any) -> Any:
    try:
        return pickle.dumps(value)
    except Exception:  # a function or an object that cannot be stored
        return repr(value)
