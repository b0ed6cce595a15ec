"""`Knowledge`: what a log gives away."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import InvalidInput, SolverFailed
from overexplain.geometry.arrays import FloatArray, as_point_or_rows
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.certain_region import CertainRegion
from overexplain.knowledge.certificates import Certificate, Disagreement
from overexplain.knowledge.facts import LEVELS, Robust
from overexplain.knowledge.known import Known
from overexplain.knowledge.verdicts import Verdict, Verdicts
from overexplain.log.extremes import numbers_of_a_log
from overexplain.log.querylog import Points, QueryLog
from overexplain.log.rows import as_numbers, in_order

BLOCK = 16_384
"""Points that one thread takes at a time."""


@final
class Knowledge:
    """Every linear model that could have given a log's answers, and what they all agree on.

    robust      how robust counterfactuals are used. "exact": for all they say; "shared": without cases, which take tens of
                milliseconds a point: what only these settle is UNDECIDED; "paper" and "perspective": the weaker sets of the paper
    tolerance   overrides that of every row's mechanism; 0.0: the answers are exact
    time_limit  seconds that the exact step may take in one call of `certify`; what is left then is UNDECIDED

    Raises InconsistentLog, with a proof, if no model fits.

    >>> log = QueryLog()
    >>> log.add_label([[0.0, 0.0], [4.0, 0.0]], [-1, 1])
    0
    >>> knowledge = Knowledge(log)
    >>> verdicts = knowledge.certify([[6.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])
    >>> verdicts.counts()
    {'YES': 1, 'NO': 1, 'UNKNOWN': 1, 'BOUNDARY': 0, 'UNDECIDED': 0}
    >>> print(verdicts.proof(0))
    Yes = 1.5 · row 1 − 0.5 · row 0
    """

    def __init__(
        self,
        log: QueryLog,
        robust: Robust = "exact",
        tolerance: float | None = None,
        time_limit: float | None = None,
        *,
        threads: int | None = None,
    ) -> None:
        if not isinstance(log, QueryLog):
            raise InvalidInput(f"knowledge comes from a QueryLog, got {type(log).__name__}")
        if robust not in LEVELS:
            raise InvalidInput(f"robust is one of {', '.join(LEVELS)}, got {robust!r}")
        if threads is not None and not threads >= 1:
            raise InvalidInput(f"threads is a whole number above 0 or None, got {threads!r}")
        self._threads = threads
        limits = _limit(tolerance, "tolerance"), _limit(time_limit, "time_limit")
        with numbers_of_a_log(), one_blas_thread():
            self._known = Known(log, *limits, robust)

    # What is known.

    @property
    def log(self) -> QueryLog:
        """The log it rests on."""
        return self._known.log

    @property
    def dimension(self) -> int | None:
        """The number of features; None for an empty log that does not say."""
        return self._known.log.dimension

    @property
    def settings(self) -> dict[str, Any]:
        """How the log is read: `robust`, `tolerance` and `time_limit`, as they were given."""
        known = self._known
        return {"robust": known.robust, "tolerance": known.tolerance, "time_limit": known.time_limit}

    @property
    def oriented(self) -> bool:
        """False if no label says which side is Yes: verdicts then hold up to swapping Yes and No."""
        return self._known.oriented

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits every answer is known; a log that contradicts itself raises when it is read.

        False: neither was found, as may happen for exact answers under norms with irrational lengths.
        """
        return self._known.is_consistent

    @property
    def pinned_down(self) -> bool:
        """True if the log leaves a single model, up to the tolerance of its answers."""
        return self._known.pinned_down

    def witness(self) -> Hyperplane:
        """A model that fits every answer, well inside what the log allows; rounded to float64."""
        model = self._known.centre
        if model is None:
            raise SolverFailed("no model that fits every answer exactly was found")
        size = max(abs(v) for v in (*model[0], model[1]))
        return Hyperplane([float(v / size) for v in model[0]], float(model[1] / size))

    def share(self, X: Points) -> float:
        """The share of the points whose label is certain."""
        codes = self.certify(X).codes
        return float(np.mean((codes == YES) | (codes == NO))) if len(codes) else 0.0

    def region(self, verdict: Verdict) -> CertainRegion:
        """All points whose verdict this is, YES or NO: membership, generators, and polygons of slices."""
        return CertainRegion(
            self._known, copy.copy(self)._certify, verdict
        )  # of a copy: what is added later is not in it

    # Questions.

    @overload
    def certify(self, X: Iterator[Points]) -> Iterator[Verdicts]: ...
    @overload
    def certify(self, X: Points) -> Verdicts: ...
    def certify(self, X: Any) -> Any:
        """The verdict on every point: a point, rows, or named columns; for an iterator of such blocks an iterator of verdicts."""
        if isinstance(X, Iterator):
            return (self._certify(block) for block in X)
        return self._certify(X)

    def _certify(self, X: Points) -> Verdicts:
        points = self._points(X)
        if self._known.has_facts and len(points):
            codes = self._codes(points, self._known.deadline())
        else:
            codes = np.full(len(points), int(Verdict.UNKNOWN), dtype=np.int8)
        return Verdicts(codes, points, self._known)

    def _codes(self, points: FloatArray, deadline: float | None) -> NDArray[np.int8]:
        """Codes in blocks, each thread with a copy of what is known that learns for itself."""
        known = self._known
        workers = min(self._threads or os.cpu_count() or 1, -(-len(points) // BLOCK))
        blocks = [points[i : i + BLOCK] for i in range(0, len(points), BLOCK)]
        with one_blas_thread():
            if workers <= 1:
                return np.concatenate([known.codes(block, deadline) for block in blocks])
            known.codes(points[:1], deadline)  # what is made on first use is made once
            twins = [known, *(known.fork() for _ in range(workers - 1))]

            def share(k: int) -> list[NDArray[np.int8]]:
                return [twins[k].codes(block, deadline) for block in blocks[k::workers]]

            with ThreadPoolExecutor(workers) as pool:
                found = list(pool.map(share, range(workers)))
        return np.concatenate([found[i % workers][i // workers] for i in range(len(blocks))])

    def _points(self, X: Points) -> FloatArray:
        if not isinstance(X, np.ndarray | list | tuple):
            X = in_order(X, self._known.log.features, "X")
        points = as_point_or_rows(as_numbers(X, "X"), self._known.log.dimension, "X")
        return np.array(points, ndmin=2)  # a copy: verdicts and their proofs stay about these points

    def prove(self, x: Points, verdict: Verdict | None = None) -> Certificate | Disagreement:
        """The proof of a point's verdict, checked in exact arithmetic; SolverFailed if it is undecided."""
        return self._known.prove(self._points(x)[0], verdict)

    # Copies.

    def prepared(self) -> Knowledge:
        """The same knowledge without anything that points taught it, ready to be copied and sent: it can be pickled."""
        return self._with(self._known.prepared())

    def fork(self) -> Knowledge:
        """A copy that learns for itself, on one thread.

        What a fork of `prepared()` says about some points, proofs included, depends on the log and these points: not on what
        others were asked, how many there are, or in which order they ran.
        """
        twin = self._with(self._known.fork())
        twin._threads = 1
        return twin

    def _with(self, known: Known) -> Knowledge:
        twin = copy.copy(self)
        twin._known = known
        return twin

    # Learning.

    def add(
        self, x: Points, label: Any = None, explanation: Points | None = None, mechanism: Mechanism | None = None
    ) -> Knowledge:
        """Itself, knowing more: the label of a point or of rows, or an explanation of it.

        The log it was made from is left alone: `log` is a copy from the first addition on. An answer that contradicts the others
        raises InconsistentLog and nothing is changed. What was certain stays so.
        """
        if label is None and explanation is None:
            raise InvalidInput("add takes a label, an explanation, or both")
        log = copy.copy(self._known.log)
        if explanation is None:
            log.add_label(x, label)
        else:
            log.add_explanation(x, explanation, label=label, mechanism=mechanism)
        with numbers_of_a_log(), one_blas_thread():
            self._known = Known(log, self._known.tolerance, self._known.time_limit, self._known.robust, self._known)
        return self

    def __repr__(self) -> str:
        return f"Knowledge({self._known.log!r})"


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Matrix products on one thread: they are small, and waiting for each other takes longer than they do."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _limit(value: Any, name: str) -> float | None:
    """A number ≥ 0 or None."""
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if number is not None and not 0 <= number < math.inf:
        raise InvalidInput(f"{name} is a number ≥ 0 or None, got {value!r}")
    return number
