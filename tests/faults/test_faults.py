"""`overexplain probe` through a bad network: the right model, or exit 5 or 6 with everything saved; never over budget."""

from __future__ import annotations

import json
import math
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SOAK
from fault_catalogue import AGAIN, HARMLESS, REFUSED, SLOW, STOPS, elsewhere
from fault_proxy import PATIENCE, Act, Arrival, FaultProxy, Turn, healthy, only, since
from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.store.run import Run
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.endpoint_file import endpoint_file
from served import Served, served

PLANE = Hyperplane([0.3, -1.5, 2.25], 0.7)
ORACLE = ModelOracle(PLANE, Mechanism("l1"))
QUESTIONS = 4
"""Theorem A: three explanations, and a label."""

QUICK = "timeout = 10\nretries = 1\nlongest_wait = 0.06\n"
TOO_LONG = ("429 for years", "429 until the year 9999", "503 for an hour")
MIXTURES = 20 * (SOAK or 1)


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(ORACLE) as running:
        yield running


@pytest.fixture
def proxy(service) -> Iterator[FaultProxy]:
    with FaultProxy(service.url) as running:
        yield running


class Probing:
    """One run of `overexplain probe` through the proxy; after every command it is checked that nothing is lost or exceeded."""

    def __init__(
        self,
        proxy: FaultProxy,
        capsys: Any,
        *,
        budget: int = 40,
        idempotent: bool = False,
        limits: str = QUICK,
        declared: bool = True,
        confirm: bool = False,
    ) -> None:
        self.confirm = "--confirm" if confirm else "--no-confirm"
        self.proxy, self.capsys, self.budget, self.idempotent = proxy, capsys, budget, idempotent
        text = endpoint_file(ORACLE, proxy.url, "model")
        terms, keys = text.index("[mechanism]"), text.index("[idempotency]")
        text = text[: keys if declared else terms] + (text[keys:] if idempotent else "")
        Path("endpoint.toml").write_text(f"{text}\n[limits]\n{limits}")
        self.begun = False
        self.said = ""

    def go(self, *options: str) -> int:
        """Begin, or go on; the exit code, after checking it, what was said and what was kept."""
        code = run(self.arguments(*options))
        out, err = self.capsys.readouterr()
        self.check(code, out, err)
        return code

    def arguments(self, *options: str) -> list[str]:
        begin = ["endpoint.toml", "--budget", str(self.budget), "--run", "run.sqlite", self.confirm]
        given = ["--resume", "run.sqlite", "--authorized"] if self.begun else begin
        self.begun = True
        return ["probe", *given, "--json", *options]

    def check(self, code: int, out: str, err: str) -> None:
        self.said = err
        assert code in (0, 5, 6), err
        assert "Traceback" not in out + err
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        assert len(errors) == (code != 0), err
        assert len(max(err.splitlines(), key=len)) < 1000
        if code == 0:
            found = json.loads(out)["hyperplane"]
            assert Hyperplane(found["normal"], found["offset"]).is_equivalent(PLANE, 1e-9)
        else:
            assert out == ""
            assert "run saved: run.sqlite" in err
        self.check_kept()

    def check_kept(self) -> Run:
        """The run, which holds every answer that arrived, and counts all that the service may have counted."""
        self.proxy.settle()
        kept = Run.read("run.sqlite")
        arrivals = self.proxy.arrivals
        counted = len({arrival.key for arrival in arrivals}) if self.idempotent else len(arrivals)
        assert counted <= kept.spent <= self.budget
        assert all((arrival.key is not None) == self.idempotent for arrival in arrivals)
        rows = {
            (tuple(row.point), row.label, row.explanation is not None and tuple(row.explanation)) for row in kept.log()
        }
        for arrival in arrivals:
            if arrival.answer is not None:
                assert answered(arrival) in rows, f"an answer that arrived is lost: {arrival}"
        for earlier, later in pairwise(arrivals):
            assert later.moment >= earlier.not_before, (earlier, later)
        return kept

    def recover(self, *options: str) -> None:
        """Go on through a good network, with enough budget: the right model, and no answer that is there is asked again."""
        self.proxy.script = healthy
        known = {arrival.body for arrival in self.proxy.arrivals if arrival.answer is not None}
        before = len(self.proxy.arrivals)
        self.budget += 2 * QUESTIONS
        assert self.go("--budget", str(self.budget), *options) == 0, self.said
        assert not known & {arrival.body for arrival in self.proxy.arrivals[before:]}


def answered(arrival: Arrival) -> tuple[Any, ...]:
    """Point, label and explanation, as the proxy saw them."""
    point = tuple(json.loads(arrival.body)["instances"][0])
    if "predictions" in arrival.answer:
        return point, 1 if arrival.answer["predictions"] == [1] else -1, False
    return point, None, tuple(arrival.answer["explanations"][0]["counterfactual"])


