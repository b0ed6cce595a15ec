"""Retraining on labels: random points, points on lines, points along the boundary of what was learned so far."""

import numpy as np
import pytest

from overexplain.baselines.attempt import Attempt
from overexplain.baselines.learners import trained
from overexplain.baselines.questions import Questions
from overexplain.baselines.retraining import retrain_adaptively
from overexplain.errors import BudgetExhausted, ExtractionFailed, InvalidInput
from overexplain.extraction.box import Box
from overexplain.extraction.session import Session
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.scores import Scored
from overexplain.oracles.wrapper import Wrapper
from overexplain.oracles.wrappers import LabelsOnly

BOX = (-1.0, 1.0)


def service(p=5, seed=0, offset=0.3):
    secret = Hyperplane(np.random.default_rng(seed).normal(size=p), offset)
    return secret, LabelsOnly(ModelOracle(secret, "l2"))


def median_angle(variant, budget):
    angles = []
    for seed in range(3):
        secret, oracle = service(seed=seed)
        found = retrain_adaptively(oracle, bounds=BOX, budget=budget, rng=seed, variant=variant)
        assert found.spent.labels == budget
        angles.append(found.hyperplane.angle_to(secret))
    return float(np.median(angles))


def test_every_variant_learns_more_from_more_labels_and_the_adaptive_one_most():
    angles = {
        name: (median_angle(name, 24), median_angle(name, 192)) for name in ("uniform", "line-search", "adaptive")
    }
    assert all(many < few / 2 for few, many in angles.values()), angles
    assert angles["adaptive"][1] < 1e-3
    assert angles["adaptive"][1] < angles["line-search"][1] < angles["uniform"][1] < 0.2


def test_the_learner_finds_the_minimum_of_logistic_regression():
    from scipy.optimize import minimize

    _, oracle = service(2)
    box = Box.of(([-1.0, 0.0], [3.0, 0.5]), 2)
    rng = np.random.default_rng(0)
    questions = Questions(Attempt(Session(oracle), box.centre(), box, rng, None, True, None))
    points, labels = questions.draw(40), rng.choice([-1, 1], size=40)
    plane = trained(points, labels, questions, 3.0)
    scaled = (points - [1.0, 0.25]) / [2.0, 0.25]  # the box becomes [−1, 1]²

    def loss(wb):
        return wb[:2] @ wb[:2] / 2 + 3.0 * np.logaddexp(0, -labels * (scaled @ wb[:2] + wb[2])).sum()

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}).x
    normal = best[:2] / [2.0, 0.25]
    assert np.allclose(plane.normal, normal, rtol=1e-5)
    assert np.isclose(plane.offset, normal @ [1.0, 0.25] - best[2], rtol=1e-5)


def test_adaptive_questions_lie_along_the_learned_boundary(counted):
    secret, oracle = service()
    asked = counted(oracle)
    retrain_adaptively(asked, bounds=BOX, budget=200, rng=0)
    distances = np.abs(secret.margin(asked.questions)) / np.linalg.norm(secret.normal)
    assert np.median(distances[-20:]) < np.median(distances[:20]) / 50


def test_the_usual_budget_is_alpha_times_the_unknowns():
    _, oracle = service(5)
    assert retrain_adaptively(oracle, bounds=BOX, rng=0).spent.labels == 120
    assert retrain_adaptively(oracle, bounds=BOX, rng=0, alpha=5.5).spent.labels == 33


def test_agreeing_rounds_end_it_early_if_an_accuracy_is_asked():
    secret, oracle = service()
    found = retrain_adaptively(oracle, bounds=BOX, budget=600, rng=0, accuracy=0.02)
    assert found.spent.labels < 600
    assert found.hyperplane.angle_to(secret) < 0.1


def test_rounds_beyond_the_budget_do_no_harm():
    _, oracle = service()
    assert retrain_adaptively(oracle, bounds=BOX, budget=12, rounds=50, rng=1).spent.labels == 12


def test_without_limits_questions_go_out_until_both_sides_are_met():
    secret = Hyperplane([1.0, -2.0, 0.5], 5000.0)
    found = retrain_adaptively(Scored(secret), budget=300, rng=0)
    assert found.hyperplane.angle_to(secret) < 0.05
    assert abs(found.hyperplane.offset - 5000.0 / np.linalg.norm(secret.normal)) < 250.0


def test_one_sided_labels_fail_with_their_log():
    _, oracle = service(offset=1e3)
    for variant in ("uniform", "line-search", "adaptive"):
        with pytest.raises(ExtractionFailed, match="all 30 labels were No: .* bounds=") as failure:
            retrain_adaptively(oracle, bounds=BOX, budget=30, rng=0, variant=variant)
        assert len(failure.value.log) == 30


class _Inputs(Wrapper):
    """A service that takes whole numbers only."""

    domain = Domain(3, low=-20, high=20, integers=[0, 1, 2])

    def classify(self, x):
        self.domain.refuse(x)
        return self.wrapped.classify(x)


def test_discrete_inputs_are_chosen_from_those_the_service_takes():
    secret = Hyperplane([1.0, 2.5, -0.75], 1.3)
    oracle = _Inputs(LabelsOnly(ModelOracle(secret, "l2")))
    assert retrain_adaptively(oracle, budget=200, rng=0).hyperplane.angle_to(secret) < 0.05
    with pytest.raises(InvalidInput, match="line-search.*whole numbers"):
        retrain_adaptively(oracle, budget=200, rng=0, variant="line-search")


def test_bad_settings_are_refused(counted):
    _, oracle = service()
    asked = counted(oracle)
    for wrong in ({"variant": "best"}, {"rounds": 0}, {"rounds": 2.5}, {"alpha": -1}, {"strength": "much"}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} must be"):
            retrain_adaptively(asked, **wrong)
    with pytest.raises(BudgetExhausted, match="training on two labels takes 2"):
        retrain_adaptively(asked, budget=1)
    assert asked.labels == 0
