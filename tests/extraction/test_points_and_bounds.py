"""Theorem D (nothing known about the distance), questions kept inside bounds, and the paper's procedures as a strategy."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox
from strategies import NORMS, SMOOTH, make_norm


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("ties", ["first", "random"])
@pytest.mark.parametrize("radius", [0.0, 0.4])
def test_unknown_distance(name: str, ties: str, radius: float) -> None:
    """p answers for plain, p + 1 for robust explanations; sides are read off parallel steps, else labels are asked."""
    rng = np.random.default_rng(3)
    for p in (1, 2, 5):
        model = ox.Hyperplane(rng.normal(size=p), rng.normal())
        terms = ox.Mechanism(make_norm(name, p, spread=1.0), robustness="l2", radius=radius)
        shown = ox.Mechanism(None) if radius == 0 else ox.Mechanism(None, robustness="l2", radius=None)
        oracle = ox.ModelOracle(model, terms, ties=ties, rng=1, published=shown)
        found = ox.extract(oracle, rng=0)
        assert found.hyperplane.is_equivalent(model, 1e-8)
        assert found.hyperplane.angle_to(model) <= found.error_bound
        assert found.spent.explanations == p + int(radius > 0)
        assert found.method.startswith("Theorem D")
        if radius:
            assert found.radius == pytest.approx(radius, rel=1e-6)
        if ties == "first":
            assert found.spent.labels == 1
        assert np.linalg.norm(found.hyperplane.normal) == pytest.approx(1.0)


def test_one_feature_on_the_plane_is_the_right_way_round() -> None:
    for normal in (3.0, -3.0):
        model = ox.Hyperplane([normal], 0.0)
        found = ox.extract(ox.ModelOracle(model, ox.Mechanism("l2")), strategy="points")
        assert found.hyperplane.is_equivalent(model)


def test_a_service_that_prefers_one_answer_is_not_identified() -> None:
    """ℓ1, a = (1,…,1), b = 10: (2,…,2) is optimal for every start in [0, 1]^5; the rank stays where it is."""

    class Fixed:
        dimension, mechanism = 5, ox.Mechanism(None)

        def explain(self, x: np.ndarray) -> np.ndarray:
            return np.full(5, 2.0)

    with pytest.raises(ox.ExtractionFailed, match="added nothing") as caught:
        ox.extract(Fixed(), bounds=(0.0, 1.0), rng=0)
    assert caught.value.unidentified.shape == (5, 5)
    assert len(caught.value.log.explained) == 21
    with pytest.raises(ox.BudgetExhausted):
        ox.extract(Fixed(), bounds=(0.0, 1.0), rng=0, budget=8)


def test_robust_answers_without_labels_in_changing_directions() -> None:
    model = ox.Hyperplane([1.0, 1.0, 1.0], 2.0)
    terms = ox.Mechanism("l1", robustness="l2", radius=0.3)
    inner = ox.ModelOracle(model, terms, ties="random", rng=0)

    class ExplainOnly:
        dimension, mechanism = 3, ox.Mechanism(None, radius=None)
        explain = staticmethod(inner.explain)

    with pytest.raises(ox.ExtractionFailed, match="gives no labels"):
        ox.extract(ExplainOnly(), rng=0)


class Fenced:
    """Refuses to be asked outside of its box."""

    def __init__(self, oracle: ox.ModelOracle, low: np.ndarray, high: np.ndarray) -> None:
        self.dimension, self.mechanism, self._oracle, self._low, self._high = (
            oracle.dimension,
            oracle.mechanism,
            oracle,
            low,
            high,
        )

    def _check(self, x: np.ndarray) -> None:
        assert (x >= self._low).all()
        assert (x <= self._high).all()

    def classify(self, x: np.ndarray) -> int:
        self._check(x)
        return self._oracle.classify(x)

    def explain(self, x: np.ndarray) -> np.ndarray:
        self._check(x)
        return self._oracle.explain(x)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("radius", [0.0, 0.2])
@pytest.mark.parametrize("box", [(-1.0, 1.0), (0.0, 1.0), (2.0, 2.5), (-np.inf, 0.5)])
def test_questions_stay_inside_the_bounds(name: str, radius: float, box: tuple[float, float]) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        model = ox.Hyperplane(rng.normal(size=4), rng.normal())
        distance = make_norm(name, 4, spread=0.5)
        oracle = ox.ModelOracle(model, ox.Mechanism(distance, robustness="l2", radius=radius))
        fenced = Fenced(oracle, np.full(4, box[0]), np.full(4, box[1]))
        assert ox.extract(fenced, bounds=box, rng=0, confirm=0).hyperplane.is_equivalent(model, 1e-7)
        found = ox.extract(fenced, bounds=box, rng=0)
        assert found.hyperplane.angle_to(model) <= min(found.error_bound, 3e-6)


def test_a_secret_radius_whose_answer_lies_outside_the_bounds() -> None:
    model = ox.Hyperplane([1.0, 2.0], 50.0)
    terms, shown = ox.Mechanism("l1", robustness="l2", radius=0.1), ox.Mechanism("l1", radius=None)
    with pytest.raises(ox.ExtractionFailed, match="outside the bounds"):
        ox.extract(ox.ModelOracle(model, terms, published=shown), bounds=(-1.0, 1.0))


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("ties", ["first", "random"])
def test_the_papers_procedures_rebuild_the_model_with_the_papers_counts(name: str, ties: str) -> None:
    rng = np.random.default_rng(11)
    for p in (1, 2, 5):
        distance = make_norm(name, p, spread=1.0)
        for normal in (rng.normal(size=p), np.ones(p) * distance.units(p)):
            model = ox.Hyperplane(normal, 0.3)
            for terms in (ox.Mechanism(distance), ox.Mechanism(distance, robustness="linf", radius=0.2)):
                oracle = ox.ModelOracle(model, terms, ties=ties, rng=0)
                found = ox.extract(oracle, strategy="paper", rng=0)
                assert found.hyperplane.is_equivalent(model, 1e-7)
                assert distance.dual(found.hyperplane.normal) == pytest.approx(1.0)
                answers = 1 if name in SMOOTH else p + 1
                assert found.spent.explanations == answers
                if not terms.is_plain:
                    assert found.spent.labels == answers


def test_the_papers_procedure_from_a_start_on_the_plane() -> None:
    model = ox.Hyperplane([0.0, 0.0, 2.0], 0.0)
    found = ox.extract(ox.ModelOracle(model, ox.Mechanism("l2")), strategy="paper")
    assert found.spent.explanations == 4  # 0, e^1, e^2 lie on the plane, e^3 does not
    assert found.hyperplane.is_equivalent(model)


@pytest.mark.parametrize(
    ("mechanism", "error", "words"),
    [
        (ox.Mechanism(None), ox.InvalidInput, "known distance and radius"),
        (ox.Mechanism("l1", radius=None), ox.InvalidInput, "known distance and radius"),
        (ox.Mechanism("l1", robustness="l2", radius=0.1), ox.ExtractionFailed, "gives none"),
    ],
)
def test_what_the_paper_does_not_treat(mechanism: ox.Mechanism, error: type[Exception], words: str) -> None:
    class ExplainOnly:
        dimension = 2
        explain = staticmethod(lambda x: x)

    service = ExplainOnly()
    service.mechanism = mechanism
    with pytest.raises(error, match=words):
        ox.extract(service, strategy="paper")
    if mechanism.distance is None:
        with pytest.raises(ox.InvalidInput, match='"cone" needs the distance'):
            ox.extract(service, strategy="cone")
