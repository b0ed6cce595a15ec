"""Rows that contradict each other, none of which could be left out, and the terms that prove it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.checker import Answer, Term, check_certificate
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.program import contradiction
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.reduction import Contradiction
from overexplain.knowledge.prover.statements import read_statements
from overexplain.knowledge.prover.written import terms_of
from overexplain.log.extremes import BEYOND_FLOAT64


def contradiction_of(
    blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence, *, swapped: bool = False
) -> list[Term] | None:
    """Terms that prove that the rows contradict each other, none of which could be left out; None if none are found."""
    found = any_contradiction(blocks, answers, evidence, swapped=swapped)
    if found is None:
        return None
    for row in named(found):
        fewer = [other for other in named(found) if other != row]
        less = any_contradiction(_some(blocks, fewer), answers, evidence, swapped=swapped) if fewer else None
        if less is not None and row not in named(less):
            found = less
    return _at_most_one(found)


def any_contradiction(
    blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence, *, swapped: bool = False
) -> list[Term] | None:
    """The first terms of a contradiction that the checker accepts."""
    for terms in _candidates(blocks, answers, evidence, swapped):
        try:
            check_certificate(answers, terms, None, 1, lengths=evidence)
        except CertificateInvalid:
            continue
        return terms
    return None


def named(terms: Sequence[Term]) -> list[int]:
    """The rows in some terms."""
    return sorted({term.row for term in terms if term.row is not None})


def _some(blocks: Sequence[Block], rows: Sequence[int]) -> list[Block]:
    kept = [block.of(np.flatnonzero(np.isin(block.rows, rows))) for block in blocks]
    return [block for block in kept if len(block.rows)]


@np.errstate(all="ignore")
def _candidates(
    blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence, swapped: bool
) -> Iterator[list[Term]]:
    constants = all(block.is_confined for block in blocks)
    said = read_statements(blocks, answers, swapped=swapped, constants=constants)
    try:
        LinearProver(said.facts)
    except Contradiction as none:
        yield said.terms(none.weights, none.both)
    if not any(block.is_measured for block in blocks):
        return
    blocks = _numbered(blocks)
    p = blocks[0].points.shape[1]
    clash = Ties(p, blocks, 1 + max(block.number for block in blocks)).clash
    if clash is not None:
        yield [Term("entry", Fraction(1), row, index=clash[2]) for row in clash[:2]]
        return
    try:
        prover = Prover(blocks, answers, evidence)
        proof = contradiction(prover)
    except (NoInterior, np.linalg.LinAlgError, *BEYOND_FLOAT64):
        return
    if proof is not None:
        yield from terms_of(prover, answers, evidence, None, proof)


def _numbered(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with their lengths counted from 0: some may be gone."""
    used = {number for block in blocks for number in (block.number, block.ball) if number >= 0}
    numbers = {old: new for new, old in enumerate(sorted(used))} | {-1: -1}
    return [replace(block, number=numbers[block.number], ball=numbers[block.ball]) for block in blocks]


def _at_most_one(terms: Sequence[Term]) -> list[Term]:
    """The same with weights of at most 1."""
    largest = max(term.weight for term in terms if term.fact != "hoelder")
    return [
        replace(term, weight=term.weight / largest)
        if term.fact != "hoelder"
        else replace(term, vector=tuple(v / largest for v in term.vector or ()))
        for term in terms
    ]
