"""Rows of a run's file as values: every one is checked against its digest, so that a flipped bit is never taken for an answer."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import chain
from typing import Any, Literal, final

import numpy as np

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.log.rows import Status, feature_names
from overexplain.log.store.file import LARGEST
from overexplain.log.store.schema import ANSWERED, COUNTED, SUPERSEDED, UNANSWERED
from overexplain.log.tables.joined import joined, like

Verb = Literal["classify", "explain"]
Kind = Literal["label", "explanation", "none", "refused"]
KINDS: dict[str, tuple[Kind, ...]] = {"classify": ("label", "refused"), "explain": ("explanation", "none", "refused")}
"""What can come of a question, by its verb."""

_LONGEST_TEXT = 2000
_BLOCK = 4096
_STATUS = {"label": Status.NOT_ASKED, "explanation": Status.ASKED, "none": Status.NONE, "refused": Status.FAILED}


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """What a question brought: a label, an explanation, the word that there is none, or a refusal (`detail` says why)."""

    kind: Kind
    label: int | None = None
    explanation: FloatArray | None = None
    detail: str = ""


@final
@dataclass(frozen=True, eq=False)
class Sent:
    """A request that was, or was about to be, sent when its process ended: nobody knows what came of it."""

    number: int
    verb: Verb
    point: FloatArray
    key: str
    time: float


@final
@dataclass(frozen=True)
class Header:
    """What a run is, as it was made."""

    id: str
    plan: dict[str, Any]
    dimension: int
    features: tuple[str, ...] | None
    mechanism: Mechanism | None
    idempotent: bool


@final
@dataclass
class Counts:
    """How far a run has come; the numbers are those of the last rows."""

    budget: int
    budgets: int
    questions: int
    intents: int
    failures: int
    answers: int
    answered: int
    retries: int
    last_sent: float | None
    not_before: float


def digest(*parts: object) -> bytes:
    """16 bytes that stand for the parts, bytes or what `str` says of them, in this order."""
    total = blake2b(digest_size=16)
    for part in parts:
        value = part if isinstance(part, bytes) else str(part).encode()
        total.update(b"%d:" % len(value))
        total.update(value)
    return total.digest()


def question_hash(verb: str, point: bytes, occurrence: int) -> bytes:
    """32 bytes that stand for the question; asked for the same point again, it is another one."""
    return sha256(b"%s:%d:%s" % (verb.encode(), occurrence, point)).digest()


def question_key(run: str, question: bytes) -> str:
    """What the service may know the question by: tells nothing about it, and differs from run to run."""
    return sha256(run.encode() + question).hexdigest()


def answer_digest(
    question: bytes, number: int, intent: int, outcome: tuple[str, int | None, bytes | None, str]
) -> bytes:
    """16 bytes that stand for an answer (kind, label, explanation, detail) and tie it to its question and request."""
    kind, label, explanation, detail = outcome
    blob = b"" if explanation is None else explanation
    start = b"%d:%d:%s:%d:%d:" % (number, intent, kind.encode(), label or 0, len(blob))
    return blake2b(b"".join((question, start, blob, detail.encode())), digest_size=16).digest()


def stored_text(text: object) -> str:
    """Any text as one that SQLite takes, not too long."""
    return str(text)[:_LONGEST_TEXT].encode("utf-8", "backslashreplace").decode()


def stored_outcome(outcome: Outcome, verb: str, dimension: int) -> tuple[str, int | None, bytes | None, str]:
    """Kind, label, explanation and detail as they are stored, if the outcome can be one of this verb."""
    if outcome.kind not in KINDS[verb]:
        raise InvalidInput(f"{verb} brings {', '.join(KINDS[verb])}; not {outcome.kind!r}")
    label, explanation = outcome.label, outcome.explanation
    if (label in (-1, 1)) != (outcome.kind == "label") or (label is None) == (outcome.kind == "label"):
        raise InvalidInput(f"a label, and nothing else, has label -1 or +1; {outcome.kind!r} came with {label!r}")
    if (explanation is not None) != (outcome.kind == "explanation"):
        raise InvalidInput(f"an explanation, and nothing else, has a point; not so: {outcome.kind!r}")
    blob = None if explanation is None else point_bytes(explanation, dimension, "explanation")
    return outcome.kind, None if label is None else int(label), blob, stored_text(outcome.detail)


def point_bytes(x: Any, dimension: int, name: str = "x") -> bytes:
    """A finite point as it is stored, bit for bit."""
    return as_point(x, dimension, name).astype("<f8").tobytes()


def stored_point(blob: bytes, dimension: int) -> FloatArray:
    """The point that was stored; writable, a copy of its own."""
    if len(blob) != 8 * dimension:
        raise InvalidInput(f"a point has {len(blob)} bytes, {8 * dimension} belong to {dimension} features")
    return as_point(np.frombuffer(blob, dtype="<f8").astype(np.float64), dimension, "a stored point")


def read_outcome(row: Sequence[Any], question: bytes, dimension: int) -> Outcome:
    """The outcome in a row of `LAST_ANSWER`."""
    number, intent, kind, label, explanation, detail, kept = row
    if kept != answer_digest(question, number, intent, (kind, label, explanation, detail)):
        raise InvalidInput(f"answer {number} is not what was stored")
    return Outcome(kind, label, None if explanation is None else stored_point(explanation, dimension), detail)


def as_json(value: Any, name: str) -> str:
    """The value as JSON text."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the {name} must be JSON: {error}") from None
    if len(text) > LARGEST // 4:
        raise InvalidInput(f"the {name} takes {len(text)} bytes, at most {LARGEST // 4} can be stored")
    return text


