"""An interview as arrays: which answers count, their grid, bounds and directions, and on which side each question lies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from overexplain.extraction.diagnosis.effective_norm import PlanePoints, spanned_by
from overexplain.extraction.diagnosis.families import ENOUGH
from overexplain.extraction.diagnosis.interview import Exchange, Interview
from overexplain.extraction.diagnosis.margins import Gap, classify_gaps
from overexplain.extraction.diagnosis.marks import Marks
from overexplain.extraction.diagnosis.oracle_report import Direction
from overexplain.extraction.diagnosis.symptoms import WOBBLE, Steps, read_bounds, read_grid, read_lines, repeats_rows
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import FLOAT64_ANSWER


class Reading:
    """The answers that say something, read again whenever some turn out not to.

    rows    the exchanges that count: no repetitions, no points on the plane asked again, none that is known not to flip
    grid, steps, lines, repeated    what `symptoms` sees in them
    sides   the label of every row's question; 0 where it is not known
    """

    def __init__(self, talk: Interview) -> None:
        self.talk, self.place, self.marks = talk, talk.place, Marks(talk)
        self.all_rows = _distinct(talk.answered)
        self.idle: set[int] = set()  # rows whose answers do not flip
        self._read()

    def _read(self) -> None:
        self.rows = [e for k, e in enumerate(self.all_rows) if k not in self.idle]
        p, free, domain = self.place.dimension, self.place.free, self.place.domain
        questions = np.array([e.question for e in self.rows]).reshape(len(self.rows), p)
        answers = np.array([e.answer for e in self.rows]).reshape(len(self.rows), p)
        self.grid = read_grid(questions, answers, free)
        low, high = nowhere = np.full(p, -np.inf), np.full(p, np.inf)
        published = nowhere
        if domain is not None:
            published = np.where(free, domain.low, -np.inf), np.where(free, domain.high, np.inf)
        self.repeated = bool(free.any()) and repeats_rows(self.rows, self.grid, published)
        if self.rows and not self.repeated:
            low, high = read_bounds(questions, answers, self.grid, free, published)
        usable = np.array([not self.jumped(e) for e in self.rows], dtype=bool)
        self.steps = Steps(questions, answers, self.grid, low, high, published, usable)
        self.lines = read_lines(self.steps) if self.rows else []
        if len(self.lines) > 1 and classify_gaps(self.link_gaps(self.idle)) != "zero":
            # Iterative services keep to a line only roughly; exact ones do so to rounding.
            roughly = replace(self.steps, wobble=WOBBLE)
            lines = read_lines(roughly)
            if len(lines) == 1 and len(lines[0]) >= ENOUGH:
                self.steps, self.lines = roughly, lines
        self.sides = self._sides()

    def _sides(self) -> FloatArray:
        """The label of every row's question: read off the direction if there is one, else asked."""
        if len(self.lines) == 1 and len(self.lines[0]) >= ENOUGH:
            first = int(self.lines[0][0])
            signs = np.sign(self.steps.moves @ self.steps.units[first])
            label = self.marks.of(self.rows[first].question)
            return np.asarray(signs * (1 if label is None else label))
        labels = [self.marks.of(e.question) for e in self.rows]
        return np.array([0.0 if label is None else float(label) for label in labels])

    @property
    def reach(self) -> float:
        """How far, by rounding alone, an answer may lie from the plane (2-norm along a step)."""
        size = float(np.abs(self.steps.answers).max()) if self.rows else 0.0
        return 5 * math.sqrt(self.place.dimension) * (2 * self.grid.half / math.sqrt(12) + FLOAT64_ANSWER * size)

    def jumped(self, exchange: Exchange) -> bool:
        """True if an answer changed a feature that takes only a few values: it need not lie on the plane then."""
        return bool((exchange.step != 0)[~self.place.free].any())

    def drop_idle(self, limit: int) -> None:
        """Leave out answers that do not flip: `limit` of them are checked, and all once one of them does not."""
        checked = 0
        for k, exchange in enumerate(self.all_rows):
            if checked >= limit:
                break
            if np.linalg.norm(exchange.step) <= 4 * self.reach:
                continue  # from the plane to the plane: nothing to flip
            flips = self.marks.flips(exchange, self.reach)
            checked += flips is not None
            if flips is False:
                self.idle.add(k)
                limit = len(self.all_rows)
        if self.idle:
            self._read()

    def direction(self) -> Direction | None:
        """What the steps have in common; None if too few show a direction."""
        rows = self.steps.telling
        if len(rows) < ENOUGH:
            return None
        if len(self.lines) == 1:
            return "constant"
        if len(self.lines) == 2:
            sides = [set(self.sides[line].tolist()) for line in self.lines]
            if all(len(side) == 1 for side in sides) and sides[0] != sides[1] and 0.0 not in sides[0] | sides[1]:
                return "by side"
        repeated = [line for line in self.lines if len(line) >= 2]
        return "several" if len(repeated) >= 2 and 2 * len(self.lines) <= len(rows) else "varying"

    def link_gaps(self, idle: set[int]) -> list[Gap]:
        """Second steps: explanations of explanations, but not those that start or end with one of the rows `idle`."""
        gaps: list[Gap] = []
        depth: dict[int, int] = {}
        left_out = {id(self.all_rows[k]) for k in idle}
        for k, link in enumerate(self.talk.exchanges):
            if link.parent is None:
                depth[k] = 0
                continue
            parent, depth[k] = self.talk.exchanges[link.parent], depth[link.parent] + 1
            if link.is_failure or _goes_on(parent, link) or self.jumped(parent):
                continue
            if id(parent) not in left_out and id(link) not in left_out:
                size = 0.0 if link.stands_still else float(np.linalg.norm(link.step))
                gaps.append(Gap(float(np.linalg.norm(parent.step)), size, self.reach, depth[k] % 2))
        return gaps

    def is_symmetric(self) -> bool | None:
        """True if both sides' answers lie equally far behind the plane, as labels show; None if they do not show it."""
        for link in self.talk.exchanges:
            if link.parent is None or link.answer is None or link.stands_still:
                continue
            if not _goes_on(self.talk.exchanges[link.parent], link) and not self.jumped(link):
                midway = self.marks.is_midway(link, self.reach)
                if midway is not None:
                    return midway
        return None

    def points(self, sides: FloatArray) -> PlanePoints:
        """The answers as points of the plane, or, by `sides`, of two planes parallel to it."""
        nothing = np.zeros_like(self.steps.answers)
        return PlanePoints(self.steps.answers, self.steps.noise, nothing, sides, spanned_by(self.steps.questions))


def _goes_on(first: Exchange, second: Exchange) -> bool:
    """True if a second step goes on where the first one went: then the first did not cross the plane."""
    if second.stands_still or second.answer is None:
        return False
    lengths = float(np.linalg.norm(first.step) * np.linalg.norm(second.step))
    return float(first.step @ second.step) > 0.5 * lengths


def _distinct(exchanges: list[Exchange]) -> list[Exchange]:
    """The exchanges, without those that say the same as an earlier one."""
    seen: set[tuple[bytes, bytes]] = set()
    kept = []
    for exchange in exchanges:
        key = exchange.question.tobytes(), np.asarray(exchange.answer).tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(exchange)
    return kept
