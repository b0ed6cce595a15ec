"""The log as a file and as a frame: round trips are exact, and whatever is malformed is refused with its place."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite, UnsupportedNorm
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Norm, Weighted, l1
from overexplain.log import frames
from overexplain.log.jsonl import formats
from overexplain.log.jsonl.formats import JsonlWriter
from overexplain.log.querylog import QueryLog, Row, Status

NAN = math.nan
HEADER = '{"format": "overexplain-log", "version": 1, "dimension": 2, "features": null, "mechanism": null}\n'
L1 = '{"mechanism": {"distance": "l1"}}\n'

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-0.0, 5e-324, -1e308, 0.1, 2.0**53 + 2])
texts = st.none() | st.text(max_size=5)


def mechanisms(dimension: int) -> st.SearchStrategy[Mechanism]:
    return st.sampled_from(
        [
            Mechanism("l1"),
            Mechanism("lp:1.1", robustness="l2", radius=0.1),
            Mechanism("l2", radius=None, tolerance=1e-9, slack=None),
            Mechanism(None),
            Mechanism(Weighted(l1, [1 / 3] * dimension)),
            Mechanism(Mahalanobis(np.eye(dimension) / 7)),
            Mechanism(GroupNorm([[i] for i in range(dimension)])),
            Mechanism(None, domain=Domain(dimension)),
            Mechanism("linf", domain=Domain(dimension, -1 / 3, integers=[0])),
        ]
    )


@st.composite
def logs(draw: st.DrawFn, names: st.SearchStrategy[str] = st.text(min_size=1)) -> QueryLog:  # noqa: B008
    """Logs of all kinds of rows."""
    p = draw(st.integers(1, 3))
    features = draw(st.none() | st.lists(names, min_size=p, max_size=p, unique=True))
    log = QueryLog(features, draw(st.none() | mechanisms(p)))
    point = st.lists(numbers, min_size=p, max_size=p)
    for _ in range(draw(st.integers(0, 6))):
        known: dict[str, Any] = {"client": draw(texts), "source": draw(texts), "time": draw(st.none() | numbers)}
        if draw(st.booleans()):
            log.add_label(draw(point), draw(st.sampled_from([1, -1])), **known)
        else:
            answer = draw(st.none() | point)
            status = None if answer is not None else draw(st.sampled_from([None, Status.NONE, Status.FAILED]))
            label, terms = draw(st.sampled_from([None, 1, -1])), draw(st.none() | mechanisms(p))
            log.add_explanation(draw(point), answer, label, terms, status=status, **known)
    return log


def assert_same(log: QueryLog, other: QueryLog) -> None:
    """Equal, bit by bit: == takes -0.0 for 0.0."""
    assert log == other
    assert list(log) == list(other)
    assert log.dimension == other.dimension
    for name in ("points", "explanations", "times"):
        assert getattr(log, name).tobytes() == getattr(other, name).tobytes()


def a_log() -> QueryLog:
    log = QueryLog(["a", "b"], Mechanism("l1"))
    log.add_label([30.0, 2.0], 1)
    log.add_explanation([20.0, -0.0], [20.0, 1.5], -1, client="änn", time=1.7e9, source="api")
    log.add_explanation([90.0, 1.0], None)
    log.add_explanation([5e-324, 1e308], None, mechanism=Mechanism("l2"), status=Status.FAILED)
    return log


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


# The file


@given(logs())
def test_file_round_trip(log: QueryLog) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        log.save(path)
        assert_same(QueryLog.load(path), log)
        first = path.read_bytes()
        QueryLog.load(path).save(path)
        assert path.read_bytes() == first
        assert list(Path(folder).iterdir()) == [path]


def test_the_file_is_what_the_format_says(tmp_path: Path) -> None:
    a_log().save(tmp_path / "log.jsonl")
    mechanism = '{"distance": "%s", "robustness": null, "radius": 0.0, "tolerance": null, "slack": 0.0}'
    assert (tmp_path / "log.jsonl").read_text().splitlines() == [
        '{"format": "overexplain-log", "version": 1, "dimension": 2, "features": ["a", "b"], "mechanism": %s}'
        % (mechanism % "l1"),
        '{"x": [30.0, 2.0], "y": 1}',
        '{"mechanism": %s}' % (mechanism % "l1"),
        '{"x": [20.0, -0.0], "y": -1, "cf": [20.0, 1.5], "m": 0, "client": "\\u00e4nn", "t": 1700000000.0,'
        ' "source": "api"}',
        '{"x": [90.0, 1.0], "status": "none", "m": 0}',
        '{"mechanism": %s}' % (mechanism % "l2"),
        '{"x": [5e-324, 1e+308], "status": "failed", "m": 1}',
    ]


def test_more_rows_than_a_chunk(tmp_path: Path) -> None:
    log = QueryLog()
    x = np.random.default_rng(0).normal(size=(2 * formats.CHUNK + 1, 2))
    log.add_label(x, np.where(x[:, 0] > 0, 1, -1), client=[str(i) for i in range(len(x))])
    log.save(tmp_path / "log.jsonl")
    assert_same(QueryLog.load(tmp_path / "log.jsonl"), log)


def test_text_outside_unicode_survives(tmp_path: Path) -> None:
    log = QueryLog(["a"])
    log.add_label([1.0], 1, client="\udfff\x00")
    log.save(tmp_path / "log.jsonl")
    assert_same(QueryLog.load(tmp_path / "log.jsonl"), log)


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    text = (
        '{"version":1,"format":"overexplain-log"}\r\n'
        ' {"status": "not-asked", "x": [1, 2e0]}\n'
        '{"mechanism": {"distance": "l1"}}\n{"mechanism": {"distance": "l2"}}\n'
        '{"mechanism": {"distance": "l2", "slack": 0}}\n'
        '{"x": [1, 2], "cf": [3, 4], "status": "asked", "m": 2, "t": 5, "client": "ä"}\n'
        '{"x": [1, 2], "cf": [3, 4], "m": 1}'
    )
    log = QueryLog.load(written(tmp_path, text))
    assert (log.features, log.mechanism, log.dimension) == (None, None, 2)
    assert log.status.tolist() == [0, 1, 1]
    assert log.labels.tolist() == [0, 0, 0]
    assert log.clients.tolist() == [None, "ä", None]
    assert log.mechanisms == (Mechanism("l2"),)  # unused ones are left out, equal ones are one
    assert log.mechanism_ids.tolist() == [-1, 0, 0]


def test_a_header_alone(tmp_path: Path) -> None:
    log = QueryLog.load(written(tmp_path, HEADER))
    assert (len(log), log.dimension) == (0, 2)
    log.save(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == HEADER


ROWS: list[tuple[str, str]] = [
    ("{", "not JSON: Expecting property name"),
    ('{"x" [1, 2]}', "not JSON: Expecting ':' delimiter at column 6"),
    ("", "not JSON"),
    ("\ufeff{}", "not JSON"),
    ('{"x": [1, 2]} {"x": [1, 2]}', "not JSON: Extra data"),
    ("[" * 100_000, "nested too deep"),
    ('{"x": ' * 100_000, "nested too deep"),
    ("[1, 2]", r"JSON object, got \[1, 2\]"),
    ("null", "JSON object, got null"),
    ("1", "JSON object, got 1"),
    ("{}", "x must be a list of 2 numbers, got null"),
    ('{"x": [1, 2], "z": 1}', 'unknown key "z"; known are cf, client'),
    ('{"x": [1, 2], "mechanism": {"distance": "l1"}}', 'unknown key "mechanism"'),
    ('{"x": [1, 2], "x": [1, 2]}', "same key twice"),
    ('{"y": 1}', "x must be a list of 2 numbers, got null"),
    ('{"x": [1]}', "x must be a list of 2 numbers, got 1 entries"),
    ('{"x": [1, 2, 3]}', "2 numbers, got 3 entries"),
    ('{"x": []}', "2 numbers, got 0 entries"),
    ('{"x": 5}', "2 numbers, got 5"),
    ('{"x": "ab"}', '2 numbers, got "ab"'),
    ('{"x": {"a": 1, "b": 2}}', "2 numbers, got {"),
    ('{"x": [1, true]}', r"numbers only, got \[1, true\]"),
    ('{"x": [1, "2"]}', "numbers only"),
    ('{"x": [1, [2]]}', "numbers only"),
    ('{"x": [1, NaN]}', "NaN is no number"),
    ('{"x": [1, -Infinity]}', "-Infinity is no number"),
    ('{"x": [1, 1e999]}', "too large"),
    ('{"x": [1, -1e999]}', "too large"),
    ('{"x": [1, 1%s]}' % ("0" * 400), "integer too large"),
    ('{"x": [1, 1%s]}' % ("0" * 5000), "digits"),
    ('{"x": [1, 2], "y": 0}', r"y is 0: .*2\*y-1"),
    ('{"x": [1, 2], "y": 1.0}', r"y is 1.0: .*2\*y-1"),
    ('{"x": [1, 2], "y": true}', r"y is true: .*2\*y-1"),
    ('{"x": [1, 2], "y": null}', r"y is null: .*2\*y-1"),
    ('{"x": [1, 2], "y": [1]}', r"y is \[1\]"),
    ('{"x": [1, 2], "cf": [1]}', "cf must be a list of 2 numbers"),
    ('{"x": [1, 2], "cf": null}', "cf must be a list of 2 numbers, got null"),
    ('{"x": [1, 2], "cf": [1, false]}', "cf must hold numbers only"),
    ('{"x": [1, 2], "cf": [1, 1e400]}', "cf holds a number too large"),
    ('{"x": [1, 2], "status": "lost"}', 'one of not-asked, asked, none, failed, got "lost"'),
    ('{"x": [1, 2], "status": 2}', "one of not-asked"),
    ('{"x": [1, 2], "status": ["none"]}', "one of not-asked"),
    ('{"x": [1, 2], "status": "asked"}', "has no explanation"),
    ('{"x": [1, 2], "cf": [1, 2], "status": "none"}', "has an explanation"),
    ('{"x": [1, 2], "m": 1}', "m is 1, but 1 mechanisms are defined"),
    ('{"x": [1, 2], "m": -1}', "m is -1"),
    ('{"x": [1, 2], "m": false}', "m is false"),
    ('{"x": [1, 2], "m": 0.0}', "m is 0.0"),
    ('{"x": [1, 2], "m": 1%s}' % ("0" * 400), "m is 10"),
    ('{"x": [1, 2], "client": 5}', "client must be a string, got 5"),
    ('{"x": [1, 2], "source": null}', "source must be a string, got null"),
    ('{"x": [1, 2], "t": "noon"}', "t must hold numbers only"),
    ('{"x": [1, 2], "t": true}', "t must hold numbers only"),
    ('{"x": [1, 2], "t": 1e999}', "t holds a number too large"),
    ('{"x": [1, 2], "t": 1%s}' % ("0" * 400), "t holds an integer too large"),
    (HEADER.strip(), "a second header"),
    ('{"mechanism": null}', "a mechanism is"),
    ('{"mechanism": {}}', "'distance' is missing"),
    ('{"mechanism": {"distance": "l3"}}', "unknown norm 'l3'"),
    ('{"mechanism": {"distance": 5}}', "a norm is"),
    ('{"mechanism": {"distance": "l1", "radius": true}}', "numbers, norms or null"),
    ('{"mechanism": {"distance": "l1", "slack": 1%s}}' % ("0" * 400), "cannot be read|must be"),
    ('{"mechanism": {"distance": {"norm": "group", "groups": 5}}}', "cannot be read|groups"),
    ('{"mechanism": {"distance": {"norm": "weighted", "base": "l1", "weights": [1, 2, 3]}}}', "made for 3 features"),
]


@pytest.mark.parametrize(("line", "text"), ROWS)
def test_a_malformed_line_is_refused_with_its_place(tmp_path: Path, line: str, text: str) -> None:
    path = written(tmp_path, HEADER + L1 + line + '\n{"x": [1, 2]}\n')
    with pytest.raises(InvalidInput, match=text) as caught:
        QueryLog.load(path)
    assert str(caught.value).startswith(f"{path}, line 3: ")


HEADERS: list[tuple[str, str]] = [
    ('{"x": [1, 2]}', 'the first line must have "format"'),
    ('{"format": "csv", "version": 1}', 'the first line must have "format"'),
    ('{"format": "overexplain-log"}', "version must be 1, got null"),
    ('{"format": "overexplain-log", "version": true}', "version must be 1, got true"),
    ('{"format": "overexplain-log", "version": 0}', "version must be 1, got 0"),
    ('{"format": "overexplain-log", "version": "1"}', 'version must be 1, got "1"'),
    ('{"format": "overexplain-log", "version": 2, "shards": 7}', "written by a newer version of overexplain"),
    ('{"format": "overexplain-log", "version": 1, "shards": 7}', 'unknown key "shards"'),
    ('{"format": "overexplain-log", "version": 1, "dimension": 0}', "positive integer or null, got 0"),
    ('{"format": "overexplain-log", "version": 1, "dimension": true}', "positive integer or null, got true"),
    ('{"format": "overexplain-log", "version": 1, "dimension": 2.0}', "positive integer or null, got 2.0"),
    ('{"format": "overexplain-log", "version": 1, "dimension": 1%s}' % ("0" * 40), "positive integer or null"),
    ('{"format": "overexplain-log", "version": 1, "features": "ab"}', "list of names or null"),
    ('{"format": "overexplain-log", "version": 1, "features": []}', "non-empty strings"),
    ('{"format": "overexplain-log", "version": 1, "features": ["a", []]}', "non-empty strings"),
    ('{"format": "overexplain-log", "version": 1, "features": ["a", "a"]}', "distinct"),
    ('{"format": "overexplain-log", "version": 1, "features": ["a"], "dimension": 2}', "dimension is 2, but .* 1"),
    ('{"format": "overexplain-log", "version": 1, "mechanism": "l1"}', "a mechanism is"),
    (
        '{"format": "overexplain-log", "version": 1, "features": ["a"],'
        ' "mechanism": {"distance": {"norm": "weighted", "base": "l1", "weights": [1, 2]}}}',
        "made for 2 features",
    ),
    ('{"format": "overexpl', "not JSON"),
    ("\n", "not JSON"),
]


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize(("line", "text"), HEADERS)
def test_a_malformed_header_is_refused(tmp_path: Path, line: str, text: str, end: str) -> None:
    path = written(tmp_path, line + end)
    with pytest.raises(InvalidInput, match=text) as caught:
        QueryLog.load(path)
    assert str(caught.value).startswith(f"{path}, line 1: ")


def test_a_norm_nested_at_any_depth_is_read_or_refused(tmp_path: Path) -> None:
    outcomes = set()
    for depth in range(0, 2000, 40):
        norm = '{"norm": "weighted", "weights": [1, 1], "base": ' * depth + '"l1"' + "}" * depth
        line = '{"mechanism": {"distance": ' + norm + "}}\n"
        try:
            outcomes.add(len(QueryLog.load(written(tmp_path, HEADER + line + '{"x": [1, 2], "m": 0}\n'))))
        except InvalidInput:
            outcomes.add(-1)
    assert outcomes == {1, -1}


def test_a_value_nested_at_any_depth_is_refused(tmp_path: Path) -> None:
    # Somewhere it can still be read, but no longer be shown in the message.
    for depth in range(700, 1000):
        with pytest.raises(InvalidInput, match="line 2: "):
            QueryLog.load(written(tmp_path, HEADER + '{"x": [1, ' + "[" * depth + "]" * depth + "]}\n"))


def test_the_first_row_must_fit_what_was_declared(tmp_path: Path) -> None:
    header = '{"format": "overexplain-log", "version": 1, "mechanism": %s}\n'
    three = '{"distance": {"norm": "weighted", "base": "l1", "weights": [1, 2, 3]}}'
    for text in (header % three, header % "null" + '{"mechanism": ' + three + "}\n"):
        with pytest.raises(DimensionMismatch, match="made for 3 features"):
            QueryLog.load(written(tmp_path, text + '{"x": [1, 2]}\n'))


def test_kinds_of_errors(tmp_path: Path) -> None:
    with pytest.raises(NotFinite, match="line 2"):
        QueryLog.load(written(tmp_path, HEADER + '{"x": [1, NaN]}\n'))
    with pytest.raises(DimensionMismatch, match="line 2"):
        QueryLog.load(written(tmp_path, HEADER + '{"x": [1]}\n'))


def test_invalid_utf8_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER.encode() + b'{"x": [1, 2], "client": "\xff"}\n')
    with pytest.raises(InvalidInput, match="line 2: not JSON: invalid start byte"):
        QueryLog.load(path)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"log\.jsonl is empty"):
        QueryLog.load(written(tmp_path, ""))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot read the log .*nowhere\.jsonl: No such file"):
        QueryLog.load(tmp_path / "nowhere.jsonl")
    with pytest.raises(InvalidInput, match="cannot read the log"):
        QueryLog.load(tmp_path)
    with pytest.raises(InvalidInput, match="null byte"):
        QueryLog.load("a\0b")


def test_a_torn_last_line_is_left_out_wherever_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = a_log()
    log.save(path)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole) + 1):
        path.write_bytes(whole[:end])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = QueryLog.load(path)
        complete = sum(line.startswith(b'{"x"') and line.endswith(b"}") for line in whole[:end].split(b"\n"))
        assert list(loaded) == list(log)[:complete]
        torn = not whole[:end].endswith((b"}", b"\n")) or _is_torn(whole[:end])
        assert len(caught) == torn
        for warning in caught:
            assert warning.category is UserWarning
            assert "cut short" in str(warning.message)
            assert warning.filename == __file__


def _is_torn(content: bytes) -> bool:
    last = content.rsplit(b"\n", 1)[1]
    try:
        return bool(last) and json.loads(last) is None
    except ValueError:
        return True


@pytest.mark.parametrize("tail", [b'{"x": [1, 2], "client": "\xc3', b"\x00\x00\x00", b'{"x": [1, 2]} {'])
def test_other_torn_ends(tmp_path: Path, tail: bytes) -> None:
    path = written(tmp_path, HEADER.encode() + b'{"x": [1, 2]}\n' + tail)
    with pytest.warns(UserWarning, match="line 3: the last line was cut short"):
        assert len(QueryLog.load(path)) == 1


def test_a_last_line_that_is_whole_but_wrong_is_not_torn(tmp_path: Path) -> None:
    for line in ('{"x": [1]}', '{"x": [1, NaN]}', '{"x": [1, 2], "z": 1}', "[]", "[" * 100_000):
        with pytest.raises(InvalidInput, match="line 2"):
            QueryLog.load(written(tmp_path, HEADER + line))


junk = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([b"NaN", b"1e999", b"null", b"true", b"{", b"]", b"\n", b"\\ud800", b"[[", b"9" * 400, b'"']),
)


@settings(max_examples=300)
@given(st.data())
def test_no_content_raises_anything_else(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        log = a_log()
        terms = Mechanism(Weighted(l1, [1.0, 2.0]), robustness="l2", radius=0.5)
        log.add_explanation([1.0, 2.0], None, mechanism=terms)
        log.save(path)
        content = path.read_bytes()
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(content)))
            stop = data.draw(st.integers(start, min(len(content), start + 9)))
            content = content[:start] + data.draw(junk) + content[stop:]
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                QueryLog.load(path)
            except InvalidInput as error:
                assert str(path) in str(error)


# Writing


def test_saving_replaces_the_file_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.jsonl"
    a_log().save(path)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    for place, name in ((JsonlWriter, "write"), (os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as broken:
            broken.setattr(place, name, fail)
            with pytest.raises(InvalidInput, match="disk full"):
                a_log().save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    QueryLog(["z"]).save(path)
    assert QueryLog.load(path).features == ("z",)


def test_what_is_saved_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, events = tmp_path / "log.jsonl", []
    sync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append("sync"), sync(fd)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (events.append("replace"), replace(self, to)))
    a_log().save(path)
    assert events == ["sync", "replace"]


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "log.jsonl"
    link.symlink_to(tmp_path / "real" / "log.jsonl")
    a_log().save(str(link))
    assert link.is_symlink()
    assert_same(QueryLog.load(tmp_path / "real" / "log.jsonl"), a_log())


def test_where_nothing_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no folder .*nowhere"):
        a_log().save(tmp_path / "nowhere" / "log.jsonl")
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InvalidInput, match="not a regular file"):
            a_log().save(special)
    assert (tmp_path / "pipe").is_fifo()


def test_the_writer_writes_what_save_writes(tmp_path: Path) -> None:
    log = a_log()
    log.save(tmp_path / "saved.jsonl")
    with JsonlWriter(tmp_path / "log.jsonl", log.features, None, log.mechanism) as writer:
        for i, row in enumerate(log):
            writer.write(row)
            assert list(QueryLog.load(tmp_path / "log.jsonl")) == list(log)[: i + 1]  # it does not wait for the end
    writer.close()
    assert (tmp_path / "log.jsonl").read_bytes() == (tmp_path / "saved.jsonl").read_bytes()


def test_a_killed_writer_loses_nothing(tmp_path: Path) -> None:
    program = """
