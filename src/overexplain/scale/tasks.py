"""What is done with a part of a data set, the same wherever it runs: in a thread, a process or on a machine far away.

Streaming and clusters know no more of it than this: it has parts, each of which comes to something, or to what was wrong with it.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, Protocol, TypeVar

from overexplain.errors import InvalidInput, NotFinite, OverexplainError, SolverFailed
from overexplain.scale.parts import Dataset, Part

Fault = tuple[str, str]
"""What was wrong with a part's data: the kind of error, by name, and its message."""

KINDS: dict[str, type[OverexplainError]] = {kind.__name__: kind for kind in (NotFinite, InvalidInput, SolverFailed)}

Tell = Callable[[int], None]
Stop = Callable[[], bool]


class Stopped(Exception):
    """Somebody wants the work to end."""


class Outcome(Protocol):
    """What came of a part: its number, its rows, and what was wrong with it, if something was."""

    @property
    def part(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def error(self) -> Fault | None: ...


Came = TypeVar("Came", bound=Outcome, covariant=True)


class Work(Protocol[Came]):
    """What all parts have in common, and what is done with each.

    dataset  the rows
    if_lost  a sentence for whoever loses the machines that are at it: what is kept
    """

    @property
    def dataset(self) -> Dataset: ...
    @property
    def if_lost(self) -> str: ...
    def digest(self, part: Part) -> str: ...
    def do(self, part: Part, tell: Tell, stop: Stop) -> Came: ...
    def failed(self, part: Part, error: Fault) -> Came: ...


def do_part(work: Work[Came], part: Part, tell: Tell = lambda _: None, stop: Stop = lambda: False) -> Came:
    """What came of a part; what is wrong with the data comes back, what is wrong with the machine is raised.

    `tell` is told of rows as they are done; as soon as `stop` says so it ends with Stopped, and nothing of the part is kept.
    """
    try:
        with _one_thread():
            return work.do(part, tell, stop)
    except OverexplainError as error:
        kind = next((name for name, kind in KINDS.items() if isinstance(error, kind)), SolverFailed.__name__)
        return work.failed(part, (kind, str(error)))


def all_rows(dataset: Dataset, part: Part, rows: int) -> None:
    """Raise unless so many rows are those of the part."""
    if rows != part.rows:
        raise InvalidInput(f"{dataset.path}: {rows:,} rows where {part.rows:,} were expected from row {part.first}")


def digest_of(dataset: Dataset, part: Part, version: str) -> str:
    """What a part's result rests on, besides what is done with it: which rows of which files."""
    pieces = [
        (dataset.files[piece.file].name, dataset.files[piece.file].digest, piece.group, piece.skip, piece.rows)
        for piece in dataset.pieces(part.first, part.rows)
    ]
    text = json.dumps([version, part.first, part.rows, pieces])
    return hashlib.sha256(text.encode()).hexdigest()


def in_one_piece(work: Any) -> tuple[Any, ...]:
    """What `__reduce__` of a work's dataclass returns, for it to be sent without arrays beside it.

    Of those Dask makes some that cannot be written to, and for them the loops would be compiled once more, in every worker.
    """
    values = tuple(getattr(work, each.name) for each in fields(work))
    return _unpacked, (type(work), pickle.dumps(values, protocol=5))


def _unpacked(kind: type, packed: bytes) -> Any:
    return kind(*pickle.loads(packed))


_lock = threading.Lock()
_inside: list[Any] = []


@contextmanager
def _one_thread() -> Iterator[None]:
    """Products of matrices on one thread: how many share a sum decides how it is rounded, and what a search then finds.

    The setting is the process's; the last of the threads that are in here puts it back.
    """
    from threadpoolctl import threadpool_limits

    with _lock:
        _inside.append(threadpool_limits(1, user_api="blas") if not _inside else None)
    try:
        yield
    finally:
        with _lock:
            first = _inside[0]
            _inside.pop()
            if not _inside:
                first.restore_original_limits()
