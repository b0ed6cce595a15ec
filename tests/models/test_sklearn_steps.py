"""Everything that may stand before a scikit-learn classifier: rotations, chosen columns, categories, filled gaps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel
from overexplain.models.columns import Column
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model
from overexplain.models.sklearn import from_sklearn

CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=5_000),
    "linear-svc": LinearSVC(max_iter=20_000, dual=False),
    "svc": SVC(kernel="linear"),
    "sgd": SGDClassifier(random_state=0),
    "ridge": RidgeClassifier(),
    "perceptron": Perceptron(random_state=0),
    "lda": LinearDiscriminantAnalysis(),
}


@pytest.fixture(scope="module")
def people() -> tuple[pd.DataFrame, np.ndarray]:
    """Texts, truth values, whole numbers, numbers of different sizes, and gaps among them."""
    rng = np.random.default_rng(5)
    n = 240
    frame = pd.DataFrame(
        {
            "age": rng.normal(45, 12, n),
            "income": rng.lognormal(10, 1, n),
            "colour": rng.choice(["red", "green", "blue", "mauve"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "member": rng.random(n) < 0.4,
            "floor": rng.integers(1, 5, n),
            "note": [f"free text {i}" for i in range(n)],
        }
    )
    score = (frame.age - 45) / 12 + (frame.colour == "red") - frame.member + 0.4 * frame.floor
    y = np.where(score + rng.normal(0, 0.5, n) > 1, "granted", "denied")
    return frame, y


def check(fitted: Any, frame: Any, rows: Any = None) -> LinearModel:
    """The model, whose margins and labels are the original's on the frame, and again after saving."""
    model = from_sklearn(fitted)
    rows = model.encode(frame) if rows is None else rows
    score = fitted.decision_function(frame)
    np.testing.assert_allclose(model.hyperplane.margin(rows), score, rtol=1e-9, atol=1e-9 * (1 + np.abs(score).max()))
    np.testing.assert_array_equal(model.hyperplane.labels(rows) == 1, fitted.predict(frame) == fitted.classes_[1])
    return model


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("components", [None, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_principal_components(name: str, components: Any, whiten: bool) -> None:
    X, y = make_classification(150, 8, n_informative=5, n_redundant=0, random_state=1)
    X = X * np.linspace(0.5, 3, 8) + np.linspace(-4, 4, 8)
    for scaler in ("passthrough", RobustScaler()):
        steps = make_pipeline(scaler, PCA(components, whiten=whiten), MaxAbsScaler(), clone(CLASSIFIERS[name]))
        fitted = steps.fit(X[:100], y[:100])
        assert check(fitted, X, X).dimension == 8


def test_principal_components_far_from_zero_and_of_few_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 40)) * 1e-3 + 1e4
    y = (X[:, 0] > 1e4).astype(int)
    fitted = make_pipeline(PCA(6), StandardScaler(), LogisticRegression()).fit(X, y)
    model = from_sklearn(fitted)
    score = fitted.decision_function(X)
    # Around 1e4 a float64 has 12 digits left of a spread of 1e-3, times weights of thousands.
    np.testing.assert_allclose(model.hyperplane.margin(X), score, atol=1e-4)


def test_principal_components_in_single_precision() -> None:
    X, y = make_classification(150, 6, random_state=1)
    fitted = make_pipeline(PCA(4), LogisticRegression()).fit(X.astype(np.float32), y)
    assert fitted[0].components_.dtype == np.float32
    model = from_sklearn(fitted)
    np.testing.assert_allclose(model.hyperplane.margin(X), fitted.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_behind_chosen_and_encoded_columns(name: str, people: Any) -> None:
    frame, y = people
    columns = make_column_transformer(
        (StandardScaler(), ["age"]),
        (make_pipeline(MinMaxScaler(), RobustScaler()), ["income"]),
        (OneHotEncoder(sparse_output=False), ["colour", "member"]),
        ("passthrough", ["floor"]),
    )
    fitted = make_pipeline(columns, clone(CLASSIFIERS[name])).fit(frame[:160], y[:160])
    model = check(fitted, frame)
    assert model.features == (
        "age", "income", "colour=blue", "colour=green", "colour=mauve", "colour=red", "member=False", "member=True",
        "floor",
    )  # fmt: skip
    assert model.columns is not None
    assert [column.name for column in model.columns] == ["age", "income", "colour", "member", "floor"]
    assert model.domain is not None
    assert model.domain.groups == ((2, 3, 4, 5), (6, 7))
    for row in model.encode(frame[:20]):
        assert model.domain.contains(row)
    assert model.classes == ("denied", "granted")
    assert model.source == f"Pipeline(ColumnTransformer, {type(CLASSIFIERS[name]).__name__})"


def test_a_model_of_categories_is_saved_and_read_back(people: Any, tmp_path: Any) -> None:
    frame, y = people
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(handle_unknown="ignore"), ["colour", "member", "floor"])
    )
    model = from_sklearn(make_pipeline(columns, LogisticRegression()).fit(frame, y))
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again == model
    np.testing.assert_array_equal(again.encode(frame), model.encode(frame))
    assert again.domain == model.domain


