"""Rows with empty cells are left out, counted and named, whatever the kind of file and however it is cut into blocks."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overexplain.errors import InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log import blocks
from overexplain.log.files import read_log
from overexplain.log.querylog import QueryLog
from overexplain.log.tables import csv_fast

# A point and its explanation; rows 1, 3, 4 and 6 have an empty cell.
ROWS: list[tuple[list[float | None], list[float | None]]] = [
    ([1.0, 2.0], [3.0, 4.0]),
    ([None, 2.0], [3.0, 4.0]),
    ([5.0, 6.0], [None, None]),
    ([5.0, None], [None, None]),
    ([5.0, 6.0], [None, 7.0]),
    ([8.0, 9.0], [1.0, 0.0]),
    ([None, None], [None, None]),
]
WHOLE = (0, 2, 5)
VECTORS = {"x": "v", "cf": "c", "y": "label"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(csv_fast, "FEW", 1)
    monkeypatch.setattr(csv_fast, "WORTH_LOADING", 0)


def columns() -> dict[str, list[Any]]:
    cells = zip(*(point + answer for point, answer in ROWS), strict=True)
    return dict(zip(("a", "b", "cf_a", "cf_b"), map(list, cells), strict=True))


def vectors() -> dict[str, list[Any]]:
    """The same with lists, or nothing where all of one is missing."""
    some = [[None if set(row) == {None} else row for row in pair] for pair in ROWS]
    return {"v": [point for point, _ in some], "c": [answer for _, answer in some]}


def written(kind: str) -> tuple[str, dict[str, Any] | None]:
    """A file of this kind with the rows, and its mapping."""
    table = (vectors() if "vectors" in kind else columns()) | {"label": [1] * len(ROWS), "client": list("stuvwxy")}
    mapping = {"x": ["a", "b"]} if kind == "records" else VECTORS if "vectors" in kind else None
    if kind in ("csv", "careful csv"):
        lines = [[*table], *zip(*table.values(), strict=True)]
        Path("log.csv").write_text(
            "".join(",".join("" if c is None else str(c) for c in line) + "\n" for line in lines)
        )
        return "log.csv", mapping
    if kind.startswith("parquet"):
        pq.write_table(pa.table(table), "log.parquet")
        return "log.parquet", mapping
    records = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if kind == "records":
        records = [{key: cell for key, cell in record.items() if cell is not None} for record in records]
    lines = [json.dumps(record) for record in records]
    if kind == "jsonl":
        header = {"format": "overexplain-log", "version": 1, "dimension": 2, "features": ["a", "b"], "mechanism": None}
        lines = [json.dumps(header), json.dumps({"mechanism": Mechanism("l1").to_dict()})]
        for (point, answer), client in zip(ROWS, "stuvwxy", strict=True):
            row = {"x": point, "y": 1, "client": client} | ({} if set(answer) == {None} else {"cf": answer, "m": 0})
            lines.append(json.dumps(row))
    Path("log.jsonl").write_text("".join(line + "\n" for line in lines))
    return "log.jsonl", mapping


NAMES = {
    "csv": ("row 1 (line 3) has no 'a'", "row 3 (line 5) has no 'b'", "row 4 (line 6) has no 'cf_a'"),
    "parquet": tuple(f"row {i} (counted from 0) has no {c!r}" for i, c in ((1, "a"), (3, "b"), (4, "cf_a"))),
    "records": ("row 1 (line 2) has no 'a'", "row 3 (line 4) has no 'b'", "row 4 (line 5) has no 'cf_a'"),
    "jsonl": tuple(f"line {i} has no '{c}'" for i, c in ((4, "x (entry 0)"), (6, "x (entry 1)"), (7, "cf (entry 0)"))),
    "vectors": tuple(
        f"row {i} (line {i + 1}) has no '{c}'" for i, c in ((1, "v (entry 0)"), (3, "v (entry 1)"), (4, "c (entry 0)"))
    ),
    "parquet vectors": tuple(
        f"row {i} (counted from 0) has no '{c}'" for i, c in ((1, "v (entry 0)"), (3, "v (entry 1)"), (4, "c (entry 0)"))
    ),
}  # fmt: skip
NAMES["careful csv"] = NAMES["csv"]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_rows_with_empty_cells_are_left_out_and_named(kind: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "careful csv":
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.setattr(blocks, "BLOCK", size)
    monkeypatch.setattr("overexplain.log.jsonl.formats.CHUNK", size)
    name, mapping = written(kind)
    with pytest.warns(UserWarning, match="left out") as caught:
        log = read_log(name, mapping=mapping, mechanism=Mechanism("l1"))
    expected = f"{name}: 4 rows with empty cells are left out, those after move up: {', '.join(NAMES[kind])} and 1 more"
    assert [str(warning.message) for warning in caught] == [expected]
    wanted = QueryLog()
    for i in WHOLE:
        point, answer = ROWS[i]
        answer = [math.nan if cell is None else cell for cell in answer]
        if math.isnan(answer[0]):
            wanted.add_label(point, 1, client="stuvwxy"[i])
        else:
            wanted.add_explanation(point, answer, 1, Mechanism("l1"), client="stuvwxy"[i])
    assert list(log) == list(wanted)


def test_nothing_is_learned_from_a_block_of_such_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 1)
    Path("log.csv").write_text("a,b,label\n,,\n1,2,1\n")
    Path("log.jsonl").write_text('{"v": null}\n{"v": []}\n{"v": [1, 2]}\n')
    pq.write_table(pa.table({"v": [None, [], [1.0, 2.0]]}), "log.parquet")
    for name, count in (("log.csv", "1 row"), ("log.jsonl", "2 rows"), ("log.parquet", "2 rows")):
        with pytest.warns(UserWarning, match=count):
            log = read_log(name, mapping=None if name == "log.csv" else {"x": "v"})
        assert log.points.tolist() == [[1.0, 2.0]]


def test_one_row_is_said_in_the_singular_and_what_it_says_else_does_not_matter() -> None:
    Path("log.csv").write_text("a,label,cf_a,status,mechanism\n,1,2,none,nonsense\n3,1,,,\n")
    with pytest.warns(UserWarning, match=r"1 row with an empty cell is left out, .*: row 0 \(line 2\) has no 'a'$"):
        assert read_log("log.csv").points.tolist() == [[3.0]]


def test_a_file_of_nothing_else_is_an_empty_log() -> None:
    Path("log.csv").write_text("a,b\n1,\n,2\n")
    with pytest.warns(UserWarning, match="2 rows with empty cells"):
        log = read_log("log.csv")
    assert len(log) == 0
    assert log.features == ("a", "b")


def test_infinite_numbers_are_no_empty_cells() -> None:
    Path("log.csv").write_text("a,b\n1,\n,inf\n")
    with pytest.raises(InvalidInput, match=r"'b' has inf in row 1 \(line 3\)"):
        read_log("log.csv")
