"""A command that is told to stop, by Ctrl-C, a batch system or a closed terminal: one word, 130, nothing half-written stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
DIMENSION = 8
PROVEN = ["certify", "log.jsonl", "points.csv", "-o", "verdicts.csv", "--proofs", "proofs.jsonl"]
# What is written takes seconds: the signal arrives in the middle.
COMMANDS = [
    PROVEN,
    ["log", "convert", "long.jsonl", "copy.csv"],
    ["log", "merge", "long.jsonl", "log.jsonl", "-o", "all.csv"],
]


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    oracle = ModelOracle(Hyperplane(rng.normal(size=DIMENSION), 0.25), Mechanism("l1"))
    names = [f"f{i}" for i in range(DIMENSION)]
    for name, rows in (("log.jsonl", 60), ("long.jsonl", 60_000)):
        points = rng.normal(size=(rows, DIMENSION))
        log = QueryLog(names, Mechanism("l1"))
        log.add_label(points, oracle.classify(points))
        log.save(name)
    applicants = rng.normal(size=(20_000, DIMENSION))
    np.savetxt("points.csv", applicants, delimiter=",", header=",".join(names), comments="")


def stopped(arguments: list[str], number: signal.Signals, when: Callable[[], bool]) -> tuple[int, str]:
    """Exit code and stderr of a command that gets the signal once `when` holds."""
    command = [sys.executable, "-m", "overexplain", *arguments]
    # Under nohup the tests, and all they start, would ignore a closed terminal.
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            number, signal.SIG_DFL if number is not signal.SIGINT else signal.default_int_handler
        ),
    )
    deadline = time.monotonic() + 60
    while not when() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert process.poll() is None
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def unfinished() -> list[Path]:
    return [path for path in Path().iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_command_that_is_stopped_while_it_writes_leaves_nothing(arguments, number) -> None:
    before = sorted(Path().iterdir())
    code, err = stopped(arguments, number, lambda: any(path.stat().st_size for path in unfinished()))
    assert (code, err) == (130, "interrupted\n")
    assert sorted(Path().iterdir()) == before


SWALLOWED = """
import os, signal, sys, time
from overexplain.cli import app, main

class Deaf:
    def __del__(self):  # whatever is raised here is dropped
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)

def work():
    Deaf()
    for _ in range(3_000):
        time.sleep(0.01)

app.parse = lambda _: work
sys.exit(main.run([]))
"""


def test_a_signal_that_python_drops_comes_again() -> None:
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=25, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
