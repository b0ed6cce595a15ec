"""Many processes, and some that die: the same files, byte for byte."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
        scheduler_kwargs=cluster.NO_DASHBOARD,
    ) as found:
        yield found


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda *_: 32)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    place = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "block_rows", lambda *_: 32)
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


class Restless:
    """A client whose workers die whenever they are spoken to; Dask then speaks of its own insides."""

    status = "running"

    def __init__(self, deaths: int, scheduler_dies: bool = False) -> None:
        self.deaths, self.scheduler_dies = deaths, scheduler_dies

    def wait_for_workers(self, _count: int, timeout: float) -> None:
        if self.deaths > 1000:
            raise TimeoutError

    def nthreads(self) -> dict[str, int]:
        if self.scheduler_dies:
            raise OSError("Timed out trying to connect")
        return {}

    def scatter(self, job: Any, **_options: Any) -> Any:
        self.deaths -= 1
        if self.deaths >= 0:
            raise OSError("in <TCP (closed) ConnectionPool.scatter local=tcp://127.0.0.1:5>: Stream is closed")
        return job


def restless(client: Restless, started_here: bool = True) -> Any:
    return cluster._Crowd(distributed, client, "the job", 7.0, started_here)


def test_workers_that_die_as_they_are_sent_the_work_are_spoken_of_in_plain_words() -> None:
    assert restless(Restless(deaths=cluster.DEATHS))._send() == "the job"
    with pytest.raises(ClusterFailed, match=r"^workers died again and again.*the same command carries on") as caught:
        restless(Restless(deaths=cluster.DEATHS + 1))._send()
    assert "TCP" not in str(caught.value)
    assert "scheduler" not in str(caught.value)
    assert not restless(Restless(1, scheduler_dies=True)).has_scheduler()
    with pytest.raises(ClusterFailed, match="none came within 7 s; those started here died"):
        restless(Restless(deaths=2000))._send()
    with pytest.raises(ClusterFailed, match="none came within 7 s; start one: dask worker ADDRESS"):
        restless(Restless(deaths=2000), started_here=False)._send()


@pytest.mark.parametrize("has_scheduler", [True, False])
def test_what_dask_says_of_its_insides_is_not_repeated(has_scheduler: bool, monkeypatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError("in <TCP (closed) ConnectionPool.gather>: Stream is closed")

    @contextmanager
    def client(*_: Any) -> Iterator[Any]:
        yield Restless(0, scheduler_dies=not has_scheduler)

    monkeypatch.setattr(cluster._Crowd, "run", fail)
    monkeypatch.setattr(cluster, "_client", client)
    said = "^workers died again" if has_scheduler else "^the scheduler was lost: it does not answer any more"
    with pytest.raises(ClusterFailed, match=said) as caught:
        list(cluster.distribute("the job", [], workers=2))
    assert "TCP" not in str(caught.value)


def test_workers_started_here_need_no_port_of_their_own(monkeypatch) -> None:
    """Dask would take 8787 for a browser, open to everybody, and warn if somebody else has it."""
    options: dict[str, Any] = {}

    class Looked(Exception):
        pass

    def look(**given: Any) -> Any:
        options.update(given)
        raise Looked

    monkeypatch.setattr(distributed, "LocalCluster", look)
    with pytest.raises(Looked), cluster._client(distributed, 2, None, 1.0):
        pass
    monkeypatch.undo()

    async def started() -> str:
        async with distributed.Scheduler(host="127.0.0.1", port=0, **options["scheduler_kwargs"]) as scheduler:
            return f"{scheduler.http_server.address}:{scheduler.http_server.port}"

    address = asyncio.run(started())
    assert address.startswith("127.0.0.1:")
    assert address != "127.0.0.1:8787"


def test_dask_missing_is_said(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match=r'pip install "overexplain\[dask\]"'):
        run(tmp_path, workers=2)


SCHEDULER = """
import asyncio, sys, distributed
async def main():
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
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
