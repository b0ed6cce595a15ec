"""Services that once got a false bound, a crash or a wrong row out of `extract`."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox

UNKNOWN = ox.Mechanism(None, slack=None)
MODEL = ox.Hyperplane([1.0, -2.0, 0.5], 1.3)


class Asymmetric:
    """Overshoots farther on one side than on the other."""

    dimension, mechanism = 3, UNKNOWN

    def __init__(self, distance: str, no: float, yes: float) -> None:
        self.inner, self.no, self.yes = ox.ModelOracle(MODEL, distance), no, yes
        self.classify = self.inner.classify

    def explain(self, x):
        z = self.inner.explain(x)
        past = self.no if MODEL.label(x) < 0 else self.yes
        return z + (z - x) / np.linalg.norm(z - x) * past


@pytest.mark.parametrize(("distance", "no", "yes"), [("l2", 0.1, 0.05), ("l1", 1e-3, 5e-4), ("linf", 0.3, 0.0)])
def test_margins_that_differ_between_the_sides_do_not_give_a_false_offset(distance, no, yes) -> None:
    for seed in range(6):
        found = ox.extract(Asymmetric(distance, no, yes), rng=seed)
        assert found.hyperplane.angle_to(MODEL) <= found.error_bound
        offset = MODEL.offset / np.linalg.norm(MODEL.normal)
        assert abs(found.hyperplane.offset - offset) <= found.offset_bound


def test_without_labels_an_overshoot_gives_no_bound_on_the_offset() -> None:
    class Silent(Asymmetric):
        def __init__(self) -> None:
            super().__init__("l2", 0.1, 0.05)
            del self.classify

    found = ox.extract(Silent(), rng=1)
    assert found.offset_bound is None
    assert any("both sides" in note for note in found.assumptions)


@pytest.mark.parametrize("decimals", [0, 3])
def test_one_hot_services_that_promise_nothing_are_asked_for_labels(decimals) -> None:
    truth = ox.Hyperplane([0.2, 0.6138398, -0.1783078, 0.9], 0.1)
    inner = ox.OneHot(ox.ModelOracle(truth, "linf"), [[0, 1]], [], -8, 8)
    found = ox.extract(ox.Rounded(inner, decimals, published=UNKNOWN), rng=20)
    points = inner.domain.sample(0, 300)
    sure = np.abs(truth.margin(points)) > 1e-4
    assert (found.hyperplane.labels(points) == truth.labels(points))[sure].all()
    assert found.spent.explanations == 0


def test_a_radius_is_no_slack_and_nothing_for_revealed() -> None:
    robust = ox.ModelOracle(MODEL, ox.Mechanism("l2", "l2", 0.3))
    with pytest.raises(ox.ExtractionFailed, match="on the plane"):
        ox.extract(robust, strategy="revealed", bounds=0.4, rng=0)
    slack = ox.Suboptimal(ox.ModelOracle(MODEL, ox.Mechanism("l2", "l2", 0.01)), 0.05, rng=6)
    with pytest.raises(ox.InvalidInput, match="no radius"):
        ox.extract(slack, strategy="chain", rng=6)
    for seed in range(10):
        found = ox.extract(slack, accuracy=0.05, rng=seed)
        assert found.hyperplane.angle_to(MODEL) <= found.error_bound
        assert abs(found.hyperplane.offset - MODEL.offset / np.linalg.norm(MODEL.normal)) <= found.offset_bound


@pytest.mark.parametrize("strategy", ["cone", "points", "labels", "warm", "average", "lowd-meek", "approach"])
def test_strategies_that_ask_anything_are_refused_where_inputs_are_discrete(strategy) -> None:
    service = ox.OneHot(ox.ModelOracle(ox.Hyperplane([3.0, -1.0, 1.0], 40.0), "linf"), [[0, 1]])
    with pytest.raises(ox.InvalidInput, match="slices"):
        ox.extract(service, strategy=strategy, start=[1.0, 0.0, 0.0], rng=0)
    with pytest.raises(ox.InvalidInput, match="one-hot"):
        ox.extract(service, bounds=(-1.0, 0.5), rng=0)


def test_answers_that_are_nearly_exact_widen_the_bound() -> None:
    truth = ox.Hyperplane([-1.0, 1.0, -1.0], 0.7)
    for seed in range(12):
        noisy = ox.Noisy(ox.ModelOracle(truth, "l2"), 3e-9, rng=seed, published=UNKNOWN)
        found = ox.extract(noisy, accuracy=1e-4, rng=seed)
        assert found.hyperplane.angle_to(truth) <= found.error_bound


@pytest.mark.parametrize("strategy", ["labels", "warm", "auto", "cone"])
def test_a_declared_distance_is_the_unit_of_the_result(strategy) -> None:
    found = ox.extract(ox.ModelOracle(MODEL, "l1"), strategy=strategy, rng=0)
    assert ox.linf(found.hyperplane.normal) == pytest.approx(1.0, abs=1e-8)
    offset = MODEL.offset / ox.linf(MODEL.normal)
    assert abs(found.hyperplane.offset - offset) <= found.offset_bound
    unsaid = ox.extract(ox.Published(ox.ModelOracle(MODEL, "l1"), UNKNOWN), rng=0)
    assert np.linalg.norm(unsaid.hyperplane.normal) == pytest.approx(1.0, abs=1e-8)


def test_a_service_that_echoes_every_question_gives_no_plane() -> None:
    model = ox.Hyperplane([1.0, -2.0, 0.5, 0.8], 1.3)
    with pytest.raises(ox.OverexplainError):
        ox.extract(ox.Flaky(ox.ModelOracle(model, "l1"), 1.0, "echo"), strategy="points", rng=0)


@pytest.mark.parametrize("strategy", ["warm", "average", "cone"])
def test_strategies_that_need_explanations_say_so(strategy) -> None:
    class Scores:
        dimension, mechanism = 3, None

        def classify(self, x):
            return MODEL.label(x)

    with pytest.raises(ox.NoExplanation):
        ox.extract(Scores(), strategy=strategy)


@pytest.mark.parametrize("answer", [np.zeros(5), "no", [[1.0, 2.0, 3.0]], np.full(3, 1e300), np.full(3, 1e-320)])
def test_garbage_is_no_answer_and_every_request_is_in_the_log(answer) -> None:
    class Garbage:
        dimension, mechanism = 3, UNKNOWN

        def classify(self, x):
            return MODEL.label(x)

        def explain(self, x):
            return answer

    found = ox.extract(Garbage(), rng=0)
    assert len(found.log) == found.spent.requests
    assert found.hyperplane.angle_to(MODEL) <= found.error_bound


def test_numbers_beyond_float64_are_said_to_be_so() -> None:
    class Huge:
        dimension, mechanism = 3, ox.Mechanism(None)

        def explain(self, x):
            return np.full(3, 1e300) + np.abs(x).max() * 1e299

    with pytest.raises(ox.OverexplainError):
        ox.extract(Huge(), strategy="points", rng=0)


def test_decimals_have_a_limit() -> None:
    with pytest.raises(ox.InvalidInput, match="between"):
        ox.Rounded(ox.ModelOracle(MODEL, "l1"), -400)


def test_an_echo_is_a_boundary_point_only_if_labels_on_both_sides_of_it_differ() -> None:
    model = ox.Hyperplane([1.0, -2.0, 0.5, 0.8], 1.3)
    for seed in range(8):
        service = ox.Flaky(ox.ModelOracle(model, "l1"), 0.4, "echo", rng=seed)
        found = ox.extract(service, rng=seed)
        assert found.hyperplane.angle_to(model) <= found.error_bound < 1e-6
    through_zero = ox.Hyperplane([1.0, -2.0, 0.5, 0.8], 0.0)
    found = ox.extract(ox.ModelOracle(through_zero, "l1"), rng=0)
    assert found.hyperplane.is_equivalent(through_zero)
    assert found.spent == ox.Spent(explanations=4, labels=2)


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_a_declared_radius_that_leaves_no_room_is_refuted(distance: str) -> None:
    """D(x) ≥ ρ‖a‖*_N2: a plain service that claims a radius of 1 is caught by any answer nearer than that."""
    model = ox.Hyperplane([1.0, 0.3, -0.2], 0.5)
    plain = ox.ModelOracle(model, distance)
    claimed = ox.Mechanism(distance, robustness=distance, radius=1.0)
    with pytest.raises(ox.BrokenPromise, match="no room for the declared radius") as caught:
        ox.extract(ox.Published(plain, claimed), strategy="cone", rng=0)
    assert caught.value.fact == "Robust"
    found = ox.extract(ox.Published(plain, claimed), rng=0)
    assert found.hyperplane.is_equivalent(model)
    assert any("set aside" in note for note in found.assumptions)
    for robustness in (
        "l1",
        "l2",
        "linf",
    ):  # a service that keeps its promise is believed, from a start on the plane too
        kept = ox.ModelOracle(model, ox.Mechanism(distance, robustness=robustness, radius=1.0))
        for start in ([0.0, 0.0, 0.0], [0.5, 0.0, 0.0]):
            assert ox.extract(kept, strategy="cone", start=start, rng=0).hyperplane.is_equivalent(model)


BOXED = {"plain": lambda oracle: oracle, "rounded": lambda oracle: ox.Rounded(oracle, 5)}


def honest(found: ox.Extraction, truth: ox.Hyperplane) -> bool:
    return found.error_bound is None or found.hyperplane.angle_to(truth) <= found.error_bound


@pytest.mark.parametrize("kind", list(BOXED))
@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_questions_on_the_wall_of_a_box(distance: str, kind: str) -> None:
    """A feature that cannot move because it is at its limit already is cut off as much as one that moves up to it."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        normal = rng.normal(size=4)
        truth = ox.Hyperplane(normal, float(normal @ rng.uniform(0.2, 0.8, 4)))
        service = BOXED[kind](ox.Boxed(ox.ModelOracle(truth, distance), 0.0, 1.0))
        for start in (np.zeros(4), None):
            found = ox.extract(service, start=start, accuracy=1e-3, rng=seed)
            assert found.error_bound is not None
            assert honest(found, truth)
        for budget in (6, 25, 40):
            try:
                found = ox.extract(service, budget=budget, accuracy=1e-3, rng=seed)
            except ox.BudgetExhausted as end:
                assert end.found is None or honest(end.found, truth)
            else:
                assert honest(found, truth)


