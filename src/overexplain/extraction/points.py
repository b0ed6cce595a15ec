"""Theorem D: nothing known about the distance. Exact answers lie on the plane, or on two planes parallel to it, whatever it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import BrokenPromise, ExtractionFailed, NoExplanation
from overexplain.extraction.box import Where
from overexplain.extraction.precision import NEAR, visible_grid
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER, UNIT_ROUNDOFF

INDEPENDENT = 1e-7
"""A new answer counts as independent of the others if this share of it, entries scaled, points elsewhere."""

CONFIRMING = 6
"""So many questions are tried for the one more answer that confirms the plane."""

PARALLEL = 1e-9
"""Displacements this parallel are taken to be along one line: then they tell on which side their questions lie."""


def extract_by_points(
    session: Session,
    mechanism: Mechanism,
    start: FloatArray,
    box: Where,
    orient: bool,
    rng: np.random.Generator,
    verify: bool = False,
) -> Extraction:
    """The hyperplane through p independent answers (robust: p + 1, from both sides).

    With `verify`, one more answer must confirm it: p answers always fit some plane.
    """
    p = session.dimension
    robust = not mechanism.is_plain
    label_asked = int(orient and session.can_label)
    session.require(p + int(robust) + int(verify) + label_asked, "rebuilding the model from points alone")
    span = _gather(session, robust, start, box, rng)
    normal, spread = span.normal()
    levels = {side: float(normal @ points[0]) for side, points in span.sides.items()}
    offset = sum(levels.values()) / len(levels)
    reach = (max(levels.values()) - min(levels.values())) / 2
    if verify:
        allowed = 2 * span.grid * float(np.abs(normal).sum()) + (spread or 0.0) * span.size if span.grid else 0.0
        with session.confirming() if session.confirms else nullcontext():
            _confirm(session, span, normal, levels, allowed, box, rng)
    plane = Hyperplane(normal, offset)
    if label_asked:
        away = max(span.questions, key=lambda x: abs(plane.margin(x)))
        if abs(plane.margin(away)) <= NEAR * span.size:  # e.g. one feature and a start on the plane
            away = box.clip(away + max(1.0, span.size) * normal)
        plane = plane if session.label(away) == (YES if plane.margin(away) > 0 else NO) else plane.flipped()
    bounded = not mechanism.tolerance  # without a norm a tolerance cannot be turned into errors of entries
    size = max(float(np.abs(x) @ np.abs(normal)) for x in (*span.questions, *(z[0] for z in span.sides.values())))
    blur = 2 * FLOAT64_ANSWER * size + span.grid * float(np.abs(normal).sum())
    notes = [
        "answers lie exactly on the plane"
        if not robust
        else "answers lie exactly on two planes parallel to the model's"
    ]
    if span.grid_name is not None:
        notes.append(f"the answers lie on a grid ({span.grid_name}); its half step is taken as their error")
    if not verify:
        notes.append("not checked: as many answers as unknowns always fit")
    radius = None
    if robust and mechanism.robustness is not None:
        radius = reach / float(mechanism.robustness.dual(normal))
    found = Extraction(
        hyperplane=plane,
        spent=session.spent,
        log=session.log,
        method=f"Theorem D: {p + int(robust)} independent answers (rank gap {span.gap:.1e})",
        assumptions=tuple(notes),
        exact=True,
        error_bound=spread if bounded else None,
        offset_bound=spread * span.size + blur if bounded and spread is not None else None,
        oriented=bool(label_asked),
        radius=radius if robust else 0.0,
        radius_bound=None,
        unidentified=np.zeros((0, p)),
        premise="every answer lies on the plane, or equally far behind it, but for rounding",
    )
    return found if mechanism.distance is None else found.rescaled(float(mechanism.distance.dual(normal)))


@dataclass
class _Span:
    """Answers by side of their question, and the space their differences span (entries scaled to one)."""

    scale: FloatArray
    sides: dict[int, list[FloatArray]]
    questions: list[FloatArray]
    basis: list[FloatArray]
    gap: float = 0.0
    moved: list[FloatArray] = field(default_factory=list)
    grid: float = 0.0
    grid_name: str | None = None

    @property
    def size(self) -> float:
        """The largest length among questions and answers."""
        answers = max(float(np.linalg.norm(z)) for points in self.sides.values() for z in points)
        return max(answers, max(float(np.linalg.norm(x)) for x in self.questions))

    def add(self, question: FloatArray, answer: FloatArray, side: int) -> bool:
        """True if the answer says something that the others did not."""
        self.questions.append(question)
        self.moved.append(answer[answer != question])
        if side not in self.sides:
            self.sides[side] = [answer]
            return True
        difference = (answer - self.sides[side][0]) / self.scale
        residual = difference.copy()
        for _ in range(2):  # Gram–Schmidt twice is enough
            for row in self.basis:
                residual -= (row @ residual) * row
        length = float(np.linalg.norm(residual))
        if length <= INDEPENDENT * max(1.0, float(np.linalg.norm(difference))):
            return False
        self.basis.append(residual / length)
        self.sides[side].append(answer)
        return True

    def rows(self) -> FloatArray:
        """The scaled differences that determine the normal."""
        rows = [(z - points[0]) / self.scale for points in self.sides.values() for z in points[1:]]
        return np.array(rows).reshape(len(rows), len(self.scale))

    def normal(self) -> tuple[FloatArray, float | None]:
        """The unit normal, and a bound on its angle to the true one (None if the answers are too badly placed for one)."""
        rows = self.rows()
        _, sizes, right = np.linalg.svd(rows, full_matrices=True)
        normal = right[-1] / self.scale
        length = float(np.linalg.norm(normal))
        self.gap = float(sizes[-1] / sizes[0]) if len(sizes) else 1.0
        # Rows known to E give sin ≤ ‖E‖/σ_min in scaled entries; back in the features' own units this may stretch.
        seen = [*self.questions, *(z for points in self.sides.values() for z in points)]
        sizes_of_entries = np.abs(np.array(seen)).max(axis=0, initial=0.0)
        steps, self.grid_name = visible_grid(np.concatenate(self.moved))
        self.grid = float(steps.max()) / 2 if self.grid_name is not None else 0.0
        noise = 2 * FLOAT64_ANSWER * float(np.linalg.norm(sizes_of_entries / self.scale)) * math.sqrt(max(1, len(rows)))
        noise += 2 * self.grid * float(np.linalg.norm(1 / self.scale)) * math.sqrt(max(1, len(rows)))
        turned = noise / float(sizes[-1]) + 8 * len(self.scale) * UNIT_ROUNDOFF if len(sizes) else UNIT_ROUNDOFF
        ratio = turned * float((1 / self.scale).max()) / length
        return normal / length, math.asin(ratio) if ratio < 1 else None

    def open_directions(self) -> FloatArray:
        """A basis of the normals that the answers so far do not exclude."""
        rows = self.rows()
        if len(rows) == 0:
            return np.eye(len(self.scale))
        return np.asarray(np.linalg.svd(rows, full_matrices=True)[2][len(rows) :] / self.scale)


def _gather(session: Session, robust: bool, start: FloatArray, box: Where, rng: np.random.Generator) -> _Span:
    """Ask until the answers have rank p − 1 (after taking differences on each side)."""
    p = session.dimension
    x, answer = _first_explained(session, start, box, rng)
    step = answer - x
    reach = float(np.abs(x).max() + np.abs(step).max()) or 1.0
    span = _Span(np.full(p, reach) + np.abs(answer), {}, [], [])
    sides = _Sides(session, step if step.any() else None, x)
    span.add(x, answer, NO)
    idle = 0
    while len(span.basis) < p - 1 or (robust and len(span.sides) < 2):
        if robust and len(span.sides) < 2:
            x = box.clip(answer + step)  # as far beyond the answer as the start was before it: surely on the other side
        else:
            x = box.clip(start + reach * rng.uniform(0.5, 1.0, p) * rng.choice([-1.0, 1.0], p))
        reply = session.explain(x)
        if reply is not None and np.array_equal(reply, x):
            reply = None  # a random point lies on no plane: the service echoes its input where it has no answer
        grew = reply is not None and span.add(x, reply, sides.of(x, reply) if robust else NO)
        idle = 0 if grew else idle + 1
        if idle >= max(20, p):
            raise ExtractionFailed(
                f"{idle} answers in a row added nothing: {len(span.basis)} of {p - 1} independent differences were found. "
                "The service may prefer a few fixed answers, or change only some features",
                unidentified=span.open_directions(),
            )
    return span


def _first_explained(
    session: Session, start: FloatArray, box: Where, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The first point that the service explains, and the explanation."""
    x = start
    for attempt in range(12):
        answer = session.explain(x)
        if answer is not None:
            return x, answer
        x = box.clip(start + rng.choice([-1.0, 1.0], len(start)) * 10.0 ** (attempt // 2))
    raise NoExplanation("the service explained none of 12 starts; give start=, a point that it explains")


@dataclass
class _Sides:
    """On which side a question lies, relative to the first one: read off parallel displacements, else asked."""

    session: Session
    step: FloatArray | None
    point: FloatArray
    label: int | None = None

    def of(self, x: FloatArray, answer: FloatArray) -> int:
        """NO for the side of the first question, YES for the other."""
        step = answer - x
        if self.step is not None and step.any():
            cosine = float(self.step @ step) / float(np.linalg.norm(self.step) * np.linalg.norm(step))
            if abs(cosine) >= 1 - PARALLEL:
                return NO if cosine > 0 else YES
        if not self.session.can_label:
            raise ExtractionFailed(
                "robust answers in changing directions do not show on which side their questions lie, and this service "
                "gives no labels"
            )
        if self.label is None:
            self.label = self.session.label(self.point)
        return NO if self.session.label(x) == self.label else YES


def _more_questions(
    session: Session,
    span: _Span,
    normal: FloatArray,
    levels: dict[int, float],
    box: Where,
    rng: np.random.Generator,
) -> Iterator[FloatArray]:
    """Points about the first question; to confirm a service's terms, one beyond the plane first: a margin shows there."""
    first, reach = span.questions[0], float(span.scale.max())
    for number in range(CONFIRMING):
        x = box.clip(first + reach * rng.normal(size=len(normal)))
        before, now = (float(normal @ z) - next(iter(levels.values())) for z in (first, x))
        if session.confirms and number == 0 and before * now > 0:
            x = box.clip(x - 2 * now * normal)
        yield x


def _confirm(
    session: Session,
    span: _Span,
    normal: FloatArray,
    levels: dict[int, float],
    allowed: float,
    box: Where,
    rng: np.random.Generator,
) -> None:
    """One more answer must lie on (one of) the planes found."""
    questions = _more_questions(session, span, normal, levels, box, rng)
    answer = next((z for x in questions if (z := session.explain(x)) is not None), None)
    if answer is None:
        raise NoExplanation(
            f"the service explained none of {CONFIRMING} more points, so that nothing confirms its plane"
        )
    miss = min(abs(float(normal @ answer) - level) for level in levels.values())
    if miss > 1e-8 * (float(np.abs(normal) @ np.abs(answer)) + span.size) + allowed:
        raise BrokenPromise(
            f"the answers do not lie on a plane: one more of them is {miss:.3g} away from the plane through the others. "
            "They are rounded, heuristic, or come from a model that is not linear",
            fact="OnPlane",
            excess=miss,
            row=session.row,
        )
