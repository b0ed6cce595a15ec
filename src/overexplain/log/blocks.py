"""A log that need not fit into memory: read from a file block by block, and some of its rows as a log of their own.

JSON Lines are our own format, or, with a mapping of their keys, anybody's records. In CSV and Parquet files every row is a
request and columns go by name, as in `QueryLog.from_frame`: the features, `label`, `cf_<feature>`, `status`, `mechanism`,
`client`, `time`, `source`. A mapping says which column is which where the names are others. Runs (.sqlite) and files of DiCE
(.json) come as one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.gaps import LeftOut
from overexplain.log.jsonl.formats import jsonl_blocks
from overexplain.log.querylog import QueryLog
from overexplain.log.tables.cells import Misfit
from overexplain.log.tables.mapped import Columns, as_columns
from overexplain.log.tables.tables import Table, log_of

__all__ = ["BLOCK", "KINDS", "Columns", "as_columns", "read_blocks", "some_rows"]

BLOCK = 16_384
"""Rows of a block; bounds the memory that reading takes."""

Seen = Callable[[int, int], None]

KINDS = (".jsonl", ".csv", ".parquet", ".json", ".sqlite")


def read_blocks(
    path: Path,
    columns: Columns | None = None,
    mechanism: Mechanism | None = None,
    seen: Seen = lambda _, __: None,
) -> Iterator[QueryLog]:
    """The log in a file as logs of about `BLOCK` rows, in order; the memory of a few blocks, however long the file.

    `mechanism` is what explanations of a file follow that has no word on them. `seen` hears how much has been read, of how much.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InvalidInput(f"{path}: logs are read from files whose names end in {', '.join(KINDS)}")
    mapped = columns or as_columns(None)
    if kind == ".jsonl":
        return _jsonl(path, mapped, mechanism, seen)
    if kind == ".csv":
        return _logs(_csv(path, seen), path, mapped, mechanism)
    if kind == ".parquet":
        return _logs(_parquet(path, mapped, seen), path, mapped, mechanism)
    return _run(path, mapped) if kind == ".sqlite" else _dice(path, mapped, mechanism)


def some_rows(
    features: Sequence[str] | None,
    mechanisms: Sequence[Mechanism],
    points: FloatArray,
    labels: Any,
    explanations: FloatArray,
    status: Any,
    mechanism_ids: Any,
) -> QueryLog:
    """A log of the rows given column by column, as another log had them; ids count into `mechanisms`.

    >>> import numpy as np
    >>> rows = some_rows(None, [], np.array([[1.0, 2.0]]), [1], np.full((1, 2), np.nan), [0], [-1])
    >>> rows
    QueryLog(1 row: 1 label, 0 explanations, 2 features)
    """
    log = QueryLog(features)
    for known in mechanisms:
        log._table.id_of(known)
    log._append(points, labels, explanations, status, mechanism_ids)
    return log


Named = Callable[[int], str]
"""What to call a row of a block."""


def _logs(
    tables: Iterator[tuple[Table, Named]],
    path: Path,
    columns: Columns,
    mechanism: Mechanism | None,
    may_come_late: bool = False,
) -> Iterator[QueryLog]:
    """The logs in tables; `may_come_late`: later ones may have columns that those before do not."""
    dimension, explained, left_out = None, False, LeftOut(str(path))
    names: Sequence[str] = ()
    empty: QueryLog | None = None
    for table, named in tables:
        names, explained = table.names, explained or columns.finds_explanations(table.names)
        try:
            if not (explained or may_come_late):
                raise columns.without_explanations(names)
            log, gaps = log_of(replace(table, names=columns.wanted(table.names)), columns, mechanism, dimension)
        except Misfit as misfit:
            error = misfit.error(named)
            raise type(error)(f"{path}: {error}") from None
        except InvalidInput as error:
            raise type(error)(f"{path}: {error}") from None
        for gap in gaps:
            left_out.add(f"row {named(gap.row)}", gap.cell)
        if len(log):
            dimension = log.dimension
            yield log
        else:
            empty = log
    if names and not explained:
        raise InvalidInput(f"{path}: {columns.without_explanations(names)}")
    if dimension is None and empty is not None:
        yield empty
    left_out.tell()


def _csv(path: Path, seen: Seen) -> Iterator[tuple[Table, Named]]:
    from overexplain.log.tables.csv_tables import csv_blocks

    return _by_line(csv_blocks(path, BLOCK, seen))


def _parquet(path: Path, columns: Columns, seen: Seen) -> Iterator[tuple[Table, Named]]:
    from overexplain.log.tables.parquet_tables import parquet_blocks

    done = 0
    for table in parquet_blocks(path, columns, BLOCK, seen):
        yield table, lambda i, done=done: f"{done + i} (counted from 0)"  # type: ignore[misc]
        done += table.count


def _by_line(blocks: Iterator[tuple[Table, Sequence[int]]]) -> Iterator[tuple[Table, Named]]:
    done = 0
    for table, lines in blocks:
        yield table, lambda i, done=done, lines=lines: f"{done + i} (line {lines[i]})"  # type: ignore[misc]
        done += table.count


def _jsonl(path: Path, columns: Columns, mechanism: Mechanism | None, seen: Seen) -> Iterator[QueryLog]:
    if columns.is_plain and columns.features is None:
        return jsonl_blocks(path, BLOCK, seen)
    from overexplain.log.jsonl.foreign import is_ours, record_blocks

    if not is_ours(path):
        late = columns.features is not None  # else new keys are refused
        return _logs(_by_line(record_blocks(path, columns, BLOCK, seen)), path, columns, mechanism, may_come_late=late)
    if not columns.is_plain:
        raise InvalidInput(
            f"{path}: a .jsonl log of ours has its own names; a mapping is for other records and for .csv and .parquet files"
        )
    return jsonl_blocks(path, BLOCK, seen)


def _run(path: Path, columns: Columns) -> Iterator[QueryLog]:
    from overexplain.log.store.run import Run

    if not columns.is_plain:
        raise InvalidInput(f"{path}: a run has its own names; a mapping is for .jsonl, .csv and .parquet files")
    with Run.read(path) as run:
        yield run.log()


def _dice(path: Path, columns: Columns, mechanism: Mechanism | None) -> Iterator[QueryLog]:
    from overexplain.log.dice.files import read_dice

    yield read_dice(path, columns.as_mapping(), mechanism)
