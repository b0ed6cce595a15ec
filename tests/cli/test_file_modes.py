"""Who may read what commands write: the owner alone where it holds rows, and whoever could before where it takes a file's place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.app import service_app

FEATURES = ["age", "income"]
PLANE = Hyperplane([1.0, -2.0], 0.5)


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    oracle, points = ModelOracle(PLANE, "l1"), np.random.default_rng(0).normal(size=(30, 2))
    log = QueryLog(FEATURES, Mechanism("l1"))
    log.add_label(points, oracle.classify(points))
    log.add_explanation(points[:1], oracle.explain(points[:1]))
    log.save("log.jsonl")
    Path("cases.csv").write_text("age,income\n" + "".join(f"{x},{y}\n" for x, y in points.tolist()))
    Path("model.json").write_text(json.dumps({"features": FEATURES, "coefficients": [1.0, -2.0], "intercept": -0.5}))
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: str | Path) -> int:
    return Path(path).stat().st_mode & 0o7777


CERTIFY = ["certify", "log.jsonl", "cases.csv", "-o", "verdicts.csv", "--proofs", "proofs.jsonl"]
AUDIT = ["audit", "model.json", "--data", "cases.csv", "--service", "l1", "--orders", "2", "--maps", "0"]
AUDIT += ["--no-compare", "--no-defences"]
EXTRACT = ["extract", "model.json", "--distance", "l1", "--log", "answers.jsonl", "-o", "found.json"]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (CERTIFY, ["verdicts.csv", "proofs.jsonl"]),
        (EXTRACT, ["answers.jsonl"]),
        *((["log", "convert", "log.jsonl", name], [name]) for name in ("c.jsonl", "c.csv", "c.parquet", "c.json", "c.sqlite")),
        (["log", "merge", "log.jsonl", "log.jsonl", "-o", "all.jsonl"], ["all.jsonl"]),
    ],
)  # fmt: skip
def test_what_holds_rows_is_for_its_owner(arguments, written, capsys) -> None:
    assert run(arguments) == 0
    assert {name: oct(mode(name)) for name in written} == dict.fromkeys(written, "0o600")


def test_every_file_of_proofs_of_an_audit_is_for_its_owner(capsys) -> None:
    assert run([*AUDIT, "--proofs", "shown"]) == 0
    files = [path for path in Path("shown").iterdir() if path.name != "audit.json"]  # which holds no row
    assert {path.suffix for path in files} == {".jsonl", ".csv"}
    assert {mode(path) for path in files} == {0o600}


def test_verdicts_on_a_data_set_are_for_their_owner(capsys) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    Path("cases").mkdir()
    columns = np.random.default_rng(1).normal(size=(2, 50))
    parquet.write_table(arrow.table(dict(zip(FEATURES, columns, strict=True))), "cases/1.parquet")
    assert run(["certify", "log.jsonl", "cases", "-o", "verdicts", "--proofs", "proofs"]) == 0
    files = [*Path("verdicts").glob("part*"), *Path("proofs").glob("part*")]
    assert {path.suffix for path in files} == {".parquet", ".jsonl"}
    assert {mode(path) for path in files} == {0o600}


def test_the_log_of_a_service_is_for_its_owner() -> None:
    service_app(ModelOracle(PLANE, "l1"), log="answers.jsonl").state.close()
    assert mode("answers.jsonl") == 0o600


def test_what_holds_no_row_is_made_as_the_umask_says(capsys) -> None:
    assert run(EXTRACT) == 0
    assert mode("found.json") == 0o644


@pytest.mark.parametrize("was", [0o600, 0o640, 0o644])
@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet", "log.json"])
def test_a_log_that_is_replaced_keeps_its_mode(name, was) -> None:
    log = QueryLog.load("log.jsonl")
    Path(name).touch()
    Path(name).chmod(was)
    log.save(name)
    assert Path(name).stat().st_size
    assert oct(mode(name)) == oct(was)


def test_a_report_that_is_replaced_keeps_its_mode(capsys) -> None:
    for name in ("audit.html", "audit.json"):
        Path(name).touch(0o600)
    assert run([*AUDIT, "--report", "audit.html", "--report", "audit.json"]) == 0
    assert (mode("audit.html"), mode("audit.json")) == (0o600, 0o600)


def test_a_folder_that_may_not_be_written_is_named_and_not_a_hidden_file(capsys, monkeypatch) -> None:
    def refused(path, flags, *mode, really=os.open):
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, flags, *mode)

    monkeypatch.setattr("overexplain._files.os.open", refused)
    assert run(["certify", "log.jsonl", "cases.csv", "-o", "verdicts.csv"]) == 3
    assert capsys.readouterr().err == "error: verdicts.csv: Permission denied\n"
