"""`recover`: what a log pins down, what it does not, and what it contradicts."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox

MODEL = ox.Hyperplane([1.0, -2.0, 0.5], 4.0)


def log_of(
    mechanism: ox.Mechanism, points: list, labels: bool = True, published: ox.Mechanism | None = None
) -> ox.QueryLog:
    oracle = ox.ModelOracle(MODEL, mechanism)
    log = ox.QueryLog(mechanism=published or mechanism)
    for x in points:
        log.add_explanation(x, oracle.explain(x), label=MODEL.label(x) if labels else None)
    return log


def test_one_smooth_answer_is_the_model() -> None:
    assert ox.recover(log_of(ox.Mechanism("l2"), [[1.0, 1.0, 1.0]])).is_equivalent(MODEL, 1e-12)


def test_answers_from_both_sides_and_several_services_add_up() -> None:
    rng = np.random.default_rng(0)
    log = log_of(ox.Mechanism("l1"), rng.normal(size=(2, 3)) * 5)
    assert ox.recover(log) is None
    other = ox.ModelOracle(MODEL, ox.Mechanism("linf"))
    x = rng.normal(size=3) * 5
    log.add_explanation(x, other.explain(x), label=MODEL.label(x), mechanism=other.mechanism)
    assert ox.recover(log).is_equivalent(MODEL, 1e-9)


def test_labels_alone_and_empty_logs_pin_nothing_down() -> None:
    assert ox.recover(ox.QueryLog()) is None
    log = ox.QueryLog()
    log.add_label([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]], [-1, 1])
    assert ox.recover(log) is None


def test_without_a_label_the_sides_are_open() -> None:
    log = log_of(ox.Mechanism("l2"), [[1.0, 1.0, 1.0]], labels=False)
    assert ox.recover(log) is None
    assert ox.recover(log, orient=False).same_plane(MODEL, 1e-12)
    log.add_label([100.0, 0.0, 0.0], 1)
    assert ox.recover(log).is_equivalent(MODEL, 1e-12)


def test_a_secret_radius_needs_answers_from_both_sides() -> None:
    terms, shown = ox.Mechanism("l2", robustness="l1", radius=0.5), ox.Mechanism("l2", radius=None)
    one = log_of(terms, [[0.0, 0.0, 0.0]], published=shown)
    assert ox.recover(one) is None
    both = log_of(terms, [[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]], published=shown)
    assert ox.recover(both).is_equivalent(MODEL, 1e-9)
    known = log_of(terms, [[0.0, 0.0, 0.0]])
    assert ox.recover(known).is_equivalent(MODEL, 1e-9)


@pytest.mark.parametrize("terms", [ox.Mechanism("l2", slack=0.1), ox.Mechanism("l2", tolerance=1e-3)])
def test_inexact_answers_are_not_taken_for_exact(terms: ox.Mechanism) -> None:
    assert ox.recover(log_of(ox.Mechanism("l2"), np.eye(3), published=terms)) is None


def test_answers_of_an_unknown_distance_are_points() -> None:
    log = log_of(ox.Mechanism("l1"), np.random.default_rng(1).normal(size=(3, 3)), published=ox.Mechanism(None))
    assert ox.recover(log).is_equivalent(MODEL, 1e-9)


def test_contradictions_are_named() -> None:
    log = log_of(ox.Mechanism("l2"), [[1.0, 1.0, 1.0], [0.0, 2.0, 0.0]])
    log.add_label([100.0, 0.0, 0.0], -1)
    with pytest.raises(ox.InconsistentLog, match="labels contradict") as caught:
        ox.recover(log)
    assert caught.value.rows == (2,)
    log = log_of(ox.Mechanism("l2"), [[1.0, 1.0, 1.0]])
    log.add_explanation([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], label=-1)
    with pytest.raises(ox.InconsistentLog, match="no hyperplane fits"):
        ox.recover(log)
    log = log_of(ox.Mechanism("l1"), np.random.default_rng(1).normal(size=(3, 3)))
    log.add_explanation([5.0, 5.0, 5.0], MODEL.normal / (MODEL.normal @ MODEL.normal) * 4.0)
    with pytest.raises(ox.InconsistentLog, match="row 3 does not fit|no hyperplane fits the 4"):
        ox.recover(log)


def test_rounded_answers_are_said_to_be_inexact() -> None:
    x = np.random.default_rng(0).normal(size=(8, 3))
    log = ox.QueryLog(mechanism=ox.Mechanism("l1"))
    log.add_explanation(x, np.round(ox.ModelOracle(MODEL, "l1").explain(x), 4), label=MODEL.labels(x))
    with pytest.raises(ox.InconsistentLog, match="rounded or heuristic"):
        ox.recover(log)


def test_only_logs_are_read() -> None:
    with pytest.raises(ox.InvalidInput, match="QueryLog"):
        ox.recover([[1.0, 2.0]])
