"""Logs from and to files; the end of the name says which kind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from overexplain._files import reason
from overexplain.errors import OUT_OF_MEMORY, InvalidInput
from overexplain.geometry.hyperplane import YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.blocks import KINDS, Columns, Seen, as_columns, read_blocks
from overexplain.log.jsonl.values import warn
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import as_mechanism
from overexplain.log.spool import HELD
from overexplain.log.tables.joined import joined
from overexplain.log.terms import with_terms, without_terms

WRITTEN = (".jsonl", ".csv", ".parquet", ".json", ".sqlite")


def read_log(
    path: str | os.PathLike[str],
    *,
    mapping: Mapping[str, Any] | None = None,
    mechanism: Mechanism | None = None,
    seen: Seen = lambda _, __: None,
) -> QueryLog:
    """The log in a file: .jsonl, .csv, .parquet, .json (DiCE), .sqlite (a run).

    `mapping` says which column is what, e.g. {"client": "client_id", "y": "decision", "yes": "granted"}; `mechanism` is
    what explanations follow that say nothing of their own. `seen` hears how much has been read, of how much.
    """
    terms, columns = as_mechanism(mechanism), as_columns(mapping)
    name = _readable(path)
    try:
        log = joined(_fitting(read_blocks(name, columns, terms, seen), name))
    except MemoryError:
        raise InvalidInput(f"cannot read the log {name}: {OUT_OF_MEMORY}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"cannot read the log {name}: {reason(error)}") from None
    _warn_without_yes(log, columns, name)
    return log if terms is None or not without_terms(log) else with_terms(log, terms)


def write_log(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the log to a file in one step: to a new file beside it, which then takes its place.

    .jsonl keeps everything; .csv and .parquet all but the log's own default mechanism, .json what DiCE
    knows, .sqlite (new files only) what a run does.
    """
    try:
        check_written(path)
        _writer(Path(path).suffix.lower())(log, path)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"cannot save the log as {os.fspath(path)}: {reason(error)}") from error


def check_written(path: str | os.PathLike[str]) -> None:
    """Raise if no log can be saved under this name: to be asked before there are answers to be lost.

    >>> check_written("answers.xlsx")
    Traceback (most recent call last):
    overexplain.errors.InvalidInput: answers.xlsx: logs are saved in files whose names end in .jsonl, .csv, .parquet, .json, .sqlite
    """
    name = Path(path)
    if name.exists() and not name.is_file():
        raise InvalidInput(f"cannot save the log as {name}: not a regular file")
    kind = name.suffix.lower()
    if kind == ".sqlite" and name.exists():
        raise InvalidInput(f"{name}: exists already; a run is not written over")
    if kind not in WRITTEN:
        raise InvalidInput(f"{name}: logs are saved in files whose names end in {', '.join(WRITTEN)}")


def _writer(kind: str) -> Callable[[QueryLog, str | os.PathLike[str]], None]:
    if kind == ".csv":
        from overexplain.log.tables.csv_tables import write_csv

        return write_csv
    if kind == ".parquet":
        from overexplain.log.tables.parquet_tables import write_parquet

        return write_parquet
    if kind == ".json":
        from overexplain.log.dice.files import write_dice

        return write_dice
    if kind == ".sqlite":
        from overexplain.log.store.imported import write_run

        return write_run
    from overexplain.log.jsonl.formats import write_jsonl

    return write_jsonl


def _readable(path: str | os.PathLike[str]) -> Path:
    """The path, if there is such a file and its name is one of a log's."""
    name = Path(path)
    try:
        name.stat()
        if name.is_dir():
            raise IsADirectoryError("it is a folder")
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read the log {name}: {reason(error)}") from None
    if name.suffix.lower() not in KINDS:
        raise InvalidInput(f"{name}: logs are read from files whose names end in {', '.join(KINDS)}")
    return name


def _warn_without_yes(log: QueryLog, columns: Columns, path: Path) -> None:
    """Warn if the label that is said to mean Yes occurs nowhere: a slip in it would make every decision a No.

    Of a file of DiCE the outcomes of explanations count, too: its own reader looks at those.
    """
    if columns.yes is None or path.suffix.lower() == ".json" or (log.labels == YES).any() or not log.labels.any():
        return
    warn(
        f"{path}: no label is {columns.yes!r}, which the mapping says means Yes, so every decision is No; labels are "
        f"compared letter by letter ('Granted' is not 'granted', '1.0' is not '1')"
    )


ROW = 64
"""Bytes of a row besides its coordinates: label, time, who asked, which terms."""


def _fitting(blocks: Iterable[QueryLog], path: Path) -> Iterator[QueryLog]:
    """The blocks, as long as there is room for them: few bytes of a Parquet file can be a billion rows, as its end says.

    What every row has in memory must fit twice; coordinates, which a long log has in a file, must fit on the disk.
    """
    claimed, rows = _claimed(path), 0
    memory, addresses = _memory() // 2, _addresses() // 2
    for block in blocks:
        rows += len(block)
        count = max(rows, claimed)
        coordinates = count * (block.dimension or 0) * 16
        if count * ROW > memory or count * ROW + coordinates > addresses:
            raise InvalidInput(
                f"{path}: {count:,} rows or more of {block.dimension} features do not fit into memory; "
                "`overexplain monitor` reads them piece by piece"
            )
        if coordinates > 2 * HELD and coordinates > shutil.disk_usage(tempfile.gettempdir()).free:
            raise InvalidInput(
                f"{path}: {count:,} rows or more of {block.dimension} features do not fit into {tempfile.gettempdir()}, where "
                "a long log is kept; TMPDIR names another folder"
            )
        yield block


def _claimed(path: Path) -> int:
    """How many rows a file says that it has; 0 if it does not say."""
    if path.suffix.lower() != ".parquet":
        return 0
    from overexplain.log.tables.parquet_tables import claimed_rows

    return claimed_rows(path)


def _memory() -> int:
    """The bytes that the machine, or the container, has."""
    found = [2**40]
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):  # of a container
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(size for size in found if size > 0)


def _addresses() -> int:
    """The bytes that this process may address, mapped files among them."""
    with suppress(ImportError, OSError):  # no such thing on Windows
        import resource

        if (limit := resource.getrlimit(resource.RLIMIT_AS)[0]) > 0:  # -1: no limit
            return limit
    return 2**62
