"""Claims that the convex half of robust answers leaves open: is there a model with s ≤ ‖a‖* that denies them?

‖a‖* ≥ s is the one constraint that is not convex. In a box upper bounds on s take its place (`upper_bounds`); where they leave a
model that denies the claim, and whose s is above ‖a‖*, the box is cut in two. First it is made as small as rows, upper bounds and
the denial allow, which often leaves nothing to cut. Where ‖a‖* is a maximum over few corners of a ball each corner is a case. Every
case is a linear program in the coordinates of the core, whose weights are its proof: `branch_proofs` writes it in rationals. All
that is decided here is advice: proofs are believed if the checker accepts them, models if the Keeper admits them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.knowledge.checker import Term
from overexplain.knowledge.facts import length_error
from overexplain.knowledge.prover.balls import Crossings
from overexplain.knowledge.prover.core_program import CoreProgram, Least
from overexplain.knowledge.prover.prover import Prover
from overexplain.knowledge.prover.strict import crossings_of
from overexplain.knowledge.prover.upper_bounds import UpperBound, few_corners, shape_of

MOST_LEAVES = 1000
"""Cases that are looked at before a claim is left open."""
PLACES = 8
"""Values of s at which one case may ask for an upper bound."""
CLOSE = 1e-9
"""A model whose s exceeds ‖a‖* by no more than this, relatively, is taken for one where they are equal."""
CUTS = 64
"""Cuts s ≥ v·a that one case may ask for where a model breaks s ≥ ‖a‖*."""
ROUNDS = 2
"""How often the box is made smaller before it is cut."""
LOOSER = 1e-9
"""How much weaker, as a share of the most, bounds are taken than the program found them: what is proved is a little weaker, too."""
BENT = 0.1
"""How much more of ‖a‖* than s, as a share of what the middle lacks, a model is to have before it is moved towards the middle."""
FLAT = 1e-11
"""Directions along which a varies by less than this share of the most are taken as fixed."""
ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Beside:
    """A row over the unknowns that holds in a case, ≥ 0, and the term that says so."""

    row: FloatArray
    term: Term


@dataclass(frozen=True, eq=False)
class Draft:
    """Weights of rows, of equalities and of what holds beside them, in floats; `value`: what they prove, less what is paid."""

    rows: IntArray
    weights: FloatArray
    omega: FloatArray
    beside: tuple[tuple[Term, float], ...]
    value: float


@dataclass(eq=False)
class Node:
    """A case: bounds found for its box, and then a contradiction, or its parts."""

    low: FloatArray
    high: FloatArray
    bounds: list[tuple[int, int, Draft]] = field(default_factory=list)
    closed: Draft | None = None
    is_empty: bool = False
    """`closed` shows that there is no model at all."""
    index: int | None = None
    value: float = 0.0
    corner: int | None = None
    parts: list[Node] = field(default_factory=list)


class Beyond(Exception):
    """A model with s ≤ ‖a‖* that denies the claim was found; it is over the unknowns."""

    def __init__(self, model: FloatArray) -> None:
        super().__init__()
        self.model = model


class GaveUp(Exception):
    """Too many cases, too little time, or a program that could not be solved."""


def ways_to_branch(prover: Prover) -> Iterator[BranchAndBound]:
    """Cases that may tell more than the prover's rows, by one of its balls each."""
    found = crossings_of(prover, prover.blocks) if prover.strict is None else [prover.strict.crossings]
    return (BranchAndBound(prover, at) for at in found if prover.core is not None and not prover.is_for_proofs)


