"""Who may open a run's file and when: one writer at a time, whatever became of the last; readers that change nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from overexplain.errors import InvalidInput
from overexplain.log.store import file as store_file
from overexplain.log.store.run import Run
from store_samples import YES, asked, forked, new


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "_PATIENCE", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_run_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with new(tmp_path) as run:
        asked(run, "classify", [1, 1], YES)
        before = run.path.stat().st_mtime_ns

        def refused() -> None:
            for door in (Run.open, Run.read):
                with pytest.raises(InvalidInput, match="in use by another process"):
                    door(path)

        refused()  # the same process
        assert forked(refused) == 0  # another one; would not be refused if the first check had dropped our lock
        assert path.stat().st_mtime_ns == before
        asked(run, "classify", [1, 2], YES)
    assert Run.read(path).answered == 2


def test_many_that_open_at_once_get_in_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "_PATIENCE", 60.0)
    path = tmp_path / "run.sqlite"
    new(tmp_path).close()
    waiting, starting = os.pipe()
    children = []
    for k in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(starting)
                os.read(waiting, 1)  # ends for all when the parent closes its side
                for _ in range(2):
                    with Run.open(path) as run:
                        before = run.spent
                        asked(run, "classify", [k, before], YES)
                        assert run.spent == before + 1
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    os.close(starting)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    os.close(waiting)
    assert codes == [0] * 4
    assert Run.read(path).log().points[:, 1].tolist() == list(range(8))


def test_a_killed_writer_leaves_everything_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"

    def crash() -> None:
        run = new(tmp_path)
        asked(run, "classify", [1, 1], YES)
        run.question("explain", np.ones(2)).sending()
        os._exit(0)

    assert forked(crash) == 0
    assert (tmp_path / "run.sqlite-wal").stat().st_size > 0
    found = Run.read(path)
    assert (found.answered, found.spent, len(found.unanswered), len(found.log())) == (1, 2, 1, 1)
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]  # tidied up
    with Run.open(path) as run:
        assert run.question("classify", np.ones(2)).outcome.label == 1


def test_kill_9_at_random_moments_loses_no_answer_that_was_acknowledged(tmp_path: Path) -> None:
    path, budget = tmp_path / "run.sqlite", 100_000
    new(tmp_path, budget=budget).close()
    rng = np.random.default_rng(5)
    told: list[str] = []
    for _ in range(12):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                run = Run.open(path)
                k = 0
                while True:
                    question = run.question("classify", np.array([float(k), 0.0]))
                    if question.outcome is None:
                        question.sending()
                        os.write(writer, b"s%d " % k)
                        question.heard(YES)
                        os.write(writer, b"a%d " % k)
                    k += 1
            finally:
                os._exit(1)
        os.close(writer)
        text = b""
        while b"a" not in text:  # it has begun
            text += os.read(reader, 1)
        time.sleep(rng.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while part := os.read(reader, 65536):
            text += part
        os.close(reader)
        told += [word for word in text.decode().split(" ")[:-1] if word]
        found = Run.read(path) if len(told) % 2 else Run.open(path)
        with found as run:
            labels = {int(x[0]) for x in run.log().points}
            assert {int(word[1:]) for word in told if word[0] == "a"} <= labels
            assert run.spent >= sum(word[0] == "s" for word in told)
            assert run.spent == run.answered + len(run.unanswered)
    assert len(labels) >= 12


def test_a_fork_can_neither_use_nor_hurt_its_parents_run(tmp_path: Path) -> None:
    """In a process of its own, because the child must end as Python ends, not by os._exit."""
    script = f"""
import os, sys
import numpy as np
from overexplain.errors import InvalidInput
from overexplain.log.store.run import Outcome, Run
def ask(run, k):
    question = run.question("classify", np.full(2, float(k))); question.sending(); question.heard(Outcome("label", label=1))
with Run.create({str(tmp_path / "run.sqlite")!r}, plan={{}}, dimension=2, budget=9) as run:
    ask(run, 0)
    child = os.fork()
    if child == 0:
        try:
            ask(run, 1)
        except InvalidInput as error:
            assert "fork" in str(error)
            sys.exit(7)  # leaves the with block, collects garbage
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    ask(run, 2)
    os._exit(5)
