"""The tables of a run's file, and the promises that the file keeps by itself.

    run       one row: what the run is          allowed  the budgets, the last one counts
    question  what was asked, once each         intent   every request, written before it is sent
    failure   a request that brought nothing    answer   what a request brought, written before it is used
    given_up  a refusal that ended the work: whoever goes on asks again

Rows are numbered 1, 2, 3, … without gaps and never changed or removed; an intent over the budget is refused. Triggers see
to that, so that no other program does otherwise by accident. Numbers are float64, little-endian.
"""

from __future__ import annotations

import sqlite3
from functools import cache

APPLICATION = 0x6F786C67
"""What SQLite calls the application id: says that a file is a run."""

VERSION = 1

TABLES = ("run", "allowed", "question", "intent", "failure", "answer", "given_up")

_CREATE = (
    """CREATE TABLE run (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    id TEXT NOT NULL CHECK (length(id) = 32),
    plan TEXT NOT NULL,
    dimension INTEGER NOT NULL CHECK (dimension >= 1),
    features TEXT,
    mechanism TEXT,
    idempotent INTEGER NOT NULL CHECK (idempotent IN (0, 1)),
    time REAL NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 16)
) STRICT""",
    """CREATE TABLE allowed (
    number INTEGER PRIMARY KEY,
    budget INTEGER NOT NULL CHECK (budget >= 0),
    time REAL NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 16)
) STRICT""",
    """CREATE TABLE question (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    verb TEXT NOT NULL CHECK (verb IN ('classify', 'explain')),
    occurrence INTEGER NOT NULL CHECK (occurrence >= 0),
    point BLOB NOT NULL CHECK (length(point) > 0 AND length(point) % 8 = 0)
) STRICT""",
    """CREATE TABLE intent (
    number INTEGER PRIMARY KEY,
    question INTEGER NOT NULL REFERENCES question,
    time REAL NOT NULL
) STRICT""",
    "CREATE INDEX intent_of_question ON intent (question)",
    """CREATE TABLE failure (
    number INTEGER PRIMARY KEY,
    intent INTEGER NOT NULL UNIQUE REFERENCES intent,
    reason TEXT NOT NULL,
    until REAL,
    time REAL NOT NULL
) STRICT""",
    """CREATE TABLE answer (
    number INTEGER PRIMARY KEY,
    intent INTEGER NOT NULL UNIQUE REFERENCES intent,
    kind TEXT NOT NULL CHECK (kind IN ('label', 'explanation', 'none', 'refused')),
    label INTEGER,
    explanation BLOB,
    detail TEXT NOT NULL,
    time REAL NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 16),
    CHECK ((kind = 'label') = (label IS NOT NULL) AND (label IS NULL OR label IN (-1, 1))),
    CHECK ((kind = 'explanation') = (explanation IS NOT NULL))
) STRICT""",
    """CREATE TABLE given_up (
    number INTEGER PRIMARY KEY,
    answer INTEGER NOT NULL UNIQUE REFERENCES answer,
    time REAL NOT NULL
) STRICT""",
)

_APPEND_ONLY = """CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} BEGIN
    SELECT RAISE(ABORT, 'a run is append-only');
END"""

# A row that replaces another (INSERT OR REPLACE) fires no DELETE trigger, but it would not be the next one either.
_IN_ORDER = """CREATE TRIGGER {table}_in_order BEFORE INSERT ON {table}
WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM {table}) BEGIN
    SELECT RAISE(ABORT, 'rows are numbered in order');
END"""

_ONCE = """CREATE TRIGGER {table}_once BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {column} = NEW.{column}) BEGIN
    SELECT RAISE(ABORT, 'a run is append-only');
END"""

# Every question has an intent, so the number of the last question is how many distinct ones were sent.
_WITHIN_BUDGET = """CREATE TRIGGER intent_within_budget BEFORE INSERT ON intent
WHEN (SELECT CASE idempotent WHEN 1 THEN (SELECT max(number) FROM question) ELSE NEW.number END FROM run)
    > (SELECT budget FROM allowed ORDER BY number DESC LIMIT 1) BEGIN
    SELECT RAISE(ABORT, 'over budget');
END"""

