"""The prover of a log: verdicts on many points, and what settles one of them in the checker's words."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from overexplain.geometry.arrays import FloatArray, IntArray
from overexplain.geometry.hyperplane import NO
from overexplain.knowledge.checker import Answer, Term
from overexplain.knowledge.enclosures import Evidence
from overexplain.knowledge.prover.cone import NoInterior
from overexplain.knowledge.prover.facts import FLIPS, NAMES, SIDE, Block
from overexplain.knowledge.prover.linear import LinearProver
from overexplain.knowledge.prover.one_point import Evidence as Settling
from overexplain.knowledge.prover.one_point import decide, settle
from overexplain.knowledge.prover.prover import UNKNOWN, Prover
from overexplain.knowledge.prover.reduction import BOUNDARY, Contradiction, LinearFacts, Model, Weights
from overexplain.knowledge.prover.written import by_one_step, roughly, terms_of

__all__ = ["Contradiction", "LogProver", "NoInterior"]

VAST = 60
"""Dimensions above which a search among very many rows is slow."""
SHARP = 1e-9
"""A step under a smooth distance whose direction is known to within this leaves one model alone."""


@dataclass(frozen=True)
class Settlement:
    """A code, and the terms that prove it (on the plane: and the reverse) or the models (one says Yes, the other No)
    that show it."""

    code: int
    terms: tuple[Term, ...] = ()
    reverse: tuple[Term, ...] = ()
    models: tuple[Model, Model] | None = None


@final
class LogProver:
    """Decides points for the rows in `blocks`; `answers` are the log's rows in exact numbers, sides filled in.

    `known` are models (a, b), rows, that may fit: where they do, the search may begin with them. No verdict depends on them.

    Raises Contradiction if linear facts contradict each other, and NoInterior if floats see no model of facts with lengths.
    """

    @np.errstate(all="ignore")
    def __init__(
        self,
        blocks: Sequence[Block],
        answers: Mapping[int, Answer],
        evidence: Evidence,
        known: FloatArray | None = None,
    ) -> None:
        self.answers, self.evidence, self._blocks = answers, evidence, tuple(blocks)
        self._lock = threading.RLock()
        self._linear: LinearProver | None = None
        self._measured: Prover | None = None
        if any(block.is_measured for block in blocks):
            self._measured = Prover(blocks, answers, evidence, known)
            return
        facts, self._origin, self._name = linear_facts(blocks)
        self._linear = LinearProver(facts)

    @property
    def is_vast(self) -> bool:
        """True for so many labels in so many dimensions, none of them whole numbers, that a gauge is faster for most points."""
        cone = None if self._linear is None or self._linear.is_whole else self._linear.cone
        return cone is not None and cone.rank > VAST and len(cone.rows) > 20 * cone.rank

    @property
    def centre(self) -> Model | None:
        """A model that fits the log, if one is known."""
        if self._linear is not None:
            return self._linear.centre
        assert self._measured is not None
        for model in self._measured.known[:4]:
            exact = self._measured.keeper.exactly(model)
            if self._measured.keeper.kept_exactly(exact):
                return exact
        return None

    @property
    def is_consistent(self) -> bool:
        """True if a model that fits the log is known."""
        return self._linear is not None or (self._measured is not None and len(self._measured.known) > 0)

    @property
    def pinned_down(self) -> bool:
        """True if the log leaves a single model, up to the tolerance of its answers."""
        prover = self._measured
        if prover is None:
            return False
        if any(1 - step.steepness / step.length < SHARP for step in prover.smooth_steps):
            return True
        models = prover.ties.outer(prover.null.T)
        return bool(prover.null.shape[1]) and int(np.linalg.matrix_rank(models / np.abs(models).max())) == 1

    def fork(self) -> LogProver:
        """A copy that learns for itself."""
        twin = object.__new__(LogProver)
        twin.__dict__.update(self.__dict__)
        twin._lock = threading.RLock()
        twin._linear = None if self._linear is None else self._linear.fork()
        twin._measured = None if self._measured is None else self._measured.fork()
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    def known(self) -> FloatArray:
        """Models (a, b), rows, that were found so far: rounded, so they have to be held to the log again."""
        linear = self._linear
        if linear is None:
            assert self._measured is not None
            return self._measured.known
        if linear.cone is None or linear.batch is None:
            return np.zeros((0, linear.rows.shape[1]))
        models = np.vstack([linear.cone.centre[None, :], linear.cone.models(linear.batch.models)])
        return linear.coding.models(linear.reduction.outer(models))

    # Points. One caller at a time: the search learns.

    @np.errstate(all="ignore")
    def codes(self, X: FloatArray, deadline: float | None = None) -> NDArray[np.int8]:
        """A code for every point; OPEN is left to the exact step."""
        with self._lock:
            return self._codes(X, deadline)

    def _codes(self, X: FloatArray, deadline: float | None) -> NDArray[np.int8]:
        if self._linear is not None:
            codes = decide(self._linear, X, deadline)
            for i in np.flatnonzero(codes == BOUNDARY):
                row = self._own_row(X[i])
                codes[i] = BOUNDARY if row is None else self.answers[row].label or BOUNDARY
            return codes
        assert self._measured is not None
        return self._measured.look(X, deadline)

    @np.errstate(all="ignore")
    def settle(self, x: FloatArray, code: int | None, deadline: float | None = None) -> Iterator[Settlement]:
        """What may settle a point, best first; floats believe it, the checker is still to be asked.

        Models and sets of rows that other points taught take no part, but for an UNKNOWN that is shown by no others;
        cuts, and which rows are searched, stay. `code`: the verdict, if it is known.
        """
        if self._linear is not None:
            row = self._own_row(x)
            if row is not None:
                label = self.answers[row].label
                assert label is not None
                yield Settlement(label, (Term("side", Fraction(1), row),))
            yield from self._of_linear(settle(self._linear, x, deadline), self._origin, self._name)
            return
        assert self._measured is not None
        with self._lock:
            prover = self._measured.pristine()
        if code is None:
            code = int(prover.look(x[None, :], deadline)[0])
        if abs(code) == 1:
            yield from self._certain(prover, x, code)
        elif code == UNKNOWN:
            prover.look(x[None, :], deadline)
            for known in (prover, self._measured):  # those found for this point; or for others, too
                models = known.models(x)
                if models is not None:
                    yield Settlement(UNKNOWN, models=models)

    def _own_row(self, x: FloatArray) -> int | None:
        """The row that labels the point itself: it keeps its label, on the plane, too."""
        return self._own_rows.get((x + 0.0).tobytes())

    @cached_property
    def _own_rows(self) -> dict[bytes, int]:
        return {
            (x + 0.0).tobytes(): int(row)
            for block in self._blocks
            for x, row in zip(block.points, block.rows, strict=True)
        }

    def _certain(self, prover: Prover, x: FloatArray, code: int) -> Iterator[Settlement]:
        for step in prover.smooth_steps:
            terms = by_one_step(step, x, code)
            if terms is not None:
                yield Settlement(code, tuple(terms))
        proof = prover.prove(x, code)
        if proof is not None:
            for terms in terms_of(prover, self.answers, self.evidence, x, proof):
                yield Settlement(code, tuple(terms))
        if prover.linear is not None:
            facts = prover.facts[prover.linear_facts]
            for found in self._of_linear(settle(prover.linear, x), facts.origin, facts.name):
                if found.code == code:
                    yield found

    @staticmethod
    def _of_linear(found: Settling, origin: IntArray, name: IntArray) -> Iterator[Settlement]:
        if found.models is not None:
            yield Settlement(UNKNOWN, models=found.models)
        else:
            terms, reverse = (tuple(_terms(weights or {}, origin, name)) for weights in (found.weights, found.reverse))
            yield Settlement(found.code, terms, reverse)


def linear_facts(blocks: Sequence[Block]) -> tuple[LinearFacts, IntArray, IntArray]:
    """(the facts of labels and of merely valid answers, their rows in the log, their names)."""
    points, sides, strict, origin, names = [], [], [], [], []
    for block in blocks:
        points.append(block.points)
        sides.append(block.sides)
        strict.append(block.sides == NO)
        origin.append(block.rows)
        names.append(np.full(len(block.rows), SIDE))
        if block.answers is not None:
            points.append(block.answers)
            sides.append(-block.sides)
            strict.append(np.zeros(len(block.rows), dtype=bool))
            origin.append(block.rows)
            names.append(np.full(len(block.rows), FLIPS))
    facts = LinearFacts(np.vstack(points), np.concatenate(sides), np.concatenate(strict))
    return facts, np.concatenate(origin), np.concatenate(names)


def _terms(weights: Weights, origin: IntArray, name: IntArray) -> list[Term]:
    ordered = sorted(weights.items(), key=lambda pair: -roughly(pair[1]))  # what matters most is read first
    return [Term(NAMES[int(name[i])], weight, int(origin[i])) for i, weight in ordered]


def contradiction_of(blocks: Sequence[Block]) -> list[Term] | None:
    """Terms that prove that labels and merely valid answers contradict each other, none of whose rows could be left
    out; None if they
    do not, or if any model would be 0."""
    facts, origin, name = linear_facts(blocks)
    rows = np.arange(len(origin))
    found = _weights_of(facts, rows)
    if not found:
        return None
    rows = np.isin(origin, origin[list(found)]).nonzero()[0]
    for row in np.unique(origin[rows]).tolist():
        fewer = rows[origin[rows] != row]
        less = _weights_of(facts, fewer) if len(fewer) else None
        if less:
            found = less
            rows = np.isin(origin, origin[list(found)]).nonzero()[0]
    largest = max(abs(weight) for weight in found.values())
    return _terms({i: weight / largest for i, weight in found.items()}, origin, name)


def _weights_of(facts: LinearFacts, rows: IntArray) -> Weights | None:
    """The weights of a contradiction among some facts; None if there is none."""
    try:
        LinearProver(LinearFacts(facts.points[rows], facts.sides[rows], facts.strict[rows]))
    except Contradiction as none:
        return {int(rows[i]): weight for i, weight in none.weights.items()}
    return None
