"""The fast readers agree with the careful ones on every file, valid or damaged; no content makes a reader crash."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from overexplain.errors import InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log import blocks
from overexplain.log.files import read_log
from overexplain.log.jsonl import fast as jsonl_fast
from overexplain.log.jsonl import formats
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.tables import csv_fast

patched = mock.patch.object
HEADER = b'{"format": "overexplain-log", "version": 1, "dimension": 2, "features": null, "mechanism": null}\n'


@contextmanager
def fast() -> Iterator[None]:
    """The fast readers take every line they can, in blocks of a few."""
    arrow = mock.patch.multiple(csv_fast, FEW=1, WORTH_LOADING=0)
    with mock.patch.multiple(formats, FEW=1, CHUNK=4), arrow, patched(blocks, "BLOCK", 4):
        yield


@contextmanager
def careful() -> Iterator[None]:
    """The fast readers take none."""
    with patched(formats, "FEW", 2**62), patched(csv_fast, "FEW", 2**62), patched(blocks, "BLOCK", 4):
        yield


def outcome(path: Path, mapping: dict[str, Any] | None) -> tuple[Any, ...]:
    """What reading gives: the log's content bit by bit, or the error; and what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            log = read_log(path, mapping=mapping)
        except InvalidInput as error:
            assert str(path) in str(error)
            return type(error), str(error)
    said = [str(warning.message) for warning in caught]
    numbers = (log.points, log.explanations, log.times)
    others = (log.labels, log.status, log.mechanism_ids, log.clients, log.sources)
    columns = ([values.tobytes() for values in numbers], [values.tolist() for values in others])
    return log.features, log.dimension, log.mechanisms, columns, said


