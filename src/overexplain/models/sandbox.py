"""Untrusted model files are opened in a child process that has little, may do little, and sends back numbers only.

The child (`sandbox_child`) gets the bytes of the file, which were read and checked once here, so that nothing can be put
in its place in between. It starts with an empty environment in the root folder, limits its own memory, computing time
and file sizes before it looks at them, and answers with the JSON entries of a coefficient file. The parent believes
nothing of that answer: it is parsed as a coefficient file from a stranger is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel, ZeroNormal
from overexplain.models.coefficients import from_entries
from overexplain.models.linear import LinearModel
from overexplain.models.multiclass import MulticlassModel, multiclass_of
from overexplain.models.sniff import shown

Task = Literal["skops", "onnx", "pickle"]
Model = TypeVar("Model", LinearModel, MulticlassModel)

LARGEST_FILE: Final = 64 * 2**20
"""Bytes of a stored model; as float64 that is eight million coefficients."""
LARGEST_ANSWER: Final = 256 * 2**20
WALL_SECONDS: Final = 60.0
"""Only what sleeps gets that far: what computes is stopped after a third of it, whatever else the machine does."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from overexplain.models.sandbox_child import main; main()"
)
_ERRORS: Final[dict[str, type[InvalidInput]]] = {
    "InvalidInput": InvalidInput,
    "NotFinite": NotFinite,
    "ZeroNormal": ZeroNormal,
    "UnsupportedModel": UnsupportedModel,
}
_LONGEST_MESSAGE = 1000


@dataclass(frozen=True)
class Stored(Generic[Model]):
    """What a stored model turned out to be.

    model    the linear model, of Yes and No or of several classes
    notes    what its owner should know about how it was stored or read, in sentences
    checked  how it was compared with the original, in words; None: nothing to compare it with
    """

    model: Model
    notes: tuple[str, ...] = field(default=())
    checked: str | None = None


def read_in_child(
    task: Task, content: bytes, path: str | os.PathLike[str], threshold: float | None = None
) -> Stored[LinearModel]:
    """The model in the bytes of the file at `path`, read by a child process.

    Raises an InvalidInput whose message starts with the path, whatever the child did.
    """
    try:
        return _stored(_answer(_run(task, content, threshold)))
    except InvalidInput as error:
        raise type(error)(f"{shown(path)}: {error}") from error.__cause__


def read_multiclass_in_child(task: Task, content: bytes, path: str | os.PathLike[str]) -> Stored[MulticlassModel]:
    """The model of several classes (or of two) in the bytes of the file at `path`, read by a child process."""
    try:
        answer = _answer(_run(task, content, None))
        return _described(multiclass_of(answer.get("entries")), answer)
    except InvalidInput as error:
        raise type(error)(f"{shown(path)}: {error}") from error.__cause__


def _run(task: Task, content: bytes, threshold: float | None) -> bytes:
    """What the child wrote before it ended; what takes too long is ended, with everything it started."""
    if not sys.executable:
        raise UnsupportedModel(
            "stored models are read by a Python process of their own, and there is no Python to start"
        )
    command = [sys.executable, "-I", "-B", "-c", _START, json.dumps(_search_path()), task, json.dumps(threshold)]
    with tempfile.TemporaryFile() as given:
        given.write(content)
        given.seek(0)
        child = subprocess.Popen(
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=Path(sys.executable).anchor,
            env=_environment(),
            start_new_session=os.name == "posix",
        )
    written: list[bytes] = []
    assert child.stdout is not None
    reader = threading.Thread(target=_read, args=(child.stdout, written), daemon=True)
    reader.start()
    try:
        reader.join(WALL_SECONDS)
        too_slow = reader.is_alive()
    finally:
        _end(child)
        reader.join(5.0)
        if not reader.is_alive():
            child.stdout.close()
    if too_slow:
        raise UnsupportedModel(f"reading it took more than {WALL_SECONDS:.0f} s and was stopped; {_ADVICE}")
    answer = written[0] if written else b""
    if len(answer) > LARGEST_ANSWER:
        raise UnsupportedModel(f"reading it gave more than {LARGEST_ANSWER // 2**20} MiB; {_ADVICE}")
    if not answer:
        raise UnsupportedModel(f"reading it ended the process that did ({_how_it_ended(child.returncode)}); {_ADVICE}")
    return answer


_ADVICE: Final = "a linear model needs little; write its coefficients to a JSON file"


def _read(pipe: Any, written: list[bytes]) -> None:
    written.append(pipe.read(LARGEST_ANSWER + 1))


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever else is left of its session."""
    try:
        child.wait(0.2)
    except subprocess.TimeoutExpired:
        child.kill()
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody left, as it should be
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _how_it_ended(code: int) -> str:
    if code < 0:
        try:
            return f"by {signal.Signals(-code).name}: too much memory or computing time, or a crash"
        except ValueError:
            pass
    return f"exit code {code}: too much memory, or a crash"


def _search_path() -> list[str]:
    """Where the child finds its modules: where this process does, except the current folder, where models may lie."""
    here = os.path.realpath(os.curdir)
    own = str(Path(__file__).resolve().parents[2])
    others = (os.path.abspath(entry) for entry in sys.path if entry)  # noqa: PTH100  (links stay as they are)
    return [own, *(entry for entry in others if os.path.realpath(entry) != here)]


def _environment() -> dict[str, str]:
    """Only what Python and the numerical libraries need; no name, no token, no proxy."""
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | single | {"JOBLIB_MULTIPROCESSING": "0"}


def _answer(written: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(written)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise UnsupportedModel(f"the process that read it did not answer in JSON; {_ADVICE}")
    if "error" in answer:
        message = " ".join(str(answer["error"])[:_LONGEST_MESSAGE].split())
        raise _ERRORS.get(str(answer.get("kind")), UnsupportedModel)(message)
    return answer


def _stored(answer: Mapping[str, Any]) -> Stored[LinearModel]:
    return _described(from_entries(answer.get("entries"), None), answer)


def _described(model: Model, answer: Mapping[str, Any]) -> Stored[Model]:
    """The model with what else the answer says, cut to a bearable length."""
    source, checked, notes = answer.get("source"), answer.get("checked"), answer.get("notes", [])
    if isinstance(source, str) and source:
        model = replace(model, source=source[:_LONGEST_MESSAGE])
    texts = tuple(str(note)[:_LONGEST_MESSAGE] for note in notes) if isinstance(notes, list) else ()
    return Stored(model, texts, checked[:_LONGEST_MESSAGE] if isinstance(checked, str) else None)
