"""Points from a Parquet file, by pyarrow (the extra `parquet`)."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from overexplain.cli.points import BLOCK, Block, Columns, PointsFile, Raw, matched
from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray


def read_parquet(
    file: IO[bytes], path: str, features: tuple[str, ...] | None, dimension: int, raw: Raw | None = None
) -> PointsFile:
    """The points in a Parquet file, read batch by batch, only the columns that are needed."""
    try:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInput(f'{path}: Parquet files need pyarrow: pip install "overexplain[parquet]"') from None
    try:
        table = parquet.ParquetFile(file)
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: not a Parquet file that can be read: {error}") from None
    given = list(table.schema_arrow.names)
    raw = None if raw is None or not raw.are_in(given) else raw
    columns = matched(given, features if raw is None else raw.names, dimension, path)
    done = [0]
    return PointsFile(
        columns.extras, _blocks(arrow, table, columns, path, done, raw), lambda: (done[0], table.metadata.num_rows)
    )


def _blocks(arrow: Any, table: Any, columns: Columns, path: str, done: list[int], raw: Raw | None) -> Iterator[Block]:
    names = table.schema_arrow.names
    numbers = [names[k] for k in columns.picks]
    key = None if columns.key is None else names[columns.key]
    try:
        for batch in table.iter_batches(BLOCK, columns=numbers if key is None else [*numbers, key]):
            if raw is None:
                points = np.column_stack([_floats(arrow, batch.column(name), name, path, done[0]) for name in numbers])
            else:
                points = _encoded(batch, raw, path, done[0])
            keys = None if key is None else ["" if k is None else str(k) for k in batch.column(key).to_pylist()]
            done[0] += batch.num_rows
            yield Block(points, keys)
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}, after row {done[0]}: {error}") from None


def _encoded(batch: Any, raw: Raw, path: str, before: int) -> FloatArray:
    table = {name: batch.column(name).to_pylist() for name in raw.names}
    return raw.points(table, lambda i: f"{path}, row {before + i}", lambda _column, entry, _i: entry)


def _floats(arrow: Any, column: Any, name: str, path: str, before: int) -> FloatArray:
    kinds = arrow.types
    if not (kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_decimal(column.type)):
        raise InvalidInput(f"{path}: column {name!r} is {column.type}; it must hold numbers")
    # A gap becomes NaN, to be found below; an integer past 2^53 is rounded, as it is in a CSV file.
    values: FloatArray = np.asarray(column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False))
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        i = int(wrong[0])
        what = "missing" if column[i].as_py() is None else f"{values[i]}; only finite numbers can be used"
        raise NotFinite(f"{path}, row {before + i}: {name!r} is {what}")
    return values
