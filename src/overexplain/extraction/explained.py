"""Theorems A, B and C: as few answers as K(w) has dimensions, no label, any norm, robust or not.

On one side of the plane the distance of the explanation is affine in the question,

    D(x) = (|b − a·x| + ρ‖a‖*_N2) / ‖a‖*_N1,

whichever of several optimal points the service picks. So the first answer gives a cone K(w) that a lies in, and every further
question along a direction the cone leaves open gives that direction's product with a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import qr

from overexplain.errors import BrokenPromise, ExtractionFailed, NoExplanation
from overexplain.extraction.box import Where
from overexplain.extraction.check import FreeCheck
from overexplain.extraction.first import First
from overexplain.extraction.precision import answer_error, grid_tolerance
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.lp import l2
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norm import UNIT_ROUNDOFF, Norm, NormalCone

ENOUGH_TO_SEE = 16
"""Of so many answers (and eight times so many moved entries each) the digits are kept, to see whether they lie on a grid."""

SHORTER = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
"""Where a service that fails now and then has no answer, these shares of the step are tried in turn."""

BESIDE = 1e-5
"""How far, relative to its size and its distance from the next question, labels are asked beside a point that should lie on
the plane."""

UNCHECKED = "declared mechanism not checked: a single answer contradicts nothing"

ONE_SIDED = "all answers come from one side of the plane and cannot show another"

WEAK_PIVOT = 1e-6
"""An equation that determines a direction less well than this is not used for it; the service is asked instead."""


def extract_by_cone(
    session: Session,
    mechanism: Mechanism,
    norm: Norm,
    first: First,
    box: Where,
    orient: bool,
) -> Extraction:
    """The hyperplane from dim span K(w) answers (one more if the radius is secret), with bounds on its error."""
    back = min(first.distance, max(0.0, box.room(first.point, -first.direction)))
    centre = box.clip(first.point - back * first.direction)  # farther from the plane; D(centre) is known without asking
    label_asked = int(orient and session.can_label)
    system = _Equations(first, norm, centre, first.distance + back)
    secret = mechanism.radius is None and not first.is_plain
    session.require(
        len(system.ask) + int(secret) + label_asked, f"rebuilding the model (dim K = {first.cone.dimension})"
    )

    check = FreeCheck(norm, first.tolerance)
    check.add(first.point, first.answer, toward=1, reach=float(norm(first.point)))
    gap = _gap(session, first, norm, box, check) if secret else None
    centre_size = float(norm(centre))
    theta = np.zeros(first.cone.size)
    theta_error = np.zeros(first.cone.size)
    steps = np.zeros(len(system.ask))
    seen = [_moved(first.point, first.answer)]
    safe = first.distance + back if first.is_plain else back
    for number, k in enumerate(system.ask):
        direction, length = first.cone.direction(int(k)), float(system.lengths[k])
        step = _step(box, centre, direction, safe / (2 * length), first.cone, int(k))
        step, question, answer = _asked(session, box, centre, step, direction)
        seen_distance, found_error = check.add(question, answer, 1, centre_size + abs(step) * length)
        theta[k] = (system.centre_distance - seen_distance) / step
        steps[number] = abs(step)
        theta_error[k] = (3 * first.error + found_error) / abs(step)
        if len(seen) < ENOUGH_TO_SEE:
            seen.append(_moved(question, answer))
    first = _on_a_grid(first, norm, seen, system, check, theta_error, steps)
    system.solve(theta, theta_error)

    normal = first.cone.combine(theta)
    error = _NormalError(norm, first.cone, theta_error, float(l2(normal)))
    reach, reach_error, radius, radius_error = _reach(mechanism, normal, error, gap)
    offset = float(normal @ first.point) + first.distance - reach
    size = float(np.abs(normal) @ np.abs(first.point)) + first.distance + reach
    offset_bound = (
        float(error.entries @ np.abs(first.point))
        + first.error
        + reach_error
        + (session.dimension + 16) * UNIT_ROUNDOFF * size
    )
    if system.ask.size or gap is not None or first.on_plane:
        check.run(normal, error.dual, session.log)
    if gap is None:  # D(x) ≥ ρ‖a‖*_N2 everywhere, and no question was nearer to the plane than the first
        check.run_on_reach(first.distance, reach, offset_bound)
    for z in first.on_plane:
        reached = error.dual * float(norm(z - first.point)) + answer_error(norm, first.tolerance, z, z)
        check.run_on_plane("the answer to a start on the plane", float(normal @ z) - offset, reached + offset_bound)
    plane = Hyperplane(normal, offset)
    if label_asked and first.echoed is not None:
        reached = error.dual * float(norm(first.echoed - first.point)) + offset_bound
        size = float(max(l2(first.echoed), l2(first.echoed - first.point))) or 1.0
        plane = _oriented_at(session, plane, first.echoed, 4 * reached / float(l2(normal)) + BESIDE * size, box)
    elif label_asked:
        away, side = _away(centre, back, first, box)
        plane = plane if session.label(away) == side else plane.flipped()
    found = Extraction(
        hyperplane=plane,
        spent=session.spent,
        log=session.log,
        method=_method(norm, first, secret),
        assumptions=_assumptions(mechanism, first, session.spent.explanations),
        exact=True,
        error_bound=error.angle(normal),
        offset_bound=offset_bound,
        oriented=bool(label_asked),
        radius=radius,
        radius_bound=radius_error,
        unidentified=np.zeros((0, session.dimension)),
        premise=Extraction.within(first.tolerance),
        tolerance=first.tolerance,
    )
    return found.rescaled(float(norm.dual(normal)), error.dual)


def _asked(
    session: Session, box: Where, centre: FloatArray, step: float, direction: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """A step along the direction whose question the service answers: shorter ones where it has none for the first."""
    for shorter in SHORTER:
        question = box.clip(centre + shorter * step * direction)
        answer = session.explain(question)
        if answer is not None and not np.array_equal(answer, question):  # half way to the plane, an echo is no answer
            return shorter * step, question, answer
    raise NoExplanation(
        f"the service has no explanation for {len(SHORTER)} questions up to number {session.spent.explanations}, although "
        "points on the same side were explained; the theorems need an answer along every direction"
    )


def _oriented_at(session: Session, plane: Hyperplane, echoed: FloatArray, aside: float, box: Where) -> Hyperplane:
    """The plane the right way round, by labels this far on each side of a point that was answered by itself.

    If both are the same, the point does not lie on the plane: the service echoes its input where it has no answer.
    """
    unit = plane.normal / float(l2(plane.normal))
    above, below = (session.label(box.clip(echoed + side * aside * unit)) for side in (YES, NO))
    if above == below:
        raise BrokenPromise(
            "a question that was answered by itself does not lie on the plane: labels on both sides of it are the same. The "
            "service echoes its input where it has no answer (return None instead)",
            fact="OnPlane",
            row=session.row,
        )
    return plane if above == YES else plane.flipped()


def _away(centre: FloatArray, back: float, first: First, box: Where) -> tuple[FloatArray, int]:
    """A point off the plane to ask a label of, and its label if the normal points to Yes; the offset plays no part in it."""
    if back > 0 or (first.is_plain and first.distance > 0):
        return centre, NO
    if first.distance > 0:  # robust, and no room behind the start, which may lie on the plane: its answer does not
        return (first.answer, YES) if box.contains(first.answer) else (centre, NO)
    reach = max(1.0, float(np.abs(centre).max())) * first.direction
    behind, ahead = box.clip(centre - reach), box.clip(centre + reach)
    return (behind, NO) if np.abs(behind - centre).max() >= np.abs(ahead - centre).max() else (ahead, YES)


def _moved(question: FloatArray, answer: FloatArray) -> FloatArray:
    return np.asarray(answer[answer != question][: 8 * ENOUGH_TO_SEE])


def _on_a_grid(
    first: First,
    norm: Norm,
    seen: list[FloatArray],
    system: _Equations,
    check: FreeCheck,
    theta_error: FloatArray,
    steps: FloatArray,
) -> First:
    """The first answer with the tolerance of a grid that shows only in all answers together (ℓ1 moves one entry at a time)."""
    grid = grid_tolerance(norm, len(first.point), np.concatenate(seen)) if first.tolerance is None else None
    if grid is None:
        return first
    tolerance, note = grid
    theta_error[system.ask] += 4 * tolerance / steps
    system.loosen(4 * tolerance)
    check.loosen(tolerance)
    return replace(first, tolerance=tolerance, error=first.error + tolerance, notes=(*first.notes, note))


class _Equations:
    """What is known of a without asking: a·v = 1, and a·(z − centre) = D(centre) for every boundary point z.

    Each equation replaces one question, for the direction it determines best (QR with column pivoting).
    """

    def __init__(self, first: First, norm: Norm, centre: FloatArray, centre_distance: float) -> None:
        cone = first.cone
        self.centre_distance = centre_distance
        self.ask = self.rest = np.zeros(0, dtype=np.int64)
        if cone.size == 0:
            return
        self.lengths = norm.units(len(centre))[cone.open] if cone.basis is None else np.asarray(norm(cone.basis))
        rows = [first.direction] + [(z - centre) / centre_distance for z in first.on_plane]
        self._rows = np.array([cone.along(row) for row in rows])
        self._known = np.array([row @ cone.values for row in rows])
        self._error = np.array([np.abs(row) @ cone.errors for row in rows]) + 4 * first.error / centre_distance
        # In units of ‖e_k‖: how strongly an equation speaks about a_k, whatever the weights of the features.
        triangle, order = qr(self._rows * self.lengths, mode="r", pivoting=True)
        pivots, unsure = np.abs(np.diag(triangle)), 100 * float(self._error.max())
        # a·v = 1 is what fixes the scale where the cone fixes nothing; any other equation must say more than its own error.
        least = np.where((np.arange(len(pivots)) == 0) & (not cone.values.any()), 0.0, unsure)
        strong = int((pivots > np.maximum(WEAK_PIVOT, least)).sum())
        self.rest = np.asarray(order[:strong], dtype=np.int64)
        self.ask = np.setdiff1d(np.arange(cone.size), self.rest)

    def loosen(self, error: float) -> None:
        """Allow the equations this much more error."""
        if self.rest.size:
            self._error += error / self.centre_distance

    def solve(self, theta: FloatArray, theta_error: FloatArray) -> None:
        """Fill in, in place, the directions that were not asked, and how far off they can be."""
        if self.rest.size == 0:
            return
        left = self._rows[:, self.rest]
        right = 1.0 - self._known - self._rows[:, self.ask] @ theta[self.ask]
        inverse = np.linalg.pinv(left)
        theta[self.rest] = inverse @ right
        spread = self._error + np.abs(self._rows[:, self.ask]) @ theta_error[self.ask]
        theta_error[self.rest] = np.abs(inverse) @ spread


@dataclass(frozen=True)
class _NormalError:
    """How far the normal can be off: entry by entry, and in the dual norm."""

    norm: Norm
    cone: NormalCone
    theta_error: FloatArray
    length: float

    @property
    def entries(self) -> FloatArray:
        """Bound on each entry of the error."""
        bound = self.cone.errors.copy()
        if self.cone.basis is None:
            bound[self.cone.open] = self.theta_error
        else:
            bound += self.theta_error @ np.abs(self.cone.basis) + 8 * len(bound) * UNIT_ROUNDOFF * self.length
        return bound + 4 * UNIT_ROUNDOFF * np.abs(self.cone.values)

    def in_norm(self, dual: Norm) -> float:
        """Bound on the error in any norm."""
        entries = self.entries
        return float(dual(entries)) if dual.is_absolute else float(entries @ dual.units(len(entries)))

    @property
    def dual(self) -> float:
        """Bound on the error in ‖·‖*, the unit in which the normal has length 1."""
        return self.in_norm(self.norm.dual)

    def angle(self, normal: FloatArray) -> float | None:
        """Bound on the angle to the true normal; None if a smooth norm of the caller's own cannot tell its error."""
        if self.norm.is_smooth and self.norm.gradient_error(normal, np.zeros(len(normal))) is None:
            return None
        ratio = float(l2(self.entries)) / float(l2(normal))
        return math.asin(ratio) if ratio < 1 else None


