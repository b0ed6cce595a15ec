"""What settles a point: a verdict and its proof."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from overexplain.knowledge.checker import Branched, Term
from overexplain.knowledge.facts import Facts
from overexplain.knowledge.prover.reduction import Model
from overexplain.knowledge.verdicts import Verdict


@dataclass(frozen=True)
class Settled:
    """A verdict and what proves it: terms (and the reverse, on the plane), branches, or two models; nothing if undecided."""

    verdict: Verdict
    terms: tuple[Term, ...] = ()
    reverse: tuple[Term, ...] = ()
    yes: Model | None = None
    no: Model | None = None
    branches: Branched | None = None


UNDECIDED = Settled(Verdict.UNDECIDED)


def own_label(facts: Facts) -> dict[tuple[Fraction, ...], int]:
    """The row that labels a point, by the point."""
    index = {tuple(map(Fraction, facts.points[k].tolist())): int(row) for k, row in enumerate(facts.rows)}
    for fact in facts.explained:
        if hasattr(fact, "side") and hasattr(fact, "point"):
            index.setdefault(tuple(map(Fraction, fact.point.tolist())), fact.row)
    return index
