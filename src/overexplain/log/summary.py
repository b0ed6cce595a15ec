"""What is in a log, in numbers: for a look before using it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from overexplain.geometry.mechanism import Mechanism
from overexplain.log.equal_rows import repeats
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status

if TYPE_CHECKING:
    from overexplain.log.store.run import Run


@dataclass(frozen=True)
class Terms:
    """A mechanism in words and as JSON, and how many questions for explanations were answered under it."""

    words: str
    mechanism: dict[str, Any]
    rows: int


@dataclass(frozen=True)
class LogSummary:
    """A log in numbers. `unstated`: explanations whose rows do not say what they follow."""

    rows: int
    yes: int
    no: int
    explanations: int
    none: int
    failed: int
    repeated: int
    dimension: int | None
    features: tuple[str, ...] | None
    terms: tuple[Terms, ...]
    unstated: int
    clients: int
    without_client: int
    sources: int
    first: float | None
    last: float | None
    without_time: int

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        entries = asdict(self)
        return entries | {
            "features": None if self.features is None else list(self.features),
            "terms": list(entries["terms"]),
        }


@dataclass(frozen=True)
class Unanswered:
    """A question that was sent and to which no answer is known: the process ended first."""

    number: int
    verb: str
    point: tuple[float, ...]
    time: float


@dataclass(frozen=True)
class RunSummary:
    """How far a run against an endpoint has come."""

    id: str
    budget: int
    spent: int
    left: int
    retries: int
    answered: int
    idempotent: bool
    unanswered: tuple[Unanswered, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        entries = asdict(self)
        return entries | {"unanswered": list(entries["unanswered"])}


def summarize_run(run: Run) -> RunSummary:
    """The run in numbers."""
    open_questions = tuple(
        Unanswered(sent.number, sent.verb, tuple(sent.point.tolist()), sent.time) for sent in run.unanswered
    )
    numbers = (run.budget, run.spent, run.left, run.retries, run.answered)
    return RunSummary(run.id, *numbers, run.idempotent, open_questions)


def summarize(log: QueryLog) -> LogSummary:
    """The log in numbers.

    >>> log = QueryLog(["age", "income"])
    >>> log.add_label([[30.0, 2.0], [30.0, 2.0], [20.0, 1.0]], [1, 1, -1], client="ann")
    0
    >>> found = summarize(log)
    >>> found.yes, found.no, found.repeated, found.clients
    (2, 1, 1, 1)
    """
    status, known = log.status, log.times[~np.isnan(log.times)]
    clients = _distinct(log.clients)
    return LogSummary(
        rows=len(log),
        yes=int(np.count_nonzero(log.labels == 1)),
        no=int(np.count_nonzero(log.labels == -1)),
        explanations=int(np.count_nonzero(status == Status.ASKED)),
        none=int(np.count_nonzero(status == Status.NONE)),
        failed=int(np.count_nonzero(status == Status.FAILED)),
        repeated=repeats(log),
        dimension=log.dimension,
        features=log.features,
        terms=_terms(log),
        unstated=int(np.count_nonzero((status == Status.ASKED) & (log.mechanism_ids < 0))),
        clients=len(clients),
        without_client=sum(client is None for client in log.clients),
        sources=len(_distinct(log.sources)),
        first=float(known.min()) if len(known) else None,
        last=float(known.max()) if len(known) else None,
        without_time=len(log) - len(known),
    )


def _distinct(texts: Iterable[Any]) -> set[str]:
    return {text for text in dict.fromkeys(texts) if text is not None}


def _terms(log: QueryLog) -> tuple[Terms, ...]:
    """The mechanisms that rows follow, the most used first."""
    used = np.bincount(log.mechanism_ids[log.mechanism_ids >= 0], minlength=len(log.mechanisms)).tolist()
    found = [Terms(in_words(m), m.to_dict(), rows) for m, rows in zip(log.mechanisms, used, strict=True) if rows]
    return tuple(sorted(found, key=lambda terms: -terms.rows))


def in_words(mechanism: Mechanism) -> str:
    """A mechanism in words, with how far answers may be off.

    >>> in_words(Mechanism("l1")), in_words(Mechanism("l2", slack=0.5, tolerance=0.01)), in_words(Mechanism(None, slack=None))
    ('l1', 'l2, up to 1.5 times as far, within 0.01', 'only the label flips')
    """
    if mechanism.slack is None and mechanism.distance is None and mechanism.is_plain:
        where = "" if mechanism.domain is None else f", {mechanism.domain.describe()}"
        return f"only the label flips{where}"
    said = [mechanism.describe()]
    if mechanism.slack is None:
        said.append("however far")
    elif mechanism.slack:
        said.append(f"up to {1 + mechanism.slack:g} times as far")
    if mechanism.tolerance is not None:
        said.append(f"within {mechanism.tolerance:g}" if mechanism.tolerance else "exactly")
    return ", ".join(said)
