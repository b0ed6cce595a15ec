"""Norms: the shipped contract on all of ours, a second opinion by cvxpy, and what bad input gets."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overexplain as ox
from overexplain.geometry.norm import Face, Norm
from overexplain.testing.norms import check_norm
from strategies import NORMS, SMOOTH, make_norm


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("p", [1, 2, 5])
def test_every_norm_and_its_dual_keep_the_contract(name: str, p: int) -> None:
    norm = make_norm(name, p)
    check_norm(norm, p)
    check_norm(norm.dual, p)


@pytest.mark.parametrize("name", NORMS)
def test_smooth_norms_are_the_ones_that_say_so(name: str) -> None:
    assert make_norm(name, 4).is_smooth == (name in SMOOTH)


def as_cvxpy(norm: Norm, x: cp.Variable) -> cp.Expression:
    """The norm written for cvxpy from its definition, not from our code."""
    if isinstance(norm, ox.Lp):
        return cp.norm(x, "inf" if norm.q == math.inf else norm.q)
    if isinstance(norm, ox.Weighted):
        return as_cvxpy(norm.norm, cp.multiply(norm.weights, x))
    if isinstance(norm, ox.Mahalanobis):
        return cp.norm(np.linalg.cholesky(norm.matrix).T @ x, 2)
    if isinstance(norm, ox.GroupNorm):
        return sum(cp.norm(x[list(group)], 2) for group in norm.groups)
    assert isinstance(norm, ox.Polyhedral)
    weights = cp.Variable(len(norm.vertices), nonneg=True)
    return cp.sum(weights) + 1e9 * cp.norm(norm.vertices.T @ weights - x, 1)


@pytest.mark.parametrize("name", [n for n in NORMS if n not in ("group max", "facets", "polyhedral")])
def test_dual_norm_against_cvxpy(name: str) -> None:
    norm = make_norm(name, 4, spread=1.0)
    a = np.random.default_rng(3).normal(size=4)
    v = cp.Variable(4)
    problem = cp.Problem(cp.Maximize(a @ v), [as_cvxpy(norm, v) <= 1])
    problem.solve(solver="CLARABEL")
    assert norm.dual(a) == pytest.approx(problem.value, rel=1e-6)


def test_polyhedral_norm_is_l1_and_linf_where_its_ball_is_theirs() -> None:
    cross = ox.Polyhedral(np.vstack([np.eye(3), -np.eye(3)]))
    cube = ox.Polyhedral(np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T)
    x = np.random.default_rng(0).normal(size=(20, 3)) * 10.0 ** np.arange(-10, 10)[:, None]
    assert cross(x) == pytest.approx(ox.l1(x), rel=1e-12)
    assert cube(x) == pytest.approx(ox.linf(x), rel=1e-12)
    for w in x:
        assert cross.normal_cone(w).dimension == ox.l1.normal_cone(w).dimension == 1
        assert cube.normal_cone(w).dimension == ox.linf.normal_cone(w).dimension == 1
    assert cross.normal_cone(np.array([1.0, 0, 0])).dimension == ox.l1.normal_cone(np.array([1.0, 0, 0])).dimension == 3
    assert cube.normal_cone(np.array([1.0, -1, 1])).dimension == 3


@pytest.mark.parametrize(
    ("norm", "w", "dimension"),
    [
        (ox.l1, [1.0, 0, 0], 3),
        (ox.l1, [1.0, -1.0, 0], 2),
        (ox.l1, [1.0, 1e-7, 0], 3),  # inside the band a moved coordinate is not believed
        (ox.linf, [1.0, -1.0, 1.0], 3),
        (ox.linf, [1.0, 0.3, -1.0], 2),
        (ox.linf, [1.0, 1 - 1e-7, 0.0], 2),
        (ox.l2, [1.0, 2.0, 3.0], 1),
        (ox.GroupNorm([[0, 1], [2]]), [3.0, 4.0, 0.0], 2),
        (ox.GroupNorm([[0, 1], [2]]), [0.0, 0.0, 2.0], 3),
        (ox.GroupNorm([[0, 1], [2]]).dual, [0.6, 0.8, 1.0], 2),
    ],
)
def test_dimension_of_the_normal_cone(norm: Norm, w: list[float], dimension: int) -> None:
    assert norm.normal_cone(np.array(w)).dimension == dimension


@given(st.floats(1, 40), st.floats(-150, 150), st.integers(0, 50))
def test_lp_does_not_depend_on_scale(q: float, exponent: float, seed: int) -> None:
    norm, x, scale = ox.Lp(q), np.random.default_rng(seed).normal(size=5), 10.0**exponent
    assert norm(x * scale) / scale == pytest.approx(norm(x), rel=1e-12)
    assert norm.dual.q == pytest.approx(q / (q - 1) if q > 1 else math.inf)


@pytest.mark.parametrize("name", NORMS)
def test_written_form_reads_back(name: str) -> None:
    norm = make_norm(name, 3)
    again = ox.norm(norm.spec)
    x = np.random.default_rng(1).normal(size=(4, 3))
    assert np.array_equal(again(x), norm(x))
    assert again.spec == norm.spec
    assert again == norm
    assert hash(again) == hash(norm)


def test_names_parse() -> None:
    assert ox.norm(" L1 ") is ox.l1
    assert ox.norm("lp:inf") is ox.linf
    assert ox.norm("lp:1.5") == ox.Lp(1.5)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ox.norm("l7"), ox.UnsupportedNorm, "known are l1, l2, linf"),
        (lambda: ox.norm("lp:x"), ox.UnsupportedNorm, "must be a number"),
        (lambda: ox.norm("lp:nan"), ox.UnsupportedNorm, "q ≥ 1"),
        (lambda: ox.norm(3), ox.UnsupportedNorm, "got int"),
        (lambda: ox.norm({"norm": "weighted", "base": "l1"}), ox.UnsupportedNorm, "lacks the entry 'weights'"),
        (lambda: ox.norm({"norm": "odd"}), ox.UnsupportedNorm, "unknown norm 'odd'"),
        (lambda: ox.Lp(0.5), ox.UnsupportedNorm, "q ≥ 1"),
        (lambda: ox.Weighted(ox.l1, [1.0, 0.0]), ox.InvalidInput, "positive, got 0.0 for feature 1"),
        (lambda: ox.Weighted(ox.l1, [1.0, -2.0]), ox.InvalidInput, "positive"),
        (lambda: ox.Weighted(ox.l1, [1.0, math.nan]), ox.NotFinite, "entry 1"),
        (lambda: ox.Weighted(ox.GroupNorm([[0], [1]]), [1.0]), ox.DimensionMismatch, "2 entries"),
        (lambda: ox.Mahalanobis([[1.0, 2.0]]), ox.InvalidInput, "square"),
        (lambda: ox.Mahalanobis([[1.0, 2.0], [0.0, 1.0]]), ox.InvalidInput, "symmetric"),
        (lambda: ox.Mahalanobis([[1.0, 1.0], [1.0, 1.0]]), ox.InvalidInput, "singular"),
        (lambda: ox.Mahalanobis([[1.0, 0.0], [0.0, -1.0]]), ox.InvalidInput, "positive definite"),
        (lambda: ox.Mahalanobis([[0.0]]), ox.InvalidInput, "positive definite"),
        (lambda: ox.GroupNorm([[0, 1], [1]]), ox.InvalidInput, "exactly one"),
        (lambda: ox.GroupNorm([[1]]), ox.InvalidInput, "exactly one"),
        (lambda: ox.GroupNorm([[0], []]), ox.InvalidInput, "non-empty"),
        (lambda: ox.Polyhedral([[1.0, 0.0], [0.0, 1.0]]), ox.InvalidInput, "symmetric about 0"),
        (lambda: ox.Polyhedral([[1.0, 0.0], [-1.0, 0.0]]), ox.InvalidInput, "span"),
        (lambda: ox.l1.gradient(np.ones(2)), ox.UnsupportedNorm, "not differentiable"),
        (lambda: ox.Weighted(ox.l1, [1.0, 2.0]).units(3), ox.DimensionMismatch, "2 weights"),
    ],
)
def test_bad_norms_are_refused(make: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()  # type: ignore[operator]


class OwnL2(Norm):
    """A user's norm, made of nothing but the four required parts."""

    is_smooth = True

    def __call__(self, x: object) -> object:
        return ox.l2(x)

    @property
    def dual(self) -> Norm:
        return self

    def face(self, a: np.ndarray) -> Face:
        return Face.of_point(a / ox.l2(a))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return w / ox.l2(w)


