"""ONNX files that try something; beside `malicious_files`, into whose list they go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from malicious_files import MALICIOUS

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 1])


def model(nodes: list[Any], constants: Any = (), inputs: Any = (X,), outputs: Any = (Y,), **more: Any) -> Any:
    """A model of these parts, not checked."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializer=constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, **more)


def weights(dims: list[int] | None = None, raw: bytes | None = None) -> Any:
    tensor = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT)
    tensor.dims.extend(dims if dims is not None else [2, 1])
    tensor.raw_data = raw if raw is not None else b"\x00\x00\x80\x3f" * 2
    return tensor


def product(tensor: Any, **more: Any) -> Any:
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor], **more)


def _external(location: str) -> Any:
    tensor = weights(raw=b"")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return product(tensor)


def _cycle() -> Any:
    return model([helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Add", ["a", "x"], ["b"]),
                  helper.make_node("Identity", ["b"], ["y"])])  # fmt: skip


def _deep(levels: int) -> Any:
    """If nodes inside one another."""
    inner = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "inner", [], [Y])
    for _ in range(levels):
        choice = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
        inner = helper.make_graph([choice], "inner", [], [Y])
        if inner.ByteSize() > 2**22:
            break
    return model(list(inner.node))


def _nested_bytes() -> bytes:
    """A protobuf that says graph inside attribute inside node inside graph, ten thousand times."""

    def field(number: int, content: bytes) -> bytes:
        out, size = bytearray([number << 3 | 2]), len(content)
        while size > 127:
            out.append(size & 127 | 128)
            size >>= 7
        out.append(size)
        return bytes(out) + content

    content = b""
    for _ in range(3000):
        content = field(1, field(5, field(6, content)))
    return b"\x08\x08" + field(7, content)


def _loop() -> Any:
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "body", [], [Y])
    return model([helper.make_node("Loop", ["", "x"], ["y"], body=body)])


def _doubling() -> Any:
    nodes = [helper.make_node("Concat", [f"v{k}", f"v{k}"], [f"v{k + 1}"], axis=1) for k in range(1, 60)]
    return model([helper.make_node("Identity", ["x"], ["v1"]), *nodes, helper.make_node("Identity", ["v60"], ["y"])])


def _function() -> Any:
    call = helper.make_node("Evil", ["x"], ["y"], domain="evil")
    body = helper.make_function("evil", "Evil", ["x"], ["y"], [call], [helper.make_opsetid("", 17)])
    return model([call], functions=[body])


def _twice() -> Any:
    return model([helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])])


def _custom() -> Any:
    return model([helper.make_node("PyOp", ["x"], ["y"], domain="ai.onnx.contrib", module="os", compute="system")])


GRAPHS: dict[str, Callable[[], Any]] = {
    "giant-tensor": lambda: product(weights([2**40, 1])),
    "overflowing-tensor": lambda: product(weights([2**62, 4])),
    "negative-tensor": lambda: product(weights([-2, -1])),
    "many-dimensions": lambda: product(weights([1] * 1000)),
    "short-tensor": lambda: product(weights([2, 1], b"\x00\x00\x80")),
    "giant-input": lambda: product(weights(), inputs=[helper.make_tensor_value_info("x", 1, [None, 2**50])]),
    "unknown-type": lambda: product(onnx.TensorProto(name="w", data_type=99, dims=[2, 1])),
    "external-parent": lambda: _external("../../../../etc/passwd"),
    "external-absolute": lambda: _external("/etc/passwd"),
    "cycle": _cycle,
    "graphs-in-graphs": lambda: _deep(12),
    "endless-loop": _loop,
    "doubling": _doubling,
    "function-that-calls-itself": _function,
    "same-name-twice": _twice,
    "python-operator": _custom,
    "nothing": lambda: onnx.ModelProto(ir_version=8),
    "not-a-number": lambda: product(weights(raw=b"\x00\x00\xc0\x7f" * 2)),
    "all-zero": lambda: product(weights(raw=bytes(8))),
    "many-nodes": lambda: model([helper.make_node("Identity", ["x"], ["y"])] * 20_000),
}


def _register() -> None:
    for name, make in GRAPHS.items():

        def write(folder: Path, canary: Path, name: str = name, make: Callable[[], Any] = make) -> Path:
            (folder / f"{name}.onnx").write_bytes(make().SerializeToString())
            return folder / f"{name}.onnx"

        MALICIOUS[f"onnx-{name}"] = write

    def nested(folder: Path, canary: Path) -> Path:
        (folder / "nested.onnx").write_bytes(_nested_bytes())
        return folder / "nested.onnx"

    def cut(folder: Path, canary: Path) -> Path:
        (folder / "cut.onnx").write_bytes(product(weights()).SerializeToString()[:-20])
        return folder / "cut.onnx"

    MALICIOUS["onnx-nested-bytes"] = nested
    MALICIOUS["onnx-cut"] = cut


_register()
