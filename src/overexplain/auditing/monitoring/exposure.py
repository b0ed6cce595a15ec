"""What the answers in some rows give away: decisions that are proved, and how far models that fit can differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from overexplain.auditing.monitoring.monitor_report import Exposure, Moment
from overexplain.auditing.monitoring.rank import Directions, Scale
from overexplain.auditing.monitoring.recoverable import Recovery, conflict, is_clear, moment, recovered
from overexplain.auditing.monitoring.rows import Rows
from overexplain.auditing.monitoring.usual import Measured
from overexplain.errors import InconsistentLog
from overexplain.extraction.inexact.version_space import MOST_ROWS, version_space
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.verdicts import Verdict

CLOSELY = 0.01
"""All models that fit within this angle: close enough to count as known."""

NEAREST = 300
"""Proofs use at most so many decisions of each kind, those nearest to the boundary: the others hardly add anything."""

EXPLAINED = 2
"""Proofs use at most so many times p explanations, those that tell something new first."""

THINNEST, FARTHEST = 1e-6, 1e4
"""Margins below, and distances from the middle above (in spreads), are left out of the search for proofs."""

WHOLE = 20_000
"""Of at most so many rows all are used for what the most telling ones leave open."""

PATIENCE = 5.0
"""Seconds for one holder's proofs; what is open then is undecided."""


@final
@dataclass(frozen=True, eq=False)
class Watch:
    """What all exposures are worked out from. `boundary`: the model that angles are measured from, if there is one."""

    rows: Rows
    planes: IntArray
    scale: Scale
    seen: Measured
    boundary: Hyperplane | None


def exposure(watch: Watch, own: IntArray, reference: FloatArray, left_out: IntArray | None = None) -> Exposure:
    """What the rows `own` give away about the reference points.

    Questions in `left_out` (by their numbers) may show that one model alone fits; nothing else is concluded from them.
    """
    rows = watch.rows
    found = recovered(rows, own, watch.planes, watch.scale)
    known: Literal["exactly", "closely", "partly"] = "partly"
    space: _Space | None = None
    when: Moment | None = None
    kept = own
    if found.plane is not None:
        known, when = "exactly", moment(rows, own, int(found.telling[-1]), found.telling)
        angle = None if watch.boundary is None else _between(found.plane, watch.boundary, watch.scale)
    else:
        if left_out is not None:
            kept = own[~np.isin(watch.seen.questions[own], left_out)]
        space = _space(watch, kept, found.directions)
        angle = None if space is None else space.angle
        if space is not None and space.angle <= CLOSELY:
            part = _close_part(watch, kept)
            known, when = "closely", moment(rows, own, int(part[-1]), part)
    used = found.telling
    if not len(reference):
        shares = Shares(None, None, None)
    elif found.plane is not None:
        clear = float(np.mean(is_clear(found.plane, reference)))
        shares = Shares(clear, 0.0, clear)
    elif known == "closely" and space is not None:
        used = space.rows
        shares = Shares(space.determined(watch.scale(reference)), 0.0, 1.0)
    else:
        used, shares = _proved(watch, kept, found, reference)
    return Exposure(
        requests=len(own),
        labels=int(np.count_nonzero(rows.labels[own])),
        explanations=int(np.count_nonzero(rows.explained[own])),
        exact=int(np.count_nonzero(watch.planes[own] >= 0)),
        distinct=len(np.unique(watch.seen.questions[own])),
        rank=found.rank,
        complete=rows.dimension - 1,
        known=known,
        recoverable_at=when,
        determined=shares.determined,
        undecided=shares.undecided,
        judged=len(reference),
        proved_from=len(used),
        angle=angle,
        at_most=shares.at_most,
    )


@final
@dataclass(frozen=True)
class Shares:
    """Shares of the reference points: determined, left undecided, and what may be determined; None: there are no points."""

    determined: float | None
    undecided: float | None
    at_most: float | None


def _proved(watch: Watch, own: IntArray, found: Recovery, reference: FloatArray) -> tuple[IntArray, Shares]:
    """What the rows `own` prove about the reference points, and the rows that the proofs rest on.

    The most telling rows settle most of it in little time. Fewer answers leave more models, so that what they leave open all of
    the rows may still determine: where these are not too many, they are asked about the rest.
    """
    used = _most_telling(watch, own, found)
    explained = watch.rows.explained[used]
    kept = explained & (np.cumsum(explained) <= max(EXPLAINED * watch.rows.dimension, 1))
    codes = _codes(watch, used, kept, reference)
    is_all = len(used) == len(own) and bool((kept == explained).all())
    left = np.flatnonzero((codes != YES) & (codes != NO))
    if len(left) and not is_all and len(own) <= WHOLE:
        used, is_all = own, True
        codes[left] = _codes(watch, own, watch.rows.explained[own], reference[left])
    determined, undecided = float(np.mean(np.abs(codes) == 1)), float(np.mean(codes == Verdict.UNDECIDED))
    at_most = min(1.0, determined + undecided) if is_all or determined == 1 else 1.0
    return used, Shares(determined, undecided, at_most)


def _codes(watch: Watch, rows: IntArray, explained: BoolArray, points: FloatArray) -> NDArray[np.int8]:
    """What these rows say about the points; of those not `explained` the decision alone."""
    if not len(rows):
        return np.full(len(points), Verdict.UNKNOWN, dtype=np.int8)
    try:
        return np.array(Knowledge(watch.rows.log_of(rows, explained), time_limit=PATIENCE).certify(points).codes)
    except InconsistentLog as error:
        raise conflict(watch.rows, rows, error) from None


