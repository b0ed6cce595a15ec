"""`.ci/run` says how long every part took, stops at the first that fails, and fails if all of it took too long."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / ".ci" / "run"
PARTS = ["demo", "check", "test", "test-system", "test-dice", "docs", "test-lowest"]


def ci(folder: Path, minutes: str, make: str) -> subprocess.CompletedProcess[str]:
    """The script with a `make` of our own, in a folder of its own."""
    (folder / ".ci").mkdir()
    (folder / ".ci" / "run").write_bytes(RUN.read_bytes())
    tools = folder / "tools"
    tools.mkdir()
    for name, text in (("make", make), ("apt-get", "exit 0"), ("id", "echo 1000")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    surroundings = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "CI_MINUTES": minutes}
    command = ["bash", str(folder / ".ci" / "run")]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False, timeout=60)


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"^\d+ s: make (\S+)$", done.stdout, re.MULTILINE)


def test_every_part_is_run_and_timed(tmp_path) -> None:
    done = ci(tmp_path, "70", 'echo "$@" >> made')
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "made").read_text().split() == PARTS == told(done)
    assert re.fullmatch(r"\d+ s: all of it, at most 70 minutes", done.stdout.splitlines()[-1])


def test_longer_than_allowed_fails(tmp_path) -> None:
    done = ci(tmp_path, "0", 'if [ "$1" = docs ]; then sleep 1.5; fi')
    assert done.returncode == 1
    assert "CI took longer than 0 minutes" in done.stderr
    assert told(done) == PARTS
    assert re.search(r"^[12] s: make docs$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("fails", ["demo", "test-dice", "test-lowest"])
def test_a_part_that_fails_is_the_last(tmp_path, fails) -> None:
    done = ci(tmp_path, "70", f'echo "$@" >> made; [ "$1" != {fails} ]')
    assert done.returncode != 0
    assert (tmp_path / "made").read_text().split() == PARTS[: PARTS.index(fails) + 1]
    assert told(done) == PARTS[: PARTS.index(fails)]
