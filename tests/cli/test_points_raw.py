"""Files with raw columns, categories among them, for a model that has learned what they become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overexplain.cli import points
from overexplain.cli.points import open_points
from overexplain.errors import InvalidInput, NotFinite
from overexplain.models.columns import Column

COLUMNS = (
    Column("age"),
    Column("income", missing=7.5),
    Column("colour", ("red", "green", None)),
    Column("member", (False, True)),
    Column("floor", (1, 2), unknown="ignore"),
    Column("floor", features=("floor",)),
)
FEATURES = tuple(name for column in COLUMNS for name in column.own)
FRAME = pd.DataFrame(
    {
        "id": ["p1", "p2", "p3"],
        "age": [30.5, 40.0, 50.0],
        "income": [1.0, np.nan, 3.0],
        "colour": ["green", "red", None],
        "member": [True, False, True],
        "floor": [2, 1, 9],
    }
)
ROWS = [
    [30.5, 1.0, 0, 1, 0, 0, 1, 0, 1, 2],
    [40.0, 7.5, 1, 0, 0, 1, 0, 1, 0, 1],
    [50.0, 3.0, 0, 0, 1, 0, 1, 0, 0, 9],
]


def read(path: Path) -> tuple[np.ndarray, list[str], str | None]:
    with open_points(path, FEATURES, len(FEATURES), COLUMNS) as file:
        blocks = list(file.blocks)
        keys = [key for block in blocks for key in block.keys or ()]
        return np.vstack([block.points for block in blocks]), keys, file.key


def store(frame: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_raw_columns_of_every_kind_of_file(ending: str, tmp_path: Path) -> None:
    rows, keys, key = read(store(FRAME, tmp_path / f"cases{ending}"))
    np.testing.assert_array_equal(rows, ROWS)
    assert (keys, key) == (["p1", "p2", "p3"], "id")
    shuffled = FRAME[["floor", "colour", "age", "member", "income"]]
    rows, keys, key = read(store(shuffled, tmp_path / f"more{ending}"))
    np.testing.assert_array_equal(rows, ROWS)
    assert (keys, key) == ([], None)


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_encoded_columns_are_read_as_before(ending: str, tmp_path: Path) -> None:
    columns = (*COLUMNS[:5], Column("storey", features=("floor",)))
    encoded = pd.DataFrame(ROWS, columns=list(FEATURES))
    path = store(encoded, tmp_path / f"cases{ending}")
    with open_points(path, FEATURES, len(FEATURES), columns) as file:
        np.testing.assert_array_equal(np.vstack([block.points for block in file.blocks]), ROWS)


def test_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = pd.concat([FRAME] * 5, ignore_index=True)
    for module in ("points_csv", "points_json", "points_parquet"):
        monkeypatch.setattr(f"overexplain.cli.{module}.BLOCK", 4)
    for ending in (".csv", ".jsonl", ".parquet"):
        path = store(many, tmp_path / f"cases{ending}")
        rows, keys, _ = read(path)
        np.testing.assert_array_equal(rows, ROWS * 5)
        assert keys == ["p1", "p2", "p3"] * 5
    assert points.BLOCK == 65_536


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"age": None}, Exception, "'age' is missing"),
        ({"age": "old"}, InvalidInput, "'age' is [\"']old[\"'], which is not a number"),
        ({"colour": "puce"}, InvalidInput, "'colour' is 'puce'; the model knows 'red', 'green', None"),
        ({"member": None}, InvalidInput, "'member' is missing; the model knows False, True"),
        ({"floor": None}, NotFinite, "'floor' is missing"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_what_cannot_be_used_is_named_with_its_place(
    ending: str, change: dict[str, Any], error: type[Exception], text: str, tmp_path: Path
) -> None:
    records = FRAME.astype(object).where(FRAME.notna(), None).to_dict("records")
    records[1] |= change
    path = tmp_path / f"cases{ending}"
    if ending == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif ending == ".csv":
        lines = [",".join("" if value is None else str(value) for value in record.values()) for record in records]
        path.write_text("\n".join([",".join(FRAME.columns), *lines]) + "\n")
    else:
        frame = pd.DataFrame(records)
        frame = frame.astype({name: str for name, value in change.items() if isinstance(value, str)})
        if "age" in change and change["age"] == "old":
            text = "'age' is '30.5', which is not a number"
        frame.to_parquet(path)
    place = {".csv": "line 3", ".jsonl": "line 2", ".parquet": r"row \d"}[ending]
    with pytest.raises(InvalidInput, match=rf"cases{ending}, {place}: .*{text}") as caught:
        read(path)
    if ending != ".csv":
        assert isinstance(caught.value, error)


def test_ragged_and_broken_lines(tmp_path: Path) -> None:
    path = store(FRAME, tmp_path / "cases.csv")
    text = path.read_text()
    path.write_text(text + "\n\np4,1,2,red\n")
    with pytest.raises(InvalidInput, match="cases.csv, line 7: 4 columns where the first line has 6"):
        read(path)
    path.write_text(text + 'p4,1,2,"red,True,1\n')
    with pytest.raises(InvalidInput, match="line 5: not CSV"):
        read(path)
    path.write_text(text + 'p4,1,2,"red",True,"1"\n\n')
    assert read(path)[0][3].tolist() == [1, 2, 1, 0, 0, 0, 1, 1, 0, 1]
    path = tmp_path / "cases.jsonl"
    good = json.dumps({"age": 1, "income": 2, "colour": "red", "member": True, "floor": 1})
    path.write_text(good + "\n[1, 2]\n")
    with pytest.raises(InvalidInput, match="line 2: must be an object"):
        read(path)
    path.write_text(good + '\n{"age": 1}\n')
    with pytest.raises(InvalidInput, match="line 2: nothing for 'income', 'colour', 'member', 'floor'"):
        read(path)


def test_gaps_of_numbers_that_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("age,income,colour,member,floor\n1,,red,1,1\n1, nan ,red,0,2\n1,NaN,,true,1\n")
    assert read(path)[0][:, 1].tolist() == [7.5, 7.5, 7.5]
    path.write_text("age,income,colour,member,floor\nnan,1,red,1,1\n")
    with pytest.raises(NotFinite, match="line 2: 'age' is nan"):
        read(path)
    path.write_text("age,income,colour,member,floor\n1,inf,red,1,1\n")
    with pytest.raises(NotFinite, match="line 2: 'income' is inf"):
        read(path)


def test_a_file_with_neither_kind_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("age,colour\n1,red\n")
    with pytest.raises(InvalidInput, match="no column for 'income'"):
        read(path)
