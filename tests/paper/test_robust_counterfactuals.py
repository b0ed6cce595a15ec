"""Extracting the hyperplane with robust counterfactual queries: every lemma, theorem, corollary, remark and example."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import overexplain as ox


def test_lem_optimality_conditions_RCF(robust, p, side, tools, rng):
    """b = a·x' + label·ρ‖a‖*_N2, and λ*a ∈ ∂f(x' − x) for cvxpy's multiplier λ* ≠ 0 (its sign is
    −label, not always +)."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    answer = ox.ModelOracle(plane, robust.mechanism).explain(x)
    reach = robust.radius * tools.support(robust.robustness, plane.normal)[0]
    assert plane.normal @ answer + side * reach == pytest.approx(plane.offset, abs=1e-6)
    multiplier = tools.nearest(plane, robust.distance, x, robust.robustness, robust.radius)[2]
    assert multiplier * side < -1e-3
    step, slope = answer - x, multiplier * plane.normal
    points = np.vstack(
        [step + rng.normal(size=(60, p)), 20 * tools.ball(robust.distance, p, rng, plane.normal, n=30), np.zeros(p)]
    )
    for z in points:
        assert tools.length(robust.distance, z) >= tools.length(robust.distance, step) + slope @ (z - step) - 1e-5


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_thm_RCF_diff(smooth_robust, p, side, tools, rng):
    """Differentiable N1: 1 RCF and 1 factual give the model from either class, with b̂ = â·x' −
    ρ‖â‖*_N2 (E8), â = ∇f(x' − x)."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, smooth_robust.mechanism)
    x = tools.point(plane, side, rng)
    answer = oracle.explain(x)
    slope = tools.gradient(smooth_robust.distance, answer - x)  # central differences
    reach = smooth_robust.radius * tools.support(smooth_robust.robustness, slope)[0]
    assert ox.Hyperplane(slope, slope @ answer - reach).same_plane(plane, 1e-4)
    found = ox.extract(oracle, strategy="paper", start=x)
    assert found.spent == ox.Spent(explanations=1, labels=1)
    assert found.hyperplane.is_equivalent(plane, 1e-9)


def test_remark_equivalent_model_costs_the_same(smooth_robust, p, tools, rng):
    """Finding an equivalent *classifier* takes one explanation and one label, robust or not (after thm:RCF_diff)."""
    plane = tools.plane(p, rng)
    plain = ox.extract(ox.ModelOracle(plane, ox.Mechanism(smooth_robust.distance)), strategy="paper")
    robust = ox.extract(ox.ModelOracle(plane, smooth_robust.mechanism), strategy="paper")
    assert plain.spent == robust.spent == ox.Spent(explanations=1, labels=1)
    assert plain.hyperplane.is_equivalent(plane, 1e-9)
    assert robust.hyperplane.is_equivalent(plane, 1e-9)


def test_cor_optimality_conditions_RCF_non_differentiable_norm(robust, p, side, tools, rng):
    """x' is optimal iff a·x' + label·ρ‖a‖*_N2 = b, λa·(x' − x) = ‖x' − x‖ and ‖λa‖* ≤ 1, λ ≠ 0:
    against cvxpy's optimum."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    answer = ox.ModelOracle(plane, robust.mechanism).explain(x)
    best = tools.nearest(plane, robust.distance, x, robust.robustness, robust.radius)[0]
    reach = robust.radius * tools.support(robust.robustness, plane.normal)[0]
    dual_length = tools.support(robust.distance, plane.normal)[0]
    along = rng.normal(size=(20, p))
    along -= np.outer(along @ plane.normal, plane.normal) / (plane.normal @ plane.normal)
    ball = robust.radius * tools.ball(robust.robustness, p, rng, plane.normal, n=20)
    verdicts = []
    for z in [
        answer,
        *(answer + s * h for h in along for s in (0.1, 1.0)),
        *(answer + t * (answer - x) for t in (-0.1, 0.1)),
    ]:
        feasible = (-side * (plane.margin(z + ball)) >= -1e-6).all()
        optimal = feasible and tools.length(robust.distance, z - x) <= best * (1 + 1e-6)
        level = abs(plane.normal @ z + side * reach - plane.offset) <= 1e-6
        multiplier = tools.length(robust.distance, z - x) / (plane.normal @ (z - x))
        assert (level and abs(multiplier) * dual_length <= 1 + 1e-6) == optimal
        verdicts.append(optimal)
    assert verdicts[0]
    assert not all(verdicts)


def test_eq_system_eq_RCF_full(robust, p, tools, rng):
    """a·x' − b + label·ρ‖a‖*_N2 = 0 for every answer; (a, b) may be scaled by any λ > 0, not by λ < 0;
    it is not linear."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, robust.mechanism)
    points = np.array([tools.point(plane, s, rng) for s in (1, -1) for _ in range(p)])
    answers, labels = oracle.explain(points), oracle.classify(points)

    def residual(a, b):
        return answers @ a - b + labels * robust.radius * tools.support(robust.robustness, a)[0]

    for scale in (0.2, 1.0, 5.0):
        assert np.abs(residual(scale * plane.normal, scale * plane.offset)).max() < 1e-5
    assert np.abs(residual(-plane.normal, -plane.offset)).min() > 0.1
    other = rng.normal(size=p)  # residuals of a sum are not sums of residuals: ‖a‖* is not linear
    parted = residual(plane.normal, plane.offset) + residual(other, 0.0)
    assert np.abs(residual(plane.normal + other, plane.offset) - parted).max() > 1e-4


def test_eq_system_eq_RCF(cornered_robust, p, tools, rng):
    """Scaled to ‖a‖*_N2 = 1, p answers leave a line of (a, b) that holds the model; ‖a‖* = 1 cuts it
    in at most two points."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, cornered_robust.mechanism)
    points = np.array([tools.point(plane, 1 if i % 2 else -1, rng) for i in range(p)])
    answers, labels = oracle.explain(points), oracle.classify(points)
    rows = np.column_stack([answers, -np.ones(p)])
    assert np.linalg.matrix_rank(rows, tol=1e-8) == p
    length = tools.support(cornered_robust.robustness, plane.normal)[0]
    truth = np.append(plane.normal, plane.offset) / length
    assert np.abs(rows @ truth + labels * cornered_robust.radius).max() < 1e-6
    line = np.linalg.svd(rows)[2][-1]
    dual = cornered_robust.robustness.dual
    ts = np.linspace(-8, 8, 1601)
    excess = dual(truth[:-1] + ts[:, None] * line[:-1]) - 1
    assert abs(excess[800]) < 1e-6
    assert (np.diff(excess, 2) > -1e-9).all()  # convex along the line, hence at most two roots
    assert np.count_nonzero(np.diff(np.sign(excess[np.abs(excess) > 1e-6]))) <= 2


def test_remark_zero_is_a_robust_counterfactual(robust, p, side, tools, rng):
    """If 0 is the robust answer to x then b = +label·ρ‖a‖*_N2 (printed with −); p − 1 more answers of
    x's class give a (corrected E21)."""
    normal = tools.plane(p, rng).normal
    reach = robust.radius * tools.support(robust.robustness, normal)[0]
    plane = ox.Hyperplane(normal, side * robust.radius * robust.robustness.dual(normal))
    oracle = ox.ModelOracle(plane, robust.mechanism)
    x = side * 9.0 * robust.distance.maximizer(normal)
    assert oracle.classify(x) == side
    assert np.abs(oracle.explain(x)).max() < 1e-12
    assert plane.offset == pytest.approx(side * reach, rel=1e-6)
    assert abs(plane.offset + side * reach) > 0.1  # the printed sign
    answers = oracle.explain(np.array([tools.point(plane, side, rng) for _ in range(p - 1)]))
    a = np.linalg.svd(answers)[2][-1]
    assert ox.Hyperplane(a, 0.0).same_plane(ox.Hyperplane(normal, 0.0), 1e-9)


def test_lem_RCF_direction(robust, p, side, tools, rng):
    """x + d·v with d = (b − a·x − label·ρ‖a‖*_N2)/‖a‖* is optimal iff ‖v‖ ≤ 1 and a·v = ‖a‖*: the v of
    plain counterfactuals."""
    plane = tools.plane(p, rng)
    dual_length, best = tools.support(robust.distance, plane.normal)
    reach = robust.radius * tools.support(robust.robustness, plane.normal)[0]
    aside = rng.normal(size=p)
    aside -= (aside @ plane.normal) / (plane.normal @ plane.normal) * plane.normal
    x = tools.point(plane, side, rng)
    signed = (plane.offset - plane.normal @ x - side * reach) / dual_length
    assert signed * side < 0
    cost = tools.nearest(plane, robust.distance, x, robust.robustness, robust.radius)[0]
    for v in (best, robust.distance.maximizer(plane.normal)):
        assert tools.length(robust.distance, signed * v) == pytest.approx(cost, rel=1e-5)
        assert -side * plane.margin(x + signed * v) == pytest.approx(reach, rel=1e-5)
    ball = robust.radius * tools.ball(robust.robustness, p, rng, plane.normal, n=20)
    too_long = best + 3 * aside / tools.length(robust.distance, aside)  # a·v = ‖a‖*, ‖v‖ > 1: feasible, too far
    assert tools.length(robust.distance, signed * too_long) > 1.5 * cost
    for v in (0.9 * best, -best):  # ‖v‖ ≤ 1, a·v < ‖a‖*: not feasible
        assert (plane.labels(x + signed * v + ball) == side).any()


def test_eq_RCF_direction(robust, p, tools, rng):
    """The direction of robust answers is that of plain ones, whatever N2 and ρ: `explain(x) − x`
    differ by a factor only."""
    plane = tools.plane(p, rng)
    points = np.array([tools.point(plane, s, rng) for s in (1, -1) for _ in range(4)])
    plain = ox.ModelOracle(plane, ox.Mechanism(robust.distance)).explain(points) - points
    for radius in (0.1, robust.radius, 50.0):
        mechanism = ox.Mechanism(robust.distance, robustness=robust.robustness, radius=radius)
        moved = ox.ModelOracle(plane, mechanism).explain(points) - points
        factor = np.abs(moved).max(axis=1) / np.abs(plain).max(axis=1)
        assert (factor > 1).all()
        assert np.allclose(moved, factor[:, None] * plain, rtol=1e-9, atol=1e-12)
        beyond = np.array([tools.length(robust.distance, w) for w in moved - plain])  # one constant for all questions
        assert np.allclose(beyond, beyond[0], rtol=1e-9)


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_crl_non_diff_RCF_main(cornered_robust, p, tools, rng):
    """Non-differentiable N1: p + 1 RCFs and p + 1 factuals (``strategy="paper"``) give the model, if V contains v and lies on
    one side of the plane. The printed V does not (the next test)."""
    for _ in range(3):
        plane = tools.plane(p, rng)
        found = ox.extract(ox.ModelOracle(plane, cornered_robust.mechanism), strategy="paper", rng=1)
        assert found.spent == ox.Spent(explanations=p + 1, labels=p + 1)
        assert found.hyperplane.is_equivalent(plane, 1e-7)


def printed_basis(v):
    """V as Algorithm 1 makes it: Gram–Schmidt of v, which is not normalised, and e^1, e^2, …"""
    basis = [v]
    for x in np.eye(len(v)):
        rest = x - sum((x @ u) / (u @ u) * u for u in basis)
        if np.linalg.norm(rest) > 1e-9 and len(basis) < len(v):
            basis.append(rest / np.linalg.norm(rest))
    return np.array(basis)


def roots_of_the_system(answers, labels, mechanism):
    """All (a, b) with a·x' − b + y·ρ = 0 and ‖a‖*_N2 = 1: a line, on which a convex function is 1 at most twice."""
    rows = np.column_stack([answers, -np.ones(len(answers))])
    some = np.linalg.lstsq(rows, -mechanism.radius * np.asarray(labels, dtype=float), rcond=None)[0]
    line = np.linalg.svd(rows)[2][-1]

    def excess(t):
        return float(mechanism.robustness.dual((some + t * line)[:-1])) - 1

    middle = minimize_scalar(excess, bracket=(-1.0, 1.0), options={"xtol": 1e-14}).x
    ends = [middle + 2.0**60, middle - 2.0**60]
    found = [brentq(excess, middle, end, xtol=1e-15) for end in ends if excess(middle) < 0]
    return [ox.Hyperplane((some + t * line)[:-1], (some + t * line)[-1]) for t in found]


@pytest.mark.parametrize("p", [2, 3])
def test_crl_non_diff_RCF_main_with_the_printed_basis(p):
    """Printed: V from Gram–Schmidt, wherever that lies. With V on both sides of the plane the system has two roots, and for some
    planes both models give all p + 1 answers and labels: no procedure can tell them apart, so the library asks another V (E9)."""
    mechanism = ox.Mechanism("l1", robustness="l2", radius=1.0)
    rng = np.random.default_rng(p)
    twins = 0
    for _ in range(60):
        normal = np.append(rng.uniform(0.1, 0.9, p - 1), 1.0)  # the service moves along e^p
        plane = ox.Hyperplane(normal, rng.uniform(1.1, 2.0))
        oracle, first = ox.ModelOracle(plane, mechanism), np.eye(p)[0]
        questions = np.vstack([first, printed_basis(oracle.explain(first) - first)])
        answers, labels = oracle.explain(questions), oracle.classify(questions)
        roots = roots_of_the_system(answers[1:], labels[1:], mechanism)
        fit = []
        for root in roots:
            other = ox.ModelOracle(root, mechanism)
            same = np.array_equal(other.classify(questions), labels)
            fit += [root] if same and np.abs(other.explain(questions) - answers).max() < 1e-9 else []
        assert any(root.is_equivalent(plane, 1e-7) for root in fit)
        assert set(labels[1:].tolist()) == {1, -1}
        if len(fit) == 2:
            assert not fit[0].same_plane(fit[1], 1e-3)
            twins += 1
        found = ox.extract(oracle, strategy="paper", rng=1)  # as many questions, and one model
        assert found.spent == ox.Spent(explanations=p + 1, labels=p + 1)
        assert found.hyperplane.is_equivalent(plane, 1e-7)
    assert twins > 30


@pytest.mark.parametrize("normal", [(-2.0, 1.0), (2.0, 1.0, 0.5), (2.0, -1.0), (1.0, 2.0)])
@pytest.mark.parametrize("offset", [-0.2, 0.1, 3.0])
def test_crl_non_diff_RCF_main_when_v_is_along_e1(normal, offset):
    """The same where the service moves along e^1: then e^1 and the element v of V must not tell the
    same thing twice."""
    plane = ox.Hyperplane(normal, offset)
    oracle = ox.ModelOracle(plane, ox.Mechanism("l1", robustness="l2", radius=0.4))
    for seed in range(5):
        found = ox.extract(oracle, strategy="paper", rng=seed)
        assert found.spent == ox.Spent(explanations=len(normal) + 1, labels=len(normal) + 1)
        assert found.hyperplane.is_equivalent(plane, 1e-7)


@pytest.mark.parametrize("name", ["l1", "linf"])
def test_crl_non_diff_RCF_main_when_e1_is_on_the_plane(name):
    """The same where e^1 lies on the plane and features tie: no element of V may touch the plane, where rounding
    decides the label."""
    for normal in ([2.0, 2.0, 2.0, -2.0], [1.0, 1.0, -1.0], [3.0, -1.0, 0.0]):
        plane = ox.Hyperplane(normal, normal[0])
        oracle = ox.ModelOracle(plane, ox.Mechanism(name, robustness="linf", radius=3.0))
        for seed in range(25):
            found = ox.extract(oracle, strategy="paper", rng=seed)
            assert found.spent == ox.Spent(explanations=len(normal) + 1, labels=len(normal) + 1)
            assert found.hyperplane.is_equivalent(plane, 1e-7)


def test_remark_counts_do_not_depend_on_the_ball(distance, p, tools, rng):
    """The counts depend on N1 only: any norm as N2 (here `distance`), N1 = ℓ2 or ℓ∞, as printed and by default."""
    plane = tools.plane(p, rng)
    for name, printed, ours in (("l2", (1, 1), 1), ("linf", (p + 1, p + 1), p)):
        oracle = ox.ModelOracle(plane, ox.Mechanism(name, robustness=distance, radius=0.8))
        found = ox.extract(oracle, strategy="paper", rng=1)
        assert found.spent == ox.Spent(*printed)
        assert found.hyperplane.is_equivalent(plane, 1e-7)
        found = ox.extract(oracle)
        assert found.spent == ox.Spent(ours, 1)
        assert found.hyperplane.is_equivalent(plane)


def test_crl_non_diff_RCF_main_with_ties(tied, p):
    """Random ties do not change the counts: p + 1 RCFs and p + 1 factuals."""
    plane = ox.Hyperplane(tied.normal, 0.3)
    oracle = ox.ModelOracle(plane, ox.Mechanism(tied.norm, robustness="lp:3", radius=0.5), ties="random", rng=6)
    found = ox.extract(oracle, strategy="paper", rng=7)
    assert found.spent == ox.Spent(explanations=p + 1, labels=p + 1)
    assert found.hyperplane.is_equivalent(plane, 1e-7)


def test_example_RCF_2D(tools):
    """2x1 − x2 = 3, ℓ∞, N2 = ℓ1, ρ = 1, in exact rationals: the answers, the corrected equations (E6)
    and their two roots."""
    a, b = (2, -1), 3
    ball = max(map(abs, a))  # ‖a‖*_N2 = ‖a‖_∞
    here, there = (Fraction(3), Fraction(0)), (Fraction(-1), Fraction(1))
    x1 = tools.exact_answer(a, b, here, "linf", 1, ball)
    x2 = tools.exact_answer(a, b, there, "linf", 1, ball)
    assert x1 == [Fraction(4, 3), Fraction(5, 3)]
    assert x2 == [Fraction(5, 3), Fraction(-5, 3)]
    assert [u - v for u, v in zip(x1, here, strict=True)] == [Fraction(-5, 3), Fraction(5, 3)]  # along (−1, 1)
    plane = ox.Hyperplane(a, b)
    oracle = ox.ModelOracle(plane, ox.Mechanism("linf", robustness="l1", radius=1.0))
    for x, answer in ((here, x1), (there, x2)):
        assert np.allclose(oracle.explain([float(u) for u in x]), [float(u) for u in answer], atol=1e-15)
    # With the true labels, (3,0) Yes and (−1,1) No: x1·a − b + 1 = 0, x2·a − b − 1 = 0 at ‖a‖_∞ = 1.
    assert (oracle.classify([3.0, 0.0]), oracle.classify([-1.0, 1.0])) == (1, -1)
    roots = []
    for a1 in (Fraction(1), Fraction(-1), Fraction(-4), Fraction(16)):  # |a1| = 1 or |a1/10 − 3/5| = 1
        candidate, offset = (a1, a1 / 10 - Fraction(3, 5)), a1 * Fraction(3, 2)
        assert tools.dot(candidate, x1) - offset + 1 == 0
        assert tools.dot(candidate, x2) - offset - 1 == 0
        if max(map(abs, candidate)) == 1:
            roots.append((candidate, offset))
    assert roots == [((1, Fraction(-1, 2)), Fraction(3, 2)), ((-1, Fraction(-7, 10)), Fraction(-3, 2))]
    kept = [(c, d) for c, d in roots if tools.dot(c, here) >= d]  # the label of (3,0)
    assert kept == roots[:1]
    assert tools.rank([[*kept[0][0], kept[0][1]], [*a, b]]) == 1
    found = ox.extract(oracle)
    assert found.spent == ox.Spent(explanations=2, labels=1)
    assert found.hyperplane.is_equivalent(plane)
