"""What kind of model a file holds, by its first bytes rather than its name; and reading files that may be traps.

A name is a claim: a pickle can be called model.json. Nothing here decides whether a file is safe. The readers are safe
whatever they are given; this only finds the right one, and with it the message that helps.
"""

from __future__ import annotations

import bz2
import lzma
import os
import pickletools
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from overexplain import _files
from overexplain.errors import InvalidInput
from overexplain.models.sandbox_zip import BadArchive, entry_head, open_archive

Kind = Literal["json", "csv", "skops", "onnx", "pickle", "unknown"]
HEAD: Final = 4096
"""How many bytes are looked at."""

_BY_ENDING: Final[dict[str, Kind]] = {".json": "json", ".csv": "csv", ".skops": "skops", ".onnx": "onnx"}
_PICKLE_ENDINGS: Final = frozenset({".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle", ".pt", ".pth", ".p", ".sav"})
_NOT_TO_LOOK_INTO: Final = (b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd", b"ZF")  # LZ4, Zstandard, early joblib
_ONNX_FIELDS: Final = b"\x12\x1a\x22\x2a\x32\x3a\x42\x72\xa2"
"""What may follow ir_version in an ONNX file: producer, version, domain, model version, doc, graph, opset, …"""
_DECOMPRESSORS: Final[tuple[tuple[tuple[bytes, ...], Callable[[], Any]], ...]] = (
    ((b"\x1f\x8b",), lambda: zlib.decompressobj(31)),
    ((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), zlib.decompressobj),
    ((b"BZh",), bz2.BZ2Decompressor),
    ((b"\xfd7zXZ\x00", b"\x5d\x00\x00"), lambda: lzma.LZMADecompressor(memlimit=2**27)),
)


def shown(path: str | os.PathLike[str]) -> str:
    """The path as one printable line: quoted if it has characters that would break it."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading; pipes, devices and folders are refused, and waiting for them as well."""
    try:
        return _files.open_regular(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InvalidInput(
            f"{shown(path)}: the model file cannot be read ({_files.reason(error)}); check the path"
        ) from error


def first_bytes(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a regular file, as many as `sniff` looks at."""
    return _read(path, HEAD)


def read_bounded(path: str | os.PathLike[str], largest: int) -> bytes:
    """The whole content of a regular file of at most `largest` bytes."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
    content = b"" if size > largest else _read(path, largest + 1)  # the file may have grown since
    if max(size, len(content)) > largest:
        raise InvalidInput(
            f"{shown(path)}: the file is larger than {largest / 2**20:.0f} MiB, too large for a linear model; "
            "write its coefficients to a JSON file"
        )
    return content


def sniff(head: bytes, path: str | os.PathLike[str]) -> Kind:
    """The kind of model file that starts with `head`: by its content, or by its ending where that says nothing.

    "pickle" is whatever would run code when opened, under any name: pickles of every protocol, also compressed or in a
    zip archive, and NumPy files with objects in them.

    >>> sniff(b'{"coefficients": [1]}', "model.pkl"), sniff(b"cos\\nsystem\\n(S'ls'\\ntR.", "model.json")
    ('json', 'pickle')
    """
    path = Path(os.fsdecode(path))
    if not head.strip():
        return by_ending(path)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _archive(path)
    if (kind := _content(head)) is not None:
        return kind
    ending = by_ending(path)
    # Bytes that are no text are no JSON and no CSV, but their readers say best what is wrong with a text file.
    return ending if ending not in ("json", "csv") or _may_be_text(head) else "unknown"


def by_ending(path: Path) -> Kind:
    """The kind that the name claims."""
    endings = [suffix.lower() for suffix in path.suffixes]
    if _PICKLE_ENDINGS.intersection(endings):
        return "pickle"
    return _BY_ENDING.get(endings[-1], "unknown") if endings else "unknown"


def _read(path: str | os.PathLike[str], most: int) -> bytes:
    with open_regular(path) as file:
        try:
            return file.read(most)
        except OSError as error:
            reason = error.strerror or error
            raise InvalidInput(f"{shown(path)}: the model file cannot be read ({reason}); check the path") from error


def _content(head: bytes, depth: int = 0) -> Kind | None:
    """The kind by content alone; None: not known."""
    if is_pickle(head) or (head.startswith(b"\x93NUMPY") and _holds_objects(head)):
        return "pickle"
    if (inside := _decompressed(head)) is not None:
        # What cannot be looked into is most likely what joblib writes; text that is compressed is not read here.
        found = "pickle" if not inside or depth > 2 else _content(inside, depth + 1)
        return "pickle" if found == "pickle" else "unknown"
    if head[:1] == b"\x08" and len(head) > 2 and head[1] < 0x20 and head[2] in _ONNX_FIELDS:
        return "onnx"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"{", b"["):
        return "json"
    first = text.partition(b"\n")[0]
    if _may_be_text(head) and b"\x00" not in head and any(mark in first for mark in (b",", b";", b"\t")):
        return "csv"
    return None


def is_pickle(head: bytes) -> bool:
    """Whether the bytes start as a pickle of any protocol does; they are parsed, never run."""
    if len(head) > 1 and head[0] == 0x80 and head[1] <= 8:
        return True
    names, count = [], 0
    try:
        for operation, argument, _ in pickletools.genops(head):
            count += 1
            if operation.name == "STOP":
                return count > 1
            if operation.name in ("GLOBAL", "INST"):
                names.append(str(argument))
            elif operation.name == "STACK_GLOBAL" and count > 2:  # after two names
                return True
    except Exception:  # whatever a parser says about bytes that are no pickle, or about one that is cut off
        pass
    return bool(names) and re.fullmatch(r"[\w.]+ [\w.]+", names[0]) is not None


def _holds_objects(head: bytes) -> bool:
    """Whether the header of a .npy file declares Python objects, which NumPy stores as a pickle."""
    header = head[8:].partition(b"\n")[0]
    return re.search(rb"""['"][|<>=]?O\d*['"]""", header) is not None


def _decompressed(head: bytes) -> bytes | None:
    """The first bytes inside compressed data, b"" if they cannot be seen; None: not compressed."""
    if head.startswith(_NOT_TO_LOOK_INTO):
        return b""
    for magics, decompressor in _DECOMPRESSORS:
        if head.startswith(magics):
            try:
                inside: bytes = decompressor().decompress(head, HEAD)
                return inside
            except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
                return b""
    return None


def _archive(path: Path) -> Kind:
    """The kind of a zip archive: a skops file has a schema, PyTorch's a pickle, NumPy's perhaps objects."""
    ending = by_ending(path)
    claimed: Kind = ending if ending in ("skops", "pickle") else "unknown"
    try:
        with open_regular(path) as file, open_archive(file) as archive:
            names = archive.namelist()
            if "schema.json" in names:
                return "skops"
            if any(_PICKLE_ENDINGS.intersection(Path(name.lower()).suffixes) for name in names):
                return "pickle"
            arrays = [name for name in names if name.endswith(".npy")][:16]
            heads = [entry_head(archive, name, HEAD) for name in arrays]
    except (BadArchive, InvalidInput):
        return claimed
    return "pickle" if any(is_pickle(head) or _holds_objects(head) for head in heads) else claimed


def _may_be_text(head: bytes) -> bool:
    return sum(byte < 9 or 13 < byte < 32 for byte in head) * 20 <= len(head) or head[:2] in (b"\xff\xfe", b"\xfe\xff")
