"""The finished model against everything that was said: costs nothing, and catches what is not what it declares."""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.multiclass.conversation import Conversation
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.norm import FLOAT64_ANSWER

UNBOUNDED = 1e-5
"""Where no bound on the model's error is known, disagreement below this share of the scores' size is taken for it."""


def confirm(talk: Conversation, model: ArgmaxModel, unreached: list[int], bound: float | None) -> None:
    """Raise BrokenPromise unless every label is the class with the best score, and every explanation ties for its target."""
    kept = [
        (i, asked) for i, asked in enumerate(talk.asked) if asked.answer is not None and asked.target not in unreached
    ]
    if not kept:
        return
    points = np.array([asked.x if asked.target is None else asked.answer for _, asked in kept])
    said = np.array([asked.answer if asked.target is None else asked.target for _, asked in kept], dtype=np.int64)
    scores = model.scores(points)
    behind = scores.max(axis=1) - scores[np.arange(len(said)), said]
    weights, intercepts = float(np.linalg.norm(model.weights)), float(np.linalg.norm(model.intercepts))
    length = math.hypot(weights, intercepts)
    sizes = np.linalg.norm(points, axis=1)
    # An answer is as exact as its question is large: a corner at 0 that was asked for from far away is not at 0.
    asked_from = np.linalg.norm([asked.x for _, asked in kept], axis=1)
    allowed = 8 * FLOAT64_ANSWER * (weights * (sizes + asked_from) + intercepts)
    if bound is None:
        allowed += UNBOUNDED * (weights * (sizes + float(np.median(asked_from))) + intercepts)
    else:  # the angle between all numbers of the two models
        allowed += 4 * bound * length * np.hypot(1, sizes)
    worst = int((behind - allowed).argmax())
    if behind[worst] > allowed[worst]:
        row, asked = kept[worst]
        what = "a point got the class" if asked.target is None else "an explanation stands for the class"
        raise BrokenPromise(
            f"no linear classifier fits the answers: {what} {said[worst]}, which the model rebuilt from the others puts "
            f"{behind[worst]:.3g} behind another one (scores of size {length:.3g}). The service rounds, its answers are not "
            "nearest points, or the model is not linear",
            fact="Facet",
            excess=float(behind[worst]),
            row=row,
        )
