"""The paper's preliminaries: classifier, equivalence, the three queries, kinds of norms, and Table 1."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import overexplain as ox


def test_def_linear_classifier():
    """`Hyperplane.label(x)` is +1 exactly where normal·x − offset ≥ 0, the plane itself included (exact)."""
    values = (-2.0, -0.5, 0.0, 1.0)
    models = [(a, b) for a in product(values, repeat=2) if any(a) for b in values]
    for a, b in models:
        plane = ox.Hyperplane(a, b)
        for x in product((-1.5, -1.0, 0.0, 0.25, 2.0), repeat=2):
            exact = sum(Fraction(u) * Fraction(v) for u, v in zip(a, x, strict=True)) - Fraction(b)
            assert plane.label(x) == (1 if exact >= 0 else -1)
            assert plane.margin(x) == float(exact)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_remark_monotone_link(alpha, rng):
    """σ(a·x) ≥ α is the linear classifier with offset logit(α): `LinearModel.with_threshold` and by hand."""
    normal = rng.normal(size=4)
    by_hand = ox.Hyperplane(normal, np.log(alpha / (1 - alpha)))
    loaded = ox.LinearModel(ox.Hyperplane(normal, 0.0), threshold=0.5).with_threshold(alpha).hyperplane
    points = rng.normal(size=(500, 4))
    said = np.where(1 / (1 + np.exp(-points @ normal)) >= alpha, 1, -1)
    assert {1, -1} == set(said)
    assert np.array_equal(by_hand.labels(points), said)
    assert np.array_equal(loaded.labels(points), said)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_remark_monotone_link_that_decreases(alpha, rng):
    """f(a·x) ≥ α is printed as a·x ≥ f⁻¹(α) for any monotone f. A decreasing one reverses it, a·x ≤ f⁻¹(α): the model is (−a, −b).

    What is learnt from such a service is that model, by labels and by counterfactuals; the printed one has every label off the
    plane the wrong way round.
    """
    normal = rng.normal(size=4)
    level = np.log((1 - alpha) / alpha)  # f⁻¹(α) of f(z) = 1/(1 + eᶻ), which decreases
    assert 1 / (1 + np.exp(level)) == pytest.approx(alpha, rel=1e-12)

    def says(points):
        return np.where(1 / (1 + np.exp(np.atleast_2d(points) @ normal)) >= alpha, 1, -1)

    printed, reversed_ = ox.Hyperplane(normal, level), ox.Hyperplane(-normal, -level)
    points = rng.normal(size=(500, 4))
    said = says(points)
    assert {1, -1} == set(said)
    assert np.array_equal(reversed_.labels(points), said)
    assert np.array_equal(printed.labels(points), -said)
    log = ox.QueryLog()
    log.add_label(points[:300], said[:300])
    codes = ox.Knowledge(log).certify(points[300:]).codes
    assert (codes != 0).sum() > 20
    assert np.array_equal(codes[codes != 0], said[300:][codes != 0])
    # The nearest point of the other class is the same under both: only the label tells them apart.
    service = ox.CallableOracle(
        lambda x: x + (level - normal @ x) / (normal @ normal) * normal, lambda x: int(says(x)[0]),
        dimension=4, mechanism="l2",
    )  # fmt: skip
    found = ox.extract(service)
    assert found.hyperplane.is_equivalent(reversed_, 1e-9)
    assert found.hyperplane.same_plane(printed, 1e-9)
    assert not found.hyperplane.is_equivalent(printed, 1e-9)


def test_assumption_A1(distance, p, tools, rng):
    """(A1) The data space is all of R^p: `ModelOracle` labels and explains points of any size, and x'
    is R^p's nearest."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(distance))
    for size in (1e-6, 1e6):
        x = size * rng.normal(size=p)
        answer = oracle.explain(x)
        assert oracle.classify(x) in (1, -1)
        assert abs(plane.margin(answer)) <= 1e-12 * (1 + size)


def test_assumption_A2():
    """(A2) The normal is not zero, so both classes exist; `Hyperplane` refuses the rest."""
    with pytest.raises(ox.ZeroNormal):
        ox.Hyperplane([0.0, 0.0], 1.0)
    for k in range(3):
        normal = np.eye(3)[k] * -1e-300
        plane = ox.Hyperplane(normal, 5.0)
        assert {plane.label(t * np.eye(3)[k]) for t in (-1e302, 1e302)} == {1, -1}