@pytest.fixture
def probing(proxy, capsys, tmp_path, monkeypatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda **options: Probing(proxy, capsys, **options)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_changes_nothing(name, proxy, probing) -> None:
    proxy.script = since(0, name, HARMLESS[name])
    one = probing(budget=QUESTIONS)
    assert one.go() == 0
    assert len(proxy.arrivals) == QUESTIONS
    assert {arrival.fault for arrival in proxy.arrivals} == {name}
    assert one.check_kept().answered == QUESTIONS


@pytest.mark.parametrize(
    ("name", "idempotent"), [*((name, False) for name in AGAIN), *((name, True) for name in list(AGAIN)[::2])]
)
def test_what_goes_better_the_next_time(name, idempotent, proxy, probing) -> None:
    """It costs a request more, for which a budget of just the questions has nothing left; under the same key it costs none."""
    number = len(name) % QUESTIONS
    proxy.script = only(number, name, AGAIN[name])
    one = probing(idempotent=idempotent, budget=QUESTIONS)
    assert one.go() == (0 if idempotent else 6)
    assert [arrival.fault for arrival in proxy.arrivals].index(name) == number
    assert len(proxy.arrivals) == QUESTIONS + idempotent
    if not idempotent:
        one.recover()


@pytest.mark.parametrize("name", list(AGAIN)[::4])
def test_what_never_goes_better(name, proxy, probing) -> None:
    proxy.script = since(1, name, AGAIN[name])
    one = probing()
    assert one.go() == 5
    assert one.go() == 5
    one.recover()


@pytest.mark.parametrize("name", [*REFUSED, *STOPS])
def test_what_ends_it(name, proxy, probing) -> None:
    """5 at once. Afterwards it goes on, except where the service wants to be left alone for longer: then nothing is sent."""
    before = len(name) % QUESTIONS
    proxy.script = only(before, name, {**REFUSED, **STOPS}[name])
    one = probing()
    assert one.go() == 5
    assert len(proxy.arrivals) == before + 1
    if name in TOO_LONG:
        assert one.go() == 5
        assert "resume the run after that" in one.said
        assert len(proxy.arrivals) == before + 1
    else:
        one.recover()
    assert one.check_kept().retries <= 1


@pytest.mark.parametrize("name", SLOW)
def test_what_takes_too_long(name, service, capsys, tmp_path, monkeypatch) -> None:
    """The deadline holds for the whole reply. A machine so slow that good replies take as long needs a few attempts more."""
    monkeypatch.chdir(tmp_path)
    with FaultProxy(service.url, only(1, name, SLOW[name]), timeout=0.4) as proxy:
        one = Probing(proxy, capsys, budget=200, limits="timeout = 0.4\nretries = 0\nlongest_wait = 0.1\n")
        assert one.go() == 5
        assert "no whole reply within 0.4 s" in one.said
        assert any(one.go() == 0 for _ in range(30))
        assert proxy.arrivals[1].fault == name


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_a_redirect_elsewhere_is_not_followed(host, proxy, service, probing) -> None:
    with FaultProxy(service.url) as other:
        place = other if host == "127.0.0.1" else proxy
        proxy.script = only(1, "elsewhere", elsewhere(place, f"http://{host}"))
        one = probing()
        assert one.go() == 5
        assert "another place than the endpoint file names" in one.said
        assert other.arrivals == []
        assert len(proxy.arrivals) == 2
        one.recover()


@pytest.mark.parametrize("idempotent", [False, True], ids=["not idempotent", "idempotent"])
def test_a_service_that_is_gone_after_the_first_answers(idempotent, proxy, probing) -> None:
    """Refused connections cost what a request costs: nobody can know that it did not arrive."""

    def last(turn: Turn) -> None:
        proxy.vanish()
        HARMLESS["late"](turn)

    proxy.script = only(1, "the last answer", last)
    one = probing(idempotent=idempotent)
    assert one.go() == 5
    assert "no connection" in one.said
    kept = one.check_kept()
    assert (kept.answered, kept.spent) == (2, 3 if idempotent else 4)
    assert one.go() == 5
    proxy.come_back()
    one.recover()
    assert len(proxy.arrivals) == QUESTIONS


MIXED: dict[str, Act] = {
    **HARMLESS,
    **AGAIN,
    **REFUSED,
    **{name: act for name, act in STOPS.items() if name not in TOO_LONG},
}


@pytest.mark.parametrize("seed", range(MIXTURES))
def test_mixtures(seed, proxy, probing) -> None:
    """Faults at random, a random budget, several attempts; then the network heals."""
    rng = random.Random(seed)
    often = rng.choice([0.2, 0.5, 0.9])
    names = list(MIXED)

    def script(_: Arrival) -> tuple[str, Act] | None:
        name = rng.choice(names)
        return (name, MIXED[name]) if rng.random() < often else None

    proxy.script = script
    one = probing(idempotent=rng.random() < 0.5, budget=rng.randrange(1, 16), confirm=seed % 2 == 0)
    for _ in range(rng.randrange(1, 4)):
        one.go()
    one.recover()


@pytest.mark.parametrize("seed", range(2))
def test_a_service_that_says_nothing_about_its_terms(seed, proxy, probing) -> None:
    """Single failures are forgiven, and the diagnosis finds the terms all the same."""
    rng = random.Random(seed)
    names = list({**HARMLESS, **AGAIN, **REFUSED})

    def script(_: Arrival) -> tuple[str, Act] | None:
        name = rng.choice(names)
        return (name, MIXED[name]) if rng.random() < 0.1 else None

    proxy.script = script
    one = probing(declared=False, budget=500)
    for _ in range(3):
        one.go()
    one.recover()


def test_a_service_without_terms_that_refuses_everybody_is_left_alone(proxy, probing) -> None:
    proxy.script = since(3, "401", STOPS["401"])
    one = probing(declared=False)
    assert one.go() == 5
    assert len(proxy.arrivals) == 4
    assert one.go() == 5
    assert len(proxy.arrivals) == 5


def test_the_rate_holds_on_both_sides(proxy, probing) -> None:
    """The proxy takes the time before it does anything, so before the client hears, from which on the client counts: by one
    clock there is no margin to allow for. The run has the wall clock's times, which may be slewed meanwhile.
    """
    faults = ["reset before", "cut in the headers", "429 for 0 seconds", "502", "the reply twice", "redirect to itself"]
    acts = MIXED

    def script(arrival: Arrival) -> tuple[str, Act] | None:
        name = faults[arrival.number // 2 % len(faults)]
        return (name, acts[name]) if arrival.number % 2 else None

    proxy.script = script
    one = probing(limits="retries = 5\nlongest_wait = 0.01\n")
    offset = time.time() - time.monotonic()
    assert one.go("--rate", "20/s") == 0
    stepped = abs(time.time() - time.monotonic() - offset)
    assert len(proxy.arrivals) > QUESTIONS
    moments = [arrival.moment for arrival in proxy.arrivals]
    assert np.diff(moments).min() >= 1 / 20 - 1e-9
    sent = times_of_intents()
    assert len(sent) == len(moments)
    assert np.diff(sent).min() >= 1 / 20 - stepped - 1e-6


def times_of_intents() -> list[float]:
    with sqlite3.connect("run.sqlite") as connection:
        times = [time for (time,) in connection.execute("SELECT time FROM intent ORDER BY number")]
    connection.close()
    return times


def started(one: Probing, *options: str) -> subprocess.Popen[str]:
    """The same, as a process of its own."""
    command = [sys.executable, "-m", "overexplain", *one.arguments(*options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_rate_holds_across_a_kill(proxy, probing) -> None:
    """Killed while a request is under way, which may have arrived long after it was written down."""
    arrived = threading.Event()

    def hold(turn: Turn) -> None:
        arrived.set()
        turn.hold()

    proxy.script, proxy.travel = only(1, "held", hold), 0.15
    one = probing()
    with started(one, "--rate", "4/s") as process:
        assert arrived.wait(PATIENCE)
        process.kill()
    proxy.travel = 0.0
    assert one.go("--rate", "4/s") == 0
    assert "1 request of run.sqlite had no answer" in one.said
    moments = [arrival.moment for arrival in proxy.arrivals]
    assert len(moments) == QUESTIONS + 1
    assert np.diff(moments).min() >= 1 / 4 - 1e-9


def test_retry_after_holds_across_a_kill(proxy, probing) -> None:
    """A date, whole seconds by the service's clock; the process is killed while it waits."""

    def until(turn: Turn) -> None:
        then = math.ceil(time.time()) + 1
        turn.busy(429, formatdate(then, usegmt=True), then - time.time(), Date=formatdate(time.time(), usegmt=True))

    proxy.script = only(1, "a date", until)
    one = probing(limits="longest_wait = 10\n")
    with started(one, "--debug") as process:
        assert process.stderr is not None
        assert any("again in" in line for line in process.stderr)
        process.kill()
    assert one.go() == 0
    assert proxy.arrivals[2].moment >= proxy.arrivals[1].not_before
    assert len(proxy.arrivals) == QUESTIONS + 1


def test_as_a_process_of_its_own(proxy, probing) -> None:
    names = ["late", "reset after: the answer is lost", "100 MB"]
    proxy.script = lambda arrival: (names[arrival.number], MIXED[names[arrival.number]])
    one = probing()
    process = started(one)
    out, err = process.communicate(timeout=PATIENCE)
    one.check(process.returncode, out, err)
    assert process.returncode == 5
    assert [arrival.fault for arrival in proxy.arrivals] == names
    one.recover()