import os, signal, sys, numpy
from overexplain.log.jsonl.formats import JsonlWriter
from overexplain.log.querylog import Row
writer = JsonlWriter(sys.argv[1])
for i in range(10):
    writer.write(Row(numpy.array([float(i)]), 1))
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path / "log.jsonl")], check=False)
    assert ended.returncode == -9
    assert QueryLog.load(tmp_path / "log.jsonl").points.ravel().tolist() == list(range(10))


def test_the_writer_refuses(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER)
    with pytest.raises(InvalidInput, match=r"cannot write the log .*File exists"):
        JsonlWriter(path)
    assert path.read_text() == HEADER
    with pytest.raises(InvalidInput, match=r"cannot write the log .*No such file"):
        JsonlWriter(tmp_path / "nowhere" / "log.jsonl")
    with pytest.raises(DimensionMismatch, match="1 features, but dimension 2"):
        JsonlWriter(tmp_path / "new.jsonl", ["a"], 2)
    with pytest.raises(InvalidInput, match="non-empty strings"):
        JsonlWriter(tmp_path / "new.jsonl", [""])
    assert not (tmp_path / "new.jsonl").exists()


def test_a_row_that_cannot_be_written_leaves_no_trace(tmp_path: Path) -> None:
    class Unwritten(Norm):
        def __call__(self, x: Any) -> Any: ...
        def face(self, a: Any) -> Any: ...
        @property
        def dual(self) -> Any: ...

    class Unreadable(Unwritten):
        spec = {"norm": NAN}  # noqa: RUF012

    path, x = tmp_path / "log.jsonl", np.array([1.0])
    with JsonlWriter(path) as writer:
        writer.write(Row(x, 1))
        with pytest.raises(DimensionMismatch, match="1 features, the row 2"):
            writer.write(Row(np.array([1.0, 2.0]), 1))
        with pytest.raises(InvalidInput, match="cannot be written as JSON"):
            writer.write(Row(np.array([NAN]), 1, mechanism=Mechanism("l1")))
        with pytest.raises(UnsupportedNorm, match="no written form"):
            writer.write(Row(x, status=Status.NONE, mechanism=Mechanism(Unwritten())))
        with pytest.raises(UnsupportedNorm, match="unknown norm nan"):
            writer.write(Row(x, status=Status.NONE, mechanism=Mechanism(Unreadable())))
        writer.write(Row(x, status=Status.NONE, mechanism=Mechanism("l2")))
        writer.write(Row(x, status=Status.NONE, mechanism=Mechanism("l1")))
    log = QueryLog.load(path)
    assert [row.mechanism for row in log] == [None, Mechanism("l2"), Mechanism("l1")]
    with pytest.raises(UnsupportedNorm, match="no written form"):
        QueryLog(mechanism=Mechanism(Unwritten())).save(path)
    assert len(QueryLog.load(path)) == 3


