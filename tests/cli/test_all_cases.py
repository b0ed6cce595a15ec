"""`overexplain audit --all-cases`: a sample is audited, every row is counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from datasets import FEATURES, MODEL, people, store, write_model
from html_reader import read
from overexplain.auditing.audit import audit
from overexplain.auditing.determining.evidence import Evidence
from overexplain.auditing.units import Units
from overexplain.cli import audit as audit_command
from overexplain.cli import dataset
from overexplain.cli.main import run
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.knowledge.engine import Knowledge
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.scale import count
from overexplain.scale.sample import draw

ROWS = people(150) * [1.0, 20.0, 0.1]
QUICK = {"orders": 2, "judged": 20, "maps": 0, "defences": False, "answers": (2, 3, 6)}
OPTIONS = ["--orders", "2", "--judged", "20", "--maps", "0", "--no-defences", "--answers", "2,3,6"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(count, "block_rows", lambda _: 32)
    monkeypatch.setattr(dataset, "MOST_CASES", 60)
    write_model(Path("model.json"))
    store(tmp_path / "people", ROWS, [60, 0, 90], group=40)


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    found = capsys.readouterr()
    return found.out, found.err


def test_every_row_is_counted_in_the_units_of_the_audit(capsys) -> None:
    """Held against the same answers, asked for in Python, and rows in memory."""
    command = ["audit", "model.json", "--data", "people", "--all-cases", "--service", "l1", "--service", "labels"]
    command += ["--fail-on", "determined@6>100%", "--standardize", *OPTIONS]
    assert run([*command, "--json", "--report", "a.md", "--report", "a.html"]) == 0
    out, err = said(capsys)
    report = json.loads(out)
    assert err == ""
    assert (report["subject"]["cases"], report["subject"]["cases_left_out"]) == (60, 90)
    assert "--all-cases" in report["provenance"]["command"]

    sample = draw([ROWS], 3, most=60)
    kept: list[Evidence] = []
    audit(
        LinearModel(MODEL, FEATURES), sample.rows, ["l1", "labels"], standardize=True, drawn_from=sample.units, left_out=90,
        fail_on=["determined@6>100%"], keep=kept.append, **QUICK,
    )  # fmt: skip
    whole = Units.standard(ROWS)
    wanted = []
    for evidence in kept:
        if evidence.service in ("s1", "s2"):  # s3 and so on are there to compare with
            assert np.allclose(evidence.units.scale, whole.scale)
            counts = Knowledge(evidence.log).certify(evidence.units.into(ROWS)).counts()
            determined, undecided = counts["YES"] + counts["NO"], counts["UNDECIDED"]
            wanted.append((evidence.service, evidence.answers, 150, determined, undecided))
    assert [tuple(entry.values()) for entry in report["all_cases"]] == wanted
    assert {entry["service"] for entry in report["all_cases"]} == {"s1", "s2"}
    assert 6 in {entry["answers"] for entry in report["all_cases"]}
    assert any(0 < entry["determined"] < 150 for entry in report["all_cases"])

    begins = "Of all 150 rows of the data, asked ones included, so many are determined by the first order of asking."
    first = report["all_cases"][0]
    assert begins in Path("a.md").read_text()
    assert f": {first['determined']} (" in Path("a.md").read_text()
    assert begins in " ".join(read(Path("a.html").read_text()).text.split())


def test_a_small_file_is_fine_and_the_terminal_says_it(capsys) -> None:
    Path("people/people-002.parquet").rename("people.parquet")
    command = ["audit", "model.json", "--data", "people.parquet", "--no-compare", *OPTIONS]
    assert run([*command, "--all-cases"]) == 0
    out, _ = said(capsys)
    assert "Of all 90 rows of the data, asked ones included, the first order of asking determined" in " ".join(
        out.split()
    )
    assert max(map(len, out.splitlines())) <= 80
    assert run(command) == 0
    assert "Of all" not in said(capsys)[0]


def test_what_makes_no_sense_is_refused_before_any_work(capsys, monkeypatch) -> None:
    from overexplain.scale import cluster

    monkeypatch.setattr(cluster, "CONNECT", 0.3)
    monkeypatch.setattr(audit_command, "audit", None)
    Path("cases.csv").write_text("income,age,debts\n1,2,3\n")
    MulticlassModel(ArgmaxModel(np.eye(3), np.zeros(3)), features=FEATURES).save("three.json")
    for model, data, options, code, message in (
        ("model.json", "people", ["--workers", "2"], 2, "--workers and --scheduler share out the count over all rows"),
        ("model.json", "people", ["--scheduler", "tcp://x:1"], 2, "add --all-cases"),
        ("model.json", "people", ["--all-cases", "--workers", "1", "--scheduler", "x"], 2, "has its own workers"),
        ("model.json", "cases.csv", ["--all-cases"], 3, "cases.csv: a data set that is shared out is a .parquet file"),
        ("three.json", "people", ["--all-cases"], 3, "leave out --all-cases"),
        ("model.json", "people", ["--all-cases", "--scheduler", "nonsense"], 3, "address is tcp://host:port"),
        ("model.json", "people", ["--all-cases", "--scheduler", "tcp://127.0.0.1:1"], 8, "no scheduler answers at"),
    ):
        assert run(["audit", model, "--data", data, *options]) == code, options
        _, err = said(capsys)
        assert message in err
        assert err.startswith("error: ")
        assert err.count("\n") == 1
