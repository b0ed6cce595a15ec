"""Numbers that are finite and still too large to be computed with: refused by name, before anything is worked out from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from overexplain.errors import OUT_OF_MEMORY, InvalidInput, OverexplainError, SolverFailed
from overexplain.log.querylog import QueryLog

LARGEST = 2.0**512
"""About 1e154: squares of larger numbers are beyond float64."""

CHUNK = 65_536
"""Rows looked at together."""

BEYOND_FLOAT64 = (ArithmeticError, ValueError)
"""What NumPy, solvers and fractions raise of numbers that overflow on the way; what is not computed is not believed."""


@contextmanager
def numbers_of_a_log() -> Iterator[None]:
    """No warning of what overflows inside, and SolverFailed in the place of what back ends raise of it; a log for which there
    is no memory is refused.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except OverexplainError:
        raise
    except MemoryError:
        raise InvalidInput(OUT_OF_MEMORY) from None
    except BEYOND_FLOAT64 as error:
        raise SolverFailed(
            "the numbers of the log differ too much in size to be computed with; give features in units in which they are near 1"
        ) from error


def refuse_extreme(log: QueryLog, first: int = 0) -> None:
    """Raise if a coordinate, a tolerance or a radius of the log is too large; `first` is the number of its first row."""
    for what, values in (("", log.points), ("the explanation of ", log.explanations)):
        for start in range(0, len(log), CHUNK):
            beyond = np.argwhere(
                np.abs(values[start : start + CHUNK]) > LARGEST
            )  # no explanation is NaN, and that is not
            if len(beyond):
                row, column = start + int(beyond[0, 0]), int(beyond[0, 1])
                name = f"feature {column}" if log.features is None else repr(log.features[column])
                raise InvalidInput(
                    f"{what}row {first + row}: {name} is {float(values[row, column])!r}, beyond ±1e154, and cannot be computed "
                    "with; leave the row out, or give the feature in a larger unit"
                )
    for terms in log.mechanisms:
        for what, value in (("tolerance", terms.tolerance), ("radius", terms.radius), ("slack", terms.slack)):
            if value is not None and value > LARGEST:
                raise InvalidInput(f"the {what} {value!r} is beyond 1e154, and cannot be computed with")
