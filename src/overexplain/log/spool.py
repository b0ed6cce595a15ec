"""Rows of numbers that arrive piece by piece: in memory while they are few, then in a temporary file that is read as an array."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import IO, final

import numpy as np

from overexplain.geometry.arrays import FloatArray

HELD = 2**24
"""Bytes that are held in memory before a file is begun."""


@final
class Spool:
    """Rows of `width` numbers, appended and then had as one array; `files` closes what was opened, which the array outlives.

    Only its owner may read the file, and it goes with the process however that ends: it has no name from the start.
    """

    def __init__(self, width: int, files: ExitStack) -> None:
        self._width = width
        self._files = files
        self._count = 0
        self._parts: list[FloatArray] = []
        self._file: IO[bytes] | None = None

    def add(self, rows: FloatArray) -> None:
        """Append rows."""
        self._count += len(rows)
        self._parts.append(rows)
        if self._file is None and 8 * self._width * self._count > HELD:
            self._file = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        if self._file is not None:
            self._write(self._file)

    def rows(self) -> FloatArray:
        """All rows; of a file, only the pages that are looked at take memory, and the system may have them back at any time."""
        if self._file is None:
            return np.concatenate(self._parts)
        return np.asarray(np.memmap(self._file, np.float64, "r", shape=(self._count, self._width)))

    def _write(self, file: IO[bytes]) -> None:
        """Move what is in memory to the file: written, not mapped, so that a full disk is an error and not a signal."""
        try:
            for part in self._parts:
                file.write(np.ascontiguousarray(part, dtype=np.float64).data)
            file.flush()
        except OSError as error:
            where = (
                f"{error.strerror} in {tempfile.gettempdir()}, where a long log is kept (TMPDIR names another folder)"
            )
            raise OSError(error.errno, where) from None
        self._parts = []
