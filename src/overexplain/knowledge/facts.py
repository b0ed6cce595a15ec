"""Every answer is a few facts about (a, b): inequalities in the unknown model that hold for whatever model gave the answer.

With t = ‖a‖*, the dual of the row's distance, and y the label of the point x that was explained by x' = x + w:

    OnSide     y·(a·x − b) ≥ margin·t          its own side, as far from the plane as the answer says (a label alone: margin 0)
    OnPlane    |a·x' − b| ≤ tolerance·t        an explanation lies on the plane, to within its tolerance
    OffPlane   −y·(a·x' − b) = radius·s, to within tolerance·t     a robust one lies behind it, s = ‖a‖* of its ball's norm
    Steepest   −y·a·w ≥ steepness·t            and is the shortest way across
    Flips      −y·(a·x' − b) ≥ −share·y·(a·x − b) − tolerance·t     an inexact one at least changes the label

They are the float64 form of what `checker` states in rationals, rounded to the side that keeps them true: what follows from these
follows from those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, final

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.lp import Lp
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.norms import Weighted
from overexplain.geometry.polyhedral import Facets, Polyhedral
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.promises import Answer
from overexplain.log.querylog import QueryLog

SOLVED_LENGTH = 1e-7
"""How far, relatively, a length found by a linear program (polyhedral norms) may be off."""


@dataclass(frozen=True)
class OnSide:
    """y·(a·point − b) ≥ margin·t; strict if a No."""

    row: int
    side: int
    point: FloatArray
    margin: float
    norm: Norm | None


@dataclass(frozen=True)
class OnPlane:
    """|a·point − b| ≤ tolerance·t; `is_all`: no more is known of the way there than facts say."""

    row: int
    point: FloatArray
    tolerance: float
    norm: Norm | None
    is_all: bool = True


@dataclass(frozen=True)
class Steepest:
    """−side·a·step ≥ steepness·t."""

    row: int
    side: int
    point: FloatArray
    explanation: FloatArray
    step: FloatArray
    length: float
    steepness: float
    tolerance: float
    norm: Norm

    @property
    def exact_step(self) -> list[Fraction]:
        """w without rounding."""
        return [Fraction(b) - Fraction(a) for a, b in zip(self.point.tolist(), self.explanation.tolist(), strict=True)]


@dataclass(frozen=True)
class Flips:
    """−side·(a·explanation − b) ≥ −share·side·(a·point − b) − tolerance·t; `is_all`: the row says nothing besides."""

    row: int
    side: int
    point: FloatArray
    explanation: FloatArray
    share: float
    norm: Norm | None
    tolerance: float = 0.0
    is_all: bool = True


@dataclass(frozen=True)
class Secret:
    """The reach r ≥ 0 of answers whose radius is not known: the same for all answers under the same terms."""

    distance: Norm | None
    robustness: Norm | None

    @property
    def written(self) -> dict[str, Any]:
        """The form in which the checker knows it."""
        specs = {name: None if norm is None else norm.spec for name, norm in vars(self).items()}
        return {"norm": "secret", **specs}


@dataclass(frozen=True)
class OffPlane:
    """−side·(a·explanation − b) ≥ radius·s − tolerance·t, and if it is `tight` the reverse: ≤ radius·s + tolerance·t.

    s is the length of a under `ball`, t under `norm`. `margin`: side·(a·point − b) ≥ margin·t − radius·s. Unless it is `shared`
    nothing may be concluded from several of them having the same s: the paper's weaker sets.
    """

    row: int
    side: int
    point: FloatArray
    explanation: FloatArray
    tolerance: float
    norm: Norm | None
    ball: Norm | Secret
    radius: float
    tight: bool = True
    margin: float | None = None
    shared: bool = True

    @cached_property
    def behind(self) -> FloatArray:
        """−side·(explanation, −1): how far behind the plane the answer lies, as a row."""
        return -self.side * np.append(self.explanation, -1.0)


Fact = OnSide | OnPlane | Steepest | Flips | OffPlane

Robust = Literal["paper", "perspective", "shared", "exact"]
LEVELS: tuple[Robust, ...] = ("paper", "perspective", "shared", "exact")
"""How much of robust counterfactuals is used, from little to all: see `read_facts`."""


@final
@dataclass(frozen=True)
class Facts:
    """What a log promises: labels in arrays, since there may be many, the facts of explanations one by one.

    `unsided` are the rows with an explanation that could be used if their side were known.
    """

    dimension: int
    rows: IntArray
    points: FloatArray
    sides: IntArray
    explained: tuple[Fact, ...]
    unsided: tuple[int, ...] = ()
    norms: tuple[Norm, ...] = field(default=())
    secrets: tuple[Secret, ...] = field(default=())

    @property
    def is_linear(self) -> bool:
        """True if no fact has a length in it: labels and explanations that are merely valid."""
        return not self.norms and not self.secrets

    @property
    def lengths(self) -> tuple[Norm | Secret, ...]:
        """What the right sides of facts are measured in: the lengths of a under every norm, and secret reaches."""
        return (*self.norms, *self.secrets)

    @property
    def off_plane(self) -> list[OffPlane]:
        """What robust counterfactuals say."""
        return [fact for fact in self.explained if isinstance(fact, OffPlane)]

    def with_explained(self, explained: Iterable[Fact]) -> Facts:
        """The same with other facts of explanations."""
        kept = tuple(explained)
        return replace(self, explained=kept, norms=lengths_in(kept)[0], secrets=lengths_in(kept)[1])

    def queries(self) -> FloatArray:
        """The labels as vectors g with g·(a, b) ≥ 0: side·(point, −1)."""
        return np.hstack([self.points, -np.ones((len(self.points), 1))]) * self.sides[:, None]


def no_facts(dimension: int) -> Facts:
    """What an empty log promises."""
    nothing = np.zeros(0, dtype=np.int64)
    return Facts(dimension, nothing, np.zeros((0, dimension)), nothing, ())


def read_facts(
    log: QueryLog, dimension: int, labels: Any, tolerance: float | None = None, robust: Robust = "shared"
) -> Facts:
    """The facts of a log, whose labels may have been completed by the caller. `tolerance` overrides that of every row.

    Robust counterfactuals: "paper" takes only that the ball lies on the other side, "perspective" also that the perspective point
    does not, "shared" (and "exact") that all of them lie at one and the same s behind the plane.
    """
    explained: list[Fact] = []
    unsided: list[int] = []
    with_margin = np.zeros(len(log), dtype=bool)
    answers = answers_of(log, tolerance)
    for row in log.explained:
        terms = terms_of(log, int(row), tolerance)
        if terms is None:
            continue
        if terms.domain is not None:
            answer = answers[int(row)]
            found = _confined(log, int(row), int(labels[row]), terms, answer) if answer.is_used else []
        else:
            found = _explained(log, int(row), int(labels[row]), terms)
        if not terms.is_plain and terms.domain is None and labels[row]:
            found += _robust(log, int(row), int(labels[row]), terms, robust)
        with_margin[row] = any(isinstance(fact, OnSide) for fact in found)
        explained += found
        if labels[row] == 0:
            unsided.append(int(row))
    rows = np.flatnonzero((np.asarray(labels) != 0) & ~with_margin)
    return Facts(
        dimension,
        rows,
        np.asarray(log.points[rows]).reshape(len(rows), dimension),
        np.asarray(labels)[rows].astype(np.int64),
        tuple(explained),
        tuple(unsided),
        *lengths_in(explained),
    )


def lengths_in(explained: Iterable[Fact]) -> tuple[tuple[Norm, ...], tuple[Secret, ...]]:
    """(norms, secret reaches) that some facts are measured in; the distances of explanations first."""
    distances = dict.fromkeys(fact.norm for fact in explained if fact.norm is not None)
    balls = dict.fromkeys(fact.ball for fact in explained if isinstance(fact, OffPlane))
    norms = dict.fromkeys([*distances, *(ball for ball in balls if not isinstance(ball, Secret))])
    return tuple(norms), tuple(ball for ball in balls if isinstance(ball, Secret))


def terms_of(log: QueryLog, row: int, tolerance: float | None = None) -> Mechanism | None:
    """The terms under which a row's explanation can be used; None if only its label can.

    A tolerance is measured in the distance, so an explanation of an unknown one is used only if it is exact. A merely valid one
    is the served point itself unless a tolerance is declared.
    """
    terms = log.mechanism_of(row)
    if terms is None:
        return None
    if tolerance is not None:
        terms = replace(terms, tolerance=tolerance)
    if terms.slack is None and terms.tolerance is None:
        terms = replace(terms, tolerance=0.0)
    if terms.distance is None and terms.tolerance != 0.0 and terms.domain is None:
        return None
    return terms


def _explained(log: QueryLog, row: int, side: int, terms: Mechanism) -> list[Fact]:
    """The facts of one explained row; without a side only that the explanation is on the plane.

    Those of a robust one that hold whatever its radius; `_robust` has the others.
    """
    point, answer = np.array(log.points[row]), np.array(log.explanations[row])
    norm = terms.distance
    if not terms.is_plain and (norm is None or terms.slack != 0.0):
        return []
    if norm is None or terms.slack is None:
        if terms.slack == 0.0:
            plane: list[Fact] = [OnPlane(row, answer, 0.0, None)]
            return plane if side == 0 else [*plane, OnSide(row, side, point, 0.0, None)]
        off = terms.tolerance or 0.0
        flips = Flips(row, side, point, answer, 0.0, norm if off else None, up(off), is_all=terms.slack is None)
        return [] if side == 0 else [OnSide(row, side, point, 0.0, None), flips]
    step = answer - point
    low, high = _length(norm, step)
    tolerance = _tolerance(norm, terms, point, answer)
    if terms.slack == 0.0:
        plane = [OnPlane(row, answer, tolerance, norm)] if terms.is_plain else []
        if side == 0:
            return plane
        own: list[Fact] = [OnSide(row, side, point, max(0.0, down(low - tolerance)), norm)]
        facts = [*own, *plane] if terms.is_plain else []
        steepness = _steepness(norm, low, tolerance)
        if steepness > 0:
            facts.append(Steepest(row, side, point, answer, step, high, steepness, tolerance, norm))
        return facts
    if side == 0:
        return []
    stretch = 1.0 + terms.slack
    facts = [OnSide(row, side, point, max(0.0, down(down(low - tolerance) / up(stretch))), norm)]
    if low > tolerance:
        facts.append(Flips(row, side, point, answer, up(up(tolerance * up(stretch)) / down(low - tolerance)), norm))
    else:
        facts.append(Flips(row, side, point, answer, 0.0, norm if tolerance else None, tolerance))
    return facts


def _confined(log: QueryLog, row: int, side: int, terms: Mechanism, exact: Answer) -> list[Fact]:
    """The facts of a row whose explanation was chosen from a domain: where x' lies, and nothing about how near it is."""
    point, answer = np.array(log.points[row]), np.array(log.explanations[row])
    norm = None if exact.allowed == 0 else terms.distance
    tolerance = 0.0 if norm is None else _tolerance(norm, terms, point, answer)
    found: list[Fact] = [] if side == 0 else [OnSide(row, side, point, 0.0, None)]
    if exact.is_on_plane:
        return [OnPlane(row, answer, tolerance, norm, is_all=False), *found]
    if side:
        found.append(Flips(row, side, point, answer, 0.0, norm, tolerance, is_all=not exact.moved))
    return found


