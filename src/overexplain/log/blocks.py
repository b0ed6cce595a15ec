"""A log that need not fit into memory: read from a file block by block, and some of its rows as a log of their own.

JSON Lines are our own format. In CSV and Parquet files every row is a request and columns go by name, as in
`QueryLog.from_frame`: the features, `label`, `cf_<feature>`, `status`, `mechanism`, `client`, `time`, `source`. A mapping
says which column is which where the names are others.
"""

from __future__ import annotations

import datetime
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.formats import _Reader
from overexplain.log.frames import from_frame
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import feature_names, repeated

BLOCK = 16_384
"""Rows of a block; bounds the memory that reading takes."""

KINDS = (".jsonl", ".csv", ".parquet")
SHORT = {"y": "label", "t": "time", "cf": "explanation"}
KEYS = ("label", "client", "time", "source", "status", "mechanism", "explanation", "x", "yes")
"""What a mapping may say: the column of each, the features (x), and which label means Yes."""


@dataclass(frozen=True)
class Columns:
    """Which column is which; `features` None: all that are nothing else. `yes`: the label that means Yes, if not ±1."""

    names: Mapping[str, str]
    features: tuple[str, ...] | None
    prefix: str
    yes: str | None

    def of(self, key: str) -> str:
        """The column for a key."""
        return self.names.get(key, key)


def as_columns(mapping: Mapping[str, Any] | None, features: Sequence[str] | None = None) -> Columns:
    """The columns that a mapping names; `features` are those of a model, if there is one with names.

    >>> as_columns({"client": "client_id", "y": "decision"}).of("label")
    'decision'
    """
    given = {SHORT.get(key, key): value for key, value in (mapping or {}).items()}
    if len(given) != len(mapping or {}):
        raise InvalidInput(f"the mapping names something twice: {', '.join(mapping or {})}")
    if unknown := [key for key in given if key not in KEYS]:
        known = ", ".join((*SHORT, *KEYS))
        raise InvalidInput(f"a mapping says which column is what; unknown: {', '.join(unknown)}; known are {known}")
    x = given.pop("x", features)
    prefix, yes = given.pop("explanation", "cf_"), given.pop("yes", None)
    texts = {**given, "explanation": prefix} | ({} if yes is None else {"yes": yes})
    if wrong := [key for key, value in texts.items() if not (isinstance(value, str) and value)]:
        raise InvalidInput(f"a mapping gives one text each, the name of a column; not so: {', '.join(wrong)}")
    if twice := repeated(list(given.values())):
        raise InvalidInput(f"one column cannot be two things: {twice}")
    return Columns(given, None if x is None else feature_names(x), prefix, yes)


def read_blocks(path: Path, columns: Columns | None = None, mechanism: Mechanism | None = None) -> Iterator[QueryLog]:
    """The log in a file as logs of at most `BLOCK` rows, in order; the memory of a few blocks, however long the file.

    `mechanism` is what explanations of a CSV or Parquet file follow if it has no such column.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InvalidInput(f"{path}: logs are read from files whose names end in {', '.join(KINDS)}")
    if kind == ".jsonl":
        if columns is not None and (columns.names or columns.yes is not None or columns.prefix != "cf_"):
            raise InvalidInput(f"{path}: a .jsonl log has its own names; a mapping is for .csv and .parquet files")
        return _jsonl(path)
    return _tables(path, columns or as_columns(None), mechanism, kind)


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

    >>> rows = some_rows(None, [], np.array([[1.0, 2.0]]), [1], np.full((1, 2), np.nan), [0], [-1])
    >>> rows
    QueryLog(1 row: 1 label, 0 explanations, 2 features)
    """
    log = QueryLog(features)
    for known in mechanisms:
        log._table.id_of(known)
    log._append(points, labels, explanations, status, mechanism_ids)
    return log


def _jsonl(path: Path) -> Iterator[QueryLog]:
    reader = _Reader(str(path))
    with path.open("rb") as lines:
        for number, raw in enumerate(lines, 1):
            try:
                reader._take(raw, number)
            except InvalidInput as error:
                raise type(error)(f"{path}, line {number}: {error}") from None
            except RecursionError:
                raise InvalidInput(f"{path}, line {number}: nested too deep") from None
            if reader.log is not None and len(reader.log) >= BLOCK:
                full, reader.log = reader.log, _like(reader.log)
                yield full
    if reader.log is None:
        raise InvalidInput(f"{path} is empty; a log starts with a header line")
    reader._store(reader.log)
    yield reader.log


def _like(log: QueryLog) -> QueryLog:
    """An empty log for what comes next in the same file."""
    fresh = QueryLog(log.features, log.mechanism)
    if log.dimension is not None and fresh.dimension is None:
        fresh._set_dimension(log.dimension)
    return fresh


