"""`service_app`: an oracle as an ASGI app that speaks KServe V1 and the Open Inference Protocol (v2)."""

from __future__ import annotations

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
        routes=[Route(entry.path, handler(entry.id), methods=[entry.method]) for entry in table],
        exception_handlers={HTTPException: _nothing_there(name)},
        lifespan=closing,
    )
    app.router.redirect_slashes = False
    app.state.counts, app.state.close = answers.counts, answers.close
    return app


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
            body = await _body(request)
            asked = Asked(verb, body, client, request.headers.get("idempotency-key"))
            return _response(200, await run_in_threadpool(answers.reply, asked))
        except Refused as error:
            return _refusal(error.status, str(error))
        except ClientDisconnect:  # nobody is there to read it
            return _refusal(400, "the body ended early")

    return handle


async def _body(request: Request) -> bytes:
    """The body, unless it is too large; the server throws away what is left of it, so that the client sees the reply."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise Refused(
                413, f"a body may have {MOST_BYTES:,} bytes, this one has more; send fewer instances at a time"
            )
    return bytes(body)


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
