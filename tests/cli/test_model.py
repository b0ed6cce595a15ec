"""`overexplain model inspect`: what it prints and saves, for every kind of file, and clear refusals."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest

from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.columns import Column
from overexplain.models.linear import LinearModel
from overexplain.models.load import load_model

ENTRIES = {
    "features": ["age", "in\u202ecome\x1b[2J", "x" * 10_000, *(f"f{k}" for k in range(12))],
    "coefficients": [0.3, -1.5, 2.25, *([0.0] * 6), *([0.01] * 6)],
    "intercept": -1.2,
    "threshold": 0.6,
    "classes": ["denied", "granted"],
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model.json").write_text(json.dumps(ENTRIES))


def inspected(capsys, *arguments: str) -> dict:
    """The JSON of a run that must go well."""
    assert run(["model", "inspect", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert (err, out.count("\n")) == ("", 1)
    found = json.loads(out)
    assert set(found) == {"overexplain", "model"}
    return found["model"]


def test_a_coefficient_file_as_json(capsys) -> None:
    found = inspected(capsys, "model.json")
    digest = hashlib.sha256(Path("model.json").read_bytes()).hexdigest()
    assert (found["file"], found["kind"], found["sha256"], found["dimension"]) == ("model.json", "json", digest, 15)
    assert (found["checked"], found["notes"]) == (None, [])
    assert load_model(found["coefficient_file"]) == load_model("model.json")
    again = inspected(capsys, "model.json", "--threshold", "0.9")
    assert load_model(again["coefficient_file"]) == load_model("model.json", threshold=0.9)


def test_text_is_plain_and_80_columns_wide(capsys) -> None:
    assert run(["model", "inspect", "model.json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "\u202e" not in out
    words = " ".join(out.split())
    for part in (
        "A linear model of 15 features.",
        "kind coefficient file (JSON)",
        "No is denied, Yes is granted",
        "P(Yes) >= 0.6",
        "+2.25 xxxxx",
        "-1.5 in�come�[2J",
        "and 5 smaller ones, 6 of all are 0",
        "nothing to compare it with",
    ):
        assert part in words


def test_categories_scores_and_saving(capsys) -> None:
    names = ("age", "colour=red", "colour=green")
    columns = (Column("age"), Column("colour", ("red", "green")))
    model = LinearModel(Hyperplane([1.0, 2.0, -1.0], 0.5), names, columns=columns)
    model.save("raw.json")
    assert run(["model", "inspect", "raw.json", "-o", "saved.json"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "categories colour (2 values)" in words
    assert "probabilities are not known" in words
    assert "saved saved.json" in words
    assert load_model("saved.json") == model


def test_an_allowed_pickle_is_opened_and_noted(capsys) -> None:
    Path("m.pkl").write_bytes(pickle.dumps(ENTRIES))
    assert run(["model", "inspect", "m.pkl"]) == 3
    assert "convert it once" in capsys.readouterr().err
    assert run(["model", "inspect", "m.pkl", "--allow-pickle", "-o", "m.json"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "kind pickle, coefficients" in out
    assert "note a pickle was run" in out
    assert load_model("m.json") == load_model("model.json")


def test_onnx_says_how_it_was_checked(capsys) -> None:
    from malicious_onnx import product, weights

    Path("m.onnx").write_bytes(product(weights()).SerializeToString())
    found = inspected(capsys, "m.onnx")
    assert (found["kind"], found["source"], found["dimension"]) == ("onnx", "ONNX", 2)
    assert found["checked"] == "compared with ONNX's reference implementation on 64 points"
    assert any("float32" in note for note in found["notes"])
    assert any("scores only" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gone.json"], 3, "gone.json: the model file cannot be read"),
        (["."], 3, "not a regular file"),
        (["model.json", "-o", "model.txt"], 3, "ends in .json"),
        (["model.json", "--threshold", "2"], 3, "strictly between 0 and 1"),
        (["model.json", "--threshold", "much"], 2, "'--threshold'"),
        ([], 2, "Missing argument"),
    ],
)
def test_refusals(arguments, code, message, capsys) -> None:
    assert run(["model", "inspect", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
