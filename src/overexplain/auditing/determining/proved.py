"""After how many answers each judged case is determined, by the prover that `Knowledge.certify` asks.

What is determined stays so. A proof for the first k answers bounds the number from above; two models that keep the first m
answers and disagree about a case bound it from below. Models are held against all cases and, as long as answers are decisions or
merely valid, against all answers at once. What is left between the bounds is bisected, with a prover for each number of answers
that is asked about. What provers leave open is undecided.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.determining.orders import Order
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.prover.blocks import Block, blocks_of
from overexplain.knowledge.prover.cone import NoInterior, gamma
from overexplain.knowledge.prover.linear import OPEN
from overexplain.knowledge.prover.log_prover import Contradiction, LogProver
from overexplain.knowledge.prover.statements import read_statements
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog

TRIES = 3
"""A case that provers left open so often is left undecided: no others take as long."""


BY_CASES = 128
"""Questions of an order that may be answered by cases, which take up to a second where all else takes microseconds."""


def blocks_in(log: QueryLog) -> list[Block]:
    """What the prover reads in an order's log."""
    return blocks_of(log, log.labels, None) or []


@final
class ProvedSearch:
    """The first of some numbers of answers that determines each judged case; numbers are called by their index.

    low   the last index at which a case is known not to be determined; −1: none is
    high  the first at which it is known to be, so decided as `said`; past the end: none is
    """

    def __init__(self, order: Order, answers: Sequence[int]) -> None:
        whole = blocks_in(order.log(answers[-1]))
        self._order, self._answers = order, np.asarray(answers)
        self.last, count = len(answers), len(order.judged)
        self.low, self.high = np.full(count, -1), np.full(count, self.last)
        self.said = np.zeros(count, dtype=np.int8)
        self._has_cases = False
        self._forget_open()
        self._prover: Callable[[int], LogProver | None] = cache(self._make_prover)
        self._shared = _Shared(order, whole) if all(block.is_linear for block in whole) else None

    def _forget_open(self) -> None:
        count = len(self.low)
        self._open_low, self._open_high = np.full(count, self.last), np.full(count, -1)
        self._open_times = np.zeros(count, dtype=np.int64)

    def _make_prover(self, index: int) -> LogProver | None:
        """The prover of the first answers; None where floats see nothing of the models that fit them."""
        log = self._order.log(int(self._answers[index]))
        try:
            return LogProver(blocks_in(log), answers_of(log), Finder(), self._order.truth[None, :])
        except (Contradiction, NoInterior, np.linalg.LinAlgError):
            return None

    def is_pinned(self, index: int) -> bool:
        """True if the answers up to that index leave one model alone, up to their tolerance."""
        prover = self._prover(index)
        return prover is not None and prover.pinned_down

    @property
    def undecided(self) -> BoolArray:
        """(numbers of answers, cases): True where it is not known whether a case is determined."""
        indices = np.arange(self.last)[:, None]
        return np.asarray((self.low < indices) & (indices < self.high))

    def run(self) -> None:
        """Ask until nothing is left between the bounds but what provers leave open; proofs by cases come last, they are slow."""
        if self._shared is None:
            # Exact answers leave one model by then, as a rule.
            enough = int(np.searchsorted(self._answers, self._order.model.dimension))
            self._ask(min(enough, self.last - 1), np.arange(len(self.low)))
        self._ask(self.last - 1, np.flatnonzero(self.high == self.last))
        self._narrow()
        self._has_cases = True
        self._forget_open()
        self._narrow(BY_CASES)

    def _narrow(self, most: int = sys.maxsize) -> None:
        """Bisect what is left between the bounds, with no more questions than that."""
        while most > 0 and (wanted := self._wanted()).max(initial=-1) >= 0:
            for index in np.unique(wanted[wanted >= 0]).tolist():
                cases = np.flatnonzero(wanted == index)[:most]
                self._ask(index, cases)
                most -= len(cases)

    def _wanted(self) -> IntArray:
        """The index to ask about next, for each case; −1: none.

        It halves what is left between the bounds; where provers left a case open, what is left below them, then above.
        """
        first = np.maximum(self._open_low, self.low + 1)
        behind = np.minimum(self._open_high, self.high - 1)
        is_open = first <= behind
        below = np.where(is_open & (first - self.low > 1), (self.low + first) // 2, -1)
        above = np.where(is_open & (self.high - behind > 1), (behind + self.high) // 2, -1)
        middle = np.where(self.high - self.low > 1, (self.low + self.high) // 2, -1)
        wanted = np.where(is_open, np.where(below >= 0, below, above), middle)
        return np.where(self._open_times < TRIES, wanted, -1)

    def _ask(self, index: int, cases: IntArray) -> None:
        """Narrow the bounds of some cases, where that index lies between them, and of others by what is found on the way."""
        cases = cases[(self.low[cases] < index) & (index < self.high[cases])]
        if not len(cases):
            return
        prover = self._prover(index)
        codes = np.full(len(cases), OPEN, dtype=np.int8)
        if prover is not None:
            codes = prover.codes(self._order.judged[cases], has_cases=self._has_cases)
            self._learn(prover, index, cases, codes)
        unknown = cases[(codes == Verdict.UNKNOWN) | (codes == Verdict.BOUNDARY)]
        self.low[unknown] = np.maximum(self.low[unknown], index)
        left = cases[codes == OPEN]
        self._open_low[left] = np.minimum(self._open_low[left], index)
        self._open_high[left] = np.maximum(self._open_high[left], index)
        self._open_times[left] += 1

    def _learn(self, prover: LogProver, index: int, cases: IntArray, codes: NDArray[np.int8]) -> None:
        """Upper bounds by what was proved, lower ones by the models found."""
        certain = (codes == YES) | (codes == NO)
        self.high[cases[certain]] = index
        self.said[cases[certain]] = codes[certain]
        if self._shared is not None:
            kept = self._shared.disagree_until(index, prover.known)
            self.low = np.maximum(self.low, np.searchsorted(self._answers, kept, side="right") - 1)


@final
class _Shared:
    """Models of logs of decisions and merely valid answers, held against all answers and all cases of an order.

    `_until` (2, cases): how many of the first answers are kept by some model that says Yes, and by one that says No.
    """

    def __init__(self, order: Order, whole: Sequence[Block]) -> None:
        said = read_statements(whole, {})
        facts, self._origin = said.facts, said.origin
        self._rows = facts.sides.astype(np.float64)[:, None] * np.hstack(
            [facts.points, -np.ones((len(facts.points), 1))]
        )
        self._count = len(order.asked)
        self._queries = np.hstack([order.judged, -np.ones((len(order.judged), 1))])
        self._until = np.zeros((2, len(order.judged)), dtype=np.int64)
        self._seen: dict[int, int] = {}
        self._hold(order.truth[None, :])

    def disagree_until(self, index: int, models: FloatArray) -> IntArray:
        """For each case how many of the first answers leave it open, by all models so far; these are known to one prover."""
        seen = self._seen.get(index, 0)
        self._seen[index] = len(models)
        self._hold(models[seen if seen < len(models) else 0 :])
        return np.asarray(self._until.min(axis=0))

    @np.errstate(all="ignore")
    def _hold(self, models: FloatArray) -> None:
        kept = np.where(_is_above(self._rows, models), self._count, self._origin).min(axis=1)
        for says, queries in enumerate((self._queries, -self._queries)):
            most = np.where(_is_above(queries, models), kept[:, None], 0).max(axis=0)
            self._until[says] = np.maximum(self._until[says], most)


def _is_above(rows: FloatArray, models: FloatArray) -> BoolArray:
    """(models, rows): True where row·model > 0, for certain."""
    off = gamma(rows.shape[1] + 8) * (np.abs(models) @ np.abs(rows).T)
    return np.asarray(models @ rows.T > off)
