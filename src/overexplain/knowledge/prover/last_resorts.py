"""Points that the search leaves open, one after the other: by a linear program, by cases, and in rationals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.knowledge.checker import Answer, Branched, Fact, Term, check_certificate
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.branch_and_bound import Beyond, GaveUp, ways_to_branch
from overexplain.knowledge.prover.branch_proofs import BranchProofs
from overexplain.knowledge.prover.exact_rows import ExactRows
from overexplain.knowledge.prover.linear import OPEN, LinearProver
from overexplain.knowledge.prover.program import against, are_broken, by_program, is_tied
from overexplain.knowledge.prover.prover import Prover, is_late
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.prover.reduction import BOUNDARY, Contradiction, Model
from overexplain.knowledge.prover.stage import Asked, Stage
from overexplain.knowledge.prover.written import branched
from overexplain.log.extremes import BEYOND_FLOAT64

LOOSE = 512
"""Models that are kept to break claims."""


@dataclass(frozen=True)
class Settlement:
    """A code, and the terms that prove it (on the plane: and the reverse) or the models (one says Yes, the other No)
    that show it."""

    code: int
    terms: tuple[Term, ...] = ()
    reverse: tuple[Term, ...] = ()
    models: tuple[Model, Model] | None = None
    branches: Branched | None = None


@final
class LastResorts:
    """For a log whose rows have lengths in them; `used` is what proofs may use of it, `assumed` a row whose label was assumed."""

    def __init__(self, used: Prover, answers: Mapping[int, Answer], evidence: Evidence, assumed: int | None) -> None:
        self.used, self.answers, self.evidence, self._assumed = used, answers, evidence, assumed
        self._cases: list[BranchProofs] | None = None
        self._core: Stage | None = None
        self._loose = np.zeros((0, used.ties.size))
        """Models of what proofs may use, where that is not all: claims that one of them breaks are not asked for again."""

    def fork(self, used: Prover) -> LastResorts:
        """A copy that learns for itself, about a copy of the prover."""
        twin = LastResorts(used, self.answers, self.evidence, self._assumed)
        if vars(self).get("_exactly") is not None:
            rows, linear = vars(self)["_exactly"]
            vars(twin)["_exactly"] = rows, linear.fork()
        return twin

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_cases": None}  # programs cannot be pickled

    def side(self, x: FloatArray, sides: Sequence[int], deadline: float | None) -> int:
        """The side of a point by a linear program; in rationals if its claim is broken by a hair or no model is known; or OPEN."""
        is_close, inner = False, Asked(x[None, :], self.used.ties, np.zeros(self.used.ties.size)).inner[0]
        for side in () if is_late(deadline) else sides:
            if are_broken(side * inner, self._loose).any():
                continue
            proof, found = by_program(self.used, x, side)
            if proof is not None:
                return side
            is_close |= is_tied(self.used, x, found)
            if found is not None and self.used.is_for_proofs:
                model = against(self.used, side * inner, found.model)
                self._loose = self._loose if model is None else np.vstack([self._loose[-LOOSE:], model])
            elif found is not None:
                self.used.admit_near(found.model)
        is_blind = not self.used.is_for_proofs and not len(self.used.known)
        for exact in self.exactly(x, deadline) if is_close or is_blind else ():
            if exact.code in (*sides, BOUNDARY) and self._is_proved(x, exact):
                return exact.code
        return OPEN

    def exactly(self, x: FloatArray, deadline: float | None) -> Iterator[Settlement]:
        """The proof of a certain verdict, or that a point is on the plane, in rationals."""
        if self._exactly is None:
            return
        rows, linear = self._exactly
        try:
            found = rows.settled(linear, x, deadline)
        except OutOfTime:
            return
        if found.models is not None:
            return
        back = rows.terms(found.reverse or {})
        for terms, reverse in zip(rows.terms(found.weights or {}), back, strict=True):
            branches = None if found.code == BOUNDARY else branched(self.used, self.answers, self.evidence, terms)
            yield Settlement(found.code, () if branches else tuple(terms), tuple(reverse), branches=branches)

    def models(self, x: FloatArray, deadline: float | None) -> Sequence[Model]:
        """Models of the rows in rationals that disagree about a point; their lengths need not be those of their a."""
        if self._exactly is None:
            return ()
        try:
            return self._exactly[0].settled(self._exactly[1], x, deadline).models or ()
        except OutOfTime:
            return ()

    @cached_property
    def _exactly(self) -> tuple[ExactRows, LinearProver] | None:
        """The rows in rationals, and what decides points by them."""
        rows = ExactRows(self.used, self.answers, self.evidence)
        try:
            return rows, rows.prover(swapped=self._assumed is not None)
        except (Contradiction, np.linalg.LinAlgError, *BEYOND_FLOAT64):
            return None

    def branches(self, x: FloatArray, sign: int, deadline: float | None) -> Branched | None:
        """The proof by cases that a point is on one side, as the checker accepts it; models found on the way become known."""
        prover = self.used
        if self._cases is None or self._core is not prover.core:
            self._core = prover.core
            self._cases = [BranchProofs(way, self.answers, self.evidence) for way in ways_to_branch(prover)]
        claim = [Fraction(sign * v) for v in (*x.tolist(), -1.0)]
        denied = Fact([-v for v in claim], (), sign == YES)
        inner = sign * Asked(x[None, :], prover.ties, prover.centre).inner[0]
        for cases in self._cases:
            try:
                branches = cases.branched(cases.method.tree(inner, deadline), claim, denied)
            except Beyond as found:
                prover.admit_near(found.model)
            except (GaveUp, CertificateInvalid):  # too many cases, or numbers that the checker finds too long
                pass
            else:
                if self._is_proved(x, Settlement(sign, branches=branches)):
                    return branches
        return None

    def _is_proved(self, x: FloatArray, settled: Settlement) -> bool:
        """True if the checker accepts a settlement that is no UNKNOWN."""
        relative_to = None if self._assumed is None else self.answers[self._assumed].point
        try:
            check_certificate(
                self.answers, settled.terms, tuple(map(Fraction, x.tolist())), settled.code, lengths=self.evidence,
                reverse=settled.reverse, branches=settled.branches, relative_to=relative_to,
            )  # fmt: skip
        except CertificateInvalid:
            return False
        return True


def find_first(prover: Prover) -> None:
    """A model by cases, where nothing else finds one."""
    for method in ways_to_branch(prover):
        if not len(prover.known):
            try:
                method.tree(None)
            except Beyond as found:
                prover.admit(found.model[None, :])
            except GaveUp:
                continue
