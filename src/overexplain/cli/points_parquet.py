"""Points from a Parquet file, by pyarrow (the extra `parquet`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from overexplain.cli.points import BLOCK, Block, PointsFile
from overexplain.errors import InvalidInput
from overexplain.scale.columns import Columns, Raw, matched
from overexplain.scale.parquet import modules, opened, points_of


def read_parquet(
    file: IO[bytes], path: str, features: tuple[str, ...] | None, dimension: int, raw: Raw | None = None
) -> PointsFile:
    """The points in a Parquet file, read batch by batch, only the columns that are needed."""
    table = opened(file, path)
    given = list(table.schema_arrow.names)
    raw = None if raw is None or not raw.are_in(given) else raw
    columns = matched(given, features if raw is None else raw.names, dimension, path)
    done = [0]
    return PointsFile(
        columns.extras, _blocks(table, columns, path, done, raw), lambda: (done[0], table.metadata.num_rows)
    )


def _blocks(table: Any, columns: Columns, path: str, done: list[int], raw: Raw | None) -> Iterator[Block]:
    arrow, _ = modules(path)
    names = table.schema_arrow.names
    numbers = [names[k] for k in columns.picks]
    key = None if columns.key is None else names[columns.key]
    try:
        for batch in table.iter_batches(BLOCK, columns=numbers if key is None else [*numbers, key]):
            points = points_of(batch, numbers, raw, path, lambda i: f"{path}, row {done[0] + i}")
            keys = None if key is None else ["" if k is None else str(k) for k in batch.column(key).to_pylist()]
            done[0] += batch.num_rows
            yield Block(points, keys)
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}, after row {done[0]}: {error}") from None
