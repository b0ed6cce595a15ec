"""Points that facts hold: which verdict follows depends on the weights that are really there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.one_point import settle
from overexplain.knowledge.prover.reduction import LinearFacts

VALID = ox.Mechanism("l1", slack=None)


@pytest.mark.parametrize("seed", range(4))
def test_products_beyond_53_bits_prove_nothing(seed: int) -> None:
    """Three points on the plane leave one model; queries with 30 binary digits, times its entries, are more than float64 holds."""
    rng = np.random.default_rng(seed)
    while True:
        on = rng.integers(-500, 500, size=(3, 3))
        normal = np.cross(on[1] - on[0], on[2] - on[0])
        offset, others = int(normal @ on[0]), rng.integers(-500, 500, size=(6, 3))
        said = np.sign(others @ normal - offset)
        if 0 < abs(normal[2]) <= 40 and normal[:2].all() and said.all():
            break
    log = ox.QueryLog(mechanism=VALID)
    log.add_explanation(on.astype(float), on.astype(float), label=np.ones(3, dtype=int))
    log.add_label(others.astype(float), said.astype(int))
    flat = np.round((on[0] + rng.uniform(0, 0.5, (200, 2)) @ (on[1:] - on[0]))[:, :2] * 2.0**30) / 2.0**30
    height = [
        (offset - int(normal[0]) * Fraction(u) - int(normal[1]) * Fraction(v)) / int(normal[2])
        for u, v in flat.tolist()
    ]
    points = np.column_stack([flat, [float(round(z * 2**30)) / 2.0**30 for z in height]])
    for x, code in zip(points.tolist(), ox.Knowledge(log).certify(points).codes, strict=True):
        value = sum((int(a) * Fraction(v) for a, v in zip(normal, x, strict=True)), Fraction(-offset))
        assert code == (2 if value == 0 else 1 if value > 0 else -1)


@pytest.mark.parametrize("seed", range(12))
def test_a_strict_row_without_weight_makes_no_no_strict(seed: int) -> None:
    """No labels a hair beside a merely valid answer: at the answer itself only the weak fact has weight."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 5))
    normal, points = rng.normal(size=p), rng.normal(size=(20, p))
    answer = rng.normal(size=p)
    answer -= normal * ((answer @ normal - 0.1) / (normal @ normal) + 0.05)
    apart = 10.0 ** rng.uniform(-7, -5.5)
    near = answer + apart * rng.normal(size=(6, p)) - 3 * apart * normal
    near -= 2 * normal * np.maximum(near @ normal - 0.1, 0)[:, None]
    sides = np.concatenate([-np.ones(6, dtype=int), np.where(points @ normal >= 0.1, 1, -1), [-1]])
    strict = sides < 0
    strict[-1] = False
    prover = LinearProver(LinearFacts(np.vstack([near, points, answer[None, :]]), sides, strict))
    assert prover.fork().look(answer[None, :])[0] in (3, settle(prover, answer).code)


def test_a_ball_has_weight_on_every_row() -> None:
    """Just beyond a weak fact a ball pays, in which the strict No has weight as well."""
    points = np.array([[1.1234567890123], [0.3123456789123], [-0.7712345678901]])
    prover = LinearProver(LinearFacts(points, np.array([1, -1, -1]), np.array([False, False, True])))
    asked = 0.3123456789123 - np.logspace(-9, -7.5, 300)
    codes = prover.look(asked[:, None])
    assert set(codes.tolist()) <= {-1, 3}
    assert all(settle(prover, np.array([x])).code == -1 for x in asked[::30])


def test_a_labelled_point_on_every_plane_keeps_its_label() -> None:
    log = ox.QueryLog(mechanism=VALID)
    log.add_explanation([[0.0, 0.0], [2.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]], label=[1, 1])
    log.add_label([[0.0, -1.0]], [-1])
    verdicts = ox.Knowledge(log).certify([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
    assert [verdict.name for verdict in verdicts] == ["YES", "BOUNDARY", "BOUNDARY"]
    for i in range(3):
        verdicts.proof(i).verify(log)
