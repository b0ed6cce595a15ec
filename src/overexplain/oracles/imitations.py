"""Explanation services as people run them, imitated: what each does, and what it says about itself.

`imitate(name, hyperplane, rows)` makes one for a logistic regression (probability of Yes: 1 / (1 + exp(−margin))) and the rows
it was trained on. Each publishes what such a service documents, which is not always what it does:

    solver                l1 by a linear program with a safety margin: every answer 1e-3 past the boundary
    solver-linf float32   exact linf, answers in float32
    wachter               gradient descent on the logistic loss with an l2 penalty: the right direction, too far
    adam-l1               the Adam optimizer with an l1 penalty: documented as l1, but it moves along sign(normal), as linf does
    dice-random           random features get random values until the label flips, then go back where they can; 2 decimals
    nice                  the nearest row with the other label, then features are put back one by one
    nearest-neighbour     the nearest row with the other label
    mip-recourse          exact l1 inside the rows' range, some features immutable, only for the denied
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_generator, as_rows
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.constrained import Boxed, Immutable
from overexplain.oracles.degraded import Float32, NearestRow, Overshoot
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.silent import OneSided
from overexplain.oracles.wrapper import Wrapper, one_by_one

SAFETY_MARGIN = 1e-3
DESCENT_CONFIDENCE = math.log(0.7 / 0.3)
"""The log-odds at which a descent takes its point for an answer: a probability of 0.7."""
NICE_CONFIDENCE = math.log(0.55 / 0.45)
IMMUTABLE_SHARE = 0.1
HEURISTIC = Mechanism(None, slack=None)


@final
class Wachter(Wrapper):
    """Gradient descent on logistic loss + penalty·‖z − x‖₂², the penalty relaxed until the new label is likely enough.

    Every gradient is a multiple of the normal, so one number, the distance walked along it, describes the whole path.
    """

    rate, steps, penalties = 0.05, 1000, (1.0, 0.1, 0.01, 1e-3, 1e-4)

    def __init__(self, model: ModelOracle) -> None:
        super().__init__(model, own=Mechanism("l2", slack=None))
        self._plane = model.hyperplane

    def explain(self, x: ArrayLike) -> Any:
        """The first point of the descent at which the new label is likely enough; None if it never is."""
        return one_by_one(self._descend, x, self.dimension)

    def _descend(self, x: FloatArray) -> FloatArray | None:
        length = float(np.linalg.norm(self._plane.normal))
        side, log_odds = self._plane.label(x), abs(self._plane.margin(x))
        for penalty in self.penalties:
            walked = 0.0
            for _ in range(self.steps):
                against = log_odds - walked * length  # the log-odds of the old label
                if against <= -DESCENT_CONFIDENCE:
                    return np.asarray(x - side * walked / length * self._plane.normal)
                walked += self.rate * (_probability(against) * length - 2 * penalty * walked)
        return None


@final
class AdamL1(Wrapper):
    """Adam on logistic loss + penalty·‖z − x‖₁. Its steps are normalised feature by feature, so all features move alike."""

    rate, steps, penalty = 0.02, 2000, 1e-4
    decay, square_decay, smallest = 0.9, 0.999, 1e-8

    def __init__(self, model: ModelOracle) -> None:
        super().__init__(model, own=Mechanism("l1", slack=None))
        self._plane = model.hyperplane

    def explain(self, x: ArrayLike) -> Any:
        """The first point of the descent at which the new label is likely enough; None if it never is."""
        return one_by_one(self._descend, x, self.dimension)

    def _descend(self, x: FloatArray) -> FloatArray | None:
        side, z = self._plane.label(x), x.copy()
        mean, square = np.zeros(len(x)), np.zeros(len(x))
        for step in range(1, self.steps + 1):
            gradient = side * _probability(side * self._plane.margin(z)) * self._plane.normal
            gradient = gradient + self.penalty * np.sign(z - x)
            mean = self.decay * mean + (1 - self.decay) * gradient
            square = self.square_decay * square + (1 - self.square_decay) * gradient**2
            unbiased = mean / (1 - self.decay**step)
            spread = np.sqrt(square / (1 - self.square_decay**step))
            z = z - self.rate * unbiased / (spread + self.smallest)
            if side * self._plane.margin(z) <= -DESCENT_CONFIDENCE:
                return z
        return None


@final
class RandomResampling(Wrapper):
    """Features drawn at random, more and more of them, get values from the rows' range until the label flips.

    Afterwards each goes back to where it was, or at least half the way, if the label stays flipped. New values have 2 decimals.
    """

    rounds, decimals, ways_back = 20, 2, (1.0, 0.5)

    def __init__(self, oracle: Oracle, rows: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(oracle, own=HEURISTIC)
        self._low, self._high, self._rng = rows.min(axis=0), rows.max(axis=0), rng

    def explain(self, x: ArrayLike) -> Any:
        """A random point across the boundary, partly pulled back; None if none was found."""
        return one_by_one(self._search, x, self.dimension)

    def _search(self, x: FloatArray) -> FloatArray | None:
        label, p = self.wrapped.classify(x), len(x)
        for _ in range(self.rounds):
            drawn = np.round(self._rng.uniform(self._low, self._high, (p, p)), self.decimals)
            # Row k keeps k + 1 random features of the drawn point.
            chosen = self._rng.permuted(np.tile(np.arange(p), (p, 1)), axis=1) <= np.arange(p)[:, None]
            candidates = np.where(chosen, drawn, x)
            flipped = np.flatnonzero(np.asarray(self.wrapped.classify(candidates)) != label)
            if len(flipped):
                return self._pull_back(x, candidates[int(flipped[0])], label)
        return None

    def _pull_back(self, x: FloatArray, z: FloatArray, label: int) -> FloatArray:
        for i in self._rng.permutation(np.flatnonzero(z != x)):
            for share in self.ways_back:
                nearer = z.copy()
                nearer[i] = x[i] if share == 1 else np.round(z[i] + share * (x[i] - z[i]), self.decimals)
                if self.wrapped.classify(nearer) != label:
                    z = nearer
                    break
        return z


@final
class PutBack(Wrapper):
    """A row of the other label, with one feature after another put back to its old value: the least useful changes first.

    A change is kept if without it the new label would no longer be likely enough.
    """

    def __init__(self, nearest: NearestRow, hyperplane: Hyperplane) -> None:
        super().__init__(nearest, own=HEURISTIC)
        self._plane = hyperplane

    def explain(self, x: ArrayLike) -> Any:
        """The nearest row of the other label, made as similar to x as the label allows; None if there is no such row."""
        return one_by_one(self._put_back, x, self.dimension)

    def _put_back(self, x: FloatArray) -> FloatArray | None:
        z, side = self.wrapped.explain(x), self._plane.label(x)
        if z is None:
            return None
        use = -side * self._plane.normal * (z - x)
        for i in np.argsort(use, kind="stable"):
            nearer = z.copy()
            nearer[i] = x[i]
            if use[i] <= 0 or side * self._plane.margin(nearer) <= -NICE_CONFIDENCE:
                z = nearer
            else:
                break  # what follows is worth more, and could go back even less
        return np.asarray(z)


def _probability(log_odds: float) -> float:
    """1 / (1 + exp(−log_odds)), without overflow."""
    return 0.5 * (1 + math.tanh(0.5 * log_odds))


IMITATIONS = (
    "solver", "solver-linf float32", "wachter", "adam-l1", "dice-random", "nice", "nearest-neighbour", "mip-recourse",
)  # fmt: skip


def imitate(name: str, hyperplane: Hyperplane, rows: ArrayLike, rng: int | np.random.Generator | None = None) -> Oracle:
    """The named service for this model, trained on these rows; `rng` decides dice-random's draws and which features are immutable.

    >>> service = imitate("solver", Hyperplane([3.0, -1.0], 0.5), [[1.0, 0.0], [0.0, 1.0]])
    >>> service.explain([0.0, 0.0]).round(4), service.mechanism.describe()
    (array([0.1677, 0.    ]), 'l1')
    """
    data, generator = as_rows(rows, hyperplane.dimension, "rows").copy(), as_generator(rng)
    if not len(data):
        raise InvalidInput("an imitation needs at least one row: services learn ranges and neighbours from them")
    match name:
        case "solver":
            return Overshoot(ModelOracle(hyperplane, "l1"), SAFETY_MARGIN, published=Mechanism("l1"))
        case "solver-linf float32":
            return Float32(ModelOracle(hyperplane, "linf"))
        case "wachter":
            return Wachter(ModelOracle(hyperplane, "l2"))
        case "adam-l1":
            return AdamL1(ModelOracle(hyperplane, "l1"))
        case "dice-random":
            return RandomResampling(ModelOracle(hyperplane, "l1"), data, generator)
        case "nice":
            return PutBack(NearestRow(ModelOracle(hyperplane, "l2"), data), hyperplane)
        case "nearest-neighbour":
            return NearestRow(ModelOracle(hyperplane, "l2"), data)
        case "mip-recourse":
            p = hyperplane.dimension
            immutable = generator.choice(p, min(p - 1, math.ceil(IMMUTABLE_SHARE * p)), replace=False)
            inside = Boxed(ModelOracle(hyperplane, "l1"), data.min(axis=0), data.max(axis=0))
            return OneSided(Immutable(inside, immutable.tolist()))
        case _:
            raise InvalidInput(f"unknown imitation {name!r}; known are {', '.join(IMITATIONS)}")
