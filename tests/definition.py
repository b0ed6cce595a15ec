"""Is a model consistent with a log? The definition (docs/theory/consistent.md) by another hand: nothing of `knowledge` is used.

`Definition(log).judge(a, b)` is True, False, or None where the numbers do not tell (irrational equalities of norms that have no
closed form, tolerances of answers from a domain). What it says is exact. `models` finds consistent models by trying directions and,
for each, every offset at which something changes: what some model says, no verdict may deny.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import overexplain as ox
from exact_balls import (
    ONE,
    ZERO,
    Ball,
    Euclidean,
    Levels,
    Polytope,
    Surd,
    Vector,
    Weighted,
    ball_of,
    compare,
    dot,
    largest,
    smallest,
)

Model = tuple[Vector, Fraction]


@dataclass(frozen=True, eq=False)
class Row:
    """A row in exact numbers. `image` is None if nothing is promised about it."""

    point: Vector
    label: int | None = None
    image: Vector | None = None
    distance: Ball | None = None
    ball: Ball | None = None
    radius: Fraction | None = ZERO
    slack: Fraction | None = ZERO
    least: Fraction = ZERO
    """τ, or a little less if it is irrational."""
    most: Fraction = ZERO
    sharing: Any = None
    """Rows of a secret radius with equal `sharing` have the same."""
    domain: Any = None
    still: bool = False
    """Features that did not move are exactly where they were, even if τ > 0."""

    @property
    def step(self) -> Vector:
        assert self.image is not None
        return tuple(b - a for a, b in zip(self.point, self.image, strict=True))


def exact(x: Iterable[float]) -> Vector:
    return tuple(Fraction(float(v)) for v in x)


def read(log: ox.QueryLog, tolerance: float | None = None) -> list[Row]:
    """The rows of a log; a `tolerance` takes the place of every row's own."""
    return [_row(entry, tolerance, log.mechanism) for entry in log]


def _row(entry: Any, tolerance: float | None, of_the_log: ox.Mechanism | None) -> Row:
    point, terms = exact(entry.point), entry.mechanism
    if entry.explanation is None or terms is None:
        own = terms or of_the_log  # a label's terms are those of the log
        return Row(point, entry.label, domain=None if own is None else own.domain)
    image, p = exact(entry.explanation), len(point)
    domain, slack = getattr(terms, "domain", None), terms.slack
    tau = terms.tolerance if tolerance is None else tolerance
    if slack is None and tau is None:
        tau = 0.0
    if terms.distance is None and tau != 0:
        return Row(point, entry.label)
    distance = None if terms.distance is None else ball_of(terms.distance.spec, p)
    ball = None if terms.robustness is None else ball_of(terms.robustness.spec, p)
    if tau is None:
        assert distance is not None
        norms = [terms.distance] if terms.is_plain else [terms.distance, terms.robustness]
        unit = max(Fraction(norm.answer_rounding) for norm in norms if norm is not None)
        ends = [distance.length(point), distance.length(image)]
        least, most = (unit * sum((end[k].bounds()[k] for end in ends), ZERO) for k in (0, 1))
    else:
        least = most = Fraction(tau)
    norms = [None if norm is None else str(norm.spec) for norm in (terms.distance, terms.robustness)]
    return Row(
        point, entry.label, image, distance, ball,
        None if terms.radius is None else Fraction(terms.radius),
        None if slack is None else Fraction(slack), least, most, tuple(norms), domain,
        terms.tolerance is None and tolerance is None,
    )  # fmt: skip