"""
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", script], timeout=120, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (5, "")
    assert Run.read(tmp_path / "run.sqlite").log().points[:, 0].tolist() == [0, 2]


def test_a_run_that_is_closed_or_only_read_takes_no_questions(tmp_path: Path) -> None:
    run = new(tmp_path)
    asked(run, "classify", [1, 1], YES)
    run.close()
    run.close()
    for use in (run.log, lambda: run.question("classify", np.ones(2)), lambda: run.unanswered, lambda: run.allow(20)):
        with pytest.raises(InvalidInput, match="closed"):
            use()
    assert run.spent == 1
    with Run.read(tmp_path / "run.sqlite") as found:
        for use in (lambda: found.question("classify", np.ones(2)), lambda: found.allow(20)):
            with pytest.raises(InvalidInput, match="opened to read"):
                use()
    assert len(found.log()) == 1


def test_reading_changes_nothing_and_makes_no_files(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        asked(run, "classify", [1, 1], YES)
    path = tmp_path / "run.sqlite"
    before = path.read_bytes(), path.stat().st_mtime_ns
    readers = [Run.read(path), Run.read(path)]
    assert readers[0].log() == readers[1].log()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(tmp_path.iterdir()) == [path]
    with Run.open(path) as run:  # readers hold nothing
        assert run.answered == 1


def test_a_read_only_folder_can_be_read_and_not_gone_on_with() -> None:
    with tempfile.TemporaryDirectory() as name:  # every user can get there, unlike to pytest's own folders
        folder = Path(name)
        with new(folder) as run:
            asked(run, "classify", [1, 1], YES)

        def visitor() -> None:
            if os.geteuid() == 0:  # permissions do not hold the superuser back
                os.setgid(65534)
                os.setuid(65534)
            assert Run.read(folder / "run.sqlite").answered == 2
            with pytest.raises(InvalidInput, match="may not be written"):
                Run.open(folder / "run.sqlite")
            with pytest.raises(InvalidInput, match="cannot be made"):
                Run.create(folder / "new.sqlite", plan={}, dimension=1, budget=1)
            with pytest.raises(InvalidInput, match="copy it, with the -wal"):
                Run.read(folder / "killed.sqlite")

        run = Run.open(folder / "run.sqlite")
        asked(run, "classify", [1, 2], YES)
        for end in ("", "-wal"):
            shutil.copy(f"{run.path}{end}", folder / f"killed.sqlite{end}")
            (folder / f"killed.sqlite{end}").chmod(0o444)
        run.close()
        (folder / "run.sqlite").chmod(0o444)
        folder.chmod(0o555)
        assert forked(visitor) == 0
        folder.chmod(0o755)


def test_links_are_followed_to_a_run_but_never_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    with new(folder) as run:
        asked(run, "classify", [1, 1], YES)
    link = tmp_path / "link.sqlite"
    link.symlink_to(folder / "run.sqlite")
    with Run.open(link) as run:
        asked(run, "classify", [1, 2], YES)
        assert (folder / "run.sqlite-wal").exists()
    assert Run.read(link).answered == 2
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link.sqlite", "dangling", "real"):
        with pytest.raises(InvalidInput, match="exists already"):
            Run.create(tmp_path / name, plan={}, dimension=1, budget=1)
    assert not (tmp_path / "nowhere").exists()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder", "missing", "a\0b", "x" * 300):
        for door in (Run.open, Run.read):
            with pytest.raises(InvalidInput):
                door(tmp_path / name)
    for name in ("missing/run.sqlite", "a\0b", "x" * 300):
        with pytest.raises(InvalidInput):
            Run.create(tmp_path / name, plan={}, dimension=1, budget=1)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "pipe"]


def test_odd_names_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a b?mode=memory#x%41.sqlite", "é\udcff.sqlite", ":memory:"):
        with Run.create(name, plan={}, dimension=1, budget=1) as run:
            run.question("classify", np.ones(1)).sending()
        assert Path(name).exists()
        assert Run.read(name).spent == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_a_leftover_of_another_run_is_not_taken_for_ours(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite-wal").write_bytes(b"something")
    with pytest.raises(InvalidInput, match=r"run\.sqlite-wal"):
        new(tmp_path)
