"""Rows whose side the log does not imply: provers of the log with one side or the other, for the models they know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.checker import Answer
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.blocks import blocks_of
from overexplain.knowledge.prover.log_prover import Contradiction, LogProver
from overexplain.knowledge.sides import Labelled, Sides
from overexplain.log.extremes import BEYOND_FLOAT64
from overexplain.log.querylog import QueryLog

MOST = 16
"""So many combinations of sides are tried: all of them for up to four rows."""


def cases_of(
    log: QueryLog,
    rows: IntArray,
    sides: Sides,
    answers: Mapping[int, Answer],
    unsided: Sequence[int],
    tolerance: float | None,
    evidence: Evidence,
    known: FloatArray,
) -> list[LogProver]:
    """Provers of some of the cases of some rows, those that know a model. `known` are models of the rows without the `unsided`
    ones, if any.

    A model that fits a case has answered as the log says: whatever the sides, the row is explained. What is certain in one case
    is certain of the log only if it is in all, and those that are left out are not asked: cases give models, never proofs.
    """
    cases: list[LogProver] = []
    assumed = sides.assumed[0][0] if sides.assumed else None
    for combination in islice(_combinations(log, unsided, known), MOST):
        labels = sides.labels.copy()
        labels[list(unsided)] = combination
        filled = {**sides.filled, **dict(zip(unsided, combination, strict=True))}
        blocks = blocks_of(log, labels, tolerance, answers, rows)
        try:
            case = LogProver(blocks, Labelled(answers, filled, rows), evidence, assumed=assumed)
        except (Contradiction, *BEYOND_FLOAT64):
            continue
        if case.centre is not None:
            cases.append(case)
    return cases


def _combinations(log: QueryLog, unsided: Sequence[int], known: FloatArray) -> Iterator[tuple[int, ...]]:
    """Sides for the rows that have none: all, or for many rows those of a model of the rest, and that with one changed."""
    count = len(unsided)
    if 2**count <= MOST:
        yield from product((YES, NO), repeat=count)
        return
    said = log.points[list(unsided)] @ known[:1, :-1].sum(axis=0) - known[:1, -1].sum()
    sides = np.where(said >= 0, YES, NO)
    yield tuple(sides.tolist())
    yield tuple((-sides).tolist())
    for k in range(count):
        changed = sides.copy()
        changed[k] = -changed[k]
        yield tuple(changed.tolist())
