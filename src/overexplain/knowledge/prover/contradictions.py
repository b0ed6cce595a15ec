"""Rows that contradict each other, none of which could be left out, and the terms or cases that prove it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from overexplain.errors import CertificateInvalid
from overexplain.knowledge.checker import Answer, Branched, Term, check_certificate
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.blocks import Block
from overexplain.knowledge.prover.branch_and_bound import Beyond, GaveUp, ways_to_branch
from overexplain.knowledge.prover.branch_proofs import BranchProofs
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.exact_rows import ExactRows
from overexplain.knowledge.prover.facts import Ties
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.log_prover import LogProver
from overexplain.knowledge.prover.pairs import contradicting_pairs
from overexplain.knowledge.prover.program import contradiction
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.reduction import Contradiction
from overexplain.knowledge.prover.rows import Rows
from overexplain.knowledge.prover.statements import read_statements
from overexplain.knowledge.prover.written import branched, terms_of
from overexplain.log.extremes import BEYOND_FLOAT64


def contradiction_of(
    blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence, *, swapped: bool = False
) -> tuple[list[Term] | Branched, bool] | None:
    """What proves that the rows contradict each other, and whether none could be left out: a model is known of the others, for each
    of them. None if nothing is found."""
    found, is_least = any_contradiction(blocks, answers, evidence, swapped=swapped), True
    if found is None:
        return None
    for row in named(found):
        fewer = [other for other in named(found) if other != row]
        if not fewer or len(fewer) == len(named(found)):  # left out together with another one
            continue
        less = any_contradiction(_some(blocks, fewer), answers, evidence, swapped=swapped)
        if less is not None:
            found = less
        else:
            is_least &= _is_consistent(_some(blocks, fewer), answers, evidence)
    if isinstance(found, Branched):
        return found, is_least
    short = _at_most_one(found)  # lengths are known to so many digits: what holds by a hair may not hold any more
    return (short if _is_proof(short, answers, evidence) else found), is_least


def _is_consistent(blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence) -> bool:
    """True if a model of the rows is known."""
    own = {row: answers[row] for block in blocks for row in block.rows.tolist()}
    try:
        return LogProver(_numbered(blocks), own, evidence).is_consistent
    except (Contradiction, np.linalg.LinAlgError, *BEYOND_FLOAT64):
        return False


@np.errstate(all="ignore")
def any_contradiction(
    blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence, *, swapped: bool = False,
    is_branched: bool = True,
) -> list[Term] | Branched | None:  # fmt: skip
    """The first proof of a contradiction that the checker accepts; `is_branched`: it may have bounds and cases."""
    for found in _candidates(blocks, answers, evidence, swapped, is_branched):
        if _is_proof(found, answers, evidence):
            return found
    return None


def _is_proof(found: Sequence[Term] | Branched, answers: Mapping[int, Answer], evidence: Evidence) -> bool:
    terms, branches = ((), found) if isinstance(found, Branched) else (found, None)
    try:
        check_certificate(answers, terms, None, 1, lengths=evidence, branches=branches)
    except CertificateInvalid:
        return False
    return True


def named(proof: Sequence[Term] | Branched) -> list[int]:
    """The rows in a proof."""
    rows = proof.rows if isinstance(proof, Branched) else {term.row for term in proof if term.row is not None}
    return sorted(rows)


def _some(blocks: Sequence[Block], rows: Sequence[int]) -> list[Block]:
    kept = [block.of(np.flatnonzero(np.isin(block.rows, rows))) for block in blocks]
    return [block for block in kept if len(block.rows)]


def _candidates(
    blocks: Sequence[Block], answers: Mapping[int, Answer], evidence: Evidence, swapped: bool, is_branched: bool
) -> Iterator[list[Term] | Branched]:
    yield from contradicting_pairs(blocks, answers)
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
    prover = None
    with suppress(NoInterior, np.linalg.LinAlgError, *BEYOND_FLOAT64):
        prover = Prover(blocks, answers, evidence, is_branched=is_branched)
        if len(prover.known):
            return
        proof = contradiction(prover)
        if proof is not None:
            for terms in terms_of(prover, answers, evidence, None, proof):
                yield branched(prover, answers, evidence, terms, is_claim=False) or terms
    rows = Rows(blocks, is_branched=is_branched) if prover is None else prover
    exact = ExactRows(rows, answers, evidence)
    try:
        exact.prover(swapped=swapped)
    except Contradiction as none:
        for terms in exact.terms(none.weights):
            yield branched(rows, answers, evidence, terms, is_claim=False) or terms
        return
    except (np.linalg.LinAlgError, *BEYOND_FLOAT64):
        pass
    for method in ways_to_branch(prover) if is_branched and prover is not None else ():
        with suppress(Beyond, GaveUp, CertificateInvalid):
            yield BranchProofs(method, answers, evidence).branched(method.tree(None), None, None)


def _numbered(blocks: Sequence[Block]) -> list[Block]:
    """The blocks with their lengths counted from 0: some may be gone."""
    used = {number for block in blocks for number in (block.number, block.ball) if number >= 0}
    numbers = {old: new for new, old in enumerate(sorted(used))} | {-1: -1}
    return [replace(block, number=numbers[block.number], ball=numbers[block.ball]) for block in blocks]


def _at_most_one(terms: Sequence[Term]) -> list[Term]:
    """The same with weights of at most 1; of Hölder terms with the weight 1 it is the vector that gets shorter."""
    largest = max(term.weight for term in terms if term.fact != "hoelder")
    are_whole = all(term.weight == 1 for term in terms if term.fact == "hoelder")
    return [
        replace(term, weight=term.weight / largest)
        if term.fact != "hoelder" or not are_whole
        else replace(term, vector=tuple(v / largest for v in term.vector or ()))
        for term in terms
    ]
