"""What tests of live endpoints share: an oracle that waits without waiting, and a recorder that remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopback import Scripted
from overexplain.errors import BudgetExhausted, EndpointFailed
from overexplain.oracles.http.endpoint import read_endpoint
from overexplain.oracles.http.oracle import HttpOracle

YES = Scripted({"predictions": [1]})
NO = Scripted({"predictions": [0]})
HERE = np.array([0.0, 0.0])


class FakeClock:
    """Sleeping takes no time, but the clock goes on."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1.7e9 + self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Told:
    """A Recorder that remembers, with a budget."""

    key = "key-of-this-question"

    def __init__(self, budget: int = 100) -> None:
        self.budget, self.sent, self.failures = budget, 0, []

    def sending(self) -> None:
        if self.sent == self.budget:
            raise BudgetExhausted("no more")
        self.sent += 1

    def failed(self, reason: str, not_before: float | None = None) -> None:
        self.failures.append((reason, not_before))


def oracle(url: str, clock: Any = None, **entries: Any) -> HttpOracle:
    settings = read_endpoint({"url": url + "/v1/models/m", "dimension": 2, **entries})
    return HttpOracle(settings, clock=FakeClock() if clock is None else clock, rng=0, environment={})


def stopped(service: HttpOracle, question: Told | None = None) -> EndpointFailed:
    with pytest.raises(EndpointFailed) as caught:
        service.ask("classify", HERE, question)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return caught.value
