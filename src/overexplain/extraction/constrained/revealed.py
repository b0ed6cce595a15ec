"""Answers that move only some features (others are immutable, or only k may move, or only upwards), under the ℓ2 distance.

A step under the (weighted) ℓ2 distance is proportional to a_i/w_i² on the features S that it moves. So one answer gives a_S up to a
factor, and every answer is a point of the plane: what is left to find is a factor per set of features that never moved together,
each feature that never moved, and the offset. With one set S these are p − |S| + 2 unknowns up to a common factor, that is
p − |S| + 1 answers. Features that may only grow move one way from No and the others from Yes: two sets, two answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from overexplain.errors import BrokenPromise, ExtractionFailed, NoExplanation, UnsupportedNorm
from overexplain.extraction.constrained.null_plane import NullVector, null_vector, open_vectors
from overexplain.extraction.constrained.shares import Shares
from overexplain.extraction.job import Job
from overexplain.extraction.precision import NEAR
from overexplain.extraction.result import Extraction, Spent
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.lp import Weighted, l2
from overexplain.geometry.norm import FLOAT64_ANSWER, Norm

FIRST_TRIES = 12
"""So many starts are tried before a service counts as one that explains nothing."""

CROSSINGS = (1.0, 3.0, 9.0)
"""How far beyond the first answer, in steps, the other side is looked for."""

SPARE = 20
"""So many answers, or p if that is more, may add nothing before the search is given up."""


def extract_by_revealed(job: Job, norm: Norm = l2) -> Extraction:
    """The hyperplane from steps under a (weighted) ℓ2 distance that move only some features, and one answer that confirms it."""
    if not _is_euclidean(norm):
        raise UnsupportedNorm(
            f"steps show shares of the normal only under ℓ2, or ℓ2 with weights; the distance here is {norm!r}: use points alone"
        )
    session = job.session
    gathered = _Gathered(job, norm)
    solution = _ask_until_determined(job, gathered)
    normal, errors = gathered.normal(solution)
    reference = gathered.reference
    size = float(np.abs(normal) @ np.abs(reference))
    offset = float(normal @ reference)
    offset_bound = None
    if errors is not None:
        offset_bound = float(errors @ np.abs(reference)) + float(np.abs(normal) @ gathered.blur[0]) + 1e-15 * size
    _confirm(job, gathered, normal, errors, offset, offset_bound)

    plane = Hyperplane(normal, offset)
    label_asked = job.orient and session.can_label
    if label_asked:
        away = max(gathered.questions, key=lambda x: abs(plane.margin(x)))
        plane = plane if session.label(away) == (YES if plane.margin(away) > 0 else NO) else plane.flipped()
    ratio = math.inf if errors is None else float(np.linalg.norm(errors)) / float(np.linalg.norm(normal))
    hidden = np.flatnonzero(gathered.hidden)
    found = Extraction(
        hyperplane=plane,
        spent=session.spent,
        log=session.log,
        method=f"revealed coordinates: {gathered.describe()}",
        assumptions=_assumptions(norm, hidden),
        exact=True,
        error_bound=math.asin(ratio) if ratio < 1 else None,
        offset_bound=offset_bound if ratio < 1 else None,
        oriented=bool(label_asked),
        radius=0.0,
        radius_bound=None,
        unidentified=np.eye(session.dimension)[hidden],
        premise="every answer lies on the plane but for rounding",
    )
    return found.rescaled(float(norm.dual(normal)), 0.0 if errors is None else float(norm.dual(errors)))


def predict_revealed(p: int, supports: Iterable[Iterable[int]], orient: bool = True) -> Spent:
    """What `extract_by_revealed` will spend if answers move exactly these sets of features.

    >>> predict_revealed(30, [range(27)]), predict_revealed(4, [[0, 2], [1, 3]])
    (Spent(explanations=5, labels=1), Spent(explanations=3, labels=1))
    """
    sets: list[set[int]] = []
    to_see = 0  # answers without which some feature would not be known to move
    for support in supports:
        joined = set(support)
        to_see += int(not joined <= set().union(*sets))
        apart = [other for other in sets if not other & joined]
        joined.update(*(other for other in sets if other & joined))
        sets = [*apart, joined]
    unrevealed = p - sum(len(together) for together in sets)
    return Spent(explanations=max(to_see, len(sets) + unrevealed) + 1, labels=int(orient))


def _is_euclidean(norm: Norm) -> bool:
    return norm == l2 or (isinstance(norm, Weighted) and _is_euclidean(norm.norm))


@dataclass(frozen=True)
class _Seen:
    """An answer far enough from its question for its direction to be more than rounding."""

    question: FloatArray
    step: FloatArray
    distance: float


class _Gathered:
    """The answers so far, the shares of the normal that their steps show, and the next question to ask."""

    def __init__(self, job: Job, norm: Norm) -> None:
        self.job, self.norm = job, norm
        self.units = norm.units(job.session.dimension)
        mechanism = job.session.mechanism
        self.tolerance = None if mechanism is None else mechanism.tolerance
        self.pinned = _pinned(job)
        self.shares = Shares(self.units)
        self.varied = np.zeros(len(self.units), dtype=bool)
        self._varying: int | None = None
        self.questions: list[FloatArray] = []
        self.answers: list[FloatArray] = []
        self.blur: list[FloatArray] = []
        self.seen: _Seen | None = None
        self.crossed, self.tried_to_cross, self.refused, self.caution = False, 0, 0, 0

    @property
    def hidden(self) -> BoolArray:
        """The features that neither the questions may vary nor the answers move."""
        return self.pinned & ~self.shares.revealed

    @property
    def unknowns(self) -> int:
        """Factors and features still to be found, the offset not counted."""
        return self.shares.count + int((~self.shares.revealed & ~self.pinned).sum())

    @property
    def reference(self) -> FloatArray:
        """The first answer; differences are taken to it. Hidden features count as part of the offset: 0."""
        return np.where(self.hidden, 0.0, self.answers[0])

    @property
    def still_needed(self) -> int:
        """How many more answers the unknowns take at least, as far as can be told."""
        return max(0, self.unknowns - len(self.answers))

    def ask(self) -> bool:
        """Ask the next question; True if an answer came."""
        self._varying = None
        x = self._next_question()
        answer = self.job.session.attempt(x).answer
        if answer is None:
            self.refused += 1
            self.caution += 1
            return False
        self.caution = max(min(1, self.caution), self.caution - 1)
        if self._varying is not None:
            self.varied[self._varying] = True
        self.questions.append(x)
        self.answers.append(answer)
        sizes = np.maximum(np.abs(x), np.abs(answer))
        self.blur.append(FLOAT64_ANSWER * sizes + (self.tolerance or 0.0) / self.units)
        step = answer - x
        distance, size = float(self.norm(step)), float(self.norm(x)) + float(self.norm(answer))
        if distance > NEAR * size:
            turned = self.shares.add(x, answer, self.tolerance, self.job.session.row)
            if self.seen is None:
                self.seen = _Seen(x, step, distance)
            self.crossed = self.crossed or turned
        return True

    def _next_question(self) -> FloatArray:
        where = self.job.where
        if self.seen is None:
            tried = len(self.answers) + self.refused
            if tried == 0:
                return self.job.start
            size = max(1.0, float(self.norm(self.job.start)))
            return where.clip(self.job.start + size * 10.0 ** ((tried - 1) // 2) * self._anywhere())
        first, distance = self.seen, self.seen.distance
        reach = max(distance, float(self.norm(first.question)))
        if not self.crossed and not self.refused and self.tried_to_cross < len(CROSSINGS):
            beyond = CROSSINGS[self.tried_to_cross]
            self.tried_to_cross += 1
            # Little besides the step itself: surely on the other side unless the feature that did not move counts far more.
            return where.clip(first.question + (1 + beyond) * first.step + self._variation(distance / 4))
        if (
            self.refused
        ):  # a service that explains one side only: farther away on the side that it did explain, and less aside
            away = min(2.0 ** (min(self.caution, 30) - 1), max(0.0, where.room(first.question, -first.step)))
            aside = distance * 2.0 ** -max(0, self.caution - 2)
            return where.clip(first.question - away * first.step + self._variation(aside))
        return where.clip(first.question + self._variation(reach))

    def _variation(self, reach: float) -> FloatArray:
        """One feature that neither moved nor was varied yet: its equation is then as sharp as it can be; else all at random."""
        untried = np.flatnonzero(~self.shares.revealed & ~self.pinned & ~self.varied)
        if len(untried) == 0:
            return reach * self._anywhere()
        feature = self._varying = int(untried[0])
        axis = np.eye(len(self.units))[feature]
        where, x = self.job.where, self.job.start if self.seen is None else self.seen.question
        sign = 1.0 if where.room(x, axis) >= where.room(x, -axis) else -1.0
        if self.caution > 1 and self.caution % 2 == 0 and where.room(x, -sign * axis) > 0:
            sign = -sign  # the other way was not answered
        return np.asarray(sign * reach / self.units[feature] * axis)

    def _anywhere(self) -> FloatArray:
        rng, p = self.job.rng, len(self.units)
        return np.asarray(rng.uniform(0.5, 1.0, p) * rng.choice([-1.0, 1.0], p) / self.units)

    def system(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Equations of the unknowns (factors, then features never moved), the errors of their entries, and the columns' sizes."""
        rest = np.flatnonzero(~self.shares.revealed & ~self.pinned)
        differences = np.array([z - self.answers[0] for z in self.answers[1:]]).reshape(-1, len(self.units))
        blur = np.array([e + self.blur[0] for e in self.blur[1:]]).reshape(-1, len(self.units))
        shares, unsure = self.shares.columns()  # one row per factor
        rows = np.hstack([differences @ shares.T, differences[:, rest]])
        errors = np.hstack([blur @ (np.abs(shares) + unsure).T + np.abs(differences) @ unsure.T, blur[:, rest]])
        # As large as the entries could be: where one set has all the effect, its column is 0 but for rounding.
        asked = np.array([np.abs(x - self.questions[0]) for x in self.questions[1:]]).reshape(-1, len(self.units))
        spread = asked + np.abs(differences)
        sizes = np.hstack([spread @ np.abs(shares).T, spread[:, rest]])
        return rows, errors, sizes.max(axis=0, initial=0.0)

    def normal(self, solution: NullVector) -> tuple[FloatArray, FloatArray | None]:
        """The normal of these unknowns and bounds on the errors of its entries; 0 where features are hidden."""
        shares, unsure = self.shares.columns()
        count = len(shares)
        rest = ~self.shares.revealed & ~self.pinned
        normal = solution.values[:count] @ shares
        normal[rest] = solution.values[count:]
        if solution.errors is None:
            return normal, None
        factors, off = np.abs(solution.values[:count]), solution.errors[:count]
        errors = off @ (np.abs(shares) + unsure) + factors @ unsure
        errors[rest] = solution.errors[count:]
        return normal, errors

    def open_normals(self) -> FloatArray:
        """A basis of the normals that the answers do not exclude."""
        rows, _, sizes = self.system()
        vectors = open_vectors(rows, sizes)
        return np.array([self.normal(NullVector(row, None, 0.0))[0] for row in vectors]).reshape(-1, len(self.units))

    def describe(self) -> str:
        """What the answers moved."""
        moved, count = int(self.shares.revealed.sum()), self.shares.count
        sets = f"in {count} sets that never moved together" if count > 1 else "together"
        return f"{moved} of {len(self.units)} features moved, {sets}; {len(self.answers)} answers, the last one a check"


