"""Why no model fits a log: a set of rows that contradict each other, none of which could be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from overexplain.errors import InconsistentLog
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.certificates import Certificate
from overexplain.knowledge.checker import Answer, Branched, Term
from overexplain.knowledge.core import find_core
from overexplain.knowledge.enclosures import Evidence, Vector
from overexplain.knowledge.evidence import Finder, with_lengths
from overexplain.knowledge.facts import Facts
from overexplain.knowledge.program import Program
from overexplain.knowledge.settle import Settler
from overexplain.knowledge.sides import Sides
from overexplain.log.querylog import QueryLog


class Some(Mapping[int, Answer]):
    """Some rows of a log."""

    def __init__(self, answers: Mapping[int, Answer], rows: Sequence[int]) -> None:
        self._answers, self._rows = answers, tuple(rows)

    def __getitem__(self, row: int) -> Answer:
        if row not in self._rows:
            raise KeyError(row)
        return self._answers[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def only(facts: Facts, rows: Sequence[int]) -> Facts:
    """The facts of some rows."""
    kept = np.isin(facts.rows, rows)
    explained = tuple(fact for fact in facts.explained if fact.row in rows)
    labels = replace(facts, rows=facts.rows[kept], points=facts.points[kept], sides=facts.sides[kept])
    return replace(labels, unsided=tuple(row for row in facts.unsided if row in rows)).with_explained(explained)


def settler_of(
    facts: Facts,
    answers: Mapping[int, Answer],
    evidence: Evidence,
    deadline: float | None = None,
    relative_to: Vector | None = None,
) -> Settler:
    """A settler for some facts, its centre not yet looked for."""
    program = Program(facts)
    core = find_core(facts, -program.exponents)
    return Settler(answers, facts, core, program, evidence, deadline, relative_to)


def find_conflict(
    facts: Facts, answers: Mapping[int, Answer], evidence: Evidence
) -> tuple[list[int], list[Term]] | None:
    """(irreducible rows, terms that prove their contradiction), or None if none is found."""
    rows = sorted({int(r) for r in facts.rows} | {fact.row for fact in facts.explained})
    terms = settler_of(facts, Some(answers, rows), evidence).contradiction()
    if terms is None:
        return None
    rows = _named(terms)
    k = 0
    while k < len(rows):
        fewer = [*rows[:k], *rows[k + 1 :]]
        found = settler_of(only(facts, fewer), Some(answers, fewer), evidence).contradiction() if fewer else None
        if found is None:
            k += 1
        else:
            terms, rows = found, [row for row in rows if row in _named(found)]
            k = 0
    return rows, terms


def _named(terms: Sequence[Term]) -> list[int]:
    return sorted({term.row for term in terms if term.row is not None})


def raise_conflict(
    log: QueryLog, facts: Facts, answers: Mapping[int, Answer], sides: Sides, tolerance: float | None
) -> None:
    """Raise InconsistentLog if the log contradicts itself.

    Answers under a distance whose lengths are irrational (ℓ3, groups) may have no rational model, or only one too close to the edge
    to be found: it is not held against the log that none was found.
    """
    evidence = Finder()
    found = find_conflict(facts, answers, evidence)
    if found is None:
        return
    raise_terms(log, found[1], sides, tolerance)


def raise_terms(log: QueryLog, terms: Sequence[Term], sides: Sides, tolerance: float | None) -> NoReturn:
    """Raise InconsistentLog with a proof by these terms, of whose rows none could be left out."""
    rows = _named(terms)
    used = {lemma.row for lemma in sides.lemmas}
    lemmas = sides.lemmas if used & set(rows) else ()
    proof = Certificate.about(log, None, None, terms, lemmas=lemmas, assumed=sides.assumed, tolerance=tolerance)
    named = sorted(set(rows) | {int(r) for lemma in lemmas for r in _named(lemma.terms)})
    _raise(log, proof, named)


def raise_by_cases(log: QueryLog, branches: Branched, sides: Sides, tolerance: float | None) -> NoReturn:
    """Raise InconsistentLog with a proof by cases."""
    used = {lemma.row for lemma in sides.lemmas}
    lemmas = sides.lemmas if used & branches.rows else ()
    proof = Certificate.about(
        log, None, None, (), lemmas=lemmas, assumed=sides.assumed, tolerance=tolerance, branches=branches
    )
    _raise(log, proof, sorted(proof.rows))


def _raise(log: QueryLog, proof: Certificate, rows: Sequence[int]) -> NoReturn:
    proof = with_lengths(answers_of(log, proof.tolerance), proof)
    proof.verify(log, proof.tolerance)
    raise InconsistentLog(
        f"no linear model fits the log: rows {', '.join(map(str, rows))} contradict each other ({proof}). "
        "If the answers are rounded, declare it: Mechanism(..., tolerance=...)",
        rows=tuple(rows),
        proof=proof,
    )
