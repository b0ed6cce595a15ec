"""The bounds of a labels-only extraction are true, and its questions stay where they may be asked: thousands of odd cases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from conftest import SOAK
from overexplain.errors import ExtractionFailed, InvalidInput
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.labels.coarse import split
from overexplain.extraction.labels.frame import Frame
from overexplain.extraction.labels.labels import Rough, extract_by_labels
from overexplain.extraction.labels.line import Line
from overexplain.extraction.labels.thresholds import Thresholds
from overexplain.extraction.session import Session

CASES = 1200 * max(1, SOAK)


class Guarded:
    """Labels only; notes every question that lies outside."""

    mechanism = None

    def __init__(self, plane: ox.Hyperplane, where: Box | Ball) -> None:
        self.plane, self.where, self.dimension, self.outside = plane, where, plane.dimension, 0

    def classify(self, x: np.ndarray) -> int:
        self.outside += not self.where.contains(x)
        return self.plane.label(x)


def drawn(law: str, p: int, rng: np.random.Generator) -> np.ndarray:
    normal = rng.standard_t(2, p) if law == "t2" else rng.standard_normal(p)
    if law == "sparse":
        normal *= rng.random(p) < 0.3
        normal[rng.integers(p)] += not normal.any()
    return normal


def placed(kind: str, start: np.ndarray, size: float, rng: np.random.Generator) -> tuple[Box | Ball, np.ndarray]:
    """Where to ask, and the scale of each feature."""
    p = len(start)
    ones = np.ones(p)
    if kind == "everything":
        return Box.of(None, p), ones * 10.0 ** rng.uniform(-3, 3)
    if kind == "ball":
        return Ball(start.copy(), size), ones * 0.3 * size
    if kind == "box":
        return Box(start - size, start + size), ones * 0.3 * size
    if kind == "odd box":
        scale = 10.0 ** rng.uniform(-4, 4, p)
        return Box(start - scale * rng.uniform(0.2, 2, p), start + scale * rng.uniform(0.2, 2, p)), 0.3 * scale
    low = np.where(rng.random(p) < 0.5, start - rng.uniform(0, 2, p), -np.inf)
    return Box(low, np.where(rng.random(p) < 0.5, start + 2, np.inf)), ones


@pytest.mark.parametrize("part", range(4))
def test_bounds_are_true_and_questions_stay_inside(part: int) -> None:
    failures = missed = 0
    for seed in range(part, CASES, 4):
        rng = np.random.default_rng([seed, 41])
        p = int(rng.integers(1, 13)) if seed % 12 == 0 else int(rng.integers(1, 5))
        kind = rng.choice(["everything", "ball", "box", "odd box", "half open"])
        start = rng.standard_normal(p) * 10.0 ** rng.uniform(-1, 2) * (seed % 2)
        where, scale = placed(str(kind), start, 10.0 ** rng.uniform(-3, 3), rng)
        normal = drawn(["gauss", "sparse", "t2"][seed % 3], p, rng) / (scale if kind == "odd box" else 1.0)
        away = float(np.linalg.norm(normal * scale)) * float(rng.standard_normal())
        plane = ox.Hyperplane(normal, float(normal @ start) + away)
        accuracy = 10.0 ** rng.uniform(-13 if seed % 16 == 0 else -5, -0.5)
        mode = rng.choice([None, "anchor", "lift", "far" if where.is_everything else "anchor"])
        rough = None
        if rng.random() < 0.4:  # often wrong, sometimes upside down, and wrong about how wrong
            noise = 10.0 ** rng.uniform(-8, 0.5) * float(np.linalg.norm(normal)) / math.sqrt(p)
            guess = normal + noise * rng.standard_normal(p)
            rough = Rough(guess * rng.choice([1, 1, 1, -1]), 10.0 ** rng.uniform(-9, 0))
        service = Guarded(plane, where)
        try:
            found = extract_by_labels(
                Session(service, 5000, record=False), accuracy, start, where, rng, mode, rough=rough
            )
        except ExtractionFailed:
            failures += 1  # e.g. the plane cuts a corner off that no random point hits
            continue
        finally:
            assert service.outside == 0, seed
        assert found.hyperplane.angle_to(plane) <= found.error_bound, seed
        length = float(np.linalg.norm(plane.normal))
        assert (
            found.offset_bound is None or abs(found.hyperplane.offset - plane.offset / length) <= found.offset_bound
        ), seed
        missed += found.error_bound > accuracy > 1e-8
    assert failures <= 0.03 * CASES / 4
    assert missed <= 0.03 * CASES / 4  # scales 1e8 apart leave float64 too few digits


def test_intervals_hold_in_rational_arithmetic() -> None:
    """A second opinion on the heart of it: the true coordinates, exactly, lie in every interval."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(2, 6))
        plane = ox.Hyperplane(rng.standard_normal(p), float(rng.standard_normal()) * 0.2)
        where = Box(np.full(p, -2.0), np.full(p, 3.0)) if seed % 2 else Ball(np.zeros(p), 2.5)
        session = Session(Guarded(plane, where))
        normal = plane.normal / np.linalg.norm(plane.normal)
        on_plane = normal * plane.offset / float(np.linalg.norm(plane.normal))
        tilt = normal + 0.3 * rng.standard_normal(p) / math.sqrt(p)
        no, yes = (where.clip(on_plane + sign * 0.7 * tilt) for sign in (-1, 1))
        scale = np.ones(p)
        line = Line.through(session, where, scale, no, yes)
        line.narrow(10.0 ** rng.uniform(-9, -2))
        thresholds = Thresholds(line, Frame(line.unit, scale), math.inf)
        for i in range(p - 1):
            low, high = -8.0, 8.0
            for tau in (low, high):
                thresholds.tell(i, thresholds.ask(thresholds.aim(i, tau)))
            for _ in range(int(rng.integers(1, 50))):
                told = thresholds.ask(thresholds.aim(i, (low + high) / 2))
                thresholds.tell(i, told)
                low, high = ((low + high) / 2, high) if told.above else (low, (low + high) / 2)
        known = thresholds.known()
        exact = [Fraction(float(entry)) for entry in plane.normal]

        def dot(vector: np.ndarray, exact: list[Fraction] = exact) -> Fraction:
            return sum((a * Fraction(float(v)) for a, v in zip(exact, vector, strict=True)), Fraction(0))

        along = dot(line.unit)
        crossing = (Fraction(plane.offset) - dot(line.origin)) / along
        assert known.s_low <= crossing <= known.s_high
        for i in range(p - 1):
            assert known.low[i] <= dot(thresholds.frame.column(i)) / along <= known.high[i]


