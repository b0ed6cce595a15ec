"""Proofs by whole numbers against exact solves; compiled loops against NumPy's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from exact_lp import is_held, weights_of
from overexplain.knowledge.prover import batch as batches
from overexplain.knowledge.prover import coding, projection, screens
from overexplain.knowledge.prover.batch import HELD, UNKNOWN, Batch
from overexplain.knowledge.prover.coding import powers_of
from overexplain.knowledge.prover.cone import NoInterior, RoundCone
from overexplain.knowledge.prover.rationals import combine_floats
from overexplain.knowledge.prover.screens import Box
from prover_logs import seeds


def proved(G: np.ndarray, q: np.ndarray, dual: np.ndarray) -> set[bool]:
    """What both versions say; coordinates are those of the rows."""
    from overexplain.knowledge.prover.compiled import prove_whole

    size, width = G.shape
    T, scale = np.eye(width), np.ones(size)
    with np.errstate(all="ignore"):
        plain = bool(projection.prove_whole(G, q, T, scale, dual))
    compiled = bool(
        prove_whole(G, q, T, scale, dual, size, width, np.zeros(width), np.zeros(width), np.zeros(size + 2))
    )
    return {plain, compiled}


def drawn_rows(rng: np.random.Generator) -> np.ndarray:
    """Small numbers, numbers up to 2³⁰, or rows that hardly differ."""
    width = int(rng.integers(2, 7))
    size = int(rng.integers(1, width + 1))
    most = 2 ** int(rng.choice([1, 2, 4, 10, 20, 30]))
    G = rng.integers(-most, most + 1, (size, width)).astype(float)
    if size > 1 and rng.random() < 0.4:
        G[-1] = G[0] + rng.integers(-1, 2, width)
    return G[G.any(axis=1)] if G.any() else np.ones((1, width))


def test_what_is_proved_is_a_combination() -> None:
    held = 0
    for seed in seeds(250):
        rng = np.random.default_rng([seed, 9])
        G = drawn_rows(rng)
        weights = rng.integers(0 if rng.random() < 0.3 else 1, 9, len(G)) * 2 ** int(rng.integers(0, 8))
        q = weights @ G
        if rng.random() < 0.5:  # a hair beside it
            q[int(rng.integers(len(q)))] += float(rng.choice([-1, 1]))
        if not q.any() or np.abs(q).max() >= 2.0**40:
            continue
        dual = np.linalg.pinv(G.T)
        if rng.random() < 0.3:  # poor advice, or none at all
            dual = dual + rng.standard_normal(dual.shape) * float(rng.choice([1e-9, 1.0, np.inf, np.nan]))
        said = proved(G, q, dual)
        if True not in said:
            continue
        held += 1
        rows, target = [[Fraction(v) for v in row] for row in G.tolist()], [Fraction(v) for v in q.tolist()]
        if np.linalg.matrix_rank(G) == len(G):
            found = weights_of(rows, target)
            assert found is not None, (seed, G.tolist(), q.tolist())
            assert min(found) > 0, (seed, G.tolist(), q.tolist())
        else:
            assert is_held(rows, target), (seed, G.tolist(), q.tolist())
    assert held > 50


def test_the_bound_on_minors() -> None:
    for seed in seeds(30):
        rng = np.random.default_rng([seed, 10])
        G = drawn_rows(rng)
        size = min(G.shape)
        most = max(abs(np.linalg.det(G[:k, :k])) for k in range(1, size + 1))
        assert 2.0 ** projection.log2_of_minors(G) >= most * (1 - 1e-9)


def test_compiled_searches_say_the_same() -> None:
    """The codes of both sweeps on random cones; they may differ in evidence, not in what is so."""
    from overexplain.knowledge.prover.compiled import sweep

    counts = {HELD: 0, UNKNOWN: 0}
    for seed in seeds(25):
        rng = np.random.default_rng([seed, 11])
        r, n = int(rng.integers(2, 7)), int(rng.integers(2, 30))
        rows = rng.standard_normal((n, r)) if rng.random() < 0.5 else rng.integers(-3, 4, (n, r)).astype(float)
        rows = np.unique(rows[rows[:, 0] != 0], axis=0)
        if not len(rows):
            continue
        rows *= np.sign(rows[:, :1])
        try:
            cone = RoundCone(rows)
        except NoInterior:
            continue
        queries = np.vstack([rng.exponential(1.0, (12, len(rows))) @ rows, rng.standard_normal((12, r))])
        C = queries @ cone.map
        C = C[np.linalg.norm(C, axis=1) > 0]
        C *= np.where(C @ cone.z0 >= 0, 1.0, -1.0)[:, None] / np.linalg.norm(C, axis=1)[:, None]
        codes = []
        for one in (projection.sweep, sweep):
            batch = Batch(cone)
            batch._sweep = lambda count, one=one: one  # type: ignore[method-assign, misc]
            codes.append(batch.search(C).codes)
        both = np.isin(codes[0], (HELD, UNKNOWN)) & np.isin(codes[1], (HELD, UNKNOWN))
        assert (codes[0] == codes[1])[both].all(), seed
        assert both.mean() > 0.5, seed
        for code in counts:
            counts[code] += int((codes[0] == code).sum())
    assert min(counts.values()) > 20
    assert batches.WORTH_CALLING < batches.WORTH_COMPILING


def test_rows_of_floats_are_combined_exactly() -> None:
    rng = np.random.default_rng(8)
    for size, width, spread in ((3, 3, 1), (4, 4, 400), (2, 5, 600), (1, 4, 900), (4, 4, 1000)):
        rows = np.ldexp(rng.standard_normal((size, width)), rng.integers(-spread, spread, (size, width)))
        rows[0, 0] = 0.0
        exact = [[Fraction(v) for v in row] for row in rows.tolist()]
        weights = [Fraction(int(w), 7) for w in rng.integers(-9, 9, size)]
        target = [sum((w * row[j] for w, row in zip(weights, exact, strict=True)), Fraction(0)) for j in range(width)]
        with np.errstate(all="ignore"):
            assert combine_floats(rows, target) == weights
            if size < width:
                assert combine_floats(rows, [target[0], target[1] + 1, *target[2:]]) is None
            else:
                assert combine_floats(rows[[0, 0, *range(2, size)]], target) is None


def test_powers_of_columns() -> None:
    X = np.array([[0.75, 12.0, 0.0, 2.0**-1074], [0.5, -20.0, 0.0, 2.0**1000]])
    assert powers_of(X).tolist() == [-2, 2, 0, -1074]


def test_a_box_that_settles_next_to_nothing_is_not_asked_for_ever() -> None:
    box = Box(np.array([1.0, 0.0]), np.array([[0.0], [1.0]]), np.ones(2), np.zeros(2), 0.1)
    box.tally(np.zeros(screens.SAMPLE - 1, dtype=bool))
    assert box.is_worth_asking
    box.tally(np.zeros(1, dtype=bool))
    assert not box.is_worth_asking
    box.tally(np.ones(screens.SAMPLE, dtype=bool))
    assert box.is_worth_asking


def test_points_are_coded_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    X = np.hstack([rng.integers(0, 3, (40, 2)) * 0.1, rng.standard_normal((40, 1)), np.zeros((40, 1))])
    coded = coding.Coding(X)
    whole = coded.queries(X * 1.5)
    monkeypatch.setattr(coding, "BLOCK", 7)
    for a, b in zip(coded.queries(X * 1.5), whole, strict=True):
        assert np.array_equal(a, b)
    assert coded.narrow.tolist() == [True, True, False, True]
