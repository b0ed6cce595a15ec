"""Extraction over random models, all norms, both tie rules, plain and robust, known and secret radius."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

import overexplain as ox
from overexplain.extraction.graded import DEEPEST, levels_apart
from strategies import examples, services


def own_units(found: ox.Extraction, model: ox.Hyperplane, distance: ox.Norm) -> tuple[float, float]:
    """‖â − a‖* at ‖a‖* = 1, and |b̂ − b| relative to the largest length seen."""
    length = distance.dual(model.normal)
    sign = 1.0 if found.oriented or found.hyperplane.angle_to(model) < 1.5 else -1.0
    normal = distance.dual(sign * found.hyperplane.normal - model.normal / length)
    rows = found.log.explained
    largest = max(distance(found.log.points[rows]).max(), distance(found.log.explanations[rows]).max(), 1e-300)
    return normal, abs(sign * found.hyperplane.offset - model.offset / length) / largest


def allowed_answers(found: ox.Extraction, model: ox.Hyperplane, terms: ox.Mechanism, published: ox.Mechanism) -> int:
    """What Theorems A–C say for the first answer that is off the plane."""
    distance = terms.distance
    log = found.log
    steps = log.explanations[log.explained] - log.points[log.explained]
    first_on_plane = not steps[0].any()
    if first_on_plane:
        if model.dimension == 1:
            return 1
        if distance.is_smooth:  # 2, unless q < 2 and a is so sparse that the levels of the graded start run out
            levels = DEEPEST // levels_apart(distance) if distance.holder < 1 else model.dimension
            return 2 if int((model.normal == 0).sum()) < levels else 3
        dimension = distance.normal_cone(steps[1]).dimension
        return max(2, dimension)
    return distance.normal_cone(steps[0]).dimension + int(published.radius is None)


@examples(400)
@given(services(), st.integers(0, 2**16))
def test_plane_within_1e9_and_never_more_answers_than_the_theorem_says(service: tuple, seed: int) -> None:
    model, terms, published, ties = service
    found = ox.extract(ox.ModelOracle(model, terms, ties=ties, rng=seed, published=published), rng=seed, orient=False)
    normal, offset = own_units(found, model, terms.distance)
    assert normal <= 1e-9
    assert offset <= 1e-9
    assert found.spent.labels == 0
    assert found.spent.explanations <= allowed_answers(found, model, terms, published)
    assert found.exact
    assert not found.oriented
    assert len(found.unidentified) == 0
    event(found.method.split(":")[0])


@examples(200)
@given(services(), st.integers(0, 2**16))
def test_one_label_orients_and_the_bounds_hold(service: tuple, seed: int) -> None:
    model, terms, published, ties = service
    found = ox.extract(ox.ModelOracle(model, terms, ties=ties, rng=seed, published=published), rng=seed)
    assert found.oriented
    echoed = any(np.array_equal(found.log.points[i], found.log.explanations[i]) for i in found.log.explained)
    assert found.spent.labels <= 1 + echoed  # two at most: one on each side of a start that was answered by itself
    assert found.hyperplane.angle_to(model) < 1.5
    if found.error_bound is not None:
        assert found.error_bound > 0
        assert found.hyperplane.angle_to(model) <= found.error_bound
    length = terms.distance.dual(model.normal)
    assert abs(found.hyperplane.offset - model.offset / length) <= found.offset_bound
    if published.radius is None and found.radius is not None and found.radius_bound is not None:
        assert abs(found.radius - terms.radius) <= found.radius_bound * (1 + 1e-9)


@examples(150)
@given(services(), st.integers(0, 2**16), st.sampled_from(["elsewhere", "on the plane", "next to it"]))
def test_any_start_will_do(service: tuple, seed: int, where: str) -> None:
    """From another start at most two more answers: one if it lies on the plane, one if ℓq with q < 2 loses digits there."""
    model, terms, published, ties = service
    oracle = ox.ModelOracle(model, terms, ties=ties, rng=seed, published=published)
    units = terms.distance.units(model.dimension)
    start = np.random.default_rng(seed).normal(size=model.dimension) / units
    if where != "elsewhere":
        start = start - model.margin(start) / (model.normal @ model.normal) * model.normal
    if where == "next to it":
        start = start + 1e-9 * np.abs(start).max() * model.normal / np.linalg.norm(model.normal)
    found = ox.extract(oracle, start=start, rng=seed, orient=False)
    normal, offset = own_units(found, model, terms.distance)
    assert normal <= 1e-9
    assert offset <= 1e-9
    log = found.log
    steps = log.explanations[log.explained] - log.points[log.explained]
    largest = max((terms.distance.normal_cone(step).dimension for step in steps if step.any()), default=1)
    assert found.spent.explanations <= largest + int(published.radius is None) + 2


@examples(60)
@given(services(), st.integers(0, 2**16))
def test_without_a_record_the_same_is_found(service: tuple, seed: int) -> None:
    model, terms, published, ties = service
    kept, dropped = (
        ox.extract(ox.ModelOracle(model, terms, ties=ties, rng=seed, published=published), rng=seed, record=record)
        for record in (True, False)
    )
    assert dropped.log is None
    assert kept.hyperplane == dropped.hyperplane
    assert kept.spent == dropped.spent


@examples(150)
@given(services(), st.integers(0, 2**16))
def test_recover_reads_the_model_off_the_log_and_not_off_less(service: tuple, seed: int) -> None:
    model, terms, published, ties = service
    found = ox.extract(ox.ModelOracle(model, terms, ties=ties, rng=seed, published=published), rng=seed)
    again = ox.recover(found.log)
    if terms.distance.holder < 1 and not found.log.explanations[0].any():
        return  # ℓq with q < 2 through 0 takes more than linear algebra on the rows
    assert again is not None
    length, largest = terms.distance.dual(again.normal), max(np.abs(found.log.points).max(), 1.0)
    assert terms.distance.dual(again.normal / length - found.hyperplane.normal) < 1e-6
    assert abs(again.offset / length - found.hyperplane.offset) < 1e-6 * largest * max(
        terms.distance.units(model.dimension)
    )
    less = ox.QueryLog(mechanism=published)
    for i in found.log.explained[:-1]:
        less.add_explanation(found.log.points[i], found.log.explanations[i])
    partial = ox.recover(less, orient=False)
    assert partial is None or min(partial.angle_to(model), partial.flipped().angle_to(model)) < 1e-6


@examples(300)
@given(services(), st.integers(0, 2**16), st.sampled_from([1e-9, 1e-6, 1e-3, 1e-2]))
def test_bounds_hold_for_any_answers_within_the_declared_tolerance(service: tuple, seed: int, size: float) -> None:
    model, terms, published, ties = service
    rng = np.random.default_rng(seed)
    distance = terms.distance
    tolerance = size * max(abs(model.offset) / distance.dual(model.normal), 1e-3)
    exact = ox.ModelOracle(model, terms, ties=ties, rng=seed)
    shown = ox.Mechanism(distance, published.robustness, published.radius, tolerance=tolerance)

    class Moved:
        """Every answer is moved by nearly the whole tolerance: at random, outward, inward, or along one feature."""

        dimension, mechanism = model.dimension, shown
        classify = staticmethod(exact.classify)

        def explain(self, x: np.ndarray) -> np.ndarray:
            answer = exact.explain(x)
            step = answer - x
            push = [rng.normal(size=len(x)), step, -step, np.eye(len(x))[rng.integers(len(x))]][int(rng.integers(4))]
            return answer + push * (0.99 * tolerance / distance(push)) if push.any() else answer

    try:
        found = ox.extract(Moved(), rng=seed)
    except (ox.BrokenPromise, ox.NoExplanation, ox.ExtractionFailed) as refused:
        event(type(refused).__name__)
        assert not isinstance(refused, ox.BrokenPromise)
        return
    event("bound" if found.error_bound is not None else "no bound")
    if found.error_bound is not None:
        assert found.hyperplane.angle_to(model) <= found.error_bound
        assert abs(found.hyperplane.offset - model.offset / distance.dual(model.normal)) <= found.offset_bound