def header_row(run: str, plan: Mapping[str, Any], entries: tuple[Any, ...], time: float) -> tuple[Any, ...]:
    """The row of the table `run`; `entries`: dimension, features, mechanism, idempotent."""
    dimension, features, mechanism, idempotent = entries
    names = None if features is None else as_json(list(features), "list of features")
    terms = None if mechanism is None else as_json(mechanism.to_dict(), "mechanism")
    row = (1, run, as_json(dict(plan), "plan"), dimension, names, terms, int(idempotent), time)
    return (*row, digest(*row))


def read_header(connection: sqlite3.Connection) -> Header:
    """What the run is."""
    *row, kept = connection.execute("SELECT * FROM run").fetchone()
    if kept != digest(*row):
        raise InvalidInput("what it says of itself is not what was stored")
    _, run, plan, dimension, names, terms, idempotent, _ = row
    features = None if names is None else feature_names(_from_json(names, list))
    mechanism = None if terms is None else Mechanism.from_dict(_from_json(terms, dict))
    entries = _from_json(plan, dict)
    if not 1 <= dimension <= LARGEST // 8 or (features is not None and len(features) != dimension):
        raise InvalidInput(f"{dimension} features cannot be")
    if mechanism is not None:
        mechanism.fits(dimension)
    for table, column in (("question", "point"), ("answer", "explanation")):
        asked = f"SELECT number FROM {table} WHERE length({column}) <> ? LIMIT 1"  # NULL is not other than anything
        if (wrong := connection.execute(asked, (8 * dimension,)).fetchone()) is not None:
            raise InvalidInput(f"{table} {wrong[0]} has not {dimension} numbers")
    return Header(run, entries, dimension, features, mechanism, bool(idempotent))


def read_counts(connection: sqlite3.Connection) -> Counts:
    """How far the run has come."""
    for number, budget, time, kept in connection.execute("SELECT number, budget, time, digest FROM allowed"):
        if kept != digest(number, budget, time):
            raise InvalidInput(f"budget {number} is not what was stored")
    counts = Counts(*connection.execute(COUNTED).fetchone())
    if not all(math.isfinite(when) for when in (counts.last_sent or 0.0, counts.not_before)):
        raise InvalidInput("a time in it is infinite")
    return counts


