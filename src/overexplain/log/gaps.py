"""Rows with empty cells: they are left out, counted, and the first of them named."""

from __future__ import annotations

from typing import final

from overexplain.log.jsonl.values import warn

NAMED = 3


@final
class LeftOut:
    """What a file's reader has left out so far."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0
        self._first: list[str] = []

    def add(self, row: str, cell: str) -> None:
        """A row, as its file's reader calls it, in which a cell is empty."""
        self._count += 1
        if len(self._first) < NAMED:
            self._first.append(f"{row} has no {cell!r}")

    def tell(self) -> None:
        """Warn of them, once the file has been read."""
        if not self._count:
            return
        rows = f"{self._count:,} rows with empty cells are" if self._count > 1 else "1 row with an empty cell is"
        more = f" and {self._count - NAMED:,} more" if self._count > NAMED else ""
        warn(f"{self._file}: {rows} left out, those after move up: {', '.join(self._first)}{more}")
