"""Logs that are longer than memory should hold: their coordinates go to a file without a name, and what is read is the same."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overexplain.auditing.monitoring.monitor import monitor
from overexplain.errors import InvalidInput
from overexplain.extraction.recover import recover
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.engine import Knowledge
from overexplain.log import blocks, files, spool
from overexplain.log.files import read_log
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.spool import Spool
from overexplain.log.store import rows as run_rows
from overexplain.log.summary import summarize
from overexplain.log.terms import with_terms

KINDS = ("log.jsonl", "log.csv", "log.parquet", "log.sqlite")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def answered(rows: int = 230, p: int = 3) -> QueryLog:
    """Labels, explanations and questions without one, under one mechanism (a run has no more)."""
    rng = np.random.default_rng(0)
    log = QueryLog([f"f{i}" for i in range(p)], Mechanism("l1"))
    points = rng.normal(size=(rows, p))
    answers = points + rng.normal(size=(rows, p))
    answers[rng.random(rows) < 0.3] = np.nan
    log.add_explanation(points, answers, time=1e9 + np.arange(rows))
    log.add_label(points[:50], np.where(points[:50, 0] > 0, 1, -1), time=1e9)
    return log


@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_depends_neither_on_blocks_nor_on_where_it_is_kept(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered().save(name)
    whole = read_log(name)
    assert len(whole) == 280
    for size in (1, 7, 100):
        for module, constant in ((blocks, "BLOCK"), (run_rows, "_BLOCK")):
            monkeypatch.setattr(module, constant, size)
        monkeypatch.setattr("overexplain.log.jsonl.formats.CHUNK", size)
        for held in (0, 2000, 2**24):
            monkeypatch.setattr(spool, "HELD", held)
            read = read_log(name)
            assert read == whole
            assert summarize(read) == summarize(whole)


def test_a_long_log_can_be_used_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "HELD", 0)
    monkeypatch.setattr(blocks, "BLOCK", 100)
    log = QueryLog(["a", "b"])
    log.add_explanation(np.zeros((250, 2)), np.ones((250, 2)), np.full(250, -1))
    log.save("log.csv")
    read = read_log("log.csv")
    stated = with_terms(read, Mechanism("l2"))
    assert np.shares_memory(stated.points, read.points)
    assert stated.mechanisms == (Mechanism("l2"),)
    assert read.mechanisms == ()
    for grown in (read, stated):  # neither sees what is added to the other
        grown.add_label([5.0, 6.0], 1)
        assert len(grown) == 251
        assert grown.points[-1].tolist() == [5.0, 6.0]
        assert grown.status[-2:].tolist() == [Status.ASKED, Status.NOT_ASKED]


SPOOLING = """
import os, sys, time
from collections.abc import Callable
from contextlib import ExitStack
import numpy as np
from overexplain.log import spool
spool.HELD = 1000
with ExitStack() as files:
    kept = spool.Spool(5, files)
    kept.add(np.ones((1000, 5)))
    state = os.fstat(kept._file.fileno())
    print(oct(state.st_mode & 0o777), state.st_nlink, state.st_size, flush=True)
    rows = kept.rows()
print(rows.sum(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_file_is_its_owners_and_goes_with_the_process(number: signal.Signals, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SPOOLING], stdout=subprocess.PIPE, text=True, env={"TMPDIR": str(tmp_path)}
    )
    assert child.stdout is not None
    with child.stdout as said:
        assert said.readline() == "0o600 0 40000\n"
        assert said.readline() == "5000.0\n"
        assert list(tmp_path.iterdir()) == []
        assert f"{tmp_path}/" in Path(f"/proc/{child.pid}/maps").read_text()
        child.send_signal(number)
        assert child.wait() == -number
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    answered().save("log.jsonl")
    monkeypatch.setattr(blocks, "BLOCK", 100)
    monkeypatch.setattr("overexplain.log.jsonl.formats.CHUNK", 100)
    monkeypatch.setattr(spool, "HELD", 0)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115
    with pytest.raises(InvalidInput, match=r"cannot read the log log\.jsonl: No space left on device in .*TMPDIR"):
        read_log("log.jsonl")


def test_a_log_that_the_disk_cannot_take_is_refused_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered().save("log.parquet")
    needed = 280 * 3 * 16
    monkeypatch.setattr(files, "HELD", 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed - 1))
    with pytest.raises(InvalidInput, match="280 rows or more of 3 features do not fit into .*TMPDIR"):
        read_log("log.parquet")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed))
    assert len(read_log("log.parquet")) == 280
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "gettempdir", without_memory)  # a short log needs no folder
    assert len(read_log(tmp_path / "log.parquet")) == 280


