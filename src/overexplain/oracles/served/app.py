"""`service_app`: an oracle as an ASGI app that speaks KServe V1 and the Open Inference Protocol (v2)."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from overexplain.errors import InvalidInput
from overexplain.log.jsonl.formats import JsonlWriter, to_json
from overexplain.oracles.protocol import Oracle, offers
from overexplain.oracles.served.answers import Answers, Asked
from overexplain.oracles.served.bodies import Layout, Refused
from overexplain.oracles.served.openapi import describe
from overexplain.oracles.served.operations import operations
from overexplain.oracles.served.tensors import metadata

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    Handler = Callable[[Request], Awaitable[Response]]

MOST_BYTES: Final = 1_000_000
"""No larger body is read."""
BODY_SECONDS: Final = 5
"""In which a body has to be here; less than a server that stops has patience for."""
NEEDED: Final = 'serve needs starlette and uvicorn; pip install "overexplain[serve]"'


def service_app(
    oracle: Oracle,
    *,
    features: Sequence[str] | None = None,
    name: str = "model",
    log: str | os.PathLike[str] | None = None,
    version: str = "unknown",
) -> Starlette:
    """The app that answers by `oracle`; `app.state.counts` is what it has answered, a `Counts`.

    features  names by which instances may be given
    name      that of the model in the paths
    log       a new file; every answer is in it before it is told; closed when the app is shut down, or by `app.state.close()`
    version   what the endpoint says about itself
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ImportError:
        raise InvalidInput(NEEDED) from None
    layout = Layout(oracle.dimension, None if features is None else tuple(features))
    table = operations(name, layout)
    description = describe(table, layout, _about(oracle, name), version)
    writer = None if log is None else JsonlWriter(log, layout.features, layout.dimension, oracle.mechanism)
    answers = Answers(oracle, layout, name, writer)
    told: dict[str, Any] = {
        "list_models": {"models": [name]},
        "model_ready": {"name": name, "ready": True},
        "server_live": {"live": True},
        "server_ready": {"ready": True},
        "server_metadata": {"name": "overexplain", "version": version, "extensions": []},
        "model_metadata": metadata(name, layout),
        "model_ready_v2": {"name": name, "ready": True},
        "openapi": description,
    }

    @asynccontextmanager
    async def closing(_: Starlette) -> AsyncIterator[None]:
        yield
        answers.close()

    def handler(operation: str) -> Handler:
        if operation == "counts":
            return _told(answers.counts.to_dict)
        if operation in told:
            return _told(lambda: told[operation])
        return _answered(answers, operation)

    app = Starlette(
        middleware=[Middleware(_FromThisMachine)],
        routes=[Route(entry.path, handler(entry.id), methods=[entry.method]) for entry in table],
        exception_handlers={HTTPException: _nothing_there(name)},
        lifespan=closing,
    )
    app.router.redirect_slashes = False
    app.state.counts, app.state.close, app.state.stop = answers.counts, answers.close, answers.stop
    return app


def is_loopback(host: str) -> bool:
    """Whether this is a name or an address that always means this machine."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _about(oracle: Oracle, name: str) -> str:
    """What is served, in words; no more than the service publishes."""
    terms = oracle.mechanism
    explains = offers(oracle, "explain")
    how = "explains nothing" if not explains else "explains" if terms is None else f"explains by {terms.describe()}"
    return f"A test service on loopback. The model {name} has {oracle.dimension} features and {how}."


def _told(entries: Callable[[], dict[str, Any]]) -> Handler:
    """What answers a GET with entries that cost nothing."""

    async def handle(_: Request) -> Response:
        return _response(200, to_json(entries()).encode())

    return handle


def _answered(answers: Answers, verb: Any) -> Handler:
    """What answers a POST of this verb."""

    async def handle(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import ClientDisconnect

        answers.arrived()
        client = request.headers.get("x-client-id") or (None if request.client is None else request.client.host)
        try:
            _refuse_other_types(request.headers.get("content-type", ""))
            body = await _body(request)
            asked = Asked(verb, body, client, request.headers.get("idempotency-key"))
            return _response(200, await run_in_threadpool(answers.reply, asked))
        except Refused as error:
            return _refusal(error.status, str(error))
        except TimeoutError:
            message = f"the body did not come within {BODY_SECONDS} seconds"
            return _refusal(408, message, {"Connection": "close"})  # nobody waits for what is left of it
        except ClientDisconnect:  # nobody is there to read it
            return _refusal(400, "the body ended early")

    return handle


async def _body(request: Request) -> bytes:
    """The body, unless it is too large; the server throws away what is left of it, so that the client sees the reply."""
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise Refused(
                    413, f"a body may have {MOST_BYTES:,} bytes, this one has more; send fewer instances at a time"
                )
    return bytes(body)


def _refuse_other_types(content_type: str) -> None:
    """Raise Refused unless the body is said to be JSON: pages of other sites can send all else here unasked."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, f"send the header Content-Type: application/json, not {kind[:100] or 'none'!r}")


class _FromThisMachine:
    """Answers only whoever calls this machine by a loopback name: a page whose own name was made to lead here does not."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
            if not is_loopback(_without_port(host)):
                message = f"the host {host[:100]!r} is not this machine; ask for 127.0.0.1, [::1] or localhost"
                await _refusal(421, message)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _without_port(host: str) -> str:
    """The name or address in a Host header.

    >>> [_without_port(host) for host in ("127.0.0.1:80", "[::1]:80", "localhost")]
    ['127.0.0.1', '::1', 'localhost']
    """
    return host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host


def _nothing_there(name: str) -> Any:
    """What answers where there is no such path, or not by that method."""

    async def handle(request: Request, error: Any) -> Response:
        if error.status_code == 405:
            allowed = (error.headers or {}).get("Allow", "another method")
            message = f"{request.method} is not possible at {request.url.path}; use {allowed}"
        else:
            message = f"nothing is at {request.url.path[:200]}; the model here is {name!r}, see /openapi.json"
        return _refusal(error.status_code, message, error.headers)

    return handle


def _refusal(status: int, message: str, headers: Any = None) -> Response:
    return _response(status, to_json({"error": message}).encode(), headers)


def _response(status: int, body: bytes, headers: Any = None) -> Response:
    from starlette.responses import Response

    return Response(body, status, dict(headers or {}), media_type="application/json")
