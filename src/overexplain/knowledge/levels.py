"""How near an answer is to what a model would have answered: exact rational arithmetic, standard library only.

Seen from x, an optimal step of *level* G is a w° with ‖w°‖·t = G = a·w°, a being the normal turned so that it points across. A
model would have given the step w, to within τ, if some optimal step of its own level lies within τ of w. The levels for which one
does are an interval; what is returned lies inside it (docs/theory/consistent.md, Propositions 1 and 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from overexplain.knowledge.enclosures import (
    ZERO,
    Enclosure,
    Evidence,
    Vector,
    dot,
    dual_spec,
    enclose,
    exponent,
    is_aligned,
    measured,
    power,
    product,
    root,
    solve,
    split,
    upper,
    weighted,
)

HALVINGS = 12
"""Steps in which the lengths that are near enough are found where no formula tells them."""


class Levels(NamedTuple):
    """Levels from `low` to `high`."""

    low: Fraction
    high: Fraction


class Near(NamedTuple):
    """An optimal step of length `length` is at most `off` away."""

    length: Fraction
    off: Fraction


def optimal_levels(
    distance: Any, step: Vector, normal: Vector, size: Enclosure, tolerance: Fraction, evidence: Evidence
) -> Levels | None:
    """The levels of which some optimal step lies within the tolerance; None if none is found. `size` encloses t = ‖normal‖*."""
    along = dot(normal, step)
    if is_aligned(distance, step, normal, evidence, size):  # then the step itself is optimal
        return Levels(max(ZERO, along - tolerance * size[0]), along + tolerance * size[0])
    if tolerance == 0:
        return None
    squared = product(distance, step, step)
    if squared is not None:  # ‖w − w°‖² = ‖w‖² − 2·G·(a·w)/t² + G²/t²
        other = product(dual_spec(distance), normal, normal)
        assert other is not None
        spare = along * along - other * (squared - tolerance * tolerance)
        if spare < 0:
            return None
        room = root(spare)[0]
        return _levels(along - room, along + room)
    found = _lengths(distance, step, normal, size, tolerance, evidence)
    return None if found is None else _levels(found.low * size[1], found.high * size[0])


def slack_levels(
    length: Enclosure, along: Fraction, size: Enclosure, tolerance: Fraction, slack: Fraction
) -> Levels | None:
    """The same for steps of up to 1 + slack times the optimal length, slack > 0; `length` encloses ‖w‖, `along` is a·w."""
    stretch = 1 + slack
    lacking = length[1] * size[1] - stretch * along
    if lacking <= 0:
        low = max(ZERO, length[1] - tolerance) * size[1] / stretch
    elif size[0] > 0 and lacking <= slack * size[0] * tolerance:  # a little farther the way the plane lies
        low = (length[1] + lacking / (slack * size[0])) * size[1] / stretch
    else:
        return None
    return _levels(low, along + tolerance * size[0])


def _levels(low: Fraction, high: Fraction) -> Levels | None:
    return Levels(max(ZERO, low), high) if high >= max(ZERO, low) else None


def _lengths(
    spec: Any, w: Vector, a: Vector, size: Enclosure, tolerance: Fraction, evidence: Evidence
) -> Levels | None:
    """The lengths of optimal steps within the tolerance of w, by the kind of norm."""
    kind = spec["norm"] if isinstance(spec, dict) else "lq"
    near: Near | None = None
    if kind == "weighted":
        return _lengths(spec["base"], weighted(spec, w), weighted(dual_spec(spec), a), size, tolerance, evidence)
    if kind == "lq" and exponent(spec) is None:
        return _farthest(w, a, tolerance)
    if kind == "lq" and exponent(spec) == 1:
        near = _corners([abs(v) for v in a], [v if b >= 0 else -v for v, b in zip(w, a, strict=True)], size[1])
    elif kind == "lq":
        return _smooth(spec, w, a, size, tolerance)
    elif kind == "group":
        return _group(spec, w, a, tolerance)
    elif kind == "group-max":
        near = _group_max(spec, w, a, size)
    elif kind == "polyhedral":
        near = _polyhedral(spec, w, a, evidence)
    elif kind == "facets":
        near = _facets(spec, w, a, evidence)
    if near is None or near.off > tolerance:
        return None
    return _levels(near.length - (tolerance - near.off), near.length + (tolerance - near.off))


def _farthest(w: Vector, a: Vector, tolerance: Fraction) -> Levels | None:
    """ℓ∞: every feature with an effect moves by the whole length, the others by at most that."""
    moved = [v if b > 0 else -v for v, b in zip(w, a, strict=True) if b]
    idle = [abs(v) for v, b in zip(w, a, strict=True) if not b]
    return _levels(max([*moved, *idle]) - tolerance, min(moved) + tolerance)


def _corners(gains: Sequence[Fraction], amounts: Sequence[Fraction], best: Fraction) -> Near:
    """ℓ1: an optimal step is made of the axes with the greatest gain; what others contribute, or these the wrong way, is off."""
    used = [amount for gain, amount in zip(gains, amounts, strict=True) if gain == best and amount > 0]
    total = sum((abs(amount) for amount in amounts), ZERO)
    return Near(sum(used, ZERO), total - sum(used, ZERO))


def _smooth(spec: Any, w: Vector, a: Vector, size: Enclosure, tolerance: Fraction) -> Levels | None:
    """ℓq, 1 < q < ∞: the optimal step of length R is R·v, v_i = ±(|a_i|/t)^(r − 1) with the dual exponent r."""
    q = exponent(spec)
    assert q is not None
    ends = [(power(abs(b) / size[1], 1 / (q - 1))[0], power(abs(b) / size[0], 1 / (q - 1))[1]) for b in a]
    ahead = [v if b >= 0 else -v for v, b in zip(w, a, strict=True)]

    def off(length: Fraction) -> Fraction:
        pairs = zip(ahead, ends, strict=True)
        return enclose(spec, [max(abs(v - length * least), abs(v - length * most)) for v, (least, most) in pairs])[1]

    length = upper(max(ZERO, dot(w, a)) / size[1])
    least = off(length)
    if least > tolerance:
        return None
    room = [
        tolerance - least,
        tolerance - least,
    ]  # a length that differs by so much is off by no more than the tolerance
    if 4 * least > tolerance:
        for k, way in enumerate((-1, 1)):
            most = tolerance + least
            for _ in range(HALVINGS):
                middle = (room[k] + most) / 2
                room[k], most = (middle, most) if off(length + way * middle) <= tolerance else (room[k], middle)
    return _levels(length - room[0], length + room[1])


def _group(spec: Any, w: Vector, a: Vector, tolerance: Fraction) -> Levels | None:
    """Sums of ℓ2 over groups: an optimal step moves groups with the longest normal, along it."""
    parts = list(zip(split(spec, w), split(spec, a), strict=True))
    best = max(dot(b, b) for _, b in parts)
    longest = [(v, dot(v, b)) for v, b in parts if dot(b, b) == best]
    room = tolerance - sum((root(dot(v, v))[1] for v, b in parts if dot(b, b) != best), ZERO)
    low, high = root(best)
    if len(longest) == 1 and room >= 0:
        v, inner = longest[0]
        spare = room * room - dot(v, v) + inner * inner / best
        if spare < 0:
            return None
        width = root(spare)[0]
        return _levels(inner / (low if inner > 0 else high) - width, inner / (high if inner > 0 else low) + width)
    along = sum((max(ZERO, inner) for _, inner in longest), ZERO)
    room -= sum((root(dot(v, v) - (inner * inner / best if inner > 0 else 0))[1] for v, inner in longest), ZERO)
    return _levels(along / low - room, along / high + room) if room >= 0 else None


def _group_max(spec: Any, w: Vector, a: Vector, size: Enclosure) -> Near:
    """The largest ℓ2 of any group: every group with an effect moves by the whole length along its normal."""
    length = max(ZERO, dot(w, a)) / size[1]
    off = ZERO
    for v, b in zip(split(spec, w), split(spec, a), strict=True):
        if not any(b):
            off = max(off, root(dot(v, v))[1] - length)
            continue
        low, high = root(dot(b, b))
        inner = dot(v, b)
        least = inner / (high if inner > 0 else low)
        off = max(off, root(max(ZERO, dot(v, v) - 2 * length * least + length * length))[1])
    return Near(length, off)


def _polyhedral(spec: Any, w: Vector, a: Vector, evidence: Evidence) -> Near:
    """A ball given by its corners: as for ℓ1, with the corners that evidence says w is made of."""
    corners = spec["vertices"]
    best = max(dot(_exact(corner), a) for corner in corners)
    parts = measured(corners, w, evidence).parts
    return _corners([dot(_exact(corners[k]), a) for k, _ in parts], [amount for _, amount in parts], best)


def _facets(spec: Any, w: Vector, a: Vector, evidence: Evidence) -> Near | None:
    """A ball given by its facets f·x ≤ 1: an optimal step lies on those that a is made of; w is moved onto them."""
    facets = spec["facets"]
    touched = [_exact(facets[k]) for k, amount in measured(facets, a, evidence).parts if amount > 0]
    low, high = enclose(dual_spec(spec), a, evidence)
    if low != high:
        return None
    length = sum((dot(f, w) for f in touched), ZERO) / len(touched)
    gram = [[dot(f, g) for g in touched] for f in touched]
    shares = solve(gram, [length - dot(f, w) for f in touched])
    moved = [dot([f[i] for f in touched], shares) for i in range(len(w))]
    there = [u + v for u, v in zip(w, moved, strict=True)]
    if max(dot(_exact(f), there) for f in facets) > length:
        return None
    return Near(length, enclose(spec, moved)[1])


def _exact(values: Sequence[Any]) -> list[Fraction]:
    return [Fraction(v) for v in values]
