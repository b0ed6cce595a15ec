"""How many rows of a data set some logs determine: one pass for all of them, and nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

from overexplain.auditing.units import Units
from overexplain.errors import InvalidInput
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict
from overexplain.scale.folder import own_version
from overexplain.scale.parts import Dataset, Part, block_rows, plan
from overexplain.scale.run import Progress, refuse_odd_sharing, run_parts
from overexplain.scale.tasks import KINDS, Fault, Stop, Stopped, Tell, all_rows, digest_of, in_one_piece

Counts = Mapping[str, int]
"""Points by the name of their verdict."""


@dataclass(frozen=True)
class Counted:
    """What came of a part: points by verdict, for every knowledge; or what was wrong with it."""

    part: int
    rows: int
    counts: tuple[Counts, ...]
    error: Fault | None = None


@dataclass(frozen=True)
class Count:
    """What all parts have in common: knowledge, prepared and never asked itself, about rows in these units."""

    knowledge: tuple[Knowledge, ...]
    dataset: Dataset
    units: Units
    block_rows: int
    version: str

    if_lost: ClassVar[str] = "Nothing of the count is kept; the same command begins again"

    def __reduce__(self) -> tuple[Any, ...]:
        return in_one_piece(self)

    def digest(self, part: Part) -> str:
        """Which rows of which files a part is."""
        return digest_of(self.dataset, part, self.version)

    def do(self, part: Part, tell: Tell, stop: Stop) -> Counted:
        """The verdicts on a part, counted."""
        counts: list[Counter[str]] = [Counter(dict.fromkeys((v.name for v in Verdict), 0)) for _ in self.knowledge]
        rows = 0
        for block in self.dataset.blocks(part.first, part.rows, self.block_rows):
            points = self.units.into(block.points)
            for known, count in zip(self.knowledge, counts, strict=True):
                if stop():
                    raise Stopped
                count.update(known.fork().certify(points).counts())
            rows += len(points)
            tell(len(points))
        all_rows(self.dataset, part, rows)
        return Counted(part.number, part.rows, tuple(dict(count) for count in counts))

    def failed(self, part: Part, error: Fault) -> Counted:
        """What comes of a part with a fault."""
        return Counted(part.number, part.rows, (), error)


def count_dataset(
    knowledge: Sequence[Knowledge],
    dataset: Dataset,
    *,
    units: Units | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    part_rows: int | None = None,
    progress: Progress | None = None,
) -> tuple[Counts, ...]:
    """The rows of a data set by verdict, for every knowledge given; the rows are read once.

    `units` are those that the logs are in (None: the data's own). The counts are the same whatever else is chosen, as those of
    `certify_dataset` are.
    """
    refuse_odd_sharing(workers, scheduler, part_rows)
    for known in knowledge:
        if known.dimension is None:
            raise InvalidInput("a log has no rows: there is nothing to learn from")
    size = block_rows(dataset.dimension)
    prepared = tuple(known.prepared() for known in knowledge)
    work = Count(prepared, dataset, units or Units.own(dataset.dimension), size, own_version())
    total = [dict.fromkeys((verdict.name for verdict in Verdict), 0) for _ in knowledge]
    parts = plan(dataset, size, part_rows) if prepared else ()
    outcomes = run_parts(work, parts, doing="counting", workers=workers, scheduler=scheduler, progress=progress)
    with closing(outcomes):  # which ends what others are at
        for came in outcomes:
            if came.error is not None:
                kind, message = came.error
                raise KINDS[kind](message)
            for sums, counts in zip(total, came.counts, strict=True):
                for name in sums:
                    sums[name] += counts[name]
    return tuple(total)
