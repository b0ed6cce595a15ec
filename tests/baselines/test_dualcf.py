"""DualCF: a counterfactual and its own counterfactual have the boundary in their middle."""

import numpy as np
import pytest

from overexplain.baselines.dualcf import train_on_pairs
from overexplain.baselines.surrogate import train_surrogate
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import OneSided

BOX = (-1.0, 1.0)
ROBUST = Mechanism("l2", robustness="l2", radius=0.05)


def secret_of(p=6, seed=0):
    return Hyperplane(np.random.default_rng(seed).normal(size=p), 0.3)


@pytest.mark.parametrize("p", [1, 2, 20])
def test_one_pair_is_the_model_if_answers_overshoot_alike(p):
    secret = secret_of(p)
    found = train_on_pairs(ModelOracle(secret, ROBUST), budget=3, rng=0)
    assert (found.spent.labels, found.spent.explanations) == (1, 2)
    assert found.hyperplane.is_equivalent(secret, 1e-6)


def test_pairs_are_trained_with_opposite_labels_and_without_their_questions():
    from sklearn.linear_model import LogisticRegression

    found = train_on_pairs(ModelOracle(secret_of(3), Mechanism("l1", "l2", 0.1)), budget=60, rng=3, strength=5.0)
    log = found.log
    pairs, labels = log.explanations[log.explained], log.labels[log.labels != 0]
    fitted = LogisticRegression(C=5.0, tol=1e-10, max_iter=5000)
    fitted.fit(pairs, np.column_stack([-labels, labels]).ravel())
    expected = Hyperplane.from_intercept(fitted.coef_[0], fitted.intercept_[0])
    assert found.hyperplane.is_equivalent(expected, 1e-5)
    assert "20 pairs" in found.method


def test_pairs_beat_the_plain_surrogate_as_the_paper_says():
    mine, plain = [], []
    for seed in range(4):
        secret = secret_of(8, seed)
        for attack, angles in ((train_on_pairs, mine), (train_surrogate, plain)):
            found = attack(ModelOracle(secret, ROBUST), bounds=(-2.0, 2.0), budget=60, rng=seed)
            angles.append(found.hyperplane.angle_to(secret))
    assert np.median(mine) < np.median(plain) / 2


def test_the_angle_falls_with_the_budget_where_answers_lie_on_the_boundary():
    medians = []
    for budget in (30, 360):
        angles = []
        for seed in range(3):
            secret = secret_of(seed=seed)
            found = train_on_pairs(ModelOracle(secret, "l1"), bounds=BOX, budget=budget, rng=seed)
            angles.append(found.hyperplane.angle_to(secret))
            assert "their questions took its place" in found.assumptions[-1]
        medians.append(np.median(angles))
    assert medians[1] < medians[0] / 3 < 0.3


def test_a_one_sided_service_gives_counterfactuals_and_no_way_back(counted):
    secret = secret_of()
    service = counted(OneSided(ModelOracle(secret, ROBUST)))
    found = train_on_pairs(service, bounds=BOX, budget=300, rng=0)
    assert found.spent.requests == 300 == service.labels + service.explanations
    assert found.hyperplane.angle_to(secret) < 0.3


def test_counterfactuals_outside_the_bounds_are_not_asked_about(counted):
    secret = Hyperplane([1.0, 1.0], 0.5)
    service = counted(ModelOracle(secret, Mechanism("linf", "l2", 0.4)))
    train_on_pairs(service, bounds=(-1.0, 1.0), budget=90, rng=0)
    assert np.abs(service.questions).max() <= 1.0
