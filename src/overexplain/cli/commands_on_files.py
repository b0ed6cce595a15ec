"""The commands that look after files of logs: log check, merge, convert, show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from overexplain.cli.arguments import (
    FORMATS,
    AsJson,
    Distance,
    Mapped,
    Radius,
    Robustness,
    Slack,
    Tolerance,
    Work,
    WrongUsage,
    refuse_lonely_terms,
)

AnyLog = Annotated[Path, typer.Argument(metavar="LOG", help=f"A log: {FORMATS}.")]
AnyLogs = Annotated[list[Path], typer.Argument(metavar="LOG", help=f"Logs: {FORMATS}.")]


def read_rows(text: str) -> tuple[int | None, int | None] | int:
    """One row, or where rows start and stop, counted from 0, from the end if negative.

    >>> read_rows("5:10"), read_rows("-3:"), read_rows("7")
    ((5, 10), (-3, None), 7)
    """
    parts = [part.strip() for part in text.split(":")]
    digits = [part.removeprefix("-") for part in parts]
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in digits if part):
        raise typer.BadParameter(f"FIRST:STOP, counted from 0, or one row, e.g. 5:10, got {text!r}")
    numbers = [int(part) if part else None for part in parts]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    if numbers[0] is None:
        raise typer.BadParameter("FIRST:STOP, counted from 0, or one row, e.g. 5:10, got nothing")
    return numbers[0]


def check(
    logs: AnyLogs,
    mapping: Mapped = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    fit: Annotated[bool, Option("--fit/--no-fit", help="See whether any linear model fits.")] = True,
    time_limit: Annotated[
        float, Option("--time-limit", min=0, metavar="SECONDS", help="For that: then say how many rows were looked at.")
    ] = 60.0,
    as_json: AsJson = False,
) -> Work:
    """Say what is in logs, and whether any linear model fits.

    Ends with exit code 3 if a file cannot be read, with 4 if a log contradicts itself.
    """
    refuse_lonely_terms(distance, tolerance, slack, robustness, radius)

    def work() -> int:
        from overexplain.cli.log_check import Request, run_check
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        return run_check(Request(tuple(logs), tuple(mapping or ()), terms, fit, time_limit, as_json))

    return work


def merge(
    logs: AnyLogs,
    output: Annotated[Path, Option("--output", "-o", metavar="OUT", help=f"Write here: {FORMATS}.")],
    mapping: Mapped = None,
    as_json: AsJson = False,
) -> Work:
    """Make one log of several.

    A row that is in more than one of them, equal in every column, is the same request and counts once. Features go by
    name.
    """
    if len(logs) < 2:
        raise WrongUsage("name two logs or more; see overexplain log merge --help")

    def work() -> None:
        from overexplain.cli.log_convert import Request, run_merge
        from overexplain.cli.terms import Terms

        run_merge(Request(tuple(logs), output, tuple(mapping or ()), Terms(), as_json))

    return work


def convert(
    log: AnyLog,
    output: Annotated[Path, typer.Argument(metavar="OUT", help=f"Write here: {FORMATS}.")],
    mapping: Mapped = None,
    distance: Distance = None,
    robustness: Robustness = None,
    radius: Radius = None,
    tolerance: Tolerance = None,
    slack: Slack = "0",
    as_json: AsJson = False,
) -> Work:
    """Write a log in another format.

    With --distance, explanations that state no terms state these from then on.
    """
    refuse_lonely_terms(distance, tolerance, slack, robustness, radius)

    def work() -> None:
        from overexplain.cli.log_convert import Request, run_convert
        from overexplain.cli.terms import Terms

        terms = Terms(distance, tolerance, slack, robustness, radius)
        run_convert(Request((log,), output, tuple(mapping or ()), terms, as_json))

    return work


def show(
    log: AnyLog,
    count: Annotated[int | None, Option("-n", min=1, metavar="N", help="Show so many rows (20).")] = None,
    rows: Annotated[
        Any,
        Option("--rows", parser=read_rows, metavar="FIRST:STOP", help="Show these, counted from 0; one alone in full."),
    ] = None,
    mapping: Mapped = None,
    as_json: AsJson = False,
) -> Work:
    """Print rows of a log, a line each.

    What it prints are the data of applicants: mind where it goes.
    """

    def work() -> None:
        from overexplain.cli.log_show import Request, run_show

        run_show(Request(log, tuple(mapping or ()), count, rows, as_json))

    return work
