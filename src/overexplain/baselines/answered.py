"""Random questions with their labels and explanations: what every attack on an explaining service trains on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from overexplain.baselines.attempt import Attempt
from overexplain.baselines.questions import Questions
from overexplain.errors import NoExplanation
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES

SILENT = 20
"""So many questions of a side without an explanation, and none with one: that side is not explained, and no longer asked."""


@dataclass(frozen=True, eq=False)
class Answered:
    """Questions (rows), their labels, and their explanations: a row of NaN where there is none."""

    questions: FloatArray
    labels: IntArray
    answers: FloatArray

    @property
    def explained(self) -> BoolArray:
        """Which questions were explained."""
        return np.asarray(~np.isnan(self.answers).any(axis=1))


class Asker:
    """Asks random questions for label and explanation until `limit` requests are used up."""

    def __init__(self, attempt: Attempt, questions: Questions, limit: int) -> None:
        self.session, self.questions, self.limit = attempt.session, questions, limit
        self._answered: Counter[int] = Counter()
        self._missed: Counter[int] = Counter()

    @property
    def left(self) -> int:
        """How many requests may still be sent."""
        return self.limit - self.session.spent.requests

    def explain(self, x: FloatArray, label: int) -> FloatArray | None:
        """The explanation of x; None if there is none, none is left, or questions with this label never get one.

        The label of a question that nobody labelled is 0.
        """
        if not self.left or self._is_silent(label):
            return None
        answer = self.session.attempt(x).answer
        (self._missed if answer is None else self._answered)[label] += 1
        if all(self._is_silent(side) for side in ((YES, NO) if label else (0,))):
            self.refuse_silence()
        return answer

    def _is_silent(self, label: int) -> bool:
        return self._missed[label] >= SILENT and not self._answered[label]

    def refuse_silence(self) -> None:
        """Raise NoExplanation if nothing was ever explained."""
        if not self._answered:
            asked = self._missed.total()
            if not asked:
                self.questions.refuse_one_side()
            raise NoExplanation(
                f"the service explained none of {asked} question{'s' * (asked != 1)}; give bounds= or start= where it does, "
                "or a larger budget="
            )


def answered_questions(
    attempt: Attempt, questions: Questions, limit: int, sides: tuple[int, ...] = (YES, NO)
) -> Answered:
    """All the questions that `limit` requests pay for: a label each, and an explanation where the label is one of `sides`."""
    attempt.session.require(2, "a label and an explanation")
    asker = Asker(attempt, questions, limit)
    points: list[FloatArray] = []
    labels: list[int] = []
    answers: list[FloatArray] = []
    nothing = np.full(attempt.dimension, np.nan)
    while asker.left:
        x, label = questions.label()
        answer = asker.explain(x, label) if label in sides else None
        points.append(x)
        labels.append(label)
        answers.append(nothing if answer is None else answer)
    asker.refuse_silence()
    return Answered(np.array(points), np.array(labels, dtype=np.int64), np.array(answers))
