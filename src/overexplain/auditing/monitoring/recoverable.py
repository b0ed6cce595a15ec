"""From which answer on one model alone fits: the few rows that tell something new, and `recover` on them.

An exact explanation tells something new if it shows a new direction of the boundary, or moves other features than those before
it (tied answers reveal more). All other rows only repeat equations, so a million rows shrink to a few times p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from overexplain.auditing.monitoring.monitor_report import Moment
from overexplain.auditing.monitoring.rank import Directions, Scale
from overexplain.auditing.monitoring.rows import Rows
from overexplain.auditing.monitoring.times import iso
from overexplain.errors import InconsistentLog
from overexplain.extraction.recover import FITS, recover
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.hyperplane import Hyperplane

PATTERNS = 3
"""At most so many times p ways to move features are looked at."""

NAMED = 5
"""So many rows and clients of a contradiction are named."""


@final
@dataclass(frozen=True, eq=False)
class Recovery:
    """What the exact explanations of some rows tell.

    plane     the one model that fits; None: several do. Which side is Yes is known if a label says so
    telling   the rows that tell something new, in order; all that the plane rests on, if there is one
    rank      directions of the boundary among all of them
    """

    plane: Hyperplane | None
    telling: IntArray
    directions: Directions

    @property
    def rank(self) -> int:
        """How many directions of the boundary are shown."""
        return self.directions.rank


def recovered(rows: Rows, own: IntArray, planes: IntArray, scale: Scale) -> Recovery:
    """What the rows `own` tell together; InconsistentLog, with the rows and who asked them, if no model fits."""
    exact = own[planes[own] >= 0]
    directions, patterns = Directions(rows.dimension), _Patterns(rows)
    telling = np.zeros(0, dtype=np.int64)
    plane = None
    for chunk in rows.chunks(exact):
        answers = rows.explanations(chunk)
        new = set(chunk[directions.add(scale(answers), planes[chunk])].tolist())
        if plane is None:
            new |= set(patterns.add(chunk, answers - rows.points(chunk)))
            telling = np.append(telling, np.array(sorted(new), dtype=np.int64))
            plane = _plane(rows, telling) if new else None
        elif directions.is_complete:
            break
    if plane is not None:
        telling, plane = _shortest(rows, telling, plane)
    return Recovery(plane, telling, directions)


def moment(rows: Rows, own: IntArray, row: int, needed: IntArray) -> Moment:
    """When the holder of the rows `own` knew the model: at `row`; `needed` are the rows that it takes."""
    until = own[own <= row]
    return Moment(
        row,
        iso(float(rows.times[row])),
        len(until),
        int(np.count_nonzero(rows.explained[until])),
        len(np.unique(rows.codes[needed])),
    )


def conflict(rows: Rows, own: IntArray, error: InconsistentLog) -> InconsistentLog:
    """The same error about the log's own rows, with the clients who asked them."""
    where = tuple(int(own[i]) for i in error.rows)
    return contradiction(rows, where, error.proof)


def contradiction(rows: Rows, where: tuple[int, ...], proof: object = None, by_model: bool = False) -> InconsistentLog:
    """The error for rows that no one model, or not the given one (`by_model`), can have answered."""
    shown = ", ".join(f"{row} (client {rows.clients[rows.codes[row]]!r})" for row in where[:NAMED])
    more = f" and {len(where) - NAMED} more" if len(where) > NAMED else ""
    found = f"no linear model fits the log: rows {shown}{more} contradict the others or each other"
    if by_model:
        found = f"the given model did not give the answers in rows {shown}{more}. Either it is another model"
    return InconsistentLog(
        f"{found}{',' if by_model else '. Either'} {'or ' * by_model}the model changed while the log was kept (monitor the parts "
        "one by one), or the explanations are rounded or not the nearest (their terms must say so: tolerance, slack), or a label "
        "is wrong, or the model is not linear",
        rows=where,
        proof=proof,
    )


def misfits(rows: Rows, plane: Hyperplane, planes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Rows that contradict a model by more than rounding.

    Those whose label does, those whose label would if Yes and No were exchanged, and those whose exact plain explanation does.
    """
    against, along, off = ([np.zeros(0, dtype=np.int64)] for _ in range(3))
    for chunk in rows.chunks():
        points, labels = rows.points(chunk), rows.labels[chunk]
        signs = np.sign(np.asarray(plane.margin(points))) * is_clear(plane, points) * labels
        against.append(chunk[signs < 0])
        along.append(chunk[signs > 0])
        on = chunk[planes[chunk] == 0]
        off.append(on[is_clear(plane, rows.explanations(on))] if len(on) else on)
    return np.concatenate(against), np.concatenate(along), np.concatenate(off)


def is_clear(plane: Hyperplane, points: FloatArray) -> BoolArray:
    """Which points are off the plane by more than rounding of the answers it was recovered from."""
    size = np.abs(points) @ np.abs(plane.normal) + abs(plane.offset)
    return np.asarray(np.abs(np.asarray(plane.margin(points))) > FITS * size)


def _plane(rows: Rows, telling: IntArray) -> Hyperplane | None:
    try:
        return recover(rows.log_of(telling), orient=False)
    except InconsistentLog as error:
        raise conflict(rows, telling, error) from None


def _shortest(rows: Rows, telling: IntArray, plane: Hyperplane) -> tuple[IntArray, Hyperplane]:
    """The first rows that are enough, and the plane they give: equations only ever add up."""
    few, enough = 0, len(telling)
    while enough - few > 1:
        middle = (few + enough) // 2
        found = _plane(rows, telling[:middle])
        if found is None:
            few = middle
        else:
            enough, plane = middle, found
    return telling[:enough], plane


@final
class _Patterns:
    """Which features have been moved together so far, and which of them the farthest, by service and side."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._most = rows, PATTERNS * rows.dimension
        self._seen: set[tuple[int, int, bytes]] = set()

    def add(self, chunk: IntArray, steps: FloatArray) -> list[int]:
        """The rows that move features in a new way."""
        rows, new = self._rows, []
        for number in np.unique(rows.mechanism_ids[chunk]).tolist():
            terms = rows.mechanisms[number]
            norm = terms.distance
            if norm is None or terms.domain is not None or len(self._seen) >= self._most:
                continue
            own = np.flatnonzero(rows.mechanism_ids[chunk] == number)
            moved = np.abs(steps[own]) * norm.units(rows.dimension)
            most = moved.max(axis=1, keepdims=True)
            bits = np.packbits(np.hstack([moved > 1e-6 * most, moved > (1 - 1e-6) * most]), axis=1)
            marks = np.column_stack([bits, (rows.labels[chunk[own]] + 1).astype(np.uint8)])
            first = np.sort(np.unique(marks, axis=0, return_index=True)[1])
            for i in first[: self._most].tolist():
                mark = (number, int(rows.labels[chunk[own[i]]]), bits[i].tobytes())
                if mark not in self._seen and len(self._seen) < self._most:
                    self._seen.add(mark)
                    new.append(int(chunk[own[i]]))
        return new
