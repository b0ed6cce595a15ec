"""A log, read once: its sides, its facts, the fast region, and the exact step that is made when first needed."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import CertificateInvalid, InvalidInput, SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.answers import answers_of, written_form
from overexplain.knowledge.cases import cases_of
from overexplain.knowledge.certificates import Certificate, Disagreement
from overexplain.knowledge.certificates import Model as ProofModel
from overexplain.knowledge.checker import Answer, Lemma
from overexplain.knowledge.conflict import raise_conflict
from overexplain.knowledge.evidence import Finder, with_lengths
from overexplain.knowledge.facts import Robust
from overexplain.knowledge.prover.blocks import Block, blocks_of, no_rows
from overexplain.knowledge.prover.contradictions import contradiction_of
from overexplain.knowledge.prover.last_resorts import Settlement
from overexplain.knowledge.prover.log_prover import Contradiction, LogProver
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.prover.reduction import Model
from overexplain.knowledge.sides import Labelled, Sides, find_sides
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.extremes import BEYOND_FLOAT64, refuse_extreme
from overexplain.log.querylog import QueryLog


@final
class Known:
    """What a log says; it raises InconsistentLog if no model fits. `earlier` is what was known before rows were added."""

    def __init__(
        self,
        log: QueryLog,
        tolerance: float | None,
        time_limit: float | None = None,
        robust: Robust = "exact",
        earlier: Known | None = None,
    ) -> None:
        self.log, self.tolerance, self.time_limit, self.rows = log, tolerance, time_limit, len(log)
        self.robust: Robust = robust
        refuse_extreme(log)
        self.answers: Mapping[int, Answer] = answers_of(log, tolerance)
        for terms in log.mechanisms:  # a norm of the user's own is refused by name, before anything is said
            written_form(terms.distance)
            written_form(terms.robustness)
        self.prover: LogProver | None = None
        self.has_facts = self.is_robust = False
        """Whether rows say anything, and whether some are robust."""
        if log.dimension is None or not len(log):
            self.sides = Sides(np.zeros(0, dtype=np.int8))
            return
        self.sides = find_sides(log, self.answers, tolerance, Finder(), None if earlier is None else earlier.sides)
        blocks = blocks_of(log, self.sides.labels, tolerance, self.answers)
        self.is_robust = any(block.is_robust for block in blocks)
        self.has_facts = bool(blocks or self.unsided)
        if earlier is not None and earlier.prover is not None and self._adds_nothing(earlier):
            self.prover = earlier.prover
        else:
            self.prover = self._make_prover(blocks or [no_rows(log.dimension)])

    def _make_prover(self, blocks: Sequence[Block]) -> LogProver:
        """The prover of the log; raises InconsistentLog if no model fits it."""
        answers = Labelled(self.answers, self.sides.filled)
        assumed = self.sides.assumed[0][0] if self.sides.assumed else None
        prover = None
        with suppress(Contradiction, np.linalg.LinAlgError, *BEYOND_FLOAT64):
            prover = LogProver(blocks, answers, Finder(), assumed=assumed, level=self.robust)
        if prover is None or not prover.is_consistent:
            found = None
            with suppress(*BEYOND_FLOAT64):
                found = contradiction_of(blocks, answers, Finder(), swapped=assumed is not None)
            if found is not None:
                raise_conflict(self.log, found, self.sides, self.tolerance)
        if prover is None:  # nothing that could be proved or shown: models of no rows are held to all of them
            return LogProver([no_rows(blocks[0].points.shape[1])], answers, Finder(), assumed=assumed).with_cases(())
        if self.unsided:
            cases = cases_of(
                self.log, self.sides, self.answers, self.unsided, self.tolerance, Finder(), prover.known[:1]
            )  # fmt: skip
            return prover.with_cases(cases)
        return prover

    @cached_property
    def unsided(self) -> list[int]:
        """Rows whose explanation could be used if their side were known."""
        labels = self.sides.labels
        return [int(row) for row in self.log.explained if not labels[row] and self.answers[int(row)].is_used]

    def codes(self, X: FloatArray, deadline: float | None) -> NDArray[np.int8]:
        """A code for every point; UNDECIDED where a limit was hit."""
        if self.prover is None:
            return np.full(len(X), int(Verdict.UNKNOWN), dtype=np.int8)
        return self.prover.codes(X, deadline)

    def prepared(self) -> Known:
        """The same, with nothing that points taught it: what is found out from here on depends on the log and the points alone."""
        twin = self.fork()
        twin.prover = None if self.prover is None else self.prover.prepared()
        return twin

    def fork(self) -> Known:
        """A copy that learns for itself."""
        twin = copy.copy(self)
        twin.prover = None if self.prover is None else self.prover.fork()
        return twin

    def _adds_nothing(self, earlier: Known) -> bool:
        """True if the rows added are labels that were certain already: the cone stays as it is."""
        new = slice(earlier.rows, len(self.log))
        if len(self.log.explained) != len(earlier.log.explained) or not self.log.labels[new].all():
            return False
        return bool(np.array_equal(earlier.codes(np.array(self.log.points[new]), None), self.log.labels[new]))

    @property
    def oriented(self) -> bool:
        """False if no label says which side is Yes."""
        return self.sides.oriented and bool(self.log.labels[: self.rows].any())

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits every answer is known."""
        return self.prover is None or self.prover.is_consistent

    @property
    def pinned_down(self) -> bool:
        """True if the log leaves a single model, up to the tolerance of its answers."""
        return self.prover is not None and self.prover.pinned_down

    @property
    def centre(self) -> Model | None:
        """A model that fits every answer, if one is known."""
        return None if self.prover is None else self.prover.centre

    def deadline(self) -> float | None:
        """When an exact step that begins now has to stop."""
        return None if self.time_limit is None else time.monotonic() + self.time_limit

    @np.errstate(all="ignore")
    def prove(self, x: FloatArray, verdict: Verdict | None) -> Certificate | Disagreement:
        """The proof of a point's verdict, the first that the checker accepts; SolverFailed if there is none."""
        if self.prover is None:
            return self.proof(x, _of_nothing(x))
        if verdict is not Verdict.UNDECIDED:
            with suppress(OutOfTime, *BEYOND_FLOAT64):
                for found in self.prover.settle(x, None if verdict is None else int(verdict), self.deadline()):
                    if verdict is None or found.code == verdict:
                        with suppress(CertificateInvalid):
                            return self.proof(x, found)
        if verdict is None or verdict is Verdict.UNDECIDED:
            raise SolverFailed("no proof was found: the point is undecided")
        raise SolverFailed(f"no proof of {verdict.name} was found")

    def interval(self, x: FloatArray) -> tuple[float, float]:
        """How far a point may lie from the plane, on either side."""
        if not self.is_robust or self.prover is None:
            raise InvalidInput(
                "an interval is for points under robust counterfactuals; other verdicts are decided without one"
            )
        return self.prover.interval(x)

    def proof(self, x: FloatArray, settled: Settlement) -> Certificate | Disagreement:
        """What settled a point, as an object that anyone can check; it has been checked."""
        proof: Certificate | Disagreement
        if settled.models is not None:
            yes, no = (ProofModel(tuple(m[0]), m[1]) for m in settled.models)
            proof = Disagreement(tuple(x.tolist()), yes, no, self.sides.assumed, self.tolerance)
        else:
            rows = {term.row for term in (*settled.terms, *settled.reverse)}
            if settled.branches is not None:
                rows |= settled.branches.rows
            proof = Certificate.about(
                self.log, x, Verdict(settled.code), settled.terms, reverse=settled.reverse,
                lemmas=self._lemmas(rows), assumed=self.sides.assumed, tolerance=self.tolerance,
                branches=settled.branches,
            )  # fmt: skip
        return with_lengths(self.answers, proof)

    def _lemmas(self, rows: set[int | None]) -> list[Lemma]:
        """The lemmas that some rows rest on, in order."""
        needed = set(rows)
        for lemma in reversed(self.sides.lemmas):
            if lemma.row in needed:
                needed |= {term.row for term in lemma.terms}
        return [lemma for lemma in self.sides.lemmas if lemma.row in needed]


def _of_nothing(x: FloatArray) -> Settlement:
    """Two models that a log without answers leaves, as it does all others."""
    normal = [Fraction(int(i == 0)) for i in range(len(x))]
    level = Fraction(float(x[0]))
    return Settlement(Verdict.UNKNOWN, models=((normal, level), (normal, level + 1)))
