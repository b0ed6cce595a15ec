"""Many processes, and some that die: the same files, byte for byte."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

from datasets import FEATURES, labels, named, people, robust, store, write_model, written
from overexplain.cli.main import run as cli
from overexplain.errors import ClusterFailed, InvalidInput, NotFinite
from overexplain.knowledge.engine import Knowledge
from overexplain.scale import certify, cluster, count
from overexplain.scale.certify import Certified, certify_dataset
from overexplain.scale.count import Count
from overexplain.scale.parts import Part, open_dataset
from overexplain.scale.work import Job

ROWS = people(60)
PLAN = {"part_rows": 10}
MODULES = ["overexplain.scale.certify", "overexplain.scale.count", "numba", "pyarrow.parquet", "scipy.optimize"]


@pytest.fixture(scope="module")
def crowd() -> Iterator[Any]:
    """A scheduler with two worker processes, which their nannies start again when they die.

    They are forked from a process that has all modules: to import them takes longer than the work.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", *MODULES])
        distributed.utils._forkserver_preload_set = True  # Dask would have others
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, silence_logs=logging.CRITICAL,
            scheduler_kwargs=cluster.NO_DASHBOARD,
        ) as found:  # fmt: skip
            yield found


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "block_rows", lambda *_: 10)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    place = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certify, "block_rows", lambda *_: 10)
        run(place)
    return written(place / "out", place / "proofs")


def run(place: Path, **options: Any) -> Certified:
    folder = store(place / "in", ROWS, [26, 34], group=10)
    return certify_dataset(Knowledge(labels()), folder, place / "out", proofs=place / "proofs", **PLAN, **options)


def pids(crowd: Any) -> list[int]:
    """The processes of the workers that are there now."""
    with distributed.Client(crowd) as client:
        return list(client.run(os.getpid).values())


def test_two_workers_write_what_one_process_writes(crowd: Any, alone: dict[str, bytes], tmp_path: Path) -> None:
    seen: list[int] = []
    done = run(tmp_path, scheduler=crowd.scheduler_address, progress=lambda _, rows, __: seen.append(rows))
    assert (done.parts, done.kept, done.determined.points) == (6, 0, 60)
    assert written(tmp_path / "out", tmp_path / "proofs") == alone
    assert seen == sorted(seen)
    assert seen[-1] == 60


@pytest.mark.parametrize("level", ["shared", "exact"])
def test_robust_verdicts_are_the_same_too(level: Any, crowd: Any, tmp_path: Path) -> None:
    folder = store(tmp_path / "in", ROWS[:50], [50], group=10)
    for place, options in (("here", {}), ("there", {"scheduler": crowd.scheduler_address})):
        certify_dataset(Knowledge(robust(), robust=level), folder, tmp_path / place, **PLAN, **options)
    assert named(tmp_path / "there") == named(tmp_path / "here")
    # What is learnt on the way decides some of what is left open without cases.
    assert ("UNDECIDED" in named(tmp_path / "here")) == (level == "shared")


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
    assert done.determined.points == 60
    assert written(tmp_path / "out", tmp_path / "proofs") == alone
    assert not list(tmp_path.rglob(".part-*"))
    assert not set(victims) & set(pids(crowd))


def test_workers_of_our_own_write_the_same(crowd: Any, alone: dict[str, bytes], tmp_path: Path) -> None:
    done = run(tmp_path, workers=2)
    assert done.determined.points == 60
    assert written(tmp_path / "out", tmp_path / "proofs") == alone


