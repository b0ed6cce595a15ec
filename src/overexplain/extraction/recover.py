"""`recover`: the model behind a log, if its answers pin it down. No question is asked.

Every explanation gives equations that are linear in the normal a, in one length t = ‖a‖* per distance, and in one level per plane
that answers lie on (the model's own, or, for robust answers, one parallel to it on each side). If the solutions of all of them
form a single line, that is the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import InconsistentLog, InvalidInput, NotFinite
from overexplain.extraction.precision import NEAR, entry_errors
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, Hyperplane
from overexplain.geometry.lp import linf
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER, Norm
from overexplain.geometry.on_plane import on_plane
from overexplain.log.extremes import numbers_of_a_log, refuse_extreme
from overexplain.log.querylog import QueryLog

SINGULAR = 1e-10
"""Relative size below which a singular value counts as zero: float64 answers leave about 1e-13."""

FITS = 1e-7
"""How well, relative to the numbers involved, every answer must fit the recovered model."""

_Level = tuple[Norm | None, float | None, int, Norm | None]
"""A plane that answers lie on: robustness norm, radius, side of the questions; the service's distance if the radius is secret."""

PLANE: _Level = (None, 0.0, 0, None)
ADDITIVE = 1e-9


@numbers_of_a_log()
def recover(log: QueryLog, orient: bool = True) -> Hyperplane | None:
    """The hyperplane that every answer of the log agrees on, or None if the log leaves more than one.

    Only answers whose mechanism is known and that are exact up to float64 rounding are used (slack 0, no larger tolerance); those
    chosen from a domain only if they must lie on the plane, and for no more than that. With none of them, too few of them, or no
    label off the plane that tells which side is Yes, the result is None. ``orient=False`` does without the label. A log whose
    answers fit no model raises InconsistentLog.

    >>> from overexplain.extraction.extract import extract
    >>> from overexplain.oracles.exact import ModelOracle
    >>> secret = Hyperplane([1.0, 2.0, -1.0], 0.5)
    >>> log = extract(ModelOracle(secret, Mechanism("l1"))).log
    >>> recover(log).is_equivalent(secret)
    True
    """
    if not isinstance(log, QueryLog):
        raise InvalidInput(f"recover reads a QueryLog, got {type(log).__name__}")
    refuse_extreme(log)
    answers = [_Answer(int(i), log) for i in log.explained]
    answers = [answer for answer in answers if answer.is_usable]
    if not answers:
        return None
    _find_plain(answers)
    _find_sides(answers)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        system = _System(answers)
    solution = system.solve()
    if solution is None:
        return None
    plane = system.plane(solution)
    if plane is None:
        return None
    scale = float(np.abs(plane.normal) @ system.entry) + abs(plane.offset)
    votes = _votes(plane, scale, log)
    if votes < 0:
        plane = plane.flipped()
    _refuse_misfits(plane, scale, answers)
    return plane if votes != 0 or not orient else None


class _Answer:
    """One explained row: its step, its terms, and the side of its question (0: not known)."""

    def __init__(self, row: int, log: QueryLog) -> None:
        self.row = row
        self.point: FloatArray = log.points[row]
        self.answer: FloatArray = log.explanations[row]
        self.step = self.answer - self.point
        self.mechanism: Mechanism | None = log.mechanism_of(row)
        self.side = int(log.labels[row])
        length = linf if self.distance is None else self.distance
        self.length = float(length(self.step))
        self.size = float(length(self.point)) + float(length(self.answer))
        self.is_plain = self.mechanism is not None and self.mechanism.is_plain

    @property
    def distance(self) -> Norm | None:
        """N1, if known and if the answer is the nearest in it of all points: of a domain there may be none nearer."""
        return None if self.mechanism is None or self.mechanism.domain is not None else self.mechanism.distance

    @property
    def is_usable(self) -> bool:
        """True if the answer is exact up to rounding."""
        m = self.mechanism
        if m is None or m.slack != 0 or m.tolerance:
            return False
        return m.domain is None or bool(on_plane(m, self.point, self.answer))

    @property
    def is_steep(self) -> bool:
        """True if the step is more than rounding, so that its direction means something."""
        return self.length > NEAR * self.size

    @property
    def is_directed(self) -> bool:
        """True if the step at least shows to which side it goes."""
        return self.length > 1e-8 * self.size

    @property
    def blur(self) -> float:
        """How far rounding may turn the step, relative to its length."""
        return 8 * FLOAT64_ANSWER * self.size / self.length

    def level(self) -> _Level | None:
        """Which plane the answer lies on: answers with the same key share it. None if its side would be needed."""
        if self.is_plain:
            return PLANE
        assert self.mechanism is not None
        m = self.mechanism
        whose = m.distance if m.radius is None else None  # a secret radius is that of one service
        return (m.robustness, m.radius, self.side, whose) if self.side else None


