"""Explanations under constraints are optimal by a second opinion: cvxpy for the continuous, enumeration for the discrete."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import overexplain as ox
from overexplain.geometry.domain import Domain
from overexplain.oracles.constrained import Boxed, Immutable, Monotone, OneHot, Sparse
from overexplain.oracles.degraded import Float32, Rounded
from overexplain.oracles.nearest import nearest_on_plane
from overexplain.oracles.silent import OneSided
from overexplain.testing.oracles import check_oracle
from strategies import examples, make_norm

NAMES = ["l1", "l2", "linf", "lp:1.5", "lp:3", "weighted l1", "weighted l2", "weighted linf"]


def length(name: str, distance: ox.Norm, step: cp.Expression) -> cp.Expression:
    """The same norm for cvxpy."""
    if name == "group":
        return sum(cp.norm(step[list(group)], 2) for group in distance.groups)  # type: ignore[attr-defined]
    if name.startswith("weighted "):
        step = cp.multiply(distance.weights, step)  # type: ignore[attr-defined]
    plain = name.removeprefix("weighted ")
    return cp.norm(step, {"l1": 1, "l2": 2, "linf": "inf"}.get(plain) or float(plain[3:]))


def optimum(
    name: str, model: ox.Hyperplane, terms: ox.Mechanism, x: np.ndarray, low: np.ndarray, high: np.ndarray
) -> float:
    """How far the nearest point is that lies between low and high and across the plane; infinite if there is none."""
    z = cp.Variable(len(x))
    reach = terms.radius * terms.robustness.dual(model.normal) if terms.radius else 0.0
    across = [-model.label(x) * (model.normal @ z - model.offset) >= reach]
    limits = []
    for side, bound in ((-1, low), (1, high)):
        limited = np.flatnonzero(np.isfinite(bound))
        if len(limited):
            limits.append(side * z[limited] <= side * bound[limited])
    problem = cp.Problem(cp.Minimize(length(name, terms.distance, z - x)), across + limits)
    problem.solve(solver="CLARABEL")
    return float(problem.value)


def assert_optimal(
    name: str, oracle: object, model: ox.Hyperplane, x: np.ndarray, low: np.ndarray, high: np.ndarray
) -> bool:
    """True if there is an answer; it is then allowed, on its plane to rounding, and as near as cvxpy finds one."""
    answer = oracle.explain(x)
    while not isinstance(oracle, ox.ModelOracle):
        oracle = oracle.wrapped
    terms = oracle.mechanism
    best = optimum(name, model, terms, x, low, high)
    if math.isinf(best):
        assert answer is None
        return False
    assert (answer >= low).all()
    assert (answer <= high).all()
    reach = terms.radius * terms.robustness.dual(model.normal) if terms.radius else 0.0
    size = np.abs(model.normal) @ (np.abs(answer) + np.abs(x)) + abs(model.offset) + reach
    assert -model.label(x) * model.margin(answer) == pytest.approx(reach, abs=4e-15 * size)
    assert terms.distance(answer - x) == pytest.approx(best, rel=2e-5, abs=1e-7)
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("radius", [0.0, 0.2])
def test_boxed_is_optimal(name: str, radius: float) -> None:
    rng = np.random.default_rng(11)
    answered = []
    for case in range(14):
        p = 2 + case % 5
        model = ox.Hyperplane(rng.normal(size=p) * rng.choice([0, 1, 1], p) + np.eye(p)[0], rng.normal())
        terms = ox.Mechanism(make_norm(name, p, case, spread=0.5), robustness="l2" if radius else None, radius=radius)
        low, high = -rng.uniform(0.2, 2, p), rng.uniform(0.2, 2, p)
        high[0] = np.inf if case % 4 == 0 else high[0]
        x = np.clip(rng.uniform(low, np.minimum(high, 2)), low, high)
        x[0] = low[0] if case % 3 == 0 else x[0]
        service = Boxed(ox.ModelOracle(model, terms), low, high)
        answered.append(assert_optimal(name, service, model, x, low, high))
    assert True in answered
    assert False in answered


@pytest.mark.parametrize("name", [*NAMES, "group"])
@pytest.mark.parametrize("radius", [0.0, 0.2])
def test_immutable_and_monotone_are_optimal(name: str, radius: float) -> None:
    rng = np.random.default_rng(5)
    for case in range(6):
        p = 4 + case % 3
        model = ox.Hyperplane(rng.normal(size=p), rng.normal())
        terms = ox.Mechanism(make_norm(name, p, case, spread=0.5), robustness="l2" if radius else None, radius=radius)
        oracle, x = ox.ModelOracle(model, terms), rng.normal(size=p) * 2
        free, kept = np.full(p, np.inf), [0, p - 1]
        low, high = -free, free.copy()
        low[kept] = high[kept] = x[kept]
        assert assert_optimal(name, Immutable(oracle, kept), model, x, low, high)
        low, high = -free, free.copy()
        low[1], high[2] = x[1], x[2]
        assert assert_optimal(name, Monotone(oracle, increase=[1], decrease=[2]), model, x, low, high)
        assert_optimal(name, Monotone(oracle), model, x, x, free)


@pytest.mark.parametrize("name", NAMES)
def test_constraints_inside_one_another_hold_together_in_any_order(name: str) -> None:
    rng = np.random.default_rng(3)
    answered = 0
    for case in range(5):
        p = 6
        model = ox.Hyperplane(rng.normal(size=p), 0.3 * rng.normal())
        inner = ox.ModelOracle(model, ox.Mechanism(make_norm(name, p, case, spread=0.5)))
        x = rng.uniform(-1, 1, p)
        low, high = np.full(p, -2.0), np.full(p, 2.0)
        orders = (
            Boxed(Immutable(Monotone(inner, increase=[1]), [0]), -2, 2),
            Monotone(Boxed(Immutable(inner, [0]), -2, 2), increase=[1]),
            Immutable(Monotone(Boxed(Boxed(inner, -2, 3), -3, 2), increase=[1]), [0]),
        )
        low[0] = high[0] = x[0]
        low[1] = x[1]
        answered += assert_optimal(name, orders[0], model, x, low, high)
        answers = [order.explain(x) for order in orders]
        for answer in answers[1:]:
            assert np.array_equal(answer, answers[0]) if answers[0] is not None else answer is None
        assert orders[2].domain == Domain(p, -2.0, 2.0)
        with pytest.raises(ox.InvalidInput, match="feature 3 must lie between -2.0 and 2.0, got 2.5"):
            orders[2].explain(np.where(np.arange(p) == 3, 2.5, x))
        with pytest.raises(ox.InvalidInput, match="feature 3 must lie"):
            orders[2].classify(np.where(np.arange(p) == 3, 2.5, x))
    assert answered > 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_sparse_beats_every_other_choice_of_k_features(name: str, k: int) -> None:
    """Each choice is the exact answer with all other features immutable, which cvxpy confirms above."""
    rng = np.random.default_rng(8)
    for case in range(4):
        p = 5
        model = ox.Hyperplane(rng.normal(size=p), rng.normal())
        oracle = ox.ModelOracle(model, ox.Mechanism(make_norm(name, p, case, spread=0.5)))
        x = rng.normal(size=p) * 2
        answer = Sparse(oracle, k).explain(x)
        others = [
            Immutable(oracle, [i for i in range(p) if i not in chosen]).explain(x)
            for chosen in itertools.combinations(range(p), k)
        ]
        distance = oracle.mechanism.distance
        assert np.count_nonzero(answer != x) <= k
        assert abs(model.margin(answer)) < 1e-14 * (1 + np.abs(model.normal) @ np.abs(answer))
        assert distance(answer - x) == pytest.approx(min(distance(z - x) for z in others), rel=1e-12)
        few = Sparse(Immutable(Sparse(oracle, k), [int(np.argmax(np.abs(model.normal)))]), 4)
        moved = np.flatnonzero(few.explain(x) != x)
        assert len(moved) <= k
        assert int(np.argmax(np.abs(model.normal))) not in moved


@examples(150)
@given(st.integers(0, 2**20), st.sampled_from([1.0, 1.001, 1.1, 1.5, 2.0, 4.0, 100.0, math.inf]))
def test_the_path_to_the_plane_meets_its_optimality_conditions(seed: int, q: float) -> None:
    """At any exponent and any scale of the weights: on the plane, in the box, and no two features could trade for a gain.

    With u = weights·|z − x|, an exchange that keeps normal·z pays gain_i / u_i^(q−1) per unit of ‖u‖^q: who can still move must not
    pay better than who has moved.
    """
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 9))
    normal, weights = rng.normal(size=p) * rng.choice([0, 1, 1, 1], p), 10 ** rng.uniform(-3, 3, p)
    x, low, high = rng.normal(size=p), -(10 ** rng.uniform(0, 2, p)), 10 ** rng.uniform(0, 2, p)
    x = np.clip(x, low, high)
    infinite = rng.random(p) < 0.2
    high = np.where(infinite, np.inf, high)
    offset = float(normal @ x + rng.normal() * 10 ** rng.uniform(-3, 3))
    z = nearest_on_plane(normal, offset, x, low, high, q, weights)
    towards = np.sign(normal) * np.sign(offset - normal @ x)
    limit = np.where(towards > 0, high, np.where(towards < 0, low, x))
    furthest = np.abs(normal) @ np.where(towards == 0, 0.0, np.abs(np.where(normal == 0, 0.0, limit - x)))
    size = np.abs(normal) @ (np.abs(x) + (np.abs(z) if z is not None else 0.0)) + abs(offset)
    if z is None:
        assert furthest < abs(offset - normal @ x)
        return
    assert furthest >= abs(offset - normal @ x) - 1e-12 * size
    assert abs(normal @ z - offset) <= 1e-14 * size
    assert ((low <= z) & (z <= high)).all()
    assert (z[normal == 0] == x[normal == 0]).all()
    u, gain = weights * np.abs(z - x), np.abs(normal) / weights
    can_move, has_moved = (gain > 0) & (z != limit), u > 1e-9 * u.max()
    rough = 1e-12 * weights * np.abs(x)  # z − x is known only to the rounding of z
    for i, j in itertools.product(np.flatnonzero(can_move), np.flatnonzero(has_moved)):
        if q == 1:
            assert gain[i] <= gain[j] * (1 + 1e-12)
        elif q == math.inf:
            assert u[j] <= u[i] + rough[i] + rough[j] + 1e-9 * u[j] or u[j] < u.max() * (1 - 1e-12)
        else:  # u_i ≥ u_j·(gain_i / gain_j)^(1/(q−1)), in logarithms: for q near 1 the power leaves float64
            expected = math.log(u[j]) + (math.log(gain[i]) - math.log(gain[j])) / (q - 1)
            if expected > math.log(rough[i] + rough[j] + 1e-290):
                assert math.log(u[i] + rough[i] + 1e-300) >= expected - 1e-6 - math.log1p(rough[j] / u[j])


def test_where_the_box_only_just_touches_the_plane_its_corner_is_the_answer() -> None:
    for name in NAMES:
        terms = ox.Mechanism(make_norm(name, 3, 1, spread=0.5))
        for normal in ([0.1, 0.2, 0.7], [1.0, -1.0, 3.0]):
            corner = np.where(np.array(normal) > 0, 1.1, -1.1)
            touching = Boxed(ox.ModelOracle(ox.Hyperplane(normal, float(np.dot(normal, corner))), terms), -1.1, 1.1)
            assert touching.explain([0.0, 0.0, 0.0]) == pytest.approx(corner, abs=1e-12)
            missing = ox.Hyperplane(normal, float(np.dot(normal, corner)) * (1 + 1e-9))
            assert Boxed(ox.ModelOracle(missing, terms), -1.1, 1.1).explain([0.0, 0.0, 0.0]) is None


def test_answers_do_not_depend_on_the_scale_of_the_data() -> None:
    rng = np.random.default_rng(2)
    for name in ("l1", "l2", "linf", "lp:1.1", "lp:3"):
        normal, x = rng.normal(size=5), rng.uniform(-1, 1, 5)
        offset = float(normal @ x) + 0.6 * float(np.abs(normal).sum())
        plain = Boxed(ox.ModelOracle(ox.Hyperplane(normal, offset), ox.Mechanism(name)), -1.5, 1.5).explain(x)
        for exponent in (-500, -150, 150, 500):
            scale = 2.0**exponent
            oracle = ox.ModelOracle(ox.Hyperplane(normal, offset * scale), ox.Mechanism(name))
            far = Boxed(oracle, -1.5 * scale, 1.5 * scale).explain(x * scale)
            assert far / scale == pytest.approx(plain, rel=1e-14)


def test_explanations_too_far_for_float64_are_refused() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([1e-300, 1.0], 1e300), ox.Mechanism("l1"))
    for service in (Immutable(oracle, [1]), Immutable(Boxed(oracle, -np.inf, np.inf), [1])):
        with pytest.raises(ox.NotFinite, match="too far away"):
            service.explain([0.0, 0.0])
    assert Boxed(oracle, -1.0, np.inf).explain([0.0, 0.0]).tolist() == [0.0, 1e300]


def test_a_question_on_the_plane_stays_where_it_is() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([1.0, 2.0], 2.0), ox.Mechanism("l2"))
    for service in (Boxed(oracle, -9, 9), Immutable(oracle, [1]), Monotone(oracle), Sparse(oracle, 1)):
        assert service.explain([0.0, 1.0]).tolist() == [0.0, 1.0]


def test_none_where_what_may_move_has_no_effect() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([0.0, 2.0], 2.0), ox.Mechanism("l1"))
    assert Immutable(oracle, [1]).explain([5.0, 0.0]) is None
    assert Monotone(oracle).explain([5.0, 3.0]) is None  # the second would have to fall
    assert Monotone(oracle).explain([5.0, 0.0]).tolist() == [5.0, 1.0]
    batch = Monotone(oracle).explain([[5.0, 3.0], [5.0, 0.0]])
    assert np.isnan(batch[0]).all()
    assert batch[1].tolist() == [5.0, 1.0]


# ------------------------------------------------------------------------------------------------ categories and whole numbers


def enumerate_nearest(service: OneHot, model: ox.Hyperplane, x: np.ndarray, kept: tuple[int, ...]) -> float:
    """The least distance over every category and whole number, the continuous features by a linear program for each."""
    domain, distance = service.domain, service.mechanism.distance
    assert domain is not None
    weights, linf = distance.units(len(x)), "inf" in str(distance)
    free = [i for i in domain.continuous if i not in kept]
    choices = [[x[list(group)]] if set(group) & set(kept) else list(np.eye(len(group))) for group in domain.groups]
    whole = [
        [x[i]] if i in kept else list(np.arange(math.ceil(domain.low[i]), math.floor(domain.high[i]) + 1))
        for i in domain.integers
    ]
    best, side = math.inf, model.label(x)
    for categories in itertools.product(*choices):
        for numbers in itertools.product(*whole):
            z = x.copy()
            for group, entries in zip(domain.groups, categories, strict=True):
                z[list(group)] = entries
            z[list(domain.integers)] = numbers
            fixed = float(distance(z - x))
            if fixed >= best:
                continue
            if not free:
                best = min(best, fixed) if side * model.margin(z) <= 0 else best
                continue
            # min Σ w·t (or max w·t) over t ≥ |step|, side·normal·(z + step) ≤ side·offset
            n = len(free)
            across = np.concatenate([side * model.normal[free], np.zeros(n), [0.0]])
            absolute = np.vstack([np.hstack([sign * np.eye(n), -np.eye(n), np.zeros((n, 1))]) for sign in (1, -1)])
            longest = np.hstack([np.zeros((n, n)), np.diag(weights[free]), -np.ones((n, 1))])
            found = linprog(
                np.concatenate([np.zeros(n), np.zeros(n) if linf else weights[free], [1.0 if linf else 0.0]]),
                A_ub=np.vstack([across, absolute, longest]),
                b_ub=np.concatenate([[side * (model.offset - model.normal @ z)], np.zeros(3 * n)]),
                bounds=[
                    *((domain.low[i] - x[i], domain.high[i] - x[i]) for i in free),
                    *[(0, None)] * n,
                    (fixed if linf else 0, None),
                ],
            )
            if found.status == 0:
                best = min(best, found.fun if linf else fixed + found.fun)
    return best


@pytest.mark.parametrize("name", ["l1", "linf", "weighted l1", "weighted linf"])
def test_one_hot_answers_are_the_best_of_all_categories(name: str) -> None:
    rng = np.random.default_rng(4)
    seen = set()
    for case in range(12):
        free = case % 3
        p = 7 + free
        low, high = np.full(p, -1.0), np.full(p, 2.0)
        low[5:7], high[5:7] = -1.4, 1.7
        groups, integers = [[0, 1, 2], [3, 4]], [5, 6]
        kept = (3, 4) if case % 4 == 3 else ()
        model = ox.Hyperplane(rng.normal(size=p), rng.normal() * 2)
        terms = ox.Mechanism(make_norm(name, p, case, spread=0.4))
        service = OneHot(
            ox.ModelOracle(model, terms), groups, integers, low, high, change=[i for i in range(p) if i not in kept]
        )
        for x in service.domain.sample(rng, 2):
            answer, best = service.explain(x), enumerate_nearest(service, model, x, kept)
            if math.isinf(best):
                assert answer is None
                seen.add("none")
                continue
            assert service.domain.contains(answer)
            assert (answer[list(kept)] == x[list(kept)]).all()
            assert terms.distance(answer - x) == pytest.approx(best, rel=1e-9, abs=1e-9)
            margin = -model.label(x) * model.margin(answer)
            size = np.abs(model.normal) @ np.abs(answer) + abs(model.offset)
            assert margin >= -1e-14 * size
            on_plane = margin <= 1e-14 * size
            if (answer[7:] != x[7:]).any():
                assert on_plane  # a continuous feature moved, and no further than it had to
            seen.add("on the plane" if on_plane else "beyond it")
    assert seen == {"none", "on the plane", "beyond it"}


def test_one_hot_close_to_the_plane_stays_in_its_category_and_on_the_plane() -> None:
    model = ox.Hyperplane([1.0, -2.0, 3.0, 0.5], 0.25)
    service = OneHot(ox.ModelOracle(model, ox.Mechanism("l1")), [[0, 1, 2]])
    answer = service.explain([1.0, 0.0, 0.0, -1.7])
    assert answer.tolist() == [1.0, 0.0, 0.0, -1.5]
    assert service.explain([0.0, 0.0, 1.0, -1.0]).tolist() == [0.0, 1.0, 0.0, -1.0]  # a category is cheaper here


def test_one_hot_sees_what_the_solver_does_not() -> None:
    """Within the solver's tolerance 1 reaches the plane; in truth the last bit would cost 50 by the other feature."""
    model = ox.Hyperplane([1.0, 1e-9], 1.0 + 5e-8)
    service = OneHot(ox.ModelOracle(model, ox.Mechanism("l1")), [], [0])
    assert service.explain([0.0, 0.0]).tolist() == [2.0, 0.0]
    assert service.explain([1.0, 0.0]).tolist() == [2.0, 0.0]
    alone = OneHot(ox.ModelOracle(model, ox.Mechanism("l1")), [], [0], low=0, high=[1, 9])
    assert alone.explain([0.0, 0.0]) is None
    just = OneHot(ox.ModelOracle(model, ox.Mechanism("l1")), [], [0], low=0, high=[1, 99])
    assert just.explain([0.0, 0.0]) == pytest.approx([1.0, 50.0], rel=1e-6)


