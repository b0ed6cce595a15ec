"""The child process: what it may not do, what becomes of it, and that its answers are not believed."""

from __future__ import annotations

import io
import os
import pickle
import socket
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from malicious_files import Call, touch
from overexplain.errors import InvalidInput, NotFinite, UnsupportedModel
from overexplain.models import sandbox
from overexplain.models.sandbox import read_in_child
from overexplain.models.sandbox_zip import BadArchive, check_archive
from overexplain.models.sniff import first_bytes, read_bounded, sniff


@pytest.fixture
def python_child(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the child be any Python code: `give(code)`."""

    def give(code: str) -> None:
        monkeypatch.setattr(sandbox, "_START", code)

    return give


WRITE = "import sys; sys.stdout.write({!r})"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (WRITE.format("no JSON"), "did not answer in JSON"),
        (WRITE.format("[1]"), "did not answer in JSON"),
        (WRITE.format("[" * 100_000), "did not answer in JSON"),
        (WRITE.format('{"entries": {"coefficients": ["x"], "intercept": 0}}'), "write a number, without quotes"),
        (WRITE.format('{"entries": "os.system"}'), "a model is a JSON object"),
        (WRITE.format('{"kind": "SystemExit", "error": "a\\nb\\u001b[2J"}'), "a b"),
        ("import os; os.abort()", "SIGABRT"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_answers_are_not_believed(code: str, message: str, python_child: Any) -> None:
    python_child(code)
    with pytest.raises(InvalidInput) as error:
        read_in_child("onnx", b"", "m.onnx")
    assert str(error.value).startswith("m.onnx: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_numbers_are_all_that_comes_back(python_child: Any) -> None:
    python_child(
        WRITE.format('{"entries": {"coefficients": [0.1, -2], "intercept": 1}, "source": "x", "notes": ["n", 3]}')
    )
    stored = read_in_child("onnx", b"", "m.onnx")
    np.testing.assert_array_equal(stored.model.hyperplane.normal, [0.1, -2.0])
    assert (stored.model.source, stored.notes, stored.checked) == ("x", ("n", "3"), None)
    python_child(WRITE.format('{"entries": {"coefficients": [1e999], "intercept": 1}}'))
    with pytest.raises(NotFinite, match="too large"):
        read_in_child("onnx", b"", "m.onnx")


def test_what_sleeps_or_talks_too_much_is_stopped(
    python_child: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)
    late = tmp_path / "late"
    python_child(f"import os, time; os.fork(); time.sleep(1.5); open({str(late)!r}, 'w')")
    start = time.monotonic()
    with pytest.raises(UnsupportedModel, match="took more than 0 s and was stopped"):
        read_in_child("onnx", b"", "m.onnx")
    assert time.monotonic() - start < 10
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 60.0)
    monkeypatch.setattr(sandbox, "LARGEST_ANSWER", 2**20)
    python_child("import os\nwhile True: os.write(1, bytes(2**16))")
    with pytest.raises(UnsupportedModel, match="gave more than 1 MiB"):
        read_in_child("onnx", b"", "m.onnx")
    time.sleep(max(0.0, start + 2.0 - time.monotonic()))
    assert not late.exists()  # its children were stopped with it


def test_the_child_gets_nothing_but_the_file(python_child: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    secret = Path(__file__).open()  # noqa: SIM115
    os.set_inheritable(secret.fileno(), True)
    python_child(
        "import json, os, sys; sys.stdout.write(json.dumps({'error': ' '.join([str('SECRET_TOKEN' in os.environ), os.getcwd(), "
        "str(len(os.listdir('/proc/self/fd'))), str(sys.stdin.buffer.read()), str('' in sys.path)])}))"
    )
    with pytest.raises(UnsupportedModel) as error:
        read_in_child("skops", b"content", "m")
    secret.close()
    assert str(error.value) == "m: False / 4 b'content' False"  # three streams, and the listing itself


# --- what an allowed pickle may not do: one child for each -------------------------------------------------------------


def attempts(canary: Path, port: int) -> dict[str, tuple[Any, str]]:
    return {
        "a program": (touch(canary), "call os.system"),
        "a file": (Call(open, str(canary), "w"), "write a file"),
        "a connection": (Call(socket.create_connection, ("127.0.0.1", port)), "call socket"),
    }


@pytest.mark.parametrize("what", ["a program", "a file", "a connection"])
def test_an_allowed_pickle_is_fenced_in(what: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.01)
        attempt, words = attempts(tmp_path / "canary", server.getsockname()[1])[what]
        with pytest.raises(UnsupportedModel, match=rf"m\.pkl: opening it tried to {words}.*do not trust this file"):
            read_in_child("pickle", pickle.dumps([attempt, LogisticRegression()]), "m.pkl")
        with pytest.raises(TimeoutError):
            server.accept()
    assert not (tmp_path / "canary").exists()


def test_an_allowed_pickle_cannot_fill_the_memory() -> None:
    with pytest.raises(UnsupportedModel, match="more than 1024 MiB of memory"):
        read_in_child("pickle", pickle.dumps(Call(bytearray, 2**31)), "m.pkl")


def test_the_limits_of_the_child_hold(python_child: Any, tmp_path: Path) -> None:
    path = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from overexplain.models import sandbox_child as child; "
    python_child(path + "child._LIMITS['RLIMIT_CPU'] = 1; child._limit()\nwhile True: pass")
    with pytest.raises(UnsupportedModel, match="by SIG(XCPU|KILL): too much memory or computing time"):
        read_in_child("onnx", b"", "m")
    target = str(tmp_path / "file")
    python_child(path + f"child._limit(); file = open({target!r}, 'wb', 0); file.write(b'x'); print('written')")
    with pytest.raises(UnsupportedModel, match="exit code 1"):
        read_in_child("onnx", b"", "m")
    assert Path(target).read_bytes() == b""


# --- zip archives and first bytes --------------------------------------------------------------------------------------


def archive(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in entries.items():
            out.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


def test_plain_archives_pass() -> None:
    content = archive(schema_json=b"{}", a_npy=bytes(2**20), b_npy=b"")
    check_archive(content, (".json", ".npy"))
    with pytest.raises(BadArchive, match=r"'a\.npy'; expected"):
        check_archive(content, (".json",))
    with pytest.raises(BadArchive, match="cut off"):
        check_archive(content[:-10], (".json", ".npy"))


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b' \n{"coefficients": [1]}', "m.pkl", "json"),
        (b"\xef\xbb\xbf{}", "m", "json"),
        (b"feature,coefficient\nage,1\n", "m", "csv"),
        (b"name;weight\nage;1\n", "m.json", "csv"),
        (b"column,coefficient\nincome,1\nisland,2\n", "m.csv", "csv"),  # "c" and "i" are opcodes of old pickles
        ("größe,coefficient\n".encode(), "m.csv", "csv"),
        (b"", "m.skops", "skops"),
        (b"", "m.tar.onnx", "onnx"),
        (b"", "m.pkl.gz", "pickle"),
        (b"", "m", "unknown"),
        (b"what is this", "m", "unknown"),
        (b"what is this", "m.json", "json"),
        (b"\x08\x0a\x12\x08skl2onnx", "m", "onnx"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "m.csv", "unknown"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "m.onnx", "onnx"),
        (b"\x80\x02K\x01.", "m.json", "pickle"),
        (b"(lp0\nI1\na.", "m.json", "pickle"),
        (b"cnumpy.core.multiarray\n_reconstruct\n(", "m.txt", "pickle"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n", "m.npy", "pickle"),
        (b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}\n", "m.npy", "unknown"),
        (b"\x1f\x8b\x08\x00\x00", "m.json", "pickle"),
    ],
)
def test_what_first_bytes_say(head: bytes, name: str, kind: str) -> None:
    assert sniff(head, name) == kind


def test_reading_with_bounds(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(bytes(5000))
    assert len(first_bytes(path)) == 4096
    assert read_bounded(path, 5000) == bytes(5000)
    with pytest.raises(InvalidInput, match="larger than 0 MiB"):
        read_bounded(path, 4999)
    with pytest.raises(InvalidInput, match="cannot be read"):
        first_bytes("a\0b")
    assert sniff(first_bytes("/proc/self/status"), "/proc/self/status") == "csv"  # of length 0, and yet not empty
