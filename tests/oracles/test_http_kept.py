"""Faults of every kind between a run's file and a service: the budget is what the server counted, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from http_clients import FakeClock
from loopback import Loopback, Request, Scripted, reset
from overexplain.errors import BudgetExhausted, EndpointFailed
from overexplain.log.store.run import Run
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle
from overexplain.oracles.kept import Kept

MODEL = ox.Hyperplane([2.0, -1.0, 0.5, 1.5], 3.0)
INSIDE = ox.ModelOracle(MODEL, "l1")


def answered(request: Request) -> Scripted:
    x = request.json["instances"][0]
    if request.target.endswith(":predict"):
        return Scripted({"predictions": [int(INSIDE.classify(x) > 0)]})
    return Scripted({"explanations": [{"counterfactual": INSIDE.explain(x).tolist()}]})


FAULTS: list[Any] = [
    reset,
    Scripted(status=429, headers={"Retry-After": "2"}),
    Scripted(b"busy", status=503),
    Scripted({"predictions": [1]}, cut=40),
    Scripted({"predictions": [1], "explanations": [[0, 0, 0, 0]]}, cut=-5),
    lambda request: Scripted(status=307, headers={"Location": request.target}),
    lambda request: Scripted(answered(request).body, twice=True),
    lambda request: Scripted(answered(request).body, headers={"Content-Type": "text/html"}),
    Scripted(b"<h1>500</h1>", status=500),
    Scripted(b"x" * 3000),
    Scripted(b"not found", status=404),
]


@pytest.mark.parametrize("seed", range(12))
def test_a_run_between_faults_ends_right_or_stops_within_its_budget(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    script = [FAULTS[rng.integers(len(FAULTS))] if rng.random() < 0.6 else answered for _ in range(60)] + [answered]
    path, budget = tmp_path / "run.sqlite", int(rng.integers(3, 40))
    with Loopback(script) as server:
        entries = {
            "url": server.url + "/v1/models/m",
            "dimension": 4,
            "mechanism": {"distance": "l1"},
            "limits": {"retries": 2, "reply_bytes": 2000},
        }
        run = Run.create(path, plan={"seed": seed}, dimension=4, mechanism=INSIDE.mechanism, budget=budget)
        found = None
        for _ in range(40):  # each time a stop, a resumption
            ended = True
            try:
                with run, HttpOracle(read_endpoint(entries), clock=FakeClock(), rng=seed, environment={}) as service:
                    found = ox.extract(Kept(service, run), rng=seed)
            except (EndpointFailed, BudgetExhausted) as error:
                ended = isinstance(error, BudgetExhausted)
            run = Run.open(path)
            assert run.spent == len(server.requests) <= budget
            assert not run.unanswered
            if ended:
                break
        run.close()
        assert ended
    if found is not None:
        assert found.hyperplane.is_equivalent(MODEL, 1e-9)
    else:
        assert len(server.requests) == budget
