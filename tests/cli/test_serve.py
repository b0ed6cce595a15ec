"""`overexplain serve`: a process that answers over HTTP until it is told to stop, and loses no answer whatever stops it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overexplain.cli.main import run
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Weighted, l1
from overexplain.log.querylog import QueryLog
from overexplain.models.load import load_model
from overexplain.oracles.constrained import Boxed, OneHot
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.protocol import offers
from overexplain.oracles.served.endpoint_file import endpoint_file
from overexplain.oracles.served.server import listen
from overexplain.oracles.services import Service
from overexplain.oracles.wrappers import LabelsOnly

FEATURES = ["age", "income", 'the "ünusual"\\\x7f one']
ENTRIES = {"features": FEATURES, "coefficients": [0.5, -0.5, 0.5], "intercept": -1.2}
PLANE = Hyperplane([0.5, -0.5, 0.5], 1.2)
POINTS = np.random.default_rng(0).normal(size=(6, 3)) * 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(ENTRIES), encoding="utf-8")
    return tmp_path


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A `serve` process that is ready, and what it said about that; it is gone when the block ends."""
    command = [sys.executable, "-m", "overexplain", "serve", "model.json", "--port", "0", *options]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    pipes["preexec_fn"] = lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup lets the tests ignore it
    with subprocess.Popen(command, env=surroundings, **pipes) as process:
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            ready = process.stdout.readline()
            assert ready, process.stderr.read()
            yield process, ready
        finally:
            watchdog.cancel()
            process.kill()