class Definition:
    """The rows of a log, and whether models are consistent with them."""

    def __init__(self, log: ox.QueryLog, tolerance: float | None = None) -> None:
        self.rows = read(log, tolerance)
        self._levels: dict[tuple[int, Vector, int], Levels | None] = {}
        self._reaches: dict[tuple[int, Vector], tuple[Surd, Surd]] = {}

    def judge(self, a: Sequence[Fraction], b: Fraction) -> bool | None:
        """True if (a, b) is consistent, False if not; None: not told."""
        a = tuple(a)
        if not any(a) and not all(row.domain is not None for row in self.rows):
            return False
        told: bool | None = True
        radii: dict[Any, list[Any]] = {}
        for k, row in enumerate(self.rows):
            own = dot(a, row.point) - b
            y = 1 if own >= 0 else -1
            if row.label is not None and row.label != y:
                return False
            if row.image is None:
                continue
            if row.domain is not None:
                fits = _from_domain(row, a, b, y)
            elif row.radius is None:
                levels = self.levels(k, a, y)
                fits = _narrow(radii.setdefault(row.sharing, [Surd(ZERO), None, Surd(ZERO), None]), levels, y * own)
            else:
                fits = self._fits(k, a, y, y * own)
            if fits is False:
                return False
            told = told and fits
        return told

    def _fits(self, k: int, a: Vector, y: int, margin: Fraction) -> bool | None:
        """Could the level margin + ρ·s have given the answer of row k?"""
        row = self.rows[k]
        least = most = Surd(margin)
        if row.radius:
            assert row.ball is not None
            if (k, a) not in self._reaches:
                low, high = row.ball.dual(a)
                square = row.radius**2
                self._reaches[k, a] = (
                    Surd(row.radius * low.q, square * low.r),
                    Surd(row.radius * high.q, square * high.r),
                )
            low, high = self._reaches[k, a]
            least, most = low.plus(margin), high.plus(margin)
        if row.distance is None or row.slack is None:
            levels = self.levels(k, a, y)
            if levels.inner and compare(levels.inner[0], least) <= 0 and compare(most, levels.inner[1]) <= 0:
                return True
            if not levels.outer or compare(most, levels.outer[0]) < 0 or compare(levels.outer[1], least) < 0:
                return False
            return None
        down = tuple(-y * v for v in a)
        return row.distance.allows(row.step, down, row.slack, row.least, row.most, least, most)

    def levels(self, k: int, a: Vector, y: int) -> Levels:
        """The distances behind the plane, times t, at which row k may lie if its label is y."""
        key = (k, a, y)
        if key not in self._levels:
            self._levels[key] = _levels(self.rows[k], tuple(-y * v for v in a))
        return self._levels[key]  # type: ignore[return-value]


def _levels(row: Row, down: Vector) -> Levels:
    value = dot(down, row.step)
    if row.slack is None:  # merely valid: c·w° ≥ G for some w° within τ
        low = high = Surd(value)
        if row.most:
            assert row.distance is not None
            t = row.distance.dual(down)
            low = Surd(value + row.least * t[0].q, row.least**2 * t[0].r)
            high = Surd(value + row.most * t[1].q, row.most**2 * t[1].r)
        zero = Surd(ZERO)
        return Levels(
            (zero, low) if compare(zero, low) <= 0 else None, (zero, high) if compare(zero, high) <= 0 else None
        )
    if row.distance is None:
        # Some norm: ‖w‖·t ≥ c·w under every one, with equality under some if c·w > 0. A level of 0 means w = 0.
        if not any(row.step):
            return Levels((Surd(ZERO), Surd(ZERO)), (Surd(ZERO), Surd(ZERO)))
        ends = (Surd(value / (1 + row.slack)), Surd(value)) if value > 0 else None
        return Levels(ends, ends)
    return row.distance.levels(row.step, down, row.slack, row.least, row.most)


def _narrow(known: list[Any], levels: Levels, margin: Fraction) -> bool | None:
    """r = G − m ≥ 0 must lie in the interval of every row: [inner low, inner high, outer low, outer high] so far."""
    for k, ends in ((0, levels.inner), (2, levels.outer)):
        if ends is None:
            known[k], known[k + 1] = Surd(ONE), Surd(-ONE)
            continue
        low, high = ends[0].plus(-margin), ends[1].plus(-margin)
        known[k] = largest(known[k], low)
        known[k + 1] = high if known[k + 1] is None else smallest(known[k + 1], high)
    inner, outer = (compare(known[k], known[k + 1]) <= 0 for k in (0, 2))
    return True if inner else None if outer else False


# --- answers chosen from a domain -------------------------------------------------------------------------------------


