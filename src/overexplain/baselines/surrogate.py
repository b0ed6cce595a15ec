"""Surrogate training (Aïvodji, Bolot, Gambs 2020): questions with their labels, counterfactuals with the opposite ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.baselines.answered import answered_questions
from overexplain.baselines.attempt import AnyOracle, Attempt, Rng, attempted
from overexplain.baselines.knobs import as_positive
from overexplain.baselines.learners import STRENGTH, trained
from overexplain.baselines.questions import Questions
from overexplain.extraction.result import Extraction

REQUESTS = 1000
"""Without a budget: 500 questions, a label and an explanation each; the paper has 100 to 1000."""


def train_surrogate(
    oracle: AnyOracle,
    *,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: Rng = None,
    record: bool = True,
    strength: float = STRENGTH,
) -> Extraction:
    """The model trained on random questions and their counterfactuals; all of the budget (or 1000 requests) is used.

    accuracy, orient   of no effect: the attack cannot tell its error, and labels tell the sides anyway
    strength           scikit-learn's C of the logistic regression: how much examples count

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 1.0)
    >>> found = train_surrogate(ModelOracle(secret, "l2"), bounds=(-1.0, 1.0), budget=200, rng=0)
    >>> found.spent, found.hyperplane.angle_to(secret) < 0.1
    (Spent(explanations=100, labels=100), True)
    """
    weight = as_positive(strength, "strength")

    def run(attempt: Attempt) -> Extraction:
        attempt.need_labels("surrogate training")
        attempt.need_explanations("surrogate training")
        questions = Questions(attempt)
        asked = answered_questions(attempt, questions, attempt.limit(REQUESTS))
        given = asked.explained
        points = np.vstack([asked.questions, asked.answers[given]])
        labels = np.concatenate([asked.labels, -asked.labels[given]])
        return attempt.result(
            trained(points, labels, questions, weight),
            points,
            f"surrogate trained on {len(asked.labels)} questions and {given.sum()} explanations (Aïvodji et al. 2020)",
            ("the model is linear", "explanations flip the label", "no error is known"),
        )

    return attempted(run, oracle, accuracy, start, bounds, orient, budget, rng, record)
