"""Rows whose side the log does not imply: models are looked for on either side, certificates only where no side is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice, product
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.checker import Answer
from overexplain.knowledge.conflict import settler_of
from overexplain.knowledge.enclosures import Evidence, Vector
from overexplain.knowledge.facts import Facts, read_facts
from overexplain.knowledge.settle import Settled, Settler
from overexplain.knowledge.sides import Labelled
from overexplain.knowledge.ties import Model, says
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog

MOST = 16
"""So many combinations of sides are tried: all of them for up to four rows."""


@final
class CaseSettler:
    """Settles points like a `Settler`, with models of every case."""

    def __init__(
        self,
        log: QueryLog,
        facts: Facts,
        labels: NDArray[np.int8],
        answers: Mapping[int, Answer],
        filled: Mapping[int, int],
        tolerance: float | None,
        evidence: Evidence,
        relative_to: Vector | None = None,
    ) -> None:
        self.base = settler_of(facts, Labelled(answers, filled), evidence, None, relative_to)
        self.cases: list[Settler] = []
        for sides in islice(_combinations(facts, log, self.base), MOST):
            tried = labels.copy()
            tried[list(facts.unsided)] = sides
            case = settler_of(
                read_facts(log, facts.dimension, tried, tolerance),
                Labelled(answers, {**filled, **dict(zip(facts.unsided, map(int, sides), strict=True))}),
                evidence,
                None,
                relative_to,
            )
            if case.find_centre(None):
                self.cases.append(case)
        if self.cases:
            self.base.centre = self.cases[0].centre

    @property
    def centre(self) -> Model | None:
        """A model that fits every answer."""
        return self.base.centre

    def limit(self, deadline: float | None) -> None:
        """Stop at this time."""
        for settler in (self.base, *self.cases):
            settler.limit(deadline)

    def settle(self, x: FloatArray, suggest: bool = True) -> Settled:
        """The verdict on a point and its proof."""
        settled = self.base.settle(x, suggest)
        if settled.verdict is not Verdict.UNDECIDED:
            return settled
        yes: Model | None = None
        no: Model | None = None
        point = [Fraction(float(v)) for v in x]
        for case in self.cases:
            found = case.settle(x)
            for model in (found.yes, found.no, case.centre):
                if model is not None and not (found.is_turned and model is found.no):
                    said = says(model, point)
                    yes, no = (model, no) if said >= 0 else (yes, model)
            if yes is not None and no is not None:
                return Settled(Verdict.UNKNOWN, yes=yes, no=no)
        return settled


def _combinations(facts: Facts, log: QueryLog, base: Settler) -> Iterator[tuple[int, ...]]:
    """Sides for the rows that have none: all, or for many rows those of a model of the rest, and that with one changed."""
    count = len(facts.unsided)
    if 2**count <= MOST:
        yield from product((YES, NO), repeat=count)
        return
    model, _ = base.program.middle()
    said = log.points[list(facts.unsided)] @ model[:-1] - model[-1]
    sides = np.where(said >= 0, YES, NO)
    yield tuple(sides.tolist())
    yield tuple((-sides).tolist())
    for k in range(count):
        changed = sides.copy()
        changed[k] = -changed[k]
        yield tuple(changed.tolist())
