"""Parts on other processes and machines, by Dask (the extra `dask`): workers may die, the result stays the same.

The knowledge is sent once, to every worker; a task is one part, a pure function of it, and writes its files itself, whole or not at
all. A worker that dies takes nothing along but the parts it was at, which others begin again; if everybody who had the knowledge is
gone, it is sent again. What the workers share is a file system: they read the data set and write the output under the same paths.
"""

from __future__ import annotations

import importlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from overexplain.errors import ClusterFailed, InvalidInput
from overexplain.scale.folder import own_version, versions
from overexplain.scale.parts import Part
from overexplain.scale.work import Done, Job, do_part

RETRIES = 2
"""How often a part is tried again after an error of the machine, such as a disk that did not answer."""

DEATHS = 5
"""So many workers may die over one part before it is taken to be the reason (workers that this process starts)."""

AHEAD = 3
"""Parts that wait at the scheduler for every thread of a worker, so that none is ever idle."""

PATIENCE = 120.0
"""Seconds without a worker before the work is given up."""

NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
"""Dask listens for a browser even without a dashboard, by default on port 8787; so on any free port, for this machine alone."""

CONNECT = 10.0
LOOK = 2.0


CARRY_ON = "Parts that were done are kept; the same command carries on with the rest"


def distribute(
    job: Job,
    parts: Sequence[Part],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    patience: float = PATIENCE,
) -> Iterator[Done]:
    """What came of every part, as they end: by `workers` processes here, or by those of a scheduler that is running."""
    distributed = _distributed()
    with _client(distributed, workers, scheduler, patience) as client:
        crowd = _Crowd(distributed, client, job, patience, started_here=scheduler is None)
        try:
            yield from crowd.run(parts)
        except (distributed.CancelledError, OSError) as error:
            if client.status == "running" and getattr(error, "errno", None):
                raise  # of a part: a disk that is full, a folder that is gone
            raise (_died() if crowd.has_scheduler() else _lost("it does not answer any more")) from error


