"""Names with half of a surrogate pair, which JSON can spell and nothing can print: refused by name wherever names come in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overexplain.cli.main import run
from overexplain.log.querylog import QueryLog

ODD = "age\ud800"
MODEL = {"features": ["age", "income"], "coefficients": [1.0, -2.0], "intercept": 0.5, "classes": ["no", "yes"]}
COLUMNS = [{"name": "age"}, {"name": "sex", "categories": ["f", "m"], "features": ["f", "m"]}]
RAW = {"features": ["age", "f", "m"], "coefficients": [1.0, -2.0, 0.5], "intercept": 0.5}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("age,income\n1,2\n3,-4\n0,0\n")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
    assert run(arguments) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "no Unicode text" in err
    assert "\\ud800" in err


@pytest.mark.parametrize(
    "entries",
    [
        MODEL | {"features": [ODD, "income"]},
        {"coefficients": {ODD: 1.0, "income": 2.0}, "intercept": 0.5},
        MODEL | {"classes": ["no", ODD]},
        RAW | {"columns": [COLUMNS[0], COLUMNS[1] | {"name": ODD}]},
        RAW | {"columns": [COLUMNS[0], COLUMNS[1] | {"categories": ["f", ODD]}]},
    ],
    ids=["feature", "coefficient", "class", "column", "category"],
)
@pytest.mark.parametrize(
    "command",
    [
        ["audit", "--data", "data.csv", "--report", "r.html"],
        ["extract", "--distance", "l1"],
        ["serve", "--distance", "l1", "--port", "0"],
    ],
    ids=lambda words: words[0],
)
def test_in_a_model(entries, command, capsys) -> None:
    Path("model.json").write_text(json.dumps(entries))
    refused(capsys, command[0], "model.json", *command[1:])


@pytest.mark.parametrize(
    "command", [["certify", "log.jsonl", "data.csv"], ["monitor", "log.jsonl"], ["log", "show", "log.jsonl"]]
)
def test_in_a_log(command, capsys) -> None:
    log = QueryLog(features=["age", "income"])
    log.add_label([[1.0, 2.0], [3.0, -4.0]], [1, -1])
    log.save("log.jsonl")
    text = Path("log.jsonl").read_text()
    Path("log.jsonl").write_text(text.replace('"age"', json.dumps(ODD), 1))
    refused(capsys, *command)


def test_in_points(capsys) -> None:
    log = QueryLog(features=["age", "income"])
    log.add_label([[1.0, 2.0], [3.0, -4.0]], [1, -1])
    log.save("log.jsonl")
    point = {"age": 1.0, "income": 2.0}
    Path("points.jsonl").write_text(json.dumps(point | {ODD: 7}) + "\n")
    refused(capsys, "certify", "log.jsonl", "points.jsonl", "-o", "v.csv")
    Path("points.jsonl").write_text(json.dumps(point | {"id": ODD}) + "\n")
    assert run(["certify", "log.jsonl", "points.jsonl", "-o", "v.csv"]) == 0
    assert "age\\ud800" in Path("v.csv").read_text()
    capsys.readouterr()


def test_in_a_policy(capsys) -> None:
    Path("model.json").write_text(json.dumps(MODEL))
    Path("policy.toml").write_text('[audit]\nservices = ["l1\\ud800"]\n')
    assert run(["audit", "model.json", "--data", "data.csv", "--policy", "policy.toml", "--report", "r.html"]) == 3
    assert "policy.toml: no TOML file" in capsys.readouterr().err
