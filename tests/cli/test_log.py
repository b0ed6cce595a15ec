"""`overexplain log check|show|convert|merge`: what they print in 80 columns and as JSON, what they write, what they refuse."""

from __future__ import annotations

import io
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

from overexplain.auditing.fitted import Fit, look_for_fit
from overexplain.cli.main import run
from overexplain.cli.output import bar
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.dice.files import FLIPS, read_dice
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.store.run import Outcome, Run
from overexplain.log.summary import LogSummary
from overexplain.oracles.degraded import Overshoot
from overexplain.oracles.exact import ModelOracle
from overexplain.report.logged import Checked, print_checked
from overexplain.report.terminal import terminal

PLANE = Hyperplane([1.0, -0.5, 2.0, 0.4], 0.2)
FEATURES = ("age", "income", "years at address", "debt")
CLIENTS = ("ann", "bob\x1b[31m\u202e", "名" * 30, None)


def answers(rows: int = 40, service: Any = None) -> QueryLog:
    """Decisions and explanations, a row a minute; some explanations are missing, some failed."""
    rng = np.random.default_rng(0)
    service = service or ModelOracle(PLANE, "l1")
    log = QueryLog(FEATURES, Mechanism("l1"))
    for i, x in enumerate(rng.normal(size=(rows, 4)).round(3)):
        about = {"client": CLIENTS[i % 4], "time": 1_700_000_000.0 + 60 * i}
        if i % 3 == 0:
            log.add_explanation(x, service.explain(x), PLANE.label(x), **about)
        elif i % 10 == 1:
            status = Status.FAILED if i % 20 == 1 else Status.NONE
            log.add_explanation(x, None, PLANE.label(x), status=status, **about)
        else:
            log.add_label(x, PLANE.label(x), **about)
    return log


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answers().save("march.jsonl")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints, after looking at its form."""
    assert run(["log", *arguments]) == code
    out = capsys.readouterr().out
    assert all(cell_len(line) <= 80 and line == line.rstrip() for line in out.splitlines())
    assert not set(out) & set("\x1b\u202e\t\r")
    return out


def parsed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict:
    assert run(["log", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 3) -> str:
    assert run(["log", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_check_says_what_is_in_a_log(capsys) -> None:
    out = printed(capsys, "check", "march.jsonl")
    log = answers()
    yes = int((log.labels == 1).sum())
    assert out.splitlines() == [
        "march.jsonl: a linear model fits all 40 rows.",
        "",
        "format        JSON Lines",
        "rows          40",
        f"decisions     {yes} Yes, {40 - yes} No",
        f'explanations  {len(log.explained)} given, 2 times "none", 1 failed',
        "features      4: age, income, years at address, debt",
        f"terms         l1 ({len(log.explained) + 3} questions)",
        "clients       3; not known for 10 rows",
        "times         2023-11-14T22:13:20Z to 2023-11-14T22:52:20Z",
    ]
    assert "whether a model fits was not looked at" in printed(capsys, "check", "march.jsonl", "--no-fit")


def test_check_as_json_has_the_same_and_more(capsys) -> None:
    answers().save("march.csv")
    one, other = parsed(capsys, "check", "march.jsonl", "march.csv")["logs"]
    assert (one.pop("format"), one.pop("file")) == ("JSON Lines", "march.jsonl")
    assert (other.pop("format"), other.pop("file")) == ("CSV", "march.csv")
    assert one == other
    assert one["fit"] == {"verdict": "fits", "rows": 40, "looked_at": 40, "conflict": [], "proof": None}
    assert one["terms"][0]["mechanism"] == Mechanism("l1").to_dict()
    assert (one["clients"], one["without_client"], one["repeated"], one["run"]) == (3, 10, 0, None)


def test_check_ends_with_4_for_a_contradiction_and_3_if_a_file_cannot_be_read(capsys) -> None:
    log = answers()
    log.add_label(PLANE.normal * 9, -1)
    log.save("wrong.jsonl")
    out = printed(capsys, "check", "wrong.jsonl", code=4)
    assert out.startswith("wrong.jsonl: no linear model fits.\n")
    assert "40 (counted from 0) cannot all be true of one model" in out
    assert "\nproof         0 = " in out
    found = parsed(capsys, "check", "wrong.jsonl", "march.jsonl", code=4)["logs"]
    assert 40 in found[0]["fit"]["conflict"]
    assert found[1]["fit"]["verdict"] == "fits"
    Path("bad.csv").write_text("a,b\n1,x\n")
    assert run(["log", "check", "bad.csv", "wrong.jsonl", "nothing.jsonl", "march.jsonl"]) == 3
    out, err = capsys.readouterr()
    assert [line.split(":")[0] for line in out.splitlines() if ".jsonl: " in line] == ["wrong.jsonl", "march.jsonl"]
    assert [line[:14] for line in err.splitlines()] == ["error: bad.csv", "error: cannot "]
    found = parsed(capsys, "check", "bad.csv", "march.jsonl", code=3)["logs"]
    assert "'x'" in found[0]["error"]
    assert found[1]["rows"] == 40


def test_check_states_terms_where_a_log_does_not(capsys) -> None:
    log = QueryLog()
    log.add_explanation([[0.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 2.5]], [-1, -1])
    log.save("bare.jsonl")
    assert "terms         not stated (2 explanations; --distance states them)" in printed(capsys, "check", "bare.jsonl")
    out = printed(capsys, "check", "bare.jsonl", "--distance", "l1", code=4)
    assert "terms         l1 (2 questions)" in out
    assert "rows 0, 1 " in out
    assert "only the label flips (2 questions)" in printed(capsys, "check", "bare.jsonl", "--slack", "any")
    assert "--tolerance and --slack need --distance" in refused(
        capsys, "check", "bare.jsonl", "--tolerance", "1", code=2
    )


def test_check_counts_repeats_and_reads_mapped_columns(capsys) -> None:
    Path("foreign.csv").write_text("alter,wer,ja\n30,ann,1\n30,ann,1\n40,bob,-1\n30,bob,1\n")
    out = printed(capsys, "check", "foreign.csv", "--map", "x=alter,y=ja,client=wer")
    assert "rows          4, 1 of them equal to an earlier one" in out
    assert "clients       2\n" in out
    assert "--map" in refused(capsys, "check", "foreign.csv", "--map", "x")


def test_a_label_that_is_never_yes_is_noted(capsys) -> None:
    Path("foreign.csv").write_text("age,decision\n1,granted\n2,denied\n")
    assert run(["log", "check", "foreign.csv", "--map", "y=decision,yes=Granted"]) == 0
    out, err = capsys.readouterr()
    assert "0 Yes, 2 No" in out
    assert err.startswith("note: foreign.csv: no label is 'Granted'")
    assert run(["log", "check", "foreign.csv", "--map", "y=decision,yes=granted"]) == 0
    assert capsys.readouterr().err == ""


def test_a_slip_in_the_mapping_is_named_with_the_columns_there_are(capsys) -> None:
    Path("foreign.csv").write_text("age,decision,cf_age\n1,granted,\n2,denied,1\n")
    said = refused(capsys, "check", "foreign.csv", "--map", "y=decison,yes=granted")
    assert said == "error: foreign.csv: no column for 'decison'; it has 'age', 'decision', 'cf_age'\n"


@pytest.mark.parametrize("command", ["merge", "convert"])
def test_help_lists_every_kind_that_is_written(command, capsys) -> None:
    assert run(["log", command, "--help"]) == 0
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Write here: .jsonl, .csv, .parquet, .json (DiCE) or .sqlite (a run)" in words


def test_check_of_an_idempotent_run_says_that_its_requests_are_sent_again(capsys) -> None:
    with Run.create("run.sqlite", plan={"seed": 0}, dimension=2, budget=10, idempotent=True) as opened:
        asked = opened.question("classify", np.array([0.0, 1.0]))
        asked.sending()
        asked.heard(Outcome("label", -1, None))
        opened.question("classify", np.array([7.0, 1.0])).sending()
    text = " ".join(printed(capsys, "check", "run.sqlite").split())
    assert "(sent again under its key on --resume)" in text


def test_check_of_a_run_lists_what_was_sent_and_never_answered(capsys) -> None:
    terms = Mechanism("l1")
    with Run.create("run.sqlite", plan={"seed": 0}, dimension=2, mechanism=terms, budget=10) as opened:
        asked = opened.question("classify", np.array([0.0, 1.0]))
        asked.sending()
        asked.failed("429")
        asked.sending()
        asked.heard(Outcome("label", -1, None))
        asked = opened.question("explain", np.array([0.0, 1.0]))
        asked.sending()
        asked.heard(Outcome("explanation", None, np.array([1.5, 1.0])))
        opened.question("explain", np.array([7.0, 1.0])).sending()
        number = opened.id
    text = " ".join(printed(capsys, "check", "run.sqlite").split())
    assert f"run {number[:8]}: 4 of 10 requests spent, 6 left; 2 questions answered, 1 retry" in text
    assert "unanswered request 4: explain, 20" in text
    assert "(spent; asked anew on --resume) rows 2 decisions" in text
    (found,) = parsed(capsys, "check", "run.sqlite")["logs"]
    assert found["run"]["unanswered"][0]["point"] == [7.0, 1.0]
    assert (found["run"]["spent"], found["run"]["retries"], found["run"]["idempotent"]) == (4, 1, False)
    assert printed(capsys, "convert", "run.sqlite", "run.csv") == "run.csv: 2 rows from run.sqlite.\n"
    assert QueryLog.load("run.csv").explanations[1].tolist() == [1.5, 1.0]


def test_a_fit_is_looked_for_in_more_and_more_rows_until_the_time_is_up() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1200, 4))
    log = QueryLog()
    log.add_label(points, PLANE.labels(points))
    assert look_for_fit(log) == look_for_fit(log, 1e6) == Fit("fits", 1200, 1200)
    ticks = iter(range(100))  # every look takes a second: 250 rows, then 1000 would take four
    assert look_for_fit(log, 3.0, clock=lambda: float(next(ticks))) == Fit("fits", 1200, 250)
    ticks = iter(range(100))
    assert look_for_fit(log, 8.0, clock=lambda: float(next(ticks))) == Fit("fits", 1200, 1200)
    log.add_label(points[1100], -PLANE.label(points[1100]))
    found = look_for_fit(log)
    assert (found.verdict, found.complete, found.conflict[-1]) == ("contradiction", True, 1200)
    assert found.proof
    ticks = iter(range(100))
    assert not look_for_fit(log, 3.0, clock=lambda: float(next(ticks))).complete


@pytest.mark.parametrize(
    ("fit", "says"),
    [
        (Fit("fits", 1, 1), "a linear model fits its one row."),
        (Fit("fits", 9000, 1000), "a linear model fits the first 1,000 of 9,000 rows; the time was up."),
        (Fit("open", 9, 9), "no model and no contradiction was found in all 9 rows."),
        (Fit("open", 9000, 4000), "no model and no contradiction was found in the first 4,000 of 9,000 rows; the time"),
    ],
)
def test_what_was_not_settled_is_said(fit, says, capsys) -> None:
    found = LogSummary(fit.rows, 1, 1, 0, 0, 0, 0, 1, None, (), 0, 0, 0, 0, None, None, fit.rows)
    print_checked(Checked("a.csv", "CSV", found, fit), terminal())
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[: lines.index("")]).startswith(f"a.csv: {says}")
    assert max(map(len, lines)) <= 80


def test_show_is_a_line_a_row(capsys) -> None:
    log = answers()
    lines = printed(capsys, "show", "march.jsonl").splitlines()
    assert lines[0] == "march.jsonl: rows 0 to 19 of 40 (counted from 0)"
    assert lines[2].split() == ["row", "label", "point", "(4)", "explanation", "UTC", "client"]
    first = log[0]
    assert lines[3].split()[:3] == ["0", "Yes" if first.label == 1 else "No", f"{first.point[0]:.4g},"]
    assert f"={first.explanation[2]:.4g} " in lines[3]
    assert lines[3].endswith("22:13:20  ann")
    assert "bob\\x1b..." in lines[4]
    assert [line.split()[0] for line in lines[3:23]] == [str(i) for i in range(20)]
    assert "failed" in lines[4]
    assert "All times are on 2023-11-14." in lines
    assert len(printed(capsys, "show", "march.jsonl", "-n", "3").splitlines()) == len(lines) - 17
    some = printed(capsys, "show", "march.jsonl", "--rows", "-5:-2").splitlines()
    assert [line.split()[0] for line in some[3:6]] == ["35", "36", "37"]
    assert "but none of these" in printed(capsys, "show", "march.jsonl", "--rows", "90:")


def test_show_of_one_row_is_in_full(capsys) -> None:
    row = answers()[0]
    lines = printed(capsys, "show", "march.jsonl", "--rows", "0").splitlines()
    assert lines[0] == "march.jsonl: row 0 of 40 (counted from 0)"
    assert "explanation  given; it changes 1 of 4 features" in lines
    values = {line[:16].strip(): line[16:].split() for line in lines[-4:]}
    assert list(values) == list(FEATURES)
    assert [float(found[0]) for found in values.values()] == row.point.tolist()
    assert float(values["years at address"][1]) == row.explanation[2]
    assert "名" * 30 in printed(capsys, "show", "march.jsonl", "--rows", "2")
    assert "client       bob\\x1b[31m\\u202e" in printed(capsys, "show", "march.jsonl", "--rows", "-39")
    assert "there is no row 40" in refused(capsys, "show", "march.jsonl", "--rows", "40")


def test_show_as_json_leaves_nothing_out(capsys) -> None:
    found = parsed(capsys, "show", "march.jsonl", "--rows", ":")["log"]
    log = answers()
    assert (found["features"], found["mechanism"]) == (list(FEATURES), Mechanism("l1").to_dict())
    assert len(found["shown"]) == found["rows"] == 40
    for entry, row in zip(found["shown"], log, strict=True):
        assert entry["point"] == row.point.tolist()
        assert (entry["label"], entry["client"], entry["time"]) == (row.label, row.client, row.time)
        assert entry["status"] == row.status.text
        assert entry["explanation"] == (None if row.explanation is None else row.explanation.tolist())


@pytest.mark.parametrize("odd", ["x", "1:2:3", "1.5", "--5", "", "1-2", "9" * 20])
def test_show_refuses_odd_ranges(odd, capsys) -> None:
    assert "FIRST:STOP" in refused(capsys, "show", "march.jsonl", f"--rows={odd}", code=2)


def test_show_of_hostile_names_and_many_features_stays_in_its_columns(capsys) -> None:
    wide = QueryLog([f"\x1b[2J{'名' * 40}{i}" for i in range(200)])
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 200)) * 1e-150
    wide.add_explanation(x, x + 1e150, [1, -1, None], client="\n" * 50, time=[0.0, 1e9, 1e300])
    wide.save("wide.jsonl")
    out = printed(capsys, "show", "wide.jsonl")
    assert "point (200)" in out
    assert "... (200)" in out
    assert "1970-01-01" in out
    out = printed(capsys, "check", "wide.jsonl")
    assert "and 188 more" in out
    assert "\\x1b[2J" in out
    assert "it changes 200 of 200 features" in printed(capsys, "show", "wide.jsonl", "--rows", "2")


def test_convert_through_every_format_changes_nothing(capsys) -> None:
    names = ["march.jsonl", "a.parquet", "b.csv", "c.JSONL"]
    for source, target in pairwise(names):
        assert printed(capsys, "convert", source, target) == f"{target}: 40 rows from {source}.\n"
    back, log = QueryLog.load("c.JSONL"), answers()
    assert list(back) == list(log)
    assert back.features == FEATURES


def test_convert_to_dice_says_what_is_left_out(capsys) -> None:
    log = answers()
    assert run(["log", "convert", "march.jsonl", "cfs.json"]) == 0
    out, err = capsys.readouterr()
    kept = len(log.explained) + 2
    assert out == f"cfs.json: {kept} of 40 rows from march.jsonl.\n"
    assert err == (
        f"note: cfs.json: a file of DiCE cannot hold {39 - kept} rows that ask for no explanation, 1 failed request, "
        "clients, times, terms of explanations; left out\n"
    )
    back = read_dice("cfs.json")
    assert back.explanations[back.explained].tolist() == log.explanations[log.explained].tolist()
    assert back.mechanisms == (FLIPS,)
    found = parsed(capsys, "convert", "cfs.json", "back.jsonl", "--distance", "l1")["log"]
    assert (found["rows"], found["written"], found["left_out"]) == (kept, kept, [])
    assert QueryLog.load("back.jsonl").mechanisms == (Mechanism("l1"),)
    labels = QueryLog()
    labels.add_label([1.0], 1)
    labels.save("labels.jsonl")
    assert "none was asked for" in refused(capsys, "convert", "labels.jsonl", "none.json")
    assert not Path("none.json").exists()


def test_a_mapping_says_what_the_outcomes_of_dice_mean(capsys) -> None:
    # Behind the plane for sure: on it, to rounding, half of the answers would not have flipped.
    answers(service=Overshoot(ModelOracle(PLANE, "l1"), 0.1)).save("march.jsonl")
    assert run(["log", "convert", "march.jsonl", "cfs.json"]) == 0
    capsys.readouterr()
    (plain,) = parsed(capsys, "check", "cfs.json", "--no-fit")["logs"]
    (turned,) = parsed(capsys, "check", "cfs.json", "--no-fit", "--map", "yes=0,y=outcome")["logs"]
    assert (plain["yes"], plain["no"]) == (turned["no"], turned["yes"])
    assert plain["yes"] != plain["no"]
    (turned,) = parsed(capsys, "check", "cfs.json", "--map", f"x={'+'.join(FEATURES[::-1])}")["logs"]
    assert turned["features"] == list(FEATURES[::-1])
    assert "no column for client" in refused(capsys, "check", "cfs.json", "--map", "client=who")


def test_merge_counts_a_request_once(capsys) -> None:
    log = answers()
    parts = QueryLog(FEATURES), QueryLog(FEATURES[::-1])
    for row in list(log)[:30]:
        _add(parts[0], row, slice(None))
    for row in list(log)[20:]:
        _add(parts[1], row, slice(None, None, -1))
    parts[0].save("a.csv")
    parts[1].save("b.parquet")
    out = printed(capsys, "merge", "a.csv", "b.parquet", "-o", "all.jsonl")
    said = "all.jsonl: 40 rows from 2 logs; 10 rows found in an earlier one, too, counted once."
    assert " ".join(out.split()) == said
    assert list(QueryLog.load("all.jsonl")) == list(log)
    found = parsed(capsys, "merge", "all.jsonl", "march.jsonl", "a.csv", "-o", "again.csv")["log"]
    assert (found["rows"], found["found_again"], found["files"][2]) == (40, 70, "a.csv")


def _add(log: QueryLog, row, order: slice) -> None:
    about = {"client": row.client, "time": row.time, "source": row.source}
    if row.status == Status.NOT_ASKED:
        log.add_label(row.point[order], row.label, **about)
    else:
        answer = None if row.explanation is None else row.explanation[order]
        log.add_explanation(row.point[order], answer, row.label, row.mechanism, status=row.status, **about)


def test_nothing_is_written_over_and_nothing_odd_is_written(capsys) -> None:
    before = Path("march.jsonl").read_bytes()
    answers().save("b.jsonl")
    assert "exists already" in refused(capsys, "convert", "b.jsonl", "march.jsonl")
    assert "exists already" in refused(capsys, "merge", "march.jsonl", "b.jsonl", "-o", "b.jsonl")
    answers().save("c.sqlite")
    assert "exists already" in refused(capsys, "convert", "b.jsonl", "c.sqlite")
    assert ".jsonl, .csv" in refused(capsys, "merge", "b.jsonl", "march.jsonl", "-o", "c.xlsx")
    assert "no folder" in refused(capsys, "convert", "b.jsonl", "no/c.jsonl")
    assert "two logs or more" in refused(capsys, "merge", "b.jsonl", "-o", "c.jsonl", code=2)
    assert "OUT" in refused(capsys, "convert", "b.jsonl", code=2)
    other = QueryLog(["a"])
    other.add_label([1.0], 1)
    other.save("other.jsonl")
    said = refused(capsys, "merge", "b.jsonl", "other.jsonl", "-o", "c.jsonl")
    assert "other.jsonl must have the features of b.jsonl" in said
    assert Path("march.jsonl").read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["b.jsonl", "c.sqlite", "march.jsonl", "other.jsonl"]


def test_certify_reads_every_kind_of_log(capsys) -> None:
    log = answers(60)
    log.save("april.jsonl")
    log.save("april.csv")
    Path("points.csv").write_text(",".join(FEATURES) + "\n9,0,9,0\n-9,0,-9,0\n0,0,0.1,0\n")
    texts = []
    for name in ("april.jsonl", "april.csv"):
        assert run(["certify", name, "points.csv"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert run(["log", "convert", "april.jsonl", "april.json"]) == 0
    capsys.readouterr()
    assert run(["certify", "april.json", "points.csv", "--distance", "l1"]) == 0
    out, err = capsys.readouterr()
    assert err == "", "the terms given are used: DiCE files state none"
    assert out.splitlines()[0] == texts[0].splitlines()[0]


def test_rows_with_empty_cells_are_left_out_with_a_note_by_every_command(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["1,2,1,,", "3,,-1,,", "5,1,1,,", "0,0,-1,0.5,", "0,0,-1,1,1"]
    Path("log.csv").write_text("a,b,label,cf_a,cf_b\n" + "".join(row + "\n" for row in rows))
    Path("points.csv").write_text("a,b\n9,9\n-9,-9\n")
    note = (
        "note: log.csv: 2 rows with empty cells are left out, those after move up: row 1 (line 3) has no 'b', "
        "row 3 (line 5) has no 'cf_b'\n"
    )
    proven = "certify log.csv points.csv --distance l2 -o verdicts.csv --proofs proofs.jsonl"
    for command in (
        "log check log.csv --distance l2",
        "log convert log.csv log.jsonl --distance l2",
        proven,
        "verify proofs.jsonl log.csv --distance l2 --verdicts verdicts.csv --points points.csv",
        "monitor log.csv --distance l2",
    ):
        assert run(command.split()) == 0, command
        assert note in capsys.readouterr().err, command
    assert len(QueryLog.load("log.jsonl")) == 3


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_each_step_has_come_and_how_long_it_will_take(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    log = QueryLog(["a"])
    log.add_label(np.linspace(-1, 1, 1001)[:, None], np.where(np.linspace(-1, 1, 1001) > 0.2, 1, -1))
    log.save("log.csv")
    log.save("points.csv")
    for command, steps in (
        ("log check log.csv", ("reading", "looking for a model that fits")),
        ("certify log.csv points.csv", ("reading", "working out what 1,001 rows give away", "certifying, 1,001 points done")),
        ("monitor log.csv", ("reading", "working out what all clients together know")),
    ):  # fmt: skip
        screen = Screen()
        monkeypatch.setattr(sys, "stderr", screen)
        assert run(command.split()) == 0
        shown = screen.getvalue()
        assert all(step in shown for step in steps), command
        assert re.search(r"\d:\d\d:\d\d", shown), command


def test_other_work_has_a_speed_of_its_own(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", screen := Screen())
    with bar("reading") as show:
        for done in range(0, 101, 10):
            show("reading", done, 100)
        show("certifying", 1, 3)
        before = len(screen.getvalue())
    assert "-:--:--" in screen.getvalue()[before:]  # nothing is known of it yet