# The frame


@given(logs())
def test_frame_round_trip(log: QueryLog) -> None:
    try:
        frame = log.to_frame()
    except InvalidInput as error:
        assert "two columns of the same name" in str(error)
        return
    assert_same(QueryLog.from_frame(frame, features=log.features, mechanism=log.mechanism), log)


@given(logs(names=st.text(alphabet="abcf_", min_size=1, max_size=4)))
def test_frame_round_trip_with_columns_found_by_name(log: QueryLog) -> None:
    try:
        frame = log.to_frame()
    except InvalidInput:
        return
    assert_same(QueryLog.from_frame(frame, mechanism=log.mechanism), log)


def test_the_columns_of_a_frame() -> None:
    frame = a_log().to_frame()
    assert list(frame.columns) == [
        "a", "b", "label", "cf_a", "cf_b", "status", "mechanism", "client", "time", "source",
    ]  # fmt: skip
    assert str(frame["label"].dtype) == "Int8"
    assert frame["label"].isna().tolist() == [False, False, True, True]
    assert frame["status"].tolist() == ["not-asked", "asked", "none", "failed"]
    assert frame["client"].tolist() == [None, "änn", None, None]
    assert frame["mechanism"].isna().tolist() == [True, False, False, False]
    assert json.loads(frame["mechanism"][3])["distance"] == "l2"
    assert frame["time"].dtype == np.float64
    frame.loc[0, "a"] = 7.0  # a copy: the log is not touched


