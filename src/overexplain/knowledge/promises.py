"""What one answer of a log promises about every consistent model, in exact numbers. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import neg
from typing import Any, NamedTuple, overload

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.enclosures import (
    ZERO,
    Enclosure,
    Evidence,
    Length,
    NotEnclosed,
    axis_length,
    dual_spec,
    enclose,
    exponent_and_weights,
    no_evidence,
    product,
    root,
)

YES, NO, BOUNDARY = 1, -1, 2

LARGEST_BITS = 100_000
"""Longer numerators and common denominators are refused: no honest proof needs them, and they would take for ever."""

FLOAT64_ANSWER = Fraction(1, 2**40)


SECRET = "secret"

Right = tuple[Any, Fraction]
"""A length and its factor."""


@dataclass(frozen=True)
class Term:
    """A fact with its weight. `row` says which answer; the other fields belong to some facts only, see `checker`.

    Hoelder takes its norm from `row` (`of`: its distance or its robustness), or else is told it: some row in the same list must
    have it.
    """

    fact: str
    weight: Fraction
    row: int | None = None
    sign: int = 1
    vector: tuple[Fraction, ...] | None = None
    distance: Any = None
    of: str = "distance"
    power: Fraction | None = None
    at: Fraction | None = None
    index: int | None = None


class Scaled(Sequence[Fraction]):
    """numbers/below, entry by entry: what is added up is added up in whole numbers."""

    __slots__ = ("below", "numbers")

    def __init__(self, numbers: tuple[int, ...], below: int) -> None:
        self.numbers, self.below = numbers, below

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Fraction: ...
    @overload
    def __getitem__(self, at: slice) -> list[Fraction]: ...
    def __getitem__(self, at: int | slice) -> Fraction | list[Fraction]:
        if isinstance(at, slice):
            return [Fraction(number, self.below) for number in self.numbers[at]]
        return Fraction(self.numbers[at], self.below)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self[:] == list(other)

    __hash__ = None  # type: ignore[assignment]


class Fact(NamedTuple):
    """left·(a, b) ≥ Σ factor·length over `rights`, every length named once; strict by definition?

    A length is the written form of a norm, for its dual ‖a‖* > 0, or the reach r ≥ 0 of a secret radius.
    """

    left: Sequence[Fraction]
    rights: tuple[Right, ...] = ()
    is_strict: bool = False

    @property
    def right(self) -> Fraction:
        """The factor of its only length, as facts of plain rows have; 0 if it has none."""
        if len(self.rights) > 1:
            raise ValueError("this fact has several lengths")
        return self.rights[0][1] if self.rights else ZERO


def rights(*pairs: Right) -> tuple[Right, ...]:
    """Σ factor·length, equal lengths taken together; a factor of 0 and a length of None are left out."""
    made: list[Right] = []
    for length, factor in pairs:
        if length is None or not factor:
            continue
        k = next((k for k, (known, _) in enumerate(made) if known is length or known == length), len(made))
        made[k:] = [(length, factor + (made[k][1] if k < len(made) else ZERO)), *made[k + 1 :]]
    return tuple(pair for pair in made if pair[1])


def is_secret(length: Any) -> bool:
    """True for the reach of a secret radius: it may be 0, and no norm tells it."""
    return isinstance(length, dict) and length.get("norm") == SECRET


@dataclass(frozen=True)
class Answer:
    """One row of a log in exact numbers. `distance` and `robustness` are the norms' written forms.

    A tolerance of None is float64 rounding: `rounding`·(‖x‖ + ‖x'‖). A radius of None is secret. `free` are the continuous
    features of the domain that the explanation was chosen from, None: from all of R^p; `limits` are theirs, and `is_valid` says
    whether the explanation is itself in the domain.
    """

    point: tuple[Fraction, ...]
    label: int | None = None
    explanation: tuple[Fraction, ...] | None = None
    distance: Any = None
    tolerance: Fraction | None = None
    slack: Fraction | None = ZERO
    rounding: Fraction = FLOAT64_ANSWER
    robustness: Any = None
    radius: Fraction | None = ZERO
    free: tuple[int, ...] | None = None
    limits: tuple[tuple[Fraction | None, Fraction | None], ...] = ()
    is_valid: bool = True

    @property
    def is_plain(self) -> bool:
        """True if the explanation has no ball around it."""
        return self.radius == 0

    @property
    def is_confined(self) -> bool:
        """True if the explanation was chosen from less than R^p."""
        return self.free is not None

    @cached_property
    def allowed(self) -> Fraction | None:
        """The tolerance, 0 where the definition makes it so: of valid answers that were served, and of discrete features."""
        if self.free is not None and not self.free:
            return ZERO
        if self.tolerance is None and (self.slack is None or (self.is_confined and not self.moved)):
            return ZERO
        return self.tolerance

    @cached_property
    def moved(self) -> tuple[int, ...]:
        """The continuous features of its domain that moved."""
        return tuple(i for i in self.free or () if self.step[i])

    @cached_property
    def is_on_plane(self) -> bool:
        """True if x' itself lies on the plane, to within the tolerance: a plain optimum that no discrete feature brought across."""
        if self.explanation is None or not self.is_plain or self.slack != 0:
            return False
        if self.free is None:
            return True
        fixed = [i for i, v in enumerate(self.step) if v and i not in self.free]
        if not fixed or not self.moved or self.distance is None:
            return bool(self.moved) and not fixed
        try:
            q, weights = exponent_and_weights(self.distance, len(self.step))
            tolerance = tolerance_of(self, no_evidence)[1]
        except NotEnclosed:  # a norm under which a shorter move may cost more
            return False
        # It was not the tolerance alone that moved a continuous feature, under ℓ∞ as far as any.
        sizes = [weight * abs(v) for weight, v in zip(weights, self.step, strict=True)]
        farthest = max(sizes[i] for i in self.moved) - tolerance
        return farthest > (0 if q is not None else max(sizes[i] for i in fixed))

    @cached_property
    def reach(self) -> Right | None:
        """How far from the plane a robust explanation lies, times ‖a‖: a length and its factor. None: plain, or not known.

        Rows of a secret radius with the same norms share one reach.
        """
        if self.is_plain or self.is_confined:
            return None
        if self.radius is None:
            return secret_of(self), Fraction(1)
        return None if self.robustness is None else (self.robustness, self.radius)

    @cached_property
    def is_swappable(self) -> bool:
        """True if (−a, −b) is consistent with the row, its label left out, whenever (a, b) is.

        So it is unless the explained point may lie on the plane and its answer behind it: not if the ball is known to be shorter
        than the step, s ≤ Σ|a_i|·‖e_i‖ ≤ t·Σ‖e_i‖*·‖e_i‖ bounding it.
        """
        if self.slack is None or self.is_confined or self.radius is None:
            return False
        if self.is_plain or self.distance is None or self.robustness is None:
            return self.is_plain
        dual, size = dual_spec(self.robustness), len(self.point)
        try:
            ratio = sum((axis_length(self.distance, i, size) * axis_length(dual, i, size) for i in range(size)), ZERO)
            margin = promise(self, no_evidence).margin
        except NotEnclosed:
            return False
        return self.radius * (1 if self.distance == self.robustness else ratio) < margin

    @property
    def is_strict(self) -> bool:
        """True if the explained point lies strictly on its side although no margin says so: exact, of an unknown distance."""
        return self.is_used and self.distance is None and self.is_plain and self.is_swappable and any(self.step)

    @cached_property
    def step(self) -> tuple[Fraction, ...]:
        """w = x' − x."""
        assert self.explanation is not None
        return tuple(b - a for a, b in zip(self.point, self.explanation, strict=True))

    @cached_property
    def whole(self) -> tuple[tuple[int, ...], int]:
        """The point as whole numbers over one denominator."""
        return whole(self.point)

    @cached_property
    def whole_step(self) -> tuple[tuple[int, ...], int]:
        """The same of w."""
        return whole(self.step)

    @cached_property
    def whole_explanation(self) -> tuple[tuple[int, ...], int]:
        """The same of x'."""
        assert self.explanation is not None
        return whole(self.explanation)

    @property
    def is_used(self) -> bool:
        """True if the explanation says anything.

        A tolerance is measured in the distance: one of an unknown distance does only if it is exact.
        """
        return self.explanation is not None and (self.distance is not None or self.allowed == 0)


def secret_of(answer: Answer) -> dict[str, Any]:
    """The reach of a secret radius: one for all rows with the same distance and robustness."""
    return {"norm": SECRET, "distance": answer.distance, "robustness": answer.robustness}


def whole(numbers: Sequence[Fraction]) -> tuple[tuple[int, ...], int]:
    """(numerators, their one denominator)."""
    if isinstance(numbers, Scaled):
        return numbers.numbers, numbers.below
    below = math.lcm(*(number.denominator for number in numbers))
    return tuple(number.numerator * (below // number.denominator) for number in numbers), below


def form(point: tuple[tuple[int, ...], int], sign: int) -> Scaled:
    """The left side of sign·(a·x − b), x being whole numbers over one denominator."""
    numbers, below = point
    return Scaled((*numbers, -below) if sign > 0 else (*map(neg, numbers), below), below)


class Promise(NamedTuple):
    """The numbers in an explained row's facts; a steepness ≤ 0 promises nothing, a flip of None is one of the tolerance alone."""

    tolerance: Fraction = ZERO
    margin: Fraction = ZERO
    steepness: Fraction = ZERO
    flip: Fraction | None = None


def promise(answer: Answer, evidence: Evidence) -> Promise:
    """The facts' numbers, rounded such that they hold for certain."""
    if not answer.is_used:
        return Promise()
    if answer.allowed == 0 and (answer.distance is None or answer.slack is None or answer.is_confined):
        return Promise(flip=ZERO)
    known = answer.__dict__.get("promise")
    if known is not None:
        return known  # type: ignore[no-any-return]
    made = _promise(answer, evidence)
    if not needs_evidence(answer.distance):  # what was found by evidence must be found again, by whoever's it is
        answer.__dict__["promise"] = made
    return made


def needs_evidence(spec: Any) -> bool:
    if spec is None or isinstance(spec, str):
        return False
    return spec["norm"] in ("polyhedral", "facets") or needs_evidence(spec.get("base", "l1"))


def _promise(answer: Answer, evidence: Evidence) -> Promise:
    tolerance = tolerance_of(answer, evidence)[1]
    if answer.slack is None or answer.is_confined:
        return Promise(tolerance)
    length, stretch = enclose(answer.distance, answer.step, evidence)[0], 1 + answer.slack
    steepness = length - 2 * tolerance
    squared = product(answer.distance, answer.step, answer.step)
    if squared is not None:
        steepness = root(max(ZERO, squared - tolerance * tolerance))[0]
    flip = tolerance * stretch / (length - tolerance) if length > tolerance else ZERO if tolerance == 0 else None
    return Promise(tolerance, max(ZERO, length - tolerance) / stretch, steepness, flip)


def tolerance_of(answer: Answer, evidence: Evidence) -> Enclosure:
    """How far an explanation may be off, enclosed."""
    if answer.allowed is not None:
        return answer.allowed, answer.allowed
    known = answer.__dict__.get("rounded")
    if known is not None:
        return known  # type: ignore[no-any-return]
    assert answer.explanation is not None
    ends = [enclose(answer.distance, x, evidence) for x in (answer.point, answer.explanation)]
    made = answer.rounding * (ends[0][0] + ends[1][0]), answer.rounding * (ends[0][1] + ends[1][1])
    if not needs_evidence(answer.distance):
        answer.__dict__["rounded"] = made
    return made


def allows_constants(log: Mapping[int, Answer]) -> bool:
    """True if a = 0 is a model: every row's terms have a domain."""
    return bool(log) and all(answer.is_confined for answer in log.values())


def assumption(log: Mapping[int, Answer], assumed: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The one label that is assumed, if any: some row's, Yes, of a log that has none."""
    if not assumed:
        return {}
    row, label = assumed[0]
    if len(assumed) > 1 or label != YES or type(row) is not int or row not in log:
        raise CertificateInvalid(f"what may be assumed is that one row of the log is Yes, got {list(assumed)!r}")
    for number, answer in log.items():
        if answer.label is not None:
            raise CertificateInvalid("it assumes a label although the log has labels: they decide which side is Yes")
        if answer.is_used and not answer.is_swappable:
            raise CertificateInvalid(
                f"it assumes a label, but Yes and No cannot be swapped in row {number}: a question on the plane is Yes either way, "
                "and a robust, merely valid or confined answer then lies on one side only"
            )
    return {row: YES}


def as_evidence(lengths: Sequence[Length] | Evidence) -> Evidence:
    """A way to look up the lengths of a proof."""
    if callable(lengths):
        return lengths
    known: dict[tuple[Fraction, ...], list[Length]] = {}
    for length in lengths:
        numbers = [*length.vector, *(amount for _, amount in length.parts), *length.functional]
        refuse_inexact(numbers, "the evidence for a length")
        known.setdefault(tuple(length.vector), []).append(length)
    return lambda _, x: known.get(tuple(x), ())


def fits(answer: Answer, row: Any, dimension: int) -> None:
    """None if the row has this many features; raises otherwise."""
    if len(answer.point) != dimension or len(answer.explanation or answer.point) != dimension:
        raise CertificateInvalid(f"row {row} has not {dimension} features")


def refuse_inexact(numbers: Sequence[Any], who: str, largest: int = LARGEST_BITS) -> None:
    """None if all numbers are rational ones that can be computed with; raises otherwise, e.g. for floats."""
    for number in numbers:
        if type(number) is not Fraction and type(number) is not int:
            raise CertificateInvalid(f"{who} has the number {number!r}; a proof has exact fractions only")
    refuse_unwieldy(numbers, who, largest)


def refuse_unwieldy(numbers: Iterable[Fraction | int], who: str, largest: int = LARGEST_BITS) -> None:
    """None if the numbers have a common denominator of reasonable length, in bits; raises otherwise."""
    below = 1
    for number in numbers:
        below = math.lcm(below, number.denominator)
        if max(below.bit_length(), number.numerator.bit_length()) > largest:
            raise CertificateInvalid(f"{who}: fractions too long to be computed with (over {largest:,} bits)")
