"""Norms of rational vectors, enclosed between rational numbers. Standard library only: the checker of proofs rests on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Vector = Sequence[Fraction]
Enclosure = tuple[Fraction, Fraction]
"""(low, high) with low ≤ the true value ≤ high; equal where the value is rational and known."""

BITS = 96
"""Roots are enclosed to about this many binary digits."""

LARGEST_DENOMINATOR = 64
"""ℓq is enclosed for q near a fraction with at most this denominator; other q are refused."""


class NotEnclosed(Exception):
    """The norm cannot be enclosed here; the message says why."""


def enclose(spec: Any, x: Vector) -> Enclosure:
    """Rational bounds on the norm that `spec` describes (the norm's own written form: a name, or a dict)."""
    if isinstance(spec, str):
        return _lp(_exponent(spec), x)
    kind = spec["norm"]
    if kind == "weighted":
        weights = [Fraction(w) for w in spec["weights"]]
        return enclose(spec["base"], [w * v for w, v in zip(weights, x, strict=True)])
    if kind == "mahalanobis":
        rows = [[Fraction(m) for m in row] for row in spec["matrix"]]
        return root(
            sum((a * m * b for a, row in zip(x, rows, strict=True) for m, b in zip(row, x, strict=True)), Fraction(0)),
            2,
        )
    if kind in ("group", "group-max"):
        parts = [root(sum((x[i] * x[i] for i in group), Fraction(0)), 2) for group in spec["groups"]]
        if kind == "group":
            return sum((low for low, _ in parts), Fraction(0)), sum((high for _, high in parts), Fraction(0))
        return max(low for low, _ in parts), max(high for _, high in parts)
    if kind == "facets":
        value = max(sum((Fraction(f) * v for f, v in zip(row, x, strict=True)), Fraction(0)) for row in spec["facets"])
        return value, value
    raise NotEnclosed(f"a norm of kind {kind!r} takes a linear program to evaluate; proofs cannot rest on it")


def dual_spec(spec: Any) -> Any:
    """The written form of the dual norm."""
    if isinstance(spec, str):
        q = _exponent(spec)
        if q is None:
            return "l1"
        return "linf" if q == 1 else f"lp:{q / (q - 1)}"
    kind = spec["norm"]
    if kind == "weighted":
        weights = [1 / Fraction(w) for w in spec["weights"]]
        return {"norm": "weighted", "base": dual_spec(spec["base"]), "weights": weights}
    if kind == "mahalanobis":
        return {"norm": "mahalanobis", "matrix": _inverse([[Fraction(m) for m in row] for row in spec["matrix"]])}
    if kind in ("group", "group-max"):
        return {"norm": "group-max" if kind == "group" else "group", "groups": spec["groups"]}
    if kind == "polyhedral":
        return {"norm": "facets", "facets": spec["vertices"]}
    raise NotEnclosed(
        f"the dual of a norm of kind {kind!r} takes a linear program to evaluate; proofs cannot rest on it"
    )


def root(value: Fraction, degree: int, bits: int = BITS) -> Enclosure:
    """Bounds on the `degree`-th root of a rational ≥ 0, exact where the root is rational."""
    if value == 0:
        return Fraction(0), Fraction(0)
    # Scale by a power of two so that numerator and root are integers of about `bits` digits.
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = bits - size // degree
    scaled = value * Fraction(2) ** (shift * degree)
    low = _integer_root(math.floor(scaled), degree)
    exact = Fraction(low) ** degree == scaled
    unit = Fraction(2) ** -shift
    return low * unit, (low if exact else low + 1) * unit


def _integer_root(n: int, degree: int) -> int:
    """The largest integer whose power is at most n."""
    if degree == 2:
        return math.isqrt(n)
    low, high = 0, 1 << (n.bit_length() // degree + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**degree <= n else (low, middle)
    return low


def _exponent(name: str) -> Fraction | None:
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
        return sum(size, Fraction(0)), sum(size, Fraction(0))
    near = q.limit_denominator(LARGEST_DENOMINATOR)
    # ‖x‖_q differs from ‖x‖_near by at most the factor p^|1/near − 1/q|, which is below 1 + |…|·p.
    spread = abs(1 / near - 1 / q) * len(x)
    if spread > Fraction(1, 2**40) or near <= 1:
        raise NotEnclosed(f"ℓq with q = {float(q)!r}, not near a fraction with denominator ≤ {LARGEST_DENOMINATOR}")
    m, n = near.numerator, near.denominator
    low = high = Fraction(0)
    for v in size:  # (|v|/largest)^(m/n), between 0 and 1
        below, above = root((v / largest) ** m, n)
        low, high = low + below, high + above
    return largest * root(low**n, m)[0] * (1 - spread), largest * root(high**n, m)[1] * (1 + spread)


def _inverse(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """The inverse by Gauss–Jordan in rationals."""
    n = len(rows)
    work = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(rows)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if work[i][k]), None)
        if pivot is None:
            raise NotEnclosed("a singular matrix has no dual norm")
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [v / work[k][k] for v in work[k]]
        for i in range(n):
            if i != k and work[i][k]:
                factor = work[i][k]
                work[i] = [a - factor * b for a, b in zip(work[i], work[k], strict=True)]
    return [row[n:] for row in work]
