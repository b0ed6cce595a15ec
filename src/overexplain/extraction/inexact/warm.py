"""Explanations of any quality as a head start: what they say of the normal is a guess, labels make it certain.

Whatever is wrong with the explanations costs labels, never correctness. Without labels there is only the guess: many explanations,
averaged in the way that suits them best.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.extraction.inexact.estimators import (
    MEAN,
    Estimate,
    best_estimate,
    displacement_mean,
    frame,
    n_needed,
    split_angle,
)
from overexplain.extraction.inexact.gathered import Gathered, gather, read_log
from overexplain.extraction.inexact.version_space import version_space
from overexplain.extraction.job import Job
from overexplain.extraction.labels.floors import predicted_labels
from overexplain.extraction.labels.labels import Rough, extract_by_labels
from overexplain.extraction.labels.pairs import Pair
from overexplain.extraction.result import Extraction
from overexplain.extraction.session import Session
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.norm import UNIT_ROUNDOFF
from overexplain.log.querylog import QueryLog

FEW = 4
"""So many explanations are enough if their displacements are parallel: more would say the same."""

STRETCHES = (1.0, 1.2, 1.6, 2.4, 4.0, 10.0)
"""An explanation that does not flip the label is lengthened by these factors until it does."""

PROBES = 2
"""So many random directions test a guess that the explanations themselves cannot judge."""

DOUBTFUL = 4.0
"""A guess is tested if the explanations' scatter would allow an error so many times larger than split halves show."""

COARSER = 30.0
"""A guess that fails the test at one angle is tested at one so many times larger."""

FIRST_ANGLE, NEXT_ANGLE = 1e-3, 6.0
"""A model whose error nobody knows is tested at this angle first, then at one so many times larger."""

WRONG = 0.3
"""A guess that is farther off than this many radians is no better than none."""

FAR = 100.0
"""Tests ask at most this many times as far away as an explanation is from its question."""

MOST_ANSWERS = 20_000
"""Averaging asks for at most this many explanations unless told otherwise."""


def predict_warm(p: int, accuracy: float, angle: float) -> int:
    """About how many labels a warm-started bisection takes, `angle` the error of the guess; never more than a cold start."""
    return math.ceil(min(predicted_labels(p, accuracy, angle), predicted_labels(p, accuracy)))


def extract_warm(job: Job, n: int | None = None) -> Extraction:
    """The hyperplane by labels, started from n explanations: 4 if their displacements are parallel, else 3p, unless said.

    If the guess is so poor that a cold start is predicted to cost no more, the explanations are left aside.
    """
    session, p = job.session, job.session.dimension
    if not session.can_label:
        raise InvalidInput("a warm start needs labels to go on with; without them use extract_by_average")
    gathered = gather(job, FEW if n is None else n)
    pair = _pair(job, gathered)
    guess = best_estimate(gathered.questions, gathered.answers, gathered.sides)
    angle: float | None = guess.angle
    if n is None and p > 1:
        likely = _likely(gathered, guess)
        fine = max(_aim(job, likely), likely)
        if gathered.is_parallel and pair is not None and guess.angle > DOUBTFUL * fine:
            angle, pair = _tested(job, guess.normal, pair, fine, COARSER)
        if angle is None or not gathered.is_parallel:
            gathered = _joined(gathered, gather(job, max(1, 3 * p - FEW)))
            guess = best_estimate(gathered.questions, gathered.answers, gathered.sides)
            angle = guess.angle
    assert angle is not None
    if p == 1 or predicted_labels(p, job.accuracy, angle) >= predicted_labels(p, job.accuracy):
        found = extract_by_labels(session, job.accuracy, job.start, job.where, job.rng, pair=pair)
        used = f"{len(gathered.answers)} explanations were too poor a start and were left aside"
    else:
        found = _by_labels(job, guess, angle, _likely(gathered, guess), pair)
        used = f"{len(gathered.answers)} explanations only set the starting point ({guess.name}, about {angle:.1g} rad off)"
    return replace(
        found, method=f"explanations as a start, then {found.method}", assumptions=(*found.assumptions, used)
    )


def extract_from(job: Job, rough: Extraction) -> Extraction:
    """The hyperplane by labels, started from a model that is not accurate enough; as if from none if it is far off."""
    session, p = job.session, job.session.dimension
    length = float(np.linalg.norm(rough.hyperplane.normal))
    normal, offset = rough.hyperplane.normal / length, rough.hyperplane.offset / length
    gathered = None if session.log is None else read_log(session.log)
    pair = None if gathered is None else _pair(job, gathered)
    angle = rough.error_bound
    if angle is None and p > 1 and pair is not None:
        angle, pair = _tested(job, normal, pair, max(job.accuracy / 10, FIRST_ANGLE), NEXT_ANGLE)
    if p == 1 or angle is None:
        return extract_by_labels(session, job.accuracy, job.start, job.where, job.rng, pair=pair)
    angle = min(angle, WRONG)
    found = _by_labels(job, Estimate(normal, offset, angle, "the first model"), angle, angle, pair)
    used = f"the first model only set the starting point (about {angle:.1g} rad off)"
    return replace(found, method=f"{rough.method}, then {found.method}", assumptions=(*found.assumptions, used))


