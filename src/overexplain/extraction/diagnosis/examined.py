"""An interview examined: each thing in the order in which one rests on another, and the labels that decide it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from overexplain.extraction.diagnosis.families import ENOUGH, Effective, Pattern, effective_distance
from overexplain.extraction.diagnosis.interview import Interview
from overexplain.extraction.diagnosis.margins import classify_gaps
from overexplain.extraction.diagnosis.measured import Measured, measure_margin, plane_points
from overexplain.extraction.diagnosis.oracle_report import Direction
from overexplain.extraction.diagnosis.reading import Reading
from overexplain.extraction.diagnosis.symptoms import same_answers
from overexplain.geometry.hyperplane import NO, YES

EFFECT = 1e-6
"""A feature has an effect if it accounts for this share of how far questions lie from the plane."""

_CHECKED = 8
"""So many answers are asked whether they flip, where labels are better spent on other things."""

_SILENT = 8
"""So many questions without an answer are asked for their labels."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What the exchanges show; fields as in OracleReport. `unmoved`: features that stood still, for whatever reason."""

    reading: Reading
    direction: Direction | None
    measured: Measured
    effective: Effective
    deterministic: bool | None
    immutable: tuple[int, ...]
    unmoved: tuple[int, ...]
    one_hot_snapped: bool | None
    one_sided: int | None
    failures: list[str]


def examine(talk: Interview) -> Examined:
    """Read the interview, asking labels where they decide something."""
    reading = Reading(talk)
    straight = reading.direction() in ("constant", "by side")
    # Where answers lie on planes, every point counts; elsewhere labels are better spent on finding the plane.
    links = classify_gaps(reading.link_gaps(set()), straight)
    on_planes = links in ("zero", "constant")
    if links == "constant":
        reading.is_symmetric()  # while there are labels: they are asked but once
    reading.drop_idle(len(reading.all_rows) if straight and on_planes else _CHECKED)
    direction = reading.direction()
    straight = direction in ("constant", "by side")
    one_sided = _one_sided(reading)
    measured = measure_margin(reading, straight)
    effective = _effective(reading, direction, measured, straight)
    unmoved = _unmoved(reading, effective) if straight else ()
    immutable = _immutable(reading, unmoved, effective, measured)
    if immutable:  # what features cost that never move, nobody can see
        effective = replace(effective, distance=None)
    return Examined(
        reading=reading,
        direction=direction,
        measured=measured,
        effective=effective,
        deterministic=same_answers(talk.exchanges),
        immutable=immutable,
        unmoved=unmoved,
        one_hot_snapped=_snapped(reading),
        one_sided=one_sided,
        failures=[e.failure or "None" for e in talk.exchanges if e.is_failure] + ["no flip"] * len(reading.idle),
    )


def _effective(reading: Reading, direction: Direction | None, measured: Measured, straight: bool) -> Effective:
    if reading.repeated:
        return Effective("heuristic", note="answers from a list")
    mechanism = reading.talk.job.session.mechanism
    declared = None if mechanism is None else mechanism.distance
    points = plane_points(reading, measured.margin, straight)
    return effective_distance(Pattern(reading.steps, reading.lines, direction, measured.margin, points, declared))


def _unmoved(reading: Reading, effective: Effective) -> tuple[int, ...]:
    """Features that stood still while several others moved, always in the same proportions."""
    moved = reading.steps.moved[reading.steps.telling]
    if effective.family == "l1" or len(moved) < ENOUGH + 1 or moved.any(axis=0).sum() < 2:
        return ()  # where one feature moves, it means nothing that the others do not
    still = ~reading.steps.moved.any(axis=0) & reading.place.free
    return tuple(int(i) for i in np.flatnonzero(still))


def _immutable(reading: Reading, unmoved: tuple[int, ...], effective: Effective, measured: Measured) -> tuple[int, ...]:
    """Those of the unmoved features that the label depends on."""
    steps, grid = reading.steps, reading.grid
    if not unmoved or measured.margin not in ("zero", "constant"):
        return ()
    if grid.name is not None and effective.family not in ("l2", "linf"):
        return ()  # under a weighted distance a feature may move by less than the grid shows
    if grid.name is None and effective.normal is not None:  # the plane through the answers says it without labels
        effects = np.abs(effective.normal) * steps.questions.std(axis=0)
        return tuple(i for i in unmoved if effects[i] > EFFECT * float(np.linalg.norm(effects)))
    row = int(steps.telling[steps.lengths[steps.telling].argmax()])
    length = float(steps.lengths[row])
    if length < 200 * grid.half:
        return ()
    # On a grid a feature with little effect may move by less than half a step: then only strong effects count.
    near, far = (0.02, 1.0) if grid.name is None else (0.2, 3.0)
    base = reading.rows[row].question + (1 - measured.size / length - near) * steps.moves[row]
    if not reading.marks.matters(base, np.array(unmoved, dtype=np.int64), far * length):
        return ()
    if 2 * len(unmoved) > reading.marks.left:
        return unmoved
    return tuple(i for i in unmoved if reading.marks.matters(base, np.array([i]), far * length))


def _one_sided(reading: Reading) -> int | None:
    """The only side that is explained, if the silence on the other is no chance."""
    failed = [e for e in reading.talk.exchanges if e.is_failure][:_SILENT]
    silent = [reading.marks.of(e.question) for e in failed]
    spoken = reading.sides.tolist()
    if not reading.talk.labels:
        return None
    for side in (NO, YES):
        heard, missed = spoken.count(side), silent.count(side)
        if heard >= 3 and spoken.count(-side) == 0 and silent.count(-side) >= 2:
            rate = (missed + 1) / (missed + heard + 2)  # of failures on the side that is explained
            if rate ** silent.count(-side) < 0.02:
                return side
    return None


def _snapped(reading: Reading) -> bool | None:
    """True if all answers keep the one-hot groups of the domain valid; None if it has none."""
    groups = () if reading.place.domain is None else reading.place.domain.groups
    if not groups or not reading.rows:
        return None
    parts = [reading.steps.answers[:, list(group)] for group in groups]
    return all(bool(np.isin(part, (0.0, 1.0)).all() and (part.sum(axis=1) == 1).all()) for part in parts)
