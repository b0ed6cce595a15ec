"""Running a service's app on loopback: a socket first, so that the port is known and taken before anyone is told."""

from __future__ import annotations

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from overexplain.errors import InvalidInput
from overexplain.oracles.served.app import NEEDED, is_loopback

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from uvicorn import Server

GRACE: Final = 10
"""Seconds that requests still being answered have when the server stops."""


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket that accepts connections on a loopback address; port 0: any that is free."""
    address = _loopback(host)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # The protocol is named because asyncio switches Nagle off (40 ms a reply) only where it is.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # Without it a port cannot be used again for a minute after a server stopped. On Windows it means something else;
        # with port 0 it would let the system choose a port that another process has bound and does not listen on yet.
        if os.name == "posix" and port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(
                f"port {port} on {address} is in use; give another --port, or 0 for any free one"
            ) from None
        raise InvalidInput(f"cannot listen on {address} port {port}: {error.strerror or error}") from None
    except OverflowError:
        listener.close()
        raise InvalidInput(f"a port is a number from 0 to 65535, got {port}") from None
    return listener


def url_of(listener: socket.socket) -> str:
    """The address of a listening socket, as one writes it in a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_of(app: Starlette) -> Server:
    """A uvicorn server for the app, silent and without a socket yet; `run(sockets=[…])` runs it until `should_exit` is set."""
    try:
        from uvicorn import Config, Server
    except ImportError:
        raise InvalidInput(NEEDED) from None
    return Server(
        Config(
            app, log_config=None, log_level="error", access_log=False, lifespan="on", ws="none", server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
    )  # fmt: skip


def serve(app: Starlette, listener: socket.socket, on_ready: Callable[[str], None] | None = None) -> None:
    """Answer until Ctrl-C or SIGTERM, then finish what is being answered; `on_ready` is told the address first."""
    server = server_of(app)
    with _stopped_by_signals(server):
        if on_ready is not None:
            on_ready(url_of(listener))
        server.run(sockets=[listener])


@contextmanager
def _stopped_by_signals(server: Any) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP (unless nohup ignores it) end the server, not the process; uvicorn passes them on at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        server.config.app.state.stop()
        ends(number, frame)

    ends = server.handle_exit
    server.handle_exit = stop  # which uvicorn installs while it runs
    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _loopback(host: str) -> str:
    """The host as a loopback address; anything else is refused."""
    text = host.strip("[]")
    if is_loopback(text):
        return "127.0.0.1" if text == "localhost" else text
    raise InvalidInput(
        f"{host!r} is no loopback address: this is a test service without access control, it listens on 127.0.0.1 or ::1 only"
    )
