"""`certify_dataset`: what a log gives away about a data set of any size, on this machine or on many."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overexplain.auditing.determined import Determined, robust_use
from overexplain.errors import InvalidInput, OverexplainError
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.terms import without_terms
from overexplain.scale.folder import begin, finish, prepared_job
from overexplain.scale.parts import Dataset, Part, block_rows, open_dataset, plan
from overexplain.scale.run import Progress, refuse_odd_sharing, run_parts
from overexplain.scale.tasks import KINDS
from overexplain.scale.work import Done, Job


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
    refuse_odd_sharing(workers, scheduler, part_rows)
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
    kept, left = len(found), [part for part in parts if part.number not in found]
    before = sum(done.rows for done in found.values())
    for done in run_parts(
        job, left, doing="certifying", before=before, workers=workers, scheduler=scheduler, progress=progress
    ):
        found[done.part] = done
    failed = [done for _, done in sorted(found.items()) if done.error is not None]
    if failed:
        raise _error(failed, len(parts))
    all_done = [found[part.number] for part in parts]
    finish(job, parts, all_done)
    return Certified(_determined(knowledge, job, all_done), len(parts), kept, sum(part.unproved for part in all_done))


def planned(job: Job, part_rows: int | None) -> tuple[Part, ...]:
    """The parts of a job: the same whoever does it, so that others can carry it on."""
    return plan(job.dataset, job.block_rows, part_rows, inside=job.proofs is not None)


def _error(failed: Sequence[Done], parts: int) -> OverexplainError:
    assert failed[0].error is not None
    kind, message = failed[0].error
    others = f"; {len(failed) - 1} more cannot be used either" if len(failed) > 1 else ""
    kept = f"{parts - len(failed)} of {parts} parts are done and kept{others}"
    return KINDS[kind](f"{message} ({kept}; mend the file, and the same call does the rest)")


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