def test_def_equivalent_hyperplane(tools):
    """Same zero set iff (a, b) = λ(â, b̂) with λ ≠ 0 iff `same_plane`; `is_equivalent` iff besides λ >
    0 (all small models)."""
    models = [(a, b) for a in product((-2, 0, 1, 3), repeat=2) if any(a) for b in (-2, 0, 1)]
    for a, b in models:
        # Two points of the plane, exactly; a line of R² is given by them.
        foot = [Fraction(b * u, a[0] ** 2 + a[1] ** 2) for u in a]
        other = [foot[0] - a[1], foot[1] + a[0]]
        for c, d in models:
            same_zeros = all(tools.dot(c, z) == d for z in (foot, other))
            proportional = tools.rank([[*a, b], [*c, d]]) == 1
            assert same_zeros == proportional
            mine, yours = ox.Hyperplane(a, b), ox.Hyperplane(c, d)
            assert mine.same_plane(yours) == same_zeros
            aligned = same_zeros and tools.dot(a, c) > 0
            assert mine.is_equivalent(yours) == aligned


def test_def_factual_query(p, tools, rng):
    """`oracle.classify` is h: −1 or +1, for a point and for rows, and asks nothing of the mechanism."""
    plane = tools.plane(p, rng)
    points = rng.normal(size=(50, p)) * 3
    said = np.array(
        [1 if sum(u * v for u, v in zip(plane.normal, x, strict=True)) >= plane.offset else -1 for x in points]
    )
    for mechanism in (ox.Mechanism("l1"), ox.Mechanism("linf", robustness="l2", radius=2.0)):
        oracle = ox.ModelOracle(plane, mechanism)
        assert [oracle.classify(x) for x in points] == said.tolist()
        assert np.array_equal(oracle.classify(points), said)


def check_counterfactual(tools, rng, plane, oracle, distance, x, side):
    """`explain(x)` flips the label up to closure, and nothing nearer does."""
    answer = oracle.explain(x)
    step = answer - x
    cost = tools.length(distance, step)
    assert oracle.classify(x) == side
    assert oracle.classify(answer + 1e-9 * step) == -side
    assert oracle.classify(answer - 1e-9 * step) == side
    nearer = x + (1 - 1e-6) * cost * tools.ball(distance, len(x), rng, plane.normal)
    assert (oracle.classify(nearer) == side).all()
    assert cost == pytest.approx(tools.nearest(plane, distance, x)[0], rel=1e-6)
    return answer


def test_eq_CF_problem(distance, p, side, tools, rng):
    """Definition of q_CF: `explain(x)` flips the label up to closure, and nothing nearer does (cvxpy,
    and by sampling)."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, ox.Mechanism(distance))
    check_counterfactual(tools, rng, plane, oracle, distance, tools.point(plane, side, rng), side)


def test_eq_CF_problem_with_ties(tied, p, side, tools, rng):
    """q_CF is *an* optimal solution: ``ties="random"`` gives different ones, each as good as cvxpy's."""
    plane = ox.Hyperplane(tied.normal, 0.7)
    oracle = ox.ModelOracle(plane, ox.Mechanism(tied.norm), ties="random", rng=1)
    x = tools.point(plane, side, rng)
    answers = [check_counterfactual(tools, rng, plane, oracle, tied.norm, x, side) for _ in range(2)]
    assert np.abs(answers[0] - answers[1]).max() > 1e-3


def test_remark_closure_instead_of_minimum(distance, p, tools, rng):
    """From a Yes the infimum is not attained: x' is itself a Yes (on the plane), and any step beyond
    it, or none shorter, flips."""
    plane = ox.Hyperplane(np.round(4 * tools.plane(p, rng).normal), 1.0)
    x = plane.normal * 4.0
    answer = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x)
    exact = answer - plane.margin(answer) * plane.normal / (plane.normal @ plane.normal)  # rounding taken away
    assert plane.label(x) == ox.YES
    assert abs(plane.margin(exact)) < 1e-12
    for t in (1e-3, 1e-6, 1e-9):
        assert plane.label(exact + t * (answer - x)) == ox.NO
    # On a plane that float64 hits exactly, the returned point has the factual's own label.
    axis = ox.Hyperplane([1.0, 0.0], 1.0)
    assert axis.label(ox.ModelOracle(axis, ox.Mechanism("l1")).explain([3.0, 0.0])) == ox.YES


def check_robust_counterfactual(tools, rng, plane, oracle, terms, x, side):
    """The whole N2-ball around `explain(x)` lies across, and around nothing nearer."""
    answer, p = oracle.explain(x), len(x)
    step = answer - x
    cost = tools.length(terms.distance, step)
    ball = terms.radius * tools.ball(terms.robustness, p, rng, plane.normal)
    assert (oracle.classify(answer + 1e-6 * step + ball) == -side).all()
    assert (oracle.classify(answer - 1e-6 * step + ball) == side).any()
    for z in x + (1 - 1e-6) * cost * tools.ball(terms.distance, p, rng, plane.normal, n=50):
        assert (oracle.classify(z + ball) == side).any()
    value = tools.nearest(plane, terms.distance, x, terms.robustness, terms.radius)[0]
    assert cost == pytest.approx(value, rel=1e-6)
    return answer


