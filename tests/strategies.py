"""Every Hypothesis generator of the tests."""

from __future__ import annotations

import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import overexplain as ox

NORMS = (
    "l1", "l2", "linf", "lp:1.1", "lp:1.5", "lp:3", "weighted l1", "weighted linf", "weighted l2", "weighted lp:1.1",
    "mahalanobis", "group", "group max", "weighted group", "polyhedral", "facets",
)  # fmt: skip
SMOOTH = tuple(name for name in NORMS if "lp" in name or "l2" in name or name == "mahalanobis")


def examples(count: int) -> settings:
    """Try half of `count` examples, but no fewer than 15 if `count` has them; SOAK times `count` in `make soak-tests`."""
    soak = int(os.environ.get("SOAK", "0"))
    return settings(max_examples=count * soak if soak else max(min(count, 15), count // 2))


def make_norm(name: str, p: int, seed: int = 0, spread: float = 3.0) -> ox.Norm:
    """The named norm for p features; weights lie between 10**-spread and 10**spread."""
    rng = np.random.default_rng(seed)
    if name.startswith("weighted "):
        return ox.Weighted(make_norm(name.removeprefix("weighted "), p, seed), 10 ** rng.uniform(-spread, spread, p))
    if name == "mahalanobis":
        factor = rng.normal(size=(p, p))
        return ox.Mahalanobis(factor @ factor.T + 0.1 * np.eye(p))
    if name.startswith("group"):
        parts = np.array_split(rng.permutation(p), max(1, p // 2))
        groups = ox.GroupNorm([part.tolist() for part in parts])
        return groups.dual if name == "group max" else groups
    if name in ("polyhedral", "facets"):
        corners = rng.normal(size=(2 * p + 1, p))
        ball = ox.Polyhedral(np.vstack([corners, -corners]))
        return ball if name == "polyhedral" else ball.dual
    return ox.norm(name)


ENTRIES = st.one_of(
    st.floats(-8, 8, allow_subnormal=False).map(lambda x: round(x, 3)),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5]),  # zeros and ties are the interesting cases
)


@st.composite
def normals(draw: st.DrawFn, p: int) -> np.ndarray:
    """Non-zero normals with zeros and ties, none of whose entries is tiny by accident."""
    entries = np.array(draw(st.lists(ENTRIES, min_size=p, max_size=p)))
    return entries if entries.any() else np.eye(p)[draw(st.integers(0, p - 1))]


@st.composite
def services(draw: st.DrawFn, names: tuple[str, ...] = NORMS) -> tuple[ox.Hyperplane, ox.Mechanism, ox.Mechanism, str]:
    """A model, the terms its service answers by, the terms it publishes (radius maybe secret), and how it breaks ties."""
    p = draw(st.integers(1, 7))
    seed = draw(st.integers(0, 99))
    distance = make_norm(draw(st.sampled_from(names)), p, seed)
    normal = draw(normals(p))
    if draw(st.booleans()):
        normal = normal * distance.units(p)  # ties in the distance's own unit
    offset = draw(st.one_of(st.just(0.0), st.just(float(normal[0])), st.floats(-5, 5).map(lambda x: round(x, 3))))
    ties = draw(st.sampled_from(["first", "random"]))
    kind = draw(st.sampled_from(["plain", "robust", "secret", "secret zero"]))
    if kind == "plain":
        terms = ox.Mechanism(distance)
        return ox.Hyperplane(normal, offset), terms, terms, ties
    robustness = make_norm(draw(st.sampled_from(["l1", "l2", "linf", "weighted l2"])), p, seed + 1)
    radius = 0.0 if kind == "secret zero" else draw(st.sampled_from([1e-6, 0.1, 1.0, 1e6]))
    terms = ox.Mechanism(distance, robustness=robustness, radius=radius)
    published = terms if kind == "robust" else ox.Mechanism(distance, robustness=robustness, radius=None)
    return ox.Hyperplane(normal, offset), terms, published, ties
