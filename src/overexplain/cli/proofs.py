"""A folder of proofs beside a report: for every figure chosen the log, the cases, the verdicts, the proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overexplain._files import replacing
from overexplain.auditing.audit_report import AuditReport
from overexplain.auditing.determining.evidence import Evidence
from overexplain.cli.certify import write_rows, write_verdicts
from overexplain.cli.points import open_points
from overexplain.errors import InvalidInput
from overexplain.knowledge.engine import Knowledge

REPORT = "audit.json"


@dataclass(frozen=True)
class Files:
    """The four files behind one figure; their name says which: service and number of answers."""

    folder: Path
    service: str
    answers: int

    def _named(self, ending: str) -> Path:
        return self.folder / f"{self.service}-after-{self.answers}.{ending}"

    @property
    def log(self) -> Path:
        """The answers."""
        return self._named("log.jsonl")

    @property
    def points(self) -> Path:
        """The cases judged."""
        return self._named("cases.csv")

    @property
    def verdicts(self) -> Path:
        """What is claimed of every case."""
        return self._named("verdicts.csv")

    @property
    def proofs(self) -> Path:
        """The proof of every claim."""
        return self._named("proofs.jsonl")


def refuse_used_folder(folder: Path) -> None:
    """Raise if proofs cannot go into a folder: it is there and not empty, or it is a file."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder}: exists already; proofs are written into a new or empty folder")


def write_evidence(folder: Path, kept: Sequence[Evidence], report: AuditReport) -> None:
    """Write the four files of every figure, and the report's data, which says what the figures are."""
    folder.mkdir(parents=True, exist_ok=True)
    for evidence in kept:
        files = Files(folder, evidence.service, evidence.answers)
        evidence.log.save(files.log)
        names = report.subject.features
        with replacing(files.points, private=True) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            write_rows(file, [names])
            write_rows(file, evidence.judged.tolist())
        with open_points(files.points, evidence.log.features, len(names)) as points:
            write_verdicts(Knowledge(evidence.log), points, files.verdicts, files.proofs)
    (folder / REPORT).write_text(report.to_json() + "\n", encoding="utf-8")
