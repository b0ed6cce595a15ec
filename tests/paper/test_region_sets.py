"""The paper's sets of possible models: what a factual, a counterfactual and a robust counterfactual each say about (a, b)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import overexplain as ox
from docs_scripts import docs_module
from perspective import perspective_ratio

CASES = docs_module("paper_cases")
dimension = pytest.mark.parametrize("p", [3])


def labelled(tools, rng, n=14, p=2):
    plane = tools.plane(p, rng)
    points = rng.normal(size=(n, p))
    log = ox.QueryLog()
    log.add_label(points, plane.labels(points))
    return plane, log


def signed_rows(log):
    """Rows whose product with (a, b) must be ≤ 0: (x, −1) for a No, −(x, −1) for a Yes."""
    return -log.labels[:, None] * np.column_stack([log.points, -np.ones(len(log))])


# --- factuals ---------------------------------------------------------------------------------------------------------


def test_eq_Uncertainty_ab_F(tools, rng):
    """U^F holds every model that gives the labels, and of the others only such as have a No on their plane."""
    plane, log = labelled(tools, rng)
    rows = signed_rows(log)
    assert (rows @ [*plane.normal, plane.offset] <= 0).all()
    inside = 0
    for model in [
        ox.Hyperplane(plane.normal + 0.4 * rng.normal(size=2), plane.offset + rng.normal()) for _ in range(300)
    ]:
        in_set = bool((rows @ [*model.normal, model.offset] <= 0).all())
        gives_the_labels = np.array_equal(model.labels(log.points), log.labels)
        assert in_set == gives_the_labels  # no random model passes through a point
        inside += in_set
    assert 0 < inside < 300
    log_of_one = ox.QueryLog()
    log_of_one.add_label([[0.0, 5.0]], [ox.NO])
    through_it = ox.Hyperplane([1.0, 0.0], 0.0)
    assert (signed_rows(log_of_one) @ [*through_it.normal, through_it.offset] <= 0).all()
    assert through_it.label([0.0, 5.0]) == ox.YES  # in the set, which is closed (E14)


def test_eq_no_rgn_and_eq_yes_rgn(tools, rng):
    """The optimum of either program is a model of U^F; a largest value of 0 or less is a No, a smallest of 0 or more a Yes.

    For the Yes the paper prints "larger than 0". That is restated here: U^F is a cone, so the smallest value is 0 at most (the
    next test), and 0 or −∞ unless U^F is cut off; and no model with a·x ≥ b calls x a No.
    """
    _, log = labelled(tools, rng)
    rows = signed_rows(log)
    points = rng.normal(size=(40, 2)) * 1.5
    codes = ox.Knowledge(log).certify(points).codes
    for x, code in zip(points, codes, strict=True):
        best = [linprog(-s * np.append(x, -1), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)) for s in (1, -1)]
        highest, lowest = -best[0].fun, best[1].fun
        if highest > 1e-7 and lowest < -1e-7:
            yes, no = (ox.Hyperplane(found.x[:2], found.x[2]) for found in best)
            assert (rows @ best[0].x <= 1e-9).all()
            assert (rows @ best[1].x <= 1e-9).all()
            assert (yes.label(x), no.label(x)) == (ox.YES, ox.NO)
            assert code == ox.Verdict.UNKNOWN
        else:
            assert code == (ox.YES if lowest > -1e-7 else ox.NO)
    assert len(set(codes.tolist())) == 3


def test_eq_yes_rgn_as_printed_is_never_met(tools, rng):
    """Printed: larger than 0. Not even at a point that was labelled Yes: (a, b) = 0 is in U^F, with the value 0."""
    _, log = labelled(tools, rng)
    rows = signed_rows(log)
    certain = 0
    for x, label in zip(log.points, log.labels, strict=True):
        lowest = linprog(np.append(x, -1), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)).fun
        assert lowest <= 1e-12
        assert (lowest > -1e-9) == (label == ox.YES)
        certain += label == ox.YES
    assert certain > 0
    assert np.array_equal(ox.Knowledge(log).certify(log.points).codes, log.labels)


# --- counterfactuals --------------------------------------------------------------------------------------------------


@dimension
def test_eq_CF_J0_0_and_eq_CF_J1_0(distance, p, side, tools, rng):
    """The ball around x up to its counterfactual lies on x's side, and no larger one does."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    answer = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x)
    reach = tools.length(distance, answer - x)
    ball = tools.ball(distance, p, rng, plane.normal)
    margins = side * plane.margin(x + reach * ball)
    assert margins.min() >= -1e-6 * reach
    assert (side * plane.margin(x + 1.001 * reach * ball)).min() < 0


@dimension
def test_eq_CF_J0_1_and_eq_CF_J1_1(distance, p, side, tools, rng):
    """x' is across, and, being in that ball too, on the plane."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    answer = ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x)
    scale = np.abs(plane.normal) @ np.abs(answer) + abs(plane.offset)
    assert -side * plane.margin(answer) >= -1e-12 * scale
    assert plane.margin(answer) == pytest.approx(0, abs=1e-12 * scale)


@dimension
def test_eq_CF_problem_reform(distance, p, side, tools, rng):
    """Nearest of the half-space across is nearest of the plane: no point of the ball short of it is across."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    least, point, _ = tools.nearest(plane, distance, x)  # on the plane, by cvxpy
    assert plane.margin(point) == pytest.approx(0, abs=1e-6)
    assert distance(ox.ModelOracle(plane, ox.Mechanism(distance)).explain(x) - x) == pytest.approx(least, rel=1e-6)
    shorter = x + 0.999 * least * tools.ball(distance, p, rng, plane.normal)
    assert (side * plane.margin(shorter) > 0).all()


