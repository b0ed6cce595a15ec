"""The free check: with the model in hand, every answer must be what the declared mechanism would have given."""

from __future__ import annotations

import numpy as np

from overexplain.errors import BrokenPromise
from overexplain.extraction.precision import error_at_size
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.norm import FLOAT64_ANSWER, Norm
from overexplain.log.querylog import QueryLog

ADVICE = "If it rounds, declare the tolerance; else leave the distance unknown, Mechanism(None)"


class FreeCheck:
    """Tests ‖a‖* = 1 and that every step is steepest, ‖w‖ = ±a·w.

    By Hölder ‖w‖ − a·w is never negative, so the sum over all answers vanishes only if every one of them does: the sum needs
    O(p) memory however many answers there are. If it does not vanish, the log tells which answer is to blame.
    """

    def __init__(self, norm: Norm, tolerance: float | None) -> None:
        self._norm = norm
        self._tolerance = tolerance
        self._steps: FloatArray | float = 0.0
        self._length = 0.0
        self._allowed = 0.0
        self._toward: list[int] = []

    def add(self, question: FloatArray, answer: FloatArray, toward: int, reach: float) -> tuple[float, float]:
        """Take note of an answer; gives its distance and the error of that.

        `toward` is +1 if a·step should be ‖step‖, −1 if its negative; `reach` is at least ‖question‖.
        """
        step = answer - question
        distance = float(self._norm(step))
        error = error_at_size(self._norm, self._tolerance, len(step), 2 * reach + distance)
        self._steps = self._steps + toward * step
        self._length += distance
        # Rounding alone never breaks a promise, also where the service claims to be exact.
        self._allowed += max(error, FLOAT64_ANSWER * (distance + error))
        self._toward.append(toward)
        return distance, error

    def loosen(self, tolerance: float) -> None:
        """Allow every answer this much more error."""
        self._allowed += tolerance * len(self._toward)

    def run(self, normal: FloatArray, normal_error: float, log: QueryLog | None) -> None:
        """Raise BrokenPromise, with the fact and the answer that show it, unless everything fits."""
        length = float(self._norm.dual(normal))
        allowed = 4 * normal_error + 1e-12
        if abs(length - 1.0) > allowed:
            raise BrokenPromise(
                f"the answers do not fit the declared distance {self._norm!r}: the normal they give has dual length {length:.6g} "
                f"instead of 1 (allowed: ±{allowed:.1g}). {ADVICE}",
                fact="Steepest",
                excess=abs(length - 1.0),
            )
        lost = self._length - float(np.asarray(self._steps) @ normal)
        if lost <= 2 * (normal_error * self._length + 2 * self._allowed):
            return
        row, excess = self._culprit(normal, log)
        where = "one of the answers" if row is None else f"the answer in log row {row}"
        raise BrokenPromise(
            f"the answers do not fit the declared distance {self._norm!r}: {where} is {excess:.3g} farther away than the "
            f"{len(self._toward)} answers together allow. {ADVICE}",
            fact="Steepest",
            excess=excess,
            row=row,
        )

    def run_on_plane(self, answer: str, miss: float, allowed: float) -> None:
        """Raise BrokenPromise if an answer that should lie on the plane misses it by more than errors allow."""
        if abs(miss) > 2 * allowed:
            raise BrokenPromise(
                f"the answers do not fit the declared distance {self._norm!r}: {answer} lies "
                f"{abs(miss):.3g} off the plane that the others give (allowed: {2 * allowed:.1g})",
                fact="OnPlane",
                excess=abs(miss),
            )

    def run_on_reach(self, distance: float, reach: float, allowed: float) -> None:
        """Raise BrokenPromise if the nearest answer is less far away than the ball around it must be deep."""
        if distance < reach - 2 * allowed:
            raise BrokenPromise(
                f"an answer only {distance:.6g} away from its question leaves no room for the declared radius: the ball around it "
                f"needs {reach:.6g}. The radius, or the norm of the ball, is another one",
                fact="Robust",
                excess=reach - distance,
            )

    def _culprit(self, normal: FloatArray, log: QueryLog | None) -> tuple[int | None, float]:
        if log is None:
            return None, self._length - float(np.asarray(self._steps) @ normal)
        rows = log.explained[-len(self._toward) :]
        steps = log.explanations[rows] - log.points[rows]
        lost = np.asarray(self._norm(steps)) - self._toward * (steps @ normal)
        worst = int(lost.argmax())
        return int(rows[worst]), float(lost[worst])
