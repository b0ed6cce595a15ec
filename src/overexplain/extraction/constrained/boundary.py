"""Points of the plane inside one slice of a mixed domain: the categories and whole numbers stay, the continuous features move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from overexplain.errors import BrokenPromise, InvalidInput
from overexplain.extraction.box import Box
from overexplain.extraction.constrained.bracket import Bracket, first_bracket, narrowed
from overexplain.extraction.job import Job
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.lp import l1
from overexplain.geometry.norm import FLOAT64_ANSWER, Norm

DEPTHS = (0.5, 0.8, 0.95, 1.0, 1.0)
"""How much of a slice, around its middle, points of both labels are looked for in (1: its corners)."""

INNER = 2
"""So many of these depths are tried in all slices before the rest are."""

FARTHEST = 16
"""Where a feature has no limit, the search goes so many times four times as far."""

SLICES_TRIED = 12
"""So many slices are searched for points of both labels before the plane counts as missing them all."""

CLOSER = 8.0
"""If an answer changed a category after all, the next question is so many times nearer to the plane."""

SHORTER = 0.1
"""An explanation that must not lead back to a known point is asked from so much nearer than that point is."""

TOO_NEAR = 1e-6
"""Nearer than this share of the features' widths it is not worth trying."""

ASKED_CLOSER = 3
"""So often it is asked from nearer before labels alone have to do."""


@dataclass(frozen=True, eq=False)
class BoundaryPoint:
    """A point of the plane to within `errors`, entry by entry; `bracket` is what labels found it with, None if an answer did."""

    point: FloatArray
    errors: FloatArray
    bracket: Bracket | None