def test_a_norm_of_the_users_own_works_everywhere() -> None:
    check_norm(OwnL2(), 3)
    secret = ox.Hyperplane([1.0, 2.0, -1.0], 3.0)
    found = ox.extract(ox.ModelOracle(secret, ox.Mechanism(OwnL2())))
    assert found.hyperplane.is_equivalent(secret, 1e-12)
    assert found.error_bound is None  # it does not say how its gradient reacts to rounding
    with pytest.raises(ox.UnsupportedNorm, match="no written form"):
        _ = OwnL2().spec


def broken(**changes: object) -> Norm:
    return type("Broken", (OwnL2,), changes)()


@pytest.mark.parametrize(
    ("norm", "says"),
    [
        (broken(__call__=lambda self, x: ox.l2(x) ** 2), "3‖x‖"),
        (broken(__call__=lambda self, x: np.sqrt(np.square(x).sum(-1))), "overflow|positive"),
        (broken(dual=ox.linf), "dual of the dual"),
        (broken(face=lambda self, a: Face.of_point(2 * a / ox.l2(a))), "norm 1"),
        (broken(face=lambda self, a: Face.of_point(np.eye(len(a))[0])), "a·v must be"),
        (broken(gradient=lambda self, w: 2 * w / ox.l2(w)), "dual norm 1"),
        (broken(gradient=lambda self, w: np.eye(len(w))[0]), "a·w"),
        (broken(gradient_error=lambda self, w, e: 0 * w), "too small"),
        (broken(units=lambda self, p: np.full(p, 2.0)), "units"),
        (broken(normal_cone=lambda self, w, error=None, accuracy=0: ox.l1.normal_cone(np.abs(w))), "outside of span"),
    ],
)
def test_check_norm_finds_each_kind_of_mistake(norm: Norm, says: str) -> None:
    with np.errstate(over="ignore", under="ignore"), pytest.raises(AssertionError, match=says):
        check_norm(norm, 3)
