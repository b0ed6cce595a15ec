"""What proofs of an audit's figures are made from: the answers of one order, and the cases judged by them."""

from __future__ import annotations

from dataclasses import dataclass

from overexplain.geometry.arrays import FloatArray
from overexplain.log.querylog import QueryLog


@dataclass(frozen=True, eq=False)
class Evidence:
    """The first order of a curve at one of its numbers of answers.

    service  id of the service
    answers  how many answers were given
    log      these answers
    judged   the unseen cases, in the audited units
    share    what the report says of them: `Curve.first` at `answers`
    """

    service: str
    answers: int
    log: QueryLog
    judged: FloatArray
    share: float
