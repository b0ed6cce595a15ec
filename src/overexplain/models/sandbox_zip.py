"""Zip archives from elsewhere: looked at through their directory, with bounds, before anything is unpacked."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable
from typing import BinaryIO, Final

LARGEST_DIRECTORY: Final = 2**20
"""Bytes of the list of contents: some ten thousand entries, as read by `zipfile` a few tens of MB."""
MOST_ENTRIES: Final = 4096
MOST_UNPACKED: Final = 128 * 2**20
MOST_RATIO: Final = 1100
"""Deflate cannot do better than 1032 : 1; zeros of a fitted model may come close, so the sum is what bounds."""

_END, _END_LENGTH, _LONGEST_COMMENT = b"PK\x05\x06", 22, 0xFFFF
_LOCATOR_64 = b"PK\x06\x07"


class BadArchive(Exception):
    """An archive that is not opened; the message says why, without the file's name."""


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """The archive, its directory read; raises BadArchive before a directory that would fill the memory is read."""
    size = file.seek(0, io.SEEK_END)
    start = max(0, size - _END_LENGTH - _LONGEST_COMMENT)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_LENGTH:
        raise BadArchive("the zip archive is cut off: its list of contents is missing; copy the file again")
    if tail[max(0, at - 20) : at].startswith(_LOCATOR_64) or tail[at + 12 : at + 20].count(0xFF) == 8:
        raise BadArchive("a zip64 archive, which is meant for more than 4 GiB; a linear model needs none")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if length > LARGEST_DIRECTORY:
        raise BadArchive(
            f"the list of contents of the zip archive has {length} bytes; at most {LARGEST_DIRECTORY} are read"
        )
    file.seek(0)
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        raise BadArchive(f"the zip archive is damaged ({error}); copy the file again") from None


def entry_head(archive: zipfile.ZipFile, name: str, count: int) -> bytes:
    """The first bytes of an entry."""
    try:
        with archive.open(name) as entry:
            return entry.read(count)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError, zlib.error) as error:
        raise BadArchive(f"{name!r} in the zip archive cannot be read ({error}); copy the file again") from None


def check_archive(content: bytes, endings: Iterable[str]) -> None:
    """Raise BadArchive unless it is small when unpacked, honest about it, and holds plain names with these endings."""
    with open_archive(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        _check_names([entry.filename for entry in entries], [entry.orig_filename for entry in entries], tuple(endings))
        _check_sizes(entries)


def _check_names(names: list[str], originals: list[str], endings: tuple[str, ...]) -> None:
    if len(names) > MOST_ENTRIES:
        raise BadArchive(f"the zip archive has {len(names)} entries; at most {MOST_ENTRIES} are read")
    for name, original in zip(names, originals, strict=True):
        # A flat name: no folder, no drive, nothing that leads elsewhere, and no second name behind a NUL.
        if name != original or not re.fullmatch(r"[\w-][\w.-]*", name, re.ASCII) or not name.endswith(endings):
            raise BadArchive(
                f"the zip archive has an entry called {original[:80]!r}; expected are plain names in {endings}"
            )
    if len(set(names)) < len(names):
        raise BadArchive(f"the zip archive has two entries called {Counter(names).most_common(1)[0][0]!r}")


def _check_sizes(entries: list[zipfile.ZipInfo]) -> None:
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 0x1:
            raise BadArchive(f"{entry.filename!r} in the zip archive is encrypted or packed in a way that is not read")
        if entry.header_offset < end:
            raise BadArchive("entries of the zip archive overlap: a bomb, or a damaged file")
        end = entry.header_offset + 30 + len(entry.filename) + entry.compress_size
        if entry.file_size > MOST_RATIO * max(entry.compress_size, 1):
            raise BadArchive(f"{entry.filename!r} in the zip archive claims to unpack to {entry.file_size} bytes")
    total = sum(entry.file_size for entry in entries)
    if total > MOST_UNPACKED:
        raise BadArchive(
            f"the zip archive unpacks to {total / 2**20:.0f} MiB; at most {MOST_UNPACKED // 2**20} are read"
        )
