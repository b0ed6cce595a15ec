"""Counterfactual clamping: counterfactuals must only not score below one half."""

import numpy as np
import pytest

from overexplain.baselines.clamping import ClampedLoss, _by_gradients, fit_clamped, newton, train_clamped
from overexplain.errors import ExtractionFailed, InvalidInput
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import Flaky, OneSided

BOX = (-1.0, 1.0)


def secret_of(p=6, seed=0):
    return Hyperplane(np.random.default_rng(seed).normal(size=p), 0.3)


def examples(p, n=40, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1, 1, (n, p))
    return points, np.where(points.sum(axis=1) + 0.4 * rng.normal(size=n) > 0, 1, -1), rng.uniform(-0.5, 1, (n // 2, p))


def printed_loss(weights, intercept, points, labels, clamped, level, strength):
    """The loss as the paper prints it, in terms of scores."""
    total = weights @ weights / (2 * strength)
    for u, label in zip(points, labels, strict=True):
        score = 1 / (1 + np.exp(-(weights @ u + intercept)))
        total -= np.log(score if label == 1 else 1 - score)
    for u in clamped:
        score = 1 / (1 + np.exp(-(weights @ u + intercept)))
        if score <= level:
            cross = -level * np.log(score) - (1 - level) * np.log(1 - score)
            total += cross + level * np.log(level) + (1 - level) * np.log(1 - level)
    return total / (len(points) + len(clamped))


@pytest.mark.parametrize("level", [0.5, 0.3, 0.8])
def test_the_loss_is_the_papers_and_its_derivatives_are_those_of_finite_differences(level):
    points, labels, clamped = examples(3)
    loss = ClampedLoss(points, labels, clamped, level, 7.0)
    rng = np.random.default_rng(1)
    for _ in range(5):
        at = rng.normal(size=4)
        assert np.isclose(
            loss.value(at), printed_loss(at[:3], at[3], points, labels, clamped, level, 7.0), rtol=1e-12, atol=0
        )
        axes = np.eye(4) * 1e-6
        slope = [(loss.value(at + h) - loss.value(at - h)) / 2e-6 for h in axes]
        bend = [(loss.gradient(at + h) - loss.gradient(at - h)) / 2e-6 for h in axes]
        assert np.allclose(loss.gradient(at), slope, atol=1e-8)
        assert np.allclose(loss.curvature(at), bend, atol=1e-6)


@pytest.mark.parametrize("strength", [1.0, 1e3])
def test_the_minimum_in_two_dimensions_is_the_one_found_by_force(strength):
    from scipy.optimize import minimize

    points, labels, clamped = examples(2)
    weights, intercept = fit_clamped(points, labels, clamped, 0.5, strength)
    forced = min(
        (
            minimize(
                lambda at: printed_loss(at[:2], at[2], points, labels, clamped, 0.5, strength),
                start,
                method="Nelder-Mead",
                options={"xatol": 1e-8, "fatol": 1e-13, "maxiter": 2000},
            )
            for start in ([0.0, 0.0, 0.0], [4.0, -3.0, 1.0])
        ),
        key=lambda run: run.fun,
    )
    assert np.allclose([*weights, intercept], forced.x, rtol=1e-4, atol=1e-4)
    assert (
        ClampedLoss(points, labels, clamped, 0.5, strength).value(np.append(weights, intercept)) <= forced.fun + 1e-13
    )


def test_newton_and_gradients_meet_also_where_a_plane_separates():
    points, _, _ = examples(5, 60)
    labels = np.where(points.sum(axis=1) > 0, 1, -1)
    denied = points[labels == -1]
    loss = ClampedLoss(points, labels, denied - denied.sum(axis=1, keepdims=True) / 5, 0.5, 1e3)
    fast, slow = newton(loss, np.zeros(6)), _by_gradients(loss, np.zeros(6))
    assert np.abs(loss.gradient(fast)).max() < 1e-8
    assert loss.value(fast) <= loss.value(slow) + 1e-13
    assert np.allclose(fast, slow, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("distance", ["l1", "l2"])
def test_the_angle_falls_with_the_budget(distance):
    medians = []
    for budget in (20, 360):
        angles = []
        for seed in range(4):
            secret = secret_of(seed=seed)
            found = train_clamped(OneSided(ModelOracle(secret, distance)), bounds=BOX, budget=budget, rng=seed)
            angles.append(found.hyperplane.angle_to(secret))
            assert found.spent.requests == budget
        medians.append(np.median(angles))
    assert medians[1] < medians[0] / 3 < 0.3


@pytest.mark.parametrize("side", [YES, NO])
def test_only_one_side_is_asked_for_explanations_whichever_it_is(side, counted):
    secret = secret_of()
    service = counted(ModelOracle(secret, "l2"))
    found = train_clamped(service, bounds=BOX, budget=200, rng=0, side=side)
    assert {secret.label(x) for x in service.asked["explain"]} == {side}
    assert found.hyperplane.angle_to(secret) < 0.1


def test_exchanging_yes_and_no_gives_the_opposite_model():
    secret = secret_of(4)
    one = train_clamped(ModelOracle(secret, "l2"), bounds=BOX, budget=100, rng=0)
    other = train_clamped(ModelOracle(secret.flipped(), "l2"), bounds=BOX, budget=100, rng=0, side=YES)
    assert one.hyperplane.is_equivalent(other.hyperplane.flipped(), 1e-9)


def test_unanswered_questions_count(counted):
    secret = secret_of()
    service = counted(Flaky(ModelOracle(secret, "l2"), 0.6, rng=0))
    found = train_clamped(service, bounds=BOX, budget=300, rng=0)
    assert found.spent.requests == 300 == service.labels + service.explanations
    assert found.hyperplane.angle_to(secret) < 0.1


def test_questions_that_are_all_approved_fail_with_what_to_do():
    with pytest.raises(ExtractionFailed, match="all 40 labels were Yes.*bounds=") as failure:
        train_clamped(ModelOracle(Hyperplane([1.0, 1.0], -50.0), "l2"), bounds=BOX, budget=40, rng=0)
    assert len(failure.value.log) == 40


def test_bad_settings_are_refused():
    oracle = ModelOracle(secret_of(), "l2")
    with pytest.raises(InvalidInput, match="side must be"):
        train_clamped(oracle, side=0)
    with pytest.raises(InvalidInput, match="level is a score between 0 and 1"):
        train_clamped(oracle, level=1.0)
    with pytest.raises(InvalidInput, match="strength must be a positive number"):
        train_clamped(oracle, strength=0.0)
