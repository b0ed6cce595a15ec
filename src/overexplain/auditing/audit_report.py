"""What an audit found: frozen data with a published JSON schema; every rendering is drawn from it and nothing else.

Plain numbers, texts and tuples only. A share is a number from 0 to 1, an angle is in radians, an answer is one reply of the service
(the decision and, if it explains, the explanation). `docs/schemas/audit.schema.json` is written from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec

from overexplain.auditing.report_checks import refuse_misfits
from overexplain.auditing.written import Provenance, as_json, read_json
from overexplain.errors import InvalidInput

FORMAT: Final = "overexplain-audit"
VERSION: Final = 1

Value = int | float | str | bool | None
Note = msgspec.Meta


@dataclass(frozen=True)
class Subject:
    """What was audited: the model, and the cases it is audited on."""

    model: Annotated[str, Note(description="what kind of model, e.g. 'coefficient file' or 'LogisticRegression'")]
    features: Annotated[tuple[str, ...], Note(description="their names, in order; x0, x1, … if the model has none")]
    classes: Annotated[tuple[str, str] | None, Note(description="the names of No and of Yes")]
    threshold: Annotated[float | None, Note(description="probability from which on the answer is Yes; null: score ≥ 0")]
    data: Annotated[str, Note(description="what the cases are called")]
    cases: Annotated[int, Note(description="rows of the data that were used")]
    cases_left_out: Annotated[int, Note(description="rows of the data beyond the limit that were not used")]
    yes_share: Annotated[float, Note(description="share of the cases that the model answers with Yes")]
    units: Annotated[
        Literal["as given", "standard deviations"],
        Note(description="what distances, radii and decimals are counted in"),
    ]
    model_sha256: Annotated[str, Note(description="of the model's coefficient file as overexplain writes it")]
    data_sha256: Annotated[
        str, Note(description="of the cases as float64 rows, little-endian, in the order of features")
    ]
    one_hot: Annotated[
        int, Note(description="columns with categories, each of which became several features of 0 and 1")
    ] = 0
    cases_drawn: Annotated[
        bool,
        Note(description="true: the cases are drawn at random from all rows of the data; units are those of all rows"),
    ] = False
    directions: Annotated[
        int | None,
        Note(
            description="in how many directions cases differ, if in fewer than there are features; null: in all, or not counted"
        ),
    ] = None
    directions_from: Annotated[
        Literal["categories", "cases"] | None,
        Note(description="what leaves so few: that every column has one category, or the cases given"),
    ] = None


@dataclass(frozen=True)
class AuditedService:
    """One way to answer."""

    id: Annotated[str, Note(description="'s1', 's2', …; other parts refer to it")]
    name: Annotated[str, Note(description="in words")]
    short: Annotated[str, Note(description="in at most 26 characters, ASCII")]
    spec: Annotated[str, Note(description="as given to --service")]
    role: Annotated[
        Literal["audited", "also audited", "comparison"],
        Note(description="the first service asked for, further ones, and those added to compare"),
    ]
    explains: Annotated[bool, Note(description="false: decisions only")]
    published: Annotated[
        dict[str, Any] | None, Note(description="the terms it tells the asker, as in a log's mechanism; null: none")
    ]


@dataclass(frozen=True)
class UntilKnown:
    """What it takes an outsider who chooses the questions to rebuild the model; carried out against this very model."""

    service: Annotated[str, Note(description="id of the service")]
    computed: Annotated[
        int | None,
        Note(description="answers (decisions, if it gives nothing else) that theory predicts; null: not known"),
    ]
    explanations: Annotated[int | None, Note(description="explanations spent; null if no attack succeeded")]
    labels: Annotated[int | None, Note(description="decisions asked besides; null if no attack succeeded")]
    low: Annotated[int | None, Note(description="least requests (explanations + decisions) of all runs")]
    high: Annotated[int | None, Note(description="most requests of all runs")]
    runs: Annotated[int, Note(description="how often it was carried out; the counts are of the median run")]
    minimum: Annotated[int | None, Note(description="answers that no method can do without; null: not known")]
    minimum_is: Annotated[
        Literal["theorem", "information bound"] | None,
        Note(description="where the minimum comes from: Theorems A and C, or bits of the angle to `accuracy`"),
    ]
    paper_explanations: Annotated[int | None, Note(description="the paper's procedure, carried out; null: not treated")]
    paper_labels: Annotated[int | None, Note(description="decisions that the paper's procedure asks besides")]
    accuracy: Annotated[float | None, Note(description="the angle to which decisions alone were to find the model")]
    method: Annotated[str, Note(description="the theorem or procedure used")]
    angle_error: Annotated[float | None, Note(description="measured, between the rebuilt and the true coefficients")]
    error_bound: Annotated[float | None, Note(description="the bound that the attacker himself can prove")]
    agreement: Annotated[float | None, Note(description="share of the cases that the rebuilt model decides alike")]
    constant_agreement: Annotated[float | None, Note(description="what the commoner answer alone reaches")]
    failed: Annotated[str | None, Note(description="why no attack succeeded; null if one did")]
    valid: Annotated[
        int | None,
        Note(
            description="exact answers that determine every decision about cases that differ only as valid ones do, by rank (see "
            "`Subject.directions`); null: no fewer than for the whole model, or not counted"
        ),
    ] = None

    @property
    def requests(self) -> int | None:
        """Explanations and decisions together."""
        return None if self.explanations is None or self.labels is None else self.explanations + self.labels

    @property
    def answers(self) -> int | None:
        """The count to quote: explanations, if at most one decision was asked besides (which side is Yes); else all requests."""
        return (
            self.explanations if self.explanations and self.labels is not None and self.labels <= 1 else self.requests
        )


@dataclass(frozen=True)
class Curve:
    """The share of decisions determined, answer by answer, for ordinary cases in random order.

    In every order some cases are asked and other, unseen ones are judged. All lists have the length of `answers`.
    """

    service: Annotated[str, Note(description="id of the service")]
    population: Annotated[
        Literal["all", "denied"],
        Note(description="who asks: cases of the data; or only those answered No, whose letters are pooled"),
    ]
    answers: Annotated[tuple[int, ...], Note(description="how many answers were given, rising")]
    median: Annotated[tuple[float, ...], Note(description="median share over the orders")]
    low: Annotated[tuple[float, ...], Note(description="10th percentile: 8 of 10 orders lie between low and high")]
    high: Annotated[tuple[float, ...], Note(description="90th percentile")]
    highest: Annotated[tuple[float, ...], Note(description="the highest share of any order")]
    first: Annotated[
        tuple[float, ...], Note(description="the first order's shares: those that --proofs writes proofs of")
    ]
    orders: Annotated[int, Note(description="random orders")]
    judged: Annotated[int, Note(description="unseen cases judged in every order")]
    askable: Annotated[int, Note(description="cases that could be asked in every order")]
    known_at: Annotated[
        int | None, Note(description="median of the answers after which one model alone fits; null: not by the last")
    ]
    wrong: Annotated[
        int, Note(description="determined decisions that contradict the model, over all orders: must be 0")
    ]
    undecided: Annotated[float, Note(description="largest share of judged cases that a limit left unsettled")]
    at_most: Annotated[
        tuple[float, ...],
        Note(
            description="the highest share that any order may have, with what a limit left unsettled; empty: highest + undecided"
        ),
    ] = ()
    terms_broken: Annotated[
        int, Note(description="orders in which explanations broke the published terms; they are then not used")
    ] = 0
    median_at_most: Annotated[
        tuple[float, ...],
        Note(description="what the median may be, with what a limit left unsettled; empty: median + undecided"),
    ] = ()
    high_at_most: Annotated[tuple[float, ...], Note(description="the same of high; empty: high + undecided")] = ()
    first_at_most: Annotated[tuple[float, ...], Note(description="the same of first; empty: first + undecided")] = ()

    @property
    def ceiling(self) -> tuple[float, ...]:
        """The share that no order can have exceeded, for every number of answers: what a limit left unsettled counts."""
        return self.at_most or self._with_unsettled(self.highest)

    @property
    def median_ceiling(self) -> tuple[float, ...]:
        """The same of the median."""
        return self.median_at_most or self._with_unsettled(self.median)

    @property
    def high_ceiling(self) -> tuple[float, ...]:
        """The same of the 90th percentile."""
        return self.high_at_most or self._with_unsettled(self.high)

    @property
    def first_ceiling(self) -> tuple[float, ...]:
        """The same of the first order."""
        return self.first_at_most or self._with_unsettled(self.first)

    def _with_unsettled(self, shares: tuple[float, ...]) -> tuple[float, ...]:
        """What shares may be if only the largest unsettled share of all is known."""
        return tuple(min(1.0, share + self.undecided) for share in shares)

    def at(self, answers: int) -> int | None:
        """The index of the last entry with at most so many answers; None if there is none."""
        fitting = [i for i, n in enumerate(self.answers) if n <= answers]
        return fitting[-1] if fitting else None


@dataclass(frozen=True)
class Quota:
    """How many answers, over all clients together, keep the determined share under a target; measured, ordinary cases."""

    service: Annotated[str, Note(description="id of the service")]
    target: Annotated[float, Note(description="the share that must not be exceeded")]
    answers: Annotated[
        int, Note(description="the largest number that is sure to have kept every order at or under the target")
    ]
    is_limit: Annotated[bool, Note(description="true: it was never exceeded; `answers` is the largest number tried")]
    highest: Annotated[float, Note(description="the highest share of any order at that number (0 for 0 answers)")]
    beyond: Annotated[float | None, Note(description="the highest share at the next number tried; null if none")]
    orders: Annotated[int, Note(description="random orders")]
    adaptive: Annotated[int | None, Note(description="answers that give everything away to who chooses the questions")]

    @property
    def is_unsettled(self) -> bool:
        """True if more answers may be fine, too: at the next number only what a limit left unsettled goes over the target.

        No quota is to be suggested then: `answers` is where the measurement ends, not where the share does.
        """
        return self.beyond is not None and self.beyond <= self.target


@dataclass(frozen=True)
class AllCases:
    """What the first order's answers determine among all rows of the data, those asked included: counted, not estimated."""

    service: Annotated[str, Note(description="id of the service")]
    answers: Annotated[int, Note(description="how many answers of the first order were given")]
    cases: Annotated[int, Note(description="all rows of the data, used in the audit or not")]
    determined: Annotated[int, Note(description="how many of them are determined, Yes or No")]
    undecided: Annotated[int, Note(description="how many of them a limit left unsettled; they may be determined, too")]

    @property
    def share(self) -> float:
        """The share of all rows that is determined.

        >>> AllCases("s1", 5, cases=8, determined=6, undecided=0).share
        0.75
        """
        return self.determined / self.cases

    @property
    def at_most(self) -> float:
        """The share that may be determined, with what a limit left unsettled."""
        return (self.determined + self.undecided) / self.cases


