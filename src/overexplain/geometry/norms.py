"""All norms in one place, and `norm(...)`, which reads their written forms."""

from __future__ import annotations

import math
from typing import Any

from overexplain.errors import UnsupportedNorm
from overexplain.geometry.group import GroupMax, GroupNorm
from overexplain.geometry.lp import Lp, Weighted, l1, l2, linf
from overexplain.geometry.mahalanobis import Mahalanobis
from overexplain.geometry.norm import Face, Norm, NormalCone
from overexplain.geometry.polyhedral import Facets, Polyhedral

__all__ = [
    "Face", "Facets", "GroupMax", "GroupNorm", "Lp", "Mahalanobis", "Norm", "NormalCone", "Polyhedral", "Weighted",
    "l1", "l2", "linf", "norm",
]  # fmt: skip

_NAMED = {"l1": l1, "l2": l2, "linf": linf}


def norm(spec: Any) -> Norm:
    """The norm that `spec` names: a name, a norm's own `spec` (JSON), or a norm, which is returned as it is.

    >>> norm("l1"), norm("lp:1.5")
    (Lp(q=1.0), Lp(q=1.5))
    >>> norm({"norm": "weighted", "base": "linf", "weights": [1, 2]})([1.0, 1.0])
    2.0
    """
    if isinstance(spec, Norm):
        return spec
    if isinstance(spec, str):
        return _named(spec.strip().lower())
    if isinstance(spec, dict):
        try:
            return _structured(spec)
        except KeyError as error:
            raise UnsupportedNorm(f"the norm {spec.get('norm')!r} lacks the entry {error}") from None
    raise UnsupportedNorm(f"a norm is a name, a dict or a Norm, got {type(spec).__name__}")


def _named(name: str) -> Norm:
    if name in _NAMED:
        return _NAMED[name]
    kind, _, exponent = name.partition(":")
    if kind == "lp":
        try:
            q = float(exponent)
        except ValueError:
            raise UnsupportedNorm(f"{name!r}: the exponent after 'lp:' must be a number, e.g. lp:1.5") from None
        return linf if q == math.inf else Lp(q)
    raise UnsupportedNorm(f"unknown norm {name!r}; known are l1, l2, linf and lp:Q with Q ≥ 1 (e.g. lp:1.5)")


def _structured(spec: dict[str, Any]) -> Norm:
    kind = spec["norm"]
    if kind == "weighted":
        return Weighted(norm(spec["base"]), spec["weights"])
    if kind == "mahalanobis":
        return Mahalanobis(spec["matrix"])
    if kind == "dual-mahalanobis":
        return Mahalanobis(spec["matrix"]).dual
    if kind == "group":
        return GroupNorm(spec["groups"])
    if kind == "group-max":
        return GroupMax(spec["groups"])
    if kind == "polyhedral":
        return Polyhedral(spec["vertices"])
    if kind == "facets":
        return Facets(spec["facets"])
    raise UnsupportedNorm(
        f"unknown norm {kind!r}; known are weighted, mahalanobis, dual-mahalanobis, group, group-max, polyhedral, facets"
    )
