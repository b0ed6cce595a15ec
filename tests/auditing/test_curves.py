"""The curve says what the log says: re-derived answer by answer, by linear programs, and by the proving engine."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from overexplain.auditing.determining.curves import checkpoints, determined_curve, first_order, look
from overexplain.auditing.determining.orders import ask, split
from overexplain.errors import InvalidInput
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.engine import Knowledge
from overexplain.log.rows import Status
from overexplain.models.linear import LinearModel
from overexplain.oracles.degradations import DEGRADATIONS
from overexplain.oracles.imitations import IMITATIONS
from overexplain.oracles.services import Service

P = 5
MODEL = LinearModel(Hyperplane([0.7, -3.1, 0.4, 1.3, -0.6], 0.5))
ROWS = np.random.default_rng(3).normal(size=(150, P))
ANSWERS = (1, 2, 3, 4, 5, 6, 8, 12, 20, 40)
LOOKS = {"answers": ANSWERS, "orders": 3, "judged": 60, "rng": 7}


def curve(spec, model=MODEL, rows=ROWS, **changes):
    return determined_curve(model, rows, Service.parse(spec), "s1", **(LOOKS | changes))


def order(spec, model=MODEL, rows=ROWS, **changes):
    return first_order(model, rows, Service.parse(spec), **(LOOKS | changes))


@pytest.fixture(scope="module")
def breast_cancer():
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    table, outcome = load_breast_cancer(return_X_y=True)
    rows = StandardScaler().fit_transform(table)
    fitted = LogisticRegression(max_iter=500).fit(rows, outcome)
    return LinearModel(Hyperplane.from_intercept(fitted.coef_[0], fitted.intercept_[0])), rows


EXACT = ["labels", "l1", "linf", "l2", "lp:1.5", "l1; robust=l2:0.1", "l2; robust=l2:0.1", "linf; robust=l1:0.2"]


BENT = ["l1; robust=l2:0.1", "l2; suboptimal:0.2", "l2; rounded:1", "l1; rounded:1"]
INEXACT = ["l1; suboptimal:0.2", "l2; suboptimal:0.2", "l1; rounded:1", "linf; rounded:1", "l2; rounded:1"]


@pytest.mark.parametrize("spec", [*EXACT, *INEXACT, "l1; nearest-row", "l2; one-sided"])
def test_every_share_is_what_the_proving_engine_says_of_the_same_log(spec) -> None:
    looks = {"answers": (1, 3, 5, 8, 20), "judged": 30}
    found, first = curve(spec, **looks), order(spec, **looks)
    unsettled = 0.0
    for k, share in zip(found.answers, found.first, strict=True):
        verdicts = Knowledge(first.log(k)).certify(first.judged)
        proved = float(np.mean(np.abs(verdicts.codes) == 1))
        unsettled = max(unsettled, proved - share)
        assert share <= proved
    assert unsettled <= found.undecided
    if spec not in BENT:
        assert unsettled == 0.0


def test_labels_only_by_a_linear_program_for_every_point_and_number_of_answers() -> None:
    model, rows = LinearModel(Hyperplane([1.0, -0.5], 0.2)), ROWS[:60, :2]
    found = curve("labels", model, rows, orders=2, judged=12)
    first = order("labels", model, rows, orders=2, judged=12)
    for k, share in zip(found.answers, found.first, strict=True):
        cone = np.hstack([first.asked[:k], -np.ones((k, 1))]) * first.labels[:k, None]
        certain = 0
        for x in first.judged:
            query = np.append(x, -1.0)
            # Yes (No): the query (its negative) is a sum of what the labels say, with weights ≥ 0.
            fits = [linprog(np.zeros(k), A_eq=cone.T, b_eq=s * query, bounds=(0, None)).status == 0 for s in (YES, NO)]
            certain += any(fits)
        assert share == certain / len(first.judged)
    assert found.first[-1] > 0.5


@pytest.mark.parametrize("spec", EXACT)
def test_shares_rise_and_lie_in_order_and_nothing_is_wrong(spec) -> None:
    found = curve(spec)
    for shares in (found.median, found.low, found.high, found.highest, found.first):
        assert len(shares) == len(found.answers)
        assert all(0 <= a <= b <= 1 for a, b in itertools.pairwise(shares))
    together = zip(found.low, found.median, found.high, found.highest, strict=True)
    assert all(low <= middle <= high <= highest for low, middle, high, highest in together)
    assert (found.wrong, found.terms_broken, found.orders, found.judged) == (0, 0, 3, 60)


@pytest.mark.parametrize(
    ("spec", "known"),
    [("l1", P), ("linf", P), ("l2", 1), ("labels", None), ("l1; robust=l1:0.2", P), ("l1; switching:l1,linf", P)],
)
def test_the_model_is_known_after_as_many_answers_as_theory_says(spec, known) -> None:
    assert curve(spec).known_at == known


def test_once_the_model_is_known_everything_is_determined() -> None:
    found = curve("l1")
    assert [share for k, share in zip(found.answers, found.first, strict=True) if k >= P] == [1.0] * 6
    assert found.first[ANSWERS.index(P - 1)] < 1.0


def test_a_case_on_the_plane_is_determined_only_between_others_on_it_and_is_no_mistake() -> None:
    model, rows = LinearModel(Hyperplane([1.0, 2.0], 0.0)), np.round(ROWS[:80, :2], 1)
    rows[:20] = np.outer(np.arange(1.0, 21.0), [2.0, -1.0])  # exactly on the plane
    found = curve("l1", model, rows)
    assert found.wrong == 0
    first = order("l1", model, rows)
    off = np.mean(first.judged @ [1.0, 2.0] != 0)
    assert 0 < off < 1
    between = [np.mean(np.abs(Knowledge(first.log(k)).certify(first.judged).codes) == 1) for k in (P, ANSWERS[-1])]
    assert [found.first[ANSWERS.index(P)], found.first[-1]] == between == [off, 1.0]
    assert found.at_most == found.highest  # it is not left open either


def test_cases_judged_were_not_asked_and_no_two_orders_are_alike() -> None:
    rows = np.vstack([ROWS[:60], ROWS[:60], ROWS[60:]])  # every case of the first sixty is there twice
    drawn = split(MODEL, rows, answers=40, orders=4, judged=50, rng=0)
    for one in drawn:
        asked = {row.tobytes() for row in rows[one.asked]}
        assert not any(row.tobytes() in asked for row in rows[one.judged])
        assert (len(one.asked), len(one.judged)) == (40, 50)
        assert len(set(one.judged.tolist())) == 50
    assert len({tuple(one.asked) for one in drawn}) == 4


def test_few_rows_are_shared_between_asking_and_judging() -> None:
    found = curve("labels", rows=ROWS[:40], answers=range(1, 101), judged=500)
    assert (found.askable, found.judged, found.answers[-1]) == (30, 10, 30)


def test_the_denied_ask_and_everyone_is_judged() -> None:
    first = order("l1", population="denied")
    assert set(first.labels.tolist()) == {NO}
    assert set(MODEL.hyperplane.labels(first.judged).tolist()) == {NO, YES}
    found = curve("l1", population="denied")
    assert (found.population, found.wrong, found.known_at) == ("denied", 0, P)


def test_denied_without_any_are_refused() -> None:
    far = ROWS + 100 * MODEL.hyperplane.normal
    with pytest.raises(InvalidInput, match="0 of them cases answered with No"):
        curve("l1", rows=far, population="denied")


@pytest.mark.parametrize("spec", ["l1", "labels", "l2; noisy:0.1", "imitate=dice-random"])
def test_the_first_order_stands_apart(spec) -> None:
    found = curve(spec)
    again = look(order(spec), found.answers).shares()
    assert tuple(again) == found.first
    assert curve(spec, orders=5).first == found.first


def test_a_seed_repeats_everything_and_another_one_does_not() -> None:
    assert curve("l1") == curve("l1")
    assert curve("l1") == curve("l1", rng=np.random.default_rng(7))
    assert curve("l1") != curve("l1", rng=8)


def test_two_processes_find_the_same() -> None:
    assert curve("l1; rounded:2", workers=2) == curve("l1; rounded:2")


def test_every_service_meets_the_same_cases() -> None:
    one, other = order("l1"), order("imitate=dice-random")
    assert np.array_equal(one.asked, other.asked)
    assert np.array_equal(one.judged, other.judged)


@pytest.mark.parametrize("exponent", [40, -40])
def test_units_do_not_matter(exponent) -> None:
    unit = 2.0**exponent
    scaled = LinearModel(Hyperplane(MODEL.hyperplane.normal, MODEL.hyperplane.offset * unit))
    for spec in ("l1", "linf", "labels", "l2"):
        assert curve(spec, scaled, ROWS * unit) == curve(spec)


BROKEN = {"solver", "solver-linf float32"}
WAYS = [
    "float32", "noisy:0.1", "suboptimal:0.1", "overshoot:0.1", "overshoot:0.1:uniform", "random-radius:0.2", "nearest-row",
    "switching:l1,linf", "flaky:0.3", "flaky:0.3:raise", "flaky:0.3:echo", "flaky:0.3:no flip", "one-sided", "boxed:-20:20",
    "immutable:0,1", "sparse:3", "monotone", "rounded:2",
]  # fmt: skip


def test_all_ways_are_tried() -> None:
    assert {way.split(":")[0] for way in WAYS} == set(DEGRADATIONS)


@pytest.mark.parametrize("spec", [*(f"imitate={name}" for name in IMITATIONS), *(f"l1; {way}" for way in WAYS)])
def test_no_service_leads_to_a_false_claim(spec, breast_cancer) -> None:
    model, rows = breast_cancer
    looks = {"answers": (1, 10, 30, 60), "orders": 2, "judged": 60, "rng": 1}
    found = curve(spec, model, rows, **looks)
    assert found.wrong == 0
    labels = curve("labels", model, rows, **looks)
    if found.terms_broken == 2:
        assert replace(found, service="s1", terms_broken=0) == replace(labels, known_at=found.known_at)
    assert all(a >= b for a, b in zip(found.first, labels.first, strict=True))


@pytest.mark.parametrize(
    ("spec", "broken"),
    [("imitate=solver", 3), ("l1; float32", 3), ("l2; noisy:0.1", 3), ("l1; flaky:0.5:echo", 3), ("l1; rounded:2", 0)],
)
def test_answers_that_break_their_own_terms_are_not_believed(spec, broken) -> None:
    found, first = curve(spec), order(spec)
    assert found.terms_broken == broken
    assert first.keeps_terms == (broken == 0)
    assert (len(first.log(9).explained) == 0) == (broken > 0)
    if broken:
        assert found.first == curve("labels").first


def test_published_terms_that_are_not_the_services_own_are_not_believed() -> None:
    lying = Service(Mechanism("l1"), published=Mechanism("l2"))
    assert not first_order(MODEL, ROWS, lying, **LOOKS).keeps_terms
    secret = Service.parse("l1; robust=l2:0.2; secret")
    found = determined_curve(MODEL, ROWS, secret, "s1", **LOOKS)
    assert (found.wrong, found.terms_broken) == (0, 0)
    assert found.first[-1] > curve("labels").first[-1]


def test_a_missing_explanation_counts_as_an_answer_with_a_label() -> None:
    first = order("l1; one-sided")
    log = first.log(20)
    assert len(log) == 20
    assert np.all(log.labels != 0)
    explained = log.status == Status.ASKED
    assert np.array_equal(explained, log.labels == NO)
    raised = order("l1; flaky:0.3:raise").log(20)
    assert 0 < len(raised.explained) < 20


def test_progress_is_told_after_every_order() -> None:
    seen = []
    curve("l2", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_checkpoints_rise_and_end_where_cases_end() -> None:
    for p in (1, 2, 10, 30, 200, 5000):
        for askable in (1, 7, 100, 100_000):
            numbers = checkpoints(p, askable)
            assert list(numbers) == sorted(set(numbers))
            assert 1 <= numbers[0] <= numbers[-1] <= askable
            assert len(numbers) <= 80
            assert p > askable or p in numbers


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": ()}, "answers must be whole numbers that rise"),
        ({"answers": (3, 3)}, "answers must be whole numbers that rise"),
        ({"answers": (0, 3)}, "answers must be whole numbers that rise"),
        ({"orders": 0}, "orders must be a whole number above 0"),
        ({"judged": 0}, "judged must be a whole number above 0"),
        ({"population": "some"}, "population is one of all, denied"),
        ({"workers": 0}, "workers must be"),
        ({"answers": (200,)}, "only 113 cases can be asked"),
        ({"rows": ROWS[:1]}, "1 rows are too few"),
        ({"rows": np.ones((9, P))}, "cannot be divided"),
    ],
)
def test_what_cannot_be_done_is_said(changes, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        curve("l1", **changes)


def test_an_order_has_no_more_answers_than_were_asked() -> None:
    with pytest.raises(InvalidInput, match="41 answers of this order were asked for, it has 40"):
        order("l1").log(41)


@pytest.mark.parametrize(
    "spec", [*EXACT[1:], *INEXACT, "l1; nearest-row", "l1; robust=l2:0.2; secret", "l1; overshoot:0.2"]
)
def test_the_audited_model_keeps_its_own_terms_and_no_other_does(spec) -> None:
    first = order(spec)
    assert first.keeps_terms
    assert replace(first, certain=False).keeps_terms
    other = LinearModel(Hyperplane(np.asarray(MODEL.hyperplane.normal) + np.eye(P)[0], MODEL.hyperplane.offset))
    assert not replace(first, certain=False, model=other).keeps_terms


def test_orders_are_what_is_averaged() -> None:
    drawn = split(MODEL, ROWS, answers=40, orders=3, judged=60, rng=7)
    service = Service.parse("l1")
    shares = np.array([look(ask(MODEL, ROWS, service, one), ANSWERS).shares() for one in drawn])
    found = curve("l1")
    assert found.highest == tuple(shares.max(axis=0))
    assert found.median == tuple(np.median(shares, axis=0))


def test_cases_that_occur_many_times_are_asked_or_judged_never_both() -> None:
    model = LinearModel(Hyperplane([1.0, -1.0, 0.5], 0.2))
    rows = np.random.default_rng(0).integers(0, 2, (300, 3)).astype(np.float64)  # at most eight different ones
    found = determined_curve(model, rows, Service.parse("labels"), "s1", answers=(1, 5, 50), orders=4, judged=60, rng=0)
    order = first_order(model, rows, Service.parse("labels"), answers=(1, 5, 50), orders=4, judged=60, rng=0)
    assert found.judged > 0
    assert not (order.judged[:, None] == order.asked[None]).all(axis=2).any()
    assert found.wrong == 0
