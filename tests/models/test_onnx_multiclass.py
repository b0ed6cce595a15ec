"""ONNX files of several classes: what is read decides as the file and its original do; other choices are refused by name."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.models.coefficients import SeveralClasses
from overexplain.models.load import load_model, load_multiclass
from overexplain.models.multiclass import MulticlassModel, from_linear
from overexplain.models.onnx import open_onnx
from overexplain.models.sandbox import Stored

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)) * [1.0, 20.0, 0.1, 3.0] + [0.0, 50.0, 1.0, -2.0]
WIDE = X.mean(axis=0) + 2 * X.std(axis=0) * np.random.default_rng(1).normal(size=(500, 4))
Y = ((X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(4, 3))).argmax(axis=1)
NAMED = np.array(["low", "middle", "high"])[Y]


def opened(content: bytes, threshold: float | None = None) -> Any:
    """As in the child process, without its fence."""
    return open_onnx(content, threshold, lambda **_: None)


def exported(fitted: Any, dtype: Any = np.float32, **options: Any) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "initial_types" in options:
            return to_onnx(fitted, **options).SerializeToString()
        return to_onnx(fitted, X[:1].astype(dtype), **options).SerializeToString()


def session(content: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(content, options)


def clear_rows(model: MulticlassModel, rows: Any) -> Any:
    """The rows, as float32 has them, without those that rounding could decide."""
    rows = rows.astype(np.float32).astype(np.float64)
    argmax = model.argmax
    ordered = np.sort(argmax.scores(rows), axis=1)
    reach = (np.abs(rows) @ np.abs(argmax.weights).T + np.abs(argmax.intercepts)).max(axis=1)
    clear = ordered[:, -1] - ordered[:, -2] > 1e-4 * reach
    assert clear.mean() > 0.9
    return rows[clear]


def said(model: MulticlassModel, rows: Any) -> list[str]:
    assert model.classes is not None
    return [model.classes[k] for k in model.argmax.labels(rows)]


SCALED = StandardScaler()
COLUMNS = ColumnTransformer([("a", StandardScaler(), [3, 1])], remainder="passthrough")
ORIGINALS: dict[str, Any] = {
    "LogisticRegression": LogisticRegression(solver="newton-cg"),
    "LinearSVC": LinearSVC(dual=False),
    "RidgeClassifier": RidgeClassifier(),
    "hinge": make_pipeline(SCALED, SGDClassifier(random_state=0)),
    "log_loss": make_pipeline(SCALED, SGDClassifier(loss="log_loss", alpha=0.01, random_state=0)),
    "Perceptron": make_pipeline(SCALED, Perceptron()),
    "discriminants": LinearDiscriminantAnalysis(),
    "PCA": make_pipeline(SCALED, PCA(3), LogisticRegression()),
    "imputer": make_pipeline(SimpleImputer(), SCALED, LogisticRegression()),
    "columns": make_pipeline(COLUMNS, LogisticRegression(solver="newton-cg")),
    "one for each": make_pipeline(SCALED, OneVsRestClassifier(LogisticRegression())),
    "one LinearSVC for each": make_pipeline(SCALED, OneVsRestClassifier(LinearSVC(dual=False))),
    "one perceptron for each": make_pipeline(SCALED, OneVsRestClassifier(Perceptron())),
    "one discriminant for each": OneVsRestClassifier(LinearDiscriminantAnalysis()),
    "a pipeline for each": OneVsRestClassifier(make_pipeline(SCALED, LogisticRegression())),
}


SIGMOIDS = ("log_loss", "one for each", "one discriminant for each", "a pipeline for each")
AS_COLUMNS = ("LogisticRegression", "log_loss", "one for each")
CASES = [(name, None) for name in ORIGINALS]
CASES += [(name, {"zipmap": how}) for name in AS_COLUMNS for how in (False, "columns")]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_exported_from_scikit_learn(name: str, options: Any) -> None:
    fitted = ORIGINALS[name].fit(X, Y if options is None else NAMED)
    content = exported(fitted, options=None if options is None else {id(fitted): options})
    stored = opened(content)
    model = stored.model
    assert isinstance(model, MulticlassModel)
    assert model.source == "ONNX"
    assert model.classes == tuple(str(one) for one in fitted.classes_)
    assert stored.checked == "compared with ONNX's reference implementation on 64 points"
    notes = " ".join(stored.notes)
    assert "stored in float32: the original decides in single precision" in notes
    assert ("missing values" in notes) == (name == "imputer")
    assert ("compares sigmoids" in notes) == (name in SIGMOIDS)
    rows = clear_rows(model, WIDE)
    assert said(model, rows) == [str(one) for one in fitted.predict(rows)]
    assert len(set(said(model, rows))) == 3
    assert model.argmax.distance_to(load_multiclass(fitted).argmax) < 1e-4


@pytest.mark.parametrize(
    "inner", [RidgeClassifier(), SVC(kernel="linear"), LogisticRegression(), SGDClassifier(random_state=0)]
)
def test_raw_scores_of_one_classifier_for_each_class(inner: Any) -> None:
    fitted = OneVsRestClassifier(inner).fit(SCALED.fit_transform(X), Y)
    model = opened(exported(fitted, options={"raw_scores": True, "zipmap": False})).model
    rows = clear_rows(model, SCALED.transform(WIDE))
    assert said(model, rows) == [str(one) for one in fitted.predict(rows)]


def test_a_file_that_differs_from_its_original_is_read_as_it_is() -> None:
    """skl2onnx takes the scores of SVC the wrong way round here; what the file does is what counts."""
    fitted = OneVsRestClassifier(SVC(kernel="linear")).fit(SCALED.fit_transform(X), Y)
    content = exported(fitted)
    model = opened(content).model
    rows = clear_rows(model, SCALED.transform(WIDE))
    label = session(content).run(None, {"X": rows.astype(np.float32)})[0]
    assert said(model, rows) == [str(one) for one in label]
    assert said(model, rows) != [str(one) for one in fitted.predict(rows)]


def test_many_classes_in_double_precision_bit_for_bit() -> None:
    y = np.arange(120) % 7 * 10
    fitted = SGDClassifier(random_state=0).fit(X + y[:, None], y)
    stored = opened(exported(fitted, np.float64, options={"zipmap": False}))
    np.testing.assert_array_equal(stored.model.argmax.weights, fitted.coef_)
    np.testing.assert_array_equal(stored.model.argmax.intercepts, fitted.intercept_)
    assert (stored.model.classes, stored.notes) == (tuple(str(k) for k in range(0, 70, 10)), ())
    assert stored.checked is not None


def test_the_child_and_both_doors(tmp_path: Path) -> None:
    fitted = make_pipeline(SCALED, LogisticRegression()).fit(X, NAMED)
    kinds = [(name, FloatTensorType([None, 1])) for name in ("age", "income", "debts", "years")]
    content = exported(fitted, initial_types=kinds)
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    model = load_multiclass(path)
    assert model == opened(content, threshold=0.3).model
    assert (model.features, model.classes) == (("age", "income", "debts", "years"), ("high", "low", "middle"))
    assert model.source == "ONNX"
    with pytest.raises(SeveralClasses, match=r"m\.onnx: .*several classes.*load_multiclass"):
        load_model(path, threshold=0.3)


def test_two_classes_are_yes_and_no() -> None:
    content = exported(OneVsRestClassifier(LinearSVC(dual=False)).fit(SCALED.fit_transform(X), Y > 0))
    model = from_linear(opened(content).model)  # skl2onnx cuts this score at one half, as if it were a probability
    rows = clear_rows(model, SCALED.transform(WIDE))
    assert said(model, rows) == [str(one) for one in session(content).run(None, {"X": rows.astype(np.float32)})[0]]


# --- graphs by hand ---------------------------------------------------------------------------------------------------

W = np.array([[0.5, -0.25, 1.0], [-0.2, 0.5, 0.1], [3.0, -1.0, 0.0], [0.25, 2.0, -1.5]], dtype=np.float32)
ML = {"LinearClassifier", "LinearRegressor", "SVMClassifier", "ArrayFeatureExtractor", "Normalizer", "ZipMap"}
CONSTANTS = {
    "w": W, "b": np.array([0.5, -1.0, 0.25], np.float32), "names": np.array(["a", "b", "c"], dtype=object),
    "pair": np.array(["a", "b"], dtype=object), "axis": np.array([1]), "one": np.float32(1), "zero": np.int64(0),
    "two": np.float32(2), "nan": W * np.float32(np.nan), "same": np.ones((4, 3), np.float32), "v": -W,
}  # fmt: skip


def step(operator: str, given: str, result: str, **settings: Any) -> Any:
    domain = "ai.onnx.ml" if operator in ML else ""
    return helper.make_node(operator, given.split(), result.split(), domain=domain, **settings)


def graph(nodes: list[Any], outputs: dict[str, int]) -> bytes:
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])]
    results = [helper.make_tensor_value_info(name, element, None) for name, element in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in CONSTANTS.items()]
    body = helper.make_graph(nodes, "graph", given, results, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(body, opset_imports=opsets, ir_version=8).SerializeToString()


GEMM, ARGMAX = step("Gemm", "x w b", "z"), step("ArgMax", "z", "k", axis=1)
SIGMOID, SUM = step("Sigmoid", "z", "p"), step("ReduceSum", "p axis", "s")
INDEX, TEXT, NUMBERS = {"y": 7}, {"y": 8}, {"y": 1}


def classifier(**changed: Any) -> Any:
    settings: dict[str, Any] = {
        "coefficients": W.T.ravel().tolist(),
        "intercepts": [0.5, -1.0, 0.25],
        "classlabels_ints": [3, 1, 2],
    }
    settings |= {"post_transform": "NONE"} | changed
    return step(
        "LinearClassifier", "x", "y t", **{name: value for name, value in settings.items() if value is not None}
    )


GRAPHS: dict[str, tuple[list[Any], dict[str, int], tuple[str, ...] | None, str]] = {
    # nodes, outputs, names of the classes, what the notes say
    "index": ([GEMM, step("ArgMax", "z", "y", axis=-1, keepdims=0)], INDEX, ("0", "1", "2"), "float32"),
    "names": ([GEMM, ARGMAX, step("ArrayFeatureExtractor", "names k", "y")], TEXT, ("a", "b", "c"), "float32"),
    "scores": ([step("Gemm", "x w b", "y")], NUMBERS, None, "scores only; the class is that of the largest"),
    "softmax": ([GEMM, step("Softmax", "z", "y", axis=-1)], NUMBERS, None, "probabilities only; the class is that"),
    "largest of a softmax": (
        [GEMM, step("Softmax", "z", "p"), step("ArgMax", "p", "y", axis=1)], INDEX, ("0", "1", "2"), "float32",
    ),
    "shares of sigmoids": ([GEMM, SIGMOID, SUM, step("Div", "p s", "y")], NUMBERS, None, "compares sigmoids"),
    "logistic rows": (
        [classifier(post_transform="LOGISTIC"), step("Normalizer", "t", "n", norm="L1")],
        {"y": 7, "n": 1}, ("3", "1", "2"), "sigmoids",
    ),
    "text": ([classifier(classlabels_ints=None, classlabels_strings=["a", "b", "c"])], TEXT, ("a", "b", "c"), "float32"),
    "label and index": ([GEMM, ARGMAX, step("Gather", "names k", "y")], {"y": 8, "k": 7}, ("a", "b", "c"), "float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_by_hand(name: str) -> None:
    nodes, outputs, classes, note = GRAPHS[name]
    content = graph(nodes, outputs)
    stored = opened(content)
    model = stored.model
    assert model.classes == classes
    assert note in " ".join(stored.notes)
    np.testing.assert_array_equal(model.argmax.weights, W.T)
    assert stored.checked is not None
    rows = clear_rows(model, np.random.default_rng(2).normal(size=(200, 4)))
    found = session(content).run(None, {"x": rows.astype(np.float32)})[0]
    chosen = found.argmax(axis=1) if classes is None else [classes.index(str(one)) for one in found.ravel()]
    np.testing.assert_array_equal(chosen, model.argmax.labels(rows))


SCORES = {"y": 7, "t": 1}
REFUSED: dict[str, tuple[list[Any], dict[str, int], str]] = {
    "too few names": (
        [GEMM, ARGMAX, step("ArrayFeatureExtractor", "pair k", "y")], TEXT, "one of 3 classes is looked up among 2 names",
    ),
    "too few labels": ([classifier(classlabels_ints=[0, 1])], SCORES, "12 coefficients for 2 classes and 4 columns"),
    "no labels": ([classifier(classlabels_ints=None)], SCORES, "names 0 classes"),
    "a coefficient too few": ([classifier(coefficients=[1.0] * 11)], SCORES, "11 coefficients for 3 classes"),
    "one row for three": ([classifier(coefficients=[1.0] * 4)], SCORES, "4 coefficients for 3 classes"),
    "intercepts": ([classifier(intercepts=[0.0, 1.0])], SCORES, "2 intercepts for 3 rows"),
    "a class twice": ([classifier(classlabels_ints=[1, 1, 2])], SCORES, "twice"),
    "not a number": ([classifier(coefficients=[float("nan")] * 12)], SCORES, "NaN"),
    "an intercept that is none": ([classifier(intercepts=[0.0, float("inf"), 0.0])], SCORES, "more than float64"),
    "NaN in a tensor": ([step("Gemm", "x nan b", "z"), step("ArgMax", "z", "y", axis=1)], INDEX, "NaN"),
    "always the same": ([step("Gemm", "x same b", "z"), step("ArgMax", "z", "y", axis=1)], INDEX, "same weights"),
    "probit": ([classifier(post_transform="PROBIT")], SCORES, "'PROBIT' is not read"),
    "names for scores": ([GEMM, step("ZipMap", "z", "y", classlabels_int64s=[0, 1])], NUMBERS, "names for 2 classes"),
    "the last of equals": ([GEMM, step("ArgMax", "z", "y", axis=1, select_last_index=1)], INDEX, "takes the last class"),
    "cases compared": ([GEMM, step("ArgMax", "z", "y", axis=0)], INDEX, "axis 0"),
    "divided by a sum": (
        [GEMM, step("ReduceSum", "z axis", "s"), step("Div", "z s", "q"), step("ArgMax", "q", "y", axis=1)], INDEX,
        "ArgMax node .*divided by their sum",
    ),
    "another sum": (
        [GEMM, SIGMOID, step("Gemm", "x v b", "u"), step("Sigmoid", "u", "q"), step("ReduceSum", "q axis", "s"),
         step("Div", "p s", "y")],
        NUMBERS, "computed with",
    ),
    "sums as a list": (
        [GEMM, SIGMOID, step("ReduceSum", "p axis", "s", keepdims=0), step("Div", "p s", "y")], NUMBERS, "mixes them",
    ),
    "2 + exp": (
        [GEMM, step("Exp", "z", "e"), step("Add", "e two", "d"), step("Reciprocal", "d", "p"), step("ArgMax", "p", "y", axis=1)],
        INDEX, "computed with",
    ),
    "exp alone": ([GEMM, step("Exp", "z", "e"), step("ArgMax", "e", "y", axis=1)], INDEX, "Exponential"),
    "one over scores": (
        [GEMM, step("Reciprocal", "z", "r"), step("ArgMax", "r", "y", axis=1)], INDEX, "Reciprocal node .*not linear",
    ),
    "several labels at once": ([GEMM, step("Sigmoid", "z", "y")], NUMBERS, "3 probabilities that are not those of one decision"),
    "one class": ([GEMM, step("Gather", "z axis", "c", axis=1), step("ArgMax", "c", "y", axis=1)], INDEX, "largest of one score"),
    "softmax of one": ([GEMM, step("Gather", "z axis", "c", axis=1), step("Softmax", "c", "y")], NUMBERS, "softmax of one score"),
    "two choices": (
        [GEMM, ARGMAX, step("Gemm", "x v b", "u"), step("ArgMax", "u", "y", axis=1)], {"k": 7, "y": 7}, "2 different decisions",
    ),
    "a choice and a decision": (
        [GEMM, ARGMAX, step("Gather", "x axis", "c", axis=1), step("Greater", "c one", "y")], {"k": 7, "y": 9}, "also among more",
    ),
    "regressions beside one another": (
        [*(step("LinearRegressor", "x", f"r{k}", coefficients=W[:, k].tolist()) for k in range(3)),
         step("Concat", "r0 r1 r2", "y", axis=1)],
        NUMBERS, "gives no decision",
    ),
    "votes": (
        [step("SVMClassifier", "x", "y t", kernel_type="LINEAR", rho=[0.0] * 3, coefficients=[1.0] * 6, support_vectors=[1.0] * 12,
              vectors_per_class=[1, 1, 1], classlabels_ints=[0, 1, 2])],
        SCORES, "every two of its 3 classes vote",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_choices_are_refused_by_name(name: str) -> None:
    nodes, outputs, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        opened(graph(nodes, outputs))


def test_what_skl2onnx_writes_wrongly_or_not_in_order() -> None:
    scaled = SCALED.fit_transform(X)
    for fitted, options, message in (
        (
            OneVsRestClassifier(LinearSVC(dual=False)),
            {"raw_scores": True},
            "one of 6 classes is looked up among 3 names",
        ),
        (OneVsRestClassifier(RidgeClassifier()), None, "Slice node"),
        (SGDClassifier(loss="modified_huber", random_state=0), None, "Clip node"),
        (SVC(kernel="linear"), None, "every two of its 3 classes vote"),
    ):
        with pytest.raises(UnsupportedModel, match=message):
            opened(exported(fitted.fit(scaled, Y), options=options))
    with pytest.raises(UnsupportedModel, match="LinearRegressor node"):
        opened(exported(LinearRegression().fit(scaled, np.eye(3)[Y])))


def test_a_misreading_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with the reference is able to fail: for labels, beside the planes too, and for probabilities."""
    from overexplain.models import onnx_operators

    gemm = onnx_operators.OPERATORS["Gemm"]

    def slightly_off(node: Any, values: Any) -> Any:
        (found,) = gemm(node, values)
        return [onnx_operators.shifted(found, np.array([0.0, 0.02, 0.0]))]

    monkeypatch.setitem(onnx_operators.OPERATORS, "Gemm", slightly_off)
    for name in ("index", "names", "softmax", "shares of sigmoids"):
        with pytest.raises(UnsupportedModel, match="contradicts ONNX's reference implementation at output 'y' on"):
            opened(graph(*GRAPHS[name][:2]))


