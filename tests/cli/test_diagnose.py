"""`overexplain diagnose`: every way to describe a service, what is printed, and clear refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

from overexplain.cli.main import run
from overexplain.errors import InvalidInput
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.oracles import constrained, degraded, silent
from overexplain.oracles.degradations import DEGRADATIONS, Workshop, degrade
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.imitations import IMITATIONS

ENTRIES = {
    "features": ["age", "income", "debts", "years"],
    "coefficients": [0.3, -1.5, 2.25, 0.4],
    "intercept": -1.2,
    "threshold": 0.6,
    "classes": ["denied", "granted"],
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(ENTRIES))
    rows = 2 * np.random.default_rng(0).normal(size=(60, 4))
    lines = [",".join(["id", *reversed(ENTRIES["features"])])]
    lines += [",".join([f"c{k}", *(repr(float(v)) for v in row[::-1])]) for k, row in enumerate(rows)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")


def report(capsys, *options: str) -> dict:
    """The report in the JSON of a run that must go well."""
    assert run(["diagnose", "model.json", "--json", *options]) == 0
    out, err = capsys.readouterr()
    assert (err, out.count("\n")) == ("", 1)
    found = json.loads(out)
    assert set(found) == {"overexplain", "model", "report"}
    assert found["model"] == {"features": 4, "names": ENTRIES["features"], "seed": found["model"]["seed"]}
    return found["report"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"family": "l2", "distance": "l2", "exact": True, "cost": {"explanations": 1, "labels": 1}}),
        (["--distance", "l1"], {"family": "l1", "cost": {"explanations": 4, "labels": 1}}),
        (["--distance", "lp:1.5"], {"family": "lq", "distance": "lp:1.5", "margin": "zero"}),
        (["--distance", "linf", "--robustness", "l2", "--radius", "0.1"], {"family": "linf", "margin": "constant"}),
        (["--degrade", "rounded:2"], {"grid": "2 decimals", "tolerance": 0.005}),
        (["--degrade", "float32"], {"grid": "float32", "refuted": ["documented answers finer than what was seen (float32)"]}),
        (["--degrade", "noisy:0.1"], {"deterministic": False, "exact": False, "family": "heuristic"}),
        (["--degrade", "suboptimal:0.3"], {"exact": False, "direction": "varying"}),
        (["--degrade", "overshoot:0.05"], {"margin": "constant"}),
        (["--degrade", "overshoot:0.05:uniform"], {"margin": "variable"}),
        (["--degrade", "random-radius:0.5:beta:keyed"], {"margin": "variable", "deterministic": True}),
        (["--degrade", "one-sided"], {"one_sided": -1}),
        (["--degrade", "one-sided:yes"], {"one_sided": 1}),
        (["--degrade", "immutable:income,3"], {"immutable": [1, 3], "moved": [0, 2]}),
        (["--degrade", "sparse:2"], {"moved": [1, 2]}),
        (["--degrade", "monotone"], {"direction": "by side"}),
        (["--degrade", "boxed:-3:3"], {"margin": "zero"}),
        (["--degrade", "switching:l1,l2,linf"], {"family": "mixture", "direction": "several"}),
        (["--degrade", "flaky:0.3:echo"], {"family": "l2"}),
        (["--degrade", "nearest-row", "--data", "rows.csv"], {"repeated_rows": True, "family": "heuristic"}),
        (["--imitate", "wachter", "--data", "rows.csv"], {"family": "l2", "margin": "variable"}),
        (["--imitate", "solver", "--data", "rows.csv", "--degrade", "one-sided"], {"one_sided": -1, "family": "l1"}),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_service_shows(options, expected, capsys) -> None:
    found = report(capsys, *options)
    assert {key: found[key] for key in expected} == expected


def test_several_faults_are_applied_in_turn(capsys) -> None:
    found = report(capsys, "--degrade", "immutable:years", "--degrade", "rounded:3", "--degrade", "one-sided")
    assert (found["moved"], found["grid"], found["one_sided"]) == ([0, 1, 2], "3 decimals", -1)
    assert found["failures"].keys() == {"None"}


@pytest.mark.parametrize("name", IMITATIONS)
def test_every_imitation_can_be_diagnosed(name, capsys) -> None:
    assert report(capsys, "--imitate", name, "--data", "rows.csv")["answers"] > 0


def test_the_number_of_questions_and_the_seed_count(capsys) -> None:
    short = report(capsys, "-n", "8", "--degrade", "noisy:0.1", "--seed", "3")
    assert short["asked"]["explanations"] <= 8
    assert short == report(capsys, "-n", "8", "--degrade", "noisy:0.1", "--seed", "3")
    assert short != report(capsys, "-n", "8", "--degrade", "noisy:0.1", "--seed", "4")


def test_text_is_plain_and_80_columns_wide(capsys) -> None:
    options = [
        "--distance",
        "linf",
        "--degrade",
        "immutable:age",
        "--degrade",
        "overshoot:0.05",
        "--degrade",
        "one-sided",
    ]
    assert run(["diagnose", "model.json", *options]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    words = " ".join(out.split())
    for part in (
        "This service answers exactly.",
        "largest change (linf)",
        "held age",
        "only explained No",
        "behind it",
    ):
        assert part in words
    assert "\nmethod " in out
    assert "\npredicted " in out


def test_text_says_so_if_nothing_was_answered(capsys) -> None:
    assert run(["diagnose", "model.json", "--degrade", "flaky:1:nan"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "no answer that can be used" in words
    assert "NaN row, 14 of 14" in words
    assert "labels only" in words


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--degrade", "blurred:2"], 3, "unknown; known are rounded:DECIMALS"),
        (["--degrade", "rounded"], 3, "write it as rounded:DECIMALS"),
        (["--degrade", "rounded:"], 3, "write it as rounded:DECIMALS"),
        (["--degrade", "rounded:two"], 3, "'two' is no whole number"),
        (["--degrade", "noisy:much"], 3, "'much' is no number"),
        (["--degrade", "noisy:-1"], 3, "degrade 'noisy:-1'"),
        (["--degrade", "immutable:shoes"], 3, "no feature 'shoes'; there are 4"),
        (["--degrade", "immutable:4"], 3, "no feature '4'"),
        (["--degrade", "one-sided:maybe"], 3, "none of no, yes"),
        (["--degrade", "overshoot:1:wild"], 3, "none of constant, uniform"),
        (["--degrade", "flaky:0.2:rude"], 3, "degrade 'flaky:0.2:rude'"),
        (["--degrade", "nearest-row"], 3, "--data"),
        (["--degrade", "rounded:2", "--degrade", "boxed:0:1"], 3, "degrade 'boxed:0:1'"),
        (["--imitate", "wachter"], 3, "needs data (--data)"),
        (["--imitate", "nobody", "--data", "rows.csv"], 3, "unknown imitation"),
        (["--imitate", "wachter", "--data", "rows.csv", "--distance", "l1"], 2, "--imitate brings its own distance"),
        (["--distance", "l7"], 3, "unknown norm"),
        (["--radius", "0.1"], 2, "belong together"),
        (["-n", "3"], 2, "'-n'"),
        (["--data", "nowhere.csv", "--imitate", "nice"], 3, "nowhere.csv"),
    ],
)
def test_refusals_are_one_line(options, code, message, capsys) -> None:
    assert run(["diagnose", "model.json", *options]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_every_form_that_is_offered_can_be_read() -> None:
    plane = Hyperplane([1.0, -2.0, 0.5], 0.3)
    workshop = Workshop(None, 3, np.eye(3), np.random.default_rng(0))
    specs = {
        "rounded:2": degraded.Rounded, "float32": degraded.Float32, "noisy:0.1": degraded.Noisy,
        "suboptimal:0.3": degraded.Suboptimal,
        "overshoot:0.1": degraded.Overshoot, "random-radius:0.5": degraded.RandomRadius, "nearest-row": degraded.NearestRow,
        "switching:l1,l2": degraded.SwitchingNorm, "flaky:0.1:no flip": silent.Flaky, "one-sided": silent.OneSided,
        "boxed:-1:1": constrained.Boxed, "immutable:0,2": constrained.Immutable, "sparse:1": constrained.Sparse,
        "monotone": constrained.Monotone,
    }  # fmt: skip
    assert {spec.partition(":")[0] for spec in specs} == set(DEGRADATIONS)
    for spec, kind in specs.items():
        assert type(degrade(ModelOracle(plane, "l2"), spec, workshop)) is kind
    assert degrade(ModelOracle(plane, "l2"), " One-Sided : yes ", workshop).side == YES
    with pytest.raises(InvalidInput, match="known are"):
        degrade(ModelOracle(plane, "l2"), "", workshop)
