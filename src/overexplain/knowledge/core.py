"""The subspace that explanations confine a model to.

An exact explanation fixes the plane through x' and all of a but what K(w) leaves open: equalities, up to the row's tolerance. Where
the tolerance is that of float64 they are far thinner than any solver's, so they are taken out first:

    (a, b) = basis·u + δ        with  |δ| ≤ spill·t        for every consistent model

Rows whose tolerance is exactly 0 are eliminated in rationals, the others by a singular value decomposition. What is left, u, has
ordinary numbers; δ is charged to every claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray
from overexplain.geometry.norm import UNIT_ROUNDOFF
from overexplain.knowledge.exact import null_space
from overexplain.knowledge.facts import Facts, OnPlane, Steepest, is_euclidean
from overexplain.knowledge.rational_norms import exact_span, is_flat, orthogonal
from overexplain.knowledge.shells import exact_shells, thin_shells

THIN = 1e-7
"""A fact is an equality if its tolerance is below this share of the step it belongs to."""

FIXED = 1e-5
"""A step fixes a direction of a if it leaves it less than this: curved norms turn a tolerance into its root."""


@dataclass(frozen=True)
class Equality:
    """|row·(a, b)| ≤ width·t for the distance with this number; `plane` is the logged row whose plane it is, if it is one."""

    row: FloatArray
    width: float
    number: int
    plane: int | None = None


@final
@dataclass(frozen=True)
class Core:
    """`basis` (p + 1, D) with its exact left factor if any; `lift` maps the equalities' values to δ: |δ| ≤ |lift|·(width·t)."""

    basis: FloatArray
    exact: tuple[tuple[Fraction, ...], ...] | None
    inner: FloatArray
    equalities: tuple[Equality, ...]
    lift: FloatArray
    scale: FloatArray
    pinned: frozenset[int | None] = frozenset()

    def model(self, u: FloatArray) -> tuple[list[Fraction], Fraction]:
        """The exact model of the core at u: it keeps every equality of tolerance 0 exactly."""
        inside = [Fraction(float(v)) for v in self.inner @ u]
        if self.exact is None:
            return inside[:-1], inside[-1]
        total = [Fraction(0)] * len(self.basis)
        for value, column in zip(inside, self.exact, strict=True):
            for i, entry in enumerate(column):
                if entry:
                    total[i] += value * entry
        return total[:-1], total[-1]

    def inverse(self) -> FloatArray:
        """u = inverse·w for every w of the core."""
        columns, balanced = self._balanced()
        return np.asarray(columns[:, None] * np.linalg.pinv(_finite(balanced)) * self.scale)

    def coordinates(self, w: FloatArray) -> FloatArray:
        """The u whose model is nearest to w, in the units of the data."""
        columns, balanced = self._balanced()
        found = np.linalg.lstsq(_finite(balanced), _finite(w * self.scale), rcond=None)[0]
        return np.asarray(columns * found)

    def _balanced(self) -> tuple[FloatArray, FloatArray]:
        """(powers of two for the columns, the basis in units where all its columns are about 1)."""
        scaled = self.basis * self.scale[:, None]
        size = np.abs(scaled).max(axis=0, initial=0.0)
        columns = np.ldexp(1.0, -np.frexp(np.where(size > 0, size, 1.0))[1])
        return columns, scaled * columns


def find_core(facts: Facts, exponents: IntArray) -> Core:
    """The core of some facts; `exponents` are powers of two that bring the features to like sizes."""
    d = facts.dimension + 1
    exact = _exact_rows(facts)
    columns = null_space(exact, d) if exact else None
    outer = (
        np.eye(d) if columns is None else np.array([[float(v) for v in column] for column in columns]).reshape(-1, d).T
    )
    thin = _thin_rows(facts)
    inner, lift = np.eye(outer.shape[1]), np.zeros((d, 0))
    pinned: frozenset[int | None] = frozenset()
    if thin and outer.shape[1]:
        # t of a model whose scaled entries are about 1: at least the inverse of a typical point's length.
        typical = np.array([1.0 / float(norm(np.ldexp(1.0, exponents[:-1]))) for norm in facts.norms])
        inner, lift, kept = _reduce(thin, outer, exponents, typical)
        pinned = frozenset(equality.plane for equality, keeps in zip(thin, kept, strict=True) if keeps)
    return Core(
        outer @ inner,
        None if columns is None else tuple(tuple(column) for column in columns),
        inner,
        tuple(thin),
        lift,
        np.ldexp(1.0, exponents),
        pinned,
    )


def _finite(values: FloatArray) -> FloatArray:
    """The values, unless one has overflowed: LAPACK would write of it to the screen."""
    if not np.isfinite(values).all():
        raise OverflowError("a number beyond float64")
    return values


