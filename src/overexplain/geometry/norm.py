"""What every norm knows: its dual, its maximizers, its normal cone. The classes themselves are beside this file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import UnsupportedNorm
from overexplain.geometry.arrays import BoolArray, FloatArray, IntArray

TIE = 1e-6
"""A normal cone fixes a coordinate only if it does so beyond this share of ‖w‖: inside the band it is treated as open."""

UNIT_ROUNDOFF = 2.0**-53
SMALLEST = 2.0**-1074
"""The smallest positive float64."""

EXACT_TIE = 8 * np.finfo(np.float64).eps
"""Two candidates for a maximizer tie if they differ by rounding only."""

FLOAT64_ANSWER = 2.0**-40
"""How far, relative to the numbers involved, a float64 answer may lie from the optimum it stands for (Mechanism.tolerance=None)."""


@dataclass(frozen=True)
class Face:
    """All v with ‖v‖ ≤ 1 and a·v = ‖a‖*: where `fixed`, they share `values`; elsewhere they differ. `sample(rng)` draws one."""

    fixed: BoolArray
    values: FloatArray
    sample: Callable[[np.random.Generator], FloatArray] = field(repr=False)

    @property
    def is_point(self) -> bool:
        """True if there is just one maximizer."""
        return bool(self.fixed.all())

    @staticmethod
    def of_point(v: FloatArray) -> Face:
        """The face of a unique maximizer."""
        return Face(np.ones(len(v), dtype=bool), v, lambda _: v.copy())

    @staticmethod
    def of_simplex(corners: FloatArray) -> Face:
        """The convex hull of the given corners (rows), sampled uniformly in its barycentric coordinates."""
        if len(corners) == 1:
            return Face.of_point(corners[0])
        fixed = (corners == corners[0]).all(axis=0)
        return Face(
            fixed,
            np.where(fixed, corners[0], 0.0),
            lambda rng: np.asarray(rng.dirichlet(np.ones(len(corners))) @ corners, dtype=np.float64),
        )


@dataclass(frozen=True)
class NormalCone:
    """K(w) = {a : a·w = ‖w‖‖a‖*} as far as extraction needs it: what w fixes about a, and what it leaves open.

    At ‖a‖* = 1 every a in K(w) is ``values + sum(theta_k * directions_k)``: `values` is what w fixes (each entry known to
    within `errors`), the directions span what is open. They are the unit vectors of the `open` coordinates, or, where the
    span is not parallel to the axes, the orthonormal rows of `basis`.
    """

    values: FloatArray
    open: IntArray
    errors: FloatArray
    basis: FloatArray | None = None

    @property
    def size(self) -> int:
        """How many directions are open."""
        return len(self.open) if self.basis is None else len(self.basis)

    @property
    def dimension(self) -> int:
        """dim span K(w): how many answers recover the hyperplane (Theorem A)."""
        return self.size + int(bool(self.values.any()))

    def direction(self, k: int) -> FloatArray:
        """The k-th open direction as a vector."""
        if self.basis is not None:
            return np.asarray(self.basis[k])
        unit = np.zeros(len(self.values))
        unit[self.open[k]] = 1.0
        return unit

    def along(self, x: FloatArray) -> FloatArray:
        """The products of x with every open direction."""
        return x[self.open] if self.basis is None else np.asarray(self.basis @ x)

    def combine(self, theta: FloatArray) -> FloatArray:
        """The member of span K(w) with these coordinates: values + sum(theta_k * directions_k)."""
        a = self.values.copy()
        if self.basis is None:
            a[self.open] = theta
        else:
            a += theta @ self.basis
        return a

    @staticmethod
    def axis_parallel(known: BoolArray, values: FloatArray, errors: FloatArray | None = None) -> NormalCone:
        """A cone that fixes the `known` coordinates to `values` and leaves the others open."""
        errors = np.zeros(len(values)) if errors is None else np.where(known, errors, 0.0)
        return NormalCone(np.where(known, values, 0.0), np.flatnonzero(~known), errors)

    @staticmethod
    def spanned(rows: FloatArray, v: FloatArray, errors: FloatArray | None = None) -> NormalCone:
        """A cone spanned by `rows`; the first direction is the projection of v, on which a·v = 1 has the most to say.

        `errors`: how far each entry of a member of length 1 may be off because the rows themselves are.
        """
        rows, v = rows / np.abs(rows).max(axis=1, keepdims=True), v / np.abs(v).max()
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        basis = np.linalg.qr(rows.T)[0].T
        onto = basis.T @ (basis @ v)
        # Householder in the small space: rotate the basis so that its first row points along v's projection.
        target = basis @ (onto / np.linalg.norm(onto))
        target[0] += 1.0 if target[0] >= 0 else -1.0
        basis = basis - np.outer(2.0 * target / (target @ target), target @ basis)
        p = len(v)
        return NormalCone(np.zeros(p), np.zeros(0, dtype=np.int64), np.zeros(p) if errors is None else errors, basis)


class Norm(ABC):
    """A norm as a value: call it on a point or on rows, ask for its `dual`, its maximizers, its normal cone.

    To bring your own, give `__call__`, `dual`, `face`, and either `gradient` (with `is_smooth`) or `normal_cone`;
    `overexplain.testing.check_norm` tells whether they fit together.
    """

    is_smooth: bool = False
    """Differentiable everywhere but at 0: one answer then shows the normal's direction."""

    is_absolute: bool = True
    """‖x‖ depends on |x_1|, …, |x_p| only (not so for Mahalanobis and polyhedral norms)."""

    holder: float = 1.0
    """For a smooth norm: an error e in w moves its gradient by about e**holder (ℓq with q < 2: q − 1)."""

    answer_rounding: float = FLOAT64_ANSWER
    """What `Mechanism(tolerance=None)` allows a float64 answer under this distance, relative to ‖x‖ + ‖x'‖."""

    dimension: int | None = None
    """The number of features the norm is made for; None if it takes any."""

    @abstractmethod
    def __call__(self, x: ArrayLike) -> Any:
        """The norm of a point (a float) or of each row (an array)."""

    @property
    @abstractmethod
    def dual(self) -> Norm:
        """The dual norm ‖a‖* = max {a·v : ‖v‖ ≤ 1}."""

    @abstractmethod
    def face(self, a: FloatArray) -> Face:
        """All maximizers of a·v over the unit ball."""

    def maximizer(self, a: FloatArray) -> FloatArray:
        """One v with ‖v‖ = 1 and a·v = ‖a‖*, always the same for the same a."""
        return self.face(a).sample(np.random.default_rng(0))

    def gradient(self, w: FloatArray) -> FloatArray:
        """The gradient at w ≠ 0 of a smooth norm: the a with ‖a‖* = 1 and a·w = ‖w‖."""
        raise UnsupportedNorm(f"{self!r} is not differentiable everywhere; use normal_cone(w)")

    def gradient_error(self, w: FloatArray, error: FloatArray) -> FloatArray | None:
        """How far, entry by entry, the gradient can be off if w_i is known to within error_i; None if that is not known."""
        return None

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        """K(w), the cone over the subdifferential at w ≠ 0.

        With `error` (w_i is known to within error_i) a coordinate counts as fixed only if its value is then known to
        within `accuracy` in the dual norm's own unit.
        """
        values = self.gradient(w)
        known = np.ones(len(w), dtype=bool)
        # Entries below the smallest float are not zero but unknown: ℓq with q near 1 magnifies them.
        if error is None and self.holder < 1:
            error = np.full(len(w), SMALLEST)
        errors = None if error is None else self.gradient_error(w, error)
        if errors is not None:
            known = errors <= accuracy * self.units(len(w))
        return NormalCone.axis_parallel(known, values, errors)

    def units(self, p: int) -> FloatArray:
        """‖e_i‖ for every coordinate: the length of one step along it."""
        return np.array([float(self(row)) for row in np.eye(p)])

    @property
    def spec(self) -> Any:
        """What `norm(...)` reads to make this norm again: a string, or a JSON-ready dict."""
        raise UnsupportedNorm(f"{self!r} has no written form: what uses it can be kept in memory, but not saved")
