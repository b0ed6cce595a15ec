"""One random order of asking: which cases are asked, one after the other, what the service says, and who is judged by it.

Every service meets the same cases in the same orders: chance splits the cases before the service answers anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import CertificateInvalid, InvalidInput
from overexplain.geometry.arrays import FloatArray, IntArray, as_generator, as_rows
from overexplain.geometry.hyperplane import NO
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.checker import Answer, check_witness
from overexplain.knowledge.evidence import Finder
from overexplain.log.querylog import QueryLog
from overexplain.models.linear import LinearModel
from overexplain.oracles.protocol import Oracle, checked_explanation, offers
from overexplain.oracles.services import Service

Population = Literal["all", "denied"]
POPULATIONS: Final = ("all", "denied")

ROUNDING: Final = Fraction(1, 2**40)
"""How far, relatively, slack and tolerance may be exceeded by answers that keep them but for rounding."""

LEAST_JUDGED: Final = 0.25
"""The share of the cases that is kept for judging where there are not enough for everything."""


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the rows that are asked, in order, and of those judged; and chance for what the service draws."""

    asked: IntArray
    judged: IntArray
    rng: np.random.Generator


@final
@dataclass(frozen=True, eq=False)
class Order:
    """The answers of a service to the cases of one order.

    model         who decides, for what is known to its owner only
    asked         the cases, in the order in which they were asked
    labels        the decisions on them
    explanations  an all-NaN row where there is none; None: the service explains nothing
    mechanism     what it tells the asker about its explanations; None: it explains nothing
    judged        the unseen cases
    certain       True: the explanations are computed by the very terms that are published
    """

    model: LinearModel
    asked: FloatArray
    labels: NDArray[np.int8]
    explanations: FloatArray | None
    mechanism: Mechanism | None
    judged: FloatArray = field(repr=False)
    certain: bool = False

    @cached_property
    def truth(self) -> FloatArray:
        """The audited model (a, b)."""
        return np.append(self.model.hyperplane.normal, self.model.hyperplane.offset)

    @cached_property
    def keeps_terms(self) -> bool:
        """False if the audited model itself does not fit the answers, taken by their published terms.

        Whoever believes such terms is misled. Then explanations are not used at all: what is left are the decisions.
        """
        if self.explanations is None or self.certain:
            return True
        answers = answers_of(self._log(len(self.asked), explained=True))
        lenient = {row: _lenient(answer) for row, answer in answers.items()}
        normal, offset = self.model.hyperplane.normal.tolist(), self.model.hyperplane.offset
        try:
            check_witness(lenient, list(map(Fraction, normal)), Fraction(offset), lengths=Finder())
        except CertificateInvalid:
            return False
        return True

    def log(self, answers: int) -> QueryLog:
        """The first answers as an outsider may rely on them: only decisions where the explanations break their terms."""
        if not 0 <= answers <= len(self.asked):
            raise InvalidInput(f"{answers} answers of this order were asked for, it has {len(self.asked)}")
        return self._log(answers, explained=self.keeps_terms)

    def _log(self, answers: int, explained: bool) -> QueryLog:
        asked, labels = self.asked[:answers], self.labels[:answers]
        if not explained or self.explanations is None:
            log = QueryLog(self.model.features)
            log.add_label(asked, labels)
        else:
            log = QueryLog(self.model.features, self.mechanism)
            log.add_explanation(asked, self.explanations[:answers], label=labels)
        return log


def _lenient(answer: Answer) -> Answer:
    """The same answer, but for the rounding of what computed it: terms may be met to the last digit."""
    slack = answer.slack * (1 + ROUNDING) if answer.slack else answer.slack
    tolerance = answer.tolerance * (1 + ROUNDING) if answer.tolerance else answer.tolerance
    return replace(answer, slack=slack, tolerance=tolerance)