@dataclass(frozen=True)
class Question:
    """A made-up case on a map: where, the decision, and where the explanation leads."""

    x: float
    y: float
    label: Literal[-1, 1]
    explanation: tuple[float, float] | None


@dataclass(frozen=True)
class Panel:
    """One drawing of a map: what is certain after its questions."""

    decisions: Annotated[int, Note(description="how many questions were answered")]
    explanations: Annotated[int, Note(description="how many of them, the first ones, were explained")]
    grid: Annotated[
        tuple[str, ...],
        Note(
            description="rows from top to bottom: Y determined Yes, N determined No, . unknown, = boundary, ? not settled"
        ),
    ]
    yes: Annotated[float, Note(description="share of the grid determined Yes")]
    no: Annotated[float, Note(description="share determined No")]
    unknown: Annotated[float, Note(description="share of all else: unknown, boundary and not settled")]
    undecided: Annotated[float, Note(description="share of it that a limit left unsettled")] = 0.0


@dataclass(frozen=True)
class Map:
    """The plane of two features through the average case, others held; explanations change only these two."""

    across: Annotated[str, Note(description="name of the feature from left to right")]
    up: Annotated[str, Note(description="name of the feature from bottom to top")]
    x_range: Annotated[
        tuple[float, float], Note(description="first and last grid value across, in the data's own units")
    ]
    y_range: Annotated[tuple[float, float], Note(description="first and last grid value up, in the data's own units")]
    line: Annotated[
        tuple[tuple[float, float], tuple[float, float]] | None,
        Note(description="where the true line enters and leaves the map; null: it does not cross it"),
    ]
    questions: Annotated[tuple[Question, ...], Note(description="made-up cases, in the data's own units")]
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class ProofRow:
    """A term of a worked proof: an answered question of the first map and its weight."""

    question: Annotated[int, Note(description="number of the question on the map, from 1")]
    label: Literal[-1, 1]
    weight: Annotated[str, Note(description="a fraction; positive for questions with the proof's own answer")]
    x: Annotated[str, Note(description="exact value across, a decimal")]
    y: Annotated[str, Note(description="exact value up, a decimal")]


