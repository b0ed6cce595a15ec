"""What one answer of a log promises about every consistent model, in exact numbers. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.enclosures import ZERO, Enclosure, Evidence, Length, enclose, product, root

YES, NO, BOUNDARY = 1, -1, 2

LARGEST_BITS = 250_000
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

    A tolerance of None is float64 rounding: `rounding`·(‖x‖ + ‖x'‖). A radius of None is secret. A row is opaque if nothing tells
    its reach, or whether another row's is the same: its norm is a user's own.
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
    is_opaque: bool = False

    @property
    def is_plain(self) -> bool:
        """True if the explanation lies on the plane itself."""
        return self.radius == 0

    @cached_property
    def reach(self) -> Right | None:
        """How far from the plane a robust explanation lies, times ‖a‖: a length and its factor. None: plain, or not known.

        Rows of a secret radius with the same norms share one reach.
        """
        if self.is_plain or self.is_opaque:
            return None
        if self.radius is None:
            return {"norm": SECRET, "distance": self.distance, "robustness": self.robustness}, Fraction(1)
        return None if self.robustness is None else (self.robustness, self.radius)

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
    def whole_explanation(self) -> tuple[tuple[int, ...], int]:
        """The same of x'."""
        assert self.explanation is not None
        return whole(self.explanation)

    @cached_property
    def whole_step(self) -> tuple[tuple[int, ...], int]:
        """The same of w."""
        return whole(self.step)

    @property
    def is_used(self) -> bool:
        """True if the explanation says anything.

        One of an unknown distance does only if it is exact; a merely valid one (slack None) only without a tolerance: it is
        the served float point itself, and its own label is what is promised.
        """
        if self.explanation is None:
            return False
        if self.slack is None:
            return not self.tolerance
        return self.distance is not None or self.tolerance == 0


def whole(numbers: Sequence[Fraction]) -> tuple[tuple[int, ...], int]:
    """(numerators, their one denominator)."""
    below = math.lcm(*(number.denominator for number in numbers))
    return tuple(number.numerator * (below // number.denominator) for number in numbers), below


class Promise(NamedTuple):
    """The numbers in an explained row's facts; a steepness ≤ 0 and a flip of None promise nothing."""

    tolerance: Fraction = ZERO
    margin: Fraction = ZERO
    steepness: Fraction = ZERO
    squared: Fraction | None = None  # the steepness squared, which is rational for ℓ2 and its kin
    flip: Fraction | None = None


def promise(answer: Answer, evidence: Evidence, *, strong: bool) -> Promise:
    """The facts' numbers, rounded such that they hold for certain, or (strong) such that nothing less will do."""
    if not answer.is_used:
        return Promise()
    if answer.distance is None or answer.slack is None:
        return Promise(flip=ZERO)
    known = answer.__dict__.get(("weak", "strong")[strong])
    if known is not None:
        return known  # type: ignore[no-any-return]
    made = _promise(answer, evidence, strong)
    if not _needs_evidence(answer.distance):  # what was found by evidence must be found again, by whoever's it is
        answer.__dict__[("weak", "strong")[strong]] = made
    return made


def _needs_evidence(spec: Any) -> bool:
    if isinstance(spec, str):
        return False
    return spec["norm"] in ("polyhedral", "facets") or _needs_evidence(spec.get("base", "l1"))


def _promise(answer: Answer, evidence: Evidence, strong: bool) -> Promise:
    assert answer.slack is not None
    low, high = enclose(answer.distance, answer.step, evidence)
    tolerance = _tolerance(answer, evidence)[0 if strong else 1]
    length, stretch = high if strong else low, 1 + answer.slack
    steepness = length - 2 * tolerance
    squared = product(answer.distance, answer.step, answer.step)
    if squared is not None:
        squared = max(ZERO, squared - tolerance * tolerance)
        steepness = root(squared)[1 if strong else 0]
    flip = tolerance * stretch / (length - tolerance) if length > tolerance else None
    return Promise(tolerance, max(ZERO, length - tolerance) / stretch, steepness, squared, flip)


def _tolerance(answer: Answer, evidence: Evidence) -> Enclosure:
    if answer.tolerance is not None:
        return answer.tolerance, answer.tolerance
    assert answer.explanation is not None
    ends = [enclose(answer.distance, x, evidence) for x in (answer.point, answer.explanation)]
    return answer.rounding * (ends[0][0] + ends[1][0]), answer.rounding * (ends[0][1] + ends[1][1])


def assumption(log: Mapping[int, Answer], assumed: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The one label that is assumed, if any: some row's, Yes, of a log that has none."""
    if not assumed:
        return {}
    row, label = assumed[0]
    if len(assumed) > 1 or label != YES or type(row) is not int or row not in log:
        raise CertificateInvalid(f"what may be assumed is that one row of the log is Yes, got {list(assumed)!r}")
    if any(answer.label is not None for answer in log.values()):
        raise CertificateInvalid("it assumes a label although the log has labels: they decide which side is Yes")
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


def refuse_inexact(numbers: Sequence[Any], who: str) -> None:
    """None if all numbers are rational ones that can be computed with; raises otherwise, e.g. for floats."""
    for number in numbers:
        if type(number) is not Fraction and type(number) is not int:
            raise CertificateInvalid(f"{who} has the number {number!r}; a proof has exact fractions only")
    refuse_unwieldy(numbers, who)


def refuse_unwieldy(numbers: Iterable[Fraction | int], who: str) -> None:
    """None if the numbers have a common denominator of reasonable length; raises otherwise."""
    below = 1
    for number in numbers:
        below = math.lcm(below, number.denominator)
        if max(below.bit_length(), number.numerator.bit_length()) > LARGEST_BITS:
            raise CertificateInvalid(f"{who}: fractions too long to be computed with (over {LARGEST_BITS:,} bits)")
