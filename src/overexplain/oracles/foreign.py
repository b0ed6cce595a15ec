"""What foreign objects say, read as an oracle's answers: labels by name, every spelling of "no answer" as None and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from overexplain.errors import BudgetExhausted, DimensionMismatch, InvalidInput
from overexplain.geometry.arrays import FloatArray, as_point_or_rows
from overexplain.geometry.hyperplane import NO, YES
from overexplain.geometry.mechanism import Mechanism
from overexplain.oracles.protocol import checked_label


class Foreign:
    """An oracle made of `ask`, what the foreign object says about one point, and `label`, its ±1; either may be None.

    An answer is one point, or several candidates as rows, of which the first usable one counts. `read` finds them in what
    `ask` gave. No answer, whatever its spelling, is None and counted in `failures`:

    "None", "empty", "NaN row" (partly NaN, too), "not finite" (infinite), "exception" (kept in `last_error`) and, unless
    the mechanism is exact, "echo" (the question itself, also as float32) and "no flip" (by `label`, asked on the side).

    Under an exact mechanism (slack 0) answers lie on the boundary, where the label is a coin toss and the answer to a
    question on the boundary is the question: there both are passed on.
    """

    def __init__(
        self,
        dimension: Any,
        mechanism: Mechanism | str | None,
        ask: Callable[[FloatArray], Any] | None,
        label: Callable[[FloatArray], int] | None,
        read: Callable[[Any], Any] | None = None,
    ) -> None:
        if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 1:
            raise InvalidInput(f"dimension is the number of features, a positive whole number; got {dimension!r}")
        if ask is None and label is None:
            raise InvalidInput("an oracle needs explain, classify, or both; got neither")
        self._dimension = int(dimension)
        self._mechanism = _published(mechanism, explains=ask is not None)
        if self._mechanism is not None:
            self._mechanism.fits(self._dimension)
        self._ask, self._label, self._read = ask, label, read
        self.failures: Counter[str] = Counter()
        self.last_error: Exception | None = None
        # A verb that is not offered must not look as if it were (see `offers`).
        if ask is None:
            self.explain = None  # type: ignore[method-assign, assignment]
        if label is None:
            self.classify = None  # type: ignore[method-assign, assignment]

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self._dimension

    @property
    def mechanism(self) -> Mechanism | None:
        """The terms taken for published; None without explanations."""
        return self._mechanism

    def classify(self, x: ArrayLike) -> Any:
        """+1 (Yes) or −1 (No): an int for a point, an int8 array for rows (asked one by one)."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self._label_of(points)
        return np.array([self._label_of(row) for row in points], dtype=np.int8)

    def explain(self, x: ArrayLike) -> Any:
        """The explanation or None; for rows (asked one by one) rows, all NaN for None."""
        points = as_point_or_rows(x, self.dimension)
        if points.ndim == 1:
            return self._answer(points)
        answers = np.full(points.shape, np.nan)
        for row, point in zip(answers, points, strict=True):
            answer = self._answer(point)
            if answer is not None:
                row[:] = answer
        return answers

    def _label_of(self, point: FloatArray) -> int:
        assert self._label is not None
        return self._label(point.copy())  # foreign code may write into its input

    def _answer(self, point: FloatArray) -> FloatArray | None:
        found = self._point_or_failure(point)
        if isinstance(found, str):
            self.failures[found] += 1
            return None
        return found

    def _point_or_failure(self, point: FloatArray) -> FloatArray | str:
        """The answer, or how its absence was spelled."""
        assert self._ask is not None
        try:
            said = self._ask(point.copy())
        except BudgetExhausted:
            raise  # was not asked
        except Exception as error:
            self.last_error = error
            return "exception"
        # Outside the try: an answer of the wrong kind is a broken contract, not a missing answer.
        if self._read is not None:
            said = self._read(said)
        if said is None:
            return "None"
        candidates = _candidates(said, self.dimension)
        if not candidates:
            return "empty"
        assert self._mechanism is not None
        exact = self._mechanism.slack == 0
        spelled = [_spelled(candidate, point, exact) for candidate in candidates]
        usable = [candidate for candidate, failure in zip(candidates, spelled, strict=True) if not failure]
        if not usable:
            return spelled[0]
        if exact or self._label is None:
            return usable[0]
        here = self._label_of(point)
        return next((candidate for candidate in usable if self._label_of(candidate) != here), "no flip")


