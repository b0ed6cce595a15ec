"""The checker: is a proof about a point true of a log? Exact rational arithmetic, standard library only.

A consistent model is any (a, b), a ≠ 0, that could have given every answer of the log. With t = ‖a‖* (the dual of the row's
distance) each answer promises a few inequalities, the *facts*:

    side      y·(a·x − b) ≥ m·t      the point lies on its own side, as far from the plane as its answer says (label alone: m = 0)
    plane     ±(a·x' − b) ≥ −τ·t     an explanation lies on the plane, to within its tolerance
    steepest  −y·a·w ≥ s·t           its step w = x' − x is the shortest way across
    flips     −y·(a·x' − b) ≥ −c·y·(a·x − b)      an inexact explanation at least changes the label
    hoelder   a·d ≥ −‖d‖·t           for any vector d whatever

A **certificate** is a list of facts with weights ≥ 0 whose left sides add up to a·x − b (Yes), to b − a·x (No) or to 0 (a
contradiction), and whose right sides add up, for every distance separately, to at least 0. No and a contradiction must be
strict: somewhere a right side above 0, or weight on the own side of a No, which is strict by definition.

A **witness** is a model that keeps every fact: two of them that disagree at a point show that the log leaves it open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.enclosures import NotEnclosed, Vector, dual_spec, enclose

FLOAT64_ANSWER = Fraction(1, 2**40)
ZERO = Fraction(0)


@dataclass(frozen=True)
class Answer:
    """One row of a log in exact numbers. `distance` is the norm's written form; tolerance None: float64 rounding."""

    point: tuple[Fraction, ...]
    label: int | None = None
    explanation: tuple[Fraction, ...] | None = None
    distance: Any = None
    tolerance: Fraction | None = None
    slack: Fraction | None = ZERO

    @property
    def step(self) -> tuple[Fraction, ...]:
        """w = x' − x."""
        assert self.explanation is not None
        return tuple(b - a for a, b in zip(self.point, self.explanation, strict=True))


@dataclass(frozen=True)
class Term:
    """A fact with its weight. `row` says which answer; hoelder has a vector and a distance instead."""

    fact: str
    weight: Fraction
    row: int | None = None
    sign: int = 1
    vector: tuple[Fraction, ...] | None = None
    distance: Any = None


def check_certificate(log: Mapping[int, Answer], terms: Sequence[Term], point: Vector | None, verdict: int) -> None:
    """None if the terms prove that every consistent model labels `point` by `verdict` (+1, −1).

    With ``point=None`` they prove a contradiction: no model is consistent. Raises CertificateInvalid otherwise.
    """
    try:
        _add_up(log, terms, point, verdict)
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


def _add_up(log: Mapping[int, Answer], terms: Sequence[Term], point: Vector | None, verdict: int) -> None:
    if verdict not in (1, -1):
        raise CertificateInvalid(f"a verdict is +1 or -1, got {verdict!r}")
    dimension = len(next(iter(log.values())).point) if point is None else len(point)
    total = [ZERO] * (dimension + 1)
    right: dict[str, Fraction] = {}
    strict = False
    for number, term in enumerate(terms):
        if term.weight < 0:
            raise CertificateInvalid(f"term {number} ({term.fact}) has the negative weight {term.weight}")
        left, bound, key, is_strict = _fact(log, term, number, dimension)
        for i, value in enumerate(left):
            total[i] += term.weight * value
        right[key] = right.get(key, ZERO) + term.weight * bound
        strict = strict or (is_strict and term.weight > 0)
    wanted = [ZERO] * (dimension + 1) if point is None else [verdict * v for v in (*point, Fraction(-1))]
    for i, (found, want) in enumerate(zip(total, wanted, strict=True)):
        if found != want:
            place = "the offset" if i == dimension else f"feature {i}"
            raise CertificateInvalid(f"the left sides do not add up for {place}: off by {float(found - want):.3g}")
    for key, value in right.items():
        if value < 0:
            raise CertificateInvalid(f"the right sides for the distance {key} add up to {float(value):.3g}, below 0")
    if (point is None or verdict < 0) and not strict and not any(value > 0 for value in right.values()):
        raise CertificateInvalid("nothing in it is strict: the point may lie on the plane, which is Yes")


def check_witness(log: Mapping[int, Answer], normal: Vector, offset: Fraction) -> None:
    """None if the model (normal, offset) keeps every fact of the log; CertificateInvalid, with the row, if not."""
    if not any(normal):
        raise CertificateInvalid("a model with a zero normal is no model")
    try:
        _keep_all(log, normal, offset)
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


def _keep_all(log: Mapping[int, Answer], normal: Vector, offset: Fraction) -> None:
    for row, answer in log.items():
        _fits(answer, row, len(normal))
        own = _dot(normal, answer.point) - offset
        if answer.label is not None and (own < 0 if answer.label > 0 else own >= 0):
            raise CertificateInvalid(f"the model gives row {row} another label")
        if answer.explanation is None or not _is_used(answer):
            continue
        across = _dot(normal, answer.explanation) - offset
        if not _keeps(answer, normal, own, across, 1 if own >= 0 else -1):
            raise CertificateInvalid(f"the model would not have given the explanation in row {row}")