def post(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_answers_until_it_is_told_to_stop_and_says_how_much(number: signal.Signals, folder: Path) -> None:
    options = ["--distance", "linf", "--ties", "random", "--robustness", "l2", "--radius", "0.1", "--secret-radius"]
    options += ["--round", "3", "--seed", "7", "--name", "loans", "--log", "answers.jsonl", "--endpoint", "e.toml"]
    with serving(*options) as (process, ready):
        said = re.fullmatch(r"serving loans on (http://127\.0\.0\.1:\d+) \((.*), 3 features\); Ctrl-C stops\n", ready)
        assert said is not None
        assert said[2] == "linf; robust=l2:0.1; secret; rounded:3"
        assert tomllib.loads(Path("e.toml").read_text(encoding="utf-8"))["url"] == f"{said[1]}/v1/models/loans"
        with HttpOracle.from_toml("e.toml") as client:
            labels = [client.classify(point) for point in POINTS]
            explanations = [client.explain(point) for point in POINTS]
            assert client.authorized
            assert client.idempotent
            terms = client.mechanism
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    assert out == "stopped; gave 6 labels and 6 explanations in 12 requests\n"
    # The same seed as `extract` uses for the service that it simulates.
    simulated = Service(Mechanism("linf", "l2", 0.1), Mechanism("linf", "l2", None)).degraded("rounded:3")
    oracle = simulated.oracle(load_model("model.json"), None, np.random.default_rng(7).spawn(2)[0], "random")
    assert terms == oracle.mechanism
    assert labels == [PLANE.label(point) for point in POINTS]
    assert np.array_equal(explanations, [oracle.explain(point) for point in POINTS])
    log = QueryLog.load("answers.jsonl")
    assert np.array_equal(log.points, np.vstack([POINTS, POINTS]))
    assert np.array_equal(log.explanations[6:], explanations)
    assert log.mechanism == terms


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_request_of_many_instances_does_not_hold_up_its_end(number: signal.Signals, folder: Path) -> None:
    """Asked again and again by several at once, with slow answers: it stops at once and without a word too many."""
    Path("rows.csv").write_text(
        "\n".join([",".join(["age", "income", "x"]), *(f"{i},{i % 7},{i % 3}" for i in range(50))])
    )
    model = {"features": ["age", "income", "x"], "coefficients": [0.5, -0.5, 0.5], "intercept": -1.2}
    Path("model.json").write_text(json.dumps(model))
    with serving("--imitate", "wachter", "--data", "rows.csv", "--log", "answers.jsonl") as (process, ready):
        url = ready.split()[3] + "/v1/models/model:explain"
        body = {"instances": [[float(i % 50), 1.0, 2.0] for i in range(1000)]}

        def ask() -> None:
            with contextlib.suppress(OSError):  # refused, or cut off
                post(url, body)

        clients = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
        for client in clients:
            client.start()
        time.sleep(1.0)
        begin = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        assert time.monotonic() - begin < 5
        for client in clients:
            client.join(60)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("stopped; gave 0 labels and ")


def test_a_killed_service_has_logged_every_answer_it_gave(folder: Path) -> None:
    with serving("--distance", "l1", "--log", "answers.jsonl") as (process, ready):
        url = ready.split()[3] + "/v1/models/model"
        told = [post(f"{url}:explain", {"instances": [point.tolist()]}) for point in POINTS]
        process.kill()
        process.wait(120)
    log = QueryLog.load("answers.jsonl")
    assert [{"explanations": [{"counterfactual": row.tolist()}]} for row in log.explanations] == told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "say what the service does"),
        (["--labels-only", "--distance", "l1"], "--labels-only explains nothing"),
        (["--labels-only", "--round", "2"], "--labels-only explains nothing"),
        (["--distance", "l1", "--radius", "1"], "belong together"),
        (["--distance", "l1", "--secret-radius"], "--secret-radius needs --radius"),
        (["--distance", "l1", "--imitate", "nice"], "--imitate brings its own distance"),
        (["--distance", "l1", "--port", "70000"], "--port"),
    ],
)
def test_wrong_usage_is_one_line(options: list[str], said: str, folder: Path, capsys) -> None:
    assert run(["serve", "model.json", *options]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "no loopback address"),
        (["--host", "example.org"], "no loopback address"),
        (["--name", "a/b", "--endpoint", "e.toml"], "a model's name"),
        (["--endpoint", "model.json"], "was not written by serve"),
        (["--endpoint", "."], "not a regular file"),
        (["--endpoint", "nowhere/e.toml"], "there is no folder"),
        (["--log", "model.json"], "cannot write the log model.json: File exists"),
        (["--degrade", "polished:2"], "unknown"),
        (["--threshold", "0.7"], "threshold"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(options: list[str], said: str, folder: Path, capsys) -> None:
    assert run(["serve", "model.json", "--distance", "l1", "--port", "0", *options]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
    assert {path.name for path in folder.iterdir()} <= {"model.json"}


def test_a_port_in_use_is_refused_and_nothing_is_written(folder: Path, capsys) -> None:
    with listen() as taken:
        port = str(taken.getsockname()[1])
        options = ["--port", port, "--log", "answers.jsonl", "--endpoint", "e.toml"]
        assert run(["serve", "model.json", "--distance", "l1", *options]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"error: port {port} on 127.0.0.1 is in use; give another --port, or 0 for any free one\n"
    assert [path.name for path in folder.iterdir()] == ["model.json"]


def test_without_its_extra_it_says_how_to_get_it(folder: Path, monkeypatch, capsys) -> None:
    for package in ("uvicorn", "starlette.applications"):
        monkeypatch.setitem(sys.modules, package, None)
        assert run(["serve", "model.json", "--distance", "l1", "--port", "0"]) == 3
        assert 'pip install "overexplain[serve]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "oracle",
    [
        ModelOracle(PLANE, "l1"),
        ModelOracle(PLANE, Mechanism("lp:1.5", "linf", 0.25, tolerance=1e-7, slack=0.5)),
        ModelOracle(PLANE, Mechanism("l1", "l2", 0.1), published=Mechanism("l1", "l2", None, slack=None)),
        ModelOracle(PLANE, Mechanism(Weighted(l1, [1.0, 2.0, 0.1]))),
        Boxed(ModelOracle(PLANE, "l2"), [-1.0, -np.inf, 0.0], 5.0),
        OneHot(ModelOracle(PLANE, "l1"), groups=[[0, 2]], integers=[1], low=0.0),
        ModelOracle(PLANE, "l1", published=Mechanism("l1", domain=Domain(3))),
        Boxed(
            ModelOracle(PLANE, "l1"),
            0.0,
            5.0,
            published=Mechanism("l1", domain=Domain(3, [0.5, -1, 0], groups=[[1, 2]])),
        ),
    ],
)
def test_the_endpoint_file_says_what_the_service_publishes(oracle: Any) -> None:
    written = read_endpoint(tomllib.loads(endpoint_file(oracle, "http://127.0.0.1:1", "m", FEATURES)))
    assert (written.preset, written.url, written.features) == ("kserve-v1", "http://127.0.0.1:1/v1/models/m", FEATURES)
    assert written.terms == oracle.mechanism
    assert written.inputs == getattr(oracle, "domain", None)
    assert (written.authorized, written.positive) == (True, 1)
    assert written.idempotency is not None


def test_a_service_that_only_labels_is_asked_where_no_verb_explains() -> None:
    entries = tomllib.loads(endpoint_file(LabelsOnly(ModelOracle(PLANE, "l1")), "http://127.0.0.1:1", "m"))
    written = read_endpoint(entries)
    assert (written.preset, written.url, written.dimension) == ("oip-v2", "http://127.0.0.1:1/v2/models/m", 3)
    assert written.terms is None
    with HttpOracle.from_dict(entries) as client:
        assert offers(client, "classify")
        assert not offers(client, "explain")


def test_terms_that_are_not_known_are_left_out() -> None:
    silent = ModelOracle(PLANE, "l1", published=Mechanism(None, slack=None))
    entries = tomllib.loads(endpoint_file(silent, "http://127.0.0.1:1", "m", ["", "b", "c"]))
    assert "mechanism" not in entries
    assert entries["dimension"] == 3
    with HttpOracle.from_dict(entries) as client:
        assert client.mechanism == silent.mechanism
