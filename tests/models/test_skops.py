"""skops files: every kind of model that is read, bit for bit; what is not trusted is refused before it is made."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from malicious_files import estimator, node, skops_file
from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.models.load import load_model
from overexplain.models.skops import OLDEST, check_schema, open_skops, read_skops

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4))
Y = np.where(X @ [1.0, -2.0, 3.0, 0.5] + 0.3 > 0, "yes", "no")

CLASSIFIERS = [
    LogisticRegression(),
    LogisticRegression(random_state=np.random.RandomState(0)),
    LinearSVC(),
    SVC(kernel="linear"),
    SGDClassifier(random_state=0),
    SGDClassifier(loss="log_loss", random_state=0),
    RidgeClassifier(),
    Perceptron(),
    LinearDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), PCA(3), MinMaxScaler(), LogisticRegression()),
    make_pipeline(
        ColumnTransformer([("a", RobustScaler(), slice(0, 2))], remainder="passthrough"), LogisticRegression()
    ),
    FixedThresholdClassifier(LogisticRegression(), threshold=0.3, pos_label="yes"),
]


class Sparse(LogisticRegression):
    """Which skops does not trust either: its coefficients are a sparse matrix."""

    def fit(self, X: Any, y: Any) -> Any:
        return LogisticRegression().fit(X, y).sparsify()


def opened(content: bytes) -> Any:
    """As in the child process, without its fence."""
    return open_skops(content, lambda **_: None)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda classifier: type(classifier).__name__)
def test_every_model_survives_bit_for_bit(classifier: Any) -> None:
    fitted = classifier.fit(X, Y)
    content = skops.io.dumps(fitted)
    check_schema(content)
    assert load_model(opened(content)) == load_model(fitted)


def test_categories_come_through_the_child(tmp_path: Path) -> None:
    import pandas

    frame = pandas.DataFrame({"age": X[:, 0], "colour": np.where(X[:, 2] > 0, "red", "blue")})
    encoder = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["colour"])])
    fitted = make_pipeline(encoder, LogisticRegression()).fit(frame, Y)
    skops.io.dump(fitted, tmp_path / "m.skops")
    model = load_model(tmp_path / "m.skops", threshold=0.4)
    assert model == load_model(fitted, threshold=0.4)
    assert model.columns is not None
    assert (model.threshold, model.source) == (0.4, load_model(fitted).source)


@pytest.mark.parametrize(
    ("classifier", "message"),
    [
        (DecisionTreeClassifier(max_depth=2), "DecisionTreeClassifier"),
        (make_pipeline(FunctionTransformer(np.log1p), LogisticRegression()), "FunctionNode for 'numpy"),
        (Sparse(), r"an entry called .*\.npz"),
    ],
)
def test_other_models_are_refused_in_the_parent(classifier: Any, message: str, tmp_path: Path) -> None:
    skops.io.dump(classifier.fit(np.abs(X), Y), tmp_path / "m.skops")
    with pytest.raises(UnsupportedModel, match=rf"m\.skops: .*{message}"):
        read_skops(tmp_path / "m.skops")


def test_what_skops_itself_does_not_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second fence, with the first one taken away."""
    monkeypatch.setattr("overexplain.models.skops.check_schema", lambda content: None)
    content = skops.io.dumps(make_pipeline(FunctionTransformer(np.sort), LogisticRegression()).fit(X, Y))
    with pytest.raises(UnsupportedModel, match=r"types that are not trusted \(numpy\.sort"):
        opened(content)


def test_an_old_skops_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skops, "__version__", "0.12.0")
    with pytest.raises(UnsupportedModel, match=r"skops 0\.12\.0 is too old.*skops>=0\.16"):
        opened(b"")
    assert OLDEST >= (0, 13)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (estimator() | {"__class__": 3}, "not a text"),
        ({"content": {}}, "does not describe an object"),
        (node("ObjectNode", "sklearn.linear_modelling.Evil"), "which no linear model consists of"),
        (node("ObjectNode", "sklearn.utils._bunch.Bunch"), "which no linear model consists of"),
        (estimator(coef_=node("BytesNode", "builtins.bytes", file="a.bin")), "BytesNode"),
    ],
)
def test_schemas(schema: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_skops(skops_file(tmp_path / "m.skops", schema))


def test_archives_that_are_no_skops_files(tmp_path: Path) -> None:
    path = tmp_path / "m.skops"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("1.npy", b"")
    with pytest.raises(UnsupportedModel, match="without schema.json"):
        read_skops(path)
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("schema.json", b"{" * 5)
    with pytest.raises(InvalidInput, match="is not JSON"):
        read_skops(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("schema.json", json.dumps("x" * 2**23))
    with pytest.raises(UnsupportedModel, match="more than 4 MiB"):
        read_skops(path)
