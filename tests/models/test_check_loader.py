"""`check_loader` accepts good loaders and says what is wrong with bad ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model
from overexplain.testing import check_loader


@pytest.fixture(scope="module")
def fitted() -> Any:
    X, y = make_classification(150, 5, random_state=0)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X * 40 + 7, np.where(y, "yes", "no"))


def test_our_own_loaders_keep_it(fitted: Any, tmp_path: Path) -> None:
    check_loader(load_model, fitted)
    X, y = make_classification(150, 5, random_state=1)
    check_loader(load_model, RidgeClassifier().fit(X, y), points=X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    check_loader(load_model, LogisticRegression().fit(frame, y), points=frame)
    check_loader(load_model, LogisticRegression().fit(frame, y), rng=3)

    def through_a_file(original: Any, threshold: float | None = None) -> LinearModel:
        load_model(original).save(tmp_path / "model.json")
        return load_model(tmp_path / "model.json", threshold=threshold)

    check_loader(through_a_file, fitted)


def test_categories(fitted: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.choice(["a", "b", "c"], 90), "x": rng.normal(size=90), "m": rng.random(90) < 0.5})
    columns = make_column_transformer((OneHotEncoder(), ["k", "m"]), (StandardScaler(), ["x"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, (frame.x + (frame.k == "a") > 0).astype(int))
    check_loader(load_model, model)
    check_loader(load_model, model, points=frame)


def test_statsmodels_and_functions() -> None:
    X, y = make_classification(150, 3, n_informative=3, n_redundant=0, random_state=1)
    check_loader(load_model, sm.Logit(y, X).fit(disp=0), points=X)
    plane = Hyperplane([1.0, -2.0], 0.5)

    def refusing(_: Any, threshold: float | None = None) -> LinearModel:
        return load_model(plane, threshold=threshold)

    check_loader(refusing, lambda rows: plane.labels(rows))


def broken(change: Any) -> Any:
    def load(original: Any, threshold: float | None = None) -> Any:
        return change(load_model(original, threshold=threshold))

    return load


def moved(model: LinearModel, by: float) -> LinearModel:
    plane = model.hyperplane
    return replace(model, hyperplane=Hyperplane(plane.normal, plane.offset + by))


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (lambda original, threshold=None: load_model(original).hyperplane, "returns a LinearModel, got Hyperplane"),
        (lambda original: load_model(original), "load must take threshold="),
        (broken(lambda model: moved(model, 0.05)), "labels are not the original's decisions"),
        (broken(lambda model: replace(model, hyperplane=model.hyperplane.flipped())), "not the original's decisions"),
        (broken(lambda model: replace(model, classes=("maybe", "sure"))), "answers must be called"),
        (lambda original, threshold=None: load_model(original), "threshold=0.3 was asked for, the model says None"),
        (
            lambda original, threshold=None: replace(load_model(original), threshold=threshold),
            "with threshold=0.3 the offset is",
        ),
        (broken(lambda model: LinearModel(Hyperplane(np.ones(6), 0.0))), "has 6 features, the original takes 5"),
        (
            lambda original, threshold=None: replace(load_model(original), link="none"),
            "threshold=0.3 was not refused",
        ),
    ],
)
def test_what_breaks_the_contract(load: Any, text: str, fitted: Any) -> None:
    with pytest.raises(AssertionError, match=text):
        check_loader(load, fitted)


def test_a_loader_that_changes_the_original(fitted: Any) -> None:
    X, y = make_classification(80, 3, n_informative=3, n_redundant=0, random_state=1)
    original = LogisticRegression().fit(X, y)

    def load(model: Any, threshold: float | None = None) -> LinearModel:
        model.seen = getattr(model, "seen", 0) + 1
        return load_model(model, threshold=threshold)

    with pytest.raises(AssertionError, match="loading changed the original"):
        check_loader(load, original)


def test_errors_of_the_loader_and_points_of_one_kind(fitted: Any) -> None:
    with pytest.raises(AssertionError, match="UnsupportedModel: .* not on the list"):
        check_loader(load_model, StandardScaler())
    with pytest.raises(AssertionError, match="all points get the same answer"):
        check_loader(load_model, fitted, points=np.full((3, 5), 1e6))
    with pytest.raises(AssertionError, match="DimensionMismatch"):
        check_loader(load_model, fitted, points=np.ones((3, 4)))