def test_a_box_is_noticed_without_a_record() -> None:
    truth = ox.Hyperplane([2.0, 1.0, 3.0], 5.0)
    service = ox.Boxed(ox.ModelOracle(truth, "l1"), 0.0, 1.2)
    found = ox.extract(service, start=[0.1, 0.1, 0.1], record=False, rng=0)
    assert found.hyperplane.angle_to(truth) <= found.error_bound < 1e-6
    assert "end at a limit of the inputs" in found.assumptions[0]


@pytest.mark.parametrize("strategy", ["cone", "points"])
def test_a_fixed_strategy_refuses_answers_that_a_box_cut_off(strategy: str) -> None:
    service = ox.Boxed(ox.ModelOracle(ox.Hyperplane([2.0, 1.0, 3.0], 5.0), "l2"), 0.0, 1.2)
    with pytest.raises(ox.BrokenPromise, match="end at a limit of the inputs"):
        ox.extract(service, strategy=strategy, start=[1.2, 0.0, 0.3], rng=0)


@pytest.mark.parametrize("size", [1.0, 100.0, 3e4])
def test_float32_answers_of_any_size_are_seen(size: float) -> None:
    """From 8 on, every float32 is a multiple of 2^-20, as short binary fractions are."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        level = size * float(rng.uniform(0.8, 1.2))
        line = ox.Float32(ox.ModelOracle(ox.Hyperplane([1.0], level), "l1"), published=UNKNOWN)
        found = ox.extract(line, rng=seed)
        assert found.offset_bound is None or abs(found.hyperplane.offset - level) <= found.offset_bound
        for distance in ("l1", "l2", "linf"):
            truth = ox.Hyperplane(rng.normal(size=3), level)
            assert honest(ox.extract(ox.Float32(ox.ModelOracle(truth, distance)), rng=seed), truth)
