"""Open Inference Protocol (v2) bodies: named tensors in, one tensor of labels out.

Either one tensor of shape [n, p], whatever its name, or one of shape [n, 1] or [n] for every feature, by its name.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.oracles.served.bodies import Layout, Refused, finite, listed, refuse_many, refuse_unknown, show

INPUT: Final = "features"
OUTPUT: Final = "label"
FLOATS: Final = ("FP64", "FP32")
INTEGERS: Final = ("INT64", "INT32", "INT16", "INT8", "UINT64", "UINT32", "UINT16", "UINT8")
DATATYPES: Final = (*FLOATS, *INTEGERS)


def read_tensors(body: dict[str, Any], layout: Layout) -> tuple[FloatArray, str | None]:
    """The rows of an infer request, and its id if it has one.

    >>> tensor = {"name": "x", "shape": [1, 2], "datatype": "FP64", "data": [1.5, 2.0]}
    >>> read_tensors({"id": "a", "inputs": [tensor]}, Layout(2))
    (array([[1.5, 2. ]]), 'a')
    """
    refuse_unknown(body, ("id", "parameters", "inputs", "outputs"), "the body")
    name = body.get("id")
    if name is not None and not isinstance(name, str):
        raise Refused(400, f'"id" must be a string, got {show(name)}')
    _parameters(body, "the body")
    _wanted(body.get("outputs"))
    inputs = body.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise Refused(400, f'"inputs" must be a list of one tensor or more, got {show(inputs)}')
    read = [_tensor(entry, i) for i, entry in enumerate(inputs)]
    if len(read) == 1 and read[0][1].ndim == 2 and read[0][1].shape[1] == layout.dimension:
        return read[0][1], name
    return _columns(read, layout), name


def write_labels(model: str, labels: list[int], name: str | None) -> dict[str, Any]:
    """The reply to an infer request: 1 for Yes, 0 for No."""
    data = [int(label == YES) for label in labels]
    output = {"name": OUTPUT, "datatype": "INT64", "shape": [len(labels)], "data": data}
    return {"model_name": model, **({} if name is None else {"id": name}), "outputs": [output]}


def metadata(model: str, layout: Layout) -> dict[str, Any]:
    """What the protocol tells about a model: its tensors."""
    return {
        "name": model,
        "versions": [],
        "platform": "overexplain",
        "inputs": [{"name": INPUT, "datatype": "FP64", "shape": [-1, layout.dimension]}],
        "outputs": [{"name": OUTPUT, "datatype": "INT64", "shape": [-1]}],
    }


def _tensor(entry: Any, i: int) -> tuple[str, FloatArray]:
    """The name and the numbers of one input."""
    if not isinstance(entry, dict):
        raise Refused(400, f"input {i} must be an object, got {show(entry)}")
    refuse_unknown(entry, ("name", "shape", "datatype", "parameters", "data"), f"input {i}")
    name, shape, datatype = entry.get("name"), entry.get("shape"), entry.get("datatype")
    if not isinstance(name, str):
        raise Refused(400, f'input {i}: "name" must be a string, got {show(name)}')
    where = f"input {i} ({show(name)})"
    _parameters(entry, where)
    if not isinstance(shape, list) or not shape or not all(type(n) is int and n > 0 for n in shape) or len(shape) > 2:
        raise Refused(400, f'{where}: "shape" must be [n] or [n, columns], positive whole numbers, got {show(shape)}')
    if datatype not in DATATYPES:
        raise Refused(400, f'{where}: "datatype" must be one of {", ".join(DATATYPES)}, got {show(datatype)}')
    if "data" not in entry:
        raise Refused(400, f'{where} has no "data"; tensors are read as JSON only, not in binary form')
    flat = _flat(entry["data"], shape, where)
    refuse_many(shape[0])
    values = [finite(value, f"{where}, entry {k} of data") for k, value in enumerate(flat)]
    return name, _typed(np.array(values), flat, datatype, where).reshape(shape)


def _flat(data: Any, shape: list[int], where: str) -> list[Any]:
    """The entries of a tensor in row-major order, given flat or nested."""
    if not isinstance(data, list):
        raise Refused(400, f'{where}: "data" must be a list, got {show(data)}')
    size = math.prod(shape)
    if len(shape) == 2 and any(isinstance(row, list) for row in data):
        bad = next((k for k, row in enumerate(data) if not isinstance(row, list) or len(row) != shape[1]), None)
        if len(data) != shape[0] or bad is not None:
            place = f"it has {len(data)} rows" if bad is None else f"row {bad} is {show(data[bad])}"
            raise Refused(400, f'{where}: nested "data" does not have shape {shape}: {place}')
        return [value for row in data for value in row]
    if len(data) != size:
        raise Refused(400, f'{where}: shape {shape} needs {size} numbers in "data", got {len(data)}')
    return list(data)


def _typed(values: FloatArray, given: list[Any], datatype: str, where: str) -> FloatArray:
    """The values as their datatype holds them."""
    if datatype == "FP64":
        return values
    if datatype == "FP32":
        with np.errstate(over="ignore"):
            held = values.astype(np.float32).astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(held))
    else:
        held = values
        limits = np.iinfo(datatype.lower())
        fits = [type(value) is int and limits.min <= value <= limits.max for value in given]
        wrong = np.flatnonzero(~np.array(fits))
    if len(wrong):
        k = int(wrong[0])
        raise Refused(400, f"{where}, entry {k} of data: {show(given[k])} is no {datatype}")
    return held


def _columns(read: list[tuple[str, FloatArray]], layout: Layout) -> FloatArray:
    """The rows that tensors with one column each make together."""
    names = [name for name, _ in read]
    one = f"one tensor of shape [n, {layout.dimension}]"
    if layout.features is None:
        got = f"{len(read)} inputs" if len(read) > 1 else f"shape {list(read[0][1].shape)}"
        raise Refused(400, f"this model takes {one}, got {got}")
    wanted = f"{one}, or one of shape [n, 1] for each of {listed(layout.features)}"
    if sorted(names) != sorted(layout.features):
        got = f"{listed(names)}" if len(read) > 1 else f"{show(names[0])} of shape {list(read[0][1].shape)}"
        raise Refused(400, f"this model takes {wanted}; got {got}")
    columns = dict(read)
    count = len(read[0][1])
    for name, values in read:
        if (values.ndim == 2 and values.shape[1] != 1) or len(values) != count:
            raise Refused(400, f"input {show(name)} has shape {list(values.shape)}, needed is [{count}, 1]")
    return np.column_stack([columns[name].reshape(-1) for name in layout.features])


def _wanted(outputs: Any) -> None:
    if outputs is None:
        return
    if not isinstance(outputs, list) or not all(isinstance(entry, dict) for entry in outputs):
        raise Refused(400, f'"outputs" must be a list of objects, got {show(outputs)}')
    for entry in outputs:
        refuse_unknown(entry, ("name", "parameters"), "an output")
        if entry.get("name") != OUTPUT:
            raise Refused(400, f"there is no output {show(entry.get('name'))}; this model has {OUTPUT!r}")


def _parameters(entry: dict[str, Any], where: str) -> None:
    """Parameters are hints to servers that know them; they must be an object and are otherwise left alone."""
    if not isinstance(entry.get("parameters", {}), dict):
        raise Refused(400, f'{where}: "parameters" must be an object, got {show(entry["parameters"])}')
