"""Pages of the documentation as things to run: code, commands and files, from top to bottom, in one folder.

- A block of Python runs with the names of the blocks before it. Comments at its end are what it prints; where a line has
  `# Verdicts(…)`, that is what this line prints.
- A block of TOML or JSON that begins with a comment `# name.toml` is a file of that name.
- A block with lines that begin with `overexplain` or `$ ` is a shell session: lines after a `$ ` line are what it prints.
  `…` stands for anything. `serve` starts a process on a free port, whatever port is shown, and lives until the page ends.

An exit code that is not 0 must be shown (`$ echo $?`), or be that of a gate. Audits are kept small: fewer random orders, and no
comparisons where the page does not ask for them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from overexplain.cli.main import GATE_FAILED, run

NOT_RUN = ("make ", "pip install", "overexplain demo")
"""Set up an environment, or run elsewhere: the demo in tests/cli/test_demo.py, `make` by CI."""

SMALL = {"--orders": "2", "--maps": "0", "--judged": "40", "--no-defences": None, "--no-compare": None}
PATIENCE = 120.0
ELSEWHERE = re.compile(r"http://127\.0\.0\.1:\d+")
VERDICTS = re.compile(r"Verdicts\([^)]*\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: what language it says, its text, the line of the page it begins in."""

    language: str
    text: str
    line: int

    @property
    def is_shell(self) -> bool:
        begins = ("$ ", "overexplain ", "make ", "pip ", "python ")
        return self.language in ("", "console", "sh", "bash", "shell") and any(
            line.startswith(begins) for line in self.text.splitlines()
        )


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    fences = [token for token in tokens if token.type == "fence" and token.map]
    return [Block(token.info.strip(), token.content, token.map[0] + 1) for token in fences]


def session(text: str) -> list[tuple[str, str | None]]:
    """The commands of a shell block, each with what it is shown to print (None: nothing is shown)."""
    text = text.replace("\\\n", " ")
    prompts = text.startswith("$ ") or "\n$ " in text
    if not prompts:
        return [(line, None) for line in text.splitlines() if line.strip()]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    lines = [part.partition("\n")[::2] for part in parts]
    return [(command, shown.strip("\n") or None) for command, shown in lines]


@dataclass
class Runner:
    """Runs the blocks of a page, in the current folder; a context manager that stops what it started."""

    names: dict[str, Any] = field(default_factory=dict)
    code: int = 0
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    url: str = ""
    unshown: str = ""
    """The last command, if it failed and nobody has been told."""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.communicate(timeout=PATIENCE)

    def run(self, block: Block) -> None:
        if block.language == "python":
            self.python(block.text)
        elif block.language in ("toml", "json") and (name := re.match(r"# ([\w-]+\.\w+)\n", block.text)):
            Path(name[1]).write_text(block.text, encoding="utf-8")
        elif block.is_shell:
            for command, shown in session(block.text):
                self.line(command, shown)
            assert not self.unshown, f"ended with exit code {self.code}: {self.unshown}"

    def python(self, code: str) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "<page>", "exec"), self.names)
        printed = out.getvalue()
        shown = re.search(r"((?:^#.*\n)+)\Z", code, flags=re.MULTILINE)
        if shown:
            assert_shown(re.sub(r"^# ?", "", shown[1], flags=re.MULTILINE), printed)
            code = code[: shown.start()]
        promised = VERDICTS.findall("\n".join(re.findall(r"#.*", code)))
        if promised:
            found = VERDICTS.findall(printed)
            assert found == promised, f"the page promises {promised}, printed was {found}"

    def line(self, line: str, shown: str | None) -> None:
        """Runs a line of a shell session: commands joined by `&&`, perhaps in the background."""
        printed = ""
        for command in re.split(r" && ", line):
            assert not self.unshown or command.startswith("echo $?"), f"exit code {self.code}: {self.unshown}"
            if not command.startswith(NOT_RUN):
                printed += self.command(command)
        if shown is not None and not line.startswith(NOT_RUN):
            assert_shown(shown, printed)

    def command(self, command: str) -> str:
        """What a command prints; its exit code is in `self.code`."""
        words = [word for word in shlex.split(command, comments=True) if word != "&"]
        match words:
            case ["echo", "$?"]:
                self.unshown = ""
                return f"{self.code}\n"
            case ["overexplain", "serve", *options]:
                return self.serve(options)
            case ["overexplain", *arguments]:
                return self.overexplain(arguments)
            case ["python", "-c", code]:
                return self.printed_by(code)
            case ["curl", "-s", address, *data]:
                return self.curl(address, data)
        raise AssertionError(f"the documentation shows a command that no test can run: {command}")

    def overexplain(self, arguments: list[str]) -> str:
        if arguments[0] == "audit":
            arguments = arguments + small(arguments)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            self.code = run(arguments)
        gate = self.code == GATE_FAILED and "--fail-on" in arguments + _policy(arguments)
        self.unshown = "" if self.code == 0 or gate else f"overexplain {shlex.join(arguments)}\n{err.getvalue()}"
        return out.getvalue() + err.getvalue()

    def serve(self, options: list[str]) -> str:
        """Starts `overexplain serve` and waits until it answers; it is stopped when the page ends."""
        command = [sys.executable, "-m", "overexplain", "serve", *options, "--port", "0"]
        surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=surroundings, **pipes)
        self.processes.append(process)
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        ready = process.stdout.readline() if process.stdout is not None else ""
        watchdog.cancel()
        assert ready.startswith("serving "), process.communicate(timeout=PATIENCE)[1]
        self.url = ELSEWHERE.search(ready)[0]
        return ELSEWHERE.sub("http://127.0.0.1:8099", ready)

    def curl(self, address: str, data: list[str]) -> str:
        options = dict(zip(data[::2], data[1::2], strict=True))
        assert set(options) <= {"-d", "-H"}
        headers = dict([options["-H"].split(": ", 1)]) if "-H" in options else {}
        body = options["-d"].encode() if "-d" in options else None
        request = urllib.request.Request(ELSEWHERE.sub(self.url, address), body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.dumps(json.load(reply), separators=(",", ":"), ensure_ascii=False)

    def printed_by(self, code: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, {})
        return out.getvalue()


def small(arguments: list[str]) -> list[str]:
    """Options that make an audit quick, but for those that stand there already."""
    said = {argument.removeprefix("--no-").removeprefix("--") for argument in arguments}
    extra: list[str] = []
    for option, value in SMALL.items():
        if option.removeprefix("--no-").removeprefix("--") not in said:
            extra += [option] if value is None else [option, value]
    return extra


def assert_shown(shown: str, printed: str) -> None:
    """What the page shows is what was printed; `…` stands for anything."""
    pattern = ".*?".join(re.escape(part.rstrip() if part.endswith("\n") else part) for part in shown.strip().split("…"))
    tidy = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    assert re.fullmatch(pattern, tidy, flags=re.DOTALL), f"the page shows\n{shown}\nbut this was printed\n{tidy}"


def _policy(arguments: list[str]) -> list[str]:
    """The gates of a policy file, as options."""
    return ["--fail-on"] if "--policy" in arguments else []


def shell_lines(page: Path) -> Iterator[str]:
    """Every command that a page shows."""
    for block in blocks(page):
        if block.is_shell:
            yield from (command for command, _ in session(block.text))
