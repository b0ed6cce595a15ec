"""What a log gives away, in a plane: two features vary, all others are held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain.auditing.determined import RobustUse
from overexplain.errors import DimensionMismatch, InvalidInput, SolverFailed
from overexplain.geometry.arrays import BoolArray, FloatArray, as_point, frozen
from overexplain.knowledge.verdicts import Verdict
from overexplain.log.querylog import QueryLog

if TYPE_CHECKING:
    from overexplain.knowledge.engine import Knowledge

MARGIN = 0.05
"""How far a slice goes past the log's own points on every side, as a share of their range."""

MOST_NUMBERS = 2**22
"""Numbers in one block of points: a slice of 5000 features must not need gigabytes."""

DIRECTIONS = 144
"""Points on the outline of a ball; among them those along the axes and diagonals, where the balls of l1 and linf have corners."""

PICTURE, COARSE = 1e-3, 4e-3
"""How near to the region the borders of areas should be, as a share of the picture; where they are not, the grid is as good."""

Span = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Axis:
    """A feature that varies: its number, its name, and the values it takes, rising in equal steps."""

    feature: int
    name: str
    values: FloatArray

    @property
    def step(self) -> float:
        """The distance between neighbouring values."""
        return float((self.values[-1] - self.values[0]) / (len(self.values) - 1))


@dataclass(frozen=True, eq=False)
class Slice:
    """The verdicts on a grid of points that differ in two features only.

    codes         a `Verdict` for every point: row i is for `up.values[i]`, column j for `across.values[j]`
    base          the values of all features; those of the two that vary do not matter
    names         the names of all features
    centred       True: the others are held at the log's medians; False: where the caller said
    asked         the log's points that lie in this plane, (m, 2): across, up
    labels        their labels (0: not known)
    explanations  their explanations, (m, 2); NaN where there is none in this plane
    rows          how many points the log has in all
    oriented      False: the log has no label, so Yes and No may be exchanged everywhere
    robust        how the log's robust counterfactuals are used; None if it has none
    balls         outlines of the balls around robust explanations, (k, 2) each: all of it gets the answer's label; none
                  for a radius that is secret
    areas         the certain areas, corners (k, 2) each, as the regions' polygons have them; None: only the grid is known
    """

    across: Axis
    up: Axis
    codes: NDArray[np.int8]
    base: FloatArray
    names: tuple[str, ...]
    centred: bool
    asked: FloatArray
    labels: NDArray[np.int8]
    explanations: FloatArray
    rows: int
    oriented: bool
    robust: RobustUse | None = None
    balls: tuple[FloatArray, ...] = ()
    areas: Mapping[Verdict, FloatArray] | None = None

    @property
    def box(self) -> tuple[Span, Span]:
        """What a picture of it shows: half a step more than the values on every side."""
        across, up = (
            (float(a.values[0] - a.step / 2), float(a.values[-1] + a.step / 2)) for a in (self.across, self.up)
        )
        return across, up

    @property
    def held(self) -> tuple[tuple[str, float], ...]:
        """The features that do not vary, with their values."""
        varying = (self.across.feature, self.up.feature)
        return tuple(
            (n, float(v)) for i, (n, v) in enumerate(zip(self.names, self.base, strict=True)) if i not in varying
        )

    def share(self, *verdicts: Verdict) -> float:
        """The share of the grid that has one of these verdicts."""
        return float(np.isin(self.codes, verdicts).mean())

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready form; `robust` is there if the log has robust counterfactuals."""
        given = [None if np.isnan(point).any() else point.tolist() for point in self.explanations]
        return {
            "across": _written(self.across),
            "up": _written(self.up),
            "held": dict(self.held),
            "codes": self.codes.tolist(),
            "shares": {verdict.name: self.share(verdict) for verdict in Verdict},
            "oriented": self.oriented,
            "asked": [
                {"at": point.tolist(), "label": int(label) or None, "explanation": explanation}
                for point, label, explanation in zip(self.asked, self.labels, given, strict=True)
            ],
            "log_rows": self.rows,
        } | ({} if self.robust is None else {"robust": self.robust.to_dict()})


def take_slice(
    knowledge: Knowledge,
    log: QueryLog,
    features: tuple[int, int],
    at: ArrayLike | None = None,
    size: tuple[int, int] = (61, 31),
    ranges: tuple[Span, Span] | None = None,
    progress: Callable[[int, int], None] | None = None,
    robust: RobustUse | None = None,
) -> Slice:
    """The slice of what `knowledge` of `log` says, through `at`, along two features (across, up).

    at        where the other features are held; None: at the log's medians (of two middle values the lower, which is
              one that occurs: half a yes is no value of a yes-or-no feature)
    size      how many values of each feature, (across, up)
    ranges    the lowest and highest value of each; None: those of the log's points and explanations (with the balls around
              robust ones), and a little more
    progress  called with (points done, points in all)
    robust    how `knowledge` uses the log's robust counterfactuals, to be said beside the slice
    """
    dimension = log.dimension
    if dimension is None or len(log) == 0:
        raise InvalidInput("a log without rows has no slices")
    if len(set(features)) != 2 or not all(0 <= i < dimension for i in features):
        raise DimensionMismatch(f"a slice has two different features, numbered 0 to {dimension - 1}; got {features}")
    if min(size) < 2:
        raise InvalidInput(f"a slice is at least 2 by 2 points, got {size[0]} by {size[1]}")
    names = log.features or tuple(f"x{i}" for i in range(dimension))
    base = _medians(log.points) if at is None else as_point(at, dimension, "at")
    spans = ranges or (_span(log, features[0]), _span(log, features[1]))
    across, up = (
        Axis(i, names[i], frozen(np.linspace(*span, count)))
        for i, span, count in zip(features, spans, size, strict=True)
    )
    codes: list[NDArray[np.int8]] = []
    done = 0
    for verdicts in knowledge.certify(_blocks(base, across, up)):
        codes.append(verdicts.codes)
        done += len(verdicts)
        if progress is not None:
            progress(done, size[0] * size[1])
    others = np.delete(np.arange(dimension), features)
    here = _in_plane(log.points, base, others)
    pair = list(features)
    answers = np.where(_in_plane(log.explanations, base, others)[:, None], log.explanations[:, pair], np.nan)
    return Slice(
        across=across,
        up=up,
        codes=np.concatenate(codes).reshape(size[1], size[0]),
        base=frozen(base),
        names=names,
        centred=at is None,
        asked=log.points[here][:, pair],
        labels=log.labels[here],
        explanations=answers[here],
        rows=len(log),
        oriented=knowledge.oriented,
        robust=robust,
        balls=tuple(_balls(log, np.flatnonzero(here & np.isfinite(answers).all(axis=1)), features)),
    )


def with_areas(found: Slice, knowledge: Knowledge) -> Slice:
    """The slice with the borders of its certain areas, for a picture; as it is where regions have no polygons."""
    pair, areas = (found.across.feature, found.up.feature), {}
    for verdict in (Verdict.YES, Verdict.NO):
        try:
            polygon = knowledge.region(verdict).polygon(pair, found.base, found.box, PICTURE)
        except (InvalidInput, SolverFailed):
            return found
        if polygon.gap > COARSE:
            return found
        areas[verdict] = polygon.corners
    return replace(found, areas=areas)


def _balls(log: QueryLog, rows: NDArray[np.intp], features: tuple[int, int]) -> Iterator[FloatArray]:
    """The outlines, in the plane, of the balls around some rows' explanations."""
    angles = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
    around = np.zeros((DIRECTIONS, log.points.shape[1]))
    around[:, features[0]], around[:, features[1]] = np.cos(angles), np.sin(angles)
    for row in rows.tolist():
        terms = log.mechanism_of(row)
        if terms is not None and terms.robustness is not None and terms.radius:
            reach = terms.radius / np.asarray(terms.robustness(around))
            yield frozen(log.explanations[row, list(features)] + reach[:, None] * around[:, list(features)])


