"""Services that return what a solver returns, declared as exact: every bound holds, and what cannot be seen is said."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from overexplain.errors import BudgetExhausted
from solver_services import DISTANCES, MARGINS, SOLVERS, SolverService, errors_of, one_hot, standardized

MODELS = {"breast_cancer": standardized(5), "one-hot": one_hot(0)}


@pytest.mark.parametrize("labels", [True, False], ids=["labels", "no labels"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", MODELS)
def test_claimed_bounds_are_true(name, distance, solver, labels) -> None:
    plane, estimated = MODELS[name], 0
    for margin in MARGINS:
        for one_sided in (False, True):
            found = ox.extract(SolverService(plane, distance, solver, margin, labels, one_sided), rng=0, budget=3000)
            angle, offset = errors_of(found, plane, distance)
            if found.error_bound is None:  # answers that no tolerance explains: by their last digits, the processor's
                estimated += 1
                assert found.premise is None
                assert any("is estimated" in note for note in found.assumptions)
                continue
            assert angle <= found.error_bound, (margin, one_sided, found.spent, found.premise)
            assert (found.offset_bound is None) == (one_sided and not labels)
            assert found.offset_bound is None or offset <= found.offset_bound, (margin, one_sided, found.spent)
            assert found.spent.confirmation >= 1
            assert found.premise.startswith(("every answer is within", "every label is right"))
    assert estimated <= 1


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_margin_is_found_or_said(distance) -> None:
    """From both sides it shows in the answers, from one side in the labels; from one side without labels in nothing."""
    plane = MODELS["breast_cancer"]
    margin = 0.5 / float(ox.norm(distance).dual(plane.normal))
    two = ox.extract(SolverService(plane, distance, "CLARABEL", 0.5, labels=False), rng=0)
    assert margin <= two.offset_bound <= 1.01 * margin
    assert "changes the label" in two.premise
    assert (
        errors_of(two, plane, distance)[1] <= 1e-6
    )  # the plane half way is the right one, which only labels could tell
    one = ox.extract(SolverService(plane, distance, "CLARABEL", 0.5, labels=True, one_sided=True), rng=0)
    assert errors_of(one, plane, distance)[1] <= one.offset_bound <= 1e-4
    assert any("labels show that answers end" in note for note in one.assumptions)
    unseen = ox.extract(SolverService(plane, distance, "CLARABEL", 0.5, labels=False, one_sided=True), rng=0)
    assert unseen.offset_bound is None
    assert errors_of(unseen, plane, distance)[1] == pytest.approx(margin, rel=1e-3)
    assert any("a margin that all answers share cannot be seen" in note for note in unseen.assumptions)


def test_without_confirmation_the_terms_are_believed() -> None:
    """What was claimed before: a margin of 0.5 that nobody declared, and a bound that does not hold."""
    plane = MODELS["breast_cancer"]
    believed = ox.extract(SolverService(plane, "l2", "CLARABEL", 0.5, labels=True), rng=0, confirm=0)
    assert believed.spent == ox.Spent(explanations=1, labels=1)
    assert believed.residual is None
    assert errors_of(believed, plane, "l2")[1] > 1e6 * believed.offset_bound


def test_a_wrong_distance_shows_in_one_more_answer() -> None:
    plane = MODELS["breast_cancer"]
    service = SolverService(plane, "l2", "CLARABEL", 0.0, labels=True)
    service.mechanism = ox.Mechanism(ox.Weighted(ox.norm("l2"), [1.0, 2.0, 1.0, 1.0, 1.0]))
    found = ox.extract(service, rng=0)
    assert "refuted" in found.assumptions[0]
    assert found.hyperplane.angle_to(plane) <= found.error_bound


@pytest.mark.parametrize("distance", DISTANCES)
def test_our_own_oracles_cost_what_the_theorem_says(distance) -> None:
    plane = MODELS["breast_cancer"]
    found = ox.extract(ox.ModelOracle(plane, distance), rng=0)
    assert found.spent == ox.Spent(explanations=1 if distance == "l2" else 5, labels=1)
    asked = ox.extract(ox.ModelOracle(plane, distance), rng=0, confirm=1)
    assert asked.spent == ox.Spent(found.spent.explanations, 1, confirmation=3)
    assert asked.hyperplane.angle_to(plane) <= asked.error_bound
    assert asked.residual is not None


@pytest.mark.parametrize("labels", [True, False], ids=["labels", "no labels"])
def test_a_budget_for_the_theorem_alone_gives_the_model_without_a_bound(labels) -> None:
    plane = MODELS["breast_cancer"]
    service = SolverService(plane, "l1", "CLARABEL", 0.0, labels)
    found = ox.extract(service, rng=0, budget=5 + labels)
    assert found.spent.requests == 5 + labels
    assert found.error_bound is None
    assert found.premise is None
    assert any("not confirmed: the budget left nothing" in note for note in found.assumptions)
    with pytest.raises(BudgetExhausted):
        ox.extract(service, rng=0, budget=4)


@pytest.mark.parametrize("labels", [True, False], ids=["labels", "no labels"])
@pytest.mark.parametrize("p", [5, 10, 30])
def test_the_accuracy_is_reached_or_the_result_says_why_not(p, labels) -> None:
    """linf answers rounded to 3 decimals: 1e-3 was asked for, and 0.34 was the end of it, without a word."""
    plane = ox.Hyperplane(np.random.default_rng(p).normal(size=p), 0.3)

    class Rounded:
        dimension, mechanism = p, ox.Mechanism("linf")

        def explain(self, x: np.ndarray) -> np.ndarray:
            return np.round(ox.ModelOracle(plane, "linf").explain(x), 3)

        if labels:

            def classify(self, x: np.ndarray) -> int:
                return plane.label(x)

    found = ox.extract(Rounded(), accuracy=1e-3, rng=0)
    assert errors_of(found, plane, "linf")[0] <= found.error_bound
    reached = found.error_bound <= 1e-3
    assert reached or "not as accurate as asked for (0.001)" in found.assumptions[-1]
    assert reached or not labels
    assert found.error_bound <= 1e-2


@pytest.mark.parametrize("confirm", [2, -1, True, "yes"])
def test_confirm_is_none_or_one(confirm) -> None:
    with pytest.raises(ox.InvalidInput, match="confirm is 0 or 1"):
        ox.extract(ox.ModelOracle(MODELS["breast_cancer"], "l1"), confirm=confirm)
