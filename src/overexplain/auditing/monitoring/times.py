"""Seconds since the epoch as a text."""

from __future__ import annotations

import datetime
import math


def iso(seconds: float) -> str | None:
    """The time in UTC, to the second; None if it is not known.

    >>> iso(1772619753.0), iso(float("nan"))
    ('2026-03-04T10:22:33Z', None)
    """
    if not math.isfinite(seconds):
        return None
    try:
        when = datetime.datetime.fromtimestamp(math.floor(seconds), datetime.UTC)
    except (OverflowError, ValueError, OSError):  # a year that no calendar has
        return None
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
