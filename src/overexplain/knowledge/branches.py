"""Proofs by cases, for what the length s = ‖a‖* of a robustness N2 says from above. Standard library only: part of the checker.

Everything in a branch is measured in t, the length of one distance, the *unit*. What is known there of single entries of a is the
*box*: sign·a_i ≥ value·t, at first by Hölder, |a_i| ≤ ‖e_i‖·t. In it s has upper bounds:

    chord    α·a ≥ δ·s − γ·t     for N2 = ‖e·x‖_q with the dual exponent r = q/(q − 1) and any 1 ≤ κ ≤ r, s0 > 0

With t = 1: s^κ ≤ Σ|a_i/e_i|^κ, whose summands are convex, so below a line that is above them at both ends of the box; and s^κ lies
above its own tangent at s0. So δ = κ·s0^(κ−1), γ = Σ_i max over the box's ends v of |v/e_i|^κ − α_i·v, plus (κ − 1)·s0^κ. For
q = 1 a chord without power is the limit κ → ∞: s = max|a_i/e_i| ≤ γ·t. Any other N2 has two kinds of chords, with δ = 1. With
κ = 1 it is the triangle inequality, s ≤ Σ|a_i|·‖ε_i‖*, ε_i the unit vectors: 1/e_i = ‖ε_i‖*. Without a power γ bounds s − α·a,
which is convex, by its values at the corners of the box; for a ball with corners d, s = max a·d, one d after the other; and in a
box with too many corners by ‖c‖* − α·c at its middle c and the triangle inequality from there.

A proof may have a *frame*: rational vectors f_0, f_1, …, of which the box then holds bounds as well, l_k·t ≤ f_k·a ≤ u_k·t, at
first by Hölder, |f_k·a| ≤ ‖f_k‖·t. They are counted on from the p entries of a: p + k is the direction f_k wherever an index is
told. Where N2 is ℓ2, Mahalanobis, or either with weights, and s² ≤ Σ(f_k·a)² for every a (`is_frame`),

    arc      Σ(l_k + u_k)·f_k·a ≥ 2·s0·s + (Σ l_k·u_k − s0²)·t     for any s0 ≥ 0

With t = 1: 2·s0·s − s0² ≤ s² ≤ Σ(f_k·a)², and (f_k·a − l_k)·(u_k − f_k·a) ≥ 0.

A branch first proves bounds, which tighten the box one after the other. Then it is closed by a contradiction, or split: at a value
of one entry of a or direction (at most, at least), or by the corner d of the ball of N2 at which s = a·d is reached. It may use:

    denied   ±(a·x − b) ≥ 0      the claim's negation: strict where a·x < b is assumed
    bound    ±a_i ≥ value·t      the tightest that the box has; ±f_k·a for the index p + k
    corner   a·d ≥ s             of the innermost split by corners
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, NamedTuple

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.enclosures import (
    ZERO,
    Evidence,
    NotEnclosed,
    Vector,
    axis_length,
    base_of,
    corners_of,
    dot,
    dual_spec,
    enclose,
    exponent_and_weights,
    is_frame,
    power,
    upper,
)
from overexplain.knowledge.promises import Answer, Fact, Term, refuse_inexact, refuse_unwieldy, rights

DEEPEST = 200
MOST_LEAVES = 100_000
MOST_CORNERS = 64
"""A chord looks at so many corners of a box: each takes a length in rationals."""

FEW_CORNERS = 8
"""At so many if the ball is given by its faces: the length of each takes evidence."""

LARGEST_FRAME = 512
"""A frame has at most so many vectors."""

FRAME_BITS = 4096
"""Binary digits of their numerators and of the one denominator that all of them have in common."""

OF_NO_ROW = ("denied", "bound", "corner")
IN_BRANCHES = (*OF_NO_ROW, "arc")
"""Facts that hold inside a branch only."""


@dataclass(frozen=True)
class Bound:
    """The terms prove sign·a_index ≥ value·t; of an index beyond the entries of a that of a direction of the frame."""

    index: int
    sign: int
    value: Fraction
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Branch:
    """Bounds, and then a contradiction (`terms`), a split at a·e_index = value·t, or one by the corners of a row's N2.

    The first part of a split assumes a_index ≤ value·t, the second a_index ≥ value·t; a split by corners has a part for each.
    """

    terms: tuple[Term, ...] = ()
    bounds: tuple[Bound, ...] = ()
    index: int | None = None
    value: Fraction | None = None
    corners: int | None = None
    parts: tuple[Branch, ...] = ()


@dataclass(frozen=True)
class Branched:
    """A proof by cases; the distance of `row` is the unit, and the index p + k is that of `frame[k]`, p being that of the log."""

    row: int
    branch: Branch
    frame: tuple[tuple[Fraction, ...], ...] = ()

    def walk(self) -> Iterator[Branch]:
        """All branches, each before its parts."""
        waiting = [self.branch]
        while waiting:
            branch = waiting.pop()
            yield branch
            waiting.extend(reversed(branch.parts))

    @property
    def leaves(self) -> int:
        """How many cases there are."""
        return sum(not branch.parts for branch in self.walk())

    @property
    def rows(self) -> set[int]:
        """The rows of the log that it names."""
        rows: set[int | None] = {self.row}
        for branch in self.walk():
            rows.add(branch.corners)
            for terms in (branch.terms, *(bound.terms for bound in branch.bounds)):
                rows.update(term.row for term in terms)
        return {row for row in rows if row is not None}


@dataclass(frozen=True)
class Context:
    """What is assumed and known at one place of a proof: the box is by (index, sign); what is not in it is Hölder's.

    `found` is what was computed of the frame; the contexts made from this one by `tightened` or `replace` share it.
    """

    unit: Any
    box: Mapping[tuple[int, int], Fraction] = field(default_factory=dict)
    denied: Fact | None = None
    corner: Fact | None = None
    frame: Sequence[Vector] = ()
    found: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def bound(self, index: int, sign: int, dimension: int, evidence: Evidence) -> Fraction:
        """The tightest value known in sign·a_index ≥ value·t."""
        known = self.box.get((index, sign))
        try:
            least = -self._length(index, dimension, evidence)
        except NotEnclosed:
            if known is None:
                raise
            return known
        return least if known is None else max(least, known)

    def _length(self, index: int, dimension: int, evidence: Evidence) -> Fraction:
        """At least the norm of the unit vector or of the direction."""
        if index < dimension:
            return axis_length(self.unit, index, dimension, evidence)
        if index not in self.found:
            self.found[index] = enclose(self.unit, self.frame[index - dimension], evidence)[1]
        return self.found[index]  # type: ignore[no-any-return]

    def along(self, index: int, sign: int, dimension: int) -> list[Fraction]:
        """The left side of a bound: ±a_index or ± a direction of the frame, and 0 for the offset."""
        if index >= dimension:
            return [*(sign * v for v in self.frame[index - dimension]), ZERO]
        return [Fraction(sign) if i == index else ZERO for i in range(dimension + 1)]

    def tightened(self, index: int, sign: int, value: Fraction) -> Context:
        """With one more bound, if it is tighter than the one there is."""
        known = self.box.get((index, sign))
        if known is not None and known >= value:
            return self
        return replace(self, box={**self.box, (index, sign): value})

    def fact(self, term: Term, dimension: int, evidence: Evidence) -> Fact:
        """What a term of a branch says."""
        if term.fact == "bound":
            assert term.index is not None
            if term.index >= dimension + len(self.frame):
                raise CertificateInvalid(f"there is no entry {term.index} of a{self._or_frame}")
            value = self.bound(term.index, term.sign, dimension, evidence)
            return Fact(self.along(term.index, term.sign, dimension), rights((self.unit, value)))
        found = self.denied if term.fact == "denied" else self.corner
        if found is None:
            raise CertificateInvalid("nothing of the kind is assumed here")
        return found

    @property
    def _or_frame(self) -> str:
        return f", and the frame has {len(self.frame)} vectors" if self.frame else ""

    def arc(self, robustness: Any, term: Term, evidence: Evidence) -> Fact:
        """The upper bound on the length of `robustness` that the bounds along the frame say.

        Where two of them contradict each other, l_k > u_k, no model is in this case, and anything may be said of all of them.
        """
        assert term.at is not None
        if not self.frame:
            raise CertificateInvalid("it is about a frame, and the proof has none")
        self._refuse_frame(robustness)
        p = len(self.frame[0])
        ends = [[self.bound(p + k, sign, p, evidence) for sign in (1, -1)] for k in range(len(self.frame))]
        refuse_unwieldy((v for pair in ends for v in pair), "the bounds along the frame")
        sums = [low - minus_high for low, minus_high in ends]
        left = [dot(sums, column) for column in zip(*self.frame, strict=True)]
        at = Fraction(term.at)
        level = -dot(*zip(*ends, strict=True)) - at * at
        return Fact([*left, ZERO], rights((robustness, 2 * at), (self.unit, level)))

    def _refuse_frame(self, robustness: Any) -> None:
        """None if the squares along the frame are at least that of the length; raises CertificateInvalid otherwise."""
        known = self.found.setdefault("frames", [])
        answer = next((holds for spec, holds in known if spec is robustness or spec == robustness), None)
        if answer is None:
            known.append((robustness, answer := is_frame(robustness, self.frame)))
        if not answer:
            raise CertificateInvalid("the squares along the frame are not shown to be at least that of the robustness")

    def chord(self, robustness: Any, term: Term, evidence: Evidence) -> Fact:
        """The upper bound on the length of `robustness` that a chord says."""
        assert term.vector is not None
        slopes, p = term.vector, len(term.vector)
        box = [[sign * self.bound(i, sign, p, evidence) for sign in (1, -1)] for i in range(p)]
        refuse_unwieldy((v for ends in box for v in ends), "the bounds of a")
        if term.power is None:
            most = _at_corners(robustness, box, slopes, evidence)
            return Fact([*slopes, ZERO], rights((self.unit, -most), (robustness, Fraction(1))))
        k, at = Fraction(term.power), Fraction(1 if term.at is None else term.at)
        if k == 1:
            sizes = [axis_length(dual_spec(robustness), i, p, evidence) for i in range(p)]
        else:
            q, weights = exponent_and_weights(robustness, p)
            # The dual exponent r is q/(q − 1): k ≤ r, which any k is for q = 1, and only k = 1 for q = ∞.
            if q is None or k * (q - 1) > q:
                raise CertificateInvalid(f"the power {k} is above the dual exponent of the norm")
            sizes = [1 / weight for weight in weights]
        total = (k - 1) * power(at, k)[1]
        for ends, slope, size in zip(box, slopes, sizes, strict=True):
            total += upper(max(power(abs(v * size), k)[1] - slope * v for v in ends))
        return Fact([*slopes, ZERO], rights((self.unit, -total), (robustness, k * power(at, k - 1)[0])))


def _at_corners(spec: Any, box: Sequence[Vector], slopes: Vector, evidence: Evidence) -> Fraction:
    """At least the largest ‖a‖* − slopes·a in a box, given by the two ends of every entry."""
    base = base_of(spec)
    if isinstance(base, str):
        q, weights = exponent_and_weights(spec, len(box))
        if q != 1 or any(slopes):
            raise CertificateInvalid("without a power a chord is level, and about a robustness with the exponent 1")
        return max(abs(v / weight) for ends, weight in zip(box, weights, strict=True) for v in ends)
    if spec["norm"] == "polyhedral":
        corners = [_less(corner, slopes) for corner in corners_of(spec, len(box))]
        return max(
            sum((max(d * v for v in ends) for d, ends in zip(corner, box, strict=True)), ZERO) for corner in corners
        )
    # A norm of groups does not see signs: where there is no slope only the farther end counts.
    is_absolute = base["norm"] in ("group", "group-max")
    sides = [
        [max(ends, key=abs)] if is_absolute and not slope else sorted(set(ends))
        for ends, slope in zip(box, slopes, strict=True)
    ]
    dual = dual_spec(spec)
    if prod(map(len, sides)) <= (FEW_CORNERS if base["norm"] == "facets" else MOST_CORNERS):
        return max(upper(enclose(dual, corner, evidence)[1] - dot(slopes, corner)) for corner in product(*sides))
    middle = [(ends[0] + ends[1]) / 2 for ends in box]
    total = upper(enclose(dual, middle, evidence)[1] - dot(slopes, middle))
    for i, (ends, centre, slope) in enumerate(zip(box, middle, slopes, strict=True)):
        size = axis_length(dual, i, len(box), evidence)
        total += upper(max(abs(v - centre) * size - slope * (v - centre) for v in ends))
    return total


def _less(corner: Vector, slopes: Vector) -> Vector:
    if len(corner) != len(slopes):
        raise CertificateInvalid(f"the corners of the robustness have {len(corner)} features, not {len(slopes)}")
    return [d - slope for d, slope in zip(corner, slopes, strict=True)]


class Duty(NamedTuple):
    """What is to be shown: that the terms prove a bound, or, without one, a contradiction."""

    terms: Sequence[Term]
    context: Context
    what: str
    bound: Bound | None = None


def duties(log: Mapping[int, Answer], branched: Branched, dimension: int, denied: Fact | None) -> Iterator[Duty]:
    """All that has to be shown for the branches to prove their claim; raises CertificateInvalid if they leave a case out."""
    leaves = 0
    waiting: list[tuple[Branch, Context, tuple[int, ...]]]
    frame, unit = checked_frame(branched.frame, dimension), log[branched.row].distance
    waiting = [(branched.branch, Context(unit, {}, denied, frame=frame), ())]
    while waiting:
        branch, context, path = waiting.pop()
        what = f"case {'.'.join(map(str, path))}: " if path else ""
        for n, bound in enumerate(branch.bounds):
            _refuse_odd(bound.index, bound.value, dimension, len(frame), f"{what}bound {n}")
            if type(bound.sign) is not int or bound.sign not in (1, -1):
                raise CertificateInvalid(f"{what}bound {n} has the sign {bound.sign!r}; it is 1 or -1")
            yield Duty(bound.terms, context, f"{what}bound {n}: ", bound)
            context = context.tightened(bound.index, bound.sign, bound.value)
        if not branch.parts:
            leaves += 1
            if leaves > MOST_LEAVES:
                raise CertificateInvalid(f"the proof has over {MOST_LEAVES:,} cases")
            if (branch.index, branch.value, branch.corners) != (None, None, None):
                raise CertificateInvalid(f"{what}a split without parts")
            yield Duty(branch.terms, context, what)
            continue
        if len(path) >= DEEPEST:
            raise CertificateInvalid(f"the cases are nested over {DEEPEST} deep")
        cases = _cases(log, branch, context, dimension, what)
        if len(cases) != len(branch.parts):
            raise CertificateInvalid(f"{what}a split into {len(cases)} cases, but {len(branch.parts)} parts")
        if branch.terms:
            raise CertificateInvalid(f"{what}terms belong to a case that is not split any more")
        parts = list(zip(branch.parts, cases, ((*path, n) for n in range(len(cases))), strict=True))
        waiting.extend(reversed(parts))


def _cases(log: Mapping[int, Answer], branch: Branch, context: Context, dimension: int, what: str) -> list[Context]:
    """What each part of a split may assume; together they leave out nothing."""
    if (branch.corners is None) == (branch.index is None) or (branch.index is None) != (branch.value is None):
        raise CertificateInvalid(f"{what}a split is at a value of one entry of a, or by the corners of a row's ball")
    if branch.corners is None:
        _refuse_odd(branch.index, branch.value, dimension, len(context.frame), f"{what}a split")
        assert branch.index is not None
        assert branch.value is not None
        return [context.tightened(branch.index, sign, sign * branch.value) for sign in (-1, 1)]
    if type(branch.corners) is not int or branch.corners not in log:
        raise CertificateInvalid(f"{what}a split names row {branch.corners!r}, which the log does not have")
    spec = log[branch.corners].robustness
    if spec is None:
        raise CertificateInvalid(f"{what}the robustness of row {branch.corners} is not known")
    corners = corners_of(spec, dimension)
    if any(len(corner) != dimension for corner in corners):
        raise CertificateInvalid(f"{what}the corners of row {branch.corners} have not {dimension} features")
    return [replace(context, corner=Fact([*d, ZERO], rights((spec, Fraction(1))))) for d in corners]


def _refuse_odd(index: Any, value: Any, dimension: int, directions: int, who: str) -> None:
    if type(index) is not int or not 0 <= index < dimension + directions:
        beyond = f", beyond which are {directions} directions of the frame" if directions else ""
        raise CertificateInvalid(f"{who} is about the entry {index!r} of a, which has {dimension}{beyond}")
    refuse_inexact([value], who)


def checked_frame(frame: Sequence[Vector], dimension: int) -> Sequence[Vector]:
    """The frame, if its vectors are rational ones of this dimension, none of them 0; raises CertificateInvalid otherwise."""
    if len(frame) > LARGEST_FRAME:
        raise CertificateInvalid(f"the frame has {len(frame)} vectors; at most {LARGEST_FRAME} are allowed")
    for k, vector in enumerate(frame):
        if len(vector) != dimension:
            raise CertificateInvalid(f"vector {k} of the frame has {len(vector)} entries, not {dimension}")
        refuse_inexact(vector, f"vector {k} of the frame", FRAME_BITS)
        if not any(vector):
            raise CertificateInvalid(f"vector {k} of the frame is 0")
    # Short ones may still have a common denominator that nobody could compute with: hundreds of vectors, each with its own.
    refuse_unwieldy((v for vector in frame for v in vector), "the frame", FRAME_BITS)
    return frame
