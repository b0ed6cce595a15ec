"""What a service must offer to be asked, and how one answer is checked before anyone uses it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.arrays import FloatArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism


@runtime_checkable
class Oracle(Protocol):
    """A service with two verbs. Each takes a point, or a batch of rows.

    `classify(x)` gives ±1 or a bool (a batch: an array of ±1). `explain(x)` gives a point, or None if the service has no answer
    (a batch: rows, an all-NaN row for None). A service that gives only labels has ``mechanism = None`` and need not define
    `explain`; one that only explains need not define `classify`.
    """

    @property
    def dimension(self) -> int:
        """The number of features."""

    @property
    def mechanism(self) -> Mechanism | None:
        """The published terms; None for a service that only gives labels."""

    def classify(self, x: Any, /) -> Any:
        """+1 (Yes) or −1 (No)."""

    def explain(self, x: Any, /) -> Any:
        """The explanation, or None."""


def offers(oracle: Any, verb: str) -> bool:
    """True if the oracle, and every oracle it wraps, defines this verb ("classify" or "explain")."""
    if not callable(getattr(oracle, verb, None)):
        return False
    inner = getattr(oracle, "wrapped", None)
    return inner is None or offers(inner, verb)


def is_closed_form(oracle: Any) -> bool:
    """True if the answers are this package's own formulas: they are what their terms say, and need no confirmation.

    A class of one's own can say so, too, by ``closed_form = True``; an oracle around another is what it says, else what that is.
    """
    said = getattr(oracle, "closed_form", None)
    if said is not None:
        return bool(said)
    inner = getattr(oracle, "wrapped", None)
    return inner is not None and is_closed_form(inner)


def checked_label(answer: Any) -> int:
    """The label as an int, if the service said −1 or +1, False or True."""
    if isinstance(answer, bool | np.bool_):
        return YES if answer else NO
    try:
        value = float(answer)
    except Exception:  # whatever the service's own type raises
        raise InvalidInput(f"classify must return -1 or +1, the service returned {answer!r}") from None
    if value not in (YES, NO):
        hint = "; map 0/1 to -1/+1 first (2*y - 1)" if value == 0 else ""
        raise InvalidInput(f"classify must return -1 (No) or +1 (Yes), the service returned {answer!r}{hint}")
    return int(value)


def checked_explanation(answer: Any, dimension: int) -> FloatArray | None:
    """The explanation as a point; None where the service says so by None, an empty list or an all-NaN row."""
    if answer is None:
        return None
    try:
        given = np.asarray(answer)
        if np.iscomplexobj(given):
            raise TypeError
        point = np.array(given, dtype=np.float64)  # a copy: a service may reuse its buffer
    except Exception:  # whatever the service's own type raises
        raise InvalidInput(f"explain must return numbers or None, the service returned {answer!r}") from None
    if point.size == 0:
        return None
    if point.shape != (dimension,):
        raise DimensionMismatch(
            f"explain must return a point with {dimension} entries, the service returned shape {point.shape}"
        )
    finite = np.isfinite(point)
    if finite.all():
        return point
    if np.isnan(point).all():
        return None
    k = int(np.flatnonzero(~finite)[0])
    raise NotFinite(
        f"the service returned {point[k]} in entry {k} of an explanation; all finite, or None, is an answer"
    )
