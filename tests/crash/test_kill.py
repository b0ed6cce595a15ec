"""kill -9, at every step, it and SIGTERM at random moments: no acknowledged answer is lost, no budget exceeded, the same end."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import Row
from overexplain.log.store.run import Run
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.endpoint_file import endpoint_file
from served import Served, served

PLANE = Hyperplane([0.3, -1.5, 2.25, 0.01, 1.0], 0.7)
ORACLE = ModelOracle(PLANE, Mechanism("l1"))
QUESTIONS = 6
"""Theorem A: five explanations, and a label."""

POINTS = ("before intent", "after intent", "after send", "after reply", "before commit", "after answer")
RANDOM_KILLS = 40 * max(1, int(os.environ.get("SOAK", "0")))
"""For each kind of endpoint; `make soak-tests` has more."""


@dataclass
class Zygote:
    """See zygote.py."""

    process: subprocess.Popen[str]

    def command(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    script = Path(__file__).with_name("zygote.py")
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        yield Zygote(process)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(ORACLE) as running:
        yield running


class Probing:
    """One run of `overexplain probe`, killed and resumed as often as wanted, watched from both ends."""

    def __init__(self, folder: Path, zygote: Zygote, service: Served, budget: int, idempotent: bool) -> None:
        folder.mkdir()
        self.folder, self.zygote, self.service, self.budget, self.idempotent = (
            folder,
            zygote,
            service,
            budget,
            idempotent,
        )
        self.path = folder / "run.sqlite"
        self.before = service.counts.requests, service.counts.keys
        self.kills = 0
        text = endpoint_file(ORACLE, service.url, service.name)
        if not idempotent:
            text = text[: text.index("[idempotency]")]
        (folder / "endpoint.toml").write_text(text)

    def go(self, **death: Any) -> int | None:
        """Begin, or go on; the exit code, None if it was killed. Whatever happened, nothing may be lost or exceeded."""
        options = ["endpoint.toml", "--budget", str(self.budget), "--run", "run.sqlite", "--no-confirm"]
        again = self.read() is not None
        if not again:
            for path in self.folder.glob("run.sqlite*"):
                path.unlink()  # killed while it was made: nothing was asked yet
        arguments = ["probe", *(["--resume", "run.sqlite", "--authorized"] if again else options), "--json"]
        (self.folder / "output").unlink(missing_ok=True)
        done = self.zygote.command(
            arguments=arguments, folder=str(self.folder), output="output", acknowledged="acknowledged", **death
        )
        self.kills += done["killed"]
        self.check()
        return done["code"]

    def read(self) -> Run | None:
        """The run as it was left, None if it was not finished; a copy is read, so that whoever goes on finds what was left."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for path in self.folder.glob("run.sqlite*"):
            shutil.copy(path, copy)
        if not (copy / "run.sqlite").exists():
            return None
        try:
            return Run.read(copy / "run.sqlite")
        except ValueError as error:
            assert "not a finished run" in str(error)
            return None

    @property
    def counted(self) -> int:
        """What the server counted: keys, where it was promised to count those, else requests."""
        requests, keys = self.before
        counts = self.service.counts
        return counts.keys - keys if self.idempotent else counts.requests - requests

    def check(self) -> None:
        acknowledged = self.folder / "acknowledged"
        lines = acknowledged.read_text().splitlines() if acknowledged.exists() else []
        run = self.read()
        if run is None:
            assert not lines
            assert self.counted == 0
            return
        assert self.counted <= run.spent <= self.budget
        log = run.log()
        assert len(log) == run.answered
        # Everything acknowledged is kept, in order; what was kept last before a kill may not have been acknowledged.
        kept = iter(log)
        for line in lines:
            entry = json.loads(line)
            assert any(_is(row, entry) for row in kept), f"an acknowledged answer is lost: {entry}"

    @property
    def said(self) -> dict[str, Any]:
        """What the last command printed on stdout."""
        return next(json.loads(line) for line in (self.folder / "output").read_text().splitlines() if line[:1] == "{")


def _is(row: Row, entry: dict[str, Any]) -> bool:
    explanation = None if row.explanation is None else row.explanation.tolist()
    return (row.label, explanation) == (entry["label"], entry["explanation"])


