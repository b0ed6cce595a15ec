"""What bad input, bad services and too small budgets get: a typed error, and the log is never lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import overexplain as ox

MODEL = ox.Hyperplane([1.0, -2.0, 0.5], 4.0)
EXACT = ox.ModelOracle(MODEL, ox.Mechanism("l1"))


class Service:
    """A service whose n-th explanation is whatever `says(n, x, exact answer)` returns."""

    def __init__(self, says: Callable, mechanism: ox.Mechanism | None = None, exact: ox.ModelOracle = EXACT) -> None:
        self.dimension, self.mechanism = 3, mechanism or exact.mechanism
        self._says, self._exact, self.asked = says, exact, 0

    def classify(self, x: np.ndarray) -> int:
        return MODEL.label(x)

    def explain(self, x: np.ndarray) -> object:
        self.asked += 1
        return self._says(self.asked, x, self._exact.explain(x))


@pytest.mark.parametrize(
    ("says", "error", "words"),
    [
        (lambda n, x, a: a[:2] if n == 2 else a, ox.DimensionMismatch, "3 entries"),
        (lambda n, x, a: a * [1, np.nan, 1] if n == 2 else a, ox.NotFinite, "nan in entry 1"),
        (lambda n, x, a: a * np.inf if n == 2 else a, ox.NotFinite, "entry"),
        (lambda n, x, a: "denied" if n == 2 else a, ox.InvalidInput, "numbers or None"),
        (lambda n, x, a: 1 / 0 if n == 2 else a, ox.EndpointFailed, "ZeroDivisionError on question 2"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_bad_answer_is_a_typed_error_that_carries_the_log(says: Callable, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        ox.extract(Service(says))
    log = caught.value.log
    assert log.explained.tolist() == [0]
    assert [row.status.name for row in log] == ["ASKED", "FAILED"]


def test_none_throughout() -> None:
    for terms, strategy in ((EXACT.mechanism, "cone"), (ox.Mechanism(None), "points")):
        service = Service(lambda n, x, a: None, terms)
        with pytest.raises(ox.NoExplanation, match="none of 12 starts") as caught:
            ox.extract(service, strategy=strategy)
        assert len(caught.value.log) == service.asked == 12


@pytest.mark.parametrize("answer", [lambda x: None, lambda x: x.copy(), lambda x: [], lambda x: np.full(3, np.nan)])
def test_a_service_that_never_explains_still_gives_labels(answer) -> None:
    """auto says that the promise was broken, and what the labels alone give; without labels there is nothing left."""
    found = ox.extract(Service(lambda n, x, a: answer(x)), rng=0)
    assert "refuted" in found.assumptions[0]
    assert len(found.log.explained) == 0
    assert found.hyperplane.angle_to(MODEL) <= found.error_bound <= 1e-6

    class ExplainOnly:
        dimension, mechanism = 3, EXACT.mechanism

        def explain(self, x):
            return answer(x)

    with pytest.raises(ox.OverexplainError) as caught:
        ox.extract(ExplainOnly(), rng=0)
    assert isinstance(caught.value, ox.NoExplanation | ox.ExtractionFailed)
    assert len(caught.value.log) > 0


def test_echoing_the_input_throughout() -> None:
    with pytest.raises(ox.NoExplanation, match="echo") as caught:
        ox.extract(Service(lambda n, x, a: x.copy()), strategy="cone")
    assert len(caught.value.log) > 0


def test_a_one_sided_service_is_met_on_the_side_it_explains() -> None:
    for side in (ox.YES, ox.NO):
        service = Service(lambda n, x, a, side=side: a if MODEL.label(x) == side else None)
        found = ox.extract(service, rng=0)
        assert found.hyperplane.is_equivalent(MODEL, 1e-9)


def test_a_one_sided_service_with_a_secret_radius_takes_labels_instead() -> None:
    terms = ox.Mechanism("l1", robustness="l2", radius=0.3)
    exact = ox.ModelOracle(MODEL, terms)
    shown = ox.Mechanism("l1", robustness="l2", radius=None)
    service = Service(lambda n, x, a: a if MODEL.label(x) == ox.NO else None, shown, exact)
    found = ox.extract(service, rng=0)
    assert found.hyperplane.is_equivalent(MODEL, 1e-9)
    assert found.radius == pytest.approx(0.3)
    assert found.spent.explanations == 4
    assert 40 < found.spent.labels < 60


@pytest.mark.parametrize("name", ["l1", "linf", "group"])
def test_a_budget_too_small_is_refused_before_the_spend(name: str) -> None:
    distance = ox.GroupNorm([[0], [1], [2]]) if name == "group" else ox.norm(name)
    service = Service(lambda n, x, a: a, exact=ox.ModelOracle(MODEL, ox.Mechanism(distance)))
    with pytest.raises(ox.BudgetExhausted, match="takes 3 more requests.* A budget of 4 is enough") as caught:
        ox.extract(service, budget=3)
    assert service.asked == 1
    assert len(caught.value.log) == 1
    assert caught.value.needed == 3
    assert ox.extract(service, budget=4).spent.requests == 4
    with pytest.raises(ox.BudgetExhausted) as caught:
        ox.extract(service, budget=0)
    assert len(caught.value.log) == 0


def test_a_budget_wrapped_around_the_oracle_works_too() -> None:
    with pytest.raises(ox.BudgetExhausted) as caught:
        ox.extract(ox.Budgeted(EXACT, 2))
    assert [row.status.name for row in caught.value.log] == ["ASKED", "ASKED"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"strategy": "guess"}, ox.InvalidInput, "known are auto, cone, points, paper"),
        ({"accuracy": 0.0}, ox.InvalidInput, "accuracy must be positive"),
        ({"start": [1.0]}, ox.DimensionMismatch, "start"),
        ({"start": [1.0, np.nan, 0.0]}, ox.NotFinite, "start"),
        ({"budget": -1}, ox.InvalidInput, "budget"),
        ({"budget": 1.5}, ox.InvalidInput, "budget"),
        ({"bounds": "3"}, ox.InvalidInput, "bounds"),
        ({"bounds": 0}, ox.InvalidInput, "radius of a ball"),
        ({"bounds": True}, ox.InvalidInput, "bounds"),
        ({"bounds": 1.0, "strategy": "labels-far"}, ox.InvalidInput, "far"),
        ({"strategy": "chain"}, ox.InvalidInput, "slack"),
        ({"strategy": "slices"}, ox.InvalidInput, "domain"),
        ({"bounds": (1.0, 1.0)}, ox.InvalidInput, "low < high"),
        ({"bounds": (0.0, 1.0), "start": [2.0, 0.5, 0.5]}, ox.InvalidInput, "outside the bounds"),
        ({"bounds": (0.0, 1.0), "strategy": "paper"}, ox.InvalidInput, "takes no bounds"),
    ],
)
def test_bad_options_are_refused(options: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ox.extract(EXACT, **options)


@pytest.mark.parametrize(
    ("mechanism", "error", "words"),
    [
        (ox.Mechanism("l1", slack=0.1), ox.ExtractionFailed, "slack=0.1"),
        (ox.Mechanism("l1", slack=None), ox.ExtractionFailed, "slack=None"),
        (ox.Mechanism(ox.Weighted(ox.l1, [1.0])), ox.DimensionMismatch, "made for 1 features"),
    ],
)
def test_services_that_no_theorem_covers(mechanism: ox.Mechanism, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ox.extract(Service(lambda n, x, a: a, mechanism), strategy="cone")


def test_labels_only_is_said_to_be_so() -> None:
    class LabelsOnly:
        dimension, mechanism = 3, None
        classify = staticmethod(MODEL.label)

    with pytest.raises(ox.NoExplanation, match="labels only"):
        ox.extract(LabelsOnly(), strategy="cone")
    found = ox.extract(LabelsOnly(), rng=0)
    assert found.spent.explanations == 0
    assert found.hyperplane.angle_to(MODEL) <= found.error_bound <= 1e-6


def test_explanations_only_cannot_be_oriented() -> None:
    class ExplainOnly:
        dimension, mechanism = 3, EXACT.mechanism
        explain = staticmethod(EXACT.explain)

    found = ox.extract(ExplainOnly())
    assert not found.oriented
    assert found.spent.labels == 0
    assert found.hyperplane.same_plane(MODEL)


@pytest.mark.parametrize("declared", ["l1", "linf", "group"])
@pytest.mark.parametrize("true", ["lp:3", "l2", "l1", "linf"])
def test_a_service_that_is_not_what_it_declares(declared: str, true: str) -> None:
    """BrokenPromise under a fixed strategy, and auto finds the plane all the same, unless a model under the declared mechanism
    gives the very same answers: then nothing can contradict it."""
    if declared == true:
        return
    distance = ox.GroupNorm([[0, 1], [2]]) if declared == "group" else ox.norm(declared)
    service = Service(lambda n, x, a: a, ox.Mechanism(distance), ox.ModelOracle(MODEL, ox.Mechanism(true)))
    try:
        found = ox.extract(service, strategy="cone")
    except ox.BrokenPromise as broken:
        assert "declared distance" in str(broken)
        assert broken.fact in ("Steepest", "OnPlane")
        assert broken.excess > 1e-3
        assert len(broken.log.explained) >= 2
        found = ox.extract(service, rng=0)
        assert found.hyperplane.is_equivalent(MODEL, 1e-9)
        assert "refuted" in found.assumptions[0]
        return
    impostor = ox.ModelOracle(found.hyperplane, ox.Mechanism(distance))
    rows = found.log.explained
    steps, own = (
        a[rows] - found.log.points[rows] for a in (found.log.explanations, impostor.explain(found.log.points))
    )
    for step, same in zip(steps, own, strict=True):
        assert distance(step) == pytest.approx(distance(same))
        assert distance(step + same) == pytest.approx(distance(step) + distance(same))
    assert len(rows) == 1 or (declared, true) == ("group", "l1")


def test_undeclared_weights_are_seen() -> None:
    """l1 declared, l1 with weights answered: a question that should stay on its side crosses the plane."""
    weighted = ox.ModelOracle(ox.Hyperplane([1.0, 0.2, 5.0], 3.0), ox.Mechanism(ox.Weighted(ox.l1, [1.0, 1.0, 10.0])))
    with pytest.raises(ox.BrokenPromise, match="log row 2") as caught:
        ox.extract(Service(lambda n, x, a: a, ox.Mechanism("l1"), weighted), strategy="cone")
    assert caught.value.excess > 1.0


def test_a_normal_of_the_wrong_length_is_seen() -> None:
    """linf declared, but every explanation is twice too long along one feature only from the second answer on."""
    exact = ox.ModelOracle(MODEL, ox.Mechanism("linf"))
    with pytest.raises(ox.BrokenPromise, match="dual length"):
        ox.extract(Service(lambda n, x, a: x + (a - x) * (1 + 0.5 * (n > 1)), exact=exact), strategy="cone")


def test_answers_off_the_plane_break_the_promise() -> None:
    """auto says so and turns to labels; a strategy of one's own choice raises."""
    rng = np.random.default_rng(0)
    service = Service(lambda n, x, a: a + 0.05 * rng.normal(size=3) * (n > 1))
    found = ox.extract(service, rng=0)
    assert "refuted" in found.assumptions[0]
    assert found.spent.labels > 20
    assert found.hyperplane.angle_to(MODEL) <= found.error_bound <= 1e-6
    with pytest.raises(ox.BrokenPromise, match="log row") as caught:
        ox.extract(Service(lambda n, x, a: a + [0, 0, 0.01 * (n == 3)]), strategy="cone", orient=False)
    assert caught.value.row == 2


