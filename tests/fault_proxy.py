"""A bad network: a proxy of raw sockets between a client and a real service, which does to each request what a script says.

It notes every request that arrived: when, with what, which fault it met, until when the service wanted to be left alone, how
often it was passed on and which answer the client read to its end. Nothing here knows the code under test.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60.0
"""Nothing here waits longer; a test that needs that much has failed."""


@dataclass
class Arrival:
    """One request that arrived. Times are `time.monotonic`'s, taken before the proxy did anything about it."""

    number: int
    moment: float
    method: str
    target: str
    headers: dict[str, str] = field(repr=False)
    body: bytes
    raw: bytes = field(repr=False)
    fault: str = "none"
    forwarded: int = 0
    answer: Any = None  # the JSON of the reply, if the client read all of it in good time
    wait: str = ""  # the Retry-After that it was given
    not_before: float = 0.0  # the moment until which that asked to wait

    @property
    def key(self) -> str | None:
        return self.headers.get("idempotency-key")


Act = Callable[["Turn"], None]
Script = Callable[[Arrival], tuple[str, Act] | None]


class FaultProxy:
    """The proxy in front of the service at `upstream`; a context manager.

    `script` says for each arrival what happens, as (name, act); None: it is passed on. `timeout` is the client's: an answer
    that took more than half of that is not counted as read, because the client may just have given up. `travel` is how long
    a request takes to arrive.
    """

    def __init__(self, upstream: str, script: Script | None = None, timeout: float = 10.0) -> None:
        place = urlsplit(upstream)
        self.upstream = (place.hostname or "", place.port or 80)
        self.script: Script = script or healthy
        self.arrivals: list[Arrival] = []
        self.failures: list[BaseException] = []
        self.timeout, self.travel = timeout, 0.0
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._listener = _bound(0)
        self.port: int = self._listener.getsockname()[1]
        self._listener.listen()
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FaultProxy:
        self._accepting()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._close_listener()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.settle()
        assert not self.failures, self.failures

    def settle(self) -> None:
        """Return when everything that arrived has been dealt with."""
        accepting = self._threads[0]
        for thread in list(self._threads):
            if thread is not accepting or self.stopped.is_set():
                thread.join(PATIENCE)
                assert not thread.is_alive()

    def vanish(self) -> None:
        """Refuse connections from now on; the port stays reserved, so that nobody else can take it."""
        reserved = _bound(self.port)  # bound but not listening: connections to it are refused
        self._close_listener()
        self._listener = reserved

    def come_back(self) -> None:
        """Take connections again after `vanish`."""
        self._listener.listen()
        self._accepting()

    def _accepting(self) -> None:
        thread = threading.Thread(target=self._accept, args=(self._listener,), daemon=True)
        self._threads.insert(0, thread)
        thread.start()

    def _close_listener(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the one who accepts
        self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with connection:
            try:
                self.stopped.wait(self.travel)
                with self._lock:  # one at a time: arrivals are numbered in the order in which they are dealt with
                    arrival = self._arrived(connection)
                    chosen = None if arrival is None else self.script(arrival)
                if arrival is None:
                    return
                arrival.fault, act = chosen or ("none", pass_on)
                act(Turn(self, connection, arrival))
            except (OSError, EOFError):
                return  # the client went away: its right
            except BaseException as error:
                self.failures.append(error)

    def _arrived(self, connection: socket.socket) -> Arrival | None:
        raw = _read_head(connection)
        if raw is None:
            return None
        moment = time.monotonic()
        head, _, body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            if not (more := connection.recv(65536)):
                return None
            body += more
        method, target, _ = first.split(" ")
        raw = head + b"\r\n\r\n" + body
        arrival = Arrival(len(self.arrivals), moment, method, target, headers, body, raw)
        self.arrivals.append(arrival)
        return arrival


class Turn:
    """What an act has in its hands: one arrival, and the client's connection."""

    def __init__(self, proxy: FaultProxy, connection: socket.socket, arrival: Arrival) -> None:
        self.proxy, self.connection, self.arrival = proxy, connection, arrival

    def forward(self) -> tuple[bytes, bytes]:
        """The head and the body of the service's own reply."""
        self.arrival.forwarded += 1
        with socket.create_connection(self.proxy.upstream, timeout=PATIENCE) as upstream:
            upstream.sendall(self.arrival.raw)
            parts = []
            while part := upstream.recv(65536):
                parts.append(part)
        head, _, body = b"".join(parts).partition(b"\r\n\r\n")
        return head + b"\r\n\r\n", body

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def answer(self, data: bytes, body: bytes) -> None:
        """Send the whole of a good reply; it counts as read once the client has ended the connection, in good time."""
        self.send(data)
        self.connection.shutdown(socket.SHUT_WR)
        self.hold()
        if time.monotonic() - self.arrival.moment < self.proxy.timeout / 2:
            self.arrival.answer = json.loads(body)

    def reply(self, status: int, body: bytes = b"{}", **headers: str) -> None:
        """Send a reply of one's own; header names are given with _ for -."""
        given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.send(f"HTTP/1.1 {status} Fault\r\n{lines}\r\n".encode("latin-1") + body)

    def busy(self, status: int, wait: str, seconds: float = 0.0, **headers: str) -> None:
        """Ask to wait; `seconds` is what `wait` means."""
        self.arrival.wait, self.arrival.not_before = wait, time.monotonic() + seconds
        self.reply(status, **headers, Retry_After=wait)

    def reset(self) -> None:
        """End the connection the rude way."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def pause(self, seconds: float) -> None:
        """Wait, unless the proxy is stopped."""
        self.proxy.stopped.wait(seconds)

    def hold(self) -> None:
        """Say nothing until the client goes away."""
        while self.connection.recv(65536):
            pass

    def until_given_up(self, data: bytes, every: float = 0.0) -> None:
        """Send `data` again and again until the client goes away."""
        while not self.proxy.stopped.is_set():
            self.send(data)
            self.pause(every)


def pass_on(turn: Turn) -> None:
    """What a good network does."""
    head, body = turn.forward()
    turn.answer(head + body, body)


def healthy(_: Arrival) -> None:
    """The script without faults."""
    return


def only(number: int, name: str, act: Act) -> Script:
    """A script that does something to one arrival."""
    return lambda arrival: (name, act) if arrival.number == number else None


def since(number: int, name: str, act: Act) -> Script:
    """A script that does something to all arrivals from one on."""
    return lambda arrival: (name, act) if arrival.number >= number else None


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(("127.0.0.1", port))
    return made


def _read_head(connection: socket.socket) -> bytes | None:
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return None
        data += more
    return data
