"""What robust counterfactuals give away, at every level, against the truth found by sweeping all models of the plane."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest

import dyadic
import overexplain as ox
from brute import BOUNDARY, NO, UNKNOWN, YES, givens, picture
from brute import truth as plain_truth
from robust_truth import GRID, LEVELS, UNDECIDED, Truth, drawn, extremes, goldens, truth, truths

NEAR = 1e-6
"""Points nearer than this to a change of their verdict are left out: there the rounding of the answers decides."""

levels = pytest.mark.parametrize("level", LEVELS)


def weighted(name: str, *weights: float) -> ox.Norm:
    return ox.Weighted(ox.norm(name), list(weights))


PAIRS = {
    "l1/l1": ("l1", "l1"),
    "l1/l2": ("l1", "l2"),
    "l1/linf": ("l1", "linf"),
    "l1/l3": ("l1", "lp:3"),
    "linf/l1": ("linf", "l1"),
    "linf/l2": ("linf", "l2"),
    "linf/linf": ("linf", "linf"),
    "linf/l3": ("linf", "lp:3"),
    "l3/l2": ("lp:3", "l2"),
    "l2/weighted l3": ("l2", weighted("lp:3", 1, 2)),
    "weighted l1/l2": (weighted("l1", 1, 2), "l2"),
    "weighted l1/weighted linf": (weighted("l1", 0.5, 1), weighted("linf", 1, 3)),
    "weighted linf/l1": (weighted("linf", 2, 0.5), "l1"),
    "weighted linf/weighted l2": (weighted("linf", 1, 2), weighted("l2", 2, 0.5)),
    "linf/weighted l1": ("linf", weighted("l1", 1, 2)),
}
pairs = pytest.mark.parametrize("pair", PAIRS)


# --- logs of random models --------------------------------------------------------------------------------------------


def random_plane(rng: np.random.Generator) -> ox.Hyperplane:
    """A model; two in five have entries of the same few sizes, so that several answers are optimal, one in ten has a 0."""
    normal = rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], 2) if rng.random() < 0.4 else rng.normal(size=2)
    if rng.random() < 0.1:
        normal[rng.integers(2)] = 0.0
    return ox.Hyperplane(normal, rng.normal())


def random_point(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-4, 4, 2)


def explain(
    log: ox.QueryLog, plane: ox.Hyperplane, terms: ox.Mechanism, rng: np.random.Generator, secret: bool = False
) -> None:
    """Add the answer about a random point, one of the optimal ones; the log is told the radius unless it is secret."""
    x = random_point(rng)
    told = ox.Mechanism(terms.distance, robustness=terms.robustness, radius=None) if secret else terms
    answer = ox.ModelOracle(plane, terms, ties="random", rng=rng).explain(x)
    log.add_explanation(x, answer, int(plane.label(x)), told)


def random_log(
    plane: ox.Hyperplane, pair: str, rng: np.random.Generator, robust: int | None = None, secret: bool = False
) -> ox.QueryLog:
    """Up to seven labels, one to three robust answers with radii of their own (one radius if it is secret), maybe a plain one."""
    distance, robustness = PAIRS[pair]
    log = ox.QueryLog()
    for _ in range(rng.integers(0, 8)):
        x = random_point(rng)
        log.add_label(x, int(plane.label(x)))
    radii = rng.choice([0.25, 0.5, 1.0, 1.5], 3)
    for radius in radii[: robust or rng.integers(1, 4)]:
        terms = ox.Mechanism(distance, robustness=robustness, radius=float(radii[0] if secret else radius))
        explain(log, plane, terms, rng, secret)
    if rng.random() < 0.3:
        explain(log, plane, ox.Mechanism(distance), rng)
    return log


def random_points(plane: ox.Hyperplane, rng: np.random.Generator, count: int = 49) -> np.ndarray:
    """Points around, the most of them drawn towards the plane of the true model."""
    points = rng.uniform(-4, 4, (count, 2))
    normal = plane.normal / np.linalg.norm(plane.normal)
    gaps = plane.margin(points) / np.linalg.norm(plane.normal)
    return points - np.where(np.arange(count) < count // 3, 0.0, 0.85 * gaps)[:, None] * normal


@cache
def mixed_sets(pair: str, count: int = 6) -> list[tuple[ox.Hyperplane, ox.QueryLog, np.ndarray, dict[str, Truth]]]:
    """Models, logs of their answers, points, and the truth about them at every level."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng([list(PAIRS).index(pair), seed])
        plane = random_plane(rng)
        log, points = random_log(plane, pair, rng), random_points(plane, rng)
        found.append((plane, log, points, truths(log, points)))
    return found


