"""C of the perspective point: never too small, and where it is said to be the least, attained. Second opinion: 60 decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import overexplain as ox
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.norm import Face, Norm
from perspective import perspective_point, perspective_ratio
from strategies import NORMS, make_norm

EXPONENTS = (1.0, 1.5, 2.0, 3.0, 7.25, np.inf)
CLOSE = Decimal("1e-12")


@pytest.fixture(autouse=True)
def _sixty_digits():
    with localcontext() as context:
        context.prec = 60
        yield


def decimals(values) -> list[Decimal]:
    return [Decimal(float(v)) for v in values]


def dual(q: float) -> Decimal | None:
    """The dual exponent; None for ∞."""
    return Decimal(1) if q == np.inf else None if q == 1 else Decimal(q) / (Decimal(q) - 1)


def power_norm(exponent: Decimal | None, x: list[Decimal]) -> Decimal:
    size = [abs(v) for v in x]
    if exponent is None:
        return max(size)
    return sum((v**exponent for v in size if v), Decimal(0)) ** (1 / exponent)


def ratio(q1: float, d, q2: float, e, a: list[Decimal]) -> Decimal:
    """‖a‖*_N2/‖a‖*_N1 for weighted ℓq norms."""
    ball = power_norm(dual(q2), [v / w for v, w in zip(a, decimals(e), strict=True)])
    return ball / power_norm(dual(q1), [v / w for v, w in zip(a, decimals(d), strict=True)])


def weighted(q: float, weights) -> ox.Norm:
    return ox.Weighted(ox.Lp(q), weights)


def weights(rng: np.random.Generator, p: int) -> np.ndarray:
    return 10 ** rng.uniform(-3, 3, p)


def steepest(q1: float, d, q2: float, e) -> list[Decimal]:
    """The a whose ratio is the largest of all: Hölder's inequality with equality."""
    ratios = [v / w for v, w in zip(decimals(d), decimals(e), strict=True)]
    if q1 >= q2:
        k = ratios.index(max(ratios))
        return [Decimal(int(i == k)) for i in range(len(ratios))]
    to, of = dual(q2), dual(q1)
    u = [Decimal(1) if of is None else r ** (to / (of - to)) for r in ratios]
    return [v * w for v, w in zip(u, decimals(d), strict=True)]


@pytest.mark.parametrize(("q1", "q2"), list(product(EXPONENTS, EXPONENTS)))
def test_over_all_models_the_ratio_is_the_least(q1, q2) -> None:
    rng = np.random.default_rng(1)
    for p in (1, 2, 5):
        d, e = weights(rng, p), weights(rng, p)
        found = Decimal(perspective_ratio(weighted(q1, d), weighted(q2, e), p))
        best = ratio(q1, d, q2, e, steepest(q1, d, q2, e))
        assert best <= found <= best * (1 + CLOSE)
        for a in (*rng.normal(size=(5, p)), *np.eye(p)):
            assert ratio(q1, d, q2, e, decimals(a)) <= found


def test_the_constants_of_the_paper() -> None:
    """p^(1 − 1/q) for ℓ1, 1 for ℓ∞, and exactly so where that is a float."""
    for p in (1, 4, 9, 25):
        assert perspective_ratio(ox.l1, ox.l1, p) == 1
        assert perspective_ratio(ox.l1, ox.l2, p) ** 2 == p
        assert perspective_ratio(ox.l1, ox.linf, p) == p
        assert all(perspective_ratio(ox.linf, ox.Lp(q), p) == 1 for q in EXPONENTS)


def gradient(q: float, d, w) -> list[Decimal]:
    """Of a smooth weighted ℓq, up to one factor."""
    moved = [v * abs(u) for v, u in zip(decimals(d), decimals(w), strict=True)]
    powers = [v ** (Decimal(q) - 1) if v else Decimal(0) for v in moved]
    return [v * s * int(np.sign(u)) for v, s, u in zip(decimals(d), powers, w, strict=True)]


