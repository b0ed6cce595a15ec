"""The audit of a model of several classes: counts against the minimum, copies against brute force, and its JSON."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from overexplain.auditing.multiclass import audit_multiclass, trained_copy
from overexplain.auditing.multiclass_report import MulticlassReport, json_schema
from overexplain.errors import DimensionMismatch, InvalidInput, UnsupportedNorm
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.mechanism import Mechanism
from overexplain.models.multiclass import MulticlassModel
from overexplain.oracles.services import Service

ROOT = Path(__file__).parents[2]


def world(classes: int = 4, p: int = 3, seed: int = 0) -> tuple[ArgmaxModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    return ArgmaxModel(rng.normal(size=(classes, p)), rng.normal(size=classes) / 2), rng.normal(size=(120, p)) * 2


@cache
def audited() -> MulticlassReport:
    secret, cases = world()
    return audit_multiclass(secret, cases, seed=1, name="cases.csv", command="overexplain audit", left_out=3)


def test_each_service_is_attacked_and_held_against_its_minimum() -> None:
    report = audited()
    assert [(s.id, s.spec, s.role) for s in report.services] == [
        ("s1", "l2", "audited"),
        ("s2", "l1", "comparison"),
        ("s3", "linf", "comparison"),
    ]
    smooth, *others = report.services
    assert (smooth.minimum, smooth.minimum_of) == (4, "any attack")
    assert 4 <= smooth.explanations <= 6
    for found in others:
        assert found.minimum == (4 - 1) * (3 + 1) - 1
        assert found.explanations >= found.minimum
        assert found.minimum_of == "boundary points alone"
    for found in report.services:
        assert found.failed is None
        assert found.requests == found.asked == found.explanations + found.labels
        assert found.error < 1e-8
        assert found.error_bound is None or found.error <= found.error_bound
        assert found.cases.rebuilt == 1.0
        assert found.box.rebuilt > 0.999
        assert found.unreached == ()
        assert found.method


def test_floors_and_trained_copies_are_what_an_independent_count_gives() -> None:
    secret, cases = world()
    report = audited()
    labels = np.array([secret.label(row) for row in cases])
    counts = [int((labels == k).sum()) for k in range(4)]
    assert report.subject.shares == tuple(count / 120 for count in counts)
    assert report.audited.cases.floor == max(counts) / 120
    assert report.audited.cases.points == 120
    assert report.audited.box.points == 2000
    # The trained copy, made again from the order of questions that the seed gives.
    rng = np.random.default_rng(1)
    rng.uniform(cases.min(axis=0), cases.max(axis=0), (max(0, report.curve.answers[-1] - 120), 3))
    questions = rng.permutation(cases)
    for count, share in list(zip(report.curve.answers, report.curve.cases, strict=True))[:5]:
        said = secret.labels(questions[:count])
        if len(set(said.tolist())) < 2:
            expected = float(np.mean(labels == said[0]))
        else:
            mean, deviation = questions[:count].mean(axis=0), questions[:count].std(axis=0)
            copy = LogisticRegression(C=1e3, max_iter=300).fit((questions[:count] - mean) / deviation, said)
            expected = float(np.mean(copy.predict((cases - mean) / deviation) == labels))
        assert share == pytest.approx(expected, abs=0.02)


def test_the_curve_has_every_attack_and_training_is_behind_equations() -> None:
    report = audited()
    curve = report.curve
    assert len(curve.answers) == len(curve.cases) == len(curve.box)
    assert list(curve.answers) == sorted(set(curve.answers))
    for found in report.services:
        at = curve.answers.index(found.asked)
        assert (curve.cases[at], curve.box[at]) == (found.cases.trained, found.box.trained)
        assert found.box.trained < found.box.rebuilt
    assert curve.answers[0] == 1
    assert curve.answers[-1] == max(found.asked for found in report.services)


def test_two_classes_take_one_explanation_and_a_class_nobody_gets_stays_unknown() -> None:
    secret, cases = world(2)
    report = audit_multiclass(secret, cases, compare=False)
    assert (report.audited.explanations, report.audited.minimum) == (1, 1)
    # Class 2 never wins: its score is below the mean of the other two.
    weights = np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, 0.25], [0.0, -2.0]])
    never = ArgmaxModel(weights, [0.0, 0.0, -1.0, 0.0])
    cases = np.random.default_rng(3).normal(size=(60, 2)) * 3
    report = audit_multiclass(never, cases, compare=False)
    assert report.audited.unreached == ("2",)
    assert report.audited.error is None
    assert report.audited.minimum == 3
    assert report.audited.cases.rebuilt == 1.0


def test_standard_deviations_and_weighted_distances() -> None:
    secret, cases = world()
    stretched = ArgmaxModel(secret.weights / [1.0, 1e4, 1e-3], secret.intercepts)
    rows = cases * [1.0, 1e4, 1e-3] + [0.0, 3e4, 1.0]
    moved = ArgmaxModel(stretched.weights, stretched.intercepts - stretched.weights @ [0.0, 3e4, 1.0])
    report = audit_multiclass(moved, rows, standardize=True, compare=False)
    assert report.subject.units == "standard deviations"
    assert 4 <= report.audited.explanations <= 6
    assert report.audited.cases.rebuilt == 1.0
    service = Service(Mechanism({"norm": "weighted", "base": "l2", "weights": [1.0, 2.0, 0.5]}))
    report = audit_multiclass(secret, cases, [service, "l2"], compare=False)
    assert [found.role for found in report.services] == ["audited", "also audited"]
    assert 4 <= report.audited.explanations <= 6
    assert report.audited.cases.rebuilt == 1.0


@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_fitted_models_by_their_names(data) -> None:
    X, y = data(return_X_y=True)
    names = data().target_names
    classifier = LogisticRegression(max_iter=5000).fit((X - X.mean(axis=0)) / X.std(axis=0), names[y])
    report = audit_multiclass(classifier, (X - X.mean(axis=0)) / X.std(axis=0), compare=False)
    assert report.subject.classes == tuple(sorted(names))
    assert report.audited.minimum == 3 <= report.audited.explanations <= 4
    assert report.audited.cases.rebuilt == 1.0


def test_an_attack_that_fails_is_said_and_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    from overexplain.auditing import multiclass
    from overexplain.errors import ExtractionFailed

    def failing(*_: object, **__: object) -> None:
        error = ExtractionFailed("the boundaries do not tie")
        error.log = (1, 2, 3)
        raise error

    monkeypatch.setattr(multiclass, "extract_multiclass", failing)
    secret, cases = world()
    found = audit_multiclass(secret, cases, compare=False).audited
    assert (found.explanations, found.labels, found.requests, found.asked) == (None, None, None, 3)
    assert found.failed == "the boundaries do not tie"
    assert found.cases.rebuilt is None
    assert 0 < found.cases.trained <= 1


def test_json_round_trip_schema_and_the_published_copy_of_it() -> None:
    report = audited()
    text = report.to_json()
    assert MulticlassReport.from_json(text) == report
    assert report.to_dict() == json.loads(text)
    jsonschema.validate(json.loads(text), json_schema())
    published = json.loads((ROOT / "docs/schemas/multiclass.schema.json").read_text(encoding="utf-8"))
    assert published == json.loads(json.dumps(json_schema()))
    undescribed = {"id", "subject", "provenance", "format", "version", "seed", "python", "overexplain"}
    for definition in json_schema()["$defs"].values():
        assert definition["description"]
        for field, entry in definition["properties"].items():
            assert "description" in entry or field in undescribed, field
    with pytest.raises(InvalidInput, match="not an audit report of a model of several classes"):
        MulticlassReport.from_json("{}")


def test_the_same_seed_gives_the_same_bytes() -> None:
    secret, cases = world()
    one, two, other = (audit_multiclass(secret, cases, compare=False, seed=seed).to_json() for seed in (4, 4, 5))
    assert one == two
    assert one != other


def test_what_cannot_be_audited_is_refused() -> None:
    secret, cases = world()
    with pytest.raises(InvalidInput, match="at least 10"):
        audit_multiclass(secret, cases[:9])
    for service in ("labels", "l1; rounded:2", "l1; robust=l2:0.1", "imitate=nice"):
        with pytest.raises(InvalidInput, match="exact explanations in a known distance"):
            audit_multiclass(secret, cases, [service])
    with pytest.raises(InvalidInput, match="at least one service"):
        audit_multiclass(secret, cases, [])
    frame = pd.DataFrame(cases[:, :2], columns=["a", "b"])
    with pytest.raises(InvalidInput, match="exactly the model's features; missing: 'c'"):
        audit_multiclass(MulticlassModel(secret, features=("a", "b", "c")), frame)
    with pytest.raises(InvalidInput, match="the model has none; give rows of numbers"):
        audit_multiclass(secret, {"a": 1.0})


def test_a_service_that_cannot_be_computed_is_refused_not_reported_as_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    secret, cases = world()
    for services in (["lp:1.5"], ["l2", Mechanism("lp:4")]):
        with pytest.raises(InvalidInput, match=r"cannot be audited: .*computed for l2, l1, linf"):
            audit_multiclass(secret, cases, services)
    with pytest.raises(DimensionMismatch, match="made for 2 features"):
        audit_multiclass(secret, cases, [Mechanism({"norm": "weighted", "base": "l2", "weights": [1.0, 2.0]})])

    def unsupported(*_: object, **__: object) -> None:
        raise UnsupportedNorm("no way")

    monkeypatch.setattr("overexplain.auditing.multiclass.extract_multiclass", unsupported)
    with pytest.raises(UnsupportedNorm, match="no way"):
        audit_multiclass(secret, cases, compare=False)


def test_a_copy_that_does_not_converge_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overexplain.auditing.multiclass.MOST_STEPS", 1)
    secret, cases = world()
    with pytest.warns(ConvergenceWarning):
        LogisticRegression(C=1e3, max_iter=1).fit(cases, secret.labels(cases))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained_copy(cases, secret.labels(cases))
    assert caught == []


def test_a_copy_trained_on_one_class_always_says_it() -> None:
    assert trained_copy(np.zeros((3, 2)), np.array([1, 1, 1]))(np.ones((2, 2))).tolist() == [1, 1]
