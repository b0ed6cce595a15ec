"""Fitted quadratic classifiers: what is read is what they score, and what cannot be read is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from overexplain.errors import UnsupportedModel
from overexplain.extraction.quadratic import extract_quadratic
from overexplain.extraction.result import Spent
from overexplain.models.quadratic import load_quadratic
from overexplain.oracles.quadratic import QuadraticOracle


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:, [0, 1, 4, 8, 11]]) * [1.0, 3.0, 0.5, 2.0, 1.0] + 2.0, y


@pytest.mark.parametrize(
    "classifier",
    [
        QuadraticDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(reg_param=0.2, priors=[0.7, 0.3]),
        make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=1000)),
        make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler(), RidgeClassifier()),
        make_pipeline(StandardScaler(with_std=False), PolynomialFeatures(2, interaction_only=True), RidgeClassifier()),
        make_pipeline("passthrough", StandardScaler(with_mean=False), PolynomialFeatures(1), RidgeClassifier()),
    ],
)
def test_scores_are_the_originals(classifier: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = load_quadratic(classifier.fit(X, y))
    assert model.value(X) == pytest.approx(classifier.decision_function(X), rel=1e-6, abs=1e-7)
    assert ((model.labels(X) == 1) == (classifier.predict(X) == 1)).mean() > 0.999


def test_discriminant_analysis_is_rebuilt_from_p_plus_one_answers(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    classifier = QuadraticDiscriminantAnalysis().fit(X, y)
    found = extract_quadratic(QuadraticOracle(load_quadratic(classifier)), bounds=(-6, 10), rng=0)
    assert found.spent == Spent(6, 1)
    assert np.array_equal(found.model.labels(X) == 1, classifier.predict(X) == 1)


@pytest.mark.parametrize(
    ("classifier", "reason"),
    [
        (DecisionTreeClassifier(), "cannot be read as a quadratic model"),
        (make_pipeline(PolynomialFeatures(3), RidgeClassifier()), "degree 3"),
        (make_pipeline(MinMaxScaler(), PolynomialFeatures(2), RidgeClassifier()), "only a StandardScaler"),
        (make_pipeline(StandardScaler(), RidgeClassifier()), "one PolynomialFeatures"),
        (make_pipeline(PolynomialFeatures(2), DecisionTreeClassifier()), "no coef_"),
    ],
)
def test_what_is_not_quadratic_is_refused(classifier: Any, reason: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = StandardScaler().fit_transform(data[0][:, :3]), data[1]
    with pytest.raises(UnsupportedModel, match=reason):
        load_quadratic(classifier.fit(X, y))


def test_unfitted_many_classes_and_liars_are_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(UnsupportedModel, match="not fitted"):
        load_quadratic(QuadraticDiscriminantAnalysis())
    with pytest.raises(UnsupportedModel, match="3 classes"):
        load_quadratic(QuadraticDiscriminantAnalysis().fit(X, np.arange(len(y)) % 3))

    class Other(QuadraticDiscriminantAnalysis):
        def decision_function(self, X: Any) -> Any:
            return super().decision_function(X) + 1.0

    with pytest.raises(UnsupportedModel, match="contradicts"):
        load_quadratic(Other().fit(X, y))
