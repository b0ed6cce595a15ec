"""The cases of `branch_and_bound`, written in rationals: bounds and contradictions whose terms add up exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import final

from overexplain.knowledge.checker import Answer, Bound, Branch, Branched, Context, Fact, Term
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.facts import Secret
from overexplain.knowledge.prover.branch_and_bound import BranchAndBound, Draft, Node
from overexplain.knowledge.prover.stage import Proof
from overexplain.knowledge.prover.written import Key, Writer

ZERO, ONE = Fraction(0), Fraction(1)
BITS = 64
"""Binary digits of a bound."""


@final
class BranchProofs:
    """Writes the trees of one method; what holds of the box whatever the claim is written once."""

    def __init__(self, method: BranchAndBound, answers: Mapping[int, Answer], evidence: Evidence) -> None:
        self.method, self._answers, self._evidence = method, answers, evidence
        prover = method.prover
        at = method.unit - len(prover.ties.free) - 1
        unit = prover.norms[at]
        assert not isinstance(unit, Secret)
        self._payer, self._unit, self._spec = at, unit.spec, method.norm.spec
        self._offset = prover.p if method.shape.frame else 0
        self._before: tuple[tuple[Bound, ...], Context] | None = None
        self._facts: dict[Key, Fact] = {}

    def _root(self) -> tuple[tuple[Bound, ...], Context]:
        """(the bounds that steps and rows make, what is known by them)."""
        if self._before is None:
            bounds, known = self.method.prover.balls.context(self._answers, self._evidence)
            box = {} if known is None else known.box
            context = Context(self._unit, box, frame=self.method.shape.frame)
            found = self._bounds(self.method.root, context)
            self._before = (*bounds, *found[0]), found[1]
        return self._before

    def branched(self, tree: Node, claim: Sequence[Fraction] | None, denied: Fact | None) -> Branched:
        """The proof of a claim, a form over (a, b), or without one of a contradiction; the checker is still to be asked."""
        bounds, context = self._root()
        wanted = [ZERO] * (self.method.prover.p + 1) if claim is None else claim
        branch = self._written(tree, replace(context, denied=denied), wanted)
        return Branched(self.method.row, replace(branch, bounds=(*bounds, *branch.bounds)), self.method.shape.frame)

    def _written(self, node: Node, context: Context, claim: Sequence[Fraction]) -> Branch:
        bounds, context = self._bounds(node, context)
        if node.closed is not None:
            if node.is_empty:
                return Branch(self._terms(node.closed, [ZERO] * len(claim), context), bounds)
            against = (Term("denied", ONE),) if context.denied is not None else ()
            return Branch((*against, *self._terms(node.closed, claim, context)), bounds)
        if node.corner is not None:
            assert self.method.corners is not None
            there = [replace(context, corner=Fact([*d, ZERO], ((self._spec, ONE),))) for d in self.method.corners.exact]
            parts = [self._written(part, where, claim) for part, where in zip(node.parts, there, strict=True)]
            return Branch((), bounds, corners=node.corner, parts=tuple(parts))
        assert node.index is not None
        index, value = node.index + self._offset, Fraction(node.value)
        sides = [context.tightened(index, sign, sign * value) for sign in (-1, 1)]
        parts = [self._written(part, side, claim) for part, side in zip(node.parts, sides, strict=True)]
        return Branch((), bounds, index, value, parts=tuple(parts))

    def _bounds(self, node: Node, context: Context) -> tuple[tuple[Bound, ...], Context]:
        """The bounds that a case proves for its box, one after the other, and what is known then."""
        found: list[Bound] = []
        for k, sign, draft in node.bounds:
            index = k + self._offset
            writer = self._writer(draft, context.along(index, sign, self.method.prover.p), context)
            terms = tuple(writer.terms(self._payer))
            value = _rounded_down(self._gained(writer, terms))
            found.append(Bound(index, sign, value, terms))
            context = context.tightened(index, sign, value)
        return tuple(found), context

    def _writer(self, draft: Draft, claim: Sequence[Fraction], context: Context) -> Writer:
        proof = Proof(1, draft.rows, draft.weights, draft.omega, draft.value)
        beside = [replace(term, weight=Fraction(weight)) for term, weight in draft.beside]
        prover = self.method.prover
        return Writer(prover, self._answers, self._evidence, claim, proof, context, beside, self._facts)

    def _terms(self, draft: Draft, claim: Sequence[Fraction], context: Context) -> tuple[Term, ...]:
        return tuple(self._writer(draft, claim, context).terms(self._payer))

    def _gained(self, writer: Writer, terms: Sequence[Term]) -> Fraction:
        """What the terms leave of the unit's length."""
        total = ZERO
        for term in terms:
            for length, factor in writer.fact(term).rights:
                total += term.weight * factor if length == self._unit else ZERO
        return total


def _rounded_down(value: Fraction) -> Fraction:
    bits = BITS + value.denominator.bit_length() - value.numerator.bit_length()
    scale = Fraction(2) ** bits
    return Fraction((value * scale).__floor__()) / scale
