"""What a monitor found in a log: frozen data with a published JSON schema.

Plain numbers, texts and tuples only. A share is a number from 0 to 1, an angle is in radians, rows are counted from 0 in the
order of the log, times are ISO 8601 in UTC. `docs/schemas/monitor.schema.json` is written from these classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec

from overexplain.auditing.written import Provenance, as_json, read_json

NO_CLIENT = "(no client)"
"""The name under which requests without a client are counted."""

FORMAT: Final = "overexplain-monitor"
VERSION = 1
Note = msgspec.Meta

Kind = Literal["holds-model", "boundary", "far-out", "own-explanations", "foreign-explanations", "volume"]
KINDS: tuple[Kind, ...] = (
    "holds-model",
    "boundary",
    "far-out",
    "own-explanations",
    "foreign-explanations",
    "volume",
)


@dataclass(frozen=True)
class Watched:
    """What the log holds."""

    rows: Annotated[int, Note(description="requests")]
    labels: Annotated[int, Note(description="requests answered with a decision")]
    explanations: Annotated[int, Note(description="requests answered with an explanation")]
    unstated: Annotated[int, Note(description="explanations whose terms nobody states: they count for nothing here")]
    clients: Annotated[int, Note(description="different clients; requests without one count as one client")]
    features: Annotated[tuple[str, ...], Note(description="their names, in order; x0, x1, … if the log has none")]
    services: Annotated[tuple[str, ...], Note(description="the terms of explanations, in short")]
    first: Annotated[str | None, Note(description="earliest time; null: the log has no times")]
    last: Annotated[str | None, Note(description="latest time; null: the log has no times")]


@dataclass(frozen=True)
class Moment:
    """When the model became known to whoever holds the answers."""

    row: Annotated[int, Note(description="the row whose answer completed it; known closely: to within 5 % of the rows")]
    time: Annotated[str | None, Note(description="of that row; null if it has none")]
    requests: Annotated[int, Note(description="requests of the holder up to and with that row")]
    explanations: Annotated[int, Note(description="explanations of the holder up to and with that row")]
    clients: Annotated[int, Note(description="clients who asked for the answers that it takes")]


@dataclass(frozen=True)
class Exposure:
    """What someone's answers give away: those of one client, or of all together."""

    requests: Annotated[int, Note(description="rows")]
    labels: Annotated[int, Note(description="decisions given")]
    explanations: Annotated[int, Note(description="explanations given")]
    exact: Annotated[int, Note(description="explanations that are exact by their terms, up to float64 rounding")]
    distinct: Annotated[int, Note(description="different points asked about")]
    rank: Annotated[int, Note(description="independent directions of the boundary that exact explanations show")]
    complete: Annotated[int, Note(description="the rank that leaves one model whatever the distance: features − 1")]
    known: Annotated[
        Literal["exactly", "closely", "partly"],
        Note(
            description="exactly: one model fits; closely: all that fit are within `closely` radians; partly: neither"
        ),
    ]
    recoverable_at: Annotated[
        Moment | None, Note(description="when it became known, exactly or closely; null: it is not")
    ]
    determined: Annotated[
        float | None,
        Note(
            description="share of the reference points whose decision is certain: proved from the answers; where the model is "
            "known exactly, off its boundary by more than rounding; closely, by more than the angle allows; null: no such point"
        ),
    ]
    undecided: Annotated[float | None, Note(description="share that a time limit left unsettled")]
    judged: Annotated[int, Note(description="reference points judged: for a client those that others asked about")]
    proved_from: Annotated[
        int, Note(description="rows that the proofs rest on; fewer than `requests`: the share is at least `determined`")
    ]
    angle: Annotated[
        float | None,
        Note(
            description="upper bound: no model that fits is farther than this from the compared one (`compared_with`), features "
            "in units of their spread, up to rounding of the answers; null: no bound below a right angle"
        ),
    ]
    at_most: Annotated[
        float | None,
        Note(
            description="the share that may be determined: with what was not settled, 1 where not all answers were used; null: no "
            "such point"
        ),
    ] = None

    @property
    def ceiling(self) -> float | None:
        """The share that cannot be exceeded; of a report that does not say it, what follows from the rest."""
        if self.at_most is not None or self.determined is None:
            return self.at_most
        if self.known == "exactly":
            return self.determined
        some = self.known == "closely" or self.proved_from < self.requests
        return 1.0 if some else min(1.0, self.determined + (self.undecided or 0.0))


