"""Model files that try something: each would leave a canary behind, fill the memory, hang, or fool a reader.

They are inert outside of what they try here: a canary is an empty file, a name in the environment, or a connection to a
socket of the test itself.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np

MALICIOUS: dict[str, Callable[[Path, Path], Path]] = {}
"""Name → what writes the file into a folder, given the canary it should leave; it returns the path to load."""

HARMLESS = {"csv-formulas"}
"""What may load: there is only text in it, and text stays text."""


def malicious(function: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
    MALICIOUS[function.__name__.replace("_", "-")] = function
    return function


class Call:
    """Pickles to a call of any function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def touch(canary: Path) -> Call:
    return Call(os.system, f"touch '{canary}'")


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _pickles() -> None:
    """Pickles of every protocol, under every name, in every wrapping."""
    for protocol in range(6):
        MALICIOUS[f"pickle-protocol-{protocol}"] = lambda folder, canary, protocol=protocol: written(
            folder / f"protocol{protocol}.pkl", pickle.dumps(touch(canary), protocol)
        )
    for name in ("m.json", "m.csv", "m.skops", "m.onnx", "m.joblib", "m.pt", "model", "m.JSON.bak", "m.txt"):
        for protocol in (0, 4):
            MALICIOUS[f"pickle-{protocol}-called-{name}"] = lambda folder, canary, name=name, protocol=protocol: (
                written(folder / f"{protocol}{name}", pickle.dumps(touch(canary), protocol))
            )
    packed: dict[str, Callable[[bytes], bytes]] = {
        "pkl.gz": gzip.compress,
        "pkl.bz2": bz2.compress,
        "pkl.xz": lzma.compress,
        "pkl.lzma": lambda content: lzma.compress(content, lzma.FORMAT_ALONE),
        "pkl.z": zlib.compress,
        "gz.json": lambda content: gzip.compress(gzip.compress(content)),
        "lz4.csv": lambda content: b"\x04\x22\x4d\x18" + content,
        "bz2.onnx": bz2.compress,
        "zlib.skops": zlib.compress,
    }
    for ending, pack in packed.items():
        MALICIOUS[f"packed-{ending}"] = lambda folder, canary, ending=ending, pack=pack: written(
            folder / f"packed.{ending}", pack(pickle.dumps(touch(canary)))
        )
    by_hand: dict[str, Callable[[str], bytes]] = {
        "reduce": lambda line: f"cos\nsystem\n(S'{line}'\ntR.".encode(),
        "inst": lambda line: f"(S'{line}'\nios\nsystem\n.".encode(),
        "obj": lambda line: f"(cos\nsystem\nS'{line}'\no.".encode(),
        "stack-global": lambda line: (
            b"\x80\x04\x8c\x02os\x8c\x06system\x93" + b"\x8c" + bytes([len(line)]) + line.encode() + b"\x85R."
        ),
        "newobj": lambda line: b"\x80\x02csubprocess\nPopen\nX" + _counted(line) + b"\x85\x81.",
        "newobj-ex": lambda line: b"\x80\x04csubprocess\nPopen\nX" + _counted(line) + b"\x85}\x92.",
        "build": lambda line: b"\x80\x02cos\nsystem\nX" + _counted(line) + b"\x85R}X\x01\x00\x00\x00aK\x01sb.",
        "ends-early": lambda line: f"cos\nsystem\n(S'{line}'\ntR".encode(),
        "eval": lambda line: f"cbuiltins\neval\n(S'__import__(\"os\").system(\"{line}\")'\ntR.".encode(),
    }  # fmt: skip
    for name, code in by_hand.items():
        MALICIOUS[f"opcodes-{name}"] = lambda folder, canary, name=name, code=code: written(
            folder / f"{name}.json", code(f"touch {canary}")
        )


