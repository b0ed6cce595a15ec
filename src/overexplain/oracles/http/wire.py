"""One request over the network: sent once, its reply read up to a size and a deadline, whatever the other side does.

Imports the HTTP library; only what talks to an endpoint imports this module.
"""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import certifi
import httpcore

from overexplain._files import open_regular
from overexplain.errors import InvalidInput
from overexplain.oracles.http.addresses import Address

ERROR_BYTES = 10_000
"""So much is read of a reply that is not a success: enough for a message."""

_LOGGERS = ("httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpcore.socks")


@dataclass(frozen=True)
class Reply:
    """What came back; `status` is None if nothing did. `fault` says what cut it short, `hopeless` that it always will."""

    status: int | None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    fault: str = ""
    too_long: bool = False
    hopeless: bool = False

    def values(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key == name]

    @property
    def text(self) -> str:
        """The body as text, for a message: in the encoding that JSON would be read in."""
        return self.body.decode(json.detect_encoding(self.body), "replace")


@final
class Wire:
    """Connections to a service; `send` sends exactly one request and never raises for what the network does.

    Over http every request has a connection of its own, so that a reply that comes twice or late can never be taken for the
    answer to the next question. Over https, where a connection is dear and nobody in between can repeat a reply, connections
    are kept, but only after a reply that was exactly as long as it said.
    """

    def __init__(
        self,
        *,
        timeout: float,
        connect_timeout: float,
        reply_bytes: int,
        encrypted: bool,
        ca_file: str | None,
        proxy: Address | None,
        proxy_login: tuple[str, str] | None = None,
    ) -> None:
        self._timeout, self._connect_timeout, self._reply_bytes = timeout, connect_timeout, reply_bytes
        self._network = _Network()
        self._has_proxy = proxy is not None
        through = None
        if proxy is not None:
            host = f"[{proxy.host}]" if ":" in proxy.host else proxy.host
            through = httpcore.Proxy(f"{proxy.scheme}://{host}:{proxy.port}", auth=proxy_login)
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusting(ca_file) if encrypted or ca_file is not None else None,  # reading them takes a while
            proxy=through,
            max_connections=1,
            keepalive_expiry=30.0,
            network_backend=self._network,
        )

    def close(self) -> None:
        """End all connections."""
        self._pool.close()

    def send(self, method: str, address: Address, headers: dict[str, str], content: bytes) -> Reply:
        """The reply to one request, or what went wrong."""
        own = [*headers.items(), *([] if address.scheme == "https" else [("Connection", "close")])]
        url = httpcore.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=address.target.encode(),
        )
        limits = {"connect": self._connect_timeout, "read": self._timeout, "write": self._timeout, "pool": 1.0}
        self._network.deadline = time.monotonic() + self._timeout
        status: int | None = None
        heard: tuple[tuple[str, str], ...] = ()
        parts: list[bytes] = []
        try:
            with (
                _quiet(),
                self._pool.stream(
                    method, url, headers=own, content=content, extensions={"timeout": limits}
                ) as response,
            ):
                status = response.status
                heard = tuple(
                    (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.headers
                )
                most = self._reply_bytes if 200 <= status < 300 else ERROR_BYTES
                size = 0
                for part in response.iter_stream():
                    size += len(part)
                    parts.append(part if size <= most else part[: len(part) - (size - most)])
                    if size > most:
                        return Reply(status, heard, b"".join(parts), too_long=True)
                _keep_if_exact(response, heard, size)
                return Reply(status, heard, b"".join(parts))
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
            fault, hopeless = _explained(error, self._timeout, self._sought)
        except ValueError as error:  # a host name that is none is found out only when it is looked up
            fault, hopeless = f"the host name of {self._sought} cannot be used ({type(error).__name__})", True
        return Reply(status, heard, b"", fault, hopeless=hopeless)

    @property
    def _sought(self) -> str:
        """Whom a connection was wanted with: all of them go to the proxy, if there is one."""
        return "the proxy" if self._has_proxy and self._network.is_connecting else "the service"


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    fault = ""
    try:
        if ca_file is not None:
            open_regular(ca_file).close()  # OpenSSL would wait for whoever writes to a pipe
        return ssl.create_default_context(cafile=certifi.where() if ca_file is None else ca_file)
    except ssl.SSLError:
        fault = "holds no certificates (PEM is expected)"
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    raise InvalidInput(f"[tls] ca_file {ca_file} {fault}")


def _keep_if_exact(response: httpcore.Response, headers: Iterable[tuple[str, str]], size: int) -> None:
    stream = response.extensions.get("network_stream")
    if isinstance(stream, _Stream):
        declared = [value for name, value in headers if name == "content-length"]
        stream.is_exact = bool(declared) and stream.head is not None and stream.heard == stream.head + size


def _explained(error: Exception, timeout: float, sought: str) -> tuple[str, bool]:
    """What happened, in words, and whether it will happen again for certain."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"its certificate is not trusted ({cause.verify_message}); [tls] ca_file names another authority",
                True,
            )
        if isinstance(cause, socket.gaierror):
            return f"the host name of {sought} cannot be resolved ({cause.strerror})", cause.errno == socket.EAI_NONAME
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpcore.ConnectTimeout):
        return f"no connection to {sought} in time", False
    if isinstance(error, httpcore.TimeoutException):
        return f"no whole reply within {timeout:g} s", False
    if isinstance(error, httpcore.ConnectError):
        return f"no connection to {sought} ({error})", False
    if isinstance(error, httpcore.ProxyError):
        return f"the proxy refused ({error})", False
    if isinstance(error, httpcore.LocalProtocolError):
        return f"the request cannot be sent ({error})", True
    if isinstance(error, httpcore.ProtocolError):
        # The library quotes what it could not read; that is not repeated.
        broke_off = "peer closed" in str(error) or "disconnected" in str(error)
        return "the reply broke off" if broke_off else "the reply is no HTTP", False
    return f"the connection broke ({error})", False


@contextmanager
def _quiet() -> Iterator[None]:
    """Within the block this thread's connections log nothing: their debug lines show headers."""
    here = threading.get_ident()

    def elsewhere(_: logging.LogRecord) -> bool:
        return threading.get_ident() != here

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(elsewhere)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(elsewhere)


class _Network(httpcore.NetworkBackend):
    """Sockets that obey one deadline for the whole exchange, not one for each read."""

    def __init__(self) -> None:
        self._sockets = httpcore.SyncBackend()
        self.deadline = 0.0
        self.is_connecting = False  # still true if the last attempt failed

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connected stream."""
        self.is_connecting = True
        allowed = self.allowed(timeout, httpcore.ConnectTimeout)
        stream = _Stream(self._sockets.connect_tcp(host, port, allowed, local_address, socket_options), self)
        self.is_connecting = False
        return stream

    def allowed(self, timeout: float | None, late: type[Exception]) -> float:
        """How long the next step may take."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise late("deadline")
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    """A stream that counts what it hears since the last request."""

    def __init__(self, inner: httpcore.NetworkStream, network: _Network) -> None:
        self._inner, self._network = inner, network
        self._beginning = b""
        self.head: int | None = None  # how long the reply's head is, once it is whole
        self.heard = 0
        self.is_exact = True

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes, before the deadline."""
        data = self._inner.read(max_bytes, self._network.allowed(timeout, httpcore.ReadTimeout))
        self.heard += len(data)
        if self.head is None:
            self._beginning += data
            end = self._beginning.find(b"\r\n\r\n")
            if end >= 0:
                self.head, self._beginning = end + 4, b""
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send, before the deadline."""
        self._beginning, self.head, self.heard = b"", None, 0
        self._inner.write(buffer, self._network.allowed(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """End the connection."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same stream, encrypted."""
        allowed = self._network.allowed(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, allowed), self._network)

    def get_extra_info(self, info: str) -> Any:
        """What is known about the connection; one that heard too much counts as ended, so that it is not used again."""
        if info == "is_readable" and not self.is_exact:
            return True
        return self._inner.get_extra_info(info)
