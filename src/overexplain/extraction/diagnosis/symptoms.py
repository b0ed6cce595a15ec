"""What the answers of an interview have in common: grids, bounds, rows, directions. Arrays in, findings out; nothing is asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overexplain.extraction.diagnosis.interview import Exchange
from overexplain.extraction.precision import visible_grid
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.norm import FLOAT64_ANSWER

PARALLEL = 1e-6
"""Unit steps this close to each other are taken to be one direction."""

WOBBLE = 1 / 300
"""Steps of an iterative service that deviate from one line by no more than this still follow it."""

TELLING = 20.0
"""A step shows a direction if it is so many times as long as what rounding can add to it."""

_WHOLE = 6
"""So many different whole numbers, from questions that had none, make a grid of whole numbers."""


@dataclass(frozen=True, eq=False)
class Grid:
    """The grid that answers lie on: its name, half of its largest step, and a step for every entry of every answer."""

    name: str | None
    half: float
    steps: FloatArray


@dataclass(frozen=True, eq=False)
class Steps:
    """Answered questions as rows, and how well every entry of an answer is known."""

    questions: FloatArray
    answers: FloatArray
    grid: Grid
    low: FloatArray
    high: FloatArray
    published: tuple[FloatArray, FloatArray]
    """The limits of the service's domain, whether answers reached them or not."""
    usable: BoolArray
    """Rows whose direction means something: no feature that takes only a few values was changed."""
    wobble: float = 0.0
    """By how much, relative to its length, a service may let a step deviate from its own rule."""

    @cached_property
    def moves(self) -> FloatArray:
        """From the questions to the answers."""
        return np.asarray(self.answers - self.questions)

    @cached_property
    def lengths(self) -> FloatArray:
        """The 2-norms of the moves."""
        return np.asarray(np.linalg.norm(self.moves, axis=1))

    @cached_property
    def noise(self) -> FloatArray:
        """The standard deviation of what rounding does to every entry."""
        rounding = FLOAT64_ANSWER / 16 * (np.abs(self.questions) + np.abs(self.answers))
        wobble = self.wobble / np.sqrt(self.moves.shape[1]) * self.lengths[:, None]
        return np.asarray(rounding + self.grid.steps / np.sqrt(12) + wobble)

    @cached_property
    def moved(self) -> BoolArray:
        """Where an entry changed by more than rounding."""
        rounding = FLOAT64_ANSWER / 16 * (np.abs(self.questions) + np.abs(self.answers))
        return np.asarray(np.abs(self.moves) > rounding + self.grid.steps * (0.5 + 1e-6))

    @cached_property
    def blur(self) -> FloatArray:
        """How far, by rounding, each unit step may point elsewhere."""
        with np.errstate(divide="ignore", invalid="ignore"):
            blur = np.linalg.norm(self.noise, axis=1) / self.lengths
        return np.where(self.lengths > 0, blur, np.inf)

    @cached_property
    def clipped(self) -> BoolArray:
        """Answers with an entry at a bound: moved there, or held there."""
        low, high = np.maximum(self.low, self.published[0]), np.minimum(self.high, self.published[1])
        return np.asarray(((self.answers <= low) | (self.answers >= high)).any(axis=1))

    @cached_property
    def telling(self) -> IntArray:
        """The rows whose direction can be read: long against rounding, and not cut off."""
        return np.flatnonzero((self.blur * TELLING < 1) & ~self.clipped & self.usable)

    @cached_property
    def units(self) -> FloatArray:
        """The moves, scaled to length 1."""
        return np.asarray(self.moves / np.where(self.lengths > 0, self.lengths, 1.0)[:, None])


def read_grid(questions: FloatArray, answers: FloatArray, free: BoolArray) -> Grid:
    """The grid of the entries that moved and may take any number."""
    changed = (answers != questions) & free
    values = answers[changed]
    step, name = visible_grid(values)
    if name is None:
        whole = len(np.unique(values)) >= _WHOLE and bool((values == np.round(values)).all())
        if not whole or np.abs(values).max() >= 2.0**40 or (questions[changed] == np.round(questions[changed])).all():
            return Grid(None, 0.0, np.zeros_like(answers))
        step, name = np.ones(len(values)), "whole numbers"
    steps = np.zeros_like(answers)
    steps[changed] = step
    # An entry that was on the grid before may have been rounded back to where it was.
    if name == "float32":
        with np.errstate(over="ignore", under="ignore"):
            single = questions.astype(np.float32)
        back = ~changed & free & (single == questions)
        steps[back] = np.spacing(np.abs(single))[back]
    else:
        size = float(step[0])
        back = ~changed & free & (np.round(questions, max(0, round(-np.log10(size)))) == questions)
        steps[back] = size
    return Grid(name, float(steps.max()) / 2, steps)


