"""Points from JSON Lines: every line an object, name: number, or every line a list of numbers in the log's order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from overexplain._texts import is_unicode
from overexplain.cli.points import BLOCK, Block, PointsFile, bytes_read
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.log.jsonl.formats import parse_json
from overexplain.scale.columns import Raw, listed, matched, positions

_LARGEST = float(np.finfo(np.float64).max)


def read_json_lines(
    file: IO[bytes], path: str, features: tuple[str, ...] | None, dimension: int, raw: Raw | None = None
) -> PointsFile:
    """The points in a file of JSON Lines; what its first line has besides the features is what the file has."""
    lines = ((f"{path}, line {number}", line) for number, line in enumerate(file, 1) if not line.isspace())
    first = next(lines, None)
    if first is None:
        return PointsFile((), iter(()), bytes_read(file))
    entry = _parsed(*first)
    named = isinstance(entry, dict)
    if named and features is None:
        raise InvalidInput(f"{path}: its points have names, the log has none; give every point as a list of numbers")
    if named and (odd := next((name for name in entry if not is_unicode(name)), None)) is not None:
        raise InvalidInput(f"{first[0]}: the name {odd!r} is no Unicode text: it has half of a surrogate pair")
    if raw is not None and named and raw.are_in(entry):
        extras = tuple(name for name in entry if name not in raw.names)
        return PointsFile(extras, _raw_blocks(chain([first], lines), raw, extras), bytes_read(file))
    columns = matched(list(entry), features, dimension, path) if named else positions(dimension, features)
    key = None if columns.key is None else columns.extras[0]
    return PointsFile(columns.extras, _blocks(chain([first], lines), columns.names, named, key), bytes_read(file))


def _raw_blocks(lines: Iterator[tuple[str, bytes]], raw: Raw, extras: tuple[str, ...]) -> Iterator[Block]:
    key = extras[0] if len(extras) == 1 else None
    while block := list(islice(lines, BLOCK)):
        entries = [_parsed(where, line) for where, line in block]
        for (where, _), entry in zip(block, entries, strict=True):
            if not isinstance(entry, dict):
                raise InvalidInput(f"{where}: must be an object, name: value, as all lines of this file")
            if missing := [name for name in raw.names if name not in entry]:
                raise InvalidInput(f"{where}: nothing for {listed(missing)}")
        table = {name: [entry[name] for entry in entries] for name in raw.names}
        places = [where for where, _ in block]
        points = raw.points(table, places.__getitem__, lambda _column, entry, _i: entry)
        yield Block(points, None if key is None else [_text(entry.get(key, "")) for entry in entries])


def _text(value: Any) -> str:
    """The value of a key, as it is written beside the verdict; what no file can hold as JSON writes it."""
    return value if isinstance(value, str) and is_unicode(value) else json.dumps(value)


def _blocks(
    lines: Iterator[tuple[str, bytes]], names: tuple[str, ...], named: bool, key: str | None
) -> Iterator[Block]:
    while block := list(islice(lines, BLOCK)):
        points, keys = [], []
        for where, line in block:
            entry = _parsed(where, line)
            points.append(_point(entry, names, named, where))
            if key is not None:
                keys.append(_text(entry.get(key, "")))
        yield Block(np.array(points, dtype=np.float64), None if key is None else keys)


def _point(entry: Any, names: tuple[str, ...], named: bool, where: str) -> list[float]:
    if not isinstance(entry, dict | list) or isinstance(entry, dict) != named:
        wanted = "an object, name: number" if named else "a list of numbers"
        raise InvalidInput(f"{where}: must be {wanted}, as all lines of this file")
    if isinstance(entry, dict):
        if missing := [name for name in names if name not in entry]:
            raise InvalidInput(f"{where}: nothing for {listed(missing)}")
        entry = [entry[name] for name in names]
    elif len(entry) != len(names):
        raise DimensionMismatch(f"{where}: {len(entry)} numbers, the log has {len(names)} features")
    for name, value in zip(names, entry, strict=True):
        if type(value) is not float and type(value) is not int:  # bool is an int to Python, not to us
            what = "missing" if value is None else f"{json.dumps(value)[:40]}, which is not a number"
            raise InvalidInput(f"{where}: {name!r} is {what}")
        if not abs(value) <= _LARGEST:
            raise NotFinite(f"{where}: {name!r} is too large for a float64")
    return [float(value) for value in entry]


def _parsed(where: str, line: bytes) -> Any:
    try:
        return parse_json(line)
    except NotFinite:
        raise NotFinite(f"{where}: NaN or Infinity; only finite numbers can be used") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{where}: not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{where}: not JSON: {error.msg} at column {error.pos + 1}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
