"""ℓ1, ℓ2, ℓ∞, every ℓq between, and any norm with feature weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedNorm
from overexplain.geometry.arrays import FloatArray, as_point, frozen
from overexplain.geometry.norm import EXACT_TIE, TIE, Face, Norm, NormalCone


@final
@dataclass(frozen=True)
class Lp(Norm):
    """‖x‖ = (Σ|x_i|^q)^(1/q), or max|x_i| for q = ∞; the dual has 1/q + 1/q' = 1.

    >>> Lp(1.5)([3.0, 0.0])
    3.0
    >>> Lp(1.5).dual
    Lp(q=3.0)
    """

    q: float

    def __post_init__(self) -> None:
        try:
            q = math.nan if isinstance(self.q, bool) else float(self.q)
        except (TypeError, ValueError, OverflowError):
            q = math.nan
        if not q >= 1:
            raise UnsupportedNorm(f"Lp(q) is a norm only for q ≥ 1, got {self.q!r}")
        if 1 < q < math.inf and q / (q - 1) == 1:
            raise UnsupportedNorm(f"Lp({q}) is linf as far as float64 can tell; use linf")
        object.__setattr__(self, "q", q)

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        return 1.0 < self.q < math.inf

    @property
    def holder(self) -> float:  # type: ignore[override]
        return min(1.0, self.q - 1.0) if self.is_smooth else 1.0

    def __call__(self, x: ArrayLike) -> Any:
        size = np.abs(np.asarray(x, dtype=np.float64))
        largest = size.max(axis=-1)
        if self.q == math.inf:
            return _plain(largest)
        # Divided by the largest entry first: powers neither overflow nor vanish, whatever the scale of the data.
        scale = np.where(largest > 0, largest, 1.0)
        share = size / scale[..., None]
        total = share.sum(axis=-1) if self.q == 1 else (share**self.q).sum(axis=-1) ** (1 / self.q)
        return _plain(scale * total)

    @property
    def dual(self) -> Lp:
        if self.q == 1:
            return Lp(math.inf)
        return Lp(1.0) if self.q == math.inf else Lp(self.q / (self.q - 1))

    def face(self, a: FloatArray) -> Face:
        if self.q == 1:
            size = np.abs(a)
            tied = np.flatnonzero(size >= size.max() * (1 - EXACT_TIE))
            corners = np.zeros((len(tied), len(a)))
            corners[np.arange(len(tied)), tied] = np.where(a[tied] < 0, -1.0, 1.0)
            return Face.of_simplex(corners)
        if self.q == math.inf:
            fixed, signs = a != 0, np.sign(a)
            return Face(fixed, signs, lambda rng: np.where(fixed, signs, rng.uniform(-1, 1, len(a))))
        return Face.of_point(self.dual.gradient(a))

    def maximizer(self, a: FloatArray) -> FloatArray:
        if self.q == 1:
            v = np.zeros(len(a))
            k = int(np.abs(a).argmax())
            v[k] = -1.0 if a[k] < 0 else 1.0
            return v
        return self.face(a).values

    def gradient(self, w: FloatArray) -> FloatArray:
        if not self.is_smooth:
            return Norm.gradient(self, w)
        share = np.abs(w) / self(w)
        return np.asarray(np.sign(w) * (share if self.q == 2 else share ** (self.q - 1)))

    def gradient_error(self, w: FloatArray, error: FloatArray) -> FloatArray | None:
        if not self.is_smooth:
            return None
        length = float(self(w))
        spread = float(self(error))  # the length itself is off by at most this
        if spread >= length:
            return np.full(len(w), 1.0)
        high = _share(np.abs(w) + error, length - spread, self.q - 1)
        low = _share(np.maximum(np.abs(w) - error, 0.0), length + spread, self.q - 1)
        value = np.abs(self.gradient(w))
        crossed = np.where(np.abs(w) > error, 0.0, high)  # the sign itself is open
        return np.asarray(np.maximum(np.maximum(high - value, value - low), crossed + value * (crossed > 0)))

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        size, length, unsure = np.abs(w), float(self(w)), np.zeros(len(w)) if error is None else error
        if self.q == 1:
            return NormalCone.axis_parallel(size > TIE * length + unsure, np.sign(w))
        if self.q == math.inf:
            return NormalCone.axis_parallel(size + unsure + unsure.max() < (1 - TIE) * length, np.zeros(len(w)))
        return Norm.normal_cone(self, w, error, accuracy)

    def units(self, p: int) -> FloatArray:
        return np.ones(p)

    @property
    def spec(self) -> str:
        names = {1.0: "l1", 2.0: "l2", math.inf: "linf"}
        return names.get(self.q, f"lp:{self.q!r}")


l1, l2, linf = Lp(1.0), Lp(2.0), Lp(math.inf)


@final
@dataclass(frozen=True, eq=False, init=False)
class Weighted(Norm):
    """‖x‖ = norm(weights·x): a feature with weight 10 is ten times as expensive to change.

    >>> Weighted(l1, [1.0, 10.0])([1.0, 1.0])
    11.0
    """

    norm: Norm
    weights: FloatArray

    def __init__(self, norm: Norm, weights: ArrayLike) -> None:
        if not isinstance(norm, Norm):
            raise UnsupportedNorm(f"Weighted needs a Norm, got {norm!r}; a name becomes one by overexplain.norm(...)")
        entries = as_point(weights, norm.dimension, "weights")
        if not (entries > 0).all():
            k = int(np.flatnonzero(entries <= 0)[0])
            raise InvalidInput(f"weights must be positive, got {entries[k]} for feature {k}")
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "weights", frozen(entries))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return len(self.weights)

    @property
    def is_smooth(self) -> bool:  # type: ignore[override]
        return self.norm.is_smooth

    @property
    def is_absolute(self) -> bool:  # type: ignore[override]
        return self.norm.is_absolute

    @property
    def holder(self) -> float:  # type: ignore[override]
        return self.norm.holder

    @property
    def answer_rounding(self) -> float:  # type: ignore[override]
        return self.norm.answer_rounding

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weighted):
            return NotImplemented
        return self.norm == other.norm and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((self.norm, self.weights.tobytes()))

    def __call__(self, x: ArrayLike) -> Any:
        rows = np.asarray(x, dtype=np.float64)
        if rows.shape[-1:] != self.weights.shape:
            raise DimensionMismatch(f"the norm has {self.dimension} weights, x has shape {rows.shape}")
        return self.norm(rows * self.weights)

    @cached_property
    def dual(self) -> Weighted:
        return Weighted(self.norm.dual, 1.0 / self.weights)

    def face(self, a: FloatArray) -> Face:
        inner, weights = self.norm.face(a / self.weights), self.weights
        return Face(inner.fixed, inner.values / weights, lambda rng: inner.sample(rng) / weights)

    def maximizer(self, a: FloatArray) -> FloatArray:
        return self.norm.maximizer(a / self.weights) / self.weights

    def gradient(self, w: FloatArray) -> FloatArray:
        return self.weights * self.norm.gradient(self.weights * w)

    def gradient_error(self, w: FloatArray, error: FloatArray) -> FloatArray | None:
        inner = self.norm.gradient_error(self.weights * w, self.weights * error)
        return None if inner is None else self.weights * inner

    def normal_cone(self, w: FloatArray, error: FloatArray | None = None, accuracy: float = 1e-9) -> NormalCone:
        scaled = None if error is None else self.weights * error
        inner = self.norm.normal_cone(self.weights * w, scaled, accuracy)
        if inner.basis is not None:
            # The inner directions are unit vectors known to rounding; weights magnify that, entry by entry.
            rounding = 8 * len(w) * np.finfo(np.float64).eps
            return NormalCone.spanned(inner.basis * self.weights, w, self.weights * (inner.errors + rounding))
        return NormalCone(self.weights * inner.values, inner.open, self.weights * inner.errors)

    def units(self, p: int) -> FloatArray:
        if p != self.dimension:
            raise DimensionMismatch(f"the norm has {self.dimension} weights, {p} features were asked for")
        return self.weights * self.norm.units(p)

    @property
    def spec(self) -> dict[str, Any]:
        return {"norm": "weighted", "base": self.norm.spec, "weights": self.weights.tolist()}


def _share(part: FloatArray, whole: float, power: float) -> FloatArray:
    """(part/whole)**power by logarithms: the quotient may underflow where its power, for a small exponent, does not."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.exp(power * (np.log(part) - math.log(whole))))


def _plain(value: Any) -> Any:
    """A Python float for one point, the array for rows."""
    return float(value) if np.ndim(value) == 0 else value
