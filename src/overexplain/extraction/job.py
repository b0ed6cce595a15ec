"""What every way of rebuilding a model is given: whom to ask, where, and how well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overexplain.extraction.box import Where
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Job:
    """One extraction: `accuracy` is the angle wanted (radians), questions lie in `where`, `start` is the first of them.

    `keeps_start`: the caller chose the start; it is not replaced by a better one.
    """

    session: Session
    accuracy: float
    start: FloatArray
    where: Where
    orient: bool
    rng: np.random.Generator
    keeps_start: bool = False
