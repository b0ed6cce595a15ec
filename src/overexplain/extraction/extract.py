"""`extract`: choose the theorem that fits what the service publishes, apply it, say what it rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import BrokenPromise, ExtractionFailed, InvalidInput, NoExplanation
from overexplain.extraction.box import Box
from overexplain.extraction.explained import extract_by_cone
from overexplain.extraction.first import first_answer
from overexplain.extraction.paper import extract_as_printed
from overexplain.extraction.points import extract_by_points
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray, as_generator, as_point
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.protocol import Oracle

STRATEGIES = ("auto", "cone", "points", "paper")
DEFAULT_ACCURACY = 1e-9


def extract(
    oracle: Oracle,
    strategy: str = "auto",
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: int | np.random.Generator | None = None,
    record: bool = True,
) -> Extraction:
    """The model behind `oracle`, rebuilt from as few answers as possible, with bounds on its error.

    strategy   "auto": trust the declared mechanism and spend only what the theorem says; if the free check fails, or the
               distance is unknown, fall back to points alone and say so.
               "cone": Theorems A, B, C; "points": Theorem D; "paper": the paper's own procedures with the paper's own counts.
               These three raise BrokenPromise instead of falling back.
    accuracy   wanted accuracy of the normal in the distance's own unit (1e-9)
    start      the first question (0, where nothing cancels)
    bounds     (low, high): questions stay inside; answers need not
    orient     ask one label to tell Yes from No; without it, or without `classify`, the model may be upside down
    budget     the most requests (explanations and labels) to send; BudgetExhausted is raised before the first one too many
    rng        an int or a Generator, for the few random choices
    record     keep every answer in `.log`; without it memory stays O(p)

    Whatever goes wrong, the error's `.log` has every answer that came.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([3.0, 4.0], 10.0)
    >>> found = extract(ModelOracle(secret, Mechanism("l2")))
    >>> found.hyperplane.is_equivalent(secret), found.spent
    (True, Spent(explanations=1, labels=1))
    """
    if strategy not in STRATEGIES:
        raise InvalidInput(f"unknown strategy {strategy!r}; known are {', '.join(STRATEGIES)}")
    wanted = DEFAULT_ACCURACY if accuracy is None else float(as_point([accuracy], 1, "accuracy")[0])
    if not wanted > 0:
        raise InvalidInput(f"accuracy must be positive, got {accuracy!r}")
    generator = as_generator(rng)
    session = Session(oracle, budget, record)
    mechanism = _usable_mechanism(session)
    box = Box.of(bounds, session.dimension)
    origin = box.centre() if start is None else as_point(start, session.dimension, "start")
    if strategy == "paper" and bounds is not None:
        raise InvalidInput('strategy "paper" asks e^1, e^2, … and a basis wherever they lie: it takes no bounds')
    if not box.contains(origin):
        raise InvalidInput("start lies outside the bounds")
    try:
        return _run(session, mechanism, strategy, wanted, origin, box, orient, generator)
    except BaseException as error:  # Ctrl-C too: what was paid for is not lost
        if getattr(error, "log", None) is None:
            error.log = session.log  # type: ignore[attr-defined]
        raise


def _run(
    session: Session,
    mechanism: Mechanism,
    strategy: str,
    accuracy: float,
    start: FloatArray,
    box: Box,
    orient: bool,
    rng: np.random.Generator,
) -> Extraction:
    if strategy == "paper":
        return extract_as_printed(session, mechanism, start, orient, rng)
    if strategy == "points" or (strategy == "auto" and mechanism.distance is None):
        return extract_by_points(session, mechanism, start, box, orient, rng)
    if mechanism.distance is None:
        raise InvalidInput(
            'strategy "cone" needs the distance; this service does not publish it: use "points" or "auto"'
        )
    first = first_answer(session, mechanism, mechanism.distance, start, accuracy, box, rng)
    try:
        return extract_by_cone(session, mechanism, mechanism.distance, first, box, orient)
    except (BrokenPromise, NoExplanation) as broken:
        if strategy != "auto":
            raise
        try:
            found = extract_by_points(session, mechanism, start, box, orient, rng, verify=True)
        except (BrokenPromise, ExtractionFailed, NoExplanation) as worse:
            raise broken from worse  # what refuted the declaration says more than why the fallback failed too
        return replace(
            found, assumptions=(f"the declared mechanism was refuted and set aside: {broken}", *found.assumptions)
        )


def _usable_mechanism(session: Session) -> Mechanism:
    mechanism = session.mechanism
    if mechanism is None or not session.can_explain:
        raise NoExplanation(
            "this service gives labels only; the strategies here need explanations (an oracle with explain and a mechanism)"
        )
    if mechanism.slack != 0:
        raise ExtractionFailed(
            f"the service declares slack={mechanism.slack}: its answers need not be optimal, and the theorems here rest on "
            "optimal ones"
        )
    mechanism.fits(session.dimension)
    return mechanism