def _by_labels(job: Job, guess: Estimate, angle: float, likely: float, pair: Pair | None) -> Extraction:
    """The hyperplane by labels from a guess of which `angle` is expected; it is handed over itself if it proves the better one."""
    aim = _aim(job, likely)
    rough = Rough(guess.normal, angle)
    try:
        found = extract_by_labels(job.session, aim, job.start, job.where, job.rng, pair=pair, rough=rough)
    except BudgetExhausted as end:
        end.found = None if end.found is None else _better_of(end.found, guess, likely)
        raise
    return _better_of(found, guess, likely) if aim < job.accuracy else found


def _likely(gathered: Gathered, guess: Estimate) -> float:
    """About how far off a guess is once labels have confirmed it: parallel displacements as little as they differ."""
    if not gathered.is_parallel or guess.name != MEAN:
        return guess.angle
    return split_angle(displacement_mean, gathered.questions, gathered.answers, gathered.sides)


def _aim(job: Job, likely: float) -> float:
    """What labels are to prove: half of the accuracy where the guess is better, so that it is proved as accurate as wanted."""
    return job.accuracy / 2 if likely < job.accuracy / (2 * DOUBTFUL) else job.accuracy


def _better_of(found: Extraction, guess: Estimate, likely: float) -> Extraction:
    """What labels know, or the guess, if that seems the better one and no label contradicts it.

    The guess is no farther from the model than from the middle of what the labels leave open, and that from the model.
    """
    bound = math.pi if found.error_bound is None else found.error_bound
    turned = Hyperplane(guess.normal, 0.0).angle_to(found.hyperplane)
    if likely >= bound / DOUBTFUL or turned > bound:
        return found
    low, high = _levels(guess.normal, found.log)
    if not low < high:
        return found
    offset = guess.offset if math.isinf(high - low) and low < guess.offset <= high else (low + high) / 2
    if not math.isfinite(offset):
        return found
    moved = abs(offset - found.hyperplane.offset) * (1 + 8 * UNIT_ROUNDOFF)
    return replace(
        found,
        hyperplane=Hyperplane(guess.normal, offset),
        error_bound=min(math.pi, bound + turned + UNIT_ROUNDOFF),
        offset_bound=None if found.offset_bound is None else found.offset_bound + moved,
        method=f"{guess.name}, held against labels",
    )


def _levels(normal: FloatArray, log: QueryLog | None) -> tuple[float, float]:
    """Between which offsets all labels fit this normal: low < b ≤ high; nothing lies between them if they contradict it."""
    if log is None:
        return 0.0, 0.0
    low = (log.points[log.labelled(NO)] @ normal).max(initial=-math.inf)
    high = (log.points[log.labelled(YES)] @ normal).min(initial=math.inf)
    return float(low), float(high)


def extract_by_average(job: Job, n: int | None = None, check: bool = False, most: int = MOST_ANSWERS) -> Extraction:
    """The hyperplane estimated from n explanations alone (as many as the accuracy is predicted to take, at most `most`).

    `check` asks the label of every question and of every explanation. If all of them flip, every model that fits lies in a
    version space, and `error_bound` is proved; else the error is only estimated, and there is no bound.
    """
    session, p = job.session, job.session.dimension
    if check and not session.can_label:
        raise InvalidInput("checking that explanations flip needs labels, which this service does not give")
    first = min(most, 4 * (p + 2) if n is None else n)
    gathered = gather(job, first)
    guess = best_estimate(gathered.questions, gathered.answers, gathered.sides)
    if n is None and guess.angle > job.accuracy:
        # The angle falls like 1/√n: p σ²/d² answers are as many as were asked times the square of what is missing.
        wanted = n_needed(first, job.accuracy, guess.angle, 1.0)
        if min(wanted, most) > first:
            gathered = _joined(gathered, gather(job, min(wanted, most) - first))
            guess = best_estimate(gathered.questions, gathered.answers, gathered.sides)
    bound = offset_bound = None
    notes = []
    if check:
        bound, offset_bound, note = _checked(job, gathered, guess)
        notes.append(note)
    return replace(_guess_alone(session, gathered, guess, notes), error_bound=bound, offset_bound=offset_bound)


def _guess_alone(session: Session, gathered: Gathered, guess: Estimate, notes: list[str]) -> Extraction:
    """The estimate as a result, with nothing proved about it."""
    notes = [f"the error of the normal is estimated at {guess.angle:.1g} rad from the answers' own scatter", *notes]
    if not gathered.oriented:
        notes.append("no label told which side is Yes")
    return Extraction(
        hyperplane=Hyperplane(guess.normal, guess.offset),
        spent=session.spent,
        log=session.log,
        method=f"average of {len(gathered.answers)} explanations: {guess.name}",
        assumptions=tuple(notes),
        exact=False,
        error_bound=None,
        offset_bound=None,
        oriented=gathered.oriented,
        radius=None,
        radius_bound=None,
        unidentified=np.zeros((0, session.dimension)),
    )