def test_eq_robust_CF_problem(robust, p, side, tools, rng):
    """Definition of q_RCF: the whole N2-ball around `explain(x)` lies across, and around nothing
    nearer (cvxpy, sampling)."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, robust.mechanism)
    check_robust_counterfactual(tools, rng, plane, oracle, robust, tools.point(plane, side, rng), side)


def test_eq_robust_CF_problem_with_ties(tied, p, side, tools, rng):
    """q_RCF is *an* optimal solution: ``ties="random"`` gives different ones, each as good as cvxpy's."""
    terms = SimpleNamespace(distance=tied.norm, robustness=ox.Lp(3.0), radius=0.4)
    plane = ox.Hyperplane(tied.normal, 0.7)
    mechanism = ox.Mechanism(tied.norm, robustness=terms.robustness, radius=terms.radius)
    oracle = ox.ModelOracle(plane, mechanism, ties="random", rng=1)
    x = tools.point(plane, side, rng)
    answers = [check_robust_counterfactual(tools, rng, plane, oracle, terms, x, side) for _ in range(2)]
    assert np.abs(answers[0] - answers[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
def test_eq_robust_CF_problem_of_a_point_on_the_plane(name):
    """A factual on the plane itself is a Yes, so its robust counterfactual lies ρ‖a‖*_N2 into the No side."""
    plane = ox.Hyperplane([2.0, -1.0], 3.0)
    oracle = ox.ModelOracle(plane, ox.Mechanism(name, robustness="l1", radius=0.5))
    for x in ([1.0, -1.0], [2.0, 1.0], [0.0, -3.0]):
        assert oracle.classify(x) == ox.YES
        assert plane.margin(oracle.explain(x)) == pytest.approx(-0.5 * 2.0, rel=1e-12)  # ‖a‖*_N2 = max|a_i|


def test_def_robustness_ball_contains_plain_case(distance, p, side, tools, rng):
    """S = {0}: with ρ = 0 the robust query is the plain one; with ρ > 0 the ball pushes x' beyond the plane."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    plain = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x)
    assert np.array_equal(ox.ModelOracle(plane, ox.Mechanism(distance, robustness="l2", radius=0.0)).explain(x), plain)
    robust = ox.ModelOracle(plane, ox.Mechanism(distance, robustness="l2", radius=0.3)).explain(x)
    reach = 0.3 * np.sqrt(plane.normal @ plane.normal)
    assert -side * plane.margin(robust) == pytest.approx(reach, rel=1e-12)
    assert abs(plane.margin(plain)) < 1e-12


def test_def_differentiable_norm(distance, p, tools, rng):
    """`is_smooth` iff the norm is differentiable off 0: slopes ahead and behind agree at every tested
    w, or some w has a kink."""
    tests = [
        *np.eye(p),
        np.ones(p),
        *rng.normal(size=(4, p)),
        *(tools.support(distance, a)[1] for a in rng.normal(size=(3, p))),
    ]
    kink, t = 0.0, 1e-6
    for w in tests:
        for h in (*np.eye(p), *rng.normal(size=(3, p))):
            ahead, here, behind = (tools.length(distance, w + s * t * h) for s in (1, 0, -1))
            kink = max(kink, (ahead - 2 * here + behind) / t)
    assert (kink < 1e-2) == distance.is_smooth
    assert (kink < 0.1) == distance.is_smooth  # nothing in between: a kink is a kink


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_tab_results(p, distance, tools, rng):
    """Table 1 as printed with ``strategy="paper"`` (1 or p+1 CFs; 1+1 or (p+1)+(p+1) for RCFs); by
    default dim span K and no label."""
    plane = tools.plane(p, rng)
    assert plane.normal[0] != plane.offset  # e^1 off the plane: the assumption of thm:CF_nondiff
    printed = {"CF": (1, 0), "RCF": (1, 1)} if distance.is_smooth else {"CF": (p + 1, 0), "RCF": (p + 1, p + 1)}
    services = {"CF": ox.Mechanism(distance), "RCF": ox.Mechanism(distance, robustness="l2", radius=0.4)}
    for row, mechanism in services.items():
        oracle = ox.ModelOracle(plane, mechanism)
        theirs = ox.extract(oracle, strategy="paper", orient=False, rng=3)
        assert (theirs.spent.explanations, theirs.spent.labels) == printed[row]
        assert theirs.hyperplane.same_plane(plane, 1e-7)
        ours = ox.extract(oracle, orient=False)
        assert ours.spent.explanations <= (1 if distance.is_smooth else p)
        assert ours.spent.labels == 0
        assert ours.hyperplane.same_plane(plane, 1e-9)
