"""What an attacker without labels has: explanations of questions of his own, and the labels that they give away."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.defending.guesses import main_axis
from overexplain.auditing.defending.setting import Setting
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.protocol import Oracle, checked_explanation

Design = Literal["wide", "along", "ordinary"]
"""Questions in the corners of what may be asked; in those two that lie farthest from the plane; or among ordinary cases."""

FLUSH = 0.8
"""Questions that are to lie far out are drawn from this share of the way to the limits on."""

PARALLEL = 0.9
"""Steps whose |cosine| with their main axis is at least this, most of them, lie along one line."""


@final
class ExplanationsOnly:
    """The oracle without its labels. Questions are counted; whatever is no answer is None."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self.dimension = oracle.dimension
        self.mechanism = oracle.mechanism
        self.domain: Domain | None = getattr(oracle, "domain", None)

    def explain(self, x: ArrayLike) -> Any:
        """The oracle's explanation."""
        return self._oracle.explain(x)

    def answers(self, questions: FloatArray) -> FloatArray:
        """A row for every question, all NaN where there is no answer."""
        try:
            rows = np.asarray(self._oracle.explain(questions.copy()), dtype=np.float64)
            if rows.shape == questions.shape:
                return rows
        except Exception:  # a service's own: one question that it cannot answer must not cost the others
            pass
        rows = np.full(questions.shape, np.nan)
        for i, x in enumerate(questions):
            answer = self.answer(x)
            if answer is not None:
                rows[i] = answer
        return rows

    def answer(self, x: FloatArray) -> FloatArray | None:
        """The explanation of one question, or None."""
        try:
            return checked_explanation(self._oracle.explain(x.copy()), self.dimension)
        except Exception:  # a service's own
            return None


@final
class SidesRead:
    """Labels read off explanations: a question lies on the side that its explanation leads away from.

    A question without an answer lies on the side that gets none. Which side is Yes stays unknown.
    """

    mechanism: Mechanism | None = None

    def __init__(self, oracle: ExplanationsOnly, along: FloatArray, answered: int) -> None:
        self._oracle, self._along, self._answered = oracle, along, answered
        self.dimension = oracle.dimension
        self.domain = oracle.domain

    def classify(self, x: ArrayLike) -> int:
        """The label of x, the direction `along` leading to +1."""
        point = np.asarray(x, dtype=np.float64)
        answer = self._oracle.answer(point)
        if answer is None:
            return -self._answered
        return -1 if float(self._along @ (answer - point)) >= 0 else 1


class Pool:
    """Questions of one design and their explanations, asked when they are needed."""

    def __init__(self, oracle: ExplanationsOnly, setting: Setting, design: Design, rng: np.random.Generator) -> None:
        self.design = design
        self._oracle, self._setting, self._rng = oracle, setting, rng
        self._questions = np.zeros((0, oracle.dimension))
        self._answers = np.zeros((0, oracle.dimension))

    @property
    def asked(self) -> int:
        """How many explanations were asked for."""
        return len(self._questions)

    def first(self, count: int) -> tuple[FloatArray, FloatArray]:
        """The answered ones of the first `count` questions, and their answers."""
        if count > self.asked == 0:
            self._ask(1)  # which shows where "along" is
        if count > self.asked:
            self._ask(count - self.asked)
        answers = self._answers[:count]
        given = np.isfinite(answers).all(axis=1)
        return self._questions[:count][given], answers[given]

    def is_parallel(self, count: int) -> bool:
        """True if most of the first `count` questions have answers whose steps lie along one line, up to noise."""
        X, Z = self.first(count)
        if len(X) < 2:
            return False
        lengths = np.linalg.norm(Z - X, axis=1)
        return bool(np.median(np.abs((Z - X) @ main_axis(Z - X)) - PARALLEL * lengths) >= 0)

    def _ask(self, more: int) -> None:
        new = self._draw(more)
        self._questions = np.vstack([self._questions, new])
        self._answers = np.vstack([self._answers, self._oracle.answers(new)])

    def _draw(self, count: int) -> FloatArray:
        setting, rng, domain = self._setting, self._rng, self._oracle.domain
        if domain is not None and (domain.groups or domain.integers):
            return np.asarray(domain.sample(rng, count))
        low, high = setting.low, setting.high
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        size = (count, setting.dimension)
        if self.design == "ordinary":
            return np.clip(middle + half / 3 * rng.normal(size=size), low, high)
        signs = rng.choice([-1.0, 1.0], size=size)
        if self.design == "along" and self.asked:
            X, Z = self.first(self.asked)
            step = np.sign((Z - X)[0]) if len(X) else signs[0]
            # Far from the plane, on either side in turn: the longer the step, the less an error of the answer turns it.
            signs = np.where(step == 0, signs, -step) * rng.choice([-1.0, 1.0], size=(count, 1))
        return np.asarray(np.clip(middle + half * signs * rng.uniform(FLUSH, 1.0, size=size), low, high))
