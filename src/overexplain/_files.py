"""Files that are whole or not there: written beside their place, put there in one step; what holds rows, for its owner alone."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

OWNER_ONLY = 0o600


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[Path]:
    """The path of a new, empty file to write to; when the block ends without an error it takes the place of `path`.

    A reader sees the old file or the whole new one, which keeps the old one's mode; where there was none, only the owner may
    read a `private` one. Links are followed; devices, pipes and folders are refused, because taking their place would
    destroy them.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {target.parent}", str(path))
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    before = target.stat() if target.exists() else None
    try:
        # Unfinished, it is never for more eyes than the finished one.
        _make(beside, OWNER_ONLY if private or before is not None else 0o666, path)
        yield beside
        if before is not None:
            _give_mode(beside, before)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _make(new: Path, mode: int, path: str | os.PathLike[str]) -> None:
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _give_mode(path: Path, like: os.stat_result) -> None:
    """Let the same people read the file, or fewer: where its group cannot be the same, no group may."""
    mode = stat.S_IMODE(like.st_mode)
    if path.stat().st_gid != like.st_gid:
        try:
            os.chown(path, -1, like.st_gid)
        except OSError:
            mode &= ~0o070
    path.chmod(mode)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading; folders, pipes and devices are refused, and so is waiting for them."""
    _refuse_irregular(Path(path).stat().st_mode, path)  # before opening: a device may act on being opened
    # A pipe put there since then must not make open() wait.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(descriptor, "rb")
    try:
        _refuse_irregular(os.fstat(descriptor).st_mode, path)
    except OSError:
        file.close()
        raise
    return file


def read_so_far(file: BinaryIO) -> tuple[int, int]:
    """How many bytes of an open file have been read, of how many."""
    return file.tell(), os.fstat(file.fileno()).st_size


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """The whole content of a regular file."""
    with open_regular(path) as file:
        return file.read()


def _refuse_irregular(mode: int, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file (a folder, a pipe or a device)", str(path))


def owner_only(path: str, flags: int) -> int:
    """An opener for `open`: only the owner may read a file that it makes."""
    return os.open(path, flags, OWNER_ONLY)


def reason(error: Exception) -> str:
    """What the system says went wrong, without the name of the file."""
    return str(getattr(error, "strerror", None) or error)
