"""A live service asked until its model is known, within a budget, every answer kept in a run: stopped anywhere, it goes on."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np

from overexplain.errors import BudgetExhausted, EndpointFailed, InvalidInput
from overexplain.extraction.extract import DEFAULT_ANGLE, STRATEGIES, extract
from overexplain.extraction.predicted import Prediction, predict
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Progress
from overexplain.log.store.run import Run, Sent
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.kept import Kept
from overexplain.oracles.protocol import offers


@dataclass(frozen=True)
class Plan:
    """What a run does: asked again with the same plan, seed and answers, it asks the same questions.

    endpoint    the settings of the endpoint, without any secret: credentials are named, their values are the environment's
    made_with   versions, which may explain why a resumed run asks something else
    confirm     as for `extract`; a run that was begun without it goes on without it
    """

    endpoint: dict[str, Any]
    strategy: str
    accuracy: float | None
    orient: bool
    seed: int
    made_with: dict[str, str]
    confirm: int = 0

    @classmethod
    def of(
        cls,
        endpoint: Mapping[str, Any],
        strategy: str,
        accuracy: float | None,
        orient: bool,
        seed: int,
        confirm: int = 1,
    ) -> Plan:
        """The plan for an endpoint, with the versions at work here."""
        made_with = {"python": platform.python_version(), "numpy": np.__version__}
        return cls(dict(endpoint), strategy, accuracy, orient, seed, made_with, confirm)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entries: Any) -> Plan:
        """The plan that `to_dict` wrote; anything else is refused."""
        try:
            plan = msgspec.convert(entries, cls)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the run's plan cannot be read: {error}") from None
        if plan.confirm not in (0, 1):
            raise InvalidInput(f"the run's plan confirms with {plan.confirm} answers; known are 0 and 1")
        if plan.strategy not in STRATEGIES or plan.seed < 0:
            raise InvalidInput(f"the run's plan has no strategy or seed that is known: {plan.strategy!r}, {plan.seed}")
        return plan


@dataclass(frozen=True)
class Probed:
    """A model rebuilt from a live service, and what that took.

    requests    sent in all, as the service may have counted them; `budget` was the limit
    retries     of these brought nothing and were sent again
    lost        of these were sent, but no answer was kept: the run was stopped in between
    idempotent  requests for one question count once together
    """

    found: Extraction
    run: str
    budget: int
    requests: int
    retries: int
    lost: tuple[Sent, ...]
    idempotent: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form."""
        return {
            "run_id": self.run,
            "budget": self.budget,
            "requests": self.requests,
            "retries": self.retries,
            "lost": [{"number": sent.number, "verb": sent.verb, "time": sent.time} for sent in self.lost],
            **self.found.to_dict(),
        }


def predicted(oracle: HttpOracle, plan: Plan) -> Prediction:
    """What the run will spend, before anything is asked.

    Strategies other than "auto" are chosen by people who know theirs: the prediction is what "auto" would do.
    """
    accuracy = DEFAULT_ANGLE if plan.accuracy is None else plan.accuracy
    mechanism = oracle.mechanism if offers(oracle, "explain") and not plan.strategy.startswith("labels") else None
    return predict(
        oracle.dimension,
        mechanism,
        accuracy,
        labels=offers(oracle, "classify"),
        orient=plan.orient,
        domain=oracle.domain,
        confirm=bool(plan.confirm),
    )


def probe(oracle: HttpOracle, run: Run, plan: Plan, watch: Callable[[Progress], None] | None = None) -> Probed:
    """The model behind a live service: what the run holds is not asked again, what is asked is kept before it is used."""
    oracle.sent_at(run.last_sent or 0.0)  # a rate limit and a Retry-After outlive the process that met them
    oracle.pause_until(run.not_before)
    # The session counts questions, the run requests: those that brought nothing are spent, but answered no question.
    fruitless = 0 if run.idempotent else run.spent - run.answered
    try:
        found = extract(
            Kept(oracle, run),
            strategy=plan.strategy,
            accuracy=plan.accuracy,
            start=oracle.settings.first,
            orient=plan.orient,
            budget=max(0, run.budget - fruitless),
            rng=plan.seed,
            watch=watch,
            confirm=plan.confirm,
        )
    except BudgetExhausted as error:
        more = error.needed or 0
        needed = f", {more} more needed (--budget {run.spent + more})" if more else ""
        raise BudgetExhausted(
            f"a budget of {run.budget} is not enough: {run.spent} spent{needed}; nothing more was sent",
            log=error.log,
            needed=error.needed,
        ) from None
    except EndpointFailed as error:
        if isinstance(error.__cause__, OSError | InvalidInput):
            raise error.__cause__ from None  # not the service failed, but the disk
        raise
    lost = () if run.idempotent else run.unanswered  # those of an idempotent service were sent again
    return Probed(found, run.id, run.budget, run.spent, run.retries, lost, run.idempotent)
