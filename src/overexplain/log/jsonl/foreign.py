"""Logs in JSON Lines that are not ours: every line a flat record, whose keys a mapping names as columns of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from overexplain._files import open_regular, read_so_far
from overexplain.errors import InvalidInput
from overexplain.log.jsonl.formats import FORMAT
from overexplain.log.jsonl.values import parse_json, warn
from overexplain.log.tables.cells import Values
from overexplain.log.tables.mapped import Columns
from overexplain.log.tables.tables import Table

_decode = msgspec.json.Decoder().decode


def is_ours(path: Path) -> bool:
    """Whether the file begins with the header of our own format."""
    with open_regular(path) as file:
        first = file.readline()
    try:
        entry = parse_json(first)
    except (InvalidInput, json.JSONDecodeError, UnicodeDecodeError):
        return False
    return isinstance(entry, dict) and entry.get("format") == FORMAT


def record_blocks(
    path: Path, columns: Columns, size: int, seen: Callable[[int, int], None]
) -> Iterator[tuple[Table, Sequence[int]]]:
    """The records of a file, about `size` at a time, and the line of each; blank lines are left out."""
    names: dict[str, None] = {}
    number, first = 0, True
    with open_regular(path) as file:
        while raw := list(islice(file, size)):
            lines: list[int] = []
            records: list[dict[str, Any]] = []
            for line in raw:
                number += 1
                if line.isspace():
                    continue
                record = _record(line, path, number, first=not (names or records))
                if record is None:
                    break
                lines.append(number)
                records.append(record)
            _add_keys(names, records, lines, path, closed=not first and columns.features is None)
            seen(*read_so_far(file))
            if records:
                yield _table(list(names), records), lines
                first = False
    if first:
        raise InvalidInput(f"{path} is empty: there is no record to read")


def _table(names: list[str], records: list[dict[str, Any]]) -> Table:
    return Table(names, len(records), lambda name: Values(name, [record.get(name) for record in records]))


def _add_keys(
    names: dict[str, None], records: Sequence[dict[str, Any]], lines: Sequence[int], path: Path, closed: bool
) -> None:
    """Note all keys; if it is `closed`, there must be no new ones."""
    for line, record in zip(lines, records, strict=True):
        if not record.keys() <= names.keys():
            if closed:
                new = ", ".join(repr(key) for key in record if key not in names)
                raise InvalidInput(
                    f"{path}, line {line}: {new} is in no record before; say which are the features (x=…)"
                )
            names.update(dict.fromkeys(record))


def _record(raw: bytes, path: Path, number: int, first: bool) -> dict[str, Any] | None:
    """The record on a line; None if it is the last one, and cut short."""
    try:
        record = _decode(raw)
        # Every key and text takes two quotation marks: with more there may be a key that comes twice.
        if isinstance(record, dict):
            texts = sum(type(value) is str for value in record.values())
            if raw.count(b'"') == 2 * (len(record) + texts):
                return record
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        record = parse_json(raw)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        if raw.endswith(b"\n") or first:
            reason = error.reason if isinstance(error, UnicodeDecodeError) else f"{error.msg} at column {error.pos + 1}"
            raise InvalidInput(f"{path}, line {number}: not JSON: {reason}") from None
        warn(f"{path}, line {number}: the last line was cut short, as by a crash, and is left out")
        return None
    except InvalidInput as error:
        raise type(error)(f"{path}, line {number}: {error}") from None
    if not isinstance(record, dict):
        raise InvalidInput(f"{path}, line {number}: every line must be a JSON object")
    return record
