"""Services that say how sure they are: the probability of Yes beside the label."""

from __future__ import annotations

import math
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import as_point_or_rows
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.linear import LinearModel

MOST_DECIMALS = 17
"""More decimals than float64 has between 0 and 1."""


@runtime_checkable
class ScoreOracle(Protocol):
    """A service with labels and scores. Each verb takes a point, or a batch of rows; it may explain too, but need not."""

    @property
    def dimension(self) -> int:
        """The number of features."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The published terms of explanations; None if there are none."""

    def classify(self, x: Any, /) -> Any:
        """+1 (Yes) or −1 (No)."""

    def score(self, x: Any, /) -> Any:
        """The probability of Yes, from 0 to 1."""


@final
class Scored:
    """Answers for `hyperplane` (or a loaded model) with σ(normal·x − offset), σ(t) = 1/(1 + e⁻ᵗ): logistic regression's own score.

    `decimals` rounds the scores, as services do. The length of the normal matters here: it is how sure the model is.

    >>> service = Scored(Hyperplane([2.0, -1.0], 3.0), decimals=3)
    >>> service.classify([3.0, 0.0]), service.score([3.0, 0.0]), service.score([[1.5, 0.0], [0.0, 0.0]]).tolist()
    (1, 0.953, [0.5, 0.047])
    """

    mechanism: None = None

    def __init__(self, hyperplane: Hyperplane | LinearModel, decimals: int | None = None) -> None:
        if isinstance(hyperplane, LinearModel):
            hyperplane = hyperplane.hyperplane
        if not isinstance(hyperplane, Hyperplane):
            raise InvalidInput(
                f"a Scored service answers for a Hyperplane or a loaded model, got {type(hyperplane).__name__}"
            )
        self._plane = hyperplane
        self.decimals = None if decimals is None else _as_decimals(decimals)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self._plane.dimension

    @property
    def hyperplane(self) -> Hyperplane:
        """The model itself: for wrappers that need it, not for those who ask."""
        return self._plane

    def classify(self, x: ArrayLike) -> Any:
        """+1 (Yes) or −1 (No): an int for a point, an int8 array for rows."""
        points = as_point_or_rows(x, self.dimension)
        return self._plane.label(points) if points.ndim == 1 else self._plane.labels(points)

    def score(self, x: ArrayLike) -> Any:
        """The probability of Yes: a float for a point, an array for rows. Above ½ is Yes, below is No."""
        scores = logistic(self._plane.margin(x))
        if self.decimals is not None:
            scores = np.round(scores, self.decimals)
        return float(scores) if np.ndim(scores) == 0 else scores


def logistic(margin: ArrayLike) -> Any:
    """σ(t) = 1/(1 + e⁻ᵗ), entry by entry, with all digits that float64 has for it; 0 and 1 at −∞ and ∞."""
    t = np.asarray(margin, dtype=np.float64)
    with np.errstate(under="ignore"):
        small = np.exp(-np.abs(t))  # never overflows
    return np.where(t >= 0, 1.0, small) / (1 + small)


def checked_score(answer: Any) -> float:
    """The score as a float, if the service said a number from 0 to 1."""
    try:
        value = math.nan if isinstance(answer, bool | np.bool_) else float(answer)
    except Exception:  # whatever the service's own type raises
        value = math.nan
    if not 0 <= value <= 1:
        hint = "; divide percentages by 100 first" if 1 < value <= 100 else ""
        raise InvalidInput(
            f"score must return the probability of Yes, from 0 to 1, the service returned {answer!r}{hint}"
        )
    return value


def _as_decimals(decimals: Any) -> int:
    if isinstance(decimals, bool) or not isinstance(decimals, int | np.integer) or not 0 <= decimals <= MOST_DECIMALS:
        raise InvalidInput(f"decimals must be a whole number from 0 to {MOST_DECIMALS}, got {decimals!r}")
    return int(decimals)
