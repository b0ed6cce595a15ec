"""Could this model have given all the answers of a log? Exact rational arithmetic, standard library only.

The facts that it must keep are those of `checker`.
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
    dual_spec,
    enclose,
    is_aligned,
    product,
    root,
)
from overexplain.knowledge.promises import (
    Answer,
    Promise,
    as_evidence,
    assumption,
    fits,
    is_secret,
    promise,
    refuse_inexact,
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
    """None if the model (normal, offset) keeps every fact of the log; CertificateInvalid, with the row, if not."""
    refuse_inexact([*normal, offset], "a model")
    if not any(normal):
        raise CertificateInvalid("a model with a zero normal is no model")
    labels, model = assumption(log, assumed), _Model(normal, offset, as_evidence(lengths))
    (*weights, level), scale = whole([*map(Fraction, normal), Fraction(offset)])
    try:
        for row, answer in log.items():
            fits(answer, row, len(normal))
            # A log has many labels: whole numbers tell the side of each, fractions are made where they are needed.
            point, below = answer.whole
            own = sum(map(mul, weights, point)) - level * below
            label = labels.get(row, answer.label)
            if label is not None and (own < 0 if label > 0 else own >= 0):
                raise CertificateInvalid(f"the model gives row {row} another label")
            if answer.is_used and not model.keeps(answer, Fraction(own, scale * below)):
                raise CertificateInvalid(f"the model would not have given the explanation in row {row}")
    except NotEnclosed as error:
        raise CertificateInvalid(f"a length in it cannot be bounded: {error}") from None


class _Reach:
    """Where a secret reach r ≥ 0 may still lie, after some of its rows."""

    def __init__(self, length: Any) -> None:
        self.length, self.low = length, ZERO
        self.high: Fraction | None = None

    def narrow(self, low: Fraction | None, high: Fraction) -> bool:
        """True if some r is left."""
        self.low = self.low if low is None else max(self.low, low)
        self.high = high if self.high is None else min(self.high, high)
        return self.low <= self.high


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
        """True if the model keeps the facts of an explained row; `own` is a·x − b."""
        return self._keeps_plain(answer, own) if answer.is_plain else self._keeps_robust(answer, own)

    def _keeps_plain(self, answer: Answer, own: Fraction) -> bool:
        assert answer.explanation is not None
        y = 1 if own >= 0 else -1
        across = self.along(answer.whole_explanation) - self.offset
        if answer.distance is None or answer.slack is None:
            return across == 0 if answer.slack == 0 else -y * across >= 0
        numbers = promise(answer, self.evidence, strong=True)
        squared = self.size(answer.distance)[1]
        if answer.tolerance == 0 and answer.slack == 0 and squared is None:
            # The margin follows: own = across − a·w.
            return across == 0 and self._is_aligned(answer, y)
        margin_squared = None
        if answer.tolerance == 0 and numbers.squared is not None:
            margin_squared = numbers.squared / (1 + answer.slack) ** 2
        if not self._reaches(answer.distance, y * own, numbers.margin, margin_squared):
            return False
        if answer.slack != 0:  # (the fact `flips` says less: it has no length in it)
            return -y * across >= -numbers.tolerance * self.size(answer.distance)[0][0]
        if abs(across) > numbers.tolerance * self.size(answer.distance)[0][0]:
            return False
        return self._is_steepest(answer, y, numbers)

    def _keeps_robust(self, answer: Answer, own: Fraction) -> bool:
        """Rows of one secret reach are taken together: False for the first that leaves no reach for all."""
        assert answer.explanation is not None
        y = 1 if own >= 0 else -1
        numbers = promise(answer, self.evidence, strong=True)
        has_lengths = answer.distance is not None and answer.slack is not None
        is_exact = answer.slack == 0
        if has_lengths and is_exact:
            aligned = self._is_aligned(answer, y) if answer.tolerance == 0 else self._is_steepest(answer, y, numbers)
            if not aligned:
                return False
        if answer.reach is None:
            return True
        beyond = -y * (self.along(answer.whole_explanation) - self.offset)
        size = self.size(answer.distance)[0] if has_lengths else (ZERO, ZERO)
        room = numbers.tolerance * size[0]
        # y·own + reach ≥ margin·t follows from an equality and an exact direction: a·x = a·x' − a·w.
        least = numbers.margin * size[1] - y * own if has_lengths and (room or not is_exact) else None
        length, factor = answer.reach
        if is_secret(length):
            lows = [*([] if least is None else [least]), *([beyond - room] if is_exact else [])]
            return self._secret(length).narrow(max(lows, default=None), beyond + room)
        (low, high), squared = self.size(length)
        if room == 0 and squared is not None and low != high:
            # An equality that no enclosure shows.
            fits = beyond >= 0 and (beyond**2 == factor**2 * squared if is_exact else beyond**2 >= factor**2 * squared)
        else:
            fits = factor * high - room <= beyond and (not is_exact or beyond <= factor * low + room)
        return fits and (least is None or factor * low >= least)

    def _secret(self, length: Any) -> _Reach:
        found = next((reach for reach in self.reaches if reach.length == length), None)
        if found is None:
            self.reaches.append(found := _Reach(length))
        return found

    def _is_aligned(self, answer: Answer, y: int) -> bool:
        """True if the step is the shortest way across, exactly."""
        return is_aligned(answer.distance, answer.step, [-y * v for v in self.normal], self.evidence)

    def _is_steepest(self, answer: Answer, y: int, numbers: Promise) -> bool:
        """True if it is, up to the tolerance."""
        down = -y * self.along(answer.whole_step)
        return numbers.steepness <= 0 or self._reaches(answer.distance, down, numbers.steepness, numbers.squared)

    def _reaches(self, distance: Any, value: Fraction, bound: Fraction, bound_squared: Fraction | None) -> bool:
        """value ≥ bound·‖a‖*: by squares if it can be, for exact answers are equalities that no enclosure shows."""
        size, squared = self.size(distance)
        if squared is None or bound_squared is None:
            return value >= bound * size[1]
        return value >= 0 and value * value >= bound_squared * squared
