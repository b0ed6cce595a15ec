"""`overexplain audit` as users run it: files in, reports and proofs out, exit codes."""

from __future__ import annotations

import json
import shlex
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from html_reader import read
from overexplain.auditing.audit_report import AuditReport, Curve
from overexplain.auditing.determining.curves import determined_curve
from overexplain.cli.main import run

NAMES = ("age", "income", "debts", "years", "late")
QUICK = ["--orders", "3", "--judged", "60", "--maps", "1", "--no-compare", "--no-defences"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("audit")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 5)).round(3)
    (place / "model.json").write_text(
        json.dumps({"coefficients": dict(zip(NAMES, [0.7, -1.4, 0.3, 0.9, -0.2], strict=True)), "intercept": -0.1})
    )
    np.savetxt(place / "cases.csv", rows, "%.3f", ",", header=",".join(NAMES), comments="")
    return place


def audit(folder: Path, *options: str, quick: bool = True) -> int:
    return run(
        ["audit", str(folder / "model.json"), "--data", str(folder / "cases.csv"), *options, *(QUICK if quick else [])]
    )


def test_every_kind_of_report_is_written_and_the_terminal_gets_the_same(folder, tmp_path, capsys) -> None:
    names = [tmp_path / f"audit.{ending}" for ending in ("html", "md", "json", "xml")]
    options = [word for name in names for word in ("--report", str(name))]
    assert audit(folder, "--service", "l1", *options) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith(("report: ", "check: ")))
    report = AuditReport.from_json(names[2].read_bytes())
    assert report.known[0].explanations == report.known[0].minimum == 5
    assert "Five answers give this model away" in out
    assert "Five answers give this model away" in names[0].read_text(encoding="utf-8")
    assert "Five answers give this model away" in names[1].read_text(encoding="utf-8")
    assert ElementTree.fromstring(names[3].read_text(encoding="utf-8")).tag in ("testsuites", "testsuite")
    assert all(f"report: {name}" in out for name in names)
    for name in names:  # nothing of this machine, no case of the data
        text = name.read_text(encoding="utf-8")
        assert str(folder) not in text
        assert str(tmp_path) not in text


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(folder, tmp_path) -> None:
    texts = []
    for i, seed in enumerate(("7", "7", "8")):
        reports = [word for ending in ("html", "json") for word in ("--report", str(tmp_path / f"{i}.{ending}"))]
        assert audit(folder, "--seed", seed, *reports) == 0
        texts.append([(tmp_path / f"{i}.{ending}").read_bytes() for ending in ("html", "json")])
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_more_answers_than_there_are_cases_are_not_passed_over_in_silence(folder, capsys) -> None:
    assert audit(folder, "--answers", "1,5,5000", "--json") == 0
    out, err = capsys.readouterr()
    curves = AuditReport.from_json(out).curves
    assert curves[0].answers == (1, 5)
    assert (
        err == f"note: 5,000 answers were not looked at: of this data at most {curves[0].askable} cases can be asked\n"
    )


def test_json_is_one_object_and_nothing_else(folder, capsys) -> None:
    assert audit(folder, "--json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    report = AuditReport.from_json(out)
    assert report.subject.features == NAMES
    assert report.provenance.command is not None
    assert str(folder) not in out


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("determined@5>50%", 1),
        ("determined@1>99%", 0),
        ("answers-to-extract<6", 1),
        ("answers-to-extract<5", 0),
        ("quota<200", 1),
    ],
)
def test_a_gate_that_fails_is_exit_code_1_and_is_said(folder, capsys, tmp_path, gate, code) -> None:
    assert audit(folder, "--fail-on", gate, "--report", str(tmp_path / "a.xml")) == code
    out = capsys.readouterr().out
    assert ("GATE FAILED" in out) == (code == 1)
    assert ("exit code 1" in out) == (code == 1)
    suite = ElementTree.fromstring((tmp_path / "a.xml").read_text(encoding="utf-8"))
    assert len(suite.findall(".//failure")) == code