def test_a_start_on_the_plane_is_checked_too() -> None:
    """l2 declared: from a start that is answered by itself, the second answer must give a plane through it."""
    exact = ox.ModelOracle(MODEL, ox.Mechanism("l2"))
    with pytest.raises(ox.BrokenPromise, match="lies .* off the plane") as caught:
        ox.extract(Service(lambda n, x, a: x.copy() if n == 1 else a, exact=exact), strategy="cone", rng=0)
    assert caught.value.fact == "OnPlane"
    assert len(caught.value.log.explained) == 2


def test_a_robust_service_that_answers_with_the_question() -> None:
    terms = ox.Mechanism("l1", robustness="l2", radius=0.3)
    with pytest.raises(ox.BrokenPromise, match="the question itself"):
        ox.extract(Service(lambda n, x, a: x.copy(), terms), strategy="cone")


def test_ctrl_c_carries_the_log_too() -> None:
    def interrupt(n: int, x: np.ndarray, answer: np.ndarray) -> np.ndarray:
        if n == 3:
            raise KeyboardInterrupt
        return answer

    with pytest.raises(KeyboardInterrupt) as caught:
        ox.extract(Service(interrupt))
    assert len(caught.value.log.explained) == 2


@pytest.mark.parametrize("dimension", [None, 0, 2.5, "3", True])
def test_a_dimension_that_is_none(dimension: object) -> None:
    service = Service(lambda n, x, a: a)
    service.dimension = dimension
    with pytest.raises(ox.InvalidInput, match="number of features"):
        ox.extract(service)


def test_errors_survive_pickling() -> None:
    with pytest.raises(ox.BrokenPromise) as caught:
        ox.extract(Service(lambda n, x, a: a + [0, 0, 0.01 * (n == 3)]), strategy="cone")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.fact, again.row, str(again)) == (caught.value.fact, caught.value.row, str(caught.value))


def test_an_oracle_that_writes_into_its_input_does_no_harm() -> None:
    def spoil(n: int, x: np.ndarray, answer: np.ndarray) -> np.ndarray:
        x[:] = 99.0
        return answer

    assert ox.extract(Service(spoil)).hyperplane.is_equivalent(MODEL, 1e-9)
