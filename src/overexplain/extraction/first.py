"""The first answer worth building on: far enough from the plane for its direction to be more than rounding."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overexplain.errors import BrokenPromise, NoExplanation
from overexplain.extraction.box import Where
from overexplain.extraction.graded import graded_start, quiet_errors
from overexplain.extraction.precision import NEAR, answer_error, entry_errors, grid_tolerance
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import Norm, NormalCone

MAX_STARTS = 12
"""A random start is next to the plane with probability about 1e-5: so many in a row mean the service echoes its input."""

GRADED_STARTS = 3
"""So often a graded start is tried before plain ones."""

ASKED_ERROR = 20.0
"""Asking along a direction shows it to about this many answer errors over the distance (3 + 1 of them, over half a step)."""


@dataclass(frozen=True)
class First:
    """An answer off the plane, with what it says: step = answer − point = distance·direction, and the cone K(step)."""

    point: FloatArray
    answer: FloatArray
    distance: float
    direction: FloatArray
    cone: NormalCone
    error: float
    tolerance: float | None
    on_plane: list[FloatArray] = field(default_factory=list)
    is_plain: bool = False
    notes: tuple[str, ...] = ()
    echoed: FloatArray | None = (
        None  # a start that was answered by itself: on the plane, or a service without an answer
    )


def first_answer(
    session: Session,
    mechanism: Mechanism,
    norm: Norm,
    start: FloatArray,
    accuracy: float,
    box: Where,
    rng: np.random.Generator,
) -> First:
    """The first usable answer; starts on or next to the plane are kept as boundary points and replace later questions."""
    on_plane: list[FloatArray] = []
    plain = mechanism.is_plain
    x, fresh, graded = start, False, False
    echoed: FloatArray | None = None
    for attempt in range(MAX_STARTS):
        answer = session.explain(x)
        if answer is None:
            x, fresh, graded = box.clip(start + _spread(norm, rng, len(x)) * 10.0 ** (attempt // 2)), True, False
            continue
        step = answer - x
        distance, size = float(norm(step)), float(norm(x)) + float(norm(answer))
        grid = grid_tolerance(norm, len(x), answer[answer != x]) if mechanism.tolerance is None else None
        tolerance, notes = (mechanism.tolerance, ()) if grid is None else (grid[0], (grid[1],))
        if distance > NEAR * size or (norm.is_smooth and distance > 0):
            error = answer_error(norm, tolerance, x, answer)
            reachable = max(
                accuracy, ASKED_ERROR * (norm.answer_rounding if tolerance is None else tolerance / distance)
            )
            entries = entry_errors(norm, tolerance, x, answer)
            if graded and not any(z.any() for z in on_plane):
                entries = quiet_errors(norm, x, step, entries)
                error = answer_error(norm, tolerance, np.where(entries > 0, x, 0.0), np.where(entries > 0, answer, 0.0))
            cone = norm.normal_cone(step, entries, reachable)
            # A smooth norm shows everything at once, or, from a far start, too little: starting afresh then costs less
            # than asking along every direction. From 0 the step is the answer itself: nothing cancels.
            blurred = norm.is_smooth and cone.dimension > 1 and bool(x.any()) and not fresh and box.contains(0 * x)
            sharp = graded and cone.size <= len(on_plane) and float(norm(entries)) < 0.1 * distance
            if sharp or (distance > NEAR * size and not blurred):
                return First(
                    x, answer, distance, step / distance, cone, error, tolerance, on_plane, plain, notes, echoed
                )
        if distance == 0 and (mechanism.radius is None or size == 0):  # elsewhere a small ball drowns in rounding
            plain = plain or _has_no_ball(session, mechanism)
        if distance == 0:
            echoed = x
        if plain:
            on_plane.append(answer)
            if session.dimension == 1:
                return _one_feature(norm, x, answer, tolerance)
        # A graded start asks for entries far below rounding: where a service's own noise drowns them, plain starts do, and
        # what they blur is asked for.
        graded = plain and norm.is_smooth and norm.holder < 1 and attempt < GRADED_STARTS
        reach = size if size > 0 else 1.0
        if graded:
            moved = np.where(np.abs(step) > 8 * entry_errors(norm, tolerance, x, answer), step, 0.0)
            x = graded_start(norm, reach, moved * norm.units(len(x)), rng)
        elif plain or not box.contains(0 * x):
            x = answer + reach * _spread(norm, rng, len(x))
        else:
            x = np.zeros(len(x))  # cannot be next to the plane: the ball's radius keeps the answer away
        x, fresh = box.clip(x), True
    if not on_plane:
        raise NoExplanation(
            f"the service explained none of {MAX_STARTS} starts on both sides and at several distances; "
            "give start=, a point that it explains"
        )
    raise NoExplanation(
        f"every one of {len(on_plane)} answers lies on or next to its own question, which no plane can do: the service seems to "
        "echo its input when it has no answer (return None instead)"
    )


def _has_no_ball(session: Session, mechanism: Mechanism) -> bool:
    """True: no ball of any radius fits around an answer that is its own question. A declared radius is then refuted."""
    if mechanism.radius:
        raise BrokenPromise(
            f"the answer to question {session.spent.explanations} is the question itself, although a ball of radius "
            f"{mechanism.radius:g} around it should lie on the other side",
            fact="OnSide",
            excess=mechanism.radius,
            row=session.row,
        )
    return True


def _spread(norm: Norm, rng: np.random.Generator, p: int) -> FloatArray:
    """A random displacement, every coordinate by half to one of its own unit."""
    return np.asarray(rng.uniform(0.5, 1.0, p) * rng.choice([-1.0, 1.0], p) / norm.units(p))


def _one_feature(norm: Norm, x: FloatArray, answer: FloatArray, tolerance: float | None) -> First:
    """With one feature a boundary point is the model: a step of 0 to it, in the only direction there is."""
    unit = float(norm.units(1)[0])
    cone = NormalCone.axis_parallel(np.array([True]), np.array([unit]))
    error = answer_error(norm, tolerance, x, answer)
    echoed = x if np.array_equal(x, answer) else None
    return First(answer, answer, 0.0, np.array([1 / unit]), cone, error, tolerance, is_plain=True, echoed=echoed)