def test_a_policy_file_says_what_the_command_line_does_not(folder, tmp_path, capsys) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[audit]\nservices = ["l2"]\nfail_on = ["answers-to-extract<3"]\nseed = 5\norders = 2\njudged = 40\n'
        "maps = 0\ncompare = false\ndefences = false\n"
    )
    assert audit(folder, "--policy", str(policy), "--json", quick=False) == 1
    assert AuditReport.from_json(capsys.readouterr().out).provenance.seed == 5
    assert audit(folder, "--policy", str(policy), "--service", "l1", "--seed", "6", "--json", quick=False) == 0
    report = AuditReport.from_json(capsys.readouterr().out)
    assert (report.provenance.seed, [service.spec for service in report.services]) == (6, ["l1"])
    assert report.maps == ()


def test_proofs_rederive_the_shares_of_the_report(folder, tmp_path, capsys) -> None:
    place, report = tmp_path / "proofs", tmp_path / "audit.json"
    options = ["--service", "l1", "--service", "labels", "--proofs", str(place), "--report", str(report)]
    assert audit(folder, *options, "--fail-on", "determined@4>99%") in (0, 1)
    capsys.readouterr()
    assert run(["verify", str(place), "--report", str(report), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    told = AuditReport.from_json(report.read_bytes())
    assert found["hold"] is True
    figures = {(f["service"], f["answers"]): f for f in found["figures"]}
    assert {("s1", told.headline), ("s1", 4), ("s2", 4)} <= set(figures)
    for (service, answers), figure in figures.items():
        curve = told.curve_of(service)
        assert curve is not None
        assert figure["proved"] / figure["cases"] == curve.first[curve.answers.index(answers)]
    assert run(["verify", str(place)]) == 0
    assert "figures follow" in capsys.readouterr().out


def test_a_changed_report_or_proof_is_exit_code_7(folder, tmp_path, capsys) -> None:
    place = tmp_path / "proofs"
    assert audit(folder, "--service", "l1", "--proofs", str(place)) == 0
    entries = json.loads((place / "audit.json").read_text())
    entries["curves"][0]["first"] = [share * 0.9 for share in entries["curves"][0]["first"]]
    other = tmp_path / "other.json"
    other.write_text(json.dumps(entries))
    assert run(["verify", str(place), "--report", str(other)]) == 7
    assert "the report says" in capsys.readouterr().err
    proofs = next(place.glob("*.proofs.jsonl"))
    lines = proofs.read_text().splitlines()
    proofs.write_text("\n".join(lines[1:]) + "\n")
    assert run(["verify", str(place)]) == 7
    assert "no proof" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--service", "l0"], 3, "l0"),
        (["--service", "l1; polished:2"], 3, "polished"),
        (["--fail-on", "safety>3"], 3, "safety"),
        (["--target", "140%"], 3, "140%"),
        (["--report", "audit.pdf"], 3, ".html"),
        (["--answers", "5,x"], 2, "5,x"),
        (["--answers", "5,4"], 3, "rise"),
        (["--orders", "0"], 2, "orders"),
        (["--policy", "nowhere.toml"], 3, "nowhere.toml"),
    ],
)
def test_refusals_are_one_line(folder, capsys, options, code, said) -> None:
    assert audit(folder, *options, quick=False) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


def test_files_that_are_read_are_not_written_over(folder, tmp_path, capsys) -> None:
    before = (folder / "model.json").read_text()
    assert audit(folder, "--report", str(folder / "model.json")) == 3
    assert (folder / "model.json").read_text() == before
    (tmp_path / "something").write_text("mine")
    assert audit(folder, "--proofs", str(tmp_path)) == 3
    assert "new or empty folder" in capsys.readouterr().err


