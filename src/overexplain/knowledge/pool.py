"""Models that are known to fit a log: where two of them disagree, nothing more has to be asked."""

from __future__ import annotations

from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import UNIT_ROUNDOFF
from overexplain.knowledge.settle import Settled
from overexplain.knowledge.ties import Model, as_floats, says
from overexplain.knowledge.verdicts import Verdict

MOST = 2048
"""Models kept; the oldest are forgotten."""


@final
class Pool:
    """Checked models, exactly and in float64."""

    def __init__(self, dimension: int) -> None:
        self._models: list[Model] = []
        self._floats = np.zeros((0, dimension + 1))

    def __len__(self) -> int:
        return len(self._models)

    def learn(self, *models: Model | None) -> None:
        """Keep models that the checker has accepted."""
        new = [model for model in models if model is not None and not any(model is known for known in self._models)]
        if new:
            self._models = [*self._models, *new][-MOST:]
            self._floats = np.vstack([self._floats, *map(as_floats, new)])[-MOST:]

    def disagree(self, X: FloatArray) -> NDArray[np.bool_]:
        """For each point: True if two models disagree about it by more than rounding."""
        queries = np.hstack([X, -np.ones((len(X), 1))])
        said = queries @ self._floats.T
        sure = np.abs(said) > 16 * queries.shape[1] * UNIT_ROUNDOFF * (np.abs(queries) @ np.abs(self._floats).T)
        return np.asarray((sure & (said > 0)).any(axis=1) & (sure & (said < 0)).any(axis=1))

    def settled(self, x: FloatArray) -> Settled | None:
        """Two models that disagree about the point, exactly."""
        if not self._models:
            return None
        said = self._floats @ np.append(x, -1.0)
        point = [Fraction(float(v)) for v in x]
        yes, no = self._models[int(np.argmax(said))], self._models[int(np.argmin(said))]
        if says(yes, point) >= 0 > says(no, point):
            return Settled(Verdict.UNKNOWN, yes=yes, no=no)
        return None
