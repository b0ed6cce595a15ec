"""Services that are not perfect do exactly what they are meant to do wrong, and publish what they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import overexplain as ox
from overexplain.oracles.constrained import Boxed, Immutable, OneHot
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
from overexplain.oracles.protocol import checked_explanation, offers
from overexplain.oracles.silent import Flaky, OneSided
from overexplain.testing.oracles import check_oracle
from strategies import make_norm

P = 6
RNG = np.random.default_rng(0)
MODEL = ox.Hyperplane(RNG.normal(size=P), 0.4)
ROWS = RNG.normal(size=(40, P)) * 2


def exact(name: str = "l1", model: ox.Hyperplane = MODEL) -> ox.ModelOracle:
    return ox.ModelOracle(model, ox.Mechanism(make_norm(name, model.dimension, 1, spread=0.5)))


def past(answers: np.ndarray, questions: np.ndarray, distance: ox.Norm) -> np.ndarray:
    """How far past the boundary, in the distance; negative before it."""
    return -MODEL.labels(questions) * MODEL.margin(answers) / distance.dual(MODEL.normal)


EVERY = {
    "Rounded": lambda oracle: Rounded(oracle, 2),
    "Float32": Float32,
    "Noisy": lambda oracle: Noisy(oracle, 0.1, rng=0),
    "Suboptimal": lambda oracle: Suboptimal(oracle, 0.2, rng=0),
    "Overshoot": lambda oracle: Overshoot(oracle, 0.1),
    "Overshoot uniform": lambda oracle: Overshoot(oracle, 0.1, "uniform", rng=0),
    "RandomRadius": lambda oracle: RandomRadius(oracle, 0.3, rng=0),
    "RandomRadius keyed": lambda oracle: RandomRadius(oracle, 0.3, keyed=True, rng=0),
    "NearestRow": lambda oracle: NearestRow(oracle, ROWS),
    "SwitchingNorm": lambda oracle: SwitchingNorm(oracle, ["l1", "l2", "linf"], rng=0),
    "Flaky": lambda oracle: Flaky(oracle, 0.0),
    "OneSided": OneSided,
}
REPEATABLE = ("Rounded", "Float32", "Overshoot", "RandomRadius keyed", "NearestRow", "Flaky", "OneSided")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("distance", ["l1", "l2", "weighted linf"])
def test_every_wrapper_keeps_the_contract(name: str, distance: str) -> None:
    inner = exact(distance)
    service = EVERY[name](inner)
    check_oracle(service, points=ROWS, optimal=False)
    assert service.wrapped is inner
    assert service.dimension == P
    assert service.domain is None
    assert offers(service, "classify")
    assert service.classify(ROWS).tolist() == inner.classify(ROWS).tolist()
    rows = ROWS.copy()
    rows.setflags(write=False)
    batch = service.explain(rows)
    if name in REPEATABLE:
        for row, together in zip(rows, batch, strict=True):
            alone = service.explain(row)
            assert np.isnan(together).all() if alone is None else together == pytest.approx(alone, abs=1e-12)
    assert service.explain(rows[:0]).shape == (0, P)
    with pytest.raises(ox.DimensionMismatch):
        service.explain([0.0])
    says = ox.Mechanism("l2", slack=0.5)
    overridden = EVERY[name](inner)
    assert type(overridden)(inner, **arguments(name), published=says).mechanism == says


def arguments(name: str) -> dict:
    """What each needs besides the oracle."""
    return {
        "Rounded": {"decimals": 2}, "Noisy": {"scale": 0.1}, "Suboptimal": {"slack": 0.2}, "NearestRow": {"rows": ROWS},
        "SwitchingNorm": {"distances": ["l1"]}, "Flaky": {"rate": 0.5},
    }.get(name, {"amount": 1} if "Overshoot" in name else {"radius": 1} if "Random" in name else {})  # fmt: skip


@pytest.mark.parametrize("name", [n for n in EVERY if n not in REPEATABLE])
def test_the_same_seed_gives_the_same_answers_and_another_question_new_ones(name: str) -> None:
    first, second = EVERY[name](exact()), EVERY[name](exact())
    answers = first.explain(ROWS)
    assert np.array_equal(answers, second.explain(ROWS))
    assert not np.array_equal(answers, first.explain(ROWS))


def test_where_terms_are_kept_the_shipped_check_agrees() -> None:
    for distance in ("l1", "l2", "linf"):
        for service in (
            Rounded(exact(distance), 9),
            Overshoot(exact(distance), 0.2),
            OneSided(exact(distance), ox.YES),
        ):
            check_oracle(service)
    lies = Overshoot(exact("l1"), 0.2, published=ox.Mechanism("l1"))
    with pytest.raises(AssertionError):
        check_oracle(lies)


# ------------------------------------------------------------------------------------------------ rounding and noise


@pytest.mark.parametrize("decimals", [-1, 0, 1, 2, 6])
def test_rounded_publishes_a_tolerance_that_holds(decimals: int) -> None:
    for name in ("l1", "l2", "linf", "weighted l1"):
        inner = exact(name)
        service = Rounded(inner, decimals)
        answers = service.explain(ROWS)
        assert np.array_equal(answers, np.round(inner.explain(ROWS), decimals))
        off = inner.mechanism.distance(answers - inner.explain(ROWS))
        assert off.max() <= service.mechanism.tolerance
        half = inner.mechanism.distance(np.full(P, 0.5 * 10.0**-decimals))
        assert half <= service.mechanism.tolerance <= half * (1 + 1e-6)
        assert service.mechanism.slack == 0
    twice = Rounded(Rounded(exact("l2"), 1), decimals).mechanism.tolerance
    assert twice == pytest.approx(np.sqrt(P) * (0.05 + 0.5 * 10.0**-decimals), rel=2e-6)


def test_rounded_without_a_distance_promises_nothing() -> None:
    """A tolerance has no unit there, and rounding may take an answer back over the plane."""
    service = Rounded(SwitchingNorm(exact(), ["l1", "l2"], rng=0), 2)
    assert service.mechanism == ox.Mechanism(None, tolerance=0.005, slack=None)
    plane = ox.Hyperplane([2.0, 0.0], 0.5)
    service = Rounded(Immutable(ox.ModelOracle(plane, "l1"), [1]), 1)
    log = ox.QueryLog(mechanism=service.mechanism)
    log.add_explanation([-1.0, -2.0], service.explain([-1.0, -2.0]), label=-1)
    assert plane.labels(log.explanations).tolist() == [-1]
    assert ox.Knowledge(log).certify(log.explanations).codes.tolist() == [0]


def test_float32_keeps_24_bits_and_the_terms() -> None:
    inner = exact("l2")
    answers = Float32(inner).explain(ROWS)
    assert np.array_equal(answers, answers.astype(np.float32))
    assert answers.dtype == np.float64
    assert 0 < np.abs(answers / inner.explain(ROWS) - 1).max() <= 2.0**-24
    assert Float32(inner).mechanism == inner.mechanism


def test_noise_is_gaussian_of_the_given_scale() -> None:
    inner = exact("l2")
    service = Noisy(inner, 0.3, rng=1)
    noise = (service.explain(np.zeros((4000, P))) - inner.explain(np.zeros(P))).ravel()
    assert stats.kstest(noise / 0.3, "norm").pvalue > 0.01
    assert service.mechanism == ox.Mechanism("l2", slack=None)
    assert np.array_equal(Noisy(inner, 0.0).explain(ROWS), inner.explain(ROWS))


# ------------------------------------------------------------------------------------------------ too long, too far


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "lp:1.5", "weighted l1"])
@pytest.mark.parametrize("slack", [0.01, 0.3, 2.0])
def test_suboptimal_answers_are_valid_within_their_slack_and_leave_the_line(name: str, slack: float) -> None:
    inner = exact(name)
    service = Suboptimal(inner, slack, rng=0)
    distance, answers = inner.mechanism.distance, service.explain(ROWS)
    assert (past(answers, ROWS, distance) >= -1e-12).all()
    ratio = distance(answers - ROWS) / distance(inner.explain(ROWS) - ROWS)
    assert (ratio >= 1 - 1e-12).all()
    assert (ratio <= (1 + slack) * (1 + 1e-12)).all()
    assert ratio.std() > 0.05 * slack
    steps, optimal = answers - ROWS, inner.explain(ROWS) - ROWS
    cosine = (steps * optimal).sum(axis=1) / np.linalg.norm(steps, axis=1) / np.linalg.norm(optimal, axis=1)
    assert np.median(1 - cosine) > 1e-8 if slack > 0.1 else (1 - cosine).max() > 1e-8
    assert service.mechanism == ox.Mechanism(distance, slack=slack)


def test_suboptimal_slacks_multiply_and_balls_stay_across() -> None:
    assert Suboptimal(Suboptimal(exact(), 0.5, rng=0), 0.2, rng=0).mechanism.slack == pytest.approx(0.8)
    assert Suboptimal(Noisy(exact(), 0.1, rng=0), 0.2, rng=0).mechanism.slack is None
    terms = ox.Mechanism("l2", robustness="l2", radius=0.5)
    robust = Suboptimal(ox.ModelOracle(MODEL, terms), 0.3, rng=0)
    answers = robust.explain(ROWS)
    assert (past(answers, ROWS, ox.l2) >= 0.5 - 1e-12).all()
    assert robust.mechanism == ox.Mechanism("l2", robustness="l2", radius=0.5, slack=0.3)
    on_plane = MODEL.normal * MODEL.offset / (MODEL.normal @ MODEL.normal)
    assert Suboptimal(exact("l2"), 0.3, rng=0).explain(on_plane) == pytest.approx(on_plane, abs=1e-14)
    with pytest.raises(ox.InvalidInput, match="needs to know the distance"):
        Suboptimal(SwitchingNorm(exact(), ["l1"]), 0.1)


def test_suboptimal_answers_stay_in_the_domain() -> None:
    box = Suboptimal(Boxed(exact("l2"), -2, 2), 0.5, rng=0)
    rows = box.domain.sample(0, 60)
    answers = box.explain(rows)
    answered = ~np.isnan(answers).any(axis=1)
    assert answered.sum() > 40
    assert all(box.domain.contains(z) for z in answers[answered])
    assert np.any(answers[answered] != box.wrapped.explain(rows)[answered])
    categories = Suboptimal(OneHot(exact("l1"), [[0, 1, 2]], [3]), 0.5, rng=0)
    for x in categories.domain.sample(0, 10):
        answer = categories.explain(x)
        assert answer is None or categories.domain.contains(answer)


@pytest.mark.parametrize("name", ["l1", "l2", "linf", "weighted l2"])
def test_overshoot_goes_on_along_its_own_step(name: str) -> None:
    inner = exact(name)
    distance, straight = inner.mechanism.distance, inner.explain(ROWS)
    constant = Overshoot(inner, 0.2)
    answers = constant.explain(ROWS)
    assert past(answers, ROWS, distance) == pytest.approx(0.2, abs=1e-12)
    assert distance(answers - straight) == pytest.approx(0.2, rel=1e-12)
    robust = ox.ModelOracle(MODEL, ox.Mechanism(distance, robustness=distance, radius=0.2))
    assert answers == pytest.approx(robust.explain(ROWS), abs=1e-12)  # which is what it publishes, the radius secret
    assert constant.mechanism == ox.Mechanism(distance, radius=None)
    uniform = Overshoot(inner, 0.2, "uniform", rng=0)
    x = np.tile(ROWS[0], (2000, 1))
    amounts = past(uniform.explain(x), x, distance)
    assert stats.kstest(amounts / 0.2, "uniform").pvalue > 0.01
    assert uniform.mechanism == ox.Mechanism(distance, slack=None)


def test_overshoot_on_the_plane_and_around_others() -> None:
    plane = ox.Hyperplane([1.0, 2.0, 2.0], 2.0)
    on_plane = np.array([0.0, 0.5, 0.5])
    answer = Overshoot(ox.ModelOracle(plane, ox.Mechanism("l2")), 0.3).explain(on_plane)
    assert answer == pytest.approx(on_plane - 0.1 * plane.normal)  # on the plane is Yes: the other side is below
    rounded = Overshoot(Rounded(ox.ModelOracle(plane, ox.Mechanism("l2")), 3), 0.3)
    assert rounded.explain(on_plane) == pytest.approx(on_plane)  # no step, no direction
    assert rounded.mechanism.radius is None
    assert rounded.mechanism.tolerance == pytest.approx(np.sqrt(3) * 5e-4)
    assert Overshoot(Suboptimal(exact(), 0.1, rng=0), 0.1).mechanism.slack is None
    assert Overshoot(SwitchingNorm(exact(), ["l1", "l2"], rng=0), 0.1).mechanism == ox.Mechanism(None, slack=None)


@pytest.mark.parametrize("robustness", [None, "l1", "linf"])
@pytest.mark.parametrize("law", ["uniform", "beta"])
def test_random_radius_answers_are_robust_ones_with_a_drawn_radius(robustness: str | None, law: str) -> None:
    inner = exact("l1")
    service = RandomRadius(inner, 0.5, robustness, law, rng=0)
    ball = ox.l1 if robustness is None else ox.norm(robustness)
    x = np.tile(ROWS[1], (2000, 1))
    answers = service.explain(x)
    radii = -MODEL.labels(x) * MODEL.margin(answers) / ball.dual(MODEL.normal)
    cdf = stats.uniform().cdf if law == "uniform" else stats.beta(3, 1).cdf
    assert stats.kstest(radii / 0.5, cdf).pvalue > 0.01
    for answer, radius in zip(answers[:5], radii[:5], strict=True):
        robust = ox.ModelOracle(MODEL, ox.Mechanism("l1", robustness=ball, radius=radius))
        assert answer == pytest.approx(robust.explain(x[0]), abs=1e-12)
    assert service.mechanism == ox.Mechanism("l1", slack=None)


def test_a_keyed_radius_belongs_to_the_question() -> None:
    service = RandomRadius(exact("l1"), 0.5, keyed=True, rng=0)
    answers = service.explain(ROWS)
    assert np.array_equal(answers, service.explain(ROWS))
    assert np.array_equal(service.explain(ROWS[3]), service.explain(ROWS[3]))
    assert service.explain(ROWS[3]) == pytest.approx(answers[3], abs=1e-12)
    assert np.array_equal(service.explain(np.zeros(P)), service.explain(-np.zeros(P)))
    radii = past(answers, ROWS, ox.l1)
    assert stats.kstest(radii / 0.5, "uniform").pvalue > 0.01
    other = RandomRadius(exact("l1"), 0.5, keyed=True, rng=1)
    assert not np.allclose(radii, past(other.explain(ROWS), ROWS, ox.l1))


# ------------------------------------------------------------------------------------------------ from elsewhere


@pytest.mark.parametrize("name", ["l1", "l2", "weighted linf"])
def test_nearest_row_is_the_nearest_with_the_other_label(name: str) -> None:
    inner, questions = exact(name), np.random.default_rng(9).normal(size=(30, P))
    service = NearestRow(inner, ROWS)
    distance = inner.mechanism.distance
    for x in questions:
        across = [row for row in ROWS if MODEL.label(row) != MODEL.label(x)]
        best = min(across, key=lambda row: distance(row - x))
        assert np.array_equal(service.explain(x), best)
    assert service.mechanism == ox.Mechanism(distance, slack=None)
    given = service.explain(questions[0])
    given[:] = 0.0
    assert service.explain(questions[0]).any()
    yes_only = NearestRow(inner, ROWS[MODEL.labels(ROWS) == ox.YES])
    answers = yes_only.explain(ROWS)
    assert np.isnan(answers).all(axis=1).tolist() == (MODEL.labels(ROWS) == ox.YES).tolist()
    assert yes_only.explain(ROWS[MODEL.labels(ROWS) == ox.YES][0]) is None


def test_nearest_row_asks_for_the_rows_labels_once_and_works_around_labels_alone() -> None:
    class LabelsOnly:
        dimension, mechanism = P, None
        asked = 0

        def classify(self, x: object) -> object:
            LabelsOnly.asked += len(np.atleast_2d(x))
            return exact().classify(x)

    service = NearestRow(LabelsOnly(), ROWS)
    assert LabelsOnly.asked == len(ROWS)
    answer = service.explain(ROWS[0])
    assert LabelsOnly.asked == len(ROWS) + 1
    assert np.array_equal(answer, NearestRow(exact("l2"), ROWS).explain(ROWS[0]))
    assert service.mechanism == ox.Mechanism("l2", slack=None)


def test_switching_norm_draws_among_exact_answers() -> None:
    names = ["l1", "l2", "linf"]
    service = SwitchingNorm(exact(), names, rng=0)
    x = np.tile(ROWS[2], (300, 1))
    answers = service.explain(x)
    possible = [ox.ModelOracle(MODEL, ox.Mechanism(name)).explain(ROWS[2]) for name in names]
    which = np.array([int(np.argmin([np.abs(z - each).max() for each in possible])) for z in answers])
    assert all(np.array_equal(z, possible[k]) for z, k in zip(answers, which, strict=True))
    assert np.bincount(which, minlength=3).min() > 70
    assert service.mechanism == ox.Mechanism(None)
    robust = ox.ModelOracle(MODEL, ox.Mechanism("l1", robustness="l2", radius=0.3))
    assert SwitchingNorm(robust, names).mechanism == ox.Mechanism(None, robustness="l2", radius=0.3)
    reach = past(SwitchingNorm(robust, names, rng=0).explain(ROWS), ROWS, ox.l2)
    assert reach == pytest.approx(0.3, abs=1e-12)


# ------------------------------------------------------------------------------------------------ failing


SPELLINGS = ("none", "empty", "nan", "echo", "raise", "no flip")


@pytest.mark.parametrize("failure", SPELLINGS)
def test_every_spelling_of_a_failure(failure: str) -> None:
    service = Flaky(exact(), 1.0, failure, rng=0)
    for x in ROWS[:10]:
        if failure == "raise":
            with pytest.raises(RuntimeError, match="no counterfactual found"):
                service.explain(x)
            with pytest.raises(RuntimeError):
                service.explain(ROWS)
            continue
        answer = service.explain(x)
        if failure == "none":
            assert answer is None
        elif failure == "empty":
            assert answer == []
        elif failure == "nan":
            assert np.isnan(answer).all()
            assert answer.shape == (P,)
        elif failure == "echo":
            assert np.array_equal(answer, x)
        else:
            assert not np.array_equal(answer, x)
            assert MODEL.label(answer) == MODEL.label(x)
        if failure in ("none", "empty", "nan"):
            assert checked_explanation(answer, P) is None
    if failure != "raise":
        batch = service.explain(ROWS)
        assert batch.shape == ROWS.shape
        if failure == "echo":
            assert np.array_equal(batch, ROWS)
        elif failure == "no flip":
            assert (MODEL.labels(batch) == MODEL.labels(ROWS)).all()
            assert (batch != ROWS).any(axis=1).all()
        else:
            assert np.isnan(batch).all()
    assert service.mechanism == ox.Mechanism("l1", slack=None if failure == "no flip" else 0.0)


@pytest.mark.parametrize("failure", ["none", "echo", "no flip"])
def test_the_share_of_failures_and_the_other_answers_untouched(failure: str) -> None:
    service, rows = Flaky(exact(), 0.3, failure, rng=0), np.random.default_rng(1).normal(size=(1000, P))
    right = exact().explain(rows)
    good = np.isclose(service.explain(rows), right, atol=1e-12).all(axis=1)
    assert 0.65 < good.mean() < 0.75
    single = [service.explain(row) for row in rows[:300]]
    alike = [z is not None and np.allclose(z, right[i], atol=1e-12) for i, z in enumerate(single)]
    assert 0.6 < np.mean(alike) < 0.8


def test_no_flip_also_past_overshoot_in_a_box_and_among_categories() -> None:
    far = Flaky(Overshoot(exact(), 100.0), 1.0, "no flip", rng=0)
    assert (MODEL.labels(far.explain(ROWS)) == MODEL.labels(ROWS)).all()
    assert (far.explain(ROWS) != ROWS).any(axis=1).all()
    for inner in (Boxed(exact(), -3, 3), OneHot(exact("l1"), [[0, 1, 2]], [3], -9, 9)):
        service = Flaky(inner, 1.0, "no flip", rng=0)
        rows = service.domain.sample(0, 20)
        rows = rows[~np.isnan(inner.explain(rows)).any(axis=1)]
        answers = service.explain(rows)
        assert all(service.domain.contains(z) for z in answers)
        assert (MODEL.labels(answers) == MODEL.labels(rows)).all()
        assert (answers != rows).any(axis=1).all()
    nothing = Flaky(OneSided(exact()), 1.0, "no flip", rng=0)
    assert nothing.explain(ROWS[MODEL.labels(ROWS) == ox.YES][0]) is None
    assert np.isnan(nothing.explain(ROWS[MODEL.labels(ROWS) == ox.YES])).all()


@pytest.mark.parametrize("side", [ox.YES, ox.NO])
def test_one_sided_answers_one_side(side: int) -> None:
    service, labels = OneSided(exact(), side), MODEL.labels(ROWS)
    answers = service.explain(ROWS)
    assert np.array_equal(answers[labels == side], exact().explain(ROWS[labels == side]))
    assert np.isnan(answers[labels != side]).all()
    assert service.explain(ROWS[labels != side][0]) is None
    assert service.mechanism == ox.Mechanism("l1")


# ------------------------------------------------------------------------------------------------ together, and refused


def test_wrappers_go_around_one_another() -> None:
    service = OneSided(Rounded(Immutable(exact("l2"), [0, 3]), 2))
    denied = ROWS[MODEL.labels(ROWS) == ox.NO]
    answers = service.explain(denied)
    moved = np.abs(answers - denied) > 0.005
    assert not moved[:, [0, 3]].any()
    assert np.array_equal(answers, np.round(answers, 2))
    assert np.isnan(service.explain(ROWS[MODEL.labels(ROWS) == ox.YES])).all()
    # No distance, so no unit for a tolerance.
    assert service.mechanism == ox.Mechanism(None, tolerance=0.005, slack=None, domain=ox.Domain(P))
    assert OneSided(Rounded(exact("l2"), 2)).mechanism.tolerance == pytest.approx(0.005 * np.sqrt(P))
    assert service.wrapped.wrapped.wrapped.hyperplane == MODEL
    logged = ox.Recorded(ox.Budgeted(Flaky(Float32(Boxed(exact(), -9, 9)), 0.5, rng=0), 100))
    logged.explain(ROWS)
    assert len(logged.log) == len(ROWS)
    assert 5 < len(ROWS) - len(logged.log.explained) < 35
    assert logged.domain == logged.wrapped.wrapped.wrapped.wrapped.domain
    assert logged.domain.high[0] == 9


def test_what_answers_were_chosen_from_is_passed_on() -> None:
    inner = Boxed(exact("l2"), -9, 9)
    wrapped = [
        Rounded(inner, 2), Float32(inner), Suboptimal(inner, 0.1), NearestRow(inner, ROWS), Flaky(inner, 0.5),
        Flaky(inner, 0.5, "no flip"), OneSided(inner), ox.Budgeted(inner, 9), ox.Recorded(inner), OneSided(Rounded(inner, 1)),
    ]  # fmt: skip
    for service in wrapped:
        assert service.mechanism.domain == inner.domain == inner.mechanism.domain, service
        assert service.mechanism.distance == ox.l2
    # Answers that are moved once they have been chosen leave the box, but come from no more than before.
    for service in (
        Noisy(inner, 0.1),
        Overshoot(inner, 0.1),
        Overshoot(inner, 0.1, "uniform"),
        RandomRadius(inner, 0.1),
    ):
        assert service.mechanism.domain == ox.Domain(P), service
        assert service.domain == inner.domain
    assert Noisy(exact("l2"), 0.1).mechanism.domain is Overshoot(exact("l2"), 0.1).mechanism.domain is None
    told = ox.ModelOracle(MODEL, "l2", published=ox.Mechanism("l2", domain=ox.Domain(P)))
    assert SwitchingNorm(told, ["l1", "l2"]).mechanism.domain == ox.Domain(P)
    assert ox.LabelsOnly(inner).mechanism is None
    # Tens: the whole numbers are no longer those of the optimum.
    whole = ox.OneHot(exact("l1"), [], [0, 1])
    assert (Rounded(whole, 0).mechanism.slack, Rounded(whole, -1).mechanism.slack) == (0.0, None)
    assert Rounded(inner, -1).mechanism.slack == 0.0


def test_bad_arguments_are_refused_with_clear_words() -> None:
    inner = exact()
    refused = [
        (lambda: Rounded(inner, 1.5), "decimals must be a whole number"),
        (lambda: Rounded(inner, True), "decimals must be a whole number"),
        (lambda: Noisy(inner, -1), "scale must be a number, not negative"),
        (lambda: Noisy(inner, np.nan), "scale must be a number"),
        (lambda: Noisy(inner, "much"), "scale must be a number"),
        (lambda: Noisy(inner, 1, rng="x"), "rng must be"),
        (lambda: Suboptimal(inner, -0.1), "slack must be a number, not negative"),
        (lambda: Overshoot(inner, 0.1, "normal"), 'law must be "constant" or "uniform"'),
        (lambda: RandomRadius(inner, 0.1, law="normal"), 'law must be "uniform" or "beta"'),
        (lambda: RandomRadius(Rounded(inner, 2), 0.1, "l2"), "needs the model"),
        (lambda: SwitchingNorm(Rounded(inner, 2), ["l1"]), "SwitchingNorm needs the model"),
        (lambda: SwitchingNorm(inner, []), "distances must be a list of norms"),
        (lambda: SwitchingNorm(inner, "l1"), "distances must be a list of norms"),
        (lambda: Flaky(inner, 1.5), "rate is a share between 0 and 1"),
        (lambda: Flaky(inner, 0.5, "silence"), "failure must be one of none, empty, nan, echo, raise, no flip"),
        (lambda: OneSided(inner, 0), r"side must be \+1"),
        (lambda: NearestRow(inner, [[1.0]]), "rows must be a matrix with 6 columns"),
    ]
    for make, words in refused:
        with pytest.raises(ox.InvalidInput, match=words):
            make()
    secret = ox.ModelOracle(MODEL, ox.Mechanism("l1"), published=ox.Mechanism("l1", radius=None))
    with pytest.raises(ox.InvalidInput, match="hide it with published= here"):
        SwitchingNorm(secret, ["l1"])

    class LabelsOnly:
        dimension, mechanism = P, None

        def classify(self, x: object) -> object:
            return inner.classify(x)

    for name in ("Rounded", "Noisy", "Suboptimal", "Overshoot", "RandomRadius", "Flaky", "OneSided"):
        with pytest.raises(ox.InvalidInput, match=f"{name} changes explanations, but the oracle inside gives none"):
            EVERY[name](LabelsOnly())


def test_an_oracle_that_gives_too_few_rows_is_refused() -> None:
    class OneRow:
        dimension, mechanism = P, ox.Mechanism("l1")

        def classify(self, x: object) -> object:
            return exact().classify(x)

        def explain(self, x: object) -> object:
            return np.zeros(P)

    with pytest.raises(ox.DimensionMismatch, match="a row for each of the 40 rows"):
        Rounded(OneRow(), 2).explain(ROWS)
