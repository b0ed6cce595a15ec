"""A defence's cost is that of an attack that was carried out, its price what real cases get; both in any unit."""

from __future__ import annotations

from dataclasses import asdict

import msgspec
import numpy as np
import pytest
from scipy.optimize import linprog

from overexplain.auditing.audit_report import Cost, Defences, Quota
from overexplain.auditing.defending.applicant import price
from overexplain.auditing.defending.attacker import Attacker, Attempt, cheaper, median_attempt
from overexplain.auditing.defending.defences import compare_defences
from overexplain.auditing.defending.defended import NearestRows, defended
from overexplain.auditing.defending.explanations_only import ExplanationsOnly, Pool, SidesRead
from overexplain.auditing.defending.guesses import between, by_mean_step, main_axis, narrowest_band, read_sides, slopes
from overexplain.auditing.defending.setting import setting_of
from overexplain.errors import InvalidInput
from overexplain.extraction.extract import extract
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import l1, l2, linf, norm
from overexplain.models.linear import LinearModel
from overexplain.oracles.degraded import NearestRow, RandomRadius
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.protocol import offers
from overexplain.oracles.services import Service
from overexplain.oracles.wrappers import LabelsOnly

P = 6
ROWS = np.random.default_rng(3).normal(size=(400, P)) @ np.diag([1.0, 0.7, 1.3, 1.0, 0.9, 1.1]) + 0.2
NORMAL = np.array([0.913, -1.4142, 0.3117, 1.1253, -0.6129, 0.5371])
MODEL = LinearModel(Hyperplane(NORMAL, 0.4137))


def table(spec: str = "l1", model: LinearModel = MODEL, rows: np.ndarray = ROWS, **options) -> Defences:
    return compare_defences(model, rows, Service.parse(spec), "s1", rng=0, **options)


def by_id(found: Defences) -> dict:
    return {row.id: row for row in found.rows}


@pytest.fixture(scope="module")
def manhattan() -> Defences:
    return table(runs=3, limit=1000)


def test_every_defence_is_there(manhattan) -> None:
    assert [row.id for row in manhattan.rows] == [
        "none", "rounded-2", "rounded-1", "noisy", "suboptimal", "margin", "secret-margin", "random-margin", "switching",
        "nearest-row", "one-sided",
    ]  # fmt: skip
    assert (manhattan.service, manhattan.accuracy, manhattan.limit, manhattan.runs) == ("s1", 1e-3, 1000, 3)
    assert manhattan.cases == 400
    for row in manhattan.rows:
        assert len(row.short) <= 26
        assert row.short.isascii()
    assert msgspec.json.decode(msgspec.json.encode(manhattan), type=Defences) == manhattan


def test_costs_are_what_the_theorems_say(manhattan) -> None:
    rows = by_id(manhattan)
    counted = {
        id: rows[id].explained.explanations for id in ("none", "margin", "secret-margin", "switching", "one-sided")
    }
    assert counted == {"none": P, "margin": P, "secret-margin": P + 1, "switching": P, "one-sided": P}
    for id in counted:
        assert rows[id].explained.certified
        assert rows[id].explained.error < 1e-12
        assert rows[id].with_labels == rows[id].explained


def test_near_optimal_answers_are_broken_by_chains(manhattan) -> None:
    cost = by_id(manhattan)["suboptimal"].explained
    assert "chain" in cost.method
    assert cost.certified
    assert P < cost.explanations < 8 * P


def test_no_defence_costs_more_than_labels_do(manhattan) -> None:
    alone = []
    for seed in range(5):
        found = extract(
            LabelsOnly(ModelOracle(MODEL, "l1")), accuracy=1e-3, bounds=(ROWS.mean(0) - 3, ROWS.mean(0) + 3), rng=seed
        )
        alone.append(found.spent.labels)
    for row in manhattan.rows:
        assert row.with_labels.requests <= max(alone) + 5
        assert row.with_labels.error <= 1e-3
        if row.explained.requests is not None:
            assert row.explained.error <= 1e-3
            assert row.explained.labels == 0