class Boundary:
    """Where to look for the plane in a slice, and how to get a point on it: from an explanation, or else from labels alone."""

    def __init__(self, job: Job, domain: Domain, norm: Norm | None, exact: bool = True) -> None:
        self.job, self.domain, self.session = job, domain, job.session
        mechanism = job.session.mechanism
        declared = None if mechanism is None else mechanism.distance
        self.norm = norm or declared
        self.tolerance = 0.0 if mechanism is None or mechanism.tolerance is None else mechanism.tolerance
        self.low, self.high = _limits(job, domain)
        movable = np.zeros(domain.dimension, dtype=bool)
        movable[domain.continuous] = self.low[domain.continuous] < self.high[domain.continuous]
        self.movable: BoolArray = movable
        self.widths = np.where(np.isfinite(self.high - self.low), self.high - self.low, np.inf)
        self.explains = exact and job.session.can_explain  # inexact answers are no points of the plane
        self._refused = {NO: 0, YES: 0}
        self._answered = {NO: 0, YES: 0}

    @property
    def continuous(self) -> IntArray:
        """The continuous features that questions can vary."""
        return np.flatnonzero(self.movable)

    @property
    def cheapest(self) -> float:
        """No change of a category or a whole number costs less (in the declared distance; in ℓ1 if there is none)."""
        discrete = np.setdiff1d(np.arange(self.domain.dimension), self.domain.continuous)
        units = (self.norm or l1).units(self.domain.dimension)
        return float(units[discrete].min()) if len(discrete) else np.inf

    def uphill(self, normal: FloatArray) -> FloatArray:
        """The way along which the score grows most quickly within the limits: every feature by its width."""
        return np.asarray(np.sign(normal) * np.where(self.movable, self.widths, 0.0))

    def first_bracket(self) -> Bracket | None:
        """Points of both labels in one slice, if possible deep inside it: first the start's, then others drawn at random."""
        drawn = [self.job.start, *self.domain.sample(self.job.rng, SLICES_TRIED)]
        starts = [x for x in map(self.inside, drawn) if self.domain.contains(x) and self.job.where.contains(x)]
        closed = bool(np.isfinite(self.widths[self.movable]).all())
        # In an open slice any plane is within reach, however far; in a closed one another slice may have it nearer the middle.
        rounds = [DEPTHS[:INNER], DEPTHS[INNER:]] if closed else [DEPTHS + (1.0,) * (FARTHEST - len(DEPTHS))]
        for depths in rounds:
            for x in starts:
                bracket = first_bracket(self.session, self._points_of_slice(x, depths))
                if bracket is not None:
                    # An open side is as wide, from now on, as the search had to go.
                    gap = 4 * max(float(np.abs(bracket.yes - bracket.no).max()), 1e-3)
                    self.widths = np.where(np.isfinite(self.widths), self.widths, gap)
                    return bracket
        return None

    def inside(self, x: FloatArray) -> FloatArray:
        """x with every number, whole or not, brought into its limits; categories stay."""
        y, free, whole = x.copy(), self.domain.continuous, list(self.domain.integers)
        y[free] = np.clip(x[free], self.low[free], self.high[free])
        y[whole] = np.clip(np.round(x[whole]), np.ceil(self.low[whole]), np.floor(self.high[whole]))
        return y

    def _points_of_slice(self, x: FloatArray, depths: tuple[float, ...]) -> list[FloatArray]:
        """x, then opposite pairs around the slice's middle; where it is open, each pair four times as far out."""
        closed = np.isfinite(self.low) & np.isfinite(self.high)
        with np.errstate(invalid="ignore"):
            middle = np.where(closed, self.low + (self.high - self.low) / 2, x)
            half = np.where(closed, (self.high - self.low) / 2, np.inf)
        points = [x]
        for number, depth in enumerate(depths):
            spread = np.where(np.isfinite(half), depth * half, (np.abs(middle) + 1.0) * 4.0**number)
            draw = self.job.rng.uniform(-1.0, 1.0, len(x)) if depth < 1 else self.job.rng.choice([-1.0, 1.0], len(x))
            pair = (middle + sign * spread * draw for sign in (1.0, -1.0))
            points += [np.where(self.movable, np.clip(y, self.low, self.high), x) for y in pair]
        return points

    def anywhere(self, x: FloatArray) -> FloatArray:
        """A random point of x's slice (where it is open, within a few widths of x)."""
        low, high = (
            np.where(np.isfinite(side), side, x + sign * self.widths) for side, sign in ((self.low, -1), (self.high, 1))
        )
        return np.where(self.movable, self.job.rng.uniform(np.minimum(low, high), np.maximum(low, high)), x)

    def along(self, x: FloatArray, direction: FloatArray) -> Bracket | None:
        """A bracket on the way from x along `direction` (in units of widths), features stopping at their limits."""
        own, last = self.session.label(x), x
        for y in self.way(x, -own * direction):
            if self.session.label(y) != own:
                return Bracket.of(last, own, y)
            last = y
        return None

    def way(self, x: FloatArray, direction: FloatArray) -> Iterator[FloatArray]:
        """Points farther and farther along `direction`, features stopping at their limits, until none can go on."""
        last = x
        for power in range(-2, FARTHEST):
            y = np.where(self.movable, np.clip(x + 4.0**power * direction, self.low, self.high), x)
            if np.array_equal(y, last):
                return
            yield y
            last = y

    def point(self, bracket: Bracket, apart_from: FloatArray | None = None) -> BoundaryPoint:
        """The plane's point in the bracket's slice: an explanation from near by, else what labels alone can do.

        `apart_from`: an explanation must be asked from so near that it cannot lead back to this point.
        """
        near = 0.5 * self.cheapest
        for _ in range(ASKED_CLOSER if self.explains else 0):
            bracket = narrowed(self.session, bracket, lambda b, near=near: self._is_near(b, near, apart_from))  # type: ignore[misc]
            for label in sorted((NO, YES), key=self.refusals):
                answer = self.session.attempt(bracket.end(label)).answer
                if answer is None:
                    self._refused[label] += 1
                    continue
                if self.is_same_slice(bracket.end(label), answer):
                    self._answered[label] += 1
                    return self.answered(bracket.end(label), answer, self.length(bracket.yes - bracket.no))
                break
            else:
                break
            near /= CLOSER
        return self.from_labels(bracket, self.job.accuracy / 8)

    def _is_near(self, bracket: Bracket, near: float, apart_from: FloatArray | None) -> bool:
        gap = self.length(bracket.yes - bracket.no)
        if apart_from is None or gap > near:
            return gap <= near
        aside = self.length(bracket.middle - apart_from)
        return gap <= max(SHORTER * aside, TOO_NEAR * self.length(np.where(self.movable, self.widths, 0.0)))

    def from_labels(self, bracket: Bracket, share: float) -> BoundaryPoint:
        """The same by labels alone, to this share of the features' widths."""
        goal = share * np.where(self.movable, self.widths, 1.0)
        bracket = narrowed(self.session, bracket, lambda b: bool((np.abs(b.yes - b.no) <= goal).all()))
        return BoundaryPoint(bracket.middle, bracket.errors(), bracket)

    def answered(self, question: FloatArray, answer: FloatArray, nearest: float | None) -> BoundaryPoint:
        """The boundary point that an answer in the question's own slice is; `nearest`: a point so near has the other label."""
        if self.norm is not None and nearest is not None:
            distance = float(self.norm(answer - question))
            excess = distance - nearest - 2 * self.tolerance - 1e-9 * float(self.norm(answer))
            if excess > 0:
                row = self.session.row
                raise BrokenPromise(
                    f"the answer in row {row} is {distance:.3g} away although a point {nearest:.3g} away has the other label: it "
                    f"is not the nearest one under {self.norm!r} and need not lie on the plane. Declare another distance, or none",
                    fact="Nearest",
                    excess=excess,
                    row=row,
                )
        answer = np.where(self.movable, answer, question)
        errors = FLOAT64_ANSWER * np.maximum(np.abs(question), np.abs(answer))
        units = (self.norm or l1).units(len(answer))
        return BoundaryPoint(answer, errors + self.tolerance / units, None)

    def refusals(self, label: int) -> int:
        """How often the service had no answer for points of this label."""
        return self._refused[label]

    def answers(self, label: int) -> int:
        """How many boundary points are answers to points of this label."""
        return self._answered[label]

    def is_same_slice(self, question: FloatArray, answer: FloatArray) -> bool:
        """True if an answer moved nothing but continuous features."""
        moved = np.abs(answer - question)[~self.movable]
        return bool((moved <= 1e-9 * (1 + np.abs(question[~self.movable]))).all())

    def length(self, step: FloatArray) -> float:
        """The length of a step in the declared distance (in ℓ1 if there is none)."""
        return float((self.norm or l1)(step))


def _limits(job: Job, domain: Domain) -> tuple[FloatArray, FloatArray]:
    where = job.where
    if isinstance(where, Box):
        return np.maximum(domain.low, where.low), np.minimum(domain.high, where.high)
    raise InvalidInput("with categories or whole numbers, bounds are limits per feature (low, high), not a ball")
