"""The attacks' own settings, checked."""

from __future__ import annotations

import math
from typing import Any

from overexplain.errors import InvalidInput


def as_positive(value: Any, name: str) -> float:
    """A positive, finite number."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InvalidInput(f"{name} must be a positive number, got {value!r}")
    return number
