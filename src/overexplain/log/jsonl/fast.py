"""The lines of many rows at once, read and written by a compiled parser, wherever that is certain to be the same.

The careful reader in `formats` says what a log file is, and what is wrong with one. Here lines are decoded against a type
that accepts less than it does: no `null`, no number that is not finite, no unknown key. What is left to see is done on whole
columns, and whatever fails there goes to the careful reader, line by line. One thing no type can see: a key that comes twice.
Every key and every text takes two quotation marks, so that rows without such a key have exactly as many marks as they have
keys and texts, or more if a text contains one; rows with more are read carefully, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from overexplain.geometry.arrays import FloatArray
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status

CODES = {None: -1} | {status.text: int(status) for status in Status}

# What a line does not say gets a value that no line can say.
_ROW = msgspec.defstruct(
    "_ROW",
    [
        ("x", list[float]),
        ("y", Literal[1, -1], 0),
        ("cf", list[float], None),
        ("status", Literal["not-asked", "asked", "none", "failed"], None),
        ("m", Annotated[int, msgspec.Meta(ge=0)], -1),
        ("client", str, None),
        ("t", float, math.nan),
        ("source", str, None),
    ],
    forbid_unknown_fields=True,
    gc=False,
)
_decode = msgspec.json.Decoder(_ROW).decode

SAME_FROM, SAME_BELOW = 1e-4, 1e16
"""Between these both encoders write the same digits in the same way; outside, one of them writes other exponents."""


def plain_rows(lines: Sequence[bytes], start: int) -> list[Any]:
    """The rows in the lines from `start` on, up to the first line that is no plain row."""
    rows: list[Any] = []
    take, decode = rows.append, _decode
    try:
        for i in range(start, len(lines)):
            take(decode(lines[i]))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    return rows


def plain_columns(rows: Sequence[Any], marks: int, dimension: int, mechanisms: int) -> tuple[Any, ...] | None:
    """The columns of these rows, in the order of `QueryLog._append` (mechanisms by their number in the file).

    None if anything needs a closer look. `marks` is the number of quotation marks in the lines.
    """
    points = [row.x for row in rows]
    labels = [row.y for row in rows]
    answers = [row.cf for row in rows]
    statuses = [row.status for row in rows]
    numbers = [row.m for row in rows]
    clients = [row.client for row in rows]
    times = [row.t for row in rows]
    sources = [row.source for row in rows]
    count = len(rows)
    texts = 3 * count - statuses.count(None) - clients.count(None) - sources.count(None)
    given = [answer for answer in answers if answer is not None]
    seconds = np.array(times)
    timed = int(np.count_nonzero(~np.isnan(seconds)))
    keys = 3 * count - labels.count(0) - numbers.count(-1) + len(given) + timed  # besides those of texts
    if marks != 2 * (keys + 2 * texts):
        return None
    if set(map(len, points)) != {dimension} or not set(map(len, given)) <= {dimension} or max(numbers) >= mechanisms:
        return None
    came = np.array([answer is not None for answer in answers])
    codes = np.array([CODES[status] for status in statuses])
    if ((codes >= 0) & ((codes == Status.ASKED) != came)).any():
        return None
    codes = np.where(codes >= 0, codes, np.where(came, Status.ASKED, Status.NOT_ASKED))
    explanations = np.full((count, dimension), np.nan)
    explanations[came] = _array(given, dimension)
    return _array(points, dimension), labels, explanations, codes, numbers, clients, seconds, sources


def _array(rows: list[list[float]], dimension: int) -> FloatArray:
    count = len(rows) * dimension
    return np.fromiter(chain.from_iterable(rows), np.float64, count).reshape(len(rows), dimension)


def lines_of(
    log: QueryLog,
    start: int,
    stop: int,
    numbers: Sequence[int],
    defined: Mapping[int, str],
    encode: Callable[[Any], str],
) -> str:
    """The lines of some rows; `numbers[i]` is what the file calls the log's mechanism i.

    `defined` has what goes before a row, counted from `start`. `encode` writes what the compiled encoder does not.
    """
    rows = slice(start, stop)
    status, ids = log.status[rows], log.mechanism_ids[rows]
    came = status == Status.ASKED
    answers = np.array(["" if code == 0 else f', "status": "{Status(code).text}"' for code in range(4)], object)[status]
    answers[came] = [f', "cf": {text}' for text in number_texts(log.explanations[rows][came], encode)]
    labels = np.array(["", ', "y": 1', ', "y": -1'], object)[log.labels[rows]]
    terms = np.array([*(f', "m": {number}' for number in numbers), ""], object)[ids]
    clients, sources = (
        _texts(f', "{key}": ', column[rows], encode)
        for key, column in (("client", log.clients), ("source", log.sources))
    )
    times = ["" if math.isnan(time) else f', "t": {time!r}' for time in log.times[rows].tolist()]
    points = number_texts(log.points[rows], encode)
    columns = zip(points, labels, answers, terms, clients, times, sources, strict=True)
    lines = [f'{{"x": {x}{y}{cf}{m}{client}{t}{source}}}\n' for x, y, cf, m, client, t, source in columns]
    for row, text in defined.items():
        lines[row] = text + lines[row]
    return "".join(lines)


def number_texts(rows: FloatArray, encode: Callable[[Any], str]) -> list[str]:
    """Every row as the text of a JSON list, digit for digit what `encode` makes of it; of a column, every number."""
    if not len(rows):
        return []
    size = np.abs(rows)
    same = ((size >= SAME_FROM) & (size < SAME_BELOW)) | (size == 0)
    text = msgspec.json.encode(rows.tolist()).decode("ascii")
    if rows.ndim == 1:
        found = text[1:-1].split(",")
    else:
        found = [f"[{entries}]" for entries in text[2:-2].replace(",", ", ").split("], [")]
        same = same.all(axis=1)
    for i in np.flatnonzero(~same).tolist():
        found[i] = encode(rows[i].tolist())
    return found


def _texts(key: str, column: Any, encode: Callable[[Any], str]) -> list[str]:
    """The entries of a text column; nothing where it has a gap."""
    known: dict[str | None, str] = {None: ""}
    for text in column:
        if text not in known:
            known[text] = key + encode(text)
    return [known[text] for text in column]
