"""The definition of the campaigns itself: its linear programs beside the formulas, its numbers beside floats, and known cases."""

from __future__ import annotations

import random
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox
from definition import Definition, directions, exact, models
from exact_balls import Polytope, Surd, ball_of, compare, dot, highest

SPECS = (
    "l1",
    "linf",
    {"norm": "polyhedral", "vertices": [[1, 1], [-1, -1], [1, -1], [-1, 1], [0, 1.5], [0, -1.5]]},
    {"norm": "facets", "facets": [[1, 0.5], [-1, -0.5], [0, 1], [0, -1], [0.5, -1], [-0.5, 1]]},
)


def test_sums_of_roots_have_the_signs_of_floats() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        x, y = (Surd(F(rng.randint(-9, 9)), F(rng.randint(-40, 40))) for _ in range(2))
        value = sum(s * (float(v.q) + np.sign(float(v.r)) * abs(float(v.r)) ** 0.5) for s, v in ((1, x), (-1, y)))
        assert compare(x, y) == (0 if abs(value) < 1e-9 else np.sign(value))


def test_the_linear_program_finds_the_optimum() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        size, count = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        rows, right, goal = rng.integers(-4, 5, (count, size)), rng.integers(-3, 9, count), rng.integers(-4, 5, size)
        box = np.vstack([np.eye(size), -np.eye(size)])
        both, limits = np.vstack([rows, box]), np.concatenate([right, np.full(2 * size, 7)])
        mine = highest([F(int(g)) for g in goal], [(exact(n), F(int(h))) for n, h in zip(both, limits, strict=True)])
        other = linprog(-goal, A_ub=both, b_ub=limits, bounds=(None, None))
        assert (mine is None) == (other.status == 2)
        if mine is not None:
            assert float(dot(exact(goal), mine)) == pytest.approx(-other.fun, abs=1e-7)


@pytest.mark.parametrize("spec", SPECS)
def test_levels_of_the_program_are_those_of_the_corners_and_of_the_proposition(spec) -> None:
    """The definition as a linear program; the optimal steps as sums of corners; Proposition 1's interval where it is one."""
    ball, rng = ball_of(spec, 2), random.Random(3)
    assert isinstance(ball, Polytope)
    for _ in range(80):
        w, c = (tuple(F(rng.randint(-6, 6), 2) for _ in range(2)) for _ in range(2))
        if not any(c):
            continue
        slack, tau = F(rng.choice((0, 0, 1)), 2), F(rng.choice((1, 2, 5)), 4)
        found = ball.by_program(w, c, slack, tau)
        assert ball._range(w, c, slack, tau) == found
        length, t, down = ball.length(w)[0].q, ball.dual(c)[0].q, dot(c, w)
        low, high = max(F(0), (length - tau) * t / (1 + slack)), down + tau * t
        if (1 + slack) * down >= length * t:
            assert found == (low, high)
        elif found is not None:
            assert low <= found[0] <= found[1] <= high


@pytest.mark.parametrize("name", ["l2", "lp:1.5", {"norm": "group", "groups": [[0], [1, 2]]}])
def test_levels_of_other_norms_have_an_optimum_within_the_tolerance(name) -> None:
    """Where a level is allowed, the float optimum of that length is near; where it is refused, it is not."""
    ball, norm, rng = ball_of(name, 3), ox.norm(name), np.random.default_rng(4)
    for _ in range(60):
        c, tau = rng.normal(size=3), 0.25
        size = float(rng.uniform(0.1, 3))
        step = size * norm.maximizer(c)
        w = step + rng.normal(size=3) * 0.2
        level = Surd(F(size * float(norm.dual(c))))
        far = float(norm(step - w))
        told = ball.allows(exact(w), exact(c), F(0), F(tau), F(tau), level, level)
        if abs(far - tau) > 1e-9:
            assert told is (far < tau)


def test_known_cases() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", tolerance=1.0))
    log.add_explanation([0.0, 0.0], [10.0, 1.0], label=-1)
    known = Definition(log)
    assert known.judge((F(1), F(0)), F(10)) is True
    assert known.judge((F(4, 5), F(1)), F(10)) is False  # its optimum is (0, 10), 19 away
    log = ox.QueryLog(mechanism=ox.Mechanism(None, tolerance=0.0))
    log.add_explanation([0.0, 0.0], [1.0, 0.0], label=1)
    known = Definition(log)
    assert known.judge((F(0), F(1)), F(0)) is False  # x on its plane, and yet it moved
    assert known.judge((F(-1), F(1)), F(-1)) is True
    normals = directions(known.rows, [])
    assert all(dot(a, exact([2.0, 0.0])) < b for a, b in models(known, [exact([2.0, 0.0])], normals))


def test_a_secret_radius_is_the_same_for_all_rows() -> None:
    log = ox.QueryLog(mechanism=ox.Mechanism("l1", "l1", None, tolerance=0.0))
    log.add_explanation([0.0], [3.0], label=-1)
    known = Definition(log)
    assert known.judge((F(1),), F(1)) is True
    log.add_explanation([4.0], [-2.0], label=1)
    known = Definition(log)
    assert [known.judge((F(1),), b) for b in (F(1, 2), F(1), F(3))] == [True, False, False]