def read_bounds(
    questions: FloatArray, answers: FloatArray, grid: Grid, free: BoolArray, published: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Where answers are cut off: a published limit that one reached, or an extreme that several reached exactly."""
    p = answers.shape[1]
    low, high = np.full(p, -np.inf), np.full(p, np.inf)
    enough = 2 if grid.name is None else 4  # on a grid some answers meet by chance
    apart = _far_apart(answers)  # two questions on one line have one answer, which is no bound
    questions, answers = questions[apart], answers[apart]
    rounding = FLOAT64_ANSWER * (np.abs(questions) + np.abs(answers))
    moved = np.abs(answers - questions) > rounding + grid.steps[apart] * (0.5 + 1e-6)
    for i in np.flatnonzero(free):
        values, before = answers[:, i], questions[:, i]
        went = values != before
        for limits, edge, extreme in ((low, published[0][i], values.min()), (high, published[1][i], values.max())):
            if np.isfinite(edge) and (went & (values == edge)).any():
                limits[i] = edge
                continue
            # Where a bound stops one feature, others go on. A plane across one feature alone stops every answer of a side at
            # the same number, and no other feature need move: then none stops between the two.
            there = went & (values == extreme) & (moved.sum(axis=1) > moved[:, i])
            between = (values > values.min() + rounding[:, i]) & (values < values.max() - rounding[:, i])
            elsewhere = (went & between).sum()
            crowd = went & ~there & (np.abs(values - extreme) <= 6 * grid.half)
            if _separate(before[there], 40 * grid.half) >= enough and elsewhere >= 1 and not crowd.any():
                limits[i] = extreme
    return low, high


def _separate(values: FloatArray, gap: float) -> int:
    """How many of the values lie more than `gap` from each other, counted from the least."""
    count, last = 0, -np.inf
    for value in np.sort(values):
        if value - last > gap:
            count, last = count + 1, value
    return count


def _far_apart(answers: FloatArray) -> IntArray:
    """One row for every answer that is not, up to rounding, another one."""
    size = np.abs(answers).max(initial=0.0)
    kept: list[int] = []
    for k, answer in enumerate(answers):
        if all(np.abs(answer - answers[j]).max() > 1e-6 * size for j in kept):
            kept.append(k)
    return np.array(kept, dtype=np.int64)


def repeats_rows(exchanges: list[Exchange], grid: Grid, published: tuple[FloatArray, FloatArray]) -> bool:
    """True if different questions got exactly the same point, although they do not lie on one line with it.

    Points at a published bound do not count: there a plane and a bound may leave no choice.
    """
    answered = [e for e in exchanges if e.answer is not None and _inside(e.answer, published)]
    if not answered or len(answered[0].question) < 2:
        return False
    coarse = 4 * grid.half * np.sqrt(len(answered[0].question))
    groups: dict[bytes, list[Exchange]] = {}
    for exchange in answered:
        groups.setdefault(np.asarray(exchange.answer).tobytes(), []).append(exchange)
    for group in groups.values():
        longest = max(group, key=lambda e: float(np.linalg.norm(e.step)))
        length = float(np.linalg.norm(longest.step))
        for other in group:
            apart = other.question - longest.question
            aside = float(np.linalg.norm(apart - (longest.step @ apart) * longest.step / length**2))
            if aside > coarse + 1e-6 * (length + float(np.abs(longest.question).max())):
                return True
    return False


def _inside(x: FloatArray, limits: tuple[FloatArray, FloatArray]) -> bool:
    return bool(((x > limits[0]) & (x < limits[1])).all())


def read_lines(steps: Steps) -> list[IntArray]:
    """The telling rows, grouped by the line they move along; the largest group first."""
    groups: list[list[int]] = []
    order = steps.telling[np.argsort(steps.blur[steps.telling], kind="stable")]
    for row in order:
        for group in groups:
            apart = min(float(np.linalg.norm(steps.units[row] - sign * steps.units[group[0]])) for sign in (1.0, -1.0))
            if apart <= PARALLEL + 4 * float(steps.blur[row] + steps.blur[group[0]]):
                group.append(int(row))
                break
        else:
            groups.append([int(row)])
    return sorted((np.array(group, dtype=np.int64) for group in groups), key=len, reverse=True)


def same_answers(exchanges: list[Exchange]) -> bool | None:
    """True if the repeated question always got the same answer; None if it was not answered twice."""
    first = next((e for e in exchanges if e.answer is not None), None)
    if first is None or first.answer is None:
        return None
    again = [e.answer for e in exchanges if e.answer is not None and np.array_equal(e.question, first.question)]
    if len(again) < 2:
        return None
    rounding = FLOAT64_ANSWER * (np.abs(first.question) + np.abs(first.answer))
    return all(bool((np.abs(other - first.answer) <= rounding).all()) for other in again)
