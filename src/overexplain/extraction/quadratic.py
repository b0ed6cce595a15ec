"""Quadratic models: p + 1 nearest points rebuild all (p+1)(p+2)/2 coefficients, because each shows a tangent plane as well.

With Z = (z, 1) for an answer z and h = (g, −g·z) for the plane through it across the step (g is the gradient of the distance at
z − x), q(x) = (x, 1)'Q(x, 1) satisfies Q·Z_i = λ_i·h_i. Q is symmetric, so λ_i·(h_i·Z_j) = λ_j·(h_j·Z_i) for every pair: the λ
follow up to one factor, and then Q. There are p(p − 1)/2 equations too many, which is the free check. docs/quadratic.md proves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import ExtractionFailed, InvalidInput, NoExplanation
from overexplain.extraction.box import Ball, Where
from overexplain.extraction.job import begin
from overexplain.extraction.paid import as_accuracy, nothing_lost
from overexplain.extraction.result import Spent
from overexplain.extraction.session import Session
from overexplain.extraction.tangents import Surface, Tangents
from overexplain.geometry.arrays import FloatArray, as_generator
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.geometry.quadratic import QuadraticModel
from overexplain.log.querylog import QueryLog
from overexplain.oracles.protocol import Oracle

DEFAULT_ACCURACY = 1e-6
"""The answers so far are enough if what rounding leaves open about the coefficients is less than this share of them."""

EXTRA = 20
"""So many answers more than p + 1, or twice as many if that is more, are asked for where p + 1 of them are badly placed."""

FARTHEST = 6
"""How often the region of questions is doubled in search of what the first p + 1 answers do not show."""

SPREAD = 3.0
"""Questions are spread over this many times the distance from the start to its answer."""


@dataclass(frozen=True, eq=False)
class QuadraticExtraction:
    """The rebuilt quadratic model and what it rests on.

    model        the coefficients, the largest scaled to about 1
    spent        what was asked
    log          every question and answer; None if they were not kept
    method       what was applied
    assumptions  what has to be believed
    exact        a theorem of exact arithmetic was applied and its free check, where it has force, passed
    residual     the largest violation of λ_i·(h_i·Z_j) = λ_j·(h_j·Z_i), all vectors and λ scaled to 1: rounding, if exact
    error        estimate (no bound) of the coefficients' relative error in coordinates in which the answers are spread over 1
    oriented     True if a label told which side is Yes
    """

    model: QuadraticModel
    spent: Spent
    log: QueryLog | None
    method: str
    assumptions: tuple[str, ...]
    exact: bool
    residual: float
    error: float
    oriented: bool


def extract_quadratic(
    oracle: Oracle,
    accuracy: float | None = None,
    start: ArrayLike | None = None,
    bounds: Any = None,
    orient: bool = True,
    budget: int | None = None,
    rng: int | np.random.Generator | None = None,
    record: bool = True,
) -> QuadraticExtraction:
    """The quadratic model behind `oracle`, from p + 1 counterfactuals under a smooth distance and one label.

    accuracy   ask more than p + 1 questions while the coefficients may be off by more than this share (1e-6)
    start      the first question (0, or the middle of the bounds)
    bounds     (low, high) or a radius around the start: questions stay inside, answers need not
    orient     ask one label to tell Yes from No
    budget     the most requests; BudgetExhausted is raised before the first one too many

    Nearest points need be so only locally. A hyperplane is found as one, from twice as many answers, and said so: no finite
    number of them excludes a second plane far away. BrokenPromise if the answers fit no quadratic surface.

    >>> from overexplain.oracles.quadratic import QuadraticOracle
    >>> secret = QuadraticModel([[1.0, 0.5], [0.5, -2.0]], [1.0, 0.0], -3.0)
    >>> found = extract_quadratic(QuadraticOracle(secret), rng=0)
    >>> found.model.is_equivalent(secret), found.spent
    (True, Spent(explanations=3, labels=1))
    """
    wanted = as_accuracy(accuracy) or DEFAULT_ACCURACY
    generator = as_generator(rng)
    session = Session(oracle, budget, record)
    mechanism, norm = _terms(session)
    origin, where = begin(session, start, bounds, generator)
    with nothing_lost(lambda: session.log):
        return _rebuild(session, mechanism, norm, wanted, origin, where, orient, generator)


def _terms(session: Session) -> tuple[Mechanism, Norm]:
    mechanism = session.mechanism
    if mechanism is None or not session.can_explain:
        raise NoExplanation("a quadratic model is rebuilt from explanations, and this service gives labels only")
    if mechanism.distance is None or not mechanism.distance.is_smooth:
        raise InvalidInput(
            "tangent planes show only under a known smooth distance (l2, weighted l2, Mahalanobis, lp), "
            f"not under {mechanism.describe()}"
        )
    if mechanism.slack != 0 or not mechanism.is_plain:
        raise InvalidInput(
            f"answers must be optimal and lie on the surface: slack {mechanism.slack}, radius {mechanism.radius} are declared"
        )
    if session.is_discrete:
        raise InvalidInput("questions must be free to vary: this service takes one-hot groups or whole numbers only")
    mechanism.fits(session.dimension)
    return mechanism, mechanism.distance


def _rebuild(
    session: Session,
    mechanism: Mechanism,
    norm: Norm,
    accuracy: float,
    start: FloatArray,
    where: Where,
    orient: bool,
    rng: np.random.Generator,
) -> QuadraticExtraction:
    p = session.dimension
    label_asked = int(orient and session.can_label)
    session.require(p + 1 + label_asked, "rebuilding a quadratic model")
    tangents = Tangents(norm, mechanism.tolerance)
    enough, most = p + 1, p + 1 + max(EXTRA, 2 * (p + 1))
    reach: float | None = None
    x, asked = start, 0
    fit: Surface | None = None
    while fit is None or not (tangents.count >= 2 * enough if fit.is_plane else fit.error <= accuracy):
        if asked >= most:
            raise _failure(fit, tangents.count, asked, p, accuracy)
        answer = session.explain(x)
        asked += 1
        if answer is not None and tangents.add(x, answer, session.row):
            reach = float(norm(answer - x)) if reach is None else reach
            fit = tangents.fit() if tangents.count >= enough else None
        # Where nothing is answered, or all lies on one plane, look farther and farther.
        far = 10.0 ** (asked // 2) if reach is None else reach * 2.0 ** min(max(0, asked - enough + 1), FARTHEST)
        x = _elsewhere(where, start, SPREAD * far / norm.units(p), rng)
    model = fit.model()
    if label_asked:
        # Where |q| is largest for its size a label is surest.
        asked_at = max(tangents.questions, key=lambda point: abs(fit.value(point)))
        says = session.label(asked_at)
        model = model if says == (YES if fit.value(asked_at) > 0 else NO) else model.flipped()
    notes = ["answers are (locally) nearest points on the boundary of a quadratic model"]
    if fit.is_plane:
        notes.append("the answers show one plane; a second one, farther from every question, is not excluded")
    if tangents.count > enough and not fit.is_plane:
        notes.append(f"{enough} answers were badly placed: {tangents.count} were used")
    if label_asked == 0:
        notes.append("no label was asked: Yes and No may be exchanged")
    if p == 1 and not fit.is_plane:
        notes.append("not checked: with one feature two roots always fit")
    name = "plane" if fit.is_plane else "quadratic surface"
    return QuadraticExtraction(
        model=model,
        spent=session.spent,
        log=session.log,
        method=f"one {name} touching {tangents.count} tangent planes (gap {fit.gap:.1e})",
        assumptions=tuple(notes),
        exact=not mechanism.tolerance and not fit.is_plane,
        residual=fit.residual,
        error=fit.error,
        oriented=bool(label_asked),
    )


def _failure(fit: Surface | None, usable: int, asked: int, p: int, accuracy: float) -> ExtractionFailed:
    if fit is None:
        return ExtractionFailed(
            f"only {usable} of {asked} questions gave an answer that moved, {p + 1} are needed: the boundary may be empty where "
            "questions may be asked. Give start= and bounds= around points of both labels"
        )
    return ExtractionFailed(
        f"{usable} answers leave the coefficients open by {fit.error:.1g} of their size, {accuracy:.1g} was asked for: "
        "(a) float64 or rounded answers say no more: ask for less (accuracy=); (b) the answers are too few different points (an "
        "apex, a boundary without inside) or too close to their questions: give bounds= that cover more of the boundary"
    )


def _elsewhere(where: Where, start: FloatArray, reach: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A random question: anywhere in a box; within `reach` of the start, entry by entry, where there is no limit."""
    if isinstance(where, Ball):
        step = rng.normal(size=len(start))
        step *= where.radius * rng.uniform(0.3, 1.0) / float(np.linalg.norm(step))
        return where.clip(start + step)
    low = np.where(np.isfinite(where.low), where.low, np.minimum(start, where.high) - reach)
    high = np.where(np.isfinite(where.high), where.high, np.maximum(start, where.low) + reach)
    return np.asarray(low + rng.uniform(size=len(start)) * (high - low))