def test_too_few_cases_and_odd_ones_are_refused_with_the_place(folder, tmp_path, capsys) -> None:
    lines = (folder / "cases.csv").read_text().splitlines()
    few, odd = tmp_path / "few.csv", tmp_path / "odd.csv"
    few.write_text("\n".join(lines[:5]) + "\n")
    odd.write_text("\n".join([*lines[:20], "1,2,nan,4,5"]) + "\n")
    for path, said in ((few, "at least 10"), (odd, "debts")):
        assert run(["audit", str(folder / "model.json"), "--data", str(path)]) == 3
        assert said in capsys.readouterr().err


def test_evidence_about_something_else_is_exit_code_7(folder, tmp_path, capsys) -> None:
    place = tmp_path / "proofs"
    options = ["--service", "l1", "--service", "l1; robust=l2:0.3", "--proofs", str(place), "--answers", "1,2,3,4,5,20"]
    assert audit(folder, *options, "--fail-on", "determined@2>99%", "--fail-on", "determined@4>99%") in (0, 1)
    assert run(["verify", str(place)]) == 0
    capsys.readouterr()

    def changed(name: str) -> Path:
        other = tmp_path / name
        shutil.copytree(place, other)
        return other

    def copied(other: Path, source: str, target: str) -> None:
        for ending in ("log.jsonl", "cases.csv", "verdicts.csv", "proofs.jsonl"):
            shutil.copy(other / f"{source}.{ending}", other / f"{target}.{ending}")

    shorter = changed("shorter")
    copied(shorter, "s1-after-4", "s1-after-2")  # four answers in the place of two
    assert run(["verify", str(shorter)]) == 7
    terms = changed("terms")
    copied(terms, "s2-after-4", "s1-after-4")  # a robust service in the place of a plain one
    assert run(["verify", str(terms)]) == 7
    gone = changed("gone")
    for path in gone.glob("s1-after-4.*"):
        path.unlink()
    assert run(["verify", str(gone)]) == 7
    assert "which the report quotes" in capsys.readouterr().err
    silent = changed("silent")
    verdicts = silent / "s1-after-4.verdicts.csv"
    verdicts.write_text(verdicts.read_text().replace("YES", "UNDECIDED").replace(",NO\n", ",UNDECIDED\n"))
    (silent / "s1-after-4.proofs.jsonl").write_text(
        "\n".join(line for line in (silent / "s1-after-4.proofs.jsonl").read_text().splitlines() if "models" in line)
        + "\n"
    )
    assert run(["verify", str(silent)]) == 7
    lower = json.loads((place / "audit.json").read_text())
    lower["curves"][0]["highest"] = [0.0] * len(lower["curves"][0]["highest"])
    (tmp_path / "lower.json").write_text(json.dumps(lower))
    assert run(["verify", str(place), "--report", str(tmp_path / "lower.json")]) == 7


@pytest.mark.parametrize("service", ["l1", "l2"])
def test_a_plane_through_the_origin_costs_an_attacker_nothing_extra(folder, tmp_path, capsys, service) -> None:
    """The usual first question, 0, lies on it: whoever begins with a case instead needs no more than the theorem says."""
    coefficients = dict(zip(NAMES, [0.7, -1.4, 0.3, 0.9, -0.2], strict=True))
    (tmp_path / "model.json").write_text(json.dumps({"coefficients": coefficients, "intercept": 0.0}))
    options = ["--data", str(folder / "cases.csv"), "--service", service, "--fail-on", "answers-to-extract<6", *QUICK]
    assert run(["audit", str(tmp_path / "model.json"), *options, "--json"]) == 1
    known = AuditReport.from_json(capsys.readouterr().out).known[0]
    assert (known.explanations, known.labels) == (known.minimum, 1)


def test_the_command_that_checks_proofs_is_one_that_works(folder, tmp_path, capsys) -> None:
    assert audit(folder, "--proofs", str(tmp_path / "proofs")) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("check:")]
    assert run(shlex.split(line)[2:]) == 0


