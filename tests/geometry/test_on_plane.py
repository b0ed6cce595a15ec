"""Which answers must lie on the plane: as the theory says, exactly, and never one that does not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from overexplain.geometry.on_plane import on_plane
from overexplain.oracles.constrained import Boxed, Immutable, Monotone, OneHot, Sparse
from overexplain.oracles.degraded import Rounded

MIXED = ox.Domain(3, integers=[2])
"""Two continuous features and a whole number."""


def exact(distance: object, **others: object) -> ox.Mechanism:
    return ox.Mechanism(distance, tolerance=0.0, domain=MIXED, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["l1", "l2", "lp:3", "linf", None])
def test_who_moved_decides(name: str | None) -> None:
    steps = {
        (0.0, 0.0, 0.0): False,
        (0.5, 0.0, 0.0): True,
        (0.5, -2.0, 0.0): True,
        (0.0, 0.0, 1.0): False,
        (2.5, 0.0, 1.0): name is not None,
        (2.5, 0.5, -1.0): name is not None,
        (0.5, 0.0, 1.0): name not in ("linf", None),
        (1.0, 0.0, 1.0): name not in ("linf", None),  # a tie: the whole number moved as far
    }
    x = np.array([0.25, -3.0, 7.0])
    answers = x + np.array(list(steps))
    terms = exact(name)
    assert on_plane(terms, x, answers).tolist() == list(steps.values())
    assert [on_plane(terms, x, answer) for answer in answers] == list(steps.values())


def test_only_plain_optima_lie_on_the_plane() -> None:
    x, answer = np.zeros(3), np.array([0.5, 0.0, 0.0])
    for odd in (
        exact("l1", slack=0.1),
        exact("l1", slack=None),
        exact("l1", radius=None),
        exact("l1", robustness="l2", radius=0.1),
    ):
        assert not on_plane(odd, x, answer)
    # Those of R^p all do, the question itself included.
    assert on_plane(ox.Mechanism("l1"), x, x)
    assert on_plane(ox.Mechanism(None), x, answer)
    assert not on_plane(ox.Mechanism("l1", slack=0.5), x, answer)


def test_other_norms_need_a_step_of_continuous_features_alone() -> None:
    for norm in (ox.Mahalanobis(np.diag([1.0, 2.0, 3.0])), ox.GroupNorm([[0, 1], [2]])):
        assert on_plane(exact(norm), np.zeros((2, 3)), [[0.5, 0.0, 0.0], [2.5, 0.0, 1.0]]).tolist() == [True, False]


def test_linf_is_decided_exactly() -> None:
    """3·0.1 is above 0.3 as the floats are, and equal to it in float64's product of neither."""
    terms = exact(ox.Weighted(ox.linf, [0.1, 1.0, 0.3]))
    assert Fraction(0.1) * 3 != Fraction(0.3)
    assert on_plane(terms, np.zeros(3), [3.0, 0.0, 1.0]) == (Fraction(0.1) * 3 > Fraction(0.3))
    tie = exact(ox.Weighted(ox.linf, [0.25, 1.0, 0.5]))
    assert not on_plane(tie, np.zeros(3), [2.0, 0.0, 1.0])
    assert on_plane(tie, np.zeros(3), [np.nextafter(2.0, 3.0), 0.0, 1.0])
    assert not on_plane(tie, np.zeros(3), [np.nextafter(2.0, 1.0), 0.0, 1.0])
    # The difference of two floats is not rounded either: 1 + 2⁻⁶⁰ is more than 1.
    assert on_plane(exact("linf"), [-(2.0**-60), 0.0, 0.0], [1.0, 0.0, 1.0])
    # Weights of weights multiply; sizes that overflow or vanish in float64 are compared all the same.
    nested = exact(ox.Weighted(ox.Weighted(ox.linf, [2.0, 1.0, 1.0]), [1.0, 1.0, 3.0]))
    assert on_plane(nested, np.zeros(3), [[1.6, 0.0, 1.0], [1.4, 0.0, 1.0]]).tolist() == [True, False]
    huge = exact(ox.Weighted(ox.linf, [1e300, 1.0, 1e300]))
    assert on_plane(huge, np.zeros(3), [[1e300, 0.0, 1e299], [1e299, 0.0, 1e300]]).tolist() == [True, False]
    tiny = exact(ox.Weighted(ox.l1, [1e-300, 1.0, 1.0]))
    assert on_plane(tiny, np.zeros(3), [1e-300, 0.0, 1.0])


