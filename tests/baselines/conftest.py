"""Services that keep count of what they are asked, for comparison with what an attack says it spent."""

from __future__ import annotations

import numpy as np
import pytest

from overexplain.oracles.wrapper import Wrapper


class Counted(Wrapper):
    """Passes everything on, scores too, and keeps the questions of each verb."""

    def __init__(self, oracle):
        super().__init__(oracle)
        self.asked = {"classify": [], "explain": [], "score": []}

    def _count(self, verb, x):
        self.asked[verb].append(np.array(x))
        return getattr(self.wrapped, verb)(x)

    def classify(self, x):
        return self._count("classify", x)

    def explain(self, x):
        return self._count("explain", x)

    def score(self, x):
        return self._count("score", x)

    @property
    def labels(self):
        return len(self.asked["classify"]) + len(self.asked["score"])

    @property
    def explanations(self):
        return len(self.asked["explain"])

    @property
    def questions(self):
        return np.array([x for asked in self.asked.values() for x in asked])


@pytest.fixture
def counted():
    return Counted
