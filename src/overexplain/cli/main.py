"""`main`: runs a command, and turns whatever goes wrong into one line and an exit code.

::

    0 it ran                 3 input refused, or a file cannot be written     7 a proof failed its check
    1 a gate failed          4 inconsistent log                               8 extraction or solver failed
    2 wrong usage            5 endpoint failed      6 budget exhausted      130 interrupted     141 output pipe closed
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from overexplain.errors import (
    OUT_OF_MEMORY,
    BudgetExhausted,
    CertificateInvalid,
    EndpointFailed,
    InconsistentLog,
    InvalidInput,
    OverexplainError,
)

_LIKE_CTRL_C = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
GATE_FAILED, USAGE, REFUSED, FAILED, INTERRUPTED, UNREAD = 1, 2, 3, 8, 130, 141
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (InvalidInput, REFUSED),
    (OSError, REFUSED),
    (InconsistentLog, 4),
    (EndpointFailed, 5),
    (BudgetExhausted, 6),
    (CertificateInvalid, 7),
    (OverexplainError, FAILED),
)


def main() -> None:
    """Run the command line and leave with its exit code."""
    _open_closed_streams()
    code = run(sys.argv[1:])
    if code == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever presses Ctrl-C twice is told once
    sys.exit(code)


def _open_closed_streams() -> None:
    """Send to nowhere what goes to a stream that a shell closed (`>&-`); else the next file opened would be taken for it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(nowhere, "w" if number else "r", encoding="utf-8"))


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command line; what it has to say is on stdout, what went wrong on stderr."""
    with _interrupted_by_signals():
        return _run(arguments)


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP are Ctrl-C meanwhile, so that no unfinished file stays; who ignores or handles them goes on doing so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = [number for number in _LIKE_CTRL_C if signal.getsignal(number) == signal.SIG_DFL]
    for number in mine:
        signal.signal(number, signal.default_int_handler)
    before = sys.unraisablehook

    def once_more(lost: Any) -> None:
        """An interrupt that came while a destructor or a callback ran was dropped there: have it come again."""
        if lost.exc_type is KeyboardInterrupt:
            threading.Timer(0.05, _thread.interrupt_main, (signal.SIGTERM,)).start()
        else:
            before(lost)

    sys.unraisablehook = once_more
    try:
        yield
    finally:
        sys.unraisablehook = before
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


def _run(arguments: Sequence[str]) -> int:
    try:
        # Imported here and not above: from the first moment on, Ctrl-C is met with one line.
        from overexplain.cli.app import parse
        from overexplain.cli.arguments import WrongUsage

        try:
            work = parse(arguments)
        except WrongUsage as error:
            say(f"error: {error}")
            return USAGE
        code = work()
        sys.stdout.flush()
        return code or 0
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return UNREAD
    except Exception as error:
        if isinstance(error, OSError):
            _discard_stdout()
        return _failed(error)


def say(message: str) -> None:
    """Write one line to stderr; a terminal gets it wrapped at words."""
    line = "".join(c if c.isprintable() else " " for c in message)
    if sys.stderr.isatty():
        import shutil
        import textwrap

        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _failed(error: Exception) -> int:
    """The exit code of an error, after saying what it says."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            say(f"error: {_text(error)}")
            return code
    if os.environ.get("OVEREXPLAIN_TRACEBACK"):
        raise error
    if isinstance(error, MemoryError):
        say(f"error: {OUT_OF_MEMORY}")
        return REFUSED
    say(
        f"error: unexpected {type(error).__name__}: {error}. This is a bug in overexplain; "
        "please report it with what OVEREXPLAIN_TRACEBACK=1 shows"
    )
    return FAILED


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the output'}: {error.strerror}"
    return str(error)


def _discard_stdout() -> None:
    """Send what is still buffered nowhere: flushing it once more at exit would fail once more."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # stdout is no file, e.g. in tests
        pass
