"""Ties by the thousand: points of whole-number data lie on faces of the cone, and many on the same one.

A point that float64 cannot settle lies, as a rule, in the span of fewer logged rows than there are features: on a face. Once one
of them is settled exactly, its proof names the face; the rows that lie in it, exactly, are a log of their own whose cone is part
of the whole, and there the other points of the face are no ties any more. Only what is certain is taken from there.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.knowledge.conflict import only
from overexplain.knowledge.facts import Facts
from overexplain.knowledge.region import Region
from overexplain.knowledge.settle import Settled
from overexplain.knowledge.smooth import OPEN
from overexplain.knowledge.span import Span

WORTH = 16
"""Points that must be waiting for a face to be worth its own region."""


@final
class Faces:
    """Learns from settled points what settles others; for logs without lengths."""

    def __init__(self, facts: Facts, exponents: IntArray) -> None:
        self._facts, self._exponents = facts, exponents
        self._queries = facts.queries()
        self._seen: set[bytes] = set()

    def learn(self, settled: Settled) -> Region | None:
        """The face that a proof names, if it is a new one."""
        rows = [term.row for term in settled.terms if term.row is not None]
        if not rows or not self._facts.is_linear or self._facts.explained:
            return None
        held = Span.of(self._queries[np.isin(self._facts.rows, rows)], self._exponents)
        if held.is_whole:
            return None
        inside, _ = held.reached(self._queries, self._exponents)
        key = inside.tobytes()
        if key in self._seen:
            return None
        self._seen.add(key)
        return Region(only(self._facts, self._facts.rows[inside].tolist()))


def certain_on(face: Region, X: FloatArray) -> NDArray[np.int8]:
    """+1 or −1 where the face's own rows prove it, else OPEN."""
    codes = face.codes(X)
    codes[np.abs(codes) != 1] = OPEN
    return codes