def test_a_random_margin_withstands_estimators_but_its_steps_tell_the_decision() -> None:
    setting = setting_of(MODEL, ROWS, Service.parse("l1"))
    attacker = Attacker(setting, 1e-3, 3000)
    margin = next(entry for entry in defended(setting) if entry.id == "random-margin")
    read = attacker.by_reading_sides(ExplanationsOnly(margin.make(np.random.default_rng(1))), np.random.default_rng(2))
    alone = attacker.labels_only(margin.make(np.random.default_rng(1)), np.random.default_rng(2))
    assert read.succeeded
    assert read.labels == 0
    assert abs(read.explanations - alone.labels) <= 15
    silent = ExplanationsOnly(margin.make(np.random.default_rng(1)))
    guessed = attacker.by_guessing(silent, np.random.default_rng(2), read.explanations)
    assert not guessed.succeeded
    assert 1e-3 < guessed.error < 0.2  # estimators come nearer, but slowly


def test_sides_read_off_steps_are_the_labels() -> None:
    setting = setting_of(MODEL, ROWS, Service.parse("l1"))
    oracle = ExplanationsOnly(RandomRadius(setting.oracle(np.random.default_rng(0)), 0.3, keyed=True, rng=0))
    assert not offers(oracle, "classify")
    X = ROWS[:50]
    Z = oracle.answers(X)
    along = main_axis(Z - X)
    read = SidesRead(oracle, along, NO)
    sides = np.array([read.classify(x) for x in X])
    truth = setting.plane.labels(X)
    assert (sides == truth).all() or (sides == -truth).all()
    assert (read_sides(X, Z) == truth).all() or (read_sides(X, Z) == -truth).all()


def test_a_question_without_an_answer_lies_on_the_side_that_gets_none() -> None:
    setting = setting_of(MODEL, ROWS, Service.parse("l1; one-sided"))
    oracle = ExplanationsOnly(setting.oracle(np.random.default_rng(0)))
    denied = ROWS[setting.plane.labels(ROWS) == NO]
    along = main_axis(oracle.answers(denied) - denied)
    answered = -1 if along @ (oracle.answers(denied) - denied)[0] >= 0 else 1
    read = SidesRead(oracle, along, answered)
    labels = np.array([read.classify(x) for x in ROWS])
    assert (labels == answered * np.where(setting.plane.labels(ROWS) == NO, 1, -1)).all()


@pytest.mark.parametrize(
    ("factor", "chosen"), [(2.0**40, None), (2.0**-40, ("none", "rounded-1", "noisy", "random-margin", "nearest-row"))]
)
def test_the_table_is_the_same_in_any_unit(factor: float, chosen: tuple[str, ...] | None) -> None:
    def numbers(unit: float) -> list[dict]:
        model = LinearModel(Hyperplane(NORMAL / unit, 0.4137))
        service = Service(Mechanism("l1", "l2", 0.125 * unit))
        found = compare_defences(
            model, ROWS * unit, service, "s1", rng=0, runs=1, limit=100, cases=50, defences=chosen
        )  # fmt: skip
        rows = [asdict(row) for row in found.rows]
        return [{key: row[key] for key in row if key not in ("name", "short", "spec")} for row in rows]

    assert numbers(factor) == numbers(1.0)


