"""The checker: is a proof about a point true of a log? Exact rational arithmetic, standard library only.

A model (a, b) says Yes where a·x ≥ b. It is **consistent** with a log (docs/theory/consistent.md has the whole definition) if
every stated label is its own, and for every explanation x' of an x, y being its label of x, there is an x° that may be reached
from x, lies within the tolerance τ of x', is across (−y·(a·x° − b) ≥ 0, with a ball ≥ ρ·s) and, unless the answer is merely
valid, costs at most 1 + slack times what the cheapest point across does. a ≠ 0, unless the terms of every row have a domain.

With t = ‖a‖* (the dual of the row's distance) each answer promises a few inequalities about every consistent model, the *facts*;
w = x' − x is its step, y the label of x:

    side      y·(a·x − b) ≥ m·t      the point lies on its own side, as far from the plane as its answer says (label alone: m = 0)
    plane     ±(a·x' − b) ≥ −τ·t     an explanation lies on the plane, to within its tolerance
    steepest  −y·a·w ≥ c·t           the step is the shortest way across; c = √(‖w‖² − τ²) for ℓ2 and its kin, else ‖w‖ − 2τ
    entry     −y·sgn(w_i)·a_i ≥ d_i·t     ℓ1 (weights d) where d_i·|w_i| > τ; ℓ∞ there ≥ 0, and ±a_i ≥ 0 where d_i·|w_i| < ‖w‖ − 2τ
    ray       a·d ≥ 0                for any d level with an exact step of ℓ2 and its kin, or of groups: it shows the direction of a
    flips     −y·(a·x' − b) ≥ −c·y·(a·x − b), or ≥ −τ·t     an inexact explanation at least changes the label
    hoelder   a·d ≥ −‖d‖·t           for any d whatever, under a norm of a row that takes part

A robust explanation lies ρ·s beyond the plane, s = ‖a‖* of the dual of its robustness (N2); if ρ is secret, one unknown reach r ≥
0 beyond it for all rows of the same terms. Its `side` is the label alone, it has no `flips`, and σ = −y:

    plane     ±σ·(a·x' − b) ≥ ±ρ·s − τ·t     (only + if it may exceed the optimum)
    reach     y·(a·x − b) ≥ m·t − ρ·s        the step is no longer than the tolerance and the slack allow
    chord     α·a ≥ δ·s − γ·t                an upper bound on s, see `branches`; it has *arcs* as well

An explanation that was chosen from a domain has its label, `flips`, and, where continuous features brought it there, `plane`.

A **certificate** is a list of facts with weights ≥ 0 whose left sides add up to a·x − b (Yes), to b − a·x (No) or to 0 (a
contradiction), and whose right sides add up, for every length separately, to at least 0. No and a contradiction must be strict: a
sum of right sides above 0 (not of a secret reach, which may be 0), or weight on the label of a No, which is strict by definition
(with a margin in it, it is not: the margin is what may be reached; an exact answer of an unknown distance that is not its own
question makes either label strict), or facts of full rank, which only a = 0 could make 0 together. A second list that adds up to
b − a·x, strict or not, shows that the point lies on the plane. *Lemmas* prove, one after the other, the labels of rows that have
none, by the contradiction that the other label would make; if no row has any, one may be *assumed* to be Yes, if swapping Yes and
No keeps consistent models consistent: then a Yes must be strict as well, and what follows is whether a point has the label of
that row. Instead of one list a proof may have *branches*.

A **witness** is a consistent model, checked by the definition itself (`witnesses`): two of them that disagree at a point show
that the log leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from operator import mul
from typing import Any, NamedTuple

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.branches import IN_BRANCHES, OF_NO_ROW, Bound, Branch, Branched, Context, duties
from overexplain.knowledge.enclosures import (
    ZERO,
    Evidence,
    Length,
    NotEnclosed,
    Vector,
    dot,
    enclose,
    exponent_and_weights,
    is_level,
)
from overexplain.knowledge.promises import (
    BOUNDARY,
    FLOAT64_ANSWER,
    LARGEST_BITS,
    NO,
    YES,
    Answer,
    Fact,
    Promise,
    Right,
    Scaled,
    Term,
    allows_constants,
    as_evidence,
    assumption,
    fits,
    form,
    is_secret,
    needs_evidence,
    promise,
    refuse_inexact,
    refuse_unwieldy,
    rights,
    whole,
)
from overexplain.knowledge.witnesses import check_witness

__all__ = [
    "FLOAT64_ANSWER", "Answer", "Bound", "Branch", "Branched", "Context", "Evidence", "Fact", "Lemma", "Length", "Term",
    "check_certificate", "check_witness", "fact_of",
]  # fmt: skip

FACTS = ("side", "plane", "steepest", "entry", "ray", "flips", "reach", "hoelder", "chord", *IN_BRANCHES)


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
    branches: Branched | None = None,
    relative_to: Vector | None = None,
) -> None:
    """None if the terms prove that every consistent model labels `point` by `verdict` (+1, −1; 2: on the plane).

    With ``point=None`` they prove a contradiction: no model is consistent. Raises CertificateInvalid otherwise. If there are
    branches, they prove it, and there are no terms. `relative_to` is the point that is taken to be Yes, if one is; a row that is
    assumed to be Yes tells it.
    """
    if verdict not in (YES, NO, BOUNDARY):
        raise CertificateInvalid(f"a verdict that can be proved is +1, -1 or 2 (on the plane), got {verdict!r}")
    on_plane = point is not None and verdict == BOUNDARY
    if reverse and not on_plane:
        raise CertificateInvalid("a second list of terms belongs to a point on the plane and to nothing else")
    if branches is not None and (terms or on_plane):
        raise CertificateInvalid("branches prove Yes, No or a contradiction, and they alone: there are no other terms")
    try:
        book = _Book(log, assumption(log, assumed), as_evidence(lengths))
        if assumed:
            relative_to = log[assumed[0][0]].point
        # Up to swapping Yes and No, a Yes must be strict as well: swapped it is a No.
        is_swapped = relative_to is not None and point is not None and tuple(point) != tuple(relative_to)
        for row, label, steps in lemmas:
            book.answer(row, "a lemma")
            if label not in (YES, NO) or book.label(row) is not None:
                raise CertificateInvalid(f"a lemma for row {row}: its label is known already, or {label!r} is no label")
            book.labels[row] = -label  # it cannot be the other one: that would contradict the rest
            _add_up(book, steps, None, strict=True, what=f"the lemma for row {row}: ")
            book.labels[row] = label
        if branches is not None:
            _check_branches(book, branches, point, verdict, weak=is_swapped)
        elif on_plane:
            _add_up(book, terms, _claim(point, 1), strict=False, what="a·x ≥ b: ")
            _add_up(book, reverse, _claim(point, -1), strict=False, what="a·x ≤ b: ")
        else:
            _add_up(book, terms, _claim(point, verdict), strict=point is None or verdict == NO or is_swapped)
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


def fact_of(
    log: Mapping[int, Answer],
    term: Term,
    lengths: Sequence[Length] | Evidence = (),
    labels: Mapping[int, int] | None = None,
    context: Context | None = None,
) -> Fact:
    """What a term says, without its weight: for those who make proofs.

    `labels` are those proved or assumed so far, `context` is what is known at its place in a branch.
    """
    try:
        book = _Book(log, dict(labels or {}), as_evidence(lengths))
        named = Answer((), distance=term.distance) if term.row is None else book.answer(term.row, "the term")
        dimension = len(named.point) if term.row is not None else len(term.vector or next(iter(log.values())).point)
        return book.fact(term, [named], context, dimension)
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

    def fact(self, term: Term, rows: Sequence[Answer], context: Context | None, dimension: int) -> Fact:
        """What the term says, if the log promises it; `rows` are those of the whole list."""
        if term.fact == "hoelder":
            return self._hoelder(term, rows, context)
        if term.fact in IN_BRANCHES and context is None:
            raise CertificateInvalid("it belongs into a branch")
        if context is not None and term.fact in OF_NO_ROW:
            return context.fact(term, dimension, self.evidence)
        answer = self.answer(term.row, "it")
        if term.fact in ("chord", "arc"):
            context = context or Context(answer.distance)
            if answer.robustness is None or context.unit is None:
                raise CertificateInvalid(f"row {term.row} has no known distance and robustness")
            if term.fact == "arc" and answer.radius is None:
                raise CertificateInvalid(f"the reach of row {term.row} is secret: no length that an arc could bound")
            return (context.chord if term.fact == "chord" else context.arc)(answer.robustness, term, self.evidence)
        assert term.row is not None
        y, key = self.label(term.row), (term.fact, term.sign, term.index)
        known: dict[Any, Fact] = answer.__dict__.setdefault("facts", {})
        if term.vector is None and (y, *key) in known:
            return known[y, *key]
        fact = self._always(term, answer)
        if fact is None:
            if y is None and (answer.is_used or term.fact == "side"):
                raise CertificateInvalid(f"the side of row {term.row} is not known")
            fact = None if y is None else self._sided(term, answer, y)
        if fact is None:
            raise CertificateInvalid(f"row {term.row} promises no fact {term.fact!r}")
        if term.vector is None and not needs_evidence(answer.distance):  # a long proof states it again and again
            known[y, *key] = fact
        return fact

    def _hoelder(self, term: Term, rows: Sequence[Answer], context: Context | None) -> Fact:
        norm = term.distance if term.row is None else getattr(self.log[term.row], term.of)
        # A norm made up by the proof could call any vector short: it must be one of the log's own.
        own = [norm for answer in rows for norm in (answer.distance, answer.robustness)]
        own += [] if context is None else [context.unit]
        known = next((other for other in own if other is norm or other == norm), None)
        if known is None or term.vector is None:
            raise CertificateInvalid("needs the distance of a row that is named in the same list")
        return Fact([*term.vector, ZERO], rights((known, -enclose(known, term.vector, self.evidence)[1])))

    def _always(self, term: Term, answer: Answer) -> Fact | None:
        """The facts of exact explanations that hold whichever side the point is on."""
        if not answer.is_used or answer.slack != 0:
            return None
        if term.fact == "plane" and answer.is_on_plane:
            numbers = promise(answer, self.evidence)
            return Fact(form(answer.whole_explanation, term.sign), rights((answer.distance, -numbers.tolerance)))
        if answer.is_confined:
            return None
        if term.fact == "ray" and answer.distance is not None and answer.tolerance == 0 and term.vector is not None:
            if not is_level(answer.distance, answer.step, term.vector):
                raise CertificateInvalid(f"the vector is not level with the step of row {term.row}")
            return Fact([*term.vector, ZERO])
        return None

    def _sided(self, term: Term, answer: Answer, y: int) -> Fact | None:
        """The facts that need the label y of the row."""
        numbers, distance = promise(answer, self.evidence), answer.distance if answer.is_used else None
        own = form(answer.whole, y)
        if term.fact == "side":
            margin = numbers.margin if answer.is_plain else ZERO
            return Fact(own, rights((distance, margin)), (y < 0 and margin == 0) or answer.is_strict)
        if not answer.is_used:
            return None
        assert answer.explanation is not None
        is_exact = answer.slack == 0
        if term.fact == "steepest" and is_exact and numbers.steepness > 0:
            step, below = answer.whole_step
            return Fact(Scaled((*(-y * v for v in step), 0), below), rights((distance, numbers.steepness)))
        if term.fact == "entry" and is_exact and distance is not None and not answer.is_confined:
            return self._entry(term, answer, y, numbers)
        if term.fact == "flips" and (answer.is_confined or (answer.is_plain and not is_exact)):
            share = numbers.flip or ZERO
            left = [share * y * v - y * u for v, u in zip(answer.point, answer.explanation, strict=True)]
            return Fact([*left, y - share * y], rights((distance, -numbers.tolerance)) if numbers.flip is None else ())
        if answer.reach is None:
            return None
        length, factor = answer.reach
        if term.fact == "plane" and (is_exact or term.sign == 1):
            given = form(answer.whole_explanation, -y * term.sign)
            return Fact(given, rights((distance, -numbers.tolerance), (length, term.sign * factor)))
        if term.fact == "reach" and distance is not None and answer.slack is not None:
            return Fact(own, rights((distance, numbers.margin), (length, -factor)))
        return None

    def _entry(self, term: Term, answer: Answer, y: int, numbers: Promise) -> Fact | None:
        """What every optimum within the tolerance says of one entry of a, under ℓ1 and ℓ∞."""
        assert term.index is not None
        size = len(answer.step)
        if term.index >= size:
            raise CertificateInvalid(f"there is no entry {term.index} of a")
        q, weights = exponent_and_weights(answer.distance, size)
        moved, weight = answer.step[term.index], weights[term.index]
        sign, right = Fraction(-y if moved > 0 else y), ZERO
        if q is None and weight * abs(moved) < enclose(answer.distance, answer.step)[0] - 2 * numbers.tolerance:
            sign = Fraction(term.sign)
        elif q not in (1, None) or term.sign != 1 or weight * abs(moved) <= numbers.tolerance:
            return None
        elif q == 1:
            right = weight
        left = [sign if i == term.index else ZERO for i in range(size)]
        return Fact([*left, ZERO], rights((answer.distance, right)))


def _claim(point: Vector | None, sign: int) -> list[Fraction] | None:
    """The left side of sign·(a·x − b) ≥ 0; None if there is no point: a contradiction."""
    return None if point is None else [sign * v for v in (*point, Fraction(-1))]


def _check_branches(book: _Book, branches: Branched, point: Vector | None, verdict: int, *, weak: bool) -> None:
    """None if every case of the proof is shown; `weak`: a Yes is to be strict, so that the plane is denied with it."""
    unit = book.answer(branches.row, "the proof by cases")
    if unit.distance is None:
        raise CertificateInvalid(f"the distance of row {branches.row}, by which cases are measured, is not known")
    dimension = len(unit.point) if point is None else len(point)
    fits(unit, branches.row, dimension)
    claim = _claim(point, -verdict)
    denied = None if claim is None else Fact(claim, (), verdict == YES and not weak)
    for duty in duties(book.log, branches, dimension, denied):
        wanted, gain = [ZERO] * (dimension + 1), None
        if duty.bound is not None:
            wanted = duty.context.along(duty.bound.index, duty.bound.sign, dimension)
            gain = (unit.distance, duty.bound.value)
        _add_up(book, duty.terms, wanted, strict=duty.bound is None, what=duty.what, context=duty.context, gain=gain)


def _add_up(
    book: _Book,
    terms: Sequence[Term],
    wanted: Sequence[Fraction] | None,
    *,
    strict: bool,
    what: str = "",
    context: Context | None = None,
    gain: Right | None = None,
) -> None:
    """None if the left sides add up to what is wanted (None: to 0), and the right sides to the gain, or at least to 0."""
    facts: list[Fact] = []
    named = [n for n, term in enumerate(terms) if _is_sane(term, f"{what}term {n}") and term.row is not None]
    rows = [book.answer(terms[n].row, f"{what}term {n} ({terms[n].fact})") for n in named]
    if wanted is None:
        if not rows:
            raise CertificateInvalid("a contradiction is one between rows, but none is named")
        wanted = [ZERO] * (len(rows[0].point) + 1)
    dimension = len(wanted) - 1
    for n, answer in zip(named, rows, strict=True):
        fits(answer, terms[n].row, dimension)
    for n, term in enumerate(terms):
        if term.vector is not None and len(term.vector) != dimension:
            raise CertificateInvalid(f"{what}term {n}: {term.fact} needs a vector with {dimension} entries")
        try:
            facts.append(book.fact(term, rows, context, dimension))
        except CertificateInvalid as error:
            raise CertificateInvalid(f"{what}term {n} ({term.fact}): {error}") from None
    weights = [term.weight for term in terms]
    refuse_unwieldy(weights, f"{what}its weights")
    for i, (found, want) in enumerate(zip(_sums(weights, facts, dimension + 1), wanted, strict=True)):
        if found[0] * want.denominator != want.numerator * found[1]:
            place, off = "the offset" if i == dimension else f"feature {i}", Fraction(*found) - want
            raise CertificateInvalid(f"{what}the left sides do not add up for {place}: off by {_show(off)}")
    totals = _totals(weights, facts, gain)
    for length, total in totals:
        if total < 0:
            raise CertificateInvalid(f"{what}the right sides for {_name(length)} add up to {_show(total)}, below 0")
    by_definition = any(fact.is_strict and weight > 0 for fact, weight in zip(facts, weights, strict=True))
    if strict and not by_definition and (allows_constants(book.log) or not _is_gained(totals, weights, facts)):
        raise CertificateInvalid(f"{what}nothing in it is strict: the point may lie on the plane, which is Yes")


def _is_gained(totals: Sequence[Right], weights: Sequence[Fraction], facts: Sequence[Fact]) -> bool:
    """True if the sum is above 0 because a is not 0."""
    return any(total > 0 and not is_secret(length) for length, total in totals) or _leave_nothing(weights, facts)


def _leave_nothing(weights: Sequence[Fraction], facts: Sequence[Fact]) -> bool:
    """True if a model on whose plane the point lies would have a = 0, and be none.

    The sum is 0 only if every fact in it is: if none has a length in it and their left sides have full rank, (a, b) = 0.
    """
    used = [fact for fact, weight in zip(facts, weights, strict=True) if weight > 0]
    return bool(used) and not any(fact.rights for fact in used) and _has_full_rank([fact.left for fact in used])


PRIME = 2**127 - 1


def _has_full_rank(rows: Sequence[Sequence[Fraction]]) -> bool:
    """True only if some rows of the matrix are a basis: found modulo a prime, where numbers stay short.

    A minor that is not 0 there is not 0, so the rank modulo a prime never exceeds the true one. It may fall short of it, and then
    the proof is refused.
    """
    if any(value.denominator % PRIME == 0 for row in rows for value in row):
        return False
    left = [[value.numerator * pow(value.denominator % PRIME, -1, PRIME) % PRIME for value in row] for row in rows]
    for k in range(len(left[0])):
        pivot = next((row for row in left if row[k]), None)
        if pivot is None:
            return False
        left.remove(pivot)
        inverse = pow(pivot[k], -1, PRIME)
        for row in left:
            if row[k]:
                factor = row[k] * inverse % PRIME
                row[k:] = [(a - factor * b) % PRIME for a, b in zip(row[k:], pivot[k:], strict=True)]
    return True


def _is_sane(term: Term, who: str) -> bool:
    """True; raises if the term is not made of what it should be, whoever made it."""
    if term.fact not in FACTS:
        raise CertificateInvalid(f"{who}: there is no fact {term.fact!r}; facts are {', '.join(FACTS)}")
    who, fact = f"{who} ({term.fact})", term.fact
    optional = [number for number in (term.power, term.at) if number is not None]
    refuse_inexact([term.weight, *(term.vector or ()), *optional], who)
    if term.weight < 0:
        raise CertificateInvalid(f"{who} has the negative weight {_show(term.weight)}")
    if type(term.sign) is not int or term.sign not in (1, -1):
        raise CertificateInvalid(f"{who} has the sign {term.sign!r}; it is 1 or -1")
    if fact in OF_NO_ROW and term.row is not None:
        raise CertificateInvalid(f"{who} is about no row")
    if term.row is None and fact not in ("hoelder", *OF_NO_ROW):
        raise CertificateInvalid(f"{who} names no row")
    has_vector, has_distance = fact in ("ray", "hoelder", "chord"), fact == "hoelder" and term.row is None
    if (term.sign != 1 and fact not in ("plane", "bound", "entry")) or (term.vector is None) == has_vector:
        raise CertificateInvalid(
            f"{who}: a sign belongs to plane, bound and entry, a vector to ray and hoelder and chord"
        )
    if (term.distance is None) == has_distance:
        raise CertificateInvalid(f"{who}: a distance belongs to a hoelder that names no row")
    if term.of != "distance" and (term.of != "robustness" or fact != "hoelder" or term.row is None):
        raise CertificateInvalid(
            f"{who}: only a hoelder with a row is `of` its distance or its robustness, not {term.of!r}"
        )
    has_index = fact in ("bound", "entry")
    if (term.index is None) == has_index or (has_index and not _is_index(term.index)):
        raise CertificateInvalid(f"{who}: the index of an entry of a belongs to bound and entry, got {term.index!r}")
    if (fact != "chord" and term.power is not None) or (fact not in ("chord", "arc") and term.at is not None):
        raise CertificateInvalid(f"{who}: a power belongs to chord, and a place where it touches; that to arc as well")
    if fact == "arc" and (term.at is None or term.at < 0):
        raise CertificateInvalid(f"{who}: an arc touches at some number, 0 or more")
    if term.power is not None:
        at = term.at if term.at is not None or term.power > 1 else 1  # a power of 1 touches everywhere
        if term.power < 1 or at is None or at <= 0:
            raise CertificateInvalid(f"{who}: a power is at least 1, and touches at some number above 0")
    return True


def _is_index(index: Any) -> bool:
    return type(index) is int and index >= 0


def _sums(weights: Sequence[Fraction], facts: Sequence[Fact], size: int) -> Iterator[tuple[int, int]]:
    """Σ weight·left, entry by entry: whole numbers (a, b) for a/b, which need not be reduced."""
    rows = [whole(fact.left) for fact in facts]
    longest = max((abs(v) for numbers, _ in rows for v in numbers), default=0).bit_length()
    if max(longest, sum(below.bit_length() for _, below in rows)) > LARGEST_BITS:  # entry by entry they may be shorter
        yield from ((_sum(weights, [f.left[i] for f in facts])).as_integer_ratio() for i in range(size))
        return
    common = lcm(*(weight.denominator * below for weight, (_, below) in zip(weights, rows, strict=True)))
    factors = [w.numerator * (common // (w.denominator * below)) for w, (_, below) in zip(weights, rows, strict=True)]
    for column in zip(*(numbers for numbers, _ in rows), strict=True) if rows else [()] * size:
        yield sum(map(mul, factors, column)), common


def _sum(weights: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    refuse_unwieldy(values, "a sum in it")
    return dot(weights, values)


def _totals(weights: Sequence[Fraction], facts: Sequence[Fact], gain: Right | None) -> list[Right]:
    """Every length that takes part, with the sum of its right sides, less what is to be gained of it."""
    parts: list[tuple[Any, list[Fraction], list[Fraction]]] = []
    pairs = [(weight, right) for weight, fact in zip(weights, facts, strict=True) for right in fact.rights]
    for weight, (length, factor) in [*pairs, *([] if gain is None else [(Fraction(-1), gain)])]:
        part = next((part for part in parts if part[0] is length or part[0] == length), None)
        if part is None:
            parts.append(part := (length, [], []))
        part[1].append(weight)
        part[2].append(factor)
    return [(length, _sum(shares, factors)) for length, shares, factors in parts]


def _name(length: Any) -> str:
    if is_secret(length):
        return "the secret reach"
    return f"the distance {length['norm'] if isinstance(length, dict) else length}"


def _show(number: Fraction) -> str:
    try:
        return f"{float(number):.3g}"
    except OverflowError:
        return "more than 1e308"
