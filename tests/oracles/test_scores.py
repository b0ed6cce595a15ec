"""Scores: logistic regression's own probability, as scikit-learn computes it, rounded as services round it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.load import load_model
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.protocol import offers
from overexplain.oracles.scores import Scored, ScoreOracle, checked_score, logistic

PLANE = Hyperplane([2.0, -1.0, 0.5], 0.7)


def test_scores_are_those_of_the_fitted_model():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    fitted = LogisticRegression().fit(X, X @ [1.0, -2.0, 0.0, 0.5] + rng.normal(size=200) > 0.3)
    service = Scored(load_model(fitted))
    assert np.allclose(service.score(X), fitted.predict_proba(X)[:, 1], rtol=1e-13, atol=0)
    assert np.array_equal(service.classify(X), np.where(fitted.predict(X), 1, -1))


def test_a_point_and_rows_agree():
    service = Scored(PLANE)
    X = np.random.default_rng(1).normal(size=(20, 3))
    scores = service.score(X)
    assert isinstance(service.score(X[0]), float)
    assert [service.score(x) for x in X] == scores.tolist()
    assert [service.classify(x) for x in X] == service.classify(X).tolist()
    assert np.array_equal(scores > 0.5, service.classify(X) == 1)


def test_rounded_scores_keep_their_side():
    X = np.random.default_rng(2).normal(size=(500, 3))
    exact, coarse = Scored(PLANE).score(X), Scored(PLANE, decimals=2).score(X)
    assert np.array_equal(coarse, np.round(exact, 2))
    assert (coarse[PLANE.labels(X) == 1] >= 0.5).all()
    assert (coarse[PLANE.labels(X) == -1] <= 0.5).all()


@pytest.mark.parametrize("t", [-745.0, -40.0, -1e-9, 0.0, 0.3, 20.0, 36.0])
def test_logistic_has_all_its_digits(t):
    small = Fraction(math.exp(-abs(t)))
    expected = (Fraction(1) if t >= 0 else small) / (1 + small)
    assert math.isclose(float(logistic(t)), float(expected), rel_tol=4e-16)


def test_logistic_has_ends():
    assert logistic([-np.inf, np.inf, -1e308, 1e308]).tolist() == [0.0, 1.0, 0.0, 1.0]


def test_scored_gives_labels_and_scores_and_explains_nothing():
    service = Scored(PLANE)
    assert isinstance(service, ScoreOracle)
    assert not isinstance(ModelOracle(PLANE, "l2"), ScoreOracle)
    assert offers(service, "score")
    assert not offers(service, "explain")
    assert (service.mechanism, service.dimension, service.hyperplane) == (None, 3, PLANE)


def test_bad_input_is_refused():
    with pytest.raises(DimensionMismatch, match="3 entries"):
        Scored(PLANE).score([1.0, 2.0])
    with pytest.raises(InvalidInput, match="decimals must be a whole number from 0 to 17, got 2.5"):
        Scored(PLANE, decimals=2.5)
    with pytest.raises(InvalidInput, match="decimals"):
        Scored(PLANE, decimals=-1)
    with pytest.raises(InvalidInput, match="a Hyperplane or a loaded model, got list"):
        Scored([1.0, 2.0])


@pytest.mark.parametrize("answer", [-0.1, 1.1, math.nan, "high", None, True, [0.2, 0.8], 1j])
def test_what_is_no_probability_is_no_score(answer):
    with pytest.raises(InvalidInput, match="score must return the probability of Yes"):
        checked_score(answer)


def test_percentages_get_a_hint():
    with pytest.raises(InvalidInput, match="divide percentages by 100"):
        checked_score(73.0)
    assert checked_score(np.float32(0.5)) == 0.5
