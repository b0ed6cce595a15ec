"""What `predict` says beforehand is what `extract` then spends; what `watch` is told is how far it is."""

from __future__ import annotations

import numpy as np
import pytest

from overexplain.extraction.extract import extract
from overexplain.extraction.predicted import predict
from overexplain.extraction.session import Progress
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.constrained import OneHot
from overexplain.oracles.degraded import Suboptimal
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.wrappers import LabelsOnly, Published

PLANE = Hyperplane([0.3, -1.5, 2.25, 0.1, 1.0], 0.7)

EXACT = [
    Mechanism("l1"),
    Mechanism("l2"),
    Mechanism("linf"),
    Mechanism("lp:1.5"),
    Mechanism("l1", "l2", 0.1),
    Mechanism("linf", "l1", 0.2),
]


@pytest.mark.parametrize("mechanism", EXACT, ids=lambda m: m.describe())
@pytest.mark.parametrize("orient", [True, False])
def test_a_theorem_is_kept_to_the_request(mechanism, orient) -> None:
    said = predict(5, mechanism, 1e-6, orient=orient)
    assert said.proved
    assert extract(ModelOracle(PLANE, mechanism), orient=orient).spent == said.spent


@pytest.mark.parametrize(
    "published", [Mechanism("l1", "l2", None), Mechanism(None), Mechanism(None, None, None)], ids=lambda m: m.describe()
)
def test_secrets_cost_what_is_said(published) -> None:
    oracle = ModelOracle(PLANE, Mechanism("l1", "l2", 0.1) if published.radius is None else Mechanism("l1"))
    said = predict(5, published, 1e-6, confirm=True)
    assert said.proved
    assert extract(Published(oracle, published)).spent == said.spent
    assert extract(Published(oracle, published), confirm=0).spent == predict(5, published, 1e-6).spent


@pytest.mark.parametrize("p", [5, 20])
def test_labels_take_about_as_many_as_said(p) -> None:
    said = predict(p, None, 1e-6)
    plane = Hyperplane(np.random.default_rng(p).normal(size=p), 0.3)
    spent = extract(LabelsOnly(ModelOracle(plane, Mechanism("l2"))), accuracy=1e-6, bounds=10.0).spent
    assert not said.proved
    assert spent.labels == pytest.approx(said.spent.labels, rel=0.3)


def test_a_chain_takes_about_as_many_as_said() -> None:
    said = predict(5, Mechanism("l2", slack=0.3), 1e-6)
    oracle = Suboptimal(ModelOracle(PLANE, Mechanism("l2")), 0.3, rng=0)
    assert not said.proved
    assert extract(oracle, strategy="chain", accuracy=1e-6).spent.requests == pytest.approx(
        said.spent.requests, rel=0.5
    )


def test_one_hot_groups_are_predicted_slice_by_slice() -> None:
    oracle = OneHot(ModelOracle(PLANE, Mechanism("l1")), [[3, 4]], low=-5.0, high=5.0)
    said = predict(5, oracle.mechanism, 1e-6, domain=oracle.domain)
    assert said.way == "slice by slice"
    assert not said.proved
    assert extract(oracle, accuracy=1e-6, rng=0).spent.requests <= 2 * said.spent.requests


def test_what_promises_nothing_is_diagnosed() -> None:
    said = predict(5, Mechanism(None, slack=None), 1e-6)
    assert "diagnosis" in said.way
    assert not said.proved


def test_watchers_hear_before_each_request_how_far_it_is() -> None:
    heard: list[Progress] = []
    found = extract(ModelOracle(PLANE, Mechanism("l1")), watch=heard.append)
    assert [progress.spent.requests for progress in heard] == list(range(1, found.spent.requests + 1))
    assert heard[0].planned is None
    assert heard[-1].planned == found.spent.requests


def test_watchers_of_labels_see_the_proved_angle_shrink() -> None:
    heard: list[Progress] = []
    found = extract(LabelsOnly(ModelOracle(PLANE, Mechanism("l1"))), accuracy=1e-4, bounds=10.0, watch=heard.append)
    bounds = [progress.bound for progress in heard if progress.bound is not None]
    assert bounds[0] > 10 * bounds[-1]
    assert found.error_bound <= 1e-4
