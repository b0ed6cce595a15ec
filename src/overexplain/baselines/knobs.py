"""The attacks' own settings, checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

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


def as_whole(value: Any, name: str) -> int:
    """A whole number, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} must be a whole number, at least 1, got {value!r}")
    return int(value)
