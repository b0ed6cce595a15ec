"""Which outcomes in a file of DiCE mean Yes, and which counterfactuals change theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import BoolArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.log.dice.tables import DiceTables, brief, where

MOST_SHOWN = 5


@final
class Outcomes:
    """The outcomes as labels: `labels` of the queries and `answer_labels` of the counterfactuals; 0 where there is none."""

    def __init__(self, tables: DiceTables) -> None:
        self._tables = tables
        places = [(i, None) for i in range(len(tables.outcomes))]
        answers = [tables.place_of_answer(k) for k in range(len(tables.answer_outcomes))]
        self._said = [*zip(tables.outcomes, places, strict=True), *zip(tables.answer_outcomes, answers, strict=True)]
        read = self._chosen(tables.yes) if tables.yes is not None else self._binary()
        self.labels: NDArray[np.int8] = read[: len(places)]
        self.answer_labels: NDArray[np.int8] = read[len(places) :]

    def flips(self) -> BoolArray:
        """Which counterfactuals have another outcome than their query, as far as is said."""
        queries = self.labels[self._tables.asked]
        return np.asarray((queries == 0) | (self.answer_labels == 0) | (queries != self.answer_labels))

    def _chosen(self, yes: str) -> NDArray[np.int8]:
        """The labels where one outcome means Yes and all others No."""
        labels = [0 if value is None else YES if _is(value, yes) else NO for value, _ in self._said]
        if YES not in labels and NO in labels:
            seen = _listed([value for value, _ in self._said])
            raise InvalidInput(f"no outcome is {yes!r}, which the mapping says means Yes; there are {seen}")
        return np.array(labels, dtype=np.int8)

    def _binary(self) -> NDArray[np.int8]:
        """The labels where outcomes are 0 and 1, or -1 and 1."""
        labels, lows = [], set()
        for value, place in self._said:
            number = value if type(value) in (int, float, bool) else None
            if value is not None and (number is None or number not in (-1, 0, 1)):
                raise InvalidInput(
                    f"{where(place)}: the outcome {self._tables.outcome!r} is {brief(value)}, neither 0 nor 1; say which "
                    "outcome means Yes: --map yes=..., mapping={'yes': ...} (all others then mean No)"
                )
            labels.append(0 if number is None else YES if number == 1 else NO)
            lows.add(number if number != 1 else None)
        if {-1, 0} <= lows:
            raise InvalidInput(
                "outcomes are -1, 0 and 1; say which one means Yes: --map yes=1 (all others then mean No)"
            )
        return np.array(labels, dtype=np.int8)


def _is(value: Any, yes: str) -> bool:
    """Whether an outcome is the one that a text names: 1.0 is '1', true is 'true'."""
    if isinstance(value, str):
        return value == yes
    if isinstance(value, bool):
        return str(value).lower() == yes.lower()
    try:
        return isinstance(value, int | float) and math.isfinite(number := float(yes)) and value == number
    except ValueError:
        return False


def _listed(values: Sequence[Any]) -> str:
    seen = list(dict.fromkeys(brief(value) for value in values if value is not None))
    return ", ".join(seen[:MOST_SHOWN]) + (f" and {len(seen) - MOST_SHOWN} more" if len(seen) > MOST_SHOWN else "")