def test_one_hot_answers_robustly_too() -> None:
    """A ball of radius ρ moves the plane by ρ‖normal‖*: the same answer as the plain service of the plane moved."""
    rng = np.random.default_rng(0)
    model = ox.Hyperplane(rng.normal(size=6), 0.1)
    reach = 0.3 * float(np.linalg.norm(model.normal))
    robust = OneHot(ox.ModelOracle(model, ox.Mechanism("l1", "l2", 0.3)), [[0, 1, 2]], [3], -4, 4)
    for x in robust.domain.sample(rng, 12):
        moved = ox.Hyperplane(model.normal, model.offset - model.label(x) * reach)
        plain = OneHot(ox.ModelOracle(moved, ox.Mechanism("l1")), [[0, 1, 2]], [3], -4, 4).explain(x)
        answer = robust.explain(x)
        assert (answer is None) == (plain is None)
        if answer is not None:
            assert answer == pytest.approx(plain, abs=1e-12)


def test_one_hot_refuses_what_is_not_valid() -> None:
    service = OneHot(ox.ModelOracle(ox.Hyperplane([1.0, 2.0, 3.0], 1.0), ox.Mechanism("l1")), [[0, 1]], [2], 0, 9)
    assert service.classify([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]]).tolist() == [1, 1]
    for verb in (service.classify, service.explain):
        with pytest.raises(ox.InvalidInput, match=r"exactly one of the features \[0, 1\]"):
            verb([1.0, 1.0, 3.0])
        with pytest.raises(ox.InvalidInput, match="row 1: .* feature 2 must be a whole number"):
            verb([[1.0, 0.0, 3.0], [1.0, 0.0, 0.5]])
    with pytest.raises(ox.InvalidInput, match="changes as a whole"):
        OneHot(service.wrapped, [[0, 1]], change=[0, 2])
    with pytest.raises(ox.InvalidInput, match="put it around a ModelOracle"):
        OneHot(Boxed(service.wrapped, 0, 1), [[0, 1]])
    with pytest.raises(ox.UnsupportedNorm, match="needs l1 or linf"):
        OneHot(ox.ModelOracle(ox.Hyperplane([1.0, 2.0, 3.0], 1.0), ox.Mechanism("l2")), [[0, 1]])