def _step(box: Where, centre: FloatArray, direction: FloatArray, wanted: float, cone: NormalCone, k: int) -> float:
    """How far to go from the centre along a direction: as wanted, or, where the box is close, less, or the other way."""
    ahead, behind = box.room(centre, direction), box.room(centre, -direction)
    step = min(wanted, ahead) if ahead >= min(wanted, behind) else -min(wanted, behind)
    if step == 0:
        raise ExtractionFailed(
            f"the bounds leave no room to ask along direction {k}: start nearer to the middle of the box (start=)",
            unidentified=cone.direction(k)[None, :],
        )
    return step


def _gap(session: Session, first: First, norm: Norm, box: Where, check: FreeCheck) -> tuple[float, float]:
    """Half the distance between the two planes that explanations lie on, ρ‖a‖*_N2 at ‖a‖* = 1, and its error.

    The answer to the first answer lies across (Theorem C). A service that explains one side only is asked labels instead.
    """
    if not box.contains(first.answer):
        raise ExtractionFailed(
            "the radius is secret and the answer that would show it lies outside the bounds; widen them"
        )
    across = session.explain(first.answer)
    if across is not None:
        gap, error = check.add(first.answer, across, toward=-1, reach=float(norm(first.answer)))
        return gap / 2, error + first.error
    if not session.can_label:
        raise NoExplanation(
            "the radius is secret and the service explains one side only and gives no labels: offset unknown"
        )
    own, near, far = session.label(first.point), 0.0, first.distance
    while far - near > 2.0**-50 * first.distance:
        middle = (near + far) / 2
        if session.label(first.point + middle * first.direction) == own:
            near = middle
        else:
            far = middle
    return first.distance - (near + far) / 2, (far - near) / 2 + 2 * first.error


