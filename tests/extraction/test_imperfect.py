"""`extract` and services that are not what they say: the right way is found, its bound holds, its log can be used."""

from __future__ import annotations

import numpy as np
import pytest

import overexplain as ox

UNKNOWN = ox.Mechanism(None, slack=None)
P = 6


def model(seed: int, p: int = P) -> ox.Hyperplane:
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=p)
    return ox.Hyperplane(normal, 0.5 * float(np.linalg.norm(normal)) * rng.normal())


def rows(seed: int, p: int = P) -> np.ndarray:
    return np.random.default_rng(seed + 999).normal(size=(80, p)) * 2


MADE = {
    "rounded": lambda o, s, t: ox.Rounded(o, 3, published=t),
    "float32": lambda o, s, t: ox.Float32(o, published=t),
    "noisy": lambda o, s, t: ox.Noisy(o, 0.05, rng=s, published=t),
    "suboptimal": lambda o, s, t: ox.Suboptimal(o, 0.3, rng=s, published=t),
    "overshoot": lambda o, s, t: ox.Overshoot(o, 0.1, published=t),
    "random overshoot": lambda o, s, t: ox.Overshoot(o, 0.2, "uniform", rng=s, published=t),
    "random radius": lambda o, s, t: ox.RandomRadius(o, 0.3, rng=s, published=t),
    "keyed radius": lambda o, s, t: ox.RandomRadius(o, 0.3, keyed=True, rng=s, published=t),
    "nearest row": lambda o, s, t: ox.NearestRow(o, rows(s), published=t),
    "switching": lambda o, s, t: ox.SwitchingNorm(o, ["l1", "l2", "linf"], rng=s, published=t),
    "immutable": lambda o, s, t: ox.Immutable(o, [0, 3], published=t),
    "sparse": lambda o, s, t: ox.Sparse(o, 2, published=t),
    "monotone": lambda o, s, t: ox.Monotone(o, published=t),
    "one-sided": lambda o, s, t: ox.OneSided(o, published=t),
    "boxed": lambda o, s, t: ox.Boxed(o, -3.0, 3.0, published=t),
    "none": lambda o, s, t: ox.Flaky(o, 0.2, "none", rng=s, published=t),
    "empty": lambda o, s, t: ox.Flaky(o, 0.2, "empty", rng=s, published=t),
    "nan": lambda o, s, t: ox.Flaky(o, 0.2, "nan", rng=s, published=t),
    "echo": lambda o, s, t: ox.Flaky(o, 0.2, "echo", rng=s, published=t),
    "raise": lambda o, s, t: ox.Flaky(o, 0.2, "raise", rng=s, published=t),
    "no flip": lambda o, s, t: ox.Flaky(o, 0.2, "no flip", rng=s, published=t),
}  # fmt: skip


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kind", list(MADE))
def test_a_service_of_which_nothing_is_known(kind: str, distance: str) -> None:
    """The model to 1e-4 rad, or a bound that says it is worse; every answer in the log, and the log fits the model."""
    for seed in range(2):
        truth = model(seed)
        service = MADE[kind](ox.ModelOracle(truth, ox.Mechanism(distance)), seed, UNKNOWN)
        found = ox.extract(service, accuracy=1e-4, rng=seed, budget=3000)
        angle = found.hyperplane.angle_to(truth)
        assert angle <= 2e-4, found.method
        assert found.error_bound is None or angle <= found.error_bound
        assert "diagnosed" in found.assumptions[0]
        assert len(found.log) == found.spent.requests
        labelled = np.flatnonzero(found.log.labels)
        margins = np.abs(truth.margin(found.log.points[labelled]))
        clear = margins > 1e-9
        assert (truth.labels(found.log.points[labelled]) == found.log.labels[labelled])[clear].all()


@pytest.mark.parametrize("distance", ["l1", "l2", "linf"])
@pytest.mark.parametrize("kind", ["rounded", "float32", "suboptimal", "overshoot", "one-sided", "none", "switching"])
def test_a_service_that_says_what_it_is(kind: str, distance: str) -> None:
    """Its own terms are honest: nothing is diagnosed, and the bound holds."""
    for seed in range(3):
        truth = model(seed)
        service = MADE[kind](ox.ModelOracle(truth, ox.Mechanism(distance)), seed, None)
        found = ox.extract(service, accuracy=1e-4, rng=seed, budget=3000)
        assert not any("diagnosed" in note for note in found.assumptions)
        assert found.error_bound is not None
        assert found.hyperplane.angle_to(truth) <= found.error_bound <= 2e-4


