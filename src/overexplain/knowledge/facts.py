"""What one answer shows of a model, as floats: a step under a distance, a secret reach; and how far computed lengths may be off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.lp import Lp
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.norms import Weighted
from overexplain.geometry.polyhedral import Facets, Polyhedral

SOLVED_LENGTH = 1e-7
"""How far, relatively, a length found by a linear program (polyhedral norms) may be off."""


@dataclass(frozen=True)
class Steepest:
    """−side·a·step ≥ steepness·t."""

    row: int
    side: int
    point: FloatArray
    explanation: FloatArray
    step: FloatArray
    length: float
    steepness: float
    tolerance: float
    norm: Norm


@dataclass(frozen=True)
class Secret:
    """The reach r ≥ 0 of answers whose radius is not known: the same for all answers under the same terms."""

    distance: Norm | None
    robustness: Norm | None

    @property
    def written(self) -> dict[str, Any]:
        """The form in which the checker knows it."""
        specs = {name: None if norm is None else norm.spec for name, norm in vars(self).items()}
        return {"norm": "secret", **specs}


Robust = Literal["paper", "perspective", "shared", "exact"]
LEVELS: tuple[Robust, ...] = ("paper", "perspective", "shared", "exact")
"""How much of robust counterfactuals is used, from little to all: "paper" takes only that the ball lies on the other side,
"perspective" also that the perspective point does not, "shared" that all of them lie at one and the same s behind the plane,
"exact" that s = ‖a‖*."""


def is_euclidean(norm: Norm) -> bool:
    """True for ℓ2, weighted ℓ2 and Mahalanobis: √ of a quadratic form."""
    if isinstance(norm, Weighted):
        norm = norm.norm
        return isinstance(norm, Lp) and norm.q == 2
    return isinstance(norm, Mahalanobis) or (isinstance(norm, Lp) and norm.q == 2)


def length_error(norm: Norm, p: int) -> float:
    """How far, relatively, a computed length may be off."""
    return SOLVED_LENGTH if isinstance(norm, Polyhedral | Facets) else 16 * (p + 8) * UNIT_ROUNDOFF