@pytest.mark.parametrize("drop", [None, "first", "if_binary", ["green", True, 3]])
@pytest.mark.parametrize("unknown", ["error", "ignore", "infrequent_if_exist"])
@pytest.mark.parametrize("rare", [{}, {"min_frequency": 60}, {"max_categories": 2}, {"min_frequency": 1000}])
def test_every_way_to_encode(drop: Any, unknown: str, rare: dict[str, int], people: Any) -> None:
    frame, y = people
    encoder = OneHotEncoder(drop=drop, handle_unknown=unknown, **rare)
    rest = ("rest", StandardScaler(with_mean=False), ["age"])
    columns = ColumnTransformer([("cat", encoder, ["colour", "member", "floor"]), rest])
    try:
        columns.fit(frame)
    except (ValueError, AttributeError):  # scikit-learn refuses to drop a category that is infrequent
        assert rare
        assert isinstance(drop, list)
        return
    fitted = make_pipeline(columns, StandardScaler(with_mean=False), RidgeClassifier()).fit(frame, y)
    model = check(fitted, frame)
    strange = frame[:3].assign(colour=["puce", "red", "puce"], floor=[2, 99, 99])
    if unknown == "error":
        with pytest.raises(InvalidInput, match=r"row 0: 'colour' is 'puce'; the model knows "):
            model.encode(strange)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            score = fitted.decision_function(strange)
        np.testing.assert_allclose(model.hyperplane.margin(model.encode(strange)), score, atol=1e-9)


def test_rare_categories_share_a_feature(people: Any) -> None:
    frame, y = people
    columns = make_column_transformer((OneHotEncoder(min_frequency=50), ["colour"]), (StandardScaler(), ["age"]))
    model = check(make_pipeline(columns, LogisticRegression()).fit(frame, y), frame)
    assert model.features == ("age", "colour=(infrequent)", "colour=green", "colour=red")
    column = model.columns[1]
    assert dict(zip(column.categories, column.features, strict=True)) == {
        "blue": "colour=(infrequent)",
        "green": "colour=green",
        "mauve": "colour=(infrequent)",
        "red": "colour=red",
    }


def test_a_dropped_category_keeps_a_feature_without_weight(people: Any) -> None:
    frame, y = people
    encoder = OneHotEncoder(drop="first", handle_unknown="ignore")
    fitted = make_pipeline(make_column_transformer((encoder, ["colour"])), LogisticRegression()).fit(frame, y)
    model = check(fitted, frame)
    assert model.features == ("colour=blue", "colour=green", "colour=mauve", "colour=red")
    assert model.hyperplane.normal[0] == 0
    # scikit-learn encodes an unknown category as it does the dropped one.
    np.testing.assert_array_equal(model.encode({"colour": ["puce"]}), [[1.0, 0.0, 0.0, 0.0]])


def test_gaps_are_filled_as_the_original_fills_them(people: Any) -> None:
    frame, y = people
    rng = np.random.default_rng(1)
    holes = frame.copy()
    for name in ("age", "income", "colour"):
        holes[name] = holes[name].where(rng.random(len(holes)) > 0.2)
    numbers = make_pipeline(StandardScaler(), SimpleImputer(strategy="median"))
    categories = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer(
        (numbers, ["age"]), (SimpleImputer(), ["income"]), (categories, ["colour"]), (OneHotEncoder(), ["member"])
    )
    fitted = make_pipeline(columns, StandardScaler(), LogisticRegression(max_iter=1000)).fit(holes[:160], y[:160])
    model = check(fitted, holes)
    assert model.columns[0].missing == pytest.approx(holes.age[:160].median())
    assert model.columns[1].missing == pytest.approx(holes.income[:160].mean())
    assert None in model.columns[2].categories
    with pytest.raises(InvalidInput, match=r"row 1: 'member' is missing; the model knows False, True"):
        model.encode({"age": [1, 2], "income": [1, 2], "colour": ["red", None], "member": [True, None]})
    with pytest.raises(NotFinite, match="row 0: 'age' is -inf"):
        model.encode({"age": [-np.inf, None], "income": [1, 2], "colour": ["red", None], "member": [True, 0]})


