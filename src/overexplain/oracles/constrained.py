"""Services whose explanations obey constraints, and are exact optima under them: boxes, features that may not move, categories.

The constraints need the model itself, so these wrap a ModelOracle, or one another; every other wrapper goes around them:
``OneSided(Rounded(Immutable(ModelOracle(...), [0, 3]), 2))``. They publish the terms of the ModelOracle, which stay true among
the points that the constraints allow, and the domain of the valid inputs: answers were not chosen from all of R^p. Which
features may move they do not publish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput, NotFinite, UnsupportedNorm
from overexplain.geometry.arrays import BoolArray, FloatArray, as_point_or_rows
from overexplain.geometry.domain import Domain, as_count, feature_numbers
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Norm
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.mixed import nearest_mixed
from overexplain.oracles.nearest import nearest_on_plane, weighted_exponent
from overexplain.oracles.protocol import Oracle
from overexplain.oracles.wrapper import Wrapper, one_by_one


@dataclass(frozen=True)
class Allowed:
    """The model, and which steps may be taken from a point: the box, which features may grow or fall, how many may move."""

    model: ModelOracle
    distance: Norm
    domain: Domain | None
    up: BoolArray
    down: BoolArray
    most: int | None

    def nearest(self, x: FloatArray) -> FloatArray | None:
        """The nearest allowed point that flips the label (with its whole robustness ball); None if there is none."""
        if self.domain is not None:
            self.domain.refuse(x)
        normal, offset = _target(self.model, x)
        gap = offset - float(normal @ x)
        usable = np.where(normal * gap > 0, self.up, self.down) & (normal != 0)
        if self.most is not None:
            usable &= _most_effective(np.where(usable, normal, 0.0), self.distance, self.most)
        if gap == 0:
            return x.copy()
        if not usable.any():
            return None
        if self.domain is not None:
            low, high = (np.where(usable, side, x) for side in (self.domain.low, self.domain.high))
            q, weights = weighted_exponent(self.distance, len(x))
            return _finite(nearest_on_plane(normal, offset, x, low, high, q, weights))
        # Features that may move may move freely: an absolute norm's maximizer for the others' coefficients set to 0.
        usable_normal = np.where(usable, normal, 0.0)
        direction = np.where(usable, self.distance.maximizer(usable_normal), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            z = x + gap / float(usable_normal @ direction) * direction
            z = (
                z + (offset - float(normal @ z)) / float(usable_normal @ direction) * direction
            )  # what rounding left over
        return _finite(z)


def allowed_by(oracle: Any, wrapper: str) -> Allowed:
    """What `oracle`, a ModelOracle or another constrained service, allows."""
    if isinstance(oracle, Boxed | Immutable | Monotone | Sparse):
        return oracle.allowed
    if not isinstance(oracle, ModelOracle):
        raise InvalidInput(
            f"{wrapper} needs the model: put it around a ModelOracle (or Boxed, Immutable, Monotone, Sparse), and other wrappers "
            f"around it, not inside; got {type(oracle).__name__}"
        )
    terms = oracle.mechanism
    if terms.distance is None or terms.radius is None:
        raise InvalidInput(
            f"{wrapper} needs the distance and the radius: hide them with published= here, not in the ModelOracle"
        )
    if not terms.distance.is_absolute:
        raise UnsupportedNorm(f"{wrapper} needs a distance of |x_1|, …, |x_p| only, got {terms.distance!r}")
    everything = np.ones(oracle.dimension, dtype=bool)
    return Allowed(oracle, terms.distance, None, everything, everything, None)


def _without_distance(oracle: Oracle, inner: Allowed) -> Mechanism | None:
    """The oracle's terms but for the distance: with features that may not move, answers are no longer the nearest points.

    Without a box the domain has no limits; it says no more than that answers come from a part of it.
    """
    terms = oracle.mechanism
    domain = Domain(oracle.dimension) if inner.domain is None else inner.domain
    return None if terms is None else replace(terms, distance=None, domain=domain)


@final
class Boxed(Wrapper):
    """The nearest point of the plane inside low ≤ x ≤ high; None if the plane misses the box. Questions outside are refused.

    >>> from overexplain.geometry.hyperplane import Hyperplane
    >>> service = Boxed(ModelOracle(Hyperplane([2.0, 1.0], 5.0), Mechanism("l1")), 0.0, 2.0)
    >>> service.explain([0.0, 0.0]), service.explain([0.5, 0.0])
    (array([2., 1.]), array([2., 1.]))
    """

    def __init__(self, oracle: Any, low: ArrayLike, high: ArrayLike, *, published: Mechanism | None = None) -> None:
        inner = allowed_by(oracle, "Boxed")
        weighted_exponent(inner.distance, oracle.dimension)  # refuses other norms now, not at the first question
        _refuse_both(inner.most, "Boxed", "Sparse")
        box = Domain(oracle.dimension, low, high)
        if inner.domain is not None:
            box = Domain(
                oracle.dimension, np.maximum(box.low, inner.domain.low), np.minimum(box.high, inner.domain.high)
            )
        self._box, self.allowed = box, replace(inner, domain=box)
        super().__init__(oracle, published, replace(oracle.mechanism, domain=box))

    @property
    def domain(self) -> Domain | None:
        """The box."""
        return self._box

    def classify(self, x: ArrayLike) -> Any:
        """The label of a point in the box."""
        self._box.refuse(as_point_or_rows(x, self.dimension))
        return self.wrapped.classify(x)

    def explain(self, x: ArrayLike) -> Any:
        """The nearest point in the box that flips the label, or None."""
        return one_by_one(self.allowed.nearest, x, self.dimension)


@final
class Immutable(Wrapper):
    """Explanations in which the `features` do not move; None if the others have no effect. The terms name no distance."""

    def __init__(self, oracle: Any, features: Sequence[int], *, published: Mechanism | None = None) -> None:
        inner = allowed_by(oracle, "Immutable")
        kept = list(feature_numbers(features, oracle.dimension, "features"))
        free = np.ones(oracle.dimension, dtype=bool)
        free[kept] = False
        self.features = tuple(kept)
        self.allowed = replace(inner, up=inner.up & free, down=inner.down & free)
        super().__init__(oracle, published, _without_distance(oracle, inner))

    def explain(self, x: ArrayLike) -> Any:
        """The nearest point that flips the label by the other features alone, or None."""
        return one_by_one(self.allowed.nearest, x, self.dimension)


@final
class Monotone(Wrapper):
    """Explanations in which `increase` may only grow and `decrease` only fall; all may only grow if neither is given.

    The terms name no distance.
    """

    def __init__(
        self,
        oracle: Any,
        increase: Sequence[int] = (),
        decrease: Sequence[int] = (),
        *,
        published: Mechanism | None = None,
    ) -> None:
        inner, p = allowed_by(oracle, "Monotone"), oracle.dimension
        self.increase = feature_numbers(increase, p, "increase")
        self.decrease = feature_numbers(decrease, p, "decrease")
        if not self.increase and not self.decrease:
            self.increase = tuple(range(p))
        up, down = inner.up.copy(), inner.down.copy()
        down[list(self.increase)], up[list(self.decrease)] = False, False
        self.allowed = replace(inner, up=up, down=down)
        super().__init__(oracle, published, _without_distance(oracle, inner))

    def explain(self, x: ArrayLike) -> Any:
        """The nearest point that flips the label by allowed moves, or None."""
        return one_by_one(self.allowed.nearest, x, self.dimension)


@final
class Sparse(Wrapper):
    """Explanations in which at most `k` features move: those with the largest |normal_i| / weight_i among the movable.

    Exact for weighted ℓq: moving the features S alone costs gap / ‖normal_S‖*, and the dual norm of ℓq, a weighted ℓq' length of
    normal_S, is longest for the k largest terms |normal_i| / weight_i. The terms name no distance.
    """

    def __init__(self, oracle: Any, k: int, *, published: Mechanism | None = None) -> None:
        inner = allowed_by(oracle, "Sparse")
        weighted_exponent(inner.distance, oracle.dimension)
        _refuse_both(inner.domain, "Sparse", "Boxed")
        self.k = as_count(k, "k")
        self.allowed = replace(inner, most=self.k if inner.most is None else min(self.k, inner.most))
        super().__init__(oracle, published, _without_distance(oracle, inner))

    def explain(self, x: ArrayLike) -> Any:
        """The nearest point that flips the label by at most k features, or None."""
        return one_by_one(self.allowed.nearest, x, self.dimension)


@final
class OneHot(Wrapper):
    """Explanations that keep one-hot `groups` valid, `integers` whole and low ≤ x ≤ high: exact mixed-integer optima.

    Both verbs refuse inputs that are not valid themselves. `change` names the features that may change (a group only as a
    whole); all, if it is not given. The optimum lies on the plane where continuous features bring it there, beyond it where
    categories do; "beyond" includes the plane, as for every exact service. For l1 and linf, plain or weighted.
    """

    def __init__(
        self,
        oracle: ModelOracle,
        groups: Sequence[Sequence[int]],
        integers: Sequence[int] = (),
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        change: Sequence[int] | None = None,
        *,
        published: Mechanism | None = None,
    ) -> None:
        if not isinstance(oracle, ModelOracle):
            raise InvalidInput(
                "OneHot needs the model: put it around a ModelOracle (its own low, high and change stand for Boxed and Immutable), "
                f"and other wrappers around it; got {type(oracle).__name__}"
            )
        p = oracle.dimension
        self._q, self._weights = weighted_exponent(allowed_by(oracle, "OneHot").distance, p)
        if 1 < self._q < np.inf:
            raise UnsupportedNorm(f"OneHot needs l1 or linf, plain or weighted, got {oracle.mechanism.distance!r}")
        self._domain = Domain(p, low, high, groups, integers)
        self.change = tuple(range(p)) if change is None else feature_numbers(change, p, "change")
        self._frozen = np.setdiff1d(np.arange(p), self.change)
        for group in self._domain.groups:
            if 0 < len(set(group) & set(self.change)) < len(group):
                raise InvalidInput(f"change names a part of the group {list(group)}; a category changes as a whole")
        super().__init__(oracle, published, replace(oracle.mechanism, domain=self._domain))

    @property
    def domain(self) -> Domain | None:
        """Which inputs are valid."""
        return self._domain

    def classify(self, x: ArrayLike) -> Any:
        """The label of a valid input."""
        self._domain.refuse(as_point_or_rows(x, self.dimension))
        return self.wrapped.classify(x)

    def explain(self, x: ArrayLike) -> Any:
        """The nearest valid point that flips the label, or None."""
        self._domain.refuse(as_point_or_rows(x, self.dimension))
        return one_by_one(self._nearest, x, self.dimension)

    def _nearest(self, x: FloatArray) -> FloatArray | None:
        model: Any = self.wrapped
        normal, offset = _target(model, x)
        return nearest_mixed(normal, offset, x, model.classify(x), self._domain, self._frozen, self._q, self._weights)


def _target(model: ModelOracle, x: FloatArray) -> tuple[FloatArray, float]:
    """(normal, offset) of the plane to reach from x: the model's, moved by the robustness ball; scaled to about 1."""
    plane, terms = model.hyperplane, model.mechanism
    normal: FloatArray = np.ldexp(plane.normal, -plane._exponent)
    with np.errstate(over="ignore"):
        offset = float(np.ldexp(plane.offset, -plane._exponent))
    if terms.radius and terms.robustness is not None:
        offset -= model.classify(x) * terms.radius * float(terms.robustness.dual(normal))
    if not np.isfinite(offset):
        raise NotFinite("the plane is too far away for float64: offset / ‖normal‖ overflows; scale the features")
    return normal, offset


def _finite(z: FloatArray | None) -> FloatArray | None:
    if z is not None and not np.isfinite(z).all():
        raise NotFinite("an explanation would be too far away for float64; scale the features or the model's offset")
    return z


def _most_effective(normal: FloatArray, distance: Norm, k: int) -> BoolArray:
    """Which k features have the largest |normal_i| / weight_i, the first of those that tie."""
    _, weights = weighted_exponent(distance, len(normal))
    chosen = np.zeros(len(normal), dtype=bool)
    chosen[np.argsort(-np.abs(normal) / weights, kind="stable")[:k]] = True
    return chosen


def _refuse_both(other: Any, wrapper: str, inside: str) -> None:
    if other is not None:
        raise InvalidInput(
            f"{wrapper} around {inside}: the k best features inside a box are not found this way; use one of them"
        )