def _robust(log: QueryLog, row: int, side: int, terms: Mechanism, robust: Robust) -> list[Fact]:
    """Where a robust answer lies."""
    point, answer = np.array(log.points[row]), np.array(log.explanations[row])
    norm = terms.distance if terms.slack is not None or terms.tolerance else None
    ball: Norm | Secret = Secret(terms.distance, terms.robustness)
    radius = 1.0
    if terms.radius is not None and terms.robustness is not None:
        ball, radius = terms.robustness, terms.radius
    shared = isinstance(ball, Secret) or robust in ("shared", "exact")
    tight = terms.slack == 0.0 and (shared or robust == "perspective")
    fact = OffPlane(row, side, point, answer, 0.0, norm, ball, radius, tight, None, shared)
    if norm is None:
        return [fact]
    tolerance = _tolerance(norm, terms, point, answer)
    if terms.slack is None:
        return [replace(fact, tolerance=tolerance)]
    margin = max(0.0, down(down(_length(norm, answer - point)[0] - tolerance) / up(1.0 + terms.slack)))
    return [replace(fact, tolerance=tolerance, margin=margin if shared else None)]


def _tolerance(norm: Norm, terms: Mechanism, point: FloatArray, answer: FloatArray) -> float:
    tolerance = terms.tolerance
    if tolerance is None:
        rounding = norm.answer_rounding
        if not terms.is_plain and terms.robustness is not None:  # the reach of its ball was computed, too
            rounding = max(rounding, terms.robustness.answer_rounding)
        tolerance = rounding * (_length(norm, point)[1] + _length(norm, answer)[1])
    return up(tolerance)


