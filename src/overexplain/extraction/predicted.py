"""What rebuilding a model will cost, said before anything is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from overexplain.extraction.constrained.slices import predict_slices
from overexplain.extraction.imperfect import DIAGNOSTIC, MOST_SLACK, UNSEEN
from overexplain.extraction.inexact.chain import predict_chain
from overexplain.extraction.inexact.warm import predict_warm
from overexplain.extraction.labels.floors import predicted_labels
from overexplain.extraction.result import Spent
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism


@dataclass(frozen=True)
class Prediction:
    """The way `extract` will go first and what it will spend; `proved`: by a theorem, for all models but special ones."""

    way: str
    spent: Spent
    proved: bool


def predict(
    dimension: int,
    mechanism: Mechanism | None,
    accuracy: float,
    *,
    labels: bool = True,
    orient: bool = True,
    domain: Domain | None = None,
    confirm: bool = False,
) -> Prediction:
    """What `extract` will spend on a service with these terms; `mechanism` None: it explains nothing.

    `confirm`: with one more answer and, where there are labels, two of them, if the service turns out to keep to its terms.

    >>> from overexplain.geometry.norms import l1
    >>> predict(30, Mechanism(l1), 1e-6)
    Prediction(way='Theorem A: dim span K answers', spent=Spent(explanations=30, labels=1), proved=True)
    """
    label = int(labels and orient)
    known = mechanism is not None and (mechanism.distance is not None or mechanism.is_plain)  # where the plane is
    confirmation = (1 + 2 * int(labels and known)) if confirm else 0
    if domain is not None and (domain.groups or domain.integers):
        return Prediction("slice by slice", predict_slices(domain, accuracy, mechanism is not None), False)
    if mechanism is None:
        return Prediction("labels only", Spent(0, math.ceil(predicted_labels(dimension, accuracy))), False)
    if mechanism.slack == 0 and mechanism.distance is None:
        return Prediction(
            "Theorem D: independent answers",
            Spent(dimension + int(not mechanism.is_plain), label, confirmation),
            not mechanism.tolerance,
        )
    if mechanism.slack == 0:
        needed = usual_cone_dimension(mechanism, dimension) + int(mechanism.radius is None)
        smooth = mechanism.distance is not None and mechanism.distance.is_smooth
        theorem = "Theorem B: one answer off the plane" if smooth else "Theorem A: dim span K answers"
        name = theorem if mechanism.radius is not None else "Theorem C: dim span K answers and one for the radius"
        return Prediction(name, Spent(needed, label, confirmation), not mechanism.tolerance)
    if mechanism.slack is not None and mechanism.slack <= MOST_SLACK and mechanism.is_plain:
        requests = predict_chain(dimension, accuracy, mechanism.slack)
        return Prediction("chain of counterfactuals", Spent(requests - 1, 1), False)
    after = predict_warm(dimension, accuracy, UNSEEN) if labels else 0
    return Prediction("a diagnosis, then the cheapest way it leaves", Spent(DIAGNOSTIC + 3 * dimension, after), False)


def usual_cone_dimension(mechanism: Mechanism, dimension: int) -> int:
    """dim span K(w) for a model without ties: one drawn at random."""
    return cone_dimension(mechanism, Hyperplane(np.random.default_rng(0).normal(size=dimension), 0.0))


def cone_dimension(mechanism: Mechanism, plane: Hyperplane) -> int:
    """dim span K(w) for the step w that the service takes: explanations that the model's own shape asks for.

    >>> from overexplain.geometry.norms import l1, l2
    >>> plane = Hyperplane([1.0, 2.0, 3.0], 0.0)
    >>> cone_dimension(Mechanism(l1), plane), cone_dimension(Mechanism(l2), plane)
    (3, 1)
    """
    assert mechanism.distance is not None
    return mechanism.distance.normal_cone(mechanism.distance.maximizer(plane.normal)).dimension
