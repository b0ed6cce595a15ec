"""What every extraction owes its caller, whatever goes wrong: what was paid for, and an error of the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from overexplain.errors import EndpointFailed, ExtractionFailed, InvalidInput, OverexplainError
from overexplain.geometry.arrays import as_point


@contextmanager
def nothing_lost(record: Callable[[], Any]) -> Iterator[None]:
    """Every error that leaves the block carries `record()`, what was answered so far, as its `.log`; Ctrl-C, too.

    Numbers that leave float64's range show as what cannot be solved or does not fit; what they break is ExtractionFailed.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        failure = ExtractionFailed(
            f"the service's numbers are too large, too small or too far apart for float64 ({error}); scale the features"
        )
        failure.log = record()
        raise failure from error
    except BaseException as error:
        if getattr(error, "log", None) is None:
            error.log = record()  # type: ignore[attr-defined]
        raise


def asked(verb: Callable[..., Any], *question: Any, number: int) -> Any:
    """What the service answers; whatever it raises of its own is EndpointFailed, which names the question."""
    try:
        return verb(*question)
    except OverexplainError:
        raise
    except Exception as error:
        raise EndpointFailed(f"the service raised {type(error).__name__} on question {number}: {error}") from error


def as_accuracy(accuracy: Any) -> float | None:
    """The accuracy asked for as a positive number, or None; raises InvalidInput."""
    wanted = None if accuracy is None else float(as_point([accuracy], 1, "accuracy")[0])
    if wanted is not None and not wanted > 0:
        raise InvalidInput(f"accuracy must be positive, got {accuracy!r}")
    return wanted
