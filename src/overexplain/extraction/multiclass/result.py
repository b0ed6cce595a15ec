"""What an extraction of a classifier of several classes gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from overexplain.extraction.result import Spent
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Asked:
    """One question and its answer: the class of `x` (`target` None), or the explanation of x towards the class `target`."""

    x: FloatArray
    target: int | None
    answer: FloatArray | int | None


@dataclass(frozen=True, eq=False)
class MulticlassExtraction:
    """The rebuilt classifier and what it rests on.

    model         scaled as `ArgmaxModel.centred`; a class in `unreached` has a row that never wins, which says nothing about it
    spent         explanations, labels, requests
    facets        the pairs of classes whose common boundary was asked for, in order
    method        which equations were used, and how many
    assumptions   what had to be believed, one sentence each
    exact         the equations of exact answers were used, and every answer agrees with the model
    error_bound   bound on `ArgmaxModel.distance_to` the true model (radians), rounding included; None if none can be given
    unreached     classes that were never found: no label ever said them
    answers       every answer, in the order asked; None with ``record=False``
    """

    model: ArgmaxModel
    spent: Spent
    facets: tuple[tuple[int, int], ...]
    method: str
    assumptions: tuple[str, ...]
    exact: bool
    error_bound: float | None
    unreached: tuple[int, ...]
    answers: tuple[Asked, ...] | None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form, without the answers."""
        return {
            "method": self.method,
            "explanations": self.spent.explanations,
            "labels": self.spent.labels,
            "error_bound": self.error_bound,
            "exact": self.exact,
            "facets": [list(pair) for pair in self.facets],
            "unreached": list(self.unreached),
            "assumptions": list(self.assumptions),
            "model": {"weights": self.model.weights.tolist(), "intercepts": self.model.intercepts.tolist()},
        }