def different(found: np.ndarray, true: Truth, points: np.ndarray) -> list[tuple[list[float], int, int]]:
    """Where the verdicts are not the true ones: the point, what was found, what is true."""
    wrong = np.flatnonzero((found != true.codes) & (true.margin > NEAR))
    return [(points[i].tolist(), int(found[i]), int(true.codes[i])) for i in wrong]


def unsound(found: np.ndarray, exact: Truth, points: np.ndarray) -> list[tuple[list[float], int, int]]:
    """Where more is claimed than is true: a label that not all models give, or two models where there is one."""
    claims = np.where(found == UNDECIDED, exact.codes, found)
    return different(claims, exact, points)


# --- the truth itself -------------------------------------------------------------------------------------------------


def closed_form(distance: str, robustness: str, x: np.ndarray, answer: np.ndarray, radius: float, points: np.ndarray):
    """−1 where all models are on the side of x, +1 where all are on that of the answer, 0 elsewhere; x is ρC away or more."""
    step, gaps = answer - x, answer - points
    signs = np.sign(np.where(np.abs(step) > 1e-9, step, 0.0))
    if distance == "linf":
        most = np.abs(step) > np.abs(step).max() * (1 - 1e-9)
        short = (signs * gaps)[:, most]
        same = (short >= radius).all(axis=1)
        order = {"l1": 1, "l2": 2, "linf": np.inf}[robustness]
        far = np.linalg.norm(np.maximum(short, 0), order, axis=1) <= radius
    elif distance == "l1":
        along, aside = (signs * gaps).sum(axis=1), np.abs(gaps)[:, signs == 0].sum(axis=1)
        largest = {"l1": 1.0, "l2": np.sqrt(2.0), "linf": 2.0}[robustness]
        same = along - radius * largest >= aside
        if not (signs == 0).any():
            far = along - radius * largest <= 0
        elif robustness == "l1":
            far = along + aside <= radius
        elif robustness == "linf":
            far = along <= radius + np.minimum(0, radius - aside)
        else:  # min over |α| ≤ 1 of ρ√(1 + α²) − |α|·aside
            inner = np.sqrt(np.maximum(radius**2 - aside**2, 0))
            far = along <= np.where(aside <= radius / np.sqrt(2), inner, radius * np.sqrt(2) - aside)
    else:
        norm = ox.norm(distance)
        slope = norm.gradient(step)
        height = gaps @ slope - radius * ox.norm(robustness).dual(slope)
        same, far = height >= 0, height <= 0
    return np.where(same, -1, np.where(far, 1, 0))


@pytest.mark.parametrize("robustness", ["l1", "l2", "linf"])
@pytest.mark.parametrize("distance", ["l1", "linf", "l2", "lp:3"])
def test_the_truth_about_one_answer_is_the_closed_form(distance: str, robustness: str) -> None:
    rng = np.random.default_rng(1)
    terms = ox.Mechanism(distance, robustness=robustness, radius=1.0)
    done = {YES: 0, NO: 0}
    while min(done.values()) < 3:
        plane, x = random_plane(rng), random_point(rng)
        label, answer = int(plane.label(x)), ox.ModelOracle(plane, terms, ties="random", rng=rng).explain(x)
        if terms.distance(answer - x) < 2:  # nearer than ρC: other formulas
            continue
        log = ox.QueryLog(mechanism=terms)
        log.add_explanation(x, answer, label)
        points = answer + rng.uniform(-4, 4, (300, 2))
        expected = -label * closed_form(distance, robustness, x, answer, 1.0, points)
        assert different(expected, truth(log, points), points) == [], (plane, x, answer)
        done[label] += 1


@pytest.mark.parametrize("seed", range(8))
def test_the_truth_about_plain_answers_is_that_of_the_exact_cone(seed: int) -> None:
    rng = random.Random(seed)
    log = dyadic.exact_log(rng, dyadic.model(rng, 2), rng.choices(dyadic.KINDS, k=rng.randint(1, 2)), rng.randint(1, 6))
    points = dyadic.GRIDS[2] + [0.0137, 0.0071]
    for level in LEVELS:
        assert different(plain_truth(givens(log), points), truth(log, points, level), points) == []