def _reduce(
    thin: list[Equality], outer: FloatArray, exponents: IntArray, typical: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """(basis of what the thin rows leave of range(outer), lift, which rows hold all over it).

    From the singular values of the rows in units of their widths. A direction whose value is large is fixed: moving along it by its
    share 1/value breaks a width. The rows need not agree with each other any better than their widths say.
    """
    scale = np.ldexp(1.0, exponents)  # the rows act on scale·w, whose entries are of like size
    rows = np.array([equality.row for equality in thin]) / scale
    widths = np.array([equality.width * typical[equality.number] for equality in thin])
    widths = np.maximum(widths, 64 * UNIT_ROUNDOFF * np.linalg.norm(rows, axis=1)) + 1e-300
    space = np.linalg.qr(scale[:, None] * outer)
    measured = (rows / widths[:, None]) @ space[0]
    left, values, right = np.linalg.svd(_finite(measured))
    rank = int(np.sum(values > 1 / FIXED))
    inner = np.linalg.solve(space[1], right[rank:].T) if rank < len(right) else np.zeros((outer.shape[1], 0))
    pseudo = right[:rank].T @ (left[:, :rank].T / values[:rank, None])
    lift = (space[0] @ pseudo) / widths[None, :] / scale[:, None]
    for k in range(inner.shape[1]):  # powers of two, so that u has entries near 1
        inner[:, k] = np.ldexp(inner[:, k], -int(np.frexp(np.abs(outer @ inner[:, k] * scale).max())[1]))
    return inner, lift, (np.abs(measured @ right[rank:].T) <= 4.0).all(axis=1)


def _exact_rows(facts: Facts) -> list[list[Fraction]]:
    """The equalities of explanations that are exact, in rationals."""
    rows: list[list[Fraction]] = []
    for fact in facts.explained:
        if isinstance(fact, OnPlane) and fact.tolerance == 0:
            rows.append([*map(Fraction, fact.point.tolist()), Fraction(-1)])
        elif isinstance(fact, Steepest):
            rows += [[*row, Fraction(0)] for row in exact_span(fact.norm, fact.exact_step, Fraction(fact.tolerance))]
    return rows + exact_shells(facts)


def _thin_rows(facts: Facts) -> list[Equality]:
    """The equalities of explanations whose tolerance is above 0 but as good as none."""
    rows: list[Equality] = []
    steps = {fact.row: fact for fact in facts.explained if isinstance(fact, Steepest)}
    for fact in facts.explained:
        if isinstance(fact, OnPlane) and fact.tolerance > 0 and fact.norm is not None:
            if is_thin(fact, steps.get(fact.row)):
                number = facts.norms.index(fact.norm)
                rows.append(Equality(np.append(fact.point, -1.0), fact.tolerance, number, fact.row))
        elif isinstance(fact, Steepest) and fact.tolerance <= THIN * fact.length:
            if is_flat(fact.norm) or (fact.tolerance == 0 and exact_span(fact.norm, fact.exact_step)):
                continue
            number = facts.norms.index(fact.norm)
            rows += [
                Equality(np.append(d, 0.0), width, number)
                for d, width in thin_span(fact)
                if width <= FIXED * float(fact.norm(d))
            ]
    return rows + [Equality(*shell) for shell in thin_shells(facts, THIN)]


def is_thin(plane: OnPlane, step: Steepest | None) -> bool:
    """True if the plane is known far better than the numbers it is made of: an equality."""
    assert plane.norm is not None
    size = float(plane.norm(plane.point)) + (0.0 if step is None else step.length)
    return plane.tolerance <= THIN * size


def thin_span(fact: Steepest) -> list[tuple[FloatArray, float]]:
    """Rows d orthogonal to K(w), each with the width of |a·d| ≤ width·t."""
    cone = fact.norm.normal_cone(fact.step)
    p = len(fact.step)
    if cone.basis is not None:
        rows = list(np.linalg.svd(cone.basis)[2][len(cone.basis) :])
    else:
        known = np.setdiff1d(np.arange(p), cone.open).tolist()
        rows = [row for _, row in orthogonal(cone.values, known)] if cone.values.any() else list(np.eye(p)[known])
    return [(row, span_width(fact, row)) for row in rows]


def span_width(fact: Steepest, d: FloatArray) -> float:
    """An upper bound on |a·d|/t. For every κ ≥ 0: −y·a·d ≤ (‖d + κw‖ − κ·s)·t, since −y·a·w ≥ s·t."""
    off = 64 * (len(d) + 8) * UNIT_ROUNDOFF
    if is_euclidean(fact.norm):
        # Whitened, −y·a is within the angle asin(τ/‖w‖) of w, and d nearly orthogonal to it.
        along = abs(float(fact.norm.gradient(fact.step) @ d))
        size = float(fact.norm(d))
        return (fact.tolerance / fact.steepness * size + along + off * size) * (1 + 1e-9)
    best = np.inf
    size = float(fact.norm(d)) or 1.0
    for sign in (1.0, -1.0):
        kappas = size / fact.length * np.ldexp(1.0, np.arange(-2, 52))
        values = fact.norm(sign * d + kappas[:, None] * fact.step) * (1 + off) - kappas * fact.steepness
        least = float(values.min())
        best = least if sign > 0 else max(best, least)
    return max(best, off * size)
