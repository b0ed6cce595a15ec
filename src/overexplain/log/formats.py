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
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, final

import numpy as np

from overexplain._files import replacing
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import ASKED, LABEL_HINT, NOT_ASKED, MechanismTable, Row, Status, feature_names

FORMAT = "overexplain-log"
VERSION = 1
STATUS = {status.text: status for status in Status}
CHUNK = 4096
"""Rows gathered before they go into arrays; bounds the memory that reading takes."""

_HEADER_KEYS = {"format", "version", "dimension", "features", "mechanism"}
_ROW_KEYS = {"x", "y", "cf", "status", "m", "client", "t", "source"}
_MANY_FEATURES = 2**31 - 1


@final
class JsonlWriter:
    """Writes a new log file row by row; each row is handed to the system at once, so that a killed process loses none.

    The file must not exist. Leaving the `with` block (or `close`) also waits until the disk has it all.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        features: Sequence[str] | None = None,
        dimension: int | None = None,
        mechanism: Mechanism | None = None,
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
            self._file = Path(path).open("x", encoding="ascii", newline="\n")  # noqa: SIM115 - closed by close
        except (OSError, ValueError) as error:
            raise InvalidInput(f"cannot write the log {_name(path)}: {_reason(error)}") from None
        self._put(line)

    def write(self, row: Row) -> None:
        """Write one row, after its mechanism if that is new."""
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


_encode = json.JSONEncoder(allow_nan=False).encode


def to_json(entry: dict[str, Any]) -> str:
    """The entry on one line, its floats such that they are read back exactly."""
    try:
        return _encode(entry)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"this cannot be written as JSON: {error}") from None


def write_jsonl(log: QueryLog, path: str | os.PathLike[str]) -> None:
    """Write the log to `path` in one step: to a new file beside it, which then takes its place."""
    try:
        with replacing(path) as beside, JsonlWriter(beside, log.features, log.dimension, log.mechanism) as writer:
            for row in log:
                writer.write(row)
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"cannot save the log as {_name(path)}: {_reason(error)}") from error


def read_jsonl(path: str | os.PathLike[str]) -> QueryLog:
    """The log in a file; a last line that a crash cut short is left out, with a warning."""
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read the log {_name(path)}: {_reason(error)}") from None
    with file:
        return _Reader(_name(path)).read(file)


@final
class _Reader:
    """Reads one file; every error says the file and the line."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.log: QueryLog | None = None
        self.dimension: int | None = None
        self.mechanisms: list[Mechanism] = []
        self.rows: list[tuple[Any, ...]] = []

    def read(self, lines: Iterable[bytes]) -> QueryLog:
        number = 0
        for number, raw in enumerate(lines, 1):
            try:
                self._take(raw, number)
            except InvalidInput as error:
                raise type(error)(f"{self.name}, line {number}: {error}") from None
            except RecursionError:
                raise InvalidInput(f"{self.name}, line {number}: nested too deep") from None
        if self.log is None:
            raise InvalidInput(f"{self.name} is empty; a log starts with a header line")
        self._store(self.log)
        return self.log

    def _take(self, raw: bytes, number: int) -> None:
        try:
            entry = parse_json(raw)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            if raw.endswith(b"\n") or self.log is None:
                if isinstance(error, UnicodeDecodeError):
                    raise InvalidInput(f"not JSON: {error.reason}") from None
                raise InvalidInput(f"not JSON: {error.msg} at column {error.pos + 1}") from None
            warnings.warn(
                f"{self.name}, line {number}: the last line was cut short, as by a crash, and is left out",
                UserWarning,
                stacklevel=5,
            )
            return
        if not isinstance(entry, dict):
            raise InvalidInput(f"every line must be a JSON object, got {_show(entry)}")
        if self.log is None:
            self.log = self._header(entry)
        elif "format" in entry:
            raise InvalidInput("a second header; a file holds one log")
        elif entry.keys() == {"mechanism"}:
            self.mechanisms.append(read_mechanism(entry["mechanism"], self.dimension))
        else:
            self.rows.append(self._row(entry, self.log))
            if len(self.rows) == CHUNK:
                self._store(self.log)

    def _header(self, entry: dict[str, Any]) -> QueryLog:
        version, dimension, features = entry.get("version"), entry.get("dimension"), entry.get("features")
        if entry.get("format") != FORMAT:
            raise InvalidInput(f'not a log: the first line must have "format": "{FORMAT}"')
        if type(version) is int and version > VERSION:
            raise InvalidInput(f"written by a newer version of overexplain (format {_show(version)}, not {VERSION})")
        if type(version) is not int or version != VERSION:
            raise InvalidInput(f"version must be {VERSION}, got {_show(version)}")
        _refuse_unknown(entry, _HEADER_KEYS)
        if features is not None and not isinstance(features, list):
            raise InvalidInput(f"features must be a list of names or null, got {_show(features)}")
        if dimension is not None and not (type(dimension) is int and 0 < dimension <= _MANY_FEATURES):
            raise InvalidInput(f"dimension must be a positive integer or null, got {_show(dimension)}")
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
        _refuse_unknown(entry, _ROW_KEYS)
        x = _numbers(entry.get("x"), "x", self.dimension)
        label = 0
        if "y" in entry:
            label = entry["y"]
            if type(label) is not int or label not in (1, -1):
                raise InvalidInput(f"y is {_show(label)}: {LABEL_HINT}")
        answer = _numbers(entry["cf"], "cf", len(x)) if "cf" in entry else [math.nan] * len(x)
        status = ASKED if "cf" in entry else NOT_ASKED
        if "status" in entry:
            status = read_status(entry["status"], "cf" in entry)
        mechanism = None
        if "m" in entry:
            m = entry["m"]
            if type(m) is not int or not 0 <= m < len(self.mechanisms):
                raise InvalidInput(f"m is {_show(m)}, but {len(self.mechanisms)} mechanisms are defined above")
            mechanism = self.mechanisms[m]
        for key in ("client", "source"):
            if key in entry and not isinstance(entry[key], str):
                raise InvalidInput(f"{key} must be a string, got {_show(entry[key])}")
        time = _numbers([entry["t"]], "t", 1)[0] if "t" in entry else math.nan
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


