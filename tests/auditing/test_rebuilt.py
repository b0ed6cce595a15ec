"""What no method can do without, read off the log; and how far a rebuilt model is from the true one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from overexplain.auditing.rebuilt import compare, proven_minimum
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import l1, l2, linf
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle

PLANE = Hyperplane([3.0, -4.0, 0.5], 10.0)


def log_of(*answers):
    log = QueryLog()
    for point, answer in answers:
        log.add_explanation(point, answer)
    return log


def test_minimum_counts_what_the_first_step_leaves_open() -> None:
    log = log_of(([0.0, 0.0, 0.0], [0.0, -2.5, 0.0]))
    assert proven_minimum(log, Mechanism(l1)) == 3
    assert proven_minimum(log, Mechanism(l2)) == 1
    assert proven_minimum(log, Mechanism(l1, l2, None)) == 4
    assert proven_minimum(log_of(([0.0, 0.0, 0.0], [1.0, -1.0, 0.0])), Mechanism(linf)) == 2


def test_minimum_is_unknown_without_a_distance_or_an_answer() -> None:
    assert proven_minimum(log_of(([0.0], [1.0])), Mechanism(None)) is None
    assert proven_minimum(QueryLog(), Mechanism(l1)) is None
    labels_only = QueryLog()
    labels_only.add_label([1.0, 2.0], 1)
    assert proven_minimum(labels_only, Mechanism(l1)) is None


def test_minimum_skips_answers_that_are_their_own_question() -> None:
    stays, moves = ([1.0, 1.0], [1.0, 1.0]), ([3.0, 1.0], [3.0, 2.0])
    assert proven_minimum(log_of(stays, moves), Mechanism(l1)) == 2
    assert proven_minimum(log_of(stays, moves), Mechanism(l1, l2, None)) == 2  # it showed that there is no ball
    assert proven_minimum(log_of(moves), Mechanism(l1, l2, None)) == 3
    assert proven_minimum(log_of(([2.0], [2.0])), Mechanism(l1)) == 1


@pytest.mark.parametrize("strategy", ["auto", "points", "paper"])
@pytest.mark.parametrize("distance", [l1, l2, linf])
def test_errors_do_not_depend_on_how_a_model_is_scaled(strategy, distance) -> None:
    oracle = ModelOracle(PLANE, Mechanism(distance))
    found = extract(oracle, strategy=strategy, rng=0)
    for scale in (1.0, 1e-6, 1e6):
        truth = Hyperplane(PLANE.normal * scale, PLANE.offset * scale)
        rebuilt = compare(found, truth, oracle.mechanism, found.log)
        assert rebuilt.angle_error < 1e-12
        assert rebuilt.offset_error < 1e-12 * PLANE.offset


def test_offset_error_is_the_difference_at_dual_length_one() -> None:
    oracle = ModelOracle(PLANE, Mechanism(linf))
    found = extract(oracle)
    moved = compare(found, Hyperplane(PLANE.normal, PLANE.offset + 1.5), oracle.mechanism, found.log)
    assert moved.offset_error == pytest.approx(1.5 / np.abs(PLANE.normal).sum())


def test_without_a_label_the_side_that_fits_is_compared() -> None:
    oracle = ModelOracle(PLANE.flipped(), Mechanism(l1))
    for orient in (True, False):
        found = extract(oracle, orient=orient)
        rebuilt = compare(found, PLANE.flipped(), oracle.mechanism, found.log)
        assert rebuilt.angle_error < 1e-12
        assert rebuilt.offset_error < 1e-12
    oriented = extract(oracle)
    assert compare(oriented, PLANE, oracle.mechanism, oriented.log).angle_error == pytest.approx(np.pi)


def test_to_dict_is_json_and_has_the_model() -> None:
    oracle = ModelOracle(PLANE, Mechanism(l1, l2, 0.5), published=Mechanism(l1, l2, None))
    found = extract(oracle)
    entries = json.loads(json.dumps(compare(found, PLANE, oracle.mechanism, found.log).to_dict(), allow_nan=False))
    assert entries["explanations"] == entries["proven_minimum"] == 4
    assert entries["mechanism"]["radius"] is None
    assert entries["radius"] == pytest.approx(0.5)
    plane = Hyperplane(entries["hyperplane"]["normal"], entries["hyperplane"]["offset"])
    assert plane.is_equivalent(PLANE)