@pytest.mark.parametrize("lifted", [False, True])
@pytest.mark.parametrize("equal", [False, True])
def test_frames(lifted: bool, equal: bool) -> None:
    rng = np.random.default_rng(int(lifted))
    for p in (2, 3, 7):
        unit = rng.standard_normal(p)
        unit /= np.linalg.norm(unit)
        scale = np.full(p, 3.0) if equal else 10.0 ** rng.uniform(-2, 2, p)
        frame = Frame(unit, scale, lifted)
        columns = np.array([frame.column(i) for i in range(frame.size)])
        assert np.allclose(columns @ unit, 0)
        assert np.allclose(columns.T @ columns, np.eye(p) - np.outer(unit, unit))
        if lifted:  # with the offset's share each column has length 1, and they are orthogonal
            full = np.hstack([columns, np.full((p, 1), frame.share)])
            assert np.allclose(full @ full.T, np.eye(p))
        coordinates = rng.standard_normal(frame.size)
        assert np.allclose(frame.normal(coordinates), unit + coordinates @ columns)
        half = rng.random(frame.size)
        corners = np.array(np.meshgrid(*[[-1, 1]] * frame.size)).reshape(frame.size, -1).T * half
        farthest = float(np.linalg.norm(corners @ columns / scale, axis=1).max())
        bound = frame.stretch * float(np.linalg.norm(frame.weights * half))
        assert farthest <= bound * (1 + 1e-12)
        if equal and not lifted:
            assert bound == pytest.approx(farthest)


@pytest.mark.parametrize("freedom", [2.0, 5.0, 200.0])
def test_splits_halve_the_probability(freedom: float) -> None:
    from scipy.stats import t as student

    assert split(-math.inf, math.inf, 0.1, freedom) == 0
    for low, high in ((0, math.inf), (-math.inf, 0), (-7, 12), (3, 20), (-29, math.inf)):
        at = split(low, high, 0.1, freedom)
        median = student.ppf((student.cdf(low * 0.1, freedom) + student.cdf(high * 0.1, freedom)) / 2, freedom) / 0.1
        assert abs(at - median) <= 0.5 + 1e-9
    assert split(1000, math.inf, 0.1, freedom) == 2000  # far out distances double, and no quantile is lost to rounding
    assert split(-4000, -2000, 0.1, freedom) == -3000
    assert split(4, 6, 0.1, freedom) == 5


def test_ball() -> None:
    rng = np.random.default_rng(0)
    for seed in range(2000):
        p = 1 + seed % 6
        middle = rng.standard_normal(p) * 10.0 ** rng.uniform(-300 if seed % 50 == 0 else -3, 12)
        ball = Ball(middle, 10.0 ** rng.uniform(-6, 6))
        x = middle + ball.radius * rng.standard_normal(p) * 10.0 ** rng.uniform(-2, 3)
        clipped = ball.clip(x)
        assert ball.contains(clipped)
        assert ball.contains(ball.clip(clipped))
        assert np.array_equal(ball.clip(clipped), clipped)
        if ball.contains(x):
            assert np.array_equal(clipped, x)
        size = float(np.abs(middle).max()) + ball.radius
        direction = rng.standard_normal(p)
        reached = clipped + ball.room(clipped, direction) * direction
        assert np.linalg.norm(reached - middle) == pytest.approx(ball.radius, rel=1e-6, abs=1e-12 * size)
    assert ball.room(clipped, np.zeros(p)) == math.inf
    assert np.array_equal(ball.centre(), ball.middle)
    assert not ball.is_everything
    for radius in (0.0, -1.0, math.inf, math.nan, "wide"):
        with pytest.raises(InvalidInput, match="radius"):
            Ball.of(radius, np.zeros(2))
