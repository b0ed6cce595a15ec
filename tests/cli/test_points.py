"""Points from files: the same numbers whatever the format, in flat memory, and every fault named with its line."""

from __future__ import annotations

import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from overexplain.cli import points_csv, points_json, points_parquet
from overexplain.cli.points import open_points
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite

FEATURES = ("age", "income")
Read = tuple[list[list[float]], list[str] | None, tuple[str, ...]]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_blocks(monkeypatch):
    for module in (points_csv, points_json, points_parquet):
        monkeypatch.setattr(module, "BLOCK", 3)


def read(name: str, features: tuple[str, ...] | None = FEATURES, dimension: int = 2) -> Read:
    """All points of a file, their keys, and the columns that are no features."""
    with open_points(Path(name), features, dimension) as points:
        blocks = list(points.blocks)
        done, total = points.progress()
        assert done == total
    keys = None if points.key is None else [key for block in blocks for key in block.keys]
    assert points.key is not None or all(block.keys is None for block in blocks)
    return [row for block in blocks for row in block.points.tolist()], keys, points.extras


def write(name: str, text: str | bytes) -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


@pytest.mark.usefixtures("small_blocks")
def test_every_format_gives_the_same_points_in_the_order_of_the_features() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(10, 2)) * 10.0 ** rng.integers(-300, 300, size=(10, 2))).tolist()
    lines = [f"{income!r},n{i},{age!r}" for i, (age, income) in enumerate(rows)]
    write("a.csv", "\n".join(["income,id,age", *lines]) + "\n")
    write(
        "quoted.csv",
        "\r\n".join(['"income","id","age"', *(f'"{x}","{k}",{y}' for x, k, y in (r.split(",") for r in lines))]),
    )
    entries = [{"income": income, "id": f"n{i}", "age": age} for i, (age, income) in enumerate(rows)]
    write("a.jsonl", "\n".join(map(json.dumps, entries)))
    parquet.write_table(pyarrow.Table.from_pylist(entries), "a.parquet")
    for name in ("a.csv", "quoted.csv", "a.jsonl", "a.parquet"):
        assert read(name) == (rows, [f"n{i}" for i in range(10)], ("id",)), name


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_numbers_are_read_exactly(tmp_path_factory, values) -> None:
    path = tmp_path_factory.mktemp("exact") / "x.csv"
    path.write_text("age,income\n" + "".join(f"{value!r},{-value!r}\n" for value in values))
    assert read(str(path))[0] == [[value, -value] for value in values]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("text", ["1,2\n3,4\n5,6\n7,8\n", "a,b\n1,2\n3,4\n5,6\n7,8", "\n1,2\n\n3,4\n5,6\n 7 , 8.0\n\n"])
def test_without_names_columns_are_taken_in_order_with_or_without_a_header(text) -> None:
    assert read(write("x.csv", text), None) == ([[1, 2], [3, 4], [5, 6], [7, 8]], None, ())
    assert read(write("x.jsonl", "[1, 2]\n[3, 4]\n"), None) == ([[1, 2], [3, 4]], None, ())
    assert read(write("x.jsonl", "[1, 2]\n[3, 4]\n"), FEATURES) == ([[1, 2], [3, 4]], None, ())


@pytest.mark.usefixtures("small_blocks")
def test_csv_as_spreadsheets_write_it() -> None:
    text = '\ufeffage, income ,"name, first"\r\n1,2,"Doe, ""J"""\r\n\r\n3,4,"two\nlines"\r\n5,6,x\r\n7,8,y\r\n'
    assert read(write("x.csv", text)) == (
        [[1, 2], [3, 4], [5, 6], [7, 8]],
        ['Doe, "J"', "two\nlines", "x", "y"],
        ("name, first",),
    )


def test_keys_of_any_kind_become_text_and_several_columns_are_no_key() -> None:
    assert read(write("x.jsonl", '{"id": 7, "age": 1, "income": 2}\n{"age": 3, "income": 4}\n'))[1] == ["7", ""]
    table = {"age": [1, 2], "income": [1.5, 2.5], "id": [None, 12]}
    parquet.write_table(pyarrow.table(table), "x.parquet")
    assert read("x.parquet") == ([[1, 1.5], [2, 2.5]], ["", "12"], ("id",))
    assert read(write("x.csv", "id,age,name,income\n1,2,3,4\n")) == ([[2, 4]], None, ("id", "name"))


def test_a_file_without_points_has_none() -> None:
    assert read(write("x.csv", "age,income\n"))[0] == []
    assert read(write("x.jsonl", ""))[0] == []