def test_a_model_that_names_no_features_says_how_columns_are_taken(folder, tmp_path, capsys) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"coefficients": [0.7, -1.4, 0.3, 0.9, -0.2], "intercept": -0.1}))
    assert run(["audit", str(tmp_path / "model.json"), "--data", str(folder / "cases.csv"), *QUICK]) == 0
    said = f"note: the model names no features: the columns of {folder / 'cases.csv'} are taken in their order\n"
    assert capsys.readouterr().err == said


# Cases that a limit left unsettled.


@pytest.fixture
def unsettled(monkeypatch) -> None:
    """A limit that leaves half of what is determined unsettled."""

    def half(*arguments, **options) -> Curve:
        curve = determined_curve(*arguments, **options)
        names = ("median", "low", "high", "highest", "first")
        less = {name: tuple(share / 2 for share in getattr(curve, name)) for name in names}
        return replace(curve, **less, undecided=0.5, at_most=curve.highest)

    monkeypatch.setattr("overexplain.auditing.audit.determined_curve", half)


def test_shares_that_are_bounds_are_written_as_bounds_everywhere(folder, unsettled, tmp_path, capsys) -> None:
    names = {ending: tmp_path / f"audit.{ending}" for ending in ("html", "md", "json", "xml")}
    options = [word for name in names.values() for word in ("--report", str(name))]
    gates = ["--fail-on", "determined@50>60%", "--fail-on", "quota<40", "--fail-on", "determined@50>40%"]
    assert audit(folder, "--service", "l1", "--service", "l1; robust=l2:0.1", *options, *gates) == 1
    out = capsys.readouterr().out
    curve = AuditReport.from_json(names["json"].read_bytes()).curves[0]
    assert curve.median[-1] == 0.5

    rows = [line.split() for line in out.splitlines() if "audited" in line]
    assert [row[-3:] for row in rows] == [[">=", "50", "%"]] * 2
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith(("report: ", "check: ")))
    assert "determined@50: at most 60 % allowed, cannot be told: 50 to 100 %" in out
    assert "determined@50: at most 40 % allowed, at least 50 % found" in out
    assert "quota: at least 40 required, cannot be told:" in out
    assert "quota can be suggested" in " ".join(out.split())
    for text in (out, names["md"].read_text("utf-8"), names["html"].read_text("utf-8")):
        assert "uggested quota" not in text
        assert "Cap explained answers" not in text

    cells = [
        row.split("|")[2].strip() for row in names["md"].read_text("utf-8").splitlines() if row.startswith("| 75 |")
    ]
    assert len(cells) == 2
    assert all(cell.startswith("≥ 50 %") for cell in cells)
    page = read(names["html"].read_text("utf-8"))
    tiles = {tile.get("data-name"): tile for tile in page.all("li") if "data-name" in tile.attributes}
    assert tiles["quota"].get("data-value") == ""
    assert next(tile for name, tile in tiles.items() if name.startswith("determined")).text.startswith(("≥", "0–"))
    for cell in [cell for id in ("t-curve", "t-pooled") for cell in page.one("table", id=id).all("td")]:
        if float(cell.get("data-at-most")) > float(cell.get("data-value")):
            assert cell.text.startswith(("≥ ", "0–"))
    assert {shape.get("data-unsettled") for shape in page.all("polygon", class_="open")} == {
        "s1",
        "s2",
        "all",
        "denied",
    }
    assert not page.all("circle", class_="ring")
    junit = ElementTree.fromstring(names["xml"].read_text("utf-8"))
    messages = [failure.get("message", "") for failure in junit.iter("failure")]
    assert [("Cannot be told" in text, "Found" in text) for text in messages] == [
        (True, False),
        (True, False),
        (False, True),
    ]


def test_a_gate_passes_where_unsettled_cases_cannot_change_it(folder, unsettled, capsys) -> None:
    assert audit(folder, "--service", "l1", "--fail-on", "determined@1>100%", "--fail-on", "quota<0") == 0
    assert "allowed, at most 8 % found" in capsys.readouterr().out