def test_prices_are_what_each_case_gets(manhattan) -> None:
    rows = by_id(manhattan)
    plane, labels = MODEL.hyperplane, MODEL.hyperplane.labels(ROWS)
    shortest = np.abs(plane.margin(ROWS)) / np.abs(NORMAL).max()
    assert rows["none"].length == pytest.approx(1.0, abs=1e-9)
    assert rows["none"].invalid == 0.0  # although half of these answers get the old decision, by rounding
    exact = ModelOracle(plane, "l1").explain(ROWS)
    rounded = np.round(exact, 1)
    assert rows["rounded-1"].invalid == np.mean(plane.labels(rounded) == labels)
    assert rows["rounded-1"].length == pytest.approx(np.median(np.abs(rounded - ROWS).sum(axis=1) / shortest))
    nearest = [np.abs(ROWS[labels != label] - x).sum(axis=1).min() for x, label in zip(ROWS, labels, strict=True)]
    assert rows["nearest-row"].length == pytest.approx(np.median(nearest / shortest))
    assert rows["nearest-row"].shows_rows
    assert not rows["none"].shows_rows
    radius = float(rows["secret-margin"].spec.removeprefix("overshoot:"))
    assert radius == pytest.approx(0.2 * np.median(shortest), rel=5e-3)
    assert rows["margin"].length == pytest.approx(np.median((shortest + radius) / shortest))
    assert rows["one-sided"].unanswered == pytest.approx(np.mean(labels == YES))
    assert [row.unanswered for row in manhattan.rows if row.id != "one-sided"] == [0.0] * 10
    for id in ("suboptimal", "margin", "random-margin", "switching", "nearest-row"):
        assert rows[id].invalid == 0.0
        assert rows[id].length > 1
    assert 1 < rows["suboptimal"].length <= 1.1
    assert 0.4 < rows["noisy"].invalid < 0.6


def test_the_written_form_of_a_defence_makes_the_same_service(manhattan) -> None:
    setting = setting_of(MODEL, ROWS, Service.parse("l1"))
    for row in manhattan.rows:
        if row.spec is not None:
            oracle = Service.parse("l1").degraded(row.spec).oracle(MODEL, ROWS, 0)
            written = price(setting, oracle, ROWS)
            assert written.length == pytest.approx(row.length, rel=0.1)
            assert written.unanswered == row.unanswered


def test_a_quota_stops_explanations_and_not_labels() -> None:
    def quota(answers: int) -> Quota:
        return Quota("s1", 0.6, answers, False, 0.5, 0.7, 20, P)

    few = by_id(table(runs=1, quota=quota(P - 2), defences=("none", "quota")))["quota"]
    assert few.explained == Cost(None, None, None, False, few.explained.error)
    assert few.with_labels.explanations <= P - 2
    assert few.with_labels.requests <= 100
    assert few.unanswered == pytest.approx(1 - (P - 2) / len(ROWS))
    enough = by_id(table(runs=1, quota=quota(P), defences=("none", "quota")))
    assert enough["quota"].explained == enough["none"].explained
    assert by_id(table("l2", runs=1, quota=quota(1), defences=("quota",)))["quota"].explained.explanations == 1
    none = by_id(table(runs=1, quota=quota(0), defences=("quota",)))["quota"]
    assert none.explained.explanations is None
    assert none.with_labels.explanations == 0
    assert none.unanswered == 1.0


@pytest.mark.parametrize(
    "spec",
    ["l2", "linf", "lp:1.5", "l2; robust=linf:0.2; secret", "l1; rounded:1", "l1; one-sided", "l2; flaky:0.2:raise",
     "l2; flaky:0.3:nan", "l1; boxed:-2:2", "l2; immutable:0,1", "imitate=nice", "imitate=mip-recourse"],
)  # fmt: skip
def test_every_service_can_be_compared(spec: str) -> None:
    found = table(spec, runs=1, limit=120, cases=40)
    assert len(found.rows) >= 7
    for row in found.rows:
        for cost in (row.explained, row.with_labels):
            if cost.method is None:
                assert cost.requests is None
                assert not cost.certified
            else:
                assert cost.error <= 1e-3
                assert 0 < cost.requests <= 120
        assert row.with_labels.requests is not None
        if row.explained.requests is not None:
            assert row.with_labels.requests <= row.explained.requests
        assert row.invalid is None or 0 <= row.invalid <= 1
        assert row.length is None or row.length >= 0.5


