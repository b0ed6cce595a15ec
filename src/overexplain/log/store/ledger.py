"""A run's file in the hands of the one process that writes to it: what is committed and what is counted never differ."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import final

from overexplain.errors import InvalidInput
from overexplain.log.store.file import translated
from overexplain.log.store.rows import Counts, Header, read_counts


@final
class Ledger:
    """The connection to a run's file (None: everything was read, nothing can be written) and how far the run has come."""

    def __init__(self, path: Path, connection: sqlite3.Connection | None, header: Header, counts: Counts) -> None:
        self.path, self.header, self.counts = path, header, counts
        self._connection = connection
        self._to_read = connection is None
        self._process = os.getpid()
        # Refusals that ended the work of whoever had the run before: they are asked again.
        found = () if connection is None else connection.execute("SELECT answer FROM given_up").fetchall()
        self.given_up = frozenset(answer for (answer,) in found)

    @property
    def spent(self) -> int:
        """What the requests so far cost."""
        return self.counts.questions if self.header.idempotent else self.counts.intents

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection; InvalidInput if it may not be used (any more, or here)."""
        if self._to_read:
            raise InvalidInput(f"{self.path} was opened to read; to ask, open it with Run.open")
        if self._connection is None:
            raise InvalidInput(f"{self.path}: the run is closed; open it again")
        if os.getpid() != self._process:
            raise InvalidInput(f"{self.path} is in use by the process that opened it; this one is its fork")
        return self._connection

    @contextmanager
    def durable(self) -> Iterator[tuple[sqlite3.Connection, Counts]]:
        """A transaction; the block commits it, then counts. Whatever interrupts that, the counts say what the file says.

        What is committed is moved into the file itself before anything depends on it: a run that is moved or copied after a
        kill, without the `-wal` beside it, knows of every request that was sent.
        """
        connection = self.connection
        try:
            with naming(self.path):
                connection.execute("BEGIN IMMEDIATE")
                yield connection, self.counts
                connection.execute("PRAGMA wal_checkpoint(FULL)")
        except BaseException:
            with suppress(sqlite3.Error, InvalidInput):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self.counts = read_counts(connection)
            raise

    def give_up(self, answer: int) -> None:
        """Write down that this refusal ended the work."""
        if answer not in self.given_up:
            with self.durable() as (connection, _):
                row = "SELECT coalesce(max(number), 0) + 1, ?, ? FROM given_up"
                connection.execute(f"INSERT INTO given_up {row}", (answer, time.time()))
                connection.execute("COMMIT")

    def close(self) -> None:
        """Let go of the file; a fork leaves it to its parent."""
        connection, self._connection = self._connection, None
        if connection is not None and os.getpid() == self._process:
            with translated(self.path):
                connection.close()


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """A block whose errors are our own and say which file they are about."""
    try:
        with translated(path):
            yield
    except InvalidInput as error:
        if str(path) in str(error):
            raise
        raise InvalidInput(f"{path} is damaged: {error}") from None
