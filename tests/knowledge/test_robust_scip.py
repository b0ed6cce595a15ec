"""Verdicts from robust counterfactuals against SCIP, which solves the strict problem itself to global optimality.

And the models behind an open point against the definition: they give the log's labels, and its explanations are the nearest points
whose whole ball lies on the other side.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox
from overexplain.knowledge.verdicts import Verdict
from strict_scip import power_and_weights, strict_extreme

DISTANCES = ("l1", "linf", "weighted l1", "weighted linf")
BALLS = ("l1", "l2", "linf", "lp:3", "weighted l2", "weighted linf")
BASES = 3
NEAR = 1e-3
"""How close to a change of verdict points are asked about, in the distance's unit."""


@dataclass(frozen=True)
class Case:
    """A log, the model that gave it, and where to ask."""

    log: ox.QueryLog
    plane: ox.Hyperplane
    bases: np.ndarray


@dataclass(frozen=True)
class Questions:
    """Points, and their verdicts according to SCIP."""

    points: np.ndarray
    verdicts: list[Verdict]


def norm_of(name: str, p: int, rng: np.random.Generator) -> ox.Norm:
    weights = rng.choice([0.5, 1.0, 1.5, 2.0], p)
    return (
        ox.Weighted(ox.norm(name.removeprefix("weighted ")), weights) if name.startswith("weighted") else ox.norm(name)
    )


def beside(plane: ox.Hyperplane, rng: np.random.Generator, margin: float) -> np.ndarray:
    """A random point with a·x − b = margin."""
    x = rng.normal(size=plane.dimension) * 1.5
    return x + (margin - plane.margin(x)) * plane.normal / (plane.normal @ plane.normal)


@cache
def case(distance: str, ball: str) -> Case:
    """One to three robust answers, of one radius or two, up to 2p labels, now and then a plain counterfactual."""
    number = DISTANCES.index(distance) * len(BALLS) + BALLS.index(ball)
    rng = np.random.default_rng(number)
    p = 3 + number % 4
    plane = ox.Hyperplane(rng.normal(size=p), rng.normal())
    metric, round_ball = norm_of(distance, p, rng), norm_of(ball, p, rng)
    log = ox.QueryLog()
    for k in range(1 + number % 3):
        terms = ox.Mechanism(metric, robustness=round_ball, radius=(0.4, 0.7)[k % 2])
        x = beside(plane, rng, rng.choice([-1, 1]) * rng.uniform(0.3, 3))
        log.add_explanation(x, ox.ModelOracle(plane, terms).explain(x), int(plane.label(x)), terms)
    if number % 5 == 0:
        terms, x = ox.Mechanism(metric), beside(plane, rng, 1.0)
        log.add_explanation(x, ox.ModelOracle(plane, terms).explain(x), int(plane.label(x)), terms)
    for _ in range(int(rng.integers(0, 2 * p + 1))):
        x = beside(plane, rng, rng.normal())
        log.add_label(x, int(plane.label(x)))
    sizes = rng.uniform(0.05, 1.2, BASES) * rng.choice([-1, 1], BASES)
    return Case(log, plane, np.array([beside(plane, rng, size) for size in sizes]))


@cache
def questions(distance: str, ball: str) -> Questions:
    """Each base as it is, and moved to just before and just behind either change of its verdict.

    Along the step v of an explanation all models with ‖a‖*_N1 = 1 rise equally fast, by 1: that moves both extremes alike.
    """
    given = case(distance, ball)
    row = given.log[int(given.log.explained[0])]
    step = row.explanation - row.point
    rise = -row.label * step / length(row.mechanism.distance, step)
    points, verdicts = [], []
    for x in given.bases:
        highest, lowest = strict_extreme(given.log, x, 1), strict_extreme(given.log, x, -1)
        assert highest is not None
        assert lowest is not None
        for shift in (0.0, *(near - extreme.value for extreme in (highest, lowest) for near in (NEAR, -NEAR))):
            top, bottom = highest.value + shift, lowest.value + shift
            if min(abs(top), abs(bottom)) > 1e-6:
                points.append(x + shift * rise)
                verdicts.append(Verdict.NO if top < 0 else Verdict.YES if bottom > 0 else Verdict.UNKNOWN)
    return Questions(np.array(points), verdicts)


PAIRS = [(distance, ball) for distance in DISTANCES for ball in BALLS]


# --- the definition, in plain NumPy and a linear program --------------------------------------------------------------


def reach(normal: np.ndarray, ball: ox.Norm) -> float:
    """The most that a·u can be over the unit ball: at a corner, or where the ball's normal is a."""
    q, weights = power_and_weights(ball, len(normal))
    slopes = np.abs(normal) / weights  # u = z/weights with ‖z‖_q ≤ 1
    if q == 1:
        return float(slopes.max())
    if q == np.inf:
        return float(slopes.sum())
    z = slopes ** (1 / (q - 1))
    return float(slopes @ z / (z**q).sum() ** (1 / q))


