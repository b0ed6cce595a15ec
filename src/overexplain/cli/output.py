"""What every command prints with: JSON, the version, and progress that only a terminal sees."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import typer

from overexplain._files import replacing

MOST_PROCESSES = 8
WORTH_PROCESSES = 5_000

FORECAST_FROM = 600.0
"""Seconds of work so far whose speed is taken for that of the rest: steps may be minutes apart."""


def version() -> str:
    """The version that is installed."""
    try:
        return installed_version("overexplain")
    except PackageNotFoundError:
        return "(not installed)"


def processors(numbers: int) -> int | None:
    """How many processes may share the work on so many numbers; None: starting them would take longer than it saves."""
    if numbers < WORTH_PROCESSES:
        return None
    return min(
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_PROCESSES
    )


def write_texts(paths: Iterable[Path], text_of: Callable[[Path], str]) -> None:
    """Write what `text_of` gives for every name; a reader sees the old file or the whole new one."""
    for path in paths:
        text = text_of(path)
        with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            file.write(text)


def print_json(entries: dict[str, Any]) -> None:
    """Print one JSON object, on one line."""
    typer.echo(json.dumps({"overexplain": version(), **entries}, allow_nan=False))


@contextmanager
def bar(doing: str) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, moved on by calling it with (what is being done, how far, of how many).

    It forecasts how long that will take. Another number in the end is other work, which has a speed of its own.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=FORECAST_FROM) as progress:
        task = progress.add_task(doing, total=None)

        def show(doing: str, done: int, total: int) -> None:
            is_new = doing != progress.tasks[0].description  # other work is shown at once, however soon it is done
            progress.update(task, description=doing, completed=done, total=total, refresh=is_new)

        yield show


@contextmanager
def counter(noun: str, count: Callable[[], int]) -> Iterator[None]:
    """A line on stderr that shows a growing number as long as the work lasts."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(stderr=True), transient=True, get_renderable=lambda: Text(f"{count():,} {noun}")):
        yield