def _keeps(answer: Answer, normal: Vector, own: Fraction, across: Fraction, y: int) -> bool:
    """True if a model keeps the facts of an explained row whose question it puts on side y."""
    terms = _terms(answer)
    if terms.spec is None:
        return across == 0 if answer.slack == 0 else -y * across >= 0
    low, high = enclose(dual_spec(terms.spec), normal)
    if y * own < terms.margin_high * high:
        return False
    if answer.slack == 0:
        return abs(across) <= terms.tolerance * low and -y * _dot(normal, answer.step) >= terms.steepness_high * high
    return terms.flip_low is None or -y * across >= -terms.flip_low * y * own


@dataclass(frozen=True)
class _Terms:
    """The numbers in an explained row's facts, each enclosed on the side that keeps them true."""

    spec: Any
    tolerance: Fraction
    margin_low: Fraction
    margin_high: Fraction
    steepness_low: Fraction
    steepness_high: Fraction
    flip_low: Fraction | None
    flip_high: Fraction | None


def _is_used(answer: Answer) -> bool:
    """An explanation of an unknown distance is used only if it is exact; a merely valid one only without a tolerance.

    (A merely valid one, slack None, is the served float point itself: its own label is what is promised.)
    """
    if answer.slack is None or answer.distance is None:
        return not answer.tolerance if answer.slack is None else answer.tolerance == 0
    return True


def _terms(answer: Answer) -> _Terms:
    if answer.distance is None or answer.slack is None:
        return _Terms(None, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)
    assert answer.explanation is not None
    low, high = enclose(answer.distance, answer.step)
    tolerance = answer.tolerance
    if tolerance is None:
        tolerance = FLOAT64_ANSWER * (
            enclose(answer.distance, answer.point)[1] + enclose(answer.distance, answer.explanation)[1]
        )
    stretch = 1 + answer.slack
    flip = tolerance * stretch
    return _Terms(
        answer.distance,
        tolerance,
        max(ZERO, low - tolerance) / stretch,
        max(ZERO, high - tolerance) / stretch,
        low - 2 * tolerance,
        high - 2 * tolerance,
        flip / (high - tolerance) if high > tolerance else None,
        flip / (low - tolerance) if low > tolerance else None,  # None: too short a step to promise that the label flips
    )


def _fact(
    log: Mapping[int, Answer], term: Term, number: int, dimension: int
) -> tuple[list[Fraction], Fraction, str, bool]:
    """(left side as a vector in (a, b), right side's number, its distance, strict by definition?)."""
    if term.fact == "hoelder":
        if term.vector is None or len(term.vector) != dimension:
            raise CertificateInvalid(f"term {number}: hoelder needs a vector with {dimension} entries")
        return [*term.vector, ZERO], -enclose(term.distance, term.vector)[1], repr(term.distance), False
    if term.row is None or term.row not in log:
        raise CertificateInvalid(f"term {number} names row {term.row}, which the log does not have")
    answer = log[term.row]
    _fits(answer, term.row, dimension)
    y = answer.label
    if term.fact == "side" and y is not None and (answer.explanation is None or not _is_used(answer)):
        return [*(y * v for v in answer.point), Fraction(-y)], ZERO, "none", y < 0
    if answer.explanation is None or not _is_used(answer):
        raise CertificateInvalid(f"term {number}: row {term.row} promises no fact {term.fact!r}")
    terms = _terms(answer)
    key = repr(terms.spec)
    exact = answer.slack == 0
    if term.fact == "plane" and exact:
        return [*(term.sign * v for v in answer.explanation), Fraction(-term.sign)], -terms.tolerance, key, False
    if y is None:
        raise CertificateInvalid(f"term {number}: the side of row {term.row} is not known")
    if term.fact == "side":
        return [*(y * v for v in answer.point), Fraction(-y)], terms.margin_low, key, y < 0
    if term.fact == "steepest" and exact and terms.spec is not None:
        return [*(-y * v for v in answer.step), ZERO], terms.steepness_low, key, False
    if term.fact == "flips" and not exact and terms.flip_high is not None:
        share = terms.flip_high
        left = [-y * b + share * y * a for a, b in zip(answer.point, answer.explanation, strict=True)]
        return [*left, y - share * y], ZERO, key, False
    raise CertificateInvalid(f"term {number}: row {term.row} promises no fact {term.fact!r}")


def _fits(answer: Answer, row: int, dimension: int) -> None:
    if len(answer.point) != dimension or len(answer.explanation or answer.point) != dimension:
        raise CertificateInvalid(f"row {row} has not {dimension} features")


def _dot(left: Vector, right: Vector) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), ZERO)
