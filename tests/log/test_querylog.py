"""The log: what may enter it, how it is read, and that an error leaves no trace."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.geometry.norms import Mahalanobis, Norm, Weighted, l1
from overexplain.log.querylog import QueryLog, Row, Status

L1, L2 = Mechanism("l1"), Mechanism("l2")
NAN, INF = math.nan, math.inf


def small_log() -> QueryLog:
    log = QueryLog(features=["a", "b"], mechanism=L1)
    log.add_label([1.0, 2.0], 1, client="ann", time=5.0, source="api")
    log.add_explanation([[3.0, 4.0], [5.0, 6.0]], [[3.0, 5.0], [NAN, NAN]], label=[-1, None])
    log.add_explanation([7.0, 8.0], None, mechanism=L2, status=Status.FAILED)
    return log


def test_columns_of_a_small_log() -> None:
    log = small_log()
    assert len(log) == 4
    assert log.dimension == 2
    assert log.features == ("a", "b")
    assert log.mechanism == L1
    assert log.points.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert log.labels.tolist() == [1, -1, 0, 0]
    assert log.labels.dtype == np.int8
    np.testing.assert_array_equal(log.explanations, [[NAN, NAN], [3, 5], [NAN, NAN], [NAN, NAN]])
    assert log.status.tolist() == [Status.NOT_ASKED, Status.ASKED, Status.NONE, Status.FAILED]
    assert log.mechanisms == (L1, L2)
    assert log.mechanism_ids.tolist() == [-1, 0, 0, 1]
    assert [log.mechanism_of(i) for i in range(4)] == [None, L1, L1, L2]
    assert log.clients.tolist() == ["ann", None, None, None]
    np.testing.assert_array_equal(log.times, [5.0, NAN, NAN, NAN])
    assert log.sources.tolist() == ["api", None, None, None]
    assert log.labelled(1).tolist() == [0]
    assert log.labelled(-1).tolist() == [1]
    assert log.explained.tolist() == [1]
    assert log.explained.dtype == log.labelled(1).dtype == np.int64


def test_adding_returns_the_index_of_the_first_row() -> None:
    log = QueryLog()
    assert log.add_label([1.0], 1) == 0
    assert log.add_label([[1.0], [2.0]], [1, -1]) == 1
    assert log.add_explanation([[1.0], [2.0]], None) == 3
    assert log.add_explanation([1.0], [2.0]) == 5


def test_rows() -> None:
    log = small_log()
    assert [row.status.text for row in log] == ["not-asked", "asked", "none", "failed"]
    assert log[0] == Row(np.array([1.0, 2.0]), 1, client="ann", time=5.0, source="api")
    assert log[1] == Row(np.array([3.0, 4.0]), -1, np.array([3.0, 5.0]), Status.ASKED, L1)
    assert log[2] == Row(np.array([5.0, 6.0]), status=Status.NONE, mechanism=L1)
    assert log[-1] == log[3] != log[2]
    assert type(log[0].label) is int
    assert type(log[0].time) is float
    assert log[1] != Row(np.array([3.0, 4.0]), -1, np.array([3.0, 6.0]), Status.ASKED, L1)
    assert log[1] != Row(np.array([3.0, 4.0]), -1, None, Status.ASKED, L1)
    assert log[0] != "row"
    with pytest.raises(AttributeError):
        log[0].label = -1  # type: ignore[misc]
    with pytest.raises(IndexError):
        log[4]
    with pytest.raises(TypeError, match="slice"):
        log[0:2]  # type: ignore[index]


@pytest.mark.parametrize(
    "name", ["points", "labels", "explanations", "status", "mechanism_ids", "clients", "times", "sources"]
)
def test_arrays_are_read_only_and_keep_what_they_showed(name: str) -> None:
    log = small_log()
    before = getattr(log, name)
    shown = before.copy()
    for _ in range(100):
        log.add_label([9.0, 9.0], -1)
    np.testing.assert_array_equal(before, shown)
    assert len(before) == 4
    with pytest.raises(ValueError, match="read-only"):
        before[0] = before[1]


def test_growing_is_rare() -> None:
    log, moves, last = QueryLog(), 0, None
    for _ in range(1000):
        log.add_label([1.0], 1)
        moves += log.points.base is not last
        last = log.points.base
    assert moves <= 10


def test_rows_are_read_only() -> None:
    row = small_log()[1]
    with pytest.raises(ValueError, match="read-only"):
        row.point[0] = 0.0
    assert row.explanation is not None
    with pytest.raises(ValueError, match="read-only"):
        row.explanation[0] = 0.0


def test_the_callers_array_is_copied() -> None:
    x = np.array([1.0, 2.0])
    log = QueryLog()
    log.add_explanation(x, x)
    x[:] = 7
    assert log[0] == Row(np.array([1.0, 2.0]), None, np.array([1.0, 2.0]), Status.ASKED)


def test_an_empty_log() -> None:
    log = QueryLog()
    assert (len(log), log.dimension, log.mechanisms, list(log)) == (0, None, (), [])
    assert log.points.shape == log.explanations.shape == (0, 0)
    assert log.explained.tolist() == log.labelled(-1).tolist() == []
    assert repr(log) == "QueryLog(0 rows: 0 labels, 0 explanations)"
    assert QueryLog(features=["a", "b"]).points.shape == (0, 2)
    assert QueryLog(features=["a", "b"]).dimension == 2


def test_a_batch_of_no_rows_changes_nothing() -> None:
    log = QueryLog(mechanism=L1)
    assert log.add_label(np.empty((0, 3)), []) == 0
    assert log.add_explanation(np.empty((0, 3)), np.empty((0, 3))) == 0
    assert log == QueryLog(mechanism=L1)
    assert log.dimension is None


def test_repr() -> None:
    assert repr(small_log()) == "QueryLog(4 rows: 2 labels, 1 explanation, 2 features)"
    one = QueryLog()
    one.add_label([1.0], 1)
    assert repr(one) == "QueryLog(1 row: 1 label, 0 explanations, 1 feature)"


def test_equality_is_by_content() -> None:
    assert small_log() == small_log() == copy.deepcopy(small_log())
    assert small_log() != "log"
    changes: list[Any] = [
        lambda log: log.add_label([0.0, 0.0], 1),
        lambda log: log.add_explanation([0.0, 0.0], [0.0, 1.0]),
        lambda log: log.add_explanation([0.0, 0.0], [0.0, 1.0], mechanism=L2),
        lambda log: log.add_explanation([0.0, 0.0], None),
        lambda log: log.add_explanation([0.0, 0.0], None, status=Status.FAILED),
        lambda log: log.add_label([0.0, 0.0], 1, client="x"),
        lambda log: log.add_label([0.0, 0.0], 1, time=1),
        lambda log: log.add_label([0.0, 0.0], 1, source="x"),
        lambda log: log.add_label([0.0, 0.0], -1),
        lambda log: log.add_label([0.0, 1.0], 1),
        len,  # no change
    ]
    logs = [small_log() for _ in changes]
    for log, change in zip(logs, changes, strict=True):
        change(log)
    for i, log in enumerate(logs):
        assert [log == other for other in logs] == [i == j for j in range(len(logs))]
    assert QueryLog(["a"]) != QueryLog(["b"]) != QueryLog() != QueryLog(mechanism=L1)


@given(st.lists(st.integers(0, 5), max_size=12))
def test_batches_and_single_rows_make_the_same_log(sizes: list[int]) -> None:
    rng = np.random.default_rng(0)
    whole, parts, single = QueryLog(), QueryLog(), QueryLog()
    n = sum(sizes)
    x, y = rng.normal(size=(n, 3)), rng.choice([-1, 1], n)
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        assert parts.add_label(x[rows], y[rows], client=[str(i) for i in range(size)], time=np.arange(size)) == start
        start += size
    for i, client in enumerate(parts.clients):
        single.add_label(x[i], int(y[i]), client=client, time=parts.times[i])
    whole.add_label(x, y, client=parts.clients, time=parts.times)
    assert whole == parts == single
    assert whole.points.tolist() == x.tolist()


def test_labels_in_many_forms() -> None:
    log = QueryLog()
    forms: list[Any] = [1, 1.0, np.int64(1), np.float32(1), np.array(1), np.array(1, dtype=object)]
    for form in forms:
        log.add_label([0.0], form)
    batches: list[Any] = [[1, 1], (1.0, 1.0), np.ones(2, dtype=np.uint8), pd.Series([1, 1], index=[5, 9]),
                          pd.array([1, 1], dtype="Int8")]  # fmt: skip
    for batch in batches:
        log.add_label([[0.0], [1.0]], batch)
    assert log.labels.tolist() == [1] * (len(forms) + 2 * len(batches))


@pytest.mark.parametrize("y", [0, 2, -2, 0.5, NAN, INF, True, False, "yes", None, 2**70, 1j, object()])
def test_a_label_that_is_none_is_refused(y: Any) -> None:
    log = QueryLog()
    with pytest.raises(InvalidInput, match=r"use 2\*y-1"):
        log.add_label([0.0], y)
    assert len(log) == 0


@pytest.mark.parametrize("y", [[1, 0], [1, NAN], [1, None], [True, False], ["yes", "no"]])
def test_a_batch_with_a_wrong_label_is_refused(y: Any) -> None:
    log = QueryLog()
    with pytest.raises(InvalidInput, match=r"use 2\*y-1"):
        log.add_label([[0.0], [1.0]], y)
    assert len(log) == 0


def test_the_wrong_label_is_named() -> None:
    with pytest.raises(InvalidInput, match="label 0 in row 2"):
        QueryLog().add_label([[0.0]] * 3, [1, -1, 0])
    with pytest.raises(InvalidInput, match=r"labelled\(0\).*2\*y-1"):
        QueryLog().labelled(0)


def test_missing_labels_of_explanations() -> None:
    log = QueryLog()
    log.add_explanation([[0.0], [1.0], [2.0]], None, label=[1, None, NAN])
    log.add_explanation([0.0], None, label=NAN)
    assert log.labels.tolist() == [1, 0, 0, 0]
    with pytest.raises(InvalidInput, match=r"2\*y-1"):
        log.add_explanation([0.0], None, label=0)


BAD: list[tuple[type[InvalidInput], str, Any]] = [
    (DimensionMismatch, "2 entries", lambda log: log.add_label([1.0], 1)),
    (DimensionMismatch, "2 entries", lambda log: log.add_label(1.0, 1)),
    (DimensionMismatch, "2 columns", lambda log: log.add_label([[1.0], [2.0]], [1, 1])),
    (DimensionMismatch, "2 entries", lambda log: log.add_label(np.zeros((1, 1, 2)), 1)),
    (NotFinite, "entry 1", lambda log: log.add_label([1.0, NAN], 1)),
    (NotFinite, "row 1, column 0", lambda log: log.add_label([[1.0, 1.0], [INF, 1.0]], [1, 1])),
    (InvalidInput, "numbers", lambda log: log.add_label(["a", "b"], 1)),
    (InvalidInput, "numbers", lambda log: log.add_label([10**400, 1], 1)),
    (InvalidInput, "numbers", lambda log: log.add_label([[1.0, 2.0], [1.0]], [1, 1])),
    (InvalidInput, "numbers", lambda log: log.add_label(object(), 1)),
    (DimensionMismatch, "1 point must have", lambda log: log.add_label([1.0, 2.0], [1])),
    (DimensionMismatch, "2 points must have", lambda log: log.add_label([[1.0, 2.0]] * 2, 1)),
    (DimensionMismatch, "2 points must have", lambda log: log.add_label([[1.0, 2.0]] * 2, [1, 1, 1])),
    (InvalidInput, "label must be", lambda log: log.add_label([[1.0, 2.0]] * 2, [[1], [1, 1]])),
    (DimensionMismatch, "explanation", lambda log: log.add_explanation([1.0, 2.0], [1.0])),
    (DimensionMismatch, "explanation", lambda log: log.add_explanation([1.0, 2.0], [[1.0, 2.0]])),
    (DimensionMismatch, "explanation", lambda log: log.add_explanation([[1.0, 2.0]] * 2, [1.0, 2.0])),
    (DimensionMismatch, "explanation", lambda log: log.add_explanation([[1.0, 2.0]] * 2, [[1.0, 2.0]])),
    (NotFinite, "explanation is", lambda log: log.add_explanation([1.0, 2.0], [NAN, 2.0])),
    (NotFinite, "explanation is", lambda log: log.add_explanation([1.0, 2.0], [INF, NAN])),
    (NotFinite, "in row 1", lambda log: log.add_explanation([[1.0, 2.0]] * 2, [[NAN, NAN], [1.0, INF]])),
    (InvalidInput, "explanation must be numbers", lambda log: log.add_explanation([[1.0, 2.0]], [None, [1.0]])),
    (DimensionMismatch, "label", lambda log: log.add_explanation([[1.0, 2.0]] * 2, None, label=[1])),
    (InvalidInput, "Mechanism or None", lambda log: log.add_explanation([1.0, 2.0], None, mechanism="l1")),
    (DimensionMismatch, "made for 3",
     lambda log: log.add_explanation([1.0, 2.0], None, mechanism=Mechanism(Weighted(l1, [1, 2, 3])))),
    (InvalidInput, "add_label", lambda log: log.add_explanation([1.0, 2.0], None, status=Status.NOT_ASKED)),
    (InvalidInput, "must be ASKED", lambda log: log.add_explanation([1.0, 2.0], None, status=Status.ASKED)),
    (InvalidInput, "must be ASKED", lambda log: log.add_explanation([1.0, 2.0], [1.0, 2.0], status=Status.NONE)),
    (InvalidInput, "must be ASKED",
     lambda log: log.add_explanation([[1.0, 2.0]] * 2, [[1.0, 2.0], [NAN, NAN]], status=Status.FAILED)),
    (InvalidInput, "a Status", lambda log: log.add_explanation([1.0, 2.0], None, status="failed")),
    (InvalidInput, "a Status", lambda log: log.add_explanation([1.0, 2.0], None, status=4)),
    (InvalidInput, "a Status", lambda log: log.add_explanation([1.0, 2.0], None, status=[2])),
    (InvalidInput, "status must be one value", lambda log: log.add_explanation([1.0, 2.0], None, status=[2, [3]])),
    (InvalidInput, "client", lambda log: log.add_label([1.0, 2.0], 1, client=5)),
    (InvalidInput, "client", lambda log: log.add_label([1.0, 2.0], 1, client=["ann"])),
    (InvalidInput, "row 1", lambda log: log.add_label([[1.0, 2.0]] * 2, [1, 1], source=["a", 5])),
    (DimensionMismatch, "source", lambda log: log.add_label([[1.0, 2.0]] * 2, [1, 1], source=["a"])),
    (InvalidInput, "seconds since", lambda log: log.add_label([1.0, 2.0], 1, time="noon")),
    (InvalidInput, "seconds since", lambda log: log.add_label([1.0, 2.0], 1, time=np.datetime64("2024-01-01"))),
    (InvalidInput, "seconds since", lambda log: log.add_label([1.0, 2.0], 1, time=pd.Timestamp("2024-01-01"))),
    (NotFinite, "time", lambda log: log.add_label([1.0, 2.0], 1, time=INF)),
    (DimensionMismatch, "time", lambda log: log.add_label([1.0, 2.0], 1, time=[1.0])),
    (DimensionMismatch, "time", lambda log: log.add_label([[1.0, 2.0]] * 2, [1, 1], time=[1.0])),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text", "add"), BAD)
def test_what_is_refused_leaves_no_trace(error: type[InvalidInput], text: str, add: Any) -> None:
    log = small_log()
    with pytest.raises(InvalidInput, match=text) as caught:
        add(log)
    assert type(caught.value) is error
    assert log == small_log()
    fresh = QueryLog(["a", "b"])
    with pytest.raises(error):
        add(fresh)
    assert fresh == QueryLog(["a", "b"])


def test_the_first_row_fixes_the_dimension() -> None:
    log = QueryLog()
    with pytest.raises(NotFinite):
        log.add_label([1.0, 2.0, NAN], 1)
    assert log.dimension is None
    log.add_label([1.0, 2.0], 1)
    with pytest.raises(DimensionMismatch, match="2 entries"):
        log.add_label([1.0, 2.0, 3.0], 1)
    assert log.dimension == 2


def test_the_mechanism_must_fit_the_dimension() -> None:
    three = Mechanism(Mahalanobis(np.eye(3)))
    with pytest.raises(DimensionMismatch, match="made for 3"):
        QueryLog(["a", "b"], three)
    log = QueryLog(mechanism=three)
    with pytest.raises(DimensionMismatch, match="made for 3"):
        log.add_label([1.0, 2.0], 1)
    with pytest.raises(DimensionMismatch, match="made for 3"):
        log.add_explanation([1.0, 2.0], None, mechanism=L1)
    assert log == QueryLog(mechanism=three)
    assert log.dimension is None
    log.add_explanation([1.0, 2.0, 3.0], None)


def test_equal_mechanisms_are_one() -> None:
    log = QueryLog()
    log.add_explanation([1.0], None)
    for _ in range(2):
        log.add_explanation([1.0], None, mechanism=Mechanism("l2"))
        log.add_explanation([1.0], None, mechanism=Mechanism("l1"))
    assert log.mechanisms == (L2, L1)
    assert log.mechanism_ids.tolist() == [-1, 0, 1, 0, 1]


def test_a_norm_that_is_no_value_is_refused() -> None:
    class Odd(Norm):
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Any) -> Any: ...
        def face(self, a: Any) -> Any: ...
        @property
        def dual(self) -> Any: ...

    log = QueryLog()
    with pytest.raises(InvalidInput, match="hashable"):
        log.add_explanation([1.0], None, mechanism=Mechanism(Odd()))
    assert log == QueryLog()


def test_statuses_of_a_batch() -> None:
    log = QueryLog()
    log.add_explanation([[1.0]] * 3, [[2.0], [NAN], [NAN]], status=[Status.ASKED, Status.NONE, Status.FAILED])
    log.add_explanation([[1.0]] * 2, None, status=Status.FAILED)
    log.add_explanation([1.0], [NAN])
    log.add_explanation([1.0], [2.0], status=Status.ASKED)
    assert log.status.tolist() == [1, 2, 3, 3, 3, 2, 1]


@pytest.mark.parametrize("features", ["ab", [], ["a", ""], ["a", 1], [None]])
def test_features_must_be_names(features: Any) -> None:
    with pytest.raises(InvalidInput, match="non-empty strings"):
        QueryLog(features)


def test_features_must_be_distinct() -> None:
    with pytest.raises(InvalidInput, match="more than one 'a'"):
        QueryLog(["a", "b", "a"])


def test_the_default_mechanism_must_be_one() -> None:
    with pytest.raises(InvalidInput, match="Mechanism or None"):
        QueryLog(mechanism="l1")  # type: ignore[arg-type]


def test_points_are_matched_by_name() -> None:
    log = QueryLog(["a", "b"])
    log.add_label({"b": 2.0, "a": 1.0}, 1)
    log.add_label(pd.Series({"b": 2.0, "a": 1.0}), 1)
    log.add_label(pd.DataFrame({"b": [2.0, 4.0], "a": [1, 3]}), [1, -1])
    log.add_explanation({"b": 2.0, "a": 1.0}, {"b": 6.0, "a": 5.0})
    log.add_explanation(pd.DataFrame({"b": [2.0], "a": [1.0]}), pd.DataFrame({"b": [NAN], "a": [NAN]}))
    assert log.points.tolist() == [[1, 2], [1, 2], [1, 2], [3, 4], [1, 2], [1, 2]]
    assert log.explanations[4].tolist() == [5, 6]
    assert log.status.tolist() == [0, 0, 0, 0, 1, 2]


def test_pandas_without_names_is_matched_by_position() -> None:
    log = QueryLog(["a", "b"])
    log.add_label(pd.Series([1.0, 2.0]), 1)
    log.add_label(pd.DataFrame([[1.0, 2.0]]), [1])
    unnamed = QueryLog()
    unnamed.add_label(pd.Series({"b": 1.0, "a": 2.0}), 1)
    assert log.points.tolist() == [[1, 2], [1, 2]]
    assert unnamed.points.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("x", "text"),
    [
        ({"a": 1.0}, "missing: 'b'$"),
        ({"a": 1.0, "b": 2.0, "c": 3.0}, "not known: 'c'$"),
        ({"a": 1.0, "c": 3.0}, "missing: 'b'; not known: 'c'$"),
        ({0: 1.0, 1: 2.0}, "missing: 'a', 'b'; not known: 0, 1$"),
        (pd.Series({"a": 1.0, "c": 3.0}), "missing: 'b'; not known: 'c'$"),
        (pd.Series([1.0, 2.0, 3.0], index=["a", "b", "b"]), "more than once: 'b'$"),
    ],
)
def test_wrong_names_are_named(x: Any, text: str) -> None:
    log = QueryLog(["a", "b"])
    for add in (lambda: log.add_label(x, 1), lambda: log.add_explanation([1.0, 2.0], x)):
        with pytest.raises(InvalidInput, match=text):
            add()
    assert len(log) == 0


def test_wrong_columns_are_named() -> None:
    with pytest.raises(InvalidInput, match="not known: 'c'"):
        QueryLog(["a", "b"]).add_label(pd.DataFrame({"a": [1.0], "b": [1.0], "c": [1.0]}), [1])
    with pytest.raises(InvalidInput, match="more than once: 'b'"):
        QueryLog(["a", "b"]).add_label(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "b"]), [1])


def test_names_need_a_log_with_names() -> None:
    with pytest.raises(InvalidInput, match=r"QueryLog\(features="):
        QueryLog().add_label({"a": 1.0}, 1)


def test_a_dict_is_one_point() -> None:
    columns = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    with pytest.raises(DimensionMismatch, match="one point"):
        QueryLog(["a", "b"]).add_label(columns, [1, 1])  # type: ignore[arg-type]
    with pytest.raises(DimensionMismatch, match="one point"):
        QueryLog(["a", "b"]).add_explanation([[1.0, 2.0], [3.0, 4.0]], columns)  # type: ignore[arg-type]


def test_a_copy_has_the_same_arrays_and_neither_sees_what_is_added_to_the_other() -> None:
    log = QueryLog()
    log.add_label([[0.0, 1.0], [2.0, 3.0]], [1, -1])
    twin, third = copy.copy(log), copy.copy(log)
    assert np.shares_memory(twin.points, log.points)
    twin.add_label([4.0, 5.0], 1)
    log.add_explanation([6.0, 7.0], [8.0, 9.0], mechanism=Mechanism("l2"))
    third.add_label([10.0, 11.0], -1)
    later = copy.copy(twin)
    later.add_label([12.0, 13.0], 1)
    twin.add_label([14.0, 15.0], -1)
    assert [row.point[0] for row in log] == [0.0, 2.0, 6.0]
    assert [row.point[0] for row in twin] == [0.0, 2.0, 4.0, 14.0]
    assert [row.point[0] for row in third] == [0.0, 2.0, 10.0]
    assert [row.point[0] for row in later] == [0.0, 2.0, 4.0, 12.0]
    assert third.mechanisms == ()