def _find_plain(answers: list[_Answer]) -> None:
    """A service whose radius is secret and whose answer is once the question itself has radius 0.

    An answer that differs from its question by rounding only lies on the plane as far as float64 can tell.
    """
    plain = {a.mechanism for a in answers if a.mechanism and a.mechanism.radius is None and not a.step.any()}
    for answer in answers:
        same = answer.length <= FLOAT64_ANSWER * answer.size
        answer.is_plain = answer.is_plain or same or answer.mechanism in plain


def _find_sides(answers: list[_Answer]) -> None:
    """Fill in the sides that answers imply about each other.

    Two steps from the same side are both steepest for one a, so ‖w + w'‖ = ‖w‖ + ‖w'‖; from opposite sides
    ‖w − w'‖ = ‖w‖ + ‖w'‖. If only one of the two holds, the sides are known relative to each other.
    """
    by_distance: dict[Norm, list[_Answer]] = {}
    for answer in answers:
        if answer.distance is not None and answer.is_directed:
            by_distance.setdefault(answer.distance, []).append(answer)
    anchored = any(answer.side for group in by_distance.values() for answer in group)
    for norm, group in by_distance.items():
        known = [answer for answer in group if answer.side]
        if not known and not anchored:
            group[0].side, known, anchored = (
                NO,
                [group[0]],
                True,
            )  # one side may be called No; labels settle it at the end
        for reference in known[:4]:
            open_ = [answer for answer in group if not answer.side]
            if not open_:
                break
            unit = reference.step / float(norm(reference.step))
            steps = np.array([answer.step / float(norm(answer.step)) for answer in open_])
            enough = 2 - ADDITIVE - reference.blur - np.array([answer.blur for answer in open_])
            same = np.asarray(norm(steps + unit)) >= enough
            opposite = np.asarray(norm(steps - unit)) >= enough
            for answer, is_same, is_opposite in zip(open_, same, opposite, strict=True):
                if is_same != is_opposite:
                    answer.side = reference.side if is_same else -reference.side


