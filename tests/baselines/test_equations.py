"""Equation solving: p + 1 probabilities are the model."""

import math
from fractions import Fraction

import numpy as np
import pytest

from overexplain.baselines.equations import log_odds, solve_equations
from overexplain.errors import BudgetExhausted, EndpointFailed, ExtractionFailed, InvalidInput
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.scores import Scored
from overexplain.oracles.wrapper import Wrapper


def secret_of(p, seed=0, size=1.0, offset=0.3):
    return Hyperplane(size * np.random.default_rng(seed).normal(size=p) / math.sqrt(p), offset)


@pytest.mark.parametrize("p", [1, 2, 10, 50])
@pytest.mark.parametrize("seed", [0, 1])
def test_exactly_p_plus_one_scores_are_the_model(p, seed, counted):
    secret = secret_of(p, seed)
    service = counted(Scored(secret))
    found = solve_equations(service, bounds=(-1.0, 1.0), rng=seed)
    assert found.hyperplane.is_equivalent(secret, 1e-9)
    assert (found.spent.labels, found.spent.explanations) == (p + 1, 0) == (service.labels, service.explanations)
    assert found.oriented
    assert not found.exact
    assert found.error_bound is None


def test_the_equations_solved_in_rationals_give_the_same_model():
    secret = secret_of(3)
    found = solve_equations(Scored(secret), bounds=(-1.0, 1.0), rng=5)
    scores = [float(source.removeprefix("score ")) for source in found.log.sources]
    # [x, −1]·(normal, offset) = log-odds, by Gauss–Jordan elimination without rounding.
    rows = [
        [*map(Fraction, x.tolist()), Fraction(-1), Fraction(float(log_odds(score)))]
        for x, score in zip(found.log.points, scores, strict=True)
    ]
    for k in range(4):
        pivot = next(i for i in range(k, 4) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [entry / rows[k][k] for entry in rows[k]]
        for i in range(4):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    exact = Hyperplane([float(row[-1]) for row in rows[:3]], float(rows[3][-1]))
    assert found.hyperplane.is_equivalent(exact, 1e-13)
    assert np.allclose(exact.normal, secret.normal, rtol=1e-12)


def test_rounded_scores_cost_digits_and_more_equations_buy_them_back():
    secret = secret_of(10, 3)
    few, many = [], []
    for seed in range(4):
        few.append(solve_equations(Scored(secret, decimals=3), bounds=(-1.0, 1.0), rng=seed))
        many.append(solve_equations(Scored(secret, decimals=3), bounds=(-1.0, 1.0), rng=seed, equations=220))
    angles = [np.median([each.hyperplane.angle_to(secret) for each in runs]) for runs in (few, many)]
    assert 1e-4 < angles[0] < 1.0
    assert angles[1] < angles[0] / 4
    assert all("grid (3 decimals)" in " ".join(each.assumptions) for each in few + many)
    assert many[0].spent.labels == 220


def test_equations_count_by_how_well_rounded_scores_tell_them(counted):
    service = counted(Scored(secret_of(4, 2, 6.0), decimals=2))
    found = solve_equations(service, bounds=(-1.0, 1.0), rng=0, equations=80)
    points, scores = service.questions, service.wrapped.score(service.questions)
    kept = (scores > 0) & (scores < 1)
    weights = (scores * (1 - scores))[kept]  # a step of the score is 1/(s(1 − s)) steps of the log-odds
    assert weights.max() > 10 * weights.min()
    rows = np.column_stack([points, -np.ones(len(points))])[kept]
    normal_equations = rows.T @ (weights[:, None] ** 2 * rows), rows.T @ (weights**2 * log_odds(scores[kept]))
    solution = np.linalg.solve(*normal_equations)
    assert found.hyperplane.is_equivalent(Hyperplane(solution[:4], solution[4]), 1e-9)


@pytest.mark.parametrize(("size", "offset", "bounds"), [(3e3, 20.0, (-1.0, 1.0)), (100.0, 1e4, None)])
def test_saturated_scores_are_dropped_and_questions_move_to_the_boundary(size, offset, bounds, counted):
    secret = secret_of(10, 4, size, offset)
    service = counted(Scored(secret))
    found = solve_equations(service, bounds=bounds, rng=0)
    assert found.hyperplane.is_equivalent(secret, 1e-8)
    assert 11 < found.spent.labels == service.labels
    assert "were dropped" in found.assumptions[-1]


def test_services_that_are_always_sure_fail_with_their_log():
    far = Hyperplane([1e6, 1e6], 1e9)
    with pytest.raises(ExtractionFailed, match="all 200 labels were No.*bounds=") as failure:
        solve_equations(Scored(far), bounds=(-1.0, 1.0), rng=0)
    assert len(failure.value.log) == 200
    steep = Hyperplane([1e300, 1e300], 1e299)  # both sides are met, but nothing between 0 and 1
    with pytest.raises(ExtractionFailed, match="tell labels only"):
        solve_equations(Scored(steep), bounds=(-1.0, 1.0), rng=0)


def test_a_budget_below_the_unknowns_is_refused_before_anything_is_sent(counted):
    service = counted(Scored(secret_of(5)))
    with pytest.raises(BudgetExhausted, match="takes 6 more requests, 5 of the budget of 5") as refusal:
        solve_equations(service, budget=5)
    assert service.labels == 0
    assert refusal.value.needed == 6
    assert solve_equations(service, bounds=(-1.0, 1.0), budget=6, rng=0).spent.labels == 6


def test_a_budget_that_dropped_scores_used_up_is_kept_to(counted):
    service = counted(Scored(secret_of(10, 4, 3e3, 20.0)))
    with pytest.raises(BudgetExhausted) as refusal:
        solve_equations(service, bounds=(-1.0, 1.0), budget=12, rng=0)
    assert service.labels <= 12
    assert len(refusal.value.log) == service.labels


class _Inputs(Wrapper):
    """A service that takes one-hot groups and whole numbers only."""

    domain = Domain(5, low=[0, 0, 0, -3, 0], high=[1, 1, 1, 3, 5.5], groups=[[0, 1, 2]], integers=[3])

    def score(self, x):
        self.domain.refuse(x)
        return self.wrapped.score(x)


def test_one_hot_groups_take_one_equation_less_and_hide_one_direction():
    secret = Hyperplane([0.5, -0.25, 1.0, 0.5, -0.75], 0.25)
    found = solve_equations(_Inputs(Scored(secret)), rng=0)
    assert found.spent.labels == 5
    assert np.allclose(found.unidentified, [[3**-0.5, 3**-0.5, 3**-0.5, 0, 0]])
    inputs = _Inputs.domain.sample(1, 500)
    mine, theirs = found.hyperplane.margin(inputs), secret.margin(inputs)
    assert np.allclose(mine * abs(theirs).max() / abs(mine).max(), theirs, atol=1e-9)


def test_a_constant_score_shows_no_direction():
    class Constant:
        dimension, mechanism = 3, None

        def classify(self, x):
            return 1

        def score(self, x):
            return 0.5

    with pytest.raises(ExtractionFailed, match="all scores are equal"):
        solve_equations(Constant(), rng=0)


def test_services_that_do_not_score_are_refused():
    with pytest.raises(InvalidInput, match="needs probabilities.*retraining"):
        solve_equations(ModelOracle(secret_of(3), "l2"))


def test_what_a_service_raises_and_what_is_no_score_come_with_the_log():
    class Failing(Wrapper):
        calls = 0

        def score(self, x):
            self.calls += 1
            if self.calls == 3:
                raise ConnectionError("gone")
            return self.wrapped.score(x) if self.calls < 3 else 7.0

    service = Failing(Scored(secret_of(4)))
    with pytest.raises(EndpointFailed, match="ConnectionError on question 3: gone") as failure:
        solve_equations(service, bounds=(-1.0, 1.0), rng=0)
    assert len(failure.value.log) == 2
    with pytest.raises(InvalidInput, match="probability of Yes"):
        solve_equations(service, bounds=(-1.0, 1.0), rng=0)
