"""The rows of a log, by the terms under which they were given: what they promise is read from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.lp import Lp
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm
from overexplain.geometry.norms import Weighted
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.facts import LEVELS, Robust, Secret, Steepest, is_euclidean, length_error
from overexplain.knowledge.promises import Answer
from overexplain.log.querylog import QueryLog, Status

FEW_FORMS = 4000
"""Linear facts that are listed for answers with slack and no tolerance."""

EASED_SLACK, EASED_TOLERANCE = 1e-6, 1e-8
"""Terms that are sharper than this (a tolerance as a share of its step) may leave less room than floats can see."""


@final
@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a log under the same terms. Without `terms`: labels alone. `low` ≤ ‖w‖ ≤ `high`, `tolerance` is at least τ."""

    rows: IntArray
    points: FloatArray
    sides: IntArray
    terms: Mechanism | None = None
    answers: FloatArray | None = None
    number: int = -1
    """Its distance among the lengths; −1: its facts have no length in them."""
    is_exact: bool = False
    """The answers lie on the plane, without any tolerance, and all that their steps say is linear."""
    is_loose: bool = False
    """Only where the answers lie counts, to within the tolerance: the rows have no side, or a domain, or are merely valid."""
    is_on_plane: bool = True
    """Exact answers lie on the plane, unless discrete features brought them across."""
    is_confined: bool = False
    """The answers were chosen from a domain."""
    ball: int = -1
    """The number of the length that says how far behind the plane robust answers lie; −1: they lie on it."""

    level: Robust = "shared"
    """How much of robust answers is used: below "shared" nothing follows from several of them having the same length."""

    @property
    def is_robust(self) -> bool:
        """True if a whole ball around the answers lies across."""
        return self.ball >= 0

    @property
    def is_tight(self) -> bool:
        """True if robust answers are as far behind the plane as their ball asks for, to within a tolerance, and no farther."""
        return self.is_robust and self.slack == 0.0

    @property
    def is_shared(self) -> bool:
        """True if proofs may use that all robust answers reach one length far: at "perspective" if it is their distance's."""
        is_own = self.level == "perspective" and self.ball == self.number
        return self.level in LEVELS[2:] or is_own or isinstance(self.reach, Secret)

    @property
    def radius(self) -> float:
        """How many of its ball's length robust answers lie behind the plane: one of a secret reach."""
        assert self.terms is not None
        return 1.0 if self.terms.radius is None or self.terms.robustness is None else self.terms.radius

    @property
    def reach(self) -> Norm | Secret:
        """The length that robust answers lie behind the plane by: that of their ball, or a secret one."""
        assert self.terms is not None
        is_known = self.terms.radius is not None and self.terms.robustness is not None
        length = self.terms.robustness if is_known else Secret(self.terms.distance, self.terms.robustness)
        assert length is not None
        return length

    @property
    def is_measured(self) -> bool:
        """True if its facts have a length in them."""
        return self.number >= 0

    @property
    def is_optimal(self) -> bool:
        """True if the answers are the nearest there are, to within a tolerance."""
        return self.is_measured and self.slack == 0.0 and not self.is_loose

    @property
    def is_linear(self) -> bool:
        """True for labels and merely valid answers: facts about points, none an equality."""
        return not (self.is_measured or self.is_exact or self.is_off_plane)

    @property
    def is_off_plane(self) -> bool:
        """True if x is off the plane unless it is its own answer, although no length says so: the answer is near it, somehow."""
        return not self.is_measured and self.terms is not None and bool(self.slack) and not self.is_confined

    @property
    def is_listed(self) -> bool:
        """True if how near an answer is can be said by few linear facts: its distance has few corners, and no tolerance."""
        return self.is_off_plane and self.terms is not None and self.terms.distance is not None

    @property
    def has_bare_sides(self) -> bool:
        """True if all that is left of some side is the label: its answer is as good as its question, or robust."""
        return self.is_measured and bool((self.is_loose | self.is_robust | (self.lengths[0] <= self.tolerance)).any())

    def of(self, which: IntArray) -> Block:
        """Some of its rows."""
        answers = None if self.answers is None else self.answers[which]
        return replace(self, rows=self.rows[which], points=self.points[which], sides=self.sides[which], answers=answers)

    @property
    def norm(self) -> Norm:
        assert self.terms is not None
        assert self.terms.distance is not None
        return self.terms.distance

    @property
    def slack(self) -> float | None:
        return None if self.terms is None else self.terms.slack

    @property
    def is_rounding(self) -> bool:
        """True if the tolerance is that of float64."""
        return self.terms is not None and self.terms.tolerance is None

    @cached_property
    def step(self) -> FloatArray:
        """w = x' − x."""
        assert self.answers is not None
        return np.asarray(self.answers - self.points)

    @cached_property
    def lengths(self) -> tuple[FloatArray, FloatArray]:
        """(low, high) with low ≤ ‖w‖ ≤ high, the rounding of w itself included."""
        p = self.points.shape[1]
        size, off = np.asarray(self.norm(self.step)), length_error(self.norm, p)
        own = UNIT_ROUNDOFF * (np.abs(self.step) @ self.norm.units(p))
        return np.maximum(size * (1 - off) - own, 0.0), size * (1 + off) + own

    @cached_property
    def tolerance(self) -> FloatArray:
        """At least τ."""
        assert self.terms is not None
        assert self.answers is not None
        if self.terms.tolerance is not None:
            return np.full(len(self.rows), self.terms.tolerance)
        if self.terms.slack is None:
            return np.zeros(len(self.rows))
        off, rounding = length_error(self.norm, self.points.shape[1]), self.norm.answer_rounding
        if self.is_robust and self.terms.robustness is not None:  # the reach of its ball was computed, too
            rounding = max(rounding, self.terms.robustness.answer_rounding)
        far = np.asarray(self.norm(self.points)) + np.asarray(self.norm(self.answers))
        return np.asarray(rounding * far * (1 + off))

    def steepest(self, k: int) -> Steepest:
        """The k-th row as one step of a smooth distance."""
        assert self.answers is not None
        return Steepest(
            int(self.rows[k]), int(self.sides[k]), self.points[k], self.answers[k], self.step[k],
            float(self.lengths[1][k]), float(steepness(self)[k]), float(self.tolerance[k]), self.norm,
        )  # fmt: skip