def _steepness(norm: Norm, low: float, tolerance: float) -> float:
    """The s in −y·a·w ≥ s·t for any optimum within the tolerance of the answer."""
    if is_euclidean(norm):
        # Rounded by the factored form: ‖w‖² − τ² would lose the difference of two close numbers.
        return down(float(np.sqrt(max(0.0, down(low - tolerance)) * down(low + tolerance))))
    return down(low - up(2 * tolerance))


def is_euclidean(norm: Norm) -> bool:
    """True for ℓ2, weighted ℓ2 and Mahalanobis: √ of a quadratic form."""
    if isinstance(norm, Weighted):
        norm = norm.norm
        return isinstance(norm, Lp) and norm.q == 2
    return isinstance(norm, Mahalanobis) or (isinstance(norm, Lp) and norm.q == 2)


def _length(norm: Norm, x: FloatArray) -> tuple[float, float]:
    """A norm's value between two floats."""
    value, off = float(norm(x)), length_error(norm, len(x))
    return value * (1 - off), value * (1 + off)


def length_error(norm: Norm, p: int) -> float:
    """How far, relatively, a computed length may be off."""
    return SOLVED_LENGTH if isinstance(norm, Polyhedral | Facets) else 16 * (p + 8) * UNIT_ROUNDOFF


def up(value: float) -> float:
    """The next float above: one rounding paid for. Zero stays zero."""
    return float(np.nextafter(value, np.inf)) if value else value


def down(value: float) -> float:
    """The next float below; zero stays zero."""
    return float(np.nextafter(value, -np.inf)) if value else value