def _refuse_constant(text: str) -> NoReturn:
    raise NotFinite(f"{text} is no number a log can hold")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) != len(pairs):
        raise InvalidInput("the same key twice in one object")
    return entry


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_distinct).decode


def parse_json(raw: bytes | str) -> Any:
    """The JSON value; raises InvalidInput, or, if it is no JSON at all, JSONDecodeError or UnicodeDecodeError."""
    try:
        return _decode(raw if isinstance(raw, str) else raw.decode("utf-8"))
    except (InvalidInput, json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise InvalidInput("nested too deep") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InvalidInput(str(error)) from None


def read_mechanism(terms: Any, dimension: int | None) -> Mechanism:
    """The mechanism that `Mechanism.to_dict` wrote, if it is one and is made for `dimension` features."""
    if isinstance(terms, dict) and any(isinstance(value, bool) for value in terms.values()):
        raise InvalidInput(f"a mechanism's terms are numbers, norms or null, got {_show(terms)}")
    try:
        mechanism = Mechanism.from_dict(terms)
        if dimension is not None:
            mechanism.fits(dimension)
    except InvalidInput:
        raise
    except Exception as error:  # any shape of JSON may come, and norms of all kinds are made from it
        raise InvalidInput(f"this mechanism cannot be read: {type(error).__name__}: {error}") from None
    return mechanism


def _numbers(entry: Any, key: str, length: int | None) -> list[float]:
    """The list, if it holds `length` finite numbers."""
    values: list[Any] = entry if isinstance(entry, list) else []
    if not values or (length is not None and len(values) != length):
        wanted = "one number or more" if length is None else f"{length} numbers"
        got = f"{len(values)} entries" if isinstance(entry, list) else _show(entry)
        raise DimensionMismatch(f"{key} must be a list of {wanted}, got {got}")
    kinds = set(map(type, values))
    if kinds != {float}:
        if not kinds <= {float, int}:  # bool is an int to Python, not to us
            raise InvalidInput(f"{key} must hold numbers only, got {_show(values)}")
        try:
            values = [float(value) for value in values]
        except OverflowError:
            raise NotFinite(f"{key} holds an integer too large for a float64") from None
    if not all(map(math.isfinite, values)):
        raise NotFinite(f"{key} holds a number too large for a float64")
    return values


def read_status(text: Any, answered: bool) -> Status:
    """The status of this name, if it fits a row that has an explanation (or has none)."""
    status = STATUS.get(text) if isinstance(text, str) else None
    if status is None:
        raise InvalidInput(f"status must be one of {', '.join(STATUS)}, got {_show(text)}")
    if (status == Status.ASKED) != answered:
        raise InvalidInput(f"status is {text}, but the row has {'an' if answered else 'no'} explanation")
    return status


def _refuse_unknown(entry: dict[str, Any], known: set[str]) -> None:
    if not entry.keys() <= known:
        extra = ", ".join(_show(key) for key in entry if key not in known)
        raise InvalidInput(f"unknown key {extra}; known are {', '.join(sorted(known))}")


def _show(value: Any) -> str:
    """A short text of any JSON value."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _name(path: str | os.PathLike[str]) -> str:
    return os.fspath(path)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
