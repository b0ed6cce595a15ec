"""Logs in Parquet files: a column a feature, or one of lists; numbers as float64, and null for a gap."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overexplain._files import open_regular, replacing
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.log.frames import table_columns
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import repeated
from overexplain.log.tables.cells import Misfit, Texts, as_objects, number_of_entries, seconds_of
from overexplain.log.tables.mapped import Columns
from overexplain.log.tables.tables import Table, rows_of_a_block

_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
DAY = 86_400.0
BUFFER = 2**16
"""Bytes of a column that are read at a time: without a limit it is a whole row group, and what was read is kept to the end."""


def parquet_blocks(path: Path, columns: Columns, size: int, seen: Callable[[int, int], None]) -> Iterator[Table]:
    """The rows of a file, `size` at a time, only of the columns that are wanted; the first block may be empty."""
    arrow, parquet = _modules(path)
    with open_regular(path) as opened:
        try:
            with parquet.ParquetFile(opened, buffer_size=BUFFER, pre_buffer=False) as file:
                given = _names(file.schema_arrow, columns, path)
                wanted = _wanted(given, columns, path)
                done, claimed = 0, file.metadata.num_rows
                for batch in file.iter_batches(rows_of_a_block(size, wanted), columns=wanted):
                    if batch.num_rows:
                        yield _table(batch, wanted)
                        done += batch.num_rows
                        seen(done, claimed)
                if done != claimed:
                    raise InvalidInput(f"{path}: damaged: it says that it has {claimed:,} rows, but has {done:,}")
                if not done:
                    kinds = [file.schema_arrow.field(name).type for name in wanted]
                    yield _table(
                        arrow.RecordBatch.from_arrays([arrow.nulls(0, kind) for kind in kinds], wanted), wanted
                    )
        except (arrow.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path}: not a Parquet file that can be read: {_first_line(error)}") from None


def claimed_rows(path: Path) -> int:
    """How many rows the end of a file says that it has; 0 if it cannot be read, which `parquet_blocks` tells."""
    arrow, parquet = _modules(path)
    try:
        with open_regular(path) as opened:
            return int(parquet.read_metadata(opened).num_rows)
    except (arrow.ArrowException, OSError, MemoryError, UnicodeDecodeError):
        return 0


def _wanted(given: list[str], columns: Columns, path: Path) -> list[str]:
    try:
        return columns.wanted(given)
    except InvalidInput as error:
        raise type(error)(f"{path}: {error}") from None


def _names(schema: Any, columns: Columns, path: Path) -> list[str]:
    """The columns; what pandas stored as the index of a frame is none, unless it is named."""
    if twice := repeated(schema.names):
        raise InvalidInput(f"{path}: two columns of the same name: {twice}")
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):  # not what pandas writes
        index = []
    named = {*(columns.features or ()), *columns.names.values()}
    unused = {name for name in index if isinstance(name, str)} - named if isinstance(index, list) else set()
    return [name for name in schema.names if name not in unused]


def _table(batch: Any, wanted: list[str]) -> Table:
    if batch.schema.names != wanted:  # a name with a dot may be that of a nested field, too
        batch = batch.select(wanted)
    return Table(wanted, batch.num_rows, lambda name: _Cells(name, batch.column(name)))


def in_float64(column: Any) -> Any:
    """A column of numbers as the nearest float64, which is what a text file with the same digits is read as."""
    arrow = importlib.import_module("pyarrow")
    if arrow.types.is_decimal(column.type):  # Arrow divides by a power of ten that it has rounded
        column = column.cast(arrow.string())
    return column.cast(arrow.float64(), safe=False)  # an integer past 2^53 is rounded


@dataclass(frozen=True)
class _Cells:
    """A column of Arrow."""

    name: str
    given: Any

    @property
    def column(self) -> Any:
        """The column itself, not numbers into a dictionary."""
        arrow = importlib.import_module("pyarrow")
        return self.given.dictionary_decode() if arrow.types.is_dictionary(self.given.type) else self.given

    def numbers(self, truth: bool) -> FloatArray:
        """The numbers, NaN for a gap; truth values are numbers only if `truth`."""
        arrow = importlib.import_module("pyarrow")
        column, kinds = self.column, arrow.types
        if kinds.is_boolean(column.type) and truth:
            column = column.cast(arrow.uint8())
        is_number = (kinds.is_integer, kinds.is_floating, kinds.is_decimal, kinds.is_null)
        if not any(fits(column.type) for fits in is_number):
            raise InvalidInput(f"column {self.name!r} must hold numbers: it is {column.type}")
        return np.asarray(_array(in_float64(column), np.nan), dtype=np.float64)

    def texts(self, names: bool) -> Texts:
        """The texts, None for a gap; numbers are texts, too, if they are `names`."""
        kinds = importlib.import_module("pyarrow").types
        kind = self.column.type
        if not (names or kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_null(kind)):
            raise InvalidInput(f"column {self.name!r} must hold texts: it is {kind}")
        return self.answers()

    def answers(self) -> Texts:
        """Whatever the cells hold, as texts, None for a gap."""
        arrow = importlib.import_module("pyarrow")
        try:
            # Each distinct text is made once.
            coded = self.column.cast(arrow.string()).dictionary_encode()
            known = as_objects([*coded.dictionary.to_pylist(), None])
        except (arrow.ArrowException, UnicodeDecodeError) as error:
            raise InvalidInput(f"column {self.name!r} must hold texts: it is {self.given.type} ({error})") from None
        return np.asarray(known[_array(coded.indices, -1)], dtype=object)

    def seconds(self) -> FloatArray:
        """Seconds since the epoch: of numbers as they are, of dates and ISO texts (UTC where they name no zone)."""
        arrow = importlib.import_module("pyarrow")
        column, kinds = self.column, arrow.types
        if kinds.is_timestamp(column.type):
            return _Cells(self.name, column.cast(arrow.int64())).numbers(False) / _UNITS[column.type.unit]
        if kinds.is_date32(column.type):
            return _Cells(self.name, column.cast(arrow.int32())).numbers(False) * DAY
        if kinds.is_date64(column.type):
            return _Cells(self.name, column.cast(arrow.int64())).numbers(False) / _UNITS["ms"]
        if kinds.is_string(column.type) or kinds.is_large_string(column.type):
            return seconds_of(self.name, self.answers().tolist())
        return self.numbers(truth=False)

    def vectors(self, dimension: int | None) -> FloatArray | None:
        """Rows of numbers, NaN for a gap, all-NaN where there is no list or an empty one; None if it has no lists."""
        arrow = importlib.import_module("pyarrow")
        column, kinds = self.column, arrow.types
        if kinds.is_null(column.type) and dimension is not None:
            return np.full((len(column), dimension), np.nan)
        if not (
            kinds.is_list(column.type) or kinds.is_large_list(column.type) or kinds.is_fixed_size_list(column.type)
        ):
            return None
        lengths = _array(column.value_lengths(), -1)
        there = lengths > 0
        p = dimension or (int(lengths[np.argmax(there)]) if there.any() else 1)
        wrong = np.flatnonzero(there & (lengths != p))
        if len(wrong):
            row, got = int(wrong[0]), number_of_entries(int(lengths[wrong[0]]))
            raise Misfit(DimensionMismatch, f"column {self.name!r} must hold {p} numbers, got {got} in ", row)
        rows = np.full((len(column), p), np.nan)
        if there.any():
            flat = column.filter(arrow.array(there)).flatten()
            rows[there] = _Cells(self.name, flat).numbers(False).reshape(-1, p)
        return rows


def _array(column: Any, gap: float) -> Any:
    """Numbers of Arrow as a new array, with `gap` for null. Arrow's own way to do it loads pandas, which takes longer."""
    valid, data = column.buffers()
    dtype = np.dtype(column.type.to_pandas_dtype())
    if data is None or not len(column):
        return np.full(len(column), gap, dtype=dtype)
    values = np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize).copy()
    if valid is not None and column.null_count:
        bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[
            column.offset : column.offset + len(column)
        ]
        values[bits == 0] = gap
    return values


def write_parquet(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the log as a Parquet file in one step."""
    arrow, parquet = _modules(path)
    columns = {}
    for name, values in table_columns(log):
        if values.dtype == object:
            columns[name] = _texts(arrow, name, values)
        elif values.dtype == np.int8:  # labels
            columns[name] = arrow.array(values, mask=values == 0)
        else:
            columns[name] = arrow.array(np.ascontiguousarray(values), from_pandas=True)  # NaN becomes null
    try:
        table = arrow.table(columns)
    except UnicodeEncodeError:
        raise InvalidInput("a Parquet file cannot hold these names of features; save the log as .jsonl") from None
    with replacing(path, private=True) as beside, beside.open("wb") as file:
        parquet.write_table(table, file)
        file.flush()
        os.fsync(file.fileno())


def _texts(arrow: Any, name: str, values: Any) -> Any:
    try:
        return arrow.array(values.tolist(), arrow.string())
    except UnicodeEncodeError:
        raise InvalidInput(
            f"a {name} is no Unicode text: a Parquet file cannot hold it; save the log as .jsonl"
        ) from None


def _modules(path: Any) -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInput(f'{path}: Parquet files need pyarrow: pip install "overexplain[parquet]"') from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