def test_smooth_distances_hide_nothing_behind_a_margin() -> None:
    rows = by_id(table("l2", runs=1, cases=50))
    for id in ("none", "margin", "secret-margin", "random-margin", "one-sided"):
        assert rows[id].explained.explanations == 1
    assert rows["switching"].explained.explanations == P


def test_cases_that_all_get_one_decision() -> None:
    rows = ROWS[MODEL.hyperplane.labels(ROWS) == YES]
    found = by_id(table(rows=rows, runs=1, limit=100, cases=50, defences=("none", "nearest-row", "one-sided")))
    assert found["none"].explained.explanations == P
    for id in ("nearest-row", "one-sided"):
        assert found[id].unanswered == 1.0
        assert found[id].length is None
        assert found[id].invalid is None
    assert found["nearest-row"].explained.explanations is None


def test_constant_and_tiny_data_do_not_stop_it() -> None:
    rows = ROWS.copy()
    rows[:, 2] = 7.0
    assert by_id(table(rows=rows, runs=1, limit=100, cases=50, defences=("none",)))["none"].explained.explanations == P
    same = np.tile(ROWS[:1], (5, 1))
    assert by_id(table(rows=same, runs=1, limit=100, defences=("none",)))["none"].unanswered == 0.0


@pytest.mark.parametrize("p", [1, 2])
def test_few_features(p: int) -> None:
    model = LinearModel(Hyperplane(NORMAL[:p], 0.4137))
    found = by_id(table(model=model, rows=ROWS[:, :p], runs=1, limit=60, cases=40))
    assert found["none"].explained.explanations == p
    assert all(row.with_labels.requests <= 40 for row in found.values())


def test_the_same_seed_gives_the_same_table() -> None:
    options = {"runs": 1, "limit": 200, "cases": 50, "defences": ("rounded-1", "noisy", "random-margin")}
    assert table(**options) == table(**options)


def test_seconds_leave_rows_out_and_claim_nothing_about_them() -> None:
    seen = []
    found = table(runs=1, limit=50, cases=10, seconds=0.0, progress=lambda done, of: seen.append((done, of)))
    assert [row.id for row in found.rows] == ["none"]
    assert seen == [(1, 11)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"spec": "labels"}, "decisions only"),
        ({"defences": ("moat",)}, "no defence 'moat'"),
        ({"accuracy": 0.0}, "accuracy"),
        ({"runs": 0}, "at least 1"),
        ({"rows": ROWS[:1]}, "at least 2 rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        table(**options)


def test_nearest_rows_are_those_of_nearest_row() -> None:
    rng = np.random.default_rng(0)
    for distance, metric in ((l1, "cityblock"), (l2, "euclidean"), (linf, "chebyshev")):
        slow = NearestRow(ModelOracle(MODEL, Mechanism(distance)), ROWS)
        fast = NearestRows(slow, MODEL.hyperplane.labels(ROWS), metric)
        questions = rng.normal(size=(40, P))
        assert np.array_equal(fast.explain(questions), slow.explain(questions))
        assert np.array_equal(fast.explain(questions[0]), slow.explain(questions[0]))
        assert fast.mechanism == slow.mechanism


def test_exact_answers_give_the_exact_normal() -> None:
    X = np.random.default_rng(1).normal(size=(60, P))
    truth = Hyperplane(NORMAL, 0.0)
    for distance in ("l1", "linf", "l2"):
        Z = ModelOracle(MODEL, Mechanism(distance, distance, 0.3)).explain(X)  # a margin: one level a side
        sides = read_sides(X, Z)
        for guess in (slopes, narrowest_band):
            angle = Hyperplane(guess(X, Z, sides), 0.0).angle_to(truth)
            assert min(angle, np.pi - angle) < 1e-7
    lp = norm("lp:1.5")
    Z = ModelOracle(MODEL, Mechanism(lp)).explain(X)
    angle = Hyperplane(by_mean_step(lp, X, Z, read_sides(X, Z)), 0.0).angle_to(truth)
    assert min(angle, np.pi - angle) < 1e-9


def test_the_narrowest_band_is_the_linear_programs() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, P))
    Z = ModelOracle(MODEL, "l1").explain(X)
    Z[:, 1] += rng.uniform(-0.2, 0.2, 300)
    sides = read_sides(X, Z)
    steps = Z[:, 1] - X[:, 1]
    design = np.column_stack([X, sides == NO, sides == YES])
    ones = np.ones((300, 1))
    full = linprog(
        np.append(np.zeros(P + 2), 1.0),
        A_ub=np.vstack([np.hstack([design, -ones]), np.hstack([-design, -ones])]),
        b_ub=np.concatenate([steps, -steps]),
        bounds=[(None, None)] * (P + 2) + [(0, None)],
    )
    mine, theirs = Hyperplane(narrowest_band(X, Z, sides), 0.0), Hyperplane(full.x[:P], 0.0)
    angle = mine.angle_to(theirs)
    assert min(angle, np.pi - angle) < 1e-7
    assert full.x[-1] <= 0.2


