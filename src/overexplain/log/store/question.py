"""One question of a run: written down before it is sent, its answer before it is used."""

from __future__ import annotations

import math
import time
from typing import final

import numpy as np

from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.log.store.ledger import Ledger, naming
from overexplain.log.store.rows import (
    Outcome,
    Verb,
    answer_digest,
    question_hash,
    question_key,
    read_log,
    read_outcome,
    stored_outcome,
    stored_text,
)
from overexplain.log.store.schema import LAST_ANSWER, LAST_INTENT


@final
class Question:
    """One question of a run. `outcome` is what came of it, None while that is not known; `key` names it to the service."""

    def __init__(self, ledger: Ledger, verb: Verb, blob: bytes, occurrence: int) -> None:
        self.verb: Verb = verb
        self.outcome: Outcome | None = None
        self.answer = 0  # the number of the answer with that outcome
        self._ledger, self._blob, self._occurrence = ledger, blob, occurrence
        self._hash = question_hash(verb, blob, occurrence)
        self.key = question_key(ledger.header.id, self._hash)
        self._number: int | None = None
        self._intent: int | None = None  # of the last send here, while no answer to it is stored
        self._failed = False
        connection = ledger.connection
        with naming(ledger.path):
            found = connection.execute("SELECT number FROM question WHERE hash = ?", (self._hash,)).fetchone()
            if found is not None:
                self._number = found[0]
                row = connection.execute(LAST_ANSWER, found).fetchone()
                # Whoever goes on after a refusal that ended the run wants it asked again.
                if row is not None and row[0] not in ledger.given_up:
                    self.answer = row[0]
                    self.outcome = read_outcome(row, self._hash, ledger.header.dimension)

    @property
    def point(self) -> FloatArray:
        """The point asked about: a copy."""
        return np.frombuffer(self._blob, dtype="<f8").astype(np.float64)

    @property
    def was_sent(self) -> bool:
        """True from `sending` until `heard`."""
        return self._intent is not None

    @property
    def waiting(self) -> bool:
        """True from `sending` until `failed` or `heard`."""
        return self.was_sent and not self._failed

    def sending(self) -> None:
        """Write down that the question is about to be sent; BudgetExhausted, and nothing written, if it may not be."""
        ledger = self._ledger
        budget, spent = ledger.counts.budget, ledger.spent
        is_new = self._number is None
        if spent >= budget and (is_new or not ledger.header.idempotent):
            with naming(ledger.path):
                log = read_log(ledger.connection, ledger.header)
            raise BudgetExhausted(
                f"one more request would exceed the budget of {budget} ({spent} spent); not sent", log=log
            )
        with ledger.durable() as (connection, counts):
            question, intent, now = self._number or counts.questions + 1, counts.intents + 1, time.time()
            lost = False
            if is_new:
                row = (question, self._hash, self.verb, self._occurrence, self._blob)
                connection.execute("INSERT INTO question VALUES (?, ?, ?, ?, ?)", row)
            else:
                lost = not connection.execute(LAST_INTENT, (question,)).fetchone()[1]
            connection.execute("INSERT INTO intent VALUES (?, ?, ?)", (intent, question, now))
            connection.execute("COMMIT")
            counts.questions, counts.intents, counts.last_sent = max(question, counts.questions), intent, now
            counts.retries += lost
            self._number, self._intent, self._failed = question, intent, False

    def failed(self, reason: str, not_before: float | None = None) -> None:
        """Write down that the last send brought nothing, and until when (seconds since the epoch) not to send another."""
        if not self.waiting:
            raise InvalidInput("nothing was sent for this question that could have failed")
        until = None if not_before is None else float(not_before)
        if until is not None and not math.isfinite(until):
            raise InvalidInput(f"not_before must be seconds since the epoch, got {not_before!r}")
        with self._ledger.durable() as (connection, counts):
            number = counts.failures + 1
            row = (number, self._intent, stored_text(reason), until, time.time())
            connection.execute("INSERT INTO failure VALUES (?, ?, ?, ?, ?)", row)
            connection.execute("COMMIT")
            counts.failures, counts.not_before = number, max(counts.not_before, until or 0.0)
            counts.retries += 1
            self._failed = True

    def heard(self, outcome: Outcome) -> None:
        """Write down what the last send brought; when this returns, it can be used.

        After `failed`, what counts can still be said: that the question is given up (refused).
        """
        intent = self._intent
        if intent is None:
            raise InvalidInput("nothing was sent for this question that could have been answered")
        stored = stored_outcome(outcome, self.verb, self._ledger.header.dimension)
        with self._ledger.durable() as (connection, counts):
            number = counts.answers + 1
            is_first = connection.execute(LAST_ANSWER, (self._number,)).fetchone() is None
            row = (number, intent, *stored, time.time(), answer_digest(self._hash, number, intent, stored))
            connection.execute("INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            connection.execute("COMMIT")
            counts.answers = number
            counts.answered += is_first
            counts.retries -= self._failed
            self._intent, self._failed = None, False
            self.answer, self.outcome = number, outcome