@dataclass(frozen=True)
class Alarm:
    """A client that holds the model, or asks as an attacker would: what, when, and how unlikely that is for others."""

    kind: Annotated[
        Kind,
        Note(
            description="holds-model: its own answers leave one model, or only close ones; boundary: questions unusually near "
            "the boundary, repeated explanations not counted; far-out: unusually far from what others ask; own-explanations: "
            "questions that repeat an earlier explanation of its own; foreign-explanations: one given to another client; "
            "volume: near the quota"
        ),
    ]
    client: Annotated[str, Note(description="who")]
    row: Annotated[int, Note(description="the row at which it fired")]
    time: Annotated[str | None, Note(description="of that row; null if it has none")]
    requests: Annotated[
        int, Note(description="different questions of the client until then (volume, holds-model: requests)")
    ]
    count: Annotated[
        int, Note(description="how many of them were unusual (volume: requests; holds-model: explanations)")
    ]
    limit: Annotated[
        float | None,
        Note(
            description="what counts as unusual: margins below, spreads above; volume: the quota; holds-model: the angle between "
            "models that are left, null if it is one; else null"
        ),
    ]
    usual: Annotated[
        float,
        Note(description="share of such questions among others; volume: share of the quota that warns; holds-model: 0"),
    ]
    chance: Annotated[
        float | None,
        Note(
            description="probability of so many if the client's questions were drawn like others'; null for volume and holds-model"
        ),
    ]
    total: Annotated[
        int,
        Note(
            description="unusual questions of the client in the whole log (volume: requests; holds-model: explanations)"
        ),
    ]


@dataclass(frozen=True)
class Client:
    """One of the most exposed clients."""

    client: Annotated[str, Note(description="its name; '(no client)' for rows without one")]
    first: Annotated[str | None, Note(description="time of its first request; null: not known")]
    last: Annotated[str | None, Note(description="time of its last request; null: not known")]
    exposure: Exposure
    alarms: Annotated[tuple[Kind, ...], Note(description="kinds of alarms it set off")]


@dataclass(frozen=True)
class Yardstick:
    """What the alarms compare with."""

    population: Annotated[
        Literal["reference", "log"] | None,
        Note(description="whose questions are usual: the reference points, or other clients'; null: too few"),
    ]
    rows: Annotated[int, Note(description="questions of the population")]
    margins: Annotated[
        Literal["model", "recovered", "fitted"] | None,
        Note(
            description="the boundary that margins are from: given, recovered from the log, or fitted to its decisions"
        ),
    ]
    near: Annotated[float | None, Note(description="margin below which 1 % of the population lies")]
    far: Annotated[float | None, Note(description="spreads from the middle beyond which a question is far out")]
    not_evaluated: Annotated[tuple[Kind, ...], Note(description="alarms that could not be evaluated")]


@dataclass(frozen=True)
class Gate:
    """A condition that was asked for, and whether it was met; `expression` says when it fails."""

    expression: Annotated[str, Note(description="as given to --fail-on, e.g. 'determined>60%'")]
    passed: bool
    found: Annotated[float | None, Note(description="the value that was compared; null: could not be measured (fails)")]
    allowed: Annotated[float, Note(description="the bound it was compared with")]


@dataclass(frozen=True)
class MonitorReport:
    """Everything a monitor found; see the parts."""

    log: Watched
    pooled: Annotated[Exposure, Note(description="all clients together")]
    clients: Annotated[tuple[Client, ...], Note(description="the most exposed ones, worst first")]
    alone: Annotated[int, Note(description="clients whose own exact explanations leave one model: at least so many")]
    alarms: Annotated[tuple[Alarm, ...], Note(description="in the order of the rows at which they fired, at most 1000")]
    alarm_counts: Annotated[dict[str, int], Note(description="how many clients set off each kind of alarm")]
    alarmed: Annotated[int, Note(description="clients that set off any")]
    yardstick: Yardstick
    reference: Annotated[
        Literal["given", "held out"] | None,
        Note(description="which points the determined share is of: given ones, or a sample of the log's own questions"),
    ]
    reference_points: Annotated[int, Note(description="how many")]
    compared_with: Annotated[
        Literal["model", "recovered", "fitted"] | None, Note(description="the model that angles are measured from")
    ]
    closely: Annotated[float, Note(description="the angle that counts as close, in radians")]
    gates: tuple[Gate, ...]
    provenance: Provenance
    format: Literal["overexplain-monitor"] = FORMAT
    version: int = VERSION

    @property
    def passed(self) -> bool:
        """True if no gate failed."""
        return all(gate.passed for gate in self.gates)

    def to_json(self) -> str:
        """The JSON that every rendering is made from; the same report gives the same bytes."""
        return as_json(self)

    @staticmethod
    def from_json(text: str | bytes) -> MonitorReport:
        """The report in a JSON text; InvalidInput says where it does not fit the schema."""
        return read_json(MonitorReport, text, VERSION, "a monitor report")


def json_schema() -> dict[str, Any]:
    """The JSON schema of a monitor report."""
    return msgspec.json.schema(MonitorReport)
