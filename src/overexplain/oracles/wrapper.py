"""What every oracle made from another one shares: it passes on what it does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point_or_rows
from overexplain.geometry.domain import Domain
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.protocol import Oracle, checked_explanation, is_closed_form, offers


class Wrapper:
    """The wrapped oracle's dimension, domain and labels.

    Its terms are those of `published` if they are given, which need not be true; else its `own`; else those of the oracle inside.
    """

    def __init__(self, oracle: Oracle, published: Mechanism | None = None, own: Mechanism | None = None) -> None:
        self.wrapped = oracle
        self._published = own if published is None else published
        self.closed_form = published is None and is_closed_form(oracle)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.wrapped.dimension

    @property
    def mechanism(self) -> Mechanism | None:
        """The published terms."""
        return self.wrapped.mechanism if self._published is None else self._published

    @property
    def domain(self) -> Domain | None:
        """Which inputs the service takes; None if nothing is known about it."""
        return getattr(self.wrapped, "domain", None)

    def _takes(self, x: FloatArray) -> bool:
        """True if nothing is known against x as an input."""
        return self.domain is None or self.domain.contains(x)

    def classify(self, x: ArrayLike) -> Any:
        """The wrapped oracle's label."""
        return self.wrapped.classify(x)


def terms_of(oracle: Oracle, wrapper: str) -> Mechanism:
    """The terms the oracle publishes; InvalidInput if it explains nothing."""
    terms = oracle.mechanism
    if terms is None or not offers(oracle, "explain"):
        raise InvalidInput(f"{wrapper} changes explanations, but the oracle inside gives none (mechanism is {terms})")
    return terms


def one_by_one(answer: Callable[[FloatArray], FloatArray | None], x: ArrayLike, dimension: int) -> Any:
    """`answer` of a point, or of every row of a batch: an all-NaN row where it is None."""
    points = as_point_or_rows(x, dimension)
    if points.ndim == 1:
        return answer(points.copy())
    rows = np.full(points.shape, np.nan)
    for i, row in enumerate(points):
        given = answer(row.copy())
        if given is not None:
            rows[i] = given
    return rows


def altered(oracle: Oracle, x: ArrayLike, change: Callable[[FloatArray, FloatArray], FloatArray]) -> Any:
    """The oracle's explanations after `change(questions, explanations)`, rows both; questions without answer stay without."""
    points = as_point_or_rows(x, oracle.dimension)
    if points.ndim == 1:
        answer = checked_explanation(oracle.explain(points.copy()), oracle.dimension)
        return None if answer is None else change(points[None], answer[None])[0]
    answers = np.array(oracle.explain(points.copy()), dtype=np.float64)
    if answers.shape != points.shape:
        raise DimensionMismatch(
            f"explain must return a row for each of the {len(points)} rows, the oracle inside returned shape {answers.shape}"
        )
    given = ~np.isnan(answers).all(axis=1)
    answers[given] = change(points[given], answers[given])
    return answers
