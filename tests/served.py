"""A service over real HTTP for tests: the app of `overexplain serve` on a free loopback port, in a thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from overexplain.oracles.served.app import service_app
from overexplain.oracles.served.counts import Counts
from overexplain.oracles.served.server import listen, server_of, url_of

PATIENCE = 60.0


class Served(NamedTuple):
    """Where the service is, and what it has answered; `v1` and `v2` are the model's own addresses in the two protocols."""

    url: str
    counts: Counts
    name: str = "model"

    @property
    def v1(self) -> str:
        return f"{self.url}/v1/models/{self.name}"

    @property
    def v2(self) -> str:
        return f"{self.url}/v2/models/{self.name}"


@contextmanager
def served(
    oracle: Any,
    *,
    features: Sequence[str] | None = None,
    name: str = "model",
    log: Path | None = None,
    listener: socket.socket | None = None,
) -> Iterator[Served]:
    """The oracle as a running endpoint: `with served(ModelOracle(...)) as service: ... service.url, service.counts`.

    It has stopped, and its log is closed, when the block ends. `listener`: where, if not on a new port; whoever
    connected before is answered then.
    """
    app = service_app(oracle, features=features, name=name, log=log)
    server = server_of(app)
    with listen(port=0) if listener is None else listener as listener:
        url = url_of(listener)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            deadline = time.monotonic() + PATIENCE
            while not server.started:
                assert thread.is_alive(), "the server ended before it began"
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.005)
            yield Served(url, app.state.counts, name)
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
    assert not thread.is_alive(), "the server does not stop"
