"""The imitations behave as the services they stand for were measured to, on the same kind of model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import overexplain as ox
from overexplain.oracles.imitations import IMITATIONS, imitate
from overexplain.testing.oracles import check_oracle

DATA, TARGET = load_breast_cancer(return_X_y=True)
ROWS = StandardScaler().fit_transform(DATA)
FITTED = LogisticRegression(max_iter=5000).fit(ROWS, TARGET)
MODEL = ox.Hyperplane.from_intercept(FITTED.coef_[0], FITTED.intercept_[0])
QUESTIONS = ROWS[::3]
NEAR = QUESTIONS[np.argsort(np.abs(MODEL.margin(QUESTIONS)))[:8]]
"""Questions near enough to the boundary for a random search to find an answer every time."""
HEURISTIC = ("wachter", "adam-l1", "dice-random", "nice", "nearest-neighbour")


def measured(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(questions, answers) where there are answers, and how far past the boundary they lie as a share of the way to it."""
    answers = imitate(name, MODEL, ROWS, rng=0).explain(QUESTIONS)
    given = ~np.isnan(answers).any(axis=1)
    past = -MODEL.margin(answers[given]) / MODEL.margin(QUESTIONS[given])
    return QUESTIONS[given], answers[given], past


@pytest.mark.parametrize("name", HEURISTIC)
def test_heuristic_services_are_too_long_and_too_far_by_the_measured_figures(name: str) -> None:
    """1.1 to 3.4 times too long even in their best norm, 4 to 45 % past the boundary (medians)."""
    questions, answers, past = measured(name)
    assert len(answers) > 0.85 * len(QUESTIONS)
    assert (past >= 0).all()  # all of them do flip the label
    ratios = [
        np.median(norm(answers - questions) * norm.dual(MODEL.normal) / np.abs(MODEL.margin(questions)))
        for norm in (ox.l1, ox.l2, ox.linf)
    ]
    assert 1.1 <= min(ratios) <= 3.4
    assert 0.04 <= np.median(past) <= 0.45
    assert np.std(past) > 0.02  # and by no constant amount


def test_the_documented_norm_of_the_adam_service_is_not_its_effective_one() -> None:
    questions, answers, _ = measured("adam-l1")
    steps = answers - questions
    assert imitate("adam-l1", MODEL, ROWS).mechanism == ox.Mechanism("l1", slack=None)
    sizes = np.abs(steps) / np.abs(steps).max(axis=1, keepdims=True)
    assert sizes.min() > 0.999  # all features move alike: linf
    assert (np.sign(steps) == -MODEL.labels(questions)[:, None] * np.sign(MODEL.normal)).all()


def test_the_wachter_service_never_leaves_the_right_direction() -> None:
    questions, answers, _ = measured("wachter")
    steps = -MODEL.labels(questions)[:, None] * (answers - questions)
    unit = MODEL.normal / np.linalg.norm(MODEL.normal)
    assert steps / np.linalg.norm(steps, axis=1, keepdims=True) == pytest.approx(
        np.tile(unit, (len(steps), 1)), abs=1e-12
    )
    probability = 1 / (1 + np.exp(-np.abs(MODEL.margin(answers))))
    assert probability.min() >= 0.7 - 1e-9


def test_a_descent_follows_the_gradient_of_its_own_loss() -> None:
    """The Wachter path, written out in all features with a numerical gradient instead of one number along the normal."""
    service, x = imitate("wachter", MODEL, ROWS), QUESTIONS[4]
    side, z, rate = MODEL.label(x), x.copy(), 0.05

    def loss(z: np.ndarray, penalty: float) -> float:
        return float(np.logaddexp(0.0, side * MODEL.margin(z)) + penalty * np.sum((z - x) ** 2))

    for penalty in (1.0, 0.1, 0.01, 1e-3, 1e-4):
        z = x.copy()
        for _ in range(1000):
            if -side * MODEL.margin(z) >= np.log(0.7 / 0.3):
                break
            slope = [(loss(z + h, penalty) - loss(z - h, penalty)) / 2e-5 for h in 1e-5 * np.eye(len(x))]
            previous, z = z, z - rate * np.array(slope)
            if np.abs(z - previous).max() < 1e-9:
                break  # settled short of the boundary: the penalty is too strong
        if -side * MODEL.margin(z) >= np.log(0.7 / 0.3):
            break
    assert service.explain(x) == pytest.approx(z, abs=1e-5)


