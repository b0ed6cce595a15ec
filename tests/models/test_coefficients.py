"""The coefficient file: what it means, that it comes back bit for bit, and what is said about every mistake in it."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite, UnsupportedModel, ZeroNormal
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models import coefficients
from overexplain.models.coefficients import from_dict, read_coefficients, to_entries
from overexplain.models.columns import Column
from overexplain.models.linear import LinearModel, logit

BASE = {"coefficients": [0.3, -1.5], "intercept": -1.2}
NAMED = BASE | {"features": ["a", "b"]}
COLOUR: dict[str, Any] = {"name": "colour", "categories": ["red", "green"], "features": ["a", "b"]}
finite = st.floats(-1e300, 1e300)


def write(folder: Path, content: str | bytes, name: str = "model.json") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_every_key_at_once(tmp_path: Path) -> None:
    entries = {
        "format": "overexplain-model",
        "version": 1,
        "features": ["age", "income"],
        "coefficients": [0.3, -1.5],
        "intercept": -1.2,
        "link": "logistic",
        "threshold": 0.25,
        "classes": ["denied", "granted"],
    }
    model = read_coefficients(write(tmp_path, "\ufeff" + json.dumps(entries)))
    assert model.hyperplane == Hyperplane([0.3, -1.5], math.log(0.25 / 0.75) + 1.2)
    assert (model.features, model.classes) == (("age", "income"), ("denied", "granted"))
    assert (model.threshold, model.link, model.dimension) == (0.25, "logistic", 2)


def test_the_cut_is_where_it_is_said_to_be() -> None:
    def offset(**cut: Any) -> float:
        return from_dict(BASE | cut).hyperplane.offset

    assert offset() == offset(cutoff=0) == offset(threshold=0.5) == offset(folded_threshold=0.9) == 1.2
    assert offset(cutoff=620) == 620 + 1.2
    assert offset(threshold=0.9) == logit(0.9) + 1.2
    model = from_dict(BASE | {"threshold": 0.9})
    x = np.linspace(-20, 20, 101)
    rows = np.column_stack([x, np.ones_like(x)])
    probability = 1 / (1 + np.exp(-(rows @ [0.3, -1.5] - 1.2)))
    np.testing.assert_array_equal(model.hyperplane.labels(rows) == 1, probability >= 0.9)


def test_the_link_is_logistic_if_a_threshold_is_there() -> None:
    assert from_dict(BASE).link == "none"
    assert from_dict(BASE | {"threshold": 0.5}).link == "logistic"
    assert from_dict(BASE | {"folded_threshold": 0.5}).link == "logistic"
    assert from_dict(BASE | {"link": "logistic"}).threshold is None
    assert from_dict(BASE | {"link": "logistic", "cutoff": 1.0}).link == "none"


def test_the_caller_can_choose_the_threshold() -> None:
    for own in ({"link": "logistic"}, {"threshold": 0.9}, {"link": "logistic", "cutoff": 3}):
        model = from_dict(BASE | own, 0.2)
        assert (model.threshold, model.hyperplane.offset) == (0.2, logit(0.2) + 1.2)
    folded = from_dict(BASE | {"folded_threshold": 0.9}, 0.2)
    assert folded.hyperplane.offset == pytest.approx(1.2 - logit(0.9) + logit(0.2))
    assert from_dict(BASE | {"folded_threshold": 0.9}, 0.9).hyperplane.offset == 1.2
    for own in ({}, {"cutoff": 3}, {"link": "none"}):
        with pytest.raises(UnsupportedModel, match=r'the model dict: threshold 0\.2 .* declare link "logistic"'):
            from_dict(BASE | own, 0.2)


def test_coefficients_by_name() -> None:
    assert from_dict({"coefficients": {"b": 1, "a": 2}, "intercept": 0}).features == ("b", "a")
    model = from_dict({"coefficients": {"b": 1, "a": 2}, "features": ["a", "b"], "intercept": 0})
    assert (model.features, model.hyperplane.normal.tolist()) == (("a", "b"), [2.0, 1.0])


def test_arrays_are_lists() -> None:
    entries = {"coefficients": np.array([1, 2]), "features": np.array(["a", "b"]), "intercept": np.float32(0.5)}
    assert from_dict(entries) == LinearModel(Hyperplane([1.0, 2.0], -0.5), ("a", "b"))


@given(
    st.lists(finite, min_size=1, max_size=4).filter(any),
    finite,
    st.none() | st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.booleans(),
)
def test_a_saved_model_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, normal: list[float], offset: float, threshold: float | None, named: bool
) -> None:
    names = tuple(f'"ä\u202e{i}' for i in range(len(normal))) if named else None
    classes = ("nein", "ja") if named else None
    model = LinearModel(Hyperplane(np.array(normal), offset), names, threshold, classes)
    path = tmp_path_factory.getbasetemp() / "saved.json"
    model.save(path)
    again = read_coefficients(path)
    assert again == model
    assert again.hyperplane.normal.tobytes() == model.hyperplane.normal.tobytes()
    assert math.copysign(1, again.hyperplane.offset) == math.copysign(1, offset)
    assert to_entries(again) == to_entries(model)


def test_columns_come_back(tmp_path: Path) -> None:
    columns = (
        Column("age", missing=41.5),
        Column("colour", ("red", "green", "blue", None), ("red", "rest", "rest", "rest"), "ignore", "rest"),
        Column("floor", (1, 2.5, "attic"), unknown="ignore"),
        Column("member", (False, True)),
    )
    features = tuple(name for column in columns for name in column.own)
    model = LinearModel(Hyperplane(np.arange(1.0, 9.0), 2.0), features, columns=columns)
    model.save(tmp_path / "model.json")
    again = read_coefficients(tmp_path / "model.json")
    assert again == model
    assert again.columns == columns
    assert [type(c) for c in again.columns[3].categories] == [bool, bool]
    assert to_entries(again) == to_entries(model)
    assert to_entries(model)["columns"][3] == {"name": "member", "categories": [False, True]}


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.json"
    old = LinearModel(Hyperplane([1.0], 2.0))
    old.save(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(coefficients.os, "fsync", full)
    with pytest.raises(InvalidInput, match=r"model.json: cannot be written \(No space left on device\)"):
        LinearModel(Hyperplane([5.0], 2.0)).save(path)
    assert read_coefficients(path) == old
    assert list(tmp_path.iterdir()) == [path]


def test_saving_to_a_place_that_cannot_be(tmp_path: Path) -> None:
    model = LinearModel(Hyperplane([1.0], 2.0))
    with pytest.raises(InvalidInput, match=r"none.m.json: cannot be written \(there is no folder"):
        model.save(tmp_path / "none" / "m.json")
    with pytest.raises(InvalidInput, match=r"ends in \.json"):
        model.save(tmp_path / "m.pkl")


@pytest.mark.parametrize(
    ("entries", "error", "text"),
    [
        ([1, 2], InvalidInput, r"a JSON object with coefficients and intercept, got \[1, 2\]"),
        ("text", InvalidInput, "a JSON object"),
        ({}, InvalidInput, "'coefficients' is missing"),
        ({"coefficients": [1]}, InvalidInput, "'intercept' is missing"),
        ({"coefficients": None, "intercept": 0}, InvalidInput, "'coefficients' is missing"),
        (BASE | {"treshold": 0.5}, InvalidInput, "unknown key 'treshold'; did you mean 'threshold'"),
        (BASE | {"coef": 1}, InvalidInput, "unknown key 'coef'; did you mean 'coefficients'"),
        (BASE | {"feature_names": []}, InvalidInput, "did you mean 'features'"),
        (BASE | {"bias": 1}, InvalidInput, "unknown key 'bias'; did you mean 'intercept'"),
        (BASE | {"author": 1}, InvalidInput, "unknown key 'author'; known keys are format, version"),
        (BASE | {"format": "pmml"}, UnsupportedModel, "format is 'pmml'"),
        (BASE | {"version": 2}, UnsupportedModel, "version 2 is newer than 1, .* update"),
        (BASE | {"version": 0}, InvalidInput, "version must be a whole number"),
        (BASE | {"version": True}, InvalidInput, "version must be a whole number"),
        (BASE | {"version": "1"}, InvalidInput, "version must be a whole number"),
        (BASE | {"coefficients": []}, InvalidInput, "coefficients is empty"),
        (BASE | {"coefficients": {}}, InvalidInput, "coefficients is empty"),
        (BASE | {"coefficients": 3}, InvalidInput, "coefficients must be a list of numbers"),
        (BASE | {"coefficients": "12"}, InvalidInput, "coefficients must be a list of numbers"),
        (BASE | {"coefficients": [1, "2"]}, InvalidInput, r"coefficients\[1\] is the text '2'; write a number"),
        (BASE | {"coefficients": {"age": True}}, InvalidInput, r"coefficients\['age'\] must be a number, got True"),
        (BASE | {"coefficients": [1, None]}, InvalidInput, r"coefficients\[1\] must be a number, got None"),
        (BASE | {"coefficients": [[1], [2]]}, InvalidInput, r"coefficients\[0\] must be a number"),
        (BASE | {"coefficients": [0, 0.0]}, ZeroNormal, "every coefficient is zero"),
        (BASE | {"coefficients": [1, float("nan")]}, NotFinite, r"coefficients\[1\] is NaN"),
        (BASE | {"intercept": float("inf")}, NotFinite, "intercept is too large"),
        (BASE | {"intercept": 10**400}, NotFinite, "intercept is too large"),
        (BASE | {"intercept": "0"}, InvalidInput, "intercept is the text '0'"),
        (BASE | {"cutoff": float("-inf")}, NotFinite, "cutoff is too large"),
        (BASE | {"cutoff": 1e308, "intercept": -1e308}, NotFinite, "offset has inf"),
        (BASE | {"cutoff": False}, InvalidInput, "cutoff must be a number"),
        (BASE | {"threshold": float("nan")}, NotFinite, "threshold is NaN"),
        (BASE | {"threshold": 0}, InvalidInput, "threshold must be a probability strictly between 0 and 1, got 0"),
        (BASE | {"threshold": 1}, InvalidInput, "strictly between 0 and 1"),
        (BASE | {"threshold": 50}, InvalidInput, "strictly between 0 and 1"),
        (BASE | {"folded_threshold": 1.5}, InvalidInput, "strictly between 0 and 1"),
        (BASE | {"threshold": 0.5, "cutoff": 0}, InvalidInput, "threshold and cutoff are both given"),
        (BASE | {"threshold": 0.5, "folded_threshold": 0.5}, InvalidInput, "threshold and folded_threshold are both"),
        (BASE | {"threshold": 0.5, "link": "none"}, InvalidInput, "called cutoff"),
        (BASE | {"folded_threshold": 0.5, "link": "none"}, InvalidInput, "called cutoff"),
        (BASE | {"link": "probit"}, InvalidInput, "link must be .*, got 'probit'"),
        (BASE | {"link": ""}, InvalidInput, "link must be .*, got ''"),
        (BASE | {"features": ["a"]}, DimensionMismatch, "1 features are named, there are 2 coefficients"),
        (BASE | {"features": ["a", "a"]}, InvalidInput, "features has the name 'a' twice"),
        (BASE | {"features": ["a", 1]}, InvalidInput, r"features\[1\] must be a text, got 1"),
        (BASE | {"features": "ab"}, InvalidInput, "features must be a list of names"),
        (BASE | {"features": {"a": 1}}, InvalidInput, "features must be a list of names"),
        (BASE | {"features": ["a"], "coefficients": {"b": 1}}, InvalidInput, "'a' has no coefficient; 'b' is not"),
        (BASE | {"features": 3, "coefficients": {"b": 1}}, InvalidInput, "features must be a list of names"),
        (BASE | {"columns": 3}, InvalidInput, "columns must be a list of objects, got 3"),
        (BASE | {"columns": [3]}, InvalidInput, "columns must be a list of objects"),
        (BASE | {"columns": [{"name": "a"}]}, InvalidInput, "columns need the names of the features"),
        (NAMED | {"columns": [{"name": "a"}]}, InvalidInput, "'b' comes from no column"),
        (NAMED | {"columns": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}, InvalidInput, "'c' is no feature"),
        (
            NAMED | {"columns": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
            InvalidInput,
            "'a' comes from two columns",
        ),
        (NAMED | {"columns": [{"nam": "a"}]}, InvalidInput, r"columns\[0\]: unknown key 'nam'; did you mean 'name'"),
        (NAMED | {"columns": [{}]}, InvalidInput, "the name of a column must be a text, got None"),
        (NAMED | {"columns": [{"name": "a"}, {"name": "b", "missing": "x"}]}, InvalidInput, r"columns\[1\]: .*number"),
        (NAMED | {"columns": [{"name": "a", "missing": True}]}, InvalidInput, "missing must be a number, got True"),
        (NAMED | {"columns": [{"name": "a", "missing": 1e999}]}, NotFinite, "missing must be finite"),
        (NAMED | {"columns": [{"name": "a", "unknown": "ignore"}]}, InvalidInput, "has no unknown categories"),
        (NAMED | {"columns": [COLOUR | {"categories": []}]}, InvalidInput, "categories must differ, at least one"),
        (NAMED | {"columns": [COLOUR | {"categories": [1, True]}]}, InvalidInput, "categories must differ"),
        (NAMED | {"columns": [COLOUR | {"categories": "rg"}]}, InvalidInput, "categories must be a list, got 'rg'"),
        (NAMED | {"columns": [COLOUR | {"categories": [[1], 2]}]}, InvalidInput, "a category must be a text, a number"),
        (NAMED | {"columns": [COLOUR | {"features": ["a"]}]}, InvalidInput, "needs 2 names of features"),
        (NAMED | {"columns": [COLOUR | {"features": [1, 2]}]}, InvalidInput, "needs 2 names of features"),
        (NAMED | {"columns": [COLOUR | {"unknown": "guess"}]}, InvalidInput, "unknown must be .*got 'guess'"),
        (NAMED | {"columns": [COLOUR | {"unknown_feature": "a"}]}, InvalidInput, "unknown_feature must be one of"),
        (NAMED | {"columns": [COLOUR | {"missing": 1}]}, InvalidInput, "a missing category is None among"),
        (BASE | {"classes": ["a"]}, InvalidInput, "classes must be two names"),
        (BASE | {"classes": ["a", "a"]}, InvalidInput, "classes has the name 'a' twice"),
        (BASE | {"classes": [0, 1]}, InvalidInput, r"classes\[0\] must be a text, got 0"),
    ],
)
def test_every_mistake_is_named_with_its_place(tmp_path: Path, entries: Any, error: type[Exception], text: str) -> None:
    path = write(tmp_path, json.dumps(entries))
    with pytest.raises(InvalidInput, match=text) as caught:
        read_coefficients(path)
    assert type(caught.value) is error
    assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(error, match=f"the model dict: .*{text}"):
        from_dict(entries)


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        ("", InvalidInput, "the file is empty"),
        (" \n", InvalidInput, "the file is empty"),
        ("{", InvalidInput, "not JSON: .* at line 1, column 2"),
        ('{"intercept": 0,\n}', InvalidInput, "not JSON: .* line "),
        ("coefficients: 1", InvalidInput, "not JSON"),
        (b'{"intercept": "\xff"}', InvalidInput, "not UTF-8 text .byte 15."),
        ("[" * 200_000, InvalidInput, "nested too deeply"),
        ('{"a":' * 200_000, InvalidInput, "nested too deeply"),
        ('{"intercept": 1, "intercept": 2, "coefficients": [1]}', InvalidInput, "'intercept' stands there twice"),
        ('{"intercept": 1, "coefficients": {"a": 1, "b": 2, "a": 3}}', InvalidInput, "'a' stands there twice"),
        ('{"intercept": NaN, "coefficients": [1]}', NotFinite, "intercept is NaN"),
        ('{"intercept": 0, "coefficients": [1, -Infinity]}', NotFinite, r"coefficients\[1\] is too large"),
        ('{"intercept": 1e999, "coefficients": [1]}', NotFinite, "intercept is too large"),
        ('{"coefficients": [1], "intercept": ' + "1" * 5000 + "}", InvalidInput, "a number cannot be read"),
    ],
)
def test_files_that_are_not_json(tmp_path: Path, content: str | bytes, error: type[Exception], text: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InvalidInput, match=text) as caught:
        read_coefficients(path)
    assert type(caught.value) is error
    assert str(caught.value).startswith(f"{path}: ")


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match=r"gone.json: the model file cannot be read \(No such file or directory\)"):
        read_coefficients(tmp_path / "gone.json")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read_coefficients(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read_coefficients(tmp_path / "pipe.json")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_coefficients("a\0b.json")
    monkeypatch.setattr(coefficients, "LARGEST", 2**20)
    with pytest.raises(InvalidInput, match="larger than 1 MiB"):
        read_coefficients(write(tmp_path, " " * (2**20 + 1)))


def test_the_largest_file_is_64_mib() -> None:
    assert coefficients.LARGEST == 64 * 1024 * 1024