# ------------------------------------------------------------------------------------------------ the contract


def services(p: int = 5) -> list:
    rng = np.random.default_rng(2)
    model = ox.Hyperplane(rng.normal(size=p), 0.2)
    oracle = ox.ModelOracle(model, ox.Mechanism("l1"))
    smooth = ox.ModelOracle(model, ox.Mechanism("l2"))
    return [
        Boxed(oracle, -9.0, 9.0), Boxed(smooth, -9.0, 9.0), Immutable(oracle, [0, 3]), Immutable(smooth, [1]),
        Monotone(smooth, increase=[0], decrease=[1]), Sparse(smooth, 2), OneHot(oracle, [[0, 1, 2]], [3]),
        OneSided(Rounded(Immutable(oracle, [0, 3]), 2)), Float32(Boxed(Immutable(smooth, [4]), -9.0, 9.0)),
    ]  # fmt: skip


@pytest.mark.parametrize("service", services(), ids=lambda service: type(service).__name__)
def test_batches_equal_single_answers_and_nothing_is_written_into_the_question(service: ox.Oracle) -> None:
    domain = service.domain
    rows = np.random.default_rng(1).normal(size=(9, 5)) * 2 if domain is None else domain.sample(1, 9)
    check_oracle(service, points=rows, optimal=False)
    rows.setflags(write=False)
    batch = service.explain(rows)
    for row, together in zip(rows, batch, strict=True):
        alone = service.explain(row)
        assert np.isnan(together).all() if alone is None else np.array_equal(alone, together)
    assert service.explain(rows[:0]).shape == (0, 5)
    assert service.classify(rows).tolist() == [service.classify(row) for row in rows]


