"""DualCF (Wang, Qian, Miao 2022): a counterfactual and the counterfactual of that, just across the boundary, as a pair.

Far questions beside counterfactuals near the boundary shift what is trained on them; a pair has the boundary in its middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.baselines.answered import Asker
from overexplain.baselines.attempt import AnyOracle, Attempt, Rng, attempted
from overexplain.baselines.knobs import as_positive
from overexplain.baselines.learners import STRENGTH, trained
from overexplain.baselines.questions import Questions
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray

REQUESTS = 300
"""Without a budget: 100 questions, a label and two explanations each."""

STAYED = 1e-9
"""An explanation of an explanation that moves less than this share of the first one's way has stayed where it was."""


def train_on_pairs(
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
    """The model trained on counterfactuals and the counterfactuals of these; all of the budget (or 300 requests) is used.

    A service whose answers lie on the boundary itself has no way to go from there: the question then takes the place of the
    counterfactual's counterfactual. So it does where that is not given, or may not be asked (outside of `bounds`).

    accuracy, orient   of no effect: the attack cannot tell its error, and labels tell the sides anyway
    strength           scikit-learn's C of the logistic regression: how much examples count

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.geometry.mechanism import Mechanism
    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 1.0)
    >>> service = ModelOracle(secret, Mechanism("l2", robustness="l2", radius=0.1))
    >>> found = train_on_pairs(service, budget=3, rng=0)
    >>> found.spent, found.hyperplane.angle_to(secret) < 1e-6
    (Spent(explanations=2, labels=1), True)
    """
    weight = as_positive(strength, "strength")

    def run(attempt: Attempt) -> Extraction:
        attempt.need_labels("DualCF")
        attempt.need_explanations("DualCF")
        limit, questions = attempt.limit(REQUESTS), Questions(attempt)
        attempt.session.require(2, "a label and an explanation")
        asker = Asker(attempt, questions, limit)
        points: list[FloatArray] = []
        labels: list[int] = []
        dual = 0
        while asker.left:
            x, label = questions.label()
            answer = asker.explain(x, label)
            if answer is None:
                continue
            back = _back(attempt, asker, x, answer)
            dual += back is not None
            points += [answer, x if back is None else back]
            labels += [-label, label]
        asker.refuse_silence()
        rows = np.array(points)
        plane = trained(rows, np.array(labels, dtype=np.int64), questions, weight)
        single = len(points) // 2 - dual
        notes: tuple[str, ...] = ("the model is linear", "explanations flip the label", "no error is known")
        if single:
            notes += (f"{single} explanations had none of their own, or stayed: their questions took its place",)
        return attempt.result(plane, rows, f"DualCF: trained on {len(points) // 2} pairs (Wang et al. 2022)", notes)

    return attempted(run, oracle, accuracy, start, bounds, orient, budget, rng, record)


def _back(attempt: Attempt, asker: Asker, x: FloatArray, answer: FloatArray) -> FloatArray | None:
    """The explanation of the explanation, if it lies elsewhere."""
    domain = attempt.session.domain
    if not asker.left or not attempt.where.contains(answer) or not (domain is None or domain.contains(answer)):
        return None
    back = attempt.session.attempt(answer).answer
    if back is None or np.linalg.norm(back - answer) <= STAYED * np.linalg.norm(answer - x):
        return None
    return back