def _pinned(job: Job) -> BoolArray:
    """The features that questions cannot vary."""
    p, where = len(job.start), job.where
    pinned = np.zeros(p, dtype=bool)
    if not where.is_everything:
        for i, axis in enumerate(np.eye(p)):
            pinned[i] = where.room(job.start, axis) <= 0 and where.room(job.start, -axis) <= 0
    return pinned


def _ask_until_determined(job: Job, gathered: _Gathered) -> NullVector:
    """Answers until the equations leave one normal open."""
    session = job.session
    label = int(job.orient and session.can_label)
    session.require(2 + label, "rebuilding the model from the features that move")
    spare = max(SPARE, session.dimension)
    while True:
        gathered.ask()
        asked = len(gathered.answers) + gathered.refused
        if gathered.seen is None:
            if asked >= FIRST_TRIES:
                raise NoExplanation(
                    f"the service moved none of {asked} starts away from where they were; give start=, a point that it explains"
                )
            continue
        if gathered.still_needed == 0:
            solution = null_vector(*gathered.system())
            if solution is not None:
                return solution
        elif gathered.crossed or gathered.refused:
            session.require(gathered.still_needed + 1 + label, "rebuilding the model from the features that move")
        if asked >= gathered.unknowns + spare:
            raise ExtractionFailed(
                f"{len(gathered.answers)} answers (and {gathered.refused} questions without one) leave more than one normal open: "
                "the answers do not vary with the questions in some feature, or the bounds leave no room",
                unidentified=gathered.open_normals(),
            )


