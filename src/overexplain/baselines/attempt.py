"""One run of a published attack: what it is given, and how its plane becomes an `Extraction`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput, NoExplanation
from overexplain.extraction.box import Where
from overexplain.extraction.imperfect import in_unit_of
from overexplain.extraction.job import begin
from overexplain.extraction.paid import as_accuracy, nothing_lost
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray, as_generator
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.scores import ScoreOracle

AnyOracle = Oracle | ScoreOracle
Rng = int | np.random.Generator | None

KEPT = 1e-9
"""A point keeps to a one-hot group if its entries there add up to 1 within this."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """Whom to ask, where, and how often. `accuracy`: the angle (radians) at which one may stop; None: the budget alone decides.

    `budget`: None if the caller leaves it to the attack.
    """

    session: Session
    start: FloatArray
    where: Where
    rng: np.random.Generator
    accuracy: float | None
    orient: bool
    budget: int | None

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.session.dimension

    def limit(self, usual: int) -> int:
        """The number of requests to use up: the budget, or what is usual."""
        return usual if self.budget is None else self.budget

    def need_labels(self, attack: str) -> None:
        """Refuse a service without `classify`."""
        if not self.session.can_label:
            raise InvalidInput(f"{attack} trains on labels, and this service gives none (no `classify`)")

    def need_explanations(self, attack: str) -> None:
        """Refuse a service without `explain`."""
        if not self.session.can_explain:
            raise NoExplanation(
                f'{attack} trains on explanations, and this service gives none (no `explain`): use "retraining" for labels'
            )

    def result(
        self, plane: Hyperplane, points: FloatArray, method: str, assumptions: tuple[str, ...], oriented: bool = True
    ) -> Extraction:
        """The plane, learned from `points`, as an Extraction that claims nothing about its error."""
        return Extraction(
            hyperplane=plane,
            spent=self.session.spent,
            log=self.session.log,
            method=method,
            assumptions=assumptions,
            exact=False,
            error_bound=None,
            offset_bound=None,
            oriented=oriented,
            radius=None,
            radius_bound=None,
            unidentified=self.hidden(points),
        )

    def hidden(self, points: FloatArray) -> FloatArray:
        """Directions that these points cannot show (rows): the same added to all weights of a one-hot group, if they keep to it."""
        domain = self.session.domain
        groups = [
            group
            for group in (() if domain is None else domain.groups)
            if np.abs(points[:, list(group)].sum(axis=1) - 1).max(initial=0.0) <= KEPT
        ]
        rows = np.zeros((len(groups), self.dimension))
        for row, group in zip(rows, groups, strict=True):
            row[list(group)] = 1 / np.sqrt(len(group))
        return rows


def attempted(
    run: Callable[[Attempt], Extraction],
    oracle: AnyOracle,
    accuracy: float | None,
    start: ArrayLike | None,
    bounds: Any,
    orient: bool,
    budget: int | None,
    rng: Rng,
    record: bool,
) -> Extraction:
    """What `run` finds, scaled like `extract`'s results. Whatever goes wrong, the error's `.log` has every answer that came."""
    from threadpoolctl import threadpool_limits

    wanted = as_accuracy(accuracy)
    generator = as_generator(rng)
    session = Session(cast(Oracle, oracle), budget, record)
    if session.mechanism is not None:
        session.mechanism.fits(session.dimension)
    origin, where = begin(session, start, bounds, generator)
    attempt = Attempt(session, origin, where, generator, wanted, orient, None if budget is None else int(budget))
    # One thread: these matrices are small, and a seed gives the same digits on every machine of the kind.
    with nothing_lost(lambda: session.log), threadpool_limits(1, user_api="blas"):
        found = run(attempt)
        return in_unit_of(None if session.mechanism is None else session.mechanism.distance, found)
