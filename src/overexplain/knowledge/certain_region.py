"""`CertainRegion`: all points at which every consistent model says the same, as a set: members, generators, polygons of slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np

from overexplain.errors import CertificateInvalid, DimensionMismatch, InvalidInput, SolverFailed
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray, as_point, frozen
from overexplain.geometry.hyperplane import YES
from overexplain.knowledge.generators import Generators, Said, generators_of, why_not_plain
from overexplain.knowledge.known import Known
from overexplain.knowledge.prover.rationals import OutOfTime
from overexplain.knowledge.prover.reduction import Model
from overexplain.knowledge.tracing import Box, Corner, Point, trace
from overexplain.knowledge.verdicts import Verdict, Verdicts
from overexplain.knowledge.wrapping import Cut, wrap
from overexplain.log.extremes import BEYOND_FLOAT64
from overexplain.log.querylog import Points

ACCURACY = 1e-4


@final
@dataclass(frozen=True, eq=False)
class Polygon:
    """A region in the plane of two features and in a box, its rim included; it is convex.

    corners  (k, 2), counterclockwise: one for a point, two for a segment, none if nothing of it is there
    exact    the same in rationals, of which `corners` are the nearest float64; None where there is a gap
    rows     for the edge from each corner to the next: the log's rows that it rests on; () along the box, or where there is a gap
    gap      how far at most a point of the region is from the polygon, both sides of the box being 1 long; 0.0: nowhere.
             Without corners: how far apart two points of the region can be at most
    """

    corners: FloatArray
    exact: tuple[Point, ...] | None
    rows: tuple[tuple[int, ...], ...]
    gap: float

    def __len__(self) -> int:
        return len(self.corners)


@final
class CertainRegion:
    """The points on which every model that fits the log agrees: Yes, or No. It is convex, whatever the log.

    Made by `Knowledge.region`; it is about the log as it was then.
    """

    def __init__(self, known: Known, certify: Callable[[Any], Verdicts], verdict: Verdict) -> None:
        if verdict not in (Verdict.YES, Verdict.NO) or isinstance(verdict, bool):
            raise InvalidInput(f"a region is that of Verdict.YES or Verdict.NO, got {verdict!r}")
        self._known, self._certify, self._verdict = known, certify, Verdict(verdict)

    @property
    def verdict(self) -> Verdict:
        """YES or NO."""
        return self._verdict

    def __repr__(self) -> str:
        return f"CertainRegion({self._verdict.name}, {self._known.log!r})"

    # Members.

    def contains(self, X: Points) -> BoolArray:
        """For every point: is its verdict this one? As `Knowledge.certify` says; UNDECIDED is no."""
        return np.asarray(self._certify(X).codes == self._verdict)

    def __contains__(self, x: Points) -> bool:
        members = self.contains(x)
        if len(members) != 1:
            raise DimensionMismatch(f"`in` is about one point, got {len(members)}; `contains` takes many")
        return bool(members[0])

    # Generators.

    def generators(self, needed_only: bool = False) -> Generators:
        """Points and rays that generate the region: its closure is conv(points) + cone(rays), balls where answers have lengths.

        They generate all of it for labels, merely valid answers, and answers that are taken as exact (`tolerance=0.0`); under a
        tolerance a part of it (`is_whole` is False). InvalidInput, with the reason, for robust answers, answers from a domain,
        and rows whose side nobody knows: no finite set is known to generate those regions.

        needed_only  without rows that others imply; labels and merely valid answers only, others are returned as they are
        """
        return generators_of(self._known, self._verdict, needed_only)

    # Slices.

    def polygon(
        self,
        features: tuple[int | str, int | str],
        at: Any = None,
        box: Box = ((0.0, 1.0), (0.0, 1.0)),
        accuracy: float = ACCURACY,
    ) -> Polygon:
        """The region in the plane of two features (across, up), clipped to a box.

        features  their numbers or names
        at        where the others are held: a point, whose entries for the two do not matter; None if there are no others
        box       (lowest, highest) of both
        accuracy  the gap that is good enough where the polygon is not exact

        Exact for labels and merely valid answers; other plain answers leave a `gap`. InvalidInput, with the reason, for robust
        answers, answers from a domain, and rows whose side nobody knows: ask `certify` about a grid.
        """
        plane = self._plane(features, at, box)
        if not accuracy > 0:
            raise InvalidInput(f"accuracy is a number above 0, got {accuracy!r}")
        known = self._known
        reason = why_not_plain(known)
        if reason is not None:
            raise InvalidInput(f"no polygon: {reason}; ask certify about a grid of points")
        if not known.has_facts:
            return Polygon(frozen(np.zeros((0, 2))), (), (), 0.0)
        said = Said(known)
        if not said.is_linear:
            return self._wrapped(plane, accuracy)
        sides = said.sides * int(self._verdict)
        corners = trace(said.points, sides, plane.features, plane.base, plane.box, known.deadline())
        has_answers = len(said.points) > len(np.unique(said.rows))
        if corners and has_answers and not self._is_within(plane, [corner.at for corner in corners]):
            corners = []
        rows = tuple(
            plane.rows_of(corner, corners[(k + 1) % len(corners)], said.rows) for k, corner in enumerate(corners)
        )
        exact = tuple(corner.at for corner in corners)
        floats = np.array([[float(v) for v in point] for point in exact]).reshape(-1, 2)
        return Polygon(frozen(floats), exact, rows, 0.0)

    def _plane(self, features: Any, at: Any, box: Any) -> _Slice:
        log = self._known.log
        p = log.dimension
        if p is None:
            raise InvalidInput("a log without rows has no slices")
        names = list(log.features or ())
        pair = tuple(names.index(f) if f in names else f for f in features)
        if len(set(pair)) != 2 or not all(isinstance(i, int | np.integer) and 0 <= i < p for i in pair):
            raise DimensionMismatch(
                f"a slice has two different features, numbered 0 to {p - 1} or named; got {features!r}"
            )
        if at is None and p > 2:
            raise InvalidInput(f"the log has {p} features: say where the other {p - 2} are held (`at`)")
        base = np.zeros(p) if at is None else as_point(at, p, "at")
        ends = np.array([as_point(span, 2, "box") for span in box])
        if ends.shape != (2, 2) or not (ends[:, 0] < ends[:, 1]).all():
            raise InvalidInput(f"a box is ((lowest, highest), (lowest, highest)), lowest < highest; got {box!r}")
        spans = [(float(low), float(high)) for low, high in ends]
        return _Slice((int(pair[0]), int(pair[1])), base, (spans[0], spans[1]))

    def _is_within(self, plane: _Slice, corners: Sequence[Point]) -> bool:
        """True if the region has the inside of its closure: a No by weak facts alone may be UNKNOWN, a Yes may be BOUNDARY.

        One point in the relative interior tells for all of them (docs/theory/regions.md, Theorem 8).
        """
        for k in range(1, 64):
            share = Fraction(k, 64)
            u = corners[0]
            v = [sum((c[i] for c in corners), Fraction(0)) / len(corners) for i in (0, 1)]
            point = np.array([[float(u[i] + share * (v[i] - u[i])) for i in (0, 1)]])
            if _strictly_inside((Fraction(point[0, 0]), Fraction(point[0, 1])), corners):
                return bool(self.contains(plane.points(point))[0])
        raise SolverFailed("the region in this slice is thinner than float64 can tell, and it may not have its rim")

    def _wrapped(self, plane: _Slice, accuracy: float) -> Polygon:
        """Certain points, and models that deny others."""
        found = wrap(
            lambda places: self.contains(plane.points(plane.raw(places))),
            lambda place: self._cut(plane, plane.points(plane.raw(place[None, :]))[0]),
            accuracy,
        )
        corners = plane.raw(found.corners)
        return Polygon(frozen(corners), None, ((),) * len(corners), found.gap)

    def _cut(self, plane: _Slice, x: FloatArray) -> Cut | None:
        """The line of a model that denies the verdict on x."""
        models = [self._known.centre, *self._opponents(x)]
        cuts = [plane.cut(*model, int(self._verdict), x) for model in models if model is not None]
        return next((cut for cut in cuts[::-1] if cut is not None), None)

    def _opponents(self, x: FloatArray) -> Iterator[Model]:
        """Models, checked, of which one denies the verdict on x, if it is UNKNOWN and that is found soon."""
        known = self._known
        if known.reader is None:
            return
        with suppress(CertificateInvalid, OutOfTime, *BEYOND_FLOAT64):
            for found in known.reader.settle(x, int(Verdict.UNKNOWN), known.deadline()):
                if found.models is not None:
                    known.proof(x, found)
                    yield from found.models
                    return


@final
@dataclass(frozen=True, eq=False)
class _Slice:
    """Two features vary in a box, the others are held."""

    features: tuple[int, int]
    base: FloatArray
    box: Box

    @cached_property
    def _ends(self) -> FloatArray:
        return np.array(self.box)

    def raw(self, places: FloatArray) -> FloatArray:
        """Places in a square of side 1 in the features' own units, as floats: what is asked about is what is returned."""
        low, high = self._ends[:, 0], self._ends[:, 1]
        return np.clip(low + places.reshape(-1, 2) * (high - low), low, high)

    def points(self, pairs: FloatArray) -> FloatArray:
        """Pairs of values as points."""
        points = np.tile(self.base, (len(pairs), 1))
        points[:, list(self.features)] = pairs
        return points

    def cut(self, normal: Sequence[Fraction], offset: Fraction, sign: int, x: FloatArray) -> Cut | None:
        """The half of the square of side 1 that a model leaves to a verdict; None if it leaves x to it."""
        said = sum((a * Fraction(v) for a, v in zip(normal, x.tolist(), strict=True)), -offset) * sign
        if said > 0 or (said == 0 and sign == YES):
            return None
        low, wide = (self._ends[:, 0].tolist(), (self._ends[:, 1] - self._ends[:, 0]).tolist())
        slopes = [sign * normal[i] * Fraction(w) for i, w in zip(self.features, wide, strict=True)]
        start = said + sum(
            (sign * normal[i] * (Fraction(v) - Fraction(float(x[i]))) for i, v in zip(self.features, low, strict=True)),
            Fraction(0),
        )
        size = max(map(abs, slopes))
        if not size:  # the same everywhere in this plane: nothing is left
            return 0.0, 0.0, 1.0
        far = Fraction(10**9)  # beyond this a line is off the square in any case
        n, m, c = (float(min(max(v / size, -far), far)) for v in (*slopes, -start))
        length = float(np.hypot(n, m))
        return n / length, m / length, c / length

    def rows_of(self, corner: Corner, following: Corner, origin: IntArray) -> tuple[int, ...]:
        """The rows that an edge rests on."""
        for k, ends in enumerate(self.box):
            if corner.at[k] == following.at[k] and corner.at[k] in map(Fraction, ends):
                return ()
        return tuple(sorted({int(origin[i]) for i in corner.facts | following.facts}))


def _strictly_inside(point: Point, corners: Sequence[Point]) -> bool:
    """In the relative interior of a convex polygon, a segment or a point."""
    if len(corners) == 1:
        return point == corners[0]
    if len(corners) == 2:
        a, ways = corners[0], [v - u for u, v in zip(*corners, strict=True)]
        on_line = (point[0] - a[0]) * ways[1] == (point[1] - a[1]) * ways[0]
        along = sum(((point[k] - a[k]) * ways[k] for k in (0, 1)), Fraction(0))
        return on_line and 0 < along < sum((w * w for w in ways), Fraction(0))
    turns = (
        (b[0] - a[0]) * (point[1] - a[1]) - (b[1] - a[1]) * (point[0] - a[0])
        for a, b in zip(corners, (*corners[1:], corners[0]), strict=True)
    )
    return all(turn > 0 for turn in turns)
