"""Curves of decisions and plain explanations on tables of whole numbers and flags, beside a linear program for every case."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from overexplain.auditing.determining.curves import determined_curve, first_order, look
from overexplain.auditing.determining.orders import Order
from overexplain.auditing.determining.proved import ProvedSearch, blocks_in
from overexplain.geometry.hyperplane import NO, YES, Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.engine import Knowledge
from overexplain.knowledge.evidence import Finder
from overexplain.knowledge.prover.log_prover import LogProver
from overexplain.models.linear import LinearModel
from overexplain.oracles.services import Service

NUMBERS = (2, 5, 9, 16, 60)
LOOKS = {"answers": NUMBERS, "orders": 2, "judged": 24, "rng": 5}
SURE = 1e-6
"""What programs in float64 find nearer to 0 than this says nothing."""


def one_hot(columns):
    return np.hstack([(column[:, None] == np.unique(column)[None, :]).astype(np.float64) for column in columns.T])


def scorecard():
    """A count, a flag, two groups of categories and an amount in whole units, with points and a threshold."""
    rng = np.random.default_rng(1)
    groups = one_hot(rng.integers(0, 3, (300, 2)))
    rows = np.hstack(
        [rng.integers(0, 9, (300, 2)), rng.integers(0, 2, (300, 1)), groups, 50 * rng.integers(1, 40, (300, 1))]
    )
    return LinearModel(Hyperplane([3.0, -4.0, 9.0, 5.0, 0.0, -7.0, 2.0, -1.0, 0.0, 0.01], 9.5)), rows.astype(np.float64)


def breast_cancer(kind):
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    table, outcome = load_breast_cancer(return_X_y=True)
    rows = table[:, :8]
    if kind == "standardised":
        rows = StandardScaler().fit_transform(rows)
    elif kind == "one-hot":
        bins = (rows[:, :5, None] > np.quantile(rows[:, :5], (0.25, 0.5, 0.75), axis=0).T[None]).sum(axis=2)
        rows = np.hstack([one_hot(bins), np.round(rows[:, 5:], 2)])
    scaled = StandardScaler().fit(rows)
    fitted = LogisticRegression(max_iter=2000).fit(scaled.transform(rows), outcome)
    normal = fitted.coef_[0] / scaled.scale_
    return LinearModel(Hyperplane.from_intercept(normal, fitted.intercept_[0] - normal @ scaled.mean_)), rows


TABLES = {
    "scorecard": scorecard,
    "raw": lambda: breast_cancer("raw"),
    "standardised": lambda: breast_cancer("standardised"),
    "one-hot": lambda: breast_cancer("one-hot"),
}


@pytest.fixture(scope="module", params=TABLES)
def table(request):
    return TABLES[request.param]()


def by_labels(order: Order, k: int, x) -> bool:
    """True if (x, −1) or its negative is a sum of what the labels say, with weights ≥ 0."""
    cone = np.hstack([order.asked[:k], -np.ones((k, 1))]) * order.labels[:k, None]
    size = np.abs(cone).max(axis=0)
    query = np.append(x, -1.0)
    beyond = np.any(size == 0) and np.any(query[size == 0] != 0)
    kept = size > 0
    ways = [
        linprog(np.zeros(k), A_eq=(cone[:, kept] / size[kept]).T, b_eq=s * query[kept] / size[kept]).status == 0
        for s in (YES, NO)
    ]
    return any(ways) and not beyond


def by_explanations(order: Order, k: int, points, norm: str) -> list[bool | None]:
    """The same under ℓ1 or ℓ∞, for models of length 1; None: too near to 0 for float64."""
    p, x, z, y = order.judged.shape[1], order.asked[:k], order.explanations[:k], order.labels[:k, None]
    one, steps = np.ones((k, 1)), z - x
    far = np.linalg.norm(steps, 1 if norm == "l1" else np.inf, axis=1)
    off = 2.0**-40 * sum(np.linalg.norm(v, 1 if norm == "l1" else np.inf, axis=1) for v in (x, z))
    left = np.vstack(
        [np.hstack([z, -one]), np.hstack([-z, one]), np.hstack([y * steps, 0 * one]), -y * np.hstack([x, -one])]
    )
    right = np.concatenate([off, off, 2 * off - far, off - far])
    if norm == "l1":
        bounds = [(-1.0, 1.0)] * p
    else:  # a = plus − minus, of sum ≤ 1
        left = np.vstack([np.hstack([left[:, :p], -left[:, :p], left[:, p:]]), np.append(np.ones(2 * p), 0.0)])
        right, bounds = np.append(right, 1.0), [(0.0, None)] * (2 * p)
    size = np.maximum(np.abs(left).max(axis=1), 1e-9)
    found = []
    for point in points:
        query = np.append(point, -1.0) if norm == "l1" else np.concatenate([point, -point, [-1.0]])
        ends = [linprog(s * query, left / size[:, None], right / size, bounds=[*bounds, (None, None)]) for s in (1, -1)]
        low, high = (s * end.fun if end.status == 0 else -s * np.inf for s, end in zip((1, -1), ends, strict=True))
        near = SURE * np.abs(query).max()
        found.append(None if min(abs(low), abs(high)) < near else bool(low > 0 or high < 0))
    return found


@pytest.mark.parametrize("spec", ["labels", "l1", "linf"])
def test_a_program_for_every_case_and_number_says_the_same(table, spec) -> None:
    model, rows = table
    order = first_order(model, rows, Service.parse(spec), **LOOKS)
    found = look(order, NUMBERS)
    assert not found.undecided.any()
    assert found.wrong == 0
    told = 0
    for index, k in enumerate(NUMBERS):
        said = (found.first <= index).tolist()
        cases = order.judged[:10]
        again = [by_labels(order, k, x) for x in cases] if spec == "labels" else by_explanations(order, k, cases, spec)
        assert [a for a, b in zip(said, again, strict=False) if b is not None] == [b for b in again if b is not None]
        told += sum(b is not None for b in again)
    assert told >= 40


def test_under_l2_one_answer_tells_all_but_a_thin_band(table) -> None:
    model, rows = table
    order = first_order(model, rows, Service.parse("l2"), **LOOKS)
    found = look(order, NUMBERS)
    x, z, y = order.asked[0], order.explanations[0], order.labels[0]
    way = -y * (z - x) / np.linalg.norm(z - x)
    off = 2.0**-40 * (np.linalg.norm(x) + np.linalg.norm(z))
    band = 2 * off * (1 + np.linalg.norm(order.judged - z, axis=1) / np.linalg.norm(z - x))
    beyond = np.abs((order.judged - z) @ way) > band
    assert beyond.mean() > 0.9
    assert (found.first[beyond] == 0).all()
    assert not found.undecided.any()


@pytest.mark.parametrize("spec", ["labels", "l1", "linf", "l2"])
def test_every_order_is_decided_and_processes_do_not_matter(table, spec) -> None:
    model, rows = table
    found = determined_curve(model, rows, Service.parse(spec), "s1", **LOOKS)
    assert (found.undecided, found.wrong, found.terms_broken) == (0.0, 0, 0)
    assert found.median_at_most == found.median


def test_two_processes_find_the_same() -> None:
    model, rows = scorecard()
    for spec in ("labels", "linf"):
        one, two = (determined_curve(model, rows, Service.parse(spec), "s1", workers=w, **LOOKS) for w in (None, 2))
        assert one == two


@pytest.mark.parametrize("spec", ["labels", "l1", "linf", "l1; nearest-row"])
def test_every_verdict_is_that_of_the_log(table, spec) -> None:
    model, rows = table
    order = first_order(model, rows, Service.parse(spec), **LOOKS)
    found = look(order, NUMBERS)
    for index, k in enumerate(NUMBERS):
        codes = Knowledge(order.log(k)).certify(order.judged).codes
        assert np.array_equal(found.first <= index, np.abs(codes) == 1)


def test_terms_that_the_model_contradicts_are_reported_and_only_decisions_count() -> None:
    model, rows = scorecard()
    lying = determined_curve(model, rows, Service(Mechanism("l1"), published=Mechanism("l2")), "s1", **LOOKS)
    labels = determined_curve(model, rows, Service.parse("labels"), "s1", **LOOKS)
    assert lying.terms_broken == LOOKS["orders"]
    assert (lying.first, lying.median) == (labels.first, labels.median)


@pytest.mark.parametrize("spec", ["labels", "l1", "linf", "l1; rounded:0"])
def test_models_that_are_suggested_change_no_verdict(spec) -> None:
    model, rows = scorecard()
    order = first_order(model, rows, Service.parse(spec), **LOOKS)
    nonsense = np.vstack([order.truth, -order.truth, np.random.default_rng(0).normal(size=(5, len(order.truth)))])
    for k in (5, 16):
        log = order.log(k)
        given = [LogProver(blocks_in(log), answers_of(log), Finder(), known) for known in (None, nonsense)]
        codes = [prover.codes(order.judged) for prover in given]
        both = (codes[0] != 3) & (codes[1] != 3)
        assert both.all() or "rounded" in spec
        assert np.array_equal(codes[0][both], codes[1][both])


def test_a_value_far_beyond_all_answers_does_not_hide_a_proof() -> None:
    model, rows = scorecard()
    order = first_order(model, rows, Service.parse("linf"), **LOOKS)
    far = order.judged.copy()
    far[:, 2] = 1e6 * np.sign(model.hyperplane.normal[2])
    log = order.log(60)
    assert (LogProver(blocks_in(log), answers_of(log), Finder()).codes(far) == YES).all()


def test_bounds_meet_and_the_search_asks_about_few_numbers() -> None:
    model, rows = scorecard()
    numbers = tuple(range(1, 61))
    order = first_order(model, rows, Service.parse("labels"), **(LOOKS | {"answers": numbers}))
    search = ProvedSearch(order, numbers)
    search.run()
    assert np.array_equal(search.high, search.low + 1)
