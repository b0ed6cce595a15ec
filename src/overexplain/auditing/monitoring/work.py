"""One log being monitored, step by step: its boundary, its alarms, what its clients know, and the report of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.auditing.monitoring import alarms as rules
from overexplain.auditing.monitoring.exposure import CLOSELY, Watch, exposure
from overexplain.auditing.monitoring.monitor_report import (
    KINDS,
    NO_CLIENT,
    Alarm,
    Client,
    Kind,
    Moment,
    MonitorReport,
    Watched,
    Yardstick,
)
from overexplain.auditing.monitoring.rank import Scale, levels, ranks
from overexplain.auditing.monitoring.recoverable import contradiction, misfits, moment, recovered
from overexplain.auditing.monitoring.rows import Rows
from overexplain.auditing.monitoring.times import iso
from overexplain.auditing.monitoring.usual import (
    Measured,
    first_time,
    fitted,
    measured,
    population,
    scale_of,
    signed_margins,
)
from overexplain.auditing.written import provenance
from overexplain.errors import InvalidInput
from overexplain.extraction.precision import NEAR
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray, as_rows
from overexplain.geometry.hyperplane import Hyperplane

Progress = Callable[[str, int, int], None]
Source = Literal["model", "recovered", "fitted"]

PACKAGES = ("numpy", "scipy", "scikit-learn")
REFERENCE = 500
"""Reference points; more are drawn from."""

HELD_OUT = 0.2
"""At most this share of a log's own questions is held out as reference points."""

MOST_ALARMS = 1000


