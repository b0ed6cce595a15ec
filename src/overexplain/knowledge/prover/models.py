"""Models that were held to a log by its definition, in rationals, one by one: two of them that disagree leave a point open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import final

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.checker import Answer, check_witness
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.reduction import Model, dot

MIXED = (Fraction(1, 2**40), Fraction(1, 2**20), Fraction(1, 2**10), Fraction(1, 16), Fraction(1, 2))
"""How much of the centre is mixed into models that do not keep the log."""


@final
class Models:
    """`answers` are the rows of the log in exact numbers."""

    def __init__(self, answers: Mapping[int, Answer], evidence: Evidence) -> None:
        self._answers, self._evidence = answers, evidence
        self._held: list[Model] = []
        self._refused: set[int] = set()

    def fork(self) -> Models:
        """A copy that learns for itself."""
        twin = object.__new__(Models)
        twin.__dict__.update(self.__dict__)
        twin._held, twin._refused = list(self._held), set(self._refused)
        return twin

    def admits(self, model: Model) -> bool:
        """True if the checker accepts the model."""
        try:
            check_witness(self._answers, model[0], model[1], lengths=self._evidence)
        except CertificateInvalid:
            return False
        return True

    def learn(self, models: Iterable[Model]) -> None:
        """Keep those that fit the log."""
        for model in models:
            key = hash((tuple(model[0]), model[1]))
            if key in self._refused or model in self._held:
                continue
            if self.admits(model):
                self._held.append(model)
            else:
                self._refused.add(key)

    def disagree(self, x: FloatArray) -> tuple[Model, Model] | None:
        """(a model that says Yes of a point, one that says No); None if none are known."""
        query = [*(Fraction(v) for v in x.tolist()), Fraction(-1)]
        yes: Model | None = None
        no: Model | None = None
        for model in self._held:
            if dot(query, [*model[0], model[1]]) >= 0:
                yes = model
            else:
                no = model
            if yes is not None and no is not None:
                return yes, no
        return None


def mixed(model: Model, centre: Model, share: Fraction) -> Model:
    """A model with some of the centre in it, both brought to one size."""
    size, own = (max((abs(v) for v in (*m[0], m[1])), default=Fraction(1)) or Fraction(1) for m in (centre, model))
    normal = [(1 - share) * a / own + share * b / size for a, b in zip(model[0], centre[0], strict=True)]
    return normal, (1 - share) * model[1] / own + share * centre[1] / size
