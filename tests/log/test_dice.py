"""Files of DiCE, version 2: read, written, and refused with the place of what is wrong."""

from __future__ import annotations

import copy
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.dice import files as dice
from overexplain.log.dice.files import FLIPS, dice_text, left_out, read_dice, write_dice
from overexplain.log.querylog import QueryLog, Status

# As dice-ml 0.11 writes it: queries went through float32, counterfactuals did not.
WRITTEN = {
    "test_data": [[[0.12999999523162842, -0.12999999523162842, 1.0]], [[1.2999999523162842, -0.7, 0.0]], [[5, 6, 0]]],
    "cfs_list": [[[0.13, -2.88, 0.0], [-2.15, 0.89, 0.0]], [[1.3, 0.56, 1.0]], None],
    "local_importance": None,
    "summary_importance": None,
    "data_interface": {"outcome_name": "out", "data_df": "dummy_data"},
    "feature_names": ["a", "b"],
    "feature_names_including_target": ["a", "b", "out"],
    "model_type": "classifier",
    "desired_class": 1,
    "desired_range": None,
    "metadata": {"version": "2.0"},
}


def changed(*path: object, to: object) -> dict:
    """The file with one entry replaced."""
    entries = copy.deepcopy(WRITTEN)
    inner = entries
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return entries


def read(entries: object, folder: Path, **options: object) -> QueryLog:
    path = folder / "cfs.json"
    path.write_text(json.dumps(entries))
    return read_dice(path, **options)


def test_every_counterfactual_is_a_row_and_a_query_without_any_is_one(tmp_path) -> None:
    log = read(WRITTEN, tmp_path)
    assert (log.features, log.mechanism, log.mechanisms) == (("a", "b"), FLIPS, (FLIPS,))
    assert log.points.tolist() == [[0.12999999523162842, -0.12999999523162842]] * 2 + [
        [1.2999999523162842, -0.7],
        [5, 6],
    ]
    assert log.explanations[:3].tolist() == [[0.13, -2.88], [-2.15, 0.89], [1.3, 0.56]]
    assert log.labels.tolist() == [1, 1, -1, -1]
    assert log.status.tolist() == [Status.ASKED] * 3 + [Status.NONE]
    assert read(changed("cfs_list", 2, to=[]), tmp_path) == log
    terms = Mechanism("l1")
    assert read(WRITTEN, tmp_path, mechanism=terms).mechanisms == (terms,)


def test_queries_keep_their_order_around_those_without_an_answer(tmp_path) -> None:
    log = read(changed("cfs_list", 0, to=None), tmp_path)
    assert log.status.tolist() == [Status.NONE, Status.ASKED, Status.NONE]
    assert log.points[:, 0].tolist() == [0.12999999523162842, 1.2999999523162842, 5]


def test_a_counterfactual_that_does_not_flip_is_no_answer(tmp_path) -> None:
    entries = changed("cfs_list", 0, 1, 2, to=1.0)
    with pytest.warns(UserWarning, match=r"1 counterfactual has .* query 0, counterfactual 1 \(counted from 0\)"):
        log = read(entries, tmp_path)
    assert log.explanations[0].tolist() == [0.13, -2.88]
    assert len(log) == 3
    entries["cfs_list"][0][0][2] = 1
    with pytest.warns(UserWarning, match="2 counterfactuals have"):
        log = read(entries, tmp_path)
    assert log.status.tolist() == [Status.NONE, Status.ASKED, Status.NONE]


@pytest.mark.parametrize(
    ("no", "yes", "mapping"),
    [
        (0, 1, None),
        (-1, 1, None),
        (-1.0, 1.0, None),
        (False, True, None),
        ("denied", "approved", {"yes": "approved"}),
        (1, 0, {"yes": "0"}),
        (2.0, 1.0, {"yes": "1"}),
        ("no", True, {"yes": "true"}),
    ],
)
def test_outcomes_are_read_as_labels(no, yes, mapping, tmp_path) -> None:
    text = json.dumps(WRITTEN)
    entries = json.loads(text)
    for query, found in zip(entries["test_data"], entries["cfs_list"], strict=True):
        for row in [*query, *(found or [])]:
            row[2] = yes if row[2] else no
    assert read(entries, tmp_path, mapping=mapping) == read(WRITTEN, tmp_path)


def test_a_file_without_outcomes_has_no_labels(tmp_path) -> None:
    entries = changed("data_interface", to=None)
    entries["feature_names_including_target"] = ["a", "b"]
    entries["test_data"], entries["cfs_list"] = [[[1, 2]]], [[[3, 4]]]
    assert read(entries, tmp_path).labels.tolist() == [0]
    assert read(changed("test_data", 1, 0, 2, to=None), tmp_path).labels.tolist() == [1, 1, 0, -1]