@final
class BranchAndBound:
    """Decides claims about the rows of a prover, which must have a core, by the length of one ball."""

    def __init__(self, prover: Prover, at: Crossings) -> None:
        core = prover.core
        assert core is not None
        self.prover, self.core, self._crossings = prover, core, at
        self.norm, self.column, self.unit, self.number = at.norm, at.column, at.unit, at.number
        self.row = next(int(b.rows[0]) for b in prover.blocks if b.ball == at.number != b.number and b.is_tight)
        self.outer = prover.ties.outer(core.lift.T)[:, :-1].T
        level = core.lift[self.unit]
        self._start = core.cone.z0 / (level @ core.cone.z0)
        basis = np.linalg.qr(level[:, None], mode="complete")[0][:, 1:]
        self.shape = shape_of(self.norm, self.row, self.outer, basis)
        self.corners = few_corners(self.norm, prover.p)
        self._program = CoreProgram(core.cone.A, level)
        self._t = np.zeros(prover.ties.size)
        self._t[self.unit] = 1.0
        self.directions = [self._of_a(vector) for vector in self.shape.matrix]
        across = np.array(self.directions) @ core.lift @ basis
        size = np.linalg.norm(across, axis=1)
        self.is_fixed = (size <= FLAT * size.max()) | (np.arange(len(size)) >= self.shape.varying)
        self.varying = np.flatnonzero(~self.is_fixed).tolist()
        self.length = self._of_a(np.zeros(prover.p), 1.0)
        self._root: Node | None = None

    @property
    def root(self) -> Node:
        """The box that rows alone leave."""
        if self._root is None:
            count, middle = len(self.shape.matrix), self.shape.matrix @ (self.outer @ self._start)
            root = Node(np.full(count, -np.inf), np.full(count, np.inf))
            for k in range(count):
                for sign in (1, -1):
                    if self.is_fixed[k]:
                        self.tighten(root, k, sign, self._fixed(k, sign, middle[k]))
                        continue
                    found = self.solve(sign * self.directions[k], [])
                    if found is None:
                        raise GaveUp
                    self.tighten(root, k, sign, found[0])
            self._root = root
        return self._root

    def tree(self, claim: FloatArray | None, deadline: float | None = None) -> Node:
        """The tree of all cases of a claim over the unknowns, every one closed; without a claim, of there being a model at all.

        Raises Beyond or GaveUp.
        """
        return _Run(self, claim, deadline).whole()

    def normal(self, model: FloatArray) -> FloatArray:
        """The a of a model of the unknowns."""
        return np.asarray(self.prover.ties.outer(model[None, :])[0, :-1])

    def excess(self, model: FloatArray) -> float:
        """s − ‖a‖* of a model of the unknowns."""
        return float(model[self.column] - self.norm.dual(self.normal(model)))

    def inside(self, model: FloatArray, claim: FloatArray | None) -> FloatArray:
        """A model with s = ‖a‖* like this one, which has no more, but as far from the rows and the claim as there is one."""
        core, near = self.core, self.normal(model)
        slope = self._of_a(np.asarray(self.norm.maximizer(near)), -1.0)
        beside = np.array([slope] if claim is None else [slope, -claim])
        inner = beside @ core.lift
        # How much of the middle, the last unknown, is to be in it: solvers keep rows up to roundings, so some for both.
        towards = np.abs(inner @ self._start) * np.append(BENT, np.ones(len(inner) - 1))
        self._inside.put(np.column_stack([inner, inner @ self._start - towards]))
        found = self._inside.least(np.append(np.zeros(len(self._start)), -1.0))
        if found is not None:
            model = core.lift @ (found.place[:-1] + found.place[-1] * self._start)
        if self.excess(model) > 0 or self.excess(middle := core.lift @ self._start) < 0:
            return model
        return np.asarray(self._crossings.between(middle[None, :], model[None, :])[0])

    @cached_property
    def _inside(self) -> CoreProgram:
        """Of models v and a share of the middle: v itself keeps the rows."""
        rows = self.core.cone.A
        every = np.zeros((len(rows) + 1, rows.shape[1] + 1))
        every[:-1, :-1], every[-1, -1] = rows, 1.0
        return CoreProgram(every, np.append(self.core.lift[self.unit], 1.0))

    def cut(self, model: FloatArray) -> Beside | None:
        """Hölder's inequality s ≥ v·a where a model has less of s than ‖a‖*."""
        a = self.normal(model)
        if self.norm.dual(a) <= float(model[self.column]) * (1 + CLOSE):
            return None
        v = np.asarray(self.norm.maximizer(a / np.abs(a).max())) * (1 - 4 * length_error(self.norm, len(a)))
        term = Term("hoelder", ONE, self.row, vector=tuple(Fraction(-x) for x in v.tolist()), of="robustness")
        return Beside(self._of_a(-v, 1.0), term)

    # Programs.

    def _of_a(self, left: FloatArray, s: float = 0.0, t: float = 0.0) -> FloatArray:
        """left·a + s·s + t·t over the unknowns."""
        prover, free = self.prover, len(self.prover.ties.free)
        row = np.zeros((1, prover.facts.left.shape[1]))
        row[0, : prover.p] = left
        row[0, prover.p + 1 + self.column - free - 1] += s
        row[0, prover.p + 1 + self.unit - free - 1] += t
        return np.asarray(prover.ties.inner(row)[0])

    def beside(self, bound: UpperBound) -> Beside:
        """An upper bound as a row."""
        return Beside(self._of_a(bound.left, -bound.delta, bound.gamma), bound.term)

    def side(self, k: int, sign: int, value: float) -> Beside:
        """A side of the box as a row."""
        index = k + (self.prover.p if self.shape.frame else 0)
        return Beside(sign * self.directions[k] - value * self._t, Term("bound", ONE, sign=sign, index=index))

    def corner(self, k: int) -> Beside:
        """The case that s is reached at a corner of the ball."""
        assert self.corners is not None
        return Beside(self._of_a(self.corners.rows[k], -1.0), Term("corner", ONE))

    def solve(self, target: FloatArray, beside: Sequence[Beside]) -> tuple[Draft, FloatArray] | None:
        """(what the program proves of a form over the unknowns, the model where it is least); None if there is none."""
        lift, self._last = self.core.lift, beside
        rows = np.array([each.row for each in beside]).reshape(-1, len(lift))
        inner, size = rows @ lift, np.abs(rows) @ np.abs(lift)
        # What equalities say already would be a row of roundings.
        is_said = np.abs(inner).max(axis=1, initial=0.0) <= CLOSE * size.max(axis=1, initial=0.0)
        self._program.put(np.where(is_said[:, None], 0.0, inner))
        found = self._program.least(target @ lift)
        return None if found is None else (self._draft(target, found, found.value, beside), lift @ found.place)

    def emptiness(self) -> Draft | FloatArray | None:
        """What shows that the rows of the last program leave no model at all, or a model that they leave by a hair."""
        found = self._program.emptiness()
        if found is None or found.value > -0.5:
            return None if found is None else self._draft(np.zeros(len(self._t)), found, 1.0, self._last)
        return np.asarray(self.core.lift @ found.place)

    def _draft(self, target: FloatArray, found: Least, value: float, beside: Sequence[Beside]) -> Draft:
        core, prover = self.core, self.prover
        weights = found.weights * core.cone.scale / core._unit
        held = np.flatnonzero(weights > 1e-12 * weights.max(initial=0.0))
        rest = target - weights[held] @ prover.rows[core.rows[held]] - value * self._t
        used = [(each, float(w)) for each, w in zip(beside, found.beside, strict=True) if w > 0]
        for each, weight in used:
            rest = rest - weight * each.row
        rows, extra, omega, paid = self._by_equalities(rest)
        return Draft(
            np.append(core.rows[held], rows), np.append(weights[held], extra), omega,
            tuple((each.term, weight) for each, weight in used), value - paid,
        )  # fmt: skip

    def _by_equalities(self, rest: FloatArray) -> tuple[IntArray, FloatArray, FloatArray, float]:
        """(rows of slabs, their weights, weights of equalities, what they cost) that take over what is left of a form."""
        prover, none = self.prover, np.zeros(0, dtype=np.int64)
        if prover.widened is None:
            omega = rest @ prover.equal.back
            return none, np.zeros(0), omega, 2 * float(np.abs(omega) @ prover.equal.width)
        used, _, back = prover.widened  # others than the proof's own: as the rows that they are on either side
        omega, count = rest @ back, len(prover._equalities)
        width = prover.facts.width[prover._equalities[used]]
        rows = prover.base + used + np.where(omega < 0, count, 0)
        return rows, np.abs(omega), np.zeros(len(prover.used)), 2 * float(np.abs(omega) @ width)

    def _fixed(self, k: int, sign: int, value: float) -> Draft:
        """The draft of a direction along which equalities leave nothing."""
        rows, weights, omega, paid = self._by_equalities(sign * self.directions[k] - sign * value * self._t)
        return Draft(rows, weights, omega, (), sign * value - paid)

    def tighten(self, node: Node, k: int, sign: int, draft: Draft) -> bool:
        """True if a side of the box is worth having: then it is taken, a little weaker."""
        wide = node.high[k] - node.low[k]
        off = LOOSER * (abs(draft.value) + (wide if np.isfinite(wide) else 0.0))
        old, new = (node.low[k] if sign > 0 else -node.high[k]), draft.value - off
        if not new > old + (0.01 * wide if np.isfinite(wide) else 0.0):
            return False
        if sign > 0:
            node.low[k] = new
        else:
            node.high[k] = -new
        node.bounds.append((k, sign, draft))
        return True