@pairs
def test_the_extreme_models_have_given_every_answer(pair: str) -> None:
    """By the definition: the labels, the answer and its ball across the plane, and none that costs less."""
    for _, log, points, _ in mixed_sets(pair):
        found = extremes(log, points, "exact")
        for *normal, offset in np.unique(np.vstack([found.highest, found.lowest]).round(9), axis=0)[::3].tolist():
            model = ox.Hyperplane(normal, offset)
            for row in log:
                assert row.label * model.margin(row.point) > -1e-6
                if row.explanation is None:
                    continue
                terms, x, answer = row.mechanism, row.point, row.explanation
                reach = 0.0 if terms.is_plain else terms.radius * terms.robustness.dual(model.normal)
                assert -row.label * model.margin(answer) > reach - 1e-6
                cheapest = terms.distance(ox.ModelOracle(model, terms).explain(x) - x)
                assert terms.distance(answer - x) == pytest.approx(cheapest, abs=1e-5)


def surely_consistent(log: ox.QueryLog, count: int = 8_001) -> np.ndarray:
    """Models within about 1e-3 of consistent ones, with their labels to spare.

    Of two answers each has an offset for every normal; where their difference changes its sign there is a model of both.
    """
    angles = np.linspace(0, 2 * np.pi, count)
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    fits, heights = np.ones(count, dtype=bool), []
    for row in (log[int(i)] for i in log.explained):
        terms, step = row.mechanism, row.explanation - row.point
        fits &= -row.label * (normals @ step) >= (1 - 1e-12) * terms.distance(step) * terms.distance.dual(normals)
        reach = 0.0 if terms.is_plain else terms.radius * terms.robustness.dual(normals)
        heights.append(normals @ row.explanation + row.label * reach)
    if len(heights) > 2:
        return np.zeros((0, 3))
    if len(heights) == 2:
        gap = heights[1] - heights[0]
        fits &= np.roll(fits, -1) & (np.sign(gap) != np.sign(np.roll(gap, -1)))
    models = np.column_stack([normals, heights[0]])[fits]
    spare = (models[:, :2] @ log.points.T - models[:, 2:]) * log.labels
    return models[(spare > 1e-2).all(axis=1)]


def test_the_truth_leaves_out_no_model() -> None:
    """Neither the one that answered nor any that a coarse sweep, straight from the definition, finds."""
    found = 0
    for pair in PAIRS:
        for plane, log, points, true in mixed_sets(pair):
            codes = true["exact"].codes
            models = np.vstack([surely_consistent(log)[::10], [*plane.normal, plane.offset]])
            found += len(models) - 1
            for *normal, offset in models.tolist():
                margins = points @ normal - offset
                assert not (np.isin(codes, [YES, NO]) & (codes * margins < -1e-2)).any()
    assert found > 500


def convex_codes(log: ox.QueryLog, points: np.ndarray, level: str) -> list[int]:
    """The verdicts of a weaker level, UNKNOWN where it has none: its set as it is written, in the hands of cvxpy."""
    a, b, lengths = cp.Variable(2), cp.Variable(), {}
    rules = [row.label * (a @ row.point - b) >= 0 for row in log]
    for row in (log[int(i)] for i in log.explained):
        side, terms, step = -row.label, row.mechanism, row.explanation - row.point
        (q1, d), (q2, e) = parts(terms.distance), parts(terms.robustness or terms.distance)
        cost = terms.distance(step)
        steepness = side * (a @ step) / cost  # ‖a‖*_N1 in K(w), less anywhere else
        rules += [cp.norm(a / d, dual(q1)) <= steepness, steepness >= 1]
        height, length = side * (a @ row.explanation - b), cp.norm(a / e, dual(q2))
        if terms.is_plain:
            rules.append(height == 0)
            continue
        most = np.abs(d * step) > (1 - 1e-9) * np.abs(d * step).max()
        largest = {1: np.linalg.norm(d / e, dual(q2)), np.inf: (d / e)[most].max()}.get(q1)
        if largest is None:
            largest = terms.robustness.dual(terms.distance.gradient(step))
        if level == "shared":
            s = lengths.setdefault(terms.robustness, cp.Variable())
            sharp = side * (a @ (np.sign(step) * most / e)) if q1 == np.inf else largest * steepness
            rules += [height == terms.radius * s, length <= s, s <= sharp]
        else:
            rules.append(height >= terms.radius * length)
        if level == "perspective":
            rules.append(height <= terms.radius * largest * steepness)
    x = cp.Parameter(2)
    value = a @ x - b
    problems = [cp.Problem(goal(value), [*rules, cp.abs(value) <= 1]) for goal in (cp.Maximize, cp.Minimize)]
    codes = []
    for x.value in points:
        high, low = (problem.solve(solver="CLARABEL") for problem in problems)
        codes.append(NO if high < 1e-6 else YES if low > -1e-6 else UNKNOWN)
    return codes


