"""`benchmarks/long_logs.py`: a cell is measured in a process of its own, which ends at the limit."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "long_logs.py"


def measured(*options: str) -> dict[str, Any]:
    command = [
        sys.executable,
        str(SCRIPT),
        "--dry",
        "--data",
        "lognormal",
        "--answers",
        "l1",
        "--features",
        "3",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = ast.literal_eval(done.stdout)
    return found


def test_a_cell_is_measured() -> None:
    found = measured("--rows", "200")
    assert (found["rows"], found["features"], found["wrong"], found["undecided"]) == (200, 3, 0, 0)
    assert min(found[what] for what in ("read", "certified", "arrays", "qr", "size")) > 0
    assert found["failed"] is None


def test_a_cell_ends_at_the_limit() -> None:
    found = measured("--rows", "20000", "--limit", "0")
    assert (found["read"], found["failed"]) == (None, None)
    assert found["qr"] > 0
