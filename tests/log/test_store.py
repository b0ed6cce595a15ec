"""A run's file: durable, counted, append-only, and readable ever after."""

from __future__ import annotations

import errno
import math
import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from overexplain.errors import BudgetExhausted, DimensionMismatch, EndpointFailed, InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog, Status
from overexplain.log.store.run import Outcome, Run
from store_samples import YES, asked, new

ODD = [[0.0, -0.0], [5e-324, 1e300], [-1e-310, 1.7976931348623157e308]]


def explained(*x: float) -> Outcome:
    return Outcome("explanation", explanation=np.array(x))


def test_what_was_given_and_answered_is_there_again(tmp_path: Path) -> None:
    plan = {"seed": 7, "endpoint": {"url": "https://é.example"}, "list": [1, 2.5, None, True]}
    mechanism = Mechanism("l1", robustness="l2", radius=0.1)
    path = tmp_path / "run.sqlite"
    with Run.create(
        path, plan=plan, dimension=2, features=["age", "höhe"], mechanism=mechanism, budget=9, idempotent=True
    ) as run:
        identity = run.id
        asked(run, "classify", [1, 2], YES)
        asked(run, "explain", [1, 2], explained(3.0, -0.0))
        asked(run, "explain", [1, 3], Outcome("none"))
        asked(run, "explain", [1, 4], Outcome("refused", detail="422"))
        asked(run, "classify", [1, 4], Outcome("refused", detail="500"))
        log = run.log()
    assert len(identity) == 32
    assert int(identity, 16) >= 0
    for door in (Run.open, Run.read):
        with door(path) as run:
            assert (run.id, run.plan, run.dimension, run.features) == (identity, plan, 2, ("age", "höhe"))
            assert (run.mechanism, run.idempotent, run.budget, run.spent, run.left) == (mechanism, True, 9, 5, 4)
            assert (run.answered, run.retries, run.unanswered, run.not_before) == (5, 0, (), 0.0)
            assert run.log() == log
    expected = QueryLog(["age", "höhe"], mechanism)
    source = f"run {identity[:8]}"
    times = log.times
    expected.add_label([1, 2], 1, time=times[0], source=source)
    expected.add_explanation([1, 2], [3.0, -0.0], time=times[1], source=source)
    expected.add_explanation([1, 3], None, time=times[2], source=source)
    expected.add_explanation([1, 4], None, status=Status.FAILED, time=times[3], source=source)
    assert log == expected
    assert np.signbit(log.explanations[1, 1])
    assert (np.abs(times - time.time()) < 3600).all()


@pytest.mark.parametrize("x", ODD)
def test_points_are_stored_bit_for_bit(tmp_path: Path, x: list[float]) -> None:
    with new(tmp_path) as run:
        asked(run, "explain", x, explained(*x[::-1]))
    with Run.open(tmp_path / "run.sqlite") as run:
        question = run.question("explain", np.array(x))
        assert question.point.tobytes() == np.array(x).tobytes()
        assert question.outcome.explanation.tobytes() == np.array(x[::-1]).tobytes()
        other = np.array([-x[0], x[1]])  # 0.0 and -0.0 are written differently to a service: two questions
        assert run.question("explain", other).outcome is None


