"""Every scikit-learn classifier on the list, with and without scalers, against its own scores and labels."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel, ZeroNormal
from overexplain.models.linear import LinearModel
from overexplain.models.sklearn import from_sklearn

# What scikit-learn 1.8 and newer warn about unless it is said; older ones do not know it.
CV = {"l1_ratios": (0,), "use_legacy_attributes": False}
CV = CV if "use_legacy_attributes" in signature(LogisticRegressionCV).parameters else {}
CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=20_000),
    "logistic-cv": LogisticRegressionCV(Cs=2, cv=2, max_iter=20_000, scoring="accuracy", **CV),
    "linear-svc": LinearSVC(dual=False, max_iter=20_000),
    "svc": SVC(kernel="linear"),
    "sgd-hinge": SGDClassifier(random_state=0, max_iter=5_000),
    "sgd-log": SGDClassifier(loss="log_loss", random_state=0, max_iter=5_000),
    "sgd-average": SGDClassifier(average=True, random_state=0, max_iter=5_000),
    "ridge": RidgeClassifier(),
    "ridge-cv": RidgeClassifierCV(),
    "perceptron": Perceptron(random_state=0, max_iter=5_000),
    "lda": LinearDiscriminantAnalysis(),
    "lda-lsqr": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "no-intercept": LogisticRegression(fit_intercept=False, max_iter=20_000),
}
LOGISTIC = ("logistic", "logistic-cv", "sgd-log", "lda", "lda-lsqr", "no-intercept")
SCALERS = {
    "none": None,
    "standard": StandardScaler(),
    "standard-no-mean": StandardScaler(with_mean=False),
    "standard-no-std": StandardScaler(with_std=False),
    "min-max": MinMaxScaler(feature_range=(-1, 3)),
    "max-abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust-no-centring": RobustScaler(with_centering=False, unit_variance=True),
    "robust-no-scaling": RobustScaler(with_scaling=False),
}
Data = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module", params=["cancer", "made"])
def data(request: pytest.FixtureRequest) -> Data:
    """Training rows, training labels, held-out rows; the features have different sizes and places."""
    if request.param == "cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X, y = X[:300, ::3], y[:300]
        # Raw, its columns differ by 1e5 and the iterative solvers do not converge; this keeps them uneven, but less so.
        X = X / np.abs(X).max(axis=0) * np.linspace(1, 4, X.shape[1])
    else:
        X, y = make_classification(300, 8, n_informative=5, flip_y=0.05, random_state=1)
        X = X * np.linspace(0.5, 3, 8) + np.linspace(-4, 4, 8)
    return X[::2], y[::2], X[1::2]


@pytest.fixture(scope="module")
def small() -> Data:
    X, y = make_classification(200, 4, random_state=3)
    return X[::2], y[::2], X[1::2]


def check(fitted: Any, model: LinearModel, rows: np.ndarray) -> None:
    """The model's margins and labels are the original's."""
    score = fitted.decision_function(rows)
    np.testing.assert_allclose(model.hyperplane.margin(rows), score, rtol=1e-9, atol=1e-9 * np.abs(score).max())
    yes = np.asarray(fitted.classes_)[1]
    np.testing.assert_array_equal(model.hyperplane.labels(rows) == 1, fitted.predict(rows) == yes)


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_behind_every_scaler(name: str, scaler: str, data: Data) -> None:
    X, y, held_out = data
    fitted = make_pipeline(SCALERS[scaler], CLASSIFIERS[name]) if SCALERS[scaler] else CLASSIFIERS[name]
    fitted = fitted.fit(X, y)
    model = from_sklearn(fitted)
    check(fitted, model, held_out)
    assert (model.threshold, model.classes, model.features) == (None, ("0", "1"), None)
    assert model.link == ("logistic" if name in LOGISTIC else "none")


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("scaler", ["none", "standard", "min-max"])
@pytest.mark.parametrize("name", LOGISTIC)
def test_threshold_on_the_probability(name: str, scaler: str, threshold: float, data: Data) -> None:
    X, y, held_out = data
    fitted = (make_pipeline(SCALERS[scaler], CLASSIFIERS[name]) if SCALERS[scaler] else CLASSIFIERS[name]).fit(X, y)
    model = from_sklearn(fitted, threshold)
    expected = fitted.predict_proba(held_out)[:, 1] >= threshold
    np.testing.assert_array_equal(model.hyperplane.labels(held_out) == 1, expected)
    assert model.threshold == threshold


@pytest.mark.parametrize("name", sorted(set(CLASSIFIERS) - set(LOGISTIC)))
def test_threshold_needs_a_sigmoid(name: str, small: Data) -> None:
    fitted = make_pipeline(StandardScaler(), CLASSIFIERS[name]).fit(*small[:2])
    with pytest.raises(UnsupportedModel, match="needs a classifier with P = 1/"):
        from_sklearn(fitted, 0.3)


def test_modified_huber_probabilities_are_not_a_sigmoid(small: Data) -> None:
    fitted = SGDClassifier(loss="modified_huber", random_state=0).fit(*small[:2])
    with pytest.raises(UnsupportedModel, match="SGDClassifier is cut on its score"):
        from_sklearn(fitted, 0.3)


@pytest.mark.parametrize("threshold", [0, 1, -1, 2, float("nan"), True, "0.5"])
def test_threshold_must_be_a_probability(threshold: Any, small: Data) -> None:
    with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
        from_sklearn(LogisticRegression().fit(*small[:2]), threshold)


def test_raw_breast_cancer_with_its_uneven_columns() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    for classifier in (LinearDiscriminantAnalysis(), RidgeClassifier(solver="svd"), SVC(kernel="linear", C=0.01)):
        fitted = classifier.fit(X[::2], y[::2])
        check(fitted, from_sklearn(fitted), X[1::2])


def test_far_from_the_origin(small: Data) -> None:
    """A mean of a million standard deviations costs digits, but no agreement."""
    X, y, held_out = small
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X + 1e6, y)
    np.testing.assert_allclose(
        from_sklearn(fitted).hyperplane.margin(held_out + 1e6), fitted.decision_function(held_out + 1e6), atol=1e-7
    )


def test_an_svc_whose_own_scores_are_rounding_is_refused(small: Data) -> None:
    """Its scores are sums over support vectors; far from 0 they differ from coef_·x by more than they say."""
    X, y, _ = small
    with pytest.raises(UnsupportedModel, match="so far from 0 that its own sums are mostly rounding: scale the data"):
        from_sklearn(SVC(kernel="linear").fit(X + 1e8, y))
    scaled = make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(X + 1e8, y)
    np.testing.assert_array_equal(from_sklearn(scaled).hyperplane.labels(X + 1e8) == 1, scaled.predict(X + 1e8) == 1)


def test_pipelines_in_pipelines_and_steps_that_do_nothing(data: Data) -> None:
    X, y, held_out = data
    before = Pipeline([("a", MinMaxScaler()), ("skip", "passthrough"), ("b", RobustScaler())])
    ending = Pipeline([("c", StandardScaler()), ("classifier", LogisticRegression())])
    fitted = Pipeline([("none", None), ("before", before), ("ending", ending)]).fit(X, y)
    check(fitted, from_sklearn(fitted), held_out)


def test_frozen_estimators_are_opened(small: Data) -> None:
    X, y, held_out = small
    scaler = FrozenEstimator(StandardScaler().fit(X))
    fitted = make_pipeline(scaler, FrozenEstimator(LogisticRegression().fit(scaler.transform(X), y)))
    check(fitted, from_sklearn(fitted), held_out)


def test_sparse_coefficients_and_sparse_support_vectors(small: Data) -> None:
    X, y, held_out = small
    fitted = SGDClassifier(random_state=0).fit(X, y).sparsify()
    assert sparse.issparse(fitted.coef_)
    check(fitted, from_sklearn(fitted), held_out)
    fitted = SVC(kernel="linear").fit(sparse.csr_matrix(X), y)
    assert sparse.issparse(fitted.coef_)
    check(fitted, from_sklearn(fitted), held_out)


def test_attributes_set_by_hand(small: Data) -> None:
    model = LogisticRegression()
    model.coef_, model.intercept_ = np.array([[1.0, 2.0, 0.0, -1.0]]), np.array([0.5])
    with pytest.raises(UnsupportedModel, match="not fitted"):
        from_sklearn(model)
    model.classes_ = np.array(["no", "yes"])
    check(model, from_sklearn(model), small[2])


def test_float32_models(small: Data) -> None:
    X, y, held_out = small
    fitted = make_pipeline(MinMaxScaler(), LogisticRegression(solver="newton-cg")).fit(X.astype(np.float32), y)
    assert fitted[-1].coef_.dtype == np.float32
    check(fitted, from_sklearn(fitted), held_out)


def test_one_feature_and_a_constant_feature(small: Data) -> None:
    X, y, held_out = small
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:, :1], y)
    check(fitted, from_sklearn(fitted), held_out[:, :1])
    constant = np.column_stack([X, np.full(len(X), 7.0)])
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(constant, y)
    check(fitted, from_sklearn(fitted), np.column_stack([held_out, np.full(len(held_out), 7.0)]))


def test_classes_are_the_names_of_no_and_yes(small: Data) -> None:
    X, y, held_out = small
    fitted = LogisticRegression().fit(X, np.where(y == 1, "granted", "denied"))
    model = from_sklearn(fitted)
    assert model.classes == ("denied", "granted")
    check(fitted, model, held_out)
    assert from_sklearn(LogisticRegression().fit(X, y == 1)).classes == ("False", "True")


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_names_come_from_the_frame(output: str, small: Data) -> None:
    pandas = pytest.importorskip("pandas")
    X, y, held_out = small
    names = ["age", "income", "debts", "years"]
    frame = pandas.DataFrame(X, columns=names)
    later = pandas.DataFrame(held_out, columns=names)
    scaler = StandardScaler().set_output(transform=output)
    for unfitted in (
        LogisticRegression(),
        make_pipeline(scaler, LogisticRegression()),
        make_pipeline("passthrough", scaler, LogisticRegression()),
        FixedThresholdClassifier(make_pipeline(scaler, LogisticRegression()), threshold=0.3),
    ):
        fitted = unfitted.fit(frame, y)
        model = from_sklearn(fitted)
        assert model.features == tuple(names)
        np.testing.assert_array_equal(model.hyperplane.labels(later) == 1, fitted.predict(later) == 1)


@pytest.mark.parametrize("positive", [0, 1, None])
@pytest.mark.parametrize("method", ["auto", "predict_proba", "decision_function"])
@pytest.mark.parametrize("cut", ["auto", 0.3])
def test_fixed_threshold(cut: Any, method: str, positive: int | None, data: Data) -> None:
    X, y, held_out = data
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    fitted = FixedThresholdClassifier(inner, threshold=cut, response_method=method, pos_label=positive).fit(X, y)
    model = from_sklearn(fitted)
    yes = 1 if positive is None else positive
    np.testing.assert_array_equal(model.hyperplane.labels(held_out) == 1, fitted.predict(held_out) == yes)
    assert model.classes == (str(1 - yes), str(yes))
    on_score = method == "decision_function"
    assert model.threshold == (None if on_score else 0.5 if cut == "auto" else cut)
    assert model.link == ("none" if on_score and cut != "auto" else "logistic")

    other = from_sklearn(fitted, 0.8)
    expected = fitted.predict_proba(held_out)[:, yes] >= 0.8
    np.testing.assert_array_equal(other.hyperplane.labels(held_out) == 1, expected)


@pytest.mark.parametrize("positive", [0, 1])
def test_tuned_threshold(positive: int, data: Data) -> None:
    X, y, held_out = data
    scoring = make_scorer(f1_score, pos_label=positive)
    for inner in (LogisticRegression(), LinearSVC(dual=False)):
        tuned = TunedThresholdClassifierCV(inner, scoring=scoring, thresholds=20, cv=2, random_state=0)
        fitted = make_pipeline(StandardScaler(), tuned).fit(X, y)
        model = from_sklearn(fitted)
        np.testing.assert_array_equal(model.hyperplane.labels(held_out) == 1, fitted.predict(held_out) == positive)
        best = fitted[-1].best_threshold_
        assert model.threshold == (best if isinstance(inner, LogisticRegression) else None)


def test_fixed_threshold_around_a_fitted_model(small: Data) -> None:
    X, y, held_out = small
    fitted = FixedThresholdClassifier(FrozenEstimator(LogisticRegression().fit(X, y)), threshold=0.7)
    model = from_sklearn(fitted)
    np.testing.assert_array_equal(model.hyperplane.labels(held_out) == 1, fitted.predict(held_out) == 1)


def test_threshold_wrappers_that_cannot_be_read(small: Data) -> None:
    X, y, _ = small
    huber = SGDClassifier(loss="modified_huber", random_state=0)
    with pytest.raises(UnsupportedModel, match="SGDClassifier is cut on its score"):
        from_sklearn(FixedThresholdClassifier(huber, threshold=0.3).fit(X, y))
    with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
        from_sklearn(FixedThresholdClassifier(LogisticRegression(), threshold=1.5).fit(X, y))
    with pytest.raises(UnsupportedModel, match="TunedThresholdClassifierCV is not fitted; call fit first"):
        from_sklearn(TunedThresholdClassifierCV(LogisticRegression().fit(X, y), cv="prefit", refit=False))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_not_fitted(name: str) -> None:
    unfitted = clone(CLASSIFIERS[name])
    for model in (unfitted, make_pipeline(StandardScaler(), unfitted), FixedThresholdClassifier(unfitted)):
        with pytest.raises(UnsupportedModel, match="not fitted; call fit first"):
            from_sklearn(model)


def test_scaler_not_fitted(small: Data) -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression().fit(*small[:2]))
    with pytest.raises(UnsupportedModel, match=r"step 'standardscaler' \(StandardScaler\) is not fitted"):
        from_sklearn(pipeline)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_multiclass(name: str) -> None:
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    with pytest.raises(UnsupportedModel, match="only two classes"):
        from_sklearn(clone(CLASSIFIERS[name]).fit(X, y))


def test_multilabel(small: Data) -> None:
    X, y, _ = small
    with pytest.raises(UnsupportedModel, match="2 rows of coefficients"):
        from_sklearn(RidgeClassifier().fit(X, np.column_stack([y, 1 - y])))


def test_kernels_that_are_not_linear(small: Data) -> None:
    with pytest.raises(UnsupportedModel, match="kernel='rbf' is not linear"):
        from_sklearn(SVC().fit(*small[:2]))


def test_transformers_that_do_not_fold(small: Data) -> None:
    X, y, _ = small
    steps = {
        "is a QuantileTransformer: only steps": QuantileTransformer(n_quantiles=10),
        "is a Normalizer: dividing every row": Normalizer(),
        "is a FunctionTransformer: what its function computes": FunctionTransformer(np.abs),
        "is a PolynomialFeatures": PolynomialFeatures(),
        "is a KNNImputer": KNNImputer(),
    }
    for text, step in steps.items():
        inner = Pipeline([("bad", step), ("s", StandardScaler())])
        nested = Pipeline([("inner", inner), ("c", LogisticRegression())])
        with pytest.raises(UnsupportedModel, match=rf"step 'inner/bad' {text}.*StandardScaler.*beforehand"):
            from_sklearn(nested.fit(X, y))
    for scaler in (MinMaxScaler(), MaxAbsScaler()):
        fitted = make_pipeline(scaler, LogisticRegression()).fit(X, y)
        scaler.clip = True  # older versions of scikit-learn have no such parameter of MaxAbsScaler, but open what newer ones stored
        with pytest.raises(UnsupportedModel, match="clips, which is not linear"):
            from_sklearn(fitted)


def test_models_not_on_the_list(small: Data) -> None:
    X, y, _ = small
    with pytest.raises(UnsupportedModel, match=r"LinearRegression is not on the list .* read are LogisticRegression"):
        from_sklearn(LinearRegression().fit(X, y))
    with pytest.raises(UnsupportedModel, match="Pipeline that ends in CalibratedClassifierCV"):
        from_sklearn(make_pipeline(StandardScaler(), CalibratedClassifierCV(LogisticRegression())).fit(X, y))
    with pytest.raises(UnsupportedModel, match="give its best_estimator_"):
        from_sklearn(GridSearchCV(LogisticRegression(), {"C": [1.0]}).fit(X, y))
    with pytest.raises(UnsupportedModel, match="Pipeline that ends in 'passthrough'"):
        from_sklearn(Pipeline([("scale", StandardScaler()), ("end", "passthrough")]).fit(X, y))

    class LooksLinear:
        coef_, intercept_, classes_ = np.ones((1, 4)), 0.0, np.array([0, 1])

    with pytest.raises(UnsupportedModel, match="LooksLinear is not on the list"):
        from_sklearn(LooksLinear())


def test_zero_and_broken_coefficients(small: Data) -> None:
    X, y, _ = small
    fitted = LogisticRegression().fit(X, y)
    fitted.coef_ = np.zeros((1, 4))
    with pytest.raises(ZeroNormal, match="every coefficient of the LogisticRegression is zero"):
        from_sklearn(fitted)
    fitted.coef_ = np.array([[1.0, np.nan, 0.0, 0.0]])
    with pytest.raises(NotFinite, match="coef_ of the LogisticRegression has nan"):
        from_sklearn(fitted)
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    for mean, scale in ((1e308, 1e-3), (0.0, 1e-320)):
        scaled[0].mean_, scaled[0].scale_ = np.full(4, mean), np.full(4, scale)
        with pytest.raises(NotFinite, match="of the Pipeline multiply to more than float64 can hold"):
            from_sklearn(scaled)


def test_subclasses_are_held_to_what_they_say(small: Data) -> None:
    X, y, held_out = small

    class Same(LogisticRegression):
        pass

    class Squared(LogisticRegression):
        def decision_function(self, X: Any) -> Any:
            return super().decision_function(np.square(X))

    class Backwards(LogisticRegression):
        def predict(self, X: Any) -> Any:
            return 1 - super().predict(X)

    class Doubled(LogisticRegression):
        def predict_proba(self, X: Any) -> Any:
            yes = 1 / (1 + np.exp(-2 * self.decision_function(X)))
            return np.column_stack([1 - yes, yes])

    class Raises(LogisticRegression):
        def decision_function(self, X: Any) -> Any:
            raise RuntimeError(f"out of order for {len(X)} rows")

    class Wide(LogisticRegression):
        def decision_function(self, X: Any) -> Any:
            return super().decision_function(X)[:, None]

    same = Same().fit(X, y)
    check(same, from_sklearn(same), held_out)
    with pytest.raises(UnsupportedModel, match=r"contradicts its own decision_function on .* of 256 points"):
        from_sklearn(Squared().fit(X, y))
    with pytest.raises(UnsupportedModel, match="contradicts its own predict"):
        from_sklearn(Backwards().fit(X, y))
    doubled = Doubled().fit(X, y)
    assert from_sklearn(doubled).link == "none"
    with pytest.raises(UnsupportedModel, match="Doubled is cut on its score"):
        from_sklearn(doubled, 0.3)
    with pytest.raises(UnsupportedModel, match="decision_function of the Raises fails on 256 points: out of order"):
        from_sklearn(Raises().fit(X, y))
    with pytest.raises(UnsupportedModel, match="scores of shape"):
        from_sklearn(Wide().fit(X, y))
