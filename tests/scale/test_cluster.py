"""Many processes, and some that die: the same files, byte for byte."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

from datasets import labels, named, people, robust, store, written
from overexplain.errors import ClusterFailed, InvalidInput, NotFinite
from overexplain.knowledge.engine import Knowledge
from overexplain.scale import certify, cluster
from overexplain.scale.certify import Certified, certify_dataset

ROWS = people(192)
PLAN = {"part_rows": 32}


@pytest.fixture(scope="module")
def crowd() -> Iterator[Any]:
    """A scheduler with two worker processes, which their nannies start again when they die."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
    ) as found:
        yield found


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda _: 32)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    place = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "block_rows", lambda _: 32)
        run(place)
    return written(place / "out", place / "proofs")


def run(place: Path, **options: Any) -> Certified:
    folder = store(place / "in", ROWS, [70, 122], group=32)
    return certify_dataset(Knowledge(labels()), folder, place / "out", proofs=place / "proofs", **PLAN, **options)


def pids(crowd: Any) -> list[int]:
    """The processes of the workers that are there now."""
    with distributed.Client(crowd) as client:
        return list(client.run(os.getpid).values())


def test_two_workers_write_what_one_process_writes(crowd: Any, alone: dict[str, bytes], tmp_path: Path) -> None:
    seen: list[int] = []
    done = run(tmp_path, scheduler=crowd.scheduler_address, progress=lambda _, rows, __: seen.append(rows))
    assert (done.parts, done.kept, done.determined.points) == (6, 0, 192)
    assert written(tmp_path / "out", tmp_path / "proofs") == alone
    assert seen == sorted(seen)
    assert seen[-1] == 192


def test_robust_verdicts_are_the_same_too(crowd: Any, tmp_path: Path) -> None:
    folder = store(tmp_path / "in", ROWS[:160], [160], group=32)
    for place, options in (("here", {}), ("there", {"scheduler": crowd.scheduler_address})):
        certify_dataset(Knowledge(robust()), folder, tmp_path / place, **PLAN, **options)
    assert named(tmp_path / "there") == named(tmp_path / "here")
    assert "UNDECIDED" in named(tmp_path / "here")  # of which what is learnt on the way decides some


@pytest.mark.parametrize("how_many", [1, 2])
def test_workers_may_die(how_many: int, crowd: Any, alone: dict[str, bytes], tmp_path: Path) -> None:
    """With both of them goes what was sent to them: it is sent again to those that come."""
    victims = pids(crowd)[:how_many]
    killed: list[int] = []

    def kill(_what: str, rows: int, _total: int) -> None:
        if rows > 0 and not killed:
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            killed.extend(victims)

    done = run(tmp_path, scheduler=crowd.scheduler_address, progress=kill)
    assert killed == victims
    assert done.determined.points == 192
    assert written(tmp_path / "out", tmp_path / "proofs") == alone
    assert not list(tmp_path.rglob(".part-*"))
    assert not set(victims) & set(pids(crowd))


def test_a_fault_in_the_data_is_named_and_costs_its_own_part(crowd: Any, tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[40, 0] = float("nan")
    folder = store(tmp_path / "in", rows, [70, 122], group=32)
    with pytest.raises(NotFinite, match=r"people-000\.parquet, row 40.*5 of 6 parts are done and kept"):
        certify_dataset(Knowledge(labels()), folder, tmp_path / "out", scheduler=crowd.scheduler_address, **PLAN)
    assert len(written(tmp_path / "out")) == 5


def test_what_cannot_be_written_is_raised_as_it_is(crowd: Any, tmp_path: Path, monkeypatch) -> None:
    begin = certify.begin

    def begin_and_lose(job: Any, parts: Any) -> Any:
        found = begin(job, parts)
        job.proofs.rmdir()
        return found

    monkeypatch.setattr(certify, "begin", begin_and_lose)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        run(tmp_path, scheduler=crowd.scheduler_address)


def test_other_versions_at_a_worker_are_refused(crowd: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "own_version", lambda: "77")
    with pytest.raises(ClusterFailed, match=r"has overexplain .*, here it is 77: all must have the same"):
        run(tmp_path, scheduler=crowd.scheduler_address)


def test_nobody_at_the_address(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    with pytest.raises(ClusterFailed, match=r"no scheduler answers at tcp://127\.0\.0\.1:1: "):
        run(tmp_path, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ClusterFailed, match="no scheduler answers at nonsense://"):
        run(tmp_path, scheduler="nonsense://")


def test_dask_missing_is_said(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match=r'pip install "overexplain\[dask\]"'):
        run(tmp_path, workers=2)


SCHEDULER = """
import asyncio, sys, distributed
async def main():
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        async with distributed.Worker(scheduler.address, nthreads=1, memory_limit=0, dashboard=False) as worker:
            print(scheduler.address, flush=True)
            await scheduler.finished()
asyncio.run(main())
"""


def test_a_scheduler_that_dies_ends_the_run_and_its_parts_are_kept(alone: dict[str, bytes], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()

        def kill(_what: str, rows: int, _total: int) -> None:
            if rows:
                process.kill()

        with pytest.raises(ClusterFailed, match=r"the scheduler was lost: .*the same command carries on"):
            run(tmp_path, scheduler=address, progress=kill)
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()
    done = run(tmp_path)
    assert 0 < done.kept < 6
    assert written(tmp_path / "out", tmp_path / "proofs") == alone
