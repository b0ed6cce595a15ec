"""What is believed: only what the checker accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.checker import Answer, Branched, Term, check_certificate
from overexplain.knowledge.enclosures import Evidence, Vector
from overexplain.knowledge.ties import Exact, Model
from overexplain.knowledge.witnesses import check_witness


@final
@dataclass(frozen=True)
class Belief:
    """Asks the checker about proofs and models of a log, whose rows are given in exact numbers."""

    answers: Mapping[int, Answer]
    evidence: Evidence
    relative_to: Vector | None = None

    def proves(
        self,
        terms: Sequence[Term],
        point: Exact | None,
        verdict: int,
        reverse: Sequence[Term] = (),
        branches: Branched | None = None,
    ) -> bool:
        """True if the checker accepts the terms, or the branches."""
        try:
            check_certificate(
                self.answers, terms, point, verdict, reverse=reverse, lengths=self.evidence, branches=branches,
                relative_to=self.relative_to,
            )  # fmt: skip
        except CertificateInvalid:
            return False
        return True

    def keeps(self, model: Model | None) -> bool:
        """True if the checker accepts the model as one that could have given every answer."""
        if model is None or not any(model[0]):
            return False
        try:
            check_witness(self.answers, model[0], model[1], lengths=self.evidence)
        except CertificateInvalid:
            return False
        return True
