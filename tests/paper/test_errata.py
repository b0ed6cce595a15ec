"""Notes on the extraction part of the paper. Where they are slips, the printed statement fails and the corrected one holds."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from scipy.special import betainc, betaln, hyp2f1

import overexplain as ox


def test_E4_a_is_a_subgradient_only_up_to_scale(robust, p, tools, rng):
    """A remark on eq:RCF_sg, a ∈ ∂f(x' − x): not so for 2a, the same classifier with the same answers; a
    ∈ K(x' − x) holds for every scale."""
    plane = tools.plane(p, rng)
    plane = ox.Hyperplane(plane.normal / tools.support(robust.distance, plane.normal)[0], plane.offset)
    x = tools.point(plane, ox.NO, rng)
    answers = []
    for scale in (0.5, 1.0, 2.0):
        model = ox.Hyperplane(scale * plane.normal, scale * plane.offset)
        step = ox.ModelOracle(model, robust.mechanism).explain(x) - x
        answers.append(step)
        dual_length = tools.support(robust.distance, model.normal)[0]
        is_subgradient = (
            abs(model.normal @ step - tools.length(robust.distance, step)) < 1e-5 and dual_length <= 1 + 1e-6
        )
        assert is_subgradient == (scale == 1.0)  # as printed, for one scale
        assert model.normal @ step == pytest.approx(
            tools.length(robust.distance, step) * dual_length, rel=1e-5
        )  # for every scale
    assert np.allclose(answers[0], answers[2], atol=1e-12)


def test_E6_labels_and_signs_of_the_robust_example(tools):
    """Printed: (3,0) is No, (−1,1) is Yes, equations with those signs, 1/9 > 0 excludes a1 = −1. All
    wrong; the label of (3,0) decides."""
    a, b = (2, -1), 3
    x1, x2 = (Fraction(4, 3), Fraction(5, 3)), (Fraction(5, 3), Fraction(-5, 3))
    truth, other = ((Fraction(1), Fraction(-1, 2)), Fraction(3, 2)), ((Fraction(-1), Fraction(-7, 10)), Fraction(-3, 2))
    labels = {x: 1 if tools.dot(a, x) >= b else -1 for x in ((3, 0), (-1, 1))}
    printed_labels = {(3, 0): -1, (-1, 1): 1}
    assert labels == {(3, 0): 1, (-1, 1): -1} != printed_labels

    def residuals(model, sign1, sign2):
        normal, offset = model
        return tools.dot(normal, x1) - offset + sign1, tools.dot(normal, x2) - offset + sign2

    for model in (truth, other):
        assert residuals(model, -1, 1) != (0, 0)  # printed signs
        assert residuals(model, 1, -1) == (0, 0)  # corrected: both candidates solve the system
    # The point (4,5)/3 was to exclude the second candidate by the value 1/9; both candidates give −1 there.
    values = [tools.dot(normal, x1) - offset for normal, offset in (truth, other)]
    assert Fraction(1, 9) not in values
    assert values == [-1, -1]
    # What does decide: the label of (3,0), or a·v = ‖a‖* along the step.
    assert [tools.dot(normal, (3, 0)) >= offset for normal, offset in (truth, other)] == [True, False]
    step = [u - v for u, v in zip(x1, (3, 0), strict=True)]
    steepest = [-tools.dot(n, step) == max(map(abs, step)) * sum(map(abs, n)) for n, _ in (truth, other)]
    assert steepest == [True, False]


def test_E7_normal_of_the_plain_example(tools):
    """Printed: 2a1 + a2 = b, a1 − a2 = b, b = 1 give a = (2, 1)/3. It solves neither; (2, −1)/3 solves both."""
    rows = [(2, 1), (1, -1)]
    printed, corrected = (Fraction(2, 3), Fraction(1, 3)), (Fraction(2, 3), Fraction(-1, 3))
    assert [tools.dot(printed, row) == 1 for row in rows] == [False, False]
    assert [tools.dot(corrected, row) == 1 for row in rows] == [True, True]
    assert tools.rank([[*printed, 1], [2, -1, 3]]) == 2  # not the hyperplane
    assert tools.rank([[*corrected, 1], [2, -1, 3]]) == 1


def test_E8_offset_from_a_robust_answer(smooth_robust, p, side, tools, rng):
    """Printed (thm:RCF_diff): b̂ = â·x' + label·ρ‖â‖*. Fails for every Yes factual; b̂ = â·x' − ρ‖â‖*
    holds for both, without a label."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, smooth_robust.mechanism)
    x = tools.point(plane, side, rng)
    answer = oracle.explain(x)
    slope = smooth_robust.distance.gradient(answer - x)
    assert np.allclose(slope, tools.gradient(smooth_robust.distance, answer - x), atol=1e-4)
    reach = smooth_robust.radius * tools.support(smooth_robust.robustness, slope)[0]
    printed = ox.Hyperplane(slope, slope @ answer + oracle.classify(x) * reach)
    corrected = ox.Hyperplane(slope, slope @ answer - reach)
    assert printed.same_plane(plane, 1e-5) == (side == ox.NO)
    assert corrected.same_plane(plane, 1e-5)
    found = ox.extract(oracle, start=x, orient=False)
    assert found.spent.labels == 0
    assert found.hyperplane.same_plane(plane, 1e-9)


def second_root(plane, radius):
    """The other (α, 1), β that solves the p = 2 system of E9: ℓ1 moves along e², answers at (1, y1)
    and (0, y2) on two sides."""
    y1 = plane.offset + radius * np.linalg.norm(plane.normal) - plane.normal[0]  # (1, y1) answers e^1, a No
    y2 = plane.offset - radius * np.linalg.norm(plane.normal)  # (0, y2) answers v, a Yes
    # α + y1 = β + ρ√(1+α²) and y2 = β − ρ√(1+α²): subtract.
    alpha = brentq(lambda t: t + y1 - y2 - 2 * radius * math.sqrt(1 + t * t), plane.normal[0] + 1e-3, 1.0, xtol=1e-15)
    return ox.Hyperplane([alpha, 1.0], y2 + radius * math.sqrt(1 + alpha * alpha))


def test_E9_two_models_answer_the_printed_queries_alike():
    """Printed (crl:non_diff_RCF_main): the p+1 RCFs and p+1 factuals of Algorithm 1 suffice. Two models answer
    all six alike; the count is right: p RCFs of Theorem A do."""
    mechanism = ox.Mechanism("l1", robustness="l2", radius=1.0)
    one = ox.Hyperplane([0.3, 1.0], 1.5)
    oracle = ox.ModelOracle(one, mechanism)
    e1 = np.array([1.0, 0.0])
    v = oracle.explain(e1) - e1  # as Algorithm 1 prints it: not normalised
    assert v[0] == 0
    two = second_root(one, 1.0)
    assert two.normal[0] == pytest.approx(0.892, abs=5e-4)
    assert two.offset == pytest.approx(1.796, abs=5e-4)
    twin = ox.ModelOracle(two, mechanism)
    basis = [v, e1]  # v and e^1 are orthogonal: what Gram–Schmidt makes of v and e^1
    assert v @ e1 == 0
    for x in (e1, *basis):
        assert oracle.classify(x) == twin.classify(x)
        assert np.abs(oracle.explain(x) - twin.explain(x)).max() < 1e-12
    assert not one.same_plane(two, 0.1)
    # Both are solutions of eq:system_eq_RCF with the labels No, Yes.
    for plane in (one, two):
        length = np.linalg.norm(plane.normal)
        rows, labels = np.array([oracle.explain(x) for x in basis]), np.array([oracle.classify(x) for x in basis])
        assert sorted(labels) == [-1, 1]
        assert np.abs(rows @ plane.normal / length - plane.offset / length + labels).max() < 1e-12
    # p answers and no label tell them apart, whichever it is.
    for plane, service in ((one, oracle), (two, twin)):
        found = ox.extract(service, orient=False)
        assert found.spent == ox.Spent(explanations=2, labels=0)
        assert found.hyperplane.same_plane(plane)


def test_E9_solve_then_scale(cornered_robust, p, tools, rng):
    """Printed: solve the linear part of eq:system_eq_RCF, then scale to ‖a‖*_N2 = 1. No solution but
    the model itself survives that."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, cornered_robust.mechanism)
    points = np.array([tools.point(plane, 1 if i % 2 else -1, rng) for i in range(p)])
    rows = np.column_stack([oracle.explain(points), -np.ones(p)])
    right = -oracle.classify(points) * cornered_robust.radius
    some = np.linalg.lstsq(rows, right, rcond=None)[0]
    line = np.linalg.svd(rows)[2][-1]
    truth = np.append(plane.normal, plane.offset) / cornered_robust.robustness.dual(plane.normal)
    assert np.abs(rows @ truth - right).max() < 1e-9  # corrected: the normalised model does solve it
    survivors = 0
    for t in (-1.0, 0.0, 1.0):
        solution = some + t * line
        assert np.abs(rows @ solution - right).max() < 1e-9
        scaled = solution / cornered_robust.robustness.dual(solution[:-1])
        survivors += ox.Hyperplane(scaled[:-1], scaled[-1]).same_plane(plane, 1e-6)
    assert survivors == 0
    found = ox.extract(oracle, orient=False)
    assert found.spent.explanations <= p
    assert found.hyperplane.same_plane(plane)


def test_E10_signs_of_the_corner_answers(tools):
    """Printed: x + (Σd_i)·e^i1 (ℓ1) and x + d_j·Σ sgn(d_i)·e^i (ℓ∞). Wrong signs miss the plane;
    sgn(d_i1)·Σ|d_i| and |d_j| do not."""
    x = np.zeros(2)
    plane, change = ox.Hyperplane([1.0, -1.0], 3.0), np.array([1.0, -2.0])  # an optimal ℓ1 answer that moves both
    assert plane.margin(x + change) == 0
    assert tools.nearest(plane, ox.l1, x)[0] == pytest.approx(tools.length(ox.l1, change), rel=1e-6)
    for i in range(2):
        printed = x + change.sum() * np.eye(2)[i]
        corrected = x + np.sign(change[i]) * np.abs(change).sum() * np.eye(2)[i]
        assert tools.length(ox.l1, printed - x) < 3  # not even the distance it claims
        assert abs(plane.margin(printed)) >= 2
        assert plane.margin(corrected) == 0
        assert tools.length(ox.l1, corrected - x) == 3
    plane, change = ox.Hyperplane([-2.0, 0.0], 4.0), np.array([-2.0, 0.5])  # an optimal ℓ∞ answer, no corner
    assert plane.margin(x + change) == 0
    assert tools.nearest(plane, ox.linf, x)[0] == pytest.approx(tools.length(ox.linf, change), rel=1e-6)
    j = int(np.argmax(np.abs(change)))
    printed, corrected = x + change[j] * np.sign(change), x + np.abs(change[j]) * np.sign(change)
    assert plane.margin(printed) == -8  # moved away from the plane
    assert plane.margin(corrected) == 0
    assert tools.length(ox.linf, corrected - x) == 2
    # Where some d_i is 0 the corrected point is optimal, but no corner; with any sign in that place it is one.
    change = np.array([-2.0, 0.0])
    corrected = x + np.abs(change).max() * np.sign(change)
    assert plane.margin(corrected) == 0
    assert np.abs(corrected).min() == 0
    assert [plane.margin(corrected + [0.0, sign * 2.0]) for sign in (1, -1)] == [0, 0]


def test_E11_the_signed_distance_is_negative_from_a_yes(tied, p, side, tools, rng):
    """Printed (proofs): d > 0; and re-aiming x1 + ‖v1‖/‖v2‖·v2. From a Yes d < 0, so across sides the
    re-aimed step needs a minus."""
    plane = ox.Hyperplane(tied.normal, 0.7)
    dual_length = tools.support(tied.norm, plane.normal)[0]
    one, two = tools.point(plane, side, rng), tools.point(plane, -side, rng)
    for radius in (0.0, 0.5):  # lem:CF_direction, lem:RCF_direction
        reach = radius * tools.support(ox.l2, plane.normal)[0]
        signed = [(plane.offset - plane.normal @ x - plane.label(x) * reach) / dual_length for x in (one, two)]
        assert [np.sign(d) for d in signed] == [-side, side]  # corrected: sgn d = −label
        assert not all(d > 0 for d in signed)  # printed
    oracle = ox.ModelOracle(plane, ox.Mechanism(tied.norm), ties="random", rng=3)
    v1, v2 = oracle.explain(one) - one, oracle.explain(two) - two
    factor = tools.length(tied.norm, v1) / tools.length(tied.norm, v2)
    printed, corrected = one + factor * v2, one - factor * v2
    assert plane.label(printed) == side  # farther from the plane than before
    assert abs(plane.margin(printed)) > abs(plane.margin(one))
    assert plane.margin(corrected) == pytest.approx(0, abs=1e-9)
    assert tools.length(tied.norm, corrected - one) == pytest.approx(tools.nearest(plane, tied.norm, one)[0], rel=1e-6)


def test_E12_the_ball_enters_by_its_dual_norm(smooth_robust, p, tools, rng):
    """Printed (proof of thm:RCF_diff): b = a·x' + label·ρ‖a‖_N2. Fails unless N2 is its own dual;
    ‖a‖*_N2 holds (No factual)."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, ox.NO, rng)
    answer = ox.ModelOracle(plane, smooth_robust.mechanism).explain(x)
    primal = tools.length(smooth_robust.robustness, plane.normal)
    dual = tools.support(smooth_robust.robustness, plane.normal)[0]
    assert abs(primal - dual) > 1e-2
    assert abs(plane.normal @ answer - smooth_robust.radius * primal - plane.offset) > 1e-3  # printed
    assert plane.normal @ answer - smooth_robust.radius * dual == pytest.approx(plane.offset, abs=1e-6)  # corrected


def test_E13_labels_are_minus_one_and_one(robust, p, side, tools, rng):
    """Printed: q_F maps to {0, 1}. Then b = a·x' + q_F(x)·ρ‖a‖* fails for every No; with {−1, +1} it
    holds for both classes."""
    plane = tools.plane(p, rng)
    oracle = ox.ModelOracle(plane, robust.mechanism)
    x = tools.point(plane, side, rng)
    answer = oracle.explain(x)
    reach = robust.radius * tools.support(robust.robustness, plane.normal)[0]
    printed = {ox.YES: 1, ox.NO: 0}[side]
    fits = [abs(plane.normal @ answer + q * reach - plane.offset) < 1e-5 for q in (printed, oracle.classify(x))]
    assert fits == [side == ox.YES, True]
    assert oracle.classify(x) in (-1, 1)
    assert {oracle.classify(tools.point(plane, s, rng)) for s in (1, -1)} == {-1, 1}


def bits(p, eps):
    """−log2 of the share of the unit sphere within the angle eps of a point: ½·I_{sin²ε}((p−1)/2, ½), in log space."""
    x, half = math.sin(eps) ** 2, (p - 1) / 2
    log_share = half * math.log(x) + 0.5 * math.log1p(-x) - math.log(half) - betaln(half, 0.5)
    return -(math.log(0.5) + log_share + math.log(hyp2f1(half + 0.5, 1, half + 1, x))) / math.log(2)


def test_E18_a_label_is_one_bit(rng):
    """Printed (Table 1): O(log(1/ε) + size(c)) labels. n labels tell at most 2^n directions apart, so
    `bits` are needed: linear in p."""
    # The share of the sphere: against closed forms for p = 2 and 3, scipy's incomplete beta function, and a count.
    assert bits(2, 0.1) == pytest.approx(-math.log2(0.1 / math.pi))
    assert bits(3, 0.1) == pytest.approx(-math.log2((1 - math.cos(0.1)) / 2))
    assert bits(20, 0.01) == pytest.approx(-math.log2(0.5 * betainc(9.5, 0.5, math.sin(0.01) ** 2)))
    directions = rng.normal(size=(200_000, 4))
    share = (directions[:, 0] > math.cos(0.6) * np.linalg.norm(directions, axis=1)).mean()
    assert bits(4, 0.6) == pytest.approx(-math.log2(share), rel=0.02)
    # About log2(1/ε) more for every feature: no constant times log2(1/ε) + c keeps up, p·log2(1/ε) does.
    for eps in (1e-2, 1e-3, 1e-6):
        per_feature = [(bits(2 * p, eps) - bits(p, eps)) / p for p in (10, 30, 100)]
        assert np.allclose(per_feature, math.log2(1 / eps), rtol=0.1)
        for constant in (1, 10, 100):
            assert bits(1000 * constant, eps) > constant * (math.log2(1 / eps) + 50)


def test_E18_models_of_bounded_magnitude():
    """The same under the table's own terms, |a_i| ∈ [2^−c, 2^c] and relative accuracy ε: the models to
    tell apart are many^(p−1)."""

    def apart(eps, c):
        """Values in [2^−c, 2^c] of which no number is within the relative accuracy eps of two."""
        ratio, value, values = (1 + eps) / (1 - eps) * (1 + 1e-9), 2.0**-c, []
        while value <= 2.0**c:
            values.append(value)
            value *= ratio
        return values

    values = apart(0.1, 1)
    grid = [np.array([1.0, *rest]) for rest in product(values, repeat=2)]  # p = 3, scaled to a_1 = 1
    guesses = [np.array([1.0, *rest]) for rest in product(np.linspace(0.4, 2.3, 35), repeat=2)]
    for guess in guesses:
        assert sum(bool((np.abs(guess / model - 1) <= 0.1).all()) for model in grid) <= 1
    assert len(grid) == len(values) ** 2 >= 36
    many = len(apart(1e-3, 4))
    printed, needed = math.log2(1e3) + 4, [(p - 1) * math.log2(many) for p in (5, 50, 500)]
    assert needed[0] > printed
    assert needed[2] > 100 * needed[0]  # while the printed bound stays where it is
    assert needed[2] > 300 * printed


def labels_only(plane, eps, c):
    """Lowd–Meek's plan: one boundary point, then a bisection per feature. The normal at a_k = ±1, and
    the labels used."""
    used, p = 0, plane.dimension

    def yes(x):
        nonlocal used
        used += 1
        return plane.label(x) == ox.YES

    far = 4.0 ** (c + 1) * p
    unit = next(s * e for e in np.eye(p) for s in (1, -1) if yes(s * far * e) and not yes(-s * far * e))
    low, high = -far * unit, far * unit
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if yes(middle) else (middle, high)
    normal = unit.copy()
    for e in np.eye(p)[unit == 0]:
        sign = 1.0 if yes(high + e) else -1.0
        below, above = 2.0 ** (-2 * c), 2.0 ** (2 * c)  # |a_i| / |a_k|
        while above / below > 1 + eps:
            middle = math.sqrt(below * above)
            below, above = (middle, above) if yes(high + sign * e - middle * unit) else (below, middle)
        normal += sign * math.sqrt(below * above) * e
    return normal, used


@pytest.mark.parametrize("p", [3, 10, 30])
@pytest.mark.parametrize("eps", [1e-2, 1e-5])
def test_E18_with_the_factor_p(p, eps, rng):
    """Corrected: O(p·(log(1/ε) + c)) labels are enough, by bisection feature by feature, and within a
    constant of what is needed."""
    c = 2
    normal = 2.0 ** rng.uniform(-c, c, p) * rng.choice([-1.0, 1.0], p)
    found, used = labels_only(ox.Hyperplane(normal, 0.3), eps, c)
    lead = np.flatnonzero(np.abs(found) == 1)[0]
    assert np.abs(found / found[lead] * normal[lead] / normal - 1).max() < eps
    assert used <= p * (math.log2(1 / eps) + 2 * c + 3) + 70
    assert used > (p - 1) * (math.log2(1 / eps) - 1)
    assert p < 10 or used > 4 * (math.log2(1 / eps) + c)  # the printed bound, with a constant of 4


def test_E19_the_printed_subdifferential_is_empty(distance, p, tools, rng):
    """Printed: f(x0) − f(x) ≥ v·(x0 − x) for all x. No v satisfies it for a norm; with ≤ the subgradients of f do."""
    for x0 in (rng.normal(size=p), np.eye(p)[0]):
        size = tools.length(distance, x0)
        member = distance.dual.face(x0).sample(rng)
        candidates = [
            member,
            np.zeros(p),
            *rng.normal(size=(20, p)),
            *np.array(list(product((-1.0, 0.0, 1.0), repeat=p))),
        ]
        for v in candidates:
            # Along u with v·u ≤ 0 the norm grows and v·(x − x0) does not: such an x refutes v.
            u = -v if v.any() else np.eye(p)[0]
            x = x0 + 1e3 * (1 + size) * u / tools.length(distance, u)
            assert not size - tools.length(distance, x) >= v @ (x0 - x)
        others = np.vstack([np.zeros(p), 2 * x0, 5 * rng.normal(size=(200, p)), 7 * tools.ball(distance, p, rng, n=20)])
        lengths = np.array([tools.length(distance, x) for x in others])
        assert (size - lengths <= (x0 - others) @ member + 1e-9).all()


@pytest.mark.parametrize("name", ["l1", "linf"])
def test_E20_worst_case_of_algorithm_1(name):
    """A remark: at most 2p − 1 CFs, by the text. The pseudocode has no exit for a v that is found last, and spends
    2p on a = (1,1,1,3), b = 1: 8; never more. With the exit p are enough there."""
    for p in (2, 3, 4, 6):
        spent = []
        for first_off in range(p):
            plane = ox.Hyperplane(np.where(np.arange(p) < first_off, 1.0, 3.0), 1.0)
            found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(name)), strategy="paper", orient=False)
            assert found.hyperplane.same_plane(plane)
            spent.append(found.spent.explanations)
        assert spent == [p + 1 + i for i in range(p)]
        assert spent[-2] == 2 * p - 1  # the text's worst case
        assert max(spent) == 2 * p  # without the exit
        service = ox.ModelOracle(plane, ox.Mechanism(name))
        assert np.linalg.matrix_rank([service.explain(unit) for unit in np.eye(p)]) == p  # the text: already enough
    plane = ox.Hyperplane([1.0, 1.0, 1.0, 3.0], 1.0)
    found = ox.extract(ox.ModelOracle(plane, ox.Mechanism(name)), strategy="paper")
    assert found.spent.explanations == 8
    assert found.hyperplane.is_equivalent(plane)
    assert ox.extract(ox.ModelOracle(plane, ox.Mechanism(name)), orient=False).spent.explanations <= 4


def test_E21_zero_is_a_robust_counterfactual():
    """Printed: b = −label·ρ‖a‖*, and p − 1 further answers suffice. The sign is +, and two models give
    the same 0 and the same answer."""
    mechanism = ox.Mechanism("l1", robustness="l2", radius=1.0)
    one = ox.Hyperplane(np.array([0.3, 1.0]) / math.hypot(0.3, 1.0), -1.0)  # ‖a‖*_N2 = 1, b = label·ρ for a No
    oracle = ox.ModelOracle(one, mechanism)
    x, further = np.array([0.0, -3.0]), np.array([0.5, 1.0])
    assert (oracle.classify(x), oracle.classify(further)) == (-1, 1)
    assert np.abs(oracle.explain(x)).max() < 1e-15  # 0 is a robust counterfactual
    assert one.offset == oracle.classify(x) * 1.0  # b = +label·ρ‖a‖*
    assert one.offset != -oracle.classify(x) * 1.0  # printed
    # a·x' = b − ρ = −2 and ‖a‖₂ = 1: the second root by bisection on the angle.
    answer = oracle.explain(further)
    angle = brentq(lambda t: answer @ (math.cos(t), math.sin(t)) + 2, 1.5, 2.35, xtol=1e-15)
    two = ox.Hyperplane([math.cos(angle), math.sin(angle)], -1.0)
    twin = ox.ModelOracle(two, mechanism)
    assert not one.same_plane(two, 0.1)
    for z in (x, further):
        assert oracle.classify(z) == twin.classify(z)
        assert np.abs(oracle.explain(z) - twin.explain(z)).max() < 1e-12
    for plane, service in ((one, oracle), (two, twin)):  # p answers of Theorem A do suffice
        found = ox.extract(service, orient=False)
        assert found.spent == ox.Spent(explanations=2, labels=0)
        assert found.hyperplane.same_plane(plane)


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_E22_robustness_adds_no_query(robust, p, tools, rng):
    """Printed (abstract, conclusion): for RCFs the number of queries doubles, labels are needed.
    Neither: as many answers, no label."""
    plane = tools.plane(p, rng)
    plain = ox.extract(ox.ModelOracle(plane, ox.Mechanism(robust.distance)), orient=False)
    known = ox.extract(ox.ModelOracle(plane, robust.mechanism), orient=False)
    published = ox.Mechanism(robust.distance, robustness=robust.robustness, radius=None)
    secret = ox.extract(ox.ModelOracle(plane, robust.mechanism, published=published), orient=False)
    for found in (plain, known, secret):
        assert found.hyperplane.same_plane(plane)
    printed = 2 * plain.spent.requests
    assert known.spent.requests == plain.spent.requests < printed
    assert (known.spent.labels, secret.spent.labels) == (0, 0)
    assert secret.spent.explanations == plain.spent.explanations + 1
    assert secret.radius == pytest.approx(robust.radius, rel=1e-6)


def test_E23_the_minimum_over_a_cone_is_never_larger_than_zero(rng):
    """Printed (eq:yes-rgn): Yes if the minimum of a·x − b over U^F is larger than 0. It never is, as (0, 0) is in U^F; not
    smaller than 0 is what decides."""
    plane = ox.Hyperplane([1.0, -0.5], 0.2)
    points = rng.normal(size=(30, 2))
    rows = -plane.labels(points)[:, None] * np.column_stack([points, -np.ones(30)])
    log = ox.QueryLog()
    log.add_label(points, plane.labels(points))
    tried = rng.normal(size=(60, 2)) * 2
    sure = 0
    for x, code in zip(tried, ox.Knowledge(log).certify(tried).codes, strict=True):
        found = linprog(np.append(x, -1), A_ub=rows, b_ub=np.zeros(30), bounds=(-1, 1))  # any bounds around 0
        assert found.fun <= 1e-12  # never larger: nothing would be Yes as printed
        assert (found.fun > -1e-9) == (code == ox.YES)  # corrected
        sure += code == ox.YES
    assert 0 < sure < 60


def test_E24_a_decreasing_link_reverses_the_inequality(rng):
    """Printed: f(a·x) ≥ α is a·x ≥ f⁻¹(α) for monotonic invertible f. For a decreasing f every label is the other one."""
    normal, alpha = rng.normal(size=3), 0.3
    points = rng.normal(size=(500, 3))
    for falling in (False, True):
        sign = -1.0 if falling else 1.0
        said = np.where(1 / (1 + np.exp(-sign * points @ normal)) >= alpha, ox.YES, ox.NO)
        assert {ox.YES, ox.NO} == set(said.tolist())
        inverse = sign * math.log(alpha / (1 - alpha))
        printed = ox.Hyperplane(normal, inverse).labels(points)
        corrected = ox.Hyperplane(sign * normal, sign * inverse).labels(points)
        assert np.array_equal(printed, -said if falling else said)
        assert np.array_equal(corrected, said)


def test_E25_a_region_that_is_not_conic_quadratic():
    """Printed (thm:region-CF): conic quadratic sets, under an arbitrary norm. Their rims are algebraic curves. Under
    |x_1| + ‖(x_2, x_3)‖_π, x = 0 No, x' = (1, 0, 0), the region's rim is not: near its top it falls like x^π."""
    q = math.pi
    turns = np.linspace(0, math.pi / 2, 4001)

    def circle(exponent, angles):
        """The unit circle of ℓ_exponent in these directions."""
        units = np.column_stack([np.cos(angles), np.sin(angles)])
        return units / (np.abs(units) ** exponent).sum(axis=1, keepdims=True) ** (1 / exponent)

    # The models: a_1 = b = 1, (a_2, a_3) in the dual ball. On the slice x_1 = 0 the region is where a_2·x_2 + a_3·x_3 ≤ 1 for all.
    models = circle(q / (q - 1), turns)
    angles = np.linspace(0.05, math.pi / 2 - 0.05, 60)
    units = np.column_stack([np.cos(angles), np.sin(angles)])
    rim = units / (units @ models.T).max(axis=1, keepdims=True)
    assert rim == pytest.approx(circle(q, angles), abs=1e-6)
    # An algebraic curve through (0, 1) has 1 − y = c·x^r(1 + …) with a rational r (Puiseux). Here r = π.
    x = np.array([1e-3, 2e-3])
    fall = -np.expm1(np.log1p(-(x**q)) / q)
    assert np.log(fall[1] / fall[0]) / np.log(2) == pytest.approx(q, abs=1e-8)
    # And no polynomial of a degree up to 6 vanishes on it, as one does for q = 2 and q = 4.
    for exponent, degree, vanishes in ((2, 2, True), (4, 4, True), (q, 2, False), (q, 4, False), (q, 6, False)):
        u, v = circle(exponent, np.linspace(0, 2 * math.pi, 1000)).T
        powers = [(i, j) for i in range(degree + 1) for j in range(degree + 1 - i)]
        values = np.linalg.svd(np.column_stack([u**i * v**j for i, j in powers]), compute_uv=False)
        assert (values[-1] < 1e-12 * values[0]) == vanishes


def test_E26_algorithm_1_never_re_aims():
    """Printed (alg:CF_nondiff): the answers to a basis that contains v determine the plane. ℓ1, x + y = 3, a service that
    prefers (1, 2): all its answers are that point. Re-aimed along v they are independent."""
    plane, liked = ox.Hyperplane([1.0, 1.0], 3.0), np.array([1.0, 2.0])

    def service(x):
        best = abs(plane.margin(x))  # ℓ1: ‖a‖* = 1
        assert np.abs(liked - x).sum() == best  # liked is optimal for every question below
        return liked

    first = np.array([1.0, 0.0])  # e^1
    v = service(first) - first
    basis = [v / np.linalg.norm(v), first]  # Gram–Schmidt
    assert basis[0] @ basis[1] == 0
    answers = np.array([service(x) for x in basis])
    assert np.linalg.matrix_rank(np.column_stack([answers, -np.ones(2)])) == 1  # printed: p = 2
    re_aimed = np.array([x + np.abs(service(x) - x).sum() * v / np.abs(v).sum() for x in basis])
    assert np.linalg.matrix_rank(re_aimed) == 2  # corrected
    assert [plane.margin(x) for x in re_aimed] == [0.0, 0.0]


def test_E27_the_label_is_asked_for_by_the_robust_theorem(smooth_robust, p, tools, rng):
    """Printed (after thm:RCF_diff): the factual query "is already done in" thm:CF_theorem_diff. That procedure asks none."""
    plane = tools.plane(p, rng)
    plain = ox.extract(ox.ModelOracle(plane, ox.Mechanism(smooth_robust.distance)), strategy="paper", orient=False)
    assert (plain.method, plain.spent.labels, plain.oriented) == ("paper: thm:CF_theorem_diff", 0, False)
    robust = ox.extract(ox.ModelOracle(plane, smooth_robust.mechanism), strategy="paper", orient=False)
    assert (robust.method, robust.spent.labels, robust.oriented) == ("paper: thm:RCF_diff", 1, True)
    assert robust.hyperplane.is_equivalent(plane)