RESULT = ("hyperplane", "explanations", "labels", "error_bound", "offset_bound", "oriented", "method", "assumptions")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, zygote, service) -> dict[str, Any]:
    probing = Probing(tmp_path_factory.mktemp("whole") / "run", zygote, service, QUESTIONS, idempotent=True)
    assert probing.go() == 0
    assert probing.counted == QUESTIONS
    return probing.said


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_every_step(point, idempotent, tmp_path, zygote, service, uninterrupted) -> None:
    """A run killed at its nth passing of a point, for every n; resumed, it ends as if nothing had happened.

    Where the service counts keys, the theorem's number of requests is enough, however often the run dies.
    """
    ends = 0
    for nth in range(
        1, QUESTIONS + 1 + (point == "before commit") * (QUESTIONS + 2)
    ):  # two a question, one to make the run
        probing = Probing(tmp_path / str(nth), zygote, service, QUESTIONS + 4 * (not idempotent), idempotent)
        code = probing.go(point=point, nth=nth)
        if code is not None:
            assert code == 0
            ends += 1
            continue
        assert probing.go() == 0
        assert {name: probing.said[name] for name in RESULT} == {name: uninterrupted[name] for name in RESULT}
        if idempotent:
            assert probing.counted == QUESTIONS
        else:
            assert probing.counted <= QUESTIONS + 1
            assert probing.said["requests"] <= QUESTIONS + 1
    assert ends <= 1  # all but, at most, the last were killed


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
def test_killed_at_random_moments(idempotent, tmp_path, zygote, service, uninterrupted) -> None:
    """Killed again and again until it is through, or until the budget is: then it says so, with everything saved."""
    draw = random.Random(None if "SOAK" in os.environ else idempotent)
    kills = runs = 0
    while kills < RANDOM_KILLS:
        runs += 1
        probing = Probing(tmp_path / str(runs), zygote, service, QUESTIONS + 3 * (not idempotent), idempotent)
        code = None
        while code is None:
            code = probing.go(seconds=draw.uniform(0.0, 0.1)) if probing.kills < 12 else probing.go()
        kills += probing.kills
        assert code in ((0,) if idempotent else (0, 6))
        if code == 0:
            assert {name: probing.said[name] for name in RESULT} == {name: uninterrupted[name] for name in RESULT}
        if idempotent:
            assert probing.counted == QUESTIONS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
def test_told_to_stop_at_random_moments(idempotent, number, tmp_path, zygote, service, uninterrupted) -> None:
    """As above, but it may tidy up: one line says what is saved, none is a traceback, and nothing unfinished lies about."""
    draw = random.Random(None if "SOAK" in os.environ else f"{idempotent} {number}")
    stops = runs = 0
    while stops < RANDOM_KILLS // 2:
        runs += 1
        probing = Probing(tmp_path / str(runs), zygote, service, QUESTIONS + 3 * (not idempotent), idempotent)
        code = None
        while code is None:
            soon = {"seconds": draw.uniform(0.0, 0.1), "signal": number} if probing.kills < 12 else {}
            code = probing.go(**soon)
            output = probing.folder / "output"
            said = output.read_text() if output.exists() else ""
            assert "Traceback" not in said
            if code is None and "asking http" in said:
                assert said.splitlines()[-1] == "interrupted"
                assert not list(probing.folder.glob("*-wal"))
        stops += probing.kills
        assert code in ((0,) if idempotent else (0, 6))
        if code == 0:
            assert {name: probing.said[name] for name in RESULT} == {name: uninterrupted[name] for name in RESULT}
        if idempotent:
            assert probing.counted == QUESTIONS


def test_lost_requests_are_listed_and_spent(tmp_path, zygote, service) -> None:
    """Without idempotence a request whose answer was lost is spent: it stays so, and the run names it."""
    probing = Probing(tmp_path / "run", zygote, service, QUESTIONS, idempotent=False)
    assert probing.go(point="after reply", nth=2) is None
    lost = probing.read().unanswered
    assert [(sent.number, sent.verb) for sent in lost] == [(2, "explain")]
    assert probing.go() == 6
    output = (probing.folder / "output").read_text()
    assert "had no answer: counted as spent" in output
    assert f"--budget {QUESTIONS + 1}" in output
