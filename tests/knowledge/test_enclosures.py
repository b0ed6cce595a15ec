"""Norms of rational vectors: the bounds hold the truth, are narrow, and rest on nothing that is not checked."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

import overexplain as ox
from overexplain.knowledge.enclosures import Length, NotEnclosed, dual_spec, enclose, root
from overexplain.knowledge.evidence import Finder
from provers import exact
from strategies import make_norm


@pytest.mark.parametrize(
    "name", ["l1", "l2", "linf", "lp:1.1", "lp:1.5", "lp:3", "weighted l2", "mahalanobis", "group", "facets"]
)
def test_enclosures_hold_the_norm_and_its_dual(name: str) -> None:
    rng = np.random.default_rng(0)
    norm = make_norm(name, 4)
    specs = [(norm, norm.spec)] if name == "facets" else [(norm, norm.spec), (norm.dual, dual_spec(norm.spec))]
    for value, spec in specs:
        for _ in range(5):
            x = rng.normal(size=4) * 10.0 ** rng.integers(-9, 9)
            low, high = enclose(spec, exact(x))
            assert low <= high <= low * (1 + F(1, 10**20))
            assert float(low) == pytest.approx(value(x), rel=1e-12)


def test_roots_are_bounds_and_exact_where_they_can_be() -> None:
    assert root(F(9, 4)) == (F(3, 2), F(3, 2))
    assert root(F(0)) == (0, 0)
    for value in (F(2), F(1, 3), F(10) ** 301, F(10) ** -301):
        low, high = root(value)
        assert low**2 < value < high**2
        assert high - low < low * F(1, 2**80)
    with pytest.raises(NotEnclosed, match="positive definite"):
        root(F(-1))


@pytest.mark.parametrize("q", ["1.0000001", "1.234567", "2.5", "64.015625", "1e6", "4e15"])
def test_any_exponent_is_enclosed(q: str) -> None:
    rng = np.random.default_rng(5)
    for x in (*rng.normal(size=(4, 3)) * 10.0 ** rng.integers(-200, 200, size=(4, 1)), np.array([0.0, 3.0, 3.0])):
        low, high = enclose(f"lp:{q}", exact(x))
        assert low <= high <= low * (1 + F(1, 10**20))
        assert float(low) == pytest.approx(ox.Lp(float(q))(x), rel=1e-12)


def test_what_cannot_be_enclosed_is_refused() -> None:
    for spec in ("l7", {"norm": "magic"}, {"norm": "polyhedral", "vertices": [[1, 0], [-1, 0], [0, 1], [0, -1]]}):
        with pytest.raises(NotEnclosed):
            enclose(spec, exact([1.5, 2.5]))
    with pytest.raises(NotEnclosed, match="unknown norm"):
        dual_spec({"norm": "magic"})
    for spec in (
        {"norm": "weighted", "base": "l1", "weights": [1.0]},
        {"norm": "group", "groups": [[0]]},
        {"norm": "mahalanobis", "matrix": [[1.0]]},
        {"norm": "dual-mahalanobis", "matrix": [[1.0]]},
        {"norm": "facets", "facets": [[1.0], [-1.0]]},
    ):
        with pytest.raises(NotEnclosed):
            enclose(spec, exact([1.5, 2.5]))
    with pytest.raises(NotEnclosed, match="not positive definite"):
        enclose({"norm": "dual-mahalanobis", "matrix": [[1.0, 1.0], [1.0, 1.0]]}, exact([1.5, 2.5]))


CORNERS = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]


def test_evidence_that_does_not_hold_is_no_evidence() -> None:
    spec = {"norm": "polyhedral", "vertices": CORNERS}
    x = exact([3, 1])
    good = Length(x, ((0, F(3)), (1, F(1))), exact([1, 1]))
    assert enclose(spec, x, lambda *_: [good]) == (4, 4)
    for wrong in (
        replace(good, parts=((0, F(3)),)),
        replace(good, parts=((0, F(3)), (1, F(2)), (3, F(-1)))),
        replace(good, parts=((0, F(3)), (9, F(1)))),
        replace(good, parts=((0, F(3)), (-3, F(1)))),
        replace(good, functional=exact([1, 1.5])),
        replace(good, functional=exact([1])),
    ):
        with pytest.raises(NotEnclosed, match="none that holds"):
            enclose(spec, x, lambda *_, wrong=wrong: [wrong])
    assert enclose(spec, x, lambda *_: [replace(good, functional=exact([1, 0]))]) == (3, 4)


@pytest.mark.parametrize("p", [2, 3, 6])
def test_evidence_is_found_and_its_bounds_meet(p: int) -> None:
    rng = np.random.default_rng(p)
    norm = make_norm("polyhedral", p)
    for k in range(8):
        x = rng.normal(size=p) * 10.0 ** rng.integers(-200, 200) if k < 4 else rng.integers(-2, 3, p).astype(float)
        low, high = enclose(norm.spec, exact(x), Finder())
        assert low == high
        assert float(low) == pytest.approx(norm(x), rel=1e-9)
