"""The theorems of docs/theory/long-logs.md, each by a test of its own, against whole logs, samples and rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import overexplain as ox
from overexplain.geometry.hyperplane import NO, YES

UNKNOWN = ox.Verdict.UNKNOWN


def labelled(points: np.ndarray, labels: np.ndarray) -> ox.QueryLog:
    log = ox.QueryLog()
    log.add_label(points, labels)
    return log


def whole_numbers(seed: int, count: int) -> tuple[np.ndarray, ox.Hyperplane]:
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, (count, 2)).astype(float), ox.Hyperplane(rng.integers(1, 5, 2).astype(float), 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_long_logs_what_a_few_rows_prove(seed: int) -> None:
    points, plane = whole_numbers(seed, 40)
    labels, asked = plane.labels(points), np.random.default_rng(seed).standard_normal((200, 2)) * 3
    few = ox.Knowledge(labelled(points[:12], labels[:12])).certify(asked).codes
    log = labelled(points, labels)
    every = ox.Knowledge(log).certify(asked).codes
    sure = np.abs(few) == 1
    assert sure.any()
    assert (every[sure] == few[sure]).all()
    # One false row, and every order of a few others before it: whatever is named, the false one is among it.
    inside = np.flatnonzero(every == labels[0])
    assert len(inside)
    false = asked[inside[0]]
    rows = np.vstack([false, points[:4]])
    for order in permutations(range(5)):
        chosen = list(order)
        spoilt = labelled(
            np.vstack([points[4:], rows[chosen]]), np.append(labels[4:], np.append(-labels[0], labels[:4])[chosen])
        )
        with pytest.raises(ox.InconsistentLog) as caught:
            ox.Knowledge(spoilt)
        assert len(points) - 4 + chosen.index(0) in caught.value.rows
        caught.value.proof.verify(spoilt)


@pytest.mark.parametrize("seed", range(5))
def test_long_logs_models_decide_the_rest(seed: int) -> None:
    points, plane = whole_numbers(seed, 12)
    labels, rng = plane.labels(points), np.random.default_rng(seed)
    log, asked = labelled(points, labels), rng.standard_normal((60, 2)) * 3
    verdicts = ox.Knowledge(log).certify(asked)
    models = rng.standard_normal((200_000, 3)) * [1, 1, 3]
    said = models[:, :2] @ points.T - models[:, 2:]
    models = models[((said * labels) > 0).all(axis=1)]
    assert len(models) > 50
    says_yes = models[:, :2] @ asked.T - models[:, 2:] > 0
    for i in np.flatnonzero(says_yes.any(axis=0) & ~says_yes.all(axis=0)):
        assert verdicts.codes[i] == UNKNOWN
    for i in np.flatnonzero(verdicts.codes == UNKNOWN):
        found = verdicts.proof(int(i))
        assert isinstance(found, ox.Disagreement)
        for model, says in ((found.yes, YES), (found.no, NO)):
            for x, y in [*zip(points, labels, strict=True), (asked[i], says)]:
                value = sum(a * Fraction(v) for a, v in zip(model.normal, x.tolist(), strict=True)) - model.offset
                assert value >= 0 if y == YES else value < 0


@pytest.mark.parametrize("seed", range(20))
def test_long_logs_how_far_a_model_may_be_drawn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [[Fraction(int(v)) for v in row] for row in rng.integers(-9, 10, (30, 4))]
    middle = [Fraction(int(v)) for v in rng.integers(-9, 10, 4)]
    other = [Fraction(int(v)) for v in rng.integers(-9, 10, 4)]
    rooms = [sum(a * b for a, b in zip(row, middle, strict=True)) for row in rows]
    rows = [row if room >= 0 else [-v for v in row] for row, room in zip(rows, rooms, strict=True)]
    broken = [
        (abs(room), value)
        for row, room in zip(rows, rooms, strict=True)
        if (value := sum(a * b for a, b in zip(row, other, strict=True))) < 0
    ]
    assert broken
    most = min(room / (room - value) for room, value in broken)

    def is_kept(share: Fraction) -> bool:
        drawn = [(1 - share) * a + share * b for a, b in zip(middle, other, strict=True)]
        return all(sum(a * b for a, b in zip(row, drawn, strict=True)) >= 0 for row in rows)

    assert is_kept(most)
    assert is_kept(most / 2)
    assert not is_kept(most + Fraction(1, 10**9))


@pytest.mark.parametrize("off", [1e-3, 1e-6, 1e-9])
def test_long_logs_two_rows_under_a_smooth_distance(off: float) -> None:
    rng = np.random.default_rng(7)
    plane, mechanism = ox.Hyperplane(rng.standard_normal(6), 0.3), ox.Mechanism("l2")
    asked = rng.standard_normal((30, 6))
    answers = ox.ModelOracle(plane, mechanism).explain(asked).copy()
    answers[17] += off * (answers[17] - asked[17])
    log = ox.QueryLog(mechanism=mechanism)
    log.add_explanation(asked, answers, label=plane.labels(asked))
    with pytest.raises(ox.InconsistentLog) as caught:
        ox.Knowledge(log)
    assert len(caught.value.rows) == 2
    assert 17 in caught.value.rows
    caught.value.proof.verify(log)