def test_features_without_names_get_some() -> None:
    log = QueryLog()
    log.add_label([1.0, 2.0], 1)
    frame = log.to_frame()
    assert list(frame.columns[:2]) == ["x0", "x1"]
    assert QueryLog.from_frame(frame).features is None
    assert QueryLog.from_frame(frame, features=["x0", "x1"]).features == ("x0", "x1")


def test_empty_frames() -> None:
    for log in (QueryLog(), QueryLog(["a"])):
        assert_same(QueryLog.from_frame(log.to_frame()), log)
    assert list(QueryLog().to_frame().columns) == ["label", "status", "mechanism", "client", "time", "source"]


def test_a_frame_survives_a_csv(tmp_path: Path) -> None:
    a_log().to_frame().to_csv(tmp_path / "log.csv", index=False)
    frame = pd.read_csv(tmp_path / "log.csv", engine="python", keep_default_na=False, na_values=[""])
    assert_same(QueryLog.from_frame(frame, mechanism=Mechanism("l1")), a_log())


def test_a_frame_of_ones_own() -> None:
    frame = pd.DataFrame(
        {
            "when": [1, 2, 3],
            "income": [1, 2, 3],
            "age": [True, False, True],
            "who": ["ann", None, "bob"],
            "said": [1.0, NAN, -1.0],
            "near_age": [1.0, NAN, NAN],
            "near_income": [2.0, NAN, NAN],
            "file": ["f", "f", "f"],
        },
        index=[7, 7, 9],
    )
    terms = Mechanism("l1")
    log = QueryLog.from_frame(
        frame, ["age", "income"], label="said", explanation="near_", client="who", time="when", source="file",
        mechanism=terms,
    )  # fmt: skip
    assert log.features == ("age", "income")
    assert log.points.tolist() == [[1, 1], [0, 2], [1, 3]]
    assert log.labels.tolist() == [1, 0, -1]
    assert log[0].explanation is not None
    assert log[0].explanation.tolist() == [1.0, 2.0]
    assert log.status.tolist() == [1, 0, 0]  # nobody said that it was asked for
    assert log.mechanism == terms
    assert log.mechanism_ids.tolist() == [0, -1, -1]
    assert log.clients.tolist() == ["ann", None, "bob"]
    assert log.times.tolist() == [1, 2, 3]
    assert log.sources.tolist() == ["f"] * 3


