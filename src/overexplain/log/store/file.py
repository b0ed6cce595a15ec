"""How the file of a run is made, opened by one process at a time, read without changing it, and refused if it is no run.

A process that writes holds the file alone (SQLite's exclusive locking; the lock of a killed process is gone with it).
SQLite's locks belong to the process: closing *any* descriptor of the file drops them all. So nothing here opens the file
except SQLite, and a reader goes round SQLite's locks only while there is no `-wal` file, that is while nobody writes.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from overexplain._files import reason
from overexplain.errors import InvalidInput
from overexplain.log.store.schema import APPLICATION, SCHEMA, TABLES, VERSION, tables_expected, tables_in

LARGEST = 2**26
"""Bytes of the largest value in a run's file: a plan, or a point of eight million features."""

_PATIENCE = 2.0
"""Seconds to wait for a file that another process holds for a moment, to read it or to finish with it."""

_WHEN_FULL = "what was stored stays, go on with the run when there is room"

_OLDEST_SQLITE = (3, 37, 0)  # STRICT tables

T = TypeVar("T")


class _InUse(InvalidInput):
    """Another process has the file open."""


class _Connection(sqlite3.Connection):
    """A connection that can be referred to weakly."""


_OPEN: weakref.WeakSet[_Connection] = weakref.WeakSet()


def _never_close() -> None:
    """In a forked child: keep the parent's connections from ever being closed here, which would remove the parent's `-wal`."""
    import ctypes

    for connection in _OPEN:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_never_close)


def create_file(
    path: str | os.PathLike[str], tables: Mapping[str, Sequence[tuple[Any, ...]]]
) -> tuple[Path, sqlite3.Connection]:
    """The real path and the connection of a new file with a run's tables and these rows, all or nothing."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise InvalidInput(f"runs need SQLite 3.37 or newer, Python has {sqlite3.sqlite_version}; use a newer Python")
    place = _real(path, of_parent=True)
    beside = [name for name in (_beside(place, "-wal"), _beside(place, "-journal")) if os.path.lexists(name)]
    if beside:
        raise InvalidInput(
            f"{path}: there is a {beside[0].name} beside it, left by another run; remove it or choose another name"
        )
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already; go on with it (resume) or choose another name") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be made: {reason(error)}") from None
    made = os.fstat(descriptor).st_ino
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask takes away
    finally:
        os.close(descriptor)
    connection = None
    try:
        with translated(path, "nothing was stored or sent, and no file is left; start again when there is room"):
            connection = _connect(place, "mode=rw")
            _for_writing(connection)
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for table, rows in tables.items():
                if rows:
                    connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a copy of the file alone is a run from now on
        _sync_folder(place.parent)
    except BaseException:
        if connection is not None:
            connection.close()
        with suppress(OSError):
            if place.stat().st_ino == made:
                place.unlink()
        raise
    return place, connection


def open_file(path: str | os.PathLike[str]) -> tuple[Path, sqlite3.Connection]:
    """The real path and the only connection to a run's file, to go on writing to it."""
    place = _real(path)
    if not os.access(place, os.W_OK):
        raise InvalidInput(f"{path} may not be written by this user; it can only be read")
    return place, _patiently(lambda: _opened(place, path))


def read_file(path: str | os.PathLike[str], work: Callable[[sqlite3.Connection], T]) -> T:
    """What `work` makes of a run's file that nobody writes to; only what a killed process left beside it is taken in."""
    place = _real(path)

    def attempt() -> T:
        if _beside(place, "-wal").exists():
            return _read_left_open(place, path, work)
        before = _state(place)
        try:
            with translated(path), closing(_connect(place, "mode=ro&immutable=1")) as connection:
                check(connection, path)
                result = work(connection)
        except InvalidInput:
            if _state(place) != before:
                raise _in_use(path) from None
            raise
        if _state(place) != before:
            raise _in_use(path)
        return result

    return _patiently(attempt)


