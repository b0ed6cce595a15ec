"""Inputs that once gave a wrong answer, a false bound or a raw exception. Each says what must hold now."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import overexplain as ox
from overexplain.geometry.norms import Facets, GroupMax

H, M = ox.Hyperplane, ox.Mechanism


class Service:
    """An honest service whose n-th explanation passes through f(n, x, answer)."""

    def __init__(self, oracle: ox.ModelOracle, f: Callable) -> None:
        self.oracle, self.f, self.n = oracle, f, 0
        self.dimension, self.mechanism = oracle.dimension, oracle.mechanism

    def classify(self, x: np.ndarray) -> int:
        return self.oracle.classify(x)

    def explain(self, x: np.ndarray) -> object:
        self.n += 1
        return self.f(self.n, x, self.oracle.explain(x))


def holds(found: ox.Extraction, model: ox.Hyperplane, distance: ox.Norm) -> None:
    """The bounds that are given hold."""
    if found.error_bound is not None:
        assert found.hyperplane.angle_to(model) <= found.error_bound
    length = distance.dual(model.normal)
    if found.offset_bound is not None:
        assert abs(found.hyperplane.offset - model.offset / length) <= found.offset_bound


@pytest.mark.parametrize(("q", "normal"), [(1.001, [3.0, 1.0]), (1.01, [1.0, 1e-4]), (1.01, [1.0, 0.5, 1e-3, 0.0])])
def test_entries_that_underflow_are_unknown_not_zero(q: float, normal: list[float]) -> None:
    model = H(normal, 10.0)
    found = ox.extract(ox.ModelOracle(model, M(ox.Lp(q))))
    assert found.hyperplane.angle_to(model) < 1e-9
    holds(found, model, ox.Lp(q))


def test_a_polytope_face_is_not_guessed_within_a_tolerance() -> None:
    corners = np.array([[1.3, 0.9], [-0.7, -1.3], [-0.6, 0.0]])
    norm, tolerance, push = ox.Polyhedral(np.vstack([corners, -corners])), 1e-6, np.array([1.0, 0.0])
    model = H([1.0, 1.0], 1.0)
    service = Service(
        ox.ModelOracle(model, M(norm, tolerance=tolerance)), lambda n, x, r: r + push * 0.99 * tolerance / norm(push)
    )
    found = ox.extract(service)
    assert found.hyperplane.angle_to(model) < 1e-4
    holds(found, model, norm)


@pytest.mark.parametrize("seed", range(20))
def test_an_ulp_of_noise_does_not_pass_for_a_step(seed: int) -> None:
    model = H([1.0, 0.5, 0.0], 0.0)
    noisy = Service(ox.ModelOracle(model, M("lp:1.5")), lambda n, x, r: np.nextafter(r, np.inf) if r.any() else r)
    scale = np.array([3.0, 7.0, 11.0])
    scaled = Service(ox.ModelOracle(model, M("lp:1.5")), lambda n, x, r: (r / scale) * scale)
    for service in (noisy, scaled):
        found = ox.extract(service, rng=seed)
        holds(found, model, ox.Lp(1.5))
        assert found.hyperplane.angle_to(model) < 1e-6


def test_facets_of_very_different_size() -> None:
    norm = Facets([[1e5, 0], [-1e5, 0], [0, 1e-5], [0, -1e-5]])
    for distance in (norm, norm.dual):
        model = H([1.0, 1.0], 2.0)
        found = ox.extract(ox.ModelOracle(model, M(distance)))
        assert distance.dual(found.hyperplane.normal - model.normal / distance.dual(model.normal)) < 1e-9
        holds(found, model, distance)


def test_orientation_at_the_edge_of_the_bounds() -> None:
    norm = ox.Mahalanobis([[1, 0.9], [0.9, 1]])
    model = H([1.0, 0.5], 0.2)
    bounds = ([0.0, -10.0], [10.0, 10.0])
    found = ox.extract(ox.ModelOracle(model, M(norm)), start=[0.0, 0.0], bounds=bounds)
    assert found.hyperplane.is_equivalent(model, 1e-9)
    model = H([1.0], 2.0)
    assert ox.extract(ox.ModelOracle(model, M("l1")), start=[2.0], bounds=(2.0, 5.0)).hyperplane.is_equivalent(model)
    rng = np.random.default_rng(0)
    for _ in range(200):
        model, low = H(rng.normal(size=2), rng.normal()), rng.normal(size=2)
        box = (low, low + rng.uniform(0.1, 3, 2))
        found = ox.extract(ox.ModelOracle(model, M(norm)), start=box[0], bounds=box, rng=0)
        assert found.hyperplane.angle_to(model) < 1.0


def test_secret_radii_of_different_services_are_different() -> None:
    model, log = H([1.0, 1.0], 0.0), ox.QueryLog()
    one = ox.ModelOracle(model, M("l1", "l2", 1.0), published=M("l1", radius=None))
    two = ox.ModelOracle(model, M("linf", "l2", 3.0), published=M("linf", radius=None))
    for oracle, points in ((one, ([-3.0, -1.0], [-5.0, 2.0])), (two, ([7.0, 1.0], [5.0, 9.0]))):
        for x in points:
            log.add_explanation(x, oracle.explain(x), oracle.classify(x), oracle.mechanism)
    found = ox.recover(log)
    assert found is None or found.is_equivalent(model, 1e-9)


def test_group_directions_are_only_as_good_as_the_answer() -> None:
    model = H([1.0, 1e-2], 1.0)
    norm = ox.Weighted(GroupMax([[0, 1]]), [1.0, 100.0])
    service = Service(ox.ModelOracle(model, M(norm, tolerance=1e-6)), lambda n, x, r: r + np.array([0, 1e-8]))
    holds(ox.extract(service), model, norm)


@pytest.mark.parametrize("name", ["l1", "linf", "l2"])
def test_the_offset_bound_is_about_models_of_length_one(name: str) -> None:
    norm, tolerance = ox.norm(name), 0.02
    model = H([1.0, 0.05, 0.05], 1.0)
    push = lambda n, x, r: r + (r - x) / norm(r - x) * tolerance * (1 if n == 1 else -1)  # noqa: E731
    found = ox.extract(Service(ox.ModelOracle(model, M(norm, tolerance=tolerance)), push))
    assert norm.dual(found.hyperplane.normal) == pytest.approx(1.0)
    holds(found, model, norm)


def test_a_radius_bound_is_given_only_where_it_holds() -> None:
    norm, tolerance = ox.Weighted(ox.l1, [0.01, 100.0]), 0.001
    shown = M(norm, "l2", None, tolerance=tolerance)
    oracle = ox.ModelOracle(H([1.0, 0.0], 0.0), M(norm, "l2", 10.0, tolerance=tolerance), published=shown)
    push = lambda n, x, r: r + (1 if n == 1 else -1) * (r - x) * tolerance / norm(r - x)  # noqa: E731
    found = ox.extract(Service(oracle, push))
    assert found.radius_bound is None or abs(found.radius - 10.0) <= found.radius_bound


def test_classify_and_explain_see_a_point_on_the_same_side() -> None:
    rng = np.random.default_rng(0)
    model = H([1.0, 3.0, 7.0], 0.3)
    oracle = ox.ModelOracle(model, M("l1", "l2", 1.0))
    x = rng.normal(size=(2000, 3))
    x = x - np.outer(model.margin(x) / (model.normal @ model.normal), model.normal)
    assert (oracle.classify(x) == -oracle.classify(oracle.explain(x))).all()


@pytest.mark.parametrize("strategy", ["auto", "points", "paper"])
def test_services_that_reuse_or_overwrite_buffers(strategy: str) -> None:
    buffer = np.zeros(3)
    model = H([1.0, 2.0, -3.0], 4.0)

    def same(n: int, x: np.ndarray, r: np.ndarray) -> np.ndarray:
        buffer[:] = r
        return buffer

    def overwrite(n: int, x: np.ndarray, r: np.ndarray) -> np.ndarray:
        x[:] = r
        return x

    for f in (same, overwrite):
        service = Service(ox.ModelOracle(model, M("l1")), f)
        assert ox.extract(service, strategy=strategy, rng=0).hyperplane.is_equivalent(model, 1e-9)
        recorded = ox.Recorded(service)
        recorded.explain(np.zeros(3))
        assert recorded.log.points.tolist() == [[0.0, 0.0, 0.0]]


def test_a_far_start_shows_in_the_bounds_of_theorem_d() -> None:
    model = H([1.0], 0.1)
    found = ox.extract(ox.ModelOracle(model, M("l2"), published=M(None)), start=[1e12])
    holds(found, model, ox.l2)


def test_recover_keeps_the_digits_of_weighted_services() -> None:
    norm = ox.Weighted(ox.l2, [1e-3, 1, 1e3])
    model = H([0.5, -1.0, 2.0], 1e-5)
    found = ox.recover(ox.extract(ox.ModelOracle(model, M(norm))).log)
    length = norm.dual(model.normal)
    assert norm.dual(found.normal / norm.dual(found.normal) - model.normal / length) < 1e-9


@pytest.mark.parametrize("offset", [1e12, 1e20])
def test_the_papers_procedure_says_when_float64_is_not_enough(offset: float) -> None:
    model = H([1.0, 2.0, 3.0], offset)
    try:
        found = ox.extract(ox.ModelOracle(model, M("l1")), strategy="paper", rng=0)
    except ox.ExtractionFailed:
        return
    assert found.hyperplane.angle_to(model) < 1e-3


@pytest.mark.parametrize("offset", [1e-200, 1e200])
@pytest.mark.parametrize(
    "norm", [GroupMax([[0, 1], [2]]), ox.Weighted(Facets(np.vstack([np.eye(3), -np.eye(3)])), [1, 2, 3])]
)
def test_cones_at_extreme_scales(offset: float, norm: ox.Norm) -> None:
    model = H([1.0, 2.0, 3.0], offset)
    found = ox.extract(ox.ModelOracle(model, M(norm)))
    assert norm.dual(found.hyperplane.normal - model.normal / norm.dual(model.normal)) < 1e-9


class Refuses:
    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise RuntimeError("call detach() first")


@pytest.mark.parametrize("said", [[10**400, 0, 0], Refuses(), np.array([1 + 2j, 0, 0]), object(), {"x": 1}])
def test_odd_answers_are_typed_errors_with_the_log(said: object) -> None:
    service = Service(ox.ModelOracle(H([1.0, 2.0, 3.0], 1.0), M("l1")), lambda n, x, r: r if n == 1 else said)
    with pytest.raises(ox.InvalidInput) as caught:
        ox.extract(service)
    assert len(caught.value.log.explained) == 1


def test_scales_at_the_end_of_float64() -> None:
    assert H([1e-300], 1e100).label([0.0]) == ox.NO
    for offset in (1e303, 1e-310):
        model = H([1.0, 2.0, 3.0], offset)
        found = ox.extract(ox.ModelOracle(model, M("l1")))
        assert found.hyperplane.angle_to(model) < 1e-3
    with pytest.raises(ox.InvalidInput, match="complex"):
        H(np.array([1 + 2j, 1]), 0.0)


def test_a_small_ball_that_drowns_in_rounding_is_no_broken_promise() -> None:
    model = H([1.0, 1.0], 0.0)
    found = ox.extract(ox.ModelOracle(model, M("l1", "l2", 1e-6)), start=[1e12, -1e12])
    assert found.hyperplane.is_equivalent(model, 1e-6)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda o: ox.extract(o, accuracy="x"), ox.InvalidInput),
        (lambda o: ox.extract(o, accuracy=np.nan), ox.InvalidInput),
        (lambda o: ox.extract(o, budget="a"), ox.InvalidInput),
        (lambda o: ox.extract(o, budget=np.inf), ox.InvalidInput),
        (lambda o: ox.extract(o, rng="a"), ox.InvalidInput),
        (lambda o: ox.extract(o, rng=-1), ox.InvalidInput),
        (lambda o: ox.extract(o, bounds=(10**400, 2)), ox.InvalidInput),
        (lambda o: ox.extract(5), ox.InvalidInput),
        (lambda o: ox.ModelOracle(H([1.0], 0), "l1", rng=1.5), ox.InvalidInput),
        (lambda o: ox.Lp("two"), ox.UnsupportedNorm),
        (lambda o: ox.Lp(None), ox.UnsupportedNorm),
        (lambda o: ox.Lp(True), ox.UnsupportedNorm),
        (lambda o: ox.Lp(1e17), ox.UnsupportedNorm),
        (lambda o: ox.Weighted("l1", [1.0]), ox.UnsupportedNorm),
        (lambda o: ox.GroupNorm(5), ox.InvalidInput),
        (lambda o: ox.GroupNorm([["a"]]), ox.InvalidInput),
        (lambda o: ox.GroupNorm([[0.5, 1.7]]), ox.InvalidInput),
        (lambda o: ox.Weighted(ox.l1, [2.0])([1.0, 1.0, 1.0]), ox.DimensionMismatch),
    ],
)
def test_bad_arguments_are_typed_errors(make: Callable, error: type[Exception]) -> None:
    with pytest.raises(error):
        make(ox.ModelOracle(H([1.0, 2.0], 1.0), M("l1")))


def test_bounds_are_kept_to_the_last_bit() -> None:
    rng = np.random.default_rng(3)

    class Fenced(Service):
        low = high = None

        def explain(self, x: np.ndarray) -> object:
            assert (x >= self.low).all()
            assert (x <= self.high).all()
            return super().explain(x)

    for name, shown in (("linf", None), ("l1", None), ("l2", M(None, radius=None))):
        for _ in range(100):
            model = H(rng.normal(size=2), rng.normal() * 3)
            terms = M(name) if shown is None else M(name, "l2", 0.1)
            service = Fenced(ox.ModelOracle(model, terms, published=shown), lambda n, x, r: r)
            service.low = rng.normal(size=2)
            service.high = service.low + rng.uniform(0.1, 3, 2)
            try:
                found = ox.extract(service, bounds=(service.low, service.high), rng=0)
            except ox.ExtractionFailed:
                continue
            assert found.hyperplane.angle_to(model) < 1e-4


def test_a_tolerance_costs_one_answer_and_the_labels_of_the_offset() -> None:
    """From far away a tolerance does not matter for the normal; the offset takes an answer, or labels, near the start."""
    model = H([1.0, 2.0, 3.0], 1.0)
    found = ox.extract(ox.ModelOracle(model, M("linf", tolerance=1e-3)), rng=0)
    assert found.spent.explanations == 4
    assert found.spent.labels < 25
    assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-6
    assert abs(found.hyperplane.offset - 1 / 6) <= found.offset_bound < 1e-5
    named = ox.extract(ox.ModelOracle(model, M("linf", tolerance=1e-3)), strategy="cone")
    assert named.spent.explanations == 3


def test_decimals_copied_from_the_question_are_no_grid() -> None:
    model = H([1.0, 2.0, 4.0, -5.0], 1.0)
    found = ox.extract(ox.ModelOracle(model, M("l1")), start=[0.1, 0.2, 0.3, 0.4])
    assert not any("grid" in note for note in found.assumptions)
    assert found.error_bound < 1e-9


def test_float32_answers_show_also_under_l1() -> None:
    model = H([1.0, 2.0, -3.0, 0.7], 4.1)
    service = Service(ox.ModelOracle(model, M("l1")), lambda n, x, r: r.astype(np.float32))
    found = ox.extract(service)
    assert any("float32" in note for note in found.assumptions)
    holds(found, model, ox.l1)


def test_equal_values_hash_alike() -> None:
    assert hash(H([0.0, 1.0], 0.0)) == hash(H([-0.0, 1.0], 0.0))
    one, two = (ox.Mahalanobis([[1.0, zero], [zero, 1.0]]) for zero in (0.0, -0.0))
    assert one == two
    assert hash(one) == hash(two)


def test_orientation_does_not_rest_on_a_poorly_known_offset() -> None:
    """A ball norm with tiny weights magnifies the tolerance into an offset that is off by more than the distance."""
    model = H([-0.98, 0.0, -1.0], -1.06)
    ball = ox.Weighted(ox.l1, [10.0, 0.0024, 173.0])
    norm = ox.GroupNorm([[0], [2], [1]])
    rng = np.random.default_rng(0)
    for _ in range(30):
        oracle = ox.ModelOracle(model, M(norm, ball, 10.0, tolerance=2e-3))
        service = Service(oracle, lambda n, x, r: r + rng.uniform(-1, 1, 3) * 2e-3 / 3)
        found = ox.extract(service, start=[-0.11, 0.04, 2.13], rng=0)
        assert found.oriented
        assert found.hyperplane.angle_to(model) < 0.1


def test_group_directions_under_weights_are_known_to_rounding_only() -> None:
    norm = ox.Weighted(GroupMax([[1, 2, 0]]), [5.35e2, 1.5e-3, 6.6e-3])
    model = H([1.0, 1.0, -2.0], 1e-5)
    holds(ox.extract(ox.ModelOracle(model, M(norm))), model, norm)
