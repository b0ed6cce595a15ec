"""The oracle whose answers are in a run's file: asked once, stored before used, given again ever after."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from overexplain.errors import BudgetExhausted, DimensionMismatch, EndpointFailed, InvalidInput
from overexplain.log.querylog import Status
from overexplain.log.store.run import Run
from overexplain.oracles.kept import Kept
from overexplain.oracles.protocol import offers
from overexplain.testing.oracles import check_oracle

MODEL = ox.Hyperplane([1.0, -2.0, 0.5], 1.0)


class Counting:
    """An oracle that counts what it is asked; `spoil` may change an answer or raise."""

    def __init__(self, oracle: Any, spoil: Callable[[int, Any], Any] = lambda count, answer: answer) -> None:
        self.wrapped, self.dimension, self.mechanism = oracle, oracle.dimension, oracle.mechanism
        self.count, self._spoil = 0, spoil

    def classify(self, x: Any) -> Any:
        self.count += 1
        return self._spoil(self.count, self.wrapped.classify(x))

    def explain(self, x: Any) -> Any:
        self.count += 1
        return self._spoil(self.count, self.wrapped.explain(x))


class Live:
    """A service asked by `ask`: a script says what happens to each request."""

    dimension, mechanism = 3, ox.Mechanism("l1")

    def __init__(self, *script: Any) -> None:
        self.script, self.sent = list(script), 0

    def classify(self, x: Any) -> Any:
        raise AssertionError("must be asked by ask")

    explain = classify

    def ask(self, verb: str, x: Any, question: Any) -> Any:
        assert len(question.key) == 64
        while True:
            step = self.script.pop(0)
            if isinstance(step, EndpointFailed) and step.args[0].startswith("before"):
                raise step
            question.sending()
            self.sent += 1
            if isinstance(step, BaseException):
                raise step
            if not isinstance(step, str):
                return step
            question.failed(step, 7.0)
            if step.endswith("!"):
                raise EndpointFailed(step, stops=step.endswith("!!"))


def service(mechanism: str = "l1") -> Counting:
    return Counting(ox.ModelOracle(MODEL, ox.Mechanism(mechanism)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def created(path: Path, budget: int = 100, **options: Any) -> Run:
    return Run.create(path, plan={"seed": 1}, dimension=3, budget=budget, mechanism=ox.Mechanism("l1"), **options)


def test_what_is_stored_is_not_asked_again(path: Path) -> None:
    oracle, rows = service(), np.random.default_rng(0).normal(size=(4, 3))
    answers = []
    for door in (lambda: created(path), lambda: Run.open(path)):
        with door() as run:
            kept = Kept(oracle, run)
            answers.append([kept.classify(rows[0]), kept.classify(rows), kept.explain(rows[0]), kept.explain(rows)])
            assert (oracle.count, run.spent, run.answered) == (10, 10, 10)
    for first, again, bare in zip(
        *answers,
        [MODEL.label(rows[0]), MODEL.labels(rows), oracle.wrapped.explain(rows[0]), oracle.wrapped.explain(rows)],
        strict=True,
    ):
        np.testing.assert_array_equal(first, again)
        np.testing.assert_array_equal(first, bare)
    assert len(Run.read(path).log()) == 10


def test_it_keeps_the_contract_of_an_oracle(path: Path) -> None:
    with created(path, budget=10_000) as run:
        check_oracle(Kept(service(), run))


def test_terms_and_domain_are_passed_on_and_must_fit(path: Path) -> None:
    oracle = ox.ModelOracle(MODEL, ox.Mechanism("l1"))
    with created(path) as run:
        kept = Kept(oracle, run)
        assert (kept.dimension, kept.mechanism, kept.domain) == (3, oracle.mechanism, None)
        assert offers(kept, "explain")
        labels = Kept(ox.LabelsOnly(oracle), run)
        assert offers(labels, "classify")
        assert not offers(labels, "explain")
        with pytest.raises(InvalidInput, match="other terms"):
            Kept(ox.ModelOracle(MODEL, ox.Mechanism("l2")), run)
        with pytest.raises(DimensionMismatch, match="2 features, the run 3"):
            Kept(ox.ModelOracle(ox.Hyperplane([1.0, 1.0], 0.0), "l1"), run)
        for x in ([1.0], [np.nan, 0.0, 0.0]):
            with pytest.raises(InvalidInput):
                kept.classify(x)
        assert run.spent == 0


def test_no_explanation_is_an_answer(path: Path) -> None:
    for answer in (None, [], [np.nan] * 3):
        place = path.with_name(f"{type(answer).__name__}{len(answer or ())}.sqlite")
        oracle = Counting(service().wrapped, lambda count, _, answer=answer: answer)
        with created(place) as run:
            assert Kept(oracle, run).explain(np.ones(3)) is None
        with Run.open(place) as run:
            assert np.isnan(Kept(oracle, run).explain(np.ones((1, 3)))).all()
            assert (oracle.count, run.log().status.tolist()) == (1, [Status.NONE])


@pytest.mark.parametrize("answer", [[1.0], [np.nan, 1.0, 1.0], "text", [np.inf] * 3, object()])
def test_what_cannot_be_read_is_refused_now_and_later(path: Path, answer: Any) -> None:
    oracle = Counting(service().wrapped, lambda count, good: answer if count == 1 else good)
    with created(path) as run:
        kept = Kept(oracle, run)
        with pytest.raises(EndpointFailed) as first:
            kept.explain(np.ones(3))
        kept.explain(np.zeros(3))
    with Run.open(path) as run:
        with pytest.raises(EndpointFailed) as again:
            Kept(oracle, run).explain(np.ones(3))
        assert str(first.value) == str(again.value)
        assert not again.value.stops
        assert (oracle.count, run.spent) == (2, 2)
        assert run.log().status.tolist() == [Status.FAILED, Status.ASKED]


def test_a_label_that_is_none_is_refused(path: Path) -> None:
    with created(path) as run, pytest.raises(EndpointFailed, match="0/1"):
        Kept(Counting(service().wrapped, lambda count, _: 0), run).classify(np.ones(3))


def test_what_raises_is_refused_with_its_cause(path: Path) -> None:
    def spoil(count: int, answer: Any) -> Any:
        if count == 1:
            raise ConnectionResetError("gone")
        return answer

    oracle = Counting(service().wrapped, spoil)
    with pytest.raises(EndpointFailed, match="ConnectionResetError: gone") as caught, created(path) as run:
        Kept(oracle, run).classify(np.ones(3))
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    run = Run.read(path)
    assert (run.spent, run.answered, len(run.log())) == (1, 1, 0)
    with Run.open(path) as run:  # it ended the work: asked again
        assert Kept(oracle, run).classify(np.ones(3)) == MODEL.label(np.ones(3))
        assert (run.spent, run.log().labels.tolist()) == (2, [MODEL.label(np.ones(3))])


def test_a_live_service_writes_down_each_request_itself(path: Path) -> None:
    live = Live("429", "reset", 1, [1.0, 2.0, 3.0], None)
    with created(path) as run:
        kept = Kept(live, run)
        assert kept.classify(np.ones(3)) == 1
        assert (run.spent, run.retries, run.not_before) == (3, 2, 7.0)
        assert kept.explain(np.ones(3)).tolist() == [1, 2, 3]
        assert kept.explain(np.ones(3)) is None
    with Run.open(path) as run:
        kept = Kept(Live(), run)
        assert (kept.classify(np.ones(3)), kept.explain(np.ones(3)).tolist()) == (1, [1, 2, 3])
        assert kept.explain(np.ones(3)) is None
    assert live.sent == 5


@pytest.mark.parametrize(
    ("failure", "spent", "answered", "unanswered"),
    [
        (EndpointFailed("before: no route", stops=True), 0, 0, 0),
        (EndpointFailed("before: not JSON"), 0, 0, 0),
        (EndpointFailed("401", stops=True), 1, 0, 0),
        (EndpointFailed("422"), 1, 1, 0),
        ("500!", 1, 1, 0),
        ("503!!", 1, 0, 0),
        (KeyboardInterrupt(), 1, 0, 1),
    ],
)
def test_how_a_live_service_fails(path: Path, failure: Any, spent: int, answered: int, unanswered: int) -> None:
    with pytest.raises((EndpointFailed, KeyboardInterrupt)), created(path) as run:
        Kept(Live(failure), run).explain(np.ones(3))
    run = Run.read(path)
    assert (run.spent, run.answered, len(run.unanswered)) == (spent, answered, unanswered)
    with Run.open(path) as run:
        assert Kept(Live([4.0, 5.0, 6.0]), run).explain(np.ones(3)).tolist() == [4, 5, 6]
        assert run.spent == spent + 1


def test_the_budget_is_kept_and_hands_over_the_log(path: Path) -> None:
    oracle = service()
    with created(path, budget=2) as run:
        kept = Kept(oracle, run)
        with pytest.raises(BudgetExhausted) as caught:
            kept.classify(np.eye(3))
        assert (oracle.count, len(caught.value.log)) == (2, 2)
        with pytest.raises(BudgetExhausted):
            Kept(Live(1), run).classify(np.zeros(3))


@pytest.mark.parametrize("step", ["sending", "failed", "heard"])
def test_a_store_that_fails_stops_everything(path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even an extraction that forgives a service its failures."""
    from overexplain.log.store.run import Question

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Question, step, full)
    with created(path) as run:
        for oracle in (Live("429", [1.0, 2.0, 3.0]), service()):
            if step == "failed" and isinstance(oracle, Counting):
                continue
            with pytest.raises(EndpointFailed, match="could not be stored") as caught:
                Kept(oracle, run).explain(np.ones(3))
            assert caught.value.stops
            assert caught.value.__cause__.errno == errno.ENOSPC
    closed = Kept(service(), run)
    with pytest.raises(EndpointFailed, match="closed") as caught:
        closed.classify(np.ones(3))
    assert caught.value.stops


