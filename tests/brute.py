"""The truth about certified regions, in exact rationals, for small logs; `sweep` finds it by another route.

Both start from the definition. A consistent model is any (a, b), a ≠ 0, with a·x ≥ b at every Yes, a·x < b at every No
and, for an explained row (x, y, x') with an exact answer, a·x' = b and −y·a ∈ K(x' − x). Neither calls the engine.

`truth` writes the closure of that set as a cone {w : G·w ≤ 0, E·w = 0}, w = (a, b), finds generators of it by the double
description method in whole numbers, and reads the verdicts off their signs (`_signs` has the argument).

Tolerances are taken as 0, whatever the mechanism says. Distances: ℓ1, ℓ2, ℓ∞ and their weighted forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

import overexplain as ox

Whole = tuple[int, ...]
"""A vector in whole numbers without a common factor: a direction, exactly."""

YES, NO, UNKNOWN, BOUNDARY = 1, -1, 0, 2
LETTERS = {YES: "Y", NO: "N", UNKNOWN: ".", BOUNDARY: "="}


# --- what a log promises ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """A row of a log in exact numbers; `kind` says which of the promises its explanation makes, None if it makes none."""

    point: tuple[Fraction, ...]
    label: int
    image: tuple[Fraction, ...] = ()
    kind: str | None = None
    weights: tuple[Fraction, ...] = ()
    slack: Fraction = Fraction(0)

    @property
    def step(self) -> list[Fraction]:
        return [b - a for a, b in zip(self.point, self.image, strict=True)]


def givens(log: ox.QueryLog) -> list[Given]:
    """The rows of a log, exactly; robust explanations and those without a mechanism count as labels only."""
    rows = []
    for row in log:
        point, label = tuple(map(Fraction, row.point.tolist())), row.label or 0
        if row.explanation is None or row.mechanism is None or row.mechanism.radius != 0:
            rows.append(Given(point, label))
            continue
        image, slack, distance = (
            tuple(map(Fraction, row.explanation.tolist())),
            row.mechanism.slack,
            row.mechanism.distance,
        )
        if slack is None or distance is None:
            rows.append(Given(point, label, image, "plane" if slack == 0 else "valid"))
            continue
        weights = (Fraction(1),) * len(point)
        if isinstance(distance, ox.Weighted):
            distance, weights = distance.norm, tuple(map(Fraction, distance.weights.tolist()))
        kind = {1.0: "l1", 2.0: "l2", math.inf: "linf"}[distance.q]
        rows.append(Given(point, label, image, kind, weights, Fraction(slack)))
    return rows


@dataclass(frozen=True)
class Cone:
    """{w : equal·w = 0, closed·w ≤ 0, strict·w < 0}, a ≠ 0, as generators of its closure."""

    generators: tuple[Whole, ...]
    strict: tuple[Whole, ...]

    @property
    def has_a_model(self) -> bool:
        return _holds_a_model(self.generators, self.strict)


def cone(rows: Sequence[Given], sides: Sequence[int], dimension: int) -> Cone:
    """All models of the rows if row i lies on `sides[i]`; 0: its side is not known and what depends on it is not used."""
    equal: list[list[Fraction]] = []
    closed: list[list[Fraction]] = []
    strict: list[list[Fraction]] = []
    for row, y in zip(rows, sides, strict=True):
        own = [*row.point, Fraction(-1)]
        if y:
            # An exact answer of an unknown distance that moved was asked about a point off the plane.
            is_strict = y < 0 or (row.kind == "plane" and any(row.step))
            (strict if is_strict else closed).append([-y * v for v in own])
        if row.kind is None:
            continue
        across = [*row.image, Fraction(-1)]
        if row.slack == 0 and row.kind != "valid":
            equal.append(across)
        elif y:
            closed.append([y * v for v in across])
        if not y or row.kind in ("plane", "valid"):
            continue
        if row.slack == 0:
            fixed, bounded = _normal_cone(row, -y)
            equal += fixed
            closed += bounded
        else:  # y(a·x − b) ≥ ‖w‖/(1+slack)·‖a‖*, and ‖a‖* is the largest a·u over the corners u of the unit ball
            margin = _length(row) / (1 + row.slack)
            closed += [[margin * u - y * v for u, v in zip((*c, Fraction(0)), own, strict=True)] for c in _corners(row)]
    no_rows = tuple(_whole(g) for g in strict)
    return Cone(_generators([_whole(e) for e in equal], [*map(_whole, closed), *no_rows], dimension + 1), no_rows)


def _normal_cone(row: Given, sign: int) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """sign·a ∈ K(w) as rows e·(a, b) = 0 and g·(a, b) ≤ 0."""
    step, size = row.step, len(row.step)
    if not any(step):
        return [], []  # K(0) is everything

    def entry(i: int, factor: Fraction | int, j: int = 0, minus: Fraction | int = 0) -> list[Fraction]:
        out = [Fraction(0)] * (size + 1)
        out[i] += Fraction(sign * factor)
        out[j] -= Fraction(sign * minus)
        return out

    signs = [(v > 0) - (v < 0) for v in step]
    if row.kind == "l1":  # a_i = t·d_i·sgn(w_i) where w moves, |a_i| ≤ t·d_i elsewhere
        k = next(i for i in range(size) if signs[i])
        unit = [signs[k] * d / row.weights[k] for d in row.weights]  # t·d_i = unit_i·a_k
        moved, still = [i for i in range(size) if signs[i] and i != k], [i for i in range(size) if not signs[i]]
        return (
            [entry(i, 1, k, signs[i] * unit[i]) for i in moved],
            [entry(i, s, k, unit[i]) for i in still for s in (1, -1)] + [entry(k, -signs[k])],
        )
    if row.kind == "linf":  # a_i = 0 off the largest moves, of their sign on them
        longest = _length(row)
        most = [row.weights[i] * abs(step[i]) == longest for i in range(size)]
        return (
            [entry(i, 1) for i in range(size) if not most[i]],
            [entry(i, -signs[i]) for i in range(size) if most[i]],
        )
    slope = [d * d * v for d, v in zip(row.weights, step, strict=True)]  # ℓ2: the ray of the gradient
    k = next(i for i in range(size) if slope[i])
    return [entry(i, slope[k], k, slope[i]) for i in range(size) if i != k], [entry(k, -signs[k])]


def _length(row: Given) -> Fraction:
    parts = [d * abs(v) for d, v in zip(row.weights, row.step, strict=True)]
    return sum(parts, Fraction(0)) if row.kind == "l1" else max(parts)


def _corners(row: Given) -> list[tuple[Fraction, ...]]:
    """The corners of the unit ball of a weighted ℓ1 or ℓ∞."""
    if row.kind == "linf":
        return [
            tuple(s / d for s, d in zip(signs, row.weights, strict=True))
            for signs in product((1, -1), repeat=len(row.weights))
        ]
    assert row.kind == "l1", "slack under ℓ2 is no polyhedral cone"
    size = len(row.weights)
    return [tuple(Fraction(s * (i == j)) / row.weights[i] for j in range(size)) for i in range(size) for s in (1, -1)]


# --- the double description method ------------------------------------------------------------------------------------


def _whole(v: Iterable[Fraction]) -> Whole:
    v = list(v)
    bottom = math.lcm(*(f.denominator for f in v))
    return _primitive([int(f * bottom) for f in v])


def _primitive(v: Sequence[int]) -> Whole:
    factor = math.gcd(*v)
    return tuple(x // factor for x in v) if factor else tuple(v)


def _dot(u: Sequence[int], v: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(u, v, strict=True))


def _generators(equal: Sequence[Whole], closed: Sequence[Whole], size: int) -> tuple[Whole, ...]:
    """Generators of {w : equal·w = 0, closed·w ≤ 0}: extreme rays, and both directions of every line in it."""
    lines: list[Whole] = [tuple(int(i == j) for j in range(size)) for i in range(size)]
    rays: list[Whole] = []
    used: list[Whole] = []
    for row, is_equality in [(e, True) for e in equal] + [(g, False) for g in closed]:
        pivot = next((line for line in lines if _dot(row, line)), None)
        if pivot is not None:  # tilt everything else along the line into row·w = 0; what is left of the line is a ray
            tilt = -_dot(row, pivot)
            if tilt < 0:
                pivot, tilt = tuple(-x for x in pivot), -tilt
            lines = [
                _sum(tilt, line, _dot(row, line), pivot)
                for line in lines
                if line not in (pivot, tuple(-x for x in pivot))
            ]
            rays = [_sum(tilt, ray, _dot(row, ray), pivot) for ray in rays] + ([] if is_equality else [pivot])
        else:
            values = [(_dot(row, ray), ray) for ray in rays]
            above, below = [r for r in values if r[0] > 0], [r for r in values if r[0] < 0]
            kept = [ray for value, ray in values if value == 0 or (value < 0 and not is_equality)]
            rays = kept + [_sum(high, ray, -low, other) for high, other in above for low, ray in below]
        used.append(row)
        rays = _extreme(rays, used)
    return tuple(rays) + tuple(lines) + tuple(tuple(-x for x in line) for line in lines)


def _sum(m: int, u: Whole, n: int, v: Whole) -> Whole:
    return _primitive([m * x + n * y for x, y in zip(u, v, strict=True)])


def _extreme(rays: Sequence[Whole], rows: Sequence[Whole]) -> list[Whole]:
    """The rays without those that others generate: such a ray is a sum of rays that are tight wherever it is."""
    tight = {ray: frozenset(i for i, row in enumerate(rows) if _dot(row, ray) == 0) for ray in rays if any(ray)}
    kept = list(tight)
    for ray in list(tight):
        if any(other != ray and tight[ray] <= tight[other] for other in kept):
            kept.remove(ray)
    return kept


# --- verdicts ---------------------------------------------------------------------------------------------------------


def _holds_a_model(generators: Sequence[Whole], strict: Sequence[Whole]) -> bool:
    """Some w in the hull of the generators has a ≠ 0 and is strict at every No: then so is a generic one, with weight on all."""
    return any(any(g[:-1]) for g in generators) and all(any(_dot(n, g) < 0 for g in generators) for n in strict)


def _signs(models: Cone, query: Whole) -> set[int]:
    """The signs that query·w takes over the consistent models.

    Positive and negative values are attained where a generator has them: mix in a little of a generic model to be strict. If
    there is only one of the two signs, query·w = 0 cuts out the face of the generators on it, and 0 is attained iff that
    face holds a model of its own.
    """
    values = [_dot(query, g) for g in models.generators]
    signs = {(v > 0) - (v < 0) for v in values if v}
    face = [g for g, v in zip(models.generators, values, strict=True) if v == 0]
    if len(signs) == 2 or _holds_a_model(face, models.strict):
        signs.add(0)
    return signs


def verdict_of(signs: set[int]) -> int:
    """What can be said where consistent models have these signs of a·x − b (0 is a Yes)."""
    if signs == {0}:
        return BOUNDARY
    if -1 not in signs:
        return YES
    return NO if signs == {-1} else UNKNOWN


def worlds(rows: Sequence[Given], dimension: int) -> Iterator[Cone]:
    """The models of the rows, a convex cone for each way to place the explained rows whose label is missing."""
    open_rows = [i for i, row in enumerate(rows) if row.kind is not None and not row.label]
    for guess in product((1, -1), repeat=len(open_rows)):
        sides = [row.label for row in rows]
        for i, y in zip(open_rows, guess, strict=True):
            sides[i] = y
        models = cone(rows, sides, dimension)
        if models.has_a_model:
            yield models


def implied(rows: Sequence[Given], dimension: int) -> Cone:
    """The models if a row without a label counts as on a side only once the others imply it."""
    sides = [row.label for row in rows]
    while True:
        models = cone(rows, sides, dimension)
        for i, row in enumerate(rows):
            if row.kind is not None and not sides[i]:
                verdict = verdict_of(_signs(models, _whole([*row.point, Fraction(-1)])))
                if verdict != UNKNOWN:
                    sides[i] = NO if verdict == NO else YES
                    break
        else:
            return models


def is_consistent(rows: Sequence[Given], dimension: int) -> bool:
    """True if some model could have given every answer."""
    return any(True for _ in worlds(rows, dimension))


def truth(rows: Sequence[Given], points: np.ndarray, sides: str = "all") -> np.ndarray:
    """The verdicts at the points. Sides of unlabelled rows: "all" models on whichever side; "implied": see `implied`."""
    points = np.asarray(points, dtype=float)
    dimension = points.shape[1]
    cones = list(worlds(rows, dimension)) if sides == "all" else [implied(rows, dimension)]
    assert cones, "no model is consistent with the rows"
    labels = {row.point: row.label for row in rows if row.label}
    codes = []
    for x in points.tolist():
        exact = tuple(map(Fraction, x))
        query = _whole([*exact, Fraction(-1)])
        codes.append(labels.get(exact) or verdict_of(set().union(*(_signs(models, query) for models in cones))))
    return np.array(codes)


def picture(codes: np.ndarray, width: int) -> str:
    """The verdicts on a lattice as text, the last row of points on top; see `lattice`."""
    letters = np.array([LETTERS.get(int(code), "?") for code in codes]).reshape(-1, width)
    return "\n".join("".join(line) for line in letters[::-1])


def lattice(low: float, high: float, step: float = 0.5, dimension: int = 2) -> np.ndarray:
    """The points of a grid, first coordinate fastest."""
    axis = np.arange(low, high + step / 2, step)
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)[:, ::-1]
