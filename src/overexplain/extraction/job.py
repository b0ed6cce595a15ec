"""What every way of rebuilding a model is given: whom to ask, where, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.extraction.box import Where, where_of
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray, as_point

ENOUGH = 2.0
"""A bound this many times the usual accuracy is good enough: bounds are that much larger than errors anyway."""


@dataclass(frozen=True, eq=False)
class Job:
    """One extraction: `accuracy` is the angle wanted (radians), questions lie in `where`, `start` is the first of them.

    `keeps_start`: the caller chose the start; it is not replaced by a better one. `insists`: the caller chose the accuracy.
    """

    session: Session
    accuracy: float
    start: FloatArray
    where: Where
    orient: bool
    rng: np.random.Generator
    keeps_start: bool = False
    insists: bool = False

    @property
    def enough(self) -> float:
        """The bound on the angle that will do."""
        return self.accuracy if self.insists else ENOUGH * self.accuracy


def begin(session: Session, start: ArrayLike | None, bounds: Any, rng: np.random.Generator) -> tuple[FloatArray, Where]:
    """The first question, and where all of them may be asked: the start as given, or the middle of that, or a valid input."""
    origin = None if start is None else as_point(start, session.dimension, "start")
    where, domain = where_of(bounds, session.dimension, origin, session.domain), session.domain
    if origin is None:
        return domain.sample(rng, 1)[0] if domain is not None and session.is_discrete else where.centre(), where
    if not where.contains(origin):
        raise InvalidInput("start lies outside the bounds")
    if domain is not None:
        domain.refuse(origin)
    return origin, where
