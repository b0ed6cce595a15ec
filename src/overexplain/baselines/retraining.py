"""Retraining (Tramèr, Zhang, Juels, Reiter, Ristenpart 2016, section 6): labels only, and a model trained on them.

"uniform"      all questions at random
"line-search"  questions on lines between a Yes and a No, halving the gap: both ends close in on the boundary
"adaptive"     in rounds: train, then ask along the boundary of what was trained
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from overexplain.baselines.attempt import AnyOracle, Attempt, Rng, attempted
from overexplain.baselines.knobs import as_positive
from overexplain.baselines.learners import STRENGTH, trained
from overexplain.baselines.questions import Questions
from overexplain.errors import InvalidInput
from overexplain.extraction.result import Extraction
from overexplain.geometry.arrays import FloatArray, as_whole
from overexplain.geometry.hyperplane import NO, YES, Hyperplane

Variant = Literal["uniform", "line-search", "adaptive"]

ALPHA = 20.0
"""Without a budget, α(p + 1) labels are asked; the paper has α from 0.5 to 100."""

ROUNDS = 10
"""Rounds of adaptive retraining."""

GAP = 1e-3
"""Line search goes on until the gap is this share of the line it began with."""

CANDIDATES = 20
"""So many random points are looked at for each one that is asked."""


def retrain_adaptively(
    oracle: AnyOracle,
    *,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: Rng = None,
    record: bool = True,
    variant: Variant = "adaptive",
    rounds: int = ROUNDS,
    alpha: float = ALPHA,
    strength: float = STRENGTH,
) -> Extraction:
    """The model that a learner finds from labels of well chosen points; all of the budget, or α(p + 1) labels, are asked.

    accuracy   stop once two rounds in a row differ by no more than this angle (radians); None: never
    orient     of no effect: labels tell the sides anyway
    variant    how points are chosen (see above); rounds: of the adaptive variant
    alpha      without a budget, α(p + 1) labels are asked
    strength   scikit-learn's C of the logistic regression: how much examples count

    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 1.0)
    >>> found = retrain_adaptively(ModelOracle(secret, "l2"), bounds=(-1.0, 1.0), budget=60, rng=0)
    >>> found.spent.labels, found.hyperplane.angle_to(secret) < 0.05
    (60, True)
    """
    if variant not in get_args(Variant):
        raise InvalidInput(f"variant must be one of {', '.join(get_args(Variant))}, got {variant!r}")
    weight, share, times = as_positive(strength, "strength"), as_positive(alpha, "alpha"), as_whole(rounds, "rounds")

    def run(attempt: Attempt) -> Extraction:
        attempt.need_labels("retraining")
        limit = attempt.limit(max(2, int(np.ceil(share * (attempt.dimension + 1)))))
        attempt.session.require(2, "training on two labels")
        work = _Retraining(attempt, weight)
        if variant == "line-search":
            work.search_lines(limit)
        else:
            work.retrain(limit, times if variant == "adaptive" else 1)
        return attempt.result(
            work.fit(),
            np.array(work.points),
            f"{variant} retraining with {len(work.labels)} labels (Tramèr et al. 2016)",
            (
                "the model is linear",
                "labels are right",
                "the learner finds a model near the true one: no error is known",
            ),
        )

    return attempted(run, oracle, accuracy, start, bounds, orient, budget, rng, record)


class _Retraining:
    """The labelled points so far, and where to ask next."""

    def __init__(self, attempt: Attempt, strength: float) -> None:
        self.attempt, self.strength = attempt, strength
        self.questions = Questions(attempt)
        self.points: list[FloatArray] = []
        self.labels: list[int] = []

    def ask_random(self) -> None:
        """One more question anywhere."""
        x, label = self.questions.label()
        self.points.append(x)
        self.labels.append(label)

    def ask(self, x: FloatArray) -> int:
        """The label of x, kept for training."""
        label = self.attempt.session.label(x)
        self.questions.note(label)
        self.points.append(x)
        self.labels.append(label)
        return label

    def fit(self) -> Hyperplane:
        """The model trained on all labels so far."""
        self.questions.refuse_one_side()
        return trained(np.array(self.points), np.array(self.labels, dtype=np.int64), self.questions, self.strength)

    def retrain(self, limit: int, rounds: int) -> None:
        """Random questions first, then `rounds` − 1 times as many along the boundary of the model trained so far."""
        earlier: Hyperplane | None = None
        for part in range(rounds):
            goal = limit * (part + 1) // rounds
            if part == 0 or len(self.questions.seen) < 2:
                while len(self.labels) < goal:
                    self.ask_random()
                continue
            if goal == len(self.labels):
                continue
            guess = self.fit()
            if earlier is not None and guess.angle_to(earlier) <= (self.attempt.accuracy or -1.0):
                return
            earlier = guess
            for x in self.along(guess, goal - len(self.labels)):
                self.ask(x)

    def along(self, plane: Hyperplane, n: int) -> FloatArray:
        """n questions on the plane: where lines between random points on either side cross it; discrete inputs: the nearest."""
        pool = self.questions.draw(CANDIDATES * n)
        margins = plane.margin(pool)
        above, below = pool[margins >= 0], pool[margins < 0]
        if self.questions.is_discrete or not len(above) or not len(below):
            return pool[np.argsort(np.abs(margins), kind="stable")[:n]]
        rng = self.attempt.rng
        upper, lower = above[rng.integers(len(above), size=n)], below[rng.integers(len(below), size=n)]
        high, low = plane.margin(upper), plane.margin(lower)
        share = (high / (high - low))[:, None]
        return np.array([self.attempt.where.clip(x) for x in upper + share * (lower - upper)])

    def search_lines(self, limit: int) -> None:
        """Lines between a random Yes and a random No, halved until the gap is small; then the next line."""
        if self.questions.is_discrete:
            raise InvalidInput(
                'variant "line-search" asks points between others, but this service takes one-hot groups or whole numbers '
                'only: use "adaptive" or "uniform"'
            )
        while len(self.labels) < limit:
            self.ask_random()
            newest = self.points[-1], self.labels[-1]
            others = [x for x, label in zip(self.points, self.labels, strict=True) if label == -newest[1]]
            if not others:
                continue
            other = others[int(self.attempt.rng.integers(len(others)))]
            ends = {newest[1]: newest[0], -newest[1]: other}
            share = 1.0
            while share > GAP and len(self.labels) < limit:
                middle = ends[YES] / 2 + ends[NO] / 2
                ends[self.ask(middle)] = middle
                share /= 2
