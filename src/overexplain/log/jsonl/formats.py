"""A log as a file of JSON Lines; what is read back is exactly what was written.

A header, then a line a row that has only what the row has; before the first row of a mechanism, a line that defines it
(the first is 0, and so on)::

    {"format": "overexplain-log", "version": 1, "dimension": 2, "features": ["age", "income"], "mechanism": null}
    {"x": [30.0, 2.0], "y": 1}
    {"mechanism": {"distance": "l1", "robustness": null, "radius": 0.0, "tolerance": null, "slack": 0.0}}
    {"x": [20.0, 1.0], "y": -1, "cf": [20.0, 1.5], "m": 0, "client": "ann", "t": 1.7e9, "source": "api"}
    {"x": [90.0, 1.0], "status": "none", "m": 0}
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, final

import numpy as np

from overexplain._files import open_regular, owner_only, read_so_far, reason, replacing
from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.gaps import LeftOut
from overexplain.log.jsonl.values import (
    parse_json,
    read_mechanism,
    read_numbers,
    read_status,
    refuse_unknown,
    show,
    to_json,
    warn,
)
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import ASKED, LABEL_HINT, NOT_ASKED, MechanismTable, Row, feature_names
from overexplain.log.tables.joined import like

__all__ = ["FORMAT", "VERSION", "JsonlWriter", "jsonl_blocks", "parse_json", "to_json", "write_jsonl"]

FORMAT = "overexplain-log"
VERSION = 1
CHUNK = 4096
"""Lines read, and rows written, together."""
MOUTHFUL = 2**22
"""Bytes read at once; with `CHUNK` it bounds the memory that reading takes."""
FEW = 16
"""So few rows are not worth arrays of their own."""

_HEADER_KEYS = {"format", "version", "dimension", "features", "mechanism"}
_ROW_KEYS = {"x", "y", "cf", "status", "m", "client", "t", "source"}
_MANY_FEATURES = 2**31 - 1


@final
class JsonlWriter:
    """Writes a new log file row by row; each row is handed to the system at once, so that a killed process loses none.

    The file must not exist, unless an empty one is to be `filled`; only its owner may read a new one. Leaving the
    `with` block (or `close`) also waits until the disk has it all.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        features: Sequence[str] | None = None,
        dimension: int | None = None,
        mechanism: Mechanism | None = None,
        *,
        filled: bool = False,
    ) -> None:
        names = None if features is None else list(feature_names(features))
        if names is not None and dimension not in (None, len(names)):
            raise DimensionMismatch(f"{len(names)} features, but dimension {dimension}")
        self._dimension = dimension if names is None else len(names)
        self._table = MechanismTable()
        header = {
            "format": FORMAT,
            "version": VERSION,
            "dimension": self._dimension,
            "features": names,
            "mechanism": None if mechanism is None else mechanism.to_dict(),
        }
        line = to_json(header)
        try:
            mode = "w" if filled else "x"
            self._file = open(path, mode, encoding="ascii", newline="\n", opener=owner_only)  # noqa: SIM115 - closed by close
        except (OSError, ValueError) as error:
            raise InvalidInput(f"cannot write the log {os.fspath(path)}: {reason(error)}") from None
        self._put(line)

    def write(self, rows: Row | QueryLog) -> None:
        """Write one row, or all of a log's (much faster than one by one), each mechanism before its first use."""
        if isinstance(rows, QueryLog):
            self._write_log(rows)
        else:
            self._write_row(rows)

    def _write_row(self, row: Row) -> None:
        if self._dimension is None:
            self._dimension = len(row.point)
        if len(row.point) != self._dimension:
            raise DimensionMismatch(f"the log has {self._dimension} features, the row {len(row.point)}")
        entry: dict[str, Any] = {"x": row.point.tolist()}
        if row.label is not None:
            entry["y"] = row.label
        if row.explanation is not None:
            entry["cf"] = row.explanation.tolist()
        elif row.status:  # NOT_ASKED is 0
            entry["status"] = row.status.text
        if row.mechanism is not None:
            if row.mechanism not in self._table:
                self._put(to_json({"mechanism": row.mechanism.to_dict()}))
            entry["m"] = self._table.id_of(row.mechanism)
        extras = {"client": row.client, "t": row.time, "source": row.source}
        entry |= {key: value for key, value in extras.items() if value is not None}
        self._put(to_json(entry))

    def _write_log(self, log: QueryLog) -> None:
        from overexplain.log.jsonl.fast import lines_of

        if not len(log):
            return
        if self._dimension is None:
            self._dimension = log.dimension
        if log.dimension != self._dimension:
            raise DimensionMismatch(f"the log has {self._dimension} features, the rows {log.dimension}")
        numbers = [-1] * len(log.mechanisms)
        for start in range(0, len(log), CHUNK):
            stop = min(start + CHUNK, len(log))
            ids, first = np.unique(log.mechanism_ids[start:stop], return_index=True)
            used = [(row, i) for row, i in sorted(zip(first.tolist(), ids.tolist(), strict=True)) if i >= 0]
            new = {row: log.mechanisms[i] for row, i in used if log.mechanisms[i] not in self._table}
            defined = {row: to_json({"mechanism": mechanism.to_dict()}) + "\n" for row, mechanism in new.items()}
            for _, i in used:
                numbers[i] = self._table.id_of(log.mechanisms[i])
            self._file.write(lines_of(log, start, stop, numbers, defined, to_json))
            self._file.flush()

    def close(self) -> None:
        """Close the file once the disk has it."""
        if not self._file.closed:
            with self._file:
                self._file.flush()
                os.fsync(self._file.fileno())

    def __enter__(self) -> JsonlWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()


