"""Pipes and devices in the place of files: refused at once and by name, whichever command is given them."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from overexplain.cli.main import run
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.endpoint_file import endpoint_file

PLANE = Hyperplane([1.0, -2.0], 0.5)
TLS = '\n[tls]\nca_file = "given.pem"\n'


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = QueryLog(["age", "income"], Mechanism("l1"))
    log.add_label([[1.0, 2.0], [3.0, 0.0]], [-1, 1])
    log.save("log.jsonl")
    Path("points.csv").write_text("age,income\n1,2\n")
    Path("model.json").write_text(
        json.dumps({"features": ["age", "income"], "coefficients": [1, -2], "intercept": -0.5})
    )
    assert run(["certify", "log.jsonl", "points.csv", "--proofs", "proofs.jsonl", "-o", "verdicts.csv"]) == 0
    text = endpoint_file(ModelOracle(PLANE, "l1"), "https://127.0.0.1:1", "model", ["age", "income"])
    Path("endpoint.toml").write_text(text + TLS)


COMMANDS = [
    "probe given.toml --budget 1",
    "probe endpoint.toml --budget 1 --authorized",
    "probe --resume given.sqlite --authorized",
    "probe endpoint.toml --budget 1 --model given.json",
    "audit model.json --data points.csv --policy given.toml",
    *(f"audit model.json --data given.{kind}" for kind in ("csv", "jsonl", "parquet")),
    *(f"audit given.{kind} --data points.csv" for kind in ("json", "csv", "onnx", "skops", "pkl")),
    *(f"certify given.{kind} points.csv" for kind in ("jsonl", "csv", "parquet", "json", "sqlite")),
    *(f"certify log.jsonl given.{kind}" for kind in ("csv", "jsonl", "parquet")),
    *(f"monitor given.{kind} --by none" for kind in ("jsonl", "csv", "parquet", "json", "sqlite")),
    "monitor log.jsonl --by none --model given.json",
    "monitor log.jsonl --by none --reference given.csv",
    "monitor given.jsonl --map x=age+income",
    "log check given.jsonl",
    "log show given.csv",
    "log convert given.parquet out.csv",
    "log merge log.jsonl given.jsonl -o out.jsonl",
    "map log.jsonl --at given.json",
    "verify given.jsonl log.jsonl",
    "verify proofs.jsonl given.jsonl",
    "verify proofs.jsonl log.jsonl --verdicts given.csv",
    "verify proofs.jsonl log.jsonl --verdicts given.parquet",
    "verify proofs.jsonl log.jsonl --verdicts verdicts.csv --points given.csv",
    "verify . --report given.json",
    "model inspect given.json",
    "extract given.json --distance l1",
    "extract model.json --imitate nice --data given.csv",
    "diagnose model.json --imitate nice --data given.parquet",
    "serve given.json --distance l1 --port 0",
    "serve model.json --distance l1 --port 0 --endpoint given.toml",
]


@contextmanager
def at_most(seconds: float, pipe: Path) -> Iterator[None]:
    """Ends what waits for the pipe, or reads on and on: Python by an alarm, libraries that go on waiting by writing nothing."""

    def write_nothing() -> None:
        with suppress(OSError):  # nobody reads
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

    def stop(*_: object) -> None:
        raise AssertionError("it waits, or reads without end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    writer = threading.Timer(seconds + 1, write_nothing)
    writer.start()
    try:
        yield
    finally:
        writer.cancel()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_regular_file_is_refused_at_once(command, kind, capsys) -> None:
    words = command.split()
    name = next((word for word in words if word.startswith("given.")), "given.pem")
    if kind == "pipe":
        os.mkfifo(name)
    else:
        Path(name).symlink_to("/dev/zero")
    capsys.readouterr()
    with at_most(10, Path(name)):
        code = run(words)
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (3, "", 1), err
    assert name in err
    assert not Path("out.csv").exists()
