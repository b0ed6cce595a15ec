"""A log, read once, and what it says: verdicts, and their proofs in the words of the checker."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import CertificateInvalid, InvalidInput, SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.answers import answers_of, written_form
from overexplain.knowledge.certificates import Certificate, Disagreement
from overexplain.knowledge.certificates import Model as ProofModel
from overexplain.knowledge.checker import Answer, Lemma
from overexplain.knowledge.evidence import with_lengths
from overexplain.knowledge.facts import Robust
from overexplain.knowledge.prover.last_resorts import Settlement
from overexplain.knowledge.prover.log_prover import LogProver
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.prover.reduction import Model
from overexplain.knowledge.reader import Reader
from overexplain.knowledge.sides import Sides
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
        self.reader: Reader | None = None
        if log.dimension is not None and len(log):
            before = None if earlier is None else earlier.reader
            self.reader = Reader(log, self.answers, tolerance, robust, before)

    @property
    def prover(self) -> LogProver | None:
        """The prover of the rows that decide."""
        return None if self.reader is None else self.reader.working.prover

    @property
    def sides(self) -> Sides:
        """The labels of the log, completed by what the rows that decide imply."""
        return Sides(np.zeros(0, dtype=np.int8)) if self.reader is None else self.reader.working.sides

    @property
    def has_facts(self) -> bool:
        """Whether rows say anything."""
        return self.reader is not None and self.reader.working.has_facts

    @property
    def is_robust(self) -> bool:
        """Whether some rows are robust."""
        return self.reader is not None and self.reader.working.is_robust

    def codes(self, X: FloatArray, deadline: float | None) -> NDArray[np.int8]:
        """A code for every point; UNDECIDED where a limit was hit."""
        if self.reader is None:
            return np.full(len(X), int(Verdict.UNKNOWN), dtype=np.int8)
        return self.reader.codes(X, deadline)

    def prepared(self) -> Known:
        """The same, with nothing that points taught it: what is found out from here on depends on the log and the points alone."""
        twin = copy.copy(self)
        twin.reader = None if self.reader is None else self.reader.prepared()
        return twin

    def fork(self) -> Known:
        """A copy that learns for itself."""
        twin = copy.copy(self)
        twin.reader = None if self.reader is None else self.reader.fork()
        return twin

    @property
    def oriented(self) -> bool:
        """False if no label says which side is Yes."""
        return self.sides.oriented and bool(self.log.labels[: self.rows].any())

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits every answer is known."""
        return self.reader is None or self.reader.is_consistent

    @property
    def pinned_down(self) -> bool:
        """True if the log leaves a single model, up to the tolerance of its answers."""
        return self.prover is not None and self.prover.pinned_down

    @property
    def centre(self) -> Model | None:
        """A model that fits every answer, if one is known."""
        return None if self.reader is None else self.reader.centre

    def deadline(self) -> float | None:
        """When an exact step that begins now has to stop."""
        return None if self.time_limit is None else time.monotonic() + self.time_limit

    @np.errstate(all="ignore")
    def prove(self, x: FloatArray, verdict: Verdict | None) -> Certificate | Disagreement:
        """The proof of a point's verdict, the first that the checker accepts; SolverFailed if there is none."""
        if self.reader is None:
            return self.proof(x, _of_nothing(x))
        if verdict is not Verdict.UNDECIDED:
            with suppress(OutOfTime, *BEYOND_FLOAT64):
                for found in self.reader.settle(x, None if verdict is None else int(verdict), self.deadline()):
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