def assert_same(content: bytes, kind: str, mapping: dict[str, Any] | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log" + kind)
        path.write_bytes(content)
        with fast():
            found = outcome(path, mapping)
        with careful():
            assert outcome(path, mapping) == found


def a_log() -> QueryLog:
    log = QueryLog(["a", "b"])
    log.add_label([30.0, 2.0], 1)
    log.add_explanation([20.0, -0.0], [20.0, 1.5], -1, Mechanism("l1"), client="änn", time=1.7e9, source="api")
    log.add_explanation([[90.0, 1.0]] * 3, [[1.0, 2.0]] * 3, mechanism=Mechanism("l2"), client='=b,"c"')
    log.add_explanation([5e-324, 1e300], None, mechanism=Mechanism("l1"), status=Status.FAILED)
    log.add_label([[1.5, 2.5]] * 4, [1, -1, 1, 1], client=["ann", "bob", "ann", None], time=[1.0, 2.0, None, 4.0])
    return log


def content(kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        a_log().save(Path(folder, "log" + kind))
        return Path(folder, "log" + kind).read_bytes()


JSONL, CSV, PARQUET = content(".jsonl"), content(".csv"), content(".parquet")
RECORDS = b"".join(
    json.dumps(
        {"id": i, "a": i / 3, "b": [1, None][i % 2], "x": [1.5, i], "cf": [None, [1, 2]][i % 2], "y": 1}
    ).encode()
    + b"\n"
    for i in range(9)
)

junk = st.one_of(
    st.binary(max_size=4),
    st.sampled_from(
        [b"NaN", b"1e999", b"null", b"true", b"{", b"]", b"\n", b"\\ud800", b"[[", b"9" * 400, b'"', b'""', b",", b"\r\n", b"-0"]
        + [b"1_0", b"'", b'"x"', b'\n{"x": [1, 2]}\n', b', "y": 1', b"\xef\xbb\xbf", b"\0", b"\\u0022", b" ", b"inf", b'","']
    ),
)  # fmt: skip


def mutated(draw: Callable[[Any], Any], whole: bytes, most: int = 3) -> bytes:
    for _ in range(draw(st.integers(0, most))):
        start = draw(st.integers(0, len(whole)))
        stop = draw(st.integers(start, min(len(whole), start + 9)))
        whole = whole[:start] + draw(junk) + whole[stop:]
    return whole


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_damaged_lines_are_read_alike(data: st.DataObject) -> None:
    assert_same(mutated(data.draw, JSONL), ".jsonl")


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_damaged_cells_are_read_alike(data: st.DataObject) -> None:
    assert_same(mutated(data.draw, CSV), ".csv")


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["-0", "-0.0", "0e0", "1E5", "9007199254740993", "2.2250738585072011e-308", "1e-400", "01", "1.", "+1"]
    ),
)
strings = st.text(max_size=4).map(json.dumps) | st.sampled_from(['"\\""', '"\\/"', '"\\u0041"', "null", "7"])
keys = st.sampled_from(["y", "cf", "status", "m", "client", "t", "source", "x", "\\u0079", "z"])


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line that is nearly a row: any number and text, keys that may come twice."""
    values = {"x": st.lists(numbers, min_size=2, max_size=2).map(lambda v: f"[{', '.join(v)}]"), "t": numbers}
    values |= {
        "cf": values["x"],
        "y": st.sampled_from(["1", "-1", "1", "0", "1.0"]),
        "client": strings,
        "source": strings,
    }
    values |= {
        "m": st.sampled_from(["0", "1", "2", "0.0"]),
        "status": st.sampled_from(['"none"', '"asked"', '"failed"']),
    }
    wanted = ["x", *draw(st.lists(keys, max_size=4))]
    entries = [f'"{key}": {draw(values.get(key, st.just("1")))}' for key in wanted]
    return "{" + draw(st.sampled_from([", ", ",", " , "])).join(draw(st.permutations(entries))) + "}"


TERMS = [b'{"mechanism": {"distance": "l1"}}\n', b'{"mechanism": {"distance": "l2"}}\n']


@settings(max_examples=70, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=6), st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n"]))
@example(['{"x": [1, 2], "x": [3, 4]}'], False, "\n")
@example(['{"x": [1, 2], "m": 1}', '{"x": [1, 2], "m": 2}'], False, "\n")
@example(['{"x": [1, 2], "cf": [1, 2]}', '{"x": [1, 2], "cf": [1]}'], False, "\n")
@example(['{"x": [1, 2]}', '{"x": [1, 2, 3]}'], False, "\n")
@example(['{"x": [1, 2], "status": "asked"}'], False, "\n")
@example(['{"x": [1, 2], "cf": [3, 4], "status": "none"}'], False, "\n")
@example(['{"x": [1, 2], "client": "a\\"", "y": 1}'], False, "\n")
@example(['{"x": [1, -0], "client": "\\ud800"}'], True, "\n")
def test_lines_of_all_kinds_are_read_alike(rows: list[str], last: bool, end: str) -> None:
    text = end.join(rows).encode("utf-8", "surrogatepass")
    whole = HEADER + TERMS[0] + TERMS[1] + text + (b"" if last else b"\n")
    assert_same(whole, ".jsonl")


cells = st.one_of(
    numbers,
    st.sampled_from(["", "nan", "NaN", "null", " 1 ", "1_0", "True", "0x1", "inf", "'1", "１", '"1"', '"1,2"', '"']),
)
names = st.text(alphabet="ab'=\" ,\n\r\0ä", max_size=4).map(lambda text: '"' + text.replace('"', '""') + '"') | cells


@settings(max_examples=70, deadline=None)
@given(st.lists(st.tuples(cells, numbers, names, names), max_size=6), st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
@example([("1", "2", '"a,""b"",c"', '",x"')], "\n")
@example([("1", "2", '"a,"', 'x"')], "\n")
@example([("1", "2", 'a"b', '"c"')], "\n")
def test_cells_of_all_kinds_are_read_alike(rows: list[tuple[str, ...]], end: str) -> None:
    text = end.join(["a,b,client,source", *(",".join(row) for row in rows)])
    assert_same(text.encode("utf-8", "surrogatepass"), ".csv")


def test_the_fast_readers_were_asked() -> None:
    used = []
    columns, table = jsonl_fast.plain_columns, csv_fast.plain_table
    note = lambda found: (used.append(found is not None), found)[1]  # noqa: E731
    with (
        mock.patch("overexplain.log.jsonl.fast.plain_columns", lambda *given: note(columns(*given))),
        mock.patch("overexplain.log.tables.csv_tables.plain_table", lambda *given: note(table(*given))),
    ):
        assert_same(JSONL, ".jsonl")
        assert sum(used) >= 3
        used.clear()
        assert_same(CSV, ".csv")
        assert sum(used) >= 3


# Whatever comes, a log or InvalidInput


MAPPINGS = [
    None,
    {"x": ["a", "b"], "cf": "cf_"},
    {"x": "x", "cf": "cf", "y": "y"},
    {"x": "a", "client": "id", "t": "y"},
]


def read_or_refuse(whole: bytes, kind: str, mapping: dict[str, Any] | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log" + kind)
        path.write_bytes(whole)
        outcome(path, mapping)


@settings(max_examples=70, deadline=None)
@given(st.data(), st.sampled_from(MAPPINGS[1:]))
def test_damaged_records_are_read_or_refused(data: st.DataObject, mapping: dict[str, Any]) -> None:
    read_or_refuse(mutated(data.draw, RECORDS), ".jsonl", mapping)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_damaged_parquet_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(PARQUET)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3))
    read_or_refuse(bytes(whole[: len(whole) - cut]), ".parquet")


@settings(max_examples=70, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([".jsonl", ".csv", ".parquet"]), st.sampled_from(MAPPINGS))
def test_any_bytes_are_read_or_refused(whole: bytes, kind: str, mapping: dict[str, Any] | None) -> None:
    read_or_refuse(whole, kind, mapping)


values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3),
    st.lists(st.floats() | st.none() | st.text(max_size=1), max_size=3),
    st.dictionaries(st.text(max_size=1), st.none(), max_size=1),
)  # fmt: skip
column_names = st.sampled_from(
    ["a", "b", "x", "cf", "cf_a", "label", "y", "time", "client", "id", "status", "mechanism"]
)


@settings(max_examples=70, deadline=None)
@given(st.lists(st.dictionaries(column_names, values, max_size=5), max_size=6), st.sampled_from(MAPPINGS[1:]))
def test_any_records_are_read_or_refused(records: list[dict[str, Any]], mapping: dict[str, Any]) -> None:
    with mock.patch.object(blocks, "BLOCK", 2):
        read_or_refuse("".join(json.dumps(record) + "\n" for record in records).encode(), ".jsonl", mapping)


KINDS = [
    pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.string(), pa.binary(), pa.null(), pa.timestamp("ns"),
    pa.date32(), pa.time64("us"), pa.duration("s"), pa.decimal128(9, 2), pa.list_(pa.float64()), pa.list_(pa.string()),
    pa.list_(pa.float64(), 2), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8()),
    pa.dictionary(pa.int8(), pa.string()),
]  # fmt: skip


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("count", [0, 3])
def test_columns_of_any_type_are_read_or_refused(mapping: dict[str, Any] | None, count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    for _ in range(60):
        picked = rng.choice(
            ["a", "b", "x", "cf", "cf_a", "label", "y", "time", "client", "status", "mechanism"], 4, replace=False
        )
        columns = {str(name): pa.nulls(count, KINDS[rng.integers(len(KINDS))]) for name in picked}
        columns["a" if "a" not in columns else "b"] = pa.array(np.ones(count))
        pq.write_table(pa.table(columns), tmp_path / "log.parquet")
        outcome(tmp_path / "log.parquet", mapping)
