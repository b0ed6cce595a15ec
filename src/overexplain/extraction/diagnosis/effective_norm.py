"""Which distance moves answers along the directions seen? A candidate must put all points of the plane on one plane.

Under ℓq every step is along v with a = sign(v)|v|^(q−1). So a direction and q give the normal up to its scale; features that
never moved, the offset and a constant margin are unknown, too. More points than unknowns make it a test. How strong the test
is counts: a candidate is accepted only if a wrong one would have passed with a probability of at most 1e-4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray

EVIDENCE = 4.0
"""Powers of ten by which chance must be excluded."""

WITHIN = 6.0
"""A point is on the plane if it misses it by at most so many standard deviations of its rounding error."""

_UNIQUE = 1e-5
"""The next best plane must be worse by this share of the largest that could be, or the best one means nothing."""

_FINEST = 1e-3
"""No point counts as known better than this share of what the worst one is known to."""

_ROUGHLY = 0.9
"""If the miss falls to nothing between three exponents of a grid, the middle one is half as bad as the others, or better."""

_PARTS = (1, 2, 4, 10, 20)

Q_LEAST, Q_MOST = 1.03, 12.0


@dataclass(frozen=True, eq=False)
class PlanePoints:
    """Points known to lie on the plane, or on two planes parallel to it: then `sides` has the side of each, else zeros."""

    points: FloatArray
    noise: FloatArray
    """Standard deviation of every entry, independent of each other."""
    smear: FloatArray
    """For each point a vector along which it may be off as a whole: one standard deviation."""
    sides: FloatArray
    spanned: int
    """How many directions the questions span: so many would the points, if no plane held them."""


@dataclass(frozen=True, eq=False)
class Arrow:
    """A direction that steps follow, and the error of its entries (standard deviation)."""

    direction: FloatArray
    noise: FloatArray


@dataclass(frozen=True, eq=False)
class Fit:
    """The plane that fits best: its normal, its worst miss in standard deviations, and how much that excludes chance."""

    normal: FloatArray
    worst: float
    evidence: float

    @property
    def holds(self) -> bool:
        """True if all points lie on the plane, and more of them than any plane would hold."""
        return self.worst <= WITHIN and self.evidence >= EVIDENCE


Shape = Callable[[Arrow], Arrow]


def power_shape(q: float) -> Shape:
    """How ℓq turns a direction into the normal it belongs to: v ↦ sign(v)|v|^(q−1)."""

    def shape(arrow: Arrow) -> Arrow:
        size = np.abs(arrow.direction)
        entry = size ** (q - 1)
        # The slope is unbounded at 0 for q < 2: there the error is that of the power itself.
        known = np.where(size > 0, np.maximum(size, arrow.noise), 1.0)
        slope = (q - 1) * known ** (q - 2)
        error = np.where(size > 0, np.minimum(slope * arrow.noise, (size + arrow.noise) ** (q - 1)), 0.0)
        return Arrow(np.sign(arrow.direction) * entry, error)

    return shape


def fit_plane_along(
    points: PlanePoints, arrows: Sequence[Arrow], shape: Shape, spare: int = 0, whole: bool = False
) -> Fit:
    """The best plane whose normal is, where an arrow points, a multiple of its shape, and free elsewhere.

    `spare`: unknowns that were already fitted to the same points. `whole`: where no arrow points, the normal is 0, not free.
    """
    p = points.points.shape[1]
    normals = [shape(arrow) for arrow in arrows]
    shown = np.full(p, whole)
    for arrow in arrows:
        shown |= arrow.direction != 0
    system = _System(points, points.points - points.points.mean(axis=0), normals, np.flatnonzero(~shown))
    if len(points.points) <= system.matrix.shape[1]:
        return Fit(np.zeros(p), math.inf, 0.0)
    expected = np.ones(len(points.points))
    for _ in range(2):  # first as if all points were known equally well, then each as well as it is
        scales, misses, unique = system.solve(expected)
        normal, expected = system.normal(scales)
    checks = _checks(points, len(arrows), len(system.hidden)) - spare if unique else 0
    return _graded(system, normal, expected, misses, checks)


@dataclass(frozen=True, eq=False)
class _System:
    """Homogeneous equations, one for each point; unknown are the arrows' scales, hidden features, the offset and the margin."""

    points: PlanePoints
    centred: FloatArray
    normals: Sequence[Arrow]
    hidden: IntArray

    @cached_property
    def matrix(self) -> FloatArray:
        """A row for every point; a column for every arrow and every hidden feature."""
        columns = [self.centred @ normal.direction for normal in self.normals]
        return np.array([*columns, *self.centred[:, self.hidden].T]).T

    @cached_property
    def units(self) -> FloatArray:
        """What each column would be like if nothing were known: on the right plane an arrow's own column is but noise."""
        spread = self.centred.var(axis=0)
        sizes = [float(np.sqrt(normal.direction**2 @ spread)) for normal in self.normals]
        sizes += np.sqrt(spread[self.hidden]).tolist()
        return np.where(np.array(sizes) > 0, sizes, 1.0)

    def solve(self, expected: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        """The scales up to a common factor, by how much each point then misses, and whether no others do nearly as well.

        Points count by how well they are known; offset and margin are chosen so that the misses are least.
        """
        floor = float(expected.max()) * _FINEST
        counts = 1 / np.maximum(expected, floor if floor > 0 else 1.0)
        counts /= counts.max()
        levels = [np.ones(len(counts)), self.points.sides] if self.points.sides.any() else [np.ones(len(counts))]
        base = np.linalg.qr(np.array(levels).T * counts[:, None])[0]
        rows = self.matrix / self.units * counts[:, None]
        rows = rows - base @ (base.T @ rows)
        _, sizes, right = np.linalg.svd(rows, full_matrices=True)
        unique = len(sizes) < 2 or float(sizes[-2]) > _UNIQUE * float(sizes[0])
        return right[-1] / self.units, rows @ right[-1] / counts, unique

    def normal(self, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The normal these scales stand for, and by how much every point should miss its plane."""
        normal, error = np.zeros(self.centred.shape[1]), np.zeros(self.centred.shape[1])
        for scale, part in zip(scales, self.normals, strict=False):
            normal += scale * part.direction
            error += abs(scale) * part.noise
        normal[self.hidden] += scales[len(self.normals) :]
        own = (self.points.noise**2) @ (normal**2) + (self.points.smear @ normal) ** 2
        return normal, np.sqrt(own + (self.centred**2) @ (error**2))


def _checks(points: PlanePoints, arrows: int, hidden: int) -> int:
    """How many independent conditions the points put on the normal beyond those that its unknowns can meet."""
    m, p = len(points.points), len(points.points[0])
    rows = m - 1 - int(points.sides.any())
    if not arrows:  # is there a plane at all? Every point more is a test, once they would span everything
        return rows - (p - 1) if points.spanned >= p else 0
    # Points span at most p − 1 directions of a plane: more of them say no more about its normal.
    return min(rows, points.spanned, p - 1) - (arrows + hidden - 1)


def _graded(system: _System, normal: FloatArray, expected: FloatArray, misses: FloatArray, checks: int) -> Fit:
    """The fit with its worst miss, and how improbable it would be for a wrong normal."""
    spread = system.centred.std(axis=0)
    natural = float(np.linalg.norm(normal * spread))  # what a normal of these sizes would miss by
    if (normal == 0).any():  # answers on a plane across few features: it is the other features that would make it miss
        natural = max(natural, float(np.abs(normal).max() * spread[normal == 0].min()))
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = float(np.max(np.where(expected > 0, np.abs(misses) / expected, np.where(misses == 0, 0.0, np.inf))))
        decades = np.clip(np.log10(natural / (WITHIN * expected)), 0.0, 16.0) if natural > 0 else np.zeros(1)
    return Fit(normal, worst, max(0, checks) * float(np.mean(decades)))


def spanned_by(questions: FloatArray) -> int:
    """How many directions the questions span, by a margin."""
    centred = questions - questions.mean(axis=0)
    size = np.abs(centred).max(axis=0)
    sizes = np.linalg.svd(centred / np.where(size > 0, size, 1.0), compute_uv=False)
    return int(np.count_nonzero(sizes > _UNIQUE * sizes.max(initial=0.0)))


def fit_any_plane(points: PlanePoints) -> Fit:
    """The plane through the points, whatever the distance."""
    return fit_plane_along(points, [], power_shape(2.0))


@dataclass(frozen=True)
class Exponent:
    """The q of the ℓq that fits best, and the range of those that fit; `proven` unless every plane had one that fits."""

    low: float
    best: float
    high: float
    proven: bool


def fit_exponent(points: PlanePoints, arrows: Sequence[Arrow]) -> Exponent | None:
    """The exponents whose ℓq fits; None if none does."""
    grid = 1 + np.exp(np.linspace(math.log(Q_LEAST - 1), math.log(Q_MOST - 1), 41))
    misses = np.array([_relative_miss(points, arrows, q) for q in grid])
    lowest = int(misses.argmin())
    before, after = max(0, lowest - 1), min(len(grid) - 1, lowest + 1)
    if before < lowest < after and misses[lowest] > _ROUGHLY * (misses[before] + misses[after]) / 2:
        return None
    low, high = float(grid[before]), float(grid[after])
    for q in _short_numbers(low, high):  # people choose such
        found = around_exponent(points, arrows, q, spare=1)
        if found is not None:
            return found
    best = _valley(lambda q: _relative_miss(points, arrows, q), low, high)
    return around_exponent(points, arrows, best, spare=1)


def around_exponent(points: PlanePoints, arrows: Sequence[Arrow], q: float, spare: int) -> Exponent | None:
    """The exponents around q that fit; None if q itself does not."""

    def fits(other: float) -> bool:
        return fit_plane_along(points, arrows, power_shape(other)).worst <= WITHIN

    if not fits(q):
        return None
    proven = fit_plane_along(points, arrows, power_shape(q), spare).evidence >= EVIDENCE
    return Exponent(_edge(fits, q, Q_LEAST), q, _edge(fits, q, Q_MOST), proven)


def _relative_miss(points: PlanePoints, arrows: Sequence[Arrow], q: float) -> float:
    """The largest miss of the best plane for ℓq, relative to what a normal of these sizes would miss by.

    Near the right q the miss in standard deviations is too narrow a valley to be found.
    """
    nothing = np.zeros_like(points.points)
    spread = nothing + points.points.std(axis=0)
    blunt = PlanePoints(points.points, spread, nothing, points.sides, points.spanned)
    bare = [Arrow(arrow.direction, np.zeros_like(arrow.noise)) for arrow in arrows]
    return fit_plane_along(blunt, bare, power_shape(q)).worst


def _valley(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is lowest."""
    for _ in range(120):
        third = (high - low) / 3
        if function(low + third) <= function(high - third):
            high -= third
        else:
            low += third
        if high - low <= 1e-13 * high:
            break
    return (low + high) / 2


def _edge(fits: Callable[[float], bool], best: float, limit: float) -> float:
    """About the last exponent between `best` and `limit` that still fits."""
    inside, outside = best, limit
    for power in range(-12, 1):  # an exact service narrows it down to very little: look there first
        there = best + (limit - best) * 10.0**power
        if not fits(there):
            outside = there
            break
        inside = there
    if inside == limit:
        return limit
    for _ in range(5):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return inside


def _short_numbers(low: float, high: float) -> list[float]:
    """The numbers between low and high that people write with few digits, the shortest first."""
    found: list[float] = []
    for parts in _PARTS:
        steps = range(math.ceil(low * parts), math.floor(high * parts) + 1)
        found += [k / parts for k in steps if k / parts not in found and k > parts]
    return found


def simplest_between(low: float, high: float, best: float) -> float:
    """The number with the fewest digits between low and high; `best` if they leave no short one.

    >>> simplest_between(2.96, 3.07, 3.01), simplest_between(1.4999999, 1.5000001, 1.5), simplest_between(1.2341, 1.2342, 1.23415)
    (3.0, 1.5, 1.23415)
    """
    return next(iter(_short_numbers(low, high)), best)
