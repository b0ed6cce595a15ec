"""`overexplain monitor`: what it prints, in 80 columns and as JSON, its gates, and names that would like to be more."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from overexplain.auditing.monitoring.gates import gated
from overexplain.auditing.monitoring.monitor import monitor
from overexplain.auditing.monitoring.monitor_report import MonitorReport
from overexplain.cli.log_files import read_mapping
from overexplain.cli.main import run as main
from overexplain.cli.monitor import Request, run_monitor
from overexplain.cli.terms import Terms
from overexplain.errors import InconsistentLog, InvalidInput
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel
from overexplain.oracles.exact import ModelOracle
from overexplain.report.monitored import print_monitored, shown
from overexplain.report.terminal import terminal

PLANE = Hyperplane([1.0, -0.5, 2.0, 0.4], 0.2)
FEATURES = ("a", "b", "c", "d")


def asked(rows: int = 300, terms: Mechanism | None = Mechanism("l1"), explained: float = 0.1) -> QueryLog:  # noqa: B008
    rng = np.random.default_rng(0)
    service = ModelOracle(PLANE, "l1")
    log = QueryLog(FEATURES, terms)
    for i in range(rows):
        x = rng.normal(size=4)
        if rng.random() < explained:
            log.add_explanation(x, service.explain(x), PLANE.label(x), client=f"c{i % 30}", time=1e9 + i)
        else:
            log.add_label(x, PLANE.label(x), client=f"c{i % 30}", time=1e9 + i)
    return log


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked().save("log.jsonl")
    LinearModel(PLANE, features=FEATURES).save("model.json")
    points = np.random.default_rng(4).normal(size=(50, 4))
    lines = [",".join(map(repr, row)) for row in points[:, [3, 0, 1, 2]].tolist()]
    Path("points.csv").write_text("\n".join(["d,a,b,c", *lines]) + "\n")


def run(log: str = "log.jsonl", **wanted: object) -> int:
    usual = {
        "by": "client", "mapping": (), "model": None, "reference": None, "terms": Terms(), "detail": 3, "quota": None,
        "fail_on": (), "seed": 0, "as_json": False,
    }  # fmt: skip
    return run_monitor(Request(Path(log), **{**usual, **wanted}))  # type: ignore[arg-type]


def printed(report: MonitorReport) -> str:
    out = io.StringIO()
    print_monitored(report, terminal(out))
    return out.getvalue()


def test_text_says_what_was_found_in_80_columns(capsys) -> None:
    assert run(model=Path("model.json"), reference=Path("points.csv"), quota=12) == 0
    out, err = capsys.readouterr()
    report = monitor(
        "log.jsonl", model=LinearModel(PLANE, features=FEATURES), reference=read_points(), detail=3, quota=12
    )
    when = report.pooled.recoverable_at
    assert when is not None
    lines = out.splitlines()
    assert lines[0] == "This log gives the model away: after 4 explanations, one model alone fits."
    text = " ".join(lines)
    assert "300 requests of 30 clients (2001-09-09T01:46:40Z to 2001-09-09T01:51:39Z): 300 decisions," in text
    assert (
        f"from row {when.row} on ({when.time}): after {when.requests} requests, with answers to {when.clients} clients."
        in text
    )
    table = lines.index(next(line for line in lines if line.startswith("who ")))
    assert lines[table + 1].split() == ["all", "together", "300", str(report.pooled.explanations), "3/3", "100", "%",
                                        f"{report.pooled.angle:.0e}", "exactly", str(when.row)]  # fmt: skip
    assert [line.split()[0] for line in lines[table + 2 : table + 5]] == [c.client for c in report.clients]
    assert lines[table + 5] == "and 27 clients less exposed"
    assert "30 alarms by 30 clients:" in lines
    assert "and 10 more alarms (--json has them)" in lines
    assert "80 % of its quota of 12 requests used (10 in all)" in text
    assert "the 50 reference points" in text
    assert err == ""
    assert out.isascii()
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)


def read_points() -> np.ndarray:
    return np.random.default_rng(4).normal(size=(50, 4))


def test_json_is_the_report_and_nothing_else(capsys) -> None:
    assert run(as_json=True, fail_on=["alarm"]) == 0
    out, err = capsys.readouterr()
    report = MonitorReport.from_json(out)
    assert report == gated(monitor("log.jsonl", detail=3), ["alarm"])
    assert (json.loads(out)["format"], err) == ("overexplain-monitor", "")


def test_gates_decide_the_exit_code(capsys) -> None:
    assert run(fail_on=["determined>100%", "client-determined>100%", "client-recoverable", "alarm"]) == 0
    assert run(fail_on=["determined>99.5%", "alarm"]) == 1
    out = capsys.readouterr().out
    assert "FAILED  determined>99.5%" in out
    assert "passed  alarm" in out
    assert run(fail_on=["recoverable"]) == 1
    assert run(fail_on=["client-determined > 1 %"]) == 1
    assert run(quota=12, fail_on=["alarm"]) == 1
    for odd in ("determined", "determined>60", "recoverable>1", "rank>3", "x" * 1000):
        with pytest.raises(InvalidInput, match="a gate is one of"):
            run(fail_on=[odd])


def test_a_share_that_was_not_measured_fails_its_gate() -> None:
    log = QueryLog()
    log.add_label([[0.0], [1.0]], [-1, 1])
    report = gated(monitor(log), ["determined>90%"])
    assert report.pooled.determined is None
    assert not report.passed


def test_explanations_without_terms_are_said_to_be_unused(capsys) -> None:
    asked(terms=None).save("bare.jsonl")
    assert run("bare.jsonl") == 0
    out, err = capsys.readouterr()
    assert "without stated terms: not used (--distance states them)" in err
    assert "without stated terms are not used." in " ".join(out.split())
    assert "This log leaves more than one model." in out
    assert run("bare.jsonl", terms=Terms("l1")) == 0
    assert "This log gives the model away" in capsys.readouterr().out


def test_tables_are_read_by_mapped_columns(capsys) -> None:
    frame = asked().to_frame().rename(columns={"client": "client_id", "time": "ts"})
    frame.assign(extra=1).to_parquet("log.parquet")
    mapping = ["client=client_id,time=ts", "x=a+b+c+d"]
    assert run("log.parquet", mapping=mapping, reference=Path("points.csv"), model=Path("model.json")) == 0
    one = capsys.readouterr().out
    assert run(reference=Path("points.csv"), model=Path("model.json")) == 0
    assert one == capsys.readouterr().out
    for odd in ("client", "client=", "=x", "y=a,y=b"):
        with pytest.raises(InvalidInput, match="--map"):
            read_mapping([odd])


def test_contradictions_and_crashes_are_reported(capsys) -> None:
    log = asked()
    log.add_label(PLANE.normal * 9, -1, client="mallory")
    log.save("wrong.jsonl")
    with pytest.raises(InconsistentLog, match="mallory"):
        run("wrong.jsonl")
    Path("cut.jsonl").write_text(Path("log.jsonl").read_text()[:-20])
    assert run("cut.jsonl", detail=0) == 0
    assert capsys.readouterr().err.startswith("note: cut.jsonl, line 302: the last line was cut short")


def test_hostile_names_stay_short_plain_text() -> None:
    log = QueryLog()
    names = [
        "\u202e\u2066evil",
        "\x1b[31mred\x07",
        "[bold red]x[/]",
        "y" * 10_000,
        "<script>",
        "名" * 40,
        "a\nb\tc",
        "\ud800",
    ]
    rng = np.random.default_rng(0)
    for i, x in enumerate(rng.normal(size=(80, 4))):
        log.add_label(x, PLANE.label(x), client=names[i % 8])
    out = printed(monitor(log, model=PLANE, quota=10))
    assert not set(out) & set("\u202e\u2066\x1b\x07\t")
    assert "[bold red]x[/]" in out
    assert "<script>" in out
    assert "y" * 16 not in out
    lines = out.splitlines()
    assert all(cell_len(line) <= 80 for line in lines)
    table = lines.index(next(line for line in lines if line.startswith("who ")))
    column = lines[table].index("requests") + len("requests")
    assert all(line_cells(line, column).endswith(" 10") for line in lines[table + 2 : table + 10])


def line_cells(line: str, cells: int) -> str:
    """The beginning of a line that fills so many columns."""
    from rich.cells import set_cell_size

    return set_cell_size(line, cells)


def test_names_are_cut_by_columns_not_characters() -> None:
    assert cell_len(shown("名" * 40)) <= 18
    assert shown("\u200bann") == "?ann"
    assert shown("") == ""


# Explanations in columns of other names, as `--map cf=…` says it.


def letters(name: str = "march.csv", rows: int = 25) -> None:
    """A log whose explanations are in why_income and why_debts; all of one client, who holds the model."""
    plane = Hyperplane([1.0, -2.0], 0.5)
    asked = np.random.default_rng(2).normal(size=(rows, 2))
    told = ModelOracle(plane, "l1").explain(asked)
    lines = [
        f"{x!r},{y!r},{plane.label([x, y])},{a!r},{b!r},ann"
        for (x, y), (a, b) in zip(asked.tolist(), told.tolist(), strict=True)
    ]
    Path(name).write_text("\n".join(["income,debts,decision,why_income,why_debts,who", *lines]) + "\n")


MAPPED = "x=income+debts,y=decision,client=who"


@pytest.mark.parametrize("features", ["x=income+debts,", ""])
@pytest.mark.parametrize("cf", ["why_", "why_income+why_debts"])
def test_explanations_are_found_by_a_prefix_or_column_by_column(cf: str, features: str, capsys) -> None:
    letters()
    code = main(["monitor", "march.csv", "--map", f"{features}y=decision,client=who,cf={cf}", "--distance", "l1"])
    out = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "25 decisions, 25 explanations." in out
    assert "1 client was given enough explanations to rebuild the model alone." in out


@pytest.mark.parametrize("command", ["monitor", "log check", "log show"])
@pytest.mark.parametrize("features", ["x=income+debts,", ""])
def test_cf_that_matches_no_column_is_refused_with_the_nearest_names(command: str, features: str, capsys) -> None:
    letters()
    assert main([*command.split(), "march.csv", "--map", f"{features}y=decision,client=who,cf=wyh_"]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "march.csv: cf=wyh_ matches no column" in err
    assert "'why_income', 'why_debts'" in err
    assert "cf=a+b" in err


def test_cf_names_as_many_columns_as_there_are_features(capsys) -> None:
    letters()
    assert main(["monitor", "march.csv", "--map", f"{MAPPED},cf=why_income+why_debts+debts"]) == 3
    assert "cf names 3 columns, there are 2 features" in capsys.readouterr().err
    assert main(["monitor", "march.csv", "--map", f"{MAPPED},cf=why_income+wyh_debts"]) == 3
    assert "no column for 'wyh_debts'" in capsys.readouterr().err


def test_cf_of_records_may_come_late_and_never_is_refused(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overexplain.log.blocks.BLOCK", 2)
    records = [{"income": float(i), "debts": 1.0, "decision": 1 if i > 2 else -1, "who": "ann"} for i in range(6)]
    records[5] |= {"why_income": 2.5, "why_debts": 1.0}
    Path("late.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    for cf in ("why_", "why_income+why_debts"):
        assert main(["log", "check", "late.jsonl", "--map", f"{MAPPED},cf={cf}", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["logs"][0]["explanations"] == 1
    assert main(["log", "check", "late.jsonl", "--map", f"{MAPPED},cf=wyh_"]) == 3
    assert "late.jsonl: cf=wyh_ matches no column" in capsys.readouterr().err


def test_help_says_how_explanations_are_named(capsys) -> None:
    assert main(["monitor", "--help"]) == 0
    assert "cf=" in capsys.readouterr().out


# A client who holds the model.


def test_a_client_who_holds_the_model_is_an_alarm(capsys) -> None:
    letters()
    told = ["monitor", "march.csv", "--map", f"{MAPPED},cf=why_", "--distance", "l1"]
    assert main([*told, "--fail-on", "alarm"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "No alarms" not in out
    assert "passed alarm" not in out
    assert "FAILED alarm" in out
    assert "1 alarm by 1 client: ann row 1: holds the model: 2 explanations in its first 2 requests leave one" in out
    assert main([*told, "--json"]) == 0
    report = MonitorReport.from_json(capsys.readouterr().out)
    assert (report.alone, report.alarmed, report.alarm_counts["holds-model"]) == (1, 1, 1)
    assert (report.clients[0].alarms, report.alarms[0].client, report.alarms[0].row) == (("holds-model",), "ann", 1)


def test_holders_beyond_the_detail_are_alarms_too() -> None:
    plane, log = Hyperplane([1.0, -2.0], 0.5), QueryLog(mechanism=Mechanism("l1"))
    x = np.random.default_rng(1).normal(size=(60, 2))
    service = ModelOracle(plane, "l1")
    log.add_explanation(x, service.explain(x), service.classify(x), client=[f"c{i // 3}" for i in range(60)])
    for detail in (0, 3, 20):
        report = monitor(log, detail=detail)
        assert (report.alone, report.alarmed, report.alarm_counts["holds-model"]) == (20, 20, 20)
        assert [alarm.row for alarm in report.alarms] == [3 * i + 1 for i in range(20)]


def test_requests_without_a_client_that_leave_one_model_pass_no_gate_about_alarms(capsys) -> None:
    x = np.random.default_rng(1).normal(size=(20, 4))
    log, service = QueryLog(mechanism=Mechanism("l1")), ModelOracle(PLANE, "l1")
    log.add_explanation(x, service.explain(x), service.classify(x))
    log.save("nobody.jsonl")
    assert run("nobody.jsonl", fail_on=["alarm"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "FAILED alarm" in out
    assert "No alarms." not in out
    assert "Not evaluated: holds the model" in out
    assert "some requests name no client" in out


def test_explanations_without_terms_pass_no_gate_about_alarms(capsys) -> None:
    asked(terms=None).save("bare.jsonl")
    assert run("bare.jsonl", fail_on=["alarm"]) == 1
    assert "Not evaluated: holds the model" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("digits", [1, 3, 6, 7])
def test_lines_are_80_columns_wide_however_long_the_log(digits: int) -> None:
    report = monitor(asked(), detail=3)
    many = 10**digits - 1
    when = replace(report.pooled.recoverable_at, row=many, explanations=many, requests=many)
    pooled = replace(
        report.pooled, known="closely", requests=many, explanations=many, rank=4999, complete=4999, determined=0.5,
        undecided=0.1, recoverable_at=when,
    )  # fmt: skip
    clients = tuple(
        replace(c, client="someone with a long name", exposure=replace(pooled, known="exactly")) for c in report.clients
    )
    lines = printed(replace(report, pooled=pooled, clients=clients)).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(f"{many:,}" in line for line in lines if line.startswith(("all together", "someone")))


# Shares that are known from below only.


@pytest.mark.parametrize(
    ("share", "at_most", "written", "passes"),
    [
        (0.3, 0.3, "30 %", True),
        (0.3, 0.8, ">= 30 %", False),
        (0.3, 0.55, ">= 30 %", True),
        (0.7, 1.0, ">= 70 %", False),
    ],
)
def test_a_share_from_below_is_written_so_and_passes_no_gate_inside_its_range(
    share: float, at_most: float, written: str, passes: bool
) -> None:
    report = monitor(asked(explained=0.0))
    pooled = replace(report.pooled, known="partly", determined=share, at_most=at_most, recoverable_at=None)
    judged = gated(replace(report, pooled=pooled), ["determined>60%"])
    text = printed(judged)
    assert judged.passed == passes
    assert written in next(line for line in text.splitlines() if line.startswith("all together"))
    assert f"It determines {written} of decisions." in text
    inside = share <= 0.6 < at_most
    assert ("cannot be told: 30 to 80 % are determined" in text) == inside


def test_all_rows_of_a_short_log_are_used_before_a_share_is_a_bound() -> None:
    """A thousand decisions: those nearest to the boundary first, then all; what is left is unknown, not unsettled."""
    report = monitor(asked(rows=1500, explained=0.0))
    assert report.pooled.known == "partly"
    assert report.pooled.proved_from == 1500 - report.reference_points  # those held out are not used
    assert report.pooled.at_most == pytest.approx(report.pooled.determined + report.pooled.undecided)
    assert gated(report, ["determined>99.9%"]).passed
    assert ">=" not in printed(report)
