"""`overexplain extract`: what it prints, what it writes, and that no answer is ever lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overexplain.cli.main import run
from overexplain.errors import EndpointFailed, ExtractionFailed
from overexplain.log.querylog import QueryLog
from overexplain.models.load import load_model
from overexplain.oracles.exact import ModelOracle

ENTRIES = {
    "features": ["age", "income", "debts", "years"],
    "coefficients": [0.3, -1.5, 2.25, 0.01],
    "intercept": -1.2,
    "threshold": 0.6,
    "classes": ["denied", "granted"],
}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(ENTRIES))
    return load_model(path)


def result(capsys, *options: str) -> dict:
    """The JSON of a run that must go well."""
    assert run(["extract", "model.json", "--json", *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    return json.loads(out)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--distance", "l1"], 4),
        (["--distance", "linf"], 4),
        (["--distance", "l2"], 1),
        (["--distance", "lp:1.5"], 1),
        (["--distance", "l1", "--robustness", "l2", "--radius", "0.5"], 4),
        (["--distance", "linf", "--robustness", "l1", "--radius", "1", "--secret-radius"], 5),
        (["--distance", "linf", "--ties", "random"], 4),
        (["--distance", "linf", "--strategy", "cone"], 4),
        (["--distance", "linf", "--strategy", "points"], 4),
        (["--distance", "linf", "--strategy", "paper"], 5),
    ],
)
def test_json_says_what_was_spent_and_how_good_it_is(options, count, model, capsys) -> None:
    found = result(capsys, *options)
    assert (found["explanations"], found["labels"], found["oriented"]) == (count, 1, True)
    assert found["proven_minimum"] == (4 if "paper" in options else count)
    assert found["angle_error"] < 1e-9
    assert found["offset_error"] < 1e-9
    normal = np.array(found["hyperplane"]["normal"])
    cosine = normal @ model.hyperplane.normal / np.linalg.norm(normal) / np.linalg.norm(model.hyperplane.normal)
    assert cosine == pytest.approx(1)
    assert found["radius"] == pytest.approx(
        float(options[options.index("--radius") + 1]) if "--radius" in options else 0.0
    )
    assert set(found) == {
        "overexplain", "model", "service", "mechanism", "method", "explanations", "labels", "proven_minimum",
        "angle_error", "error_bound", "offset_error", "offset_bound", "radius", "radius_bound", "oriented",
        "exact", "agreement", "unidentified", "assumptions", "hyperplane", "confirmation", "premise", "tolerance", "residual",
    }  # fmt: skip


def test_a_secret_radius_stays_secret_in_the_log(model, capsys) -> None:
    options = ["--distance", "l1", "--robustness", "l2", "--radius", "0.5", "--secret-radius", "--log", "run.jsonl"]
    assert result(capsys, *options)["mechanism"]["radius"] is None
    log = QueryLog.load("run.jsonl")
    assert log.mechanism.radius is None
    assert [terms.radius for terms in log.mechanisms] == [None]


def test_text_is_plain_and_80_columns_wide(model, capsys) -> None:
    assert run(["extract", "model.json", "--distance", "linf", "--log", "run.jsonl", "-o", "found.json"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == "4 answers and 1 label rebuild this model."
    assert "proven minimum  4 explanations" in lines
    assert lines[-2:] == ["log saved: run.jsonl", "model saved: found.json"]
    assert out.isascii()
    assert "\x1b" not in out
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)


def test_the_rebuilt_model_and_the_log_can_be_read_back(model, capsys) -> None:
    result(capsys, "--distance", "l1", "--log", "run.jsonl", "-o", "found.json")
    found, log = load_model("found.json"), QueryLog.load("run.jsonl")
    assert found.hyperplane.is_equivalent(model.hyperplane)
    assert (found.features, found.classes) == (model.features, model.classes)
    assert log.features == model.features
    assert (len(log), len(log.explained)) == (5, 4)


def test_without_a_label_the_classes_are_not_named(model, capsys) -> None:
    found = result(capsys, "--distance", "l1", "--no-orient", "-o", "found.json")
    assert (found["labels"], found["oriented"]) == (0, False)
    assert load_model("found.json").classes is None
    assert run(["extract", "model.json", "--distance", "l1", "--no-orient"]) == 0
    assert "may be exchanged" in capsys.readouterr().out


@pytest.mark.parametrize("strategy", ["auto", "points"])
def test_a_seed_repeats_the_run(strategy, model, capsys) -> None:
    options = ["--distance", "linf", "--strategy", strategy, "--ties", "random"]
    model_without_income = replace(model, hyperplane=type(model.hyperplane)([0.3, 0.0, 2.25, 0.01], 1.0))
    model_without_income.save("model.json")  # a feature without weight is moved at random
    logs = []
    for number, seed in enumerate(("1", "1", "2")):
        result(capsys, *options, "--seed", seed, "--log", f"run{number}.jsonl")
        logs.append(QueryLog.load(f"run{number}.jsonl"))
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


def test_nothing_precious_is_written_over(model, capsys) -> None:
    before = Path("model.json").read_bytes()
    for options in (["--log", "model.json"], ["-o", "model.json"], ["--log", "x.json", "-o", "x.json"]):
        assert run(["extract", "model.json", "--distance", "l1", *options]) == 3
    assert Path("model.json").read_bytes() == before
    assert run(["extract", "model.json", "--distance", "l1", "--log", "run.jsonl"]) == 0
    capsys.readouterr()
    assert run(["extract", "model.json", "--distance", "l1", "--log", "run.jsonl"]) == 3
    assert "exists already" in capsys.readouterr().err


def test_the_rebuilt_model_is_shown_with_its_names(model, capsys) -> None:
    assert run(["extract", "model.json", "--distance", "l1"]) == 0
    out = capsys.readouterr().out
    assert "Yes where" in out
    assert all(name in out for name in model.features)


def test_a_budget_too_small_is_6_and_keeps_the_answers(model, capsys) -> None:
    assert run(["extract", "model.json", "--distance", "linf", "--budget", "3", "--log", "run.jsonl"]) == 6
    out, err = capsys.readouterr()
    assert out == ""
    saved, error = err.splitlines()
    assert saved == "log saved: run.jsonl (1 answer)"
    assert error.startswith("error: ")
    assert error.endswith("A budget of 5 is enough")
    assert len(QueryLog.load("run.jsonl")) == 1
    assert run(["extract", "model.json", "--distance", "linf", "--budget", "5"]) == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EndpointFailed("gone"), 5),
        (ConnectionError("gone"), 5),
        (ExtractionFailed("gone"), 8),
        (KeyboardInterrupt(), 130),
    ],
)
def test_the_log_is_saved_whatever_stops_the_run(error, code, model, monkeypatch, capsys) -> None:
    explain, asked = ModelOracle.explain, []

    def third_time_unlucky(self, x):
        asked.append(x)
        if len(asked) == 3:
            raise error
        return explain(self, x)

    monkeypatch.setattr(ModelOracle, "explain", third_time_unlucky)
    command = ["extract", "model.json", "--distance", "linf", "--strategy", "cone", "--log", "run.jsonl", "--json"]
    assert run(command) == code  # a fixed strategy: another one would go on with labels
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("log saved: run.jsonl (2 answers)\n")
    assert err.count("\n") == 2
    saved = QueryLog.load("run.jsonl")
    assert saved.points[saved.explained].tolist() == [x.tolist() for x in asked[:2]]


def test_if_the_log_cannot_be_saved_either_both_are_said(model, capsys) -> None:
    assert run(["extract", "model.json", "--distance", "linf", "--budget", "3", "--log", "nowhere/run.jsonl"]) == 6
    lost, error = capsys.readouterr().err.splitlines()
    assert lost.startswith("the log is lost: ")
    assert error.startswith("error: ")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["missing.json", "--distance", "l1"], "missing.json"),
        (["model.pkl", "--distance", "l1"], "pickle"),
        (["model.json", "--distance", "l7"], "unknown norm 'l7'"),
        (["model.json", "--distance", "lp:0.5"], "q ≥ 1"),
        (["model.json", "--distance", "l1", "--robustness", "ball", "--radius", "1"], "unknown norm 'ball'"),
        (["model.json", "--distance", "l1", "--robustness", "l2", "--radius", "-1"], "radius must not be negative"),
        (["model.json", "--distance", "l1", "--robustness", "l2", "--radius", "nan"], "radius must be"),
        (["model.json", "--distance", "l1", "--accuracy", "0"], "accuracy must be positive"),
        (["model.json", "--distance", "l1", "-o", "found.txt"], "found.txt"),
        (["model.json", "--distance", "l1", "-o", "nowhere/found.json"], "nowhere/found.json"),
        (["model.json", "--distance", "l1", "--log", "nowhere/run.jsonl"], "nowhere/run.jsonl"),
        (["broken.json", "--distance", "l1"], "broken.json: not JSON"),
    ],
)
def test_input_that_cannot_be_used_is_3_and_one_line(options, says, model, tmp_path, capsys) -> None:
    (tmp_path / "broken.json").write_text("{")
    assert run(["extract", *options]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert says in err
    assert err.count("\n") == 1


ROWS = (
    "age,income,debts,years\n" + "\n".join(f"{i % 7},{(i * 5) % 11},{(i * 3) % 13},{i % 4}" for i in range(60)) + "\n"
)


@pytest.mark.parametrize(
    ("options", "method", "labels"),
    [
        (["--labels-only"], "labels only", range(60, 130)),
        (["--labels-only", "--strategy", "lowd-meek"], "Lowd", range(60, 250)),
        (["--distance", "l1", "--degrade", "rounded:2", "--accuracy", "1e-3"], "Theorem A", range(1, 20)),
        (["--distance", "l1", "--degrade", "suboptimal:0.2"], "chain", range(1, 2)),
        (["--distance", "l2", "--degrade", "noisy:0.1", "--unsaid", "--accuracy", "1e-3"], "labels", range(40, 160)),
        (["--distance", "l1", "--unsaid"], "Theorem", range(1, 60)),
        (["--imitate", "nearest-neighbour", "--accuracy", "1e-3"], "labels", range(40, 160)),
    ],
)
def test_imperfect_services_are_rebuilt_and_compared(options, method, labels, model, tmp_path, capsys) -> None:
    (tmp_path / "rows.csv").write_text(ROWS.replace("age,income,debts,years", ",".join(model.features)))
    found = result(capsys, *options, "--data", "rows.csv", "--log", "run.jsonl")
    assert method in found["method"]
    assert found["labels"] in labels
    assert found["error_bound"] is None or found["angle_error"] <= found["error_bound"]
    assert found["angle_error"] < 1.1e-3
    assert set(found["agreement"]) == {"share", "floor", "points"}
    assert found["agreement"]["share"] >= found["agreement"]["floor"]
    log = QueryLog.load("run.jsonl")
    assert log.features == model.features
    assert len(log) == found["explanations"] + found["labels"] + found["confirmation"]


def test_agreement_is_printed_with_its_floor_and_the_angle(model, tmp_path, capsys) -> None:
    (tmp_path / "rows.csv").write_text(ROWS.replace("age,income,debts,years", ",".join(model.features)))
    assert run(["extract", "model.json", "--distance", "l1", "--data", "rows.csv"]) == 0
    out = capsys.readouterr().out
    assert "agreement       100 % of 60 points (a constant answer: " in out
    assert "angle error" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--distance"),
        (["--imitate", "nice", "--distance", "l1"], "--imitate brings its own distance"),
    ],
)
def test_a_service_must_be_described_once(options, says, model, capsys) -> None:
    assert run(["extract", "model.json", *options]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--imitate", "nice"], "needs data (--data)"),
        (["--distance", "l1", "--degrade", "rounded"], "rounded:DECIMALS"),
        (["--distance", "l1", "--degrade", "wobbly:1"], "unknown"),
        (["--distance", "l1", "--data", "missing.csv"], "missing.csv"),
    ],
)
def test_a_service_that_cannot_be_made_is_3(options, says, model, capsys) -> None:
    assert run(["extract", "model.json", *options]) == 3
    assert says in capsys.readouterr().err


def test_every_strategy_of_the_library_is_one_of_the_command() -> None:
    from overexplain.cli.arguments import Strategy
    from overexplain.extraction.extract import STRATEGIES

    assert {s.value for s in Strategy} == set(STRATEGIES) - {"slices"}  # a coefficient file has no one-hot groups