def test_missing_is_a_category_of_its_own(people: Any) -> None:
    frame, y = people
    holes = frame.assign(colour=frame.colour.where(np.arange(len(frame)) % 5 > 0), floor=frame.floor.astype(float))
    holes.loc[::7, "floor"] = np.nan
    fitted = make_pipeline(make_column_transformer((OneHotEncoder(), ["colour", "floor"])), LogisticRegression())
    model = check(fitted.fit(holes, y), holes)
    assert "colour=(missing)" in model.features
    assert "floor=(missing)" in model.features
    also = holes.assign(colour=[None if isinstance(c, float) else c for c in holes.colour.tolist()])
    np.testing.assert_array_equal(model.encode(also), model.encode(holes))


def test_a_marker_for_missing_categories(people: Any) -> None:
    frame, y = people
    marked = frame.assign(colour=frame.colour.astype(object).where(np.arange(len(frame)) % 5 > 0, "?"))
    filled = SimpleImputer(missing_values="?", strategy="constant", fill_value="other")
    columns = make_column_transformer((make_pipeline(filled, OneHotEncoder()), ["colour"]), (StandardScaler(), ["age"]))
    model = check(make_pipeline(columns, LogisticRegression()).fit(marked, y), marked)
    column = next(column for column in model.columns if column.name == "colour")
    assert dict(zip(column.categories, column.features, strict=True))["?"] == "colour=other"


def test_imputers_that_cannot_be_folded(people: Any) -> None:
    X, y = make_classification(60, 4, random_state=0)
    for imputer, text in (
        (SimpleImputer(add_indicator=True), "add_indicator=False"),
        (SimpleImputer(missing_values=-1), "takes -1 for a missing number"),
    ):
        with pytest.raises(UnsupportedModel, match=text):
            from_sklearn(make_pipeline(imputer, LogisticRegression()).fit(X, y))
    fitted = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, y)
    assert check(fitted, X, X).columns is None  # without names there are no columns to fill


def test_a_column_without_any_value_is_dropped() -> None:
    X, y = make_classification(60, 4, random_state=0)
    X[:, 2] = np.nan
    with pytest.warns(UserWarning, match="without any observed values"):
        fitted = make_pipeline(SimpleImputer(), LogisticRegression()).fit(X, y)
    model = from_sklearn(fitted)
    assert model.features == ("x0", "x1", "x3")


@pytest.mark.parametrize("remainder", ["drop", "passthrough", StandardScaler()])
@pytest.mark.parametrize(
    "chosen",
    [["age", "floor"], [0, 4], [0, -2], slice(0, 2), slice("age", "income"), [True, False, False, True, False, False],
     make_column_selector(dtype_include=float), ["income"]],
)  # fmt: skip
def test_every_way_to_choose_columns(chosen: Any, remainder: Any, people: Any) -> None:
    frame, y = people
    chosen_step = "passthrough" if isinstance(chosen, str) else StandardScaler()
    steps = [("encode", OneHotEncoder(), ["colour"]), ("not", "drop", ["note"]), ("chosen", chosen_step, chosen)]
    fitted = make_pipeline(ColumnTransformer(steps, remainder=remainder), RidgeClassifier()).fit(frame, y)
    model = check(fitted, frame)
    taken = {"age", "income", "member", "floor"}
    if remainder == "drop":
        taken &= set(fitted[0].feature_names_in_[fitted[0]._transformer_to_input_indices["chosen"]])
    assert set(model.features) == taken | {f"colour={name}" for name in ("blue", "green", "mauve", "red")}


