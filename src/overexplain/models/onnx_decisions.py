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
    Curve,
    Decision,
    Named,
    Opaque,
    Value,
    added,
    as_affine,
    as_constant,
    contrast,
    multiplied,
    negated,
    picked,
    shifted,
    stacked,
)


def sigmoid(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    return [Curve(as_affine(values[0]))]


def softmax(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("axis", -1) not in (1, -1):
        raise UnsupportedModel("it compares cases with one another (axis 0)")
    return [_softmax_of(as_affine(values[0]))]


def _softmax_of(pair: Affine) -> Curve:
    """softmax(z₀, z₁) = (σ(z₀ − z₁), σ(z₁ − z₀))."""
    if pair.width != 2 or pair.flat:
        raise UnsupportedModel(f"{pair.width} classes are told apart; only two are read")
    first, second = picked(pair, np.array([0])), picked(pair, np.array([1]))
    score = added(second, negated(first))
    return Curve(stacked([negated(score), score]))


def argmax(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    if node.attributes.get("axis", 0) not in (1, -1):
        raise UnsupportedModel("it compares cases with one another (axis 0)")
    value = values[0]
    scores = value.score if isinstance(value, Curve) else as_affine(value)
    if scores.width != 2:
        raise UnsupportedModel(f"{scores.width} classes are told apart; only two are read")
    return [Decision(contrast(scores))]


def zip_map(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    if not isinstance(value, (Affine, Curve)) or value.width != 2:
        raise UnsupportedModel("it names scores of more or less than two classes; only two are read")
    return [Named(value, _classes(node, ("classlabels_strings", "classlabels_int64s")))]


def normalizer(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    if node.attributes.get("norm", "MAX") == "L1" and isinstance(value, Curve) and value.adds_to_one:
        return [value]
    raise UnsupportedModel("rows are divided by their length, which is not linear")


def absolute(_: Node, values: Sequence[Value]) -> Sequence[Value]:
    if not isinstance(values[0], Curve):
        raise UnsupportedModel("absolute values are taken, which is not linear")
    return [values[0]]  # probabilities are not negative


def sum_of_probabilities(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    value = values[0]
    axes = node.attributes["axes"] if "axes" in node.attributes else as_constant(values[1])
    if not isinstance(value, Curve) or not value.adds_to_one or axes.ravel().tolist() not in ([1], [-1]):
        raise UnsupportedModel("only the two probabilities of one decision can be added up")
    return [np.ones((1, 1))]


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
    """Labels and scores: a row of coefficients for each of two classes, or one for the second."""
    classes = _classes(node, ("classlabels_strings", "classlabels_ints"))
    table = as_affine(values[0])
    rows = np.atleast_2d(node.attributes["coefficients"].reshape(-1, table.width))
    if len(rows) not in (1, 2):
        raise UnsupportedModel(f"it has {len(rows)} rows of coefficients; only two classes are read")
    intercepts = node.attributes.get("intercepts", np.zeros(len(rows)))
    if len(intercepts) != len(rows):
        raise UnsupportedModel(f"it has {len(intercepts)} intercepts for {len(rows)} rows of coefficients")
    scores = shifted(multiplied(table, rows.T), intercepts)
    transform = node.attributes.get("post_transform", "NONE")
    if transform not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise UnsupportedModel(f"its post_transform {transform[:30]!r} is not read; NONE, LOGISTIC and SOFTMAX are")
    if len(rows) == 1:  # what the score of the first class is, runtimes differ about; its probability they do not
        pair = stacked([negated(scores), scores])
        return [Decision(scores, classes), Curve(pair) if transform == "LOGISTIC" else Opaque()]
    if transform == "SOFTMAX":
        probabilities = _softmax_of(scores)
        return [Decision(picked(probabilities.score, np.array([1])), classes), probabilities]
    return [Decision(contrast(scores), classes), Curve(scores) if transform == "LOGISTIC" else scores]


def support_vector_classifier(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    """Labels and scores of a linear kernel: Σ αᵢ (vᵢ·x) + rho, which is in favour of the first class."""
    settings, table = node.attributes, as_affine(values[0])
    if settings.get("kernel_type", "LINEAR") != "LINEAR" or settings.get("post_transform", "NONE") != "NONE":
        raise UnsupportedModel("only kernel_type LINEAR without a post_transform is linear")
    if len(settings.get("prob_a", ())) or len(settings["rho"]) != 1:
        raise UnsupportedModel(
            "it has probabilities of its own or more than two classes; export it with probability=False"
        )
    vectors = settings["support_vectors"].reshape(-1, table.width)
    first = shifted(multiplied(table, (settings["coefficients"] @ vectors)[:, None]), settings["rho"])
    classes = _classes(node, ("classlabels_strings", "classlabels_ints"))
    return [Decision(negated(first), classes), stacked([negated(first), first])]  # the scores come the other way round


def _classes(node: Node, names: Sequence[str]) -> tuple[Any, Any]:
    labels = [label for name in names for label in node.attributes.get(name, [])]
    if len(labels) != 2:
        raise UnsupportedModel(f"it has {len(labels)} classes; only two are read")
    return labels[0], labels[1]