def test_a_frame_of_points_and_labels() -> None:
    log = QueryLog.from_frame(pd.DataFrame({"a": [1, 2], "label": [1, -1]}), mechanism=Mechanism("l1"))
    assert log.labels.tolist() == [1, -1]
    assert log.mechanisms == ()
    assert QueryLog.from_frame(pd.DataFrame({"a": [1, 2]})).labels.tolist() == [0, 0]


def test_a_feature_may_be_called_like_a_column() -> None:
    frame = pd.DataFrame({"time": [1.0], "b": [2.0], "label": [1]})
    log = QueryLog.from_frame(frame, features=["time", "b"])
    assert log.points.tolist() == [[1, 2]]
    assert np.isnan(log.times).all()
    with pytest.raises(InvalidInput, match="two columns of the same name: 'time'"):
        log.to_frame()


def like(**changes: Any) -> pd.DataFrame:
    """A good frame of three rows, with these columns changed, added or (None) dropped."""
    log = QueryLog(["a", "b"])
    log.add_explanation([[1.0, 2.0]] * 3, [[1.0, 3.0], [1.0, 4.0], [NAN, NAN]], [1, 1, 1], Mechanism("l1"))
    frame = log.to_frame()
    for name, values in changes.items():
        frame = frame.drop(columns=name) if values is None else frame.assign(**{name: values})
    return frame