@final
class _Run:
    """One claim: the tree of its cases."""

    def __init__(self, method: BranchAndBound, claim: FloatArray | None, deadline: float | None) -> None:
        self.method, self.claim, self.deadline, self.leaves = method, claim, deadline, 0
        self._denied = [] if claim is None else [Beside(-claim, Term("denied", ONE))]
        # Without a claim: the least s, where upper bounds leave most room.
        self._target = method.length if claim is None else claim
        self._scale = float((np.abs(self._target) @ np.abs(method.core.lift)).max())
        self._cuts: list[Beside] = []

    def whole(self) -> Node:
        root = self.method.root
        node = Node(root.low.copy(), root.high.copy())
        if self.method.corners is not None:
            node.corner = self.method.row
            for k in range(len(self.method.corners.exact)):
                part = Node(node.low.copy(), node.high.copy())
                node.parts.append(part)
                if self._left(part, [self.method.corner(k)]) is not None:
                    raise GaveUp
            return node
        if self._left(node) is not None:
            self._narrow(node)
            model = None if node.closed is not None else self._left(node)
            waiting = [] if model is None else [(node, model)]
            while waiting:
                waiting += self._split(*waiting.pop())
        return node

    def _split(self, node: Node, model: FloatArray) -> list[tuple[Node, FloatArray]]:
        """Cut an open case in two; the parts that are open, each with a model."""
        found = self.method.shape.split(node.low, node.high, self.method.normal(model))
        if found is None:
            raise GaveUp
        node.index, node.value = found
        parts = [Node(node.low.copy(), node.high.copy()) for _ in range(2)]
        parts[0].high[node.index] = parts[1].low[node.index] = node.value
        node.parts = parts
        models = [self._left(part) for part in parts]
        return [(part, model) for part, model in zip(parts, models, strict=True) if model is not None]

    def _rows(self, node: Node, places: Sequence[float]) -> list[Beside]:
        """Upper bounds on s in the box, and its sides where a cut or a denial made them."""
        method = self.method
        found = [method.beside(bound) for bound in method.shape.bounds(node.low, node.high, places)]
        for k in method.varying:
            if node.low[k] > method.root.low[k]:
                found.append(method.side(k, 1, node.low[k]))
            if node.high[k] < method.root.high[k]:
                found.append(method.side(k, -1, -node.high[k]))
        return found

    def _left(self, node: Node, corner: Sequence[Beside] = ()) -> FloatArray | None:
        """A model of the box that denies the claim and keeps the upper bounds on s; None if there is none: the case is closed."""
        self.leaves += 1
        if self.leaves > MOST_LEAVES or (self.deadline is not None and time.monotonic() > self.deadline):
            raise GaveUp
        far = np.maximum(np.abs(node.low), np.abs(node.high))
        places = [float(np.linalg.norm(far))]
        most = len(self._cuts) + CUTS
        while len(places) <= PLACES:
            rows = [*corner, *([] if corner else self._rows(node, places)), *self._cuts]
            found = self.method.solve(self._target, rows)
            if found is None:
                model = self._close_empty(node)
                if model is None:
                    return None
            else:
                draft, model = found
                if self.claim is not None and draft.value > 1e-12 * self._scale:
                    node.closed = draft
                    return None
            s = float(model[self.method.column])
            cut = self.method.cut(model)
            if cut is not None and len(self._cuts) < most:
                self._cuts.append(cut)
                continue
            if self.method.excess(model) <= CLOSE * abs(s):
                raise Beyond(self.method.inside(model, self.claim))
            if corner or any(abs(s - at) <= 1e-3 * s for at in places) or not 0 < s < np.inf:
                return model
            places.append(s)
        return model

    def _close_empty(self, node: Node) -> FloatArray | None:
        """None if the case is closed, since there is no model at all; else one that is left by a hair."""
        found = self.method.emptiness()
        if found is None or (isinstance(found, Draft) and not found.value > 0):
            raise GaveUp
        if isinstance(found, Draft):
            node.closed, node.is_empty = found, True
            return None
        return found

    def _narrow(self, node: Node) -> None:
        """Make the box as small as rows, upper bounds and the denial allow."""
        method = self.method
        for _ in range(ROUNDS):
            far = np.maximum(np.abs(node.low), np.abs(node.high))
            is_smaller = False
            for k in method.varying:
                for sign in (1, -1):
                    rows = [*self._denied, *self._rows(node, [float(np.linalg.norm(far))]), *self._cuts]
                    found = method.solve(sign * method.directions[k], rows)
                    if found is None:
                        if self._close_empty(node) is None:
                            return
                        continue
                    is_smaller |= method.tighten(node, k, sign, found[0])
            if not is_smaller:
                return
