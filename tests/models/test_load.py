"""`load_model`: what goes through the one door, and what is turned away; `LinearModel` itself."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedModel
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.linear import LinearModel, logit
from overexplain.models.load import load_model

PLANE = Hyperplane([1.0, -2.0], 0.5)


@pytest.fixture(scope="module")
def fitted() -> Any:
    X, y = make_classification(200, 4, random_state=0)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)


def test_models_and_planes_pass_through() -> None:
    model = LinearModel(PLANE, ("a", "b"), 0.5)
    assert load_model(model) is model
    assert load_model(model, threshold=0.5) is model
    assert load_model(model, threshold=0.75).hyperplane == Hyperplane([1.0, -2.0], 0.5 + math.log(3))
    assert load_model(PLANE) == LinearModel(PLANE)
    with pytest.raises(UnsupportedModel, match="leave the threshold out"):
        load_model(PLANE, threshold=0.5)


def test_files_dicts_and_fitted_objects_give_the_same_model(fitted: Any, tmp_path: Path) -> None:
    model = load_model(fitted)
    path = tmp_path / "Model.JSON"
    model.save(path)
    assert load_model(path) == load_model(str(path)) == model
    plane = model.hyperplane
    entries = {"coefficients": plane.normal.tolist(), "intercept": -plane.offset, "classes": ["0", "1"]}
    assert load_model(entries | {"link": "logistic"}) == model
    assert load_model(path, threshold=0.2) == load_model(fitted, threshold=0.2)
    assert load_model(path, threshold=0.2).threshold == 0.2


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib", "M.PKL", "m.pkl.gz"])
def test_pickles_are_never_opened(name: str, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "opened",))

    path = tmp_path / name
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UnsupportedModel, match=r"a pickle runs code when it is opened.*python -c ") as error:
        load_model(path)
    assert f"joblib.load('{path}')" in str(error.value)
    assert not (tmp_path / "opened").exists()


def test_the_advice_for_pickles_works(fitted: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.joblib"
    path.write_bytes(pickle.dumps(fitted))
    with pytest.raises(UnsupportedModel) as error:
        load_model(path)
    code = str(error.value).partition('python -c "')[2].rstrip('"')
    # The package's root is not this test's matter: the same line, with the door taken from where it is.
    code = code.replace("overexplain as ox", "overexplain.models.load as ox")
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert load_model(tmp_path / "m.json") == load_model(fitted)


def test_a_file_name_does_not_become_a_command(tmp_path: Path) -> None:
    path = tmp_path / "$(touch x)'.pkl"
    path.write_bytes(pickle.dumps(3))
    with pytest.raises(UnsupportedModel, match=r"joblib\.load\('model\.joblib'\)"):
        load_model(path)


@pytest.mark.parametrize("name", ["m.txt", "m", "m.json.bak"])
def test_other_endings(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"what is this")
    with pytest.raises(UnsupportedModel, match=r"neither its content nor its ending .*read are coefficient files"):
        load_model(tmp_path / name)


@pytest.mark.parametrize("name", ["gone.json", "gone.csv", "gone.onnx", "gone.skops", "gone"])
def test_missing_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"{name}: the model file cannot be read"):
        load_model(tmp_path / name)


def test_a_missing_pickle_is_refused_as_a_pickle_unless_it_may_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="a pickle runs code"):
        load_model(tmp_path / "gone.pkl")
    with pytest.raises(InvalidInput, match="the model file cannot be read"):
        load_model(tmp_path / "gone.pkl", allow_pickle=True)


def test_what_a_file_is_its_content_says_before_its_name(fitted: Any, tmp_path: Path) -> None:
    model = load_model(fitted)
    model.save(tmp_path / "model.json")
    for name in ("model.csv", "model.onnx", "model"):
        (tmp_path / name).write_bytes((tmp_path / "model.json").read_bytes())
        assert load_model(tmp_path / name) == model
    table = "feature,coefficient\na,1\nb,-2\nintercept,-0.5\n"
    for name in ("table.csv", "table.json", "table.txt"):
        (tmp_path / name).write_text(table)
        assert load_model(tmp_path / name) == LinearModel(PLANE, ("a", "b"))
    for name in ("pickle.json", "pickle.csv", "pickle.onnx", "pickle"):
        (tmp_path / name).write_bytes(pickle.dumps(fitted))
        with pytest.raises(UnsupportedModel, match="a pickle runs code"):
            load_model(tmp_path / name)
    for name in ("zip.csv", "zip.json"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a.txt", table)
        with pytest.raises(UnsupportedModel, match="neither its content nor its ending"):
            load_model(tmp_path / name)


def test_where_a_model_comes_from_is_noted_but_not_compared(fitted: Any, tmp_path: Path) -> None:
    model = load_model(fitted)
    model.save(tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (model.source, again.source) == ("Pipeline(StandardScaler, LogisticRegression)", "coefficient file")
    assert again == model
    assert "source" not in json.loads((tmp_path / "model.json").read_text())
    assert load_model(PLANE).source == "hyperplane"
    assert load_model({"coefficients": [1], "intercept": 0}).source == "coefficients"
    assert load_model(again, threshold=0.7).source == "coefficient file"


@pytest.mark.parametrize("thing", [None, 3, [1.0, 2.0], np.ones(3), LogisticRegression, object()])
def test_other_objects(thing: Any) -> None:
    with pytest.raises(UnsupportedModel, match=f"a {type(thing).__name__} is not a model that can be read"):
        load_model(thing)


def test_scikit_learn_objects_that_are_not_linear_or_not_fitted() -> None:
    with pytest.raises(UnsupportedModel, match="RandomForestClassifier is not on the list"):
        load_model(RandomForestClassifier())
    with pytest.raises(UnsupportedModel, match="LogisticRegression is not fitted; call fit first"):
        load_model(LogisticRegression())

    class Foreign:
        coef_ = np.ones((1, 2))

    with pytest.raises(UnsupportedModel, match="Foreign is not on the list"):
        load_model(Foreign())


def test_importing_the_door_does_not_import_scikit_learn() -> None:
    code = "import sys, overexplain.models.load as m; m.load_model({'coefficients': [1], 'intercept': 0}); " + (
        "sys.exit(any(name.partition('.')[0] in ('sklearn', 'scipy', 'pandas') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.returncode == 0


def test_linear_model_checks_its_names() -> None:
    model = LinearModel(PLANE, ["a", "b"], classes=["no", "yes"])  # type: ignore[arg-type]
    assert (model.features, model.classes, model.dimension) == (("a", "b"), ("no", "yes"), 2)
    with pytest.raises(DimensionMismatch, match="3 features are named, there are 2 coefficients"):
        LinearModel(PLANE, ("a", "b", "c"))
    with pytest.raises(InvalidInput, match="'a' twice"):
        LinearModel(PLANE, ("a", "a"))
    with pytest.raises(InvalidInput, match="must be two names"):
        LinearModel(PLANE, classes=("a", "b", "c"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a Hyperplane, got list"):
        LinearModel([1.0])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
        LinearModel(PLANE, threshold=1.0)
    with pytest.raises(InvalidInput, match='needs link "logistic"'):
        LinearModel(PLANE, threshold=0.5, link="none")


def test_cuts_of_a_linear_model() -> None:
    model = LinearModel(PLANE, link="logistic")
    assert model.with_threshold(0.5).hyperplane == PLANE
    assert model.with_threshold(0.9).with_threshold(0.1).hyperplane.offset == pytest.approx(0.5 + logit(0.1))
    assert model.with_cutoff(0.0) is model
    assert model.with_cutoff(2.0) == LinearModel(Hyperplane([1.0, -2.0], 2.5))


@pytest.mark.parametrize("probability", [5e-324, 1e-9, 0.3, 0.5, 1 - 2**-53])
def test_logit_inverts_the_sigmoid(probability: float) -> None:
    score = logit(probability)
    assert math.exp(score) / (1 + math.exp(score)) == pytest.approx(probability, rel=1e-12)
    assert logit(0.5) == 0.0
