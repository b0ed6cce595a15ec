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
    Enclosure,
    Evidence,
    Length,
    NotEnclosed,
    Vector,
    dot,
    dual_spec,
    enclose,
    is_aligned,
    product,
    root,
)
from overexplain.knowledge.promises import Answer, as_evidence, assumption, fits, promise, refuse_inexact, whole


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


class _Model:
    """A model that is asked whether it would have given answers; ‖a‖* is the same for all rows of one distance."""

    def __init__(self, normal: Vector, offset: Fraction, evidence: Evidence) -> None:
        self.normal, self.offset, self.evidence = normal, offset, evidence
        self.sizes: list[tuple[Any, Enclosure, Fraction | None]] = []

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

    def keeps(self, answer: Answer, own: Fraction) -> bool:
        """True if the model keeps the facts of an explained row; `own` is a·x − b."""
        assert answer.explanation is not None
        y = 1 if own >= 0 else -1
        across = dot(self.normal, answer.explanation) - self.offset
        if answer.distance is None or answer.slack is None:
            return across == 0 if answer.slack == 0 else -y * across >= 0
        numbers, (size, squared) = promise(answer, self.evidence, strong=True), self.size(answer.distance)
        is_exact, stretch = answer.tolerance == 0, 1 + answer.slack
        if is_exact and answer.slack == 0 and squared is None:
            away = [-y * v for v in self.normal]  # the margin follows: own = across − a·w
            return across == 0 and is_aligned(answer.distance, answer.step, away, self.evidence)

        def reaches(value: Fraction, bound: Fraction, bound_squared: Fraction | None) -> bool:
            """value ≥ bound·‖a‖*: by squares if it can be, for exact answers are equalities that no enclosure shows."""
            if squared is None or bound_squared is None:
                return value >= bound * size[1]
            return value >= 0 and value * value >= bound_squared * squared

        margin_squared = numbers.squared / stretch**2 if is_exact and numbers.squared is not None else None
        if not reaches(y * own, numbers.margin, margin_squared):
            return False
        if answer.slack != 0:
            return numbers.flip is None or -y * across >= -numbers.flip * y * own
        if abs(across) > numbers.tolerance * size[0]:
            return False
        down = -y * dot(self.normal, answer.step)
        return numbers.steepness <= 0 or reaches(down, numbers.steepness, numbers.squared)