# Models with categories: what valid cases need.


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Path:
    """Amounts, whole numbers, a flag and two columns of categories: 11 features, of which valid cases differ in 9."""
    place = tmp_path_factory.mktemp("mixed")
    rng = np.random.default_rng(3)
    homes, jobs = ("own", "rent", "other"), ("none", "skilled", "manager", "own business")
    columns = (
        np.round(rng.lognormal(7.6, 0.5, 200), 2), rng.integers(5, 400, 200) * 100, rng.choice([6, 12, 24, 36], 200),
        rng.integers(0, 2, 200), rng.choice(homes, 200), rng.choice(jobs, 200),
    )  # fmt: skip
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    (place / "cases.csv").write_text("\n".join(["income,amount,months,late,home,job", *lines]) + "\n")
    weights = {"income": 0.0009, "amount": -0.00006, "months": -0.02, "late": -1.1}
    weights |= {f"home={name}": w for name, w in zip(homes, (0.6, -0.2, -0.3), strict=True)}
    weights |= {f"job={name}": w for name, w in zip(jobs, (-0.7, 0.2, 0.4, 0.1), strict=True)}
    raw: list[dict] = [{"name": name} for name in ("income", "amount", "months", "late")]
    raw += [{"name": "home", "categories": homes}, {"name": "job", "categories": jobs}]
    model = {"coefficients": weights, "intercept": -0.5, "columns": raw}
    (place / "model.json").write_text(json.dumps(model))
    # A category is what is changed most: answers leave the space of valid cases.
    (place / "other.json").write_text(json.dumps(model | {"coefficients": weights | {"home=own": 2.0}}))
    return place


def test_beside_the_planes_number_stands_how_many_answers_valid_cases_need(mixed, tmp_path, capsys) -> None:
    names = {ending: tmp_path / f"audit.{ending}" for ending in ("html", "md", "json")}
    options = [word for name in names.values() for word in ("--report", str(name))]
    gates = ["--fail-on", "answers-to-extract<10", "--fail-on", "answers-to-extract<9"]
    assert audit(mixed, "--service", "l1", *options, *gates) == 1
    out = " ".join(capsys.readouterr().out.split())
    report = AuditReport.from_json(names["json"].read_bytes())
    assert (report.subject.directions, report.subject.directions_from) == (9, "categories")
    assert [(row.answers, row.minimum, row.valid) for row in report.known] == [(11, 11, 9)]
    title = "Nine answers give every valid decision away, eleven the whole model"
    assert f"{title}." in out
    assert "(proven minimum: 11; valid cases: 9, by rank)" in out
    assert "GATE FAILED answers-to-extract: at least 10 required, 9 found" in out
    assert "GATE PASSED answers-to-extract: at least 9 required, 9 found" in out
    said = "no method needs fewer for the whole model. Valid cases need fewer: they differ in 9 of 11 directions, and by rank 9 "
    for ending in ("html", "md"):
        text = names[ending].read_text("utf-8")
        assert title in text
        assert said in text
        assert "no method needs fewer." not in text
        assert "Valid cases, by rank" in text


def test_answers_that_leave_the_valid_cases_are_one_more_and_robust_ones_are_not_counted(
    mixed, tmp_path, capsys
) -> None:
    for service, valid in (("l1", 10), ("l1; robust=l2:0.1", None)):
        file = tmp_path / "audit.json"
        data = ["--data", str(mixed / "cases.csv"), "--report", str(file), "--report", str(tmp_path / "audit.md")]
        assert run(["audit", str(mixed / "other.json"), *data, "--service", service, *QUICK]) == 0
        assert AuditReport.from_json(file.read_bytes()).known[0].valid == valid
        text = (tmp_path / "audit.md").read_text("utf-8")
        assert ("Valid cases differ in 9 of 11 directions only, and may need fewer" in text) == (valid is None)
        assert "no method needs fewer." not in text
    capsys.readouterr()
