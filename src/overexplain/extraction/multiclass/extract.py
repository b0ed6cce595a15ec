"""`extract_multiclass`: a linear classifier of several classes from about one explanation per class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import BrokenPromise, ExtractionFailed, InvalidInput
from overexplain.extraction.box import where_of
from overexplain.extraction.multiclass.classes import Found, find_classes
from overexplain.extraction.multiclass.confirm import confirm
from overexplain.extraction.multiclass.conversation import Conversation
from overexplain.extraction.multiclass.planes import scores_by_points
from overexplain.extraction.multiclass.result import MulticlassExtraction
from overexplain.extraction.multiclass.scales import Rebuilt, is_enough
from overexplain.extraction.multiclass.smooth import scores_by_facets
from overexplain.extraction.paid import as_accuracy, nothing_lost
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.arrays import FloatArray, as_generator, as_point, as_rows
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.multiclass import MulticlassOracle


def extract_multiclass(
    oracle: MulticlassOracle,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    examples: ArrayLike | None = None,
    budget: int | None = None,
    rng: int | np.random.Generator | None = None,
    record: bool = True,
) -> MulticlassExtraction:
    """The classifier behind `oracle`, rebuilt from as few explanations as possible: K for K ≥ 3 classes under a smooth distance.

    accuracy   the angle (radians, `ArgmaxModel.distance_to`) that must be proved; None: whatever the fewest answers prove
    start      the middle of the first random points (0, or the middle of the bounds)
    bounds     (low, high): questions stay inside this box; a number: inside the ball of this radius around the start. Answers
               need not
    examples   rows that are likely to have all classes: they are labelled first, in random order, and say how large inputs are
    budget     the most requests (explanations and labels) to send; BudgetExhausted is raised before the first one too many
    rng        an int or a Generator, for the random choices
    record     keep every answer in `.answers`

    The service must answer exactly (``slack=0``): under a smooth distance an answer shows a whole boundary, under any other, or
    an unknown one, a point of it, so that (K − 1)(p + 1) − 1 answers are needed. Whatever goes wrong, the error's `.log` has
    every answer that came. Where the boundaries within reach do not tie all scores together (parallel ones, narrow bounds), the
    model has the right boundaries, but `.exact` is False: what it says beyond them is not known.

    >>> from overexplain.oracles.multiclass import ArgmaxOracle
    >>> secret = ArgmaxModel([[1.0, 0.0], [-1.0, 2.0], [0.0, -1.5]], [0.0, 0.3, 0.1])
    >>> found = extract_multiclass(ArgmaxOracle(secret, "l2"), rng=0)
    >>> found.model.is_equivalent(secret), found.spent.explanations
    (True, 3)
    """
    wanted = as_accuracy(accuracy)
    generator = as_generator(rng)
    talk = Conversation(oracle, budget)
    mechanism = _exact_terms(talk)
    mechanism.fits(talk.dimension)
    origin = None if start is None else as_point(start, talk.dimension, "start")
    where = where_of(bounds, talk.dimension, origin, None)
    if origin is not None and not where.contains(origin):
        raise InvalidInput("start lies outside the bounds")
    rows = None if examples is None else as_rows(examples, talk.dimension, "examples")
    with nothing_lost(lambda: tuple(talk.asked)):
        found = find_classes(talk, where.centre() if origin is None else origin, where, rows, generator)
        return _rebuilt(found, mechanism, wanted, generator, record)


def _exact_terms(talk: Conversation) -> Mechanism:
    """The mechanism, if its answers are exact; what is missing is said otherwise."""
    mechanism = talk.mechanism
    if mechanism is None or not talk.can_explain or not talk.can_label:
        raise InvalidInput(
            "rebuilding a classifier of several classes takes labels and explanations: an oracle with classify(x), "
            "explain(x, target) and a mechanism. For two classes, `extract` needs labels only"
        )
    if not mechanism.is_plain:
        raise ExtractionFailed("the service's explanations are robust: they do not lie on the boundary of a class")
    if mechanism.slack != 0 or mechanism.tolerance:
        inexact = f"slack={mechanism.slack}" if mechanism.slack != 0 else f"tolerance={mechanism.tolerance}"
        raise ExtractionFailed(
            f"the service declares {inexact}: its answers need not lie on the boundary of a class, and every equation here "
            "rests on that they do"
        )
    return mechanism


def _rebuilt(
    found: Found, mechanism: Mechanism, accuracy: float | None, rng: np.random.Generator, record: bool
) -> MulticlassExtraction:
    """The model from whichever equations the distance allows, checked against everything that was said."""
    if len(found.classes) < 2:
        raise ExtractionFailed(
            f"only class {found.classes[0]} was found, in {found.talk.spent.labels} labels: give examples=, rows that have "
            "several classes"
        )
    distance = mechanism.distance
    if distance is not None and distance.is_smooth:
        parts = scores_by_facets(found, distance, mechanism.tolerance, accuracy, rng)
    else:
        parts = scores_by_points(found, distance, accuracy, rng)
    model = _model(found, parts)
    try:
        confirm(found.talk, model, found.missing, parts.bound)
    except BrokenPromise:
        if parts.open is not None:  # the sizes that were chosen are wrong: nothing was promised about them
            raise ExtractionFailed(parts.open) from None
        raise
    bound = None if found.missing else parts.bound
    if accuracy is not None and not is_enough(bound, accuracy):
        raise ExtractionFailed(
            f"nothing is known about the classes {found.missing}, which no label ever said: an accuracy of {accuracy:g} cannot be "
            "proved. Ask for none, or give examples= that have them"
        )
    talk = found.talk
    notes = ["answers are nearest points, to the last digits", *parts.notes]
    if found.missing:
        notes.append(f"nothing is known about the classes {found.missing}: no label ever said them")
    if found.hinted:
        notes.append(
            f"explanations lead to the classes {found.hinted}, small ones, or never better than a tie: give examples= of them"
        )
    return MulticlassExtraction(
        model=model,
        spent=talk.spent,
        facets=parts.pairs,
        method=parts.method,
        assumptions=tuple(notes),
        exact=parts.open is None and not found.hinted,
        error_bound=bound,
        unreached=tuple(found.missing),
        answers=tuple(talk.asked) if record else None,
    )


def _model(found: Found, parts: Rebuilt) -> ArgmaxModel:
    """The model of all classes: one that was never found gets the row of another and an intercept that never wins.

    It loses by about what scores differ over the points asked, so that next to it no other intercept loses its digits.
    """
    scores: FloatArray = np.zeros((found.talk.classes, found.talk.dimension + 1))
    scores[found.classes] = parts.scores
    first = scores[found.classes[0]]
    for k in found.missing:
        scores[k] = first
        scores[k, -1] -= float(np.linalg.norm(parts.scores[:, :-1]) * np.linalg.norm(found.spread))
    return ArgmaxModel(scores[:, :-1], scores[:, -1]).centred()
