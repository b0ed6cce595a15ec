"""ONNX files of several classes: the choice among the outputs of a graph, or the one that its probabilities or scores imply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from overexplain.errors import NotFinite, UnsupportedModel
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.models.multiclass import MulticlassModel
from overexplain.models.onnx_reference import label
from overexplain.models.onnx_values import Affine, Choice, Curve, Decision, Named, Shares, Value, equal, scores_of

MOST_CLASSES: Final = 2**16


def choose(outputs: Sequence[Value], features: tuple[str, ...] | None) -> tuple[MulticlassModel, list[str]] | None:
    """(the model, what to say about it) of three or more classes; None: the outputs tell no more than two apart."""
    choices = [value for value in outputs if isinstance(value, Choice)]
    if any(isinstance(value, Decision) for value in outputs):
        if choices:
            raise UnsupportedModel("it decides between two classes and also among more; only one decision is read")
        return None
    named = [value for value in outputs if isinstance(value, Named)]
    names = choices[0].classes if choices else named[0].classes if named else None
    tables, notes = ([choice.table for choice in choices], []) if choices else _implied(outputs)
    if not tables:
        return None
    scores = scores_of(tables[0])
    if scores.width > MOST_CLASSES:
        raise UnsupportedModel(f"it has {scores.width} classes; at most {MOST_CLASSES} are read")
    if any(not equal(scores, scores_of(other)) for other in tables[1:]):
        raise UnsupportedModel(f"it makes {len(tables)} different decisions; only one is read")
    if isinstance(tables[0], Curve) or (isinstance(tables[0], Shares) and not tables[0].softmax):
        notes.append("it compares sigmoids: where two of them round to the same number, such as 1, the first may win")
    weights = scores.matrix.toarray()
    if not np.isfinite(weights).all() or not np.isfinite(scores.constant).all():
        raise NotFinite("its coefficients multiply to NaN or to more than float64 can hold")
    classes = None if names is None else tuple(label(name) for name in names)
    return MulticlassModel(ArgmaxModel(weights, scores.constant), features, classes, source="ONNX"), notes


def _implied(outputs: Sequence[Value]) -> tuple[Sequence[Affine | Curve | Shares], list[str]]:
    """(the tables that a class can be chosen from although no label is given, what to say about that)."""
    plain = [value.scores if isinstance(value, Named) else value for value in outputs]
    shares = [value for value in plain if isinstance(value, Shares)]
    if shares:
        return shares, ["it gives probabilities only; the class is that of the largest"]
    scores = [value for value in plain if isinstance(value, Affine)]
    alone = len(scores) == 1 and not any(isinstance(value, Curve) for value in plain)
    if alone and scores[0].width > 2 and not scores[0].regression:
        return scores, ["it gives scores only; the class is that of the largest"]
    return [], []
