"""What an attacker who chooses the questions needs to learn the model's direction, carried out against the service itself.

Several attacks are tried and the cheapest that works counts, chosen with hindsight; that it worked is judged by who knows the
model. So a cost is a measurement, rather too low than too high, and "not found" is no proof.

An attacker without labels has one way more than estimators: an explanation leads across the boundary, so its direction tells the
decision on its question, and bisection needs nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from overexplain.auditing.defending.explanations_only import ExplanationsOnly, Pool, SidesRead
from overexplain.auditing.defending.guesses import Guess, guesses_for, main_axis, read_sides, rough_normal
from overexplain.auditing.defending.setting import Setting
from overexplain.errors import InvalidInput, OverexplainError
from overexplain.extraction.extract import extract
from overexplain.extraction.labels.floors import predicted_labels
from overexplain.extraction.result import Extraction
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.wrappers import LabelsOnly

STEP = 1.25
"""Numbers of explanations are tried on a grid, each about so many times the one before."""

FIRST_LOOK = 4
"""So many explanations show whether steps are parallel."""

PROBES = (1, 3, 8)
"""Where steps are not parallel, so many times as many explanations, and times p, are tried to read sides with."""

UNSAID = 6
"""Where the terms say nothing, theorems are tried with so many times p explanations, after those that look for the terms."""

LOOKING = 20
"""Explanations that looking for the terms takes."""


@dataclass(frozen=True)
class Attempt:
    """One attack: what it spent, how far off it ended (radians), and whether that is as near as wanted."""

    explanations: int
    labels: int
    method: str
    error: float
    succeeded: bool
    certified: bool = False

    @property
    def requests(self) -> float:
        """Explanations and decisions; infinite if it did not succeed."""
        return self.explanations + self.labels if self.succeeded else math.inf


NOTHING = Attempt(0, 0, "none", math.inf, False)
"""No attack got as far as a guess."""


@dataclass(frozen=True, eq=False)
class Attacker:
    """Who attacks: the direction wanted to within `accuracy`, with at most `limit` requests."""

    setting: Setting
    accuracy: float
    limit: int

    def explained(self, oracle: Oracle, rng: np.random.Generator, labels_price: float) -> Attempt:
        """The cheapest attack with explanations alone; `labels_price`: about what bisection takes."""
        silent = ExplanationsOnly(oracle)
        best = self._by_theorem(silent, rng)
        if best.requests > labels_price:
            best = cheaper(best, self.by_reading_sides(silent, rng))
        # Last, because the fewer explanations are left to beat, the sooner it is done.
        return cheaper(best, self.by_guessing(silent, rng, _cap(best, self.limit)))

    def with_labels(
        self, oracle: Oracle, rng: np.random.Generator, *others: Attempt, most: int | None = None
    ) -> Attempt:
        """The cheapest attack that may also ask labels, of explanations at most `most`; `others` are attempts already made."""
        best = NOTHING
        for other in others:
            best = cheaper(best, other)
        if best.requests <= oracle.dimension + 2:
            return best
        ways = ["auto"]
        if oracle.mechanism is None or oracle.mechanism.slack != 0 or oracle.mechanism.tolerance:
            ways.append("warm")
        for way in ways:
            found = self._extracted(oracle, rng, way)
            if most is None or found.explanations <= most:
                best = cheaper(best, found)
        return best

    def labels_only(self, oracle: Oracle, rng: np.random.Generator) -> Attempt:
        """The attack that asks no explanation."""
        return self._extracted(LabelsOnly(oracle), rng)

    def by_guessing(self, oracle: ExplanationsOnly, rng: np.random.Generator, cap: int) -> Attempt:
        """The fewest explanations, below `cap`, from which some estimator finds the direction; the best error at most, if none."""
        apart = self._pool(oracle, rng)
        along = Pool(oracle, self.setting, "along", rng)
        grid = [n for n in _grid(oracle.dimension, self.limit) if n < cap]
        best = NOTHING
        for name, guess in guesses_for(None if oracle.mechanism is None else oracle.mechanism.distance).items():
            if not grid:
                break
            pool = along if name == "mean step" else apart
            last = self._guess(pool, guess, name, grid[-1])
            best = cheaper(best, last)
            if not last.succeeded:
                continue
            low, high = -1, len(grid) - 1  # grid[high] succeeded
            while high - low > 1:
                middle = (low + high) // 2
                attempt = self._guess(pool, guess, name, grid[middle])
                best = cheaper(best, attempt)
                low, high = (low, middle) if attempt.succeeded else (middle, high)
            grid = grid[:high]  # what another estimator would have to beat
        return best

    def by_reading_sides(self, oracle: ExplanationsOnly, rng: np.random.Generator) -> Attempt:
        """Bisection, every label read off an explanation: which way it leads along the normal that some others suggest."""
        pool, best = self._pool(oracle, rng), NOTHING
        shares = (1,) if pool.design == "wide" else PROBES
        for count in (share * FIRST_LOOK * (1 if pool.design == "wide" else oracle.dimension) for share in shares):
            X, Z = pool.first(count)
            if not len(X) or count >= self.limit:
                break
            along = main_axis(Z - X) if pool.design == "wide" else rough_normal(X, Z)
            answered = -1 if float(along @ (Z - X)[0]) >= 0 else 1
            found = self._extracted(SidesRead(oracle, along, answered), rng, "labels", self.limit - count)
            method = f"sides read off explanations, then {found.method}"
            best = cheaper(
                best, replace(found, explanations=count + found.labels, labels=0, method=method, certified=False)
            )
            if best.succeeded:
                break
        return best

    def _pool(self, oracle: ExplanationsOnly, rng: np.random.Generator) -> Pool:
        """Questions wide apart if all answers lie in one direction; ordinary ones if they depend on what is near."""
        wide = Pool(oracle, self.setting, "wide", rng)
        return wide if wide.is_parallel(FIRST_LOOK) else Pool(oracle, self.setting, "ordinary", rng)

    def _by_theorem(self, oracle: ExplanationsOnly, rng: np.random.Generator) -> Attempt:
        """What `extract` makes of the published terms; where they say nothing it may look for them, but not average for long."""
        terms, p = oracle.mechanism, oracle.dimension
        said = terms is not None and terms.slack is not None
        return self._extracted(oracle, rng, budget=min(self.limit, self.limit if said else LOOKING + UNSAID * p))

    def _guess(self, pool: Pool, guess: Guess, name: str, count: int) -> Attempt:
        X, Z = pool.first(count)
        if not len(X):
            return NOTHING
        try:
            normal = guess(X, Z, read_sides(X, Z))
        except (InvalidInput, np.linalg.LinAlgError):  # too few answers
            return NOTHING
        error = self._error(Hyperplane(normal, 0.0))
        return Attempt(count, 0, name, error, error <= self.accuracy)

    def _extracted(
        self, oracle: Any, rng: np.random.Generator, strategy: str = "auto", budget: int | None = None
    ) -> Attempt:
        try:
            found = extract(
                oracle,
                strategy,
                self.accuracy,
                bounds=self.setting.bounds,
                orient=False,
                budget=self.limit if budget is None else max(0, budget),
                rng=rng,
                confirm=0,  # the copy is held against the model itself
            )
        except OverexplainError:
            return NOTHING
        return self._judged(found)

    def _judged(self, found: Extraction) -> Attempt:
        error = self._error(found.hyperplane)
        certified = found.error_bound is not None and found.error_bound <= self.accuracy
        return Attempt(
            found.spent.explanations, found.spent.labels, found.method, error, error <= self.accuracy, certified
        )

    def _error(self, plane: Hyperplane) -> float:
        """The angle to the true normal, whichever side is Yes."""
        angle = plane.angle_to(self.setting.plane)
        return min(angle, math.pi - angle)


def cheaper(one: Attempt, other: Attempt) -> Attempt:
    """The attempt that took fewer requests; if none succeeded, the one that came closer."""
    if one.requests == other.requests == math.inf:
        return one if one.error <= other.error else other
    return one if one.requests <= other.requests else other


def median_attempt(attempts: list[Attempt]) -> Attempt:
    """The run in the middle, by cost; those that did not succeed come last, by error."""
    ordered = sorted(attempts, key=lambda attempt: (attempt.requests, attempt.error))
    return ordered[len(ordered) // 2]


def bisection_price(p: int, accuracy: float) -> float:
    """About what labels alone cost."""
    return float(predicted_labels(p, accuracy))


def _grid(p: int, limit: int) -> list[int]:
    """Numbers of explanations to try, rising: 1, 2, …, those around p, and about 1.25 times as many each time."""
    wanted = {1, 2, 3, 4, p, p + 1, p + 2, limit}
    n = 4.0
    while n < limit:
        wanted.add(round(n))
        n *= STEP
    return sorted(n for n in wanted if 1 <= n <= limit)


def _cap(best: Attempt, limit: int) -> int:
    return limit + 1 if best.requests == math.inf else int(best.requests)
