"""A run: every question to a service and what came of it, in one file, safe before anything depends on it.

A request is written down before it is sent (an *intent*) and its answer before it is used, both waiting for the disk. So
whenever the process is killed, no answer is lost that anyone has acted on, and no request was sent that is not counted. An
extraction asks the same questions again if it gets the same answers: to go on with a run is to start it anew, with stored
answers given back (`Question.outcome`) until the first question that has none.

A run that is open, or whose process was killed, has a `-wal` file beside it. The file alone knows of every request that was sent
and of every answer that was used; only a refusal that ended the work of a `with` block is asked again by the next.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import numpy as np

from overexplain.errors import DimensionMismatch, EndpointFailed, InvalidInput
from overexplain.geometry.arrays import FloatArray, as_budget
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import as_mechanism, feature_names
from overexplain.log.store.file import LARGEST, create_file, open_file, read_file
from overexplain.log.store.ledger import Ledger, naming
from overexplain.log.store.question import Question
from overexplain.log.store.rows import (
    KINDS,
    Outcome,
    Sent,
    Verb,
    digest,
    header_row,
    point_bytes,
    read_counts,
    read_header,
    read_log,
    read_unanswered,
)

__all__ = ["Outcome", "Question", "Run", "Sent"]

_LARGEST_BUDGET = 2**62


@final
class Run:
    """One run: `create` it, `open` it to go on, or `read` what is in it. A context manager; for one thread.

    `id`, `plan` (JSON, with the seed), `dimension`, `features`, `mechanism` and `idempotent` never change. A request costs 1,
    whatever comes of it; with an `idempotent` service all requests for the same question cost 1 together.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Run.create(folder.name + "/run.sqlite", plan={"seed": 1}, dimension=2, budget=10) as run:
    ...     question = run.question("classify", np.array([1.0, 2.0]))
    ...     question.sending()
    ...     question.heard(Outcome("label", label=1))
    ...     run.spent, run.left
    (1, 9)
    >>> with Run.open(folder.name + "/run.sqlite") as run:
    ...     run.question("classify", np.array([1.0, 2.0])).outcome.label
    1
    >>> Run.read(folder.name + "/run.sqlite").log()
    QueryLog(1 row: 1 label, 0 explanations, 2 features)
    >>> folder.cleanup()
    """

    def __init__(self, ledger: Ledger, was_read: tuple[QueryLog, tuple[Sent, ...]] | None = None) -> None:
        header = ledger.header
        self.path = ledger.path
        self.id, self.dimension, self.features = header.id, header.dimension, header.features
        self.mechanism, self.idempotent = header.mechanism, header.idempotent
        self._ledger = ledger
        self._was_read = was_read
        self._last: Question | None = None
        self._asked: dict[bytes, int] = {}  # how often, in this process, by the digest of verb and point

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        plan: Mapping[str, Any],
        dimension: int,
        features: Sequence[str] | None = None,
        mechanism: Mechanism | None = None,
        budget: int,
        idempotent: bool = False,
    ) -> Run:
        """A new run in a new file that only its owner may read; InvalidInput if there is a file already."""
        tables = first_rows(plan, dimension, features, mechanism, budget, idempotent)
        place, connection = create_file(path, tables)
        return cls._of(place, connection, path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """The run in the file, to go on with it; InvalidInput while another process has it open."""
        place, connection = open_file(path)
        return cls._of(place, connection, path)

    @classmethod
    def _of(cls, place: Path, connection: sqlite3.Connection, path: str | os.PathLike[str]) -> Run:
        try:
            with naming(path):
                return cls(Ledger(place, connection, read_header(connection), read_counts(connection)))
        except BaseException:
            connection.close()
            raise

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Run:
        """The run in the file as it is now, all in memory; nothing can be asked."""

        def work(connection: sqlite3.Connection) -> Run:
            with naming(path):
                header = read_header(connection)
                was_read = read_log(connection, header), read_unanswered(connection, header)
                return cls(Ledger(Path(path), None, header, read_counts(connection)), was_read)

        return read_file(path, work)

    @property
    def plan(self) -> dict[str, Any]:
        """What the run was made for: a copy."""
        copy: dict[str, Any] = json.loads(json.dumps(self._ledger.header.plan))
        return copy

    @property
    def budget(self) -> int:
        """What may be spent in all: the last word on it."""
        return self._ledger.counts.budget

    @property
    def spent(self) -> int:
        """What the requests so far cost: their number; of distinct questions among them if the service is idempotent."""
        return self._ledger.spent

    @property
    def left(self) -> int:
        """What may still be spent."""
        return self.budget - self.spent

    @property
    def retries(self) -> int:
        """Requests that brought nothing and were, or will be, followed by another for the same question."""
        return self._ledger.counts.retries

    @property
    def answered(self) -> int:
        """Questions of which it is known what came: a label, an explanation, none, or a refusal."""
        return self._ledger.counts.answered

    @property
    def last_sent(self) -> float | None:
        """When the last request was written down, in seconds since the epoch; None if there was none."""
        return self._ledger.counts.last_sent

    @property
    def not_before(self) -> float:
        """Until when the service asked to wait, in seconds since the epoch, the latest there is; 0.0 if it never did."""
        return self._ledger.counts.not_before

    @property
    def unanswered(self) -> tuple[Sent, ...]:
        """Requests of which nobody knows what came: their process ended between sending and writing down."""
        if self._was_read is not None:
            return self._was_read[1]
        connection = self._ledger.connection
        with naming(self.path):
            return read_unanswered(connection, self._ledger.header)

    def log(self) -> QueryLog:
        """The answers that count, in order of sending; a refused explanation is FAILED, a refused label is not in it."""
        if self._was_read is not None:
            return self._was_read[0]
        connection = self._ledger.connection
        with naming(self.path):
            return read_log(connection, self._ledger.header)

    def allow(self, budget: int) -> None:
        """Set another budget from now on; InvalidInput if more is spent already."""
        allowed, now = _budget(budget), time.time()
        if allowed < self.spent:
            raise InvalidInput(f"a budget of {allowed} is too late: {self.spent} are spent already")
        if allowed == self.budget:
            return
        with self._ledger.durable() as (connection, counts):
            number = counts.budgets + 1
            row = (number, allowed, now, digest(number, allowed, now))
            connection.execute("INSERT INTO allowed VALUES (?, ?, ?, ?)", row)
            connection.execute("COMMIT")
            counts.budgets, counts.budget = number, allowed

    def question(self, verb: Verb, x: FloatArray) -> Question:
        """The question, with what came of it if it was asked before; asking for the same twice makes two questions."""
        if verb not in KINDS:
            raise InvalidInput(f"a question is classify or explain, not {verb!r}")
        blob = point_bytes(x, self.dimension)
        same = sha256(verb.encode() + blob).digest()
        occurrence = self._asked.get(same, 0)
        question = Question(self._ledger, verb, blob, occurrence)
        self._asked[same] = occurrence + 1
        self._last = question
        return question

    def close(self) -> None:
        """Let go of the file; what was stored stays. A forked child leaves its parent's run alone."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        last = self._last
        refused = last is not None and last.outcome is not None and last.outcome.kind == "refused"
        if last is not None and refused and isinstance(error, EndpointFailed) and not error.stops:
            with suppress(OSError, InvalidInput):  # the error is still the news
                self._ledger.give_up(last.answer)
        self.close()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self.answered} answered, {self.spent} of {self.budget} spent)"


