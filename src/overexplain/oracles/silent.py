"""Services that do not answer every question: they fail now and then, or explain one side only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import InvalidInput
from overexplain.geometry.arrays import FloatArray, as_generator, as_point_or_rows
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.degraded import CANDIDATES, Rng, not_negative
from overexplain.oracles.protocol import Oracle, checked_explanation
from overexplain.oracles.wrapper import Wrapper, terms_of

Failure = Literal["none", "empty", "nan", "echo", "raise", "no flip"]


@final
class Flaky(Wrapper):
    """A service that fails to explain a share `rate` of the questions, in the spelling `failure`:

    "none" (None), "empty" ([]), "nan" (an all-NaN row), "echo" (the question), "raise" (an exception) or "no flip" (a point that
    moved but stays on the question's side). In a batch the first three are all-NaN rows. The terms say nothing about it, but that
    points which do not flip the label are no optimal ones (slack=None).
    """

    def __init__(
        self,
        oracle: Oracle,
        rate: float,
        failure: Failure = "none",
        *,
        rng: Rng = None,
        published: Mechanism | None = None,
    ) -> None:
        terms = terms_of(oracle, "Flaky")
        self.rate = not_negative(rate, "rate")
        if self.rate > 1:
            raise InvalidInput(f"rate is a share between 0 and 1, got {rate!r}")
        if failure not in get_args(Failure):
            raise InvalidInput(f"failure must be one of {', '.join(get_args(Failure))}, got {failure!r}")
        self.failure = failure
        self._rng = as_generator(rng)
        if published is None and failure == "no flip":
            published = replace(terms, slack=None)
        super().__init__(oracle, published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, or a failure."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self._fail(points.copy()) if self._rng.random() < self.rate else self.wrapped.explain(points.copy())
        failed = self._rng.random(len(points)) < self.rate
        if failed.any() and self.failure == "raise":
            self._fail(points[int(failed.argmax())])
        rows = np.full(points.shape, np.nan)
        if not failed.all():
            rows[~failed] = self.wrapped.explain(points[~failed])
        if self.failure in ("echo", "no flip"):
            for i in np.flatnonzero(failed):
                given = self._fail(points[i].copy())
                if given is not None:
                    rows[i] = given
        return rows

    def _fail(self, x: FloatArray) -> Any:
        if self.failure == "raise":
            raise RuntimeError("no counterfactual found")
        answers: dict[str, Any] = {"none": None, "empty": [], "nan": np.full(len(x), np.nan), "echo": x}
        return answers[self.failure] if self.failure in answers else self._same_side(x)

    def _same_side(self, x: FloatArray) -> FloatArray | None:
        """A point short of the boundary on the way to the true explanation, or one further away from it."""
        answer = checked_explanation(self.wrapped.explain(x.copy()), self.dimension)
        if answer is None:
            return None
        label = self.wrapped.classify(x)
        moved = x + np.array([[0.9], [0.5], [0.1], [-0.5]]) * (answer - x)
        if self.domain is not None:
            moved = np.vstack([moved, self.domain.sample(self._rng, CANDIDATES)])
        return next((z for z in moved if self._takes(z) and self.wrapped.classify(z) == label), x)


@final
class OneSided(Wrapper):
    """Explains only questions that are answered with the label `side` (the denied, unless said otherwise); None for the others."""

    def __init__(self, oracle: Oracle, side: int = NO, *, published: Mechanism | None = None) -> None:
        terms_of(oracle, "OneSided")
        if side not in (YES, NO):
            raise InvalidInput(f"side must be +1 (Yes) or -1 (No), got {side!r}")
        self.side = int(side)
        super().__init__(oracle, published)

    def explain(self, x: ArrayLike) -> Any:
        """The wrapped oracle's explanation, if the question is on the side that gets one."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self.wrapped.explain(points.copy()) if self.wrapped.classify(points.copy()) == self.side else None
        rows = np.full(points.shape, np.nan)
        served = np.asarray(self.wrapped.classify(points.copy())) == self.side
        if served.any():
            rows[served] = self.wrapped.explain(points[served])
        return rows