def _tables(path: Path, columns: Columns, mechanism: Mechanism | None, kind: str) -> Iterator[QueryLog]:
    done = 0
    for frame in _csv(path, columns) if kind == ".csv" else _parquet(path, columns):
        try:
            yield _from_table(frame, columns, mechanism)
        except InvalidInput as error:
            raise type(error)(f"{path}, rows from {done} on (counted from 0): {error}") from None
        done += len(frame)


def _from_table(frame: Any, columns: Columns, mechanism: Mechanism | None) -> QueryLog:
    """One block; columns that are named nowhere are left out if the features are named, and refused if not."""
    optional = [columns.of(key) for key in ("label", "client", "time", "source", "status", "mechanism")]
    if columns.features is not None:
        missing = [name for name in (*columns.features, *columns.names.values()) if name not in frame.columns]
        if missing:
            raise InvalidInput(
                f"no column for {', '.join(map(repr, missing))}; it has {', '.join(map(repr, frame.columns))}"
            )
        answers = [columns.prefix + name for name in columns.features]
        kept = {*columns.features, *answers, *optional}
        frame = frame[[name for name in frame.columns if name in kept]]
    label, time = columns.of("label"), columns.of("time")
    changed = {}
    if columns.yes is not None:
        if label not in frame.columns:
            raise InvalidInput(f"the mapping says which label means Yes, but there is no column {label!r}")
        given = frame[label]
        changed[label] = np.where(given.isna(), np.nan, np.where(given.astype(str) == columns.yes, 1.0, -1.0))
    if time in frame.columns:
        changed[time] = _seconds(frame[time], time)
    renamed = {columns.of(key): key for key in ("status", "mechanism")}
    frame = frame.assign(**changed).rename(columns=renamed)
    names = columns.features
    return from_frame(frame, names, label, columns.prefix, columns.of("client"), time, columns.of("source"), mechanism)


def _seconds(column: Any, name: str) -> FloatArray:
    """Seconds since the epoch: of numbers as they are, of dates and ISO texts (UTC where they name no zone)."""
    if column.dtype.kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64))
    read = {None: np.nan}
    values = np.empty(len(column))
    for i, (value, gap) in enumerate(zip(column.astype(object), column.isna(), strict=True)):
        key = None if gap else value
        if key not in read:
            read[key] = _second(value, name)
        values[i] = read[key]
    return values


def _second(value: Any, name: str) -> float:
    try:
        when = value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value).strip())
    except ValueError:
        try:
            return float(value)
        except (TypeError, ValueError):
            shown = repr(value)[:60]
            raise InvalidInput(
                f"column {name!r} has {shown}: neither seconds since the epoch nor an ISO date"
            ) from None
    return (when if when.tzinfo else when.replace(tzinfo=datetime.UTC)).timestamp()


def _csv(path: Path, columns: Columns) -> Iterator[Any]:
    pandas = _module("pandas", path, "frames")
    texts = {columns.of(key) for key in ("client", "source", "status", "mechanism")}
    if columns.yes is not None:
        texts.add(columns.of("label"))
    try:
        header = list(pandas.read_csv(path, nrows=0, encoding="utf-8-sig").columns)
        gaps = {name: [""] if name in texts else ["", "nan", "NaN", "null"] for name in header}
        # Every digit counts. Before version 3 pandas must be told so, from then on it must not.
        exact = {"float_precision": "round_trip"} if int(pandas.__version__.split(".")[0]) < 3 else {}
        blocks = pandas.read_csv(
            path, chunksize=BLOCK, encoding="utf-8-sig", keep_default_na=False, na_values=gaps,
            dtype={name: object for name in header if name in texts}, **exact,
        )  # fmt: skip
        yield from blocks
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: not a CSV file that can be read: {str(error).strip()}") from None


def _parquet(path: Path, columns: Columns) -> Iterator[Any]:
    arrow, parquet = _module("pyarrow", path, "parquet"), _module("pyarrow.parquet", path, "parquet")
    _module("pandas", path, "frames")
    texts = {columns.of(key) for key in ("client", "source")} | ({columns.of("label")} if columns.yes else set())
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            wanted = None
            if columns.features is not None:
                optional = [columns.of(key) for key in ("label", "client", "time", "source", "status", "mechanism")]
                answers = [columns.prefix + name for name in columns.features]
                wanted = [name for name in names if name in {*columns.features, *answers, *optional}]
            for batch in file.iter_batches(BLOCK, columns=wanted):
                frame = batch.to_pandas()
                for name in texts.intersection(names):  # numbers that are names: no client is called 7.0
                    frame[name] = np.array(batch.column(name).cast(arrow.string()).to_pylist(), dtype=object)
                yield frame
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InvalidInput(f"{path}: not a Parquet file that can be read: {error}") from None


def _module(name: str, path: Path, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InvalidInput(f'{path}: such files need {name}: pip install "overexplain[{extra}]"') from None
