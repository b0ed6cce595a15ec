"""Oracles made by wrapping, and the contract shipped for users' own."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from overexplain.oracles.protocol import checked_explanation, checked_label, offers
from overexplain.testing.oracles import check_oracle

MODEL = ox.Hyperplane([1.0, -2.0], 1.0)


def service() -> ox.ModelOracle:
    return ox.ModelOracle(MODEL, ox.Mechanism("l1"))


def test_recorded_keeps_every_answer_one_by_one_and_in_batches() -> None:
    oracle = ox.Recorded(service())
    oracle.classify([3.0, 0.0])
    oracle.explain([3.0, 0.0])
    oracle.classify([[0.0, 0.0], [0.0, 5.0]])
    oracle.explain([[0.0, 0.0], [0.0, 5.0]])
    assert oracle.log.labels.tolist() == [1, 0, -1, -1, 0, 0]
    assert oracle.log.explained.tolist() == [1, 4, 5]
    assert oracle.log.mechanism == ox.Mechanism("l1")
    check_oracle(oracle)


def test_recorded_appends_to_a_log_that_is_given() -> None:
    log = ox.QueryLog(features=["age", "income"])
    ox.Recorded(service(), log).explain([0.0, 0.0])
    assert len(log) == 1
    assert log.mechanism_of(0) == ox.Mechanism("l1")


def test_budgeted_refuses_before_the_spend_and_hands_over_the_log() -> None:
    calls = []

    class Counting:
        dimension, mechanism = 2, ox.Mechanism("l1")

        def classify(self, x: object) -> object:
            calls.append(x)
            return service().classify(x)

        def explain(self, x: object) -> object:
            calls.append(x)
            return service().explain(x)

    oracle = ox.Budgeted(ox.Recorded(Counting()), 3)
    oracle.classify([0.0, 0.0])
    with pytest.raises(ox.BudgetExhausted, match="3 more requests would exceed the budget of 3") as refused:
        oracle.explain(np.zeros((3, 2)))
    assert len(refused.value.log) == len(calls) == 1
    assert oracle.left == 2
    oracle.explain(np.zeros((2, 2)))
    with pytest.raises(ox.BudgetExhausted, match="1 more request would"):
        oracle.classify([0.0, 0.0])
    assert (oracle.spent, oracle.left, len(calls)) == (3, 0, 2)


@pytest.mark.parametrize("budget", [-1, 2.5, True])
def test_a_budget_is_a_whole_number(budget: object) -> None:
    with pytest.raises(ox.InvalidInput, match="whole number"):
        ox.Budgeted(service(), budget)


def test_a_request_that_fails_was_spent() -> None:
    class Dying:
        dimension, mechanism = 1, None

        def classify(self, x: object) -> object:
            raise ConnectionError("gone")

    oracle = ox.Budgeted(Dying(), 5)
    with pytest.raises(ConnectionError):
        oracle.classify([0.0])
    assert oracle.spent == 1


def test_wrapping_does_not_add_verbs() -> None:
    class LabelsOnly:
        dimension, mechanism = 2, None

        def classify(self, x: object) -> object:
            return MODEL.labels(x) if np.ndim(x) == 2 else MODEL.label(x)

    wrapped = ox.Budgeted(ox.Recorded(LabelsOnly()), 100)
    assert offers(wrapped, "classify")
    assert not offers(wrapped, "explain")
    check_oracle(wrapped)


@pytest.mark.parametrize("said", [0, 2, "yes", None, np.nan])
def test_labels_other_than_plus_and_minus_one_are_refused(said: object) -> None:
    with pytest.raises(ox.InvalidInput, match="-1"):
        checked_label(said)


def test_spellings_of_no_answer() -> None:
    assert checked_explanation(None, 2) is None
    assert checked_explanation([], 2) is None
    assert checked_explanation([np.nan, np.nan], 2) is None
    assert checked_explanation((1, 2), 2).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ([1.0], ox.DimensionMismatch),
        ([[1.0, 2.0]], ox.DimensionMismatch),
        ([1.0, np.nan], ox.NotFinite),
        ([np.inf, 1], ox.NotFinite),
        ("ab", ox.InvalidInput),
    ],
)
def test_half_answers_are_refused(said: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        checked_explanation(said, 2)


def broken(**changes: object) -> object:
    """An exact service with one thing wrong."""
    inner = service()
    base = {
        "dimension": 2,
        "mechanism": ox.Mechanism("l1"),
        "classify": lambda self, x: inner.classify(x),
        "explain": lambda self, x: inner.explain(x),
    }
    return type("Broken", (), base | changes)()


def inner_explain(x: np.ndarray) -> np.ndarray:
    return service().explain(x)


def spoil(self: object, x: np.ndarray) -> np.ndarray:
    answer = service().explain(x)
    x += 1
    return answer


@pytest.mark.parametrize(
    ("oracle", "says"),
    [
        (broken(dimension=0), "positive int"),
        (broken(mechanism="l1"), "Mechanism or None"),
        (broken(mechanism=None), "publishes a Mechanism"),
        (broken(classify=lambda self, x: -1 if np.ndim(x) == 1 else [-1]), "one label per row"),
        (broken(classify=lambda self, x: 1 if np.ndim(x) == 1 else -np.ones(len(x))), "something else for a batch"),
        (broken(explain=lambda self, x: x[:1] if np.ndim(x) == 2 else x), "one row per row"),
        (broken(explain=lambda self, x: None if np.ndim(x) == 1 else x), "alone but not in a batch"),
        (broken(explain=spoil), "changed its input"),
        (
            broken(explain=lambda self, x: ox.ModelOracle(MODEL, ox.Mechanism("linf")).explain(x) + np.sin(x)),
            "row 0",
        ),
        (broken(classify=None, explain=None), "classify, explain, or both"),
        (broken(explain=None), "mechanism = None"),
    ],
)
def test_check_oracle_finds_each_kind_of_mistake(oracle: object, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_oracle(oracle)