READING = """
import sys
from pathlib import Path
from overexplain.log.files import read_log

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

few = len(read_log("few" + sys.argv[1]))  # as much as blocks take, and what is loaded to read them
before = peak()
many = len(read_log("many" + sys.argv[1]))
print(peak() - before, many - few)
"""


@pytest.mark.parametrize("kind", [".jsonl", ".csv", ".parquet"])
def test_a_row_takes_a_few_dozen_bytes_of_memory_and_not_its_coordinates(kind: str) -> None:
    rows, p = 1000, 30
    rng = np.random.default_rng(0)
    points = rng.normal(size=(rows, p))
    for name, copies in (("few", 150), ("many", 350)):
        log = QueryLog(None, Mechanism("l1"))
        # Equal numbers would hardly take any space in a Parquet file.
        many = rng.normal(size=(rows * copies, p)) if kind == ".parquet" else points
        log.add_explanation(many, many + 1.0, client="ann", time=1e9)
        log.save(name + kind)
        if kind != ".parquet":  # quicker than to write every number again
            lines = Path(name + kind).read_bytes().splitlines(keepends=True)
            Path(name + kind).write_bytes(b"".join(lines[:-rows] + lines[-rows:] * copies))
    done = subprocess.run([sys.executable, "-c", READING, kind], capture_output=True, text=True, check=True)
    more, count = map(int, done.stdout.split())
    assert count == 200_000
    assert more / count < 400  # its coordinates take 480


def test_few_rows_stay_in_memory() -> None:
    with ExitStack() as files:
        kept = Spool(2, files)
        kept.add(np.zeros((3, 2)))
        kept.add(np.ones((2, 2)))
        rows = kept.rows()
    assert rows.base is None
    assert rows.tolist() == [[0.0, 0.0]] * 3 + [[1.0, 1.0]] * 2


def without_memory(*_: Any, **__: Any) -> Any:
    return np.empty(10**15)


@pytest.mark.parametrize(
    ("where", "use"),
    [
        ("overexplain.log.files.joined", lambda: read_log("log.jsonl")),
        ("overexplain.auditing.monitoring.monitor.gathered", lambda: monitor("log.jsonl")),
        ("overexplain.knowledge.engine.Known", lambda: Knowledge(answered())),
        ("overexplain.extraction.recover.refuse_extreme", lambda: recover(answered())),
    ],
)
def test_no_memory_is_an_error_of_ours(where: str, use: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    answered().save("log.jsonl")
    monkeypatch.setattr(where, without_memory)
    with pytest.raises(InvalidInput, match="out of memory: the input is too large for this machine"):
        use()


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet", "records.jsonl"])
def test_it_is_said_how_far_reading_has_come(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 50)
    monkeypatch.setattr("overexplain.log.jsonl.formats.MOUTHFUL", 5000)
    mapping = None
    if name == "records.jsonl":
        Path(name).write_text("".join(f'{{"a": {i}}}\n' for i in range(280)))
        mapping = {"x": "a"}
    else:
        answered().save(name)
    heard: list[tuple[int, int]] = []
    read_log(name, mapping=mapping, seen=lambda *read: heard.append(read))
    assert len(heard) > 4
    assert heard == sorted(set(heard))
    assert heard[-1][0] == heard[-1][1] == (280 if name == "log.parquet" else Path(name).stat().st_size)
    assert len({total for _, total in heard}) == 1


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_blocks_of_wide_tables_have_fewer_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answered().save(name)
    whole = read_log(name)
    columns = 2 * 3 + len(("label", "status", "mechanism", "client", "time", "source"))
    monkeypatch.setattr("overexplain.log.tables.tables.CELLS", 50 * columns)
    assert [len(block) for block in blocks.read_blocks(Path(name))] == [50] * 5 + [30]
    assert read_log(name) == whole