@dataclass
class _System:
    """The homogeneous equations in (a, t of every distance, level of every plane), each row and column scaled to about one."""

    answers: list[_Answer]
    _triangle: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        answers = self.answers
        self.p = len(answers[0].point)
        self.entry = np.max([np.maximum(np.abs(a.point), np.abs(a.answer)) for a in answers], axis=0)
        # Columns in the features' own units, where there are any; else in the size of the numbers seen.
        units = next((a.distance.units(self.p) for a in answers if a.distance is not None), None)
        largest = float((self.entry * (1.0 if units is None else units)).max()) or 1.0
        self.entry = np.where(self.entry > 0, self.entry, largest) if units is None else largest / units
        self.sided = [a for a in answers if a.side and a.is_steep and a.distance is not None]
        self.norms = list(dict.fromkeys(a.distance for a in self.sided if a.distance is not None))
        self.levels = [key for key in dict.fromkeys(a.level() for a in answers) if key is not None]
        self.columns = self.p + len(self.norms) + len(self.levels)
        self._triangle = np.zeros((0, self.columns))
        for answer in answers:
            self._add_level(answer)
        seen: dict[Norm, set[int]] = {norm: set() for norm in self.norms}
        for answer in self.sided:
            self._add_direction(answer, seen)

    def _add(self, rows: FloatArray) -> None:
        lengths = np.abs(rows).max(axis=1, keepdims=True)
        self._triangle = np.vstack([self._triangle, rows / np.where(lengths > 0, lengths, 1.0)])
        if len(self._triangle) > 3 * self.columns:
            self._triangle = np.asarray(np.linalg.qr(self._triangle, mode="r"))

    def _add_level(self, answer: _Answer) -> None:
        """a·x' − level = 0."""
        key = answer.level()
        if key is not None:
            row = np.zeros((1, self.columns))
            row[0, : self.p] = answer.answer / self.entry
            row[0, self.p + len(self.norms) + self.levels.index(key)] = -1.0
            self._add(row)

    def _add_direction(self, answer: _Answer, seen: dict[Norm, set[int]]) -> None:
        """−side·a·w = ‖w‖·t, and −side·a = t·values wherever K(w) fixes a coordinate (once per coordinate and distance)."""
        norm = answer.distance
        assert norm is not None
        unit = answer.step / float(norm(answer.step))
        cone = norm.normal_cone(
            answer.step, entry_errors(norm, None, answer.point, answer.answer), 20 * norm.answer_rounding
        )
        t = self.p + self.norms.index(norm)
        t_entry = float(norm(self.entry)) if norm.is_absolute else float(norm.units(self.p) @ self.entry)
        rows = [np.zeros(self.columns)]
        rows[0][: self.p] = -answer.side * unit / self.entry
        rows[0][t] = -1.0 / t_entry
        if cone.basis is None:
            fixed = sorted(set(np.setdiff1d(np.arange(self.p), cone.open).tolist()) - seen[norm])
            seen[norm].update(fixed)
            for i in fixed:
                row = np.zeros(self.columns)
                row[i] = -answer.side / self.entry[i]
                row[t] = -cone.values[i] / t_entry
                rows.append(row)
        else:
            complement = np.linalg.svd(cone.basis, full_matrices=True)[2][len(cone.basis) :]
            rows.extend(np.concatenate([row / self.entry, np.zeros(self.columns - self.p)]) for row in complement)
        self._add(np.array(rows))

    def solve(self) -> FloatArray | None:
        """The one solution, its first non-zero length positive; None if there are several."""
        if not np.isfinite(self._triangle).all():
            raise NotFinite("the numbers in the log are too large or too far apart for float64; scale the features")
        _, sizes, right = np.linalg.svd(self._triangle, full_matrices=True)
        sizes = np.append(sizes, np.zeros(self.columns - len(sizes)))
        if sizes[0] == 0 or (self.columns > 1 and sizes[-2] <= SINGULAR * sizes[0]):
            return None
        if sizes[-1] > FITS * sizes[0]:
            raise InconsistentLog(
                f"no hyperplane fits the {len(self.answers)} explanations to float64 precision: they are rounded or heuristic "
                "(then they pin no model down exactly; say so by a tolerance or slack), or from several models",
                rows=tuple(answer.row for answer in self.answers),
            )
        solution = np.asarray(right[-1])
        return -solution if self.norms and solution[self.p] < 0 else solution

    def plane(self, solution: FloatArray) -> Hyperplane | None:
        """The hyperplane of a solution; None if only planes parallel to it are known (secret radius, one side)."""
        normal = solution[: self.p] / self.entry
        level = dict(zip(self.levels, solution[self.p + len(self.norms) :], strict=True))
        if PLANE in level:
            return Hyperplane(normal, float(level[PLANE]))
        for key, value in level.items():
            robustness, radius, side, whose = key
            if radius is not None and robustness is not None:
                return Hyperplane(normal, float(value) + side * radius * float(robustness.dual(normal)))
            across = level.get((robustness, radius, -side, whose))
            if across is not None:
                return Hyperplane(normal, float(value + across) / 2)
        return None


def _votes(plane: Hyperplane, scale: float, log: QueryLog) -> int:
    """+1 if the labels off the plane say that it is the right way round, −1 if upside down, 0 if there are none."""
    rows = np.flatnonzero(log.labels)
    if len(rows) == 0:
        return 0
    points = log.points[rows]
    margins = np.asarray(plane.margin(points))
    clear = np.abs(margins) > FITS * np.maximum(np.abs(points) @ np.abs(plane.normal), scale)
    signs = np.sign(margins[clear]) * log.labels[rows][clear]
    wrong: IntArray = rows[clear][signs != (signs[0] if len(signs) else 0)]
    if len(wrong):
        raise InconsistentLog(
            f"the explanations pin the plane down, but labels contradict it: rows {wrong[:5].tolist()}",
            rows=tuple(wrong.tolist()),
        )
    return int(signs[0]) if len(signs) else 0


def _refuse_misfits(plane: Hyperplane, scale: float, answers: list[_Answer]) -> None:
    """Every answer must lie where its mechanism puts it, at the distance its mechanism says."""
    for answer in answers:
        m = answer.mechanism
        assert m is not None
        off = steep = reach = 0.0
        if m.radius is not None:
            reach = m.radius * float(m.robustness.dual(plane.normal)) if m.robustness is not None else 0.0
            off = abs(abs(plane.margin(answer.answer)) - reach)
        if answer.distance is not None:
            length = float(answer.distance(answer.step)) * float(answer.distance.dual(plane.normal))
            steep = length - abs(float(plane.normal @ answer.step))
        if max(off, steep) > FITS * (scale + reach):
            raise InconsistentLog(
                f"the explanation in row {answer.row} does not fit the plane that the others give: it is off by "
                f"{max(off, steep):.3g}, where rounding allows {FITS * (scale + reach):.1g}",
                rows=(answer.row,),
            )
