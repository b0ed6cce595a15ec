"""Whole-number columns, searches in rationals and facial reduction, against a second program in rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from definition import exact
from exact_balls import dot
from exact_lp import contradict, is_held, rank
from overexplain.errors import InconsistentLog
from overexplain.knowledge.prover.coding import WIDE, Coding
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.points import Points
from overexplain.knowledge.prover.rationals import interior, null_basis, project_exactly
from overexplain.knowledge.prover.reduction import Contradiction, LinearFacts
from prover_logs import seeds

ZERO = Fraction(0)


def drawn_columns(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Counts, cents, standardised flags, constants, values far from 0, huge and tiny ones, and floats of any kind."""
    columns = []
    for _ in range(p):
        counts = rng.integers(-5, 6, n).astype(float)
        flags = rng.integers(0, 2, n).astype(float)
        columns.append([
            counts, counts * 0.01, (flags - flags.mean()) / (flags.std() or 1.0), np.full(n, 0.1), counts + 2.0**45,
            counts * 1e-300, counts * 2.0**400, rng.standard_normal(n), counts * 5e-324, np.round(counts / 3, 3),
        ][int(rng.integers(10))])  # fmt: skip
    return np.array(columns).T


def test_codes_are_the_points_without_rounding() -> None:
    fits = 0
    for seed in seeds(60):
        rng = np.random.default_rng([seed, 12])
        n, p = int(rng.integers(1, 12)), int(rng.integers(1, 5))
        X = drawn_columns(rng, n, p)
        coding = Coding(X)
        Q = np.vstack([X, X[rng.integers(n, size=6)] * rng.choice([1.0, 0.5, 3.0, 1e-200, 1 + 2.0**-50], (6, 1)), -X])
        rows, is_exact = coding.queries(Q)
        z = [Fraction(int(v)) for v in rng.integers(-3, 4, p + 1)]
        normal, offset = coding.model(z)
        for x, row, sure in zip(Q, rows, is_exact, strict=True):
            entries = coding.exact(x)
            assert dot(normal, exact(x)) - offset == dot(z, [*entries, Fraction(-1)]), seed
            if not sure:
                continue
            fits += 1
            factor = -Fraction(float(row[-1]))
            assert [Fraction(float(v)) / factor for v in row[:-1]] == entries, (seed, x.tolist())
            assert 0 < factor < WIDE, seed
            assert np.abs(row).max() < WIDE, seed
        assert is_exact[:n].all() or not coding.is_whole, seed
    assert fits > 150


def test_a_query_that_underflows_is_not_the_code_of_0() -> None:
    log = ox.QueryLog()
    log.add_label([[0.0], [2.0**500]], [1, -1])
    verdicts = ox.Knowledge(log, threads=1).certify([[1e-200], [0.0], [-1e-200]])
    assert verdicts.codes.tolist() == [0, 1, 1]


def test_projections_and_interiors() -> None:
    held = inside = 0
    for seed in seeds(80):
        rng = np.random.default_rng([seed, 13])
        size, n = int(rng.integers(1, 5)), int(rng.integers(1, 8))
        G = [[int(v) for v in row] for row in rng.integers(-3, 4, (n, size)) * int(rng.choice([1, 1, 10**6]))]
        G = [g for g in G if any(g)] or [[1] * size]
        q = [int(v) for v in rng.integers(0, 3, len(G)) @ np.array(G)] if rng.random() < 0.6 else G[0][::-1]
        metric = np.eye(size) if rng.random() < 0.5 else rng.standard_normal((size, size))
        if rng.random() < 0.2:
            metric[:, -1] = metric[:, 0]  # one that sees too little
        start = rng.integers(len(G), size=int(rng.integers(0, 4))).tolist()
        weights, z = project_exactly(G, q, start, metric)
        assert (weights is not None) == is_held(G, q), (seed, G, q)
        if weights is not None:
            assert min(weights.values(), default=Fraction(1)) > 0
            assert [sum((w * G[i][k] for i, w in weights.items()), ZERO) for k in range(size)] == q, seed
            assert rank([G[i] for i in weights]) == len(weights), seed
            held += 1
        else:
            assert z is not None
            assert all(dot(g, z) >= 0 for g in G), seed
            assert dot(q, z) < 0, seed
        relation, z = interior(G)
        if relation is None:
            assert z is not None
            assert all(dot(g, z) > 0 for g in G), seed
            inside += 1
        else:
            rows = [G[i] for i in relation]
            assert [sum((w * G[i][k] for i, w in relation.items()), ZERO) for k in range(size)] == [0] * size, seed
            assert min(relation.values()) > 0
            assert rank(rows) == len(rows) - 1, seed
        basis = null_basis(G)
        assert len(basis) == size - rank(G), seed
        assert all(dot(g, z) == 0 for g in G for z in basis), seed
        assert not basis or rank(basis) == len(basis), seed
    assert min(held, inside) > 15


