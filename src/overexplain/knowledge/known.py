"""A log, read once: its sides, its facts, the fast region, and the exact step that is made when first needed."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import CertificateInvalid, InvalidInput, SolverFailed
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.answers import answers_of, written_form
from overexplain.knowledge.cases import cases_of
from overexplain.knowledge.certificates import Certificate, Disagreement
from overexplain.knowledge.certificates import Model as ProofModel
from overexplain.knowledge.checker import Answer, Lemma
from overexplain.knowledge.conflict import raise_by_cases, raise_conflict, raise_terms
from overexplain.knowledge.evidence import Finder, with_lengths
from overexplain.knowledge.facts import LEVELS, Facts, Robust, no_facts, read_facts
from overexplain.knowledge.prover.blocks import Block, blocks_of, no_rows
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.contradictions import contradiction_of
from overexplain.knowledge.prover.log_prover import Contradiction, LogProver
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.robust import RobustSettler
from overexplain.knowledge.settle import UNDECIDED, Settled
from overexplain.knowledge.sides import Labelled, Sides, find_sides
from overexplain.knowledge.smooth import OPEN
from overexplain.knowledge.ties import Model
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.extremes import BEYOND_FLOAT64, refuse_extreme
from overexplain.log.querylog import QueryLog

PATIENCE = 60.0
"""Seconds that the search for a model or a contradiction may take if no time limit is set."""

UNPROVED = "no proof was found: the point is undecided"


@final
class Known:
    """What a log says; it raises InconsistentLog if no model fits. `earlier` is what was known before rows were added."""

    def __init__(
        self,
        log: QueryLog,
        tolerance: float | None,
        time_limit: float | None = None,
        robust: Robust = "shared",
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
        self._lock = threading.RLock()
        self._settler: RobustSettler | None = None
        self.has_facts = self.is_robust = False
        """Whether rows say anything; and whether some are robust: what the prover leaves open, the exact step is asked."""
        if log.dimension is None or not len(log):
            self.sides = Sides(np.zeros(0, dtype=np.int8))
            return
        self.sides = find_sides(log, self.answers, tolerance, Finder(), None if earlier is None else earlier.sides)
        blocks = blocks_of(log, self.sides.labels, tolerance, self.answers)
        if blocks is None or any(block.is_robust for block in blocks):
            self._read_robust(blocks, earlier)
            return
        self.has_facts = bool(blocks or self.unsided)
        if earlier is not None and earlier.prover is not None and self._adds_nothing(earlier):
            self.prover = earlier.prover
        else:
            self.prover = self._make_prover(blocks or [no_rows(log.dimension)])

    def _read_robust(self, blocks: Sequence[Block] | None, earlier: Known | None) -> None:
        """The prover of a log with robust rows, where it sees a model of all that they say; else the exact step has to."""
        self.has_facts = self.is_robust = True
        if blocks is not None and not self.unsided:
            if earlier is not None and earlier.prover is not None and self._adds_nothing(earlier):
                self.prover = earlier.prover
                return
            assumed = self.sides.assumed[0][0] if self.sides.assumed else None
            with suppress(Contradiction, NoInterior, np.linalg.LinAlgError, *BEYOND_FLOAT64):
                answers = Labelled(self.answers, self.sides.filled)
                self.prover = LogProver(blocks, answers, Finder(), assumed=assumed, level=self.robust)
        if self.prover is None or not self.prover.is_consistent:
            self.settler()

    def _make_prover(self, blocks: Sequence[Block]) -> LogProver:
        """The prover of a log of labels and plain explanations; raises InconsistentLog if no model fits them."""
        answers = Labelled(self.answers, self.sides.filled)
        assumed = self.sides.assumed[0][0] if self.sides.assumed else None
        prover = None
        with suppress(Contradiction, np.linalg.LinAlgError, *BEYOND_FLOAT64):
            prover = LogProver(blocks, answers, Finder(), assumed=assumed)
        if prover is None or not prover.is_consistent:
            terms = None
            with suppress(*BEYOND_FLOAT64):
                terms = contradiction_of(blocks, answers, Finder(), swapped=assumed is not None)
            if terms is not None:
                raise_terms(self.log, terms, self.sides, self.tolerance)
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

    @cached_property
    def facts(self) -> Facts:
        """The facts of the log, as the exact step knows them."""
        if self.log.dimension is None or not self.rows:
            return no_facts(self.log.dimension or 0)
        return read_facts(self.log, self.log.dimension, self.sides.labels, self.tolerance, self.robust)

    def codes(self, X: FloatArray, deadline: float | None) -> NDArray[np.int8]:
        """A code for every point; OPEN is left to the exact step."""
        if self.prover is None:
            return np.full(len(X), OPEN, dtype=np.int8)
        return self.prover.codes(X, deadline)

    def prepared(self) -> Known:
        """The same, with nothing that points taught it: what is found out from here on depends on the log and the points alone."""
        twin = self.fork()
        twin.prover = None if self.prover is None else self.prover.prepared()
        return twin

    def fork(self) -> Known:
        """A copy that learns for itself; its exact step starts anew, because solvers remember what they were asked."""
        twin = copy.copy(self)
        twin._settler = None
        twin.prover = None if self.prover is None else self.prover.fork()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_settler")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock(), _settler=None)

    def _adds_nothing(self, earlier: Known) -> bool:
        """True if the rows added are labels that were certain already: the cone stays as it is."""
        new = slice(earlier.rows, len(self.log))
        if len(self.log.explained) != len(earlier.log.explained) or not self.log.labels[new].all():
            return False
        return bool(np.array_equal(earlier.codes(np.array(self.log.points[new]), None), self.log.labels[new]))

    def settler(self) -> RobustSettler:
        """The exact step; raises if no model fits the log."""
        with self._lock:
            if self._settler is None:
                self._settler = self._make_settler()
            return self._settler

    def _make_settler(self) -> RobustSettler:
        answers, evidence = Labelled(self.answers, self.sides.filled), Finder()
        assert self.log.dimension is not None
        whole = self.facts
        if self.robust in ("paper", "perspective"):
            whole = read_facts(self.log, self.log.dimension, self.sides.labels, self.tolerance)
        deadline = time.monotonic() + (self.time_limit or PATIENCE)
        less = LEVELS[: LEVELS.index(self.robust)][:2][::-1]
        weaker = [read_facts(self.log, self.log.dimension, self.sides.labels, self.tolerance, level) for level in less]
        by_cases = self.robust == "exact"
        settler = RobustSettler(answers, self.facts, whole, evidence, deadline, by_cases, weaker, self._relative_to)
        centre = None if self.prover is None else self.prover.centre
        if not settler.find_centre(centre):
            raise_conflict(self.log, whole, answers, self.sides, self.tolerance)
            branches = settler.look_further()
            if branches is not None:
                raise_by_cases(self.log, branches, self.sides, self.tolerance)
        return settler

    @property
    def _relative_to(self) -> tuple[Fraction, ...] | None:
        """The point that is taken to be Yes, if the log does not say which side is."""
        return self.answers[self.sides.assumed[0][0]].point if self.sides.assumed else None

    @property
    def oriented(self) -> bool:
        """False if no label says which side is Yes."""
        return self.sides.oriented and bool(self.log.labels[: self.rows].any())

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits every answer is known."""
        if not self.has_facts:
            return True
        if self.prover is not None and (self.prover.is_consistent or not self.is_robust):
            return self.prover.is_consistent
        return self.settler().centre is not None

    @property
    def pinned_down(self) -> bool:
        """True if the log leaves a single model, up to the tolerance of its answers."""
        if self.prover is not None:
            return self.prover.pinned_down
        if not self.has_facts:
            return False
        return bool(self.settler().core.basis.shape[1] == 1) and not self.facts.is_linear

    @property
    def centre(self) -> Model | None:
        """A model that fits every answer, if one is known."""
        if self.prover is not None and (self.prover.is_consistent or not self.is_robust):
            return self.prover.centre
        return self.settler().centre if self.has_facts else None

    def deadline(self) -> float | None:
        """When an exact step that begins now has to stop."""
        return None if self.time_limit is None else time.monotonic() + self.time_limit

    @np.errstate(all="ignore")
    def prove(self, x: FloatArray, verdict: Verdict | None) -> Certificate | Disagreement:
        """The proof of a point's verdict; SolverFailed if there is none."""
        if self.prover is not None and self.has_facts:
            written = self._by_prover(self.prover, x, verdict)
            if written is not None:
                return written
            if not self.is_robust:
                raise SolverFailed(
                    UNPROVED
                    if verdict is None or verdict is Verdict.UNDECIDED
                    else f"no proof of {verdict.name} was found"
                )
        settled = self._trivial(x)
        if settled is None:
            settler = self.settler()
            settler.limit(self.deadline())
            try:
                settled = settler.settle(x)
            except BEYOND_FLOAT64:
                settled = UNDECIDED
        if settled.verdict is Verdict.UNDECIDED or (verdict is not None and settled.verdict != verdict):
            raise SolverFailed(
                UNPROVED
                if verdict in (None, Verdict.UNDECIDED)
                else f"no proof of {verdict.name} was found; the exact step says {settled.verdict.name}"
            )
        try:
            return self.proof(x, settled)
        except CertificateInvalid as error:
            raise SolverFailed(
                f"the proof that was found cannot be written so that everyone can check it: {error}"
            ) from None

    def _by_prover(
        self, prover: LogProver, x: FloatArray, verdict: Verdict | None
    ) -> Certificate | Disagreement | None:
        """The first proof of the prover's that the checker accepts."""
        if verdict is Verdict.UNDECIDED:
            return None
        try:
            for found in prover.settle(x, None if verdict is None else int(verdict), self.deadline()):
                if verdict is not None and found.code != verdict:
                    continue
                yes, no = found.models or (None, None)
                try:
                    return self.proof(
                        x,
                        Settled(
                            Verdict(found.code), found.terms, found.reverse, yes=yes, no=no, branches=found.branches
                        ),
                    )
                except CertificateInvalid:
                    continue
        except (OutOfTime, *BEYOND_FLOAT64):
            pass
        return None

    def _trivial(self, x: FloatArray) -> Settled | None:
        """Two models that a log without answers leaves, as it does all others."""
        if self.has_facts:
            return None
        normal = [Fraction(int(i == 0)) for i in range(len(x))]
        level = Fraction(float(x[0]))
        return Settled(Verdict.UNKNOWN, yes=(normal, level), no=(normal, level + 1))

    def interval(self, x: FloatArray) -> tuple[float, float]:
        """How far a point may lie from the plane, on either side."""
        if not self.is_robust:
            raise InvalidInput(
                "an interval is for points under robust counterfactuals; other verdicts are decided without one"
            )
        return self.settler().interval(x)

    def proof(self, x: FloatArray, settled: Settled) -> Certificate | Disagreement:
        """What settled a point, as an object that anyone can check; it has been checked."""
        proof: Certificate | Disagreement
        if settled.yes is not None and settled.no is not None:
            yes, no = (ProofModel(tuple(m[0]), m[1]) for m in (settled.yes, settled.no))
            proof = Disagreement(tuple(x.tolist()), yes, no, self.sides.assumed, self.tolerance)
        else:
            rows = {term.row for term in (*settled.terms, *settled.reverse)}
            if settled.branches is not None:
                rows |= settled.branches.rows
            proof = Certificate.about(
                self.log, x, settled.verdict, settled.terms, reverse=settled.reverse,
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