def _from_domain(row: Row, a: Vector, b: Fraction, y: int) -> bool | None:
    """The definition where X(x) is some set of valid points with x, x° and, with x°, those in which continuous features that
    moved have moved a little less; a point of the plane may or may not count as across."""
    assert row.image is not None
    if not _has_valid_levels(row):
        return False
    own, free = y * (dot(a, row.point) - b), [int(i) for i in row.domain.continuous]
    moved = [i for i in free if row.step[i]]
    loose = [i for i in free if row.step[i] or not row.still]
    # The farthest that an x° within τ can be across.
    beyond = -y * (dot(a, row.image) - b)
    part = tuple(v if i in loose else ZERO for i, v in enumerate(a))
    room = ZERO if row.distance is None or not any(part) else row.most * row.distance.dual(part)[1].bounds()[1]
    if beyond + room < 0:
        return False
    if row.radius != 0:
        return None
    is_tight = bool(row.slack == 0 and moved and _is_tight(row, moved))
    if is_tight and abs(beyond) > room:
        return False
    for image in _candidates(row, a, b, loose):
        if _is_inside(row, image) and _is_answer(row, image, a, b, y, own, free):
            return True
    return False if room == 0 and row.distance is not None and _is_plain_power(row.distance) else None


def _has_valid_levels(row: Row) -> bool:
    """x° has the discrete features of x'; are there such valid points?"""
    assert row.image is not None
    groups = [[row.image[i] for i in group] for group in row.domain.groups]
    return all(row.image[i].denominator == 1 for i in row.domain.integers) and all(
        sorted(entries) == [0] * (len(entries) - 1) + [1] for entries in groups
    )


def _is_inside(row: Row, image: Vector) -> bool:
    """Within the limits of the domain."""
    low, high = row.domain.low.tolist(), row.domain.high.tolist()
    return all(a <= v <= b for a, v, b in zip(low, image, high, strict=True))


def _is_tight(row: Row, moved: Sequence[int]) -> bool:
    """No x° within τ can be beyond the plane: in each some continuous feature has moved, and shorter moves are cheaper."""
    others = [i for i, v in enumerate(row.step) if v and i not in moved]
    if not others:
        return True  # (if nothing moved in x°, it is x, on the plane)
    kind, weights = _power(row.distance, len(row.step))
    if kind is None:
        return False
    sizes = [d * abs(v) for d, v in zip(weights, row.step, strict=True)]
    if kind == "max":
        return max(sizes[i] for i in moved) - row.most > max(sizes[i] for i in others)
    assert row.distance is not None
    alone = tuple(v if i in moved else ZERO for i, v in enumerate(row.step))
    return row.distance.length(alone)[0].bounds()[0] > row.most


def _power(distance: Ball | None, p: int) -> tuple[str | None, Vector]:
    """("sum" for a weighted ℓq, "max" for a weighted ℓ∞, None for another norm, its weights)."""
    weights: Vector = (ONE,) * p
    if isinstance(distance, Weighted):
        distance, weights = distance.base, distance.weights
    if isinstance(distance, Polytope):
        is_max = len(distance.facets) == 2 * p and all(sum(map(bool, f)) == 1 for f in distance.facets)
        is_sum = len(distance.corners) == 2 * p and all(sum(map(bool, v)) == 1 for v in distance.corners)
        return ("sum" if is_sum else "max" if is_max else None), weights
    if isinstance(distance, Euclidean):
        diagonal = all(not v for i, row in enumerate(distance.matrix) for j, v in enumerate(row) if i != j)
        return ("sum" if diagonal else None), weights
    return ("sum" if type(distance).__name__ == "Power" else None), weights


def _is_plain_power(distance: Ball) -> bool:
    return _power(distance, 1)[0] == "sum"


def _candidates(row: Row, a: Vector, b: Fraction, loose: Sequence[int]) -> Iterator[Vector]:
    """x', and x' moved onto the plane along one feature or all, where that is within τ."""
    assert row.image is not None
    yield row.image
    if not row.least or row.distance is None:
        return
    off = dot(a, row.image) - b
    ways = [[i] for i in loose if a[i]] + [[i for i in loose if a[i]]]
    for way in ways:
        square = sum((a[i] ** 2 for i in way), ZERO)
        shift = [-off * a[i] / square if i in way else ZERO for i in range(len(a))] if square else None
        if shift is not None and row.distance.length(tuple(shift))[1].bounds()[1] <= row.least:
            yield tuple(u + v for u, v in zip(row.image, shift, strict=True))


