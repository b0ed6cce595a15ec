"""The quadratic service: nearest by a dense grid, by many local searches, and at every place where formulas break down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from overexplain.errors import InvalidInput, NotFinite, UnsupportedNorm
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Mahalanobis, Weighted, l2
from overexplain.geometry.quadratic import QuadraticModel
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.quadratic import QuadraticOracle
from overexplain.testing.oracles import check_oracle

SHAPES = {
    "ellipsoid": lambda rng, p: (-(a := rng.normal(size=(p, p))) @ a.T / p, rng.normal(size=p), 3.0),
    "hyperboloid": lambda rng, p: (
        (a := np.linalg.qr(rng.normal(size=(p, p)))[0]) * np.linspace(-2, 1, p) @ a.T,
        a[0],
        1.0,
    ),
    "paraboloid": lambda rng, p: (np.outer(a := rng.normal(size=p), a), rng.normal(size=p), -1.0),
    "cylinder": lambda rng, p: ((a := rng.normal(size=(p, p - 1))) @ a.T, a @ rng.normal(size=p - 1), -2.0),
    "planes": lambda rng, p: (np.outer(a := rng.normal(size=p), b := rng.normal(size=p)), a - 2 * b, -2.0),
    "slab": lambda rng, p: (np.outer(a := rng.normal(size=p), a), 0.3 * a, -1.0),
    "cone": lambda rng, p: (np.diag([1.0] * (p - 1) + [-1.0]), np.zeros(p), 0.0),
    "hyperplane": lambda rng, p: (np.zeros((p, p)), rng.normal(size=p), 0.7),
}


def shape(name: str, rng: np.random.Generator, p: int) -> QuadraticModel:
    return QuadraticModel(*SHAPES[name](rng, p))


@pytest.mark.parametrize("name", SHAPES)
def test_no_point_of_a_dense_grid_on_the_other_side_is_nearer(name: str) -> None:
    rng = np.random.default_rng(11)
    angles = np.linspace(0, 2 * np.pi, 361)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    shares = np.linspace(0, 1, 16)[1:]
    for _ in range(4):
        model = shape(name, rng, 2)
        oracle = QuadraticOracle(model)
        for x in rng.normal(size=(4, 2)) * 2:
            z = oracle.explain(x)
            distance = float(np.linalg.norm(z - x))
            assert abs(model.value(z)) <= 1e-13 * (1 + z @ z) * (1 + np.abs(model.coefficients).max())
            # Everything inside the open disc of this radius keeps x's label, and just beyond its edge some point does not.
            inside = (x + distance * (1 - 1e-9) * shares[:, None, None] * circle).reshape(-1, 2)
            assert (model.labels(inside) == model.label(x)).all()
            step = (z - x) / distance
            assert min(model.label(x) * model.value(z + t * step) for t in (1e-6, -1e-6)) < 0


@pytest.mark.parametrize("name", SHAPES)
def test_many_local_searches_find_nothing_nearer(name: str) -> None:
    rng = np.random.default_rng(5)
    p = 4
    model = shape(name, rng, p)
    oracle = QuadraticOracle(model)
    for x in rng.normal(size=(2, p)) * 2:
        z = oracle.explain(x)
        best = np.inf
        for guess in [*(x + rng.normal(size=(4, p)) * 3), z + 0.3]:
            found = minimize(
                lambda y, x=x: float((y - x) @ (y - x)),
                guess,
                jac=lambda y, x=x: 2 * (y - x),
                constraints={"type": "eq", "fun": model.value, "jac": model.gradient},
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-14},
            )
            if found.success and abs(model.value(found.x)) < 1e-8:
                best = min(best, float(np.linalg.norm(found.x - x)))
        assert best == pytest.approx(float(np.linalg.norm(z - x)), abs=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3, 7, 20])
def test_answers_satisfy_the_optimality_conditions_to_rounding(p: int) -> None:
    rng = np.random.default_rng(p)
    for _ in range(10):
        a = rng.normal(size=(p, p))
        model = QuadraticModel(a + a.T, rng.normal(size=p), rng.normal())
        curvatures = np.linalg.eigvalsh(model.matrix)
        oracle = QuadraticOracle(model)
        for x in rng.normal(size=(3, p)) * 3:
            z = oracle.explain(x)
            if z is None:
                assert curvatures[0] > 0 or curvatures[-1] < 0
                continue
            gradient, step = model.gradient(z), z - x
            across = gradient - step * (gradient @ step) / (step @ step)
            assert np.linalg.norm(across) <= 1e-11 * np.linalg.norm(gradient) + 1e-12
            # λ·t ≤ 1 for every eigenvalue: the condition that makes a stationary point the global minimum.
            t = 2 * float(gradient @ step) / float(gradient @ gradient)
            assert (t * curvatures).max() <= 1 + 1e-9


def test_the_hard_case_answers_along_an_eigenvector() -> None:
    """From the centre of an ellipse both ends of the short axis are nearest; b has no component along it."""
    ellipse = QuadraticModel([[-1.0, 0.0], [0.0, -0.25]], [0.0, 0.0], 1.0)
    z = QuadraticOracle(ellipse).explain([0.0, 0.0])
    assert np.abs(z).tolist() == pytest.approx([1.0, 0.0], abs=1e-15)
    # On the long axis inside the evolute: the nearest points leave the axis, symmetrically.
    z = QuadraticOracle(ellipse).explain([0.0, 0.6])
    y = 0.6 * 1 / (1 - 0.25)
    assert np.abs(z).tolist() == pytest.approx([np.sqrt(1 - y * y / 4), y], abs=1e-14)
    # A hair off the axis nothing changes but the sign that is chosen.
    near = QuadraticOracle(ellipse).explain([1e-13, 0.6])
    assert near.tolist() == pytest.approx([np.sqrt(1 - y * y / 4), y], abs=1e-12)
    near = QuadraticOracle(ellipse).explain([-1e-300, 0.6])
    assert np.abs(near).tolist() == pytest.approx([np.sqrt(1 - y * y / 4), y], abs=1e-12)
    sphere = QuadraticModel(-np.eye(5), np.zeros(5), 9.0)
    assert np.linalg.norm(QuadraticOracle(sphere).explain(np.zeros(5))) == pytest.approx(3.0)


def test_the_apex_of_a_cone_is_an_answer() -> None:
    cone = QuadraticModel(np.diag([1.0, 1.0, -1.0]), np.zeros(3), 0.0)
    # Inside the cone, on its axis: a circle of nearest points at 45 degrees.
    z = QuadraticOracle(cone).explain([0.0, 0.0, 2.0])
    assert float(np.hypot(z[0], z[1])) == pytest.approx(1.0)
    assert z[2] == pytest.approx(1.0)
    double = QuadraticModel(np.diag([-1.0, -1.0]), np.zeros(2), 0.0)  # Yes at 0 only
    assert QuadraticOracle(double).explain([3.0, -4.0]).tolist() == [0.0, 0.0]
    assert QuadraticOracle(double).explain([0.0, 0.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        (QuadraticModel(np.eye(2), [0.0, 0.0], 1.0), False),  # always Yes
        (QuadraticModel(-np.eye(2), [2.0, 0.0], -1.5), False),  # always No
        (QuadraticModel(-np.eye(2), [2.0, 0.0], -1.0), True),  # Yes at (1, 0) only
        (QuadraticModel(np.eye(2), [2.0, 0.0], 1.0), False),  # never No, although q = 0 at (−1, 0)
        (QuadraticModel(np.diag([1.0, 0.0]), [0.0, 0.0], 0.0), False),  # never No, although q = 0 on a line
        (QuadraticModel(np.diag([1.0, 0.0]), [0.0, 1e-9], 5.0), True),  # a parabola so wide that No is far away
        (QuadraticModel(np.diag([-1.0, 0.0]), [0.0, 0.0], -1e-9), False),
    ],
)
def test_an_empty_side_has_no_answer(model: QuadraticModel, answers: bool) -> None:
    oracle = QuadraticOracle(model)
    for x in ([0.3, 0.4], [1e6, -1e7], [-5.0, 1e-3]):
        z = oracle.explain(x)
        assert (z is not None) == answers
        if z is not None:
            assert abs(model.value(z)) <= 1e-9 * max(1.0, float(z @ z))
    batch = oracle.explain([[0.3, 0.4], [5.0, 6.0]])
    assert np.isnan(batch).all() != answers


def test_a_hyperplane_is_answered_as_the_linear_service_answers() -> None:
    rng = np.random.default_rng(2)
    for norm in (l2, Weighted(l2, [1.0, 2.0, 0.5]), Mahalanobis([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 3.0]])):
        plane = Hyperplane(rng.normal(size=3), 0.4)
        X = rng.normal(size=(20, 3))
        ours = QuadraticOracle(QuadraticModel.of_hyperplane(plane), Mechanism(norm)).explain(X)
        assert ours == pytest.approx(ModelOracle(plane, Mechanism(norm)).explain(X), abs=1e-13)
        check_oracle(QuadraticOracle(QuadraticModel.of_hyperplane(plane), Mechanism(norm)))


def test_weighted_and_mahalanobis_answers_are_l2_answers_after_a_change_of_variables() -> None:
    rng = np.random.default_rng(8)
    a, root = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    model = QuadraticModel(a + a.T, rng.normal(size=3), 1.0)
    metric = root @ root.T + np.eye(3)
    weights = np.array([0.1, 3.0, 20.0])
    lower = np.linalg.cholesky(metric)
    for norm, turn in (
        (Mahalanobis(metric), lower.T),
        (Weighted(l2, weights), np.diag(weights)),
        (Weighted(Mahalanobis(metric), weights), lower.T @ np.diag(weights)),
    ):
        back = np.linalg.inv(turn)
        plain = QuadraticModel(back.T @ model.matrix @ back, back.T @ model.linear, model.constant)
        for x in rng.normal(size=(5, 3)):
            expected = back @ QuadraticOracle(plain).explain(turn @ x)
            assert QuadraticOracle(model, Mechanism(norm)).explain(x) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("scale", [1e-120, 1e-30, 1e30, 1e120])
def test_answers_follow_the_scale_of_the_data(scale: float) -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=(3, 3))
    model = QuadraticModel(a + a.T, rng.normal(size=3), 1.0)
    scaled = QuadraticModel(model.matrix / scale / scale, model.linear / scale, 1.0)
    for x in rng.normal(size=(4, 3)):
        assert QuadraticOracle(scaled).explain(x * scale) / scale == pytest.approx(
            QuadraticOracle(model).explain(x), rel=1e-9, abs=1e-9
        )


def test_points_on_the_surface_and_batches() -> None:
    disc = QuadraticModel(-np.eye(2), [0.0, 0.0], 25.0)
    oracle = QuadraticOracle(disc)
    assert oracle.explain([3.0, 4.0]).tolist() == [3.0, 4.0]
    X = np.array([[6.0, 8.0], [0.0, 1.0], [-10.0, 0.0]])
    assert np.array_equal(oracle.explain(X), np.array([oracle.explain(x) for x in X]))
    assert oracle.classify(X).tolist() == [-1, 1, -1]
    assert oracle.model is disc


def test_what_it_cannot_answer_is_refused() -> None:
    disc = QuadraticModel(-np.eye(2), [0.0, 0.0], 25.0)
    with pytest.raises(UnsupportedNorm, match="closed form"):
        QuadraticOracle(disc, "l1")
    with pytest.raises(InvalidInput, match="robustness"):
        QuadraticOracle(disc, Mechanism("l2", robustness="l2", radius=0.1))
    with pytest.raises(InvalidInput, match="QuadraticModel"):
        QuadraticOracle(Hyperplane([1.0], 0.0))
    with pytest.raises(NotFinite, match="scale the features"):
        QuadraticOracle(disc).explain([1e200, 0.0])