@pytest.mark.parametrize(("q1", "q2"), list(product((1.5, 2.0, 3.0, 7.25), EXPONENTS)))
@pytest.mark.parametrize("scale", [1.0, 2.0**-600])
def test_a_smooth_step_leaves_one_direction(q1, q2, scale) -> None:
    rng = np.random.default_rng(2)
    for p in (1, 2, 5):
        d, e = weights(rng, p), weights(rng, p)
        w = np.where(rng.random(p) < 0.2, 0.0, rng.normal(size=p) / d)
        w[0] = 1.0 / d[0]
        found = Decimal(perspective_ratio(weighted(q1, d), weighted(q2, e), p, scale * w))
        true = ratio(q1, d, q2, e, gradient(q1, d, w))
        assert true <= found <= true * (1 + CLOSE)


@pytest.mark.parametrize("q", EXPONENTS)
def test_under_l1_a_step_does_not_make_it_smaller(q) -> None:
    """The cube of all a with a_i = d_i·sgn(w_i) where w_i ≠ 0 has corners, all of one length."""
    rng = np.random.default_rng(3)
    d, e, w = weights(rng, 4), weights(rng, 4), np.array([0.0, -2.0, 0.0, 1.0])
    found = perspective_ratio(weighted(1, d), weighted(q, e), 4, w)
    corner = d * (1, -1, -1, 1)
    assert corner @ w == pytest.approx(np.abs(d * w).sum())  # it is in K(w)
    assert ratio(1, d, q, e, decimals(corner)) <= Decimal(found) <= ratio(1, d, q, e, decimals(corner)) * (1 + CLOSE)
    assert found == perspective_ratio(weighted(1, d), weighted(q, e), 4)


@pytest.mark.parametrize("q", EXPONENTS)
def test_under_linf_only_the_farthest_count(q) -> None:
    d, e = np.array([1.0, 2.0, 4.0, 1.0]), np.array([1.0, 0.5, 0.125, 8.0])  # d/e = 1, 4, 32, 1/8
    ball, distance = weighted(q, e), weighted(np.inf, d)
    assert perspective_ratio(distance, ball, 4) == 32
    assert perspective_ratio(distance, ball, 4, np.array([2.0, -1.0, 0.25, 0.0])) == 4
    assert perspective_ratio(distance, ball, 4, np.array([2.0, -0.9, 0.25, -2.0])) == 1
    assert perspective_ratio(distance, ball, 4, np.array([0.0, 0.0, 0.0, 3.0])) == 0.125
    nearly = np.array([2.0, 0.0, 0.5 * (1 - 1e-10), 0.0])  # 0.5·4 = 2: taken for the farthest as well
    assert perspective_ratio(distance, ball, 4, nearly) == 32
    assert perspective_ratio(distance, ball, 4, nearly * (1, 1, 1 - 1e-8, 1)) == 1


@pytest.mark.parametrize(("first", "second"), list(product(NORMS, NORMS)))
def test_it_holds_for_every_pair_of_norms(first, second) -> None:
    """For a random model and an optimal direction under N1: with the step, without it, and in this order."""
    p = 4
    distance, robustness = make_norm(first, p, 1, spread=1.0), make_norm(second, p, 2, spread=1.0)
    everywhere = perspective_ratio(distance, robustness, p)
    rng = np.random.default_rng(5)
    for a in (*rng.normal(size=(3, p)), np.array([1.0, 0.0, 0.0, -1.0])):
        here = perspective_ratio(distance, robustness, p, 3.0 * distance.maximizer(a))
        assert robustness.dual(a) / distance.dual(a) <= here * (1 + 1e-9)
        assert here <= everywhere * (1 + 1e-12)


@pytest.mark.parametrize("second", NORMS)
def test_it_is_the_least_for_other_balls_too(second) -> None:
    """ℓ∞ and any N2: a model along one axis attains it. ℓ1 and an N2 of absolute values: all |a_i| as large as can be."""
    p = 4
    d = np.array([1.0, 3.0, 0.5, 2.0])
    robustness = make_norm(second, p, 2, spread=1.0)
    farthest = max(robustness.dual(row) for row in np.diag(d))
    assert perspective_ratio(weighted(np.inf, d), robustness, p) == pytest.approx(farthest, rel=1e-6)
    if robustness.is_absolute:
        assert perspective_ratio(weighted(1, d), robustness, p) == pytest.approx(robustness.dual(d), rel=1e-12)