def test_the_same_question_twice_is_two_questions_and_is_replayed_as_two(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        first = asked(run, "classify", [1, 1], YES)
        second = asked(run, "classify", [1, 1], Outcome("label", label=-1))
        assert run.question("explain", np.ones(2)).key not in (first.key, second.key)
        assert first.key != second.key
        assert len(first.key) == 64
    with Run.open(tmp_path / "run.sqlite") as run:
        again = [run.question("classify", np.ones(2)) for _ in range(3)]
    assert [None if q.outcome is None else q.outcome.label for q in again] == [1, -1, None]
    assert [q.key for q in again[:2]] == [first.key, second.key]
    with Run.create(tmp_path / "other.sqlite", plan={}, dimension=2, budget=1) as other:
        assert other.question("classify", np.ones(2)).key != first.key


def test_every_send_costs_one(tmp_path: Path) -> None:
    with new(tmp_path, budget=3) as run:
        question = run.question("classify", np.ones(2))
        for reason in ("429", "reset"):
            question.sending()
            question.failed(reason)
        question.sending()
        assert (run.spent, run.left, run.retries, run.answered) == (3, 0, 2, 0)
        question.heard(YES)
        assert (run.retries, run.answered) == (2, 1)
        with pytest.raises(BudgetExhausted, match="budget of 3") as caught:
            run.question("explain", np.ones(2)).sending()
        assert caught.value.log == run.log()
        assert run.spent == 3
        run.allow(4)
        asked(run, "explain", [1, 1], Outcome("none"))
    with Run.open(tmp_path / "run.sqlite") as run:
        assert (run.budget, run.spent, run.retries, run.answered) == (4, 4, 2, 2)


def test_sends_of_one_key_cost_one_together_if_the_service_is_idempotent(tmp_path: Path) -> None:
    with new(tmp_path, budget=1, idempotent=True) as run:
        question = run.question("classify", np.ones(2))
        for _ in range(3):
            question.sending()
            question.failed("reset")
        question.sending()
        assert (run.spent, run.left, run.retries) == (1, 0, 3)
    with Run.open(tmp_path / "run.sqlite") as run:  # the last one is lost: sent again, for nothing
        assert [sent.number for sent in run.unanswered] == [4]
        question = run.question("classify", np.ones(2))
        question.sending()
        question.heard(YES)
        assert (run.spent, run.retries) == (1, 4)
        with pytest.raises(BudgetExhausted):
            run.question("classify", np.ones(2)).sending()


def test_a_budget_can_change_but_not_below_what_is_spent(tmp_path: Path) -> None:
    with new(tmp_path, budget=2) as run:
        asked(run, "classify", [1, 1], YES)
        run.allow(1)
        with pytest.raises(BudgetExhausted):
            run.question("classify", np.ones(2)).sending()
        with pytest.raises(InvalidInput, match="1 are spent"):
            run.allow(0)
        for wrong in (-1, True, 1.5, 2**63):
            with pytest.raises(InvalidInput):
                run.allow(wrong)
        run.allow(5)
        assert (run.budget, run.left) == (5, 4)


def test_a_lost_request_is_listed_and_a_failed_one_is_not(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        asked(run, "classify", [1, 1], YES)
        failing = run.question("classify", np.zeros(2))
        failing.sending()
        failing.failed("503", not_before=1e12)
        lost = run.question("explain", np.array([-0.0, 2.0]))
        lost.sending()
        when = run.last_sent
    with Run.open(tmp_path / "run.sqlite") as run:
        (sent,) = run.unanswered
        assert (sent.number, sent.verb, sent.key, sent.time) == (3, "explain", lost.key, when)
        assert sent.point.tobytes() == np.array([-0.0, 2.0]).tobytes()
        assert (run.spent, run.retries, run.last_sent, run.not_before) == (3, 1, when, 1e12)
        again = run.question("explain", np.array([-0.0, 2.0]))
        assert again.outcome is None
        again.sending()
        assert (run.spent, run.retries) == (4, 2)
        again.heard(explained(1.0, 1.0))
        assert [sent.number for sent in run.unanswered] == [3]
    assert [sent.number for sent in Run.read(tmp_path / "run.sqlite").unanswered] == [3]


def test_a_refusal_that_ended_the_work_is_asked_again_and_another_is_not(tmp_path: Path) -> None:
    refused = Outcome("refused", detail="500")
    with suppress(EndpointFailed), new(tmp_path) as run:
        asked(run, "explain", [1, 1], refused)
        asked(run, "explain", [2, 2], refused)
        raise EndpointFailed("500")
    with Run.open(tmp_path / "run.sqlite") as run:
        assert run.question("explain", np.ones(2)).outcome.detail == "500"
        again = run.question("explain", np.full(2, 2.0))
        assert again.outcome is None
        again.sending()
        again.heard(explained(0.0, 0.0))
        assert run.answered == 2
        assert run.log().status.tolist() == [Status.FAILED, Status.ASKED]  # the last answer counts, once
        assert run.log().points.tolist() == [[1, 1], [2, 2]]
    with Run.open(tmp_path / "run.sqlite") as run:
        assert run.question("explain", np.full(2, 2.0)).outcome.kind == "explanation"


def test_the_refusal_that_ended_a_run_is_asked_again_whatever_is_asked_before_it(tmp_path: Path) -> None:
    with suppress(EndpointFailed), new(tmp_path) as run:
        asked(run, "explain", [1, 1], Outcome("refused", detail="500"))
        raise EndpointFailed("500")
    with Run.open(tmp_path / "run.sqlite") as run:
        asked(run, "classify", [2, 2], Outcome("label", label=1))
        assert run.question("explain", np.ones(2)).outcome is None


@pytest.mark.parametrize("error", [None, EndpointFailed("gone", stops=True), KeyboardInterrupt()])
def test_a_refusal_that_was_gone_past_is_given_again(tmp_path: Path, error: BaseException | None) -> None:
    """Whether the work ended there or was killed just after it: what comes next must be what would have come."""
    with suppress(EndpointFailed, KeyboardInterrupt), new(tmp_path) as run:
        asked(run, "explain", [1, 1], Outcome("refused", detail="500"))
        if error is not None:
            raise error
    with Run.open(tmp_path / "run.sqlite") as run:
        assert run.question("explain", np.ones(2)).outcome.detail == "500"


def test_the_file_alone_knows_what_was_sent_and_used(tmp_path: Path) -> None:
    """Moved, copied or linked after a kill without what lies beside it, a run must not start anew."""
    with new(tmp_path, budget=3) as run:
        asked(run, "classify", [1, 1], YES)
        run.question("classify", np.zeros(2)).sending()
        moved = tmp_path / "moved.sqlite"
        copied = subprocess.run(["cp", tmp_path / "run.sqlite", moved], check=False)  # by another process: see file.py
        assert copied.returncode == 0
    with Run.open(moved) as run:
        assert (run.spent, run.answered, len(run.unanswered)) == (2, 1, 1)
        assert run.question("classify", np.ones(2)).outcome.label == 1
        run.question("classify", np.zeros(2)).sending()
        with pytest.raises(BudgetExhausted):
            run.question("classify", np.zeros(2)).sending()


def test_a_question_given_up_after_a_failed_send_is_answered_not_retried(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        question = run.question("explain", np.ones(2))
        question.sending()
        question.failed("500")
        assert run.retries == 1
        question.heard(Outcome("refused", detail="500"))
        assert (run.retries, run.answered) == (0, 1)
    assert Run.read(tmp_path / "run.sqlite").retries == 0


def test_steps_out_of_order_are_refused(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        question = run.question("classify", np.ones(2))
        for step in (lambda: question.heard(YES), lambda: question.failed("x")):
            with pytest.raises(InvalidInput, match="nothing was sent"):
                step()
        question.sending()
        for outcome in (
            explained(1.0, 1.0),
            Outcome("none"),
            Outcome("label"),
            Outcome("label", label=0),
            Outcome("refused", label=1),
            Outcome("label", label=1, explanation=np.ones(2)),
            Outcome("perhaps"),
        ):
            with pytest.raises(InvalidInput):
                question.heard(outcome)
        for wrong in (math.nan, math.inf):
            with pytest.raises(InvalidInput, match="not_before"):
                question.failed("x", wrong)
        assert question.waiting
        question.heard(YES)
        with pytest.raises(InvalidInput, match="nothing was sent"):
            question.heard(YES)
        explain = run.question("explain", np.ones(2))
        explain.sending()
        with pytest.raises(DimensionMismatch):
            explain.heard(explained(1.0))
        with pytest.raises(NotFinite):
            explain.heard(explained(1.0, math.nan))
        for x in ([1.0], [[1.0, 2.0]], [1.0, math.inf]):
            with pytest.raises(InvalidInput):
                run.question("classify", np.array(x))
        with pytest.raises(InvalidInput, match="classify or explain"):
            run.question("score", np.ones(2))


def test_texts_of_any_kind_are_stored(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        question = run.question("explain", np.ones(2))
        question.sending()
        question.failed("\ud800 \0 é" * 2000)
        question.sending()
        question.heard(Outcome("refused", detail="a\0b\udfff\n" + "x" * 10_000))
        asked(run, "classify", [0, 0], YES)
    with Run.open(tmp_path / "run.sqlite") as run:
        detail = run.question("explain", np.ones(2)).outcome.detail
    assert detail.startswith("a\0b\\udfff\nx")
    assert len(detail) < 2100


@pytest.mark.parametrize(
    "options",
    [
        {"plan": {"x": math.nan}},
        {"plan": {"x": object()}},
        {"plan": {"x": "y" * 20_000_000}},
        {"dimension": 0},
        {"dimension": True},
        {"dimension": 10**9},
        {"budget": -1},
        {"budget": 2**63},
        {"features": ["a"]},
        {"features": ["a", "a"]},
        {"mechanism": "l1"},
    ],
)
def test_what_cannot_be_stored_makes_no_file(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Run.create(tmp_path / "run.sqlite", **({"plan": {}, "dimension": 2, "budget": 1} | options))
    assert list(tmp_path.iterdir()) == []


def test_a_large_plan_comes_back_and_cannot_be_changed_from_outside(tmp_path: Path) -> None:
    plan = {"seed": 7, "rows": [[float(i), None] for i in range(50_000)]}
    with Run.create(tmp_path / "run.sqlite", plan=plan, dimension=1, budget=0) as run:
        run.plan["seed"] = 8
        assert run.plan == plan
    assert Run.read(tmp_path / "run.sqlite").plan == plan


def test_only_the_owner_may_read_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with new(tmp_path) as run:
            asked(run, "classify", [1, 1], YES)
            found = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert found == {"run.sqlite": 0o600, "run.sqlite-wal": 0o600}
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]


def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    with new(tmp_path) as run:
        connection = run._ledger.connection
        found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
        assert found == ["wal", 2]
        asked(run, "classify", [1, 1], YES)
        assert not connection.in_transaction
    with Run.open(tmp_path / "run.sqlite") as run:
        connection = run._ledger.connection
        names = ("journal_mode", "synchronous", "locking_mode", "foreign_keys", "trusted_schema")
        assert [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names] == ["wal", 2, "exclusive", 1, 0]


def test_nothing_in_the_file_can_be_changed(tmp_path: Path) -> None:
    with new(tmp_path, budget=2) as run:
        asked(run, "classify", [1, 1], YES)
        failing = run.question("classify", np.zeros(2))
        failing.sending()
        failing.failed("429")
    connection = sqlite3.connect(tmp_path / "run.sqlite")
    try:
        for table in ("run", "allowed", "question", "intent", "failure", "answer"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            row = connection.execute(f"SELECT * FROM {table}").fetchone()
            following = (connection.execute(f"SELECT max(number) + 1 FROM {table}").fetchone()[0], *row[1:])
            marks = ", ".join("?" * len(row))
            for statement, values in (
                (f"UPDATE {table} SET {columns[1]} = {columns[1]}", ()),
                (f"DELETE FROM {table}", ()),
                (f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row),
                *([] if table == "allowed" else [(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", following)]),
                (f"INSERT INTO {table} VALUES ({marks})", (following[0] + 5, *row[1:])),
            ):
                with pytest.raises(sqlite3.IntegrityError):
                    connection.execute(statement, values)
    finally:
        connection.close()


def test_a_full_disk_is_an_oserror_and_nothing_of_it_is_counted(tmp_path: Path) -> None:
    with Run.create(tmp_path / "run.sqlite", plan={}, dimension=5000, budget=100) as run:
        connection = run._ledger.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        question = run.question("classify", np.ones(5000))
        with pytest.raises(OSError, match="full") as caught:
            question.sending()
        assert caught.value.errno == errno.ENOSPC
        assert (run.spent, run.last_sent, question.waiting) == (0, None, False)
        connection.execute(f"PRAGMA max_page_count = {pages + 100}")
        question.sending()
        question.heard(YES)
        assert (run.spent, run.answered) == (1, 1)
    assert Run.read(tmp_path / "run.sqlite").spent == 1


def test_an_interrupt_at_any_moment_leaves_counts_and_file_in_agreement(tmp_path: Path) -> None:
    """Ctrl-C before every single line of the store that a send and an answer go through."""
    lines = 0
    with new(tmp_path, budget=10_000) as run:
        for stop in range(1, 200):
            seen = 0

            def trace(frame: object, event: str, _: object, stop: int = stop) -> object:
                nonlocal seen
                if "store" not in Path(frame.f_code.co_filename).parts:
                    return None
                if event == "line" and frame.f_code.co_name in ("sending", "failed", "heard", "durable"):
                    seen += 1
                    if seen == stop:
                        sys.settrace(None)
                        raise KeyboardInterrupt
                return trace

            question = run.question("classify", np.array([float(stop), 0.0]))
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                question.sending()
                question.failed("429", 5.0)
                question.sending()
                question.heard(YES)
            except KeyboardInterrupt:
                lines += 1
            finally:
                sys.settrace(before)
            connection = run._ledger.connection
            assert not connection.in_transaction
            counted = connection.execute("SELECT count(*) FROM intent").fetchone()[0]
            assert run.spent == counted
            assert run.answered == connection.execute("SELECT count(*) FROM answer").fetchone()[0]
            if seen < stop:
                break
            asked(run, "classify", [stop, 1], YES)  # and it can go on
        retries = run.retries
    assert lines > 40
    assert seen < stop
    assert Run.read(tmp_path / "run.sqlite").retries == retries


def test_the_file_itself_refuses_what_is_over_budget(tmp_path: Path) -> None:
    with new(tmp_path, budget=1) as run:
        asked(run, "classify", [1, 1], YES)
        run._ledger.counts.budget = 100  # as a slip in the program would have it
        with pytest.raises(InvalidInput, match="over budget"):
            run.question("classify", np.ones(2)).sending()
        assert (run.spent, run.budget) == (1, 1)


def test_a_clock_that_goes_back_changes_only_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    with new(tmp_path) as run:
        asked(run, "classify", [1, 1], YES)
        clock[0] = 10.0
        asked(run, "classify", [2, 2], YES)
        assert run.last_sent == 10.0
    found = Run.read(tmp_path / "run.sqlite")
    assert (found.last_sent, found.log().times.tolist()) == (10.0, [1000.0, 10.0])
