"""An ONNX file as plain data: nodes, constants and inputs, each checked while it is taken out of the protobuf.

Nothing that is declared is believed: a tensor's shape must fit the bytes that are there before an array is made of
them; other files, functions, graphs inside nodes and training are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import InvalidInput, UnsupportedModel

MOST_NODES: Final = 10_000
_NUMBERS: Final[dict[int, tuple[str, str]]] = {
    1: ("<f4", "float_data"),
    6: ("<i4", "int32_data"),
    7: ("<i8", "int64_data"),
    9: ("|b1", "int32_data"),
    11: ("<f8", "double_data"),
}
"""Element type → how it lies in raw_data, and where else it may be."""
_STRING: Final = 8
_INPUTS: Final = {1: "float", 6: "int32", 7: "int64", 11: "double"}
_DOMAINS: Final = {"": "", "ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml."}


@dataclass(frozen=True)
class Node:
    """One step: an operator ("Gemm", "ai.onnx.ml.Scaler"), what goes in and out by name, and its settings."""

    operator: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.operator} node {self.name[:60]!r}"


@dataclass(frozen=True)
class Graph:
    """A whole model; `inputs` are (name, number of columns), `floats` the kinds of numbers it is stored in."""

    inputs: tuple[tuple[str, int], ...]
    constants: Mapping[str, NDArray[Any]]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    floats: frozenset[str]


def read_graph(content: bytes) -> tuple[Graph, Any]:
    """(the graph, the parsed protobuf) in the bytes of an ONNX file."""
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:  # protobuf has several errors of its own, by version
        raise InvalidInput(f"it is not ONNX, or damaged ({error}); copy the file again") from None
    graph = model.graph
    if not graph.node or not graph.output:
        raise InvalidInput("it has no ONNX graph with nodes and outputs; it is no ONNX model, or cut off")
    if model.functions or model.training_info or graph.sparse_initializer:
        raise UnsupportedModel(
            "it has functions, training or sparse tensors of its own; only plain ONNX graphs are read"
        )
    if len(graph.node) > MOST_NODES:
        raise UnsupportedModel(f"it has {len(graph.node)} nodes, at most {MOST_NODES} are read; is it a linear model?")
    constants = {tensor.name: array(tensor) for tensor in graph.initializer}
    inputs = tuple(_input(value) for value in graph.input if value.name not in constants)
    if not inputs:
        raise UnsupportedModel("it has no inputs, so it decides nothing")
    nodes = tuple(_node(node, index) for index, node in enumerate(graph.node))
    floats = {_INPUTS[value.type.tensor_type.elem_type] for value in graph.input if value.name not in constants}
    floats |= {"float" for constant in constants.values() if constant.dtype == np.float32}
    floats |= {"float" for node in nodes if any(_is_float_list(value) for value in node.attributes.values())}
    return Graph(inputs, constants, nodes, tuple(value.name for value in graph.output), frozenset(floats)), model


def array(tensor: Any) -> NDArray[Any]:
    """The array in a tensor, if its shape, its type and its bytes fit together."""
    name, dims = tensor.name[:60], list(tensor.dims)
    if tensor.data_location != 0 or tensor.external_data:
        raise UnsupportedModel(f"tensor {name!r} lies in another file; store the model with its data inside")
    if any(dim < 0 for dim in dims) or len(dims) > 4:
        raise InvalidInput(f"tensor {name!r} has the shape {dims[:6]}; the file is damaged or made up")
    count = math.prod(dims)
    if tensor.data_type == _STRING:
        texts = [bytes(text).decode("utf-8", "replace") for text in tensor.string_data]
        return _shaped(np.array(texts, dtype=object), count, dims, name)
    if tensor.data_type not in _NUMBERS:
        raise UnsupportedModel(
            f"tensor {name!r} holds numbers of type {tensor.data_type}; read are float, double and integers"
        )
    kind, entry = _NUMBERS[tensor.data_type]
    if tensor.raw_data:
        if len(tensor.raw_data) != count * np.dtype(kind).itemsize:
            raise InvalidInput(
                f"tensor {name!r} has {len(tensor.raw_data)} bytes for the shape {dims}; the file is damaged"
            )
        return np.frombuffer(tensor.raw_data, dtype=kind).reshape(dims)
    return _shaped(np.array(list(getattr(tensor, entry)), dtype=kind), count, dims, name)


def _shaped(values: NDArray[Any], count: int, dims: list[int], name: str) -> NDArray[Any]:
    if len(values) != count:
        raise InvalidInput(f"tensor {name!r} has {len(values)} numbers for the shape {dims}; the file is damaged")
    return values.reshape(dims)


def _input(value: Any) -> tuple[str, int]:
    """(name, columns) of an input with a row for each case."""
    kind = value.type.tensor_type.elem_type
    if value.type.WhichOneof("value") != "tensor_type" or kind not in _INPUTS:
        raise UnsupportedModel(
            f"input {value.name[:60]!r} is not a table of numbers (text and categories are not read from ONNX); "
            "give the part of the model after the encoding, or a coefficient file"
        )
    dims = list(value.type.tensor_type.shape.dim)
    if len(dims) != 2 or not 0 < dims[1].dim_value <= 10**6:
        raise UnsupportedModel(
            f"input {value.name[:60]!r} must be a table with a known number of columns, its shape is "
            f"{[dim.dim_value or dim.dim_param or '?' for dim in dims[:6]]}; export it with a fixed number of features"
        )
    return value.name, int(dims[1].dim_value)


def _node(node: Any, index: int) -> Node:
    if node.domain not in _DOMAINS:
        raise UnsupportedModel(f"operator {node.op_type[:60]!r} of {node.domain[:60]!r} is not one of ONNX's own")
    attributes = {attribute.name: _attribute(attribute, node) for attribute in node.attribute}
    operator, inputs = _DOMAINS[node.domain] + node.op_type, list(node.input)
    while inputs and not inputs[-1]:  # left out at the end
        inputs.pop()
    return Node(operator, node.name or f"number {index}", tuple(inputs), tuple(node.output), attributes)


def _attribute(attribute: Any, node: Any) -> Any:
    """The value of a setting: a number, a text, an array, or a list of numbers or texts."""
    kinds: dict[int, Any] = {
        1: lambda: float(attribute.f),
        2: lambda: int(attribute.i),
        3: lambda: _text(attribute.s),
        4: lambda: array(attribute.t),
        6: lambda: np.array(attribute.floats, dtype=np.float64),
        7: lambda: np.array(attribute.ints, dtype=np.int64),
        8: lambda: [_text(text) for text in attribute.strings],
    }
    if attribute.type not in kinds or attribute.ref_attr_name:
        raise UnsupportedModel(f"a {node.op_type[:60]} node has a graph or a sparse tensor as {attribute.name[:60]!r}")
    return kinds[attribute.type]()


def _is_float_list(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"  # ONNX has no attributes in double


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace")


def names_of(inputs: Iterable[tuple[str, int]]) -> tuple[str, ...] | None:
    """The names of the columns: the inputs' own if there is one for each column, else None."""
    pairs = list(inputs)
    if len(pairs) == 1 and pairs[0][1] > 1:
        return None
    return tuple(name if count == 1 else f"{name}[{k}]" for name, count in pairs for k in range(count))