def test_columns_that_play_no_part_are_left_out(people: Any) -> None:
    frame, y = people
    columns = ColumnTransformer([("a", StandardScaler(), ["income"]), ("b", "passthrough", ["age"])])
    model = check(make_pipeline(columns, LogisticRegression()).fit(frame, y), frame)
    assert (model.features, model.columns, model.domain) == (("age", "income"), None, None)
    X, labels = make_classification(80, 5, random_state=0)
    columns = ColumnTransformer([("a", StandardScaler(), [4]), ("b", MinMaxScaler(), [1, 0])])
    fitted = make_pipeline(columns, LogisticRegression()).fit(X, labels)
    model = from_sklearn(fitted)
    assert model.features == ("x0", "x1", "x4")
    np.testing.assert_allclose(model.hyperplane.margin(X[:, [0, 1, 4]]), fitted.decision_function(X), atol=1e-9)


def test_a_column_used_twice_and_weights_of_steps(people: Any) -> None:
    frame, y = people
    columns = ColumnTransformer(
        [("a", StandardScaler(), ["age", "income"]), ("b", MinMaxScaler(), ["age"]), ("c", OneHotEncoder(), ["floor"]),
         ("d", "passthrough", ["floor"]), ("e", PCA(2), ["age", "floor"])],
        transformer_weights={"b": 3.0, "c": -0.5, "e": 0.25},
    )  # fmt: skip
    model = check(make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(frame, y), frame)
    assert model.features == ("age", "income", "floor", "floor=1", "floor=2", "floor=3", "floor=4")
    assert model.encode({"age": [1], "income": [2], "floor": [3]}).tolist() == [[1, 2, 3, 0, 0, 1, 0]]


def test_one_column_encoded_twice_is_refused(people: Any) -> None:
    frame, y = people
    columns = ColumnTransformer([("a", OneHotEncoder(), ["colour"]), ("b", OneHotEncoder(drop="first"), ["colour"])])
    with pytest.raises(UnsupportedModel, match="step 'columntransformer/b' encodes a column that another"):
        from_sklearn(make_pipeline(columns, LogisticRegression()).fit(frame, y))


def test_nested_transformers_on_an_array_of_objects(people: Any) -> None:
    frame, y = people
    rows = frame.to_numpy(dtype=object)
    inner = ColumnTransformer([("scale", StandardScaler(), [1]), ("hot", OneHotEncoder(), [0])])
    columns = ColumnTransformer([("inner", make_pipeline(inner, MaxAbsScaler()), [2, 0]), ("b", OneHotEncoder(), [4])])
    fitted = make_pipeline(columns, LogisticRegression()).fit(rows, y)
    model = from_sklearn(fitted)
    assert model.features[:2] == ("x0", "x2=blue")
    table = {f"x{k}": rows[:, k] for k in range(6)}
    np.testing.assert_allclose(model.hyperplane.margin(model.encode(table)), fitted.decision_function(rows), atol=1e-9)


def test_encoders_alone(people: Any) -> None:
    frame, y = people
    for chosen in (frame[["colour", "member"]], frame[["floor"]], frame[["colour"]]):
        check(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(chosen, y), chosen)
    rows = frame[["colour"]].to_numpy(dtype="U5")
    fitted = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(rows, y)
    model = from_sklearn(fitted)
    np.testing.assert_array_equal(
        model.hyperplane.labels(model.encode({"x0": rows[:, 0]})) == 1, fitted.predict(rows) == "granted"
    )


def test_thresholds_with_categories(people: Any) -> None:
    frame, y = people
    columns = make_column_transformer((OneHotEncoder(), ["colour", "member"]), (StandardScaler(), ["age"]))
    fitted = FixedThresholdClassifier(make_pipeline(columns, LogisticRegression()), threshold=0.7, pos_label="granted")
    fitted.fit(frame, y)
    model = from_sklearn(fitted)
    np.testing.assert_array_equal(model.hyperplane.labels(model.encode(frame)) == 1, fitted.predict(frame) == "granted")
    assert (model.threshold, model.source) == (
        0.7,
        "FixedThresholdClassifier(Pipeline(ColumnTransformer, LogisticRegression))",
    )
    assert from_sklearn(fitted, 0.2).threshold == 0.2


def test_names_that_collide_are_kept_apart() -> None:
    frame = pd.DataFrame({"a": ["b", "c"] * 20, "a=b": np.arange(40.0)})
    y = np.arange(40) % 3 == 0
    columns = make_column_transformer((OneHotEncoder(), ["a"]), ("passthrough", ["a=b"]))
    model = check(make_pipeline(columns, LogisticRegression()).fit(frame, y), frame)
    assert model.features == ("a=b", "a=c", "a=b (2)")


