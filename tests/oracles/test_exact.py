"""The exact service: optimal by a second opinion, for every norm, both classes, plain and robust."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import overexplain as ox
from overexplain.testing.oracles import check_oracle
from strategies import NORMS, make_norm, services


@given(services(), st.integers(0, 2**16))
def test_answers_flip_the_label_for_the_whole_ball_and_no_nearer_point_does(service: tuple, seed: int) -> None:
    """The definition itself: the ball around x' lies across (its worst point just touches), and D(x) is a lower bound by Hölder."""
    model, terms, _, ties = service
    rng = np.random.default_rng(seed)
    oracle = ox.ModelOracle(model, terms, ties=ties, rng=seed)
    x = rng.normal(size=model.dimension) * 3
    answer = oracle.explain(x)
    length = terms.distance.dual(model.normal)
    reach = terms.radius * terms.robustness.dual(model.normal) if terms.radius else 0.0
    size = (terms.distance(x) + terms.distance(answer)) * length + abs(model.offset) + reach
    side = model.label(x)
    assert -side * model.margin(answer) == pytest.approx(reach, abs=1e-12 * size)
    if terms.radius:
        worst = terms.radius * terms.robustness.maximizer(model.normal) * side
        assert -side * model.margin(answer + worst) == pytest.approx(0, abs=1e-12 * size)
    nearest = (abs(model.margin(x)) + reach) / length
    assert terms.distance(answer - x) == pytest.approx(nearest, rel=1e-9, abs=1e-12 * size / length)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "lp:1.5", "lp:3"])
@pytest.mark.parametrize("robustness", [None, "l1", "l2", "linf"])
@pytest.mark.parametrize("side", [ox.YES, ox.NO])
def test_distance_against_cvxpy(name: str, robustness: str | None, side: int) -> None:
    rng = np.random.default_rng(7)
    normal, offset = rng.normal(size=4), 0.7
    x = rng.normal(size=4) + side * 3 * normal
    terms = ox.Mechanism(name) if robustness is None else ox.Mechanism(name, robustness=robustness, radius=0.3)
    answer = ox.ModelOracle(ox.Hyperplane(normal, offset), terms).explain(x)
    z = cp.Variable(4)
    order = {"l1": 1, "l2": 2, "linf": "inf"}.get(name) or float(name[3:])
    dual_length = {None: 0.0, "l1": np.abs(normal).max(), "l2": np.linalg.norm(normal), "linf": np.abs(normal).sum()}[
        robustness
    ]
    across = -side * (normal @ z - offset) >= 0.3 * dual_length
    problem = cp.Problem(cp.Minimize(cp.norm(z - x, order)), [across])
    problem.solve(solver="CLARABEL")
    assert terms.distance(answer - x) == pytest.approx(problem.value, rel=1e-6)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("ties", ["first", "random"])
def test_it_keeps_the_contract_it_ships(name: str, ties: str) -> None:
    rng = np.random.default_rng(1)
    for p in (1, 4):
        distance = make_norm(name, p)
        for normal in (rng.normal(size=p), np.ones(p) * distance.units(p), np.eye(p)[0]):
            model = ox.Hyperplane(normal, 0.4)
            for terms in (ox.Mechanism(distance), ox.Mechanism(distance, robustness="l2", radius=0.2)):
                check_oracle(ox.ModelOracle(model, terms, ties=ties, rng=3))


def test_ties_random_draws_from_the_whole_face_and_first_does_not() -> None:
    model = ox.Hyperplane([1.0, -1.0, 0.5], 2.0)
    random = ox.ModelOracle(model, ox.Mechanism("l1"), ties="random", rng=0)
    answers = random.explain(np.zeros((200, 3)))
    assert (answers[:, 2] == 0).all()  # 0.5 does not tie
    assert answers[:, 0].min() < 0.1
    assert answers[:, 0].max() > 1.9
    assert np.allclose(np.abs(answers).sum(axis=1), 2.0)
    first = ox.ModelOracle(model, ox.Mechanism("l1")).explain(np.zeros((3, 3)))
    assert np.array_equal(first, np.array([[2.0, 0, 0]] * 3))
    again = ox.ModelOracle(model, ox.Mechanism("l1"), ties="random", rng=0).explain(np.zeros((200, 3)))
    assert np.array_equal(answers, again)


def test_a_point_on_the_plane_is_its_own_counterfactual() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([1.0, 1.0], 2.0), ox.Mechanism("linf"))
    assert oracle.explain([1.0, 1.0]).tolist() == [1.0, 1.0]


def test_what_is_published_is_what_the_asker_sees() -> None:
    terms, shown = ox.Mechanism("l1", robustness="l2", radius=0.5), ox.Mechanism("l1", radius=None)
    oracle = ox.ModelOracle(ox.Hyperplane([1.0, 0.0], 2.0), terms, published=shown)
    assert oracle.mechanism is shown
    assert oracle.explain([0.0, 0.0]).tolist() == [2.5, 0.0]
    assert isinstance(oracle, ox.Oracle)


def test_a_loaded_model_and_a_name_will_do() -> None:
    model = ox.load_model({"coefficients": [1.0, 2.0], "intercept": -3.0})
    assert ox.ModelOracle(model, "l1").explain([0.0, 0.0]).tolist() == [0.0, 1.5]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: ox.ModelOracle(ox.Hyperplane([1.0], 0), ox.Mechanism(None)), ox.InvalidInput, "must be known to it"),
        (
            lambda: ox.ModelOracle(ox.Hyperplane([1.0], 0), ox.Mechanism("l1", radius=None)),
            ox.InvalidInput,
            "published",
        ),
        (lambda: ox.ModelOracle(ox.Hyperplane([1.0], 0), ox.Mechanism("l1"), ties="last"), ox.InvalidInput, "ties"),
        (
            lambda: ox.ModelOracle(ox.Hyperplane([1.0], 0), ox.Mechanism(ox.GroupNorm([[0], [1]]))),
            ox.DimensionMismatch,
            "made for 2",
        ),
        (lambda: ox.ModelOracle(ox.Hyperplane([1.0], 0), ox.Mechanism("l1")).explain([np.nan]), ox.NotFinite, "nan"),
        (lambda: ox.ModelOracle(ox.Hyperplane([1e-9], 1e308), "l1"), ox.NotFinite, "the plane is too far away"),
        (lambda: ox.ModelOracle(ox.Hyperplane([1.0], 1e308), "l1").explain([-1e308]), ox.NotFinite, "too far away"),
        (
            lambda: ox.ModelOracle(ox.Hyperplane([1.0], 0), ox.Mechanism("l1")).classify([[1.0, 2.0]]),
            ox.DimensionMismatch,
            "1 col",
        ),
    ],
)
def test_bad_input_is_refused(make: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()  # type: ignore[operator]
