"""What is kept of a case: its text (shown), its exit codes and error lines (frozen), its verdicts (frozen)."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq

from golden.normal import frozen_error, normal
from golden.readable import laid_out, readable
from golden.running import Outcome

GATE_FAILED = 1
LETTERS = {"YES": "Y", "NO": "N", "UNKNOWN": "?", "BOUNDARY": "B", "UNDECIDED": "-"}
CODES = {1: "Y", -1: "N", 0: "?", 2: "B", 3: "-"}


def shown(outcome: Outcome) -> str:
    """Everything a case said and wrote, normalised."""
    parts = []
    for step in outcome.steps:
        parts.append(f"$ overexplain {step.command}\n[exit {step.code}]\n{_printed(step.out)}")
        if step.err:
            parts.append(f"[stderr]\n{step.err}")
    seen: dict[bytes, str] = {}
    for name, data in outcome.files.items():
        same = seen.setdefault(data, name)
        text = _file(name, data, outcome.files) if same == name else f"(the same as {same})\n"
        parts.append(f"[file {name}]\n{text}")
    text = "\n".join(part.rstrip("\n") + "\n" for part in parts)
    return "\n".join(line.rstrip() for line in normal(text, outcome.place).splitlines()) + "\n"


def _file(name: str, data: bytes, files: dict[str, bytes]) -> str:
    """A file as text; the data that a page carries only if it is not beside it."""
    text = readable(name, data)
    for other in files:
        if name.endswith(".html") and other.endswith(".json"):
            text = text.replace(readable(other, files[other]), f"(the same as {other})")
    return text


def _printed(text: str) -> str:
    """JSON is laid out: what a command prints on one line could not be reviewed."""
    try:
        return laid_out(json.loads(text))
    except ValueError:
        return text


def frozen(outcome: Outcome) -> list[dict[str, Any]]:
    """The exit code of every step, and the error lines of those that failed."""
    entries = []
    for step in outcome.steps:
        entry: dict[str, Any] = {"command": step.command, "exit": step.code}
        if step.code > GATE_FAILED:
            lines = [line for line in step.err.splitlines() if line.startswith("error: ")]
            entry["errors"] = [frozen_error(normal(line, outcome.place)) for line in lines]
        entries.append(entry)
    return entries


def verdicts(outcome: Outcome) -> dict[str, str]:
    """A letter a point for every file of verdicts and every map of a case."""
    found = {name: letters for name, data in outcome.files.items() if (letters := _of_file(name, data))}
    for number, step in enumerate(outcome.steps):
        if step.command.startswith("map ") and step.out.startswith("{"):
            codes = json.loads(step.out)["codes"]
            found[f"map {number}"] = "".join(CODES[code] for row in codes for code in row)
    return found


def _of_file(name: str, data: bytes) -> str:
    if name.endswith(".csv"):
        rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(data.decode("utf-8"))))
    elif name.endswith(".parquet"):
        rows = pq.read_table(io.BytesIO(data)).to_pylist()
    else:
        return ""
    return "".join(LETTERS[row["verdict"]] for row in rows) if rows and "verdict" in rows[0] else ""
