"""What one row of a log is, and the checks every value passes before it becomes part of one."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overexplain._texts import is_unicode
from overexplain.errors import DimensionMismatch, InvalidInput, NotFinite
from overexplain.geometry.arrays import BoolArray, FloatArray
from overexplain.geometry.mechanism import Mechanism

LABEL_HINT = "a label is +1 (Yes) or -1 (No); if the service says 0/1 or False/True, use 2*y-1"


class Status(enum.IntEnum):
    """What became of the question for an explanation."""

    NOT_ASKED = 0
    ASKED = 1
    """asked, and an explanation came"""
    NONE = 2
    """asked, and the service has none"""
    FAILED = 3
    """asked, and the request failed"""

    @property
    def text(self) -> str:
        """The name in files and frames: 'not-asked', 'asked', 'none', 'failed'."""
        return self.name.lower().replace("_", "-")


# Looking a member up costs 2 µs in Python 3.11; these are needed for every row.
NOT_ASKED, ASKED, NONE = Status.NOT_ASKED, Status.ASKED, Status.NONE
STATUSES = tuple(Status)


@final
@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """One request and its answer; what is missing is None."""

    point: FloatArray
    label: int | None = None
    explanation: FloatArray | None = None
    status: Status = Status.NOT_ASKED
    mechanism: Mechanism | None = None
    client: str | None = None
    time: float | None = None
    source: str | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        rest = ("label", "status", "mechanism", "client", "time", "source")
        return all(getattr(self, name) == getattr(other, name) for name in rest) and all(
            np.array_equal(mine, theirs) if mine is not None and theirs is not None else mine is theirs
            for mine, theirs in ((self.point, other.point), (self.explanation, other.explanation))
        )


@final
class MechanismTable:
    """The distinct mechanisms of a log, numbered in order of first use."""

    def __init__(self) -> None:
        self.known: list[Mechanism] = []
        self._ids: dict[Mechanism, int] = {}
        self._last: Mechanism | None = None
        self._last_id = -1

    def __contains__(self, mechanism: Mechanism) -> bool:
        return mechanism is self._last or mechanism in self._ids

    def id_of(self, mechanism: Mechanism | None) -> int:
        """The number of `mechanism`, a new one if it was not seen before; -1 for None."""
        if mechanism is None:
            return -1
        # Hashing a mechanism may mean hashing a matrix; nearly always it is the same object as in the row before.
        if mechanism is not self._last:
            try:
                number = self._ids.setdefault(mechanism, len(self.known))
            except TypeError as error:
                raise InvalidInput(f"a norm is a value and must be hashable: {error}") from None
            if number == len(self.known):
                self.known.append(mechanism)
            self._last, self._last_id = mechanism, number
        return self._last_id


def feature_names(features: Sequence[Any]) -> tuple[str, ...]:
    """The names as a tuple, if they are distinct strings and none is empty."""
    names = () if isinstance(features, str) else tuple(features)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidInput(f"features must be a list of one or more non-empty strings, got {_brief(features)}")
    if odd := next((name for name in names if not is_unicode(name)), None):
        raise InvalidInput(f"the feature {odd!r} is no Unicode text: it has half of a surrogate pair; rename it")
    if twice := repeated(names):
        raise InvalidInput(f"features must be distinct, but there is more than one {twice}")
    return tuple(str(name) for name in names)


def repeated(names: Sequence[Any]) -> str:
    """The names that occur more than once, as text."""
    return ", ".join(repr(name) for name, times in Counter(names).items() if times > 1)


def differences(given: Sequence[Any], wanted: Sequence[Any]) -> str:
    """What is missing from, too much in, or repeated in the names `given`, as text."""
    have, want = set(given), set(wanted)
    missing = ", ".join(repr(name) for name in wanted if name not in have)
    extra = ", ".join(repr(name) for name in given if name not in want)
    parts = (("missing", missing), ("not known", extra), ("more than once", repeated(given)))
    return "; ".join(f"{kind}: {names}" for kind, names in parts if names)


def in_order(x: Any, features: tuple[str, ...] | None, name: str, whose: str = "the log") -> Any:
    """The values of a dict, a Series or a DataFrame in the order of `features`, which are `whose`; anything else as it is."""
    if isinstance(x, Mapping):
        if features is None:
            advice = "make it with QueryLog(features=[...])" if whose == "the log" else "give rows of numbers"
            raise InvalidInput(f"{name} has names ({list(x)}), {whose} has none; {advice}")
        given = list(x)
    elif hasattr(x, "columns"):
        given = list(x.columns)
    elif hasattr(x, "to_numpy") and hasattr(x, "index"):
        given = list(x.index)
    else:
        return x
    if features is None or (given == list(range(len(given))) and not isinstance(x, Mapping)):
        return x  # pandas numbers what was given no names
    if wrong := differences(given, features):
        raise InvalidInput(f"{name} must have exactly {whose}'s features; {wrong}")
    if not isinstance(x, Mapping):
        return x[list(features)]
    values = [x[feature] for feature in features]
    if any(map(np.ndim, values)):
        raise DimensionMismatch(f"{name}: a dict is one point, a number for each feature; a DataFrame can be a batch")
    return values


def as_numbers(x: Any, name: str) -> FloatArray:
    """x as float64 of whatever shape; may hold NaN."""
    try:
        return np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} must be numbers, got {type(x).__name__}: {error}") from None


def as_labels(y: ArrayLike | Sequence[float | None], count: int | None, *, gaps: bool) -> Any:
    """The label, or `count` of them, as ±1; 0 stands for a missing one (None, NaN), where `gaps` are allowed."""
    if count is None and y.__class__ is int and (y == 1 or y == -1):
        return y
    given = _array(y, "label")
    if given.shape != _shape(count):
        raise DimensionMismatch(f"{number_of(count or 1, 'point')} must have a label each, got shape {given.shape}")
    values = _floats(given)
    if values is None:
        raise InvalidInput(f"label is {given.dtype}: {LABEL_HINT}")
    missing = np.isnan(values)
    wrong = np.argwhere((np.abs(values) != 1) & ~(missing & gaps))
    if len(wrong):
        where = "" if count is None else f" in row {wrong[0][0]}"
        raise InvalidInput(f"label {given[tuple(wrong[0])]}{where}: {LABEL_HINT}")
    return np.where(missing, 0, values).astype(np.int8)


def as_present(answers: FloatArray) -> BoolArray:
    """Which explanations are there: finite ones are, all-NaN ones are not, anything between raises NotFinite."""
    present = np.asarray(np.isfinite(answers).all(axis=-1))
    if not present.all():
        broken = np.argwhere(~present & ~np.isnan(answers).all(axis=-1))
        if len(broken):
            where = f" in row {broken[0][0]}" if answers.ndim == 2 else ""
            what = f"explanation{where} is {answers[tuple(broken[0])].tolist()}"
            raise NotFinite(f"{what}; it must be finite, or all NaN if none came")
    return present


def as_statuses(status: ArrayLike | None, came: BoolArray) -> Any:
    """A status for every question, given which explanations came."""
    if status is None:
        return np.where(came, ASKED, NONE) if came.ndim else ASKED if came else NONE
    codes = _array(status, "status")
    if codes.dtype.kind not in "iu" or codes.shape not in ((), came.shape) or not np.isin(codes, list(Status)).all():
        raise InvalidInput(f"status must be a Status, or one for each row, got {_brief(status)}")
    if (codes == Status.NOT_ASKED).any():
        raise InvalidInput("status NOT_ASKED: a point whose explanation was not asked for is logged with add_label")
    if ((codes == Status.ASKED) != came).any():
        raise InvalidInput("status must be ASKED where an explanation came, else NONE or FAILED; or be left out")
    return codes


def as_texts(value: Any, count: int | None, name: str) -> Any:
    """A string or None, or a column of `count` of them."""
    if value is None or isinstance(value, str):
        return value
    values = list(value) if count is not None and np.iterable(value) else [value]
    wrong = [i for i, text in enumerate(values) if not (text is None or isinstance(text, str))]
    if wrong:
        raise InvalidInput(f"{name} must be a string or None, got {_brief(values[wrong[0]])} (row {wrong[0]})")
    if len(values) != count:
        raise DimensionMismatch(f"there must be one {name} for all or for each row ({count}), got {len(values)}")
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def as_times(value: Any, count: int | None) -> Any:
    """Seconds since the epoch, NaN where not known, for one or for `count` rows."""
    if value is None:
        return math.nan
    if value.__class__ is float and math.isfinite(value):
        return value
    given = _array(value, "time")
    seconds = _floats(given)
    if seconds is None:
        raise InvalidInput(f"time must be a number, the seconds since the epoch, or None; got {_brief(value)}")
    if given.shape not in ((), _shape(count)):
        raise DimensionMismatch(f"there must be one time for all or for each row, got shape {given.shape}")
    if np.isinf(seconds).any():
        raise NotFinite("time must be finite, or None if it is not known")
    return seconds


def as_mechanism(value: Any) -> Mechanism | None:
    """The mechanism, or None; anything else raises."""
    if value is not None and not isinstance(value, Mechanism):
        raise InvalidInput(f'mechanism must be a Mechanism or None, got {_brief(value)}; e.g. Mechanism("l1")')
    return value


def number_of(n: int, noun: str) -> str:
    """'1 row', '2 rows'."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _shape(count: int | None) -> tuple[int, ...]:
    return () if count is None else (count,)


def _array(value: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} must be one value or a list of them, got {_brief(value)}: {error}") from None


def _floats(values: NDArray[Any]) -> FloatArray | None:
    # Truth values and dates would convert too, to something that was not meant.
    if values.dtype.kind not in "iufO":
        return None
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
