"""Files that are whole or not there: written beside their place, then put there in one step."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The path of a new file to write; when the block ends without an error it takes the place of `path`.

    A reader sees the old file or the whole new one. Links are followed; devices, pipes and folders are refused, because
    taking their place would destroy them.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {target.parent}", str(path))
    beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        yield beside
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def reason(error: Exception) -> str:
    """What the system says went wrong, without the name of the file."""
    return str(getattr(error, "strerror", None) or error)
