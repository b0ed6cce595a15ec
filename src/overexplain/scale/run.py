"""All parts of a data set done, here or on a cluster, and somebody told how far it is."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterator, Sequence

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import as_whole
from overexplain.scale.parts import Part
from overexplain.scale.streaming import stream
from overexplain.scale.tasks import Came, Work

Progress = Callable[[str, int, int], None]

ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ucxx|ws|wss)://)?(?:\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):[0-9]{1,5}/?", re.ASCII)


def refuse_odd_sharing(workers: int | None, scheduler: str | None, part_rows: int | None = None) -> None:
    """Raise InvalidInput unless this says who does the work (a number of workers, an address, or neither) and in what parts."""
    for name, count in (("workers", workers), ("part_rows", part_rows)):
        if count is not None:
            as_whole(count, name)
    if workers is not None and scheduler is not None:
        raise InvalidInput("a scheduler has its own workers: give either workers or scheduler")
    if scheduler is not None and not ADDRESS.fullmatch(str(scheduler)):
        raise InvalidInput(f"a scheduler's address is tcp://host:port, as its start prints it, got {scheduler!r}")


def run_parts(
    work: Work[Came],
    parts: Sequence[Part],
    *,
    doing: str,
    before: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Generator[Came, None, None]:
    """What came of every part, as they end; `before`: rows that were done earlier."""
    show = progress or (lambda *_: None)
    total = work.dataset.rows
    lock, rows = threading.Lock(), [before]

    def tell(count: int) -> None:
        with lock:
            rows[0] += count
            show(doing, rows[0], total)

    if not parts:
        return
    show(doing, before, total)
    if workers is None and scheduler is None:
        yield from stream(work, parts, tell)
        return
    for came in _distributed(work, parts, workers, scheduler):
        tell(came.rows)
        yield came


def _distributed(work: Work[Came], parts: Sequence[Part], workers: int | None, scheduler: str | None) -> Iterator[Came]:
    from overexplain.scale.cluster import distribute

    return distribute(work, parts, workers=None if workers is None else min(workers, len(parts)), scheduler=scheduler)
