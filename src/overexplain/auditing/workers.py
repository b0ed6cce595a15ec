"""Processes that share long work, and end with it: also if the end is an error or Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any

from overexplain.errors import InvalidInput


@contextmanager
def process_pool(workers: int | Executor | None) -> Iterator[Executor | None]:
    """So many processes, or the Executor given; None: this process alone."""
    if workers is None or isinstance(workers, Executor):
        yield workers
    elif workers < 1:
        raise InvalidInput(f"workers must be a whole number above 0, an Executor or None, got {workers!r}")
    elif workers == 1:
        yield None
    else:
        # Started anew, not forked: threads of BLAS and numba do not survive a fork.
        before = active_children()
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin)
        try:
            _start(pool, workers)
            yield pool
        except BaseException:
            # What they are at is wanted by nobody any more.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(active_children()) - set(before):
                child.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def one_thread() -> Any:
    """A context in which BLAS keeps to one thread: an audit's matrices are small, threads would only wait for each other."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def _start(pool: Executor, workers: int) -> None:
    """Start all processes, deaf to Ctrl-C from their first moment: the parent ends its workers itself, without a word from them.

    A terminal sends Ctrl-C to every process in it, and a signal that is ignored when a program starts stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set handlers, and only it is interrupted
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for _ in range(workers):
            pool.submit(_begin)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _begin() -> None:
    import numpy  # noqa: F401  limits hold for libraries that are loaded
    import scipy.linalg  # noqa: F401

    one_thread()
