"""Models that were held to a log by its definition, in rationals, one by one: two of them that disagree leave a point open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.geometry.arrays import FloatArray
from overexplain.knowledge.checker import Answer, check_witness
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.reduction import Model, dot

MIXED = (Fraction(1, 2**40), Fraction(1, 2**20), Fraction(1, 2**10), Fraction(1, 16), Fraction(1, 2))
"""How much of the centre is mixed into models that do not keep the log."""

NEAR = 1e-9
"""Floats cannot be told from 0 if they are below this share of what they were summed from."""


@final
class Models:
    """`answers` are the rows of the log in exact numbers."""

    def __init__(self, answers: Mapping[int, Answer], evidence: Evidence) -> None:
        self._answers, self._evidence = answers, evidence
        self._held: list[Model] = []
        self._floats = np.zeros((0, 0))
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
                size = max(abs(v) for v in (*model[0], model[1])) or Fraction(1)
                own = np.array([[float(v / size) for v in (*model[0], model[1])]])
                self._floats = np.vstack([self._floats.reshape(-1, own.shape[1]), own])
            else:
                self._refused.add(key)

    def disagree(self, x: FloatArray) -> tuple[Model, Model] | None:
        """(a model that says Yes of a point, one that says No); None if none are known."""
        if not self._held:
            return None
        rough, query = np.append(x, -1.0), [*(Fraction(v) for v in x.tolist()), Fraction(-1)]
        said, off = self._floats @ rough, NEAR * (np.abs(self._floats) @ np.abs(rough))
        yes: Model | None = None
        no: Model | None = None
        # The clearest first; rationals tell about those that floats cannot see to be on the other side.
        for k in np.argsort(-said).tolist():
            if yes is not None or said[k] < -off[k]:
                break
            yes = self._held[k] if self._value(k, query) >= 0 else None
        for k in np.argsort(said).tolist():
            if yes is None or no is not None or said[k] > off[k]:
                break
            no = self._held[k] if self._value(k, query) < 0 else None
        return None if yes is None or no is None else (yes, no)

    def _value(self, k: int, query: list[Fraction]) -> Fraction:
        return dot(query, [*self._held[k][0], self._held[k][1]])


def mixed(model: Model, centre: Model, share: Fraction) -> Model:
    """A model with some of the centre in it, both brought to one size."""
    size, own = (max((abs(v) for v in (*m[0], m[1])), default=Fraction(1)) or Fraction(1) for m in (centre, model))
    normal = [(1 - share) * a / own + share * b / size for a, b in zip(model[0], centre[0], strict=True)]
    return normal, (1 - share) * model[1] / own + share * centre[1] / size


def clearest(queries: FloatArray, models: FloatArray, most: int) -> list[int]:
    """The models that are farthest from 0 for some queries, either way: those that are so for most of them first."""
    if not len(models):
        return []
    said = queries @ models.T / np.maximum(np.abs(queries) @ np.abs(models).T, 1e-300)
    which, counts = np.unique(np.concatenate([said.argmax(axis=1), said.argmin(axis=1)]), return_counts=True)
    return [int(k) for k in which[np.argsort(-counts, kind="stable")][:most]]
