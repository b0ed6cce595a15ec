"""Models of several classes: read from scikit-learn and files as `predict` decides, written and read back bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import joblib
import jsonschema
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from overexplain.auditing.audit import audit
from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedModel
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.models.load import load_model, load_multiclass
from overexplain.models.multiclass import MulticlassModel, multiclass_of, to_entries
from overexplain.models.sandbox import _stored
from overexplain.models.schema import model_schema

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)) * [1.0, 2.0, 1.5, 0.5] + [0.0, 3.0, -1.0, 0.0]
Y = np.array(["low", "middle", "high", "none"])[((X - X.mean(0)) / X.std(0) @ rng.normal(size=(4, 4))).argmax(axis=1)]

CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=500),
    "one for each": OneVsRestClassifier(LogisticRegression()),
    "one SVC for each": OneVsRestClassifier(SVC(kernel="linear")),
    "a pipeline for each": OneVsRestClassifier(make_pipeline(StandardScaler(), LinearSVC())),
    "linear SVC": LinearSVC(max_iter=5000),
    "ridge": RidgeClassifier(),
    "discriminants": LinearDiscriminantAnalysis(),
    "SGD": SGDClassifier(random_state=0),
    "perceptron": Perceptron(),
    "pipeline": make_pipeline(StandardScaler(), MinMaxScaler(), LogisticRegression()),
    "pipeline of one for each": make_pipeline(StandardScaler(), OneVsRestClassifier(RidgeClassifier())),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_what_is_read_decides_as_predict_does(name: str) -> None:
    fitted = CLASSIFIERS[name].fit(X, Y)
    model = load_multiclass(fitted)
    points = X.mean(0) + 4 * X.std(0) * np.random.default_rng(1).normal(size=(1000, 4))
    assert model.classes == tuple(fitted.classes_)
    assert np.array_equal(np.array(model.classes)[model.argmax.labels(points)], fitted.predict(points))
    with pytest.raises(UnsupportedModel):
        load_model(fitted)


def test_load_model_points_to_load_multiclass() -> None:
    inner = OneVsRestClassifier(LogisticRegression())
    fitted = [
        inner.fit(X, Y),
        make_pipeline(StandardScaler(), inner).fit(X, Y),
        LogisticRegression(max_iter=500).fit(X, Y),
    ]
    for model in (*fitted, load_multiclass(fitted[0]), load_multiclass(fitted[0]).argmax):
        with pytest.raises(UnsupportedModel, match="load_multiclass"):
            load_model(model)
    with pytest.raises(UnsupportedModel, match="audit_multiclass"):
        audit(load_multiclass(fitted[0]), X)
    with pytest.raises(UnsupportedModel, match="not on the list"):
        load_model(GaussianNB().fit(X, Y))


def test_columns_of_categories_are_folded_in() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 3, "a", "b"), "other": X[:, 2]})
    steps = ColumnTransformer([("n", StandardScaler(), ["size", "other"]), ("c", OneHotEncoder(), ["kind"])])
    fitted = make_pipeline(steps, LogisticRegression()).fit(frame, Y)
    model = load_multiclass(fitted)
    assert model.features == ("size", "kind=a", "kind=b", "other")
    assert model.domain is not None
    assert np.array_equal(np.array(model.classes)[model.argmax.labels(model.encode(frame))], fitted.predict(frame))


def test_two_classes_are_yes_and_no() -> None:
    y = np.where(X[:, 0] > 0, "yes", "no")
    for fitted in (LogisticRegression().fit(X, y), OneVsRestClassifier(LogisticRegression()).fit(X, y)):
        model = load_multiclass(fitted)
        assert np.array_equal(np.array(model.classes)[model.argmax.labels(X)], fitted.predict(X))
        assert not model.argmax.weights[0].any()
    plane = load_model(LogisticRegression().fit(X, y)).hyperplane
    assert load_multiclass(plane).argmax.plane(0, 1) == plane
    assert [load_multiclass(Hyperplane([1.0], 2.0)).argmax.label([x]) for x in (1.0, 3.0)] == [0, 1]
    assert Hyperplane([1.0], 2.0).label([3.0]) == YES


def test_what_is_no_largest_score_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match="vote"):
        load_multiclass(SVC(kernel="linear").fit(X[Y != "none"], Y[Y != "none"]))
    with pytest.raises(UnsupportedModel, match="not linear"):
        load_multiclass(OneVsRestClassifier(SVC(kernel="rbf")).fit(X, Y))
    with pytest.raises(UnsupportedModel, match="not on the list"):
        load_multiclass(OneVsRestClassifier(GaussianNB()).fit(X, Y))
    both = np.column_stack([X[:, 0] > 0, X[:, 1] > 3]).astype(int)
    with pytest.raises(UnsupportedModel, match="several labels"):
        load_multiclass(OneVsRestClassifier(LogisticRegression()).fit(X, both))
    with pytest.raises(UnsupportedModel, match="not fitted"):
        load_multiclass(LogisticRegression())

    class Reversed(LogisticRegression):
        def decision_function(self, rows: Any) -> Any:
            return -super().decision_function(rows)

    with pytest.raises(UnsupportedModel, match="contradicts"):
        load_multiclass(Reversed().fit(X, Y))


def test_saved_and_read_back_bit_for_bit(tmp_path: Path) -> None:
    model = load_multiclass(LogisticRegression(max_iter=500).fit(pd.DataFrame(X, columns=list("abcd")), Y))
    model.save(tmp_path / "model.json")
    again = load_multiclass(tmp_path / "model.json")
    assert again == model
    assert again.argmax.weights.tobytes() == model.argmax.weights.tobytes()
    assert (again.features, again.classes, again.source) == (("a", "b", "c", "d"), model.classes, "coefficient file")
    entries = json.loads((tmp_path / "model.json").read_text())
    jsonschema.Draft202012Validator(model_schema()).validate(entries)
    assert load_multiclass(entries) == model
    with pytest.raises(UnsupportedModel, match="load_multiclass"):
        load_model(tmp_path / "model.json")
    nameless = MulticlassModel(ArgmaxModel([[1.0], [2.0], [0.1]], [0.0, 0.0, 1 / 3]))
    nameless.save(tmp_path / "nameless.json")
    assert load_multiclass(tmp_path / "nameless.json") == nameless


def test_a_file_of_yes_and_no_has_two_classes(tmp_path: Path) -> None:
    path = tmp_path / "scorecard.json"
    path.write_text(
        '{"coefficients": {"age": 0.5}, "intercept": -20, "threshold": 0.5, "classes": ["denied", "granted"]}'
    )
    model = load_multiclass(path)
    assert [model.classes[k] for k in model.argmax.labels([[30.0], [50.0]])] == ["denied", "granted"]


def test_coefficients_by_name_in_any_order() -> None:
    first = {"class": "a", "coefficients": {"x": 1, "y": 2}, "intercept": 0}
    second = {"class": "b", "coefficients": {"y": 4, "x": 3}, "intercept": 1}
    model = load_multiclass({"scores": [first, second]})
    assert model.features == ("x", "y")
    assert model.argmax.weights.tolist() == [[1, 2], [3, 4]]
    assert multiclass_of(to_entries(model)) == model


SCORE: dict[str, Any] = {"coefficients": [1.0, 2.0], "intercept": 0.0}
OTHER: dict[str, Any] = {"coefficients": [0.0, 1.0], "intercept": 1.0}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"scores": 3}, "list of objects"),
    ({"scores": [SCORE]}, "at least two"),
    ({"scores": [SCORE, 4]}, "list of objects"),
    ({"scores": [SCORE, {"coefficients": [1.0, 2.0]}]}, r"scores\[1\].*'intercept' is missing"),
    ({"scores": [SCORE, {"coefficients": [1.0], "intercept": 0}]}, "the first class has 2"),
    ({"scores": [SCORE, OTHER | {"coefficients": [1.0, "2"]}]}, "without quotes"),
    ({"scores": [SCORE, OTHER | {"weights": 1}]}, "unknown key"),
    ({"scores": [SCORE, OTHER], "intercept": 0}, "unknown key 'intercept'"),
    ({"scores": [SCORE, OTHER], "version": 9}, "newer"),
    ({"scores": [SCORE | {"class": "a"}, OTHER]}, "must be a text"),
    ({"scores": [SCORE | {"class": "a"}, OTHER | {"class": "a"}]}, "twice"),
    ({"scores": [SCORE, OTHER], "features": ["a"]}, "named"),
    ({"scores": [SCORE, SCORE]}, "same weights"),
    ({"scores": [SCORE, OTHER | {"intercept": float("nan")}]}, "NaN"),
    ({"coefficients": [0.0], "intercept": 1}, "zero"),
]


@pytest.mark.parametrize(("entries", "message"), BAD)
def test_malformed_entries_are_refused_in_words(entries: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        load_multiclass(entries)


def test_malformed_files_are_refused_with_their_name(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for text in ("", "{", '{"scores": []}', '{"scores": [{}, {}], "scores": []}'):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=r"model\.json"):
            load_multiclass(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_multiclass(tmp_path / "nowhere.json")


def test_stored_objects_are_read_in_the_sandbox(tmp_path: Path) -> None:
    fitted = OneVsRestClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, Y)
    path = tmp_path / "model.skops"
    skops.io.dump(fitted, path)
    model = load_multiclass(path)
    assert model == load_multiclass(fitted)
    assert model.source == "OneVsRestClassifier"
    with pytest.raises(UnsupportedModel, match="load_multiclass"):  # what load_model makes of the same answer
        _stored({"entries": to_entries(model)})
    pickled = tmp_path / "model.joblib"
    joblib.dump(fitted, pickled)
    with pytest.raises(UnsupportedModel, match="runs code"):
        load_multiclass(pickled)


def test_the_names_must_fit() -> None:
    argmax = ArgmaxModel([[1.0], [2.0], [3.0]], [0.0, 0.0, 0.0])
    with pytest.raises(DimensionMismatch, match="2 features are named"):
        MulticlassModel(argmax, features=("a", "b"))
    with pytest.raises(DimensionMismatch, match="2 classes are named"):
        MulticlassModel(argmax, classes=("a", "b"))
    with pytest.raises(InvalidInput, match="ArgmaxModel"):
        MulticlassModel("model")
    with pytest.raises(InvalidInput, match="rows of numbers"):
        MulticlassModel(argmax).encode({"a": [1.0]})
    assert load_multiclass(argmax).argmax is argmax
