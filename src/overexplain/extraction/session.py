"""One conversation with a service: every question is counted, every answer checked and kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from overexplain.errors import (
    BudgetExhausted,
    DimensionMismatch,
    EndpointFailed,
    InvalidInput,
    NoExplanation,
    NotFinite,
    OverexplainError,
)
from overexplain.extraction.paid import asked
from overexplain.extraction.result import Spent
from overexplain.geometry.arrays import FloatArray, as_budget
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Status
from overexplain.oracles.protocol import Oracle, checked_explanation, checked_label, offers

TOO_LARGE = 2.0**500
"""The square of a larger number is infinite in float64: a service that promises nothing need not be believed that far."""


@dataclass(frozen=True)
class Reply:
    """What came back for one question: a point, or the spelling of "no answer" that the service chose."""

    answer: FloatArray | None
    failure: str | None = None


@dataclass(frozen=True)
class Progress:
    """How far an extraction is: what was asked, the requests it will have taken as far as that is known, the proved angle."""

    spent: Spent
    planned: int | None
    bound: float | None


class Session:
    """Asks an oracle within a budget; the log holds every answer from the moment it came."""

    def __init__(
        self,
        oracle: Oracle,
        budget: int | None = None,
        record: bool = True,
        watch: Callable[[Progress], None] | None = None,
    ) -> None:
        if isinstance(classes := getattr(oracle, "classes", None), int | np.integer) and classes > 2:
            raise InvalidInput(f"{type(oracle).__name__} has {classes} classes, not Yes and No: use extract_multiclass")
        self._oracle = oracle
        self._budget = None if budget is None else as_budget(budget)
        self.dimension = _dimension_of(oracle)
        self.mechanism: Mechanism | None = getattr(oracle, "mechanism", None)
        if self.mechanism is not None and not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(f"an oracle's mechanism is a Mechanism or None, got {self.mechanism!r}")
        self.domain: Domain | None = getattr(oracle, "domain", None)
        if self.domain is not None and not isinstance(self.domain, Domain):
            raise InvalidInput(f"an oracle's domain is a Domain or None, got {self.domain!r}")
        self.log = QueryLog(mechanism=self.mechanism) if record else None
        self.at_limit: list[int] = []  # rows whose answer ends at a limit of the domain
        self.spent = Spent()
        self.confirms = False  # True: the terms are not believed until one more answer confirms them
        self._is_confirming = False
        self._known: dict[tuple[str, bytes], Any] | None = None  # answers that are not asked for a second time
        self._repeats = False
        self.planned: int | None = None
        self.bound: float | None = None
        self._watch = watch
        self.forgiving = False  # True: what is no answer, an exception or an echo too, is None and stops nothing
        self.can_label = offers(oracle, "classify")
        self.can_explain = offers(oracle, "explain")

    @property
    def is_discrete(self) -> bool:
        """True if the service takes one-hot groups or whole numbers only."""
        return self.domain is not None and bool(self.domain.groups or self.domain.integers)

    @property
    def row(self) -> int:
        """The log's last row: the answer that came last. Labels that could not be read have none."""
        return (self.spent.requests if self.log is None else len(self.log)) - 1

    def require(self, count: int, purpose: str, whole: bool = True) -> None:
        """Refuse now, before anything is spent on it, what the budget cannot pay for; `whole`: nothing comes after it."""
        if whole and self._repeats:
            return  # most of it is known: what is not is refused one by one
        if whole:
            self.planned = self.spent.requests + count
        if self._budget is not None and self.spent.requests + count > self._budget:
            left = self._budget - self.spent.requests
            enough = f". A budget of {self.spent.requests + count} is enough" if whole else ""
            raise BudgetExhausted(
                f"{purpose} takes {count} more request{'s' * (count != 1)}, {left} of the budget of {self._budget} "
                f"{'is' if left == 1 else 'are'} left; nothing more was sent{enough}",
                log=self.log,
                needed=count if whole else None,
            )

    def can_pay(self, count: int) -> bool:
        """True if the budget allows so many more requests."""
        return self._budget is None or self.spent.requests + count <= self._budget

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Within the block, a question that was asked in it before gets the same answer, and costs nothing."""
        self._known = {}
        try:
            yield
        finally:
            self._known, self._repeats = None, False

    def repeat(self) -> None:
        """The same work begins again, and most of its answers are remembered."""
        self._repeats = True

    @contextmanager
    def confirming(self) -> Iterator[None]:
        """Within the block, what is asked counts as confirmation."""
        self._is_confirming = True
        try:
            yield
        finally:
            self._is_confirming = False

    def explain(self, x: FloatArray) -> FloatArray | None:
        """The explanation of x, or None if the service has none."""
        if self._known is None:
            return self._explain(x)
        asked = ("explain", x.tobytes())
        if asked not in self._known:
            self._known[asked] = self._explain(x)
        return cast("FloatArray | None", self._known[asked])

    def _explain(self, x: FloatArray) -> FloatArray | None:
        if self.forgiving:
            return self.attempt(x).answer
        self.require(1, "the next explanation", whole=False)
        self._count("explanations")
        try:
            answer = checked_explanation(self._ask(self._oracle.explain, x), self.dimension)
        except BudgetExhausted:
            raise  # refused by a wrapper before it was sent: nothing failed
        except OverexplainError:
            if self.log is not None:
                self.log.add_explanation(x, None, status=Status.FAILED)
            raise
        if self.log is not None:
            self.log.add_explanation(x, answer)
        self._look_for_limits(answer)
        return answer

    def attempt(self, x: FloatArray) -> Reply:
        """The reply of a service that promises nothing: whatever is no point that moved is "no answer", in its own spelling."""
        self.require(1, "the next explanation", whole=False)
        self._count("explanations")
        try:
            raw = self._ask(self._oracle.explain, x)
        except OverexplainError as error:
            if ends_all(error):
                raise
            reply = Reply(None, "exception")
        else:
            reply = _read(raw, x)
        if self.log is not None:
            failed = Status.FAILED if reply.failure in ("exception", "wrong shape", "not numbers") else None
            self.log.add_explanation(x, reply.answer, status=failed)
        self._look_for_limits(reply.answer)
        return reply

    def _look_for_limits(self, answer: FloatArray | None) -> None:
        if answer is None or self.domain is None:
            return
        low, high = self.domain.low, self.domain.high
        terms = self.mechanism
        near: Any = 0.0
        if terms is not None and terms.tolerance:  # rounding may have moved it off the limit again
            near = terms.tolerance / (1.0 if terms.distance is None else terms.distance.units(self.dimension))
        if ((answer <= low + near) | (answer >= high - near)).any():
            self.at_limit.append(self.row)

    def answer(self, x: FloatArray) -> FloatArray:
        """The explanation of x; NoExplanation if the service has none."""
        answer = self.explain(x)
        if answer is None:
            raise NoExplanation(
                f"the service has no explanation for question {self.spent.explanations}, although points on the same "
                "side were explained; the theorems need every question answered"
            )
        return answer

    def label(self, x: FloatArray) -> int:
        """The label of x: +1 or −1."""
        if self._known is None:
            return self._label(x)
        asked = ("label", x.tobytes())
        if asked not in self._known:
            self._known[asked] = self._label(x)
        return int(self._known[asked])

    def _label(self, x: FloatArray) -> int:
        self.require(1, "the next label", whole=False)
        self._count("labels")
        label = checked_label(self._ask(self._oracle.classify, x))
        if self.log is not None:
            self.log.add_label(x, label)
        return label

    def _count(self, kind: str) -> None:
        kind = "confirmation" if self._is_confirming else kind
        self.spent = replace(self.spent, **{kind: getattr(self.spent, kind) + 1})

    def _ask(self, verb: Callable[[FloatArray], Any], x: FloatArray) -> Any:
        question = x.copy()  # an oracle that writes into its input must not change ours
        if self._watch is not None:
            self._watch(Progress(self.spent, self.planned, self.bound))
        return asked(verb, question, number=self.spent.requests)


def ends_all(error: OverexplainError) -> bool:
    """True if later questions would not be answered either: the budget is spent, or the service is gone."""
    return isinstance(error, BudgetExhausted) or (isinstance(error, EndpointFailed) and error.stops)


def _read(raw: Any, x: FloatArray) -> Reply:
    """The reply as a point that differs from x, or what is wrong with it."""
    if raw is None:
        return Reply(None, "None")
    try:
        answer = checked_explanation(raw, len(x))
    except NotFinite:
        return Reply(None, "NaN row" if np.isnan(np.asarray(raw, dtype=np.float64)).any() else "not finite")
    except DimensionMismatch:
        return Reply(None, "wrong shape")
    except InvalidInput:
        return Reply(None, "not numbers")
    if answer is None:
        return Reply(None, "empty" if np.size(raw) == 0 else "NaN row")
    if np.abs(answer).max() > TOO_LARGE:
        return Reply(None, "not finite")
    return Reply(None, "echo") if np.array_equal(answer, x) else Reply(answer)


def _dimension_of(oracle: Oracle) -> int:
    dimension = getattr(oracle, "dimension", None)
    if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 1:
        raise InvalidInput(
            f"an oracle's dimension is its number of features, a positive whole number; got {dimension!r}"
        )
    return int(dimension)
