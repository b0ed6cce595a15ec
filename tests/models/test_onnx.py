"""ONNX files: what is read agrees with onnxruntime on random points; what is not linear is refused by name."""

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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.geometry.hyperplane import YES
from overexplain.models.linear import LinearModel, logit
from overexplain.models.load import load_model
from overexplain.models.onnx import open_onnx
from overexplain.models.sandbox import Stored

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)) * [1.0, 20.0, 0.1, 3.0] + [0.0, 50.0, 1.0, -2.0]
SCORE = ((X - X.mean(axis=0)) / X.std(axis=0)) @ [1.0, -2.0, 3.0, 0.5] + 0.3 + 0.3 * rng.normal(size=120)
Y = (SCORE > 0).astype(int)
NAMED = np.where(SCORE > 0, "yes", "no")


def opened(content: bytes, threshold: float | None = None) -> Stored:
    """As in the child process, without its fence."""
    return open_onnx(content, threshold, lambda **_: None)


def exported(fitted: Any, dtype: Any = np.float32, **options: Any) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "initial_types" in options:
            return to_onnx(fitted, **options).SerializeToString()
        return to_onnx(fitted, X[:1].astype(dtype), **options).SerializeToString()


def answers(content: bytes, rows: Any) -> dict[str, Any]:
    """What onnxruntime says, by output."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(content, options)
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    feeds, first = {}, 0
    for given in session.get_inputs():
        feeds[given.name] = rows[:, first : first + given.shape[1]].astype(kinds[given.type])
        first += given.shape[1]
    return dict(zip([out.name for out in session.get_outputs()], session.run(None, feeds), strict=True))


def points(model: LinearModel, n: int = 400) -> Any:
    """Rows like those of the training data, as float32 has them, those left out that rounding could decide."""
    rows = (np.random.default_rng(1).normal(size=(n, 4)) * X.std(axis=0) * 2 + X.mean(axis=0)).astype(np.float32)
    rows = rows[:, : model.dimension].astype(np.float64)
    plane = model.hyperplane
    clear = np.abs(plane.margin(rows)) > 1e-4 * (np.abs(rows) @ np.abs(plane.normal) + abs(plane.offset))
    assert clear.mean() > 0.9
    return rows[clear]


def check_against_runtime(content: bytes, stored: Stored) -> None:
    """Labels equal onnxruntime's; so do probabilities, where the model claims to know them."""
    model = stored.model
    rows = points(model)
    found = list(answers(content, rows).values())
    label = np.ravel(found[0])
    assert model.classes is not None
    assert len(set(label.tolist())) == 2
    assert [str(one) for one in label] == [model.classes[int(one == YES)] for one in model.hyperplane.labels(rows)]
    if model.link == "logistic" and len(found) == 2 and isinstance(found[1], np.ndarray) and found[1].ndim == 2:
        score = model.hyperplane.margin(rows) + (0.0 if model.threshold is None else logit(model.threshold))
        np.testing.assert_allclose(found[1][:, -1], 1 / (1 + np.exp(-score)), atol=1e-4)


PIPELINES: dict[str, tuple[Any, str]] = {
    "LogisticRegression": (LogisticRegression(solver="newton-cholesky"), "logistic"),
    "LinearSVC": (LinearSVC(dual=False), "none"),
    "SVC": (make_pipeline(StandardScaler(), SVC(kernel="linear")), "none"),
    "hinge": (make_pipeline(StandardScaler(), SGDClassifier(random_state=0)), "none"),
    "log_loss": (make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)), "logistic"),
    "RidgeClassifier": (RidgeClassifier(), "none"),
    "Perceptron": (make_pipeline(StandardScaler(), Perceptron()), "none"),
    "discriminant": (LinearDiscriminantAnalysis(), "logistic"),
    "MinMaxScaler": (make_pipeline(MinMaxScaler(), LogisticRegression()), "logistic"),
    "MaxAbsScaler": (make_pipeline(MaxAbsScaler(), LogisticRegression()), "logistic"),
    "RobustScaler": (make_pipeline(RobustScaler(), LogisticRegression()), "logistic"),
    "PCA": (make_pipeline(StandardScaler(), PCA(3), LogisticRegression()), "logistic"),
    "whitening": (make_pipeline(StandardScaler(), PCA(3, whiten=True), LogisticRegression()), "logistic"),
    "imputer": (make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()), "logistic"),
    "columns": (
        make_pipeline(
            ColumnTransformer([("a", StandardScaler(), [3, 1])], remainder="passthrough"),
            LogisticRegression(solver="newton-cholesky"),
        ),
        "logistic",
    ),
}


