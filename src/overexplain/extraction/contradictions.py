"""Free checks of a finished model against everything the service has said: no question is asked."""

from __future__ import annotations

import math

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.job import Job
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import FLOAT64_ANSWER, SMALLEST
from overexplain.log.querylog import QueryLog

FAR_ABOVE_ROUNDING = 1e-9
"""A label is held against a model only where the point lies this far, relative to its size, beyond the model's own bounds."""

NAMED = 5
"""So many rows are named in a message; all of them are in the error."""


def certain_labels(found: Extraction, points: FloatArray) -> IntArray:
    """+1 or −1 where the model's own bounds leave no doubt about a point's label, 0 elsewhere.

    With unit normals â and a, |â·x − b̂ − (a·x − b)| ≤ 2 sin(θ/2)·‖x‖ + |b̂ − b|.
    """
    if found.error_bound is None or found.offset_bound is None:
        return np.zeros(len(points), dtype=np.int64)
    normal = found.hyperplane.normal
    length = float(np.linalg.norm(normal))
    plane = Hyperplane(normal / length, found.hyperplane.offset / length)
    sizes = np.linalg.norm(points, axis=1)
    # The offset's bound holds for normals scaled in some norm. Scaled to ‖·‖₂ = 1 instead, offsets differ by the angle's share
    # of themselves, times a factor that depends on the norm: hence the room below, which costs nothing where labels are wrong.
    turned = 2 * math.sin(min(found.error_bound, math.pi) / 2)
    doubt = turned * (sizes + math.sqrt(len(normal)) * abs(plane.offset)) + found.offset_bound / length
    doubt += FAR_ABOVE_ROUNDING * (sizes + abs(plane.offset))
    margins = np.asarray(plane.margin(points))
    return np.where(np.abs(margins) > 2 * doubt, np.sign(margins), 0).astype(np.int64)


def refuse_contradictions(found: Extraction, log: QueryLog | None) -> None:
    """Raise BrokenPromise, naming the rows, if labels contradict a model that is known well enough to say so."""
    if log is None or not found.oriented or not len(log):
        return
    rows = np.flatnonzero(log.labels)
    wrong = rows[certain_labels(found, log.points[rows]) * log.labels[rows] < 0]
    if len(wrong):
        raise BrokenPromise(
            f"{len(wrong)} of {len(rows)} labels contradict the model that the other answers give (log rows {_named(wrong)}): "
            "the service flips labels, changed its model, or is not linear",
            fact="OnSide",
            rows=tuple(wrong.tolist()),
        )


def unflipped(found: Extraction, log: QueryLog) -> IntArray:
    """The explained rows whose answer, as the model shows beyond doubt, lies on its question's own side."""
    rows = log.explained
    if len(rows) == 0:
        return rows
    before, after = certain_labels(found, log.points[rows]), certain_labels(found, log.explanations[rows])
    return np.asarray(rows[before * after > 0])


def refuse_misplaced(found: Extraction, log: QueryLog | None, terms: Mechanism) -> tuple[float, float | None]:
    """How many times more than float64 rounding answers scatter about the plane they should lie on, or equally far behind.

    And how far the farthest of them is off, in the 2-norm; None if there was none to see.

    Raises BrokenPromise, naming the rows, if that is more than errors allow.
    """
    if log is None or found.error_bound is None or found.offset_bound is None:
        return 1.0, None
    rows = np.setdiff1d(log.explained, unflipped(found, log))
    if len(rows) == 0:
        return 1.0, None
    plane = found.hyperplane
    length = float(np.linalg.norm(plane.normal))
    questions, answers = np.asarray(plane.margin(log.points[rows])), np.asarray(plane.margin(log.explanations[rows]))
    behind = -np.sign(questions) * answers / length
    sizes = np.linalg.norm(log.explanations[rows], axis=1) + abs(plane.offset) / length
    allowed = (found.error_bound + 1e-7) * sizes + found.offset_bound / length
    if terms.tolerance:
        dual = 1.0 if terms.distance is None else float(terms.distance.dual(plane.normal)) / length
        allowed = allowed + terms.tolerance * dual
    expected = 0.0 if terms.is_plain else float(np.median(behind))
    wrong = rows[np.abs(behind - expected) > 2 * allowed]
    if len(wrong):
        where = "the plane" if terms.is_plain else "the planes at one distance on both sides of it"
        raise BrokenPromise(
            f"{len(wrong)} of {len(rows)} answers do not lie on {where} that the others give (log rows {_named(wrong)})",
            fact="OnPlane",
            excess=float(np.abs(behind - expected).max()),
            rows=tuple(wrong.tolist()),
        )
    off = np.abs(behind - expected)
    if terms.tolerance:
        return 1.0, float(off.max())  # what the bounds already count
    return max(1.0, float((off / (FLOAT64_ANSWER * np.maximum(sizes, SMALLEST))).max())), float(off.max())


def next_to_the_start(job: Job, plane: Hyperplane) -> tuple[FloatArray, float, FloatArray, float]:
    """The unit normal, the normal's length, the point of the plane next to the start (if it may be asked) and the size of both."""
    length = float(np.linalg.norm(plane.normal))
    unit = plane.normal / length
    foot = job.where.clip(job.start - plane.margin(job.start) / length * unit)
    return unit, length, foot, float(np.linalg.norm(foot)) + abs(plane.offset) / length


def refuse_wrong_level(job: Job, found: Extraction) -> None:
    """Raise BrokenPromise if labels just above and just below the plane found are not Yes and No: two labels."""
    plane = found.hyperplane
    assert found.error_bound is not None
    assert found.offset_bound is not None
    unit, length, foot, size = next_to_the_start(job, plane)
    aside = 4 * (found.error_bound * size + found.offset_bound / length) + FAR_ABOVE_ROUNDING * size
    for side in (YES, NO):
        x = job.where.clip(foot + (side * aside - plane.margin(foot) / length) * unit)
        if plane.margin(x) * side > 0 and job.session.label(x) != side:
            raise BrokenPromise(
                f"the label in log row {job.session.row} contradicts the plane half way between the answers of the two sides: "
                "their margins differ",
                fact="OnSide",
                row=job.session.row,
            )


def _named(rows: IntArray) -> str:
    return ", ".join(map(str, rows[:NAMED].tolist())) + (" …" if len(rows) > NAMED else "")


def clipped(session: Session) -> str | None:
    """Which answers end at a limit of the published domain, in a sentence: the distance alone does not explain those.

    So may an answer that stays at a limit its question lay on, which it could not pass.
    """
    if not session.at_limit:
        return None
    rows = np.array(session.at_limit, dtype=np.int64)
    return (
        f"{len(rows)} of {session.spent.explanations} answers end at a limit of the inputs that the service takes (log rows "
        f"{_named(rows)}): they are the nearest points inside the limits only"
    )


def refuse_clipped(session: Session) -> None:
    """Raise BrokenPromise if answers end at a limit of the published domain."""
    if (cut := clipped(session)) is not None:
        raise BrokenPromise(cut, fact="Steepest", rows=tuple(session.at_limit))
