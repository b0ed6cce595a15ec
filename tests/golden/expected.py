"""The expectations as files, and how verdicts may differ from those that were frozen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SHOWN = HERE / "shown"
FROZEN = HERE / "frozen"
OUTCOMES = FROZEN / "outcomes.json"
FROZEN_SCHEMAS = FROZEN / "schemas"
SCHEMAS = HERE.parents[1] / "docs" / "schemas"
UNDECIDED = "-"

MAY_CHANGE: dict[tuple[str, str, int], str] = {}
"""Frozen verdicts that turned out to be wrong: (case, file, row) → the right letter. A commit that adds one says why."""


def frozen_outcomes() -> dict[str, Any]:
    """The exit codes and error lines of every case."""
    return json.loads(OUTCOMES.read_text(encoding="utf-8")) if OUTCOMES.exists() else {}


def verdict_file(name: str) -> Path:
    """Where a case's verdicts are frozen."""
    return FROZEN / "verdicts" / f"{name}.json"


def frozen_verdicts(name: str) -> dict[str, str]:
    """A letter a point: Y, N, ? (unknown), B (boundary), - (undecided)."""
    path = verdict_file(name)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def compare_verdicts(name: str, before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What is wrong with verdicts, next to those of before.

    A verdict is a theorem about the log: Yes, No, unknown and boundary stay what they are, whatever finds them. A point that was
    undecided may become anything.
    """
    lines = []
    for file, letters in before.items():
        found = now.get(file, "")
        if len(found) != len(letters):
            lines.append(f"{file}: {len(found)} verdicts, {len(letters)} were frozen")
            continue
        for row, (old, new) in enumerate(zip(letters, found, strict=True)):
            allowed = MAY_CHANGE.get((name, file, row), old)
            if old != UNDECIDED and new != allowed:
                lines.append(f"{file}, row {row} (from 0): was {old}, is {new}")
    return lines
