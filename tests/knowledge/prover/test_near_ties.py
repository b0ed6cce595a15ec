"""Points on faces of what a log decides, and next to them: truth by a second program in rationals, or by the definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import overexplain as ox
from definition import Definition, exact
from exact_balls import dot
from exact_lp import verdict
from prover_logs import answered, column_values, drawn_plane, seeds

AWAY = (0.0, *(10.0**-k for k in range(2, 17)))
UNDECIDED = 3


def units(rng: np.random.Generator, kind: str, p: int) -> np.ndarray:
    """What 1 is in each column: 1 itself, or a number that float64 rounds."""
    return np.ones(p) if kind == "onehot" else rng.choice([1.0, 0.1, 1 / 3, np.pi, 1000.0], p)


def on_faces(rng: np.random.Generator, rows: np.ndarray, count: int) -> np.ndarray:
    """Combinations of a few rows (±(x, −1)) that are points again, and these moved by 10⁻² … 10⁻¹⁶ or not at all."""
    found = []
    p = rows.shape[1] - 1
    while len(found) < count:
        chosen = rng.choice(len(rows), min(len(rows), int(rng.integers(1, p + 1))), replace=False)
        total = rng.integers(1, 4, len(chosen)).astype(float) @ rows[chosen]
        if total[-1] == 0:
            continue
        x = total[:-1] / -total[-1]
        e, way = float(rng.choice(AWAY)), rng.integers(-2, 3, p).astype(float)
        found.append(x + e * way if rng.random() < 0.5 else x * (1 + float(rng.choice([-e, e]))))
    return np.array(found)


def exact_facts(log: ox.QueryLog) -> tuple[list[list[Fraction]], list[bool]]:
    """Labels and merely valid answers as rows over (a, b) that are ≥ 0, > 0 if strict."""
    rows, strict = [], []
    for row in log:
        rows.append([*(row.label * v for v in exact(row.point)), Fraction(-row.label)])
        strict.append(row.label < 0)
        if row.explanation is not None:
            rows.append([*(-row.label * v for v in exact(row.explanation)), Fraction(row.label)])
            strict.append(False)
    return rows, strict


def check(log: ox.QueryLog, points: np.ndarray) -> int:
    """Every verdict is the truth, and has a proof; how many are certain."""
    rows, strict = exact_facts(log)
    verdicts = ox.Knowledge(log, threads=1).certify(points)
    labelled = {tuple(x) for x in log.points.tolist()}
    certain = 0
    for i, x in enumerate(points.tolist()):
        true = verdict(rows, strict, [*exact(x), Fraction(-1)])
        true = 1 if true == 2 and tuple(x) in labelled else true
        assert verdicts.codes[i] == true, (x, true, log.points.tolist(), log.labels.tolist())
        verdicts.proof(i).verify(log)
        certain += true != 0
    return certain


def test_labels() -> None:
    certain = 0
    for seed in seeds(30):
        rng = np.random.default_rng([seed, 1])
        p, kind = int(rng.integers(1, 5)), str(rng.choice(["grid", "flags", "onehot"]))
        plane = drawn_plane(rng, kind, p)
        X = column_values(rng, kind, int(rng.integers(1, 11)), p)
        labels = plane.labels(X)
        scaled = X * units(rng, kind, p)
        log = ox.QueryLog()
        log.add_label(scaled, labels)
        rows = labels[:, None] * np.hstack([scaled, -np.ones((len(X), 1))])
        certain += check(log, np.vstack([on_faces(rng, rows, 14), scaled[:3]]))
    assert certain > 60


def test_merely_valid_answers() -> None:
    """Weak facts, relations among them, equalities that no answer states."""
    certain = 0
    for seed in seeds(24):
        rng = np.random.default_rng([seed, 2])
        p = int(rng.integers(1, 4))
        plane = drawn_plane(rng, "grid", p)
        log = ox.QueryLog()
        X = column_values(rng, "grid", int(rng.integers(1, 6)), p)
        for x in X:
            images = column_values(rng, "grid", 12, p)
            normal, offset = exact(plane.normal), Fraction(float(plane.offset))
            beyond = [dot(normal, exact(image)) - offset for image in images]
            across = [image for image, v in zip(images, beyond, strict=True) if -int(plane.label(x)) * v >= 0]
            for image in across[:1]:
                log.add_explanation(x, image, int(plane.label(x)), ox.Mechanism("l1", slack=None))
        if not len(log):
            continue
        images = log.explanations
        rows = np.vstack([s * np.hstack([Z, -np.ones((len(Z), 1))]) for Z in (log.points, images) for s in (1.0, -1.0)])
        certain += check(log, np.vstack([on_faces(rng, rows, 10), images[:2], log.points[:2]]))
    assert certain > 60


def test_rows_that_hardly_differ() -> None:
    """Answers to Yes points, 10⁻³ … 10⁻⁷ apart, merely valid: each may lie on the plane, and nothing may rest on rows whose
    weight is 0 but for rounding."""
    hard = (2634, 2644, 3046, 3097, 3305, 3679, 3688, 3696, 3719)
    for seed in (*hard, *seeds(20)):
        rng = np.random.default_rng([seed, 77])
        p = int(rng.integers(2, 4))
        normal = rng.standard_normal(p)
        X = rng.standard_normal((6, p))
        apart = 10.0 ** -rng.uniform(3, 7)
        X[3:] = X[:3] + apart * rng.standard_normal((3, p))
        images = X - (1 + rng.random((6, 1))) * 2 * ((X @ normal) / (normal @ normal))[:, None] * normal
        images[3:] = images[:3] + apart * rng.standard_normal((3, p))
        across = (X @ normal > 1e-9) & (images @ normal < -1e-9)
        if across.sum() < 2:
            continue
        log = ox.QueryLog()
        log.add_explanation(
            X[across],
            images[across],
            label=np.ones(int(across.sum()), dtype=int),
            mechanism=ox.Mechanism("l1", slack=None),
        )
        images = images[across]
        check(log, np.vstack([images, (images[:1] + images[1:2]) / 2]))


@pytest.mark.parametrize("name", ["l1", "linf", "l2"])
def test_beside_exact_answers(name: str) -> None:
    """x' + e·direction: the two sides of the true plane are no certain verdict's to deny, and UNKNOWN has its models."""
    certain = open_ = 0
    for seed in seeds(8):
        rng = np.random.default_rng([seed, 3])
        p, kind = int(rng.integers(1, 5)), str(rng.choice(["grid", "gauss", "onehot", "scaled"]))
        plane = drawn_plane(rng, kind, p)
        terms: Any = ox.Mechanism(name)
        X = column_values(rng, kind, int(rng.integers(1, 8)), p)
        images = answered(rng, plane, terms, X)
        log = ox.QueryLog()
        log.add_explanation(X, images, label=plane.labels(X), mechanism=terms)
        known = Definition(log)
        model = exact(plane.normal), Fraction(float(plane.offset))
        if known.judge(*model) is not True:
            continue
        e = rng.choice(AWAY, (16, 1))
        points = images[rng.integers(len(images), size=16)] + e * rng.standard_normal((16, p)) * np.abs(X).max(axis=0)
        verdicts = ox.Knowledge(log, time_limit=0.2, threads=1).certify(points)
        for i, x in enumerate(points.tolist()):
            code = verdicts.codes[i]
            if code in (1, -1):
                said = sum((a * v for a, v in zip(model[0], exact(x), strict=True)), -model[1])
                assert (said >= 0) == (code > 0), (seed, x)
                verdicts.proof(i).verify(log)
                certain += 1
            elif code == 0:
                proof = verdicts.proof(i)
                assert isinstance(proof, ox.Disagreement)
                assert known.judge(tuple(proof.yes.normal), proof.yes.offset) is not False
                assert known.judge(tuple(proof.no.normal), proof.no.offset) is not False
                open_ += 1
    assert certain > 30
    assert open_ > 5
