"""Could this model have given all the answers of a log? By the definition, in exact rational arithmetic; standard library only.

The definition is that of docs/theory/consistent.md, and so are the names: w = x' − x is the step, m = y·(a·x − b) ≥ 0 the margin of
the explained point, G = m + r the level of the optimum, r the reach of a robustness ball. The facts of `checker` follow from it; a
model that keeps them all need not satisfy it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.enclosures import (
    ZERO,
    Enclosure,
    Evidence,
    Length,
    NotEnclosed,
    Vector,
    axis_length,
    dual_spec,
    enclose,
    exponent_and_weights,
    product,
    root,
)
from overexplain.knowledge.levels import Levels, optimal_levels, slack_levels
from overexplain.knowledge.promises import (
    LARGEST_BITS,
    Answer,
    allows_constants,
    as_evidence,
    assumption,
    fits,
    is_secret,
    refuse_inexact,
    secret_of,
    tolerance_of,
    whole,
)


def check_witness(
    log: Mapping[int, Answer],
    normal: Vector,
    offset: Fraction,
    *,
    assumed: Sequence[tuple[int, int]] = (),
    lengths: Sequence[Length] | Evidence = (),
) -> None:
    """None if the model (normal, offset) is consistent with the log; CertificateInvalid, with the row, if that is not shown.

    A label that may be assumed is not asked for: which side is Yes is then a matter of naming.
    """
    # A model is held against every row. Where as many rows as features decide it, its numbers have some 60 bits for each of them.
    refuse_inexact([*normal, offset], "a model", min(LARGEST_BITS, 4096 + 512 * len(normal)))
    if not any(normal) and not allows_constants(log):
        raise CertificateInvalid("a model with a zero normal is no model")
    assumption(log, assumed)
    model = _Model(normal, offset, as_evidence(lengths))
    (*weights, level), scale = whole([*map(Fraction, normal), Fraction(offset)])
    try:
        for row, answer in log.items():
            fits(answer, row, len(normal))
            # A log has many labels: whole numbers tell the side of each, fractions are made where they are needed.
            point, below = answer.whole
            own = sum(map(mul, weights, point)) - level * below
            if answer.label is not None and (own < 0 if answer.label > 0 else own >= 0):
                raise CertificateInvalid(f"the model gives row {row} another label")
            if answer.is_used and not model.keeps(answer, Fraction(own, scale * below)):
                raise CertificateInvalid(f"the model would not have given the explanation in row {row}")
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


def find_offset(
    log: Mapping[int, Answer], normal: Vector, near: Fraction, lengths: Sequence[Length] | Evidence = ()
) -> list[Fraction]:
    """Offsets that labelled rows leave a normal: the one nearest to `near`, then the middle and the ends; none if there are none.

    For those who look for models: what comes out is still to be checked.
    """
    model = _Model(normal, ZERO, as_evidence(lengths))
    low: Fraction | None = None
    high: Fraction | None = None
    for answer in log.values():
        if answer.label is None:
            continue
        at = model.along(answer.whole)
        ends: tuple[Fraction, Fraction | None] = (ZERO, None)  # of the margin m = y·(a·x − b)
        is_measured = answer.distance is not None and answer.slack is not None
        if answer.is_used and is_measured and not answer.is_confined:
            found = model.levels(answer, answer.label)
            if found is None:
                return []
            if answer.radius is None:  # a secret reach may be 0
                ends = (ZERO, found.high)
            else:
                reach = model.reach(answer)
                ends = (max(ZERO, found.low - reach[0]), found.high - reach[1])
        if answer.label > 0:
            high = at - ends[0] if high is None else min(high, at - ends[0])
            low = low if ends[1] is None else at - ends[1] if low is None else max(low, at - ends[1])
        else:
            low = at + ends[0] if low is None else max(low, at + ends[0])
            high = high if ends[1] is None else at + ends[1] if high is None else min(high, at + ends[1])
    if low is None or high is None or low > high:
        return []
    return [min(max(near, low), high), (low + high) / 2, low, high]


class _Reach:
    """Where a secret reach r ≥ 0 may still lie, after some of its rows."""

    def __init__(self, length: Any) -> None:
        self.length, self.low = length, ZERO
        self.high: Fraction | None = None

    def narrow(self, low: Fraction, high: Fraction | None) -> bool:
        """True if some r is left."""
        self.low = max(self.low, low)
        if high is not None:
            self.high = high if self.high is None else min(self.high, high)
        return self.high is None or self.low <= self.high


class _Model:
    """A model that is asked whether it would have given answers; ‖a‖* is the same for all rows of one distance."""

    def __init__(self, normal: Vector, offset: Fraction, evidence: Evidence) -> None:
        self.normal, self.offset, self.evidence = normal, offset, evidence
        self.weights, self.scale = whole(normal)
        self.sizes: list[tuple[Any, Enclosure, Fraction | None]] = []
        self.reaches: list[_Reach] = []

    def size(self, distance: Any) -> tuple[Enclosure, Fraction | None]:
        """‖a‖* enclosed, and squared where that is rational."""
        for known, size, squared in self.sizes:
            if known is distance or known == distance:
                return size, squared
        dual = dual_spec(distance)
        squared = product(dual, self.normal, self.normal)
        size = enclose(dual, self.normal, self.evidence) if squared is None else root(squared)
        self.sizes.append((distance, size, squared))
        return size, squared

    def along(self, vector: tuple[tuple[int, ...], int]) -> Fraction:
        """a·v for a v in whole numbers over one denominator."""
        numbers, below = vector
        return Fraction(sum(map(mul, self.weights, numbers)), self.scale * below)

    def keeps(self, answer: Answer, own: Fraction) -> bool:
        """True if the model is consistent with an explained row; `own` is a·x − b."""
        y = 1 if own >= 0 else -1
        margin, along = y * own, -y * self.along(answer.whole_step)
        if answer.is_confined:
            return self._keeps_confined(answer, y, margin, along - margin)
        if answer.distance is None:
            return self._keeps_unmeasured(answer, margin, along)
        size, squared = self.size(answer.distance)
        if answer.slack is None:
            return self._has_reach(answer, None, along + tolerance_of(answer, self.evidence)[0] * size[0] - margin)
        if answer.slack > 0 and answer.is_plain and answer.allowed == 0 and squared is not None:
            exact = product(answer.distance, answer.step, answer.step)
            assert exact is not None
            return along >= margin and ((1 + answer.slack) * margin) ** 2 >= exact * squared
        found = self.levels(answer, y)
        return found is not None and self._has_reach(answer, found.low - margin, found.high - margin)

    def levels(self, answer: Answer, y: int) -> Levels | None:
        """The levels m + r at which the model would have given the answer to a point of label y; the distance is known."""
        assert answer.slack is not None
        tolerance, size = tolerance_of(answer, self.evidence)[0], self.size(answer.distance)[0]
        ahead = [-y * v for v in self.normal]
        optimal = optimal_levels(answer.distance, answer.step, ahead, size, tolerance, self.evidence)
        if answer.slack == 0:
            return optimal
        length = enclose(answer.distance, answer.step, self.evidence)
        found = slack_levels(length, -y * self.along(answer.whole_step), size, tolerance, answer.slack)
        if optimal is None or found is None:
            return found if optimal is None else Levels(optimal.low / (1 + answer.slack), optimal.high)
        # A longer optimal step will do as well, and what lies between two levels.
        return Levels(min(found.low, optimal.low / (1 + answer.slack)), max(found.high, optimal.high))

    def reach(self, answer: Answer) -> Enclosure:
        """The reach of a row whose radius is no secret."""
        if not answer.reach:
            return ZERO, ZERO
        length, factor = answer.reach
        low, high = self.size(length)[0]
        return factor * low, factor * high

    def _keeps_unmeasured(self, answer: Answer, margin: Fraction, along: Fraction) -> bool:
        """The same where the distance is any norm, and the answer exact."""
        beyond = along - margin
        if answer.slack is None:
            return self._has_reach(answer, None, beyond)
        if not any(answer.step):
            return margin == 0 and self._has_reach(answer, ZERO, ZERO)
        if answer.is_plain and margin == 0:
            return False
        # m + r ≤ a·w ≤ (1 + ε)·(m + r), and m + r > 0 because a·w is
        return along > 0 and self._has_reach(answer, along / (1 + answer.slack) - margin, beyond)

    def _has_reach(self, answer: Answer, low: Fraction | None, high: Fraction) -> bool:
        """True if low ≤ r ≤ high for the reach r of the row; rows of one secret reach are taken together."""
        if answer.is_plain:
            return (low is None or low <= 0) and high >= 0
        if answer.reach is None:  # of no known norm
            return False
        length, factor = answer.reach
        if is_secret(length):
            return self._secret(length).narrow(ZERO if low is None else low, high)
        (least, most), squared = self.size(length)
        if squared is not None:  # an equality that no enclosure shows
            reach = factor**2 * squared
            return high >= 0 and high**2 >= reach and (low is None or low <= 0 or low**2 <= reach)
        return factor * most <= high and (low is None or low <= factor * least)

    def _secret(self, length: Any) -> _Reach:
        found = next((reach for reach in self.reaches if reach.length == length), None)
        if found is None:
            self.reaches.append(found := _Reach(length))
        return found

    def _keeps_confined(self, answer: Answer, y: int, margin: Fraction, beyond: Fraction) -> bool:
        """The same for an answer chosen from a domain: some set of reachable points makes it optimal."""
        assert answer.free is not None
        if not answer.is_valid:
            return False  # a valid point near it is not looked for
        if answer.radius is None and not self._secret(secret_of(answer)).narrow(ZERO, ZERO):
            return False  # no ball at all would do
        if answer.radius:
            if answer.robustness is None or (answer.slack is not None and answer.moved):
                return False  # which valid points the ball holds is not looked into
            return margin > 0 and answer.radius * self.size(answer.robustness)[0][1] <= beyond
        if not any(answer.step):
            return margin == 0
        # On the plane itself x would be across already, if that counts, and x' not, if it does not.
        if margin == 0 and beyond == 0 and answer.slack is not None:
            return False
        tolerance = tolerance_of(answer, self.evidence)[0] if answer.allowed != 0 else ZERO
        loose = answer.free if answer.tolerance is not None else answer.moved
        to_plane = [i for i in loose if self._may_move(answer, i, y, beyond, tolerance)]
        if answer.slack == 0 and answer.moved and not self._is_held(answer, tolerance):
            ahead = {i: -y * self.normal[i] * answer.step[i] for i in answer.moved}
            # Every move goes towards the plane; a little more or less in one of them, x' lies on it.
            if any(v <= 0 for v in ahead.values()):
                return False
            return beyond == 0 or (margin > 0 and any(i in ahead and beyond < ahead[i] for i in to_plane))
        return beyond >= 0 or (margin > 0 and bool(to_plane))

    def _may_move(self, answer: Answer, i: int, y: int, beyond: Fraction, tolerance: Fraction) -> bool:
        """True if x' moved along feature i alone, within the tolerance and the domain, lies on the plane."""
        assert answer.free is not None
        assert answer.explanation is not None
        if abs(beyond) > tolerance * self._gain(answer, i) or not self.normal[i]:
            return False
        there = answer.explanation[i] + beyond / (y * self.normal[i])
        low, high = answer.limits[answer.free.index(i)] if answer.limits else (None, None)
        return (low is None or low <= there) and (high is None or there <= high)

    def _gain(self, answer: Answer, i: int) -> Fraction:
        """At most how far a step of length 1 along feature i goes towards the plane."""
        if answer.distance is None:
            return ZERO
        return abs(self.normal[i]) / axis_length(answer.distance, i, len(self.normal), self.evidence)

    def _is_held(self, answer: Answer, tolerance: Fraction) -> bool:
        """True if shorter moves of continuous features cost the same: under ℓ∞, if a discrete one certainly moved farther."""
        if answer.distance is None:
            return False
        try:
            q, weights = exponent_and_weights(answer.distance, len(answer.step))
        except NotEnclosed:
            return False
        sizes = [weight * abs(v) for weight, v in zip(weights, answer.step, strict=True)]
        fixed = max((size for i, size in enumerate(sizes) if i not in (answer.free or ())), default=ZERO)
        return q is None and fixed > max(sizes[i] for i in answer.moved) + tolerance
