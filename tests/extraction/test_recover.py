"""`recover`: what a log pins down, what it does not, and what it contradicts."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from overexplain.oracles.constrained import OneHot

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


def test_answers_of_a_domain_are_points_of_the_plane_or_nothing() -> None:
    """A category that flips the label takes the answer beyond the plane; as answers of R^p they fit no model."""
    model = ox.Hyperplane([1.0, -2.0, 9.0, 0.0], 4.3)
    oracle = ox.ModelOracle(model, ox.Mechanism("l1"))
    service = OneHot(oracle, [[2, 3]], [], [-1.5] * 4, [1.5] * 4)
    rows = service.domain.sample(1, 60)
    answers = service.explain(rows)
    told = ~np.isnan(answers).all(axis=1)
    rows, answers = rows[told], answers[told]
    log, wrong = ox.QueryLog(mechanism=service.mechanism), ox.QueryLog(mechanism=ox.Mechanism("l1"))
    for each in (log, wrong):
        each.add_explanation(rows, answers, label=model.labels(rows))
    assert (np.abs(model.margin(answers)) > 0.1).any()
    with pytest.raises(ox.InconsistentLog):
        ox.recover(wrong)
    # Valid inputs lie in a plane: (0, 0, 1, 1) can be added to the normal and 1 to the offset.
    assert ox.recover(log) is None
    boxed = ox.Boxed(oracle, -0.5, 0.5)
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (12, 4))
    answers = boxed.explain(rows)
    told = ~np.isnan(answers).all(axis=1)
    log = ox.QueryLog(mechanism=boxed.mechanism)
    log.add_explanation(rows[told], answers[told], label=model.labels(rows[told]))
    assert ox.recover(log).is_equivalent(model, 1e-9)


def test_one_answer_of_a_domain_is_one_point() -> None:
    x, answer = [1.0, 1.0, 1.0], ox.ModelOracle(MODEL, "l2").explain([1.0, 1.0, 1.0])
    for domain, is_known in ((None, True), (ox.Domain(3), False)):
        log = ox.QueryLog(mechanism=ox.Mechanism("l2", domain=domain))
        log.add_explanation(x, answer, label=MODEL.label(x))
        assert (ox.recover(log) is not None) == is_known