FAULTS = [
    ("x.csv", "age,income\n1,2\n3,nan\n", NotFinite, "x.csv, line 3: 'income' is nan; only finite"),
    ("x.csv", "age,income\n1,2\n1e999,2\n", NotFinite, "x.csv, line 3: 'age' is 1e999; only finite"),
    ("x.csv", "age,income\n1,2\n3,\n", InvalidInput, "x.csv, line 3: 'income' is missing"),
    ("x.csv", "age,income\n1,2\n\n3,abc\n", InvalidInput, "x.csv, line 4: 'income' is 'abc', which is not a number"),
    ("x.csv", "age,income\n1,2\n3,1_000\n", InvalidInput, "line 3: 'income' is '1_000', which is not"),
    ("x.csv", "age,income\n1,2\n3,4,5\n", DimensionMismatch, "x.csv, line 3: 3 columns where the first line has 2"),
    ("x.csv", "id,age,income\na,1,2\nb,c,3,4\n", DimensionMismatch, "line 3: 4 columns where the first line has 3"),
    ("x.csv", "age,income\n1,2\n3\n", DimensionMismatch, "x.csv, line 3: 1 column where the first line has 2"),
    ("x.csv", 'age,income\n1,2\n"3,4\n', InvalidInput, "x.csv, line 3: not CSV"),
    ("x.csv", 'age,income,id\n1,2,"a\nb"\n3,4,"c\nd"\n5,x,"e"\n', InvalidInput, "x.csv, line 6: 'income' is 'x'"),
    ("x.csv", b"age,income\n1,2\n\xff,3\n", InvalidInput, "not UTF-8"),
    ("x.csv", b"\xff\xfea\n", InvalidInput, "x.csv, line 1: not UTF-8"),
    ("x.csv", "", InvalidInput, "x.csv is empty"),
    ("x.csv", "age\n1\n", InvalidInput, "x.csv: no column for 'income'; it has 'age'"),
    ("x.csv", "1,2\n3,4\n", InvalidInput, "is the line with the names missing?"),
    ("x.csv", "age;income\n1;2\n", InvalidInput, "separated by commas"),
    ("x.csv", "age,income,age\n1,2,3\n", InvalidInput, "more than one column is called 'age'"),
    ("x.jsonl", '{"age": 1, "income": 2}\n{"age": 1}\n', InvalidInput, "x.jsonl, line 2: nothing for 'income'"),
    ("x.jsonl", '{"age": 1, "income": NaN}\n', NotFinite, "x.jsonl, line 1: NaN or Infinity"),
    ("x.jsonl", '{"age": 1, "income": 1e999}\n', NotFinite, "x.jsonl, line 1: 'income' is too large"),
    ("x.jsonl", '{"age": 1, "income": 1' + "0" * 400 + "}\n", NotFinite, "x.jsonl, line 1: 'income' is too large"),
    ("x.jsonl", '{"age": 1, "income": "2"}\n', InvalidInput, "line 1: 'income' is \"2\", which is not a number"),
    ("x.jsonl", '{"age": true, "income": 2}\n', InvalidInput, "line 1: 'age' is true, which is not a number"),
    ("x.jsonl", '{"age": 1, "income": null}\n', InvalidInput, "line 1: 'income' is missing"),
    ("x.jsonl", '{"age": 1, "age": 2, "income": 3}\n', InvalidInput, "line 1: the same key twice"),
    ("x.jsonl", '{"age": 1, "income": 2}\n[1, 2]\n', InvalidInput, "line 2: must be an object"),
    ("x.jsonl", "[1, 2]\n3\n", InvalidInput, "line 2: must be a list"),
    ("x.jsonl", "[1, 2]\n[3]\n", DimensionMismatch, "line 2: 1 numbers, the log has 2"),
    ("x.jsonl", "[1, 2]\n[3,\n", InvalidInput, "x.jsonl, line 2: not JSON"),
    ("x.jsonl", b"[1, 2]\n\xff\n", InvalidInput, "x.jsonl, line 2: not UTF-8"),
    ("x.jsonl", "[1, 2]\n" + "[" * 100_000 + "\n", InvalidInput, "x.jsonl, line 2: "),
    ("x.parquet", "PAR1", InvalidInput, "x.parquet: not a Parquet file"),
    ("x.txt", "1,2", InvalidInput, "x.txt: points are read from files whose names end in .csv"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "kind", "says"), FAULTS)
def test_a_fault_is_named_with_its_line(name, text, kind, says) -> None:
    with pytest.raises(InvalidInput) as error:
        read(write(name, text))
    assert type(error.value) is kind
    assert says in str(error.value)


def test_names_that_the_log_lacks_and_too_many_columns() -> None:
    with pytest.raises(InvalidInput, match="its points have names, the log has none"):
        read(write("x.jsonl", '{"a": 1, "b": 2}\n'), None)
    with pytest.raises(DimensionMismatch, match="x.csv has 3 columns; the log has 2 features, without names"):
        read(write("x.csv", "1,2,3\n"), None)
    with pytest.raises(InvalidInput, match="line 1: 'x1' is 'b'"):
        read(write("x.csv", "1,b\n"), None)
    many = tuple(f"f{i}" for i in range(40))
    with pytest.raises(InvalidInput, match="'f5' and 34 more; it has 'age', 'income'$"):
        read(write("x.csv", "age,income\n1,2\n"), many, 40)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"age": [1.0, None], "income": [1, 2]}, "x.parquet, row 1: 'age' is missing"),
        ({"age": [1.0, float("inf")], "income": [1, 2]}, "x.parquet, row 1: 'age' is inf"),
        ({"age": ["a", "b"], "income": [1, 2]}, "column 'age' is string; it must hold numbers"),
        ({"age": [True, False], "income": [1, 2]}, "column 'age' is bool; it must hold numbers"),
        ({"income": [1, 2]}, "no column for 'age'"),
    ],
)
def test_faults_in_parquet_files(columns, says) -> None:
    parquet.write_table(pyarrow.table(columns), "x.parquet")
    with pytest.raises(InvalidInput, match=says):
        read("x.parquet")


def test_parquet_without_pyarrow_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput, match=r"overexplain\[parquet\]"):
        read(write("x.parquet", "PAR1"))


def test_memory_is_that_of_a_block(monkeypatch) -> None:
    monkeypatch.setattr(points_csv, "BLOCK", 1000)
    write("x.csv", "age,income\n" + "1.5,2.5\n" * 200_000)
    tracemalloc.start()
    with open_points(Path("x.csv"), FEATURES, 2) as points:
        count = sum(len(block.points) for block in points.blocks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 200_000
    assert peak < 1_500_000  # the points alone would take 3,200,000
