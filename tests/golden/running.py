"""Runs a golden case in a folder of its own and keeps all that came of it: what was printed, the exit codes, the files."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from golden.cases import Case
from overexplain.cli.main import run

HERE = Path(__file__).parent
_SHAPE = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "OVEREXPLAIN_TRACEBACK")  # change what is printed


@dataclass(frozen=True)
class Step:
    """One command line and what it said."""

    command: str
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Outcome:
    """What a case did, as it came: nothing is normalised yet."""

    name: str
    place: str
    steps: tuple[Step, ...]
    files: dict[str, bytes] = field(repr=False)


def outcome_of(case: Case) -> Outcome:
    """Run the steps of a case one after the other, in this process."""
    with tempfile.TemporaryDirectory(prefix="golden") as place, _plain(Path(place)):
        shutil.copytree(HERE / case.folder, place, dirs_exist_ok=True)
        before = _files(Path(place))
        steps = tuple(_step(command) for command in case.steps)
        after = _files(Path(place))
        written = {name: data for name, data in after.items() if before.get(name) != data}
        return Outcome(case.name, place, steps, written)


@contextlib.contextmanager
def _plain(place: Path) -> Iterator[None]:
    """Work in a folder, without what a terminal or a reader's environment adds."""
    kept = {name: os.environ.pop(name) for name in _SHAPE if name in os.environ}
    try:
        with contextlib.chdir(place):
            yield
    finally:
        os.environ.update(kept)


def _step(command: str) -> Step:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(shlex.split(command))
    return Step(command, code, out.getvalue(), err.getvalue())


def _files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}