def write_jsonl(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the log to `path` in one step: to a new file beside it, which then takes its place."""
    about = log.features, log.dimension, log.mechanism
    with replacing(path, private=True) as beside, JsonlWriter(beside, *about, filled=True) as writer:
        writer.write(log)


def jsonl_blocks(path: Path, size: int, seen: Callable[[int, int], None]) -> Iterator[QueryLog]:
    """The log in a file as logs of about `size` rows; a last line that a crash cut short is left out, with a warning."""
    reader = _Reader(str(path))
    with open_regular(path) as file:
        while lines := file.readlines(MOUTHFUL):
            seen(*read_so_far(file))
            for start in range(0, len(lines), CHUNK):
                log = reader.take(lines[start : start + CHUNK])
                if log is not None and len(log) >= size:
                    yield log
                    reader.log = like(log)
    if reader.log is None:
        raise InvalidInput(f"{path} is empty; a log starts with a header line")
    yield reader.log
    reader.left_out.tell()


@final
class _Reader:
    """Reads one file, some lines at a time; every error says the file and the line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.left_out = LeftOut(name)
        self.log: QueryLog | None = None
        self.dimension: int | None = None
        self.mechanisms: list[Mechanism] = []
        self.rows: list[tuple[Any, ...]] = []
        self.number = 0

    def take(self, lines: Sequence[bytes]) -> QueryLog | None:
        """Read these lines; the log so far, None before its header."""
        from overexplain.log.jsonl.fast import plain_columns, plain_rows

        start = 0
        while start < len(lines):
            rows = [] if self.log is None or self.dimension is None else plain_rows(lines, start)
            stop = start + len(rows)
            columns = None
            if self.log is not None and self.dimension is not None and len(rows) >= FEW:
                marks = sum(line.count(b'"') for line in lines[start:stop])
                columns = plain_columns(rows, marks, self.dimension, len(self.mechanisms))
                if columns is not None:
                    self._add(self.log, columns)
            if columns is None:
                self._carefully(lines[start:stop])
            # The line after the plain ones is not plain.
            self._carefully(lines[stop : stop + 1])
            start = stop + 1
        if self.log is not None:
            self._store(self.log)
        return self.log

    def _add(self, log: QueryLog, columns: tuple[Any, ...]) -> None:
        """Append columns whose mechanisms are numbered as in the file."""
        self._store(log)
        points, labels, explanations, codes, numbers, clients, times, sources = columns
        ids = {m: -1 if m < 0 else log._table.id_of(self.mechanisms[m]) for m in dict.fromkeys(numbers)}
        log._append(points, labels, explanations, codes, [ids[m] for m in numbers], clients, times, sources)
        self.number += len(points)

    def _carefully(self, lines: Iterable[bytes]) -> None:
        for raw in lines:
            self.number += 1
            try:
                self._take(raw, self.number)
            except InvalidInput as error:
                raise type(error)(f"{self.name}, line {self.number}: {error}") from None
            except RecursionError:
                raise InvalidInput(f"{self.name}, line {self.number}: nested too deep") from None

    def _take(self, raw: bytes, number: int) -> None:
        try:
            entry = parse_json(raw)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            if raw.endswith(b"\n") or self.log is None:
                if isinstance(error, UnicodeDecodeError):
                    raise InvalidInput(f"not JSON: {error.reason}") from None
                raise InvalidInput(f"not JSON: {error.msg} at column {error.pos + 1}") from None
            warn(f"{self.name}, line {number}: the last line was cut short, as by a crash, and is left out")
            return
        if not isinstance(entry, dict):
            raise InvalidInput(f"every line must be a JSON object, got {show(entry)}")
        if self.log is None:
            self.log = self._header(entry)
        elif "format" in entry:
            raise InvalidInput("a second header; a file holds one log")
        elif entry.keys() == {"mechanism"}:
            self.mechanisms.append(read_mechanism(entry["mechanism"], self.dimension))
        elif empty := next(
            (key for key in ("x", "cf") if isinstance(entry.get(key), list) and None in entry[key]), None
        ):
            self.left_out.add(f"line {number}", f"{empty} (entry {entry[empty].index(None)})")
        else:
            self.rows.append(self._row(entry, self.log))

    def _header(self, entry: dict[str, Any]) -> QueryLog:
        version, dimension, features = entry.get("version"), entry.get("dimension"), entry.get("features")
        if entry.get("format") != FORMAT:
            raise InvalidInput(
                f'not a log: the first line must have "format": "{FORMAT}"; other records are read by a mapping of their keys'
            )
        if type(version) is int and version > VERSION:
            raise InvalidInput(f"written by a newer version of overexplain (format {show(version)}, not {VERSION})")
        if type(version) is not int or version != VERSION:
            raise InvalidInput(f"version must be {VERSION}, got {show(version)}")
        refuse_unknown(entry, _HEADER_KEYS)
        if features is not None and not isinstance(features, list):
            raise InvalidInput(f"features must be a list of names or null, got {show(features)}")
        if dimension is not None and not (type(dimension) is int and 0 < dimension <= _MANY_FEATURES):
            raise InvalidInput(f"dimension must be a positive integer or null, got {show(dimension)}")
        if features is not None and dimension not in (None, len(features)):
            raise InvalidInput(f"dimension is {dimension}, but there are {len(features)} features")
        mechanism = None if entry.get("mechanism") is None else read_mechanism(entry["mechanism"], dimension)
        log = QueryLog(features, mechanism)
        if dimension is not None:
            log._set_dimension(dimension)
        self.dimension = log.dimension
        return log

    def _row(self, entry: dict[str, Any], log: QueryLog) -> tuple[Any, ...]:
        """The row's values, checked, in the order of `QueryLog._append`."""
        refuse_unknown(entry, _ROW_KEYS)
        x = read_numbers(entry.get("x"), "x", self.dimension)
        label = 0
        if "y" in entry:
            label = entry["y"]
            if type(label) is not int or label not in (1, -1):
                raise InvalidInput(f"y is {show(label)}: {LABEL_HINT}")
        answer = read_numbers(entry["cf"], "cf", len(x)) if "cf" in entry else [math.nan] * len(x)
        status = ASKED if "cf" in entry else NOT_ASKED
        if "status" in entry:
            status = read_status(entry["status"], "cf" in entry)
        mechanism = None
        if "m" in entry:
            m = entry["m"]
            if type(m) is not int or not 0 <= m < len(self.mechanisms):
                raise InvalidInput(f"m is {show(m)}, but {len(self.mechanisms)} mechanisms are defined above")
            mechanism = self.mechanisms[m]
        for key in ("client", "source"):
            if key in entry and not isinstance(entry[key], str):
                raise InvalidInput(f"{key} must be a string, got {show(entry[key])}")
        time = read_numbers([entry["t"]], "t", 1)[0] if "t" in entry else math.nan
        if self.dimension is None:
            self.dimension = len(x)
            log._set_dimension(len(x))
            for defined in self.mechanisms:
                defined.fits(len(x))
        number = log._table.id_of(mechanism)
        return x, label, answer, status, number, entry.get("client"), time, entry.get("source")

    def _store(self, log: QueryLog) -> None:
        if self.rows:
            points, *columns = zip(*self.rows, strict=True)
            log._append(np.array(points), *columns)
            self.rows = []
