"""A second opinion on what was read from an ONNX file: ONNX's own reference implementation, on points beside the planes.

It only ever runs graphs whose every node was followed first, so nothing but the white list, and in the child process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import UnsupportedModel
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.onnx_graph import Graph
from overexplain.models.onnx_values import Affine, Choice, Curve, Decision, Named, Shares, Value, scores_of

POINTS: Final = 64
SINGLE, DOUBLE = 1e-4, 1e-9
"""How far results may differ, relative to the terms of their sum, for numbers stored in float32 and in float64."""

_SMALLEST: Final = 1e-30
"""Sums of sigmoids below this are not divided by: single precision would have rounded them, or made 0 of them."""
_KINDS: Final[dict[int, Any]] = {1: np.float32, 6: np.int32, 7: np.int64, 11: np.float64}


def compared(
    parsed: Any, graph: Graph, values: Mapping[str, Value], model: LinearModel | MulticlassModel
) -> str | None:
    """How the outputs were compared with the reference, in words; None if that cannot run the graph.

    Raises UnsupportedModel if a label, a score or a probability differs.
    """
    tolerance = SINGLE if "float" in graph.floats else DOUBLE
    if isinstance(model, MulticlassModel):
        points = _between(model.argmax, tolerance)
    else:
        plane = model.hyperplane
        points = _beside(plane.normal[None], np.array([plane.offset]), np.random.default_rng(0))
    feeds, rows = _feeds(parsed, graph, points)
    answers = _run(parsed, feeds)
    if answers is None:
        return None
    seen = 0
    for name, answer in zip(graph.outputs, answers, strict=True):
        wrong = _wrong(values[name], answer, rows, model, tolerance)
        if wrong is not None and wrong.any():
            raise UnsupportedModel(
                f"what was read from it contradicts ONNX's reference implementation at output {name[:60]!r} on "
                f"{int(wrong.sum())} of {POINTS} points; write its coefficients to a JSON file"
            )
        seen += wrong is not None
    return f"compared with ONNX's reference implementation on {POINTS} points" if seen else None


def label(value: Any) -> str:
    """The name of a class as text: whole numbers without a point, truth values as 0 and 1."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, bool) or (isinstance(plain, float) and plain.is_integer()):
        plain = int(plain)
    return str(plain)


def _feeds(parsed: Any, graph: Graph, rows: FloatArray) -> tuple[dict[str, NDArray[Any]], FloatArray]:
    """(what to give each input, the same as rows), rounded to the kind of number each takes."""
    feeds, first = {}, 0
    kinds = {value.name: value.type.tensor_type.elem_type for value in parsed.graph.input}
    for name, count in graph.inputs:
        feeds[name] = np.ascontiguousarray(rows[:, first : first + count]).astype(_KINDS[kinds[name]])
        first += count
    return feeds, np.hstack([feeds[name].astype(np.float64) for name, _ in graph.inputs])