@pytest.mark.parametrize("kind", ["rounded", "suboptimal", "overshoot", "immutable", "none"])
def test_logs_of_imperfect_services_fit_the_model_under_the_terms_found(kind: str) -> None:
    truth = model(3, 4)
    service = {"immutable": lambda o: ox.Immutable(o, [0], published=UNKNOWN)}.get(
        kind, lambda o: MADE[kind](o, 3, UNKNOWN)
    )(ox.ModelOracle(truth, ox.Mechanism("l1")))
    found = ox.extract(service, accuracy=1e-3, rng=1)
    knowledge = ox.Knowledge(found.log)
    assert knowledge.is_consistent
    verdicts = knowledge.certify(np.random.default_rng(0).normal(size=(50, 4)) * 3).codes
    said = truth.labels(np.random.default_rng(0).normal(size=(50, 4)) * 3)
    sure = np.abs(verdicts) == 1
    assert (verdicts[sure] == said[sure]).all()


def test_answers_that_do_not_flip_are_no_answers_in_the_log() -> None:
    truth = model(5)
    service = ox.Flaky(ox.ModelOracle(truth, ox.Mechanism("l1")), 0.4, "no flip", rng=5, published=UNKNOWN)
    found = ox.extract(service, accuracy=1e-4, rng=0)
    log = found.log
    rows_ = log.explained
    before, after = truth.margin(log.points[rows_]), truth.margin(log.explanations[rows_])
    assert (before * after <= 1e-9).all()
    assert (log.status == ox.Status.NONE).sum() > 2


def test_a_clipped_answer_is_seen_where_the_limits_are_published() -> None:
    """One answer under l2 contradicts nothing, but this one ends at a limit of the inputs: the plane is approached first."""
    truth = ox.Hyperplane([3.0, 1.0, 0.5, -2.0], 6.5)
    service = ox.Boxed(ox.ModelOracle(truth, ox.Mechanism("l2")), -1.5, 1.5)
    found = ox.extract(service, start=[1.4, 0.0, 0.0, 0.0], rng=0)
    assert "limit" in found.assumptions[0]
    assert found.hyperplane.angle_to(truth) <= min(found.error_bound, 1e-8)
    assert found.log.mechanism == service.mechanism
    told = ox.Boxed(ox.ModelOracle(truth, ox.Mechanism("l2")), -1.5, 1.5, published=ox.Mechanism("l2"))
    again = ox.extract(told, start=[1.4, 0.0, 0.0, 0.0], rng=0, confirm=0)
    assert again.spent == found.spent
    confirmed = ox.extract(told, start=[1.4, 0.0, 0.0, 0.0], rng=0)
    assert confirmed.hyperplane.angle_to(truth) <= min(confirmed.error_bound, 1e-6)
    assert (
        again.log.mechanism == service.mechanism
    )  # what the service takes is known, if not that answers come from there


class Unsaid:
    """A service that says nothing about itself, not even which inputs it takes."""

    def __init__(self, service: ox.Boxed) -> None:
        self.dimension, self.mechanism = service.dimension, ox.Mechanism(None, slack=None)
        self.classify, self.explain = service.classify, service.explain


def test_answers_of_a_box_that_was_only_seen_are_not_logged_as_answers_of_all_points() -> None:
    """linf answers that the box cut off do not go the way that linf goes; the others do, and their terms stay as they are."""
    cut_off = 0
    for seed in range(6):
        truth = ox.Hyperplane(np.random.default_rng(seed).normal(size=4), 0.4)
        service = Unsaid(ox.Boxed(ox.ModelOracle(truth, ox.Mechanism("linf")), -1.0, 1.0))
        log = ox.extract(service, bounds=(-1.0, 1.0), rng=seed).log
        steps = (log.explanations - log.points)[log.explained]
        is_cut_off = bool((ox.linf(steps) * ox.l1(truth.normal) > np.abs(steps @ truth.normal) + 1e-6).any())
        says_less = [ox.Mechanism("linf", domain=ox.Domain(4)), ox.Mechanism(None)]
        assert log.mechanism in (says_less if is_cut_off else [ox.Mechanism("linf")])
        cut_off += is_cut_off
    assert 0 < cut_off < 6


