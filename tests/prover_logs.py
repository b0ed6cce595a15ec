"""Random logs for the tests of the prover: columns of every kind, rows of every promise; and points that are hard for it.

Everything is made from a seed. `count(n)` is n, or SOAK times as many, and `first()` where seeds begin: 0, or anywhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import overexplain as ox
from conftest import SOAK
from definition import Definition, Model, directions, exact, models

COLUMNS = ("gauss", "grid", "flags", "onehot", "scaled")
PROMISES = ("label", "valid", "exact", "rounded", "slack", "slack and tolerance")
SCALES = (1e6, 0.1, 1 / 3, 1.0, 7.5)


def seeds(cases: int) -> range:
    """A few fixed seeds, or SOAK times as many new ones."""
    first = secrets.randbelow(2**40) if SOAK else 0
    return range(first, first + cases * (SOAK or 1))


@dataclass
class Made:
    """A log, points to ask about, and the plane that gave the answers."""

    log: ox.QueryLog
    points: np.ndarray
    plane: ox.Hyperplane
    rng: np.random.Generator

    @property
    def model(self) -> Model:
        return exact(self.plane.normal), Fraction(float(self.plane.offset))


def column_values(rng: np.random.Generator, kind: str, n: int, p: int) -> np.ndarray:
    """n points: floats, small whole numbers, flags, a one-hot group beside counts, or columns of very different size."""
    if kind == "gauss":
        return rng.standard_normal((n, p))
    if kind == "grid":
        return rng.integers(-3, 4, (n, p)).astype(float)
    if kind == "flags":
        return rng.integers(0, 2, (n, p)).astype(float)
    if kind == "scaled":
        return rng.integers(0, 5, (n, p)) * np.array([SCALES[j % len(SCALES)] for j in range(p)])
    group = max(2, (p + 1) // 2) if p > 1 else 1
    found = np.zeros((n, p))
    found[np.arange(n), rng.integers(0, group, n)] = 1.0
    found[:, group:] = rng.integers(0, 9, (n, p - group))
    return found


def drawn_plane(rng: np.random.Generator, kind: str, p: int) -> ox.Hyperplane:
    """A plane through the middle of such points, or through one of them."""
    normal = rng.integers(-3, 4, p).astype(float) if rng.random() < 0.5 else rng.standard_normal(p)
    if not normal.any():
        normal[0] = 1.0
    points = column_values(rng, kind, 60, p)
    if kind == "scaled":
        normal /= np.abs(points).max(axis=0) + 1e-9
    is_through = rng.random() < 0.3
    offset = points[0] @ normal if is_through else np.median(points @ normal) + 0.1 * rng.standard_normal()
    return ox.Hyperplane(normal, float(offset))


def drawn_terms(rng: np.random.Generator, promise: str, p: int) -> ox.Mechanism:
    """Published terms under l1, linf, l2 or one of them with weights."""
    name: Any = str(rng.choice(["l1", "linf", "l2"]))
    if rng.random() < 0.3:
        weights = rng.choice([0.25, 0.5, 1.0, 2.0, 4.0], p) if rng.random() < 0.5 else rng.uniform(0.3, 3.0, p)
        name = {"norm": "weighted", "base": name, "weights": weights.tolist()}
    if promise == "valid":
        return ox.Mechanism(name, slack=None)
    if promise == "rounded":
        return ox.Mechanism(name, tolerance=0.01 * p)
    if promise == "slack":
        return ox.Mechanism(name, slack=0.3)
    if promise == "slack and tolerance":
        return ox.Mechanism(name, slack=0.3, tolerance=0.01)
    return ox.Mechanism(name)


def answered(rng: np.random.Generator, plane: ox.Hyperplane, terms: ox.Mechanism, X: np.ndarray) -> np.ndarray:
    """What an honest service says under these terms; NaN where it has nothing to say."""
    service = ox.ModelOracle(plane, ox.Mechanism(terms.distance), ties="random", rng=int(rng.integers(2**31)))
    found = np.asarray(service.explain(X))
    if terms.slack is None:
        found = X + (found - X) * rng.uniform(1.0, 3.0, (len(X), 1))
        is_across = (plane.labels(found) != plane.labels(X)) | (found == X).all(axis=1)
        found[~is_across] = np.nan
    elif terms.slack:
        found = X + (found - X) * 1.2
    elif terms.tolerance:
        found = np.round(found, 2)
    return found


def mixed(seed: int, promises: tuple[str, ...] = PROMISES, most: int = 5, kinds: tuple[str, ...] = COLUMNS) -> Made:
    """One to four kinds of rows in one log; only such as the model really gives."""
    rng = np.random.default_rng([seed, 41])
    p, kind = int(rng.integers(1, most + 1)), str(rng.choice(kinds))
    plane = drawn_plane(rng, kind, p)
    log = ox.QueryLog()
    extra = []
    for _ in range(int(rng.integers(1, 5))):
        X = column_values(rng, kind, int(rng.integers(1, 9)), p)
        promise = str(rng.choice(promises))
        if promise == "label":
            log.add_label(X, plane.labels(X))
            continue
        terms = drawn_terms(rng, promise, p)
        found = answered(rng, plane, terms, X)
        for x, image in zip(X, found, strict=True):
            if np.isnan(image).any():
                continue
            one = ox.QueryLog()
            one.add_explanation(x, image, label=int(plane.label(x)), mechanism=terms)
            if Definition(one).judge(exact(plane.normal), Fraction(float(plane.offset))) is not False:
                log.add_explanation(x, image, label=int(plane.label(x)), mechanism=terms)
                extra.append(image)
    if not len(log):
        log.add_label(np.zeros(p), int(plane.label(np.zeros(p))))
    return Made(log, asked(rng, kind, log, plane, np.array(extra).reshape(-1, p)), plane, rng)


def asked(rng: np.random.Generator, kind: str, log: ox.QueryLog, plane: ox.Hyperplane, extra: np.ndarray) -> np.ndarray:
    """Points like the logged ones, these themselves, answers and their neighbours, points between and beyond."""
    p = plane.dimension
    own = np.vstack([log.points, extra])
    pairs = own[rng.integers(len(own), size=(8, 2))]
    found = [
        column_values(rng, kind, 14, p),
        own[rng.permutation(len(own))[:10]],
        extra[:4] + 10.0 ** -rng.integers(6, 16, (len(extra[:4]), 1)) * rng.standard_normal((len(extra[:4]), p)),
        pairs[:, 0] + rng.choice([0.5, 2.0, -1.0, 0.25], (8, 1)) * (pairs[:, 1] - pairs[:, 0]),
    ]
    return np.vstack(found)


def consistent_models(made: Made, known: Definition, tries: int = 12) -> Iterator[Model]:
    """Models that could have given the log: the true one, its neighbours, and in the plane those of a net."""
    rng, (a, b) = made.rng, made.model
    if known.judge(a, b):
        yield a, b
    p = len(a)
    for _ in range(tries):
        size = Fraction(int(rng.choice([1, -1])), 2 ** int(rng.integers(1, 45)))
        i = int(rng.integers(p + 1))
        near = tuple(v * (1 + size) if k == i else v for k, v in enumerate(a)), b + (size if i == p else 0)
        if any(near[0]) and known.judge(*near):
            yield near
    if p <= 2:
        normals = directions(known.rows, [exact(q) for q in made.points[:3].tolist()], 1)
        some = rng.choice(len(normals), min(tries, len(normals)), replace=False)
        yield from models(known, [exact(q) for q in made.points[:3].tolist()], [normals[int(k)] for k in some])