@pytest.mark.parametrize(
    "options", [None, {"zipmap": False}, {"zipmap": "columns"}], ids=["zipmap", "plain", "by column"]
)
@pytest.mark.parametrize("name", PIPELINES)
def test_exported_from_scikit_learn(name: str, options: Any) -> None:
    pipeline, link = PIPELINES[name]
    if options is not None and name in ("LinearSVC", "RidgeClassifier"):
        options = None  # has no probabilities to name
    try:
        content = exported(pipeline.fit(X, Y), options=options)
    except NameError:  # skl2onnx knows no such option for this one
        content = exported(pipeline)
    stored = opened(content)
    assert stored.model.link == link
    assert stored.model.source == "ONNX"
    assert stored.checked == "compared with ONNX's reference implementation on 64 points"
    assert "float32" in stored.notes[0]
    assert ("missing values" in " ".join(stored.notes)) == (name == "imputer")
    check_against_runtime(content, stored)
    original = load_model(pipeline).hyperplane
    assert original.angle_to(stored.model.hyperplane) < 1e-4


def test_text_classes_and_thresholds_and_the_child(tmp_path: Path) -> None:
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, NAMED)
    content = exported(fitted)
    check_against_runtime(content, opened(content))
    (tmp_path / "m.onnx").write_bytes(content)
    model = load_model(tmp_path / "m.onnx", threshold=0.2)
    assert (model.classes, model.threshold) == (("no", "yes"), 0.2)
    assert model == opened(content, 0.2).model
    rows = points(model)
    probability = np.array([one["yes"] for one in answers(content, rows)["output_probability"]])
    np.testing.assert_array_equal(probability >= 0.2, model.hyperplane.labels(rows) == YES)


def test_double_precision_is_kept_bit_for_bit() -> None:
    fitted = LogisticRegression(solver="newton-cholesky").fit(X, Y)
    stored = opened(exported(fitted, np.float64, options={"zipmap": False}))
    np.testing.assert_array_equal(stored.model.hyperplane.normal, fitted.coef_[0])
    assert stored.model.hyperplane.offset == -fitted.intercept_[0]
    assert stored.notes == ()


def test_an_input_for_each_column_gives_names() -> None:
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    kinds = [(name, FloatTensorType([None, 1])) for name in ("age", "income", "debts", "years")]
    content = exported(fitted, initial_types=kinds, options={"zipmap": False})
    stored = opened(content)
    assert stored.model.features == ("age", "income", "debts", "years")
    check_against_runtime(content, stored)


# --- graphs as deep-learning libraries and people write them -----------------------------------------------------------

W = np.array([[0.5], [-0.2], [3.0], [0.25]], dtype=np.float32)
B = np.array([2.0], dtype=np.float32)
PAIR = np.hstack([0.3 * W + 0.1, -W]).astype(np.float32)