def _is_answer(row: Row, image: Vector, a: Vector, b: Fraction, y: int, own: Fraction, free: Sequence[int]) -> bool:
    """True if x° = image is valid, across, and an optimum among some reachable points. (If not, another X(x) might still do.)"""
    limits = zip(image, row.domain.low.tolist(), row.domain.high.tolist(), strict=True)
    if not all(low <= v <= high for v, low, high in limits):  # floats compare exactly with fractions
        return False
    beyond = -y * (dot(a, image) - b)
    step = [v - u for u, v in zip(row.point, image, strict=True)]
    if beyond < 0:
        return False
    if not any(step):
        return beyond == 0  # across by the closed convention alone: x itself is on the plane
    if row.slack is None:
        return True
    if own == 0 and beyond == 0:
        return False  # x is across at no cost (closed), or x° is not across (label)
    if row.slack:
        return True
    moved = [i for i in free if step[i]]
    if not moved:
        return True
    if row.distance is None:
        # Only a cost that falls with a·z is needed: some norm has it.
        return beyond == 0
    kind, weights = _power(row.distance, len(step))
    if kind == "sum" or not [i for i, v in enumerate(step) if v and i not in moved]:
        return beyond == 0 and all(-y * a[i] * step[i] > 0 for i in moved)
    if kind == "max":
        farthest = max(d * abs(v) for d, v in zip(weights, step, strict=True))
        if any(i not in moved and weights[i] * abs(v) == farthest for i, v in enumerate(step)):
            return True  # shorter moves of the others are no cheaper
        return beyond == 0 and all(-y * a[i] * step[i] > 0 for i in moved)
    return False


# --- models by trying -------------------------------------------------------------------------------------------------


def directions(rows: Sequence[Row], queries: Sequence[Vector], grid: int = 2) -> list[Vector]:
    """Normals at which something may change, for p ≤ 2, and small whole ones: both signs of each."""
    p = len(rows[0].point)
    if p == 1:
        return [(ONE,), (-ONE,)]
    whole = [Fraction(k) for k in range(-grid, grid + 1)]
    found = dict.fromkeys(v for v in product(whole, repeat=p) if any(v))
    points = [row.point for row in rows] + [row.image for row in rows if row.image] + list(queries)
    for i, u in enumerate(points):
        for v in points[:i]:
            found[(v[1] - u[1], u[0] - v[0])] = None
    for row in rows:
        for ball in (row.distance, row.ball):
            base, weights = (ball.base, ball.weights) if isinstance(ball, Weighted) else (ball, (ONE,) * p)
            if isinstance(base, Polytope):
                found.update(dict.fromkeys(tuple(d * v for d, v in zip(weights, f, strict=True)) for f in base.facets))
            if isinstance(base, Euclidean) and row.image is not None and any(row.step):
                scaled = [d * v for d, v in zip(weights, row.step, strict=True)]
                found[tuple(d * dot(m, scaled) for d, m in zip(weights, base.matrix, strict=True))] = None
    unsigned = [v for v in found if any(v)]
    scaled = {tuple(x / max(map(abs, v)) for x in v): None for v in unsigned}
    return list(scaled | {tuple(-x for x in v): None for v in scaled})


def models(known: Definition, queries: Sequence[Vector], normals: Sequence[Vector]) -> Iterator[Model]:
    """Consistent models with one of these normals: for each, an offset wherever a label or an end of some levels may be, and
    between every two of them."""
    for a in normals:
        marks: set[Fraction] = {dot(a, q) for q in queries}
        for k, row in enumerate(known.rows):
            level = dot(a, row.point)
            marks.add(level)
            if row.image is None:
                continue
            marks.add(dot(a, row.image))
            if row.domain is not None:
                continue
            reach = ZERO if not row.radius or row.ball is None else row.radius * row.ball.dual(a)[0].bounds()[0]
            for y in (1, -1) if row.label is None else (row.label,):
                ends = known.levels(k, a, y).inner
                for end in () if ends is None else ends:
                    marks.update(level - y * (bound - reach) for bound in end.bounds())
        places = sorted(marks)
        middle = [(u + v) / 2 for u, v in pairwise(places)]
        for b in (places[0] - 1, *places, *middle, places[-1] + 1):
            if known.judge(a, b):
                yield a, b