@dataclass(frozen=True)
class WorkedProof:
    """Why a point of the first map is determined, as a sum that anyone can redo: Σ weight·(x, y, 1) = (x, y, 1)."""

    x: str
    y: str
    label: Literal[-1, 1]
    rows: tuple[ProofRow, ...]


@dataclass(frozen=True)
class Cost:
    """What an attacker needs to know the direction to within the accuracy."""

    explanations: Annotated[int | None, Note(description="null: not found up to the limit")]
    labels: Annotated[int | None, Note(description="null: not found up to the limit")]
    method: Annotated[str | None, Note(description="which attack it was; null: none succeeded")]
    certified: Annotated[
        bool, Note(description="true: the attacker can prove it himself; false: seen by who knows the model")
    ]
    error: Annotated[float | None, Note(description="measured angle at that cost, or the best reached at the limit")]

    @property
    def requests(self) -> int | None:
        """Explanations and decisions together."""
        return None if self.explanations is None or self.labels is None else self.explanations + self.labels


@dataclass(frozen=True)
class Defence:
    """One way to defend the audited service: what it costs the attacker, and the applicant."""

    id: Annotated[str, Note(description="'none', 'rounded', 'noisy', …")]
    name: Annotated[str, Note(description="in words")]
    short: Annotated[str, Note(description="in at most 26 characters, ASCII")]
    spec: Annotated[
        str | None, Note(description="as given to --degrade; null: nothing, or not a change of the answers")
    ]
    explained: Annotated[Cost, Note(description="the attacker sees explanations only")]
    with_labels: Annotated[Cost, Note(description="the attacker can also ask decisions on made-up cases")]
    length: Annotated[float | None, Note(description="median length of the change, as a multiple of the shortest")]
    invalid: Annotated[float | None, Note(description="share of the advice that does not change the decision")]
    unanswered: Annotated[float, Note(description="share of the cases that get no explanation")]
    shows_rows: Annotated[bool, Note(description="true: answers are other people's cases")]