def test_mahalanobis_steps_are_exact_however_ill_conditioned() -> None:
    """M·w in rationals: the ratio to ℓ∞, Σ|M·w|/‖w‖, for a matrix of condition 10^12."""
    matrix = np.array([[1.0, 1.0 - 2.0**-40], [1.0 - 2.0**-40, 1.0]])
    w = np.array([1.0, -1.0])
    found = perspective_ratio(ox.Mahalanobis(matrix), ox.linf, 2, w)
    g = [sum(Fraction(m) * Fraction(v) for m, v in zip(row, w, strict=True)) for row in matrix.tolist()]
    square = sum(abs(v) for v in g) ** 2 / sum(u * Fraction(v) for u, v in zip(g, w, strict=True))
    assert square <= Fraction(found) ** 2 <= square * (1 + Fraction(1, 10**12))


class Mine(Norm):
    """A user's own smooth norm, 2·ℓ2: no written form, and nothing known about its gradient's rounding."""

    is_smooth = True
    scale = 2.0

    def __call__(self, x):
        return self.scale * ox.l2(x)

    @property
    def dual(self):
        other = Mine()
        other.scale = 1 / self.scale
        return other

    def face(self, a):
        return Face.of_point(a / ox.l2(a) / self.scale)

    def gradient(self, w):
        return self.scale * w / ox.l2(w)


def test_norms_of_the_users_own() -> None:
    a = np.array([3.0, 4.0])
    own = Mine()
    assert perspective_ratio(own, own, 2, a) == 1
    assert perspective_ratio(own, ox.l1, 2, a) >= 2 * 0.8  # a bound, by coordinates
    assert perspective_ratio(own, ox.l1, 2, a) == pytest.approx(4.0)
    assert perspective_ratio(ox.l2, own, 2, a) == pytest.approx(0.5, rel=1e-12)
    assert perspective_ratio(ox.linf, own, 2, a) == pytest.approx(0.5, rel=1e-12)


def test_what_does_not_fit_is_refused() -> None:
    for norms in ((weighted(1, [1, 2]), ox.l2), (ox.l2, weighted(1, [1, 2]))):
        with pytest.raises(DimensionMismatch, match="made for 2 features, not for 3"):
            perspective_ratio(*norms, 3)
    with pytest.raises(DimensionMismatch, match="made for 2 features"):
        perspective_ratio(ox.l1, ox.l2, 3, np.ones(2))
    for distance in (ox.l1, ox.linf, ox.l2, ox.Lp(3)):
        with pytest.raises(InvalidInput, match="length 0"):
            perspective_ratio(distance, ox.l1, 2, np.zeros(2))


@pytest.mark.parametrize("side", [ox.YES, ox.NO])
@pytest.mark.parametrize("name", NORMS)
def test_with_equal_norms_the_point_is_where_the_ball_touches(name, side) -> None:
    norm = make_norm(name, 3, 4, spread=1.0)
    plane = ox.Hyperplane([1.0, -2.0, 0.5], 0.7)
    mechanism = ox.Mechanism(norm, robustness=norm, radius=0.8)
    x = side * np.array([2.0, -1.5, 1.0]) + 0.1
    assert plane.label(x) == side
    answer = ox.ModelOracle(plane, mechanism).explain(x)
    assert plane.margin(perspective_point(x, answer, mechanism)) == pytest.approx(0.0, abs=1e-9)


def test_without_a_ball_the_point_is_the_explanation() -> None:
    x, answer = np.zeros(2), np.array([1.0, 0.0])
    assert perspective_point(x, answer, ox.Mechanism("l1")).tolist() == [1.0, 0.0]
    assert perspective_point(x, answer, ox.Mechanism("l1", robustness="linf", radius=0.25)).tolist() == [0.5, 0.0]


