"""`overexplain audit` and `model inspect` of a model of several classes, as users run them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt
from onnx import TensorProto, helper

from malicious_onnx import model as onnx_model
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


def onnx_file(folder: Path) -> Path:
    """Three classes over three inputs, as an exporter writes them."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 1]) for name in FEATURES]
    coefficients = np.random.default_rng(1).normal(size=9).tolist()
    nodes = [
        helper.make_node("Concat", FEATURES, ["x"], axis=1),
        helper.make_node(
            "LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", coefficients=coefficients,
            intercepts=[0.0, 0.25, -0.5], classlabels_strings=["low", "middle", "high"], post_transform="SOFTMAX",
        ),
    ]  # fmt: skip
    label = helper.make_tensor_value_info("label", TensorProto.STRING, [None])
    path = folder / "model.onnx"
    path.write_bytes(onnx_model(nodes, inputs=inputs, outputs=[label]).SerializeToString())
    return path


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
        (
            ["--service", "lp:1.5", "--no-compare"],
            "'lp:1.5' cannot be audited: Lp(q=1.5): nearest points of a class are",
        ),
        (["--service", "l2", "--service", "lp:3"], "'lp:3.0' cannot be audited"),
        (["--no-defences"], "leave out --no-defences"),
        (["--defences", "--no-compare"], "leave out --defences"),
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


def test_an_onnx_file_is_audited_and_shown(folder: Path, tmp_path: Path, capsys) -> None:
    path = str(onnx_file(tmp_path))
    assert run(["audit", path, "--data", str(folder / "cases.csv"), "--no-compare", "--json"]) == 0
    report = MulticlassReport.from_json(capsys.readouterr().out)
    assert (report.subject.classes, report.subject.features) == (("low", "middle", "high"), FEATURES)
    assert report.audited.explanations == report.audited.minimum == 3
    assert run(["model", "inspect", path]) == 0
    out = capsys.readouterr().out
    assert "A linear model of 3 classes and 3 features." in out
    words = " ".join(out.split())
    assert "kind ONNX file" in words
    assert "checked compared with ONNX's reference implementation on 64 points" in words
    assert "note stored in float32" in words


def test_a_file_that_is_no_model_at_all_keeps_its_first_error(tmp_path: Path, capsys) -> None:
    other = tmp_path / "model.json"
    other.write_text('{"weights": 3}')
    assert run(["model", "inspect", str(other)]) == 3
    first = capsys.readouterr().err
    (tmp_path / "cases.csv").write_text("a\n" + "1\n" * 20)
    assert run(["audit", str(other), "--data", str(tmp_path / "cases.csv")]) == 3
    assert capsys.readouterr().err.split(":", 1)[0] == first.split(":", 1)[0]


def test_a_distance_that_cannot_be_computed_is_refused_before_the_cases_are_read(folder: Path, capsys) -> None:
    nowhere = str(folder / "nowhere.csv")
    assert run(["audit", str(folder / "model.json"), "--data", nowhere, "--service", "lp:1.5"]) == 3
    assert "'lp:1.5' cannot be audited" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["extract", "MODEL", "--distance", "l2"],
        ["diagnose", "MODEL", "--distance", "l2"],
        ["serve", "MODEL", "--distance", "l2"],
        ["monitor", "log.oxlog", "--model", "MODEL"],
    ],
    ids=lambda command: command[0],
)
def test_commands_for_yes_and_no_say_which_read_several_classes(folder: Path, command: list[str], capsys) -> None:
    model = str(folder / "model.json")
    assert run([model if word == "MODEL" else word for word in command]) == 3
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "has 4 classes: this command is for models of two classes (Yes and No); `overexplain audit` and" in err
    assert "load_multiclass" not in err


def test_inspect_with_a_threshold_says_that_there_is_none(folder: Path, capsys) -> None:
    assert run(["model", "inspect", str(folder / "model.json"), "--threshold", "0.7"]) == 3
    assert "has 4 classes: --threshold is for models of Yes and No" in capsys.readouterr().err


SCORE = {"class": "no", "coefficients": {"age": 1.0, "income": -0.5}, "intercept": 0.0}


def test_scores_of_two_classes_are_audited_and_shown(tmp_path: Path, capsys) -> None:
    other = {"class": "yes", "coefficients": {"age": -1.0, "income": 1.0}, "intercept": 0.2}
    path, cases = tmp_path / "two.json", tmp_path / "cases.csv"
    path.write_text(json.dumps({"scores": [SCORE, other]}))
    np.savetxt(cases, np.random.default_rng(0).normal(size=(30, 2)), "%.3f", ",", header="age,income", comments="")
    assert run(["audit", str(path), "--data", str(cases), "--no-compare", "--json"]) == 0
    report = MulticlassReport.from_json(capsys.readouterr().out)
    assert (report.subject.classes, report.audited.explanations) == (("no", "yes"), 1)
    assert report.audited.cases.rebuilt == 1.0
    assert run(["model", "inspect", str(path)]) == 0
    assert "A linear model of 2 classes and 2 features." in capsys.readouterr().out
    assert run(["extract", str(path), "--distance", "l2"]) == 3
    assert "second score minus the first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([SCORE], "at least two classes, got 1"),
        ([SCORE, {"class": "yes", "intercept": 0.0}], "scores[1]: the key 'coefficients' is missing"),
    ],
)
def test_a_broken_file_of_scores_is_told_what_is_broken(tmp_path: Path, scores: list, said: str, capsys) -> None:
    path = tmp_path / "broken.json"
    path.write_text(json.dumps({"scores": scores}))
    for command in (
        ["audit", str(path), "--data", str(tmp_path / "cases.csv")],
        ["model", "inspect", str(path)],
        ["extract", str(path), "--distance", "l2"],
    ):
        assert run(command) == 3
        err = capsys.readouterr().err
        assert said in err
        assert "load_multiclass" not in err


def test_a_threshold_that_a_model_of_yes_and_no_cannot_have_keeps_its_own_message(tmp_path: Path, capsys) -> None:
    path = tmp_path / "plain.json"
    path.write_text('{"coefficients": [1.0], "intercept": 0}')
    for command in (["audit", str(path), "--data", "cases.csv"], ["model", "inspect", str(path)]):
        assert run([*command, "--threshold", "0.7"]) == 3
        err = capsys.readouterr().err
        assert "asks for probabilities" in err
        assert "classes" not in err
