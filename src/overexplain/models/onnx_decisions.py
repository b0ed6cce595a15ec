"""How affine scores become probabilities and decisions: the last operators of a linear ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import UnsupportedModel
from overexplain.models.linear import logit
from overexplain.models.onnx_graph import Node
from overexplain.models.onnx_values import (
    Affine,
    Choice,
    Curve,
    Decision,
    Exponential,
    Named,
    Opaque,
    Shares,
    Total,
    Value,
    added,
    as_affine,
    as_constant,
    contrast,
    multiplied,
    negated,
    picked,
    scores_of,
    shifted,
    stacked,
)


def sigmoid(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    return [Curve(as_affine(values[0]))]


def softmax(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("axis", -1) not in (1, -1):
        raise UnsupportedModel("it compares cases with one another (axis 0)")
    return [_softmax_of(as_affine(values[0]))]


def _softmax_of(table: Affine) -> Curve | Shares:
    """softmax(z₀, z₁) = (σ(z₀ − z₁), σ(z₁ − z₀)); for more classes there is no such form."""
    if table.width < 2:
        raise UnsupportedModel("the softmax of one score alone is always 1")
    if table.width > 2:
        return Shares(table, softmax=True)
    first, second = picked(table, np.array([0])), picked(table, np.array([1]))
    score = added(second, negated(first))
    return Curve(stacked([negated(score), score]))


def argmax(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("axis", 0) not in (1, -1):
        raise UnsupportedModel("it compares cases with one another (axis 0)")
    table = values[0] if isinstance(values[0], (Curve, Shares)) else as_affine(values[0])
    return [_largest(table, node.attributes.get("select_last_index", 0))]


def _largest(
    table: Affine | Curve | Shares, last: int = 0, classes: tuple[Any, ...] | None = None
) -> Decision | Choice:
    """Which column is the largest, by its number or by the name of its class."""
    scores = scores_of(table)
    if classes is None:
        classes = tuple(range(scores.width))
    if scores.width < 2:
        raise UnsupportedModel("the largest of one score alone is always the same")
    if scores.width == 2:
        return Decision(contrast(scores), (classes[0], classes[1]))
    if last:
        raise UnsupportedModel("where scores tie it takes the last class, not the first (select_last_index)")
    return Choice(table, classes)


def zip_map(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    if isinstance(value, Opaque):
        return [value]
    classes = _classes(node, ("classlabels_strings", "classlabels_int64s"))
    if not isinstance(value, (Affine, Curve, Shares)) or scores_of(value).width != len(classes):
        raise UnsupportedModel(f"it has names for {len(classes)} classes, and not a score for each")
    return [Named(value, classes)]


def normalizer(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    if node.attributes.get("norm", "MAX") == "L1":
        if isinstance(value, Shares) or (isinstance(value, Curve) and value.adds_to_one):
            return [value]
        if isinstance(value, Curve) and value.width > 2:
            return [Shares(value.score, softmax=False)]
    raise UnsupportedModel("rows are divided by their length, which is not linear")


def absolute(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    if not isinstance(values[0], (Curve, Shares)):
        raise UnsupportedModel("absolute values are taken, which is not linear")
    return [values[0]]  # probabilities are not negative


def row_sum(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    axes = node.attributes["axes"] if "axes" in node.attributes else as_constant(values[1])
    if axes.ravel().tolist() not in ([1], [-1]) or not isinstance(value, (Affine, Curve, Shares)):
        raise UnsupportedModel("only the scores or probabilities of each case can be added up")
    if isinstance(value, Shares) or (isinstance(value, Curve) and value.adds_to_one):
        return [np.ones((1, 1))]
    if value.width < 2 or node.attributes.get("keepdims", 1) != 1:
        raise UnsupportedModel("the sums of the cases are put into a list, which mixes them")
    return [Total(value)]


def exponential(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    return [Exponential(as_affine(values[0]))]


def reciprocal(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    if not isinstance(value, Exponential) or value.plus != 1:
        raise UnsupportedModel("it divides by a result that depends on the inputs, which is not linear")
    return [Curve(negated(value.score))]  # 1 / (1 + exp(−z)) = σ(z)


def arithmetic(node: Node, left: Value, right: Value) -> Value:
    """What keeps probabilities such: 1 − σ(z) = σ(−z), adding 0, dividing by their sum; and 1 + exp(z)."""
    operator = node.operator
    if operator == "Sub" and isinstance(left, np.ndarray) and isinstance(right, Curve) and np.all(left == 1):
        return Curve(negated(right.score))
    if isinstance(right, np.ndarray):
        if operator in ("Div", "Mul") and isinstance(left, (Curve, Shares)) and np.all(right == 1):
            return left
        flat = isinstance(left, (Curve, Exponential)) and left.score.flat
        if operator == "Add" and right.size == 1 and right.ndim <= (1 if flat else 2):
            if not np.any(right):
                return left
            if isinstance(left, Exponential) and left.plus == 0 and np.all(right == 1):
                return replace(left, plus=1.0)
    if operator == "Div" and isinstance(right, Total) and right.table is left:
        if isinstance(left, Curve) and left.width > 2:
            return Shares(left.score, softmax=False)
        if isinstance(left, Affine):
            return Opaque()  # a negative sum turns the order round
    raise UnsupportedModel("probabilities, or sums of scores, are computed with, which is not linear")


def compare(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    left, right = values
    greater = node.operator.startswith("Greater")
    if isinstance(left, np.ndarray):
        left, right, greater = right, left, not greater
    return [_decision(left, as_constant(right), greater)]


def binarizer(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    return [_decision(values[0], np.array(node.attributes.get("threshold", 0.0)), greater=True)]


def _decision(value: Value, bound: NDArray[Any], greater: bool) -> Decision:
    """Whether a score or a probability is above the bound (or below it)."""
    if bound.size != 1:
        raise UnsupportedModel("it compares with more than one number")
    cut = float(bound.ravel()[0])
    score = value.score if isinstance(value, Curve) else as_affine(value)
    if score.width != 1:
        raise UnsupportedModel(f"it makes {score.width} decisions at once; only one is read")
    if not isinstance(value, Curve):
        margin = shifted(score, np.array(-cut))
        return Decision(margin if greater else negated(margin))
    if not 0 < cut < 1:
        raise UnsupportedModel(f"a probability is compared with {cut}: the answer is always the same")
    if not greater:  # σ(z) < t  ⇔  σ(−z) > 1 − t
        score, cut = negated(score), 1 - cut
    return Decision(shifted(score, np.array(-logit(cut))), threshold=cut)


def negation(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    decision = values[0]
    if isinstance(decision, np.ndarray) and decision.dtype == np.bool_:
        return [~decision]
    if not isinstance(decision, Decision):
        raise UnsupportedModel("something that is no decision is negated")
    threshold = None if decision.threshold is None else 1 - decision.threshold
    return [replace(decision, margin=negated(decision.margin), threshold=threshold)]


def where(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    decision, yes, no = values[0], as_constant(values[1]), as_constant(values[2])
    if not isinstance(decision, Decision) or decision.classes != (0, 1) or yes.size != 1 or no.size != 1:
        raise UnsupportedModel("it chooses between numbers that depend on the inputs, which is not linear")
    return [replace(decision, classes=(no.ravel()[0], yes.ravel()[0]))]


def linear_regressor(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("post_transform", "NONE") != "NONE" or node.attributes.get("targets", 1) != 1:
        raise UnsupportedModel("only a single target without a post_transform is read")
    score = multiplied(as_affine(values[0]), node.attributes["coefficients"][:, None])
    return [replace(shifted(score, node.attributes.get("intercepts", np.zeros(1))), regression=True)]


def linear_classifier(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    """Labels and scores: a row of coefficients for each class, or of two classes one for the second."""
    classes = _classes(node, ("classlabels_strings", "classlabels_ints"))
    table, coefficients = as_affine(values[0]), node.attributes["coefficients"]
    if len(coefficients) != len(classes) * table.width and (len(classes), len(coefficients)) != (2, table.width):
        raise UnsupportedModel(
            f"it has {len(coefficients)} coefficients for {len(classes)} classes and {table.width} columns, not a row for "
            "each class"
        )
    rows = coefficients.reshape(-1, table.width)
    intercepts = node.attributes.get("intercepts", np.zeros(len(rows)))
    if len(intercepts) != len(rows):
        raise UnsupportedModel(f"it has {len(intercepts)} intercepts for {len(rows)} rows of coefficients")
    scores = shifted(multiplied(table, rows.T), intercepts)
    transform = node.attributes.get("post_transform", "NONE")
    if transform not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise UnsupportedModel(f"its post_transform {transform[:30]!r} is not read; NONE, LOGISTIC and SOFTMAX are")
    if len(rows) == 1:  # what the score of the first class is, runtimes differ about; its probability they do not
        pair = stacked([negated(scores), scores])
        label = Decision(scores, (classes[0], classes[1]))
        return [label, Curve(pair) if transform == "LOGISTIC" else Opaque()]
    result = _softmax_of(scores) if transform == "SOFTMAX" else Curve(scores) if transform == "LOGISTIC" else scores
    return [_largest(result, classes=classes), result]


def support_vector_classifier(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    """Labels and scores of a linear kernel: Σ αᵢ (vᵢ·x) + rho, which is in favour of the first class."""
    settings, table = node.attributes, as_affine(values[0])
    if settings.get("kernel_type", "LINEAR") != "LINEAR" or settings.get("post_transform", "NONE") != "NONE":
        raise UnsupportedModel("only kernel_type LINEAR without a post_transform is linear")
    classes = _classes(node, ("classlabels_strings", "classlabels_ints"))
    if len(classes) != 2 or len(settings["rho"]) != 1:
        raise UnsupportedModel(
            f"every two of its {len(classes)} classes vote; read are classifiers with one score for each class"
        )
    if len(settings.get("prob_a", ())):
        raise UnsupportedModel("it has probabilities of its own; export it with probability=False")
    vectors = settings["support_vectors"].reshape(-1, table.width)
    first = shifted(multiplied(table, (settings["coefficients"] @ vectors)[:, None]), settings["rho"])
    label = Decision(negated(first), (classes[0], classes[1]))
    return [label, stacked([negated(first), first])]  # the scores come the other way round


def _classes(node: Node, names: Sequence[str]) -> tuple[Any, ...]:
    labels = tuple(label for name in names for label in node.attributes.get(name, []))
    if len(labels) < 2:
        raise UnsupportedModel(f"it names {len(labels)} classes; a classifier has at least two")
    return labels
