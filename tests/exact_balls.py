"""Norms and steps to the plane in exact numbers, for `definition`. Nothing of the package is used.

For a step w and c = −y·a, the *levels* are the G ≥ 0 for which some step w° has

    ‖w° − w‖ ≤ τ,   c·w° ≥ G,   ‖w°‖·t ≤ (1 + ε)·G,     t = max {c·u : ‖u‖ ≤ 1}.

They are an interval: the set of (w°, G) is convex. Polyhedral norms: by linear programs in rationals. Scalar products: by a
quadratic inequality, its ends are q ± √r. Other norms: in sixty decimals, with a margin: an inner and an outer interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

getcontext().prec = 60
MARGIN = Decimal("1e-45")
"""What sixty decimals may be off by, relative to the numbers involved; with room to spare."""

ZERO, ONE = Fraction(0), Fraction(1)
Vector = tuple[Fraction, ...]


# --- numbers q ± √r ---------------------------------------------------------------------------------------------------


class Surd(NamedTuple):
    """q + √r if r ≥ 0, q − √−r if r < 0."""

    q: Fraction
    r: Fraction = ZERO

    def plus(self, shift: Fraction) -> Surd:
        return Surd(self.q + shift, self.r)

    def bounds(self) -> tuple[Fraction, Fraction]:
        """Rationals around it, equal if it is rational."""
        low, high = root(abs(self.r))
        return (self.q + low, self.q + high) if self.r >= 0 else (self.q - high, self.q - low)


def compare(x: Surd, y: Surd) -> int:
    """The sign of x − y, exactly."""
    return _sign(x.q - y.q, x.r, -y.r)


def _sign(q: Fraction, r: Fraction, s: Fraction) -> int:
    """The sign of q ± √|r| ± √|s|: squared until no root is left."""
    if r == 0 or s == 0:
        u = r + s
        if q * u >= 0:
            return (q + u > 0) - (q + u < 0)
        size = (q * q > abs(u)) - (q * q < abs(u))
        return size if q > 0 else -size
    if (r > 0) == (s > 0):
        lead, square = 1 if r > 0 else -1, _sign(abs(r) + abs(s) - q * q, 4 * r * s, ZERO)
    else:
        lead = ((r + s) > 0) - ((r + s) < 0)
        square = _sign(abs(r) + abs(s) - q * q, 4 * r * s, ZERO)  # (√|r| − √|s|)² − q²; r·s < 0 carries the minus
    if q == 0 or lead == 0 or (q > 0) == (lead > 0):
        return lead or (q > 0) - (q < 0)
    return square * lead if square else 0


def root(x: Fraction, digits: int = 70) -> tuple[Fraction, Fraction]:
    """√x between two rationals, equal if it is one."""
    n, d = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if n * n == x.numerator and d * d == x.denominator:
        return Fraction(n, d), Fraction(n, d)
    shift = 10 ** (digits + max(0, len(str(x.denominator)) - len(str(x.numerator))) // 2)
    low = math.isqrt(x.numerator * shift * shift // x.denominator)
    return Fraction(low, shift), Fraction(low + 1, shift)


class Levels(NamedTuple):
    """An interval between an inner and an outer one; `inner` or `outer` is None if it is empty."""

    inner: tuple[Surd, Surd] | None
    outer: tuple[Surd, Surd] | None


def _interval(low: Surd, high: Surd) -> tuple[Surd, Surd] | None:
    low = max(low, Surd(ZERO), key=_Key)
    return (low, high) if compare(low, high) <= 0 else None


class _Key:
    def __init__(self, value: Surd) -> None:
        self.value = value

    def __lt__(self, other: _Key) -> bool:
        return compare(self.value, other.value) < 0

    def __gt__(self, other: _Key) -> bool:
        return compare(self.value, other.value) > 0


def largest(*values: Surd) -> Surd:
    return max(values, key=_Key)


def smallest(*values: Surd) -> Surd:
    return min(values, key=_Key)


# --- linear algebra and linear programs in rationals ------------------------------------------------------------------


def dot(u: Sequence[Fraction], v: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(u, v, strict=True)), ZERO)


def solve(rows: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> Vector | None:
    """The solution of a square system; None if it is singular."""
    size = len(rows)
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for k in range(size):
        pivot = next((i for i in range(k, size) if table[i][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [v / table[k][k] for v in table[k]]
        for i in range(size):
            if i != k and table[i][k]:
                table[i] = [v - table[i][k] * u for v, u in zip(table[i], table[k], strict=True)]
    return tuple(row[-1] for row in table)


Rows = list[tuple[Vector, Fraction]]
FAR = Fraction(10**30)


def highest(goal: Sequence[Fraction], rows: Rows) -> Vector | None:
    """The u with the largest goal·u among n·u ≤ h for all (n, h), |u_i| ≤ FAR; None if there is none. Row by row (Seidel)."""
    size = len(goal)
    if size == 1:
        low, high = -FAR, FAR
        for (n,), h in rows:
            if n > 0:
                high = min(high, h / n)
            elif n < 0:
                low = max(low, h / n)
            elif h < 0:
                return None
        return None if low > high else ((high if goal[0] >= 0 else low),)
    best: Vector = tuple(FAR if g >= 0 else -FAR for g in goal)
    for k, (n, h) in enumerate(rows):
        if dot(n, best) <= h:
            continue
        if not any(n):
            return None
        # The optimum lies on this row: put u_j = (h − rest)/n_j everywhere.
        j = max(range(size), key=lambda i: abs(n[i]))

        def reduced(m: Vector, g: Fraction, n: Vector = n, h: Fraction = h, j: int = j) -> tuple[Vector, Fraction]:
            share = m[j] / n[j]
            return tuple(m[i] - share * n[i] for i in range(len(n)) if i != j), g - share * h

        unit = tuple(Fraction(int(i == j)) for i in range(size))
        limits = [(unit, FAR), (tuple(-v for v in unit), FAR)]
        found = highest(reduced(tuple(goal), ZERO)[0], [reduced(m, g) for m, g in (*limits, *rows[:k])])
        if found is None:
            return None
        full = [*found[:j], ZERO, *found[j:]]
        full[j] = (h - dot(n, full)) / n[j]
        best = tuple(full)
    return best


# --- the norms --------------------------------------------------------------------------------------------------------


class Ball:
    """A norm. `length` and `dual` are Surds where that is exact, else between two rationals."""

    def length(self, u: Vector) -> tuple[Surd, Surd]:
        raise NotImplementedError

    def dual(self, a: Vector) -> tuple[Surd, Surd]:
        raise NotImplementedError

    def levels(self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction) -> Levels:
        """See above; τ lies between `low` and `high`."""
        raise NotImplementedError

    def allows(
        self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction, least: Surd, most: Surd
    ) -> bool | None:
        """Is the level, which lies between `least` and `most`, one of these? None: it cannot be told."""
        levels = self.levels(w, c, slack, low, high)
        if levels.inner and compare(levels.inner[0], least) <= 0 and compare(most, levels.inner[1]) <= 0:
            return True
        if not levels.outer or compare(most, levels.outer[0]) < 0 or compare(levels.outer[1], least) < 0:
            return False
        return None

    def _loose(self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction) -> Levels:
        """From the triangle inequality alone; it is the interval itself if (1 + ε)·c·w ≥ ‖w‖·t: then steps along w and along the
        steepest direction have every level in it."""
        (_, l_high), (_, t_high) = self.length(w)[1].bounds(), self.dual(c)[1].bounds()
        (l_low, _), (t_low, _) = self.length(w)[0].bounds(), self.dual(c)[0].bounds()
        down, stretch = dot(c, w), 1 + slack
        outer = _interval(
            Surd(min((l_low - high) * t_low, (l_low - high) * t_high) / stretch), Surd(down + high * t_high)
        )
        inner = None
        if stretch * down >= l_high * t_high:
            inner = _interval(
                Surd(max((l_high - low) * t_high, (l_high - low) * t_low) / stretch), Surd(down + low * t_low)
            )
        return Levels(inner, outer)


@dataclass(frozen=True)
class Polytope(Ball):
    """‖u‖ = max f·u over the facets; the corners are those of its unit ball."""

    facets: tuple[Vector, ...]
    corners: tuple[Vector, ...]

    def length(self, u: Vector) -> tuple[Surd, Surd]:
        value = Surd(max(dot(f, u) for f in self.facets))
        return value, value

    def dual(self, a: Vector) -> tuple[Surd, Surd]:
        value = Surd(max(dot(a, v) for v in self.corners))
        return value, value

    def levels(self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction) -> Levels:
        assert low == high, "a polyhedral length is rational"
        found = self._range(w, c, slack, low)
        ends = None if found is None else (Surd(found[0]), Surd(found[1]))
        return Levels(ends, ends)

    def _range(self, w: Vector, c: Vector, slack: Fraction, tau: Fraction) -> tuple[Fraction, Fraction] | None:
        t, length = self.dual(c)[0].q, self.length(w)[0].q
        if tau == 0:
            low, high = length * t / (1 + slack), dot(c, w)
            return (low, high) if low <= high else None
        steepest = [v for v in self.corners if dot(c, v) == t]
        if slack == 0 and len(steepest) <= len(w):
            # w° = Σ λ_j v_j over the steepest corners, λ ≥ 0, G = t·Σλ.
            rows: Rows = [(tuple(dot(f, v) for v in steepest), tau + dot(f, w)) for f in self.facets]
            rows += [(tuple(Fraction(-int(i == j)) for i in range(len(steepest))), ZERO) for j in range(len(steepest))]
            goal = [t] * len(steepest)
        else:
            return self.by_program(w, c, slack, tau)
        top = highest(goal, rows)
        if top is None:
            return None
        bottom = highest([-g for g in goal], rows)
        assert bottom is not None
        return dot(goal, bottom), dot(goal, top)

    def by_program(self, w: Vector, c: Vector, slack: Fraction, tau: Fraction) -> tuple[Fraction, Fraction] | None:
        """The definition as it stands: the least and the largest G over all (w°, G)."""
        t = self.dual(c)[0].q
        rows: Rows = [((*f, ZERO), tau + dot(f, w)) for f in self.facets]
        rows += [((*(t * v for v in f), -(1 + slack)), ZERO) for f in self.facets]
        rows.append(((*(-v for v in c), ONE), ZERO))
        goal = [ZERO] * len(w) + [ONE]
        top = highest(goal, rows)
        if top is None:
            return None
        bottom = highest([-g for g in goal], rows)
        assert bottom is not None
        return bottom[-1], top[-1]


def polar(rows: Sequence[Vector]) -> tuple[Vector, ...]:
    """The corners of {u : row·u ≤ 1 for all rows}, which are the facets of the hull of the rows."""
    size, found = len(rows[0]), {}
    for some in combinations(rows, size):
        u = solve(some, [ONE] * size)
        if u is not None and all(dot(row, u) <= 1 for row in rows):
            found[u] = None
    return tuple(found)


@dataclass(frozen=True)
class Euclidean(Ball):
    """‖u‖² = u·M·u."""

    matrix: tuple[Vector, ...]
    inverse: tuple[Vector, ...]

    def _square(self, matrix: Sequence[Vector], u: Vector) -> Fraction:
        return sum((u[i] * dot(matrix[i], u) for i in range(len(u))), ZERO)

    def length(self, u: Vector) -> tuple[Surd, Surd]:
        value = Surd(ZERO, self._square(self.matrix, u))
        return value, value

    def dual(self, a: Vector) -> tuple[Surd, Surd]:
        value = Surd(ZERO, self._square(self.inverse, a))
        return value, value

    def levels(self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction) -> Levels:
        length, t, down = self._square(self.matrix, w), self._square(self.inverse, c), dot(c, w)
        if high == 0:
            ends = _interval(Surd(ZERO, length * t / (1 + slack) ** 2), Surd(down))
            return Levels(ends, ends)
        if slack:
            return self._loose(w, c, slack, low, high)

        def within(
            tau: Fraction,
        ) -> tuple[Surd, Surd] | None:  # ‖w‖²t² − 2G·c·w + G² ≤ τ²t²: the optimum is (G/t²)·M⁻¹c
            room = down * down - (length - tau * tau) * t
            return None if room < 0 else _interval(Surd(down, -room), Surd(down, room))

        return Levels(within(low), within(high))


@dataclass(frozen=True)
class Weighted(Ball):
    """‖u‖ = base(d·u)."""

    base: Ball
    weights: Vector

    def _to(self, u: Vector) -> Vector:
        return tuple(d * v for d, v in zip(self.weights, u, strict=True))

    def _from(self, a: Vector) -> Vector:
        return tuple(v / d for d, v in zip(self.weights, a, strict=True))

    def length(self, u: Vector) -> tuple[Surd, Surd]:
        return self.base.length(self._to(u))

    def dual(self, a: Vector) -> tuple[Surd, Surd]:
        return self.base.dual(self._from(a))

    def levels(self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction) -> Levels:
        return self.base.levels(self._to(w), self._from(c), slack, low, high)

    def allows(self, w: Vector, c: Vector, *rest: Any) -> bool | None:
        return self.base.allows(self._to(w), self._from(c), *rest)


class Decimals(Ball):
    """A norm in sixty decimals. `_nearest` is the optimal step of length R that is nearest to w, or one that is near."""

    is_unique = True

    def _length(self, u: Sequence[Decimal]) -> Decimal:
        raise NotImplementedError

    def _dual(self, a: Sequence[Decimal]) -> Decimal:
        raise NotImplementedError

    def _nearest(self, w: Sequence[Decimal], c: Vector, r: Decimal) -> tuple[list[Decimal], bool]:
        """(the step, True if none is nearer)."""
        raise NotImplementedError

    def length(self, u: Vector) -> tuple[Surd, Surd]:
        return _around(self._length(_decimals(u)))

    def dual(self, a: Vector) -> tuple[Surd, Surd]:
        return _around(self._dual(_decimals(a)))

    def _gap(self, w: Sequence[Decimal], c: Vector, r: Decimal) -> tuple[Decimal, Decimal, bool]:
        step, is_nearest = self._nearest(w, c, r)
        far = self._length([u - v for u, v in zip(step, w, strict=True)])
        off = MARGIN * (self._length(w) + r)
        return far - off, far + off, is_nearest

    def levels(self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction) -> Levels:
        loose = self._loose(w, c, slack, low, high)
        if slack or high == 0 or loose.outer is None:
            return loose
        wide, size = _decimals(w), self._dual(_decimals(c))
        tau = _decimal(low)
        bottom, top = (_decimal(end.q) / size for end in loose.outer)
        left, right = bottom, top
        guess = _decimal(dot(c, w)) / size
        if self._gap(wide, c, max(guess, Decimal(0)))[1] <= tau:
            left = right = max(guess, Decimal(0))
        for _ in range(250):  # the gap is convex in R
            if right - left <= MARGIN * right:
                break
            one, two = left + (right - left) / 3, right - (right - left) / 3
            if self._gap(wide, c, one)[1] <= self._gap(wide, c, two)[1]:
                right = two
            else:
                left = one
            if self._gap(wide, c, one)[1] <= tau:
                left = right = one
        if self._gap(wide, c, left)[1] > tau:
            return Levels(None, loose.outer)
        ends = []
        for end in (bottom, top):
            inside, outside = left, end
            for _ in range(60):
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if self._gap(wide, c, middle)[1] <= tau else (inside, middle)
            ends.append(Fraction(inside * size))
        return Levels((Surd(ends[0]), Surd(ends[1])), loose.outer)

    def allows(
        self, w: Vector, c: Vector, slack: Fraction, low: Fraction, high: Fraction, least: Surd, most: Surd
    ) -> bool | None:
        if slack or high == 0:
            return super().allows(w, c, slack, low, high, least, most)
        wide, (t_low, t_high) = _decimals(w), (end.q for end in self.dual(c))
        gaps = [
            self._gap(wide, c, _decimal(max(end / t, ZERO)))
            for end, t in ((least.bounds()[0], t_high), (most.bounds()[1], t_low))
        ]
        if all(gap[1] <= _decimal(low) for gap in gaps):
            return True
        # A level between the two moves the optimum by no more than they are apart.
        apart = _decimal(most.bounds()[1] / t_low - least.bounds()[0] / t_high) + MARGIN * (1 + self._length(wide))
        if gaps[0][2] and gaps[0][0] - apart > _decimal(high):
            return False
        return super().allows(w, c, slack, low, high, least, most) if not gaps[0][2] else None


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _decimals(u: Vector) -> list[Decimal]:
    return [_decimal(v) for v in u]


def _around(x: Decimal) -> tuple[Surd, Surd]:
    return Surd(Fraction(x * (1 - MARGIN))), Surd(Fraction(x * (1 + MARGIN)))


def _euclid(u: Sequence[Decimal]) -> Decimal:
    return sum((v * v for v in u), Decimal(0)).sqrt()


@dataclass(frozen=True)
class Power(Decimals):
    """ℓq, 1 < q < ∞."""

    q: Decimal

    def _norm(self, u: Sequence[Decimal], q: Decimal) -> Decimal:
        total = sum((abs(v) ** q for v in u if v), Decimal(0))
        return total ** (1 / q) if total else Decimal(0)

    def _length(self, u: Sequence[Decimal]) -> Decimal:
        return self._norm(u, self.q)

    def _dual(self, a: Sequence[Decimal]) -> Decimal:
        return self._norm(a, self.q / (self.q - 1))

    def _nearest(self, w: Sequence[Decimal], c: Vector, r: Decimal) -> tuple[list[Decimal], bool]:
        wide = _decimals(c)
        size = self._dual(wide)
        return [(r * (abs(v) / size) ** (1 / (self.q - 1))).copy_sign(v) if v else Decimal(0) for v in wide], True


@dataclass(frozen=True)
class Groups(Decimals):
    """‖u‖ = Σ_g ‖u_g‖₂."""

    groups: tuple[tuple[int, ...], ...]

    def _parts(self, u: Sequence[Decimal]) -> list[Decimal]:
        return [_euclid([u[i] for i in group]) for group in self.groups]

    def _length(self, u: Sequence[Decimal]) -> Decimal:
        return sum(self._parts(u), Decimal(0))

    def _dual(self, a: Sequence[Decimal]) -> Decimal:
        return max(self._parts(a))

    def _nearest(self, w: Sequence[Decimal], c: Vector, r: Decimal) -> tuple[list[Decimal], bool]:
        squares = [sum((c[i] ** 2 for i in group), ZERO) for group in self.groups]
        best = [g for g, square in enumerate(squares) if square == max(squares)]
        size, wide = _decimal(max(squares)).sqrt(), _decimals(c)
        # Tied groups share R as w does; that need not be the nearest.
        shares = {g: max(sum((wide[i] * w[i] for i in self.groups[g]), Decimal(0)), Decimal(0)) for g in best}
        total = sum(shares.values(), Decimal(0))
        step = [Decimal(0)] * len(w)
        for g in best:
            share = shares[g] / total if total else Decimal(1) / len(best)
            for i in self.groups[g]:
                step[i] = r * share * wide[i] / size
        return step, len(best) == 1


@dataclass(frozen=True)
class GroupsMax(Groups):
    """‖u‖ = max_g ‖u_g‖₂."""

    def _length(self, u: Sequence[Decimal]) -> Decimal:
        return max(self._parts(u))

    def _dual(self, a: Sequence[Decimal]) -> Decimal:
        return sum(self._parts(a), Decimal(0))

    def _nearest(self, w: Sequence[Decimal], c: Vector, r: Decimal) -> tuple[list[Decimal], bool]:
        wide, step = _decimals(c), list(w)
        for group, size, own in zip(self.groups, self._parts(wide), self._parts(w), strict=True):
            for i in group:
                if size:
                    step[i] = r * wide[i] / size
                elif own > r:
                    step[i] = w[i] * r / own
        return step, True


def ball_of(spec: Any, p: int) -> Ball:
    """The norm with this written form."""
    return _ball(json.dumps(spec), p)


@lru_cache(maxsize=512)
def _ball(text: str, p: int) -> Ball:
    spec = json.loads(text)
    if isinstance(spec, str):
        units = [tuple(Fraction(s * int(i == j)) for j in range(p)) for i in range(p) for s in (1, -1)]
        signs = [tuple(map(Fraction, some)) for some in product((1, -1), repeat=p)]
        if spec in ("l1", "lp:1", "lp:1.0"):
            return Polytope(tuple(signs), tuple(units))
        if spec in ("linf", "lp:inf"):
            return Polytope(tuple(units), tuple(signs))
        if spec in ("l2", "lp:2", "lp:2.0"):
            return Euclidean(tuple(units[::2]), tuple(units[::2]))
        return Power(Decimal(spec.removeprefix("lp:")))
    kind = spec["norm"]
    if kind == "weighted":
        return Weighted(ball_of(spec["base"], p), tuple(map(Fraction, spec["weights"])))
    if kind in ("group", "group-max"):
        groups = tuple(tuple(group) for group in spec["groups"])
        return Groups(groups) if kind == "group" else GroupsMax(groups)
    rows = tuple(
        tuple(map(Fraction, row)) for row in spec[{"polyhedral": "vertices", "facets": "facets"}.get(kind, "matrix")]
    )
    if kind == "polyhedral":
        return Polytope(polar(rows), rows)
    if kind == "facets":
        return Polytope(rows, polar(rows))
    columns = [solve(rows, [Fraction(int(i == j)) for i in range(p)]) for j in range(p)]
    assert all(column is not None for column in columns)
    inverse = tuple(zip(*columns, strict=True))  # type: ignore[arg-type]
    return Euclidean(rows, inverse) if kind == "mahalanobis" else Euclidean(inverse, rows)
