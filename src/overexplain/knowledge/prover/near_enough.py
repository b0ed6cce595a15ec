"""Models for which answers with slack are near enough: no fact of the checker says how near they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from overexplain.knowledge.checker import Answer
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.facts import FLIPS
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.models import MIXED, mixed
from overexplain.knowledge.prover.reduction import Contradiction, LinearFacts, Model
from overexplain.knowledge.prover.statements import Statements


@final
class NearEnough:
    """Of the rows in `blocks`, whose facts without lengths are `said`; `linear` decides points by these."""

    def __init__(
        self, blocks: Sequence[Block], answers: Mapping[int, Answer], said: Statements, linear: LinearProver
    ) -> None:
        self._blocks, self._answers, self._said, self._linear = blocks, answers, said, linear

    @cached_property
    def narrowed(self) -> LinearProver | None:
        """The prover of models for which answers with slack of an unknown distance are near enough, too, if there are any.

        −y·(a·x' − b) ≤ ε·y·(a·x − b): some norm has x' within 1 + ε of the distance to the plane. No fact of the checker says so.
        """
        blocks = [block for block in self._blocks if block.is_off_plane and not block.is_listed]
        rows = [self._answers[row] for block in blocks for row in block.rows.tolist()]
        if not rows:
            return None
        facts, none = self._said.facts, np.zeros(len(rows), dtype=bool)
        try:
            return LinearProver(
                LinearFacts(
                    facts.points, facts.sides, np.append(facts.strict, none), np.append(facts.equal, none),
                    [*facts.forms, *map(_near_enough, rows)],
                    swapped=facts.swapped, constants=facts.constants, coding=facts.coding,
                )
            )  # fmt: skip
        except Contradiction:
            return None

    @cached_property
    def _nearest(self) -> LinearProver | None:
        """The prover of models on whose planes all answers with slack lie: no answer is nearer than these."""
        said = self._said
        slack = [row for block in self._blocks if block.slack and not block.is_loose for row in block.rows.tolist()]
        across = np.flatnonzero((said.name == FLIPS) & np.isin(said.origin, slack))
        found = self._linear.by_weak(across) if len(across) else None
        return found if isinstance(found, LinearProver) else None

    def beside(self, model: Model) -> Iterator[Model]:
        """Models between one whose planes the answers with slack lie on and another one."""
        if self._nearest is not None:
            yield self._nearest.centre
            yield from (mixed(self._nearest.centre, model, share) for share in MIXED)


def _near_enough(answer: Answer) -> list[Fraction]:
    """ε·y·(a·x − b) + y·(a·x' − b) as a form over (a, b)."""
    assert answer.label is not None
    assert answer.slack is not None
    assert answer.explanation is not None
    y, slack = answer.label, answer.slack
    return [
        *(y * (slack * v + w) for v, w in zip(answer.point, answer.explanation, strict=True)), -y * (1 + slack)
    ]  # fmt: skip
