"""How much is known after so many answers: the share of unseen decisions that are determined, for ordinary cases in random order.

What is determined stays so, so every judged case has a first number of answers at which it is: the prover finds it (`proved`).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from overexplain.auditing.audit_report import Curve
from overexplain.auditing.determining.orders import Order, Population, Split, ask, split
from overexplain.auditing.determining.proved import ProvedSearch
from overexplain.auditing.workers import one_thread, process_pool
from overexplain.errors import InconsistentLog, InvalidInput
from overexplain.extraction.recover import recover
from overexplain.geometry.arrays import FloatArray, IntArray, as_rows
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.norm import UNIT_ROUNDOFF
from overexplain.knowledge.prover.batch import expect
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

Progress = Callable[[int, int], None]
Rng = int | np.random.Generator | None

DENSE = 14
"""So many numbers of answers are looked at, about, between 10 and the number of features."""


def checkpoints(dimension: int, askable: int) -> tuple[int, ...]:
    """Numbers of answers to look at: many up to a little over the number of features, where things happen, then fewer.

    >>> checkpoints(4, 60)
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 30, 40, 50)
    >>> checkpoints(30, 10_000)[10:]
    (12, 14, 16, 18, 20, 22, 24, 26, 28, 29, 30, 31, 32, 34, 40, 50, 75, 100, 150, 200, 300, 400)
    >>> len(checkpoints(500, 10_000)), checkpoints(500, 10_000)[-1]
    (30, 1000)
    """
    dense = max(10, dimension + 5)
    steps = max(1, dense // DENSE)
    early = {*range(1, 11), *range(steps, dense + 1, steps), *range(max(1, dimension - 1), dimension + 3)}
    last = max(400, 2 * dimension)
    later = {m * 10**e for e in range(1, 7) for m in (1, 1.5, 2, 3, 4, 5, 7.5)}
    numbers = {n for n in early if n <= dense} | {int(n) for n in later if dense < n <= last and n == int(n)} | {last}
    return tuple(sorted(n for n in numbers if n <= askable))


@dataclass(frozen=True, eq=False)
class Found:
    """What an order's answers determine.

    first      for each judged case the index of the first number of answers that determine it; past the end: none does
    known      the index of the first number that leaves one model alone; None: none does
    wrong      determined decisions that contradict the audited model
    undecided  for each number of answers the share of judged cases of which it is not known whether they are determined
    broken     True: the explanations break their published terms and are not used
    """

    first: IntArray
    known: int | None
    wrong: int
    undecided: FloatArray
    broken: bool

    def shares(self) -> FloatArray:
        """The determined share for every number of answers."""
        return np.array([np.count_nonzero(self.first <= i) / len(self.first) for i in range(len(self.undecided))])


def look(order: Order, answers: Sequence[int]) -> Found:
    """What the first answers of an order determine, for every number in `answers`."""
    search = ProvedSearch(order, answers)
    search.run()
    margins = np.asarray(order.model.hyperplane.margin(order.judged))
    normal, offset = order.truth[:-1], order.truth[-1]
    size = np.abs(order.judged) @ np.abs(normal) + abs(offset)
    clear = np.abs(margins) > 4 * len(normal) * UNIT_ROUNDOFF * size
    truth = np.where(margins >= 0, YES, NO)
    determined = search.high < len(answers)
    return Found(
        first=search.high,
        known=_known_at(search, order, answers),
        wrong=int(np.count_nonzero(determined & clear & (search.said != truth))),
        undecided=(search.undecided & clear).mean(axis=1),
        broken=not order.keeps_terms,
    )


def _known_at(search: ProvedSearch, order: Order, answers: Sequence[int]) -> int | None:
    """The first index at which one model alone is left: by what is proved, or by the equations of exact answers."""

    def recovers(index: int) -> bool:
        try:
            return recover(order.log(answers[index])) is not None
        except InconsistentLog:
            return False

    for leaves_one in (search.is_pinned, recovers):
        low, high = -1, len(answers) - 1
        if leaves_one(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if leaves_one(middle) else (middle, high)
            return high
    return None


def first_order(
    model: LinearModel,
    rows: FloatArray,
    service: Service,
    *,
    answers: Sequence[int],
    orders: int,
    judged: int,
    rng: Rng,
    population: Population = "all",
) -> Order:
    """The first order of `determined_curve`: `Curve.first` is about its judged cases and its log."""
    cases = as_rows(rows, model.dimension, "rows")
    numbers = _numbers(answers)
    drawn = split(model, cases, answers=numbers[-1], orders=orders, judged=judged, rng=rng, population=population)
    return ask(model, cases, service, drawn[0])


def determined_curve(
    model: LinearModel,
    rows: FloatArray,
    service: Service,
    id: str,
    *,
    answers: Sequence[int],
    orders: int,
    judged: int,
    rng: Rng,
    population: Population = "all",
    progress: Progress | None = None,
    workers: int | Executor | None = None,
) -> Curve:
    """The share of unseen decisions determined after each number of `answers`, over random orders.

    Numbers larger than there are cases to ask are left out. The result depends on `rng` alone.

    population  who asks: "all" cases, or only the "denied", who pool their letters
    progress    called with (orders done, orders in all)
    workers     how many processes share the orders, or an Executor; None: this process alone
    """
    cases = as_rows(rows, model.dimension, "rows")
    numbers = _numbers(answers)
    drawn = split(model, cases, answers=numbers[-1], orders=orders, judged=judged, rng=rng, population=population)
    numbers = tuple(n for n in numbers if n <= len(drawn[0].asked))
    if not numbers:
        raise InvalidInput(
            f"the least number of answers to look at is {min(answers)}; only {len(drawn[0].asked)} cases can be asked"
        )
    found: list[Found] = []
    with process_pool(workers) as pool:
        jobs = (_Job(model, cases, service, own, numbers, orders * judged) for own in drawn)
        for one in map(_run, jobs) if pool is None else pool.map(_run, jobs):
            found.append(one)
            if progress is not None:
                progress(len(found), orders)
    return _curve(found, id, population, numbers, drawn[0])


@dataclass(frozen=True, eq=False)
class _Job:
    """One order of one service, as it is sent to another process; `judged` counts the cases of all orders."""

    model: LinearModel
    rows: FloatArray
    service: Service
    drawn: Split
    answers: tuple[int, ...]
    judged: int


def _run(job: _Job) -> Found:
    expect(job.judged)
    with one_thread():
        return look(ask(job.model, job.rows, job.service, job.drawn), job.answers)


def _numbers(answers: Sequence[int]) -> tuple[int, ...]:
    """The numbers of answers, if they rise from at least 1."""
    numbers = tuple(int(n) for n in answers)
    if not numbers or numbers[0] < 1 or any(b <= a for a, b in pairwise(numbers)):
        raise InvalidInput(f"answers must be whole numbers that rise from at least 1, got {list(answers)!r}")
    return numbers


def _curve(found: Sequence[Found], id: str, population: Population, answers: tuple[int, ...], drawn: Split) -> Curve:
    shares = np.array([one.shares() for one in found])
    known = statistics.median_low([len(answers) if one.known is None else one.known for one in found])
    most = np.minimum(1.0, shares + [one.undecided for one in found])
    low, median, high = (_quantile(shares, q) for q in (0.1, 0.5, 0.9))
    return Curve(
        service=id,
        population=population,
        answers=answers,
        median=median,
        low=low,
        high=high,
        highest=tuple(map(float, shares.max(axis=0))),
        first=tuple(map(float, shares[0])),
        orders=len(found),
        judged=len(drawn.judged),
        askable=len(drawn.asked),
        known_at=None if known == len(answers) else answers[known],
        wrong=sum(one.wrong for one in found),
        undecided=float(max(one.undecided.max() for one in found)),
        at_most=tuple(map(float, most.max(axis=0))),
        terms_broken=sum(one.broken for one in found),
        median_at_most=_quantile(most, 0.5),
        high_at_most=_quantile(most, 0.9),
        first_at_most=tuple(map(float, most[0])),
    )


def _quantile(shares: FloatArray, q: float) -> tuple[float, ...]:
    return tuple(map(float, np.quantile(shares, q, axis=0)))
