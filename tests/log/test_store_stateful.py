"""A run against a plain model of it: whatever is asked, answered, lost, closed, killed or read, in whatever order."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.store.run import Outcome, Question, Run
from store_samples import forked
from strategies import examples

POINTS = ([0.0, 1.0], [-0.0, 1.0], [5e-324, -1e300])
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # thousands of commits need not wait for a disk here
Asked = tuple[str, int, int]
"""Verb, which point, which occurrence."""


@dataclass
class Request:
    """One send: for which question, and what became of it."""

    asked: Asked
    time: float
    failed: bool = False
    answer: tuple[int, Outcome] | None = None


class Model:
    """What a run must say, by counting everything anew each time."""

    def __init__(self, budget: int, idempotent: bool) -> None:
        self.budget, self.idempotent = budget, idempotent
        self.requests: list[Request] = []
        self.answers = 0
        self.not_before = 0.0

    def cost(self, requests: list[Request]) -> int:
        return len({request.asked for request in requests}) if self.idempotent else len(requests)

    def may_send(self, asked: Asked) -> bool:
        return self.cost([*self.requests, Request(asked, 0.0)]) <= self.budget

    def last_answer(self, asked: Asked) -> tuple[int, Outcome] | None:
        found = [request.answer for request in self.requests if request.asked == asked and request.answer is not None]
        return max(found, key=lambda answer: answer[0], default=None)

    def outcome(self, asked: Asked) -> Outcome | None:
        last = self.last_answer(asked)
        if last is None:
            return None
        return last[1]

    @property
    def retries(self) -> int:
        return sum(
            request.answer is None
            and (request.failed or any(later.asked == request.asked for later in self.requests[number + 1 :]))
            for number, request in enumerate(self.requests)
        )

    def log(self, run: str) -> QueryLog:
        log = QueryLog(mechanism=Mechanism("l1"))
        log._set_dimension(2)
        for request in self.requests:
            if request.answer is None or self.last_answer(request.asked) != request.answer:
                continue
            verb, point, _ = request.asked
            outcome, about = request.answer[1], {"time": request.time, "source": f"run {run[:8]}"}
            if outcome.kind == "label":
                log.add_label(POINTS[point], outcome.label, **about)
            elif verb == "explain":
                status = Status.FAILED if outcome.kind == "refused" else None
                log.add_explanation(POINTS[point], outcome.explanation, status=status, **about)
        return log


OUTCOMES = {
    "classify": st.sampled_from(
        [Outcome("label", label=1), Outcome("label", label=-1), Outcome("refused", detail="500")]
    ),
    "explain": st.sampled_from(
        [
            Outcome("explanation", explanation=np.array([-0.0, 1e-310])),
            Outcome("none"),
            Outcome("refused", detail="no"),
        ]
    ),
}


class Runs(RuleBasedStateMachine):
    """Open questions are kept until their process ends; the file outlives it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=IN_MEMORY))
        self.generation = 0
        self.run: Run | None = None
        self.open: list[tuple[Asked, Question, Request | None]] = []
        self.seen: dict[tuple[str, int], int] = {}

    @property
    def path(self) -> Path:
        return self.folder / f"{self.generation}.sqlite"

    @initialize(budget=st.integers(0, 12), idempotent=st.booleans())
    def create(self, budget: int, idempotent: bool) -> None:
        self.model = Model(budget, idempotent)
        self.run = Run.create(
            self.path, plan={"seed": 1}, dimension=2, mechanism=Mechanism("l1"), budget=budget, idempotent=idempotent
        )
        self.id = self.run.id

    def ended(self) -> None:
        self.run = None
        self.open, self.seen = [], {}

    def reopened(self) -> Run:
        if self.run is None:
            self.run = Run.open(self.path)
        return self.run

    @rule(verb=st.sampled_from(["classify", "explain"]), point=st.integers(0, 2))
    def ask(self, verb: Any, point: int) -> None:
        question = self.reopened().question(verb, np.array(POINTS[point]))
        occurrence = self.seen.get((verb, point), 0)
        self.seen[verb, point] = occurrence + 1
        asked = (verb, point, occurrence)
        same(question.outcome, self.model.outcome(asked))
        if question.outcome is None:
            self.open.append((asked, question, None))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        which = data.draw(st.integers(0, len(self.open) - 1))
        asked, question, _ = self.open[which]
        if not self.model.may_send(asked):
            with pytest.raises(BudgetExhausted) as caught:
                question.sending()
            assert caught.value.log == self.model.log(self.id)
            return
        question.sending()
        request = Request(asked, self.run.last_sent)
        self.model.requests.append(request)
        self.open[which] = (asked, question, request)

    @precondition(lambda self: any(request is not None for _, _, request in self.open))
    @rule(data=st.data(), until=st.sampled_from([None, 1e9, 5e9]))
    def fail(self, data: st.DataObject, until: float | None) -> None:
        _, question, request = data.draw(st.sampled_from([each for each in self.open if each[2] is not None]))
        if request.failed:
            with pytest.raises(InvalidInput):
                question.failed("again")
            return
        question.failed("429", until)
        request.failed = True
        self.model.not_before = max(self.model.not_before, until or 0.0)

    @precondition(lambda self: any(request is not None for _, _, request in self.open))
    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from([each for each in self.open if each[2] is not None]))
        asked, question, request = chosen
        outcome = data.draw(OUTCOMES[asked[0]])
        question.heard(outcome)
        self.model.answers += 1
        request.answer = (self.model.answers, outcome)
        self.open = [each for each in self.open if each is not chosen]

    @rule(budget=st.integers(0, 20))
    def allow(self, budget: int) -> None:
        if budget < self.model.cost(self.model.requests):
            with pytest.raises(InvalidInput):
                self.reopened().allow(budget)
        else:
            self.reopened().allow(budget)
            self.model.budget = budget

    @rule()
    def close(self) -> None:
        self.reopened().close()
        self.ended()

    @rule()
    def kill(self) -> None:
        """The files as a killed process leaves them."""
        old, run = self.path, self.reopened()
        self.generation += 1
        for end in ("", "-wal"):
            shutil.copy(f"{old}{end}", f"{self.path}{end}")
        run.close()
        self.ended()

    @precondition(lambda self: self.model.may_send(("classify", 0, 0)))
    @rule(hears=st.booleans())
    def another_process_dies(self, hears: bool) -> None:
        """The real thing: a process that asks, and is gone."""
        self.close()
        asked = ("classify", 0, 0)
        known = self.model.outcome(asked) is not None

        def ask() -> None:
            question = Run.open(self.path).question("classify", np.array(POINTS[0]))
            assert (question.outcome is not None) == known
            if not known:
                question.sending()
                if hears:
                    question.heard(Outcome("label", label=1))

        assert forked(ask) == 0
        if not known:
            request = Request(asked, self.reopened().last_sent)
            self.model.requests.append(request)
            if hears:
                self.model.answers += 1
                request.answer = (self.model.answers, Outcome("label", label=1))

    @rule()
    def read(self) -> None:
        self.close()
        self.agrees(Run.read(self.path))

    @invariant()
    def nothing_is_lost_and_no_budget_exceeded(self) -> None:
        if self.run is not None:
            self.agrees(self.run)

    def agrees(self, run: Run) -> None:
        model = self.model
        assert run.id == self.id
        assert run.spent == model.cost(model.requests) <= run.budget == model.budget
        assert run.left == model.budget - run.spent
        assert run.retries == model.retries
        assert run.answered == len({request.asked for request in model.requests if request.answer is not None})
        assert run.not_before == model.not_before
        assert run.last_sent == (model.requests[-1].time if model.requests else None)
        lost = [n for n, request in enumerate(model.requests, 1) if not request.failed and request.answer is None]
        assert [sent.number for sent in run.unanswered] == lost
        for sent in run.unanswered:
            verb, point, _ = model.requests[sent.number - 1].asked
            assert (sent.verb, sent.point.tobytes()) == (verb, np.array(POINTS[point]).tobytes())
        log, expected = run.log(), model.log(run.id)
        assert log == expected
        assert log.points.tobytes() == expected.points.tobytes()

    def teardown(self) -> None:
        if self.run is not None:
            self.run.close()
        shutil.rmtree(self.folder)


def same(found: Outcome | None, expected: Outcome | None) -> None:
    if found is None or expected is None:
        assert found is expected
        return
    assert (found.kind, found.label, found.detail) == (expected.kind, expected.label, expected.detail)
    if expected.explanation is None:
        assert found.explanation is None
    else:
        assert found.explanation.tobytes() == expected.explanation.tobytes()


TestRuns = Runs.TestCase
TestRuns.settings = settings(examples(18), stateful_step_count=30)