def guessed(session: Session) -> Extraction | None:
    """What the explanations that came so far say of the model, without a bound; None if they say nothing."""
    gathered = None if session.log is None else read_log(session.log)
    if gathered is None:
        return None
    guess = best_estimate(gathered.questions, gathered.answers, gathered.sides)
    low, high = _levels(guess.normal, session.log)
    if gathered.oriented and -math.inf < low < high < math.inf and not low < guess.offset <= high:
        guess = replace(guess, offset=(low + high) / 2)  # labels know better
    return _guess_alone(session, gathered, guess, [])


def _joined(one: Gathered, other: Gathered) -> Gathered:
    """Both together."""
    if one is other:
        return one
    flip = 1
    if not one.oriented:  # each has called its own first question No: compare the displacements
        towards = [-(part.sides @ (part.answers - part.questions)) for part in (one, other)]
        flip = 1 if float(towards[0] @ towards[1]) >= 0 else -1
    return Gathered(
        np.vstack([one.questions, other.questions]),
        np.vstack([one.answers, other.answers]),
        np.concatenate([one.sides, flip * other.sides]),
        one.oriented,
        one.failures + other.failures,
    )


def _pair(job: Job, gathered: Gathered) -> Pair | None:
    """A point labelled No and one labelled Yes: a question and its answer, lengthened if it does not flip; None if not found."""
    for x, z in list(zip(gathered.questions, gathered.answers, strict=True))[:2]:
        own = job.session.label(x)
        for stretch in STRETCHES:
            across = job.where.clip(x + stretch * (z - x))
            if job.session.label(across) != own:
                return (x, across) if own == NO else (across, x)
    return None


def _tested(job: Job, u: FloatArray, pair: Pair, angle: float, coarser: float) -> tuple[float | None, Pair]:
    """About how far the unit normal u is off, and the pair, maybe narrower; None if u is wrong.

    Parallel displacements agree on a direction, but under most norms not on the normal's. How far answers scatter about the plane
    tells the two apart only if their margins are constant; where it does not, labels do: from the middle of the pair, far along
    random directions t across u, they tell whether |a·t/a·u| exceeds s. The smallest angle is tried first.
    """
    p = len(u)
    reach = FAR * float(np.linalg.norm(pair[1] - pair[0]))
    while angle < WRONG:
        size = 4 * angle / math.sqrt(p)
        pair = _narrowed(job, pair, reach * size / 8)
        directions = job.rng.normal(size=(PROBES, p - 1)) @ frame(u)
        if not any(_exceeds(job, pair, reach, t / np.linalg.norm(t), u, size) for t in directions):
            return angle, pair
        angle *= coarser
    return None, pair


def _narrowed(job: Job, pair: Pair, gap: float) -> Pair:
    """The pair, halved until it is at most `gap` long or as short as float64 allows."""
    no, yes = pair
    while float(np.linalg.norm(yes - no)) > gap:
        middle = job.where.clip(no / 2 + yes / 2)
        if np.array_equal(middle, no) or np.array_equal(middle, yes):
            break
        if job.session.label(middle) == YES:
            yes = middle
        else:
            no = middle
    return no, yes


def _exceeds(job: Job, pair: Pair, reach: float, t: FloatArray, u: FloatArray, size: float) -> bool:
    """True if a label shows |a·t/a·u| > size."""
    middle = pair[0] / 2 + pair[1] / 2
    for sign in (1.0, -1.0):
        along = sign * t - size * u  # No there if sign·a·t/a·u < size and the middle's own distance does not matter
        distance = min(reach, 0.9 * job.where.room(middle, along))
        if job.session.label(job.where.clip(middle + distance * along)) == YES:
            return True
    return False


def _checked(job: Job, gathered: Gathered, guess: Estimate) -> tuple[float | None, float | None, str]:
    """The version space's bounds if every explanation flips; else why there are none."""
    points = [*gathered.questions, *gathered.answers]
    labels = [job.session.label(x) if job.where.contains(x) else 0 for x in points]
    own, across = np.array(labels).reshape(2, -1)
    if (own * across == 0).any():
        return None, None, "some explanations lie outside the bounds, where labels are not asked: no error bound"
    if (own == across).any():
        count = int((own == across).sum())
        return None, None, f"{count} of {len(own)} explanations do not flip the label: no error bound"
    space = version_space(points, labels, guess.normal)
    if space is None:
        return None, None, "the labelled points leave models more than a right angle apart: no error bound"
    offset = max(space.offset_high - guess.offset, guess.offset - space.offset_low)
    return space.angle, offset, "all explanations were checked to flip the label"
