"""`overexplain demo`, run as users run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from overexplain.cli.demo import services, train
from overexplain.cli.main import run

PLAIN = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS")}


@pytest.fixture(scope="module")
def piped() -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "overexplain", "demo"], capture_output=True, text=True, check=False, env=PLAIN
    )


def test_piped_it_is_plain_text_of_80_columns_and_nothing_on_stderr(piped) -> None:
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout.isascii()
    assert "\x1b" not in piped.stdout
    assert all(len(line) <= 80 and line == line.rstrip() for line in piped.stdout.splitlines())


def test_it_says_what_was_done_what_was_found_and_what_is_next(piped) -> None:
    lines = piped.stdout.splitlines()
    assert lines[0].startswith("The model: a logistic regression on 30 features")
    assert "1 to 31 answers give this model away, depending on the service." in lines
    assert lines[-1].startswith("next: overexplain extract")
    rows = [line for line in lines if line.endswith(" 100 %")]
    assert len(rows) == 12


def test_the_table_has_the_theorems_counts(capsys) -> None:
    assert run(["demo", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    report = json.loads(out)
    assert report["model"] == {
        "data": "breast_cancer",
        "features": 30,
        "seed": 0,
        "train_rows": 398,
        "heldout_rows": 171,
    }
    rows = report["rows"]
    assert [row["answers"] for row in rows] == [1, 1, 30, 30, 30, 1, 28, 30, 30, 1, 31, 2]
    assert [row["proven_minimum"] for row in rows] == [row["answers"] for row in rows]
    assert {row["labels"] for row in rows} == {1}
    assert [row["paper_answers"] for row in rows] == [1, 1, 31, 31, 31, 1, 31, 31, 31, 1, None, None]
    assert [row["paper_labels"] for row in rows] == [1, 1, 1, 1, 1, 1, 1, 31, 31, 1, None, None]
    assert {row["agreement"] for row in rows} == {1.0}
    assert len({row["constant_agreement"] for row in rows}) == 1
    assert 0.5 <= rows[0]["constant_agreement"] < 0.7
    assert max(row["angle_error"] for row in rows) < 1e-11


def test_a_seed_repeats_the_output_and_another_changes_it(capsys) -> None:
    outputs = []
    for seed in ("7", "7", "8"):
        assert run(["demo", "--json", "--seed", seed]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


def test_groups_are_the_same_measurement_three_times() -> None:
    example = train(0)
    groups = next(s.mechanism.distance.groups for s in services(example.train) if s.name and "measurement" in s.name)
    names = example.model.features
    for group in groups:
        mean, error, worst = (names[i] for i in group)
        assert mean.removeprefix("mean ") == error.removesuffix(" error") == worst.removeprefix("worst ")


def test_it_takes_well_under_20_seconds() -> None:
    before = os.times()
    subprocess.run([sys.executable, "-m", "overexplain", "demo"], capture_output=True, check=True)
    after = os.times()
    # Of the processor, imports included: what else the machine does must not matter.
    assert after.children_user + after.children_system - before.children_user - before.children_system < 10