def test_too_many_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overexplain.models.onnx_classes.MOST_CLASSES", 2)
    with pytest.raises(UnsupportedModel, match="3 classes; at most 2"):
        opened(graph(*GRAPHS["index"][:2]))


def test_sums_of_sigmoids_that_vanish_are_no_contradiction() -> None:
    """In single precision all sigmoids may round to 0 far out: the file then gives every class the same share."""
    fitted = SGDClassifier(loss="log_loss", alpha=0.01, random_state=0).fit(SCALED.fit_transform(X), Y)
    fitted.intercept_ -= 150.0
    assert isinstance(opened(exported(fitted)), Stored)


def test_constants_that_are_listed_as_inputs_are_no_inputs() -> None:
    """As files of version 3 list them all; those of other kinds than numbers, too."""
    weights, level = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, -1.0]], np.float32), np.array([0.1, 0.0, -0.2], np.float32)
    nodes = [
        helper.make_node("Gemm", ["X", "W", "c"], ["s"]),
        helper.make_node("ArgMax", ["s"], ["l"], axis=1, keepdims=0),
        helper.make_node("Gather", ["n", "l"], ["o"]),
    ]
    inputs = [("X", TensorProto.FLOAT, [None, 2]), ("n", TensorProto.STRING, [3])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info("o", TensorProto.STRING, [None])],
        [
            numpy_helper.from_array(weights, "W"),
            numpy_helper.from_array(level, "c"),
            helper.make_tensor("n", TensorProto.STRING, [3], [b"low", b"middle", b"high"]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    stored = opened(model.SerializeToString())
    assert stored.model.classes == ("low", "middle", "high")
    assert stored.checked == "compared with ONNX's reference implementation on 64 points"