FRAMES: list[tuple[pd.DataFrame, dict[str, Any], type[InvalidInput], str]] = [
    (like(b=None), {"features": ["a", "b"]}, InvalidInput, "missing: 'b'"),
    (like(b=None), {}, InvalidInput, "'cf_b'.* explain features that are no columns"),
    (like(cf_b=None), {}, InvalidInput, "missing: 'cf_b'"),
    (like(c=1.0), {"features": ["a", "b"]}, InvalidInput, "not known: 'c'"),
    (like(c=1.0), {}, InvalidInput, "missing: 'cf_c'"),
    (like(cf_c=1.0), {}, InvalidInput, "'cf_c'"),
    (like(), {"label": "said"}, InvalidInput, "missing: 'said', 'cf_label'"),
    (like(), {"features": ["a", "b"], "label": "said"}, InvalidInput, "missing: 'said'; not known: 'label'"),
    (like(), {"features": ["a", "b"], "client": "a"}, InvalidInput, r"\['a'\] cannot be features and"),
    (like(), {"features": ["a", "cf_a"]}, InvalidInput, r"\['cf_a'\] cannot be features and"),
    (like(), {"features": ["a", "a"]}, InvalidInput, "distinct"),
    (like(), {"features": "ab"}, InvalidInput, "non-empty strings"),
    (like(), {"mechanism": "l1"}, InvalidInput, "Mechanism or None"),
    (pd.DataFrame([[1.0, 2.0]]), {}, InvalidInput, "non-empty strings"),
    (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), {"features": ["a"]}, InvalidInput, "more than once: 'a'"),
    (pd.DataFrame({"label": [1]}), {}, InvalidInput, "no column that could be a feature"),
    (like(a="x"), {}, InvalidInput, "column 'a' must hold numbers"),
    (like(a=pd.Timestamp(0)), {}, InvalidInput, "column 'a' must hold numbers: it is datetime64"),
    (like(a=pd.Series([10**400, 1, 1], dtype=object)), {}, InvalidInput, "column 'a' must hold numbers"),
    (like(a=[1.0, 1.0, NAN]), {}, NotFinite, "column 'a' has nan in row 2"),
    (like(a=[1.0, math.inf, 1.0]), {}, NotFinite, "column 'a' has inf in row 1"),
    (like(a=pd.array([1, 2, None], dtype="Int64")), {}, NotFinite, "column 'a' has nan in row 2"),
    (like(cf_a=[1.0, NAN, NAN]), {}, NotFinite, "explanation in row 1"),
    (like(cf_a=[1.0, math.inf, NAN]), {}, NotFinite, "explanation in row 1"),
    (like(label=[1, 1, 0]), {}, InvalidInput, r"row 2.*2\*y-1"),
    (like(label=True), {}, InvalidInput, "column 'label' must hold numbers"),
    (like(status="lost"), {}, InvalidInput, "column 'status', row 0: status must be one of"),
    (like(status=5), {}, InvalidInput, "column 'status' must be a string or None, got 5"),
    (like(status="asked"), {}, InvalidInput, "column 'status', row 2: .*has no explanation"),
    (like(status="none"), {}, InvalidInput, "column 'status', row 0: .*has an explanation"),
    (like(mechanism="l1"), {}, InvalidInput, "column 'mechanism', row 0: not JSON"),
    (like(mechanism='{"distance": NaN}'), {}, NotFinite, "column 'mechanism', row 0: NaN"),
    (like(mechanism='{"distance": "l3"}'), {}, UnsupportedNorm, "column 'mechanism', row 0: unknown norm"),
    (like(mechanism="[" * 100_000), {}, InvalidInput, "column 'mechanism', row 0: nested too deep"),
    (like(mechanism=7), {}, InvalidInput, "column 'mechanism' must be a string or None, got 7"),
    (like(client=[None, "a", 7]), {}, InvalidInput, r"column 'client' must be a string or None, got 7 \(row 2\)"),
    (like(source=7.5), {}, InvalidInput, "column 'source' must be a string or None"),
    (like(time=pd.Timestamp(0)), {}, InvalidInput, "column 'time' must hold numbers"),
    (like(time=math.inf), {}, NotFinite, "time must be finite"),
]  # fmt: skip


