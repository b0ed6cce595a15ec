"""The surrogate: questions with their labels, counterfactuals with the opposite ones."""

import numpy as np
import pytest

from overexplain.baselines.surrogate import train_surrogate
from overexplain.errors import NoExplanation
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import Flaky, OneSided

BOX = (-1.0, 1.0)


def secret_of(p=6, seed=0):
    return Hyperplane(np.random.default_rng(seed).normal(size=p), 0.3)


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_the_angle_falls_with_the_budget(distance):
    medians = []
    for budget in (20, 300):
        angles = []
        for seed in range(3):
            secret = secret_of(seed=seed)
            found = train_surrogate(ModelOracle(secret, distance), bounds=BOX, budget=budget, rng=seed)
            angles.append(found.hyperplane.angle_to(secret))
        medians.append(np.median(angles))
    assert medians[1] < medians[0] / 3 < 0.3


def test_it_is_logistic_regression_on_questions_and_turned_counterfactuals():
    from sklearn.linear_model import LogisticRegression

    secret = secret_of(3)
    found = train_surrogate(ModelOracle(secret, "l2"), bounds=BOX, budget=41, rng=2, strength=5.0)
    log = found.log
    points, labels = log.points[log.labels != 0], log.labels[log.labels != 0]
    answers = log.explanations[log.explained]
    assert (len(points), len(answers)) == (21, 20)
    fitted = LogisticRegression(C=5.0, tol=1e-10, max_iter=5000)
    fitted.fit(np.vstack([points, answers]), np.concatenate([labels, -labels[:20]]))
    expected = Hyperplane.from_intercept(fitted.coef_[0], fitted.intercept_[0])
    assert found.hyperplane.is_equivalent(expected, 1e-5)


def test_a_side_that_is_never_explained_is_no_longer_asked(counted):
    secret = secret_of()
    service = counted(OneSided(ModelOracle(secret, "l2")))
    found = train_surrogate(service, bounds=BOX, budget=400, rng=0)
    assert found.spent.requests == 400
    assert int((found.log.status == 2).sum()) <= 20 < len(found.log.explained)
    assert found.hyperplane.angle_to(secret) < 0.05


@pytest.mark.parametrize("failure", ["none", "nan", "echo", "raise"])
def test_questions_without_an_answer_count_and_still_train(failure, counted):
    secret = secret_of()
    service = counted(Flaky(ModelOracle(secret, "l2"), 0.5, failure, rng=0))
    found = train_surrogate(service, bounds=BOX, budget=200, rng=1)
    assert (found.spent.labels, found.spent.explanations) == (100, 100) == (service.labels, service.explanations)
    assert 30 < len(found.log.explained) < 70
    assert found.hyperplane.angle_to(secret) < 0.1


def test_a_service_that_explains_nothing_is_given_up_on(counted):
    service = counted(Flaky(ModelOracle(secret_of(), "l2"), 1.0, "none"))
    with pytest.raises(NoExplanation, match="explained none of .* questions.*bounds=") as failure:
        train_surrogate(service, bounds=BOX, budget=500, rng=0)
    assert service.explanations < 100
    assert len(failure.value.log) == service.explanations + service.labels


def test_robust_counterfactuals_are_far_on_the_other_side_and_still_separate():
    secret = secret_of()
    found = train_surrogate(
        ModelOracle(secret, Mechanism("l1", robustness="l2", radius=0.1)), bounds=BOX, budget=300, rng=0
    )
    assert found.hyperplane.angle_to(secret) < 0.1
    assert np.isclose(np.abs(found.hyperplane.normal).max(), 1.0)  # l1's dual length
