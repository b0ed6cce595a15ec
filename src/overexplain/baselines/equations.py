"""Equation solving (Tramèr, Zhang, Juels, Reiter, Ristenpart 2016, section 4.1): p + 1 probabilities are p + 1 linear equations.

log(s/(1 − s)) = normal·x − offset, with s the score of x: solved for normal and offset, by least squares if there are more.
A score of 0 or 1, or nearly, has lost its digits: it is dropped, and the next question lies nearer to the boundary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.baselines.attempt import AnyOracle, Attempt, Rng, attempted
from overexplain.baselines.questions import Questions
from overexplain.errors import ExtractionFailed, InvalidInput
from overexplain.extraction.paid import asked
from overexplain.extraction.precision import visible_grid
from overexplain.extraction.result import Extraction, Spent
from overexplain.geometry.arrays import FloatArray, as_whole
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.oracles.protocol import offers
from overexplain.oracles.scores import checked_score

SATURATED = 8.0
"""Beyond this logit a score is dropped: near 1 float64 keeps 1 − s to 1e-16 only, so that 1e-13 of the logit is lost already."""

NEARER = 0.25
"""After a dropped score questions are drawn this much nearer to the point whose score says most."""

NEAREST = 1e-15
"""Nearer, questions differ by rounding only."""

DROPPED = 200
"""So many dropped scores and none that was kept: the service says 0 and 1 only, as far as one can see."""

INDEPENDENT = 1e-6
"""A question adds an equation if this share of it is new."""

DRAWS = 200
"""So many random inputs are looked at for one that does."""


def solve_equations(
    oracle: AnyOracle,
    *,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: Rng = None,
    record: bool = True,
    equations: int | None = None,
) -> Extraction:
    """The logistic regression behind p + 1 scores, or behind more of them (`equations`) where scores are rounded.

    A score counts as a label, and is logged as one (Yes above ½; ½ itself tells no side and is left out), with the score as its
    source. BudgetExhausted if the budget cannot pay for as many scores as there are unknowns.

    accuracy, orient   of no effect: the equations are exact up to rounding, and scores tell the sides

    >>> from overexplain.oracles.scores import Scored
    >>> secret = Hyperplane([3.0, 4.0], 1.0)
    >>> found = solve_equations(Scored(secret), bounds=(-1.0, 1.0), rng=0)
    >>> found.hyperplane.is_equivalent(secret, 1e-12), found.spent
    (True, Spent(explanations=0, labels=3))
    """
    wanted = None if equations is None else as_whole(equations, "equations")

    def run(attempt: Attempt) -> Extraction:
        if not offers(oracle, "score"):
            raise InvalidInput(
                'equation solving needs probabilities, and this service gives none (no `score`): use "retraining" for labels'
            )
        work = _Equations(attempt, oracle)
        work.gather(wanted)
        plane = work.solve()
        notes = ["the model is a logistic regression: the log-odds of its score are linear"]
        grid = visible_grid(np.array(work.scores))[1]
        if grid is not None:
            notes.append(f"the scores lie on a grid ({grid}): the equations hold to its half step only")
        if work.dropped:
            notes.append(f"{work.dropped} scores of (nearly) 0 or 1 were dropped")
        return attempt.result(
            plane,
            np.array(work.points),
            f"equation solving with {len(work.scores)} scores (Tramèr et al. 2016)",
            tuple(notes),
        )

    return attempted(run, oracle, accuracy, start, bounds, orient, budget, rng, record)


class _Equations:
    """The scores that are kept, and where to ask for the next."""

    def __init__(self, attempt: Attempt, oracle: Any) -> None:
        self.attempt, self.oracle = attempt, oracle
        self.questions = Questions(attempt)
        self.points: list[FloatArray] = []
        self.scores: list[float] = []
        self.dropped = 0
        self._sure: dict[int, FloatArray] = {}  # a point of either side whose score was dropped
        self._share = 1.0  # of the way from the best point to a random one
        self._best = attempt.start  # the point whose score is nearest to ½
        self._basis = np.zeros((0, attempt.dimension + 1))

    def gather(self, wanted: int | None) -> None:
        """Ask until as many scores are kept as there are unknowns, or `wanted` if that is more."""
        unknowns = self.attempt.dimension + 1 - len(self.attempt.hidden(np.zeros((0, self.attempt.dimension))))
        self.attempt.session.require(max(unknowns, wanted or 0), "solving for the normal and the offset")
        while len(self._basis) < unknowns or len(self.scores) < (wanted or 0):
            self.attempt.session.require(max(1, unknowns - len(self._basis)), "solving for the normal and the offset")
            x = self._next(len(self._basis) < unknowns)
            score = asked_score(self.attempt, self.oracle, x)
            logit = float(log_odds(score))
            self.questions.note(YES if logit >= 0 else NO)
            if abs(logit) <= SATURATED:
                self._keep(x, score)
            else:
                self._drop(x, YES if logit > 0 else NO)

    def _keep(self, x: FloatArray, score: float) -> None:
        if abs(score - 0.5) < min((abs(earlier - 0.5) for earlier in self.scores), default=1.0):
            self._best = x
        self.points.append(x)
        self.scores.append(score)
        rest = self._rest(x)
        length = float(np.linalg.norm(rest))
        if length > INDEPENDENT:
            self._basis = np.vstack([self._basis, rest / length])

    def _drop(self, x: FloatArray, side: int) -> None:
        self.dropped += 1
        self._sure[side] = x
        if self.points:
            self._share *= NEARER
        if self._share < NEAREST or (self.dropped >= DROPPED and not self.points):
            self.questions.refuse_one_side()
            raise ExtractionFailed(
                f"{self.dropped} of {self.dropped + len(self.scores)} scores were (nearly) 0 or 1, however near to the "
                'boundary: they tell labels only. Give bounds= where they do not, or use "retraining"'
            )

    def _next(self, independent: bool) -> FloatArray:
        """The next question: at random, near the point that says most, or between a sure Yes and a sure No."""
        for _ in range(DRAWS):
            x: FloatArray = self.questions.draw(1)[0]
            if not self.questions.is_discrete:
                if self.points:
                    x = self.attempt.where.clip(self._best + self._share * (x - self._best))
                elif len(self._sure) == 2:
                    return self._sure[YES] / 2 + self._sure[NO] / 2
            if not independent or np.linalg.norm(self._rest(x)) > INDEPENDENT * self._share:
                return x
        raise ExtractionFailed(
            f"no input that the service takes adds an equation to the {len(self._basis)} there are: widen bounds=",
            unidentified=self._open(),
        )

    def _row(self, x: FloatArray) -> FloatArray:
        """The equation's coefficients, scaled so that questions from everywhere have entries of about 1."""
        return np.append((x - self.questions.middle) / self.questions.units, 1.0)

    def _rest(self, x: FloatArray) -> FloatArray:
        """The part of x's equation that the equations so far do not have."""
        rest = self._row(x)
        rest = rest / np.linalg.norm(rest)
        for _ in range(2):  # twice: the first time leaves rounding
            rest = rest - self._basis.T @ (self._basis @ rest)
        return np.asarray(rest)

    def _open(self) -> FloatArray:
        """Directions of the normal on which nothing was asked."""
        right = np.linalg.svd(self._basis[:, :-1])[2]
        return np.asarray(right[np.linalg.matrix_rank(self._basis[:, :-1]) :] / self.questions.units)

    def solve(self) -> Hyperplane:
        """The plane that fits the log-odds, each weighted by how well it is known."""
        scores = np.array(self.scores)
        step = np.maximum(visible_grid(scores)[0], np.spacing(scores))
        surety = scores * (1 - scores) / step
        surety = surety / surety.max()
        rows = np.array([self._row(x) for x in self.points])
        found = np.linalg.lstsq(surety[:, None] * rows, surety * log_odds(scores), rcond=None)[0]
        if not found[:-1].any():
            raise ExtractionFailed("all scores are equal: they show no direction. Give wider bounds=")
        normal = found[:-1] / self.questions.units
        return Hyperplane(normal, float(normal @ self.questions.middle) - float(found[-1]))


def log_odds(score: Any) -> Any:
    """log(s/(1 − s)); infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.log(score) - np.log1p(-np.asarray(score))


def asked_score(attempt: Attempt, oracle: Any, x: FloatArray) -> float:
    """The score of x: counted, checked and logged, as the label that it is at least."""
    session = attempt.session
    session.require(1, "the next score", whole=False)
    session.spent = Spent(session.spent.explanations, session.spent.labels + 1)
    score = checked_score(asked(oracle.score, x.copy(), number=session.spent.requests))
    if session.log is not None and score != 0.5:
        session.log.add_label(x, YES if score > 0.5 else NO, source=f"score {score!r}")
    return score
