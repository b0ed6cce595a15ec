"""Norms of rational vectors, enclosed between rational numbers. Standard library only: the checker of proofs rests on it.

A norm given by the corners of its unit ball takes a linear program to evaluate, which has no place here. Its value is
then enclosed by *evidence* that somebody else found and that plain arithmetic checks: a `Length`.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Any

Vector = Sequence[Fraction]
Enclosure = tuple[Fraction, Fraction]
"""(low, high) with low ≤ the true value ≤ high; equal where the value is rational and known."""

BITS = 96
"""Roots are enclosed to about this many binary digits."""

DIGITS = 50
"""Decimal digits with which powers are computed; `decimal` rounds them correctly, and a margin of ten digits pays for it."""

LONGEST_POWER = 20_000
"""A whole power is computed exactly if it has at most so many binary digits."""

LARGEST_EXPONENT = 10_000
"""Powers beyond e to ± this are not computed: no honest proof needs them."""

LARGEST_ERROR = Fraction(1, 10**20)
"""A power whose exponent times logarithm is known no better than this is refused."""

LONGEST_PIVOT = 2000
"""Binary digits of the whole numbers by which a matrix is shown to be semidefinite: beyond them they are rounded."""

ZERO = Fraction(0)


class NotEnclosed(Exception):
    """The norm cannot be enclosed here; the message says why."""


@dataclass(frozen=True)
class Length:
    """Evidence for the norm of `vector`, the ball being given by its corners.

    vector = Σ amount·corner over `parts` (number of the corner, amount ≥ 0), so the norm is at most Σ amount; `functional`
    is at most 1 on every corner, so the norm is at least functional·vector.
    """

    vector: tuple[Fraction, ...]
    parts: tuple[tuple[int, Fraction], ...]
    functional: tuple[Fraction, ...]


Evidence = Callable[[Sequence[Sequence[Any]], Vector], Iterable[Length]]
"""What is known about the length of a vector under given corners."""


def no_evidence(*_: Any) -> Iterable[Length]:
    """Nothing."""
    return ()


def enclose(spec: Any, x: Vector, evidence: Evidence = no_evidence) -> Enclosure:
    """Rational bounds on the norm that `spec` describes (the norm's own written form: a name, or a dict)."""
    squared = product(spec, x, x)
    if squared is not None:
        return root(squared)
    if isinstance(spec, str):
        return _lp(exponent(spec), x)
    kind = spec["norm"]
    if kind == "weighted":
        return enclose(spec["base"], weighted(spec, x), evidence)
    if kind in ("group", "group-max"):
        parts = [root(dot(part, part)) for part in split(spec, x)]
        if kind == "group":
            return sum((low for low, _ in parts), ZERO), sum((high for _, high in parts), ZERO)
        return max(low for low, _ in parts), max(high for _, high in parts)
    if kind == "facets":
        value = max(dot(_exact(row), x) for row in spec["facets"])
        return value, value
    if kind == "polyhedral":
        if not any(x):
            return ZERO, ZERO
        length = measured(spec["vertices"], x, evidence)
        return dot(length.functional, x), sum((amount for _, amount in length.parts), ZERO)
    raise NotEnclosed(f"unknown norm {kind!r}")


def dual_spec(spec: Any) -> Any:
    """The written form of the dual norm."""
    if isinstance(spec, str):
        q = exponent(spec)
        if q is None:
            return "l1"
        return "linf" if q == 1 else "l2" if q == 2 else f"lp:{q / (q - 1)}"
    kind = spec["norm"]
    if kind == "weighted":
        weights = [1 / _positive(Fraction(w)) for w in spec["weights"]]
        return {"norm": "weighted", "base": dual_spec(spec["base"]), "weights": weights}
    duals = {"group": "group-max", "mahalanobis": "dual-mahalanobis"}
    duals |= {dual: norm for norm, dual in duals.items()}
    if kind in duals:
        return {**spec, "norm": duals[kind]}
    if kind == "polyhedral":
        return {"norm": "facets", "facets": spec["vertices"]}
    if kind == "facets":
        return {"norm": "polyhedral", "vertices": spec["facets"]}
    raise NotEnclosed(f"unknown norm {kind!r}")


def product(spec: Any, u: Vector, v: Vector) -> Fraction | None:
    """The scalar product ⟨u, v⟩ with ‖x‖² = ⟨x, x⟩, where the norm comes from one; None where it does not."""
    image = image_of(spec, v)
    return None if image is None else dot(u, image)


def image_of(spec: Any, v: Vector) -> Vector | None:
    """M·v, where ‖x‖² = xᵀMx; None where the norm comes from no scalar product."""
    if isinstance(spec, str):
        return v if exponent(spec) == 2 else None
    kind = spec["norm"]
    if kind == "weighted":
        image = image_of(spec["base"], weighted(spec, v))
        return None if image is None else weighted(spec, image)
    if kind == "mahalanobis":
        return [dot(row, v) for row in _symmetric(spec)]
    if kind == "dual-mahalanobis":
        return solve(_symmetric(spec), v)
    return None


def is_frame(spec: Any, frame: Sequence[Vector]) -> bool:
    """True only if ‖a‖*² ≤ Σ(f·a)² over the frame for every a, the norm being ℓ2, Mahalanobis, or either with weights.

    ‖x‖² = xᵀMx has ‖a‖*² = aᵀM⁻¹a, and M is invertible: what is to be shown, FᵀF ⪰ M⁻¹, is (FM)ᵀ(FM) ⪰ M. NotEnclosed for
    another norm.
    """
    base, size = base_of(spec), len(frame[0])
    axes = [[Fraction(i == k) for i in range(size)] for k in range(size)]
    images = [image_of(spec, axis) for axis in axes]
    if (isinstance(base, dict) and base["norm"] != "mahalanobis") or None in images:
        raise NotEnclosed(
            "a frame is for the squares of ℓ2, weighted ℓ2 or a Mahalanobis norm, and this is none of them"
        )
    matrix = [list(image or ()) for image in images]
    turned = [list(image_of(spec, vector) or ()) for vector in frame]
    below = math.lcm(*(v.denominator for row in (*matrix, *turned) for v in row))
    squares, whole = ([[int(v * below) for v in row] for row in rows] for rows in (turned, matrix))
    columns = list(zip(*squares, strict=True))
    return is_semidefinite(
        [
            [sum(map(mul, columns[i], columns[j])) - below * whole[i][j] for j in range(i, size)]
            for i in range(size)
        ]
    )  # fmt: skip


def is_semidefinite(upper: Sequence[Sequence[int]]) -> bool:
    """True only if a symmetric matrix has no negative eigenvalue; each of its rows is given from the diagonal on.

    By elimination (Bareiss): pivots are not negative, and one of 0 has a row of 0. With a pivot d and its row r the rest W is
    d·W − rᵀr, divided by the pivot before. Where numbers get long, all are rounded down at last digits instead: of n rows
    that takes a matrix with entries between 0 and 1 away, which is at most n times the identity, and that is taken off as well.
    What is shown of the smaller matrix holds for the larger one.
    """
    work, before = [list(row) for row in upper], 1
    while work:
        longest = max(abs(v) for row in work for v in row).bit_length()
        if longest > LONGEST_PIVOT:
            work, before = [[v >> (longest - LONGEST_PIVOT) for v in row] for row in work], 0
            for row in work:
                row[0] -= len(work)
        top, *work = work
        if top[0] < 0 or (top[0] == 0 and any(top)):
            return False
        if top[0]:
            rows = enumerate(work, 1)
            work = [
                [(top[0] * v - top[i] * u) // (before or 1) for v, u in zip(row, top[i:], strict=True)]
                for i, row in rows
            ]
            before = before and top[0]
    return True


def is_level(spec: Any, w: Vector, d: Vector) -> bool:
    """True if the norm is known not to change at w, to first order, when moving along ±d: d is orthogonal to K(w)."""
    if not any(w):
        return False
    inner = product(spec, w, d)
    if inner is not None:
        return inner == 0
    if isinstance(spec, dict) and spec["norm"] == "weighted":
        return is_level(spec["base"], weighted(spec, w), weighted(spec, d))
    if isinstance(spec, dict) and spec["norm"] == "group":
        pairs = zip(split(spec, w), split(spec, d), strict=True)
        return all(dot(a, b) == 0 if any(a) else not any(b) for a, b in pairs)
    return False


def is_aligned(
    spec: Any, w: Vector, a: Vector, evidence: Evidence = no_evidence, size: Enclosure | None = None
) -> bool:
    """True if a·w ≥ ‖w‖·‖a‖* for certain; decided exactly, without roots, for ℓ2 and its kin and for groups.

    `size` encloses ‖a‖*, if it is known.
    """
    inner, dual = dot(a, w), dual_spec(spec)
    squared = product(spec, w, w)
    if squared is not None:
        other = product(dual, a, a)
        assert other is not None  # the dual of a norm with a scalar product has one
        return inner >= 0 and inner * inner >= squared * other
    kind = spec["norm"] if isinstance(spec, dict) else ""
    if kind == "weighted":
        return is_aligned(spec["base"], weighted(spec, w), weighted(dual, a), evidence, size)
    if kind == "group-max":
        return is_aligned(dual, a, w, evidence)
    if kind == "group":
        # The sum over groups is as large as can be only if every summand is.
        largest = max(dot(part, part) for part in split(spec, a))
        inners = [(dot(x, y), dot(x, x)) for x, y in zip(split(spec, w), split(spec, a), strict=True)]
        return all(inner >= 0 and inner * inner >= size * largest for inner, size in inners)
    return inner >= enclose(spec, w, evidence)[1] * (size or enclose(dual, a, evidence))[1]


def dot(u: Vector, v: Vector) -> Fraction:
    """u·v, over one common denominator: products of floats need no greatest common divisors on the way."""
    if len(u) != len(v):
        raise NotEnclosed(f"a norm or a vector is made for {len(u)} features, another for {len(v)}")
    below, under = math.lcm(*(a.denominator for a in u)), math.lcm(*(b.denominator for b in v))
    total = sum(
        a.numerator * (below // a.denominator) * b.numerator * (under // b.denominator)
        for a, b in zip(u, v, strict=True)
        if a and b
    )
    return Fraction(total, below * under)


def root(value: Fraction) -> Enclosure:
    """Bounds on the square root of a rational ≥ 0, exact where it is rational."""
    if value < 0:
        raise NotEnclosed("a squared length comes out negative: the matrix of the norm is not positive definite")
    if value == 0:
        return ZERO, ZERO
    # Scale by a power of four so that the root is an integer of about BITS digits.
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = BITS - size // 2
    scaled = value * Fraction(4) ** shift
    low = math.isqrt(math.floor(scaled))
    unit = Fraction(2) ** -shift
    return low * unit, (low if low * low == scaled else low + 1) * unit


def exponent(name: str) -> Fraction | None:
    """q as a fraction; None for ∞."""
    named: dict[str, Fraction | None] = {"l1": Fraction(1), "l2": Fraction(2), "linf": None}
    if name in named:
        return named[name]
    kind, _, text = name.partition(":")
    if kind != "lp":
        raise NotEnclosed(f"unknown norm {name!r}")
    return Fraction(text)


def _lp(q: Fraction | None, x: Vector) -> Enclosure:
    size = [abs(v) for v in x]
    largest = max(size)
    if q is None or largest == 0:
        return largest, largest
    if q == 1:
        return sum(size, ZERO), sum(size, ZERO)
    context = decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])

    def near(value: Fraction) -> decimal.Decimal:
        return _near(value, context)

    total = decimal.Decimal(0)
    for v in size:  # (|v|/largest)^q, between 0 and 1
        if v:
            total = context.add(total, context.exp(context.multiply(near(q), context.ln(near(v / largest)))))
    value = largest * Fraction(context.exp(context.divide(context.ln(total), near(q))))
    # Each summand is off by at most 1e-48·(1 + q), their sum, which is ≥ 1, by p times that, its q-th root by 1/q of it.
    spread = Fraction(len(x) + 1, 10 ** (DIGITS - 10))
    return max(largest, value * (1 - spread)), value * (1 + spread)


def measured(corners: Sequence[Sequence[Any]], x: Vector, evidence: Evidence) -> Length:
    """The first piece of evidence that holds for a vector that is not 0."""
    for length in evidence(corners, x):
        used = [(_exact(corners[k]), amount) for k, amount in length.parts if 0 <= k < len(corners) and amount >= 0]
        if len(used) < len(length.parts) or len(length.functional) != len(x):
            continue
        amounts = [amount for _, amount in used]
        adds_up = all(dot([corner[i] for corner, _ in used], amounts) == v for i, v in enumerate(x))
        if adds_up and all(dot(length.functional, _exact(corner)) <= 1 for corner in corners):
            return length
    raise NotEnclosed(
        "a norm given by the corners of its ball takes evidence for a length, and there is none that holds"
    )


def weighted(spec: Any, x: Vector) -> Vector:
    """The entries times the weights of the norm."""
    weights = _exact(spec["weights"])
    if len(weights) != len(x):
        raise NotEnclosed(f"the norm has {len(weights)} weights, the vector {len(x)} entries")
    return [_positive(w) * v for w, v in zip(weights, x, strict=True)]


def _positive(weight: Fraction) -> Fraction:
    if weight <= 0:
        raise NotEnclosed("a weight of the norm is not above 0")
    return weight


def split(spec: Any, x: Vector) -> list[Vector]:
    """The parts of x, group by group."""
    if sum(map(len, spec["groups"])) != len(x):
        raise NotEnclosed(f"the groups have {sum(map(len, spec['groups']))} features, the vector {len(x)}")
    return [[x[i] for i in group] for group in spec["groups"]]


def _symmetric(spec: Any) -> list[Vector]:
    """The matrix of xᵀMx."""
    return _definite(tuple(map(tuple, spec["matrix"])))


@lru_cache(maxsize=64)
def _definite(matrix: tuple[tuple[Any, ...], ...]) -> list[Vector]:
    """The matrix in rationals; NotEnclosed unless it is symmetric and positive definite, exactly."""
    rows = [_exact(row) for row in matrix]
    if any(len(row) != len(rows) for row in rows) or any(
        rows[i][j] != rows[j][i] for i in range(len(rows)) for j in range(i)
    ):
        raise NotEnclosed("the matrix of the norm is not symmetric")
    if not is_positive_definite(rows):
        raise NotEnclosed("the matrix of the norm is not positive definite")
    return list(rows)


def is_positive_definite(rows: Sequence[Vector]) -> bool:
    """True if all leading minors of a symmetric matrix are positive, by elimination in integers (Bareiss)."""
    below = math.lcm(*(v.denominator for row in rows for v in row))
    work = [[v.numerator * (below // v.denominator) for v in row] for row in rows]
    before = 1
    for k, top in enumerate(work):
        if top[k] <= 0:
            return False
        for i in range(k + 1, len(work)):
            factor = work[i][k]
            work[i] = [0] * (k + 1) + [
                (top[k] * work[i][j] - factor * top[j]) // before for j in range(k + 1, len(work))
            ]
        before = top[k]
    return True


def _exact(values: Iterable[Any]) -> list[Fraction]:
    return [Fraction(v) for v in values]


def solve(rows: Sequence[Vector], right: Vector) -> list[Fraction]:
    """z with rows·z = right, by elimination in integers (Bareiss): the divisions have no remainder."""
    n = len(rows)
    if len(right) != n:
        raise NotEnclosed(f"the matrix of the norm is made for {n} features, the vector has {len(right)}")
    work: list[list[int]] = []
    for full in ([*row, value] for row, value in zip(rows, right, strict=True)):
        below = math.lcm(*(v.denominator for v in full))
        work.append([v.numerator * (below // v.denominator) for v in full])
    before = 1
    for k in range(n):
        pivot = next((i for i in range(k, n) if work[i][k]), None)
        if pivot is None:
            raise NotEnclosed("a singular matrix has no dual norm")
        work[k], work[pivot] = work[pivot], work[k]
        top = work[k]
        for i in range(k + 1, n):
            row, factor = work[i], work[i][k]
            work[i] = [0] * (k + 1) + [(top[k] * row[j] - factor * top[j]) // before for j in range(k + 1, n + 1)]
        before = top[k]
    z = [ZERO] * n
    for k in reversed(range(n)):
        rest = work[k][n] - sum((work[k][j] * z[j] for j in range(k + 1, n)), ZERO)
        z[k] = Fraction(rest) / work[k][k]
    return z


def base_of(spec: Any) -> Any:
    """The norm behind all weights."""
    while isinstance(spec, dict) and spec["norm"] == "weighted":
        spec = spec["base"]
    return spec


def exponent_and_weights(spec: Any, dimension: int) -> tuple[Fraction | None, list[Fraction]]:
    """(q, weights) of ‖weights·x‖_q, q = None for ∞; NotEnclosed for a norm that is no weighted ℓq."""
    if isinstance(spec, str):
        return exponent(spec), [Fraction(1)] * dimension
    if spec["norm"] != "weighted":
        raise NotEnclosed(f"the norm {spec['norm']!r} is no weighted ℓq")
    q, weights = exponent_and_weights(spec["base"], dimension)
    return q, list(weighted(spec, weights))


def axis_length(spec: Any, index: int, dimension: int, evidence: Evidence = no_evidence) -> Fraction:
    """At least the norm of the index-th unit vector: |a_index| is at most this times ‖a‖*."""
    if isinstance(spec, str):
        exponent(spec)  # it is an ℓq, whichever
        return Fraction(1)
    if spec["norm"] == "weighted":
        if len(spec["weights"]) != dimension:
            raise NotEnclosed(f"the norm has {len(spec['weights'])} weights, the vector {dimension} entries")
        return _positive(Fraction(spec["weights"][index])) * axis_length(spec["base"], index, dimension, evidence)
    axis = [ZERO] * dimension
    axis[index] = Fraction(1)
    return enclose(spec, axis, evidence)[1]


def corners_of(spec: Any, dimension: int) -> list[Vector]:
    """The corners d of the norm's ball, ‖a‖* = max a·d, in a fixed order: of a (weighted) ℓ1, or as the norm gives them."""
    if isinstance(spec, dict) and spec["norm"] == "polyhedral":
        return [_exact(corner) for corner in spec["vertices"]]
    q, weights = exponent_and_weights(spec, dimension)
    if q != 1:
        raise NotEnclosed("the ball of the norm is not one with few corners: ℓ1, weighted ℓ1 or polyhedral")
    signed = [(i, sign / weight) for i, weight in enumerate(weights) for sign in (1, -1)]
    return [[value if k == i else ZERO for k in range(dimension)] for i, value in signed]


def power(x: Fraction, k: Fraction) -> Enclosure:
    """Bounds on x^k for x ≥ 0 and k ≥ 0, exact for whole k unless the number were too long."""
    if x < 0 or k < 0:
        raise NotEnclosed("a power is taken of a number ≥ 0, to an exponent ≥ 0")
    if k == 0 or x == 1:
        return Fraction(1), Fraction(1)
    if x == 0:
        return ZERO, ZERO
    size = max(x.numerator.bit_length(), x.denominator.bit_length())
    if k.denominator == 1 and size * k <= LONGEST_POWER:
        return x**k.numerator, x**k.numerator
    context = decimal.Context(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])
    natural = Fraction(context.ln(_near(x, context)))
    # x is rounded to 1e-49 of itself, which moves ln x by up to 2e-49, and ln x itself is rounded to 1e-49 of it.
    off = k * (2 + abs(natural)) / 10 ** (DIGITS - 2)
    if off > LARGEST_ERROR:
        raise NotEnclosed("an exponent too large to be computed with: the power cannot be told")
    if k * natural > LARGEST_EXPONENT:
        raise NotEnclosed(f"a power too large to be computed with: over e^{LARGEST_EXPONENT}")
    if k * natural < -LARGEST_EXPONENT:
        return ZERO, Fraction(1, 2**LARGEST_EXPONENT)
    value = Fraction(context.exp(_near(k * natural, context)))
    # e^δ is within 2|δ| of 1 for |δ| ≤ 1/2; the argument of exp and its value are rounded once more.
    spread = 2 * off + 4 * (1 + abs(k * natural)) / 10 ** (DIGITS - 2)
    return max(ZERO, -upper(-value * (1 - spread))), upper(value * (1 + spread))


def _near(value: Fraction, context: decimal.Context) -> decimal.Decimal:
    return context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))


def upper(value: Fraction) -> Fraction:
    """At least the value, to 2^-BITS of it: a short binary fraction if it is long, so that sums have no long denominators."""
    if value.denominator.bit_length() <= 2 * BITS:
        return value
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - BITS - 1)
    return math.ceil(value / unit) * unit