def split(
    model: LinearModel,
    rows: FloatArray,
    *,
    answers: int,
    orders: int,
    judged: int,
    rng: int | np.random.Generator | None,
    population: Population = "all",
) -> list[Split]:
    """How every order divides the rows: at most `answers` to ask and `judged` to judge, as many in each order.

    The first is the same whatever comes after it, but for how many. No judged row is equal to an asked one.
    """
    cases = as_rows(rows, model.dimension, "rows")
    _refuse(len(cases), orders=orders, judged=judged, answers=answers)
    if population not in POPULATIONS:
        raise InvalidInput(f"population is one of {', '.join(POPULATIONS)}, got {population!r}")
    may_ask = np.ones(len(cases), dtype=bool) if population == "all" else model.hyperplane.labels(cases) == NO
    same = np.unique(cases, axis=0, return_inverse=True)[1].reshape(-1)
    kept = min(judged, max(int(LEAST_JUDGED * len(cases)), len(cases) - answers, 1))
    drawn = [_split(own, may_ask, same, kept, answers) for own in as_generator(rng).spawn(orders)]
    asked, unseen = (
        min(len(part) for part in parts) for parts in zip(*((s.asked, s.judged) for s in drawn), strict=True)
    )
    if not asked or not unseen:
        who = "cases answered with No" if population == "denied" else "cases"
        raise InvalidInput(
            f"{len(cases)} rows, {np.count_nonzero(may_ask)} of them {who}, cannot be divided into some that are asked and "
            "others, different from them, that are judged; give more rows"
        )
    return [Split(s.asked[:asked], s.judged[:unseen], s.rng) for s in drawn]


def _split(rng: np.random.Generator, may_ask: NDArray[np.bool_], same: IntArray, kept: int, answers: int) -> Split:
    """Cases to judge and cases to ask; equal ones, which have the same number in `same`, go to the same side."""
    shuffled = rng.permutation(len(may_ask))
    alike = rng.permutation(int(same.max()) + 1)
    # Without equal cases these are as many groups as cases; at least one group is left to ask.
    groups = alike[: max(1, min(len(alike) - 1, round(kept / len(same) * len(alike))))]
    aside = np.isin(same[shuffled], groups)
    rest = shuffled[~aside]
    asked = rest[may_ask[rest]][:answers]
    others = np.concatenate([shuffled[aside], np.setdiff1d(rest, asked)])
    unseen = others[~np.isin(same[others], same[asked])]
    return Split(asked, unseen[:kept], rng)


def _refuse(cases: int, **numbers: int) -> None:
    for name, value in numbers.items():
        if not value >= 1:
            raise InvalidInput(f"{name} must be a whole number above 0, got {value!r}")
    if cases < 2:
        raise InvalidInput(f"{cases} rows are too few: at least one is asked and another one judged")


def ask(model: LinearModel, rows: FloatArray, service: Service, drawn: Split) -> Order:
    """The order in which a split's cases are asked, with the answers of the service."""
    oracle: Any = service.oracle(model, rows, drawn.rng)
    asked = np.ascontiguousarray(rows[drawn.asked])
    explains = oracle.mechanism is not None and offers(oracle, "explain")
    return Order(
        model=model,
        asked=asked,
        labels=np.asarray(oracle.classify(asked.copy()), dtype=np.int8),
        explanations=_explanations(oracle, asked) if explains else None,
        mechanism=oracle.mechanism if explains else None,
        judged=np.ascontiguousarray(rows[drawn.judged]),
        certain=service.is_plain and _is_told(service),
    )


def _is_told(service: Service) -> bool:
    """True if what a service publishes is what it does, but for a radius that it keeps secret."""
    own, told = service.mechanism, service.published
    return told is None or told == own or (own is not None and not own.is_plain and told == replace(own, radius=None))


def _explanations(oracle: Oracle, asked: FloatArray) -> FloatArray:
    """The explanations; an all-NaN row where there is none, be it that the service fails."""
    try:
        found = np.array(oracle.explain(asked.copy()), dtype=np.float64)
        if found.shape == asked.shape and (np.isfinite(found).all(axis=1) | np.isnan(found).all(axis=1)).all():
            return found
    except Exception:  # whatever a service raises about one case of a batch: they are asked one by one
        found = asked
    found = np.full(asked.shape, np.nan)
    for i, case in enumerate(asked):
        try:
            answer = checked_explanation(oracle.explain(case.copy()), oracle.dimension)
        except Exception:  # this case got a decision and no explanation
            continue
        if answer is not None:
            found[i] = answer
    return found
