"""A data set in files and row groups of any size is one long table, and whatever is wrong with it is named."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datasets import FEATURES, people, store
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.models.columns import Column
from overexplain.scale.parts import Dataset, File, Part, block_rows, open_dataset, plan


def read(
    dataset: Dataset, first: int = 0, rows: int | None = None, size: int = 7
) -> tuple[np.ndarray, list[int], list]:
    """(points, the first row of every block, keys) of these rows."""
    count = dataset.rows - first if rows is None else rows
    blocks = list(dataset.blocks(first, count, size, with_keys=True))
    keys = [key for block in blocks for array in block.keys for key in array.to_pylist()]
    return np.concatenate([block.points for block in blocks]), [block.first for block in blocks], keys


def test_files_are_one_table_in_the_order_of_their_names(tmp_path: Path) -> None:
    rows = people(120)
    dataset = open_dataset(store(tmp_path, rows, [50, 0, 70], group=20), FEATURES, 3)
    assert (dataset.rows, dataset.starts, dataset.key) == (120, [0, 50, 50], "id")
    points, firsts, keys = read(dataset)
    assert np.array_equal(points, rows)
    assert firsts == list(range(0, 120, 7))
    assert keys == [f"n{i}" for i in range(120)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    groups=st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=4),
    first=st.integers(0, 40),
    count=st.integers(1, 40),
)
def test_pieces_are_the_rows_asked_for(groups: list[list[int]], first: int, count: int, tmp_path: Path) -> None:
    files = tuple(File(tmp_path, str(k), tuple(found), "", ()) for k, found in enumerate(groups))
    dataset = Dataset(tmp_path, files, 3)
    every = [(f, g, i) for f, found in enumerate(groups) for g, size in enumerate(found) for i in range(size)]
    found = [
        (piece.file, piece.group, piece.skip + i) for piece in dataset.pieces(first, count) for i in range(piece.rows)
    ]
    assert found == every[first : first + count]
    assert all(piece.rows for piece in dataset.pieces(first, count))


@settings(max_examples=100, deadline=None)
@given(
    groups=st.lists(st.lists(st.integers(0, 60), max_size=5), min_size=1, max_size=4),
    size=st.integers(1, 16),
    part=st.integers(1, 60),
    inside=st.booleans(),
)
def test_parts_are_whole_blocks_that_cover_everything(
    groups: list[list[int]], size: int, part: int, inside: bool
) -> None:
    dataset = Dataset(Path("x"), tuple(File(Path("x"), "", tuple(found), "", ()) for found in groups), 3)
    parts = plan(dataset, size, part, inside)
    assert [found.number for found in parts] == list(range(len(parts)))
    assert sum(found.rows for found in parts) == dataset.rows
    ends = 0
    starts = set(np.cumsum([0, *(count for found in groups for count in found)]).tolist())
    for found in parts:
        assert found.first == ends
        assert found.first % size == 0
        assert found.rows > 0
        ends += found.rows
        # Apart from the last, a part has the rows asked for, and begins less than a block behind the start of a row group.
        assert found.rows >= part or ends == dataset.rows
        assert inside or any(0 <= found.first - start < size for start in starts)


def test_any_rows_can_be_read_by_themselves(tmp_path: Path) -> None:
    rows = people(200)
    dataset = open_dataset(store(tmp_path, rows, [30, 90, 80], group=25), FEATURES, 3)
    for first, count in ((0, 200), (29, 2), (100, 1), (119, 81), (33, 90)):
        assert np.array_equal(read(dataset, first, count)[0], rows[first : first + count])


def test_columns_are_matched_by_name_in_every_file(tmp_path: Path) -> None:
    rows = people(40)
    store(tmp_path, rows[:20], [20])
    other = pa.table(
        {"debts": rows[20:, 2].astype(np.float32).astype(float), "age": rows[20:, 1], "income": rows[20:, 0]}
    )
    pq.write_table(other, tmp_path / "people-001.parquet")
    dataset = open_dataset(tmp_path, FEATURES, 3)
    assert dataset.key is None  # not every file has it
    assert dataset.extras == ("id",)
    assert np.array_equal(read(dataset)[0][:, :2], rows[:, :2])


def test_a_column_missing_in_the_third_file_is_found_before_any_work(tmp_path: Path) -> None:
    store(tmp_path, people(60), [20, 20, 20])
    pq.write_table(pa.table({"income": [1.0], "age": [2.0]}), tmp_path / "people-002.parquet")
    with pytest.raises(InvalidInput, match=r"people-002\.parquet: no column for 'debts'"):
        open_dataset(tmp_path, FEATURES, 3)


def test_without_names_every_file_must_have_the_same_columns(tmp_path: Path) -> None:
    rows = people(40)
    store(tmp_path, rows, [20, 20], key=False)
    dataset = open_dataset(tmp_path, None, 3)
    assert dataset.unmatched == FEATURES
    assert np.array_equal(read(dataset)[0], rows)
    pq.write_table(pa.table({name: [1.0] for name in FEATURES[::-1]}), tmp_path / "people-001.parquet")
    with pytest.raises(InvalidInput, match=r"people-001\.parquet: its columns are 'debts'"):
        open_dataset(tmp_path, None, 3)
    with pytest.raises(DimensionMismatch):
        open_dataset(tmp_path / "people-000.parquet", None, 4)


def test_keys_of_different_types_become_text(tmp_path: Path) -> None:
    for number, keys in enumerate((["a", "b"], [7, 8])):
        table = pa.table({"id": keys, **{name: [1.0, 2.0] for name in FEATURES}})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    dataset = open_dataset(tmp_path, FEATURES, 3)
    assert read(dataset)[2] == ["a", "b", "7", "8"]


def test_hidden_files_and_other_files_are_not_looked_at(tmp_path: Path) -> None:
    rows = people(10)
    store(tmp_path / "year=2024", rows, [10])
    (tmp_path / "_metadata.parquet").write_bytes(b"no")
    (tmp_path / ".part.parquet").write_bytes(b"no")
    (tmp_path / "_parts").mkdir()
    (tmp_path / "_parts" / "a.parquet").write_bytes(b"no")
    (tmp_path / "notes.txt").write_text("no")
    assert [file.name for file in open_dataset(tmp_path, FEATURES, 3).files] == ["year=2024/people-000.parquet"]
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InvalidInput, match=r"nothing: no \.parquet files in this folder"):
        open_dataset(tmp_path / "nothing", FEATURES, 3)


def test_a_missing_number_is_named_by_its_row_in_file_and_data_set(tmp_path: Path) -> None:
    rows = people(120)
    rows[83, 1] = np.nan
    dataset = open_dataset(store(tmp_path, rows, [50, 70], group=20), FEATURES, 3)
    with pytest.raises(NotFinite, match=r"people-001\.parquet, row 33 \(row 83 of the data set\): 'age' is nan"):
        read(dataset)
    assert len(read(dataset, 0, 83)[0]) == 83
    assert len(read(dataset, 84, 36)[0]) == 36


def test_a_number_a_million_rows_in_is_named(tmp_path: Path) -> None:
    values = np.zeros(1_300_000)
    values[1_234_567] = np.inf
    table = pa.table({"income": values, "age": np.zeros(len(values)), "debts": np.zeros(len(values))})
    pq.write_table(table, tmp_path / "all.parquet", row_group_size=400_000)
    dataset = open_dataset(tmp_path / "all.parquet", FEATURES, 3)
    with pytest.raises(NotFinite, match=r"all\.parquet, row 1234567: 'income' is inf"):
        list(dataset.blocks(1_200_000, 100_000, block_rows(3)))


def test_text_in_a_column_of_numbers_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"income": ["a"], "age": [1.0], "debts": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r"column 'income' is string"):
        read(open_dataset(tmp_path, FEATURES, 3))


def test_a_damaged_row_group_is_named(tmp_path: Path) -> None:
    store(tmp_path, people(150), [50, 100], group=25)
    damaged = tmp_path / "people-001.parquet"
    metadata = pq.ParquetFile(damaged).metadata
    data = bytearray(damaged.read_bytes())
    offset = metadata.row_group(2).column(1).data_page_offset
    data[offset : offset + 60] = b"\xff" * 60
    damaged.write_bytes(data)
    dataset = open_dataset(tmp_path, FEATURES, 3)
    with pytest.raises(InvalidInput, match=r"people-001\.parquet, row group 2: cannot be read"):
        read(dataset)
    assert len(read(dataset, 0, 100)[0]) == 100


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a table at all", b"PAR1" + b"\0" * 40 + b"\xff\xff\0\0PAR1"])
def test_what_is_no_parquet_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.parquet: not a Parquet file that can be read"):
        open_dataset(tmp_path, FEATURES, 3)


def test_a_file_that_changes_under_the_work_is_noticed(tmp_path: Path) -> None:
    dataset = open_dataset(store(tmp_path, people(40), [40]), FEATURES, 3)
    store(tmp_path, people(40, seed=9), [40])
    with pytest.raises(InvalidInput, match="has changed since this run began"):
        read(dataset)


def test_raw_columns_become_features(tmp_path: Path) -> None:
    columns = (Column("age"), Column("town", ("north", "south")))
    features = ("age", "town=north", "town=south")
    for number, towns in enumerate((["south", "north"], ["north", "east"])):
        pq.write_table(pa.table({"town": towns, "age": [30, 40]}), tmp_path / f"{number}.parquet")
    dataset = open_dataset(tmp_path, features, 3, columns)
    assert read(dataset, 0, 3)[0].tolist() == [[30, 0, 1], [40, 1, 0], [30, 1, 0]]
    with pytest.raises(InvalidInput, match=r"1\.parquet, row 1 \(row 3 of the data set\)"):
        read(dataset)


def test_blocks_depend_on_the_number_of_features_and_on_proofs_alone() -> None:
    assert [block_rows(p, proved=True) for p in (1, 3, 4096, 5000)] == [2048, 2048, 2048, 1024]
    assert [block_rows(p) for p in (1, 3, 128, 129, 5000)] == [65_536, 65_536, 65_536, 32_768, 1024]
    assert Part(7, 0, 1).name == "part-000007"


def test_decimals_are_the_numbers_that_text_files_have(tmp_path: Path) -> None:
    texts = [f"{i / 10:.1f}" for i in range(-50, 51)]
    column = pa.array([Decimal(text) for text in texts], pa.decimal128(12, 1))
    pq.write_table(pa.table({"a": column}), tmp_path / "a.parquet")
    points, _, _ = read(open_dataset(tmp_path, ("a",), 1))
    assert points[:, 0].tolist() == [float(text) for text in texts]
