"""Direction averaging: the mean of the unit displacements towards Yes is the normal, if the service's distance is Euclidean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.baselines.answered import Asker
from overexplain.baselines.attempt import AnyOracle, Attempt, Rng, attempted
from overexplain.baselines.questions import Questions
from overexplain.errors import ExtractionFailed
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane

REQUESTS = 200
"""Without a budget: 100 questions, a label and an explanation each."""


def average_directions(
    oracle: AnyOracle,
    *,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: Rng = None,
    record: bool = True,
) -> Extraction:
    """The mean direction to the explanations, and their mean level; all of the budget (or 200 requests) is used.

    accuracy   stop once the standard error of the mean direction is this angle (radians); None: never. Under another distance
               than l2 the mean is off by more, and nothing shows it
    orient     ask the label of every question. Without labels, displacements are signed by what most of them have in common, and
               the model may be upside down

    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 10.0)
    >>> found = average_directions(ModelOracle(secret, "l2"), budget=4, rng=0)
    >>> found.hyperplane.is_equivalent(secret), found.spent
    (True, Spent(explanations=2, labels=2))
    """

    def run(attempt: Attempt) -> Extraction:
        attempt.need_explanations("direction averaging")
        labelling = attempt.orient and attempt.session.can_label
        questions, limit = Questions(attempt), attempt.limit(REQUESTS)
        attempt.session.require(1 + labelling, "an explanation" + " and its label" * labelling)
        asker = Asker(attempt, questions, limit)
        answers: list[FloatArray] = []
        steps: list[FloatArray] = []
        sides: list[int] = []
        while asker.left:
            x, label = questions.label() if labelling else (questions.draw(1)[0], 0)
            answer = asker.explain(x, label)
            if answer is None:
                continue
            answers.append(answer)
            side = label or NO  # without a label all count as No, until `_signed` sorts them
            steps.append(-side * _unit(answer - x))
            sides.append(side)
            if attempt.accuracy is not None and standard_error(_signed(steps, labelling)[0]) <= attempt.accuracy:
                break
        asker.refuse_silence()
        towards, flips = _signed(steps, labelling)
        normal = towards.mean(axis=0)
        if not np.linalg.norm(normal) > 0:
            raise ExtractionFailed("the displacements cancel: on average they show no direction. Give a larger budget=")
        normal = _unit(normal)
        return attempt.result(
            Hyperplane(normal, mean_level(np.array(answers) @ normal, flips * np.array(sides))),
            np.array(answers),
            f"average direction of {len(answers)} explanations",
            (
                "displacements point along the normal on average: true for l2, not for other distances",
                "explanations lie on the boundary on average",
                *(() if labelling else ("no label told which side is Yes",)),
            ),
            oriented=labelling,
        )

    return attempted(run, oracle, accuracy, start, bounds, orient, budget, rng, record)


def mean_level(levels: FloatArray, sides: IntArray) -> float:
    """The mean of the answers' levels, of both sides of the boundary alike: what they overshoot then cancels."""
    return float(np.mean([levels[sides == side].mean() for side in (YES, NO) if (sides == side).any()]))


def standard_error(directions: FloatArray) -> float:
    """About how far (radians) the mean of unit rows is off by chance; infinite for fewer than two."""
    n = len(directions)
    mean = directions.mean(axis=0)
    length = float(np.linalg.norm(mean))
    if n < 2 or length == 0:
        return math.inf
    return float(np.linalg.norm(directions - mean)) / math.sqrt(n * (n - 1)) / length


def _signed(steps: list[FloatArray], labelled: bool) -> tuple[FloatArray, IntArray]:
    """The directions, all towards the same side, and the signs that took: without labels, those of their main axis."""
    rows = np.array(steps)
    if labelled:
        return rows, np.ones(len(rows), dtype=np.int64)
    axis = np.linalg.svd(rows, full_matrices=False)[2][0]
    along = rows @ axis
    signs = np.where(along * (along[0] or 1.0) >= 0, 1, -1)
    return signs[:, None] * rows, signs


def _unit(step: FloatArray) -> FloatArray:
    """The vector at length 1, whatever its scale."""
    scaled = step / np.abs(step).max()
    return np.asarray(scaled / np.linalg.norm(scaled))
