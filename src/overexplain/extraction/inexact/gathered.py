"""A few explained questions around the start, from both sides of the plane: the raw material of the statistical estimators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput, NoExplanation
from overexplain.extraction.job import Job
from overexplain.geometry.arrays import FloatArray, IntArray, as_point
from overexplain.geometry.hyperplane import NO, YES
from overexplain.log.querylog import QueryLog

PARALLEL = 0.98
"""Displacements with a larger |cosine| than this count as parallel: they show on which side their questions lie."""

ALIGNED = 0.5
"""Without labels, a displacement shows its side if its |cosine| with the main axis of all of them is larger than this."""

TRUSTED = 6
"""Once so many labels in a row were what the displacements showed, aligned displacements are believed without a label."""

SILENT = 20
"""So many questions without an answer in a row, none before them: the service explains nothing here."""

ONE_SIDED = 6
"""So many unanswered questions on the rarer side in a row: the service explains one side only."""

LOPSIDED = 2
"""Once one side has this many times as many answers as the other, questions are moved across."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """Explained questions and what came back.

    questions, answers  rows
    sides      label of each question: +1, −1, or 0 where it is not known. If not `oriented`, the first question counts as −1
    oriented   True if at least one label was asked, so that +1 is Yes
    failures   how often the service gave no answer, by spelling
    """

    questions: FloatArray
    answers: FloatArray
    sides: IntArray
    oriented: bool
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def is_parallel(self) -> bool:
        """True if all displacements lie along one line: as under any fixed norm, up to noise."""
        steps = _unit_rows(self.answers - self.questions)
        return bool((np.abs(steps @ _main_axis(steps)) >= PARALLEL).all())


def gather(job: Job, n: int, spread: ArrayLike | None = None) -> Gathered:
    """n explained questions (fewer if the service often has no answer) at start + spread·N(0, I), inside job.where.

    `spread` is one number or one per feature; by default a quarter of the sides of the box, or twice the length of the first
    displacement, so that both sides are met. Where one side is rare, questions are moved across along an earlier displacement.
    A label is asked only where displacements are not parallel, and once for the first question.
    """
    if n < 1:
        raise InvalidInput(f"at least one answer must be gathered, got n={n}")
    found = _Growing(job)
    x = job.start
    tries = 0
    while len(found.answers) < n and tries < 3 * n + SILENT:
        tries += 1
        across = bool(found.answers) and found.wants_other_side
        if tries > 1:
            x = found.draw(spread, tries, across)
        reply = job.session.attempt(x)
        if reply.answer is not None:
            found.add(x, reply.answer)
            continue
        found.failures[reply.failure or "None"] += 1
        found.misses_across += across
        if not found.answers and tries >= SILENT:
            break
    if not found.answers:
        said = ", ".join(f"{name} ({count}×)" for name, count in found.failures.most_common())
        raise NoExplanation(
            f"the service explained none of {tries} questions at several distances from the start; it said: {said}. "
            "Give start=, a point that it explains"
        )
    return found.result()


def read_log(log: QueryLog) -> Gathered | None:
    """The explained questions of a log, their sides by its labels, else by their displacements; None if nothing moved."""
    rows = log.explained
    rows = rows[(log.explanations[rows] != log.points[rows]).any(axis=1)]
    if not len(rows):
        return None
    questions, answers = log.points[rows], log.explanations[rows]
    labelled = np.flatnonzero(log.labels)
    told = {log.points[i].tobytes(): int(log.labels[i]) for i in labelled}
    labels = np.array([told.get(x.tobytes(), 0) for x in questions], dtype=np.int64)
    sides = np.where(labels != 0, labels, _sides_shown(answers - questions, labels))
    return Gathered(questions, answers, sides, oriented=bool(labels.any()))


class _Growing:
    """The answers so far, and where to ask next."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.questions: list[FloatArray] = []
        self.answers: list[FloatArray] = []
        self.sides: list[int] = []
        self.failures: Counter[str] = Counter()
        self.misses_across = 0
        self.first_side = 0
        self._towards_yes: FloatArray = np.zeros(len(job.start))
        self._agreed = 0  # so many labels in a row were those that the displacement showed
        self._counts = Counter({YES: 0, NO: 0})
        self._longest: dict[int, FloatArray] = {}
        axes = np.eye(len(job.start))
        room = [job.where.room(job.start, axis) + job.where.room(job.start, -axis) for axis in axes]
        self._room = np.minimum(room, np.finfo(np.float64).max)

    def add(self, x: FloatArray, z: FloatArray) -> None:
        """Keep an answer, and find out on which side its question lies."""
        self.questions.append(x)
        self.answers.append(z)
        session = self.job.session
        if len(self.answers) == 1:
            self.first_side = session.label(x) if session.can_label else NO
            self._note(self.first_side, z - x)
            return
        step = _unit_rows((z - x)[None])[0]
        cosine = float(_unit_rows((self.answers[0] - self.questions[0])[None])[0] @ step)
        along = float(_unit_rows(self._towards_yes[None])[0] @ step)
        if abs(cosine) >= PARALLEL:
            side = self.first_side if cosine > 0 else -self.first_side
        elif not session.can_label:
            side = 0
        elif self._agreed >= TRUSTED and abs(along) >= ALIGNED:
            side = NO if along > 0 else YES
        else:
            side = session.label(x)
            self._agreed = self._agreed + 1 if along * side < 0 and abs(along) >= ALIGNED else 0
        if side == self.rarer:
            self.misses_across = 0
        self._note(side, z - x)

    def _note(self, side: int, step: FloatArray) -> None:
        self.sides.append(side)
        self._counts[side] += 1
        self._towards_yes = self._towards_yes - side * _unit_rows(step[None])[0]
        if side not in self._longest or np.linalg.norm(step) > np.linalg.norm(self._longest[side]):
            self._longest[side] = step

    @property
    def rarer(self) -> int:
        """The side with fewer answers."""
        return YES if self._counts[YES] < self._counts[NO] else NO

    @property
    def wants_other_side(self) -> bool:
        """True if one side has few answers and is not known to have none."""
        few, many = sorted((self._counts[YES], self._counts[NO]))
        return many >= LOPSIDED * max(1, few) and self.misses_across < ONE_SIDED

    def draw(self, spread: ArrayLike | None, tries: int, across: bool) -> FloatArray:
        """The next question: at random, or at random and moved across along a displacement of the side that is met too often."""
        job = self.job
        p = len(job.start)
        width = self._spread(tries) if spread is None else np.broadcast_to(as_point(np.atleast_1d(spread)), (p,))
        x = job.start + width * job.rng.normal(size=p)
        if across:
            x = x + job.rng.uniform(1.2, 2.0) * self._longest[-self.rarer]
        return job.where.clip(x)

    def _spread(self, tries: int) -> FloatArray:
        start = self.job.start
        if self.answers:
            step = float(np.linalg.norm(self.answers[0] - self.questions[0]))
            size = max(2 * step, 0.1 * float(np.sqrt(np.mean(start**2))))
        else:  # nothing answered yet: look nearer and farther
            size = max(1.0, float(np.abs(start).max())) * 4.0 ** ((tries % 6) - 2)
        return np.asarray(np.minimum(self._room / 4, size))

    def result(self) -> Gathered:
        """All of it as arrays; sides that no label told are read off the main axis of the displacements."""
        questions, answers = np.array(self.questions), np.array(self.answers)
        sides = np.array(self.sides, dtype=np.int64)
        can_label = self.job.session.can_label
        if not can_label and (sides == 0).any():
            sides = _sides_shown(answers - questions)
        return Gathered(questions, answers, sides, can_label, self.failures)


def _sides_shown(steps: FloatArray, labels: IntArray | None = None) -> IntArray:
    """The sides that displacements show along their main axis, 0 where they point elsewhere; without labels the first is No.

    Long displacements count most, for the axis and for which way along it leads to Yes: noise hides in short ones.
    """
    steps = steps / (float(np.abs(steps).max()) or 1.0)
    axis = _main_axis(steps)
    along = steps @ axis
    towards_yes = along[0] if labels is None or not labels.any() else -(labels @ along)
    cosines = (_unit_rows(steps) @ axis) * (1 if towards_yes >= 0 else -1)
    return np.where(np.abs(cosines) >= ALIGNED, np.where(cosines > 0, NO, YES), 0)


def _unit_rows(steps: FloatArray) -> FloatArray:
    """Every row at length 1; rows of zeros stay."""
    largest = np.abs(steps).max(axis=1, keepdims=True)
    scaled = steps / np.where(largest > 0, largest, 1.0)
    return np.asarray(scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 0.5))


def _main_axis(steps: FloatArray) -> FloatArray:
    """The direction that most of the rows point along, forwards or backwards."""
    return np.asarray(np.linalg.svd(steps, full_matrices=False)[2][0])