SCHEMA = (
    *_CREATE,
    *(_APPEND_ONLY.format(table=table, verb=verb) for table in TABLES for verb in ("UPDATE", "DELETE")),
    *(_IN_ORDER.format(table=table) for table in TABLES),
    *(_ONCE.format(table=table, column=column) for table, column in (("question", "hash"), ("failure", "intent"))),
    *(_ONCE.format(table=table, column=column) for table, column in (("answer", "intent"), ("given_up", "answer"))),
    _WITHIN_BUDGET,
)

_LISTED = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"

# What a run says of itself when it is opened; every figure of `Counts`, in its order.
COUNTED = """SELECT
    (SELECT budget FROM allowed ORDER BY number DESC LIMIT 1),
    (SELECT max(number) FROM allowed),
    (SELECT coalesce(max(number), 0) FROM question),
    (SELECT coalesce(max(number), 0) FROM intent),
    (SELECT coalesce(max(number), 0) FROM failure),
    (SELECT coalesce(max(number), 0) FROM answer),
    (SELECT count(DISTINCT question) FROM answer JOIN intent ON intent.number = answer.intent),
    (SELECT count(*) FROM failure WHERE intent NOT IN (SELECT intent FROM answer))
        + (SELECT count(*) FROM intent AS lost
            WHERE NOT EXISTS (SELECT 1 FROM answer WHERE intent = lost.number)
            AND NOT EXISTS (SELECT 1 FROM failure WHERE intent = lost.number)
            AND EXISTS (SELECT 1 FROM intent AS later WHERE later.question = lost.question AND later.number > lost.number)),
    (SELECT time FROM intent ORDER BY number DESC LIMIT 1),
    (SELECT coalesce(max(until), 0.0) FROM failure)"""

LAST_ANSWER = """SELECT answer.number, intent, kind, label, explanation, detail, digest
FROM answer JOIN intent ON intent.number = answer.intent
WHERE question = ? ORDER BY answer.number DESC LIMIT 1"""

LAST_INTENT = """SELECT intent.number,
    EXISTS (SELECT 1 FROM answer WHERE intent = intent.number) OR EXISTS (SELECT 1 FROM failure WHERE intent = intent.number)
FROM intent WHERE question = ? ORDER BY intent.number DESC LIMIT 1"""

# An earlier answer to a question that was asked again under the same hash does not count.
SUPERSEDED = """SELECT answer.number FROM answer JOIN intent ON intent.number = answer.intent WHERE question IN (
    SELECT question FROM answer JOIN intent ON intent.number = answer.intent GROUP BY question HAVING count(*) > 1)
AND EXISTS (SELECT 1 FROM answer AS later JOIN intent AS sent ON sent.number = later.intent
    WHERE sent.question = intent.question AND later.number > answer.number)"""

ANSWERED = """SELECT answer.number, intent.number, intent.time, hash, verb, occurrence, point,
    kind, label, explanation, detail, digest
FROM answer JOIN intent ON intent.number = answer.intent JOIN question ON question.number = intent.question
ORDER BY intent.number"""

UNANSWERED = """SELECT intent.number, intent.time, hash, verb, occurrence, point
FROM intent JOIN question ON question.number = intent.question
WHERE NOT EXISTS (SELECT 1 FROM answer WHERE intent = intent.number)
AND NOT EXISTS (SELECT 1 FROM failure WHERE intent = intent.number)
ORDER BY intent.number"""


def tables_in(connection: sqlite3.Connection) -> list[tuple[str, str, str, str | None]]:
    """Everything that the file's schema defines, with its SQL."""
    return connection.execute(_LISTED).fetchall()


@cache
def tables_expected() -> list[tuple[str, str, str, str | None]]:
    """What `tables_in` gives for a run's file."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in SCHEMA:
            connection.execute(statement)
        return tables_in(connection)
    finally:
        connection.close()
