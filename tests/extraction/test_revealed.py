"""Answers that move only some features: as many as the theorem says, honest bounds, and refusals where the steps are not ℓ2's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import overexplain as ox
from overexplain.extraction.box import Box
from overexplain.extraction.constrained.null_plane import null_vector, open_vectors
from overexplain.extraction.constrained.revealed import extract_by_revealed, predict_revealed
from overexplain.extraction.job import Job
from overexplain.extraction.session import Session
from overexplain.oracles.constrained import Immutable, Monotone, Sparse
from overexplain.oracles.degraded import Rounded
from overexplain.oracles.silent import Flaky, OneSided

L2 = ox.norm("l2")


def make_job(oracle, start=None, where=None, seed=0, budget=None, orient=True) -> Job:
    session = Session(oracle, budget)
    where = Box.of(None, session.dimension) if where is None else where
    start = where.centre() if start is None else np.asarray(start, dtype=float)
    return Job(session, 1e-9, start, where, orient, np.random.default_rng(seed))


def random_model(p: int, seed: int) -> tuple[ox.Hyperplane, np.ndarray]:
    rng = np.random.default_rng(seed)
    return ox.Hyperplane(rng.normal(size=p), rng.normal()), rng.normal(size=p)


def upwards(model: ox.Hyperplane) -> list[np.ndarray]:
    return [np.flatnonzero(model.normal > 0), np.flatnonzero(model.normal < 0)]


SERVICES = {
    "3 immutable": (lambda o: Immutable(o, [0, 3, 7]), lambda m: [np.delete(np.arange(30), [0, 3, 7])], 5),
    "15 immutable": (lambda o: Immutable(o, range(15)), lambda m: [range(15, 30)], 17),
    "at most 3": (lambda o: Sparse(o, 3), lambda m: [np.argsort(-np.abs(m.normal))[:3]], 29),
    "at most 1": (lambda o: Sparse(o, 1), lambda m: [np.argsort(-np.abs(m.normal))[:1]], 31),
    "only upwards": (Monotone, upwards, 3),
    "ten only upwards": (
        lambda o: Monotone(o, increase=range(10)),
        lambda m: [np.append(side[side < 10], range(10, 30)) for side in upwards(m)],
        3,
    ),
    "all": (lambda o: o, lambda m: [range(30)], 2),
}


@pytest.mark.parametrize("name", SERVICES)
def test_answers_needed(name: str) -> None:
    """p − |S| + 1 answers, two for two sets, and one more that confirms; one label."""
    wrap, supports, answers = SERVICES[name]
    for seed in range(10):
        model, start = random_model(30, seed)
        found = extract_by_revealed(make_job(wrap(ox.ModelOracle(model, "l2")), start, seed=seed))
        assert (found.spent.explanations, found.spent.labels) == (answers, 1)
        assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-8
        assert found.hyperplane.angle_to(model) < 1e-12
        assert found.hyperplane.is_equivalent(model, 1e-10)
        assert found.exact
        assert found.oriented
        assert found.unidentified.shape == (0, 30)
        assert predict_revealed(30, supports(model)) == found.spent


def test_one_answer_fewer_leaves_two_models() -> None:
    """Another model, far from the first, gives the very same answers to all but the last question."""
    fixed = [0, 3, 7]
    model, start = random_model(30, 1)
    job = make_job(Immutable(ox.ModelOracle(model, "l2"), fixed), start)
    extract_by_revealed(job)
    log = job.session.log
    questions, answers = log.points[log.explained][:3], log.explanations[log.explained][:3]
    free = np.delete(np.arange(30), fixed)
    # Unknown: the factor of a_free, the three others, the offset. Three equations leave two of the five directions.
    rows = np.column_stack([answers[:, free] @ model.normal[free], answers[:, fixed], -np.ones(3)])
    basis = np.linalg.svd(rows)[2][3:]
    own = np.array([1.0, *model.normal[fixed], model.offset])
    other = next(row for row in basis if np.linalg.matrix_rank(np.array([row, own]), tol=1e-3) == 2) + 0.3 * own
    normal = np.zeros(30)
    normal[free], normal[fixed] = other[0] * model.normal[free], other[1:4]
    twin = ox.Hyperplane(normal, other[4])
    assert min(twin.angle_to(model), np.pi - twin.angle_to(model)) > 0.05
    same = Immutable(ox.ModelOracle(twin, "l2"), fixed)
    np.testing.assert_allclose([same.explain(x) for x in questions], answers, atol=1e-9)


def test_one_side_explained() -> None:
    """Only the denied get answers, and only upwards: as many as there are negative coefficients, one more, one to confirm."""
    for seed in range(10):
        model, start = random_model(30, seed)
        if model.label(start) == 1:
            start = start - 2 * model.margin(start) / (model.normal @ model.normal) * model.normal
        job = make_job(OneSided(Monotone(ox.ModelOracle(model, "l2"))), start, seed=seed)
        found = extract_by_revealed(job)
        answered = len(job.session.log.explained)
        assert answered == (model.normal < 0).sum() + 2
        assert found.spent.explanations <= answered + 8
        assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-8


def constrained(kind: int, exact: ox.ModelOracle, some: list[int], k: int):
    """One of the services, for the first k of some features."""
    if kind == 1:
        return Immutable(exact, some[:k])
    if kind == 2:
        return Sparse(exact, k + 1)
    if kind == 3:
        return Monotone(exact)
    return Monotone(exact, increase=some[:k], decrease=some[k : k + 1]) if kind == 4 else exact


def test_honesty() -> None:
    """Weights, zeros, scales, boxes, starts next to the plane, services that fail now and then: the bounds hold."""
    finished = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(1, 9))
        normal = rng.normal(size=p) * 10 ** rng.uniform(-2, 2, p)
        if p > 1 and rng.random() < 0.3:
            normal[rng.integers(p)] = 0.0
        model = ox.Hyperplane(normal, rng.normal() * 10 ** rng.uniform(-2, 3))
        norm = L2 if rng.random() < 0.5 else ox.Weighted(L2, 10 ** rng.uniform(-2, 2, p))
        exact, some = ox.ModelOracle(model, ox.Mechanism(norm)), rng.permutation(p).tolist()
        k = int(rng.integers(p))
        service = constrained(int(rng.integers(5)), exact, some, k)
        kind = rng.integers(4)
        if kind == 1:
            service = OneSided(service)
        elif kind == 2:
            service = Flaky(service, 0.2, str(rng.choice(["none", "nan", "echo", "raise"])), rng=seed)
        where = Box(-rng.uniform(1, 100, p), rng.uniform(1, 100, p)) if rng.random() < 0.3 else None
        start = rng.normal(size=p)
        if rng.random() < 0.2:
            start = start - (1 - 1e-9) * model.margin(start) / (normal @ normal) * normal
        start = start if where is None else where.clip(start)
        job = make_job(service, start, where, seed)
        try:
            found = extract_by_revealed(job, norm)
        except ox.NoExplanation:
            # No start was explained: the plane is out of reach that way, e.g. all movable coefficients are 0.
            assert len(job.session.log.explained) <= 1
            continue
        finished += 1
        assert found.hyperplane.angle_to(model) <= found.error_bound
        assert abs(model.offset / norm.dual(normal) - found.hyperplane.offset) <= found.offset_bound
        assert all(job.where.contains(x) for x in job.session.log.points)
    assert finished > 375


def test_features_that_cannot_be_varied() -> None:
    """A fixed profile: (a_S, b − a_I·x_I) is all there is, and what is missing is said, not guessed."""
    model, start = random_model(6, 3)
    low, high = np.full(6, -50.0), np.full(6, 50.0)
    low[[1, 4]] = high[[1, 4]] = start[[1, 4]]
    job = make_job(Immutable(ox.ModelOracle(model, "l2"), [1, 4, 5]), start, Box(low, high))
    found = extract_by_revealed(job)
    np.testing.assert_array_equal(found.unidentified, np.eye(6)[[1, 4]])
    assert not found.hyperplane.normal[[1, 4]].any()
    kept = np.where(np.isin(np.arange(6), [1, 4]), 0.0, model.normal)
    rest = ox.Hyperplane(kept, model.offset - model.normal[[1, 4]] @ start[[1, 4]])
    assert found.hyperplane.angle_to(rest) <= found.error_bound < 1e-9
    assert found.hyperplane.is_equivalent(rest)
    assert found.spent.explanations == 3  # the factor, feature 5, and the confirmation
    assert any("[1, 4]" in note for note in found.assumptions)
    assert (job.session.log.points[:, [1, 4]] == start[[1, 4]]).all()


def test_ties_do_not_matter() -> None:
    """Sparse picks among equals; whatever it moves, its share is right."""
    model = ox.Hyperplane([2.0, -2.0, 2.0, 2.0, 1.0], 1.0)
    found = extract_by_revealed(make_job(Sparse(ox.ModelOracle(model, "l2"), 2), np.arange(5.0)))
    assert found.hyperplane.is_equivalent(model)


def test_declared_rounding_is_in_the_bound() -> None:
    for seed in range(20):
        model, start = random_model(8, seed)
        service = Rounded(Immutable(ox.ModelOracle(model, "l2"), [2, 5], published=ox.Mechanism("l2")), 7)
        found = extract_by_revealed(make_job(service, 10 * start, seed=seed))
        assert 1e-12 < found.hyperplane.angle_to(model) <= found.error_bound < 1e-2


@pytest.mark.parametrize("distance", ["linf", "lp:3", "lp:1.5"])
def test_another_distance_is_refuted(distance: str) -> None:
    """The message names the row; without the confirmation the wrong normal would pass."""
    for seed in range(10):
        model, start = random_model(6, seed)
        job = make_job(Immutable(ox.ModelOracle(model, distance), [0, 2]), start, seed=seed)
        with pytest.raises(ox.BrokenPromise, match=r"row \d+") as caught:
            extract_by_revealed(job)
        assert caught.value.fact in ("OnPlane", "Steepest")
        assert caught.value.row in job.session.log.explained


def test_weights_that_are_not_declared_are_refuted() -> None:
    model, start = random_model(6, 0)
    service = ox.ModelOracle(model, ox.Mechanism(ox.Weighted(L2, [1.0, 2.0, 3.0, 1.0, 1.0, 1.0])))
    with pytest.raises(ox.BrokenPromise, match="allowed"):
        extract_by_revealed(make_job(Immutable(service, [5]), start), L2)


def test_steps_in_changing_directions_are_refuted() -> None:
    class Wobbling:
        dimension, mechanism = 4, ox.Mechanism("l2")

        def __init__(self) -> None:
            self.rng = np.random.default_rng(0)

        def explain(self, x: np.ndarray) -> np.ndarray:
            step = self.rng.uniform(0.5, 1.0, 4) * [1, 1, 1, 0]
            return x + step * (3.0 - x.sum()) / step.sum()

    with pytest.raises(ox.BrokenPromise, match="does not go in the direction") as caught:
        extract_by_revealed(make_job(Wobbling(), np.full(4, 5.0)))
    assert caught.value.fact == "Steepest"
    assert caught.value.row == 1


def test_undeclared_rounding_is_refuted() -> None:
    model, start = random_model(6, 4)
    service = Rounded(Immutable(ox.ModelOracle(model, "l2"), [1]), 3, published=ox.Mechanism("l2"))
    with pytest.raises(ox.BrokenPromise):
        extract_by_revealed(make_job(service, start))


def test_services_that_explain_nothing() -> None:
    class Silent:
        dimension, mechanism = 3, ox.Mechanism("l2")

        def explain(self, x: np.ndarray) -> np.ndarray | None:
            return None

    class Echo(Silent):
        def explain(self, x: np.ndarray) -> np.ndarray:
            return x

    for service in (Silent(), Echo()):
        job = make_job(service)
        with pytest.raises(ox.NoExplanation, match="12 starts"):
            extract_by_revealed(job)
        assert job.session.spent.requests == 12


def test_a_service_that_prefers_one_answer() -> None:
    class Fixed:
        dimension, mechanism = 4, ox.Mechanism("l2")

        def explain(self, x: np.ndarray) -> np.ndarray:
            return np.array([2.0, x[1], x[2], x[3]]) if abs(x[3]) < 1e9 else None

    # Feature 0 has all the effect: one set and three features that never move and turn out to be 0.
    found = extract_by_revealed(make_job(Fixed(), np.zeros(4), orient=False))
    assert found.hyperplane.same_plane(ox.Hyperplane([1.0, 0.0, 0.0, 0.0], 2.0))
    assert not found.oriented

    class Stuck(Fixed):
        def explain(self, x: np.ndarray) -> np.ndarray:
            return np.array([2.0, 0.0, 0.0, 0.0]) + 0 * x

    with pytest.raises((ox.ExtractionFailed, ox.BrokenPromise)):
        extract_by_revealed(make_job(Stuck(), np.zeros(4)))


def test_norms_that_reveal_nothing() -> None:
    oracle = ox.ModelOracle(ox.Hyperplane([1.0, 2.0], 1.0), "l1")
    for norm in (ox.norm("l1"), ox.Weighted(ox.norm("lp:3"), [1.0, 2.0])):
        with pytest.raises(ox.UnsupportedNorm, match="ℓ2"):
            extract_by_revealed(make_job(oracle), norm)


def test_budget() -> None:
    model, start = random_model(30, 0)
    service = Immutable(ox.ModelOracle(model, "l2"), range(15))
    found = extract_by_revealed(make_job(service, start, budget=18))
    assert found.spent.requests == 18
    for budget in (0, 2, 5, 17):
        job = make_job(service, start, budget=budget)
        with pytest.raises(ox.BudgetExhausted) as caught:
            extract_by_revealed(job)
        # Refused as soon as the first two answers show how many more it takes.
        assert job.session.spent.requests <= min(budget, 2)
        assert caught.value.needed is not None


def test_prediction_joins_sets_that_share_features() -> None:
    assert predict_revealed(10, [[0, 1], [1, 2], [5]], orient=False) == ox.Spent(2 + 6 + 1, 0)
    assert predict_revealed(4, [[0, 1], [2, 3], [1, 2]]).explanations == 3  # one set, but two answers to see all of it
    assert predict_revealed(3, [[0]]).explanations == 4


def test_null_vector_bounds_hold_for_every_corner_of_the_errors() -> None:
    """Second opinion in exact arithmetic: systems anywhere within the errors have their solution within the bounds."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        q = int(rng.integers(2, 6))
        rows = rng.normal(size=(q - 1, q)) * 10 ** rng.uniform(-2, 2, q)
        errors = np.abs(rows) * 10.0 ** rng.uniform(-9, -4)
        found = null_vector(rows, errors, np.abs(rows).max(axis=0))
        assert found is not None
        assert found.errors is not None
        pivot = int(np.abs(found.values * np.abs(rows).max(axis=0)).argmax())
        for _ in range(10):
            true = rows + errors * rng.choice([-1.0, 1.0], rows.shape)
            exact = _null_vector_exactly(true)
            scaled = np.array([float(v / exact[pivot] * Fraction(found.values[pivot])) for v in exact])
            assert (np.abs(scaled - found.values) <= found.errors * (1 + 1e-12) + 1e-300).all()


def _null_vector_exactly(rows: np.ndarray) -> list[Fraction]:
    """By Gauss–Jordan in rationals."""
    matrix = [[Fraction(float(v)) for v in row] for row in rows]
    n = len(matrix)
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(matrix[i][k]))
        matrix[k], matrix[best] = matrix[best], matrix[k]
        matrix[k] = [v / matrix[k][k] for v in matrix[k]]
        for i in range(n):
            if i != k:
                matrix[i] = [v - matrix[i][k] * w for v, w in zip(matrix[i], matrix[k], strict=True)]
    return [-row[n] for row in matrix] + [Fraction(1)]


def test_null_vector_knows_when_there_is_none() -> None:
    parallel = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    assert null_vector(parallel, 0 * parallel, np.ones(3)) is None
    assert open_vectors(parallel, np.ones(3)).shape == (2, 3)
    assert np.abs(parallel @ open_vectors(parallel, np.ones(3)).T).max() < 1e-14
    assert null_vector(parallel[:1], 0 * parallel[:1], np.ones(3)) is None
    vague = null_vector(np.array([[1.0, 1.0]]), np.array([[0.9, 0.9]]), np.ones(2))
    assert vague is not None
    assert vague.errors is None
