"""What an audit of a model of several classes found: frozen data with a published JSON schema.

Plain numbers, texts and tuples only. A share is a number from 0 to 1, an angle is in radians, an answer is one reply of the
service: a decision, or an explanation towards a class that was asked for. `docs/schemas/multiclass.schema.json` is written from
these classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec

from overexplain.auditing.written import Provenance, as_json, read_json

FORMAT: Final = "overexplain-audit-multiclass"
VERSION: Final = 1

Note = msgspec.Meta


@dataclass(frozen=True)
class ClassesSubject:
    """What was audited: the model, and the cases it is audited on."""

    model: Annotated[str, Note(description="what kind of model, e.g. 'coefficient file' or 'LogisticRegression'")]
    features: Annotated[tuple[str, ...], Note(description="their names, in order; x0, x1, … if the model has none")]
    classes: Annotated[tuple[str, ...], Note(description="their names, in order; 0, 1, … if the model has none")]
    shares: Annotated[tuple[float, ...], Note(description="share of the cases that the model gives each class")]
    data: Annotated[str, Note(description="what the cases are called")]
    cases: Annotated[int, Note(description="rows of the data that were used")]
    cases_left_out: Annotated[int, Note(description="rows of the data beyond the limit that were not used")]
    units: Annotated[Literal["as given", "standard deviations"], Note(description="what distances are counted in")]
    model_sha256: Annotated[str, Note(description="of the model's coefficient file as overexplain writes it")]
    data_sha256: Annotated[str, Note(description="of the rows used, as little-endian float64")]


@dataclass(frozen=True)
class Copies:
    """How often copies decide like the model, beside what the commonest class alone reaches."""

    rebuilt: Annotated[float | None, Note(description="the model rebuilt by theory; null: it was not rebuilt")]
    trained: Annotated[float, Note(description="softmax regression trained on as many decisions about ordinary cases")]
    floor: Annotated[float, Note(description="always answering the commonest class")]
    points: Annotated[int, Note(description="how many points they were compared on")]


@dataclass(frozen=True)
class LearningCurve:
    """How often softmax regression trained on decisions about ordinary cases decides like the model."""

    answers: Annotated[tuple[int, ...], Note(description="numbers of decisions; beyond the cases, about random points")]
    cases: Annotated[tuple[float, ...], Note(description="share of the cases decided alike")]
    box: Annotated[
        tuple[float, ...], Note(description="share of random points in the range of the cases decided alike")
    ]


@dataclass(frozen=True)
class ClassesService:
    """A service, and what it takes an outsider who chooses the questions to rebuild the model; carried out."""

    id: str
    name: Annotated[str, Note(description="in words")]
    short: Annotated[str, Note(description="in at most 26 characters, ASCII")]
    spec: Annotated[str, Note(description="as given to --service")]
    role: Annotated[
        Literal["audited", "also audited", "comparison"],
        Note(description="the first one asked for, others asked for, and what is shown beside them"),
    ]
    asked: Annotated[int, Note(description="answers given in all, also if the attack failed")]
    explanations: Annotated[int | None, Note(description="explanations spent; null if the attack failed")]
    labels: Annotated[int | None, Note(description="decisions asked besides; null if the attack failed")]
    minimum: Annotated[int, Note(description="explanations that cannot be done without; see `minimum_of`")]
    minimum_of: Annotated[
        Literal["any attack", "boundary points alone"],
        Note(description="whom the minimum binds: everybody, or who uses nothing of an explanation but where it lies"),
    ]
    error: Annotated[float | None, Note(description="measured angle between all rebuilt and true scores")]
    error_bound: Annotated[float | None, Note(description="the bound that the attacker himself can prove")]
    unreached: Annotated[tuple[str, ...], Note(description="classes that no answer ever gave: they stay unknown")]
    method: Annotated[str | None, Note(description="the equations used; null if the attack failed")]
    assumptions: Annotated[tuple[str, ...], Note(description="what the attacker has to believe")]
    failed: Annotated[str | None, Note(description="why the attack failed; null if it did not")]
    cases: Annotated[Copies, Note(description="compared on the cases")]
    box: Annotated[Copies, Note(description="compared on random points in the range of the cases")]

    @property
    def requests(self) -> int | None:
        """Explanations and decisions that rebuild the model; None if the attack failed."""
        return self.asked if self.failed is None else None


@dataclass(frozen=True)
class MulticlassReport:
    """Everything the audit of a model of several classes found; see the parts."""

    subject: ClassesSubject
    services: Annotated[tuple[ClassesService, ...], Note(description="the audited one first")]
    curve: Annotated[LearningCurve, Note(description="what training alone learns, answer by answer")]
    provenance: Provenance
    format: Literal["overexplain-audit-multiclass"] = FORMAT
    version: int = VERSION

    @property
    def audited(self) -> ClassesService:
        """The service that the report is about."""
        return self.services[0]

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return found

    def to_json(self) -> str:
        """The JSON that every rendering is made from; the same report gives the same bytes."""
        return as_json(self)

    @staticmethod
    def from_json(text: str | bytes) -> MulticlassReport:
        """The report in a JSON text; InvalidInput says where it does not fit the schema."""
        return read_json(MulticlassReport, text, VERSION, "an audit report of a model of several classes")


def json_schema() -> dict[str, Any]:
    """The JSON schema of a report."""
    return msgspec.json.schema(MulticlassReport)