def _blocks(base: FloatArray, across: Axis, up: Axis) -> Iterator[FloatArray]:
    """The points of the grid, whole rows of it at a time, from the lowest up."""
    width = len(across.values)
    rows = max(1, MOST_NUMBERS // (width * len(base)))
    for start in range(0, len(up.values), rows):
        some = up.values[start : start + rows]
        points = np.tile(base, (len(some) * width, 1))
        points[:, across.feature] = np.tile(across.values, len(some))
        points[:, up.feature] = np.repeat(some, width)
        yield points


def _medians(points: FloatArray) -> FloatArray:
    middle = (len(points) - 1) // 2
    return np.asarray(np.partition(points, middle, axis=0)[middle])


def _span(log: QueryLog, feature: int) -> Span:
    answers = log.explanations[log.explained, feature]
    reach = _reaches(log, feature)[log.mechanism_ids[log.explained]]
    values = np.concatenate([log.points[:, feature], answers - reach, answers + reach])
    low, high = float(values.min()), float(values.max())
    margin = MARGIN * (high - low) if low < high else abs(low) / 2 or 1.0
    return low - margin, high + margin


def _reaches(log: QueryLog, feature: int) -> FloatArray:
    """How far the balls of every mechanism reach along a feature; a 0 at the end for rows without a mechanism (−1)."""
    unit = np.eye(log.points.shape[1])[feature]
    found = [
        terms.radius * float(terms.robustness.dual(unit)) if terms.robustness is not None and terms.radius else 0.0
        for terms in log.mechanisms
    ]
    return np.array([*found, 0.0])


def _in_plane(points: FloatArray, base: FloatArray, others: NDArray[np.intp]) -> BoolArray:
    """Which points have exactly the held values: others would be drawn where they are not."""
    return np.asarray((points[:, others] == base[others]).all(axis=1))


def _written(axis: Axis) -> dict[str, Any]:
    return {"feature": axis.feature, "name": axis.name, "values": axis.values.tolist()}
