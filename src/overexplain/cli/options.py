"""How options that are more than a word or a number are read; kept free of heavy imports, for --help."""

from __future__ import annotations

import math

import typer

ANY = "any"
SECRET = "secret"
MOST_CELLS = 2_000

Size = tuple[int, int]
Span = tuple[float, float]


def read_slack(text: str) -> float | None:
    """A number ≥ 0, or None for 'any'.

    >>> read_slack("0.1"), read_slack("any")
    (0.1, None)
    """
    if text == ANY:
        return None
    try:
        slack = float(text)
    except ValueError:
        slack = math.nan
    if not (math.isfinite(slack) and slack >= 0):
        raise typer.BadParameter(f"a number, 0 or more, or 'any', got {text!r}")
    return slack


def read_radius(text: str) -> float | str:
    """A number ≥ 0, or `SECRET`.

    >>> read_radius("0.1"), read_radius("secret")
    (0.1, 'secret')
    """
    if text == SECRET:
        return SECRET
    try:
        radius = float(text)
    except ValueError:
        radius = math.nan
    if not (math.isfinite(radius) and radius >= 0):
        raise typer.BadParameter(f"a number, 0 or more, or 'secret', got {text!r}")
    return radius


def read_size(text: str) -> Size:
    """Columns and rows.

    >>> read_size("61x31")
    (61, 31)
    """
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise typer.BadParameter(f"columns x rows, e.g. 61x31, got {text!r}")
    across, up = (int(part[:9]) for part in parts)
    if not (2 <= across <= MOST_CELLS and 2 <= up <= MOST_CELLS):
        raise typer.BadParameter(f"from 2 to {MOST_CELLS} columns and rows, got {text!r}")
    return across, up


def read_ranges(text: str) -> tuple[Span, Span]:
    """The range of the feature across and of the feature up.

    >>> read_ranges("0:100,-1:2.5")
    ((0.0, 100.0), (-1.0, 2.5))
    """
    try:
        (left, right), (low, high) = (map(float, span.split(":")) for span in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"LOW:HIGH,LOW:HIGH, first across, then up, got {text!r}") from None
    for start, end in ((left, right), (low, high)):
        if not (math.isfinite(end - start) and start < end):
            raise typer.BadParameter(f"a range goes from a lower to a higher number, got {start:g}:{end:g}")
    return (left, right), (low, high)


def read_numbers(text: str) -> list[int]:
    """Whole numbers, divided by commas.

    >>> read_numbers("10,20, 200")
    [10, 20, 200]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise typer.BadParameter(f"whole numbers divided by commas, e.g. 10,20,200, got {text!r}")
    return [int(part[:9]) for part in parts]