def test_a_wide_box_changes_no_answer_and_adds_only_itself_to_the_terms() -> None:
    rng = np.random.default_rng(6)
    for name in ("l1", "l2", "linf", "lp:1.5", "weighted l2"):
        oracle = ox.ModelOracle(ox.Hyperplane(rng.normal(size=4), 0.5), ox.Mechanism(make_norm(name, 4, 1, spread=0.5)))
        boxed = Boxed(oracle, -1e9, 1e9)
        check_oracle(boxed)
        check_oracle(Boxed(oracle, -1e9, 1e9, published=oracle.mechanism))
        check_oracle(Immutable(oracle, [], published=oracle.mechanism))
        check_oracle(Sparse(oracle, 4, published=oracle.mechanism))
        rows = rng.normal(size=(20, 4))
        assert boxed.explain(rows) == pytest.approx(oracle.explain(rows), abs=1e-13)
        assert boxed.mechanism == replace(oracle.mechanism, domain=boxed.domain)


def test_published_terms_and_wrapped_oracles() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([1.0, 2.0], 0.5), ox.Mechanism("l1"))
    says = ox.Mechanism(None)
    for service in (
        Boxed(oracle, -1, 1, published=says), Immutable(oracle, [0], published=says), Sparse(oracle, 1, published=says),
        Monotone(oracle, published=says), OneHot(oracle, [], published=says),
    ):  # fmt: skip
        assert service.mechanism == says
        assert service.wrapped is oracle
        assert service.dimension == 2
        # With features that may not move, answers are not the nearest points any more: the terms name no distance then, and a
        # domain without limits says that the answers do not come from all of R^p.
        own = oracle.mechanism if isinstance(service, Boxed | OneHot) else says
        told = type(service)(oracle, **arguments(service))
        assert told.mechanism == replace(own, domain=told.domain or Domain(2))
    assert Immutable(Boxed(oracle, -1, 1), [0]).mechanism == ox.Mechanism(None, domain=Domain(2, -1, 1))
    assert Boxed(Immutable(oracle, [0]), -1, 1).mechanism == ox.Mechanism(None, domain=Domain(2, -1, 1))
    with pytest.raises(ox.InvalidInput, match="its mechanism has no domain; OneHot and Boxed around it"):
        ox.ModelOracle(oracle.hyperplane, ox.Mechanism("l1", domain=Domain(2)))


