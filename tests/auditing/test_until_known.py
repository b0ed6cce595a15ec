"""Counts are the theorems', what is carried out is measured, and the floor is what a constant answer gets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from overexplain.auditing.audit_report import UntilKnown
from overexplain.auditing.units import around
from overexplain.auditing.until_known import cone_dimension, until_known
from overexplain.extraction.extract import extract
from overexplain.extraction.labels.floors import information_bound
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Weighted, l1, l2, linf, norm
from overexplain.models.linear import LinearModel
from overexplain.oracles.imitations import IMITATIONS
from overexplain.oracles.services import Service

P = 6
GROUPS = ((0, 1, 2), (3, 4), (5,))
MODEL = LinearModel(Hyperplane([0.7, -3.1, 0.02, 1.3, -0.4, 2.2], 1.9))
ROWS = np.random.default_rng(5).normal(size=(200, P))
MATRIX = np.diag([1.0, 4.0, 9.0, 1.0, 0.25, 2.0]) + 0.1


def one(
    service: Mechanism | Service | str, model: LinearModel = MODEL, rows=ROWS, seed: int = 0, **options
) -> UntilKnown:
    if not isinstance(service, Service):
        service = Service(service) if isinstance(service, Mechanism) else Service.parse(service)
    return until_known(model, rows[:, : model.dimension], service, "s1", rng=np.random.default_rng(seed), **options)


@pytest.mark.parametrize(
    ("distance", "count"),
    [
        (l2, 1),
        (norm("lp:1.5"), 1),
        (norm("lp:4"), 1),
        (Mahalanobis(MATRIX), 1),
        (l1, P),
        (linf, P),
        (Weighted(l1, [1.0, 10.0, 0.1, 3.0, 1.0, 2.0]), P),
        (Weighted(linf, [1.0, 10.0, 0.1, 3.0, 1.0, 2.0]), P),
        (GroupNorm(GROUPS), P - 3 + 1),  # the answer moves the group with the longest part of the normal: the first
    ],
)
def test_counts_are_the_theorems_computed_and_carried_out(distance, count) -> None:
    plain, robust = one(Mechanism(distance)), one(Mechanism(distance, l2, 0.3))
    secret = one(Service(Mechanism(distance, l2, 0.3), published=Mechanism(distance, l2, None)))
    expected = [count, count, count + 1]
    assert [row.computed for row in (plain, robust, secret)] == expected
    assert [row.explanations for row in (plain, robust, secret)] == expected
    assert [row.minimum for row in (plain, robust, secret)] == expected
    assert {row.minimum_is for row in (plain, robust, secret)} == {"theorem"}
    assert [row.labels for row in (plain, robust, secret)] == [1, 1, 1]
    paper = 1 if distance.is_smooth else P + 1
    assert (plain.paper_explanations, plain.paper_labels) == (paper, 1)
    assert (robust.paper_explanations, robust.paper_labels) == (paper, paper)
    assert (secret.paper_explanations, secret.paper_labels) == (None, None)
    for row in (plain, robust, secret):
        assert row.agreement == 1.0
        assert row.angle_error <= min(1e-9, row.error_bound)
        assert row.failed is None
        assert (row.low, row.high) == (row.requests, row.requests)


def test_a_tied_answer_lowers_what_is_computed_and_the_minimum_too() -> None:
    model = LinearModel(Hyperplane([1.0, 0.0, 0.0, 0.0, 2.0, -1.0], 1.0))
    row = one(Mechanism(linf), model)  # a feature without weight does not move, and so is known to have none
    assert (row.computed, row.explanations, row.minimum) == (3, 3, 3)


def test_decisions_alone_come_near_the_prediction_and_are_held_against_the_information_bound() -> None:
    row = one("labels")
    assert (row.explanations, row.minimum_is) == (0, "information bound")
    assert row.minimum == int(np.ceil(information_bound(P, 1e-6)))
    assert row.minimum < row.labels < 1.5 * row.minimum
    assert 0.85 < row.labels / row.computed < 1.15
    assert row.low <= row.requests <= row.high
    assert row.paper_labels > row.labels  # Lowd and Meek
    assert row.angle_error <= row.error_bound <= 1e-6


def test_a_service_that_publishes_no_distance_has_no_known_minimum() -> None:
    row = one(Service(Mechanism(l1), published=Mechanism(None)))
    assert (row.computed, row.explanations, row.minimum, row.paper_explanations) == (None, P, None, None)


@pytest.mark.parametrize(
    "degrade", ["rounded:1", "noisy:0.1", "suboptimal:0.2", "random-radius:0.3", "nearest-row", "one-sided"]
)
def test_degraded_services_are_known_only_once_the_angle_is_proved(degrade) -> None:
    row = one(f"l1; {degrade}")
    assert row.failed is None
    assert (row.computed, row.minimum) == (None, None)
    assert row.angle_error <= row.error_bound <= 1e-6


@pytest.mark.parametrize("name", sorted(IMITATIONS))
def test_imitations_end_with_a_proof_or_say_why_not(name) -> None:
    row = one(f"imitate={name}", runs=1)
    assert (row.failed is None) == (row.requests is not None)
    if row.failed is None:
        assert row.angle_error <= row.error_bound <= 1e-6


def test_constant_floor_is_the_share_of_the_more_common_label() -> None:
    labels = Counter(MODEL.hyperplane.label(x) for x in ROWS)
    assert len(labels) == 2
    assert one(Mechanism(l2)).constant_agreement == float(Fraction(max(labels.values()), len(ROWS)))


def test_agreement_is_the_share_of_rows_labelled_alike(monkeypatch) -> None:
    wrong = Hyperplane(MODEL.hyperplane.normal, MODEL.hyperplane.offset + 1.0)

    def off_by_one(*args, **kwargs):
        return replace(extract(*args, **kwargs), hyperplane=wrong)

    monkeypatch.setattr("overexplain.auditing.until_known.extract", off_by_one)
    alike = sum(wrong.label(x) == MODEL.hyperplane.label(x) for x in ROWS)
    assert 0 < alike < 0.99 * len(ROWS)
    row = one(Mechanism(l2))  # such a copy is not the model
    assert (row.answers, row.agreement) == (None, None)
    assert f"only {alike / len(ROWS):.0%} of the cases" in row.failed
    monkeypatch.setattr("overexplain.auditing.until_known.SAME", 0.0)
    assert one(Mechanism(l2)).agreement == alike / len(ROWS)


def test_what_fails_says_why(monkeypatch) -> None:
    def never(*args, **kwargs):
        from overexplain.errors import ExtractionFailed

        raise ExtractionFailed("nobody answers")

    monkeypatch.setattr("overexplain.auditing.until_known.extract", never)
    row = one("l1")
    assert (row.failed, row.requests, row.agreement, row.minimum) == ("nobody answers", None, None, None)


def test_a_seed_repeats_everything() -> None:
    assert one("labels", seed=3) == one("labels", seed=3)


def test_the_cone_of_the_model_itself_is_what_the_first_answer_shows() -> None:
    rng = np.random.default_rng(1)
    for distance in (l1, linf, GroupNorm(GROUPS), norm("lp:3")):
        plane = Hyperplane(rng.normal(size=P), 0.3)
        assert cone_dimension(Mechanism(distance), plane) == one(Mechanism(distance), LinearModel(plane)).minimum


def test_the_box_of_made_up_cases_has_a_width_everywhere() -> None:
    rows = np.column_stack([np.zeros(20), np.full(20, 5.0), np.linspace(-1, 1, 20)])
    low, high = around(rows)
    assert (high > low).all()
    assert (low < rows.min(axis=0)).all()
    assert (high > rows.max(axis=0)).all()


def test_the_cheapest_way_counts_not_the_first_that_works() -> None:
    rows = np.random.default_rng(3).normal(size=(200, 3))
    model = LinearModel(Hyperplane([1.0, -2.0, 0.5], 0.3))
    labels = one("labels", model, rows).requests
    for spec in ("imitate=nice", "l1; nearest-row", "l1; flaky:1"):
        assert one(spec, model, rows).requests <= 1.15 * labels


def test_a_smooth_distance_needs_one_answer_however_close_to_a_corner() -> None:
    for name in ("lp:1.0001", "lp:1.02", "lp:1.1"):
        assert one(Mechanism(name)).minimum == 1


def test_features_of_very_different_size_are_not_called_known() -> None:
    scale = np.array([1e-9, 1.0, 1e9, 1.0, 1.0, 1e5])
    model = LinearModel(Hyperplane(MODEL.hyperplane.normal / scale, MODEL.hyperplane.offset))
    row = one(Mechanism(linf), model, ROWS * scale)
    if row.failed is None:
        assert row.agreement >= 0.99
    else:
        assert "--standardize" in row.failed
    assert 0.5 <= row.constant_agreement <= 1.0
