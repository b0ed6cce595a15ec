"""p + 1 counterfactuals rebuild a quadratic model; p never do; what is no quadratic surface is caught for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from overexplain.errors import (
    BrokenPromise,
    BudgetExhausted,
    EndpointFailed,
    ExtractionFailed,
    InvalidInput,
    NoExplanation,
)
from overexplain.extraction.quadratic import extract_quadratic
from overexplain.extraction.result import Spent
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Lp, Mahalanobis, Weighted, l2
from overexplain.geometry.quadratic import QuadraticModel
from overexplain.oracles.degraded import Rounded
from overexplain.oracles.quadratic import QuadraticOracle


def rotated(rng: np.random.Generator, values: list[float]) -> np.ndarray:
    axes = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    return axes * values @ axes.T


def shape(name: str, p: int, rng: np.random.Generator) -> QuadraticModel:
    """One surface of each kind, in general position; q = 0 passes within a few units of 0."""
    spread = np.linspace(0.5, 2.0, p)
    centre = rng.normal(size=p)
    if name == "ellipsoid":
        matrix = rotated(rng, list(-spread))
    elif name == "hyperboloid":
        matrix = rotated(rng, [*spread[:-1], -1.5])
    elif name == "cylinder":
        matrix = rotated(rng, [*spread[:-1], 0.0])
    elif name == "paraboloid":
        axes = np.linalg.qr(rng.normal(size=(p, p)))[0]
        return QuadraticModel(axes * [*spread[:-1], 0.0] @ axes.T, axes[:, -1] + 0.3 * axes[:, 0], -1.0)
    else:
        one, other = rng.normal(size=(2, p))
        return QuadraticModel(np.outer(one, other), one - 0.7 * other, -0.7)
    level = -1.0 if name != "ellipsoid" else 1.0
    return QuadraticModel(matrix, -2 * matrix @ centre, float(centre @ matrix @ centre) + level)


@pytest.mark.parametrize(
    ("name", "p"),
    [(name, p) for name in ("ellipsoid", "hyperboloid", "paraboloid") for p in (2, 3, 5, 10)]
    + [("cylinder", 3), ("cylinder", 6)],
)
def test_p_plus_one_answers_and_one_label_are_enough(name: str, p: int) -> None:
    for seed in range(3):
        model = shape(name, p, np.random.default_rng([p, seed]))
        found = extract_quadratic(QuadraticOracle(model), rng=seed)
        assert found.spent == Spent(p + 1, 1)
        assert found.model.is_equivalent(model, 1e-8)
        assert found.exact
        assert found.oriented
        assert found.residual < 1e-12
        assert len(found.log) == p + 2


def test_p_answers_are_never_enough() -> None:
    """docs/quadratic.md: with g the hyperplane through p answers to questions that are No, q − t·g² gives the same p answers."""
    rng = np.random.default_rng(0)
    for p in (2, 3, 6):
        model = shape("hyperboloid", p, rng)
        oracle = QuadraticOracle(model)
        X = rng.normal(size=(400, p)) * 2
        X = X[model.labels(X) == -1][:p]
        Z = oracle.explain(X)
        normal = np.linalg.solve(Z, np.ones(p))  # normal·z = 1 for all p answers
        for t in (0.1, 3.0):
            other = QuadraticModel(
                model.matrix - t * np.outer(normal, normal), model.linear + 2 * t * normal, model.constant - t
            )
            assert other.distance_to(model) > 1e-3
            assert QuadraticOracle(other).explain(X) == pytest.approx(Z, abs=1e-7)
            assert (other.labels(X) == -1).all()
            # Yet one more answer tells them apart.
            x = np.full(p, 0.3)
            assert not np.allclose(oracle.explain(x), QuadraticOracle(other).explain(x), atol=1e-6)


def test_the_equations_of_p_answers_leave_a_solution_open_and_those_of_p_plus_one_do_not() -> None:
    """A second opinion on the count: the D coefficients from q(z) = 0 and (I − dd')∇q(z) = 0, as one linear system."""
    rng = np.random.default_rng(1)
    for p in (2, 3, 5):
        model = shape("ellipsoid", p, rng)
        X = rng.normal(size=(p + 1, p)) * 2
        Z = QuadraticOracle(model).explain(X)
        upper = np.triu_indices(p, 1)

        def equations(x: np.ndarray, z: np.ndarray, p: int = p, upper: Any = upper) -> np.ndarray:
            d = (z - x) / np.linalg.norm(z - x)
            value = np.concatenate([[1.0], z, z * z, z[upper[0]] * z[upper[1]]])
            slopes = np.zeros((p, len(value)))
            slopes[:, 1 : p + 1] = np.eye(p)
            slopes[:, p + 1 : 2 * p + 1] = 2 * np.diag(z)
            for k, (i, j) in enumerate(zip(*upper, strict=True)):
                slopes[i, 2 * p + 1 + k], slopes[j, 2 * p + 1 + k] = z[j], z[i]
            return np.vstack([value, (np.eye(p) - np.outer(d, d)) @ slopes])

        blocks = [equations(x, z) for x, z in zip(X, Z, strict=True)]
        unknowns = (p + 1) * (p + 2) // 2
        assert np.linalg.matrix_rank(np.vstack(blocks[:-1]), tol=1e-9) <= unknowns - 2
        everything = np.vstack(blocks)
        assert np.linalg.matrix_rank(everything, tol=1e-9) == unknowns - 1
        null = np.linalg.svd(everything)[2][-1]
        cosine = abs(null @ model.coefficients) / np.linalg.norm(model.coefficients)
        assert cosine == pytest.approx(1.0, abs=1e-10)
        found = extract_quadratic(QuadraticOracle(model), rng=0)
        assert abs(null @ found.model.coefficients) / np.linalg.norm(found.model.coefficients) == pytest.approx(1.0)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_a_hyperplane_is_found_and_said_to_be_one(p: int) -> None:
    plane = Hyperplane(np.arange(1.0, p + 1), 2.0)
    found = extract_quadratic(QuadraticOracle(QuadraticModel.of_hyperplane(plane)), rng=0)
    assert found.model.hyperplane().is_equivalent(plane, 1e-9)
    assert found.spent == Spent(2 * (p + 1), 1)
    assert not found.exact
    assert "second one" in found.assumptions[1]


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_a_pair_of_planes_takes_answers_from_both(p: int) -> None:
    one = np.ones(p)
    model = QuadraticModel(np.outer(one, one), np.zeros(p), -float(p))  # |Σx| ≥ √p
    found = extract_quadratic(QuadraticOracle(model), start=np.full(p, 0.01), rng=3)
    assert found.model.is_equivalent(model, 1e-9)
    assert found.spent.explanations <= 2 * (p + 1)


@pytest.mark.parametrize("seed", range(4))
def test_one_feature_has_two_roots(seed: int) -> None:
    model = QuadraticModel([[-2.0]], [1.0], 3.0)  # Yes from −1 to 1.5
    found = extract_quadratic(QuadraticOracle(model), rng=seed, bounds=(-5, 5))
    assert found.model.is_equivalent(model)
    assert "not checked" in found.assumptions[-1]


@pytest.mark.parametrize(
    "norm", [Weighted(l2, [0.1, 1.0, 30.0]), Mahalanobis([[2.0, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 4]])]
)
def test_other_inner_products(norm: Any) -> None:
    model = shape("hyperboloid", 3, np.random.default_rng(6))
    found = extract_quadratic(QuadraticOracle(model, Mechanism(norm)), rng=1)
    assert found.spent == Spent(4, 1)
    assert found.model.is_equivalent(model, 1e-6)


def test_any_smooth_distance_will_do() -> None:
    """Under ℓ3 the tangent plane is across the norm's gradient; stationary points made backwards from the surface."""
    model, norm = shape("ellipsoid", 3, np.random.default_rng(2)), Lp(3.0)
    centre = np.linalg.solve(-2 * model.matrix, model.linear)

    class Backwards:
        """From a point outside, the point z of the ellipsoid with z − x along the ℓ3 step for ∇q(z), by Newton's method."""

        dimension = 3
        mechanism = Mechanism(norm)

        def classify(self, x: Any) -> int:
            return model.label(x)

        def explain(self, x: Any) -> Any:
            from scipy.optimize import root

            def off(u: np.ndarray) -> np.ndarray:
                z, gradient = u[:3], model.gradient(u[:3])
                return np.append(z - x - u[3] * norm.dual.gradient(gradient), model.value(z))

            middle = np.asarray(x) - centre
            guess = centre + middle / np.sqrt(-middle @ model.matrix @ middle)
            found = root(off, np.append(guess, np.linalg.norm(guess - x)), tol=1e-15)
            return found.x[:3] if np.abs(off(found.x)).max() < 1e-13 else None

    found = extract_quadratic(Backwards(), start=centre + 4.0, bounds=(centre + 2.0, centre + 6.0), rng=0)
    assert found.model.is_equivalent(model, 1e-7)


@pytest.mark.parametrize("scale", [1e-120, 1e-6, 1e6, 1e120])
def test_features_of_any_common_scale(scale: float) -> None:
    model = shape("hyperboloid", 4, np.random.default_rng(8))
    scaled = QuadraticModel(model.matrix / scale / scale, model.linear / scale, model.constant)
    found = extract_quadratic(QuadraticOracle(scaled), rng=0)
    assert found.spent == Spent(5, 1)
    X = np.random.default_rng(0).normal(size=(2000, 4)) * 3
    assert np.array_equal(found.model.labels(X * scale), model.labels(X))


def test_features_of_different_scales_with_the_box_they_live_in() -> None:
    scales = np.array([1e3, 1.0, 50.0])
    model = shape("ellipsoid", 3, np.random.default_rng(9))
    scaled = QuadraticModel(model.matrix / np.outer(scales, scales), model.linear / scales, model.constant)
    found = extract_quadratic(QuadraticOracle(scaled), bounds=(-4 * scales, 4 * scales), rng=0)
    X = np.random.default_rng(0).uniform(-4, 4, size=(2000, 3))
    assert (found.model.labels(X * scales) == model.labels(X)).mean() > 0.999
    stated = Mechanism(Weighted(l2, 1 / scales))
    found = extract_quadratic(QuadraticOracle(scaled, stated), bounds=(-4 * scales, 4 * scales), rng=0)
    assert found.spent == Spent(4, 1)
    assert np.array_equal(found.model.labels(X * scales), model.labels(X))


def test_questions_stay_inside_their_bounds() -> None:
    model = shape("ellipsoid", 3, np.random.default_rng(4))
    low, high = np.array([-1.0, 0.5, -np.inf]), np.array([2.0, 3.0, 0.0])
    found = extract_quadratic(QuadraticOracle(model), bounds=(low, high), rng=0)
    assert ((found.log.points >= low) & (found.log.points <= high)).all()
    assert found.model.is_equivalent(model, 1e-6)
    found = extract_quadratic(QuadraticOracle(model), start=[5.0, 5.0, 5.0], bounds=2.0, rng=0)
    assert (np.linalg.norm(found.log.points - 5.0, axis=1) <= 2.0).all()
    assert found.model.is_equivalent(model, 1e-6)


class Undeclared:
    """Answers of another service, sold as exact ℓ2 ones."""

    mechanism = Mechanism("l2")

    def __init__(self, inner: Any) -> None:
        self.inner, self.dimension = inner, inner.dimension

    def classify(self, x: Any) -> Any:
        return self.inner.classify(x)

    def explain(self, x: Any) -> Any:
        return self.inner.explain(x)


def test_answers_that_are_no_nearest_points_of_a_quadric_are_caught() -> None:
    model = shape("ellipsoid", 3, np.random.default_rng(4))
    with pytest.raises(BrokenPromise, match="no quadratic surface") as caught:
        extract_quadratic(Undeclared(Rounded(QuadraticOracle(model), 3)), rng=0)
    assert caught.value.fact == "Tangent"
    assert caught.value.excess > 1e-6
    assert caught.value.row is not None
    assert len(caught.value.log) == 4

    weighted = QuadraticOracle(model, Mechanism(Weighted(l2, [1.0, 1.5, 1.0])))
    with pytest.raises(BrokenPromise, match="another distance"):
        extract_quadratic(Undeclared(weighted), rng=0)


def test_a_declared_tolerance_is_allowed_for() -> None:
    model = shape("ellipsoid", 3, np.random.default_rng(4))
    rounded = Rounded(QuadraticOracle(model, Mechanism("l2", tolerance=1e-9)), 9)
    found = extract_quadratic(rounded, accuracy=1e-2, rng=0)
    assert not found.exact
    assert found.model.is_equivalent(model, 1e-5)


def test_starts_on_the_surface_and_silent_regions_are_passed_over() -> None:
    disc = QuadraticModel(-np.eye(2), [0.0, 0.0], 25.0)
    found = extract_quadratic(QuadraticOracle(disc), start=[3.0, 4.0], rng=0)
    assert found.model.is_equivalent(disc, 1e-9)

    class OneSided:
        dimension = 2
        mechanism = Mechanism("l2")
        inner = QuadraticOracle(disc)

        def explain(self, x: Any) -> Any:
            return self.inner.explain(x) if disc.label(x) == -1 else None

    found = extract_quadratic(OneSided(), rng=0)
    assert found.model.is_equivalent(disc, 1e-9) or found.model.is_equivalent(disc.flipped(), 1e-9)
    assert not found.oriented
    assert "exchanged" in found.assumptions[-1]


def test_what_cannot_be_found_is_said() -> None:
    always = QuadraticModel(np.eye(2), [0.0, 0.0], 1.0)
    with pytest.raises(ExtractionFailed, match="boundary may be empty") as caught:
        extract_quadratic(QuadraticOracle(always), rng=0)
    assert len(caught.value.log) == 23
    point = QuadraticModel(-np.eye(2), [0.0, 0.0], 0.0)  # Yes at 0 only: every answer is 0
    with pytest.raises(ExtractionFailed, match="too few different points"):
        extract_quadratic(QuadraticOracle(point), start=[1.0, 1.0], rng=0)


def test_budgets_are_kept_and_nothing_is_lost() -> None:
    model = shape("ellipsoid", 4, np.random.default_rng(4))
    with pytest.raises(BudgetExhausted, match="A budget of 6 is enough") as caught:
        extract_quadratic(QuadraticOracle(model), budget=5, rng=0)
    assert caught.value.needed == 6
    assert extract_quadratic(QuadraticOracle(model), budget=6, rng=0).spent.requests == 6
    assert extract_quadratic(QuadraticOracle(model), budget=5, orient=False, rng=0).spent == Spent(5, 0)
    plane = QuadraticOracle(QuadraticModel.of_hyperplane(Hyperplane([1.0, 2.0], 1.0)))
    with pytest.raises(BudgetExhausted) as caught:  # three answers show one plane: the second look is not paid for
        extract_quadratic(plane, budget=4, rng=0)
    assert len(caught.value.log) == 4
    assert extract_quadratic(QuadraticOracle(model), record=False, rng=0).log is None


def test_what_it_needs_is_asked_for() -> None:
    class Service:
        dimension = 2

        def __init__(self, mechanism: Mechanism | None) -> None:
            self.mechanism = mechanism

        def explain(self, x: Any) -> Any:
            raise OSError("down")

    for terms in (Mechanism("l1"), Mechanism(None), Mechanism("l2", slack=None), Mechanism("l2", "l2", 0.1)):
        with pytest.raises(InvalidInput, match="smooth|optimal"):
            extract_quadratic(Service(terms))
    with pytest.raises(NoExplanation, match="labels only"):
        extract_quadratic(Service(None))
    with pytest.raises(EndpointFailed, match="down"):
        extract_quadratic(Service(Mechanism("l2")))
    with pytest.raises(InvalidInput, match="accuracy"):
        extract_quadratic(Service(Mechanism("l2")), accuracy=0.0)
