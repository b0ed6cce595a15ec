"""`overexplain audit` and `model inspect` of a model of several classes, as users run them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from overexplain.auditing.multiclass_report import MulticlassReport
from overexplain.cli.main import run
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.models.load import load_multiclass
from overexplain.models.multiclass import MulticlassModel

FEATURES = ("age", "income", "<script>alert(1)</script>")
CLASSES = ("low", "middle", "high|*", "top")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    argmax = ArgmaxModel(rng.normal(size=(4, 3)), rng.normal(size=4))
    MulticlassModel(argmax, features=FEATURES, classes=CLASSES).save(place / "model.json")
    header = ",".join(FEATURES)
    np.savetxt(place / "cases.csv", rng.normal(size=(80, 3)), "%.3f", ",", header=header, comments="")
    return place


def audit(folder: Path, *options: str) -> int:
    return run(["audit", str(folder / "model.json"), "--data", str(folder / "cases.csv"), *options])


def test_the_terminal_and_every_kind_of_report_say_the_same(folder: Path, tmp_path: Path, capsys) -> None:
    names = [tmp_path / f"audit.{ending}" for ending in ("html", "md", "json")]
    assert audit(folder, "--seed", "3", *(word for name in names for word in ("--report", str(name)))) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("report: "))
    page, text, data = (name.read_text(encoding="utf-8") for name in names)
    report = MulticlassReport.from_json(data)
    assert report.audited.minimum == 4 <= report.audited.explanations <= 6
    assert report.subject.classes == CLASSES
    title = out.partition(" give this model away")[0]
    assert " explanations and " in title
    assert title in page
    assert title in text
    assert report.provenance.command == "overexplain audit model.json --data cases.csv --seed 3"
    for written in (page, text, data):
        assert str(folder) not in written
        assert str(tmp_path) not in written
    rows = [token.content for token in MarkdownIt("commonmark").enable("table").parse(text) if token.type == "inline"]
    assert "sum of changes (l1)" in rows


def test_the_page_is_one_file_that_allows_itself_one_style_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    name = tmp_path / "audit.html"
    assert audit(folder, "--no-compare", "--report", str(name)) == 0
    page = name.read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "http" not in page.replace("http-equiv", "")
    assert "<script>alert" not in page
    assert "src=" not in page
    assert len(page) < 100_000
    embedded = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', page, re.S)[1]
    assert MulticlassReport.from_json(embedded).subject.features == FEATURES


def test_json_on_the_terminal(folder: Path, capsys) -> None:
    assert audit(folder, "--json", "--service", "l1", "--no-compare", "--standardize") == 0
    report = MulticlassReport.from_json(capsys.readouterr().out)
    assert [found.spec for found in report.services] == ["l1"]
    assert report.subject.units == "standard deviations"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-on", "determined@200>60%"], "--fail-on"),
        (["--maps", "2", "--orders", "3"], "--maps, --orders"),
        (["--threshold", "0.4"], "--threshold"),
        (["--report", "x.xml"], ".html"),
        (["--service", "labels"], "exact explanations"),
    ],
)
def test_options_of_the_other_audit_are_refused_in_one_line(
    folder: Path, options: list[str], said: str, capsys
) -> None:
    assert audit(folder, *options) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(err.strip().splitlines()) <= 3
    assert "Traceback" not in err


def test_proofs_and_policies_are_refused_too(folder: Path, tmp_path: Path, capsys) -> None:
    assert audit(folder, "--proofs", str(tmp_path / "proofs")) == 3
    assert "--proofs" in capsys.readouterr().err
    policy = tmp_path / "policy.toml"
    policy.write_text('[audit]\nservices = ["l2"]\ntarget = "60%"\n')
    assert audit(folder, "--policy", str(policy)) == 3
    assert "--target" in capsys.readouterr().err


def test_inspect_shows_and_saves(folder: Path, tmp_path: Path, capsys) -> None:
    saved = tmp_path / "again.json"
    assert run(["model", "inspect", str(folder / "model.json"), "-o", str(saved)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "A linear model of 4 classes and 3 features." in out
    assert "middle" in out
    assert load_multiclass(saved).argmax == load_multiclass(folder / "model.json").argmax
    assert run(["model", "inspect", str(folder / "model.json"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["model"]
    assert (found["kind"], found["dimension"], found["classes"]) == ("json", 3, 4)
    assert load_multiclass(found["coefficient_file"]).argmax == load_multiclass(saved).argmax


def test_a_file_that_is_no_model_at_all_keeps_its_first_error(tmp_path: Path, capsys) -> None:
    other = tmp_path / "model.json"
    other.write_text('{"weights": 3}')
    assert run(["model", "inspect", str(other)]) == 3
    first = capsys.readouterr().err
    (tmp_path / "cases.csv").write_text("a\n" + "1\n" * 20)
    assert run(["audit", str(other), "--data", str(tmp_path / "cases.csv")]) == 3
    assert capsys.readouterr().err.split(":", 1)[0] == first.split(":", 1)[0]
