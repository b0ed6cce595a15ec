"""Logs in files of every kind: round trips are exact, columns of other names are mapped, the fast readers are used."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Mahalanobis
from overexplain.log import blocks
from overexplain.log.files import check_written, read_log, write_log
from overexplain.log.jsonl import fast as jsonl_fast
from overexplain.log.jsonl import formats
from overexplain.log.jsonl.formats import JsonlWriter
from overexplain.log.querylog import QueryLog, Row, Status
from overexplain.log.tables import csv_fast, csv_tables
from overexplain.log.tables.text_cells import with_apostrophe, without_apostrophe

L1, L2 = Mechanism("l1"), Mechanism("lp:1.5", robustness="l2", radius=0.1)
TABLES = ("log.csv", "log.parquet")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def long_log(rows: int = 300, features: Any = ("age", "income"), rng: int = 0) -> QueryLog:
    """Rows of all kinds, in random order, under mechanisms that come one after the other."""
    draw = np.random.default_rng(rng)
    log = QueryLog(features)
    for i in range(rows):
        x = draw.normal(size=2) * 10.0 ** draw.integers(-8, 20, size=2)
        known: dict[str, Any] = {"client": draw.choice(["ann", "bob", "=1+1", 'a,"b"\n', None]), "time": 1.7e9 + i / 7}
        known["source"] = None if i % 3 else "api"
        kind = draw.integers(4)
        if kind == 0:
            log.add_label(x, 1 if x[0] > 0 else -1, **known)
        elif kind == 1:
            log.add_explanation(x, draw.normal(size=2), mechanism=L1 if i < rows // 2 else L2, **known)
        else:
            status = Status.NONE if kind == 2 else Status.FAILED
            log.add_explanation(x, None, label=-1, mechanism=None if i % 5 else L2, status=status, **known)
    return log


def same(one: QueryLog, other: QueryLog) -> None:
    """Equal, bit by bit."""
    assert one == other
    assert one.dimension == other.dimension
    for name in ("points", "explanations", "times"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet", "LOG.Parquet", "log.CSV"])
@pytest.mark.parametrize("features", [("age", "income"), None, ("=cmd", 'größe, "netto"')])
def test_every_kind_of_file_gives_the_log_back(name: str, features: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 70)
    monkeypatch.setattr(formats, "CHUNK", 64)
    log = long_log(features=features)
    log.save(name)
    same(QueryLog.load(name), log)
    same(read_log(Path(name)), log)
    assert [path.name for path in Path().iterdir()] == [name]


@pytest.mark.parametrize("name", ["log.jsonl", *TABLES])
def test_logs_without_rows(name: str) -> None:
    QueryLog(["a", "b"]).save(name)
    read = QueryLog.load(name)
    assert (len(read), read.features, read.dimension) == (0, ("a", "b"), 2)


texts = st.text(alphabet="a'=+-@\t\r\n\",;\\ äß\0", max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(texts, st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=5), texts)
def test_any_text_and_number_survives_a_table(rows: list[tuple[str, float]], name: str) -> None:
    log = QueryLog(["x" + name, name + "y"])
    for text, number in rows:
        log.add_label([number, 1.0], 1, client=text or None, source=text or "a", time=number)
    for path in TABLES:
        try:
            log.save(path)
        except InvalidInput as error:
            assert "names of features" in str(error)
            assert "\0" in name
            continue
        same(QueryLog.load(path), log)


@given(texts)
def test_formulas_are_disarmed_and_come_back(text: str) -> None:
    assert without_apostrophe(with_apostrophe(text)) == text
    assert with_apostrophe(text)[:1] not in tuple("=+-@\t\r")


def test_a_spreadsheet_sees_no_formula() -> None:
    log = QueryLog(["=a"])
    log.add_label([-1.0], 1, client="=HYPERLINK()", source="'+x")
    log.save("log.csv")
    assert Path("log.csv").read_bytes().decode().split("\r\n")[:2] == [
        "'=a,label,cf_=a,status,mechanism,client,time,source",
        "-1.0,1,,not-asked,,'=HYPERLINK(),,''+x",
    ]


def test_what_a_table_cannot_hold_is_refused_and_nothing_written() -> None:
    for text, why in (("", "is empty"), ("\ud800", "is no Unicode text"), ("a" * 131_072, "is too long")):
        log = QueryLog(["a"])
        log.add_label([[1.0], [2.0]], [1, 1], client=["ann", text])
        with pytest.raises(InvalidInput, match=f"the client of row 1 {why}"):
            log.save("log.csv")
    log = QueryLog(["a"])
    log.add_label([1.0], 1, client="\ud800")
    with pytest.raises(InvalidInput, match="client is no Unicode"):
        log.save("log.parquet")
    for name in ("\ufeffa", "a\0"):
        with pytest.raises(InvalidInput, match="names of features"):
            QueryLog([name]).save("log.csv")
    with pytest.raises(InvalidInput, match="no Unicode text"):
        QueryLog(["\ud800"])
    for path in TABLES:
        with pytest.raises(InvalidInput, match="two columns of the same name: 'label'"):
            QueryLog(["label"]).save(path)
    assert not list(Path().iterdir())


def test_a_long_mechanism_is_refused_by_csv_and_kept_by_parquet() -> None:
    log = QueryLog()
    matrix = np.eye(100) + 1 / 3
    log.add_explanation(np.zeros(100), np.ones(100), mechanism=Mechanism(Mahalanobis(matrix)))
    with pytest.raises(InvalidInput, match="the mechanism of row 0 is too long"):
        log.save("log.csv")
    log.save("log.parquet")
    same(QueryLog.load("log.parquet"), log)


def test_names_of_other_kinds_are_refused() -> None:
    for path in ("log.txt", "log", "log.jsonl.gz", "log.csv.gz", "log.sqlite.bak"):
        with pytest.raises(InvalidInput, match=r"names end in \.jsonl, \.csv, \.parquet, \.json"):
            QueryLog().save(path)
        Path(path).write_bytes(b"\x1f\x8b")
        with pytest.raises(InvalidInput, match=r"names end in \.jsonl, \.csv, \.parquet, \.json, \.sqlite$"):
            QueryLog.load(path)
    with pytest.raises(InvalidInput, match="how many features"):
        write_log(QueryLog(), "run.sqlite")
    Path("folder.jsonl").mkdir()
    with pytest.raises(InvalidInput, match="not a regular file"):
        check_written("folder.jsonl")
    with pytest.raises(InvalidInput, match=r"cannot read the log folder\.jsonl: it is a folder"):
        read_log("folder.jsonl")
    with pytest.raises(InvalidInput, match="there is no folder"):
        QueryLog(["a"]).save("nowhere/log.parquet")
    assert check_written("new.PARQUET") is None


def test_dice_files_are_read_and_written() -> None:
    log = QueryLog(["a", "b"])
    log.add_explanation([[1.0, 2.0], [3.0, 4.0]], [[1.0, 5.0], [np.nan, np.nan]], [1, -1], Mechanism(None, slack=None))
    log.save("log.json")
    read = QueryLog.load("log.json")
    assert np.array_equal(read.points, log.points)
    assert np.array_equal(read.explanations, log.explanations, equal_nan=True)
    assert QueryLog.load("log.json", mechanism=L1).mechanism_of(0) == L1
    assert [len(block) for block in blocks.read_blocks(Path("log.json"))] == [2]


def test_runs_are_read() -> None:
    from overexplain.log.store.run import Outcome, Run

    with Run.create("run.sqlite", plan={"seed": 0}, dimension=2, features=["a", "b"], mechanism=L1, budget=3) as run:
        question = run.question("classify", np.array([1.0, 2.0]))
        question.sending()
        question.heard(Outcome("label", 1, None))
        expected = run.log()
    assert len(expected) == 1
    same(QueryLog.load("run.sqlite"), expected)
    with pytest.raises(InvalidInput, match="a run has its own names"):
        read_log("run.sqlite", mapping={"client": "who"})


def test_terms_reach_what_states_none() -> None:
    log = QueryLog(["a", "b"])
    log.add_explanation([1.0, 2.0], [1.0, 3.0], mechanism=L2)
    log.add_explanation([1.0, 2.0], [1.0, 3.0])
    log.add_label([1.0, 2.0], 1)
    for name in ("log.jsonl", *TABLES):
        log.save(name)
        read = read_log(name, mechanism=L1)
        assert [read.mechanism_of(i) for i in range(3)] == [L2, L1, None]
    with pytest.raises(InvalidInput, match="Mechanism or None"):
        read_log("log.jsonl", mechanism="l1")  # type: ignore[arg-type]


# The fast readers and writers are used, and without them the result is the same


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_plain_rows_are_read_fast(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = QueryLog(["age", "income"])
    x = np.random.default_rng(0).normal(size=(500, 2))
    client = "ann" if name == "log.jsonl" else 'ann, "the first"'  # marks in texts of JSON need a closer look
    log.add_explanation(x, x + 1, np.ones(500), L2, client=client, time=1.7e9)
    log.save(name)
    monkeypatch.setattr(csv_fast, "WORTH_LOADING", 0)
    calls: list[int] = []
    careful_line, careful_records = formats._Reader._take, csv_tables._records
    monkeypatch.setattr(formats._Reader, "_take", lambda *given: (calls.append(1), careful_line(*given))[1])
    monkeypatch.setattr(csv_tables, "_records", lambda *given: (calls.append(1), careful_records(*given))[1])
    same(read_log(name), log)
    assert len(calls) <= 2  # the header, and the mechanism of JSON Lines


def test_without_arrow_and_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    log = long_log()
    log.save("log.csv")
    log.save("log.parquet")
    for module in ("pyarrow", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    same(read_log("log.csv"), log)
    for ask in (lambda: read_log("log.parquet"), lambda: log.save("new.parquet")):
        with pytest.raises(InvalidInput, match=r'pip install "overexplain\[parquet\]"'):
            ask()


def test_many_rows_are_written_as_one_by_one() -> None:
    log = long_log()
    log.save("fast.jsonl")
    with JsonlWriter("slow.jsonl", log.features, None, log.mechanism) as writer:
        for row in log:
            writer.write(row)
    assert Path("fast.jsonl").read_bytes() == Path("slow.jsonl").read_bytes()


def test_mechanisms_are_numbered_as_the_file_defines_them() -> None:
    log = blocks.some_rows(None, [L1, L2], np.ones((2, 1)), 0, np.ones((2, 1)), Status.ASKED, [1, 0])
    with JsonlWriter("log.jsonl") as writer:
        writer.write(Row(np.array([1.0]), 1))
        writer.write(log)
        writer.write(log)
        with pytest.raises(DimensionMismatch, match="1 features, the rows 2"):
            writer.write(long_log(3))
        writer.write(QueryLog())
    assert [row.mechanism for row in QueryLog.load("log.jsonl")] == [None, L2, L1, L2, L1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), max_size=4))
def test_numbers_are_written_digit_for_digit(rows: list[list[float]]) -> None:
    found = jsonl_fast.number_texts(np.array(rows).reshape(-1, 2), formats.to_json)
    assert found == [json.dumps(row) for row in rows]
    column = np.array(rows).reshape(-1)
    assert jsonl_fast.number_texts(column, formats.to_json) == [repr(value) for value in column.tolist()]


def test_numbers_at_the_borders_are_written_digit_for_digit() -> None:
    borders = np.array([1e-4, 1e16, 1e15, 1e17, 1e-5, 1.0, 0.1, 2.0**53, 5e-324, 1.7e308])
    around = np.concatenate([borders, np.nextafter(borders, 0), np.nextafter(borders, np.inf), -borders, [0.0, -0.0]])
    rng = np.random.default_rng(0)
    bits = rng.integers(2**64, size=20_000, dtype=np.uint64).view(np.float64)
    mild = rng.normal(size=20_000) * 10.0 ** rng.integers(-5, 17, size=20_000)
    values = np.concatenate([around, bits[np.isfinite(bits)], mild])[:, None]
    assert jsonl_fast.number_texts(values, formats.to_json) == [json.dumps(row) for row in values.tolist()]


# Columns of other names, records of other origin, vectors


MAPPING = {"x": ["age", "income"], "y": "decision", "yes": "granted", "cf": "to_", "client": "who", "t": "ts"}
RECORDS = [
    {"id": 1, "age": 30, "income": 2.5, "decision": "granted", "who": "ann", "ts": "2024-01-01T00:00:01Z"},
    {"id": 2, "age": 31, "income": 1, "decision": "denied", "to_age": 31.0, "to_income": 2.0, "who": 7, "ts": 5},
    {"id": 3, "age": 32.0, "income": 0.5, "decision": None, "who": None, "ts": None, "note": {"a": ['"']}},
]


def foreign(name: str, records: list[dict[str, Any]]) -> None:
    if name.endswith(".jsonl"):
        Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        plain = [{**r, "note": None, "who": None if r["who"] is None else str(r["who"])} for r in records]
        frame = pd.DataFrame(plain).assign(ts=[None if r["ts"] is None else str(r["ts"]) for r in records])
        frame.to_csv(name, index=False) if name.endswith(".csv") else frame.to_parquet(name)


@pytest.mark.parametrize("name", ["other.jsonl", "other.csv", "other.parquet"])
def test_columns_of_other_names_are_mapped(name: str) -> None:
    foreign(name, RECORDS)
    log = read_log(name, mapping=MAPPING, mechanism=L1)
    assert log.features == ("age", "income")
    assert log.points.tolist() == [[30.0, 2.5], [31.0, 1.0], [32.0, 0.5]]
    assert log.labels.tolist() == [1, -1, 0]
    assert log.explanations[1].tolist() == [31.0, 2.0]
    assert log.status.tolist() == [0, 1, 0]
    assert log.clients.tolist() == ["ann", "7", None]
    assert log.times[:2].tolist() == [1704067201.0, 5.0]
    assert np.isnan(log.times[2])
    assert log.mechanism_of(1) == L1


def test_vectors_in_one_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 2)
    records = [
        {"point": [1, 2.5], "cf": None, "y": 1},
        {"point": [3.0, 4.0], "cf": [3.0, 5.0], "y": -1},
        {"point": [5.0, 6.0], "cf": [], "y": -1},
        {"point": [7.0, 8.0], "y": -1},
    ]
    foreign("vectors.jsonl", records)
    lists = {"point": [r["point"] for r in records], "cf": [r.get("cf") for r in records], "y": [1, -1, -1, -1]}
    pq.write_table(
        pa.table({**lists, "point": pa.array([[float(v) for v in r] for r in lists["point"]])}), "vectors.parquet"
    )
    fixed = pa.array([[float(v) for v in r] for r in lists["point"]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({**lists, "point": fixed}), "fixed.parquet")
    for name in ("vectors.jsonl", "vectors.parquet", "fixed.parquet"):
        log = read_log(name, mapping={"x": "point", "cf": "cf", "y": "y"}, mechanism=L1)
        assert log.features is None
        assert log.points.tolist() == [[1.0, 2.5], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
        assert log.status.tolist() == [0, 1, 0, 0]
        assert log.explanations[1].tolist() == [3.0, 5.0]
        columns = blocks.as_columns({"x": "point", "cf": "cf", "y": "y"}, ["a", "b"])
        assert next(iter(blocks.read_blocks(Path(name), columns))).features == ("a", "b")
        with pytest.raises(InvalidInput, match="holds 2 numbers a row, not 3"):
            next(iter(blocks.read_blocks(Path(name), blocks.as_columns({"x": "point"}, ["a", "b", "c"]))))


def test_records_without_named_features() -> None:
    foreign("other.jsonl", [{"a": 1, "b": 2, "who": "ann", "ok": True}, {"a": 2, "b": 3, "ok": False}])
    log = read_log("other.jsonl", mapping={"client": "who", "y": "ok", "yes": "true"})
    assert log.features == ("a", "b")
    assert log.labels.tolist() == [1, -1]
    assert log.clients.tolist() == ["ann", None]


def test_a_record_cut_short_is_left_out() -> None:
    Path("cut.jsonl").write_text('{"a": 1}\n\n{"a": 2}\n{"a": 3')
    with pytest.warns(UserWarning, match="line 4: the last line was cut short") as caught:
        log = read_log("cut.jsonl", mapping={"x": "a"})
    assert log.points.ravel().tolist() == [1.0, 2.0]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.jsonl"])
def test_a_yes_that_occurs_nowhere_is_warned_of(name: str) -> None:
    """Only if decisions are there at all, and none is Yes."""
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "ok": ["granted", None, "denied"]})
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    elif name.endswith(".parquet"):
        frame.to_parquet(name)
    else:
        frame.to_json(name, orient="records", lines=True)
    with pytest.warns(UserWarning, match=f"{name}: no label is 'Granted', which .* letter by letter"):
        log = read_log(name, mapping={"y": "ok", "yes": "Granted"})
    assert log.labels.tolist() == [-1, 0, -1]
    assert read_log(name, mapping={"y": "ok", "yes": "granted"}).labels.tolist() == [1, 0, -1]


def test_without_decisions_there_is_no_yes_to_miss() -> None:
    Path("log.csv").write_text("a,ok\n1,\n2,\n")
    assert read_log("log.csv", mapping={"y": "ok", "yes": "granted"}).labels.tolist() == [0, 0]


def test_our_own_lines_take_no_mapping() -> None:
    long_log(3).save("log.jsonl")
    with pytest.raises(InvalidInput, match="a mapping is for other records"):
        read_log("log.jsonl", mapping={"client": "who"})
    Path("other.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(InvalidInput, match="other records are read by a mapping"):
        read_log("other.jsonl")


def test_an_index_of_pandas_is_no_feature() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "label": [1, -1]}, index=pd.Index(["u", "v"], name="client"))
    frame.to_parquet("log.parquet")
    assert read_log("log.parquet").features == ("a",)
    assert read_log("log.parquet", mapping={"client": "client", "x": "a"}).clients.tolist() == ["u", "v"]


def test_parquet_columns_of_many_types() -> None:
    from decimal import Decimal

    pq.write_table(
        pa.table(
            {
                "a": pa.array([1, 2], pa.uint8()),
                "b": pa.array([Decimal("4.1"), Decimal("2.5")]),
                "c": pa.array(np.array([0.5, 1.5], np.float16)),
                "d": pa.array([True, False]),
                "e": pa.array([1.0, 2.0]).dictionary_encode(),
                "label": pa.array([1, None], pa.int64()),
                "client": pa.array(["ann", "bob"]).dictionary_encode(),
                "time": pa.array([1_500, None], pa.timestamp("ms", "Europe/Berlin")),
                "source": pa.nulls(2),
                "status": pa.array([None, "none"], pa.large_string()),
            }
        ),
        "types.parquet",
    )
    log = read_log("types.parquet")
    assert log.points.tolist() == [[1.0, 4.1, 0.5, 1.0, 1.0], [2.0, 2.5, 1.5, 0.0, 2.0]]
    assert log.labels.tolist() == [1, 0]
    assert log.clients.tolist() == ["ann", "bob"]
    assert log.times[0] == 1.5
    assert log.sources.tolist() == [None, None]
    assert log.status.tolist() == [0, 2]
    for dates in (pa.array([1, 2], pa.date32()), pa.array([86_400_000, 172_800_000], pa.date64())):
        pq.write_table(pa.table({"a": [1.0, 2.0], "time": dates}), "dates.parquet")
        assert read_log("dates.parquet").times.tolist() == [86_400.0, 172_800.0]


def test_memory_is_not_given_away(monkeypatch: pytest.MonkeyPatch) -> None:
    from overexplain.log import files

    long_log(300).save("log.parquet")
    monkeypatch.setattr(files, "_memory", lambda: 300 * 2 * 16)
    with pytest.raises(InvalidInput, match="do not fit into memory"):
        read_log("log.parquet")
    monkeypatch.setattr(files, "_memory", lambda: 300 * 2 * (2 * 16 + files.ROW))
    assert len(read_log("log.parquet")) == 300


def test_blank_lines_and_other_line_ends() -> None:
    text = "a,label\n1,1\n2,-1"
    for changed in (
        text,
        text + "\n",
        text.replace("\n", "\r\n"),
        "\ufeff" + text,
        text.replace("\n", "\n\n"),
        "\n" + text,
    ):
        Path("log.csv").write_bytes(changed.encode())
        log = read_log("log.csv")
        assert (log.features, log.points.ravel().tolist(), log.labels.tolist()) == (("a",), [1.0, 2.0], [1, -1])
    Path("one.csv").write_text("a\n1\n\n2\n")
    assert read_log("one.csv").points.ravel().tolist() == [1.0, 2.0]


def test_near_misses_are_named() -> None:
    Path("log.csv").write_text("cafe\u0301,Label \n1,1\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"'caf\\xe9' is not 'cafe\\u0301'"):
        read_log("log.csv", mapping={"x": ["caf\u00e9"]})
    with pytest.raises(InvalidInput, match="'label' is not 'Label '"):
        read_log("log.csv", mapping={"x": ["cafe\u0301"], "y": "label"})


def test_warnings_name_the_caller_of_load() -> None:
    long_log(3).save("log.jsonl")
    Path("cut.jsonl").write_bytes(Path("log.jsonl").read_bytes()[:-9])
    for ask in (QueryLog.load, read_log, lambda path: list(blocks.read_blocks(Path(path)))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask("cut.jsonl")
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(
    ("content", "name", "mapping", "said"),
    [
        ('{"format": "overexplain-log", "version": 1}\n{"x": [1.0], "y": 1}\n{"x": [1', "cut.jsonl", None, "cut short"),
        ("age,decision\n1,granted\n", "slip.csv", {"y": "decision", "yes": "Granted"}, "no label is 'Granted'"),
    ],
)
def test_a_warning_names_the_line_that_asked_for_the_file(content, name, mapping, said) -> None:
    Path(name).write_text(content)
    with pytest.warns(UserWarning, match=said) as caught:
        QueryLog.load(name, mapping=mapping)
    assert [warning.filename for warning in caught] == [__file__]
