"""`log check` and `certify` warn where answers moved by whole numbers only, although their terms allow any number."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.log.querylog import QueryLog
from overexplain.oracles.constrained import OneHot
from overexplain.oracles.exact import ModelOracle

FEATURES = ("income", "age", "has_job")
MODEL = ModelOracle(Hyperplane([1.0, 0.5, 2.0], 30.25), "l1")
SERVICE = OneHot(MODEL, [], [1, 2], [0, 18, 0], [9, 99, 1], change=[1, 2])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers under the service's own terms and under those of R^p, and one case to judge."""
    monkeypatch.chdir(tmp_path)
    rows = SERVICE.domain.sample(3, 60)  # type: ignore[union-attr]
    rows = rows[MODEL.classify(rows) == -1]
    told = SERVICE.explain(rows)
    for name, terms in (("honest", SERVICE.mechanism), ("said", replace(SERVICE.mechanism, domain=None))):  # type: ignore[type-var]
        log = QueryLog(FEATURES, terms)
        log.add_explanation(rows, told, label=MODEL.classify(rows))
        log.save(f"{name}.jsonl")
    Path("points.csv").write_text("income,age,has_job\n1,20,0\n")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_log_check_warns_by_name_and_ends_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "log", "check", "--no-fit", "said.jsonl", "honest.jsonl", "--json")
    assert code == 0
    assert [entry["file"] for entry in json.loads(out)["logs"]] == ["said.jsonl", "honest.jsonl"]
    moved = np.count_nonzero(QueryLog.load("said.jsonl").points != QueryLog.load("said.jsonl").explanations)
    assert err == (
        f"warning: said.jsonl: answers changed 'age', 'has_job' by whole numbers only ({moved} moves), but the terms say that any "
        "number is possible: if the service can only propose whole numbers, say so (Mechanism(domain=...)); what is concluded "
        "from its answers is false otherwise\n"
    )


def test_the_terms_of_a_command_line_are_looked_at_like_those_of_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    log = QueryLog.load("said.jsonl")
    bare = QueryLog(FEATURES)
    bare.add_explanation(log.points, log.explanations, label=log.labels)
    bare.save("bare.csv")
    assert said(capsys, "log", "check", "--no-fit", "bare.csv")[2] == ""
    assert (
        "warning: bare.csv: answers changed 'age'"
        in said(capsys, "log", "check", "--no-fit", "--distance", "l1", "bare.csv")[2]
    )
    assert "warning" not in said(capsys, "log", "check", "--no-fit", "--slack", "any", "bare.csv")[2]


def test_certify_warns_before_it_says_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "certify", "said.jsonl", "points.csv")
    assert err.startswith("warning: said.jsonl: answers changed 'age', 'has_job' by whole numbers only (")
    assert err.count("warning: ") == 1
    assert code in (0, 4)  # what is false may also contradict itself
    assert "warning" not in out
    _, _, err = said(capsys, "certify", "honest.jsonl", "points.csv")
    assert "warning" not in err


def test_a_data_set_is_warned_about_once(capsys: pytest.CaptureFixture[str]) -> None:
    pd = pytest.importorskip("pandas")
    Path("points").mkdir()
    pd.DataFrame({"income": [1.0], "age": [20.0], "has_job": [0.0]}).to_parquet("points/part.parquet")
    assert said(capsys, "certify", "said.jsonl", "points", "--output", "verdicts")[2].count("warning: said.jsonl") == 1


def test_log_check_says_from_what_answers_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "log", "check", "--no-fit", "honest.jsonl")
    assert (code, err) == (0, "")
    assert "l1, 2 whole numbers, in a box" in out
