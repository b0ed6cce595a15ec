"""Classifiers of several classes, rebuilt: exact, with the fewest explanations there can be, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from overexplain.errors import (
    BrokenPromise,
    BudgetExhausted,
    EndpointFailed,
    ExtractionFailed,
    InvalidInput,
    OverexplainError,
)
from overexplain.extraction.extract import extract
from overexplain.extraction.multiclass.extract import extract_multiclass
from overexplain.extraction.multiclass.facets import Facet
from overexplain.extraction.multiclass.graph import blocks, edge, full_cycle, is_tied, plan
from overexplain.extraction.multiclass.scales import solve_scales
from overexplain.geometry.argmax import ArgmaxModel
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Mahalanobis, Weighted, l2
from overexplain.models.load import load_multiclass
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.multiclass import ArgmaxOracle


def drawn(seed: int, classes: int, features: int) -> ArgmaxModel:
    rng = np.random.default_rng(seed)
    return ArgmaxModel(rng.normal(size=(classes, features)), 0.5 * rng.normal(size=classes))


@dataclass
class Watched:
    """Counts what it is asked, spoils explanations if told to, and fails when it is time."""

    inner: Any
    spoil: Any = None
    fails_at: int | None = None
    asked: list[tuple[Any, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def classify(self, x: Any) -> Any:
        self._note(x, None)
        return self.inner.classify(x)

    def explain(self, x: Any, target: int) -> Any:
        self._note(x, target)
        answer = self.inner.explain(x, target)
        return answer if self.spoil is None or answer is None else self.spoil(answer)

    def _note(self, x: Any, target: int | None) -> None:
        self.asked.append((np.array(x), target))
        if self.fails_at is not None and len(self.asked) > self.fails_at:
            raise RuntimeError("gone")


@pytest.mark.parametrize(
    ("classes", "features"), [(2, 3), (2, 10), (3, 4), (3, 10), (5, 5), (5, 10), (10, 10), (10, 30)]
)
def test_as_many_explanations_as_classes_and_every_digit(classes: int, features: int) -> None:
    """The least there can be: 1 for two classes, K for K ≥ 3."""
    for seed in range(2):
        model = drawn(seed, classes, features)
        watched = Watched(ArgmaxOracle(model, "l2"))
        found = extract_multiclass(watched, rng=seed)
        assert found.spent.explanations == (1 if classes == 2 else classes)
        assert found.spent.requests == len(watched.asked)
        error = found.model.distance_to(model)
        assert error < 1e-10
        assert found.error_bound is not None
        assert error <= found.error_bound
        assert found.exact
        assert found.unreached == ()
        points = 3 * np.random.default_rng(9).normal(size=(2000, features))
        assert np.array_equal(found.model.labels(points), model.labels(points))


def test_more_classes_than_a_cycle_can_tie() -> None:
    """K > p + 2: a cycle leaves factors open, and K − 1 + ⌈(K − 2)/p⌉ is the least."""
    model = drawn(3, 12, 4)
    found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    reached = [k for k in range(12) if k not in found.unreached]
    assert len(found.facets) >= len(reached) - 1 + -(-(len(reached) - 2) // 4)
    kept, true = (ArgmaxModel(m.weights[reached], m.intercepts[reached]) for m in (found.model, model))
    assert kept.distance_to(true) < 1e-7
    points = 3 * np.random.default_rng(9).normal(size=(2000, 4))
    assert np.array_equal(found.model.labels(points), model.labels(points))


@dataclass
class Generous:
    """Rounds its own answers, corners of a class among them, to the class they were asked for."""

    inner: ArgmaxOracle
    answers: list[tuple[Any, int]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def explain(self, x: Any, target: int) -> Any:
        answer = self.inner.explain(x, target)
        if answer is not None:
            self.answers.append((answer, target))
        return answer

    def classify(self, x: Any) -> Any:
        near = [k for z, k in self.answers if np.abs(z - x).max() < 1e-13 * (1 + np.abs(z).max())]
        return near[0] if near else self.inner.classify(x)


@pytest.mark.parametrize("seed", [3, 27, 41, 45, 58])
def test_a_corner_is_no_example_of_its_class(seed: int) -> None:
    """Explanations towards a rare class end at its corner again and again, whose label is a matter of rounding."""
    model = drawn(seed, 12, 4)
    found = extract_multiclass(Generous(ArgmaxOracle(model, "l2")), rng=seed)
    assert found.exact
    reached = [k for k in range(12) if k not in found.unreached]
    kept, true = (ArgmaxModel(m.weights[reached], m.intercepts[reached]) for m in (found.model, model))
    assert kept.distance_to(true) < 1e-7
    points = 3 * np.random.default_rng(seed).normal(size=(20_000, 4))
    assert np.array_equal(found.model.labels(points), model.labels(points))


def test_a_class_that_is_known_to_be_there_but_was_not_found() -> None:
    """Nobody lands inside a cell of radius 1e-9; the service leads to it all the same, and the result says so."""
    model = ArgmaxModel([[1.0, 0.1], [-0.5, 0.8], [-0.4, -0.9], [0.0, 0.0]], [0.0, 0.0, 0.0, 1e-9])
    found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    assert found.unreached == (3,)
    assert not found.exact
    assert found.error_bound is None
    assert any("explanations lead to the classes [3]" in note for note in found.assumptions)


@pytest.mark.parametrize(
    "mechanism", [Mechanism(Weighted(l2, [1.0, 5.0, 0.3, 2.0])), Mechanism(Mahalanobis(np.eye(4) + 0.5))], ids=str
)
def test_other_smooth_distances(mechanism: Mechanism) -> None:
    model = drawn(1, 4, 4)
    found = extract_multiclass(ArgmaxOracle(model, mechanism), rng=0)
    assert found.spent.explanations == 4
    error = found.model.distance_to(model)
    assert error < 1e-9
    assert error <= found.error_bound


@pytest.mark.parametrize(("name", "classes", "features"), [("l1", 2, 5), ("l1", 3, 5), ("linf", 4, 6), ("l1", 5, 8)])
def test_points_alone_take_as_many_answers_as_there_are_unknowns(name: str, classes: int, features: int) -> None:
    model = drawn(2, classes, features)
    for published in (Mechanism(name), Mechanism(None)):
        found = extract_multiclass(ArgmaxOracle(model, name, published=published), rng=1)
        assert found.spent.explanations == (classes - 1) * (features + 1) - 1
        error = found.model.distance_to(model)
        assert error < 1e-8
        assert error <= found.error_bound


@pytest.mark.parametrize("exponent", [-20, 20])
def test_scale_of_the_features_changes_nothing(exponent: int) -> None:
    """Examples twice as large ask for points twice as far: the same questions, the same number, the same model."""
    model, scale = drawn(4, 4, 5), 2.0**exponent
    examples = 3 * np.random.default_rng(0).normal(size=(60, 5))
    scaled = ArgmaxModel(model.weights / scale, model.intercepts)
    for name in ("l2", "l1"):
        plain = extract_multiclass(ArgmaxOracle(model, name), examples=examples, rng=0)
        found = extract_multiclass(ArgmaxOracle(scaled, name), examples=scale * examples, rng=0)
        assert found.spent == plain.spent
        assert ArgmaxModel(found.model.weights * scale, found.model.intercepts).distance_to(model) < 1e-9


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_no_hint_about_the_scale_is_needed(scale: float) -> None:
    model = drawn(5, 4, 5)
    scaled = ArgmaxModel(model.weights / scale, model.intercepts)
    found = extract_multiclass(ArgmaxOracle(scaled, "l2"), rng=0)
    assert found.unreached == ()
    points = scale * 3 * np.random.default_rng(9).normal(size=(2000, 5))
    assert np.array_equal(found.model.labels(points), scaled.labels(points))


def test_three_classes_of_which_two_meet_far_away() -> None:
    """Iris: ways between the first and the last class lead through the second; where the planes meet, they touch."""
    data = load_iris()
    model = load_multiclass(LinearDiscriminantAnalysis().fit(data.data, data.target)).argmax
    found = extract_multiclass(ArgmaxOracle(model, "l2"), examples=data.data, rng=0)
    assert found.spent.explanations == 3
    assert found.model.distance_to(model) < 1e-10
    assert found.exact
    inside = Watched(ArgmaxOracle(model, "l2"))
    limits = data.data.min(axis=0), data.data.max(axis=0)
    loose = extract_multiclass(inside, examples=data.data, bounds=limits, rng=0)
    assert not loose.exact
    assert loose.error_bound is None
    assert any("not known" in note for note in loose.assumptions)
    assert np.array_equal(loose.model.labels(data.data), model.labels(data.data))
    asked = np.array([x for x, _ in inside.asked])
    assert ((asked >= limits[0]) & (asked <= limits[1])).all()


def test_parallel_boundaries_show_every_decision_and_no_scale() -> None:
    model = ArgmaxModel(np.outer([-2.0, -1.0, 0.5, 3.0], [1.0, -2.0, 0.5]), [0.0, 1.0, 1.2, -1.0])
    found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    assert not found.exact
    assert found.spent.explanations >= 3
    points = 3 * np.random.default_rng(0).normal(size=(5000, 3))
    assert np.array_equal(found.model.labels(points), model.labels(points))
    with pytest.raises(ExtractionFailed, match="do not tie"):
        extract_multiclass(ArgmaxOracle(model, "l2"), rng=0, accuracy=1e-3)


def test_a_class_that_never_wins_is_reported_not_guessed() -> None:
    weights = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0], [0.0, 0.0], [1.0, 0.0]])
    model = ArgmaxModel(
        weights, [0.0, 0.0, 0.0, -5.0, -1.0]
    )  # the fourth lies below the others, the fifth below the first
    found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    assert found.unreached == (3, 4)
    assert found.error_bound is None
    assert any("[3, 4]" in note for note in found.assumptions)
    points = 5 * np.random.default_rng(0).normal(size=(5000, 2))
    assert np.array_equal(found.model.labels(points), model.labels(points))


def test_two_classes_with_the_same_scores() -> None:
    """The second of them is never said: ties go to the first."""
    model = ArgmaxModel([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0], [1.0, 0.0]], [0.0, 0.2, 0.0, 0.0])
    found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    assert found.unreached == (3,)
    points = 5 * np.random.default_rng(0).normal(size=(5000, 2))
    assert np.array_equal(found.model.labels(points), model.labels(points))


def test_a_small_class_is_found_by_asking_for_it() -> None:
    model = ArgmaxModel([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0], [0.0, 0.0]], [0.0, 0.0, 0.0, 0.0, 1e-3])
    found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    assert found.unreached == ()
    assert found.model.distance_to(model) < 1e-6


@pytest.mark.parametrize("noise", [1e-8, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("name", ["l2", "l1"])
def test_a_service_that_is_not_exact_is_refused(noise: float, name: str) -> None:
    model, rng = drawn(6, 4, 6), np.random.default_rng(0)
    service = Watched(ArgmaxOracle(model, name), spoil=lambda answer: answer + noise * rng.normal(size=6))
    with pytest.raises((BrokenPromise, ExtractionFailed)) as caught:
        extract_multiclass(service, rng=0)
    assert len(caught.value.log) >= 10


def test_answers_of_float32_are_refused() -> None:
    model = drawn(6, 4, 6)
    service = Watched(ArgmaxOracle(model, "l2"), spoil=lambda answer: answer.astype(np.float32).astype(np.float64))
    with pytest.raises((BrokenPromise, ExtractionFailed)):
        extract_multiclass(service, rng=0)


def test_the_budget_is_never_exceeded_and_nothing_is_lost() -> None:
    model = drawn(7, 5, 6)
    whole = extract_multiclass(ArgmaxOracle(model, "l2"), rng=0)
    needed = whole.spent.requests
    assert len(whole.answers) == needed
    for budget in (0, 1, 7, needed // 2, needed - 1):
        watched = Watched(ArgmaxOracle(model, "l2"))
        with pytest.raises(BudgetExhausted, match="was not sent") as caught:
            extract_multiclass(watched, rng=0, budget=budget)
        assert len(watched.asked) == len(caught.value.log) == budget
        for (x, target), kept, before in zip(watched.asked, caught.value.log, whole.answers, strict=False):
            assert np.array_equal(x, kept.x)
            assert np.array_equal(x, before.x)
            assert target == kept.target == before.target
    assert extract_multiclass(ArgmaxOracle(model, "l2"), rng=0, budget=needed).model == whole.model
    assert extract_multiclass(ArgmaxOracle(model, "l2"), rng=0, record=False).answers is None


def test_a_service_that_fails_leaves_what_it_said() -> None:
    with pytest.raises(EndpointFailed, match="gone") as caught:
        extract_multiclass(Watched(ArgmaxOracle(drawn(0, 4, 3), "l2"), fails_at=20), rng=0)
    assert len(caught.value.log) == 20


def test_the_wanted_accuracy_is_proved_or_refused() -> None:
    model = drawn(8, 5, 10)
    assert extract_multiclass(ArgmaxOracle(model, "l2"), accuracy=1e-4, rng=0).error_bound <= 1e-4
    for name, secret in (("l2", model), ("l1", drawn(8, 3, 3))):
        with pytest.raises(
            ExtractionFailed, match=r"proved \d.* rad, asked for 1e-15: the scores are determined"
        ) as caught:
            extract_multiclass(ArgmaxOracle(secret, name), accuracy=1e-15, rng=0)
        assert "do not tie" not in str(caught.value)
        assert caught.value.log


def test_what_is_refused() -> None:
    model = drawn(0, 3, 2)
    for terms in (Mechanism("l2", slack=0.1), Mechanism("l2", slack=None), Mechanism("l2", tolerance=0.01)):
        with pytest.raises(ExtractionFailed, match="declares"):
            extract_multiclass(ArgmaxOracle(model, "l2", published=terms))
    with pytest.raises(ExtractionFailed, match="robust"):
        extract_multiclass(ArgmaxOracle(model, "l2", published=Mechanism("l2", "l2", 0.1)))
    with pytest.raises(InvalidInput, match="positive"):
        extract_multiclass(ArgmaxOracle(model, "l2"), accuracy=0.0)
    with pytest.raises(InvalidInput, match="outside the bounds"):
        extract_multiclass(ArgmaxOracle(model, "l2"), start=[5.0, 5.0], bounds=(-1, 1))
    with pytest.raises(InvalidInput, match="examples"):
        extract_multiclass(ArgmaxOracle(model, "l2"), examples=[[5.0, 5.0]], bounds=(-1, 1))

    with pytest.raises(InvalidInput, match="ModelOracle does not say how many `classes` it has"):
        extract_multiclass(ModelOracle(Hyperplane([1.0, 2.0], 1.0), Mechanism("l2")))
    with pytest.raises(InvalidInput, match="has 3 classes, not Yes and No: use extract_multiclass"):
        extract(ArgmaxOracle(model, "l2"))

    class Labels:
        dimension, classes, mechanism = 2, 3, None

        def classify(self, x: Any) -> Any:
            return model.label(x)

    with pytest.raises(InvalidInput, match="labels and explanations"):
        extract_multiclass(Labels())

    class Wrong(Labels):
        mechanism = Mechanism("l2")

        def classify(self, x: Any) -> Any:
            return 7

        def explain(self, x: Any, target: int) -> Any:
            return x

    with pytest.raises(InvalidInput, match="from 0 to 2"):
        extract_multiclass(Wrong())

    for classes in (1, 2.5, True, "ab"):
        odd = Wrong()
        odd.classes = classes
        with pytest.raises(InvalidInput, match="number of classes must be a whole number, at least 2"):
            extract_multiclass(odd)

    class One(Wrong):
        def classify(self, x: Any) -> Any:
            return 1

        def explain(self, x: Any, target: int) -> Any:
            return None

    with pytest.raises(ExtractionFailed, match="only class 1"):
        extract_multiclass(One(), rng=0)


@settings(max_examples=15)
@given(st.integers(0, 2**20))
def test_any_model_is_rebuilt_or_refused_never_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes, features = int(rng.integers(2, 7)), int(rng.integers(2, 8))
    weights = rng.normal(size=(classes, features)) * (rng.random((classes, features)) < 0.7)
    if (weights == weights[0]).all():
        return
    model = ArgmaxModel(weights, rng.normal(size=classes))
    try:
        found = extract_multiclass(ArgmaxOracle(model, "l2"), rng=seed)
    except OverexplainError as refused:
        assert isinstance(refused, ExtractionFailed)
        return
    points = 3 * rng.normal(size=(500, features))
    scores = np.sort(model.centred().scores(points), axis=1)
    clear = scores[:, -1] - scores[:, -2] > 1e-6
    assert np.array_equal(found.model.labels(points)[clear], model.labels(points)[clear])


def _removed(edges: set[tuple[int, int]], vertices: list[int], cut: int) -> bool:
    """True if the vertices but `cut` hang together: by brute force."""
    left = [v for v in vertices if v != cut]
    reached, waiting = {left[0]}, [left[0]]
    while waiting:
        here = waiting.pop()
        for pair in edges:
            if here in pair and cut not in pair:
                other = pair[0] if pair[1] == here else pair[1]
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
    return len(reached) == len(left)


@given(st.integers(3, 7), st.integers(0, 2**20))
def test_blocks_against_removing_every_vertex(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vertices = list(range(count))
    edges = {pair for pair in combinations(vertices, 2) if rng.random() < 0.5}
    parts = blocks(edges, vertices)
    assert sorted(pair for part in parts for pair in part) == sorted(edges)
    touched = {v for pair in edges for v in pair} == set(vertices)
    assert is_tied(edges, vertices) == (touched and all(_removed(edges, vertices, cut) for cut in [-1, *vertices]))
    chosen = plan(set(), edges, vertices, rng)
    assert set(chosen) <= edges
    assert is_tied(chosen, vertices) == is_tied(edges, vertices)
    cycle = full_cycle(edges, set(), vertices)
    if cycle is not None:
        assert len(set(cycle)) == len(chosen) == count
        assert all(sum(v in pair for pair in cycle) == 2 for v in vertices)


def facet(model: ArgmaxModel, first: int, second: int, rng: np.random.Generator) -> Facet:
    plane = model.plane(first, second)
    normal = plane.normal / np.linalg.norm(plane.normal)
    x = rng.normal(size=model.dimension)
    point = x - (plane.margin(x) / np.linalg.norm(plane.normal)) * normal
    return Facet(first, second, point, normal, 1e-14, 1e-14)


def test_fewer_boundaries_than_classes_leave_a_scale_open() -> None:
    """A tree, or two cycles with one class in common, tie nothing together; one cycle through all does, for K ≤ p + 2."""
    rng, model = np.random.default_rng(0), drawn(0, 5, 4)
    five = list(range(5))

    def solved(*pairs: tuple[int, int]) -> Any:
        return solve_scales([facet(model, *pair, rng) for pair in pairs], five)

    assert solved((0, 1), (1, 2), (2, 3), (3, 4)).open == 3
    assert solved((0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)).open == 1
    whole = solved((0, 1), (1, 2), (2, 3), (3, 4), (4, 0))
    assert whole.open == 0
    assert ArgmaxModel(whole.scores[:, :-1], whole.scores[:, -1]).distance_to(model) < 1e-12
    assert edge(4, 0) == (0, 4)


def test_boundaries_that_do_not_close_are_a_broken_promise() -> None:
    rng, model = np.random.default_rng(0), drawn(0, 3, 4)
    facets = [facet(model, 0, 1, rng), facet(model, 1, 2, rng), facet(drawn(1, 3, 4), 2, 0, rng)]
    with pytest.raises(BrokenPromise, match="do not close"):
        solve_scales(facets, [0, 1, 2])


def test_an_accuracy_of_a_model_with_classes_that_nobody_gets_cannot_be_proved() -> None:
    model = ArgmaxModel([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.0]], [0.0, 0.3, 0.1, -9.0])
    for name in ("l2", "l1"):
        with pytest.raises(ExtractionFailed, match=r"nothing is known about the classes \[3\]"):
            extract_multiclass(ArgmaxOracle(model, name), accuracy=1e-2, rng=0)


@pytest.mark.parametrize("size", [1e-17, 1e-6, 1e6])
def test_a_class_that_nobody_gets_costs_no_digits(size: float) -> None:
    level = size * np.array([0.0, 0.3, 0.1, -9.0])
    model = ArgmaxModel([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0], [0.0, 0.0]], level)
    points = size * np.random.default_rng(0).normal(size=(1000, 2))
    found = extract_multiclass(ArgmaxOracle(model, "l2"), examples=points, rng=0)
    assert found.unreached == (3,)
    assert np.array_equal(found.model.labels(points), model.labels(points))


@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
def test_corners_at_the_origin_of_large_data_accuse_nobody(name: str) -> None:
    """An answer at 0 to a question of size 1e12 is not at 0 to the last digit."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model = ArgmaxModel(rng.normal(size=(3, 2)), np.zeros(3))
        examples = 1e12 * rng.normal(size=(60, 2))
        try:
            found = extract_multiclass(ArgmaxOracle(model, name), examples=examples, rng=seed)
        except ExtractionFailed:
            continue  # all boundaries meet in one point: they need not tie the scores
        assert np.array_equal(found.model.labels(examples), model.labels(examples))
