"""Merging logs: the union of bags of rows, whatever the order, however often."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.lp import Weighted
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import norm
from overexplain.log import equal_rows
from overexplain.log.equal_rows import repeats, row_numbers
from overexplain.log.merge import merge_logs
from overexplain.log.querylog import QueryLog, Row, Status

TERMS = (None, Mechanism("l1"), Mechanism("l2", slack=0.5))


def key(row: Row, order: list[int] | None = None) -> tuple:
    """A row as something to count: numbers by their bits."""

    def bits(values: np.ndarray | None) -> bytes | None:
        return None if values is None else np.ascontiguousarray(values[order] if order else values).tobytes()

    time = None if row.time is None else struct.pack("<d", row.time)
    return bits(row.point), row.label, bits(row.explanation), row.status, row.mechanism, row.client, time, row.source


def bag(log: QueryLog) -> Counter:
    order = None if log.features is None else sorted(range(len(log.features)), key=lambda i: log.features[i])
    return Counter(key(row, order) for row in log)


FEW = st.sampled_from([0.0, -0.0, 1.0])
ROWS = st.tuples(
    st.tuples(FEW, FEW), st.sampled_from([1, -1, None]), st.none() | st.tuples(FEW, FEW), st.sampled_from(TERMS),
    st.sampled_from([None, "", "ann", "\ud800"]), st.sampled_from([None, 0.0, -0.0, 1e9]), st.sampled_from([None, "ann"]),
    st.booleans(),
)  # fmt: skip

OFTEN = (
    ((0.0, 1.0), 1, None, None, None, None, None, False),
    ((0.0, 1.0), 1, (1.0, 1.0), TERMS[1], "ann", 1e9, None, True),
)


@st.composite
def logs(draw: st.DrawFn, features: tuple[str, ...] | None = None) -> QueryLog:
    """Logs of few different rows, so that many are equal; half of them are labels alone."""
    log = QueryLog(features, draw(st.sampled_from(TERMS)))
    for x, y, cf, terms, client, time, source, asked in draw(st.lists(st.sampled_from(OFTEN) | ROWS, max_size=8)):
        about = {"client": client, "time": time, "source": source}
        if asked:
            log.add_explanation(x, cf, y, terms, **about)
        elif y is not None:
            log.add_label(x, y, **about)
    return log


@given(st.lists(logs(), min_size=1, max_size=4))
@settings(max_examples=100)
def test_a_row_occurs_as_often_as_in_the_log_that_has_it_most(many) -> None:
    merged = merge_logs(many)
    expected: Counter = Counter()
    for log in many:
        expected |= bag(log)
    assert bag(merged) == expected
    assert [key(row) for row in merged][: len(many[0])] == [key(row) for row in many[0]], "the first log's order"
    known: Counter = Counter()
    in_order = []
    for log in many:  # the same by hand, row by row
        seen: Counter = Counter()
        for row in map(key, log):
            seen[row] += 1
            if seen[row] > known[row]:
                in_order.append(row)
        known |= seen
    assert [key(row) for row in merged] == in_order
    own = {log.mechanism for log in many}
    assert merged.mechanism == (own.pop() if len(own) == 1 else None)


@given(logs(("a", "b")), logs(("b", "a")), logs(("a", "b")))
@settings(max_examples=60)
def test_merging_is_associative_commutative_and_idempotent(a, b, c) -> None:
    together = merge_logs([a, b, c])
    assert merge_logs([merge_logs([a, b]), c]) == together
    assert merge_logs([a, merge_logs([b, c])]) == together
    assert bag(merge_logs([c, b, a])) == bag(together)
    assert merge_logs([together, a, b, c, together]).mechanism == together.mechanism
    assert [key(row) for row in merge_logs([together, a, b, c])] == [key(row) for row in together]
    assert merge_logs([a]) == a
    assert merge_logs([a, a]) == a


@given(logs())
@settings(max_examples=50)
def test_repeats_are_rows_that_were_there_before(log) -> None:
    assert repeats(log) == len(log) - len(bag(log))


@given(st.lists(logs(), min_size=1, max_size=3))
@settings(max_examples=50)
def test_rows_are_told_apart_even_if_all_are_mixed_to_one_number(many) -> None:
    numbers = row_numbers(many)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equal_rows, "_mixed", lambda columns: np.zeros(len(next(iter(columns))), dtype=np.uint64))
        slow = row_numbers(many)
    pairs = set(zip(numbers.tolist(), slow.tolist(), strict=True))
    assert len(pairs) == len(set(numbers.tolist())) == len(set(slow.tolist()))


def test_columns_are_matched_by_name() -> None:
    one, other = QueryLog(["a", "b"]), QueryLog(["b", "a"])
    one.add_explanation([1, 2], [3, 4], 1, Mechanism("l1"))
    other.add_explanation([[2, 1], [6, 5]], [[4, 3], [8, 7]], [1, -1], Mechanism("l1"))
    merged = merge_logs([one, other])
    assert merged.features == ("a", "b")
    assert merged.points.tolist() == [[1, 2], [5, 6]]
    assert merged.explanations.tolist() == [[3, 4], [7, 8]]
    assert merged.mechanisms == (Mechanism("l1"),)


def test_a_missing_explanation_is_missing_whatever_its_bits() -> None:
    one, other = QueryLog(), QueryLog()
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    one.add_explanation([[1, 2]], [odd], time=[odd[0]])
    other.add_explanation([[1, 2]], None)
    assert len(merge_logs([one, other])) == 1
    failed = QueryLog()
    failed.add_explanation([1, 2], None, status=Status.FAILED)
    assert len(merge_logs([one, failed])) == 2


def test_logs_that_do_not_belong_together_are_refused() -> None:
    def log(features: list[str] | None, p: int) -> QueryLog:
        made = QueryLog(features)
        made.add_label([0.0] * p, 1)
        return made

    with pytest.raises(InvalidInput, match="no log to merge"):
        merge_logs([])
    with pytest.raises(DimensionMismatch, match="log 0 has 2 features, log 1 has 3"):
        merge_logs([log(None, 2), log(None, 3)])
    with pytest.raises(InvalidInput, match=r"x\.csv must have the features of y\.csv .*missing: 'b'; not known: 'c'"):
        merge_logs([log(["a", "b"], 2), log(["a", "c"], 2)], ["y.csv", "x.csv"])
    for pair in ([log(["a", "b"], 2), log(None, 2)], [log(None, 2), log(["a", "b"], 2)]):
        with pytest.raises(InvalidInput, match="names its features, log . does not"):
            merge_logs(pair)
    weighted = QueryLog(["b", "a"])
    weighted.add_explanation([1, 2], [3, 4], 1, Mechanism(Weighted(norm("l1"), [1.0, 2.0])))
    with pytest.raises(InvalidInput, match="log 1 has its features in another order, and terms made for that order"):
        merge_logs([log(["a", "b"], 2), weighted])
    assert len(merge_logs([weighted, weighted])) == 1
    with pytest.raises(InvalidInput, match="log 1 has its features in another order"):
        merge_logs([log(["a", "b"], 2), QueryLog(["b", "a"], weighted.mechanism_of(0))])


def test_empty_logs_add_nothing() -> None:
    some = QueryLog(["a"], Mechanism("l1"))
    some.add_label([1.0], 1)
    assert merge_logs([QueryLog(mechanism=Mechanism("l1")), some]) == some
    assert merge_logs([QueryLog(), QueryLog()]) == QueryLog()
    assert merge_logs([some, QueryLog(["a"])]).mechanism is None
    assert len(row_numbers([])) == repeats(QueryLog()) == 0


def test_overlapping_parts_in_any_order_make_the_whole_again() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(100_000, 5)), rng.choice([-1, 1], 100_000)

    def log(rows: np.ndarray) -> QueryLog:
        made = QueryLog()
        made.add_label(points[rows], labels[rows], time=rows.astype(float))
        return made

    merged = merge_logs([log(np.arange(70_000)), log(rng.permutation(np.arange(40_000, 100_000)))])
    assert len(merged) == 100_000
    order = np.argsort(merged.times)
    assert np.array_equal(merged.points[order], points)
    assert np.array_equal(merged.labels[order], labels)
