"""A loopback HTTP server that does what a script says: one entry for each request, the last one again and again.

An entry is a `Scripted` reply, or a function of the request that makes one, or that writes to the socket itself and returns
None. The server counts requests and notes when each arrived. Nothing here knows the code under test.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """What arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    arrived: float
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Scripted:
    """A reply; `body` is sent as it is if it is bytes, else as JSON. `cut`: so many bytes of it, then the connection ends."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    twice: bool = False
    after: float = 0.0

    def bytes(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **self.headers}
        head = f"HTTP/1.1 {self.status} Scripted\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in headers.items()
        )
        return head.encode("latin-1") + b"\r\n" + body


def reset(connection: socket.socket, _request: Request) -> None:
    """End the connection the rude way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


Act = Scripted | Callable[[Request], Scripted] | Callable[[socket.socket, Request], None]


class Loopback:
    """The server; a context manager. `requests` is what came, in order."""

    def __init__(self, script: Sequence[Any], tls: ssl.SSLContext | None = None) -> None:
        self.script, self.requests, self.tls = list(script), [], tls
        self.failures: list[BaseException] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections = 0
        self._open: list[socket.socket] = []
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{'localhost' if self.tls else '127.0.0.1'}:{self.port}"

    @property
    def arrivals(self) -> list[float]:
        return [request.arrived for request in self.requests]

    @property
    def stopped(self) -> threading.Event:
        return self._stopped

    def __enter__(self) -> Loopback:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        socket.create_connection(("127.0.0.1", self.port), timeout=30).close()  # wakes the one who accepts
        self._threads[0].join(30)
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(30)
        self._listener.close()
        assert not self.failures, self.failures

    def _accept(self) -> None:
        while not self._stopped.is_set():
            connection, _ = self._listener.accept()
            if self._stopped.is_set():
                connection.close()
                return
            self._connections += 1
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection, self._connections), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        connection.settimeout(30)
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            with connection, connection.makefile("rb") as stream:
                while (request := _read(stream, number)) is not None:
                    place = min(len(self.requests), len(self.script) - 1)
                    self.requests.append(request)
                    if not self._act(self.script[place], connection, request):
                        return
        except (OSError, ValueError):
            return  # the client went away: its right
        except BaseException as error:
            self.failures.append(error)

    def _act(self, act: Any, connection: socket.socket, request: Request) -> bool:
        """True if the connection stays open."""
        if callable(act):
            if len(inspect.signature(act).parameters) == 2:
                act(connection, request)
                return False
            act = act(request)
        if act.after:
            self._stopped.wait(act.after)
        data = act.bytes() * (2 if act.twice else 1)
        connection.sendall(data if act.cut is None else data[: act.cut])
        return act.cut is None and request.headers.get("connection") != "close"


def _read(stream: Any, number: int) -> Request | None:
    line = stream.readline(100_000).decode("latin-1").split()
    if len(line) != 3:
        return None
    headers = {}
    while (entry := stream.readline(100_000).decode("latin-1").rstrip("\r\n")) != "":
        name, _, value = entry.partition(":")
        headers[name.strip().lower()] = value.strip()
    arrived = time.monotonic()
    body = stream.read(int(headers.get("content-length", 0)))
    return Request(line[0], line[1], headers, body, arrived, number)
