"""ONNX files: the affine function that a graph of linear operators computes, followed from the inputs to the decision.

No runtime runs the file. Its nodes are on a white list (`onnx_operators`), each of which maps x ↦ Mx + c to another such
function; the last ones make a probability or a decision of it. In the child process the result is then compared with
ONNX's own reference implementation on points beside the plane, or beside the planes between several classes.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel, ZeroNormal
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.onnx_classes import choose
from overexplain.models.onnx_graph import Graph, names_of, read_graph
from overexplain.models.onnx_operators import apply
from overexplain.models.onnx_reference import compared, label
from overexplain.models.onnx_values import Affine, Curve, Decision, Named, Value, column, contrast, equal, picked
from overexplain.models.sandbox import LARGEST_FILE, Stored, read_in_child, read_multiclass_in_child
from overexplain.models.sniff import read_bounded


def read_onnx(path: str | os.PathLike[str], threshold: float | None = None) -> LinearModel:
    """The linear model in an ONNX file; `threshold` replaces its own cut. Needs the extra `onnx`."""
    return stored_onnx(path, threshold).model


def stored_onnx(path: str | os.PathLike[str], threshold: float | None = None) -> Stored[LinearModel]:
    """As `read_onnx`, with what there is to say about the file."""
    return read_in_child("onnx", read_bounded(path, LARGEST_FILE), path, threshold)


def stored_multiclass_onnx(path: str | os.PathLike[str]) -> Stored[MulticlassModel]:
    """The linear model of several classes (or of two) in an ONNX file, with what there is to say about the file."""
    return read_multiclass_in_child("onnx", read_bounded(path, LARGEST_FILE), path)


def open_onnx(
    content: bytes, threshold: float | None, raise_fence: Callable[..., None]
) -> Stored[LinearModel] | Stored[MulticlassModel]:
    """What is in the bytes of an ONNX file, of two classes or of several; only for the child process."""
    try:
        import onnx  # noqa: F401  (what is imported now need not be imported behind the fence)
    except ImportError:
        raise UnsupportedModel("reading it needs onnx: pip install 'overexplain[onnx]'") from None
    raise_fence(unpickling=False)
    graph, parsed = read_graph(content)
    values = follow(graph)
    outputs, features = [values[name] for name in graph.outputs], names_of(graph.inputs)
    several = choose(outputs, features)
    model, notes = decide(outputs, features) if several is None else several
    checked = compared(parsed, graph, values, model)
    if "float" in graph.floats:
        notes = [
            *notes,
            "stored in float32: the original decides in single precision, which may differ beside the plane",
        ]
    if any(node.operator == "ai.onnx.ml.Imputer" for node in graph.nodes):
        notes = [*notes, "missing values are filled in before the model; for rows without gaps it is as shown"]
    if isinstance(model, MulticlassModel):  # whoever asked for Yes and No, or with a threshold, is told by the parent
        return Stored(model, tuple(notes), checked)
    return Stored(model if threshold is None else model.with_threshold(threshold), tuple(notes), checked)


def follow(graph: Graph) -> dict[str, Value]:
    """What every name in the graph stands for."""
    total = sum(count for _, count in graph.inputs)
    values: dict[str, Value] = dict(graph.constants)
    first = 0
    for name, count in graph.inputs:
        values[name] = column(total, first, count)
        first += count
    for node in graph.nodes:
        missing = [name for name in node.inputs if name not in values]
        if missing:
            raise InvalidInput(
                f"{node} needs {missing[0][:60]!r}, which nothing before it gives: a cycle, or a damaged file"
            )
        results = apply(node, [values[name] for name in node.inputs])
        for name, result in zip(node.outputs, results, strict=False):
            if name in values:
                raise InvalidInput(f"{node} gives {name[:60]!r} a second time; the file is damaged or made up")
            values[name] = result
    unknown = [name for name in graph.outputs if name not in values]
    if unknown:
        raise UnsupportedModel(f"output {unknown[0][:60]!r} is given by no node that can be followed")
    return values


def decide(outputs: Sequence[Value], features: tuple[str, ...] | None) -> tuple[LinearModel, list[str]]:
    """(the model, what to say about it): the decision among the outputs, or the one that probabilities or scores imply."""
    decisions = [value for value in outputs if isinstance(value, Decision)]
    named = [value for value in outputs if isinstance(value, Named)]
    plain = [value.scores if isinstance(value, Named) else value for value in outputs]
    curves = [value for value in plain if isinstance(value, Curve)]
    scores = [value for value in plain if isinstance(value, Affine)]
    classes = (named[0].classes[0], named[0].classes[1]) if named else None
    notes: list[str] = []
    if decisions:
        found = decisions[0]
        if any(not equal(found.margin, other.margin) for other in decisions[1:]):
            raise UnsupportedModel(f"it makes {len(decisions)} different decisions; only one is read")
        logistic = found.threshold is not None or any(_has(curve.score, found.margin) for curve in curves)
        return _model(found.margin, features, found.classes, found.threshold, logistic), notes
    if curves:
        margin = _implied(curves)
        notes.append("it gives probabilities only; Yes is where they reach one half")
        return _model(margin, features, classes, None, logistic=True), notes
    if len(scores) != 1 or scores[0].regression or scores[0].width > 2:
        raise UnsupportedModel(
            "it gives no decision between two classes (no label, no probability) or among more; store its coefficients in a "
            "JSON file and say there where Yes begins (cutoff)"
        )
    notes.append("it gives scores only; Yes is where the score reaches 0, or that of the second class the first's")
    return _model(
        contrast(scores[0]) if scores[0].width == 2 else scores[0], features, classes, None, logistic=False
    ), notes


def _implied(curves: Sequence[Curve]) -> Affine:
    """The score behind probabilities: of Yes alone, or of both classes that add up to one."""
    columns = [picked(_table(curve.score), np.array([k])) for curve in curves for k in range(curve.width)]
    if len(columns) == 1 or (len(columns) == 2 and equal(columns[0], _minus(columns[1]))):
        return columns[-1]
    raise UnsupportedModel(f"it gives {len(columns)} probabilities that are not those of one decision")


def _model(
    margin: Affine,
    features: tuple[str, ...] | None,
    classes: tuple[Any, Any] | None,
    threshold: float | None,
    logistic: bool,
) -> LinearModel:
    normal, constant = margin.matrix.toarray()[0], float(margin.constant[0])
    if not np.isfinite(normal).all() or not np.isfinite(constant):
        raise NotFinite("its coefficients multiply to NaN or to more than float64 can hold")
    if not normal.any():
        raise ZeroNormal("every coefficient is zero: all points get the same answer, there is no plane")
    if classes is not None and all(isinstance(name, numbers.Real) for name in classes) and classes[0] > classes[1]:
        # Yes is 1 and not 0, whichever comes first.
        normal, constant, classes = -normal, -constant, (classes[1], classes[0])
        threshold = None if threshold is None else 1 - threshold
    names = None if classes is None else (label(classes[0]), label(classes[1]))
    return LinearModel(
        Hyperplane.from_intercept(normal, constant),
        features,
        threshold,
        names,
        "logistic" if logistic else "none",
        source="ONNX",
    )


def _table(affine: Affine) -> Affine:
    return Affine(affine.matrix, affine.constant)


def _minus(affine: Affine) -> Affine:
    return Affine(-affine.matrix, -affine.constant)


def _has(table: Affine, wanted: Affine) -> bool:
    """Whether one of the columns is the wanted one."""
    return any(equal(picked(_table(table), np.array([k])), wanted) for k in range(table.width))
