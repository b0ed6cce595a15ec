"""Oracles made from oracles by wrapping: they remember, refuse to overspend, publish other terms, or only label."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import BudgetExhausted
from overexplain.geometry.arrays import as_budget
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Status
from overexplain.oracles.protocol import Oracle, checked_explanation
from overexplain.oracles.wrapper import Wrapper


def rows_of(x: ArrayLike) -> int:
    """How many questions `x` is: one for a point, one per row for a batch."""
    return len(np.asarray(x)) if np.ndim(x) == 2 else 1


@final
class Recorded(Wrapper):
    """Passes every question on and appends the answer to `log`.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.geometry.mechanism import Mechanism
    >>> from overexplain.oracles.exact import ModelOracle
    >>> service = Recorded(ModelOracle(Hyperplane([1.0, 0.0], 1.0), Mechanism("l2")))
    >>> _ = service.explain([0.0, 0.0])
    >>> service.log.explanations.tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, oracle: Oracle, log: QueryLog | None = None) -> None:
        super().__init__(oracle)
        self.log = QueryLog(mechanism=oracle.mechanism) if log is None else log

    def classify(self, x: ArrayLike) -> Any:
        """The wrapped oracle's label, now also in the log."""
        question = np.array(x, dtype=np.float64)
        label = self.wrapped.classify(question.copy())  # an oracle that writes into its input must not change the log
        self.log.add_label(question, label)
        return label

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, now also in the log."""
        question = np.array(x, dtype=np.float64)
        try:
            explanation = self.wrapped.explain(question.copy())
        except BudgetExhausted:
            raise  # was not asked
        except Exception:
            self.log.add_explanation(question, None, mechanism=self.wrapped.mechanism, status=Status.FAILED)
            raise
        kept = checked_explanation(explanation, self.dimension) if question.ndim == 1 else explanation
        self.log.add_explanation(question, kept, mechanism=self.wrapped.mechanism)
        return explanation


@final
class Budgeted(Wrapper):
    """Passes at most `budget` questions on (labels and explanations alike; every row of a batch counts).

    A question that would exceed the budget is refused *before* it is sent: BudgetExhausted, with the wrapped oracle's log.
    """

    def __init__(self, oracle: Oracle, budget: int) -> None:
        super().__init__(oracle)
        self.budget = as_budget(budget)
        self.spent = 0

    @property
    def left(self) -> int:
        """How many questions may still be asked."""
        return self.budget - self.spent

    def classify(self, x: ArrayLike) -> Any:
        """The wrapped oracle's label, if the budget allows."""
        self._spend(rows_of(x))
        return self.wrapped.classify(x)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, if the budget allows."""
        self._spend(rows_of(x))
        return self.wrapped.explain(x)

    def _spend(self, count: int) -> None:
        if count > self.left:
            raise BudgetExhausted(
                f"{count} more request{'s' * (count != 1)} would exceed the budget of {self.budget} "
                f"({self.spent} spent, {self.left} left); not sent",
                log=getattr(self.wrapped, "log", None),
            )
        self.spent += count  # before the answer: a request that fails was sent all the same


@final
class Published(Wrapper):
    """The wrapped oracle under other terms: what a service documents need not be what it does.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> silent = Published(ModelOracle(Hyperplane([1.0, 0.0], 1.0), "l2"), Mechanism(None, slack=None))
    >>> silent.mechanism.describe()
    'unknown distance'
    """

    def __init__(self, oracle: Oracle, mechanism: Mechanism) -> None:
        super().__init__(oracle, mechanism)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation."""
        return self.wrapped.explain(x)


@final
class LabelsOnly(Wrapper):
    """The wrapped oracle's labels, and nothing else."""

    @property
    def mechanism(self) -> None:
        """None: nothing is explained."""
        return None