@pytest.mark.parametrize(("frame", "names", "error", "text"), FRAMES)
def test_a_frame_that_is_no_log_is_refused(
    frame: pd.DataFrame, names: dict[str, Any], error: type[InvalidInput], text: str
) -> None:
    with pytest.raises(InvalidInput, match=text) as caught:
        QueryLog.from_frame(frame, **names)
    assert type(caught.value) is error


def test_a_mechanism_column_speaks_for_its_rows() -> None:
    terms = like()["mechanism"][0]
    log = QueryLog.from_frame(like(mechanism=[None, terms, terms]), mechanism=Mechanism("l2"))
    assert [row.mechanism for row in log] == [None, Mechanism("l1"), Mechanism("l1")]
    assert QueryLog.from_frame(like(mechanism=None), mechanism=Mechanism("l2")).mechanism_ids.tolist() == [0, 0, 0]


def test_only_a_frame_is_a_frame() -> None:
    with pytest.raises(InvalidInput, match="pandas DataFrame, got dict"):
        QueryLog.from_frame({"a": [1]})


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for ask in (a_log().to_frame, lambda: QueryLog.from_frame(None)):
        with pytest.raises(InvalidInput, match=r'pip install "overexplain\[frames\]"'):
            ask()
    assert frames.PREFIX == "cf_"


def test_pandas_is_not_loaded_before_it_is_needed(tmp_path: Path) -> None:
    program = """
import sys
from overexplain.log.querylog import QueryLog
log = QueryLog(["a"])
log.add_label({"a": 1.0}, 1)
log.save(sys.argv[1])
assert QueryLog.load(sys.argv[1]) == log
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "log.jsonl")], check=True)