@dataclass(frozen=True)
class Defences:
    """Defences of the audited service compared."""

    service: Annotated[str, Note(description="id of the service")]
    accuracy: Annotated[float, Note(description="the attacker's goal: the angle of the copied direction")]
    limit: Annotated[int, Note(description="most requests an attacker was given")]
    runs: Annotated[int, Note(description="repeats; counts are of the median run")]
    cases: Annotated[int, Note(description="cases that length and invalid are measured on")]
    rows: tuple[Defence, ...]
    deviations: Annotated[
        float, Note(description="the attacker's questions stay within so many standard deviations of the average case")
    ] = 3.0


@dataclass(frozen=True)
class Gate:
    """A condition that was asked for, and whether it was met; `expression` says when it fails."""

    expression: Annotated[str, Note(description="as given to --fail-on, e.g. 'determined@200>60%'")]
    passed: bool
    service: Annotated[str | None, Note(description="id of the service that decided it: the worst of the audited ones")]
    found: Annotated[float | None, Note(description="the value that was compared; null: could not be measured (fails)")]
    allowed: Annotated[float, Note(description="the bound it was compared with")]


@dataclass(frozen=True)
class Finding:
    """A finding or a piece of advice: which one, and the values its words need. `report/` has the words."""

    code: str
    values: dict[str, Value]


@dataclass(frozen=True)
class AuditReport:
    """Everything an audit found; see the parts."""

    subject: Subject
    services: tuple[AuditedService, ...]
    known: tuple[UntilKnown, ...]
    curves: tuple[Curve, ...]
    headline: Annotated[int, Note(description="the number of answers that the verdict quotes the determined share for")]
    quotas: tuple[Quota, ...]
    maps: tuple[Map, ...]
    proof: WorkedProof | None
    defences: Defences | None
    gates: tuple[Gate, ...]
    findings: tuple[Finding, ...]
    advice: tuple[Finding, ...]
    provenance: Provenance
    all_cases: Annotated[
        tuple[AllCases, ...],
        Note(description="shares of all rows of the data, for the figures that are quoted; empty: not asked for"),
    ] = ()
    format: Literal["overexplain-audit"] = FORMAT
    version: int = VERSION

    @property
    def audited(self) -> AuditedService:
        """The service that the report is about."""
        return self.services[0]

    @property
    def passed(self) -> bool:
        """True if no gate failed."""
        return all(gate.passed for gate in self.gates)

    def service(self, id: str) -> AuditedService:
        """The service of that id; InvalidInput if there is none."""
        found = next((service for service in self.services if service.id == id), None)
        if found is None:
            raise InvalidInput(f"the report has no service {id!r}")
        return found

    def known_of(self, id: str) -> UntilKnown | None:
        """What rebuilding takes under a service; None if it was not tried."""
        return next((row for row in self.known if row.service == id), None)

    def curve_of(self, id: str, population: str = "all") -> Curve | None:
        """The curve of a service; None if there is none."""
        return next((c for c in self.curves if (c.service, c.population) == (id, population)), None)

    def quota_of(self, id: str) -> Quota | None:
        """The quota of a service; None if there is none."""
        return next((quota for quota in self.quotas if quota.service == id), None)

    def to_json(self) -> str:
        """The JSON that every rendering is made from; the same report gives the same bytes."""
        return as_json(self)

    @staticmethod
    def from_json(text: str | bytes) -> AuditReport:
        """The report in a JSON text; InvalidInput says where it does not fit the schema, or its parts do not fit together."""
        report = read_json(AuditReport, text, VERSION, "an audit report")
        refuse_misfits(report)
        return report


def json_schema() -> dict[str, Any]:
    """The JSON schema of an audit report."""
    return msgspec.json.schema(AuditReport)
