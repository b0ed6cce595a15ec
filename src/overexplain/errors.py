"""Every error this package raises on purpose.

::

    OverexplainError
    ├── InvalidInput (a ValueError)   DimensionMismatch · NotFinite · ZeroNormal · UnsupportedNorm · UnsupportedModel
    ├── OracleError                   BudgetExhausted · EndpointFailed · NoExplanation · BrokenPromise
    ├── InconsistentLog               no hyperplane fits the answers
    ├── ExtractionFailed              carries what is still unidentified
    ├── CertificateInvalid            which sum is off, by how much
    ├── SolverFailed                  never a raw back-end exception
    └── ClusterFailed                 workers on other machines; whole parts are kept

A message says what was asked, what came, where, and what to do. Whatever interrupts an extraction carries the answers
gathered so far as ``error.log``: nothing that was paid for is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


OUT_OF_MEMORY = "out of memory: the input is too large for this machine, or for what the process may have; split it"


class OverexplainError(Exception):
    """Base of every error raised on purpose; `log` is the QueryLog of the answers gathered before it, if there are any."""

    log: Any = None  # a QueryLog; errors lie below the log in the flow, so the type cannot be named here


class InvalidInput(OverexplainError, ValueError):
    """The caller's values cannot be used; the message says which and how to mend them."""


class DimensionMismatch(InvalidInput):
    """A point, a batch or an answer has the wrong shape."""


class NotFinite(InvalidInput):
    """A number is NaN or infinite where a finite one is needed."""


class ZeroNormal(InvalidInput):
    """A hyperplane's normal is zero: every point would get the same label."""


class UnsupportedNorm(InvalidInput):
    """A norm is unknown, or does not offer what was asked of it."""


class UnsupportedModel(InvalidInput):
    """A model is not a binary linear classifier that can be read safely."""


class OracleError(OverexplainError):
    """The service did not answer as an oracle must."""


class BudgetExhausted(OracleError):
    """The next request would exceed the budget; it was not sent.

    `needed` is how many more requests the work would take, where that is known; `found`, if it is not None, is an Extraction that
    is less accurate than was wanted.
    """

    def __init__(self, message: str, *, log: Any = None, needed: int | None = None) -> None:
        super().__init__(message)
        self.log = log
        self.needed = needed
        self.found: Any = None


class EndpointFailed(OracleError):
    """The service raised or could not be reached; the original error is the cause.

    `stops`: no other question can be answered either (nobody there, credentials refused), so that asking on is of no use.
    """

    def __init__(self, message: str, *, stops: bool = False) -> None:
        super().__init__(message)
        self.stops = stops


class NoExplanation(OracleError):
    """The service gives no explanation where one is needed."""


class BrokenPromise(OracleError):
    """The answers contradict the declared mechanism.

    `fact` names the fact that fails, `excess` by how much it misses (in the distance's own unit), `row` which answer shows it,
    `rows` all of them.
    """

    def __init__(
        self, message: str, *, fact: str = "", excess: float = 0.0, row: int | None = None, rows: tuple[int, ...] = ()
    ) -> None:
        super().__init__(message)
        self.fact = fact
        self.excess = excess
        self.rows = rows if rows or row is None else (row,)
        self.row = self.rows[0] if self.rows else None


class InconsistentLog(OverexplainError):
    """No hyperplane fits the logged answers; `rows` names answers that conflict, `proof` (a Certificate) shows it, if known."""

    def __init__(self, message: str, *, rows: tuple[int, ...] = (), proof: Any = None) -> None:
        super().__init__(message)
        self.rows = rows
        self.proof = proof


class ExtractionFailed(OverexplainError):
    """The model could not be rebuilt; `unidentified` is a basis (rows) of the directions still open."""

    def __init__(self, message: str, *, unidentified: NDArray[np.float64] | None = None) -> None:
        super().__init__(message)
        self.unidentified = unidentified


class CertificateInvalid(OverexplainError):
    """A proof does not hold; the message says which sum is off and by how much."""


class SolverFailed(OverexplainError):
    """A numerical back end gave up; its own words are in the message."""


class ClusterFailed(OverexplainError):
    """The scheduler or its workers are gone or do not fit; whole parts are kept, and the same call carries on."""
