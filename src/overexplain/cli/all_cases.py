"""`overexplain audit --all-cases`: the chief shares counted over every row of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.determining.evidence import Evidence
from overexplain.cli.output import bar
from overexplain.cli.scale import refuse_other_files
from overexplain.models.linear import LinearModel
from overexplain.scale.all_cases import with_all_cases
from overexplain.scale.parts import Dataset, open_dataset
from overexplain.scale.run import refuse_odd_sharing


@dataclass(frozen=True)
class Count:
    """Who counts: so many processes, those of a scheduler, or with neither this one."""

    workers: int | None
    scheduler: str | None


def open_counted(count: Count, path: Path, model: LinearModel) -> Dataset:
    """The data set whose rows are counted; raises if they could not be, before an audit that takes long."""
    refuse_odd_sharing(count.workers, count.scheduler)
    refuse_other_files(path)
    dataset = open_dataset(path, model.features, model.dimension, model.columns)
    if count.workers is not None or count.scheduler is not None:
        from overexplain.scale.cluster import refuse_absent

        refuse_absent(count.scheduler)
    return dataset


def count_all(count: Count, report: AuditReport, kept: Sequence[Evidence], dataset: Dataset) -> AuditReport:
    """The report with what its chief figures are among all rows."""
    with bar("counting") as show:
        return with_all_cases(
            report, kept, dataset, workers=count.workers, scheduler=count.scheduler,
            progress=lambda what, rows, of: show(f"{what}, {rows:,} rows done", rows, of),
        )  # fmt: skip
