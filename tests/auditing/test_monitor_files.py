"""A monitored log may be a file or blocks: the report is the same; what cannot be read is refused with its place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overexplain.auditing.monitoring.monitor import monitor
from overexplain.auditing.monitoring.monitor_report import MonitorReport
from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log import blocks
from overexplain.log.blocks import as_columns, read_blocks
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel
from overexplain.oracles.exact import ModelOracle

PLANE = Hyperplane([1.0, -0.5, 2.0], 0.2)
FEATURES = ("age", "income", "debts")


def asked(rows: int = 260, features: tuple[str, ...] | None = FEATURES, explained: float = 0.2) -> QueryLog:
    rng = np.random.default_rng(0)
    l1, robust = (ModelOracle(PLANE, m) for m in (Mechanism("l1"), Mechanism("l1", robustness="l2", radius=0.2)))
    log = QueryLog(features)
    for i in range(rows):
        x, who = rng.normal(size=3), None if i % 9 == 0 else f"{i % 7:03}"
        if rng.random() < explained:
            service = robust if i % 2 else l1
            log.add_explanation(x, service.explain(x), PLANE.label(x), service.mechanism, client=who, time=1e9 + i)
        else:
            log.add_label(x, PLANE.label(x), client=who, time=1e9 + i)
    return log


@pytest.fixture(autouse=True)
def small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "BLOCK", 50)
    monkeypatch.setattr("overexplain.log.jsonl.formats.CHUNK", 20)


def same(one: MonitorReport, other: MonitorReport) -> bool:
    return one.to_json() == other.to_json()


@pytest.mark.parametrize("features", [FEATURES, None])
def test_files_and_blocks_give_the_report_of_the_log_in_memory(features: tuple[str, ...] | None) -> None:
    log = asked(features=features)
    expected = monitor(log, detail=3)
    log.save("log.jsonl")
    frame = log.to_frame()
    frame.to_csv("log.csv", index=False)
    frame.to_parquet("log.parquet")
    for path in ("log.jsonl", "log.csv", "log.parquet"):
        parts = list(read_blocks(Path(path)))
        assert len(parts) > 1
        assert sum(map(len, parts)) == len(log)
        assert np.array_equal(np.vstack([part.points for part in parts]), log.points)
        explained = np.vstack([part.explanations for part in parts])
        assert np.array_equal(explained, log.explanations, equal_nan=True)
        assert [row.mechanism for part in parts for row in part] == [row.mechanism for row in log]
        assert [row.client for part in parts for row in part] == [row.client for row in log]
        assert same(monitor(path, detail=3), expected)
    assert same(monitor(read_blocks(Path("log.jsonl")), detail=3), expected)


def test_columns_of_other_names_are_mapped() -> None:
    log = asked(explained=0.3)
    frame = log.to_frame().drop(columns=["status", "mechanism", "source"])
    frame = frame[log.status == 0]  # labels, so that no terms are needed
    expected = monitor(QueryLog.from_frame(frame, FEATURES), detail=3)
    other = frame.drop(columns=[name for name in frame if name.startswith("cf_")])
    other = other.assign(
        decision=np.where(other["label"] > 0, "granted", "denied"),
        ts=[f"2001-09-09T{int(t - 1e9) // 3600 + 1:02}:{int(t - 1e9 + 2800) // 60 % 60:02}:00" for t in other["time"]],
        request_id=range(len(other)),
    ).rename(columns={"client": "client_id"})
    other = other.drop(columns=["label", "time"])
    mapping = {"client": "client_id", "y": "decision", "yes": "granted", "t": "ts", "x": list(FEATURES)}
    other.to_csv("other.csv", index=False)
    other.to_parquet("other.parquet")
    for path in ("other.csv", "other.parquet"):
        found = monitor(path, mapping=mapping, detail=3)
        assert found.pooled == expected.pooled
        assert [c.client for c in found.clients] == [c.client for c in expected.clients]
        assert found.log.first is not None
        assert found.log.first.startswith("2001-09-09T01:")
    # A model with names says which columns are features.
    model = LinearModel(PLANE, features=FEATURES)
    del mapping["x"]
    assert monitor("other.csv", mapping=mapping, model=model, detail=0).log.features == FEATURES


def test_explanations_under_a_prefix_follow_the_given_terms() -> None:
    service = ModelOracle(PLANE, "l1")
    points = np.random.default_rng(1).normal(size=(30, 3))
    log = QueryLog(FEATURES)
    log.add_explanation(points, service.explain(points), PLANE.labels(points))
    frame = log.to_frame()[[*FEATURES, "label", *(f"cf_{name}" for name in FEATURES)]]
    frame = frame.rename(columns={f"cf_{name}": f"to_{name}" for name in FEATURES})
    frame.to_csv("log.csv", index=False)
    found = monitor("log.csv", mapping={"cf": "to_"}, terms=Mechanism("l1"))
    assert found.pooled.known == "exactly"
    assert found.pooled.recoverable_at is not None
    assert found.pooled.recoverable_at.row == 2


def test_numbers_that_name_clients_stay_names() -> None:
    frame = asked(60).to_frame()[[*FEATURES, "label"]]
    frame["client"] = [7 if i % 2 else None for i in range(60)]
    frame["client"] = frame["client"].astype("Int64")
    frame.to_parquet("log.parquet")
    frame.to_csv("log.csv", index=False)
    for path in ("log.parquet", "log.csv"):
        assert {c.client for c in monitor(path).clients} == {"7", "(no client)"}


def test_what_cannot_be_read_is_refused_with_its_place() -> None:
    asked(60).save("log.jsonl")
    text = Path("log.jsonl").read_text().splitlines()
    Path("bad.jsonl").write_text("\n".join([*text[:40], '{"x": [1.0]}', *text[40:]]) + "\n")
    with pytest.raises(InvalidInput, match=r"bad.jsonl, line 41: x must be a list of 3 numbers"):
        monitor("bad.jsonl")
    Path("empty.jsonl").write_text("")
    with pytest.raises(InvalidInput, match="is empty"):
        monitor("empty.jsonl")
    with pytest.raises(InvalidInput, match="a mapping is for"):
        monitor("log.jsonl", mapping={"client": "who"})
    with pytest.raises(InvalidInput, match="end in"):
        monitor("log.xlsx")
    with pytest.raises(FileNotFoundError):
        monitor("none.parquet")
    frame = asked(60).to_frame()[[*FEATURES, "label"]]
    frame.loc[55, "age"] = np.inf
    frame.to_csv("far.csv", index=False)
    with pytest.raises(NotFinite, match=r"far.csv: column 'age' has inf in row 55 \(line 57\)"):
        monitor("far.csv")
    Path("junk.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InvalidInput, match="not a Parquet file"):
        monitor("junk.parquet")
    Path("empty.csv").write_text("")
    with pytest.raises(InvalidInput, match="not a CSV file"):
        monitor("empty.csv")
    Path("times.csv").write_text("a,label,time\n1,1,yesterday\n")
    with pytest.raises(InvalidInput, match="neither seconds since the epoch nor an ISO date"):
        monitor("times.csv")
    Path("zero.csv").write_text("a,label\n1,0\n2,1\n")
    with pytest.raises(InvalidInput, match="2\\*y-1"):
        monitor("zero.csv")
    assert monitor("zero.csv", mapping={"yes": "1"}).log.labels == 2


def test_rows_with_empty_cells_are_left_out() -> None:
    frame = asked(160).to_frame()[[*FEATURES, "label", "client"]]
    frame.drop(index=[3, 70]).to_csv("whole.csv", index=False)
    frame.loc[[3, 70], "income"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    with pytest.warns(
        UserWarning, match=r"gaps\.csv: 2 rows with empty cells are left out, those after move up: row 3 "
    ):
        found = monitor("gaps.csv", detail=3)
    assert same(found, monitor("whole.csv", detail=3))


def test_a_last_line_cut_short_by_a_crash_is_left_out() -> None:
    asked(60).save("log.jsonl")
    text = Path("log.jsonl").read_text()
    Path("cut.jsonl").write_text(text[:-30])
    with pytest.warns(UserWarning, match="cut short"):
        assert monitor("cut.jsonl", detail=0).log.rows == 59


def test_odd_mappings_are_refused() -> None:
    for mapping, message in (
        ({"colour": "red"}, "unknown: colour"),
        ({"y": "a", "label": "b"}, "twice"),
        ({"client": ""}, "one text each"),
        ({"client": "a", "time": "a"}, "cannot be two things"),
        ({"x": ["a", "a"]}, "distinct"),
    ):
        with pytest.raises(InvalidInput, match=message):
            as_columns(mapping)
    Path("log.csv").write_text("a,label\n1,1\n2,-1\n")
    Path("plain.csv").write_text("a\n1\n2\n")
    with pytest.raises(InvalidInput, match="no column for 'who'"):
        monitor("log.csv", mapping={"client": "who", "x": ["a"]})
    with pytest.raises(InvalidInput, match="which label means Yes"):
        monitor("plain.csv", mapping={"yes": "1", "x": ["a"]})