def touching(block: Block, k: int) -> Steepest:
    """The k-th row, robust under its own distance, as a plain step to where its ball touches the plane: s = t, so that the ball
    touches it along the step, but for what the tolerance leaves of the direction."""
    step, radius = block.steepest(k), block.radius
    share, units = radius / step.length, block.norm.units(block.points.shape[1])
    size = float(units @ (np.abs(step.explanation) + share * np.abs(step.step)))
    off = (
        step.tolerance + radius * (1 - step.steepness / step.length) * (1 + 1e-9) + 64 * UNIT_ROUNDOFF * (size + radius)
    )
    return replace(step, explanation=step.explanation - share * step.step, tolerance=off)


def no_rows(p: int) -> Block:
    """Labels of no rows at all."""
    none = np.zeros(0, dtype=np.int64)
    return Block(none, np.zeros((0, p)), none)


def exponent_and_weights(norm: Norm, p: int) -> tuple[float, FloatArray] | None:
    """(q, d) of ‖d∘v‖_q; None for any other norm."""
    if isinstance(norm, Weighted):
        # Weights of weights are products that float64 rounds, and ties have no tolerance.
        return (norm.norm.q, norm.weights) if isinstance(norm.norm, Lp) else None
    return (norm.q, np.ones(p)) if isinstance(norm, Lp) else None


def blocks_of(
    log: QueryLog,
    labels: ArrayLike,
    tolerance: float | None,
    answers: Mapping[int, Answer] | None = None,
    rows: IntArray | None = None,
    numbers: dict[Norm | Secret, int] | None = None,
) -> list[Block]:
    """The log by terms, labels first.

    `answers` are its rows in exact numbers, `rows` (ascending) those that are read; `numbers` are the lengths that have one: what
    else is found is added.
    """
    if log.dimension is None:
        return []
    exact = answers_of(log, tolerance) if answers is None else answers
    every = np.arange(len(log)) if rows is None else rows
    sides, numbers = np.asarray(labels), {} if numbers is None else numbers
    used = np.zeros(len(every), dtype=bool)
    blocks: list[Block] = []

    def read(own: IntArray, terms: Mechanism | None = None, *said: Any, **options: Any) -> None:
        explanations = None
        if terms is not None:
            used[np.searchsorted(every, own)] = True
            explanations = _taken(log.explanations, own)
        side = np.asarray(_taken(sides, own), dtype=np.int64)
        blocks.append(Block(own, _taken(log.points, own), side, terms, explanations, *said, **options))

    asked = every[_taken(log.status, every) == Status.ASKED]
    declared = _taken(log.mechanism_ids, asked)
    for number, mechanism in enumerate(log.mechanisms):
        given = asked[declared == number]
        if not len(given):
            continue
        terms = mechanism if tolerance is None else replace(mechanism, tolerance=tolerance)
        if not terms.is_plain and terms.domain is None:
            sided = given[_taken(sides, given) != 0]
            if not len(sided) or terms.distance is None:
                continue
            at = numbers.setdefault(terms.distance, len(numbers))
            read(sided, terms, at, is_loose=terms.slack is None, ball=0)
            ball = numbers.setdefault(blocks[-1].reach, len(numbers))
            blocks[-1] = replace(blocks[-1], ball=ball)
            continue
        for kind in _kinds(terms, given, sides, exact):
            at = numbers.setdefault(terms.distance, len(numbers)) if kind.is_measured and terms.distance else -1
            read(kind.rows, terms, at, kind.is_exact, kind.is_loose, kind.is_on_plane, terms.domain is not None)
    labelled = every[~used & (_taken(sides, every) != 0)]
    if len(labelled):
        read(labelled)
        blocks.insert(0, blocks.pop())
    return blocks


