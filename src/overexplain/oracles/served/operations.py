"""Every address of a served endpoint, in one table: the app is routed by it and the OpenAPI description made from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

from overexplain.errors import InvalidInput
from overexplain.oracles.served.bodies import Layout, show
from overexplain.oracles.served.tensors import INPUT

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@final
@dataclass(frozen=True)
class Operation:
    """One method at one path.

    id        its name in the OpenAPI description, and that of what answers it
    answer    the schema of a good reply, in `openapi.schemas`
    body      the schema of the request; None: it has none
    examples  requests that are answered
    """

    id: str
    method: Literal["GET", "POST"]
    path: str
    summary: str
    answer: str
    body: str | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)


def addresses(name: str) -> tuple[str, str]:
    """The paths of a model in the two protocols, V1 and v2; raises InvalidInput if a path cannot hold the name."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"a model's name is made of letters, digits, '.', '_' and '-', got {show(name)}")
    return f"/v1/models/{name}", f"/v2/models/{name}"


def operations(name: str, layout: Layout) -> tuple[Operation, ...]:
    """All operations of a service with one model of that name.

    >>> [operation.path for operation in operations("loans", Layout(2)) if operation.method == "POST"]
    ['/v1/models/loans:predict', '/v1/models/loans:explain', '/v2/models/loans/infer']
    """
    v1, v2 = addresses(name)
    point = [0.0] * layout.dimension
    instances: dict[str, Any] = {"rows": {"instances": [point, point]}}
    matrix = {"name": INPUT, "shape": [2, layout.dimension], "datatype": "FP64"}
    tensors: dict[str, Any] = {
        "flat": {"id": "1", "inputs": [matrix | {"data": point + point}]},
        "nested": {"inputs": [matrix | {"data": [point, point]}]},
    }
    if layout.features is not None:
        instances["record"] = {"instances": [dict.fromkeys(layout.features, 0.0)]}
        column = {"shape": [1, 1], "datatype": "INT32", "data": [0]}
        tensors["columns"] = {"inputs": [{"name": feature} | column for feature in layout.features]}
    return (
        Operation("list_models", "GET", "/v1/models", "The models that are served.", "Models"),
        Operation("model_ready", "GET", v1, "Whether the model is ready.", "Ready"),
        Operation("predict", "POST", f"{v1}:predict", "Labels: 1 is Yes, 0 is No.", "Predictions", "Instances", instances),
        Operation(
            "explain", "POST", f"{v1}:explain", "Counterfactuals: where the label would be the other one.",
            "Explanations", "Instances", instances,
        ),
        Operation("server_live", "GET", "/v2/health/live", "Whether the server is up.", "Live"),
        Operation("server_ready", "GET", "/v2/health/ready", "Whether the server is ready.", "ServerReady"),
        Operation("server_metadata", "GET", "/v2", "What the server is.", "Server"),
        Operation("model_metadata", "GET", v2, "The tensors of the model.", "Model"),
        Operation("model_ready_v2", "GET", f"{v2}/ready", "Whether the model is ready.", "Ready"),
        Operation("infer", "POST", f"{v2}/infer", "Labels: 1 is Yes, 0 is No.", "Inferred", "Tensors", tensors),
        Operation("counts", "GET", "/counts", "What has been asked and answered so far.", "Counts"),
        Operation("openapi", "GET", "/openapi.json", "This description.", "Anything"),
    )  # fmt: skip
