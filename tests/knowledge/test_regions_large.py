"""Verdicts at every scale: many features, huge and tiny numbers, growing logs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import dyadic
import overexplain as ox
from brute import BOUNDARY, NO, UNKNOWN, YES, givens, truth
from dyadic import GRIDS, KINDS, places
from strategies import examples


@pytest.mark.parametrize(
    ("p", "n", "queries"), [(2, 40, 700), (5, 80, 600), (10, 100, 500), (20, 120, 250), (30, 400, 60)]
)
def test_linear_programs_agree(p: int, n: int, queries: int) -> None:
    """Labels only: the opposite class is possible iff a program over (a, b) reaches it. The true model gives the one side."""
    rng = np.random.default_rng(p)
    plane = ox.Hyperplane(rng.normal(size=p), 0.3)
    points, asked = rng.normal(size=(n, p)), rng.normal(size=(queries, p))
    log = ox.QueryLog()
    log.add_label(points, plane.labels(points))
    rows = -plane.labels(points)[:, None] * np.column_stack([points, -np.ones(n)])
    found = ox.Knowledge(log).certify(asked).codes
    wrong = []
    for x, code in zip(asked, found, strict=True):
        label = plane.label(x)
        reached = -linprog(label * np.append(x, -1.0), A_ub=rows, b_ub=np.zeros(n), bounds=(-1, 1), method="highs").fun
        if not 1e-9 < reached < 1e-5 and code != (label if reached <= 1e-9 else UNKNOWN):
            wrong.append((x, int(code), label, reached))
    assert wrong == []
    assert {*found.tolist()} >= ({UNKNOWN} if p == 30 else {YES, NO, UNKNOWN})
    assert ((found == UNKNOWN) | (found == plane.labels(asked))).all()


@pytest.mark.parametrize("exponent", [-500, -100, 100, 500])
def test_powers_of_two_change_no_verdict(exponent: int) -> None:
    """Ties included: multiplying by a power of two is exact."""
    for seed in range(6):
        rng = random.Random(seed)
        p = rng.choice((2, 3))
        log = dyadic.exact_log(rng, dyadic.model(rng, p), rng.choices(KINDS, k=rng.randint(0, 2)), rng.randint(1, 5))
        points = places(log, p)
        far = ox.Knowledge(dyadic.scaled(log, 2.0**exponent), tolerance=0.0).certify(points * 2.0**exponent).codes
        assert np.array_equal(far, truth(givens(log), points)), seed


def small_logs() -> dict[str, tuple[ox.QueryLog, list[float]]]:
    """Logs whose verdict at one point once depended on the scale of the numbers."""
    rows = {
        "an answer equal to its question": (
            [1.0, -2.5],
            YES,
            [2.5, 2.0],
            [2.5, 2.0],
            YES,
            ox.Mechanism("l1"),
            [0.0, -3.0],
        ),
        "slack": ([-3.0, -1.5], NO, [-5.0, 4.0], [-6.0, 3.0], YES, ox.Mechanism("linf", slack=1.0), [-2.0, -3.0]),
        "a missing label": (
            *([-0.5, -1.0, 3.0], YES, [1.0, -3.5, -1.5], [3.0, -2.5, -2.0], None),
            *(ox.Mechanism(ox.Weighted(ox.l2, [0.5, 1.0, 1.0])), [-2.0, -2.0, -2.0]),
        ),
        "most of the steps tie": (
            *([3.0, -2.5, 1.5], NO, [3.5, 0.25, -1.875], [3.0, 0.0, -2.0], YES),
            *(ox.Mechanism(ox.Weighted(ox.linf, [1.0, 2.0, 2.0])), [-1.0, 1.0, -2.0]),
        ),
    }
    logs = {}
    for name, (x, y, question, answer, label, terms, asked) in rows.items():
        logs[name] = ox.QueryLog(), asked
        logs[name][0].add_label(x, y)
        logs[name][0].add_explanation(question, answer, label, terms)
    return logs


@pytest.mark.parametrize("exponent", [-500, 0, 500])
@pytest.mark.parametrize("name", small_logs())
def test_powers_of_two_change_no_verdict_of_small_logs(name: str, exponent: int) -> None:
    log, asked = small_logs()[name]
    points = np.array([asked])
    found = ox.Knowledge(dyadic.scaled(log, 2.0**exponent), tolerance=0.0).certify(points * 2.0**exponent).codes
    assert found.tolist() == truth(givens(log), points).tolist()


@pytest.mark.parametrize("factor", [1e-150, 1e150])
@pytest.mark.parametrize("distance", [None, "l1", "l2", "linf"])
def test_any_factor_changes_no_verdict_off_the_ties(factor: float, distance: str | None) -> None:
    rng = np.random.default_rng(4)
    plane = ox.Hyperplane(rng.normal(size=4), 0.3)
    points, asked = rng.normal(size=(40, 4)), rng.normal(size=(150, 4))
    log = ox.QueryLog()
    log.add_label(points, plane.labels(points))
    if distance is not None:
        terms = ox.Mechanism(distance)
        log.add_explanation(
            points[:2], ox.ModelOracle(plane, terms).explain(points[:2]), plane.labels(points[:2]), terms
        )
    near = ox.Knowledge(log).certify(asked).codes
    assert np.array_equal(ox.Knowledge(dyadic.scaled(log, factor)).certify(asked * factor).codes, near)
    assert {YES, NO} <= {*near.tolist()} <= {YES, NO, UNKNOWN}


@given(rng=st.randoms(use_true_random=False))
@examples(10)
def test_more_answers_never_take_a_verdict_back(rng: random.Random) -> None:
    """One answer after the other, by `add`: each time the exact verdicts, and what was certain stays so."""
    plane = dyadic.model(rng, 2)
    log = dyadic.exact_log(rng, plane, rng.choices(KINDS, k=rng.randint(0, 2)), rng.randint(3, 6))
    first = dyadic.taken(log, [0])
    knowledge = ox.Knowledge(first, tolerance=0.0)
    before = knowledge.certify(GRIDS[2]).codes
    for n in range(1, len(log)):
        row = log[n]
        knowledge.add(row.point, row.label, row.explanation, row.mechanism)
        codes = knowledge.certify(GRIDS[2]).codes
        assert np.array_equal(codes, truth(givens(log)[: n + 1], GRIDS[2])), list(log)[: n + 1]
        certain = np.isin(before, [YES, NO])
        assert np.array_equal(codes[certain], before[certain])
        assert np.isin(codes[before == BOUNDARY], [BOUNDARY, YES]).all()
        before = codes
    assert len(first) == 1
    x = log.points[0]
    with pytest.raises(ox.InconsistentLog):
        knowledge.add(x, -int(plane.label(x)))
    assert np.array_equal(knowledge.certify(GRIDS[2]).codes, before)
