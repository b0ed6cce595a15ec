"""Whatever is wrong with a table is refused with its file, row and column; what only looks odd is read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite, UnsupportedNorm
from overexplain.log import blocks
from overexplain.log.files import read_log
from overexplain.log.tables import csv_fast

L1 = '"{""distance"": ""l1""}"'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "BLOCK", 3)


@pytest.fixture(params=["arrow", "careful"])
def _either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """CSV files are read by Arrow where they are plain; without it nothing is any different."""
    if request.param == "careful":
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.setattr(csv_fast, "FEW", 1)
    monkeypatch.setattr(csv_fast, "WORTH_LOADING", 0)


GOOD = "0,1,1\n" * 4
CSV: list[tuple[str | bytes, type[InvalidInput], str]] = [
    ("", InvalidInput, "not a CSV file that can be read: it is empty"),
    ("\n\n", InvalidInput, "it is empty"),
    ("a,b,label\n" + GOOD + "1,-inf,1\n", NotFinite, r"column 'b' has -inf in row 4 \(line 6\)"),
    ("a,b,label\n" + GOOD + "1,1e400,1\n", NotFinite, r"column 'b' has inf in row 4 \(line 6\)"),
    ("a,b,label\n" + GOOD + '1,"1,5",1\n', InvalidInput, r"'b' must hold numbers, got '1,5' in row 4 \(line 6\)"),
    ("a,b,label\n" + GOOD + "1,0x1F,1\n", InvalidInput, r"'b' must hold numbers, got '0x1F' in row 4 \(line 6\)"),
    ("a,b,label\n" + GOOD + "1,1_000,1\n", InvalidInput, r"'b' must hold numbers, got '1_000' in row 4 \(line 6\)"),
    ("a,b,label\n" + GOOD + "1,'1,1\n", InvalidInput, r'\'b\' must hold numbers, got "\'1" in row 4'),
    ("a,b,label\n" + GOOD + "1,１,1\n", InvalidInput, r"'b' must hold numbers, got '１' in row 4 \(line 6\)"),
    ("a,b,label\n" + GOOD + "1,2024-01-01,1\n", InvalidInput, r"'b' must hold numbers, got '2024-01-01' in row 4"),
    ("a,b,label\n" + GOOD + "1,yes,1\n", InvalidInput, r"'b' must hold numbers, got 'yes' in row 4"),
    ("a,b,label\n" + GOOD + "1,1 2,1\n", InvalidInput, r"'b' must hold numbers, got '1 2' in row 4"),
    ("a,b,label\n" + GOOD + "1,1\0,1\n", InvalidInput, r"'b' must hold numbers, got '1\\x00' in row 4"),
    ("a,b,label\n" + GOOD + "1,1\n", DimensionMismatch, "line 6: 2 cells where the first line names 3 columns"),
    ("a,b,label\n" + GOOD + "1,1,1,1\n", DimensionMismatch, "line 6: 4 cells where the first line names 3"),
    ("a,b,label\n0,1,1,\n0,1,1,\n", DimensionMismatch, "line 2: 4 cells where the first line names 3"),
    ("a,b,label\n" + GOOD + '1,"1,1\n1,1,1\n', InvalidInput, "line 6: not a CSV file .*unexpected end of data"),
    ("a,b,label\n" + GOOD + '1,"1"1,1\n', InvalidInput, "line 6: not a CSV file .*',' expected after '\"'"),
    ("a,b,label\n" + GOOD + '1,"' + "1" * 140_000 + '",1\n', InvalidInput, "line 6: .*field larger than field limit"),
    ("a,b,label\r0,1,1\r", InvalidInput, "line 1: not a CSV file .*new-line character"),
    ("a,b,label\n" + GOOD + "1,1\r2,1\n", InvalidInput, "line 6: not a CSV file .*new-line character"),
    (b"a,b,label\n0,1,1\n1,1,1\nM\xfcller,1,1\n", InvalidInput, "line 4: not UTF-8 text: byte 0xfc .*save the file as UTF-8"),
    (b"a,b\xe9,label\n0,1,1\n", InvalidInput, "line 1: not UTF-8 text: byte 0xe9"),
    ("a,b,label\n0,1,1\n".encode("utf-16"), InvalidInput, "line 1: not UTF-8 text: byte 0xff"),
    ("a,b,label\n0,1,1\n".encode("utf-16-le"), InvalidInput, "line 1: a name with a NUL byte; if the file is UTF-16"),
    ("a,a,label\n0,1,1\n", InvalidInput, "line 1: two columns of the same name: 'a'"),
    ("a,,label\n0,1,1\n", InvalidInput, "non-empty strings"),
    ("a,b,label\n" + GOOD + "0,1,0\n", InvalidInput, r"column 'label' has the label 0 in row 4 \(line 6\): .*2\*y-1.*yes=1"),
    ("a,b,label\n" + GOOD + "0,1,True\n", InvalidInput, r"column 'label' must hold numbers, got 'True' in row 4"),
    ("a,b,cf_a\n0,1,1\n", InvalidInput, "missing: 'cf_b'; say which columns are the features"),
    ("a,cf_a,cf_b\n0,1,1\n", InvalidInput, r"'cf_b'.* explain features that are no columns.*\(x=… in a mapping\)"),
    ("a,cf_a\n0,1\n1,\n1,inf\n", NotFinite, r"the explanation in row 2 \(line 4\) has inf in column 'cf_a'"),
    ("a,b,cf_a,cf_b\n0,1,1,1\n0,1,,\n0,1,,inf\n", NotFinite, r"explanation in row 2 \(line 4\) has inf in column 'cf_b'"),
    ("label,time\n1,1\n", InvalidInput, "no column that could be a feature"),
    ("a,time\n1,yesterday\n", InvalidInput, r"column 'time' has 'yesterday' in row 0 \(line 2\): neither seconds"),
    ("a,time\n1,1e400\n", NotFinite, r"column 'time' has inf in row 0 \(line 2\); time must be finite"),
    ("a,time\n1,99999-01-01\n", InvalidInput, "column 'time' has '99999-01-01' in row 0"),
    ("a,status\n1,lost\n", InvalidInput, r"column 'status', row 0 \(line 2\): status must be one of"),
    ("a,status\n1,\n1,asked\n", InvalidInput, r"column 'status', row 1 \(line 3\): .*has no explanation"),
    ("a,mechanism\n1,\n1,l1\n", InvalidInput, r"column 'mechanism', row 1 \(line 3\): not JSON"),
    ('a,mechanism\n1,"{""distance"": ""l3""}"\n', UnsupportedNorm, r"column 'mechanism', row 0 \(line 2\): unknown norm"),
    ('a,client,label\n1,"a\nb",1\n2,c,1\n2,c,1\nx,c,1\n', InvalidInput, r"got 'x' in row 3 \(line 6\)"),
    ("a,label\n1,1\n\n\n2,1\n3,x\n", InvalidInput, r"'label' must hold numbers, got 'x' in row 2 \(line 6\)"),
]  # fmt: skip


@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize(("text", "error", "message"), CSV)
def test_a_csv_file_is_refused_with_its_place(text: str | bytes, error: type[InvalidInput], message: str) -> None:
    Path("log.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidInput, match=message) as caught:
        read_log("log.csv")
    assert type(caught.value) is error
    assert str(caught.value).startswith("log.csv")
    assert len(str(caught.value)) < 700


ODD: list[tuple[str, list[list[float]]]] = [
    ("a,b,label\n", []),
    ("a,b\n1,2", [[1, 2]]),
    ("a,b\r\n 1 ,+2e0\r\n", [[1, 2]]),
    ('"a","b"\n"1","2.5"\n.5,1.\n', [[1, 2.5], [0.5, 1]]),
    ("a,b\nTrue,false\n1,0\n", [[1, 0], [1, 0]]),
    ("a,b\n12345678901234567890123,1e-400\n", [[12345678901234567890123.0, 0.0]]),
    ("a,b,client\n1,2,'tis\n3,4,NaN\n", [[1, 2], [3, 4]]),
    ("a,b,mechanism\n1,2," + L1 + "\n3,4,\n5,6," + L1, [[1, 2], [3, 4], [5, 6]]),
    ("x\ud7ff,\U0001f600\n1,2\n", [[1, 2]]),
]


@pytest.mark.usefixtures("_either")
@pytest.mark.parametrize(("text", "points"), ODD)
def test_what_only_looks_odd_is_read(text: str, points: list[list[float]]) -> None:
    Path("log.csv").write_bytes(text.encode())
    assert read_log("log.csv").points.tolist() == points


def test_names_of_clients_are_no_gaps() -> None:
    Path("log.csv").write_text("a,client\n1,NaN\n2,null\n3,\n4,NA\n5,007\n")
    assert read_log("log.csv").clients.tolist() == ["NaN", "null", None, "NA", "007"]


def table(**columns: Any) -> None:
    pq.write_table(pa.table(columns), "log.parquet")


PARQUET: list[tuple[dict[str, Any], type[InvalidInput], str]] = [
    ({"a": [1.0] * 4 + [np.inf]}, NotFinite, r"column 'a' has inf in row 4 \(counted from 0\)"),
    ({"a": ["1", "2"]}, InvalidInput, "column 'a' must hold numbers: it is string"),
    ({"a": pa.array(["1", "2"]).dictionary_encode()}, InvalidInput, "column 'a' must hold numbers: it is string"),
    ({"a": pa.array([1, 2], pa.timestamp("s"))}, InvalidInput, "column 'a' must hold numbers: it is timestamp"),
    ({"a": pa.array([1, 2], pa.duration("s"))}, InvalidInput, "column 'a' must hold numbers: it is duration"),
    ({"a": [{"b": 1.0}, {"b": 2.0}]}, InvalidInput, "column 'a' must hold numbers: it is struct"),
    ({"a": [[1.0], [2.0]]}, InvalidInput, "column 'a' must hold numbers: it is list"),
    ({"a": [b"1", b"2"]}, InvalidInput, "column 'a' must hold numbers: it is binary"),
    ({"a": [1.0], "label": [True]}, InvalidInput, "column 'label' must hold numbers: it is bool"),
    ({"a": [1.0], "label": [2]}, InvalidInput, r"column 'label' has the label 2 in row 0 .*2\*y-1"),
    ({"a": [1.0], "client": [b"\xff"]}, InvalidInput, "column 'client' must hold texts: it is binary"),
    ({"a": [1.0], "client": [{"b": 1}]}, InvalidInput, "column 'client' must hold texts: it is struct"),
    ({"a": [1.0], "status": [2]}, InvalidInput, "column 'status' must hold texts: it is int64"),
    ({"a": [1.0], "mechanism": [True]}, InvalidInput, "column 'mechanism' must hold texts: it is bool"),
    ({"a": [1.0], "time": [[1.0]]}, InvalidInput, "column 'time' must hold numbers: it is list"),
    ({"a": [1.0], "time": ["noon"]}, InvalidInput, "column 'time' has 'noon' in row 0"),
]


@pytest.mark.parametrize(("columns", "error", "message"), PARQUET)
def test_a_parquet_file_is_refused_with_its_place(
    columns: dict[str, Any], error: type[InvalidInput], message: str
) -> None:
    table(**columns)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_log("log.parquet")
    assert type(caught.value) is error
    assert str(caught.value).startswith("log.parquet: ")


def test_parquet_columns_of_the_same_name() -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]), "log.parquet")
    with pytest.raises(InvalidInput, match="two columns of the same name: 'a'"):
        read_log("log.parquet")


def test_a_name_with_a_dot_is_a_name() -> None:
    table(**{"a.b": [1.0], "a": [{"b": 2.0}], "label": [1]})
    assert read_log("log.parquet", mapping={"x": ["a.b"]}).points.tolist() == [[1.0]]


def test_parquet_files_that_are_none() -> None:
    table(a=np.arange(100.0), label=np.ones(100))
    whole = Path("log.parquet").read_bytes()
    for content in (b"", b"PAR1", whole[:-1], whole[: len(whole) // 2], b"PARE" + whole[4:-4] + b"PARE", b"a,b\n1,2\n"):
        Path("bad.parquet").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"^bad\.parquet: not a Parquet file that can be read: "):
            read_log("bad.parquet")


def _varint(number: int) -> bytes:
    """A number as the footer of a Parquet file writes it: zigzag, seven bits a byte."""
    number, found = 2 * number, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_a_footer_that_claims_ten_million_rows() -> None:
    table(a=np.arange(100.0))
    whole = Path("log.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    start = len(whole) - 8 - footer
    claimed = whole[start:-8].replace(_varint(100), _varint(10**7))
    assert claimed != whole[start:-8]
    Path("bad.parquet").write_bytes(whole[:start] + claimed + len(claimed).to_bytes(4, "little") + b"PAR1")
    assert pq.ParquetFile("bad.parquet").metadata.num_rows == 10**7
    with pytest.raises(InvalidInput, match=r"bad\.parquet: damaged: it says that it has 10,000,000 rows, but has 100"):
        read_log("bad.parquet")


RECORDS: list[tuple[str, dict[str, Any], str]] = [
    ('{"a": 1}\n{"a": "x"}\n', {"x": "a"}, r"column 'a' must hold numbers, got 'x' in row 1 \(line 2\)"),
    ('{"a": 1}\n{"a": 1, "a": 2}\n', {"x": "a"}, "line 2: the same key twice"),
    ('{"a": 1}\n{"a": NaN}\n', {"x": "a"}, "line 2: NaN is no number"),
    ('{"a": 1}\n{"a": 1e999}\n', {"x": "a"}, r"column 'a' has inf in row 1 \(line 2\)"),
    ('{"a": 1}\n{"a": 1%s}\n' % ("0" * 400), {"x": "a"}, r"column 'a' has an integer too large .* row 1 \(line 2\)"),
    ('{"a": 1}\n[1]\n', {"x": "a"}, "line 2: every line must be a JSON object"),
    ('{"a": 1}\n{"a": \n', {"x": "a"}, "line 2: not JSON: Expecting value at column"),
    ('{"a": 1', {"x": "a"}, "line 1: not JSON"),
    ('{"a": 1}\n{"a": "\xff"}\n', {"x": "a"}, "line 2: not JSON: invalid"),
    ("[" * 10_000 + "\n", {"x": "a"}, "line 1: nested too deep"),
    ("", {"x": "a"}, "is empty: there is no record"),
    ("\n \n", {"x": "a"}, "is empty: there is no record"),
    ('{"a": 1}\n', {"x": "b"}, "no column for 'b'; it has 'a'"),
    ('{"a": 1, "y": 1}\n' * 3 + '{"a": 1, "b": 2}\n', {"yes": "1", "y": "y"}, "line 4: 'b' is in no record before"),
    ('{"v": [1, 2]}\n{"v": [1]}\n', {"x": "v"}, r"column 'v' must hold 2 numbers, got 1 entry in row 1 \(line 2\)"),
    ('{"v": [1, 2]}\n' * 3 + '{"v": [1]}\n', {"x": "v"}, r"must hold 2 numbers, got 1 entry in row 3 \(line 4\)"),
    ('{"v": [1, 2]}\n{"v": 5}\n', {"x": "v"}, r"column 'v' must hold 2 numbers, got 5 in row 1 \(line 2\)"),
    ('{"v": [1, 2]}\n{"v": [1, "2"]}\n', {"x": "v"}, r"column 'v' must hold numbers, got '2' in row 1 \(line 2\)"),
    ('{"v": [1, 2]}\n{"v": [1, true]}\n', {"x": "v"}, r"column 'v' must hold numbers, got True in row 1"),
    ('{"v": [1, 2]}\n{"v": [1, 1%s]}\n' % ("0" * 400), {"x": "v"}, "integer too large for a float64 in row 1"),
    ('{"v": [1, 2], "c": [1]}\n', {"x": "v", "cf": "c"}, "column 'c' must hold 2 numbers, got 1 entry in row 0"),
    ('{"v": [1, 2], "c": 1}\n', {"x": "v", "cf": "c"}, "column 'c' must hold a list of 2 numbers"),
    ('{"a": 1, "who": [1]}\n', {"x": "a", "client": "who"}, r"column 'who' must hold texts, got \[1\] in row 0"),
    ('{"a": 1, "who": 1.5}\n', {"x": "a", "client": "who"}, "column 'who' must hold texts, got 1.5 in row 0"),
    ('{"a": 1, "t": [1]}\n', {"x": "a", "t": "t"}, r"column 't' has \[1\] in row 0 .*neither seconds"),
    ('{"a": 1, "t": true}\n', {"x": "a", "t": "t"}, "column 't' has True in row 0"),
]


@pytest.mark.parametrize(("text", "mapping", "message"), RECORDS)
def test_records_are_refused_with_their_place(text: str, mapping: dict[str, Any], message: str) -> None:
    Path("log.jsonl").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidInput, match=message) as caught:
        read_log("log.jsonl", mapping=mapping)
    assert str(caught.value).startswith("log.jsonl")


def test_vectors_of_parquet_are_refused_with_their_place() -> None:
    for rows, message in (
        ([[1.0, 2.0], [1.0]], r"column 'v' must hold 2 numbers, got 1 entry in row 1 \(counted from 0\)"),
        ([[1.0, 2.0]] * 3 + [[1.0]], "must hold 2 numbers, got 1 entry in row 3"),
        ([[1.0, np.inf]], r"column 'v' has inf in row 0 .*\(entry 1\)"),
        ([["a"]], "column 'v' must hold numbers: it is string"),
    ):
        table(v=rows)
        with pytest.raises(InvalidInput, match=message):
            read_log("log.parquet", mapping={"x": "v"})


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", "log.jsonl"])
def test_a_mapped_column_that_is_not_there_is_named(name: str) -> None:
    """Whatever else the slip leads to (the label taken for a feature, one without an explanation) is not told."""
    frame = pd.DataFrame({"a": [1.0], "decision": ["granted"], "cf_a": [2.0]})
    if name.endswith(".csv"):
        frame.to_csv(name, index=False)
    elif name.endswith(".parquet"):
        frame.to_parquet(name)
    else:
        frame.to_json(name, orient="records", lines=True)
    with pytest.raises(InvalidInput) as caught:
        read_log(name, mapping={"y": "decison", "yes": "granted"})
    assert str(caught.value) == f"{name}: no column for 'decison'; it has 'a', 'decision', 'cf_a'"


def test_many_columns_are_read() -> None:
    names = ",".join(f"c{i}" for i in range(3_000))
    Path("log.csv").write_text(names + "\n" + ",".join(["1"] * 3_000) + "\n")
    assert read_log("log.csv").points.shape == (1, 3_000)