@final
class Work:
    """One log being monitored; every step is worked out once."""

    def __init__(
        self, rows: Rows, truth: Hyperplane | None, reference: ArrayLike | None, rng: np.random.Generator
    ) -> None:
        self.rows, self.truth, self.rng = rows, truth, rng
        self.given = None if reference is None else as_rows(reference, rows.dimension, "reference")
        if self.given is not None and not len(self.given):
            raise InvalidInput("reference has no rows; leave it out to use questions of the log")
        self.usual_rows = population(rows, rng)
        self.scale: Scale = scale_of(rows.points(self.usual_rows) if self.given is None else self.given)
        self.planes = levels(rows)
        self.boundary: Hyperplane | None = truth
        self.source: Source | None = None if truth is None else "model"
        self._seen: Measured | None = None

    def find_boundary(self) -> None:
        """Find the boundary if it is not given; given or recovered, it must fit every row."""
        everything = np.arange(len(self.rows))
        found = recovered(self.rows, everything, self.planes, self.scale)
        plane = found.plane if self.truth is None else self.truth
        if plane is not None:
            against, along, off = misfits(self.rows, plane, self.planes)
            if self.truth is None and len(along) < len(
                against
            ):  # which side is Yes the labels decide, and most of them are right
                plane, against = plane.flipped(), along
            if len(wrong := np.union1d(against, off)):
                raise contradiction(self.rows, tuple(wrong.tolist()), by_model=self.truth is not None)
        if self.truth is None and plane is not None:
            self.boundary, self.source = plane, "recovered"
        if self.boundary is None:
            labelled = self.usual_rows[self.rows.labels[self.usual_rows] != 0]
            points, labels = self.rows.points(labelled), self.rows.labels[labelled].astype(np.int64)
            self.boundary = fitted(points, labels, self.scale)
            self.source = None if self.boundary is None else "fitted"

    def seen(self) -> Measured:
        """Every row, measured."""
        if self._seen is None:
            self._seen = measured(self.rows, self.scale, self.boundary)
        return self._seen

    # Alarms.

    def _population(self, values: FloatArray, of_given: Callable[[FloatArray], FloatArray]) -> rules.Population:
        if self.given is not None and len(self.given) >= rules.ENOUGH:
            return rules.Population(of_given(self.given), np.full(len(self.given), -1))
        usual = self.usual_rows[np.isfinite(values[self.usual_rows])]
        return rules.Population(values[usual], self.rows.codes[usual])

    def alarms(self, quota: int | None) -> tuple[list[Alarm], Yardstick]:
        """All alarms in the order of their rows, and what they compare with."""
        rows, seen, boundary = self.rows, self.seen(), self.boundary
        own, foreign = rules.repeated_explanations(rows, seen)
        found = rules.resubmissions("own-explanations", own, rows, seen)
        found += rules.resubmissions("foreign-explanations", foreign, rows, seen)
        spreads = self._population(seen.spreads, lambda x: np.abs(self.scale(x)).max(axis=1))
        enough = len(spreads.values) >= rules.ENOUGH
        found += rules.unusual_values("far-out", seen.spreads, spreads, rows, seen)
        near: float | None = None
        skipped: list[Kind] = [] if enough else ["far-out"]
        # Whoever follows the advice asks on the boundary: that is the other rules' business.
        margins = np.where(own | foreign, np.inf, seen.margins)
        if boundary is not None:
            usual = self._population(margins, lambda x: np.abs(signed_margins(boundary, self.scale, x)))
            if len(usual.values) >= rules.ENOUGH:
                near = rules.near_limit(usual.values)[0]
                found += rules.unusual_values("boundary", margins, usual, rows, seen)
        if near is None:
            skipped.insert(0, "boundary")
        if quota is None:
            skipped.append("volume")
        else:
            found += rules.volumes(quota, rows)
        whose: Literal["reference", "log"] = "log" if (spreads.codes >= 0).any() else "reference"
        return sorted(found, key=lambda alarm: (alarm.row, KINDS.index(alarm.kind))), Yardstick(
            whose if enough else None,
            len(spreads.values),
            self.source,
            near,
            rules.far_limit(spreads.values)[0] if enough else None,
            tuple(skipped),
        )

    # Exposures.

    def _reference(self) -> tuple[FloatArray, IntArray]:
        """The reference points, and the numbers of those that are questions of the log (none if they were given)."""
        if self.given is not None:
            points = self.given
            if len(points) > REFERENCE:
                points = points[np.sort(self.rng.choice(len(points), REFERENCE, replace=False))]
            return points, np.zeros(0, dtype=np.int64)
        # Of those that stand for all: whoever asks most must not decide which decisions matter.
        first = self.usual_rows[first_time(self.seen().questions[self.usual_rows])]
        count = min(REFERENCE, int(HELD_OUT * len(first)))
        chosen = first[np.sort(self.rng.choice(len(first), count, replace=False))]
        return self.rows.points(chosen), self.seen().questions[chosen]

    def _alone(self, rank: IntArray) -> BoolArray:
        """Clients whose own answers leave one model: rank complete, or an exact answer under a smooth distance (Theorem A)."""
        rows = self.rows
        found = np.zeros(len(rows.clients), dtype=bool)
        for number, mechanism in enumerate(rows.mechanisms):
            norm, secret = mechanism.distance, mechanism.radius is None
            if norm is None:
                continue
            own = np.flatnonzero((self.planes >= 0) & (rows.mechanism_ids == number))
            if not (norm.is_smooth and not secret):
                # One plane more than the boundary itself is known only by its distance from it, or from both sides.
                found[np.unique(rows.codes[own])] |= (rank[np.unique(rows.codes[own])] >= rows.dimension - 1) & (
                    not secret
                )
                continue
            for chunk in rows.chunks(own):
                points, answers = rows.points(chunk), rows.explanations(chunk)
                steep = np.asarray(norm(answers - points)) > NEAR * (
                    np.asarray(norm(points)) + np.asarray(norm(answers))
                )
                found[rows.codes[chunk[steep]]] = True
        return found

    def _holders(self, alone: BoolArray, close: list[Client]) -> list[Alarm]:
        """Alarms for clients who hold the model: exactly, or as closely as `CLOSELY`."""
        rows, found = self.rows, []
        order, starts = rows.by_client()
        for c in np.flatnonzero(alone)[:MOST_ALARMS].tolist():
            own = order[starts[c] : starts[c + 1]]
            told = recovered(rows, own, self.planes, self.scale)
            row = int(own[-1] if told.plane is None else told.telling[-1])
            found.append(_holder(rows.clients[c], moment(rows, own, row, told.telling), None, rows.explained[own]))
        for one in close:
            assert one.exposure.recoverable_at is not None
            own = np.flatnonzero(rows.codes == rows.clients.index(one.client))
            found.append(_holder(one.client, one.exposure.recoverable_at, CLOSELY, rows.explained[own]))
        return found

    def report(
        self,
        seen: Measured,
        alarms: tuple[list[Alarm], Yardstick],
        detail: int,
        rng: Any,
        show: Progress,
    ) -> MonitorReport:
        """Everything, put together."""
        rows = self.rows
        found, yardstick = alarms
        order, starts = rows.by_client()
        rank = ranks(rows, self.planes, self.scale, order)
        alone = self._alone(rank)
        watch = Watch(rows, self.planes, self.scale, seen, self.boundary)
        reference, held_out = self._reference()
        everything = np.arange(len(rows))
        pooled = exposure(watch, everything, reference, held_out)
        kinds: dict[str, list[Kind]] = {}
        for alarm in found:
            kinds.setdefault(alarm.client, []).append(alarm.kind)
        code = {rows.clients[c]: c for c in range(len(rows.clients))}
        alarmed = np.zeros(len(rows.clients), dtype=bool)
        alarmed[[code[client] for client in kinds]] = True
        # Those who can rebuild the model or behave as if they wanted to, then who has come farthest.
        worst = np.lexsort((-np.diff(starts), -rank, ~alarmed, ~alone))[:detail]
        clients = []
        for done, c in enumerate(worst.tolist()):
            show(f"working out what clients know, {done} of {len(worst)}", 3 * len(worst) + done, 4 * len(worst))
            own = order[starts[c] : starts[c + 1]]
            if len(rows.clients) == 1:
                told = pooled
            else:
                others = (
                    ~np.isin(held_out, seen.questions[own]) if len(held_out) else np.ones(len(reference), dtype=bool)
                )
                told = exposure(watch, own, reference[others])
            name = rows.clients[c]
            alone[c] |= told.known == "exactly"
            clients.append(Client(name, *_span(rows.times[own]), told, tuple(kinds.get(name, ()))))
        clients.sort(key=_exposed)
        named = alone & [name != NO_CLIENT for name in rows.clients]  # whose the others are is not known
        close = [one for one in clients if one.exposure.known == "closely" and one.client != NO_CLIENT]
        holders = {rows.clients[c] for c in np.flatnonzero(named)} | {one.client for one in close}
        found = sorted([*found, *self._holders(named, close)], key=lambda alarm: (alarm.row, KINDS.index(alarm.kind)))
        clients = [replace(c, alarms=("holds-model", *c.alarms)) if c.client in holders else c for c in clients]
        counts = Counter(alarm.kind for alarm in found) | Counter({"holds-model": len(holders)})
        bare = int(np.count_nonzero(rows.explained & (rows.mechanism_ids < 0)))
        if bare or bool((alone & ~named).any()):
            yardstick = replace(yardstick, not_evaluated=("holds-model", *yardstick.not_evaluated))
        return MonitorReport(
            log=Watched(
                len(rows), pooled.labels, pooled.explanations, bare, len(rows.clients),
                rows.features or tuple(f"x{i}" for i in range(rows.dimension)),
                tuple(mechanism.describe() for mechanism in rows.mechanisms), *_span(rows.times),
            ),
            pooled=pooled,
            clients=tuple(clients),
            alone=int(np.count_nonzero(named)),
            alarms=tuple(found[:MOST_ALARMS]),
            alarm_counts={kind: counts[kind] for kind in KINDS},
            alarmed=len(holders | kinds.keys()),
            yardstick=yardstick,
            reference=None if not len(reference) else "held out" if self.given is None else "given",
            reference_points=len(reference),
            compared_with=self.source,
            closely=CLOSELY,
            gates=(),
            provenance=provenance(int(rng) if isinstance(rng, int | np.integer) else 0, PACKAGES),
        )  # fmt: skip


def _holder(client: str, when: Moment, angle: float | None, explained: BoolArray) -> Alarm:
    total = int(np.count_nonzero(explained))
    return Alarm("holds-model", client, when.row, when.time, when.requests, when.explanations, angle, 0.0, None, total)


def _exposed(client: Client) -> tuple[float, ...]:
    """A key that puts the worst first."""
    told = client.exposure
    return (
        -("partly", "closely", "exactly").index(told.known),
        -(told.determined or 0.0),
        -told.rank,
        told.angle if told.angle is not None else 9.0,
        -told.requests,
    )


def _span(times: FloatArray) -> tuple[str | None, str | None]:
    known = times[np.isfinite(times)]
    return (iso(float(known.min())), iso(float(known.max()))) if len(known) else (None, None)
