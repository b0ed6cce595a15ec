"""An oracle whose answers are in a run's file: stored ones are given again, others asked, stored, and only then used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import BudgetExhausted, DimensionMismatch, EndpointFailed, InvalidInput, OverexplainError
from overexplain.geometry.arrays import FloatArray, as_point_or_rows
from overexplain.log.store.rows import Verb
from overexplain.log.store.run import Outcome, Question, Run
from overexplain.oracles.protocol import checked_explanation, checked_label
from overexplain.oracles.wrapper import Wrapper, one_by_one


@final
class Kept(Wrapper):
    """The wrapped oracle, asked only what the run does not know yet.

    The wrapped oracle is an `HttpOracle`, or anything with ``ask(verb, x, question)`` that says ``question.sending()`` before
    each request and ``question.failed(…)`` after a fruitless one; any other oracle is sent each question once. What the service
    refuses or answers unreadably is stored too, and is EndpointFailed each time. If the answers can no longer be stored, that
    is EndpointFailed with ``stops`` set and the store's own error (an OSError or InvalidInput) as its cause.

    >>> import tempfile
    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> service = ModelOracle(Hyperplane([1.0, 0.0], 1.0), "l2")
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Run.create(folder.name + "/run.sqlite", plan={}, dimension=2, budget=5) as run:
    ...     Kept(service, run).explain([0.0, 0.0]), run.spent
    (array([1., 0.]), 1)
    >>> with Run.open(folder.name + "/run.sqlite") as run:
    ...     Kept(service, run).explain([0.0, 0.0]), run.spent
    (array([1., 0.]), 1)
    >>> folder.cleanup()
    """

    def __init__(self, oracle: Any, run: Run) -> None:
        super().__init__(oracle)
        if oracle.dimension != run.dimension:
            raise DimensionMismatch(f"the service has {oracle.dimension} features, the run {run.dimension}")
        if None not in (run.mechanism, oracle.mechanism) and run.mechanism != oracle.mechanism:
            raise InvalidInput("the service publishes other terms than the run was made for; start a new run")
        self.run = run

    def classify(self, x: ArrayLike) -> Any:
        """The label of a point, or of every row of a batch."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self._ask("classify", points).label
        return np.array([self._ask("classify", row).label for row in points], dtype=np.int64)

    def explain(self, x: ArrayLike) -> Any:
        """The explanation of a point or None, or of every row of a batch."""
        return one_by_one(lambda point: self._ask("explain", point).explanation, x, self.dimension)

    def _ask(self, verb: Verb, x: FloatArray) -> Outcome:
        with _storing():
            question = self.run.question(verb, x)
        outcome = question.outcome
        if outcome is None:
            outcome = self._fresh(verb, x, question)
        if outcome.kind == "refused":
            raise EndpointFailed(outcome.detail)
        return outcome

    def _fresh(self, verb: Verb, x: FloatArray, question: Question) -> Outcome:
        """What the service says now, stored."""
        try:
            answer = self._answer(verb, x.copy(), question)
            outcome = _outcome(verb, answer, self.dimension)
        except EndpointFailed as error:
            with _storing():
                if error.stops and question.waiting:
                    question.failed(str(error))  # known to have brought nothing: not lost in a crash
                elif not error.stops and question.was_sent:
                    question.heard(Outcome("refused", detail=str(error)))
            raise
        with _storing():
            question.heard(outcome)
        return outcome

    def _answer(self, verb: Verb, x: FloatArray, question: Question) -> Any:
        ask = getattr(self.wrapped, "ask", None)
        if callable(ask):
            return ask(verb, x, _Recorder(question))
        with _storing():
            question.sending()
        try:
            return getattr(self.wrapped, verb)(x)
        except EndpointFailed:
            raise
        except Exception as error:
            raise EndpointFailed(f"the service raised {type(error).__name__}: {error}") from error


@final
class _Recorder:
    """What the wrapped oracle sees of a question."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.key = question.key

    def sending(self) -> None:
        with _storing():
            self._question.sending()

    def failed(self, reason: str, not_before: float | None = None) -> None:
        with _storing():
            self._question.failed(reason, not_before)


@contextmanager
def _storing() -> Iterator[None]:
    """A block in which a failing store stops everything: it is not this one question that went wrong."""
    try:
        yield
    except BudgetExhausted:
        raise
    except (OSError, OverexplainError) as error:
        raise EndpointFailed(f"the run cannot go on, answers could not be stored: {error}", stops=True) from error


def _outcome(verb: Verb, answer: Any, dimension: int) -> Outcome:
    """The answer as an outcome, refused if it cannot be read."""
    try:
        if verb == "classify":
            return Outcome("label", label=checked_label(answer))
        explanation = checked_explanation(answer, dimension)
    except InvalidInput as error:
        return Outcome("refused", detail=str(error))
    return Outcome("none") if explanation is None else Outcome("explanation", explanation=explanation)
