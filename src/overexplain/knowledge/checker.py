"""The checker: is a proof about a point true of a log? Exact rational arithmetic, standard library only.

A consistent model is any (a, b), a ≠ 0, that could have given every answer of the log. With t = ‖a‖* (the dual of the row's
distance) each answer promises a few inequalities, the *facts*; w = x' − x is its step, y the label of x:

    side      y·(a·x − b) ≥ m·t      the point lies on its own side, as far from the plane as its answer says (label alone: m = 0)
    plane     ±(a·x' − b) ≥ −τ·t     an explanation lies on the plane, to within its tolerance
    steepest  −y·a·w ≥ s·t           the step is the shortest way across; s = √(‖w‖² − τ²) for ℓ2 and its kin, else ‖w‖ − 2τ
    ray       a·d ≥ 0                for any d level with an exact step of ℓ2 and its kin, or of groups: it shows the direction of a
    flips     −y·(a·x' − b) ≥ −c·y·(a·x − b)      an inexact explanation at least changes the label
    hoelder   a·d ≥ −‖d‖·t           for any d whatever, under the distance of a row that takes part

A **certificate** is a list of facts with weights ≥ 0 whose left sides add up to a·x − b (Yes), to b − a·x (No) or to 0 (a
contradiction), and whose right sides add up, for every distance separately, to at least 0. No and a contradiction must be
strict: a sum of right sides above 0, or weight on the label of a No, which is strict by definition (with a margin in it, it is
not: the margin is what may be reached), or facts of full rank, which only a = 0 could make 0 together. A second list that
adds up to b − a·x, strict or not, shows that the point lies on the plane. *Lemmas* prove, one after the other, the labels of
rows that have none, by the contradiction that the other label would make; if no row has any, one may be *assumed* to be Yes:
what follows holds up to swapping Yes and No.

A **witness** is a model that keeps every fact: two of them that disagree at a point show that the log leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.enclosures import ZERO, Evidence, Length, NotEnclosed, Vector, dot, enclose, is_level
from overexplain.knowledge.promises import (
    BOUNDARY,
    FLOAT64_ANSWER,
    NO,
    YES,
    Answer,
    as_evidence,
    assumption,
    fits,
    promise,
    refuse_inexact,
    refuse_unwieldy,
)
from overexplain.knowledge.witnesses import check_witness

__all__ = [
    "FLOAT64_ANSWER", "Answer", "Evidence", "Fact", "Lemma", "Length", "Term", "check_certificate", "check_witness",
    "fact_of",
]  # fmt: skip

FACTS = ("side", "plane", "steepest", "ray", "flips", "hoelder")


@dataclass(frozen=True)
class Term:
    """A fact with its weight. `row` says which answer; ray and hoelder have a vector, plane a sign.

    Hoelder takes its distance from `row`, or else is told it: some row in the same list must have it.
    """

    fact: str
    weight: Fraction
    row: int | None = None
    sign: int = 1
    vector: tuple[Fraction, ...] | None = None
    distance: Any = None


class Lemma(NamedTuple):
    """The label of a row which has none; the terms prove a contradiction between the other label and the rest."""

    row: int
    label: int
    terms: Sequence[Term]


def check_certificate(
    log: Mapping[int, Answer],
    terms: Sequence[Term],
    point: Vector | None,
    verdict: int,
    *,
    reverse: Sequence[Term] = (),
    lemmas: Sequence[tuple[int, int, Sequence[Term]]] = (),
    assumed: Sequence[tuple[int, int]] = (),
    lengths: Sequence[Length] | Evidence = (),
) -> None:
    """None if the terms prove that every consistent model labels `point` by `verdict` (+1, −1; 2: on the plane).

    With ``point=None`` they prove a contradiction: no model is consistent. Raises CertificateInvalid otherwise.
    """
    if verdict not in (YES, NO, BOUNDARY):
        raise CertificateInvalid(f"a verdict that can be proved is +1, -1 or 2 (on the plane), got {verdict!r}")
    on_plane = point is not None and verdict == BOUNDARY
    if reverse and not on_plane:
        raise CertificateInvalid("a second list of terms belongs to a point on the plane and to nothing else")
    try:
        book = _Book(log, assumption(log, assumed), as_evidence(lengths))
        for row, label, steps in lemmas:
            book.answer(row, "a lemma")
            if label not in (YES, NO) or book.label(row) is not None:
                raise CertificateInvalid(f"a lemma for row {row}: its label is known already, or {label!r} is no label")
            book.labels[row] = -label  # it cannot be the other one: that would contradict the rest
            _add_up(book, steps, None, 1, strict=True, what=f"the lemma for row {row}: ")
            book.labels[row] = label
        if on_plane:
            _add_up(book, terms, point, 1, strict=False, what="a·x ≥ b: ")
            _add_up(book, reverse, point, -1, strict=False, what="a·x ≤ b: ")
        else:
            sign = 1 if point is None else verdict
            _add_up(book, terms, point, sign, strict=point is None or verdict == NO)
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


class Fact(NamedTuple):
    """left·(a, b) ≥ right·‖a‖*, the dual of the distance; strict by definition?"""

    left: Sequence[Fraction]
    right: Fraction = ZERO
    distance: Any = None
    is_strict: bool = False


def fact_of(
    log: Mapping[int, Answer],
    term: Term,
    lengths: Sequence[Length] | Evidence = (),
    labels: Mapping[int, int] | None = None,
) -> Fact:
    """What a term says, without its weight: for those who make proofs. `labels` are those proved or assumed so far."""
    try:
        book = _Book(log, dict(labels or {}), as_evidence(lengths))
        source = Answer((), distance=term.distance) if term.row is None else book.answer(term.row, "the term")
        return book.fact(term, [source])
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


@dataclass(frozen=True)
class _Book:
    """A log and what has been established about it so far."""

    log: Mapping[int, Answer]
    labels: dict[int, int]
    evidence: Evidence

    def answer(self, row: Any, who: str) -> Answer:
        if type(row) is not int or row not in self.log:
            raise CertificateInvalid(f"{who} names row {row!r}, which the log does not have")
        return self.log[row]

    def label(self, row: int) -> int | None:
        return self.labels.get(row, self.log[row].label)

    def fact(self, term: Term, rows: Sequence[Answer]) -> Fact:
        """What the term says, if the log promises it; `rows` are those of the whole list."""
        if term.fact == "hoelder":
            distance = term.distance if term.row is None else self.log[term.row].distance
            # A norm made up by the proof could call any vector short: it must be one of the log's own.
            known = next((answer.distance for answer in rows if answer.distance == distance), None)
            if known is None or term.vector is None:
                raise CertificateInvalid("needs the distance of a row that is named in the same list")
            return Fact([*term.vector, ZERO], -enclose(known, term.vector, self.evidence)[1], known)
        answer = self.answer(term.row, "it")
        y = self.label(term.row) if term.row is not None else None
        numbers = promise(answer, self.evidence, strong=False)
        exact = answer.is_used and answer.slack == 0
        image, distance = answer.explanation or (), answer.distance if answer.is_used else None
        if term.fact == "plane" and exact:
            return Fact([*(term.sign * v for v in image), Fraction(-term.sign)], -numbers.tolerance, distance)
        if term.fact == "ray" and exact and distance is not None and answer.tolerance == 0 and term.vector is not None:
            if not is_level(distance, answer.step, term.vector):
                raise CertificateInvalid(f"the vector is not level with the step of row {term.row}")
            return Fact([*term.vector, ZERO])
        if y is None and (answer.is_used or term.fact == "side"):
            raise CertificateInvalid(f"the side of row {term.row} is not known")
        if y is not None and term.fact == "side":
            return Fact(
                [*(y * v for v in answer.point), Fraction(-y)], numbers.margin, distance, y < 0 and numbers.margin == 0
            )
        if y is not None and term.fact == "steepest" and exact and numbers.steepness > 0:
            return Fact([*(-y * v for v in answer.step), ZERO], numbers.steepness, distance)
        if y is not None and term.fact == "flips" and answer.is_used and not exact and numbers.flip is not None:
            left = [numbers.flip * y * v - y * u for v, u in zip(answer.point, image, strict=True)]
            return Fact([*left, y - numbers.flip * y])
        raise CertificateInvalid(f"row {term.row} promises no fact {term.fact!r}")


def _add_up(
    book: _Book, terms: Sequence[Term], point: Vector | None, sign: int, *, strict: bool, what: str = ""
) -> None:
    """None if the terms add up to sign·(point, −1), or to 0, and pay for it."""
    facts: list[Fact] = []
    named = [n for n, term in enumerate(terms) if _is_sane(term, f"{what}term {n}") and term.row is not None]
    rows = [book.answer(terms[n].row, f"{what}term {n} ({terms[n].fact})") for n in named]
    if point is None and not rows:
        raise CertificateInvalid("a contradiction is one between rows, but none is named")
    dimension = len(rows[0].point) if point is None else len(point)
    for n, answer in zip(named, rows, strict=True):
        fits(answer, terms[n].row, dimension)
    for n, term in enumerate(terms):
        if term.vector is not None and len(term.vector) != dimension:
            raise CertificateInvalid(f"{what}term {n}: {term.fact} needs a vector with {dimension} entries")
        try:
            facts.append(book.fact(term, rows))
        except CertificateInvalid as error:
            raise CertificateInvalid(f"{what}term {n} ({term.fact}): {error}") from None
    weights = [term.weight for term in terms]
    refuse_unwieldy(weights, f"{what}its weights")
    wanted = [ZERO] * (dimension + 1) if point is None else [sign * v for v in (*point, Fraction(-1))]
    for i, (found, want) in enumerate(zip(_sums(weights, facts, dimension + 1), wanted, strict=True)):
        if found != want:
            place = "the offset" if i == dimension else f"feature {i}"
            raise CertificateInvalid(f"{what}the left sides do not add up for {place}: off by {_show(found - want)}")
    totals = [(distance, _sum(weights, rights)) for distance, rights in _by_distance(facts)]
    for distance, total in totals:
        if total < 0:
            raise CertificateInvalid(f"{what}the right sides for {_name(distance)} add up to {_show(total)}, below 0")
    by_definition = any(fact.is_strict and weight > 0 for fact, weight in zip(facts, weights, strict=True))
    if (
        strict
        and not by_definition
        and not any(total > 0 for _, total in totals)
        and not _leave_nothing(weights, facts)
    ):
        raise CertificateInvalid(f"{what}nothing in it is strict: the point may lie on the plane, which is Yes")


def _leave_nothing(weights: Sequence[Fraction], facts: Sequence[Fact]) -> bool:
    """True if a model on whose plane the point lies would have a = 0.

    The sum is 0 only if every fact in it is: if none has a length in it and their left sides have full rank, (a, b) = 0.
    """
    used = [fact for fact, weight in zip(facts, weights, strict=True) if weight > 0]
    if not used or any(fact.right for fact in used):
        return False
    rows = [list(fact.left) for fact in used]
    for k in range(len(rows[0])):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return False
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for row in rows[k + 1 :]:
            factor = row[k] / rows[k][k]
            row[:] = [a - factor * b for a, b in zip(row, rows[k], strict=True)]
    return True


def _is_sane(term: Term, who: str) -> bool:
    """True; raises if the term is not made of what it should be, whoever made it."""
    if term.fact not in FACTS:
        raise CertificateInvalid(f"{who}: there is no fact {term.fact!r}; facts are {', '.join(FACTS)}")
    refuse_inexact([term.weight, *(term.vector or ())], f"{who} ({term.fact})")
    if term.weight < 0:
        raise CertificateInvalid(f"{who} ({term.fact}) has the negative weight {_show(term.weight)}")
    if type(term.sign) is not int or term.sign not in (1, -1):
        raise CertificateInvalid(f"{who} ({term.fact}) has the sign {term.sign!r}; it is 1 or -1")
    if term.row is None and term.fact != "hoelder":
        raise CertificateInvalid(f"{who} ({term.fact}) names no row")
    has_vector, has_distance = term.fact in ("ray", "hoelder"), term.fact == "hoelder" and term.row is None
    if (term.sign != 1 and term.fact != "plane") or (term.vector is None) == has_vector:
        raise CertificateInvalid(f"{who} ({term.fact}): a sign belongs to plane, a vector to ray and hoelder")
    if (term.distance is None) == has_distance:
        raise CertificateInvalid(f"{who} ({term.fact}): a distance belongs to a hoelder that names no row")
    return True


def _sums(weights: Sequence[Fraction], facts: Sequence[Fact], size: int) -> Iterator[Fraction]:
    """Σ weight·left, entry by entry."""
    return (_sum(weights, [fact.left[i] for fact in facts]) for i in range(size))


def _sum(weights: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    refuse_unwieldy(values, "a sum in it")
    return dot(weights, values)


def _by_distance(facts: Sequence[Fact]) -> Iterator[tuple[Any, list[Fraction]]]:
    """Every distance that takes part, with the right sides of all facts, 0 for those of other distances."""
    seen: list[Any] = []
    for fact in facts:
        if fact.distance is not None and fact.distance not in seen:
            seen.append(fact.distance)
            yield fact.distance, [f.right if f.distance == fact.distance else ZERO for f in facts]


def _name(distance: Any) -> str:
    return f"the distance {distance['norm'] if isinstance(distance, dict) else distance}"


def _show(number: Fraction) -> str:
    try:
        return f"{float(number):.3g}"
    except OverflowError:
        return "more than 1e308"
