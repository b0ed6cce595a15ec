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
from overexplain.scale.tasks import Came, Work, do_part

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


def distribute(
    work: Work[Came],
    parts: Sequence[Part],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    patience: float = PATIENCE,
) -> Iterator[Came]:
    """What came of every part, as they end: by `workers` processes here, or by those of a scheduler that is running."""
    with _crowd(workers, scheduler, patience, work.if_lost) as crowd:
        yield from crowd.run(work, parts)


def refuse_absent(scheduler: str | None) -> None:
    """Raise if parts could not be shared out: Dask is missing, nobody answers at the address, or its workers do not fit.

    Worth a look before work that takes long and comes first.
    """
    if scheduler is None:
        _distributed()
        return
    with _crowd(None, scheduler, PATIENCE, "Nothing was begun") as crowd:
        crowd.check_versions()


@contextmanager
def _crowd(workers: int | None, scheduler: str | None, patience: float, if_lost: str) -> Iterator[_Crowd]:
    """The workers; what Dask says of its own insides when they or the scheduler die is raised in plain words."""
    distributed = _distributed()
    with _client(distributed, workers, scheduler, patience) as client:
        crowd = _Crowd(distributed, client, patience, scheduler is None, if_lost)
        try:
            yield crowd
        except (distributed.CancelledError, OSError) as error:
            if client.status == "running" and getattr(error, "errno", None):
                raise  # of a part: a disk that is full, a folder that is gone
            raise (crowd.died() if crowd.has_scheduler() else crowd.lost("it does not answer any more")) from error


class _Crowd:
    """The workers of one run; `if_lost`: a sentence for whoever loses them."""

    def __init__(self, distributed: Any, client: Any, patience: float, started_here: bool, if_lost: str) -> None:
        self.distributed, self.client, self.patience = distributed, client, patience
        self.started_here, self.if_lost = started_here, if_lost
        self.alone_since: float | None = None

    def run(self, work: Work[Came], parts: Sequence[Part]) -> Iterator[Came]:
        """What came of every part, as they end."""
        waiting = list(reversed(parts))
        self.check_versions()
        sent = self._send(work)
        running: dict[Any, Part] = {}
        losses = 0
        try:
            while waiting or running:
                room = AHEAD * max(1, self._threads())
                while waiting and len(running) < room:
                    part = waiting.pop()
                    key = f"overexplain-{part.name}-{work.digest(part)[:16]}-{sent.key[-16:]}"
                    future = self.client.submit(do_part, sent, part, key=key, retries=RETRIES, pure=True)
                    running[future] = part
                ended = self._ended(list(running))
                lost = []
                for future in ended:
                    part = running.pop(future)
                    came = self._result(future, part)
                    if came is None:
                        lost.append(part)
                    else:
                        yield came
                        losses = 0
                if lost:  # what they need went down with the last worker that had it
                    losses += 1
                    if losses > DEATHS:
                        raise self.died()
                    self._look_around()
                    waiting += reversed(lost)
                    sent = self._send(work)
        finally:
            if self.client.status == "running":
                self.client.cancel(list(running), force=True)

    def check_versions(self) -> None:
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

    def has_scheduler(self) -> bool:
        """True if the scheduler still answers."""
        try:
            return bool(self.client.status == "running" and self._threads() >= 0)
        except (OSError, self.distributed.CancelledError):
            return False

    def died(self) -> ClusterFailed:
        """What is raised if the workers are the trouble."""
        return ClusterFailed(
            f"workers died again and again, all of them more than {DEATHS} times before one had ended a part, as happens if "
            f"memory runs out or somebody ends them. {self.if_lost}"
        )

    def lost(self, why: str) -> ClusterFailed:
        """What is raised if the scheduler is."""
        return ClusterFailed(f"the scheduler was lost: {why}. {self.if_lost}")

    def _nobody(self, what: str) -> ClusterFailed:
        why = "those started here died" if self.started_here else "start one: dask worker ADDRESS"
        return ClusterFailed(f"{what}; {why}. {self.if_lost}")

    def _send(self, work: Work[Any]) -> Any:
        """The work, at every worker there is; those that come later fetch it from them."""

        def send() -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that it is large
                return self.client.scatter(work, broadcast=True, hash=False)

        return self._with_workers(send)

    def _with_workers(self, speak: Callable[[], Any]) -> Any:
        """What comes of speaking to all workers; if some die meanwhile, with those that are there then."""
        for _ in range(DEATHS + 1):
            try:
                self.client.wait_for_workers(1, timeout=self.patience)
            except TimeoutError:
                raise self._nobody(f"there is no worker, and none came within {self.patience:g} s") from None
            try:
                return speak()
            except (OSError, self.distributed.CancelledError):
                if not self.has_scheduler():
                    raise
        raise self.died()

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
            raise self.lost("it is gone")
        if self._threads():
            self.alone_since = None
            return
        now = time.monotonic()
        self.alone_since = now if self.alone_since is None else self.alone_since
        if now - self.alone_since > self.patience:
            raise self._nobody(f"there has been no worker for {self.patience:g} s")

    def _threads(self) -> int:
        return sum(self.client.nthreads().values())

    def _result(self, future: Any, part: Part) -> Any:
        """What came of a part that has ended; None: it went down with a worker, also after its end, before it was fetched."""
        if future.status != "error":
            try:
                return future.result()
            except (OSError, self.distributed.CancelledError):
                return None
        error = future.exception()
        if isinstance(error, self.distributed.KilledWorker):
            rows = f"rows {part.first} to {part.first + part.rows - 1}"
            raise ClusterFailed(
                f"{part.name} ({rows}): every worker that took it died, as happens if memory runs out; smaller parts take less. "
                f"{self.if_lost}"
            )
        raise error


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
            n_workers=workers or 1, threads_per_worker=1, processes=True, memory_limit=0, silence_logs=logging.CRITICAL,
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


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
