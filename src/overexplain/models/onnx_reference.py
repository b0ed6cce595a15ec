"""A second opinion on what was read from an ONNX file: ONNX's own reference implementation, on points beside the plane.

It only ever runs graphs whose every node was followed first, so nothing but the white list, and in the child process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import UnsupportedModel
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import YES, Hyperplane
from overexplain.models.linear import LinearModel
from overexplain.models.onnx_graph import Graph
from overexplain.models.onnx_values import Affine, Curve, Decision, Named, Value

POINTS: Final = 64
SINGLE, DOUBLE = 1e-4, 1e-9
"""How far results may differ, relative to the terms of their sum, for numbers stored in float32 and in float64."""

_KINDS: Final[dict[int, Any]] = {1: np.float32, 6: np.int32, 7: np.int64, 11: np.float64}


def compared(parsed: Any, graph: Graph, values: Mapping[str, Value], model: LinearModel) -> str | None:
    """How the outputs were compared with the reference, in words; None if that cannot run the graph.

    Raises UnsupportedModel if a label, a score or a probability differs.
    """
    feeds, rows = _feeds(parsed, graph, model.hyperplane)
    answers = _run(parsed, feeds)
    if answers is None:
        return None
    tolerance = SINGLE if "float" in graph.floats else DOUBLE
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


def _feeds(parsed: Any, graph: Graph, plane: Hyperplane) -> tuple[dict[str, NDArray[Any]], FloatArray]:
    """(what to give each input, the same as rows), rounded to the kind of number each takes."""
    rows, feeds, first = _beside(plane), {}, 0
    kinds = {value.name: _KINDS[value.type.tensor_type.elem_type] for value in parsed.graph.input}
    for name, count in graph.inputs:
        feeds[name] = np.ascontiguousarray(rows[:, first : first + count]).astype(kinds[name])
        first += count
    return feeds, np.hstack([feeds[name].astype(np.float64) for name, _ in graph.inputs])


def _beside(plane: Hyperplane) -> FloatArray:
    """Points on both sides of the plane to which every feature contributes alike."""
    rng = np.random.default_rng(0)
    used = plane.normal != 0
    share = plane.offset / max(1, int(used.sum()))
    terms = share + max(1.0, abs(share)) * rng.normal(size=(POINTS, plane.dimension))
    with np.errstate(all="ignore"):
        rows = np.where(used, terms / np.where(used, plane.normal, 1.0), rng.normal(size=terms.shape))
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


def _wrong(value: Value, answer: Any, rows: FloatArray, model: LinearModel, tolerance: float) -> Any:
    """Where the reference says otherwise; None: this output cannot be compared."""
    if isinstance(value, Named):
        value = value.scores
    answer = np.asarray(answer)
    if isinstance(value, Decision) and answer.size == POINTS and model.classes is not None:
        plane = model.hyperplane
        reach = np.abs(rows) @ np.abs(plane.normal) + abs(plane.offset)
        clear = np.abs(plane.margin(rows)) > tolerance * reach
        says_yes = np.array([label(one) == model.classes[1] for one in answer.ravel()])
        return clear & (says_yes != (plane.labels(rows) == YES))
    score = value.score if isinstance(value, Curve) else value
    if not isinstance(score, Affine) or answer.size != POINTS * score.width:
        return None
    found = answer.reshape(POINTS, score.width).astype(np.float64)
    wanted = (score.matrix @ rows.T).T + score.constant
    reach = (abs(score.matrix) @ np.abs(rows).T).T + np.abs(score.constant)
    if isinstance(value, Curve):
        wanted = 0.5 * (1 + np.tanh(wanted / 2))
    return np.any(np.abs(found - wanted) > tolerance * (1 + reach), axis=1)
