"""Results of statsmodels: logit and probit, from arrays, frames and formulas, against their own predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf

from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel, ZeroNormal
from overexplain.models.load import load_model
from overexplain.models.statsmodels import from_statsmodels

BINOMIAL = sm.families.Binomial()
PROBIT = sm.families.Binomial(sm.families.links.Probit())


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 10, 300),
            "net income": rng.normal(3, 1, 300),
            "colour": rng.choice(["red", "green", "blue"], 300),
            "floor": rng.integers(1, 4, 300),
            "member": rng.random(300) < 0.5,
        }
    )
    score = (frame.age - 45) / 10 + (frame.colour == "red") - frame.member + rng.normal(0, 1, 300)
    return frame.assign(y=(score > 0).astype(int))


def fits(y: Any, X: Any) -> dict[str, Any]:
    return {
        "Logit": sm.Logit(y, X).fit(disp=0),
        "Probit": sm.Probit(y, X).fit(disp=0),
        "GLM": sm.GLM(y, X, family=BINOMIAL).fit(),
        "GLM probit": sm.GLM(y, X, family=PROBIT).fit(),
        "Logit l1": sm.Logit(y, X).fit_regularized(alpha=1.0, disp=0),
    }


def test_arrays_and_frames(people: pd.DataFrame) -> None:
    frame = people[["age", "net income"]]
    for X, features in ((sm.add_constant(frame), ("age", "net income")), (sm.add_constant(frame.to_numpy()), None)):
        for name, results in fits(people.y, X).items():
            model = from_statsmodels(results)
            probability = np.asarray(results.predict(X))
            rows = frame.to_numpy()
            np.testing.assert_array_equal(model.hyperplane.labels(rows) == 1, probability >= 0.5)
            assert (model.features, model.classes, model.columns) == (features, ("0", "1"), None)
            assert model.link == ("none" if "robit" in name else "logistic")
            assert model.source == f"statsmodels {name.partition(' ')[0]}"
            assert load_model(results) == model
            if model.link == "logistic":
                at = load_model(results, threshold=0.8)
                np.testing.assert_array_equal(at.hyperplane.labels(rows) == 1, probability >= 0.8)
                odds = np.log(probability / (1 - probability))
                np.testing.assert_allclose(model.hyperplane.margin(rows), odds, atol=1e-9)
            else:
                with pytest.raises(UnsupportedModel, match="a probit model is cut at ½"):
                    load_model(results, threshold=0.8)


def test_the_constant_may_be_anywhere_any_value_or_missing(people: pd.DataFrame) -> None:
    rows = people[["age", "net income"]].to_numpy()
    last = np.column_stack([rows, np.full(len(rows), 2.5)])
    for X in (last, last[:, [0, 2, 1]], rows):
        results = sm.Logit(people.y.to_numpy(), X).fit(disp=0)
        model = from_statsmodels(results)
        assert model.dimension == 2
        np.testing.assert_array_equal(model.hyperplane.labels(rows) == 1, results.predict(X) >= 0.5)


@pytest.mark.parametrize(
    ("right", "features"),
    [
        ("age + Q('net income')", {"age", "net income"}),
        ('age + C(colour) + Q("net income")', {"age", "net income", "colour=red", "colour=green", "colour=blue"}),
        ("age + C(colour, Sum) + C(floor, Poly)", None),
        ("age + C(colour, Treatment('red')) + member", None),
        ("0 + colour + age", None),
        ("age + floor + C(floor)", {"age", "floor", "floor=1", "floor=2", "floor=3"}),
        ("age - 1", {"age"}),
    ],
)
def test_formulas(right: str, features: set[str] | None, people: pd.DataFrame) -> None:
    for fit in (
        lambda formula: smf.logit(formula, people).fit(disp=0),
        lambda formula: smf.probit(formula, people).fit(disp=0),
        lambda formula: smf.glm(formula, people, family=BINOMIAL).fit(),
    ):
        if "floor + C(floor)" in right and fit is not None:
            results = smf.logit("y ~ " + right, people).fit_regularized(alpha=0.5, disp=0)  # not of full rank
        else:
            results = fit("y ~ " + right)
        model = from_statsmodels(results)
        assert features is None or set(model.features) == features
        rows = model.encode(people)
        np.testing.assert_array_equal(model.hyperplane.labels(rows) == 1, results.predict(people) >= 0.5)


def test_formulas_that_compute_are_refused(people: pd.DataFrame) -> None:
    for right in ("np.log(age)", "age * member", "I(age ** 2)", "C(colour) : age", "bs(age, df=4)"):
        results = smf.logit(f"y ~ {right}", people).fit(disp=0, maxiter=3, warn_convergence=False)
        with pytest.raises(UnsupportedModel, match="of the formula is computed from the columns; only plain columns"):
            from_statsmodels(results)


def test_what_is_not_a_binary_linear_classifier(people: pd.DataFrame) -> None:
    X, y = sm.add_constant(people[["age"]]), people.y
    complementary = sm.families.Binomial(sm.families.links.CLogLog())
    for results, text in (
        (sm.OLS(y, X).fit(), "OLS of statsmodels is not on the list"),
        (sm.GLM(y, X, family=complementary).fit(), "family Binomial and the link CLogLog"),
        (sm.GLM(y, X, family=sm.families.Poisson()).fit(), "family Poisson and the link Log"),
        (sm.MNLogit(people.floor, X).fit(disp=0), "MNLogit of statsmodels is not on the list"),
        (sm.GLM(y, X, family=BINOMIAL, offset=np.ones(len(y))).fit(), "has an offset"),
        (sm.Logit(y, X, offset=np.ones(len(y))).fit(disp=0), "has an offset"),
        (sm.Logit(y, X), "a Logit is not fitted"),
    ):
        with pytest.raises(UnsupportedModel, match=text):
            load_model(results)


def test_broken_coefficients(people: pd.DataFrame) -> None:
    X = sm.add_constant(people[["age"]]).to_numpy()
    results = sm.Logit(people.y.to_numpy(), X).fit(disp=0)
    results._results.params = np.array([1.0, 0.0])
    with pytest.raises(ZeroNormal, match="every coefficient"):
        from_statsmodels(results)
    results._results.params = np.array([1.0, np.nan])
    with pytest.raises(NotFinite, match="not finite; the fit did not succeed"):
        from_statsmodels(results)
    results._results.params = np.array([1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="3 parameters for 2 columns"):
        from_statsmodels(results)


def test_a_prediction_that_says_otherwise_is_noticed(people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    results = smf.logit("y ~ age", people).fit(disp=0)
    right = type(results._results).predict
    monkeypatch.setattr(type(results._results), "predict", lambda self, *a, **k: 1 - right(self, *a, **k))
    with pytest.raises(UnsupportedModel, match="contradicts its own predict on"):
        from_statsmodels(results)

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(type(results._results), "predict", broken)
    with pytest.raises(UnsupportedModel, match="predict of the BinaryResults fails on 256 points: out of order"):
        from_statsmodels(results)


def test_results_without_their_data(people: pd.DataFrame) -> None:
    X = sm.add_constant(people[["age", "net income"]])
    results = sm.Logit(people.y, X).fit(disp=0)
    full = from_statsmodels(results)
    results.remove_data()
    assert from_statsmodels(results).hyperplane == full.hyperplane


def test_shares_of_successes(people: pd.DataFrame) -> None:
    X = sm.add_constant(people[["age"]])
    counts = np.column_stack([people.y * 3, 5 - people.y * 3])
    results = sm.GLM(counts, X, family=BINOMIAL).fit()
    model = from_statsmodels(results)
    assert model.classes is None
    np.testing.assert_array_equal(model.hyperplane.labels(people[["age"]].to_numpy()) == 1, results.predict(X) >= 0.5)