def _most_telling(watch: Watch, own: IntArray, found: Recovery) -> IntArray:
    """The rows that proofs are looked for in: telling explanations, and the decisions nearest to the boundary.

    Without questions that only an attacker asks, all but on the boundary or very far away: they leave so little room that exact
    proofs take for ever, and what they prove is in the angle.
    """
    telling = found.telling[np.isin(found.telling, own)]
    fit = own[(watch.seen.spreads[own] <= FARTHEST) & ~(watch.seen.margins[own] < THINNEST)]
    near = [_nearest(watch, fit[watch.rows.labels[fit] == label], NEAREST) for label in (NO, YES)]
    return _distinct(np.concatenate([telling, *near]))


def _distinct(rows: IntArray) -> IntArray:
    """Each once, in the order given: explanations that tell most come first."""
    return rows[np.sort(np.unique(rows, return_index=True)[1])]


def _nearest(watch: Watch, own: IntArray, most: int) -> IntArray:
    if len(own) <= most:
        return own
    margins = watch.seen.margins[own]
    return own[np.sort(np.argsort(margins, kind="stable")[:most])]


def _between(plane: Hyperplane, boundary: Hyperplane, scale: Scale) -> float:
    """The angle between two planes, whichever side is Yes, features in units of their spread."""
    one, other = (Hyperplane(h.normal * scale.spread, 0.0) for h in (plane, boundary))
    return min(one.angle_to(other), one.flipped().angle_to(other))


@final
@dataclass(frozen=True, eq=False)
class _Space:
    """All planes that separate the sided points, known directions of the boundary projected out.

    angle   bound on the angle between `normal`, of length 1, and the normal of any of them
    rows    the log's rows that the points are from
    rest    an orthonormal basis of what is not projected out
    """

    angle: float
    normal: FloatArray
    points: FloatArray
    labels: FloatArray
    rows: IntArray
    rest: FloatArray

    def determined(self, reference: FloatArray) -> float:
        """The share of points whose side is the same for every plane.

        a·x − b ≥ a·(x − y) for every y on the Yes side, and a·(x − y) ≥ u·(x − y) − ‖a − u‖·‖x − y‖ with u the normal; likewise
        on the No side.
        """
        turned = 2 * np.sin(self.angle / 2) + 1e-12
        asked = reference @ self.rest.T
        certain = np.zeros(len(asked), dtype=bool)
        for label in (NO, YES):
            own = self.points[self.labels == label]
            for i, x in enumerate(asked):
                steps = x - own
                reach = label * (steps @ self.normal) - turned * np.linalg.norm(steps, axis=1)
                certain[i] |= bool(reach.max(initial=-np.inf) > 0)
        return float(np.mean(certain))


def _space(watch: Watch, own: IntArray, directions: Directions) -> _Space | None:
    """Every plane that fits the decisions, also those that an explanation changes; None without a bound below a right angle.

    A point on the boundary is on both sides of it.
    """
    if watch.boundary is None:
        return None
    points, labels, rows = _sided(watch, own)
    normal = watch.boundary.normal * watch.scale.spread
    normal = normal / np.abs(normal).max()
    rest = np.eye(len(normal))
    if directions.rank:
        rest = np.linalg.svd(directions.basis, full_matrices=True)[2][directions.rank :]
    points, normal, both = points @ rest.T, rest @ normal, np.repeat(directions.on_boundary @ rest.T, 2, axis=0)
    if len(np.unique(labels)) < 2 or not normal.any():
        return None
    found = version_space(np.vstack([points, both]), np.append(labels, [-1.0, 1.0][: len(both)]), normal)
    if found is None and len(both):  # without it the bound is only wider
        found = version_space(points, labels, normal)
    if found is None:
        return None
    return _Space(found.angle, normal / np.linalg.norm(normal), points, labels, rows, rest)


def _sided(watch: Watch, own: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Points in units of the features' spread, which side they are on, and their rows: questions, and explanations across."""
    rows, most = watch.rows, MOST_ROWS * watch.rows.dimension
    asked = np.concatenate([_nearest(watch, own[rows.labels[own] == label], most) for label in (NO, YES)])
    across = own[rows.explained[own] & (rows.labels[own] != 0)]
    valid = np.array([not m.tolerance and (m.slack is None or not m.is_plain) for m in rows.mechanisms] + [False])
    across = _nearest(watch, across[valid[rows.mechanism_ids[across]]], most)
    points = np.vstack([rows.points(asked), rows.explanations(across)])
    labels = np.concatenate([rows.labels[asked], -rows.labels[across]]).astype(np.float64)
    return watch.scale(points), labels, _distinct(np.concatenate([asked, across]))


def _close_part(watch: Watch, own: IntArray) -> IntArray:
    """The first of the rows from which on all models that fit are close together; to within one row in twenty."""
    few, enough = 0, len(own)
    while enough - few > max(1, enough // 20):
        middle = (few + enough) // 2
        part = own[:middle]
        space = _space(watch, part, recovered(watch.rows, part, watch.planes, watch.scale).directions)
        if space is not None and space.angle <= CLOSELY:
            enough = middle
        else:
            few = middle
    return own[:enough]