def graph(nodes: list[Any], outputs: dict[str, int], constants: dict[str, Any] | None = None, kind: int = 1) -> bytes:
    """A model of nodes over one input x with four columns; `outputs` are name → element type."""
    given = [helper.make_tensor_value_info("x", kind, [None, 4])]
    results = [helper.make_tensor_value_info(name, element, None) for name, element in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    body = helper.make_graph(nodes, "graph", given, results, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(body, opset_imports=opsets, ir_version=8).SerializeToString()


def step(operator: str, given: str, result: str, **settings: Any) -> Any:
    domain = "ai.onnx.ml" if operator in ML else ""
    return helper.make_node(operator, given.split(), result.split(), domain=domain, **settings)


ML = {
    "LinearClassifier",
    "LinearRegressor",
    "Scaler",
    "Binarizer",
    "FeatureVectorizer",
    "Normalizer",
    "ZipMap",
    "Imputer",
}
ROWS = np.random.default_rng(2).normal(size=(200, 4)) * 3
GEMM = step("Gemm", "x w b", "z")
LABEL, FLAG, SCORES = {"y": 7}, {"y": 9}, {"y": 1}
CONST = {
    "w": W,
    "b": B,
    "pair": PAIR,
    "half": np.float32(0.7),
    "one": np.float32(1),
    "zero": np.int64(0),
    "flat": np.array([-1]),
}

GRAPHS: dict[str, tuple[list[Any], dict[str, int], str, Any]] = {
    # nodes, outputs, link, how to read Yes off the first output
    "sigmoid": ([GEMM, step("Sigmoid", "z", "y")], SCORES, "logistic", lambda y: y[:, 0] > 0.5),
    "logit": ([GEMM, step("Identity", "z", "y")], SCORES, "none", lambda y: y[:, 0] > 0),
    "flat sigmoid": ([GEMM, step("Reshape", "z flat", "f"), step("Sigmoid", "f", "y")], SCORES, "logistic", lambda y: y > 0.5),
    "squeezed": (
        [GEMM, step("Constant", "", "axes", value_ints=[1]), step("Squeeze", "z axes", "f"), step("Sigmoid", "f", "y")],
        SCORES, "logistic", lambda y: y > 0.5,
    ),
    "softmax": (
        [step("MatMul", "x pair", "z"), step("Softmax", "z", "y", axis=1)], SCORES, "logistic", lambda y: y[:, 1] > 0.5
    ),
    "argmax": (
        [step("MatMul", "x pair", "z"), step("ArgMax", "z", "y", axis=-1, keepdims=0)], LABEL, "none", lambda y: y == 1
    ),
    "two logits": ([step("MatMul", "x pair", "y")], SCORES, "none", lambda y: y[:, 1] > y[:, 0]),
    "threshold": (
        [GEMM, step("Sigmoid", "z", "p"), step("Greater", "p half", "y")], FLAG, "logistic", lambda y: y[:, 0]
    ),
    "threshold below": (
        [GEMM, step("Sigmoid", "z", "p"), step("Less", "p half", "y")], FLAG, "logistic", lambda y: y[:, 0]
    ),
    "constant first": ([GEMM, step("LessOrEqual", "half z", "y")], FLAG, "none", lambda y: y[:, 0]),
    "not": ([GEMM, step("Greater", "z half", "g"), step("Not", "g", "y")], FLAG, "none", lambda y: y[:, 0]),
    "where": (
        [GEMM, step("Greater", "z half", "g"), step("Where", "g zero flat", "y")], LABEL, "none", lambda y: y[:, 0] == 0
    ),
    "binarizer": ([GEMM, step("Binarizer", "z", "y", threshold=0.7)], SCORES, "none", lambda y: y[:, 0] == 1),
    "cast": (
        [step("Cast", "x", "d", to=11), step("Cast", "d", "e", to=1), step("Gemm", "e w b", "z"),
         step("Sigmoid", "z", "p"), step("Greater", "p half", "g"), step("Cast", "g", "y", to=7)],
        LABEL, "logistic", lambda y: y[:, 0] == 1,
    ),
    "batch normalization": (
        [step("BatchNormalization", "x scale shift mean var", "n"), step("Gemm", "n w b", "z", alpha=0.5, beta=2.0),
         step("Sigmoid", "z", "y")],
        SCORES, "logistic", lambda y: y[:, 0] > 0.5,
    ),
    "transposed": ([step("Gemm", "x wt b", "z", transB=1), step("Sigmoid", "z", "y")], SCORES, "logistic", lambda y: y[:, 0] > 0.5),
    "two layers": (
        [step("MatMul", "x pair", "h"), step("Dropout", "h", "d"), step("Add", "d two", "a"), step("MatMul", "a back", "z"),
         step("Sub", "one z", "n"), step("Neg", "n", "m"), step("Div", "m half", "q"), step("Sigmoid", "q", "y")],
        SCORES, "logistic", lambda y: y[:, 0] > 0.5,
    ),
    "residual": (
        [GEMM, step("Gather", "x zero", "c", axis=1), step("Unsqueeze", "c axis", "u"), step("Add", "z u", "s"),
         step("Sigmoid", "s", "y")],
        SCORES, "logistic", lambda y: y[:, 0] > 0.5,
    ),
    "sliced": (
        [step("Slice", "x from to axis", "a"), step("Slice", "x to end axis", "c"), step("Concat", "c a", "j", axis=1),
         step("Flatten", "j", "f"), step("Gemm", "f w b", "z"), step("Sigmoid", "z", "y")],
        SCORES, "logistic", lambda y: y[:, 0] > 0.5,
    ),
    "vectorizer": (
        [step("FeatureVectorizer", "x", "v", inputdimensions=[4]), step("Scaler", "v", "s", offset=[1.0], scale=[2.0]),
         step("Gemm", "s w b", "z"), step("Sigmoid", "z", "y")],
        SCORES, "logistic", lambda y: y[:, 0] > 0.5,
    ),
    "regression with a cut": (
        [step("LinearRegressor", "x", "z", coefficients=[1.0, -2.0, 0.5, 0.0], intercepts=[0.1]), step("Greater", "z half", "y")],
        FLAG, "none", lambda y: y[:, 0],
    ),
    "one row": (
        [step("LinearClassifier", "x", "y s", coefficients=[1.0, -2.0, 0.5, 0.2], intercepts=[0.1], classlabels_ints=[3, 7],
              post_transform="NONE")],
        {"y": 7, "s": 1}, "none", lambda y: y == 7,
    ),
    "one logistic row": (
        [step("LinearClassifier", "x", "y s", coefficients=[1.0, -2.0, 0.5, 0.2], intercepts=[0.1], classlabels_ints=[3, 7],
              post_transform="LOGISTIC")],
        {"y": 7, "s": 1}, "logistic", lambda y: y == 7,
    ),
    "two rows, not opposite": (
        [step("LinearClassifier", "x", "y s", coefficients=[1.0, -2.0, 0.5, 0.2, 2.0, 1.0, 0.0, 0.3], intercepts=[0.1, 0.4],
              classlabels_strings=["a", "b"], post_transform="LOGISTIC")],
        {"y": 8, "s": 1}, "none", lambda y: y == "b",
    ),
    "two rows, softmax": (
        [step("LinearClassifier", "x", "y s", coefficients=[1.0, -2.0, 0.5, 0.2, 2.0, 1.0, 0.0, 0.3], intercepts=[0.1, 0.4],
              classlabels_ints=[0, 1], post_transform="SOFTMAX"),
         step("Normalizer", "s", "t", norm="L1")],
        {"y": 7, "t": 1}, "logistic", lambda y: y == 1,
    ),
}  # fmt: skip
MORE = {
    "wt": W.T.copy(), "two": np.array([[1.0, -2.0]], np.float32), "back": np.array([[0.4], [1.5]], np.float32),
    "scale": np.array([1, 2, 3, 4], np.float32), "shift": np.array([0, 1, 0, 2], np.float32),
    "mean": np.array([1, 0, 1, 0], np.float32), "var": np.array([1, 4, 2, 0.5], np.float32),
    "axis": np.array([1]), "from": np.array([0]), "to": np.array([2]), "end": np.array([2**62]),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_by_hand(name: str) -> None:
    nodes, outputs, link, says_yes = GRAPHS[name]
    content = graph(nodes, outputs, CONST | MORE)
    stored = opened(content)
    model = stored.model
    assert model.link == link
    cut = {"threshold": 0.7, "cast": 0.7, "threshold below": 0.3}.get(name)
    assert model.threshold == (None if cut is None else pytest.approx(cut, abs=1e-6))
    rows = ROWS.astype(np.float32).astype(np.float64)
    found = answers(content, rows)
    plane = model.hyperplane
    clear = np.abs(plane.margin(rows)) > 1e-5 * (np.abs(rows) @ np.abs(plane.normal) + abs(plane.offset))
    yes = np.asarray(says_yes(next(iter(found.values()))))
    flipped = name == "where"  # 0 where the score is high, −1 elsewhere: the larger one is Yes
    np.testing.assert_array_equal(yes[clear], (plane.labels(rows) == YES)[clear])
    assert 0.02 < yes.mean() < 0.98
    if flipped:
        assert model.classes == ("-1", "0")


def test_numbers_that_are_not_floats() -> None:
    nodes = [step("Cast", "x", "f", to=1), step("Gemm", "f w b", "z"), step("Sigmoid", "z", "y")]
    stored = opened(graph(nodes, SCORES, {"w": W, "b": B}, kind=TensorProto.INT64))
    np.testing.assert_array_equal(stored.model.hyperplane.normal, W[:, 0].astype(np.float64))


REFUSED: dict[str, tuple[list[Any], dict[str, int], str]] = {
    "relu": ([GEMM, step("Relu", "z", "h"), step("Sigmoid", "h", "y")], SCORES, "Relu node 'number 1': this operator is not"),
    "clip": ([step("Clip", "x", "c"), step("Gemm", "c w b", "y")], SCORES, "Clip node"),
    "product": ([step("Mul", "x x", "p"), step("Gemm", "p w b", "y")], SCORES, "Mul node .*not linear"),
    "divided by x": ([GEMM, step("Div", "one z", "y")], SCORES, "Div node"),
    "absolute": ([step("Abs", "x", "p"), step("Gemm", "p w b", "y")], SCORES, "Abs node .*not linear"),
    "rounded": ([step("Cast", "x", "c", to=7), step("Gemm", "c w b", "y")], SCORES, "rounded on the way"),
    "unit length": ([step("Normalizer", "x", "n", norm="L2"), step("Gemm", "n w b", "y")], SCORES, "divided by their length"),
    "cases mixed": ([step("MatMul", "w x", "y")], SCORES, "left of the table"),
    "reshaped": ([step("Reshape", "x flat", "f"), step("Sigmoid", "f", "y")], SCORES, "mixes the cases"),
    "broadcast": ([GEMM, step("Reshape", "z flat", "f"), step("Add", "f z", "y")], SCORES, "cannot be added"),
    "regression": ([step("LinearRegressor", "x", "y", coefficients=[1.0] * 4)], SCORES, "gives no decision"),
    "two questions": ([step("MatMul", "x pair", "z"), step("Sigmoid", "z", "y")], SCORES, "not those of one decision"),
    "argmax of cases": ([step("MatMul", "x pair", "z"), step("ArgMax", "z", "y", axis=0)], LABEL, "axis 0"),
    "wrong matrix": ([step("MatMul", "x back", "y")], SCORES, "does not fit a table of 4 columns"),
    "always yes": ([GEMM, step("Sigmoid", "z", "p"), step("Less", "p one", "y")], FLAG, "always the same"),
    "divided by zero": ([GEMM, step("Cast", "zero", "n", to=1), step("Div", "z n", "y")], SCORES, "divides by zero"),
    "three classes": (
        [step("LinearClassifier", "x", "y s", coefficients=[1.0] * 8, intercepts=[0.0] * 3, classlabels_ints=[0, 1, 2])],
        {"y": 7}, "8 coefficients for 3 classes",
    ),
    "probit": (
        [step("LinearClassifier", "x", "y s", coefficients=[1.0] * 4, classlabels_ints=[0, 1], post_transform="PROBIT")],
        {"y": 7}, "'PROBIT' is not read",
    ),
    "left out in the middle": ([helper.make_node("Slice", ["x", "from", "to", "", "axis"], ["y"])], SCORES, "Slice"),
    "replaced numbers": (
        [step("Imputer", "x", "f", imputed_value_floats=[0.0] * 4, replaced_value_float=-1.0), step("Gemm", "f w b", "y")],
        SCORES, "other than NaN",
    ),
    "two decisions": (
        [GEMM, step("Greater", "z half", "y"), step("Less", "z half", "u")], {"y": 9, "u": 9}, "2 different decisions"
    ),
    "a set number of rows": ([step("Add", "x rows", "a"), step("Gemm", "a w b", "y")], SCORES, r"shape \(3, 4\) does not fit"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_linear_is_refused_by_name(name: str) -> None:
    nodes, outputs, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        opened(graph(nodes, outputs, CONST | MORE | {"rows": np.ones((3, 4), np.float32)}))


def test_scikit_learn_steps_that_are_not_linear() -> None:
    for step_, message in ((Normalizer(), "Normalizer node"), (MinMaxScaler(clip=True), "Clip node")):
        with pytest.raises(UnsupportedModel, match=message):
            opened(exported(make_pipeline(step_, LogisticRegression()).fit(X, Y)))
    with pytest.raises(UnsupportedModel, match="no decision between two classes"):
        opened(exported(LinearRegression().fit(X, Y)))
    import pandas

    frame = pandas.DataFrame({"colour": NAMED})
    fitted = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(frame, Y)
    with pytest.raises(UnsupportedModel, match="input 'colour' is not a table of numbers"):
        opened(exported(fitted, initial_types=[("colour", StringTensorType([None, 1]))]))


def test_a_threshold_needs_probabilities() -> None:
    with pytest.raises(UnsupportedModel, match="asks for probabilities"):
        opened(graph(GRAPHS["logit"][0], SCORES, CONST), 0.3)


def test_a_misreading_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with the reference is able to fail."""
    from overexplain.models import onnx_operators

    monkeypatch.setitem(onnx_operators.OPERATORS, "Gemm", onnx_operators.OPERATORS["Identity"])
    nodes = [step("Gemm", "x w b", "z"), step("Gather", "z zero", "g", axis=1), step("Sigmoid", "g", "y")]
    with pytest.raises(UnsupportedModel, match="contradicts ONNX's reference implementation at output 'y' on"):
        opened(graph(nodes, SCORES, CONST | MORE))