def test_a_move_that_rounding_can_have_made_counts_for_nothing() -> None:
    """A category changed and a continuous feature was rounded: the optimum is where the category put it."""
    x, answer = np.array([0.34, 0.0, 0.0]), np.array([0.3, 0.0, 1.0])
    rounded = ox.Mechanism("l1", tolerance=0.15, domain=MIXED)
    assert on_plane(exact("l1"), x, answer)
    assert not on_plane(rounded, x, answer)
    assert on_plane(rounded, x, [0.8, 0.0, 1.0])
    assert on_plane(rounded, x, [0.3, 0.0, 0.0])  # without the category even x itself would lie on the plane
    float64 = ox.Mechanism("l1", domain=MIXED)
    assert not on_plane(float64, x, [np.nextafter(0.34, 1.0), 0.0, 1.0])
    assert on_plane(float64, x, [0.34 + 1e-9, 0.0, 1.0])
    # Under linf the tolerance may also have made a tie of what was none.
    assert not on_plane(ox.Mechanism("linf", tolerance=0.15, domain=MIXED), np.zeros(3), [1.1, 0.0, 1.0])
    assert on_plane(ox.Mechanism("linf", tolerance=0.15, domain=MIXED), np.zeros(3), [1.2, 0.0, 1.0])


def test_optima_that_are_said_to_lie_on_the_plane_do() -> None:
    """And some of those that are not said to do not: categories and whole numbers took them across."""
    rng = np.random.default_rng(5)
    said = off = 0
    for k in range(60):
        plane = ox.Hyperplane(rng.integers(-3, 4, 5) + 0.25 * rng.normal(size=5), float(rng.normal()))
        weights = rng.integers(1, 4, 5).astype(float)
        norm = ox.norm(("l1", "linf")[k % 2])
        model = ox.ModelOracle(plane, ox.Mechanism(norm if k % 4 < 2 else ox.Weighted(norm, weights)))
        service = OneHot(model, [[2, 3]], [1], [-2, -2, 0, 0, -2], [2, 2, 1, 1, 2])
        service = service if k % 3 else Rounded(service, 1)
        asked = service.domain.sample(rng, 20)  # type: ignore[union-attr]
        answers = service.explain(asked)
        told = ~np.isnan(answers).all(axis=1)
        asked, answers = asked[told], answers[told]
        found = on_plane(service.mechanism, asked, answers)
        room = (service.mechanism.tolerance or 0.0) * float(model.mechanism.distance.dual(plane.normal))  # type: ignore[union-attr]
        away = np.abs(plane.margin(answers)) > room + 1e-9
        assert not (found & away).any()
        said, off = said + int(found.sum()), off + int((~found & away).sum())
    assert said > 100
    assert off > 100


def test_services_with_continuous_features_alone_answer_on_the_plane() -> None:
    model = ox.ModelOracle(ox.Hyperplane([1.0, -2.0, 0.5], 0.3), "linf")
    rows = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    for service in (
        Boxed(model, -2, 2),
        Immutable(model, [0]),
        Monotone(model, [1]),
        Sparse(model, 2),
        Immutable(Boxed(model, -2, 2), [1]),
    ):
        answers = service.explain(rows)
        told = ~np.isnan(answers).all(axis=1)
        assert told.any()
        assert on_plane(service.mechanism, rows[told], answers[told]).all()
        assert model.hyperplane.margin(answers[told]) == pytest.approx(0.0, abs=1e-12)
