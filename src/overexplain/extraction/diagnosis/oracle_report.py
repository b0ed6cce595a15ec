"""What a short conversation shows about a service: frozen data, ready for JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from overexplain.errors import UnsupportedNorm
from overexplain.extraction.result import Spent
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm

Direction = Literal["constant", "by side", "several", "varying"]
Family = Literal["l1", "linf", "l2", "lq", "weighted", "mixture", "heuristic", "unknown"]
Margin = Literal["zero", "constant", "variable", "relative"]


@dataclass(frozen=True, eq=False)
class OracleReport:
    """How a service behaves, as far as its answers show it; None, "unknown" or nothing where they do not.

    dimension        number of features
    asked            explanations and labels that the diagnosis spent
    answers          how many explanations were points that moved
    deterministic    the same question got the same answer
    exact            answers are optimal under some distance, up to `tolerance`: on the plane, or on two planes parallel to it
    direction        of the steps: "constant" (up to sign), "by side" (one for each side), "several" (a few), "varying"
    family           of the effective distance; "weighted": feature weights or a Mahalanobis matrix; "mixture": several
                     distances in turn; "heuristic": no distance explains the answers
    distance         the effective distance, where it is determined
    margin           how far behind the plane answers lie: "zero", "constant", "variable", or "relative" to the step
    margin_size      the largest such distance seen, in the 2-norm
    slack            for a relative margin: the largest relative excess that the answers prove (a lower estimate)
    grid             the grid that answers lie on, e.g. "2 decimals", "whole numbers", "float32"
    tolerance        half a step of that grid (the largest, for float32)
    low, high        where answers are cut off; ±∞ where no bound shows
    immutable        features that never moved although the label depends on them and others moved (or, the same to an asker,
                     only the most effective ones are changed)
    moved            features that moved
    repeated_rows    answers come from a finite set: different questions get exactly the same point
    one_hot_snapped  answers keep the one-hot groups of the published domain valid; None if it has none
    one_sided        the only label whose points are explained
    failures         how often each spelling of "no answer" came, most frequent first
    declared         the published terms
    refuted          published terms that the answers contradict, one sentence each
    theorem          which theorem or method rebuilds the model
    cost             what that takes to reach 1e-6 rad, predicted; None where nothing can
    findings         what was seen, in plain sentences
    """

    dimension: int
    asked: Spent
    answers: int
    deterministic: bool | None
    exact: bool | None
    direction: Direction | None
    family: Family
    distance: Norm | None
    margin: Margin | None
    margin_size: float
    slack: float | None
    grid: str | None
    tolerance: float
    low: FloatArray
    high: FloatArray
    immutable: tuple[int, ...]
    moved: tuple[int, ...]
    repeated_rows: bool
    one_hot_snapped: bool | None
    one_sided: int | None
    failures: tuple[tuple[str, int], ...]
    declared: Mechanism | None
    refuted: tuple[str, ...]
    theorem: str
    cost: Spent | None
    findings: tuple[str, ...]

    @property
    def is_boxed(self) -> bool:
        """True if answers are cut off somewhere."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON: norms by their spec, an infinite bound as None, counts as objects."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {
            "asked": _counts(self.asked),
            "distance": None if self.distance is None else _spec(self.distance),
            "low": _bounds(self.low),
            "high": _bounds(self.high),
            "immutable": list(self.immutable),
            "moved": list(self.moved),
            "failures": dict(self.failures),
            "declared": None if self.declared is None else self.declared.describe(),
            "refuted": list(self.refuted),
            "cost": None if self.cost is None else _counts(self.cost),
            "findings": list(self.findings),
        }


def _counts(spent: Spent) -> dict[str, int]:
    return {"explanations": spent.explanations, "labels": spent.labels}


def _bounds(limits: FloatArray) -> list[float | None]:
    return [float(limit) if np.isfinite(limit) else None for limit in limits]


def _spec(norm: Norm) -> Any:
    try:
        return norm.spec
    except UnsupportedNorm:  # a norm of the user's own
        return type(norm).__name__