def arguments(service: object) -> dict:
    """What each needs besides the oracle."""
    return {
        Boxed: {"low": -1, "high": 1}, Immutable: {"features": [0]}, Sparse: {"k": 1}, Monotone: {}, OneHot: {"groups": []},
    }[type(service)]  # fmt: skip


def test_honest_services_over_a_domain_keep_their_contract() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([1.0, -2.0, 0.5], 0.3), ox.Mechanism("l1"))
    service = OneHot(oracle, [[1, 2]], low=-2, high=2)
    rows = service.domain.sample(0, 12)
    check_oracle(service, rows)
    with pytest.raises(AssertionError):  # of all points of R^p its answers are not the nearest
        check_oracle(OneHot(oracle, [[1, 2]], low=-2, high=2, published=oracle.mechanism), rows)


def test_what_cannot_be_done_is_refused_with_the_way_out() -> None:
    model = ox.Hyperplane([1.0, 2.0], 0.5)
    oracle = ox.ModelOracle(model, ox.Mechanism("l1"))
    with pytest.raises(ox.InvalidInput, match="Boxed needs the model: put it around a ModelOracle .* got Rounded"):
        Boxed(Rounded(oracle, 2), 0, 1)
    hidden = ox.ModelOracle(model, ox.Mechanism("l1"), published=ox.Mechanism(None))
    with pytest.raises(ox.InvalidInput, match="hide them with published= here"):
        Immutable(hidden, [0])
    with pytest.raises(ox.UnsupportedNorm, match="Monotone needs a distance of"):
        Monotone(ox.ModelOracle(model, ox.Mechanism(ox.Mahalanobis(np.eye(2)))))
    groups = ox.ModelOracle(model, ox.Mechanism(ox.GroupNorm([[0, 1]])))
    for refused in (lambda: Boxed(groups, 0, 1), lambda: Sparse(groups, 1)):
        with pytest.raises(ox.UnsupportedNorm, match="l1, l2, linf or lq"):
            refused()
    for refused in (lambda: Boxed(Sparse(oracle, 1), 0, 1), lambda: Sparse(Boxed(oracle, 0, 1), 1)):
        with pytest.raises(ox.InvalidInput, match="use one of them"):
            refused()
    with pytest.raises(ox.InvalidInput, match="low 2.0 above high 1.0"):
        Boxed(oracle, 2, 1)
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ox.InvalidInput, match="k must be a whole number of features"):
            Sparse(oracle, wrong)
    with pytest.raises(ox.InvalidInput, match="features must name features from 0 to 1"):
        Immutable(oracle, [2])
    with pytest.raises(ox.DimensionMismatch):
        Boxed(oracle, 0, 1).explain([0.0])
