"""Logs of services that answer exactly: small dyadic numbers throughout, so that tolerance 0 is the truth."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

import overexplain as ox
from brute import lattice

HALVES = [k / 2 for k in range(-6, 7)]
STEPS = (0.5, 1.0, 2.0)
KINDS = ("l1", "l2", "linf", "weighted l1", "weighted l2", "weighted linf")
GRIDS = {1: lattice(-4, 4, 0.5, 1), 2: lattice(-3, 3, 1.0), 3: lattice(-2, 2, 1.0, 3)[::2]}
"""Points to ask about, by their dimension."""


def point(rng: random.Random, p: int) -> np.ndarray:
    """A point whose coordinates are halves between −3 and 3."""
    return np.array([rng.choice(HALVES) for _ in range(p)])


def model(rng: random.Random, p: int) -> ox.Hyperplane:
    """A model with small whole entries, at least one of them ±1: so its plane has dyadic points."""
    normal = np.array([float(rng.randint(-2, 2)) for _ in range(p)])
    normal[rng.randrange(p)] = rng.choice((-1.0, 1.0))
    return ox.Hyperplane(normal, rng.choice(HALVES))


def on_plane(plane: ox.Hyperplane, rng: random.Random) -> np.ndarray:
    """A dyadic point with normal·x = offset, exactly."""
    x = point(rng, plane.dimension)
    k = rng.choice(np.flatnonzero(np.abs(plane.normal) == 1).tolist())
    x[k] = 0.0
    x[k] = (plane.offset - plane.normal @ x) * plane.normal[k]
    return x


def distance(kind: str, p: int, rng: random.Random) -> ox.Norm:
    """ "l1", "l2", "linf", or one of them "weighted " by powers of two."""
    if kind.startswith("weighted "):
        return ox.Weighted(ox.norm(kind.removeprefix("weighted ")), [rng.choice((0.5, 1.0, 2.0)) for _ in range(p)])
    return ox.norm(kind)


def maximizer(norm: ox.Norm, normal: np.ndarray, rng: random.Random) -> np.ndarray:
    """A dyadic direction along which normal·x rises fastest; where several do, any of them. Its length is whatever comes."""
    weights = norm.weights if isinstance(norm, ox.Weighted) else np.ones(len(normal))
    base = norm.norm if isinstance(norm, ox.Weighted) else norm
    slopes, signs = np.abs(normal) / weights, np.sign(normal)
    if base == ox.l2:
        return normal / weights**2
    if base == ox.linf:
        free = np.array([rng.choice((-1.0, -0.5, 0.0, 0.5, 1.0)) for _ in normal])
        return np.where(normal == 0, free, signs) / weights
    best = np.flatnonzero(slopes == slopes.max())
    chosen = rng.sample(best.tolist(), rng.randint(1, len(best)))
    shares = np.array([rng.choice((0.5, 1.0)) if i in chosen else 0.0 for i in range(len(normal))])
    return shares * signs / weights


def explained(
    plane: ox.Hyperplane, norm: ox.Norm, rng: random.Random, side: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A point and its optimal counterfactual, exactly."""
    image = on_plane(plane, rng)
    step = rng.choice(STEPS) * maximizer(norm, plane.normal, rng)
    return image + (side or rng.choice((1, -1))) * step, image


def exact_log(
    rng: random.Random,
    plane: ox.Hyperplane,
    kinds: Sequence[str] = (),
    labels: int = 4,
    missing: float = 0.0,
) -> ox.QueryLog:
    """Labels of random points and an exact counterfactual for each of `kinds`, in random order.

    The label of an explained row is left out with the chance `missing`.
    """
    p = plane.dimension
    log = ox.QueryLog()
    rows = [*kinds, *["label"] * labels]
    rng.shuffle(rows)
    for kind in rows:
        if kind == "label":
            x = point(rng, p) if rng.random() < 0.8 or not len(log) else log.points[rng.randrange(len(log))].copy()
            log.add_label(x, int(plane.label(x)))
            continue
        norm = distance(kind, p, rng)
        x, image = explained(plane, norm, rng)
        label = None if rng.random() < missing else int(plane.label(x))
        log.add_explanation(x, image, label, ox.Mechanism(norm, tolerance=0.0))
    return log


def scaled(log: ox.QueryLog, factor: float) -> ox.QueryLog:
    """The log with all of its points multiplied by `factor`."""
    return taken(log, range(len(log)), factor)


def taken(log: ox.QueryLog, rows: Sequence[int], factor: float = 1.0) -> ox.QueryLog:
    """The log of these rows only, in this order."""
    part = ox.QueryLog(features=log.features, mechanism=log.mechanism)
    for i in rows:
        row = log[i]
        if row.status == ox.Status.NOT_ASKED:
            part.add_label(row.point * factor, row.label)
        else:
            part.add_explanation(row.point * factor, row.explanation * factor, row.label, row.mechanism)
    return part


def places(log: ox.QueryLog, p: int) -> np.ndarray:
    """A grid, and points of the log itself, where ties are."""
    return np.vstack([GRIDS[p], log.points[:6], log.explanations[log.explained][:3]]) if len(log) else GRIDS[p]