def _reach(
    mechanism: Mechanism, normal: FloatArray, error: _NormalError, gap: tuple[float, float] | None
) -> tuple[float, float, float | None, float | None]:
    """ρ‖a‖*_N2 and its error; ρ itself and, if it was found here, its error."""
    if gap is not None:
        if mechanism.robustness is None:
            return *gap, None, None
        dual = mechanism.robustness.dual
        length, off = float(dual(normal)), error.in_norm(dual)
        radius = gap[0] / length
        return *gap, radius, (gap[1] + radius * off) / (length - off) if off < length else None
    if mechanism.radius is None or mechanism.radius == 0 or mechanism.robustness is None:
        return 0.0, 0.0, 0.0, None
    dual = mechanism.robustness.dual
    return mechanism.radius * float(dual(normal)), mechanism.radius * error.in_norm(dual), mechanism.radius, None


def _method(norm: Norm, first: First, secret: bool) -> str:
    dimension = first.cone.dimension
    if secret:
        return f"Theorem C: secret radius, dim K + 1 = {dimension + 1}"
    if norm.is_smooth and dimension == 1:
        return "Theorem B: smooth distance, one answer off the plane"
    return f"Theorem A: dim K = {dimension}"


def _assumptions(mechanism: Mechanism, first: First, explanations: int) -> tuple[str, ...]:
    notes = list(first.notes)
    if first.echoed is not None:
        notes.append("a question that was answered by itself lies on the plane")
    if explanations == 1:
        notes.append(UNCHECKED)
    if mechanism.tolerance is None and not first.notes:
        notes.append("answers are float64 roundings of the optimum")
    elif mechanism.tolerance:
        notes.append(f"answers lie within the tolerance {mechanism.tolerance:g} of the optimum, in the distance")
    if mechanism.radius is not None and not first.on_plane:
        kind = f"the radius {mechanism.radius:g}" if mechanism.radius else "no radius"
        notes.append(f"the service has {kind}: {ONE_SIDED}")
    return tuple(notes)
