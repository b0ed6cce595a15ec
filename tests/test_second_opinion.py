"""`benchmarks/second_opinion.py`, which audits are held against: what it says where the answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import overexplain as ox

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
TRUTH = np.array([1.0, 0.25, 0.5])


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def asked(kind: str, points, cases) -> list[bool | None]:
    from second_opinion import opinions

    plane = ox.Hyperplane(TRUTH[:-1], TRUTH[-1])
    rows = np.asarray(points, dtype=np.float64)
    answers = None if kind == "labels" else np.asarray(ox.ModelOracle(plane, kind).explain(rows))
    return opinions(kind, rows, plane.labels(rows), answers, TRUTH, np.asarray(cases, dtype=np.float64))


def test_labels_determine_what_is_between_them_and_what_is_beyond() -> None:
    points = [[1.0, 0.0], [1.0, 4.0], [0.0, 0.0]]
    assert asked("labels", points, [[1.0, 2.0], [2.0, 2.0], [0.5, 2.0], [-1.0, -4.0], [0.0, 1.0]]) == [
        True, True, False, True, False,
    ]  # fmt: skip


def test_a_point_on_an_edge_is_determined_and_one_beside_it_is_not() -> None:
    points = [[1.0, 0.0], [1.0, 4.0], [0.0, 0.0]]
    assert asked("labels", points, [[1.0, 3.0], [1.0, 4.0 + 2.0**-50], [1.0 - 2.0**-40, 3.0]])[0] is True
    assert asked("labels", points, [[1.0 - 2.0**-20, 3.0]]) == [False]


def test_an_l1_answer_fixes_one_entry_and_bounds_the_others() -> None:
    """[2, 0] → [0.5, 0]: a = (1, s) with |s| ≤ 1, b = 0.5."""
    assert asked("l1", [[2.0, 0.0]], [[2.0, 1.0], [2.0, 1.6], [0.5, 1.0], [-3.0, 3.4], [-3.0, 3.6]]) == [
        True, False, False, True, False,
    ]  # fmt: skip


def test_an_linf_answer_fixes_the_signs() -> None:
    """[2, 0] moves by the same in both: the plane passes between, a ≥ 0 and Σa = 1."""
    image = ox.ModelOracle(ox.Hyperplane(TRUTH[:-1], TRUTH[-1]), "linf").explain(np.array([2.0, 0.0]))
    assert asked("linf", [[2.0, 0.0]], [image + [0.1, 0.1], image + [0.1, -0.1], image - [0.1, 0.2]]) == [
        True,
        False,
        True,
    ]


def test_two_answers_leave_one_model_and_l2_needs_one() -> None:
    cases = [[0.5, 0.1], [0.5, -0.1], [30.0, -117.0], [30.0, -119.0]]
    assert asked("l1", [[2.0, 0.0], [2.0, 1.0]], cases) == [True] * 4
    assert asked("l2", [[2.0, 0.0]], cases) == [True] * 4
    assert asked("l2", [[2.0, 0.0]], [[0.5 - 2.0**-43, 0.0]]) == [False]


@pytest.mark.parametrize("kind", ["labels", "l1", "linf", "l2"])
def test_it_says_what_knowledge_says(kind) -> None:
    from second_opinion import opinions

    for seed in range(6):
        rng = np.random.default_rng([seed, 9])
        p = int(rng.integers(2, 6))
        plane = ox.Hyperplane(rng.normal(size=p), 0.2)
        rows, cases = rng.integers(-4, 5, (int(rng.integers(1, 2 * p)), p)) * 1.0, rng.normal(size=(12, p)) * 3
        labels = plane.labels(rows)
        log = ox.QueryLog(mechanism=None if kind == "labels" else ox.Mechanism(kind))
        answers = None if kind == "labels" else np.asarray(ox.ModelOracle(plane, kind).explain(rows))
        if answers is None:
            log.add_label(rows, labels)
        else:
            log.add_explanation(rows, answers, label=labels)
        told = opinions(kind, rows, labels, answers, np.append(plane.normal, plane.offset), cases)
        known = np.abs(ox.Knowledge(log, threads=1).certify(cases).codes) == 1
        assert all(said in (None, own) for said, own in zip(told, known.tolist(), strict=True))
        assert told.count(None) <= 1
