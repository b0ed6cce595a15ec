"""The survey's counts are the theorems', its agreement is measured, its floor is what a constant answer gets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from overexplain.auditing.survey import Service, SurveyRow, survey
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Mahalanobis, Weighted, l1, l2, linf, norm
from overexplain.models.linear import LinearModel

P = 6
GROUPS = ((0, 1, 2), (3, 4), (5,))
MODEL = LinearModel(Hyperplane([0.7, -3.1, 0.02, 1.3, -0.4, 2.2], 1.9))
HOLDOUT = np.random.default_rng(5).normal(size=(200, P))
MATRIX = np.diag([1.0, 4.0, 9.0, 1.0, 0.25, 2.0]) + 0.1


def one(mechanism: Mechanism | Service, model: LinearModel = MODEL) -> SurveyRow:
    return survey(model, HOLDOUT[:, : model.dimension], [mechanism], rng=0)[0]


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
def test_counts_are_the_theorems(distance, count) -> None:
    plain, robust = one(Mechanism(distance)), one(Mechanism(distance, l2, 0.3))
    secret = one(Service(Mechanism(distance, l2, 0.3), published=Mechanism(distance, l2, None)))
    assert [row.answers for row in (plain, robust, secret)] == [count, count, count + 1]
    assert [row.minimum for row in (plain, robust, secret)] == [count, count, count + 1]
    assert [row.labels for row in (plain, robust, secret)] == [1, 1, 1]
    paper = 1 if distance.is_smooth else P + 1
    assert (plain.paper_answers, plain.paper_labels) == (paper, 1)
    assert (robust.paper_answers, robust.paper_labels) == (paper, paper)
    assert (secret.paper_answers, secret.paper_labels) == (None, None)
    for row in (plain, robust, secret):
        assert row.agreement == 1.0
        assert row.angle_error <= min(1e-9, row.error_bound)


def test_a_tied_answer_lowers_the_minimum_too() -> None:
    model = LinearModel(Hyperplane([1.0, 0.0, 0.0, 0.0, 2.0, -1.0], 1.0))
    row = one(Mechanism(linf), model)  # a feature without weight does not move, and so is known to have none
    assert (row.answers, row.minimum) == (3, 3)


def test_a_service_that_publishes_no_distance_has_no_known_minimum() -> None:
    row = one(Service(Mechanism(l1), published=Mechanism(None)))
    assert (row.answers, row.minimum, row.paper_answers) == (P, None, None)
    assert row.service == "unknown distance"


def test_constant_floor_is_the_share_of_the_more_common_label() -> None:
    labels = Counter(MODEL.hyperplane.label(x) for x in HOLDOUT)
    assert len(labels) == 2
    share = Fraction(max(labels.values()), len(HOLDOUT))
    assert one(Mechanism(l2)).constant_agreement == float(share)
    far = survey(MODEL, HOLDOUT + 1000 * MODEL.hyperplane.normal, [Mechanism(l2)], rng=0)[0]
    assert far.constant_agreement == 1.0


def test_agreement_is_the_share_of_rows_labelled_alike(monkeypatch) -> None:
    wrong = Hyperplane(MODEL.hyperplane.normal, MODEL.hyperplane.offset + 1.0)

    def off_by_one(*args, **kwargs):
        return replace(extract(*args, **kwargs), hyperplane=wrong)

    monkeypatch.setattr("overexplain.auditing.survey.extract", off_by_one)
    alike = sum(wrong.label(x) == MODEL.hyperplane.label(x) for x in HOLDOUT)
    assert 0 < alike < len(HOLDOUT)
    assert one(Mechanism(l2)).agreement == alike / len(HOLDOUT)


def test_one_service_does_not_disturb_another_and_a_seed_repeats_everything() -> None:
    mechanisms = [Mechanism(l1), Mechanism(linf, l1, 0.5), Mechanism(norm("lp:1.5"))]
    first, again = (survey(MODEL, HOLDOUT, mechanisms, rng=3) for _ in range(2))
    assert first == again
    assert survey(MODEL, HOLDOUT, mechanisms[:1], rng=3) == first[:1]


def test_rows_are_json_and_carry_what_they_were_measured_under() -> None:
    row = one(Service(Mechanism(Weighted(l1, np.arange(1.0, 7.0)), l2, 0.25), name="our service"))
    entries = json.loads(json.dumps(row.to_dict(), allow_nan=False))
    assert entries["name"] == "our service"
    assert entries["service"] == row.mechanism.describe()
    assert Mechanism.from_dict(entries["mechanism"]) == row.mechanism
    assert entries["answers"] == entries["proven_minimum"] == P


def test_progress_is_told_after_every_service() -> None:
    seen = []
    survey(MODEL, HOLDOUT, [Mechanism(l2)] * 3, rng=0, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_holdout_must_have_rows_and_the_models_columns() -> None:
    with pytest.raises(InvalidInput, match="holdout has no rows"):
        survey(MODEL, np.zeros((0, P)), [Mechanism(l2)], rng=0)
    with pytest.raises(DimensionMismatch, match="holdout"):
        survey(MODEL, HOLDOUT[:, :2], [Mechanism(l2)], rng=0)
