"""`certify_dataset`: what a log gives away about a data set of any size, on this machine or on many."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overexplain.auditing.determined import Determined, robust_use
from overexplain.baselines.knobs import as_whole
from overexplain.errors import InvalidInput, NotFinite, OverexplainError, SolverFailed
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.terms import without_terms
from overexplain.scale.folder import begin, finish, prepared_job
from overexplain.scale.parts import Dataset, Part, block_rows, open_dataset, plan
from overexplain.scale.streaming import stream
from overexplain.scale.work import Done, Job

PART_ROWS = 2**20
"""Rows of a part at most, unless a row group has more."""

PARTS = 16
"""So many parts a data set has at least, if it has the blocks: enough for several workers, and little is lost with one."""

ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ucxx|ws|wss)://)?(?:\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):[0-9]{1,5}/?", re.ASCII)

Progress = Callable[[str, int, int], None]
_KINDS = {kind.__name__: kind for kind in (InvalidInput, NotFinite, SolverFailed)}


@dataclass(frozen=True)
class Certified:
    """What came of a data set.

    determined  points by verdict, and how much the log has
    parts       files of verdicts (and of proofs) that were written, `kept` of them by an earlier run
    unproved    verdicts that could not be written as proofs in rational numbers
    """

    determined: Determined
    parts: int
    kept: int
    unproved: int


def certify_dataset(
    knowledge: Knowledge,
    dataset: Dataset | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    proofs: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    part_rows: int | None = None,
    progress: Progress | None = None,
) -> Certified:
    """The verdicts on every row of a data set, written into the folder `output`, and how many there are of each.

    dataset    a Parquet file or a folder of them, columns matched by name to the log's features
    output     gets a Parquet file for every part, with the columns `row`, the key if there is one, `verdict`; `_manifest.json`
               and `_summary.json`. A call that was interrupted is carried on by the same call
    proofs     a folder for the proofs: one .jsonl file for every part
    workers    None: threads of this process. A number: so many processes, started here with Dask
    scheduler  the address of a Dask scheduler, e.g. "tcp://10.0.0.5:8786"; its workers must see the same files
    part_rows  rows of a part, at least: rounded up to whole blocks (of 2,048 rows with proofs, of 65,536 without; fewer with
               very many features), and without proofs to whole row groups. None: with proofs one block; without, a sixteenth of
               the rows, at most a million
    progress   called with (what is being done, rows done, rows in all)

    Verdicts and proofs are the same whatever is chosen here, whoever dies on the way. If a file is damaged or a number missing, all
    other parts are done and kept, and then it is raised: InvalidInput, with file and row. The file may be mended in place.
    """
    refuse_odd_sharing(workers, scheduler)
    if part_rows is not None:
        part_rows = as_whole(part_rows, "part_rows")
    if knowledge.dimension is None:
        raise InvalidInput("the log has no rows: there is nothing to learn from")
    if not isinstance(dataset, Dataset):
        dataset = open_dataset(Path(dataset), knowledge.log.features, knowledge.dimension)
    folder = None if proofs is None else Path(proofs).resolve()
    job = prepared_job(
        knowledge, dataset, Path(output).resolve(), folder, block_rows(knowledge.dimension, folder is not None)
    )
    parts = planned(job, part_rows)
    found = begin(job, parts)
    kept = len(found)
    _run(job, [part for part in parts if part.number not in found], found, workers, scheduler, progress)
    failed = [done for _, done in sorted(found.items()) if done.error is not None]
    if failed:
        raise _error(failed, len(parts))
    done = [found[part.number] for part in parts]
    finish(job, parts, done)
    return Certified(_determined(knowledge, job, done), len(parts), kept, sum(part.unproved for part in done))


def planned(job: Job, part_rows: int | None) -> tuple[Part, ...]:
    """The parts of a job: the same whoever does it, so that others can carry it on."""
    if part_rows is None:
        part_rows = min(PART_ROWS, job.dataset.rows // PARTS) if job.proofs is None else job.block_rows
    return plan(job.dataset, job.block_rows, part_rows, inside=job.proofs is not None)


def refuse_odd_sharing(workers: int | None, scheduler: str | None) -> None:
    """Raise InvalidInput unless this says who does the work: a number of workers, an address, or neither."""
    if workers is not None:
        as_whole(workers, "workers")
    if workers is not None and scheduler is not None:
        raise InvalidInput("a scheduler has its own workers: give either workers or scheduler")
    if scheduler is not None and not ADDRESS.fullmatch(str(scheduler)):
        raise InvalidInput(f"a scheduler's address is tcp://host:port, as its start prints it, got {scheduler!r}")


def _run(
    job: Job,
    parts: Sequence[Part],
    found: dict[int, Done],
    workers: int | None,
    scheduler: str | None,
    progress: Progress | None,
) -> None:
    """Have the parts done, and put what came of them into `found`."""
    show = progress or (lambda *_: None)
    total = job.dataset.rows
    lock, rows = threading.Lock(), [sum(done.rows for done in found.values())]

    def tell(count: int) -> None:
        with lock:
            rows[0] += count
            show("certifying", rows[0], total)

    if not parts:
        return
    show("certifying", rows[0], total)
    with_dask = workers is not None or scheduler is not None
    for done in _distributed(job, parts, workers, scheduler) if with_dask else stream(job, parts, tell):
        found[done.part] = done
        if with_dask:
            tell(done.rows)


def _distributed(job: Job, parts: Sequence[Part], workers: int | None, scheduler: str | None) -> Iterator[Done]:
    from overexplain.scale.cluster import distribute

    return distribute(job, parts, workers=None if workers is None else min(workers, len(parts)), scheduler=scheduler)


def _error(failed: Sequence[Done], parts: int) -> OverexplainError:
    assert failed[0].error is not None
    kind, message = failed[0].error
    others = f"; {len(failed) - 1} more cannot be used either" if len(failed) > 1 else ""
    kept = f"{parts - len(failed)} of {parts} parts are done and kept{others}"
    return _KINDS[kind](f"{message} ({kept}; mend the file, and the same call does the rest)")


def _determined(knowledge: Knowledge, job: Job, done: Sequence[Done]) -> Determined:
    log: Any = knowledge.log
    return Determined(
        counts={verdict.name: sum(part.counts[verdict.name] for part in done) for verdict in Verdict},
        rows=len(log),
        labels=int((log.labels != 0).sum()),
        explanations=len(log.explained) - without_terms(log),
        oriented=knowledge.oriented,
        pinned_down=knowledge.pinned_down,
        proofs=None if job.proofs is None else sum(part.proofs or 0 for part in done),
        robust=robust_use(log, knowledge.settings["robust"]),
    )