def _published(mechanism: Mechanism | str | None, *, explains: bool) -> Mechanism | None:
    """The mechanism as given; where answers come without terms, one that promises nothing but another label."""
    if not explains:
        if mechanism is not None:
            raise InvalidInput(f"a mechanism says how a service explains, but explain is missing; got {mechanism!r}")
        return None
    if mechanism is None:
        return Mechanism(None, slack=None)
    return mechanism if isinstance(mechanism, Mechanism) else Mechanism(mechanism)


def _candidates(said: Any, dimension: int) -> list[FloatArray]:
    """The points in an answer: none in an empty one."""
    try:
        given = np.asarray(said)
        if np.iscomplexobj(given):
            raise TypeError
        rows = np.array(given, dtype=np.float64)  # a copy: a service may reuse its buffer
    except Exception:  # whatever the foreign type raises
        raise InvalidInput(
            f"an explanation is numbers or None, the service returned {said!r}; encode categories as numbers first"
        ) from None
    if rows.size == 0:
        return []
    if rows.ndim not in (1, 2) or rows.shape[-1] != dimension:
        raise DimensionMismatch(
            f"an explanation is a point with {dimension} entries, or such points as rows; "
            f"the service returned shape {rows.shape}"
        )
    return list(rows.reshape(-1, dimension))


def _spelled(candidate: FloatArray, point: FloatArray, exact: bool) -> str:
    """How this candidate says "no answer" ("" if it does not), as far as it shows without asking for labels."""
    if np.isnan(candidate).any():
        return "NaN row"
    if not np.isfinite(candidate).all():
        return "not finite"
    if exact:
        return ""
    with np.errstate(over="ignore", under="ignore"):
        single = point.astype(np.float32)
    return "echo" if np.array_equal(candidate, point) or np.array_equal(candidate, single) else ""


def label_by_name(answer: Any, labels: Mapping[Any, int] | None) -> int:
    """The label as ±1: by `labels` where given, else only what cannot be misread (−1, +1, False, True)."""
    value = _single(answer)
    if labels is None:
        if isinstance(value, bool):
            return YES if value else NO
        if isinstance(value, int | float) and value in (YES, NO):
            return checked_label(value)
        raise InvalidInput(
            f"classify returned {value!r}: without labels=, only -1 (No), +1 (Yes), False and True are understood; "
            "say which label is which, e.g. labels={0: -1, 1: +1}"
        )
    try:
        return labels[value]
    except (KeyError, TypeError):
        raise InvalidInput(f"classify returned {value!r}, labels= has only {', '.join(map(repr, labels))}") from None


def label_by_class(answer: Any, positive: Any) -> int:
    """+1 if a model's prediction for one row is the class `positive`, else −1.

    The prediction is a label, or one row of scores, a column per class: then the class is the number of the largest.
    """
    try:
        scores = np.asarray(answer)
    except Exception:  # whatever the foreign type raises
        raise InvalidInput(f"predict must return labels, it returned {answer!r}") from None
    if scores.ndim == 2 and len(scores) == 1 and scores.shape[1] > 1:
        return _best_class(scores[0], positive)
    value = _single(answer)
    if value is None or isinstance(value, str) != isinstance(positive, str):
        raise InvalidInput(f"predict returned {value!r}, which cannot be compared with positive={positive!r}")
    if isinstance(value, float) and not value.is_integer():
        raise InvalidInput(
            f"predict returned {value!r}, which is no label; if it is a probability, "
            "say where Yes begins: predict=lambda X: probability(X) >= 0.5"
        )
    return YES if value == positive else NO


def _best_class(scores: Any, positive: Any) -> int:
    if not np.issubdtype(scores.dtype, np.number) or np.isnan(scores).any():
        raise InvalidInput(f"predict returned {scores!r} for one row; a number per class, or one label, was expected")
    if isinstance(positive, str) or positive not in range(len(scores)):
        raise InvalidInput(
            f"predict returned scores of {len(scores)} classes, so positive= is a column, 0 to {len(scores) - 1}; "
            f"got {positive!r}"
        )
    return YES if int(np.argmax(scores)) == positive else NO


def _single(answer: Any) -> Any:
    """The one Python value in `answer`, be it a number, a string or an array of one."""
    try:
        values = np.asarray(answer)
        if values.size == 1:
            return values.item()
    except Exception:  # whatever the foreign type raises
        raise InvalidInput(f"one label was expected for one point, the service returned {answer!r}") from None
    raise InvalidInput(f"one label was expected for one point, the service returned shape {values.shape}")