def parts(norm: ox.Norm) -> tuple[float, np.ndarray]:
    return (norm.norm.q, norm.weights) if isinstance(norm, ox.Weighted) else (norm.q, np.ones(2))


def dual(q: float) -> float:
    return np.inf if q == 1 else 1 if q == np.inf else q / (q - 1)


@pytest.mark.parametrize(
    "pair", ["l1/l2", "l1/l3", "linf/l1", "linf/weighted l1", "weighted l1/weighted linf", "weighted linf/l1"]
)
def test_the_truth_about_the_weaker_levels_is_that_of_the_convex_sets(pair: str) -> None:
    for _, log, points, true in mixed_sets(pair)[:3]:
        asked = np.flatnonzero(np.min([true[level].margin for level in LEVELS], axis=0) > 1e-3)[-5:]
        for level in LEVELS[:-1]:
            codes = np.where(true[level].codes == UNDECIDED, UNKNOWN, true[level].codes)[asked]
            assert convex_codes(log, points[asked], level) == codes.tolist(), level


def test_weaker_levels_lose_points_and_never_gain() -> None:
    lost = dict.fromkeys(LEVELS, 0)
    for pair in PAIRS:
        for _, _, points, true in mixed_sets(pair):
            for weaker, stronger in pairwise(LEVELS):
                claimed = np.where(true[weaker].codes == UNDECIDED, true[stronger].codes, true[weaker].codes)
                assert different(claimed, true[stronger], points) == []
            for level in LEVELS:
                lost[level] += int((true[level].codes == UNDECIDED).sum())
    assert lost["paper"] > lost["perspective"] > lost["shared"] > lost["exact"] == 0


# --- each level loses something ---------------------------------------------------------------------------------------


def written(*rows: tuple[list[float], list[float], int, ox.Norm | str, ox.Norm | str, float]) -> ox.QueryLog:
    log = ox.QueryLog()
    for x, answer, label, distance, robustness, radius in rows:
        log.add_explanation(x, answer, label, ox.Mechanism(distance, robustness=robustness, radius=radius))
    return log


def labelled(log: ox.QueryLog, *rows: tuple[list[float], int]) -> ox.QueryLog:
    for x, label in rows:
        log.add_label(x, label)
    return log


GOLDEN = {
    "one answer, weighted linf": written(([-1, -0.5], [1, 0.5], NO, weighted("linf", 1, 2), "l2", 0.5)),
    "one answer and two labels": labelled(
        written(([-2, -0.25], [-2, 2.75], NO, "l1", "l2", 1.0)), ([-1.75, 1.5], YES), ([1, -1], NO)
    ),
    "two answers that leave one model": written(
        ([1.5, -0.25], [1.5, -0.875], YES, "l1", "linf", 0.25),
        ([1, -1.75], [1, 1.25], NO, "l1", "linf", 1.0),
    ),
    "two answers that leave two models": written(  # (3/4, 1), 3/2 and (5/12, 1), 5/3
        ([0, 0], [0, 2.75], NO, "l1", "l2", 1.0),
        ([-1, 3.5], [-1, 1], YES, "l1", "l2", 1.0),
    ),
    "two answers of a class": written(
        ([-1, -1.25], [-0.5, -1.75], NO, "linf", "l1", 0.5),
        ([-1.25, -1.25], [-0.25, -2.25], NO, "linf", "l1", 0.75),
    ),
}
golden = pytest.mark.parametrize("case", GOLDEN)