# --- robust counterfactuals -------------------------------------------------------------------------------------------


@dimension
def test_eq_RCF_sg(robust, p, side, tools, rng):
    """−y·a/‖a‖* is a subgradient of N1 at x' − x: E3 (the sign) and E4 (the scale) corrected; as printed it is not."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, side, rng)
    step = ox.ModelOracle(plane, robust.mechanism).explain(x) - x
    length = tools.length(robust.distance, step)
    slope = -side * plane.normal / tools.support(robust.distance, plane.normal)[0]
    around = step + rng.normal(size=(200, p))

    def is_subgradient(v):
        return all(tools.length(robust.distance, z) >= length + v @ (z - step) - 1e-6 * length for z in around)

    assert is_subgradient(slope)
    assert slope @ step == pytest.approx(length, rel=1e-6)
    if side == ox.YES:  # as printed, whatever the scale
        assert plane.normal @ step < 0


@dimension
def test_eq_proof_perspective_1_and_eq_proof_perspective_2_and_eq_proof_perspective_3(robust, p, tools, rng):
    """The three conditions for a No: a·x' = b + ρ‖a‖*_N2, λa·v = 1 and ‖λa‖* ≤ 1, with λ = 1/‖a‖*_N1 > 0."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, ox.NO, rng)
    answer = ox.ModelOracle(plane, robust.mechanism).explain(x)
    v = (answer - x) / tools.length(robust.distance, answer - x)
    multiplier = 1 / tools.support(robust.distance, plane.normal)[0]
    reach = robust.radius * tools.support(robust.robustness, plane.normal)[0]
    assert plane.normal @ answer == pytest.approx(plane.offset + reach, rel=1e-6)
    assert multiplier * (plane.normal @ v) == pytest.approx(1, rel=1e-6)
    assert robust.distance.dual(multiplier * plane.normal) <= 1 + 1e-6


@dimension
def test_eq_proof_lemma_perspective_point(robust, p, tools, rng):
    """a·(x' − dv) = b + ρ‖a‖*_N2 − d/λ ≤ b + (ρC − d)/λ, with one C for all models: ‖a‖*_N2 ≤ C‖a‖*_N1."""
    plane = tools.plane(p, rng)
    x = tools.point(plane, ox.NO, rng)
    answer = ox.ModelOracle(plane, robust.mechanism).explain(x)
    v = (answer - x) / tools.length(robust.distance, answer - x)
    slope = tools.support(robust.distance, plane.normal)[0]
    reach = tools.support(robust.robustness, plane.normal)[0]
    constant = perspective_ratio(robust.distance, robust.robustness, p)
    signs = np.array(list(product([-1.0, 1.0], repeat=p)))
    for a in (plane.normal, *np.eye(p), *signs[: len(signs) // 2], *rng.normal(size=(8, p))):
        ratio = tools.support(robust.robustness, a)[0] / tools.support(robust.distance, a)[0]
        assert ratio <= constant * (1 + 1e-6)
    for d in (0.0, 0.3, 2.0):
        value = plane.normal @ (answer - d * v)
        assert value == pytest.approx(plane.offset + robust.radius * reach - d * slope, abs=1e-5)
        assert value <= plane.offset + (robust.radius * constant - d) * slope + 1e-5


# --- the figures of examples ------------------------------------------------------------------------------------------


def test_fig_defs():
    """What the figure shows: a No; its counterfactual on the plane; a robust one whose ball touches the plane."""
    case = CASES.DEFINITIONS
    x, model = np.array(case.asked), case.model
    plain, robust = (case.service(radius).explain(x) for radius in (0.0, case.radius))
    assert model.label(x) == ox.NO
    assert model.margin(plain) == pytest.approx(0, abs=1e-12)
    gap = model.margin(robust) / np.linalg.norm(model.normal)
    assert gap == pytest.approx(case.radius)
    assert np.linalg.norm(robust - x) == pytest.approx(np.linalg.norm(plain - x) + case.radius)


def test_fig_CF_Example_2D():
    """The two answers of the text, and the plane through them."""
    case = CASES.CF_EXAMPLE
    service = ox.ModelOracle(case.model, case.mechanism)
    assert [service.explain(x).tolist() for x in case.asked] == [[2.0, 1.0], [1.0, -1.0]]
    assert [case.model.margin(service.explain(x)) for x in case.asked] == [0.0, 0.0]


def test_fig_RCF_Example_2D(tools):
    """Both planes drawn solve the equations with the true labels, in exact rationals; only one gives (3, 0) its label (E6)."""
    case = CASES.RCF_EXAMPLE
    service = ox.ModelOracle(case.model, case.mechanism)
    third = Fraction(1, 3)
    answers = [(4 * third, 5 * third), (5 * third, -5 * third)]
    labels = [int(case.model.label(x)) for x in case.asked]
    assert labels == [ox.YES, ox.NO]
    for x, answer in zip(case.asked, answers, strict=True):
        assert service.explain(x) == pytest.approx(list(map(float, answer)))
    roots = [((Fraction(1), Fraction(-1, 2)), Fraction(3, 2)), ((Fraction(-1), Fraction(-7, 10)), Fraction(-3, 2))]
    for (a, b), drawn in zip(roots, (case.model, case.second_root), strict=True):
        assert drawn.is_equivalent(ox.Hyperplane(list(map(float, a)), float(b)))
        for answer, y in zip(answers, labels, strict=True):
            assert tools.dot(a, answer) - b + y * max(map(abs, a)) == 0
    assert [plane.label(case.asked[0]) for plane in (case.model, case.second_root)] == [ox.YES, ox.NO]
