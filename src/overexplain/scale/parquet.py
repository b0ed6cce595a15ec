"""Points out of batches of a Parquet file, by pyarrow (the extra `parquet`)."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from overexplain._files import open_regular
from overexplain.errors import InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray
from overexplain.log.tables.parquet_tables import in_float64
from overexplain.scale.columns import Raw

BUFFER = 2**20
"""Bytes of a column that are read at a time: without a limit it is a whole row group, which may be the whole file."""

TAIL = 8
MARK = b"PAR1"


def modules(path: str | Path) -> tuple[Any, Any]:
    """pyarrow and its Parquet reader; `path` is what they are needed for."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInput(f'{path}: Parquet files need pyarrow: pip install "overexplain[parquet]"') from None


def opened(source: Any, path: str | Path) -> Any:
    """The Parquet file in `source` (a path or an open file), read piece by piece."""
    arrow, parquet = modules(path)
    try:
        if isinstance(source, str | Path):
            open_regular(source).close()  # Arrow would wait for whoever writes to a pipe
        return parquet.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False)
    except (arrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None):
            raise
        raise InvalidInput(f"{path}: not a Parquet file that can be read: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """What a reader complains of, without the pages it may add."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def footer_digest(path: Path) -> str:
    """The SHA-256 of a file's footer: its schema, and where, how large and in what range every column of a row group is.

    A file that is written again with other values has, as a rule, another one; it takes no more than the end of the file to see.
    """
    with open_regular(path) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        tail = file.read(TAIL)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MARK or length > size - TAIL - len(MARK):
            raise InvalidInput(f"{path}: not a Parquet file that can be read: it does not end like one")
        file.seek(size - TAIL - length)
        return hashlib.sha256(size.to_bytes(8, "little") + file.read(length)).hexdigest()


def points_of(batch: Any, names: list[str], raw: Raw | None, path: str, place: Callable[[int], str]) -> FloatArray:
    """The points in a batch: its columns `names` as numbers, or what the raw columns make of them."""
    if raw is None:
        return np.column_stack([floats(batch.column(name), name, path, place) for name in names])
    table = {name: batch.column(name).to_pylist() for name in raw.names}
    return raw.points(table, place, lambda _column, entry, _i: entry)


def floats(column: Any, name: str, path: str, place: Callable[[int], str]) -> FloatArray:
    """A column as float64; what is missing, infinite or no number is refused, with its place."""
    arrow, _ = modules(path)
    kinds = arrow.types
    if not (kinds.is_integer(column.type) or kinds.is_floating(column.type) or kinds.is_decimal(column.type)):
        raise InvalidInput(f"{path}: column {name!r} is {column.type}; it must hold numbers")
    values: FloatArray = np.asarray(
        in_float64(column).to_numpy(zero_copy_only=False)
    )  # a gap becomes NaN, to be found below
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        i = int(wrong[0])
        what = "missing" if column[i].as_py() is None else f"{values[i]}; only finite numbers can be used"
        raise NotFinite(f"{place(i)}: {name!r} is {what}")
    return values
