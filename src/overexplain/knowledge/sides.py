"""Labels that the log does not state but implies, and the one that may be assumed if it states none.

The side of an explained row without a label is known once the other one is impossible: with it, the answers contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import IntArray
from overexplain.geometry.hyperplane import NO, YES
from overexplain.knowledge.checker import Answer, Branched, Lemma
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.blocks import blocks_of
from overexplain.knowledge.prover.contradictions import any_contradiction
from overexplain.log.querylog import QueryLog, Status


@final
@dataclass(frozen=True)
class Sides:
    """The labels of all rows, stated, assumed or implied (0: not known), and why."""

    labels: NDArray[np.int8]
    lemmas: tuple[Lemma, ...] = ()
    assumed: tuple[tuple[int, int], ...] = ()

    @property
    def oriented(self) -> bool:
        """False if which side is Yes was assumed."""
        return not self.assumed

    @property
    def filled(self) -> dict[int, int]:
        """The labels that the log does not state."""
        return {**{lemma.row: lemma.label for lemma in self.lemmas}, **dict(self.assumed)}


class Labelled(Mapping[int, Answer]):
    """Some of a log's exact rows with labels filled in."""

    def __init__(self, answers: Mapping[int, Answer], labels: Mapping[int, int], rows: IntArray) -> None:
        self._answers, self._labels, self._rows = answers, dict(labels), rows
        self._filled: dict[int, Answer] = {}

    def __getitem__(self, row: int) -> Answer:
        if row not in self._labels:
            return self._answers[row]
        if row not in self._filled:
            self._filled[row] = replace(self._answers[row], label=self._labels[row])
        return self._filled[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows.tolist())

    def __len__(self) -> int:
        return len(self._rows)


def find_sides(
    log: QueryLog,
    rows: IntArray,
    answers: Mapping[int, Answer],
    tolerance: float | None,
    evidence: Evidence,
    earlier: Sides | None = None,
) -> Sides:
    """The labels of a log, completed by what some rows say; `earlier` are sides that fewer rows implied."""
    labels = np.array(log.labels, dtype=np.int8)
    assumed: tuple[tuple[int, int], ...] = ()
    explained = rows[log.status[rows] == Status.ASKED]
    if labels[explained].all():
        return Sides(labels)
    usable = [int(row) for row in explained if answers[int(row)].is_used]
    open_rows = [row for row in usable if labels[row] == 0]
    if not labels.any() and all(answers[row].is_swappable for row in usable):
        exact = [row for row in open_rows if answers[row].slack == 0]
        if exact:
            assumed = ((exact[0], YES),)
            labels[exact[0]] = YES
            open_rows.remove(exact[0])
    lemmas: list[Lemma] = []
    if earlier is not None and (earlier.assumed == assumed or not earlier.assumed):
        for lemma in earlier.lemmas:
            if labels[lemma.row] == 0:
                labels[lemma.row] = lemma.label
                lemmas.append(lemma)
                open_rows.remove(lemma.row)
    found = True
    while found and open_rows:
        found = False
        for row in list(open_rows):
            implied = _implied(log, rows, answers, labels, row, tolerance, evidence)
            if implied is not None:
                lemmas.append(implied)
                labels[row] = implied.label
                open_rows.remove(row)
                found = True
    return Sides(labels, tuple(lemmas), assumed)


def _implied(
    log: QueryLog,
    rows: IntArray,
    answers: Mapping[int, Answer],
    labels: NDArray[np.int8],
    row: int,
    tolerance: float | None,
    evidence: Evidence,
) -> Lemma | None:
    """The row's label with a proof that the other one contradicts the rest."""
    known = {int(r): int(labels[r]) for r in np.flatnonzero(labels != log.labels)}
    for label in (YES, NO):
        tried = labels.copy()
        tried[row] = -label
        filled = Labelled(answers, {**known, row: -label}, rows)
        blocks = blocks_of(log, tried, tolerance, answers, rows)
        terms = any_contradiction(blocks, filled, evidence, is_branched=False)  # lemmas are lists of terms
        if terms is not None and not isinstance(terms, Branched):
            return Lemma(row, label, tuple(terms))
    return None