def _taken(values: NDArray[Any], rows: IntArray) -> NDArray[Any]:
    """Some rows of an array, ascending: a view of it where they follow each other."""
    is_run = len(rows) and rows[-1] - rows[0] == len(rows) - 1
    return np.asarray(values[rows[0] : rows[-1] + 1] if is_run else values[rows])


@dataclass(frozen=True)
class _Kind:
    rows: IntArray
    is_measured: bool = False
    is_exact: bool = False
    is_loose: bool = False
    is_on_plane: bool = True


def _kinds(terms: Mechanism, rows: IntArray, sides: IntArray, answers: Mapping[int, Answer]) -> Iterator[_Kind]:
    """How the explanations of some rows are read; those that are in none are used for their labels alone."""
    sided = rows[sides[rows] != 0]
    if terms.domain is not None:
        used = {int(row): answers[int(row)] for row in rows if answers[int(row)].is_used}
        for is_exact in (True, False):
            own = [row for row, answer in used.items() if (answer.allowed == 0) == is_exact]
            planes = np.array([row for row in own if used[row].is_on_plane], dtype=np.int64)
            others = np.array([row for row in own if sides[row] and not used[row].is_on_plane], dtype=np.int64)
            for which, on_plane in ((planes, True), (others, False)):
                if len(which):
                    yield _Kind(which, not is_exact, is_exact and on_plane, not is_exact, on_plane)
        return
    is_valid = terms.slack is None or (terms.distance is None and terms.slack > 0)
    without = terms.tolerance == 0.0 or (terms.tolerance is None and terms.slack is None)
    if terms.distance is None and not without:
        return
    if is_valid:
        if len(sided):
            yield _Kind(sided, is_measured=not without, is_loose=not without)
        return
    if terms.slack == 0.0 and without and (terms.distance is None or _is_told(terms.distance, rows, answers)):
        yield _Kind(rows, is_exact=True)
        return
    if len(sided):
        is_listed = without and terms.distance is not None and _has_few_corners(terms.distance, sided, answers)
        yield _Kind(sided, is_measured=not is_listed)
    free = rows[sides[rows] == 0]
    if len(free) and terms.slack == 0.0:
        yield _Kind(free, is_measured=True, is_loose=True)


def _has_few_corners(norm: Norm, rows: IntArray, answers: Mapping[int, Answer]) -> bool:
    """True if the corners of the unit ball can be listed for every row."""
    p = len(answers[int(rows[0])].point)
    shape = exponent_and_weights(norm, p)
    count = {1.0: 2 * p, np.inf: 2 ** min(p, 20)}.get(shape[0], FEW_FORMS + 1) if shape is not None else FEW_FORMS + 1
    return count * len(rows) <= FEW_FORMS


def _is_told(norm: Norm, rows: IntArray, answers: Mapping[int, Answer]) -> bool:
    """True if all that an exact step under this distance says can be said in rational numbers, and in few."""
    if is_euclidean(norm):
        return True
    shape = exponent_and_weights(norm, len(answers[int(rows[0])].point))
    return shape is not None and shape[0] in (1.0, np.inf)


def steepness(block: Block) -> FloatArray:
    """The c in −y·a·w ≥ c·t; ≤ 0: nothing is promised."""
    low, tau = block.lengths[0], block.tolerance
    if is_euclidean(block.norm):
        return np.asarray(np.sqrt(np.maximum(low - tau, 0.0) * (low + tau)) * (1 - 8 * UNIT_ROUNDOFF))
    return np.asarray((low - 2 * tau) * np.where(low > 2 * tau, 1 - 4 * UNIT_ROUNDOFF, 1.0))


def eased(block: Block, is_blind: bool) -> Block:
    """The same rows under wider terms: a little slack more; where floats see nothing, tolerance, too."""
    terms = block.terms
    if not block.is_measured or block.is_loose or terms is None or terms.slack is None:
        return block
    if 0 < terms.slack < EASED_SLACK:
        return replace(block, terms=replace(terms, slack=EASED_SLACK))
    far = block.lengths[1] + np.asarray(block.norm(block.points))
    width = EASED_TOLERANCE * float(np.median(far))
    if is_blind and float(block.tolerance.max()) < width:
        return replace(block, terms=replace(terms, tolerance=width))
    return block