def _counted(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


@malicious
def pickle_in_a_pickle(folder: Path, canary: Path) -> Path:
    inner = pickle.dumps(touch(canary))
    return written(folder / "nested.pkl", pickle.dumps(Call(pickle.loads, inner)))


@malicious
def pickle_that_sets_the_environment(folder: Path, canary: Path) -> Path:
    return written(folder / "env.joblib", pickle.dumps(Call(os.putenv, "OVEREXPLAIN_CANARY", "1")))


@malicious
def pickle_behind_json(folder: Path, canary: Path) -> Path:
    return written(folder / "polyglot.json", b'{"coefficients": [1], "intercept": 0}\n' + pickle.dumps(touch(canary)))


@malicious
def pickle_before_a_zip(folder: Path, canary: Path) -> Path:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("schema.json", "{}")
    return written(folder / "polyglot.skops", pickle.dumps(touch(canary)) + archive.getvalue())


@malicious
def joblib_with_arrays(folder: Path, canary: Path) -> Path:
    joblib.dump([np.arange(5.0), touch(canary)], folder / "arrays.joblib", compress=3)
    return folder / "arrays.joblib"


@malicious
def numpy_objects(folder: Path, canary: Path) -> Path:
    np.save(folder / "objects.npy", np.array([touch(canary)], dtype=object), allow_pickle=True)
    return folder / "objects.npy"


@malicious
def numpy_objects_in_an_archive(folder: Path, canary: Path) -> Path:
    np.savez(folder / "objects.npz", coef=np.array([touch(canary)], dtype=object))
    return folder / "objects.npz"


@malicious
def torch_archive(folder: Path, canary: Path) -> Path:
    return zipped(folder / "network.json", {"archive/data.pkl": pickle.dumps(touch(canary)), "archive/version": b"3\n"})


@malicious
def shell_in_the_name(folder: Path, canary: Path) -> Path:
    return written(folder / f"$(touch {canary.name});'\n`id`.pkl", pickle.dumps(touch(canary)))


# --- skops -----------------------------------------------------------------------------------------------------------


def zipped(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as out:
        for name, content in entries.items():
            out.writestr(name, content)
    return path


def node(loader: Any, what: str, **entries: Any) -> dict[str, Any]:
    module, _, name = what.rpartition(".")
    return {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": 1 + len(json.dumps(entries)),
        **entries,
    }


def text(value: Any) -> dict[str, Any]:
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def row(*values: dict[str, Any]) -> dict[str, Any]:
    return node("TupleNode", "builtins.tuple", content=list(values))


def attributes(**values: dict[str, Any]) -> dict[str, Any]:
    types = node("ListNode", "builtins.list", content=[node("TypeNode", "builtins.str") for _ in values])
    return node("DictNode", "builtins.dict", content=values, key_types=types)


def estimator(**values: dict[str, Any]) -> dict[str, Any]:
    return node("ObjectNode", "sklearn.linear_model._logistic.LogisticRegression", content=attributes(**values))


def skops_file(path: Path, schema: Any, **more: bytes) -> Path:
    schema = schema | {"protocol": 2, "_skops_version": "0.16.0"} if isinstance(schema, dict) else schema
    return zipped(path, {"schema.json": json.dumps(schema).encode(), **more})


def _skops() -> None:
    def call(line: str) -> dict[str, Any]:
        return text(line)

    system = node("FunctionNode", "posix.system")
    schemas: dict[str, Callable[[str], Any]] = {
        "function": lambda line: node("FunctionNode", "os.system"),
        "partial": lambda line: node(
            "PartialNode", "functools.partial",
            content={"func": system, "args": row(call(line)), "kwds": attributes(), "namespace": text(None)},
        ),
        "reduce": lambda line: node("ConstructorFromReduceNode", "os.system", content=row(call(line))),
        "methodcaller": lambda line: node("OperatorFuncNode", "operator.methodcaller", attrs=row(call("system"), call(line))),
        "operator-call": lambda line: node("OperatorFuncNode", "operator.call", attrs=row(system, call(line))),
        "method": lambda line: node(
            "MethodNode", "builtins.str", content={"func": "format", "obj": node("FunctionNode", "os.system")}
        ),
        "type": lambda line: node("TypeNode", "builtins.eval"),
        "object": lambda line: node("ObjectNode", "subprocess.Popen", content=attributes(args=call(line))),
        "coefficients": lambda line: estimator(coef_=system, intercept_=text([0.0]), classes_=text([0, 1])),
        "dict-that-calls": lambda line: node(
            "DictNode", "os.system", content={line: text(1)}, key_types=node("ListNode", "builtins.list", content=[])
        ),
        "list-that-calls": lambda line: node("ListNode", "builtins.exec", content=[call(line)]),
        "generator": lambda line: node(
            "RandomGeneratorNode", "numpy.random.Generator",
            content={"bit_generator": attributes(bit_generator=text("seed")), "seed_seq": attributes()},
        ),
        "loader-is-a-list": lambda line: node(["FunctionNode"], "os.system"),
        "unknown-loader": lambda line: node("EvalNode", "os.system", content=line),
        "cached-nothing": lambda line: node("CachedNode", "builtins.str"),
        "hidden-in-a-list": lambda line: estimator(classes_=node("ListNode", "builtins.list", content=[system])),
        "old-protocol": lambda line: node("FunctionNode", "os.system") | {"protocol": 0},
        "tree": lambda line: node("TreeNode", "sklearn.tree._tree.Tree", content=attributes(), __reduce__={"args": row()}),
        "no-object": lambda line: [1, 2, 3],
    }  # fmt: skip
    for name, schema in schemas.items():
        MALICIOUS[f"skops-{name}"] = lambda folder, canary, name=name, schema=schema: skops_file(
            folder / f"{name}.skops", schema(f"touch {canary}")
        )


@malicious
def skops_with_a_pickle_inside(folder: Path, canary: Path) -> Path:
    return skops_file(folder / "inside.skops", estimator(), **{"data.pkl": pickle.dumps(touch(canary))})


@malicious
def skops_array_of_objects(folder: Path, canary: Path) -> Path:
    """Passes every check of names and types; NumPy must refuse to unpickle, in the child."""
    buffer = io.BytesIO()
    np.save(buffer, np.array([touch(canary)], dtype=object), allow_pickle=True)
    array = node("NdArrayNode", "numpy.ndarray", type="numpy", file="1.npy")
    return skops_file(folder / "objects.skops", estimator(coef_=array), **{"1.npy": buffer.getvalue()})


@malicious
def skops_giant_array(folder: Path, canary: Path) -> Path:
    """A header that asks for 8 TB before a byte is read, in the child."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    array = node("NdArrayNode", "numpy.ndarray", type="numpy", file="1.npy")
    return skops_file(folder / "giant.skops", estimator(coef_=array), **{"1.npy": content})


@malicious
def skops_deep_schema(folder: Path, canary: Path) -> Path:
    depth = 100_000
    return zipped(folder / "deep.skops", {"schema.json": b'{"a":' * depth + b"1" + b"}" * depth})


# --- zip archives ----------------------------------------------------------------------------------------------------


def raw_zip(
    path: Path, entries: list[tuple[bytes, int, int, bytes, int]], overlap: bool = False, flags: int = 0
) -> Path:
    """A zip archive of (name, method, checksum, stored bytes, declared size), honest or not."""
    out, directory, first = bytearray(), bytearray(), 0
    for k, (name, method, checksum, stored, size) in enumerate(entries):
        offset = first if overlap and k else len(out)
        sizes = struct.pack("<IIIHH", checksum, len(stored), size, len(name), 0)
        if not overlap or not k:
            out += struct.pack("<IHHHHH", 0x04034B50, 20, flags, method, 0, 0x21) + sizes + name + stored
        directory += struct.pack("<IHHHHHH", 0x02014B50, 20, 20, flags, method, 0, 0x21) + sizes
        directory += struct.pack("<HHHII", 0, 0, 0, 0o120777 << 16 if name.startswith(b"link") else 0, offset) + name
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, *(2 * [min(len(entries), 0xFFFF)]), len(directory), len(out), 0)
    return written(path, bytes(out + directory + end))


@functools.cache
def zeros(size: int) -> tuple[int, bytes]:
    """(checksum, deflated bytes) of so many zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    checksum, block = 0, bytes(2**20)
    out = bytearray()
    for _ in range(size // 2**20):
        checksum = zlib.crc32(block, checksum)
        out += packer.compress(block)
    return checksum, bytes(out + packer.flush())


@malicious
def zip_bomb_of_ten_gigabytes(folder: Path, canary: Path) -> Path:
    checksum, packed = zeros(64 * 2**20)
    entries = [(b"schema.json", 0, 0, b"", 0)]
    entries += [(f"{k}.npy".encode(), 8, checksum, packed, 64 * 2**20) for k in range(160)]
    return raw_zip(folder / "bomb.skops", entries)


@malicious
def zip_bomb_with_overlaps(folder: Path, canary: Path) -> Path:
    checksum, packed = zeros(2 * 2**20)
    entries = [(f"{k:04}.npy".encode(), 8, checksum, packed, 2 * 2**20) for k in range(60)]
    return raw_zip(folder / "overlap.skops", [*entries, (b"schema.json", 8, checksum, packed, 2 * 2**20)], overlap=True)


@malicious
def zip_bomb_nested(folder: Path, canary: Path) -> Path:
    content = bytes(10 * 2**20)
    for level in range(4):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
            for k in range(1 if level == 3 else 4):
                out.writestr(f"{k}.npz", content)
            out.writestr("schema.json", "{}")
        content = buffer.getvalue()
    return written(folder / "nested.skops", content)


@malicious
def zip_lies_about_a_size(folder: Path, canary: Path) -> Path:
    checksum, packed = zeros(8 * 2**20)
    return raw_zip(folder / "lies.skops", [(b"schema.json", 8, checksum, packed, 0xFFFFFFF0)])


@malicious
def zip_says_too_little(folder: Path, canary: Path) -> Path:
    checksum, packed = zeros(64 * 2**20)
    return raw_zip(folder / "little.skops", [(b"schema.json", 8, checksum, packed, 100)])


@malicious
def zip_with_a_huge_directory(folder: Path, canary: Path) -> Path:
    entries = [(f"{k:06}.npy".encode(), 0, 0, b"", 0) for k in range(60_000)]
    return raw_zip(folder / "directory.skops", [*entries, (b"schema.json", 0, 0, b"", 0)])


@malicious
def zip_encrypted(folder: Path, canary: Path) -> Path:
    return raw_zip(folder / "locked.skops", [(b"schema.json", 0, 0, b"{}" * 20, 40)], flags=1)


@malicious
def zip_without_an_end(folder: Path, canary: Path) -> Path:
    whole = skops_file(folder / "whole.zip", estimator()).read_bytes()
    return written(folder / "endless.skops", whole[:-30])


def _zip_names() -> None:
    names = {
        "parent": b"../../../../../../tmp/overexplain-canary.npy",
        "absolute": b"/etc/overexplain-canary.npy",
        "windows": b"..\\..\\canary.npy",
        "drive": b"C:canary.npy",
        "link": b"link.npy/../../canary",
        "nul": b"1.npy\x00.pkl",
        "folder": b"folder/",
        "twice": b"schema.json",
    }
    for name, entry in names.items():
        MALICIOUS[f"zip-name-{name}"] = lambda folder, canary, name=name, entry=entry: raw_zip(
            folder / f"name-{name}.skops",
            [(b"schema.json", 0, zlib.crc32(b"{}"), b"{}", 2), (entry, 0, zlib.crc32(b"x"), b"x", 1)],
        )


# --- places that are no files, and text --------------------------------------------------------------------------------


@malicious
def pipe(folder: Path, canary: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


@malicious
def link_to_a_pipe(folder: Path, canary: Path) -> Path:
    os.mkfifo(folder / "pipe")
    (folder / "link.onnx").symlink_to(folder / "pipe")
    return folder / "link.onnx"


@malicious
def device(folder: Path, canary: Path) -> Path:
    return Path("/dev/zero")


@malicious
def link_to_a_device(folder: Path, canary: Path) -> Path:
    (folder / "zero.csv").symlink_to("/dev/zero")
    return folder / "zero.csv"


@malicious
def link_to_itself(folder: Path, canary: Path) -> Path:
    (folder / "self.skops").symlink_to(folder / "self.skops")
    return folder / "self.skops"


@malicious
def folder_with_an_ending(folder: Path, canary: Path) -> Path:
    (folder / "folder.pkl").mkdir()
    return folder / "folder.pkl"


@malicious
def sparse_giant_file(folder: Path, canary: Path) -> Path:
    with (folder / "giant.onnx").open("wb") as out:
        out.write(b"\x08\x08\x12\x01a")
        out.truncate(10 * 2**30)
    return folder / "giant.onnx"


def _texts() -> None:
    contents: dict[str, bytes] = {
        "deep.json": b'{"coefficients":' * 100_000,
        "lists.json": b"[" * 10**6,
        "long-number.json": b'{"coefficients": [1], "intercept": ' + b"9" * 200_000 + b"}",
        "large-number.json": b'{"coefficients": [1e999], "intercept": 0}',
        "nan.json": b'{"coefficients": [NaN], "intercept": 0}',
        "infinite.json": b'{"coefficients": [1], "intercept": -Infinity}',
        "twice.json": b'{"coefficients": [1], "coefficients": [2], "intercept": 0}',
        "utf16.json": '{"coefficients": [1], "intercept": 0}'.encode("utf-16"),
        "nul.json": b'{"coefficients": [1], \x00 "intercept": 0}',
        "cut.json": b'{"coefficients": [1, 2, 3',
        "large.json": b'{"a": "' + b"x" * (65 * 2**20) + b'"}',
        "class.json": b'{"__reduce__": ["os.system", ["true"]], "py/object": "os.system"}',
        "field.csv": b"feature,coefficient\nage," + b"9" * 10**7 + b"\n",
        "formulas.csv": b"feature,coefficient\n=cmd|' /C calc'!A0,1\n@SUM(1+1),2\nintercept,0\n",
        "utf16.csv": "feature,coefficient\nage,1\nintercept,0\n".encode("utf-16"),
        "nul.csv": b"feature,coefficient\nage\x00,1\nintercept,0\n",
        "quote.csv": b'feature,coefficient\n"age,1\nintercept,0\n',
        "cut.csv": b"feature,coefficient\nage,",
        "empty.skops": b"",
        "noise.onnx": bytes(range(256)) * 64,
        "html.csv": b"<script>alert(1)</script>,\x1b]0;owned\x07\n",
    }
    for name, content in contents.items():
        stem, _, ending = name.partition(".")
        MALICIOUS[f"{ending}-{stem}"] = lambda folder, canary, name=name, content=content: written(
            folder / name, content
        )


_pickles()
_skops()
_zip_names()
_texts()
