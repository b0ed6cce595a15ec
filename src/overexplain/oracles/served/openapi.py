"""The OpenAPI 3.1 description of a served endpoint, made from the same table as its routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from overexplain.oracles.served.bodies import Layout
from overexplain.oracles.served.counts import Counts
from overexplain.oracles.served.operations import Operation
from overexplain.oracles.served.tensors import DATATYPES, OUTPUT

Schema = dict[str, Any]

_FAILURES = {
    "400": "The request is not what the protocol says; the message names the place.",
    "408": "The body did not come in time.",
    "413": "The body is too large, or has too many instances.",
    "415": "The body is not said to be JSON.",
    "422": "The Idempotency-Key came with another request before.",
    "500": "The service failed on an instance; nothing of this request was answered.",
    "501": "The model does not offer this verb.",
}
_HEADERS = {
    "Idempotency-Key": "The same key with the same request has the same reply, and is counted once.",
    "X-Client-Id": "Who asks, for the log; else the address.",
}


def describe(operations: Sequence[Operation], layout: Layout, about: str, version: str) -> Schema:
    """The description as a JSON object; `about` says in words what is served."""
    paths: dict[str, Schema] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "overexplain serve", "version": version, "description": about},
        "paths": paths,
        "components": {"schemas": schemas(layout)},
    }


def _operation(operation: Operation) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": {"200": {"description": operation.summary, "content": _json(operation.answer)}},
    }
    if operation.body is not None:
        examples = {name: {"value": value} for name, value in operation.examples.items()}
        content = {"application/json": _json(operation.body)["application/json"] | {"examples": examples}}
        described["requestBody"] = {"required": True, "content": content}
        described["parameters"] = [
            {"name": name, "in": "header", "required": False, "description": text, "schema": {"type": "string"}}
            for name, text in _HEADERS.items()
        ]
        for status, text in _FAILURES.items():
            described["responses"][status] = {"description": text, "content": _json("Error")}
    return described


def _json(schema: str) -> Schema:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def schemas(layout: Layout) -> dict[str, Schema]:
    """The schemas of all bodies, by name."""
    number, text, truth = {"type": "number"}, {"type": "string"}, {"type": "boolean"}
    row = _list(number, layout.dimension, layout.dimension)
    instance: Schema = row
    if layout.features is not None:
        instance = {"oneOf": [row, _object(dict.fromkeys(layout.features, number))]}
    label = {"type": "integer", "enum": [0, 1]}
    shape = _list({"type": "integer", "minimum": 1}, 1, 2)
    data = _list({"anyOf": [number, _list(number)]})
    parameters = {"type": "object"}
    sent = {"name": text, "shape": shape, "datatype": {"enum": list(DATATYPES)}, "data": data}
    wanted = _object({"name": {"const": OUTPUT}}, parameters=parameters)
    told = {"name": {"const": OUTPUT}, "datatype": {"const": "INT64"}, "shape": shape, "data": _list(label)}
    tensor = _object({"name": text, "datatype": text, "shape": _list({"type": "integer"})})
    return {
        "Instances": _object({"instances": _list(instance, 1)}),
        "Predictions": _object({"predictions": _list(label)}),
        "Explanations": _object(
            {"explanations": _list(_object({"counterfactual": {"oneOf": [row, {"type": "null"}]}}))}
        ),
        "Tensors": _object(
            {"inputs": _list(_object(sent, parameters=parameters), 1)},
            id=text, parameters=parameters, outputs=_list(wanted),
        ),
        "Inferred": _object({"model_name": text, "outputs": _list(_object(told))}, id=text),
        "Models": _object({"models": _list(text)}),
        "Ready": _object({"name": text, "ready": truth}),
        "Live": _object({"live": truth}),
        "ServerReady": _object({"ready": truth}),
        "Server": _object({"name": text, "version": text, "extensions": _list(text)}),
        "Model": _object(
            {"name": text, "versions": _list(text), "platform": text, "inputs": _list(tensor), "outputs": _list(tensor)}
        ),
        "Counts": _object({field.name: {"type": "integer", "minimum": 0} for field in fields(Counts)}),
        "Error": _object({"error": text}),
        "Anything": {"type": "object"},
    }  # fmt: skip


def _object(required: dict[str, Schema], **optional: Schema) -> Schema:
    return {
        "type": "object",
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    limits = {"minItems": least} if least else {}
    return {"type": "array", "items": items, **limits, **({} if most is None else {"maxItems": most})}
