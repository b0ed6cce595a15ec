"""Pickles: refused with advice that works, or read in the child as what they are."""

from __future__ import annotations

import bz2
import pickle
from pathlib import Path
from typing import Any

import joblib
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from overexplain.errors import InvalidInput, UnsupportedModel
from overexplain.models.load import load_model
from overexplain.models.pickles import conversion, read_pickle


@pytest.fixture(scope="module")
def fitted() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*make_classification(200, 4, random_state=0))


def test_an_allowed_pickle_is_the_model_bit_for_bit(fitted: Any, tmp_path: Path) -> None:
    joblib.dump(fitted, tmp_path / "model", compress=("gzip", 3))
    model = load_model(tmp_path / "model", threshold=0.2, allow_pickle=True)
    assert model == load_model(fitted, threshold=0.2)
    assert model.source == "Pipeline(StandardScaler, LogisticRegression)"


@pytest.mark.parametrize("thing", ["model.json", {"coefficients": [1.0], "intercept": 0.0}, 3])
def test_other_things_in_a_pickle(thing: Any, tmp_path: Path) -> None:
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(thing))
    if isinstance(thing, dict):
        assert read_pickle(tmp_path / "m.pkl", allow_pickle=True) == load_model(thing)
        return
    with pytest.raises(UnsupportedModel, match=r"m\.pkl: .*(not a fitted model|not a model that can be read)"):
        read_pickle(tmp_path / "m.pkl", allow_pickle=True)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "m.pkl"
    path.write_bytes(bz2.compress(pickle.dumps([1.0])))
    with pytest.raises(UnsupportedModel, match="a pickle runs code when it is opened.*convert it once: python -c "):
        load_model(path)
    path.write_bytes(pickle.dumps([1.0, "cut off"])[:-5])
    with pytest.raises(InvalidInput, match=r"m\.pkl: it cannot be read"):
        load_model(path, allow_pickle=True)


@pytest.mark.parametrize("name", ["$(id)", "a'b", 'a"b', "a\nb", "`id`", "a;b", "a\\b", "a\u202eb", "-c"])
def test_a_name_never_becomes_code(name: str) -> None:
    line = conversion(Path(f"{name}.pkl"))
    if name != "-c":
        assert name not in line
    assert line.count("\n") == 0
    assert line.isprintable()


def test_the_advice_names_the_file() -> None:
    assert "joblib.load('models/my model-1.pkl')).save('models/my model-1.json')" in conversion(
        Path("models/my model-1.pkl")
    )