def test_a_point_needs_the_terms() -> None:
    x, answer = np.zeros(2), np.array([1.0, 0.0])
    with pytest.raises(InvalidInput, match="secret"):
        perspective_point(x, answer, ox.Mechanism("l1", robustness="l2", radius=None))
    with pytest.raises(InvalidInput, match="unknown"):
        perspective_point(x, answer, ox.Mechanism(None, robustness="l2", radius=1.0))
    with pytest.raises(InvalidInput, match="no direction"):
        perspective_point(x, x, ox.Mechanism("l1", robustness="l2", radius=1.0))


def is_bounded_by(log: ox.QueryLog, largest: float) -> None:
    """x' − d·v has the question's class from d = ρ·C on, and below that a model with s = C·t says otherwise."""
    x, step, terms = log.points[0], log.explanations[0] - log.points[0], log.mechanism_of(0)
    reached = terms.radius * largest / float(terms.distance(step))
    assert reached < 0.9  # the question itself lies farther back
    share = reached * np.array([[1 - 1e-5], [1 + 1e-5]])
    before, behind = ox.Knowledge(log, robust="perspective").certify(x + (1 - share) * step).codes
    assert behind == log.labels[0]
    assert before != log.labels[0]


@pytest.mark.parametrize("distance", ["l1", "linf", "l2", "weighted l1", "weighted linf"])
@pytest.mark.parametrize("ball", ["l1", "l2", "linf", "lp:3"])
def test_the_perspective_level_uses_the_least_constant(distance: str, ball: str) -> None:
    """What `Knowledge(robust="perspective")` bounds s by, from a box and chords, is C·t: no worse than the constant itself."""
    metric = ox.Weighted(ox.norm(distance[9:]), [1.0, 2.0, 0.5]) if distance[:3] == "wei" else ox.norm(distance)
    terms = ox.Mechanism(metric, robustness=ball, radius=0.05)
    rng = np.random.default_rng(0)
    for _ in range(5):
        plane, x = ox.Hyperplane(rng.choice([-2.0, -1.0, 0.5, 1.0], 3), rng.normal()), 3 * rng.normal(size=3)
        log = ox.QueryLog(mechanism=terms)
        log.add_explanation(x, ox.ModelOracle(plane, terms, ties="random", rng=rng).explain(x), int(plane.label(x)))
        is_bounded_by(log, perspective_ratio(metric, ox.norm(ball), 3, log.explanations[0] - x))


@pytest.mark.parametrize("distance", ["l1", "weighted l1", "linf", "weighted linf", "l2", "mahalanobis"])
@pytest.mark.parametrize("ball", ["mahalanobis", "group", "group max", "weighted group", "polyhedral", "facets"])
@pytest.mark.parametrize("p", [2, 3])
def test_the_perspective_level_uses_the_least_constant_of_every_ball(distance: str, ball: str, p: int) -> None:
    """The same for balls that are no weighted ℓq; here the constant is the largest s/t at the corners of K(w), by brute force."""
    metric, robustness = make_norm(distance, p, 1, spread=0.5), make_norm(ball, p, 2, spread=0.5)
    terms = ox.Mechanism(metric, robustness=robustness, radius=0.05)
    rng = np.random.default_rng(0)
    for _ in range(3):
        plane, x = ox.Hyperplane(rng.uniform(0.5, 2.0, p) * rng.choice([-1.0, 1.0], p), 0.3), 5 * rng.normal(size=p)
        log = ox.QueryLog(mechanism=terms)
        log.add_explanation(x, ox.ModelOracle(plane, terms).explain(x), int(plane.label(x)))
        step = log.explanations[0] - x
        if "l1" in distance:  # at the corners of a cube a_i = ±d_i; w fixes the signs where it moved
            ends = [[np.sign(w)] if abs(w) > 1e-9 else [-1.0, 1.0] for w in step]
            corners = np.array(list(product(*ends))) * metric.units(p)
        elif "linf" in distance:  # w moved all coordinates equally far: d_i·ε_i
            corners = np.diag(metric.units(p) * np.sign(step))
        else:
            corners = metric.gradient(step)[None, :]
        assert metric.dual(corners) == pytest.approx(1.0)
        assert corners @ step == pytest.approx(metric(step))
        is_bounded_by(log, float(np.max(robustness.dual(corners))))
