"""One conversation with a service of several classes: every question is counted, every answer checked and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.extraction.multiclass.result import Asked
from overexplain.extraction.paid import asked
from overexplain.extraction.result import Spent
from overexplain.geometry.arrays import FloatArray, as_budget
from overexplain.geometry.domain import as_count
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.multiclass import MulticlassOracle
from overexplain.oracles.protocol import checked_explanation, offers


class Conversation:
    """Asks a MulticlassOracle within a budget; `asked` holds every answer from the moment it came."""

    def __init__(self, oracle: MulticlassOracle, budget: int | None = None) -> None:
        self._oracle = oracle
        self._budget = None if budget is None else as_budget(budget)
        self.dimension = as_count(getattr(oracle, "dimension", None), "an oracle's dimension")
        self.classes = _classes_of(oracle)
        self.mechanism: Mechanism | None = getattr(oracle, "mechanism", None)
        if self.mechanism is not None and not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(f"an oracle's mechanism is a Mechanism or None, got {self.mechanism!r}")
        self.can_label = offers(oracle, "classify")
        self.can_explain = offers(oracle, "explain")
        self.asked: list[Asked] = []
        self.spent = Spent()

    def label(self, x: FloatArray) -> int:
        """The class of x."""
        self._pay("the next label")
        self.spent = Spent(self.spent.explanations, self.spent.labels + 1)
        label = self._checked_class(self._ask(self._oracle.classify, x.copy()))
        self.asked.append(Asked(x, None, label))
        return label

    def explain(self, x: FloatArray, target: int) -> FloatArray | None:
        """The explanation of x towards the class `target`, or None if the service has none."""
        self._pay("the next explanation")
        self.spent = Spent(self.spent.explanations + 1, self.spent.labels)
        answer = checked_explanation(self._ask(self._oracle.explain, x.copy(), target), self.dimension)
        self.asked.append(Asked(x, target, answer))
        return answer

    def _pay(self, purpose: str) -> None:
        if self._budget is not None and self.spent.requests >= self._budget:
            raise BudgetExhausted(
                f"{purpose} would exceed the budget of {self._budget} (explanations: {self.spent.explanations}, labels: "
                f"{self.spent.labels}); it was not sent",
                log=tuple(self.asked),
            )

    def _ask(self, verb: Callable[..., Any], *question: Any) -> Any:
        return asked(verb, *question, number=self.spent.requests)

    def _checked_class(self, answer: Any) -> int:
        try:
            value = float("nan") if isinstance(answer, bool | np.bool_) else float(answer)
        except Exception:  # whatever the service's own type raises
            value = float("nan")
        if not (value.is_integer() and 0 <= value < self.classes):
            raise InvalidInput(
                f"classify must return a class, a whole number from 0 to {self.classes - 1}, the service returned {answer!r}"
            )
        return int(value)


def _classes_of(oracle: Any) -> int:
    """How many classes the oracle says it has; InvalidInput if that is no number of several."""
    classes = getattr(oracle, "classes", None)
    if classes is None:
        raise InvalidInput(
            f"{type(oracle).__name__} does not say how many `classes` it has: a service of several classes does, e.g. an "
            "ArgmaxOracle; `extract` is for services of Yes and No"
        )
    if isinstance(classes, bool) or not isinstance(classes, int | np.integer) or classes < 2:
        raise InvalidInput(f"an oracle's number of classes must be a whole number, at least 2, got {classes!r}")
    return int(classes)