def test_a_mapping_may_order_features_and_name_the_outcome(tmp_path) -> None:
    log = read(WRITTEN, tmp_path)
    turned = read(WRITTEN, tmp_path, mapping={"x": ["b", "a"]})
    assert turned.features == ("b", "a")
    assert turned.points.tolist() == log.points[:, ::-1].tolist()
    entries = changed("data_interface", to=None)
    entries["feature_names"] = None
    assert read(entries, tmp_path, mapping={"y": "out"}) == log
    for mapping in ({"client": "who"}, {"cf": "new_"}, {"x": ["a"]}, {"x": ["a", "b", "c"]}, {"nonsense": "a"}):
        with pytest.raises(InvalidInput, match=r"cfs\.json: .*mapping"):
            read(WRITTEN, tmp_path, mapping=mapping)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (changed("metadata", "version", to="1.0"), r'version "1\.0"; version 2\.0 is read'),
        (changed("metadata", to={}), 'no "metadata"'),
        (changed("metadata", to=[1]), 'no "metadata"'),
        ([], 'no "metadata"'),
        ({k: v for k, v in WRITTEN.items() if k != "cfs_list"}, "cfs_list missing"),
        (changed("model_type", to="regressor"), 'model_type is "regressor"'),
        (changed("test_data", to={}), "test_data must be a list"),
        (changed("cfs_list", to=[None]), "test_data has 3 queries, cfs_list 1"),
        (changed("test_data", 1, to=[]), "query 1 must be a list of one row, got 0"),
        (changed("test_data", 1, to=7), "query 1 must be a list"),
        (changed("test_data", 1, 0, to=[1, 2]), "query 1 must be a list of 3 values, got 2 values"),
        (changed("cfs_list", 0, to="x"), "counterfactuals of query 0 must be a list"),
        (changed("cfs_list", 0, 1, to=[1, 2, 3, 4]), "query 0, counterfactual 1 must be a list of 3 values, got 4"),
        (changed("cfs_list", 0, 1, to=None), "query 0, counterfactual 1 must be a list of 3 values, got null"),
        (
            changed("cfs_list", 0, 1, 0, to="Private"),
            "query 0, counterfactual 1, feature 'a' is \"Private\": a category",
        ),
        (changed("test_data", 1, 0, 1, to=None), "query 1, feature 'b' is null: not a number"),
        (changed("test_data", 1, 0, 1, to=True), "query 1, feature 'b' is true: not a number"),
        (changed("test_data", 1, 0, 1, to=10**400), "query 1, feature 'b' is 1000.*finite"),
        (changed("test_data", 1, 0, 1, to=math.nan), "query 1, feature 'b' is NaN.*finite"),
        (changed("test_data", 1, 0, 1, to=-math.inf), "query 1, feature 'b' is -Infinity.*finite"),
        (changed("test_data", 1, 0, 2, to=0.73), r"query 1: the outcome 'out' is 0\.73, neither 0 nor 1.*yes="),
        (changed("cfs_list", 0, 1, 2, to="good"), "query 0, counterfactual 1: the outcome 'out' is \"good\".*yes="),
        (changed("cfs_list", 0, 1, 2, to=[0]), "neither 0 nor 1"),
        (changed("cfs_list", 0, 1, 2, to=-1), "-1, 0 and 1"),
        (changed("data_interface", to=7), "data_interface must name the outcome"),
        (changed("feature_names", to=["b", "a"]), "feature_names must be those"),
        (changed("feature_names_including_target", to=["a", "a", "out"]), "more than one 'a'"),
        (changed("feature_names_including_target", to=[1, 2, 3]), "features must be a list"),
        (changed("feature_names_including_target", to="abc"), "must be a list of names"),
        (changed("feature_names_including_target", to=None) | {"feature_names": None}, "no features"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(entries, says, tmp_path) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        read(entries, tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "cfs.json: "))
    assert isinstance(caught.value, NotFinite) == ("finite" in str(caught.value))


