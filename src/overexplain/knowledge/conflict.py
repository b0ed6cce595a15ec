"""Says why no model fits a log: which rows contradict each other, and the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from overexplain.errors import InconsistentLog
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.certificates import Certificate
from overexplain.knowledge.checker import Branched, Term
from overexplain.knowledge.evidence import with_lengths
from overexplain.knowledge.prover.contradictions import named
from overexplain.knowledge.sides import Sides
from overexplain.log.querylog import QueryLog


def raise_conflict(
    log: QueryLog, found: Sequence[Term] | Branched, is_least: bool, sides: Sides, tolerance: float | None
) -> NoReturn:
    """Raise InconsistentLog with a proof by these terms or cases; `is_least`: none of their rows could be left out."""
    used = {lemma.row for lemma in sides.lemmas}
    lemmas = sides.lemmas if used & set(named(found)) else ()
    terms, branches = ((), found) if isinstance(found, Branched) else (found, None)
    proof = Certificate.about(
        log, None, None, terms, lemmas=lemmas, assumed=sides.assumed, tolerance=tolerance, branches=branches
    )
    rows = sorted({*named(found), *(row for lemma in lemmas for row in named(lemma.terms))})
    proof = with_lengths(answers_of(log, proof.tolerance), proof)
    proof.verify(log, proof.tolerance)
    raise InconsistentLog(
        f"no linear model fits the log: {'' if is_least else 'at most these '}rows {', '.join(map(str, rows))} "
        f"contradict each other ({proof}). "
        "If the answers are rounded, declare it: Mechanism(..., tolerance=...)",
        rows=tuple(rows),
        proof=proof,
    )
