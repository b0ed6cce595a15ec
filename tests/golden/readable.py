"""Files as text that can be reviewed as a diff: databases and tables dumped, pages as their words, proofs a line each."""

from __future__ import annotations

import io
import json
import sqlite3
from html.parser import HTMLParser
from typing import Any

import pyarrow.parquet as pq

WIDTH = 130


def readable(name: str, data: bytes) -> str:
    """The text that stands for a file."""
    ending = name.rpartition(".")[2]
    if ending == "parquet":
        return _table(data)
    if ending == "sqlite":
        return _database(data)
    text = data.decode("utf-8")
    if ending == "html":
        return _page(text)
    if ending == "json":
        return laid_out(json.loads(text))
    if ending == "jsonl" and '"proof"' in text.partition("\n")[0]:
        return "".join(_proof(json.loads(line)) + "\n" for line in text.splitlines())
    return text


def laid_out(value: Any, indent: int = 0) -> str:
    """JSON with a line for what fits into one, so that a changed number is a changed line and a grid stays a grid."""
    line = json.dumps(value, ensure_ascii=False)
    if _is_flat(value) or 0 < indent <= WIDTH - len(line):
        return line
    inside = " " * (indent + 1)
    if isinstance(value, dict):
        entries = [
            f"{inside}{json.dumps(key, ensure_ascii=False)}: {laid_out(entry, indent + 1)}"
            for key, entry in value.items()
        ]
        return "{\n" + ",\n".join(entries) + "\n" + " " * indent + "}"
    entries = [inside + laid_out(entry, indent + 1) for entry in value]
    return "[\n" + ",\n".join(entries) + "\n" + " " * indent + "]"


def _is_flat(value: Any) -> bool:
    """A number, a text, or a list of them."""
    return not isinstance(value, dict) and not any(isinstance(entry, dict | list) for entry in _entries(value))


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _table(data: bytes) -> str:
    table = pq.read_table(io.BytesIO(data))
    names = [f"{field.name}: {field.type}" for field in table.schema]
    rows = [json.dumps(list(row.values())) for row in table.to_pylist()]
    return "\n".join([", ".join(names), *rows]) + "\n"


def _database(data: bytes) -> str:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data[:18] + b"\x01\x01" + data[20:])  # a database in memory has no write-ahead log
        pragmas = [
            f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*pragmas, *connection.iterdump()]) + "\n"
    finally:
        connection.close()


def _proof(proof: dict[str, Any]) -> str:
    """What a proof shows. What it rests on is left out: several proofs are as good, the last digits of a processor's sums
    decide which is found, and `verify` checks them."""
    return f"row {proof.get('row')} {proof['proof']} {proof.get('verdict', '')}".rstrip()


class _Words(HTMLParser):
    """The words of a page, a line a block; drawings by their words alone, scripts and styles left out."""

    BLOCKS = frozenset(
        ("p", "h1", "h2", "h3", "h4", "li", "tr", "dt", "dd", "caption", "figcaption", "summary", "title", "text", "option", "svg")
        + ("header", "footer", "section")
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = [""]
        self.data: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._inside = "data" if ("type", "application/json") in attrs else tag
        elif tag in self.BLOCKS:
            self.lines.append("")
        elif tag in ("td", "th"):
            self.lines[-1] += " | "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = ""
        elif tag in self.BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data.append(data)
        elif not self._inside:
            self.lines[-1] += data


def _page(text: str) -> str:
    """Words and tables of a page, and the data it carries."""
    reader = _Words()
    reader.feed(text)
    reader.close()
    lines = [" ".join(line.split()) for line in reader.lines]
    data = ["data of the page:\n" + laid_out(json.loads(entry)) for entry in reader.data]
    return "\n".join([*(line for line in lines if line), *data]) + "\n"
