"""Where numbers get large, small, many or few: the theorems must still hold."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import overexplain as ox
from overexplain.extraction.precision import visible_grid
from strategies import NORMS, SMOOTH, make_norm


def errors(found: ox.Extraction, model: ox.Hyperplane, distance: ox.Norm) -> tuple[float, float]:
    scale = distance.dual(np.ldexp(model.normal, -model._exponent))
    normal = np.ldexp(model.normal, -model._exponent) / scale
    offset = math.ldexp(model.offset, -model._exponent) / scale
    return distance.dual(found.hyperplane.normal - normal), abs(found.hyperplane.offset - offset) / max(
        abs(offset), 1e-300
    )


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("exponent", [-150, 150])
def test_any_size_of_the_normal(name: str, exponent: int) -> None:
    distance = make_norm(name, 5)
    model = ox.Hyperplane(np.array([1.0, -2.0, 0.5, 3.0, 1.5]) * 10.0**exponent, 0.7 * 10.0**exponent)
    found = ox.extract(ox.ModelOracle(model, ox.Mechanism(distance)))
    assert max(errors(found, model, distance)) < 1e-12


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "lp:1.1", "group", "weighted linf"])
@pytest.mark.parametrize("ratio", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("secret", [False, True])
def test_any_radius_relative_to_the_distance(name: str, ratio: float, secret: bool) -> None:
    """The normal to full precision; b as well as rounding allows: to about 1e-15 of the largest number seen."""
    distance = make_norm(name, 4)
    model = ox.Hyperplane([1.0, -2.0, 0.5, 3.0], 2.0)
    far = 2.0 / distance.dual(model.normal)
    terms = ox.Mechanism(distance, robustness="l2", radius=ratio * far)
    shown = ox.Mechanism(distance, robustness="l2", radius=None) if secret else terms
    found = ox.extract(ox.ModelOracle(model, terms, published=shown))
    length = distance.dual(model.normal)
    largest = max(distance(found.log.points).max(), distance(found.log.explanations[found.log.explained]).max())
    assert distance.dual(found.hyperplane.normal - model.normal / length) < 1e-12
    assert abs(found.hyperplane.offset - far) < 1e-11 * largest
    assert abs(found.hyperplane.offset - far) <= found.offset_bound
    if secret:
        assert abs(found.radius - ratio * far) <= found.radius_bound
        assert found.radius == pytest.approx(ratio * far, rel=1e-9, abs=1e-12 * largest)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize(
    ("normal", "offset"),
    [
        ([1.0, 2.0, -1.0], 0.0),  # b = 0: the default start lies on the plane
        ([1.0, 2.0, -1.0], 1.0),  # e_1 lies on the plane
        ([1.0, 1.0, 1.0], 1.0),  # every e_i lies on the plane
        ([0.0, 0.0, 3.0], 1.0),
        ([0.0, 0.0, 3.0], 0.0),
        ([1.0, -1.0, 1.0], 0.5),
        ([1.0, 1e-8, 0.0], 1e-3),
        ([1e-6, 1.0, 1e6], -4.0),
        ([1.0, 1.0 + 1e-9, 1.0], 1.0),  # a tie but for 1e-9
    ],
)
@pytest.mark.parametrize("ties", ["first", "random"])
def test_special_planes(name: str, normal: list[float], offset: float, ties: str) -> None:
    distance, model = make_norm(name, 3), ox.Hyperplane(normal, offset)
    found = ox.extract(ox.ModelOracle(model, ox.Mechanism(distance), ties=ties, rng=1), rng=1)
    length = distance.dual(model.normal)
    assert distance.dual(found.hyperplane.normal - model.normal / length) < 1e-9
    assert abs(found.hyperplane.offset - offset / length) < 1e-9 * max(1.0, distance(found.log.points).max())
    assert found.hyperplane.angle_to(model) < 1.5
    assert found.spent.explanations <= (2 if name in SMOOTH else 3)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("offset", [0.0, 3.0, -3.0])
def test_one_feature(name: str, offset: float) -> None:
    for normal in (2.0, -2.0):
        model = ox.Hyperplane([normal], offset)
        found = ox.extract(ox.ModelOracle(model, ox.Mechanism(make_norm(name, 1))))
        assert found.hyperplane.is_equivalent(model, 1e-12)
        # A start that is answered by itself lies on the plane if the labels on both its sides differ.
        assert found.spent == ox.Spent(explanations=1, labels=1 if offset else 2)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "lp:1.1"])
def test_five_thousand_features(name: str) -> None:
    rng = np.random.default_rng(0)
    model = ox.Hyperplane(rng.normal(size=5000), 3.0)
    distance = ox.norm(name)
    found = ox.extract(ox.ModelOracle(model, ox.Mechanism(distance)), record=False)
    assert found.spent.explanations == (1 if name in SMOOTH else 5000)
    assert max(errors(found, model, distance)) < 1e-9


def test_memory_without_a_record_is_linear_in_the_features() -> None:
    p = 1500
    model = ox.Hyperplane(np.random.default_rng(0).normal(size=p), 3.0)
    oracle = ox.ModelOracle(model, ox.Mechanism("linf"))
    tracemalloc.start()
    try:
        ox.extract(oracle, record=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 8 * p  # a p × p matrix would be 8·p² = 18 MB


@pytest.mark.parametrize("base", ["l1", "linf", "l2", "lp:1.1", "group"])
def test_weights_spread_over_six_orders(base: str) -> None:
    rng = np.random.default_rng(2)
    weights = 10.0 ** np.linspace(-3, 3, 12)
    distance = ox.Weighted(make_norm(base, 12), rng.permutation(weights))
    for normal in (rng.normal(size=12), rng.normal(size=12) * distance.units(12)):
        model = ox.Hyperplane(normal, 1.3)
        found = ox.extract(ox.ModelOracle(model, ox.Mechanism(distance)))
        assert max(errors(found, model, distance)) < 1e-12


def test_q_so_near_one_that_float64_loses_entries_is_asked_for_them() -> None:
    """ℓ1.01 answers move feature i by |a_i|^100, which underflows below 6e-4: those coordinates cost a question each."""
    model = ox.Hyperplane([1.0, 0.5, 1e-5, -1e-6], 1.0)
    found = ox.extract(ox.ModelOracle(model, ox.Mechanism("lp:1.01")))
    assert 1 < found.spent.explanations <= 4
    assert found.hyperplane.is_equivalent(model, 1e-9)


def test_ties_that_reveal_more_stop_early() -> None:
    tied = ox.Hyperplane([1.0, -1.0, 1.0, 0.3], 2.0)
    found = ox.extract(ox.ModelOracle(tied, ox.Mechanism("l1"), ties="random", rng=0))
    assert found.spent.explanations == 2  # three of four coordinates were moved, hence known
    zeros = ox.Hyperplane([1.0, 0.0, 0.0, -0.5], 2.0)
    assert ox.extract(ox.ModelOracle(zeros, ox.Mechanism("linf"))).spent.explanations == 2


def test_rounded_answers_under_a_smooth_norm_show_in_the_bound() -> None:
    model = ox.Hyperplane([1.0, -2.0, 0.7, 0.3], 5.0)
    inner = ox.ModelOracle(model, ox.Mechanism("l2"))

    class Rounded:
        dimension, mechanism = 4, ox.Mechanism("l2")

        def explain(self, x: np.ndarray) -> np.ndarray:
            return np.round(inner.explain(x), 3)

    found = ox.extract(Rounded())
    assert "3 decimals" in found.assumptions[0]
    assert any("not accurate enough" in note for note in found.assumptions)
    assert not found.oriented
    # Asked again from so far away that decimals do not matter.
    off = min(plane.angle_to(model) for plane in (found.hyperplane, found.hyperplane.flipped()))
    assert off <= found.error_bound <= 2e-6


@pytest.mark.parametrize("name", ["l1", "linf", "group"])
@pytest.mark.parametrize("decimals", [2, 4, 6])
def test_rounding_that_shows_only_in_all_answers_together(name: str, decimals: int) -> None:
    """ℓ1 answers move one entry at a time: no single one of them shows a grid."""
    rng = np.random.default_rng(decimals)
    for _ in range(5):
        model = ox.Hyperplane(rng.normal(size=6), 3.1)
        inner = ox.ModelOracle(model, ox.Mechanism(make_norm(name, 6)))

        class Rounded:
            dimension, mechanism = 6, inner.mechanism

            def explain(self, x: np.ndarray, inner: ox.ModelOracle = inner) -> np.ndarray:
                return np.round(inner.explain(x), decimals)

        found = ox.extract(Rounded())
        assert any("grid" in note for note in found.assumptions)
        angle = min(found.hyperplane.angle_to(model), found.hyperplane.flipped().angle_to(model))
        assert found.error_bound is None or angle <= found.error_bound


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ([0.123, 4.567, -0.891], "3 decimals"),
        ([0.1, 0.2, 0.7, 0.0], "1 decimal"),
        (np.float32([0.1, 0.7, 1.3]).astype(float), "float32"),
        ([0.5, 0.25, 3.0, -8.0], None),  # short binary fractions are what exact answers look like
        ([0.3, 0.0, 1.5], None),  # a single decimal number is chance
        ([0.1234567891234, 0.7, 0.3], None),
        ([123456789.12345678, 523456789.7654321, 323456789.1111111], None),  # float64 itself is no finer here
        ([math.pi, math.e, math.sqrt(2)], None),
    ],
)
def test_visible_grid(answer: list[float], name: str | None) -> None:
    assert visible_grid(np.array(answer))[1] == name


def test_declared_tolerance_enters_the_bounds() -> None:
    model = ox.Hyperplane([1.0, -2.0, 0.7], 5.0)
    rng = np.random.default_rng(0)
    for name in ("l2", "l1", "linf"):
        inner = ox.ModelOracle(model, ox.Mechanism(name))

        class Jittery:
            dimension, mechanism = 3, ox.Mechanism(name, tolerance=1e-4)

            def explain(self, x: np.ndarray, inner: ox.ModelOracle = inner) -> np.ndarray:
                return inner.explain(x) + rng.uniform(-1, 1, 3) * 1e-4 / 3

        for strategy, largest in (("cone", 0.05), ("auto", 1e-5)):  # auto asks from farther away
            found = ox.extract(Jittery(), strategy=strategy, rng=0)
            angle = min(found.hyperplane.angle_to(model), found.hyperplane.flipped().angle_to(model))
            assert largest / 1e7 < angle <= found.error_bound < largest