def _confirm(
    job: Job,
    gathered: _Gathered,
    normal: FloatArray,
    errors: FloatArray | None,
    offset: float,
    offset_bound: float | None,
) -> None:
    """One more answer must lie on the plane, and its step must be proportional to the normal's share of what it moved."""
    last = gathered.refused + FIRST_TRIES
    while not gathered.ask():
        if gathered.refused >= last:
            raise NoExplanation(f"the service explained none of {FIRST_TRIES} more points: nothing confirms the model")
    answer = np.where(gathered.hidden, 0.0, gathered.answers[-1])
    miss = abs(float(normal @ answer) - offset)
    size = float(np.abs(normal) @ np.abs(answer)) + abs(offset)
    allowed = 1e-8 * size
    if errors is not None and offset_bound is not None:
        blur = float(np.abs(normal) @ gathered.blur[-1]) + FLOAT64_ANSWER * size
        allowed = 2 * (float(errors @ np.abs(answer)) + offset_bound + blur)
    row = job.session.row
    if miss > allowed:
        raise BrokenPromise(
            f"the answers do not fit ℓ2 steps that move only some features: the answer in row {row} lies {miss:.3g} off the plane "
            f"of the others (allowed: {allowed:.1g}). The distance may be another one, or the answers rounded or heuristic",
            fact="OnPlane",
            excess=miss,
            row=row,
        )
    gathered.shares.refuse_other_steps(
        normal, errors, gathered.questions[-1], gathered.answers[-1], gathered.tolerance, row
    )


def _assumptions(norm: Norm, hidden: np.ndarray) -> tuple[str, ...]:
    notes = [
        f"on the features that an answer moves, its step is the shortest one under {norm!r}",
        "answers lie exactly on the plane; one more answer than needed confirmed both",
    ]
    if len(hidden):
        notes.append(
            f"features {hidden.tolist()} could neither be varied nor were they moved: their coefficients are set to 0 and their "
            "part of the score is in the offset; the bounds are for the others"
        )
    return tuple(notes)