def test_counts_are_the_same_and_workers_may_die(crowd: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(count, "block_rows", lambda _: 10)
    dataset = open_dataset(store(tmp_path / "in", ROWS, [26, 34], group=10), FEATURES, 3)
    knowledge = [Knowledge(labels()), Knowledge(robust())]
    victim = pids(crowd)[0]
    killed: list[int] = []

    def kill(_what: str, rows: int, _total: int) -> None:
        if rows > 0 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    there = count.count_dataset(knowledge, dataset, scheduler=crowd.scheduler_address, progress=kill, **PLAN)
    assert killed
    assert there == count.count_dataset(knowledge, dataset)
    assert [sum(counts.values()) for counts in there] == [60, 60]


def test_an_audit_says_the_same_whoever_counts(crowd: Any, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(count, "block_rows", lambda _: 10)
    monkeypatch.chdir(tmp_path)
    store(tmp_path / "people", ROWS, [60], group=10)
    write_model(tmp_path / "model.json")
    command = ["audit", "model.json", "--data", "people", "--no-defences", "--maps", "0", "--orders", "1", "--json"]
    command += ["--no-compare", "--answers", "2,3", "--judged", "30"]
    said = []
    for options in ([], ["--scheduler", crowd.scheduler_address]):
        assert cli([*command, "--all-cases", *options]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert json.loads(said[0])["all_cases"]


def test_a_fault_in_the_data_is_named_and_costs_its_own_part(crowd: Any, tmp_path: Path) -> None:
    rows = ROWS.copy()
    rows[20, 0] = float("nan")
    folder = store(tmp_path / "in", rows, [26, 34], group=10)
    with pytest.raises(NotFinite, match=r"people-000\.parquet, row 20.*5 of 6 parts are done and kept"):
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
    with pytest.raises(ClusterFailed, match="all must have the same"):
        cluster.refuse_absent(crowd.scheduler_address)


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
    return cluster._Crowd(distributed, client, 7.0, started_here, Job.if_lost)


def test_workers_that_die_as_they_are_sent_the_work_are_spoken_of_in_plain_words() -> None:
    assert restless(Restless(deaths=cluster.DEATHS))._send("the work") == "the work"
    with pytest.raises(ClusterFailed, match=r"^workers died again and again.*the same command carries on") as caught:
        restless(Restless(deaths=cluster.DEATHS + 1))._send("the work")
    assert "TCP" not in str(caught.value)
    assert "scheduler" not in str(caught.value)
    assert not restless(Restless(1, scheduler_dies=True)).has_scheduler()
    with pytest.raises(ClusterFailed, match="none came within 7 s; those started here died"):
        restless(Restless(deaths=2000))._send("the work")
    with pytest.raises(ClusterFailed, match="none came within 7 s; start one: dask worker ADDRESS"):
        restless(Restless(deaths=2000), started_here=False)._send("the work")


@pytest.mark.parametrize("error", [OSError("in <TCP (closed)>: Stream is closed"), distributed.CancelledError("part")])
def test_a_part_that_cannot_be_fetched_any_more_is_done_again(error: Exception) -> None:
    class Ended:
        status = "finished"

        def result(self) -> Any:
            raise error

    assert restless(Restless(0))._result(Ended(), Part(0, 0, 10)) is None


@pytest.mark.parametrize("has_scheduler", [True, False])
def test_what_dask_says_of_its_insides_is_not_repeated(has_scheduler: bool, monkeypatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError("in <TCP (closed) ConnectionPool.gather>: Stream is closed")

    @contextmanager
    def client(*_: Any) -> Iterator[Any]:
        yield Restless(0, scheduler_dies=not has_scheduler)

    monkeypatch.setattr(cluster._Crowd, "run", fail)
    monkeypatch.setattr(cluster._Crowd, "check_versions", fail)
    monkeypatch.setattr(cluster, "_client", client)
    said = "^workers died again" if has_scheduler else "^the scheduler was lost: it does not answer any more"
    with pytest.raises(ClusterFailed, match=said) as caught:
        list(cluster.distribute(Count((), None, None, 1, "0"), [], workers=2))
    assert "TCP" not in str(caught.value)
    assert str(caught.value).endswith("Nothing of the count is kept; the same command begins again")
    with pytest.raises(ClusterFailed, match=said) as caught:
        cluster.refuse_absent("tcp://127.0.0.1:1")
    assert str(caught.value).endswith("Nothing was begun")


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
    async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard=False, dashboard_address="127.0.0.1:0") as scheduler:
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
