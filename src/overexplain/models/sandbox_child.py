"""The child process that opens an untrusted model file: limits itself, opens, answers in JSON, ends.

Two fences, neither of which is a proof. The operating system's limits bound memory, computing time and the size of
files. An audit hook of the interpreter refuses to write files, to start programs and to use the network, and where no
pickle was allowed it refuses to look up a single name for one. Machine code could climb the second; a pickle that was
allowed by --allow-pickle may in the end do what its user may do.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

MEMORY: Final = 2**30
"""Bytes of address space; Python with scikit-learn and skops takes half of it."""
CPU_SECONDS: Final = 20
_LIMITS: Final = {
    "RLIMIT_AS": MEMORY,
    "RLIMIT_CPU": CPU_SECONDS,
    "RLIMIT_FSIZE": 0,
    "RLIMIT_CORE": 0,
    "RLIMIT_NOFILE": 64,
}

_REFUSED: Final = (
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn",
    "subprocess.Popen", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.truncate",
    "os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr", "os.removexattr", "os.kill", "os.killpg",
    "webbrowser.open", "syslog.syslog", "resource.setrlimit", "resource.prlimit",
    "signal.pthread_kill", "sys.settrace", "sys.setprofile",
)  # fmt: skip
_REFUSED_FAMILIES: Final = (
    "socket.",
    "shutil.",
    "tempfile.",
    "ftplib.",
    "http.",
    "smtplib.",
    "urllib.",
    "sqlite3.",
    "winreg.",
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    """Read the model on standard input as the command line says, and write what it is to standard output."""
    task, threshold = sys.argv[2], json.loads(sys.argv[3])
    answer_to, content = _take_over_streams()
    _limit()
    try:
        answer = _READERS[task](content, threshold)
    except MemoryError:
        answer = _error(
            "UnsupportedModel", f"it needs more than {MEMORY // 2**20} MiB of memory; is it a linear model?"
        )
    except RecursionError:
        answer = _error("UnsupportedModel", "it is nested too deeply; is it a linear model?")
    except Exception as error:
        from overexplain.errors import InvalidInput

        known = isinstance(error, InvalidInput)
        kind = type(error).__name__ if known else "UnsupportedModel"
        answer = _error(kind, str(error) if known else f"it cannot be read: {type(error).__name__}: {str(error)[:300]}")
    if refused:
        answer = _error(
            "UnsupportedModel", f"opening it tried to {refused[0]}, which no model does; do not trust this file"
        )
    _write(answer_to, json.dumps(answer, allow_nan=False).encode())
    os._exit(0)  # no destructor, exit handler or thread of what was opened runs any more


def _take_over_streams() -> tuple[int, bytes]:
    """(where to answer, the model); the three standard streams lead nowhere afterwards."""
    content = sys.stdin.buffer.read()
    answer_to = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    return answer_to, content


def _write(answer_to: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:  # not through a file object: opening one is behind the fence
        rest = rest[os.write(answer_to, rest) :]


def _limit() -> None:
    """Bound what this process may use; what the system does not know is left out."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    for name, most in _LIMITS.items():
        limit = getattr(resource, name, None)
        if limit is not None:
            with contextlib.suppress(ValueError, OSError):  # a smaller limit is there already
                resource.setrlimit(limit, (most, most))


refused: list[str] = []
"""What was tried and refused, in words."""


def raise_fence(*, unpickling: bool) -> None:
    """From now on, refuse what no model needs; there is no way back."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        what = None
        if event == "open":
            mode, flags = arguments[1], arguments[2]
            writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
            if (writes or (isinstance(flags, int) and flags & _WRITING)) and arguments[0] != os.devnull:
                what = "write a file"
        elif event == "pickle.find_class":
            what = None if unpickling else "unpickle"
        elif event in _REFUSED or event.startswith(_REFUSED_FAMILIES):
            what = f"call {event}"
        if what is not None:
            refused.append(what)
            raise PermissionError(f"refused: {what}")

    sys.addaudithook(hook)


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "error": message}


def _skops(content: bytes, threshold: float | None) -> dict[str, Any]:
    from overexplain.models.skops import open_skops

    return _fitted(open_skops(content, raise_fence), threshold)


def _pickle(content: bytes, threshold: float | None) -> dict[str, Any]:
    from overexplain.models.pickles import open_pickle

    return _fitted(open_pickle(content, raise_fence), threshold)


def _onnx(content: bytes, threshold: float | None) -> dict[str, Any]:
    from overexplain.models.coefficients import to_entries
    from overexplain.models.linear import LinearModel
    from overexplain.models.multiclass import to_entries as to_multiclass_entries
    from overexplain.models.onnx import open_onnx

    stored = open_onnx(content, threshold, raise_fence)
    model = stored.model
    entries = to_entries(model) if isinstance(model, LinearModel) else to_multiclass_entries(model)
    return {"entries": entries, "source": model.source, "notes": stored.notes, "checked": stored.checked}


def _fitted(estimator: Any, threshold: float | None) -> dict[str, Any]:
    """The answer for an object that was opened: it is read as any fitted scikit-learn model is."""
    from overexplain.models.coefficients import to_entries
    from overexplain.models.load import load_model, load_multiclass
    from overexplain.models.multiclass import to_entries as to_multiclass_entries

    if isinstance(estimator, (str, bytes, os.PathLike)):
        return _error("UnsupportedModel", f"it holds a {type(estimator).__name__}, not a fitted model")
    checked = "compared with the original's own decision function and predictions on random points"
    if len(getattr(estimator, "classes_", ())) > 2:  # whoever asked for Yes and No is told by these entries
        several = load_multiclass(estimator)
        return {"entries": to_multiclass_entries(several), "source": several.source, "notes": [], "checked": checked}
    model = load_model(estimator, threshold=threshold)
    return {"entries": to_entries(model), "source": model.source, "notes": [], "checked": checked}


_READERS: Final[dict[str, Callable[[bytes, float | None], dict[str, Any]]]] = {
    "skops": _skops,
    "onnx": _onnx,
    "pickle": _pickle,
}
