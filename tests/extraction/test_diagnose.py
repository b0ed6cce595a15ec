"""`diagnose` against services whose faults are known: it must see them, and never see one that is not there."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from overexplain.errors import BudgetExhausted, InvalidInput
from overexplain.extraction.box import Ball, Box
from overexplain.extraction.diagnosis.diagnose import diagnose, diagnose_session
from overexplain.extraction.job import Job
from overexplain.extraction.result import Spent
from overexplain.extraction.session import Session
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import GroupNorm, Lp, Mahalanobis, Weighted, l1, l2, linf
from overexplain.oracles.constrained import Boxed, Immutable, Monotone, OneHot, Sparse
from overexplain.oracles.degraded import (
    Float32,
    NearestRow,
    Noisy,
    Overshoot,
    RandomRadius,
    Rounded,
    Suboptimal,
    SwitchingNorm,
)
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.imitations import imitate
from overexplain.oracles.silent import Flaky, OneSided

NAMES = ("l1", "l2", "linf", "l3", "weighted")
FAMILY = {"l1": "l1", "l2": "l2", "linf": "linf", "l3": "lq", "weighted": "weighted"}
DIMENSIONS = (2, 10, 30)


def plane_of(p: int, seed: int) -> Hyperplane:
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=p)
    return Hyperplane(normal, float(np.linalg.norm(normal) * (1 + 0.3 * rng.normal())))


def distance_of(name: str, p: int, seed: int):
    weights = np.exp(0.7 * np.random.default_rng(100 + seed).normal(size=p))
    return {"l1": l1, "l2": l2, "linf": linf, "l3": Lp(3.0), "weighted": Weighted(l2, weights)}[name]


def service_of(name: str, p: int, seed: int) -> ModelOracle:
    return ModelOracle(plane_of(p, seed), Mechanism(distance_of(name, p, seed)))


def families(name: str, p: int, held: bool = False) -> set[str]:
    """What may be claimed: the truth, or nothing; with one feature left to move, distances look alike."""
    return {FAMILY[name], "unknown"} | ({"l1"} if held and p == 2 else set())


def inside_limits(report, n: int = 20) -> None:
    """Whatever was found, it was paid for as promised, can be written down, and claims nothing by halves."""
    assert report.asked.explanations <= n
    assert report.asked.labels <= 2 * n + 10
    json.dumps(report.to_dict(), allow_nan=False)
    assert report.theorem
    assert report.findings
    if report.family in ("heuristic", "mixture", "unknown"):
        assert report.distance is None


@pytest.mark.parametrize("p", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("declared", [True, False])
def test_an_exact_service_is_read_completely(name, p, declared) -> None:
    truth = service_of(name, p, seed=p)
    hidden = ModelOracle(truth.hyperplane, truth.mechanism, published=Mechanism(None, slack=None))
    report = diagnose(truth if declared else hidden, rng=1)
    inside_limits(report)
    assert (report.deterministic, report.exact, report.direction, report.margin) == (True, True, "constant", "zero")
    assert (report.grid, report.is_boxed, report.repeated_rows, report.one_sided) == (None, False, False, None)
    assert (report.failures, report.refuted, report.immutable) == ((), (), ())
    if name == "weighted" and p == 2 and not declared:
        assert report.family in ("weighted", "unknown")  # in the plane most directions belong to some lq as well
    else:
        assert report.family == FAMILY[name]
        assert report.distance == (truth.mechanism.distance if declared or name != "weighted" else None)


@pytest.mark.parametrize("family", ["l1", "linf", "l2", "lp:1.5", "lp:3", "weighted", "mixture"])
def test_distances_are_recognised_without_knowing_the_normal(family) -> None:
    for seed in range(20):
        plane = plane_of(10, seed)
        if family == "mixture":
            oracle = SwitchingNorm(ModelOracle(plane, "l2"), ["l1", "l2", "linf"], rng=seed)
        else:
            distance = distance_of("weighted", 10, seed) if family == "weighted" else family
            oracle = ModelOracle(plane, Mechanism(distance), published=Mechanism(None))
        report = diagnose(oracle, rng=seed)
        assert report.family == ("lq" if family.startswith("lp") else family)
        assert report.distance == (None if family in ("weighted", "mixture") else Mechanism(family).distance)
        assert (report.margin, report.exact) == ("zero", True)
        assert report.direction == ("several" if family == "mixture" else "constant")


ALTERED = {
    "rounded": (lambda o, r: Rounded(o, 2), "constant", {"zero"}, True, "2 decimals"),
    "float32": (lambda o, r: Float32(o), "constant", {"zero"}, True, "float32"),
    "noisy": (lambda o, r: Noisy(o, 0.1, rng=r), "varying", {"variable"}, False, None),
    "suboptimal": (lambda o, r: Suboptimal(o, 0.3, rng=r), "varying", {"relative", "variable"}, False, None),
    "overshoot": (lambda o, r: Overshoot(o, 0.05), "constant", {"constant"}, True, None),
    "uniform": (lambda o, r: Overshoot(o, 0.1, "uniform", rng=r), "constant", {"variable"}, False, None),
    "radius": (lambda o, r: RandomRadius(o, 0.5, rng=r), "constant", {"variable"}, False, None),
    "keyed": (lambda o, r: RandomRadius(o, 0.5, keyed=True, rng=r), "constant", {"variable"}, False, None),
}


@pytest.mark.parametrize("p", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrapper", ALTERED)
def test_altered_answers_show_how_they_were_altered(wrapper, name, p) -> None:
    wrap, direction, margins, exact, grid = ALTERED[wrapper]
    report = diagnose(wrap(service_of(name, p, seed=p), np.random.default_rng(p)), rng=2)
    inside_limits(report)
    assert (report.direction, report.exact, report.grid) == (direction, exact, grid)
    assert report.margin in margins
    assert report.deterministic == (wrapper not in ("noisy", "suboptimal", "uniform", "radius"))
    assert report.family in (families(name, p) if direction == "constant" else {"heuristic"})
    assert (report.is_boxed, report.repeated_rows, report.one_sided, report.immutable) == (False, False, None, ())
    assert {spelling for spelling, _ in report.failures} <= ({"no flip"} if wrapper == "noisy" else set())
    if wrapper == "float32":
        assert report.refuted == ("documented answers finer than what was seen (float32)",)
    else:
        assert report.refuted == ()


@pytest.mark.parametrize("wrapper", ["rounded", "float32", "overshoot", "uniform", "radius"])
def test_the_distance_shows_through_what_was_done_to_the_answers(wrapper) -> None:
    """At p = 10 there is enough to see in nearly all cases, not just nothing wrong."""
    wrap = ALTERED[wrapper][0]
    found = Counter()
    for name in NAMES:
        for seed in range(4):
            report = diagnose(wrap(service_of(name, 10, seed), np.random.default_rng(seed)), rng=seed)
            found[report.family == FAMILY[name]] += 1
            assert report.family in families(name, 10)
    assert found[True] >= 18, found


def test_margins_have_the_right_size() -> None:
    plane = plane_of(6, 3)
    length = float(np.linalg.norm(plane.normal))
    report = diagnose(Overshoot(ModelOracle(plane, "l2"), 0.05), rng=0)
    assert report.margin_size == pytest.approx(0.05, rel=1e-6)
    robust = diagnose(ModelOracle(plane, Mechanism("l2", robustness="l1", radius=0.2)), rng=0)
    assert robust.margin == "constant"
    assert robust.margin_size == pytest.approx(0.2 * float(np.abs(plane.normal).max()) / length, rel=1e-6)
    assert diagnose(ModelOracle(plane, "l2"), rng=0).margin_size == 0
    vague = diagnose(Overshoot(ModelOracle(plane, "l2"), 0.1, "uniform", rng=0), rng=0)
    assert 0 < vague.margin_size <= 0.2  # a second step crosses two margins


def test_a_relative_margin_proves_no_more_slack_than_there_is() -> None:
    seen = []
    for seed in range(12):
        report = diagnose(Suboptimal(service_of("l2", 8, seed), 0.3, rng=seed), rng=seed)
        seen.append(report.margin)
        if report.margin == "relative":
            assert 0 < report.slack <= 0.3 + 1e-9
            assert "chain" in report.theorem
    assert seen.count("relative") >= 10


@pytest.mark.parametrize("p", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_rows_from_a_list_are_recognised(name, p) -> None:
    rows = 2 * np.random.default_rng(p).normal(size=(300, p))
    report = diagnose(NearestRow(service_of(name, p, seed=p), rows), rng=3)
    inside_limits(report)
    assert (report.repeated_rows, report.family, report.exact) == (True, "heuristic", False)


@pytest.mark.parametrize("p", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_only_one_side_is_explained(name, p) -> None:
    for side in (NO, YES):
        report = diagnose(OneSided(service_of(name, p, seed=p), side), rng=4)
        inside_limits(report)
        assert (report.one_sided, report.margin, report.exact) == (side, "zero", True)
        assert report.family in families(name, p)
        assert dict(report.failures).keys() == {"None"}


def test_a_constant_margin_on_one_side_is_never_taken_for_none() -> None:
    seen = Counter()
    for name in ("l1", "l2", "linf", "l3"):
        for p in (3, 10, 30):
            report = diagnose(OneSided(Overshoot(service_of(name, p, p), 0.05)), rng=p)
            assert report.margin in ("constant", None)
            seen[report.margin] += 1
    assert seen["constant"] >= 9


@pytest.mark.parametrize(
    ("failure", "spelling"),
    [
        ("none", "None"),
        ("empty", "empty"),
        ("nan", "NaN row"),
        ("echo", "echo"),
        ("raise", "exception"),
        ("no flip", "no flip"),
    ],
)
@pytest.mark.parametrize("name", ["l1", "l2", "linf"])
def test_failures_are_counted_by_their_spelling_and_hide_nothing(failure, spelling, name) -> None:
    for p in DIMENSIONS:
        flaky = Flaky(service_of(name, p, seed=p), 0.3, failure, rng=p)
        report = diagnose(flaky, rng=5)
        inside_limits(report)
        assert set(dict(report.failures)) == {spelling}
        assert 1 <= dict(report.failures)[spelling] <= 14
        assert report.one_sided is None
        assert report.family in families(name, p)
        assert report.margin in ("zero", None)


@pytest.mark.parametrize("p", DIMENSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_features_that_are_held_are_named_where_that_can_be_seen(name, p) -> None:
    plane = plane_of(p, p)
    held = int(np.argsort(np.abs(plane.normal))[p // 2])  # neither the most nor the least effective one
    report = diagnose(Immutable(ModelOracle(plane, Mechanism(distance_of(name, p, p))), [held]), rng=6)
    inside_limits(report)
    assert report.family in families(name, p, held=True)
    assert (report.direction, report.margin, report.exact) == ("constant", "zero", True)
    assert held not in report.moved
    if p > 2 and name != "l1":  # under l1 one feature moves: that the others do not means nothing
        assert report.immutable == (held,)
        assert not any("never moved: held, or" in sentence for sentence in report.findings)
    else:
        assert report.immutable == ()


def test_a_feature_without_effect_is_not_called_immutable() -> None:
    for name in ("l2", "linf", "l3"):
        plane = Hyperplane([1.0, -2.0, 0.0, 0.7, 1.5], 2.0)
        report = diagnose(ModelOracle(plane, Mechanism(distance_of(name, 5, 0))), rng=0)
        assert report.immutable == ()
        assert (report.family, report.exact) == (FAMILY[name], True)
        assert any("held, or without effect" in sentence for sentence in report.findings)


@pytest.mark.parametrize("p", [10, 30])
@pytest.mark.parametrize("name", NAMES)
def test_sparse_and_monotone_services(name, p) -> None:
    sparse = diagnose(Sparse(service_of(name, p, seed=p), p // 2), rng=7)
    inside_limits(sparse)
    assert len(sparse.moved) == (1 if name == "l1" else p // 2)
    assert sparse.family in families(name, p)
    assert (sparse.direction, sparse.exact) == ("constant", True)
    monotone = diagnose(Monotone(service_of(name, p, seed=p)), rng=7)
    inside_limits(monotone)
    assert monotone.family in families(name, p)
    assert (monotone.direction, monotone.margin, monotone.exact) == ("by side", "zero", True)
    assert monotone.immutable == ()
    assert monotone.refuted == ()


@pytest.mark.parametrize("p", [10, 30])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_show_where_answers_stop(name, p) -> None:
    report = diagnose(Boxed(service_of(name, p, seed=p), -2.0, 2.0), rng=8)
    inside_limits(report)
    assert report.is_boxed
    assert set(report.low) <= {-2.0, -np.inf}
    assert set(report.high) <= {2.0, np.inf}
    assert report.family in families(name, p)
    assert (report.direction, report.margin, report.exact) == ("constant", "zero", True)
    assert "approach" in report.theorem


def test_bounds_that_are_not_published_are_found_too() -> None:
    class Clipped:
        """The nearest point inside a box that the service does not talk about; questions may lie anywhere."""

        def __init__(self, inner: Boxed) -> None:
            self.inner, self.dimension, self.mechanism = inner, inner.dimension, inner.mechanism

        def classify(self, x):
            return self.inner.wrapped.classify(x)

        def explain(self, x):
            return self.inner.explain(np.clip(x, -2.0, 2.0))

    report = diagnose(Clipped(Boxed(service_of("l2", 6, 1), -2.0, 2.0)), start=np.full(6, 1.5), rng=1)
    assert report.is_boxed
    assert set(report.low) | set(report.high) <= {-2.0, 2.0, np.inf, -np.inf}


def test_one_hot_groups_and_whole_numbers() -> None:
    asked = []
    for seed in range(4):
        p, groups = 9, [[3, 4, 5], [6, 7, 8]]
        low, high = np.where(np.arange(p) < 3, -5.0, 0.0), np.where(np.arange(p) < 3, 5.0, 1.0)
        plane = Hyperplane(np.random.default_rng(seed).normal(size=p), 0.3)
        oracle = OneHot(ModelOracle(plane, "l1"), groups, low=low, high=high)
        report = diagnose(oracle, rng=seed)
        inside_limits(report)
        assert report.one_hot_snapped is True
        assert report.family in ("l1", "unknown")
        assert report.margin in ("zero", None)
        assert report.cost.explanations == 7  # 3 continuous features, two levels more than the base in either group
        asked.append(report.family)
    assert "l1" in asked


def test_without_a_continuous_feature_nothing_can_be_predicted() -> None:
    oracle = OneHot(ModelOracle(Hyperplane([1.0, -0.5, 0.2, -1.0], 0.1), "l1"), [[0, 1], [2, 3]])
    report = diagnose(oracle, rng=0)
    assert report.cost is None
    assert "only the labels" in report.theorem


class Asked:
    """Passes on and remembers every question."""

    def __init__(self, inner, mechanism=None) -> None:
        self.inner, self.dimension, self.questions = inner, inner.dimension, []
        self.mechanism = inner.mechanism if mechanism is None else mechanism

    def classify(self, x):
        self.questions.append(x)
        return self.inner.classify(x)

    def explain(self, x):
        self.questions.append(x)
        return self.inner.explain(x)


@pytest.mark.parametrize("p", [1, 3, 12])
def test_questions_stay_inside_bounds_and_domain(p) -> None:
    plane = Hyperplane(np.ones(p), 0.4 * p)
    low, high = np.linspace(-1, 0, p), np.linspace(0.5, 3.0, p)
    boxed = Asked(ModelOracle(plane, "l2"))
    diagnose(boxed, bounds=(low, high), rng=0)
    assert len(boxed.questions) > 20
    assert all(Box(low, high).contains(x) for x in boxed.questions)
    ball = Asked(ModelOracle(plane, "l1"))
    start = np.full(p, 0.3)
    diagnose(ball, start=start, bounds=0.5, rng=0)
    assert all(Ball.of(0.5, start).contains(x) for x in ball.questions)
    mixed = Asked(ModelOracle(Hyperplane(np.arange(1.0, 7.0), 2.0), "l1"))
    mixed.domain = Domain(6, low=[0, 0, 0, 0, -1, -2], high=[9, 1, 1, 1, 4, 2], groups=[[1, 2, 3]], integers=[4])
    diagnose(mixed, rng=0)
    assert all(mixed.domain.contains(x) for x in mixed.questions)
    with pytest.raises(InvalidInput, match="outside"):
        diagnose(boxed, start=np.full(p, 99.0), bounds=(low, high))


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "l3"])
def test_any_scale_and_any_number_of_features(name) -> None:
    for scale in (1e-9, 1e9):
        plane = plane_of(8, 1)
        scaled = ModelOracle(Hyperplane(plane.normal / scale, plane.offset), Mechanism(distance_of(name, 8, 0)))
        report = diagnose(scaled, start=scale * np.random.default_rng(0).normal(size=8), rng=0)
        assert (report.family, report.exact) == (FAMILY[name], True)
    wide = diagnose(service_of(name, 300, 0), rng=0)
    assert (wide.family, wide.exact) == (FAMILY[name], True)
    single = diagnose(service_of(name, 1, 0), rng=0)
    assert (single.margin, single.exact, single.refuted) == ("zero", True, ())


def test_features_in_very_different_units() -> None:
    units = 10.0 ** np.random.default_rng(1).uniform(-3, 5, 8)
    plane = Hyperplane(np.random.default_rng(2).normal(size=8) / units, 1.0)
    start = units * np.random.default_rng(3).normal(size=8)
    for distance, family in ((l2, "l2"), (linf, "linf"), (Weighted(l2, 1 / units), "weighted"), (l1, "l1")):
        report = diagnose(ModelOracle(plane, Mechanism(distance)), start=start, rng=0)
        assert (report.family, report.distance, report.exact) == (family, distance, True)


def test_without_labels_planes_and_second_steps_show_as_much() -> None:
    for p in (3, 8, 30):
        for name in ("l1", "l2", "linf", "l3"):
            truth = service_of(name, p, p)
            silent = Asked(truth)
            silent.classify = None
            report = diagnose(silent, rng=0)
            assert (report.family, report.margin, report.exact, report.asked.labels) == (FAMILY[name], "zero", True, 0)
        robust = Asked(ModelOracle(truth.hyperplane, Mechanism("l2", "l2", 0.3)))
        robust.classify = None
        assert diagnose(robust, rng=0).margin == "constant"


def test_documented_terms_that_are_not_true_are_named() -> None:
    plane = plane_of(6, 0)
    said = Mechanism("l1")
    assert diagnose(ModelOracle(plane, "linf", published=said), rng=0).refuted == ("documented l1, effective linf",)
    assert diagnose(ModelOracle(plane, "l2", published=said), rng=0).refuted == ("documented l1, effective l2",)
    only = diagnose(ModelOracle(plane, "l1", published=Mechanism("l2")), rng=0).refuted
    assert len(only) == 1
    assert "only one feature moves" in only[0]
    behind = diagnose(Overshoot(ModelOracle(plane, "l1"), 0.1, published=said), rng=0).refuted
    assert behind == ("documented plain answers, but they lie a constant way behind the plane",)
    robust = Mechanism("l2", "l2", 0.1)
    on = diagnose(ModelOracle(plane, "l2", published=robust), rng=0).refuted
    assert len(on) == 1
    assert "on the plane itself" in on[0]
    assert (
        "changes from answer to answer"
        in diagnose(RandomRadius(ModelOracle(plane, "l2"), 0.5, published=said), rng=0).refuted[-1]
    )
    rounded = Rounded(ModelOracle(plane, "l2"), 2, published=Mechanism("l2"))
    assert diagnose(rounded, rng=0).refuted == ("documented answers finer than what was seen (2 decimals)",)


@pytest.mark.parametrize("normal", [[1, -1, 1], [1, 0, 0], [0, 2, 0], [2, 2, 0], [1, 1, -1, 1, 1]])
@pytest.mark.parametrize(
    "distance", [l1, l2, linf, Lp(3.0), Weighted(l2, [2.0, 1.0, 2.0]), Weighted(linf, [1.0, 2.0, 1.0])]
)
def test_terms_that_are_kept_are_not_refuted_where_distances_agree(normal, distance) -> None:
    if isinstance(distance, Weighted):
        distance = Weighted(distance.norm, np.resize(distance.weights, len(normal)))
    plane = Hyperplane(np.array(normal, dtype=float), 2.0)
    for radius in (0.0, 0.3):
        for seed in range(3):
            terms = Mechanism(distance, l2, radius) if radius else Mechanism(distance)
            report = diagnose(ModelOracle(plane, terms), rng=seed)
            assert report.refuted == ()
            assert report.distance == distance
            plain = {l1: "l1", l2: "l2", linf: "linf"}
            assert report.family == ("weighted" if isinstance(distance, Weighted) else plain.get(distance, "lq"))


def test_terms_that_are_broken_are_refuted_near_where_distances_agree() -> None:
    for seed in range(3):
        level = Hyperplane([1.0, -0.99, 1.0], 2.0)
        for truth, said in ((linf, l2), (l2, linf), (l2, l1), (linf, l1), (l2, Lp(3.0))):
            report = diagnose(ModelOracle(level, Mechanism(truth), published=Mechanism(said)), rng=seed)
            assert report.refuted, (truth, said)
            assert report.distance == truth
        one = Hyperplane([1.0, 0.01, 0.0], 2.0)
        assert diagnose(ModelOracle(one, "l1", published=Mechanism("l2")), rng=seed).refuted
        assert diagnose(ModelOracle(one, "l1", published=Mechanism("linf")), rng=seed).refuted


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
def test_a_plane_across_one_feature_is_no_bound(distance) -> None:
    for feature in range(3):
        for offset in (1.0, 1 / 3):
            plane = Hyperplane(np.eye(3)[feature] * 3, offset)
            for seed in (0, 2, 5):
                exact = ModelOracle(plane, distance)
                assert not diagnose(exact, n=12, rng=seed).is_boxed
                assert not diagnose(Overshoot(exact, 0.05), n=20, rng=seed).is_boxed
                random = ModelOracle(plane, distance, ties="random", rng=seed)
                assert not diagnose(random, rng=seed).is_boxed


def without_labels(oracle):
    silent = Asked(oracle)
    silent.classify = None
    return silent


def test_one_feature_with_answers_from_a_list_has_no_constant_margin() -> None:
    for seed in range(8):
        rows = 3 * np.random.default_rng(seed).normal(size=(50, 1))
        listed = NearestRow(ModelOracle(Hyperplane([2.0], 1.0), "l2"), rows)
        assert (diagnose(listed, rng=seed).margin, diagnose(listed, rng=seed).exact) == ("variable", False)
        for oracle in (without_labels(listed), OneSided(listed)):
            report = diagnose(oracle, rng=seed)
            assert (report.margin, report.exact) == (None, None)
        overshot = diagnose(Overshoot(ModelOracle(Hyperplane([2.0], 1.0), "l2"), 0.1), rng=seed)
        assert (overshot.margin, overshot.exact) == ("constant", True)


def test_margins_that_differ_between_the_sides_are_not_called_constant() -> None:
    class Uneven:
        """Behind the plane by 0.1 when it explains a No, by 0.05 when it explains a Yes."""

        def __init__(self, inner: ModelOracle) -> None:
            self.inner, self.dimension, self.mechanism = inner, inner.dimension, Mechanism(None, slack=None)
            self.classify = inner.classify

        def explain(self, x):
            exact, normal = self.inner.explain(x), self.inner.hyperplane.normal
            side = self.classify(x)
            return exact - side * (0.1 if side == NO else 0.05) * normal / np.linalg.norm(normal)

    for p in (1, 2, 5, 12):
        for seed in range(4):
            uneven = Uneven(ModelOracle(plane_of(p, seed), "l2"))
            report = diagnose(uneven, rng=seed)
            assert (report.margin, report.exact) == ("variable", False)
            silent = diagnose(without_labels(uneven), rng=seed)
            assert silent.margin == (None if p == 1 else "constant")
            assert any("both sides is assumed" in sentence for sentence in silent.findings) == (p > 1)
            even = diagnose(Overshoot(uneven.inner, 0.1), rng=seed)
            assert even.margin == "constant"
            assert not any("assumed" in sentence for sentence in even.findings)


def test_weights_and_held_features_under_l1_are_not_called_plain_l1() -> None:
    plane = Hyperplane([3.0, 1.0, -2.0, 0.5], 1.0)
    weighted = ModelOracle(plane, Mechanism(Weighted(l1, [9.0, 1.0, 9.0, 9.0])), published=Mechanism(None))
    report = diagnose(weighted, rng=0)
    assert (report.family, report.distance) == ("l1", None)
    same = ModelOracle(plane, Mechanism(Weighted(l1, [1.0, 2.0, 1.0, 3.0])), published=Mechanism(None))
    assert (diagnose(same, rng=0).family, diagnose(same, rng=0).distance) == ("l1", l1)
    assert any("cannot be told apart" in sentence for sentence in diagnose(same, rng=0).findings)


@pytest.mark.parametrize(
    "distance",
    [
        Mahalanobis([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]]),
        GroupNorm([[0, 1], [2]]),
        Weighted(linf, [1.0, 2.0, 5.0]),
    ],
)
def test_other_distances_are_never_taken_for_plain_ones(distance) -> None:
    for seed in range(6):
        oracle = ModelOracle(plane_of(3, seed), Mechanism(distance), published=Mechanism(None))
        report = diagnose(oracle, rng=seed)
        if isinstance(distance, GroupNorm):  # one group moves, as under l2 with the other features held
            assert (report.family, report.distance, report.immutable) in (
                ("l2", None, (2,)),
                ("l1", None, ()),
                ("l1", l1, ()),
            )
        else:
            assert report.family in ("weighted", "unknown")
        assert (report.margin, report.exact) == ("zero", True)


def test_ties_broken_at_random_are_exact_all_the_same() -> None:
    plane = Hyperplane([1.0, 0.0, -2.0, 0.5, 0.0, 1.5], 1.0)
    report = diagnose(ModelOracle(plane, "linf", ties="random", rng=0), rng=0)
    assert (report.family, report.margin, report.exact, report.deterministic) == ("linf", "zero", True, False)


def cheat(answer, label=None):
    class Cheat:
        dimension, mechanism = 3, Mechanism("l1")

        def classify(self, x):
            return (YES if x[0] > 0 else NO) if label is None else label(x)

        def explain(self, x):
            return answer(x)

    return Cheat()


def _raise(_):
    raise RuntimeError("no")


@pytest.mark.parametrize(
    ("answer", "spelling"),
    [
        (lambda x: None, "None"), (lambda x: [], "empty"), (lambda x: [np.nan] * 3, "NaN row"),
        (lambda x: [np.inf] * 3, "not finite"), (lambda x: x, "echo"),
        (_raise, "exception"), (lambda x: [1.0, 2.0], "wrong shape"), (lambda x: "hello", "not numbers"),
        (lambda x: x + [0.0, 1.0, 0.0], "no flip"),
    ],
)  # fmt: skip
def test_a_service_that_never_answers_is_reported_not_raised(answer, spelling) -> None:
    report = diagnose(cheat(answer), rng=0)
    inside_limits(report)
    assert set(dict(report.failures)) == {spelling}
    assert (report.answers, report.family, report.exact, report.margin, report.direction) == (
        0,
        "unknown",
        None,
        None,
        None,
    )
    assert report.theorem == "labels only: threshold bisection"
    assert report.cost.labels > 30


def test_services_that_make_no_sense_get_no_sensible_claims() -> None:
    constant = diagnose(cheat(lambda x: np.ones(3)), rng=0)
    assert (constant.repeated_rows, constant.exact) == (True, False)
    onward = diagnose(cheat(lambda x: x + [1.0, 0.0, 0.0], label=_raise), rng=0)  # never turns back, and labels fail
    assert (onward.exact, onward.margin, onward.distance) == (None, None, None)
    rng = np.random.default_rng(0)
    noise = diagnose(cheat(lambda x: rng.normal(size=3), label=lambda x: int(rng.choice([NO, YES]))), rng=0)
    assert noise.exact is not True
    assert (noise.deterministic, noise.distance) == (False, None)


def test_labels_only_and_nothing_at_all() -> None:
    class Labels:
        dimension, mechanism = 4, None

        def classify(self, x):
            return YES

    class Mute:
        dimension, mechanism = 4, None

    report = diagnose(Labels(), rng=0)
    assert report.findings == ("The service explains nothing: it gives labels only.",)
    assert (report.asked, report.theorem) == (Spent(0, 0), "labels only: threshold bisection")
    with pytest.raises(InvalidInput, match="nothing to ask"):
        diagnose(Mute(), rng=0)


def test_the_budget_is_kept_and_what_is_asked_is_counted_where_it_belongs() -> None:
    oracle = Asked(service_of("l2", 5, 0))
    with pytest.raises(BudgetExhausted):
        diagnose(oracle, budget=11, rng=0)
    assert len(oracle.questions) == 11
    session = Session(oracle)
    session.label(np.zeros(5))
    job = Job(session, 1e-6, np.zeros(5), Box.of(None, 5), True, np.random.default_rng(0))
    report = diagnose_session(job, 12)
    assert report.asked.explanations == session.spent.explanations <= 12
    assert report.asked.labels == session.spent.labels - 1 <= 34
    assert len(session.log) == session.spent.requests
    with pytest.raises(InvalidInput, match="at least 4"):
        diagnose_session(job, 3)


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (diagnose(RandomRadius(service_of("l3", 7, 0), 0.2, rng=1), rng=2).to_dict() for _ in range(2))
    assert first == second


@pytest.fixture(scope="module")
def people() -> tuple[Hyperplane, np.ndarray]:
    """A logistic regression and the rows it was fitted to."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer()
    rows = StandardScaler().fit_transform(data.data)
    model = LogisticRegression(max_iter=1000).fit(rows, data.target)
    return Hyperplane(model.coef_[0], -float(model.intercept_[0])), rows


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("solver", {"family": "l1", "margin": "constant", "exact": True, "deterministic": True}),
        ("solver-linf float32", {"family": "linf", "margin": "zero", "exact": True, "grid": "float32"}),
        ("wachter", {"family": "l2", "margin": "variable", "exact": False, "direction": "constant"}),
        ("adam-l1", {"family": "linf", "margin": "variable", "exact": False, "direction": "constant"}),
        ("dice-random", {"family": "heuristic", "margin": "variable", "deterministic": False, "grid": "2 decimals"}),
        ("nice", {"family": "heuristic", "margin": "variable", "exact": False, "direction": "varying"}),
        ("nearest-neighbour", {"family": "heuristic", "repeated_rows": True, "exact": False}),
        ("mip-recourse", {"margin": "zero", "one_sided": NO, "is_boxed": True, "repeated_rows": False}),
    ],
)
def test_services_as_people_run_them(name, expected, people) -> None:
    plane, rows = people
    for seed in range(2):
        oracle = imitate(name, plane, rows, rng=seed)
        start = None if getattr(oracle, "domain", None) is not None else rows[seed]
        report = diagnose(oracle, start=start, rng=seed)
        inside_limits(report)
        assert {key: getattr(report, key) for key in expected} == expected
    if name == "adam-l1":
        assert report.refuted[0] == "documented l1, effective linf"
    if name == "solver":
        assert report.margin_size == pytest.approx(1e-3, rel=1e-3)


def test_what_a_domain_forces_on_answers_refutes_nothing() -> None:
    """One feature moves at a time under l2: of all points these are not the nearest, of the allowed they are."""
    model = ModelOracle(Hyperplane([1.0, -2.0, 0.5, 3.0], 0.3), "l2")
    for domain, is_refuted in ((None, True), (Domain(4), False)):
        service = Sparse(model, 1, published=Mechanism("l2", domain=domain))
        assert bool(diagnose(service, n=20, rng=0).refuted) == is_refuted