def first_rows(
    plan: Mapping[str, Any],
    dimension: int,
    features: Sequence[str] | None,
    mechanism: Mechanism | None,
    budget: int,
    idempotent: bool,
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of a new run, by table: what it is, and what it may spend."""
    entries = (*_shape(dimension, features, mechanism), bool(idempotent))
    allowed, now = _budget(budget), time.time()
    row = header_row(secrets.token_hex(16), plan, entries, now)
    return {"run": [row], "allowed": [(1, allowed, now, digest(1, allowed, now))]}


def _shape(dimension: Any, features: Any, mechanism: Any) -> tuple[int, tuple[str, ...] | None, Mechanism | None]:
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or not 1 <= dimension <= LARGEST // 8:
        raise InvalidInput(f"dimension is a number of features from 1 to {LARGEST // 8}, got {dimension!r}")
    names = None if features is None else feature_names(features)
    if names is not None and len(names) != dimension:
        raise DimensionMismatch(f"{len(names)} features, but dimension {dimension}")
    terms = as_mechanism(mechanism)
    if terms is not None:
        terms.fits(int(dimension))
    return int(dimension), names, terms


def _budget(budget: Any) -> int:
    allowed = as_budget(budget)
    if allowed > _LARGEST_BUDGET:
        raise InvalidInput(f"a budget of {allowed} is more than can be counted; {_LARGEST_BUDGET} is the largest")
    return allowed