def read_unanswered(connection: sqlite3.Connection, header: Header) -> tuple[Sent, ...]:
    """The requests of which nobody knows what came."""
    return tuple(
        Sent(number, row[0], _asked(question, row, header.dimension), question_key(header.id, question), when)
        for number, when, question, *row in connection.execute(UNANSWERED)
    )


def read_log(connection: sqlite3.Connection, header: Header) -> QueryLog:
    """The answers that count, in order of sending."""
    empty = QueryLog(header.features, header.mechanism)
    if empty.dimension is None:
        empty._set_dimension(header.dimension)
    return joined(chain([empty], _log_blocks(connection, header, empty)))


def _log_blocks(connection: sqlite3.Connection, header: Header, empty: QueryLog) -> Iterator[QueryLog]:
    """The answers that count, some at a time."""
    passed = {number for (number,) in connection.execute(SUPERSEDED)}
    for rows in _blocks(connection.execute(ANSWERED)):
        chosen = [row for row in rows if row[0] not in passed and not (row[7] == "refused" and row[4] == "classify")]
        if not chosen:
            continue
        log = like(empty)
        columns = list(zip(*chosen, strict=True))
        points, kinds = _matrix(columns[6], header.dimension), columns[7]
        explanations = np.full(points.shape, np.nan)
        explained = np.array([kind == "explanation" for kind in kinds])
        if explained.any():
            explanations[explained] = _matrix([blob for blob in columns[9] if blob is not None], header.dimension)
        status = np.array([_STATUS[kind] for kind in kinds], dtype=np.int8)
        asked = status != Status.NOT_ASKED
        numbers = np.where(asked, log._table.id_of(header.mechanism) if asked.any() else -1, -1)
        labels = [0 if label is None else label for label in columns[8]]
        times = np.array(columns[2], dtype=np.float64)
        if not np.isfinite(times).all():
            raise InvalidInput("a time in it is infinite")
        log._append(points, labels, explanations, status, numbers, None, times, f"run {header.id[:8]}")
        yield log


def _blocks(cursor: sqlite3.Cursor) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of `ANSWERED`, some at a time, each as it was stored."""
    while rows := cursor.fetchmany(_BLOCK):
        for number, intent, _, question, verb, occurrence, point, kind, label, explanation, detail, kept in rows:
            if question != question_hash(verb, point, occurrence):
                raise InvalidInput(f"the question of answer {number} is not what was stored")
            if kept != answer_digest(question, number, intent, (kind, label, explanation, detail)):
                raise InvalidInput(f"answer {number} is not what was stored")
            # SQLite does not look at CHECK constraints in a file that it may only read.
            if (
                kind not in KINDS.get(verb, ())
                or (label in (-1, 1)) != (kind == "label")
                or (explanation is not None) != (kind == "explanation")
            ):
                raise InvalidInput(f"answer {number} is {kind} with label {label}: no answer to {verb}")
        yield rows


def _asked(question: bytes, row: Sequence[Any], dimension: int) -> FloatArray:
    verb, occurrence, point = row
    if verb not in KINDS or question != question_hash(verb, point, occurrence):
        raise InvalidInput("a question in it is not what was stored")
    return stored_point(point, dimension)


def _matrix(blobs: Sequence[bytes], dimension: int) -> FloatArray:
    values = np.frombuffer(b"".join(blobs), dtype="<f8").astype(np.float64).reshape(len(blobs), dimension)
    if not np.isfinite(values).all():
        raise InvalidInput("a number in it is NaN or infinite")
    return values


def _from_json(text: str, kind: type) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}") from None
    if not isinstance(value, kind):
        raise InvalidInput(f"not a JSON {kind.__name__}: {text[:40]}")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
