"""One part of a data set, certified: its verdicts and proofs in files.

Every block is met by knowledge that has seen no other point, on one thread, so that verdicts and proofs are the same whoever
takes the block, and when. A part's files take their places whole; the last is the note in `_parts` that says the part is done.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from overexplain._files import replacing
from overexplain.errors import InvalidInput, SolverFailed
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict, Verdicts
from overexplain.scale.parquet import modules
from overexplain.scale.parts import Block, Dataset, Part
from overexplain.scale.tasks import Fault, Stop, Stopped, Tell, all_rows, digest_of, in_one_piece

NAMES = [verdict.name for verdict in Verdict]
PLACE = {int(verdict): i for i, verdict in enumerate(Verdict)}
OWN = ("row", "verdict")
"""The columns of a file of verdicts, besides the one that tells the points apart."""

NOTES = "_parts"
"""The folder, beside the verdicts, with a note on every part that is done."""

PROOFS_BETWEEN_LOOKS = 50


@dataclass(frozen=True)
class Job:
    """What all parts have in common; `knowledge` is prepared, and never asked itself."""

    knowledge: Knowledge
    dataset: Dataset
    output: Path
    proofs: Path | None
    block_rows: int
    version: str

    if_lost: ClassVar[str] = "Parts that were done are kept; the same command carries on with the rest"

    def __reduce__(self) -> tuple[Any, ...]:
        return in_one_piece(self)

    @property
    def key(self) -> str | None:
        """The column that is written beside the verdicts, unless its name means something else there."""
        return None if self.dataset.key in OWN else self.dataset.key

    def digest(self, part: Part) -> str:
        """What a part's result rests on, besides the log and the settings: which rows of which files."""
        return digest_of(self.dataset, part, self.version)

    def do(self, part: Part, tell: Tell, stop: Stop) -> Done:
        """The verdicts on a part, in its files, and the note that it is done."""
        counts, proofs, unproved = _certified(self, part, tell, stop)
        digest = self.digest(part)
        done = Done(part.number, part.rows, digest, counts, proofs if self.proofs is not None else None, unproved)
        with replacing(note_of(self.output, part)) as beside:
            beside.write_text(done.to_json() + "\n", encoding="utf-8")
        return done

    def failed(self, part: Part, error: Fault) -> Done:
        """What comes of a part with a fault: nothing is written."""
        return Done(part.number, part.rows, self.digest(part), {}, error=error)


@dataclass(frozen=True)
class Done:
    """What came of a part: points by verdict, proofs written, verdicts without; or what was wrong with it."""

    part: int
    rows: int
    digest: str
    counts: Mapping[str, int]
    proofs: int | None = None
    unproved: int = 0
    error: Fault | None = None

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self), allow_nan=False)


def note_of(output: Path, part: Part) -> Path:
    """Where the note on a part is, once that is done."""
    return output / NOTES / f"{part.name}.json"


def verdicts_of(output: Path, part: Part) -> Path:
    """Where a part's verdicts are."""
    return output / f"{part.name}.parquet"


def proofs_of(proofs: Path, part: Part) -> Path:
    """Where a part's proofs are."""
    return proofs / f"{part.name}.jsonl"


def read_note(output: Path, part: Part) -> Done | None:
    """What came of a part in an earlier run; None if it has not been done."""
    path = note_of(output, part)
    try:
        entry = json.loads(path.read_bytes())
        return Done(
            int(entry["part"]),
            int(entry["rows"]),
            str(entry["digest"]),
            dict(entry["counts"]),
            entry["proofs"],
            entry["unproved"],
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{path}: not a note on a part of a run; remove it to have the part done again") from None


def _certified(job: Job, part: Part, tell: Tell, stop: Stop) -> tuple[dict[str, int], int, int]:
    counts: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
    proved = unproved = rows = 0
    with ExitStack() as files:
        # The last to be closed takes its place first: whoever sees verdicts finds their proofs.
        writer = files.enter_context(_verdict_file(job, part))
        proof_file = None if job.proofs is None else files.enter_context(_proof_file(proofs_of(job.proofs, part)))
        for block in job.dataset.blocks(part.first, part.rows, job.block_rows, job.key is not None):
            if stop():
                raise Stopped
            verdicts = job.knowledge.fork().certify(block.points)
            writer(block, verdicts)
            if proof_file is not None:
                written = _write_proofs(proof_file, block.first, verdicts, stop)
                proved, unproved = proved + written[0], unproved + written[1]
            counts.update(verdicts.counts())
            rows += len(verdicts)
            tell(len(verdicts))
        all_rows(job.dataset, part, rows)
    return dict(counts), proved, unproved


@contextmanager
def _verdict_file(job: Job, part: Part) -> Iterator[Callable[[Block, Verdicts], None]]:
    """Writes blocks of verdicts, as columns `row`, the key if there is one, `verdict`."""
    arrow, parquet = modules(job.dataset.path)
    names = arrow.array(NAMES)
    with replacing(verdicts_of(job.output, part), private=True) as beside:
        writers: list[Any] = []

        def write(block: Block, verdicts: Verdicts) -> None:
            places = np.array([PLACE.get(code, 0) for code in range(-1, 4)], dtype=np.int8)[
                verdicts.codes.astype(np.int64) + 1
            ]
            columns = {"row": arrow.array(np.arange(block.first, block.first + len(verdicts)))}
            if job.key is not None:
                columns[job.key] = arrow.chunked_array(list(block.keys))
            columns["verdict"] = arrow.DictionaryArray.from_arrays(arrow.array(places), names)
            table = arrow.table(columns)
            if not writers:
                writers.append(parquet.ParquetWriter(beside, table.schema))
            writers[0].write_table(table)

        try:
            yield write
        finally:
            for writer in writers:
                writer.close()
        _settle(beside)


@contextmanager
def _proof_file(path: Path) -> Iterator[IO[str]]:
    with replacing(path, private=True) as beside:
        with beside.open("w", encoding="utf-8", newline="") as file:
            yield file
        _settle(beside)


def _settle(path: Path) -> None:
    """Have the file on the disk before its name says that it is there."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write_proofs(file: IO[str], first: int, verdicts: Verdicts, stop: Stop) -> tuple[int, int]:
    """(proofs written, verdicts that could not be written as proofs)."""
    proved = unproved = 0
    for i, code in enumerate(verdicts.codes.tolist()):
        if i % PROOFS_BETWEEN_LOOKS == 0 and stop():
            raise Stopped
        if code == Verdict.UNDECIDED:
            continue
        try:
            file.write(verdicts.proof(i).to_json(row=first + i) + "\n")
            proved += 1
        except SolverFailed:  # the verdict stands on its float64 proof; `verify` will miss this one
            unproved += 1
    return proved, unproved
