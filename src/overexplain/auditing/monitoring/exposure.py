"""What the answers in some rows give away: decisions that are proved, and how far models that fit can differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from overexplain.auditing.monitoring.monitor_report import Exposure, Moment
from overexplain.auditing.monitoring.rank import Directions, Scale
from overexplain.auditing.monitoring.recoverable import Recovery, conflict, is_clear, moment, recovered
from overexplain.auditing.monitoring.rows import Rows
from overexplain.auditing.monitoring.usual import Measured
from overexplain.errors import InconsistentLog
from overexplain.extraction.inexact.version_space import MOST_ROWS, version_space
from overexplain.geometry.arrays import FloatArray, IntArray
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
    if found.plane is not None:
        clear = is_clear(found.plane, reference)
        determined, undecided = (float(np.mean(clear)), 0.0) if len(reference) else (None, None)
    elif known == "closely" and space is not None:
        used = space.rows
        determined, undecided = (space.determined(watch.scale(reference)), 0.0) if len(reference) else (None, None)
    else:
        used = _most_telling(watch, kept, found)
        determined, undecided = _proved(watch, used, reference)
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
        determined=determined,
        undecided=undecided,
        judged=len(reference),
        proved_from=len(used),
        angle=angle,
    )


def _proved(watch: Watch, used: IntArray, reference: FloatArray) -> tuple[float | None, float | None]:
    """(share of the reference points whose decision the rows prove, share left undecided)."""
    if not len(reference):
        return None, None
    if not len(used):
        return 0.0, 0.0
    explained = watch.rows.explained[used]
    most = EXPLAINED * watch.rows.dimension
    kept = explained & (np.cumsum(explained) <= max(most, 1))
    log = watch.rows.log_of(used, kept)
    try:
        codes = Knowledge(log, time_limit=PATIENCE).certify(reference).codes
    except InconsistentLog as error:
        raise conflict(watch.rows, used, error) from None
    return float(np.mean((codes == YES) | (codes == NO))), float(np.mean(codes == Verdict.UNDECIDED))


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