class _Crowd:
    """The workers of one run, and the parts that they are at."""

    def __init__(self, distributed: Any, client: Any, job: Job, patience: float, started_here: bool) -> None:
        self.distributed, self.client, self.job, self.patience = distributed, client, job, patience
        self.started_here = started_here
        self.alone_since: float | None = None

    def run(self, parts: Sequence[Part]) -> Iterator[Done]:
        waiting = list(reversed(parts))
        self._check_versions()
        sent = self._send()
        running: dict[Any, Part] = {}
        losses = 0
        try:
            while waiting or running:
                room = AHEAD * max(1, self._threads())
                while waiting and len(running) < room:
                    part = waiting.pop()
                    running[self._submit(sent, part)] = part
                ended = self._ended(list(running))
                lost = [running.pop(future) for future in ended if future.status == "cancelled"]
                for future in ended:
                    if future in running:
                        yield self._result(future, running.pop(future))
                        losses = 0
                if lost:  # what they need went down with the last worker that had it
                    losses += 1
                    if losses > DEATHS:
                        raise _died()
                    self._look_around()
                    waiting += reversed(lost)
                    sent = self._send()
        finally:
            if self.client.status == "running":
                self.client.cancel(list(running), force=True)

    def _submit(self, sent: Any, part: Part) -> Any:
        key = f"overexplain-{part.name}-{self.job.digest(part)[:16]}-{sent.key[-16:]}"
        return self.client.submit(do_part, sent, part, key=key, retries=RETRIES, pure=True)

    def _send(self) -> Any:
        """The job, at every worker there is; those that come later fetch it from them."""

        def send() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that it is large
                return self.client.scatter(self.job, broadcast=True, hash=False)

        return self._with_workers(send)

    def _with_workers(self, speak: Callable[[], Any]) -> Any:
        """What comes of speaking to all workers; if some die meanwhile, with those that are there then."""
        for _ in range(DEATHS + 1):
            self._wait_for_a_worker()
            try:
                return speak()
            except (OSError, self.distributed.CancelledError):
                if not self.has_scheduler():
                    raise
        raise _died()

    def has_scheduler(self) -> bool:
        """True if the scheduler still answers."""
        try:
            return bool(self.client.status == "running" and self._threads() >= 0)
        except (OSError, self.distributed.CancelledError):
            return False

    def _ended(self, futures: list[Any]) -> list[Any]:
        """Those that have ended, at least one; raises if nobody is left who could end one."""
        while True:
            try:
                self.distributed.wait(futures, timeout=LOOK, return_when="FIRST_COMPLETED")
            except (TimeoutError, self.distributed.CancelledError):
                self._look_around()
            if ended := [future for future in futures if future.done()]:
                return ended

    def _look_around(self) -> None:
        if self.client.status != "running":
            raise _lost("it is gone")
        if self._threads():
            self.alone_since = None
            return
        now = time.monotonic()
        self.alone_since = now if self.alone_since is None else self.alone_since
        if now - self.alone_since > self.patience:
            raise self._nobody(f"there has been no worker for {self.patience:g} s")

    def _threads(self) -> int:
        return sum(self.client.nthreads().values())

    def _wait_for_a_worker(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=self.patience)
        except TimeoutError:
            raise self._nobody(f"there is no worker, and none came within {self.patience:g} s") from None

    def _nobody(self, what: str) -> ClusterFailed:
        why = "those started here died" if self.started_here else "start one: dask worker ADDRESS"
        return ClusterFailed(f"{what}; {why}. {CARRY_ON}")

    def _result(self, future: Any, part: Part) -> Done:
        if future.status == "finished":
            done: Done = future.result()
            return done
        error = future.exception() if future.status == "error" else None
        if isinstance(error, self.distributed.KilledWorker):
            rows = f"rows {part.first} to {part.first + part.rows - 1}"
            raise ClusterFailed(
                f"{part.name} ({rows}): every worker that took it died, as happens if memory runs out; smaller parts take less. "
                f"{CARRY_ON}"
            )
        if error is not None:
            raise error
        raise _lost("it is gone")

    def _check_versions(self) -> None:
        """Raise if a worker has other packages: nobody could say then which of them a verdict rests on."""
        mine = installed()
        for address, theirs in self._with_workers(lambda: self.client.run(installed)).items():
            differ = [name for name in mine if theirs.get(name) != mine[name]]
            if differ:
                name = differ[0]
                raise ClusterFailed(
                    f"the worker {address} has {name} {theirs.get(name, '(not installed)')}, here it is {mine[name]}: all must "
                    "have the same"
                )


def installed() -> dict[str, str]:
    """The versions that must be the same everywhere."""
    found = versions()
    return {"overexplain": own_version()} | {name: found[name] for name in ("numpy", "scipy", "numba") if name in found}


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise InvalidInput('several workers need Dask: pip install "overexplain[dask]"') from None


@contextmanager
def _client(distributed: Any, workers: int | None, scheduler: str | None, patience: float) -> Iterator[Any]:
    """A client of the scheduler; without an address one is started here, with its workers."""
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=min(patience, CONNECT))
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterFailed(f"no scheduler answers at {scheduler}: {_said(error)}") from None
        with client:
            yield client
        return
    dask = importlib.import_module("dask")
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.worker.daemon": True,
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # Dask has workers give memory back at once; blocks of equal size then cost a page fault for every page, every time.
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    }
    with dask.config.set(settings), _quiet():
        cluster = distributed.LocalCluster(
            n_workers=workers or 1, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0,
            silence_logs=logging.CRITICAL,
            scheduler_kwargs=NO_DASHBOARD,
        )  # fmt: skip
        with cluster, distributed.Client(cluster) as client:
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the notes of the library on workers that come and go: what matters is told by what is raised."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _died() -> ClusterFailed:
    return ClusterFailed(
        f"workers died again and again, all of them more than {DEATHS} times before one had ended a part, as happens if memory "
        f"runs out or somebody ends them. {CARRY_ON}"
    )


def _lost(why: str) -> ClusterFailed:
    return ClusterFailed(f"the scheduler was lost: {why}. {CARRY_ON}")


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
