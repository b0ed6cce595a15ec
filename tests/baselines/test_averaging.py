"""Direction averaging: right under l2, wrong under other distances, and its error falls like 1/√n under noise."""

import numpy as np
import pytest

from overexplain.baselines.averaging import average_directions, mean_level, standard_error
from overexplain.errors import ExtractionFailed, NoExplanation
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.degraded import Noisy
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.silent import Flaky, OneSided
from overexplain.oracles.wrapper import Wrapper

BOX = (-1.0, 1.0)


def secret_of(p=6, seed=0):
    return Hyperplane(np.random.default_rng(seed).normal(size=p), 0.3)


@pytest.mark.parametrize("radius", [0.0, 0.1])
def test_two_answers_under_l2_are_the_model(radius, counted):
    secret = secret_of()
    service = counted(ModelOracle(secret, Mechanism("l2", "l2", radius)))
    found = average_directions(service, bounds=(-4.0, 4.0), budget=20, rng=0)
    assert found.hyperplane.is_equivalent(secret, 1e-12)  # overshoots of both sides cancel
    assert (found.spent.labels, found.spent.explanations) == (10, 10) == (service.labels, service.explanations)
    assert found.oriented


def test_noise_averages_out():
    medians = []
    for budget in (20, 320):
        angles = []
        for seed in range(5):
            secret = secret_of(seed=seed)
            noisy = Noisy(ModelOracle(secret, "l2"), 0.1, rng=seed)
            angles.append(average_directions(noisy, bounds=BOX, budget=budget, rng=seed).hyperplane.angle_to(secret))
        medians.append(np.median(angles))
    assert medians[1] < medians[0] / 2 < 0.5


def test_under_l1_the_average_is_one_feature_and_not_the_model():
    secret = Hyperplane([1.0, 0.9, 0.8], 0.2)
    found = average_directions(ModelOracle(secret, "l1"), bounds=BOX, budget=200, rng=0)
    assert np.allclose(found.hyperplane.normal, [1.0, 0.0, 0.0])
    assert "not for other distances" in found.assumptions[0]


def test_without_labels_the_plane_is_right_but_maybe_upside_down(counted):
    secret = secret_of()
    service = counted(ModelOracle(secret, Mechanism("l2", "l2", 0.1)))
    found = average_directions(service, bounds=(-4.0, 4.0), budget=20, rng=0, orient=False)
    assert (service.labels, service.explanations) == (0, 20)
    assert found.hyperplane.same_plane(secret, 1e-12)
    assert not found.oriented
    assert found.assumptions[-1] == "no label told which side is Yes"


class _ExplainsOnly(Wrapper):
    classify = None

    def explain(self, x):
        return self.wrapped.explain(x)


def test_a_service_without_labels_is_enough():
    secret = secret_of()
    found = average_directions(_ExplainsOnly(ModelOracle(secret, "l2")), bounds=BOX, budget=10, rng=0)
    assert found.hyperplane.same_plane(secret, 1e-12)
    assert (found.spent.labels, found.oriented) == (0, False)


def test_an_accuracy_ends_it_early():
    secret = secret_of()
    exact = average_directions(ModelOracle(secret, "l2"), bounds=BOX, rng=0, accuracy=1e-6)
    assert exact.spent.requests == 4
    noisy = Noisy(ModelOracle(secret, "l2"), 0.05, rng=0)
    found = average_directions(noisy, bounds=BOX, rng=0, accuracy=0.1, budget=5000)
    assert found.spent.requests < 5000
    assert found.hyperplane.angle_to(secret) < 0.4


def test_the_standard_error_is_that_of_many_repetitions():
    rng = np.random.default_rng(0)
    truth = np.array([1.0, 0.0, 0.0])

    def sample(n):
        rows = truth + 0.2 * rng.normal(size=(n, 3))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    means = [sample(50).mean(axis=0) for _ in range(400)]
    angles = [np.arctan2(np.linalg.norm(mean[1:]), mean[0]) for mean in means]
    assert np.isclose(np.sqrt(np.mean(np.square(angles))), standard_error(sample(5000)) * 10, rtol=0.15)
    assert standard_error(sample(1)) == np.inf


def test_levels_are_balanced_between_the_sides():
    levels, sides = np.array([1.1, 1.1, 1.1, 0.9]), np.array([-1, -1, -1, 1])
    assert np.isclose(mean_level(levels, sides), 1.0)
    assert np.isclose(mean_level(levels[:3], sides[:3]), 1.1)


def test_one_sided_and_silent_services():
    secret = secret_of()
    found = average_directions(OneSided(ModelOracle(secret, "l2")), bounds=BOX, budget=60, rng=0)
    assert found.hyperplane.is_equivalent(secret, 1e-12)
    for orient in (True, False):
        with pytest.raises(NoExplanation, match="explained none of"):
            average_directions(
                Flaky(ModelOracle(secret, "l2"), 1.0, "nan"), bounds=BOX, budget=90, rng=0, orient=orient
            )


def test_directions_that_cancel_are_no_direction():
    class Lost(Wrapper):
        turn = 1

        def explain(self, x):
            self.turn = -self.turn
            return x + [self.turn * (-1.0 if self.wrapped.classify(x) > 0 else 1.0), 0.0]

    with pytest.raises(ExtractionFailed, match="cancel") as failure:
        average_directions(Lost(ModelOracle(Hyperplane([1.0, 1.0], 0.0), "l2")), bounds=BOX, budget=8, rng=0)
    assert len(failure.value.log) == 8
