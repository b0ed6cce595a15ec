"""Statements of docs/theory/ that no module rests on alone: checked here by themselves, against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox


def highest(rows: np.ndarray, c: np.ndarray) -> float:
    """max c·z over rows·z ≤ 1."""
    found = linprog(-c, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(None, None))
    return math.inf if found.status == 3 else -float(found.fun)


def test_gauge_rows_that_do_not_matter_go_all_at_once() -> None:
    """Proposition 3: without all rows whose maximum is below 1 the polytope is the same."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(40, 3)) * rng.uniform(0.2, 1.0, size=(40, 1))
    kept = rows[[highest(rows, row) > 1 - 1e-9 for row in rows]]
    assert 4 <= len(kept) < 40
    for c in rng.normal(size=(25, 3)):
        assert highest(kept, c) == pytest.approx(highest(rows, c))


def test_gauge_any_basis_is_a_start() -> None:
    """Proposition 4: weights of any sign on independent rows bound the maximum."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(20, 3))
    for _ in range(20):
        basis = rows[rng.choice(20, size=3, replace=False)]
        c = rng.normal(size=3)
        weights = np.linalg.solve(basis.T, c)
        back = np.array([highest(rows, -row) for row in basis])
        assert highest(rows, c) <= np.where(weights >= 0, weights, -weights * back).sum() + 1e-9


def test_gauge_how_many_points_stay_open() -> None:
    """Proposition 5, one by one: a point is open given the others if and only if its row is irredundant among all."""
    rng = np.random.default_rng(3)
    plane = ox.Hyperplane([1.0, -0.5], 0.3)
    points = rng.normal(size=(14, 2))
    labels = plane.labels(points)
    rows = -labels[:, None] * np.column_stack([points, -np.ones(14)])
    opened = 0
    for i in range(14):
        others = np.arange(14) != i
        log = ox.QueryLog()
        log.add_label(points[others], labels[others])
        is_open = ox.Knowledge(log).certify(points[i]).codes[0] == ox.Verdict.UNKNOWN
        broken = linprog(-rows[i], A_ub=rows[others], b_ub=np.zeros(13), bounds=(-1, 1))
        assert is_open == (-broken.fun > 1e-9)
        opened += is_open
    assert 0 < opened < 14


def test_imperfect_convex_combinations_of_steps() -> None:
    """Theorem 3: valid answers at most 1 + ε times too long; every convex combination of steps is within the stated angle."""
    rng = np.random.default_rng(4)
    slack, p = 0.3, 4
    normal = np.array([1.0, -2.0, 0.5, 1.0])
    plane = ox.Hyperplane(normal, 0.7)
    unit = normal / np.linalg.norm(normal)
    worst = 0.0
    for _ in range(200):
        steps = []
        for x in rng.normal(size=(3, p)) * 2:
            gap = abs(plane.margin(x)) / np.linalg.norm(normal)
            sideways = rng.normal(size=p)
            sideways -= sideways @ unit * unit
            reach = gap * math.sqrt((1 + slack) ** 2 - 1) * rng.uniform(0.9, 1) / np.linalg.norm(sideways)
            step = -plane.label(x) * gap * unit + reach * sideways
            assert plane.label(x + 1.0001 * step) != plane.label(x)
            steps.append(-plane.label(x) * step / np.linalg.norm(step))
        mixed = rng.dirichlet(np.ones(3)) @ np.array(steps)
        stated = 1 / ((1 + slack) * np.linalg.norm(mixed))
        assert stated <= 1
        assert unit @ mixed / np.linalg.norm(mixed) >= stated - 1e-12
        worst = max(worst, stated)
    assert worst > 0.9


def test_labels_no_parallelotope_in_a_ball_is_larger_than_the_cube() -> None:
    """Theorem 5: half-edges whose corners all lie in the unit ball; the cube reaches the bound."""
    rng = np.random.default_rng(5)
    for n in (2, 3, 5):
        signs = np.array(np.meshgrid(*[[-1, 1]] * n)).reshape(n, -1).T
        most = (2 / math.sqrt(n)) ** n
        for edges in [np.eye(n), *rng.normal(size=(100, n, n))]:
            inside = edges / np.linalg.norm(signs @ edges, axis=1).max()
            volume = 2**n * abs(np.linalg.det(inside))
            assert volume <= most * (1 + 1e-12)
            if np.array_equal(edges, np.eye(n)):
                assert volume == pytest.approx(most)


def test_labels_a_slab_without_questions_holds_tilted_planes() -> None:
    """Theorem 6: T·tan θ below half of the slab's width; both tilted planes label all questions in the ball alike."""
    rng = np.random.default_rng(6)
    radius, width, middle = 2.0, 0.3, 0.4
    normal, other = np.eye(3)[0], np.eye(3)[1]
    questions = rng.normal(size=(4000, 3))
    questions *= radius * rng.uniform(size=(4000, 1)) ** (1 / 3) / np.linalg.norm(questions, axis=1, keepdims=True)
    questions = questions[np.abs(questions[:, 0] - middle) > width / 2]
    said = ox.Hyperplane(normal, middle).labels(questions)
    most = math.atan(width / 2 / radius)
    for angle, is_alike in ((0.999 * most, True), (3 * most, False)):
        for turn in (angle, -angle):
            tilted = math.cos(turn) * normal + math.sin(turn) * other
            plane = ox.Hyperplane(tilted, middle * math.cos(turn))
            assert np.array_equal(plane.labels(questions), said) == is_alike


def test_regions_the_shadow_of_the_other_class() -> None:
    """Proposition 1: beyond a certain point, as seen from a certain one of the other class, nothing is open."""
    rng = np.random.default_rng(7)
    log = ox.QueryLog()
    points = rng.normal(size=(12, 2))
    log.add_label(points, ox.Hyperplane([1.0, 1.0], 0.2).labels(points))
    known = ox.Knowledge(log)
    tried = rng.normal(size=(60, 2)) * 1.5
    codes = known.certify(tried).codes
    yes, no = tried[codes == ox.YES][:5], tried[codes == ox.NO][:5]
    assert len(yes) == len(no) == 5
    for ahead, behind, code in ((yes, no, ox.YES), (no, yes, ox.NO)):
        shadows = np.array([x + stretch * (x - u) for x in ahead for u in behind for stretch in (0.1, 1.0, 20.0)])
        assert (known.certify(shadows).codes == code).all()
