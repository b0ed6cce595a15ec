"""What an extraction gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.log.querylog import QueryLog


@dataclass(frozen=True)
class Spent:
    """What was asked of the service. Questions it left unanswered count too.

    `confirmation`: explanations and labels that were asked only to see whether the service keeps to its terms, counted apart.
    """

    explanations: int = 0
    labels: int = 0
    confirmation: int = 0

    @property
    def requests(self) -> int:
        """All of them together: what a budget counts."""
        return self.explanations + self.labels + self.confirmation

    def __repr__(self) -> str:
        confirmed = f", confirmation={self.confirmation}" if self.confirmation else ""
        return f"Spent(explanations={self.explanations}, labels={self.labels}{confirmed})"


@dataclass(frozen=True, eq=False)
class Extraction:
    """The rebuilt model and what it rests on.

    hyperplane     scaled to ‖normal‖* = 1 (‖normal‖₂ = 1 if the distance is unknown); upside down, maybe, unless `oriented`
    spent          explanations, labels, confirmation, requests
    log            every answer, in the order asked; None with ``record=False``
    method         the theorem or procedure that was used
    assumptions    what had to be believed, one sentence each
    exact          a theorem of exact arithmetic was applied and its free check, where it has force, passed
    error_bound    bound on the angle (radians) between the normals, rounding included; None if none can be given
    offset_bound   bound on the offset's error, both models scaled to ‖normal‖* = 1; None if none can be given
    premise        what the bounds rest on, e.g. "every answer is within 1e-08 of optimal"; None if there are no bounds
    tolerance      how far, in the distance, answers were taken to lie from the optimum; None: as far as float64 rounding
    residual       the farthest that an answer was seen from what the model found would have answered (by the tolerance, and by
                   the model's own error times the size of the question); None if nothing was asked to see it
    oriented       True if a label told which side is Yes
    radius         ρ: as declared, or as found if it was secret and the robustness norm is known
    radius_bound   bound on the error of a radius that was found
    unidentified   basis (rows) of the directions that no answer can reveal; no rows if there are none
    """

    hyperplane: Hyperplane
    spent: Spent
    log: QueryLog | None
    method: str
    assumptions: tuple[str, ...]
    exact: bool
    error_bound: float | None
    offset_bound: float | None
    oriented: bool
    radius: float | None
    radius_bound: float | None
    unidentified: FloatArray
    premise: str | None = None
    tolerance: float | None = None
    residual: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form, without the log."""
        return {
            "method": self.method,
            "explanations": self.spent.explanations,
            "labels": self.spent.labels,
            "confirmation": self.spent.confirmation,
            "error_bound": self.error_bound,
            "offset_bound": self.offset_bound,
            "premise": self.premise,
            "tolerance": self.tolerance,
            "residual": self.residual,
            "radius": self.radius,
            "radius_bound": self.radius_bound,
            "oriented": self.oriented,
            "exact": self.exact,
            "unidentified": self.unidentified.tolist(),
            "assumptions": list(self.assumptions),
            "hyperplane": {"normal": self.hyperplane.normal.tolist(), "offset": self.hyperplane.offset},
        }

    @staticmethod
    def within(tolerance: float | None) -> str:
        """The premise of bounds that rest on answers which are optimal to a tolerance.

        >>> Extraction.within(1e-8)
        'every answer is within 1e-08 of optimal'
        """
        near = "float64 rounding" if not tolerance else f"{tolerance:.2g}"
        return f"every answer is within {near} of optimal"

    def rescaled(self, length: float, length_error: float = 0.0) -> Extraction:
        """The same with normal and offset divided by `length`; the true model's own length is that up to the share `length_error`.

        |b/l − b'/l'| ≤ (|b − b'| + |b'|·|l − l'|/l') / l.
        """
        plane = Hyperplane(self.hyperplane.normal / length, self.hyperplane.offset / length)
        bound = self.offset_bound
        if bound is not None:
            bound = (bound + (abs(self.hyperplane.offset) + bound) * length_error) / length
            bound = bound if math.isfinite(bound) else None
        return replace(self, hyperplane=plane, offset_bound=bound)