def test_what_does_not_fold_is_refused_with_its_place(people: Any) -> None:
    frame, y = people
    for step, text in (
        (OrdinalEncoder(), r"step 'columntransformer/ordinalencoder' is a OrdinalEncoder: .*use a OneHotEncoder"),
        (make_pipeline(OrdinalEncoder(), OneHotEncoder()), "is a OrdinalEncoder"),
        (FunctionTransformer(lambda x: x == "red"), "is a FunctionTransformer: what its function computes"),
    ):
        columns = make_column_transformer((step, ["colour"]), (StandardScaler(), ["age"]))
        with pytest.raises(UnsupportedModel, match=text):
            from_sklearn(make_pipeline(columns, LogisticRegression()).fit(frame, y))
    rounded = frame[["floor"]]
    for step in (StandardScaler(), PCA()):
        with pytest.raises(UnsupportedModel, match="computes numbers that a OneHotEncoder after it takes"):
            from_sklearn(make_pipeline(step, OneHotEncoder(), LogisticRegression()).fit(rounded, y))
    with pytest.raises(UnsupportedModel, match=r"step 'pca' \(PCA\) is not fitted"):
        from_sklearn(make_pipeline(PCA(), LogisticRegression().fit([[1.0], [2.0]], [0, 1])))


def test_parts_that_do_not_fit_together() -> None:
    X, y = make_classification(60, 6, random_state=0)
    wide, narrow = LogisticRegression().fit(X, y), LogisticRegression().fit(X[:, :3], y)
    with pytest.raises(InvalidInput, match="gives 2 columns, what comes after takes 3"):
        from_sklearn(make_pipeline(PCA(2).fit(X), narrow))
    with pytest.raises(InvalidInput, match="6 entries"):
        from_sklearn(make_pipeline(StandardScaler().fit(X[:, :3]), wide))
    with pytest.raises(InvalidInput, match="gives .* columns"):
        from_sklearn(make_pipeline(OneHotEncoder().fit([["a"], ["b"]]), narrow))


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_random_pipelines(data: st.DataObject) -> None:
    """Any nesting of scalers, rotations and encoders gives the scores of the original."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    frame = pd.DataFrame(
        rng.normal(size=(60, 4)) * 10 ** rng.uniform(-2, 2, 4) + rng.normal(size=4), columns=list("abcd")
    )
    frame["k"] = rng.choice(["u", "v", "w"], 60)
    frame["m"] = rng.integers(0, 3, 60)
    y = rng.integers(0, 2, 60)
    scalers = st.sampled_from([StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), PCA(), "passthrough"])
    numbers = data.draw(st.permutations(list("abcd")))
    cut = data.draw(st.integers(1, 3))
    columns = ColumnTransformer(
        [
            ("one", make_pipeline(data.draw(scalers), data.draw(scalers)), numbers[:cut]),
            ("two", data.draw(scalers), numbers[cut:]),
            ("hot", OneHotEncoder(drop=data.draw(st.sampled_from([None, "first"])), sparse_output=False), ["m", "k"]),
        ],
        sparse_threshold=0,
    )
    fitted = make_pipeline(columns, data.draw(scalers), RidgeClassifier()).fit(frame, y)
    check(fitted, frame)


def test_a_transformer_that_computes_something_else_is_noticed(people: Any) -> None:
    frame, y = people

    class Odd(StandardScaler):
        def transform(self, X: Any, copy: Any = None) -> Any:
            return np.abs(super().transform(X))

    columns = make_column_transformer((Odd(), ["age"]), (OneHotEncoder(), ["colour"]))
    with pytest.raises(UnsupportedModel, match="contradicts its own decision_function"):
        from_sklearn(make_pipeline(columns, LogisticRegression()).fit(frame, y))


def test_without_pandas_the_advice_is_to_install_it(people: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y = people
    fitted = make_pipeline(make_column_transformer((OneHotEncoder(), ["colour"])), LogisticRegression()).fit(frame, y)
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UnsupportedModel, match=r"overexplain\[frames\]"):
        from_sklearn(fitted)


def test_columns_of_a_model_without_categories_are_its_features() -> None:
    frame = pd.DataFrame({"b": [0.0, 1.0, 2.0, 3.0], "a": [1.0, 0.0, 1.0, 0.0]})
    model = from_sklearn(LogisticRegression().fit(frame, [0, 0, 1, 1]))
    np.testing.assert_array_equal(model.encode(frame[["a", "b"]]), frame.to_numpy())
    assert model.columns is None
    assert Column("a").features == ("a",)