def facts_of(rng: np.random.Generator) -> LinearFacts:
    """Labels and weak facts in small numbers, with or without a model; many of them in one plane."""
    p, n = int(rng.integers(1, 4)), int(rng.integers(1, 8))
    points = rng.integers(-2, 3, (n, p)).astype(float)
    sides = rng.choice([1, -1], n)
    strict = (sides < 0) & (rng.random(n) < rng.choice([0.0, 0.3, 1.0]))
    return LinearFacts(points, sides.astype(np.int64), strict)


def test_facial_reduction() -> None:
    """A contradiction where there is one, and relations that are exact; else a model that keeps every fact."""
    found = reduced = 0
    for seed in seeds(150):
        facts = facts_of(np.random.default_rng([seed, 14]))
        rows = [
            [*(int(s) * v for v in exact(x)), Fraction(-int(s))]
            for x, s in zip(facts.points.tolist(), facts.sides.tolist(), strict=True)
        ]
        size = len(rows[0])
        axes = [[Fraction(sign * int(k == j)) for k in range(size)] for j in range(size) for sign in (1, -1)]
        is_contradictory = contradict(rows, facts.strict.tolist()) or all(is_held(rows, axis) for axis in axes)
        try:
            prover = LinearProver(facts)
        except Contradiction as why:
            found += 1
            assert is_contradictory, seed
            assert min(why.weights.values()) > 0, seed
            total = [sum((w * rows[i][k] for i, w in why.weights.items()), ZERO) for k in range(size)]
            assert total == [0] * size, seed
            is_strict = any(facts.strict[i] for i in why.weights)
            assert is_strict or rank([rows[i] for i in why.weights]) == size, seed
            continue
        assert not is_contradictory, seed
        normal, offset = prover.centre
        assert any(normal), seed
        for row, is_strict in zip(rows, facts.strict, strict=True):
            said = dot(row, [*normal, offset])
            assert said > 0 if is_strict else said >= 0, seed
        reduced += bool(prover.reduction.relations)
    assert found > 20
    assert reduced > 5


def test_contradictions_of_labels_are_irreducible() -> None:
    found = 0
    for seed in seeds(40):
        rng = np.random.default_rng([seed, 15])
        p = int(rng.integers(1, 4))
        points = rng.integers(-2, 3, (9, p)).astype(float)
        sides = rng.choice([1, -1], 9)
        try:
            LinearProver(LinearFacts(points, sides.astype(np.int64), sides < 0))
        except Contradiction as why:
            rows = [[*(int(sides[i]) * v for v in exact(points[i])), Fraction(-int(sides[i]))] for i in why.weights]
            strict = [bool(sides[i] < 0) for i in why.weights]
            for k in range(len(rows)):
                assert not contradict(rows[:k] + rows[k + 1 :], strict[:k] + strict[k + 1 :]), seed
            found += 1
        log = ox.QueryLog()
        log.add_label(points, sides)
        if contradict(
            [[*(int(s) * v for v in exact(x)), Fraction(-int(s))] for x, s in zip(points, sides, strict=True)],
            (sides < 0).tolist(),
        ):
            with pytest.raises(InconsistentLog) as raised:
                ox.Knowledge(log)
            assert raised.value.proof is not None
            raised.value.proof.verify(log)
    assert found > 10


def test_products_that_float64_rounds_are_not_called_exact() -> None:
    """Equalities leave coordinates of up to 2²⁰, queries have up to 2⁴⁰: their products may be beyond 2⁵³."""
    long = 0
    for seed in seeds(40):
        rng = np.random.default_rng([seed, 16])
        most = 2 ** int(rng.integers(4, 22))
        ends = rng.integers(-most, most, (2, 3))
        points = np.vstack([ends, ends, rng.integers(-3, 4, (3, 3))]).astype(float)
        sides = np.array([1, 1, -1, -1, 1, 1, 1])
        try:
            prover = LinearProver(LinearFacts(points, sides, np.zeros(7, dtype=bool)))
        except Contradiction:
            continue
        if prover.cone is None:
            continue
        far = 2 ** int(rng.integers(30, 40)) // most + rng.integers(0, 100, (8, 1))
        Q = (ends[0] + far * (ends[1] - ends[0]) + rng.integers(-1, 2, (8, 3))).astype(float)
        asked = Points(Q, prover.coding, prover.reduction, prover.cone, prover.is_centre_kept)
        for x, query, inner, is_exact in zip(Q, asked.queries, asked.inner.tolist(), asked.exact, strict=True):
            factor = -Fraction(float(query[-1]))
            true = [factor * v for v in prover.reduction.reduced([*prover.coding.exact(x), Fraction(-1)])]
            if is_exact:
                assert [Fraction(v) for v in inner] == true, (seed, x.tolist())
            long += not is_exact and prover.is_whole
    assert long > 20