class Killed(BaseException):
    """Stands for the end of the process: nothing in the package catches it."""


@pytest.mark.parametrize("idempotent", [False, True])
@pytest.mark.parametrize(
    "mechanism", [ox.Mechanism("l1"), ox.Mechanism("l2"), ox.Mechanism("linf", robustness="l2", radius=0.1)]
)
def test_an_extraction_killed_at_every_question_ends_as_if_it_had_not_been(
    tmp_path: Path, mechanism: ox.Mechanism, idempotent: bool
) -> None:
    normal = np.random.default_rng(3).normal(size=6)
    inner = ox.ModelOracle(ox.Hyperplane(normal, 0.5), mechanism)
    whole = ox.extract(inner, rng=1)

    def killed(count: int, answer: Any) -> Any:
        if count == 1:
            raise Killed  # answered by the service, not yet stored
        return answer

    path = tmp_path / "run.sqlite"
    Run.create(path, plan={"seed": 1}, dimension=6, mechanism=mechanism, budget=200, idempotent=idempotent).close()
    requests = 0
    for restart in range(100):
        oracle = Counting(inner, killed if restart % 2 == 0 else lambda count, answer: answer)
        with Run.open(path) as run:
            kept = Kept(oracle, run)
            if restart % 2:  # let one answer be stored, then end before the next question
                kept = Kept(Counting(inner, lambda count, answer: answer), run)
                oracle = kept.wrapped
                ask = kept._answer

                def once(verb: Any, x: Any, question: Any, oracle: Any = oracle, ask: Any = ask) -> Any:
                    if oracle.count:
                        raise Killed
                    return ask(verb, x, question)

                kept._answer = once
            try:
                result = ox.extract(kept, rng=int(run.plan["seed"]))
            except Killed:
                continue
            finally:
                requests += oracle.count
            spent, lost, log = run.spent, run.unanswered, run.log()
        break
    assert np.array_equal(result.hyperplane.normal, whole.hyperplane.normal)
    assert result.hyperplane.offset == whole.hyperplane.offset
    assert result.spent == whole.spent
    assert len(log) == whole.spent.requests
    assert np.array_equal(log.points, whole.log.points)
    assert len(lost) == restart // 2 + restart % 2
    assert requests == whole.spent.requests + len(lost)
    assert spent == (whole.spent.requests if idempotent else requests)