def _beside(normals: FloatArray, offsets: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points on both sides of the planes (one for all points, or one each) to which every feature contributes alike."""
    used = normals != 0
    share = (offsets / np.maximum(1, used.sum(axis=1)))[:, None]
    terms = share + np.maximum(1.0, np.abs(share)) * rng.normal(size=(POINTS, normals.shape[1]))
    with np.errstate(all="ignore"):
        rows = np.where(used, terms / np.where(used, normals, 1.0), rng.normal(size=terms.shape))
    return _bounded(rows)


def _between(argmax: ArgmaxModel, tolerance: float) -> FloatArray:
    """Points around the planes between two classes; every other one as close beside that of its best two as can be told."""
    rng = np.random.default_rng(0)
    first = rng.integers(argmax.classes, size=POINTS)
    second = (first + rng.integers(1, argmax.classes, size=POINTS)) % argmax.classes
    with np.errstate(all="ignore"):
        normals = argmax.weights[second] - argmax.weights[first]
        rows = _beside(normals, argmax.intercepts[first] - argmax.intercepts[second], rng)
        for _ in range(3):  # on the way to one plane another class may become the best
            scores = argmax.scores(rows)
            second, first = np.argsort(scores, axis=1)[:, -2:].T
            normals = argmax.weights[first] - argmax.weights[second]
            reach = np.abs(rows) @ np.abs(argmax.weights).T + np.abs(argmax.intercepts)
            way = (_lead(scores) - 10 * tolerance * reach.max(axis=1)) / (normals**2).sum(axis=1)
            rows[::2] = _bounded(rows - way[:, None] * normals)[::2]
    return rows


def _bounded(rows: FloatArray) -> FloatArray:
    return np.asarray(np.clip(np.nan_to_num(rows), -1e9, 1e9))


def _run(parsed: Any, feeds: dict[str, NDArray[Any]]) -> Any:
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class ZipMap(OpRun):
        """Which the reference does not have: it only names what it is given."""

        op_domain = "ai.onnx.ml"

        def _run(self, scores: Any, **_: Any) -> tuple[Any]:
            return (scores,)

    try:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(parsed, new_ops=[ZipMap]).run(None, feeds)
    except Exception:  # its own gaps are no reason to refuse a model
        return None


def _wrong(value: Value, answer: Any, rows: FloatArray, model: LinearModel | MulticlassModel, tolerance: float) -> Any:
    """Where the reference says otherwise; None: this output cannot be compared."""
    if isinstance(value, Named):
        value = value.scores
    answer = np.asarray(answer)
    if isinstance(value, Choice):
        return _another_class(value, answer, rows, tolerance) if answer.size == POINTS else None
    if isinstance(value, Decision) and isinstance(model, LinearModel) and answer.size == POINTS and model.classes:
        plane = model.hyperplane
        reach = np.abs(rows) @ np.abs(plane.normal) + abs(plane.offset)
        clear = np.abs(plane.margin(rows)) > tolerance * reach
        says_yes = np.array([label(one) == model.classes[1] for one in answer.ravel()])
        return clear & (says_yes != (plane.labels(rows) == YES))
    if not isinstance(value, (Affine, Curve, Shares)) or answer.size != POINTS * scores_of(value).width:
        return None
    wanted, reach = _entries(value, rows)
    found = answer.reshape(wanted.shape).astype(np.float64)
    return np.any(np.abs(found - wanted) > tolerance * (1 + reach), axis=1)


def _entries(table: Affine | Curve | Shares, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(the entries of the table, how large the terms of the scores behind them are)."""
    score = scores_of(table)
    scores = (score.matrix @ rows.T).T + score.constant
    reach = (abs(score.matrix) @ np.abs(rows).T).T + np.abs(score.constant)
    if isinstance(table, Affine):
        return scores, reach
    if isinstance(table, Curve):
        return _sigmoid(scores), reach
    parts = np.exp(scores - scores.max(axis=1, keepdims=True)) if table.softmax else _sigmoid(scores)
    total = parts.sum(axis=1, keepdims=True)
    return parts / np.where(total > _SMALLEST, total, np.nan), reach


def _sigmoid(scores: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-np.logaddexp(0.0, -scores)))


def _another_class(choice: Choice, answer: Any, rows: FloatArray, tolerance: float) -> Any:
    """Where another class was chosen, although rounding cannot decide: neither of scores nor of what is made of them."""
    scores, reach = _entries(scores_of(choice.table), rows)
    entries, _ = _entries(choice.table, rows)
    clear = _lead(scores) > tolerance * reach.max(axis=1)
    if not isinstance(choice.table, Affine):
        clear &= _lead(entries) > tolerance
    names = [label(name) for name in choice.classes]
    said = np.array([label(one) for one in answer.ravel()])
    return clear & (said != np.array(names)[scores.argmax(axis=1)])


def _lead(entries: FloatArray) -> FloatArray:
    """How far the largest of every row is above the second."""
    ordered = np.sort(entries, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])