def test_an_unknown_yes_lists_the_outcomes_there_are(tmp_path) -> None:
    with pytest.raises(InvalidInput, match=r"no outcome is 'approved'.*there are 1\.0, 0\.0, 0"):
        read(WRITTEN, tmp_path, mapping={"yes": "approved"})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON: invalid start byte at byte 0"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"metadata": {"version": ' + b"[" * 500 + b"]" * 500 + b"}}", "a file of DiCE in version"),
        (b'{"a": 1, "a": 2}', "the same key twice"),
        (b"[" + b"9" * 5000 + b"]", "not JSON that can be read"),
    ],
)
def test_what_is_no_json_is_refused(content, says, tmp_path) -> None:
    (tmp_path / "cfs.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=says):
        read_dice(tmp_path / "cfs.json")


def test_places_that_are_no_files_are_refused(tmp_path, monkeypatch) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for name, says in (("", "not a regular file"), ("pipe.json", "not a regular file"), ("no.json", "No such file")):
        with pytest.raises(InvalidInput, match=says):
            read_dice(tmp_path / name)
    with pytest.raises(InvalidInput, match="null"):
        read_dice("a\0b")
    with pytest.raises(InvalidInput, match="cannot save the log as .*: there is no folder"):
        write_dice(QueryLog(), tmp_path / "no" / "x.json")
    monkeypatch.setattr(dice, "LARGEST", 100)
    with pytest.raises(InvalidInput, match="split its queries"):
        read(WRITTEN, tmp_path)


def test_consecutive_rows_about_one_point_are_one_query() -> None:
    log = QueryLog(["outcome", "b"])
    log.add_explanation([[1, 2], [1, 2], [1, 2], [-0.0, 2]], [[3, 4], [5, 6], [7, 8], [9, 0]], [1, 1, -1, -1], FLIPS)
    log.add_explanation([[0, 2], [0, 2], [0, 2]], [[np.nan] * 2, [np.nan] * 2, [1, 1]], [-1, -1, -1], FLIPS)
    entries = json.loads(dice_text(log))
    assert entries["test_data"] == [[[1, 2, 1]], [[1, 2, 0]], [[-0.0, 2, 0]], *[[[0, 2, 0]]] * 3]
    assert entries["cfs_list"] == [[[3, 4, 0], [5, 6, 0]], [[7, 8, 1]], [[9, 0, 1]], None, None, [[1, 1, 1]]]
    assert entries["feature_names_including_target"] == ["outcome", "b", "outcome_"]
    assert entries["desired_class"] == "opposite"
    log.add_explanation([3, 3], [4, 4])
    entries = json.loads(dice_text(log))
    assert entries["test_data"][-1] == [[3, 3, None]]
    assert entries["cfs_list"][-1] == [[4, 4, None]]
    assert entries["desired_class"] is None


def test_what_a_file_cannot_hold_is_named(tmp_path) -> None:
    log = QueryLog(["a"], FLIPS)
    log.add_explanation([1], [2], 1)
    assert left_out(log) == ()
    log.add_label([[1], [2]], [1, 1], client="ann", time=3.0)
    log.add_explanation([1], None, 1, Mechanism("l1"), status=Status.FAILED, source="api")
    assert left_out(log) == (
        "2 rows that ask for no explanation", "1 failed request", "clients", "times", "sources", "terms of explanations"
    )  # fmt: skip
    write_dice(log, tmp_path / "cfs.json")
    assert len(read_dice(tmp_path / "cfs.json")) == 1
    write_dice(QueryLog(["a"]), tmp_path / "none.json")
    assert read_dice(tmp_path / "none.json") == QueryLog(["a"], FLIPS)
    write_dice(QueryLog(), tmp_path / "nothing.json")
    assert read_dice(tmp_path / "nothing.json") == QueryLog(mechanism=FLIPS)


VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, 5e-324])


@st.composite
def logs(draw: st.DrawFn) -> QueryLog:
    """Logs that a file of DiCE holds whole."""
    p = draw(st.integers(1, 3))
    names = draw(st.none() | st.lists(st.text(min_size=1), min_size=p, max_size=p, unique=True))
    if names == [f"x{i}" for i in range(p)]:  # which are no names
        names = None
    log = QueryLog(names, FLIPS)
    vector = st.lists(VALUES, min_size=p, max_size=p)
    points = draw(st.lists(vector, min_size=1, max_size=3))
    for _ in range(draw(st.integers(0, 8))):
        point, label = draw(st.sampled_from(points)), draw(st.sampled_from([1, -1, None]))
        log.add_explanation(point, draw(st.none() | vector), label)
    if not len(log) and names is None:
        log._set_dimension(p)
    return log


@given(logs())
@settings(max_examples=100)
def test_what_is_written_is_read_back(tmp_path_factory, log) -> None:
    path = tmp_path_factory.mktemp("round") / "cfs.json"
    write_dice(log, path)
    back = read_dice(path)
    assert back == log
    assert back.points.tobytes() == log.points.tobytes(), "to the sign of zero"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
@settings(max_examples=200)
@pytest.mark.filterwarnings("ignore:.*counterfactual.*left out")
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, data) -> None:
    """Some entry anywhere becomes something else; then some bytes are lost or changed."""
    entries = copy.deepcopy(WRITTEN)
    inner, key = entries, data.draw(st.sampled_from(sorted(entries)))
    while isinstance(inner[key], list | dict) and inner[key] and data.draw(st.booleans()):
        inner = inner[key]
        key = data.draw(st.sampled_from(sorted(inner)) if isinstance(inner, dict) else st.integers(0, len(inner) - 1))
    inner[key] = data.draw(JSON)
    content = bytearray(json.dumps(entries).encode())
    if data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.mktemp("damaged") / "cfs.json"
    path.write_bytes(content)
    mapping = data.draw(st.sampled_from([None, {"yes": "1"}, {"y": "out"}, {"x": ["b", "a"]}]))
    try:
        log = read_dice(path, mapping)
    except InvalidInput as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert np.isfinite(log.points).all()
        assert np.isfinite(log.explanations[log.explained]).all()
