"""Why no model fits a log: a set of rows that contradict each other, none of which could be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from overexplain.errors import InconsistentLog, SolverFailed
from overexplain.knowledge.answers import answers_of
from overexplain.knowledge.belief import Belief
from overexplain.knowledge.certificates import Certificate
from overexplain.knowledge.checker import Answer, Branched, Term
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.evidence import Finder, with_lengths
from overexplain.knowledge.facts import Facts
from overexplain.knowledge.program import Program
from overexplain.knowledge.sides import Sides
from overexplain.knowledge.terms import TermMaker
from overexplain.knowledge.ties import Ties
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


def _contradiction(facts: Facts, answers: Mapping[int, Answer], evidence: Evidence) -> list[Term] | None:
    """Terms that prove that no model gave these answers, if they can be found."""
    program = Program(facts)
    try:
        outcome = Ties(program, TermMaker(program, answers, evidence), None).find(None, 1)
    except SolverFailed:
        return None
    return outcome if isinstance(outcome, list) and Belief(answers, evidence).proves(outcome, None, 1) else None


def find_conflict(
    facts: Facts, answers: Mapping[int, Answer], evidence: Evidence
) -> tuple[list[int], list[Term]] | None:
    """(irreducible rows, terms that prove their contradiction), or None if none is found."""
    rows = sorted({int(r) for r in facts.rows} | {fact.row for fact in facts.explained})
    terms = _contradiction(facts, Some(answers, rows), evidence)
    if terms is None:
        return None
    rows = _named(terms)
    k = 0
    while k < len(rows):
        fewer = [*rows[:k], *rows[k + 1 :]]
        found = _contradiction(only(facts, fewer), Some(answers, fewer), evidence) if fewer else None
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