@golden
def test_golden_pictures_are_the_sweep_of_all_models(case: str) -> None:
    found = truths(GOLDEN[case], GRID)
    assert {level: drawn(found[level].codes) for level in LEVELS} == goldens("levels")[case]
    assert min(found[level].margin.min() for level in LEVELS) > 1e-4


@levels
@golden
def test_golden_pictures(case: str, level: str) -> None:
    assert drawn(ox.Knowledge(GOLDEN[case], robust=level).certify(GRID).codes) == goldens("levels")[case][level]


def test_golden_pictures_every_level_tells_more_than_the_one_before() -> None:
    stricter = set()
    for case, pictures in goldens("levels").items():
        for weaker, stronger in pairwise(LEVELS):
            both = list(zip(pictures[weaker], pictures[stronger], strict=True))
            assert all(one in ("?", other) for one, other in both), case
            stricter |= {stronger for one, other in both if one != other}
    assert stricter == {"perspective", "shared", "exact"}


# --- mixed logs -------------------------------------------------------------------------------------------------------


def asked(level: str, count: int) -> slice:
    """All points at the two strong levels, every sixth at the others: what those cannot tell takes its time."""
    return slice(0, count, 1 if level in ("shared", "exact") else 6)


@pairs
def test_mixed_logs(pair: str) -> None:
    """Labels, plain and robust answers of both classes, with ties and weights: every verdict is the true one at its level."""
    for _, log, every, true in mixed_sets(pair):
        for level in LEVELS:
            part = asked(level, len(every))
            points, found = every[part], ox.Knowledge(log, robust=level).certify(every[part]).codes
            assert unsound(found, true["exact"][part], points) == [], (level, list(log))
            assert different(found, true[level][part], points) == [], (level, list(log))


@pytest.mark.parametrize("seed", range(3))
def test_two_robustness_norms_in_one_log(seed: int) -> None:
    """One length s for each of them: nothing false is said at any level."""
    rng = np.random.default_rng([99, seed])
    plane = random_plane(rng)
    log = random_log(plane, "l1/l2", rng, robust=1)
    explain(log, plane, ox.Mechanism("l1", robustness="linf", radius=0.5), rng)
    points = random_points(plane, rng, 12)
    exact = truth(log, points)
    for level in LEVELS:
        assert unsound(ox.Knowledge(log, robust=level).certify(points).codes, exact, points) == [], (level, list(log))


# --- ties -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [NO, YES])
@levels
def test_the_touching_point_is_on_the_plane_if_both_norms_are_the_same(level: str, label: int) -> None:
    """cor:N1N2 (iii), in exact numbers: (3/2, 0) is where the ball around (2, 0) touches. The paper's own set puts it on the far
    side or on the plane: that makes it a Yes if the far side is Yes, and nothing if it is No.
    """
    log = written(([0, 0], [2, 0], label, "l1", "l1", 0.5))
    found = ox.Knowledge(log, robust=level, tolerance=0.0).certify([[1.5, 0.0], [0.0, 0.0], [2.0, 0.0], [1.5, 0.25]])
    touching = BOUNDARY if level != "paper" else YES if label == NO else UNDECIDED
    assert found.codes.tolist() == [touching, label, -label, UNKNOWN]


# --- a radius that nobody tells ---------------------------------------------------------------------------------------


def secret_sets(pair: str, count: int = 4) -> list[tuple[ox.QueryLog, np.ndarray]]:
    found = []
    for seed in range(count):
        rng = np.random.default_rng([7, list(PAIRS).index(pair), seed])
        plane = random_plane(rng)
        found.append((random_log(plane, pair, rng, secret=True), random_points(plane, rng)))
    return found


@pytest.mark.parametrize("pair", ["l1/l2", "linf/l1", "l3/l2", "weighted l1/l2", "weighted linf/weighted l2"])
def test_a_secret_radius(pair: str) -> None:
    """The answers of a service lie one unknown way behind the plane, each on its side."""
    verdicts = set()
    for log, points in secret_sets(pair):
        true = truth(log, points)
        found = ox.Knowledge(log).certify(points).codes
        assert different(found, true, points) == [], list(log)
        verdicts |= set(true.codes.tolist())
    assert verdicts >= {YES, NO}