def shortest_way(normal: np.ndarray, level: float, x: np.ndarray, metric: ox.Norm) -> float:
    """The least distance from x to {z : a·z ≥ level}, ℓ1 or ℓ∞, by a linear program: z − x = plus − minus."""
    q, weights = power_and_weights(metric, len(x))
    p = len(x)
    rise = np.concatenate([normal, -normal])
    if q == 1:
        best = linprog(np.concatenate([weights, weights]), A_ub=-rise[None], b_ub=[normal @ x - level])
        return float(best.fun)
    most = np.hstack([np.diag(np.concatenate([weights, weights])), -np.ones((2 * p, 1))])
    rows = np.vstack([np.append(-rise, 0.0), most])
    best = linprog(np.eye(2 * p + 1)[-1], A_ub=rows, b_ub=np.concatenate([[normal @ x - level], np.zeros(2 * p)]))
    return float(best.fun)


def length(metric: ox.Norm, w: np.ndarray) -> float:
    q, weights = power_and_weights(metric, len(w))
    moved = weights * np.abs(w)
    return float(moved.sum() if q == 1 else moved.max())


def gives(normal: np.ndarray, offset: float, row, close: float = 1e-7) -> bool:
    """True if this model gives the row's answer: its label, and the nearest point whose whole ball lies across."""
    size = np.abs(normal).max()
    normal, offset = normal / size, offset / size
    own = normal @ row.point - offset
    if row.label is not None and (own >= -close) != (row.label == ox.YES) and abs(own) > close:
        return False
    if row.explanation is None:
        return True
    side = -row.label
    terms = row.mechanism
    ball = terms.radius * reach(normal, terms.robustness) if terms.radius else 0.0
    across = side * (normal @ row.explanation - offset) - ball
    best = shortest_way(side * normal, side * offset + ball, row.point, terms.distance)
    return across >= -close and length(terms.distance, row.explanation - row.point) <= best + close


def test_the_definition_tells_models_apart() -> None:
    """The model that gave a log fits it, and hardly any other does."""
    for names in PAIRS[::5]:
        given = case(*names)
        rows = [given.log[i] for i in range(len(given.log))]
        assert all(gives(given.plane.normal, given.plane.offset, row) for row in rows)
        moved = given.plane.normal * np.linspace(1.0, 1.3, given.plane.dimension)
        assert not all(gives(moved, given.plane.offset, row) for row in rows)
        assert not all(gives(given.plane.normal, given.plane.offset + 1e-3, row) for row in rows)


@pytest.mark.parametrize(("distance", "ball"), PAIRS)
def test_the_models_of_scip_fit(distance, ball) -> None:
    """SCIP's two models at the first point, by the definition: the second opinion is one. The model that answered is between."""
    given = case(distance, ball)
    x, normal = given.bases[0], given.plane.normal
    truth = (normal @ x - given.plane.offset) / reach(normal, given.log[0].mechanism.distance)
    for sense in (1, -1):
        model = strict_extreme(given.log, x, sense)
        assert model is not None
        assert all(gives(model.normal, model.offset, given.log[i], 1e-6) for i in range(len(given.log)))
        assert sense * model.value >= sense * truth - 1e-6


# --- the engine -------------------------------------------------------------------------------------------------------


@cache
def knowledge(distance: str, ball: str) -> ox.Knowledge:
    return ox.Knowledge(case(distance, ball).log, robust="exact")


@pytest.mark.parametrize(("distance", "ball"), PAIRS)
def test_verdicts_are_those_of_scip(distance, ball) -> None:
    asked = questions(distance, ball)
    verdicts = knowledge(distance, ball).certify(asked.points)
    assert [verdicts[i] for i in range(len(verdicts))] == asked.verdicts


@pytest.mark.parametrize(("distance", "ball"), PAIRS)
def test_models_that_disagree_give_every_answer(distance, ball) -> None:
    """Both models behind an open point, by the definition; and they do disagree."""
    log, points = case(distance, ball).log, questions(distance, ball).points
    verdicts = knowledge(distance, ball).certify(points)
    for i in np.flatnonzero(verdicts.codes == Verdict.UNKNOWN)[:4]:
        proof = verdicts.proof(int(i))
        for model, says in ((proof.yes, ox.YES), (proof.no, ox.NO)):
            normal, offset = np.array([float(v) for v in model.normal]), float(model.offset)
            assert (normal @ points[i] - offset >= 0) == (says == ox.YES)
            assert all(gives(normal, offset, log[k]) for k in range(len(log)))


def test_enough_points_of_every_verdict_are_compared() -> None:
    told = Counter(verdict for names in PAIRS for verdict in questions(*names).verdicts)
    assert told.total() >= 300
    assert min(told[verdict] for verdict in (Verdict.YES, Verdict.NO, Verdict.UNKNOWN)) >= 60, told
