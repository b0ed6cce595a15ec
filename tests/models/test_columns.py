"""Raw columns become features: numbers, texts, truth values, gaps; and every value that cannot be used is named."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.domain import Domain
from overexplain.geometry.hyperplane import Hyperplane
from overexplain.models.columns import Column, check_columns, domain_of, encode, sample
from overexplain.models.linear import LinearModel

COLUMNS = (
    Column("age", missing=40.0),
    Column("colour", ("red", "green", None)),
    Column("member", (False, True)),
    Column("floor", (1, 2, 3), ("low", "low", "high"), "ignore"),
    Column("only", ("x",)),
)
FEATURES = (
    "age", "colour=red", "colour=green", "colour=(missing)", "member=False", "member=True", "low", "high", "only=x",
)  # fmt: skip
TABLE: dict[str, Any] = {
    "age": [30, None, 2.5, True],
    "colour": ["green", None, "red", math.nan],
    "member": [True, False, 1, 0.0],
    "floor": [3, 1, 2, 99],
    "only": ["x"] * 4,
    "else": [object()] * 4,
}
ROWS = [
    [30.0, 0, 1, 0, 0, 1, 0, 1, 1],
    [40.0, 0, 0, 1, 1, 0, 1, 0, 1],
    [2.5, 1, 0, 0, 0, 1, 1, 0, 1],
    [1.0, 0, 0, 1, 1, 0, 0, 0, 1],
]


def make_model() -> LinearModel:
    return LinearModel(Hyperplane(np.arange(1.0, 10.0), 3.0), FEATURES, columns=COLUMNS)


def test_a_table_becomes_rows() -> None:
    np.testing.assert_array_equal(make_model().encode(TABLE), ROWS)


def test_frames_of_every_kind() -> None:
    frame = pd.DataFrame(
        {
            "age": pd.array([30, None, 2, 1], dtype="Int64"),
            "colour": pd.Categorical(["green", None, "red", None]),
            "member": pd.array([True, False, True, False], dtype="boolean"),
            "floor": np.array([3, 1, 2, 99], dtype=np.int8),
            "only": pd.array(["x"] * 4, dtype="string"),
        }
    )
    expected = np.array(ROWS)
    expected[2, 0] = 2
    np.testing.assert_array_equal(make_model().encode(frame), expected)
    np.testing.assert_array_equal(make_model().encode(frame.astype(object)), expected)
    np.testing.assert_array_equal(make_model().encode(pyarrow.Table.from_pandas(frame)), expected)


def test_a_frame_of_features_is_taken_as_it_is() -> None:
    frame = pd.DataFrame(ROWS, columns=FEATURES)[list(reversed(FEATURES))]
    np.testing.assert_array_equal(make_model().encode(frame), ROWS)


def test_rows_are_inside_the_domain_if_every_category_is_known() -> None:
    model = make_model()
    assert model.domain == Domain(
        9,
        [-np.inf, 0, 0, 0, 0, 0, 0, 0, 1],
        [np.inf, 1, 1, 1, 1, 1, 1, 1, 1],
        [[1, 2, 3], [4, 5], [6, 7]],
    )
    assert [model.domain.contains(row) for row in ROWS] == [True, True, True, False]
    assert domain_of([Column("a"), Column("b")], ["a", "b"]) is None
    assert LinearModel(Hyperplane([1.0], 0.0)).domain is None


def test_random_columns_are_encoded_into_the_domain() -> None:
    drawn = sample(COLUMNS, 0, 50)
    rows = make_model().encode(drawn)
    assert {len(values) for values in drawn.values()} == {50}
    assert make_model().domain is not None
    assert all(make_model().domain.contains(row) for row in rows)
    assert len(np.unique(rows[:, 1:], axis=0)) > 8


@pytest.mark.parametrize(
    ("name", "values", "error", "text"),
    [
        ("age", ["30", 1, 2, 3], InvalidInput, "row 0: 'age' is '30', which is not a number"),
        ("age", [1, 2, [3], 4], InvalidInput, r"row 2: 'age' is \[3\], which is not a number"),
        ("age", [1, 2, 3, math.inf], NotFinite, "row 3: 'age' is inf"),
        ("age", [1, 10**400, 3, 4], NotFinite, "row 1: 'age' is too large"),
        ("age", [[1], [2], [3], [4]], DimensionMismatch, r"'age' must have one value for each row, got shape \(4, 1\)"),
        ("age", np.array(["2020-01-01"] * 4, dtype="M8[D]"), InvalidInput, "row 0: 'age' is .* not a number"),
        (
            "colour",
            ["red", "puce", "red", "red"],
            InvalidInput,
            "row 1: 'colour' is 'puce'; the model knows 'red', 'gr",
        ),
        ("colour", ["red", "red", ["red"], "red"], InvalidInput, r"row 2: 'colour' is \['red'\]"),
        ("member", [True, "true", True, True], InvalidInput, "row 1: 'member' is 'true'; the model knows False, True"),
        ("member", [True, True, True, None], InvalidInput, "row 3: 'member' is missing; the model knows"),
        ("only", ["x"] * 3, DimensionMismatch, "the columns have different lengths"),
    ],
)
def test_values_that_cannot_be_used(name: str, values: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(InvalidInput, match=text) as caught:
        make_model().encode({**TABLE, name: values})
    assert type(caught.value) is error


def test_a_gap_needs_something_to_fill_it() -> None:
    with pytest.raises(NotFinite, match="row 1: 'a' is missing"):
        Column("a").encode([1.0, math.nan])
    with pytest.raises(NotFinite, match="row 0: 'a' is missing"):
        Column("a").encode([pd.NA, 1])
    assert Column("a").encode([decimal.Decimal("0.5"), np.float32(2), np.int8(1)]).tolist() == [[0.5], [2.0], [1.0]]


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(InvalidInput, match="the data have no column 'age'; they have 'colour', 'x'"):
        make_model().encode({"colour": ["red"], "x": [1]})
    with pytest.raises(InvalidInput, match="a data frame or a mapping .* got ndarray"):
        make_model().encode(np.ones((2, 9)))
    with pytest.raises(InvalidInput, match="no names of features"):
        LinearModel(Hyperplane([1.0], 0.0)).encode({"a": [1]})


def test_many_categories_are_not_all_shown() -> None:
    column = Column("k", tuple(range(1000)))
    with pytest.raises(InvalidInput, match="the model knows 0, 1, 2, 3, 4, 5 and 994 more"):
        column.encode([-1])


def test_columns_and_features_must_fit_together() -> None:
    assert check_columns([Column("a")], ("a",)) == (Column("a"),)
    with pytest.raises(InvalidInput, match="columns must be Column objects"):
        check_columns(["a"], ("a",))
    with pytest.raises(InvalidInput, match="columns must be a list"):
        check_columns("a", ("a",))
    with pytest.raises(InvalidInput, match="give features"):
        LinearModel(Hyperplane([1.0], 0.0), columns=(Column("a"),))
    with pytest.raises(InvalidInput, match="'b' comes from no column; 'a=x' is no feature"):
        LinearModel(Hyperplane([1.0], 0.0), ("b",), columns=(Column("a", ("x",)),))


@pytest.mark.parametrize(
    ("categories", "cell", "value"),
    [
        (("red", "green"), "red", "red"),
        (("red", "green"), " red ", "red"),
        ((" red ", "red"), " red ", " red "),
        ((1, 2), "2", 2),
        ((1, 2), "2.0", 2),
        (("1", "2"), "2", "2"),
        ((1, "1"), "1", "1"),
        ((False, True), "TRUE", True),
        ((False, True), "false", False),
        ((False, True), "0", False),
        (("true", "false"), "true", "true"),
        ((0.5, None), "", None),
        (("", "a"), "", ""),
        (("a", None), "nan", "nan"),
        ((10, 1000), "1_000", "1_000"),
        ((1, 2), "3", "3"),
    ],
)
def test_cells_of_text_files(categories: Any, cell: str, value: Any) -> None:
    found = Column("a", categories).read(cell)
    assert found == value
    assert isinstance(found, str) == isinstance(value, str)


values = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-3, 3) | st.text(max_size=3)


@given(st.lists(values, min_size=1, max_size=6, unique=True), st.lists(values, max_size=20))
def test_encoding_is_equality(categories: list[Any], cells: list[Any]) -> None:
    """One by one, by Python's ==, as a second opinion on the look-up."""
    try:
        column = Column("a", tuple(categories), unknown="ignore")
    except InvalidInput:
        assert len(set(map(repr, categories))) <= len(categories)
        return
    expected = [[float(c is None if v is None else v == c) for c in categories] for v in cells]
    np.testing.assert_array_equal(column.encode(cells), np.array(expected).reshape(-1, len(categories)))


def test_encode_by_hand_matches_pandas() -> None:
    frame = pd.DataFrame({"k": ["b", "a", "c", "a"], "x": [1.0, 2.0, 3.0, 4.0]})
    columns = (Column("k", ("a", "b", "c")), Column("x"))
    rows = encode(columns, ("k=a", "k=b", "k=c", "x"), frame)
    np.testing.assert_array_equal(
        rows, pd.get_dummies(frame, prefix_sep="=")[["k_a".replace("_", "="), "k=b", "k=c", "x"]]
    )