def test_a_secret_radius_tells_less_than_a_known_one() -> None:
    """One answer: the plane is between the point and its answer, so far; of both classes: half way between the answers."""

    def told(radius: float | None, both: bool) -> str:
        terms = ox.Mechanism("l2", robustness="l2", radius=radius)
        log = ox.QueryLog(mechanism=terms)
        log.add_explanation([-1.0, 0.0], [1.0, 0.0], NO)
        if both:
            log.add_explanation([2.0, 1.0], [-0.5, 1.0], YES)
        points = np.array([[-1.5, 0.3], [-0.25, 0.3], [0.2, 0.3], [0.3, 0.3], [1.5, 0.3]])
        return picture(ox.Knowledge(log).certify(points).codes, len(points))

    assert told(0.75, both=False) == "NNNYY"
    assert told(None, both=False) == "N...Y"
    assert told(None, both=True) == "NNNYY"


# Balls that are no weighted ℓq.

HEXAGON = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, -1.0]])
SKEWED = np.array([[2.0, 1.5], [1.5, 2.0]])
OTHER_BALLS = {  # the norm, and ‖a‖* of rows by hand
    "mahalanobis": (ox.Mahalanobis(SKEWED), lambda a: np.sqrt(np.einsum("ni,ij,nj->n", a, np.linalg.inv(SKEWED), a))),
    "group": (ox.GroupNorm([[0, 1]]), lambda a: np.hypot(*a.T)),
    "group max": (ox.GroupNorm([[0], [1]]).dual, lambda a: np.abs(a).sum(axis=1)),
    "polyhedral": (ox.Polyhedral(HEXAGON), lambda a: (a @ HEXAGON.T).max(axis=1)),
    # |u1| ≤ 1, |u2| ≤ 1, |u1 + u2| ≤ 1 is the hexagon again
    "facets": (
        ox.Polyhedral(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [-1.0, -1.0]])).dual,
        lambda a: (a @ HEXAGON.T).max(axis=1),
    ),
}


@pytest.mark.parametrize("name", OTHER_BALLS)
def test_every_point_is_settled_whatever_the_ball(name: str) -> None:
    """ℓ1 and one answer along e1: a = (1, c), |c| ≤ 1, b = a·x' − ρ‖a‖*: all models in one sweep. Proofs hold, also by cases."""
    ball, dual = OTHER_BALLS[name]
    rng = np.random.default_rng(0)
    terms = ox.Mechanism("l1", robustness=ball, radius=1.0)
    sweep = np.column_stack([np.ones(20_001), np.linspace(-1, 1, 20_001)])
    seen: set[int] = set()
    cases = 0
    for c in (-0.8, -0.3, 0.4):
        plane = ox.Hyperplane([1.0, c], 3.0)
        log = ox.QueryLog(mechanism=terms)
        log.add_explanation([0.0, 0.0], ox.ModelOracle(plane, terms).explain([0.0, 0.0]), label=-1)
        image = log.explanations[0]
        # Labels near the plane, which only some of the models give.
        labelled = np.array([[3.0 - c * h + d, h] for h, d in ((1.5, 0.3), (-1.0, -0.3))])
        log.add_label(labelled, plane.labels(labelled))
        offsets = sweep @ image - dual(sweep)
        kept = ((labelled @ sweep.T - offsets >= 0) == (log.labels[1:] == 1)[:, None]).all(axis=0)
        points = image - [1.5, 0.0] + rng.uniform(-1, 1, (60, 2)) * [1.5, 3.0]
        said = points @ sweep[kept].T - offsets[kept]
        clear = np.minimum(np.abs(said.min(axis=1)), np.abs(said.max(axis=1))) > 1e-3  # (the sweep has steps of 1e-4)
        expected = np.where(said.min(axis=1) >= 0, 1, np.where(said.max(axis=1) < 0, -1, 0))
        knowledge = ox.Knowledge(log, robust="exact")
        found = knowledge.certify(points).codes
        assert found[clear].tolist() == expected[clear].tolist()
        assert clear.sum() >= 54
        seen |= set(found[clear].tolist())
        left = clear & (ox.Knowledge(log, robust="shared").certify(points).codes == UNDECIDED)
        cases += int(left.sum())
        for x in [*points[left], *points[clear][:5]]:
            knowledge.prove(x).verify(log)
    assert seen == {1, -1, 0}
    assert cases > 0, "the convex set settles all"
