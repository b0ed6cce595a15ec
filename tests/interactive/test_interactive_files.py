"""What the interactive page consists of: a few small files, nothing inline, no other address."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "interactive"
PAGE = (FOLDER / "index.html").read_text(encoding="utf-8")


def test_the_policy_is_strict_and_nothing_is_inline() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', PAGE)
    assert policy
    assert policy.group(1).startswith("default-src 'none'; ")
    assert "unsafe" not in policy.group(1)
    assert re.findall(r"<script(?! src=)|<style|\sstyle=|\son\w+=", PAGE) == []


def test_it_is_small_and_every_file_is_used() -> None:
    named = re.findall(r'(?:src|href)="([^"#]+)"', PAGE)
    assert sorted(["index.html", *named]) == sorted(path.name for path in FOLDER.iterdir())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 100_000


def test_it_has_no_address_of_another_place() -> None:
    everything = "".join(path.read_text(encoding="utf-8") for path in FOLDER.iterdir())
    assert set(re.findall(r"\w+://[^\"'\s)]*", everything)) == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import)\b *\(", everything)