def test_one_hot_groups_are_identified_modulo_their_mean() -> None:
    truth = ox.Hyperplane([1.0, -2.0, 0.5, 1.5, -1.0, 2.0, 3.0], 0.7)
    service = ox.OneHot(ox.ModelOracle(truth, ox.Mechanism("l1")), groups=[[2, 3, 4], [5, 6]])
    found = ox.extract(service, rng=0)
    assert found.unidentified.shape == (2, 7)
    points = service.domain.sample(1, 400)
    assert (found.hyperplane.labels(points) == truth.labels(points)).all()


class Liar:
    """Labels flipped at random, explanations exact."""

    dimension, mechanism = P, UNKNOWN

    def __init__(self, truth: ox.Hyperplane, rate: float, seed: int) -> None:
        self.inner, self.rate, self.rng = ox.ModelOracle(truth, ox.Mechanism("l2")), rate, np.random.default_rng(seed)

    def classify(self, x):
        return self.inner.classify(x) * (-1 if self.rng.random() < self.rate else 1)

    def explain(self, x):
        return x + self.rng.normal(size=P)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_labels_flipped_at_random_are_reported_not_absorbed(rate: float) -> None:
    false = 0
    for seed in range(10):
        truth = model(seed)
        try:
            found = ox.extract(Liar(truth, rate, seed), accuracy=1e-6, rng=seed, budget=5000)
        except (ox.BrokenPromise, ox.ExtractionFailed) as error:
            assert len(error.log) > 0
            if isinstance(error, ox.BrokenPromise):
                assert len(error.rows) > 0
                assert all(0 <= row < len(error.log) for row in error.rows)
        else:
            false += found.error_bound is not None and found.hyperplane.angle_to(truth) > found.error_bound
    assert false == 0


def test_a_model_that_changes_while_it_is_asked_is_reported() -> None:
    class Changing:
        dimension, mechanism = P, None

        def __init__(self) -> None:
            self.asked = 0

        def classify(self, x):
            self.asked += 1
            return (model(1) if self.asked < 80 else model(2)).label(x)

    with pytest.raises((ox.BrokenPromise, ox.ExtractionFailed)) as caught:
        ox.extract(Changing(), rng=0)
    assert len(caught.value.log) > 80


def test_a_constant_service_is_reported() -> None:
    class Constant:
        dimension, mechanism = 4, None

        def classify(self, x):
            return 1

    with pytest.raises(ox.ExtractionFailed, match="label"):
        ox.extract(Constant(), rng=0)


def test_honest_over_many_services() -> None:
    """Whatever the service, the angle never exceeds the bound: many random ones, wrapped in one another."""
    kinds = ("rounded", "float32", "noisy", "suboptimal", "overshoot", "random overshoot", "one-sided", "none", "echo")
    checked = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(2, 8))
        truth = model(seed + 50, p)
        service = ox.ModelOracle(truth, ox.Mechanism(str(rng.choice(["l1", "l2", "linf", "lp:3"]))))
        kind = str(rng.choice(kinds))
        if rng.random() < 0.3:
            service, kind = ox.Immutable(service, [0]), str(rng.choice(["one-sided", "none", "float32"]))
        terms = UNKNOWN if rng.random() < 0.7 else None
        found = ox.extract(
            MADE[kind](service, seed, terms), accuracy=10.0 ** -rng.integers(2, 7), rng=seed, budget=5000
        )
        if found.error_bound is not None:
            checked += 1
            assert found.hyperplane.angle_to(truth) <= found.error_bound, (seed, kind, found.method)
        assert found.assumptions
    assert checked > 80