def check(connection: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
    """Raise InvalidInput unless the file is a run, whole and of this version."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = tables_in(connection)
    if application == version == 0 and not tables:
        raise InvalidInput(f"{path} is not a finished run: nothing was asked yet; remove it and start again")
    if application != APPLICATION:
        raise InvalidInput(f"{path} is an SQLite file of another program, not a run")
    if version > VERSION:
        raise InvalidInput(f"{path} is a run of format {version}, this overexplain reads up to {VERSION}; update it")
    if version != VERSION or tables != tables_expected():
        raise InvalidInput(f"{path} is damaged: it has not the tables of a run")
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise InvalidInput(f"{path} is damaged: {_line(found)}")
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise InvalidInput(f"{path} is damaged: a row refers to one that is not there")
    for table in TABLES:
        rows, last = connection.execute(f"SELECT count(*), coalesce(max(number), 0) FROM {table}").fetchone()
        if rows != last or (table in ("run", "allowed") and not rows):
            raise InvalidInput(f"{path} is damaged: rows of {table} are missing")


@contextmanager
def translated(path: str | os.PathLike[str], when_full: str = _WHEN_FULL) -> Iterator[None]:
    """A block in which errors of SQLite become our own: InvalidInput for the file, OSError for the disk.

    `when_full` says what is there if the disk is full, and what to do.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _own_error(error, path, when_full) from None
    except (UnicodeError, OverflowError) as error:
        raise InvalidInput(f"{path} is damaged: {_line(error)}") from None


def _own_error(error: sqlite3.Error, path: str | os.PathLike[str], when_full: str) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0)
    kind = code & 0xFF
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return _in_use(path)
    if kind == sqlite3.SQLITE_NOTADB:
        return InvalidInput(f"{path} is not a run: it is no SQLite file")
    if kind == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, f"the disk is full; {when_full}", str(path))
    if kind == sqlite3.SQLITE_READONLY:
        return OSError(errno.EROFS, "it or its folder may not be written", str(path))
    if kind == sqlite3.SQLITE_CANTOPEN:
        return InvalidInput(f"{path} cannot be opened: the file, or one beside it in its folder, is not accessible")
    if kind == sqlite3.SQLITE_IOERR and code != sqlite3.SQLITE_IOERR_SHORT_READ:
        return OSError(errno.EIO, f"the disk failed ({getattr(error, 'sqlite_errorname', 'SQLITE_IOERR')})", str(path))
    return InvalidInput(f"{path} is damaged: {_line(error)}")


def _in_use(path: str | os.PathLike[str]) -> _InUse:
    return _InUse(f"{path} is in use by another process; wait until it ends, or stop it")


def _opened(place: Path, path: str | os.PathLike[str]) -> sqlite3.Connection:
    with translated(path):
        connection = _connect(place, "mode=rw")
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            check(connection, path)
            _for_writing(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _read_left_open(place: Path, path: str | os.PathLike[str], work: Callable[[sqlite3.Connection], T]) -> T:
    """Read with what is still in the `-wal` of a process that was killed; where allowed, closing tidies it up."""
    writable = os.access(place, os.W_OK) and os.access(place.parent, os.W_OK)
    with translated(path), closing(_connect(place, "mode=rw" if writable else "mode=ro")) as connection:
        connection.execute("PRAGMA query_only = ON")
        if writable:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        else:
            _first_look(connection, path)
        check(connection, path)
        return work(connection)


def _first_look(connection: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        raise InvalidInput(
            f"{path} was left open by a process that was killed, and this user may not tidy up there; copy it, with the -wal "
            "file beside it, to a folder of your own"
        ) from None


def _connect(place: Path, how: str) -> _Connection:
    address = f"file:{quote(os.fsencode(place))}?{how}"
    connection = sqlite3.connect(address, uri=True, timeout=0.0, isolation_level=None, factory=_Connection)
    _OPEN.add(connection)
    # The file may come from anywhere: believe no schema, and no lengths.
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + 1_000_000)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "temp_store = MEMORY",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _for_writing(connection: sqlite3.Connection) -> None:
    """Exclusive before the first look at a `-wal`; every commit waits for the disk."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA synchronous = FULL")
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise sqlite3.OperationalError(f"no write-ahead log is possible here, only {mode}")


def _patiently(attempt: Callable[[], T]) -> T:
    """What `attempt` gives, tried again for a short while as long as another process has the file."""
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            return attempt()
        except _InUse as error:
            if time.monotonic() >= last:
                raise InvalidInput(str(error)) from None
            # Two that start at once can keep each other out: they must not wait equally long, so the system's own chance decides.
            time.sleep(0.005 + secrets.randbelow(75) / 1000)


def _real(path: str | os.PathLike[str], of_parent: bool = False) -> Path:
    """The path with links resolved (`of_parent`: of its folder only) of a regular file, or of one to be made."""
    try:
        given = Path(os.fsdecode(path))
        if of_parent:
            return Path(os.path.realpath(given.parent)) / given.name
        place = Path(os.path.realpath(given))
        mode = place.stat().st_mode
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be opened: {reason(error)}") from None
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is not a file")
    return place


def _beside(place: Path, suffix: str) -> Path:
    return place.with_name(place.name + suffix)


def _state(place: Path) -> tuple[int, ...]:
    """What changes when somebody writes to the file."""
    try:
        found = place.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, int(_beside(place, "-wal").exists())


def _sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's new entry."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(text: object) -> str:
    return " ".join(str(text).split())[:200]
