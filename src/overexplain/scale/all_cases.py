"""What an audit's headline figures are among all rows of its data set, not only among those that were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from overexplain.auditing.audit_report import AllCases, AuditReport
from overexplain.auditing.determining.evidence import Evidence
from overexplain.knowledge.engine import Knowledge
from overexplain.scale.count import count_dataset
from overexplain.scale.parts import Dataset
from overexplain.scale.run import Progress


def with_all_cases(
    report: AuditReport,
    kept: Sequence[Evidence],
    dataset: Dataset,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """The report with the share of all rows that the first order's answers determine, for what `audit` gave to `keep`.

    Services that are only compared with are left out. `workers`, `scheduler`: as for `certify_dataset`; they change no count.
    """
    chosen = [evidence for evidence in kept if report.service(evidence.service).role != "comparison"]
    counts = count_dataset(
        [Knowledge(evidence.log) for evidence in chosen],
        dataset,
        units=chosen[0].units if chosen else None,
        workers=workers,
        scheduler=scheduler,
        progress=progress,
    )
    found = [
        AllCases(
            evidence.service,
            evidence.answers,
            cases=sum(count.values()),
            determined=count["YES"] + count["NO"],
            undecided=count["UNDECIDED"],
        )
        for evidence, count in zip(chosen, counts, strict=True)
    ]
    return replace(report, all_cases=tuple(found))
