"""Parts on this machine: a few threads, each with one block in memory; compiled loops and readers let each other run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from overexplain.scale.parts import Part
from overexplain.scale.tasks import Came, Work, do_part

MOST_THREADS = 8


def stream(
    work: Work[Came], parts: Sequence[Part], tell: Callable[[int], None], threads: int | None = None
) -> Iterator[Came]:
    """What came of every part, as they end; `tell` is told of rows on the way. Closing it ends the work, and keeps whole parts."""
    count = min(threads or processors(), len(parts))
    if count <= 1:
        for part in parts:
            yield do_part(work, part, tell)
        return
    over = threading.Event()
    waiting = iter(parts)
    running: set[Future[Came]] = set()
    with ThreadPoolExecutor(count, "certify") as pool:
        try:
            while True:
                for part in waiting:
                    running.add(pool.submit(do_part, work, part, tell, over.is_set))
                    if len(running) > count:
                        break
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield future.result()
        finally:
            over.set()
            for future in running:
                future.cancel()


def processors() -> int:
    """How many threads are worth starting here."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, MOST_THREADS)
