"""Adapters: what foreign objects say becomes an answer, or None with its spelling counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overexplain as ox
from overexplain.oracles.foreign import label_by_class, label_by_name
from overexplain.oracles.libraries import CallableOracle
from overexplain.oracles.protocol import offers
from overexplain.testing.oracles import check_oracle
from strategies import examples

MODEL = ox.Hyperplane([1.0, -2.0], 1.0)
NOTHING_PROMISED = ox.Mechanism(None, slack=None)
QUESTION = np.array([3.0, 0.25])  # Yes
NAN, INF = np.nan, np.inf


def saying(said: object, **terms: object) -> CallableOracle:
    """A service with these labels that always says the same."""
    return CallableOracle(lambda x: said, MODEL.label, dimension=2, **terms)


# What counts as an answer


@pytest.mark.parametrize(
    ("said", "spelling"),
    [
        (None, "None"),
        ([], "empty"),
        ([[]], "empty"),
        (np.empty((0, 2)), "empty"),
        (pd.DataFrame({"a": [], "b": []}), "empty"),
        ([NAN, NAN], "NaN row"),
        ([None, None], "NaN row"),
        ([0.0, NAN], "NaN row"),
        ([NAN, INF], "NaN row"),
        ([0.0, -INF], "not finite"),
        (QUESTION, "echo"),
        ([QUESTION], "echo"),
        ([9.0, 0.0], "no flip"),
        ([[9.0, 0.0], [8.0, 0.0]], "no flip"),
        ([[NAN, 0.0], [8.0, 0.0]], "no flip"),
        ([[NAN, 0.0], [INF, 0.0]], "NaN row"),
    ],
)
def test_every_spelling_of_no_answer_is_none_and_counted(said: object, spelling: str) -> None:
    oracle = saying(said)
    assert oracle.explain(QUESTION) is None
    assert oracle.failures == Counter({spelling: 1})
    assert np.isnan(oracle.explain([QUESTION, QUESTION])).all()
    assert oracle.failures == Counter({spelling: 3})
    assert oracle.last_error is None


@pytest.mark.parametrize(
    ("said", "point"),
    [
        ((0, 0), [0.0, 0.0]),
        ([[0.0, 0.0]], [0.0, 0.0]),
        (pd.DataFrame({"a": [0.0], "b": [1.0]}), [0.0, 1.0]),
        (pd.Series([0.0, 1.0]), [0.0, 1.0]),
        (np.array([0, 1], dtype=np.float32), [0.0, 1.0]),
        ([QUESTION, [NAN, NAN], [9.0, 0.0], [0.0, 2.0], [0.0, 3.0]], [0.0, 2.0]),
    ],
)
def test_the_first_usable_point_is_the_answer(said: object, point: list[float]) -> None:
    oracle = saying(said)
    answer = oracle.explain(QUESTION)
    assert answer.dtype == np.float64
    assert answer.tolist() == point
    assert not oracle.failures


def test_an_exact_service_is_taken_at_its_word() -> None:
    def never(x: object) -> int:
        raise AssertionError("an exact answer's label is a coin toss, so nobody may ask for it")

    for said in (QUESTION, [9.0, 0.0], [1.0, 0.0]):
        oracle = CallableOracle(lambda x, said=said: said, never, dimension=2, mechanism="l1")
        assert oracle.explain(QUESTION).tolist() == list(said)
        assert not oracle.failures
    for said in (None, [], [NAN, NAN], [INF, 0.0]):
        assert saying(said, mechanism="l1").explain(QUESTION) is None


@pytest.mark.parametrize("slack", [0.5, None])
def test_an_echo_or_a_point_that_does_not_flip_needs_an_exact_mechanism(slack: float | None) -> None:
    mechanism = ox.Mechanism("l2", slack=slack)
    assert saying(QUESTION, mechanism=mechanism).explain(QUESTION) is None
    assert saying([9.0, 0.0], mechanism=mechanism).explain(QUESTION) is None


def test_without_labels_only_an_echo_shows_also_in_single_precision() -> None:
    question = np.array([0.1, 1e300])
    for said, spelling in ((question, "echo"), (np.array([np.float32(0.1), np.inf]), "not finite")):
        oracle = CallableOracle(lambda x, said=said: said, dimension=2)
        assert oracle.explain(question) is None
        assert oracle.failures == Counter({spelling: 1})
    oracle = CallableOracle(lambda x: x.astype(np.float32), dimension=2)
    assert oracle.explain([0.1, 0.2]) is None
    assert oracle.failures == Counter(echo=1)
    assert CallableOracle(lambda x: [9.0, 0.0], dimension=2).explain(QUESTION).tolist() == [9.0, 0.0]


def test_an_exception_is_no_answer_and_kept() -> None:
    def explain(x: np.ndarray) -> object:
        raise RuntimeError(f"no counterfactual for {x[0]}")

    oracle = CallableOracle(explain, MODEL.label, dimension=2)
    assert oracle.explain([3.0, 0.0]) is None
    assert np.isnan(oracle.explain([[4.0, 0.0], [5.0, 0.0]])).all()
    assert oracle.failures == Counter(exception=3)
    assert isinstance(oracle.last_error, RuntimeError)
    assert str(oracle.last_error) == "no counterfactual for 5.0"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), ox.BudgetExhausted("nothing left")])
def test_what_is_not_the_services_failure_passes_through(error: BaseException) -> None:
    def explain(x: object) -> object:
        raise error

    oracle = CallableOracle(explain, MODEL.label, dimension=2)
    with pytest.raises(type(error)):
        oracle.explain(QUESTION)
    assert not oracle.failures


def test_a_broken_classifier_is_not_a_missing_explanation() -> None:
    def classify(x: object) -> int:
        raise ConnectionError("gone")

    oracle = CallableOracle(lambda x: [0.0, 0.0], classify, dimension=2)
    with pytest.raises(ConnectionError):
        oracle.explain(QUESTION)


@pytest.mark.parametrize("said", [[1.0], [1.0, 2.0, 3.0], 1.0, [[1.0], [2.0]], np.zeros((1, 1, 2)), "ab"[:1]])
def test_a_wrong_shape_is_a_broken_contract(said: object) -> None:
    error = ox.InvalidInput if isinstance(said, str) else ox.DimensionMismatch
    with pytest.raises(error, match="explanation is"):
        saying(said).explain(QUESTION)


@pytest.mark.parametrize("said", [["red", 1.0], [1j, 0.0], {"x": 1}, [[1.0], [1.0, 2.0]]])
def test_what_is_not_numbers_is_a_broken_contract(said: object) -> None:
    oracle = saying(said)
    with pytest.raises(ox.InvalidInput, match="numbers or None"):
        oracle.explain(QUESTION)
    assert not oracle.failures


def test_the_services_own_arrays_and_ours_stay_apart() -> None:
    buffer = np.zeros(2)

    def explain(x: np.ndarray) -> np.ndarray:
        x[:] = 77.0
        buffer[1] += 1.0
        return buffer

    def classify(x: np.ndarray) -> int:
        label = MODEL.label(x)
        x[:] = 88.0
        return label

    oracle = CallableOracle(explain, classify, dimension=2)
    question = QUESTION.copy()
    first, second = oracle.explain(question), oracle.explain(question)
    assert (first.tolist(), second.tolist(), question.tolist()) == ([0.0, 1.0], [0.0, 2.0], QUESTION.tolist())


FAILURES = {
    "None": lambda x: None,
    "empty": lambda x: [],
    "NaN row": lambda x: x * NAN,
    "not finite": lambda x: x + INF,
    "echo": lambda x: x,
    "no flip": lambda x: x + (0.5 if MODEL.label(x) == 1 else -0.5) * MODEL.normal,
    "exception": lambda x: x[9],
}


@examples(60)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(["fine", *FAILURES]), min_size=1, max_size=12))
def test_answers_flip_and_failures_add_up(seed: int, course: list[str]) -> None:
    """Second opinion: a service that fails as scripted, and labels computed here."""
    steps = iter(course)
    rng = np.random.default_rng(seed)

    def explain(x: np.ndarray) -> object:
        how = next(steps)
        past = (MODEL.offset - MODEL.normal @ x) / (MODEL.normal @ MODEL.normal)
        return x + past * rng.uniform(1.01, 3) * MODEL.normal if how == "fine" else FAILURES[how](x)

    points = rng.normal(size=(len(course), 2)) * 5
    oracle = CallableOracle(explain, MODEL.label, dimension=2)
    answers = oracle.explain(points)
    answered = ~np.isnan(answers).all(axis=1)
    assert answered.tolist() == [how == "fine" for how in course]
    before, after = points[answered] @ MODEL.normal >= 1.0, answers[answered] @ MODEL.normal >= 1.0
    assert (before != after).all()
    assert oracle.failures == Counter(how for how in course if how != "fine")


# Any callable


def test_an_exact_service_behind_callables_is_rebuilt() -> None:
    exact = ox.ModelOracle(MODEL, "l1")
    oracle = CallableOracle(exact.explain, exact.classify, dimension=2, mechanism="l1")
    check_oracle(oracle)
    assert ox.extract(oracle, rng=0).hyperplane.is_equivalent(MODEL, 1e-9)
    assert not oracle.failures


def test_a_verb_that_is_not_there_is_not_offered() -> None:
    labels_only = CallableOracle(classify=MODEL.label, dimension=2)
    assert (labels_only.mechanism, offers(labels_only, "explain"), offers(labels_only, "classify")) == (
        None,
        False,
        True,
    )
    check_oracle(labels_only)
    explains_only = CallableOracle(lambda x: -x, dimension=2)
    assert explains_only.mechanism == NOTHING_PROMISED
    assert (offers(explains_only, "explain"), offers(explains_only, "classify")) == (True, False)
    check_oracle(explains_only)
    assert not offers(ox.Recorded(labels_only), "explain")


def test_recorded_sees_no_answer_whatever_its_spelling() -> None:
    recorded = ox.Recorded(saying(QUESTION))
    recorded.explain(QUESTION)
    recorded.explain([QUESTION, [0.0, 0.0]])  # from the origin the question's own point is a flip
    assert np.isnan(recorded.log.explanations).all(axis=1).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("said", "labels", "label"),
    [
        (1, None, 1),
        (-1.0, None, -1),
        (np.int8(-1), None, -1),
        (np.array([1.0]), None, 1),
        (True, None, 1),
        (np.bool_(False), None, -1),
        (0, {0: -1, 1: 1}, -1),
        (1.0, {0: -1, 1: 1}, 1),
        (np.array([[0]]), {0: -1, 1: 1}, -1),
        (0, {0: 1, 1: -1}, 1),
        (True, {0: -1, 1: 1}, 1),
        ("denied", {"denied": -1, "approved": 1}, -1),
        (pd.Series(["approved"]), {"denied": -1, "approved": 1}, 1),
    ],
)
def test_labels_are_read_by_name(said: object, labels: dict[object, int] | None, label: int) -> None:
    assert label_by_name(said, labels) == label
    oracle = CallableOracle(classify=lambda x: said, dimension=1, labels=labels)
    assert (oracle.classify([0.0]), oracle.classify([[0.0], [1.0]]).tolist()) == (label, [label, label])


@pytest.mark.parametrize(
    ("said", "labels"),
    [
        (0, None),
        (0.7, None),
        (2, None),
        (NAN, None),
        (None, None),
        ("yes", None),
        ([1, -1], None),
        ([], None),
        (0.7, {0: -1, 1: 1}),
        (2, {0: -1, 1: 1}),
        ("yes", {0: -1, 1: 1}),
        (None, {0: -1, 1: 1}),
    ],
)
def test_labels_that_could_mean_anything_are_refused(said: object, labels: dict[object, int] | None) -> None:
    with pytest.raises(ox.InvalidInput, match="label"):
        CallableOracle(classify=lambda x: said, dimension=1, labels=labels).classify([0.0])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"explain": 3},
        {"classify": "no"},
        {"classify": MODEL.label, "mechanism": "l1"},
        {"classify": MODEL.label, "labels": {0: -1, 1: 0}},
        {"classify": MODEL.label, "labels": {1: 1}},
        {"classify": MODEL.label, "dimension": 0},
        {"classify": MODEL.label, "dimension": 2.0},
        {"explain": MODEL.label, "mechanism": ox.Mechanism(ox.Weighted(ox.norm("l1"), [1.0, 2.0, 3.0]))},
    ],
)
def test_what_cannot_be_an_oracle_is_refused_at_once(arguments: dict[str, object]) -> None:
    with pytest.raises(ox.InvalidInput):
        CallableOracle(**{"dimension": 2, **arguments})


@pytest.mark.parametrize("x", [[1.0], [[1.0, 2.0, 3.0]], [NAN, 0.0]])
def test_questions_are_checked_before_anyone_is_asked(x: object) -> None:
    oracle = saying([0.0, 0.0])
    for verb in (oracle.classify, oracle.explain):
        with pytest.raises(ox.InvalidInput):
            verb(x)
    assert not oracle.failures


@pytest.mark.parametrize(
    ("said", "positive", "label"),
    [
        ([1], 1, 1),
        ([0.0], 1, -1),
        ([-1], 1, -1),
        ([True], 1, 1),
        ([[0]], 0, 1),
        (["good"], "good", 1),
        (["bad"], "good", -1),
        ([[0.3, 0.7]], 1, 1),
        ([[0.3, 0.7]], 0, -1),
        ([[0.2, 0.5, 0.3]], 1, 1),
        ([[0.2, 0.5, 0.3]], 2, -1),
    ],
)
def test_predictions_are_read_by_class(said: object, positive: object, label: int) -> None:
    assert label_by_class(np.array(said), positive) == label


@pytest.mark.parametrize(
    ("said", "positive"),
    [
        ([0.7], 1),
        ([NAN], 1),
        ([None], 1),
        (["good"], 1),
        ([1], "good"),
        ([0, 1], 1),
        ([[0.3, 0.7], [0.3, 0.7]], 1),
        ([[NAN, 0.7]], 1),
        ([[0.3, 0.7]], 2),
        ([[0.3, 0.7]], "good"),
        ([["a", "b"]], 1),
        ([], 1),
    ],
)
def test_predictions_that_could_mean_anything_are_refused(said: object, positive: object) -> None:
    with pytest.raises(ox.InvalidInput):
        label_by_class(np.array(said), positive)