def test_the_plane_between_valid_answers_separates_them() -> None:
    oracle = RandomRadius(ModelOracle(MODEL, "l1"), 0.5, rng=0)
    X = np.random.default_rng(1).normal(size=(200, P))
    Z = oracle.explain(X)
    normal = between(X, Z, MODEL.hyperplane.labels(X).astype(np.int64))
    yes = np.concatenate([Z[MODEL.hyperplane.labels(X) == NO], X[MODEL.hyperplane.labels(X) == YES]]) @ normal
    no = np.concatenate([Z[MODEL.hyperplane.labels(X) == YES], X[MODEL.hyperplane.labels(X) == NO]]) @ normal
    assert yes.min() > no.max()


def test_a_pool_counts_questions_without_answers() -> None:
    setting = setting_of(MODEL, ROWS, Service.parse("l1; one-sided"))
    oracle = ExplanationsOnly(setting.oracle(np.random.default_rng(0)))
    for design in ("wide", "along", "ordinary"):
        pool = Pool(oracle, setting, design, np.random.default_rng(1))
        X, Z = pool.first(60)
        assert pool.asked == 60
        assert 0 < len(X) == len(Z) < 60
        assert (setting.plane.labels(X) == NO).all()
        assert np.array_equal(np.clip(X, setting.low, setting.high), X)
        again, _ = pool.first(20)
        assert np.array_equal(again, X[: len(again)])
        assert pool.asked == 60


def test_attempts_are_ordered_by_cost_and_failures_by_error() -> None:
    cheap, dear = Attempt(5, 1, "a", 1e-4, True), Attempt(9, 0, "b", 1e-9, True)
    near, far = Attempt(3, 0, "c", 0.01, False), Attempt(3, 0, "d", 0.5, False)
    assert cheaper(cheap, dear) is cheaper(dear, cheap) is cheap
    assert cheaper(near, dear) is dear
    assert cheaper(near, far) is cheaper(far, near) is near
    assert median_attempt([far, dear, cheap]) is dear
    assert median_attempt([far, near, cheap]) is near


def test_processes_share_the_work_and_change_nothing() -> None:
    from concurrent.futures import ThreadPoolExecutor

    rows = np.random.default_rng(0).normal(size=(60, 4))
    model, service = LinearModel(Hyperplane([3.0, 4.0, 2.0, 1.0], 1.0)), Service.parse("l1")
    options = {
        "runs": 1,
        "cases": 40,
        "limit": 400,
        "defences": ("none", "margin", "rounded-1", "switching", "one-sided"),
    }
    with ThreadPoolExecutor(2) as pool:
        shared = compare_defences(model, rows, service, "s1", rng=np.random.default_rng(5), pool=pool, **options)
    assert shared == compare_defences(model, rows, service, "s1", rng=np.random.default_rng(5), **options)
    assert {row.id for row in shared.rows} == set(options["defences"])
