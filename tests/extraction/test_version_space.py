"""Every separating plane, bounded by linear programs: honest in every case, and checked in exact rationals."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from overexplain.errors import InvalidInput
from overexplain.extraction.inexact.version_space import _Facts, angle_bound, version_space
from overexplain.geometry.hyperplane import Hyperplane


def a_case(rng, p, n):
    """Labelled points, many of them next to the plane, somewhere in space."""
    normal = rng.normal(size=p)
    normal /= np.linalg.norm(normal)
    centre = rng.normal(size=p) * 10.0 ** rng.uniform(-2, 3)
    plane = Hyperplane(normal, float(normal @ centre) + 0.1 * rng.normal())
    points = centre + rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-1, 1)
    points -= np.outer(plane.margin(points) * rng.uniform(0, 1, n), normal)
    return plane, points, plane.labels(points)


def test_the_true_plane_is_always_inside():
    rng = np.random.default_rng(0)
    bounded, ratios = 0, []
    for _ in range(200):
        p = int(rng.integers(1, 5))
        plane, points, labels = a_case(rng, p, int(rng.integers(4, 40)))
        guess = plane.normal + rng.normal(size=p) * rng.choice([0.0, 1e-3, 0.3])
        space = version_space(points, labels, guess)
        if space is None:
            continue
        bounded += 1
        off = Hyperplane(guess, 0.0).angle_to(plane)
        assert off <= space.angle
        assert space.offset_low <= plane.offset <= space.offset_high
        assert (space.low <= space.high).all()
        ratios.append(off / space.angle)
    assert bounded > 120
    assert max(ratios) > 0.3


def test_every_separator_is_inside_not_only_the_true_one():
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(25):
        plane, points, labels = a_case(rng, 2, 12)
        space = version_space(points, labels, plane.normal)
        if space is None:
            continue
        for turn in np.linspace(
            -math.pi, math.pi, 721
        ):  # brute force: all directions, is there an offset that separates?
            normal = np.array([math.cos(turn), math.sin(turn)])
            levels = points @ normal
            low, high = levels[labels == -1].max(), levels[labels == 1].min()
            if low < high:
                checked += 1
                other = Hyperplane(normal, 0.0)
                assert other.angle_to(plane) <= space.angle
                assert space.offset_low <= low + 1e-12 * abs(low)
                assert high - 1e-12 * abs(high) <= space.offset_high
    assert checked > 100


def test_in_two_dimensions_the_bound_is_exact():
    rng = np.random.default_rng(2)
    compared = 0
    for _ in range(40):
        points = rng.integers(-8, 9, size=(10, 2))
        normal = np.array([3, int(rng.integers(-5, 6))])
        labels = np.where(2 * (points @ normal) >= 3, 1, -1)
        bound = angle_bound(points.astype(float), labels, normal.astype(float))
        if bound is None:
            continue
        # The extreme separating normals are orthogonal to a difference of two points; exact rationals say which separate.
        worst = Fraction(0)
        for one, other in combinations(points.tolist(), 2):
            direction = (other[1] - one[1], one[0] - other[0])
            for sign in (1, -1):
                a = (sign * direction[0], sign * direction[1])
                along = Fraction(a[0] * int(normal[0]) + a[1] * int(normal[1]))
                levels = [a[0] * x + a[1] * y for x, y in points.tolist()]
                yes = [level for level, label in zip(levels, labels, strict=True) if label == 1]
                no = [level for level, label in zip(levels, labels, strict=True) if label == -1]
                if along > 0 and yes and no and min(yes) >= max(no):
                    across = Fraction(a[1] * int(normal[0]) - a[0] * int(normal[1]))
                    worst = max(worst, abs(across / along))
        compared += 1
        exact = math.atan(float(worst))
        assert exact <= bound <= exact * (1 + 1e-6) + 1e-9
    assert compared > 15


def test_proofs_hold_in_exact_rationals():
    """The weights a proof rests on, summed in rationals: μ + m‖a‖ is no less than what they prove."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        _, points, labels = a_case(rng, 3, 20)
        rows = points - points.mean(axis=0)
        rows /= np.linalg.norm(rows, axis=1).max()
        facts = _Facts(rows, labels.astype(float), np.zeros(len(rows)), np.eye(3))
        target = np.zeros(4)
        target[1 + int(rng.integers(3))] = 1.0
        proof = facts._proof(target)
        if proof is None:
            continue
        # Any separating plane of these rows obeys it: try vertices of the version space, found by enumeration in rationals.
        exact = [[Fraction(float(v)) for v in row] for row in rows]
        for picked in combinations(range(len(rows)), 3):
            solved = _through(*(exact[i] for i in picked))
            if solved is None:
                continue
            r2, r3, b = solved
            if all(int(y) * (x[0] + r2 * x[1] + r3 * x[2] - b) >= 0 for x, y in zip(exact, labels, strict=True)):
                value = (r2, r3, b)[int(target[1:].argmax())]
                length = Fraction(math.sqrt(1 + float(r2) ** 2 + float(r3) ** 2) * (1 + 1e-12))
                assert value <= Fraction(proof[0]) + Fraction(proof[1]) * length


def _through(*points):
    """(r_2, r_3, b) with x_1 + r_2 x_2 + r_3 x_3 = b in the three points, by Cramer's rule; None if there is not just one."""
    rows = [[x[1], x[2], Fraction(-1)] for x in points]
    right = [-x[0] for x in points]

    def det(m):
        return (
            m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
            - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
            + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
        )

    whole = det(rows)
    if whole == 0:
        return None
    replaced = [[[right[i] if j == k else rows[i][j] for j in range(3)] for i in range(3)] for k in range(3)]
    return [det(m) / whole for m in replaced]


@pytest.mark.parametrize(
    ("points", "labels", "guess"),
    [
        ([[0.0, 0.0], [1.0, 0.0]], [1, 1], [1.0, 0.0]),
        ([[0.0, 0.0], [1.0, 0.0]], [-1, 1], [1.0, 0.0]),
        ([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]], [-1, 1, -1], [1.0, 0.0]),
        ([[1.0, 0.0], [-1.0, 0.0], [1.0, 9.0], [-1.0, 9.0]], [1, -1, 1, -1], [-1.0, 0.0]),
        ([[0.0, 0.0]] * 4, [1, -1, 1, -1], [1.0, 0.0]),
    ],
    ids=["one label", "two points", "not separable", "guess upside down", "contradiction"],
)
def test_where_nothing_is_proved(points, labels, guess):
    assert angle_bound(points, labels, guess) is None


def test_one_feature():
    space = version_space([[1.0], [2.0], [5.0]], [-1, -1, 1], [3.0])
    assert 0 < space.angle < 1e-12
    assert space.offset_low <= 2.0 <= 5.0 <= space.offset_high
    assert space.offset_high - space.offset_low == pytest.approx(3.0)
    assert angle_bound([[1.0], [2.0]], [1, -1], [1.0]) is None


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidInput, match="labels"):
        angle_bound([[0.0, 1.0], [1.0, 0.0]], [1, 0], [1.0, 0.0])
    with pytest.raises(InvalidInput, match="zero"):
        angle_bound([[0.0, 1.0], [1.0, 0.0]], [1, -1], [0.0, 0.0])
