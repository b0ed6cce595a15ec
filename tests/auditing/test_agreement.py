"""Agreement is never told without its floor, nor a comparison with what no answer can reveal."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from overexplain.auditing.agreement import agreement
from overexplain.auditing.rebuilt import compare


def test_a_constant_copy_is_at_the_floor() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, 3))
    truth = ox.Hyperplane([1.0, 2.0, -1.0], 2.0)
    always_no = ox.Hyperplane([1.0, 0.0, 0.0], 1e6)
    same = agreement(always_no, truth, points)
    assert same.share == same.floor == pytest.approx((truth.labels(points) == -1).mean())
    assert same.points == 500
    assert agreement(truth, truth, points).share == 1.0


def test_what_no_answer_reveals_is_left_out_of_the_comparison() -> None:
    truth = ox.Hyperplane([1.0, -2.0, 0.5, 1.5, -1.0, 2.0, 3.0], 0.7)
    service = ox.OneHot(ox.ModelOracle(truth, ox.Mechanism("l1")), groups=[[2, 3, 4], [5, 6]])
    found = ox.extract(service, rng=0)
    assert found.hyperplane.angle_to(truth) > 0.1  # the means of the groups are not there
    rebuilt = compare(found, truth, service.mechanism, found.log, service.domain.sample(0, 200))
    assert rebuilt.angle_error <= min(found.error_bound, 1e-8)
    assert rebuilt.offset_error <= 1e-8
    assert rebuilt.agreement.share == 1.0
    assert len(rebuilt.to_dict()["unidentified"]) == 2


def test_labels_only_are_compared_too() -> None:
    truth = ox.Hyperplane([1.0, -2.0], 0.7)
    found = ox.extract(ox.LabelsOnly(ox.ModelOracle(truth, "l2")), rng=0)
    rebuilt = compare(found, truth, None, found.log)
    assert rebuilt.angle_error <= found.error_bound
    assert rebuilt.offset_error <= found.offset_bound
    assert rebuilt.to_dict()["service"] == "labels only"
    assert rebuilt.minimum is None
    assert rebuilt.agreement is None


def test_cases_on_the_plane_do_not_count_against_a_copy() -> None:
    """A copy that is off by rounding decides them the other way; neither answer is wrong."""
    truth = ox.Hyperplane([1.0, -1.5, 0.5], 0.4)
    copy = ox.Hyperplane([1.0, -1.5, 0.5], 0.4 + 1e-15)
    points = np.array([[0.4, 0.0, 0.0], [1.9, 1.0, 0.0], [0.0, 0.0, 0.8], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    assert (copy.labels(points) != truth.labels(points)).any()
    assert agreement(copy, truth, points).share == 1.0
    assert agreement(truth.flipped(), truth, points).share == pytest.approx(3 / 5)


def test_a_model_with_cases_on_its_plane_is_rebuilt() -> None:
    rng = np.random.default_rng(0)
    cases = np.round(rng.normal(size=(60, 3)), 1)
    model = ox.Hyperplane([1.0, -1.5, 0.5], 0.4)
    assert (np.abs(model.margin(cases)) < 1e-12).any()
    report = ox.audit(model, cases, compare=False, defences=False, maps=0, orders=2)
    assert report.known[0].explanations == 3
