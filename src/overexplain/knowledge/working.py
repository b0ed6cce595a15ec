"""What some rows of a log say: their sides, and the prover of their facts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import final

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.norm import Norm
from overexplain.knowledge.cases import cases_of
from overexplain.knowledge.checker import Answer
from overexplain.knowledge.conflict import raise_conflict
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.facts import Robust, Secret
from overexplain.knowledge.prover.all_rows import Shown
from overexplain.knowledge.prover.blocks import Block, blocks_of, no_rows
from overexplain.knowledge.prover.contradictions import contradiction_of
from overexplain.knowledge.prover.log_prover import Contradiction, LogProver
from overexplain.knowledge.sides import Labelled, Sides, find_sides
from overexplain.log.extremes import BEYOND_FLOAT64
from overexplain.log.querylog import QueryLog


@final
class Working:
    """Rows of a log, ascending, and what they say; raises InconsistentLog if no model fits them.

    `earlier` is what fewer rows said; `prover` their prover, if the others add nothing to it. `is_doubted`: a contradiction is
    looked for if no model is found.
    """

    def __init__(
        self,
        log: QueryLog,
        rows: IntArray,
        answers: Mapping[int, Answer],
        tolerance: float | None,
        robust: Robust,
        earlier: Working | None = None,
        prover: LogProver | None = None,
        *,
        is_doubted: bool = True,
    ) -> None:
        self._log, self.rows, self._answers, self._tolerance, self._robust = log, rows, answers, tolerance, robust
        self._is_doubted = is_doubted
        before = None if earlier is None else earlier.sides
        self.sides: Sides = find_sides(log, rows, answers, tolerance, Finder(), before)
        self.numbers: dict[Norm | Secret, int] = {}
        """The lengths that its facts are about."""
        blocks = blocks_of(log, self.sides.labels, tolerance, answers, rows, self.numbers)
        unlabelled = rows[self.sides.labels[rows] == 0]
        self.unsided = [row for row in unlabelled.tolist() if answers[row].is_used]
        """Rows whose explanation could be used if their side were known."""
        self.is_robust = any(block.is_robust for block in blocks)
        self.has_facts = bool(blocks or self.unsided)
        self.prover: LogProver = prover or self._make_prover(
            blocks or [no_rows(log.points.shape[1])], None if earlier is None else earlier.prover.known
        )
        self.ties = self.prover.ties

    @property
    def centre(self) -> Shown | None:
        """A model that fits the rows, if one is known."""
        found = self.prover.first
        return None if found is None else Shown.of(found, self.ties)

    def _make_prover(self, blocks: Sequence[Block], hint: FloatArray | None) -> LogProver:
        """The prover of the rows; `hint`: models that may fit them."""
        answers = Labelled(self._answers, self.sides.filled, self.rows)
        assumed = self.sides.assumed[0][0] if self.sides.assumed else None
        prover = None
        with suppress(Contradiction, np.linalg.LinAlgError, *BEYOND_FLOAT64):
            prover = LogProver(blocks, answers, Finder(), hint, assumed=assumed, level=self._robust)
        if prover is None or (self._is_doubted and not prover.is_consistent):
            found = None
            with suppress(*BEYOND_FLOAT64):
                found = contradiction_of(blocks, answers, Finder(), swapped=assumed is not None)
            if found is not None:
                raise_conflict(self._log, *found, self.sides, self._tolerance)
        if prover is None:  # nothing that could be proved or shown: models of no rows are held to all of them
            return LogProver([no_rows(blocks[0].points.shape[1])], answers, Finder(), assumed=assumed).with_cases(())
        if self.unsided:
            cases = cases_of(
                self._log, self.rows, self.sides, self._answers, self.unsided, self._tolerance, Finder(), prover.known[:1]
            )  # fmt: skip
            return prover.with_cases(cases)
        return prover

    def fork(self) -> Working:
        """A copy that learns for itself."""
        return self._with(self.prover.fork())

    def prepared(self) -> Working:
        """A copy with nothing that points taught it."""
        return self._with(self.prover.prepared())

    def after(self, log: QueryLog, answers: Mapping[int, Answer]) -> Working:
        """The same rows of a log that has grown."""
        twin = copy.copy(self)
        labels = np.append(self.sides.labels, log.labels[len(self.sides.labels) :])
        twin._log, twin._answers, twin.sides = log, answers, replace(self.sides, labels=labels)
        return twin

    def _with(self, prover: LogProver) -> Working:
        twin = copy.copy(self)
        twin.prover = prover
        return twin