def test_solvers_are_exact_but_for_a_constant_or_for_float32() -> None:
    questions, answers, _ = measured("solver")
    past = -MODEL.labels(questions) * MODEL.margin(answers) / ox.linf(MODEL.normal)
    assert past == pytest.approx(1e-3, abs=1e-12)
    assert (np.count_nonzero(np.abs(answers - questions) > 1e-9, axis=1) == 1).all()
    questions, answers, past = measured("solver-linf float32")
    assert np.array_equal(answers, answers.astype(np.float32))
    assert 1e-12 < np.abs(past).max() < 1e-4
    for name, terms in (("solver", "l1"), ("solver-linf float32", "linf")):
        assert imitate(name, MODEL, ROWS).mechanism == ox.Mechanism(terms)
    box = ox.Domain(MODEL.dimension, ROWS.min(axis=0), ROWS.max(axis=0))
    assert imitate("mip-recourse", MODEL, ROWS).mechanism == ox.Mechanism(None, domain=box)


def test_the_random_service_has_two_decimals_and_puts_features_back() -> None:
    questions, answers, _ = measured("dice-random")
    moved = answers != questions
    assert np.array_equal(answers[moved], np.round(answers[moved], 2))
    assert 1 <= np.median(moved.sum(axis=1)) <= 10
    assert len({tuple(row) for row in moved}) > 50
    low, high = ROWS.min(axis=0), ROWS.max(axis=0)
    assert ((answers >= low - 0.01) & (answers <= high + 0.01)).all()
    service = imitate("dice-random", MODEL, ROWS, rng=3)
    assert not np.array_equal(service.explain(NEAR[0]), service.explain(NEAR[0]))


def test_nice_takes_each_feature_from_the_question_or_from_the_nearest_row() -> None:
    questions, answers, _ = measured("nice")
    rows = imitate("nearest-neighbour", MODEL, ROWS).explain(questions)
    assert ((answers == questions) | (answers == rows)).all()
    assert (answers == questions).mean() > 0.3
    kept = -MODEL.labels(questions)[:, None] * MODEL.normal * (answers - questions) >= 0
    assert kept.all()  # no change is left that leads away from the boundary
    log_odds = -MODEL.labels(questions) * MODEL.margin(answers)
    changed = np.where((answers != questions), np.abs(MODEL.normal * (answers - questions)), np.inf).min(axis=1)
    assert (log_odds - changed < np.log(0.55 / 0.45)).all()  # nor one that could be put back


def test_recourse_keeps_to_the_rows_range_and_to_the_denied() -> None:
    service = imitate("mip-recourse", MODEL, ROWS, rng=0)
    answers, labels = service.explain(QUESTIONS), MODEL.labels(QUESTIONS)
    given = ~np.isnan(answers).any(axis=1)
    assert not given[labels == ox.YES].any()
    assert given[labels == ox.NO].mean() > 0.9
    steps = answers[given] - QUESTIONS[given]
    immutable = service.wrapped.features
    assert len(immutable) == 3
    assert not steps[:, list(immutable)].any()
    assert all(service.domain.contains(z) for z in answers[given])
    assert np.abs(MODEL.margin(answers[given])).max() < 1e-12
    assert (np.count_nonzero(steps, axis=1) > 1).any()  # the box makes a second feature move
    with pytest.raises(ox.InvalidInput, match="must lie between"):
        service.explain(np.full(30, 99.0))


@pytest.mark.parametrize("name", IMITATIONS)
def test_every_imitation_keeps_the_contract_of_an_oracle(name: str) -> None:
    check_oracle(imitate(name, MODEL, ROWS, rng=0), points=NEAR, optimal=False)
    again = [imitate(name, MODEL, ROWS, rng=5).explain(NEAR) for _ in range(2)]
    assert np.array_equal(again[0], again[1], equal_nan=True)
    one = imitate(name, ox.Hyperplane([2.0], 1.0), [[0.0], [2.0]], rng=0)
    answer = one.explain([0.0])
    assert answer is not None
    assert answer[0] >= 0.5 - 1e-12


def test_services_that_find_nothing_say_so() -> None:
    flat = ox.Hyperplane([1e-9, 1e-9], 1.0)  # no row, no range and no descent gets there
    for name in ("wachter", "adam-l1", "dice-random", "nice", "nearest-neighbour", "mip-recourse"):
        service = imitate(name, flat, [[0.0, 0.0], [1.0, 1.0]], rng=0)
        assert service.explain([0.5, 0.5]) is None
        assert np.isnan(service.explain([[0.5, 0.5]])).all()


def test_unknown_names_and_missing_rows_are_refused() -> None:
    with pytest.raises(ox.InvalidInput, match="unknown imitation 'magic'; known are solver, "):
        imitate("magic", MODEL, ROWS)
    with pytest.raises(ox.InvalidInput, match="at least one row"):
        imitate("nice", MODEL, np.zeros((0, 30)))
    with pytest.raises(ox.DimensionMismatch):
        imitate("nice", MODEL, np.zeros((3, 2)))
