"""The malicious files: none runs anything, all are refused in one line, within bounds of memory and time."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import malicious_onnx  # noqa: F401  (adds its files to the list)
import overexplain.errors
from malicious_files import HARMLESS, MALICIOUS, touch

ENVIRONMENT = {"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}

DRIVER = r"""
import concurrent.futures, json, pickle, resource, sys, time, _pickle
from overexplain.models.load import load_model

happened = []
FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.putenv", "socket.connect", "socket.getaddrinfo", "marshal.load")
sys.addaudithook(lambda event, arguments: happened.append(event) if event in FORBIDDEN else None)

def never(*arguments, **options):
    happened.append("unpickled")
    raise AssertionError("something was unpickled")

class Never(pickle.Unpickler):
    def __init__(self, *arguments, **options):
        never()

for module in (pickle, _pickle):
    module.load = module.loads = never
    module.Unpickler = Never
pickle._Unpickler = Never

def tried(item):
    name, path = item
    start = time.monotonic()
    try:
        load_model(path)
        kind, message = "", ""
    except BaseException as error:
        kind, message = type(error).__name__, str(error)
    return name, {"kind": kind, "message": message, "seconds": time.monotonic() - start}

with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = dict(pool.map(tried, json.load(open(sys.argv[1])).items()))
own = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # ru_maxrss has the parent's in it
peaks = [int(own.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
print(json.dumps({"results": results, "happened": happened, "peaks": peaks}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    return tmp_path_factory.mktemp("malicious")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, Path]:
    (folder / "canaries").mkdir()
    return {name: make(folder, folder / "canaries" / str(k)) for k, (name, make) in enumerate(MALICIOUS.items())}


@pytest.fixture(scope="module")
def report(files: dict[str, Path], folder: Path) -> dict[str, Any]:
    """What `load_model` said to each, in a process where nothing can be unpickled without a trace."""
    (folder / "list.json").write_text(json.dumps({name: str(path) for name, path in files.items()}))
    before = {path.name for path in folder.iterdir()}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, "list.json"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    found["left"] = [*(folder / "canaries").iterdir(), *({path.name for path in folder.iterdir()} - before)]
    return found


def test_there_are_many_of_them() -> None:
    assert len(MALICIOUS) >= 130


def test_a_canary_would_sing(tmp_path: Path) -> None:
    """Otherwise that there is none would prove nothing."""
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(touch(tmp_path / "canary")))
    subprocess.run([sys.executable, "-c", "import pickle; pickle.load(open('m.pkl', 'rb'))"], cwd=tmp_path, check=True)
    assert (tmp_path / "canary").exists()


def test_nothing_was_run_and_nothing_left_behind(report: dict[str, Any]) -> None:
    assert report["happened"] == []
    assert report["left"] == []


@pytest.mark.parametrize("name", MALICIOUS)
def test_each_is_refused_in_one_line(name: str, files: dict[str, Path], report: dict[str, Any]) -> None:
    result = report["results"][name]
    if name in HARMLESS:
        assert result["kind"] == ""
        return
    kind = getattr(overexplain.errors, result["kind"], None)
    assert kind is not None, result
    assert issubclass(kind, overexplain.errors.InvalidInput)
    message = result["message"]
    assert message.isprintable(), message
    assert len(message) < 1500
    assert files[name].name[:3] in message
    assert "Traceback" not in message
    assert result["seconds"] < 30


def test_memory_stays_bounded(report: dict[str, Any]) -> None:
    own, children = report["peaks"]  # KiB: of this process, and of the largest of its children
    assert own + children < 10**9 / 1024


SOME = [
    "opcodes-reduce",
    "skops-partial",
    "zip-bomb-of-ten-gigabytes",
    "onnx-external-parent",
    "pipe",
    "shell-in-the-name",
]


@pytest.mark.parametrize("name", SOME)
def test_the_command_line_says_so_in_one_line(name: str, files: dict[str, Path], folder: Path) -> None:
    command = [sys.executable, "-m", "overexplain", "model", "inspect", str(files[name])]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not list((folder / "canaries").iterdir())
