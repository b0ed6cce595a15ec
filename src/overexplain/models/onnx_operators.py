"""The white list: what each ONNX operator does to an affine function of the inputs. What is not here is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import UnsupportedModel
from overexplain.models import onnx_decisions as decisions
from overexplain.models.onnx_graph import Node
from overexplain.models.onnx_values import (
    Affine,
    Choice,
    Curve,
    Decision,
    Exponential,
    Opaque,
    Shares,
    Total,
    Value,
    added,
    as_affine,
    as_constant,
    multiplied,
    negated,
    picked,
    scaled,
    shifted,
    stacked,
)

_CURVED = (Curve, Shares, Exponential, Total)
Operator = Callable[[Node, Sequence[Value]], Sequence[Value]]
_FLOATS, _TRUTH = (1, 11), 9


def apply(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    """The outputs of a node whose inputs are `values`; raises UnsupportedModel, naming the node."""
    operator = OPERATORS.get(node.operator)
    if operator is None:
        raise UnsupportedModel(
            f"{node}: this operator is not on the list of those that keep a model linear; give the linear part alone, "
            "or write its coefficients to a JSON file"
        )
    try:
        return operator(node, values)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        reason = (
            str(error)
            if isinstance(error, UnsupportedModel)
            else f"cannot be followed ({type(error).__name__}: {error})"
        )
        raise UnsupportedModel(f"{node}: {reason}") from None


def _same(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    return [values[0]]


def _cast(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value, to = values[0], node.attributes.get("to")
    if isinstance(value, np.ndarray):
        return [value.astype(np.float64) if to in _FLOATS and value.dtype.kind in "fiub" else value]
    if isinstance(value, (Decision, Choice)) or to in _FLOATS:
        return [value]
    if isinstance(value, Total) and isinstance(value.table, Curve) and to == _TRUTH:
        return [np.ones((1, 1), dtype=np.bool_)]  # a sum of probabilities is not 0
    raise UnsupportedModel("numbers are rounded on the way, which is not linear")


def _dropout(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    if len(values) > 2 and bool(np.any(as_constant(values[2]))):
        raise UnsupportedModel("it is in training mode: export the model for inference")
    return [values[0]]


def _reshape(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    shape = node.attributes["shape"] if "shape" in node.attributes else as_constant(values[1])
    if isinstance(value, np.ndarray):
        wanted = [value.shape[i] if size == 0 else int(size) for i, size in enumerate(shape.ravel())]
        return [value.reshape(wanted)]
    if isinstance(value, (Decision, Choice)):
        if math.prod(abs(int(size)) for size in shape.ravel()) > 1:
            raise UnsupportedModel("decisions are put into a table")
        return [value]
    return [_in_form(value, [int(size) for size in shape.ravel()])]


def _in_form(value: Value, shape: list[int]) -> Value:
    """Scores as a table or as a list, if each case keeps its own row."""
    if isinstance(value, Curve):
        inner = _in_form(value.score, shape)
        assert isinstance(inner, Affine)
        return Curve(inner)
    if isinstance(value, Opaque):
        return value
    if not isinstance(value, Affine):
        raise UnsupportedModel("what is reshaped is no table of scores")
    if len(shape) == 2 and shape[0] in (-1, 0) and shape[1] in (value.width, -1 if shape[0] == 0 else value.width):
        return replace(value, flat=False)
    if shape in ([-1], [0]) and value.width == 1:
        return replace(value, flat=True)
    raise UnsupportedModel(f"a table of {value.width} columns is reshaped to {shape}, which mixes the cases")


def _flatten(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("axis", 1) not in (1, -1):
        raise UnsupportedModel("it is flattened along another axis than 1, which mixes the cases")
    return [values[0]]


def _squeeze(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    axes = node.attributes["axes"] if "axes" in node.attributes else as_constant(values[1])
    if axes.ravel().tolist() not in ([1], [-1]):
        raise UnsupportedModel("another axis than 1 is taken away or added")
    if isinstance(values[0], (Decision, Choice)):
        return [values[0]]
    return [_in_form(values[0], [-1] if node.operator == "Squeeze" else [-1, 1])]


def _concat(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if all(isinstance(value, np.ndarray) for value in values):
        return [np.concatenate([as_constant(value) for value in values], axis=node.attributes["axis"])]
    if node.operator == "Concat" and node.attributes.get("axis") not in (1, -1):
        raise UnsupportedModel("it joins along another axis than 1, which mixes the cases")
    if all(isinstance(value, Curve) for value in values):
        return [Curve(stacked([value.score for value in values if isinstance(value, Curve)]))]
    return [stacked([as_affine(value) for value in values])]


def _vectorizer(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    widths = [int(width) for width in node.attributes.get("inputdimensions", [])]
    if widths and widths != [as_affine(value).width for value in values]:
        raise UnsupportedModel(f"inputdimensions {widths[:8]} do not fit its inputs")
    return [stacked([as_affine(value) for value in values])]


def _gemm(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    settings = node.attributes
    weights = as_constant(values[1])
    if settings.get("transA", 0):
        raise UnsupportedModel("the table of cases is transposed")
    result = multiplied(as_affine(values[0]), weights.T if settings.get("transB", 0) else weights)
    result = scaled(result, np.array(settings.get("alpha", 1.0)))
    if len(values) > 2:
        result = shifted(result, settings.get("beta", 1.0) * as_constant(values[2]))
    return [result]


def _matmul(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    if isinstance(values[0], np.ndarray) and not isinstance(values[1], np.ndarray):
        raise UnsupportedModel("a constant stands left of the table of cases, which mixes them")
    return [multiplied(as_affine(values[0]), as_constant(values[1]))]


def _arithmetic(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    left, right = values
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return [_folded(node, left, right)]
    if isinstance(left, _CURVED) or isinstance(right, _CURVED):
        return [decisions.arithmetic(node, left, right)]
    if node.operator in ("Add", "Sub"):
        if isinstance(right, np.ndarray):
            return [shifted(as_affine(left), right if node.operator == "Add" else -right)]
        second = as_affine(right) if node.operator == "Add" else negated(as_affine(right))
        return [shifted(second, left) if isinstance(left, np.ndarray) else added(as_affine(left), second)]
    if isinstance(left, np.ndarray) and node.operator == "Mul":
        left, right = right, left
    if not isinstance(right, np.ndarray):
        raise UnsupportedModel(
            "two results that both depend on the inputs are multiplied or divided, which is not linear"
        )
    if node.operator == "Div":
        if not np.all(right):
            raise UnsupportedModel("it divides by zero")
        right = 1.0 / np.asarray(right, dtype=np.float64)
    return [scaled(as_affine(left), right)]


def _folded(node: Node, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    if np.broadcast_shapes(left.shape, right.shape) not in (left.shape, right.shape):
        raise UnsupportedModel("two constants are blown up to a larger one")
    by_name = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    with np.errstate(all="ignore"):
        return np.asarray(by_name[node.operator](np.asarray(left, np.float64), np.asarray(right, np.float64)))


def _negate(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    return [-value if isinstance(value, np.ndarray) else negated(as_affine(value))]


def _square_root(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    with np.errstate(all="ignore"):
        return [np.sqrt(np.asarray(as_constant(values[0]), dtype=np.float64))]


def _constant_node(node: Node, _: Sequence[Value]) -> Sequence[Value]:
    (value,) = node.attributes.values()
    return [np.asarray(value)]


def _gather(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    table, indices = values[0], values[1]
    if isinstance(table, np.ndarray) and isinstance(indices, (Decision, Choice)):  # the names of the classes
        names = tuple(table.ravel())
        if indices.classes != tuple(range(len(names))):
            raise UnsupportedModel(f"one of {len(indices.classes)} classes is looked up among {len(names)} names")
        return [replace(indices, classes=names)]
    if node.operator == "Gather" and node.attributes.get("axis", 0) not in (1, -1):
        raise UnsupportedModel("it picks along another axis than 1, which drops cases")
    chosen = as_constant(indices)
    if isinstance(table, (Shares, Opaque)):
        return [Opaque()]
    if isinstance(table, Curve):
        return [Curve(picked(table.score, chosen))]
    return [picked(as_affine(table), chosen)]


def _slice(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    names = ("starts", "ends", "axes", "steps")
    settings = {name: node.attributes[name] for name in names if name in node.attributes}
    settings |= {name: as_constant(value).ravel() for name, value in zip(names, values[1:], strict=False)}
    starts, ends, axes, steps = (settings[name].tolist() if name in settings else None for name in names)
    if axes not in ([1], [-1]) or starts is None or ends is None or steps not in (None, [1]):
        raise UnsupportedModel("it cuts along another axis than 1, or in steps")
    value = values[0]
    if isinstance(value, (Shares, Opaque)):
        return [Opaque()]
    score = value.score if isinstance(value, Curve) else as_affine(value)
    kept = picked(score, np.arange(score.width)[starts[0] : ends[0]])
    return [Curve(kept) if isinstance(value, Curve) else kept]


def _scaler(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    table = shifted(as_affine(values[0]), -node.attributes.get("offset", np.zeros(1)))
    return [scaled(table, node.attributes.get("scale", np.ones(1)))]


def _batch_normalization(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("training_mode", 0):
        raise UnsupportedModel("it is in training mode: export the model for inference")
    scale, bias, mean, variance = (np.asarray(as_constant(value), dtype=np.float64) for value in values[1:5])
    by = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    return [shifted(scaled(as_affine(values[0]), by), bias - mean * by)]


def _imputer(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if not math.isnan(node.attributes.get("replaced_value_float", 0.0)):
        raise UnsupportedModel("a number other than NaN is replaced, which is not linear")
    return [values[0]]  # finite numbers stay as they are


_ML: Final = "ai.onnx.ml."
OPERATORS: Final[dict[str, Operator]] = {
    "Identity": _same, "Cast": _cast, "Dropout": _dropout, "Reshape": _reshape, "Flatten": _flatten,
    "Squeeze": _squeeze, "Unsqueeze": _squeeze, "Concat": _concat, "Gather": _gather, "Slice": _slice,
    "Constant": _constant_node, "Gemm": _gemm, "MatMul": _matmul, "BatchNormalization": _batch_normalization,
    "Add": _arithmetic, "Sub": _arithmetic, "Mul": _arithmetic, "Div": _arithmetic, "Neg": _negate,
    "Sqrt": _square_root, "Abs": decisions.absolute, "ReduceSum": decisions.row_sum,
    "Exp": decisions.exponential, "Reciprocal": decisions.reciprocal,
    "Sigmoid": decisions.sigmoid, "Softmax": decisions.softmax, "ArgMax": decisions.argmax,
    "Not": decisions.negation, "Where": decisions.where,
    "Greater": decisions.compare, "GreaterOrEqual": decisions.compare, "Less": decisions.compare, "LessOrEqual": decisions.compare,
    _ML + "Scaler": _scaler, _ML + "Normalizer": decisions.normalizer, _ML + "Imputer": _imputer,
    _ML + "FeatureVectorizer": _vectorizer, _ML + "ArrayFeatureExtractor": _gather, _ML + "Binarizer": decisions.binarizer,
    _ML + "SVMClassifier": decisions.support_vector_classifier, _ML + "LinearClassifier": decisions.linear_classifier,
    _ML + "LinearRegressor": decisions.linear_regressor, _ML + "ZipMap": decisions.zip_map,
}  # fmt: skip
