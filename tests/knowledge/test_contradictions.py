"""Logs that no model fits: the rows named contradict each other, and no fewer of them do."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import dyadic
import overexplain as ox
from brute import NO, YES, givens, is_consistent
from dyadic import KINDS
from strategies import examples


def labelled(points: list[list[float]], labels: list[int]) -> ox.QueryLog:
    log = ox.QueryLog()
    log.add_label(np.array(points, dtype=float), labels)
    return log


def contradiction(log: ox.QueryLog) -> list[int]:
    with pytest.raises(ox.InconsistentLog) as caught:
        ox.Knowledge(log, tolerance=0.0)
    caught.value.proof.verify(log)
    return list(caught.value.rows)


@given(rng=st.randoms(use_true_random=False))
@examples(40)
def test_a_contradiction_names_an_irreducible_set_of_rows(rng: random.Random) -> None:
    p = rng.choice((1, 2, 3))
    log = dyadic.exact_log(rng, dyadic.model(rng, p), rng.choices(KINDS, k=rng.randint(0, 2)), rng.randint(1, 4))
    other = dyadic.exact_log(rng, dyadic.model(rng, p), rng.choices(KINDS, k=rng.randint(0, 1)), rng.randint(1, 4))
    for row in other:
        if row.explanation is None:
            log.add_label(row.point, row.label)
        else:
            log.add_explanation(row.point, row.explanation, row.label, row.mechanism)
    rows = givens(log)
    if is_consistent(rows, p):
        assert ox.Knowledge(log, tolerance=0.0).is_consistent
        return
    named = contradiction(log)
    assert len(set(named)) == len(named)
    assert not is_consistent([rows[i] for i in named], p)
    assert [i for i in named if not is_consistent([rows[k] for k in named if k != i], p)] == []


CONTRADICTIONS = {
    "both labels": (labelled([[0, 0], [1, 1], [0, 0]], [YES, YES, NO]), [0, 2]),
    "a Yes between No": (labelled([[0, 0], [2, 2], [5, 0], [1, 1]], [NO, NO, YES, YES]), [0, 1, 3]),
    "a No between Yes": (labelled([[0, 0], [2, 2], [1, 1]], [YES, YES, NO]), [0, 1, 2]),
    "hulls that only touch": (labelled([[0, 0], [2, 0], [1, 0], [1, 1]], [NO, NO, YES, YES]), [0, 1, 2]),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_in_labels(name: str) -> None:
    log, rows = CONTRADICTIONS[name]
    assert sorted(contradiction(log)) == rows


def test_contradictions_in_explanations() -> None:
    terms = ox.Mechanism("l2", tolerance=0.0)
    two = ox.QueryLog()
    two.add_label([5.0, 5.0], YES)
    two.add_explanation([0.0, 0.0], [1.0, 0.0], NO, terms)
    two.add_explanation([0.0, 0.0], [0.0, 1.0], NO, terms)
    assert sorted(contradiction(two)) == [1, 2]
    still = ox.QueryLog()
    still.add_explanation([0.0, 0.0], [0.0, 0.0], NO, terms)  # on the plane is a Yes
    assert contradiction(still) == [0]
    inside = ox.QueryLog()
    inside.add_explanation([0.0, 0.0], [2.0, 0.0], NO, terms)
    inside.add_label([1.0, 1.0], YES)  # nearer to the plane than x' and yet across
    assert sorted(contradiction(inside)) == [0, 1]


@pytest.mark.parametrize("p", [3, 8])
def test_contradictions_in_larger_logs(p: int) -> None:
    rng = np.random.default_rng(p)

    def fits(points: np.ndarray, labels: np.ndarray) -> bool:
        rows = np.column_stack([-labels[:, None] * points, labels, labels < 0])
        return linprog([0.0] * (p + 1) + [-1], A_ub=rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1)).fun < -1e-9

    for _ in range(5):
        points = rng.normal(size=(12 * p, p))
        labels = ox.Hyperplane(rng.normal(size=p), 0.1).labels(points).astype(float)
        labels[rng.integers(len(labels), size=3)] *= -1
        assert not fits(points, labels)
        log = ox.QueryLog()
        log.add_label(points, labels)
        rows = np.array(contradiction(log))
        assert len(rows) <= p + 2  # Helly
        assert not fits(points[rows], labels[rows])
        assert all(fits(points[np.delete(rows, i)], labels[np.delete(rows, i)]) for i in range(len(rows)))
