"""The commands in a real terminal of 80 × 50: what it shows, and what Ctrl-C does."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from overexplain.geometry.hyperplane import Hyperplane
from overexplain.geometry.mechanism import Mechanism
from overexplain.log.querylog import QueryLog
from overexplain.oracles.exact import ModelOracle
from overexplain.oracles.served.endpoint_file import endpoint_file
from served import served

pytestmark = pytest.mark.system
PATIENCE = 120.0


class Terminal:
    """A shell in a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "tmux"
        settings = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
        if "PYTHONPATH" in settings:
            settings["PYTHONPATH"] = os.pathsep.join(
                str(Path(entry).resolve()) for entry in settings["PYTHONPATH"].split(os.pathsep)
            )
        start = ["env", "-i", "LANG=C.UTF-8", "PS1=$ ", *(f"{name}={value}" for name, value in settings.items())]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "50", "-c", str(folder), *start, "sh")
        script = Path(sys.executable).with_name("overexplain")  # missing where the package runs without being installed
        self.run = shlex.quote(str(script)) if script.exists() else f"{shlex.quote(sys.executable)} -m overexplain"

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def type(self, line: str) -> None:
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")

    def interrupt(self) -> None:
        self._tmux("send-keys", "C-c")

    def interrupt_until_it_ends(self) -> None:
        """Ctrl-C, and again as people do: libraries that are just being imported may swallow one."""
        for _ in range(5):
            self.interrupt()
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                if self.exit_code(self.screen()) is not None:
                    return
                time.sleep(0.05)

    def screen(self) -> list[str]:
        return self._tmux("capture-pane", "-p").rstrip("\n").splitlines()

    def wait_for(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """The screen, once it shows that."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            screen = self.screen()
            if seen(screen):
                return screen
            time.sleep(0.05)
        pytest.fail("the terminal never showed it:\n" + "\n".join(self.screen()))

    def exit_code(self, screen: list[str]) -> int | None:
        return next((int(line.split()[1]) for line in screen if line.startswith("code ")), None)

    def wait_for_the_end(self) -> tuple[list[str], int]:
        screen = self.wait_for(lambda screen: self.exit_code(screen) is not None)
        code = self.exit_code(screen)
        assert code is not None
        return screen, code

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path)
    yield terminal
    terminal.close()


@pytest.fixture(scope="module")
def piped(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    command, folder = [sys.executable, "-m", "overexplain", "demo"], tmp_path_factory.mktemp("piped")
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout.splitlines()


def test_the_demo_looks_in_a_terminal_as_in_a_pipe(shell: Terminal, piped: list[str]) -> None:
    shell.type(f"clear; {shell.run} demo; echo code $?")
    screen, code = shell.wait_for_the_end()
    assert code == 0
    # Line for line what a pipe gets: nothing cut, nothing wrapped, and the progress bar is gone.
    start = screen.index(piped[0])
    assert [line.rstrip() for line in screen[start : start + len(piped)]] == piped
    assert screen[start + len(piped)] == "code 0"
    assert any(line.startswith("service ") and " needed " in line for line in screen)


@pytest.mark.parametrize("when", ["rebuilding the model", "counting what is determined"])
def test_progress_shows_while_it_works_and_ctrl_c_ends_it(shell: Terminal, when: str) -> None:
    shell.type(f"clear; {shell.run} demo; echo code $?")
    shell.wait_for(lambda screen: any(line.startswith(when) for line in screen))
    shell.interrupt_until_it_ends()
    screen, code = shell.wait_for_the_end()
    assert code == 130
    assert "interrupted" in screen
    assert not any("Traceback" in line for line in screen)


def test_ctrl_c_in_a_long_extraction_saves_the_log(shell: Terminal, tmp_path: Path) -> None:
    normal = np.random.default_rng(0).normal(size=2500)
    (tmp_path / "large.json").write_text(json.dumps({"coefficients": normal.tolist(), "intercept": 1.0}))
    options = "--distance l2 --strategy points --log run.jsonl"
    shell.type(f"clear; {shell.run} extract large.json {options}; echo code $?")
    shell.wait_for(lambda screen: any(line.endswith("answers so far") and not line.startswith("0 ") for line in screen))
    shell.interrupt()
    screen, code = shell.wait_for_the_end()
    assert code == 130
    assert "interrupted" in screen
    assert not any("Traceback" in line for line in screen)
    log = QueryLog.load(tmp_path / "run.jsonl")
    assert len(log) > 0
    assert f"log saved: run.jsonl ({len(log):,} answer{'s' * (len(log) > 1)})" in screen


def test_an_error_is_wrapped_at_words(shell: Terminal) -> None:
    shell.type(f"clear; {shell.run} extract {'missing/' * 6}model.json --distance l1; echo code $?")
    screen, code = shell.wait_for_the_end()
    assert code == 3
    start = next(i for i, line in enumerate(screen) if line.startswith("error: "))
    end = next(i for i, line in enumerate(screen) if line.startswith("code "))
    assert end - start >= 2
    assert all(line.startswith("  ") for line in screen[start + 1 : end])
    message = " ".join(line.strip() for line in screen[start:end])
    assert message.endswith("cannot be read (No such file or directory); check the path")


def ask(folder: Path, features: int, labels: int) -> None:
    """A log of this many labels, log.jsonl."""
    rng = np.random.default_rng(0)
    points, normal = rng.normal(size=(labels, features)), rng.normal(size=features)
    log = QueryLog()
    log.add_label(points, np.where(points @ normal >= 0.3, 1, -1))
    log.save(folder / "log.jsonl")


def test_a_map_looks_in_a_terminal_as_in_a_pipe(shell: Terminal, tmp_path: Path) -> None:
    ask(tmp_path, 2, 12)
    command = [sys.executable, "-m", "overexplain", "map", "log.jsonl"]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path if entry)
    }
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    lines = done.stdout.splitlines()
    shell.type(f"clear; {shell.run} map log.jsonl; echo code $?")
    screen, code = shell.wait_for_the_end()
    assert code == 0
    start = screen.index(lines[0])
    assert [line.rstrip() for line in screen[start : start + len(lines)]] == lines
    assert screen[start + len(lines)] == "code 0"


def test_ctrl_c_in_a_long_certification_leaves_no_file(shell: Terminal, tmp_path: Path) -> None:
    ask(tmp_path, 10, 500)
    points = np.random.default_rng(1).normal(size=(20_000, 10))
    np.savetxt(tmp_path / "points.csv", points, delimiter=",")
    files = "-o verdicts.csv --proofs proofs.jsonl"
    shell.type(f"clear; {shell.run} certify log.jsonl points.csv {files}; echo code $?")
    shell.wait_for(lambda screen: any(line.startswith("proving, ") and " 0 points" not in line for line in screen))
    shell.interrupt()
    screen, code = shell.wait_for_the_end()
    assert code == 130
    assert "interrupted" in screen
    assert not any("Traceback" in line for line in screen)
    assert {path.name for path in tmp_path.iterdir()} == {"tmux", "log.jsonl", "points.csv"}


def test_a_probe_shows_how_far_it_is_and_ctrl_c_saves_it(shell: Terminal, tmp_path: Path) -> None:
    """The live line at 80 columns, against a served model; interrupted and resumed."""
    oracle = ModelOracle(Hyperplane(np.arange(1.0, 31.0), 0.5), Mechanism("l1"))
    with served(oracle) as service:
        (tmp_path / "endpoint.toml").write_text(endpoint_file(oracle, service.url, service.name))
        shell.type(f"clear; {shell.run} probe endpoint.toml --budget 40 --rate 5/s --run run.sqlite; echo code $?")
        wanted = re.compile(r"question \d+ of 31, \d+ requests spent, \d+ left")
        screen = shell.wait_for(lambda screen: any(wanted.fullmatch(line.rstrip()) for line in screen))
        assert max(map(len, screen)) <= 80
        shell.interrupt()
        screen, code = shell.wait_for_the_end()
        assert code == 130
        assert "interrupted" in screen
        assert not any("Traceback" in line for line in screen)
        text = " ".join(line.strip() for line in screen)
        assert "run saved: run.sqlite" in text
        assert "go on with: overexplain probe --resume run.sqlite" in text
        shell.type(f"clear; {shell.run} probe --resume run.sqlite --authorized --rate 1000/s; echo then $?")
        shell.wait_for(lambda screen: any(line.startswith("34 requests rebuild this model.") for line in screen))
        shell.wait_for(lambda screen: "then 0" in screen)
        assert service.counts.keys == 34
