"""What is believed: only what the checker accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.checker import Answer, Branched, Term, check_certificate
from overexplain.knowledge.enclosures import Evidence, NotEnclosed, Vector
from overexplain.knowledge.ties import Exact, Model, says
from overexplain.knowledge.witnesses import check_witness, find_offset


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

    def fitted(self, model: Model, point: Exact | None = None, label: int = 0) -> Model | None:
        """The model, its offset moved if need be, if it is consistent and gives the point that label; None if it is not."""
        if not any(model[0]):
            return None
        try:
            offsets = find_offset(self.answers, model[0], model[1], self.evidence)
        except NotEnclosed:
            return None
        for offset in offsets:
            moved = (model[0], offset)
            if (point is None or (says(moved, point) >= 0) == (label > 0)) and self.keeps(moved):
                return moved
        return None

    def keeps(self, model: Model | None) -> bool:
        """True if the checker accepts the model as one that could have given every answer."""
        if model is None or not any(model[0]):
            return False
        try:
            check_witness(self.answers, model[0], model[1], lengths=self.evidence)
        except CertificateInvalid:
            return False
        return True