def test_a_model_without_a_bound_is_not_taken_for_accurate() -> None:
    """Rounded answers from inside a box leave the normal open: labels go on where they end."""
    model = ox.Hyperplane(np.random.default_rng(0).normal(size=10), 0.3)
    for distance in ("l1", "l2"):
        service = ox.Rounded(ox.ModelOracle(model, distance), 2)
        found = ox.extract(service, accuracy=1e-6, bounds=(-3.0, 3.0), rng=0)
        assert found.hyperplane.angle_to(model) <= found.error_bound <= 2e-6
        assert any("no bound on its error" in note for note in found.assumptions)


def test_a_budget_that_ends_after_a_rough_model_hands_it_over() -> None:
    model = ox.Hyperplane(np.random.default_rng(0).normal(size=10), 0.3)
    service = ox.Rounded(ox.ModelOracle(model, "l2"), 2)
    with pytest.raises(ox.BudgetExhausted) as caught:
        ox.extract(service, accuracy=1e-6, bounds=(-3.0, 3.0), rng=0, budget=30)
    assert caught.value.found.hyperplane.angle_to(model) < 0.1
    assert caught.value.found.spent.requests <= 30
    with pytest.raises(ox.BudgetExhausted) as caught:
        ox.extract(ox.LabelsOnly(service), accuracy=1e-6, bounds=(-3.0, 3.0), rng=0, budget=1)
    assert caught.value.found is None


def test_labels_that_end_with_the_budget_hand_over_what_they_know() -> None:
    model = ox.Hyperplane(np.random.default_rng(3).normal(size=8), 0.3)
    errors = []
    for budget in (20, 60, 120, 180):
        with pytest.raises(ox.BudgetExhausted) as caught:
            ox.extract(
                ox.LabelsOnly(ox.ModelOracle(model, "l1")), accuracy=1e-9, bounds=(-3.0, 3.0), rng=0, budget=budget
            )
        found = caught.value.found
        assert found.spent.requests <= budget
        errors.append(found.hyperplane.angle_to(model))
        assert errors[-1] <= found.error_bound
        assert not any("float64 has too few digits" in note for note in found.assumptions)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


def test_a_budget_that_ends_in_the_diagnosis_hands_over_a_guess() -> None:
    """Ten noisy explanations of a service that says nothing of its terms: about the mean direction."""
    model = ox.Hyperplane(np.random.default_rng(5).normal(size=6), 0.3)
    service = ox.Noisy(ox.ModelOracle(model, "l2"), 0.02, rng=0, published=ox.Mechanism(None, slack=None))
    with pytest.raises(ox.BudgetExhausted) as caught:
        ox.extract(service, accuracy=1e-6, bounds=(-3.0, 3.0), rng=0, budget=12)
    found = caught.value.found
    assert found.error_bound is None
    assert found.oriented
    assert found.hyperplane.angle_to(model) < 0.2


@pytest.mark.parametrize("budget", [12, 24, 60, 120])
def test_more_requests_do_not_make_a_good_guess_worse(budget: int) -> None:
    """Random radii under l2 hide the offset only: the direction is exact from the first answer on."""
    model = ox.Hyperplane(np.random.default_rng(1).normal(size=10), 0.3)
    service = ox.RandomRadius(ox.ModelOracle(model, "l2"), 0.5, rng=0, published=ox.Mechanism(None, slack=None))
    with pytest.raises(ox.BudgetExhausted) as caught:
        ox.extract(service, accuracy=1e-9, bounds=(-3.0, 3.0), rng=0, budget=budget)
    found = caught.value.found
    angle = found.hyperplane.angle_to(model)
    assert angle < 1e-12
    assert found.error_bound is None or angle <= found.error_bound
    # Labels place the plane, once there are some on both sides of it.
    assert abs(found.hyperplane.offset - model.offset / np.linalg.norm(model.normal)) < (0.1 if budget < 60 else 0.01)


def test_points_that_add_nothing_hand_over_to_labels() -> None:
    """A service that always names the same point of the plane: explanations alone never give the model."""
    model = ox.Hyperplane([1.0] * 5, 10.0)

    class Fixed:
        dimension, mechanism = 5, ox.Mechanism(None)
        classify = staticmethod(model.label)

        def explain(self, x: np.ndarray) -> np.ndarray:
            return np.full(5, 2.0)

    found = ox.extract(Fixed(), bounds=(0.0, 5.0), rng=0)
    assert found.hyperplane.angle_to(model) <= found.error_bound <= 2e-6
