"""The rows of a log in exact numbers, as the checker reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from overexplain.errors import InvalidInput, UnsupportedNorm
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm
from overexplain.knowledge.promises import FLOAT64_ANSWER, Answer
from overexplain.log.querylog import QueryLog

KEPT = 500_000
"""So many numbers, about 100 MB, are kept once they are converted: a proof needs few, a log may have any number."""


def answers_of(log: QueryLog, tolerance: float | None = None) -> Mapping[int, Answer]:
    """The log's rows by number, converted when they are asked for. A `tolerance` is put in the place of every row's own.

    A row without a mechanism is used for its label alone.

    >>> log = QueryLog(mechanism=Mechanism("l1", tolerance=0.5))
    >>> log.add_explanation([0.0, 0.0], [1.5, 0.0], label=-1)
    0
    >>> answers_of(log)[0].explanation
    (Fraction(3, 2), Fraction(0, 1))
    """
    if tolerance is not None and not (math.isfinite(tolerance) and tolerance >= 0):
        raise InvalidInput(f"a tolerance is a number ≥ 0, got {tolerance!r}")
    return _Answers(log, tolerance)


@final
class _Answers(Mapping[int, Answer]):
    """A view of a log: rows added to it later are there, too."""

    def __init__(self, log: QueryLog, tolerance: float | None) -> None:
        self._log, self._tolerance = log, tolerance
        self._terms: dict[Mechanism, dict[str, Any]] = {}
        self._kept = lru_cache(maxsize=max(64, KEPT // (log.dimension or 1)))(self._converted)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Answers, (self._log, self._tolerance)

    def __getitem__(self, row: int) -> Answer:
        if row not in self:
            raise KeyError(row)
        return self._kept(row)

    def __contains__(self, row: object) -> bool:
        return type(row) is int and 0 <= row < len(self._log)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._log)))

    def __len__(self) -> int:
        return len(self._log)

    def _converted(self, row: int) -> Answer:
        entry = self._log[row]
        terms = entry.mechanism
        if terms is None and entry.explanation is None:
            terms = self._log.mechanism  # a label's terms are those of the log
        if terms is None:
            return Answer(exact(entry.point), entry.label)
        if terms not in self._terms:
            self._terms[terms] = self._read(terms)
        if entry.explanation is None:
            return Answer(exact(entry.point), entry.label, free=self._terms[terms]["free"])
        is_valid = terms.domain is None or terms.domain.contains(entry.explanation)
        return Answer(
            exact(entry.point), entry.label, exact(entry.explanation), **self._terms[terms], is_valid=is_valid
        )

    def _read(self, terms: Mechanism) -> dict[str, Any]:
        tolerance = terms.tolerance if self._tolerance is None else self._tolerance
        # A robust answer is as far behind the plane as the length of a under its robustness, which is rounded as well.
        used = [terms.distance] if terms.is_plain else [terms.distance, terms.robustness]
        rounding = max((Fraction(norm.answer_rounding) for norm in used if norm is not None), default=FLOAT64_ANSWER)
        read = {
            "distance": written_form(terms.distance),
            "tolerance": None if tolerance is None else Fraction(tolerance),
            "slack": None if terms.slack is None else Fraction(terms.slack),
            "rounding": rounding,
            "free": None if terms.domain is None else tuple(terms.domain.continuous.tolist()),
            "limits": () if terms.domain is None else _limits(terms.domain),
        }
        if terms.is_plain:
            return read
        return read | {
            "robustness": written_form(terms.robustness),
            "radius": None if terms.radius is None else Fraction(terms.radius),
        }


def written_form(norm: Norm | None) -> Any:
    """The norm as the checker reads it; UnsupportedNorm, by name, for one of the user's own: nothing tells what it promises."""
    try:
        return None if norm is None else norm.spec
    except UnsupportedNorm:
        raise UnsupportedNorm(
            f"{type(norm).__name__} is a norm of your own: verdicts and proofs need one of the library's, whose lengths are "
            "enclosed exactly. Mechanism(None, ...) uses what holds under any distance; extract works with your own norms"
        ) from None


def _limits(domain: Domain) -> tuple[tuple[Fraction | None, Fraction | None], ...]:
    """(low, high) of every continuous feature; None: no limit."""
    pairs = zip(domain.low[domain.continuous].tolist(), domain.high[domain.continuous].tolist(), strict=True)
    return tuple((_limit(low), _limit(high)) for low, high in pairs)


def _limit(value: float) -> Fraction | None:
    return Fraction(value) if math.isfinite(value) else None


def exact(x: FloatArray) -> tuple[Fraction, ...]:
    """The point's floats as the fractions they are."""
    return tuple(map(Fraction, x.tolist()))
